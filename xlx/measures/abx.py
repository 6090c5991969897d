"""Triplets (A, B, X) of sentences that differ in one thing: Algorithms 1 and 2 of the ABX paper.

A and X share the variable of interest; B does not. A and B share the other variable, so that it
cannot help. In *language discrimination* (LD) A is another sentence of X's language, B its
translation. In *meaning discrimination* (MD) A is X's translation, B another sentence of A's
language. de Seyssel et al. (2025), section 3 and Appendix B.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, combinations, groupby, product
from operator import attrgetter

import numpy as np
import pandas as pd

from xlx.measures import alignment
from xlx.measures.alignment import Block, Vectors, blocks, unit_vectors
from xlx.results import checks
from xlx.results.deferred import deferred

torch = deferred("torch")


@dataclass(frozen=True)
class Triplets:
    """Languages and positions in a parallel corpus of X, A and B, each ``(n_triplets,)``."""

    task: str
    languages: tuple[str, ...]  # what the language columns count into
    x_language: np.ndarray
    a_language: np.ndarray
    b_language: np.ndarray
    x: np.ndarray
    a: np.ndarray
    b: np.ndarray

    def __len__(self) -> int:
        return len(self.x)


def sample_triplets(
    task: str,
    pair: tuple[str, str],
    n_positions: int,
    n_triplets: int,
    seed: int | np.random.Generator,
) -> Triplets:
    """Draw LD or MD triplets for a pair, half in each direction (Algorithms 1 and 2).

    Independent draws, which may repeat; the paper takes about 100,000 per task and pair.
    ValueError for another task, one language twice, fewer than two positions.
    """
    checks.one_of(task, ("LD", "MD"), "task")
    if pair[0] == pair[1]:
        raise ValueError(f"a pair needs two languages, and both are {pair[0]}")
    if n_positions < 2:
        raise ValueError(f"{n_positions} sentence makes no triplet: another meaning is needed")
    rng = np.random.default_rng(seed)
    shared = rng.integers(n_positions, size=n_triplets)
    other = rng.integers(n_positions - 1, size=n_triplets)
    other += other >= shared  # any position but the shared one
    first = np.arange(n_triplets) % 2
    second = 1 - first
    if task == "LD":  # A and B at the shared position, X at another one in A's language
        return Triplets(task, tuple(pair), first, first, second, other, shared, shared)
    # X and A at the shared position, B at another one in A's language
    return Triplets(task, tuple(pair), first, second, second, shared, shared, other)


class PositionGroups:
    """Positions that may depend on each other, such as the sentences of a document."""

    def __init__(self, of_position: Sequence[object]) -> None:
        names, codes = np.unique(np.asarray(of_position).astype(str), return_inverse=True)
        self.n, self.codes = len(names), codes
        self._order, self.sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
        self._starts = np.cumsum(self.sizes) - self.sizes
        of_group = np.split(self._order, self._starts[1:])
        first = np.concatenate([np.repeat(x, len(x)) for x in of_group])
        second = np.concatenate([np.tile(x, len(x)) for x in of_group])
        self._pairs = np.stack([first, second])[:, first != second]

    def sums(self, at: np.ndarray) -> np.ndarray:
        """``(m, n)`` → sums over the positions of each group, ``(m, n_groups)``."""
        return np.add.reduceat(at[:, self._order], self._starts, axis=1)

    def inside(self, cells: torch.Tensor, start: int = 0) -> np.ndarray:
        """``(m, r, n)``, rows from ``start`` → sums over pairs of each group, ``(m, n_groups)``."""
        row = self._pairs[0] - start
        there = (row >= 0) & (row < cells.shape[1])
        pairs = torch.from_numpy(np.stack([row, self._pairs[1]])[:, there]).to(cells.device)
        rows, group = cells[:, *pairs].double().cpu().numpy(), self.codes[self._pairs[0, there]]
        return np.stack([np.bincount(group, row, minlength=self.n) for row in rows])


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
        cls,
        cells: torch.Tensor,
        groupings: Collection[PositionGroups],
        worth: float = 1,
        start: int = 0,
    ) -> Comparisons:
        """Those of ``(m, n, n)`` or a strip, 0 on diagonals; ``worth``: what 1 in a cell counts."""
        r, n = cells.shape[1:]
        sums = cells @ cells.new_ones(n), cells.new_ones(r) @ cells
        rows, at = (worth * side.double().cpu().numpy() for side in sums)
        at[:, start : start + r] += rows
        inside = {groups: worth * groups.inside(cells, start) for groups in groupings}
        return cls(rows.sum(axis=1), at, inside)

    @classmethod
    def every(cls, n: int, groupings: Collection[PositionGroups]) -> Comparisons:
        """All of n positions, of one pair of languages."""
        inside = {x: np.array([x.sizes * (x.sizes - 1.0)]) for x in groupings}
        return cls(np.array([n * (n - 1.0)]), np.full((1, n), 2.0 * (n - 1)), inside)

    def __add__(self, other: Comparisons) -> Comparisons:
        inside = {groups: sums + other.inside[groups] for groups, sums in self.inside.items()}
        return Comparisons(self.total + other.total, self.at + other.at, inside)

    @classmethod
    def of_queries(cls, credit: np.ndarray, groupings: Collection[PositionGroups]) -> Comparisons:
        """Those that hold one position each: ``(m, n)``."""
        nothing = {groups: np.zeros((len(credit), groups.n)) for groups in groupings}
        return cls(credit.sum(axis=1), credit, nothing)

    def without(self, groups: PositionGroups) -> np.ndarray:
        """What is left of the total without each group, ``(m, n_groups)``."""
        return self.total[:, None] - groups.sums(self.at) + self.inside[groups]

    def taken(self, rows: Sequence[int]) -> Comparisons:
        """Those of some pairs, in this order."""
        inside = {groups: sums[rows] for groups, sums in self.inside.items()}
        return Comparisons(self.total[rows], self.at[rows], inside)


class Distractors:
    """Which sentences may be B: language of B → boolean ``(n, n)``, ``[a, b]``: b, where A is at a.

    Whole numbers in place of booleans say how often a triplet counts. An A without any B takes part
    in no comparison; ValueError where a language leaves no B at all.
    """

    def __init__(
        self, task: str, masks: Mapping[str, np.ndarray], groupings: Collection[PositionGroups]
    ) -> None:
        self.task = task
        distinct = {id(mask): mask for mask in masks.values()}  # one may serve all languages
        rows = {key: row for row, key in enumerate(distinct)}
        self._row = {language: rows[id(mask)] for language, mask in masks.items()}
        stacked = np.stack([*distinct.values()])
        cells = torch.from_numpy(stacked.astype(np.uint8 if stacked.dtype == bool else np.int16))
        cells.diagonal(dim1=1, dim2=2).zero_()
        self._made = Comparisons.of(cells.float(), groupings)
        for language, row in self._row.items():
            if not self._made.total[row]:
                raise ValueError(
                    f"{task}: no sentence of {language} may be B: take more sentences, or a wider "
                    "choice of B"
                )
        self._cells = {1: cells.mT.contiguous(), 2: cells}  # by the axis of B

    def cells(
        self, languages: Sequence[str], axis: int, device: torch.device, rows: slice
    ) -> torch.Tensor:
        """1 where b may be B, ``(m, r, n)`` of some rows or, of one mask, ``(1, r, n)``."""
        of = [self._row[language] for language in languages]
        of = of[:1] if len(set(of)) == 1 else of
        return self._cells[axis][:, rows][of].to(device).float()

    def n_triplets(self, language: str) -> int:
        """How many triplets there are with B in a language."""
        return int(self._made.total[self._row[language]])

    def made(self, languages: Sequence[str]) -> Comparisons:
        """The comparisons that are made where B is of these languages."""
        return self._made.taken([self._row[language] for language in languages])


class Side:
    """One direction of a block: X of one language, of m pairs with others.

    ``axis`` is that of B in the matrices ``(m, n, n)``, ``languages`` those that B is of,
    ``queries`` those of X. A strip has the rows of X from ``start`` on alone.
    """

    def __init__(self, block: Block, axis: int) -> None:
        self.axis, self.tolerance, self.common, self.start, self._block = (
            axis,
            block.tolerance,
            block.common,
            block.start,
            block,
        )
        # Rows: sentences of the second language; columns: of the first. The similarity of each to
        # the items of the language of B, whose offset is added, and to those of its own.
        of_second, of_first = block.offset_second[:, :, None], block.offset_first
        if axis == 1:
            self.queries, self.languages = (block.first,), block.second
            self.within = block.within_first
            self.to_other, self._own = block.across + of_second, of_first
        else:
            self.queries, self.languages = block.second, (block.first,)
            self.within = block.within_second
            self.to_other, self._own = block.across + of_first, of_second

    @property
    def cosine(self) -> torch.Tensor:
        """The cosines across, ``(m, n, n)``, less what is common to all sentences (``common``)."""
        return self.to_other + self._own

    @property
    def kernels(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The cosines within the first and the second languages, less ``common``: symmetric."""
        first, second = self._block.within_first, self._block.within_second
        of_second = self._block.offset_second[:, :, None]
        return (first + self._block.offset_first)[None], second + of_second

    @property
    def lengths(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Lengths of the vectors of the first and the second languages, ``(1 or m, n)``."""
        return self._block.length_first[None], self._block.length_second

    @property
    def translation(self) -> torch.Tensor:
        """The similarity of each sentence to its translation, ``(m, n)``."""
        return self.to_other.diagonal(self.start, dim1=1, dim2=2).clone()

    def credit(self, similarity: torch.Tensor) -> np.ndarray:
        """`alignment.top1_credit` of similarities like ``to_other``, kept; 0 outside of a strip."""
        diagonal = similarity.diagonal(self.start, dim1=1, dim2=2)
        kept = diagonal.clone()
        of_rows = alignment.top1_credit(similarity, self.axis, self.tolerance, self.start)
        diagonal.copy_(kept)
        credit = np.zeros((len(similarity), similarity.shape[-1]))
        credit[:, self.start : self.start + kept.shape[1]] = of_rows.cpu()
        return credit

    @cached_property
    def ahead(self) -> dict[str, torch.Tensor]:
        """Of LD and MD twice what A wins of B, ``(m, n, n)``: 2, or 1 for a tie; 0 on diagonals."""
        cells = {"LD": self.within, "MD": self.translation.unsqueeze(self.axis)}
        # A difference within the tolerance passes ≥ and fails >, and so counts one half. The two
        # bounds are the same matrix, moved by the slack; moving it in place saves making it anew.
        slack = self.tolerance[:, None, None]
        bound = self.to_other - slack
        ahead = {task: _compared(torch.ge, nearer, bound) for task, nearer in cells.items()}
        bound += 2 * slack
        for task, nearer in cells.items():
            ahead[task] += _compared(torch.gt, nearer, bound)
            ahead[task].diagonal(self.start, dim1=1, dim2=2).zero_()
        return ahead


def _directions(found: Iterable[Block]) -> groupby:
    """The sides of blocks; those that are strips of one direction together."""
    sides = (Side(x, k) for x in found for k in ((2,) if x.within_first is None else (1, 2)))
    return groupby(sides, key=attrgetter("queries", "languages"))


@dataclass(frozen=True)
class Measure:
    """A score of two languages by what it says of every triplet, or of every query.

    ``wins``: a direction of a block and groupings → the comparisons that are won, of all triplets
    or, if ``of_queries``, of all sentences; their share is the score, and what they hold of each
    position gives its interval. If ``whole``, what it returns has the score as its ``total`` and
    that without each group. ``strips``: whether ``wins`` of strips add up, so that long texts need
    no whole matrix. ``share``: whether a score lies in [0, 1], and so its interval. ``version`` is
    raised when the formula means other numbers. ``kind``: "form" or "meaning", what it is of;
    ``label``: how figures name it; ``reported``: chapters, the report and a trainer's log have it.
    """

    name: str
    wins: Callable[[Side, Collection[PositionGroups]], Comparisons]
    of_queries: bool = False
    version: int = 1
    mask: Distractors | None = None
    whole: bool = False
    strips: bool = False
    share: bool = True
    reported: bool = True
    kind: str = ""
    label: str = ""

    def made(self, side: Side, every: Comparisons, queries: Comparisons) -> Comparisons:
        """The comparisons that are made."""
        if self.mask is not None:
            return self.mask.made(side.languages)
        if self.whole:
            return Comparisons(np.ones(1), 0 * queries.at, queries.inside)
        return queries if self.of_queries else every


def _won(task: str) -> Callable[[Side, Collection[PositionGroups]], Comparisons]:
    return lambda side, groups: Comparisons.of(side.ahead[task], groups, 0.5, side.start)


LD = Measure("LD", _won("LD"), strips=True, kind="form")
MD = Measure("MD", _won("MD"), strips=True, kind="meaning")
RETRIEVAL = Measure(
    "retrieval",
    lambda side, groupings: Comparisons.of_queries(side.credit(side.to_other), groupings),
    of_queries=True,
    strips=True,
    kind="meaning",
)


def masked(mask: Distractors) -> Measure:
    """MD with B as a mask allows."""

    def wins(side: Side, groupings: Collection[PositionGroups]) -> Comparisons:
        ahead, rows = side.ahead["MD"], slice(side.start, side.start + side.to_other.shape[1])
        cells = ahead * mask.cells(side.languages, side.axis, ahead.device, rows)
        return Comparisons.of(cells, groupings, 0.5, side.start)

    return Measure(mask.task, wins, mask=mask, strips=True)


def _compared(how: Callable, nearer: torch.Tensor, farther: torch.Tensor) -> torch.Tensor:
    """A comparison as 0 and 1; written as numbers, it is three times as fast as in booleans."""
    return how(nearer, farther, out=torch.empty_like(farther))


#: What is scored of every pair of languages.
REGISTERED = (LD, MD, RETRIEVAL)
SCORES = tuple(measure.name for measure in REGISTERED)
#: Name → language of B → boolean ``(n, n)``: ``[a, b]``, whether b may be B where A is at a.
Masks = Mapping[str, Mapping[str, np.ndarray]]


def score_triplets(vectors: Mapping[str, np.ndarray], triplets: Triplets) -> np.ndarray:
    """Algorithm 3: for each triplet 1 if X is closer to A than to B, 0 if not, 1/2 on a tie.

    ``vectors``: language → ``(n_sentences, dim)``, those of one layer; in float64.
    """
    x_to_a, x_to_b = triplet_distances(vectors, triplets)
    return np.where(x_to_a < x_to_b, 1.0, np.where(x_to_a > x_to_b, 0.0, 0.5))


def triplet_distances(
    vectors: Mapping[str, np.ndarray], triplets: Triplets
) -> tuple[np.ndarray, np.ndarray]:
    """Cosine distances d(X, A) and d(X, B) of each triplet, ``(n_triplets,)`` each, in [0, 2].

    ValueError for a language without vectors, and as `alignment.unit_vectors`.
    """
    for language in triplets.languages:
        checks.one_of(language, vectors, "vector of language")
    of_languages = {language: vectors[language] for language in triplets.languages}
    checks.arrays(of_languages)
    stacked = np.stack(list(unit_vectors(of_languages).values()))

    def distance(language: np.ndarray, position: np.ndarray) -> np.ndarray:
        cosines = np.empty(len(triplets))
        for start in range(0, len(triplets), 20_000):  # 100,000 × 768 numbers would be 0.6 GB
            rows = slice(start, start + 20_000)
            x = stacked[triplets.x_language[rows], triplets.x[rows]]
            cosines[rows] = np.einsum("td,td->t", x, stacked[language[rows], position[rows]])
        return 1 - cosines

    return distance(triplets.a_language, triplets.a), distance(triplets.b_language, triplets.b)


def sampled(
    states: Mapping[str, np.ndarray],
    pairs: Sequence[tuple[str, str]],
    n_triplets: int,
    n_runs: int,
    seed: int,
) -> pd.DataFrame:
    """The score as the paper computes it: Algorithms 1 to 3, in independent runs.

    ``states``: language → ``(n_layers + 1, n_sentences, dim)``; ``n_triplets`` are per task, pair
    and run, the same ones at every layer. One row per task, layer, pair and run.
    """
    n_layers, n_sentences, _ = next(iter(states.values())).shape
    rows = []
    for number, pair in enumerate(pairs):
        for run in range(n_runs):
            for task in ("LD", "MD"):
                draw = np.random.default_rng([seed, number, run, SCORES.index(task)])
                triplets = sample_triplets(task, pair, n_sentences, n_triplets, draw)
                for layer in range(n_layers):
                    vectors = {code: states[code][layer] for code in pair}
                    score = score_triplets(vectors, triplets).mean()
                    rows.append((task, layer, *pair, run, score, n_triplets))
    columns = ["task", "layer", "language_1", "language_2", "run", "score", "n_triplets"]
    return pd.DataFrame(rows, columns=columns)


@dataclass(frozen=True)
class PairScores:
    """Exact scores of language pairs at one or several layers.

    ``scores``: task → ``(n_layers, n_pairs, 2)`` in [0, 1]; last axis: X (the query) in the first
    language, in the second. ``left_out``: grouping → task → ``(n_layers, n_pairs, n_groups)``, the
    score without each group, both directions averaged. ``masked``: task of a mask → its number of
    triplets, ``(n_pairs, 2)``.
    """

    pairs: tuple[tuple[str, str], ...]
    layers: tuple[int, ...]
    n_sentences: int
    scores: dict[str, np.ndarray]
    left_out: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    masked: dict[str, np.ndarray] = field(default_factory=dict)

    def as_asked(self, pairs: Sequence[tuple[str, str]]) -> PairScores:
        """The scores of some of the pairs, as they stand here or the other way round."""
        where = {own[:: 1 - 2 * k]: (i, k) for i, own in enumerate(self.pairs) for k in (0, 1)}
        at, turned = np.array([where[pair] for pair in pairs]).T
        ways = at[:, None], turned[:, None] ^ np.arange(2)
        left_out = {
            name: {task: of[:, at] for task, of in tasks.items()}
            for name, tasks in self.left_out.items()
        }
        scores = {task: of[:, *ways] for task, of in self.scores.items()}
        masked = {task: of[ways] for task, of in self.masked.items()}
        return replace(self, pairs=tuple(pairs), scores=scores, left_out=left_out, masked=masked)

    def table(self) -> pd.DataFrame:
        """Tidy: one row per task, layer, pair and direction.

        ``task``, ``layer``, ``language_1``, ``language_2`` (the pair), ``x_language`` (of X, or the
        query), ``score`` and ``n_triplets`` (for retrieval: queries).
        """
        pairs, n = np.array(self.pairs), self.n_sentences
        layer, pair, side = np.indices((len(self.layers), len(pairs), 2)).reshape(3, -1)
        columns = {
            "layer": np.array(self.layers)[layer],
            "language_1": pairs[pair, 0],
            "language_2": pairs[pair, 1],
            "x_language": pairs[pair, side],
        }
        triplets = {"LD": n * (n - 1), "MD": n * (n - 1)}  # the others ask each sentence once
        triplets |= {task: of_pair[pair, side] for task, of_pair in self.masked.items()}
        tables = [
            pd.DataFrame({"task": task, **columns, "score": scores.ravel()}).assign(
                n_triplets=triplets.get(task, n)
            )
            for task, scores in self.scores.items()
        ]
        return pd.concat(tables, ignore_index=True)


def exact(
    states: Vectors | Mapping[str, np.ndarray],
    *,
    layers: Sequence[int] | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
    measures: Sequence[Measure] = REGISTERED,
    masks: Masks | None = None,
    groups: Mapping[str, Sequence[object]] | None = None,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None,
) -> PairScores:
    """LD, MD (section 3), retrieval or other measures of all language pairs, of all triplets.

    ``states``: language → ``(n_layers + 1, n_sentences, dim)``, or ``(n_sentences, dim)`` for a
    single layer (dense or sparse); sentences aligned. Without ``layers`` all, the embedding layer
    (0) included; without ``pairs`` every unordered one. float32 agrees with float64 to 1e-4.

    ``masks`` (`xlx.experiment.abx_scores`): name → language of B → boolean ``(n_sentences,
    n_sentences)``, ``[a, b]``: whether b may be B where A is at a. Each adds "MD, name": the share
    of those triplets alone. ``groups``: grouping → the group of each position, for the scores
    without each, exactly, which intervals need (`statistics.left_out_error`).

    A language whose vectors of a layer are all NaN has none there, and its pairs score NaN.
    ValueError as `alignment.unit_vectors`, with the layer; for pairs or layers that are not there,
    or none; arrays that differ in axes or layers, or hold no real numbers; groups or masks of
    another size; a mask that leaves a language no B.
    """
    if len(states) < 2:
        raise ValueError("two languages or more are needed: a score compares languages")
    checks.arrays(states)
    one_layer = next(iter(states.values())).ndim == 2
    layers = tuple(checks.layers(layers, 1 if one_layer else len(next(iter(states.values())))))
    slices = [
        {code: array if one_layer else array[layer] for code, array in states.items()}
        for layer in layers
    ]
    pairs = checks.language_pairs([*combinations(states, 2)] if pairs is None else pairs)
    once = {frozenset(pair): pair for pair in reversed(pairs)}  # also if asked both ways round
    column = {pair: index for index, pair in enumerate(reversed(once.values()))}
    where = {x: (i, k) for pair, i in column.items() for k, x in enumerate((pair, pair[::-1]))}
    n = next(iter(slices[0].values())).shape[0]
    groupings, distractors = _restrictions(groups or {}, masks or {}, n, {*chain(*column)})
    measures = [*measures, *map(masked, distractors)]
    every = Comparisons.every(n, groupings.values())
    queries = Comparisons.of_queries(np.ones((1, n)), groupings.values())
    strips = all(measure.strips for measure in measures)
    tasks = [measure.name for measure in measures]
    scores = {task: np.full((len(layers), len(column), 2), np.nan) for task in tasks}
    left_out = {
        name: {task: np.full((len(layers), len(column), of.n), np.nan) for task in tasks}
        for name, of in groupings.items()
    }
    for row, (layer, vectors) in enumerate(zip(layers, slices, strict=True)):
        absent = alignment.undefined(vectors)
        there = {code: x for code, x in vectors.items() if code not in absent}
        left = [pair for pair in column if not absent.intersection(pair)]
        for of_task in chain(*(x.values() for x in left_out.values())):
            of_task[row, [column[pair] for pair in left]] = 0
        try:
            found = blocks(there, left, device=device, dtype=dtype, strips=strips) if left else ()
            for of_languages, parts in _directions(found):
                at, direction = zip(*[where[pair] for pair in product(*of_languages)], strict=True)
                won: list[Comparisons] = []
                for side in parts:
                    new = [measure.wins(side, groupings.values()) for measure in measures]
                    won = [x + y for x, y in zip(won, new, strict=True)] if won else new
                for measure, wins in zip(measures, won, strict=True):
                    made = measure.made(side, every, queries)
                    scores[measure.name][row, at, direction] = wins.total / made.total
                    for name, of in groupings.items():
                        share = _share(wins.without(of), made.without(of))
                        left_out[name][measure.name][row, at] += share / 2
        except ValueError as error:
            raise ValueError(f"layer {layer}: {error}") from None
    each = {x.task: np.array([[*map(x.n_triplets, p[::-1])] for p in column]) for x in distractors}
    return PairScores(tuple(column), layers, n, scores, left_out, each).as_asked(pairs)


def _share(won: np.ndarray, made: np.ndarray) -> np.ndarray:
    """NaN where no comparison is left: without a group that holds them all."""
    whole = np.full(np.broadcast_shapes(won.shape, made.shape), np.nan)
    return np.divide(won, made, out=whole, where=made > 0)


def _restrictions(
    groups: Mapping[str, Sequence[object]], masks: Masks, n: int, languages: set[str]
) -> tuple[dict[str, PositionGroups], list[Distractors]]:
    """Groupings of the positions, and masks on B, of the right size."""
    for name, of_position in groups.items():
        if len(of_position) != n:
            raise ValueError(
                f"{name} name a group for {len(of_position)} positions, and there are {n}"
            )
    for name, by_language in masks.items():
        for language in languages:
            shape = np.shape(by_language.get(language, ()))
            if shape != (n, n):
                raise ValueError(
                    f"the mask {name!r} has the shape {shape} in {language}: {(n, n)} is due"
                )
    groupings = {name: PositionGroups(of_position) for name, of_position in groups.items()}
    return groupings, [
        Distractors(f"MD, {name}", by_language, groupings.values())
        for name, by_language in masks.items()
    ]
