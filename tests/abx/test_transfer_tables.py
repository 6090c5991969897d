"""What predicts transfer from a source to a target."""

import numpy as np
import pytest

from xlx.abx import discrimination, transfer_tables
from xlx.abx.checkpoint_scores import CheckpointScores

PAIRS = (("a", "b"), ("a", "c"), ("b", "c"))


def checkpoint(rng: np.random.Generator) -> CheckpointScores:
    scores = {task: rng.uniform(size=(3, len(PAIRS), 2)) for task in ("LD", "MD")}
    pairs = discrimination.PairScores(PAIRS, (0, 1, 2), 5, scores, {})
    return CheckpointScores("m", 7, "raw", pairs, {}, {}, {}, ())


def test_scores_of_ordered_pairs() -> None:
    of = checkpoint(np.random.default_rng(0))
    table = transfer_tables.ordered_pair_scores([of]).set_index(["source", "target"])
    assert len(table) == 6
    for column, pair in enumerate(PAIRS):
        for side, target in enumerate(pair):  # X in the first language, in the second
            source = pair[1 - side]
            for task, scores in of.scores.scores.items():
                row = table.loc[(source, target)]
                assert row[f"{task}, target"] == pytest.approx(scores[:, column, side].mean())
                assert row[task] == pytest.approx(scores[:, column].mean())
    without = transfer_tables.ordered_pair_scores([of], embedding_layer=False)
    expected = of.scores.scores["LD"][1:, 0].mean()
    assert without.set_index(["source", "target"]).loc[("b", "a"), "LD"] == pytest.approx(expected)
