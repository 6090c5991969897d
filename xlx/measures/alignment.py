"""The similarity block: what two languages and one layer say to all the lenses.

For unit vectors the cosine distance is ``d(x, a) = 1 - x·a``, so every score of this compendium
that compares sentences of two languages can be read off three n × n matrices of dot products:
within the first language, within the second, and across. They are computed once and shared.

**The arithmetic.** In real models all cosines crowd together, often above 0.99, where float32
cannot tell neighbours apart. But the lenses only ever ask which of ``x·a`` and ``x·b`` is larger.
Write each unit vector as a common part and a rest, ``a = c + a'`` (c: the mean of all unit
vectors). Then

    x·a = (c·c + x'·c) + (c·a' + x'·a')

and the first bracket is the same for a and b. What must be compared, ``c·a' + x'·a'``, is made of
small numbers with all their digits: the *offsets* ``c·a'`` come from float64, the products
``x'·a'`` from one float32 matrix product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, product

import numpy as np
from numpy import ndarray

from xlx.results import checks
from xlx.results.deferred import deferred

torch = deferred("torch")
sparse = deferred("scipy.sparse")

Vectors = "Mapping[str, ndarray] | Mapping[str, sparse.csr_array]"
#: Numbers of a temporary matrix: two of 960 × 960, so that it stays in the processor's cache.
BLOCK_NUMBERS = 2_000_000
#: Numbers of a matrix above which rows are taken in strips, where that is possible.
WHOLE_NUMBERS = 4_000_000
#: A vector this much shorter than what it is the rest of is rounding of float32.
NOTHING = 1e-6


@dataclass(eq=False)
class Block:
    """Comparable similarities of one language, the first, with m second ones; n sentences each.

    X is of the first language (``axis`` 1) or of the second ones (2), A and B of the others:
    ``axis`` is that of B in the matrices ``(m, n, n)``. Rows are sentences of the second languages,
    columns those of the first. ``within + offset`` and ``across + offset`` order the items by their
    cosine to a sentence; differences below ``tolerance`` are rounding: they are ties. A strip has
    some rows of one second language, r for n, from ``start`` on, and nothing within the first.
    """

    first: str
    second: tuple[str, ...]
    axis: int
    inside: tuple[torch.Tensor | None, torch.Tensor]  # (n, n): [a, x] = x'·a' + c·a'; (m, n, n)
    across: torch.Tensor  # (m, n, n): [k, j, i] = sentence j of second k · sentence i of first
    offsets: tuple[torch.Tensor, torch.Tensor]  # c·a' of first (n,), of second (m, n, 1)
    tolerance: torch.Tensor  # (m,)
    common: float = 0.0  # c·c; with the offsets of both sentences it makes a cosine
    start: int = 0
    lengths: tuple[torch.Tensor, ...] = ()  # of the vectors as they come, (1, n) and (m, n)

    def __post_init__(self) -> None:
        """What a measure may replace: similarities of X to A within a language, to B across."""
        self.within = self.inside[self.axis - 1]
        self.to_other = self.across + self.offsets[2 - self.axis]

    @property
    def queries(self) -> tuple[str, ...]:
        """The languages of X."""
        return (self.first,) if self.axis == 1 else self.second

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that B is of."""
        return self.second if self.axis == 1 else (self.first,)

    @property
    def cosine(self) -> torch.Tensor:
        """The cosines across, ``(m, n, n)``, less what is common to all sentences (``common``)."""
        return self.to_other + self.offsets[self.axis - 1]

    @property
    def kernels(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The cosines within the first and the second languages, less ``common``: symmetric."""
        first, second = (x + offset for x, offset in zip(self.inside, self.offsets, strict=True))
        return first[None], second

    @property
    def translation(self) -> torch.Tensor:
        """The similarity of each sentence to its translation, ``(m, n)``."""
        return self.to_other.diagonal(self.start, dim1=1, dim2=2).clone()

    @cached_property
    def ahead(self) -> dict[str, torch.Tensor]:
        """Of LD and MD twice what A wins of B, ``(m, n, n)``: 2, or 1 for a tie; 0 on diagonals."""
        cells = {"LD": self.within, "MD": self.translation.unsqueeze(self.axis)}
        # A difference within the tolerance passes ≥ and fails >, and so counts one half. The two
        # bounds are the same matrix, moved by the slack; moving it in place saves making it anew.
        slack = self.tolerance[:, None, None]
        bound, ahead = self.to_other - slack, {}
        for task, nearer in cells.items():
            ahead[task] = _compared(torch.ge, nearer, bound)
        bound += 2 * slack
        for task, nearer in cells.items():
            ahead[task] += _compared(torch.gt, nearer, bound)
            ahead[task].diagonal(self.start, dim1=1, dim2=2).zero_()
        return ahead

    def credit(self, similarity: torch.Tensor) -> ndarray:
        """Whether the translation beats every other candidate: ``(m, n)`` in [0, 1].

        1 if it does, 0 if another is more similar; with k others as similar, 1 / (k + 1); 0 outside
        of a strip. ``similarity`` is like ``to_other``, and is left as it is.
        """
        diagonal = similarity.diagonal(self.start, dim1=1, dim2=2)
        translation = diagonal.clone()
        diagonal.fill_(-torch.inf)
        margin = translation - similarity.amax(self.axis)
        slack = self.tolerance[:, None]
        credit = (margin >= -slack).double()
        if (margin.abs() <= slack).any():
            level = (translation - slack).unsqueeze(self.axis)
            credit /= 1 + (similarity >= level).sum(self.axis)
        diagonal.copy_(translation)
        whole = np.zeros((len(similarity), similarity.shape[-1]))
        whole[:, self.start : self.start + credit.shape[1]] = credit.cpu()
        return whole


def _compared(how: Callable, nearer: torch.Tensor, farther: torch.Tensor) -> torch.Tensor:
    """A comparison as 0 and 1; written as numbers, it is three times as fast as in booleans."""
    return how(nearer, farther, out=torch.empty_like(farther))


def unit_vectors(vectors: Vectors) -> dict[str, ndarray] | dict[str, sparse.csr_array]:
    """The sentence vectors of one layer, by language, in float64 with length 1.

    ``vectors`` are ``(n_sentences, dim)``, dense or sparse; sentences aligned across languages. Of
    sparse vectors, dimensions that a single sentence uses are dropped afterwards: they take no part
    in any product. ValueError for unequal shapes, fewer than two sentences, NaN or infinity, a zero
    vector, naming the language and the position.
    """
    shapes = {language: array.shape for language, array in vectors.items()}
    if len(set(shapes.values())) > 1:
        (first, shape), *rest = shapes.items()
        second, different = next(item for item in rest if item[1] != shape)
        raise ValueError(
            f"the vectors of {first} have shape {shape} and those of {second} {different}: embed "
            "all languages of one corpus with one model"
        )
    if not shapes or next(iter(shapes.values()))[0] < 2:
        raise ValueError("two or more sentences are needed: with one there is no other meaning")
    units = {}
    for language, array in vectors.items():
        # A sparse matrix keeps its numbers in .data; its missing ones are zeros, so finite.
        numbers = array.data if sparse.issparse(array) else array
        if not np.isfinite(numbers).all():
            where = 0 if sparse.issparse(array) else np.argwhere(~np.isfinite(array))[0][0]
            raise ValueError(
                f"the vector of {language} at position {where} holds NaN or infinity: look at the "
                "model's output for this sentence, or embed in float32"
            )
        exact = array.astype(float)
        norms = _lengths(exact)
        if not (np.isfinite(norms) & (norms > 0)).all():
            where = np.flatnonzero(~(np.isfinite(norms) & (norms > 0)))[0]
            raise ValueError(
                f"the vector of {language} at position {where} is "
                f"{'zero' if norms[where] == 0 else 'too long'} and has no direction: drop this "
                "sentence, or scale the vectors"
            )
        if sparse.issparse(exact):
            units[language] = sparse.csr_array(sparse.diags_array(1 / norms) @ exact)
        else:
            units[language] = exact / norms[:, None]
    if sparse.issparse(next(iter(units.values()))):
        used = sum(np.asarray((unit != 0).sum(0)).ravel() for unit in units.values())
        return {language: sparse.csr_array(unit[:, used > 1]) for language, unit in units.items()}
    return units


def _lengths(vectors: ndarray | sparse.csr_array) -> ndarray:
    exact = vectors.astype(float)
    squares = exact.multiply(exact) if sparse.issparse(exact) else exact**2
    return np.sqrt(np.asarray(squares.sum(1)).ravel())


def undefined(vectors: Vectors) -> set[str]:
    """Languages of which nothing is left: all that their vectors ``(n, dim)`` hold is NaN."""
    dense = {code: array for code, array in vectors.items() if not sparse.issparse(array)}
    return {
        code for code, x in dense.items() if x.size and np.isnan(x[:1]).all() and np.isnan(x).all()
    }


@checks.typed()
def centred(vectors: Mapping[str, ndarray]) -> dict[str, ndarray]:
    """Vectors ``(..., n, dim)`` of each language less their mean over its sentences; float64.

    All sentences of a language may lie to one side of those of another. That offset says nothing of
    which sentence is which, and in a cosine it comes before all that does. Without it a score asks
    what else is shared; it needs sentences of the language and no translations (Libovický, Rosa and
    Fraser 2020). A sentence at the mean, but for rounding, has no direction: all such get the same
    one, and so tie. Where all sentences of a language are at its mean, nothing is left: NaN.
    """
    moved = {}
    for language, whole in vectors.items():
        whole = np.asarray(whole, float)  # in float16 a norm overflows
        rest = whole - whole.mean(-2, keepdims=True)
        lost = np.linalg.norm(rest, axis=-1) <= NOTHING * np.linalg.norm(whole, axis=-1)
        rest[lost] = 1.0
        rest[lost.all(-1)] = np.nan
        moved[language] = rest
    return moved


def blocks(
    vectors: Vectors,
    pairs: Sequence[tuple[str, str]] | None = None,
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype | None = None,
    strips: bool = False,
) -> Iterator[Block]:
    """The similarity blocks of all pairs of languages, or of `pairs`, both ways; products once.

    If ``strips``, matrices of more than `WHOLE_NUMBERS` are never whole: of each pair come the
    strips of the second language with the first, then those of the first with the second.
    """
    units, dtype = unit_vectors(vectors), dtype or torch.float32
    languages = list(units)
    if pairs is None:
        pairs = list(combinations(languages, 2))
    for language in chain(*pairs):
        checks.one_of(language, units, "vector of language")
    wanted = sorted({language for pair in pairs for language in pair}, key=languages.index)
    row = {language: index for index, language in enumerate(wanted)}
    rest, offsets, squares, common = _centred(units, wanted, dtype)
    offsets = offsets.to(device)
    if isinstance(rest, torch.Tensor):
        rest = rest.to(device)
    n = offsets.shape[-1]
    # Of a dot product of float32 vectors of lengths r and s, the rounding error is a few eps·r·s.
    tolerance = 16 * torch.finfo(dtype).eps * torch.as_tensor(squares, dtype=dtype, device=device)
    if strips and n * n > WHOLE_NUMBERS:
        size = max(1, BLOCK_NUMBERS // n)
        both = chain(*((pair, pair[::-1]) for pair in pairs))
        for (first, second), start in product(both, range(0, n, size)):
            i, j, rows = row[first], row[second], slice(start, start + size)
            within, across = (_product(rest[j][rows], rest[k], device)[None] for k in (j, i))
            within += offsets[j]
            reach = torch.sqrt(tolerance[[i]] * tolerance[[j]])
            shifts = offsets[i], offsets[[j], rows, None]
            yield Block(first, (second,), 2, (None, within), across, shifts, reach, common, start)
        return
    within = torch.stack([_product(rest[i], rest[i], device) for i in range(len(wanted))])
    within += offsets[:, None, :]  # [l, x, a]
    lengths = torch.from_numpy(np.stack([_lengths(vectors[x]) for x in wanted])).to(device)
    chunk = max(1, BLOCK_NUMBERS // (n * n))
    for first in wanted:
        i = row[first]
        transposed = within[i].T.contiguous()
        others = [b for a, b in pairs if a == first]
        for start in range(0, len(others), chunk):
            second = tuple(others[start : start + chunk])
            rows = [row[language] for language in second]
            # Neighbouring languages are a view; only an unusual choice of pairs makes a copy.
            run = slice(rows[0], rows[-1] + 1)
            index = run if rows == list(range(run.start, run.stop)) else rows
            across = torch.stack([_product(rest[j], rest[i], device) for j in rows])
            reach = torch.sqrt(tolerance[i] * tolerance[index])
            shifts, sizes = (offsets[i], offsets[index, :, None]), (lengths[[i]], lengths[index])
            inside = transposed, within[index]
            for axis in (1, 2):
                yield Block(first, second, axis, inside, across, shifts, reach, common, 0, sizes)


def _centred(
    units: dict, wanted: list[str], dtype: torch.dtype
) -> tuple[torch.Tensor | list[sparse.csr_array], torch.Tensor, ndarray, float]:
    """The parts a' of the unit vectors, the offsets c·a', the mean square length of a', c·c."""
    if sparse.issparse(units[wanted[0]]):  # c = 0: centred vectors would not be sparse
        offsets = torch.zeros(len(wanted), units[wanted[0]].shape[0])
        return [units[language] for language in wanted], offsets, np.ones(len(wanted)), 0.0
    common = np.mean([units[language].mean(0) for language in wanted], 0)
    rest = torch.empty((len(wanted), *units[wanted[0]].shape), dtype=dtype)
    offsets = torch.empty(rest.shape[:2], dtype=dtype)
    squares = np.empty(len(wanted))
    for index, language in enumerate(wanted):
        centred = units[language] - common
        rest[index] = torch.from_numpy(centred)
        offsets[index] = torch.from_numpy(centred @ common)
        squares[index] = np.mean(np.sum(centred**2, 1))
    return rest, offsets, squares, float(common @ common)


def _product(
    first: torch.Tensor | sparse.csr_array,
    second: torch.Tensor | sparse.csr_array,
    device: str | torch.device,
) -> torch.Tensor:
    if isinstance(first, torch.Tensor):
        return first @ second.T
    return torch.from_numpy((first @ second.T).toarray().astype(np.float32)).to(device)
