"""The shipped WMT24++ text: whole, unchanged, licensed, and as its README describes it."""

import hashlib
import re
import unicodedata
from dataclasses import replace

import pandas as pd
import pytest

from xlx.core import paths
from xlx.core.languages import ABX, LANGUAGES
from xlx.text import corpora, origins
from xlx.text.files import TextError

FOLDER = paths.DATA / "wmt24pp"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
PROSE = " ".join(README.split())


@pytest.fixture(scope="module")
def corpus():
    with pytest.warns(corpora.CorpusWarning, match="51 sentences at 11 of 960 positions"):
        return corpora.load("wmt24pp")


@pytest.fixture(scope="module")
def facts():
    return pd.read_csv(FOLDER / "facts.tsv", sep="\t").set_index("language")


def test_36_languages_of_960_segments(corpus):
    assert corpus.languages == ABX
    assert len(corpus) == 960
    assert {len(text) for text in corpus.sentences.values()} == {960}
    assert len(set(corpus.ids)) == 960


def test_every_file_has_960_lines_and_ends_them_with_lf():
    for language in LANGUAGES.values():
        data = (FOLDER / f"{language.wmt24pp}.txt").read_bytes()
        assert data.count(b"\n") == 960
        assert data.endswith(b"\n")
        assert b"\r" not in data
        assert len(data) < 5_000_000


