"""`xlx doctor`: no false alarm on healthy folders, and what others read silently is named."""

from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from tests import tiny
from tests.models.test_battery import TEXT
from tests.models.test_own_vectors import LAYOUTS, build, write
from xlx.report import command, doctor_command


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


#: What a healthy tokenizer keeps, or gives in bytes; the last signs have a compatible form.
KEPT = (
    "Übung, СЪЕШЬ ÉTÉ İğne Ξένος",
    "天気がいい。 가나다 हिन्दी क़",
    "ni 👩‍💻 ᚠᚢᚦ e\u0301 \u200bx\u00ad",
    "ｆｕｌｌ ½ …",
)


@pytest.mark.parametrize("architecture", [x for x in tiny.BATTERY if x != "qwen2"])
def test_no_false_alarm_on_healthy_folders(
    architecture: str, tmp_path: Path, text: Path, capsys: pytest.CaptureFixture
) -> None:
    model = tiny.save(tmp_path / "model", architecture, spread=2.0)
    for file in text.iterdir():
        kept = file.read_text(encoding="utf-8")
        file.write_text(kept + "\n".join(KEPT) + "\n", encoding="utf-8")
    code, said = examined(capsys, model, "--text", text)
    assert (code, set(said)) == (0, {"ok"}), said
    assert any(x.startswith("text: 2 of 2 languages are read as written") for x in said["ok"])
    (once,) = (x for x in said["ok"] if "some signs are normalised in de, en" in x)
    assert once.endswith(": ½, …, ｆ, ｌ, ｕ"), once
    assert any(x.startswith(f"kind: {tiny.BATTERY[architecture]}, 2 layers") for x in said["ok"])


def test_letters_that_a_vocabulary_lacks_are_named(
    tmp_path: Path, text: Path, capsys: pytest.CaptureFixture
) -> None:
    """The class of Qwen 2 reads bytes, whatever its folder says, and drops those it has not."""
    model = tiny.save(tmp_path / "model", "qwen2", spread=2.0)
    _, said = examined(capsys, model, "--text", text)
    assert any(x.startswith("text in de: ") and x.endswith("ö)") for x in said["note"]), said


LOWER, BARE = "read in lower case", "read without accents and marks"


@pytest.mark.parametrize(
    ("sentence", "decoded", "found"),
    [
        ("Ein  Haus \u200b", "Ein Haus", {}),
        ("e\u0301 가", "é \u1100\u1161", {}),
        ("ÉTÉ Haus", "ete haus", {LOWER: "HTÉ", BARE: "É"}),
        ("İĞ", "ig", {LOWER: "ĞİI", BARE: "Ğİ"}),
        ("हिंदु が", "हिद か", {BARE: "ंुが"}),
        ("Ａ…½", "a...1⁄2", {"normalised": "½…Ａ", LOWER: "Ａ"}),
        ("می\u200cشود", "می شود", {"normalised": "\u200c"}),
        ("3 € ok", "3 ok", {"with characters lost": "€"}),
    ],
)
def test_what_a_tokenizer_did_to_characters(
    sentence: str, decoded: str, found: dict[str, str]
) -> None:
    assert {x: {*y} for x, y in doctor_command.alterations(sentence, decoded).items()} == {
        x: {*y} - {"I"} for x, y in found.items()
    }
    assert doctor_command.alterations("Où 3 €", "Où", unknown=True) == {}


BYTES, APART = (
    pre_tokenizers.ByteLevel(add_prefix_space=False),
    pre_tokenizers.Split("", "isolated"),
)


@pytest.mark.parametrize(
    ("normalizer", "split", "without", "en", "de"),
    [
        (None, APART, "", None, None),
        (None, BYTES, "", None, None),  # no decoder: what it keeps cannot be seen
        (normalizers.Lowercase(), APART, "", f"100% of sentences {LOWER} (", "(D, I, J, S, W)"),
        (normalizers.BertNormalizer(lowercase=False, strip_accents=True), APART, "",
         None, f"25% of sentences {BARE} (ö)"),
        (normalizers.Replace("ö", ""), APART, "", None, "25% of sentences with characters"),
        (None, APART, "e", "% of tokens unknown", "% of tokens unknown"),
    ],
)  # fmt: skip
def test_a_tokenizer_that_reads_otherwise_is_named_by_language(
    normalizer: object, split: object, without: str, en: str | None, de: str | None,
    tmp_path: Path, text: Path, capsys: pytest.CaptureFixture,
) -> None:  # fmt: skip
    signs = {x for file in text.iterdir() for x in file.read_text(encoding="utf-8")}
    signs = sorted({*signs, *"".join(signs).lower(), *BYTES.alphabet()} - {*without})
    raw = Tokenizer(
        models.WordLevel(dict(zip(["[UNK]", *signs], range(384), strict=False)), "[UNK]")
    )
    raw.pre_tokenizer = pre_tokenizers.Sequence([split, APART])
    raw.decoder = decoders.Fuse() if split is APART else raw.decoder
    raw.normalizer = normalizer or raw.normalizer
    model = tiny.save(tmp_path / "model", "bert", spread=2.0)
    PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="[UNK]").save_pretrained(model)
    code, said = examined(capsys, model, "--text", text)
    noted = {x[8:10]: x for x in said.get("note", []) if x.startswith("text in ")}
    assert (code, set(noted)) == (0, {x for x, y in {"en": en, "de": de}.items() if y})
    for language, part in {"en": en, "de": de}.items():
        assert not part or part in noted[language], noted


@pytest.mark.parametrize("layout", LAYOUTS)
def test_declared_vectors_are_found(
    layout: str, tmp_path: Path, text: Path, capsys: pytest.CaptureFixture
) -> None:
    model = build(tmp_path / "model", layout)
    code, said = examined(capsys, model, "--text", text)
    assert code == 0
    assert any("encode of sentence-transformers" in x and "modules.json" in x for x in said["ok"])
    notes = [x for x in said.get("note", []) if "nothing is left" not in x]
    assert all("of sentences cut" in x or "are read as written" in x for x in notes) or (
        layout == "lower case"
    )
    assert any(LOWER in x for x in notes) == (layout == "lower case")


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
    for code in ("de", "fr"):  # a file a language, and another one
        found = {"xnli_" + code: {"acc,none": 0.4}}
        write(results / f"{code}.json", {"model_name": str(model), "results": found})
    write(results / "other.json", {"results": {"hellaswag": {"acc,none": 0.4}}})
    (results / "own.csv").write_text(f"task,model,language,score\nQA,{model},de,0.5\n")
    (results / "foreign.csv").write_text("a,b\n1,2\n")
    code, said = examined(capsys, model, "--text", text, "--tasks", results)
    assert code == 0
    noted = " | ".join(said["note"])
    for part in ("config.json names JinaBertModel, read as BertModel", "the pooling attention",
                 "scores: foreign.csv, other.json not counted: "):  # fmt: skip
        assert part in noted, noted
    told = ["QA in 1 languages, of 1 files", "xnli in 2 languages, of 2 files", f"3 are of {model}"]
    assert [x for x in said["ok"] if x.startswith("scores")] == [f"scores: {x}" for x in told]
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
