"""Exact ABX at the paper's size: 36 languages, 960 sentences, width 768, one layer.

The yardstick is one float32 product of all sentences with all sentences, which everything here can
be read from; the task is to score 630 pairs in less than that.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from xlx.abx import discrimination
from xlx.abx.triplets import sample_triplets

LANGUAGES = 36
SENTENCES = 960
DIM = 768
TRIPLETS = 100_000
ROUNDS = 2


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


def seconds(task: Callable[[], object]) -> float:
    start = time.perf_counter()
    task()
    return time.perf_counter() - start


def resident() -> int:
    """Bytes of this process in memory; Linux only."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * 4096


def peak_during(task: Callable[[], object]) -> int:
    """Most bytes that the process grew by while the task ran, looked at every 5 ms."""
    before, peak, done = resident(), 0, threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.005):
            peak = max(peak, resident() - before)

    watcher = threading.Thread(target=watch)
    watcher.start()
    task()
    done.set()
    watcher.join()
    return peak


def run() -> list[dict[str, object]]:
    """Rows of the bench table: name, value, unit, aim."""
    languages = vectors()
    peak = peak_during(lambda: discrimination.exact(languages))
    stacked = torch.from_numpy(np.concatenate(list(languages.values())))

    def plain_product() -> None:
        for rows in stacked.split(SENTENCES):  # in strips: whole, it would hold 4.8 GB
            rows @ stacked.T

    exact, plain, with_influence = [], [], []
    for _ in range(ROUNDS):
        exact.append(seconds(lambda: discrimination.exact(languages)))
        plain.append(seconds(plain_product))
        with_influence.append(seconds(lambda: discrimination.exact(languages, influence=True)))

    pair = dict(list(languages.items())[:2])

    def sampled_pair() -> None:
        for task in ("LD", "MD"):
            draw = sample_triplets(task, tuple(pair), SENTENCES, TRIPLETS, seed=0)
            discrimination.score_triplets(pair, draw)

    n_pairs = LANGUAGES * (LANGUAGES - 1) // 2
    one_sampled = min(seconds(sampled_pair) for _ in range(3))
    ratio = one_sampled * n_pairs / min(exact)
    triplets = 2 * SENTENCES * (SENTENCES - 1)
    return [
        {
            "name": "ABX: exact LD + MD + retrieval, 630 pairs, n = 960, d = 768",
            "value": round(min(exact), 1),
            "unit": "s",
            "aim": None,
        },
        {
            "name": "ABX: exact over one plain product of the stacked embeddings",
            "value": round(min(exact) / min(plain), 2),
            "unit": "times",
            "aim": "< 0.7",
        },
        {
            "name": "ABX: the same with influence for intervals",
            "value": round(min(with_influence) / min(plain), 2),
            "unit": "times",
            "aim": None,
        },
        {
            "name": "ABX: peak memory beyond the embeddings",
            "value": round(peak / 1e9, 2),
            "unit": "GB",
            "aim": "< 1",
        },
        {
            "name": f"ABX: exact faster than {TRIPLETS:,} sampled triplets a pair and task",
            "value": round(ratio),
            "unit": "times",
            "aim": "> 50",
        },
        {
            "name": "ABX: triplets scored, exact over sampled",
            "value": round(triplets / TRIPLETS, 1),
            "unit": "times",
            "aim": None,
        },
    ]
