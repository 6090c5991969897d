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
import csv
from collections import Counter, defaultdict
from pathlib import Path

HERE = Path(__file__).parent
LANGUAGES = ("en", "de", "es", "fr", "ru")  # those of Table 4
TASKS = {
    "BiShift": "bigram_shift", "CoordInv": "coordination_inversion", "ObjNum": "obj_number",
    "SOMO": "odd_man_out", "Tense": "past_present", "SentLen": "sentence_length",
    "SubjNum": "subj_number", "WC": "word_content", "TreeDepth": "tree_depth",
}  # fmt: skip


def read(path: Path) -> list[tuple[str, str]]:
    """Sentences and labels; ValueError for a line that is not two fields."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        if line:
            sentence, tab, label = line.rpartition("\t")
            if not (tab and sentence and label):
                raise ValueError(f"{path}, line {number}: not sentence<TAB>label")
            rows.append((sentence, label))
    return rows


def labels(rows: list[tuple[str, str]]) -> dict[str, Counter]:
    """How often each sentence stands under each label."""
    found = defaultdict(Counter)
    for sentence, label in rows:
        found[sentence][label] += 1
    return found


def count(test: list[tuple[str, str]], validation: list[tuple[str, str]]) -> dict[str, object]:
    """The numbers of a row of release.csv."""
    sizes = Counter(label for _, label in test)
    own, both = labels(test), labels(test + validation)
    return {
        "test": len(test),
        "validation": len(validation),
        "identical": int(test == validation),
        "classes": len(sizes),
        "majority": max(sizes.values()),
        "test_distinct": len(own),
        "test_both": sum(len(each) > 1 for each in own.values()),
        "test_best": sum(max(each.values()) for each in own.values()),
        "distinct": len(both),
        "both": sum(len(each) > 1 for each in both.values()),
    }


def write(path: Path, rows: list[dict[str, object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="the release, unpacked")
    parser.add_argument("--out", type=Path, default=HERE, help="where to write")
    arguments = parser.parse_args()
    rows, shared = [], []
    for language in LANGUAGES:
        tasks = defaultdict(set)
        for task, name in TASKS.items():
            place = arguments.folder / language / name
            files = [read(place / f"{part}.txt") for part in ("te", "va")]
            rows.append({"language": language, "task": task} | count(*files))
            for sentence, _ in files[0] + files[1]:
                tasks[sentence].add(task)
        several = sum(len(each) > 1 for each in tasks.values())
        shared.append({"language": language, "sentences": len(tasks), "shared": several})
    write(arguments.out / "release.csv", rows)
    write(arguments.out / "release_shared.csv", shared)


if __name__ == "__main__":
    main()
