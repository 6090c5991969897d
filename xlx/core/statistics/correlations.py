"""Correlations over language pairs, with intervals that know of the languages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from xlx.core import checks
from xlx.core.statistics.tables import LEVEL, ROUNDING, language_codes, numbers, require


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
