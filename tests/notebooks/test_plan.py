"""The plan of a profile: what is counted of what is not here, and what is said of it."""

import math
from pathlib import Path

import huggingface_hub
import pytest
from transformers import AutoModel

from notebooks.run import plan, profiles
from tests import tiny

XLMR, MBERT = "FacebookAI/xlm-roberta-base", "google-bert/bert-base-multilingual-cased"


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hub cache without models, and a folder of notebooks beside no data."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    (tmp_path / "notebooks").mkdir()
    monkeypatch.chdir(tmp_path / "notebooks")


def declared(name: str, profile: str) -> plan.Declared:
    found = plan.Declared()
    found.read(name, profiles.values_for(name, profile))
    return found


def test_what_is_not_here_is_named_and_counted_as_published(bare: None) -> None:
    found = declared("igap-3-models", "paper-small")
    assert [run["model"] for run in found.runs] == [f"{XLMR}@untrained", XLMR]
    data, model = found.missing
    assert data.startswith("There is no folder cache/xnli. Get xnli from github.com/")
    assert model.startswith(f"{XLMR} is not in the hub's cache")
    table = plan.table(found.runs, rate=15)
    every, languages, n, n_test = math.ceil(40 * 78 / 10), 5, 2490, 5010
    whole = table.loc[("all", "")]
    assert (whole["runs"], whole["checkpoints"]) == (2, 2 * every)
    assert whole["learnt"] == pytest.approx(2 * 40 * n / 1e6)
    most = every * languages * n + languages * n_test
    assert whole["asked"] == pytest.approx(2 * most / 1e6)
    faster = plan.table(found.runs, rate=30)
    assert (faster["hours"] * 2).tolist() == pytest.approx(table["hours"].tolist())


@pytest.mark.slow
def test_the_small_profile_takes_some_five_hours(bare: None) -> None:
    """At the rate that a card of 2020 has in TF32, 15 TFLOP/s."""
    for name in profiles.read_profile("paper-small")["notebooks"]:
        hours = plan.table(declared(name, "paper-small").runs, rate=15)
        assert 0 < hours.loc[("all", ""), "hours"] < 5


@pytest.mark.slow
def test_a_run_that_two_notebooks_ask_for_is_counted_once(bare: None) -> None:
    languages = {task: ["en", "de"] for task in ("NLI", "random labels")}
    found, values = plan.Declared(), {"seeds": [1], "languages": languages, "more_sources": []}
    for sources in (["en"], ["en", "de"]):
        few = {"memory": None, "untrained": [], "ratios": [1.0], "draws": [1]}
        found.read("igap-2-ranking", values | few | {"sources": sources})
    assert [run["steps"] > 0 for run in found.runs] == [True] * 5  # three of them of random labels


def test_the_command_says_what_is_missing(bare: None, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["igap-3-models", "--profile", "paper-small", "--rate", "15"]
    assert plan.main(asked) == 1
    said = capsys.readouterr().out
    assert f"missing: {XLMR} is not in the hub's cache" in said
    assert "hours: at 15 TFLOP/s" in said
    assert plan.main(["igap-3-modles"]) == 2
    assert "did you mean 'igap-3-models'" in capsys.readouterr().err


def test_a_profile_without_fine_tuning(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(plan, "TUNING", ())
    assert (plan.main([]), capsys.readouterr().out) == (0, "nothing is fine-tuned\n")


def test_sizes_are_those_of_a_model(tmp_path: Path) -> None:
    folder = tiny.save(tmp_path / "tiny", layers=3)
    size, model = plan.size_of(str(folder)), AutoModel.from_pretrained(folder)
    matrices = sum(x.numel() for x in model.encoder.parameters() if x.dim() > 1)
    assert size.layers * size.weights == matrices
    n, length = 7, 5
    attention = 2 * 2 * n * length * size.width * 3
    assert size.operations(n, length) == 2 * n * matrices + attention
