"""Trees: reading CoNLL-U."""

import gzip
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.made import conllu_row as row
from tests.text.made import put
from xlx.text.files import TextError, streamed_lines
from xlx.text.trees import Trees, load_trees, read_trees

GERMAN = [
    "# sent_id = a-1",
    "# split = train",
    "# text = Anna wohnt im Haus.",
    row(1, "Anna", "PROPN", 2, "nsubj", "Case=Nom|Number=Sing"),
    row(2, "wohnt", "VERB", 0, "root", "Number=Sing|Tense=Pres"),
    row("3-4", "im", "_", "_", "_"),
    row(3, "in", "ADP", 5, "case"),
    row(4, "dem", "DET", 5, "det"),
    row(5, "Haus", "NOUN", 2, "obl", "Number=Sing"),
    row("5.1", "steht", "VERB", "_", "_"),
    row(6, ".", "PUNCT", 2, "punct"),
    "",
    row(1, "Ja", "INTJ", 0, "root"),
    "",
]


def read(*lines: str, **options: object) -> Trees:
    return read_trees(lines, "a.conllu", "de", **options)


def test_a_tree_has_words_and_tokens() -> None:
    first, second = read(*GERMAN)
    assert first.words == ("Anna", "wohnt", "in", "dem", "Haus", ".")
    assert first.tokens == ("Anna", "wohnt", "im", "Haus", ".")
    assert first.token_of == (0, 1, 2, 2, 3, 4)
    assert first.heads == (2, 0, 5, 5, 2, 2)
    assert first.relations == ("nsubj", "root", "case", "det", "obl", "punct")
    assert first.upos == ("PROPN", "VERB", "ADP", "DET", "NOUN", "PUNCT")
    assert first.features[0] == {"Case": "Nom", "Number": "Sing"}
    assert first.features[2] == {}
    assert (first.id, second.id, first.language) == ("a-1", "2", "de")
    assert (first.root, first.depth, len(first)) == (1, 2, 6)
    assert (second.root, second.depth, second.tokens) == (0, 0, ("Ja",))
    assert first.children(1) == [0, 4, 5]
    assert first.children(1, "nsubj", "punct") == [0, 5]
    assert first.below(4) == {2, 3, 4}
    assert first.key == "annawohntimhaus"


def test_a_comment_may_hold_a_tab() -> None:
    (tree,) = read("# sent_id = x", "# text = Ja\tja", row(1, "Ja", "INTJ", 0, "root"))
    assert (tree.id, tree.words) == ("x", ("Ja",))


def test_names_of_ud_1_are_read_as_those_of_ud_2() -> None:
    (tree,) = read(
        row(1, "und", "CONJ", 2, "cc"),
        row(2, "war", "VERB", 0, "root", "Number=Pl|Tense=Past"),
        row(3, "er", "PRON", 2, "nsubjpass", "Number=Sg"),
        row(4, "es", "PRON", 2, "dobj"),
        row(5, "nie", "ADV", 2, "neg"),
        row(6, "dort", "ADV", 2, "advmod:emph"),
    )
    assert tree.upos[0] == "CCONJ"
    assert tree.relations == ("cc", "root", "nsubj:pass", "obj", "advmod", "advmod:emph")
    assert tree.features[1:3] == ({"Number": "Plur", "Tense": "Past"}, {"Number": "Sing"})
    assert tree.relation(2) == "nsubj"
    assert tree.children(1, "nsubj") == [2]


# --- sentences that are no trees ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heads", "flaw"),
    [
        ((0, 1, 1), ""),
        ((0, 0, 1), "two roots"),
        ((2, 3, 1), "no root"),
        ((0, 2, 1), "a cycle"),
        ((0, 1, 4), "no such head"),
    ],
)
def test_a_sentence_that_is_no_tree_is_left_out_and_named(heads, flaw: str) -> None:
    lines = [row(i, "a", "X", head, "dep") for i, head in enumerate(heads, 1)]
    made = read("# sent_id = x", *lines, "", *GERMAN)
    assert len(made) == 2 + (not flaw)
    assert made.dropped == ((f"x, line 2: {flaw}",) if flaw else ())


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_depth_is_the_longest_way_to_the_root(heads: list[int]) -> None:
    def steps(word: int) -> int | None:
        for n in range(len(heads) + 1):
            if heads[word] == 0:
                return n
            if heads[word] > len(heads):
                return None
            word = heads[word] - 1
        return None

    made = read(*[row(i, "a", "X", head, "dep") for i, head in enumerate(heads, 1)])
    ways = [steps(word) for word in range(len(heads))]
    good = heads.count(0) == 1 and None not in ways
    assert len(made) == good
    if good:
        assert made.trees[0].depth == max(ways)


