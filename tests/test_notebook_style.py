"""How much a notebook gives to read: counted in what is committed (`tests.counts.reading_load`)."""

import json
import re
from pathlib import Path

import pytest

from tests.counts import numbers, reading_load, sentences, typed
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
#: Numbers of a sentence in the findings (`tests.test_front_page`).
MOST_IN_FINDINGS = 4
PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))
#: Words for each number in a table that is open, and such tables.
WORDS_A_NUMBER, OPEN_TABLES = 8, 3
#: Everything that a reader opens: chapters, lessons, pages of the book.
PAGES = [
    *PATHS,
    *sorted((NOTEBOOKS / "course").glob("*.ipynb")),
    ROOT / "README.md",
    *sorted((NOTEBOOKS / "book").glob("*.md")),
]


def too_much(path: Path) -> dict[str, int]:
    """What of a notebook is above what is allowed, and a missing "In short"."""
    load = reading_load(path)
    over = {what: load[what] for what, n in HOUSE.items() if load[what] > n}
    return over | ({} if load["short"] else {"short": 0})


IDIOM = re.compile(  # what readers could not decode
    r"\b(?:a|[Oo]ne) (?:cell|column|dot|file|label|line|map|number|panel|point|row) an? [a-z]+"
    r"|\bby a hair|\bholds? (?:zero|0)\b(?!\.)|what fell|earns its keep|(?:beyond|of|within) luck"
)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_is_read_in_fifteen_minutes(path: Path) -> None:
    assert too_much(path) == {}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_chapter_has_words_beside_its_numbers(path: Path) -> None:
    load = reading_load(path)
    assert load["words"] >= WORDS_A_NUMBER * load["numbers"]
    assert load["tables"] <= OPEN_TABLES


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_typed_sentence_has_at_most_three_numbers(path: Path) -> None:
    said = [(cell, one) for cell, text in typed(path).items() for one in sentences(text)]
    most = MOST_IN_FINDINGS if path.stem in ("README", "start", "lesson-6-mixing") else 3
    assert [(cell, one) for cell, one in said if numbers(one) > most] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_no_idiom_of_our_own(path: Path) -> None:
    shown = re.findall(r'"text/markdown": \[.*?\n *\]', path.read_text("utf-8"), re.DOTALL)
    assert [x for text in (*typed(path).values(), *shown) for x in IDIOM.findall(text)] == []


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_words_for_who_cannot_see_a_figure_hold_no_code(path: Path) -> None:
    cells = json.loads(path.read_text("utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    told = [output.get("metadata", {}).get("image/png", {}).get("alt", "") for output in outputs]
    assert [text for text in told if re.search(r"`|\w_\w", text)] == []
