"""Intervals, correlations, regressions and tests, with what is resampled said each time.

The scores of a corpus hang together: 630 language pairs share 36 languages, and all of them share
the same sentences. An interval is about what would be different next time; here that is the
sentences (`jackknife_error`, `bootstrap_kernel`) or the languages (`correlation`, the clustered
and dyadic errors of `regression`, `permutation_regression`), never the triplets or the pairs, whose
number says nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.regression.linear_model import OLS, RegressionResults
from statsmodels.stats.diagnostic import het_breuschpagan
from statsmodels.stats.outliers_influence import variance_inflation_factor
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.sandwich_covariance import cov_cluster, cov_cluster_2groups

from xlx import checks

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


def grouped_error(
    influence: np.ndarray, groups: Sequence[object] | np.ndarray, order: int = 2
) -> np.ndarray:
    """`jackknife_error` where positions of one group (a document) may depend on each other.

    What is left out is a group; to first order in its share of the positions, as in a linearised
    delete-a-group jackknife, its influences add up:

        k / (k - 1) · Σ over the k groups of (order / n · Σ over its positions of (g_i - U))²

    ValueError for fewer than two groups.
    """
    names, codes = np.unique(np.asarray(groups).astype(str), return_inverse=True)
    if len(names) < 2:
        raise ValueError("an interval over groups needs two of them or more, and there is one")
    influence = influence.astype(np.float64)
    apart = influence - influence.mean(axis=-1, keepdims=True)
    sums = apart @ (codes[:, None] == np.arange(len(names)))
    n = influence.shape[-1]
    return order / n * np.sqrt(len(names) / (len(names) - 1) * (sums**2).sum(axis=-1))


def half_width(error: np.ndarray | float, level: float = LEVEL) -> np.ndarray:
    """Half the width of the normal interval of an estimate with this standard error."""
    return stats.norm.ppf((1 + checks.level(level)) / 2) * np.asarray(error)


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


def verdicts(low: Sequence[float], high: Sequence[float], expected: int = 1) -> list[str]:
    """What intervals of a difference say of its expected sign (1 or -1), each in a word.

    "yes": the whole interval lies on that side of zero; "the opposite": on the other; "not seen":
    it holds zero.
    """
    return [
        "yes" if min(ends) > 0 else "the opposite" if max(ends) < 0 else "not seen"
        for ends in zip(expected * np.asarray(low), expected * np.asarray(high), strict=True)
    ]


def power(effect: float, error: float, df: float, level: float = LEVEL) -> float:
    """How often a two-sided t test finds an effect of this size, given its standard error.

    The share of repetitions in which p < 1 - level, from the noncentral t distribution. At an
    effect of zero it is 1 - level.
    """
    bound = stats.t.ppf((1 + level) / 2, df)
    return float(
        stats.nct.sf(bound, df, effect / error) + stats.nct.cdf(-bound, df, effect / error)
    )


def share_interval(successes: float, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Wilson interval of a share of independent trials (a tie is half a success)."""
    return proportion_confint(successes, n, alpha=1 - checks.level(level), method="wilson")


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


