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
from tests.igap.test_transferability import about, wrong
from xlx.measures import igap, statistics


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


def test_ranking_accuracy_closed_forms() -> None:
    gold = np.array([0.9, 0.7, 0.5, 0.1])
    assert igap.ranking_accuracy(gold, 100 + gold**3) == 1
    assert igap.ranking_accuracy(gold, -gold) == 0
    assert igap.ranking_accuracy(gold, np.ones(4)) == 0.5
    assert igap.ranking_accuracy(gold, gold[[1, 0, 2, 3]]) == pytest.approx(5 / 6)
    noise = np.array([0, 3e-16, 0, 0])  # not a better language, only another order of summing
    assert igap.ranking_accuracy(gold, 0.6 + noise) == 0.5
    many = igap.ranking_accuracy(np.stack([gold, -gold, gold]), gold)
    assert many.tolist() == [1, 0, 1]


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
def test_random_order_has_half_of_the_pairs(k: int) -> None:
    orders = np.array(list(itertools.permutations(range(k))))
    accuracies = igap.ranking_accuracy(np.arange(k), orders)
    assert accuracies.mean() == pytest.approx(0.5)


LANGUAGES = ("en", "fi", "sw", "tr")


def answers(n: int = 60, noise: float = 1.0, seed: int = 0) -> dict[tuple[str, str], np.ndarray]:
    """Two models in all directions, the later languages worse; numbers of models may differ."""
    rng = np.random.default_rng(seed)
    return {
        (source, target): rng.random((2 + (source == "fi"), n))
        < (0.2 * LANGUAGES.index(target) + noise * rng.random((1, n))) / (1 + noise)
        for source, target in itertools.product(LANGUAGES, repeat=2)
    }


