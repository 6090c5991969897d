"""The MEXA paper: what needs more than a formula, against loops written out."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import mexa_3_surface
from printed.mexa_claims import MexaTables
from xlx.results import paths

HALF_4, HALF_2 = 0.00005, 0.005


@pytest.fixture(scope="module")
def p() -> MexaTables:
    return MexaTables()


def test_the_lost_column_of_table_5_is_what_the_folder_has(p: MexaTables) -> None:
    derived = pd.read_csv(paths.PUBLISHED / "mexa" / "table5_implied_missing_column_DERIVED.csv")
    derived = derived.set_index(p.setting)["implied_missing_value_DERIVED_not_printed"]
    assert (derived - p.implied_ninth[derived.index]).abs().max() < 1e-9
    assert p.implied_ninth.idxmax() == p.no_average
    assert p.digit_changes.iloc[:, 0].tolist() == [0.6994, 0.7094, 0.7194]


def test_p_values_are_those_of_a_correlation(p: MexaTables) -> None:
    x = np.random.default_rng(0).normal(size=(2, 33))
    r, expected = stats.pearsonr(x[0], x[1])
    table = MexaTables()
    table.files["table5"] = p.files["table5"].query("task == 'm-MMLU'").assign(value=r)
    assert table.p_values["p"].to_numpy() == pytest.approx(expected)
    assert set(table.p_values["n"]) == {33}


def test_models_are_set_against_the_best_bag(p: MexaTables) -> None:
    """Of bags that are made up; the notebook holds the numbers of those of FLORES-200."""
    bags = pd.DataFrame({"words": 0.5, "characters": 0.1}, p.per_label.loc[p.belebele].index)
    table = mexa_3_surface.above_spelling(p, bags)
    points = mexa_3_surface.spelling_points(p, bags)
    for model, scores in p.per_label.loc[p.belebele].items():
        above = [score > 0.5 for score in scores]
        width = [
            1.96 * ((x * (1 - x) + 0.25) / 100) ** 0.5 + HALF_2 / p.english[model] for x in scores
        ]
        beyond = [score - 0.5 > half for score, half in zip(scores, width, strict=True)]
        assert table.loc[model, ["above", "beyond luck"]].tolist() == [sum(above), sum(beyond)]
    assert len(points) == 9 * 116
    title = points["panel"].cat.categories[0]
    assert title == f"Gemma 2 9B: above in {table.loc['Gemma 2 9B', 'above']}"


def test_accuracies_tell_how_many_questions_there_were() -> None:
    """Planted: nine shares of 40 and nine of 60 questions, as printed."""
    p = MexaTables()
    for task, n in (("Belebele", 40), ("m-ARC", 60)):
        p.table_1.loc[("Task_(eng)", task), p.models] = [round(k / n, 4) for k in range(7, 16)]
    fits = p.question_counts(90)
    assert fits.index[fits["Belebele"] == 9].tolist() == [40, 80]
    assert fits.index[fits["m-ARC"] == 9].tolist() == [60]


def test_williams_test_has_the_worst_correlation_that_is_possible(p: MexaTables) -> None:
    row = p.cosine_tests.loc["Gemma 1 7B"]
    for r in (row["least r23"], row["most r23"]):
        matrix = [[1, row["MEXA"], row["cosine"]], [row["MEXA"], 1, r], [row["cosine"], r, 1]]
        assert np.linalg.det(matrix) == pytest.approx(0, abs=1e-12)
    assert row["largest p"] == pytest.approx(2 * stats.t.sf(row["least t"], 113))