def _codes(table: pd.DataFrame, columns: Sequence[str]) -> tuple[np.ndarray, int]:
    """Number the names in some columns, a name alike in all: ``(n_rows, n_columns)``, how many."""
    require(table, columns)
    text = table[list(columns)].astype(str).to_numpy(str)
    names, codes = np.unique(text, return_inverse=True)
    return codes.reshape(text.shape), len(names)


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

    Raises
    ------
    ValueError
        Unknown method; a column or a number missing; fewer than three rows, or than `given` and
        three; a score without variation; a score that follows from `given`.
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
    rows, n = _codes(pairs, languages)
    draws = rng.multinomial(n, np.full(n, 1 / n), size=n_resamples)
    found = [
        _resampled(columns, some[:, rows].prod(axis=2), method)
        for some in np.array_split(draws, max(1, n_resamples * len(pairs) // 1_000_000))
    ]
    low, high = np.nanquantile(np.concatenate(found), [(1 - level) / 2, (1 + level) / 2])
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
    found = []
    for key, rows in table.groupby(list(by), sort=False):
        r = low = high = np.nan
        values = rows[[x, y]]
        if len(rows) > 2 and values.notna().all(axis=None) and (values.nunique() > 1).all():
            own = correlation(rows, x, y, **options)
            r, low, high = own.value, own.low, own.high
        found.append((*key, r, low, high, len(rows)))
    return pd.DataFrame(found, columns=[*by, "r", "low", "high", "n"])


def partial_correlations(
    pairs: pd.DataFrame,
    x: str,
    y: str,
    sets: Mapping[str, Sequence[str]],
    *,
    methods: Sequence[str] = ("pearson", "spearman"),
    **options: object,
) -> pd.DataFrame:
    """`correlation` given several sets of columns: label → those that are held.

    One row a set and method: ``given`` (the label), ``method``, ``r``, ``low``, ``high``.
    """
    rows = []
    for label, given in sets.items():
        for method in methods:
            found = correlation(pairs, x, y, given=given, method=method, **options)
            rows.append((label, method, found.value, found.low, found.high))
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
    found = np.full(len(varies), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        found[varies] = (weight * x * y).sum(axis=1) / scale
    return found


def _left(columns: Sequence[np.ndarray], weight: np.ndarray) -> list[np.ndarray]:
    """What weighted least squares on the further columns leaves of the first two, ``(k, n)`` each.

    Nothing but rounding left is set to zero. All columns are centred.
    """
    root = np.sqrt(weight)
    given = np.stack([root * values for values in columns[2:]], axis=2)  # (k, n, g)
    inverse = np.linalg.pinv(given)
    found = []
    for values in columns[:2]:
        own = (root * values)[:, :, None]
        rest = values - (np.stack(columns[2:], axis=2) @ (inverse @ own))[:, :, 0]
        kept = (weight * rest**2).sum(axis=1) > ROUNDING * (weight * values**2).sum(axis=1)
        found.append(np.where(kept[:, None], rest, 0.0))
    return found


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


#: Below this share of their size, numbers that differ are taken for equal.
ROUNDING = 1e-10


@dataclass(frozen=True)
class Regression:
    """A linear regression with an intercept, by ordinary least squares.

    Attributes
    ----------
    table : DataFrame
        One row per term and kind of error: ``term`` ("intercept", then the predictors),
        ``coefficient``, ``errors`` ("classical", "robust", "clustered", "dyadic": see
        `regression`), ``error`` (standard error), ``df`` (degrees of freedom of the t distribution
        behind the next three), ``low``, ``high``, ``p_value`` (two-sided, of no effect), ``vif``
        (variance inflation factor: how many times larger the variance of the coefficient is than
        if the predictor were uncorrelated with the others; from 1; NaN for the intercept).
    r_squared, adjusted_r_squared : float
    f_p_value : float
        Of the F test that all predictors together explain nothing (classical errors). With
        correlated predictors it can be small where no single coefficient is significant.
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
    f_p_value: float
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
    level: float = LEVEL,
) -> Regression:
    """Regress an outcome on predictors, with several views of how sure the coefficients are.

        outcome ~ β₀ + β₁ · predictor₁ + β₂ · predictor₂ + ε

    (ABX paper, section 5.2: accuracy on LD and MD.) The coefficients are the same in all views;
    the standard errors differ in what they assume of ε:

    - "classical": independent and of equal variance. What the paper prints.
    - "robust": independent (HC3, MacKinnon and White 1985). NaN where a row is fitted by a term of
      its own.
    - "clustered": with `clusters`. Rows of one cluster may depend on each other; with two cluster
      columns, rows that share a source *or* a target (Cameron, Gelbach and Miller 2011). Each of
      the three parts has its small-sample factor G/(G-1) · (n-1)/(n-k); t with min(G) - 1 degrees
      of freedom.
    - "dyadic": with two cluster columns whose names are of one set. Any two rows that share a
      language, as source or target, may depend on each other (Aronow, Samii and Assenova 2015);
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
    clusters : sequence of str
        None, one or two columns, e.g. ``("source", "target")``.
    effects : sequence of str
        Columns of which every name has an intercept of its own (fixed effects), e.g. ``("source",
        "target")``: what makes a language a good source, or an easy target, for all others is then
        taken out, and the coefficients are about what is left within them. ``vif`` tells how much
        of a predictor that takes. The table has no row of an intercept then.

    Raises
    ------
    ValueError
        A column or number missing; no more rows than terms; an outcome or predictor that is the
        same in all rows; predictors of which one follows from the others or from the effects; more
        than two cluster columns, or one with a single cluster.
    """
    fit = _fit(table, outcome, predictors, effects)
    terms = [*([] if effects else ["intercept"]), *predictors]
    kept = slice(1 if effects else 0, 1 + len(predictors))
    found = fit.params[kept]
    rows, repaired = [], []
    inflation = [np.nan] + [
        variance_inflation_factor(fit.model.exog, 1 + index) for index in range(len(predictors))
    ]
    for kind, errors in _covariances(fit, table, clusters, kept).items():
        error = np.sqrt(np.diag(errors.covariance))
        width = stats.t.ppf((1 + checks.level(level)) / 2, errors.df) * error
        with np.errstate(divide="ignore", invalid="ignore"):
            p_value = 2 * stats.t.sf(np.abs(found / error), errors.df)
        rows.append(
            pd.DataFrame(
                {
                    "term": terms,
                    "coefficient": found,
                    "errors": kind,
                    "error": error,
                    "df": errors.df,
                    "low": found - width,
                    "high": found + width,
                    "p_value": p_value,
                    "vif": inflation[kept],
                }
            )
        )
        repaired += [kind] * errors.repaired
    return Regression(
        pd.concat(rows, ignore_index=True),
        float(fit.rsquared),
        float(fit.rsquared_adj),
        float(fit.f_pvalue),
        int(fit.nobs),
        float(het_breuschpagan(fit.resid, fit.model.exog)[1]),
        tuple(repaired),
    )


def _fit(
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
        codes, n_names = _codes(table, [name])
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
    found = {
        "classical": _Errors(fit.cov_params()[kept, kept], df),
        "robust": _Errors(robust[kept, kept], df),
    }
    if not clusters:
        return found
    if len(clusters) > 2:
        raise ValueError(f"there can be one or two cluster columns, not {len(clusters)}")
    codes, n_names = _codes(table, clusters)
    sizes = [len(np.unique(column)) for column in codes.T]
    for name, size in zip(clusters, sizes, strict=True):
        if size < 2:
            raise ValueError(f"{name} is the same in all rows: errors need two clusters or more")
    if len(clusters) == 1:
        found["clustered"] = _Errors(cov_cluster(fit, codes[:, 0])[kept, kept], sizes[0] - 1)
        return found
    both, first, second = (part[kept, kept] for part in cov_cluster_2groups(fit, codes))
    found["clustered"] = _positive(both, first + second, min(sizes) - 1)
    if n_names < sum(sizes):
        dyadic = (part[kept, kept] for part in _dyadic(fit, codes))
        found["dyadic"] = _positive(*dyadic, n_names - 1)
    return found


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

    Parameters
    ----------
    table : DataFrame
        One row for each ordered pair of languages (with or without those of a language with
        itself), or one for each unordered pair; none missing.
    languages : sequence of two str
        The columns that name them.

    Returns
    -------
    DataFrame
        One row per predictor: ``term``, ``coefficient``, ``t`` (classical), ``p_value``,
        ``n_permutations``, ``n_languages``.

    Raises
    ------
    ValueError
        As `regression`; a pair of languages missing or twice there; fewer than three languages.
    """
    fit = _fit(table, outcome, predictors)
    row = _matrix(table, languages)
    n = len(row)
    first, second = np.nonzero(row >= 0)
    place = row[first, second]  # every row once, or for unordered pairs twice
    _, once = np.unique(place, return_index=True)
    rng = np.random.default_rng(seed)
    orders = rng.permuted(np.tile(np.arange(n), (n_permutations, 1)), axis=1)
    exog = fit.model.exog
    own, others, rest, observed = [], [], [], []
    for index in range(1, 1 + len(predictors)):
        basis, _ = np.linalg.qr(np.delete(exog, index, axis=1))
        own.append(exog[:, index] - basis @ (basis.T @ exog[:, index]))
        others.append(basis)
        rest.append(fit.model.endog - basis @ (basis.T @ fit.model.endog))
        # |t| grows with the partial correlation, and that needs no further fit
        observed.append(abs(_partial(own[-1][None], basis, rest[-1])[0]))
    larger = np.zeros(len(predictors), dtype=int)
    for order in np.array_split(orders, max(1, len(orders) * len(table) // 1_000_000)):
        moved = row[order[:, first[once]], order[:, second[once]]]
        for index, of_term in enumerate(zip(own, others, rest, strict=True)):
            partial = _partial(of_term[0][moved], *of_term[1:])
            larger[index] += (np.abs(partial) >= observed[index] - ROUNDING).sum()
    found = []
    for index, term in enumerate(predictors):
        found.append(
            {
                "term": term,
                "coefficient": fit.params[1 + index],
                "t": fit.tvalues[1 + index],
                "p_value": (1 + larger[index]) / (1 + n_permutations),
                "n_permutations": n_permutations,
                "n_languages": n,
            }
        )
    return pd.DataFrame(found)


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
    if len(languages) != 2:
        raise ValueError(f"two columns name the languages of a pair, not {len(languages)}")
    codes, n = _codes(table, languages)
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


def fitted_line(
    table: pd.DataFrame,
    x: str,
    y: str,
    *,
    clusters: Sequence[str] = (),
    errors: str = "classical",
    n_points: int = 100,
    level: float = LEVEL,
) -> pd.DataFrame:
    """The regression line of one predictor, with the confidence band of its mean response.

    ``n_points`` rows over the range of `x`: ``x``, ``y`` (on the line), ``low``, ``high`` (where
    the line may run, not where a further point may fall). `errors` and `clusters` as in
    `regression`, and so the exceptions; ValueError also for a kind of error that is not there.
    """
    fit = _fit(table, y, [x])
    kinds = _covariances(fit, table, clusters)
    if errors not in kinds:
        raise ValueError(f"there are no {errors!r} errors here: choose {', '.join(kinds)}")
    grid = np.linspace(*np.quantile(fit.model.exog[:, 1], [0, 1]), n_points)
    points = np.column_stack([np.ones(n_points), grid])
    mean = points @ fit.params
    variance = np.einsum("pi,ij,pj->p", points, kinds[errors].covariance, points)
    width = stats.t.ppf((1 + checks.level(level)) / 2, kinds[errors].df) * np.sqrt(variance.clip(0))
    return pd.DataFrame({"x": grid, "y": mean, "low": mean - width, "high": mean + width})


def partial_residuals(
    table: pd.DataFrame, outcome: str, predictor: str, given: Sequence[str]
) -> pd.DataFrame:
    """What the other predictors leave of a predictor and of the outcome (added-variable plot).

    One row per row of `table`, with its index: ``x`` and ``y``, the residuals of `predictor` and
    `outcome` on `given`, each moved back to its mean. The slope of y on x is the coefficient of
    `predictor` in the regression on all (Frisch and Waugh 1933). Raises ValueError as `regression`.
    """
    _fit(table, outcome, [predictor, *given])
    return pd.DataFrame(
        {
            name: _fit(table, column, given).resid + table[column].mean()
            for name, column in (("x", predictor), ("y", outcome))
        },
        index=table.index,
    )


def explained(table: pd.DataFrame, outcome: str, names: Sequence[str]) -> tuple[float, float]:
    """The share of the variance of an outcome that lies between the groups of some columns.

    R² of an intercept for each name of each column, and the adjusted R², from which is taken what
    as many groups drawn at random would explain: NaN where every row is a group. One group explains
    nothing. ValueError as `regression`.
    """
    groups = pd.get_dummies(table[list(names)].astype(str), drop_first=True, dtype=float)
    if groups.shape[1] in (0, len(table) - 1):
        return (0.0, 0.0) if groups.empty else (1.0, np.nan)
    fit = _fit(groups.assign(**{outcome: table[outcome]}), outcome, list(groups))
    return float(fit.rsquared), float(fit.rsquared_adj)


def leverage(
    table: pd.DataFrame, outcome: str, predictors: Sequence[str], effects: Sequence[str] = ()
) -> pd.DataFrame:
    """How much single rows decide of a regression: one row per row of `table`, with its index.

    ``leverage``: the weight of a row's outcome in its own prediction (their mean is terms / rows);
    ``cook``: how far all predictions move without the row, in units of their variance (Cook 1977).
    Raises ValueError as `regression`.
    """
    found = _fit(table, outcome, predictors, effects).get_influence()
    return pd.DataFrame(
        {"leverage": found.hat_matrix_diag, "cook": found.cooks_distance[0]}, index=table.index
    )


@dataclass(frozen=True)
class Wilcoxon:
    """Signed-rank test of differences, with the Hodges-Lehmann estimate of their centre.

    ``statistic`` is the sum of the ranks of the positive differences, of the ``n`` that are not
    zero; ``n_zero`` are. ``estimate`` is the median of all means of two differences (of one with
    itself too), ``low`` and ``high`` its interval.
    """

    statistic: float
    p_value: float
    n: int
    n_zero: int
    estimate: float
    low: float
    high: float


def wilcoxon(differences: Sequence[float] | np.ndarray, *, level: float = LEVEL) -> Wilcoxon:
    """Test that differences are symmetric about zero (two-sided).

    The p-value is exact, also with ties: all 2ⁿ ways to sign the ranks are counted (time grows with
    the cube of n; some hundreds are no trouble). Differences of zero are left out of it, as
    Wilcoxon did and scipy does; if all are zero, it is 1. Differences that agree to 12 decimals
    count as tied. The estimate and its interval, which inverts the exact test of untied
    differences, hold the zeros as well, so with many zeros the interval may touch zero where the
    p-value is small; with too few differences for the level it is infinite.

    Raises
    ------
    ValueError
        No differences, or one that is missing or infinite.
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
    at = round(2 * statistic)
    p_value = min(1.0, 2 * min(mass[: at + 1].sum(), mass[at:].sum()))
    n = len(values)
    walsh = np.sort(np.add.outer(values, values)[np.triu_indices(n)] / 2)
    below = np.cumsum(_signed_ranks(np.arange(1, n + 1)))
    left_out = int(np.searchsorted(below, (1 - checks.level(level)) / 2, side="right"))
    low, high = (walsh[left_out - 1], walsh[-left_out]) if left_out else (-np.inf, np.inf)
    return Wilcoxon(
        float(statistic),
        float(p_value),
        len(kept),
        n - len(kept),
        float(np.median(walsh)),
        float(low),
        float(high),
    )


def _signed_ranks(ranks: np.ndarray) -> np.ndarray:
    """Probability of each sum of the ranks, whole numbers, of which a coin picks some."""
    mass = np.zeros(ranks.sum() + 1)
    mass[0] = 1
    for rank in ranks:
        mass[rank:] = (mass[rank:] + mass[: len(mass) - rank]) / 2
        mass[:rank] /= 2
    return mass
