"""`xlx doctor`: no false alarm on healthy folders, and what others read silently is named."""

from pathlib import Path

import pytest

from tests import tiny
from tests.models.test_battery import TEXT
from tests.models.test_own_vectors import LAYOUTS, build, write
from xlx.report import command


@pytest.fixture
def text(tmp_path: Path) -> Path:
    folder = tmp_path / "text"
    folder.mkdir()
    for code in ("en", "de"):
        lines = [*TEXT[code], *(f"{line} 2" for line in TEXT[code][:3])]
        (folder / f"{code}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def examined(capsys: pytest.CaptureFixture, *given: object) -> tuple[int, dict[str, list[str]]]:
    """The code, and what is said by the first word of its line."""
    code, said = command.main(["doctor", *map(str, given)]), {}
    for line in capsys.readouterr().out.splitlines():
        state, _, rest = line.partition(" ")
        said.setdefault(state, []).append(rest.strip())
    return code, said


@pytest.mark.parametrize("architecture", tiny.BATTERY)
def test_no_false_alarm_on_healthy_folders(
    architecture: str, tmp_path: Path, text: Path, capsys: pytest.CaptureFixture
) -> None:
    model = tiny.save(tmp_path / "model", architecture, spread=2.0)
    code, said = examined(capsys, model, "--text", text)
    assert (code, set(said)) == (0, {"ok"}), said
    assert any(x.startswith(f"kind: {tiny.BATTERY[architecture]}, 2 layers") for x in said["ok"])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_declared_vectors_are_found(
    layout: str, tmp_path: Path, text: Path, capsys: pytest.CaptureFixture
) -> None:
    model = build(tmp_path / "model", layout)
    code, said = examined(capsys, model, "--text", text)
    assert code == 0
    assert any("encode of sentence-transformers" in x and "modules.json" in x for x in said["ok"])
    notes = [x.partition(":")[0] for x in said.get("note", [])]
    assert set(notes) <= {"layers where nothing is left without a language's mean", "sentences cut"}


def test_what_is_read_otherwise_is_named(
    tmp_path: Path, text: Path, capsys: pytest.CaptureFixture
) -> None:
    model = build(tmp_path / "model", "two poolings, dense")
    write(model / "1_Pooling" / "config.json", {"pooling_mode": "attention"})
    tiny.edit_json(model / "config.json", architectures=["JinaBertModel"])
    runes = "".join(f"{'ᚠᚢᚦ' * (i + 1)}\n" for i in range(8))
    (text / "got.txt").write_text(runes, encoding="utf-8")
    results = tmp_path / "results"
    results.mkdir()
    scores = {"model_name": str(model), "results": {"belebele_deu_Latn": {"acc,none": 0.4}}}
    write(results / "good.json", scores)
    write(results / "other.json", {"results": {"hellaswag": {"acc,none": 0.4}}})
    code, said = examined(capsys, model, "--text", text, "--tasks", results)
    assert code == 0
    noted = " | ".join(said["note"])
    for part in ("config.json names JinaBertModel, read as BertModel", "the pooling attention",
                 "other.json does not count: "):  # fmt: skip
        assert part in noted, noted
    assert "scores: good.json counts: Belebele in 1 languages" in said["ok"]
    assert f"scores: 1 are of {model}" in said["ok"]
    (model / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')
    _, said = examined(capsys, model, "--text", text, "--pooling", "cls")
    assert "layers where nothing is left without a language's mean: 0" in said["note"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"auto_map": {"AutoModel": "x/y--modeling_bert.JinaBertModel"}}, "trained as JinaBert"),
        ({"model_type": "no-such"}, "no-such"),
        ({"num_hidden_layers": 1}, "further layers"),
    ],
)
def test_a_folder_that_cannot_be_used_is_a_problem(
    change: dict, says: str, tmp_path: Path, text: Path, capsys: pytest.CaptureFixture
) -> None:
    model = tiny.save(tmp_path / "model", "bert")
    tiny.edit_json(model / "config.json", **change)
    code, said = examined(capsys, model, "--text", text)
    assert code == 1
    (problem,) = said["problem"]
    assert says in problem


@pytest.mark.parametrize(
    ("given", "code", "says"),
    [
        (["--text", "no/folder"], 1, "no/folder"),
        (["--languages", "en"], 1, "alone, and"),
        (["--tasks", "no.csv"], 1, "no.csv"),
        (["--pooling", "cls"], 1, "pooling 'cls'"),
        (["--task", "no.csv"], 2, "no option --task: do you mean --tasks?"),
    ],
)
def test_refusals(
    given: list[str], code: int, says: str, tmp_path: Path, text: Path,
    capsys: pytest.CaptureFixture,
) -> None:  # fmt: skip
    model = tiny.save(tmp_path / "model", "llama")
    assert command.main(["doctor", str(model), "--text", str(text), *given]) == code
    said = capsys.readouterr()
    assert says in said.out + said.err
