"""Asking a fine-tuned shipped model (6 x 128) about every pair of languages, and its intervals.

`grids.evaluate` from a cache that has the fine-tuned model and no cell, against the loop that one
would write first: for each cell, batches of 32 in the order of the file, tokenised as they come and
padded to the longest of the batch or, as run_xnli.py and run_qa.py of transformers' examples do by
default, to the longest allowed. All on one thread; storing the cells and scoring the answers count
on our side only. As the notebooks ask, in bfloat16 and two processes, is compared with the same
loop in float32. The model's head has seen a step: speed does not depend on it.

The bootstrap of `mixing.summary` from products against a loop over resamples, of a few of them.
"""

import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers

import xlx
from tests.bench import show
from tests.bench.bench_finetuning import best_of
from xlx.core.executors import one_thread
from xlx.mixing import grids, within_across
from xlx.models import batching, finetuning, inputs, loading
from xlx.models.finetuning import Job, Recipe
from xlx.text import labelled, questions

MODEL = "mini-infoxlm"
PAIRS = Recipe(epochs=1, every=10**9, max_length=128)
READING = Recipe(epochs=1, every=10**9, max_length=256, stride=64)
PAIR_LANGUAGES, N_PAIRS = ("en", "de", "ru", "zh", "ar", "tr"), 60
READING_LANGUAGES, N_QUESTIONS = ("en", "de", "ru", "ar"), 20
N_TRAIN, BATCH = 16, 32
#: What run_xnli.py and run_qa.py of transformers' examples do unless told otherwise.
SCRIPT = "max_length"
N_LANGUAGES, N_EXAMPLES, N_RESAMPLES, N_LITERAL = 13, 600, 1000, 20


def drawn(n: int, size: int) -> list[int]:
    """Positions of examples, not the shortest: their lengths vary as in the whole file."""
    return sorted(np.random.default_rng(1).choice(size, size=n, replace=False).tolist())


@dataclass(frozen=True)
class Asking:
    """A model that is fine-tuned into a cache, and what it is asked."""

    job: Job
    sets: Mapping[str, Any]
    cache: Path

    def ours(self, dtype: str = "float32", n_jobs: int = 1) -> np.ndarray:
        """Predictions of all cells; no cell is in the cache before."""
        shutil.rmtree(self.cache / "results", ignore_errors=True)
        job = replace(self.job, recipe=replace(self.job.recipe, dtype=dtype))
        with self.settings(workers=n_jobs):
            return grids.evaluate([job], self.sets)[0].predictions

    def settings(self, **more: Any) -> xlx.settings:
        """That of this bench alone."""
        return xlx.settings(cache=self.cache, ledger=self.cache / "ledger", device="cpu", **more)

    def model(self) -> tuple[Any, Any]:
        """The fine-tuned model and its tokenizer as one would load them."""
        with self.settings():
            folder = finetuning.kept_weights(self.job)
        kind = (
            transformers.AutoModelForQuestionAnswering
            if isinstance(self.job.train, questions.Questions)
            else transformers.AutoModelForSequenceClassification
        )
        with loading.quiet():
            model = kind.from_pretrained(folder).eval()
        return model, transformers.AutoTokenizer.from_pretrained(folder)


@torch.inference_mode()
def classes_by_cell(
    model: Any, tokenizer: Any, sets: Mapping[str, Any], limit: int, padding: bool | str = True
) -> np.ndarray:
    """The class of each pair, a cell at a time: ``(L * L * n,)``."""
    found = []
    for first, second in product(sets.values(), repeat=2):
        for start in range(0, len(first), BATCH):
            batch = slice(start, start + BATCH)
            rows = tokenizer(
                list(first.first[batch]), list(second.second[batch]),
                padding=padding, truncation=True, max_length=limit, return_tensors="pt",
            )  # fmt: skip
            found.append(model(**rows).logits.argmax(dim=-1))
    return torch.cat(found).numpy()


@torch.inference_mode()
def answers_by_cell(
    model: Any, tokenizer: Any, sets: Mapping[str, Any], recipe: Recipe, padding: bool | str = True
) -> list[str]:
    """The answer to each question, a cell at a time."""
    found = []
    for context, question in product(sets.values(), repeat=2):
        for start in range(0, len(context), BATCH):
            batch = slice(start, start + BATCH)
            found += _answers(
                model, tokenizer, list(question.questions[batch]), list(context.contexts[batch]),
                recipe, padding,
            )  # fmt: skip
    return found


def _answers(
    model: Any,
    tokenizer: Any,
    asked: list[str],
    contexts: list[str],
    recipe: Recipe,
    padding: bool | str,
) -> list[str]:
    """The best span over the windows of each question."""
    rows = tokenizer(
        asked, contexts, padding=padding, truncation="only_second", max_length=recipe.max_length,
        stride=recipe.stride, return_overflowing_tokens=True, return_offsets_mapping=True,
        return_tensors="pt",
    )  # fmt: skip
    places, owner = rows.pop("offset_mapping"), rows.pop("overflow_to_sample_mapping").tolist()
    inside = torch.tensor([[part == 1 for part in rows.sequence_ids(i)] for i in range(len(owner))])
    output = model(**rows)
    scores, first, last = inputs.best_spans(
        output.start_logits, output.end_logits, inside, recipe.longest_answer
    )
    best: dict[int, int] = {}
    for window, example in enumerate(owner):
        if example not in best or scores[window] > scores[best[example]]:
            best[example] = window
    return [
        contexts[i][places[k, first[k], 0] : places[k, last[k], 1]]
        for i, k in ((i, best[i]) for i in range(len(contexts)))
    ]


