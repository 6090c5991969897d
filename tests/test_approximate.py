"""The plugin that lets tagged cells differ a little, run on a small notebook."""

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tests import approximate
from xlx.paths import ROOT

pytest_plugins = ["pytester"]


@pytest.mark.parametrize(
    ("test", "reference"),
    [
        ("accuracy 0.57", "accuracy  0.56"),
        ("p = 0.394\n", "p = 0.421\n"),
        ("-1.23 (-3.88 to +1.41)", "-1.20 (-3.80 to +1.45)"),
        ("<td>0.5</td>", "<td>0.52</td>"),
        ("in 28 of 36", "in 26 of 36"),
        ("step 2,880", "step 2,880"),
    ],
)
def test_small_differences_are_alike(test: str, reference: str) -> None:
    assert approximate.alike(test, reference)
    assert approximate.settle({"text": [test]}, {"text": [reference]}) == {"text": [reference]}


@pytest.mark.parametrize(
    ("test", "reference"),
    [
        ("accuracy 0.70", "accuracy 0.56"),
        ("accuracy 0.57", "precision 0.57"),
        ("0.57 0.58", "0.57"),
        ("in 20 of 36", "in 26 of 36"),
        ("+0.20", "-0.20"),
        ("nan", "0.5"),
    ],
)
def test_larger_ones_and_other_words_are_not(test: str, reference: str) -> None:
    assert not approximate.alike(test, reference)
    assert approximate.settle([test], [reference]) == [test]


@pytest.mark.parametrize("tags", [["approximate"], []])
def test_only_tagged_cells_are_let_off(
    tags: list[str], pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    stored = new_output("stream", name="stdout", text="accuracy 0.56\n")
    close = new_code_cell("print('accuracy 0.57')", outputs=[stored], execution_count=1)
    far = new_code_cell("print('accuracy 0.77')", outputs=[stored], execution_count=2)
    for cell in (close, far):
        cell.metadata["tags"] = tags
    path = Path(pytester.path) / "a.ipynb"
    nbformat.write(new_notebook(cells=[close, far]), path)
    arguments = ("-p", "tests.approximate", "-p", "no:cacheprovider", "--nbval", str(path))
    pytester.runpytest_subprocess(*arguments).assert_outcomes(
        passed=len(tags), failed=2 - len(tags)
    )
