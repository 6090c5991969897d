"""What the notebooks of MEXA compute: on made scores, against numbers counted one by one."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mexa_2_estimation
from shared import mexa_tables
from xlx.experiment.mexa_scores import ALTERNATIVES, Coverage
from xlx.measures.mexa import PivotScores

LANGUAGES = ("de", "fr", "sw")


def coverage(seed: int) -> Coverage:
    """Three layers of ten sentences in three languages, at random."""
    rng = np.random.default_rng(seed)
    hits = rng.random((3, 3, 10)) < 0.5
    rows = [
        (language, layer, measure, rng.random())
        for language in LANGUAGES
        for measure in ALTERNATIVES
        for layer in range(3)
    ]
    measures = pd.DataFrame(rows, columns=["language", "layer", "measure", "value"])
    scores = PivotScores(LANGUAGES, "en", (0, 1, 2), hits, np.where(hits, -1, 0))
    return Coverage("a", "last", "raw", scores, measures, dict.fromkeys(LANGUAGES, 0))


def test_measures_are_averaged_over_middle_layers() -> None:
    own = coverage(0)
    table = mexa_2_estimation.middle_measures([own]).set_index(["measure", "language"])["value"]
    assert table["MEXA", "de"] == pytest.approx(own.scores.hits.mean(axis=2)[1:, 0].mean())
    cka = own.measures.query("measure == 'biased CKA' and language == 'sw' and layer > 0")["value"]
    assert table["biased CKA", "sw"] == pytest.approx(cka.mean())


def test_a_difference_of_correlations_is_paired() -> None:
    rng, n = np.random.default_rng(2), 60
    y = pd.Series(rng.random(n), [f"l{i}" for i in range(n)])
    wide = pd.DataFrame({"a": y + 0.1 * rng.normal(size=n), "b": rng.random(n)}, y.index)
    families = pd.Series([f"f{i % 20}" for i in range(n)], y.index)
    (row,) = mexa_tables.differences_of_r(
        wide.assign(c=-wide["a"]), [("a", "b")], families, y
    ).itertuples()
    assert row.r == pytest.approx(np.corrcoef(wide["a"], y)[0, 1])
    assert row.difference > row.low > 0
    left = [families != name for name in dict.fromkeys(families)]
    apart = [
        np.subtract(*(abs(np.corrcoef(wide.loc[x, k], y[x])[0, 1]) for k in "ab")) for x in left
    ]
    half = stats.t.ppf(0.975, 20) * np.sqrt(
        19 / 20 * (np.subtract(apart, row.difference) ** 2).sum()
    )
    assert (row.low, row.high) == pytest.approx((row.difference - half, row.difference + half))
    same = mexa_tables.differences_of_r(wide.assign(c=-wide["a"]), [("a", "c")], families, y)
    assert same[["difference", "low", "high"]].abs().to_numpy().max() < 1e-9


def test_estimates_have_lines_where_there_is_something_to_fit() -> None:
    rng = np.random.default_rng(3)
    scores = pd.DataFrame(rng.random((13, 2)), columns=["mu", "score"])
    scores = scores.assign(task="T", model="a", language=[f"l{i}" for i in range(13)], stderr=0.01)
    scores = scores.assign(text="FLORES", layers="max")
    summary = pd.DataFrame({"en": 0.6}, pd.MultiIndex.from_tuples([("T", "a")]))
    summary.index.names = ["task", "model"]
    table = mexa_2_estimation.adjusted_scores(scores, summary, "en")
    np.testing.assert_allclose(table["expected"], 0.6 * scores["mu"])
    np.testing.assert_allclose(table["high"] - table["score"], 1.96 * 0.01, rtol=1e-3)
    lines = mexa_2_estimation.estimate_lines(table, {})
    slope, intercept = np.polyfit(table["expected"], table["score"], 1)
    fitted = lines[lines["kind"] == "fitted"]
    np.testing.assert_allclose(fitted["y"], intercept + slope * fitted["x"])
    ideal = lines[lines["kind"] == "ideal"]
    assert ideal["y"].tolist() == pytest.approx([0.25, 0.25 + 0.75 * table["expected"].max()])
    assert set(mexa_2_estimation.estimate_lines(table.head(2), {})["kind"]) == {"ideal", "chance"}
