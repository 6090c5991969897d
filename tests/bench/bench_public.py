"""A public encoder beside `encode` of sentence-transformers: the same folder, threads and length.

Then a quick report on it, from nothing, beside reading its text alone.

Needs `make models MODEL=multilingual-e5-small`, and for the first rows the package (`pip install
--no-deps sentence-transformers`); without them there is nothing to time. Ratios are of the
processor's clock, so that other work on the machine does not decide.
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from tests.bench import Row
from xlx.report import inputs
from xlx.results.paths import ROOT
from xlx.subjects.identity import public_models
from xlx.subjects.loading import load, supported
from xlx.subjects.states import embed
from xlx.text import parallel

MODEL, SENTENCES, ROUNDS = "multilingual-e5-small", 1_000, 2


def run() -> Iterator[Row]:
    """Rows of the bench's table; none where the model is not here."""
    folder = public_models()[MODEL].folder
    if not folder.is_dir():
        print(f"public: left out, {MODEL} is not here")
        return
    yield from quick_report(folder)
    if importlib.util.find_spec("sentence_transformers"):
        yield from beside_encode(folder)


def quick_report(folder: Path) -> Iterator[Row]:
    """Seconds to the first line and to the page, with nothing stored before."""
    with tempfile.TemporaryDirectory() as cache:
        (Path(cache) / "models").symlink_to(folder.parent)
        given = ["report", MODEL, "--quick", "--no-notebook", "--device", "cpu", "--out", cache]
        given = [sys.executable, "-uc", "from xlx.report.console import start; start()", *given]
        where, began = os.environ | {"XLX_CACHE": cache}, time.perf_counter()
        with subprocess.Popen(given, stdout=subprocess.PIPE, cwd=ROOT, env=where) as process:
            process.stdout.readline()
            start = time.perf_counter() - began
            process.stdout.read()
            _, status, used = os.wait4(process.pid, 0)
            assert status == 0
        whole, took = time.perf_counter() - began, used.ru_utime + used.ru_stime
    corpus, _ = inputs.reported_text("wmt24pp", inputs.QUICK_LANGUAGES, inputs.QUICK)

    def read(dtype: str) -> tuple[float, np.ndarray]:
        encoder, began = load(MODEL, device="cpu", dtype=dtype), time.process_time()
        last = np.concatenate([embed(encoder, x).states[-1] for x in corpus.sentences.values()])
        return time.process_time() - began, last / np.linalg.norm(last, axis=1, keepdims=True)

    reading, vectors = read("float32")
    yield Row("public: first line of a quick report", start, "s", "< 8 on free cores")
    yield Row("public: a quick report", whole, "s", "< 60 on two free cores")
    yield Row("public: a quick report over reading its text once", took / reading, "times")
    if supported():
        seconds, others = read("bfloat16")
        yield Row("public: bfloat16 over float32", reading / seconds, "times")
        yield Row("public: least cosine", 100 * (vectors * others).sum(axis=1).min(), "per cent")


def beside_encode(folder: Path) -> list[Row]:
    """Rows beside sentence-transformers."""
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
