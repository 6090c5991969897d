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
    assert approximate.alike(test, reference, approximate.approximate)
    settled = approximate.settle({"text": [test]}, {"text": [reference]}, approximate.approximate)
    assert settled == {"text": [reference]}


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
    assert not approximate.alike(test, reference, approximate.approximate)
    assert approximate.settle([test], [reference], approximate.approximate) == [test]


@pytest.mark.parametrize(
    ("test", "reference"),
    [
        ("IGAP 0.34", "IGAP 0.22"),
        ("-0.04 (-0.10 to +0.02)", "+0.05 (-0.02 to +0.12)"),
        ("<td>28.0</td><td>0.4</td>", "<td>17.0</td><td>1.2</td>"),
        ("12 models", "1 models"),
        ("31.25", "24.50"),
    ],
)
def test_a_finetuning_may_come_out_otherwise(test: str, reference: str) -> None:
    assert approximate.alike(test, reference, approximate.finetuned)
    assert not approximate.alike(test, reference, approximate.approximate)


@pytest.mark.parametrize(
    ("test", "reference"),
    [
        ("IGAP 0.49", "IGAP 0.25"),
        ("IGAP 0.5", "IGAP 0.25"),
        ("48.0", "24.0"),
        ("no model", "24.0"),
        ("mini-xlm 0.25", "mini-xlmr 0.25"),
        ("30 models", "10 models"),
        ("0.25 0.25", "0.25"),
    ],
)
def test_but_not_as_another_finding(test: str, reference: str) -> None:
    assert not approximate.alike(test, reference, approximate.finetuned)


@pytest.mark.parametrize(
    ("tags", "passed"), [([], 1), (["approximate"], 2), (["parameters", "finetuned"], 3)]
)
def test_only_tagged_cells_are_let_off(
    tags: list[str], passed: int, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    stored = new_output("stream", name="stdout", text="accuracy 0.56\n")
    # As it was; a probe's difference; a fine-tuning's; another finding.
    cells = [
        new_code_cell(f"print('accuracy {share}')", outputs=[stored], execution_count=i)
        for i, share in enumerate(("0.56", "0.57", "0.67", "0.77"), 1)
    ]
    for cell in cells:
        cell.metadata["tags"] = tags
    path = Path(pytester.path) / "a.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    arguments = ("-p", "tests.approximate", "-p", "no:cacheprovider", "--nbval", str(path))
    pytester.runpytest_subprocess(*arguments).assert_outcomes(passed=passed, failed=4 - passed)
