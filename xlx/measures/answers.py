"""F1 and exact match of answers: in all languages alike, and by the letter of two scripts.

`f1` and `exact_match` are SQuAD's (Rajpurkar et al. 2016), with the words of `languages.words` and
all of Unicode's punctuation. Numbers of the literature are of one published script or the other,
which differ by twenty points where words are not parted by spaces:

* `squad`, SQuAD v1.1: ASCII punctuation and English articles go, words stand between white space,
  in any language. The numbers of Rajaee and Monz are of it.
* `mlqa`, MLQA v1 (Lewis et al. 2020): all of Unicode's punctuation goes, and the articles of the
  language; in Chinese each of the characters U+4E00 to U+9FA5 is a word.

F1 is 0 in both scripts where no word is shared, even if neither answer has any left. All scores are
in [0, 1], of the best of the answers; TextError where there is none. Two functions give answers
without a model, for comparison: `placed_answers` and `overlap_answers`.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial

import numpy as np
from numpy import ndarray

from xlx.text.files import TextError
from xlx.text.languages import spaceless, without_punctuation, word_pattern, word_spans
from xlx.text.questions import Answer, Questions

#: What MLQA takes out of a text in small letters, by language; in others, nothing.
_ARTICLES = {
    "en": r"\b(?:a|an|the)\b",
    "es": r"\b(?:un|una|unos|unas|el|la|los|las)\b",
    "vi": r"\b(?:của|là|cái|chiếc|những)\b",
    "de": r"\b(?:ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "ar": r"\sال^|ال",
}
_ASCII = str.maketrans("", "", string.punctuation)


def _plain(text: str, punctuation: dict[int, None], language: str) -> str:
    """A text in small letters, without punctuation and the articles of a language."""
    text = text.lower().translate(punctuation)
    return re.sub(_ARTICLES[language], " ", text) if language in _ARTICLES else text


@lru_cache(maxsize=2**16)
def normalised_answer(text: str) -> str:
    """As SQuAD v1.1 compares texts: in lower case, without punctuation (ASCII's and Unicode's
    category P), English articles, extra spaces."""
    return " ".join(_plain(text, without_punctuation(), "en").split())


@lru_cache(maxsize=2**16)
def _bag(text: str, segmented: bool) -> Counter[str]:
    return Counter(word_pattern(segmented).findall(normalised_answer(text)))


def _texts(answers: Iterable[Answer | str]) -> list[str]:
    texts = [answer if isinstance(answer, str) else answer.text for answer in answers]
    if not texts:
        raise TextError("there is no answer to compare with; `read_squad` leaves such out")
    return texts


def exact_match(prediction: str, answers: Iterable[Answer | str], language: str) -> float:
    """1.0 where the prediction is one of the answers as `normalised_answer`, else 0.0.

    ``language`` is that of the context and of the answers.
    """
    spaceless(language)
    given = normalised_answer(prediction)
    return float(any(given == normalised_answer(text) for text in _texts(answers)))


def f1(prediction: str, answers: Iterable[Answer | str], language: str) -> float:
    """Harmonic mean of precision and recall in words, as often as they occur.

    Words are those of `normalised_answer`; in languages without spaces those of `languages.words`,
    as whole answers would be one word there. Two texts without words ("the", ".", or empty) are
    equal and give 1, one such text 0. ``language`` as in `exact_match`.
    """
    segmented = spaceless(language)
    given = _bag(prediction, segmented)
    return max(_f1(given, _bag(text, segmented)) for text in _texts(answers))


def _f1(given: Counter[str], gold: Counter[str]) -> float:
    if not given or not gold:
        return float(not given and not gold)
    # 2 P R / (P + R) with P = same / given and R = same / gold.
    return 2 * (given & gold).total() / (given.total() + gold.total())


def squad(prediction: str, answers: Iterable[Answer | str]) -> tuple[float, float]:
    """F1 and exact match of an answer as SQuAD v1.1 has them."""
    return _best(prediction, answers, _squad_words)


@lru_cache(maxsize=2**16)
def _squad_words(text: str) -> list[str]:
    return _plain(text, _ASCII, "en").split()


def mlqa(prediction: str, answers: Iterable[Answer | str], language: str) -> tuple[float, float]:
    """F1 and exact match of an answer as MLQA v1 has them; ``language`` is that of the answers.

    MLQA has en, es, hi, vi, de, ar and zh; in others, which its script refuses, there are no
    articles.
    """
    return _best(prediction, answers, partial(_mlqa_words, language=language))


@lru_cache(maxsize=2**16)
def _mlqa_words(text: str, language: str) -> list[str]:
    text = _plain(text, without_punctuation(), language)
    return (re.sub("([\u4e00-\u9fa5])", r" \1 ", text) if language == "zh" else text).split()


def _best(
    prediction: str, answers: Iterable[Answer | str], words: Callable[[str], list[str]]
) -> tuple[float, float]:
    given = words(prediction)
    gold = [words(text) for text in _texts(answers)]
    best = max(_f1(Counter(given), Counter(answer)) if given else 0.0 for answer in gold)
    return best, float(given in gold)


def _compared(word: str) -> str:
    return word.lower().translate(without_punctuation())


@lru_cache(maxsize=2**13)
def located_words(context: str, language: str) -> tuple[ndarray, Sequence[int], Sequence[int]]:
    """The words of a context as they are compared, and where each begins and ends."""
    spans = word_spans(context, language)
    plain = np.array([_compared(word) for word, _, _ in spans], object)
    return plain, [start for _, start, _ in spans], [end for _, _, end in spans]


@lru_cache(maxsize=2**15)
def _asked(question: str, language: str) -> frozenset[str]:
    """The words of a question as they are compared; of punctuation alone, none."""
    return frozenset(_compared(word) for word, _, _ in word_spans(question, language)) - {""}


def asked_words(compared: Sequence[str], question: str, language: str) -> ndarray:
    """Which words of a context are words of the question: bool."""
    asked = _asked(question, language)
    return np.array([word in asked for word in compared], bool)


def placed_answers(questions: Questions, length: int, where: Sequence[float]) -> list[str]:
    """Answers that read nothing: ``length`` words of each context, by place alone.

    ``where`` is for each question between 0 (its first words) and 1 (its last ones).
    """
    spans = []
    for context, place in zip(questions.contexts, where, strict=True):
        _, starts, ends = located_words(context, questions.context_language)
        first = round(place * max(0, len(starts) - length))
        last = min(first + length, len(starts)) - 1
        spans.append(context[starts[first] : ends[last]] if starts else "")
    return spans


def overlap_answers(questions: Questions, length: int) -> list[str]:
    """Answers without a model: the ``length`` words with the question's words closest around them.

    Of all spans of ``length`` words (of the whole context, where it has fewer), that with the
    largest sum of ``1 / (1 + d)`` over the words of the context outside the span that are words of
    the question, at distance ``d`` from its centre; the first of equals. Words are compared as in
    `located_words`.
    """
    spans = []
    for question, context in zip(questions.questions, questions.contexts, strict=True):
        compared, starts, ends = located_words(context, questions.context_language)
        n = len(starts)
        size = min(length, n)
        if not n:
            spans.append("")
            continue
        is_asked = asked_words(compared, question, questions.question_language).astype(float)
        # Rounded, so that sums that are equal but for the order of their terms are a tie.
        sums = np.convolve(is_asked, _kernel(n, size), mode="full")[n - 1 : 2 * n - size]
        first = int(np.round(sums, 9).argmax())
        spans.append(context[starts[first] : ends[first + size - 1]])
    return spans


@lru_cache(maxsize=2**11)
def _kernel(n: int, size: int) -> ndarray:
    """Weight of a word by its offset from the beginning of the span, from n - 1 down to 1 - n."""
    offset = np.arange(n - 1, -n, -1)
    weight = 1 / (1 + np.abs(offset - (size - 1) / 2))
    weight[(offset >= 0) & (offset < size)] = 0
    return weight
