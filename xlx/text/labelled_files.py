"""Public layouts of labelled data: IOB2, and the tables of XNLI, PAWS-X and SIB-200.

Every reader takes the lines of a file and ``where`` (its name), which opens every error with the
number of the line. What is done to the data: UNER's OTH counts as O, since WikiAnn has no such
entity; ``I-X`` that continues no X is read as ``B-X``, as conlleval does, and counted; rows of
PAWS-X without a label, or with nothing or a placeholder ("NS", "NA") for a sentence, are left out
and counted, as its authors count them.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence

from xlx.text.conllu_files import UPOS, comment, sentence_blocks
from xlx.text.files import TextError

#: IOB2 tags of the three entities that WikiAnn has.
NER: tuple[str, ...] = ("O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC")
NLI: tuple[str, ...] = ("entailment", "neutral", "contradiction")
#: Paraphrase identification; 0 and 1 in the files of PAWS-X.
PI: tuple[str, ...] = ("different", "paraphrase")
#: The seven topics of SIB-200.
TOPICS: tuple[str, ...] = (
    *("entertainment", "geography", "health", "politics", "science/technology", "sports"),
    "travel",
)
LABELS = {"POS": UPOS, "NER": NER, "NLI": NLI, "PI": PI, "TOPIC": TOPICS}

#: Entities of UNER that are none of WikiAnn's three.
_NO_ENTITY = {"B-OTH", "I-OTH", "B-OTHER", "I-OTHER"}
#: Labels of pairs as public files write them: MultiNLI in the translations that come with XNLI,
#: and PAWS-X.
_PUBLIC_LABELS = {"contradictory": "contradiction", "0": "different", "1": "paraphrase"}
#: What stands in PAWS-X for a sentence that was not translated, casefolded, and for no label.
_NO_SENTENCE = {"", "ns", "na"}
_NO_LABEL = {"", "NA"}

#: Texts of one or two sides, their labels, ids.
Columns = tuple[tuple[str, ...], tuple[str, ...] | None, tuple[str, ...], tuple[str, ...]]


def read_iob2(
    lines: Sequence[str],
    where: str,
    *,
    columns: int = 2,
    language: str = "",
    split: str | None = None,
) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...], int]]:
    """The sentences of an IOB2 file: id, words, entity tags, and how many tags were repaired.

    ``columns``: 2 (word, tag; WikiAnn and the shipped files) or 5 (number, word, tag, a second tag,
    annotator; UNER). With ``language``, the prefix ``de:`` of the words of the original WikiAnn is
    taken off, and no line is a comment. ``split``: only sentences with the comment ``# split = …``.

    Raises TextError, with the line, for a wrong number of columns, an unknown tag, an empty word,
    words of UNER not numbered 1, 2, 3, and for a file without sentences.
    """
    prefix = f"{language}:"
    if not (language and all(line.startswith(prefix) for line in lines if line.strip())):
        prefix = ""
    for number, (first, comments, rows) in enumerate(sentence_blocks(lines, where, split), 1):
        if language:  # nothing is a comment there: a line that looks like one lacks its tag
            first, rows, comments = first - len(comments), [*comments, *rows], []
        words: list[str] = []
        tags: list[str] = []
        repaired = 0
        for line, row in enumerate(rows, first):
            place = f"{where}, line {line}"
            cells = _checked(row.split("\t"), columns, place)
            if columns == 5 and cells.pop(0) != str(len(words) + 1):
                raise TextError(f"{place}: this is not word {len(words) + 1} of its sentence.")
            word, tag = cells[0].removeprefix(prefix), cells[1]
            tag = "O" if tag in _NO_ENTITY else tag
            if tag not in NER:
                raise TextError(f"{place}: the tag {tag!r} is none of {' '.join(NER)}.")
            if not word.strip():
                raise TextError(f"{place}: a tag without a word.")
            if tag[0] == "I" and (not tags or tags[-1][1:] != tag[1:]):
                tag, repaired = f"B{tag[1:]}", repaired + 1
            words.append(word)
            tags.append(tag)
        if not words:
            raise TextError(f"{where}, line {first}: a sentence without words.")
        name = comment(comments, "sent_id") or comment(comments, "id") or str(number)
        yield name, tuple(words), tuple(tags), repaired


def _checked(cells: list[str], n: int, place: str) -> list[str]:
    """The cells of a row, if there are n."""
    if len(cells) != n:
        withheld = " XTREME withholds the labels of its test files; the original sets have them."
        raise TextError(
            f"{place}: {len(cells)} columns, not {n}, parted by tabs."
            + withheld * (n <= 3 and len(cells) == n - 1)
        )
    return cells


def _rows(lines: Sequence[str], where: str, n: int, start: int) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of the lines from ``start`` (from 1) on, ``n`` cells each."""
    for line, row in enumerate(lines[start - 1 :], start):
        yield line, _checked(row.split("\t"), n, f"{where}, line {line}")


