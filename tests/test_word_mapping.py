"""Maps of word vectors: planted rotations, VecMap's steps one by one, and retrieval."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xlx import word_mapping
from xlx.word_mapping import MappingError, fit, normalised, precision_at_1

DIM = 6
ALL = np.stack([np.arange(40), np.arange(40)], axis=1)


def random(n: int = 40, dim: int = DIM, seed: int = 0) -> np.ndarray:
    # Unequal variances and correlations, so that whitening has something to do.
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, dim)) @ rng.normal(size=(dim, dim))


def rotation(dim: int = DIM, seed: int = 5) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))[0]


# --- normalising ---


def test_normalising_steps_by_hand() -> None:
    vectors = np.array([[3.0, 4.0], [0.0, 2.0]])
    np.testing.assert_allclose(normalised(vectors, ["unit"]), [[0.6, 0.8], [0, 1]])
    np.testing.assert_allclose(normalised(vectors, ["center"]), [[1.5, 1], [-1.5, -1]])
    # (0.6, 0.8) and (0, 1) less their mean (0.3, 0.9), made unit again
    root = 10**-0.5
    expected = [[3 * root, -root], [-3 * root, root]]
    np.testing.assert_allclose(normalised(vectors), expected, rtol=1e-6)
    assert normalised(vectors, []).tolist() == vectors.tolist()
    assert vectors.tolist() == [[3, 4], [0, 2]]


def test_words_outside_the_vocabulary_are_normalised_as_it_was() -> None:
    vocabulary, seen = random(), [4, 17]
    np.testing.assert_allclose(
        normalised(vocabulary[seen], like=vocabulary), normalised(vocabulary)[seen], rtol=1e-6
    )
    assert not np.allclose(normalised(vocabulary[seen]), normalised(vocabulary)[seen])


def test_a_word_of_which_nothing_is_known_stays_zero() -> None:
    vectors = random()
    with_zero = np.vstack([vectors, np.zeros(DIM)])
    found = normalised(with_zero)
    assert not found[-1].any()
    np.testing.assert_allclose(found[:-1], normalised(vectors), rtol=1e-6)
    assert not normalised(np.zeros((1, DIM)), like=vectors).any()
    np.testing.assert_allclose(normalised(vectors, like=with_zero), normalised(vectors), rtol=1e-6)


def test_steps_that_there_are_not() -> None:
    with pytest.raises(MappingError, match=r"no step 'centre': choose among unit and center"):
        normalised(random(), ["centre"])
    with pytest.raises(MappingError, match=r"vectors have 6 numbers and the vocabulary's 3"):
        normalised(random(), like=random(dim=3))


# --- fitting ---


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 9))
def test_the_map_is_orthogonal_and_the_target_stays(seed: int, dim: int) -> None:
    found = fit(random(dim=dim, seed=seed), random(dim=dim, seed=seed + 1), ALL)
    np.testing.assert_allclose(found.source @ found.source.T, np.eye(dim), atol=1e-9)
    assert found.target.tolist() == np.eye(dim).tolist()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_a_planted_rotation_is_recovered(seed: int) -> None:
    source, turn = random(seed=seed), rotation(seed=seed + 1)
    target = (source @ turn)[::-1]
    # As many pairs as dimensions are enough; the rest of the words then fall into place.
    pairs = np.stack([np.arange(DIM), 39 - np.arange(DIM)], axis=1)
    found = fit(source, target, pairs)
    np.testing.assert_allclose(found.source, turn, atol=1e-5)
    np.testing.assert_allclose(
        found.apply_source(source), found.apply_target(target)[::-1], atol=1e-4
    )


def test_no_orthogonal_matrix_brings_the_pairs_nearer() -> None:
    source, target = random(seed=1), random(seed=2)
    found = fit(source, target, ALL)
    least = ((source @ found.source - target) ** 2).sum()
    for seed in range(200):
        other = found.source @ rotation(seed=seed)
        assert ((source @ other - target) ** 2).sum() >= least


def test_whitened_pairs_have_uncorrelated_numbers_of_equal_variance() -> None:
    source, target = random(seed=1), random(seed=2)
    found = fit(source, target, ALL, whiten=True)
    for mapped in (source @ found.source, target @ found.target):
        np.testing.assert_allclose(mapped.T @ mapped, np.eye(DIM), atol=1e-9)
    # what is left between them: each component with its own partner alone
    crossed = (source @ found.source).T @ (target @ found.target)
    np.testing.assert_allclose(crossed, np.diag(np.diag(crossed)), atol=1e-9)
    assert (np.diff(np.diag(crossed)) <= 1e-12).all()


def test_dewhitening_with_its_own_variances_undoes_whitening() -> None:
    source, target = random(seed=1), random(seed=2)
    found = fit(source, target, ALL, whiten=True, dewhiten=("source", "target"))
    for vectors, matrix in ((source, found.source), (target, found.target)):
        np.testing.assert_allclose(matrix @ matrix.T, np.eye(DIM), atol=1e-8)
        np.testing.assert_allclose(
            vectors @ matrix @ matrix.T @ vectors.T, vectors @ vectors.T, atol=1e-6
        )


def test_dewhitening_with_the_variances_of_the_other_side() -> None:
    source, target = random(seed=1), random(seed=2)
    found = fit(source, target, ALL, whiten=True, dewhiten=("target", "target"))
    ours, theirs = source @ found.source, target @ found.target
    np.testing.assert_allclose(ours.T @ ours, theirs.T @ theirs, atol=1e-8)


def test_a_planted_linear_map_is_recovered_with_whitening_and_not_without() -> None:
    source = random(seed=1)
    target = source @ random(DIM, seed=3)
    bent = fit(source, target, ALL, whiten=True, dewhiten=("target", "target"))
    np.testing.assert_allclose(source @ bent.source, target @ bent.target, atol=1e-6)
    stiff = fit(source, target, ALL)
    assert np.abs(source @ stiff.source - target).max() > 0.1


def steps_in_words(
    source: np.ndarray, target: np.ndarray, reweight: float, back: tuple[str, str], keep: int
) -> tuple[np.ndarray, np.ndarray]:
    """Steps 1 to 5 of Artetxe et al. (2018), section 3, on all words at once, by eigenvectors."""

    def power(matrix: np.ndarray, exponent: float) -> np.ndarray:
        values, vectors = np.linalg.eigh(matrix)
        return vectors @ np.diag(values**exponent) @ vectors.T

    square = {"source": source.T @ source, "target": target.T @ target}
    x, z = source @ power(square["source"], -0.5), target @ power(square["target"], -0.5)
    u, s, vt = np.linalg.svd(x.T @ z)
    turn = {"source": u, "target": vt.T}
    x, z = x @ u, z @ vt.T
    x, z = x * s**reweight, z * s**reweight
    x, z = (
        now @ turn[side].T @ power(square[side], 0.5) @ turn[side]
        for now, side in zip((x, z), back, strict=True)
    )
    return x[:, :keep], z[:, :keep]


@pytest.mark.parametrize("reweight", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("back", [("source", "target"), ("target", "source")])
def test_all_steps_against_the_formulas(reweight: float, back: tuple[str, str]) -> None:
    source, target = random(seed=1), random(seed=2)
    found = fit(source, target, ALL, whiten=True, reweight=reweight, dewhiten=back, keep=4)
    x, z = steps_in_words(source, target, reweight, back, 4)
    assert found.source.shape == found.target.shape == (DIM, 4)
    # The sign of a component is open, but the same on both sides.
    ours, theirs = source @ found.source, target @ found.target
    np.testing.assert_allclose(ours @ theirs.T, x @ z.T, atol=1e-7)
    np.testing.assert_allclose(ours @ ours.T, x @ x.T, atol=1e-7)
    np.testing.assert_allclose(theirs @ theirs.T, z @ z.T, atol=1e-7)


def test_only_the_pairs_count() -> None:
    source, target = random(seed=1), random(seed=2)
    pairs = np.array([[5, 7], [1, 0], [2, 2], [9, 30], [8, 8], [30, 3], [31, 4]])
    found = fit(source, target, pairs, whiten=True, reweight=0.5)
    source[39], target[39] = 100, 100
    again = fit(source, target, pairs, whiten=True, reweight=0.5)
    np.testing.assert_array_equal(found.source, again.source)
    np.testing.assert_array_equal(found.target, again.target)


@pytest.mark.parametrize(
    ("source", "target", "pairs", "options", "message"),
    [
        (random(), random(dim=3), ALL, {}, r"\(40, 6\) and the target's \(40, 3\)"),
        (random(), random(), ALL[:5], {}, r"5 pairs for vectors of 6 numbers: fewer pairs than"),
        (random(), random(9), ALL, {}, r"pair 9 is \[9, 9\].* 40 words .* and 9 of the target"),
        (random(), random(), ALL - 1, {}, r"pair 0 is \[-1, -1\]"),
        (random(), random(), ALL.ravel(), {}, r"pairs have shape \(80,\)"),
        (random() * np.nan, random(), ALL, {}, r"vector of the source in pair 0 holds NaN"),
        (random(), random(), ALL, {"keep": 7}, r"keep is 7: keep 1 to 6"),
        (random(), random(), ALL, {"keep": 0}, r"keep is 0"),
        (random(), random(), ALL, {"dewhiten": ("source", None)}, r"nothing to de-whiten"),
        (random(), random(), ALL, {"dewhiten": ("x", None), "whiten": True}, r"names 'x'"),
        (
            random(),
            random()[:, :1] * np.ones(DIM),
            ALL,
            {"whiten": True},
            r"target's .* span fewer",
        ),
    ],
)
def test_what_no_map_can_be_fitted_on(source, target, pairs, options, message) -> None:
    with pytest.raises(MappingError, match=message):
        fit(source, target, pairs, **options)


def test_vectors_of_another_width_are_not_mapped() -> None:
    found = fit(random(seed=1), random(seed=2), ALL)
    with pytest.raises(MappingError, match=r"shape \(2, 5\), and the map of the source takes 6"):
        found.apply_source(np.ones((2, 5)))
    with pytest.raises(MappingError, match=r"the map of the target takes 6"):
        found.apply_target(np.ones(6))


def test_a_mapped_lookup_gives_words_as_the_vocabulary_was_mapped() -> None:
    vocabulary = random()
    found = fit(normalised(vocabulary), normalised(random(seed=2)), ALL)
    words = [f"w{at}" for at in range(40)]

    def lookup(asked: list[str]) -> np.ndarray:
        zeros = np.zeros(DIM)
        return np.array([vocabulary[words.index(w)] if w in words else zeros for w in asked])

    rows = word_mapping.mapped(lookup, vocabulary, found.source)(["w7", "unknown", "w3"])
    whole = found.apply_source(normalised(vocabulary))
    np.testing.assert_allclose(rows[[0, 2]], whole[[7, 3]], atol=1e-6)
    assert not rows[1].any()


# --- retrieval ---


def nearest_in_words(source: np.ndarray, target: np.ndarray, csls: int) -> list[int]:
    """The word of the target that each word of the source finds, by a loop."""

    def cosine(a: np.ndarray, b: np.ndarray) -> float:
        return a @ b / np.sqrt((a @ a) * (b @ b))

    def score(x: np.ndarray, z: np.ndarray) -> float:
        if not csls:
            return cosine(x, z)
        near_x = sorted(cosine(x, other) for other in target)[-csls:]
        near_z = sorted(cosine(other, z) for other in source)[-csls:]
        return 2 * cosine(x, z) - np.mean(near_x) - np.mean(near_z)

    return [int(np.argmax([score(x, z) for z in target])) for x in source]


@pytest.mark.parametrize("csls", [0, 1, 3])
def test_precision_against_a_loop_over_all_words(csls: int, monkeypatch) -> None:
    monkeypatch.setattr(word_mapping, "BLOCK_NUMBERS", 60)
    source = random(30, seed=1)
    target = source[:25] + 0.7 * random(25, seed=2)
    pairs = np.stack([np.arange(25), np.arange(25)], axis=1)
    found = nearest_in_words(source, target, csls)
    expected = [found[x] == z for x, z in pairs]
    assert 0 < sum(expected) < 25
    assert precision_at_1(source, target, pairs, csls=csls).tolist() == expected


def test_any_of_the_translations_given_is_right() -> None:
    source = np.eye(3)
    target = np.eye(3)[[1, 0, 2]]
    pairs = np.array([[2, 0], [0, 0], [0, 1], [1, 1]])
    # word 0 finds 1, word 1 finds 0, word 2 finds 2
    assert precision_at_1(source, target, pairs).tolist() == [False, True, True, False]


def test_length_does_not_matter_to_retrieval() -> None:
    source, target = random(seed=1), random(seed=2)
    scale = np.random.default_rng(0).uniform(0.1, 9, (40, 1))
    found = precision_at_1(source, target, ALL, csls=2)
    assert precision_at_1(source * scale, target / scale, ALL, csls=2).tolist() == found.tolist()


def test_precision_that_cannot_be_taken() -> None:
    with pytest.raises(MappingError, match=r"shape \(40, 6\) and the target \(40, 3\)"):
        precision_at_1(random(), random(dim=3), ALL)
    with pytest.raises(MappingError, match=r"pair 20 is \[20, 20\]"):
        precision_at_1(random(), random(20), ALL)
    with pytest.raises(MappingError, match=r"csls is 41: take 0 or up to 40"):
        precision_at_1(random(), random(), ALL, csls=41)
