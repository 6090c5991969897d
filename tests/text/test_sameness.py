"""Tasks of overlap alone: balanced, parallel, and no easier by the surface."""

from collections import Counter

import numpy as np
import pytest

from xlx.text import examples, parallel
from xlx.text.examples import aligned
from xlx.text.files import TextError
from xlx.text.parallel import ParallelCorpus


def test_same_or_other_is_balanced_and_parallel() -> None:
    corpus = parallel.load("flores200-100").select(["en", "de"])
    sets = aligned(examples.same_or_other(corpus, seed=3))
    english = sets["en"]
    assert len(english) == 2 * len(corpus)
    same = english.labels == 1
    for one, other, label in zip(english.first, english.second, english.labels, strict=True):
        assert (one == other) == (label == 1)
    assert Counter(np.array(english.second)[same]) == Counter(np.array(english.second)[~same])
    german = corpus.sentences["de"]
    places = [corpus.sentences["en"].index(text) for text in english.second]
    assert sets["de"].second == tuple(german[i] for i in places)
    assert english.text_hash() == examples.same_or_other(corpus, 4)["en"].text_hash()
    rounds = [examples.same_or_other(corpus, seed, alike=False)["en"] for seed in (3, 3, 4)]
    assert rounds[0].text_hash() == rounds[1].text_hash() != rounds[2].text_hash()


def test_other_is_the_nearest_of_few() -> None:
    texts = ["One of 20", "A sentence that runs on", "Two of 30", "It is one that runs on"]
    corpus = ParallelCorpus("four", {"en": tuple(texts)}, tuple("abcd"), ("",) * 4, "CC0", "")
    others = examples.same_or_other(corpus, 0)["en"].second[::2]
    assert others == (texts[2], texts[3], texts[0], texts[1])


def test_no_sentence_of_same_or_other_is_in_both_parts() -> None:
    corpus = parallel.load("flores200-100").select(["en", "de"])
    train, test = examples.same_or_other_parts(corpus, "en", 40, 20, seed=1)
    assert (len(train["de"]), len(test["de"])) == (40, 20)
    assert not {*train["en"].first, *train["en"].second} & {*test["en"].first, *test["en"].second}
    longest = max(len(text) for text in train["en"].first + test["en"].first)
    assert longest == sorted(len(text) for text in corpus.sentences["en"])[29]
    with pytest.raises(TextError, match="need 150"):
        examples.same_or_other_parts(corpus, "en", 200, 100, seed=1)
