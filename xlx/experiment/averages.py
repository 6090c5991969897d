"""Averages of a checkpoint's scores over pairs, layers and directions, and how sure they are.

What another text would change is found by leaving out documents (`statistics.left_out_error`):
sentences of one document hang together, and intervals over sentences are too narrow by a half and
more. The same documents are left out of all scores of a corpus, so a difference of two averages
has an interval of its own, narrower than those of the two suggest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
from numpy import ndarray
from pandas import DataFrame

from xlx.experiment.abx_scores import MATCHED, language_weights, pair_weights
from xlx.measures import registered, statistics
from xlx.measures.abx import PairScores
from xlx.results import checks
from xlx.results.deferred import deferred

special = deferred("scipy.special")


@dataclass(frozen=True)
class Average:
    """One or several averages: ``score`` ``(...)``, and what it changes by without each group.

    ``left_out_change``: ``(..., n_groups)``; ``sizes``: positions of each group, ``(n_groups,)``;
    ``texts``: SHA-256 of the text of each language, where it is known; ``share``: whether it lies
    in [0, 1], as no difference does.
    """

    score: ndarray
    left_out_change: ndarray
    sizes: ndarray
    texts: tuple[str, ...] = ()
    share: bool = True

    def __sub__(self, other: "Average") -> "Average":
        """The difference, on the same text."""
        if not np.array_equal(self.sizes, other.sizes) or self.texts != other.texts:
            raise ValueError("two averages of different text have no difference on the same text")
        change = self.left_out_change - other.left_out_change
        return Average(self.score - other.score, change, self.sizes, self.texts, share=False)

    @property
    def error(self) -> ndarray:
        """Standard error over the groups."""
        if len(self.sizes) < 2:  # nothing says how other documents would differ
            return np.full(np.shape(self.score), np.nan)
        return statistics.left_out_error(
            self.score, self.score[..., None] + self.left_out_change, self.sizes
        )

    def interval(self) -> tuple[ndarray, ndarray]:
        """Low and high, of Student's t with a degree of freedom less than there are groups.

        Of a share that would end at 0 or 1 or beyond, on the scale of its logit; at 0 and 1, where
        there is none, and where no group changes it, Wilson's for as many trials as there are
        groups. NaN where a group holds every comparison.
        """
        width = statistics.half_width(self.error, len(self.sizes) - 1)
        low, high = np.array(self.score - width), np.array(self.score + width)
        beyond = ((low <= 0) | (high >= 1) | (width < 1e-9)) & self.share
        if beyond.any():
            score, width = np.clip(np.array(self.score)[beyond], 0, 1), np.array(width)[beyond]
            wilson = statistics.share_interval(score * len(self.sizes), len(self.sizes))
            inside = (score > 0) & (score < 1) & (width >= 1e-9)
            place = special.logit(score)
            half = np.divide(width, score * (1 - score), out=np.zeros_like(width), where=inside)
            low[beyond] = np.where(inside, special.expit(place - half), wilson[0])
            high[beyond] = np.where(inside, special.expit(place + half), wilson[1])
        return low[()], high[()]

    def within(self, chosen: ndarray) -> "Average":
        """The same on some of the groups alone (``chosen``: of each whether), to first order.

        Without a group of a share f of the positions a score changes by -f / (1 - f) times what a
        position of it adds, so those of the chosen groups can be averaged. For a mean, and
        for a difference of means, that is exact.
        """
        share = self.sizes / self.sizes.sum()
        added = -self.left_out_change * (1 - share) / share
        added = (added - (added @ share)[..., None])[..., chosen]
        share = share[chosen] / share[chosen].sum()
        score = added @ share
        change = -share / (1 - share) * (added - score[..., None])
        return replace(
            self, score=self.score + score, left_out_change=change, sizes=self.sizes[chosen]
        )


@cache
def average_weights(pairs: tuple[tuple[str, str], ...]) -> dict[str, ndarray]:
    """Weighting → the weight of each pair; "languages": of each pair for each language."""
    return {**pair_weights(pairs), "languages": language_weights(pairs)[1]}


@checks.typed()
def average(
    measured: PairScores,
    task: str,
    *,
    by: Sequence[str] = (),
    layers: Sequence[int] | None = None,
    embedding_layer: bool = True,
) -> Average:
    """The mean score of a task over pairs and layers, or by "layer", by "language", or by both.

    A language's score is the mean over its pairs with all others. ``layers`` are those that count
    (negative numbers from the last), by default all; ``embedding_layer``: whether 0 is among them.

    ValueError for what is not there: a task or layer, errors by language of another task than LD,
    MD and MD among sentences of like length.
    """
    checks.one_of(task, measured.tasks, "task")
    by = list(by)
    for key in by:
        checks.one_of(key, ("layer", "language"), "average by")
    rows = layers_of_mean(len(measured.layers), layers, embedding_layer)
    pairs = measured.pairs
    averaged = "languages" if "language" in by else "pairs"
    weights = average_weights(tuple(pairs))[averaged]
    changes = measured.left_out_change["documents"].get(averaged, {})
    checks.one_of(task, changes, f"error by {averaged} of")
    score = measured.scores[task][rows].mean(-1) @ weights.T
    left_out_change = changes[task][rows]
    if "layer" not in by:
        score, left_out_change = score.mean(0), left_out_change.mean(0)
    share = task not in (known := registered()) or known[task].share
    return Average(score, left_out_change, measured.sizes["documents"], measured.texts, share)


def layers_of_mean(
    n_layers: int, layers: Sequence[int] | None, embedding_layer: bool = True
) -> list[int]:
    """Layers that count: those named (negative ones from the last), or all, 0 if asked for."""
    if layers is None:
        return list(range(0 if embedding_layer else 1, n_layers))
    return sorted(checks.layers(layers, n_layers, from_last=True))


def best_layer(measured: PairScores) -> int:
    """Where MD among sentences of like length is highest, the mean over pairs; 0: embeddings."""
    return int(np.nanargmax(average(measured, MATCHED, by=["layer"]).score))


@checks.typed()
def averaged_scores(
    measured: Sequence[PairScores],
    tasks: Sequence[str] | None = None,
    *,
    by: Sequence[str] = (),
    layers: Sequence[int] | None = None,
    embedding_layer: bool = True,
) -> DataFrame:
    """`average` of several checkpoints and tasks, as a tidy table with 95 % intervals.

    ValueError where there is no checkpoint.

    Columns ``model``, ``checkpoint``, ``space``, ``task``, the keys, ``score``, ``low``, ``high``.
    """
    tables = []
    for scores in measured:
        counted = layers_of_mean(len(scores.layers), layers, embedding_layer)
        names = {"layer": counted, "language": language_weights(scores.pairs)[0]}
        names = {key: np.array(names[key]) for key in names if key in [*by]}
        for task in scores.tasks if tasks is None else tasks:
            mean = average(scores, task, by=by, layers=counted)
            places = zip(names, np.indices(mean.score.shape), strict=True)
            columns = {"model": scores.model, "checkpoint": scores.step, "space": scores.space}
            columns |= {"task": task} | {key: names[key][x].ravel() for key, x in places}
            numbers = zip(("score", "low", "high"), (mean.score, *mean.interval()), strict=True)
            columns |= {name: np.ravel(number) for name, number in numbers}
            tables.append(DataFrame(columns))
    if not tables:
        raise ValueError("no scores of any checkpoint are given: name one or more")
    return pd.concat(tables, ignore_index=True)
