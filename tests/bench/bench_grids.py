"""Asking a fine-tuned shipped model (6 x 128) about every pair of languages, and its intervals.

`grids.grid` from a cache that has the fine-tuned model and no cell, against the loop that one
would write first: for each cell, batches of 32 in the order of the file, tokenised as they come and
padded to the longest of the batch or, as run_xnli.py of transformers' examples does by default, to
the longest allowed. All on one thread; storing the cells counts on our side only. The model's head
has seen a step: speed does not depend on it. And the bootstrap of `mixing.summary` from products
against a loop over resamples, of a few of them.
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
from xlx.measures import mixing
from xlx.results import settings
from xlx.results.executors import one_thread
from xlx.subjects import finetuning
from xlx.subjects.jobs import Job, Recipe
from xlx.text import labelled

MODEL = "mini-infoxlm"
PAIRS = Recipe(epochs=1, every=10**9, max_length=128)
LANGUAGES, N_PAIRS = ("en", "de", "ru", "zh", "ar", "tr"), 60
N_TRAIN, BATCH = 16, 32
N_LANGUAGES, N_EXAMPLES, N_RESAMPLES, N_LITERAL = 13, 600, 1000, 20


@torch.inference_mode()
def cell_by_cell(
    model: Any, tokenizer: Any, sets: Mapping[str, Any], padding: bool | str = True
) -> np.ndarray:
    """The class of each pair, a cell at a time: ``(L * L * n,)``."""
    classes = []
    for first, second in product(sets.values(), repeat=2):
        for start in range(0, len(first), BATCH):
            batch = slice(start, start + BATCH)
            rows = tokenizer(
                list(first.first[batch]), list(second.second[batch]),
                padding=padding, truncation=True, max_length=PAIRS.max_length, return_tensors="pt",
            )  # fmt: skip
            classes.append(model(**rows).logits.argmax(dim=-1))
    return torch.cat(classes).numpy()


def asked(folder: str) -> tuple[int, list[float]]:
    """Pairs that are asked; seconds of ours, of cell by cell, of that padded to the longest."""
    loaded, _ = labelled.parallel_examples("NLI", LANGUAGES, "test")
    # not the shortest: their lengths vary as in the whole file
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
        return predicted.size, best_of(
            ours,
            lambda: cell_by_cell(model, tokenizer, sets),
            lambda: cell_by_cell(model, tokenizer, sets, "max_length"),
            rounds=2,
        )


def literal(scores: np.ndarray, groups: np.ndarray, rng: np.random.Generator) -> list[float]:
    """Drop of every language in one resample of the groups, as it reads."""
    members = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    drawn_groups = rng.integers(0, len(members), len(members))
    positions = np.concatenate([members[group] for group in drawn_groups])
    n = len(scores)
    cell = [[scores[i, j, positions].mean() for j in range(n)] for i in range(n)]
    drops = []
    for k in range(n):
        others = [j for j in range(n) if j != k]
        across = np.mean([cell[k][j] for j in others] + [cell[j][k] for j in others])
        drops.append(cell[k][k] - across)
    return drops


def bootstrap() -> tuple[float, float]:
    """Seconds of `mixing.summary` and of as many resamples by the loop."""
    rng = np.random.default_rng(0)
    scores = (rng.random((N_LANGUAGES, N_LANGUAGES, N_EXAMPLES)) < 0.6).astype(float)
    groups = np.arange(N_EXAMPLES) // 3  # hypotheses of a premise
    languages = [f"l{i}" for i in range(N_LANGUAGES)]
    table = mixing.summary(scores, languages, groups, n_resamples=N_RESAMPLES)
    drops = table[(table["setting"] == "drop") & (table["language"] != mixing.OVERALL)]
    estimates = literal(scores, np.zeros(N_EXAMPLES), rng)  # one group: all examples, once
    assert np.allclose(drops["score"], estimates), "the two ways disagree"
    ours, theirs = best_of(
        lambda: mixing.summary(scores, languages, groups, n_resamples=N_RESAMPLES),
        lambda: [literal(scores, groups, rng) for _ in range(N_LITERAL)],
        rounds=2,
    )
    return ours, theirs / N_LITERAL * N_RESAMPLES


def run() -> list[Row]:
    """Rows of the bench's table."""
    with tempfile.TemporaryDirectory() as folder, one_thread():
        n, (ours, loop, longest) = asked(folder)
    cells = f"{len(LANGUAGES) ** 2} cells of {N_PAIRS} pairs"
    summary, resamples = bootstrap()
    what = f"{N_LANGUAGES} languages, {N_EXAMPLES} pairs, {N_RESAMPLES:,} resamples"
    return [
        Row(f"grids: {cells}, float32", n / ours, "pairs a second"),
        Row("grids: faster than cell by cell", loop / ours, "times", "> 2"),
        Row("grids: faster than padded to the longest allowed", longest / ours, "times", "> 2"),
        Row(f"mixing: summary of {what}", summary, "s"),
        Row("mixing: faster than a loop over resamples", resamples / summary, "times"),
    ]
