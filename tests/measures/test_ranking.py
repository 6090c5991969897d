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
from tests.measures.test_transferability import wrong
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


@pytest.mark.parametrize("n_models", [1, 3])
def test_the_noise_of_gold_scores_is_that_of_premises_and_models(n_models, monkeypatch) -> None:
    monkeypatch.setattr(ranking, "N_RESAMPLES", 20_000)
    rng, groups = np.random.default_rng(1), np.arange(60) // 3
    easy = rng.random((1, 20)).repeat(3, axis=1)
    wrongs = {
        ("en", target): rng.random((n_models, 60)) < easy * (0.6 + rng.random((n_models, 1)))
        for target in ("fi", "tr")
    }
    gold = ranking.gold_scores(wrongs, groups)
    assert gold.table["score"].iloc[0] == 1 - wrongs["en", "fi"].mean()
    apart = wrongs["en", "tr"].astype(float) - wrongs["en", "fi"]
    premises = apart.reshape(n_models, 20, 3).mean(axis=2)
    expected = premises.mean(axis=0).var(ddof=1) / 20
    if n_models > 1:
        means = premises.mean(axis=1, keepdims=True)
        left = premises - means - premises.mean(axis=0) + premises.mean()
        mixed = (left**2).sum() / 19 / (n_models - 1)
        assert means.var(ddof=1) > mixed / 20
        expected += (means.var(ddof=1) - mixed / 20) / n_models
    else:
        width = np.ptp(igap.crossed_interval(apart, groups)[1:]) / 2
        assert width == pytest.approx(stats.t.ppf(0.975, 19) * np.sqrt(expected))
    found = gold.noise[:, 0] - gold.noise[:, 1]
    assert found.mean() == pytest.approx(0, abs=0.003)
    assert found.std() == pytest.approx(np.sqrt(expected), rel=0.03)


def test_directions_are_ranked_source_by_source() -> None:
    gold = ranking.gold_scores(answers())
    predictors = predictions(gold.table)
    table = ranking.rank_directions(gold.table, predictors, noise=gold.noise, against="truth")
    assert table["metric"].unique().tolist() == ["noise", "truth"]
    across = gold.table[gold.table["source"] != gold.table["target"]]
    means, moved = across.groupby("source")["score"].transform("mean"), gold.noise[:, across.index]
    for source in LANGUAGES:
        own = (across["source"] == source).to_numpy()
        moved[:, own] -= moved[:, own].mean(axis=1, keepdims=True)
    share = 1 - (moved**2).sum(axis=1).mean() / ((across["score"] - means) ** 2).sum()
    assert ranking.reliability(gold.table, gold.noise) == pytest.approx(share)
    for metric, own in table.groupby("metric"):
        own = own.set_index("source")
        assert own.index.tolist() == [*LANGUAGES, "mean"]
        scores = predictors[predictors["metric"] == metric].set_index(["source", "target"])
        drawn = []
        for source, rows in across.groupby("source"):
            predicted = scores.loc[[(source, t) for t in rows["target"]], "score"].to_numpy()
            shrunk = np.sqrt(share) * rows["score"].to_numpy() + gold.noise[:, rows.index]
            both = [rows["score"].to_numpy(), *shrunk]
            drawn.append([igap.ranking_accuracy(one, predicted) for one in both])
        for name, (plain, *each) in zip(own.index, [*drawn, np.mean(drawn, axis=0)], strict=True):
            first, *others = np.sin(np.pi * (np.array([plain, *each]) - 0.5)) / share**0.5
            others = [first + other - np.mean(others) for other in others]
            best, *others = 0.5 + np.arcsin(np.clip([first, *others], -1, 1)) / np.pi
            expected = [plain, best, *np.quantile(others, [0.025, 0.975])]
            row = own.loc[name, ["accuracy", "corrected", "low", "high"]]
            assert row.tolist() == pytest.approx(expected)
    assert (table.loc[table["metric"] == "truth", ["accuracy", "corrected"]] == 1).all(axis=None)
    mean = table[table["source"] == "mean"].set_index("metric")
    assert (mean["apart"] == mean["corrected"] - 1).all()
    assert (mean.loc["truth", ["apart_low", "apart_high"]] == 0).all()
    without = ranking.rank_directions(gold.table, predictors)
    assert without.columns.tolist() == ["metric", "source", "accuracy"]
    pd.testing.assert_series_equal(without["accuracy"], table["accuracy"])


def test_languages_are_permuted_rows_and_columns_together() -> None:
    gold = ranking.gold_scores(answers()).table
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
    gold = ranking.gold_scores(answers())
    predictors = gold.table.assign(
        metric="IGAP", score=gold.table["score"].mask(gold.table["source"] == "sw")
    )
    table = ranking.rank_directions(gold.table, predictors, noise=gold.noise)
    table = table.set_index("source")[["accuracy", "corrected", "low", "high"]]
    assert table.loc[["sw", "mean"]].isna().all(axis=None)
    assert table.loc[["en", "fi", "tr"]].notna().all(axis=None)
    kept = gold.table[gold.table["source"] != "sw"]
    assert ranking.rank_directions(kept, predictors)["accuracy"].tolist() == [1] * 4