def pairs(folder: str) -> dict[str, float]:
    """Seconds of a grid of pairs, and padded tokens of both ways over tokens."""
    loaded, _ = labelled.parallel_examples("NLI", PAIR_LANGUAGES, "test")
    chosen = drawn(N_PAIRS, len(loaded["en"]))
    sets = {code: part.at(chosen) for code, part in loaded.items()}
    train = labelled.parallel_examples("NLI", ["en"], "train", N_TRAIN)[0]["en"]
    asking = Asking(Job(MODEL, train, {"en": sets["en"]}, PAIRS), sets, Path(folder))
    ours = asking.ours().ravel()
    model, tokenizer = asking.model()
    theirs = classes_by_cell(model, tokenizer, sets, PAIRS.max_length)
    assert (ours != theirs).mean() < 0.01, "the two ways disagree"
    asking.ours("bfloat16", 2)  # fine-tunes in bfloat16, and starts the processes
    one, several, loop, script = best_of(
        asking.ours,
        lambda: asking.ours("bfloat16", 2),
        lambda: classes_by_cell(model, tokenizer, sets, PAIRS.max_length),
        lambda: classes_by_cell(model, tokenizer, sets, PAIRS.max_length, SCRIPT),
    )
    lengths = np.array(
        [
            [min(len(ids), PAIRS.max_length) for ids in tokenizer(*texts)["input_ids"]]
            for a, b in product(sets.values(), repeat=2)
            for texts in [(list(a.first), list(b.second))]
        ]
    )
    padded = sum(
        part.max(axis=1).sum() * part.shape[1]
        for part in np.array_split(lengths, range(BATCH, N_PAIRS, BATCH), axis=1)
    )
    together = sum(
        len(batch) * row[batch].max()
        for row in lengths.reshape(len(sets), -1)
        for batch in batching.batches(row)
    )
    return {
        "examples": ours.size / one,
        "loop": loop / one,
        "script": script / one,
        "several": loop / several,
        "padded": padded / together,
    }


def reading(folder: str) -> dict[str, float]:
    """Seconds of a grid of questions."""
    loaded, _ = questions.parallel_questions("xquad", READING_LANGUAGES)
    chosen = drawn(N_QUESTIONS, len(loaded["en"]))
    sets = {code: one.at(chosen) for code, one in loaded.items()}
    train = questions.parallel_questions("tydiqa", ["en"], "train", N_TRAIN)[0]["en"]
    asking = Asking(Job(MODEL, train, {"en": sets["en"]}, READING), sets, Path(folder))
    found = asking.ours()
    model, tokenizer = asking.model()
    cells = list(product(range(len(sets)), repeat=2))
    said = [
        text[slice(*place)]
        for i, j in cells
        for text, place in zip(list(sets.values())[i].contexts, found[i, j], strict=True)
    ]
    theirs = answers_by_cell(model, tokenizer, sets, READING)
    differ = np.mean([one != other.strip() for one, other in zip(said, theirs, strict=True)])
    assert differ < 0.01, "the two ways disagree"
    asking.ours("bfloat16", 2)
    one, several, loop, script = best_of(
        asking.ours,
        lambda: asking.ours("bfloat16", 2),
        lambda: answers_by_cell(model, tokenizer, sets, READING),
        lambda: answers_by_cell(model, tokenizer, sets, READING, SCRIPT),
    )
    return {
        "examples": len(said) / one,
        "loop": loop / one,
        "script": script / one,
        "several": loop / several,
    }


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
    table = within_across.summary(scores, languages, groups, n_resamples=N_RESAMPLES)
    drops = table[(table["setting"] == "drop") & (table["language"] != within_across.OVERALL)]
    estimates = literal(scores, np.zeros(N_EXAMPLES), rng)  # one group: all examples, once
    assert np.allclose(drops["score"], estimates), "the two ways disagree"
    ours, theirs = best_of(
        lambda: within_across.summary(scores, languages, groups, n_resamples=N_RESAMPLES),
        lambda: [literal(scores, groups, rng) for _ in range(N_LITERAL)],
    )
    return ours, theirs / N_LITERAL * N_RESAMPLES


def run() -> list[dict[str, object]]:
    """Rows of the bench table: name, value, unit, aim."""
    with (
        tempfile.TemporaryDirectory() as first,
        tempfile.TemporaryDirectory() as second,
        one_thread(),  # both ways
    ):
        asked, read = pairs(first), reading(second)
    ours, theirs = bootstrap()
    rows: list[tuple[str, float, str, str | None]] = []
    for what, found, languages, n in (
        ("pairs", asked, PAIR_LANGUAGES, N_PAIRS),
        ("questions", read, READING_LANGUAGES, N_QUESTIONS),
    ):
        cells, said = f"{len(languages) ** 2} cells of {n} {what}", f"grids: {what}, faster than"
        rows += [
            (f"grids: {cells}, float32", round(found["examples"]), f"{what} a second", None),
            (f"{said} cell by cell, one thread", round(found["loop"], 2), "times", "> 2"),
            (f"{said} if padded to the longest allowed", round(found["script"], 2), "times", "> 2"),
            (
                f"grids: {what}, bfloat16 in two processes, faster than float32 cell by cell",
                round(found["several"], 2), "times", None,
            ),
        ]  # fmt: skip
    bootstrapped = f"{N_LANGUAGES} languages, {N_EXAMPLES} pairs, {N_RESAMPLES:,} resamples"
    rows += [
        (
            "grids: pairs, tokens of cell by cell over ours",
            round(asked["padded"], 2), "times", None,
        ),
        (f"mixing: summary of {bootstrapped}", round(ours, 2), "s", None),
        ("mixing: faster than a loop over resamples", round(theirs / ours), "times", None),
    ]  # fmt: skip
    return [dict(zip(("name", "value", "unit", "aim"), row, strict=True)) for row in rows]


if __name__ == "__main__":
    show(run())
