"""Where a question's own words stand in its context: how far from the answer, and as a shortcut.

Rajaee and Monz, section 4 (`word_distances`); a baseline that goes by these words alone
(`overlap_answers`).
"""

from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from xlx.text.files import TextError
from xlx.text.questions import Questions, stands
from xlx.text.segmentation import without_punctuation, word_spans, words


class _Located(NamedTuple):
    """The words of a context as they are compared, and where each begins and ends."""

    compared: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]


def _compared(word: str) -> str:
    return word.lower().translate(without_punctuation())


@lru_cache(maxsize=2**13)
def _located(context: str, language: str) -> _Located:
    spans = word_spans(context, language)
    plain = tuple(_compared(word) for word, _, _ in spans)
    return _Located(plain, tuple(s for _, s, _ in spans), tuple(e for _, _, e in spans))


@lru_cache(maxsize=2**15)
def _asked(question: str, language: str) -> frozenset[str]:
    """The words of a question as they are compared; of punctuation alone, none."""
    return frozenset(map(_compared, words(question, language))) - {""}


def _occurrences(asked: frozenset[str], located: _Located) -> np.ndarray:
    """Positions of the words of a context that are words of the question: int64, ascending."""
    places = [i for i, word in enumerate(located.compared) if word in asked]
    return np.array(places, dtype=np.int64)


def word_distances(questions: Questions, *, max_distance: float = 384) -> np.ndarray:
    """How far from the answer the words of each question stand in the context: float64 (n,).

    In words (section 4): the mean, over all positions of the context whose word is one of the
    question's, of the distance to the centre of the first answer, halfway between its first and
    last word (a word that it covers in part is in it). ``max_distance`` where no word of the
    question occurs; the paper takes the maximum length of a context there. The mean itself has no
    such limit.

    Words are compared in lower case without punctuation, all of them: articles too, and those in
    the answer. A word that the question has twice counts once.

    Raises TextError where an answer does not stand in its context.
    """
    rows = zip(questions.questions, questions.contexts, questions.answers, strict=True)
    distances = np.full(len(questions), max_distance, dtype=np.float64)
    for i, (question, context, (answer, *_)) in enumerate(rows):
        if not stands(answer, context):
            raise TextError(
                f"the answer {answer.text!r} is not at position {answer.start} of its context"
            )
        located = _located(context, questions.context_language)
        places = _occurrences(_asked(question, questions.question_language), located)
        if places.size:
            first = bisect_right(located.ends, answer.start)
            last = bisect_left(located.starts, answer.end) - 1
            distances[i] = np.abs(places - (first + last) / 2).mean()
    return distances


def overlap_answers(questions: Questions, length: int) -> list[str]:
    """Answers without a model: the ``length`` words with the question's words closest around them.

    Of all spans of ``length`` words (of the whole context, where it has fewer), that with the
    largest sum of ``1 / (1 + d)`` over the words of the context outside the span that are words of
    the question, at distance ``d`` from its centre; the first of equals. Words are compared as in
    `word_distances`, of which this is the shortcut. Raises TextError for a length below 1.
    """
    if length < 1:
        raise TextError(f"an answer of {length} words is none; take at least one")
    spans = []
    for question, context in zip(questions.questions, questions.contexts, strict=True):
        located = _located(context, questions.context_language)
        n = len(located.starts)
        size = min(length, n)
        if not n:
            spans.append("")
            continue
        is_asked = np.zeros(n)
        is_asked[_occurrences(_asked(question, questions.question_language), located)] = 1
        # Rounded, so that sums that are equal but for the order of their terms are a tie.
        sums = np.convolve(is_asked, _kernel(n, size), mode="full")[n - 1 : 2 * n - size]
        first = int(np.round(sums, 9).argmax())
        spans.append(context[located.starts[first] : located.ends[first + size - 1]])
    return spans


@lru_cache(maxsize=2**11)
def _kernel(n: int, size: int) -> np.ndarray:
    """Weight of a word by its offset from the beginning of the span, from n - 1 down to 1 - n."""
    offset = np.arange(n - 1, -n, -1)
    weight = 1 / (1 + np.abs(offset - (size - 1) / 2))
    weight[(offset >= 0) & (offset < size)] = 0
    return weight
