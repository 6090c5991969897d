"""Grids: a fine-tuned model asked about every pair of languages of a two-part task.

Rajaee and Monz fine-tune on one language and ask about inputs whose parts are in two: premise and
hypothesis, two sentences, context and question. `evaluate` fine-tunes (or finds fine-tuned) models
and has one `Grid` for each; `xlx.mixing` measures it.

    sets = {code: load_labelled("NLI", code, "test") for code in ("en", "de", "ru")}
    job = Job("mini-xlmr", train, {"validation": validation}, Recipe(epochs=10))
    grid = evaluate([job], sets)[0]
    mixing.summary(grid.scores["accuracy"], grid.languages, grid.groups)

The inputs of a row of cells are batched together by length; every cell is a result by itself, and
cells with the same text (of a model that sees one part only) are computed once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

import numpy as np
import pandas as pd

from xlx.core import checks, work
from xlx.mixing.grid import MEASURES, Grid, GridError, all_scores, groups_of
from xlx.models import finetuning
from xlx.models.finetuning import Job
from xlx.text.examples import Examples
from xlx.text.parallel_sets import aligned, crossed
from xlx.text.questions import Questions

#: What the parts of a task are called, in the order of the input's (Tables 1 to 3).
PARTS: dict[str, tuple[str, str]] = {
    "NLI": ("premise", "hypothesis"),
    "PI": ("sentence 1", "sentence 2"),
    "QA": ("context", "question"),
}

Sets = Mapping[str, Examples] | Mapping[str, Questions]


def averaged(grids: Sequence[Grid]) -> Grid:
    """The mean of the scores over seeds, and each of them.

    GridError where models, languages or examples differ.
    """
    if not grids:
        raise GridError("there is no grid to average")
    first = grids[0]
    for other in grids[1:]:
        alike = (
            other.model == first.model
            and other.languages == first.languages
            and np.array_equal(other.labels, first.labels)
            and np.array_equal(other.groups, first.groups)
        )
        if not alike:
            raise GridError(f"{other!r} is not a grid of the same model and examples as {first!r}")
    each = {name: np.concatenate([grid.each[name] for grid in grids]) for name in first.scores}
    scores = {name: own.mean(axis=0) for name, own in each.items()}
    return Grid(
        first.model, first.train, -1, first.languages, np.empty(0), np.empty(0), scores,
        first.labels, first.groups, first.n_cut, each,
    )  # fmt: skip


def measured(
    grids: Iterable[Grid],
    measure: Callable[..., pd.DataFrame],
    score: str = "accuracy",
    **options: Any,
) -> pd.DataFrame:
    """A table of `xlx.mixing` for each grid, one below the other, with its ``model``.

    ``measure`` is `mixing.cells`, `summary` or another that takes scores, ``languages`` and
    ``groups``, and is given those of each seed; ``options`` go to it.
    """
    return pd.concat(
        [
            measure(
                grid.each[score], languages=grid.languages, groups=grid.groups, **options
            ).assign(model=grid.model)
            for grid in grids
        ],
        ignore_index=True,
    )


def evaluate(jobs: Sequence[Job], sets: Sets, *, part: int = 1) -> list[Grid]:
    """Fine-tune every model and ask its last checkpoint about every pair of languages.

    What was asked before is found without the model: nothing is fine-tuned where no cell is
    missing.

    Parameters
    ----------
    jobs : sequence of Job
        What is fine-tuned, on what, how; see `finetuning.finetune`. Its recipe is also that of the
        asking (length, windows, precision).
    sets : mapping
        Language → parallel examples (or questions) to ask, aligned; two languages or more.
    part : {0, 1}
        Which part the sentences are, where the sets are of single sentences (hypothesis-only: 1).
        The other part's language then changes nothing.

    Raises
    ------
    GridError
        Fewer than two languages, or none of a set's examples.
    TextError
        Sets that are not parallel, with the language and the place.
    FinetuningError, ValueError
        As `finetuning.finetune`; as `xlx.models.inputs.windows` for a question that leaves no room.
    """
    return evaluate_each([(jobs, sets)], part=part)[0]


def evaluate_each(
    tasks: Sequence[tuple[Sequence[Job], Sets]], *, part: int = 1
) -> list[list[Grid]]:
    """`evaluate` of several tasks, each its jobs and its sets, whose models go side by side."""
    asked: list[_Asked] = []
    if part not in (0, 1):
        raise GridError(f"there is no part {part!r}: 0 is the first, 1 the second")
    tasks = [(checks.several(jobs, "jobs", GridError), sets) for jobs, sets in tasks]
    for jobs, sets in tasks:
        if not isinstance(sets, Mapping) or not sets:
            raise GridError("the sets to ask are due by language, in a dictionary of two or more")
        for job in jobs:
            _check_kind(job, sets)
        cells, places = _cells(sets, part)
        for job in jobs:
            job.check()
            asked.append(_Asked(job, sets, cells, places))
    abouts = [about for one in asked for about in one.abouts()]
    owners = [(number, name) for number, one in enumerate(asked) for name in one.cells]

    def calls(missing: list[int]) -> Iterator[work.Call]:
        for number, positions in groupby(missing, lambda position: owners[position][0]):
            of_name = {owners[position][1]: position for position in positions}
            one = asked[number]
            rows = one.rows(set(of_name))
            cells = [[one.cells[name] for name in row] for row in rows]
            yield [of_name[name] for row in rows for name in row], (one.job, cells)

    values = iter(work.results(CELL, abouts, calls, what="asking"))
    grids = iter([_grid(one, dict(zip(one.cells, values, strict=False))) for one in asked])
    return [list(islice(grids, len(jobs))) for jobs, _ in tasks]


# --- cells ----------------------------------------------------------------------------------------


def _check_kind(job: Job, sets: Sets) -> None:
    one = next(iter(sets.values()), None)
    if type(one) is not type(job.train):
        raise GridError(f"{job.name} is not trained on what the grid asks: examples or questions")
    if isinstance(one, Examples):
        if one.classes != job.train.classes:
            raise GridError(f"{one.name} and {job.train.name} have different classes")
        if (one.second is None) != (job.train.second is None):
            raise GridError(f"{one.name} and {job.train.name} are not both of pairs or sentences")


def _cells(sets: Sets, part: int) -> tuple[dict[str, Any], np.ndarray]:
    """Each distinct cell by its text's hash, and which stands where: str ``(L, L)``."""
    if len(sets) < 2:
        raise GridError(
            f"a grid needs two languages or more, and the sets are of {', '.join(sets) or 'none'}"
        )
    one = next(iter(sets.values()))
    reading = isinstance(one, Questions)
    aligned(sets)
    if not len(one):
        raise GridError(f"{one.name} has no examples: every cell would be empty")
    found, places = {}, np.empty((len(sets), len(sets)), dtype=object)
    for i, first in enumerate(sets.values()):
        for j, second in enumerate(sets.values()):
            if reading:
                cell = crossed(first, second)
            elif one.second is None:
                cell = (first, second)[part]
            else:
                cell = crossed(first, second)
            # answers are not part of what is asked, and so not of what is stored
            places[i, j] = name = cell.text_hash()
            found.setdefault(name, cell)
    return found, places


