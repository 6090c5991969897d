"""Grids: a fine-tuned model asked about every pair of languages of a two-part task.

Rajaee and Monz fine-tune on one language and ask about inputs whose parts are in two: premise and
hypothesis, two sentences, context and question. `evaluate` fine-tunes (or finds fine-tuned) models
and has one `Grid` for each; `xlx.measures.mixing` measures it.

    job = Job("mini-xlmr", train, {"validation": validation}, Recipe(epochs=10))
    grid = evaluate([job], {"en": english, "de": german})[0]
    mixing.summary(grid.scores["accuracy"], grid.languages, grid.groups)

`ask` has the grid of a model that somebody fine-tuned already, as it is.

The inputs of a row of cells are batched together by length; every cell is a result by itself, and
cells with the same text (of a model that sees one part only) are computed once.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.sparse import csgraph

from xlx.measures import answers
from xlx.results import checks, ledger, work
from xlx.results.settings import current
from xlx.subjects import finetuning, identity, jobs, predicting
from xlx.subjects.finetuning import Headed
from xlx.subjects.jobs import Job, Recipe
from xlx.text.examples import Examples, aligned, crossed
from xlx.text.questions import Questions

#: What the parts of a task are called, in the order of the input's (Tables 1 to 3).
PARTS: dict[str, tuple[str, str]] = {
    "NLI": ("premise", "hypothesis"),
    "PI": ("sentence 1", "sentence 2"),
    "QA": ("context", "question"),
}
#: The scores of an answer: ours (`reading_scores`) and by the letter of two published scripts.
MEASURES: tuple[str, ...] = ("F1", "EM", "F1, SQuAD", "EM, SQuAD", "F1, MLQA", "EM, MLQA")
Sets = Mapping[str, Examples] | Mapping[str, Questions]


class GridError(ValueError):
    """A grid that cannot be; says which language or cell, and what to do."""


@dataclass(frozen=True)
class Grid:
    """Answers of one model to all pairs of languages.

    Attributes
    ----------
    languages : tuple of str
        Of both parts: rows are the first part (premise, sentence 1, context), columns the second.
    scores : dict
        Name of a measure → float ``(L, L, n)`` in [0, 1]: "accuracy", or `MEASURES`.
    groups : np.ndarray
        int64 ``(n,)``: examples that share a premise or a context are resampled together.
    predictions : np.ndarray, optional
        ``(L, L, n)``, classes; of questions ``(L, L, n, 2)``, places in the context.
    n_cut : np.ndarray, optional
        ``(L, L)``: how many pairs of a cell were cut at the maximum length; of questions, which are
        not cut, how many have a context that is read in several windows.
    each : dict
        The scores by seed, ``(S, L, L, n)``; made from ``scores`` where it is not given.
    logits : np.ndarray, optional
        float16 ``(L, L, n, classes)``; of questions ``(L, L, n)``, the score of the answer.
    """

    model: str
    languages: tuple[str, ...]
    scores: dict[str, np.ndarray]
    groups: np.ndarray
    predictions: np.ndarray | None = None
    n_cut: np.ndarray | None = None
    each: dict[str, np.ndarray] = field(default_factory=dict)
    logits: np.ndarray | None = None

    def __post_init__(self) -> None:
        if not self.each:
            single = {name: scores[None] for name, scores in self.scores.items()}
            object.__setattr__(self, "each", single)

    def __repr__(self) -> str:
        return f"Grid({self.model}: {' '.join(self.languages)}, {len(self.groups)} examples a cell)"


def groups_of(asked: Examples | Questions) -> np.ndarray:
    """Which examples hang together, int64 ``(n,)``: those with the same first text or context.

    With pairs that are one pair in both orders, so are those of both first texts.
    """
    if isinstance(asked, Questions):
        return asked.paragraphs
    _, group = np.unique(asked.first, return_inverse=True)
    of = dict(zip(asked.first, group.tolist(), strict=True))
    pairs = set(zip(asked.first, asked.second or (), strict=False))
    turned = [(of[a], of[b]) for a, b in pairs if a != b and (b, a) in pairs]
    links = np.array(turned, dtype=np.int64).reshape(-1, 2)
    graph = sparse.coo_matrix((np.ones(len(links)), links.T), shape=(len(of), len(of)))
    return csgraph.connected_components(graph)[1][group].astype(np.int64) if turned else group


def reading_scores(cell: Questions, said: Sequence[str]) -> np.ndarray:
    """F1 and exact match of each answer, ``(2, n)``, by the words of the context's language."""
    pairs = list(zip(said, cell.answers, strict=True))
    measures = (answers.f1, answers.exact_match)
    return np.array(
        [[measure(*pair, cell.context_language) for pair in pairs] for measure in measures]
    )


