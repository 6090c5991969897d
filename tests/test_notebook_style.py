"""How much a notebook gives to read: counted in what is committed (`tests.counts.reading_load`)."""

import ast
import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests.counts import computed, numbers, reading_load, sentences, typed
from xlx.results.paths import NOTEBOOKS, ROOT

#: What the house style allows.
HOUSE = {
    "words": 1_500,
    "all words": 2_500,
    "tables": 8,
    "figures": 5,
    "above 40 words": 0,
    "words a sentence": 20,
}
#: Notebooks that are not in it, with what they have: to go down.
OTHERS = {"report": (1464, 1531, 2, 6, 7, 20)}
#: Numbers of a sentence that code writes, and of one in the findings (`tests.test_front_page`).
MOST_COMPUTED, MOST_IN_FINDINGS = 6, 4
PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))
#: Everything that a reader opens: chapters, lessons, pages of the book.
PAGES = [
    *PATHS,
    *sorted((NOTEBOOKS / "course").glob("*.ipynb")),
    ROOT / "README.md",
    *sorted((NOTEBOOKS / "book").glob("*.md")),
]


def too_much(path: Path, most: dict[str, int]) -> dict[str, int]:
    """What of a notebook is above what is allowed, and a missing "In short"."""
    load = reading_load(path)
    over = {what: load[what] for what, n in most.items() if load[what] > n}
    return over | ({"short": 0} if most is HOUSE and not load["short"] else {})


IDIOM = re.compile(  # what readers could not decode
    r"\b(?:a|[Oo]ne) (?:cell|column|dot|file|label|line|map|number|panel|point|row) an? [a-z]+"
    r"|\bby a hair|\bholds? (?:zero|0)\b(?!\.)|what fell|earns its keep|(?:beyond|of|within) luck"
)


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
        "words",
        "tables",
        "figures",
        "above 40 words",
        "words a sentence",
    }


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_typed_sentence_has_at_most_three_numbers(path: Path) -> None:
    said = [(cell, one) for cell, text in typed(path).items() for one in sentences(text)]
    most = MOST_IN_FINDINGS if path.stem in ("README", "start", "lesson-6-mixing") else 3
    assert [(cell, one) for cell, one in said if numbers(one) > most] == []


@pytest.mark.parametrize("path", [path for path in PAGES if path.suffix == ".ipynb"])
def test_a_computed_sentence_has_at_most_six_numbers(path: Path) -> None:
    said = [one for text in computed(path) for one in sentences(text)]
    assert [one for one in said if numbers(one) > MOST_COMPUTED] == []


@pytest.mark.parametrize(
    ("text", "n"),
    [
        (
            "At layer 4 it is 0.96 (0.94 to 0.98), and −0.5 with 1,500,000 updates.\n\n1. Two of 5",
            7,
        ),
        (
            "In [Table 3](x.md), Tables 2, 3 and 12 to 14, sections 5.1 and A.7, Appendix E, of "
            "2019",
            0,
        ),
        (
            "E5, XLM-R 100, Llama 3.1 70B, Gemma 3 270M, FLORES-200, WMT24++ and `abx-1` with $r = "
            "2$",
            0,
        ),
    ],
)
def test_numbers_are_counted_without_names_and_references(text: str, n: int) -> None:
    assert sum(map(numbers, sentences(text))) == n


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_no_idiom_of_our_own(path: Path) -> None:
    shown = re.findall(r'"text/markdown": \[.*?\n *\]', path.read_text("utf-8"), re.DOTALL)
    assert [x for text in (*typed(path).values(), *shown) for x in IDIOM.findall(text)] == []


def test_no_idiom_of_our_own_in_a_message() -> None:
    for path in (ROOT / "xlx").rglob("*.py"):
        nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
        docs = [node.value for node in nodes if isinstance(node, ast.Expr)]
        texts = [str(x.value) for x in nodes if isinstance(x, ast.Constant) and x not in docs]
        assert [x for x in texts if IDIOM.search(x)] == []
