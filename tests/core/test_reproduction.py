"""Gathering what notebooks ask for, and computing it again from nothing, with toy notebooks."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import xlx
from tests import toy_notebook
from tests import toy_results as toy
from xlx.core import gathering, journals, ledger, paths, provenance, reproduction, work
from xlx.core.gathering import GatheringError
from xlx.core.ledger import Cache, Entry, Ledger

MADE = dict.fromkeys(provenance.PROVENANCE, "x") | {"threads": 2, "seconds": 1.0}
START = (sys.executable, "-m", "tests.toy_notebook")


class House:
    """A folder like the repository's, with two notebooks and their results in the ledger."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folders = {
            "root": root / "results", "cache": root / "cache", "build": root / "build",
            "folder": root / "notebooks",
        }  # fmt: skip
        self.counts = root / "counts"
        for folder in (self.counts, self.folders["folder"]):
            folder.mkdir(parents=True)
        for stem in toy_notebook.NUMBERS:
            (self.folders["folder"] / f"{stem}.ipynb").write_text('{"cells": []}')
        self.put(*self.entries())

    def entries(self) -> Iterator[Entry]:
        """What the notebooks ask for, as it comes out."""
        stems: dict[int, list[str]] = {}
        for stem, numbers in toy_notebook.NUMBERS.items():
            for number in numbers:
                stems.setdefault(number, []).append(stem)
        for number, own in stems.items():
            for kind, value in toy_notebook.values(number).values():
                ask = kind.ask({"number": number})
                made = MADE | {"code": kind.code}
                yield Entry(kind.name, ask.identity, 1, ask.text, value, made, tuple(own))

    def put(self, *entries: Entry) -> None:
        lens_of = {entry.identity: entry.notebooks[0].split("-")[0] for entry in entries}
        ledger.write_ledger(self.folders["root"], entries, lens_of)

    def reproduce(self, *only: str) -> int:
        return reproduction.reproduce(only, start=START, **self.folders)

    def run(self, stem: str) -> None:
        """Run a notebook as `make figures` does."""
        command = [*START, stem, "--build", str(self.folders["build"])]
        environment = os.environ | {"XLX_CACHE": str(self.folders["cache"])}
        subprocess.run(command, cwd=paths.ROOT, check=True, env=environment)

    def computed(self) -> list[int]:
        """The numbers that were counted, as often as they were."""
        return sorted(int(path.name.split("-")[0]) for path in self.counts.iterdir())


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    house = House(tmp_path)
    for module in (gathering, reproduction):
        monkeypatch.setattr(module, "kinds", lambda: work.KINDS)  # imports no other module
    monkeypatch.setenv("TOY_FOLDER", str(house.counts))
    monkeypatch.setenv("TOY_LEDGER", str(house.folders["root"]))
    return house


# --- into the ledger ------------------------------------------------------------------------------


def gathered(house: House, **options: bool) -> None:
    folders = house.folders
    cache = Cache(folders["cache"] / "results")
    build = folders["build"] / "mini"
    stems = list(toy_notebook.NUMBERS)
    gathering.write_results(stems, build, folders["root"], cache, **options)


def test_results_hold_what_the_notebooks_ask_for_and_nothing_else(house: House) -> None:
    first, *others = house.entries()
    orphan = replace(first, identity="0" * 64, notebooks=("abx-1-a",))
    house.put(orphan, *others)  # and the first is lacking
    for stem in toy_notebook.NUMBERS:
        house.run(stem)
    assert house.computed() == [0]
    gathered(house)
    overview = Ledger(house.folders["root"]).overview()
    expected = {entry.identity: list(entry.notebooks) for entry in house.entries()}
    found = overview.set_index("identity")["notebooks"]
    assert {name: list(stems) for name, stems in found.items()} == expected
    lenses = dict(zip(overview["identity"], overview["lens"], strict=True))
    assert {lenses[name] for name, own in expected.items() if "abx-1-a" in own} == {"abx"}
    assert set(lenses.values()) == {"abx", "mexa"}
    text = (house.folders["root"] / "README.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| toy")]
    assert [line.split(" | ")[:3] for line in rows] == [
        ["| toy-counted", "abx", "4"], ["| toy-counted", "mexa", "2"],
        ["| toy-squares", "abx", "4"], ["| toy-squares", "mexa", "2"],
    ]  # fmt: skip

    before = {file: file.read_bytes() for file in Ledger(house.folders["root"]).files()}
    gathered(house)
    assert {file: file.read_bytes() for file in before} == before


