"""The New Testament: verses that members are trained on, and the held-out ones that are shipped."""

import hashlib
import importlib.util
import io
import re
import sys
import tarfile
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from xlx.core import paths
from xlx.core.languages import LANGUAGES
from xlx.family.pretraining_text import HELD_OUT_BOOKS, read_source
from xlx.text import corpora, origins
from xlx.text.corpora import CorpusWarning, ParallelCorpus
from xlx.text.files import TextError

FOLDER = paths.DATA / "new_testament"
README = " ".join((FOLDER / "README.md").read_text(encoding="utf-8").split())
SEEN, HELD_OUT = "new-testament", "new-testament-held-out"
CODES = (
    *("cs", "da", "de", "el", "en", "es", "fi", "fr", "hr", "hu", "ja"),
    *("ko", "lv", "nl", "pl", "pt", "ru", "sr", "sv", "uk", "vi"),
)


@pytest.fixture(scope="module")
def seen() -> ParallelCorpus:
    with pytest.warns(CorpusWarning, match=r"at 65 of 7208 .*cs, Matt.12.17 repeats Matt.4.14;"):
        return corpora.load(SEEN)


@pytest.fixture(scope="module")
def held_out() -> ParallelCorpus:
    return corpora.load(HELD_OUT)  # without a warning, which would be an error


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    with tarfile.open(FOLDER / "held_out.tar.xz") as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}


@pytest.fixture(scope="module")
def make() -> ModuleType:
    """The script that makes them. Several folders of data/ have a ``make``: none is left behind."""
    before, modules = list(sys.path), set(sys.modules)
    spec = importlib.util.spec_from_file_location("make_new_testament", FOLDER / "make.py")
    module = importlib.util.module_from_spec(spec)
    hidden = sys.modules.pop("make", None)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = before
        for name in {"make"} - modules:
            sys.modules.pop(name, None)
        if hidden:
            sys.modules["make"] = hidden
    return module


def test_languages_verses_and_books(seen: ParallelCorpus, held_out: ParallelCorpus) -> None:
    assert seen.languages == held_out.languages == CODES
    assert (len(seen), len(held_out)) == (7208, 431)
    assert tuple(dict.fromkeys(held_out.domains)) == HELD_OUT_BOOKS
    books = tuple(dict.fromkeys(seen.domains))
    assert (books[0], books[3], books[-1], len(books)) == ("Matt", "John", "Rev", 20)
    assert not set(books) & set(HELD_OUT_BOOKS)
    for corpus in (seen, held_out):
        assert len(set(corpus.ids)) == len(corpus)
        assert all(re.fullmatch(rf"{book}\.\d+\.\d+", verse)
                   for verse, book in zip(corpus.ids, corpus.domains, strict=True))  # fmt: skip
        assert corpus.licence == "public domain; pt: CC BY 3.0 BR"
        assert "scrollmapper/bible_databases" in corpus.source
        assert corpora.tags(corpus.name) == {code: code for code in CODES}
    assert f"{len(seen):,} in all 21" in README
    assert " ".join(CODES) in README


@pytest.mark.parametrize(
    ("verse", "code", "words"),
    [
        ("Jas.1.1", "en", ["James", "a servant of God", "twelve tribes"]),
        ("Jas.1.1", "de", ["Jakobus", "Knecht Gottes", "zwölf Stämmen"]),
        ("Jas.1.1", "ru", ["Иаков", "раб Бога", "двенадцати"]),
        ("Jude.1.25", "en", ["God the only wise", "Amen"]),
        ("Jude.1.25", "de", ["unserem Heilande", "Amen"]),
        ("2Pet.3.8", "en", ["thousand years", "one day"]),
        ("2Pet.3.8", "nl", ["duizend jaren", "een dag"]),
        ("John.1.1", "en", ["In the beginning was the Word"]),
        ("John.1.1", "de", ["Im Anfang war das Wort"]),
        ("John.1.1", "fr", ["Au commencement", "le Verbe"]),
        ("Rev.22.21", "en", ["grace", "Amen"]),
        ("Rev.22.21", "sv", ["Nåd"]),
    ],
)
def test_verses_are_what_they_should_be(seen, held_out, verse, code, words) -> None:
    corpus = held_out if verse in held_out.ids else seen
    text = corpus.sentences[code][corpus.ids.index(verse)]
    assert all(word.casefold() in text.casefold() for word in words), text


