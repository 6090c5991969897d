"""What a regression over pairs hangs on: a pair, a language, the levels of sources and targets."""

import warnings

import numpy as np
import pandas as pd
import pytest
from statsmodels.regression.mixed_linear_model import MixedLM

import abx_6_transfer
from shared import pair_regressions, regressions
from shared.pair_regressions import ENDS

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


def test_the_cross_classified_model_is_statsmodels_mixed_model() -> None:
    rows = abx_6_transfer.world(9, np.random.default_rng(0), linked=0.5)
    found = pair_regressions.cross_classified(rows, TERMS).set_index("term")
    levels = [pd.get_dummies(rows[end], drop_first=True, dtype=float) for end in ENDS]
    exog = np.column_stack([rows[TERMS], np.ones(len(rows)), *levels])
    pair = ["-".join(sorted(ends)) for ends in rows[list(ENDS)].to_numpy()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = MixedLM(rows["accuracy"].to_numpy(), exog, groups=pair).fit(reml=True)
    np.testing.assert_allclose(found["coefficient"], expected.fe_params[:2], rtol=1e-4)
    np.testing.assert_allclose(found["error"], expected.bse_fe[:2], rtol=1e-3)
    assert (found["df"] == 8).all()
    (rows,) = transfer(outlier=False).values()  # no level of pairs: least squares
    found = pair_regressions.cross_classified(rows, TERMS)
    expected = regressions.regression(rows, "accuracy", TERMS, effects=ENDS).table
    np.testing.assert_allclose(found["error"], expected["error"][:2], rtol=1e-3)


def test_levels_hide_what_a_regression_without_them_does_not_see() -> None:
    groups = {
        key: rows.assign(**{"plain accuracy": rows["accuracy"]})
        for key, rows in transfer(outlier=False).items()
    }
    plain = abx_6_transfer.as_printed(groups).set_index("term")
    assert abs(plain.loc["LD", "coefficient"]) < 0.6
    found = abx_6_transfer.with_levels(groups, {"LD, MD": pair_regressions.Reading()})
    of_ld = found[found["term"] == "LD"].iloc[0]
    assert of_ld["high"] < 0
    assert of_ld["Holm"] < 0.001


@pytest.mark.slow
def test_intervals_of_the_cross_classified_model_hold_the_truth() -> None:
    found = abx_6_transfer.coverage(60, 12, seed=1)
    assert 0.9 <= found["cross-classified"] <= 1
    assert found["all pairs independent"] < 0.7


def runs_and_documents(
    rng: np.random.Generator, slope: float
) -> tuple[pd.DataFrame, np.ndarray, list[pd.DataFrame]]:
    """Pairs of `world`: three runs, each with a slope of its own; LD, MD are of 25 documents."""
    rows = abx_6_transfer.world(9, rng, linked=0.5)
    pair = np.unique(
        ["-".join(sorted(of)) for of in rows[list(ENDS)].to_numpy()], return_inverse=True
    )[1]
    seen = rng.normal(0, 0.5, (2, pair.max() + 1, 25))[:, pair]
    left_out = (seen.mean(axis=-1, keepdims=True) - seen) / 24
    runs = []
    for of_run in rng.normal(0, 0.05, (3, 2, pair.max() + 1))[:, :, pair]:
        ld, md = rows[TERMS].to_numpy().T + of_run
        accuracy = rows["accuracy"] + rng.normal(slope, 0.3) * ld + rng.normal(0, 0.2, len(rows))
        ld, md = np.array([ld, md]) + seen.mean(axis=-1)
        runs.append(rows.assign(LD=ld, MD=md, accuracy=accuracy))
    return runs[0], left_out, runs[1:]


def test_documents_and_runs_are_levels_of_table_1() -> None:
    held = []
    for seed in range(40):
        rows, left_out, others = runs_and_documents(np.random.default_rng(seed), -1.0)
        table = pair_regressions.cross_classified(rows, TERMS)
        wide = abx_6_transfer.over_documents_and_runs(rows, table, left_out, np.ones(25), others)
        held.append((wide["low"] < -1).iloc[0] & (wide["high"] > -1).iloc[0])
    assert 0.9 <= np.mean(held) <= 1
    fits = [table, *(pair_regressions.cross_classified(of, TERMS) for of in others)]
    assert list(wide["coefficient"]) == pytest.approx(
        np.mean([of["coefficient"] for of in fits], axis=0)
    )
    languages = np.mean([of["error"] ** 2 for of in fits], axis=0)
    whole = languages + wide["of documents"] ** 2 + wide["of runs"] ** 2
    assert list(wide["error"] ** 2) == pytest.approx(whole.to_numpy())
    without = rows.assign(LD=rows["LD"] + left_out[0, :, 3], MD=rows["MD"] + left_out[1, :, 3])
    expected = pair_regressions.cross_classified(without, TERMS)["coefficient"]
    assert abx_6_transfer.moved(rows, left_out)[3] == pytest.approx(expected, rel=1e-6)
    alone = abx_6_transfer.over_documents_and_runs(rows, table, left_out, np.ones(25), [])
    assert alone["of runs"].isna().all()
    assert list(alone["error"]) == pytest.approx(np.hypot(table["error"], wide["of documents"]))


def test_inference_is_regressed_with_levels_of_runs() -> None:
    (rows,) = transfer(outlier=False).values()
    rng = np.random.default_rng(1)
    runs = pd.concat(
        rows.assign(run=rows["source"] + f" {k}", accuracy=rows["accuracy"] + rng.normal(0, 0.01))
        for k in (1, 2)
    )
    runs["source"] = runs["source"].replace("l0", "en")
    table = abx_6_transfer.inference_table(runs.assign(hypothesis=0.5 + 0.1 * runs["MD"]))
    table = table.set_index(["way", "term"])
    assert table.loc[("levels", "LD"), "coefficient"] == pytest.approx(-1.5, abs=0.15)
    assert table.loc[("hypotheses, from English", "MD"), "coefficient"] == pytest.approx(0.1)
