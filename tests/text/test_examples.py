"""Examples: of labelled parts, two sets as one."""

from dataclasses import replace

import numpy as np
import pytest

from tests.text.made import examples as some
from xlx.text.examples import class_counts
from xlx.text.files import TextError


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
    assert class_counts(one.relabelled(one.labels * 0)) == {"no": 4, "yes": 0}


def test_labels_out_of_the_classes_are_an_error() -> None:
    with pytest.raises(TextError, match=r"none of the 2 \(no, yes\)"):
        some(labels=np.array([0, 1, 2, 0]))
    with pytest.raises(TextError, match="unequal numbers"):
        some(labels=np.array([0, 1]))
