"""Metrics that rank the directions of transfer (Table 1 of the IGAP paper)."""

import itertools
import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from shared import ranking
from xlx.experiment.transfers import Transfers
from xlx.measures import igap, statistics
from xlx.plots.panels import order
from xlx.plots.primitives import Curves, Lanes, curves, lanes
from xlx.plots.style import BLUE, GUESSING, VERMILION, look, styled

FROZEN_LABELS = "random labels, frozen"


def luck_curves(of_model: Transfers, tolerance: float) -> pd.DataFrame:
    """IGAP of one run at training error 0 by how many checkpoints it is the least of.

    A row per ``source``, ``seed`` and ``k``: ``value``, expected over draws of k checkpoints, mean
    over targets.
    """
    rows = []
    for source, seed in dict.fromkeys((run.source, run.seed) for run in of_model.runs):
        lost = of_model.only(source=source, seed=seed).lost(tolerance)
        for k in range(1, len(lost[0]) + 1):
            value = np.mean([igap.rarefied_losses(x, k).mean() for x in lost])
            rows.append((source, seed, k, value))
    return pd.DataFrame(rows, columns=["source", "seed", "k", "value"])


def igap_scores(transfer: Transfers, tolerance: float) -> pd.DataFrame:
    """IGAP at training error 0 as a predictor, for `ranking.rank_directions`: high is good."""
    table = transfer.curves([0.0], tolerance)
    table = table[table["target"] != igap.MEAN_TARGET].reset_index(drop=True)
    table = table.assign(metric="IGAP", score=-table["igap"])
    return table[["metric", "source", "target", "score"]]


def label_scores(by_draw: pd.DataFrame) -> pd.DataFrame:
    """Gaps of random labels as a predictor, mean over draws (`igap_tables.gaps_by_draw`)."""
    rows = [(*name.split(), -gap) for name, gap in by_draw.mean().items()]
    return pd.DataFrame(rows, columns=["source", "target", "score"]).assign(metric=FROZEN_LABELS)


def without_fine_tuning(frozen: pd.DataFrame, fine_tuned: pd.DataFrame) -> pd.DataFrame:
    """Correlation over directions of `memorised_gaps` with IGAP, one row per ``layer``.

    ``r`` with ``low`` and ``high``, over ``n`` directions; ``gap``: the mean over all directions
    that there are. ``fine_tuned``: `igap_scores`.
    """
    rows = []
    tuned = fine_tuned.dropna(subset="score").assign(igap=lambda x: -x["score"])
    for layer, of_layer in frozen.groupby("layer"):
        both = tuned.merge(of_layer, on=["source", "target"])
        row = {"layer": layer, "gap": of_layer["gap"].mean(), "n": len(both)}
        if len(both) > 2:
            r = statistics.correlation(both, "gap", "igap", languages=("source", "target"))
            row |= {"r": r.value, "low": r.low, "high": r.high}
        rows.append(row)
    return pd.DataFrame(rows).reindex(columns=["layer", "gap", "n", "r", "low", "high"])


def rank_metrics(
    gold: ranking.Gold, predicted: pd.DataFrame, by_draw: Mapping[str, pd.DataFrame] | None = None
) -> pd.DataFrame:
    """`rank_directions`, against the other sources, and `permuted_languages` of all metrics.

    Beside the metrics the order that the other sources give, whose noise is that of the gold;
    sources without a model in the window are left out. ``by_draw``: of metrics that rest on random
    labels, gaps by draw (`ranking.redrawn`). ValueError where none is left.
    """
    metrics = pd.concat([predicted, ranking.other_sources(gold.table)])
    known = metrics[metrics["metric"] == "IGAP"].dropna(subset="score")["source"]
    mask = gold.table["source"].isin(known).to_numpy()
    if not mask.any():
        raise ValueError(
            "the model has in no source a training error within the tolerance of 0, so that it "
            "has no IGAP: raise the tolerance, the epochs or the learning rate"
        )
    table, noise, others = gold.table[mask], gold.noise[:, mask], ranking.OTHER_SOURCES
    again = {m: ranking.redrawn(x, table) for m, x in (by_draw or {}).items()}
    again[others] = gold.noise @ ranking.others(gold.table)[mask].T
    ranked = ranking.rank_directions(table, metrics, noise=noise, again=again, against=others)
    return ranked.merge(permuted_languages(table, metrics).drop(columns="accuracy"), on="metric")


