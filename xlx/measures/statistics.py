"""Intervals, correlations and tests, with what is resampled said each time.

The scores of a corpus hang together: 630 language pairs share 36 languages, and all of them share
the same sentences. An interval is about what would be different next time; here that is the
sentences (`left_out_error`) or the languages (`correlation`), never the triplets or the pairs,
whose number says nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from xlx.results import checks
from xlx.results.deferred import deferred

stats = deferred("scipy.stats")

#: Differences of floats below this are none.
SLACK = 1e-12
#: Below this share of their size, numbers that differ are taken for equal.
ROUNDING = 1e-10
#: Two-sided 95 %.
LEVEL = 0.95


def require(table: pd.DataFrame, columns: Sequence[str]) -> None:
    """ValueError for a column that is not there, or in which a value is missing."""
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

    ValueError as `require`, and for values that are infinite or no numbers.
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


def left_out_error(
    score: np.ndarray | float, left_out: np.ndarray, sizes: Sequence[int] | np.ndarray
) -> np.ndarray:
    """Standard error of a score, from the scores without each of k groups, ``(..., k)``.

    The delete-a-group jackknife, also of a ratio; ``sizes``, ``(k,)``, is how many of the n
    positions a group holds (one each: the ordinary jackknife):

        k / (k - 1) · Σ over the groups of ((1 - size / n) (score without it - score))²

    NaN where a score without a group is one. ValueError for fewer than two groups.
    """
    sizes = np.asarray(sizes, dtype=np.float64)
    if len(sizes) < 2:
        raise ValueError("an interval over groups needs two of them or more, and there is one")
    apart = (left_out - np.asarray(score)[..., None]) * (1 - sizes / sizes.sum())
    return np.sqrt(len(sizes) / (len(sizes) - 1) * (apart**2).sum(axis=-1))


def half_width(error: np.ndarray | float) -> np.ndarray:
    """Half the width of the normal 95 % interval of an estimate with this standard error."""
    return stats.norm.ppf((1 + LEVEL) / 2) * np.asarray(error)


def interval(score: np.ndarray | float, error: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """Normal 95 % interval of a score in [0, 1], cut there: (low, high)."""
    width = half_width(error)
    return np.clip(score - width, 0, 1), np.clip(score + width, 0, 1)


def share_interval(successes: float, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson interval of a share of independent trials (a tie is half a success)."""
    from statsmodels.stats.proportion import proportion_confint

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
) -> Correlation:
    """Correlate two scores of language pairs, with an interval that knows of their languages.

    ``pairs`` has the columns ``languages``, ``x``, ``y`` and ``given``, a row per observation
    (several per pair are fine: checkpoints, layers). ``languages`` name those of a row: two, or
    one, ``("language",)``, for scores of languages (ABX paper, footnote 8). ``method``: "pearson"
    or "spearman". ``given`` are held: the partial correlation, of what a linear regression on them
    leaves of x and y (of their ranks, for "spearman"), done anew in every resample.

    The bootstrap is over *languages*: each resample draws as many with replacement and weighs a
    pair by how often both of its languages were drawn. The p-value is the usual one, which takes
    the rows for independent, as the paper does; where the two disagree, believe the interval.

    ValueError for an unknown method; a column or a number missing; fewer than three rows, or than
    ``given`` and three; a score without variation, or one that follows from ``given``.
    """
    checks.one_of(method, ("pearson", "spearman"), "method")
    columns = numbers(pairs, (x, y, *given)).T
    if len(pairs) < 3 + len(given):
        least = f"{3 + len(given)}" if given else "three"
        raise ValueError(f"a correlation needs {least} rows or more, and there are {len(pairs)}")
    for name, values in zip((x, y, *given), columns, strict=True):
        if np.ptp(values) == 0:
            raise ValueError(f"{name} is the same in all {len(values)} rows: nothing correlates")
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
    low, high = np.nanquantile(np.concatenate(resampled), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Correlation(method, float(value), float(low), float(high), float(p_value), len(pairs))


def correlations(
    table: pd.DataFrame, by: Sequence[str], x: str, y: str, **options: Any
) -> pd.DataFrame:
    """`correlation` of each group of rows, and none where there is nothing to correlate.

    A row for each group, in the order of their first rows: the columns ``by``, ``r``, ``low``,
    ``high`` and ``n``, the number of rows; NaN where these are fewer than three, or x or y is
    missing in one of them or the same in all. ``options`` as of `correlation`.
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


def _resampled(columns: Sequence[np.ndarray], weight: np.ndarray, method: str) -> np.ndarray:
    """Correlations of rows that count ``weight`` times each, ``(k, n)`` → ``(k,)``.

    Of the first two columns, ``(n,)``, given the others. NaN where fewer than three rows are left,
    one of the two is the same number in all of them, or follows from the others.
    """
    weight = weight.astype(float)
    kept = weight > 0
    varies = kept.sum(axis=1) > 2
    for values in columns[:2]:
        highest = np.where(kept, values, -np.inf).max(axis=1)
        varies &= highest > np.where(kept, values, np.inf).min(axis=1)
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

    All columns are centred; nothing but rounding left is set to zero.
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


def _weighted_ranks(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Mean rank of each value if it stood there ``weight`` times, ``(k, n)``."""
    order = np.argsort(values, kind="stable")
    first = np.r_[0, 1 + np.flatnonzero(np.diff(values[order]))]  # of each run of equal values
    mass = np.add.reduceat(weight[:, order], first, axis=1)
    rank = np.empty(len(values), dtype=int)
    rank[order] = np.repeat(np.arange(len(first)), np.diff(np.r_[first, len(values)]))
    return (np.cumsum(mass, axis=1) - mass / 2)[:, rank]
