"""A training measured on its way, from its first step to the checkpoint that is chosen."""

import numpy as np
import pandas as pd
import pytest

from models_2_training import CourseRecipe, aligned_course, course_choices, translations
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


def test_each_rule_chooses_by_its_own_column() -> None:
    table = pd.DataFrame({
        "step": [0, 10, 20], "lens_ld": [0.9, 0.6, 0.7], "lens_md_like_length": [0.5, 0.6, 0.8],
        "loss": [1.0, 2.0, 3.0], "tried": [0.1, 0.4, 0.3],
    })  # fmt: skip
    found = course_choices(table, "tried")
    assert found["step"].tolist() == [10, 20, 0, 20]
    assert found["lost"].tolist() == pytest.approx([0, 0.1, 0.3, 0.1])


def test_one_language_is_no_translation() -> None:
    with pytest.raises(ValueError, match="two languages or more"):
        CourseRecipe(languages=("de",))
