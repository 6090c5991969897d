"""Short trials of the recipe: each is `mini-xlmr` (or `mini-llama`: "decoder") but for one thing.

    python data/models-long/trials.py reference masked_15 wide --out build/trials.csv

A trial trains into ``build/trials/<name>`` (and goes on with what is there), and adds a row: its
loss on held-out text of `LANGUAGES`, and by `measure` the best MD and matched MD and the lowest LD
of all layers on WMT24++.
"""

import argparse
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pandas as pd
import torch
from transformers import AutoConfig, AutoModelForMaskedLM

from family import objectives, pretraining, recipes
from measure import LANGUAGES, added, measure
from xlx.results import paths
from xlx.text import parallel
from xlx.text.pretraining_text import BOS, EOS, PAD

SENTENCES = 300
WIDE = {"hidden_size": 192, "intermediate_size": 384}
WIDE_DECODER = {"hidden_size": 192, "intermediate_size": 264}
DOUBLE_RATES = {"learning_rate": 4e-3, "matrix_learning_rate": 3e-3}
HALF_RATES = {"learning_rate": 1e-3, "matrix_learning_rate": 7.5e-4}
#: What a trial changes in the recipe.
CHANGED: dict[str, dict] = {
    "reference": {},
    "sources_even": {"source_exponent": 0.0},
    "masked_15": {"masked_share": 0.15},
    "masked_50": {"masked_share": 0.5},
    "vocabulary_12000": {"vocabulary": 12_000},
    "six_languages": {"languages": recipes.RECIPES["mini-xlmr-6"].languages},
    "twelve_languages": {"languages": recipes.RECIPES["mini-xlmr-12"].languages},
    "positions_rotary": {"positions": "rotary"},
    "positions_modernbert": {},
    "positions_sinusoid": {},
    "norm_first": {},
    "wide": WIDE,
    "wide_half_rates": WIDE | HALF_RATES,
    "half_rates": HALF_RATES,
    "double_rates": DOUBLE_RATES,
    "decoder_wide": WIDE_DECODER,
    "decoder_wide_half_rates": WIDE_DECODER | HALF_RATES,
    "decoder_wide_double_rates": WIDE_DECODER | DOUBLE_RATES,
}


def sinusoid_positions(recipe: recipes.MemberRecipe) -> torch.nn.Module:
    """Learned absolute positions that start as sinusoids (Vaswani et al. 2017, section 3.5).

    Five times as large as the others start, so that words do not drown them.
    """
    model = objectives.untrained(recipe)
    weights = model.base_model.embeddings.position_embeddings.weight
    n_positions, dim = weights[PAD + 1 :].shape
    angles = torch.arange(n_positions)[:, None] / 10_000 ** (torch.arange(0, dim, 2) / dim)
    sinusoids = math.sqrt(2) * torch.cat([angles.sin(), angles.cos()], dim=1)
    weights.data[PAD + 1 :] = 0.1 * sinusoids
    return model


def modernbert(recipe: recipes.MemberRecipe) -> torch.nn.Module:
    """ModernBERT (Warner et al. 2024) of the same size: rotary, gated, normalised first."""
    config = AutoConfig.for_model(
        "modernbert", vocab_size=recipe.vocabulary, hidden_size=recipe.hidden_size,
        num_hidden_layers=recipe.layers, num_attention_heads=recipe.heads,
        intermediate_size=176,  # three matrices a layer instead of two
        max_position_embeddings=recipe.max_length,
        layer_types=["full_attention"] * recipe.layers, pad_token_id=PAD, bos_token_id=BOS,
        eos_token_id=EOS, cls_token_id=BOS, sep_token_id=EOS,
        initializer_range=0.02 * math.sqrt(768 / recipe.hidden_size),
    )  # fmt: skip
    torch.manual_seed(recipe.seed)
    model = AutoModelForMaskedLM.from_config(config)
    # a property, so that the weights are not saved twice
    type(model).lm_head = property(lambda self: lambda states: self.decoder(self.head(states)))
    return model


def norm_first(recipe: recipes.MemberRecipe) -> torch.nn.Module:
    """XLM-R XL (Goyal et al. 2021) of the same size: it normalises before a layer, not after.

    Positions start as sinusoids.
    """
    made = AutoConfig.for_model
    AutoConfig.for_model = lambda name, **options: made(f"{name}-xl", **options)
    try:
        return sinusoid_positions(recipe)
    finally:
        AutoConfig.for_model = made


#: Trials whose model is not the recipe's.
MODELS: dict[str, Callable[[recipes.MemberRecipe], torch.nn.Module]] = {
    "positions_sinusoid": sinusoid_positions,
    "positions_modernbert": modernbert,
    "norm_first": norm_first,
}


@contextmanager
def untrained_by(made: Callable[[recipes.MemberRecipe], torch.nn.Module]) -> Iterator[None]:
    """Runs begin with another model."""
    before = pretraining.objectives
    pretraining.objectives = type(
        "Objectives", (), vars(before) | {"untrained": staticmethod(made)}
    )
    try:
        yield
    finally:
        pretraining.objectives = before


def trial(name: str, steps: int, corpus: parallel.ParallelCorpus) -> dict[str, object]:
    """Train a trial, and measure its last checkpoint."""
    reference = "mini-llama" if name.startswith("decoder") else "mini-xlmr"
    recipe = replace(recipes.RECIPES[reference], steps=steps, **CHANGED[name])
    recipe = replace(recipe, name=f"trial-{name}", history=False)
    folder = paths.BUILD / "trials" / name
    if not pretraining.finished(recipe, folder):
        with untrained_by(MODELS.get(name, objectives.untrained)):
            state = pretraining.state_file(recipe)
            pretraining.pretrain(recipe, pretraining.prepare(recipe), folder, state)
    held_out = pd.read_csv(folder / "held_out.csv").set_index("language")["loss"]
    table = measure(folder, corpus)
    best = table.loc[table["matched_MD"].idxmax()]
    return {
        "trial": name, "subwords": steps * recipe.tokens_per_step, "held_out_of": "six",
        "held_out_loss": held_out[list(LANGUAGES)].mean(), "MD": table["MD"].max(),
        "matched_MD": best["matched_MD"], "LD": table["LD"].min(), "best_layer": int(best["layer"]),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="+", choices=list(CHANGED), metavar="name")
    parser.add_argument("--steps", type=int, default=3200)
    parser.add_argument("--out", type=Path, required=True, help="a CSV file to add to")
    options = parser.parse_args()
    corpus = parallel.load("wmt24pp", drop_duplicates=True).take(SENTENCES, 0).select(LANGUAGES)
    for name in options.names:
        added(pd.DataFrame([trial(name, options.steps, corpus)]).round(3), options.out)


if __name__ == "__main__":
    main()
