"""What a regression over pairs hangs on: a pair, a language, the levels of sources and targets."""

import itertools
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.regression.linear_model import OLS

import abx_6_transfer
from shared import pair_regressions
from shared.pair_regressions import ENDS
from tests.core.test_statistics import transfer as exchangeable
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
    heaviest = abx_6_transfer.heaviest_pairs(transfer()).loc["m", "POS"]
    assert heaviest["pair"] == "l0-l1"
    assert heaviest["leverage"] > 5 * heaviest["mean leverage"]
    assert heaviest["cook"] > heaviest["next cook"]
    (table,) = transfer(outlier=False).values()
    shares = abx_6_transfer.heaviest_pairs({("m", "POS"): table}).loc["m", "POS"]
    means = table["accuracy"].groupby(table["source"]).transform("mean")
    assert shares["R² of source"] == pytest.approx(means.var() / table["accuracy"].var())
    assert shares["R² of both"] > 0.9


def test_one_pair_hides_what_effects_and_its_absence_show() -> None:
    table = pair_regressions.fitted(transfer(), abx_6_transfer.VARIANTS)
    of_ld = table[table["term"] == "LD"].set_index("variant")
    assert of_ld.index.tolist() == list(abx_6_transfer.VARIANTS)
    assert abs(of_ld.loc["all pairs", "coefficient"]) < 0.6
    last = of_ld.loc["effects, without the pair"]
    assert last["coefficient"] == pytest.approx(-1.5, abs=0.15)
    assert last["high"] < 0
    assert last["p_value"] < 0.001
    assert of_ld["n"].tolist() == [72, 70, 72, 70]
    assert last["R2"] > 0.95


def test_within_levels_least_squares_has_the_coefficients_of_effects() -> None:
    groups = transfer(outlier=False)
    (table,) = groups.values()
    expected = regressions.regression(table, "accuracy", TERMS, effects=ENDS).table
    within = abx_6_transfer.within_levels(table, ["accuracy", *TERMS])
    found = least_squares(within, "accuracy", TERMS).params[1:]
    assert found.tolist() == pytest.approx(expected["coefficient"][:2].tolist())
    rows = abx_6_transfer.exchanged(groups, n_permutations=99, seed=0)
    p_value = rows.set_index(["variant", "term"])["permutation"]
    assert p_value["source and target effects", "LD"] == 0.01
    assert p_value["all pairs", "LD"] > 0.05  # levels of the target hide the slope


def test_what_can_be_detected_is_found_in_four_of_five() -> None:
    rng = np.random.default_rng(0)
    smallest = pair_regressions.detectable(0.5, 10)
    t = (smallest + 0.5 * rng.normal(size=20_000)) / (
        0.5 * np.sqrt(rng.chisquare(10, size=20_000) / 10)
    )
    assert (np.abs(t) > stats.t.ppf(0.975, 10)).mean() == pytest.approx(0.8, abs=0.01)


def test_leaving_out_a_language_leaves_out_its_pairs() -> None:
    (table,) = transfer().values()
    row = abx_6_transfer.leave_one_language_out(transfer()).loc[("m", "POS"), "LD"]
    expected = {}
    for name in sorted(set(table["source"])):
        left = table[(table["source"] != name) & (table["target"] != name)]
        expected[regressions.regression(left, "accuracy", TERMS).table["coefficient"][1]] = name
    assert row["min"] == pytest.approx(min(expected))
    assert row["idxmax"] == expected[max(expected)]


def test_scales_turn_predictors() -> None:
    groups = transfer(outlier=False)
    (rows,) = groups.values()
    table = pair_regressions.fitted(groups, abx_6_transfer.SCALED)
    logits = rows.assign(**{name: np.log(rows[name] / (1 - rows[name])) for name in TERMS})
    fit = regressions.regression(logits, "accuracy", TERMS, clusters=ENDS, effects=ENDS).table
    of_ld = fit.query("term == 'LD' and errors == 'clustered'").iloc[0]
    ours = table.query("variant == 'logits' and term == 'LD'").iloc[0]
    assert ours[["coefficient", "p_value"]].tolist() == of_ld[["coefficient", "p_value"]].tolist()
    percents = {key: rows.assign(LD=rows["LD"] / 101, accuracy=100 * rows["accuracy"])
                for key in groups}  # fmt: skip
    of_percents, standard = (
        pair_regressions.fitted(of, {"s": abx_6_transfer.SCALED["standard deviations"]})
        for of in (percents, groups)
    )
    np.testing.assert_allclose(of_percents["coefficient"], standard["coefficient"])
    with pytest.raises(ValueError, match="LD of 0 or 1 has no logit"):
        pair_regressions.SCALES["logits"](pd.Series([0.5, 1.0], name="LD"))


