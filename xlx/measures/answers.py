"""F1 and exact match of answers: in all languages alike, and by the letter of two scripts.

`f1` and `exact_match` are SQuAD's (Rajpurkar et al. 2016), with the words of `segmentation` and all
of Unicode's punctuation. Numbers of the literature are of one published script or the other, which
differ by twenty points where words are not parted by spaces:

* `squad`, SQuAD v1.1: ASCII punctuation and English articles go, words stand between white space,
  in any language. The numbers of Rajaee and Monz are of it.
* `mlqa`, MLQA v1 (Lewis et al. 2020): all of Unicode's punctuation goes, and the articles of the
  language; in Chinese each of the characters U+4E00 to U+9FA5 is a word.

F1 is 0 in both scripts where no word is shared, even if neither answer has any left. All scores are
in [0, 1], of the best of the answers; TextError where there is none.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache

from xlx.text.files import TextError
from xlx.text.languages import spaceless, without_punctuation, word_pattern
from xlx.text.questions import Answer

#: What MLQA takes out of a text in small letters, by language; in others, nothing.
_ARTICLES: dict[str, str] = {
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
    return _best(prediction, answers, lambda text: _plain(text, _ASCII, "en").split())


def mlqa(prediction: str, answers: Iterable[Answer | str], language: str) -> tuple[float, float]:
    """F1 and exact match of an answer as MLQA v1 has them; ``language`` is that of the answers.

    MLQA has en, es, hi, vi, de, ar and zh; in others, which its script refuses, there are no
    articles.
    """

    def words(text: str) -> list[str]:
        text = _plain(text, without_punctuation(), language)
        return (re.sub("([\u4e00-\u9fa5])", r" \1 ", text) if language == "zh" else text).split()

    return _best(prediction, answers, words)


def _best(
    prediction: str, answers: Iterable[Answer | str], words: Callable[[str], list[str]]
) -> tuple[float, float]:
    given = words(prediction)
    gold = [words(text) for text in _texts(answers)]
    best = max(_f1(Counter(given), Counter(answer)) if given else 0.0 for answer in gold)
    return best, float(given in gold)
