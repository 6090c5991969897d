"""A model of 70 B on FLORES-200, by shapes alone: no store or estimate holds fewer than it has."""

from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from xlx.report import options, report_command
from xlx.results import ledger
from xlx.subjects import folders, loading
from xlx.text.parallel import ParallelCorpus

LANGUAGES, SENTENCES, LAYERS, WIDTH = 203, 1012, 81, 8192
STATES = 4 * LANGUAGES * SENTENCES * LAYERS * WIDTH  # bytes


@pytest.mark.parametrize("n_sentences", [SENTENCES, 7_957])  # the second: a New Testament
def test_states_of_a_language_are_an_entry(n_sentences: int, tmp_path: Path) -> None:
    n = LAYERS * n_sentences * WIDTH
    table = pa.table({"value.states": ledger._cell(pa.nulls(n))})  # of which nothing is held
    ledger.write_entries(tmp_path / "a.arrow", table)
    read = ledger.read_entries(tmp_path / "a.arrow")
    assert len(read["value.states"][0].values) == n
    assert (n > 2**31) == pa.types.is_large_list(read["value.states"].type)


def test_the_estimate_of_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {str(code): ("a",) * SENTENCES for code in range(LANGUAGES)}
    corpus = ParallelCorpus("flores", rows, rows["0"], rows["0"], "", "")
    model = SimpleNamespace(name="70b", n_layers=LAYERS - 1, dim=WIDTH)
    monkeypatch.setattr(loading, "load", lambda _: model)
    monkeypatch.setattr(options, "reading_seconds", lambda *_: 0.5)
    monkeypatch.setattr(folders, "free_bytes", lambda _: 4 * STATES)
    said = report_command.estimate([model], [model], corpus)
    assert said.startswith(f"about {3 * LANGUAGES * SENTENCES * 0.5 / 60:.1f} minutes")
    assert f"{3 * STATES / 1e9:.2f} GB of disk" in said
    monkeypatch.setattr(folders, "free_bytes", lambda _: 10**11)
    with pytest.raises(ValueError, match=r"in 203 languages need \d{4}\.\d GB of memory and 100"):
        report_command.estimate([model], [model], corpus)
