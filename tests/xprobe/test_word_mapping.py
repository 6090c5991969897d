"""Maps of word vectors: planted rotations, VecMap's normalising steps, and retrieval."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xprobe import word_spaces
from xprobe.word_spaces import normalised_words, orthogonal_map, precision_at_1

DIM = 6
ALL = np.stack([np.arange(40), np.arange(40)], axis=1)


def random(n: int = 40, dim: int = DIM, seed: int = 0) -> np.ndarray:
    # Unequal variances and correlations.
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, dim)) @ rng.normal(size=(dim, dim))


def rotation(dim: int = DIM, seed: int = 5) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(dim, dim)))[0]


# --- normalising ---


def test_normalising_steps_by_hand() -> None:
    vectors = np.array([[3.0, 4.0], [0.0, 2.0]])
    # (0.6, 0.8) and (0, 1) less their mean (0.3, 0.9), made unit again
    root = 10**-0.5
    expected = [[3 * root, -root], [-3 * root, root]]
    np.testing.assert_allclose(normalised_words(vectors), expected, rtol=1e-6)
    assert vectors.tolist() == [[3, 4], [0, 2]]


def test_words_outside_the_vocabulary_are_normalised_as_it_was() -> None:
    vocabulary, seen = random(), [4, 17]
    whole = normalised_words(vocabulary)
    found = normalised_words(vocabulary[seen], like=vocabulary)
    np.testing.assert_allclose(found, whole[seen], rtol=1e-6)
    assert not np.allclose(normalised_words(vocabulary[seen]), whole[seen])


def test_a_word_of_which_nothing_is_known_stays_zero() -> None:
    vectors = random()
    with_zero, plain = np.vstack([vectors, np.zeros(DIM)]), normalised_words(vectors)
    found = normalised_words(with_zero)
    assert not found[-1].any()
    np.testing.assert_allclose(found[:-1], plain, rtol=1e-6)
    assert not normalised_words(np.zeros((1, DIM)), like=vectors).any()
    np.testing.assert_allclose(normalised_words(vectors, like=with_zero), plain, rtol=1e-6)


# --- fitting ---


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 9))
def test_the_map_is_orthogonal(seed: int, dim: int) -> None:
    found = orthogonal_map(random(dim=dim, seed=seed), random(dim=dim, seed=seed + 1), ALL)
    np.testing.assert_allclose(found @ found.T, np.eye(dim), atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_a_planted_rotation_is_recovered(seed: int) -> None:
    source, turn = random(seed=seed), rotation(seed=seed + 1)
    target = (source @ turn)[::-1]
    # As many pairs as dimensions are enough; the rest of the words then fall into place.
    pairs = np.stack([np.arange(DIM), 39 - np.arange(DIM)], axis=1)
    found = orthogonal_map(source, target, pairs)
    np.testing.assert_allclose(found, turn, atol=1e-5)
    np.testing.assert_allclose(source @ found, target[::-1], atol=1e-4)


def test_no_orthogonal_matrix_brings_the_pairs_nearer() -> None:
    source, target = random(seed=1), random(seed=2)
    found = orthogonal_map(source, target, ALL)
    least = ((source @ found - target) ** 2).sum()
    for seed in range(200):
        assert ((source @ found @ rotation(seed=seed) - target) ** 2).sum() >= least


def test_only_the_pairs_count_and_they_have_to_be_enough() -> None:
    source, target = random(seed=1), random(seed=2)
    pairs = np.array([[5, 7], [1, 0], [2, 2], [9, 30], [8, 8], [30, 3], [31, 4]])
    before = orthogonal_map(source, target, pairs)
    source[39], target[39] = 100, 100
    np.testing.assert_array_equal(before, orthogonal_map(source, target, pairs))
    with pytest.raises(ValueError, match=r"5 pairs for vectors of 6 numbers"):
        orthogonal_map(source, target, pairs[:5])


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
    monkeypatch.setattr(word_spaces, "SIMILARITIES_AT_ONCE", 60)
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
