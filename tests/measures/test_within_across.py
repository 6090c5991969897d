"""Grids of two languages: averages by hand, intervals against matrices, and what is no grid."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import mixing_2_paraphrase
import mixing_3_controls
from mixing_2_paraphrase import tails
from printed import mixing_claims
from shared import mixing_tables
from tests.tables import of
from xlx.experiment.grids import Grid
from xlx.measures import information, mixing
from xlx.measures.mixing import MixingError
from xlx.text.examples import Examples

LANGUAGES = ("en", "de", "sw")
ENDS = ["score", "low", "high"]
THREES = np.arange(30) // 3
LABELS = np.array([0] * 8 + [1] * 12 + [2] * 10)
MERGED = {"entailment": [0], "not-entailment": [1, 2]}
GROUPS = [None, THREES, [7] * 11 + [2] * 4 + [-1] * 15]


def right(n: int = 30, seed: int = 0, n_languages: int = 3) -> np.ndarray:
    return (np.random.default_rng(seed).random((n_languages, n_languages, n)) < 0.7).astype(float)


def half_by_hand(
    each: np.ndarray, groups: Sequence[int] | None = None, other: np.ndarray | None = None
) -> float:
    """Half the width of the interval of a mean over seeds and examples of ``(S, n)``.

    CR2 as Bell and McCaffrey (2002) have it for least squares, here on a constant: with the matrix
    that leaves residuals, and a root of each group's part of it.
    """
    n = each.shape[1]
    names = np.arange(n) if groups is None else np.asarray(groups)
    leaves = np.eye(n) - 1 / n
    weights = np.zeros((len(set(names)), n))  # what a group makes of the residuals
    for row, name in zip(weights, sorted(set(names)), strict=True):
        (inside,) = np.nonzero(names == name)
        root = np.linalg.cholesky(leaves[np.ix_(inside, inside)])
        scale, axes = np.linalg.eigh(root @ root.T)
        row[inside] = (axes @ np.diag(scale**-0.5) @ axes.T).sum(axis=0) / n
    gram = weights @ leaves @ leaves @ weights.T
    freedom = np.trace(gram) ** 2 / (gram**2).sum()
    models, between = [], 0.0
    for values in (each,) if other is None else (each, other):
        apart = np.array([weights @ (row - row.mean()) for row in values])
        models.append(apart.mean(axis=0))
        if (n_seeds := len(values)) > 1:
            of_seeds = np.var([row.mean() for row in values], ddof=1) / n_seeds
            chance = ((apart - apart.mean(axis=0)) ** 2).sum() / n_seeds / (n_seeds - 1)
            between += stats.t.ppf(0.975, n_seeds - 1) ** 2 * max(of_seeds - chance, 0)
    apart = models[0] - (models[1] if len(models) == 2 else 0)
    return np.sqrt(stats.t.ppf(0.975, freedom) ** 2 * (apart**2).sum() + between)


def assert_interval(row: pd.Series, score: float, half: float) -> None:
    np.testing.assert_allclose([row["low"], row["high"]], [score - half, score + half], atol=1e-9)


def assert_wilson(row: pd.Series, score: float, half: float) -> None:
    """Its ends are the shares that are as far from the score as they may be."""
    for end, sign in ((row["low"], -1), (row["high"], 1)):
        may_be = half * np.sqrt(end * (1 - end) / (score * (1 - score)))
        assert end == pytest.approx(score + sign * may_be, abs=1e-9)


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


def setting_values(each: np.ndarray, setting: str, which: int | None) -> np.ndarray:
    """What is averaged over seeds and examples: ``(S, n)``, of a language or of all."""
    if which is None:
        return np.mean([setting_values(each, setting, k) for k in range(each.shape[1])], axis=0)
    if setting == "drop":
        return setting_values(each, "within", which) - setting_values(each, "across", which)
    grids = np.moveaxis(each, -1, 1)  # (S, n, L, L)
    inside = setting == "within"
    return np.array(
        [
            [grid[which, which] if inside else across_by_hand(grid, which) for grid in rows]
            for rows in grids
        ]
    )


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("n_seeds", [1, 3])
def test_cells_and_margins_against_matrices(groups, n_seeds: int) -> None:
    each = np.stack([right(seed=k) for k in range(n_seeds)])
    table = mixing.cells(each, LANGUAGES, groups, margins=True)
    assert list(table.columns) == ["first", "second", *ENDS]
    wide, codes = each, [*LANGUAGES, "all"]
    for axis in (1, 2):
        wide = np.concatenate([wide, wide.mean(axis=axis, keepdims=True)], axis=axis)
    for i, j in np.ndindex(4, 4):
        row, values = of(table, first=codes[i], second=codes[j]).iloc[0], wide[:, i, j]
        assert row["score"] == pytest.approx(values.mean())
        assert_wilson(row, values.mean(), half_by_hand(values, groups))
    inside = table[(table["first"] != "all") & (table["second"] != "all")]
    plain = mixing.cells(each, LANGUAGES, groups)
    pd.testing.assert_frame_equal(plain, inside.reset_index(drop=True))


@pytest.mark.parametrize("groups", GROUPS)
@pytest.mark.parametrize("n_seeds", [1, 3])
def test_summary_against_matrices(groups, n_seeds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mixing, "FEW", 0)
    each = np.stack([right(seed=k) for k in range(1, 1 + n_seeds)])
    table = mixing.summary(each, LANGUAGES, groups)
    assert list(table.columns) == ["language", "setting", *ENDS]
    assert list(dict.fromkeys(table["language"])) == [*LANGUAGES, "mean"]
    for _, row in table.iterrows():
        which = None if row["language"] == "mean" else LANGUAGES.index(row["language"])
        values = setting_values(each, row["setting"], which)
        assert row["score"] == pytest.approx(values.mean(), abs=1e-12)
        check = assert_interval if row["setting"] == "drop" else assert_wilson
        check(row, values.mean(), half_by_hand(values, groups))


def test_a_drop_of_few_is_put_together_of_two_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Zou and Donner (2008), with the correlation that the three variances say."""
    monkeypatch.setattr(mixing, "FEW", 11)
    each = np.stack([right(seed=k) for k in range(3)])
    table = mixing.summary(each, LANGUAGES, THREES).set_index(["language", "setting"])
    for k, code in enumerate(LANGUAGES):
        within, across, drop = (table.loc[code, x] for x in mixing.SETTINGS)
        inside, outside, less = (
            half_by_hand(setting_values(each, x, k), THREES) for x in mixing.SETTINGS
        )
        r = np.clip((inside**2 + outside**2 - less**2) / (2 * inside * outside), -1, 1)
        for end, near, far in (("low", "low", "high"), ("high", "high", "low")):
            a, b = abs(within[near] - within["score"]), abs(across[far] - across["score"])
            expected = np.sqrt(a**2 + b**2 - 2 * r * a * b)
            assert abs(drop[end] - drop["score"]) == pytest.approx(expected)


