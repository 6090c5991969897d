"""Ranking of the directions of transfer: what is to be ranked, and how well a metric does it.

Section 4.2 and Tables 1 and 5 of Chi, Huang and Mao, "Measuring Cross-Lingual Transferability of
Multilingual Transformers on Sentence Classification".
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xlx.measures import igap, statistics

OTHER_SOURCES = "other sources"
#: Of the noise of an order, which has no formula.
N_RESAMPLES = 1000
#: A reliability is taken for no less: below, the scores hardly differ but by noise.
LEAST_RELIABILITY = 0.1
#: Where the middle 95 % end.
ENDS = (1 - statistics.LEVEL) / 2, (1 + statistics.LEVEL) / 2


@dataclass(frozen=True)
class Gold:
    """Test accuracies of k transfer directions, and how far their examples determine them.

    ``table``: k rows of ``source``, ``target``, ``score`` (accuracy); ``noise``: ``(N_RESAMPLES,
    k)``, normal, as large as that of the examples and of the models of a source.
    """

    table: pd.DataFrame
    noise: np.ndarray


def gold_scores(
    wrong: Mapping[tuple[str, str], np.ndarray], groups: np.ndarray | None = None
) -> Gold:
    """What is to be ranked: the accuracy of each transfer direction on the end task (section 4.2).

    ``wrong`` is (source, target) → boolean ``(m, n)``: which of the n test examples, parallel, each
    of the m models fine-tuned in the source gets wrong in the target language; ``groups``,
    ``(n,)``: which examples hang together (None: none do). ValueError where an array is not so, or
    there are no directions, or no two groups.
    """
    if not wrong:
        raise ValueError("there are no transfer directions: give the wrong answers of some")
    n = next(iter(wrong.values())).shape[-1]
    for direction, array in wrong.items():
        igap.count_true(array, " to ".join(direction))
        if array.ndim != 2 or not len(array) or array.shape[1] != n or n < 2:
            raise ValueError(
                f"{' to '.join(direction)} has shape {array.shape}: give (models, {n} examples) "
                "in all languages, two examples or more"
            )
    _, places = np.unique(np.arange(n) if groups is None else groups, return_inverse=True)
    if len(places) != n or not places.any():
        raise ValueError(f"{n} examples have {len(places)} places in {places.max() + 1} groups")
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(N_RESAMPLES, places.max() + 1))
    table = pd.DataFrame(list(wrong), columns=["source", "target"])
    noise = np.empty((N_RESAMPLES, len(table)))
    for _, rows in table.groupby("source"):
        right = ~np.array([wrong[source, target] for source, target in rows.to_numpy()])
        by_group, by_model = _deviations(right, places)
        drawn = rng.normal(size=(N_RESAMPLES, len(rows)))
        noise[:, rows.index] = weights @ by_group.T + by_model * drawn
    return Gold(table.assign(score=[1 - array.mean() for array in wrong.values()]), noise)


def _deviations(right: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, float]:
    """How k accuracies of a source move with groups, ``(k, n_groups)``, and with models.

    ``right``: boolean ``(k, m, n)``. Times standard normal numbers they give the noise. The two-way
    analysis of `igap.crossed_interval`, on the differences of targets, as an order rests on
    nothing else: the models' part is their variance less what the examples bring about. It is one
    standard deviation for all targets, each on its own: three models do not tell it for each.
    """
    (k, m, n), sizes = right.shape, np.bincount(places)
    n_groups, order = len(sizes), np.argsort(places, kind="stable")
    means = right.mean(axis=2)
    apart = np.add.reduceat(right[..., order], np.cumsum(sizes) - sizes, axis=2, dtype=float)
    apart = (apart - means[..., None] * sizes) * n_groups / n
    by_model, left = (x - x.mean(axis=1, keepdims=True) for x in (means, apart))
    total, left = (((x - x.mean(axis=0)) ** 2).sum() for x in (by_model, left))
    variance = max(total - left / n_groups / (n_groups - 1), 0) / max((k - 1) * (m - 1) * m, 1)
    return apart.mean(axis=1) / np.sqrt(n_groups * (n_groups - 1)), np.sqrt(variance)


def reliability(gold: pd.DataFrame, noise: np.ndarray, score: str = "score") -> float:
    """Share of the variance of scores of targets, within sources, that is not of ``noise``."""
    squares = (_within(np.vstack([gold[score], noise]), _targets(gold)) ** 2).sum(axis=1)
    return max(1 - squares[1:].mean() / max(squares[0], statistics.SLACK), LEAST_RELIABILITY)


def _within(values: np.ndarray, targets: Mapping[str, np.ndarray]) -> np.ndarray:
    """``(..., k)`` less the mean over the targets of a source; zero for what is no target."""
    left = np.zeros(values.shape)
    for places in targets.values():
        block = values[..., places]
        left[..., places] = block - block.mean(axis=-1, keepdims=True)
    return left


def rank_directions(
    gold: pd.DataFrame,
    predictors: pd.DataFrame,
    *,
    noise: np.ndarray | None = None,
    again: Mapping[str, np.ndarray] | None = None,
    against: str | None = None,
) -> pd.DataFrame:
    """How well each metric orders the target languages of each source (Tables 1 and 5).

    ``gold`` has ``source``, ``target``, ``score`` (`Gold.table`); ``predictors`` have ``metric``
    too. High is good in both: give gaps and distances with a minus sign. Directions that are not in
    `gold`, and a language with itself, are not used. A source whose scores are all NaN (no model in
    the window) has no accuracy. ``noise``, ``(N_RESAMPLES, len(gold))``: `Gold.noise`; ``again``:
    the same of the scores of a metric, row by row with it, where they have noise of their own.

    One row per ``metric`` and ``source``, then the source "mean": ``accuracy``
    (`igap.ranking_accuracy`), and with ``noise`` ``corrected``, ``low`` and ``high``: the accuracy
    for the order without noise (`_corrected`), with its 95 % interval. ``apart``, ``apart_low`` and
    ``apart_high``: ``corrected`` less that of the metric ``against``. A random order has ½.

    ValueError for a column or number missing; a direction there twice; a metric without a score of
    a direction of `gold`; a source with fewer than two targets; noise of another length.
    """
    statistics.require(predictors, ("metric", "source", "target"))
    targets = _targets(gold)
    if noise is not None and noise.shape[1:] != (len(gold),):
        raise ValueError(f"noise has shape {noise.shape} and gold {len(gold)} rows")
    if predictors.empty:
        raise ValueError("there are no predictors: give the scores of one metric or more")
    tables, drawn = {}, {}
    for metric, of_metric in predictors.groupby("metric", sort=False):
        predicted = _predicted(gold, of_metric, metric, targets)
        table = pd.DataFrame({"metric": metric, "source": [*targets, igap.MEAN_TARGET]})
        table["accuracy"] = _accuracies(gold["score"].to_numpy(), predicted, targets)[:, 0]
        if noise is not None:
            own = _corrected(gold.assign(predicted=predicted), noise, (again or {}).get(metric))
            table["corrected"], drawn[metric] = own[:, 0], own[:, 1:]
            table["low"], table["high"] = np.quantile(own[:, 1:], ENDS, axis=1)
        tables[metric] = table
    for metric, table in tables.items() if against in drawn else ():
        table["apart"] = table["corrected"] - tables[against]["corrected"]
        ends = np.quantile(drawn[metric] - drawn[against], ENDS, axis=1)
        table["apart_low"], table["apart_high"] = ends
    return pd.concat(tables.values(), ignore_index=True)


def _accuracies(
    gold: np.ndarray, predicted: np.ndarray, targets: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Ranking accuracies of ``(..., k)`` scores, a row per source and their mean."""
    rows = np.full((len(targets) + 1, len(gold := np.atleast_2d(gold))), np.nan)
    for row, places in zip(rows, targets.values(), strict=False):
        if not np.isnan(own := predicted[..., places]).any():
            row[:] = igap.ranking_accuracy(gold[..., places], own)
    rows[-1] = rows[:-1].mean(axis=0)
    return rows


