"""Entities in IOB2 tags against conlleval's rules written out and cases by hand."""

import numpy as np
import pytest

from xlx.experiment import probing
from xlx.text.labelled import NER


def literal(tags: list[str]) -> set[tuple[str, int, int]]:
    """Type, first word and last of each entity of one sentence, one word after the other."""
    found, open_kind, first = set(), None, 0
    for place, tag in enumerate([*tags, "O"]):
        prefix, kind = (tag, None) if tag == "O" else tag.split("-")
        if open_kind is not None and (prefix != "I" or kind != open_kind):
            found.add((open_kind, first, place - 1))
            open_kind = None
        if kind is not None and open_kind is None:
            open_kind, first = kind, place
    return found


def literal_f1(gold: list[list[str]], guessed: list[list[str]]) -> float:
    """F1 of entities over sentences, as conlleval counts: type, first word and last agree."""
    there, other = (
        {(row, *entity) for row, tags in enumerate(rows) for entity in literal(tags)}
        for rows in (gold, guessed)
    )
    return 2 * len(there & other) / (len(there) + len(other))


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gold tags, predictions (2 × 3 rows, half of them right), sentences of 1 to 6 words."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 7, 40)
    gold = rng.integers(0, 7, lengths.sum())
    predicted = rng.integers(0, 7, (2, 3, len(gold)))
    predicted = np.where(rng.random(predicted.shape) < 0.6, gold, predicted)
    return gold, predicted, np.repeat(np.arange(40), lengths)


def by_sentence(tags: np.ndarray, sentences: np.ndarray) -> list[list[str]]:
    return [[NER[tag] for tag in tags[sentences == s]] for s in range(sentences[-1] + 1)]


@pytest.mark.parametrize("seed", range(5))
def test_counts_and_f1_are_the_literal_ones(seed: int) -> None:
    gold, predicted, sentences = drawn(seed)
    there = probing.read_spans(gold, sentences)
    test = probing.EntityTest(there, sentences, np.arange(len(gold)))
    found, n_guessed = test.counts(predicted)
    n_there = there.begins.sum()
    f1 = probing.entity_f1(found, n_guessed, n_there)
    assert found.shape == f1.shape == (2, 3)
    own = by_sentence(gold, sentences)
    assert n_there == sum(len(literal(tags)) for tags in own)
    for row in np.ndindex(2, 3):
        other = by_sentence(predicted[row], sentences)
        both = [(literal(a), literal(b)) for a, b in zip(own, other, strict=True)]
        assert found[row] == sum(len(a & b) for a, b in both)
        assert n_guessed[row] == sum(len(b) for _, b in both)
        assert f1[row] == pytest.approx(literal_f1(own, other))