def test_a_difference_is_paired_and_agrees_with_matrices_and_with_summary() -> None:
    groups = np.arange(30) // 5
    more, less = (np.stack([right(seed=k + 2 * i) for k in range(2 + i)]) for i in range(2))
    table = mixing.paired_difference(more, less, LANGUAGES, groups)
    first, second = (mixing.summary(x, LANGUAGES, groups) for x in (more, less))
    np.testing.assert_allclose(table["score"], first["score"] - second["score"], atol=1e-12)
    for setting in mixing.SETTINGS:
        row = of(table, language="de", setting=setting).iloc[0]
        values = [setting_values(x, setting, 1) for x in (more, less)]
        assert_interval(row, row["score"], half_by_hand(values[0], groups, values[1]))
    swapped = mixing.paired_difference(less, more, LANGUAGES, groups)
    np.testing.assert_allclose(swapped["low"], -table["high"], atol=1e-12)


def test_nothing_right_is_not_certain() -> None:
    table = mixing.summary(np.zeros((3, 3, 40)), LANGUAGES)
    t2 = stats.t.ppf(0.975, 39) ** 2
    within, drop = of(table, setting="within"), of(table, setting="drop")
    np.testing.assert_allclose(within["low"], 0, atol=1e-12)
    np.testing.assert_allclose(within["high"], t2 / (40 + t2))
    assert drop["low"].max() < -0.05 < 0.05 < drop["high"].min()


def test_a_moved_threshold_changes_no_auc() -> None:
    rng, labels = np.random.default_rng(4), np.repeat([0, 1, 2], 20)
    logits = rng.standard_normal((2, 3, 60, 3)) + 2 * np.eye(3)[labels]
    moved = logits + np.array([1.5, 0.0, 0.0]) * rng.random((2, 3, 1, 1))
    evidence = [information.evidence(x) for x in (logits, moved)]
    one, other = (mixing.auc_values(x, labels == 0) for x in evidence)
    np.testing.assert_allclose(one, other, atol=1e-12)
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


