"""Files of text: bytes to lines, tables parted by tabs, and the one error of all readers.

What is done to text: a byte order mark is taken off and CRLF line ends are read as LF. Lines end at
LF only, so other separators (U+2028, U+0085, a lone CR) stay inside their line. Nothing is
stripped, normalised or repaired.
"""

import bz2
import csv
import gzip
import hashlib
import io
import json
import lzma
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
from pandas import DataFrame

from xlx.results import checks, paths

#: What stands for a line break inside a sentence, so that a sentence is always one line of a file.
_LF, _CR = "\u2424", "\u240d"
#: Letters and signs that show nothing: fillers of Hangul, the empty pattern of Braille.
_BLANK = "\u115f\u1160\u3164\uffa0\u2800"
_NOT_LETTERS = re.compile(r"[\W_]+")
_PACKING = re.compile(r"\.(gz|bz2|xz)$")
_PACKINGS = {b"BZh": bz2, b"\xfd7zXZ\x00": lzma, b"\x1f\x8b": gzip}
_TORN = (lzma.LZMAError, zlib.error, OSError, EOFError, ValueError)
#: Of TMX: the language of a text, and what in a text stands for codes of its layout.
_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
_CODES = {"bpt", "ept", "it", "ph", "ut"}


#: Characters of a message.
_LONGEST = 900


class TextError(ValueError):
    """Text that cannot be used; says which file and line, or language, why, and what to do."""

    def __init__(self, message: str) -> None:
        """Of a long message, as of a torn file's cell, the middle is left out."""
        super().__init__(
            message if len(message) <= _LONGEST else f"{message[:500]} … {message[-300:]}"
        )


def files_below(path: Path, fits: Callable[[Path], object], what: str, how: str) -> list[Path]:
    """``path`` where it is a file, else the files below it that fit, at any depth, in order.

    FileNotFoundError where there is nothing, TextError where none fits; ``how`` to get ``what``.
    """
    if not path.exists():
        raise FileNotFoundError(f"There is nothing at {path}; {how}")
    files = [path] if path.is_file() else [f for f in sorted(path.rglob("*")) if fits(f)]
    if not files:
        raise TextError(f"{path} has no {what}; {how}")
    return files


def single_file(files: Sequence[Path], what: str) -> Path:
    """The one file that there is; several are a TextError."""
    if len(files) > 1:
        some = ", ".join(map(str, files))
        raise TextError(f"There are several files with {what} ({some}); give one as path=.")
    return files[0]


def unpacked_name(name: str) -> str:
    """The name of a file without the extension of its packing: "en.txt.gz" gives "en.txt"."""
    return _PACKING.sub("", name)


def unpacked(data: bytes, where: str) -> bytes:
    """The contents of a file, plain or packed with gzip, xz or bzip2. ``where`` opens the error."""
    packing = _packing(data)
    return _whole(packing.decompress, data, where) if packing else data


def _packing(data: bytes) -> Any:
    """The module of the packing that data starts with; None for none."""
    return next((module for sign, module in _PACKINGS.items() if data.startswith(sign)), None)


def _whole(read: Callable[[Any], Any], source: Any, where: str) -> Any:
    try:
        return read(source)
    except _TORN as error:
        raise TextError(f"{where}: not a whole packed file ({error}); fetch it again.") from None


def decode(data: bytes, where: str, first: int = 1) -> list[str]:
    """Lines of UTF-8 text, from line ``first`` of ``where`` on, which opens the error.

    Without line ends, and the byte order mark of a first line.
    """
    place, problem = data.find(b"\0"), "a NUL byte, which text does not have; is it UTF-16?"
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        place, problem = error.start, f"byte 0x{data[error.start]:02x} is not UTF-8 text."
    if place >= 0:
        line = data.count(b"\n", 0, place) + first
        raise TextError(f"{where}, line {line}: {problem} Save the file in UTF-8.")
    lines = (text.removeprefix("\ufeff") if first == 1 else text).split("\n")
    lines[:-1] = [line.removesuffix("\r") for line in lines[:-1]]
    return lines if lines[-1] else lines[:-1]  # what follows the last line end is no line


def streamed_lines(file: Path) -> Iterator[str]:
    """The lines of a file, plain or packed, a megabyte of them at a time: it may have any size.

    Errors as `unpacked` and `decode`, once a line before them was given, too.
    """
    first, where = 1, str(file)
    with file.open("rb") as plain:
        packing = _packing(plain.peek(6))
        with packing.open(plain) if packing else plain as rows:
            while some := _whole(rows.readlines, 2**20, where):
                yield from decode(b"".join(some), where, first)
                first += len(some)


def tsv(data: bytes, where: str) -> DataFrame:
    """A table parted by tabs, with a header, every cell as the text it is."""
    return _framed([line.split("\t") for line in decode(data, where)], f"{where}, line", 2)


