"""How much a notebook gives to read: counted in what is committed (`tests.counts.reading_load`)."""

from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests.counts import reading_load
from xlx.results.paths import NOTEBOOKS

#: What the house style allows.
HOUSE = {"words": 1_500, "all words": 2_500, "tables": 8, "figures": 5, "above 40 words": 0,
         "words a sentence": 20}  # fmt: skip
#: Notebooks that are not in it, with what they have: to go down.
OTHERS = {
    "report": (1464, 1531, 2, 6, 7, 20),
}
PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))


def too_much(path: Path, most: dict[str, int]) -> dict[str, int]:
    """What of a notebook is above what is allowed, and a missing "In short"."""
    load = reading_load(path)
    over = {what: load[what] for what, n in most.items() if load[what] > n}
    return over | ({"short": 0} if most is HOUSE and not load["short"] else {})


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_is_read_in_fifteen_minutes(path: Path) -> None:
    own = OTHERS.get(path.stem)
    most = dict(zip(HOUSE, own, strict=True)) if own else HOUSE
    assert too_much(path, most) == {}


def test_what_is_folded_is_counted_apart(tmp_path: Path) -> None:
    table, picture = {"text/html": "<table>"}, {"image/png": "AAAA"}
    shown = [new_output("display_data", data=data) for data in (table, picture)]
    said = [new_output("display_data", data={"text/markdown": "**In short.** `a b c` is 0.5."})]
    long = " ".join(["word"] * 30)
    cells = [
        new_markdown_cell("one two [three](https://example.org/four)\n\n|a|\n|---|\n|b|"),
        new_markdown_cell(f"<details><summary>Answer</summary>\n\n{long}\n</details>\n\nfive"),
        new_markdown_cell(f"{long} (0.5). {long}\n\n- {long}\n\n```\n{long} {long}\n```"),
        new_code_cell("1", outputs=shown + said),
        new_code_cell("2", outputs=shown * 9, metadata={"tags": ["hide-output"]}),
    ]
    nbformat.write(new_notebook(cells=cells), path := tmp_path / "abx-1-x.ipynb")
    load = reading_load(path)
    assert (load["tables"], load["figures"], load["short"], load["above 40 words"]) == (2, 1, 1, 0)
    assert load["all words"] - load["words"] == 31
    cells += [new_markdown_cell(f"{long}, {long}."), *(new_markdown_cell(long) for _ in range(50))]
    cells += [new_code_cell("3", outputs=shown) for _ in range(8)]
    nbformat.write(new_notebook(cells=cells), path)
    assert set(too_much(path, HOUSE)) == {
        "words", "tables", "figures", "above 40 words", "words a sentence",
    }  # fmt: skip
