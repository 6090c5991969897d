"""Count pairs of the public PAWS-X that were not translated, or have no label of their own.

    python data/published/pawsx.py FOLDER [--out FOLDER]

FOLDER holds XTREME's ``dev-<code>.tsv`` and ``test-<code>.tsv`` in seven languages, 2,000 lines
each: two sentences and the label. ``NS`` or nothing stands for a sentence that was not translated;
the label of a test pair may be unknown (NA) but in German and Chinese. Written are

* ``igap/pawsx_dev.csv``, a row per language: its ``pairs``, how many have ``NS`` for a sentence
  (``untranslated``), and of these how many are paraphrases by its own label and by that of English;
* ``within_across/pawsx_test.csv``, a row per subset: ``pairs`` in it, ``left_out`` of all, and the
  ``paraphrases`` in it by the labels that it names, or those of German (empty where not counted).
"""

import argparse
from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent
LANGUAGES = ("en", "de", "fr", "es", "zh", "ko", "ja")


def read(folder: Path, part: str) -> dict[str, pd.DataFrame]:
    """The pairs of a part by language: columns first, second, label."""
    texts = {code: (folder / f"{part}-{code}.tsv").read_text("utf-8") for code in LANGUAGES}
    rows = {code: [x.split("\t") for x in text[:-1].split("\n")] for code, text in texts.items()}
    return {code: pd.DataFrame(x, columns=["first", "second", "label"]) for code, x in rows.items()}


def lost(pairs: pd.DataFrame, *signs: str) -> pd.Series:
    """Whether a sentence of a pair is one of the signs of no translation."""
    return pairs["first"].str.strip().isin(signs) | pairs["second"].str.strip().isin(signs)


def of_dev(pairs: dict[str, pd.DataFrame]) -> pd.DataFrame:
    rows = []
    for code in ("en", *sorted(LANGUAGES[1:])):
        gone = lost(pairs[code], "NS")
        paraphrases = ((pairs[language]["label"][gone] == "1").sum() for language in (code, "en"))
        rows.append((code, len(gone), gone.sum(), *paraphrases))
    more = ["paraphrases", "paraphrases_in_english"]
    return pd.DataFrame(rows, columns=["language", "pairs", "untranslated", *more])


def of_test(pairs: dict[str, pd.DataFrame]) -> pd.DataFrame:
    whole = pd.DataFrame({code: ~lost(part, "", "NS") for code, part in pairs.items()})
    german, chinese = pairs["de"]["label"], pairs["zh"]["label"]
    subsets = {
        "labels of German": (german.notna(), german),
        "labels of Chinese": (chinese.notna(), chinese),
        "same label in German and Chinese": (german == chinese, german),
        "both sentences in all languages": (whole.all(axis=1), german),
    } | {f"both sentences in {code}": (whole[code], None) for code in whole}
    rows = [
        (name, mask.sum(), (~mask).sum(), "" if label is None else (label[mask] == "1").sum())
        for name, (mask, label) in subsets.items()
    ]
    return pd.DataFrame(rows, columns=["subset", "pairs", "left_out", "paraphrases"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="the files of PAWS-X")
    parser.add_argument("--out", type=Path, default=HERE, help="where to write")
    given = parser.parse_args()
    for table, name in ((of_dev, "igap/pawsx_dev"), (of_test, "within_across/pawsx_test")):
        file = given.out / f"{name}.csv"
        table(read(given.folder, file.stem.split("_")[1])).to_csv(file, index=False)


if __name__ == "__main__":
    main()
