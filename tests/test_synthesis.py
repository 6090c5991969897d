"""The lenses side by side: orders of models, prediction of unseen families."""

import numpy as np
import pandas as pd
import pytest

import synthesis


def lens(name: str, **scores: float) -> pd.DataFrame:
    rows = [(model, name, x, x - 0.01, x + 0.01) for model, x in scores.items()]
    return pd.DataFrame(rows, columns=["model", "lens", *synthesis.ENDS])


def test_agreement_counts_pairs_of_models_that_both_lenses_tell_apart() -> None:
    table = pd.concat(
        [
            lens("MEXA", a=0.1, b=0.5, c=0.9),
            lens("topics abroad", a=0.2, b=0.3, c=0.301),  # b and c are not told apart
            lens("LD, lowest", a=0.9, b=0.7, c=0.8),  # low is shared: b above c above a
        ]
    )
    counted = synthesis.agreement(table).set_index(["lens", "other"])
    assert counted.loc[("MEXA", "topics abroad")].tolist() == [2, 2]
    assert counted.loc[("LD, lowest", "MEXA")].tolist() == [2, 3]


@pytest.mark.parametrize(("noise", "low", "high"), [(0.0, 0.999, 1.0), (30.0, -0.6, 0.1)])
def test_unseen_families_are_predicted_where_there_is_a_law(noise, low, high) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"family": np.repeat([*"abcdefgh"], 8), "MEXA": rng.random(64)})
    table["score"] = 2 * table["MEXA"] + noise * rng.standard_normal(64)
    found = synthesis.predicted(table, "score", {"MEXA": ["MEXA"]})
    assert low <= found["held out"].item() <= high


def test_a_constant_within_families_does_not_help_in_unseen_ones() -> None:
    rng = np.random.default_rng(1)
    family = np.repeat(np.arange(12), 6)
    table = pd.DataFrame({"family": family, "MEXA": rng.standard_normal(12)[family]})
    table["score"] = rng.standard_normal(12)[family]
    found = synthesis.predicted(table, "score", {"MEXA": ["MEXA"]})
    assert found["held out"].item() < 0.2


def test_depth_that_explains_all_leaves_nothing() -> None:
    layers = np.arange(12)
    rows = {"topics abroad": layers, "MEXA": layers**2, "retrieval": np.abs(layers - 6)}
    table = pd.concat(
        [
            pd.DataFrame({"model": "m", "measure": name, "layer": layers, "score": of})
            for name, of in rows.items()
        ]
    )
    found = synthesis.with_depth(table, "topics abroad").set_index("measure")
    assert found.loc["MEXA", "r"] == pytest.approx(1)
    assert np.isnan(found.loc["MEXA", "given depth"])
    table.loc[table["measure"] == "topics abroad", "score"] = layers + 2 * np.abs(layers - 6)
    found = synthesis.with_depth(table, "topics abroad").set_index("measure")
    assert found.loc["retrieval", "given depth"] > 0.9 > found.loc["retrieval", "r"]
