"""The checkpoints of a history in the order of training, and what has none."""

from pathlib import Path

import numpy as np
import pytest

from family.recipes import RECIPES
from xlx.experiment import abx_scores
from xlx.experiment.scoring import subject_scores
from xlx.results import paths
from xlx.subjects import identity
from xlx.text.parallel import ParallelCorpus


def test_a_history_is_in_the_order_of_training(tmp_path: Path) -> None:
    steps = (100, 0, 30)
    for step in steps:  # checkpoints are not opened
        (tmp_path / f"step-{step}").mkdir()
    history = abx_scores.history(str(tmp_path))
    assert [checkpoint.step for checkpoint in history] == [0, 30, 100]
    assert all(isinstance(checkpoint, identity.Checkpoint) for checkpoint in history)
    assert abx_scores.history(str(tmp_path), leave_out=[30, 0]) == history[2:]
    with pytest.raises(ValueError, match=r"no checkpoint of .* 7: choose 0, 30, 100"):
        abx_scores.history(str(tmp_path), leave_out=[30, 7])


def test_a_record_alone_is_a_history_where_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / identity.RECORD).write_text("step,fingerprint\n9,abc\n0,def\n")
    assert abx_scores.history(str(tmp_path)) == [str(tmp_path)]
    history = abx_scores.history(str(tmp_path), recorded=True)
    assert [(checkpoint.step, checkpoint.recorded) for checkpoint in history] == [
        (0, "def"),
        (9, "abc"),
    ]
    assert abx_scores.history(str(tmp_path), recorded=True, leave_out=[0]) == history[1:]


def test_a_model_without_a_history_is_itself(corpus: ParallelCorpus, tmp_path: Path) -> None:
    last = paths.MODELS / "mini-infoxlm" / f"step-{RECIPES['mini-infoxlm'].steps:06d}"
    (tmp_path / "mine").symlink_to(last)
    (name,) = abx_scores.history(str(tmp_path / "mine"))
    alone, of_series = subject_scores([name, "mini-infoxlm"], corpus)
    assert (alone.model, alone.step) == ("mine", 0)
    assert (of_series.model, of_series.step) == ("mini-infoxlm", RECIPES["mini-infoxlm"].steps)
    for task, scores in of_series.scores.items():
        np.testing.assert_array_equal(alone.scores[task], scores)
    with pytest.raises(identity.NoHistoryError):
        abx_scores.history(str(last), leave_out=[0])
