"""What data/ ships of text: every file is the one on record, and results find it by its content.

What its rows must be was checked by the scripts that made the files.
"""

import hashlib
import io
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from family.pretraining_text import HELD_OUT_BOOKS
from shared.minimal_pairs import load_minimal_pairs
from xlx.results import paths
from xlx.text import parallel
from xlx.text.files import TextError, catalogue, tsv
from xlx.text.labelled import about_labelled, load_labelled
from xlx.text.languages import ABX, LANGUAGES
from xlx.text.parallel import CorpusWarning
from xlx.text.questions import load_questions
from xlx.text.trees import load_trees

HELD_OUT = "new-testament-held-out"
#: Kind → a call, the file that it reads, and the most bytes of the folder.
KINDS = {
    "labelled": (lambda: load_labelled("POS", "de", "test"), "ud/de.conllu.xz", 16_100_000),
    "questions": (lambda: load_questions("xquad", "de"), "xquad/de.json.xz", 2_100_000),
    "trees": (lambda: load_trees("de"), "ud/de.conllu.xz", 4_700_000),
    "minimal-pairs": (lambda: load_minimal_pairs.__wrapped__("names"), "edits.tsv.xz", 950_000),
}
#: Beginnings of the SHA-256 of the archives. That no text to test on is in the pretraining text was
#: checked of these, by ``data/*/make.py``.
ARCHIVES = {
    "flores200/devtest.tar.xz": "d22fb989a91ca3e4a589aa27409b9f8ba3a1185f",
    "flores200/devtest100.tar.xz": "9866c2777c50a8bb679bd4599d56517f66acedfa",
    "new_testament/held_out.tar.xz": "0cc851d1e6614cae0f2aefcc6d352396d4598652",
    "pretraining/common_voice.tar.xz": "8ab37e3e62e12ae655fe40e4bf687887c954cf32",
    "pretraining/tatoeba.tar.xz": "a5f4d6b268c6130d35e98dc68edb0a6291333528",
    "pretraining/ntrex.tar.xz": "e008086c1015e2704ed0fb3fe4f63ef6add852f1",
    "pretraining/bible_nt.tar.xz": "f60f76376ce37aa257f9cd062c1a599b010da069",
}


