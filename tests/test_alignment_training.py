"""A training measured on its way, from its first step to the checkpoint that is chosen."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from models_1_family import (
    APART,
    TASKS,
    CourseRecipe,
    aligned_course,
    course_changes,
    course_scores,
    over_seeds,
    translations,
)
from xlx.results import work

SMALL = CourseRecipe(
    languages=("de", "en"), n_lines=32, steps=4, every=2, pairs=8, max_length=16, n_positions=12
)


def test_a_course_has_a_row_an_evaluation_and_clocks_do_not_count() -> None:
    table = aligned_course(SMALL)
    assert table["step"].tolist() == [0, 2, 4]
    scores = [name for name in table if name.startswith(("lens_", "tried_"))]
    assert {"lens_ld", "tried_retrieval"} <= set(scores)
    assert table["loss"].between(0, 2 * np.log(16)).all()
    assert (table["lens_seconds"] > 0).all()
    assert (table["lens_seconds"] < table["seconds"]).all()
    assert table["lens_md"].nunique() > 1  # the model changes
    kind = work.KINDS["alignment-course"]
    assert kind.difference(table, table.assign(seconds=1.0)) == 0
    assert kind.difference(table, table.assign(loss=table["loss"] + 1)) == pytest.approx(1)


def test_a_line_is_learnt_once_and_nothing_held_out() -> None:
    learnt, held_out = translations(SMALL)
    assert len(learnt) == 32
    assert len({sentence for pair in learnt for sentence in pair}) == 64
    assert not {x for pair in learnt for x in pair} & {x for pair in held_out for x in pair}


def test_shuffled_translations_are_the_same_sentences_and_none_a_translation() -> None:
    (learnt, held_out), (shuffled, held) = (
        translations(replace(SMALL, shuffled=x)) for x in (False, True)
    )
    assert [one for one, _ in shuffled] == [one for one, _ in learnt]
    assert sorted(other for _, other in shuffled) == sorted(other for _, other in learnt)
    assert not set(learnt) & set(shuffled)
    assert held_out == held


def test_changes_have_intervals_over_seeds() -> None:
    runs = [(1, 0.9, 0.8), (2, 0.9, 0.6), (3, 0.8, 0.7)]
    rows = [
        {"learnt": "translations", "seed": seed, "step": step}
        | {f"{start}{task}": score for start in ("lens_", "tried_") for task in TASKS}
        for seed, *scores in runs
        for step, score in enumerate(scores)
    ]
    changes = course_changes(course_scores(pd.DataFrame(rows)))
    row = changes.set_index(["text", "task"]).loc[("tried", "LD")]
    reach = 4.302653 * np.std([-0.1, -0.3, -0.1], ddof=1) / np.sqrt(3)  # Student's t, 2 df
    assert row[["score", "low"]].tolist() == pytest.approx([-1 / 6, -1 / 6 - reach], rel=1e-5)
    shuffled = [row | {"learnt": "shuffled translations"} for row in rows]
    both = course_changes(course_scores(pd.DataFrame([*rows, *shuffled]))).set_index("learnt")
    assert (both.loc[APART, ["score", "low", "high"]] == 0).all(axis=None)
    assert over_seeds(pd.Series([0.5])).isna().tolist() == [False, True, True]
