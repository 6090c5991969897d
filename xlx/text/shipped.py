"""What ``data/labelled``, ``data/questions`` and ``data/trees`` ship: a catalogue, and its files.

Each folder has a ``sources.tsv``, one row a file, or a subset of what is in one: where it is from,
its licence, what is in it, its SHA-256. A file is read only if it is the one on record.
"""

import hashlib
from functools import lru_cache
from typing import Any

import pandas as pd

from xlx.core import paths
from xlx.text.files import TextError, decode, tsv, unpacked

#: The columns of each catalogue that count something.
_COUNTS = {
    "labelled": ("train", "validation", "test", "words", "repaired"),
    "questions": ("questions", "contexts", "answers"),
    "trees": ("sentences", "words", "tokens"),
}


@lru_cache(maxsize=4)
def _table(data: bytes, where: str, kind: str) -> pd.DataFrame:
    return tsv(data, where).astype(dict.fromkeys(_COUNTS[kind], int))


def catalogue(kind: str, *, whole: bool = False) -> pd.DataFrame:
    """What is shipped of a kind ("labelled", "questions", "trees"): one row a part that is read.

    With ``whole``, also the sources that end in "-whole": all of a public set of which a subset is
    shipped under another name. Without, no text is listed under a set and again under its subset.

    All have the columns source, language, made_from (of which public files), licence, url, file
    and sha256; and

    * labelled: task, treebank (else the file's data set), version; train, validation, test
      (sentences or pairs), words (of all three), repaired (tags); licence_file; identity (what
      results know the row by; if empty, sha256);
    * questions: split; questions, contexts (distinct), answers; left_out ("reason: number; …");
    * trees: treebank, version; sentences, words, tokens; left_out; licence_file (from ``data/``).

    Raises TextError if ``sources.tsv`` is missing or malformed.
    """
    table = _table(_read(kind, "sources.tsv"), f"data/{kind}/sources.tsv", kind)
    return table[whole | ~table["source"].str.endswith("-whole")].copy()


def _read(kind: str, name: str) -> bytes:
    file = paths.DATA / kind / name
    if not file.exists():
        raise TextError(f"{file} is missing; {_remedy(kind)}")
    return file.read_bytes()


def entry(kind: str, how: str, **of: str) -> dict[str, Any]:
    """The row of the catalogue with these values, one of them its language.

    ``how`` ends the TextError where there is none: what to do.
    """
    rows = catalogue(kind, whole=True)
    for column in set(of) - {"language"}:
        rows = rows[rows[column] == of[column]]
    row = rows[rows["language"] == of["language"]].to_dict("records")
    if not row:
        what = " ".join(value for column, value in of.items() if column != "language")
        there = ", ".join(rows["language"]) or "nothing"
        raise TextError(
            f"No {kind} data ({what}) is shipped in {of['language']}; there is {there}. {how}"
        )
    return row[0]


def contents(kind: str, row: dict[str, Any]) -> bytes:
    """The unpacked contents of the file of a row. Raises TextError if it is not that on record."""
    data = _read(kind, row["file"])
    if hashlib.sha256(data).hexdigest() != row["sha256"]:
        raise TextError(
            f"data/{kind}/{row['file']} is not the file on record in sources.tsv; {_remedy(kind)}"
        )
    return unpacked(data, row["file"])


def lines_of(kind: str, row: dict[str, Any]) -> list[str]:
    """The lines of the file of a row; errors as `contents`."""
    return decode(contents(kind, row), row["file"])


def left_out(row: dict[str, Any]) -> dict[str, int]:
    """Why something of the public files is not in a row's file → how many."""
    reasons = (reason.rsplit(": ", 1) for reason in row["left_out"].split("; ") if reason)
    return {why: int(n) for why, n in reasons}


def _remedy(kind: str) -> str:
    return f"restore data/{kind} from the repository."
