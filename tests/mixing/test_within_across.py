"""Grids of two languages: averages by hand, intervals against loops, and what is no grid."""

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.tables import of
from xlx.core.statistics import resample_counts
from xlx.mixing import answer_tails, mixed_pairs, reading, resamples, within_across
from xlx.mixing.resamples import MixingError

LANGUAGES = ("en", "de", "sw")
#: Accuracies of a grid in per cent, so that averages can be checked by eye.
MATRIX = np.array([[80.0, 60.0, 30.0], [70.0, 50.0, 20.0], [40.0, 10.0, 90.0]])
ENDS = ["score", "low", "high"]
FEW = {"n_resamples": 40, "seed": 5}


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


def test_averages_of_a_grid_by_hand() -> None:
    assert within_across.within(MATRIX).tolist() == [80, 50, 90]
    # en: 60, 30, 70, 40; de: 70, 20, 60, 10; sw: 40, 10, 30, 20
    assert within_across.across(MATRIX).tolist() == [50, 40, 25]


def test_the_mean_across_is_the_mean_of_all_cells_off_the_diagonal() -> None:
    assert within_across.across(MATRIX).mean() == pytest.approx(
        MATRIX[~np.eye(3, dtype=bool)].mean()
    )


@given(st.integers(2, 7), st.integers(0, 10**6))
def test_across_has_the_cells_with_the_language_in_exactly_one_place(n: int, seed: int) -> None:
    grids = np.random.default_rng(seed).random((4, n, n))
    expected = [[across_by_hand(grid, which) for which in range(n)] for grid in grids]
    np.testing.assert_allclose(within_across.across(grids), expected)
    expected = [[grid[i, i] for i in range(n)] for grid in grids]
    assert within_across.within(grids).tolist() == expected


def test_averages_are_copies() -> None:
    grid = MATRIX.copy()
    within_across.within(grid)[:] = 0
    assert (grid == MATRIX).all()


# --- tables with intervals ---


@pytest.fixture
def percentiles_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resamples, "FEW", 0)


