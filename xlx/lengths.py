"""Sentence length as a rival of meaning: what it scores alone, and MD where it cannot help.

A translation is about as long as its original, so whatever tells how long a sentence is tells its
translation from most other sentences. Vectors hold that without any meaning: the mean of absolute
position embeddings over a sentence is a code of its length. Two controls of MD:

- `length_scores`: LD, MD and retrieval of the number of characters, without a model;
- `like_length`: MD of a model among sentences of like length, where B has within a tenth as many
  characters as A (`LIKE`), so that length says next to nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from scipy import sparse

from xlx import abx, embeddings, models, statistics, work
from xlx.corpora import ParallelCorpus
from xlx.series import Name, series_name
from xlx.similarity import blocks

#: B has as many characters as A, give or take this share.
LIKE = 0.1


def length_scores(corpus: ParallelCorpus) -> pd.DataFrame:
    """What length alone scores: the closer the log characters of two sentences, the more alike.

    Returns `abx.pair_scores`, as `series.bag_scores` does.
    """
    return work.result(LENGTH, {"texts": _texts(corpus)}, corpus)


def _length(corpus: ParallelCorpus) -> pd.DataFrame:
    logs = {code: np.log1p(counts) for code, counts in _characters(corpus).items()}
    longest = max(row.max() for row in logs.values())
    # On a quarter of a circle the cosine falls with the distance in log characters.
    angles = {code: row / longest * np.pi / 2 for code, row in logs.items()}
    vectors = {code: np.stack([np.cos(a), np.sin(a)], axis=1) for code, a in angles.items()}
    return abx.pair_scores(abx.exact(vectors, dtype=torch.float64).table())


LENGTH = work.Kind("abx-length", _length, version=1, tolerance=1e-4)


def _characters(corpus: ParallelCorpus) -> dict[str, np.ndarray]:
    return {
        code: np.array([len(sentence) for sentence in sentences])
        for code, sentences in corpus.sentences.items()
    }


def _texts(corpus: ParallelCorpus) -> list[list[str]]:
    return [[code, corpus.text_hash(code)] for code in corpus.languages]


@dataclass(frozen=True)
class LikeLength:
    """MD among sentences of like length, over all pairs of languages and both directions.

    Attributes
    ----------
    model : str
    step : int
    scores : numpy.ndarray
        ``(n_layers,)`` in [0, 1]: the share of the comparisons of X with A and with a B of like
        length that A wins; a tie is one half. Every comparison counts alike.
    influence : numpy.ndarray
        ``(n_layers, n_sentences)``: pseudo-values of leaving a position out, as X and as B, for
        `statistics.jackknife_error` of order 1. An average of scores has the average of theirs.
    """

    model: str
    step: int
    scores: np.ndarray
    influence: np.ndarray


def like_length(
    names: Sequence[Name],
    corpus: ParallelCorpus,
    *,
    pooling: str = "mean",
    special_tokens: bool = False,
    max_length: int | None = None,
) -> list[LikeLength]:
    """MD of models among sentences of like length, at every layer.

    Options and errors as `series.measure_all`; ValueError for a corpus in which no two sentences of
    a language are of like length.
    """
    options = {"pooling": pooling, "special_tokens": special_tokens, "max_length": max_length}
    abouts = [embeddings.corpus_about(name, corpus, **options) | {"like": LIKE} for name in names]
    found = work.results(
        LIKE_LENGTH,
        abouts,
        lambda missing: (([i], (names[i], corpus, options)) for i in missing),
        what="ABX, like length",
        alone=True,
    )
    identities = [models.identify(name) for name in names]
    return [
        LikeLength(series_name(identity), identity.step or 0, *_jackknifed(value))
        for identity, value in zip(identities, found, strict=True)
    ]


def bag_like_length(
    name: Name, corpus: ParallelCorpus, max_length: int | None = None
) -> LikeLength:
    """`like_length` of `embeddings.bag_of_subwords`, as a model of one layer."""
    about = {
        "bag": models.fingerprint(name),
        "texts": _texts(corpus),
        "max_length": max_length,
        "like": LIKE,
    }
    value = work.result(LIKE_LENGTH, about, name, corpus, {"max_length": max_length}, True)
    return LikeLength("bag of subwords", 0, *_jackknifed(value))


def _like_length(
    name: Name, corpus: ParallelCorpus, options: Mapping[str, object], bag: bool = False
) -> dict[str, np.ndarray]:
    """Comparisons that hold a position: ``won`` (n_layers, n), ties one, ``compared`` (n,); each
    counts two, so that all are whole numbers."""
    encoder = models.load(name)
    if bag:
        layers = [embeddings.bag_of_subwords(encoder, corpus, **options)]
    else:
        embedded = embeddings.embed_corpus(encoder, corpus, **options).states
        depth = len(next(iter(embedded.values())))
        layers = [{code: found[i] for code, found in embedded.items()} for i in range(depth)]
    alike = {code: _alike(counts) for code, counts in _characters(corpus).items()}
    n = len(corpus)
    compared = sum(mask.sum(axis=0) + mask.sum(axis=1) for mask in alike.values())
    if not compared.any():
        raise ValueError(
            f"{corpus.name}: no two sentences of a language are of like length (within {LIKE:.0%} "
            "of the characters): take more sentences"
        )
    won = [np.zeros(n, dtype=np.int64) for _ in layers]
    for row, vectors in zip(won, layers, strict=True):
        for wins in _wins(vectors, alike, encoder.device):
            row += wins
    return {
        "won": np.array(won),
        "compared": 2 * compared * (len(corpus.languages) - 1),
    }


def _alike(counts: np.ndarray) -> np.ndarray:
    """``[a, b]``: whether b is another sentence than a, and about as long."""
    alike = np.abs(counts - counts[:, None]) <= LIKE * counts[:, None]
    np.fill_diagonal(alike, False)
    return alike


def _wins(
    vectors: Mapping[str, np.ndarray] | Mapping[str, sparse.csr_array],
    alike: Mapping[str, np.ndarray],
    device: torch.device,
) -> Iterator[np.ndarray]:
    """Comparisons that A wins, by the positions that they hold, ``(n,)``; a tie counts one."""
    masks = {code: torch.from_numpy(mask).to(device) for code, mask in alike.items()}
    for block in blocks(vectors, device=device):
        slack = block.tolerance[:, None, None]
        of_second = torch.stack([masks[code] for code in block.second])
        # Rows: sentences of the second language, columns: of the first, as in `abx.score_block`.
        to_second = block.across + block.offset_second[:, :, None]
        to_first = block.across + block.offset_first
        for to_b, to_a, asked in (
            (to_second, to_second.diagonal(dim1=1, dim2=2)[:, None, :], of_second.mT),
            (to_first, to_first.diagonal(dim1=1, dim2=2)[:, :, None], masks[block.first]),
        ):
            ahead = to_a - to_b
            for wins in ((ahead >= -slack) & asked, (ahead > slack) & asked):
                yield (wins.sum(dim=(0, 1)) + wins.sum(dim=(0, 2))).cpu().numpy()


def _jackknifed(value: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Scores and pseudo-values; leaving a position out leaves out all comparisons that hold it."""
    won, compared = value["won"], value["compared"]
    n = len(compared)
    score = won.sum(axis=1) / compared.sum()  # both count a comparison at both of its positions
    left = (won.sum(axis=1, keepdims=True) / 2 - won) / (compared.sum() / 2 - compared)
    return score, n * score[:, None] - (n - 1) * left


