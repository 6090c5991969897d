"""Shipped parallel text: whole, unchanged, licensed, and as its README describes it."""

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

from xlx.results import paths
from xlx.text import origins, parallel
from xlx.text.files import TextError, letters
from xlx.text.languages import ABX, LANGUAGES
from xlx.text.origins import CorpusWarning
from xlx.text.parallel import ParallelCorpus
from xlx.text.pretraining_text import HELD_OUT_BOOKS, read_source

SEEN, HELD_OUT = "new-testament", "new-testament-held-out"
WMT, FLORES, VERSES = (paths.DATA / name for name in ("wmt24pp", "flores200", "new_testament"))
CODES = tuple("cs da de el en es fi fr hr hu ja ko lv nl pl pt ru sr sv uk vi".split())  # noqa: SIM905


def prose(folder: Path) -> str:
    return " ".join((folder / "README.md").read_text(encoding="utf-8").split())


def make_of(folder: Path) -> ModuleType:
    """The script that makes it; several folders have a ``make``, so none is left behind."""
    before = list(sys.path)
    spec = importlib.util.spec_from_file_location(f"make_{folder.name}", folder / "make.py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = before
    return module


def members(file: Path) -> dict[str, bytes]:
    with tarfile.open(file) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}


def checksums(folder: Path, *index: str) -> pd.DataFrame:
    table = pd.read_csv(folder / "checksums.tsv", sep="\t", keep_default_na=False)
    return table.set_index(list(index))


@pytest.fixture(scope="module")
def wmt() -> ParallelCorpus:
    with pytest.warns(CorpusWarning, match="51 sentences at 11 of 960 positions"):
        return parallel.load("wmt24pp")


@pytest.fixture(scope="module")
def flores() -> ParallelCorpus:
    with pytest.warns(CorpusWarning, match="1 sentences at 1 of 100.*tg, line 17"):
        return parallel.load("flores200-100")


@pytest.fixture(scope="module")
def seen() -> ParallelCorpus:
    with pytest.warns(CorpusWarning, match=r"at 65 of 7208 .*cs, Matt.12.17 repeats Matt.4.14;"):
        return parallel.load(SEEN)


@pytest.fixture(scope="module")
def held_out() -> ParallelCorpus:
    return parallel.load(HELD_OUT)  # without a warning, which would be an error


@pytest.fixture(scope="module")
def verses() -> dict[str, bytes]:
    return members(VERSES / "held_out.tar.xz")


# --- as on record ---------------------------------------------------------------------------------


