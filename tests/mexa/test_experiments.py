"""What the notebooks of MEXA compute: on made scores, against numbers counted one by one."""

import numpy as np
import pandas as pd
import pytest

import mexa_2_estimation
from xlx.experiment.mexa_scores import Coverage
from xlx.measures import alignment
from xlx.measures.mexa import PivotScores

LANGUAGES = ("de", "fr", "sw")


def coverage(seed: int) -> Coverage:
    """Three layers of ten sentences in three languages, at random."""
    rng = np.random.default_rng(seed)
    hits = rng.random((3, 3, 10)) < 0.5
    rows = [
        (language, layer, measure, rng.random())
        for language in LANGUAGES
        for measure in alignment.ALIGNMENT_MEASURES
        for layer in range(3)
    ]
    measures = pd.DataFrame(rows, columns=["language", "layer", "measure", "value"])
    scores = PivotScores(LANGUAGES, "en", (0, 1, 2), hits, np.where(hits, -1, 0))
    return Coverage("a", "last", "raw", scores, measures, dict.fromkeys(LANGUAGES, 0))


def test_measures_are_averaged_over_middle_layers() -> None:
    own = coverage(0)
    table = mexa_2_estimation.middle_measures([own]).set_index(["measure", "language"])["value"]
    assert table["MEXA", "de"] == pytest.approx(own.scores.hits.mean(axis=2)[1:, 0].mean())
    cka = own.measures.query("measure == 'cka' and language == 'sw' and layer > 0")["value"]
    assert table["cka", "sw"] == pytest.approx(cka.mean())


def test_what_mexa_adds_is_a_coefficient_beside_the_rivals() -> None:
    rng, n = np.random.default_rng(2), 60
    rivals = pd.DataFrame(rng.random((n, 3)), columns=mexa_2_estimation.RIVALS)
    rivals = rivals.assign(language=[f"l{i}" for i in range(n)], model="a", task="T")
    mexa = rng.random(n)
    rivals["score"] = 0.1 + 0.5 * mexa + 0.2 * rivals["bag"] + 0.01 * rng.normal(size=n)
    table = pd.DataFrame({"language": rivals["language"], "model": "a", "mu": mexa})
    table = table.assign(text="FLORES", pooling="last", layers="max")
    adds = mexa_2_estimation.added_by_mexa(table, rivals)
    assert adds["per 0.1"].item() == pytest.approx(0.05, abs=0.005)
    assert adds["p"].item() < 0.05
    assert adds["VIF"].item() < 1.5
    assert mexa_2_estimation.added_by_mexa(table.head(9), rivals).empty


def test_estimates_have_lines_where_there_is_something_to_fit() -> None:
    rng = np.random.default_rng(3)
    scores = pd.DataFrame(rng.random((13, 2)), columns=["mu", "score"])
    scores = scores.assign(task="T", model="a", language=[f"l{i}" for i in range(13)], stderr=0.01)
    summary = pd.DataFrame({"en": 0.6}, pd.MultiIndex.from_tuples([("T", "a")]))
    summary.index.names = ["task", "model"]
    table = mexa_2_estimation.adjusted_scores(scores, summary, "en")
    np.testing.assert_allclose(table["expected"], 0.6 * scores["mu"])
    np.testing.assert_allclose(table["high"] - table["score"], 1.96 * 0.01, rtol=1e-3)
    assert (table["written"] != "").sum() == 3
    lines, fits = mexa_2_estimation.estimate_lines(table, {})
    fit = fits.loc[("T", "a"), ["slope", "intercept"]]
    assert fit.tolist() == pytest.approx(np.polyfit(table["expected"], table["score"], 1))
    left = table["score"] - fit["slope"] * table["expected"] - fit["intercept"]
    assert fits.loc[("T", "a"), "error"] == pytest.approx(np.sqrt((left**2).mean()))
    assert fits.loc[("T", "a"), ["ideal slope", "ideal intercept"]].tolist() == [0.75, 0.25]
    ideal = lines[lines["kind"] == "ideal"]
    assert ideal["y"].tolist() == pytest.approx([0.25, 0.25 + 0.75 * table["expected"].max()])
    few, none = mexa_2_estimation.estimate_lines(table.head(2), {})
    assert none.empty
    assert set(few["kind"]) == {"ideal", "chance"}


def test_bands_are_counted_beside_those_of_table_6() -> None:
    ours = pd.DataFrame({"language": ["de", "sw"], "model": "a", "mu": [1.0, 0.5]})
    counts = mexa_2_estimation.bands_beside_print(ours, pd.Series({"a": 0.9}), "flores200-100")
    assert counts.loc["a"].tolist() == [0, 0, 1, 0, 1]
    assert len(counts) == 1 + 9
    assert set(counts.sum(axis=1)) == {2}


def test_verses_are_compared_with_the_jackknife_of_both() -> None:
    both = [coverage(seed) for seed in (0, 1)]
    dots, summary = mexa_2_estimation.verse_differences([("a, untrained", *both)])
    read, held_out = (own.scores.hits.mean(axis=2).mean(axis=0) for own in both)
    np.testing.assert_allclose(dots["difference"], held_out - read)
    row = summary.iloc[0]
    assert (row["model"], row["mean"]) == ("a, untrained", pytest.approx((held_out - read).mean()))
    variance = 0
    for own in both:
        left = own.scores.left_out().mean(axis=(0, 1))
        variance += 0.9 * sum((value - left.mean()) ** 2 for value in left)
    assert row["high"] - row["mean"] == pytest.approx(1.96 * variance**0.5, rel=1e-3)
