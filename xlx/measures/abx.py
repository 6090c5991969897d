"""Triplets (A, B, X) of sentences that differ in one thing: Algorithms 1 and 2 of the ABX paper.

A and X share the variable of interest; B does not. A and B share the other variable, so that it
cannot help. In *language discrimination* (LD) A is another sentence of X's language, B its
translation. In *meaning discrimination* (MD) A is X's translation, B another sentence of A's
language. de Seyssel et al. (2025), section 3 and Appendix B.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, groupby, product
from operator import attrgetter

import numpy as np
import pandas as pd
from numpy import ndarray
from pandas import DataFrame

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
    x_language: ndarray
    a_language: ndarray
    b_language: ndarray
    x: ndarray
    a: ndarray
    b: ndarray

    def __len__(self) -> int:
        return len(self.x)


@checks.typed()
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


class Groups:
    """Positions that may depend on each other, such as the sentences of a document.

    Of one grouping or several; ``slices``: which of all groups are of each. Sums over comparisons
    are ``(m, 1 + n_groups)``: of all, then of those that hold no position of a group.
    """

    def __init__(self, groupings: Mapping[str, Sequence[object]], n: int) -> None:
        groups, self.slices, self.n = [], {}, n
        for name, labels in groupings.items():
            _, codes = np.unique(np.asarray(labels).astype(str), return_inverse=True)
            first, order = len(groups), np.argsort(codes, kind="stable")
            groups += np.split(order, np.cumsum(np.bincount(codes))[:-1])
            self.slices[name] = slice(first, len(groups))
        self.sizes = np.array([*map(len, groups)], int)
        self._order = np.concatenate([[], *groups]).astype(int)
        self._starts = np.cumsum(self.sizes) - self.sizes
        first = np.concatenate([[], *(np.repeat(x, len(x)) for x in groups)])
        second = np.concatenate([[], *(np.tile(x, len(x)) for x in groups)])
        number = np.repeat(np.arange(len(groups)), self.sizes**2)
        self._pairs = np.stack([first, second, number]).astype(int)[:, first != second]

    @property
    def member(self) -> ndarray:
        """1 where a position is in a group, else 0: ``(n, n_groups)``."""
        member = np.zeros((self.n, len(self.sizes)))
        member[self._order, np.repeat(np.arange(len(self.sizes)), self.sizes)] = 1
        return member

    @property
    def positions(self) -> ndarray:
        """How many positions there are, and without each group, ``(1, 1 + n_groups)``."""
        return self.n - np.append(0.0, self.sizes)[None]

    def over_positions(self, values: ndarray, regained: ndarray | float = 0.0) -> ndarray:
        """Sums of ``(m, n)``, of comparisons that hold a position each.

        ``regained``, ``(m, n_groups)``: what comes in without a group.
        """
        return self._sums(values.sum(1), values, regained)

    def over_pairs(self, cells: torch.Tensor, worth: float = 1, start: int = 0) -> ndarray:
        """Sums of ``(m, n, n)``, or a strip from row ``start``; ``worth``: what 1 counts."""
        r, n = cells.shape[1:]
        sums = cells @ cells.new_ones(n), cells.new_ones(r) @ cells, cells.diagonal(start, 1, 2)
        rows, at, alone = (worth * x.double().cpu().numpy() for x in sums)
        at[:, start : start + r] += rows - alone  # a cell of the diagonal holds its position once
        row = self._pairs[0] - start
        there = (row >= 0) & (row < r)
        pairs = torch.from_numpy(np.stack([row, self._pairs[1]])[:, there]).to(cells.device)
        inside, number = cells[:, *pairs].double().cpu().numpy(), self._pairs[2, there]
        twice = [worth * np.bincount(number, x, minlength=len(self.sizes)) for x in inside]
        return self._sums(rows.sum(1), at, np.array(twice))

    def _sums(self, total: ndarray, at: ndarray, inside: ndarray | float) -> ndarray:
        total = total[:, None]
        of_groups = np.add.reduceat(at[:, self._order], self._starts, axis=1)
        return np.hstack([total, total - of_groups + inside])


class Distractors:
    """Which sentences may be B: language of B → boolean ``(n, n)``, ``[a, b]``: b, where A is at a.

    Whole numbers in place of booleans say how often a triplet counts. An A without any B takes part
    in no comparison; ValueError where a language leaves no B at all.
    """

    def __init__(self, task: str, masks: Mapping[str, ndarray], groups: Groups) -> None:
        self.task = task
        distinct = {id(mask): mask for mask in masks.values()}  # one may serve all languages
        rows = {key: row for row, key in enumerate(distinct)}
        self._row = {language: rows[id(mask)] for language, mask in masks.items()}
        stacked = np.stack([*distinct.values()])
        cells = torch.from_numpy(stacked.astype(np.uint8 if stacked.dtype == bool else np.int16))
        cells.diagonal(dim1=1, dim2=2).zero_()
        self._made = groups.over_pairs(cells.float())
        for language, row in self._row.items():
            if not self._made[row, 0]:
                raise ValueError(
                    f"{task}: no sentence of {language} may be B: take more sentences, or a wider "
                    "choice of B"
                )
        self._cells = {1: cells.mT.contiguous(), 2: cells}  # by the axis of B

    def cells(
        self, languages: Sequence[str], axis: int, device: torch.device, rows: slice
    ) -> torch.Tensor:
        """1 where b may be B, ``(m, r, n)`` of some rows or, of one mask, ``(1, r, n)``."""
        numbers = [self._row[language] for language in languages]
        numbers = numbers[:1] if len(set(numbers)) == 1 else numbers
        return self._cells[axis][:, rows][numbers].to(device).float()

    def made(self, languages: Sequence[str]) -> ndarray:
        """How many there are where B is of these languages, all and without each group."""
        return self._made[[self._row[language] for language in languages]]


@dataclass(frozen=True)
class Measure:
    """A score of two languages by what it says of every triplet, or of every query.

    ``wins``: a block and groups → sums (`Groups`) of the comparisons that are won, of all triplets
    or, if ``of_queries``, of all sentences; their share is the score, and that without each group
    gives its interval. If ``whole``, what it returns are the scores themselves. ``strips``: whether
    ``wins`` of strips add up, so that long texts need no whole matrix. ``share``: whether a score
    lies in [0, 1], and so its interval. ``version`` is raised when the formula means other numbers.
    ``kind``: "form" or "meaning", what it is of; ``label``: how figures name it; ``reported``:
    chapters, the report and a trainer's log have it.
    """

    name: str
    wins: Callable[[Block, Groups], ndarray]
    of_queries: bool = False
    version: int = 1
    mask: Distractors | None = None
    whole: bool = False
    strips: bool = False
    share: bool = True
    reported: bool = True
    kind: str = ""
    label: str = ""

    def made(self, block: Block, groups: Groups) -> ndarray:
        """How many comparisons are made, all and without each group."""
        if self.mask is not None:
            return self.mask.made(block.languages)
        n = groups.positions
        return np.ones_like(n) if self.whole else n if self.of_queries else n * (n - 1)


def _won(task: str) -> Callable[[Block, Groups], ndarray]:
    return lambda block, groups: groups.over_pairs(block.ahead[task], 0.5, block.start)


LD = Measure("LD", _won("LD"), strips=True, kind="form")
MD = Measure("MD", _won("MD"), strips=True, kind="meaning")
RETRIEVAL = Measure(
    "retrieval",
    lambda block, groups: groups.over_positions(block.credit(block.to_other)),
    of_queries=True,
    strips=True,
    kind="meaning",
)


def masked(mask: Distractors) -> Measure:
    """MD with B as a mask allows."""

    def wins(block: Block, groups: Groups) -> ndarray:
        ahead, rows = block.ahead["MD"], slice(block.start, block.start + block.to_other.shape[1])
        cells = ahead * mask.cells(block.languages, block.axis, ahead.device, rows)
        return groups.over_pairs(cells, 0.5, block.start)

    return Measure(mask.task, wins, mask=mask, strips=True)


def named(measure: Measure | str) -> Measure:
    """A measure, or that of `xlx.measures.registered` with this name."""
    from xlx.measures import registered  # which reads this module

    if isinstance(measure, Measure):
        return measure
    checks.one_of(measure, registered(), "measure")
    return registered()[measure]


#: What is scored of every pair of languages.
REGISTERED = (LD, MD, RETRIEVAL)
SCORES = tuple(measure.name for measure in REGISTERED)
#: Name → language of B → boolean ``(n, n)``: ``[a, b]``, whether b may be B where A is at a.
Masks = Mapping[str, Mapping[str, ndarray]]


def score_triplets(vectors: Mapping[str, ndarray], triplets: Triplets) -> ndarray:
    """Algorithm 3: for each triplet 1 if X is closer to A than to B, 0 if not, 1/2 on a tie.

    ``vectors``: language → ``(n_sentences, dim)``, those of one layer; in float64.
    """
    x_to_a, x_to_b = triplet_distances(vectors, triplets)
    return np.where(x_to_a < x_to_b, 1.0, np.where(x_to_a > x_to_b, 0.0, 0.5))


@checks.typed()
def triplet_distances(
    vectors: Mapping[str, ndarray], triplets: Triplets
) -> tuple[ndarray, ndarray]:
    """Cosine distances d(X, A) and d(X, B) of each triplet, ``(n_triplets,)`` each, in [0, 2].

    ValueError for a language without vectors, and as `alignment.unit_vectors`.
    """
    for language in triplets.languages:
        checks.one_of(language, vectors, "vector of language")
    chosen = {language: vectors[language] for language in triplets.languages}
    checks.arrays(chosen)
    stacked = np.stack(list(unit_vectors(chosen).values()))

    def distance(language: ndarray, position: ndarray) -> ndarray:
        cosines = np.empty(len(triplets))
        for start in range(0, len(triplets), 20_000):  # 100,000 × 768 numbers would be 0.6 GB
            rows = slice(start, start + 20_000)
            x = stacked[triplets.x_language[rows], triplets.x[rows]]
            cosines[rows] = np.einsum("td,td->t", x, stacked[language[rows], position[rows]])
        return 1 - cosines

    return distance(triplets.a_language, triplets.a), distance(triplets.b_language, triplets.b)


@checks.typed(states=checks.arrays)
def sampled(
    states: Mapping[str, ndarray],
    pairs: Sequence[tuple[str, str]],
    n_triplets: int,
    n_runs: int,
    seed: int,
) -> DataFrame:
    """The score as the paper computes it: Algorithms 1 to 3, in independent runs.

    ``states``: language → ``(n_layers + 1, n_sentences, dim)``; ``n_triplets`` are per task, pair
    and run, the same ones at every layer. One row per task, layer, pair and run.
    """
    for code in chain(*checks.language_pairs(pairs)):
        checks.one_of(code, states, "vector of language")
    n_layers, n_sentences, _ = states[pairs[0][0]].shape
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
    return DataFrame(rows, columns=columns)


@dataclass(frozen=True)
class PairScores:
    """Exact scores of language pairs at one or several layers; of a subject, where it is named.

    ``scores``: task → ``(n_layers, n_pairs, 2)`` in [0, 1]; last axis: X (the query) in the first
    language, in the second. ``left_out``: grouping → task → ``(n_layers, n_pairs, n_groups)``, the
    score without each group, both directions averaged; stored ones have ``left_out_change``
    instead: grouping ("documents", "sentences") → what is averaged (a weighting of pairs, or
    "languages") → task → the mean without each group less the mean, ``(n_layers, n_groups)``, by
    language ``(n_layers, n_languages, n_groups)``. ``masked``: task of a mask → its number of
    triplets, ``(n_pairs, 2)``; ``sizes``: grouping → positions of each group, in the order of their
    sorted names; ``cut``: language → sentences cut at the maximum length; ``texts``: SHA-256 of
    each language's.
    """

    pairs: tuple[tuple[str, str], ...]
    layers: tuple[int, ...]
    n_sentences: int
    scores: dict[str, ndarray]
    left_out: dict[str, dict[str, ndarray]] = field(default_factory=dict)
    masked: dict[str, ndarray] = field(default_factory=dict)
    model: str = ""  # or series, or another subject
    step: int = 0  # of training; 0 where the model has no history
    space: str = "raw"
    left_out_change: dict[str, dict[str, dict[str, ndarray]]] = field(default_factory=dict)
    sizes: dict[str, ndarray] = field(default_factory=dict)
    cut: dict[str, int] = field(default_factory=dict)
    texts: tuple[str, ...] = ()

    @property
    def tasks(self) -> list[str]:
        """What is scored: LD, MD, retrieval, MD of each mask, or other measures."""
        return list(self.scores)

    def as_asked(self, pairs: Sequence[tuple[str, str]]) -> PairScores:
        """Exact scores of some of the pairs, as they stand here or the other way round."""
        where = {pair[:: 1 - 2 * k]: (i, k) for i, pair in enumerate(self.pairs) for k in (0, 1)}
        at, turned = np.array([where[pair] for pair in pairs]).T
        ways = at[:, None], turned[:, None] ^ np.arange(2)
        left_out = {
            name: {task: without[:, at] for task, without in tasks.items()}
            for name, tasks in self.left_out.items()
        }
        scores = {task: by_pair[:, *ways] for task, by_pair in self.scores.items()}
        masked = {task: counts[ways] for task, counts in self.masked.items()}
        return replace(self, pairs=tuple(pairs), scores=scores, left_out=left_out, masked=masked)

    def table(self) -> DataFrame:
        """Tidy: one row per task, layer, pair and direction.

        ``model``, ``checkpoint`` and ``space`` where the subject is named; ``task``, ``layer``,
        ``language_1``, ``language_2`` (the pair), ``x_language`` (of X, or the query), ``score``
        and ``n_triplets`` (for retrieval: queries).
        """
        pairs, n = np.array(self.pairs), self.n_sentences
        layer, pair, side = np.indices((len(self.layers), len(pairs), 2)).reshape(3, -1)
        about = {"model": self.model, "checkpoint": self.step, "space": self.space}
        columns = {
            "layer": np.array(self.layers)[layer],
            "language_1": pairs[pair, 0],
            "language_2": pairs[pair, 1],
            "x_language": pairs[pair, side],
        }
        triplets = {"LD": n * (n - 1), "MD": n * (n - 1)}  # the others ask each sentence once
        triplets |= {task: counts[pair, side] for task, counts in self.masked.items()}
        tables = [
            DataFrame((about if self.model else {}) | {"task": task, **columns}).assign(
                score=scores.ravel(), n_triplets=triplets.get(task, n)
            )
            for task, scores in self.scores.items()
        ]
        return pd.concat(tables, ignore_index=True)


@checks.typed(states=checks.arrays, device=checks.device)
def exact(
    states: Vectors | Mapping[str, ndarray],
    *,
    layers: Sequence[int] | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
    measures: Sequence[Measure | str] = REGISTERED,
    masks: Masks | None = None,
    groups: Mapping[str, Sequence[object]] | None = None,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None,
) -> PairScores:
    """LD, MD (section 3), retrieval or other measures of all language pairs, of all triplets.

    ``states``: language → ``(n_layers + 1, n_sentences, dim)``, or ``(n_sentences, dim)`` for a
    single layer (dense or sparse); sentences aligned. Without ``layers`` all, the embedding layer
    (0) included; without ``pairs`` every unordered one; ``measures`` may be names, ["LD"]. float32
    agrees with float64 to 1e-4.

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
    grouped, distractors = _restrictions(groups or {}, masks or {}, n, {*chain(*column)})
    measures = [*map(named, measures), *map(masked, distractors)]
    strips = all(measure.strips for measure in measures)
    shape = len(layers), len(column)
    scores = {measure.name: np.full((*shape, 2), np.nan) for measure in measures}
    left_out = {task: np.full((*shape, len(grouped.sizes)), np.nan) for task in scores}
    for row, (layer, vectors) in enumerate(zip(layers, slices, strict=True)):
        absent = alignment.undefined(vectors)
        there = {code: x for code, x in vectors.items() if code not in absent}
        left = [pair for pair in column if not absent.intersection(pair)]
        for without in left_out.values():
            without[row, [column[pair] for pair in left]] = 0
        try:
            similarities = (
                blocks(there, left, device=device, dtype=dtype, strips=strips) if left else ()
            )
            for both, parts in groupby(similarities, key=attrgetter("queries", "languages")):
                at, direction = zip(*[where[pair] for pair in product(*both)], strict=True)
                won = dict.fromkeys(scores, 0)
                for block in parts:
                    for measure in measures:
                        won[measure.name] = won[measure.name] + measure.wins(block, grouped)
                for measure in measures:
                    share = _share(won[measure.name], measure.made(block, grouped))
                    scores[measure.name][row, at, direction] = share[:, 0]
                    left_out[measure.name][row, at] += share[:, 1:] / 2
        except ValueError as error:
            raise ValueError(f"layer {layer}: {error}") from None
    apart = {
        name: {task: without[..., groups] for task, without in left_out.items()}
        for name, groups in grouped.slices.items()
    }
    counts = {
        x.task: np.array([x.made(p[::-1])[:, 0] for p in column]).astype(int) for x in distractors
    }
    return PairScores(tuple(column), layers, n, scores, apart, counts).as_asked(pairs)


def _share(won: ndarray, made: ndarray) -> ndarray:
    """NaN where no comparison is left: without a group that holds them all."""
    whole = np.full(np.broadcast_shapes(won.shape, made.shape), np.nan)
    return np.divide(won, made, out=whole, where=made > 0)


def _restrictions(
    groups: Mapping[str, Sequence[object]], masks: Masks, n: int, languages: set[str]
) -> tuple[Groups, list[Distractors]]:
    """Groups of the positions, and masks on B, of the right size."""
    for name, labels in groups.items():
        if len(labels) != n:
            raise ValueError(f"{name} name a group for {len(labels)} positions, and there are {n}")
    for name, by_language in masks.items():
        for language in languages:
            shape = np.shape(by_language.get(language, ()))
            if shape != (n, n):
                raise ValueError(
                    f"the mask {name!r} has the shape {shape} in {language}: {(n, n)} is due"
                )
    grouped = Groups(groups, n)
    masked = [Distractors(f"MD, {name}", mask, grouped) for name, mask in masks.items()]
    return grouped, masked
