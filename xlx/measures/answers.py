"""F1 and exact match of answers: in all languages alike, and by the letter of two scripts.

`f1` and `exact_match` are SQuAD's (Rajpurkar et al. 2016), with the words of `segmentation` and all
of Unicode's punctuation. Numbers of the literature are of one published script or the other, which
differ by twenty points where words are not parted by spaces:

* `squad`, SQuAD v1.1 (Rajpurkar et al. 2016): ASCII punctuation and English articles go, words
  stand between white space, in any language. The numbers of Rajaee and Monz are of it.
* `mlqa`, MLQA v1 (Lewis et al. 2020): all of Unicode's punctuation goes, and the articles of the
  language; in Chinese each of the characters U+4E00 to U+9FA5 is a word.

F1 is 0 in both scripts where no word is shared, even if neither answer has any left.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache

from xlx.text.files import TextError
from xlx.text.languages import spaceless, without_punctuation, word_pattern
from xlx.text.questions import Answer

#: What MLQA takes out of a text in small letters, by language; in others, nothing. SQuAD takes
#: those of English out in every language.
_ARTICLES: dict[str, str] = {
    "en": r"\b(?:a|an|the)\b",
    "es": r"\b(?:un|una|unos|unas|el|la|los|las)\b",
    "vi": r"\b(?:của|là|cái|chiếc|những)\b",
    "de": r"\b(?:ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "ar": r"\sال^|ال",
}
_ASCII = str.maketrans("", "", string.punctuation)


@lru_cache(maxsize=2**16)
def normalised_answer(text: str) -> str:
    """A text as SQuAD v1.1 compares it: in lower case, without punctuation, articles, extra spaces.

    Punctuation is ASCII's and all of Unicode's category P, such as "。", as in MLQA's script.
    """
    plain = text.lower().translate(without_punctuation())
    return " ".join(re.sub(_ARTICLES["en"], " ", plain).split())


@lru_cache(maxsize=2**16)
def _bag(text: str, segmented: bool) -> Counter[str]:
    return Counter(word_pattern(segmented).findall(normalised_answer(text)))


def _texts(answers: Iterable[Answer | str]) -> list[str]:
    texts = [answer if isinstance(answer, str) else answer.text for answer in answers]
    if not texts:
        raise TextError("there is no answer to compare with; `read_squad` leaves such out")
    return texts


def exact_match(prediction: str, answers: Iterable[Answer | str], language: str) -> float:
    """1.0 where the prediction is one of the answers as `normalised_answer`, else 0.0 (SQuAD v1.1).

    ``language`` is that of the context, as the answers are. Raises TextError for no answers.
    """
    spaceless(language)
    given = normalised_answer(prediction)
    return float(any(given == normalised_answer(text) for text in _texts(answers)))


def f1(prediction: str, answers: Iterable[Answer | str], language: str) -> float:
    """Harmonic mean of precision and recall in words, over the best of the answers (SQuAD v1.1).

    In [0, 1]. Words are those of the texts as `normalised_answer`, as often as they occur; in
    languages without spaces those of `languages.words`, as whole answers would be one word
    there. Two texts without words ("the", ".", or empty) are equal and give 1, as in exact match;
    one such text gives 0. ``language`` and errors as `exact_match`.
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
    """F1 and exact match of an answer, in [0, 1], as SQuAD v1.1 has them; the best of the answers.

    Raises TextError for no answers.
    """

    def words(text: str) -> list[str]:
        return re.sub(_ARTICLES["en"], " ", text.lower().translate(_ASCII)).split()

    return _best(prediction, answers, words)


def mlqa(prediction: str, answers: Iterable[Answer | str], language: str) -> tuple[float, float]:
    """F1 and exact match of an answer, in [0, 1], as MLQA v1 has them; the best of the answers.

    ``language`` is that of the answers. MLQA has en, es, hi, vi, de, ar and zh; in others, which
    its script refuses, there are no articles. Raises TextError for no answers.
    """

    def words(text: str) -> list[str]:
        text = text.lower().translate(without_punctuation())
        if language in _ARTICLES:
            text = re.sub(_ARTICLES[language], " ", text)
        if language == "zh":
            text = re.sub("([\u4e00-\u9fa5])", r" \1 ", text)
        return text.split()

    return _best(prediction, answers, words)


def _best(
    prediction: str, answers: Iterable[Answer | str], words: Callable[[str], list[str]]
) -> tuple[float, float]:
    given = words(prediction)
    gold = [words(text) for text in _texts(answers)]
    best = max(_f1(Counter(given), Counter(answer)) if given else 0.0 for answer in gold)
    return best, float(given in gold)