def _all_scores(cell: Questions, places: np.ndarray) -> np.ndarray:
    """`MEASURES` of the answers at places ``(n, 2)`` in the contexts, ``(6, n)``."""
    said = [text[start:end] for text, (start, end) in zip(cell.contexts, places, strict=True)]
    literal = [
        (*answers.squad(*pair), *answers.mlqa(*pair, cell.context_language))
        for pair in zip(said, cell.answers, strict=True)
    ]
    return np.vstack([reading_scores(cell, said), np.array(literal).T])


def averaged(grids: Sequence[Grid]) -> Grid:
    """The mean of the scores over seeds, and each of them; GridError where the examples differ."""
    first = grids[0]
    for grid in grids[1:]:
        same = (grid.model, grid.languages) == (first.model, first.languages)
        if not same or not np.array_equal(grid.groups, first.groups):
            raise GridError(f"{grid!r} is not a grid of the same model and examples as {first!r}")
    each = {name: np.concatenate([grid.each[name] for grid in grids]) for name in first.scores}
    scores = {name: x.mean(axis=0) for name, x in each.items()}
    return Grid(first.model, first.languages, scores, first.groups, None, first.n_cut, each)


def measured(
    grids: Iterable[Grid], measure: Callable[..., pd.DataFrame], score: str = "accuracy",
    **options: Any,
) -> pd.DataFrame:  # fmt: skip
    """A table of `xlx.measures.mixing` for each grid, one below the other, with its ``model``.

    ``measure`` is `mixing.cells`, `summary` or another that takes scores, ``languages`` and
    ``groups``, and is given those of each seed; ``options`` go to it.
    """
    tables = [
        measure(grid.each[score], languages=grid.languages, groups=grid.groups, **options).assign(
            model=grid.model
        )
        for grid in grids
    ]
    return pd.concat(tables, ignore_index=True)


def evaluate(jobs: Sequence[Job], sets: Sets) -> list[Grid]:
    """Fine-tune every model and ask its last checkpoint about every pair of languages.

    ``jobs`` say what is fine-tuned, on what and how (`finetuning.finetune`); a recipe is also that
    of the asking (length, windows, precision). ``sets`` are language → parallel examples (or
    questions), of two languages or more; single sentences are the second part, and the language of
    the first changes nothing. Nothing is fine-tuned where every cell was asked before.

    GridError for fewer than two languages, sets without examples or of another task than a job's;
    TextError for sets that are not parallel, with the language and the place; the other errors are
    those of `finetuning.finetune`, and of `inputs.windows` for a question that leaves no room.
    """
    return evaluate_each([(jobs, sets)])[0]