@dataclass(frozen=True)
class _Asked:
    """A job, and the distinct cells that it is asked about: `_cells`."""

    job: Job
    sets: Sets
    cells: dict[str, Any]
    places: np.ndarray

    def abouts(self) -> list[dict[str, Any]]:
        """What decides the answers of each cell: what decides the weights, and its text."""
        learnt = finetuning.learning(self.job)
        return [{"learnt": learnt, "cell": name} for name in self.cells]

    def rows(self, wanted: set[str]) -> list[list[str]]:
        """The wanted cells by the row of the grid in which they come first."""
        rows, left = [], set(wanted)
        for row in self.places:
            rows.append([name for name in dict.fromkeys(row) if name in left])
            left -= set(rows[-1])
        return [row for row in rows if row]


# --- asking ---------------------------------------------------------------------------------------


def _answered(job: Job, rows: Sequence[Sequence[Any]]) -> Iterator[dict[str, np.ndarray]]:
    """The cut point: the answers to the cells of each row, cell by cell.

    ``predicted`` and ``logits`` as of the last checkpoint in `finetuning.Run`, ``n_cut`` (1,) as in
    `Grid`, ``score`` (1,) of `finetuning.score`. The inputs of a row are batched together.
    """
    tuned = finetuning.tuned(job)
    for row in rows:
        with finetuning.quickly(job.recipe):
            laid = [tuned.laid_out(cell) for cell in row]
            found = tuned.predict(laid)
        ends = np.cumsum([len(cell) for cell in row])[:-1]
        parts = (np.split(array, ends) for array in found)
        for cell, read, predicted, logits in zip(row, laid, *parts, strict=True):
            yield {
                "predicted": predicted,
                "logits": logits,
                "n_cut": np.array([read.n_cut]),
                "score": np.array([finetuning.score(cell, predicted)]),
            }


def _apart(stored: work.Value, computed: work.Value) -> float:
    """By how much the scores of two cells differ; inf where they are not of the same inputs."""
    alike = stored["predicted"].shape == computed["predicted"].shape
    if not alike or not np.array_equal(stored["n_cut"], computed["n_cut"]):
        return np.inf
    return float(np.abs(stored["score"] - computed["score"]).max())


#: A cell of a grid; its tolerance is that of what was fine-tuned.
CELL = work.Kind(
    "grids", _answered, version=1, tolerance=0.15, difference=_apart, side_by_side=True,
    shared_seconds=60.0,  # the fine-tuning
)  # fmt: skip


# --- what is answered -----------------------------------------------------------------------------


def _grid(asked: _Asked, answers: Mapping[str, Mapping[str, np.ndarray]]) -> Grid:
    job, cells, places = asked.job, asked.cells, asked.places
    one = next(iter(asked.sets.values()))
    predictions = np.array([[answers[name]["predicted"] for name in row] for row in places])
    if isinstance(one, Questions):
        labels = np.empty(0, dtype=np.int64)
        by_name = {
            name: all_scores(cells[name], _said(cells[name], found["predicted"]))
            for name, found in answers.items()
        }
        scores = {
            measure: np.array([[by_name[name][k] for name in row] for row in places])
            for k, measure in enumerate(MEASURES)
        }
    else:
        labels = one.labels
        scores = {"accuracy": (predictions == labels).astype(np.float64)}
    return Grid(
        model=job.model,
        train=job.train.name,
        seed=job.seed,
        languages=tuple(asked.sets),
        predictions=predictions,
        logits=np.array([[answers[name]["logits"] for name in row] for row in places]),
        scores=scores,
        labels=labels,
        groups=groups_of(one),
        n_cut=np.array([[answers[name]["n_cut"][0] for name in row] for row in places]),
    )


def _said(cell: Questions, found: np.ndarray) -> list[str]:
    """The answers at places ``(n, 2)`` in the contexts."""
    return [text[start:end] for text, (start, end) in zip(cell.contexts, found, strict=True)]
