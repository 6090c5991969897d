"""Words of a text in any language: between spaces, or by characters where there are none.

Most languages put spaces between words. Chinese, Japanese and Thai do not, and no dictionary is
asked here: a Chinese or Japanese character is a word, and so is a Thai character with the vowels
and tones above and below it. Numbers in words of these three compare with none of the others.
"""

import re
import string
import sys
import unicodedata
from collections.abc import Sequence
from functools import cache

from xlx.text.varieties import language_code

#: Languages written without spaces between words, as far as `words` knows them.
SPACELESS: tuple[str, ...] = ("ja", "th", "zh")

#: Han, kana and their marks of repetition; half width too.
_ALONE = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff"
)
_THAI = "\u0e01-\u0e7f"
#: What extends a Thai grapheme cluster (Unicode Standard Annex 29): vowels and tones, sara am.
_THAI_MARKS = "\u0e31\u0e33-\u0e3a\u0e47-\u0e4e"

#: The last and the first character of two words that would be read as one without a space.
_MEETING = re.compile(rf"[^{_ALONE}{_THAI}]{{2}}|[{_THAI}][{_THAI_MARKS}]")


@cache
def spaceless(language: str) -> bool:
    """Whether the language (of "zh-en": of the context) is written without spaces."""
    return language_code(language.split("-")[0]) in SPACELESS


@cache
def _punctuation() -> frozenset[str]:
    """ASCII punctuation and symbols, and all characters of Unicode's category P."""
    every = map(chr, range(sys.maxunicode + 1))
    return frozenset(string.punctuation).union(
        character for character in every if unicodedata.category(character)[0] == "P"
    )


@cache
def without_punctuation() -> dict[int, None]:
    """For `str.translate`: takes out ASCII's punctuation and symbols and Unicode's category P."""
    return dict.fromkeys(map(ord, _punctuation()))


@cache
def word_pattern(spaceless: bool) -> re.Pattern[str]:
    """What is a word in languages without spaces, or with them."""
    if not spaceless:
        return re.compile(r"\S+")
    marks = "".join(map(re.escape, sorted(_punctuation())))
    alone = _ALONE + _THAI
    return re.compile(
        rf"[{_ALONE}]|[{_THAI}][{_THAI_MARKS}]*|[{marks}]"
        # Any other word: punctuation stays inside ("3.5"), not at its ends.
        rf"|[^\s{alone}{marks}](?:[^\s{alone}]*[^\s{alone}{marks}])?"
    )


def word_spans(text: str, language: str) -> list[tuple[str, int, int]]:
    """Every word of a text with the positions of its first character and after its last.

    In languages written with spaces, what stands between white space, punctuation included. In
    Chinese and Japanese each character, in Thai each grapheme cluster, is a word; so is every other
    run without spaces, such as "NFL" or "3.5", and every punctuation mark at its ends ("mixed
    segmentation", as MLQA's metric does in Chinese). No character but white space is in no word.
    """
    matches = word_pattern(spaceless(language)).finditer(text)
    return [(match[0], match.start(), match.end()) for match in matches]


def words(text: str, language: str) -> list[str]:
    """The words of `word_spans`."""
    return word_pattern(spaceless(language)).findall(text)


def joined_words(split: Sequence[str], language: str) -> str:
    """A text of these words, with spaces as the language has them, or so that none two are one."""
    if not spaceless(language):
        return " ".join(split)
    text = ""
    for word in split:
        # Without a space "2015" and "NFL" would be one word.
        text += f" {word}" if text and _MEETING.fullmatch(text[-1] + word[0]) else word
    return text
