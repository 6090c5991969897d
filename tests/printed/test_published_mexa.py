"""The MEXA paper: what follows from its tables, against loops written out."""

import numpy as np
import pandas as pd
import pytest

import mexa_1_alignment
from printed import mexa_claims
from printed.mexa_claims import MexaTables
from xlx.results import paths
from xlx.text import parallel


@pytest.fixture(scope="module")
def p() -> MexaTables:
    return MexaTables()


def test_the_lost_column_of_table_5_is_what_the_folder_has(p: MexaTables) -> None:
    derived = pd.read_csv(paths.PUBLISHED / "mexa" / "table5_implied_missing_column_DERIVED.csv")
    derived = derived.set_index(p.setting)["implied_missing_value_DERIVED_not_printed"]
    assert (derived - p.implied_ninth[derived.index]).abs().max() < 1e-9


def test_printed_scores_stand_beside_letters_and_shares(p: MexaTables) -> None:
    """Of a bag that is made up; the notebook's tables hold the numbers of that of FLORES-200."""
    points = mexa_1_alignment.printed_scores(p, pd.Series(0.5, parallel.tags("flores200-100")))
    assert len(points) == 9 * 116
    assert points["share"].notna().sum() == 9 * 26
    above = mexa_1_alignment.above_letters(points)
    assert (above["above letters"] == (p.per_label.loc[p.belebele] > 0.5).sum()).all()
    row = points.query("model == 'Llama 2 7B' and label == 'deu_Latn'").iloc[0]
    assert (row["share"], row["script"], row["family"]) == (0.17, "Latin", "Indo-European")


def test_shares_that_were_planted_are_seen_beside_letters(p: MexaTables) -> None:
    points = mexa_1_alignment.printed_scores(p, pd.Series(0.5, parallel.tags("flores200-100")))
    rng, planted = np.random.default_rng(1), points["model"] == "Llama 2 7B"
    points["letters"] = points["label"].map({x: rng.normal() for x in p.belebele})
    points["mu"] = np.where(planted, points["log"], 0) + points["letters"]
    points["mu"] += 0.1 * rng.normal(size=len(points))
    r = mexa_1_alignment.share_correlations(points).query("given == 'letters'")
    r = r[r["languages"] == "all"].set_index("model")["r"]
    assert r.idxmax() == "Llama 2 7B"
    assert r.max() > 0.95
    leads = mexa_1_alignment.share_leads(points, "Llama 2 7B")
    assert (leads["low"] > 0).all()
    assert leads["r"].to_numpy() == pytest.approx(r.max())


def test_accuracies_tell_how_many_questions_there_were() -> None:
    """Planted: nine shares of 40 and nine of 60 questions, as printed."""
    p = MexaTables()
    for task, n in (("Belebele", 40), ("m-ARC", 60)):
        p.table_1.loc[("Task_(eng)", task), p.models] = [round(k / n, 4) for k in range(7, 16)]
    fits = p.question_counts(90)
    assert fits.index[fits["Belebele"] == 9].tolist() == [40, 80]
    assert fits.index[fits["m-ARC"] == 9].tolist() == [60]


def test_shares_that_an_entry_leaves_by_a_loop() -> None:
    rng = np.random.default_rng(0)
    entries = pd.Series(rng.uniform(0, 0.9, 40).round(2), index=[f"l{i}" for i in range(40)])
    found = mexa_claims.shares_left(entries, 0.4822, 0.005, 0.00005)
    for name, entry in entries.items():
        fits = [k / 100 for k in range(101) if abs(k * 0.4822 / 100 - entry) <= 0.005 + 5e-7 * k]
        assert found.loc[name, "count"] == len(fits)
        if fits:
            assert found.loc[name, ["least", "most"]].tolist() == [min(fits), max(fits)]
        else:
            assert found.loc[name, ["least", "most"]].isna().all()