@pytest.mark.usefixtures("percentiles_alone")
@pytest.mark.parametrize("groups", [None, np.arange(30) // 3, [7] * 11 + [2] * 4 + [-1] * 15])
def test_cells_against_a_loop_over_resamples(groups) -> None:
    scores = right()
    table = within_across.cells(scores, LANGUAGES, groups, **FEW)
    assert list(table.columns) == ["first", "second", *ENDS]
    low, high = percentiles([sample.mean(axis=-1) for sample in resampled(scores, groups)])
    for number, (i, j) in enumerate(itertools.product(range(3), repeat=2)):
        row = table.iloc[number]
        assert (row["first"], row["second"]) == (LANGUAGES[i], LANGUAGES[j])
        np.testing.assert_allclose(
            row[ENDS].to_list(), [scores[i, j].mean(), low[i, j], high[i, j]]
        )


@pytest.mark.usefixtures("percentiles_alone")
@pytest.mark.parametrize("groups", [None, np.arange(30) // 3])
def test_summary_against_a_loop_over_resamples(groups) -> None:
    scores = right(seed=1)
    table = within_across.summary(scores, LANGUAGES, groups, **FEW)
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
    drop = of(within_across.summary(scores, LANGUAGES), setting="drop")
    np.testing.assert_allclose(drop[ENDS], 0.25)
    within = of(within_across.summary(scores, LANGUAGES), setting="within")
    assert (within["high"] - within["low"] > 0.1).all()


def test_a_difference_is_paired() -> None:
    one = right(seed=2)
    shifted = 0.5 * one + 0.25 * np.eye(3)[..., None]
    table = within_across.paired_difference(
        0.5 * one + 0.5 * np.eye(3)[..., None], shifted, LANGUAGES
    )
    expected = table["setting"].map({"within": 0.25, "across": 0, "drop": 0.25})
    for column in ENDS:
        np.testing.assert_allclose(table[column], expected, atol=1e-12)


def test_a_difference_against_a_loop_and_against_summary() -> None:
    one, other = right(seed=2), right(seed=3)
    groups = np.arange(30) // 5
    table = within_across.paired_difference(one, other, LANGUAGES, groups, **FEW)
    first, second = (within_across.summary(each, LANGUAGES, groups, **FEW) for each in (one, other))
    np.testing.assert_allclose(table["score"], first["score"] - second["score"], atol=1e-12)
    found = [sample.mean(axis=-1)[1, 1] for sample in resampled(one - other, groups)]
    row = of(table, language="de", setting="within")
    np.testing.assert_allclose(row[["low", "high"]].to_numpy()[0], percentiles(found), atol=1e-12)
    swapped = within_across.paired_difference(other, one, LANGUAGES, groups, **FEW)
    np.testing.assert_allclose(swapped["low"], -table["high"], atol=1e-12)


def test_seeds_repeat_and_differ() -> None:
    scores = right()
    pd.testing.assert_frame_equal(
        within_across.summary(scores, LANGUAGES, seed=3),
        within_across.summary(scores, LANGUAGES, seed=3),
    )
    other = within_across.summary(scores, LANGUAGES, seed=4)
    assert (other["low"] != within_across.summary(scores, LANGUAGES, seed=3)["low"]).any()
    assert (other["score"] == within_across.summary(scores, LANGUAGES, seed=3)["score"]).all()


def test_intervals_cover_what_the_examples_were_drawn_from() -> None:
    rng = np.random.default_rng(0)
    true = np.array([[0.8, 0.6], [0.5, 0.7]])
    covered = []
    for seed in range(200):
        # the same difficulty in all cells, so cells hang together as they do in earnest
        difficulty = rng.random(150)
        scores = (difficulty < true[..., None]).astype(float)
        table = within_across.summary(scores, ["en", "de"], n_resamples=300, seed=seed)
        row = of(table, language="mean", setting="drop").iloc[0]
        covered.append(row["low"] <= 0.75 - 0.55 <= row["high"])
    assert 0.89 <= np.mean(covered) <= 0.99


def test_intervals_of_examples_that_hang_together_need_their_groups() -> None:
    rng = np.random.default_rng(1)
    covered = {"groups": [], "none": []}
    groups = np.repeat(np.arange(60), 5)
    for seed in range(200):
        scores = np.repeat((rng.random((2, 2, 60)) < 0.6).astype(float), 5, axis=-1)
        for name, given_ in (("groups", groups), ("none", None)):
            row = within_across.cells(
                scores, ["en", "de"], given_, n_resamples=300, seed=seed
            ).iloc[0]
            covered[name].append(row["low"] <= 0.6 <= row["high"])
    assert 0.89 <= np.mean(covered["groups"]) <= 0.99
    assert np.mean(covered["none"]) < 0.75  # intervals √5 times too short


def test_intervals_cover_shares_of_which_next_to_nothing_is_right() -> None:
    # 21 paragraphs of two questions; the bootstrap alone covers half of the single languages here
    rng, true, groups = np.random.default_rng(2), 0.015, np.repeat(np.arange(21), 2)
    covered = {name: [] for name in within_across.SETTINGS}
    for seed in range(120):
        chance = np.repeat(rng.beta(0.05, 0.05 / true, 21), 2)  # of a paragraph
        scores = (rng.random((3, 3, 42)) < chance).astype(float)
        table = within_across.summary(scores, LANGUAGES, groups, n_resamples=200, seed=seed)
        table["covered"] = (table["low"] <= (table["setting"] != "drop") * true + 1e-9) & (
            table["high"] >= (table["setting"] != "drop") * true - 1e-9
        )
        for name, own in table[table["language"] != "mean"].groupby("setting"):
            covered[name].append(own["covered"].mean())
    assert min(map(np.mean, covered.values())) > 0.9, {k: np.mean(v) for k, v in covered.items()}


def test_nothing_right_is_not_certain() -> None:
    table = within_across.summary(np.zeros((3, 3, 40)), LANGUAGES)
    t2 = stats.t.ppf(0.975, 39) ** 2
    within = of(table, setting="within")
    np.testing.assert_allclose(within["low"], 0, atol=1e-12)
    np.testing.assert_allclose(within["high"], t2 / (40 + t2))
    drop = of(table, setting="drop")
    assert (drop["low"] < -0.05).all()
    assert (drop["high"] > 0.05).all()


def test_intervals_of_a_mean_over_seeds_cover_what_other_seeds_would_give() -> None:
    rng, wide, narrow = np.random.default_rng(3), [], []
    difficulty = np.linspace(0, 1, 100, endpoint=False)[rng.permutation(100)]
    for seed in range(150):
        true = 0.5 + 0.1 * rng.standard_normal(3)  # what each fine-tuning has learnt
        scores = np.broadcast_to(difficulty < true[:, None, None, None], (3, 2, 2, 100)).astype(
            float
        )
        for found, own in ((wide, scores), (narrow, scores.mean(axis=0))):
            row = within_across.cells(own, ["en", "de"], n_resamples=200, seed=seed).iloc[0]
            found.append((row["low"] <= 0.5 <= row["high"], row["score"]))
    np.testing.assert_allclose([one for _, one in wide], [one for _, one in narrow])
    assert np.mean([held for held, _ in wide]) > 0.92
    assert np.mean([held for held, _ in narrow]) < 0.9


def test_seeds_of_two_models_are_independent_and_one_seed_adds_nothing() -> None:
    one = np.stack([right(seed=k) for k in range(3)])
    alike = within_across.paired_difference(one, one, LANGUAGES)
    np.testing.assert_allclose(alike["score"], 0, atol=1e-12)
    assert (alike["high"] > alike["low"]).all()  # two models of three seeds each, not one
    single = within_across.paired_difference(one[:1], one[0], LANGUAGES)
    np.testing.assert_allclose(single[ENDS], 0, atol=1e-12)
    labels = within_across.by_label(one, LABELS, MERGED, LANGUAGES, **FEW)
    np.testing.assert_allclose(
        labels["score"],
        within_across.by_label(one.mean(axis=0), LABELS, MERGED, LANGUAGES, **FEW)["score"],
    )
    gain = mixed_pairs.pair_table({"a": one, "b": one[0]}, LANGUAGES, ("en", "de"), **FEW)
    assert (of(gain, condition="a")[["gain", "gain_low", "gain_high"]] == 0).all(axis=None)
    with pytest.raises(MixingError, match=r"shape \(0, 3, 3, 30\)"):
        within_across.cells(one[:0], LANGUAGES)


def test_groups_are_the_same_under_other_names() -> None:
    groups = np.arange(30) // 3
    one = within_across.cells(right(), LANGUAGES, groups, **FEW)
    pd.testing.assert_frame_equal(
        one, within_across.cells(right(), LANGUAGES, 7 * groups - 9, **FEW)
    )
    # a group an example is no group at all
    one, other = (within_across.cells(right(), LANGUAGES, g, **FEW) for g in (None, range(5, 35)))
    pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize("table", ["cells", "summary"])
@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        (MATRIX / 100, {}, r"scores have shape \(3, 3\): \(3, 3, examples\) is needed"),
        (right(), {"languages": ["en", "de"]}, r"\(2, 2, examples\) is needed for 2 languages"),
        (right()[:, :2], {}, r"shape \(3, 2, 30\)"),
        (right(), {"languages": ["en", "de", "de"]}, "named twice: en, de, de"),
        (right(0), {}, r"scores have shape \(3, 3, 0\)"),
        (right(1), {}, "two examples that are independent, and there are 1 in 1 groups"),
        (right(), {"groups": [4] * 30}, "and there are 30 in 1 groups"),
        (right(), {"groups": [0, 1]}, r"groups have shape \(2,\) and there are 30 examples"),
        (100 * right(), {}, r"scores are between 0 and 100: give them as shares in \[0, 1\]"),
        (right() - 0.1, {}, "scores are between -0.1 and 0.9"),
        (right(), {"n_resamples": 0}, "n_resamples is 0: draw one"),
    ],
)
def test_what_cannot_be_averaged_is_refused(table: str, scores, options, message: str) -> None:
    with pytest.raises(MixingError, match=message):
        getattr(within_across, table)(scores, **({"languages": LANGUAGES} | options))


def test_an_empty_cell_of_examples_is_named() -> None:
    scores = right()
    scores[2, 0] = np.nan
    for draw in (
        lambda: within_across.cells(scores, LANGUAGES),
        lambda: within_across.summary(scores, LANGUAGES),
        lambda: within_across.paired_difference(right(), scores, LANGUAGES),
        lambda: within_across.by_label(scores, np.arange(30) % 2, {"a": [0], "b": [1]}, LANGUAGES),
        lambda: mixed_pairs.pair_table({"tuned": scores}, LANGUAGES, ("en", "de")),
    ):
        with pytest.raises(MixingError, match="cell sw-en is empty, its score NaN: evaluate it"):
            draw()


def test_one_language_has_no_summary() -> None:
    with pytest.raises(MixingError, match="one language has no cell across"):
        within_across.summary(right(n_languages=1), ["en"])
    assert len(within_across.cells(right(n_languages=1), ["en"])) == 1


def test_a_difference_is_of_two_grids_on_the_same_examples() -> None:
    with pytest.raises(MixingError, match=r"one has shape \(3, 3, 30\) and other \(3, 3, 29\)"):
        within_across.paired_difference(right(), right(29), LANGUAGES)
    with pytest.raises(MixingError, match=r"other have shape|other are between"):
        within_across.paired_difference(right(), 100 * right(), LANGUAGES)


# --- labels ---

LABELS = np.array([0] * 8 + [1] * 12 + [2] * 10)
MERGED = {"entailment": [0], "not-entailment": [1, 2]}


@pytest.mark.parametrize("groups", [None, np.arange(30) % 10])
@pytest.mark.parametrize("of_labels", [MERGED, {"e": [0], "n": [1], "c": [2]}])
def test_contributions_add_up_to_the_whole(groups, of_labels: dict) -> None:
    scores = np.random.default_rng(0).random((3, 3, 30))
    whole = within_across.summary(scores, LANGUAGES, groups, **FEW)
    parts = within_across.by_label(scores, LABELS, of_labels, LANGUAGES, groups, **FEW)
    for row in whole.itertuples():
        own = of(parts, language=row.language, setting=row.setting)
        assert list(own["label"]) == list(of_labels)
        assert own["contribution"].sum() == pytest.approx(row.score, abs=1e-12)
        np.testing.assert_allclose(own["contribution"], own["share"] * own["score"])
        assert own["n"].sum() == 30
        assert own["share"].sum() == pytest.approx(1)


@pytest.mark.usefixtures("percentiles_alone")
@pytest.mark.parametrize("groups", [None, np.arange(30) % 10])
def test_labels_against_a_loop_over_resamples(groups) -> None:
    scores = right(seed=4)
    table = within_across.by_label(scores, LABELS, MERGED, LANGUAGES, groups, **FEW)
    given_label = np.isin(LABELS, [1, 2])
    resamples = resampled(np.concatenate([scores.reshape(9, 30), [given_label]]), groups)
    columns = [*ENDS, "contribution", "contribution_low", "contribution_high"]
    for setting, which in itertools.product(("within", "across"), range(3)):
        found = {"score": [], "contribution": []}
        for sample in [np.concatenate([scores.reshape(9, 30), [given_label]]), *resamples]:
            grid, has = sample[:9].reshape(3, 3, -1), sample[9].astype(bool)
            for name, value in (
                ("score", grid[..., has].mean(axis=-1)),
                ("contribution", (grid * has).mean(axis=-1)),
            ):
                one = value[which, which] if setting == "within" else across_by_hand(value, which)
                found[name].append(one)
        expected = [x for own in found.values() for x in (own[0], *percentiles(own[1:]))]
        row = of(table, label="not-entailment", language=LANGUAGES[which], setting=setting)
        np.testing.assert_allclose(row[columns].to_numpy()[0], expected)
    assert set(of(table, label="not-entailment")["n"]) == {22}


def test_labels_of_a_worked_example() -> None:
    # Two of four are "yes". Within all are right; across no "yes" is, and every "no".
    scores = np.ones((2, 2, 4))
    scores[0, 1, :2] = scores[1, 0, :2] = 0
    table = within_across.by_label(scores, [1, 1, 0, 0], {"yes": [1], "no": [0]}, ["en", "de"])
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
    labels = [1, 1] + [0] * 10
    options = {"n_resamples": 300}
    table = within_across.by_label(
        scores, labels, {"rare": [1], "other": [0]}, ["en", "de"], **options
    )
    assert np.isfinite(table.drop(columns=["label", "language", "setting"])).all(axis=None)
    rare = of(table, label="rare", language="en", setting="within").iloc[0]
    # only two examples: each resample that has one is between them
    low, high = sorted(scores[0, 0, :2])
    assert (rare["low"], rare["high"]) == (pytest.approx(low), pytest.approx(high))
    assert rare["contribution_low"] == 0


@pytest.mark.parametrize(
    ("labels", "of_labels", "groups", "message"),
    [
        (LABELS, MERGED | {"x": [3]}, None, r"no example has label 'x', which stands for \[3\]"),
        (LABELS, MERGED | {"x": []}, None, "no example has label 'x'"),
        (LABELS, {"e": [0], "n": [1]}, None, "label 2 is in none of e, n: contributions"),
        (LABELS, {"e": [0, 1], "n": [1, 2]}, None, "label 1 is in more than one of e, n"),
        (LABELS, {}, None, "label 0 is in none of"),
        (LABELS[:4], MERGED, None, r"labels have shape \(4,\) and there are 30 examples"),
        (LABELS, MERGED, LABELS, "'entailment' has examples of one group only"),
    ],
)
def test_labels_that_do_not_make_a_whole_are_refused(labels, of_labels, groups, message) -> None:
    with pytest.raises(MixingError, match=message):
        within_across.by_label(right(), labels, of_labels, LANGUAGES, groups)


# --- sensitivity and preference ---


@given(st.floats(0.1, 4), st.floats(-1.5, 1.5))
def test_detection_finds_the_distance_and_the_threshold(distance: float, criterion: float) -> None:
    """Two normal distributions, half the distance from 0 each; "first" is said above c."""
    first = stats.norm.sf(criterion, loc=distance / 2)
    second = stats.norm.cdf(criterion, loc=-distance / 2)
    found = reading.detection(first, second)
    assert found == pytest.approx((distance, criterion, stats.norm.cdf(distance / 2)))
    assert found.unbiased >= (first + second) / 2 - 1e-12  # a preference costs


def test_a_threshold_alone_lowers_the_mean_of_the_classes() -> None:
    """Why a lower mean is no sign that less is known."""
    first, second = np.array([0.841, 0.309]), np.array([0.841, 0.994])
    found = reading.detection(first, second)
    assert found.sensitivity.round(1).tolist() == [2.0, 2.0]
    assert found.criterion.round(1).tolist() == [0.0, 1.5]
    assert ((first + second) / 2).round(2).tolist() == [0.84, 0.65]
    assert found.unbiased.round(2).tolist() == [0.84, 0.84]


def test_detection_of_a_table_by_label() -> None:
    scores = np.random.default_rng(1).random((3, 3, 30))
    table = within_across.by_label(scores, LABELS, MERGED, LANGUAGES, **FEW).assign(model="a")
    found = reading.detected(table, "entailment", "not-entailment")
    assert list(found.index) == [("a", "within"), ("a", "across")]
    own = of(table, language="mean", setting="across").set_index("label")["score"]
    told = reading.detection(own["entailment"], own["not-entailment"])
    row = found.loc[("a", "across")]
    assert row["d′"] == pytest.approx(told.sensitivity)
    assert row["without preference"] == pytest.approx(told.unbiased)
    assert row["mean of both"] == pytest.approx(own.mean())


def test_detection_needs_shares_between_0_and_1() -> None:
    for first, second, name in ((1.0, 0.5, "first"), (0.5, 0.0, "second"), (0.5, 80.0, "second")):
        with pytest.raises(MixingError, match=rf"of the {name} class is not between 0 and 1"):
            reading.detection(first, second)


# --- fine-tuning on a pair ---


def starred(grid: np.ndarray, languages: Sequence[str], pair: tuple, **options) -> dict:
    """The averages of the cells of each row, of a grid or of examples."""
    inside = mixed_pairs.pair_cells(languages, pair, **options)
    grid = grid.mean(axis=-1) if grid.ndim == 3 else grid
    return {row: float(grid[mask].mean()) for row, mask in inside.items()}


def test_starred_averages_by_hand() -> None:
    found = starred(MATRIX, LANGUAGES, ("en", "de"))
    assert tuple(found) == mixed_pairs.PAIRS_ROWS
    assert found == {
        "l1-l2": 60,
        "l2-l1": 70,
        "*-l2": 40,  # column de: 60, 50, 10
        "l1-*": pytest.approx((80 + 60 + 30) / 3),  # row en
        "*-*": 50,
    }
    swapped = starred(MATRIX, LANGUAGES, ("de", "en"))
    assert (swapped["l1-l2"], swapped["l2-l1"]) == (70, 60)
    assert swapped["*-l2"] == pytest.approx((80 + 70 + 40) / 3)  # column en


def test_starred_averages_of_unseen_languages_by_hand() -> None:
    found = starred(MATRIX, LANGUAGES, ("en", "de"), unseen_only=True)
    assert found == {"l1-l2": 60, "l2-l1": 70, "*-l2": 10, "l1-*": 30, "*-*": 90}


@given(st.integers(3, 7), st.integers(0, 10**6), st.booleans())
def test_starred_averages_against_a_loop(n: int, seed: int, unseen_only: bool) -> None:
    rng = np.random.default_rng(seed)
    codes = [f"l{i}" for i in range(n)]
    scores = rng.random((n, n, 5))
    one, two = (codes[i] for i in rng.choice(n, 2, replace=False))
    runs = [code for code in codes if not unseen_only or code not in (one, two)]
    sides = {"l1": [one], "l2": [two], "*": runs}
    grid = dict(zip(itertools.product(codes, codes), scores.mean(-1).ravel(), strict=True))
    found = starred(scores, codes, (one, two), unseen_only=unseen_only)
    cells = mixed_pairs.pair_cells(codes, (one, two), unseen_only=unseen_only)
    for row in mixed_pairs.PAIRS_ROWS:
        first, second = row.split("-")
        inside = list(itertools.product(sides[first], sides[second]))
        assert found[row] == pytest.approx(np.mean([grid[cell] for cell in inside]))
        assert cells[row].sum() == len(inside)


def test_the_whole_grid_has_the_averages_within_and_across_in_it() -> None:
    whole = starred(MATRIX, LANGUAGES, ("en", "de"))["*-*"]
    within, across = within_across.within(MATRIX).mean(), within_across.across(MATRIX).mean()
    assert whole == pytest.approx((within + 2 * across) / 3)


@pytest.mark.parametrize("unseen_only", [False, True])
@pytest.mark.parametrize("groups", [None, np.arange(30) // 3])
def test_pairs_against_a_loop_over_resamples(unseen_only: bool, groups) -> None:
    grids = {"tuned": right(seed=6), "baseline": right(seed=7)}
    table = mixed_pairs.pair_table(
        grids, LANGUAGES, ("de", "sw"), groups, unseen_only=unseen_only, **FEW
    )
    assert set(table["pair"]) == {"de-sw"}
    samples = {name: [own, *resampled(own, groups)] for name, own in grids.items()}
    averages = {
        name: [starred(each, LANGUAGES, ("de", "sw"), unseen_only=unseen_only) for each in own]
        for name, own in samples.items()
    }
    for name, row in itertools.product(grids, mixed_pairs.PAIRS_ROWS):
        found = of(table, condition=name, row=row).iloc[0]
        own = [each[row] for each in averages[name]]
        np.testing.assert_allclose(found[ENDS].to_list(), [own[0], *percentiles(own[1:])])
        gain = np.subtract([each[row] for each in averages["tuned"]], own)
        np.testing.assert_allclose(
            found[["gain", "gain_low", "gain_high"]].to_list(),
            [gain[0], *percentiles(list(gain[1:]))],
            atol=1e-12,
        )
    n = of(table, condition="tuned").set_index("row")["n_cells"].to_dict()
    star = 1 if unseen_only else 3
    assert n == {"l1-l2": 1, "l2-l1": 1, "*-l2": star, "l1-*": star, "*-*": star**2}


def test_pairs_of_one_model_have_no_gain() -> None:
    table = mixed_pairs.pair_table({"tuned": right()}, LANGUAGES, ("en", "de"), **FEW)
    assert list(table.columns) == ["pair", "row", "condition", "n_cells", *ENDS]
    assert tuple(table["row"]) == mixed_pairs.PAIRS_ROWS


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ((right(), LANGUAGES, ("en", "fr")), "fr of the pair en-fr is not in the grid"),
        ((right(), LANGUAGES, ("en", "en")), "the pair en-en is one language twice"),
        ((right(n_languages=2), LANGUAGES[:2], ("en", "de")), "no language other than en and de"),
        ((right(), LANGUAGES[:2], ("en", "de")), r"\(2, 2, examples\) is needed"),
        ((100 * right(), LANGUAGES, ("en", "de")), "a are between 0 and 100"),
    ],
)
def test_pairs_that_cannot_be_averaged_are_refused(call, message: str) -> None:
    scores, languages, pair = call
    unseen = message.startswith("no language")
    with pytest.raises(MixingError, match=message):
        mixed_pairs.pair_table({"a": scores}, languages, pair, unseen_only=unseen)


def test_pairs_are_of_models_on_the_same_examples() -> None:
    with pytest.raises(MixingError, match="there is no model to average"):
        mixed_pairs.pair_table({}, LANGUAGES, ("en", "de"))
    with pytest.raises(MixingError, match=r"shapes \(3, 3, 29\), \(3, 3, 30\) of a, b differ"):
        mixed_pairs.pair_table({"a": right(), "b": right(29)}, LANGUAGES, ("en", "de"))


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
        st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 384)), min_size=2, max_size=6
    ),
    st.integers(1, 3),
)
def test_tails_are_the_mean_over_all_ways_to_break_ties(pairs: list, k: int) -> None:
    score, distance = np.array(pairs).T
    k = min(k, len(score) // 2)
    found = answer_tails.tails(score, distance, k / len(score), n_resamples=1).table
    np.testing.assert_allclose(
        found["distance"], tail_by_enumeration(score, distance, k), rtol=1e-9, atol=1e-9
    )


def test_tails_of_a_worked_example() -> None:
    score = np.array([1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0, 0, 0.2])
    distance = np.array([1.0, 2, 6, 9, 9, 9, 9, 30, 10, 50])
    found = answer_tails.tails(score, distance, 0.2)
    # two of the three that tie at 1, whichever: 3 on average; the two at 0: 20
    assert found.table["group"].tolist() == ["easiest", "hardest"]
    np.testing.assert_allclose(found.table["distance"], [3, 20])
    np.testing.assert_allclose(found.table["score"], [1, 0])
    assert found.ratio == pytest.approx(20 / 3)
    # three: the border is at 0.2
    np.testing.assert_allclose(answer_tails.tails(score, distance, 0.3).table["distance"], [3, 30])
    # two and a half: the third counts half
    np.testing.assert_allclose(
        answer_tails.tails(score, distance, 0.25).table["distance"], [3, (40 + 25) / 2.5]
    )


@given(st.integers(0, 10**6))
def test_tails_do_not_depend_on_the_order_of_the_examples(seed: int) -> None:
    rng = np.random.default_rng(seed)
    score, distance = rng.integers(0, 4, 20) / 3, rng.random(20)
    order = rng.permutation(20)
    one = answer_tails.tails(score, distance, n_resamples=1)
    other = answer_tails.tails(score[order], distance[order], n_resamples=1)
    np.testing.assert_allclose(one.table["distance"], other.table["distance"])


@pytest.mark.parametrize("groups", [None, np.arange(30) // 3, np.arange(30) % 4])
def test_tails_against_a_loop_over_resamples(groups) -> None:
    rng = np.random.default_rng(0)
    score, distance = rng.integers(0, 4, 30) / 3, 1 + rng.random(30)
    found = answer_tails.tails(score, distance, 0.2, groups, **FEW)
    samples = [
        answer_tails.tails(*sample, 0.2, n_resamples=1)
        for sample in resampled(np.stack([score, distance]), groups)
    ]
    low, high = percentiles([sample.table["distance"] for sample in samples])
    np.testing.assert_allclose(found.table["low"], low)
    np.testing.assert_allclose(found.table["high"], high)
    ratios = [sample.ratio for sample in samples]
    expected = np.quantile(ratios, [0.025, 0.975], method="nearest")
    np.testing.assert_allclose([found.low, found.high], expected)


def test_scores_that_differ_by_rounding_tie() -> None:
    score = np.array([0.1 + 0.2, 0.3, 0, 0])
    found = answer_tails.tails(score, np.array([1.0, 3, 0, 0]), 0.25)
    assert found.table["distance"][0] == pytest.approx(2)


def test_a_ratio_over_nothing_is_infinite() -> None:
    score = np.arange(10) / 10
    found = answer_tails.tails(score, np.where(score < 0.5, 4.0, 0), 0.1)
    assert found.ratio == found.high == np.inf
    found = answer_tails.tails(score, np.zeros(10), 0.1)
    assert np.isnan([found.ratio, found.low, found.high]).all()


def test_tails_of_what_has_nothing_to_do_with_the_score_are_alike() -> None:
    rng = np.random.default_rng(3)
    covered = []
    for seed in range(150):
        score, distance = rng.integers(0, 3, 120) / 2, rng.gamma(2, 10, 120)
        found = answer_tails.tails(score, distance, n_resamples=300, seed=seed)
        covered.append(found.low <= 1 <= found.high)
    assert 0.88 <= np.mean(covered) <= 0.99


@pytest.mark.parametrize(
    ("score", "distance", "options", "message"),
    [
        ([1, 0], [1.0], {}, r"scores have shape \(2,\) and distances \(1,\)"),
        ([[1, 0]], [[1, 0]], {}, r"scores have shape \(1, 2\)"),
        ([1, np.nan], [1, 1], {}, "the score of example 1 is NaN"),
        ([1, 0], [np.nan, 1], {}, "the distance of example 0 is NaN"),
        ([1, 0], [1, -1], {}, "the distance of example 1 is below 0"),
        ([1, 0], [1, 1], {"share": 0}, "share of a tail is 0: it is above 0"),
        ([1, 0], [1, 1], {"share": 0.6}, "share of a tail is 0.6"),
        ([1], [1], {}, "two examples that are independent"),
        ([], [], {}, "two examples that are independent"),
        ([1, 0], [1, 1], {"groups": [1, 1]}, "in 1 groups"),
    ],
)
def test_tails_that_there_are_not(score, distance, options: dict, message: str) -> None:
    with pytest.raises(MixingError, match=message):
        answer_tails.tails(score, distance, **options)


def test_tables_are_shown_in_points_and_in_order() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random((3, 3, 20)).round(2)
    tables = [
        within_across.summary(scores, ("en", "de", "ru")).assign(model=name) for name in ("z", "a")
    ]
    table = pd.concat(tables)
    found = reading.by_setting(table, "model")
    assert found.index.tolist() == ["z", "a"]
    assert found.columns.tolist() == ["within", "across", "drop"]
    row = tables[0].query("language == 'mean' and setting == 'within'").iloc[0]
    assert found.loc["z", "within"] == (
        f"{100 * row.score:.1f} ({100 * row.low:.1f} to {100 * row.high:.1f})"
    )
    german = reading.by_setting(table, "model", language="de")
    assert german.loc["z", "within"].startswith(f"{100 * scores[1, 1].mean():.1f} (")
    gains = pd.DataFrame({"gain": [-0.0001], "gain_low": [-0.1], "gain_high": [0.05]})
    assert reading.as_points(gains, "gain").tolist() == ["0.0 (-10.0 to 5.0)"]
    own = gains.rename(columns=lambda name: name.replace("gain_", "").replace("gain", "score"))
    assert reading.listed(own.set_axis(["a"])) == "a 0.0 (-10.0 to 5.0)"
    with pytest.raises(within_across.MixingError, match="no language 'fi'"):
        reading.by_setting(table, "model", language="fi")
