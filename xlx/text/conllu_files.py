"""One reader of CoNLL-U: the words of each sentence, and the line of whatever is wrong.

Words are the syntactic words of UD; ranges of multi-word tokens (``3-4``) say what the text shows,
and empty nodes (``5.1``) are left out. UD 1's CONJ is read as CCONJ. Of the ``conllu`` library,
which knows no lines and no order of words, the ids of what is no word are read.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from conllu.exceptions import ParseException
from conllu.parser import parse_id_value

from xlx.text.files import TextError

#: The 17 tags of Universal Dependencies, in alphabetical order.
UPOS: tuple[str, ...] = (
    *("ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM"),
    *("PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"),
)
_NUMBER = re.compile("0|[1-9][0-9]{0,8}")
_COMMENT = re.compile("#[^\t]*$")


class Word(NamedTuple):
    """A syntactic word; its features as they are written, head None for no number, its line."""

    form: str
    upos: str
    features: str
    head: int | None
    relation: str
    line: int


class Sentence(NamedTuple):
    """A sentence of a file: its ``sent_id`` or number, the line of its first row, its words.

    ``tokens`` is what the text shows; ``token_of`` the place in it of each word's token.
    """

    id: str
    line: int
    words: list[Word]
    tokens: list[str]
    token_of: list[int]


def sentence_blocks(
    lines: Sequence[str], where: str, split: str | None = None
) -> Iterator[tuple[int, list[str], list[str]]]:
    """Sentences of a file whose sentences end at empty lines: (first line, comments, rows).

    A comment starts with ``#`` and has no tab (which the word "#" with its tag has); ``first line``
    is the number of the first row (from 1), and comments are above all rows. With ``split``, only
    the sentences with the comment ``# split = <split>``. TextError for a file without sentences.
    """
    start, empty = 0, True
    for number, line in enumerate([*lines, ""]):
        if line.strip():
            continue
        block = lines[start:number]
        n_comments = 0
        while n_comments < len(block) and _COMMENT.match(block[n_comments]):
            n_comments += 1
        comments, rows = block[:n_comments], block[n_comments:]
        if block and (split is None or f"# split = {split}" in comments):
            yield start + n_comments + 1, comments, rows
            empty = False
        start = number + 1
    if empty:
        raise TextError(f"{where} has no sentences{f' of {split}' if split else ''}.")


def comment(comments: Iterable[str], key: str) -> str | None:
    """The value of ``# key = value``. UD 1's ``# sent_id value`` is none: not unique in a file."""
    for line in comments:
        if match := re.fullmatch(rf"#\s*{key}\s*=\s*(\S.*?)\s*", line):
            return match[1]
    return None


def read_conllu(lines: Sequence[str], where: str, split: str | None = None) -> Iterator[Sentence]:
    """The sentences of a CoNLL-U file; with ``split``, those of it. ``where`` opens every error.

    Raises TextError, with the line, for a row that has not 10 columns, an id out of order, a word
    without form or without one of the 17 tags, a range of words that does not fit, a comment among
    the rows, a repeated ``sent_id``, and for a file without sentences.
    """
    seen: dict[str, int] = {}
    for number, (first, comments, rows) in enumerate(sentence_blocks(lines, where, split), 1):
        name = comment(comments, "sent_id") or str(number)
        if seen.setdefault(name, first) != first:
            raise TextError(f"{where}, line {first}: sentence {name} is also at line {seen[name]}.")
        yield _sentence(name, first, rows, where)


def _sentence(name: str, first: int, rows: Sequence[str], where: str) -> Sentence:
    words: list[Word] = []
    tokens: list[str] = []
    token_of: list[int] = []
    last = 0  # of the range of words that is open
    for line, row in enumerate(rows, first):
        place, n, columns = f"{where}, line {line}", len(words), row.split("\t")
        if len(columns) != 10:
            what = (
                "a comment among the words" if row[0] == "#" else f"{len(columns)} columns, not 10"
            )
            raise TextError(f"{place}: {what}; CoNLL-U has 10 columns parted by tabs.")
        number, form, _, tag, _, features, head, relation, _, _ = columns
        if number != str(n + 1):
            start, mark, end = _range(number, n, place)
            if mark == ".":  # an empty node
                continue
            if start != n + 1 or start <= last or end <= start:
                raise TextError(
                    f"{place}: the range {start}-{end} after word {n}; a range stands before its "
                    "first word, has two words or more, and none of another range."
                )
            last = end
            tokens.append(form)
            continue
        if not form.strip():
            raise TextError(f"{place}: a word without form.")
        tag = "CCONJ" if tag == "CONJ" else tag
        if tag not in UPOS:
            raise TextError(
                f"{place}: {form!r} has the tag {tag!r}, which is none of UD's 17 "
                f"({' '.join(UPOS)}); is this CoNLL-U with UPOS tags?"
            )
        head = int(head) if _NUMBER.fullmatch(head) else None
        words.append(Word(form, tag, features, head, relation, line))
        if len(words) > last:  # within a range, the token is there already
            tokens.append(form)
        token_of.append(len(tokens) - 1)
    if last > len(words):
        raise TextError(f"{where}, line {first}: a range ends at word {last}, which is missing.")
    if not words:
        raise TextError(f"{where}, line {first}: a sentence without words.")
    return Sentence(name, first, words, tokens, token_of)


def _range(number: str, n_words: int, place: str) -> tuple[int, str, int]:
    """Both numbers of ``3-4`` or ``5.1``, and what is between them."""
    try:
        place_of_word = parse_id_value(number)
    except (ParseException, ValueError):  # a number of thousands of digits
        place_of_word = None
    if not isinstance(place_of_word, tuple):
        raise TextError(
            f"{place}: word {number[:20]} follows word {n_words}; words are numbered 1, 2, 3 and "
            "so on."
        )
    return place_of_word
