"""`xlx igap`: its rows against the library's, what is stored, what it refuses."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests import tiny
from tests.experiment.test_transfers import made
from xlx.experiment.transfers import Transfers, TransferTask, shared_subwords
from xlx.measures.igap import MEAN_TARGET
from xlx.report import igap_command
from xlx.subjects import finetuning

CODES = ("en", "de", "ja")


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A tiny model, and a task of twelve sentences in place of the shipped one."""
    parts = (
        {code: made(code, part, n) for code in CODES} for part, n in (("train", 12), ("test", 8))
    )
    task = TransferTask("made", *parts, {})
    monkeypatch.setattr(igap_command, "labelled_task", lambda *_, **__: task)
    return str(tiny.save(tmp_path / "tiny", "xlm-roberta"))


def test_rows_are_those_of_the_library(
    model: str, tmp_path: Path, shown: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    line = f"igap {model} --languages german,ja --epochs 60 --lr 0.003 --dtype tf32 --seeds 2"
    given = [*line.split(), "--out", str(tmp_path / "out")]
    assert "computing 4 runs" in shown(*given, "--estimate")
    assert not (tmp_path / "out").exists()
    asked = []
    tune = finetuning.finetune_all
    monkeypatch.setattr(finetuning, "finetune_all", lambda jobs: asked.append(jobs) or tune(jobs))
    output = shown(*given)
    rows = pd.read_csv(tmp_path / "out" / "igap.csv").set_index(["subject", "target"])
    (jobs,) = asked
    recipes = [(job.model == model, job.recipe.learning_rate, job.recipe.dtype) for job in jobs]
    assert recipes == [(True, 0.003, "tf32")] * 2 + [(False, 3e-4, "tf32")] * 2
    task = igap_command.labelled_task()
    transfers = Transfers(task, tuple(tune(jobs[:2])))
    ours, gaps = rows.loc["tiny"], transfers.gap_table().loc["en"]
    columns = ["value", "low", "high", "kept", "kept_low", "kept_high"]
    targets = ["de", "ja", MEAN_TARGET]
    np.testing.assert_allclose(
        ours.loc[targets, igap_command._ENDS], gaps.loc[targets, columns], atol=1e-4
    )
    for code in CODES:
        gold = task.test[code].labels
        right = [(run.predictions[f"test {code}"][-1] == gold).mean() for run in transfers.runs]
        assert ours.loc[code, "accuracy"] == pytest.approx(np.mean(right), abs=1e-4)
    assert not any("printed" in subject for subject, _ in rows.index)  # of another task
    shared = shared_subwords(model, task, ["en"])["interlingual"].mean()
    means = rows.xs(MEAN_TARGET, level="target")
    assert means.loc["shared subwords", "igap"] == pytest.approx(shared, abs=1e-4)
    assert means.loc["one label", ["igap", "kept", "accuracy"]].tolist() == [0.5, 0, 0.5]
    page = (tmp_path / "out" / "igap.html").read_text(encoding="utf-8")
    assert all(line in page for line in output.splitlines()[2:6])
    assert "nothing is computed" in shown(*given, "--estimate")


def test_printed_rows_are_those_of_the_nearest_table(model: str) -> None:
    for name, stem, guess in (("NLI", "table6_igap_xnli", 2 / 3), ("PI", "table7_igap_pawsx", 0.5)):
        made_task = igap_command.labelled_task()
        task = TransferTask(name, made_task.train, made_task.test, {})
        rows = igap_command.beside(task, "en", model).set_index(["subject", "target"])
        table = pd.read_csv(f"data/published/igap/{stem}.csv")
        table = table[(table["model"] == "XLM-R") & (table["target_language"] == "avg")]
        value = table.set_index("quantity")["value"] / 100
        ours = rows.loc[("printed, XLM-R", MEAN_TARGET)]
        assert ours["igap"] == pytest.approx(value["IGap"])
        assert ours["accuracy"] == pytest.approx(value["test_acc"])
        assert ours["kept"] == pytest.approx(1 - value["IGap"] / guess)


def test_what_does_not_learn_has_no_igap(
    model: str, tmp_path: Path, refused: Callable[..., str]
) -> None:
    output = refused("igap", model, "--epochs", 1, "--lr", "1e-9", "--out", tmp_path / "out")
    assert "IGAP of tiny is not defined" in output
    assert "more --epochs" in output
    assert not (tmp_path / "out").exists()


def test_what_cannot_be_is_said_in_a_sentence(tmp_path: Path, refused: Callable[..., str]) -> None:
    encoder = str(tiny.save(tmp_path / "tiny", "xlm-roberta"))
    decoder = str(tiny.save(tmp_path / "decoder", "llama"))
    packed = tiny.save(
        tmp_path / "packed",
        "xlm-roberta",
        quantization_config={"load_in_8bit": True, "quant_method": "bitsandbytes"},
    )
    for given, says in (
        ([packed], "give those that the model was quantised from"),
        ([decoder], "of the kind decoder, and only encoders are fine-tuned"),
        ([encoder, "--task", "nagation"], "no --task 'nagation': choose negation"),
        ([encoder, "--task", "PI", "--languages", "de,sw"], "sw"),
        ([encoder, "--task", "PI", "--languages", "en"], "name one to transfer to"),
        ([encoder, "--task", "PI", "--lr", "-1"], "learning_rate is -1.0"),
    ):
        assert says in refused("igap", *given)
