"""The loop around results: what it costs a unit, and what a second Dask worker brings.

Then two plans of large studies, run with units of the right number and size that compute nothing:
what is left is the loop, the wire and the scheduler.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests import toy_results as toy
from tests.bench import Row
from xlx.experiment import scoring
from xlx.results import settings, work
from xlx.results.paths import ROOT
from xlx.subjects import finetuning
from xlx.subjects.jobs import Job, Recipe
from xlx.text import labelled, parallel

UNITS = 500
#: Units of a study, numbers in a value, characters in the arguments of a call.
PLANS = {
    "39 checkpoints × 36 languages, probes of 13 layers": (39 * 36, 13 * 5 * 4, 60_000),
    "203 languages × 9 decoders, coverage of 33 layers": (203 * 9, 33 * 12 + 2 * 33 * 100, 30_000),
}

_CLUSTER = """
import sys
from distributed import LocalCluster
if __name__ == "__main__":
    cluster = LocalCluster(
        n_workers=int(sys.argv[1]), threads_per_worker=1, dashboard_address=None, silence_logs=50
    )
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


@contextmanager
def cluster(n_workers: int) -> Iterator[tuple[str, int]]:
    """Address and process of a scheduler with so many workers, each of which has loaded torch."""
    process = subprocess.Popen(
        [sys.executable, "-c", _CLUSTER, str(n_workers)],
        cwd=ROOT,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    address = process.stdout.readline().strip()
    try:
        with fresh(scheduler=address):  # whose first call imports
            units(2 * n_workers, 1, 1)
        yield address, process.pid
    finally:
        process.stdin.close()
        process.wait(timeout=60)


@contextmanager
def fresh(**changes: object) -> Iterator[None]:
    """A cache with nothing in it, and no ledger."""
    with tempfile.TemporaryDirectory() as folder:
        options = {"cache": folder, "ledger": f"{folder}/none", "progress": False, "device": "cpu"}
        with settings.settings(**options, **changes):
            yield


def units(n: int, numbers: int, characters: int) -> None:
    """So many results that take no time: numbers of a value, characters of a call's arguments."""
    text = "x" * characters
    work.results(
        toy.SIZED,
        [{"unit": unit, "numbers": numbers} for unit in range(n)],
        lambda missing: [([unit], (numbers, text)) for unit in missing],
        alone=True,
    )


def seconds(function: object, *arguments: object) -> float:
    began = time.perf_counter()
    function(*arguments)  # type: ignore[operator]
    return time.perf_counter() - began


def resident(pid: int) -> float:
    """Megabytes of a process in memory; Linux only."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096 / 2**20


def runs(n: int) -> Sequence[Job]:
    """Fine-tuning runs of a few seconds, which differ in the seed."""
    sets, _ = labelled.parallel_examples("PI", ["en", "de"], "train", 60)
    recipe = Recipe(epochs=3, batch_size=16, learning_rate=3e-4, every=100, dtype="bfloat16")
    return [Job("mini-xlmr", sets["en"], {"de": sets["de"]}, recipe, seed) for seed in range(n)]


def checkpoints(n: int, first: int) -> None:
    """ABX of one model on several choices of sentences, as of so many checkpoints.

    ``first`` is the first seed of these choices: workers keep embeddings, so each cluster has its
    own.
    """
    whole = parallel.load("wmt24pp", ["en", "de", "fr", "ru", "tr", "ja"], drop_duplicates=True)
    texts = [whole.take(150, seed) for seed in range(first, first + n)]
    subject = scoring.Subject("mini-xlmr")
    work.results(
        scoring.SCORE,
        [subject.about(text) for text in texts],
        lambda missing: (([i], (subject, texts[i], "raw", ["LD"])) for i in missing),
    )


def run() -> Iterator[Row]:
    """Rows of the bench's table."""
    with fresh():
        units(5, 10, 10)
        for what, aim in (("computed and kept, here", "< 2"), ("found in the cache", "")):
            yield Row(f"a result {what}", 1000 * seconds(units, UNITS, 10, 10) / UNITS, "ms", aim)
    took: dict[str, list[float]] = {"8 fine-tuning runs": [], "8 checkpoints, ABX": []}
    jobs = runs(8)
    for n_workers in (1, 2):
        with cluster(n_workers) as (address, scheduler):
            with fresh(scheduler=address):
                value = 1000 * seconds(units, UNITS, 10, 10) / UNITS
                took["8 fine-tuning runs"].append(seconds(finetuning.finetune_all, jobs))
                took["8 checkpoints, ABX"].append(seconds(checkpoints, 8, 100 * n_workers))
            if n_workers == 1:
                continue
            yield Row("a result from 2 Dask workers", value, "ms", "< 20")
            for name, (n, numbers, characters) in PLANS.items():
                before = resident(scheduler)
                with fresh(scheduler=address):
                    value = seconds(units, n, numbers, characters)
                yield Row(f"{name}: {n:,} units, loop and wire", value, "s")
                yield Row("   the scheduler's growth", resident(scheduler) - before, "MB")
    for name, (one, two) in took.items():
        yield Row(f"{name}: 2 Dask workers over 1", one / two, "times", "> 1.8")
