"""The signed-rank test of paired differences, exact also with ties."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from xlx.core.statistics.tables import LEVEL


@dataclass(frozen=True)
class Wilcoxon:
    """Signed-rank test of differences, with the Hodges-Lehmann estimate of their centre.

    ``estimate`` is the median of all means of two differences (of one with itself too), ``low`` and
    ``high`` its 95 % interval.
    """

    p_value: float
    estimate: float
    low: float
    high: float


def wilcoxon(differences: Sequence[float] | np.ndarray) -> Wilcoxon:
    """Test that differences are symmetric about zero (two-sided).

    The p-value is exact, also with ties: all 2ⁿ ways to sign the ranks are counted (time grows with
    the cube of n; some hundreds are no trouble). Differences of zero are left out of it, as
    Wilcoxon did and scipy does; if all are zero, it is 1. Differences that agree to 12 decimals
    count as tied. The estimate and its interval, which inverts the exact test of untied
    differences, hold the zeros as well, so with many zeros the interval may touch zero where the
    p-value is small; with too few differences it is infinite.

    ValueError for no differences, or one that is missing or infinite.
    """
    values = np.asarray(differences, float).ravel()
    if not len(values) or not np.isfinite(values).all():
        raise ValueError(
            f"a signed-rank test needs numbers: of {len(values)} differences "
            f"{(~np.isfinite(values)).sum()} are missing or infinite"
        )
    values = values.round(12)
    kept = values[values != 0]
    ranks = stats.rankdata(np.abs(kept))
    statistic = ranks[kept > 0].sum()
    mass = _signed_ranks(np.rint(2 * ranks).astype(int))  # ranks of ties are halves
    half_steps = round(2 * statistic)
    tails = mass[: half_steps + 1].sum(), mass[half_steps:].sum()
    p_value = min(1.0, 2 * min(tails))
    walsh = np.sort(np.add.outer(values, values)[np.triu_indices(len(values))] / 2)
    below = np.cumsum(_signed_ranks(np.arange(1, len(values) + 1)))
    left_out = int(np.searchsorted(below, (1 - LEVEL) / 2, side="right"))
    low, high = (walsh[left_out - 1], walsh[-left_out]) if left_out else (-np.inf, np.inf)
    return Wilcoxon(*map(float, (p_value, np.median(walsh), low, high)))


def _signed_ranks(ranks: np.ndarray) -> np.ndarray:
    """Probability of each sum of the ranks, whole numbers, of which a coin picks some."""
    mass = np.zeros(ranks.sum() + 1)
    mass[0] = 1
    for rank in ranks:
        mass[rank:] = (mass[rank:] + mass[: len(mass) - rank]) / 2
        mass[:rank] /= 2
    return mass
