"""Exact ABX at the paper's size: 36 languages, 960 sentences, width 768, one layer.

The yardstick is one float32 product of all sentences with all sentences, which everything here can
be read from; the task is to score 630 pairs in less than that.
"""

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from tests.bench import Row, best_of
from xlx.measures import abx

LANGUAGES = 36
SENTENCES = 960
DIM = 768
LONG = 8_000, 384  # sentences and width of a pair


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
    one, two = map(torch.from_numpy, long.values())
    of_pair, product = best_of(lambda: abx.exact(long), lambda: one @ two.T, rounds=2)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        of_pair_peak = pool.apply(peak_of_pair)
    return [
        Row("ABX: exact LD + MD + retrieval, 630 pairs, n = 960, d = 768", exact, "s"),
        Row("ABX: exact over one plain product of the embeddings", exact / plain, "times", "< 0.7"),
        Row("ABX: with each of 160 documents left out, over without", without_documents / exact,
            "times", "< 1.2"),
        Row("ABX: one pair, n = 8,000, d = 384", of_pair, "s", "< 3 on two free cores"),
        Row("ABX: the pair over one float32 product of it", of_pair / product, "times"),
        Row("ABX: the pair's peak memory beyond the embeddings", of_pair_peak / 1e9, "GB", "< 0.5"),
        Row("ABX: with MD under a mask, over without", masked / exact, "times", "< 1.3"),
        Row("ABX: peak memory beyond the embeddings", peak / 1e9, "GB", "< 1"),
    ]  # fmt: skip
