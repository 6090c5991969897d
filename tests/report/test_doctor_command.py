"""`xlx doctor`: no false alarm on healthy folders, and what others read silently is named."""

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from tests import tiny
from tests.subjects.test_battery import TEXT
from tests.subjects.test_own_vectors import LAYOUTS, build, write
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
    code, output = command.main(["doctor", *map(str, given)]), {}
    for line in capsys.readouterr().out.splitlines():
        state, _, rest = line.partition(" ")
        output.setdefault(state, []).append(rest.strip())
    return code, output


#: What a healthy tokenizer keeps, or gives in bytes; the last signs have a compatible form.
KEPT = "СЪЕШЬ ÉTÉ İğne\n天気 가나 हिन्दी क़\nni 👩‍💻 ᚠᚢᚦ e\u0301 \u200bx\u00ad\nｆｕｌｌ ½ …\n"


# The class of Qwen 2 reads bytes, whatever its folder says, and the folder has not all of them.
@pytest.mark.parametrize("architecture", [x for x in tiny.BATTERY if x != "qwen2"])
def test_no_false_alarm_on_healthy_folders(
    architecture: str, tmp_path: Path, text: Path, capsys: pytest.CaptureFixture
) -> None:
    model = tiny.save(tmp_path / "model", architecture, spread=2.0)
    for file in text.iterdir():
        file.write_text(file.read_text(encoding="utf-8") + KEPT, encoding="utf-8")
    code, output = examined(capsys, model, "--text", text)
    assert (code, set(output)) == (0, {"ok"}), output
    assert any(x.startswith(f"kind: {tiny.BATTERY[architecture]}, 2 layers") for x in output["ok"])


@pytest.mark.parametrize(
    ("normalizer", "decoder", "without", "noted"),
    [
        (normalizers.Prepend("e"), None, "", {}),  # no decoder: what it keeps cannot be seen
        (
            normalizers.BertNormalizer(),
            decoders.Fuse(),
            "",
            {"en": "100% of sentences altered (I, T, W, Y)", "de": "100% of sentences altered ("},
        ),
        (normalizers.Replace("ö", ""), decoders.Fuse(), "", {"de": "25% of sentences altered (ö)"}),
        (None, decoders.Fuse(), "e", {"de": "% of tokens unknown", "en": "% of tokens unknown"}),
    ],
)
def test_a_text_that_is_read_otherwise_is_named_by_language(
    normalizer: object,
    decoder: object,
    without: str,
    noted: dict[str, str],
    tmp_path: Path,
    text: Path,
    capsys: pytest.CaptureFixture,
) -> None:
    written = "".join(file.read_text(encoding="utf-8") for file in text.iterdir())
    signs = ["[UNK]", *sorted({*written, *written.lower()} - {*without})]
    raw = Tokenizer(models.WordLevel({x: i for i, x in enumerate(signs)}, "[UNK]"))
    raw.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    raw.normalizer, raw.decoder = normalizer or raw.normalizer, decoder or raw.decoder
    model = tiny.save(tmp_path / "model", "bert", spread=2.0)
    PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="[UNK]").save_pretrained(model)
    code, output = examined(capsys, model, "--text", text)
    notes = {x[8:10]: x for x in output.get("note", []) if x.startswith("text in ")}
    assert (code, set(notes)) == (0, set(noted)), output
    assert all(part in notes[language] for language, part in noted.items()), notes


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["bert", "gpt2", "xlm-roberta"])
def test_control_tokens_in_a_text_are_counted_by_language(
    kind: str, seed: int, tmp_path: Path, text: Path, capsys: pytest.CaptureFixture
) -> None:
    rng = np.random.default_rng(seed)
    model = tiny.save(tmp_path / "model", kind, spread=2.0)
    words = AutoTokenizer.from_pretrained(model)
    control = sorted({*words.all_special_tokens} - {words.unk_token})
    lines = (text / "de.txt").read_text(encoding="utf-8").splitlines()
    for i in (changed := rng.choice(len(lines), rng.integers(1, len(lines)), replace=False)):
        place = rng.integers(len(lines[i]) + 1)
        lines[i] = f"{lines[i][:place]} {rng.choice(control)} {lines[i][place:]}"
    (text / "de.txt").write_text("\n".join(lines), encoding="utf-8")
    _, output = examined(capsys, model, "--text", text)
    (note,) = (x for x in output["note"] if "control tokens" in x)
    assert note.startswith("text in de: ")
    assert f"control tokens in {len(changed)} of {len(lines)} sentences" in note


@pytest.mark.parametrize("layout", LAYOUTS)
def test_declared_vectors_are_found(
    layout: str, tmp_path: Path, text: Path, capsys: pytest.CaptureFixture
) -> None:
    model = build(tmp_path / "model", layout)
    code, output = examined(capsys, model, "--text", text)
    assert code == 0
    assert any("encode of sentence-transformers" in x and "modules.json" in x for x in output["ok"])
    notes = [x for x in output.get("note", []) if "nothing is left" not in x]
    assert any("of sentences altered" in x for x in notes) == (layout == "lower case")


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
        scores = {"xnli_" + code: {"acc,none": 0.4}}
        write(results / f"{code}.json", {"model_name": str(model), "results": scores})
    write(results / "other.json", {"results": {"hellaswag": {"acc,none": 0.4}}})
    (results / "own.csv").write_text(f"task,model,language,score\nQA,{model},de,0.5\n")
    (results / "foreign.csv").write_text("a,b\n1,2\n")
    code, output = examined(capsys, model, "--text", text, "--tasks", results)
    assert code == 0
    noted = " | ".join(output["note"])
    for part in (
        "config.json names JinaBertModel, read as BertModel",
        "the pooling attention",
        "scores: foreign.csv, other.json not counted: ",
    ):
        assert part in noted, noted
    lines = [
        "QA in 1 languages, of 1 files",
        "xnli in 2 languages, of 2 files",
        f"3 are of {model}",
    ]
    assert [x for x in output["ok"] if x.startswith("scores")] == [f"scores: {x}" for x in lines]
    (model / "1_Pooling" / "config.json").write_text('{"pooling_mode": "cls"}')
    _, output = examined(capsys, model, "--text", text, "--pooling", "cls")
    assert "layers where nothing is left without a language's mean: 0" in output["note"]


@pytest.mark.parametrize(
    ("change", "given", "code", "says"),
    [
        ({"auto_map": {"AutoModel": "x/y--modeling_bert.JinaBertModel"}}, [], 1, "as JinaBert"),
        ({"num_hidden_layers": 1}, [], 1, "further layers"),
        ({}, ["--languages", "en"], 1, "alone, and"),
        ({}, ["--tasks", "no.csv"], 1, "no.csv"),
        ({}, ["--pooling", "weighted_mode"], 2, "--pooling 'weighted_mode'"),
        ({}, ["--task", "no.csv"], 2, "no option --task: do you mean --tasks?"),
    ],
)
def test_what_cannot_be_used_is_a_problem(
    change: dict,
    given: list[str],
    code: int,
    says: str,
    tmp_path: Path,
    text: Path,
    capsys: pytest.CaptureFixture,
) -> None:
    model = tiny.save(tmp_path / "model", "bert")
    tiny.edit_json(model / "config.json", **change)
    assert command.main(["doctor", str(model), "--text", str(text), *given]) == code
    output = capsys.readouterr()
    assert says in output.out + output.err
    assert output.out.count("problem ") == (code == 1)
