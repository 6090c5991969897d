"""Sentence length as a rival of meaning: what it scores alone, and MD where it cannot help.

A translation is about as long as its original, so whatever tells how long a sentence is tells its
translation from most other sentences. Vectors hold that without any meaning: the mean of absolute
position embeddings over a sentence is a code of its length. Two controls of MD:

- `length_scores`: LD, MD and retrieval of the number of characters, without a model;
- `like_length`: MD of a model among sentences of like length, where B has within a tenth as many
  characters as A (`LIKE_SHARE`), so that length says next to nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from xlx.abx import discrimination
from xlx.abx.measurement import layers_of_mean, same_shapes, texts_of, values_of
from xlx.core import statistics, work
from xlx.models import embeddings, loading
from xlx.models.loading import Name, series_name
from xlx.models.similarity import Vectors, blocks
from xlx.text.corpora import ParallelCorpus

#: B has as many characters as A, give or take this share.
LIKE_SHARE = 0.1

#: MD among sentences of like length, beside the scores of `xlx.abx.discrimination`.
MD_LIKE_LENGTH = "MD, like length"


def length_scores(corpus: ParallelCorpus) -> pd.DataFrame:
    """What length alone scores: the closer the log characters of two sentences, the more alike.

    Returns `abx.pair_scores`, as `series.bag_scores` does.
    """
    return work.result(LENGTH, {"texts": texts_of(corpus)}, corpus)


def _length(corpus: ParallelCorpus) -> pd.DataFrame:
    logs = {code: np.log1p(counts) for code, counts in _characters(corpus).items()}
    longest = max(row.max() for row in logs.values())
    # On a quarter of a circle the cosine falls with the distance in log characters.
    angles = {code: row / longest * np.pi / 2 for code, row in logs.items()}
    vectors = {code: np.stack([np.cos(a), np.sin(a)], axis=1) for code, a in angles.items()}
    return discrimination.pair_scores(discrimination.exact(vectors, dtype=torch.float64).table())


LENGTH = work.Kind("abx-length", _length, version=1, tolerance=1e-4)


def _characters(corpus: ParallelCorpus) -> dict[str, np.ndarray]:
    return {code: np.array(list(map(len, texts))) for code, texts in corpus.sentences.items()}


@dataclass(frozen=True)
class LikeLength:
    """MD among sentences of like length, over all pairs of languages and both directions.

    ``scores``, ``(n_layers,)`` in [0, 1]: the share of the comparisons of X with A and with a B of
    like length that A wins; a tie is one half, and every comparison counts alike. ``influence``,
    ``(n_layers, n_sentences)``: pseudo-values of leaving a position out, as X and as B, for
    `statistics.jackknife_error` of order 1.
    """

    model: str
    step: int
    scores: np.ndarray
    influence: np.ndarray
    texts: tuple[str, ...] = ()  # SHA-256 of the text of each language

    def mean(
        self,
        task: str = MD_LIKE_LENGTH,
        layers: Sequence[int] | None = None,
        embedding_layer: bool = True,
    ) -> tuple[float, np.ndarray]:
        """Mean over layers, its influence ``(n_sentences,)``: as `measurement.Measurement.mean`."""
        rows = layers_of_mean(len(self.scores), layers, embedding_layer)
        return float(self.scores[rows].mean()), self.influence[rows].mean(axis=0)


def like_length(
    names: Sequence[Name], corpus: ParallelCorpus, **options: object
) -> list[LikeLength]:
    """MD of models among sentences of like length, at every layer.

    Options and errors as `measurement.measure_all`; ValueError for a corpus in which no two
    sentences of a language are of like length.
    """
    values = values_of(
        LIKE_LENGTH, names, corpus, options, about={"like": LIKE_SHARE}, what="ABX, like length"
    )
    identities = [loading.identify(name) for name in names]
    texts = tuple(map(corpus.text_hash, corpus.languages))
    return [
        LikeLength(series_name(identity), identity.step or 0, *_jackknifed(value), texts)
        for identity, value in zip(identities, values, strict=True)
    ]


def bag_like_length(
    name: Name, corpus: ParallelCorpus, max_length: int | None = None
) -> LikeLength:
    """`like_length` of `embeddings.bag_of_subwords`, as a model of one layer."""
    about = {
        "bag": loading.fingerprint(name),
        "texts": texts_of(corpus),
        "max_length": max_length,
        "like": LIKE_SHARE,
    }
    value = work.result(LIKE_LENGTH, about, name, corpus, {"max_length": max_length}, True)
    return LikeLength("bag of subwords", 0, *_jackknifed(value))


def _like_length(
    name: Name, corpus: ParallelCorpus, options: Mapping[str, object], bag: bool = False
) -> dict[str, np.ndarray]:
    """Comparisons that hold a position: ``won`` (n_layers, n), ties one, ``compared`` (n,); each
    counts two, so that all are whole numbers."""
    encoder = loading.load(name)
    if bag:
        layers = [embeddings.bag_of_subwords(encoder, corpus, **options)]
    else:
        embedded = embeddings.embed_corpus(encoder, corpus, **options).states
        depth = len(next(iter(embedded.values())))
        layers = [{code: states[i] for code, states in embedded.items()} for i in range(depth)]
    alike = {code: _alike(counts) for code, counts in _characters(corpus).items()}
    compared = sum(mask.sum(axis=0) + mask.sum(axis=1) for mask in alike.values())
    if not compared.any():
        raise ValueError(
            f"{corpus.name}: no two sentences of a language are of like length (within "
            f"{LIKE_SHARE:.0%} of the characters): take more sentences"
        )
    won = [sum(_wins(vectors, alike, encoder.device)) for vectors in layers]
    return {"won": np.array(won), "compared": 2 * compared * (len(corpus.languages) - 1)}


def _alike(counts: np.ndarray) -> np.ndarray:
    """``[a, b]``: whether b is another sentence than a, and about as long."""
    alike = np.abs(counts - counts[:, None]) <= LIKE_SHARE * counts[:, None]
    np.fill_diagonal(alike, False)
    return alike


def _wins(
    vectors: Vectors, alike: Mapping[str, np.ndarray], device: torch.device
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
    if not same_shapes(stored, computed):
        return np.inf
    (score, influence), (other, other_influence) = _jackknifed(stored), _jackknifed(computed)
    errors = [statistics.jackknife_error(x, order=1) for x in (influence, other_influence)]
    return max(np.abs(score - other).max(), np.abs(errors[0] - errors[1]).max())


LIKE_LENGTH = work.Kind(
    "abx-like-length", _like_length, version=1, tolerance=2e-4, difference=_apart
)


def by_layer(measured: Sequence[LikeLength]) -> pd.DataFrame:
    """One row a model and layer: ``model``, ``checkpoint``, ``layer``, ``score``, ``low``,
    ``high`` (95 %, over sentences)."""
    tables = []
    for like in measured:
        low, high = statistics.interval(
            like.scores, statistics.jackknife_error(like.influence, order=1)
        )
        columns = {"layer": range(len(low)), "score": like.scores, "low": low, "high": high}
        tables.append(pd.DataFrame({"model": like.model, "checkpoint": like.step} | columns))
    return pd.concat(tables, ignore_index=True)
