"""The text that the miniature models learn from, in lines.

Four sources in 36 languages, shipped in ``data/pretraining``. Two are aligned: NTREX-128 by line,
the New Testaments by verse. Held out of training are the New Testament books of `HELD_OUT_BOOKS`
(not in the archive at all) and the last documents of NTREX, on which every member's loss is taken
by language.
"""

import hashlib
import io
import tarfile
from collections.abc import Collection
from pathlib import Path

from xlx.results import paths, progress

#: New Testament books that no miniature model is trained on. The general epistles share few
#: sentences with the other books, unlike the Gospels, which repeat one another; Jude and 2 Peter
#: share many and so stay out together.
HELD_OUT_BOOKS = ("Jas", "1Pet", "2Pet", "1John", "2John", "3John", "Jude")
#: NTREX lines that no miniature model is trained on: at least so many, whole documents, the last.
HELD_OUT_LINES = 150
#: Sources whose lines are translations of one another at the same position (or verse id).
ALIGNED_SOURCES = ("ntrex", "bible_nt")
PRETRAINING_SOURCES = ("common_voice", "tatoeba", *ALIGNED_SOURCES)
#: source → language → line id → line
LinesById = dict[str, dict[str, dict[str, str]]]


def _archive(source: str) -> Path:
    path = paths.DATA / "pretraining" / f"{source}.tar.xz"
    if not path.exists():
        how = "restore it from the repository, or make it with data/pretraining/make.py"
        raise FileNotFoundError(f"the pretraining text {path.name} is not in {path.parent}: {how}")
    return path


def file_hashes() -> list[str]:
    """SHA-256 of the archive of each source: what decides everything computed from the text."""
    archives = map(_archive, PRETRAINING_SOURCES)
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in archives]


def read_source(source: str) -> dict[str, dict[str, str]]:
    """The pretraining text of a source: language → line id → line, empty lines left out.

    Ids are verse names in ``bible_nt`` and line numbers elsewhere. FileNotFoundError where the
    archive is missing.
    """
    text = {}
    with tarfile.open(_archive(source)) as archive:
        for member in archive.getmembers():
            name = Path(member.name)
            file = archive.extractfile(member)
            if file is None or name.stem == "documents":
                continue
            lines = io.TextIOWrapper(file, encoding="utf-8", newline="\n").read().split("\n")
            if name.suffix == ".tsv":
                rows = dict(line.split("\t", 1) for line in lines if line)
            else:
                rows = {str(number): line for number, line in enumerate(lines)}
            text[name.stem] = {key: line for key, line in rows.items() if line}
    return text


def held_out_ids() -> set[str]:
    """Ids of the NTREX lines that stay out of training: the last documents, whole."""
    with tarfile.open(_archive("ntrex")) as archive:
        documents = archive.extractfile("documents.txt").read().decode("utf-8").split()
    first = documents.index(documents[-HELD_OUT_LINES])
    return {str(number) for number in range(first, len(documents))}


def read_text(languages: Collection[str] = ()) -> tuple[LinesById, dict[str, list[str]]]:
    """All text, as (what members are trained on, held-out NTREX lines by language).

    Of all languages, or of some. The held-out lines are translations of one another, position by
    position, and the same whatever the languages. ValueError for a language without text.
    """
    text = {source: read_source(source) for source in progress.bar(PRETRAINING_SOURCES, "text")}
    known = {code for by_code in text.values() for code in by_code}
    if unknown := sorted(set(languages) - known):
        raise ValueError(f"the pretraining text holds no {', '.join(unknown)}")
    ntrex, held_out = text["ntrex"], held_out_ids()
    common = sorted(held_out.intersection(*ntrex.values()), key=int)
    chosen = set(languages or known)
    apart = {code: [ntrex[code][key] for key in common] for code in ntrex if code in chosen}
    text["ntrex"] = {
        code: {key: line for key, line in lines.items() if key not in held_out}
        for code, lines in ntrex.items()
    }
    texts = {
        source: {code: lines for code, lines in by_code.items() if code in chosen}
        for source, by_code in text.items()
    }
    return {source: by_code for source, by_code in texts.items() if by_code}, apart


def by_language(text: LinesById) -> dict[str, list[str]]:
    """All lines of a language, all sources one after another."""
    lines = {}
    for source in text.values():
        for language, by_id in source.items():
            lines.setdefault(language, []).extend(by_id.values())
    return lines
