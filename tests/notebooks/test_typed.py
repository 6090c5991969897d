"""What is typed in a paragraph is what its notebook computed."""

from pathlib import Path

import nbformat
import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from notebooks.run.typed import disagreements, paragraphs, without_readings
from notebooks.run.typed import numbers as numbers_of
from xlx.results.paths import NOTEBOOKS

PATHS = sorted([*NOTEBOOKS.glob("*.ipynb"), *NOTEBOOKS.glob("course/*.ipynb")])


def page(text: str, printed: str) -> nbformat.NotebookNode:
    cell = new_code_cell("", outputs=[new_output("stream", text=printed)])
    cell.metadata.tags = ["numbers", "of:In short"]
    return new_notebook(cells=[new_markdown_cell(f"# Title 3\n\n**In short.** {text}\n\n4"), cell])


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_typed_paragraphs_have_the_numbers_of_their_notebook(path: Path) -> None:
    assert list(disagreements(nbformat.read(path, 4))) == []


@pytest.mark.parametrize("seed", range(5))
def test_each_kind_of_fault_is_named(seed: int) -> None:
    rng = np.random.default_rng(seed)
    numbers = [f"{x:.2f}" for x in rng.normal(size=4)]
    words = [f"word {x.replace('-', '−')}" for x in numbers]
    printed = f"{' '.join(numbers)}\nLD rises: True\n"
    assert list(disagreements(page(" ".join(words), printed))) == []
    k = rng.integers(4)
    wrong = [*words[:k], f"word {float(numbers[k]) + 1:.2f}", *words[k + 1 :]]
    assert f"number {k + 1} is" in "".join(disagreements(page(" ".join(wrong), printed)))
    for other in (words[:-1], [*words, "and 7"]):
        assert "none" in "".join(disagreements(page(" ".join(other), printed)))
    turned = disagreements(page(" ".join(words), printed.replace("True", "False")))
    assert list(turned) == ["In short: it is not so that LD rises"]


@pytest.mark.parametrize("seed", range(5))
def test_numbers_are_written_back_where_the_words_hold(seed: int) -> None:
    rng = np.random.default_rng(seed)
    old, new = ([f"{x:.2f}" for x in rng.normal(size=3)] for _ in "ab")
    typed = "`mini-2` has {}, of 5 runs\n{} (to {}).".format(*(x.replace("-", "−") for x in old))
    printed = f"{new[0]} 5 {new[1]} {new[2]}\nLD rises: True\n"
    for text in (printed, printed.replace("True", "False"), printed.replace(" 5 ", " ")):
        book = page(typed, text)
        for paragraph in paragraphs(book):
            paragraph.write_back()
        source = book.cells[0].source
        if text == printed:
            assert list(disagreements(book)) == []
            assert source.startswith("# Title 3\n\n**In short.** `mini-2` has ")
            assert "-" not in source.replace("mini-2", "")
        else:
            assert typed in source


def test_what_is_typed_of_other_models_is_left_out() -> None:
    book = without_readings(page("It has 3.", "3\n"))
    assert [cell.source for cell in book.cells] == ["# Title 3\n\n4"]
    assert without_readings(book) == book


def test_what_is_a_number_in_prose() -> None:
    text = "Of 1,234 pairs −0.5 to +3.1 (80 %), in `abx-2` and [x](a-3.md), $r = 2$, E5."
    assert numbers_of(text) == ["1,234", "-0.5", "3.1", "80"]