def evaluate_each(tasks: Sequence[tuple[Sequence[Job], Sets]]) -> list[list[Grid]]:
    """`evaluate` of several tasks, each its jobs and its sets, whose models go side by side."""
    tasks = [(checks.several(jobs, "jobs", GridError), sets) for jobs, sets in tasks]
    asked: list[_Asked] = []
    for asking, sets in tasks:
        if not isinstance(sets, Mapping) or not sets:
            raise GridError("the sets to ask are due by language, in a dictionary of two or more")
        for job in asking:
            _check_kind(job, next(iter(sets.values())))
            job.check()
        cells, places = _cells(sets)
        asked += [_Asked(job, sets, cells, places) for job in asking]
    abouts = [about for grid in asked for about in grid.abouts()]
    owners = [(number, name) for number, grid in enumerate(asked) for name in grid.cells]

    def calls(missing: list[int]) -> Iterator[work.Call]:
        for number, positions in groupby(missing, lambda position: owners[position][0]):
            of_name = {owners[position][1]: position for position in positions}
            grid = asked[number]
            rows = grid.rows(set(of_name))
            cells = [[grid.cells[name] for name in row] for row in rows]
            yield [of_name[name] for row in rows for name in row], (grid.job, cells)

    values = iter(work.results(CELL, abouts, calls, what="asking"))
    grids = iter([_grid(grid, dict(zip(grid.cells, values, strict=False))) for grid in asked])
    return [list(islice(grids, len(asking))) for asking, _ in tasks]


def ask(
    name: str,
    sets: Sets,
    classes: Mapping[str | int, str] | None = None,
    *,
    max_length: int | None = None,
    stride: int = 128,
    longest_answer: int = 30,
) -> Grid:
    """Ask a model that is fine-tuned already about every pair of languages; nothing is trained.

    ``name`` is one for `models.load` of a model with a head: a classifier of pairs or sentences,
    or one that finds answers, for ``sets`` of questions; ``sets`` as in `evaluate`. ``classes``:
    the model's labels (``id2label`` in its config.json, or their numbers) → the classes of the
    sets; None: those of the same name. ``max_length`` tokens of an input, None: what the model
    takes; ``stride`` and ``longest_answer`` as in `finetuning.Recipe`. Precision as the settings
    name. What was asked before is found without loading the model.

    `classifiers.ClassesError` for labels that are not the classes of the sets, one to one;
    ValueError as `loading.headed_model`, for a model without such a head; GridError and TextError
    as `evaluate`.
    """
    if not isinstance(sets, Mapping) or not sets:
        raise GridError("the sets to ask are due by language, in a dictionary of two or more")
    gold = next(iter(sets.values()))
    classes_of_sets = None if isinstance(gold, Questions) else gold.classes
    recipe = Recipe(
        max_length=max_length, stride=stride, longest_answer=longest_answer, dtype=current().dtype
    )
    headed = Headed(os.fspath(name), recipe, classes_of_sets, classes)
    cells, places = _cells(sets)
    asked = _Asked(headed, sets, cells, places)

    def calls(missing: list[int]) -> Iterator[work.Call]:
        names = [list(cells)[position] for position in missing]
        rows = asked.rows(set(names))
        order = [missing[names.index(cell)] for row in rows for cell in row]
        yield order, (headed, [[cells[cell] for cell in row] for row in rows])

    values = work.results(ASKED, asked.abouts(), calls, what=f"asking {name}")
    return _grid(asked, dict(zip(cells, values, strict=True)))


def _check_kind(job: Job, gold: Examples | Questions) -> None:
    alike = type(gold) is type(job.train)
    if alike and isinstance(gold, Examples):
        alike = gold.classes == job.train.classes
        alike &= (gold.second is None) == (job.train.second is None)
    if not alike:
        raise GridError(
            f"{job.name} is not trained on what the grid asks: both are questions, pairs or "
            "sentences, with the same classes"
        )


def _cells(sets: Sets) -> tuple[dict[str, Any], np.ndarray]:
    """Each distinct cell by its text's hash, and which stands where: str ``(L, L)``."""
    gold = next(iter(sets.values()))
    if len(sets) < 2 or not len(gold):
        raise GridError(
            f"a grid needs examples in two languages or more, and {len(gold)} are of "
            f"{', '.join(sets)}"
        )
    aligned(sets)
    single = isinstance(gold, Examples) and gold.second is None
    cells, places = {}, np.empty((len(sets), len(sets)), dtype=object)
    for i, first in enumerate(sets.values()):
        for j, second in enumerate(sets.values()):
            cell = second if single else crossed(first, second)
            # answers are not part of what is asked, and so not of what is stored
            places[i, j] = name = cell.text_hash()
            cells.setdefault(name, cell)
    return cells, places


