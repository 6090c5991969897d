"""Intervals and correlations against closed forms, simulation and scipy."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from xlx import statistics


def test_jackknife_of_an_order_two_score_is_leaving_one_out() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.integers(0, 3, size=(12, 12)) / 2
    np.fill_diagonal(matrix, np.nan)
    influence = [np.nanmean([matrix[i], matrix[:, i]]) for i in range(12)]
    left_out = [np.nanmean(np.delete(np.delete(matrix, i, 0), i, 1)) for i in range(12)]
    by_hand = np.sqrt(11 / 12 * ((left_out - np.mean(left_out)) ** 2).sum())
    assert statistics.jackknife_error(np.array(influence)) == pytest.approx(by_hand, rel=1e-9)


def test_jackknife_of_order_one_is_the_standard_error() -> None:
    values = np.random.default_rng(1).random((3, 40))
    expected = values.std(axis=1, ddof=1) / np.sqrt(40)
    np.testing.assert_allclose(statistics.jackknife_error(values, order=1), expected)
    with pytest.raises(ValueError, match="three sentences"):
        statistics.jackknife_error(np.array([0.1, 0.2]))


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    # Kernel 1[u_i < v_j] over random corpora of 40 sentences: the truth is known by construction.
    rng = np.random.default_rng(2)
    truth = stats.norm.cdf(0.3 / np.sqrt(2))
    covered = 0
    for _ in range(400):
        u, v = rng.normal(size=40), rng.normal(0.3, 1, size=40)
        matrix = (u[:, None] < v).astype(float)
        np.fill_diagonal(matrix, np.nan)
        influence = np.array([np.nanmean([matrix[i], matrix[:, i]]) for i in range(40)])
        low, high = statistics.interval(np.nanmean(matrix), statistics.jackknife_error(influence))
        covered += low <= truth <= high
    assert 0.92 <= covered / 400 <= 0.98


def test_bootstrap_of_a_constant_and_of_an_additive_kernel() -> None:
    constant = statistics.bootstrap_kernel(np.full((2, 9, 9), 0.25), 50, seed=0)
    np.testing.assert_allclose(constant, 0.25)
    scores = np.random.default_rng(3).random(300)
    additive = (scores[:, None] + scores) / 2  # its mean is the mean of the scores
    spread = statistics.bootstrap_kernel(additive, 3000, seed=1).std()
    assert spread == pytest.approx(scores.std() / np.sqrt(300), rel=0.08)
    assert np.array_equal(
        statistics.bootstrap_kernel(additive, 5, seed=1),
        statistics.bootstrap_kernel(additive, 5, seed=1),
    )


def test_share_interval_is_wilson() -> None:
    expected = stats.binomtest(37, 80).proportion_ci(method="wilson")
    assert statistics.share_interval(37, 80) == pytest.approx((expected.low, expected.high))


def language_pairs(n: int, seed: int, effect: float) -> pd.DataFrame:
    """Scores of pairs that are sums of scores of their languages, and so depend on each other."""
    rng = np.random.default_rng(seed)
    own = rng.normal(size=n)
    other = effect * own + np.sqrt(1 - effect**2) * rng.normal(size=n)
    rows = [
        {
            "language_1": f"l{i}",
            "language_2": f"l{j}",
            "LD": own[i] + own[j],
            "MD": other[i] + other[j],
        }
        for i in range(n)
        for j in range(i + 1, n)
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize("method", ["pearson", "spearman"])
def test_correlation_is_scipys_and_holds_it_in_its_interval(method: str) -> None:
    pairs = language_pairs(20, 5, -0.6)
    found = statistics.correlation(pairs, "LD", "MD", method=method, n_resamples=300)
    test = stats.pearsonr if method == "pearson" else stats.spearmanr
    assert found.value == pytest.approx(test(pairs["LD"], pairs["MD"])[0])
    assert found.low < found.value < found.high
    assert found.n == 190
    again = statistics.correlation(pairs, "LD", "MD", method=method, n_resamples=300)
    assert again == found


def test_the_weighted_correlation_is_that_of_repeated_rows() -> None:
    rng = np.random.default_rng(7)
    x, y = rng.integers(0, 6, size=(2, 15)).astype(float)
    weight = rng.integers(0, 4, size=15)
    for method, test in (("pearson", stats.pearsonr), ("spearman", stats.spearmanr)):
        repeated = test(np.repeat(x, weight), np.repeat(y, weight))[0]
        assert statistics._weighted(x, y, weight, method) == pytest.approx(repeated)


def test_unrelated_languages_seldom_look_related() -> None:
    """The interval over languages holds where the p-value over pairs does not."""
    excluded = significant = 0
    for seed in range(60):
        found = statistics.correlation(language_pairs(12, seed, 0.0), "LD", "MD", n_resamples=200)
        excluded += not found.low <= 0 <= found.high
        significant += found.p_value < 0.05
    assert excluded / 60 < 0.2
    assert significant > 2 * excluded


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"method": "kendall"}, "no method"),
        ({"rows": 2}, "three rows"),
        ({"constant": True}, "the same in all"),
    ],
)
def test_bad_correlations_are_named(change: dict, says: str) -> None:
    pairs = language_pairs(5, 0, 0.5)
    if change.get("constant"):
        pairs["LD"] = 0.5
    with pytest.raises(ValueError, match=says):
        statistics.correlation(
            pairs.head(change.get("rows", 10)), "LD", "MD", method=change.get("method", "pearson")
        )
