"""The notebook that a report leaves: what it is given, and what is left where it fails."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pytest

from notebooks.run import profiles, report_notebook
from notebooks.run.runner import NotebookFailed
from tests import tiny
from xlx.report import command
from xlx.report.estimates import Estimate
from xlx.results.settings import current


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """What a run of the notebook is given, in place of the run."""
    runs: list[dict] = []

    def noted(source: Path, target: Path, values: Mapping, told: Mapping) -> None:
        runs.append({"source": source, "values": dict(values), "told": dict(told)})
        target.write_text("executed", encoding="utf-8")

    monkeypatch.setattr(report_notebook, "run_cells", noted)
    monkeypatch.setattr(command, "estimate", lambda *_: Estimate(1, 1, 1, defaultdict(float)))
    return runs


def test_the_notebook_is_given_what_the_report_was(
    given: list[dict], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny.save(tmp_path / "own")
    monkeypatch.chdir(tmp_path)
    line = ["report", "own", "--languages", "en,de", "--sentences", "12", "--reference", "none"]
    assert command.main([*line, "--out", "out"]) == 0
    (run,) = given
    declared = profiles.parameters(profiles.read_notebook(report_notebook.SOURCE), "report")
    assert set(run["values"]) == set(declared)
    assert run["values"]["models"] == [str(tmp_path / "own")]
    assert (run["values"]["languages"], run["values"]["n_sentences"]) == (["en", "de"], 12)
    assert (run["values"]["corpus"], run["values"]["references"]) == ("wmt24pp", ["none"])
    assert run["told"] == {"XLX_FIGURES": "none", "XLX_CACHE": str(current().cache)}
    assert (tmp_path / "out" / "report.ipynb").read_text(encoding="utf-8") == "executed"


def test_a_notebook_that_fails_leaves_the_report(
    given: list[dict],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> None:
    def failed(*_: object) -> None:
        raise NotebookFailed("failed in cell [3]: ValueError: no")

    monkeypatch.setattr(report_notebook, "run_cells", failed)
    tiny.save(tmp_path / "own")
    line = ["report", str(tmp_path / "own"), "--languages", "en,de", "--sentences", "12"]
    assert command.main([*line, "--reference", "none", "--out", str(tmp_path / "out")]) == 0
    assert "its notebook failed in cell [3]" in capsys.readouterr().err
    assert (tmp_path / "out" / "report.html").is_file()
    assert not (tmp_path / "out" / "report.ipynb").exists()
