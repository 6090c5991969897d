"""Loading parallel text: a folder in its layouts, a local copy and the download of FLORES-200."""

import functools
import gzip
import hashlib
import http.server
import io
import lzma
import tarfile
import threading
import unicodedata
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text.made import put
from xlx.text import parallel
from xlx.text.files import TextError
from xlx.text.parallel import CorpusWarning, DownloadError, ParallelCorpus, load

quiet = pytest.mark.filterwarnings("ignore::xlx.text.parallel.CorpusWarning")


def write(folder, **files):
    """Write files; ``en="a\\n"`` is en.txt, other names are given in a dict."""
    folder.mkdir(exist_ok=True, parents=True)
    for name, content in files.items():
        put(folder, name if "." in name else f"{name}.txt", content)
    return folder


def refuses(folder, *words, error=TextError, **options):
    """The folder is refused in one line that holds all the words."""
    with pytest.raises(error) as caught:
        load(folder, **options)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message, message


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / "mine", en="one\ntwo\nthree\n", de="eins\nzwei\ndrei\n")


def make(**sentences):
    n = len(next(iter(sentences.values())))
    ids = tuple(map(str, range(n)))
    texts = {language: tuple(text) for language, text in sentences.items()}
    return ParallelCorpus("made", texts, ids, ("d",) * n, "none", "here")


# --- a folder -------------------------------------------------------------------------------------


def test_a_folder_with_what_stands_beside_the_text(folder):
    corpus = load(folder)
    assert corpus.sentences == {"de": ("eins", "zwei", "drei"), "en": ("one", "two", "three")}
    assert (corpus.ids, corpus.domains) == (("1", "2", "3"), ("", "", ""))
    assert (corpus.name, len(corpus), corpus.n_sentences) == ("mine", 3, 3)
    write(folder, **{"README.md": "about", "LICENSE": "free", ".hidden": "", "NOTICE.txt": "me"})
    (folder / "more").mkdir()
    assert load(str(folder)) == corpus
    write(folder, **{"segments.tsv": "domain\tid\nnews\ta:1\nnews\ta:2\ntalk\tb:1\n"})
    corpus = load(folder, "de")
    assert (corpus.ids, corpus.domains) == (("a:1", "a:2", "b:1"), ("news", "news", "talk"))
    write(folder, **{"segments.tsv": "id\nx\ny\nz\n"})
    assert load(folder).domains == ("", "", "")


@quiet
def test_names_become_codes(tmp_path):
    names = ["eng_Latn", "pt_PT.txt", "pt_BR.txt", "srp-Cyrl", "arb_Arab.txt", "yue.txt", "zh.txt"]
    for name in names:
        put(tmp_path, name, "a\nb\n")
    assert load(tmp_path).languages == ("ar", "en", "pt_BR", "pt_PT", "sr", "yue", "zh")
    chosen = load(tmp_path, ["zho", "eng_Latn", "pt_PT", "arb", "en"])
    assert chosen.languages == ("zh", "en", "pt_PT", "ar")
    refuses(tmp_path, "no text in pt;", "pt_BR, pt_PT", languages=["en", "pt"])


@pytest.mark.parametrize(
    ("name", "options", "error", "words"),
    [
        ("mine", {"languages": ["de", "fr", "xx"]}, TextError, "no text in fr, xx; it has de, en"),
        ("mine", {"languages": []}, TextError, "no language at all"),
        ("nowhere", {}, FileNotFoundError, "nowhere.*wmt24pp, flores200"),
        ("mine/en.txt", {}, FileNotFoundError, "no corpus and no folder"),
        ("mine", {"path": "."}, ValueError, "path= is for a copy of"),
        ("none", {}, TextError, "none is empty; it needs one text file"),
        ("empty", {}, TextError, "en.txt is empty"),
        ("one", {}, TextError, "one has 1 sentences in all; at least two"),
        ("same", {"drop_duplicates": True}, TextError, "has 1 sentences without the repeated ones"),
    ],
)
def test_requests_that_cannot_be_met(folder, name, options, error, words):
    (folder.parent / "none").mkdir()
    write(folder.parent / "empty", en="")
    write(folder.parent / "one", en="one\n", de="eins\n")
    write(folder.parent / "same", en="one\none\n", de="eins\nzwei\n")
    with pytest.raises(error, match=words):
        load(folder.parent / name, **options)
    with pytest.raises(ValueError, match="wmt24pp is shipped; give a folder"):
        load("wmt24pp", path=folder)