@dataclass(frozen=True)
class _Asked:
    """A job, or a model as it is, and the distinct cells that it is asked about: `_cells`."""

    job: Job | Headed
    sets: Sets
    cells: dict[str, Any]
    places: np.ndarray

    def abouts(self) -> list[dict[str, Any]]:
        """What decides the answers of each cell: what decides the weights, and its text."""
        if isinstance(self.job, Headed):
            return [{"asked": self.job.about, "cell": name} for name in self.cells]
        learnt = jobs.learning(self.job)
        return [{"learnt": learnt, "cell": name} for name in self.cells]

    def rows(self, left: set[str]) -> list[list[str]]:
        """The cells that are left to ask by the row of the grid in which they come first."""
        rows = []
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
    yield from _said(finetuning.tuned(job), rows)


def _said(
    tuned: predicting.Tuned, rows: Sequence[Sequence[Any]], order: np.ndarray | None = None
) -> Iterator[dict[str, np.ndarray]]:
    """What a model answers, cell by cell; ``order``: the places of its labels in our classes."""
    for row in rows:
        with predicting.quickly(tuned.recipe):
            laid = [tuned.laid_out(cell) for cell in row]
            found = finetuning.answers(tuned, laid, order)
        ends = np.cumsum([len(cell) for cell in row])[:-1]
        parts = (np.split(array, ends) for array in found)
        for cell, read, predicted, logits in zip(row, laid, *parts, strict=True):
            yield {
                "predicted": predicted,
                "logits": logits,
                "n_cut": np.array([read.n_cut]),
                "score": np.array([predicting.score(cell, predicted)]),
            }


def _apart(stored: ledger.Value, computed: ledger.Value) -> float:
    """By how much the scores of two cells differ; inf where they are not of the same inputs."""
    alike = stored["predicted"].shape == computed["predicted"].shape
    if not alike or not np.array_equal(stored["n_cut"], computed["n_cut"]):
        return np.inf
    return float(np.abs(stored["score"] - computed["score"]).max())


#: A cell of a grid; its tolerance is that of what was fine-tuned.
CELL = work.Kind(
    "grids", _answered, version=1, tolerance=0.1, difference=_apart, side_by_side=True,
    shared_seconds=60.0,  # the fine-tuning
)  # fmt: skip


def _asked_headed(headed: Headed, rows: Sequence[Sequence[Any]]) -> Iterator[dict[str, np.ndarray]]:
    """As `_answered`, of a model as it is."""
    order = headed.places()
    yield from _said(headed.load(), rows, order)


#: As `CELL`; without fine-tuning two processors differ by near ties alone.
ASKED = work.Kind("grids-asked", _asked_headed, version=1, tolerance=0.02, difference=_apart)


def _grid(asked: _Asked, answers: Mapping[str, Mapping[str, np.ndarray]]) -> Grid:
    gold, places = next(iter(asked.sets.values())), asked.places
    predictions = np.array([[answers[name]["predicted"] for name in row] for row in places])
    if isinstance(gold, Questions):
        by_name = {
            name: _all_scores(asked.cells[name], answer["predicted"])
            for name, answer in answers.items()
        }
        scores = {
            measure: np.array([[by_name[name][k] for name in row] for row in places])
            for k, measure in enumerate(MEASURES)
        }
    else:
        scores = {"accuracy": (predictions == gold.labels).astype(np.float64)}
    n_cut = np.array([[answers[name]["n_cut"][0] for name in row] for row in places])
    logits = np.array([[answers[name]["logits"] for name in row] for row in places])
    model = identity.title(asked.job.model)
    return Grid(
        model, tuple(asked.sets), scores, groups_of(gold), predictions, n_cut, logits=logits
    )
