"""Intervals, correlations and tests, with what is resampled said each time.

The scores of a corpus hang together: 630 language pairs share 36 languages, and all of them share
the same sentences. An interval is about what would be different next time; here that is the
sentences (`jackknife_error`, `bootstrap_kernel`) or the languages (`correlation`, the clustered
and dyadic errors of `regressions.regression`, `regressions.permutation_regression`), never the
triplets or the pairs, whose number says nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from xlx.results import checks

#: Differences of floats below this are none.
SLACK = 1e-12
#: Below this share of their size, numbers that differ are taken for equal.
ROUNDING = 1e-10
#: Two-sided 95 %.
LEVEL = 0.95


def require(table: pd.DataFrame, columns: Sequence[str]) -> None:
    """Raise ValueError for a column that is not there, or in which a value is missing."""
    for column in columns:
        if column not in table:
            raise ValueError(
                f"there is no column {column!r}: the table has {', '.join(map(str, table.columns))}"
            )
        missing = table[column].isna().to_numpy()
        if missing.any():
            raise ValueError(
                f"{column} is missing in {missing.sum()} of {len(table)} rows, first in row "
                f"{table.index[missing.argmax()]!r}: leave these rows out"
            )


def numbers(table: pd.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """Columns of a table as floats, ``(n_rows, n_columns)``.

    Raises ValueError as `require`, and for values that are infinite or no numbers.
    """
    require(table, columns)
    try:
        values = table[list(columns)].to_numpy(float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"no numbers in {' or '.join(columns)}: {error}") from error
    for column, infinite in zip(columns, np.isinf(values).T, strict=True):
        if infinite.any():
            raise ValueError(
                f"{column} is infinite in {infinite.sum()} of {len(table)} rows, first in row "
                f"{table.index[infinite.argmax()]!r}"
            )
    return values


def language_codes(table: pd.DataFrame, columns: Sequence[str]) -> tuple[np.ndarray, int]:
    """Number the names in some columns, a name alike in all: ``(n_rows, n_columns)``, how many."""
    require(table, columns)
    text = table[list(columns)].astype(str).to_numpy(str)
    names, codes = np.unique(text, return_inverse=True)
    return codes.reshape(text.shape), len(names)


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
    given: Sequence[str] = (),
    languages: Sequence[str] = ("language_1", "language_2"),
    method: str = "pearson",
    n_resamples: int = 1000,
    seed: int | np.random.Generator = 0,
    level: float = LEVEL,
) -> Correlation:
    """Correlate two scores of language pairs, with an interval that knows of their languages.

    Parameters
    ----------
    pairs : DataFrame
        The columns `languages`, `x`, `y` and `given`; one row per observation (several rows per
        pair are fine: checkpoints, layers).
    given : sequence of str
        Columns that are held: the partial correlation, of what a linear regression on them leaves
        of x and y (of their ranks, for "spearman"). It is done anew in every resample.
    languages : sequence of str
        The columns that name the languages of a row: those of a pair, or one, ``("language",)``,
        for scores of languages (accuracy against the amount of text: ABX paper, footnote 8).
    method : {"pearson", "spearman"}
    n_resamples : int
        Bootstrap over *languages*: each resample draws as many languages with replacement and
        weighs a pair by how often both of its languages were drawn. The p-value is the usual one,
        which takes the rows for independent, as the paper does; where the two disagree, believe the
        interval.

    ValueError for an unknown method; a column or a number missing; fewer than three rows, or than
    `given` and three; a score without variation, or one that follows from `given`.
    """
    if method not in ("pearson", "spearman"):
        raise ValueError(f"there is no method {method!r}: choose pearson or spearman")
    columns = numbers(pairs, (x, y, *given)).T
    if len(pairs) < 3 + len(given):
        least = f"{3 + len(given)}" if given else "three"
        raise ValueError(f"a correlation needs {least} rows or more, and there are {len(pairs)}")
    for name, values in zip((x, y, *given), columns, strict=True):
        if np.ptp(values) == 0:
            raise ValueError(f"{name} is the same in all {len(values)} rows: nothing correlates")
    checks.level(level)
    if given:
        value = float(_resampled(columns, np.ones((1, len(pairs))), method)[0])
        if np.isnan(value):
            raise ValueError(f"{x} or {y} follows from {', '.join(given)}: nothing is left of it")
        df = len(pairs) - 2 - len(given)
        p_value = 2 * stats.t.sf(abs(value) * np.sqrt(df / (1 - value**2)), df)
    else:
        test = stats.pearsonr if method == "pearson" else stats.spearmanr
        value, p_value = test(*columns)
    rng = np.random.default_rng(seed)
    rows, n = language_codes(pairs, languages)
    draws = rng.multinomial(n, np.full(n, 1 / n), size=n_resamples)
    resampled = [
        _resampled(columns, some[:, rows].prod(axis=2), method)
        for some in np.array_split(draws, max(1, n_resamples * len(pairs) // 1_000_000))
    ]
    low, high = np.nanquantile(np.concatenate(resampled), [(1 - level) / 2, (1 + level) / 2])
    return Correlation(method, float(value), float(low), float(high), float(p_value), len(pairs))


def correlations(
    table: pd.DataFrame, by: Sequence[str], x: str, y: str, **options: Any
) -> pd.DataFrame:
    """`correlation` of each group of rows, and none where there is nothing to correlate.

    A row for each group, in the order of their first rows: the columns ``by``, ``r``, ``low``,
    ``high`` and ``n``, the number of rows; NaN where these are fewer than three, or x or y is
    missing in one of them or the same in all. ``options`` and errors as of `correlation`.
    """
    require(table, by)
    lines = []
    for key, rows in table.groupby(list(by), sort=False):
        ends = (np.nan,) * 3
        values = rows[[x, y]]
        if len(rows) > 2 and values.notna().all(axis=None) and (values.nunique() > 1).all():
            r = correlation(rows, x, y, **options)
            ends = r.value, r.low, r.high
        lines.append((*key, *ends, len(rows)))
    return pd.DataFrame(lines, columns=[*by, "r", "low", "high", "n"])


def partial_correlations(
    pairs: pd.DataFrame, x: str, y: str, sets: Mapping[str, Sequence[str]], **options: Any
) -> pd.DataFrame:
    """`correlation` given several sets of columns: label → those that are held.

    A row a set and method (both): ``given`` (the label), ``method``, ``r``, ``low``, ``high``.
    """
    rows = []
    for label, given in sets.items():
        for method in ("pearson", "spearman"):
            r = correlation(pairs, x, y, given=given, method=method, **options)
            rows.append((label, method, r.value, r.low, r.high))
    return pd.DataFrame(rows, columns=["given", "method", "r", "low", "high"])


def _resampled(columns: Sequence[np.ndarray], weight: np.ndarray, method: str) -> np.ndarray:
    """Correlations of rows that count ``weight`` times each, ``(k, n)`` → ``(k,)``.

    Of the first two columns, each ``(n,)``, given the others. NaN where fewer than three rows are
    left, one of the two is the same number in all of them, or follows from the others.
    """
    weight = weight.astype(float)
    varies = (weight > 0).sum(axis=1) > 2
    for values in columns[:2]:
        varies &= _varies(values, weight)
    weight = weight[varies]
    if method == "spearman":
        columns = [_weighted_ranks(values, weight) for values in columns]
    weight /= weight.sum(axis=1, keepdims=True)
    columns = [values - (weight * values).sum(axis=1, keepdims=True) for values in columns]
    if len(columns) > 2:
        columns = _left(columns, weight)
    x, y = columns[:2]
    scale = np.sqrt((weight * x**2).sum(axis=1) * (weight * y**2).sum(axis=1))
    r = np.full(len(varies), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        r[varies] = (weight * x * y).sum(axis=1) / scale
    return r


def _left(columns: Sequence[np.ndarray], weight: np.ndarray) -> list[np.ndarray]:
    """What weighted least squares on the further columns leaves of the first two, ``(k, n)`` each.

    Nothing but rounding left is set to zero. All columns are centred.
    """
    root = np.sqrt(weight)
    given = np.stack(columns[2:], axis=2)  # (k, n, g)
    inverse = np.linalg.pinv(root[:, :, None] * given)
    left = []
    for values in columns[:2]:
        rest = values - (given @ (inverse @ (root * values)[:, :, None]))[:, :, 0]
        kept = (weight * rest**2).sum(axis=1) > ROUNDING * (weight * values**2).sum(axis=1)
        left.append(np.where(kept[:, None], rest, 0.0))
    return left


def _varies(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Whether two of the rows that count have different numbers, ``(k, n)`` → ``(k,)``."""
    kept = weight > 0
    highest = np.where(kept, values, -np.inf).max(axis=1)
    return highest > np.where(kept, values, np.inf).min(axis=1)


def _weighted_ranks(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Mean rank of each value if it stood there ``weight`` times, ``(k, n)``."""
    order = np.argsort(values, kind="stable")
    first = np.r_[0, 1 + np.flatnonzero(np.diff(values[order]))]  # of each run of equal values
    mass = np.add.reduceat(weight[:, order], first, axis=1)
    rank = np.empty(len(values), dtype=int)
    rank[order] = np.repeat(np.arange(len(first)), np.diff(np.r_[first, len(values)]))
    return (np.cumsum(mass, axis=1) - mass / 2)[:, rank]


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
