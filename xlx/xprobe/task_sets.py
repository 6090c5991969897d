"""Sets of probing tasks: the same tasks, of one size, in several languages.

`alike` builds them from trees; `planned` knows them by their hashes, and reads the trees only where
a task itself is needed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any

import pandas as pd

from xlx.core import work
from xlx.text.trees import Treebank, Trees
from xlx.xprobe.probing_rules import PROBING_TASKS, Rules, Tokens, TooFewSentencesError
from xlx.xprobe.probing_tasks import (
    SIZES,
    TASK_PARTS,
    Candidates,
    ProbingTask,
    drawn,
    overlaps,
    sizes_of,
)

#: What two parts of a task may share, as `overlaps` counts it.
_SHARED = ("sentences", "bags", "bases")


def alike(
    trees: Mapping[str, Trees | Sequence[Trees]],
    names: Sequence[str] = PROBING_TASKS,
    *,
    most: int = sum(SIZES),
    least: int = 0,
    proportions: tuple[int, int, int] = SIZES,
    n_test: int = 0,
    max_draws: int = 1,
    seed: int = 0,
    rules: Rules | None = None,
) -> tuple[dict[str, list[ProbingTask]], pd.DataFrame]:
    """Tasks of one size in all languages, so that accuracies compare languages and not sizes.

    The size of a task (all parts together, in the ``proportions`` of train, validation and test) is
    the greatest that every language can have, ``most`` at most. A language that cannot have
    ``least`` does not have the task. A task with fewer test sentences than ``n_test`` is drawn
    again, with the next seeds, until there are so many in all draws or ``max_draws`` are done;
    draws are of one stock and may share sentences. ``trees`` and ``rules`` are as of `build`.

    Returns the tasks by language, the draws of one after another, and a table with a row a task and
    language: ``task``, ``language``, ``usable`` (the largest size that the language could have),
    ``train``, ``validation``, ``test``, ``draws``; zeros where a language has not the task.

    Raises TooFewSentencesError where no language has `least`, and as `build`.
    """
    if not trees:
        raise ValueError("there are no trees: give those of a language or more")
    if min(proportions) < 1:
        raise ValueError(
            f"proportions are {proportions}: each part needs a share, such as (8, 1, 1)"
        )
    tasks: dict[str, list[ProbingTask]] = {language: [] for language in trees}
    rows = []
    for name in names:
        candidates = {code: _candidates(name, own, rules or Rules()) for code, own in trees.items()}
        usable = {code: own.largest if own else 0 for code, own in candidates.items()}
        able = [code for code, total in usable.items() if total >= max(least, 1)]
        if not able:
            raise TooFewSentencesError(
                f"{name}: {max(least, 1)} sentences are needed, and no language has more than "
                f"{max(usable.values())}; lower `least`, change the rules or add text"
            )
        sizes = sizes_of(min(most, *(usable[code] for code in able)), proportions)
        draws = min(max_draws, max(1, -(-n_test // sizes[2])))
        for code, total in usable.items():
            n = draws if code in able else 0
            drawn_tasks = [drawn(name, candidates[code], sizes, seed + i) for i in range(n)]
            tasks[code] += drawn_tasks
            parts = [len(part) for task in drawn_tasks[:1] for part in task.parts().values()]
            rows.append((name, code, total, *(parts or (0, 0, 0)), n))
    return tasks, pd.DataFrame(rows, columns=["task", "language", "usable", *TASK_PARTS, "draws"])


def _candidates(name: str, trees: Trees | Sequence[Trees], rules: Rules) -> Candidates | None:
    """What is usable for a task, or nothing where not even its classes are there."""
    try:
        return Candidates.of(name, trees, rules)
    except TooFewSentencesError:
        return None


def n_distinct(tasks: Iterable[ProbingTask]) -> int:
    """Sentences, by their base, that some of the tasks tests on."""
    return len({base for task in tasks for base in task.test.bases})


# --- tasks that are built when they are needed ----------------------------------------------------


@dataclass(frozen=True)
class _Plan:
    """The arguments of `alike`, with treebanks for trees."""

    treebanks: tuple[tuple[str, tuple[Treebank, ...]], ...]
    names: tuple[str, ...]
    options: tuple[tuple[str, Any], ...]

    def about(self) -> dict[str, Any]:
        banks = {language: [own.about for own in banks] for language, banks in self.treebanks}
        options = dict(self.options)
        rules = asdict(options.pop("rules"))
        return {"trees": banks, "names": self.names, "rules": rules} | options


@dataclass(frozen=True)
class Planned:
    """A task that is known by its hash and built, with all of its plan, when it is needed.

    ``n_distinct``: sentences, by their base, that some draw of the task tests on. ``majority`` and
    ``overlaps`` as of the task. ``examples``: of the first and the last class, the shortest
    sentence of the test part.
    """

    name: str
    language: str
    draw: int
    n_classes: int
    n_distinct: int
    majority: float
    overlaps: dict[str, int] = field(repr=False)
    examples: dict[str, str] = field(repr=False)
    hash: str = field(repr=False)
    plan: _Plan = field(repr=False)

    def text_hash(self) -> str:
        """As of the task."""
        return self.hash

    def built(self) -> ProbingTask:
        """The task. Raises RuntimeError where the trees do not give it any more."""
        tasks, _ = _built(self.plan)
        task = [task for task in tasks[self.language] if task.name == self.name][self.draw]
        if task.text_hash() != self.hash:
            raise RuntimeError(
                f"{self.name} in {self.language} is not the task that was planned: trees or rules "
                "have changed; plan again in a new process"
            )
        return task


def planned(
    treebanks: Mapping[str, Sequence[Treebank]],
    names: Sequence[str] = PROBING_TASKS,
    **options: Any,
) -> tuple[dict[str, list[Planned]], pd.DataFrame]:
    """As `alike`, of treebanks that are read only where the tasks themselves are needed."""
    banks = tuple((language, tuple(own)) for language, own in treebanks.items())
    options = {**alike.__kwdefaults__, **options}
    options["rules"] = options["rules"] or Rules()
    plan = _Plan(banks, tuple(names), tuple(options.items()))
    rows = work.result(TASK_SETS, plan.about(), plan)
    tasks: dict[str, list[Planned]] = {language: [] for language in treebanks}
    for row in rows[rows["hash"] != ""].itertuples():
        examples = {row.first_class: row.first_example, row.last_class: row.last_example}
        shared = {kind: int(getattr(row, kind)) for kind in _SHARED}
        numbers = int(row.draw), int(row.classes), int(row.n_distinct), float(row.majority)
        own = Planned(row.task, row.language, *numbers, shared, examples, row.hash, plan)
        tasks[row.language].append(own)
    table = rows[rows["draw"] == 0].reset_index(drop=True)
    return tasks, table[["task", "language", "usable", *TASK_PARTS, "draws"]]


def _described(plan: _Plan) -> pd.DataFrame:
    """The table of `alike` with a row a draw, and what a reader wants to know of each."""
    tasks, table = _built(plan)
    rows = []
    for row in table.to_dict("records"):
        own = [task for task in tasks[row["language"]] if task.name == row["task"]]
        if not own:
            rows.append(row | {"draw": 0, "hash": ""})
        distinct = n_distinct(own)
        for draw, task in enumerate(own):
            about = {"draw": draw, "hash": task.text_hash(), "classes": len(task.classes)}
            about |= {"n_distinct": distinct, "majority": task.majority}
            for place, label in (("first", 0), ("last", len(task.classes) - 1)):
                about[f"{place}_class"] = task.classes[label]
                about[f"{place}_example"] = " ".join(_shortest(task, label))
            rows.append(row | overlaps(task) | about)
    numbers = dict.fromkeys(("classes", "n_distinct", "majority", *_SHARED), 0)
    texts = dict.fromkeys(("first_class", "first_example", "last_class", "last_example"), "")
    return pd.DataFrame(rows).fillna(numbers | texts)


def _shortest(task: ProbingTask, label: int) -> Tokens:
    """The shortest test sentence with a label, if possible of six tokens that begin with words."""
    own = [task.test.tokens[i] for i in (task.test.labels == label).nonzero()[0]]
    fit = [x for x in own if len(x) > 5 and all(map(str.isalpha, x[:2]))] or own
    return min(fit, key=lambda tokens: (len(tokens), tokens), default=())


@lru_cache(maxsize=4)
def _built(plan: _Plan) -> tuple[dict[str, list[ProbingTask]], pd.DataFrame]:
    trees = {language: [own.trees for own in banks] for language, banks in plan.treebanks}
    return alike(trees, plan.names, **dict(plan.options))


#: The sizes, hashes and examples of a set of tasks; drawn from trees by the seed, so exact.
TASK_SETS = work.Kind("xprobe-tasks", _described, version=1, tolerance=1e-9)
