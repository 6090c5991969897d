"""The within/across paper: what follows from its tables, by hand; a script that counts pairs."""

import numpy as np
import pandas as pd
import pytest
import yaml

from printed.mixing_claims import PrintedScores
from xlx.results import paths

FOLDER = paths.PUBLISHED / "within_across"


@pytest.fixture(scope="module")
def p() -> PrintedScores:
    return PrintedScores()


def test_languages_are_those_of_the_settings(p: PrintedScores) -> None:
    settings = yaml.safe_load((FOLDER / "settings.yaml").read_text(encoding="utf-8"))["languages"]
    assert all(set(table) == set(settings[task]) for (task, _), table in p.scores.items())
    assert all(set(cells) == set(settings[task]) for (task, _), cells in p.grids.items())
    assert p.grids["PI", "InfoXLM"].loc["es", "en"] == 89.3  # Figure 7 has sentence 2 in its rows


def test_a_share_of_the_first_class_is_one_that_gives_all_scores(p: PrintedScores) -> None:
    shares = p.q_range
    assert (shares["q from"] <= shares["q to"]).tolist() == [True, True, False]
    for model, row in shares.iloc[:2].iterrows():
        score, first, second = (part["PI", model] for part in (p.scores, p.first, p.second))
        for q, fits in ((row["q from"], True), (row["q to"], True), (row["q to"] + 0.001, False)):
            off = (q * first + (1 - q) * second - score).abs().max(axis=None)
            assert (off <= 0.1 + 1e-9) == fits


def test_a_term_for_the_first_part_is_explained_by_it() -> None:
    """Planted grids: a term for the first part alone, and the same turned round."""
    p, n = PrintedScores(), 6
    rng = np.random.default_rng(0)
    codes = ["en", *(f"l{k}" for k in range(1, n))]
    first = pd.DataFrame(np.repeat(rng.normal(size=(n, 1)), n, axis=1), codes, codes)
    p.grids = {("NLI", "first"): first, ("NLI", "turned"): first.T}
    table = p.explained_by_sides.droplevel("task")
    assert table.loc["first", "part 1"] == pytest.approx(1)
    assert table.loc["turned", "part 2"] == pytest.approx(1)
    assert table.loc["first", "part 2"] == pytest.approx(table.loc["turned", "part 1"])
    assert table.loc["first", "part 2"] < 0.5


def test_cells_as_high_as_within_of_a_language_by_a_loop(p: PrintedScores) -> None:
    for (task, model), cells in p.grids.items():
        high = [
            (a, b)
            for a in cells
            for b in cells
            if a != b and cells.loc[a, b] >= min(cells.loc[a, a], cells.loc[b, b])
        ]
        row = p.not_below_both.loc[(task, model)]
        assert row["not below both"] == len(high)
        assert row["of them en second"] == sum(b == "en" for _, b in high)
        assert row["of them en first"] == sum(a == "en" for a, _ in high)


def test_row_and_column_of_a_language_follow_from_table_1() -> None:
    """Of a planted grid: 28 across + 2 within is 15 times row and column together."""
    rng = np.random.default_rng(1)
    grid = rng.uniform(40, 80, (15, 15))
    within, off = np.diag(grid), ~np.eye(15, dtype=bool)
    across = [(grid[k][off[k]].sum() + grid[:, k][off[k]].sum()) / 28 for k in range(15)]
    p = PrintedScores()
    codes = list(p.scores["NLI", "mBERT"])
    p.scores["NLI", "mBERT"] = pd.DataFrame([within, across], ["within", "across"], codes)
    p.baseline = p.baseline.copy()
    row = pd.Series(grid.mean(axis=1), codes)
    p.baseline["*-l2"] = row[p.l1].to_numpy()
    column = pd.Series(grid.mean(axis=0), codes)[p.sides.index]
    np.testing.assert_allclose(p.sides["other side"], column)
    assert p.mean_of_cells == pytest.approx(grid.mean())
    np.testing.assert_allclose(p.right["*-l2"], column[p.l2])
    np.testing.assert_allclose(p.right["l1-*"], row[p.l1])