# --- malformed files ------------------------------------------------------------------------------

JA = row(1, "Ja", "INTJ", 0, "root")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([row(1, " ", "INTJ", 0, "root")], r"line 1: a word without form"),
        ([row(1, "Ja", "INTJ", 0, "_")], r"line 1: word 1 has the relation '_'"),
        ([row(1, "Ja", "INTJ", 0, "root", "A=B||C=D")], r"line 1: word 1: 'A=B||C=D' is not Name"),
        ([row("1-3", "im", "_", "_", "_"), JA, row("2-3", "im", "_", "_", "_")], "range 2-3 after"),
        ([row("1-2", "im", "_", "_", "_"), JA], r"line 1: a range ends at word 2"),
        ([*GERMAN, "# sent_id = 2", *GERMAN[3:12]], r"line 16: sentence 2 is also at line 13"),
        ([], r"a.conllu has no sentences"),
    ],
)
def test_malformed_conllu_is_an_error_with_its_line(lines: list[str], message: str) -> None:
    with pytest.raises(TextError, match=message):
        read(*lines)


# --- files ----------------------------------------------------------------------------------------


def packed(lines: list[str]) -> bytes:
    return lzma.compress("\n".join(lines).encode())


def test_a_local_file_or_folder_is_read(tmp_path: Path) -> None:
    file = put(tmp_path, "b/de-test.conllu.xz", packed(GERMAN))
    made = load_trees("deu", "gsd", path=file)
    assert [tree.id for tree in made] == ["a-1", "2"]
    assert (made.language, made.source, made.n_words) == ("de", "gsd", 7)
    assert load_trees("de", "gsd", path=tmp_path) == made
    put(tmp_path, "a.conllu", "\n".join([row(1, "Ja", "INTJ", 2, "root"), "", *GERMAN]))
    both = load_trees("de", "gsd", path=tmp_path)
    assert [tree.id for tree in both] == ["a:a-1", "a:3", "b/de-test:a-1", "b/de-test:2"]
    assert both.dropped == ("a:1, line 1: no such head",)


def test_a_file_is_read_a_megabyte_at_a_time(tmp_path: Path) -> None:
    """With the line of what is wrong, far behind, and what stands before it as in one piece."""
    block = "\ufeff" + "\n".join(GERMAN[1:]) + "\r\n\n"
    text = "".join(f"# sent_id = {i}\n{'#' * 999}\n{block[1:]}" for i in range(1500))
    for name, pack in (("a", bytes), ("b", lzma.compress), ("c", gzip.compress)):
        file = put(tmp_path, f"{name}.conllu", pack(f"\ufeff{text}".encode()))
        assert [*streamed_lines(file)] == text.replace("\r", "").removesuffix("\n").split("\n")
    bad = put(tmp_path, "d.conllu", text.encode() + b"\xff")
    lines = streamed_lines(bad)
    assert next(lines) == "# sent_id = 0"
    with pytest.raises(TextError, match=f"line {text.count(chr(10)) + 1}: byte 0xff"):
        list(lines)


@pytest.mark.parametrize(
    ("data", "asked", "error", "says"),
    [
        (None, ["de", "wiki"], TextError, r"\(wiki\) is shipped in de; there is nothing"),
        (None, ["klingon"], TextError, "klingon"),
    ],
)
def test_files_that_cannot_be_read_say_so(tmp_path: Path, data, asked, error, says: str) -> None:
    if data:
        put(tmp_path, "a.conllu", data)
    language, *rest = asked
    options = {"path": tmp_path / rest.pop()} if len(rest) == 2 else {}
    with pytest.raises(error, match=says):
        load_trees(language, *rest, **options)
