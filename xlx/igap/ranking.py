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
    if k < 2:
        raise ValueError(f"an order needs two languages or more, not {k}")
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
    seed: int | np.random.Generator = 0,
) -> Gold:
    """What is to be ranked: the accuracy of each transfer direction on the end task (section 4.2).

    Parameters
    ----------
    wrong : mapping
        (source, target) → boolean ``(m, n)``: which of the n test examples each of the models
        fine-tuned in the source (one per seed, say) gets wrong in the target language. The examples
        are parallel, so that a resample has the same ones drawn for all languages.

    Raises
    ------
    ValueError
        Not boolean; directions with unequal numbers of examples; fewer than two examples; no
        directions.
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
    counts, one = statistics.resample_counts(n, n_resamples, rng), random_halves(n, n_splits, rng)
    other = right.sum(axis=0) - one @ right
    table = pd.DataFrame(list(wrong), columns=["source", "target"])
    return Gold(
        table.assign(score=right.sum(axis=0) / (n * n_models)),
        counts @ right / (n * n_models),
        np.array([one @ right / (n // 2 * n_models), other / ((n - n // 2) * n_models)]),
    )


def rank_directions(
    gold: pd.DataFrame,
    predictors: pd.DataFrame,
    *,
    resamples: np.ndarray | None = None,
    level: float = statistics.LEVEL,
) -> pd.DataFrame:
    """How well each metric orders the target languages of each source (Tables 1 and 5).

    Parameters
    ----------
    gold : DataFrame
        ``source``, ``target``, ``score``: what is to be ranked, high is good (`Gold.table`).
    predictors : DataFrame
        ``metric``, ``source``, ``target``, ``score``, high is good here too: give gaps and
        distances with a minus sign. Directions that are not in `gold`, and a language with itself,
        are not used. If all scores of a source are NaN (no model in the window), so is its
        accuracy; leave it out of `gold` for a mean over the others.
    resamples : numpy.ndarray, optional
        ``(n_resamples, len(gold))``, the gold scores on other test examples (`Gold.resamples`).

    Returns
    -------
    DataFrame
        One row per ``metric`` and ``source``, then the source "mean" (over sources): ``accuracy``
        (`ranking_accuracy`); ``low`` and ``high`` over resampled gold orders (`centred_interval`,
        cut at 0 and 1), NaN without: they say how much the gold order leaves open, not how much the
        metric does; ``n_targets`` (of "mean": all directions); ``random_sd``, the standard
        deviation of a random order, whose accuracy is ½ (of "mean": the most it can be, reached
        if all sources have one order; `permuted_languages` does not assume one).

    Raises
    ------
    ValueError
        A column or number missing; a direction there twice; a metric without a score of a direction
        of `gold`; a source with fewer than two targets; resamples of another length.
    """
    statistics.require(predictors, ("metric", "source", "target"))
    targets = _targets(gold)
    scores = gold["score"].to_numpy(float)
    if resamples is not None and (resamples.ndim != 2 or resamples.shape[1] != len(gold)):
        raise ValueError(f"resamples have shape {resamples.shape} and gold {len(gold)} rows")
    tables = [
        _ranked(
            scores, _predicted(gold, of_metric, metric, targets), targets, resamples, level
        ).assign(metric=metric)
        for metric, of_metric in predictors.groupby("metric", sort=False)
    ]
    if not tables:
        raise ValueError("there are no predictors: give the scores of one metric or more")
    table = pd.concat(tables, ignore_index=True)
    return table[["metric", *table.columns.drop("metric")]]


def _ranked(
    scores: np.ndarray,
    predicted: np.ndarray,
    targets: Mapping[str, np.ndarray],
    resamples: np.ndarray | None,
    level: float,
) -> pd.DataFrame:
    """`rank_directions` of one metric."""
    accuracies, resampled = [], []
    for rows in targets.values():
        known = not np.isnan(predicted[rows]).all()
        accuracies.append(
            float(ranking_accuracy(scores[rows], predicted[rows])) if known else np.nan
        )
        if resamples is not None:
            missing = np.full(len(resamples), np.nan)
            resampled.append(
                ranking_accuracy(resamples[:, rows], predicted[rows]) if known else missing
            )
    sizes = [len(rows) for rows in targets.values()]
    sds = [random_ranking_sd(size) for size in sizes]
    resampled = np.array(resampled) if resampled else np.full((len(sizes), 1), np.nan)
    resampled = np.vstack([resampled, resampled.mean(axis=0)])
    accuracy = np.array([*accuracies, np.mean(accuracies)])
    low, high = np.clip(centred_interval(accuracy, resampled.T, level), 0, 1)
    return pd.DataFrame(
        {
            "source": [*targets, MEAN_TARGET],
            "accuracy": accuracy,
            "low": low,
            "high": high,
            "n_targets": [*sizes, sum(sizes)],
            "random_sd": [*sds, np.mean(sds)],
        }
    )


def permuted_languages(
    gold: pd.DataFrame,
    predictors: pd.DataFrame,
    *,
    n_permutations: int = 5040,
    level: float = statistics.LEVEL,
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
    ``random_low`` and ``random_high``, the interval of the permuted accuracies at ``level``;
    ``p_value``, the share of permutations, the observed order among them, with an accuracy as high
    (one-sided); ``n_permutations``. Raises ValueError as `rank_directions`.
    """
    codes = list(dict.fromkeys([*gold["source"], *gold["target"]]))
    targets = _targets(gold)
    place = {code: number for number, code in enumerate(codes)}
    at = gold["source"].map(place).to_numpy(), gold["target"].map(place).to_numpy()
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
        square[at] = scores
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
        tail = (1 - level) / 2
        low, high = np.nanquantile(accuracies, [tail, 1 - tail])
        rows.append(
            {
                "metric": metric,
                "accuracy": accuracies[0],
                "random_low": low,
                "random_high": high,
                "p_value": float((accuracies >= accuracies[0] - SLACK).mean()),
                "n_permutations": len(orders),
            }
        )
    return pd.DataFrame(rows)


