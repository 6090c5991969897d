"""Of which language the nearest sentence is: what LD, which sees mean offsets alone, cannot tell.

For every sentence of a parallel corpus the nearest one, by the cosine, among all sentences of all
languages but itself, and among those at other positions (so that no translation of it counts).
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch

from xlx.abx.checkpoint_scores import SPACES
from xlx.abx.measurement import values_of
from xlx.core import checks, work
from xlx.models import embeddings, loading
from xlx.models.loading import Name, series_name
from xlx.models.similarity import unit_vectors
from xlx.text.corpora import ParallelCorpus

#: Among which sentences the nearest is looked for.
AMONG = ("others", "other positions")
#: Rows whose similarities to all sentences are held at once.
_ROWS = 512


def nearest_languages(vectors: Mapping[str, np.ndarray]) -> np.ndarray:
    """How often the nearest sentence of one of a language is of each: int64 ``(2, L, L)``.

    ``vectors`` are ``(n, dim)`` by language, sentences aligned; the first axis is `AMONG`. Of equal
    cosines the first language counts. ValueError as `similarity.unit_vectors`.
    """
    units = np.stack(list(unit_vectors(vectors).values()))
    n_languages, n, dim = units.shape
    # without what all sentences share: cosines are as near as the digits of float32
    rest = torch.from_numpy((units - units.mean(axis=(0, 1))).reshape(-1, dim))
    offset = (rest @ torch.from_numpy(units.mean(axis=(0, 1)))).float()
    rest = rest.float()
    counts = np.zeros((2, n_languages, n_languages), dtype=np.int64)
    positions = torch.arange(n)
    for start in range(0, n_languages * n, _ROWS):
        rows = torch.arange(start, min(start + _ROWS, n_languages * n))
        near = rest[rows] @ rest.T + offset
        near[torch.arange(len(rows)), rows] = -torch.inf
        languages = (rows // n).numpy()
        for kind in range(2):
            if kind:  # no sentence at the same position
                near.view(len(rows), n_languages, n)[
                    torch.arange(len(rows)), :, positions[rows % n]
                ] = -torch.inf
            found = (near.argmax(dim=1) // n).numpy()
            np.add.at(counts[kind], (languages, found), 1)
    return counts


def neighbour_languages(
    name: Name, corpus: ParallelCorpus, *, space: str = "raw", **options: object
) -> pd.DataFrame:
    """The share of nearest sentences of each pair of languages, at every layer.

    Columns ``model``, ``space``, ``layer``, ``among`` (`AMONG`), ``language``, ``neighbour`` and
    ``share``, which sums to 1 over neighbours. ``space`` of `checkpoint_scores.SPACES`; options as
    `embeddings.embed_corpus`. Chance of the own language among n_languages is near their inverse.
    """
    checks.one_of(space, SPACES, "space")
    about = {"space": space}
    (value,) = values_of(
        NEAREST_LANGUAGES, [name], corpus, options, space, about=about, what="nearest"
    )
    shares = value["counts"] / len(corpus)
    codes = corpus.languages
    axes = {"layer": range(len(shares)), "among": AMONG, "language": codes, "neighbour": codes}
    index = pd.MultiIndex.from_product(axes.values(), names=axes)
    table = pd.DataFrame({"share": shares.ravel()}, index).reset_index()
    heads = {"model": series_name(loading.identify(name)), "space": space}
    return table.assign(**heads)[[*heads, *table.columns]]


def _nearest(
    name: Name, corpus: ParallelCorpus, options: Mapping[str, object], space: str
) -> dict[str, np.ndarray]:
    """``counts``, int32 ``(n_layers + 1, 2, L, L)``, of `nearest_languages`."""
    embedded = embeddings.embed_corpus(loading.load(name), corpus, **options)
    layers = (
        SPACES[space]({code: x[layer] for code, x in embedded.states.items()})
        for layer in range(embedded.n_layers + 1)
    )
    return {"counts": np.stack([nearest_languages(x) for x in layers]).astype(np.int32)}


#: Sentences that a rounding error sends to another language: a few of a thousand.
NEAREST_LANGUAGES = work.Kind("abx-neighbours", _nearest, version=1, tolerance=10)
