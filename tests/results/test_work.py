"""The loop for all that takes long: where results come from, what is kept, what is said."""

import errno
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests import toy_results as toy
from xlx.results import ledger, progress, provenance, settings, store, work
from xlx.results.ledger import Ask, Cache


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A cache and a ledger of the test's own, and a journal that nobody has written to."""
    monkeypatch.setattr(work, "_journal", work._Journal())
    work._ledger.cache_clear()
    with settings.settings(
        cache=tmp_path / "cache", ledger=tmp_path / "ledger", policy="use", progress=False
    ):
        yield
    work._ledger.cache_clear()


def abouts(n: int) -> list[dict[str, int]]:
    return [{"number": number} for number in range(n)]


@pytest.fixture
def asked(tmp_path: Path) -> Callable[..., list[int]]:
    """Ask for the first n numbers, of a kind that counts its computations or another."""

    def ask(n: int, kind: work.Kind = toy.COUNTED, also: Sequence[int] = ()) -> list[int]:
        numbers = [*range(n), *also]
        made = work.results(
            kind,
            [{"number": number} for number in numbers],
            lambda missing: [([i], (str(tmp_path), numbers[i])) for i in missing],
            alone=True,
        )
        return [int(value["number"][0]) for value in made]

    return ask


@pytest.fixture
def n_computed(tmp_path: Path) -> Callable[[], int]:
    return lambda: len(list(tmp_path.glob("?-*")))


@pytest.fixture
def ship(tmp_path: Path) -> Callable[..., Ask]:
    """Put one value of the kind that counts into the ledger."""

    def ship(number: int, value: int, **made: object) -> Ask:
        ask = toy.COUNTED.ask({"number": number})
        made = {**provenance.environment(), "code": toy.COUNTED.code, "seconds": 1.0, **made}
        entry = ledger.Entry(
            ask.kind, ask.identity, 1, ask.text, {"number": np.array([value])}, made
        )
        toy.write_ledger(tmp_path / "ledger", [entry], {ask.identity: "toy"})
        work._ledger.cache_clear()
        return ask

    return ship


def kept(tmp_path: Path, kind: work.Kind, number: int) -> ledger.Entry | None:
    return Cache(tmp_path / "cache" / "results").get(kind.ask({"number": number}))


# --- where values come from -----------------------------------------------------------------------


def test_values_come_in_the_order_asked_for_and_once(asked, n_computed) -> None:
    assert asked(3, also=[1]) == [0, 1, 2, 1]
    assert n_computed() == 3
    assert asked(4) == [0, 1, 2, 3]
    assert n_computed() == 4


def test_a_call_may_answer_several_asks_but_has_to_answer_all() -> None:
    made = work.results(
        toy.SQUARES, abouts(5), lambda missing: [(missing[:3], (0, 1, 2)), (missing[3:], (3, 4))]
    )
    assert [int(value["square"][0]) for value in made] == [0, 1, 4, 9, 16]
    with pytest.raises(RuntimeError, match=r'no call answered the ask \{"number": 6\}'):
        work.results(toy.SQUARES, [{"number": 5}, {"number": 6}], lambda _: [([0], (5,))])


def test_the_ledger_comes_before_the_cache(asked, ship) -> None:
    asked(1)
    ship(0, 77)
    assert asked(1) == [77]


