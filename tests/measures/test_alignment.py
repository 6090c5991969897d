"""Measures of alignment against their formulas, closed forms and literal loops."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import cosine

from xlx.measures import abx, alignment


def translations(n: int, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    meaning = rng.normal(size=(n, dim))
    first, second = (
        (meaning + rng.normal(size=dim) + rng.normal(size=(n, dim))).astype(np.float32)
        for _ in range(2)
    )
    return first, second


def cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.array([[1 - cosine(x, y) for y in second.astype(float)] for x in first.astype(float)])


def turned(vectors: np.ndarray, seed: int = 0) -> np.ndarray:
    """Rotated, and mirrored or not."""
    dim = vectors.shape[1]
    turn, _ = np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))
    return vectors @ turn


# --- cosines, retrieval, margin -------------------------------------------------------------------


@settings(max_examples=25)
@given(st.integers(2, 8), st.integers(2, 5), st.integers(0, 10**6))
def test_retrieval_is_the_nearest_in_each_direction(n: int, dim: int, seed: int) -> None:
    pair = translations(n, dim, seed)
    c = cosines(*pair)
    expected = [(c.argmax(axis=axis) == np.arange(n)).mean() for axis in (1, 0)]
    assert alignment.retrieval(*pair) == tuple(map(pytest.approx, expected))
    table = abx.exact({"a": pair[0], "b": pair[1]}).table().query("task == 'retrieval'")
    assert table["score"].tolist() == list(map(pytest.approx, expected))


@settings(max_examples=25)
@given(st.integers(2, 8), st.integers(0, 10**6))
def test_margin_is_the_ratio_of_artetxe_and_schwenk(n: int, seed: int) -> None:
    pair = tuple(vectors + 4 for vectors in translations(n, 4, seed))
    c = cosines(*pair)
    near = min(4, n)
    ratio = np.empty((n, n))
    for i, j in itertools.product(range(n), repeat=2):
        own = sum(sorted(c[i])[-near:]) / (2 * near)
        other = sum(sorted(c[:, j])[-near:]) / (2 * near)
        ratio[i, j] = c[i, j] / (own + other)
    found = alignment.margin(*pair)
    assert found[0] == pytest.approx(np.diag(ratio).mean())
    for value, axis in zip(found[1:], (1, 0), strict=True):
        assert value == pytest.approx((ratio.argmax(axis=axis) == np.arange(n)).mean())


# --- CKA ------------------------------------------------------------------------------------------


def hsic_unbiased(k: np.ndarray, l: np.ndarray) -> float:  # noqa: E741
    """Equation 5 of Song et al. (2012), as printed."""
    n = len(k)
    k, l = k - np.diag(np.diag(k)), l - np.diag(np.diag(l))  # noqa: E741
    one = np.ones(n)
    return (
        np.trace(k @ l)
        + (one @ k @ one) * (one @ l @ one) / ((n - 1) * (n - 2))
        - 2 / (n - 2) * (one @ k @ l @ one)
    ) / (n * (n - 3))


@settings(max_examples=25)
@given(st.integers(4, 9), st.integers(2, 12), st.integers(0, 10**6))
def test_cka_is_its_formula(n: int, dim: int, seed: int) -> None:
    first, second = (vectors.astype(float) for vectors in translations(n, dim, seed))
    x, y = first - first.mean(axis=0), second - second.mean(axis=0)
    features = np.linalg.norm(y.T @ x) ** 2 / np.linalg.norm(x.T @ x) / np.linalg.norm(y.T @ y)
    assert alignment.cka(first, second) == pytest.approx(features, rel=1e-9)
    k, l = first @ first.T, second @ second.T  # noqa: E741
    expected = hsic_unbiased(k, l) / np.sqrt(hsic_unbiased(k, k) * hsic_unbiased(l, l))
    assert alignment.cka(first, second, debiased=True) == pytest.approx(
        expected, rel=1e-6, abs=1e-9
    )


@pytest.mark.parametrize("debiased", [False, True])
def test_cka_closed_forms_and_invariances(debiased: bool) -> None:
    first, second = translations(30, 8, 2)
    value = alignment.cka(first, second, debiased=debiased)
    assert 0.1 < value < 0.99
    assert alignment.cka(first, first, debiased=debiased) == pytest.approx(1)
    for one, other in (
        (second, first),
        (turned(first), turned(second, 1)),
        (first + 100, 7 * second),
        (first[::-1], second[::-1]),
        (np.pad(first, ((0, 0), (0, 3))), second),
    ):
        assert alignment.cka(one, other, debiased=debiased) == pytest.approx(value, rel=1e-4)
    squeezed = first * np.geomspace(1, 100, 8)  # no rotation: it does matter
    assert alignment.cka(squeezed, second, debiased=debiased) != pytest.approx(value, rel=0.05)
    assert np.isnan(alignment.cka(np.ones((30, 8)), second, debiased=debiased))


# --- RSA ------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.integers(3, 9), st.integers(2, 5), st.integers(0, 10**6))
def test_rsa_is_its_formula(n: int, dim: int, seed: int) -> None:
    first, second = translations(n, dim, seed)
    pairs = list(itertools.combinations(range(n), 2))
    one, other = ([cosines(v, v)[pair] for pair in pairs] for v in (first, second))
    spearman, pearson = alignment.rsa(first, second)
    assert pearson == pytest.approx(stats.pearsonr(one, other).statistic, rel=1e-6, abs=1e-9)
    assert spearman == pytest.approx(stats.spearmanr(one, other).statistic)


def test_crowded_cosines_keep_their_digits() -> None:
    first, second = translations(60, 16, 4)
    far = [(vectors + 3000).astype(np.float32) for vectors in (first, second)]
    exact = [vectors.astype(np.longdouble) for vectors in far]
    units = [v / np.sqrt((v * v).sum(axis=1))[:, None] for v in exact]
    assert (units[0] @ units[1].T).min() > 0.99999
    upper = np.triu_indices(60, 1)
    one, other = ((unit @ unit.T)[upper] - 1 for unit in units)
    centred = [c - c.mean() for c in (one, other)]
    a, b = centred
    pearson = float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))
    assert alignment.rsa(*far)[1] == pytest.approx(pearson, rel=1e-6)
    across = units[0] @ units[1].T
    expected = tuple((across.argmax(axis=axis) == np.arange(60)).mean() for axis in (1, 0))
    assert alignment.retrieval(*far) == tuple(map(pytest.approx, expected))
    # CKA does not depend on what all vectors have in common, beyond what float32 lost of them
    assert alignment.cka(*far) == pytest.approx(alignment.cka(first, second), abs=1e-3)


PAIR = translations(5, 4, 0)
SHORT = {code: np.random.default_rng(0).normal(size=(1, 3, 4)) for code in ("en", "fi")}
NO_NUMBER = {code: array.copy() for code, array in SHORT.items()}
NO_NUMBER["fi"][-1, -2] = np.nan


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: alignment.cka(PAIR[0], PAIR[1][:4]), "5 sentences against 4"),
        (lambda: alignment.cka(*(x[:3] for x in PAIR), debiased=True), "four sentences"),
        (lambda: alignment.measures(NO_NUMBER), "layer 0: the vector of fi at position 1 holds"),
    ],
)
def test_what_cannot_be_compared_is_named(call, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()