def order_reliability(gold: Gold) -> pd.DataFrame:
    """How good a metric can be, the gold order itself being known from n examples only.

    One row per ``source``, then "mean" (over sources): ``halves``, the mean accuracy of the order
    on one half of the examples for that on the other (both noisier than the whole, so a metric that
    knew the truth would reach more); ``resampled``, that of the gold order for the orders of its
    resamples (such a metric would reach rather less: noise spreads the gold scores out, which makes
    them look easy to order); ``n_targets``.
    """
    targets = _targets(gold.table)
    scores = gold.table["score"].to_numpy()
    halves, resampled = [], []
    for at in targets.values():
        halves.append(ranking_accuracy(*gold.halves[:, :, at]).mean())
        resampled.append(ranking_accuracy(gold.resamples[:, at], scores[at]).mean())
    sizes = [len(at) for at in targets.values()]
    return pd.DataFrame(
        {
            "source": [*targets, MEAN_TARGET],
            "halves": [*halves, np.mean(halves)],
            "resampled": [*resampled, np.mean(resampled)],
            "n_targets": [*sizes, sum(sizes)],
        }
    )


def asymmetry(scores: pd.DataFrame) -> float:
    """Mean difference, without its sign, between a direction and its reverse (section 5.3).

    ``source``, ``target``, ``score``; pairs of languages that are there in one direction only are
    not used. Noise alone makes it larger than 0. Raises ValueError for a column or number missing,
    a direction there twice, or no pair with both directions.
    """
    _check_scores(scores, "the table")
    matrix = scores.pivot(index="source", columns="target", values="score")
    names = matrix.index.intersection(matrix.columns)
    square = matrix.loc[names, names].to_numpy(float)
    both = np.abs(square - square.T)[np.triu_indices(len(names), 1)]
    both = both[~np.isnan(both)]
    if not len(both):
        raise ValueError("no pair of languages is there in both directions")
    return float(both.mean())


def _check_scores(table: pd.DataFrame, name: str) -> None:
    """Numbers, each direction once."""
    statistics.require(table, ("source", "target"))
    statistics.numbers(table, ["score"])
    _check_once(table, name)


def _check_once(table: pd.DataFrame, name: str) -> None:
    twice = table.duplicated(["source", "target"]).to_numpy()
    for row in table[twice].itertuples():
        raise ValueError(f"{row.source} to {row.target} is in {name} more than once")


def _targets(gold: pd.DataFrame) -> dict[str, np.ndarray]:
    """Source → the rows of `gold` that hold its targets, itself left out."""
    _check_scores(gold, "gold")
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
    wanted = pd.MultiIndex.from_frame(gold[["source", "target"]])
    indexed = scores.set_index(["source", "target"])["score"]
    across = gold["source"].to_numpy() != gold["target"].to_numpy()
    if len(missing := wanted[across].difference(indexed.index, sort=False)):
        raise ValueError(f"{metric} has no score of {' to '.join(missing[0])}, which gold has")
    values = np.where(across, indexed.reindex(wanted).to_numpy(float), np.nan)
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
    return gold[["source", "target"]].assign(metric="other sources", score=means)[
        ["metric", "source", "target", "score"]
    ]
