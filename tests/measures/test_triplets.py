"""Algorithms 1 and 2: what A, B and X share, in every triplet drawn."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abx_1_validation import sample_control
from xlx.measures import abx, statistics
from xlx.measures.abx import sample_triplets


@settings(max_examples=25)
@given(st.sampled_from(["LD", "MD"]), st.integers(2, 30), st.integers(0, 10**6))
def test_every_triplet_obeys_the_algorithm(task: str, n: int, seed: int) -> None:
    t = sample_triplets(task, ("de", "fr"), n, 200, seed)
    assert len(t) == 200
    for positions in (t.x, t.a, t.b):
        assert positions.min() >= 0
        assert positions.max() < n
    if task == "LD":  # A, B translations; A, X one language; X means something else
        assert (t.a == t.b).all()
        assert (t.a_language == t.x_language).all()
        assert (t.a_language != t.b_language).all()
        assert (t.x != t.a).all()
    else:  # X, A translations; A, B one language; B means something else
        assert (t.x == t.a).all()
        assert (t.x_language != t.a_language).all()
        assert (t.a_language == t.b_language).all()
        assert (t.b != t.a).all()
    # both directions, half each
    assert (t.x_language == 0).sum() == 100


def test_the_draw_is_uniform_and_seeded() -> None:
    t = sample_triplets("MD", ("a", "b"), 5, 100_000, seed=9)
    counts = np.bincount(((t.x_language * 5) + t.x) * 5 + t.b, minlength=50)
    possible = counts[counts > 0]
    assert len(possible) == 2 * 5 * 4
    assert possible.std() < 4 * np.sqrt(100_000 / 40)
    again = sample_triplets("MD", ("a", "b"), 5, 100_000, seed=9)
    assert np.array_equal(t.b, again.b)
    assert not np.array_equal(t.b, sample_triplets("MD", ("a", "b"), 5, 100_000, seed=10).b)


@pytest.mark.parametrize("task", ["LD", "MD"])
def test_controls_hold_the_variable_constant_and_score_at_chance(task: str) -> None:
    rng = np.random.default_rng(0)
    # Strong form and strong meaning: only a fair construction comes out at one half.
    meaning = rng.normal(size=(50, 8))
    vectors = {code: meaning + 2 * rng.normal(size=8) + rng.normal(size=(50, 8)) for code in "abcd"}
    t = sample_control(task, "abcd", 50, 60_000, seed=3)
    if task == "LD":
        assert (t.x_language == t.a_language).all()
        assert (t.a_language == t.b_language).all()
        first, second, third = t.x, t.a, t.b
    else:
        assert (t.x == t.a).all()
        assert (t.a == t.b).all()
        first, second, third = t.x_language, t.a_language, t.b_language
    assert (first != second).all()
    assert (second != third).all()
    assert (first != third).all()
    scores = abx.score_triplets(vectors, t)
    low, high = statistics.share_interval(scores.sum(), len(scores), level=0.999)
    assert low < 0.5 < high
    real = abx.score_triplets(vectors, sample_triplets(task, ("a", "b"), 50, 20_000, seed=3)).mean()
    assert real > high  # the same vectors, the real task: the check can fail


@pytest.mark.parametrize(
    ("call", "arguments", "says"),
    [
        (sample_triplets, ("LD", ("a", "a"), 5, 10, 0), "two languages"),
        (sample_triplets, ("MD", ("a", "b"), 1, 10, 0), "another meaning"),
    ],
)
def test_bad_requests_are_named(call, arguments: tuple, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        call(*arguments)
