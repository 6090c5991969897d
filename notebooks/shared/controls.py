"""Controls: words out of order, one part, no question (Rajaee and Monz); length or words alone."""

from __future__ import annotations

import unicodedata
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from xlx.results.deferred import deferred
from xlx.subjects import loading
from xlx.subjects.states import tokenise
from xlx.text.examples import Examples
from xlx.text.files import TextError
from xlx.text.languages import joined_words, spaceless, words
from xlx.text.questions import Questions

sparse = deferred("scipy.sparse")

T = TypeVar("T", Examples, Questions)
_PARTS = ("first", "second")


def shuffled(rows: T, seed: int, *, parts: Sequence[str] = _PARTS) -> T:
    """The words of every question, or of each named part, in random order (section 5).

    Words of questions are those of `languages.words`. Of examples they are what stands between
    spaces; in Chinese, Japanese and Thai characters, spaces among them, with their combining marks.
    A text that occurs several times in a part (a premise) has one new order, which depends on the
    seed and on where it occurs first. Single sentences have no second part.
    """
    if isinstance(rows, Questions):
        split = partial(words, language=rows.question_language)
        join = partial(joined_words, language=rows.question_language)
        texts = _reordered(rows.questions, (seed,), split, join)
        return replace(rows, name=f"{rows.name}, questions shuffled", questions=texts)
    changed = {}
    for number, (part, language) in enumerate(zip(_PARTS, rows.languages, strict=True)):
        if part in parts and getattr(rows, part):
            split, join = (_characters, "".join) if spaceless(language) else (str.split, " ".join)
            changed[part] = _reordered(getattr(rows, part), (seed, number), split, join)
    return replace(rows, name=f"{rows.name}, {' and '.join(changed)} shuffled", **changed)


def _reordered(
    texts: Sequence[str],
    seed: tuple[int, ...],
    split: Callable[[str], list[str]],
    join: Callable[[list[str]], str],
) -> tuple[str, ...]:
    """Each text with its words in an order drawn for the place where the text first occurs."""
    new: dict[str, str] = {}
    for position, text in enumerate(texts):
        if text not in new:
            parts = split(text)
            order = np.random.default_rng((*seed, position)).permutation(len(parts))
            new[text] = join([parts[i] for i in order.tolist()])
    return tuple(new[text] for text in texts)


def _characters(text: str) -> list[str]:
    """The characters of a text with their marks."""
    characters: list[str] = []
    for character in text:
        if characters and unicodedata.category(character).startswith("M"):
            characters[-1] += character
        else:
            characters.append(character)
    return characters


def only(examples: Examples, part: str) -> Examples:
    """One part of each example as a sentence alone: "second" is the hypothesis without a premise.

    A baseline that cannot compare.
    """
    return replace(
        examples,
        name=f"{examples.name}, {part} only",
        language=examples.languages[_PARTS.index(part)],
        first=getattr(examples, part),
        second=None,
    )


def wrong_premises(pairs: Examples) -> Examples:
    """The pairs, each with the first text of another, which is not the same text.

    Pairs with one first text are put side by side, where the first of them stands; first texts then
    move by half of all pairs. TextError where more than half have one text, as none is left then.
    """
    texts = np.array(pairs.first, dtype=object)
    _, at, which = np.unique(texts, return_index=True, return_inverse=True)
    order, wrong = np.argsort(at[which], kind="stable"), texts.copy()
    wrong[order] = np.roll(texts[order], len(texts) // 2)
    if (wrong == texts).any():
        raise TextError(f"{pairs.name}: more than half of the pairs have one first text")
    return replace(pairs, first=tuple(wrong))


def token_counts(texts: Sequence[str], language: str) -> np.ndarray:
    """The number of tokens and nothing else, ``(n, 1)``."""
    return np.array([[len(text.split())] for text in texts], dtype=np.float32)


def random_words(dim: int, seed: int, texts: Sequence[str], language: str) -> np.ndarray:
    """The mean of a random vector for each word, ``(n, dim)``: which words there are, no more
    (Wieting and Kiela 2019). A word's vector depends on the word and seed."""
    drawn = {
        word: np.random.default_rng([seed, zlib.crc32(word.encode())]).standard_normal(dim)
        for word in {word for text in texts for word in text.split()}
    }
    return np.array([np.mean([drawn[x] for x in text.split()], axis=0) for text in texts])


def subword_sets(tokenizer: Any, texts: Sequence[str]) -> sparse.csr_array:
    """Which subwords of a vocabulary each text has, 0 or 1: ``(n, vocabulary)``."""
    columns, _ = tokenise(tokenizer, list(texts), limit=None, add_special_tokens=False)
    ids = [sorted(set(pieces)) for pieces in columns["input_ids"]]
    ends = np.cumsum([0, *map(len, ids)])
    every = np.concatenate([*ids, []]).astype(int)
    return sparse.csr_array((np.ones(ends[-1]), every, ends), (len(ids), len(tokenizer)))


def shared_subwords(sets: Mapping[str, Examples], tokenizer: str) -> np.ndarray:
    """The share of the shorter text's distinct subwords that the other has too, ``(L, L, n)``."""
    read = loading.tokenizer(tokenizer)
    first, second = (
        [subword_sets(read, getattr(x, side)) for x in sets.values()]
        for side in ("first", "second")
    )

    def shared(left: sparse.csr_array, other: sparse.csr_array) -> np.ndarray:
        least = np.minimum(np.diff(left.indptr), np.diff(other.indptr))
        return left.multiply(other).sum(axis=1) / np.maximum(least, 1)

    return np.array([[shared(left, other) for other in second] for left in first])