def permuted_languages(
    gold: pd.DataFrame, predictors: pd.DataFrame, *, n_permutations: int = 5040, seed: int = 0
) -> pd.DataFrame:
    """The mean accuracy of each metric against that with the languages permuted (QAP; Mantel 1967).

    Orders of the targets of several sources are not independent of each other: a language that is
    a good target is so for most sources. So the metric keeps its matrix and loses its languages:
    rows and columns are permuted together, and the accuracy (`igap.ranking_accuracy`, mean over
    sources) is taken again. All permutations where there are no more than ``n_permutations`` (7
    languages have 5,040), else so many drawn by ``seed``.

    ``gold`` and ``predictors`` as in `ranking.rank_directions`. One row per ``metric``:
    ``accuracy``; ``random_low`` and ``random_high``, the middle 95 % of the permuted accuracies;
    ``p_value``, the share of permutations, the observed order among them, with an accuracy as high
    (one-sided); ``n_permutations``.
    """
    codes = list(dict.fromkeys([*gold["source"], *gold["target"]]))
    n = len(codes)
    if math.factorial(n) <= n_permutations:
        orders = np.array(list(itertools.permutations(range(n))))
    else:
        rng = np.random.default_rng(seed)
        orders = rng.permuted(np.tile(np.arange(n), (n_permutations, 1)), axis=1)
        orders[0] = np.arange(n)

    def better(scores: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Of a source and two targets, (n, n, n): which is better, and whether it is known."""
        square = scores.pivot(index="source", columns="target", values="score")
        square = square.reindex(index=codes, columns=codes).to_numpy(float, copy=True)
        np.fill_diagonal(square, np.nan)
        difference = square[:, :, None] - square[:, None, :]
        known = ~np.isnan(difference)
        equal = np.abs(difference) <= statistics.SLACK * np.nanmax(np.abs(square))
        signs = np.where(equal | ~known, 0, np.sign(difference)).astype(np.int8)
        return signs, known & ~np.eye(n, dtype=bool)

    truth, ranked = better(gold)
    moved = orders[:, :, None, None], orders[:, None, :, None], orders[:, None, None]
    rows = []
    for metric, of_metric in predictors.groupby("metric", sort=False):
        predicted, known = better(of_metric.merge(gold[["source", "target"]]))
        pairs = (ranked & known[moved]).sum(axis=(2, 3))  # of each order and source
        right = (truth * predicted[moved]).sum(axis=(2, 3)) / np.maximum(pairs, 1)
        n_sources = (pairs > 0).sum(axis=1)
        means = np.where(n_sources > 0, right.sum(axis=1) / np.maximum(n_sources, 1), np.nan)
        accuracies = (1 + means) / 2  # the observed one is the first
        tail = (1 - statistics.LEVEL) / 2
        low, high = np.nanquantile(accuracies, [tail, 1 - tail])
        p_value = float((accuracies >= accuracies[0] - statistics.SLACK).mean())
        rows.append((metric, accuracies[0], low, high, p_value, len(orders)))
    columns = ["metric", "accuracy", "random_low", "random_high", "p_value", "n_permutations"]
    return pd.DataFrame(rows, columns=columns)


@styled
def luck_lines(table: pd.DataFrame) -> Figure:
    """The least gap by the number of checkpoints (`luck_curves`); one line per seed."""
    labels = {seed: f"seed {seed}" for seed in table["seed"].unique()}
    style = Curves(scale=100, interval=False, labels=labels, width=2.7, wrap=3, sharex=True)
    on = curves(table, "k", "value", hue="seed", col="source", style=style)
    on.titles(lambda source: f"from {source}")
    x = "number of checkpoints that the minimum is taken over"
    return on.done(x, "IGAP, mean over targets (points)")


@styled
def ranking_dots(
    table: pd.DataFrame, means: pd.DataFrame, *, printed: Mapping[str, float]
) -> Figure:
    """Accuracy of direction ranking, one row per metric, at it the sources (Tables 1 and 5).

    Both tables have ``metric`` and ``accuracy`` (Equation 6), the first by source. Those of
    ``means`` are drawn in black below the points, under them ``corrected`` with ``low`` and
    ``high``, and grey ``random_low`` and ``random_high``, with the languages permuted
    (`permuted_languages`). ``printed`` maps metrics to the mean that the paper prints (hollow).
    """
    metrics = order(table, "metric")
    sources, on = order(table, "source"), None
    for height, name in zip(np.linspace(-0.36, -0.01, len(sources)), sources, strict=True):
        style = Lanes(
            items=metrics,
            shift=height,
            scale=100,
            interval=False,
            width=5.2,
            lane=0.3,
            looks=look(BLUE, f"$\\mathrm{{{name}}}$", markersize=7, markeredgewidth=0.2),
            labels=None if height > -0.36 else "a source",
        )
        on = lanes(table[table["source"] == name], "accuracy", "metric", style=style, on=on)
    printed = pd.DataFrame(printed.items(), columns=["metric", "accuracy"])
    for rows, column, shown, label, height in (
        (means.drop(columns="low"), "accuracy", look("black", "o"), "mean", 0.22),
        (
            means,
            "corrected",
            look("black", "s", hollow=True, capsize=3),
            "mean, noise corrected",
            0.39,
        ),
        (printed, "accuracy", look(VERMILION, "D", hollow=True), "mean, printed", 0.22),
    ):
        style = Lanes(looks=shown, labels=label, shift=height, scale=100)
        lanes(rows, column, "metric", style=style, on=on)
    (axes,) = on.axes.values()
    axes.axvline(50, **GUESSING, label="chance")
    width = 100 * (means["random_high"] - means["random_low"])
    axes.barh(
        means["metric"].map(metrics.index) + 0.22,
        width,
        0.14,
        100 * means["random_low"],
        color="0.87",
        zorder=0,
        label="mean, languages permuted",
    )
    return on.done("accuracy of transfer-direction ranking (% of pairs of targets in order)")
