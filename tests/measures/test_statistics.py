"""Intervals, correlations, regressions, tests: closed forms, simulation, literal loops, scipy."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats

from shared import regressions
from xlx.measures import statistics


def test_errors_over_groups_leave_out_a_group() -> None:
    rng = np.random.default_rng(4)
    groups = rng.integers(0, 9, size=60)
    values = rng.normal(size=9)[groups] + rng.normal(size=60)
    names, sizes = np.unique(groups, return_counts=True)
    left_out = np.array([values[groups != name].mean() for name in names])
    error = statistics.left_out_error(values.mean(), left_out, sizes)
    sums = np.array([(values[groups == name] - values.mean()).sum() for name in names])
    assert error == pytest.approx(np.sqrt(9 / 8 * (sums**2).sum()) / 60)  # of a mean, by hand
    assert error > 1.5 * values.std(ddof=1) / np.sqrt(60)  # rows that hang together
    single = np.array([np.delete(values, i).mean() for i in range(60)])
    error = statistics.left_out_error(values.mean(), single, np.ones(60))
    assert error == pytest.approx(values.std(ddof=1) / np.sqrt(60))
    with pytest.raises(ValueError, match="two of them or more"):
        statistics.left_out_error(1.0, np.ones(1), [3])


def test_share_interval_is_wilson() -> None:
    expected = stats.binomtest(37, 80).proportion_ci(method="wilson")
    assert statistics.share_interval(37, 80) == pytest.approx((expected.low, expected.high))


def language_pairs(n: int, seed: int, effect: float) -> pd.DataFrame:
    """Scores of pairs that are sums of scores of their languages, and so depend on each other."""
    rng = np.random.default_rng(seed)
    one = rng.normal(size=n)
    other = effect * one + np.sqrt(1 - effect**2) * rng.normal(size=n)
    i, j = np.triu_indices(n, 1)
    names = np.array([f"l{k}" for k in range(n)])
    scores = {"LD": one[i] + one[j], "MD": other[i] + other[j]}
    return pd.DataFrame({"language_1": names[i], "language_2": names[j], **scores})


def weighted(columns: np.ndarray, weight: np.ndarray) -> float:
    """Correlation of the first two columns, ``(n,)`` each, given the others, of weighted rows."""
    design, root = np.vstack([np.ones(len(weight)), columns[2:]]).T, np.sqrt(weight)
    left = [x - design @ np.linalg.lstsq(design * root[:, None], x * root)[0] for x in columns[:2]]
    matrix = np.cov(left, aweights=weight)
    return matrix[0, 1] / np.sqrt(matrix[0, 0] * matrix[1, 1])


def literal_interval(
    table: pd.DataFrame, names: list[str], languages: list[str], method: str
) -> tuple[float, float, float]:
    """r and its interval: each language left out in turn, each row's weight moved a little."""

    def columns_of(rows: pd.DataFrame) -> np.ndarray:
        return (rows[names].rank() if method == "spearman" else rows[names]).to_numpy(float).T

    whole = columns_of(table)
    z, z_without = np.arctanh(weighted(whole, np.ones(len(table)))), []
    codes = sorted(set(table[languages].to_numpy().ravel()))
    for code in codes:
        rest = table[(table[languages] != code).all(axis=1)]
        z_without.append(np.arctanh(weighted(columns_of(rest), np.ones(len(rest)))))
    n, of_pair = len(codes), {}
    variance = (n - 1) / n * sum((x - z) ** 2 for x in z_without)
    for i, ends in enumerate(table[languages].to_numpy().tolist()):
        more, less = (1 + step * (np.arange(len(table)) == i) for step in (1e-5, -1e-5))
        moved = np.arctanh(weighted(whole, more)) - np.arctanh(weighted(whole, less))
        pair = frozenset(ends)
        of_pair[pair] = of_pair.get(pair, 0) + (len(pair) == 2) * moved / 2e-5
    left = max(variance - sum(x**2 for x in of_pair.values()), variance / 2)
    half = stats.t.ppf(0.975, n - 1) * np.sqrt(left)
    return np.tanh(z), np.tanh(z - half), np.tanh(z + half)


