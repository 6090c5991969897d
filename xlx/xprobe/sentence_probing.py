"""Sentence encoders before X-Probe's tasks: what can be read off the vector of a sentence.

An encoder here is any `xlx.xprobe.subjects.Subject`. Each distinct sentence is encoded once for all
tasks, and the probes of all encoders and languages train together (`xlx.models.probes`), with one
hidden layer of 150 sigmoid units (section 5.3, Table 2).

An accuracy stands beside that of the commonest label and that of a control task (Hewitt and Liang
2019): the same vectors, with a label drawn for each *first word*, the same wherever a sentence
starts with it, and dealt out so that each comes about equally often. (One for each word suits tasks
that label words; one for each sentence would be chance, as no sentence is in two parts of a task.)
Such a label can be learnt by heart from vectors that hold the first word. Selectivity is accuracy
less control accuracy: what is read off a vector beyond what the probe can look up.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch.nn.utils.rnn import pad_sequence

from xlx.core import checks, statistics, work
from xlx.core.executors import one_thread
from xlx.models import probes
from xlx.xprobe.encoder_recipes import Inferred, Mapped, trained
from xlx.xprobe.probing_tasks import ProbingTask
from xlx.xprobe.subjects import Encode, Subject
from xlx.xprobe.task_sets import Planned, n_distinct
from xlx.xprobe.word_spaces import load_lookups

#: Units of the probe's hidden layer, and what they apply (Table 2).
HIDDEN, ACTIVATION = 150, "sigmoid"

#: What names a cell of the tables: an encoder, how it came about, a language, a task.
CELL_KEYS = ("encoder", "condition", "language", "task")
#: Encoders whose probes train at once, in one call.
TOGETHER = 6
#: A task, or its plan.
AnyTask = ProbingTask | Planned


def probe(
    subjects: Sequence[Subject],
    tasks: Mapping[str, Sequence[AnyTask]],
    *,
    seeds: Sequence[int] = (0, 1, 2),
    order: int = 0,
    control: bool = True,
    **options: Any,
) -> pd.DataFrame:
    """Accuracy of every encoder on every task of its language.

    What is known is not computed again (`xlx.core.work`), so that a run that was stopped goes on
    where it was, another encoder costs only itself, and none is trained for what the ledger has.

    ``tasks`` has, by language (as the subjects name it), its tasks. A task may be there several
    times, drawn with other seeds: small ones are measured better so, as more of their sentences are
    tested on. ``control`` adds the control task, at twice the cost; ``order`` also draws its
    labels. ``seeds``, ``order`` and ``options`` are fields of `probes.Fitting`.

    Returns a row per subject, task, draw of it and seed: `CELL_KEYS`, ``draw`` (from 0), ``seed``,
    ``n_train``, ``n_test``, ``n_distinct`` (sentences that some draw tests on, by their base),
    ``classes``, ``accuracy``, ``majority`` and, with ``control``, ``control_accuracy`` and
    ``selectivity``; accuracies in [0, 1].

    Raises ValueError for a subject whose language has no tasks; two subjects of one name, or with
    the same ``about`` in one language; vectors that are no finite numbers, or too few of them. Also
    as `probes.fit`.
    """
    subjects = checks.several(subjects, "subjects", once=True)
    _check(subjects, tasks, options)
    fitting = {"hidden": HIDDEN, "activation": ACTIVATION, "seeds": list(seeds), "order": order}
    fitting |= options
    hashes = {language: [task.text_hash() for task in own] for language, own in tasks.items()}
    cells = [(subject, i) for subject in subjects for i in range(len(tasks[subject.language]))]
    abouts = [
        {
            "encoder": subject.about,
            "task": hashes[subject.language][i],
            "control": control,
            "probe": fitting,
        }
        for subject, i in cells
    ]

    def calls(missing: list[int]) -> Iterator[work.Call]:
        by_subject: dict[int, list[int]] = {}
        for position in missing:
            by_subject.setdefault(id(cells[position][0]), []).append(position)
        _prepare([cells[positions[0]][0] for positions in by_subject.values()])
        # Encoders of a language together, as they read the same tasks and words.
        groups = sorted(by_subject.values(), key=lambda own: cells[own[0]][0].language)
        for start in range(0, len(groups), TOGETHER):
            together = groups[start : start + TOGETHER]
            encoders = []
            for positions in together:
                subject = cells[positions[0]][0]
                own = [tasks[subject.language][cells[x][1]].built() for x in positions]
                encoders.append((subject.ready(own), own))
            yield [x for positions in together for x in positions], (encoders, control, fitting)

    tables = work.results(CELLS, abouts, calls, what="probes")
    return _joined(cells, tables, tasks)


def _joined(
    cells: Sequence[tuple[Subject, int]],
    tables: Sequence[pd.DataFrame],
    tasks: Mapping[str, Sequence[AnyTask]],
) -> pd.DataFrame:
    """The tables of cells one below the other, each with what names it."""
    rows = []
    for (subject, i), table in zip(cells, tables, strict=True):
        own = tasks[subject.language]
        named = {"encoder": subject.encoder, "condition": subject.condition}
        named |= {"language": subject.language, "task": own[i].name}
        draw = [task.name for task in own[:i]].count(own[i].name)
        same = [task for task in own if task.name == own[i].name]
        tested = own[i].n_distinct if isinstance(own[i], Planned) else n_distinct(same)
        rows.append(table.assign(**named, draw=draw, n_distinct=tested))
    joined = pd.concat(rows, ignore_index=True)
    first = [*CELL_KEYS, "draw", "seed", "n_train", "n_test", "n_distinct", "classes"]
    return joined[[*first, *(column for column in joined if column not in first)]]


def _check(
    subjects: Sequence[Subject], tasks: Mapping[str, Sequence[AnyTask]], options: Mapping
) -> None:
    """Raise the errors of `probe` that its arguments tell."""
    if not isinstance(tasks, Mapping):
        raise ValueError("the tasks are due by language, in a dictionary")
    if unknown := sorted(set(options) - set(probes.Fitting.__dataclass_fields__)):
        known = "see probes.Fitting for those there are"
        raise ValueError(f"there is no option {unknown[0]!r}: {known}")
    if lost := sorted({subject.language for subject in subjects} - set(tasks)):
        raise ValueError(
            f"there are no tasks in {lost[0]}, but {', '.join(sorted(tasks)) or 'in none'}"
        )
    names: set[tuple[str, ...]] = set()
    abouts: dict[tuple[str, str], str] = {}
    for subject in subjects:
        name = subject.encoder, subject.condition, subject.language
        if name in names:
            raise ValueError(f"two encoders are called {', '.join(name)}")
        names.add(name)
        key = subject.language, CELLS.ask({"encoder": subject.about}).identity
        called = f"{subject.encoder}, {subject.condition}"
        if abouts.setdefault(key, called) != called:
            raise ValueError(
                f"{abouts[key]} and {called} have the same `about` in {subject.language}, so that "
                "one would get the results of the other: say in each what makes its vectors "
                "(`of_function`)"
            )


def _prepare(subjects: Sequence[Subject]) -> None:
    """Train the encoders and make the words that are needed, side by side."""
    recipes = [subject.recipe for subject in subjects]
    trained([recipe for recipe in recipes if isinstance(recipe, Inferred | Mapped)])
    load_lookups([subject.lookup for subject in subjects if subject.lookup is not None])


def _probed(
    encoders: Sequence[tuple[Encode, Sequence[ProbingTask]]],
    control: bool,
    options: Mapping[str, Any],
) -> list[pd.DataFrame]:
    """A table, with a row a seed, for each encoder and each of its tasks."""
    cells = [
        (task, states)
        for encode, tasks in encoders
        for task, states in zip(tasks, _states(encode, tasks), strict=True)
    ]
    groups: dict[tuple[int, int], list[int]] = {}
    for place, (task, states) in enumerate(cells):
        shape = states["train"].shape[1], len(task.classes)
        groups.setdefault(shape, []).append(place)
    tables: dict[int, pd.DataFrame] = {}
    for places in groups.values():
        stack = [cells[place] for place in places]
        tables |= dict(zip(places, _scores(stack, control, options), strict=True))
    return [tables[place] for place in range(len(cells))]


def _states(encode: Encode, tasks: Sequence[ProbingTask]) -> list[dict[str, np.ndarray]]:
    """The vectors of the parts of some tasks; sentences that occur again are encoded once."""
    parts = [part for task in tasks for part in task.parts().values()]
    sentences = list(dict.fromkeys(tokens for part in parts for tokens in part.tokens))
    place = {tokens: row for row, tokens in enumerate(sentences)}
    with one_thread():
        vectors = encode(sentences)
    if len(vectors) != len(sentences):
        raise ValueError(f"{len(sentences)} sentences gave {len(vectors)} vectors")
    return [
        {name: vectors[[place[x] for x in part.tokens]] for name, part in task.parts().items()}
        for task in tasks
    ]


def _scores(
    stack: Sequence[tuple[ProbingTask, Mapping[str, np.ndarray]]],
    control: bool,
    options: Mapping[str, Any],
) -> list[pd.DataFrame]:
    """Probes of some cells at once, which have one width and one number of classes."""
    tasks, states = zip(*stack, strict=True)
    parts, n_classes = list(tasks[0].parts()), len(tasks[0].classes)

    def stacked(arrays: Sequence[Mapping[str, np.ndarray]], fill: float) -> list[torch.Tensor]:
        rows = ([torch.from_numpy(own[name]) for own in arrays] for name in parts)
        return [pad_sequence(own, batch_first=True, padding_value=fill) for own in rows]

    def evaluated(labels: Sequence[Mapping[str, np.ndarray]]) -> pd.DataFrame:
        splits = map(probes.Split, stacked(states, 0), stacked(labels, -1))
        return probes.evaluate_probes(*splits, n_classes, **options)

    with one_thread():
        labels = [{x: part.labels for x, part in task.parts().items()} for task in tasks]
        table = evaluated(labels).drop(columns=["epoch", "validation_loss"])
        if control:
            dealt = evaluated([dealt_labels(task, options["order"]) for task in tasks])
            table["control_accuracy"] = dealt["accuracy"]
            table["selectivity"] = table["accuracy"] - dealt["accuracy"]
    table = table.assign(classes=n_classes)
    return [
        table[table["group"] == row].drop(columns="group").reset_index(drop=True)
        for row in range(len(stack))
    ]


def dealt_labels(task: ProbingTask, seed: int) -> dict[str, np.ndarray]:
    """The labels of the control task, by part: one for each first word, dealt out evenly.

    Words are taken from the most frequent to the least, of equals in random order; each is given
    the label that has come least often until then.
    """
    firsts = {name: [tokens[0] for tokens in part.tokens] for name, part in task.parts().items()}
    counts = Counter(word for own in firsts.values() for word in own)
    words = np.random.default_rng(seed).permutation(sorted(counts))
    dealt, of = np.zeros(len(task.classes), dtype=np.int64), {}
    for word in sorted(words.tolist(), key=lambda word: -counts[word]):
        of[word] = int(dealt.argmin())
        dealt[of[word]] += counts[word]
    return {name: np.array([of[word] for word in own]) for name, own in firsts.items()}


def _cells_apart(stored: pd.DataFrame, computed: pd.DataFrame) -> float:
    """How far two cells' accuracies are apart, in standard errors of such a difference.

    Those of encoders trained on two processors were 2.8 apart at most in 2,024 cells: as far as
    other test sentences would make them.
    """
    fixed = ["seed", "n_train", "n_test", "majority", "classes"]
    if set(stored) != set(computed) or not stored[fixed].equals(computed[fixed]):
        return np.inf
    shares = [name for name in ("accuracy", "control_accuracy") if name in stored]
    apart = (stored[shares] - computed[shares]).abs().max(axis=1)
    return float((apart / np.sqrt(0.5 / stored["n_test"])).max())


CELLS = work.Kind(
    "xprobe-cells", _probed, version=1, tolerance=4.0, difference=_cells_apart, side_by_side=True,
    shared_seconds=120.0,  # word vectors, the encoder and its mapping
)  # fmt: skip


def cell_means(table: pd.DataFrame) -> pd.DataFrame:
    """The table of `probe` with a row a cell: means over draws and seeds, and an interval.

    The interval of the accuracy (``low``, ``high``; Wilson, 95 %) is over sentences, as many as
    there are different ones in the test parts (``n_distinct``): what other sentences would give,
    and not another encoder.
    """
    numbers = [column for column in table if column not in (*CELL_KEYS, "draw", "seed")]
    means = table.groupby(list(CELL_KEYS), sort=False)[numbers].mean().reset_index()
    right, n = means["accuracy"] * means["n_distinct"], means["n_distinct"]
    bounds = statistics.share_interval(right.to_numpy(), n.to_numpy())
    place = means.columns.get_loc("accuracy") + 1
    for name, bound in zip(("high", "low"), bounds[::-1], strict=True):
        means.insert(place, name, bound)
    whole = ("n_train", "n_test", "n_distinct", "classes")
    return means.astype(dict.fromkeys(whole, int))
