"""The sentences of all languages in a plane, by t-SNE (Figure 4 of the MEXA paper)."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from xlx.experiment.mexa_scores import MEXA_POOLINGS
from xlx.results import ledger, work
from xlx.subjects import loading, states
from xlx.subjects.identity import Name
from xlx.subjects.states import embed_corpus
from xlx.text.parallel import ParallelCorpus


def place_sentences(
    name: Name,
    corpus: ParallelCorpus,
    layers: Sequence[int],
    *,
    n_sentences: int,
    perplexity: float = 30,
    seed: int = 0,
    pooling: str = MEXA_POOLINGS[0],
    max_length: int | None = None,
) -> pd.DataFrame:
    """The first sentences of all languages in a plane, by t-SNE of their directions (Figure 4).

    A row per layer and sentence: ``layer``, ``language``, ``sentence``, ``x``, ``y``. Errors as
    `measure_coverage`.
    """
    n = min(n_sentences, len(corpus))
    options = {"pooling": pooling, "max_length": max_length}
    about = states.corpus_about(name, corpus, **options)
    about |= {"layers": list(layers), "n": n, "perplexity": perplexity, "seed": seed}
    placed = work.result(PLANE, about, name, corpus, layers, n, perplexity, seed, options)["placed"]
    keys = {"layer": layers, "language": corpus.languages, "sentence": range(n)}
    index = pd.MultiIndex.from_product(keys.values(), names=list(keys))
    return pd.DataFrame(placed.reshape(-1, 2), index, columns=["x", "y"]).reset_index()


def _placed(
    name: Name,
    corpus: ParallelCorpus,
    layers: Sequence[int],
    n: int,
    perplexity: float,
    seed: int,
    options: Mapping[str, object],
) -> dict[str, np.ndarray]:
    """Coordinates, ``(layers, languages * n, 2)``."""
    from sklearn.manifold import TSNE

    states = embed_corpus(loading.load(name), corpus, **options).states
    placed = []
    for layer in layers:
        rows = np.concatenate([whole[layer, :n] for whole in states.values()])
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        plane = TSNE(perplexity=perplexity, init="pca", random_state=seed)
        placed.append(plane.fit_transform(rows))
    return {"placed": np.array(placed)}


def _otherwise_placed(stored: ledger.Value, computed: ledger.Value) -> float:
    """How far apart the points are spread, relatively: t-SNE puts no point twice in one place."""
    spreads = [value["placed"].std(axis=1) for value in (stored, computed)]
    return float(np.abs(spreads[1] / spreads[0] - 1).max())


PLANE = work.Kind(
    "neighbourhoods", _placed, version=1, tolerance=0.15, difference=_otherwise_placed
)