@pytest.mark.parametrize("method", ["pearson", "spearman"])
@pytest.mark.parametrize("given", [[], ["bag", "script"]])
@pytest.mark.parametrize("languages", [["language_1", "language_2"], ["language_1"]])
def test_correlation_is_the_literal_one(method: str, given: list[str], languages) -> None:
    pairs = language_pairs(9, 3, -0.6)
    rng = np.random.default_rng(8)
    noise = rng.normal(size=(3, len(pairs)))
    pairs["LD"], pairs["MD"] = (pairs[["LD", "MD"]].to_numpy().T + noise[:2]).round(1)
    pairs["bag"] = pairs["LD"] - pairs["MD"] + noise[2]
    pairs["script"] = rng.integers(0, 2, size=len(pairs))
    # the second pair twice, the other way round; a language with itself
    more = pairs.iloc[[1]].rename(columns={"language_1": "language_2", "language_2": "language_1"})
    more["LD"] += 0.3
    pairs = pd.concat([pairs, more, pairs.iloc[[4]].assign(language_1="l5", language_2="l5")])
    found = statistics.correlation(
        pairs, "LD", "MD", given=given, languages=languages, method=method
    )
    expected = literal_interval(pairs, ["LD", "MD", *given], languages, method)
    assert (found.value, found.low, found.high) == pytest.approx(expected, rel=1e-6)
    df = len(pairs) - 2 - len(given)
    t = found.value * np.sqrt(df / (1 - found.value**2))
    assert found.p_value == pytest.approx(2 * stats.t.sf(abs(t), df))


def test_what_one_language_alone_determines_is_not_known() -> None:
    table = pd.DataFrame({"language": list("abcd"), "LD": [0, 0, 0, 1.0], "MD": [0.1, 0.4, 0.2, 1]})
    for languages in (["language"], ["same"]):
        found = statistics.correlation(table.assign(same="x"), "LD", "MD", languages=languages)
        assert (found.low, found.high) == (-1, 1)
    assert statistics.correlation(table, "MD", "MD", languages=["language"]).low > 0.999


#: Families of languages in FLORES-200.
FAMILIES = [1] * 9 + [2, 2, 3, 3, 3, 3, 4, 8, 11, 21, 21, 34, 79]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["pearson", "spearman", "partial"])
@pytest.mark.parametrize(
    "ends", ["7 languages", "36 languages", "12 pairs", "36 pairs", "families"]
)
def test_intervals_of_correlations_cover(ends: str, method: str) -> None:
    """Scores of a language, or the sum of two, and noise of each row; families of unequal size.

    93 to 97 %, give or take two standard errors of 300 or 750 worlds.
    """
    n = len(FAMILIES) if ends == "families" else int(ends.split()[0])
    rows = {
        "languages": np.arange(n)[:, None],
        "pairs": np.transpose(np.triu_indices(n, 1)),
        "families": np.repeat(np.arange(n), FAMILIES if n == 22 else 1)[:, None],
    }
    rows, rng, held = rows[ends.split()[-1]], np.random.default_rng(0), []
    names = ["language_1", "language_2"][: rows.shape[1]]
    table = pd.DataFrame(rows.astype(str), columns=names)
    for r in (0, 0.5, 0.9):
        truth = 6 / np.pi * np.arcsin(r / 2) if method == "spearman" else r
        for _ in range(100 if ends == "36 pairs" else 250):
            of_language = rng.normal(size=(3, n))[:, rows].sum(axis=2) / np.sqrt(rows.shape[1])
            one, other, held_by = 0.8 * of_language + 0.6 * rng.normal(size=(3, len(rows)))
            other = r * one + np.sqrt(1 - r**2) * other
            table = table.assign(x=one + held_by, y=other - held_by, given=held_by)
            options = {"given": ["given"]} if method == "partial" else {"method": method}
            if method != "partial":
                table = table.assign(x=one, y=other)
            found = statistics.correlation(table, "x", "y", languages=names, **options)
            held.append(found.low <= truth <= found.high)
    assert 0.915 <= np.mean(held) <= 0.985


