"""The comparisons behind the exact scores of a block: how many are won, and which positions hold.

Of each comparison of ``X·A`` with ``X·B`` two positions of the corpus take part: in LD those of X
and of A (B is its translation), in MD those of X (A is its translation) and of B. So of the ``n ×
n`` comparisons of a pair and a direction three sums tell all: how many are won, how many of these
hold a given position, and how many hold two positions of one group (a document). What is won
without a group follows exactly,

    all that is won - Σ over the group's positions of what holds it + what holds two of them

and so for the comparisons that are made, where a mask leaves some out. A retrieval is a comparison
that holds one position, that of the query: its pool of candidates is taken as given.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from xlx.models import alignment
from xlx.models.similarity import Block


class PositionGroups:
    """Positions that may depend on each other, such as the sentences of a document."""

    def __init__(self, of_position: Sequence[object]) -> None:
        names, codes = np.unique(np.asarray(of_position).astype(str), return_inverse=True)
        self.n = len(names)
        #: Where each position is a group, their order.
        self._order = np.argsort(codes) if self.n == len(codes) else None
        self._holds = (codes[:, None] == np.arange(self.n)).astype(np.float64)
        first, second = np.nonzero(codes[:, None] == codes)
        apart = first != second
        self._first, self._second = map(torch.from_numpy, (first[apart], second[apart]))
        self._group = codes[first[apart]]

    def sums(self, at: np.ndarray) -> np.ndarray:
        """``(m, n)`` → sums over the positions of each group, ``(m, n_groups)``."""
        return at[:, self._order] if self._order is not None else at @ self._holds

    def inside(self, cells: torch.Tensor) -> np.ndarray:
        """``(m, n, n)`` → sums over the pairs of positions of each group, ``(m, n_groups)``."""
        if self._order is not None:
            return np.zeros((len(cells), self.n))
        chosen = cells[:, self._first.to(cells.device), self._second.to(cells.device)]
        rows = chosen.double().cpu().numpy()
        return np.stack([np.bincount(self._group, row, minlength=self.n) for row in rows])


@dataclass(frozen=True)
class Comparisons:
    """Sums over comparisons of one direction, of m pairs of languages.

    ``total``, ``(m,)``; ``at``, ``(m, n)``: of those that hold a position; ``inside``: groups →
    ``(m, n_groups)``, of those that hold two positions of a group.
    """

    total: np.ndarray
    at: np.ndarray
    inside: dict[PositionGroups, np.ndarray]

    @classmethod
    def of(
        cls, cells: torch.Tensor, groupings: Collection[PositionGroups], worth: float = 1
    ) -> "Comparisons":
        """Those of ``(m, n, n)``, zero on the diagonals; ``worth``: what 1 in a cell counts."""
        ones = cells.new_ones(cells.shape[-1])
        rows, columns = (side.double().cpu().numpy() for side in (cells @ ones, ones @ cells))
        inside = {groups: worth * groups.inside(cells) for groups in groupings}
        return cls(worth * rows.sum(axis=1), worth * (rows + columns), inside)

    @classmethod
    def of_queries(cls, credit: np.ndarray, groupings: Collection[PositionGroups]) -> "Comparisons":
        """Those that hold one position each: ``(m, n)``."""
        nothing = {groups: np.zeros((len(credit), groups.n)) for groups in groupings}
        return cls(credit.sum(axis=1), credit, nothing)

    def without(self, groups: PositionGroups) -> np.ndarray:
        """What is left of the total without each group, ``(m, n_groups)``."""
        return self.total[:, None] - groups.sums(self.at) + self.inside[groups]

    def taken(self, rows: Sequence[int]) -> "Comparisons":
        """Those of some pairs, in this order."""
        inside = {groups: sums[rows] for groups, sums in self.inside.items()}
        return Comparisons(self.total[rows], self.at[rows], inside)


class Distractors:
    """Which sentences may be B: language of B → boolean ``(n, n)``, ``[a, b]``: b, where A is at a.

    ValueError where a language leaves no B at all.
    """

    def __init__(
        self, task: str, masks: Mapping[str, np.ndarray], groupings: Collection[PositionGroups]
    ) -> None:
        self.task = task
        distinct = {id(mask): mask for mask in masks.values()}  # one may serve all languages
        rows = {key: row for row, key in enumerate(distinct)}
        self._row = {language: rows[id(mask)] for language, mask in masks.items()}
        cells = torch.from_numpy(np.stack([*distinct.values()]).astype(np.uint8))
        cells.diagonal(dim1=1, dim2=2).zero_()
        self._made = Comparisons.of(cells.float(), groupings)
        for language, row in self._row.items():
            if not self._made.total[row]:
                raise ValueError(
                    f"{task}: no sentence of {language} may be B: take more sentences, or a wider "
                    "choice of B"
                )
        self._cells = {1: cells.mT.contiguous(), 2: cells}  # by the axis of B

    def cells(self, languages: Sequence[str], axis: int, device: torch.device) -> torch.Tensor:
        """1 where b may be B, ``(m, n, n)`` or, of one mask, ``(1, n, n)``."""
        rows = [self._row[language] for language in languages]
        rows = rows[:1] if len(set(rows)) == 1 else rows
        return self._cells[axis][rows].to(device).float()

    def n_triplets(self, language: str) -> int:
        """How many triplets there are with B in a language."""
        return int(self._made.total[self._row[language]])

    def made(self, languages: Sequence[str]) -> Comparisons:
        """The comparisons that are made where B is of these languages."""
        return self._made.taken([self._row[language] for language in languages])


#: Task → comparisons with X of the first language of a block, of the second.
ByDirection = dict[str, tuple[Comparisons, Comparisons]]


def unmasked(n: int, groupings: Collection[PositionGroups]) -> ByDirection:
    """All comparisons of n positions, and all queries: the same in all pairs."""
    every = Comparisons.of(1 - torch.eye(n)[None], groupings)
    queries = Comparisons.of_queries(np.ones((1, n)), groupings)
    return {"LD": (every, every), "MD": (every, every), "retrieval": (queries, queries)}


def won(
    block: Block, groupings: Collection[PositionGroups], masks: Sequence[Distractors]
) -> ByDirection:
    """The comparisons of a block that A wins; a tie counts one half.

    Tasks are LD, MD, retrieval and that of each mask.
    """
    # Rows: sentences of the second language; columns: of the first. The similarity of each to the
    # items of the second language (whose offset is added), and to those of the first.
    to_second = block.across + block.offset_second[:, :, None]
    to_first = block.across + block.offset_first
    of_first = _won(block, to_second, block.within_first, 1, block.second, groupings, masks)
    of_second = _won(block, to_first, block.within_second, 2, [block.first], groupings, masks)
    return {task: (of_first[task], of_second[task]) for task in of_first}


def _won(
    block: Block,
    to_other: torch.Tensor,
    within: torch.Tensor,
    axis: int,
    languages: Sequence[str],
    groupings: Collection[PositionGroups],
    masks: Sequence[Distractors],
) -> dict[str, Comparisons]:
    """One direction; ``axis`` is that of B, in ``languages``, among ``to_other``, overwritten."""
    translation = to_other.diagonal(dim1=1, dim2=2).clone().unsqueeze(axis)
    credit = alignment.top1_credit(to_other, axis, block.tolerance).cpu().numpy()
    # A difference within the tolerance passes ≥ and fails >, and so counts one half. The two bounds
    # are the same matrix, moved by the slack; moving it in place saves making it anew.
    slack = block.tolerance[:, None, None]
    to_other -= slack
    cells = {"LD": within, "MD": translation}
    ahead = {task: _compared(torch.ge, nearer, to_other) for task, nearer in cells.items()}
    to_other += 2 * slack
    for task, nearer in cells.items():
        ahead[task] += _compared(torch.gt, nearer, to_other)
        ahead[task].diagonal(dim1=1, dim2=2).zero_()
    sums = {task: Comparisons.of(cells, groupings, 0.5) for task, cells in ahead.items()}
    sums["retrieval"] = Comparisons.of_queries(credit, groupings)
    for mask in masks:
        cells = ahead["MD"] * mask.cells(languages, axis, to_other.device)
        sums[mask.task] = Comparisons.of(cells, groupings, 0.5)
    return sums


def _compared(how: Callable, nearer: torch.Tensor, farther: torch.Tensor) -> torch.Tensor:
    """A comparison as 0 and 1; written as numbers, it is three times as fast as in booleans."""
    return how(nearer, farther, out=torch.empty_like(farther))
