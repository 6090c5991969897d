"""Processes beside this one and Dask clusters: the same values, whatever is lost on the way."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import xlx
from tests import toy_results as toy
from xlx.core import executors, work
from xlx.core.paths import ROOT

distributed = pytest.importorskip("distributed")

SCHEDULER = """
import sys, time
from distributed import LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(
        n_workers=int(sys.argv[1]), threads_per_worker=1, processes=True, dashboard_address=None,
        worker_class="distributed.Nanny", silence_logs=50,
    )
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
    cluster.close()
"""


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cache and a ledger of the test's own."""
    monkeypatch.setattr(work, "_journal", work._Journal())
    with xlx.settings(cache=tmp_path / "cache", ledger=tmp_path / "ledger", progress=False):
        yield


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a scheduler with two workers, in processes of their own."""
    with running(2) as address:
        yield address


class running:
    """A cluster while the block lasts; gives its address."""

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers

    def __enter__(self) -> str:
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", SCHEDULER, str(self.n_workers)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            text=True, cwd=ROOT, env=environment,
        )  # fmt: skip
        assert self.process.stdout is not None
        address = self.process.stdout.readline().strip()
        assert address.startswith("tcp://")
        return address

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=30)


def slow(n: int, seconds: float) -> list[int]:
    """What the slow kind gives for n numbers."""
    made = work.results(
        toy.SLOW,
        [{"number": number} for number in range(n)],
        lambda missing: [([position], (position, seconds)) for position in missing],
        alone=True,
    )
    return [int(value["number"][0]) for value in made]


def test_a_cluster_gives_what_this_process_gives(cluster: str, tmp_path: Path) -> None:
    def everything() -> list:
        squares = work.results(
            toy.SQUARES,
            [{"n": n} for n in range(5)],
            lambda missing: [(missing[:3], (0, 1, 2)), (missing[3:], (3, 4))],
        )
        return [*squares, work.result(toy.TABLE, {"rows": 4}, 4)]

    here = everything()
    with xlx.settings(scheduler=cluster, cache=tmp_path / "other"):
        there = everything()
    assert len(list((tmp_path / "other").rglob("*.arrow"))) == 6
    assert [work.largest_difference(a, b) for a, b in zip(here, there, strict=True)] == [0.0] * 6


def test_an_error_on_a_worker_comes_back(cluster: str) -> None:
    with xlx.settings(scheduler=cluster), pytest.raises(ValueError, match="3 cannot be had"):
        work.results(
            toy.FAILING,
            [{"number": n} for n in range(5)],
            lambda missing: [([n], (n,)) for n in missing],
            alone=True,
        )


def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    with running(2) as address, xlx.settings(scheduler=address):
        client = distributed.Client(address, set_as_default=False)
        stopped, killed = threading.Event(), []

        def kill() -> None:
            for _ in range(3):
                # A worker that is killed while it starts is given up by its nanny.
                client.wait_for_workers(2, timeout=60)
                if stopped.wait(1.5):
                    return
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[-1], signal.SIGKILL)

        killer = threading.Thread(target=kill, daemon=True)
        killer.start()
        try:
            assert slow(30, 0.3) == list(range(30))
            assert killed
        finally:
            stopped.set()
            killer.join(timeout=30)
            client.close()


def test_a_scheduler_that_does_not_answer() -> None:
    began = time.monotonic()
    with (
        xlx.settings(scheduler="tcp://127.0.0.1:9"),
        pytest.raises(executors.WorkerError, match=r"tcp://127.0.0.1:9 does not answer"),
    ):
        slow(1, 0)
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("name", ["xlx", "torch"])
def test_another_version_on_a_worker_is_refused_with_both(
    cluster: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    theirs = executors.versions()
    monkeypatch.setattr(executors, "versions", lambda: theirs | {name: "0.0.1"})
    with (
        xlx.settings(scheduler=cluster),
        pytest.raises(executors.WorkerError, match=f"has {name} .*and the caller {name} 0.0.1"),
    ):
        slow(1, 0)


def test_a_worker_may_be_lost_while_it_is_asked_for_its_version(
    cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {"tcp://gone": distributed.comm.CommClosedError("Stream is closed")}
    monkeypatch.setattr(distributed.Client, "run", lambda *_, on_error: answers)
    with xlx.settings(scheduler=cluster):
        assert slow(2, 0) == [0, 1]
        answers["tcp://bare"] = ModuleNotFoundError("No module named 'xlx'")
        with pytest.raises(executors.WorkerError, match="worker tcp://bare cannot run xlx"):
            slow(3, 0)
        answers["tcp://bare"] = FileNotFoundError(2, "No such file", "pyproject.toml")
        with pytest.raises(executors.WorkerError, match=r"cannot run xlx .*pyproject\.toml"):
            slow(3, 0)


def test_a_scheduler_that_goes_away_is_named_and_the_client_closed(
    cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []
    close = distributed.Client.close

    def gone(*_: object, on_error: str) -> None:
        raise distributed.comm.CommClosedError("Stream is closed")

    monkeypatch.setattr(distributed.Client, "run", gone)
    monkeypatch.setattr(distributed.Client, "close", lambda c: (closed.append(c), close(c))[1])
    with (
        xlx.settings(scheduler=cluster),
        pytest.raises(executors.WorkerError, match=f"{cluster} went away"),
    ):
        slow(3, 0)
    assert closed


@pytest.mark.parametrize("workers", [None, 1, 3])
def test_number_of_processes(workers: int | None) -> None:
    with xlx.settings(workers=workers, device="cpu"):
        assert executors.n_workers() == (workers or os.cpu_count())
    with xlx.settings(workers=workers, device="cuda"):
        assert executors.n_workers() == (workers or 1)


def test_what_a_worker_may_take_as_lost() -> None:
    assert executors._is_lost(distributed, distributed.scheduler.KilledWorker("x", "y", 1))
    assert not executors._is_lost(distributed, ValueError("x"))
