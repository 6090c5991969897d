"""The shipped part of FLORES-200: whole, unchanged, licensed, and as its README describes it."""

import hashlib
import io
import tarfile
import warnings
from dataclasses import replace

import pandas as pd
import pytest

from xlx.core import paths
from xlx.core.languages import ABX, LANGUAGES
from xlx.text import corpora, origins
from xlx.text.files import TextError

FOLDER = paths.DATA / "flores200"
README = " ".join((FOLDER / "README.md").read_text(encoding="utf-8").split())
NAME = "flores200-100"


@pytest.fixture(scope="module")
def corpus():
    with pytest.warns(corpora.CorpusWarning, match="1 sentences at 1 of 100.*tg, line 17"):
        return corpora.load(NAME)


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    with tarfile.open(FOLDER / "devtest100.tar.xz") as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}


@pytest.fixture(scope="module")
def sums() -> pd.DataFrame:
    return pd.read_csv(FOLDER / "checksums.tsv", sep="\t").set_index("label")


def test_203_languages_of_100_sentences(corpus):
    assert len(corpus.languages) == 203
    assert len(corpus) == 100
    assert set(ABX) <= set(corpus.languages)
    assert corpus.licence == "CC BY-SA 4.0"
    assert corpus.untranslated().empty


def test_the_two_corrections(corpus, sums):
    record = pd.read_csv(paths.DATA / "checksums.tsv", sep="\t", keep_default_na=False)
    labels = set(record[record["corpus"] == "flores200"]["tag"])
    assert len(labels) == 204
    assert labels - set(sums.index) == {"yue_Hant", "tzm_Tfng"}
    assert set(sums.index) - labels == {"zgh_Tfng"}
    changed = sums[sums["original"] != sums.index]
    assert changed["original"].to_dict() == {"zgh_Tfng": "tzm_Tfng"}
    assert "yue" not in corpus.languages
    assert sum(0x2D30 <= ord(c) <= 0x2D7F for c in corpus.sentences["zgh"][0]) > 50


def test_checksums_of_all_files(corpus, files, sums):
    assert set(files) == {f"{label}.txt" for label in sums.index}
    tags = corpora.tags(NAME)
    for key, label in tags.items():
        data = files[f"{label}.txt"]
        assert data.count(b"\n") == 100
        assert data.endswith(b"\n")
        assert b"\r" not in data
        assert hashlib.sha256(data).hexdigest() == sums.loc[label, "text_sha256"], label
        assert corpus.text_hash(key) == sums.loc[label, "text_sha256"]


def test_codes_and_labels():
    tags = corpora.tags(NAME)
    assert list(tags) == sorted(tags)
    for code, language in LANGUAGES.items():
        assert tags[code] == language.flores
    with_script = {code for code in tags if "_" in code}
    assert with_script == {
        *("ace_Arab", "ace_Latn", "bjn_Arab", "bjn_Latn", "kr_Arab", "kr_Latn"),
        *("ks_Arab", "ks_Deva", "min_Arab", "min_Latn", "taq_Latn", "taq_Tfng"),
        *("ar_Latn", "fa_Arab_AF", "zh_Hant"),
    }
    for code in ("ar_Latn", "fa_Arab_AF", "zh_Hant", "ace", "bjn", "kr", "ks", "min", "taq"):
        assert f"`{code}`" in README
    with pytest.raises(FileNotFoundError, match="no corpus 'wmt'"):
        corpora.tags("wmt")


def test_some_languages_by_code_or_label(corpus):
    some = corpora.load(NAME, languages=ABX)
    assert some.languages == ABX
    assert some.sentences["ar"] == corpus.sentences["ar"]
    some = corpora.load(NAME, ["arb_Latn", "zho_Hant", "zho_Hans", "prs_Arab", "swh_Latn", "zgh"])
    assert some.languages == ("ar_Latn", "zh_Hant", "zh", "fa_Arab_AF", "sw", "zgh")
    with pytest.raises(TextError, match="no text in yue_Hant, ace"):
        corpora.load(NAME, ["yue_Hant", "ace", "en"])


def test_without_the_repeated_sentence(corpus):
    (row,) = corpus.duplicates().to_dict("records")
    assert (row["language"], row["position"], row["first_position"]) == ("tg", 16, 15)
    assert corpus.sentences["en"][15] != corpus.sentences["en"][16]
    assert len(corpora.load(NAME, drop_duplicates=True)) == 99
    assert "(`tg`) line 17 repeats line 16" in README


def test_it_is_the_beginning_of_the_whole(corpus, tmp_path):
    """A copy of devtest gives the same sentences; its text is on record only as a whole."""
    for label in ("eng_Latn", "deu_Latn"):
        key = {"eng_Latn": "en", "deu_Latn": "de"}[label]
        text = "".join(f"{sentence}\n" for sentence in corpus.sentences[key])
        (tmp_path / f"{label}.devtest").write_text(text, encoding="utf-8", newline="\n")
    with pytest.warns(corpora.CorpusWarning, match="is not the one on record"):
        copy = corpora.load("flores200", ["en", "de"], path=tmp_path)
    assert copy.sentences["de"] == corpus.sentences["de"]
    with pytest.raises(ValueError, match='is shipped; to read a copy elsewhere, load "flores200"'):
        corpora.load(NAME, path=tmp_path)


def repack(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def test_a_changed_letter_is_noticed_and_a_lost_file(tmp_path, monkeypatch, files):
    (tmp_path / "flores200").mkdir()
    few = {name: files[name] for name in ("eng_Latn.txt", "fra_Latn.txt")}
    file = tmp_path / "flores200" / "devtest100.tar.xz"
    origin = replace(origins.ORIGINS[NAME], shipped=file)
    monkeypatch.setitem(origins.ORIGINS, NAME, origin)
    file.write_bytes(repack(few))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(corpora.load(NAME, ["en", "fr"])) == 100
    with pytest.raises(TextError, match="no text in deu_Latn; restore data/flores200"):
        corpora.load(NAME, ["de", "en"])
    few["fra_Latn.txt"] = few["fra_Latn.txt"].replace(b"e", b"a", 1)
    file.write_bytes(repack(few))
    with pytest.raises(TextError, match=r"fra_Latn is not.*restore data/flores200 from"):
        corpora.load(NAME, ["en", "fr"])
    file.write_bytes(repack(few)[:-400])
    with pytest.raises(TextError, match="neither a folder nor a whole tar archive"):
        corpora.load(NAME, ["en"])
    file.unlink()
    with pytest.raises(FileNotFoundError, match="no folder or archive"):
        corpora.load(NAME, ["en"])


def test_size_licence_and_listing():
    assert sum(file.stat().st_size for file in FOLDER.glob("*.*")) < 2_000_000
    for text in ("CC BY-SA 4.0", "creativecommons.org/licenses/by-sa/4.0", "NLLB Team"):
        assert text in README
    listed = (paths.DATA / "README.md").read_text(encoding="utf-8")
    for item in ("`flores200/`", "`published/mexa/`"):
        assert item in listed