def test_fewer_languages_have_as_many_verses_or_more(seen, held_out) -> None:
    pair = corpora.load(HELD_OUT, ["sv", "da"])
    assert pair.languages == ("sv", "da")
    assert set(pair.ids) - set(held_out.ids) == {"3John.1.15"}
    assert pair.drop([pair.ids.index("3John.1.15")]).ids == held_out.ids
    assert "Hils Vennerne" in pair.sentences["da"][pair.ids.index("3John.1.15")]
    with pytest.warns(CorpusWarning, match="repeat"):
        some = corpora.load(SEEN, ["en", "de"])
    assert len(some) == 7525
    assert [verse for verse in some.ids if verse in set(seen.ids)] == list(seen.ids)
    for code in ("en", "de"):
        verses = dict(zip(some.ids, some.sentences[code], strict=True))
        assert tuple(verses[verse] for verse in seen.ids) == seen.sentences[code]
    with pytest.warns(CorpusWarning, match="repeat"):
        assert len(corpora.load(SEEN, ["ja", "en"])) == 7252
    for n in ("7,525", "7,252", "7,143", "432: the verses"):
        assert n in README
    assert len(corpora.load(SEEN, drop_duplicates=True)) == 7143
    with pytest.raises(TextError, match="new-testament-held-out has no text in zh; it has cs"):
        corpora.load(HELD_OUT, ["en", "zh"])


def test_signs_for_a_verse_left_out_are_no_verses(seen: ParallelCorpus) -> None:
    text = read_source("bible_nt")
    signs = {
        (code, verse): line
        for code, verses in text.items()
        for verse, line in verses.items()
        if len(re.sub(r"[\W_]", "", line)) < 3
    }
    assert set(signs.values()) == {"#", "/", "-", "—", "[1]", "[2]", "(없음)"}
    assert {code for code, _ in signs} == {"de", "hr", "ko", "pt", "sv"}
    assert f"{len(signs)} verses of `new-testament` in de, hr, ko, pt and sv" in README
    assert not {verse for _, verse in signs} & set(seen.ids)
    with pytest.warns(CorpusWarning, match="repeat"):
        assert "Mark.7.16" not in corpora.load(SEEN, ["en", "pt"]).ids


def test_the_seen_verses_are_the_pretraining_text(seen: ParallelCorpus) -> None:
    text = read_source("bible_nt")
    assert tuple(text) == CODES
    for code in CODES:
        assert seen.sentences[code] == tuple(text[code][verse] for verse in seen.ids)


def test_no_held_out_verse_is_in_the_training_text(
    held_out: ParallelCorpus, make, files, pretraining_letters
) -> None:
    """In no language, of no source, whatever the case, spaces, punctuation.

    The rest is in the table of ``data/pretraining/overlap.tsv``, which has a test of its own.
    """
    verses = {verse for text in held_out.sentences.values() for verse in text}
    for data in files.values():
        verses |= {row.split("\t")[1] for row in data.decode().splitlines()}
    assert len(verses) == 431 * 21 + 8
    said = "Im Anfang war das Wort, und das Wort war bei Gott, und das Wort war GOTT"
    assert make.letters(said) in pretraining_letters
    assert not set(map(make.letters, verses)) & pretraining_letters


