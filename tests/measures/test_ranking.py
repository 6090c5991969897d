"""Ranking of transfer directions: against Equation 6 retyped, literal loops and closed forms."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import igap_2_ranking
from shared import ranking
from xlx.measures import igap


def literal_equation_6(gold: list[str], predicted: list[str]) -> float:
    """Equation 6 on two sequences of languages, best first."""
    n = len(gold)
    right = 0
    for one, other in itertools.combinations(gold, 2):
        product = (gold.index(one) - gold.index(other)) * (
            predicted.index(one) - predicted.index(other)
        )
        right += product > 0
    return 2 / (n * (n - 1)) * right


def sequences(scores: np.ndarray) -> list[list[str]]:
    """All sequences of languages, best first, that the scores allow."""
    names = [f"l{i}" for i in range(len(scores))]
    return [
        list(order)
        for order in itertools.permutations(names)
        if all(
            scores[names.index(a)] >= scores[names.index(b)] for a, b in itertools.pairwise(order)
        )
    ]


@given(st.integers(2, 14), st.integers(0, 10**6))
@settings(max_examples=40)
def test_ranking_accuracy_is_equation_6_and_kendalls_tau(k: int, seed: int) -> None:
    gold, predicted = np.random.default_rng(seed).normal(size=(2, k))
    names = np.array([f"l{i}" for i in range(k)])
    expected = literal_equation_6(*(list(names[np.argsort(-s)]) for s in (gold, predicted)))
    found = igap.ranking_accuracy(gold, predicted)
    assert found == pytest.approx(expected)
    assert found == pytest.approx((stats.kendalltau(gold, predicted).statistic + 1) / 2)
    assert igap.ranking_accuracy(-gold, predicted) == pytest.approx(1 - expected)


@given(
    st.lists(st.integers(0, 2), min_size=4, max_size=4),
    st.lists(st.integers(0, 2), min_size=4, max_size=4),
)
def test_ties_count_what_a_drawn_order_would(gold: list[int], predicted: list[int]) -> None:
    scores = np.array(gold) / 3, np.array(predicted) / 7
    drawn = [
        literal_equation_6(one, other)
        for one, other in itertools.product(*(sequences(s) for s in scores))
    ]
    assert igap.ranking_accuracy(*scores) == pytest.approx(np.mean(drawn))


def test_rounding_ranks_nothing_and_metrics_are_ranked_together() -> None:
    gold = np.array([0.9, 0.7, 0.5, 0.1])
    noise = np.array([0, 3e-16, 0, 0])  # not a better language, only another order of summing
    assert igap.ranking_accuracy(gold, 0.6 + noise) == 0.5
    many = igap.ranking_accuracy(np.stack([gold, -gold, gold]), gold)
    assert many.tolist() == [1, 0, 1]


LANGUAGES = ("en", "fi", "sw", "tr")
WAYS = pd.MultiIndex.from_tuples(itertools.permutations(LANGUAGES, 2), names=["source", "target"])


def made(seed: int = 0) -> tuple[pd.Series, pd.DataFrame]:
    """Accuracies of all directions, and one metric that has their order and one that has none."""
    rng = np.random.default_rng(seed)
    gold = pd.Series(rng.random(len(WAYS)), WAYS)
    return gold, pd.DataFrame({"truth": 3 * gold - 1, "noise": rng.random(len(WAYS))})


def test_directions_are_ranked_source_by_source() -> None:
    gold, scores = made()
    table = ranking.accuracies(gold, scores)
    assert (table["truth"] == 1).all()
    for source in LANGUAGES:
        expected = igap.ranking_accuracy(
            gold[source].to_numpy(), scores["noise"][source].to_numpy()
        )
        assert table.loc[source, "noise"] == expected


def test_a_metric_is_ahead_by_what_languages_left_out_tell() -> None:
    gold, scores = made()
    found = igap_2_ranking.ranked([(gold, scores)], "truth")
    assert found.loc["truth"].tolist() == [1, 0, 0, 0]
    without = []
    for code in LANGUAGES:
        kept = [way for way in WAYS if code not in way]
        without.append(1 - ranking.accuracies(gold[kept], scores.loc[kept])["noise"].mean())
    ahead = 1 - ranking.accuracies(gold, scores)["noise"].mean()
    half = stats.t.ppf(0.975, 3) * np.sqrt(3 * np.var(without))
    expected = [1 - ahead, ahead, ahead - half, ahead + half]
    assert found.loc["noise"].tolist() == pytest.approx(expected)
    twice = igap_2_ranking.ranked([(gold, scores), made(1)], "truth")
    means = [ranking.accuracies(*world)["noise"].mean() for world in (made(), made(1))]
    assert twice.loc["noise", "accuracy"] == pytest.approx(np.mean(means))


def test_languages_are_permuted_rows_and_columns_together() -> None:
    gold, scores = made()
    found = igap_2_ranking.permuted_languages(gold, scores)
    for metric in scores:
        means = []
        for order in itertools.permutations(LANGUAGES):
            called = dict(zip(LANGUAGES, order, strict=True))
            moved = pd.Series({(called[s], called[t]): x for (s, t), x in scores[metric].items()})
            moved = moved.rename_axis(WAYS.names).reindex(WAYS).to_frame()
            means.append(ranking.accuracies(gold, moved).mean().item())
        row = found.loc[metric]
        assert row["p_value"] == pytest.approx(np.mean(np.array(means) >= means[0] - 1e-9))
        low, high = np.quantile(means, [0.025, 0.975])
        assert (row["random_low"], row["random_high"]) == pytest.approx((low, high))
    drawn = igap_2_ranking.permuted_languages(gold, scores, n_permutations=20, seed=1)
    assert (drawn["p_value"] >= 1 / 20).all()


def test_the_level_of_permuted_languages_holds_where_all_sources_have_one_order() -> None:
    """Good targets are so for all sources, of gold and of a metric that knows nothing of it."""
    rng = np.random.default_rng(0)
    codes, below = list("abcdef"), 0
    ways = pd.MultiIndex.from_tuples(itertools.permutations(codes, 2), names=["source", "target"])
    for _ in range(40):
        gold, metric = (
            pd.Series([ease[t] + 0.1 * rng.normal() for _, t in ways], ways)
            for ease in ({code: rng.normal() for code in codes} for _ in range(2))
        )
        found = igap_2_ranking.permuted_languages(gold, metric.to_frame("IGAP"), n_permutations=99)
        below += found["p_value"].item() <= 0.1
    assert below <= 9  # 4 expected; more than 9 in fewer than 1 of 100 such tests


def test_an_order_without_igap_is_refused() -> None:
    gold, _ = made()
    with pytest.raises(ValueError, match="raise the tolerance"):
        igap_2_ranking.metric_scores(gold, gold.iloc[:0], pd.DataFrame(), pd.DataFrame())


def test_other_sources_are_averaged_without_the_direction() -> None:
    gold, _ = made()
    other = ranking.other_sources(gold)
    assert other["en", "fi"] == pytest.approx((gold["sw", "fi"] + gold["tr", "fi"]) / 2)


ORDER = np.array([0.9, 0.7, 0.5, 0.1])


@pytest.mark.parametrize(
    ("gold", "predicted", "says"),
    [
        (ORDER, ORDER[:3], "4 languages with a gold score and 3"),
        (ORDER[:1], ORDER[:1], "two or more"),
        (ORDER, ORDER * np.nan, "NaN"),
    ],
)
def test_what_cannot_be_ranked_is_named(gold: np.ndarray, predicted: np.ndarray, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        igap.ranking_accuracy(gold, predicted)


def test_the_interval_of_an_order_of_targets_holds_no_difference() -> None:
    """Two metrics that know the targets alike: the interval has 0 in 19 of 20 worlds or so."""
    codes, rng, held = list("abcdefghij"), np.random.default_rng(0), 0
    ways = pd.MultiIndex.from_tuples(itertools.permutations(codes, 2), names=["source", "target"])
    targets = ways.get_level_values("target")
    for _ in range(60):
        ease = pd.Series(rng.normal(size=10), codes)
        gold = pd.Series(ease[targets].to_numpy() + 0.2 * rng.normal(size=90), ways)
        both = {x: (ease + 0.7 * rng.normal(size=10))[targets].to_numpy() for x in "xy"}
        row = igap_2_ranking.ranked([(gold, pd.DataFrame(both, ways))], "x").loc["y"]
        held += row["low"] <= 0 <= row["high"]
    assert held >= 51
