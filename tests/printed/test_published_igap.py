"""The IGAP paper: what needs more than a formula, by hand; its claims are in its folder."""

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from printed.igap_claims import IgapTables
from xlx.results import paths

FOLDER = paths.PUBLISHED / "igap"


@pytest.fixture(scope="module")
def p() -> IgapTables:
    return IgapTables()


def test_a_divisor_is_one_that_gives_the_average(p: IgapTables) -> None:
    table = p.target_tables["PAWS-X"]  # written out: 6 targets, half a unit for each number
    for name, row in table.drop(columns=["avg", "accuracy"]).iterrows():
        fits = [k for k in (5, 6) if abs(row.sum() / k - table.loc[name, "avg"]) <= 0.05 + 0.3 / k]
        divisor = p.recomputed_averages.loc[("PAWS-X", name), "divisor"]
        assert " or ".join(map(str, fits)) == divisor


def test_half_widths_of_means_if_all_languages_err_on_the_same_examples(p: IgapTables) -> None:
    share = p.target_tables["XNLI"].loc["XLM-R"].drop(["avg", "accuracy"]) / 100
    widths = [196 * np.sqrt(x * (1 - x) / 2490) for x in share]
    half = p.recomputed_averages.loc["XNLI", "half"]
    assert half["XLM-R"] == pytest.approx(np.mean(widths))
    row = p.row_changes().loc[("XNLI", "XLM-R → InfoXLM")]
    assert float(row["widest"]) == pytest.approx(np.hypot(*half[["XLM-R", "InfoXLM"]]), abs=0.005)


def test_contrasts_have_languages_as_replicates(p: IgapTables) -> None:
    changes = p.row_changes()
    for title, first, second in (("PAWS-X", "InfoXLM", "XLM-R_large"),
                                 ("XNLI, algorithms", "vanilla", "xTune")):  # fmt: skip
        both = p.target_tables[title].drop(columns=["avg", "accuracy"])
        apart = both.loc[first] - both.loc[second]
        row = changes.loc[(title, f"{first} → {second}")]
        half = stats.t.ppf(0.975, len(apart) - 1) * apart.std() / np.sqrt(len(apart))
        assert (row["alike"], row["t"]) == pytest.approx((apart.mean(), half))


def test_random_orders_of_14_have_enough_pairs_right_in_fewer_than_1_of_20(p: IgapTables) -> None:
    """Orders by pairs that are right (Mahonian numbers), of 5 against all permutations."""
    orders = {1: np.ones(1)}
    for k in range(2, 15):
        orders[k] = np.convolve(orders[k - 1], np.ones(k))
    pairs = list(combinations(range(5), 2))
    counts = np.bincount([sum(o[a] < o[b] for a, b in pairs) for o in permutations(range(5))])
    assert orders[5].tolist() == counts.tolist()
    tail = orders[14][::-1].cumsum()[::-1] / orders[14].sum()
    assert np.argmax(tail < 0.05) == p["enough"] == 62


def test_a_sum_of_source_and_target_is_explained_as_one() -> None:
    ease = pd.Series(np.random.default_rng(0).normal(size=6), list("abcdef"))
    p = IgapTables()
    p.gap = pd.DataFrame({target: ease - ease[target] for target in ease.index})
    assert p.gap_by_ease.tolist() == pytest.approx([100, 100, -1])