@pytest.mark.slow
@pytest.mark.parametrize("alike", [0, 0.4, 0.8])
def test_intervals_of_means_over_families_cover(alike: float) -> None:
    rng, places = np.random.default_rng(0), np.repeat(np.arange(len(FAMILIES)), FAMILIES)
    held = []
    for _ in range(2000):
        family, rest = rng.normal(size=len(FAMILIES)), rng.normal(size=len(places))
        values = np.sqrt(alike) * family[places] + np.sqrt(1 - alike) * rest
        mean, low, high = statistics.mean_interval(values, places)
        assert mean == pytest.approx(values.mean())
        held.append(low <= 0 <= high)
    assert 0.93 <= np.mean(held) <= 0.975


def test_the_interval_of_a_mean_over_equal_groups_is_students() -> None:
    rng = np.random.default_rng(6)
    values, groups = rng.normal(size=24), np.repeat(list("abcdef"), 4)
    means = values.reshape(6, 4).mean(axis=1)
    half = stats.t.ppf(0.975, 6) * stats.sem(means)
    expected = means.mean(), means.mean() - half, means.mean() + half
    assert statistics.mean_interval(values, groups) == pytest.approx(expected)
    mean, *ends = statistics.mean_interval(values, np.zeros(24))
    assert mean == pytest.approx(values.mean())
    assert np.isnan(ends).all()


@pytest.mark.parametrize("shared", [0.0, 0.3, 0.9])
def test_intervals_of_means_over_pairs_of_languages_cover(shared: float) -> None:
    """Of 42 ordered pairs of seven languages that share effects of source and target."""
    rng = np.random.default_rng(8)
    pairs = np.array([(i, j) for i in range(7) for j in range(7) if i != j])
    held, naive = 0, 0
    for _ in range(600):
        of_language = rng.multivariate_normal([0, 0], [[1, 0.7], [0.7, 1]], size=7)
        values = np.sqrt(shared / 2) * (of_language[pairs[:, 0], 0] + of_language[pairs[:, 1], 1])
        values += np.sqrt(1 - shared) * rng.standard_normal(42)
        _, low, high = statistics.language_interval(values, pairs)
        held += low <= 0 <= high
        naive += stats.ttest_1samp(values, 0).pvalue > 0.05
    assert 0.9 <= held / 600 <= 0.985
    assert shared == 0 or naive / 600 < 0.85


@pytest.mark.parametrize("seed", range(5))
def test_the_interval_of_single_languages_is_students_and_a_hub_is_given(seed: int) -> None:
    values, codes = np.random.default_rng(seed).random(6), np.arange(6)
    single = statistics.language_interval(values, np.stack([codes, codes], 1))
    expected = stats.ttest_1samp(values, 0).confidence_interval()
    assert single == pytest.approx((values.mean(), *expected))
    from_hub = statistics.language_interval(values, np.stack([np.full(6, 9), codes], 1))
    assert from_hub == pytest.approx(single)
    assert np.isnan(statistics.language_interval(values[:2], np.array([[0, 1], [1, 0]]))[1:]).all()


def test_groups_in_which_nothing_correlates_have_no_correlation() -> None:
    pairs = language_pairs(6, 0, 0.5)
    several = pd.concat(
        [
            pairs.assign(model="b", layer=1),
            pairs.assign(model="a", layer=1, LD=0.5),
            pairs.head(2).assign(model="a", layer=2),
            pairs.assign(model="c", layer=2, MD=np.nan),
        ]
    )
    found = statistics.correlations(several, ["model", "layer"], "LD", "MD")
    assert list(found) == ["model", "layer", "r", "low", "high", "n"]
    assert found["model"].tolist() == ["b", "a", "a", "c"]
    assert found["n"].tolist() == [15, 15, 2, 15]
    alone = statistics.correlation(pairs, "LD", "MD")
    assert found.loc[0, ["r", "low", "high"]].tolist() == [alone.value, alone.low, alone.high]
    assert found.loc[1:, ["r", "low", "high"]].isna().all(axis=None)
    empty = statistics.correlations(several.iloc[:0], ["model"], "LD", "MD")
    assert list(empty) == ["model", "r", "low", "high", "n"]
    assert empty.empty


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"method": "kendall"}, "no method"),
        ({"rows": 2}, "three rows"),
        ({"LD": 0.5}, "the same in all"),
        ({"given": ["half"]}, "LD or MD follows from half"),
        ({"given": ["half"], "rows": 3}, "4 rows or more"),
        ({"x": "size"}, "no column 'size'"),
        ({"LD": [0.1, np.nan, 0.3, np.nan, 0.5] * 2}, "missing in 4 of 10 rows, first in row 1"),
        ({"LD": [0.1, 0.2, 0.3, 0.4, np.inf] * 2}, "infinite in 2 of 10 rows, first in row 4"),
        ({"language_1": ["de", None] * 5}, "language_1 is missing in 5 of 10"),
    ],
)
def test_bad_correlations_are_named(change: dict, says: str) -> None:
    pairs = language_pairs(5, 0, 0.5).assign(half=lambda table: table["LD"] / 2)
    options = {key: change.pop(key) for key in ("method", "given") if key in change}
    rows, x = change.pop("rows", 10), change.pop("x", "LD")
    with pytest.raises(ValueError, match=says):
        statistics.correlation(pairs.assign(**change).head(rows), x, "MD", **options)


