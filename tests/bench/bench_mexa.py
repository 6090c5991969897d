"""MEXA of all languages of FLORES-200 at once: 203 against English, one layer.

In two widths, that of the family's decoders and that of a base model.

The yardstick is the definition as one would write it down: scipy's cosine of each sentence with
each, in a double loop, then each diagonal element against its row and column; for one language and
100 sentences. Both are set against the number of elements of their matrices. The other yardstick is
the float32 product of all languages with English, below which no exact score can go.
"""

import time

import numpy as np
import torch
from scipy.spatial.distance import cosine

from tests.bench import show
from xlx.mexa import measures

LANGUAGES = 203
SENTENCES = (100, 1000)
DIMS = (128, 768)
ROUNDS = 3


def states(n: int, dim: int, languages: int) -> dict[str, np.ndarray]:
    """Random translations: a meaning, a language and noise."""
    rng = np.random.default_rng(0)
    meaning = rng.normal(size=(1, n, dim)).astype(np.float32)
    return {
        code: meaning
        + rng.normal(size=dim).astype(np.float32)
        + 2 * rng.normal(size=(1, n, dim)).astype(np.float32)
        for code in ("en", *(f"l{number:03}" for number in range(languages)))
    }


def literal(language: np.ndarray, pivot: np.ndarray) -> float:
    """The score of one language and layer, element by element."""
    n = len(language)
    c = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            c[i, j] = 1 - cosine(language[i], pivot[j])
    hits = 0
    for i in range(n):
        others = np.arange(n) != i
        hits += c[i, i] > max(c[i, others].max(), c[others, i].max())
    return hits / n


def run() -> list[dict[str, object]]:
    """Rows of the bench table: name, value, unit, aim."""
    return [row for dim in DIMS for row in _of_width(dim)]


def _of_width(dim: int) -> list[dict[str, object]]:
    pair = states(100, dim, 1)
    language, pivot = pair["l000"][0], pair["en"][0]
    theirs = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        expected = literal(language, pivot)
        theirs.append(time.perf_counter() - start)
    assert measures.scores(pair).mu.item() == expected, "the two ways disagree"
    rows = []
    for n in SENTENCES:
        vectors = states(n, dim, LANGUAGES)
        plain = {code: torch.from_numpy(array[0]) for code, array in vectors.items()}
        ours, product = [], []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            measures.scores(vectors)
            ours.append(time.perf_counter() - start)
            start = time.perf_counter()
            for one in plain.values():
                one @ plain["en"].T
            product.append(time.perf_counter() - start)
        ratio = (min(theirs) / 100**2) / (min(ours) / (LANGUAGES * n**2))
        what = f"n = {n:,}, d = {dim}"
        rows += [
            {
                "name": f"MEXA: {LANGUAGES} languages, {what}",
                "value": round(min(ours), 3),
                "unit": "s a layer",
                "aim": None,
            },
            {
                "name": f"MEXA: an element faster than scipy's cosine in a loop, {what}",
                "value": round(ratio),
                "unit": "times",
                "aim": "> 1,000",
            },
            {
                "name": f"MEXA: over the float32 products alone, {what}",
                "value": round(min(ours) / min(product), 2),
                "unit": "times",
                "aim": "< 2" if n == max(SENTENCES) and dim == max(DIMS) else None,
            },
        ]
    return rows


if __name__ == "__main__":
    show(run())
