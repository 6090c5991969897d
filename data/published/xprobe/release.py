"""Fetch X-Probe's released sentences, and see whether their counts are those in release.csv.

    python data/published/xprobe/release.py FOLDER [--write]

FOLDER is fetched with git (`SOURCE` at `COMMIT`) where it is not there. It holds a folder a
language and in it one a task, with ``te.txt`` and ``va.txt``: lines ``sentence<TAB>label``. Two
sentences are the same if their strings are. Counts that differ from those kept here are an error;
``--write`` keeps them instead. No text is written.

* ``release.csv``, a row per language and task: ``test`` and ``validation`` (lines), ``identical``
  (whether the two files are), ``classes`` and ``majority`` (lines of the most frequent label) of
  the test; ``test_distinct``, its different sentences, ``test_both``, those of them that stand
  under more than one label, and ``test_best``, the lines that are right if every sentence is given
  its most frequent label; ``distinct`` and ``both``, the same of test and validation together.
* ``release_shared.csv``, a row per language: ``sentences``, the different ones of all tasks, test
  and validation together, and ``shared``, those that stand in more than one task.
"""

import argparse
import shutil
import subprocess
from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent
SOURCE = "https://github.com/ltgoslo/xprobe"
COMMIT = "b17e3c22ea657eb7f5b27e468cc72fcc4f4176f6"
LANGUAGES = ("en", "de", "es", "fr", "ru")  # those of Table 4
TASKS = {
    "BiShift": "bigram_shift",
    "CoordInv": "coordination_inversion",
    "ObjNum": "obj_number",
    "SOMO": "odd_man_out",
    "Tense": "past_present",
    "SentLen": "sentence_length",
    "SubjNum": "subj_number",
    "WC": "word_content",
    "TreeDepth": "tree_depth",
}


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


def fetch(folder: Path) -> None:
    """Clone the release into a folder, which is there whole or not at all."""
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    subprocess.run(["git", "clone", "--quiet", SOURCE, part], check=True)
    subprocess.run(["git", "-C", part, "checkout", "--quiet", COMMIT], check=True)
    part.rename(folder)


def counted(folder: Path) -> dict[str, pd.DataFrame]:
    """The two tables of a release, by the names of their files."""
    rows, shared = [], []
    for language in LANGUAGES:
        tasks = []
        for task, name in TASKS.items():
            files = [read(folder / language / name / f"{x}.txt") for x in ("te", "va")]
            rows.append({"language": language, "task": task} | count(*files))
            tasks.append(pd.concat(files)["sentence"].drop_duplicates())
        of_tasks = pd.concat(tasks).value_counts()
        several = (of_tasks > 1).sum()
        shared.append({"language": language, "sentences": len(of_tasks), "shared": several})
    return {"release.csv": pd.DataFrame(rows), "release_shared.csv": pd.DataFrame(shared)}


def compare(tables: dict[str, pd.DataFrame]) -> None:
    """ValueError, with the first count that is another one than in the tables here."""
    for name, table in tables.items():
        here = pd.read_csv(HERE / name)
        for row, column in zip(*(table != here).to_numpy().nonzero(), strict=True):
            where = f"{table.columns[column]} of {' '.join(table.select_dtypes('str').iloc[row])}"
            raise ValueError(
                f"{where} is {table.iloc[row, column]}, and {here.iloc[row, column]} in {name}: "
                f"delete the folder to fetch commit {COMMIT[:8]} anew, or keep this with --write"
            )


def main() -> None:
    """Fetch, count, and compare or write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="the release, or where to fetch it to")
    parser.add_argument("--write", action="store_true", help="keep the counts as the tables here")
    given = parser.parse_args()
    if not given.folder.is_dir():
        fetch(given.folder)
    tables = counted(given.folder)
    if not given.write:
        return compare(tables)
    for name, table in tables.items():
        table.to_csv(HERE / name, index=False)


if __name__ == "__main__":
    main()
