"""Measures of two spaces without each document; what they are: tests/experiment/test_limits.py."""

import numpy as np
import pytest

from xlx import measures
from xlx.measures import abx

NAMES = ("MEXA", "cosine", "silhouette", "purity", "CKA", "biased CKA", "RSA", "RSA by ranks")
MEASURES = [measures.registered()[name] for name in NAMES]
N = 24
DOCUMENTS = np.arange(N) // 3


def vectors(seed: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(N, 6)) + 1
    return {code: shared + rng.normal(size=(N, 6)) + k * 0.3 for k, code in enumerate("abc")}


def scores(states: dict[str, np.ndarray]) -> abx.PairScores:
    return abx.exact(states, measures=MEASURES, groups={"documents": DOCUMENTS[: len(states["a"])]})


@pytest.mark.parametrize("name", NAMES)
def test_what_is_left_without_a_document(name: str) -> None:
    """Of MEXA exactly; of the others candidates and centring stay, so nearly."""
    states = vectors()
    whole = scores(states)
    without = whole.left_out["documents"][name][0]
    again = np.stack(
        [
            scores({code: x[group != DOCUMENTS] for code, x in states.items()})
            .scores[name][0]
            .mean(axis=1)
            for group in range(DOCUMENTS.max() + 1)
        ],
        axis=1,
    )
    if name == "MEXA":
        np.testing.assert_allclose(without, again, atol=1e-12)
    change = whole.scores[name][0].mean(axis=1)[:, None]
    if name != "purity":  # few are near a change of their neighbour
        assert np.corrcoef((without - change).ravel(), (again - change).ravel())[0, 1] > 0.9


def test_debiased_cka_needs_four_sentences() -> None:
    with pytest.raises(ValueError, match="four sentences"):
        scores({code: x[:3] for code, x in vectors().items()})
