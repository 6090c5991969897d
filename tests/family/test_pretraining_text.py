"""The pretraining text: what is read, what is held out of it, and the shares of the languages."""

import tarfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

from tests import toy
from xlx.core import paths
from xlx.core.languages import LANGUAGES
from xlx.family import pretraining_text
from xlx.family.pretraining_text import (
    ALIGNED_SOURCES,
    HELD_OUT_BOOKS,
    HELD_OUT_LINES,
    PRETRAINING_SOURCES,
    AlignedSource,
    Lines,
    LinesById,
    PretrainingText,
    read_source,
)
from xlx.family.vocabulary import EOS


@pytest.fixture(scope="module")
def shipped() -> tuple[LinesById, dict[str, list[str]]]:
    return pretraining_text.read_text(progress=False)


@pytest.fixture(scope="module")
def ntrex() -> dict[str, dict[str, str]]:
    return read_source("ntrex")


def documents() -> list[str]:
    with tarfile.open(paths.DATA / "pretraining/ntrex.tar.xz") as archive:
        return archive.extractfile("documents.txt").read().decode("utf-8").split("\n")[:-1]


def archive(folder: Path, source: str, **files: str) -> None:
    with tarfile.open(folder / f"{source}.tar.xz", "w:xz") as packed:
        for name, content in files.items():
            data = content.encode("utf-8")
            info = tarfile.TarInfo(name.replace("_", "."))
            info.size = len(data)
            packed.addfile(info, BytesIO(data))


# --- reading -------------------------------------------------------------------------------------


def test_sources_are_read_by_line_and_by_verse(tmp_path: Path) -> None:
    archive(tmp_path, "tatoeba", de_txt="eins\n\ndrei\u2028noch drei\n", en_txt="one\n")
    assert read_source("tatoeba", tmp_path) == {
        "de": {"0": "eins", "2": "drei\u2028noch drei"},
        "en": {"0": "one"},
    }
    archive(tmp_path, "bible_nt", de_tsv="Matt.1.1\tein\tVers\nMatt.1.2\tnoch\n")
    assert read_source("bible_nt", tmp_path) == {
        "de": {"Matt.1.1": "ein\tVers", "Matt.1.2": "noch"}
    }


def test_held_out_are_whole_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = "a\na\nb\nb\nb\nc\n"
    archive(
        tmp_path,
        "ntrex",
        documents_txt=ids,
        de_txt="0\n1\n2\n\n4\n5\n",
        en_txt="0\n1\n2\n3\n4\n5\n",
    )
    for source in PRETRAINING_SOURCES:
        if source != "ntrex":
            archive(tmp_path, source, de_txt="x\n")
    for least, expected in ((1, "5"), (2, "2345"), (4, "2345"), (5, "012345")):
        monkeypatch.setattr(pretraining_text, "HELD_OUT_LINES", least)
        assert pretraining_text.held_out_ids(tmp_path) == set(expected)
    monkeypatch.setattr(pretraining_text, "HELD_OUT_LINES", 2)
    text, apart = pretraining_text.read_text(tmp_path, progress=False)
    assert text["ntrex"] == {"de": {"0": "0", "1": "1"}, "en": {"0": "0", "1": "1"}}
    assert text["tatoeba"] == {"de": {"0": "x"}}
    # Line 3 has no translation into German, so nobody is asked for it.
    assert apart == {"de": ["2", "4", "5"], "en": ["2", "4", "5"]}


@pytest.mark.parametrize("source", PRETRAINING_SOURCES)
def test_a_missing_archive_is_named(source: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=rf"{source}\.tar\.xz is not in .*restore it"):
        read_source(source, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"common_voice\.tar\.xz is not in"):
        pretraining_text.read_text(tmp_path, progress=False)


def test_characters_are_counted_by_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for source in PRETRAINING_SOURCES:
        archive(tmp_path, source, de_txt=source)
    german, english = {"0": "äh", "2": "b"}, {"1": "f"}
    read = {"tatoeba": {"de": german}, "ntrex": {"de": {"1": "cde"}, "en": english}}
    seen = []

    def counted(folder: Path, progress: bool) -> tuple[LinesById, dict[str, list[str]]]:
        seen.append(folder)
        return read, {"de": ["held out"]}

    monkeypatch.setattr(pretraining_text, "read_text", counted)
    for _ in range(2):
        assert pretraining_text.characters(tmp_path).to_dict() == {"de": 6, "en": 1}
    assert seen == [tmp_path]
    archive(tmp_path, "ntrex", de_txt="other text")
    pretraining_text.characters(tmp_path)
    assert seen == [tmp_path, tmp_path]


# --- what the repository ships -------------------------------------------------------------------


def test_the_shipped_held_out_documents_are_whole_and_the_last() -> None:
    held = {int(number) for number in pretraining_text.held_out_ids()}
    of_line = documents()
    assert held == set(range(min(held), len(of_line)))
    assert not {of_line[i] for i in held} & {of_line[i] for i in range(min(held))}
    assert len(held) >= HELD_OUT_LINES
    first = [i for i in held if of_line[i] == of_line[min(held)]]
    assert len(held) - len(first) < HELD_OUT_LINES  # no document more than it takes


