"""What data/ ships of text: every file is the one on record, and results find it by its content.

What its rows must be was checked by the scripts that made the files.
"""

import hashlib
from pathlib import Path

import pandas as pd
import pytest

from xlx.results import paths
from xlx.text import parallel
from xlx.text.files import TextError, catalogue
from xlx.text.labelled import about_labelled, load_labelled
from xlx.text.questions import load_questions
from xlx.text.trees import Treebank, load_trees

#: Kind → a call, the file that it reads, and the most bytes of the folder.
KINDS = {
    "labelled": (lambda: load_labelled("POS", "de", "test"), "ud/de.conllu.xz", 16_100_000),
    "questions": (lambda: load_questions("xquad", "de"), "xquad/de.json.xz", 2_100_000),
    "trees": (lambda: load_trees("de"), "ud/de.conllu.xz", 4_500_000),
}
#: Beginnings of the SHA-256 of the archives. That no text to test on is in the pretraining text was
#: checked of these, by ``data/*/make.py``.
ARCHIVES = {
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
    with pytest.raises(TextError, match=r"de\.\w+\.xz is missing; restore"):
        load()
    file.write_bytes((original / name).read_bytes() + b"\0")
    with pytest.raises(TextError, match=r"not the file on record in sources\.tsv; restore"):
        load()
    (tmp_path / kind / "sources.tsv").write_text("source\tlanguage\nxquad\n", encoding="utf-8")
    with pytest.raises(TextError, match="line 2: 1 cells under a header of 2"):
        load()


@pytest.mark.parametrize("kind", KINDS)
def test_files_are_small_listed_and_on_record(kind: str) -> None:
    folder, table = paths.DATA / kind, catalogue(kind, whole=True)
    files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*.*")}
    files = {name: file for name, file in files.items() if "__pycache__" not in name}
    licences = set(table["licence_file"]) - {""} if kind == "labelled" else set()
    scripts = {"make.py", "parse_wiki.py"} & set(files)
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
    for name in ("flores200", "new_testament", "wmt24pp"):
        listed = (paths.DATA / "README.md").read_text(encoding="utf-8")
        assert f"`{name}/`" in listed
        readme = (paths.DATA / name / "README.md").read_text(encoding="utf-8")
        assert "icence" in readme


#: What stored results know a text by: beginnings of hashes.
CONTENT = {
    "wmt24pp": "676f0d341c60c863d35cb2ae8811e9294b02c45c",
    "flores200-100": "ce09ac183a9c078937af428d8892b63acc299d8a",
    "new-testament-held-out": "f76806868d3c793192eb5ccc659a08329ee00e10",
    "ud de train": "24f88aa996acc202c8dc8eeb1fb0fbe5378327bd",
    "ud de train, file": "1ab8778bfd315c7dd309de2b87070dd8ac72a6ef",
    "pud tr test": "eccd2c752c4248ba7a9cdf67f2501a1d5139c16b",
    "pud tr test, file": "729e855caf23397d9e692f701814e1523f774a77",
    "wikiann de test": "7aa94f0741684c9cd795a4e67be3984e130d6120",
    "wikiann de test, file": "6fb42b30f188377533dff90312c28b537c53b1fe",
    "uner sk validation": "7d386538001bcc6780d26869dca294c0170b95f9",
    "uner sk validation, file": "5b97785e2ed1c747df6134882b4a0d3cfa67636b",
    "xnli de train": "91244b987550e4fb5fbedc82e62dd310e7a3ec8a",
    "xnli de train, file": "e5289d922e580118fc18ad5ae4518663a169f73a",
    "xnli zh test": "0319d65b640ca82e7786dde4f7106a07ba5ab7fa",
    "xnli zh test, file": "a2e64fedb975e8430053f9a70cfdee6169420eaf",
    "xnli-dev tr train": "d94d3526072d6bafd664d436b1c020dec7bfdd61",
    "xnli-dev tr train, file": "b5f264c7e5df7cb9e186006039ccbca3c0c8e19e",
    "xnli-whole sw test": "442c4e4325b81fc68f7988f916d8e94092988111",
    "xnli-whole sw test, file": "8c188d22fafae97db1484e2e587e09c64b0b3293",
    "sick ja test": "6bf66f7b80e3228fbcb2f56edd9f40d6a7eb664e",
    "sick ja test, file": "07b5761c7a6c30613e9a18bea0fbd350ea96c197",
    "pawsx ko test": "d0c759cf62a223c081acd9a2ab53750d5239bbd4",
    "pawsx ko test, file": "7bd9bc4d90efec684fd85d9627d993c86526eee6",
    "sib200 en train": "0fc7fd45339025dab54ec6d03abb2bf71c82ce88",
    "sib200 en train, file": "88186982db8b8581492a90522b479a9b7979e16e",
    "sib200 ar_Latn test": "1c6e0456827fd458a894202535b6faf801dbd12f",
    "sib200 ar_Latn test, file": "335003a2841368b3a89fe7186d2815aa904f4bac",
    "xquad th test": "54cde8dc94b136986ecb338678793d78de0522fa",
    "tydiqa en train": "8a9b5fbc7a1dcb13055d3dbb62398ebd47166769",
    "tydiqa en validation": "737e68c476cff3e67affac25dd49ade6fcf621f0",
    "tydiqa-whole en train": "037fb08ee5fe6a71fb9c4bb10b6bcc152914178a",
    "trees": "988ce2e932acc8755e66d79e1f4dcd39c3baa018",
}


@pytest.mark.filterwarnings("ignore::xlx.text.parallel.CorpusWarning")
def test_results_find_text_by_what_it_was() -> None:
    """A part of every source, as it was when the results were computed."""
    made = {}
    for name in ("wmt24pp", "flores200-100", "new-testament-held-out"):
        corpus = parallel.load(name)
        hashes = "".join(corpus.text_hash(code) for code in corpus.languages)
        made[name] = hashlib.sha256(hashes.encode()).hexdigest()
    for task, source, language, split in (
        *(("POS", "ud", "de", "train"), ("POS", "pud", "tr", "test")),
        *(("NER", "wikiann", "de", "test"), ("NER", "uner", "sk", "validation")),
        *(("NLI", "xnli", "de", "train"), ("NLI", "xnli", "zh", "test")),
        *(("NLI", "xnli-dev", "tr", "train"), ("NLI", "xnli-whole", "sw", "test")),
        *(("NLI", "sick", "ja", "test"), ("PI", "pawsx", "ko", "test")),
        *(("TOPIC", "sib200", "en", "train"), ("TOPIC", "sib200", "ar_Latn", "test")),
    ):
        part = load_labelled(task, language, split, source=source)
        made[f"{source} {language} {split}"] = part.table_hash()
        about = about_labelled(task, language, split, source=source)
        made[f"{source} {language} {split}, file"] = about["file"]
    for source, language, split in (
        *(("xquad", "th", "test"), ("tydiqa", "en", "train")),
        *(("tydiqa", "en", "validation"), ("tydiqa-whole", "en", "train")),
    ):
        made[f"{source} {language} {split}"] = load_questions(source, language, split).text_hash()
    made["trees"] = Treebank("hi", "pud").about["files"][""]
    assert {name: digest[:40] for name, digest in made.items()} == CONTENT


def test_the_table_lists_what_the_readme_says() -> None:
    table = catalogue("labelled", whole=True)
    assert table.groupby("source")["language"].nunique().to_dict() == {
        **{"ud": 36, "pud": 18, "wikiann": 26, "uner": 5, "xnli": 13, "xnli-dev": 6, "sick": 5},
        **{"pawsx": 7, "sib200": 205, "xnli-whole": 15},
    }
    # What goes over all that is shipped does not meet the same text under two sources.
    assert set(table["source"]) - set(catalogue("labelled")["source"]) == {"xnli-whole"}
    readme = (paths.DATA / "labelled" / "README.md").read_text(encoding="utf-8")
    assert all(treebank in readme for treebank in table["treebank"])
    restricted = table[(table["source"] == "ud") & table["licence"].str.contains("NC")]["language"]
    assert " ".join(restricted) == "ar bg el et he hi hu it tr uk ur"
    counts = pd.concat([catalogue(kind, whole=True) for kind in KINDS]).select_dtypes("number")
    assert (counts.sum() > 0).drop("repaired").all()
