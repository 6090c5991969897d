"""Whole entities in IOB2 tags: what named entity recognition is scored by, for many probes at once.

An entity counts as found where exactly its words are marked, with its type. What begins and ends an
entity is decided as conlleval does (Tjong Kim Sang and De Meulder 2003), and seqeval after it: one
begins at every ``B-X``, and at an ``I-X`` that continues no entity of type X (after ``O``, after
another type, at the beginning of a sentence); it goes on for as long as ``I-X`` of its type follow.
So what a probe predicts need not be well-formed.

The ABX paper (sections 5.2, 5.3) gives accuracy of words, of which most are no entity: who says so
of all words is right on most, and finds nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from xlx.text.labelled import NER, Tagged


@dataclass(frozen=True)
class Spans:
    """Where entities are in rows of words: three arrays ``(..., n_words)``."""

    begins: np.ndarray  # whether an entity begins at a word
    kinds: np.ndarray  # the type of the word's tag, -1 for none
    ends: np.ndarray  # the word behind the last of what begins here; of other words no matter


def read_spans(tags: ArrayLike, sentences: ArrayLike) -> Spans:
    """The entities of rows of tags.

    ``tags``: whole numbers ``(..., n_words)``, indices into `labelled.NER`; ``sentences``:
    ``(n_words,)``, which sentence a word is in, words of one sentence side by side. ValueError for
    other numbers, or of another length.
    """
    tags, sentences = np.asarray(tags), np.asarray(sentences)
    if tags.dtype.kind not in "iu" or np.any((tags < 0) | (tags >= len(NER))):
        raise ValueError(f"tags are the numbers 0 to {len(NER) - 1}, of {' '.join(NER)}")
    if sentences.shape != tags.shape[-1:]:
        raise ValueError(
            f"tags of {tags.shape[-1:]} words and sentences of {sentences.shape}: there must be "
            "one sentence a word"
        )
    begun, kind = _parts()
    kinds, continues = kind[tags], np.zeros(tags.shape, dtype=bool)
    same_kind = (kinds[..., 1:] == kinds[..., :-1]) & (kinds[..., 1:] >= 0)
    same_sentence = sentences[1:] == sentences[:-1]
    continues[..., 1:] = same_kind & same_sentence & ~begun[tags[..., 1:]]
    # the next word that does not continue: the least of all such places from there on
    n = tags.shape[-1]
    places = np.where(continues, n, np.arange(n))
    following = np.minimum.accumulate(places[..., ::-1], axis=-1)[..., ::-1]
    ends = np.full(tags.shape, n)
    ends[..., :-1] = following[..., 1:]
    return Spans((kinds >= 0) & ~continues, kinds, ends)


@lru_cache(maxsize=1)
def _parts() -> tuple[np.ndarray, np.ndarray]:
    """Of each tag whether it is a B, and the number of its type, -1 of O."""
    kinds = list(dict.fromkeys(tag[2:] for tag in NER if tag != "O"))
    begun = np.array([tag.startswith("B-") for tag in NER])
    return begun, np.array([-1 if tag == "O" else kinds.index(tag[2:]) for tag in NER])


@dataclass(frozen=True)
class EntityTest:
    """Sentences in which entities are to be found: what is there, and where predictions belong."""

    gold: Spans
    sentences: np.ndarray  # (n_words,): of each word which sentence it is in
    rows: np.ndarray  # (k,): which of the words were predicted

    def counts(self, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Entities found, and predicted, ``(...)``, by tags ``(..., k)`` of the words of `rows`.

        Other words count as no part of an entity.
        """
        tags = np.full((*predicted.shape[:-1], len(self.sentences)), NER.index("O"))
        tags[..., self.rows] = predicted
        spans = read_spans(tags, self.sentences)
        return n_found(self.gold, spans), spans.begins.sum(axis=-1)


def entity_test(part: Tagged, places: Sequence[tuple[int, int]]) -> EntityTest:
    """All entities of a part, of which the words of ``places`` are predicted, in that order.

    ``places``: sentence and number of the word in it.
    """
    lengths = np.array([len(tags) for tags in part.tags])
    sentences = np.repeat(np.arange(len(lengths)), lengths)
    gold = read_spans([NER.index(tag) for tags in part.tags for tag in tags], sentences)
    sentence, word = np.array(places, dtype=np.intp).reshape(-1, 2).T
    return EntityTest(gold, sentences, (lengths.cumsum() - lengths)[sentence] + word)


def n_found(gold: Spans, predicted: Spans) -> np.ndarray:
    """How many entities of ``gold`` are in ``predicted``: same words, same type; ``(...)``.

    Both are of the same words; rows of either are broadcast.
    """
    same = gold.begins & predicted.begins & (gold.kinds == predicted.kinds)
    return (same & (gold.ends == predicted.ends)).sum(axis=-1)


def entity_f1(found: ArrayLike, predicted: ArrayLike, gold: ArrayLike) -> np.ndarray:
    """F1 of entities in [0, 1] from their numbers: found, predicted, and there are.

    The harmonic mean of precision and recall, 2 found / (predicted + gold): over all types
    together. 0 where none is there and none was predicted, as seqeval has it.
    """
    total = np.asarray(predicted) + np.asarray(gold)
    return 2 * np.asarray(found) / np.maximum(total, 1)
