"""What predicts transfer from a source to a target."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

import abx_6_transfer
from xlx.experiment.abx_scores import CheckpointScores
from xlx.measures import abx

PAIRS = (("a", "b"), ("a", "c"), ("b", "c"))
CODES = ("es", "en", "fr")


def checkpoint(rng: np.random.Generator, codes: Sequence[str] = "abc") -> CheckpointScores:
    scores = {task: rng.uniform(size=(3, len(PAIRS), 2)) for task in ("LD", "MD")}
    called = tuple(tuple(codes["abc".index(name)] for name in pair) for pair in PAIRS)
    pairs = abx.PairScores(called, (0, 1, 2), 5, scores, {})
    return CheckpointScores("m", 7, "raw", pairs, {}, {}, {}, ())


def test_scores_of_ordered_pairs() -> None:
    of = checkpoint(np.random.default_rng(0))
    table = abx_6_transfer.ordered_pair_scores([of]).set_index(["source", "target"])
    assert len(table) == 6
    for column, pair in enumerate(PAIRS):
        for side, target in enumerate(pair):  # X in the first language, in the second
            source = pair[1 - side]
            for task, scores in of.scores.scores.items():
                row = table.loc[(source, target)]
                assert row[f"{task}, target"] == pytest.approx(scores[:, column, side].mean())
                assert row[task] == pytest.approx(scores[:, column].mean())
    without = abx_6_transfer.ordered_pair_scores([of], embedding_layer=False)
    expected = of.scores.scores["LD"][1:, 0].mean()
    assert without.set_index(["source", "target"]).loc[("b", "a"), "LD"] == pytest.approx(expected)


def test_scores_stand_beside_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    model, bag = (checkpoint(np.random.default_rng(seed), CODES) for seed in (0, 1))
    monkeypatch.setattr(abx_6_transfer, "subword_bag", lambda name, corpus: bag)
    rows = [(one, other) for one in CODES for other in CODES]
    accuracy = pd.DataFrame(rows, columns=["source", "target"]).assign(model="m", accuracy=0.5)
    found = abx_6_transfer.pairs_with_scores(accuracy, ["m"], [model], None, False)
    assert len(found) == 6  # of a language with itself there is no score
    row = found.set_index(["source", "target"]).loc[("fr", "es")]
    assert row["kinship"] == 7
    assert row["LD"] == pytest.approx(model.scores.scores["LD"][1:, 1].mean())
    assert row["bag MD"] == pytest.approx(bag.scores.scores["MD"][:, 1].mean())
