"""Exact ABX at the paper's size: 36 languages, 960 sentences, width 768, one layer.

The yardstick is one float32 product of all sentences with all sentences, which everything here can
be read from; the task is to score 630 pairs in less than that.
"""

import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from tests.bench import Row, best_of
from xlx.measures import abx
from xlx.measures.abx import sample_triplets

LANGUAGES = 36
SENTENCES = 960
DIM = 768
TRIPLETS = 100_000


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


def run() -> list[Row]:
    """Rows of the bench's table."""
    languages = vectors()
    peak = peak_during(lambda: abx.exact(languages))
    stacked = torch.from_numpy(np.concatenate(list(languages.values())))

    def plain_product() -> None:
        for rows in stacked.split(SENTENCES):  # in strips: whole, it would hold 4.8 GB
            rows @ stacked.T

    alike = np.random.default_rng(1).random((SENTENCES, SENTENCES)) < 0.1
    masks = {"mask": {code: alike.copy() for code in languages}}
    groups = {"documents": np.arange(SENTENCES) // 6}
    exact, plain, without_documents, masked = best_of(
        lambda: abx.exact(languages),
        plain_product,
        lambda: abx.exact(languages, groups=groups),
        lambda: abx.exact(languages, masks=masks),
        rounds=2,
    )
    pair = dict(list(languages.items())[:2])

    def sampled_pair() -> None:
        for task in ("LD", "MD"):
            draw = sample_triplets(task, tuple(pair), SENTENCES, TRIPLETS, seed=0)
            abx.score_triplets(pair, draw)

    (sampled,) = best_of(sampled_pair)
    ratio = sampled * (LANGUAGES * (LANGUAGES - 1) // 2) / exact
    return [
        Row("ABX: exact LD + MD + retrieval, 630 pairs, n = 960, d = 768", exact, "s"),
        Row("ABX: exact over one plain product of the embeddings", exact / plain, "times", "< 0.7"),
        Row("ABX: the same without each of 160 documents, too", without_documents / plain, "times"),
        Row("ABX: with MD under a mask, over without", masked / exact, "times", "< 1.3"),
        Row("ABX: peak memory beyond the embeddings", peak / 1e9, "GB", "< 1"),
        Row(f"ABX: faster than {TRIPLETS:,} triplets a pair and task", ratio, "times", "> 50"),
    ]
