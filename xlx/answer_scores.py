"""F1 and exact match of answers by the letter of two published scripts.

`questions.f1` and `questions.exact_match` treat all languages alike. Numbers of the literature are
of one script or the other, which differ by twenty points where words are not parted by spaces:

* `squad`, SQuAD v1.1 (Rajpurkar et al. 2016): ASCII punctuation and English articles go, words
  stand between white space, in any language. The numbers of Rajaee and Monz are of it.
* `mlqa`, MLQA v1 (Lewis et al. 2020): all of Unicode's punctuation goes, and the articles of the
  language; in Chinese each of the characters U+4E00 to U+9FA5 is a word.

F1 is 0 in both where no word is shared, even if neither answer has any left.
"""

import re
import string
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache

from xlx.questions import Answer, QuestionsError

#: What MLQA takes out of a text in small letters, by language; in others, nothing.
ARTICLES: dict[str, str] = {
    "en": r"\b(?:a|an|the)\b",
    "es": r"\b(?:un|una|unos|unas|el|la|los|las)\b",
    "vi": r"\b(?:của|là|cái|chiếc|những)\b",
    "de": r"\b(?:ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b",
    "ar": r"\sال^|ال",
}
_ASCII = str.maketrans("", "", string.punctuation)


def squad(prediction: str, answers: Iterable[Answer | str]) -> tuple[float, float]:
    """F1 and exact match of an answer, in [0, 1], as SQuAD v1.1 has them; the best of the answers.

    Raises QuestionsError for no answers.
    """

    def words(text: str) -> list[str]:
        return re.sub(ARTICLES["en"], " ", text.lower().translate(_ASCII)).split()

    return _best(prediction, answers, words)


def mlqa(prediction: str, answers: Iterable[Answer | str], language: str) -> tuple[float, float]:
    """F1 and exact match of an answer, in [0, 1], as MLQA v1 has them; the best of the answers.

    ``language`` is that of the answers. MLQA has en, es, hi, vi, de, ar and zh; in other languages,
    which its script refuses, there are no articles and words stand between white space. Raises
    QuestionsError for no answers.
    """
    plain = _unicode()

    def words(text: str) -> list[str]:
        text = text.lower().translate(plain)
        if language in ARTICLES:
            text = re.sub(ARTICLES[language], " ", text)
        if language == "zh":
            text = re.sub("([\u4e00-\u9fa5])", r" \1 ", text)
        return text.split()

    return _best(prediction, answers, words)


@cache
def _unicode() -> dict[int, None]:
    """For `str.translate`: takes out Unicode's category P and ASCII's marks, such as "$"."""
    marks = (i for i in range(sys.maxunicode) if unicodedata.category(chr(i)).startswith("P"))
    return dict.fromkeys(marks) | _ASCII


def _best(
    prediction: str, answers: Iterable[Answer | str], words: Callable[[str], list[str]]
) -> tuple[float, float]:
    given = words(prediction)
    found = []
    for answer in answers:
        wanted = words(answer if isinstance(answer, str) else answer.text)
        same = (Counter(given) & Counter(wanted)).total()
        # 2 P R / (P + R) with P = same / given and R = same / wanted
        found.append((2 * same / (len(given) + len(wanted)) if same else 0.0, given == wanted))
    if not found:
        raise QuestionsError("there is no answer to compare with; `read_squad` leaves such out")
    return max(f1 for f1, _ in found), float(max(exact for _, exact in found))
