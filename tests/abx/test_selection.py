"""Checkpoints and sources chosen by a score, against literal loops and cases by hand."""

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import abx_5_probing
import abx_6_transfer
from shared import pair_regressions

STEPS = (5000, 10000, 50000, 1500000)


def history(n: int, seed: int, digits: int = 3) -> pd.DataFrame:
    """One row per language and checkpoint; few digits make ties."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        itertools.product([f"l{i:02}" for i in range(n)], STEPS), columns=["language", "checkpoint"]
    )
    table[["LD", "accuracy"]] = rng.random((len(table), 2)).round(digits)
    return table.sample(frac=1, random_state=seed)


def literal_checkpoints(table: pd.DataFrame) -> dict[str, dict[str, tuple]]:
    """Rule → language → (checkpoint, gap), one language at a time."""
    chosen = {rule: {} for rule in ("selected", "final", "constant", "random")}
    accuracy = table.set_index(["language", "checkpoint"])["accuracy"].to_dict()
    score = table.set_index(["language", "checkpoint"])["LD"].to_dict()
    languages = sorted(set(table["language"]))
    for language in languages:
        own = [accuracy[language, step] for step in STEPS]
        selected = min(STEPS, key=lambda step: (score[language, step], step))
        others = [other for other in languages if other != language]
        constant = max(
            STEPS, key=lambda step: (round(sum(accuracy[o, step] for o in others), 9), -step)
        )
        for rule, step in (("selected", selected), ("final", STEPS[-1]), ("constant", constant)):
            chosen[rule][language] = (step, max(own) - accuracy[language, step])
        chosen["random"][language] = (None, sum(max(own) - a for a in own) / len(own))
    return chosen


@pytest.mark.parametrize("digits", [3, 1])
def test_checkpoints_are_the_literal_ones(digits: int) -> None:
    table = history(9, 1, digits)
    expected = literal_checkpoints(table)
    found = abx_5_probing.choose_checkpoints(table)
    assert len(found.table) == 4 * 9
    for row in found.table.itertuples():
        step, gap = expected[row.rule][row.language]
        assert pd.isna(row.checkpoint) if step is None else row.checkpoint == step
        assert row.gap == pytest.approx(gap)
        assert row.delta == pytest.approx(expected["final"][row.language][1] - gap)
    assert found.summary[["rule", "against"]].to_numpy().tolist() == [
        ["selected", "final"], ["constant", "final"], ["random", "final"],
        ["selected", "constant"], ["selected", "random"],
    ]  # fmt: skip
    for row in found.summary.itertuples():
        others = expected[row.against]
        deltas = [others[code][1] - gap for code, (_, gap) in expected[row.rule].items()]
        deltas = np.round(deltas, 9)
        counts = ((deltas > 0).sum(), (deltas == 0).sum(), (deltas < 0).sum())
        assert (row.closer, row.equal, row.further) == counts
        assert (row.mean, row.sd) == pytest.approx((np.mean(deltas), np.std(deltas, ddof=1)))
        found_by_test = (row.p_value, row.centre, row.low, row.high)
        assert found_by_test == pytest.approx(pair_regressions.wilcoxon(deltas))


@pytest.mark.parametrize(
    ("kept", "says"),
    [
        ("not (language == 'l02' and checkpoint == 50000)", "each language at every checkpoint"),
        ("language == 'l00'", "1 languages at 4 checkpoints"),
        ("checkpoint == 5000", "6 languages at 1 checkpoints"),
    ],
)
def test_histories_that_cannot_be_are_named(kept: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        abx_5_probing.choose_checkpoints(history(6, 0).query(kept))


def transfer(n: int, seed: int, digits: int = 3) -> pd.DataFrame:
    """All ordered pairs of n languages."""
    rng = np.random.default_rng(seed)
    pairs = itertools.permutations([f"l{i:02}" for i in range(n)], 2)
    table = pd.DataFrame(pairs, columns=["source", "target"])
    table[["LD", "accuracy"]] = rng.random((len(table), 2)).round(digits)
    return table.sample(frac=1, random_state=seed)


def literal_outcomes(table: pd.DataFrame, target: str, source: str) -> dict[str, float]:
    """What one source brings one target."""
    own = table[table["target"] == target].set_index("source")["accuracy"].to_dict()
    others = [accuracy for name, accuracy in own.items() if name != source]
    rank = 1 + sum(accuracy > own[source] for accuracy in others)
    wins = sum(1 if own[source] > a else 0.5 if own[source] == a else 0 for a in others)
    return {"hit": float(rank == 1), "top": float(rank <= 3), "win_rate": wins / len(others)}


def literal_selected(table: pd.DataFrame, target: str, sign: int) -> list[str]:
    own = table[table["target"] == target].set_index("source")["LD"].to_dict()
    return sorted(s for s in own if sign * own[s] == min(sign * v for v in own.values()))


def literal_constant(table: pd.DataFrame, target: str) -> list[str]:
    """The sources of the target that do best for the others, against each other target's mean."""
    means = {}
    for source in table.loc[table["target"] == target, "source"]:
        excess = []
        for row in table.itertuples():
            if row.source == source and row.target != target:
                of_target = table.loc[table["target"] == row.target, "accuracy"]
                excess.append(row.accuracy - of_target.mean())
        means[source] = round(sum(excess) / len(excess), 9)
    return sorted(s for s in means if means[s] == max(means.values()))


