"""Gathering what notebooks ask for, and computing it again from nothing, with toy notebooks."""

import json
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
import pandas as pd
import pytest

from notebooks.run import gathering, journals, reproduction, runner
from notebooks.run.gathering import GatheringError
from tests import toy_results as toy
from xlx.results import ledger, paths, provenance, settings, store, work
from xlx.results.ledger import Cache, Entry, Ledger
from xlx.results.store import StoreWarning

MADE = dict.fromkeys(provenance.PROVENANCE, "x") | {"threads": 2, "seconds": 1.0}
#: Notebook → numbers that it asks for: counted, and their squares.
NUMBERS = {"abx-1-a": [0, 1, 2, 3], "mexa-1-b": [3, 4, 5]}
STEMS = list(NUMBERS)


def execute(stem: str, build: Path) -> None:
    """Stands for `runner.execute`: in the folder ``TOY_FOLDER``, each computation leaves a file."""
    root, numbers = Path(os.environ["TOY_FOLDER"]), NUMBERS[stem]
    abouts = [{"number": number} for number in numbers]

    def slowly(missing: list[int]) -> Iterator[work.Call]:
        for position in missing:
            time.sleep(float(os.environ.get("TOY_SECONDS", "0")))
            yield [position], (str(root / "counts"), numbers[position])

    options = {"ledger": root / "results", "device": "cpu", "progress": False}
    told = {name.lower(): os.environ[f"XLX_{name}"] for name in ("POLICY", "CACHE")}
    with settings.settings(**options, **told):
        work.results(toy.COUNTED, abouts, slowly, alone=True)
        work.results(
            toy.SQUARES, abouts, lambda missing: [(missing, [numbers[i] for i in missing])]
        )
    if os.environ.get("TOY_FAILS") == stem:
        raise runner.NotebookFailed(f"{stem} failed in cell [2]: ValueError: no Klingon")


def lines(*asked: ledger.Ask | Entry) -> str:
    """What a journal has of entries that were asked for."""
    return "".join(
        json.dumps({"kind": x.kind, "identity": x.identity, "from": "ledger"}) + "\n" for x in asked
    )


def places(root: Path) -> dict[str, Path]:
    """Of `paths`, in a folder of the test's own."""
    folders = {"RESULTS": "results", "CACHE": "cache", "BUILD": "build", "NOTEBOOKS": "notebooks"}
    return {name: root / folder for name, folder in folders.items()}


class House:
    """A folder like the repository's, with two notebooks and their results in the ledger."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.results, self.build, self.cache = root / "results", root / "build", root / "cache"
        self.notebooks, self.counts = root / "notebooks", root / "counts"
        for folder in (self.counts, self.notebooks):
            folder.mkdir(parents=True)
        for stem in STEMS:
            (self.notebooks / f"{stem}.ipynb").write_text('{"cells": []}')
        self.put(*self.entries())

    def entries(self) -> Iterator[Entry]:
        """What the notebooks ask for, as it comes out."""
        for number in range(6):
            stems = tuple(stem for stem in STEMS if number in NUMBERS[stem])
            for kind, value in (
                (toy.COUNTED, {"number": np.array([number])}),
                (toy.SQUARES, {"square": np.array([number**2])}),
            ):
                ask = kind.ask({"number": number})
                made = MADE | {"code": kind.code}
                yield Entry(kind.name, ask.identity, 1, ask.text, value, made, stems)

    def put(self, *entries: Entry) -> None:
        lens_of = {entry.identity: gathering._lens(entry.notebooks, None) for entry in entries}
        toy.write_ledger(self.results, entries, lens_of)

    def reproduce(self, *only: str) -> int:
        work._ledger.cache_clear()
        return reproduction.reproduce(only, execute)

    def ran(self) -> None:
        """Leave what a run of the notebooks leaves."""
        for stem in STEMS:
            asks = (entry for entry in self.entries() if stem in entry.notebooks)
            journals.fresh_journal(stem, self.build / "mini").write_text(lines(*asks))
            (self.build / "mini" / f"{stem}.ipynb").touch()

    def cached(self, ask: ledger.Ask, value: ledger.Value) -> Entry:
        """Leave in the cache what was computed here."""
        return Cache(self.cache / "results").put(ask, value, MADE)

    def overview(self) -> pd.DataFrame:
        """What the ledger holds."""
        return Ledger(self.results).overview()

    def shards(self) -> dict[Path, bytes]:
        """The ledger's shards and what is in them."""
        return {file: file.read_bytes() for file in Ledger(self.results).files()}

    def gather(self, **options: object) -> tuple[pd.DataFrame, list[str]]:
        cache, options = Cache(self.cache / "results"), {"runs": self.build / "runs", **options}
        return gathering.write_results(STEMS, self.build / "mini", self.results, cache, **options)

    def of_unit(self, number: int, *more: str) -> Entry:
        """What a unit of long runs asked for, maybe of a model whose ask says ``more``."""
        ask = toy.COUNTED.ask({"number": number, "more": list(more)})
        made, value = MADE | {"code": toy.COUNTED.code}, {"number": np.array([number])}
        return Entry(ask.kind, ask.identity, 1, ask.text, value, made, ("run:toy-seed1",))

    def computed(self) -> list[int]:
        """The numbers that were counted, as often as they were."""
        return sorted(int(path.name.split("-")[0]) for path in self.counts.iterdir())


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    house = House(tmp_path)
    monkeypatch.setattr(gathering, "kinds", lambda: work.KINDS)  # imports no other module
    for name, path in places(tmp_path).items():
        monkeypatch.setattr(paths, name, path)
    monkeypatch.setattr(provenance, "environment", toy.environment)
    monkeypatch.setattr(work, "_journal", work._Journal())
    monkeypatch.setenv("TOY_FOLDER", str(tmp_path))
    return house


