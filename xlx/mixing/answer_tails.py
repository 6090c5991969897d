"""Easy and hard questions: how near the question's words are to the answer in each.

Rajaee and Monz, section 4; Figures 1, 11 and 12.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from xlx.core import checks, statistics
from xlx.mixing.resamples import MixingError, Resamples, percentile_ends

#: Scores that differ by less are equal.
_SLACK = 1e-12


class Tails(NamedTuple):
    """What `tails` finds.

    Attributes
    ----------
    table : DataFrame
        ``group`` ("easiest", "hardest"), ``score`` (mean in it), ``distance`` (mean), ``low``,
        ``high`` (of the distance).
    ratio, low, high : float
        Distance of the hardest over that of the easiest, and its interval; infinite where the
        easiest are at distance 0, NaN where both are.
    """

    table: pd.DataFrame
    ratio: float
    low: float
    high: float


def tails(
    score: np.ndarray,
    distance: np.ndarray,
    share: float = 0.2,
    groups: Sequence[int] | None = None,
    *,
    n_resamples: int = 1000,
    level: float = statistics.LEVEL,
    seed: int | np.random.Generator = 0,
) -> Tails:
    """Mean distance of the easiest and the hardest examples (section 4; Figures 1, 11 and 12).

    The easiest are those with the highest score. Many F1 scores are exactly 0 or 1, so which
    examples are "the top 20 %" is often open: the examples that tie at the border share equally
    what is left to be filled. That is the expected mean if ties are broken at random, and no order
    in the file matters. Where ``share`` × n is no whole number, the last example counts in part.
    Every resample finds its own border.

    Parameters
    ----------
    score, distance : numpy.ndarray
        ``(n,)``; scores that differ by 10⁻¹² are equal, distances are 0 or more.
    share : float
        Of the examples in a tail, above 0 and up to ½.
    groups, n_resamples, level, seed
        As in `cells`.

    Raises
    ------
    MixingError
        Unequal shapes; no examples, or all of one group; NaN; a distance below 0; another share.
    """
    score, distance = np.asarray(score, np.float64), np.asarray(distance, np.float64)
    if score.ndim != 1 or score.shape != distance.shape:
        raise MixingError(
            f"scores have shape {score.shape} and distances {distance.shape}: one of each per "
            "example is needed"
        )
    for name, values in (("score", score), ("distance", distance)):
        if not np.isfinite(values).all():
            raise MixingError(f"the {name} of example {(~np.isfinite(values)).argmax()} is NaN")
    if (distance < 0).any():
        raise MixingError(f"the distance of example {(distance < 0).argmax()} is below 0")
    if not 0 < share <= 0.5:
        raise MixingError(f"the share of a tail is {share}: it is above 0 and at most 0.5")
    drawn = Resamples.draw(len(score), groups, n_resamples, seed)
    _, level_of = np.unique(np.round(score / _SLACK) * _SLACK, return_inverse=True)
    at = level_of == np.arange(level_of.max() + 1)[:, None]  # (n_levels, n)
    weights = drawn.sums(at.astype(np.float64))
    estimates, resamples, means = {}, {}, {}
    for group, step in (("easiest", -1), ("hardest", 1)):
        means[group] = _tail(at.sum(axis=1), (at * score).sum(axis=1), share, step)
        estimates[group] = _tail(at.sum(axis=1), (at * distance).sum(axis=1), share, step)
        resamples[group] = _tail(weights, drawn.sums(at * distance), share, step)
    ends = {group: percentile_ends(own, level) for group, own in resamples.items()}
    table = pd.DataFrame(
        {
            "group": list(estimates),
            "score": [float(means[group]) for group in estimates],
            "distance": [float(own) for own in estimates.values()],
            "low": [float(low) for low, _ in ends.values()],
            "high": [float(high) for _, high in ends.values()],
        }
    )
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        ratio = np.divide(estimates["hardest"], estimates["easiest"])
        ratios = resamples["hardest"] / resamples["easiest"]
    return Tails(table, float(ratio), *_ratio_ends(ratios, level))


def _tail(weights: np.ndarray, sums: np.ndarray, share: float, step: int) -> np.ndarray:
    """Mean of what is summed over a share of the weight, from the last level (-1) or the first (1).

    ``weights`` and ``sums`` are ``(..., n_levels)``, levels ascending: how many examples have the
    level, and the sum of their values. Of the level at the border each example counts alike.
    """
    weights, sums = weights[..., ::step], sums[..., ::step]
    wanted = share * weights.sum(axis=-1, keepdims=True)
    before = np.cumsum(weights, axis=-1) - weights
    taken = np.clip(wanted - before, 0, weights)
    part = np.divide(taken, weights, out=np.zeros_like(taken), where=weights > 0)
    return (part * sums).sum(axis=-1) / wanted[..., 0]


def _ratio_ends(ratios: np.ndarray, level: float) -> tuple[float, float]:
    """Percentiles that are ratios found, as there is no middle between a ratio and infinity."""
    known = ratios[~np.isnan(ratios)]
    if not len(known):
        return float("nan"), float("nan")
    share = (1 - checks.level(level)) / 2
    low, high = np.quantile(known, [share, 1 - share], method="nearest")
    return float(low), float(high)
