"""X-Probe's tasks asked of all layers of any subject, in each language and across languages.

A subject (`scoring.Subject`: a model, its untrained twin, a checkpoint, a bag of its subwords, any
function) reads every sentence once. A probe of each layer is trained on a task in one language and
read in all. Beside its accuracy stand that on a control task (Hewitt and Liang 2019) and the length
of the online code of its labels (Voita and Titov 2020).

    tasks = sentence_tasks.parallel_tasks({"en": [load_trees("en"), load_trees("en", "pud")]})
    probe_sentences(["mini-xlmr", BagOfSubwords("mini-xlmr")], tasks)
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy import ndarray
from pandas import DataFrame

from xlx.experiment.scoring import Subject, as_subject
from xlx.measures import probes, statistics
from xlx.measures.sentence_tasks import TASK_PARTS, ProbingTask, TaskPart
from xlx.results import checks, ledger, work
from xlx.subjects.identity import Name
from xlx.text.languages import joined_words

#: Bytes of states that probes are trained on in one go: tasks together train faster than alone.
_MEMORY = 2**27
#: Columns of the table of `probe_sentences`.
_ORDER = (
    *("model", "checkpoint", "task", "draw", "source", "target", "layer", "seed", "classes"),
    *("n_train", "n_test", "accuracy", "control_accuracy", "bits", "selectivity", "compression"),
)


@dataclass(frozen=True)
class ProbedTask:
    """A draw of a task in the language that probes are trained in, and the tests it is read on."""

    task: ProbingTask
    draw: int
    tests: Mapping[str, TaskPart]  # by language, that of training first
    hashes: Sequence[Sequence[str]]  # of the tests: language, and that of its whole task

    @property
    def texts(self) -> dict[str, list[tuple[str, ...]]]:
        """By language the sentences that are read."""
        trained = [tokens for part in self.task.parts().values() for tokens in part.tokens]
        read = {code: [*part.tokens] for code, part in self.tests.items()}
        return read | {self.task.language: trained}


def probed_tasks(
    tasks: Mapping[str, Sequence[ProbingTask]], *, across: bool = False
) -> list[ProbedTask]:
    """The tasks of all languages; ``across``: with tests of others that have the classes."""
    known = {}
    for code, several in tasks.items():
        counts = Counter()
        for task in several:
            known[task.name, counts[task.name], code] = task
            counts[task.name] += 1
    hashes = {key: task.text_hash() for key, task in known.items()}
    cells = []
    for (name, draw, code), task in known.items():
        others = [x for x in tasks if x != code and (name, draw, x) in known] if across else []
        alike = [x for x in others if known[name, draw, x].classes == task.classes]
        tests = {x: known[name, draw, x].test for x in (code, *alike)}
        cells.append(ProbedTask(task, draw, tests, [[x, hashes[name, draw, x]] for x in tests]))
    return sorted(cells, key=lambda cell: len(cell.task.classes))


@checks.typed()
def probe_sentences(
    subjects: Sequence[Subject | Name],
    tasks: Mapping[str, Sequence[ProbingTask]],
    *,
    across: bool = False,
    seeds: Sequence[int] = (0, 1, 2),
    reading: Mapping[str, object] | None = None,
    **options: Any,
) -> DataFrame:
    """Probes of every layer of some subjects on tasks, by language (`parallel_tasks`).

    ``across``: a probe is read in the other languages, too. ``reading`` (``pooling``,
    ``max_length``) is of models that are named; ``seeds`` and ``options`` are fields of
    `probes.Fitting` (linear where ``hidden`` is not given); ``order`` also draws control labels.

    Returns a row per subject, task, draw (from 0), language trained in and read in, layer and seed:
    ``model``, ``checkpoint``, ``task``, ``draw``, ``source``, ``target``, ``layer``, ``seed``,
    ``classes``, ``n_train``, ``n_test``, ``accuracy`` in [0, 1]; where both languages are one also
    ``control_accuracy``, ``selectivity`` (accuracy less that), ``bits`` of the training labels and
    ``compression`` (log2 of the classes a label, over the bits), else NaN. ValueError as
    `states.embed` and `probes.fit`; for no task, or an option that no probe has.
    """
    for name in options:
        checks.one_of(name, probes.Fitting.__dataclass_fields__, "option of a probe")
    several = [as_subject(x, reading) for x in checks.several(subjects, "subjects")]
    cells = checks.several(probed_tasks(tasks, across=across), "tasks")
    fitting = {"hidden": None, "order": 0, "seeds": [*seeds]} | options
    abouts = [
        subject.vectors | {"trained": cell.task.language, "tests": cell.hashes, "probe": fitting}
        for subject in several
        for cell in cells
    ]

    def calls(missing: list[int]) -> Iterator[work.Call]:
        for number, positions in groupby(missing, lambda position: position // len(cells)):
            positions = list(positions)
            chosen = [cells[position % len(cells)] for position in positions]
            yield positions, (several[number], chosen, fitting)

    absent = [i for i in range(len(abouts)) if not several[i // len(cells)].here]
    values = work.results(
        SENTENCE_PROBES, abouts, calls, what="sentence probes", uncomputable=absent
    )
    columns = [
        _columns(value, cells[i % len(cells)], fitting, several[i // len(cells)].label)
        for i, value in enumerate(values)
        if value is not None
    ]
    return DataFrame({x: np.concatenate([part[x] for part in columns]) for x in _ORDER})


def over_languages(
    cells: DataFrame,
    by: Sequence[str] = ("subject", "task", "layer"),
    bounds: tuple[float, float] = (0, 1),
) -> DataFrame:
    """Means of cells, of a ``source`` and a ``target``, with `statistics.language_interval`.

    The interval is cut at the ``bounds`` of the scores; ``n`` cells.
    """
    known = ["accuracy", "chance", "control_accuracy", "compression"]
    groups = cells.groupby(list(by), sort=False)
    means, number = groups[[x for x in known if x in cells]].mean(), groups.ngroup()
    codes, _ = statistics.language_codes(cells, ("source", "target"))
    values = cells["accuracy"].to_numpy()
    chosen = [number == i for i in range(len(means))]
    ends = [statistics.language_interval(values[x], codes[x])[1:] for x in chosen]
    low, high = np.clip(np.reshape(ends, (-1, 2)), *bounds).T
    return means.assign(low=low, high=high, n=groups.size()).reset_index()


def _columns(
    value: ledger.Value, cell: ProbedTask, fitting: Mapping[str, Any], label: tuple[str, int]
) -> dict[str, ndarray]:
    """A value as the columns of a table."""
    shape, n_test = value["right"].shape, value["n_test"]
    target, layer, seed = np.indices(shape).reshape(3, -1)
    n_train, classes = len(cell.task.train), len(cell.task.classes)
    same = (*label, cell.task.name, cell.draw, cell.task.language, classes, n_train)
    names = ("model", "checkpoint", "task", "draw", "source", "classes", "n_train")
    columns = {x: np.full(target.size, y) for x, y in zip(names, same, strict=True)}
    columns |= {
        "target": np.array([*cell.tests])[target],
        "layer": layer,
        "seed": np.array(fitting["seeds"])[seed],
        "n_test": n_test[target],
        "accuracy": value["right"].ravel() / n_test[target],
    }
    for name in ("control_accuracy", "bits"):
        beside = np.full(shape, np.nan)
        beside[0] = value[name]
        columns[name] = beside.ravel()
    columns["selectivity"] = columns["accuracy"] - columns["control_accuracy"]
    columns["compression"] = n_train * np.log2(classes) / columns["bits"]
    return columns


def sentence_vectors(
    subject: Subject, cells: Sequence[ProbedTask]
) -> tuple[dict[str, Any], Callable[[str, TaskPart], list[int]]]:
    """By language the vectors of all sentences of tasks, read once, and a part's rows of them."""
    places = {}
    for code, texts in (item for cell in cells for item in cell.texts.items()):
        numbers = places.setdefault(code, {})
        for tokens in texts:
            numbers.setdefault(tokens, len(numbers))
    states = {}
    for code, numbers in places.items():
        states[code] = subject.sentences([joined_words(x, code) for x in numbers], code)
        if (n := states[code][0].shape[0]) != len(numbers):
            raise ValueError(f"{len(numbers)} sentences gave {n} vectors")
    return states, lambda code, part: [places[code][tokens] for tokens in part.tokens]