def literal_chance(table: pd.DataFrame, measure: str, total: float) -> float:
    """How often random sources do as well, from the counts of all ways to choose them."""
    ways = {0.0: 1.0}
    for target in sorted(set(table["target"])):
        names = table.loc[table["target"] == target, "source"]
        values = [literal_outcomes(table, target, source)[measure] for source in names]
        after = {}
        for (reached, share), value in itertools.product(ways.items(), values):
            key = round(reached + value, 7)
            after[key] = after.get(key, 0) + share / len(values)
        ways = after
    return sum(share for reached, share in ways.items() if reached >= total - 1e-5)


@pytest.mark.parametrize(
    ("table", "lowest"),
    [(transfer(6, 1), True), (transfer(5, 2, 1), True), (transfer(5, 2, 1), False)],  # 1: ties
)
def test_sources_are_the_literal_ones(table: pd.DataFrame, lowest: bool) -> None:
    found = abx_6_transfer.choose_sources(table, lowest=lowest, n_permutations=9)
    for row in found.table.itertuples():
        candidates = sorted(table.loc[table["target"] == row.target, "source"])
        chosen = {
            "selected": literal_selected(table, row.target, 1 if lowest else -1),
            "constant": literal_constant(table, row.target),
            "random": candidates,
        }[row.rule]
        assert pd.isna(row.source) if row.rule == "random" else row.source == "+".join(chosen)
        each = pd.DataFrame([literal_outcomes(table, row.target, source) for source in chosen])
        for column in each:
            assert getattr(row, column) == pytest.approx(each[column].mean())
    random = found.table[found.table["rule"] == "random"]
    for row in found.summary.itertuples():
        values = found.table.loc[found.table["rule"] == row.rule, row.measure]
        assert row.mean == pytest.approx(values.mean())
        assert row.chance == pytest.approx(random[row.measure].mean())
        assert np.isnan(row.p_permutation) == (row.rule != "selected")
        if row.rule != "random":
            assert row.p_value == pytest.approx(literal_chance(table, row.measure, values.sum()))


def test_chance_levels_and_the_binomial_test() -> None:
    found = abx_6_transfer.choose_sources(transfer(18, 5, 9), n_permutations=9)
    rows = found.summary.set_index(["rule", "measure"])
    chance = rows.loc["random", "mean"]
    assert chance.to_dict() == pytest.approx({"hit": 1 / 17, "top": 3 / 17, "win_rate": 0.5})
    selected = found.table[found.table["rule"] == "selected"]
    for measure, share in (("hit", 1 / 17), ("top", 3 / 17)):
        test = stats.binomtest(int(selected[measure].sum()), 18, share, alternative="greater")
        assert rows.loc[("selected", measure), "p_value"] == pytest.approx(test.pvalue)
    row, rates = rows.loc[("selected", "win_rate")], selected["win_rate"]
    width = stats.t.ppf(0.975, 17) * rates.std() / np.sqrt(18)
    assert (row["low"], row["high"]) == pytest.approx((row["mean"] - width, row["mean"] + width))


