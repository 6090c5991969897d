"""A folder with one text file a language, in one of three layouts that is found out from the files.

* one sentence a line, line n the same in each, as in the data of MEXA (Kargaran et al.);
  ``segments.tsv`` beside them may give ``id`` and ``domain`` (tab-separated, with header);
* ``id<TAB>sentence``, if most lines of one of the files start with an id (no white space in it);
  then all lines of all files must;
* verses of the Parallel Bible Corpus (Mayer and Cysouw 2014), if the files are called
  ``deu-x-bible-luther1912.txt``: lines ``40001001<TAB>text``, those with ``#`` in front skipped,
  one translation a language (or script, where ``# ISO_15924:`` names it). The domain is the number
  of the book.

In the last two, ids that a language lacks, or has no text for, are left out in all, with a warning.
README, LICENSE, NOTICE, hidden files and subfolders are left alone, anything else is an error.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from xlx.core import checks
from xlx.core.languages import parse_tag
from xlx.text.files import TextError, by_id, decode, filled, in_common, tsv, with_ids
from xlx.text.origins import CorpusTexts
from xlx.text.varieties import keys_of, resolve

#: Files of a folder that are no text of a language.
_SEGMENTS = "segments.tsv"
_BESIDE = ("readme", "license", "licence", "notice")
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".zip", ".tar", ".tgz")

#: A translation of the Parallel Bible Corpus by its file name: ``deu-x-bible-luther1912.txt``.
_TRANSLATION = re.compile(r"(?P<code>[^-.]+)-x-bible\b.*")
#: What of it is no verse: metadata (``# key: value``), verses left out (``# id<TAB>text``), blanks.
_NOT_VERSE = re.compile(r"#.*|\s*")
#: A verse of it: two digits of the book, three each of chapter and verse. No text, no verse.
_VERSE = re.compile(r"([0-9]{8})(?:\t(.*))?")

#: The layouts of a folder.
_BY_LINE, _BY_ID, _BY_VERSE = (
    "one sentence a line",
    "id and sentence a line",
    "verses as in the Parallel Bible Corpus",
)


def read_folder(folder: Path, languages: Iterable[str] | None) -> tuple[CorpusTexts, str]:
    """The texts of a folder in these languages, aligned by line or by id, and the layout.

    Errors as `corpora.load`.
    """
    files = _files(folder)
    if languages is not None:
        languages = [languages] if isinstance(languages, str) else list(languages)
    keys = keys_of(files, {}, str(folder), languages)
    names = {key: files[keys[key]] for key in resolve(languages, keys, str(folder))}
    lines = {key: decode(file.read_bytes(), f"{key}: {file}") for key, file in names.items()}
    segments, layout, notes = _segments(folder), _layout(names.values(), lines.values()), []
    if layout == _BY_LINE:
        texts = {key: filled(rows, f"{key}: {names[key]}") for key, rows in lines.items()}
    elif segments:
        first = min(file.name for file in names.values())
        raise TextError(f"{folder / _SEGMENTS}: the lines of {first} have ids; remove one of both.")
    else:
        read = _verses if layout == _BY_VERSE else with_ids
        where = {key: f"{key}: {names[key]}" for key in names}
        rows = {key: by_id(read(lines[key], where[key]), where[key]) for key in names}
        ids, texts = in_common(rows)
        notes += _left_out(folder, rows, names, len(ids))
        segments = {"id": ids}
        if layout == _BY_VERSE:
            segments["domain"] = tuple(verse[:2] for verse in ids)
    first: dict[tuple[str, ...], str] = {}
    for key, text in texts.items():
        if (same := first.setdefault(text, key)) != key:
            notes.append(
                f"{names[same].name} and {names[key].name} hold the same text; nothing tells these "
                "two languages apart."
            )
    files = {key: file.name for key, file in names.items()}
    return CorpusTexts(texts, files, segments, _SEGMENTS, tuple(notes)), layout


def _segments(folder: Path) -> dict[str, tuple[str, ...]]:
    """Ids and domains from the file beside the text, if there is one."""
    file = folder / _SEGMENTS
    if not file.exists():
        return {}
    table = tsv(file.read_bytes(), str(file))
    segments = {name: tuple(table[name]) for name in ("id", "domain") if name in table}
    if not segments:
        raise TextError(f"{file}, line 1: the header names neither id nor domain.")
    return segments


def _files(folder: Path) -> dict[str, Path]:
    """The files of a folder that hold the text of a language, by language tag."""
    by_tag: dict[str, Path] = {}
    of_code: dict[str, Path] = {}
    for file in sorted(folder.iterdir()):
        name = file.name
        if file.is_dir() or name.startswith(".") or name == _SEGMENTS:
            continue
        if name.lower().split(".")[0] in _BESIDE:
            continue
        checks.regular(file, TextError)
        if file.suffix in _PACKED:
            raise TextError(f"{folder}: {name} is packed; unpack it first.")
        tag = code = file.stem
        if translation := _TRANSLATION.fullmatch(name):
            code = translation["code"]
            tag = "_".join([code, *_script(file)])
        try:
            parse_tag(tag)
        except ValueError as error:
            raise TextError(f"{folder}: file {name} is no text of a language: {error}") from None
        # A translation whose header names no script may be in that of any other.
        same = by_tag.get(tag) or by_tag.get(code) or (of_code.get(code) if tag == code else None)
        if same:
            raise TextError(
                f"{folder}: {same.name} and {name} are the same language; keep one of them."
            )
        by_tag[tag] = of_code[code] = file
    if not by_tag:
        what = (
            "has no text, but subfolders" if any(map(Path.is_dir, folder.iterdir())) else "is empty"
        )
        raise TextError(f"{folder} {what}; it needs one text file a language, such as en.txt.")
    kinds = {
        "two layouts": lambda file: bool(_TRANSLATION.fullmatch(file.name)),
        # en and en.txt are read alike.
        "two extensions": lambda file: file.suffix or ".txt",
    }
    for what, kind in kinds.items():
        first, *others = by_tag.values()
        if odd := [file for file in others if kind(file) != kind(first)]:
            raise TextError(
                f"{folder} holds {what}: {first.name} and {odd[0].name} are not of one kind; keep "
                "the files of one in a folder of their own."
            )
    return by_tag


def _script(file: Path) -> list[str]:
    """The script that the header of a translation names, if it does: [] or one ISO 15924 code."""
    with file.open("rb") as lines:
        for line in lines:
            text = line.decode("utf-8-sig", errors="replace").rstrip()
            if not _NOT_VERSE.fullmatch(text):
                break
            if script := re.fullmatch(r"# *ISO_15924: *([A-Z][a-z]{3})", text):
                return [script[1]]
    return []


def _layout(files: Iterable[Path], lines: Iterable[list[str]]) -> str:
    """Which layout these files, and their lines, have."""
    if any(_TRANSLATION.fullmatch(file.name) for file in files):
        return _BY_VERSE
    for rows in lines:
        if 2 * sum(bool(re.match(r"\S+\t", row)) for row in rows) > len(rows):
            return _BY_ID
    return _BY_LINE


def _verses(lines: Sequence[str], where: str) -> Iterator[tuple[int, str, str]]:
    """Number, id and text of the verses of the Parallel Bible Corpus."""
    for number, line in enumerate(lines, 1):
        if verse := _VERSE.fullmatch(line):
            yield number, verse[1], verse[2] or ""
        elif not _NOT_VERSE.fullmatch(line):
            raise TextError(
                f"{where}, line {number}: not a verse (eight digits, a tab and text) nor a line "
                "that starts with #."
            )


def _left_out(
    folder: Path, rows: dict[str, dict[str, str]], names: dict[str, Path], n: int
) -> list[str]:
    """What to warn with where not all languages have all ids; TextError where ``n``, theirs, is 0.

    ``rows``: language to id to sentence.
    """
    every = len(set().union(*rows.values()))
    fewest, most = (pick(rows, key=lambda key: len(rows[key])) for pick in (min, max))
    if not n:
        some = " and ".join(
            f"{next(iter(rows[key]), 'none')} in {names[key].name}" for key in (fewest, most)
        )
        raise TextError(
            f"{folder}: no id has a sentence in all of {len(rows)} files (the first is {some})."
        )
    if n == every:
        return []
    return [
        f"{every - n} of {every} ids are left out, as not all of {len(rows)} languages have them; "
        f"{names[fewest].name} lacks most, {every - len(rows[fewest])} of them; an id is what "
        "stands before the first tab."
    ]
