"""Corpora that are spoiled on purpose."""

from dataclasses import replace

import numpy as np
import pytest

import abx_1_validation
from xlx.experiment import scoring
from xlx.text.parallel import ParallelCorpus

N = 60
DOCUMENTS = np.repeat(np.arange(15), 4)


@pytest.fixture(scope="module")
def text() -> ParallelCorpus:
    """Sixty translations about as long as each other, in documents of four."""
    rng = np.random.default_rng(0)
    counts = rng.integers(20, 400, size=N)
    sentences = {
        code: tuple("x" * int(n) for n in counts * rng.uniform(0.95, 1.05, size=N))
        for code in "abc"
    }
    ids = tuple(f"{document}:{i}" for i, document in enumerate(DOCUMENTS))
    return ParallelCorpus("toy", sentences, ids, ("",) * N, "none", "made up")


def test_sentences_stay_whole_and_change_as_they_should(text: ParallelCorpus) -> None:
    states = {code: np.arange(N)[None, :, None] + 100 * k for k, code in enumerate("abc")}
    moved = {how: abx_1_validation.spoiled(states, text, how, seed=3) for how in scoring.SHUFFLES}
    order = {}
    for how in ("translations", "documents", "lengths"):
        spoiled, kept, pairs = moved[how]
        assert pairs == [("a", "b"), ("b", "c")]  # b is the one that is moved
        assert kept.tolist() == list(range(N))
        for code in "ac":
            assert (spoiled[code] == states[code]).all()
        order[how] = spoiled["b"][0, :, 0] - 100
        assert sorted(order[how]) == list(range(N))
        assert (order[how] != np.arange(N)).all()
    assert (DOCUMENTS[order["documents"]] == DOCUMENTS).all()
    assert (DOCUMENTS[order["translations"]] == DOCUMENTS).mean() < 0.3
    swapped, counts = order["lengths"], np.array([*map(len, text.sentences["b"])])
    assert (swapped[swapped] == np.arange(N)).all()
    assert np.median(np.abs(counts[swapped] / counts - 1)) < 0.1
    labels = np.stack([moved["labels"][0][code][0, :, 0] for code in "abc"])
    assert (labels % 100 == np.arange(N)).all()
    assert (np.sort(labels // 100, axis=0) == np.arange(3)[:, None]).all()
    assert len(moved["labels"][2]) == 3


def test_a_document_of_one_sentence_is_left_out(text: ParallelCorpus) -> None:
    alone = replace(text, ids=("alone:0", *text.ids[1:]))
    states = {code: np.zeros((1, N, 2)) for code in "abc"}
    spoiled, kept, _ = abx_1_validation.spoiled(states, alone, "documents", seed=0)
    assert kept.tolist() == list(range(1, N))
    assert spoiled["a"].shape == (1, N - 1, 2)
    each = replace(text, ids=tuple(map(str, range(N))))
    with pytest.raises(ValueError, match="toy: no document has two sentences"):
        abx_1_validation.spoiled(states, each, "documents", seed=0)
