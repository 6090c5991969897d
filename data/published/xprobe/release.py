"""Count what X-Probe's released test and validation files hold: release.csv, release_shared.csv.

    python data/published/xprobe/release.py FOLDER

FOLDER holds a folder a language and in it one a task, with ``te.txt`` and ``va.txt``: lines
``sentence<TAB>label``, as in github.com/ltgoslo/xprobe. Only counts are written, no text. Two
sentences are the same if their strings are.

* ``release.csv``, a row per language and task: ``test`` and ``validation`` (lines), ``identical``
  (whether the two files are), ``classes`` and ``majority`` (lines of the most frequent label) of
  the test; ``test_distinct``, its different sentences, ``test_both``, those of them that stand
  under more than one label, and ``test_best``, the lines that are right if every sentence is given
  its most frequent label; ``distinct`` and ``both``, the same of test and validation together.
* ``release_shared.csv``, a row per language: ``sentences``, the different ones of all tasks, test
  and validation together, and ``shared``, those that stand in more than one task.
"""

import argparse
from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent
LANGUAGES = ("en", "de", "es", "fr", "ru")  # those of Table 4
TASKS = {
    "BiShift": "bigram_shift", "CoordInv": "coordination_inversion", "ObjNum": "obj_number",
    "SOMO": "odd_man_out", "Tense": "past_present", "SentLen": "sentence_length",
    "SubjNum": "subj_number", "WC": "word_content", "TreeDepth": "tree_depth",
}  # fmt: skip


def read(path: Path) -> pd.DataFrame:
    """Columns sentence and label; ValueError for a line that is not two fields."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line:
            sentence, tab, label = line.rpartition("\t")
            if not (tab and sentence and label):
                raise ValueError(f"{path}, line {number}: not sentence<TAB>label")
            rows.append((sentence, label))
    return pd.DataFrame(rows, columns=["sentence", "label"])


def count(test: pd.DataFrame, validation: pd.DataFrame) -> dict[str, int]:
    """The numbers of a row of release.csv."""
    sizes, under = test["label"].value_counts(), test.value_counts().groupby("sentence")
    labels = pd.concat([test, validation]).groupby("sentence")["label"].nunique()
    return {
        "test": len(test),
        "validation": len(validation),
        "identical": int(test.equals(validation)),
        "classes": len(sizes),
        "majority": sizes.max(),
        "test_distinct": under.ngroups,
        "test_both": (under.size() > 1).sum(),
        "test_best": under.max().sum(),
        "distinct": len(labels),
        "both": (labels > 1).sum(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="the release, unpacked")
    parser.add_argument("--out", type=Path, default=HERE, help="where to write")
    given = parser.parse_args()
    rows, shared = [], []
    for language in LANGUAGES:
        tasks = []
        for task, name in TASKS.items():
            files = [read(given.folder / language / name / f"{x}.txt") for x in ("te", "va")]
            rows.append({"language": language, "task": task} | count(*files))
            tasks.append(pd.concat(files)["sentence"].drop_duplicates())
        of_tasks = pd.concat(tasks).value_counts()
        several = (of_tasks > 1).sum()
        shared.append({"language": language, "sentences": len(of_tasks), "shared": several})
    pd.DataFrame(rows).to_csv(given.out / "release.csv", index=False)
    pd.DataFrame(shared).to_csv(given.out / "release_shared.csv", index=False)


if __name__ == "__main__":
    main()
