"""MEXA: how well a language is aligned with the pivot (Kargaran et al. 2025, section 3).

C holds the cosines of n sentences of a language (rows) with their n translations in the pivot
(columns). Sentence i is a *hit* if c_ii is larger than every other element of row i and of column
i: its translation is the best answer in both directions at once. The score μ is the share of hits,
for each layer; over layers it is averaged, or its maximum taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pandas as pd
from numpy import ndarray
from pandas import DataFrame, Series

from xlx.measures.abx import Groups, Measure
from xlx.measures.alignment import Block, undefined, unit_vectors
from xlx.measures.statistics import share_interval
from xlx.results import checks
from xlx.results.deferred import deferred

stats, torch = deferred("scipy.stats"), deferred("torch")
#: Arrays, or tensors.
Matrix = TypeVar("Matrix", "ndarray", "torch.Tensor")

#: Cosines tie that differ by less than the rounding of float64.
ULPS = 16 * np.finfo(float).eps
#: In the place of a rival, where there is nothing to compare.
UNDEFINED = -2


@dataclass(frozen=True)
class PivotScores:
    """Hits of some languages against the pivot, and the scores that are made of them.

    ``languages``: all but the pivot; ``layers``: 0 is the embedding layer; ``hits``: bool
    ``(n_layers, n_languages, n)``, whether the translation is the best answer both ways;
    ``only_rival``: int, as ``hits``, the position of the one sentence but for which this one would
    be a hit; -1 for a hit, and for a sentence with several such rivals; `UNDEFINED` where nothing
    is left of a language: neither hit nor miss, and no score.
    """

    languages: tuple[str, ...]
    pivot: str
    layers: tuple[int, ...]
    hits: ndarray
    only_rival: ndarray

    @property
    def mu(self) -> ndarray:
        """The score μ (section 3), ``(n_layers, n_languages)`` in [0, 1]; NaN: not defined."""
        return np.where((self.only_rival == UNDEFINED).all(-1), np.nan, self.hits.mean(-1))

    def left_out(self) -> ndarray:
        """The score without sentence k, exactly: ``(n_layers, n_languages, n)``.

        Without k as a query its own hit goes, and without k as a candidate those become hits whose
        only rival it was.
        """
        n = self.hits.shape[-1]
        regained = np.zeros(self.hits.shape)
        layer, language, query = np.nonzero(self.only_rival >= 0)
        np.add.at(regained, (layer, language, self.only_rival[layer, language, query]), 1)
        left = (self.hits.sum(-1, keepdims=True) - self.hits + regained) / (n - 1)
        return left + 0 * self.mu[..., None]  # NaN stays

    def table(self) -> DataFrame:
        """Tidy: ``language``, ``layer``, ``mu``, ``low``, ``high`` (interval: see `pooled`)."""
        low, high = _interval(self.mu, self.left_out())
        keys = pd.MultiIndex.from_product(
            [self.languages, self.layers], names=["language", "layer"]
        )
        columns = {"mu": self.mu.T.ravel(), "low": low.T.ravel(), "high": high.T.ravel()}
        return DataFrame(columns, keys).reset_index()

    def pooled(self, how: str = "mean") -> DataFrame:
        """One score per language, over layers: ``language``, ``mu``, ``low``, ``high``.

        ``how`` is "mean", which suits hard tasks, or "max", for easy ones (section 5.1); layers
        without a score do not count. ValueError for another way.

        **The interval** is for other sentences, as many and of the same kind. Each is a query and a
        candidate, so it cannot be resampled with replacement: copies tie with each other. The
        jackknife, each left out as both, needs no new comparison (`left_out`) and sees hubs, which
        spoil the hits of many. It errs on the safe side (Efron and Stein 1981): where hits are next
        to independent it is about a quarter too wide. So that the interval of a score near 0 or 1
        does not end there, it is Wilson's, for the number of independent sentences that would give
        the jackknife's variance, at most n. The maximum is taken again without each sentence, so
        the choice of the layer is included.
        """
        checks.one_of(how, ("mean", "max"), "pooling of layers")
        every = range(len(self.layers))
        rows = [row for row in every if not np.isnan(self.mu[row]).all()] or [*every]
        pool = np.nanmean if how == "mean" else np.nanmax
        mu = pool(self.mu[rows], axis=0)
        low, high = _interval(mu, pool(self.left_out()[rows], axis=0))
        return DataFrame({"language": self.languages, "mu": mu, "low": low, "high": high})


def _interval(mu: ndarray, left_out: ndarray) -> tuple[ndarray, ndarray]:
    """Wilson's interval for the number of sentences that the jackknife variance is worth."""
    n = left_out.shape[-1]
    deviations = left_out - left_out.mean(-1, keepdims=True)
    variance = (n - 1) / n * (deviations**2).sum(-1)
    share = (n * mu + 1) / (n + 2)  # never 0 or 1, where hits could have no variance
    worth = np.full(mu.shape, float(n))
    np.divide(share * (1 - share), variance, out=worth, where=variance > 0)
    worth = worth.clip(1, n)
    low, high = share_interval(mu * worth, worth)
    return np.minimum(low, mu).clip(0), np.maximum(high, mu).clip(max=1)  # rounding


