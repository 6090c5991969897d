"""Intervals, correlations and tests, with what is resampled said each time.

The scores of a corpus hang together: 630 language pairs share 36 languages, and all of them share
the same sentences. An interval is about what would be different next time; here that is the
sentences (`jackknife_error`, `bootstrap_kernel`) or the languages (`correlation`), never the
triplets or the pairs, whose number says nothing.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

#: Two-sided 95 %.
LEVEL = 0.95


def jackknife_error(influence: np.ndarray, order: int = 2) -> np.ndarray:
    """Standard error of a score, from the influence of its positions.

    A score over all ordered pairs of positions is a U-statistic of order two (Hoeffding 1948); with
    g_i the mean of the pairs that hold position i and U the mean of the g_i, leaving i out gives
    (n U - 2 g_i) / (n - 2), so the jackknife variance is

        4 (n - 1) / (n (n - 2)²) · Σ (g_i - U)²

    Parameters
    ----------
    influence : numpy.ndarray
        ``(..., n)``; any average of scores has the average of their influences.
    order : {2, 1}
        2 for LD and MD; 1 for a mean over single positions (retrieval; its pool of candidates is
        taken as given).
    """
    n = influence.shape[-1]
    influence = influence.astype(np.float64)
    squares = ((influence - influence.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1)
    if order == 1:
        return np.sqrt(squares / (n * (n - 1)))
    if n < 3:
        raise ValueError(f"an interval needs three sentences or more, and there are {n}")
    return np.sqrt(4 * (n - 1) / (n * (n - 2) ** 2) * squares)


def half_width(error: np.ndarray | float, level: float = LEVEL) -> np.ndarray:
    """Half the width of the normal interval of an estimate with this standard error."""
    return stats.norm.ppf((1 + level) / 2) * np.asarray(error)


def interval(
    score: np.ndarray | float, error: np.ndarray | float, level: float = LEVEL
) -> tuple[np.ndarray, np.ndarray]:
    """Normal interval of a score in [0, 1], cut there: (low, high)."""
    width = half_width(error, level)
    return np.clip(score - width, 0, 1), np.clip(score + width, 0, 1)


def bootstrap_kernel(
    kernel: np.ndarray, n_resamples: int, seed: int | np.random.Generator
) -> np.ndarray:
    """Bootstrap the mean of a kernel over ordered pairs of positions, by resampling positions.

    Parameters
    ----------
    kernel : numpy.ndarray
        ``(n, n)`` or ``(k, n, n)`` (averaged over k); the diagonal is not used.

    Returns
    -------
    numpy.ndarray
        ``(n_resamples,)``: the score of each resampled corpus. A pair of two copies of one
        position is no triplet ("other meaning" would be untrue) and is left out.
    """
    rng = np.random.default_rng(seed)
    matrix = kernel if kernel.ndim == 2 else kernel.mean(axis=0)
    matrix = matrix.astype(np.float64).copy()
    np.fill_diagonal(matrix, 0.0)
    n = len(matrix)
    counts = rng.multinomial(n, np.full(n, 1 / n), size=n_resamples).astype(np.float64)
    total = np.einsum("ri,ri->r", counts @ matrix, counts)
    return total / (n**2 - (counts**2).sum(axis=1))


def share_interval(successes: float, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson interval of a share of independent trials (a tie is half a success)."""
    return proportion_confint(successes, n, alpha=1 - level, method="wilson")


@dataclass(frozen=True)
class Correlation:
    """A correlation coefficient in [-1, 1] with its interval and p-value."""

    method: str
    value: float
    low: float
    high: float
    p_value: float
    n: int


def correlation(
    pairs: pd.DataFrame,
    x: str,
    y: str,
    *,
    method: str = "pearson",
    n_resamples: int = 1000,
    seed: int | np.random.Generator = 0,
    level: float = LEVEL,
) -> Correlation:
    """Correlate two scores of language pairs, with an interval that knows of their languages.

    Parameters
    ----------
    pairs : DataFrame
        Columns ``language_1``, ``language_2``, `x` and `y`; one row per observation (several rows
        per pair are fine: checkpoints, layers).
    method : {"pearson", "spearman"}
    n_resamples : int
        Bootstrap over *languages*: each resample draws as many languages with replacement and
        weighs a pair by how often both of its languages were drawn. The p-value is the usual one,
        which takes the rows for independent, as the paper does; where the two disagree, believe the
        interval.

    Raises
    ------
    ValueError
        Unknown method; fewer than three rows; a score without variation.
    """
    if method not in ("pearson", "spearman"):
        raise ValueError(f"there is no method {method!r}: choose pearson or spearman")
    first, second = pairs[x].to_numpy(float), pairs[y].to_numpy(float)
    if len(pairs) < 3:
        raise ValueError(f"a correlation needs three rows or more, and there are {len(pairs)}")
    for name, values in ((x, first), (y, second)):
        if np.ptp(values) == 0:
            raise ValueError(f"{name} is the same in all {len(values)} rows: nothing correlates")
    test = stats.pearsonr if method == "pearson" else stats.spearmanr
    value, p_value = test(first, second)
    rng = np.random.default_rng(seed)
    languages = sorted(set(pairs["language_1"]) | set(pairs["language_2"]))
    row = {language: index for index, language in enumerate(languages)}
    one = pairs["language_1"].map(row).to_numpy(int)
    other = pairs["language_2"].map(row).to_numpy(int)
    n = len(languages)
    draws = rng.multinomial(n, np.full(n, 1 / n), size=n_resamples)
    found = np.empty(n_resamples)
    for index, drawn in enumerate(draws):
        found[index] = _weighted(first, second, drawn[one] * drawn[other], method)
    low, high = np.nanquantile(found, [(1 - level) / 2, (1 + level) / 2])
    return Correlation(method, float(value), float(low), float(high), float(p_value), len(pairs))


def _weighted(x: np.ndarray, y: np.ndarray, weight: np.ndarray, method: str) -> float:
    """Correlation of rows that count ``weight`` times each; NaN where too few are left."""
    kept = weight > 0
    if kept.sum() < 3:
        return np.nan
    x, y, weight = x[kept], y[kept], weight[kept].astype(float)
    if method == "spearman":
        x, y = _weighted_ranks(x, weight), _weighted_ranks(y, weight)
    weight /= weight.sum()
    x, y = x - weight @ x, y - weight @ y
    scale = np.sqrt((weight @ x**2) * (weight @ y**2))
    return float(weight @ (x * y) / scale) if scale > 0 else np.nan


def _weighted_ranks(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Mean rank of each value if it stood there ``weight`` times."""
    unique, inverse = np.unique(values, return_inverse=True)
    mass = np.bincount(inverse, weights=weight, minlength=len(unique))
    return (np.cumsum(mass) - mass / 2)[inverse]
