"""Parsed text of one's own in a report: what is read of it, and what is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from xlx.report import tables
from xlx.report.inputs import ReportedModel
from xlx.report.tables import Measured
from xlx.text.files import TextError
from xlx.text.parallel import ParallelCorpus

MODEL = ReportedModel("mini-xlmr", "mini-xlmr", "encoder", "mean", "0" * 64)
TEXT = ParallelCorpus("own", {"en": ("a",), "tlh": ("b",)}, ("1",), ("",), "", "")


def conllu(n: int) -> str:
    """Sentences of five words, half of them in the past."""
    sentences = []
    for i in range(n):
        forms = (("slept", "Past"), ("sleeps", "Pres"))[i % 2]
        rows = [f"1\t{forms[0]}\t_\tVERB\t_\tTense={forms[1]}\t0\troot\t_\t_"]
        rows += [f"{j}\tw{i}x{j}\t_\tX\t_\t_\t1\tdep\t_\t_" for j in range(2, 6)]
        sentences.append("\n".join(rows))
    return "\n\n".join(sentences) + "\n"


def written(folder: Path, n: int) -> Measured:
    for code in ("bg", "sr"):
        (folder / code).mkdir()
        (folder / code / "train.conllu").write_text(conllu(n), encoding="utf-8")
    return Measured(MODEL, TEXT, sentences=60, treebank=folder, untrained=False)


def test_tasks_are_made_of_a_treebank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = {}

    def probed(subjects: list, tasks: dict, **options: object) -> pd.DataFrame:
        seen.update(tasks)
        keys = {"task": "Tense", "layer": 0, "classes": 2, "accuracy": 0.5}
        pairs = {"source": ["bg", "bg", "sr"], "target": ["bg", "sr", "sr"]}
        return pd.DataFrame(pairs).assign(**keys)

    monkeypatch.setattr(tables, "probe_sentences", probed)
    monkeypatch.setattr(tables, "compared", lambda measured: {})
    rows = tables.sentence_rows(written(tmp_path, 90))
    assert [*seen] == ["bg", "sr"]  # and no language of the text
    assert {task.name for several in seen.values() for task in several} == {"Tense"}
    assert all(base.startswith("own:") for base in seen["bg"][0].test.bases)
    assert rows.set_index("read")["n"].to_dict() == {"at home": 2, "abroad": 1}
    assert np.allclose(rows["chance"], 0.5)


def test_a_treebank_that_is_too_small_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "compared", lambda measured: {})
    with pytest.raises(TextError, match=r"too few sentences of each class"):
        tables.sentence_rows(written(tmp_path, 4))
