"""Count which pairs of the public test part of PAWS-X could be left out: pawsx_test.csv.

    python data/published/within_across/pawsx_test.py FOLDER

FOLDER holds ``test-<code>.tsv`` in seven languages, 2,000 lines each: two sentences and the label.
``NS`` or nothing stands for a sentence that was not translated; the label may be unknown (NA) but
in German and Chinese. Written is a row per subset: ``pairs`` in it, ``left_out`` of all, and the
``paraphrases`` in it by the labels that it names, or those of German (empty where not counted).
"""

import argparse
import csv
from pathlib import Path

HERE = Path(__file__).parent
LANGUAGES = ("en", "de", "fr", "es", "zh", "ko", "ja")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="the test files of PAWS-X")
    parser.add_argument("--out", type=Path, default=HERE, help="where to write")
    arguments = parser.parse_args()
    rows = {}
    for code in LANGUAGES:
        text = (arguments.folder / f"test-{code}.tsv").read_text(encoding="utf-8")
        rows[code] = [line.split("\t") for line in text.splitlines()]
    n = len(rows["en"])
    whole = {
        code: {k for k in range(n) if all(part.strip() not in ("", "NS") for part in own[k][:2])}
        for code, own in rows.items()
    }
    german, chinese = ([line[-1] for line in rows[code]] for code in ("de", "zh"))
    alike = {k for k in range(n) if german[k] == chinese[k]}
    subsets = {
        "labels of German": (set(range(n)), german),
        "labels of Chinese": (set(range(n)), chinese),
        "same label in German and Chinese": (alike, german),
        "both sentences in all languages": (set.intersection(*whole.values()), german),
    } | {f"both sentences in {code}": (own, None) for code, own in whole.items()}
    with (arguments.out / "pawsx_test.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("subset", "pairs", "left_out", "paraphrases"))
        for name, (kept, label) in subsets.items():
            paraphrases = sum(label[k] == "1" for k in kept) if label else ""
            writer.writerow((name, len(kept), n - len(kept), paraphrases))


if __name__ == "__main__":
    main()