def test_explained_is_the_variance_between_groups() -> None:
    rng = np.random.default_rng(7)
    table = pd.DataFrame({"script": rng.integers(0, 3, 60).astype(str), "LD": rng.normal(size=60)})
    share, adjusted = pair_regressions.explained(table, "LD", ["script"])
    means = table.groupby("script")["LD"].transform("mean")
    within = ((table["LD"] - means) ** 2).sum() / ((table["LD"] - table["LD"].mean()) ** 2).sum()
    assert share == pytest.approx(1 - within)
    assert adjusted == pytest.approx(1 - within * 59 / 57)
    assert pair_regressions.explained(table.assign(script="Latn"), "LD", ["script"]) == (0, 0)
    every = pair_regressions.explained(table.assign(script=range(60)), "LD", ["script"])
    assert every[0] == 1
    assert np.isnan(every[1])


def literal_double_semi_partialling(table: pd.DataFrame, orders: Sequence) -> float:
    """p-value of LD given MD, with loops and a new regression per permutation."""
    names, ends = (
        sorted(set(table["source"])),
        list(table[["source", "target"]].itertuples(index=False)),
    )
    others = np.column_stack([np.ones(len(table)), table["MD"]])
    own = dict(zip(ends, OLS(table["LD"], others).fit().resid, strict=True))
    t = [OLS(table["accuracy"], np.column_stack([others, table["LD"]])).fit().tvalues.iloc[-1]]
    for order in orders:
        new = dict(zip(names, [names[i] for i in order], strict=True))
        moved = [own[new[a], new[b]] for a, b in ends]
        t.append(OLS(table["accuracy"], np.column_stack([others, moved])).fit().tvalues.iloc[-1])
    return np.mean(np.abs(t) >= abs(t[0]) - 1e-9)


def test_p_values_by_permutation_are_the_literal_ones() -> None:
    table = exchangeable(5, 4, slope=0.1).sample(frac=1, random_state=1)  # order must not matter
    exact = literal_double_semi_partialling(table, list(itertools.permutations(range(5)))[1:])
    found = abx_6_transfer.permutation_p_values(table, "accuracy", ["LD", "MD"], seed=1)
    assert found["term"].tolist() == ["LD", "MD"]
    assert found["permutation"][0] == pytest.approx(exact, abs=0.015)


def test_permutations_reject_nothing_as_often_as_they_say() -> None:
    def p_value(slope: float, seed: int) -> float:
        table, options = exchangeable(12, seed, slope=slope), {"n_permutations": 199, "seed": seed}
        found = abx_6_transfer.permutation_p_values(table, "accuracy", ["LD"], **options)
        return found["permutation"].item()

    p_values = np.array([p_value(0, seed) for seed in range(200)])
    assert (p_values <= 0.05).mean() < 0.1
    assert 0.4 < p_values.mean() < 0.6
    assert p_value(3, 0) == 1 / 200


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda t: t.iloc[1:], "19 rows are of 19 pairs of 5 languages"),
        (lambda t: pd.concat([t, t.iloc[[2]]]), "21 rows are of 20 pairs"),
        (lambda t: pd.concat([t, t.iloc[[0]].assign(target="l00")]), "for all or none"),
        (
            lambda t: t[t["source"].isin(["l00"])].assign(target="l01", source="l00"),
            "three or more",
        ),
    ],
)
def test_permutations_need_all_pairs(make: Callable, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        abx_6_transfer.permutation_p_values(make(exchangeable(5, 0)), "accuracy", ["LD"])
