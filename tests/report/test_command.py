"""The command: what it writes, takes up again and refuses."""

import html
import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

import xlx
from tests import tiny
from tests.report.conftest import LANGUAGES, N, Written
from xlx.experiment.scoring import BAG, LENGTH_ALONE, Subject, subject_scores
from xlx.report import command, options, report_command
from xlx.report.inputs import (
    QUICK_LANGUAGES,
    comparable_text,
    quick_languages,
    reported_model,
    reported_models,
    reported_text,
)
from xlx.results import paths
from xlx.subjects import folders, identity, loading, states
from xlx.text.parallel import ParallelCorpus

LAST_STEP = str(identity.checkpoints("mini-infoxlm")[-1].path)
SMALL = ["--languages", "en,de", "--sentences", "12", "--reference", "none", "--no-notebook"]


def test_answers_are_rows_of_the_tables(written: Written) -> None:
    assert list(written.output["languages"]) == list(LANGUAGES)
    assert (written.output["sentences"], written.output["pivot"]) == (N, "en")
    for answer in written.output["answers"]:
        table = written.tables[answer["table"]]
        ours = table[table["model"] == answer["model"]]
        if answer["low"] is None:
            assert answer["value"] == ours["unknown"].max()
            continue
        if answer["table"] == "retrieval":  # the mean over pairs has an interval of its own
            ours = written.tables["layers"]
        values = {"coverage": "mu", "references": "difference"}
        value = values.get(answer["table"], "score")
        ends = ours[[value, "low", "high"]].itertuples(index=False, name=None)
        assert (answer["value"], answer["low"], answer["high"]) in set(ends)
        shown = f"{answer['value']:.2f} ({answer['low']:.2f} to {answer['high']:.2f})"
        assert shown.replace("-", "−") in answer["sentence"]