# --- into the ledger ------------------------------------------------------------------------------


def told(house: House, **options: object) -> str:
    """What gathering says that it did."""
    return "\n".join(house.gather(**options)[1])


def test_what_notebooks_ask_for_is_added_and_what_nobody_asks_for_leaves_at_a_fold(
    house: House,
) -> None:
    first, *others = house.entries()
    house.put(replace(first, identity="0" * 64), *others)  # an orphan, and the first is lacking
    house.ran()
    cached = house.cached(toy.COUNTED.ask({"number": 0}), first.value)
    assert cached.identity == first.identity
    asked = {entry.identity: list(entry.notebooks) for entry in house.entries()}
    shipped = house.shards()
    said = told(house)
    assert said.startswith("1 results are new; 1 shards were written, 0.0")
    assert "1 results are asked for by nobody: `make results FOLD=all` drops them" in said
    assert {file: file.read_bytes() for file in shipped} == shipped
    overview = house.overview()
    assert {row.identity: list(row.notebooks) for row in overview.itertuples()} == asked | {
        "0" * 64: []
    }
    assert told(house, fold=["abx/toy-counted"]).splitlines()[1:] == ["abx/toy-counted was folded"]
    overview = house.overview()
    assert {row.identity: list(row.notebooks) for row in overview.itertuples()} == asked
    assert not (house.results / ledger.ASKERS).exists()
    for row in overview.itertuples():
        assert row.lens == asked[row.identity][0].split("-")[0]
    text = (house.results / "README.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| toy")]
    assert [line.split(" | ")[:3] for line in rows] == [
        ["| toy-counted", "abx", "4"],
        ["| toy-counted", "mexa", "2"],
        ["| toy-squares", "abx", "4"],
        ["| toy-squares", "mexa", "2"],
    ]
    assert "| all | | 12 | 0.0" in text

    before = {file: file.read_bytes() for file in house.results.rglob("*.*")}
    for fold in ([], ["all"]):
        house.gather(fold=fold)
        assert {file: file.read_bytes() for file in before} == before
    with pytest.raises(GatheringError, match=r"no shards in .*abx/toy-none \(FOLD"):
        house.gather(fold=["abx/toy-none"])
    damaged = next(file for file in before if file.suffix == ".parquet")
    damaged.write_bytes(b"torn")
    with (
        pytest.warns(StoreWarning, match="is not used"),
        pytest.raises(GatheringError, match="cannot be read: restore it"),
    ):
        house.gather(fold=["all"])


