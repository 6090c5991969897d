"""Make ``checksums.tsv``: what the text of every known parallel corpus must be.

    python data/checksums.py --wmt24pp FOLDER --ntrex FOLDER --flores200 FOLDER

The folders hold the originals, unpacked: ``en-*.jsonl``; ``NTREX-128/`` and ``DOCUMENT_IDS.tsv``;
``devtest/``. Columns: corpus, tag (of the language, as in the file names), file, sha256 (of the
file), text_sha256 (of the sentences, one a line, in UTF-8 with LF; in WMT24++ the rows without
``is_bad_source``, a line break within a segment written as U+2424 or U+240D). The second hash does
not depend on line ends or packaging, so it holds for any copy of the text.
"""

import argparse
import hashlib
import json
from pathlib import Path

HERE = Path(__file__).parent
NTREX = "newstest2019-ref.{}.txt"


def sha256(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def wmt24pp(folder: Path) -> list[tuple[str, ...]]:
    def one_line(sentence: str) -> str:
        if "\u2424" in sentence or "\u240d" in sentence:
            raise SystemExit(f"{folder}: a sentence holds U+2424 or U+240D, which mark line breaks")
        return sentence.replace("\n", "\u2424").replace("\r", "\u240d") + "\n"

    rows = []
    for file in sorted(folder.glob("en-*.jsonl")):
        data = file.read_bytes()
        segments = [json.loads(line) for line in data.decode().split("\n") if line]
        segments = [segment for segment in segments if not segment["is_bad_source"]]
        for tag, field in (("en", "source"), (file.stem[3:], "target")):
            text = "".join(one_line(segment[field]) for segment in segments)
            rows.append(("wmt24pp", tag, file.name, sha256(data), sha256(text)))
    english = [row for row in rows if row[1] == "en"]
    if len({row[-1] for row in english}) != 1:
        raise SystemExit(f"{folder}: the English source differs between files")
    return [("wmt24pp", "en", "", "", english[0][-1])] + [row for row in rows if row[1] != "en"]


def lines(corpus: str, tag: str, file: Path) -> tuple[str, ...]:
    data = file.read_bytes()
    return corpus, tag, file.name, sha256(data), sha256(data.replace(b"\r\n", b"\n"))


def ntrex(folder: Path) -> list[tuple[str, ...]]:
    files = {"eng": folder / "NTREX-128" / "newstest2019-src.eng.txt"}
    # ref-2.spa, a second Spanish translation, is left out: a language has one text here.
    for file in sorted((folder / "NTREX-128").glob(NTREX.format("*"))):
        files[file.name.split(".")[1]] = file
    files[""] = folder / "DOCUMENT_IDS.tsv"
    return [lines("ntrex", tag, file) for tag, file in files.items()]


def flores200(folder: Path) -> list[tuple[str, ...]]:
    files = sorted((folder / "devtest").glob("*.devtest"))
    return [lines("flores200", file.stem, file) for file in files]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for corpus in ("wmt24pp", "ntrex", "flores200"):
        parser.add_argument(f"--{corpus}", type=Path, required=True)
    given = parser.parse_args()
    rows = [("corpus", "tag", "file", "sha256", "text_sha256")]
    rows += wmt24pp(given.wmt24pp) + ntrex(given.ntrex) + flores200(given.flores200)
    with (HERE / "checksums.tsv").open("w", encoding="utf-8", newline="\n") as out:
        out.writelines("\t".join(row) + "\n" for row in rows)
    print(f"{len(rows) - 1} texts")


if __name__ == "__main__":
    main()
