"""Examples: of labelled parts, corrupted labels, two sets as one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.made import examples as some
from tests.text.made import pairs
from xlx.text import examples
from xlx.text.files import TextError


@given(st.integers(0, 60), st.floats(0, 1), st.integers(2, 4), st.integers(0, 5))
def test_no_more_is_corrupted_than_asked_for(n: int, ratio: float, k: int, seed: int) -> None:
    labels = np.arange(n) % k
    found = examples.corrupted(labels, ratio, k, seed)
    assert (found != labels).sum() <= round(ratio * n)
    assert set(found.tolist()) <= set(range(k))
    assert (labels == np.arange(n) % k).all()  # the argument is left alone


def test_what_is_corrupted_stays_so_at_higher_ratios() -> None:
    labels = np.arange(300) % 3
    before = examples.corrupted(labels, 0, 3, 7)
    assert (before == labels).all()
    for ratio in np.linspace(0, 1, 11):
        found = examples.corrupted(labels, ratio, 3, 7)
        changed = before != labels
        assert (found[changed] == before[changed]).all()
        before = found
    # At ratio 1 every label is a draw among three, and a third of them is the old one.
    assert abs((before == labels).mean() - 1 / 3) < 4 * np.sqrt(2 / 9 / 300)
    for ratio in (-0.1, 1.1):
        with pytest.raises(TextError, match=r"ratio .* between 0 and 1"):
            examples.corrupted(labels, ratio, 3, 1)


def test_the_hash_tells_texts_sides_and_labels_apart() -> None:
    one = some(first=("a", "b", "c", "d"))
    others = [
        some(first=("a", "b", "c", "e")),
        one.relabelled(1 - one.labels),
        replace(one, second=("", "", "", "x")),
        one.at([1, 0, 2, 3]),
    ]
    hashes = [x.text_hash() for x in (one, *others)]
    assert len(set(hashes)) == len(hashes)
    assert one.text_hash() == replace(one, name="other").text_hash()


def test_labels_out_of_the_classes_are_an_error() -> None:
    with pytest.raises(TextError, match=r"none of the 2 \(no, yes\)"):
        some(labels=np.array([0, 1, 2, 0]))
    with pytest.raises(TextError, match="unequal numbers"):
        some(labels=np.array([0, 1]))


def test_two_sets_are_joined() -> None:
    both = examples.joined(pairs(), pairs(ids=tuple("abcd"), name="more"))
    assert (len(both), both.ids[4], both.name) == (8, "2:a", "made en test and more")
    assert both.second == 2 * pairs().second
    for more, says in ((pairs("de"), "differ in language"), (some(), "not both of pairs")):
        with pytest.raises(TextError, match=says):
            examples.joined(pairs(), more)
