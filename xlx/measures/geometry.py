"""Measures of two languages beside triplets: how their spaces look, with errors over documents.

All are of unit vectors, so that a similarity block has what they need. They average what each
sentence has (its cosine to the translation, its silhouette, whether its nearest neighbour is of its
language), or correlate what all pairs of sentences have (CKA, RSA). Without a group of positions
the others keep their neighbours and their centring, as the candidates of retrieval stay.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import torch

from xlx.measures.abx import LD, MD, RETRIEVAL, Comparisons, Measure, PositionGroups, Side
from xlx.measures.alignment import unit_vectors

#: Rows whose similarities to all sentences are held at once.
_ROWS = 512


def nearest_languages(vectors: Mapping[str, np.ndarray]) -> np.ndarray:
    """How often the nearest sentence of one of a language is of each: int64 ``(2, L, L)``.

    ``vectors`` are ``(n, dim)`` by language, sentences aligned; the first axis: among all others,
    and among those of other positions. Of equal cosines the first language counts. ValueError as
    `alignment.unit_vectors`.
    """
    units = np.stack(list(unit_vectors(vectors).values()))
    n_languages, n, dim = units.shape
    # without what all sentences share: cosines are as near as the digits of float32
    rest = torch.from_numpy((units - units.mean(axis=(0, 1))).reshape(-1, dim))
    offset = (rest @ torch.from_numpy(units.mean(axis=(0, 1)))).float()
    rest = rest.float()
    counts = np.zeros((2, n_languages, n_languages), dtype=np.int64)
    for start in range(0, n_languages * n, _ROWS):
        rows = torch.arange(start, min(start + _ROWS, n_languages * n))
        near, at = rest[rows] @ rest.T + offset, torch.arange(len(rows))
        near[at, rows] = -torch.inf
        for kind in range(2):
            if kind:  # no sentence at the same position
                near.view(len(rows), n_languages, n)[at, :, rows % n] = -torch.inf
            found = (near.argmax(dim=1) // n).numpy()
            np.add.at(counts[kind], ((rows // n).numpy(), found), 1)
    return counts


#: Who names the language of a sentence: least squares on its vector, the sentence nearest to it.
READERS = ("linear", "nearest")
#: Documents that are held out at a time: one in so many. The ridge on standardised dimensions.
_FOLDS, _RIDGE = 5, 0.01


def identified(
    vectors: Mapping[str, np.ndarray], groups: Sequence[object], *, centred: bool = False
) -> np.ndarray:
    """Whether `READERS` name the language of held-out sentences rightly: bool ``(2, L, n)``.

    ``vectors`` are ``(n, dim)`` by language, sentences aligned; ``groups``, ``(n,)``, are held out
    whole. "linear" fits the languages' indicators; "nearest" is by cosine. ``centred``: less the
    mean of each language over the sentences that are not held out; then the linear reader has
    nothing to fit, and is at chance. Of equal answers the first language counts.
    """
    stacked = np.stack([*vectors.values()]).astype(np.float64)
    n_languages, n, dim = stacked.shape
    fold = np.unique(np.asarray(groups).astype(str), return_inverse=True)[1] % _FOLDS
    targets, right = np.eye(n_languages) - 1 / n_languages, np.zeros((2, n_languages, n), bool)
    for held in (fold == number for number in np.unique(fold)):
        rows = stacked - centred * stacked[:, ~held].mean(axis=1, keepdims=True)
        known, asked = rows[:, ~held].reshape(-1, dim), rows[:, held].reshape(-1, dim)
        scale = known.std(axis=0)
        known, asked = (
            (x - known.mean(axis=0)) / np.where(scale, scale, 1) for x in (known, asked)
        )
        of = np.repeat(targets, (~held).sum(), axis=0)
        fitted = known.T @ known + _RIDGE * len(known) * np.eye(dim)
        told = [np.round(asked @ np.linalg.solve(fitted, known.T @ of), 9).argmax(axis=1)]
        units = rows / np.linalg.norm(rows, axis=2, keepdims=True)
        common = units.mean(axis=(0, 1))  # without it cosines are as near as the digits of float32
        near, query = ((units[:, x] - common).reshape(-1, dim) for x in (~held, held))
        offset, near = (near @ common).astype(np.float32), near.astype(np.float32).T
        parts = np.array_split(query.astype(np.float32), max(1, len(query) // _ROWS))
        nearest = np.concatenate([(part @ near + offset).argmax(axis=1) for part in parts])
        told.append(nearest // (~held).sum())
        own = np.repeat(np.arange(n_languages), held.sum())
        right[:, :, held] = (np.stack(told) == own).reshape(2, n_languages, -1)
    return right


def of_sentences(name: str, values: Callable[[Side], torch.Tensor]) -> Measure:
    """The mean over sentences X of what each has, ``(m, n)``."""

    def wins(side: Side, groupings: Collection[PositionGroups]) -> Comparisons:
        return Comparisons.of_queries(values(side).double().cpu().numpy(), groupings)

    return Measure(name, wins, of_queries=True, told=False)


def translation_cosine(side: Side) -> torch.Tensor:
    """The cosine to the translation, in [-1, 1] (MEXA paper, section 5.3)."""
    return side.cosine.diagonal(dim1=1, dim2=2) + side.common


def silhouette(side: Side) -> torch.Tensor:
    """(b - a) / max(a, b), a and b the mean cosine distances to X's language and to the other.

    Rousseeuw (1987), in [-1, 1]: 1, languages far apart; 0, none to be seen.
    """
    own = side.kernels[side.axis - 1]
    n = own.shape[-1]
    near = (own.sum(dim=2) - own.diagonal(dim1=1, dim2=2)) / (n - 1)
    a, b = 1 - side.common - near, 1 - side.common - side.cosine.mean(dim=side.axis)
    return (b - a) / torch.maximum(a, b)


def purity(side: Side) -> torch.Tensor:
    """Whether the nearest sentence of another position is of X's language; ½ for a tie."""
    nearest = []
    for near in (side.within.expand_as(side.to_other).clone(), side.to_other.clone()):
        near.diagonal(dim1=1, dim2=2).fill_(-torch.inf)
        nearest.append(near.amax(dim=side.axis))
    ahead, slack = nearest[0] - nearest[1], side.tolerance[:, None]
    return ((ahead >= -slack).float() + (ahead > slack)) / 2


