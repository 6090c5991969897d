"""Toy worlds of the exercises, and what LD and MD are in them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from xlx.measures import abx
from xlx.results.deferred import deferred
from xlx.subjects.pooling import pool

torch = deferred("torch")


def vectors(seed: int, n: int = 9, dim: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Sentences of two languages: row i of both is one meaning, not all found; lengths differ."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, dim)) + rng.normal(size=dim)
    y = x + rng.normal(size=(n, dim)) + rng.normal(size=dim)
    return x, y * rng.uniform(0.3, 3, size=(n, 1))


def unit(x: np.ndarray) -> np.ndarray:
    """Rows of length 1."""
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def angles(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The cosine of each row of x with each of y."""
    return unit(x) @ unit(y).T


def pooled(states: np.ndarray, counted: np.ndarray, how: str) -> np.ndarray:
    """One sentence's vector, as the package pools it."""
    tensors = torch.from_numpy(states)[None], torch.from_numpy(counted)[None]
    return pool(*tensors, how)[0].numpy()


def won(
    translations: np.ndarray, others: np.ndarray, tie: float = 0.5, spared: bool = True
) -> float:
    """How often ``translations`` are above ``others``, ``(n, n)``.

    ``spared``: the diagonal is left out.
    """
    points = (translations > others) + tie * (translations == others)
    return points[~(spared * np.eye(len(points), dtype=bool))].mean()


def exact(task: str) -> Callable:
    """The package's score, X in the first of two languages."""

    def score(x: np.ndarray, y: np.ndarray) -> float:
        table = abx.exact({"1": x, "2": y}, dtype=torch.float64).table()
        return table["score"][(table["task"] == task) & (table["x_language"] == "1")].item()

    return score


def meaning(**options: float) -> Callable:
    """MD with something else in it."""
    return lambda x, y: won(np.diag(angles(x, y))[:, None], angles(x, y), **options)


def form(**options: float) -> Callable:
    """LD with something else in it."""
    return lambda x, y: won(angles(x, x), angles(x, y), **options)


def hits(c: np.ndarray, joined: Callable = np.maximum) -> np.ndarray:
    """Which translations are above what is largest in their row and column, joined."""
    others = np.where(np.eye(len(c), dtype=bool), -np.inf, c)
    return np.diag(c) > joined(others.max(axis=0), others.max(axis=1))


_rng = np.random.default_rng(3)
WORLDS = (vectors(1), vectors(2))
#: Vectors along axes: their cosines are exactly 0 or 1, so that there are ties.
TIES = (np.eye(4)[[0, 1, 2, 3, 1]], np.eye(4)[[0, 0, 2, 1, 1]])
FIRST = ("Yes.", "It rains again.", "Who has seen the small cat?", "We go home now, at last.", "No")
SECOND = ("Ja.", "Es regnet wieder.", "Wer hat die kleine Katze da?", "Wir gehen heim.", "Nein!")
TRANSLATIONS = ((FIRST, SECOND), (SECOND, FIRST), (FIRST, FIRST[2:] + FIRST[:2]))
LENGTHS = ((["a" * n for n in (100, 111, 91, 109, 99, 3, 100, 45)],), (SECOND,))
BAGS = (([*"abac"], [*"accd"]), (["▁the", "▁cat", "▁the"], ["▁cat"] * 2))
#: States of subwords, and which are no padding.
PADDED = tuple((_rng.normal(size=(n, 3)), np.arange(n) < k) for n, k in ((5, 4), (4, 2)))
#: X, A and B; the last is a tie.
TRIPLETS = [tuple(_rng.normal(size=(3, 4)) * [[1], [0.2], [3]]) for _ in range(12)]
TRIPLETS.append((*np.eye(3)[[0, 1, 1]],))
COSINES = [(angles(*vectors(seed, 12)),) for seed in (5, 6, 7)]
#: On training pairs, their translations, and new pairs.
WRONG_ANSWERS = [tuple(_rng.random(n) < p for n, p in ((40, 0.1), (40, 0.4), (30, 0.5)))]
_errors, _gaps = np.array([0.5, 0.31, 0.22, 0.2, 0.13, 0.09]), np.array([2, 5, 13, 15, 11, 17.0])
CHECKPOINTS = [(_errors, _gaps, level, 0.05) for level in (0.2, 0.09, 0.3)]
RANKED = [(1 - _errors[:5], _gaps[:5] / 50), (_gaps[:4], _errors[:4])]
GRIDS = [(_rng.random((4, 4)),)]
ANSWERED = [(_rng.integers(3, size=40), _rng.integers(3, size=40)) for _ in range(2)]
_there = _rng.random(30) < 0.4
CALLED = [(_rng.random(30) < 0.3 + 0.4 * _there, _there), (_there, _there)]
_train, _test = np.array([0, 0, 1, 2, 0]), np.array([1, 1, 0, 2])
LABELS = [(_train, _test), (_test, _train), (_train + (_train < 2), _test)]
_kinds = _rng.integers(3, size=60)
_x = _rng.normal(size=(60, 4)) + 0.6 * _rng.normal(size=(3, 4))[_kinds]
#: Training vectors and labels, and those of the test.
PROBED = [
    (_x[at], _kinds[at], _x[~at], _kinds[~at]) for at in (np.arange(60) < n for n in (40, 30))
]
#: A printed mean, the numbers, and half a unit of their last place.
_rows = ([21.1, 15.6, 23.4], 0.05), ([3, 4, 6], 0.5)
MEANS = [(np.mean(x) + k * h, x, h) for x, h in _rows for k in (-2.5, -1.7, -0.8, 1.4, 2.2)]
MEANS.append((30.05, *_rows[0]))
