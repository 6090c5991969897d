"""Linear regressions over language pairs, with several views of how sure they are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.regression.linear_model import OLS, RegressionResults
from statsmodels.stats.diagnostic import het_breuschpagan
from statsmodels.stats.outliers_influence import variance_inflation_factor
from statsmodels.stats.sandwich_covariance import cov_cluster_2groups

from xlx.measures.statistics import LEVEL, ROUNDING, language_codes, numbers


@dataclass(frozen=True)
class Regression:
    """A linear regression with an intercept, by ordinary least squares.

    Attributes
    ----------
    table : DataFrame
        One row per term and kind of error: ``term`` ("intercept", then the predictors),
        ``coefficient``, ``errors`` ("classical", "robust", "clustered", "dyadic": see
        `regression`), ``error`` (standard error), ``df`` (degrees of freedom of the t distribution
        behind the next three), ``low``, ``high`` (95 %), ``p_value`` (two-sided, of no effect),
        ``vif`` (variance inflation factor: how many times larger the variance of the coefficient is
        than if the predictor were uncorrelated with the others; from 1; NaN for the intercept).
    r_squared, adjusted_r_squared : float
    n : int
        Rows.
    breusch_pagan_p : float
        Of the test that the errors vary equally over the range of the predictors (Breusch and Pagan
        1979, studentised by Koenker 1981); small: do not trust "classical".
    repaired : tuple of str
        Kinds of errors whose covariance matrix had a negative eigenvalue and that were made larger
        for it, as `regression` says.
    """

    table: pd.DataFrame
    r_squared: float
    adjusted_r_squared: float
    n: int
    breusch_pagan_p: float
    repaired: tuple[str, ...]


def regression(
    table: pd.DataFrame,
    outcome: str,
    predictors: Sequence[str],
    *,
    clusters: Sequence[str] = (),
    effects: Sequence[str] = (),
) -> Regression:
    """Regress an outcome on predictors, with several views of how sure the coefficients are.

        outcome ~ β₀ + β₁ · predictor₁ + β₂ · predictor₂ + ε

    (ABX paper, section 5.2: accuracy on LD and MD.) The coefficients are the same in all views;
    the standard errors differ in what they assume of ε:

    - "classical": independent and of equal variance. What the paper prints.
    - "robust": independent (HC3, MacKinnon and White 1985). NaN where a row is fitted by a term of
      its own.
    - "clustered": with `clusters`. Rows that share a source *or* a target may depend on each other
      (Cameron, Gelbach and Miller 2011). Each of the three parts has its small-sample factor
      G/(G-1) · (n-1)/(n-k); t with min(G) - 1 degrees of freedom.
    - "dyadic": with `clusters`. Any two rows that share a language, as source or target, may depend
      on each other (Aronow, Samii and Assenova 2015);
      the factor and degrees of freedom as above, with G the number of languages (our addition:
      their estimator is for many languages). The one for transfer between languages, and the only
      one of use for unordered pairs.

    The last two are differences of matrices: what is counted twice is taken off. With few languages
    or little dependence the result may have a negative eigenvalue; nothing is then taken off
    (Davezies, D'Haultfœuille and Guyonvarch 2018), which errs on the safe side, and
    `Regression.repaired` says so. Setting the eigenvalue to zero, the usual repair, can leave an
    error next to nothing. All four are approximate with few languages: where 18 languages each have
    an effect of their own on predictor and error, as source and as target, simulated 95 % intervals
    hold the truth in some 47 % (classical), 72 % (clustered) and 86 % (dyadic) of cases.
    `permutation_regression` keeps its level there.

    Parameters
    ----------
    table : DataFrame
        One row per observation: a language, or a pair of a source and a target.
    clusters : sequence of two str, optional
        The columns that name the languages of a pair: ``("source", "target")``.
    effects : sequence of str
        Columns of which every name has an intercept of its own (fixed effects), e.g. ``("source",
        "target")``: what makes a language a good source, or an easy target, for all others is then
        taken out, and the coefficients are about what is left within them. ``vif`` tells how much
        of a predictor that takes. The table has no row of an intercept then.

    ValueError for a column or number missing; no more rows than terms; an outcome or predictor that
    is the same in all rows; predictors of which one follows from the others or from the effects; a
    cluster column with a single cluster.
    """
    fit = least_squares(table, outcome, predictors, effects)
    kept = slice(1 if effects else 0, 1 + len(predictors))
    coefficient = fit.params[kept]
    inflation = [variance_inflation_factor(fit.model.exog, 1 + i) for i in range(len(predictors))]
    rows, repaired = [], []
    for kind, errors in _covariances(fit, table, clusters, kept).items():
        error = np.sqrt(np.diag(errors.covariance))
        width = stats.t.ppf((1 + LEVEL) / 2, errors.df) * error
        with np.errstate(divide="ignore", invalid="ignore"):
            p_value = 2 * stats.t.sf(np.abs(coefficient / error), errors.df)
        view = {
            "term": ["intercept", *predictors][kept],
            "coefficient": coefficient,
            "errors": kind,
            "error": error,
            "df": errors.df,
            "low": coefficient - width,
            "high": coefficient + width,
            "p_value": p_value,
            "vif": [np.nan, *inflation][kept],
        }
        rows.append(pd.DataFrame(view))
        repaired += [kind] * errors.repaired
    return Regression(
        pd.concat(rows, ignore_index=True), float(fit.rsquared), float(fit.rsquared_adj),
        int(fit.nobs), float(het_breuschpagan(fit.resid, fit.model.exog)[1]),
        tuple(repaired),
    )  # fmt: skip


def least_squares(
    table: pd.DataFrame, outcome: str, predictors: Sequence[str], effects: Sequence[str] = ()
) -> RegressionResults:
    """Least squares with an intercept, or an error that says what stands in the way.

    Terms: the intercept, the predictors, then one for each name of an effect but its first.
    """
    if not predictors:
        raise ValueError("a regression needs one predictor or more")
    values = numbers(table, [outcome, *predictors])
    own = [np.ones((len(values), 1)), values[:, 1:]]
    for name in effects:
        codes, n_names = language_codes(table, [name])
        own.append((codes == np.arange(1, n_names)).astype(float))
    exog = np.column_stack(own)
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
    return OLS(values[:, 0], exog).fit()


@dataclass(frozen=True)
class _Errors:
    covariance: np.ndarray
    df: int
    repaired: bool = False


def _covariances(
    fit: RegressionResults,
    table: pd.DataFrame,
    clusters: Sequence[str],
    kept: slice = slice(None),
) -> dict[str, _Errors]:
    """Kind of error → covariance of the coefficients that are kept; kinds as `regression` says."""
    df = int(fit.df_resid)
    robust = fit.cov_HC3
    if fit.get_influence().hat_matrix_diag.max() > 1 - ROUNDING:  # HC3 divides by 1 - leverage
        robust = np.full_like(robust, np.nan)
    views = {
        "classical": _Errors(fit.cov_params()[kept, kept], df),
        "robust": _Errors(robust[kept, kept], df),
    }
    if not clusters:
        return views
    codes, n_names = language_codes(table, clusters)
    sizes = [len(np.unique(column)) for column in codes.T]
    for name, size in zip(clusters, sizes, strict=True):
        if size < 2:
            raise ValueError(f"{name} is the same in all rows: errors need two clusters or more")
    both, first, second = (part[kept, kept] for part in cov_cluster_2groups(fit, codes))
    views["clustered"] = _positive(both, first + second, min(sizes) - 1)
    dyadic = (part[kept, kept] for part in _dyadic(fit, codes))
    views["dyadic"] = _positive(*dyadic, n_names - 1)
    return views


def _dyadic(fit: RegressionResults, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Covariance that lets any two rows with a language in common depend on each other.

    The sum of s_d s_d'ᵀ over all rows d, d' with a language in common (s: predictors times
    residual) takes no double loop: with S_i the sum over the rows that hold language i,
    Σ_i S_i S_iᵀ counts each such pair of rows once for each language in common, so two rows of one
    pair of languages once too often, and Σ over pairs of languages takes that back. Returns the
    covariance, and what it is before that is taken back.
    """
    scores = fit.model.exog * fit.resid[:, None]
    n, n_terms = scores.shape
    n_names = codes.max() + 1
    own = codes[:, 0] == codes[:, 1]  # from a language to itself: held once
    by_name = np.zeros((n_names, n_terms))
    np.add.at(by_name, codes[:, 0], scores)
    np.add.at(by_name, codes[~own, 1], scores[~own])
    low, high = codes[~own].min(axis=1), codes[~own].max(axis=1)
    by_pair = np.zeros((n_names * n_names, n_terms))
    np.add.at(by_pair, low * n_names + high, scores[~own])
    bread = fit.normalized_cov_params * np.sqrt(n_names / (n_names - 1) * (n - 1) / (n - n_terms))
    names = bread @ by_name.T @ by_name @ bread
    return names - bread @ by_pair.T @ by_pair @ bread, names


def _positive(covariance: np.ndarray, undiminished: np.ndarray, df: int) -> _Errors:
    """A difference of matrices, or without what is subtracted if it has a negative eigenvalue."""
    values = np.linalg.eigvalsh(covariance)
    if values.min() >= -ROUNDING * np.abs(values).max():
        return _Errors(covariance, df)
    return _Errors(undiminished, df, repaired=True)


def fitted_line(
    table: pd.DataFrame,
    x: str,
    y: str,
    *,
    clusters: Sequence[str] = (),
    errors: str = "classical",
) -> pd.DataFrame:
    """The regression line of one predictor, with the 95 % band of its mean response.

    100 rows over the range of `x`: ``x``, ``y`` (on the line), ``low``, ``high`` (where the line
    may run, not where a further point may fall). `errors` and `clusters` as in `regression`, and so
    the exceptions; ValueError also for a kind of error that is not there.
    """
    fit = least_squares(table, y, [x])
    kinds = _covariances(fit, table, clusters)
    if errors not in kinds:
        raise ValueError(f"there are no {errors!r} errors here: choose {', '.join(kinds)}")
    grid = np.linspace(*np.quantile(fit.model.exog[:, 1], [0, 1]), 100)
    points = np.column_stack([np.ones(len(grid)), grid])
    mean = points @ fit.params
    variance = np.einsum("pi,ij,pj->p", points, kinds[errors].covariance, points)
    width = stats.t.ppf((1 + LEVEL) / 2, kinds[errors].df) * np.sqrt(variance.clip(0))
    return pd.DataFrame({"x": grid, "y": mean, "low": mean - width, "high": mean + width})


def explained(table: pd.DataFrame, outcome: str, names: Sequence[str]) -> tuple[float, float]:
    """The share of the variance of an outcome that lies between the groups of some columns.

    R² of an intercept for each name of each column, and the adjusted R², from which is taken what
    as many groups drawn at random would explain: NaN where every row is a group. One group explains
    nothing. ValueError as `regression`.
    """
    groups = pd.get_dummies(table[list(names)].astype(str), drop_first=True, dtype=float)
    if groups.shape[1] in (0, len(table) - 1):
        return (0.0, 0.0) if groups.empty else (1.0, np.nan)
    fit = least_squares(groups.assign(**{outcome: table[outcome]}), outcome, list(groups))
    return float(fit.rsquared), float(fit.rsquared_adj)


def leverage(table: pd.DataFrame, outcome: str, predictors: Sequence[str]) -> pd.DataFrame:
    """How much single rows decide of a regression: one row per row of `table`, with its index.

    ``leverage``: the weight of a row's outcome in its own prediction (their mean is terms / rows);
    ``cook``: how far all predictions move without the row, in units of their variance (Cook 1977).
    Raises ValueError as `regression`.
    """
    influence = least_squares(table, outcome, predictors).get_influence()
    return pd.DataFrame(
        {"leverage": influence.hat_matrix_diag, "cook": influence.cooks_distance[0]},
        index=table.index,
    )


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
