"""Linear regressions over language pairs, with several views of how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xlx.measures.statistics import ROUNDING, half_width, language_codes, numbers
from xlx.results import checks
from xlx.results.deferred import deferred

stats = deferred("scipy.stats")
linear_model = deferred("statsmodels.regression.linear_model")
sandwich = deferred("statsmodels.stats.sandwich_covariance")


@dataclass(frozen=True)
class Regression:
    """A linear regression with an intercept, by ordinary least squares.

    ``table``: one row per ``term`` ("intercept", then the predictors) and kind of ``errors``
    (`regression`): ``coefficient``, ``error`` (standard error), ``df`` (of the t distribution
    behind ``low``, ``high`` and the two-sided ``p_value``).
    """

    table: pd.DataFrame
    r_squared: float

    def by(self, errors: str) -> pd.DataFrame:
        """The rows of the predictors with one kind of errors."""
        rows = self.table[self.table["errors"] == errors]
        return rows[rows["term"] != "intercept"]


def regression(
    table: pd.DataFrame, outcome: str, predictors: Sequence[str], *, clusters: Sequence[str] = ()
) -> Regression:
    """Regress an outcome on predictors, with several views of how sure the coefficients are.

        outcome ~ β₀ + β₁ · predictor₁ + β₂ · predictor₂ + ε

    (ABX paper, section 5.2: accuracy on LD and MD.) The views differ in what they assume of ε:

    - "classical": independent and of equal variance. What the paper prints.
    - "robust": independent (HC3, MacKinnon and White 1985). NaN where a row is fitted by a term of
      its own.
    - "clustered": rows that share a source *or* a target may depend on each other (Cameron, Gelbach
      and Miller 2011). Each part has its small-sample factor G/(G-1) · (n-1)/(n-k); t with
      min(G) - 1 degrees of freedom.
    - "dyadic": any two rows that share a language, as source or target (Aronow, Samii and Assenova
      2015); factor and degrees of freedom as above, with G the number of languages (our addition).
      The one for transfer, and the only one of use for unordered pairs.

    The last two are differences of matrices; where the result has a negative eigenvalue, nothing is
    taken off (Davezies, D'Haultfœuille and Guyonvarch 2018), which errs on the safe side. All four
    are approximate with few languages: where 18 have an effect of their own on predictor and error,
    as source and as target, simulated 95 % intervals hold the truth in some 47 % (classical), 72 %
    (clustered) and 86 % (dyadic) of cases.

    ``clusters``: the two columns that name the languages of a pair, for the last two.

    ValueError for a column or number missing; no more rows than terms; an outcome or predictor that
    is the same in all rows; predictors of which one follows from the others; a
    cluster column with a single cluster.
    """
    fit, rows = least_squares(table, outcome, predictors), []
    for kind, (covariance, df) in _covariances(fit, table, clusters).items():
        view = {
            "term": ["intercept", *predictors],
            "coefficient": fit.params,
            "errors": kind,
            "error": np.sqrt(np.diag(covariance)),
            "df": df,
        }
        rows.append(student(pd.DataFrame(view)))
    return Regression(pd.concat(rows, ignore_index=True), float(fit.rsquared))


def student(table: pd.DataFrame) -> pd.DataFrame:
    """With ``low``, ``high`` and two-sided ``p_value`` of ``coefficient``, ``error`` and ``df``."""
    value, error, df = table["coefficient"], table["error"], table["df"]
    width = half_width(error, df)
    p_value = 2 * stats.t.sf(np.abs(value / error), df)
    return table.assign(low=value - width, high=value + width, p_value=p_value)


def least_squares(
    table: pd.DataFrame, outcome: str, predictors: Sequence[str], effects: Sequence[str] = ()
) -> linear_model.RegressionResults:
    """Least squares with an intercept, or an error that says what stands in the way.

    Terms: the intercept, the predictors, then one for each name of an effect but its first.
    """
    if not predictors:
        raise ValueError("a regression needs one predictor or more")
    values = numbers(table, [outcome, *predictors])
    design = [np.ones((len(values), 1)), values[:, 1:]]
    for name in effects:
        codes, n_names = language_codes(table, [name])
        design.append((codes == np.arange(1, n_names)).astype(float))
    exog = np.column_stack(design)
    n, n_terms = exog.shape
    if n <= n_terms:
        raise ValueError(f"{n} rows are too few for {n_terms} terms: there must be more than that")
    for name, column in zip([outcome, *predictors], values.T, strict=True):
        if np.ptp(column) <= ROUNDING * np.abs(column).max():
            raise ValueError(f"{name} is the same in all {n} rows: it explains nothing")
    x = exog[:, 1:]
    standard = (x - x.mean(axis=0)) / x.std(axis=0)
    if np.linalg.matrix_rank(standard, rtol=np.sqrt(ROUNDING)) < x.shape[1]:
        raise ValueError(
            f"of {', '.join([*predictors, *effects])} one follows from the others (perfect "
            "collinearity): their effects cannot be told apart; leave one out"
        )
    return linear_model.OLS(values[:, 0], exog).fit()


def _covariances(
    fit: linear_model.RegressionResults, table: pd.DataFrame, clusters: Sequence[str]
) -> dict[str, tuple[np.ndarray, int]]:
    """Kind of error → covariance of the coefficients that are kept, and its df."""
    df = int(fit.df_resid)
    robust = fit.cov_HC3
    if fit.get_influence().hat_matrix_diag.max() > 1 - ROUNDING:  # HC3 divides by 1 - leverage
        robust = np.full_like(robust, np.nan)
    views = {"classical": (fit.cov_params(), df), "robust": (robust, df)}
    if not clusters:
        return views
    codes, n_names = language_codes(table, clusters)
    sizes = [len(np.unique(column)) for column in codes.T]
    for name, size in zip(clusters, sizes, strict=True):
        if size < 2:
            raise ValueError(f"{name} is the same in all rows: errors need two clusters or more")
    both, first, second = sandwich.cov_cluster_2groups(fit, codes)
    views["clustered"] = _positive(both, first + second), min(sizes) - 1
    views["dyadic"] = _positive(*_dyadic(fit, codes)), n_names - 1
    return views


def _dyadic(
    fit: linear_model.RegressionResults, codes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Covariance that lets any two rows with a language in common depend on each other.

    The sum of s_d s_d'ᵀ over all rows d, d' with a language in common (s: predictors times
    residual): with S_i the sum over the rows that hold language i, Σ_i S_i S_iᵀ counts two rows of
    one pair of languages once too often, and Σ over pairs of languages takes that back. Returns the
    covariance, and what it is before that is taken back.
    """
    scores = fit.model.exog * fit.resid[:, None]
    n, n_terms = scores.shape
    n_names = codes.max() + 1
    same = codes[:, 0] == codes[:, 1]  # from a language to itself: held once
    by_name = np.zeros((n_names, n_terms))
    np.add.at(by_name, codes[:, 0], scores)
    np.add.at(by_name, codes[~same, 1], scores[~same])
    low, high = codes[~same].min(axis=1), codes[~same].max(axis=1)
    by_pair = np.zeros((n_names * n_names, n_terms))
    np.add.at(by_pair, low * n_names + high, scores[~same])
    bread = fit.normalized_cov_params * np.sqrt(n_names / (n_names - 1) * (n - 1) / (n - n_terms))
    names = bread @ by_name.T @ by_name @ bread
    return names - bread @ by_pair.T @ by_pair @ bread, names


def _positive(covariance: np.ndarray, undiminished: np.ndarray) -> np.ndarray:
    """A difference of matrices, or without what is subtracted if it has a negative eigenvalue."""
    values = np.linalg.eigvalsh(covariance)
    return undiminished if values.min() < -ROUNDING * np.abs(values).max() else covariance


def fitted_line(
    table: pd.DataFrame, x: str, y: str, *, clusters: Sequence[str] = (), errors: str = "classical"
) -> pd.DataFrame:
    """The regression line of one predictor, with the 95 % band of its mean response.

    100 rows over the range of `x`: ``x``, ``y`` (on the line), ``low``, ``high`` (where the line
    may run). ``errors``, ``clusters`` and ValueError as `regression`.
    """
    fit = least_squares(table, y, [x])
    kinds = _covariances(fit, table, clusters)
    checks.one_of(errors, kinds, "kind of error")
    covariance, df = kinds[errors]
    grid = np.linspace(*np.quantile(fit.model.exog[:, 1], [0, 1]), 100)
    points = np.column_stack([np.ones(len(grid)), grid])
    mean = points @ fit.params
    variance = np.einsum("pi,ij,pj->p", points, covariance, points)
    width = half_width(np.sqrt(variance.clip(0)), df)
    return pd.DataFrame({"x": grid, "y": mean, "low": mean - width, "high": mean + width})
