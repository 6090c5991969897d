"""Intervals and errors of scores: jackknife, bootstrap, shares, power."""

from collections.abc import Iterable, Sequence

import numpy as np
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from xlx.core import checks
from xlx.core.statistics.tables import LEVEL, SLACK


def jackknife_error(influence: np.ndarray, order: int = 2) -> np.ndarray:
    """Standard error of a score, from the influence of its positions, ``(..., n)``.

    A score over all ordered pairs of positions is a U-statistic of order two (Hoeffding 1948); with
    g_i the mean of the pairs that hold position i and U the mean of the g_i, leaving i out gives
    (n U - 2 g_i) / (n - 2), so the jackknife variance is

        4 (n - 1) / (n (n - 2)²) · Σ (g_i - U)²

    Any average of scores has the average of their influences. ``order`` is 2 for LD and MD, and 1
    for a mean over single positions (retrieval; its pool of candidates is taken as given).
    """
    n = influence.shape[-1]
    influence = influence.astype(np.float64)
    squares = ((influence - influence.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1)
    if order == 1:
        return np.sqrt(squares / (n * (n - 1)))
    if n < 3:
        raise ValueError(f"an interval needs three sentences or more, and there are {n}")
    return np.sqrt(4 * (n - 1) / (n * (n - 2) ** 2) * squares)


def left_out_error(
    score: np.ndarray | float, left_out: np.ndarray, sizes: Sequence[int] | np.ndarray
) -> np.ndarray:
    """Standard error of a score, from the scores without each of k groups, ``(..., k)``.

    The delete-a-group jackknife; ``sizes``, ``(k,)``, is how many of the n positions a group holds:

        k / (k - 1) · Σ over the groups of ((1 - size / n) (score without it - score))²

    With a position a group it is the ordinary jackknife.
    It asks nothing of the score: of a ratio, such as MD under a mask, too. NaN where a score
    without a group is one. ValueError for fewer than two groups.
    """
    sizes = np.asarray(sizes, dtype=np.float64)
    if len(sizes) < 2:
        raise ValueError("an interval over groups needs two of them or more, and there is one")
    apart = (left_out - np.asarray(score)[..., None]) * (1 - sizes / sizes.sum())
    return np.sqrt(len(sizes) / (len(sizes) - 1) * (apart**2).sum(axis=-1))


def half_width(error: np.ndarray | float, level: float = LEVEL) -> np.ndarray:
    """Half the width of the normal interval of an estimate with this standard error."""
    return stats.norm.ppf((1 + checks.level(level)) / 2) * np.asarray(error)


def interval(score: np.ndarray | float, error: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """Normal 95 % interval of a score in [0, 1], cut there: (low, high)."""
    width = half_width(error)
    return np.clip(score - width, 0, 1), np.clip(score + width, 0, 1)


def bootstrap_kernel(
    kernel: np.ndarray, n_resamples: int, seed: int | np.random.Generator
) -> np.ndarray:
    """Bootstrap the mean of a kernel over ordered pairs of positions, by resampling positions.

    ``kernel``: ``(n, n)`` or ``(k, n, n)`` (averaged over k); the diagonal is not used. The score
    of each resampled corpus, ``(n_resamples,)``. A pair of two copies of one position is no triplet
    ("other meaning" would be untrue) and is left out.
    """
    rng = np.random.default_rng(seed)
    matrix = kernel if kernel.ndim == 2 else kernel.mean(axis=0)
    matrix = matrix.astype(np.float64).copy()
    np.fill_diagonal(matrix, 0.0)
    n = len(matrix)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=n_resamples).astype(np.float64)
    total = np.einsum("ri,ri->r", counts @ matrix, counts)
    return total / (n**2 - (counts**2).sum(axis=1))


def verdicts(low: Sequence[float], high: Sequence[float], expected: int = 1) -> list[str]:
    """What intervals of a difference say of its expected sign (1 or -1), each in a word.

    "yes": the whole interval lies on that side of zero; "the opposite": on the other; "not seen":
    it holds zero.
    """
    return [
        "yes" if min(ends) > 0 else "the opposite" if max(ends) < 0 else "not seen"
        for ends in zip(expected * np.asarray(low), expected * np.asarray(high), strict=True)
    ]


def pooled_spread(groups: Iterable[Sequence[float]]) -> tuple[float, int]:
    """Standard deviation within groups of repeated values, and its degrees of freedom.

    As if it were one in all of them. A group of one value says nothing; NaN where there is no
    second value at all.
    """
    values = [np.asarray(group, dtype=float) for group in groups]
    freedom = sum(len(group) - 1 for group in values)
    squares = sum(float(((group - group.mean()) ** 2).sum()) for group in values)
    return (float(np.sqrt(squares / freedom)) if freedom else np.nan), freedom


def reach_of_two(sd: float, freedom: int, level: float = LEVEL) -> float:
    """What the difference of two values of a spread stays below, in that share of cases.

    Of Student's t, as the spread is an estimate of its ``freedom``; NaN where that is 0.
    """
    if not freedom:
        return np.nan
    return float(stats.t.ppf((1 + checks.level(level)) / 2, freedom) * np.sqrt(2) * sd)


def power(effect: float, error: float, df: float) -> float:
    """How often a two-sided t test (p < 0.05) finds an effect of this size, given its error.

    From the noncentral t distribution; at an effect of zero it is 0.05.
    """
    bound, shift = stats.t.ppf((1 + LEVEL) / 2, df), effect / error
    return float(stats.nct.sf(bound, df, shift) + stats.nct.cdf(-bound, df, shift))


def share_interval(successes: float, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson interval of a share of independent trials (a tie is half a success)."""
    return proportion_confint(successes, n, alpha=1 - checks.level(level), method="wilson")


def window(training_error: np.ndarray, level: float, tolerance: float) -> np.ndarray:
    """Which models have 0 ≤ E_train - E' < ε (Equation 5), boolean ``(m,)``.

    Decimals are taken for what they say: 0.2 - 0.025 · 3 is 0.125, though the float is above.
    """
    if not tolerance > 0:
        raise ValueError(f"the tolerance must be above 0, not {tolerance}: no model is in ε = 0")
    above = np.asarray(training_error) - level
    return (above > -SLACK) & (above < tolerance - SLACK)


def resample_counts(n: int, n_resamples: int, rng: np.random.Generator) -> np.ndarray:
    """How often each of n examples is in a bootstrap sample: ``(n_resamples, n)``."""
    return rng.multinomial(n, np.full(n, 1 / n), size=n_resamples).astype(np.float32)