def sha256(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


@pytest.mark.parametrize("kind", KINDS)
def test_a_shipped_file_that_was_changed_or_lost(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load, name, _ = KINDS[kind]
    original = paths.DATA / kind
    monkeypatch.setattr(paths, "DATA", tmp_path)
    with pytest.raises(TextError, match=rf"sources\.tsv is missing; restore data/{kind}"):
        load()
    file = tmp_path / kind / name
    file.parent.mkdir(parents=True)
    (tmp_path / kind / "sources.tsv").write_bytes((original / "sources.tsv").read_bytes())
    with pytest.raises(TextError, match=r"\.\w+\.xz is missing; restore"):
        load()
    file.write_bytes((original / name).read_bytes() + b"\0")
    with pytest.raises(TextError, match=r"not the file on record in sources\.tsv; restore"):
        load()
    (tmp_path / kind / "sources.tsv").write_text("source\tlanguage\nxquad\n", encoding="utf-8")
    with pytest.raises(TextError, match="line 2: 1 cells under a header of 2"):
        load()


@pytest.mark.parametrize("kind", KINDS)
def test_files_are_small_listed_and_on_record(kind: str) -> None:
    folder = paths.DATA / kind
    table = tsv((folder / "sources.tsv").read_bytes(), kind)
    files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*.*")}
    files = {name: file for name, file in files.items() if "__pycache__" not in name}
    licences = set(table["licence_file"]) - {""} if kind == "labelled" else set()
    scripts = {"make.py", "parse_wiki.py", "read.tsv", "rules.tsv"} & set(files)
    assert set(files) == {*table["file"], *licences, *scripts, "sources.tsv", "README.md"}
    assert sum(file.stat().st_size for file in files.values()) < KINDS[kind][2]
    readme = files["README.md"].read_text(encoding="utf-8")
    for row in table.to_dict("records"):
        assert sha256(files[row["file"]]) == row["sha256"]
        assert row["made_from"]
        assert row["url"]
        assert row["licence"].split(" (")[0] in readme
        if kind == "trees":
            assert (paths.DATA / row["licence_file"]).is_file()


def test_archives_and_files_of_parallel_text_are_on_record() -> None:
    assert {name: sha256(paths.DATA / name)[:40] for name in ARCHIVES} == ARCHIVES
    folder = paths.DATA / "wmt24pp"
    lines = (folder / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    assert {file.name for file in folder.glob("*.txt")} < set(sums)
    assert len(sums) == 38
    assert {name: sha256(folder / name) for name in sums} == sums


#: What stored results know a text by: beginnings of hashes.
CONTENT = {
    "wmt24pp de": "a92c0656a0179cdf610e1a2bfcf309e80692e323",
    "flores200-100 sw": "33d1cca98b4cf8eed9dd99d632b06ac6349398b7",
    "new-testament-held-out fi": "e95f3ba6c85de4aca1f0088d484c7ca77340caec",
    "ud de train": "24f88aa996acc202c8dc8eeb1fb0fbe5378327bd",
    "wikiann de test": "7aa94f0741684c9cd795a4e67be3984e130d6120",
    "uner sk validation": "7d386538001bcc6780d26869dca294c0170b95f9",
    "xnli zh test": "0319d65b640ca82e7786dde4f7106a07ba5ab7fa",
    "xnli zh test, file": "a2e64fedb975e8430053f9a70cfdee6169420eaf",
    "xnli-dev tr train": "d94d3526072d6bafd664d436b1c020dec7bfdd61",
    "xnli-dev tr train, file": "b5f264c7e5df7cb9e186006039ccbca3c0c8e19e",
    "sick ja test": "6bf66f7b80e3228fbcb2f56edd9f40d6a7eb664e",
    "sick ja test, file": "07b5761c7a6c30613e9a18bea0fbd350ea96c197",
    "pawsx ko test": "d0c759cf62a223c081acd9a2ab53750d5239bbd4",
    "sib200 ar_Latn test": "1c6e0456827fd458a894202535b6faf801dbd12f",
    "xquad th test": "54cde8dc94b136986ecb338678793d78de0522fa",
}


def test_results_find_text_by_what_it_was() -> None:
    """A part of every source, as it was when the results were computed."""
    made = {}
    for name in CONTENT:
        about, _, what = name.partition(", ")
        source, language, *split = about.split()
        if source == "xquad":
            made[name] = load_questions(source, language, *split).text_hash()
        elif not split:
            made[name] = parallel.load(source, language).text_hash(language)
        else:
            task = set(catalogue("labelled").query("source == @source")["task"]).pop()
            options = {"source": source}
            part = load_labelled if not what else about_labelled
            found = part(task, language, *split, **options)
            made[name] = found["file"] if what else found.table_hash()
    assert {name: digest[:40] for name, digest in made.items()} == CONTENT


# --- parallel text ---


def pack(file: Path, files: dict[str, bytes]) -> None:
    with tarfile.open(file, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


@pytest.mark.parametrize("name", ["wmt24pp", "flores200-devtest", HELD_OUT])
def test_a_changed_letter_is_noticed_and_a_lost_file(tmp_path, monkeypatch, name: str) -> None:
    tags, origin, codes = parallel.tags(name), parallel.ORIGINS[name], ("en", "fr")
    folder = origin.shipped
    if folder.is_dir():
        files = {x.name: x.read_bytes() for x in folder.glob("*.t[xs][tv]")}
    else:
        with tarfile.open(folder) as packed:
            files = {member.name: packed.extractfile(member).read() for member in packed}
        folder = folder.parent
    kept = {"segments", *(tags[code] for code in codes)}
    few = {x: data for x, data in files.items() if x.split(".")[0] in kept}
    archive = tmp_path / folder.name / "some.tar.gz"
    archive.parent.mkdir()
    monkeypatch.setitem(parallel.ORIGINS, name, replace(origin, shipped=archive))
    monkeypatch.setattr(parallel, "_stock", lambda *_: ())
    pack(archive, few)
    assert parallel.load(name, codes, drop_duplicates=True).languages == codes
    with pytest.raises(TextError, match=f"no text in {tags['de']}; restore data/"):
        parallel.load(name, ["de", "en"])
    (last,) = (x for x in few if x.startswith(tags["fr"]))
    pack(archive, few | {last: few[last].replace(b"e", b"a", 1)})
    says = f"text of {tags['fr']} is not .* restore data/{folder.name} from"
    with pytest.raises(TextError, match=says):
        parallel.load(name, codes)
    archive.write_bytes(archive.read_bytes()[:-400])
    with pytest.raises(TextError, match="neither a folder nor a whole tar archive"):
        parallel.load(name, codes)
    archive.unlink()
    with pytest.raises(FileNotFoundError, match="no folder or archive"):
        parallel.load(name, codes)


def test_languages_of_shipped_corpora() -> None:
    with pytest.warns(CorpusWarning, match="52 sentences at 11 of 960 positions"):
        corpus = parallel.load("wmt24pp")
    assert corpus.languages == ABX
    assert len(set(corpus.ids)) == len(corpus) == 960
    with pytest.warns(CorpusWarning, match="1 sentences at 1 of 100.*tg, line 17"):
        flores = parallel.load("flores200-100")
    assert (len(flores.languages), len(flores), flores.licence) == (203, 100, "CC BY-SA 4.0")
    assert sum(0x2D30 <= ord(c) <= 0x2D7F for c in flores.sentences["zgh"][0]) > 50
    devtest = parallel.load("flores200-devtest")
    assert (devtest.languages, len(devtest), devtest.licence) == (ABX, 1012, "CC BY-SA 4.0")
    assert all(devtest.sentences[x][:100] == flores.sentences[x] for x in ABX)
    tags = parallel.tags("flores200-100")
    assert list(tags) == sorted(tags)
    assert all(tags[code] == language.flores for code, language in LANGUAGES.items())
    assert {code for code in tags if "_" in code} == {
        *("ace_Arab", "ace_Latn", "bjn_Arab", "bjn_Latn", "kr_Arab", "kr_Latn"),
        *("ks_Arab", "ks_Deva", "min_Arab", "min_Latn", "taq_Latn", "taq_Tfng"),
        *("ar_Latn", "fa_Arab_AF", "zh_Hant"),
    }
    with pytest.raises(FileNotFoundError, match="no corpus 'wmt'"):
        parallel.tags("wmt")
    with pytest.raises(TextError, match="no text in yue_Hant, ace"):
        parallel.load("flores200-100", ["yue_Hant", "ace", "en"])


def test_verses_are_those_that_all_languages_have() -> None:
    held_out = parallel.load(HELD_OUT)  # without a warning, which would be an error
    assert (len(held_out), len(held_out.languages)) == (431, 21)
    assert tuple(dict.fromkeys(held_out.domains)) == HELD_OUT_BOOKS
    assert held_out.domains == tuple(verse.split(".")[0] for verse in held_out.ids)
    pair = parallel.load(HELD_OUT, ["sv", "da"])
    assert set(pair.ids) - set(held_out.ids) == {"3John.1.15"}
    assert "Hils Vennerne" in pair.sentences["da"][pair.ids.index("3John.1.15")]
    with pytest.raises(TextError, match="new-testament-held-out has no text in zh; it has cs"):
        parallel.load(HELD_OUT, ["en", "zh"])