@dataclass(frozen=True)
class Correlated:
    """A correlation of two languages' matrices, as `Comparisons` are a share."""

    products: Comparisons
    squares: tuple[Comparisons, Comparisons]

    @property
    def total(self) -> np.ndarray:
        """The correlation, ``(m,)``; NaN where a language has no variation."""
        return _ratio(self.products.total, *(x.total for x in self.squares))

    def without(self, groups: PositionGroups) -> np.ndarray:
        """That without each group, ``(m, n_groups)``."""
        return _ratio(self.products.without(groups), *(x.without(groups) for x in self.squares))


def _ratio(products: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return products / np.sqrt(first * second)


def of_pairs(name: str, centre: Callable[[torch.Tensor], torch.Tensor]) -> Measure:
    """The correlation of the cosines within two languages, ``(m, n, n)``, when they are centred."""

    def wins(side: Side, groupings: Collection[PositionGroups]) -> Correlated:
        first, second = map(centre, side.kernels)
        for cells in (first, second):
            cells.diagonal(dim1=1, dim2=2).zero_()
        of = (Comparisons.of(x, groupings) for x in (first * second, first**2, second**2))
        return Correlated(next(of), tuple(of))

    return Measure(name, wins, whole=True, told=False)


def less_rows(cells: torch.Tensor) -> torch.Tensor:
    """U-centred: linear CKA is then debiased (Nguyen et al. 2021), about 0 for unrelated vectors.

    As `alignment.cka`, of unit vectors. ValueError for fewer than four sentences.
    """
    n = cells.shape[-1]
    if n < 4:
        raise ValueError(f"debiased CKA needs four sentences or more, and there are {n}")
    cells = cells.clone()
    cells.diagonal(dim1=1, dim2=2).zero_()
    rows = cells.sum(dim=2) / (n - 2)
    return cells + (rows.sum(dim=1) / (n - 1))[:, None, None] - rows[:, None] - rows[:, :, None]


def less_mean(cells: torch.Tensor) -> torch.Tensor:
    """Less the mean of different sentences: RSA by Pearson's correlation, as `alignment.rsa`."""
    n = cells.shape[-1]
    pairs = cells.sum(dim=(1, 2)) - cells.diagonal(dim1=1, dim2=2).sum(dim=1)
    return cells - (pairs / (n * (n - 1)))[:, None, None]


#: So many nearest sentences say how crowded the place of one is.
CROWD = 10


def less_crowd(side: Side) -> Side:
    """The side with CSLS for cosines (Conneau et al. 2018, section 2.3).

    Of each candidate twice the cosine to X less its mean cosine to the `CROWD` sentences of X's
    language that are nearest to it, which is high of hubs; X's own term is the same for A and B.
    """
    within, across = side.kernels[side.axis - 1].clone(), side.cosine
    k, queries = min(CROWD, across.shape[-1] - 1), 3 - side.axis
    own = within.diagonal(dim1=1, dim2=2)
    cosines = own.clone()
    own.fill_(-torch.inf)
    crowds = [x.topk(k, dim=queries).values.mean(queries, keepdim=True) for x in (within, across)]
    own.copy_(cosines)
    moved = copy(side)
    vars(moved).pop("ahead", None)  # of the cosines
    moved.tolerance = 2 * side.tolerance
    moved.within, moved.to_other = (
        2 * x - r for x, r in zip((within, across), crowds, strict=True)
    )
    return moved


def by_csls(of: Measure) -> Measure:
    """A measure with CSLS for cosines."""

    def wins(side: Side, groupings: Collection[PositionGroups]) -> Comparisons:
        return of.wins(less_crowd(side), groupings)

    return replace(of, name=f"{of.name} by CSLS", wins=wins, told=False)


COSINE = of_sentences("cosine", translation_cosine)
REGISTERED = (
    COSINE,
    of_sentences("silhouette", silhouette),
    of_sentences("purity", purity),
    of_pairs("CKA", less_rows),
    of_pairs("RSA", less_mean),
    *map(by_csls, (LD, MD, RETRIEVAL)),
)
