"""Word vectors of two languages in one space: VecMap's supervised steps.

A map is fitted on pairs of words that translate one another, x of the source and z of the target.
Ravishankar, Øvrelid and Velldal (2019, section 5.2) use the supervised VecMap of Artetxe et al.
(2016): vectors of unit length, centred, and the orthogonal matrix that brings the pairs nearest
together. Artetxe et al. (2018) put further linear steps around it, which are options here; with X
and Z the matrices of the pairs:

1. normalise: unit length, centre each number over the vocabulary, unit length (`normalised`);
2. whiten: X (XᵀX)^(-½) and Z (ZᵀZ)^(-½), so that the numbers of each are uncorrelated;
3. map: with U S Vᵀ = XᵀZ, both into the space of the components, X U and Z V;
4. re-weight: the components by S^r, their cross-correlation, on each side;
5. de-whiten: give each side back the variances of the source, or of the target;
6. keep the first k components.

Without 2 and 4 to 6, X U Vᵀ is the orthogonal map onto the target, which then stays as it is: so
several languages can be mapped onto one. With any of them the target is mapped as well, and
differently for each source.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

#: Numbers of a block of similarities: 64 MB of float32.
BLOCK_NUMBERS = 16_000_000

Side = Literal["source", "target"] | None


class MappingError(ValueError):
    """Vectors or pairs that no map can be fitted on; says which, why, and what to do."""


def normalised(
    vectors: np.ndarray,
    steps: Sequence[str] = ("unit", "center", "unit"),
    *,
    like: np.ndarray | None = None,
) -> np.ndarray:
    """Vectors after VecMap's normalising steps, one after another.

    Parameters
    ----------
    vectors : numpy.ndarray
        ``(n, dim)``.
    steps : sequence of str
        "unit": each row to length 1; "center": the mean row taken from each.
    like : numpy.ndarray, optional
        ``(m, dim)``: the vocabulary, before any step, whose means are taken instead of those of
        `vectors`; for words that are not in it.

    Returns
    -------
    numpy.ndarray
        ``(n, dim)``, float32. A row of zeros is a word of which nothing is known, so it stays zero
        and counts in no mean.

    Raises
    ------
    MappingError
        A step of another name; `like` of another width.
    """
    now = np.array(vectors, dtype=np.float64)
    other = None if like is None else np.array(like, dtype=np.float64)
    if other is not None and other.shape[1:] != now.shape[1:]:
        raise MappingError(
            f"vectors have {now.shape[-1]} numbers and the vocabulary's {other.shape[-1]}"
        )
    known = now.any(axis=1)
    known_other = known if other is None else other.any(axis=1)
    for step in steps:
        if step == "unit":
            now = _unit(now)
            other = None if other is None else _unit(other)
        elif step == "center":
            rows = (now if other is None else other)[known_other]
            mean = rows.mean(axis=0) if len(rows) else 0.0
            now[known] -= mean
            if other is not None:
                other[known_other] -= mean
        else:
            raise MappingError(f"there is no step {step!r}: choose among unit and center")
    return now.astype(np.float32)


def _unit(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1; of zeros where they were."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


@dataclass(frozen=True)
class WordMap:
    """Two matrices into one space of k numbers: ``source`` ``(d, k)``, ``target`` ``(d, k)``."""

    source: np.ndarray
    target: np.ndarray

    def apply_source(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors of the source language, ``(n, d)``, in the common space: float32 ``(n, k)``."""
        return _applied(vectors, self.source, "source")

    def apply_target(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors of the target language, ``(n, d)``, in the common space: float32 ``(n, k)``."""
        return _applied(vectors, self.target, "target")


def _applied(vectors: np.ndarray, matrix: np.ndarray, side: str) -> np.ndarray:
    if vectors.ndim != 2 or vectors.shape[1] != len(matrix):
        raise MappingError(
            f"vectors have shape {vectors.shape}, and the map of the {side} takes "
            f"{len(matrix)} numbers"
        )
    return (vectors @ matrix).astype(np.float32)


def fit(
    source: np.ndarray,
    target: np.ndarray,
    pairs: np.ndarray,
    *,
    whiten: bool = False,
    reweight: float = 0.0,
    dewhiten: tuple[Side, Side] = (None, None),
    keep: int | None = None,
) -> WordMap:
    """Fit a map on the pairs of a seed dictionary.

    VecMap's own settings: the defaults are ``--orthogonal`` (Artetxe et al. 2016); ``--supervised``
    is ``whiten=True, reweight=0.5, dewhiten=("source", "target")`` (2018).

    Parameters
    ----------
    source, target : numpy.ndarray
        ``(n_source, d)`` and ``(n_target, d)``, after `normalised`.
    pairs : numpy.ndarray
        ``(n, 2)``: a row of `source`, a row of `target`.
    whiten : bool
    reweight : float
        Exponent of the singular values on each side, 0 for none. Theirs are cosines only where the
        vectors are whitened.
    dewhiten : (side, side)
        Whose variances the mapped source and the mapped target get back: "source", "target" or
        None, neither.
    keep : int, optional
        Components kept, at most d; those with the largest singular values.

    Returns
    -------
    WordMap
        With the defaults ``target`` is the identity and ``source`` orthogonal: it is the one that
        makes the sum of squared distances of the pairs least.

    Raises
    ------
    MappingError
        Vectors of different widths; fewer pairs than numbers in a vector, which leave the map open;
        pairs that point outside; NaN; vectors that cannot be whitened because those of the pairs
        span too little; de-whitening what was not whitened; `keep` out of its range.
    """
    x, z = _of_pairs(source, target, pairs)
    dim = x.shape[1]
    if keep is not None and not 1 <= keep <= dim:
        raise MappingError(f"keep is {keep}: keep 1 to {dim} components")
    for side in dewhiten:
        if side not in (None, "source", "target"):
            raise MappingError(f"dewhiten names {side!r}: each side takes source, target or None")
    if dewhiten != (None, None) and not whiten:
        raise MappingError("there is nothing to de-whiten: set whiten=True")
    whitening = {"source": np.eye(dim), "target": np.eye(dim)}
    if whiten:
        whitening = {"source": _whitening(x, "source"), "target": _whitening(z, "target")}
    u, s, vt = np.linalg.svd((x @ whitening["source"]).T @ (z @ whitening["target"]))
    if not whiten and reweight == 0.0 and keep is None:
        return WordMap(u @ vt, np.eye(dim))
    turn = {"source": u, "target": vt.T}
    matrices = [
        whitening[own] @ turn[own] @ np.diag(s**reweight) @ _dewhitening(whitening, turn, back)
        for own, back in zip(("source", "target"), dewhiten, strict=True)
    ]
    return WordMap(*(matrix[:, :keep] for matrix in matrices))


def _of_pairs(
    source: np.ndarray, target: np.ndarray, pairs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of the pairs in float64, ``(n, d)`` each."""
    if source.ndim != 2 or target.ndim != 2 or source.shape[1] != target.shape[1]:
        raise MappingError(
            f"the source's vectors have shape {source.shape} and the target's {target.shape}: they "
            "need equally many numbers; train or read both with the same width"
        )
    _check_pairs(pairs, len(source), len(target))
    if len(pairs) < source.shape[1]:
        raise MappingError(
            f"there are {len(pairs)} pairs for vectors of {source.shape[1]} numbers: fewer pairs "
            "than numbers leave the map open; give a larger dictionary or narrower vectors"
        )
    x, z = source[pairs[:, 0]].astype(np.float64), target[pairs[:, 1]].astype(np.float64)
    for name, vectors in (("source", x), ("target", z)):
        finite = np.isfinite(vectors).all(axis=1)
        if not finite.all():
            raise MappingError(
                f"the vector of the {name} in pair {int(finite.argmin())} holds NaN or infinity"
            )
    return x, z


def _check_pairs(pairs: np.ndarray, n_source: int, n_target: int) -> None:
    pairs = np.asarray(pairs)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise MappingError(f"pairs have shape {pairs.shape}: a row is a source and a target")
    outside = ((pairs < 0) | (pairs >= [n_source, n_target])).any(axis=1)
    if outside.any():
        at = int(outside.argmax())
        raise MappingError(
            f"pair {at} is {pairs[at].tolist()}, and there are {n_source} words of the source and "
            f"{n_target} of the target: take the pairs and the vectors of the same vocabularies"
        )


def _whitening(vectors: np.ndarray, side: str) -> np.ndarray:
    """(XᵀX)^(-½), by the singular values of X."""
    _, s, vt = np.linalg.svd(vectors, full_matrices=False)
    if s[-1] <= s[0] * len(vectors) * np.finfo(np.float64).eps:
        raise MappingError(
            f"the {side}'s vectors of the pairs span fewer than {vectors.shape[1]} dimensions and "
            "cannot be whitened: give a larger dictionary, or whiten=False"
        )
    return (vt.T / s) @ vt


def _dewhitening(
    whitening: dict[str, np.ndarray], turn: dict[str, np.ndarray], back: Side
) -> np.ndarray:
    """The inverse of a side's whitening, in the space of the components."""
    if back is None:
        return np.eye(len(whitening["source"]))
    return turn[back].T @ np.linalg.inv(whitening[back]) @ turn[back]


def mapped(
    lookup: Callable[[Sequence[str]], np.ndarray],
    vocabulary: np.ndarray,
    matrix: np.ndarray,
    steps: Sequence[str] = ("unit", "center", "unit"),
) -> Callable[[Sequence[str]], np.ndarray]:
    """A lookup of words in the common space, from one in their own.

    ``lookup`` gives ``(n, d)`` for n words; ``vocabulary`` ``(m, d)`` is what the map was fitted on
    before it was normalised; ``matrix`` ``(d, k)`` is that of the language (``WordMap.source``, or
    ``target``). A word outside the vocabulary is normalised as the vocabulary was.
    """

    def found(words: Sequence[str]) -> np.ndarray:
        return (normalised(lookup(words), steps, like=vocabulary) @ matrix).astype(np.float32)

    return found


def precision_at_1(
    mapped_source: np.ndarray, target: np.ndarray, pairs: np.ndarray, *, csls: int = 0
) -> np.ndarray:
    """Whether each pair's source word finds a translation nearest, among all words of the target.

    Parameters
    ----------
    mapped_source, target : numpy.ndarray
        ``(n_source, k)`` and ``(n_target, k)``, both in the common space; compared by cosine.
    pairs : numpy.ndarray
        ``(n, 2)``. Right is any target that the pairs give the source word; a word with several has
        as many rows here, all alike (MUSE counts such a word once).
    csls : int
        0: the nearest by cosine. k: by CSLS (Conneau et al. 2017), which takes from a target word
        the mean cosine of its k nearest source words, as some are near to everything.

    Returns
    -------
    numpy.ndarray
        bool ``(n,)``.

    Raises
    ------
    MappingError
        Different widths; pairs that point outside; `csls` out of its range.
    """
    if mapped_source.ndim != 2 or mapped_source.shape[1:] != target.shape[1:]:
        raise MappingError(
            f"the mapped source has shape {mapped_source.shape} and the target {target.shape}: "
            "both are to be in the common space"
        )
    _check_pairs(pairs, len(mapped_source), len(target))
    if not 0 <= csls <= len(mapped_source):
        raise MappingError(f"csls is {csls}: take 0 or up to {len(mapped_source)} neighbours")
    source, target = _unit(mapped_source.astype(np.float32)), _unit(target.astype(np.float32))
    crowding = _crowding(source, target, csls) / 2 if csls else np.zeros(len(target), np.float32)
    asked, row = np.unique(pairs[:, 0], return_inverse=True)
    nearest = np.concatenate(
        [
            (source[asked[rows]] @ target.T - crowding).argmax(axis=1)
            for rows in _blocks(len(asked), len(target))
        ]
    )
    given = set(map(tuple, pairs.tolist()))
    hit = np.array([pair in given for pair in zip(asked.tolist(), nearest.tolist(), strict=True)])
    return hit[row]


def _crowding(source: np.ndarray, target: np.ndarray, k: int) -> np.ndarray:
    """Mean cosine of each target word with its k nearest source words, ``(n_target,)``."""
    means = [
        np.partition(target[rows] @ source.T, -k, axis=1)[:, -k:].mean(axis=1)
        for rows in _blocks(len(target), len(source))
    ]
    return np.concatenate(means)


def _blocks(n: int, width: int) -> list[slice]:
    """Rows in as few parts as keep a block of similarities small."""
    step = max(1, BLOCK_NUMBERS // width)
    return [slice(start, start + step) for start in range(0, n, step)]