def test_one_result_more_adds_no_more_than_itself_to_history(house: House) -> None:
    house.ran()
    noise = np.random.default_rng(0).random(12_500)  # 100 kB that no packing makes smaller
    more = [toy.COUNTED.ask({"number": x, "noise": True}) for x in range(40)]
    journal = journals.journal(STEMS[0], house.build / "mini")
    journal.write_text(journal.read_text() + lines(*more))
    for ask in more:
        house.cached(ask, {"noise": noise})
    house.gather()
    ask = toy.COUNTED.ask({"number": 99, "noise": True})
    house.cached(ask, {"noise": noise})
    journal.write_text(journal.read_text() + lines(ask))
    before = {file: file.read_bytes() for file in house.results.rglob("*.*")}
    house.gather()
    changed = [x for x in house.results.rglob("*.*") if x.read_bytes() != before.get(x)]
    assert {x.suffix for x in changed if x in before} <= {".md", ".tsv", ".lock"}
    assert 100_000 < sum(x.stat().st_size for x in changed) <= 200_000
    assert Ledger(house.results).get(ask).value["noise"].sum() == noise.sum()


def test_results_count_as_of_todays_code_and_no_shard_is_written(house: House) -> None:
    house.ran()
    house.put(*(replace(x, made=MADE | {"code": f"old {x.kind}"}) for x in house.entries()))
    shipped = house.shards()
    house.gather(restamp=True)
    assert house.shards() == shipped
    for fold in ([], ["all"]):
        house.gather(fold=fold)
        rows = house.overview()
        assert rows["code"].tolist() == [work.KINDS[kind].code for kind in rows["kind"]]
    assert not (house.results / ledger.STAMPS).exists()


def test_two_that_add_at_once_lose_nothing(house: House) -> None:
    house.ran()
    with store.lock(house.results / ".lock"), pytest.raises(GatheringError, match="is at work"):
        house.gather()
    house.gather()
    assert len(house.overview()) == 12


