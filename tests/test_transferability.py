"""Transferability against the paper's equations retyped, literal loops and closed forms."""

import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from xlx import transferability as tr


def wrong(*shape: int, rate: float = 0.4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape) < rate


# --- the parts of the error -----------------------------------------------------------------------


def literal_parts(training, translated, target) -> dict[str, Fraction]:
    """Equations 3 and 4, term by term, in fractions."""
    n, n_val = len(training), len(target)
    error = sum(Fraction(int(y), n_val) for y in target)
    inter = sum(Fraction(int(t) - int(s), n) for s, t in zip(training, translated, strict=True))
    intra = sum(Fraction(int(y), n_val) for y in target) - sum(
        Fraction(int(t), n) for t in translated
    )
    train = sum(Fraction(int(s), n) for s in training)
    return {"error": error, "interlingual": inter, "intralingual": intra, "training": train}


@given(st.integers(1, 3000), st.integers(1, 3000), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_the_parts_add_up_to_the_last_digit(n: int, n_val: int, seed: int) -> None:
    rates = np.random.default_rng(seed).random(3)
    arrays = [
        wrong(size, rate=rate, seed=seed + i)
        for i, (size, rate) in enumerate(zip((n, n, n_val), rates, strict=True))
    ]
    found = tr.decompose(*arrays)
    expected = literal_parts(*arrays)
    assert expected["error"] == sum(
        expected[name] for name in ("interlingual", "intralingual", "training")
    )
    for name, value in expected.items():
        number = float(getattr(found, name))
        # the nearest float, from which the fraction itself can be read back
        assert number == float(value)
        assert Fraction(number).limit_denominator(n * n_val) == value
    parts = found.interlingual + found.intralingual + found.training
    assert abs(parts - found.error) <= 2 * np.finfo(float).eps


def test_parts_by_hand_and_over_models_and_targets() -> None:
    # learnt 3 of 4; translated 1 of 4; 1 of 2 new ones
    training = np.array([[1, 0, 0, 0]], bool)
    translated = np.array([[1, 1, 1, 0]], bool)
    target = np.array([[1, 0]], bool)
    found = tr.decompose(training, translated, target)
    assert found.error.tolist() == [0.5]
    assert found.interlingual.tolist() == [0.5]
    assert found.intralingual.tolist() == [-0.25]
    assert found.training.tolist() == [0.25]
    training, translated, target = wrong(5, 30), wrong(3, 5, 30, seed=1), wrong(3, 5, 20, seed=2)
    many = tr.decompose(training, translated, target)
    for language, model in itertools.product(range(3), range(5)):
        one = tr.decompose(training[model], translated[language, model], target[language, model])
        for name in ("error", "interlingual", "intralingual", "training"):
            assert getattr(many, name)[language, model] == getattr(one, name)


@given(st.integers(1, 50), st.integers(1, 50), st.integers(0, 10**6))
def test_transfer_gap_is_equation_2(n_source: int, n_target: int, seed: int) -> None:
    source, target = wrong(n_source, seed=seed), wrong(n_target, seed=seed + 1)
    expected = Fraction(int(source.sum()), n_source) - Fraction(int(target.sum()), n_target)
    assert float(tr.transfer_gap(source, target)) == float(expected)
    assert tr.transfer_gap(target, source) == -tr.transfer_gap(source, target)
    many = tr.transfer_gap(np.stack([source, ~source]), np.stack([target, ~target]))
    assert many.tolist() == [float(expected), -float(expected)]


@pytest.mark.parametrize(
    ("shapes", "says"),
    [
        (((4,), (5,), (3,)), "4 examples and its translation 5"),
        (((2, 4), (3, 4), (2, 3)), r"not of the same models.*\(2, 4\), \(3, 4\), \(2, 3\)"),
        (((0,), (0,), (3,)), "training has no examples"),
        (((4,), (4,), (2, 0)), "target has no examples"),
    ],
)
def test_answers_that_do_not_go_together_are_named(shapes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        tr.decompose(*(wrong(*shape) for shape in shapes))


def test_predictions_are_not_taken_for_answers() -> None:
    labels = np.array([0, 1, 2])
    with pytest.raises(ValueError, match="translated must be a boolean array"):
        tr.decompose(labels != 1, labels, labels != 1)
    with pytest.raises(ValueError, match="source_right must be a boolean array"):
        tr.transfer_gap(labels, labels == 1)


# --- IGAP -----------------------------------------------------------------------------------------


@given(st.integers(1, 3000), st.data())
def test_window_is_that_of_exact_decimals(n: int, data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(0, n), min_size=1, max_size=30))
    for step in range(9):
        start, tolerance = Decimal("0.2") - step * Decimal("0.025"), Decimal("0.025")
        # the counts that matter: those on and next to the two borders
        edges = [round(float(at) * n) + j for at in (start, start + tolerance) for j in (-1, 0, 1)]
        wrongs = np.array([*counts, *(k for k in edges if 0 <= k <= n)])
        expected = [
            0 <= Fraction(int(k), n) - Fraction(start) < Fraction(tolerance) for k in wrongs
        ]
        assert tr.window(wrongs / n, 0.2 - 0.025 * step, 0.025).tolist() == expected


@given(st.integers(1, 40), st.integers(0, 12), st.integers(0, 10**6))
def test_igap_is_equation_5(n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    errors, gaps = rng.integers(0, n // 2 + 1, m), rng.integers(-n, n + 1, m)
    level, tolerance = Fraction(1, 10), Fraction(1, 5)
    inside = [i for i in range(m) if 0 <= Fraction(int(errors[i]), n) - level < tolerance]
    found = tr.igap(errors / n, gaps / n, 0.1, 0.2)
    assert found.n_models == len(inside)
    if inside:
        lowest = min(gaps[i] for i in inside)
        assert found.value == lowest / n
        assert found.models.tolist() == [i for i in inside if gaps[i] == lowest]
    else:
        assert np.isnan(found.value)
        assert found.models.tolist() == []


def test_igap_by_hand() -> None:
    errors = np.array([0.0, 0.0, 0.001, 0.1, 0.2, 0.2249, 0.225])
    gaps = np.array([0.3, 0.2, 0.0, 0.1, 0.0, -0.1, -0.5])
    assert tr.igap(errors, gaps) == tr.Igap(0.2, 2, pytest.approx([1]))
    assert tr.igap(errors, gaps, 0.2, 0.025).value == -0.1  # negative gaps are allowed
    tied = tr.igap(errors, np.full(7, 0.25), 0.0, 0.5)
    assert (tied.value, tied.n_models, tied.models.tolist()) == (0.25, 7, list(range(7)))
    empty = tr.igap(errors, gaps, 0.3, 0.025)
    assert (empty.n_models, tr.in_points(empty.value)) == (0, "no model")


@pytest.mark.parametrize(
    ("errors", "gaps", "tolerance", "says"),
    [
        ([0.0, 0.1], [0.2], 0.1, r"shape \(2,\) and gaps \(1,\)"),
        ([0.0, np.nan], [0.2, 0.1], 0.1, "the training error of model 1 is NaN"),
        ([0.0, 0.1], [np.nan, 0.1], 0.1, "the gap of model 0 is NaN"),
        ([0.0, 0.1], [0.1, 0.1], 0.0, "tolerance must be above 0, not 0"),
    ],
)
def test_models_that_cannot_be_compared_are_named(errors, gaps, tolerance, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        tr.igap(np.array(errors), np.array(gaps), 0.0, tolerance)


def test_points_are_printed_as_the_paper_does() -> None:
    shown = [tr.in_points(value) for value in (0.2114, 0.0, -0.0004, -0.041, 1.0, np.nan)]
    assert shown == ["21.1", "0.0", "0.0", "-4.1", "100.0", "no model"]


def runs(
    m: int = 24, n: int = 41, seed: int = 0
) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """Three runs whose training errors fall, and two target languages."""
    rng = np.random.default_rng(seed)
    difficulty = rng.random(n)
    learnt = np.tile(np.linspace(0.0, 0.9, m // 3), 3)[:, None]
    training = (rng.random((m, n)) < 0.8 * difficulty - learnt * 0.8) & (learnt < 0.89)
    translated = {
        code: training | (rng.random((m, n)) < loss * difficulty)
        for code, loss in (("fi", 0.3), ("sw", 0.6))
    }
    translated["fi"] &= rng.random((m, n)) < 0.9  # some gaps are negative
    return training, translated, np.repeat([7, 8, 9], m // 3)


def literal_curve(training, translated, seeds, levels, tolerance, *, n_resamples, n_splits, seed):
    """Every number of the table by loops over resamples, halves, models and examples."""
    m, n = training.shape
    rng = np.random.default_rng(seed)
    counts = tr.resample_counts(n, n_resamples, rng)
    halves = tr.random_halves(n, n_splits, rng)
    resamples = [[i for i in range(n) for _ in range(int(row[i]))] for row in counts]
    rows = {}
    for level in levels:
        inside = [
            k for k in range(m) if 0 <= round(training[k].mean() - level, 9) < round(tolerance, 9)
        ]
        for target, array in translated.items():

            def gap(model, examples, array=array):
                lost = [int(array[model, i]) - int(training[model, i]) for i in examples]
                return sum(lost) / len(lost)

            boot, cross, by_seed = [], [], []
            if inside:
                boot = [min(gap(k, drawn) for k in inside) for drawn in resamples]
                for half in halves:
                    parts = [[i for i in range(n) if half[i] == side] for side in (1, 0)]
                    for one, other in (parts, parts[::-1]):
                        lowest = min(gap(k, one) for k in inside)
                        best = [k for k in inside if gap(k, one) == lowest]
                        cross.append(np.mean([gap(k, other) for k in best]))
                for name in dict.fromkeys(seeds[inside]):
                    by_seed.append(min(gap(k, range(n)) for k in inside if seeds[k] == name))
            rows[target, level] = {
                "igap": min((gap(k, range(n)) for k in inside), default=np.nan),
                "boot": boot,
                "n_models": len(inside),
                "seeds": by_seed,
                "crossfitted": np.mean(cross) if cross else np.nan,
            }
    return rows


def about(estimate: float, resamples: list[float]) -> tuple[float, float]:
    """The middle 95 % of the resamples, moved so that their mean is the estimate."""
    moved = [estimate + value - sum(resamples) / len(resamples) for value in resamples]
    return np.quantile(moved, 0.025), np.quantile(moved, 0.975)


@pytest.mark.parametrize("seed", [0, 1])
def test_curve_is_the_literal_one(seed: int) -> None:
    training, translated, seeds = runs(seed=seed)
    levels = [0.9, 0.4, 0.2, 0.1, 0.0]
    options = {"n_resamples": 60, "n_splits": 11, "seed": 5}
    found = tr.igap_curve(training, translated, seeds, levels, 0.1, **options)
    expected = literal_curve(training, translated, seeds, levels, 0.1, **options)
    assert list(found["target"].unique()) == ["fi", "sw", "mean"]
    assert found["n_models"].max() > 5
    assert (found["n_models"] == 0).any()
    for row in found[found["target"] != "mean"].itertuples():
        own = expected[row.target, row.level]
        assert row.igap == pytest.approx(own["igap"], nan_ok=True)
        assert row.crossfitted == pytest.approx(own["crossfitted"], nan_ok=True)
        assert (row.n_models, row.n_seeds) == (own["n_models"], len(own["seeds"]))
        if own["n_models"]:
            assert (row.low, row.high) == pytest.approx(about(row.igap, own["boot"]))
            assert (row.seed_low, row.seed_high) == pytest.approx(
                (min(own["seeds"]), max(own["seeds"]))
            )
            assert row.seed_low == row.igap
    for row in found[found["target"] == "mean"].itertuples():
        own = [expected[code, row.level] for code in ("fi", "sw")]
        assert row.igap == pytest.approx(np.mean([each["igap"] for each in own]), nan_ok=True)
        assert row.crossfitted == pytest.approx(
            np.mean([each["crossfitted"] for each in own]), nan_ok=True
        )
        assert row.n_models == own[0]["n_models"]
        if row.n_models:
            boot = np.mean([each["boot"] for each in own], axis=0)
            assert (row.low, row.high) == pytest.approx(about(row.igap, boot))
            each = np.mean([each["seeds"] for each in own], axis=0)
            assert (row.seed_low, row.seed_high) == pytest.approx((each.min(), each.max()))


def test_an_empty_window_has_no_number() -> None:
    training, translated, seeds = runs()
    for models in (slice(None), slice(0)):
        table = tr.igap_curve(
            training[models],
            {code: array[models] for code, array in translated.items()},
            seeds[models],
            [0.95, 0.9],
            n_resamples=5,
        )
        assert len(table) == 3 * 2
        assert (table[["n_models", "n_seeds"]] == 0).all(axis=None)
        values = table.drop(columns=["target", "level", "n_models", "n_seeds"])
        assert values.isna().all(axis=None)
        assert set(table["igap"].map(tr.in_points)) == {"no model"}


def test_levels_of_the_curve_are_the_papers() -> None:
    training, translated, seeds = runs()
    levels = [0.2 - 0.025 * step for step in range(9)]
    table = tr.igap_curve(training, translated, seeds, levels, n_resamples=2)
    expected = [0.2, 0.175, 0.15, 0.125, 0.1, 0.075, 0.05, 0.025, 0.0]
    assert table["level"].unique().tolist() == expected == list(tr.LEVELS)
    pd.testing.assert_frame_equal(tr.igap_curve(training, translated, seeds, n_resamples=2), table)


def test_interval_of_one_model_is_that_of_a_mean() -> None:
    n = 2000
    training, translated = np.zeros((1, n), bool), wrong(1, n, rate=0.3)
    table = tr.igap_curve(training, {"fi": translated}, [0], [0.0], n_resamples=4000)
    share = translated.mean()
    width = stats.norm.ppf(0.975) * np.sqrt(share * (1 - share) / n)
    row = table.iloc[0]
    assert row["igap"] == share
    # the quantiles of 4000 draws have an error of some 4 % of the width
    assert row["low"] == pytest.approx(share - width, abs=0.1 * width)
    assert row["high"] == pytest.approx(share + width, abs=0.1 * width)
    assert row["crossfitted"] == pytest.approx(share)  # nothing to choose: the mean of the halves


def test_only_the_crossfitted_gap_is_not_lowered_by_the_choice_among_models() -> None:
    # sixty models that all lose 30 % of the examples, each its own: there is nothing to choose
    m, n = 60, 400
    training = np.zeros((m, n), bool)
    targets = {f"l{i}": wrong(m, n, rate=0.3, seed=i) for i in range(12)}
    table = tr.igap_curve(training, targets, np.zeros(m), [0.0], n_resamples=20)
    row = table[table["target"] == "mean"].iloc[0]
    assert row["igap"] < 0.3 - 0.03
    assert row["crossfitted"] == pytest.approx(0.3, abs=0.01)
    assert (table["low"] < table["igap"]).all()
    assert (table["igap"] < table["high"]).all()


def test_interval_holds_the_mean_of_the_statistic_over_data_sets() -> None:
    # twenty models with shared difficulties; what the minimum is on average, and how often covered
    def data(seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        return 0.8 * rng.normal(size=(1, 150)) + 0.6 * rng.normal(size=(20, 150)) < -0.5

    mean = np.mean([data(seed).mean(axis=1).min() for seed in range(1000, 2000)])
    covered = []
    for seed in range(100):
        curve = tr.igap_curve(
            np.zeros((20, 150), bool),
            {"fi": data(seed)},
            np.zeros(20),
            [0.0],
            n_resamples=200,
            n_splits=1,
        )
        covered.append(curve["low"][0] <= mean <= curve["high"][0])
    assert 0.88 <= np.mean(covered) <= 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t, x, s: (t[0], x, s), r"training has shape \(41,\)"),
        (lambda t, x, s: (t, x, s[:3]), "there are 3 seeds"),
        (lambda t, x, s: (t, {}, s), "no target languages"),
        (lambda t, x, s: (t, {"fi": x["fi"][:, :40]}, s), "41 examples .* translation to fi 40"),
        (lambda t, x, s: (t, {"fi": x["fi"][:5]}, s), r"translation to fi \(5, 41\)"),
        (lambda t, x, s: (t, {"fi": x["fi"] * 1}, s), "the translation to fi must be a boolean"),
        (lambda t, x, s: (t[:, :1], {"fi": x["fi"][:, :1]}, s), "two training examples or more"),
    ],
)
def test_runs_that_cannot_be_measured_are_named(change, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        tr.igap_curve(*change(*runs()))


def test_resamples_and_tolerance_must_be_positive() -> None:
    for options, says in (
        ({"n_resamples": 0}, "1 or more: 0, 100"),
        ({"n_splits": 0}, "1 or more: 1000, 0"),
        ({"tolerance": 0}, "tolerance must be above 0"),
    ):
        with pytest.raises(ValueError, match=says):
            tr.igap_curve(*runs(), **options)


# --- ranking of transfer directions ---------------------------------------------------------------


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
def test_ranking_accuracy_is_equation_6_and_kendalls_tau(k: int, seed: int) -> None:
    gold, predicted = np.random.default_rng(seed).normal(size=(2, k))
    names = np.array([f"l{i}" for i in range(k)])
    expected = literal_equation_6(*(list(names[np.argsort(-s)]) for s in (gold, predicted)))
    found = tr.ranking_accuracy(gold, predicted)
    assert found == pytest.approx(expected)
    assert found == pytest.approx((stats.kendalltau(gold, predicted).statistic + 1) / 2)
    assert tr.ranking_accuracy(-gold, predicted) == pytest.approx(1 - expected)


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
    assert tr.ranking_accuracy(*scores) == pytest.approx(np.mean(drawn))


def test_ranking_accuracy_closed_forms() -> None:
    gold = np.array([0.9, 0.7, 0.5, 0.1])
    assert tr.ranking_accuracy(gold, 100 + gold**3) == 1
    assert tr.ranking_accuracy(gold, -gold) == 0
    assert tr.ranking_accuracy(gold, np.ones(4)) == 0.5
    assert tr.ranking_accuracy(gold, gold[[1, 0, 2, 3]]) == pytest.approx(5 / 6)
    noise = np.array([0, 3e-16, 0, 0])  # not a better language, only another order of summing
    assert tr.ranking_accuracy(gold, 0.6 + noise) == 0.5
    many = tr.ranking_accuracy(np.stack([gold, -gold, gold]), gold)
    assert many.tolist() == [1, 0, 1]
    for one, other, says in (
        (gold, gold[:3], "4 languages with a gold score and 3"),
        (gold[:1], gold[:1], "two or more"),
        (gold, np.where(gold > 0.8, np.nan, gold), "NaN"),
    ):
        with pytest.raises(ValueError, match=says):
            tr.ranking_accuracy(one, other)


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6])
def test_random_order_has_the_mean_and_spread_of_all_orders(k: int) -> None:
    orders = np.array(list(itertools.permutations(range(k))))
    accuracies = tr.ranking_accuracy(np.arange(k), orders)
    assert accuracies.mean() == pytest.approx(0.5)
    assert tr.random_ranking_sd(k) == pytest.approx(accuracies.std())
    with pytest.raises(ValueError, match="not 1"):
        tr.random_ranking_sd(1)


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


def test_gold_scores_are_the_accuracies_on_each_sample_of_examples() -> None:
    wrongs = answers()
    gold = tr.gold_scores(wrongs, n_resamples=7, n_splits=5, seed=3)
    rng = np.random.default_rng(3)
    counts, halves = tr.resample_counts(60, 7, rng), tr.random_halves(60, 5, rng)
    for column, ((source, target), array) in enumerate(wrongs.items()):
        row = gold.table.iloc[column]
        assert (row["source"], row["target"]) == (source, target)
        assert row["score"] == pytest.approx(1 - array.mean())
        for r, drawn in enumerate(counts.astype(int)):
            resample = np.repeat(array, drawn, axis=1)
            assert gold.resamples[r, column] == pytest.approx(1 - resample.mean())
        for r, half in enumerate(halves == 1):
            assert half.sum() == 30
            for side, chosen in enumerate((half, ~half)):
                expected = 1 - array[:, chosen].mean()
                assert gold.halves[side, r, column] == pytest.approx(expected)


def test_directions_are_ranked_source_by_source() -> None:
    gold = tr.gold_scores(answers(), n_resamples=50)
    predictors = predictions(gold.table)
    table = tr.rank_directions(gold.table, predictors, resamples=gold.resamples)
    assert table["metric"].unique().tolist() == ["noise", "truth"]
    for metric, own in table.groupby("metric"):
        assert own["source"].tolist() == [*LANGUAGES, "mean"]
        scores = predictors[predictors["metric"] == metric].set_index(["source", "target"])
        resampled = []
        for source in LANGUAGES:
            others = [target for target in LANGUAGES if target != source]
            at = [
                gold.table.index[(gold.table["source"] == source) & (gold.table["target"] == t)][0]
                for t in others
            ]
            predicted = scores.loc[[(source, t) for t in others], "score"].to_numpy()
            row = own[own["source"] == source].iloc[0]
            truth = gold.table.loc[at, "score"].to_numpy()
            assert row["accuracy"] == pytest.approx(tr.ranking_accuracy(truth, predicted))
            resampled.append([tr.ranking_accuracy(g[at], predicted) for g in gold.resamples])
            expected = np.clip(about(row["accuracy"], resampled[-1]), 0, 1)
            assert (row["low"], row["high"]) == pytest.approx(expected)
            assert (row["n_targets"], row["random_sd"]) == (3, tr.random_ranking_sd(3))
        mean = own.iloc[-1]
        assert mean["accuracy"] == pytest.approx(own["accuracy"].iloc[:-1].mean())
        expected = np.clip(about(mean["accuracy"], np.mean(resampled, axis=0)), 0, 1)
        assert (mean["low"], mean["high"]) == pytest.approx(expected)
        assert (mean["n_targets"], mean["random_sd"]) == (12, tr.random_ranking_sd(3))
    assert (table.loc[table["metric"] == "truth", "accuracy"] == 1).all()
    without = tr.rank_directions(gold.table, predictors)
    assert without[["low", "high"]].isna().all(axis=None)
    pd.testing.assert_series_equal(without["accuracy"], table["accuracy"])


def test_languages_are_permuted_rows_and_columns_together() -> None:
    gold = tr.gold_scores(answers(), n_resamples=2).table
    predictors = predictions(gold)
    found = tr.permuted_languages(gold, predictors).set_index("metric")
    once = tr.rank_directions(gold, predictors)
    once = once[once["source"] == "mean"].set_index("metric")["accuracy"]
    of_gold = predictors[predictors["target"].isin(LANGUAGES)]
    for metric, own in of_gold.groupby("metric", sort=False):
        accuracies = []
        for order in itertools.permutations(LANGUAGES):
            called = dict(zip(LANGUAGES, order, strict=True))
            moved = own.assign(source=own["source"].map(called), target=own["target"].map(called))
            table = tr.rank_directions(gold, moved)
            accuracies.append(table.loc[table["source"] == "mean", "accuracy"].item())
        row = found.loc[metric]
        assert [row["accuracy"]] * 2 == pytest.approx([once[metric], accuracies[0]])
        assert row["n_permutations"] == len(accuracies) == 24
        expected = np.mean(np.array(accuracies) >= accuracies[0] - 1e-9)
        assert row["p_value"] == pytest.approx(expected)
        low, high = np.quantile(accuracies, [0.025, 0.975])
        assert (row["random_low"], row["random_high"]) == pytest.approx((low, high))
    drawn = tr.permuted_languages(gold, predictors, n_permutations=20, seed=1)
    assert drawn["accuracy"].tolist() == pytest.approx(found["accuracy"].tolist())
    assert (drawn["p_value"] >= 1 / 20).all()


def test_the_level_of_permuted_languages_holds_where_all_sources_have_one_order() -> None:
    """Good targets are so for all sources, of gold and of a metric that knows nothing of it."""
    rng = np.random.default_rng(0)
    codes = list("abcdef")
    below = 0
    for _ in range(60):
        tables = [
            pd.DataFrame(
                [(s, t, ease[t] + 0.1 * rng.normal()) for s, t in itertools.permutations(codes, 2)],
                columns=["source", "target", "score"],
            )
            for ease in ({code: rng.normal() for code in codes} for _ in range(2))
        ]
        found = tr.permuted_languages(tables[0], tables[1].assign(metric="IGAP"), n_permutations=99)
        below += found["p_value"].item() <= 0.1
    assert below <= 12  # 6 expected; more than 12 in fewer than 1 of 100 such tests


def test_a_source_without_a_model_in_the_window_has_no_accuracy() -> None:
    gold = tr.gold_scores(answers(), n_resamples=9)
    predictors = gold.table.assign(
        metric="IGAP", score=gold.table["score"].mask(gold.table["source"] == "sw")
    )
    table = tr.rank_directions(gold.table, predictors, resamples=gold.resamples)
    table = table.set_index("source")
    numbers = ["accuracy", "low", "high"]
    assert table.loc[["sw", "mean"], numbers].isna().all(axis=None)
    assert table.loc[["en", "fi", "tr"], numbers].notna().all(axis=None)
    kept = gold.table[gold.table["source"] != "sw"]
    assert tr.rank_directions(kept, predictors)["accuracy"].tolist() == [1] * 4
    one = predictors.assign(score=predictors["score"].where(predictors["target"] != "fi", np.nan))
    with pytest.raises(ValueError, match="IGAP is NaN for en to fi but not for all"):
        tr.rank_directions(gold.table, one)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda g, p: (g, p[p["target"] != "tr"]), "noise has no score of en to tr"),
        (lambda g, p: (g, pd.concat([p, p])), "in the scores of noise more than once"),
        (lambda g, p: (pd.concat([g, g]), p), "en to en is in gold more than once"),
        (lambda g, p: (g.assign(score=np.nan), p), "score is missing in 16 of 16"),
        (lambda g, p: (g.drop(columns="source"), p), "no column 'source'"),
        (lambda g, p: (g, p.drop(columns="metric")), "no column 'metric'"),
        (lambda g, p: (g[g["target"].isin(["en", "fi"])], p), "en has 1 other target"),
        (lambda g, p: (g.head(0), p), "gold has no rows"),
        (lambda g, p: (g, p.head(0)), "there are no predictors"),
    ],
)
def test_directions_that_cannot_be_ranked_are_named(change, says: str) -> None:
    gold = tr.gold_scores(answers(), n_resamples=2).table
    with pytest.raises(ValueError, match=says):
        tr.rank_directions(*change(gold, predictions(gold)))


def test_resamples_of_other_directions_are_refused() -> None:
    gold = tr.gold_scores(answers(), n_resamples=2)
    with pytest.raises(ValueError, match=r"shape \(2, 15\) and gold 16 rows"):
        tr.rank_directions(gold.table, predictions(gold.table), resamples=gold.resamples[:, :15])


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda w: {}, "no transfer directions"),
        (lambda w: w | {("fi", "sw"): wrong(2, 59)}, "en to en has 60 .* fi to sw 59"),
        (lambda w: w | {("fi", "sw"): wrong(60)}, r"fi to sw has shape \(60,\)"),
        (lambda w: w | {("fi", "sw"): wrong(2, 60) * 1}, "fi to sw must be a boolean"),
    ],
)
def test_test_answers_that_cannot_be_are_named(change, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        tr.gold_scores(change(answers()))


def test_reliability_is_the_accuracy_of_halves_and_of_resamples() -> None:
    gold = tr.gold_scores(answers(), n_resamples=20, n_splits=20)
    table = tr.reliability(gold)
    assert table["source"].tolist() == [*LANGUAGES, "mean"]
    for row in table.iloc[:-1].itertuples():
        at = [
            i
            for i, (s, t) in enumerate(zip(gold.table["source"], gold.table["target"], strict=True))
            if s == row.source != t
        ]
        halves = [tr.ranking_accuracy(a[at], b[at]) for a, b in zip(*gold.halves, strict=True)]
        whole = gold.table["score"].to_numpy()[at]
        assert row.halves == pytest.approx(np.mean(halves))
        assert row.resampled == pytest.approx(
            np.mean([tr.ranking_accuracy(whole, g[at]) for g in gold.resamples])
        )
    assert table.iloc[-1]["halves"] == pytest.approx(table["halves"].iloc[:-1].mean())


def test_what_knows_the_truth_lies_between_the_two_reliabilities() -> None:
    truth = np.linspace(0.35, 0.45, 8)
    reached, halves, resampled = [], [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        wrongs = {("en", f"l{i}"): rng.random((1, 300)) < rate for i, rate in enumerate(truth)}
        gold = tr.gold_scores(wrongs, n_resamples=50, n_splits=20, seed=seed)
        reached.append(tr.ranking_accuracy(gold.table["score"], -truth))
        row = tr.reliability(gold).iloc[-1]
        halves.append(row["halves"])
        resampled.append(row["resampled"])
    assert np.mean(halves) < np.mean(reached) - 0.02 < np.mean(resampled) - 0.02


def test_asymmetry_by_hand() -> None:
    rows = [
        ("en", "fi", 0.3), ("fi", "en", 0.1),
        ("en", "sw", 0.5), ("sw", "en", 0.6),
        ("fi", "sw", 0.9), ("en", "en", 0.0), ("sw", "sw", 0.0), ("en", "zh", 0.4),
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["source", "target", "score"])
    assert tr.asymmetry(table) == pytest.approx((0.2 + 0.1) / 2)
    both = table.assign(source=table["target"], target=table["source"])
    assert tr.asymmetry(both) == tr.asymmetry(table)
    with pytest.raises(ValueError, match="no pair of languages"):
        tr.asymmetry(table.iloc[4:])
    with pytest.raises(ValueError, match="en to fi is in the table more than once"):
        tr.asymmetry(pd.concat([table, table]))
