"""How far apart languages and meanings lie: against scikit-learn and sums written out."""

import numpy as np
import pytest
from sklearn.metrics import silhouette_samples

import abx_2_dynamics

L, N, DIM = 4, 15, 6


@pytest.fixture
def points() -> np.ndarray:
    """A bit of language, a bit of meaning, and noise."""
    rng = np.random.default_rng(0)
    language, meaning = rng.normal(size=(L, 1, DIM)), rng.normal(size=(1, N, DIM))
    return 0.5 * language + 0.5 * meaning + rng.normal(size=(L, N, DIM))


def labels(kind: str, n: int = N) -> np.ndarray:
    return np.repeat(np.arange(L), n) if kind == "language" else np.tile(np.arange(n), L)


@pytest.mark.parametrize("kind", abx_2_dynamics.SORTINGS)
def test_silhouettes_equal_scikit_learn(points: np.ndarray, kind: str) -> None:
    expected = silhouette_samples(points.reshape(-1, DIM), labels(kind), metric="cosine")
    np.testing.assert_allclose(
        abx_2_dynamics.silhouettes(points, kind).ravel(), expected, atol=1e-12
    )


def test_variance_shares_are_what_was_put_in() -> None:
    rng = np.random.default_rng(1)
    language, meaning = 2 * rng.normal(size=(40, 1, 8)), rng.normal(size=(1, 400, 8))
    parts = [language, meaning, rng.normal(size=(40, 400, 8))]
    shares = abx_2_dynamics.variance_shares(sum(parts))
    total = sum(part.var(axis=(0, 1)).sum() for part in parts)
    assert shares["language"] == pytest.approx(language.var(axis=0).sum() / total, abs=0.01)
    assert shares["meaning"] == pytest.approx(meaning.var(axis=1).sum() / total, abs=0.01)
    noise = abx_2_dynamics.variance_shares(rng.normal(size=(6, 50, 8)))
    assert max(map(abs, noise.values())) < 0.02


def test_a_space_can_discriminate_without_being_divided() -> None:
    """The case that the measures are for: a small shift of each language, the same everywhere."""
    rng = np.random.default_rng(2)
    meaning = rng.normal(size=(1, 60, 8)) * [1] * 8
    shift = np.zeros((3, 1, 8))
    shift[1, 0, 0], shift[2, 0, 1] = 0.3, 0.3
    shares = abx_2_dynamics.variance_shares(meaning + shift)
    assert shares["language"] < 0.05 < 0.9 < shares["meaning"]


def test_kinds_are_two(points: np.ndarray) -> None:
    with pytest.raises(ValueError, match="no kind 'script'"):
        abx_2_dynamics.silhouettes(points, "script")