def _framed(rows: Sequence[list[str]], where: str, first: int) -> DataFrame:
    header, *rows = rows or [[]]
    for number, row in enumerate(rows, first):
        if (n := len(row)) != len(header):
            raise TextError(f"{where} {number}: {n} cells under a header of {len(header)}.")
    return DataFrame(rows, columns=header, dtype=object)


def table_of(file: Path) -> DataFrame:
    """A table of text: CSV, TSV, JSON lines, parquet (nested, too), TMX (one row per unit)."""
    table = _read_table(unpacked(file.read_bytes(), str(file)), file)
    if twice := [str(name) for name, n in Counter(table.columns).items() if n > 1]:
        raise TextError(f"{file}: two columns are called {twice[0]!r}; rename or remove one.")
    return table


def _read_table(data: bytes, file: Path) -> DataFrame:
    where = str(file)
    try:
        if ".parquet" in file.suffixes:
            table = pd.read_parquet(io.BytesIO(data)).astype(object)  # what is no UTF-8 shows now
            nested = [x for x in table if len(table) and isinstance(table[x].iloc[0], dict)]
            return pd.concat([table, *(DataFrame([*table[x]]) for x in nested)], axis=1)
        if ".jsonl" in file.suffixes:
            return DataFrame(map(json.loads, decode(data, where)), dtype=object)
        if ".tmx" in file.suffixes:
            return DataFrame(
                {"id": unit.get("tuid")}
                | {
                    (variant.get(_LANG) or variant.get("lang")): _segment(variant.find("seg"))
                    for variant in unit.iter("tuv")
                }
                for unit in ElementTree.fromstring(data).iter("tu")
            )
        header, *lines = decode(data, where) or [""]
        if "\t" in header:
            return tsv(data, where)
        text, parted = "\n".join([header, *lines]), max(",;", key=header.count)
        rows = csv.reader(io.StringIO(text), delimiter=parted, strict=True)
        return _framed([row for row in rows if row], f"{where}, row", 1)
    except TextError:
        raise
    except Exception as error:  # of torn files: whatever pyarrow and expat raise
        raise TextError(f"{where} is no table of text ({checks.reason(error)}).") from None


def _segment(element: ElementTree.Element | None) -> str:
    """Text of a segment, without codes of layout."""
    if element is None:
        return ""
    inside = ("" if x.tag in _CODES else _segment(x) for x in element)
    parts = zip(inside, (x.tail or "" for x in element), strict=True)
    return (element.text or "") + "".join(text + tail for text, tail in parts)


def letters(text: str | Iterable[str]) -> str:
    """Letters and digits of a text or its tokens, without case: what makes two texts the same."""
    return _NOT_LETTERS.sub("", text if isinstance(text, str) else "".join(text)).casefold()


def visible(sentence: str) -> bool:
    """Whether there is more in it than spaces and invisible characters."""
    blank = {"Zs", "Zl", "Zp", "Cc", "Cf"}
    return any(c not in _BLANK and unicodedata.category(c) not in blank for c in sentence)


#: Of the Parallel Bible Corpus: metadata, verses that are left out, blanks, numbers alone.
_NO_VERSE = re.compile(r"#.*|\s*|\d{8}")


class _Signs(dict[int, str]):
    """For `str.translate`: a sign as it is, an invisible one as nothing."""

    def __missing__(self, code: int) -> str:
        sign = chr(code)
        return self.setdefault(code, sign if sign.isspace() or visible(sign) else "")


_SIGNS = _Signs()


def appearance(text: str) -> str:
    """A text in Unicode's composed form, single spaces for any, without invisible characters."""
    return " ".join(unicodedata.normalize("NFC", text).translate(_SIGNS).split())


def filled(lines: Sequence[str], where: str) -> tuple[str, ...]:
    """The lines, one or more, of which none is empty or all spaces and invisible characters."""
    if not lines:
        raise TextError(f"{where} is empty; it needs one sentence a line.")
    if n := len(empty := [number for number, line in enumerate(lines, 1) if not visible(line)]):
        some = ", ".join(map(str, empty[:5])) + ", …" * (n > 5)
        what = f"{n} empty line{'s' * (n > 1)} ({some})"
        raise TextError(f"{where}: {what}; fill or remove the position in all languages.")
    return tuple(lines)


def by_id(lines: Iterable[tuple[int, str, str]], where: str) -> dict[str, str]:
    """Rows (line, id, sentence) as id → sentence, in order; empty sentences are left out.

    TextError, with the line, for an id that comes twice.
    """
    sentences = {}
    for number, key, sentence in lines:
        if key in sentences:
            what = f"the id {key} comes a second time; an id is what stands before the first tab"
            raise TextError(f"{where}, line {number}: {what}.")
        sentences[key] = sentence
    return {key: sentence for key, sentence in sentences.items() if visible(sentence)}