def test_only_takes_the_ledger_and_names_what_it_lacks(
    asked, ship, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLX_NOTEBOOK", "abx-2-dynamics")
    ship(0, 0)
    asked(3)  # now in the cache
    with settings.settings(policy="only"):
        assert asked(1) == [0]
        with pytest.raises(work.MissingResultError) as told:
            asked(3)
    for part in ("abx-2-dynamics", "toy-counted", '{"number": 1}', "2 results", "make results"):
        assert part in str(told.value)


def test_processes_give_the_same_and_write_nothing_themselves(asked, tmp_path: Path) -> None:
    with settings.settings(workers=2):
        assert asked(4, toy.SIDE) == list(range(4))
    entry = kept(tmp_path, toy.SIDE, 3)
    assert entry.made["seconds"] >= 0
    assert entry.made["code"] == toy.SIDE.code
    assert set(provenance.PROVENANCE) == set(entry.made)


# --- faults ---------------------------------------------------------------------------------------


def test_an_error_leaves_what_came_before_it(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="3 cannot be had"):
        work.results(
            toy.FAILING, abouts(5), lambda missing: [([n], (n,)) for n in missing], alone=True
        )
    found = [kept(tmp_path, toy.FAILING, number) is not None for number in range(5)]
    assert found == [True, True, True, False, False]


def test_a_full_disk_stops_nothing_and_is_said(
    asked, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise store.StoreError(errno.ENOSPC, "the disk is full")

    monkeypatch.setattr(store, "write_whole", full)
    with pytest.warns(store.StoreWarning, match="not stored: the disk is full"):
        assert asked(2) == [0, 1]
    work.report()
    assert "2 computed here, 2 of them not stored" in capsys.readouterr().out


# --- computing again ------------------------------------------------------------------------------


@pytest.mark.parametrize("stored", [0, 1])
def test_the_audit_computes_again_beside_its_sample(
    asked, ship, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: int
) -> None:
    ask = ship(0, stored)
    (tmp_path / "sample").write_text(ask.identity)
    monkeypatch.setenv("XLX_AUDIT", str(tmp_path / "sample"))
    work._sample.cache_clear()
    with settings.settings(policy="only"):
        assert asked(1) == [stored]  # what is shown is what is shipped
    assert Cache(tmp_path / work.COMPUTED).get(ask).value["number"].tolist() == [0]


STORED = {"a": np.array([1.0, np.nan]), "b": np.array(["x"])}


@pytest.mark.parametrize(
    ("computed", "apart"),
    [
        (STORED, 0.0),
        (STORED | {"a": np.array([1.25, np.nan])}, 0.25),
        (STORED | {"a": np.array([np.nan, 1.0])}, np.inf),
        (STORED | {"a": np.array([np.inf, np.nan])}, np.inf),
        (STORED | {"b": np.array(["y"])}, np.inf),
        (STORED | {"a": np.array([1.0])}, np.inf),
        ({"a": STORED["a"]}, np.inf),
    ],
)
def test_how_far_two_values_are_apart(computed: dict, apart: float) -> None:
    assert work.largest_difference(STORED, computed) == apart


# --- what is said ---------------------------------------------------------------------------------


def test_what_a_notebook_asks_for_is_written_down_once(
    asked, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLX_JOURNAL", str(tmp_path))
    monkeypatch.setenv("XLX_NOTEBOOK", "toy-1")
    asked(2)
    asked(2)
    lines = [json.loads(line) for line in (tmp_path / "toy-1.jsonl").read_text().splitlines()]
    identities = [toy.COUNTED.ask(about).identity for about in abouts(2)]
    assert [line["identity"] for line in lines] == identities
    assert {(line["kind"], line["from"]) for line in lines} == {("toy-counted", "computed")}


def test_what_cannot_be_computed_here_is_taken_as_it_is(ship, monkeypatch) -> None:
    ship(0, 10)
    made = []

    def calls(missing: list[int]) -> list[work.Call]:
        made.extend(missing)
        return [([i], (i,)) for i in missing]

    for policy in ("use", "only", "ignore"):
        with settings.settings(policy=policy):
            stored, absent = work.results(
                toy.COUNTED, abouts(2), calls, alone=True, uncomputable=[0, 1]
            )
        assert int(stored["number"][0]) == 10
        assert absent is None
    assert not made


def test_minutes_and_disk_to_come_are_said_after_one_two_four(tmp_path, monkeypatch) -> None:
    clock, free = iter(range(0, 10_000, 600)), iter([10.0e9, 9.0e9, 8.0e9, 6.0e9])
    monkeypatch.setattr(progress, "time", SimpleNamespace(time=lambda: next(clock)))
    monkeypatch.setattr(store, "free_disk", lambda folder: next(free))
    monkeypatch.setenv("XLX_SAY", str(tmp_path / "said"))
    assert list(progress.forecast("abcdefg", "tuning", 7)) == list("abcdefg")
    assert (tmp_path / "said").read_text().splitlines() == [
        "tuning: 1 of 7, about 60 min and 6.0 GB to come",
        "tuning: 2 of 7, about 50 min and 5.0 GB to come",
        "tuning: 4 of 7, about 30 min and 3.0 GB to come",
    ]
