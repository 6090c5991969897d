"""Seed dictionaries: files, pairs found in parallel lines, held-out pairs."""

import math
from pathlib import Path

import numpy as np
import pytest

from xprobe.word_spaces import (
    Dictionary,
    OfFile,
    WordVectors,
    WordVectorsError,
    held_out_pairs,
    induced,
)


def vectors(language: str, words: str) -> WordVectors:
    own = tuple(words.split())
    return WordVectors(language, own, np.ones((len(own), 2), np.float32))


EN = vectors("en", "the a cat dog house also berlin big")
DE = vectors("de", "der ein haus katze hund also berlin groß")


def of(pairs: list[tuple[int, int]]) -> Dictionary:
    return Dictionary.of(pairs, "by hand")


def in_words(found: Dictionary) -> list[tuple[str, str]]:
    return [(EN.words[a], DE.words[b]) for a, b in found.pairs.tolist()]


# --- files ---


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_dictionary_file_and_what_it_has_no_vectors_for(tmp_path: Path) -> None:
    path = written(
        tmp_path / "en-de.txt",
        "cat katze\nhouse\thaus\nbig groß\nbig dick\nbig fett\n"
        "whale hund\nwhale wal\n\ncat  katze\n",
    )
    found = OfFile(path).pairs(EN, DE)
    assert in_words(found) == [("cat", "katze"), ("house", "haus"), ("big", "groß")]
    assert found.missing == {"source": 1, "target": 2, "both": 1}
    assert found.origin == "en-de.txt"


@pytest.mark.parametrize("line", ["cat", "cat die katze"])
def test_a_malformed_line_is_named(tmp_path: Path, line: str) -> None:
    path = written(tmp_path / "a.txt", f"the der\n\n{line}\n")
    with pytest.raises(WordVectorsError, match=rf"a\.txt, line 3: found \d words in '{line}'"):
        OfFile(path).pairs(EN, DE)


def test_a_file_without_a_word_that_has_vectors(tmp_path: Path) -> None:
    path = written(tmp_path / "a.txt", "whale wal\ncat kater\n")
    with pytest.raises(
        WordVectorsError,
        match=r"a\.txt: .*, 0 .*\(source\), 1 .*\(target\), 1 without a vector \(both\)",
    ):
        OfFile(path).pairs(EN, DE)
    with pytest.raises(FileNotFoundError, match=r"b\.txt is not there: MUSE's are at"):
        _ = OfFile(tmp_path / "b.txt").about


# --- parallel lines ---

LINES = [
    ("the cat", "der katze"),
    ("the dog", "der hund"),
    ("the house", "der haus"),
    ("a cat", "ein katze"),
    ("a dog", "ein hund"),
    ("the house berlin", "der haus berlin"),
    ("the cat cat unheard", "der katze ungehört"),
    ("a berlin", "ein berlin"),
    ("dog", "hund"),
    ("a house big", "haus groß"),
]
OURS, THEIRS = ([line[side].split() for line in LINES] for side in (0, 1))


def g2_in_words(a: str, b: str) -> float:
    """Dunning's statistic of a pair of words, cell by cell."""
    n, total = len(LINES), 0.0
    for with_a in (True, False):
        for with_b in (True, False):
            seen = sum(
                (a in x) == with_a and (b in y) == with_b for x, y in zip(OURS, THEIRS, strict=True)
            )
            by_a = sum((a in x) == with_a for x in OURS)
            by_b = sum((b in y) == with_b for y in THEIRS)
            if seen:
                total += 2 * seen * math.log(seen * n / (by_a * by_b))
    return total


def linked_in_words(min_count: int) -> list[tuple[str, str]]:
    """Competitive linking, by always looking for the strongest pair that is left."""
    n, left, found = len(LINES), {}, []
    for a in EN.words:
        for b in DE.words:
            both = sum(a in x and b in y for x, y in zip(OURS, THEIRS, strict=True))
            chance = sum(a in x for x in OURS) * sum(b in y for y in THEIRS) / n
            if both >= min_count and both > chance:
                left[a, b] = g2_in_words(a, b)
    while left:
        a, b = max(left, key=lambda pair: (round(left[pair], 9), -EN.index[pair[0]]))
        found.append((a, b))
        left = {pair: s for pair, s in left.items() if pair[0] != a and pair[1] != b}
    return found


@pytest.mark.parametrize("min_count", [1, 2])
def test_induced_pairs_against_a_loop_over_all_pairs_of_words(min_count: int) -> None:
    found = induced(OURS, THEIRS, EN, DE, min_count=min_count)
    assert in_words(found) == linked_in_words(min_count)


def test_induced_pairs_are_translations_each_word_once() -> None:
    found = induced(OURS, THEIRS, EN, DE, min_count=2)
    assert set(in_words(found)) == {
        ("the", "der"), ("a", "ein"), ("cat", "katze"), ("dog", "hund"), ("house", "haus"),
        ("berlin", "berlin"),
    }  # fmt: skip
    assert found.origin == "induced from 10 parallel lines"
    strongest = induced(OURS, THEIRS, EN, DE, n=2, min_count=2)
    assert strongest.pairs.tolist() == found.pairs[:2].tolist()


def test_words_that_are_everywhere_are_no_pair() -> None:
    lines = [["the", word] for word in ("cat", "dog", "cat", "dog")]
    theirs = [["der", word] for word in ("katze", "hund", "katze", "hund")]
    found = induced(lines, theirs, EN, DE, min_count=1)
    assert set(in_words(found)) == {("cat", "katze"), ("dog", "hund")}


def test_lines_without_a_pair() -> None:
    with pytest.raises(WordVectorsError, match=r"induced from 10 .* one or more is needed"):
        induced(OURS, THEIRS, EN, DE, min_count=10)


# --- held-out pairs ---


def test_no_word_of_the_test_part_is_in_the_training_part() -> None:
    rng = np.random.default_rng(0)
    pairs = np.unique(rng.integers(0, 60, (100, 2)), axis=0)
    whole = of(pairs.tolist())
    train, test = held_out_pairs(whole, 20, seed=1)
    for side in (0, 1):
        assert not set(train.pairs[:, side]) & set(test.pairs[:, side])
    rows = set(map(tuple, pairs.tolist()))
    assert set(map(tuple, train.pairs.tolist())) | set(map(tuple, test.pairs.tolist())) <= rows
    held = set(test.pairs[:, 0].tolist())
    assert [tuple(p) for p in test.pairs.tolist()] == sorted(p for p in rows if p[0] in held)
    assert 20 <= len(test) < 20 + max(np.bincount(pairs[:, 0]))
    assert train.origin == test.origin == "by hand"


def test_pairs_without_shared_words_are_all_in_one_part() -> None:
    whole = of([(i, 99 - i) for i in range(100)])
    train, test = held_out_pairs(whole, 30, seed=0)
    assert (len(train), len(test)) == (70, 30)
    again, other = (held_out_pairs(whole, 30, seed=seed)[1].pairs for seed in (0, 1))
    assert again.tolist() == test.pairs.tolist() != other.tolist()