def with_ids(lines: Sequence[str], where: str) -> Iterator[tuple[int, str, str]]:
    """Number, id and sentence of lines ``id<TAB>sentence``; a sentence may hold tabs itself.

    Of the Parallel Bible Corpus, verses with text.
    """
    bible = lines[:1] and lines[0].startswith("# language_name:")
    for number, line in enumerate(lines, 1):
        if bible and _NO_VERSE.fullmatch(line):
            continue
        key, tab, sentence = line.partition("\t")
        if not tab or not key:
            problem = "not an id, a tab and a sentence as elsewhere"
            raise TextError(f"{where}, line {number}: {problem}; give all lines an id or none.")
        yield number, key, sentence


def in_common(
    texts: Mapping[str, Mapping[str, str]],
) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
    """The ids that all texts (id → sentence) have, in the order of the first; their sentences."""
    first, *others = texts.values()
    ids = tuple(key for key in first if all(key in rows for rows in others))
    return ids, {name: tuple(rows[key] for key in ids) for name, rows in texts.items()}


def one_line(sentence: str) -> str:
    """The sentence with U+2424 and U+240D for its line breaks, as in ``data/wmt24pp``."""
    return sentence.replace("\n", _LF).replace("\r", _CR)


def broken(line: str) -> str:
    """The sentence of which `one_line` makes this line."""
    return line.replace(_LF, "\n").replace(_CR, "\r")


def sentences_hash(sentences: Sequence[str]) -> str:
    """SHA-256 of the sentences as a file: UTF-8, LF, `one_line` each; once for the same ones."""
    return _sentences_hash(tuple(sentences))


@lru_cache(maxsize=2**12)
def _sentences_hash(sentences: tuple[str, ...]) -> str:
    text = "".join(one_line(sentence) + "\n" for sentence in sentences)
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=4)
def _table(data: bytes, where: str) -> DataFrame:
    """A catalogue, with whole numbers in the columns that count something."""
    table = tsv(data, where)
    return table.astype({x: int for x in table if len(table) and table[x].str.isdigit().all()})


def stamp(kind: str, name: str = "sources.tsv") -> tuple[Any, ...]:
    """What tells a file of ``data/<kind>`` from what it was before: place, size and time."""
    file = paths.DATA / kind / name
    state = file.stat() if file.exists() else None
    return file, state and (state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=4)
def _records(data: bytes, where: str) -> list[dict[str, Any]]:
    return _table(data, where).to_dict("records")


def catalogue(kind: str) -> DataFrame:
    """What is shipped of a kind ("labelled", "questions", "trees"): one row per part that is read.

    Without the sources that end in "-whole": all of a public set of which a subset is shipped under
    another name. The columns are those of ``data/<kind>/sources.tsv``: source,
    language, made_from (of which public files), licence, url, file, sha256, counts. ``identity`` of
    labelled data is what results know the row by; if empty, it is sha256.

    Raises TextError if ``sources.tsv`` is missing or malformed.
    """
    table = _table(_read(kind, "sources.tsv"), f"data/{kind}/sources.tsv")
    return table[~table["source"].str.endswith("-whole")].copy()


def _read(kind: str, name: str) -> bytes:
    file = paths.DATA / kind / name
    if not file.exists():
        raise TextError(f"{file} is missing; restore data/{kind} from the repository.")
    return file.read_bytes()


def entry(kind: str, how: str, language: str, **values: str) -> dict[str, Any]:
    """The row of the catalogue with these values; TextError, ended by ``how``, where none has."""
    every = _records(_read(kind, "sources.tsv"), f"data/{kind}/sources.tsv")
    rows = [row for row in every if all(row[column] == values[column] for column in values)]
    for row in rows:
        if row["language"] == language:
            return dict(row)
    there = ", ".join(row["language"] for row in rows) or "nothing"
    what = " ".join(values.values())
    raise TextError(f"No {kind} data ({what}) is shipped in {language}; there is {there}. {how}")


def contents(kind: str, row: dict[str, Any]) -> bytes:
    """The unpacked contents of the file of a row; TextError if it is not that on record."""
    data, file = _read(kind, row["file"]), f"data/{kind}/{row['file']}"
    if hashlib.sha256(data).hexdigest() != row["sha256"]:
        raise TextError(
            f"{file} is not the file on record in sources.tsv; restore it from the repository."
        )
    return unpacked(data, row["file"])


def lines_of(kind: str, row: dict[str, Any]) -> list[str]:
    """The lines of the file of a row; errors as `contents`."""
    return decode(contents(kind, row), row["file"])
