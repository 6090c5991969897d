"""Tests by exchanging languages (MRQAP): what hangs together through one still does."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from xlx.core.statistics.regressions import least_squares
from xlx.core.statistics.tables import ROUNDING, language_codes


def permutation_regression(
    table: pd.DataFrame,
    outcome: str,
    predictors: Sequence[str],
    *,
    languages: Sequence[str] = ("source", "target"),
    n_permutations: int = 9999,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """Test the coefficients of a regression over language pairs by exchanging languages.

    MRQAP with double semi-partialling (Dekker, Krackhardt and Snijders 2007): what a predictor has
    of its own, its residual on the other predictors, is a matrix over pairs of languages; its rows
    and columns are permuted together, so that what hangs together through a language still does,
    and the regression is fitted again. The p-value is the share of permutations, the observed order
    counted as one, whose t statistic is as large in absolute value.

    ``table`` has one row for each ordered pair of ``languages`` (with or without those of a
    language with itself), or one for each unordered pair; none missing. One row a predictor:
    ``term``, ``coefficient``, ``p_value``.

    ValueError as `regression`; for a pair of languages that is missing or twice there, and for
    fewer than three languages.
    """
    fit = least_squares(table, outcome, predictors)
    row = _matrix(table, languages)
    n = len(row)
    first, second = np.nonzero(row >= 0)
    place = row[first, second]  # every row once, or for unordered pairs twice
    _, once = np.unique(place, return_index=True)
    rng = np.random.default_rng(seed)
    orders = rng.permuted(np.tile(np.arange(n), (n_permutations, 1)), axis=1)
    exog = fit.model.exog
    terms, observed = [], []
    for index in range(1, 1 + len(predictors)):
        basis, _ = np.linalg.qr(np.delete(exog, index, axis=1))
        own, rest = (v - basis @ (basis.T @ v) for v in (exog[:, index], fit.model.endog))
        terms.append((own, basis, rest))
        # |t| grows with the partial correlation, and that needs no further fit
        observed.append(abs(_partial(own[None], basis, rest)[0]))
    larger = np.zeros(len(predictors), dtype=int)
    for order in np.array_split(orders, max(1, len(orders) * len(table) // 1_000_000)):
        moved = row[order[:, first[once]], order[:, second[once]]]
        for index, (own, basis, rest) in enumerate(terms):
            partial = _partial(own[moved], basis, rest)
            larger[index] += (np.abs(partial) >= observed[index] - ROUNDING).sum()
    return pd.DataFrame(
        {
            "term": list(predictors),
            "coefficient": fit.params[1 : 1 + len(predictors)],
            "p_value": (1 + larger) / (1 + n_permutations),
        }
    )


def _partial(x: np.ndarray, others: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Correlation of ``(k, n)`` vectors, cleared of an orthonormal basis, with a cleared one."""
    within = x @ others
    left = np.einsum("kn,kn->k", x, x)
    # What is left of a vector within the basis is rounding, and has no direction.
    left = np.where(left * ROUNDING < (away := left - (within**2).sum(axis=1)), away, 0)
    scale = np.sqrt(left) * np.linalg.norm(rest)
    return np.divide(x @ rest, scale, out=np.zeros(len(x)), where=scale > 0)


def _matrix(table: pd.DataFrame, languages: Sequence[str]) -> np.ndarray:
    """Which row of the table holds a pair, ``(n, n)``; -1 for those of a language with itself."""
    codes, n = language_codes(table, languages)
    if n < 3:
        raise ValueError(f"there must be three languages or more, and there are {n}")
    counts = np.zeros((n, n), int)
    np.add.at(counts, tuple(codes.T), 1)
    if counts.max() > 1:
        one = table.iloc[np.flatnonzero(counts[tuple(codes.T)] > 1)[0]]
        raise ValueError(
            f"{languages[0]} {one[languages[0]]} with {languages[1]} {one[languages[1]]} is there "
            "more than once: one row a pair is needed"
        )
    row = np.full((n, n), -1)
    row[tuple(codes.T)] = np.arange(len(table))
    off_diagonal = ~np.eye(n, dtype=bool)
    unordered = (counts + counts.T)[off_diagonal].max() == 1
    if unordered:
        row = np.maximum(row, row.T)
    holes = (row < 0) & off_diagonal
    own = np.diag(row) >= 0
    if holes.any() or (own.any() and not own.all()):
        n_missing = holes.sum() // (2 if unordered else 1) or (~own).sum()
        raise ValueError(
            f"{n_missing} of the pairs of {n} languages are missing: permuting languages needs all "
            "of them (those of a language with itself for all languages or for none)"
        )
    return row
