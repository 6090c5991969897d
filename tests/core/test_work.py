"""The loop for all that takes long: where results come from, what is kept, what is said."""

import errno
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import xlx
from tests import toy_results as toy
from xlx.core import ledger, provenance, store, work
from xlx.core.ledger import Ask, Cache, Ledger


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A cache and a ledger of the test's own, and a journal that nobody has written to."""
    monkeypatch.setattr(work, "_journal", work._Journal())
    work._ledger.cache_clear()
    with xlx.settings(
        cache=tmp_path / "cache", ledger=tmp_path / "ledger", policy="use", progress=False
    ):
        yield
    work._ledger.cache_clear()


def each(*before: object) -> Callable[[Sequence[int]], list[work.Call]]:
    """A call for each position, which is its number too."""
    return lambda missing: [([position], (*before, position)) for position in missing]


def abouts(n: int) -> list[dict[str, int]]:
    return [{"number": number} for number in range(n)]


def numbers(values: Sequence[ledger.Value]) -> list[int]:
    return [int(value["number"][0]) for value in values]


def ship(kind: work.Kind, about: dict, value: ledger.Value, root: Path, **made: object) -> Ask:
    """Put one value into the ledger."""
    ask = kind.ask(about)
    whole = {**provenance.environment(), "code": kind.code, "seconds": 1.0, **made}
    before = list(Ledger(root).entries())
    entry = ledger.Entry(kind.name, ask.identity, kind.version, ask.text, value, whole)
    entries = [*before, entry]
    ledger.write_ledger(root, entries, {x.identity: "toy" for x in entries})
    work._ledger.cache_clear()
    return ask


# --- where values come from -----------------------------------------------------------------------


def test_values_come_in_the_order_asked_for_and_once(tmp_path: Path) -> None:
    made = work.results(toy.COUNTED, [*abouts(3), {"number": 1}], each(str(tmp_path)), alone=True)
    assert numbers(made) == [0, 1, 2, 1]
    assert len(list(tmp_path.glob("?-*"))) == 3
    again = work.results(toy.COUNTED, abouts(4), each(str(tmp_path)), alone=True)
    assert numbers(again) == [0, 1, 2, 3]
    assert len(list(tmp_path.glob("?-*"))) == 4


def test_a_call_may_answer_several_asks() -> None:
    found = work.results(
        toy.SQUARES, abouts(5), lambda missing: [(missing[:3], (0, 1, 2)), (missing[3:], (3, 4))]
    )
    assert [int(value["square"][0]) for value in found] == [0, 1, 4, 9, 16]


def test_a_call_that_forgets_an_ask_is_an_error() -> None:
    with pytest.raises(RuntimeError, match=r'the ask \{"number": 1\}'):
        work.results(toy.SQUARES, abouts(2), lambda missing: [(missing[:1], (0,))])


def test_the_ledger_comes_before_the_cache(tmp_path: Path) -> None:
    work.results(toy.COUNTED, abouts(1), each(str(tmp_path)), alone=True)
    ship(toy.COUNTED, {"number": 0}, {"number": np.array([77])}, tmp_path / "ledger")
    assert numbers(work.results(toy.COUNTED, abouts(1), each(str(tmp_path)), alone=True)) == [77]


def test_only_takes_the_ledger_and_names_what_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLX_NOTEBOOK", "abx-2-dynamics")
    ship(toy.COUNTED, {"number": 0}, {"number": np.array([0])}, tmp_path / "ledger")
    work.results(toy.COUNTED, abouts(3), each(str(tmp_path)), alone=True)  # now in the cache
    with xlx.settings(policy="only"):
        assert numbers(work.results(toy.COUNTED, abouts(1), each(""), alone=True)) == [0]
        with pytest.raises(work.MissingResultError) as told:
            work.results(toy.COUNTED, abouts(3), each(""), alone=True)
    for part in ("abx-2-dynamics", "toy-counted", '{"number": 1}', "1 more", "make results"):
        assert part in str(told.value)


