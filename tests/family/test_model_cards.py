"""Model cards: everything that the tables of a run say, and nothing else."""

from dataclasses import replace
from itertools import chain

import pandas as pd
import pytest
import yaml

from xlx.family import model_cards
from xlx.family.recipes import RECIPES, MemberRecipe

RUN = {
    "parameters": 1_234_567,
    "steps": 2880,
    "subwords_seen": 5_898_240,
    "minutes": 12.4,
    "device": "CPU with AVX2, threads: 1",
    "torch": "2.13.0",
}


def losses(recipe: MemberRecipe) -> pd.DataFrame:
    rows = [
        {"step": step, "objective": objective, "loss": loss + k / 10}
        for step, loss in ((50, 8.0), (recipe.steps, 4.0))
        for k, objective in enumerate(recipe.objectives)
    ]
    return pd.DataFrame(rows)


def held_out(recipe: MemberRecipe, n_languages: int = 15) -> pd.DataFrame:
    rows = [
        {"step": step, "language": f"l{k:02d}", "subwords": 100, "loss": loss + k / 7}
        for step, loss in ((0, 8.7), (recipe.steps, 4.0))
        for k in reversed(range(n_languages))
    ]
    return pd.DataFrame(rows)


def card(name: str) -> str:
    recipe = RECIPES[name]
    return model_cards.model_card(recipe, RUN, losses(recipe), held_out(recipe))


@pytest.mark.parametrize("name", RECIPES)
def test_a_card_says_what_the_recipe_and_the_run_say(name: str) -> None:
    recipe, text = RECIPES[name], card(name)
    _, front, body = text.split("---\n", 2)
    assert yaml.safe_load(front) == {"license": "mit", "library_name": "transformers"}
    assert body.startswith(f"\n# {name}\n")
    for part in (
        f"{recipe.layers} layers × {recipe.hidden_size}",
        f"{recipe.heads} heads",
        f"inner layer {recipe.intermediate_size}",
        f"{recipe.vocabulary:,} subwords",
        f"up to {recipe.max_length} positions",
        "1,234,567 parameters",
        "5,898,240 subwords in 2,880 steps",
        "12 minutes on CPU with AVX2, threads: 1, torch 2.13.0",
        ", ".join(f"{o} {4 + k / 10:.2f}" for k, o in enumerate(recipe.objectives)) + " nats",
        ", ".join(f"{step:,}" for step in recipe.checkpoint_steps()),
        f"data/models/{name}/step-{recipe.steps:06d}",
        "## Limits",
    ):
        assert part in text, part
    for source in ("Common Voice", "Tatoeba", "NTREX-128", "New Testaments"):
        assert source in text
    assert text.endswith("\n")
    assert "8.7" not in text  # of the losses, the last alone


@pytest.mark.parametrize(
    ("name", "kind", "pieces", "auto", "counted"),
    [
        ("mini-mbert", "BERT", "(WordPiece)", "AutoModelForMaskedLM", "masked"),
        ("mini-xlmr", "XLM-R", "(BPE with byte fallback)", "AutoModelForMaskedLM", "masked"),
        ("mini-llama", "Llama", "(BPE with byte fallback)", "AutoModelForCausalLM", "next"),
    ],
)
def test_a_card_fits_the_architecture(
    name: str, kind: str, pieces: str, auto: str, counted: str
) -> None:
    text = card(name)
    assert f"\n{kind} architecture, " in text
    assert pieces in text
    assert f"from transformers import {auto}\n" in text
    assert f"model = {auto}.from_pretrained(" in text
    assert f"Nats a {counted} subword" in text


def test_a_card_names_the_objectives() -> None:
    told = {name: card(name).split("| learns from | ")[1].split(" |")[0] for name in RECIPES}
    assert told["mini-xlm"] == "masked language modelling, translation language modelling"
    assert told["mini-infoxlm"].startswith(told["mini-xlm"] + ", cross-lingual contrast")
    assert told["mini-llama"] == "causal language modelling"


def test_a_card_tells_the_share_of_english() -> None:
    told = {name: card(name).split("| languages | ")[1].split(" |")[0] for name in RECIPES}
    assert "(subwords) ^ 0.3" in told["mini-llama"]
    assert "English as every other" in told["mini-llama"]
    assert "English fixed at 80%" in told["mini-llama-en80"]
    assert "English fixed at 95%" in told["mini-llama-en95"]


def test_losses_by_language_stand_in_order_with_their_mean() -> None:
    recipe = RECIPES["mini-xlmr"]
    rows = card("mini-xlmr").split("## Loss on held-out text")[1].splitlines()
    rows = [row.strip("| ").split(" | ") for row in rows if row.startswith("| ")]
    codes, shown = (list(chain.from_iterable(rows[first::2])) for first in (0, 1))
    assert [len(row) for row in rows] == [12, 12, 3, 3]
    assert codes == [f"l{k:02d}" for k in range(15)]
    assert shown == [f"{4 + k / 7:.2f}" for k in range(15)]
    assert "Mean over 15 languages: 5.00." in card("mini-xlmr")
    nothing = model_cards.model_card(recipe, RUN, losses(recipe), pd.DataFrame())
    assert nothing.endswith("Not measured.\n")


def test_another_length_of_the_run_is_told() -> None:
    recipe = replace(RECIPES["mini-llama"], steps=400)
    text = model_cards.model_card(recipe, RUN | {"steps": 400}, losses(recipe), held_out(recipe))
    assert "| checkpoints | 0, 180, 360, 400 |" in text
    assert "step-000400" in text