def _corrected(both: pd.DataFrame, noise: np.ndarray, again: np.ndarray | None) -> np.ndarray:
    """Ranking accuracies for the order without noise, a row per source and their mean.

    The first column is the estimate, the others are its bootstrap: ``(n_sources + 1, 1 +
    N_RESAMPLES)``. Noise pulls an accuracy toward ½. Of normal scores with correlation r, the
    accuracy is ½ + arcsin(r) / π (Greiner 1909), and r without noise follows by Spearman (1904):
    what the noise of both has in common is subtracted, and the rest divided by the root of the
    product of the two reliabilities. The bootstrap adds noise to scores that were first shrunk
    to the variance without it; its correlations are laid about the estimate, as the noise spoils
    them once more. In simulations with a known order and reliabilities of 0.5 to 0.97 the interval
    has the truth in 90 to 99 of 100 worlds (of skewed true scores 88 to 95). The plain accuracy,
    resampled, has that of a perfect metric in 0 to 8, of a good one in 8 to 92.
    """
    targets, scores = _targets(both), both[["score", "predicted"]].to_numpy().T
    spread = reliability(both, noise), 1.0
    moved, shared = (np.sqrt(spread[0]) * scores[0] + noise, np.zeros_like(noise) + scores[1]), 0.0
    if again is not None:
        spread = spread[0], reliability(both, again, "predicted")
        moved = moved[0], np.sqrt(spread[1]) * scores[1] + again
        common = (_within(noise, targets) * _within(again, targets)).sum() / len(noise)
        shared = common / np.sqrt((_within(scores, targets) ** 2).sum(axis=1).prod())
    accuracies = np.hstack([_accuracies(*scores, targets), _accuracies(*moved, targets)])
    r = (np.sin(np.pi * (accuracies - 0.5)) - shared) / np.sqrt(np.prod(spread))
    r[:, 1:] += r[:, :1] - r[:, 1:].mean(axis=1, keepdims=True)
    return 0.5 + np.arcsin(np.clip(r, -1, 1)) / np.pi


