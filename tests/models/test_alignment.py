"""Measures of alignment against their formulas, closed forms and literal loops."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import cosine, euclidean

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
def test_mean_cosines_are_those_of_the_matrix(n: int, dim: int, seed: int) -> None:
    pair = translations(n, dim, seed)
    c = cosines(*pair)
    parallel, other = alignment.mean_cosines(*pair)
    assert parallel == pytest.approx(np.diag(c).mean())
    assert other == pytest.approx(c[~np.eye(n, dtype=bool)].mean())


@settings(max_examples=25)
@given(st.integers(2, 8), st.integers(2, 5), st.integers(0, 10**6))
def test_retrieval_is_the_nearest_in_each_direction(n: int, dim: int, seed: int) -> None:
    pair = translations(n, dim, seed)
    c = cosines(*pair)
    expected = [(c.argmax(axis=axis) == np.arange(n)).mean() for axis in (1, 0)]
    assert alignment.retrieval(*pair) == tuple(map(pytest.approx, expected))
    table = abx.exact({"a": pair[0], "b": pair[1]}).table().query("task == 'retrieval'")
    assert table["score"].tolist() == list(map(pytest.approx, expected))


def test_retrieval_shares_ties() -> None:
    first = np.eye(3)
    second = np.array([[1.0, 0, 0], [1.0, 0, 0], [0, 0, 1.0]])
    assert alignment.retrieval(first, second) == (pytest.approx((0.5 + 1 / 3 + 1) / 3), 2 / 3)


@settings(max_examples=25)
@given(st.integers(2, 8), st.integers(1, 10), st.integers(0, 10**6))
def test_margin_is_the_ratio_of_artetxe_and_schwenk(n: int, k: int, seed: int) -> None:
    pair = tuple(vectors + 4 for vectors in translations(n, 4, seed))
    c = cosines(*pair)
    near = min(k, n)
    ratio = np.empty((n, n))
    for i, j in itertools.product(range(n), repeat=2):
        own = sum(sorted(c[i])[-near:]) / (2 * near)
        other = sum(sorted(c[:, j])[-near:]) / (2 * near)
        ratio[i, j] = c[i, j] / (own + other)
    found = alignment.margin(*pair, neighbours=k)
    assert found[0] == pytest.approx(np.diag(ratio).mean())
    for value, axis in zip(found[1:], (1, 0), strict=True):
        assert value == pytest.approx((ratio.argmax(axis=axis) == np.arange(n)).mean())


def test_margin_takes_out_hubs() -> None:
    first, second = (vectors + 3 for vectors in translations(40, 12, 0))
    mean = second.mean(axis=0)
    second[:3] = mean + 0.3 * (second[:3] - mean)
    to_second, _ = alignment.retrieval(first, second)
    _, by_margin, _ = alignment.margin(first, second)
    assert by_margin > to_second


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


def test_the_literal_hsic_is_the_mean_over_all_quadruples() -> None:
    first, second = (vectors.astype(float) for vectors in translations(6, 3, 1))
    k, l = first @ first.T, second @ second.T  # noqa: E741
    terms = [
        k[i, j] * (l[i, j] + l[q, r] - 2 * l[i, q])
        for i, j, q, r in itertools.permutations(range(6), 4)
    ]
    assert hsic_unbiased(k, l) == pytest.approx(np.mean(terms))


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


def test_only_debiased_cka_of_unrelated_vectors_is_about_zero() -> None:
    rng = np.random.default_rng(0)
    pairs = [rng.normal(size=(2, 30, 200)) for _ in range(50)]
    biased = np.mean([alignment.cka(*pair) for pair in pairs])
    debiased = np.array([alignment.cka(*pair, debiased=True) for pair in pairs])
    assert biased > 0.8
    assert abs(debiased.mean()) < 3 * debiased.std() / np.sqrt(50)
    assert abs(debiased).max() < 0.2


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


def test_rsa_ranks_equal_cosines_alike_whatever_their_rounding() -> None:
    """Few vectors that many sentences share: their cosines differ by the order of a sum alone."""
    rng = np.random.default_rng(4)
    kinds = rng.standard_normal((2, 4, 48))
    drawn = rng.integers(0, 4, size=(2, 40))
    first, second = (of[which] for of, which in zip(kinds, drawn, strict=True))
    exact = [
        (of @ of.T / np.outer(*[np.linalg.norm(of, axis=1)] * 2)).round(9)[which][:, which]
        for of, which in zip(kinds, drawn, strict=True)
    ]
    upper = np.triu_indices(40, 1)
    expected = stats.spearmanr(exact[0][upper], exact[1][upper]).statistic
    for seed in range(3):
        noise = 1 + np.random.default_rng(seed).uniform(-1e-15, 1e-15, (2, *first.shape))
        value, _ = alignment.rsa(first * noise[0], second * noise[1])
        assert value == pytest.approx(expected, abs=1e-9)


def test_rsa_closed_forms_and_invariances() -> None:
    first, second = translations(20, 6, 3)
    value = alignment.rsa(first, second)
    assert alignment.rsa(first, first) == pytest.approx((1, 1))
    for one, other in ((second, first), (turned(first), second[:, ::-1]), (3 * first, second)):
        assert alignment.rsa(one, other) == pytest.approx(value, abs=1e-5)
    assert np.isnan(alignment.rsa(first, np.ones((20, 6)))).all()


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


# --- the table ------------------------------------------------------------------------------------


def test_table_of_all_measures() -> None:
    rng = np.random.default_rng(5)
    states = {code: rng.normal(1, 1, size=(2, 12, 5)) for code in ("de", "en", "fi")}
    table = alignment.measures(states).set_index(["language", "layer", "measure"])
    assert len(table) == 2 * 2 * 11
    assert table.index.is_unique
    pair = states["fi"][1], states["en"][1]
    row = table.sort_index().loc[("fi", 1), "value"]
    expected = {
        "parallel_cosine": alignment.mean_cosines(*pair)[0],
        "other_cosine": alignment.mean_cosines(*pair)[1],
        "to_pivot": alignment.retrieval(*pair)[0],
        "from_pivot": alignment.retrieval(*pair)[1],
        "margin": alignment.margin(*pair)[0],
        "margin_to_pivot": alignment.margin(*pair)[1],
        "margin_from_pivot": alignment.margin(*pair)[2],
        "cka": alignment.cka(*pair),
        "debiased_cka": alignment.cka(*pair, debiased=True),
        "rsa_spearman": alignment.rsa(*pair)[0],
        "rsa_pearson": alignment.rsa(*pair)[1],
    }
    assert row.to_dict() == {name: pytest.approx(value) for name, value in expected.items()}
    assert set(alignment.measures(states, layers=[1])["layer"]) == {1}


def test_states_without_variation_have_no_cka_and_rsa() -> None:
    states = {"en": np.random.default_rng(0).normal(size=(1, 6, 4)), "fi": np.ones((1, 6, 4))}
    values = alignment.measures(states).set_index("measure")["value"]
    assert values[["cka", "debiased_cka", "rsa_spearman", "rsa_pearson"]].isna().all()
    assert values["to_pivot"] == pytest.approx(1 / 6)


# --- all directions -------------------------------------------------------------------------------


@settings(max_examples=25)
@given(st.integers(2, 8), st.integers(2, 5), st.integers(0, 10**6))
def test_distances_are_the_means_over_translations(n: int, dim: int, seed: int) -> None:
    first, second = translations(n, dim, seed)
    pairs = [(x.astype(float), y.astype(float)) for x, y in zip(first, second, strict=True)]
    expected = (
        np.mean([euclidean(x, y) for x, y in pairs]),
        np.mean([sum(a * b for a, b in zip(x, y, strict=True)) for x, y in pairs]),
        np.mean([1 - cosine(x, y) for x, y in pairs]),
    )
    assert alignment.mean_distances(first, second) == pytest.approx(expected)


def test_distances_closed_forms() -> None:
    assert alignment.mean_distances(np.eye(3), np.eye(3)) == pytest.approx((0, 1, 1))
    assert alignment.mean_distances(np.eye(3), -2 * np.eye(3)) == pytest.approx((3, -2, -1))
    assert alignment.mean_distances(np.eye(2), np.eye(2)[::-1]) == pytest.approx((np.sqrt(2), 0, 0))


def layered(n_layers: int = 4, n: int = 12) -> dict[str, np.ndarray]:
    """Three languages, aligned at layer 2 only."""
    rng = np.random.default_rng(5)
    shared = rng.normal(size=(n, 6))
    states = {code: rng.normal(size=(n_layers, n, 6)) for code in ("en", "fi", "sw")}
    for array in states.values():
        array[2] = shared + 0.05 * rng.normal(size=(n, 6))
    return states


def test_directions_are_those_of_each_ordered_pair() -> None:
    states = layered()
    table = alignment.directions(states, layers=[1, 2])
    assert len(table) == 4 * 6 * 2
    assert not table.duplicated(["metric", "source", "target", "layer"]).any()
    for row in table.itertuples():
        pair = states[row.source][row.layer], states[row.target][row.layer]
        expected = {
            **dict(zip(("L2", "dot", "cosine"), alignment.mean_distances(*pair), strict=True)),
            "retrieval": alignment.retrieval(*pair)[0],
        }
        assert row.value == pytest.approx(expected[row.metric])
    at_two = table[(table["metric"] == "retrieval") & (table["layer"] == 2)]
    assert (at_two["value"] == 1).all()


def test_best_aligned_layer_is_the_one_of_best_retrieval_and_of_equals_the_lower() -> None:
    states = layered()
    assert alignment.best_aligned_layer(states) == 2
    table = alignment.directions(states).query("metric == 'retrieval' and layer in [0, 1, 3]")
    assert alignment.best_aligned_layer(states, layers=[3, 1, 0]) == (
        table.groupby("layer")["value"].mean().idxmax()
    )
    for array in states.values():
        array[1] = 3 * array[2]
    assert alignment.best_aligned_layer(states) == 1
    assert alignment.best_aligned_layer(states, layers=[3, 2]) == 2


# --- what is refused ------------------------------------------------------------------------------


PAIR = translations(5, 4, 0)
SHORT = {code: np.random.default_rng(0).normal(size=(1, 3, 4)) for code in ("en", "fi")}
LAYERED = layered()


def spoiled(states: dict[str, np.ndarray], value: float) -> dict[str, np.ndarray]:
    """The last sentence but one of the last language's last layer is of this value."""
    states = {code: array.copy() for code, array in states.items()}
    states[list(states)[-1]][-1, -2] = value
    return states


