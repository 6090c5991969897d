"""What measures are, once more and slowly: matrices of similarities of planted sentences.

``near[x][y]``, ``(n, n)``: how near each sentence of language x is to each of y, so that more is
nearer. What is less than `EVEN` apart is a tie.
"""

import numpy as np
from scipy import stats
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler

from xlx.measures import geometry

EVEN = 1e-9
Near = dict[str, dict[str, np.ndarray]]


def similarities(vectors: dict[str, np.ndarray], space: str) -> Near:
    """Cosines in a space; of "Euclidean" the negative half of the squared distance."""
    whole = np.concatenate([*vectors.values()])
    moved = {
        x: rows - (rows if space == "centred" else whole).mean(axis=0) * (space != "raw")
        for x, rows in vectors.items()
    }
    if space == "Euclidean":
        return {
            x: {y: -((a[:, None] - b) ** 2).sum(axis=2) / 2 for y, b in moved.items()}
            for x, a in moved.items()
        }
    inner = np.eye(whole.shape[1])
    if space == "standardised":
        inner /= np.where(whole.std(axis=0), whole.std(axis=0), 1) ** 2
    if space == "whitened":
        inner = np.linalg.pinv(np.cov(whole.T), rcond=1e-9, hermitian=True)
    lengths = {x: np.sqrt(((rows @ inner) * rows).sum(axis=1)) for x, rows in moved.items()}
    return {
        x: {y: a @ inner @ b.T / np.outer(lengths[x], lengths[y]) for y, b in moved.items()}
        for x, a in moved.items()
    }


def won(ahead: np.ndarray) -> np.ndarray:
    return (1 + np.where(np.abs(ahead) < EVEN, 0, np.sign(ahead))) / 2


def credit(near: np.ndarray) -> np.ndarray:
    """Of each row whether the diagonal is its largest; shared among as many as are as large."""
    level, own = near.max(axis=1) - EVEN, near.diagonal()
    return (own >= level) / (near >= level[:, None]).sum(axis=1)


def measured(near: Near, x: str, y: str) -> dict[str, float]:
    """Every measure of two languages, with X in the first one."""
    n = len(near[x][x])
    off, hidden = ~np.eye(n, dtype=bool), np.where(np.eye(n), np.inf, 0)
    within, across, own = near[x][x], near[x][y], near[x][y].diagonal()
    crowds = {
        z: np.sort(near[z][x] - (hidden if z == x else 0), axis=1)[:, -geometry.CROWD :].mean(
            axis=1
        )
        for z in (x, y)
    }
    to_a, to_b = 2 * within - crowds[x], 2 * across - crowds[y]
    mutual = np.maximum(across, across.T) - hidden
    a, b = -within[off].reshape(n, -1).mean(axis=1), -across.mean(axis=1)
    if np.allclose(within.diagonal(), 1):  # cosines
        a, b = 1 + a, 1 + b
    return {
        "LD": won(within - across)[off].mean(),
        "MD": won(own[:, None] - across)[off].mean(),
        "retrieval": credit(across).mean(),
        "LD by CSLS": won(to_a - to_b)[off].mean(),
        "MD by CSLS": won(to_b.diagonal()[:, None] - to_b)[off].mean(),
        "retrieval by CSLS": credit(to_b).mean(),
        "purity": won((within - hidden).max(axis=1) - (across - hidden).max(axis=1)).mean(),
        "MEXA": (own > mutual.max(axis=1) + EVEN).mean(),
        "cosine": own.mean(),
        "silhouette": ((b - a) / np.maximum(a, b)).mean(),
        "CKA": alike(within, near[y][y]),
        "RSA": np.corrcoef(within[off], near[y][y][off])[0, 1],
        "RSA by ranks": stats.spearmanr(*(near[z][z][off].round(9) for z in (x, y))).statistic,
    }


def alike(k: np.ndarray, l: np.ndarray) -> float:  # noqa: E741
    """Debiased CKA by the estimate of HSIC that Song et al. (2012) print."""

    n, (k, l) = len(k), (x - np.diag(x.diagonal()) for x in (k, l))  # noqa: E741

    def hsic(k: np.ndarray, l: np.ndarray) -> float:  # noqa: E741
        product = k.sum() * l.sum() / (n - 1) / (n - 2) - 2 / (n - 2) * (k.sum(0) * l.sum(1)).sum()
        return (k * l.T).sum() + product

    return hsic(k, l) / np.sqrt(hsic(k, k) * hsic(l, l))


def masked(near: Near, x: str, y: str, mask: np.ndarray) -> float:
    """MD where b of y may stand, or as often as it counts, beside a."""
    across = near[x][y]
    return np.average(
        won(across.diagonal()[:, None] - across), weights=mask * ~np.eye(len(mask), dtype=bool)
    )


def read(
    vectors: dict[str, np.ndarray], documents: np.ndarray, *, centred: bool
) -> dict[str, float]:
    """How often the readers are right: every fifth document is held out in turn."""
    fold, codes = documents % 5, np.arange(len(vectors))
    right: dict[str, list] = {"linear": [], "nearest": []}
    for held in (fold == k for k in range(5)):
        rows = np.stack([x - centred * x[~held].mean(axis=0) for x in vectors.values()])
        known, asked = (np.concatenate(rows[:, at]) for at in (~held, held))
        truth, answer = (codes.repeat(at.sum()) for at in (~held, held))
        scaler = StandardScaler().fit(known)
        ridge = Ridge(0.01 * len(known)).fit(scaler.transform(known), np.eye(len(codes))[truth])
        told = ridge.predict(scaler.transform(asked)).round(9).argmax(axis=1)
        right["linear"].append(told == answer)
        known, asked = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (known, asked))
        told = truth[(asked @ known.T).round(7).argmax(axis=1)]
        right["nearest"].append(told == answer)
    return {name: np.concatenate(of).mean() for name, of in right.items()}