def test_archive_and_checksums(files: dict[str, bytes]) -> None:
    sums = pd.read_csv(FOLDER / "checksums.tsv", sep="\t").set_index(["corpus", "language"])
    assert set(sums.index) == {(corpus, code) for corpus in (SEEN, HELD_OUT) for code in CODES}
    assert set(files) == {f"{code}.tsv" for code in CODES}
    with tarfile.open(paths.DATA / "pretraining" / "bible_nt.tar.xz") as archive:
        trained = {member.name: archive.extractfile(member).read() for member in archive}
    for corpus, texts in ((SEEN, trained), (HELD_OUT, files)):
        for code in CODES:
            data = texts[f"{code}.tsv"]
            row = sums.loc[corpus, code]
            assert data.endswith(b"\n")
            assert data.count(b"\n") == row["verses"]
            assert hashlib.sha256(data).hexdigest() == row["text_sha256"], (corpus, code)


def test_the_table_of_the_readme(files: dict[str, bytes]) -> None:
    counts = pd.DataFrame(
        [
            {"language": name.removesuffix(".tsv"), "book": row.split(".")[0]}
            for name, data in files.items()
            for row in data.decode().splitlines()
        ]
    )
    table = pd.crosstab(counts["language"], counts["book"])[list(HELD_OUT_BOOKS)]
    table["all"] = table.sum(axis=1)
    assert f"| book | {' | '.join(table)} |" in README
    kinds = table.reset_index().groupby(list(table))["language"].agg(list)
    assert sorted(map(len, kinds)) == [8, 13]
    for row, codes in kinds.items():
        name = " ".join(codes) if len(codes) == 8 else "the other 13 languages"
        assert f"| verses, {name} | {' | '.join(map(str, row))} |" in README


def test_verses_of_an_original(make) -> None:
    original = (
        "Matt.1.1\ta book\nJas.1.1\t James,  a\u00a0servant \nJude.1.25\t\n3John.1.1\tThe\telder\n"
    )
    assert make.held_out(original) == {"Jas.1.1": "James, a servant", "3John.1.1": "The elder"}


def repack(file: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(file, "w:xz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def test_a_changed_letter_is_noticed_and_a_lost_file(tmp_path, monkeypatch, files) -> None:
    home = tmp_path / "new_testament"
    home.mkdir()
    few = {name: files[name] for name in ("en.tsv", "fr.tsv")}
    archive = home / "held_out.tar.xz"
    for name in (HELD_OUT, SEEN):
        origin = replace(origins.ORIGINS[name], shipped=archive)
        monkeypatch.setitem(origins.ORIGINS, name, origin)
    repack(archive, few)
    assert len(corpora.load(HELD_OUT, ["fr", "en"])) == 431
    with pytest.raises(TextError, match="no text in de; restore data/new_testament from"):
        corpora.load(HELD_OUT, ["de", "en"])
    repack(archive, few | {"fr.tsv": few["fr.tsv"].replace(b"e", b"a", 1)})
    with pytest.raises(TextError, match=r"text of fr is not .* restore data/new_testament from"):
        corpora.load(HELD_OUT, ["fr", "en"])
    assert corpora.load(HELD_OUT, ["en"]).n_sentences == 431
    archive.unlink()
    with pytest.raises(FileNotFoundError, match="no folder or archive"):
        corpora.load(HELD_OUT, ["en"])
    repack(archive, few)
    with pytest.raises(TextError, match=r"text of fr, en is not .* restore data/new_testament"):
        corpora.load(SEEN, ["fr", "en"])


@pytest.mark.parametrize("name", [SEEN, HELD_OUT])
def test_there_is_no_copy_elsewhere(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"{name} is shipped; give a folder with your own text"):
        corpora.load(name, path=tmp_path)


def test_size_licence_and_listing() -> None:
    assert sum(file.stat().st_size for file in FOLDER.glob("*.*")) < 1_000_000
    for text in ("CC BY 3.0 BR", "creativecommons.org/licenses/by/3.0/br/", "Public domain"):
        assert text in README
    listed = (paths.DATA / "README.md").read_text(encoding="utf-8")
    assert "`new_testament/`" in listed
    assert set(CODES) < set(LANGUAGES)