ORDER = np.array([0.9, 0.7, 0.5, 0.1])
GOLD = ranking.gold_scores(answers())
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
        (lambda: rank(predictors=NOISE.drop(columns="metric")), "no column 'metric'"),
        (
            lambda: rank(GOLD.table[GOLD.table["target"].isin(["en", "fi"])]),
            "en has 1 other target",
        ),
        (lambda: rank(GOLD.table.head(0)), "gold has no rows"),
        (lambda: rank(predictors=NOISE.head(0)), "there are no predictors"),
        (lambda: rank(noise=GOLD.noise[:, :15]), r"shape \(1000, 15\) and gold 16 rows"),
        (lambda: ranking.gold_scores({}), "no transfer directions"),
        (lambda: ranking.gold_scores(answers() | {("fi", "sw"): wrong(2, 59)}), r"fi to sw has"),
        (lambda: ranking.gold_scores(answers() | {("fi", "sw"): wrong(60)}), r"shape \(60,\)"),
        (lambda: ranking.gold_scores({("fi", "sw"): wrong(2, 60) * 1}), "must be a boolean"),
        (lambda: ranking.gold_scores(answers(), np.zeros(60)), "60 places in 1 groups"),
        (lambda: ranking.gold_scores(answers(), np.arange(9)), "9 places in 9 groups"),
    ],
)
def test_what_cannot_be_ranked_is_named(call, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()


def test_other_sources_are_averaged_without_the_direction_and_the_target() -> None:
    rows = [
        ("en", "de", 0.9),
        ("en", "ja", 0.5),
        ("de", "en", 0.8),
        ("de", "ja", 0.3),
        ("ja", "en", 0.2),
        ("ja", "de", 0.1),
        ("fr", "de", 0.4),
        ("de", "de", 1.0),
    ]
    gold = pd.DataFrame(rows, columns=["source", "target", "score"])
    means = ranking.other_sources(gold).set_index(["source", "target"])["score"]
    assert means["en", "de"] == pytest.approx((0.1 + 0.4) / 2)  # not de to de
    assert means["ja", "de"] == pytest.approx((0.9 + 0.4) / 2)
    assert means["fr", "de"] == pytest.approx((0.9 + 0.1) / 2)
    assert (means["en", "ja"], means["de", "en"]) == (0.3, 0.2)


def planted(quality: float, spread: float, seed: int) -> list[float]:
    """A metric that knows the order by ``quality``: its true accuracy, as found, and intervals.

    ``spread``: of its scores, which then are means of 20 draws of labels.
    """
    rng, shape = np.random.default_rng(seed), (3, 14)
    ease = np.sqrt(0.8) * rng.normal(size=14) + np.sqrt(0.2) * rng.normal(size=shape)
    metric = quality * ease + np.sqrt(1 - quality**2) * rng.normal(size=shape)
    premises = np.sqrt(0.4) * rng.normal(size=100).repeat(3) + np.sqrt(0.2) * rng.normal(size=300)
    own = np.sqrt(0.4) * rng.normal(size=(*shape, 3, 300))
    answers = premises + own + 0.05 * ease[..., None, None] < -0.3
    wrongs = {(f"s{i}", f"t{j}"): answers[i, j] for i, j in np.ndindex(shape)}
    gold = ranking.gold_scores(wrongs, np.arange(100).repeat(3))
    draws = metric.ravel() + spread * rng.normal(size=(20, metric.size))
    by_draw = pd.DataFrame(-draws, columns=[" ".join(key) for key in wrongs])
    scored = igap_2_ranking.label_scores(by_draw)
    again = {igap_2_ranking.FROZEN_LABELS: ranking.redrawn(by_draw, gold.table)}
    found = ranking.rank_directions(gold.table, scored, noise=gold.noise, again=again).iloc[-1]
    moved = (gold.table["score"].to_numpy() + gold.noise).reshape(-1, *shape)
    plain = igap.ranking_accuracy(moved, draws.mean(axis=0).reshape(shape)).mean(axis=-1)
    plain = found["accuracy"] + np.quantile(plain, ranking.ENDS) - plain.mean()
    aim = igap.ranking_accuracy(ease, metric).mean()
    return [aim, *found[["accuracy", "corrected", "low", "high"]], *plain]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("quality", "spread", "held_before", "bias"),
    [(1, 0, 0, 0.08), (0.9, 0, 0.4, 0.06), (0.9, 2, 0.2, 0.06), (0, 0, 1, 0.05)],
)
def test_the_corrected_interval_has_the_accuracy_for_the_true_order(
    quality: float, spread: float, held_before: float, bias: float
) -> None:
    worlds = [planted(quality, spread, seed) for seed in range(40)]
    aim, accuracy, corrected, low, high, plain_low, plain_high = np.transpose(worlds)
    assert ((plain_low <= aim) & (aim <= plain_high)).mean() <= held_before
    assert ((low <= aim) & (aim <= high)).mean() >= 0.9
    assert abs((corrected - aim).mean()) < bias
    assert (aim - accuracy).mean() > bias or not quality
