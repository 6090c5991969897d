"""Masks on B by their definition, and what they take away."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from xlx.experiment import abx_scores
from xlx.measures import abx
from xlx.subjects import loading, states
from xlx.text.parallel import ParallelCorpus


@pytest.fixture(scope="module")
def grouped(corpus: ParallelCorpus) -> ParallelCorpus:
    """Four documents in two domains."""
    ids = tuple(f"{document}:{i}" for i, document in enumerate("ppqqqrrrst"))
    return replace(corpus, ids=ids, domains=tuple("nnnnnsssss"))


def every_mask(corpus: ParallelCorpus) -> dict[str, abx_scores.Mask]:
    names = abx_scores.standard_masks(corpus)
    return abx_scores.masks_of(corpus, names, lambda: loading.load("mini-xlmr"))


def test_masks_are_those_of_their_definition(grouped: ParallelCorpus) -> None:
    masks = every_mask(grouped)
    expected = {"like length", "near", "same document", "other document", "same domain"}
    assert set(masks) == expected
    bags = states.bag_of_subwords(loading.load("mini-xlmr"), grouped)
    for code, sentences in grouped.sentences.items():
        dense = bags[code].toarray()
        norms = np.linalg.norm(dense, axis=1)
        for a, b in np.ndindex(10, 10):
            if a == b:
                continue
            count = len(sentences[a]), len(sentences[b])
            documents = [grouped.ids[i][0] for i in (a, b)]
            assert masks["like length"][code][a, b] == (abs(count[1] - count[0]) <= 0.1 * count[0])
            assert masks["same document"][code][a, b] == (documents[0] == documents[1])
            assert masks["other document"][code][a, b] == (documents[0] != documents[1])
            same = grouped.domains[a] == grouped.domains[b]
            assert masks["same domain"][code][a, b] == same
        cosines = dense @ dense.T / np.outer(norms, norms)
        near = abx_scores.subword_neighbours(loading.load("mini-xlmr"), grouped, k=3)[code]
        for a in range(10):
            others = np.delete(cosines[a], a)
            third = np.sort(others)[-3]
            wanted = [b for b in range(10) if b != a and cosines[a, b] >= third - 1e-9]
            assert np.flatnonzero(near[a]).tolist() == wanted


def test_all_that_are_as_near_as_the_last_are_near() -> None:
    counts = sparse.csr_array(np.array([[1, 0, 0], [1, 1, 0], [1, 0, 1], [0, 0, 1]]))
    assert abx_scores._neighbours(counts, 1)[0].tolist() == [False, True, True, False]


def test_a_corpus_without_documents_or_domains_has_no_such_masks(corpus: ParallelCorpus) -> None:
    masks = every_mask(corpus)
    assert set(masks) == {"like length", "near"}


def test_what_a_document_gives_away_is_not_there_within_it() -> None:
    """Vectors that hold the document alone: MD is high against others, a tie within."""
    rng = np.random.default_rng(0)
    documents = tuple("aaaabbbbcccc")
    topic = dict(zip("abc", rng.normal(size=(3, 5)), strict=True))
    states = dict.fromkeys(["en", "de"], np.stack([topic[name] for name in documents]))
    same = abx_scores.label_shared(documents)
    masks = {"same": dict.fromkeys(states, same), "other": dict.fromkeys(states, ~same)}
    scores = abx.exact(states, masks=masks).scores
    assert scores["MD, same"].tolist() == [[[0.5, 0.5]]]
    assert scores["MD, other"].tolist() == [[[1.0, 1.0]]]
