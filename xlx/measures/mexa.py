"""MEXA: how well a language is aligned with the pivot (Kargaran et al. 2025, section 3).

C holds the cosines of n sentences of a language (rows) with their n translations in the pivot
(columns). Sentence i is a *hit* if c_ii is larger than every other element of row i and of column
i: its translation is the best answer in both directions at once. The score μ is the share of hits,
for each layer; over layers it is averaged, or its maximum taken.

**The arithmetic.** As in `xlx.measures.alignment`: where all cosines are near one, float32 cannot
tell them apart. With x = m + x' a unit vector of the language and p = q + p' one of the pivot, m
and q their means over the sentences,

    x_i·p_j = m·q + q·x'_i + m·p'_j + x'_i·p'_j

and the first term is the same for all. The next two come from float64, the last from one float32
product for all sentences; where that leaves a comparison open it is made again in float64.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xlx.measures.abx import Comparisons, Measure, PositionGroups, Side
from xlx.measures.alignment import BLOCK_NUMBERS, check_pivot, undefined, unit_vectors
from xlx.measures.statistics import share_interval
from xlx.results.deferred import deferred

special, torch = deferred("scipy.special"), deferred("torch")

#: Rounding errors of a dot product, in units of the last place of the product of the lengths.
_ROUNDING = 16
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
    hits: np.ndarray
    only_rival: np.ndarray

    @property
    def mu(self) -> np.ndarray:
        """The score μ (section 3), ``(n_layers, n_languages)`` in [0, 1]; NaN: not defined."""
        return np.where(
            (self.only_rival == UNDEFINED).all(axis=-1), np.nan, self.hits.mean(axis=-1)
        )

    def left_out(self) -> np.ndarray:
        """The score without sentence k, exactly: ``(n_layers, n_languages, n)``.

        Without k as a query its own hit goes, and without k as a candidate those become hits whose
        only rival it was.
        """
        n = self.hits.shape[-1]
        regained = np.zeros(self.hits.shape)
        layer, language, query = np.nonzero(self.only_rival >= 0)
        np.add.at(regained, (layer, language, self.only_rival[layer, language, query]), 1)
        left = (self.hits.sum(axis=-1, keepdims=True) - self.hits + regained) / (n - 1)
        return left + 0 * self.mu[..., None]  # NaN stays

    def table(self) -> pd.DataFrame:
        """Tidy: ``language``, ``layer``, ``mu``, ``low``, ``high`` (interval: see `pooled`)."""
        low, high = _interval(self.mu, self.left_out())
        keys = pd.MultiIndex.from_product(
            [self.languages, self.layers], names=["language", "layer"]
        )
        columns = {"mu": self.mu.T.ravel(), "low": low.T.ravel(), "high": high.T.ravel()}
        return pd.DataFrame(columns, keys).reset_index()

    def pooled(self, how: str = "mean", *, embedding_layer: bool = True) -> pd.DataFrame:
        """One score per language, over layers: ``language``, ``mu``, ``low``, ``high``.

        ``how`` is "mean", which suits hard tasks, or "max", for easy ones (section 5.1); whether
        layer 0 counts "all model layers" leaves open; layers without a score do not. ValueError for
        another way, or no layer left.

        **The interval** is for other sentences, as many and of the same kind. Each is a query and a
        candidate, so it cannot be resampled with replacement: copies tie with each other. The
        jackknife, each left out as both, needs no new comparison (`left_out`) and sees hubs, which
        spoil the hits of many. It errs on the safe side (Efron and Stein 1981): where hits are next
        to independent it is about a quarter too wide. So that the interval of a score near 0 or 1
        does not end there, it is Wilson's, for the number of independent sentences that would give
        the jackknife's variance, at most n. The maximum is taken again without each sentence, so
        the choice of the layer is included.
        """
        if how not in ("mean", "max"):
            raise ValueError(f"layers cannot be pooled by {how!r}: choose mean or max")
        kept = [row for row, layer in enumerate(self.layers) if layer > 0 or embedding_layer]
        if not kept:
            raise ValueError("without the embedding layer none is left to pool")
        kept = [row for row in kept if not np.isnan(self.mu[row]).all()] or kept
        pool = np.nanmean if how == "mean" else np.nanmax
        mu = pool(self.mu[kept], axis=0)
        low, high = _interval(mu, pool(self.left_out()[kept], axis=0))
        return pd.DataFrame({"language": self.languages, "mu": mu, "low": low, "high": high})


def _interval(mu: np.ndarray, left_out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's interval for the number of sentences that the jackknife variance is worth."""
    n = left_out.shape[-1]
    deviations = left_out - left_out.mean(axis=-1, keepdims=True)
    variance = (n - 1) / n * (deviations**2).sum(axis=-1)
    share = (n * mu + 1) / (n + 2)  # never 0 or 1, where hits could have no variance
    worth = np.full(mu.shape, float(n))
    np.divide(share * (1 - share), variance, out=worth, where=variance > 0)
    worth = worth.clip(1, n)
    low, high = share_interval(mu * worth, worth)
    return np.minimum(low, mu).clip(0), np.maximum(high, mu).clip(max=1)  # rounding


