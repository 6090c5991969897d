"""The MEXA paper: what needs more than a formula, against loops written out."""

import pandas as pd
import pytest

import mexa_3_surface
from printed.mexa_claims import MexaTables
from xlx.results import paths


@pytest.fixture(scope="module")
def p() -> MexaTables:
    return MexaTables()


def test_the_lost_column_of_table_5_is_what_the_folder_has(p: MexaTables) -> None:
    derived = pd.read_csv(paths.PUBLISHED / "mexa" / "table5_implied_missing_column_DERIVED.csv")
    derived = derived.set_index(p.setting)["implied_missing_value_DERIVED_not_printed"]
    assert (derived - p.implied_ninth[derived.index]).abs().max() < 1e-9


def test_a_figure_of_scores_above_the_best_bag_counts_them(p: MexaTables) -> None:
    """Of bags that are made up; the notebook's tables hold the numbers of those of FLORES-200."""
    bags = pd.DataFrame({"words": 0.5, "characters": 0.1}, p.per_label.loc[p.belebele].index)
    points = mexa_3_surface.spelling_points(p, bags)
    assert len(points) == 9 * 116
    above = (p.per_label.loc[p.belebele, "Gemma 2 9B"] > 0.5).sum()
    assert points["panel"].cat.categories[0] == f"Gemma 2 9B: above in {above}"


def test_accuracies_tell_how_many_questions_there_were() -> None:
    """Planted: nine shares of 40 and nine of 60 questions, as printed."""
    p = MexaTables()
    for task, n in (("Belebele", 40), ("m-ARC", 60)):
        p.table_1.loc[("Task_(eng)", task), p.models] = [round(k / n, 4) for k in range(7, 16)]
    fits = p.question_counts(90)
    assert fits.index[fits["Belebele"] == 9].tolist() == [40, 80]
    assert fits.index[fits["m-ARC"] == 9].tolist() == [60]
