"""Ranking of the directions of transfer: what is to be ranked, and how well a metric does it.

Section 4.2 and Tables 1 and 5 of Chi, Huang and Mao, "Measuring Cross-Lingual Transferability of
Multilingual Transformers on Sentence Classification".
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xlx.measures import igap, statistics


@dataclass(frozen=True)
class Gold:
    """Test accuracies of k transfer directions, and how far their examples determine them.

    ``table``: k rows of ``source``, ``target``, ``score`` (accuracy); ``resamples``:
    ``(n_resamples, k)``, accuracies on bootstrap samples of the test examples and of the models of
    a source; ``halves``: ``(2, n_splits, k)``, on random halves of the examples, and on the others.
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

    ``wrong`` is (source, target) → boolean ``(m, n)``: which of the n test examples, parallel, each
    of the m models fine-tuned in the source gets wrong in the target language. ValueError where an
    array is not so, or there are no directions.
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
    n_models = np.array([len(array) for array in wrong.values()])
    right = np.array([(~array).sum(axis=0) for array in wrong.values()], np.float32).T
    rng = np.random.default_rng(seed)
    counts = statistics.resample_counts(n, n_resamples, rng)
    half = igap.random_halves(n, n_splits, rng)
    first = half @ right
    second = right.sum(axis=0) - first
    table = pd.DataFrame(list(wrong), columns=["source", "target"])
    models = {
        own: statistics.resample_counts(m, n_resamples, rng)
        for own, m in dict(zip(table["source"], n_models, strict=True)).items()
    }
    drawn = [
        ((counts @ (~array).T) * models[own]).sum(axis=1) / (n * len(array))
        for (own, _), array in wrong.items()
    ]
    return Gold(
        table.assign(score=right.sum(axis=0) / (n * n_models)),
        np.stack(drawn, axis=1),
        np.array([first / (n // 2 * n_models), second / ((n - n // 2) * n_models)]),
    )


def rank_directions(
    gold: pd.DataFrame, predictors: pd.DataFrame, *, resamples: np.ndarray | None = None,
    again: Mapping[str, np.ndarray] | None = None,
) -> pd.DataFrame:  # fmt: skip
    """How well each metric orders the target languages of each source (Tables 1 and 5).

    ``gold`` has ``source``, ``target``, ``score`` (`Gold.table`); ``predictors`` have ``metric``
    too. High is good in both: give gaps and distances with a minus sign. Directions that are not in
    `gold`, and a language with itself, are not used. A source whose scores are all NaN (no model in
    the window) has no accuracy. ``resamples``, ``(n_resamples, len(gold))``: `Gold.resamples`.

    One row per ``metric`` and ``source``, then the source "mean": ``accuracy``
    (`igap.ranking_accuracy`); ``low`` and ``high`` over resampled gold orders
    (`igap.centred_interval`, cut at 0 and 1), NaN without: they say how much the gold order leaves
    open, not how much the metric does, but for a metric of ``again``: its scores with labels drawn
    again (`redrawn`), one row per resample. A random order has ½.

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
    tables = []
    for metric, of_metric in predictors.groupby("metric", sort=False):
        predicted = _predicted(gold, of_metric, metric, targets)
        predicted = np.vstack([predicted, (again or {}).get(metric, np.empty((0, len(gold))))])
        accuracies = np.full((len(targets), len(scores)), np.nan)
        for row, places in enumerate(targets.values()):
            if not np.isnan(own := predicted[..., places]).all():
                accuracies[row] = igap.ranking_accuracy(scores[:, places], own)
        accuracies = np.vstack([accuracies, accuracies.mean(axis=0)])
        accuracy, low, high = accuracies[:, 0], np.nan, np.nan
        if resamples is not None:
            low, high = np.clip(igap.centred_interval(accuracy, accuracies[:, 1:].T), 0, 1)
        columns = {
            "metric": metric, "source": [*targets, igap.MEAN_TARGET], "accuracy": accuracy,
            "low": low, "high": high,
        }  # fmt: skip
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def redrawn(
    by_draw: pd.DataFrame, gold: pd.DataFrame, n_resamples: int, seed: int = 1
) -> np.ndarray:
    """Scores of the directions of ``gold`` by gaps whose labels are drawn again, of each resample.

    ``by_draw``: gaps, one row per draw of labels, which is resampled whole, so that what directions
    share by it stays; columns are directions ("en de").
    """
    names = gold["source"] + " " + gold["target"]
    scores = -by_draw.reindex(columns=names).to_numpy(float)
    rng = np.random.default_rng(seed)
    return statistics.resample_counts(len(scores), n_resamples, rng) @ scores / len(scores)


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
    return gold[["source", "target"]].assign(metric="other sources", score=means)