def test_results_are_refused_where_it_is_not_known_what_is_asked_for(house: House) -> None:
    house.run("abx-1-a")
    files = {path: path.read_bytes() for path in house.folders["root"].rglob("*.*")}
    with pytest.raises(GatheringError, match="what mexa-1-b asks for: run it first, `make"):
        gathered(house)
    house.run("mexa-1-b")
    (house.folders["build"] / "mini" / "mexa-1-b.ipynb").unlink()  # stopped before its end
    with pytest.raises(GatheringError, match="mexa-1-b"):
        gathered(house)
    house.run("mexa-1-b")
    house.put(*list(house.entries())[1:])
    with pytest.raises(GatheringError, match=r"abx-1-a asks .* 'toy-counted' that neither"):
        gathered(house)
    house.put(*house.entries())
    assert {path: path.read_bytes() for path in files} == files


def test_restamped_results_are_those_of_todays_code(house: House) -> None:
    house.put(*(replace(entry, made=MADE | {"code": "old"}) for entry in house.entries()))
    for stem in toy_notebook.NUMBERS:
        house.run(stem)
    gathered(house)
    assert set(Ledger(house.folders["root"]).overview()["code"]) == {"old"}
    gathered(house, restamp=True)
    assert set(Ledger(house.folders["root"]).overview()["code"]) == {toy.COUNTED.code}


# --- from nothing ---------------------------------------------------------------------------------


def test_all_is_computed_from_nothing_and_compared(house: House, capsys) -> None:
    assert house.reproduce() == 0
    assert house.computed() == [0, 1, 2, 3, 4, 5]
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "toy-" in line]
    assert [row[:6] for row in rows] == [
        ["toy-counted", "6", "6", "0", "0", "0"], ["toy-squares", "6", "6", "0", "0", "0"],
    ]  # fmt: skip
    assert not (house.folders["cache"] / "from-nothing").exists()
    assert len(list((house.folders["cache"] / "reproduced").glob("*/*/*"))) == 12
    assert house.reproduce() == 0  # and the next one starts from nothing again
    assert len(house.computed()) == 12


@pytest.mark.parametrize(("by", "status", "column"), [(1e-7, 0, 3), (0.5, 1, 4), (np.nan, 1, 4)])
def test_differences_are_counted_and_the_worst_is_named(
    house: House, capsys, by: float, status: int, column: int
) -> None:
    def moved(entry: Entry) -> Entry:
        if entry.kind != "toy-counted" or entry.text != '{"number": 4}':
            return entry
        return replace(entry, value={"number": entry.value["number"] + by})

    house.put(*map(moved, house.entries()))
    assert house.reproduce() == status
    out = capsys.readouterr().out
    (row,) = [line.split() for line in out.splitlines() if line.split()[:1] == ["toy-counted"]]
    assert (row[2], row[column]) == ("5", "1")
    assert ('{"number": 4}' in out) == bool(status)


def test_what_nobody_asks_for_is_said(house: House, capsys) -> None:
    first, *_ = entries = list(house.entries())
    house.put(*entries, replace(first, identity="0" * 64, text="an old one"))
    assert house.reproduce() == 1
    assert "1 were not asked for, such as an old one" in capsys.readouterr().out