def _apart(stored: work.Value, computed: work.Value) -> float:
    """The largest difference between two values' scores, or their standard errors."""
    if {name: array.shape for name, array in stored.items()} != {
        name: array.shape for name, array in computed.items()
    }:
        return np.inf
    (one, first), (other, second) = _jackknifed(stored), _jackknifed(computed)
    errors = [statistics.jackknife_error(influence, order=1) for influence in (first, second)]
    return max(np.abs(one - other).max(), np.abs(errors[0] - errors[1]).max())


LIKE_LENGTH = work.Kind(
    "abx-like-length", _like_length, version=1, tolerance=1e-3, difference=_apart
)


def by_layer(found: Sequence[LikeLength], level: float = statistics.LEVEL) -> pd.DataFrame:
    """One row a model and layer: ``model``, ``checkpoint``, ``layer``, ``score``, ``low``,
    ``high`` (over sentences)."""
    tables = []
    for one in found:
        error = statistics.jackknife_error(one.influence, order=1)
        low, high = statistics.interval(one.scores, error, level)
        columns = {"layer": range(len(one.scores)), "score": one.scores, "low": low, "high": high}
        tables.append(pd.DataFrame({"model": one.model, "checkpoint": one.step} | columns))
    return pd.concat(tables, ignore_index=True)


def mean(
    one: LikeLength, layers: Sequence[int] | None = None, embedding_layer: bool = True
) -> tuple[float, np.ndarray]:
    """Mean over layers (as in `series.summarise`), and its influence ``(n_sentences,)``."""
    start = int(not embedding_layer)
    at = list(range(start, len(one.scores))) if layers is None else list(layers)
    return float(one.scores[at].mean()), one.influence[at].mean(axis=0)


def difference(
    one: LikeLength,
    other: LikeLength,
    *,
    layers: Sequence[int] | None = None,
    other_layers: Sequence[int] | None = None,
    embedding_layer: bool = True,
    level: float = statistics.LEVEL,
) -> dict[str, float]:
    """`series.difference` among sentences of like length: ``value``, ``low`` and ``high``."""
    score, influence = mean(one, layers, embedding_layer)
    other_score, other_influence = mean(other, other_layers, embedding_layer)
    error = statistics.jackknife_error(influence - other_influence, order=1)
    width, value = statistics.half_width(error, level), score - other_score
    return {"value": value, "low": float(value - width), "high": float(value + width)}
