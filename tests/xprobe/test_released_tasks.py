"""Probing tasks as they are released: their lines and labels, malformed lines."""

from pathlib import Path

import pytest

from xlx.measures.sentence_tasks import PROBING_TASKS
from xprobe_3_mapping import RELEASED, read_released, read_senteval

LINES = """tr\tO\tAnna sleeps .
tr\tI\tsleeps Anna .
tr\tO\tTom eats , he says
va\tO\tAnna sleeps !
va\tI\tA B
te\tI\the says , Tom eats
te\tO\tA B
te\tO\ta b .
"""


def test_released_data_are_read(tmp_path: Path) -> None:
    file = tmp_path / "bigram_shift.txt"
    file.write_text(LINES, encoding="utf-8")
    task = read_senteval(file, "BiShift", "en")
    assert task.classes == ("I", "O")
    assert task.train.labels.tolist() == [1, 0, 1]
    assert task.test.tokens[0] == ("he", "says", ",", "tom", "eats")
    assert task.train.bases[1] == "bigram_shift.txt:2"


def test_released_tasks_are_found_by_their_names_with_labels_in_their_order(tmp_path: Path) -> None:
    assert list(RELEASED) == list(PROBING_TASKS)
    for i, name in enumerate(PROBING_TASKS):
        rows = [f"{x}\t{10 - i}\tA b\n{x}\t{i - 1}\tC d" for x in ("tr", "va", "te")]
        (tmp_path / f"{RELEASED[name]}.txt").write_text("\n".join(rows), encoding="utf-8")
    tasks = read_released(tmp_path, "de")
    assert [task.name for task in tasks] == list(PROBING_TASKS)
    classes = [sorted({10 - i, i - 1}) for i in range(9)]
    assert [task.classes for task in tasks] == [tuple(map(str, x)) for x in classes]
    assert {task.language for task in tasks} == {"de"}
    assert {task.train.tokens for task in tasks} == {(("a", "b"), ("c", "d"))}
    assert tasks[0].train.labels.tolist() == [1, 0]
    (tmp_path / "tree_depth.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"tree_depth\.txt"):
        read_released(tmp_path, "de")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            LINES + "tx\tO\tA\n",
            r"a.txt, line 9: not part \(tr, va, te\), label, sentence",
        ),
        (LINES + "tr O A\n", r"line 9: not part"),
        (LINES.replace("\tI\t", "\tO\t"), r"with two labels or more"),
    ],
)
def test_malformed_released_data_are_an_error(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "a.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_senteval(file, "BiShift", "en")