def _sentence_probes(
    subject: Subject, cells: Sequence[ProbedTask], fitting: Mapping[str, Any]
) -> Iterator[dict[str, ndarray]]:
    """A value for each task: ``right``, test sentences ``(n_targets, n_layers, n_seeds)``, of
    ``n_test`` ``(n_targets,)``; ``control_accuracy`` and ``bits``, ``(n_layers, n_seeds)``."""
    states, rows = sentence_vectors(subject, cells)

    def vectors(code: str, part: TaskPart) -> ndarray:
        return states[code][:, rows(code, part)]

    for portion in _portions(cells, states):
        yield from _probed(portion, vectors, fitting)


def _portions(
    cells: Sequence[ProbedTask], states: Mapping[str, ndarray]
) -> Iterator[list[ProbedTask]]:
    """Tasks of as many classes that stand together, as many at once as fit into `_MEMORY`."""
    portion = []
    used = 0
    for cell in cells:
        n_layers, _, dim = states[cell.task.language].shape
        need = 4 * n_layers * dim * len(cell.task.train)
        other = portion and len(portion[0].task.classes) != len(cell.task.classes)
        if portion and (other or used + need > _MEMORY):
            yield portion
            portion, used = [], 0
        portion.append(cell)
        used += need
    yield portion


def _probed(
    cells: Sequence[ProbedTask],
    vectors: Callable[[str, TaskPart], ndarray],
    fitting: Mapping[str, Any],
) -> Iterator[dict[str, ndarray]]:
    tasks, n = [cell.task for cell in cells], len(cells[0].task.classes)
    dealt = [dealt_labels(task, fitting["order"]) for task in tasks]
    splits, control = [], []
    for name in TASK_PARTS:
        parts = [getattr(task, name) for task in tasks]
        inputs = [vectors(x.language, part) for x, part in zip(tasks, parts, strict=True)]
        splits.append(probes.stacked(inputs, [part.labels for part in parts]))
        control.append(probes.stacked(inputs, [labels[name] for labels in dealt]))
    fitted = probes.fit(*splits[:2], n, **fitting)
    learned = probes.fit(*control[:2], n, **fitting).predict(control[2].states)
    on_control = probes.accuracy(learned, control[2].labels).astype(np.float32)
    bits = probes.code_length(*splits[:2], n, **fitting)[0].astype(np.float32)
    n_layers = len(bits) // len(cells)
    for i, cell in enumerate(cells):
        groups = range(i * n_layers, (i + 1) * n_layers)
        right = [
            (fitted.predict(vectors(code, part), groups) == part.labels).sum(-1)
            for code, part in cell.tests.items()
        ]
        yield {
            "right": np.array(right, np.int32),
            "n_test": np.array([len(part) for part in cell.tests.values()]),
            "control_accuracy": on_control[groups],
            "bits": bits[groups],
        }


