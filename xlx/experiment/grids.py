"""One face for what fine-tuned models answer: `grid(jobs, texts)`.

Without texts a model is asked, at every checkpoint, about the sets of its job: that row is what
IGAP decomposes (`xlx.experiment.transfers`). With texts its last checkpoint is asked about every
pair of languages, one of each part of an input (premise and hypothesis, two sentences, context and
question): that square is what Rajaee and Monz average within and across (`xlx.measures.mixing`).

    job = Job("mini-xlmr", train, {"validation": validation}, Recipe(epochs=10))
    (square,) = grid([job], {"en": english, "de": german})
    mixing.summary(square.scores["accuracy"], square.languages, square.groups)

Inputs of a row of cells are batched together by length; every cell is a result by itself, and cells
with the same text (of a model that sees one part only) are computed once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, product
from typing import Any

import numpy as np
from numpy import ndarray
from scipy.sparse import csgraph

from xlx.measures import answers
from xlx.results import checks, executors, ledger, work
from xlx.results.deferred import deferred
from xlx.subjects import finetuning, identity, predicting
from xlx.subjects.finetuning import Run
from xlx.subjects.jobs import Job, learning
from xlx.subjects.predicting import Headed
from xlx.text.examples import Examples, aligned, crossed
from xlx.text.questions import Questions

sparse = deferred("scipy.sparse")

#: The scores of an answer: ours (`answers`) and by the letter of two published scripts.
MEASURES = ("F1", "EM", "F1, SQuAD", "EM, SQuAD", "F1, MLQA", "EM, MLQA")
Sets = Mapping[str, Examples] | Mapping[str, Questions]


class GridError(ValueError):
    """A grid that cannot be; says which language or cell, and what to do."""


@dataclass(frozen=True)
class Grid:
    """Answers of one model to pairs of languages: ``(L, L, ...)``, first parts × second parts.

    Attributes
    ----------
    languages : tuple of str
        Of the first part (premise, sentence 1, context) and of the second.
    scores : dict
        Name of a measure → float ``(L, L, n)`` in [0, 1]: "accuracy", or `MEASURES`.
    groups : ndarray
        int64 ``(n,)``: examples that share a premise or a context hang together.
    predictions : ndarray, optional
        ``(L, L, n)``, classes; of questions ``(L, L, n, 2)``, places in the context.
    n_cut : ndarray, optional
        ``(L, L)``: how many pairs of a cell were cut at the maximum length; of questions, which are
        not cut, how many have a context that is read in several windows.
    each : dict
        The scores by seed, ``(S, L, L, n)``; made from ``scores`` where it is not given.
    logits : ndarray, optional
        float16 ``(L, L, n, classes)``; of questions ``(L, L, n)``, the score of the answer.
    """

    model: str
    languages: tuple[str, ...]
    scores: dict[str, ndarray]
    groups: ndarray
    predictions: ndarray | None = None
    n_cut: ndarray | None = None
    each: dict[str, ndarray] = field(default_factory=dict)
    logits: ndarray | None = None

    def __post_init__(self) -> None:
        single = {name: scores[None] for name, scores in self.scores.items()}
        object.__setattr__(self, "each", self.each or single)


def groups_of(asked: Examples | Questions) -> ndarray:
    """Which examples hang together, int64 ``(n,)``: those with the same first text or context.

    With pairs that are one pair in both orders, so are those of both first texts.
    """
    if isinstance(asked, Questions):
        return asked.paragraphs
    _, group = np.unique(asked.first, return_inverse=True)
    number = dict(zip(asked.first, group.tolist(), strict=True))
    pairs = set(zip(asked.first, asked.second or (), strict=False))
    turned = [(number[a], number[b]) for a, b in pairs if a != b and (b, a) in pairs]
    links = np.array(turned, int).reshape(-1, 2)
    graph = sparse.coo_matrix((np.ones(len(links)), links.T), shape=(len(number), len(number)))
    return csgraph.connected_components(graph)[1][group].astype(int) if turned else group


@checks.typed(GridError)
def grid(jobs: Sequence[Job | Headed], sets: Sets | None = None) -> list[Grid] | list[Run]:
    """What models answer: a `Grid` each, or without texts the `Run` of each job.

    A `Job` says what is fine-tuned, on what and how, and its recipe is also that of the asking
    (length, windows, precision); a `Headed` was fine-tuned elsewhere and is asked as it is.
    ``sets`` are language → examples or questions, all parallel, two or more, of the first part and
    of the second; single sentences are the second part, and the language of the first changes
    nothing. Nothing is fine-tuned or loaded where every cell was
    asked before.

    GridError for fewer cells, sets without examples or of another task than a job's; TextError for
    sets that are not parallel, with the language and the place; `predicting.ClassesError` for a
    `Headed` whose labels are not the classes of the sets; ValueError as `finetuning.finetune_all`,
    `loading.headed_model`, and `predicting.windows` for a question that leaves no room.
    """
    if sets is None:
        return finetuning.finetune_all(jobs)
    if not sets:
        raise GridError("the sets to ask are due by language, in a dictionary of two or more")
    gold = next(iter(sets.values()))
    for job in jobs:
        if isinstance(job, Job):
            alike = type(gold) is type(job.train)
            if alike and isinstance(gold, Examples):
                alike = gold.classes == job.train.classes
                alike &= (gold.second is None) == (job.train.second is None)
            if not alike:
                raise GridError(
                    f"{job.name} is not trained on what the grid asks: both are questions, pairs "
                    "or sentences, with the same classes"
                )
            job.check()
    cells, places = _cells(sets)
    names, classes = list(cells), None if isinstance(gold, Questions) else gold.classes

    def calls(missing: list[int]) -> Iterator[work.Call]:
        for number, positions in groupby(missing, lambda position: position // len(names)):
            position_of, rows = {names[i % len(names)]: i for i in positions}, []
            for row in places:  # a cell is asked in the row in which it comes first
                left = [name for name in dict.fromkeys(row) if name in position_of]
                rows += [[(position_of.pop(name), cells[name]) for name in left]] if left else []
            # where nothing has to be learnt before, rows go side by side
            apart = isinstance(jobs[number], Headed) and executors.n_workers() > 1
            for part in ([row] for row in rows) if apart else [rows]:
                asked = [[cell for _, cell in row] for row in part]
                yield [at for row in part for at, _ in row], (jobs[number], classes, asked)

    abouts = [about for job in jobs for about in _abouts(job, classes, names)]
    values = work.results(CELL, abouts, calls, what="asking")
    grids = []
    for number, job in enumerate(jobs):
        of_job = values[number * len(names) :]
        by_name = {
            name: value | _scored(cells[name], value["predicted"])
            for name, value in zip(names, of_job, strict=False)
        }
        square = {
            part: np.array([[by_name[name][part] for name in row] for row in places])
            for part in by_name[names[0]]
        }
        scores = {x: square[x] for x in ("accuracy", *MEASURES) if x in square}
        answers_of, n_cut = square["predicted"], square["n_cut"][..., 0]
        shared = identity.title(job.model), tuple(sets), scores, groups_of(gold)
        grids.append(Grid(*shared, answers_of, n_cut, logits=square["logits"]))
    return grids


def answered(
    model: str,
    sets: Mapping[str, Questions],
    say: Callable[[Questions], Sequence[str]],
    *,
    reads: bool = True,
) -> Grid:
    """The grid of what answers without a model: ``say`` is asked about every pair of languages.

    If it ``reads`` no question, those of a single language are asked, for all.
    """
    gold = next(iter(aligned(sets).values()))
    scores = np.empty((2, len(sets), len(sets), len(gold)))
    asked_in = [*sets.values()][: None if reads else 1]
    for (i, context), (j, asked) in product(enumerate(sets.values()), enumerate(asked_in)):
        cell = crossed(context, asked)
        pairs = zip(say(cell), cell.answers, strict=True)
        scores[:, i, j:] = np.transpose([answers.squad(*pair) for pair in pairs])[:, None]
    measures = dict(zip(("F1, SQuAD", "EM, SQuAD"), scores, strict=True))
    return Grid(model, tuple(sets), measures, groups_of(gold))


@checks.typed(GridError)
def without_reading(sets: Mapping[str, Questions], span: int = 3, seed: int = 1) -> list[Grid]:
    """Baselines: the first eight words, ``span`` random ones, and those nearest to the question's.

    The first two see no question; random words are at the same place in each language. The third
    is `answers.overlap_answers`.
    """
    n = len(sets[checks.several(sets, "languages", GridError)[0]])
    places = np.random.default_rng(seed).uniform(size=n)
    blind = {"first eight words": (8, np.zeros(n)), f"{span} random words": (span, places)}
    grids = [
        answered(name, sets, partial(answers.placed_answers, length=x, where=y), reads=False)
        for name, (x, y) in blind.items()
    ]
    return [*grids, answered("nearest span", sets, partial(answers.overlap_answers, length=span))]


def unasked(head: Headed, sets: Sets) -> int:
    """How many inputs a `grid` of these sets has that are neither in the ledger nor the cache."""
    gold, cells = next(iter(sets.values())), _cells(sets)[0]
    abouts = _abouts(head, None if isinstance(gold, Questions) else gold.classes, cells)
    every = range(len(abouts))
    stored = work.results(CELL, abouts, lambda _: (), uncomputable=every, hold=lambda *_: True)
    return len(gold) * stored.count(None)


def _abouts(
    job: Job | Headed, classes: Sequence[str] | None, cells: Iterable[str]
) -> list[dict[str, Any]]:
    """What decides each cell of a job."""
    about = {"learnt": learning(job)} if isinstance(job, Job) else {"asked": job.about(classes)}
    return [about | {"cell": name} for name in cells]


def _cells(sets: Sets) -> tuple[dict[str, Any], ndarray]:
    """Each distinct cell by its text's hash, and which stands where: str ``(L, L)``."""
    gold = next(iter(aligned(sets).values()))
    if len(sets) < 2 or not len(gold):
        raise GridError(
            f"a grid needs examples in two languages or more, and {len(gold)} are of "
            f"{', '.join(sets)}"
        )
    single = isinstance(gold, Examples) and gold.second is None
    cells, places = {}, np.empty((len(sets),) * 2, object)
    for i, part in enumerate(sets.values()):
        for j, other in enumerate(sets.values()):
            cell = other if single else crossed(part, other)
            # answers are not part of what is asked, and so not of what is stored
            places[i, j] = name = cell.text_hash()
            cells.setdefault(name, cell)
    return cells, places