def test_a_failing_notebook_is_named_and_what_is_computed_stays(
    house: House, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_FAILS", "mexa-1-b")
    assert house.reproduce() == 1
    error = capsys.readouterr().err
    assert error.startswith("mexa-1-b failed in cell [2]: ValueError: no Klingon\nnot compared")
    monkeypatch.delenv("TOY_FAILS")
    assert house.reproduce() == 0
    assert len(house.computed()) == 6


def test_one_notebook_alone(house: House, capsys) -> None:
    assert house.reproduce("mexa-1-b") == 0
    assert house.computed() == [3, 4, 5]
    assert re.search(r"toy-counted +3 +3 ", capsys.readouterr().out)


def test_one_kind_alone_takes_the_others_from_the_ledger(house: House, capsys) -> None:
    assert house.reproduce("toy-squares") == 0
    assert house.computed() == []
    out = capsys.readouterr().out
    assert re.search(r"toy-squares +6 +6 ", out)
    assert "toy-counted" not in out


def test_bad_names_and_an_empty_ledger_are_refused(house: House) -> None:
    with pytest.raises(GatheringError, match=r"'abx-9' .*notebooks: abx-1-a mexa-1-b; kinds"):
        house.reproduce("abx-9")
    house.put()
    with pytest.raises(GatheringError, match="holds no results to compare with"):
        house.reproduce()


WHOLE = """
import sys
from pathlib import Path
from xlx.core import gathering, reproduction, run, work
from tests.core.test_reproduction import START
gathering.kinds = reproduction.kinds = lambda: work.KINDS
root = Path(sys.argv[1])
folders = {"root": root / "results", "cache": root / "cache", "build": root / "build"}
with run.stopped_by_sigterm():
    sys.exit(reproduction.reproduce(start=START, folder=root / "notebooks", **folders))
"""


def begun(house: House, least: int) -> subprocess.Popen:
    """A reproduction in a process of its own that has computed so many."""
    child = subprocess.Popen([sys.executable, "-c", WHOLE, str(house.root)], cwd=paths.ROOT)
    end = time.monotonic() + 60
    while len(house.computed()) < least:
        assert child.poll() is None
        assert time.monotonic() < end
        time.sleep(0.05)
    return child


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_stopped_reproduction_goes_on(
    house: House, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    monkeypatch.setenv("TOY_SECONDS", "0.3")
    for least in (2, 5):
        child = begun(house, least)
        child.send_signal(how)
        assert child.wait(30) != 0
        time.sleep(1)  # what it had started ends with it
        stopped = len(house.computed())
        time.sleep(1)
        assert len(house.computed()) == stopped
    monkeypatch.setenv("TOY_SECONDS", "0")
    assert house.reproduce() == 0
    assert len(house.computed()) <= 6 + 2  # nothing is lost but the unit under way


def test_what_other_code_made_is_not_gone_on_with(house: House) -> None:
    kept = Cache(house.folders["cache"] / "from-nothing" / "reproduction")
    for number, code in ((0, "old"), (1, toy.COUNTED.code)):
        with xlx.settings(policy="ignore"):
            made = MADE | {"code": code}
            kept.put(toy.COUNTED.ask({"number": number}), {"number": np.array([number])}, made)
    assert house.reproduce("abx-1-a") == 0
    assert house.computed() == [0, 2, 3]


def test_two_at_once_are_refused(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_SECONDS", "5")
    child = begun(house, 1)
    try:
        with pytest.raises(GatheringError, match=f"another .* at work .process {child.pid}.:"):
            house.reproduce()
    finally:
        child.terminate()
        assert child.wait(30) != 0


def test_a_scheduler_that_does_not_answer_is_named_at_once(house: House) -> None:
    with (
        xlx.settings(scheduler="tcp://127.0.0.1:9"),
        pytest.raises(Exception, match="does not answer"),
    ):
        house.reproduce()
    assert house.computed() == []


def test_command_line_prints_one_line_and_fails(
    capsys, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(gathering.paths, "BUILD", tmp_path)
    assert gathering.main([]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "make figures ONLY=" in line
    assert journals.journal("x", tmp_path).name == "x.jsonl"