def _pairs(
    rows: Iterable[tuple[int, str, str, str, str]], where: str, labels: tuple[str, ...]
) -> Columns:
    """Columns of rows (line, id, first, second, label), checked."""
    pairs = []
    for line, name, first, second, label in rows:
        label = _PUBLIC_LABELS.get(label, label)
        if label not in labels:
            some = ", ".join(labels) + " (0, 1)" * (labels == PI)
            raise TextError(f"{where}, line {line}: {label!r} is none of {some}.")
        if not (first.strip() and second.strip()):
            raise TextError(f"{where}, line {line}: an empty sentence.")
        pairs.append((first, second, label, name))
    if not pairs:
        raise TextError(f"{where} has no pair of this language and split.")
    return tuple(zip(*pairs, strict=True))


def read_xnli(lines: Sequence[str], where: str, language: str) -> Columns:
    """The pairs of a file of XNLI in one of its three public layouts, told apart by the header."""
    header = lines[0].split("\t")
    if header == ["premise", "hypo", "label"]:  # XNLI-MT-1.0
        rows = ((line, str(line - 1), *row) for line, row in _rows(lines, where, 3, 2))
    elif "gold_label" not in header:  # XTREME: three columns, no header
        rows = _of_xtreme(lines, where)
    else:  # XNLI-1.0: all languages in one file
        names = ("language", "pairID", "sentence1", "sentence2", "gold_label")
        if missing := [name for name in names if name not in header]:
            raise TextError(f"{where}, line 1: the header lacks {', '.join(missing)}.")
        code, *places = map(header.index, names)
        rows = (
            (line, *(row[i] for i in places))
            for line, row in _rows(lines, where, len(header), 2)
            if row[code] == language
        )
    return _pairs(rows, where, NLI)


def read_pawsx(lines: Sequence[str], where: str, untranslated: bool = False) -> tuple[Columns, int]:
    """The pairs of a file of PAWS-X or of XTREME's copy, and how many rows were left out.

    With ``untranslated``, pairs with a placeholder for a sentence are kept.
    """
    if lines[0].split("\t") == ["id", "sentence1", "sentence2", "label"]:
        rows = [(line, *row) for line, row in _rows(lines, where, 4, 2)]
    else:
        rows = list(_of_xtreme(lines, where))
    missing = {""} if untranslated else _NO_SENTENCE
    whole = [
        row
        for row in rows
        if row[-1].strip() not in _NO_LABEL
        and not {text.strip().casefold() for text in row[2:4]} & missing
    ]
    if rows and not whole:
        raise TextError(f"{where}: no row has both sentences and a label.")
    return _pairs(whole, where, PI), len(rows) - len(whole)


def _of_xtreme(lines: Sequence[str], where: str) -> Iterator[tuple[int, str, str, str, str]]:
    """Rows of XTREME's copies: no header, ids are line numbers, sentences as `csv` writes them."""
    for line, row in _rows(lines, where, 3, 1):
        yield line, str(line), *map(_unquoted, row)


def _unquoted(cell: str) -> str:
    """A cell without the quotation marks of the ``csv`` module; as it is where they are its own."""
    inner = re.fullmatch('"((?:[^"]|"")*)"', cell)
    return inner[1].replace('""', '"') if inner else cell


def read_sib200(lines: Sequence[str], where: str) -> Columns:
    """Sentences, topics and ids of a file of SIB-200, whose fields are as `csv` writes them.

    Raises TextError, with the line, for another header, another number of columns, quotation marks
    that do not close, an unknown topic, an id that is no number or comes twice, an empty sentence,
    and for a file without sentences.
    """
    header = ["index_id", "category", "text"]
    if lines[0].split("\t") != header:
        raise TextError(f"{where}, line 1: the header is not {', '.join(header)}.")
    rows: dict[str, tuple[str, str]] = {}
    for number, line in enumerate(lines[1:], 2):
        place = f"{where}, line {number}"
        try:
            (cells,) = csv.reader([line], delimiter="\t", strict=True) if line else ([],)
        except csv.Error as error:
            raise TextError(f"{place}: {error}.") from None
        name, topic, sentence = _checked(cells, 3, place)
        if not name.isdecimal():
            raise TextError(f"{place}: the id {name!r} is no number.")
        if name in rows:
            raise TextError(f"{place}: the id {name} comes twice.")
        if topic not in TOPICS:
            raise TextError(f"{place}: the topic {topic!r} is none of {', '.join(TOPICS)}.")
        if not sentence.strip():
            raise TextError(f"{place}: an empty sentence.")
        rows[name] = (sentence, topic)
    if not rows:
        raise TextError(f"{where} has no sentences.")
    sentences, topics = zip(*rows.values(), strict=True)
    return sentences, None, topics, tuple(rows)