def test_ignore_computes_what_the_ledger_has_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    ship(toy.COUNTED, {"number": 0}, {"number": np.array([77])}, tmp_path / "ledger")
    for _ in range(2):
        with xlx.settings(policy="ignore"):
            made = work.results(toy.COUNTED, abouts(2), each(str(tmp_path)), alone=True)
        assert numbers(made) == [0, 1]
    assert len(list(tmp_path.glob("?-*"))) == 2


def test_means_are_kept_on_the_machine_under_every_policy(tmp_path: Path) -> None:
    with xlx.settings(policy="only"):
        for _ in range(2):
            made = work.results(toy.MEANS, abouts(2), each(str(tmp_path)), alone=True)
            assert numbers(made) == [0, 1]
    assert len(list(tmp_path.glob("?-*"))) == 2
    assert not work._journal.origins


def test_a_new_version_is_another_result() -> None:
    newer = work.Kind("toy-versions", toy.slow, version=2)
    assert newer.ask({"x": 1}) != Ask("toy-versions", {"x": 1}, 1)


def test_two_kinds_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two kinds of result are called 'toy-squares'"):
        work.Kind("toy-squares", toy.slow)


def test_an_error_leaves_what_came_before_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="3 cannot be had"):
        work.results(toy.FAILING, abouts(5), each(), alone=True)
    kept = [Cache(tmp_path / "cache" / "results").get(toy.FAILING.ask(x)) for x in abouts(5)]
    assert [entry is not None for entry in kept] == [True, True, True, False, False]


# --- side by side ---------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_processes_give_the_same_and_write_nothing_themselves(tmp_path: Path, workers: int) -> None:
    with xlx.settings(workers=workers):
        made = work.results(toy.SIDE, abouts(6), each(str(tmp_path)), alone=True)
    assert numbers(made) == list(range(6))
    entry = Cache(tmp_path / "cache" / "results").get(toy.SIDE.ask({"number": 5}))
    assert entry is not None
    assert entry.made["seconds"] >= 0
    assert entry.made["code"] == toy.SIDE.code
    assert set(provenance.PROVENANCE) == set(entry.made)


# --- faults ---------------------------------------------------------------------------------------


def test_a_full_disk_stops_nothing_and_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def full(*_: object, **__: object) -> None:
        raise store.StoreError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr(store, "write_whole", full)
    with pytest.warns(store.StoreWarning, match="not stored: the disk is full"):
        made = work.results(toy.COUNTED, abouts(2), each(str(tmp_path)), alone=True)
    assert numbers(made) == [0, 1]
    work.report()
    assert "2 computed here, 2 of them not stored" in capsys.readouterr().out


def test_a_torn_cache_file_is_computed_again(tmp_path: Path) -> None:
    work.results(toy.COUNTED, abouts(1), each(str(tmp_path)), alone=True)
    path = Cache(tmp_path / "cache" / "results").path(toy.COUNTED.ask({"number": 0}))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.warns(ledger.LedgerWarning, match="not used"):
        made = work.results(toy.COUNTED, abouts(1), each(str(tmp_path)), alone=True)
    assert numbers(made) == [0]
    assert len(list(tmp_path.glob("?-*"))) == 2


RUN = """
import sys, xlx
from tests import toy_results as toy
from xlx.core import work
with xlx.settings(cache=sys.argv[1], ledger=sys.argv[1] + "/none", progress=False):
    work.results(
        toy.SLOW, [{"number": n} for n in range(20)],
        lambda missing: [([n], (n, 0.02)) for n in missing], alone=True,
    )
"""


def test_a_killed_run_loses_only_what_it_was_at(tmp_path: Path) -> None:
    call = [sys.executable, "-c", RUN, str(tmp_path)]
    folder = tmp_path / "results" / "toy-slow"
    running = subprocess.Popen(call, cwd=xlx.core.paths.ROOT)
    for _ in range(2000):
        if len(list(folder.rglob("*.arrow"))) >= 5 or running.poll() is not None:
            break
        time.sleep(0.01)
    running.send_signal(signal.SIGKILL)
    running.wait()
    kept = {path: path.stat().st_mtime_ns for path in folder.rglob("*.arrow")}
    assert len(kept) >= 5
    subprocess.run(call, cwd=xlx.core.paths.ROOT, check=True)
    assert len(list(folder.rglob("*.arrow"))) == 20
    assert all(path.stat().st_mtime_ns == before for path, before in kept.items())


