"""Studies of a recipe: short trials, and what a masked model makes of the order of words.

    python data/models-long/study.py trial masked_share=0.15 --out build/trials.csv
    python data/models-long/study.py trial hidden_size=192 intermediate_size=264 --of mini-llama
    python data/models-long/study.py order build/models/mini-xlmr --out build/order.csv

A trial is a member but for the fields of its recipe that are named; none named, it is the
reference. It trains into ``build/trials`` (and goes on with what is there), and adds a row: its
loss on held-out text of `LANGUAGES`, and the best MD, the best MD among sentences of like length
and the lowest LD of all layers on `SENTENCES` sentences of WMT24++.

``order`` has the loss of each checkpoint on held-out lines, read and shuffled. The same subwords
are masked in both; in the second all subwords of a line, masked or not, change places at random
(the ends of the line do not). A model that predicts from which words there are, wherever they
stand, loses nothing by it.
"""

import argparse
import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from family import objectives, pretraining, pretraining_text
from family.batches import Batch, held_out_batches
from family.recipes import RECIPES, MemberRecipe, read_recipe
from family.training_text import BOS, EOS, PAD
from xlx.experiment.abx_scores import MATCHED
from xlx.experiment.scoring import subject_scores
from xlx.results import paths
from xlx.subjects import loading
from xlx.text import parallel

#: Six languages in four scripts.
LANGUAGES = ("en", "de", "ru", "ja", "ar", "tr")
SENTENCES = 300
CPU = torch.device("cpu")


def trial_recipe(member: str, changes: Sequence[str], steps: int) -> MemberRecipe:
    """A member's recipe with changes such as "masked_share=0.15", for so many steps."""
    fields = asdict(RECIPES[member]) | {"steps": steps, "history": False}
    fields["name"] = "-".join(["trial", member, *changes])
    for field, value in (change.split("=", 1) for change in changes):
        fields[field] = value
        with contextlib.suppress(json.JSONDecodeError):  # text needs no quotes
            fields[field] = json.loads(value)
    return read_recipe(json.dumps(fields))


def trial(recipe: MemberRecipe) -> Iterator[dict[str, object]]:
    """Train a trial, and measure its last checkpoint."""
    folder = paths.BUILD / "trials" / recipe.name
    if not pretraining.finished(recipe, folder):
        state = pretraining.state_file(recipe)
        pretraining.pretrain(recipe, pretraining.prepare(recipe), folder, state)
    held_out = pd.read_csv(folder / "held_out.csv").set_index("language")["loss"]
    loss = held_out[list(LANGUAGES)].mean()
    yield {
        "trial": recipe.name, "subwords": recipe.steps * recipe.tokens_per_step,
        "held_out_of": "six", "held_out_loss": loss, **best_scores(folder),
    }  # fmt: skip


def best_scores(folder: Path) -> dict[str, float]:
    """Of all layers the highest MD and matched MD, with its layer, and the lowest LD."""
    corpus = parallel.load("wmt24pp", drop_duplicates=True).take(SENTENCES, 0).select(LANGUAGES)
    (scores,) = subject_scores([str(folder)], corpus)
    by_layer = scores.table().groupby(["task", "layer"])["score"].mean().unstack("task")
    return {
        "MD": by_layer["MD"].max(), "matched_MD": by_layer[MATCHED].max(),
        "LD": by_layer["LD"].min(), "best_layer": by_layer[MATCHED].idxmax(),
    }  # fmt: skip


def shuffled(batch: Batch, rng: np.random.Generator) -> Batch:
    """Subwords and what they are masked for, in another order, line by line."""
    inner = batch.real & ~torch.isin(batch.ids, torch.tensor([BOS, EOS, PAD]))
    ids, labels = batch.ids.clone(), batch.labels.clone()
    for row, there in enumerate(inner):
        places = torch.nonzero(there)[:, 0]
        order = places[torch.from_numpy(rng.permutation(len(places)))]
        ids[row, places], labels[row, places] = batch.ids[row, order], batch.labels[row, order]
    return replace(batch, ids=ids, labels=labels)


def order(series: Path) -> Iterator[dict[str, object]]:
    """Mean over languages of the loss on lines as they are, and shuffled, in nats."""
    from transformers import AutoModelForMaskedLM

    recipe = read_recipe((series / "recipe.json").read_text("utf-8"))
    held_out = pretraining_text.read_text(recipe.languages)[1]
    for folder in sorted(series.glob("step-*")):
        tokenizer = loading.load(str(folder), device="cpu").tokenizer
        model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32)
        rng, read, mixed = np.random.default_rng(0), {}, {}
        for code, lines in held_out.items():
            encoded = tokenizer(lines, add_special_tokens=False)["input_ids"]
            read[code] = held_out_batches([np.array(ids) for ids in encoded], recipe)
            mixed[code] = [shuffled(batch, rng) for batch in read[code]]
        yield {"run": series.name, "step": int(folder.name.removeprefix("step-"))} | {
            what: objectives.held_out_losses(model, batches, CPU)["loss"].mean()
            for what, batches in (("read", read), ("shuffled", mixed))
        }


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("study", choices=["trial", "order"])
    parser.add_argument("names", nargs="*", help="field=value of a trial; folders of series")
    parser.add_argument("--of", default="mini-xlmr", help="whose recipe is changed")
    parser.add_argument("--steps", type=int, default=3200, help="of a trial")
    parser.add_argument("--out", type=Path, help="a CSV file to add to")
    options = parser.parse_args()
    if options.study == "trial":
        rows = trial(trial_recipe(options.of, options.names, options.steps))
    else:
        rows = (row for name in options.names for row in order(Path(name)))
    for row in rows:
        table = pd.DataFrame([row]).round(3)
        print(table.to_string(index=False), flush=True)
        if out := options.out:
            table.to_csv(out, mode="a", header=not out.exists(), index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
