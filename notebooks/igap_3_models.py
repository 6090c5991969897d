"""Models and algorithms compared by IGAP and accuracy (Tables 2, 3 and 6 to 9 of the paper)."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xlx.experiment.transfers import Transfers
from xlx.measures import igap, statistics
from xlx.plots.panels import order, rows_of
from xlx.plots.primitives import lanes
from xlx.plots.style import MEASURES, NAMES, TINY, styled

#: What names the fine-tuned models that a row is of.
RUN_KEYS = ["task", "model", "algorithm"]
#: The tasks as the papers call them, and the algorithms as the tables do.
TASK_TITLES = {"NLI": "XNLI", "PI": "PAWS-X"}
ALGORITHM_TITLES = {"vanilla": "vanilla", "gaussian": "Gaussian", "xtune": "xTune"}
QUANTITIES = {"accuracy": "accuracy (%)", "IGAP": "IGAP (points)"}


def of_each_kind(
    measured: Mapping[str, Transfers],
) -> Iterator[tuple[tuple[str, str, str], Transfers]]:
    """The runs of each of `RUN_KEYS`."""
    for name, of_task in measured.items():
        for model, algorithm in dict.fromkeys((run.model, run.algorithm) for run in of_task.runs):
            yield (name, model, algorithm), of_task.only(model=model, algorithm=algorithm)


def average_accuracies(measured: Mapping[str, Transfers], **options: int) -> pd.DataFrame:
    """`RUN_KEYS` and ``accuracy``: mean over the targets, with its interval over test examples."""
    rows = []
    for key, some in of_each_kind(measured):
        gold = igap.gold_scores(some.last_wrong(), **options)
        low, high = np.quantile(gold.resamples.mean(axis=1), [0.025, 0.975])
        rows.append((*key, gold.table["score"].mean(), low, high))
    return pd.DataFrame(rows, columns=[*RUN_KEYS, "accuracy", "low", "high"])


def contrasts(
    measured: Mapping[str, Transfers],
    pairs: Sequence[tuple[tuple[str, str], tuple[str, str]]],
    tolerance: float,
    *,
    n_resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Differences of the IGAP averaged over targets, the first less the second, with intervals.

    ``pairs`` are of (model, algorithm) twice. The examples resampled are the same for both, so the
    interval is that of the difference. ``value``, ``low``, ``high``; ``lower``: in how many of the
    ``targets`` the second is lower.
    """
    gaps = {}
    for key, some in of_each_kind(measured):
        n, rng = some.task.n_train, np.random.default_rng(seed)
        counts = statistics.resample_counts(n, n_resamples, rng)
        lost = some.lost(tolerance)
        if len(lost[0]):
            least = np.array([array.mean(axis=1).min() for array in lost])
            gaps[key] = least, np.array([(counts @ array.T).min(axis=1) / n for array in lost])
    rows = []
    for name, (first, second) in product(measured, pairs):
        if (name, *first) in gaps and (name, *second) in gaps:
            both = zip(gaps[name, *first], gaps[name, *second], strict=True)
            apart, resampled = (a - b for a, b in both)
            low, high = igap.centred_interval(apart.mean(), resampled.mean(axis=0))
            ends = [end[first[0] == second[0]] for end in (first, second)]
            label = " → ".join(ALGORITHM_TITLES.get(end, end) for end in ends)
            row = (TASK_TITLES.get(name, name), label, apart.mean(), low, high)
            rows.append((*row, (apart > 0).sum(), len(apart)))
    columns = ["task", "from → to", "value", "low", "high", "lower", "targets"]
    return pd.DataFrame(rows, columns=columns)


def random_ranking_sd(k: int) -> float:
    """Standard deviation of `igap.ranking_accuracy` over all orders of k, whose mean is ½.

    Half of that of Kendall's τ, var(τ) = 2 (2k + 5) / (9 k (k - 1)) (1938), without ties in gold.
    """
    return float(np.sqrt(2 * (2 * k + 5) / (9 * k * (k - 1))) / 2)


@styled
def printed_and_ours(table: pd.DataFrame) -> Figure:
    """Numbers as printed, recomputed and ours, a row a model or algorithm (Tables 2, 3, 6 to 9).

    ``table`` has ``task``, ``quantity`` ("accuracy", "IGAP"), ``row`` (the model or algorithm),
    ``kind`` ("printed", "recomputed" from the rows that are printed, "ours"), ``value``, ``low``
    and ``high`` (missing where there is no interval). Rows of panels are tasks, columns quantities;
    a value that is missing is said in its place.
    """
    rows = order(table, "row")
    table = pd.concat([rows_of(table, quantity=name) for name in QUANTITIES])
    on = lanes(
        table, item="row", items=rows, value="value", series="kind", panel=("task", "quantity"),
        looks={kind: MEASURES[kind] for kind in ("printed", "recomputed", "ours")}, labels=NAMES,
        scale=100, missing=True, lane=0.1, sharex="col",
        width=3.3 if table["quantity"].nunique() > 1 else 5,
    )  # fmt: skip
    on.titles(lambda key: f"{key[0]}: {QUANTITIES[key[1]]}")
    for axes, drawn in on.each(table):
        if drawn.empty:
            axes.text(0.5, 0.5, "no number", transform=axes.transAxes, ha="center", fontsize=TINY)
    return on.done()
