"""A public encoder beside `encode` of sentence-transformers: the same folder, threads and length.

Needs `make models MODEL=multilingual-e5-small`, and the package (`pip install --no-deps
sentence-transformers`); without them there is nothing to time. The clock is the processor's, so
that other work on the machine does not decide.
"""

import importlib.util
import time
from collections.abc import Callable

import numpy as np

from tests.bench import Row
from xlx.subjects.identity import public_models
from xlx.subjects.loading import load
from xlx.subjects.states import embed
from xlx.text import parallel

MODEL, SENTENCES, ROUNDS = "multilingual-e5-small", 1_000, 2


def run() -> list[Row]:
    """Rows of the bench's table; none where model or package are not here."""
    folder = public_models()[MODEL].folder
    if not folder.is_dir() or importlib.util.find_spec("sentence_transformers") is None:
        print(f"public: left out, {MODEL} or sentence-transformers are not here")
        return []
    from sentence_transformers import SentenceTransformer

    corpus = parallel.load("wmt24pp", ["de", "en", "ja", "ru", "tr"], drop_duplicates=True)
    sentences = [x for text in corpus.sentences.values() for x in text[: SENTENCES // 5]]
    encoder, other = load(MODEL, device="cpu"), SentenceTransformer(str(folder), device="cpu")
    other.float()

    def ours() -> np.ndarray:
        last = embed(encoder, sentences, special_tokens=True).states[-1]
        return last / np.linalg.norm(last, axis=1, keepdims=True)

    def theirs() -> np.ndarray:
        return other.encode(
            sentences, batch_size=32, show_progress_bar=False, normalize_embeddings=True
        )

    times = {ours: np.inf, theirs: np.inf}
    vectors: dict[Callable[[], np.ndarray], np.ndarray] = {}
    for _ in range(ROUNDS):
        for task in times:
            start = time.process_time()
            vectors[task] = task()
            times[task] = min(times[task], time.process_time() - start)
    apart = float(np.abs(vectors[ours] - vectors[theirs]).max())
    assert apart < 1e-5, f"the two ways disagree by {apart}"
    return [
        Row("public: sentences of a 118 M encoder", len(sentences) / times[ours], "a CPU-second"),
        Row("public: over sentence-transformers", times[theirs] / times[ours], "times", "> 1.7"),
        Row("public: largest difference", apart * 1e6, "millionths", "< 10"),
    ]
