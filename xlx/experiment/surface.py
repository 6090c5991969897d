"""What the surface of sentences scores without a model: the subwords they share, how long they are.

Both are scored as a checkpoint of one layer is, every pair and task, errors by document, so that a
model can be compared with them on the same text: a score that a bag of subwords has too is not
about the model, and one that length has is not about meaning. `uncut` leaves out what a model does
not see whole.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import torch

from xlx.experiment.abx_scores import SPACES, CheckpointScores, values_of
from xlx.experiment.scoring import BagOfSubwords, Length, subject_scores
from xlx.measures.alignment import unit_vectors
from xlx.results import checks, work
from xlx.subjects import identity, loading, states
from xlx.subjects.identity import Name, series_name
from xlx.text.parallel import ParallelCorpus


def subword_bag(
    name: Name, corpus: ParallelCorpus, *, max_length: int | None = None, space: str = "raw"
) -> CheckpointScores:
    """Scores of a bag of the subwords of a model's vocabulary (`scoring.BagOfSubwords`)."""
    subject = BagOfSubwords(name, {"max_length": max_length})
    (scores,) = subject_scores([subject], corpus, space=space)
    return scores


def length_alone(corpus: ParallelCorpus) -> CheckpointScores:
    """Scores of the number of characters (`scoring.Length`)."""
    (scores,) = subject_scores([Length()], corpus)
    return scores


def uncut(
    names: Sequence[Name], corpus: ParallelCorpus, *, max_length: int | None = None
) -> ParallelCorpus:
    """The positions that none of the models cuts in any language.

    ValueError where fewer than two are left.
    """
    cut = {x for name in checks.several(names, "models") for x in _cut(name, corpus, max_length)}
    if len(corpus) - len(cut) < 2:
        raise ValueError(
            f"of {len(corpus)} positions {len(cut)} are cut in some language: choose a larger "
            "max_length, or fewer languages"
        )
    return corpus.drop(cut)


def _cut(name: Name, corpus: ParallelCorpus, max_length: int | None) -> set[int]:
    """The positions that a model cuts in some language."""
    encoder = loading.load(name)
    limit = encoder.limit(max_length)
    texts = corpus.sentences.values()
    cut = (states.tokenise(encoder.tokenizer, text, limit=limit)[1].tolist() for text in texts)
    return set().union(*cut)


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
    heads = {"model": series_name(identity.identify(name)), "space": space}
    return table.assign(**heads)[[*heads, *table.columns]]


def _nearest(
    name: Name, corpus: ParallelCorpus, options: Mapping[str, object], space: str
) -> dict[str, np.ndarray]:
    """``counts``, int32 ``(n_layers + 1, 2, L, L)``, of `nearest_languages`."""
    embedded = states.embed_corpus(loading.load(name), corpus, **options)
    layers = (
        SPACES[space]({code: x[layer] for code, x in embedded.states.items()})
        for layer in range(embedded.n_layers + 1)
    )
    return {"counts": np.stack([nearest_languages(x) for x in layers]).astype(np.int32)}


#: Sentences that a rounding error sends to another language: a few of a thousand.
NEAREST_LANGUAGES = work.Kind("abx-neighbours", _nearest, version=1, tolerance=10)
