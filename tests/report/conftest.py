"""A report of two shipped models on 24 sentences in four languages, written once."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

from tests import tiny
from xlx.report import command
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

LANGUAGES = ("en", "de", "ja", "ar")
N = 24


@dataclass(frozen=True)
class Written:
    """A report as it lies in its folder."""

    folder: Path
    page: str
    output: dict
    tables: dict[str, pd.DataFrame]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture) -> Callable[..., str]:
    """What a command says, in a line, on its way out."""

    def line_of(*given: object) -> str:
        capsys.readouterr()
        assert command.main([*map(str, given)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    return line_of


@pytest.fixture
def shown(capsys: pytest.CaptureFixture) -> Callable[..., str]:
    """What a command that ends well says."""

    def output_of(*given: object) -> str:
        capsys.readouterr()
        assert command.main([*map(str, given)]) == 0
        return capsys.readouterr().out

    return output_of


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Sixteen lines in three languages that share words, in a folder."""
    folder = tmp_path / "text"
    folder.mkdir()
    for code in ("en", "de", "sw"):
        lines = [f"{line} {code} {i}\n" for i, line in enumerate(2 * tiny.SENTENCES)]
        (folder / f"{code}.txt").write_text("".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def corpus() -> ParallelCorpus:
    return parallel.load("wmt24pp", LANGUAGES, drop_duplicates=True).take(N, 1)


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("report") / "of-two"
    options = ["--languages", ",".join(LANGUAGES), "--sentences", str(N), "--no-notebook"]
    options += ["--reference", "mini-infoxlm"]
    given = ["report", "mini-infoxlm", "mini-llama", *options, "--out", str(folder)]
    assert command.main(given) == 0
    files = sorted((folder / "tables").glob("*.parquet"))
    tables = {path.stem: pd.read_parquet(path) for path in files}
    output = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    page = (folder / "report.html").read_text(encoding="utf-8")
    return Written(folder, page, output, tables)
