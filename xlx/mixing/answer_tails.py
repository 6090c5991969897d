"""Easy and hard questions: how near the question's words are to the answer in each.

Rajaee and Monz, section 4; Figures 1, 11 and 12.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from xlx.core import statistics
from xlx.mixing.resamples import MixingError, Resamples, percentile_ends

#: Scores that differ by less are equal.
_SLACK = 1e-12


def tails(
    score: np.ndarray, distance: np.ndarray, share: float = 0.2,
    groups: Sequence[int] | None = None, *, n_resamples: int = 1000, seed: int = 0,
) -> tuple[pd.DataFrame, tuple[float, float, float]]:  # fmt: skip
    """Mean distance of the easiest and the hardest examples, and the ratio of the two.

    The easiest are those with the highest score. Many F1 scores are exactly 0 or 1, so which
    examples are "the top 20 %" is often open: the examples that tie at the border share equally
    what is left to be filled, which is the expected mean if ties are broken at random. Where
    ``share`` × n is no whole number, the last example counts in part. Every resample finds its own
    border. ``score`` and ``distance`` are ``(n,)``, ``share`` is that of a tail, up to ½.

    Returns a table by ``group`` ("easiest", "hardest") of ``score`` (mean in it), ``distance``,
    ``low``, ``high`` (of the distance); and hardest over easiest with its interval, infinite where
    the easiest are at distance 0, NaN where both are. MixingError for numbers that are not one of
    each per example, examples of fewer than two groups, another share.
    """
    score, distance = np.asarray(score, np.float64), np.asarray(distance, np.float64)
    if score.ndim != 1 or score.shape != distance.shape or np.isnan([score, distance]).any():
        raise MixingError(
            f"scores {score.shape} and distances {distance.shape}: one number of each is needed"
        )
    if not 0 < share <= 0.5:
        raise MixingError(f"the share of a tail is {share}: it is above 0 and at most 0.5")
    drawn = Resamples.draw(len(score), groups, n_resamples, seed)
    _, level_of = np.unique(np.round(score / _SLACK) * _SLACK, return_inverse=True)
    has = level_of == np.arange(level_of.max() + 1)[:, None]  # (n_levels, n)
    counts, drawn_counts = has.sum(axis=1), drawn.sums(has.astype(np.float64))
    rows, resamples = [], {}
    for group, step in (("easiest", -1), ("hardest", 1)):
        mean, estimate = (
            _tail(counts, (has * values).sum(axis=1), share, step) for values in (score, distance)
        )
        resamples[group] = _tail(drawn_counts, drawn.sums(has * distance), share, step)
        rows.append((group, mean, estimate, *percentile_ends(resamples[group])))
    table = pd.DataFrame(rows, columns=["group", "score", "distance", "low", "high"])
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        ratio = np.divide(rows[1][2], rows[0][2])
        ratios = resamples["hardest"] / resamples["easiest"]
    return table, (float(ratio), *_ratio_ends(ratios))


def _tail(weights: np.ndarray, sums: np.ndarray, share: float, step: int) -> np.ndarray:
    """Mean of what is summed over a share of the weight, from the last level (-1) or the first (1).

    ``weights`` and ``sums`` are ``(..., n_levels)``, levels ascending: how many examples have the
    level, and the sum of their values. Of the level at the border each example counts alike.
    """
    weights, sums = weights[..., ::step], sums[..., ::step]
    whole = share * weights.sum(axis=-1, keepdims=True)
    before = np.cumsum(weights, axis=-1) - weights
    taken = np.clip(whole - before, 0, weights)
    part = np.divide(taken, weights, out=np.zeros_like(taken), where=weights > 0)
    return (part * sums).sum(axis=-1) / whole[..., 0]


def _ratio_ends(ratios: np.ndarray) -> tuple[float, float]:
    """Percentiles that are ratios drawn, as there is no middle between a ratio and infinity."""
    known = ratios[~np.isnan(ratios)]
    if not len(known):
        return float("nan"), float("nan")
    share = (1 - statistics.LEVEL) / 2
    low, high = np.quantile(known, [share, 1 - share], method="nearest")
    return float(low), float(high)