# --- computing again ------------------------------------------------------------------------------


def sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *asks: Ask) -> Path:
    """Let the audit want these; the journal's folder."""
    file = tmp_path / "sample"
    file.write_text("\n".join(ask.identity for ask in asks))
    monkeypatch.setenv("XLX_AUDIT", str(file))
    monkeypatch.setenv("XLX_JOURNAL", str(tmp_path / "journal"))
    monkeypatch.setenv("XLX_NOTEBOOK", "toy-1-audit")
    work._sample.cache_clear()
    return tmp_path / "journal" / "toy-1-audit.jsonl"


@pytest.mark.parametrize(("stored", "apart"), [(4, 0.0), (5, 1.0)])
def test_the_audit_computes_again_and_writes_down_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: int, apart: float
) -> None:
    ask = ship(toy.COUNTED, {"number": 4}, {"number": np.array([stored])}, tmp_path / "ledger")
    journal = sampled(tmp_path, monkeypatch, ask)
    call = ([{"number": 4}], lambda missing: [(missing, (str(tmp_path), 4))])
    with xlx.settings(policy="only"):
        (found,) = work.results(toy.COUNTED, *call, alone=True)
    assert found["number"] == stored  # what is shown is what is shipped
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [line["apart"] for line in lines if "apart" in line] == [apart]
    if apart:
        with (
            xlx.settings(policy="verify"),
            pytest.raises(work.NotReproducedError, match=r"differs by 1 .*raise its version"),
        ):
            work.results(toy.COUNTED, *call, alone=True)


@pytest.mark.parametrize(
    ("computed", "apart"),
    [
        ({"a": np.array([1.0, np.nan]), "b": np.array(["x"])}, 0.0),
        ({"a": np.array([1.25, np.nan]), "b": np.array(["x"])}, 0.25),
        ({"a": np.array([np.nan, 1.0]), "b": np.array(["x"])}, np.inf),
        ({"a": np.array([1.0, np.nan]), "b": np.array(["y"])}, np.inf),
        ({"a": np.array([1.0]), "b": np.array(["x"])}, np.inf),
        ({"a": np.array([1.0, np.nan])}, np.inf),
    ],
)
def test_how_far_two_values_are_apart(computed: dict, apart: float) -> None:
    stored = {"a": np.array([1.0, np.nan]), "b": np.array(["x"])}
    assert work.largest_difference(stored, computed) == apart


# --- what is said ---------------------------------------------------------------------------------


def test_the_report_says_where_results_came_from(
    tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    ship(
        toy.COUNTED, {"number": 0}, {"number": np.array([0])}, tmp_path / "ledger",
        cpu="EPYC", torch="2.13.0", date="2026-11-22",
    )  # fmt: skip
    work.results(toy.COUNTED, abouts(3), each(str(tmp_path)), alone=True)
    work.report()
    assert capsys.readouterr().out == (
        "3 results: 1 from the ledger (EPYC, torch 2.13.0, 2026-11-22), 2 computed here\n"
    )


def test_the_report_says_what_other_code_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    work.results(toy.COUNTED, abouts(2), each(str(tmp_path)), alone=True)
    monkeypatch.setattr(work, "_journal", work._Journal())
    monkeypatch.setattr(provenance, "code_hash", lambda function: "another")
    work.results(toy.COUNTED, abouts(2), each(str(tmp_path)), alone=True)
    work.report()
    assert "2 from the cache (2 by other code), 0 computed here" in capsys.readouterr().out


def test_what_a_notebook_asks_for_is_written_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = sampled(tmp_path, monkeypatch)
    for _ in range(2):
        work.results(toy.COUNTED, abouts(2), each(str(tmp_path)), alone=True)
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [(line["kind"], line["from"]) for line in lines] == [("toy-counted", "computed")] * 2
    assert {line["identity"] for line in lines} == {
        toy.COUNTED.ask(about).identity for about in abouts(2)
    }
    assert os.environ["XLX_NOTEBOOK"] == journal.stem
