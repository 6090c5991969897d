"""Model cards: everything that the tables of a run say, and nothing else."""

import json
from itertools import chain
from pathlib import Path

import pandas as pd
import pytest
import yaml

from family import model_cards
from family.recipes import RECIPES, read_recipe
from xlx.results import paths

CARDS = sorted(paths.MODELS.glob("*/README.md"))


@pytest.mark.parametrize("folder", [card.parent for card in CARDS], ids=lambda folder: folder.name)
def test_a_shipped_card_is_that_of_its_tables(folder: Path) -> None:
    recipe = read_recipe((folder / "recipe.json").read_text("utf-8"))
    run = {"products": "bfloat16"} | json.loads((folder / "run.json").read_text("utf-8"))
    tables = (pd.read_csv(folder / f"{table}.csv") for table in ("losses", "held_out"))
    card = model_cards.model_card(recipe, run, *tables)
    assert card == (folder / "README.md").read_text("utf-8")


RUN = {
    "parameters": 1_234_567,
    "steps": 25_600,
    "subwords_seen": 52_428_800,
    "minutes": 12.4,
    "device": "CPU with AVX2, threads: 1",
    "products": "float32",
    "torch": "2.13.0",
}


def card(name: str) -> str:
    recipe = RECIPES[name]
    losses = [
        {"step": step, "objective": objective, "loss": loss + k / 10}
        for step, loss in ((50, 8.0), (recipe.steps, 4.0))
        for k, objective in enumerate(recipe.objectives)
    ]
    held_out = [
        {"step": step, "language": f"l{k:02d}", "subwords": 100, "loss": loss + k / 7}
        for step, loss in ((0, 8.7), (recipe.steps, 4.0))
        for k in reversed(range(15))
    ]
    return model_cards.model_card(recipe, RUN, pd.DataFrame(losses), pd.DataFrame(held_out))


def test_a_card_says_what_the_recipe_and_the_run_say() -> None:
    text = card("mini-xlmr-6")
    _, front, body = text.split("---\n", 2)
    assert yaml.safe_load(front) == {"license": "mit", "library_name": "transformers"}
    assert body.startswith("\n# mini-xlmr-6\n")
    for part in (
        "XLM-R architecture, 6 layers × 128",
        "4 heads, inner layer 256, 6,000 subwords",
        "(BPE with byte fallback), up to 256 positions: 1,234,567 parameters",
        'model = AutoModelForMaskedLM.from_pretrained("data/models-long/mini-xlmr-6/step-025600")',
        "| learns from | masked language modelling |",
        "| languages | of them: ar, de, en, ja, ru, tr; share ~ (subwords) ^ 0.3, English as every",
        "| seen | 52,428,800 subwords in 25,600 steps |",
        "12 minutes on CPU with AVX2, threads: 1, torch 2.13.0, float32",
        "| loss at the end | mlm 4.00 nats, in training |",
        "| checkpoints | 0, 100, 141, 200, 283, 400, 566, 800, ",
        "25,600, of weights averaged over the last 10% of the steps so far |",
        "Nats a masked subword",
        "## Limits",
    ):
        assert part in text, part
    assert text.endswith("\n")
    assert "8.7" not in text  # of the losses, the last alone
    assert "Nats a next subword" in card("mini-llama")
    assert "other; 20% of the rows hold translations, a sentence behind" in card("mini-llama-bi20")


def test_losses_by_language_stand_in_order_with_their_mean() -> None:
    text = card("mini-xlmr")
    rows = text.split("## Loss on held-out text")[1].splitlines()
    rows = [row.strip("| ").split(" | ") for row in rows if row.startswith("| ")]
    codes, shown = (list(chain.from_iterable(rows[first::2])) for first in (0, 1))
    assert [len(row) for row in rows] == [12, 12, 3, 3]
    assert codes == [f"l{k:02d}" for k in range(15)]
    assert shown == [f"{4 + k / 7:.2f}" for k in range(15)]
    assert "Mean over 15 languages: 5.00." in text
