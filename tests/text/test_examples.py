"""Examples: of labelled parts, random and corrupted labels, words out of order, one part alone."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.text.made import examples as some
from tests.text.made import pairs
from xlx.text import examples
from xlx.text.examples import Examples, crossed
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


LONG = tuple(" ".join(f"w{i}.{k}" for k in range(12)) for i in range(4))


@pytest.mark.parametrize("parts", [["first"], ["second"], ["second", "first"]])
def test_shuffling_touches_the_named_part_alone_and_keeps_its_words(parts: list) -> None:
    whole = pairs(first=LONG, ids=tuple("abcd"))
    whole = replace(whole, second=tuple(text.upper() for text in LONG))
    found = whole.shuffled(3, parts=parts)
    for part in ("first", "second"):
        before, after = getattr(whole, part), getattr(found, part)
        if part in parts:
            assert all(x != y for x, y in zip(before, after, strict=True))
            assert [Counter(x.split()) for x in before] == [Counter(x.split()) for x in after]
        else:
            assert before == after
    assert found.ids == whole.ids
    assert (found.labels == whole.labels).all()
    assert (found.language, found.classes) == (whole.language, whole.classes)
    assert found.name == f"made en test, {' and '.join(sorted(parts))} shuffled"


@given(st.lists(st.text(max_size=30), min_size=1, max_size=6), st.integers(0, 9))
def test_shuffling_keeps_the_multiset_of_words(texts: list[str], seed: int) -> None:
    ids = tuple(map(str, range(len(texts))))
    made = Examples(
        "made", "en", tuple(texts), tuple(texts), np.zeros(len(texts), int), ("a",), ids
    )
    found = made.shuffled(seed)
    for side in (found.first, found.second):
        assert [sorted(x.split()) for x in side] == [sorted(x.split()) for x in texts]
    for language in ("zh", "ja", "th"):
        found = replace(made, language=language).shuffled(seed)
        assert [sorted(x) for x in found.first] == [sorted(x) for x in texts]


def test_an_order_depends_on_the_seed_and_the_place_alone() -> None:
    one = pairs(first=LONG)
    found = one.shuffled(3)
    assert found.first == one.shuffled(3).first
    assert all(x != y for x, y in zip(found.first, one.shuffled(4).first, strict=True))
    # another text before it changes nothing, nor does leaving the other part alone
    changed = replace(one, first=("of another length", *LONG[1:]))
    assert changed.shuffled(3).first[1:] == found.first[1:]
    assert one.shuffled(3, parts=["first"]).first == found.first
    # the same text in both parts is not put in the same order
    twice = replace(one, second=LONG).shuffled(3)
    assert all(x != y for x, y in zip(twice.first, twice.second, strict=True))


def test_languages_without_spaces_are_shuffled_by_characters() -> None:
    text = "今天天气很好我们去公园散步吧"
    made = some("zh", first=(text,) * 4)
    (found,) = set(made.shuffled(0).first)
    assert found != text
    assert sorted(found) == sorted(text)
    # of a mixed pair each part is of its own language
    mixed = pairs("en-zh", first=LONG)
    mixed = replace(mixed, second=(text,) * 4).shuffled(0)
    assert sorted(mixed.first[0].split()) == sorted(LONG[0].split())
    assert set(mixed.second) != {text}
    assert sorted(mixed.second[0]) == sorted(text)
    # to a language with spaces it is one word
    assert replace(made, language="ko").shuffled(0).first == made.first


def test_marks_of_thai_stay_with_their_characters() -> None:
    text = "ที่นี่มีน้ำ"
    (found,) = set(some("th", first=(text,) * 4).shuffled(2).first)
    assert found != text
    assert all(unit in found for unit in ("ที่", "นี่", "มี", "น้"))


@pytest.mark.parametrize(
    ("made", "parts", "message"),
    [
        (some(), ["second"], "made en: these are single sentences, without a second part"),
        (pairs(), ["premise"], "parts of an example are first and second; given: 'premise'"),
        (pairs(), [], "given: none"),
        (some(), ["first", "third"], "given: 'third'"),
    ],
)
def test_parts_that_there_are_not_are_not_shuffled(made, parts: list, message: str) -> None:
    with pytest.raises(TextError, match=message):
        made.shuffled(0, parts=parts)
    if len(parts) == 1:
        with pytest.raises(TextError, match=message):
            examples.only(made, *parts)


def test_one_part_alone_is_a_sentence() -> None:
    mixed = crossed(pairs(), pairs("de", "made de test"))
    found = examples.only(mixed, "second")
    assert found.first == mixed.second
    assert found.second is None
    assert (found.language, found.name) == ("de", "made en-de test, second only")
    assert found.ids == mixed.ids
    assert (found.labels == mixed.labels).all()
    assert examples.only(mixed, "first").first == mixed.first
    assert examples.only(mixed, "first").language == "en"
    assert examples.only(pairs(), "second").language == "en"
    assert examples.only(some(), "first").first == some().first


def test_two_sets_are_joined() -> None:
    both = examples.joined(pairs(), pairs(ids=tuple("abcd"), name="more"))
    assert (len(both), both.ids[4], both.name) == (8, "2:a", "made en test and more")
    assert both.second == 2 * pairs().second
    for more, says in ((pairs("de"), "differ in language"), (some(), "not both of pairs")):
        with pytest.raises(TextError, match=says):
            examples.joined(pairs(), more)
