"""Make the pretraining text of the miniature models: one archive a source.

    python data/pretraining/make.py --sources FOLDER --evaluation FOLDER [FOLDER ...]

``--sources`` holds the originals, unpacked: ``pretraining/<lang>/{common_voice,tatoeba}.txt``,
``ntrex/NTREX-128/newstest2019-*.txt`` and ``bible_nt/<lang>.tsv``. ``--evaluation`` names the
folders whose text an analysis evaluates on (WMT24++, FLORES-200, UD, PUD, XNLI, PAWS-X, XQuAD,
SIB-200, WikiAnn, UNER): no line of theirs stays in. Written beside this script:

* ``common_voice.tar.xz``, ``tatoeba.tar.xz``: ``<lang>.txt``, one sentence a line;
* ``ntrex.tar.xz``: ``<lang>.txt``, 1,997 lines, aligned across languages, and ``documents.txt``;
* ``bible_nt.tar.xz``: ``<lang>.tsv``, ``id<TAB>verse``, ids shared across languages, without the
  held-out books;
* ``counts.tsv``: lines, characters and lines left out, by source and language.

Two lines count as the same when their letters and digits are (case, spaces and punctuation do not
matter), so that a tokenised copy of a sentence is found too. Text shorter than ``SHORT`` such
characters is nobody's ("Yes.", a first name) and stays. In the two aligned sources a line that must
go is emptied, not removed: positions stay aligned.
"""

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path

from family.pretraining_text import HELD_OUT_BOOKS
from making import write_archive, write_table
from xlx.text.files import letters
from xlx.text.languages import LANGUAGES

HERE = Path(__file__).parent


#: Shorter lines (in letters and digits) are not looked up among the evaluation text.
SHORT = 12


def texts_of(path: Path) -> Iterator[str]:
    """Every string that a file of labelled or parallel data holds, in the form of a sentence."""
    raw = path.read_text(encoding="utf-8", errors="replace")
    match path.suffix:
        case ".conllu":
            yield from re.findall(r"^# text = (.*)$", raw, flags=re.MULTILINE)
            for block in raw.split("\n\n"):  # older releases have no "# text"
                rows = [row.split("\t") for row in block.split("\n") if row[:1].isdigit()]
                yield " ".join(row[1] for row in rows if row[0].isdigit())
        case ".iob2":
            for block in raw.split("\n\n"):
                rows = [row.split("\t") for row in block.split("\n") if row[:1].isdigit()]
                yield " ".join(row[1] for row in rows)
        case ".jsonl":
            for row in raw.splitlines():
                yield from strings_of(json.loads(row))
        case ".json":
            yield from strings_of(json.loads(raw))
        case ".tsv" if path.parent.name == "panx":
            for block in raw.split("\n\n"):
                yield " ".join(row.split("\t")[0] for row in block.split("\n"))
        case ".tsv":
            for row in raw.split("\n"):
                yield from row.split("\t")
        case _:
            yield from raw.split("\n")


def strings_of(value: object) -> Iterator[str]:
    """The strings in a nested JSON value, and the lines of each."""
    match value:
        case str():
            yield value
            yield from value.split("\n")
        case dict():
            for item in value.values():
                yield from strings_of(item)
        case list():
            for item in value:
                yield from strings_of(item)


def evaluation_lines(folders: list[Path]) -> set[str]:
    lines = set()
    for folder in folders:
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        for path in files:
            lines.update(key for text in texts_of(path) if len(key := letters(text)) >= SHORT)
        print(f"{folder.name}: {len(files)} files read, {len(lines):,} lines in all")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--evaluation", type=Path, nargs="+", required=True)
    arguments = parser.parse_args()
    sources = arguments.sources
    evaluated = evaluation_lines(arguments.evaluation)
    counts = []

    def keep(source: str, language: str, lines: list[str], aligned: bool) -> list[str]:
        tidy = [" ".join(line.split()) for line in lines]
        seen = [letters(line) in evaluated for line in tidy]
        kept = [
            "" if out else line for line, out in zip(tidy, seen, strict=True) if aligned or not out
        ]
        counts.append((source, language, sum(map(bool, kept)), sum(map(len, kept)), sum(seen)))
        return kept

    for source in ("common_voice", "tatoeba"):
        members = {}
        for language in LANGUAGES:
            path = sources / "pretraining" / language / f"{source}.txt"
            if path.exists():
                lines = [line for line in path.read_text("utf-8").split("\n") if line.strip()]
                members[f"{language}.txt"] = "\n".join(keep(source, language, lines, False)) + "\n"
        write_archive(HERE / f"{source}.tar.xz", members)

    ntrex = sources / "ntrex"
    documents = (ntrex / "DOCUMENT_IDS.tsv").read_text("utf-8").rstrip("\n")
    members = {"documents.txt": documents + "\n"}
    for language in LANGUAGES.values():
        stem = "src.eng" if language.code == "en" else f"ref.{language.ntrex}"
        text = (ntrex / "NTREX-128" / f"newstest2019-{stem}.txt").read_text("utf-8")
        lines = text.removesuffix("\n").split("\n")
        if len(lines) != documents.count("\n") + 1:
            raise SystemExit(f"NTREX {language.ntrex}: {len(lines)} lines, not one a document id")
        members[f"{language.code}.txt"] = (
            "\n".join(keep("ntrex", language.code, lines, True)) + "\n"
        )
    write_archive(HERE / "ntrex.tar.xz", members)

    members = {}
    for language in LANGUAGES:
        # Chinese is at hand in traditional characters only; the corpora analysed are simplified.
        path = sources / "bible_nt" / f"{language}.tsv"
        if path.exists():
            rows = [row.split("\t", 1) for row in path.read_text("utf-8").split("\n") if row]
            rows = [row for row in rows if row[0].split(".")[0] not in HELD_OUT_BOOKS]
            verses = keep("bible_nt", language, [verse for _, verse in rows], True)
            pairs = [f"{row[0]}\t{verse}" for row, verse in zip(rows, verses, strict=True) if verse]
            members[f"{language}.tsv"] = "\n".join(pairs) + "\n"
    write_archive(HERE / "bible_nt.tar.xz", members)
    columns = ("source", "language", "lines", "characters", "left_out")
    write_table(HERE / "counts.tsv", columns, counts)


if __name__ == "__main__":
    main()
