"""Count the pairs of the public dev part of PAWS-X that were not translated: pawsx_dev.csv.

    python data/published/igap/pawsx_dev.py FOLDER

FOLDER holds XTREME's ``dev-<code>.tsv`` in seven languages, 2,000 lines each: two sentences and the
label. ``NS`` stands for a sentence that was not translated. Written is a row per language: its
``pairs``, how many have ``NS`` for a sentence (``untranslated``), and of these how many are
paraphrases by its own label and by that of English.
"""

import argparse
import csv
from pathlib import Path

HERE = Path(__file__).parent
LANGUAGES = ("en", "de", "es", "fr", "ja", "ko", "zh")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="the dev files of XTREME's PAWS-X")
    parser.add_argument("--out", type=Path, default=HERE, help="where to write")
    arguments = parser.parse_args()
    rows = {}
    for code in LANGUAGES:
        text = (arguments.folder / f"dev-{code}.tsv").read_text(encoding="utf-8")
        rows[code] = [line.split("\t") for line in text.rstrip("\n").split("\n")]
    with (arguments.out / "pawsx_dev.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(
            ("language", "pairs", "untranslated", "paraphrases", "paraphrases_in_english")
        )
        for code, own in rows.items():
            lost = [k for k, line in enumerate(own) if "NS" in map(str.strip, line[:2])]
            paraphrases = [sum(rows[of][k][-1] == "1" for k in lost) for of in (code, "en")]
            writer.writerow((code, len(own), len(lost), *paraphrases))


if __name__ == "__main__":
    main()
