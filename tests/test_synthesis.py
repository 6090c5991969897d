"""The lenses side by side: orders of models, prediction of unseen families."""

import numpy as np
import pandas as pd
import pytest

import synthesis
from shared import mexa_tables


def lens(name: str, **scores: float) -> pd.DataFrame:
    rows = [(model, name, x, x - 0.01, x + 0.01) for model, x in scores.items()]
    return pd.DataFrame(rows, columns=["model", "lens", *synthesis.ENDS])


def test_two_models_are_compared_where_both_lenses_tell_them_apart() -> None:
    table = pd.concat(
        [
            lens("MEXA", a=0.1, b=0.5, c=0.9),
            lens("topics abroad", c=0.301, a=0.2, b=0.3),  # b and c are not told apart
            lens("LD, lowest", a=0.9, b=0.7, c=0.8),  # low is shared: b above c above a
        ]
    )
    counted = synthesis.comparisons(table).set_index(["lens", "beside"])["alike"].sort_index()
    assert counted.loc[("MEXA", "topics abroad")].tolist() == [True, True]
    assert sorted(counted.loc[("LD, lowest", "MEXA")]) == [False, True, True]
    apart = synthesis.comparisons(table).groupby(["lens", "beside"])["apart"].first()
    assert apart.to_dict() == {
        ("LD, lowest", "MEXA"): False,
        ("LD, lowest", "topics abroad"): True,
        ("MEXA", "topics abroad"): True,
    }
    guessed = synthesis.comparisons(table, {"topics abroad": 0.4})
    assert set(guessed["lens"]) == {"LD, lowest"}
    assert set(guessed["beside"]) == {"MEXA"}


def test_a_line_carries_between_models_of_one_law_alone() -> None:
    rng = np.random.default_rng(0)
    codes = [f"{family}{k}" for family in "abcdefgh" for k in range(8)]
    mu = pd.DataFrame(rng.random((64, 3)), codes, ["first", "second", "other"])
    outcomes = mu * [0.5, 0.5, -0.5] + [0.2, 0.2, 0.9] + 0.01 * rng.standard_normal((64, 3))
    lines = mexa_tables.carried_lines(mu, outcomes, {code: code[0] for code in codes})
    lines = lines.set_index(["line", "model"])
    assert lines.loc[("first", "second"), "low"] > 0.95
    assert lines.loc[("first", "other"), "high"] < 0
    true = outcomes["other"]
    line = np.polyfit(mu["first"], outcomes["first"], 1)
    left = true - np.polyval(line, mu["other"])
    expected = 1 - (left**2).sum() / ((true - true.mean()) ** 2).sum()
    assert lines.loc[("first", "other"), "r2"] == pytest.approx(expected)
    above = lines.loc[("first", "other"), "above"]
    low, high = map(float, above.partition("(")[2][:-1].split(" to "))
    assert above.startswith(f"{left.mean():.2f} (")
    assert low < left.mean() < high
    assert (lines["low"] <= lines["r2"]).all()
    assert (lines["r2"] <= lines["high"]).all()


def test_claims_that_contradict_stand_first_and_twins_are_taken_off() -> None:
    more = synthesis.beyond((0.3, 0.2, 0.4), (0.1, 0.1, 0.1))
    assert more == pytest.approx([0.2, 0.1, 0.3])
    less = synthesis.beyond((0.1, 0.07, 0.13), (0.3, 0.26, 0.34))
    assert less == pytest.approx([-0.2, -0.25, -0.15])
    ends = {"a": more, "b": (0.0, -0.1, 0.1), "c": less}
    judged = synthesis.judged([("ABX", "claim", x, y) for x, y in ends.items()])
    claims = synthesis.all_claims(judged)
    assert len(claims) == 124 + 3
    here = claims[claims["tested"] == "here"]
    assert here["verdict"].tolist() == ["does not hold", "cannot be told", "holds"]
    assert here["result"].tolist()[0] == "-0.20 (-0.25 to -0.15)"
    assert claims["verdict"].is_monotonic_increasing


@pytest.mark.parametrize(("noise", "low", "high"), [(0.0, 0.999, 1.0), (30.0, -0.6, 0.1)])
def test_unseen_families_are_predicted_where_there_is_a_law(noise, low, high) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"family": np.repeat([*"abcdefgh"], 8), "MEXA": rng.random(64)})
    table["score"] = 2 * table["MEXA"] + noise * rng.standard_normal(64)
    predicted = synthesis.predicted(table, "score", {"MEXA": ["MEXA"]})
    assert low <= predicted["held out"].item() <= high
    assert (predicted["p"].item() < 0.01) == (noise == 0)


def test_a_constant_within_families_does_not_help_in_unseen_ones() -> None:
    rng = np.random.default_rng(1)
    family = np.repeat(np.arange(12), 6)
    table = pd.DataFrame({"family": family, "MEXA": rng.standard_normal(12)[family]})
    table["score"] = rng.standard_normal(12)[family]
    predicted = synthesis.predicted(table, "score", {"MEXA": ["MEXA"]})
    assert predicted["held out"].item() < 0.2