def transfer(n: int, seed: int, *, shared: bool = True, slope: float = 0.5) -> pd.DataFrame:
    """Ordered pairs in which predictor and error hold an effect of the source and of the target."""
    rng = np.random.default_rng(seed)
    source, target = (a.ravel() for a in np.meshgrid(np.arange(n), np.arange(n), indexing="ij"))
    source, target = source[source != target], target[source != target]
    x_source, e_source, x_target, e_target = rng.normal(size=(4, n))
    if shared:  # a language has the same effect in both roles
        x_target, e_target = x_source, e_source
    x = x_source[source] + x_target[target] + rng.normal(size=len(source))
    error = e_source[source] + e_target[target] + rng.normal(size=len(source))
    return pd.DataFrame(
        {
            "source": [f"l{i:02}" for i in source],
            "target": [f"l{i:02}" for i in target],
            "LD": x,
            "MD": rng.normal(size=len(source)) - 0.7 * x,
            "accuracy": slope * x + error,
        }
    )


PAIR = ("source", "target")


def of(found: regressions.Regression, term: str, errors: str = "classical") -> pd.Series:
    table = found.table
    return table[(table["term"] == term) & (table["errors"] == errors)].iloc[0]


def test_regression_by_hand() -> None:
    # x = 1..5, y = 2 4 5 4 5: slope 6 / 10, intercept 2.2, squared residuals 2.4, total 6
    table = pd.DataFrame({"x": [1, 2, 3, 4, 5], "y": [2, 4, 5, 4, 5]})
    found = regressions.regression(table, "y", ["x"])
    slope, intercept = of(found, "x"), of(found, "intercept")
    assert slope["coefficient"] == pytest.approx(0.6)
    assert intercept["coefficient"] == pytest.approx(2.2)
    assert slope["error"] == pytest.approx(np.sqrt(2.4 / 3 / 10))
    assert intercept["error"] == pytest.approx(np.sqrt(0.8 * (1 / 5 + 9 / 10)))
    assert slope["p_value"] == pytest.approx(2 * stats.t.sf(0.6 / np.sqrt(0.08), 3))
    assert slope["high"] == pytest.approx(0.6 + stats.t.ppf(0.975, 3) * np.sqrt(0.08))
    assert found.r_squared == pytest.approx(0.6)
    # HC3: squared residual over (1 - leverage)², leverage 1/5 + (x - 3)² / 10
    residual = np.array([-0.8, 0.6, 1.0, -0.6, -0.2])
    leverage = 0.2 + np.array([4, 1, 0, 1, 4]) / 10
    x = np.array([-2, -1, 0, 1, 2])
    expected = np.sqrt((x**2 * residual**2 / (1 - leverage) ** 2).sum()) / 10
    assert of(found, "x", "robust")["error"] == pytest.approx(expected)