def test_held_out_lines_are_aligned_and_apart(shipped, ntrex) -> None:
    text, apart = shipped
    held = pretraining_text.held_out_ids()
    everywhere = [
        key for key in sorted(held, key=int) if all(key in lines for lines in ntrex.values())
    ]
    assert set(apart) == set(ntrex) == set(LANGUAGES)
    assert len(apart) == 36
    for language, lines in apart.items():
        assert lines == [ntrex[language][key] for key in everywhere], language
        assert len(lines) >= HELD_OUT_LINES - 5
        assert set(text["ntrex"][language]) == set(ntrex[language]) - held


def test_the_text_is_what_the_table_of_counts_says(shipped, ntrex) -> None:
    text, _ = shipped
    rows = (paths.DATA / "pretraining/counts.tsv").read_text("utf-8").splitlines()
    counted = {tuple(row.split("\t")[:2]): int(row.split("\t")[2]) for row in rows[1:]}
    found = {
        (source, language): len(lines)
        for source, by_language in (text | {"ntrex": ntrex}).items()
        for language, lines in by_language.items()
    }
    assert found == counted
    assert set(text) == set(PRETRAINING_SOURCES)
    assert all(lines for by_language in text.values() for lines in by_language.values())


def test_held_out_books_are_not_in_the_text(shipped) -> None:
    bible = shipped[0]["bible_nt"]
    assert len(bible) == 21
    for language, verses in bible.items():
        books = {key.split(".")[0] for key in verses}
        assert not books & set(HELD_OUT_BOOKS), language
        assert {"Matt", "Rom", "Rev"} <= books, language


def test_the_text_weighs_what_is_promised() -> None:
    files = [path for path in (paths.DATA / "pretraining").iterdir() if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 25e6


# --- subwords ------------------------------------------------------------------------------------


def test_lines_are_kept_flat() -> None:
    tokenizer = toy.prepared("xlm-roberta")[0]
    text = toy.lines()["de"]
    for chunk in (7, 10_000):
        lines = Lines.encode(tokenizer, text, chunk)
        assert len(lines) == len(text)
        assert (lines.ids[lines.starts[1:] - 1] == EOS).all()
        for i, line in enumerate(text):
            ids = tokenizer.encode(line, add_special_tokens=False).ids
            assert lines[i].tolist() == ids
            assert lines.lengths()[i] == len(ids)


def test_aligned_sources_know_who_translates_whom() -> None:
    tokenizer, text, _ = toy.prepared("xlm-roberta")
    toy_ntrex = toy.text()["ntrex"]
    (parallel,) = text.parallel
    assert parallel.languages == tuple(toy_ntrex)
    keys = sorted({key for lines in toy_ntrex.values() for key in lines})
    assert parallel.line.shape == (len(keys), 3)
    for position, key in enumerate(keys):
        for column, language in enumerate(parallel.languages):
            line = parallel.line[position, column]
            if key not in toy_ntrex[language]:
                assert line == -1
            else:
                assert tokenizer.decode(parallel.lines[column][line]) == toy_ntrex[language][key]
    assert set(ALIGNED_SOURCES) <= set(PRETRAINING_SOURCES)


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


def counts(**n_tokens: int) -> PretrainingText:
    """A text of which only the sizes matter."""
    return PretrainingText(
        {
            code: (Lines(np.zeros(size, dtype=np.uint16), np.array([0, size])),)
            for code, size in n_tokens.items()
        },
        (),
    )


def test_language_shares_follow_the_exponent() -> None:
    text = counts(de=1000, en=8000, fi=200)
    assert text.n_tokens("en") == 8000
    for exponent in (0.0, 0.3, 1.0):
        powers = [1000**exponent, 8000**exponent, 200**exponent]
        shares = text.language_shares(exponent)
        assert list(shares.index) == ["de", "en", "fi"]
        assert shares.tolist() == pytest.approx([power / sum(powers) for power in powers])
    assert text.language_shares(0.0).tolist() == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("share", [0.05, 0.8, 0.95])
def test_the_share_of_english_can_be_fixed(share: float) -> None:
    text = counts(de=1000, en=8000, fi=200)
    free, fixed = text.language_shares(0.3), text.language_shares(0.3, share)
    assert fixed["en"] == share
    assert fixed.sum() == pytest.approx(1)
    assert fixed["de"] / fixed["fi"] == pytest.approx(free["de"] / free["fi"])


def test_the_share_of_an_english_that_is_not_there() -> None:
    with pytest.raises(ValueError, match=r"the text holds no English \(en\)"):
        counts(de=10, fi=20).language_shares(0.3, 0.8)


def test_all_sources_of_a_language_count() -> None:
    tokenizer, text, _ = toy.prepared("xlm-roberta")
    assert list(text.monolingual) == sorted(toy.WORDS)
    for language, lines in toy.lines().items():
        ids = [tokenizer.encode(line, add_special_tokens=False).ids for line in lines]
        assert text.n_tokens(language) == sum(map(len, ids)) + len(lines)