def test_a_ledger_that_cannot_be_written_is_one_sentence(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.ran()

    def refuse(*_: object) -> None:  # root, who runs tests in a container, may write anywhere
        raise PermissionError(13, "Permission denied", "x")

    with monkeypatch.context() as patch:
        patch.setattr(store, "lock", refuse)
        with pytest.raises(GatheringError, match=r"cannot be written to \(Permission denied\): "):
            house.gather()
    assert len(house.overview()) == 12


def test_a_result_stays_where_it_is_while_its_lens_asks() -> None:
    also = {"models": "models-1", "public": "run:unit"}
    assert [gathering._lens(["abx-6", x], k) for k, x in also.items()] == ["models", "abx"]


def test_what_long_runs_asked_for_is_added_and_stays_until_it_is_forgotten(house: House) -> None:
    house.ran()
    kept, added, shared = house.of_unit(7), house.of_unit(8), next(house.entries())
    house.put(*house.entries(), kept)
    journal = journals.fresh_journal("toy-seed1", house.build / "runs")
    journal.write_text(lines(added, shared))
    with pytest.raises(GatheringError, match=r"run:toy-seed1 asks .*runs.py"):
        house.gather()
    ask = toy.COUNTED.ask(json.loads(added.text))
    house.cached(ask, added.value)
    for _ in range(2):
        house.gather()
        rows = house.overview().set_index("identity")
        assert len(rows) == 12 + 2
        assert set(rows.index[rows["lens"] == "public"]) == {kept.identity, added.identity}
        assert list(rows.loc[added.identity, "notebooks"]) == ["run:toy-seed1"]
        assert list(rows.loc[shared.identity, "notebooks"]) == ["abx-1-a", "run:toy-seed1"]
        assert rows.loc[shared.identity, "lens"] == "abx"
        journal.unlink(missing_ok=True)  # what is in the ledger needs none
    assert "| toy-counted | public | 2 |" in (house.results / "README.md").read_text()
    house.gather(forget=["toy-seed1"], fold=["all"])
    assert len(house.overview()) == 12
    assert not list((house.results / "public").rglob("*.parquet"))


# --- from nothing ---------------------------------------------------------------------------------


def test_all_is_computed_from_nothing_and_compared(
    house: House, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOY_FAILS", "mexa-1-b")
    assert house.reproduce() == 1
    error = capsys.readouterr().err
    assert error.startswith("mexa-1-b failed in cell [2]: ValueError: no Klingon\nnot compared")
    monkeypatch.delenv("TOY_FAILS")
    assert house.reproduce() == 0  # what is computed stays
    assert house.computed() == [0, 1, 2, 3, 4, 5]
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "toy-" in line]
    assert [row[:5] for row in rows] == [
        ["toy-counted", "6", "6", "0", "0"],
        ["toy-squares", "6", "6", "0", "0"],
    ]
    assert not (house.cache / "from-nothing").exists()
    assert len(list((house.cache / "reproduced").glob("*/*/*"))) == 12
    assert house.reproduce("mexa-1-b") == 0  # and the next one starts from nothing again
    assert len(house.computed()) == 6 + 3
    assert re.search(r"toy-counted +3 +3 ", capsys.readouterr().out)


def test_units_are_reproduced_and_absent_models_are_not(
    house: House, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "absent_models", lambda: {"f" * 64: "far"})
    away = replace(house.of_unit(9, "f" * 64), notebooks=("mexa-1-b", "run:toy-away"))
    house.put(*house.entries(), house.of_unit(7), away)
    of = Ledger(house.results)
    plan = reproduction.plan(of)
    assert plan.stems == [*STEMS, "run:toy-seed1"]  # of the other unit nothing can be computed
    assert plan.absent["identity"].tolist() == [away.identity]
    assert len(plan.expected) == 13
    assert reproduction.plan(of, ["run:toy-seed1"]).stems == ["run:toy-seed1"]
    began = []

    def unit(name: str, build: Path) -> None:
        began.append(name)
        kept, home = house.of_unit(7), Path(os.environ["XLX_CACHE"])
        assert Cache(home / "reproduction").get(gathering.AskName(away.kind, away.identity))
        Cache(home / "reproduction").put(kept, kept.value, kept.made)

    monkeypatch.setattr(reproduction, "run_unit", unit)
    assert house.reproduce() == 0
    assert began == ["run:toy-seed1"]
    out = capsys.readouterr().out
    assert re.search(r"toy-counted +7 +7 ", out)
    assert "1 results of public models are not computed, as their weights are not on" in out


@pytest.mark.parametrize(
    ("by", "column", "says"),
    [
        (1e-7, "within", None),
        (0.5, "outside", r"1 differ by more than 1e-06 .* most of all \(by 0.5\) {\"number\": 4}"),
        (np.nan, "outside", r"\(by inf\) {\"number\": 4}"),
        (None, None, r"1 were not computed again, such as {\"number\": 4}"),
    ],
)
def test_differences_are_counted_and_the_worst_is_named(
    house: House, by: float | None, column: str | None, says: str | None
) -> None:
    cache = Cache(house.cache)
    for entry in house.entries():
        number, value = json.loads(entry.text)["number"], entry.value
        changed = entry.kind == "toy-counted" and number == 4
        if changed and by is not None:
            value = {"number": value["number"] + by}
        if not changed or by is not None:
            kind = work.KINDS[entry.kind]
            cache.put(kind.ask({"number": number}), value, MADE)
    of = Ledger(house.results)
    table, said = gathering.compare(of.overview(), of, cache)
    row = table.set_index("kind").loc["toy-counted"]
    assert (row["equal"], row.get(column, 1)) == (5, 1)
    assert len(said) == (says is not None)
    assert re.search(says or "", "".join(said))


def test_bad_names_and_an_empty_ledger_are_refused(house: House) -> None:
    with pytest.raises(GatheringError, match=r"'abx-9' .*units: abx-1-a mexa-1-b; kinds"):
        house.reproduce("abx-9")
    house.put()
    with pytest.raises(GatheringError, match="holds no results to compare with"):
        house.reproduce()


WHOLE = """
import sys
from pathlib import Path
from tests import toy_results as toy
from tests.results.test_reproduction import execute, places
from notebooks.run import gathering, reproduction, runner as run
from xlx.results import paths, provenance, work
gathering.kinds = lambda: work.KINDS
provenance.environment = toy.environment
vars(paths).update(places(Path(sys.argv[1])))
with run.stopped_by_sigterm():
    sys.exit(reproduction.reproduce(execute=execute))
"""


@pytest.mark.slow
def test_a_stopped_reproduction_goes_on(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_SECONDS", "0.3")
    for least, how in ((2, signal.SIGKILL), (5, signal.SIGTERM)):
        child = subprocess.Popen([sys.executable, "-c", WHOLE, str(house.root)], cwd=paths.ROOT)
        while len(house.computed()) < least and child.poll() is None:
            time.sleep(0.05)
        child.send_signal(how)
        assert child.wait(30) != 0
        assert least <= len(house.computed()) < 6 + 2
    monkeypatch.setenv("TOY_SECONDS", "0")
    assert house.reproduce() == 0
    assert len(house.computed()) <= 6 + 2  # nothing is lost but the unit under way