def predictions(gold: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    known = gold.assign(metric="truth")
    blind = gold.assign(metric="noise", score=rng.random(len(gold)))
    extra = pd.DataFrame({"metric": ["noise"], "source": ["en"], "target": ["zh"], "score": [3.0]})
    return pd.concat([blind.sample(frac=1, random_state=seed), known, extra])


def test_gold_scores_are_the_accuracies_on_each_sample_of_examples_and_models() -> None:
    wrongs = answers()
    gold = ranking.gold_scores(wrongs, n_resamples=7, n_splits=5, seed=3)
    rng = np.random.default_rng(3)
    counts, halves = statistics.resample_counts(60, 7, rng), igap.random_halves(60, 5, rng)
    models = {x: statistics.resample_counts(2 + (x == "fi"), 7, rng) for x in LANGUAGES}
    for column, ((source, target), array) in enumerate(wrongs.items()):
        row = gold.table.iloc[column]
        assert (row["source"], row["target"]) == (source, target)
        assert row["score"] == pytest.approx(1 - array.mean())
        for r, drawn in enumerate(counts.astype(int)):
            resample = np.repeat(array, drawn, axis=1)
            resample = np.repeat(resample, models[source][r].astype(int), axis=0)
            assert gold.resamples[r, column] == pytest.approx(1 - resample.mean())
        for r, half in enumerate(halves == 1):
            assert half.sum() == 30
            for side, chosen in enumerate((half, ~half)):
                expected = 1 - array[:, chosen].mean()
                assert gold.halves[side, r, column] == pytest.approx(expected)


def test_directions_are_ranked_source_by_source() -> None:
    gold = ranking.gold_scores(answers(), n_resamples=30)
    predictors = predictions(gold.table)
    table = ranking.rank_directions(gold.table, predictors, resamples=gold.resamples)
    assert table["metric"].unique().tolist() == ["noise", "truth"]
    numbers = ["accuracy", "low", "high"]
    for metric, own in table.groupby("metric"):
        own = own.set_index("source")[numbers]
        assert own.index.tolist() == [*LANGUAGES, "mean"]
        scores = predictors[predictors["metric"] == metric].set_index(["source", "target"])
        accuracies, resampled = [], []
        for source in LANGUAGES:
            rows = gold.table[(gold.table["source"] == source) & (gold.table["target"] != source)]
            predicted = scores.loc[[(source, t) for t in rows["target"]], "score"].to_numpy()
            accuracies.append(igap.ranking_accuracy(rows["score"].to_numpy(), predicted))
            resampled.append(
                [igap.ranking_accuracy(g[rows.index], predicted) for g in gold.resamples]
            )
            ends = np.clip(about(accuracies[-1], resampled[-1]), 0, 1)
            assert own.loc[source].tolist() == pytest.approx([accuracies[-1], *ends])
        mean = np.mean(accuracies)
        ends = np.clip(about(mean, np.mean(resampled, axis=0)), 0, 1)
        assert own.loc["mean"].tolist() == pytest.approx([mean, *ends])
    assert (table.loc[table["metric"] == "truth", "accuracy"] == 1).all()
    without = ranking.rank_directions(gold.table, predictors)
    assert without[["low", "high"]].isna().all(axis=None)
    pd.testing.assert_series_equal(without["accuracy"], table["accuracy"])


def test_languages_are_permuted_rows_and_columns_together() -> None:
    gold = ranking.gold_scores(answers(), n_resamples=2).table
    predictors = predictions(gold)
    found = igap_2_ranking.permuted_languages(gold, predictors).set_index("metric")
    once = ranking.rank_directions(gold, predictors)
    once = once[once["source"] == "mean"].set_index("metric")["accuracy"]
    of_gold = predictors[predictors["target"].isin(LANGUAGES)]
    for metric, own in of_gold.groupby("metric", sort=False):
        accuracies = []
        for order in itertools.permutations(LANGUAGES):
            called = dict(zip(LANGUAGES, order, strict=True))
            moved = own.assign(source=own["source"].map(called), target=own["target"].map(called))
            table = ranking.rank_directions(gold, moved)
            accuracies.append(table.loc[table["source"] == "mean", "accuracy"].item())
        row = found.loc[metric]
        assert [row["accuracy"]] * 2 == pytest.approx([once[metric], accuracies[0]])
        assert row["n_permutations"] == len(accuracies) == 24
        expected = np.mean(np.array(accuracies) >= accuracies[0] - 1e-9)
        assert row["p_value"] == pytest.approx(expected)
        low, high = np.quantile(accuracies, [0.025, 0.975])
        assert (row["random_low"], row["random_high"]) == pytest.approx((low, high))
    drawn = igap_2_ranking.permuted_languages(gold, predictors, n_permutations=20, seed=1)
    assert drawn["accuracy"].tolist() == pytest.approx(found["accuracy"].tolist())
    assert (drawn["p_value"] >= 1 / 20).all()


def test_the_level_of_permuted_languages_holds_where_all_sources_have_one_order() -> None:
    """Good targets are so for all sources, of gold and of a metric that knows nothing of it."""
    rng = np.random.default_rng(0)
    codes = list("abcdef")
    below = 0
    for _ in range(40):
        tables = [
            pd.DataFrame(
                [(s, t, ease[t] + 0.1 * rng.normal()) for s, t in itertools.permutations(codes, 2)],
                columns=["source", "target", "score"],
            )
            for ease in ({code: rng.normal() for code in codes} for _ in range(2))
        ]
        found = igap_2_ranking.permuted_languages(
            tables[0], tables[1].assign(metric="IGAP"), n_permutations=99
        )
        below += found["p_value"].item() <= 0.1
    assert below <= 9  # 4 expected; more than 9 in fewer than 1 of 100 such tests


def test_a_source_without_a_model_in_the_window_has_no_accuracy() -> None:
    gold = ranking.gold_scores(answers(), n_resamples=9)
    predictors = gold.table.assign(
        metric="IGAP", score=gold.table["score"].mask(gold.table["source"] == "sw")
    )
    table = ranking.rank_directions(gold.table, predictors, resamples=gold.resamples)
    table = table.set_index("source")[["accuracy", "low", "high"]]
    assert table.loc[["sw", "mean"]].isna().all(axis=None)
    assert table.loc[["en", "fi", "tr"]].notna().all(axis=None)
    kept = gold.table[gold.table["source"] != "sw"]
    assert ranking.rank_directions(kept, predictors)["accuracy"].tolist() == [1] * 4


ORDER = np.array([0.9, 0.7, 0.5, 0.1])
GOLD = ranking.gold_scores(answers(), n_resamples=2)
NOISE = predictions(GOLD.table)
HOLE = GOLD.table.assign(metric="IGAP", score=GOLD.table["score"].mask(GOLD.table.index == 1))


def rank(gold: pd.DataFrame = GOLD.table, predictors: pd.DataFrame = NOISE, **options: object):
    return ranking.rank_directions(gold, predictors, **options)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: igap.ranking_accuracy(ORDER, ORDER[:3]), "4 languages with a gold score and 3"),
        (lambda: igap.ranking_accuracy(ORDER[:1], ORDER[:1]), "two or more"),
        (lambda: igap.ranking_accuracy(ORDER, ORDER * np.nan), "NaN"),
        (lambda: rank(predictors=HOLE), "IGAP is NaN for en to fi but not for all"),
        (lambda: rank(predictors=NOISE[NOISE["target"] != "tr"]), "noise has no score of en to tr"),
        (lambda: rank(predictors=pd.concat([NOISE, NOISE])), "the scores of noise more than once"),
        (lambda: rank(pd.concat([GOLD.table, GOLD.table])), "en to en is in gold more than once"),
        (lambda: rank(GOLD.table.assign(score=np.nan)), "score is missing in 16 of 16"),
        (lambda: rank(GOLD.table.drop(columns="source")), "no column 'source'"),
        (lambda: rank(predictors=NOISE.drop(columns="metric")), "no column 'metric'"),
        (
            lambda: rank(GOLD.table[GOLD.table["target"].isin(["en", "fi"])]),
            "en has 1 other target",
        ),
        (lambda: rank(GOLD.table.head(0)), "gold has no rows"),
        (lambda: rank(predictors=NOISE.head(0)), "there are no predictors"),
        (lambda: rank(resamples=GOLD.resamples[:, :15]), r"shape \(2, 15\) and gold 16 rows"),
        (lambda: ranking.gold_scores({}), "no transfer directions"),
        (lambda: ranking.gold_scores(answers() | {("fi", "sw"): wrong(2, 59)}), r"fi to sw has"),
        (lambda: ranking.gold_scores(answers() | {("fi", "sw"): wrong(60)}), r"shape \(60,\)"),
        (lambda: ranking.gold_scores({("fi", "sw"): wrong(2, 60) * 1}), "must be a boolean"),
    ],
)
def test_what_cannot_be_ranked_is_named(call, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()


def test_reliability_is_the_accuracy_of_halves_and_of_resamples() -> None:
    gold = ranking.gold_scores(answers(), n_resamples=20, n_splits=20)
    halves, resampled = [], []
    for source in LANGUAGES:
        ends = gold.table["source"], gold.table["target"]
        rows = gold.table.index[(ends[0] == source) & (ends[1] != source)]
        pairs = zip(*gold.halves, strict=True)
        halves.append([igap.ranking_accuracy(a[rows], b[rows]) for a, b in pairs])
        whole = gold.table["score"].to_numpy()[rows]
        resampled.append([igap.ranking_accuracy(whole, g[rows]) for g in gold.resamples])
    found = igap_2_ranking.order_reliability(gold)
    assert found.to_dict() == pytest.approx(
        {"halves": np.mean(halves), "resampled": np.mean(resampled)}
    )


def test_what_knows_the_truth_lies_between_the_two_reliabilities() -> None:
    truth = np.linspace(0.35, 0.45, 8)
    reached, halves, resampled = [], [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        wrongs = {("en", f"l{i}"): rng.random((1, 300)) < rate for i, rate in enumerate(truth)}
        gold = ranking.gold_scores(wrongs, n_resamples=50, n_splits=20, seed=seed)
        reached.append(igap.ranking_accuracy(gold.table["score"], -truth))
        row = igap_2_ranking.order_reliability(gold)
        halves.append(row["halves"])
        resampled.append(row["resampled"])
    assert np.mean(halves) < np.mean(reached) - 0.02 < np.mean(resampled) - 0.02


def test_other_sources_are_averaged_without_the_direction_and_the_target() -> None:
    rows = [("en", "de", 0.9), ("en", "ja", 0.5), ("de", "en", 0.8), ("de", "ja", 0.3),
            ("ja", "en", 0.2), ("ja", "de", 0.1), ("fr", "de", 0.4), ("de", "de", 1.0)]  # fmt: skip
    gold = pd.DataFrame(rows, columns=["source", "target", "score"])
    means = ranking.other_sources(gold).set_index(["source", "target"])["score"]
    assert means["en", "de"] == pytest.approx((0.1 + 0.4) / 2)  # not de to de
    assert means["ja", "de"] == pytest.approx((0.9 + 0.4) / 2)
    assert means["fr", "de"] == pytest.approx((0.9 + 0.1) / 2)
    assert (means["en", "ja"], means["de", "en"]) == (0.3, 0.2)


@pytest.mark.parametrize("spread", [0.3, 0.6])
def test_an_interval_with_the_draws_of_labels_covers_and_one_without_does_not(
    spread: float,
) -> None:
    rng, inside = np.random.default_rng(0), []
    codes = [f"l{i}" for i in range(14)]
    rows = [(source, code) for source in codes[:3] for code in codes if code != source]
    for _ in range(100):
        score, noise = rng.normal(size=(2, len(rows)))
        gold = pd.DataFrame(rows, columns=["source", "target"]).assign(score=score)
        gaps = noise - score
        moved = gaps + spread * rng.normal(size=(20, len(rows)))
        by_draw = pd.DataFrame(moved, columns=[" ".join(row) for row in rows])
        true = gold.assign(metric="random labels, frozen", score=-gaps)
        aim = ranking.rank_directions(gold, true)["accuracy"].iloc[-1]
        drawn = igap_2_ranking.label_scores(by_draw)
        fixed, again = np.tile(score, (200, 1)), ranking.redrawn(by_draw, gold, 200)
        for more in (None, {igap_2_ranking.FROZEN_LABELS: again}):
            found = ranking.rank_directions(gold, drawn, resamples=fixed, again=more).iloc[-1]
            inside.append(found["low"] - 1e-9 <= aim <= found["high"] + 1e-9)
    without, covered = np.reshape(inside, (-1, 2)).mean(axis=0)
    assert without < 0.35
    assert covered >= 0.85, covered
