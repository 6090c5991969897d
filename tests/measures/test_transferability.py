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

from xlx.measures import igap, statistics


def wrong(*shape: int, rate: float = 0.4, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random(shape) < rate


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
@settings(max_examples=25, deadline=None)
def test_the_parts_add_up_to_the_last_digit(n: int, n_val: int, seed: int) -> None:
    rates = np.random.default_rng(seed).random(3)
    arrays = [
        wrong(size, rate=rate, seed=seed + i)
        for i, (size, rate) in enumerate(zip((n, n, n_val), rates, strict=True))
    ]
    found = igap.decompose(*arrays)
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


def test_parts_over_models_and_targets() -> None:
    training, translated, target = wrong(5, 30), wrong(3, 5, 30, seed=1), wrong(3, 5, 20, seed=2)
    many = igap.decompose(training, translated, target)
    for language, model in itertools.product(range(3), range(5)):
        one = igap.decompose(training[model], translated[language, model], target[language, model])
        for name in ("error", "interlingual", "intralingual", "training"):
            assert getattr(many, name)[language, model] == getattr(one, name)


@given(st.integers(1, 50), st.integers(1, 50), st.integers(0, 10**6))
def test_transfer_gap_is_equation_2(n_source: int, n_target: int, seed: int) -> None:
    source, target = wrong(n_source, seed=seed), wrong(n_target, seed=seed + 1)
    expected = Fraction(int(source.sum()), n_source) - Fraction(int(target.sum()), n_target)
    assert float(igap.transfer_gap(source, target)) == float(expected)
    assert igap.transfer_gap(target, source) == -igap.transfer_gap(source, target)
    many = igap.transfer_gap(np.stack([source, ~source]), np.stack([target, ~target]))
    assert many.tolist() == [float(expected), -float(expected)]


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
        assert statistics.window(wrongs / n, 0.2 - 0.025 * step, 0.025).tolist() == expected


def runs(m: int = 24, seed: int = 0) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """Three runs whose training errors fall, and two target languages."""
    rng, n = np.random.default_rng(seed), 41
    difficulty = rng.random(n)
    learnt = np.tile(np.linspace(0.0, 0.9, m // 3), 3)[:, None]
    training = (rng.random((m, n)) < 0.8 * difficulty - learnt * 0.8) & (learnt < 0.89)
    translated = {
        code: training | (rng.random((m, n)) < loss * difficulty)
        for code, loss in (("fi", 0.3), ("sw", 0.6))
    }
    translated["fi"] &= rng.random((m, n)) < 0.9  # some gaps are negative
    return training, translated, np.repeat([7, 8, 9], m // 3)


def literal_curve(training, translated, seeds, levels, tolerance, groups):
    """Every number of the table by loops over models and examples."""
    m, n = training.shape
    rows = {}
    for level in levels:
        inside = [
            k for k in range(m) if 0 <= round(training[k].mean() - level, 9) < round(tolerance, 9)
        ]
        for target, array in translated.items():

            def gap(model, examples, array=array):
                lost = [int(array[model, i]) - int(training[model, i]) for i in examples]
                return sum(lost) / len(lost)

            lost = [np.nan] * n
            if inside:
                best = min(inside, key=lambda k: gap(k, range(n)))  # the first of equal ones
                lost = [gap(best, [i]) for i in range(n)]
            rows[target, level] = {
                "lost": lost,
                "n_models": len(inside),
                "seeds": {*seeds[inside]},
            }
    return rows


def about(lost: list[float], groups: np.ndarray) -> tuple[float, float, float]:
    """A mean and Student's interval of the sums of groups, which need not be of one size."""
    mean, n, names = np.mean(lost), len(lost), dict.fromkeys(groups)
    sums = [sum(x - mean for x, of in zip(lost, groups, strict=True) if of == g) for g in names]
    k = len(sums)
    half = stats.t.ppf(0.975, k - 1) * np.sqrt(k / (k - 1) * sum(x**2 for x in sums)) / n
    return mean, mean - half, mean + half


@pytest.mark.parametrize("seed", [0, 1])
def test_curve_is_the_literal_one(seed: int) -> None:
    training, translated, seeds = runs(seed=seed)
    # Of the second, each example is a group, which needs not be said.
    levels, groups = [0.9, 0.4, 0.2, 0.1, 0.0], np.arange(41) // (2 - seed)
    asked = None if seed else groups
    found = igap.igap_curve(training, translated, seeds, levels, 0.1, groups=asked)
    expected = literal_curve(training, translated, seeds, levels, 0.1, groups)
    assert list(found["target"].unique()) == ["fi", "sw", "mean"]
    assert found["n_models"].max() > 5
    assert (found["n_models"] == 0).any()
    for row in found[found["target"] != "mean"].itertuples():
        own = expected[row.target, row.level]
        ends = row.igap, row.low, row.high
        assert ends == pytest.approx(about(own["lost"], groups), nan_ok=True)
        assert (row.n_models, row.n_seeds) == (own["n_models"], len(own["seeds"]))
    for row in found[found["target"] == "mean"].itertuples():
        own = [expected[code, row.level] for code in ("fi", "sw")]
        lost = np.mean([each["lost"] for each in own], axis=0)
        ends = row.igap, row.low, row.high
        assert ends == pytest.approx(about(lost, groups), nan_ok=True)
        assert row.n_models == own[0]["n_models"]


@pytest.mark.parametrize(("n_seeds", "spread"), [(1, 0.0), (3, 0.0), (3, 0.02), (5, 0.02)])
def test_an_interval_over_seeds_and_groups_covers(n_seeds: int, spread: float) -> None:
    """Seeds and premises that differ, pairs on which seeds agree more often than by chance."""
    rng, groups, held = np.random.default_rng(0), np.repeat(np.arange(80), 3), 0
    for _ in range(1200):
        rate = 0.4 + rng.normal(0, 0.1, 80)[groups] + rng.normal(0, spread, (n_seeds, 1))
        same = rng.random((n_seeds, 240)) < 0.5
        drawn = np.where(same, rng.random(240), rng.random((n_seeds, 240)))
        mean, low, high = igap.crossed_interval(drawn < rate, groups)
        assert mean == pytest.approx((drawn < rate).mean())
        held += low <= 0.4 <= high
    assert 0.93 <= held / 1200 <= 0.97


def test_an_interval_of_one_seed_is_that_of_a_mean_over_groups() -> None:
    values = wrong(240).astype(float)
    _, low, high = igap.crossed_interval(values, np.arange(240))
    expected = stats.t.interval(0.95, 239, values.mean(), stats.sem(values))
    assert (low, high) == pytest.approx(expected)
    with pytest.raises(ValueError, match="groups, not two"):
        igap.crossed_interval(values, np.zeros(240))


@pytest.mark.slow
@pytest.mark.parametrize("m", [1, 5, 20])
def test_interval_holds_the_mean_of_the_statistic_over_data_sets(m: int) -> None:
    # models with shared difficulties; what the minimum is on average, and how often covered
    def data(seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        return 0.8 * rng.normal(size=(1, 150)) + 0.6 * rng.normal(size=(m, 150)) < -0.5

    mean = np.mean([data(seed).mean(axis=1).min() for seed in range(1000, 1600)])
    covered, nothing = [], np.zeros((m, 150), bool)
    for seed in range(300):
        table = igap.igap_curve(nothing, {"fi": data(seed)}, np.zeros(m), [0.0])
        covered.append(table["low"][0] <= mean <= table["high"][0])
    assert 0.93 <= np.mean(covered) <= 0.995


TRAINED, TRANSLATED, SEEDS = runs()
LABELS = np.array([0, 1, 2])


def curve(training=TRAINED, translated=TRANSLATED, seeds=SEEDS, **options: object) -> pd.DataFrame:
    return igap.igap_curve(training, translated, seeds, **options)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: igap.decompose(wrong(4), wrong(5), wrong(3)), "4 examples and its translation 5"),
        (
            lambda: igap.decompose(wrong(2, 4), wrong(3, 4), wrong(2, 3)),
            r"same models.*\(2, 4\), \(3",
        ),
        (lambda: igap.decompose(wrong(4), wrong(4), wrong(2, 0)), "target has no examples"),
        (lambda: igap.transfer_gap(LABELS, LABELS == 1), "source_right must be a boolean array"),
        (lambda: curve(seeds=SEEDS[:3]), "there are 3 seeds"),
        (lambda: curve(translated={"fi": wrong(5, 41)}), r"translation to fi \(5, 41\)"),
        (lambda: curve(TRAINED[:, :1], {"fi": TRAINED[:, :1]}), "groups, not two"),
        (lambda: curve(groups=np.zeros(41)), "in 1 groups, not two"),
        (lambda: curve(tolerance=0), "tolerance must be above 0"),
    ],
)
def test_what_cannot_be_measured_is_named(call, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()
