"""Probing tasks as they are released: both layouts, either order of columns, malformed lines."""

from pathlib import Path

import pytest

from xlx.measures.sentence_tasks import PROBING_TASKS, overlaps
from xprobe_2_mapping import RELEASED, read_released, read_senteval

LINES = """tr\tO\tAnna sleeps .
tr\tI\tsleeps Anna .
tr\tO\tTom eats , he says
va\tO\tAnna sleeps !
va\tI\tA B
te\tI\the says , Tom eats
te\tO\tA B
te\tO\ta b .
"""


def test_released_data_are_read_and_their_overlaps_seen(tmp_path: Path) -> None:
    file = tmp_path / "bigram_shift.txt"
    file.write_text(LINES, encoding="utf-8")
    task = read_senteval(file, "BiShift", "en")
    assert task.classes == ("I", "O")
    assert task.train.labels.tolist() == [1, 0, 1]
    assert task.test.tokens[0] == ("he", "says", ",", "tom", "eats")
    assert task.train.bases[1] == "bigram_shift.txt:2"
    assert task.majority == pytest.approx(2 / 3)
    # "he says , Tom eats" is a bag of train; "A B" is in both others
    assert overlaps(task) == {"sentences": 2, "bags": 2, "bases": 0}


def in_folder(folder: Path, rows: str) -> Path:
    """The same rows in all parts, as X-Probe has them."""
    for part in ("tr", "va", "te"):
        (folder / f"{part}.txt").write_text(rows, encoding="utf-8")
    return folder


def test_released_data_in_a_folder_have_labels_in_their_order(tmp_path: Path) -> None:
    task = read_senteval(in_folder(tmp_path, "a b\t10\nc d\t2\n"), "TreeDepth", "de")
    assert task.classes == ("2", "10")
    assert [part.labels.tolist() for part in task.parts().values()] == [[1, 0]] * 3
    (tmp_path / "te.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"te.txt; give the file"):
        read_senteval(tmp_path, "TreeDepth", "de")


def test_released_tasks_are_found_by_their_names_as_files_or_folders(tmp_path: Path) -> None:
    assert list(RELEASED) == list(PROBING_TASKS)
    for i, name in enumerate(PROBING_TASKS):
        place = tmp_path / RELEASED[name]
        if i % 2:
            place.mkdir()
            in_folder(place, f"A b\t{i}\nC d\t{i + 1}\n")
        else:
            rows = [f"{x}\t{i}\tA b\n{x}\t{i + 1}\tC d" for x in ("tr", "va", "te")]
            place.with_suffix(".txt").write_text("\n".join(rows), encoding="utf-8")
    found = read_released(tmp_path, "de")
    assert [task.name for task in found] == list(PROBING_TASKS)
    assert [task.classes for task in found] == [(str(i), str(i + 1)) for i in range(9)]
    assert {task.language for task in found} == {"de"}
    assert {task.train.tokens for task in found} == {(("a", "b"), ("c", "d"))}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (LINES + "tx\tO\tA\n", r"a.txt, line 9: not part, label and sentence"),
        (LINES.replace("va\tI\tA B", "va\tI"), r"a.txt, line 5: not part"),
        (LINES.replace("va\tI\tA B", "va\tI\t "), r"a.txt, line 5: not part"),
        (LINES.replace("va\t", "te\t"), r"a.txt has not the parts tr, va and te"),
        (LINES.replace("\tI\t", "\tO\t"), r"with two labels or more"),
    ],
)
def test_malformed_released_data_are_an_error(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "a.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_senteval(file, "BiShift", "en")