def scores(
    states: Mapping[str, np.ndarray], pivot: str = "en", *, layers: Sequence[int] | None = None
) -> PivotScores:
    """Hits of all languages against the pivot (section 3), at all layers (embeddings: 0).

    ``states`` is language → ``(n_layers + 1, n, dim)``, sentences aligned. A tie of c_ii with
    another element of its row or column, but for the rounding of float64, is a miss, as the
    definition asks for strictly more. Where all vectors of a language, or the pivot, are NaN at a
    layer, there is no score. ValueError as `alignment.check_pivot`; for other NaN, infinity, or a
    zero vector.
    """
    layers = check_pivot(states, pivot, layers)
    languages = tuple(language for language in states if language != pivot)
    _, n, dim = states[pivot].shape
    hits = np.empty((len(layers), len(languages), n), dtype=bool)
    only_rival = np.empty(hits.shape, dtype=np.int32)
    chunk = max(1, BLOCK_NUMBERS // (4 * n * max(n, dim)))  # several arrays of it, in the cache
    space = torch.empty((2, min(chunk, len(languages)), n, n))
    for row, layer in enumerate(layers):
        absent = undefined({code: states[code][layer] for code in states})
        there = [i for i, code in enumerate(languages) if code not in absent]
        hits[row], only_rival[row] = False, UNDEFINED
        if pivot in absent:
            continue
        try:
            of_pivot = _centred({pivot: states[pivot][layer]})
            for start in range(0, len(there), chunk):
                part = there[start : start + chunk]
                of_languages = _centred({languages[i]: states[languages[i]][layer] for i in part})
                rivals = _rivals(*of_languages, *(array[0] for array in of_pivot), space).numpy()
                hits[row, part] = rivals == 0
                only_rival[row, part] = np.where((rivals > 0) & (rivals < 2 * n), rivals - n, -1)
        except ValueError as error:
            raise ValueError(f"layer {layer}: {error}") from None
    return PivotScores(languages, pivot, layers, hits, only_rival)


def _centred(vectors: Mapping[str, np.ndarray]) -> tuple[torch.Tensor, torch.Tensor]:
    """Unit vectors less the mean of their language, ``(m, n, dim)``, and the means; float64."""
    rest = torch.from_numpy(np.stack(list(vectors.values()), dtype=np.float64))
    norms = torch.linalg.vector_norm(rest, dim=2, keepdim=True)
    if not (norms.isfinite() & (norms > 0)).all():
        unit_vectors(vectors)  # says which vector has no direction
    rest *= 1 / norms
    means = rest.mean(dim=1)
    rest -= means[:, None]
    return rest, means


def _rivals(
    rest: torch.Tensor,
    means: torch.Tensor,
    pivot_rest: torch.Tensor,
    pivot_mean: torch.Tensor,
    space: torch.Tensor,
) -> torch.Tensor:
    """Who keeps each sentence from being a hit: ``(m, n)``.

    0 if nobody does, n + j if sentence j alone, 2n if several do. ``space``, ``(2, m or more, n,
    n)``, is to work in: new memory for every step would cost more than the comparisons.
    """
    m, n, dim = rest.shape
    offset, pivot_offset = rest @ pivot_mean, means @ pivot_rest.T  # (m, n): q·x'_i and m·p'_j
    single, pivot_single = rest.float(), pivot_rest.float()
    across, reach = space[:, :m]
    torch.mm(single.view(-1, dim), pivot_single.T, out=across.view(-1, n))
    across += offset.float()[:, :, None]
    across += pivot_offset.float()[:, None]
    largest = single.norm(dim=2).amax(dim=1) * pivot_single.norm(dim=1).amax()
    size = largest + offset.abs().amax(dim=1) + pivot_offset.abs().amax(dim=1)
    slack = (_ROUNDING * torch.finfo(torch.float32).eps * size).float()[:, None]
    diagonal = _take_diagonal(across, torch.arange(n).expand(m, n))
    rivals, sure = (
        _either(_beaten(across, level, reach), _beaten(across.mT, level, reach.mT), n)
        for level in (diagonal - slack, diagonal + slack)
    )
    exact_slack = _ROUNDING * torch.finfo(torch.float64).eps
    unsure = rivals != sure
    for language in unsure.any(dim=1).nonzero().ravel():
        open_ = unsure[language].nonzero().ravel()
        row = rest[language, open_] @ pivot_rest.T + pivot_offset[language]
        column = pivot_rest[open_] @ rest[language].T + offset[language]
        sums = (
            _beaten(matrix, _take_diagonal(matrix, open_) - exact_slack, torch.empty_like(matrix))
            for matrix in (row, column)
        )
        rivals[language, open_] = _either(*sums, n)
    return rivals


def _take_diagonal(across: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Of each row the element at its position, where -inf is left: ``(..., r)``."""
    taken = across.gather(-1, positions[..., None])
    across.scatter_(-1, positions[..., None], -torch.inf)
    return taken[..., 0]


def _beaten(across: torch.Tensor, level: torch.Tensor, reach: torch.Tensor) -> torch.Tensor:
    """Σ (n + j) over the elements j of a row that reach its level: ``(..., r)``.

    It is 0 for none, n + j < 2n for j alone, and above 2n for several, however it is rounded.
    ``across`` and ``reach``, which is overwritten, are ``(..., r, n)``.
    """
    torch.ge(across, level[..., None], out=reach)  # 1 or 0
    n = across.shape[-1]
    weights = torch.arange(n, 2 * n).to(across).expand(*across.shape[:-2], 1, n)
    return (weights @ reach.mT)[..., 0, :]  # in this order, fast for rows and columns


def _either(row: torch.Tensor, column: torch.Tensor, n: int) -> torch.Tensor:
    """The sum over a row and that over a column as one over the sentences in either, at most 2n."""
    # Unequal ones are of different sentences, so that several are counted, or one of them is 0.
    return torch.where(row == column, row, row + column).clamp(max=2 * n).int()


#: Cosines tie that differ by less than the rounding of float64.
_SLACK = 16 * np.finfo(np.float64).eps


def spared(rivals: np.ndarray, total: int, n: int) -> np.ndarray:
    """The chance that n sentences of ``total``, one of them given, hold none of its ``rivals``.

    C(total - 1 - u, n - 1) / C(total - 1, n - 1) for u of these, as `rivals`.
    """
    free = total - 1 - np.asarray(rivals, dtype=np.float64)
    possible = free >= n - 1
    free = np.where(possible, free, n - 1)
    logs = (
        special.gammaln(free + 1)
        - special.gammaln(free - n + 2)
        - special.gammaln(total)
        + special.gammaln(total - n + 1)
    )
    return np.where(possible, np.exp(logs), 0.0)


def count_rivals(states: np.ndarray, pivot_states: np.ndarray) -> dict[str, np.ndarray]:
    """Numbers of rivals of each sentence of a language, int16 ``(n_layers + 1, n)``.

    ``row`` are those among the pivot's sentences, ``column`` among the language's, ``either`` those
    in one or both: at most n - 1, and 0 for a hit. Both states are ``(n_layers + 1, n, dim)``; a
    vector of length zero ties with all. ValueError for more sentences than int16 can count.
    """
    if (n := states.shape[1]) > 2**15:
        raise ValueError(
            f"rivals are counted among {2**15:,} sentences at most, not {n:,}: take fewer"
        )
    counts: dict[str, list[np.ndarray]] = {"row": [], "column": [], "either": []}
    for layers in zip(states, pivot_states, strict=True):
        rest, pivot_rest = (_directions(rows) for rows in layers)
        cosines = rest @ pivot_rest.T
        level = cosines.diagonal()[:, None] - _SLACK
        row, column = (matrix >= level for matrix in (cosines, cosines.T))
        for beaten in (row, column):
            np.fill_diagonal(beaten, False)
        for name, beaten in (("row", row), ("column", column), ("either", row | column)):
            counts[name].append(beaten.sum(axis=1).astype(np.int16))
    return {name: np.stack(of_layers) for name, of_layers in counts.items()}


def _directions(rows: np.ndarray) -> np.ndarray:
    exact = rows.astype(np.float64)
    norms = np.linalg.norm(exact, axis=1, keepdims=True)
    return np.divide(exact, norms, out=np.zeros_like(exact), where=norms > 0)


def mutual(side: Side, groupings: Collection[PositionGroups]) -> Comparisons:
    """Hits of two languages, the same in both directions, as a measure of the registry.

    Without a group its hits go, and those become hits whose rivals are all in it: exact. Ties, a
    miss, are those of float32 here (`Side.tolerance`), where `scores` compares in float64.
    """
    level = side.cosine.diagonal(dim1=1, dim2=2) - side.tolerance[:, None]
    beaten = (side.cosine >= level[:, :, None]) | (side.cosine.mT >= level[:, :, None])
    beaten.diagonal(dim1=1, dim2=2).fill_(value=False)
    hits, inside = ~beaten.any(dim=2), {}
    for groups in groupings:
        codes = torch.as_tensor(groups.codes, device=beaten.device)
        lowest = torch.where(beaten, codes, groups.n).amin(dim=2)
        regained = ~hits & (lowest == torch.where(beaten, codes, -1).amax(dim=2))
        regained &= lowest != codes
        found = zip(lowest.cpu().numpy(), regained.cpu().numpy(), strict=True)
        inside[groups] = np.stack([np.bincount(x[y], minlength=groups.n) for x, y in found])
    at = hits.double().cpu().numpy()
    return Comparisons(at.sum(axis=1), at, inside)


#: Lower edges of the bands of Table 6; a score on an edge belongs above it.
EDGES = (0.0, 0.2, 0.4, 0.6, 0.8)
#: Their names, from "not covered" to "well-covered".
BANDS = ("0–0.2", "0.2–0.4", "0.4–0.6", "0.6–0.8", "0.8–1")


def expected(mu: np.ndarray | pd.Series | float, english_score: float) -> np.ndarray:
    """The adjusted score, μ times the score of the task in English (section 5.2, Table 6).

    In units of the task's score, a share in [0, 1]. Raises ValueError outside of that.
    """
    for name, values in (("mu", mu), ("english_score", english_score)):
        if not np.all((np.asarray(values) >= 0) & (np.asarray(values) <= 1)):
            raise ValueError(f"{name} must lie in [0, 1] (a share, not percent), none missing")
    return np.asarray(mu) * english_score


def bands(score: np.ndarray | pd.Series | Sequence[float]) -> pd.Categorical:
    """The band of each adjusted score: the colours of Table 6, from `BANDS`, in order.

    Raises ValueError for a score that is missing or outside [0, 1].
    """
    values = np.asarray(score, dtype=float).round(12)  # 0.2 * 3 is no less than 0.6
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("adjusted scores lie in [0, 1], and none may be missing")
    codes = np.digitize(values, EDGES) - 1
    return pd.Categorical.from_codes(codes, BANDS, ordered=True)


REGISTERED = (Measure("MEXA", mutual, of_queries=True, told=False),)
