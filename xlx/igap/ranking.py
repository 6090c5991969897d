"""Which targets are good for a source, and how well a metric orders them (IGAP, section 4.2).

A metric of transferability is judged by the pairs of target languages that it puts in the order of
their test accuracies (Equation 6, `ranking_accuracy`), source by source (`rank_directions`), beside
the same with the languages permuted (`permuted_languages`) and beside how well the order itself is
known (`order_reliability`).
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xlx.core import statistics
from xlx.core.statistics import SLACK
from xlx.igap.transferability import (
    MEAN_TARGET,
    centred_interval,
    count_true,
    random_halves,
)


def ranking_accuracy(gold: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Share of pairs of languages that two orders put in the same order (Equation 6).

    The paper compares places in two sequences, which are never equal. Scores can be: a pair that
    ties in either counts ½, what is expected if the order of equal languages is drawn. This is
    (τ + 1) / 2 with Kendall's τ (τ_a, ties counting 0).

    ``gold`` and ``predicted`` are ``(..., k)``, scores of k languages, high is good in both; the
    axes before the last are broadcast. Scores that differ by 10⁻¹² of the largest are equal.
    ``(...)`` in [0, 1]; ½ is what a random order reaches (`random_ranking_sd`). ValueError for
    unequal k, fewer than two languages, NaN.
    """
    gold, predicted = np.asarray(gold, float), np.asarray(predicted, float)
    if gold.shape[-1] != predicted.shape[-1] or gold.shape[-1] < 2:
        raise ValueError(
            f"{gold.shape[-1]} languages with a gold score and {predicted.shape[-1]} with a "
            "predicted one: give two or more, the same in both"
        )
    if np.isnan(gold).any() or np.isnan(predicted).any():
        raise ValueError("a score is NaN: leave out the languages that have none")
    return (1 + (_orders(gold) * _orders(predicted)).mean(axis=-1)) / 2


def _orders(scores: np.ndarray) -> np.ndarray:
    """Of each pair of languages, 1, 0 or -1: the first is better, as good, worse."""
    first, second = np.triu_indices(scores.shape[-1], 1)
    difference = scores[..., first] - scores[..., second]
    equal = np.abs(difference) <= SLACK * np.abs(scores).max(axis=-1, keepdims=True)
    return np.where(equal, 0.0, np.sign(difference))


def random_ranking_sd(k: int) -> float:
    """Standard deviation of `ranking_accuracy` over all orders of k languages; their mean is ½.

    Half of that of Kendall's τ, var(τ) = 2 (2k + 5) / (9 k (k - 1)) (1938), without ties in gold.
    """
    return float(np.sqrt(2 * (2 * k + 5) / (9 * k * (k - 1))) / 2)


@dataclass(frozen=True)
class Gold:
    """Test accuracies of k transfer directions, and how far their examples determine them.

    Attributes
    ----------
    table : DataFrame
        k rows: ``source``, ``target``, ``score`` (accuracy).
    resamples : numpy.ndarray
        ``(n_resamples, k)``: accuracies on bootstrap samples of the test examples.
    halves : numpy.ndarray
        ``(2, n_splits, k)``: accuracies on random halves of the examples, and on the other halves.
    """

    table: pd.DataFrame
    resamples: np.ndarray
    halves: np.ndarray