def redrawn(by_draw: pd.DataFrame, gold: pd.DataFrame) -> np.ndarray:
    """Noise of the directions of ``gold`` by gaps whose labels are drawn again, of each resample.

    ``by_draw``: gaps, one row per draw of labels, which is resampled whole, so that what directions
    share by it stays; columns are directions ("en de").
    """
    names = gold["source"] + " " + gold["target"]
    scores = (by_draw.mean() - by_draw).reindex(columns=names).to_numpy(float)
    n = len(scores)
    return np.random.default_rng(1).multinomial(n, np.full(n, 1 / n), N_RESAMPLES) @ scores / n


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


def others(gold: pd.DataFrame) -> np.ndarray:
    """Weights of gold scores in the mean of a target over all other sources: ``(k, k)``."""
    source, target = gold["source"].to_numpy(), gold["target"].to_numpy()
    used = (target[:, None] == target) & (source[:, None] != source) & (source != target)
    return used / np.where(n := used.sum(axis=1, keepdims=True), n, np.nan)


def other_sources(gold: pd.DataFrame) -> pd.DataFrame:
    """The mean gold score of a target over all other sources, as a predictor.

    What can be known of a direction by the target alone; it needs labels in the target language, so
    it is no rival of a metric but says how much of the task is about directions at all.
    """
    score = others(gold) @ gold["score"].to_numpy()
    return gold[["source", "target"]].assign(metric=OTHER_SOURCES, score=score)