@checks.typed(states=checks.arrays)
def scores(states: Mapping[str, ndarray], pivot: str = "en") -> PivotScores:
    """Hits of all languages against the pivot (section 3), at all layers (embeddings: 0).

    ``states`` is language → ``(n_layers + 1, n, dim)``, sentences aligned. A tie of c_ii with
    another element of its row or column, but for the rounding of float64, is a miss, as the
    definition asks for strictly more. Where all vectors of a language, or the pivot, are NaN at a
    layer, there is no score. ValueError for no pivot, or nothing beside it; for other axes; as
    `alignment.unit_vectors`, with the layer.
    """
    checks.one_of(pivot, states, "pivot among the vectors")
    languages = tuple(language for language in states if language != pivot)
    if not languages:
        raise ValueError(f"there is only the pivot {pivot}: a score needs another language")
    if states[pivot].ndim != 3:
        raise ValueError(
            f"the states of {pivot} have the shape {states[pivot].shape}: (n_layers + 1, n, dim) "
            "is needed, also for one layer"
        )
    layers = tuple(range(len(states[pivot])))
    hits = np.zeros((len(layers), len(languages), states[pivot].shape[1]), bool)
    only_rival = np.full(hits.shape, UNDEFINED, np.int32)
    for layer in layers:
        vectors = {language: array[layer] for language, array in states.items()}
        absent = undefined(vectors)
        if pivot in absent:
            continue
        try:
            units = unit_vectors({x: array for x, array in vectors.items() if x not in absent})
        except ValueError as error:
            raise ValueError(f"layer {layer}: {error}") from None
        for column, language in enumerate(languages):
            if language in units:
                either = np.logical_or(*rivals(units[language], units[pivot]))
                count = either.sum(1)
                hits[layer, column] = count == 0
                only_rival[layer, column] = np.where(count == 1, either.argmax(1), -1)
    return PivotScores(languages, pivot, layers, hits, only_rival)


@checks.typed()
def rivals(vectors: ndarray, pivot_vectors: ndarray) -> tuple[ndarray, ndarray]:
    """Which sentences keep each from being a hit, among the pivot's and among the language's.

    Both vectors are ``(n, dim)``; ``[i, j]`` of each bool ``(n, n)`` is whether j is a rival of i.
    In float64, as cosines may crowd; a vector of length zero ties with all.
    """
    units = []
    for rows in (vectors, pivot_vectors):
        exact = rows.astype(float)
        norms = np.linalg.norm(exact, axis=1, keepdims=True)
        units.append(np.divide(exact, norms, out=np.zeros_like(exact), where=norms > 0))
    return beaten(units[0] @ units[1].T, ULPS)


