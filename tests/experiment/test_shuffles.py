"""Corpora that are spoiled on purpose."""

from dataclasses import replace

import numpy as np
import pytest

import abx_1_validation
from xlx.experiment import scoring
from xlx.measures import abx
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


def of_parts(text: ParallelCorpus, *parts: str) -> dict[str, np.ndarray]:
    """Vectors that hold a language, a topic, a length, a meaning: as asked for."""
    rng = np.random.default_rng(1)
    known = {
        "meaning": dict.fromkeys("abc", rng.normal(size=(N, 8))),
        "topic": dict.fromkeys("abc", rng.normal(size=(15, 8))[DOCUMENTS]),
        "language": {code: np.tile(rng.normal(size=8), (N, 1)) for code in "abc"},
        "length": {
            code: np.log([*map(len, text.sentences[code])])[:, None] * np.eye(8)[0]
            for code in "abc"
        },
    }
    noise = {code: 0.1 * rng.normal(size=(N, 8)) for code in "abc"}
    return {code: (sum(known[part][code] for part in parts) + noise[code])[None] for code in "abc"}


def scores(states: dict[str, np.ndarray], pairs: list | None = None) -> dict[str, float]:
    exact = abx.exact(states, pairs=pairs)
    return {task: float(exact.scores[task].mean()) for task in ("LD", "MD")}


def spoiled_scores(
    states: dict[str, np.ndarray], text: ParallelCorpus, how: str
) -> dict[str, float]:
    spoiled, _, pairs = abx_1_validation.spoiled(states, text, how, seed=0)
    return scores(spoiled, pairs)


@pytest.mark.parametrize(
    ("parts", "task", "fall", "stay"),
    [
        (("meaning",), "MD", ["translations", "documents", "lengths"], ["labels"]),
        (("topic",), "MD", ["translations", "lengths"], ["documents", "labels"]),
        (("language",), "LD", ["labels"], ["translations", "documents", "lengths"]),
    ],
)
def test_a_score_falls_where_what_it_is_of_is_taken_away(
    text: ParallelCorpus, parts: tuple[str, ...], task: str, fall: list[str], stay: list[str]
) -> None:
    states = of_parts(text, *parts)
    assert scores(states)[task] > 0.85
    for how in fall:
        assert spoiled_scores(states, text, how)[task] < 0.6, how
    for how in stay:
        spoiled = spoiled_scores(states, text, how)[task]
        assert spoiled == pytest.approx(scores(states)[task], abs=0.06), how


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
