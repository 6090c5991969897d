"""Word vectors of two languages in one space: VecMap's orthogonal map.

Ravishankar, Øvrelid and Velldal (2019, section 5.2) use the supervised VecMap of Artetxe et al.
(2016): vectors of unit length, centred, and of unit length again (`normalised_words`), and the
orthogonal matrix that brings pairs of translations nearest together (`orthogonal_map`). The target
stays as it is, so several languages can be mapped onto one.
"""

import numpy as np
from scipy.linalg import orthogonal_procrustes

#: Numbers of a block of similarities: 64 MB of float32.
SIMILARITIES_AT_ONCE = 16_000_000


def normalised_words(vectors: np.ndarray, *, like: np.ndarray | None = None) -> np.ndarray:
    """Vectors ``(n, dim)`` at unit length, centred, at unit length again, as VecMap has them.

    ``like`` ``(m, dim)``: the vocabulary, before any step, whose mean is taken instead of that of
    the vectors; for words that are not in it. Returns float32 ``(n, dim)``. A row of zeros is a
    word of which nothing is known, so it stays zero and counts in no mean.
    """
    unit = unit_rows(np.array(vectors, dtype=np.float64))
    vocabulary = unit if like is None else unit_rows(np.array(like, dtype=np.float64))
    known = vocabulary[vocabulary.any(axis=1)]
    if len(known):
        unit[unit.any(axis=1)] -= known.mean(axis=0)
    return unit_rows(unit).astype(np.float32)


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1; of zeros where they were."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def orthogonal_map(source: np.ndarray, target: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """The orthogonal W ``(d, d)`` that makes Σ ‖x W - z‖² of the pairs least.

    ``source`` ``(n_source, d)`` and ``target`` ``(n_target, d)`` are `normalised_words`; ``pairs``
    ``(n, 2)`` have a row x of the source, a row z of the target. ValueError for fewer pairs than
    numbers in a vector, which leave the map open.
    """
    if len(pairs) < source.shape[1]:
        raise ValueError(
            f"there are {len(pairs)} pairs for vectors of {source.shape[1]} numbers: fewer pairs "
            "than numbers leave the map open; give a larger dictionary or narrower vectors"
        )
    x, z = source[pairs[:, 0]].astype(np.float64), target[pairs[:, 1]].astype(np.float64)
    return orthogonal_procrustes(x, z)[0]


def precision_at_1(
    mapped_source: np.ndarray, target: np.ndarray, pairs: np.ndarray, *, csls: int = 0
) -> np.ndarray:
    """Whether each pair's source word finds a translation nearest, among all words of the target.

    ``mapped_source`` ``(n_source, k)`` and ``target`` ``(n_target, k)`` are in the common space and
    compared by cosine; with ``csls``, by CSLS (Conneau et al. 2017), which takes from a target word
    the mean cosine of so many nearest source words, as some are near to everything. Right is any
    target that the ``pairs`` ``(n, 2)`` give the source word; a word with several has as many rows
    in the result, bool ``(n,)``, all alike (MUSE counts such a word once).
    """
    source, target = (unit_rows(x.astype(np.float32)) for x in (mapped_source, target))
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
    step = max(1, SIMILARITIES_AT_ONCE // width)
    return [slice(start, start + step) for start in range(0, n, step)]