LINE = st.text(
    st.characters(exclude_characters="\n\0", exclude_categories=["Cs"])
    | st.sampled_from("\u2028\x85\x0b\r\t\x1c\u2424\xa0\u0301\ufeff\x01 "),
    max_size=9,
).map(lambda line: f"x{line}")


@quiet
@settings(max_examples=20)
@given(st.lists(LINE, min_size=2, max_size=9), st.booleans(), st.booleans())
def test_lines_come_back_as_written(tmp_path_factory, lines, mark, last):
    """But for one CR before a line's end, which CRLF would have put there."""
    data = ("\ufeff" * mark + "\n".join(lines) + "\n" * last).encode()
    folder = write(tmp_path_factory.mktemp("lines"), en=data)
    ended = lines if last else lines[:-1]
    expected = [line.removesuffix("\r") for line in ended] + lines[len(ended) :]
    assert load(folder).sentences["en"] == tuple(expected)


# --- a folder: other layouts ----------------------------------------------------------------------


def ids(**texts):
    """Files of lines ``id<TAB>sentence`` from ``{id: sentence}``."""
    return {name: "".join(f"{k}\t{v}\n" for k, v in rows.items()) for name, rows in texts.items()}


def test_lines_with_ids(tmp_path):
    folder = write(
        tmp_path / "mine", **ids(en={"b": "two", "a": "one\tand"}, de={"a": "eins", "b": "zwei "})
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        corpus = load(folder)
    assert corpus.ids == ("a", "b")  # in the order of the first language
    assert corpus.sentences == {"de": ("eins", "zwei "), "en": ("one\tand", "two")}
    assert corpus.domains == ("", "")
    assert corpus.source == f"{folder} (id and sentence a line)"
    assert load(folder, ["en", "de"]).ids == ("b", "a")


def test_ids_that_some_languages_lack(tmp_path):
    de = {"a": "eins", "b": "zwei", "d": "vier"}
    en = {"a": "one", "b": "two", "c": "three", "d": "four", "e": "five"}
    fr = {"a": "un", "b": "deux", "c": "trois", "d": "\u200b "}
    folder = write(tmp_path / "mine", **ids(de=de, en=en, fr=fr))
    with pytest.warns(CorpusWarning) as caught:
        corpus = load(folder)
    assert [str(warning.message) for warning in caught] == [
        "mine: 3 of 5 ids are left out, as not all of 3 languages have them; de.txt lacks most, "
        "2 of them; an id is what stands before the first tab."
    ]
    assert caught[0].filename == __file__
    assert corpus.ids == ("a", "b")


def test_tabs_in_sentences_are_no_ids(tmp_path):
    text = ("one\tor two", "three", "a phrase\twith a tab", "\tfour")
    write(tmp_path, en="\n".join(text), de="1\n2\n3\n4\n")
    assert load(tmp_path).sentences["en"] == text


EN, DE = "one\ntwo\nthree\n", "eins\nzwei\ndrei\n"
CELLS = {"en": ["one", "two", "three"], "de": ["eins", "zwei", "drei"]}
UNIT = (
    '<tu tuid="{0}"><tuv xml:lang="en"><seg>{1}</seg></tuv>'
    '<tuv xml:lang="de-DE"><seg>{2}<bpt i="1">&lt;b&gt;</bpt></seg></tuv></tu>'
)
UNITS = "".join(map(UNIT.format, "abc", *CELLS.values()))
TMX = f"<?xml version='1.0'?><tmx version='1.4'><header/><body>{UNITS}</body></tmx>"
COMMAS = "URL,id,sentence_eng_Latn,sentence_deu_Latn\n" + "".join(
    f'http://x,{i},"{en}",{de}\n' for i, (en, de) in enumerate(zip(*CELLS.values(), strict=True))
)


def parquet(**columns):
    buffer = io.BytesIO()
    pd.DataFrame(columns).to_parquet(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"newstest2014-deen-src.de": DE, "newstest2014-deen-ref.en": EN}, "deen-src.de"),  # WMT
        ({"wmt22.src.en": EN, "wmt22.ref.A.de": DE}, "names as wmt22.ref.A.de"),  # sacreBLEU
        ({"eng_Latn.flores.txt": EN, "deu_Latn.flores.txt": DE}, "names as deu_Latn.flores.txt"),
        ({"c.en.xz": lzma.compress(EN.encode()), "c.de.xz": lzma.compress(DE.encode())}, "c.de.xz"),
        ({"a.tmx.gz": gzip.compress(TMX.encode())}, "one column per language of a.tmx.gz"),
        ({"flores.csv": COMMAS}, "one column per language of flores.csv"),  # FLORES on the hub
        (
            {
                "a.parquet": parquet(
                    translation=[  # OPUS-100
                        dict(zip(CELLS, row, strict=True))
                        for row in zip(*CELLS.values(), strict=True)
                    ]
                )
            },
            "of a.parquet",
        ),
    ],
)
def test_layouts_that_people_have(tmp_path, files, said):
    corpus = load(write(tmp_path, **files))
    called = {key.split("_")[0]: text for key, text in corpus.sentences.items()}
    assert called == {key: tuple(CELLS[key]) for key in ("de", "en")}
    assert said in corpus.source


