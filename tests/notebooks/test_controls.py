"""Controls: words out of order, one part alone, no question."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixing_2_paraphrase import word_distances
from shared import controls, held_out
from tests.text.made import CODES, TEXT, asked, pairs
from tests.text.made import examples as some
from xlx.text.examples import Examples, crossed
from xlx.text.files import TextError
from xlx.text.languages import words
from xlx.text.questions import questionless

LONG = tuple(" ".join(f"w{i}.{k}" for k in range(12)) for i in range(4))


@pytest.mark.parametrize("parts", [["first"], ["second"], ["second", "first"]])
def test_shuffling_touches_the_named_part_alone_and_keeps_its_words(parts: list) -> None:
    whole = pairs(first=LONG, ids=tuple("abcd"))
    whole = replace(whole, second=tuple(text.upper() for text in LONG))
    found = controls.shuffled(whole, 3, parts=parts)
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


@settings(max_examples=25)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=6), st.integers(0, 9))
def test_shuffling_keeps_the_multiset_of_words(texts: list[str], seed: int) -> None:
    ids = tuple(map(str, range(len(texts))))
    made = Examples(
        "made", "en", tuple(texts), tuple(texts), np.zeros(len(texts), int), ("a",), ids
    )
    found = controls.shuffled(made, seed)
    for side in (found.first, found.second):
        assert [sorted(x.split()) for x in side] == [sorted(x.split()) for x in texts]
    for language in ("zh", "ja", "th"):
        found = controls.shuffled(replace(made, language=language), seed)
        assert [sorted(x) for x in found.first] == [sorted(x) for x in texts]


def test_an_order_depends_on_the_seed_and_the_place_alone() -> None:
    one = pairs(first=LONG)
    found = controls.shuffled(one, 3)
    assert found.first == controls.shuffled(one, 3).first
    assert all(x != y for x, y in zip(found.first, controls.shuffled(one, 4).first, strict=True))
    # another text before it changes nothing, nor does leaving the other part alone
    changed = replace(one, first=("of another length", *LONG[1:]))
    assert controls.shuffled(changed, 3).first[1:] == found.first[1:]
    assert controls.shuffled(one, 3, parts=["first"]).first == found.first
    # the same text in both parts is not put in the same order
    twice = controls.shuffled(replace(one, second=LONG), 3)
    assert all(x != y for x, y in zip(twice.first, twice.second, strict=True))


def test_languages_without_spaces_are_shuffled_by_characters() -> None:
    text = "今天天气很好我们去公园散步吧"
    made = some("zh", first=(text,) * 4)
    (found,) = set(controls.shuffled(made, 0).first)
    assert found != text
    assert sorted(found) == sorted(text)
    # of a mixed pair each part is of its own language
    mixed = pairs("en-zh", first=LONG)
    mixed = controls.shuffled(replace(mixed, second=(text,) * 4), 0)
    assert sorted(mixed.first[0].split()) == sorted(LONG[0].split())
    assert set(mixed.second) != {text}
    assert sorted(mixed.second[0]) == sorted(text)
    # to a language with spaces it is one word
    assert controls.shuffled(replace(made, language="ko"), 0).first == made.first


def test_marks_of_thai_stay_with_their_characters() -> None:
    text = "ที่นี่มีน้ำ"
    (found,) = set(controls.shuffled(some("th", first=(text,) * 4), 2).first)
    assert found != text
    assert all(unit in found for unit in ("ที่", "นี่", "มี", "น้"))


def test_one_part_alone_is_a_sentence() -> None:
    mixed = crossed(pairs(), pairs("de", "made de test"))
    found = controls.only(mixed, "second")
    assert found.first == mixed.second
    assert found.second is None
    assert (found.language, found.name) == ("de", "made en-de test, second only")
    assert found.ids == mixed.ids
    assert (found.labels == mixed.labels).all()
    assert controls.only(mixed, "first").first == mixed.first
    assert controls.only(mixed, "first").language == "en"
    assert controls.only(pairs(), "second").language == "en"
    assert controls.only(some(), "first").first == some().first


@settings(max_examples=25)
@given(st.lists(TEXT, min_size=1, max_size=5), CODES, st.integers(0, 3))
def test_shuffling_keeps_the_words_of_the_question_and_all_else(
    texts: list[str], language: str, seed: int
) -> None:
    made = asked(language, len(texts), questions=tuple(texts))
    found = controls.shuffled(made, seed)
    for one, other in zip(texts, found.questions, strict=True):
        before, after = words(one, language), words(other, language)
        assert Counter(before) == Counter(after)
    for name in ("contexts", "answers", "ids", "language", "left_out"):
        assert getattr(found, name) == getattr(made, name)
    assert controls.shuffled(made, seed) == found


def test_questionless_keeps_all_but_the_questions() -> None:
    made = asked()
    found = questionless(made)
    assert found.questions == ("",) * 4
    assert replace(found, questions=made.questions, name=made.name) == made
    assert (word_distances(found) == 384).all()


@given(st.lists(st.sampled_from("abcd"), min_size=2, max_size=12))
def test_a_wrong_premise_is_never_the_right_one(premises: list[str]) -> None:
    n, ids = len(premises), tuple(map(str, range(len(premises))))
    whole = some(first=tuple(premises), second=ids, ids=ids, labels=np.zeros(n, int))
    if max(Counter(premises).values()) > n / 2:
        with pytest.raises(TextError, match="more than half of the pairs"):
            controls.wrong_premises(whole)
        return
    changed = controls.wrong_premises(whole)
    assert Counter(changed.first) == Counter(premises)
    assert not [a for a, b in zip(changed.first, premises, strict=True) if a == b]
    assert replace(changed, first=whole.first).text_hash() == whole.text_hash()


def test_whoever_is_asked_about_wrong_premises_is_asked_about_the_same_texts() -> None:
    right, wrong = (held_out.inference("fr", "en", x).contexts for x in ("right", "wrong"))
    assert sorted(right) == sorted(wrong)
    assert not [a for a, b in zip(right, wrong, strict=True) if a == b]
