"""Work that is killed at any moment is resumed to equal results, and leaves nothing behind.

    KILLS=12 python -m pytest tests/results/test_kills.py -s

kills each kind of work twelve times and prints a table; without it, two of them are killed once.
"""

import hashlib
import multiprocessing
import os
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests import slow, tiny
from tests import toy_results as toy
from tests.experiment.test_asked_models import headed
from tests.experiment.test_grids import PAIRS
from tests.experiment.test_transfers import RECIPE, task
from tests.results import test_reproduction
from xlx.experiment import grids, transfers
from xlx.report import command
from xlx.results import paths, provenance, settings, work
from xlx.subjects.predicting import Headed

N = int(os.environ.get("KILLS", "1"))
CODES = ("en", "de", "sw")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tiny models and a text, made before anything is killed."""
    place = tmp_path_factory.mktemp("place")
    tiny.save(place / "own", "llama")
    tiny.save(place / "encoder")
    headed(place / "nli")
    (place / "text").mkdir()
    for code in CODES:
        lines = [f"{line} {code} {i}\n" for i, line in enumerate(tiny.SENTENCES)]
        (place / "text" / f"{code}.txt").write_text("".join(lines), encoding="utf-8")
    return place


def lens(name: str, *options: str) -> Callable[[Path, Path], None]:
    """A command that writes a page and its tables."""

    def run(place: Path, out: Path) -> None:
        given = [name, str(place / "own"), "--text", str(place / "text"), "--out", str(out)]
        assert command.main([*given, *options]) == 0

    return run


def reported(place: Path, out: Path) -> None:
    lens("report", "--reference", "none", "--no-notebook")(place, out)


def aligned(place: Path, out: Path) -> None:
    lens("mexa")(place, out)


def crossed(place: Path, out: Path) -> None:
    """Every pair of languages of a grid."""
    grid = grids.grid([Headed(str(place / "nli"), None)], PAIRS)[0]
    out.mkdir(exist_ok=True)
    np.save(out / "logits.npy", grid.logits)


def tuned(place: Path, out: Path) -> None:
    """Three fine-tunings."""
    found = transfers.transfer_task([str(place / "encoder")], task(), ["en"], [RECIPE], (1, 2, 3))
    out.mkdir(exist_ok=True)
    for run in found.runs:
        np.savez(out / f"{run.seed}.npz", **run.predictions, losses=run.losses)


def reproduced(place: Path, out: Path) -> None:
    """Toy notebooks, computed again and compared with a ledger."""
    vars(paths).update(test_reproduction.places(out))
    provenance.environment = toy.environment
    test_reproduction.gathering.kinds = lambda: work.KINDS
    os.environ |= {"TOY_FOLDER": str(out), "TOY_SECONDS": "0.05"}
    if not (out / "whole").exists():  # killed while it was laid out: from the start
        shutil.rmtree(out, ignore_errors=True)
        test_reproduction.House(out)
        (out / "whole").touch()
    with test_reproduction.runner.stopped_by_sigterm():
        assert not test_reproduction.reproduction.reproduce(execute=test_reproduction.execute)


#: Killed in `make test`.
FAST = ("mexa",)
WORKS = {
    "report": reported,
    "mexa": aligned,
    "grids": crossed,
    "fine-tuning": tuned,
    "reproduce": reproduced,
}


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
    """What lies in a folder; toy computations leave a file each, as often as they are made."""
    within = (str(x.relative_to(folder)) for x in folder.rglob("*") if x.is_file())
    return sorted(name for name in within if "counts/" not in name)


def numbers(out: Path) -> dict[str, str]:
    """The tables and arrays that were written: name → content."""
    read = {".csv": pd.read_csv, ".parquet": pd.read_parquet}
    return {
        name: read[suffix](out / name).to_csv()
        if suffix in read
        else hashlib.sha256((out / name).read_bytes()).hexdigest()
        for name in files(out)
        if (suffix := Path(name).suffix) in (*read, ".npy", ".npz")
    }


@pytest.mark.parametrize("name", slow.but(FAST, WORKS if N > 1 else ("mexa", "fine-tuning")))
def test_work_that_is_killed_goes_on(name: str, place: Path, tmp_path: Path) -> None:
    whole, rows = tmp_path / "whole", []
    process = started(name, place, whole)
    process.join(300)
    assert process.exitcode == 0, (whole / "said").read_text()[-2000:]
    seconds = float((whole / "seconds").read_text())
    assert numbers(whole / "out")
    moments = random.Random(N)
    while len(rows) < N:
        room = tmp_path / f"kill-{len(rows)}"
        process = started(name, place, room)
        if len(rows) % 2:  # as soon as so many files are there, which may be half written
            appeared(process, room, moments.randint(2, len(files(whole)) - 1))
        else:
            process.join(moments.uniform(0, seconds))
        process.kill()
        process.join()
        if process.exitcode == 0:  # it was through before: earlier next time
            seconds *= 0.8
            shutil.rmtree(room)
            continue
        rows.append(len(files(room)))
        again = started(name, place, room)
        again.join(300)
        assert again.exitcode == 0, (room / "said").read_text()[-2000:]
        assert numbers(room / "out") == numbers(whole / "out")
        assert files(room) == files(whole)
    print(f"{name}: killed {N} times in {seconds:.1f} s, with this many files there:", *rows)