def test_parallel_bible_corpus(tmp_path):
    header = "# language_name: {}\n# closest_ISO_639-3: {}\n# year_short: 1912\n\n"
    german = "40001001\tDies\n40001002\tAbraham\n40001003\t\n40001004\n41001001\tAnfang\n"
    english = "40001001\tThe\n40001002\tAbe\n# 40001002\tother\n40001003\tAnd\n41001001\tIn\n"
    for name, text in {"deu-x-bible-luther": german, "eng-x-bible-king-v1": english}.items():
        more = "".join(f"4200100{i}\t{name[:3]} {i}\n" for i in range(1, 10))
        content = header.format(name, name[:3]) + text + more
        (tmp_path / f"{name}.txt").write_text(content, encoding="utf-8")
    with pytest.warns(CorpusWarning, match=r"1 of 13 ids are left out"):
        corpus = load(tmp_path)
    assert corpus.sentences["de"][:3] == ("Dies", "Abraham", "Anfang")
    assert corpus.sentences["en"][:4] == ("The", "Abe", "In", "eng 1")
    assert corpus.ids[:3] == ("40001001", "40001002", "41001001")


THREE = "1\n2\n3\n"
IDS = "a\tone\nb\ttwo\nc\tthree\n"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        # ids and domains beside the text
        ({"segments.tsv": "id\tdomain\na\tnews\nb\n"}, ["segments.tsv, line 3", "header of 2"]),
        ({"segments.tsv": "id\na\nb\n"}, ["segments.tsv has 2", "has 3"]),
        # names of files
        ({"x/a.csv": "en,de\n1\n"}, ["row 1: 1 cells under a header of 2"]),
        ({"x/a.csv": "en,de,en\n1,2,3\n"}, ["a.csv: two columns are called 'en'; rename or"]),
        ({"x/a.csv": "src,tgt\na,b\n"}, ["none of src, tgt names a language"]),
        ({"eng.txt": THREE}, ["are the same language"]),
        ({"fr.tsv": THREE}, ["two extensions: de.txt and fr.tsv", "keep the files of one"]),
        # numbers of lines
        ({"fr.txt": THREE + THREE, "it.txt": ""}, ["it.txt", "is empty"]),
        ({"fr.txt": "u\nd\nt\nq\n"}, ["mine", "fr.txt has 4", "has 3 (as 2 of 3 files)"]),
        # empty lines
        ({"en.txt": "\u200b\ntwo\n\ufeff\u00a0\n"}, ["2 empty lines (1, 3)"]),
        # bytes
        ({"en.txt": b"one\ntwo\n\xe9t\xe9\n"}, ["en: ", "en.txt, line 3: byte 0xe9 is not UTF-8"]),
        # lines with ids
        ({"en.txt": IDS, "de.txt": "a\teins\nzwei\n"}, ["de.txt, line 2: not an id, a tab and"]),
        ({"en.txt": IDS}, ["de.txt, line 1: not an id", "give all lines an id or none"]),
        (
            {"en.txt": IDS, "de.txt": "a\tx\na\ty\n"},
            ["line 2: the id a comes a second time; an id is what stands before"],
        ),
        (
            {"en.txt": IDS, "de.txt": "x\te\n"},
            ["no id", "2 files", "before the first tab"],
        ),
        ({"en.txt": IDS, "de.txt": IDS, "segments.tsv": "id\n1\n"}, ["have ids", "remove one"]),
    ],
)
def test_folders_that_are_refused(tmp_path, files, words):
    """The files of a folder, beside three lines in en.txt and de.txt."""
    folder = write(tmp_path / "mine", en="one\ntwo\nthree\n", de="eins\nzwei\ndrei\n")
    write(folder, **files)
    refuses(folder / "x" if (folder / "x").is_dir() else folder, *words)