def test_fixed_effects_are_intercepts_of_every_name() -> None:
    table = transfer(8, 4)
    found = regressions.least_squares(table, "accuracy", ["LD", "MD"], PAIR)
    fit = smf.ols("accuracy ~ LD + MD + C(source) + C(target)", table).fit()
    np.testing.assert_allclose(found.params[1:3], fit.params[["LD", "MD"]])
    np.testing.assert_allclose(found.bse[1:3], fit.bse[["LD", "MD"]])
    easy = table.assign(easy=table.groupby("target")["LD"].transform("mean"))
    with pytest.raises(ValueError, match="of LD, easy, source, target one follows"):
        regressions.least_squares(easy, "accuracy", ["LD", "easy"], PAIR)


def literal_covariance(table: pd.DataFrame, depend: Callable) -> np.ndarray:
    """(XᵀX)⁻¹ (Σ over rows that may depend of x x'ᵀ e e') (XᵀX)⁻¹, row by row."""
    x = np.column_stack([np.ones(len(table)), table["LD"], table["MD"]])
    bread = np.linalg.inv(x.T @ x)
    residual = table["accuracy"].to_numpy() - x @ bread @ x.T @ table["accuracy"].to_numpy()
    names = list(zip(table["source"], table["target"], strict=True))
    meat = np.zeros((3, 3))
    for i, one in enumerate(names):
        for j, other in enumerate(names):
            if depend(one, other):
                meat += residual[i] * residual[j] * np.outer(x[i], x[j])
    return bread @ meat @ bread


def with_own(seed: int) -> pd.DataFrame:
    """Pairs of seven languages, some with themselves, one pair twice, one not at all."""
    table = transfer(7, seed)
    own = table.iloc[:3].assign(target=["l00", "l03", "l05"], source=["l00", "l03", "l05"], LD=1.7)
    return pd.concat([table.iloc[1:], own, table.iloc[[9]].assign(LD=0.3)], ignore_index=True)


@pytest.mark.parametrize("make", [lambda: transfer(7, 1), lambda: with_own(1)])
def test_clustered_errors_are_the_literal_formulas(make: Callable) -> None:
    table = make()
    found = regressions.regression(table, "accuracy", ["LD", "MD"], clusters=PAIR)
    n = len(table)
    rest = (n - 1) / (n - 3)
    n_pairs = len(table[list(PAIR)].drop_duplicates())
    # Cameron, Gelbach and Miller: by source, plus by target, less by both
    expected = (
        7 / 6 * literal_covariance(table, lambda a, b: a[0] == b[0])
        + 7 / 6 * literal_covariance(table, lambda a, b: a[1] == b[1])
        - n_pairs / (n_pairs - 1) * literal_covariance(table, lambda a, b: a == b)
    )
    dyadic = literal_covariance(table, lambda a, b: bool(set(a) & set(b)))
    for kind, covariance in (("clustered", rest * expected), ("dyadic", rest * 7 / 6 * dyadic)):
        error = np.sqrt(np.diag(covariance))
        rows = found.table[found.table["errors"] == kind]
        np.testing.assert_allclose(rows["error"], error)
        assert (rows["df"] == 6).all()
        t = rows["coefficient"] / error
        np.testing.assert_allclose(rows["p_value"], 2 * stats.t.sf(np.abs(t), 6))
        width = stats.t.ppf(0.975, 6) * error
        np.testing.assert_allclose(rows["high"], rows["coefficient"] + width)


def test_a_negative_variance_is_repaired() -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):  # independent errors: what is taken off is as large as what there is
        table = transfer(5, 0).assign(accuracy=rng.normal(size=20))
        by_source = literal_covariance(table, lambda a, b: a[0] == b[0])
        by_target = literal_covariance(table, lambda a, b: a[1] == b[1])
        both = literal_covariance(table, lambda a, b: a == b)
        difference = 5 / 4 * (by_source + by_target) - 20 / 19 * both
        if np.linalg.eigvalsh(difference).min() < 0:
            break
    assert np.linalg.eigvalsh(difference).min() < 0
    found = regressions.regression(table, "accuracy", ["LD", "MD"], clusters=PAIR)
    expected = np.sqrt(np.diag(19 / 17 * 5 / 4 * (by_source + by_target)))
    rows = found.table[found.table["errors"] == "clustered"]
    np.testing.assert_allclose(rows["error"], expected)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"predictors": []}, "one predictor or more"),
        ({"predictors": ["LD", "size"]}, "no column 'size'"),
        ({"rows": 3}, "3 rows are too few for 3 terms"),
        ({"MD": 0.1}, "MD is the same in all 30 rows"),
        ({"accuracy": 0.1}, "accuracy is the same in all 30 rows"),
        ({"MD": lambda table: 1 - 2 * table["LD"]}, "of LD, MD one follows from the others"),
        ({"MD": np.nan}, "MD is missing in 30 of 30 rows"),
        ({"clusters": ["source", "family"]}, "no column 'family'"),
        ({"source": "de", "clusters": PAIR}, "source is the same in all rows"),
    ],
)
def test_regressions_that_cannot_be_are_named(change: dict, says: str) -> None:
    predictors, clusters = change.pop("predictors", ["LD", "MD"]), change.pop("clusters", ())
    rows = change.pop("rows", 30)
    table = transfer(6, 0).assign(**change).head(rows)
    with pytest.raises(ValueError, match=says):
        regressions.regression(table, "accuracy", predictors, clusters=clusters)


