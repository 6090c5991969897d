"""A bag of subwords and length alone, scored as a checkpoint is."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from tests.measures.test_comparisons import literal
from xlx.experiment import averages, scoring
from xlx.experiment.abx_scores import MATCHED
from xlx.experiment.scoring import BagOfSubwords
from xlx.measures import abx
from xlx.subjects import loading, states
from xlx.text.parallel import ParallelCorpus


def subword_bag(name: str, corpus: ParallelCorpus, **options: str):
    return scoring.subject_scores([BagOfSubwords(name)], corpus, **options)[0]


def length_alone(corpus: ParallelCorpus):
    return scoring.subject_scores([scoring.Length()], corpus)[0]


@pytest.fixture(scope="module")
def grouped(corpus: ParallelCorpus) -> ParallelCorpus:
    return replace(corpus, ids=tuple(f"{i // 3}:{i}" for i in range(10)))


def test_a_bag_is_what_its_counts_score(grouped: ParallelCorpus) -> None:
    bag = subword_bag("mini-xlmr", grouped)
    counts = states.bag_of_subwords(loading.load("mini-xlmr"), grouped)
    table = abx.exact(counts).table()
    ours = bag.table().drop(columns=["model", "checkpoint", "space"])
    for task in ("LD", "MD", "retrieval"):
        expected = table.loc[table["task"] == task, "score"]
        np.testing.assert_allclose(ours.loc[ours["task"] == task, "score"], expected, atol=1e-7)
    dense = {code: rows.toarray().astype(float) for code, rows in counts.items()}
    for task in ("LD", "MD"):
        pairs, whole = itertools.permutations(dense, 2), (range(10), np.ones((10, 10)))
        by_hand = np.mean([literal(dense, *pair, task, *whole) for pair in pairs])
        mean = averages.average(bag, task)
        assert mean.score == pytest.approx(by_hand)
        assert mean.error > 0
    assert (bag.model, bag.step, len(bag.layers)) == (scoring.BAG, 0, 1)
    assert {MATCHED, "MD, near", "MD, same document"} <= set(bag.tasks)


def test_a_centred_bag_has_lost_the_mean_of_each_language(grouped: ParallelCorpus) -> None:
    counts = states.bag_of_subwords(loading.load("mini-xlmr"), grouped)
    dense = {code: rows.toarray() for code, rows in counts.items()}
    expected = abx.exact({code: x - x.mean(axis=0) for code, x in dense.items()})
    bag = subword_bag("mini-xlmr", grouped, space="centred")
    assert bag.space == "centred"
    for task in ("LD", "MD"):
        np.testing.assert_allclose(bag.scores[task], expected.scores[task], atol=1e-2)
        assert averages.average(bag, task).score == pytest.approx(expected.scores[task].mean())
    with pytest.raises(ValueError, match="space"):
        subword_bag("mini-xlmr", grouped, space="upright")


def of_lengths(counts: dict[str, np.ndarray]) -> ParallelCorpus:
    """Sentences of so many characters, in documents of four."""
    n = len(next(iter(counts.values())))
    sentences = {code: tuple("x" * int(length) for length in row) for code, row in counts.items()}
    ids = tuple(f"{i // 4}:{i}" for i in range(n))
    return ParallelCorpus("toy", sentences, ids, ("",) * n, "none", "made up")


def test_sentences_of_one_length_are_told_apart_by_nothing() -> None:
    alike = length_alone(of_lengths({code: np.full(8, 7) for code in "ab"}))
    for task in ("LD", "MD", MATCHED):
        assert averages.average(alike, task).score == 0.5