def dealt_labels(task: ProbingTask, seed: int) -> dict[str, ndarray]:
    """Labels of the control task by part: `probes.control_labels` of first words, dealt evenly."""
    firsts = [[tokens[0] for tokens in part.tokens] for part in task.parts().values()]
    labels = probes.control_labels(firsts, None, len(task.classes), seed)
    return dict(zip(TASK_PARTS, labels, strict=True))


def _probes_apart(stored: ledger.Value, computed: ledger.Value) -> float:
    """The largest difference of mean accuracies, or a third of the share that bits differ by."""
    if not np.array_equal(stored["n_test"], computed["n_test"]):
        return np.inf
    both = stored, computed
    n = stored["n_test"][:, None]
    right, control = (
        [x[name].mean(-1, dtype=float) for x in both] for name in ("right", "control_accuracy")
    )
    bits = np.abs(stored["bits"].mean(-1) / computed["bits"].mean(-1) - 1)
    apart = [np.abs((right[0] - right[1]) / n), np.abs(control[0] - control[1]), bits / 3]
    return max(float(x.max()) for x in apart)


SENTENCE_PROBES = work.Kind(
    "sentence-probes",
    _sentence_probes,
    version=1,
    tolerance=0.03,
    difference=_probes_apart,
    shared_seconds=30.0,
)
