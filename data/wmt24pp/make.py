"""Make the shipped WMT24++ text from the original JSONL of the hub's ``google/wmt24pp``.

    python data/wmt24pp/make.py FOLDER

FOLDER holds ``en-ar_SA.jsonl`` and so on (a snapshot of the hub's repository). Written beside this
script, for the 36 languages of `xlx.text.languages`:

* ``<tag>.txt``: one segment a line in UTF-8 with LF, ``target`` of the 960 rows without
  ``is_bad_source``; ``en.txt`` holds their ``source``. A line break inside a segment is written as
  U+2424 (LF) or U+240D (CR), which occur nowhere in the text; `xlx.text.parallel.load` turns them
  back;
* ``segments.tsv``: id (``document:segment``) and domain of every line;
* ``SHA256SUMS`` of these files and the licence (``sha256sum -c SHA256SUMS``).

``target`` and not ``original_target``, because it is the translation after post-editing, which the
authors of WMT24++ recommend as the default; ``original_target`` is the draft it corrects.
"""

import json
from pathlib import Path

from making import folder_named, sha256
from xlx.text import parallel
from xlx.text.files import one_line
from xlx.text.languages import LANGUAGES

HERE = Path(__file__).parent


def write(name: str, lines: list[str]) -> None:
    (HERE / name).write_text("".join(f"{x}\n" for x in lines), encoding="utf-8", newline="\n")


def main() -> None:
    folder, segments = folder_named(__doc__, "en-*.jsonl of google/wmt24pp"), []
    for language in LANGUAGES.values():
        tag, field = (language.wmt24pp, "target") if language.code != "en" else ("de_DE", "source")
        (file,) = folder.rglob(f"en-{tag}.jsonl")
        rows = [json.loads(line) for line in file.read_text("utf-8").split("\n") if line]
        rows = [row for row in rows if not row["is_bad_source"]]
        segments.append([(f"{x['document_id']}:{x['segment_id']}", x["domain"]) for x in rows])
        if segments[-1] != segments[0]:
            raise SystemExit(f"{file} holds other segments than the first file")
        write(f"{language.wmt24pp}.txt", [one_line(row[field]) for row in rows])
    write("segments.tsv", ["id\tdomain", *map("\t".join, segments[0])])
    corpus = parallel.load("wmt24pp")  # text that is not on record stops here
    files = sorted([*HERE.glob("*.txt"), *HERE.glob("*.tsv"), HERE / "LICENSE"])
    write("SHA256SUMS", [f"{sha256(file.read_bytes())}  {file.name}" for file in files])
    print(f"{len(corpus.languages)} languages, {len(corpus)} segments")


if __name__ == "__main__":
    main()