@given(
    st.lists(st.integers(0, 4), min_size=8, max_size=20).filter(lambda x: len(set(x)) > 1),
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(0, 10**6),
)
def test_averages_against_matrices(groups: list, n_seeds: int, n_other: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    each, other = (rng.standard_normal((k, 2, len(groups))) for k in (n_seeds, n_other))
    other = other if n_other else None
    for k, (_, row) in enumerate(mixing.averages(each, groups, other).iterrows()):
        less = None if other is None else other[:, k]
        score = each[:, k].mean() - (0 if less is None else less.mean())
        assert row["score"] == pytest.approx(score)
        assert_interval(row, score, half_by_hand(each[:, k], groups, less))


def test_values_of_a_ratio_have_its_mean() -> None:
    ratio = mixing_tables.ratio_values(np.array([1.0, 0.0, 2.0]), np.array([1.0, 1.0, 2.0]))
    assert ratio.mean() == pytest.approx(3 / 4)


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        (right()[..., 0], {}, r"scores have shape \(3, 3\): \(3, 3, examples\) is needed"),
        (right(), {"languages": ["en", "de"]}, r"\(2, 2, examples\) is needed for 2 languages"),
        (right(), {"languages": ["en", "de", "de"]}, "named twice: en, de, de"),
        (right(1), {}, "two examples that are independent, and there are 1 in 1 groups"),
        (right(), {"groups": [0, 1]}, r"groups have shape \(2,\) and there are 30 examples"),
        (100 * right(), {}, r"scores are between 0 and 100: give them as shares in \[0, 1\]"),
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
def test_labels_against_matrices(groups, monkeypatch: pytest.MonkeyPatch) -> None:
    """A score is of the examples with the label alone; a contribution of all, the others zero."""
    monkeypatch.setattr(mixing, "FEW", 0)
    each = np.stack([right(seed=k) for k in range(4, 7)])
    table = mixing.by_label(each, LABELS, MERGED, LANGUAGES, groups)
    has = np.isin(LABELS, [1, 2])
    names = np.arange(30) if groups is None else groups
    for setting, which in itertools.product(mixing.SETTINGS, range(3)):
        row = of(table, label="not-entailment", language=LANGUAGES[which], setting=setting).iloc[0]
        values = setting_values(each, setting, which)
        check = assert_interval if setting == "drop" else assert_wilson
        check(row, values[:, has].mean(), half_by_hand(values[:, has], names[has]))
        part = row[["contribution_low", "contribution_high"]].set_axis(["low", "high"])
        check(part, (values * has).mean(), half_by_hand(values * has, names))
        assert row["contribution"] == pytest.approx((values * has).mean())
    np.testing.assert_allclose(table["contribution"], table["share"] * table["score"])
    assert dict(zip(table["label"], table["n"], strict=True)) == {
        "entailment": 8,
        "not-entailment": 22,
    }


@pytest.mark.parametrize(
    ("labels", "of_labels", "groups", "message"),
    [
        (LABELS, MERGED | {"x": [3]}, None, "label 'x' has examples of 0 groups"),
        (LABELS, {"e": [0], "n": [1]}, None, "label 2 is not in exactly one of e, n"),
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


@given(st.integers(3, 7), st.integers(0, 10**6), st.booleans())
def test_starred_averages_against_a_loop(n: int, seed: int, unseen_only: bool) -> None:
    rng = np.random.default_rng(seed)
    codes = [f"l{i}" for i in range(n)]
    scores = rng.random((n, n))
    one, two = (codes[i] for i in rng.choice(n, 2, replace=False))
    runs = [code for code in codes if not unseen_only or code not in (one, two)]
    sides = {"l1": [one], "l2": [two], "*": runs}
    grid = dict(zip(itertools.product(codes, codes), scores.ravel(), strict=True))
    found = mixing_3_controls.pair_cells(codes, (one, two), unseen_only=unseen_only)
    for row in mixing_claims.PAIRS_ROWS:
        first, second = row.split("-")
        inside = [grid[cell] for cell in itertools.product(sides[first], sides[second])]
        assert scores[found[row]].mean() == pytest.approx(np.mean(inside))


@pytest.mark.parametrize(("unseen_only", "groups"), [(False, None), (True, THREES)])
def test_pairs_against_matrices(unseen_only: bool, groups) -> None:
    grids, pair = {"tuned": right(seed=6), "baseline": right(seed=7)}, ("de", "sw")
    how = {"unseen_only": unseen_only}
    table = mixing_3_controls.pair_table(grids, LANGUAGES, pair, groups, **how)
    assert set(table["pair"]) == {"de-sw"}
    inside = mixing_3_controls.pair_cells(LANGUAGES, pair, **how)
    for name, (row, mask) in itertools.product(grids, inside.items()):
        found = of(table, condition=name, row=row).iloc[0]
        tuned, own = (grids[x][mask].mean(axis=0)[None] for x in ("tuned", name))
        assert_interval(found, own.mean(), half_by_hand(own, groups))
        gain, half = tuned.mean() - own.mean(), half_by_hand(tuned - own, groups)
        ends = found[["gain", "gain_low", "gain_high"]].to_list()
        np.testing.assert_allclose(ends, [gain, gain - half, gain + half], atol=1e-9)
        sides = {(1, 1): "above", (-1, -1): "below"}
        told = sides.get((np.sign(gain - half), np.sign(gain + half)), "cannot be told")
        assert found["told"] == told
    star = 1 if unseen_only else 3
    n = [int(mask.sum()) for mask in inside.values()]
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
    easiest, hardest = tail_by_enumeration(score, distance + 1, k)
    assert tails(score, distance + 1, k / len(score))[0] == pytest.approx(hardest / easiest)


@pytest.mark.parametrize("share", [0.23, 0.27])
@pytest.mark.parametrize("groups", [None, np.arange(30) % 4])
def test_intervals_of_tails_follow_from_a_bit_more_of_each_example(groups, share: float) -> None:
    """Of a thousand copies of all examples, and one more of one, the ratio moves a little."""
    rng = np.random.default_rng(0)
    score, distance = rng.integers(0, 4, 30) / 3, 1 + rng.random(30)
    start, *ends = np.log(tails(score, distance, share, groups))
    many, moved = np.tile(np.arange(30), 1000), []
    for k in range(30):
        more = np.append(many, k)
        moved.append(np.log(tails(score[more], distance[more], share)[0]))
    half = half_by_hand((np.array(moved)[None] - start) * (len(many) + 1), groups)
    np.testing.assert_allclose(ends, [start - half, start + half], rtol=2e-3)


def test_a_ratio_over_nothing_is_infinite() -> None:
    score = np.arange(10) / 10
    ratio, *ends = tails(score, np.where(score < 0.5, 4.0, 0), 0.1)
    assert ratio == np.inf
    assert np.isnan(ends).all()
    assert np.isnan(tails(score, np.zeros(10), 0.1)).all()


def test_tails_of_examples_that_hang_together_are_refused() -> None:
    with pytest.raises(MixingError, match="in 1 groups"):
        tails([1, 0], [1, 1], groups=[1, 1])


def test_auc_of_settings_is_that_of_a_loop() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 40)
    logits = rng.normal(size=(2, 2, 40, 3)).round(1)
    logits[0, 0, :, 0] += 3 * (labels == 0)
    made = Grid("a", ("en", "de"), {"accuracy": np.zeros((2, 2, 40))}, np.arange(40), logits=logits)
    values = mixing_2_paraphrase.settings_of(mixing_2_paraphrase.label_aucs([made], labels, 0))
    table = mixing.averages(values, made.groups)
    evidence = logits[..., 0] - np.logaddexp(logits[..., 1], logits[..., 2])
    first, other = evidence[..., labels == 0, None], evidence[..., None, labels != 0]
    auc = ((first > other) + (first == other) / 2).mean(axis=(-2, -1))
    within, across = np.trace(auc) / 2, (auc[0, 1] + auc[1, 0]) / 2
    assert table["score"].tolist() == pytest.approx([within, across, within - across])


def test_one_negator_calls_what_one_sentence_denies_a_contradiction() -> None:
    classes = ("entailment", "neutral", "contradiction")
    texts = {
        "en": (("No dog runs", "A dog runs"), ("A dog runs", "It does not run")),
        "de": (("Kein Hund rennt", "Ein Hund rennt"), ("Ein Hund rennt", "Er rennt nicht")),
    }
    sets = {
        code: Examples(f"made {code}", code, first, second, np.array([2, 1]), classes, ("a", "b"))
        for code, (first, second) in texts.items()
    }
    data = mixing_tables.TaskData(sets["en"], sets["en"], sets)
    words = {"en": r"\b(no|not)\b", "de": r"\b(kein|nicht)\b"}
    grid = mixing_2_paraphrase.one_negated(data, words)
    assert (grid.predictions == 2).all()
    assert (grid.logits.argmax(axis=-1) == grid.predictions).all()
    sets["de"] = replace(sets["de"], first=sets["de"].first[1:] * 2)
    grid = mixing_2_paraphrase.one_negated(data, words)
    assert grid.predictions[0, 0].tolist() == grid.predictions[0, 1].tolist() == [2, 2]
    assert grid.predictions[1, 0].tolist() == grid.predictions[1, 1].tolist() == [1, 2]
