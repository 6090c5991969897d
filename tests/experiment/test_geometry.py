"""Measures of two spaces against slow definitions, without each document, and in planted worlds."""

import numpy as np
import pytest
from sklearn.metrics import silhouette_samples

from xlx import measures
from xlx.measures import abx, alignment, mexa

NAMES = ("MEXA", "cosine", "silhouette", "purity", "CKA", "RSA")
MEASURES = [measures.registered()[name] for name in NAMES]
N = 24
DOCUMENTS = np.arange(N) // 3


def vectors(seed: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(N, 6)) + 1
    return {code: shared + rng.normal(size=(N, 6)) + k * 0.3 for k, code in enumerate("abc")}


def scores(states: dict[str, np.ndarray]) -> abx.PairScores:
    return abx.exact(states, measures=MEASURES, groups={"documents": DOCUMENTS[: len(states["a"])]})


def test_each_is_its_definition() -> None:
    states = vectors()
    found = {name: array[0] for name, array in scores(states).scores.items()}
    unit = {code: x / np.linalg.norm(x, axis=1, keepdims=True) for code, x in states.items()}
    for place, (one, other) in enumerate((("a", "b"), ("a", "c"), ("b", "c"))):
        across = unit[one] @ unit[other].T
        own = np.diagonal(across)
        rivals = across - 9 * np.eye(N)
        hits = (own > rivals.max(axis=0)) & (own > rivals.max(axis=1))
        assert found["MEXA"][place] == pytest.approx([hits.mean()] * 2)
        assert found["cosine"][place] == pytest.approx([own.mean()] * 2, abs=1e-6)
        both, names = np.concatenate([unit[one], unit[other]]), np.repeat([0, 1], N)
        samples = silhouette_samples(both, names, metric="cosine").reshape(2, N)
        assert found["silhouette"][place] == pytest.approx(samples.mean(axis=1), abs=1e-5)
        for side, (x, y) in enumerate(((one, other), (other, one))):
            within, beside = (unit[x] @ unit[z].T - 9 * np.eye(N) for z in (x, y))
            nearer = within.max(axis=1) > beside.max(axis=1)
            assert found["purity"][place, side] == pytest.approx(nearer.mean())
        pair = unit[one], unit[other]
        assert found["CKA"][place] == pytest.approx(
            [alignment.cka(*pair, debiased=True)] * 2, abs=1e-5
        )
        assert found["RSA"][place] == pytest.approx([alignment.rsa(*pair)[1]] * 2, abs=1e-5)


def test_mexa_without_a_pivot_is_mexa_with_each() -> None:
    states = vectors(5)
    found = scores(states)
    for pivot in "ab":
        own = mexa.scores({code: x[None] for code, x in states.items()}, pivot)
        for code, mu in zip(own.languages, own.mu[0], strict=True):
            place = found.pairs.index(tuple(sorted((pivot, code))))
            assert found.scores["MEXA"][0, place].tolist() == [mu, mu]


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


def test_planted_worlds() -> None:
    rng = np.random.default_rng(0)
    meaning, place = rng.normal(size=(N, 8)), 20 * np.eye(8)
    alike = dict.fromkeys("ab", meaning)
    apart = {code: meaning + place[k] for k, code in enumerate("ab")}
    noise = {code: rng.normal(size=(N, 8)) for code in "ab"}
    means = {
        world: {name: array.mean() for name, array in scores(states).scores.items()}
        for world, states in (("alike", alike), ("apart", apart), ("noise", noise))
    }
    for name in ("MEXA", "cosine", "CKA", "RSA"):
        assert means["alike"][name] == pytest.approx(1, abs=1e-6)
    for name in ("cosine", "CKA", "RSA"):
        assert abs(means["noise"][name]) < 0.15
    assert means["apart"]["purity"] == 1
    assert means["apart"]["silhouette"] > 0.8 > 0.1 > abs(means["noise"]["silhouette"])
    assert means["alike"]["purity"] == pytest.approx(0.5)  # a tie with the translation of each
    with pytest.raises(ValueError, match="four sentences"):
        scores({code: x[:3] for code, x in noise.items()})
