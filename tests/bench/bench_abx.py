"""Exact ABX at the paper's size: 36 languages, 960 sentences, width 768, one layer.

The yardstick is one float32 product of all sentences with all sentences, which everything here can
be read from; the task is to score 630 pairs in less than that.

Beside fastabx, which counts every triplet of one pair, where it has an environment of its own:
`python3.12 -m venv cache/tools/fastabx; cache/tools/fastabx/bin/pip install fastabx`.
"""

import multiprocessing
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from timeit import timeit

import numpy as np
import torch

from tests.bench import Row, best_of
from xlx.measures import abx
from xlx.results.paths import CACHE

LANGUAGES = 36
SENTENCES = 960
DIM = 768
LONG = 8_000, 384  # sentences and width of a pair
#: What scores by fastabx, and how many sentences: LD, MD, seconds of the processor.
OTHER, FEW = CACHE / "tools" / "fastabx" / "bin" / "python", 200
_THEIRS = """
import sys, time, numpy as np
from fastabx import Dataset, Score, Task
held = np.load(sys.argv[1])
rows, n, began = np.concatenate([*held.values()]), len(held["a"]), time.process_time()
for on, across in (("language", "position"), ("position", "language")):
    labels = {"language": np.repeat([*held], n), "position": [*range(n)] * 2}
    task = Task(Dataset.from_numpy(rows, labels), on=on, across=[across])
    print(1 - Score(task, "angular", progress=False).collapse(weighted=True))
print(time.process_time() - began)
"""


def vectors() -> dict[str, np.ndarray]:
    """Random translations: a meaning, a language and noise."""
    rng = np.random.default_rng(0)
    meaning = rng.normal(size=(SENTENCES, DIM)).astype(np.float32)
    return {
        f"l{number:02}": meaning
        + rng.normal(size=DIM).astype(np.float32)
        + rng.normal(size=(SENTENCES, DIM)).astype(np.float32)
        for number in range(LANGUAGES)
    }


def peak_during(task: Callable[[], object]) -> int:
    """Most bytes that the process grew by while the task ran; Linux only."""

    def held(what: str) -> int:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return 1024 * int(status.partition(f"{what}:")[2].split()[0])

    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the highest is counted anew
    before = held("VmRSS")
    task()
    return held("VmHWM") - before


def long_pair() -> dict[str, np.ndarray]:
    """Two languages of many sentences."""
    both = np.random.default_rng(1).standard_normal((2, *LONG), dtype=np.float32)
    return dict(zip("ab", both, strict=True))


def peak_of_pair() -> int:
    """Asked of a process of its own: memory that one has freed would hide what is needed."""
    long = long_pair()
    return peak_during(lambda: abx.exact(long))


def beside_fastabx() -> list[Row]:
    """The same vectors of a pair, by the same triplets; no row where the package is not here."""
    if not OTHER.exists():
        return []
    pair = dict(zip("ab", (x[:FEW] for x in vectors().values()), strict=False))
    with tempfile.TemporaryDirectory() as folder:
        np.savez(file := Path(folder) / "pair.npz", **pair)
        call = [OTHER, "-I", "-c", _THEIRS, file]
        said = subprocess.run(call, check=True, capture_output=True, text=True).stdout.split()
    *theirs, seconds = map(float, said)
    ours = [abx.exact(pair).scores[task].mean() for task in ("LD", "MD")]
    assert np.allclose(ours, theirs, rtol=0, atol=1e-6), "the two packages disagree"
    ratio = seconds / timeit(lambda: abx.exact(pair), timer=time.process_time, number=5) * 5
    return [Row(f"ABX: over fastabx, one pair, n = {FEW}", ratio, "times", "> 1,000")]


def run() -> list[Row]:
    """Rows of the bench's table."""
    languages = vectors()
    peak = peak_during(lambda: abx.exact(languages))
    stacked = torch.from_numpy(np.concatenate(list(languages.values())))

    def plain_product() -> None:
        for rows in stacked.split(SENTENCES):  # in strips: whole, it would hold 4.8 GB
            rows @ stacked.T

    rng = np.random.default_rng(1)
    alike = rng.random((SENTENCES, SENTENCES)) < 0.1
    masks = {"mask": {code: alike.copy() for code in languages}}
    groups = {"documents": np.arange(SENTENCES) // 6}
    exact, plain, without_documents, masked = best_of(
        lambda: abx.exact(languages),
        plain_product,
        lambda: abx.exact(languages, groups=groups),
        lambda: abx.exact(languages, masks=masks),
        rounds=2,
    )
    long = long_pair()
    (of_pair,) = best_of(lambda: abx.exact(long), rounds=2)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        of_pair_peak = pool.apply(peak_of_pair)
    return [
        Row("ABX: exact LD + MD + retrieval, 630 pairs, n = 960, d = 768", exact, "s"),
        Row("ABX: exact over one plain product of the embeddings", exact / plain, "times", "< 0.7"),
        Row(
            "ABX: with each of 160 documents left out, over without",
            without_documents / exact,
            "times",
            "< 1.2",
        ),
        Row("ABX: one pair, n = 8,000, d = 384", of_pair, "s", "< 3 on two free cores"),
        Row("ABX: the pair's peak memory beyond the embeddings", of_pair_peak / 1e9, "GB", "< 0.5"),
        Row("ABX: with MD under a mask, over without", masked / exact, "times", "< 1.3"),
        Row("ABX: peak memory beyond the embeddings", peak / 1e9, "GB", "< 1"),
        *beside_fastabx(),
    ]
