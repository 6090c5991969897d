"""Retrieval, CKA and RSA of the registry against their formulas, closed forms and literal loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cosine

from tests.measures.planted import alike
from tests.measures.test_discrimination import random_vectors
from xlx.measures import abx, alignment, registered

CKA = ["CKA", "biased CKA"]


def scored(first: np.ndarray, second: np.ndarray, *names: str) -> list[float]:
    measures = [registered()[name] for name in names]
    exact = abx.exact({"a": first, "b": second}, measures=measures)
    return [exact.scores[name].mean() for name in names]


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.array([[1 - cosine(x, y) for y in second.astype(float)] for x in first.astype(float)])


def turned(vectors: np.ndarray, seed: int = 0) -> np.ndarray:
    """Rotated, and mirrored or not."""
    dim = vectors.shape[1]
    turn, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))
    return vectors @ turn


@settings(max_examples=25)
@given(st.integers(4, 9), st.integers(2, 12), st.integers(0, 10**6))
def test_cka_is_its_formula(n: int, dim: int, seed: int) -> None:
    first, second = random_vectors(n, dim, seed, "ab").values()
    x, y = first - first.mean(axis=0), second - second.mean(axis=0)
    features = np.linalg.norm(y.T @ x) ** 2 / np.linalg.norm(x.T @ x) / np.linalg.norm(y.T @ y)
    debiased, biased = scored(first, second, *CKA)
    assert biased == pytest.approx(features, rel=1e-4)
    within = cosines(first, first), cosines(second, second)
    assert debiased == pytest.approx(alike(*within), rel=1e-3, abs=1e-4)


def test_what_does_not_vary_has_no_correlation() -> None:
    first, second = random_vectors(30, 8, 2, "ab").values()
    same = np.repeat(first[:1], 30, axis=0)
    assert np.isnan(scored(same, second, *CKA, "RSA", "RSA by ranks")).all()


def test_crowded_cosines_keep_their_digits() -> None:
    first, second = random_vectors(60, 16, 4, "ab").values()
    far = [(vectors + 3000).astype(np.float32) for vectors in (first, second)]
    exact = [vectors.astype(np.longdouble) for vectors in far]
    units = [v / np.sqrt((v * v).sum(axis=1))[:, None] for v in exact]
    across = units[0] @ units[1].T
    assert across.min() > 0.99999
    upper = np.triu_indices(60, 1)
    centred = [(c := (unit @ unit.T)[upper] - 1) - c.mean() for unit in units]
    a, b = centred
    pearson = float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))
    found = scored(*far, "RSA", "retrieval", "biased CKA")
    expected = np.mean([(across.argmax(axis=axis) == np.arange(60)).mean() for axis in (1, 0)])
    # CKA does not depend on what all vectors have in common, beyond what float32 lost of them
    assert found[:2] == pytest.approx([pearson, expected], rel=1e-4)
    assert found[2] == pytest.approx(*scored(first, second, "biased CKA"), abs=1e-3)


@pytest.mark.parametrize("scale", [1e-2, 1.0, 60.0, 300.0])
def test_centring_is_of_directions_in_any_arithmetic(scale: float) -> None:
    vectors = random_vectors(12, 16, 3, "ab")
    small = {code: (scale * v).astype(np.float16) for code, v in vectors.items()}
    for code, moved in alignment.centred(small).items():
        exact = small[code].astype(float)
        np.testing.assert_allclose(moved, exact - exact.mean(axis=0))