def _scored(cell: Examples | Questions, predicted: ndarray) -> dict[str, ndarray]:
    """Accuracy of each class, or `MEASURES` of the answers at places ``(n, 2)`` in the contexts."""
    if isinstance(cell, Examples):
        return {"accuracy": (predicted == cell.labels).astype(float)}
    given = [text[start:end] for text, (start, end) in zip(cell.contexts, predicted, strict=True)]
    language = cell.context_language
    scores = [
        (
            answers.f1(*pair, language),
            answers.exact_match(*pair, language),
            *answers.squad(*pair),
            *answers.mlqa(*pair, language),
        )
        for pair in zip(given, cell.answers, strict=True)
    ]
    return dict(zip(MEASURES, np.array(scores).T, strict=True))


def _answered(
    subject: Job | Headed, classes: tuple[str, ...] | None, rows: Sequence[Sequence[Any]]
) -> Iterator[dict[str, ndarray]]:
    """The cut point: the answers to the cells of each row, cell by cell.

    ``predicted`` and ``logits`` as of the last checkpoint in `finetuning.Run`, ``n_cut`` (1,) as in
    `Grid`, ``score`` (1,) of `predicting.score`. The inputs of a row are batched together.
    """
    trained = isinstance(subject, Job)
    tuned = finetuning.tuned(subject) if trained else subject.load(classes)
    for row in rows:
        with predicting.quickly(tuned.recipe):
            laid = [tuned.laid_out(cell) for cell in row]
            predictions = tuned.predict(laid)
        ends = np.cumsum([len(cell) for cell in row])[:-1]
        parts = (np.split(array, ends) for array in predictions)
        for cell, read, predicted, logits in zip(row, laid, *parts, strict=True):
            yield {
                "predicted": predicted,
                "logits": logits,
                "n_cut": np.array([read.n_cut]),
                "score": np.array([predicting.score(cell, predicted)]),
            }


@work.difference_of
def _apart(value: ledger.Value) -> ledger.Value:
    """By how much the scores of two cells differ; inf where they are not of the same inputs."""
    inputs = [*value["predicted"].shape, *value["n_cut"].tolist()]
    return {"inputs": np.array(inputs).astype(str), "score": value["score"]}


#: A cell of a grid; its tolerance is that of what was fine-tuned.
CELL = work.Kind(
    "grids",
    _answered,
    version=1,
    tolerance=0.1,
    difference=_apart,
    side_by_side=True,
    shared_seconds=60.0,  # the fine-tuning
)
