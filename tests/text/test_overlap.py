"""Evaluation text in the pretraining text: the counting against a literal one, and the table."""

import importlib
import sys
import unicodedata
from collections.abc import Iterator
from types import ModuleType

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xlx.results import paths

FOLDER = paths.DATA / "pretraining"

#: Folders of data/ that hold no text to evaluate on.
NO_TEXT = {
    "__pycache__", "dictionaries", "models-long", "models-public", "pretraining", "published",
    "results",
}  # fmt: skip


@pytest.fixture(scope="module")
def overlap() -> Iterator[ModuleType]:
    """The script as a module. Several folders of data/ have a ``make``: it is not left behind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        patch.delitem(sys.modules, "make", raising=False)
        before = list(sys.path)
        yield importlib.import_module("overlap")
        sys.path[:] = before
        sys.modules.pop("make", None)


@pytest.fixture(scope="module")
def units(overlap: ModuleType):
    return overlap.Units()


# --- the oracle: one character at a time, sets of tuples of strings


def is_spaceless(character: str) -> bool:
    name = unicodedata.name(character, "")
    return name.startswith(("CJK UNIFIED", "HIRAGANA", "KATAKANA", "THAI", "KHMER"))


def slow_units(text: str) -> list[str]:
    found, word = [], ""
    for character in unicodedata.normalize("NFKC", text).casefold() + " ":
        is_part = character.isalnum() or unicodedata.category(character).startswith("M")
        if is_part and not is_spaceless(character):
            word += character
            continue
        if word:
            found.append(word)
        if is_part:
            found.append(character)
        word = ""
    return found


def slow_grams(line: str, of_characters: bool) -> set[tuple[str, ...]]:
    split = slow_units(line)
    grams = {tuple(split[i : i + 13]) for i in range(len(split) - 12)}
    return {gram for gram in grams if any(map(is_spaceless, "".join(gram))) == of_characters}


def slow_row(seen: list[str], lines: list[str]) -> dict[str, float]:
    def key(line: str) -> str:
        return "".join(filter(str.isalnum, line)).casefold()

    trimmed = {line.strip() for line in lines} - {""}
    exact = [line for line in trimmed if line in {other.strip() for other in seen}]
    same = [line for line in trimmed if key(line) in set(map(key, seen))]
    row: dict[str, float] = {
        "lines": len(trimmed),
        "short_exact": sum(len(key(line)) < 12 for line in exact),
        "exact": sum(len(key(line)) >= 12 for line in exact),
        "normalised": sum(len(key(line)) >= 12 for line in same),
    }
    for kind, of_characters in (("word", False), ("character", True)):
        theirs = set().union(*(slow_grams(line, of_characters) for line in seen))
        grams = [found for line in trimmed if (found := slow_grams(line, of_characters))]
        mine = set().union(*grams)
        sharing = sum(bool(found & theirs) for found in grams)
        row[f"{kind}_lines"] = len(grams)
        row[f"{kind}_lines_shared"] = sharing
        row[f"{kind}_share"] = sharing / len(grams) if grams else 0.0
        row[f"{kind}_grams"] = len(mine)
        row[f"{kind}_grams_shared"] = len(mine & theirs)
    return row


# Few words, so that 13 in a row come twice; several scripts; a word with marks (हिन्दी).
PARTS = ("a", "B", "b", "ﬁ", "हिन्दी", "日", "本", "を", "ท", "。", ",", "_", "-", "7")
LINES = st.lists(
    st.lists(st.sampled_from(PARTS), max_size=30).map(" ".join)
    | st.integers(0, 40).map(lambda n: "a B हिन्दी " * n)
    | st.integers(0, 40).map(lambda n: "日本を" * n)
    | st.integers(0, 40).map(lambda n: " Yes, sir. " * n),
    max_size=8,
)


@settings(max_examples=40)
@given(seen=LINES, lines=LINES)
def test_a_row_is_what_sets_of_tuples_say(overlap: ModuleType, units, seen, lines) -> None:
    row, matches = overlap.Pretraining.of(seen, units).overlap(lines, units)
    assert row == slow_row(seen, lines)
    assert len(matches) == row["normalised"]


# --- what the repository ships


def test_every_evaluation_set_of_the_repository_has_its_row(overlap) -> None:
    table = pd.read_csv(FOLDER / "overlap.tsv", sep="\t").set_index("set")
    folders = {path.name for path in paths.DATA.iterdir() if path.is_dir()} - NO_TEXT
    assert "wmt24pp" in folders
    assert {f"data/{name}" for name in folders} <= set(table.index)
    archives = {"flores200", "ud", "ud_pud", "xnli", "pawsx", "xquad", "sib200", "panx", "uner"}
    assert archives | {"tydiqa_goldp", "wmt24pp"} <= set(table.index)
    assert {"bible_nt, held-out books", "ntrex, held-out documents"} <= set(table.index)
    assert (table["lines"] > 0).all()
    shipped = table.loc[[f"data/{name}" for name in overlap.SHIPPED]]
    assert (shipped[["exact", "normalised"]] == 0).all(axis=None)
