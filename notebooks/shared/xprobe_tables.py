"""What X-Probe reports of probing accuracies (Ravishankar, Øvrelid and Velldal 2019, section 7).

Tables are tidy: ``language`` (a code, or a setting such as "fr-UN"), ``encoder``, ``task`` and
``accuracy`` in [0, 1], a row for each. The same functions serve our results and the printed ones.
Printed accuracies are rounded: what that can do to a ratio or a correlation is part of the result.
``half`` is half a unit of the last place that is printed.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from xlx.experiment.scoring import FunctionSubject
from xlx.experiment.sentence_probes import probed_tasks
from xlx.measures.sentence_tasks import ProbingTask
from xlx.measures.statistics import LEVEL, Correlation, half_width, numbers, share_interval
from xlx.results.deferred import deferred

stats = deferred("scipy.stats")
vectorizers = deferred("sklearn.feature_extraction.text")
linear_model = deferred("sklearn.linear_model")

#: The column names of a cell.
ACCURACY_KEYS = ("language", "encoder", "task")
#: Coefficients that differ by less are equal: what sums of ranks leave in binary.
_SLACK = 1e-9
Numbers = np.ndarray | float


def mean_sd(table: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation of each task over languages and encoders (Table 1).

    A row per task, in the order of the table: ``mean``, ``sd`` (of all cells, as in the
    paper).
    """
    groups = table.groupby("task", sort=False)["accuracy"]
    return pd.DataFrame({"mean": groups.mean(), "sd": groups.std(ddof=0)})


def relative_accuracies(
    table: pd.DataFrame, n: pd.Series | None = None, *, half: float = 0.0
) -> pd.DataFrame:
    """Accuracy of each cell over that of English (Figure 4): 1 is parity.

    A row per cell of another language: ``language``, ``encoder``, ``task``, ``accuracy``,
    ``reference`` (the English accuracy), ``ratio``. A ratio to
    0 is infinite, and 0/0 missing. With ``n`` (test sentences by task and language) also ``gain``
    and ``sign``: 1, 0 or -1, whether a cell is above English by more than rounding and luck.
    """
    english, others = (
        table[(table["language"] == "en") == is_english] for is_english in (True, False)
    )
    reference = english[["encoder", "task", "accuracy"]].rename(columns={"accuracy": "reference"})
    ratios = others[[*ACCURACY_KEYS, "accuracy"]].merge(reference, on=["encoder", "task"])
    accuracy, base = ratios["accuracy"], ratios["reference"]
    if n is not None:
        settings = ratios["language"], ["en"] * len(ratios)
        sizes = (n.loc[list(zip(ratios["task"], codes, strict=True))] for codes in settings)
        sign = beyond(accuracy, base, *(size.to_numpy() for size in sizes), half=half)
        ratios = ratios.assign(gain=accuracy - base, sign=sign)
    return ratios.assign(ratio=accuracy / base)


def rounding_and_luck(
    first: Numbers, other: Numbers, n_one: Numbers, n_other: Numbers, *, half: float = 0.0
) -> np.ndarray:
    """By how much two accuracies may be apart that are alike.

    Luck is that of two independent sets of ``n_one`` and ``n_other`` sentences; rounding moves each
    by ``half`` at most. What another training run would change is not in it.
    """
    variance = first * (1 - first) / n_one + other * (1 - other) / n_other
    return 2 * half + half_width(np.sqrt(variance))


def beyond(
    first: Numbers, other: Numbers, n_one: Numbers, n_other: Numbers, *, half: float = 0.0
) -> np.ndarray:
    """Whether one accuracy is above another by more than `rounding_and_luck`: 1, 0 or -1 below."""
    apart = np.asarray(first, float) - np.asarray(other, float)
    reach = rounding_and_luck(first, other, n_one, n_other, half=half)
    return np.where(np.abs(apart) > reach, np.sign(apart), 0).astype(int)


def above_guessing(table: pd.DataFrame, *, half: float = 0.0) -> pd.DataFrame:
    """Which accuracies are above that of guessing, alone and among all of their task.

    The table also has ``guess`` (what the most frequent class of that very test set is right in, so
    it has no error of its own) and ``n`` (sentences). It comes back with ``above`` (Wilson's
    interval is above ``guess``, even if the accuracy had been rounded up by all of ``half``) and
    ``above_all`` (so it is at Bonferroni's level for the cells of its task).
    """
    guess, n, accuracy = numbers(table, ["guess", "n", "accuracy"]).T
    right = (accuracy - half).clip(min=0) * n
    sizes = table.groupby("task")["task"].transform("size")
    among = [
        share_interval(*counts, 1 - (1 - LEVEL) / size)[0]
        for *counts, size in zip(right, n, sizes, strict=True)
    ]
    return table.assign(above=share_interval(right, n)[0] > guess, above_all=among > guess)


