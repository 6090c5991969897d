"""Evaluation text in the pretraining text: the counting against a literal one, and the table."""

import importlib
import sys
import unicodedata
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xlx.results import paths
from xlx.text.files import letters

FOLDER = paths.DATA / "pretraining"

#: Folders of data/ that hold no text to evaluate on.
NO_TEXT = {"__pycache__", "models-long", "models-public", "pretraining", "published", "results"}


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


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return pd.read_csv(FOLDER / "overlap.tsv", sep="\t").set_index("set")


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It's 2024, HE said.", "it s 2024 he said"),
        ("हिन्दी में", "हिन्दी में"),  # \w+ would break each at its vowel signs
        ("日本語はOKです。", "日 本 語 は ok で す"),
        ("カﾅ", "カ ナ"),  # half width
        ("한국어 문장", "한국어 문장"),
        ("❤️ a️b", "ab"),  # a variation selector is no word
        ("snake_case – ﬁn", "snake case fin"),
    ],
)
def test_units_of_a_text(units, text: str, expected: str) -> None:
    assert units.split(text) == expected.split()


def test_a_planted_quotation_is_found_and_twelve_words_are_not(overlap, units) -> None:
    words = [f"word{n}" for n in range(40)]
    text = overlap.Pretraining.of([" ".join(words)], units)
    quoted = "He said: " + ", ".join(word.upper() for word in words[5:18]) + "!"
    shorter = "He said: " + ", ".join(words[5:17]) + " and left."
    row, matches = text.overlap([quoted, shorter, words[3]], units)
    assert not matches
    assert (row["word_lines"], row["word_lines_shared"]) == (2, 1)
    assert row["word_grams_shared"] == 1
    row, matches = text.overlap([" ".join(words).title() + "."], units)
    assert (row["exact"], row["normalised"], row["word_share"]) == (0, 1, 1.0)
    assert matches == [" ".join(words).title() + "."]


def test_thirteen_units_do_not_run_across_lines_and_hashes_do_not_depend_on_order(
    overlap, units
) -> None:
    half = "one two three four five six seven"
    assert len(overlap.Grams.of([half, half], units).hashes) == 0
    lines = [f"{half} {half}", f"{half} {half} eight"]
    there = overlap.Grams.of(lines, units)
    back = overlap.Grams.of(lines[::-1], overlap.Units())
    assert np.array_equal(np.sort(there.hashes), np.sort(back.hashes))
    assert there.line.tolist() == [0, 0, 1, 1, 1]
    assert not there.of_characters.any()


def test_empty_text_has_nothing_in_common(overlap, units) -> None:
    row, matches = overlap.Pretraining.of([], units).overlap(["", " "], units)
    assert not matches
    assert set(row.values()) == {0}


# --- what the repository ships


def test_every_evaluation_set_of_the_repository_has_its_row(table: pd.DataFrame) -> None:
    folders = {path.name for path in paths.DATA.iterdir() if path.is_dir()} - NO_TEXT
    assert "wmt24pp" in folders
    assert {f"data/{name}" for name in folders} <= set(table.index)
    archives = {"flores200", "ud", "ud_pud", "xnli", "pawsx", "xquad", "sib200", "panx", "uner"}
    assert archives | {"tydiqa_goldp", "wmt24pp"} <= set(table.index)
    assert {"bible_nt, held-out books", "ntrex, held-out documents"} <= set(table.index)
    assert table.index.is_unique
    assert (table["lines"] > 0).all()


@pytest.mark.parametrize(("folder", "n"), [("wmt24pp", 30_000), ("new_testament", 9_000)])
def test_a_row_is_what_the_shipped_text_gives(
    overlap, units, pretraining_lines, pretraining_letters, table, folder: str, n: int
) -> None:
    """But for the sequences shared, which take all of the pretraining text to count."""
    long = frozenset(key for key in pretraining_letters if len(key) >= overlap.SHORT)
    pretraining = overlap.Pretraining(pretraining_lines, long, np.zeros(0, dtype=np.uint64))
    row, matches = pretraining.overlap(overlap.shipped_lines(overlap.SHIPPED[folder]), units)
    assert not matches
    assert (row["exact"], row["normalised"]) == (0, 0)
    assert row["lines"] > n
    for column, value in row.items():
        if "share" not in column:
            assert table.loc[f"data/{folder}", column] == value, column


def test_no_context_question_or_answer_is_a_pretraining_line(overlap, pretraining_letters) -> None:
    long = {key for key in map(letters, overlap.question_lines()) if len(key) >= overlap.SHORT}
    assert len(long) > 15_000
    assert not long & pretraining_letters


def test_the_readme_has_the_table_and_its_shares(overlap, table: pd.DataFrame) -> None:
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert overlap.markdown(table.reset_index()) in readme
    for kind in overlap.KINDS:
        shared, lines = table[f"{kind}_lines_shared"], table[f"{kind}_lines"]
        assert table[f"{kind}_share"].to_numpy() == pytest.approx(shared / lines.clip(1), abs=1e-6)
