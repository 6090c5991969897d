"""X-Probe: Table 1 and the number of weights by hand; the script that counts a release."""

import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from printed.xprobe_claims import PrintedTables
from xlx.results import paths

FOLDER = paths.PUBLISHED / "xprobe"


@pytest.fixture(scope="module")
def paper() -> PrintedTables:
    return PrintedTables()


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("count_release", FOLDER / "release.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


def test_what_is_counted_of_a_release(tmp_path: Path) -> None:
    script = loaded()
    te, va = tmp_path / "te.txt", tmp_path / "va.txt"
    te.write_text("a b\tO\na b\tI\na b\tO\nc\tO\n", encoding="utf-8")
    va.write_text("c\tI\nd\tO\n", encoding="utf-8")
    found = script.count(script.read(te), script.read(va))
    assert found == {
        "test": 4,
        "validation": 2,
        "identical": 0,
        "classes": 2,
        "majority": 3,
        "test_distinct": 2,
        "test_both": 1,
        "test_best": 3,
        "distinct": 3,
        "both": 2,
    }
    te.write_text("O a b\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"te\.txt, line 1: not sentence<TAB>label"):
        script.read(te)


def test_a_release_is_compared_with_what_is_kept_of_it(tmp_path: Path, monkeypatch) -> None:
    script, release = loaded(), tmp_path / "release"
    for language, task in itertools.product(script.LANGUAGES, script.TASKS.values()):
        (release / language / task).mkdir(parents=True)
        for part in ("te", "va"):
            text = f"{part} {task}\tO\nb {task}\tI\n"
            (release / language / task / f"{part}.txt").write_text(text, encoding="utf-8")
    monkeypatch.setattr(script, "HERE", tmp_path)
    for options in (["--write"], []):
        monkeypatch.setattr(sys, "argv", ["release.py", str(release), *options])
        script.main()
    kept = pd.read_csv(tmp_path / "release.csv")
    assert (len(kept), kept["distinct"].unique().tolist()) == (5 * 9, [3])
    (release / "fr" / "tree_depth" / "te.txt").write_text("a\tO\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"^test of fr TreeDepth is 1, and 2 in release\.csv: del"):
        script.main()


def test_parameters_are_those_of_layers_as_pytorch_has_them(paper: PrintedTables) -> None:
    torch = pytest.importorskip("torch")
    lstm = torch.nn.LSTM(300, 512, num_layers=2, bidirectional=True)
    filters = [torch.nn.Conv1d(300, 800, width) for width in (3, 4, 5)]
    projected = [*filters, torch.nn.Linear(3 * 800, 1024)]
    for name, layers in (("biLSTM", [lstm]), ("CNN, 800 channels a width", projected)):
        count = sum(part.numel() for layer in layers for part in layer.parameters())
        assert paper.weights[name] == count