def spearman(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> Correlation:
    """Rank correlation of a few encoders, with all that so few points allow to say.

    The p-value is two-sided: of all n! ways to pair the numbers, the share that is as far from 0.
    This is exact, ties included. It takes encoders for exchangeable, which two variants of one
    architecture are not.

    The interval is Fisher's on the scale of atanh, with the variance (1 + ρ²/2) / (n - 3) of Bonett
    and Wright (2000). At ρ = ±1 it would be a point. So above the largest ρ that an order with a
    fault can have (two neighbours changed: 0.943 of six), the end nearer to 0 is as it is there.

    ValueError for fewer than four points, or more than nine. Where x or y is the same everywhere,
    all is NaN but n.
    """
    n = len(x)
    if not 4 <= n <= 9:
        raise ValueError(f"a correlation with an interval needs four to nine points: there are {n}")
    ranks, others = stats.rankdata(x), stats.rankdata(y)
    if np.ptp(ranks) == 0 or np.ptp(others) == 0:
        return Correlation("spearman", *[math.nan] * 4, n)
    rho = float(_rho(ranks, others[None])[0])
    far = np.abs(_rho(ranks, others[_permutations(n)])) >= abs(rho) - _SLACK
    return Correlation("spearman", rho, *_interval(rho, n), float(far.mean()), n)


@lru_cache(maxsize=2)
def _permutations(n: int) -> np.ndarray:
    """All orders of n things, ``(n!, n)``."""
    return np.array(list(itertools.permutations(range(n))))


def _rho(ranks: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """Correlation of ranks ``(n,)`` with each row of ``(k, n)``."""
    centred, others = ranks - ranks.mean(), orders - orders.mean(axis=1, keepdims=True)
    return (others @ centred) / np.sqrt((centred @ centred) * (others**2).sum(axis=1))


def _interval(rho: float, n: int) -> tuple[float, float]:
    """Ends of the interval that `spearman` describes."""
    quantile = stats.norm.ppf((1 + LEVEL) / 2)
    faulty = 1 - 12 / (n * (n**2 - 1))  # without ties, changing neighbours costs 6 · 2 / (n³ - n)
    ends = []
    for sign in (-1, 1):  # low, high
        centre = float(np.clip(rho, -faulty, faulty)) if sign * rho < 0 else rho  # nearer to 0
        if abs(centre) > 1 - _SLACK:
            ends.append(math.copysign(1.0, rho))
            continue
        error = math.sqrt((1 + centre**2 / 2) / (n - 3))
        ends.append(math.tanh(math.atanh(centre) + sign * quantile * error))
    return ends[0], ends[1]


def rank_correlations(probing: pd.DataFrame, downstream: pd.DataFrame) -> pd.DataFrame:
    """Probing accuracy with that of a downstream task over the encoders (Figure 3).

    ``downstream`` has no column ``task`` (it is XNLI in the paper), and at least the languages and
    encoders of ``probing``. A row per language and task, in the order of ``probing``: ``language``,
    ``task``, ``rho``, ``low``, ``high``, ``p_value``, ``n`` (encoders), as `spearman` gives them.
    ValueError as `spearman`.
    """
    other = downstream.rename(columns={"accuracy": "downstream"})
    both = probing.merge(other, on=list(ACCURACY_KEYS[:2]), validate="many_to_one")
    rows = []
    for (language, task), cells in both.groupby(["language", "task"], sort=False):
        rho = spearman(cells["accuracy"], cells["downstream"])
        interval = rho.value, rho.low, rho.high, rho.p_value, rho.n
        rows.append((language, task, *interval))
    columns = ["language", "task", "rho", "low", "high", "p_value", "n"]
    return pd.DataFrame(rows, columns=columns)


def encoder_distances(table: pd.DataFrame) -> pd.DataFrame:
    """How far apart encoders are: root mean square difference of accuracy over all cells.

    Square, encoder by encoder in the order of the table, 0 on the diagonal (section 8.3: variants
    of an encoder are nearer to each other than to the others). All encoders have the same cells.
    """
    names = list(dict.fromkeys(table["encoder"]))
    cells = table.pivot(index="encoder", columns=["language", "task"], values="accuracy").loc[names]
    apart = cells.to_numpy()[:, None] - cells.to_numpy()[None]
    return pd.DataFrame(np.sqrt((apart**2).mean(axis=-1)), index=names, columns=names)


# --- of `probing.probe` ---------------------------------------------------------------------------

#: What names a cell of the tables: an encoder, how it came about, a language, a task.
CELL_KEYS = ("encoder", "condition", "language", "task")


def cell_means(table: pd.DataFrame) -> pd.DataFrame:
    """The table of `probing.probe` with one row per cell: means over draws and seeds, and interval.

    The interval of the accuracy (``low``, ``high``; Wilson, 95 %) is over the different sentences
    of the test parts (``n_distinct``): what other sentences would give, and not another encoder.
    """
    numbers = [column for column in table if column not in (*CELL_KEYS, "draw", "seed")]
    means = table.groupby(list(CELL_KEYS), sort=False)[numbers].mean().reset_index()
    right, n = means["accuracy"] * means["n_distinct"], means["n_distinct"]
    low, high = share_interval(right.to_numpy(), n.to_numpy())
    return means.assign(low=low, high=high)


# --- of `probe_sentences` -------------------------------------------------------------------------

#: What names a cell: a subject, a task, the language trained in and read in, a layer.
CELL = ["subject", "task", "source", "target", "layer"]


def named_subjects(table: pd.DataFrame) -> pd.DataFrame:
    """A table of `probe_sentences` with ``subject``: the model, "before training" at step 0."""
    step = table["checkpoint"].where(table.groupby("model")["checkpoint"].transform("max") > 0, 1)
    known = table["model"].where(step > 0, table["model"] + ", untrained")
    return table.assign(subject=known.str.replace("@untrained", ", untrained"))


def cell_table(table: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds and draws, with Wilson's 95 % interval over the test sentences of all draws.

    ``table`` as of `named_subjects`. One row per cell (`CELL`): ``accuracy``, ``low``, ``high``,
    ``n_test``, ``chance`` (classes come equally often), ``control_accuracy``, ``compression``.
    """
    right = table.assign(right=table["accuracy"] * table["n_test"], chance=1 / table["classes"])
    by_draw = right.groupby([*CELL, "draw"], sort=False)[
        ["right", "n_test", "chance", "control_accuracy", "compression"]
    ].mean()
    groups = by_draw.groupby(CELL, sort=False)
    cells = groups[["right", "n_test"]].sum()
    cells = cells.join(groups[["chance", "control_accuracy", "compression"]].mean()).reset_index()
    bounds = share_interval(cells["right"].to_numpy(), cells["n_test"].to_numpy())
    return cells.assign(accuracy=cells["right"] / cells["n_test"], low=bounds[0], high=bounds[1])


# --- readers without an encoder -------------------------------------------------------------------

Tokens = Sequence[str]


def _endings(tokens: Tokens) -> list[str]:
    return [*tokens, *(f"-{token[-n:]}" for token in tokens for n in (2, 3))]


def _neighbours(tokens: Tokens) -> list[str]:
    return [*tokens, *map(" ".join, itertools.pairwise(("^", *tokens, "$")))]


def _characters(tokens: Tokens) -> list[str]:
    text = f" {' '.join(tokens)} "
    return [text[i : i + n] for n in range(2, 6) for i in range(len(text) - n + 1)]


#: Readers without an encoder: what they see of a sentence's tokens.
READERS: dict[str, Callable[[Tokens], list[str]]] = {
    "words": list,
    "words and endings": _endings,
    "characters, 2 to 5": _characters,
    "words and neighbours": _neighbours,
    "first and last two words": lambda tokens: [f"{i} {tokens[i]}" for i in (0, 1, -2, -1)],
    "number of tokens": lambda tokens: [str(len(tokens))],
}


class Reader(FunctionSubject):
    """One of `READERS` as a subject: which features a sentence has, sparse, not folded."""

    def sentences(self, texts: Sequence[str], language: str) -> list[Any]:
        """One layer, ``(n, 2^20)``; the places of features are those of their hashes."""
        options = {"n_features": 2**20, "binary": True, "alternate_sign": False, "norm": None}
        count = vectorizers.HashingVectorizer(analyzer=READERS[self.name], **options)
        return [count.transform([text.split(" ") for text in texts])]


def simple_readers(
    tasks: Mapping[str, Sequence[ProbingTask]], names: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """What `READERS` read of tasks at home: the table of `probe_sentences`, of one layer.

    ``names``: task → its readers. A ridge regression on which features a sentence has, not folded.
    """
    rows = []
    for cell in probed_tasks(tasks):
        train, test = cell.task.train, cell.task.test
        for name in names.get(cell.task.name, ()):
            count = vectorizers.CountVectorizer(analyzer=READERS[name], binary=True, dtype=float)
            fit = linear_model.RidgeClassifier(10, solver="sparse_cg", tol=1e-3)
            fit.fit(count.fit_transform(train.tokens), train.labels)
            right = (fit.predict(count.transform(test.tokens)) == test.labels).mean()
            about = {"subject": name, "task": cell.task.name, "draw": cell.draw, "accuracy": right}
            rows.append(about | {"source": cell.task.language, "n_test": len(test)})
    constant = {"layer": 0, "seed": 0, "control_accuracy": np.nan, "compression": np.nan}
    table = pd.DataFrame(rows).assign(**constant)
    n_classes = {task.name: len(task.classes) for several in tasks.values() for task in several}
    return table.assign(target=table["source"], classes=table["task"].map(n_classes))
