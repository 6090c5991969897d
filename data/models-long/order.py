"""What a masked model makes of the order of words: its loss on held-out lines, read and shuffled.

    python data/models-long/order.py build/models/mini-xlmr --out order.csv

The same subwords are masked in both; in the second all subwords of a line, masked or not, change
places at random (the ends of the line do not). A model that predicts from which words there are,
wherever they stand, loses nothing by it.
"""

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from family import objectives, recipes
from family.batches import Batch, held_out_batches
from measure import added
from xlx.subjects import loading
from xlx.text import pretraining_text
from xlx.text.pretraining_text import BOS, EOS, PAD

CPU = torch.device("cpu")


def shuffled(batch: Batch, rng: np.random.Generator) -> Batch:
    """Subwords and what they are masked for, in another order, line by line."""
    inner = batch.real & ~torch.isin(batch.ids, torch.tensor([BOS, EOS, PAD]))
    ids, labels = batch.ids.clone(), batch.labels.clone()
    for row, there in enumerate(inner):
        places = torch.nonzero(there)[:, 0]
        order = places[torch.from_numpy(rng.permutation(len(places)))]
        ids[row, places], labels[row, places] = batch.ids[row, order], batch.labels[row, order]
    return replace(batch, ids=ids, labels=labels)


def losses(folder: Path, held_out: Mapping[str, list[str]], recipe: recipes.MemberRecipe) -> dict:
    """Mean over languages of the loss on lines as they are, and shuffled, in nats."""
    from transformers import AutoModelForMaskedLM

    tokenizer = loading.load(str(folder), device="cpu").tokenizer
    model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    rng = np.random.default_rng(0)
    read, mixed = {}, {}
    for code, lines in held_out.items():
        encoded = tokenizer(lines, add_special_tokens=False)["input_ids"]
        read[code] = held_out_batches([np.array(ids) for ids in encoded], recipe)
        mixed[code] = [shuffled(batch, rng) for batch in read[code]]
    of_both = [objectives.held_out_losses(model, batches, CPU) for batches in (read, mixed)]
    return dict(zip(("read", "shuffled"), (table["loss"].mean() for table in of_both), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="+", type=Path, help="folders of a series")
    parser.add_argument("--steps", nargs="+", type=int, help="these checkpoints alone")
    parser.add_argument("--out", type=Path, help="a CSV file to add to")
    options = parser.parse_args()
    for name in options.names:
        recipe = recipes.read_recipe((name / "recipe.json").read_text("utf-8"))
        held_out = pretraining_text.read_text(recipe.languages)[1]
        folders = sorted(name.glob("step-*"))
        steps = {int(folder.name.removeprefix("step-")): folder for folder in folders}
        for step in options.steps or steps:
            row = {"run": name.name, "step": step} | losses(steps[step], held_out, recipe)
            added(pd.DataFrame([row]).round(3), options.out)


if __name__ == "__main__":
    main()