def test_files_are_those_on_record_and_of_one_line_a_sentence(wmt, flores, verses) -> None:
    lines = (WMT / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    files = {f"{language.wmt24pp}.txt" for language in LANGUAGES.values()}
    assert {file.name for file in WMT.glob("*.txt")} == files
    assert set(sums) == files | {"segments.tsv", "facts.tsv", "LICENSE"}
    for name, digest in sums.items():
        assert hashlib.sha256((WMT / name).read_bytes()).hexdigest() == digest, name
    # The shipped text, `google/wmt24pp` and ``text_hash`` are held to one and the same hash.
    record = checksums(paths.DATA, "corpus", "tag").loc["wmt24pp"]["text_sha256"]
    assert len(record) == 56
    held = [
        (corpus.text_hash(code), (WMT / f"{tag}.txt").read_bytes(), record[tag], 960)
        for corpus, code, tag in ((wmt, code, LANGUAGES[code].wmt24pp) for code in wmt.languages)
    ]
    record = checksums(FLORES, "label")["text_sha256"]
    packed = members(FLORES / "devtest100.tar.xz")
    assert set(packed) == {f"{label}.txt" for label in record.index}
    held += [
        (flores.text_hash(code), packed[f"{label}.txt"], record[label], 100)
        for code, label in parallel.tags("flores200-100").items()
    ]
    record = checksums(VERSES, "corpus", "language")
    assert set(record.index) == {(name, code) for name in (SEEN, HELD_OUT) for code in CODES}
    trained = members(paths.DATA / "pretraining" / "bible_nt.tar.xz")
    for name, texts in ((SEEN, trained), (HELD_OUT, verses)):
        for code in CODES:
            row = record.loc[name, code]
            held += [(row["text_sha256"], texts[f"{code}.tsv"], row["text_sha256"], row["verses"])]
    for of_text, data, digest, n in held:
        assert of_text == digest == hashlib.sha256(data).hexdigest()
        assert data.endswith(b"\n")
        assert data.count(b"\n") == n
        assert b"\r" not in data


def pack(file: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(file, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


@pytest.mark.parametrize(
    ("name", "codes", "says"),
    [
        ("wmt24pp", ("en", "fr"), r"the text of fr_FR is not .* restore data/wmt24pp from"),
        ("flores200-100", ("en", "fr"), r"fra_Latn is not.*restore data/flores200 from"),
        (HELD_OUT, ("en", "fr"), r"text of fr is not .* restore data/new_testament from"),
    ],
)
def test_a_changed_letter_is_noticed_and_a_lost_file(
    tmp_path, monkeypatch, name: str, codes: tuple, says: str
) -> None:
    tags, origin = parallel.tags(name), origins.ORIGINS[name]
    folder = origin.shipped
    if folder.is_dir():
        files = {x.name: x.read_bytes() for x in folder.glob("*.t[xs][tv]")}
    else:
        files, folder = members(origin.shipped), folder.parent
    kept = {"segments", *(tags[code] for code in codes)}
    few = {x: data for x, data in files.items() if x.split(".")[0] in kept}
    archive = tmp_path / folder.name / "some.tar.gz"
    archive.parent.mkdir()
    monkeypatch.setitem(origins.ORIGINS, name, replace(origin, shipped=archive))
    monkeypatch.setattr(parallel, "_stock", lambda *_: ())
    pack(archive, few)
    assert parallel.load(name, codes, drop_duplicates=True).languages == codes
    with pytest.raises(TextError, match=f"no text in {tags['de']}; restore data/"):
        parallel.load(name, ["de", "en"])
    (last,) = (x for x in few if x.startswith(tags["fr"]))
    pack(archive, few | {last: few[last].replace(b"e", b"a", 1)})
    with pytest.raises(TextError, match=says):
        parallel.load(name, codes)
    archive.write_bytes(archive.read_bytes()[:-400])
    with pytest.raises(TextError, match="neither a folder nor a whole tar archive"):
        parallel.load(name, codes)
    archive.unlink()
    with pytest.raises(FileNotFoundError, match="no folder or archive"):
        parallel.load(name, codes)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("flores200-100", 'to read a copy elsewhere, load "flores200"'),
        (SEEN, "give a folder with your own text"),
        (HELD_OUT, "give a folder with your own text"),
    ],
)
def test_what_is_shipped_is_read_from_nowhere_else(name: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"{name} is shipped; {says}"):
        parallel.load(name, path=tmp_path)


@pytest.mark.parametrize(
    ("folder", "most", "says"),
    [
        (WMT, 10_000_000, ["huggingface.co/datasets/google/wmt24pp", "2502.12404"]),
        (FLORES, 2_000_000, ["CC BY-SA 4.0", "licenses/by-sa/4.0", "NLLB Team"]),
        (VERSES, 1_000_000, ["CC BY 3.0 BR", "licenses/by/3.0/br/", "Public domain"]),
    ],
)
def test_size_licence_and_listing(folder: Path, most: int, says: list[str]) -> None:
    assert sum(file.stat().st_size for file in folder.glob("*.*")) < most
    assert all(text in prose(folder) for text in says)
    listed = (paths.DATA / "README.md").read_text(encoding="utf-8")
    assert f"`{folder.name}/`" in listed
    assert "END OF TERMS AND CONDITIONS" in (WMT / "LICENSE").read_text(encoding="utf-8")


# --- WMT24++ --------------------------------------------------------------------------------------


def test_facts_are_those_of_the_text_and_the_readme_has_them(wmt: ParallelCorpus) -> None:
    assert wmt.languages == ABX
    assert len(set(wmt.ids)) == len(wmt) == 960
    facts = pd.read_csv(WMT / "facts.tsv", sep="\t")
    pd.testing.assert_frame_equal(make_of(WMT).facts(wmt), facts)
    facts = facts.set_index("language")
    domains = pd.Series(wmt.domains).value_counts()
    listed = ", ".join(f"{domain} {count}" for domain, count in domains.items())
    documents = len({name.rsplit(":", 1)[0] for name in wmt.ids})
    english = pd.Series(wmt.sentences["en"]).str.len()
    longest, same = (facts[name].sort_values() for name in ("longest", "as_english"))
    same, repeated, slashes = same.drop("en"), facts["repeated"], facts["backslash"]
    positions = wmt.duplicates()["position"].nunique()
    equal = {i for code, text in wmt.sentences.items() if code != "en"
             for i, sentence in enumerate(text) if sentence == wmt.sentences["en"][i]}  # fmt: skip
    first = ", ".join(f"{n} ({code})" for code, n in same[:2].items())
    for told in (
        f"{documents} documents in four domains: {listed} segments",
        f"{english.median():.0f} characters in the median, {(english > 500).sum()} of",
        f"between {longest.iloc[0]} ({longest.index[0]}) and ",
        f"and {longest.iloc[-1]:,} ({longest.index[-1]}).",
        "9 segments hold line breaks: 5 in ar (2 of them with CR LF), 1 each in de, hi, tr, ur",
        f"{same.sum()} translations equal their English source, at {len(equal)} pos",
        f"from {first} and {same.iloc[2]} ({same.index[2]}) to ",
        f"to {same.iloc[-1]} ({same.index[-1]}), in the other",
        f"other languages {same.iloc[3]} to {same.iloc[-2]}.",
        f"{repeated.sum()} segments repeat an earlier one of their language, ",
        f"{repeated.min()} to {repeated.max()} a language, at {positions} positions",
        f"keeps {960 - positions}.",
        f"in {slashes.sum()} segments (of {(slashes > 0).sum()} languages",
    ):
        assert told in prose(WMT)


def test_dropping_the_repeated_leaves_none() -> None:
    corpus = parallel.load("wmt24pp", drop_duplicates=True)
    assert corpus.duplicates().empty
    assert len(corpus.domains) == len(corpus) == 949


# --- FLORES-200 -----------------------------------------------------------------------------------


def test_the_two_corrections_of_flores(flores: ParallelCorpus) -> None:
    assert (len(flores.languages), len(flores), flores.licence) == (203, 100, "CC BY-SA 4.0")
    labels = set(checksums(paths.DATA, "corpus", "tag").loc["flores200"].index)
    sums = checksums(FLORES, "label")
    assert len(labels) == 204
    assert labels - set(sums.index) == {"yue_Hant", "tzm_Tfng"}
    changed = sums[sums["original"] != sums.index]
    assert changed["original"].to_dict() == {"zgh_Tfng": "tzm_Tfng"}
    assert sum(0x2D30 <= ord(c) <= 0x2D7F for c in flores.sentences["zgh"][0]) > 50


def test_codes_and_labels_of_flores(flores: ParallelCorpus) -> None:
    tags = parallel.tags("flores200-100")
    assert list(tags) == sorted(tags)
    assert all(tags[code] == language.flores for code, language in LANGUAGES.items())
    assert {code for code in tags if "_" in code} == {
        *("ace_Arab", "ace_Latn", "bjn_Arab", "bjn_Latn", "kr_Arab", "kr_Latn"),
        *("ks_Arab", "ks_Deva", "min_Arab", "min_Latn", "taq_Latn", "taq_Tfng"),
        *("ar_Latn", "fa_Arab_AF", "zh_Hant"),
    }
    for code in ("ar_Latn", "fa_Arab_AF", "zh_Hant", "ace", "bjn", "kr", "ks", "min", "taq"):
        assert f"`{code}`" in prose(FLORES)
    with pytest.raises(FileNotFoundError, match="no corpus 'wmt'"):
        parallel.tags("wmt")
    asked = ["arb_Latn", "zho_Hant", "zho_Hans", "prs_Arab", "swh_Latn", "zgh", "arb"]
    some = parallel.load("flores200-100", asked)
    assert some.languages == ("ar_Latn", "zh_Hant", "zh", "fa_Arab_AF", "sw", "zgh", "ar")
    assert some.sentences["ar"] == flores.sentences["ar"]
    with pytest.raises(TextError, match="no text in yue_Hant, ace"):
        parallel.load("flores200-100", ["yue_Hant", "ace", "en"])


def test_the_repeated_sentence_of_flores(flores: ParallelCorpus) -> None:
    (row,) = flores.duplicates().to_dict("records")
    assert (row["language"], row["position"], row["first_position"]) == ("tg", 16, 15)
    assert flores.sentences["en"][15] != flores.sentences["en"][16]
    assert "(`tg`) line 17 repeats line 16" in prose(FLORES)


def test_flores_is_the_beginning_of_the_whole(flores: ParallelCorpus, tmp_path: Path) -> None:
    """A copy of devtest gives the same sentences; its text is on record only as a whole."""
    for label, key in (("eng_Latn", "en"), ("deu_Latn", "de")):
        text = "".join(f"{sentence}\n" for sentence in flores.sentences[key])
        (tmp_path / f"{label}.devtest").write_text(text, encoding="utf-8", newline="\n")
    with pytest.warns(CorpusWarning, match="is not the one on record"):
        copy = parallel.load("flores200", ["en", "de"], path=tmp_path)
    assert copy.sentences["de"] == flores.sentences["de"]


# --- New Testaments -------------------------------------------------------------------------------


def test_languages_verses_and_books(seen: ParallelCorpus, held_out: ParallelCorpus) -> None:
    assert seen.languages == held_out.languages == CODES
    assert (len(seen), len(held_out)) == (7208, 431)
    assert tuple(dict.fromkeys(held_out.domains)) == HELD_OUT_BOOKS
    books = tuple(dict.fromkeys(seen.domains))
    assert (books[0], books[3], books[-1], len(books)) == ("Matt", "John", "Rev", 20)
    assert not set(books) & set(HELD_OUT_BOOKS)
    for corpus in (seen, held_out):
        assert len(set(corpus.ids)) == len(corpus)
        assert corpus.domains == tuple(verse.split(".")[0] for verse in corpus.ids)
        assert all(re.fullmatch(r"\w+\.\d+\.\d+", verse) for verse in corpus.ids)
        assert parallel.tags(corpus.name) == {code: code for code in CODES}
    for told in (f"{len(seen):,} in all 21", " ".join(CODES), "7,525", "7,143", "432: the verses"):
        assert told in prose(VERSES)


def test_fewer_languages_have_as_many_verses_or_more(seen, held_out) -> None:
    pair = parallel.load(HELD_OUT, ["sv", "da"])
    assert pair.languages == ("sv", "da")
    assert set(pair.ids) - set(held_out.ids) == {"3John.1.15"}
    assert "Hils Vennerne" in pair.sentences["da"][pair.ids.index("3John.1.15")]
    with pytest.warns(CorpusWarning, match="repeat"):
        some = parallel.load(SEEN, ["en", "de"])
    assert len(some) == 7525
    for code in ("en", "de"):
        verses = dict(zip(some.ids, some.sentences[code], strict=True))
        assert tuple(verses[verse] for verse in seen.ids) == seen.sentences[code]
    with pytest.raises(TextError, match="new-testament-held-out has no text in zh; it has cs"):
        parallel.load(HELD_OUT, ["en", "zh"])


def test_the_seen_verses_are_the_pretraining_text_without_signs(seen: ParallelCorpus) -> None:
    text = read_source("bible_nt")
    assert tuple(text) == CODES
    signs = {}
    for code in CODES:
        assert seen.sentences[code] == tuple(text[code][verse] for verse in seen.ids)
        short = {verse: line for verse, line in text[code].items() if len(line) < 8}
        signs |= {(code, x): line for x, line in short.items() if len(letters(line)) < 3}
    assert set(signs.values()) == {"#", "/", "-", "—", "[1]", "[2]", "(없음)"}
    told = f"{len(signs)} verses of `new-testament` in de, hr, ko, pt and sv"
    assert {code for code, _ in signs} == {"de", "hr", "ko", "pt", "sv"}
    assert told in prose(VERSES)
    assert not {verse for _, verse in signs} & set(seen.ids)


def test_no_held_out_verse_is_in_the_training_text(verses, pretraining_letters) -> None:
    """In no language, of no source, whatever the case, spaces, punctuation."""
    held = {row.split("\t")[1] for data in verses.values() for row in data.decode().splitlines()}
    assert len(held) == 431 * 21 + 8
    said = "Im Anfang war das Wort, und das Wort war bei Gott, und das Wort war GOTT"
    assert letters(said) in pretraining_letters
    assert not set(map(letters, held)) & pretraining_letters


def test_the_table_of_the_readme(verses: dict[str, bytes]) -> None:
    counts = pd.DataFrame(
        [
            {"language": name.removesuffix(".tsv"), "book": row.split(".")[0]}
            for name, data in verses.items()
            for row in data.decode().splitlines()
        ]
    )
    table = pd.crosstab(counts["language"], counts["book"])[list(HELD_OUT_BOOKS)]
    table["all"] = table.sum(axis=1)
    assert f"| book | {' | '.join(table)} |" in prose(VERSES)
    kinds = table.reset_index().groupby(list(table))["language"].agg(list)
    assert sorted(map(len, kinds)) == [8, 13]
    for row, codes in kinds.items():
        name = " ".join(codes) if len(codes) == 8 else "the other 13 languages"
        assert f"| verses, {name} | {' | '.join(map(str, row))} |" in prose(VERSES)


def test_verses_of_an_original() -> None:
    original = (
        "Matt.1.1\ta book\nJas.1.1\t James,  a\u00a0servant \nJude.1.25\t\n3John.1.1\tThe\telder\n"
    )
    found = make_of(VERSES).held_out(original)
    assert found == {"Jas.1.1": "James, a servant", "3John.1.1": "The elder"}