def test_a_row_with_a_term_of_its_own_has_no_robust_error() -> None:
    table = transfer(5, 0).assign(only=[1.0] + [0.0] * 19)
    found = regressions.regression(table, "accuracy", ["LD", "only"]).table
    assert found.loc[found["errors"] == "robust", "error"].isna().all()
    assert found.loc[found["errors"] == "classical", "error"].notna().all()


def test_fitted_line_is_the_prediction_of_statsmodels() -> None:
    table = transfer(6, 0)
    found = regressions.fitted_line(table, "LD", "accuracy")
    assert (found["x"].min(), found["x"].max()) == (table["LD"].min(), table["LD"].max())
    predicted = (
        smf.ols("accuracy ~ LD", table).fit().get_prediction(pd.DataFrame({"LD": found["x"]}))
    )
    np.testing.assert_allclose(found["y"], predicted.predicted_mean)
    np.testing.assert_allclose(found[["low", "high"]], predicted.conf_int())
    wide = regressions.fitted_line(table, "LD", "accuracy", clusters=PAIR, errors="dyadic")
    np.testing.assert_allclose(wide["y"], found["y"])
    assert (wide["high"] - wide["low"] > found["high"] - found["low"]).all()
    with pytest.raises(ValueError, match="choose classical, robust"):
        regressions.fitted_line(table, "LD", "accuracy", errors="dyadic")


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    # Kernel 1[u_i < v_j] over random corpora of 40 sentences: the truth is known by construction.
    rng = np.random.default_rng(2)
    truth = stats.norm.cdf(0.3 / np.sqrt(2))
    covered = 0
    for _ in range(400):
        u, v = rng.normal(size=40), rng.normal(0.3, 1, size=40)
        matrix = (u[:, None] < v).astype(float)
        np.fill_diagonal(matrix, np.nan)
        held = np.nansum(matrix, axis=0) + np.nansum(matrix, axis=1)
        left_out = (np.nansum(matrix) - held) / (39 * 38)
        error = statistics.left_out_error(np.nanmean(matrix), left_out, np.ones(40))
        width = statistics.half_width(error)
        low, high = np.nanmean(matrix) - width, np.nanmean(matrix) + width
        covered += low <= truth <= high
    assert 0.92 <= covered / 400 <= 0.98


def coverage(shared: bool) -> dict[str, float]:
    """How often the intervals of each kind hold the true slope."""
    held = []
    for seed in range(100):
        table = transfer(18, seed, shared=shared)
        view = regressions.regression(table, "accuracy", ["LD"], clusters=PAIR).table
        view = view[view["term"] == "LD"].set_index("errors")
        held.append((view["low"] <= 0.5) & (view["high"] >= 0.5))
    return pd.DataFrame(held).mean().to_dict()


@pytest.mark.slow
def test_only_intervals_that_know_what_rows_share_cover() -> None:
    other, same = coverage(shared=False), coverage(shared=True)
    assert max(other["classical"], other["robust"]) < 0.75
    assert 0.86 <= other["clustered"] <= 0.98
    assert same["classical"] < 0.6
    assert same["clustered"] < 0.8  # a language is the same as source and as target
    assert 0.8 <= same["dyadic"] <= 0.98
