"""Speed and memory as ratios within one run, against what one would write first: ``make bench``."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from scipy.spatial.distance import cosine

from xlx.measures import abx, mexa
from xlx.subjects.loading import load
from xlx.subjects.states import embed
from xlx.text import parallel

Row = tuple[str, float, str]


def best_of(*tasks: Callable[[], object], rounds: int = 2) -> list[float]:
    """Least seconds of each task, taken in turns."""
    times = [float("inf")] * len(tasks)
    for _ in range(rounds):
        for i, task in enumerate(tasks):
            start = time.perf_counter()
            task()
            times[i] = min(times[i], time.perf_counter() - start)
    return times


def vectors(n_languages: int, *shape: int) -> dict[str, np.ndarray]:
    """Random translations: a meaning, a language and noise."""
    rng = np.random.default_rng(0)
    meaning = rng.normal(size=shape).astype(np.float32)
    return {
        code: meaning
        + rng.normal(size=shape[-1]).astype(np.float32)
        + 2 * rng.normal(size=shape).astype(np.float32)
        for code in ("en", *(f"l{number:03}" for number in range(1, n_languages)))
    }


def peak_during(task: Callable[[], object]) -> float:
    """Gigabytes that the process grew by at most while the task ran; Linux only."""

    def held(what: str) -> int:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition(f"{what}:")[2].split()[0])

    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the highest is counted anew
    before = held("VmRSS")
    task()
    return (held("VmHWM") - before) / 1e6


def exact_abx() -> Iterator[Row]:
    """At the paper's size, beside the product of all sentences with all; peak memory first.

    Memory that was freed before would hide what is needed.
    """
    states = vectors(36, 960, 768)
    yield (
        "ABX: peak memory beyond the embeddings, GB",
        peak_during(lambda: abx.exact(states)),
        "< 1",
    )
    stacked = torch.from_numpy(np.concatenate([*states.values()]))
    masks = {"mask": dict.fromkeys(states, np.random.default_rng(1).random((960, 960)) < 0.1)}
    exact, product, documents, masked = best_of(
        lambda: abx.exact(states),
        lambda: [rows @ stacked.T for rows in stacked.split(960)],
        lambda: abx.exact(states, groups={"documents": np.arange(960) // 6}),
        lambda: abx.exact(states, masks=masks),
    )
    yield "ABX: 630 pairs, n = 960, d = 768, seconds", exact, ""
    yield "ABX: over the product of the embeddings", exact / product, "< 0.7"
    yield "ABX: with each document left out, over without", documents / exact, "< 1.2"
    yield "ABX: with MD under a mask, over without", masked / exact, "< 1.3"


def literal_mexa(language: np.ndarray, pivot: np.ndarray) -> float:
    """The score of a layer, element by element, by scipy's cosine."""
    n = len(language)
    c = np.array([[1 - cosine(x, p) for p in pivot] for x in language])
    others = ~np.eye(n, dtype=bool)
    hits = [c[i, i] > max(c[i, others[i]].max(), c[others[i], i].max()) for i in range(n)]
    return float(np.mean(hits))


def all_of_mexa() -> Iterator[Row]:
    """203 languages against English, a layer; the definition is timed on one of them."""
    pair = vectors(2, 1, 100, 768)
    (theirs,) = best_of(lambda: literal_mexa(pair["l001"][0], pair["en"][0]))
    states = vectors(203, 1, 1000, 768)
    plain = {code: torch.from_numpy(array[0]) for code, array in states.items()}
    ours, product = best_of(
        lambda: mexa.scores(states), lambda: [x @ plain["en"].T for x in plain.values()]
    )
    yield "MEXA: 203 languages, n = 1,000, d = 768, seconds", ours, ""
    yield "MEXA: faster than its definition", theirs * 202 * 100 / ours, "> 1,000"
    yield "MEXA: over the products alone", ours / product, "< 2"


def embedding() -> Iterator[Row]:
    """Real text by a shipped model (6 x 128), beside batches of 32 in the order of the file."""
    corpus = parallel.load("wmt24pp", ["en", "de", "zh"], drop_duplicates=True)
    sentences = [text for texts in corpus.sentences.values() for text in texts[:192]]
    encoder = load("mini-xlmr", device="cpu")

    @torch.no_grad()
    def loop() -> None:
        for start in range(0, len(sentences), 32):
            rows = encoder.tokenizer(
                sentences[start : start + 32], padding=True, truncation=True, return_tensors="pt"
            )
            counted = rows.attention_mask[..., None]
            for layer in encoder.model(**rows, output_hidden_states=True).hidden_states:
                (layer * counted).sum(dim=1) / counted.sum(dim=1)

    ours, theirs = best_of(lambda: embed(encoder, sentences), loop)
    yield "embeddings: sentences a second", len(sentences) / ours, ""
    yield "embeddings: faster than a loop over the file", theirs / ours, "> 2"


def main() -> None:
    """Print the table."""
    print(f"{os.cpu_count()} cores, {torch.get_num_threads()} threads, torch {torch.__version__}")
    for part in (exact_abx, all_of_mexa, embedding):
        for name, value, aim in part():
            print(f"{name:55} {value:10,.2f}  {aim}")


if __name__ == "__main__":
    main()
