"""The pretraining text: what is read, what is held out of it, and the shares of the languages."""

import tarfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

import abx_3_outcomes
from family import pretraining_text
from family.pretraining_text import PRETRAINING_SOURCES, read_source
from family.training_text import AlignedSource, Lines
from xlx.results import paths


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes an archive: its source, file name → content."""
    monkeypatch.setattr(paths, "DATA", tmp_path)
    (tmp_path / "pretraining").mkdir()

    def pack(source: str, files: dict[str, str]) -> None:
        with tarfile.open(tmp_path / "pretraining" / f"{source}.tar.xz", "w:xz") as packed:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(content.encode())
                packed.addfile(info, BytesIO(content.encode()))

    return pack


def test_sources_are_read_by_line_and_by_verse(archive) -> None:
    archive("tatoeba", {"de.txt": "eins\n\ndrei\u2028noch drei\n", "en.txt": "one\n"})
    assert read_source("tatoeba") == {
        "de": {"0": "eins", "2": "drei\u2028noch drei"},
        "en": {"0": "one"},
    }
    archive("bible_nt", {"de.tsv": "Matt.1.1\tein\tVers\nMatt.1.2\tnoch\n"})
    assert read_source("bible_nt") == {"de": {"Matt.1.1": "ein\tVers", "Matt.1.2": "noch"}}


def test_held_out_are_whole_documents(archive, monkeypatch: pytest.MonkeyPatch) -> None:
    for source in PRETRAINING_SOURCES:
        archive(source, {"de.txt": "x\n", "fi.txt": "y\n"})
    lines = {"de.txt": "0\n1\n2\n\n4\n5\n", "en.txt": "0\n1\n2\n3\n4\n5\n"}
    archive("ntrex", {"documents.txt": "a\na\nb\nb\nb\nc\n"} | lines)
    for least, expected in ((1, "5"), (4, "2345"), (5, "012345"), (2, "2345")):
        monkeypatch.setattr(pretraining_text, "HELD_OUT_LINES", least)
        assert pretraining_text.held_out_ids() == set(expected)
    text, apart = pretraining_text.read_text()
    assert text["ntrex"] == {"de": {"0": "0", "1": "1"}, "en": {"0": "0", "1": "1"}}
    assert text["tatoeba"] == {"de": {"0": "x"}, "fi": {"0": "y"}}
    # Line 3 has no translation into German, so nobody is asked for it.
    assert apart == {"de": ["2", "4", "5"], "en": ["2", "4", "5"]}
    text, apart = pretraining_text.read_text(["en"])
    assert text == {"ntrex": {"en": {"0": "0", "1": "1"}}}
    assert apart == {"en": ["2", "4", "5"]}
    with pytest.raises(ValueError, match="the pretraining text holds no ja, xx"):
        pretraining_text.read_text(["xx", "en", "ja"])


def test_a_missing_archive_is_named(archive) -> None:
    with pytest.raises(FileNotFoundError, match=r"ntrex\.tar\.xz is not in .*restore it"):
        read_source("ntrex")


def test_characters_are_those_of_the_table_less_what_is_held_out(archive) -> None:
    n = pretraining_text.HELD_OUT_LINES
    documents = "".join(f"{i >= 2}\n" for i in range(n + 2))
    archive("ntrex", {"documents.txt": documents, "de.txt": "ab\n" * (n + 2)})
    rows = f"tatoeba\ten\t1\t5\t0\nntrex\tde\t{n + 2}\t{2 * n + 4}\t0\n"
    table = paths.DATA / "pretraining" / "counts.tsv"
    table.write_text("source\tlanguage\tlines\tcharacters\tleft_out\n" + rows, encoding="utf-8")
    assert abx_3_outcomes.characters().to_dict() == {"en": 5, "de": 4}


def test_positions_are_ordered_by_length_where_two_languages_hold_them() -> None:
    def lines(*lengths: int) -> Lines:
        ends = np.cumsum([0, *(length + 1 for length in lengths)])
        return Lines(np.zeros(ends[-1], dtype=np.uint16), ends)

    line = np.array([[0, 0, -1], [1, -1, -1], [2, 1, 0], [-1, 2, 1]])
    parallel = AlignedSource(
        ("de", "en", "fi"), (lines(9, 1, 3), lines(5, 4, 1), lines(2, 1)), line
    )
    # means 7, (one language), 3, 1
    assert parallel.by_length().tolist() == [3, 2, 0]