# --- ParallelCorpus -------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_what_looks_the_same_is_a_repeat(folder, seed):
    rng, line = np.random.default_rng(seed), "Ça va à l’été ん́ 한국"
    forms = [unicodedata.normalize(str(rng.choice(["NFC", "NFD"])), line) for _ in range(5)]
    spaces = [" ", "  ", "\u00a0", "\u2009", "\u3000", " \u200b"]
    unseen = ["\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", ""]
    forms = [x.replace(" ", str(rng.choice(spaces))) + str(rng.choice(unseen)) for x in forms]
    write(folder, en="\n".join(["a", *forms, "ca va"]), de="1\n2\n3\n4\n5\n6\n7")
    with pytest.warns(CorpusWarning, match=r"4 sentences at 4 of 7 .*line 3 repeats line 2"):
        load(folder)
    assert load(folder, drop_duplicates=True).ids == ("1", "2", "7")


def test_duplicates_are_counted_and_dropped_in_all_languages(folder):
    write(folder, en="a\nb\na\nc\na\n", de="1\n2\n3\n4\n5\n", fr="v\nw\nx\nw\ny\n")
    with pytest.warns(
        CorpusWarning,
        match=(
            r"3 sentences at 3 of 5 positions .*first: en, line 3 repeats line 1; in all: en 2, fr "
            "1"
            ".*drop_duplicates=True"
        ),
    ) as caught:
        load(folder)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        left = load(folder, drop_duplicates=True)
        assert load(folder, ["de"]).n_sentences == 5
    assert left.sentences == {"de": ("1", "2"), "en": ("a", "b"), "fr": ("v", "w")}
    assert left.ids == ("1", "2")


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: make(en="ab", de="a"), "made: de has 1 entries and ids 2"),
        (
            lambda: ParallelCorpus("made", {"en": ("a", "b")}, ("1", "2"), ("",), "", ""),
            "domains has 1",
        ),
        (lambda: make(en="ab").select(["de"]), "made has no text in de; it has en"),
        (lambda: make(en="abcd").drop([-1]), "no position -1 among 4"),
        (lambda: make(en="abcd").drop([4]), "no position 4 among 4"),
        (lambda: make(en="ab").take(0, 0), "at least one"),
    ],
)
def test_what_a_corpus_refuses(call, says):
    with pytest.raises(TextError, match=says):
        call()


@given(st.integers(1, 12), st.integers(0, 9))
def test_take_is_a_sorted_sample_without_replacement(n, seed):
    corpus = make(en=[f"e{i}" for i in range(9)], de=[f"d{i}" for i in range(9)])
    taken = corpus.take(n, seed)
    positions = [int(i) for i in taken.ids]
    assert positions == sorted(set(positions))
    assert len(taken) == min(n, 9)
    assert taken.sentences["de"] == tuple(f"d{i}" for i in positions)
    assert taken == corpus.take(n, np.random.default_rng(seed))


def test_take_from_shipped_text_depends_on_no_language():
    every = load("wmt24pp", drop_duplicates=True)
    few = load("wmt24pp", ["en", "de", "ja"], drop_duplicates=True)
    assert len(few) > len(every)
    assert few.take(200, 1).ids == every.take(200, 1).ids
    # as the shipped results have them
    drawn = np.random.default_rng(1).choice(len(every), size=200, replace=False)
    assert every.take(200, 1).ids == tuple(every.ids[i] for i in sorted(drawn.tolist()))
    assert set(every.ids) < set(few.take(len(few) - 1, 1).ids)


# --- FLORES-200 -----------------------------------------------------------------------------------


def flores(folder):
    for part in ("dev", "devtest"):
        tags = ("eng_Latn", "arb_Arab", "arb_Latn", "twi_Latn", "aka_Latn")
        files = {f"{tag}.{part}": f"{tag} {part} 1\n{tag} 2\n" for tag in tags}
        write(folder / "flores200_dataset" / part, **files)
        about = "URL\tdomain\ttopic\nhttp://a\twikinews\tx\nhttp://b\twikibooks\ty\n"
        write(folder / "flores200_dataset", **{f"metadata_{part}.tsv": about})
    return folder