NO_NUMBER, ZERO = spoiled(SHORT, np.nan), spoiled(LAYERED, 0)
UNLIKE = {"en": LAYERED["en"][:3], "fi": LAYERED["fi"]}


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: alignment.margin(*PAIR, neighbours=0), "one neighbour"),
        (lambda: alignment.cka(PAIR[0], PAIR[1][:4]), "5 sentences against 4"),
        (lambda: alignment.cka(*(x[:3] for x in PAIR), debiased=True), "four sentences"),
        (lambda: alignment.rsa(PAIR[0], PAIR[1][:4]), "have shape"),
        (lambda: alignment.measures(SHORT), "fi with en, layer 0: debiased CKA needs four"),
        (lambda: alignment.measures(SHORT, "sw"), "pivot sw"),
        (lambda: alignment.measures(NO_NUMBER), "layer 0: the vector of fi at position 1 holds"),
        (lambda: alignment.directions(UNLIKE), "fi has 4 layers and the pivot en 3"),
        (lambda: alignment.directions({"en": LAYERED["en"]}), "two languages, .* have 1: en"),
        (lambda: alignment.best_aligned_layer({}), "states have 0: none"),
        (lambda: alignment.best_aligned_layer(LAYERED, layers=[4]), "no layer 4"),
        (lambda: alignment.directions(ZERO), "layer 3: the vector of sw at position 10 is zero"),
        (lambda: alignment.best_aligned_layer(ZERO), "layer 3: the vector of sw at position 10"),
    ],
)
def test_what_cannot_be_compared_is_named(call, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call()
