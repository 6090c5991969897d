"""A model of 70 B on FLORES-200, by shapes alone: the estimate is of all its states."""

from types import SimpleNamespace

import pytest

from xlx.report import options
from xlx.subjects import folders, loading
from xlx.text.parallel import ParallelCorpus

LANGUAGES, SENTENCES, LAYERS, WIDTH = 203, 1012, 81, 8192
STATES = 4 * LANGUAGES * SENTENCES * LAYERS * WIDTH  # bytes


def test_the_estimate_of_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {str(code): ("a",) * SENTENCES for code in range(LANGUAGES)}
    corpus = ParallelCorpus("flores", rows, rows["0"], rows["0"], "", "")
    model = SimpleNamespace(name="70b", n_layers=LAYERS - 1, dim=WIDTH)
    monkeypatch.setattr(loading, "load", lambda _: model)
    monkeypatch.setattr(options, "reading_seconds", lambda *_: 0.5)
    monkeypatch.setattr(folders, "free_bytes", lambda _: 4 * STATES)
    sentence = options.estimate([model], corpus, 3)
    assert sentence.startswith(f"about {3 * LANGUAGES * SENTENCES * 0.5 / 60:.1f} minutes")
    assert f"{3 * STATES / 1e9:.2f} GB of disk" in sentence
    monkeypatch.setattr(folders, "free_bytes", lambda _: 10**11)
    with pytest.raises(ValueError, match=r"in 203 languages need \d{4}\.\d GB of memory and 100"):
        options.estimate([model], corpus, 3)