def beaten(cosines: Matrix, slack: Matrix | float) -> tuple[Matrix, Matrix]:
    """Which elements of its row, and of its column, each c_ii is not larger than.

    ``cosines`` are ``(..., n, n)``, an array or a tensor; differences below ``slack``, a number or
    ``(..., 1)``, are ties. ``[..., i, j]`` of both is whether c_ij, or c_ji, reaches c_ii; False
    on diagonals.
    """
    level = (cosines.diagonal(0, -2, -1) - slack)[..., None]
    row, column = cosines >= level, cosines.swapaxes(-2, -1) >= level
    diagonal = [*range(cosines.shape[-1])]
    for reached in (row, column):
        reached[..., diagonal, diagonal] = False
    return row, column


def spared(rivals: ndarray, total: int, n: int) -> ndarray:
    """The chance that n sentences of ``total``, one of them given, hold none of its ``rivals``.

    C(total - 1 - u, n - 1) / C(total - 1, n - 1) for u of these, as ``rivals``: hypergeometric.
    """
    return stats.hypergeom.pmf(0, total - 1, np.clip(rivals, 0, total - 1), n - 1)


@checks.typed()
def count_rivals(states: ndarray, pivot_states: ndarray) -> dict[str, ndarray]:
    """Numbers of rivals of each sentence of a language, int16 ``(n_layers + 1, n)``.

    ``row`` are those among the pivot's sentences, ``column`` among the language's, ``either`` those
    in one or both: at most n - 1, and 0 for a hit. Both states are ``(n_layers + 1, n, dim)``; a
    vector of length zero ties with all. ValueError for more sentences than int16 can count.
    """
    if (n := states.shape[1]) > 2**15:
        raise ValueError(
            f"rivals are counted among {2**15:,} sentences at most, not {n:,}: take fewer"
        )
    counts = {"row": [], "column": [], "either": []}
    for vectors, pivot_vectors in zip(states, pivot_states, strict=True):
        row, column = rivals(vectors, pivot_vectors)
        for name, which in (("row", row), ("column", column), ("either", row | column)):
            counts[name].append(which.sum(1, dtype=np.int16))
    return {name: np.stack(layers) for name, layers in counts.items()}


def mutual(block: Block, groups: Groups) -> ndarray:
    """Hits of two languages, the same in both directions, as a measure of the registry.

    Without a group its hits go, and those become hits whose rivals are all in it: exact. Ties, a
    miss, are those of float32 here (`Block.tolerance`), where `scores` compares in float64.
    """
    row, column = beaten(block.cosine, block.tolerance[:, None])
    either = (row | column).double()
    n_rivals = either.sum(2, keepdim=True)
    member = torch.from_numpy(groups.member).to(either.device)
    regained = (n_rivals > 0) & (either @ member == n_rivals) & (member == 0)
    hits = (n_rivals[..., 0] == 0).double().cpu().numpy()
    return groups.over_positions(hits, regained.sum(1).cpu().numpy())


#: Lower edges of the bands of Table 6; a score on an edge belongs above it.
EDGES = (0.0, 0.2, 0.4, 0.6, 0.8)
#: Their names, from "not covered" to "well-covered".
BANDS = ("0–0.2", "0.2–0.4", "0.4–0.6", "0.6–0.8", "0.8–1")


@checks.typed()
def expected(mu: ndarray | Series | float, english_score: float) -> ndarray:
    """The adjusted score, μ times the score of the task in English (section 5.2, Table 6).

    In units of the task's score, a share in [0, 1]. Raises ValueError outside of that.
    """
    for name, values in (("mu", mu), ("english_score", english_score)):
        if not np.all((values >= 0) & (values <= 1)):
            raise ValueError(f"{name} must lie in [0, 1] (a share, not percent), none missing")
    return np.asarray(mu) * english_score


@checks.typed()
def bands(score: ndarray | Series | Sequence[float]) -> pd.Categorical:
    """The band of each adjusted score: the colours of Table 6, from `BANDS`, in order.

    Raises ValueError for a score that is missing or outside [0, 1].
    """
    values = np.asarray(score, float).round(12)  # 0.2 * 3 is no less than 0.6
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("adjusted scores lie in [0, 1], and none may be missing")
    codes = np.digitize(values, EDGES) - 1
    return pd.Categorical.from_codes(codes, BANDS, ordered=True)


REGISTERED = (Measure("MEXA", mutual, of_queries=True, reported=False),)