def test_permuting_languages_is_the_literal_permutation() -> None:
    table = transfer(5, 8, 1)
    score = table.set_index(["source", "target"])["LD"].to_dict()
    names, totals = sorted(set(table["source"])), []
    for order in itertools.permutations(names):
        new = dict(zip(names, order, strict=True))
        pairs = zip(table["source"], table["target"], strict=True)
        moved = table.assign(LD=[score[new[a], new[b]] for a, b in pairs])
        summary = abx_6_transfer.choose_sources(moved, n_permutations=1).summary
        totals.append(summary.loc[summary["rule"] == "selected", "mean"].to_numpy())
    expected = (np.array(totals) >= totals[0] - 1e-9).mean(axis=0)
    summary = abx_6_transfer.choose_sources(table, seed=1).summary
    found = summary.loc[summary["rule"] == "selected", "p_permutation"]
    np.testing.assert_allclose(found, expected, atol=0.015)


@pytest.mark.parametrize(
    ("make", "options", "says"),
    [
        (lambda t: pd.concat([t, t.head(1)]), {}, "duplicate"),
        (lambda t: t[t["target"] == "l00"], {}, "three languages or more"),
        (lambda t: t.iloc[1:], {}, "each a source of every other"),
        (lambda t: t, {"top": 0}, "must be 1 or more: 0, 100"),
        (lambda t: t, {"n_random": 0}, "must be 1 or more: 3, 0"),
    ],
)
def test_transfer_tables_that_cannot_be_are_named(make, options: dict, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        abx_6_transfer.choose_sources(make(transfer(5, 0)), **options)


def literal_wilcoxon(differences: Sequence[float]) -> float:
    """Two-sided p-value by all ways to sign the ranks."""
    kept = np.array([d for d in differences if d != 0])
    ranks = stats.rankdata(np.abs(kept))
    sums = np.array([np.dot(ranks, signs) for signs in itertools.product([0, 1], repeat=len(kept))])
    observed = ranks[kept > 0].sum()
    return min(1, 2 * min((sums <= observed).mean(), (sums >= observed).mean()))


@pytest.mark.parametrize(
    "differences",
    [
        [6, 8, 14, 16, 23, 24, 28, 29, 41, -48],
        [1, 1, -1, 2, 2, 3, 0, 0, 5],  # ties and zeros
        [0.3 - 0.2, 0.1, -0.1, 0.7 - 0.6, 0.4],  # ties but for rounding
        [-1, -2, -3],
    ],
)
def test_wilcoxon_counts_all_signs(differences: list) -> None:
    p_value, centre, *_ = pair_regressions.wilcoxon(differences)
    assert p_value == pytest.approx(literal_wilcoxon(np.round(differences, 12)))
    walsh = [(a + b) / 2 for i, a in enumerate(differences) for b in differences[i:]]
    assert centre == pytest.approx(np.median(walsh))


def test_wilcoxon_is_scipys_without_ties_and_inverts_into_its_interval() -> None:
    differences = np.random.default_rng(0).normal(0.3, 1, size=36)
    p_value, centre, low, high = pair_regressions.wilcoxon(differences)
    expected = stats.wilcoxon(differences, method="exact")
    assert p_value == pytest.approx(expected.pvalue)
    assert low < centre < high
    for end, outwards in ((low, -1), (high, 1)):
        assert stats.wilcoxon(differences - end - outwards * 1e-9, method="exact").pvalue <= 0.05
        assert stats.wilcoxon(differences - end + outwards * 1e-9, method="exact").pvalue > 0.05


def test_wilcoxon_at_its_limits() -> None:
    assert pair_regressions.wilcoxon([0.0] * 7)[:2] == (1, 0)
    assert pair_regressions.wilcoxon([1.0, 2.0, 3.0]) == (0.25, 2, -np.inf, np.inf)
    for bad in ([], [1.0, np.nan]):
        with pytest.raises(ValueError, match="needs numbers"):
            pair_regressions.wilcoxon(bad)