def test_a_second_run_computes_nothing(
    tmp_path: Path, shown: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, out = tiny.save(tmp_path / "own", "xlm-roberta"), tmp_path / "out"
    (ours / "1_Pooling").mkdir()  # whose embedding layer says nothing of a sentence
    (ours / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    given = ["report", ours, *SMALL, "--out", out]
    output = shown(*given, "--estimate")
    assert "12 sentences of wmt24pp in 2 languages" in output
    assert "GB of memory" in output
    assert not out.exists()
    shown(*given)
    output, tables = json.loads((out / "report.json").read_text()), out / "tables"
    layers = pd.read_parquet(tables / "layers.parquet")
    lost = layers[layers["score"].isna()]
    assert {*zip(lost["space"], lost["layer"], strict=True)} == {("centred", 0)}
    assert output["notes"][-1].startswith("own: centred scores are not defined at layer 0: all")
    assert output["models"]["own"]["vector"] == "cls of tokens, special ones too"
    first = (tables / "layers.csv").read_bytes()
    references = pd.read_parquet(tables / "references.parquet")
    assert set(references["reference"]) == {BAG, LENGTH_ALONE}  # and no untrained one
    monkeypatch.setattr(states, "hidden_states", lambda *_: pytest.fail("a model reads again"))
    monkeypatch.setattr(options, "estimate", lambda *_: "not long")
    shown(*given)
    assert (tables / "layers.csv").read_bytes() == first


def test_a_stop_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(report_command, "report_tables", stopped)
    assert command.main(["report", "mini-infoxlm", *SMALL]) == 130
    assert "goes on from here" in capsys.readouterr().err


def test_a_model_is_read_as_the_options_say(tmp_path: Path, shown: Callable[..., str]) -> None:
    name = "<img src=x onerror=a()>'\" & ${title}"
    folder, out = tiny.save(tmp_path / name), tmp_path / "out"
    given = ["report", folder, *SMALL, "--pooling", "last", "--special-tokens"]
    shown(*given, "--token-budget", 200, "--out", out)
    output = json.loads((out / "report.json").read_text())
    assert output["models"][name]["vector"] == "last of tokens, special ones too, as asked"
    text, _ = reported_text("wmt24pp", ["en", "de"], 12)
    options = {"pooling": "last", "special_tokens": True}
    (scored,) = subject_scores([Subject(str(folder), options | {"max_length": None})], text, ["LD"])
    layers = pd.read_parquet(out / "tables" / "layers.parquet").query("space == 'raw'")
    by_layer = layers.query("task == 'LD'").set_index("layer")["score"]
    expected = scored.table().groupby("layer")["score"].mean()
    assert by_layer.to_dict() == pytest.approx(expected.to_dict())
    page = (out / "report.html").read_text(encoding="utf-8")
    assert f"<h1>What {html.escape(name)} shares across languages</h1>" in page
    assert "<img src=x" not in page


@pytest.mark.parametrize("units", [True, False])
def test_the_fastest_arithmetic_names_itself(
    units: bool, tmp_path: Path, shown: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: units)
    folder, out = tiny.save(tmp_path / "model"), tmp_path / "out"
    shown("report", folder, *SMALL, "--device", "cpu", "--dtype", "auto", "--out", out)
    dtype = "bfloat16" if units else "float32"
    assert json.loads((out / "report.json").read_text())["dtype"] == dtype
    assert f" in {dtype}, " in (out / "report.html").read_text(encoding="utf-8")


def test_models_have_names_of_their_own(tmp_path: Path) -> None:
    ours = tiny.save(tmp_path / "mini-xlmr")
    (model,), (namesake, other) = reported_models([str(ours)], ["mini-xlmr", "mini-infoxlm"])
    assert model.label == f"mini-xlmr ({model.fingerprint[:6]})"
    assert namesake.label == f"mini-xlmr ({namesake.fingerprint[:6]})"
    assert other.label == "mini-infoxlm"
    usual = reported_models(["mini-llama", "mini-xlmr"])[1]
    assert [other.label for other in usual] == ["mini-infoxlm"]  # itself is none
    night = tiny.save(tmp_path / "night" / "checkpoint-500", seed=1)
    assert reported_model(str(night)).label == "night/checkpoint-500"


def test_a_model_of_others_is_loaded_once(
    tmp_path: Path, shown: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, load_model = [], folders.load_model

    def counted(label: str, *rest: object) -> tuple:
        loaded.append(label)
        return load_model(label, *rest)

    monkeypatch.setattr(folders, "load_model", counted)
    ours = str(tiny.save(tmp_path / "model", seed=7))
    shown("report", ours, *SMALL, "--reference", "none", "--out", tmp_path / "out")
    assert loaded == [ours]
    reported_models([ours, "mini-infoxlm"])  # where there are several none is held
    loading.load(ours)
    assert loaded == [ours] * 3


def test_names_of_files_are_of_one_name_each() -> None:
    names = ["bert", "a b", "a-b", "a  b", "---", "...", "ü/b", "x" * 300, "x" * 301, "\udce9"]
    files = [options.file_name(name) for name in names]
    assert files[0] == "bert"
    assert len({*files}) == len(names)
    assert all(re.fullmatch(r"[\w.+-]*\w", file) and len(file.encode()) < 200 for file in files)


@pytest.mark.parametrize("name", ["my models/bert", "a'b \"c", "$(touch x)", "plain"])
def test_make_report_takes_any_name_as_one(name: str) -> None:
    given = ["make", "-n", "report", f"MODEL={name.replace('$', '$$')}", "ARGS=--quick"]
    # `make test` hands its own options down to every make below it
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    ran = subprocess.run(
        given, cwd=paths.ROOT, env=clean, capture_output=True, text=True, check=True
    )
    line = ran.stdout.splitlines()[-1]
    shown = line.replace(re.search(r"\S+python -m \S+", line)[0], "printf '%s\\n'")
    printed = subprocess.run(["sh", "-c", shown], capture_output=True, text=True).stdout
    assert printed.splitlines() == ["report", name, "--quick"]


def test_one_s_own_folder_of_text_is_read(tmp_path: Path, corpus: ParallelCorpus) -> None:
    for code in ("de", "ja"):
        lines = "\n".join(corpus.sentences[code]) + "\n"
        (tmp_path / f"{code}.txt").write_text(lines, encoding="utf-8")
    text, notes = reported_text(str(tmp_path))
    assert (text.languages, len(text), notes) == (("de", "ja"), N, [])
    assert text.sentences["ja"] == corpus.sentences["ja"]


@pytest.mark.parametrize("seed", range(3))
def test_languages_without_two_sentences_of_like_length_are_left_out(
    tmp_path: Path, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    codes, n = ["en", "de", "fr", "fi", "tr"], 4
    apart = set(rng.choice(codes, rng.integers(1, 5), replace=False))
    for code in codes:  # 40 letters and up to 4 more, or ever twice as many
        lengths = [10 << i if code in apart else 40 + int(rng.integers(4)) for i in range(n)]
        lines = [f"{code[0]}{i}".ljust(length, "x") for i, length in enumerate(lengths)]
        (tmp_path / f"{code}.txt").write_text("\n".join(lines), encoding="utf-8")
    text, _ = reported_text(str(tmp_path))
    if len(apart) > len(codes) - 2:
        with pytest.raises(ValueError, match=r"there are no two in .*: give more"):
            comparable_text(text)
        return
    left, (note,) = comparable_text(text)
    assert set(left.languages) == {*codes} - apart
    assert set(note.split(": ")[1].split(", ")) == apart


def test_the_version_and_languages_by_name(shown: Callable[..., str]) -> None:
    assert shown("--version") == f"xlx {xlx.__version__}\n"
    named = ["--languages", "german, en,Hindi", "--pivot", "german", "--estimate"]
    output = shown("report", "mini-infoxlm", *SMALL, *named)
    assert "12 sentences of wmt24pp in 3 languages" in output


def test_what_cannot_be_is_said_in_a_sentence(refused: Callable[..., str]) -> None:
    for given, says in (
        (["no-such/model"], "no-such/model"),
        (["mini-infoxml"], "there is no model mini-infoxml: do you mean mini-infoxlm?"),
        (["mini-infoxlm", "--languages", "de"], "alone, and a report compares languages"),
        (["mini-infoxlm", "--sentences", "3"], "give more sentences"),
        (["mini-infoxlm", "--tasks", "no-such.csv", "other.csv"], "no-such.csv"),
        (["mini-infoxlm", "--refrence", "none"], "no option --refrence: do you mean --reference?"),
        (["mini-infoxlm", LAST_STEP], "are the same model: name it once"),
        (["mini-infoxlm", "--treebank", "x"], "--treebank is what --probe learns from"),
        (["mini-infoxlm", "--probe", "--treebank", "no/x"], "no/x has no folder of a language"),
    ):
        assert says in refused("report", *given[:1], *SMALL, *given[1:])


def test_what_cannot_be_written_is_said_before_anything_is_read(
    tmp_path: Path, refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(options, "tell_downloads", lambda *_: pytest.fail("began"))
    for name in ("report", "mexa", "mixing"):
        for out in (tmp_path / "file", tmp_path / "file" / "in"):
            line = refused(name, "mini-infoxlm", "--out", out)
            assert line.endswith(f"nothing can be written in {tmp_path / 'file'}: name a folder")


def test_what_is_larger_than_memory_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    small = SimpleNamespace(free_bytes=lambda device: 1e4)
    monkeypatch.setattr(options, "folders", small)
    assert command.main(["report", "mini-infoxlm", *SMALL]) == 2
    assert "the states of 12 sentences in 2 languages need" in capsys.readouterr().err
    monkeypatch.setattr(folders, "free_bytes", small.free_bytes)
    assert command.main(["report", "mini-infoxlm", *SMALL]) == 2
    assert "GB of weights in float32" in capsys.readouterr().err


def test_a_quick_report_is_of_few_languages_unless_they_are_named() -> None:
    text, _ = reported_text("wmt24pp")
    assert set(quick_languages(text)) == set(QUICK_LANGUAGES)
    assert quick_languages(text, "fi")[0] == "fi"
    other = text.select(["fi", "sv", "da", "en"])
    assert quick_languages(other) == ["en", "fi", "sv", "da"]


@pytest.mark.parametrize("written", ["[]", '{"models": null}', "{bad", "", "3"])
def test_a_file_of_another_program_is_not_written_over(tmp_path: Path, written: str) -> None:
    (tmp_path / "report.json").write_text(written)
    with pytest.raises(ValueError, match="holds another report"):
        report_command.check_free(tmp_path, {"models": ["m"], "text": "t"})
    assert (tmp_path / "report.json").read_text() == written


def test_a_number_that_is_none_is_null_in_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_command, "answers_of", lambda *_: [])
    monkeypatch.setattr(report_command, "report_page", lambda *_: "")
    report_command.write_report(tmp_path, {}, {"models": ["m"], "value": float("nan")})
    text = (tmp_path / "report.json").read_text()
    assert "NaN" not in text
    assert json.loads(text)["value"] is None
