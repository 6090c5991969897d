"""MEXA of all languages of FLORES-200 at once: 203 against English, one layer.

In two widths, that of the family's decoders and that of a base model.

The yardstick is the definition as one would write it down: scipy's cosine of each sentence with
each, in a double loop, then each diagonal element against its row and column; for one language and
100 sentences. Both are set against the number of elements of their matrices. The other yardstick is
the float32 product of all languages with English, below which no exact score can go.
"""

from collections.abc import Iterator

import numpy as np
import torch
from scipy.spatial.distance import cosine

from tests.bench import Row, best_of
from xlx.measures import mexa

LANGUAGES = 203
SENTENCES = (100, 1000)
DIMS = (128, 768)


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


def run() -> Iterator[Row]:
    """Rows of the bench's table."""
    for dim in DIMS:
        pair = states(100, dim, 1)
        language, pivot = pair["l000"][0], pair["en"][0]
        assert mexa.scores(pair).mu.item() == literal(language, pivot), "the two ways disagree"
        (theirs,) = best_of(lambda pair=(language, pivot): literal(*pair))
        for n in SENTENCES:
            vectors = states(n, dim, LANGUAGES)
            plain = {code: torch.from_numpy(array[0]) for code, array in vectors.items()}
            ours, product = best_of(
                lambda given=vectors: mexa.scores(given),
                lambda given=plain: [language @ given["en"].T for language in given.values()],
            )
            ratio = (theirs / 100**2) / (ours / (LANGUAGES * n**2))
            what = f"n = {n:,}, d = {dim}"
            aim = "< 2" if n == max(SENTENCES) and dim == max(DIMS) else ""
            yield Row(f"MEXA: {LANGUAGES} languages, {what}", ours, "s a layer")
            yield Row(f"MEXA: faster than scipy's cosine, {what}", ratio, "times", "> 1,000")
            yield Row(f"MEXA: over the products alone, {what}", ours / product, "times", aim)