def archive(folder):
    file = folder / "flores200_dataset.tar.gz"
    with tarfile.open(file, "w:gz") as tar:
        tar.add(folder / "flores200_dataset", "./flores200_dataset")
        tar.add(folder / "flores200_dataset" / "dev" / "eng_Latn.dev", "../beside")
    return file


@quiet
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("name", "part"), [("flores200", "devtest"), ("flores200-dev", "dev")])
def test_local_flores(tmp_path, packed, name, part):
    path = archive(flores(tmp_path)) if packed else flores(tmp_path)
    corpus = load(name, path=path)
    assert corpus.languages == ("ak", "ar", "ar_Latn", "en", "tw")
    assert corpus.sentences["ar"] == (f"arb_Arab {part} 1", "arb_Arab 2")
    assert corpus.domains == ("wikinews", "wikibooks")
    assert corpus.ids == ("1", "2")
    assert load(name, ["ar_Latn", "eng"], path=path).languages == ("ar_Latn", "en")
    refuses(name, "no text in de;", "it has ak, ar", languages=["de"], path=path)
    assert not (tmp_path.parent / "beside").exists()  # nothing is unpacked


def test_a_copy_that_is_not_the_text_on_record(tmp_path):
    with pytest.warns(CorpusWarning, match="flores200: .* ak, ar, ar_Latn, en, tw is not the one"):
        load("flores200", path=flores(tmp_path))
    refuses("flores200", "holds no text of flores200", path=write(tmp_path / "er"))
    refuses("flores200", "no folder or archive", error=FileNotFoundError, path=tmp_path / "away")


@quiet
@pytest.mark.parametrize("about", ["", "URL\ttopic\na\tb\nc\td\n", "URL\tdomain\na\nb\tc\td\n"])
def test_flores_domains_are_taken_as_far_as_they_go(tmp_path, about):
    write(flores(tmp_path) / "flores200_dataset", **{"metadata_devtest.tsv": about})
    expected = ("", "c") if "domain" in about else ("", "")
    assert load("flores200", path=tmp_path).domains == expected


def test_an_archive_that_is_none(tmp_path):
    file = tmp_path / "flores200_dataset.tar.gz"
    file.write_bytes(b"half of it")
    refuses("flores200", "neither a folder nor a whole tar archive", path=file)
    whole = archive(flores(tmp_path)).read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    refuses("flores200", "neither a folder nor a whole tar archive", path=file)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A small FLORES-200 at its origin, which is a server here; the cache is empty."""
    folder = tmp_path / "origin"
    file = archive(flores(folder))
    handler = functools.partial(Quiet, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/{file.name}"
        monkeypatch.setattr(parallel, "_ARCHIVE", url)
        monkeypatch.setattr(parallel, "_PIN", hashlib.sha256(file.read_bytes()).hexdigest())
        monkeypatch.setattr("xlx.results.paths.CACHE", tmp_path / "cache")
        yield folder
        server.shutdown()


def test_flores_download(served):
    corpus = load("flores200-dev", ["ar", "en"])
    assert corpus.sentences["en"] == ("eng_Latn dev 1", "eng_Latn 2")
    (served / "flores200_dataset.tar.gz").unlink()  # the second time from the cache
    assert load("flores200-dev", ["ar", "en"]) == corpus
    # The archive is the one pinned here, but its devtest is not the text on record.
    refuses("flores200", "arb_Arab is not the one on record", languages=["ar"])


def test_a_download_with_another_checksum_is_not_kept(served, tmp_path):
    (served / "flores200_dataset.tar.gz").write_bytes(b"an error page")
    refuses("flores200-dev", "is not the file on record", "path=...")
    assert [file for file in (tmp_path / "cache").rglob("*") if file.is_file()] == []


def test_without_a_network(monkeypatch, tmp_path):
    monkeypatch.setattr(parallel, "_ARCHIVE", "http://127.0.0.1:9/flores200_dataset.tar.gz")
    monkeypatch.setattr("xlx.results.paths.CACHE", tmp_path)
    refuses(
        "flores200",
        "flores200 could not be downloaded",
        'load("flores200", path=...)',
        error=DownloadError,
        languages=["de"],
    )
