"""Make the shipped WMT24++ text from the original JSONL of the hub's ``google/wmt24pp``.

    python data/wmt24pp/make.py FOLDER

FOLDER holds ``en-ar_SA.jsonl`` and so on (a snapshot of the hub's repository). Written beside this
script, for the 36 languages of `xlx.text.languages`:

* ``<tag>.txt``: one segment a line in UTF-8 with LF, ``target`` of the 960 rows without
  ``is_bad_source``; ``en.txt`` holds their ``source``. A line break inside a segment is written as
  U+2424 (LF) or U+240D (CR), which occur nowhere in the text; `xlx.text.parallel.load` turns them
  back;
* ``segments.tsv``: id (``document:segment``) and domain of every line;
* ``facts.tsv``: by language, what the README says about the text;
* ``SHA256SUMS`` of these files and the licence (``sha256sum -c SHA256SUMS``).

``target`` and not ``original_target``, because it is the translation after post-editing, which the
authors of WMT24++ recommend as the default; ``original_target`` is the draft it corrects.
"""

import argparse
import sys
import warnings
from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from making import sha256

from xlx.text import languages
from xlx.text.files import one_line
from xlx.text.origins import CorpusWarning
from xlx.text.parallel import ParallelCorpus, load


def facts(corpus: ParallelCorpus) -> pd.DataFrame:
    """By language: characters, the longest segment, segments with a line break, segments equal to
    their English source, segments equal to an earlier one, segments with a backslash."""
    rows = []
    english = corpus.sentences["en"]
    repeated = corpus.duplicates()["language"].value_counts()
    for code, text in corpus.sentences.items():
        rows.append(
            {
                "language": code,
                "tag": languages.LANGUAGES[code].wmt24pp,
                "characters": sum(map(len, text)),
                "longest": max(map(len, text)),
                "line_break": sum("\n" in segment or "\r" in segment for segment in text),
                "as_english": sum(
                    a == b for a, b in zip(text, english, strict=True) if text != english
                ),
                "repeated": repeated.get(code, 0),
                "backslash": sum("\\" in segment for segment in text),
            }
        )
    return pd.DataFrame(rows)


def write(name: str, text: str) -> None:
    (HERE / name).write_text(text, encoding="utf-8", newline="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="with en-*.jsonl of google/wmt24pp")
    folder = parser.parse_args().folder
    with warnings.catch_warnings():
        # Text that is not on record stops here; repeated segments are counted in facts.tsv.
        warnings.simplefilter("error", CorpusWarning)
        warnings.filterwarnings("ignore", ".*repeat an earlier one", CorpusWarning)
        corpus = load("google/wmt24pp", languages.ABX, path=folder)
    for code, text in corpus.sentences.items():
        lines = "".join(one_line(segment) + "\n" for segment in text)
        write(f"{languages.LANGUAGES[code].wmt24pp}.txt", lines)
    rows = zip(("id", *corpus.ids), ("domain", *corpus.domains), strict=True)
    write("segments.tsv", "".join(f"{name}\t{domain}\n" for name, domain in rows))
    write("facts.tsv", facts(corpus).to_csv(sep="\t", index=False, lineterminator="\n"))
    files = sorted([*HERE.glob("*.txt"), *HERE.glob("*.tsv"), HERE / "LICENSE"])
    sums = (f"{sha256(file.read_bytes())}  {file.name}\n" for file in files)
    write("SHA256SUMS", "".join(sums))
    print(f"{len(corpus.languages)} languages, {len(corpus)} segments")


if __name__ == "__main__":
    main()
