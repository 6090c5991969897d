"""Tables of scores over training and depth."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd
import pytest

from family.recipes import RECIPES
from shared import abx_tables
from xlx.experiment import surface
from xlx.experiment.abx_scores import SPACES, CheckpointScores, checkpoint_scores
from xlx.experiment.averages import average, averaged_scores
from xlx.text.parallel import ParallelCorpus

NAME = "mini-infoxlm"


@pytest.fixture(scope="module")
def history(grouped: ParallelCorpus) -> list[CheckpointScores]:
    between = RECIPES[NAME].checkpoint_steps()[1:-1]
    ((first, last),) = abx_tables.scored_series([NAME], grouped, leave_out=between)
    return [first, last]


def test_a_series_is_scored_in_the_order_of_training(history: Sequence[CheckpointScores]) -> None:
    assert [of.step for of in history] == [0, RECIPES[NAME].steps]


def test_pairs_are_those_named_with_x_in_the_first_language(
    history: Sequence[CheckpointScores],
) -> None:
    table = abx_tables.pair_courses(history[-1:], "en", ["fr", "de"]).reset_index()
    assert set(table["other"]) == {"de", "fr"}
    assert set(table["task"]) == set(abx_tables.DRAWN)
    scores = history[-1].table()
    row = table.query("task == 'LD' and other == 'de'").iloc[0]
    of_pair = scores.query(
        "language_1 == 'de' and language_2 == 'en' and x_language == 'en' and task == 'LD'"
    )
    assert [row[layer] for layer in of_pair["layer"]] == pytest.approx(of_pair["score"].tolist())


def test_surface_has_lines_for_every_model(
    history: Sequence[CheckpointScores], grouped: ParallelCorpus
) -> None:
    lines = abx_tables.surface_lines([NAME], history[-1:], grouped)
    assert set(lines[surface.BAG]["task"]) == set(abx_tables.DRAWN)
    assert set(lines[surface.LENGTH_ALONE]["task"]) == {"MD"}
    assert {model for table in lines.values() for model in table["model"]} == {history[-1].model}


def test_spaces_and_what_is_uncut(
    history: Sequence[CheckpointScores], grouped: ParallelCorpus
) -> None:
    untrained = abx_tables.untrained_states([NAME, NAME])
    assert [state.step for state in untrained] == [0]
    in_spaces = abx_tables.space_scores([NAME, *untrained], grouped)
    table = abx_tables.space_table(in_spaces)
    assert len(table) == 2 * len(SPACES) * len(abx_tables.DRAWN)
    for space, scored in in_spaces.items():
        for of in scored:
            first = float(average(of, "LD", layers=[0]).score)
            assert table.loc[("LD", of.model, of.step, space), 0] == pytest.approx(first)
    bags = abx_tables.centred_bags([NAME], history[-1:], grouped)
    line = abx_tables.surface_lines([NAME], history[-1:], grouped)[surface.BAG]
    raw = line.set_index("task")["score"]
    name = history[-1].model
    pd.testing.assert_series_equal(bags.loc[name, "raw"], raw, check_names=False, check_like=True)
    assert (bags.loc[name, "centred"] != raw).any()
    whole = abx_tables.uncut_differences([NAME], history[-1:], grouped)
    pd.testing.assert_series_equal(whole["all", 10], whole["uncut", 10], check_names=False)


def test_a_domain_is_scored_alone(grouped: ParallelCorpus) -> None:
    halves = replace(grouped, domains=("news",) * 6 + ("speech",) * 2 + ("alone",) * 2)
    table = abx_tables.domain_scores([NAME], halves, fewest=2)
    assert table.index.tolist() == [(NAME, "news", 6)]  # the others are of one document
    (alone,) = checkpoint_scores([NAME], halves.drop({6, 7, 8, 9}))
    assert abx_tables.domain_scores([NAME], halves).empty
    mean = float(average(alone, "MD").score)
    assert table.loc[(NAME, "news", 6), ("MD", "score")] == pytest.approx(mean)


def test_scores_within_some_languages(history: Sequence[CheckpointScores]) -> None:
    table = abx_tables.scores_within(history, ["de", "en"], embedding_layer=False)
    of_last = history[-1].scores
    expected = of_last.scores["MD"][1:, of_last.pairs.index(("de", "en"))].mean()
    row = table.query("task == 'MD' and checkpoint > 0").iloc[0]
    assert row["score"] == pytest.approx(expected)
    assert len(table) == 2 * len(abx_tables.DRAWN)
    whole = abx_tables.scores_within(history, ["de", "en", "fr"], by=["layer"])
    same = averaged_scores(history, abx_tables.DRAWN, by=["layer"])
    pd.testing.assert_series_equal(
        whole["score"].sort_values(ignore_index=True), same["score"].sort_values(ignore_index=True)
    )


def test_claims_of_several_series(history: Sequence[CheckpointScores]) -> None:
    table = abx_tables.claims_of_courses([history, history], seed=1)
    assert len(table) == 2 * len(table.index.unique())
    rows: Mapping[str, float] = table["difference"].xs(history[-1].model).groupby("claim").first()
    change = average(history[-1], "MD") - average(history[0], "MD")
    risen = rows["MD rises from the first to the last checkpoint"]
    assert risen == pytest.approx(float(change.score))
