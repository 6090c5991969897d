"""The notebook that a report leaves: what it is given, and what is left where it fails."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from notebooks.run import profiles, report_notebook
from notebooks.run.runner import NotebookFailed
from tests import tiny
from xlx.report import command, options
from xlx.results.settings import current


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A report of a tiny model that takes no time to be foreseen, into ``out``."""
    tiny.save(tmp_path / "own")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(options, "estimate", lambda *_: "")
    text = ["--languages", "en,de", "--sentences", "12", "--reference", "none"]
    return ["report", "own", *text, "--out", "out"]


def test_the_notebook_is_given_what_the_report_was(
    line: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[tuple] = []

    def noted(source: Path, target: Path, *given: Mapping) -> None:
        runs.append(given)
        target.write_bytes(source.read_bytes())

    monkeypatch.setattr(report_notebook, "run_cells", noted)
    given = [*line, "--pooling", "last", "--special-tokens"]
    assert command.main(given, leave=report_notebook.leave_notebook) == 0
    ((values, printed),) = runs
    declared = profiles.parameters(profiles.read_notebook(report_notebook.SOURCE), "report")
    assert set(values) == set(declared) - {"seed"}
    assert values["models"] == [str(tmp_path / "own")]
    assert (values["languages"], values["n_sentences"]) == (["en", "de"], 12)
    assert (values["corpus"], values["references"]) == ("wmt24pp", ["none"])
    assert values["reading"] == {"pooling": "last", "special_tokens": True}
    assert printed == {"XLX_FIGURES": "none", "XLX_CACHE": str(current().cache)}
    left = profiles.read_notebook(tmp_path / "out" / "report.ipynb").cells
    text = "\n\n".join(cell.source for cell in left)
    assert "**Exercise.**" in text
    assert not re.search(r"\*\*(In short|Reading|Claim and caveat)\.\*\*", text)
    assert "numbers" not in [tag for cell in left for tag in cell.metadata.get("tags", [])]


def test_a_notebook_that_fails_leaves_the_report(
    line: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def failed(*_: object) -> None:
        raise NotebookFailed("failed in cell [3]: ValueError: no")

    monkeypatch.setattr(report_notebook, "run_cells", failed)
    assert command.main(line, leave=report_notebook.leave_notebook) == 0
    assert "its notebook failed in cell [3]" in capsys.readouterr().err
    assert {path.name for path in Path("out").glob("report.*")} == {"report.json", "report.html"}
