"""What a decay of the rate does at the end of a run, beside as many steps without one.

    python data/models-long/decay.py mini-xlmr --seed 2 --out build/decay.csv

Goes on from the state that the whole run has left (in ``cache/pretraining``) in two ways: the rate
falls in a straight line to zero, or it stays. A row each for the weights at that end, for their
average over the last tenth of the steps, which is what a checkpoint holds, and for what the two
ways come to. Columns as in ``trials.csv``.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from transformers import AutoModelForMaskedLM

from family import objectives, pretraining, recipes
from family.batches import held_out_batches
from measure import LANGUAGES, added, measure
from xlx.results import paths
from xlx.subjects.training import save_state, saved_state
from xlx.text import parallel

SENTENCES = 300
CPU = torch.device("cpu")


def held_out_loss(
    folder: Path, prepared: pretraining.Prepared, recipe: recipes.MemberRecipe
) -> float:
    """Mean over `LANGUAGES`, in nats a masked subword."""
    tokenizer, _, lines = prepared
    held = {}
    for code in LANGUAGES:
        encoded = tokenizer.encode_batch(lines[code], add_special_tokens=False)
        held[code] = held_out_batches([np.array(line.ids) for line in encoded], recipe)
    model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32)
    return objectives.held_out_losses(model, held, CPU)["loss"].mean()


def ends(
    recipe: recipes.MemberRecipe, prepared: pretraining.Prepared, steps: int
) -> dict[str, tuple[int, Path]]:
    """What there is to measure → its steps, and the folder of its weights."""
    state = pretraining.state_file(recipe)
    saved = saved_state(state, CPU)
    if saved is None or saved["step"] != recipe.steps:
        raise SystemExit(f"error: {state} is not the end of a run of {recipe.name}: train it first")
    out, total = paths.BUILD / "decay" / f"{recipe.name}-{recipe.seed}", recipe.steps + steps
    made = {}
    for what, weights in (("the weights themselves", "model"), ("the average", "average")):
        model = objectives.untrained(recipe)
        model.load_state_dict(saved[weights])
        pretraining.save_checkpoint(model, prepared[0], out / weights, recipe)
        made[what] = recipe.steps, out / weights
    decay = {"decay_share": steps / total, "averaged_share": 0.0}
    for what, changes in (
        (f"the average, {steps:,} steps later", {}),
        (f"{steps:,} steps of linear decay later, the weights themselves", decay),
    ):
        longer = replace(recipe, steps=total, history=False, **changes)
        beside = out / ("decay" if changes else "steady")
        left = saved | {"recipe": recipes.describe(longer), "held_out": []}
        if changes:  # without an average of its own, a run has its weights in that place
            left["average"] = saved["model"]
        if not pretraining.finished(longer, beside):
            save_state(beside.with_suffix(".pt"), left)
            pretraining.pretrain(longer, prepared, beside, beside.with_suffix(".pt"))
        made[what] = total, beside / f"step-{total:06d}"
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("name", help="an encoder whose run is at its end")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--out", type=Path, required=True, help="a CSV file to add to")
    options = parser.parse_args()
    recipe = replace(recipes.RECIPES[options.name], seed=options.seed)
    prepared = pretraining.prepare(recipe)
    corpus = parallel.load("wmt24pp", drop_duplicates=True).take(SENTENCES, 0).select(LANGUAGES)
    for what, (step, folder) in ends(recipe, prepared, options.steps).items():
        table = measure(folder, corpus)
        best = table.loc[table["matched_MD"].idxmax()]
        row = {
            "trial": "decay", "what": f"{options.name}, seed {options.seed}: {what}",
            "subwords": step * recipe.tokens_per_step, "held_out_of": "six",
            "held_out_loss": held_out_loss(folder, prepared, recipe), "MD": table["MD"].max(),
            "matched_MD": best["matched_MD"], "LD": table["LD"].min(),
            "best_layer": int(best["layer"]),
        }  # fmt: skip
        added(pd.DataFrame([row]).round(3), options.out)


if __name__ == "__main__":
    main()
