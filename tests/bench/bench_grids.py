"""Asking a fine-tuned shipped model (6 x 128) about every pair of languages.

Against the loop that one would write first: cell by cell, batches of 32 in the order of the file,
padded to the longest of the batch. All on one thread; storing the cells counts on our side only.
"""

import shutil
import tempfile
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tests.bench import Row, best_of
from xlx.experiment import grids
from xlx.results import settings
from xlx.results.executors import one_thread
from xlx.subjects import finetuning
from xlx.subjects.jobs import Job, Recipe
from xlx.text import labelled

MODEL = "mini-infoxlm"
PAIRS = Recipe(epochs=1, every=10**9, max_length=128)
LANGUAGES, N_PAIRS = ("en", "de", "ru", "zh", "ar", "tr"), 60
N_TRAIN, BATCH = 16, 32


@torch.inference_mode()
def cell_by_cell(model: Any, tokenizer: Any, sets: Mapping[str, Any]) -> np.ndarray:
    """The class of each pair, a cell at a time: ``(L * L * n,)``."""
    classes = []
    for first, second in product(sets.values(), repeat=2):
        for start in range(0, len(first), BATCH):
            batch = slice(start, start + BATCH)
            rows = tokenizer(
                list(first.first[batch]),
                list(second.second[batch]),
                padding=True,
                truncation=True,
                max_length=PAIRS.max_length,
                return_tensors="pt",
            )
            classes.append(model(**rows).logits.argmax(dim=-1))
    return torch.cat(classes).numpy()


def asked(folder: str) -> tuple[int, list[float]]:
    """Pairs that are asked; seconds of ours, of cell by cell."""
    loaded, _ = labelled.parallel_examples("NLI", LANGUAGES, "test")
    chosen = sorted(np.random.default_rng(1).permutation(len(loaded["en"]))[:N_PAIRS].tolist())
    sets = {code: part.at(chosen) for code, part in loaded.items()}
    train = labelled.parallel_examples("NLI", ["en"], "train", N_TRAIN)[0]["en"]
    job = Job(MODEL, train, {"en": sets["en"]}, PAIRS)
    cache = Path(folder)

    def ours() -> np.ndarray:
        shutil.rmtree(cache / "results", ignore_errors=True)
        return grids.grid([job], sets)[0].predictions.ravel()

    with settings.settings(cache=cache, ledger=cache / "ledger", device="cpu", workers=1):
        predicted = ours()
        tuned = finetuning.tuned(job)
        model, tokenizer = tuned.model.eval(), tuned.tokenizer
        theirs = cell_by_cell(model, tokenizer, sets)
        assert (predicted != theirs).mean() < 0.01, "the two ways disagree"
        return predicted.size, best_of(ours, lambda: cell_by_cell(model, tokenizer, sets), rounds=2)


def run() -> list[Row]:
    """Rows of the bench's table."""
    with tempfile.TemporaryDirectory() as folder, one_thread():
        n, (ours, loop) = asked(folder)
    cells = f"{len(LANGUAGES) ** 2} cells of {N_PAIRS} pairs"
    return [
        Row(f"grids: {cells}, float32", n / ours, "pairs a second"),
        Row("grids: faster than cell by cell", loop / ours, "times", "> 2"),
    ]
