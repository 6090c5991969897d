"""Checkpoints and sources chosen by a score, against literal loops and cases by hand."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import abx_3_outcomes
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


def literal_checkpoints(table: pd.DataFrame) -> dict[str, tuple]:
    """Language → the step of lowest LD, its gap to the best, that of the last step."""
    accuracy = table.set_index(["language", "checkpoint"])["accuracy"].to_dict()
    score = table.set_index(["language", "checkpoint"])["LD"].to_dict()
    chosen = {}
    for language in sorted(set(table["language"])):
        best = max(accuracy[language, step] for step in STEPS)
        selected = min(STEPS, key=lambda step: (score[language, step], step))
        gaps = [best - accuracy[language, step] for step in (selected, STEPS[-1])]
        chosen[language] = (selected, *gaps)
    return chosen


@pytest.mark.parametrize("digits", [3, 1])
def test_checkpoints_are_the_literal_ones(digits: int) -> None:
    table = history(9, 1, digits)
    expected = literal_checkpoints(table)
    found = abx_3_outcomes.choose_checkpoints(table)
    assert found.index.tolist() == list(expected)
    for language, (step, gap, last) in expected.items():
        row = found.loc[language]
        assert row["chosen"] == step
        assert (row["gap"], row["delta"]) == pytest.approx((gap, last - gap))


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


@pytest.mark.parametrize(
    ("table", "lowest"),
    [(transfer(6, 1), True), (transfer(5, 2, 1), True), (transfer(5, 2, 1), False)],  # 1: ties
)
def test_sources_are_the_literal_ones(table: pd.DataFrame, lowest: bool) -> None:
    found = abx_3_outcomes.choose_sources(table, lowest=lowest)
    for row in found.table.itertuples():
        candidates = sorted(table.loc[table["target"] == row.target, "source"])
        chosen = {
            "selected": literal_selected(table, row.target, 1 if lowest else -1),
            "constant": literal_constant(table, row.target),
            "random": candidates,
        }[row.rule]
        each = pd.DataFrame([literal_outcomes(table, row.target, source) for source in chosen])
        for column in each:
            assert getattr(row, column) == pytest.approx(each[column].mean())
    for row in found.summary.itertuples():
        values = found.table.loc[found.table["rule"] == row.rule, row.measure]
        assert row.mean == pytest.approx(values.mean())


def test_an_interval_over_targets_is_students() -> None:
    found = abx_3_outcomes.choose_sources(transfer(18, 5, 9))
    rows = found.summary.set_index(["rule", "measure"])
    rates = found.table.loc[found.table["rule"] == "selected", "win_rate"]
    width = stats.t.ppf(0.975, 17) * rates.std() / np.sqrt(18)
    row = rows.loc[("selected", "win_rate")]
    assert (row["low"], row["high"]) == pytest.approx((row["mean"] - width, row["mean"] + width))


def test_rules_are_compared_target_by_target() -> None:
    rows = transfer(6, 3).assign(MD=0.5, kinship=1)
    rows["bag LD"] = rows["LD"]
    chosen = abx_3_outcomes.chosen_sources({("m", "POS"): rows}, ["POS"])
    found = abx_3_outcomes.compared_rules(chosen).loc[("POS", "m")]
    assert set(found.index) == {"constant", "MD", "bag LD", "kinship"}
    assert found.loc["bag LD", ["mean", "equal"]].tolist() == [0, 6]
    rates = chosen.table.pivot(index="target", columns="rule", values="win_rate")
    assert found.loc["MD", "mean"] == pytest.approx((rates["LD"] - rates["MD"]).mean())


def test_an_improvement_is_a_mean_with_students_interval() -> None:
    differences = np.random.default_rng(0).normal(0.3, 1, size=18)
    found = pair_regressions.improvement(np.array([*differences, 0.0, 0.0]))
    test = stats.ttest_1samp([*differences, 0, 0], 0)
    assert found["p_value"] == pytest.approx(test.pvalue)
    assert (found["low"], found["high"]) == pytest.approx(tuple(test.confidence_interval()))
    assert (found["closer"], found["equal"]) == ((differences > 0).sum(), 2)
    assert pair_regressions.improvement(np.zeros(7))["p_value"] == 1
