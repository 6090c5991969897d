"""What data/ ships, by its catalogue: whole, unchanged, listed, with its licence."""

from pathlib import Path

import pytest

from xlx.results import paths
from xlx.text.files import TextError, catalogue, contents
from xlx.text.labelled import load_labelled
from xlx.text.questions import load_questions
from xlx.text.trees import load_trees

#: Kind → a call, the file that it reads, and the most bytes of the folder.
KINDS = {
    "labelled": (lambda: load_labelled("POS", "de", "test"), "ud/de.conllu.xz", 16_100_000),
    "questions": (lambda: load_questions("xquad", "de"), "xquad/de.json.xz", 2_100_000),
    "trees": (lambda: load_trees("de"), "ud/de.conllu.xz", 4_500_000),
}


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
    assert set(files) == {*table["file"], *licences, "make.py", "sources.tsv", "README.md"}
    assert sum(file.stat().st_size for file in files.values()) < KINDS[kind][2]
    readme = files["README.md"].read_text(encoding="utf-8")
    for row in table.to_dict("records"):
        assert contents(kind, row)
        assert row["made_from"]
        assert row["url"]
        assert row["licence"].split(" (")[0] in readme
        if kind == "trees":
            assert (paths.DATA / row["licence_file"]).is_file()
