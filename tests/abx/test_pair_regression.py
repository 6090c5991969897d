"""What a regression over pairs hangs on: a pair, a language, the levels of sources and targets."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from shared import pair_regressions
from xlx.measures import regressions
from xlx.measures.regressions import least_squares

TERMS = ["LD", "MD"]


def transfer(*, outlier: bool = True) -> dict[tuple[str, str], pd.DataFrame]:
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
    return {("m", "POS"): pd.DataFrame(rows, columns=["source", "target", *TERMS, "accuracy"])}


def test_the_heaviest_pair_is_the_one_that_lies_far_off() -> None:
    heaviest = pair_regressions.heaviest_pairs(transfer()).loc["m", "POS"]
    assert heaviest["pair"] == "l0-l1"
    assert heaviest["leverage"] > 5 * heaviest["mean leverage"]
    assert heaviest["cook"] > heaviest["next cook"]
    (table,) = transfer().values()
    weights = regressions.leverage(table, "accuracy", TERMS)
    assert heaviest["mean leverage"] == pytest.approx(weights["leverage"].mean())


def test_one_pair_hides_what_effects_and_its_absence_show() -> None:
    table = pair_regressions.variants(transfer())
    of_ld = table[table["term"] == "LD"].set_index("variant")
    assert of_ld.index.tolist() == [
        "all pairs", "without the weightiest pair", "source and target effects",
        "effects, without the pair",
    ]  # fmt: skip
    assert abs(of_ld.loc["all pairs", "coefficient"]) < 0.6
    last = of_ld.loc["effects, without the pair"]
    assert last["coefficient"] == pytest.approx(-1.5, abs=0.15)
    assert last["high"] < 0
    assert last["p_value"] < 0.001
    assert of_ld["n"].tolist() == [72, 70, 72, 70]
    assert last["r_squared"] > 0.95


def test_within_levels_least_squares_has_the_coefficients_of_effects() -> None:
    groups = transfer(outlier=False)
    (table,) = groups.values()
    effects = ("source", "target")
    expected = regressions.regression(table, "accuracy", TERMS, effects=effects).table
    within = pair_regressions.within_levels(table, ["accuracy", *TERMS])
    found = least_squares(within, "accuracy", TERMS).params[1:]
    assert found.tolist() == pytest.approx(expected["coefficient"][:2].tolist())
    assert within.groupby("source")["LD"].mean().abs().max() < 1e-12
    rows = pair_regressions.exchanged(groups, n_permutations=99, seed=0)
    rows = rows.set_index(["variant", "term"])
    row = rows.loc[("source and target effects", "LD")]
    assert row["coefficient"] == pytest.approx(found[0])
    assert row["p_value"] == 0.01
    # levels of the target hide the slope from all pairs
    assert rows.loc[("all pairs", "LD"), "p_value"] > 0.05


def test_what_can_be_detected_is_found_in_four_of_five() -> None:
    rng = np.random.default_rng(0)
    smallest = pair_regressions.detectable(0.5, 10)
    t = (smallest + 0.5 * rng.normal(size=20_000)) / (
        0.5 * np.sqrt(rng.chisquare(10, size=20_000) / 10)
    )
    assert (np.abs(t) > stats.t.ppf(0.975, 10)).mean() == pytest.approx(0.8, abs=0.01)


def test_leaving_out_a_language_leaves_out_its_pairs() -> None:
    (table,) = transfer().values()
    row = pair_regressions.leave_one_language_out(transfer()).loc[("m", "POS"), "LD"]
    expected = {}
    for name in sorted(set(table["source"])):
        left = table[(table["source"] != name) & (table["target"] != name)]
        expected[regressions.regression(left, "accuracy", TERMS).table["coefficient"][1]] = name
    assert row["min"] == pytest.approx(min(expected))
    assert row["idxmax"] == expected[max(expected)]


def test_levels_are_what_sources_and_targets_explain() -> None:
    (table,) = transfer(outlier=False).values()
    shares = pair_regressions.heaviest_pairs({("m", "POS"): table}).loc["m", "POS"]
    mean = table["accuracy"].mean()
    total = ((table["accuracy"] - mean) ** 2).sum()
    means = table.groupby("source")["accuracy"].transform("mean")
    assert shares["R² of source"] == pytest.approx(((means - mean) ** 2).sum() / total)
    assert shares["R² of source"] + shares["R² of target"] <= shares["R² of both"] + 0.05 <= 1.05
    assert shares["R² of both"] > 0.9


def test_rivals_are_regressions_on_each_set() -> None:
    (table,) = transfer(outlier=False).values()
    table["bag LD"] = table["LD"] + np.random.default_rng(1).normal(0, 0.001, len(table))
    groups = {("m", "POS"): table}
    rivals = pair_regressions.rivals(groups, {"model": TERMS, "both": ["LD", "bag LD"]})
    assert rivals[["predictors", "effects"]].drop_duplicates().to_numpy().tolist() == [
        ["model", "none"], ["model", "source and target"],
        ["both", "none"], ["both", "source and target"],
    ]  # fmt: skip
    row = rivals.query("predictors == 'model' and effects == 'source and target' and term == 'LD'")
    expected = pair_regressions.variants(groups).query(
        "variant == 'source and target effects' and term == 'LD'"
    )
    for column in ("coefficient", "p_value"):
        assert row[column].item() == pytest.approx(expected[column].item())


def test_scales_turn_predictors_and_correct_for_the_number_of_tests() -> None:
    groups = transfer() | {("m", "NER"): transfer(outlier=False)["m", "POS"]}
    table = pair_regressions.scaled(groups)
    assert table.groupby("scale", sort=False).size().to_dict() == {
        "shares": 4, "logits": 4, "ranks": 4, "standard deviations": 4,
    }  # fmt: skip
    rows = groups["m", "NER"]
    logits = rows.assign(LD=np.log(rows["LD"] / (1 - rows["LD"])),
                         MD=np.log(rows["MD"] / (1 - rows["MD"])))  # fmt: skip
    fit = regressions.regression(
        logits, "accuracy", TERMS, clusters=("source", "target"), effects=("source", "target")
    ).table
    of_ld = fit.query("term == 'LD' and errors == 'clustered'").iloc[0]
    ours = table.query("scale == 'logits' and task == 'NER' and term == 'LD'").iloc[0]
    assert ours["coefficient"] == pytest.approx(of_ld["coefficient"])
    of_scale = table[table["scale"] == "logits"]
    smallest = of_scale["p_value"].idxmin()
    assert of_scale["p_holm"][smallest] == pytest.approx(min(1, 4 * of_scale["p_value"].min()))
    assert (of_scale["p_holm"] >= of_scale["p_value"]).all()


def test_standard_deviations_do_not_know_of_units() -> None:
    (key,), (rows,) = zip(*transfer(outlier=False).items(), strict=True)
    percents = rows.assign(LD=100 * rows["LD"], accuracy=100 * rows["accuracy"])
    fitted = [
        pair_regressions.scaled({key: table.assign(LD=table["LD"] / of, MD=table["MD"])})
        .query("scale == 'standard deviations'")["coefficient"].to_numpy()
        for table, of in ((rows, 1), (percents, 101))
    ]  # fmt: skip
    np.testing.assert_allclose(*fitted)


def test_a_score_of_1_has_no_logit() -> None:
    groups = {
        key: table.assign(LD=table["LD"].where(table["LD"] < 0.95, 1.0))
        for key, table in transfer().items()
    }
    with pytest.raises(ValueError, match="LD of 0 or 1 has no logit"):
        pair_regressions.scaled(groups)