def test_checksums_of_all_files():
    lines = (FOLDER / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    texts = {f"{language.wmt24pp}.txt" for language in LANGUAGES.values()}
    assert set(sums) == texts | {"segments.tsv", "facts.tsv", "LICENSE"}
    for name, digest in sums.items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == digest, name
    assert {file.name for file in FOLDER.glob("*.txt")} == texts


def test_the_record_holds_the_hash_of_the_shipped_file(corpus):
    """So the shipped text, `google/wmt24pp` and ``text_hash`` are held to one and the same hash."""
    record = pd.read_csv(paths.DATA / "checksums.tsv", sep="\t", keep_default_na=False)
    record = record[record["corpus"] == "wmt24pp"].set_index("tag")["text_sha256"]
    assert len(record) == 56
    for code, language in LANGUAGES.items():
        file = (FOLDER / f"{language.wmt24pp}.txt").read_bytes()
        assert hashlib.sha256(file).hexdigest() == record[language.wmt24pp]
        assert corpus.text_hash(code) == record[language.wmt24pp]


def test_a_changed_letter_is_noticed(tmp_path, monkeypatch):
    for file in FOLDER.glob("*.t[xs][tv]"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    origin = replace(origins.ORIGINS["wmt24pp"], shipped=tmp_path)
    monkeypatch.setitem(origins.ORIGINS, "wmt24pp", origin)
    with pytest.warns(corpora.CorpusWarning, match="repeat"):
        corpora.load("wmt24pp", ["fr"])
    (tmp_path / "fr_FR.txt").write_bytes((FOLDER / "fr_FR.txt").read_bytes().replace(b"e", b"a", 1))
    with pytest.raises(TextError, match="the text of fr_FR is not the one on record"):
        corpora.load("wmt24pp", ["fr"])


def test_licence_and_citation():
    licence = (FOLDER / "LICENSE").read_text(encoding="utf-8")
    assert "Apache License\n" in licence
    assert "Version 2.0, January 2004" in licence
    assert "END OF TERMS AND CONDITIONS" in licence
    for text in (licence, README):
        assert "huggingface.co/datasets/google/wmt24pp" in text
        assert "2502.12404" in text


def test_facts_are_those_of_the_text(corpus, facts):
    def count(hit):
        return [sum(map(hit, text)) for text in corpus.sentences.values()]

    english = corpus.sentences["en"]
    assert list(facts.index) == list(ABX)
    assert list(facts["tag"]) == [LANGUAGES[code].wmt24pp for code in ABX]
    assert list(facts["characters"]) == count(len)
    assert list(facts["longest"]) == [max(map(len, text)) for text in corpus.sentences.values()]
    assert list(facts["line_break"]) == count(lambda s: "\n" in s or "\r" in s)
    assert list(facts["backslash"]) == count(lambda s: "\\" in s)
    assert list(facts["repeated"]) == [960 - len(set(text)) for text in corpus.sentences.values()]
    for code, text in corpus.sentences.items():
        same = sum(a == b for a, b in zip(text, english, strict=True))
        assert facts["as_english"][code] == (0 if code == "en" else same)


def test_readme_tells_the_truth(corpus, facts):
    domains = pd.Series(corpus.domains).value_counts()
    listed = ", ".join(f"{domain} {count}" for domain, count in domains.items())
    documents = len({name.rsplit(":", 1)[0] for name in corpus.ids})
    assert f"{documents} documents in four domains: {listed} segments" in PROSE

    english = pd.Series(corpus.sentences["en"]).str.len()
    assert f"{english.median():.0f} characters in the median, {(english > 500).sum()} of" in PROSE
    longest = facts["longest"].sort_values()
    assert f"between {longest.iloc[0]} ({longest.index[0]}) and " in PROSE
    assert f"and {longest.iloc[-1]:,} ({longest.index[-1]})." in PROSE

    breaks = facts["line_break"]
    assert dict(breaks[breaks > 0]) == {"ar": 5, "de": 1, "hi": 1, "tr": 1, "ur": 1}
    returns = {code: sum("\r" in s for s in text) for code, text in corpus.sentences.items()}
    assert {code: n for code, n in returns.items() if n} == {"ar": 2}
    assert sum("\r\n" in s for s in corpus.sentences["ar"]) == 2
    assert (
        "9 segments hold line breaks: 5 in ar (2 of them with CR LF), 1 each in de, hi, tr, ur"
        in (PROSE)
    )

    same = facts["as_english"].drop("en").sort_values()
    n_positions = corpus.untranslated()["position"].nunique()
    assert f"{same.sum()} translations equal their English source, at {n_positions} pos" in PROSE
    first = ", ".join(f"{n} ({code})" for code, n in same[:2].items())
    assert f"from {first} and {same.iloc[2]} ({same.index[2]}) to " in PROSE
    assert f"to {same.iloc[-1]} ({same.index[-1]}), in the other" in PROSE
    assert f"other languages {same.iloc[3]} to {same.iloc[-2]}." in PROSE

    repeated, positions = facts["repeated"], corpus.duplicates()["position"].nunique()
    assert f"{repeated.sum()} segments repeat an earlier one of their language, " in PROSE
    assert f"{repeated.min()} to {repeated.max()} a language, at {positions} positions" in PROSE
    kept = len(corpora.load("wmt24pp", drop_duplicates=True))
    assert f"keeps {kept}." in PROSE
    assert kept == 960 - positions

    slashes = facts["backslash"]
    assert f"in {slashes.sum()} segments (of {(slashes > 0).sum()} languages" in PROSE
    control = {
        (code, c): sum(c in s for s in text)
        for code, text in corpus.sentences.items()
        for c in {c for s in text for c in s if unicodedata.category(c) == "Cc" and c not in "\r\n"}
    }
    assert control == {("en", "\t"): 1, ("uk", "\t"): 1, ("ko", "\b"): 2}


def test_dropping_the_repeated_leaves_none():
    corpus = corpora.load("wmt24pp", drop_duplicates=True)
    assert corpus.duplicates().empty
    assert len(corpus.domains) == len(corpus)


def test_serbian_is_cyrillic_and_every_language_in_its_script(corpus):
    pattern = {
        "Arab": "[\u0600-\u06ff]",
        "Cyrl": "[\u0400-\u04ff]",
        "Grek": "[\u0370-\u03ff]",
        "Hebr": "[\u0590-\u05ff]",
        "Deva": "[\u0900-\u097f]",
        "Jpan": "[\u3040-\u30ff\u4e00-\u9fff]",
        "Kore": "[\uac00-\ud7af]",
        "Hans": "[\u4e00-\u9fff]",
        "Latn": "[a-zA-Z\u00c0-\u024f\u1e00-\u1eff]",
    }
    assert LANGUAGES["sr"].script == "Cyrl"
    for code, text in corpus.sentences.items():
        letters = [c for c in "".join(text) if c.isalpha()]
        own = re.compile(pattern[LANGUAGES[code].script])
        assert sum(map(bool, map(own.match, letters))) / len(letters) > 0.85, code


def test_every_item_of_data_is_listed():
    listed = (paths.DATA / "README.md").read_text(encoding="utf-8")
    assert "`wmt24pp/`" in listed
    assert "`checksums.tsv`" in listed
    assert "`published/abx/`" in listed
