"""What a regression over pairs hangs on: a pair, a language, the levels of sources and targets."""

import numpy as np
import pandas as pd
import pytest

from xlx.abx import pair_regression
from xlx.core import statistics


def transfer(*, outlier: bool = True) -> pd.DataFrame:
    """Accuracy falls with LD within sources and targets; one pair lies far off, and is no better.

    Easy targets have high LD, which hides the slope.
    """
    rng = np.random.default_rng(0)
    names = [f"l{i}" for i in range(9)]
    source, target = (dict(zip(names, rng.normal(0, 0.05, 9), strict=True)) for _ in range(2))
    rows = []
    for i, one in enumerate(names):
        for j, other in enumerate(names):
            if one == other:
                continue
            own = rng.normal(0, 0.01)  # of the pair alone
            ld = 0.95 + 0.2 * target[other] + own
            md = rng.normal(0.6, 0.02)
            accuracy = 0.4 + source[one] + target[other] - 1.5 * own + rng.normal(0, 0.004)
            if outlier and {i, j} == {0, 1}:
                ld -= 0.3
            rows.append((one, other, ld, md, accuracy))
    return pd.DataFrame(rows, columns=["source", "target", "LD", "MD", "accuracy"])


TERMS = ["LD", "MD"]


def test_the_weightiest_pair_is_the_one_that_lies_far_off() -> None:
    found = pair_regression.weightiest(transfer(), "accuracy", TERMS)
    assert found["pair"] == "l0-l1"
    assert found["leverage"] > 5 * found["mean leverage"]
    assert found["cook"] > found["next cook"]
    assert found["mean leverage"] == pytest.approx(3 / 72)


def test_one_pair_hides_what_effects_and_its_absence_show() -> None:
    table = pair_regression.variants(transfer(), "accuracy", TERMS)
    found = table[table["term"] == "LD"].set_index("variant")
    assert found.index.tolist() == [
        "all pairs",
        "without the weightiest pair",
        "source and target effects",
        "effects, without the pair",
    ]
    assert abs(found.loc["all pairs", "coefficient"]) < 0.6
    last = found.loc["effects, without the pair"]
    assert last["coefficient"] == pytest.approx(-1.5, abs=0.15)
    assert last["high"] < 0
    assert last["p_value"] < 0.001
    assert found["n"].tolist() == [72, 70, 72, 70]
    assert last["r_squared"] > 0.95
    plain = statistics.regression(
        transfer(), "accuracy", TERMS, clusters=pair_regression.ENDS
    ).table.query("errors == 'dyadic' and term == 'LD'")
    dyadic = pair_regression.variants(transfer(), "accuracy", TERMS, errors="dyadic")
    assert dyadic["p_value"][0] == pytest.approx(plain["p_value"].iloc[0])


def test_leaving_out_a_language_leaves_out_its_pairs() -> None:
    table = transfer()
    found = pair_regression.without_languages(table, "accuracy", TERMS)
    assert found.index.tolist() == [f"l{i}" for i in range(9)]
    left = table[(table["source"] != "l3") & (table["target"] != "l3")]
    expected = statistics.regression(left, "accuracy", TERMS).table["coefficient"][1]
    assert found.loc["l3", "LD"] == pytest.approx(expected)


def test_levels_are_what_sources_and_targets_explain() -> None:
    table = transfer(outlier=False)
    found = pair_regression.levels(table, "accuracy")
    mean = table["accuracy"].mean()
    total = ((table["accuracy"] - mean) ** 2).sum()
    means = table.groupby("source")["accuracy"].transform("mean")
    assert found["source"] == pytest.approx(((means - mean) ** 2).sum() / total)
    assert found["source"] + found["target"] <= found["both"] + 0.05 <= 1.05
    assert found["both"] > 0.9


def test_rivals_are_regressions_on_each_set() -> None:
    table = transfer(outlier=False)
    table["bag LD"] = table["LD"] + np.random.default_rng(1).normal(0, 0.001, len(table))
    sets = {"model": ["LD", "MD"], "both": ["LD", "bag LD"]}
    found = pair_regression.rivals(table, "accuracy", sets)
    assert found[["predictors", "effects"]].drop_duplicates().to_numpy().tolist() == [
        ["model", "none"],
        ["model", "source and target"],
        ["both", "none"],
        ["both", "source and target"],
    ]
    row = found.query("predictors == 'model' and effects == 'source and target' and term == 'LD'")
    expected = pair_regression.variants(table, "accuracy", TERMS).query(
        "variant == 'source and target effects' and term == 'LD'"
    )
    assert row["coefficient"].item() == pytest.approx(expected["coefficient"].item())
    assert row["p_value"].item() == pytest.approx(expected["p_value"].item())