def gold_scores(
    wrong: Mapping[tuple[str, str], np.ndarray],
    *,
    n_resamples: int = 1000,
    n_splits: int = 100,
    seed: int = 0,
) -> Gold:
    """What is to be ranked: the accuracy of each transfer direction on the end task (section 4.2).

    ``wrong`` is (source, target) → boolean ``(m, n)``: which of the n test examples each of the m
    models fine-tuned in the source (one per seed, say) gets wrong in the target language. The
    examples are parallel, so a resample has the same ones drawn for all languages. ValueError where
    an array is not so, or there are no directions.
    """
    if not wrong:
        raise ValueError("there are no transfer directions: give the wrong answers of some")
    n = next(iter(wrong.values())).shape[-1]
    for direction, array in wrong.items():
        count_true(array, " to ".join(direction))
        if array.ndim != 2 or not len(array) or array.shape[1] != n or n < 2:
            raise ValueError(
                f"{' to '.join(direction)} has shape {array.shape}: give (models, {n} examples) "
                "in all languages, two examples or more"
            )
    n_models = np.array([len(array) for array in wrong.values()])
    right = np.array([(~array).sum(axis=0) for array in wrong.values()], np.float32).T
    rng = np.random.default_rng(seed)
    counts, half = statistics.resample_counts(n, n_resamples, rng), random_halves(n, n_splits, rng)
    first = half @ right
    second = right.sum(axis=0) - first
    table = pd.DataFrame(list(wrong), columns=["source", "target"])
    return Gold(
        table.assign(score=right.sum(axis=0) / (n * n_models)),
        counts @ right / (n * n_models),
        np.array([first / (n // 2 * n_models), second / ((n - n // 2) * n_models)]),
    )


def rank_directions(
    gold: pd.DataFrame, predictors: pd.DataFrame, *, resamples: np.ndarray | None = None
) -> pd.DataFrame:
    """How well each metric orders the target languages of each source (Tables 1 and 5).

    ``gold`` has ``source``, ``target``, ``score``: what is to be ranked, high is good
    (`Gold.table`); ``predictors`` have ``metric`` too, and high is good: give gaps and distances
    with a minus sign. Directions that are not in `gold`, and a language with itself, are not used.
    If all scores of a source are NaN (no model in the window), so is its accuracy; leave it out of
    `gold` for a mean over the others. ``resamples``, ``(n_resamples, len(gold))``, are the gold
    scores on other test examples (`Gold.resamples`).

    One row per ``metric`` and ``source``, then the source "mean" (over sources): ``accuracy``
    (`ranking_accuracy`); ``low`` and ``high`` over resampled gold orders (`centred_interval`, cut
    at 0 and 1), NaN without: they say how much the gold order leaves open, not how much the metric
    does; ``n_targets`` (of "mean": all directions); ``random_sd``, the standard deviation of a
    random order, whose accuracy is ½ (of "mean": the most it can be, reached if all sources have
    one order; `permuted_languages` does not assume one).

    ValueError for a column or number missing; a direction there twice; a metric without a score of
    a direction of `gold`; a source with fewer than two targets; resamples of another length.
    """
    statistics.require(predictors, ("metric", "source", "target"))
    targets = _targets(gold)
    if resamples is not None and resamples.shape[1:] != (len(gold),):
        raise ValueError(f"resamples have shape {resamples.shape} and gold {len(gold)} rows")
    if predictors.empty:
        raise ValueError("there are no predictors: give the scores of one metric or more")
    # the gold scores are the first row, and without resamples all there is
    scores = np.vstack(
        [gold["score"], np.empty((0, len(gold))) if resamples is None else resamples]
    )
    sizes = [len(rows) for rows in targets.values()]
    sds = [random_ranking_sd(size) for size in sizes]
    tables = []
    for metric, of_metric in predictors.groupby("metric", sort=False):
        predicted = _predicted(gold, of_metric, metric, targets)
        accuracies = np.full((len(targets), len(scores)), np.nan)
        for row, places in enumerate(targets.values()):
            if not np.isnan(predicted[places]).all():
                accuracies[row] = ranking_accuracy(scores[:, places], predicted[places])
        accuracies = np.vstack([accuracies, accuracies.mean(axis=0)])
        accuracy, low, high = accuracies[:, 0], np.nan, np.nan
        if resamples is not None:
            low, high = np.clip(centred_interval(accuracy, accuracies[:, 1:].T), 0, 1)
        columns = {
            "metric": metric, "source": [*targets, MEAN_TARGET], "accuracy": accuracy, "low": low,
            "high": high, "n_targets": [*sizes, sum(sizes)], "random_sd": [*sds, np.mean(sds)],
        }  # fmt: skip
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def permuted_languages(
    gold: pd.DataFrame,
    predictors: pd.DataFrame,
    *,
    n_permutations: int = 5040,
    seed: int = 0,
) -> pd.DataFrame:
    """The mean accuracy of each metric against that with the languages permuted (QAP; Mantel 1967).

    Orders of the targets of several sources are not independent of each other: a language that is
    a good target is so for most sources. Random orders, one for all sources or one for each, take
    no account of that in the metric. Here the metric keeps its matrix and loses its languages: rows
    and columns are permuted together, and the accuracy (`ranking_accuracy`, mean over sources) is
    taken again. All permutations where there are no more than ``n_permutations`` (7 languages have
    5,040), else so many drawn by ``seed``.

    ``gold`` and ``predictors`` as in `rank_directions`. One row a ``metric``: ``accuracy``;
    ``random_low`` and ``random_high``, the middle 95 % of the permuted accuracies; ``p_value``, the
    share of permutations, the observed order among them, with an accuracy as high (one-sided);
    ``n_permutations``.
    """
    codes = list(dict.fromkeys([*gold["source"], *gold["target"]]))
    targets = _targets(gold)
    place = {code: number for number, code in enumerate(codes)}
    cells = gold["source"].map(place).to_numpy(), gold["target"].map(place).to_numpy()
    n = len(codes)
    if math.factorial(n) <= n_permutations:
        orders = np.array(list(itertools.permutations(range(n))))
    else:
        rng = np.random.default_rng(seed)
        orders = rng.permuted(np.tile(np.arange(n), (n_permutations, 1)), axis=1)
        orders[0] = np.arange(n)

    def better(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of a source and two targets, (n, n, n): which is better, and whether it is known."""
        square = np.full((n, n), np.nan)
        square[cells] = scores
        np.fill_diagonal(square, np.nan)
        known = ~np.isnan(square[:, :, None] + square[:, None, :])
        difference = square[:, :, None] - square[:, None, :]
        equal = np.abs(difference) <= SLACK * np.nanmax(np.abs(square))
        return np.where(equal | ~known, 0, np.sign(difference)), known & ~np.eye(n, dtype=bool)

    truth, ranked = better(gold["score"].to_numpy(float))
    rows = []
    for metric, of_metric in predictors.groupby("metric", sort=False):
        order_of_metric, known = better(_predicted(gold, of_metric, metric, targets))
        accuracies = []
        for order in orders:
            moved = np.ix_(order, order, order)
            pairs = (ranked & known[moved]).sum(axis=(1, 2))
            right = (truth * order_of_metric[moved]).sum(axis=(1, 2))[pairs > 0] / pairs[pairs > 0]
            accuracies.append((1 + right.mean()) / 2 if right.size else np.nan)
        accuracies = np.array(accuracies)  # the observed one is the first
        tail = (1 - statistics.LEVEL) / 2
        low, high = np.nanquantile(accuracies, [tail, 1 - tail])
        p_value = float((accuracies >= accuracies[0] - SLACK).mean())
        rows.append((metric, accuracies[0], low, high, p_value, len(orders)))
    columns = ["metric", "accuracy", "random_low", "random_high", "p_value", "n_permutations"]
    return pd.DataFrame(rows, columns=columns)


def order_reliability(gold: Gold) -> pd.DataFrame:
    """How good a metric can be, the gold order itself being known from n examples only.

    One row per ``source``, then "mean" (over sources): ``halves``, the mean accuracy of the order
    on one half of the examples for that on the other (both noisier than the whole, so a metric that
    knew the truth would reach more); ``resampled``, that of the gold order for the orders of its
    resamples (such a metric would reach rather less: noise spreads the gold scores out, which makes
    them look easy to order).
    """
    scores = gold.table["score"].to_numpy()
    rows = {
        source: {
            "halves": ranking_accuracy(*gold.halves[:, :, places]).mean(),
            "resampled": ranking_accuracy(gold.resamples[:, places], scores[places]).mean(),
        }
        for source, places in _targets(gold.table).items()
    }
    table = pd.DataFrame(rows).T
    table.loc[MEAN_TARGET] = table.mean()
    return table.rename_axis("source").reset_index()


def asymmetry(scores: pd.DataFrame) -> float:
    """Mean difference, without its sign, between a direction and its reverse (section 5.3).

    ``source``, ``target``, ``score``; pairs of languages that are there in one direction only are
    not used. Noise alone makes it larger than 0.
    """
    matrix = scores.pivot(index="source", columns="target", values="score")
    names = matrix.index.intersection(matrix.columns)
    square = matrix.loc[names, names].to_numpy(float)
    both = np.abs(square - square.T)[np.triu_indices(len(names), 1)]
    return float(both[~np.isnan(both)].mean())


def _check_once(table: pd.DataFrame, name: str) -> None:
    for row in table[table.duplicated(["source", "target"]).to_numpy()].itertuples():
        raise ValueError(f"{row.source} to {row.target} is in {name} more than once")


def _targets(gold: pd.DataFrame) -> dict[str, np.ndarray]:
    """Source → the rows of `gold` that hold its targets, itself left out."""
    statistics.require(gold, ("source", "target"))
    statistics.numbers(gold, ["score"])
    _check_once(gold, "gold")
    if not len(gold):
        raise ValueError("gold has no rows: give the scores of some transfer directions")
    source, target = gold["source"].to_numpy(), gold["target"].to_numpy()
    rows = {
        name: np.flatnonzero((source == name) & (target != name)) for name in dict.fromkeys(source)
    }
    for name, places in rows.items():
        if len(places) < 2:
            raise ValueError(f"{name} has {len(places)} other target languages in gold, not two")
    return rows


def _predicted(
    gold: pd.DataFrame, scores: pd.DataFrame, metric: str, targets: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Scores of one metric in the order of the rows of `gold`; NaN for whole sources only."""
    _check_once(scores, f"the scores of {metric}")
    needed = pd.MultiIndex.from_frame(gold[["source", "target"]])
    indexed = scores.set_index(["source", "target"])["score"]
    across = gold["source"].to_numpy() != gold["target"].to_numpy()
    if len(missing := needed[across].difference(indexed.index, sort=False)):
        raise ValueError(f"{metric} has no score of {' to '.join(missing[0])}, which gold has")
    values = np.where(across, indexed.reindex(needed).to_numpy(float), np.nan)
    for source, rows in targets.items():
        unknown = np.isnan(values[rows])
        if unknown.any() and not unknown.all():
            target = gold["target"].iloc[rows[unknown.argmax()]]
            raise ValueError(
                f"the score of {metric} is NaN for {source} to {target} but not for all targets of "
                f"{source}: they cannot be ranked"
            )
    return values


def other_sources(gold: pd.DataFrame) -> pd.DataFrame:
    """The mean gold score of a target over all other sources, as a predictor.

    What can be known of a direction by the target alone; it needs labels in the target language, so
    it is no rival of a metric but says how much of the task is about directions at all.
    """
    across = gold[gold["source"] != gold["target"]]
    means = [
        across.loc[(across["target"] == target) & (across["source"] != source), "score"].mean()
        for source, target in gold[["source", "target"]].itertuples(index=False)
    ]
    table = gold[["source", "target"]].assign(metric="other sources", score=means)
    return table[["metric", "source", "target", "score"]]
