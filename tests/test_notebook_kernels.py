"""What the comparison of notebooks lets pass: one warning, and no cell."""

import json
import re

from tests.notebook_kernels import warns_of_text
from xlx.results import paths


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
