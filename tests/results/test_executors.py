"""Processes beside this one and Dask clusters: the same values, whatever is lost on the way."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests import toy_results as toy
from xlx.results import executors, settings, work
from xlx.results.executors import WorkerError
from xlx.results.paths import ROOT

distributed = pytest.importorskip("distributed")

SCHEDULER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,
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
    with settings.settings(cache=tmp_path / "cache", ledger=tmp_path / "ledger", progress=False):
        yield


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a scheduler with two workers, in processes of their own."""
    process = subprocess.Popen(
        [sys.executable, "-c", SCHEDULER],
        text=True,
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    with process:
        address = process.stdout.readline().strip()
        assert address.startswith("tcp://")
        yield address
        process.stdin.close()
        process.wait(timeout=30)


@pytest.fixture
def there(cluster: str) -> Iterator[None]:
    with settings.settings(scheduler=cluster):
        yield


def slow(n: int, seconds: float = 0) -> list[int]:
    """What the slow kind gives for n numbers."""
    made = work.results(
        toy.SLOW,
        [{"number": number} for number in range(n)],
        lambda missing: [([position], (position, seconds)) for position in missing],
        alone=True,
    )
    return [int(value["number"][0]) for value in made]


@pytest.mark.slow
def test_a_cluster_gives_what_this_process_gives(cluster: str, tmp_path: Path) -> None:
    def everything() -> list:
        squares = work.results(
            toy.SQUARES,
            [{"n": n} for n in range(5)],
            lambda missing: [(missing[:3], (0, 1, 2)), (missing[3:], (3, 4))],
        )
        return [*squares, work.result(toy.TABLE, {"rows": 4}, 4)]

    here = everything()
    with settings.settings(scheduler=cluster, cache=tmp_path / "other"):
        there = everything()
    assert len(list((tmp_path / "other").rglob("*.arrow"))) == 6
    assert [work.largest_difference(a, b) for a, b in zip(here, there, strict=True)] == [0.0] * 6


@pytest.mark.slow
def test_an_error_on_a_worker_comes_back(there: None) -> None:
    with pytest.raises(ValueError, match="3 cannot be had"):
        work.result(toy.FAILING, {"number": 3}, 3)


@contextmanager
def killing(address: str, times: int, every: float) -> Iterator[list[int]]:
    """Kill a worker again and again; the numbers of their processes."""
    stopped, killed = threading.Event(), []
    client = distributed.Client(address, set_as_default=False)

    def kill() -> None:
        while len(killed) < times:
            # A worker that is killed while it starts is given up by its nanny.
            client.wait_for_workers(2, timeout=60)
            if stopped.wait(every):
                return
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    try:
        yield killed
    finally:
        stopped.set()
        killer.join(timeout=30)
        client.wait_for_workers(2, timeout=60)
        client.close()


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(there: None, cluster: str) -> None:
    with killing(cluster, times=1, every=0.5) as killed:
        assert slow(20, 0.2) == list(range(20))
    assert killed


def test_a_scheduler_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "PATIENCE", 0.5)
    with (
        settings.settings(scheduler="tcp://127.0.0.1:9"),
        pytest.raises(WorkerError, match=r"tcp://127.0.0.1:9 does not answer"),
    ):
        slow(1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["xlx", "torch"])
def test_another_version_on_a_worker_is_refused_with_both(
    there: None, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    theirs = executors.versions()
    monkeypatch.setattr(executors, "versions", lambda: theirs | {name: "0.0.1"})
    with pytest.raises(WorkerError, match=f"has {name} .*and the caller {name} 0.0.1"):
        slow(1)
