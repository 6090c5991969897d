"""What a regression over pairs hangs on: a pair, a language, the levels of sources and targets."""

import warnings

import numpy as np
import pandas as pd
import pytest
from statsmodels.regression.mixed_linear_model import MixedLM

import abx_3_outcomes
from shared import pair_regressions, regressions
from shared.pair_regressions import ENDS

TERMS = ["LD", "MD"]


def world(n: int, rng: np.random.Generator, linked: float) -> pd.DataFrame:
    """Made-up pairs of languages in which LD and MD do nothing: sources, targets, pairs do.

    ``linked``: how much a language that is far from all is also a bad source and a hard target.
    """
    far, good, easy = rng.normal(size=(3, n))
    good, easy = 0.6 * good - linked * far, easy - linked * far
    halves = np.triu(rng.normal(size=(2, n, n)), 1)
    apart, of_pair = halves + halves.transpose(0, 2, 1)
    source, target = np.nonzero(~np.eye(n, dtype=bool))
    ld = 0.7 * (far[source] + far[target]) + apart[source, target]
    noise = np.triu(rng.normal(size=(n, n)), 1)
    md = -0.8 * ld + 0.6 * (noise + noise.T)[source, target]
    accuracy = good[source] + easy[target] + 0.5 * of_pair[source, target]
    accuracy = accuracy + 0.5 * rng.normal(size=len(source))
    names = np.array([f"l{k:02}" for k in range(n)])
    return pd.DataFrame(
        {"source": names[source], "target": names[target], "LD": ld, "MD": md, "accuracy": accuracy}
    )


def transfer() -> dict[tuple[str, str], pd.DataFrame]:
    """Accuracy falls with LD within sources and targets.

    Easy targets have high LD, which hides the slope.
    """
    rng = np.random.default_rng(0)
    names = [f"l{i}" for i in range(9)]
    source, target = (dict(zip(names, rng.normal(0, 0.05, 9), strict=True)) for _ in range(2))
    rows = []
    for one in names:
        for other in names:
            if one == other:
                continue
            own = rng.normal(0, 0.01)  # of the pair alone
            ld = 0.95 + 0.2 * target[other] + own
            md = rng.normal(0.6, 0.02)
            accuracy = 0.4 + source[one] + target[other] - 1.5 * own + rng.normal(0, 0.004)
            rows.append((one, other, ld, md, accuracy))
    return {("m", "POS"): pd.DataFrame(rows, columns=["source", "target", *TERMS, "accuracy"])}


def test_the_cross_classified_model_is_statsmodels_mixed_model() -> None:
    rows = world(9, np.random.default_rng(0), linked=0.5)
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
    (rows,) = transfer().values()  # no level of pairs: least squares
    found = pair_regressions.cross_classified(rows, TERMS)
    expected = regressions.least_squares(rows, "accuracy", TERMS, ENDS)
    np.testing.assert_allclose(found["error"], expected.bse[1:3], rtol=1e-3)


def test_levels_hide_what_a_regression_without_them_does_not_see() -> None:
    groups = {
        key: rows.assign(**{"plain accuracy": rows["accuracy"]}) for key, rows in transfer().items()
    }
    plain = abx_3_outcomes.as_printed(groups).set_index("term")
    assert abs(plain.loc["LD", "coefficient"]) < 0.6
    found = abx_3_outcomes.with_levels(groups, {"LD, MD": pair_regressions.Reading()})
    of_ld = found[found["term"] == "LD"].iloc[0]
    assert of_ld["high"] < 0
    assert of_ld["Holm"] < 0.001


def runs_and_documents(
    rng: np.random.Generator, slope: float
) -> tuple[pd.DataFrame, np.ndarray, list[pd.DataFrame]]:
    """Pairs of `world`: three runs, each with a slope of its own; LD, MD are of 25 documents."""
    rows = world(9, rng, linked=0.5)
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
        wide = abx_3_outcomes.over_documents_and_runs(rows, table, left_out, np.ones(25), others)
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
    assert abx_3_outcomes.moved(rows, left_out)[3] == pytest.approx(expected, rel=1e-6)
    alone = abx_3_outcomes.over_documents_and_runs(rows, table, left_out, np.ones(25), [])
    assert alone["of runs"].isna().all()
    assert list(alone["error"]) == pytest.approx(np.hypot(table["error"], wide["of documents"]))


def test_inference_is_regressed_with_levels_of_runs() -> None:
    (rows,) = transfer().values()
    rng = np.random.default_rng(1)
    runs = pd.concat(
        rows.assign(run=rows["source"] + f" {k}", accuracy=rows["accuracy"] + rng.normal(0, 0.01))
        for k in (1, 2)
    )
    runs["source"] = runs["source"].replace("l0", "en")
    table = abx_3_outcomes.inference_table(runs.assign(hypothesis=0.5 + 0.1 * runs["MD"]))
    table = table.set_index(["way", "term"])
    assert table.loc[("levels", "LD"), "coefficient"] == pytest.approx(-1.5, abs=0.15)
    assert table.loc[("hypotheses, from English", "MD"), "coefficient"] == pytest.approx(0.1)


def coverage(n_worlds: int, n_languages: int, seed: int = 0) -> pd.Series:
    """How often 95 % intervals of LD hold 0 where 0 is the truth, in so many of `world`.

    One share per interval: the paper's (ordinary errors), clustered errors, the cross-classified
    model. Levels of languages go with LD.
    """
    rows, rng = [], np.random.default_rng(seed)
    for _ in range(n_worlds):
        pairs = world(n_languages, rng, linked=0.5)
        plain = regressions.regression(
            pairs, "accuracy", pair_regressions.LD_AND_MD, clusters=ENDS
        ).table
        plain = plain[plain["term"] == "LD"].set_index("errors")
        ways = {
            "all pairs independent": plain.loc["classical"],
            "clustered by source and target": plain.loc["clustered"],
            "cross-classified": pair_regressions.cross_classified(
                pairs, pair_regressions.LD_AND_MD
            ).iloc[0],
        }
        rows.append({way: fit["low"] < 0 < fit["high"] for way, fit in ways.items()})
    return pd.DataFrame(rows).mean()


@pytest.mark.slow
def test_intervals_of_the_cross_classified_model_hold_the_truth() -> None:
    found = coverage(60, 12, seed=1)
    assert 0.9 <= found["cross-classified"] <= 1
    assert found["all pairs independent"] < 0.7
