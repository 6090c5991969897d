"""Measures of two languages beside triplets: how their spaces look, with errors over documents.

They are of unit vectors, but for biased CKA, whose lengths a block has too. They average what each
sentence has (its cosine to the translation, its silhouette, whether its nearest neighbour is of its
language), or correlate what all pairs of sentences have (CKA, RSA). Without a group of positions
the others keep their neighbours and their centring, as the candidates of retrieval stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy import ndarray

from xlx.measures.abx import LD, MD, RETRIEVAL, Groups, Measure
from xlx.measures.alignment import Block
from xlx.results.deferred import deferred

torch = deferred("torch")
stats = deferred("scipy.stats")


def of_sentences(name: str, values: Callable[[Block], torch.Tensor], **options: Any) -> Measure:
    """The mean over sentences X of what each has, ``(m, n)``."""

    def wins(block: Block, groups: Groups) -> ndarray:
        return groups.over_positions(values(block).double().cpu().numpy())

    return Measure(name, wins, of_queries=True, share=False, reported=False, **options)


def translation_cosine(block: Block) -> torch.Tensor:
    """The cosine to the translation, in [-1, 1] (MEXA paper, section 5.3)."""
    return block.cosine.diagonal(dim1=1, dim2=2) + block.common


def silhouette(block: Block) -> torch.Tensor:
    """(b - a) / max(a, b), a and b the mean cosine distances to X's language and to the other.

    Rousseeuw (1987), in [-1, 1]: 1, languages far apart; 0, none to be seen.
    """
    within = block.kernels[block.axis - 1]
    n = within.shape[-1]
    near = (within.sum(2) - within.diagonal(dim1=1, dim2=2)) / (n - 1)
    a, b = 1 - block.common - near, 1 - block.common - block.cosine.mean(block.axis)
    return (b - a) / torch.maximum(a, b)


def purity(block: Block) -> torch.Tensor:
    """Whether the nearest sentence of another position is of X's language; ½ for a tie."""
    nearest = []
    for near in (block.within.expand_as(block.to_other).clone(), block.to_other.clone()):
        near.diagonal(dim1=1, dim2=2).fill_(-torch.inf)
        nearest.append(near.amax(block.axis))
    ahead, slack = nearest[0] - nearest[1], block.tolerance[:, None]
    return ((ahead >= -slack).float() + (ahead > slack)) / 2


def of_pairs(
    name: str, kernels: Callable[[Block], Iterable[torch.Tensor]], **options: Any
) -> Measure:
    """The correlation of matrices of all pairs of sentences within two languages, ``(m, n, n)``.

    NaN where all cosines of a language are the same.
    """

    def wins(block: Block, groups: Groups) -> ndarray:
        first, second = (
            cells * (less_mean(cosines).abs().amax((1, 2)) > block.tolerance)[:, None, None]
            for cells, cosines in zip(kernels(block), block.kernels, strict=True)
        )
        products, squares, others = map(groups.over_pairs, (first * second, first**2, second**2))
        with np.errstate(invalid="ignore", divide="ignore"):
            return products / np.sqrt(squares * others)

    return Measure(name, wins, whole=True, share=False, reported=False, **options)


def debiased(block: Block) -> Iterator[torch.Tensor]:
    """U-centred: linear CKA is then debiased (Nguyen et al. 2021), about 0 for unrelated vectors.

    Of unit vectors. ValueError for fewer than four sentences.
    """
    for cosines in block.kernels:
        n = cosines.shape[-1]
        if n < 4:
            raise ValueError(f"debiased CKA needs four sentences or more, and there are {n}")
        cells = _hollow(cosines)
        rows = cells.sum(2) / (n - 2)
        total = (rows.sum(1) / (n - 1))[:, None, None]
        yield _hollow(cells + total - rows[:, None] - rows[:, :, None])


def biased(block: Block) -> Iterator[torch.Tensor]:
    """Dot products of vectors as they come, centred: linear CKA (Kornblith et al. 2019), in [0, 1].

    With fewer sentences than dimensions it makes unrelated vectors look alike.
    """
    for cosines, lengths in zip(block.kernels, block.lengths, strict=True):
        scales = lengths / lengths.mean(1, keepdim=True)
        cells = (cosines.double() + block.common) * scales[:, None] * scales[:, :, None]
        rows = cells.mean(2)
        yield cells + rows.mean(1)[:, None, None] - rows[:, None] - rows[:, :, None]


def less_mean(cells: torch.Tensor) -> torch.Tensor:
    """Less the mean of different sentences: RSA is Pearson's correlation of what is left."""
    n, cells = cells.shape[-1], _hollow(cells)
    return _hollow(cells - (cells.sum((1, 2)) / (n * (n - 1)))[:, None, None])


def ranks(block: Block) -> Iterator[torch.Tensor]:
    """Ranks of cosines less their mean: RSA is Spearman's correlation (MEXA paper, A.3)."""
    for cosines in block.kernels:
        steps = (cosines / (64 * block.tolerance.max())).round().double()  # equal ones stay so
        steps.diagonal(dim1=1, dim2=2).fill_(-torch.inf)
        ranked = stats.rankdata(steps.flatten(1).cpu().numpy(), axis=1).reshape(steps.shape)
        yield less_mean(torch.from_numpy(ranked).to(cosines.device))


def _hollow(cells: torch.Tensor) -> torch.Tensor:
    cells = cells.clone()
    cells.diagonal(dim1=1, dim2=2).zero_()
    return cells


#: So many nearest sentences say how crowded the place of one is.
CROWD = 10


def less_crowd(block: Block) -> Block:
    """The block with CSLS for cosines (Conneau et al. 2018, section 2.3).

    Of each candidate twice the cosine to X less its mean cosine to the `CROWD` sentences of X's
    language that are nearest to it, which is high of hubs; X's own term is the same for A and B.
    """
    within, across = block.kernels[block.axis - 1].clone(), block.cosine
    k, queries = min(CROWD, across.shape[-1] - 1), 3 - block.axis
    diagonal = within.diagonal(dim1=1, dim2=2)
    cosines = diagonal.clone()
    diagonal.fill_(-torch.inf)
    crowds = [x.topk(k, dim=queries).values.mean(queries, keepdim=True) for x in (within, across)]
    diagonal.copy_(cosines)
    moved = replace(block, tolerance=2 * block.tolerance)
    moved.within, moved.to_other = (
        2 * x - r for x, r in zip((within, across), crowds, strict=True)
    )
    return moved


def by_csls(measure: Measure) -> Measure:
    """A measure with CSLS for cosines."""

    def wins(block: Block, groups: Groups) -> ndarray:
        return measure.wins(less_crowd(block), groups)

    return replace(measure, name=f"{measure.name} by CSLS", wins=wins, reported=False)


COSINE = of_sentences("cosine", translation_cosine, label="cosine of translations")
REGISTERED = (
    COSINE,
    of_sentences("silhouette", silhouette),
    of_sentences("purity", purity),
    of_pairs("CKA", debiased, label="CKA, debiased"),
    of_pairs("biased CKA", biased, label="CKA"),
    of_pairs("RSA", lambda block: map(less_mean, block.kernels), label="RSA (Pearson)"),
    of_pairs("RSA by ranks", ranks, label="RSA (Spearman)"),
    *map(by_csls, (LD, MD, RETRIEVAL)),
)
