"""Grids of two languages: averages by hand, intervals against loops, and what is no grid."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import mixing_1_nli
import mixing_2_paraphrase
import mixing_6_pairs
from mixing_3_qa import tails
from printed import mixing_claims
from shared import mixing_tables
from shared.shown import as_points, in_points
from tests.tables import of
from xlx.experiment.grids import Grid
from xlx.measures import mixing
from xlx.measures.mixing import MixingError
from xlx.measures.statistics import resample_counts

LANGUAGES = ("en", "de", "sw")
#: Accuracies of a grid in per cent, so that averages can be checked by eye.
MATRIX = np.array([[80.0, 60.0, 30.0], [70.0, 50.0, 20.0], [40.0, 10.0, 90.0]])
ENDS = ["score", "low", "high"]
FEW = {"n_resamples": 40, "seed": 5}
THREES = np.arange(30) // 3
LABELS = np.array([0] * 8 + [1] * 12 + [2] * 10)
MERGED = {"entailment": [0], "not-entailment": [1, 2]}


def right(n: int = 30, seed: int = 0, n_languages: int = 3) -> np.ndarray:
    return (np.random.default_rng(seed).random((n_languages, n_languages, n)) < 0.7).astype(float)


def resampled(values: np.ndarray, groups: Sequence[int] | None = None) -> list[np.ndarray]:
    """The examples of each resample of `FEW`, drawn out one by one: ``(..., size)`` each."""
    n = values.shape[-1]
    names = np.arange(n) if groups is None else np.asarray(groups)
    drawn = resample_counts(len(set(names)), FEW["n_resamples"], np.random.default_rng(FEW["seed"]))
    found = []
    for counts in drawn:
        places = []
        for name, times in zip(sorted(set(names)), counts, strict=True):
            places += list(np.flatnonzero(names == name)) * int(times)
        found.append(values[..., places])
    return found


def percentiles(values: list) -> np.ndarray:
    return np.quantile(np.array(values, float), [0.025, 0.975], axis=0)


def across_by_hand(grid: np.ndarray, which: int) -> float:
    found = [
        grid[i, j]
        for i, j in itertools.product(range(len(grid)), repeat=2)
        if (i == which) != (j == which)
    ]
    return sum(found) / len(found)


# --- averages of a grid ---


@given(st.integers(2, 7), st.integers(0, 10**6))
def test_across_has_the_cells_with_the_language_in_exactly_one_place(n: int, seed: int) -> None:
    grids = np.random.default_rng(seed).random((4, n, n))
    expected = [[across_by_hand(grid, which) for which in range(n)] for grid in grids]
    np.testing.assert_allclose(mixing.across(grids), expected)
    within = mixing.within(grids)
    assert within.tolist() == [[grid[i, i] for i in range(n)] for grid in grids]
    within[:] = 2  # a copy
    assert grids.max() < 1


# --- tables with intervals ---


@pytest.fixture
def percentiles_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixing, "FEW", 0)


@pytest.mark.usefixtures("percentiles_alone")
@pytest.mark.parametrize("groups", [None, THREES, [7] * 11 + [2] * 4 + [-1] * 15])
def test_cells_and_margins_against_a_loop_over_resamples(groups) -> None:
    scores = right()
    table = mixing.cells(scores, LANGUAGES, groups, margins=True, **FEW)
    assert list(table.columns) == ["first", "second", *ENDS]
    low, high = percentiles([sample.mean(axis=-1) for sample in resampled(scores, groups)])
    for i, j in itertools.product(range(3), repeat=2):
        row = of(table, first=LANGUAGES[i], second=LANGUAGES[j])[ENDS].to_numpy()[0]
        np.testing.assert_allclose(row, [scores[i, j].mean(), low[i, j], high[i, j]])
    rows = [sample[1].mean() for sample in [scores, *resampled(scores, groups)]]
    row = of(table, first="de", second="all")[ENDS].to_numpy()[0]
    np.testing.assert_allclose(row, [rows[0], *percentiles(rows[1:])])
    plain = mixing.cells(scores, LANGUAGES, groups, **FEW)
    inside = (table["first"] != "all") & (table["second"] != "all")
    pd.testing.assert_frame_equal(plain, table[inside].reset_index(drop=True))


@pytest.mark.usefixtures("percentiles_alone")
@pytest.mark.parametrize("groups", [None, THREES])
def test_summary_against_a_loop_over_resamples(groups) -> None:
    scores = right(seed=1)
    table = mixing.summary(scores, LANGUAGES, groups, **FEW)
    assert list(table.columns) == ["language", "setting", *ENDS]
    assert list(dict.fromkeys(table["language"])) == [*LANGUAGES, "mean"]
    grids = [sample.mean(axis=-1) for sample in [scores, *resampled(scores, groups)]]
    values = {"within": [[grid[i, i] for i in range(3)] for grid in grids]}
    values["across"] = [[across_by_hand(grid, i) for i in range(3)] for grid in grids]
    values["drop"] = np.subtract(values["within"], values["across"])
    for setting, found in values.items():
        found = np.column_stack([found, np.mean(found, axis=1)])
        expected = np.array([found[0], *percentiles(list(found[1:]))]).T
        np.testing.assert_allclose(of(table, setting=setting)[ENDS], expected, atol=1e-12)


def test_a_drop_is_of_the_same_examples_in_all_cells() -> None:
    # Hard examples are hard in every cell: the drop is 0.25 in each resample, whatever is drawn.
    easy = np.random.default_rng(0).random(60) < 0.5
    scores = np.where(np.eye(3, dtype=bool)[..., None], 0.5 + 0.5 * easy, 0.25 + 0.5 * easy)
    table = mixing.summary(scores, LANGUAGES)
    np.testing.assert_allclose(of(table, setting="drop")[ENDS], 0.25)
    within = of(table, setting="within")
    assert (within["high"] - within["low"] > 0.1).all()


def test_a_difference_is_paired_and_agrees_with_a_loop_and_with_summary() -> None:
    one, other = right(seed=2), right(seed=3)
    diagonal = np.eye(3)[..., None]
    table = mixing.paired_difference(
        0.5 * one + 0.5 * diagonal, 0.5 * one + 0.25 * diagonal, LANGUAGES
    )
    expected = table["setting"].map({"within": 0.25, "across": 0, "drop": 0.25})
    for column in ENDS:
        np.testing.assert_allclose(table[column], expected, atol=1e-12)
    groups = np.arange(30) // 5
    table = mixing.paired_difference(one, other, LANGUAGES, groups, **FEW)
    first, second = (mixing.summary(x, LANGUAGES, groups, **FEW) for x in (one, other))
    np.testing.assert_allclose(table["score"], first["score"] - second["score"], atol=1e-12)
    found = [sample.mean(axis=-1)[1, 1] for sample in resampled(one - other, groups)]
    row = of(table, language="de", setting="within")
    np.testing.assert_allclose(row[["low", "high"]].to_numpy()[0], percentiles(found), atol=1e-12)
    swapped = mixing.paired_difference(other, one, LANGUAGES, groups, **FEW)
    np.testing.assert_allclose(swapped["low"], -table["high"], atol=1e-12)


def test_intervals_cover_what_the_examples_were_drawn_from() -> None:
    rng = np.random.default_rng(0)
    true = np.array([[0.8, 0.6], [0.5, 0.7]])
    covered = []
    for seed in range(150):
        # the same difficulty in all cells, so cells hang together as they do in earnest
        difficulty = rng.random(150)
        scores = (difficulty < true[..., None]).astype(float)
        table = mixing.summary(scores, ["en", "de"], n_resamples=200, seed=seed)
        row = of(table, language="mean", setting="drop").iloc[0]
        covered.append(row["low"] <= 0.75 - 0.55 <= row["high"])
    assert 0.89 <= np.mean(covered) <= 0.99


def test_intervals_of_examples_that_hang_together_need_their_groups() -> None:
    rng = np.random.default_rng(1)
    covered = {"groups": [], "none": []}
    groups = np.repeat(np.arange(60), 5)
    for seed in range(100):
        scores = np.repeat((rng.random((2, 2, 60)) < 0.6).astype(float), 5, axis=-1)
        for name, drawn in (("groups", groups), ("none", None)):
            table = mixing.cells(scores, ["en", "de"], drawn, n_resamples=200, seed=seed)
            covered[name].append(((table["low"] <= 0.6) & (table["high"] >= 0.6)).mean())
    assert 0.89 <= np.mean(covered["groups"]) <= 0.99
    assert np.mean(covered["none"]) < 0.75  # intervals √5 times too short


def test_intervals_cover_shares_of_which_next_to_nothing_is_right() -> None:
    # 21 paragraphs of two questions; the bootstrap alone covers half of the single languages here
    rng, true, groups = np.random.default_rng(2), 0.015, np.repeat(np.arange(21), 2)
    covered = {name: [] for name in mixing.SETTINGS}
    for seed in range(120):
        chance = np.repeat(rng.beta(0.05, 0.05 / true, 21), 2)  # of a paragraph
        scores = (rng.random((3, 3, 42)) < chance).astype(float)
        table = mixing.summary(scores, LANGUAGES, groups, n_resamples=200, seed=seed)
        value = (table["setting"] != "drop") * true
        table["covered"] = (table["low"] <= value + 1e-9) & (table["high"] >= value - 1e-9)
        for name, rows in table[table["language"] != "mean"].groupby("setting"):
            covered[name].append(rows["covered"].mean())
    assert min(map(np.mean, covered.values())) > 0.9, {k: np.mean(v) for k, v in covered.items()}


def test_nothing_right_is_not_certain() -> None:
    table = mixing.summary(np.zeros((3, 3, 40)), LANGUAGES)
    t2 = stats.t.ppf(0.975, 39) ** 2
    within, drop = of(table, setting="within"), of(table, setting="drop")
    np.testing.assert_allclose(within["low"], 0, atol=1e-12)
    np.testing.assert_allclose(within["high"], t2 / (40 + t2))
    assert drop["low"].max() < -0.05 < 0.05 < drop["high"].min()


def test_intervals_of_a_mean_over_seeds_cover_what_other_seeds_would_give() -> None:
    rng, wide, narrow = np.random.default_rng(3), [], []
    difficulty = np.linspace(0, 1, 100, endpoint=False)[rng.permutation(100)]
    for seed in range(150):
        true = 0.5 + 0.1 * rng.standard_normal(3)  # what each fine-tuning has learnt
        scores = np.broadcast_to(difficulty < true[:, None, None, None], (3, 2, 2, 100)).astype(
            float
        )
        for found, some in ((wide, scores), (narrow, scores.mean(axis=0))):
            row = mixing.cells(some, ["en", "de"], n_resamples=200, seed=seed).iloc[0]
            found.append((row["low"] <= 0.5 <= row["high"], row["score"]))
    np.testing.assert_allclose([score for _, score in wide], [score for _, score in narrow])
    assert np.mean([held for held, _ in wide]) > 0.92
    assert np.mean([held for held, _ in narrow]) < 0.9


def test_seeds_of_two_models_are_independent_and_one_seed_adds_nothing() -> None:
    three = np.stack([right(seed=k) for k in range(3)])
    alike = mixing.paired_difference(three, three, LANGUAGES)
    np.testing.assert_allclose(alike["score"], 0, atol=1e-12)
    assert (alike["high"] > alike["low"]).all()  # two models of three seeds each, not one
    single = mixing.paired_difference(three[:1], three[0], LANGUAGES)
    np.testing.assert_allclose(single[ENDS], 0, atol=1e-12)
    of_seeds, of_mean = (
        mixing.by_label(x, LABELS, MERGED, LANGUAGES, **FEW) for x in (three, three.mean(axis=0))
    )
    np.testing.assert_allclose(of_seeds["score"], of_mean["score"])
    gain = mixing_6_pairs.pair_table({"a": three, "b": three[0]}, LANGUAGES, ("en", "de"), **FEW)
    assert (of(gain, condition="a")[["gain", "gain_low", "gain_high"]] == 0).all(axis=None)


def test_a_moved_threshold_changes_accuracy_and_no_auc() -> None:
    rng, labels = np.random.default_rng(4), np.repeat([0, 1, 2], 20)
    logits = rng.standard_normal((2, 3, 60, 3)) + 2 * np.eye(3)[labels]
    moved = logits + np.array([1.5, 0.0, 0.0]) * rng.random((2, 3, 1, 1))
    evidence = [mixing_tables.evidence(x) for x in (logits, moved)]
    one, other = (mixing.auc_values(x, labels == 0) for x in evidence)
    np.testing.assert_allclose(one, other, atol=1e-12)
    pairs = evidence[0][..., :20, None] - evidence[0][..., None, 20:]
    np.testing.assert_allclose(one.mean(axis=-1), (pairs > 0).mean(axis=(-2, -1)))
    plain, shifted = ((x.argmax(axis=-1) == labels).mean() for x in (logits, moved))
    assert plain - shifted > 0.02
    same = [mixing_tables.thresholds_by_cell(x, labels) for x in (logits, moved)]
    np.testing.assert_array_equal(*same)
    called = rng.random((4, 60)) < np.where(labels == 0, 0.8, 0.3)
    hits, alarms = (
        (called[:, x].sum(axis=1) + 0.5) / (x.sum() + 1) for x in (labels == 0, labels > 0)
    )
    found = mixing.sensitivity_values(called, labels == 0).mean(axis=-1)
    np.testing.assert_allclose(found, stats.norm.ppf(hits) - stats.norm.ppf(alarms))
    with pytest.raises(MixingError, match="with the label and without"):
        mixing.auc_values(evidence[0], labels < 3)


def test_intervals_of_averages_cover_the_truth() -> None:
    rng, labels, covered = np.random.default_rng(5), np.arange(100) % 2 == 0, []
    groups, truth = np.arange(100) // 4, stats.norm.cdf(1 / np.sqrt(2 * (2 + 0.3**2)))
    for seed in range(250):  # difficulties of premises and pairs, abilities of five fine-tunings
        hard = np.repeat(rng.standard_normal(25), 4) + rng.standard_normal(100)
        ability = 1 + 0.5 * rng.standard_normal((5, 1, 1))
        noise = 0.3 * rng.standard_normal((5, 1, 100))
        evidence = ability * np.where(labels, 0.5, -0.5) + hard + noise
        values = mixing.auc_values(evidence, labels)
        (row,) = mixing.averages(values, groups, n_resamples=500, seed=seed).itertuples()
        covered.append(row.low <= truth <= row.high)
    assert 0.93 <= np.mean(covered) <= 0.97, np.mean(covered)
    ratio = mixing_1_nli.ratio_values(np.array([1.0, 0.0, 2.0]), np.array([1.0, 1.0, 2.0]))
    assert ratio.mean() == pytest.approx(3 / 4)


def test_resamples_go_by_their_seed_and_groups_by_what_is_in_them() -> None:
    one, again, other = (mixing.cells(right(), LANGUAGES, seed=k) for k in (3, 3, 4))
    pd.testing.assert_frame_equal(one, again)
    assert (other["low"] != one["low"]).any()
    for groups, same in ((THREES, 7 * THREES - 9), (None, range(5, 35))):
        tables = [mixing.cells(right(), LANGUAGES, x, **FEW) for x in (groups, same)]
        pd.testing.assert_frame_equal(*tables)


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        (MATRIX / 100, {}, r"scores have shape \(3, 3\): \(3, 3, examples\) is needed"),
        (right(), {"languages": ["en", "de"]}, r"\(2, 2, examples\) is needed for 2 languages"),
        (right()[:, :2], {}, r"shape \(3, 2, 30\)"),
        (right()[None][:0], {}, r"shape \(0, 3, 3, 30\)"),
        (right(), {"languages": ["en", "de", "de"]}, "named twice: en, de, de"),
        (right(0), {}, r"scores have shape \(3, 3, 0\)"),
        (right(1), {}, "two examples that are independent, and there are 1 in 1 groups"),
        (right(), {"groups": [4] * 30}, "and there are 30 in 1 groups"),
        (right(), {"groups": [0, 1]}, r"groups have shape \(2,\) and there are 30 examples"),
        (100 * right(), {}, r"scores are between 0 and 100: give them as shares in \[0, 1\]"),
        (right() - 0.1, {}, "scores are between -0.1 and 0.9"),
        (right(), {"n_resamples": 0}, "n_resamples is 0: draw one"),
        (np.where(np.arange(9).reshape(3, 3, 1) == 6, np.nan, right()), {}, "cell sw-en is empty"),
        (right(n_languages=1), {"languages": ["en"]}, "one language has no cell across"),
    ],
)
def test_what_cannot_be_averaged_is_refused(scores, options, message: str) -> None:
    with pytest.raises(MixingError, match=message):
        mixing.summary(scores, **({"languages": LANGUAGES} | options))


def test_other_tables_refuse_what_summary_does() -> None:
    for call in (
        lambda: mixing.cells(100 * right(), LANGUAGES),
        lambda: mixing.paired_difference(right(), 100 * right(), LANGUAGES),
    ):
        with pytest.raises(MixingError, match="scores are between"):
            call()
    with pytest.raises(MixingError, match=r"\(3, 3, 30\) and \(3, 3, 29\) are not of the same"):
        mixing.paired_difference(right(), right(29), LANGUAGES)


# --- labels ---


@pytest.mark.parametrize("groups", [None, np.arange(30) % 10])
@pytest.mark.parametrize("of_labels", [MERGED, {"e": [0], "n": [1], "c": [2]}])
def test_contributions_add_up_to_the_whole(groups, of_labels: dict) -> None:
    scores = np.random.default_rng(0).random((3, 3, 30))
    whole = mixing.summary(scores, LANGUAGES, groups, **FEW)
    parts = mixing.by_label(scores, LABELS, of_labels, LANGUAGES, groups, **FEW)
    for row in whole.itertuples():
        rows = of(parts, language=row.language, setting=row.setting)
        assert list(rows["label"]) == list(of_labels)
        assert rows["contribution"].sum() == pytest.approx(row.score, abs=1e-12)
        np.testing.assert_allclose(rows["contribution"], rows["share"] * rows["score"])
        assert rows["n"].sum() == 30
        assert rows["share"].sum() == pytest.approx(1)


@pytest.mark.usefixtures("percentiles_alone")
@pytest.mark.parametrize("groups", [None, np.arange(30) % 10])
def test_labels_against_a_loop_over_resamples(groups) -> None:
    scores = right(seed=4)
    table = mixing.by_label(scores, LABELS, MERGED, LANGUAGES, groups, **FEW)
    whole = np.concatenate([scores.reshape(9, 30), [np.isin(LABELS, [1, 2])]])
    columns = [*ENDS, "contribution", "contribution_low", "contribution_high"]
    for setting, which in itertools.product(("within", "across"), range(3)):
        found = {"score": [], "contribution": []}
        for sample in [whole, *resampled(whole, groups)]:
            grid, has = sample[:9].reshape(3, 3, -1), sample[9].astype(bool)
            for name, value in (
                ("score", grid[..., has].mean(axis=-1)),
                ("contribution", (grid * has).mean(axis=-1)),
            ):
                inside = setting == "within"
                found[name].append(value[which, which] if inside else across_by_hand(value, which))
        expected = [x for values in found.values() for x in (values[0], *percentiles(values[1:]))]
        row = of(table, label="not-entailment", language=LANGUAGES[which], setting=setting)
        np.testing.assert_allclose(row[columns].to_numpy()[0], expected)
    assert set(of(table, label="not-entailment")["n"]) == {22}


def test_labels_of_a_worked_example() -> None:
    # Two of four are "yes". Within all are right; across no "yes" is, and every "no".
    scores = np.ones((2, 2, 4))
    scores[0, 1, :2] = scores[1, 0, :2] = 0
    table = mixing.by_label(scores, [1, 1, 0, 0], {"yes": [1], "no": [0]}, ["en", "de"])
    found = of(table, language="en").set_index(["label", "setting"])
    assert found["score"].to_dict() == {
        ("yes", "within"): 1, ("yes", "across"): 0, ("yes", "drop"): 1,
        ("no", "within"): 1, ("no", "across"): 1, ("no", "drop"): 0,
    }  # fmt: skip
    assert found.loc[("yes", "drop"), "contribution"] == 0.5  # all of the drop of 0.5
    assert found.loc[("no", "drop"), "contribution"] == 0


@pytest.mark.usefixtures("percentiles_alone")
def test_a_resample_without_a_label_has_no_score_of_it() -> None:
    scores = np.random.default_rng(0).random((2, 2, 12))
    table = mixing.by_label(
        scores, [1, 1] + [0] * 10, {"rare": [1], "other": [0]}, ["en", "de"], n_resamples=300
    )
    assert np.isfinite(table.drop(columns=["label", "language", "setting"])).all(axis=None)
    rare = of(table, label="rare", language="en", setting="within").iloc[0]
    # only two examples: each resample that has one is between them
    assert rare[["low", "high"]].tolist() == pytest.approx(sorted(scores[0, 0, :2]))
    assert rare["contribution_low"] == 0


@pytest.mark.parametrize(
    ("labels", "of_labels", "groups", "message"),
    [
        (LABELS, MERGED | {"x": [3]}, None, "label 'x' has examples of 0 groups"),
        (LABELS, {"e": [0], "n": [1]}, None, "label 2 is not in exactly one of e, n"),
        (LABELS, {"e": [0, 1], "n": [1, 2]}, None, "label 1 is not in exactly one of e, n"),
        (LABELS[:4], MERGED, None, r"labels have shape \(4,\) and there are 30 examples"),
        (LABELS, MERGED, LABELS, "'entailment' has examples of 1 groups"),
    ],
)
def test_labels_that_do_not_make_a_whole_are_refused(labels, of_labels, groups, message) -> None:
    with pytest.raises(MixingError, match=message):
        mixing.by_label(right(), labels, of_labels, LANGUAGES, groups)


# --- sensitivity and preference, and tables to read ---


@given(st.floats(0.1, 4), st.floats(-1.5, 1.5))
def test_detection_finds_the_distance_and_the_threshold(distance: float, criterion: float) -> None:
    """Two normal distributions, half the distance from 0 each; "first" is said above c."""
    first = stats.norm.sf(criterion, loc=distance / 2)
    second = stats.norm.cdf(criterion, loc=-distance / 2)
    found = mixing_claims.detection(first, second)
    assert found == pytest.approx((distance, criterion, stats.norm.cdf(distance / 2)))
    assert found.unbiased >= (first + second) / 2 - 1e-12  # a preference costs


def test_a_threshold_alone_lowers_the_mean_of_the_classes() -> None:
    """Why a lower mean is no sign that less is known."""
    first, second = np.array([0.841, 0.309]), np.array([0.841, 0.994])
    found = mixing_claims.detection(first, second)
    assert found.sensitivity.round(1).tolist() == [2.0, 2.0]
    assert found.criterion.round(1).tolist() == [0.0, 1.5]
    assert ((first + second) / 2).round(2).tolist() == [0.84, 0.65]
    assert found.unbiased.round(2).tolist() == [0.84, 0.84]
    for wrong in ((1.0, 0.5), (0.5, 0.0), (0.5, 80.0)):
        with pytest.raises(MixingError, match="not between 0 and 1"):
            mixing_claims.detection(*wrong)


def test_what_the_model_keeps_apart_and_the_bag_does_not_is_told() -> None:
    gold = SimpleNamespace(labels=np.arange(60) % 2, classes=("yes", "no"))
    logits = np.broadcast_to(4.0 * np.eye(2)[gold.labels], (2, 2, 60, 2))
    values = {
        name: mixing_2_paraphrase.signals([SimpleNamespace(logits=x)], gold)
        for name, x in {"a": logits, "bag": 0 * logits}.items()
    }
    asked = values["a"], values["bag"], {"across": ~np.eye(2, dtype=bool)}, np.arange(60)
    table = mixing_tables.knowledge(*asked, n_resamples=50)
    table = mixing_1_nli.steady(table, *asked, n_resamples=50, seed=0)
    assert table.query("what == 'premise adds'")["score"].tolist() == [0.5] * 4
    assert "AUC in 2 of 2 labels" in mixing_2_paraphrase.told_beside_bag(table)


def test_scores_stand_beside_hypotheses_alone_and_the_best_baseline() -> None:
    alone = np.arange(40) % 2 * np.ones((2, 3, 3, 40))
    ours = np.where(np.eye(3, dtype=bool)[..., None], 1.0, alone)
    pairs = {"own": (ours, ours, 0), "other": (ours, alone, 1)}
    table = mixing_1_nli.beside_alone(pairs, np.arange(40), n_resamples=50, seed=0)
    assert table.query("model == 'other'")["score"].tolist() == [0.5, 0.5, 0.5, 0.0]
    said = mixing_1_nli.told_alone(table, ["other", "third"], "own")
    assert "across 0.0 to 0.0 (above zero in 0 of 1). Hypotheses alone are not run of: `th" in said
    rows = {"task": "PAWS-X", "model": ["a", "b"], "score less": 0.1, "low less": [0.01, -1]}
    said = mixing_2_paraphrase.told_nothing(pd.DataFrame(rows | {"setting": "within"}))
    assert said.endswith("above zero: a in PAWS-X within.")


def test_a_model_that_reads_overlap_alone_has_no_difference_at_equal_overlap() -> None:
    pairs = pd.MultiIndex.from_product([["en", "de", "fr"], ["ru", "ko"]])
    before = pd.DataFrame({"bag": np.linspace(0.5, 0.6, 6)}, index=pairs)
    choices = {"as it is": before, "romanised": before + 0.2}
    choices = {key: own.assign(model=own["bag"] / 2) for key, own in choices.items()}
    table = mixing_2_paraphrase.romanised_choices(choices, "model", "bag", n_resamples=50, seed=0)
    assert table[-3:].to_numpy() == pytest.approx(np.repeat([[0.2], [0.1], [0.0]], 3, axis=1))
    assert "The encoder rises" in mixing_2_paraphrase.told_romanised(table, "model", "bag")


def test_auc_is_that_of_a_loop_and_a_moved_threshold_leaves_it() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 40)
    logits = rng.normal(size=(2, 2, 40, 3)).round(1)
    logits[0, 0, :, 0] += 3 * (labels == 0)
    made = Grid("a", ("en", "de"), {"accuracy": np.zeros((2, 2, 40))}, np.arange(40), logits=logits)
    moved = replace(made, logits=logits - [5, 0, 0])
    tables = [
        mixing.averages(
            mixing_2_paraphrase.settings_of(mixing_2_paraphrase.label_aucs([one], labels, 0)),
            one.groups,
            n_resamples=50,
        )
        for one in (made, moved)
    ]
    evidence = logits[..., 0] - np.logaddexp(logits[..., 1], logits[..., 2])

    def auc(cell: np.ndarray) -> float:
        pairs = [(p > q) + (p == q) / 2 for p in cell[labels == 0] for q in cell[labels != 0]]
        return np.mean(pairs)

    within = (auc(evidence[0, 0]) + auc(evidence[1, 1])) / 2
    across = (auc(evidence[0, 1]) + auc(evidence[1, 0])) / 2
    for table in tables:
        assert table["score"].tolist() == pytest.approx([within, across, within - across])
        assert (table["low"] < table["score"]).all()
        assert (table["score"] < table["high"]).all()


def test_the_layer_of_a_pair_is_chosen_on_other_pairs() -> None:
    codes = ["en", "de", "ru", "zh"]
    rows = [
        {"task": "MD", "language_1": a, "language_2": b, "layer": layer,
         "score": 0.9 if ({a, b} == {"ru", "zh"}) == bool(layer) else 0.5}
        for a, b in itertools.combinations(codes, 2) for layer in (0, 1)
    ]  # fmt: skip
    measured = SimpleNamespace(table=lambda: pd.DataFrame(rows))
    found = mixing_2_paraphrase.forced_choice(measured, "MD")
    assert found["en", "de"] == 0.5  # ru-zh, the one pair without them, is best at layer 1
    assert (found["ru", "zh"], found["en", "zh"]) == (0.5, 0.9)
    choices = pd.DataFrame({"model": found + 0.1, "bag": found})
    table = mixing_2_paraphrase.by_overlap(choices, "model", "bag", n_resamples=50, seed=0)
    assert table[["score", "low", "high"]].to_numpy() == pytest.approx(0.1)
    assert table["pairs"].tolist() == [6, 1, 5, 2, 2]


def test_tables_are_shown_in_points_and_in_order() -> None:
    scores = np.random.default_rng(0).random((3, 3, 20)).round(2)
    table = mixing.summary(scores, LANGUAGES)
    found = mixing_tables.by_setting(pd.concat([table.assign(model=x) for x in "za"]), "model")
    assert found.index.tolist() == ["z", "a"]
    assert found.columns.tolist() == ["within", "across", "drop"]
    row = of(table, language="mean", setting="within").iloc[0]
    assert found.loc["z", "within"] == (
        f"{100 * row.score:.1f} ({100 * row.low:.1f} to {100 * row.high:.1f})"
    )
    german = mixing_tables.by_setting(table.assign(model="z"), "model", language="de")
    assert german.loc["z", "within"].startswith(f"{100 * scores[1, 1].mean():.1f} (")
    gains = pd.DataFrame({"gain": [-0.0001], "gain_low": [-0.1], "gain_high": [0.05]})
    assert as_points(gains, "gain").tolist() == ["0.0 (-10.0 to 5.0)"]
    shown = [in_points(value) for value in (0.2114, 0.0, -0.0004, -0.041, 1.0, np.nan)]
    assert shown == ["21.1", "0.0", "0.0", "-4.1", "100.0", "no model"]
    with pytest.raises(MixingError, match="no language 'fi'"):
        mixing_tables.by_setting(table, language="fi")


# --- fine-tuning on a pair ---


def starred(grid: np.ndarray, languages: Sequence[str], pair: tuple, **options) -> dict:
    """The averages of the cells of each row, of a grid or of examples."""
    inside = mixing_6_pairs.pair_cells(languages, pair, **options)
    grid = grid.mean(axis=-1) if grid.ndim == 3 else grid
    return {row: float(grid[mask].mean()) for row, mask in inside.items()}


@given(st.integers(3, 7), st.integers(0, 10**6), st.booleans())
def test_starred_averages_against_a_loop(n: int, seed: int, unseen_only: bool) -> None:
    rng = np.random.default_rng(seed)
    codes = [f"l{i}" for i in range(n)]
    scores = rng.random((n, n))
    one, two = (codes[i] for i in rng.choice(n, 2, replace=False))
    runs = [code for code in codes if not unseen_only or code not in (one, two)]
    sides = {"l1": [one], "l2": [two], "*": runs}
    grid = dict(zip(itertools.product(codes, codes), scores.ravel(), strict=True))
    found = starred(scores, codes, (one, two), unseen_only=unseen_only)
    for row in mixing_claims.PAIRS_ROWS:
        first, second = row.split("-")
        inside = list(itertools.product(sides[first], sides[second]))
        assert found[row] == pytest.approx(np.mean([grid[cell] for cell in inside]))


@pytest.mark.parametrize(("unseen_only", "groups"), [(False, None), (True, THREES)])
def test_pairs_against_a_loop_over_resamples(unseen_only: bool, groups) -> None:
    grids, pair = {"tuned": right(seed=6), "baseline": right(seed=7)}, ("de", "sw")
    table = mixing_6_pairs.pair_table(
        grids, LANGUAGES, pair, groups, unseen_only=unseen_only, **FEW
    )
    assert set(table["pair"]) == {"de-sw"}
    averages = {
        name: [
            starred(sample, LANGUAGES, pair, unseen_only=unseen_only)
            for sample in [scores, *resampled(scores, groups)]
        ]
        for name, scores in grids.items()
    }
    for name, row in itertools.product(grids, mixing_claims.PAIRS_ROWS):
        found = of(table, condition=name, row=row).iloc[0]
        score = [average[row] for average in averages[name]]
        np.testing.assert_allclose(found[ENDS].to_list(), [score[0], *percentiles(score[1:])])
        gain = np.subtract([average[row] for average in averages["tuned"]], score)
        np.testing.assert_allclose(
            found[["gain", "gain_low", "gain_high"]].to_list(),
            [gain[0], *percentiles(list(gain[1:]))],
            atol=1e-12,
        )
    star = 1 if unseen_only else 3
    n = of(table, condition="tuned")["n_cells"].tolist()
    assert n == [1, 1, star, star, star**2]


# --- easy and hard questions ---


def tail_by_enumeration(score: np.ndarray, distance: np.ndarray, k: int) -> tuple[float, float]:
    """(easiest, hardest): the mean over all orders that break ties in one way or another."""
    found = []
    for order in itertools.permutations(range(len(score))):
        if (np.diff(score[list(order)]) >= 0).all():
            ascending = distance[list(order)]
            found.append((ascending[-k:].mean(), ascending[:k].mean()))
    return tuple(np.mean(found, axis=0))


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 384)), min_size=2, max_size=5
    ),
    st.integers(1, 2),
)
def test_tails_are_the_mean_over_all_ways_to_break_ties(pairs: list, k: int) -> None:
    score, distance = np.array(pairs).T
    k = min(k, len(score) // 2)
    found, _ = tails(score, distance, k / len(score), n_resamples=1)
    expected = tail_by_enumeration(score, distance, k)
    np.testing.assert_allclose(found["distance"], expected, rtol=1e-9, atol=1e-9)


def test_tails_of_a_worked_example() -> None:
    score = np.array([1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0, 0, 0.2])
    distance = np.array([1.0, 2, 6, 9, 9, 9, 9, 30, 10, 50])
    table, ratio = tails(score, distance, 0.2)
    # two of the three that tie at 1, whichever: 3 on average; the two at 0: 20
    assert table["group"].tolist() == ["easiest", "hardest"]
    np.testing.assert_allclose(table[["distance", "score"]], [[3, 1], [20, 0]])
    assert ratio[0] == pytest.approx(20 / 3)
    # three: the border is at 0.2; two and a half: the third counts half
    for share, hardest in ((0.3, 30), (0.25, (40 + 25) / 2.5)):
        np.testing.assert_allclose(tails(score, distance, share)[0]["distance"], [3, hardest])
    tied = tails([0.1 + 0.2, 0.3, 0, 0], [1.0, 3, 0, 0], 0.25)[0]
    assert tied["distance"][0] == pytest.approx(2)  # they differ by rounding


@pytest.mark.parametrize("groups", [None, THREES, np.arange(30) % 4])
def test_tails_against_a_loop_over_resamples(groups) -> None:
    rng = np.random.default_rng(0)
    score, distance = rng.integers(0, 4, 30) / 3, 1 + rng.random(30)
    table, ratio = tails(score, distance, 0.2, groups, **FEW)
    samples = [
        tails(*sample, 0.2, n_resamples=1)
        for sample in resampled(np.stack([score, distance]), groups)
    ]
    low, high = percentiles([sample["distance"] for sample, _ in samples])
    np.testing.assert_allclose(table[["low", "high"]].T, [low, high])
    ratios = [sample[0] for _, sample in samples]
    np.testing.assert_allclose(ratio[1:], np.quantile(ratios, [0.025, 0.975], method="nearest"))


def test_a_ratio_over_nothing_is_infinite() -> None:
    score = np.arange(10) / 10
    _, (ratio, _, high) = tails(score, np.where(score < 0.5, 4.0, 0), 0.1)
    assert ratio == high == np.inf
    assert np.isnan(tails(score, np.zeros(10), 0.1)[1]).all()


def test_tails_of_examples_that_hang_together_are_refused() -> None:
    with pytest.raises(MixingError, match="in 1 groups"):
        tails([1, 0], [1, 1], groups=[1, 1])
