"""The plugin that tells kernels of their notebooks, run on a small one."""

import json
import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from notebooks.run import journals
from tests.notebook_kernels import warns_of_text
from xlx.results import paths
from xlx.results.paths import ROOT

pytest_plugins = ["pytester"]

_TOLD = "import os\nprint(os.environ['XLX_NOTEBOOK'], os.environ['XLX_FIGURES'])"
_WARNED = (
    "import warnings\nfrom xlx.results.checks import TextWarning\nwarnings.warn('cut', TextWarning)"
)


def test_a_kernel_learns_its_notebook(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("XLX_FIGURES", "figures")
    names = ("a-notebook-of-tests", "b-notebook-of-tests")
    for name in names:
        stored = new_output("stream", name="stdout", text=f"{name} none\n")
        journal = f"open(os.path.join(os.environ['XLX_JOURNAL'], '{name}.jsonl')).close()"
        cells = [
            new_code_cell(_TOLD, outputs=[stored], execution_count=1),
            new_code_cell(journal, outputs=[], execution_count=2),
            new_code_cell(_WARNED, outputs=[], execution_count=3),
        ]
        nbformat.write(new_notebook(cells=cells), Path(pytester.path) / f"{name}.ipynb")
    try:
        arguments = ("-p", "tests.notebook_kernels", "-p", "no:cacheprovider", "--nbval", ".")
        pytester.runpytest_subprocess(*arguments).assert_outcomes(passed=6)
    finally:
        for name in names:
            journals.journal(name, paths.BUILD / "test").unlink(missing_ok=True)


def test_no_other_warning_is_let_pass() -> None:
    cut = "x.py:1: TextWarning: 'a' does not read all of 'b'\n  embed(a)\n"
    other = "x.py:2: RuntimeWarning: divide by zero\n  1 / a\n"
    assert warns_of_text({"name": "stderr", "text": 2 * cut})
    for output in (
        {"name": "stderr", "text": cut + other},
        {"name": "stderr", "text": "Traceback"},
        {"name": "stdout", "text": cut},
        {"data": {"text/plain": cut}},
    ):
        assert not warns_of_text(output)


def test_no_cell_is_let_off_by_a_tag() -> None:
    for path in sorted(paths.NOTEBOOKS.glob("*.ipynb")):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        tags = {tag for cell in cells for tag in cell["metadata"].get("tags", [])}
        # those that name a paragraph, or a part of a paper: mexa:figure-3
        papers, parts = "abx|mexa|igap|mixing|xprobe", "figure|table|section|appendix|finding"
        kinds = re.compile(rf"of:.+|({papers}):({parts})-[\w.]+")
        others = {tag for tag in tags if not kinds.fullmatch(tag)}
        assert others <= {"parameters", "hide-input", "hide-output", "numbers"}, (
            path
        )  # none of nbval
