"""Work that is killed at any moment is resumed to equal results, and leaves nothing behind.

    KILLS=12 python -m pytest tests/results/test_kills.py -s

kills each kind of work twelve times; without it, each is killed once. What else is killed stands
with it: grids at each rename, reproduction, fine-tuning with each algorithm.
"""

import hashlib
import multiprocessing
import os
import random
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from tests import slow, tiny
from tests.experiment.test_transfers import RECIPE, task
from xlx.experiment import transfers
from xlx.report import command
from xlx.results import settings

N = int(os.environ.get("KILLS", "1"))
CODES = ("en", "de", "sw")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny models and a text, made before anything is killed."""
    place = tmp_path_factory.mktemp("place")
    tiny.save(place / "own", "llama")
    tiny.save(place / "encoder")
    (place / "text").mkdir()
    for code in CODES:
        lines = [f"{line} {code} {i}\n" for i, line in enumerate(tiny.SENTENCES)]
        (place / "text" / f"{code}.txt").write_text("".join(lines), encoding="utf-8")
    return place


def aligned(place: Path, out: Path) -> None:
    """A command that writes a page and its tables."""
    given = ["mexa", str(place / "own"), "--text", str(place / "text"), "--out", str(out)]
    assert command.main(given) == 0


def tuned(place: Path, out: Path) -> None:
    """Three fine-tunings."""
    found = transfers.transfer_task([str(place / "encoder")], task(), ["en"], [RECIPE], (1, 2, 3))
    out.mkdir(exist_ok=True)
    for run in found.runs:
        np.savez(out / f"{run.seed}.npz", **run.predictions, losses=run.losses)


WORKS = {"mexa": aligned, "fine-tuning": tuned}


def child(name: str, place: Path, cache: Path, out: Path) -> None:
    """What is killed: a process of its own."""
    with open(out.parent / "said", "w") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
        options = {"cache": cache, "ledger": cache / "none", "progress": False, "device": "cpu"}
        begun = time.monotonic()
        with settings.settings(**options, policy="use", workers=1):
            WORKS[name](place, out)
        (out.parent / "seconds").write_text(str(time.monotonic() - begun))


def started(name: str, place: Path, room: Path) -> multiprocessing.Process:
    room.mkdir(exist_ok=True)
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload([__name__])
    (room / "said").unlink(missing_ok=True)
    process = made.Process(target=child, args=(name, place, room / "cache", room / "out"))
    process.start()
    while process.is_alive() and not (room / "said").exists():  # it imports, and has not begun
        time.sleep(0.01)
    return process


def appeared(process: multiprocessing.Process, room: Path, n: int) -> None:
    """Waits until so many files are there, or the process has ended."""
    while process.is_alive() and sum(len(names) for *_, names in os.walk(room)) < n:
        time.sleep(0.0005)


def files(folder: Path) -> list[str]:
    """What lies in a folder."""
    return sorted(str(x.relative_to(folder)) for x in folder.rglob("*") if x.is_file())


def numbers(out: Path) -> dict[str, str]:
    """The tables and arrays that were written: name → hash of the content."""
    written = [name for name in files(out) if name.endswith((".csv", ".npz"))]
    return {name: hashlib.sha256((out / name).read_bytes()).hexdigest() for name in written}


@pytest.mark.parametrize("name", slow.but(("mexa",), WORKS))
def test_work_that_is_killed_goes_on(name: str, place: Path, tmp_path: Path) -> None:
    whole, n_killed = tmp_path / "whole", 0
    process = started(name, place, whole)
    process.join(300)
    assert process.exitcode == 0, (whole / "said").read_text()[-2000:]
    seconds = float((whole / "seconds").read_text())
    assert numbers(whole / "out")
    moments = random.Random(N)
    while n_killed < N:
        room = tmp_path / f"kill-{n_killed}"
        process = started(name, place, room)
        if n_killed % 2:  # as soon as so many files are there, which may be half written
            appeared(process, room, moments.randint(2, len(files(whole)) - 1))
        else:
            process.join(moments.uniform(0, seconds))
        process.kill()
        process.join()
        if process.exitcode == 0:  # it was through before: earlier next time
            seconds *= 0.8
            shutil.rmtree(room)
            continue
        n_killed += 1
        again = started(name, place, room)
        again.join(300)
        assert again.exitcode == 0, (room / "said").read_text()[-2000:]
        assert numbers(room / "out") == numbers(whole / "out")
        assert files(room) == files(whole)
