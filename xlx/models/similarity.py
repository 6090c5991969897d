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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy import sparse

Vectors = Mapping[str, np.ndarray] | Mapping[str, sparse.csr_array]

#: Numbers of a temporary matrix: two of 960 × 960, so that it stays in the processor's cache.
BLOCK_NUMBERS = 2_000_000


@dataclass(frozen=True)
class Block:
    """Comparable similarities of one language with m others; n sentences each.

    Of a row, ``within + offset`` and ``across + offset`` order the items by their cosine to the
    row's sentence; differences below ``tolerance`` are rounding, so they are ties.
    """

    first: str
    second: tuple[str, ...]
    within_first: torch.Tensor  # (n, n): [a, x] = x'·a' + c·a', the similarity of item a to x
    within_second: torch.Tensor  # (m, n, n): [k, x, a], rows are the x
    across: torch.Tensor  # (m, n, n): [k, j, i] = sentence j of second k · sentence i of first
    offset_first: torch.Tensor  # (n,)
    offset_second: torch.Tensor  # (m, n)
    tolerance: torch.Tensor  # (m,)


def unit_vectors(vectors: Vectors) -> dict[str, np.ndarray] | dict[str, sparse.csr_array]:
    """The sentence vectors of one layer, by language, in float64 with length 1.

    ``vectors`` are ``(n_sentences, dim)``, dense or sparse; sentences aligned across languages. Of
    sparse vectors, dimensions that a single sentence uses are dropped afterwards: they take no part
    in any product of two different sentences. ValueError for unequal shapes, fewer than two
    sentences, NaN or infinity, a zero vector; names the language and the position.
    """
    shapes = {language: array.shape for language, array in vectors.items()}
    if len(set(shapes.values())) > 1:
        (one, shape), *rest = shapes.items()
        other, different = next(item for item in rest if item[1] != shape)
        raise ValueError(
            f"the vectors of {one} have shape {shape} and those of {other} {different}: embed all "
            "languages of one corpus with one model"
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
        exact = array.astype(np.float64)
        squares = exact.multiply(exact) if sparse.issparse(exact) else exact**2
        norms = np.sqrt(np.asarray(squares.sum(axis=1)).ravel())
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
        used = sum(np.asarray((unit != 0).sum(axis=0)).ravel() for unit in units.values())
        return {language: sparse.csr_array(unit[:, used > 1]) for language, unit in units.items()}
    return units


def blocks(
    vectors: Vectors,
    pairs: Sequence[tuple[str, str]] | None = None,
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Iterator[Block]:
    """The similarity blocks of all pairs of languages, or of `pairs`; every product once.

    ``within`` is computed once a language and ``across`` once an unordered pair, whose transpose
    serves the other direction.
    """
    units = unit_vectors(vectors)
    languages = list(units)
    if pairs is None:
        pairs = [(a, b) for i, a in enumerate(languages) for b in languages[i + 1 :]]
    for pair in pairs:
        for language in pair:
            if language not in units:
                raise ValueError(
                    f"there are no vectors of {language}: embed it, or choose among "
                    f"{', '.join(languages)}"
                )
    wanted = sorted({language for pair in pairs for language in pair}, key=languages.index)
    row = {language: index for index, language in enumerate(wanted)}
    rest, offsets, squares = _centred(units, wanted, dtype)
    offsets = offsets.to(device)
    if isinstance(rest, torch.Tensor):
        rest = rest.to(device)
    within = torch.stack([_product(rest[i], rest[i], device) for i in range(len(wanted))])
    within += offsets[:, None, :]  # [l, x, a]
    n = within.shape[-1]
    chunk = max(1, BLOCK_NUMBERS // (n * n))
    # Of a dot product of float32 vectors of lengths r and s, the rounding error is a few eps·r·s.
    tolerance = 16 * torch.finfo(dtype).eps * torch.as_tensor(squares, dtype=dtype, device=device)
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
            yield Block(
                first,
                second,
                transposed,
                within[index],
                torch.stack([_product(rest[j], rest[i], device) for j in rows]),
                offsets[i],
                offsets[index],
                torch.sqrt(tolerance[i] * tolerance[index]),
            )


def _centred(
    units: dict, wanted: list[str], dtype: torch.dtype
) -> tuple[torch.Tensor | list[sparse.csr_array], torch.Tensor, np.ndarray]:
    """The parts a' of the unit vectors, the offsets c·a', and the mean square length of the a'."""
    if sparse.issparse(units[wanted[0]]):  # c = 0: centred vectors would not be sparse
        n = units[wanted[0]].shape[0]
        return (
            [units[language] for language in wanted],
            torch.zeros(len(wanted), n),
            np.ones(len(wanted)),
        )
    common = np.mean([units[language].mean(axis=0) for language in wanted], axis=0)
    rest = torch.empty((len(wanted), *units[wanted[0]].shape), dtype=dtype)
    offsets = torch.empty(rest.shape[:2], dtype=dtype)
    squares = np.empty(len(wanted))
    for index, language in enumerate(wanted):
        centred = units[language] - common
        rest[index] = torch.from_numpy(centred)
        offsets[index] = torch.from_numpy(centred @ common)
        squares[index] = np.mean(np.sum(centred**2, axis=1))
    return rest, offsets, squares


def _product(
    one: torch.Tensor | sparse.csr_array,
    other: torch.Tensor | sparse.csr_array,
    device: str | torch.device,
) -> torch.Tensor:
    if isinstance(one, torch.Tensor):
        return one @ other.T
    return torch.from_numpy((one @ other.T).toarray().astype(np.float32)).to(device)
