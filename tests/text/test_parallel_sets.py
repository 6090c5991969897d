"""Sets that are translations of each other, or an error; common rows, shortest, crossed."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.text.made import asked, examples, pairs
from xlx.text.examples import Examples, aligned, common, crossed, shortest
from xlx.text.files import TextError
from xlx.text.questions import Questions

ORDER = ("0", "2", "1", "3")


@pytest.mark.parametrize(
    ("english", "german", "message"),
    [
        (examples(), examples("de", ids=ORDER), "position 1 is example 2 in de and 1 in en"),
        (examples(), examples("de", labels=[0, 1, 1, 1]), "example 2 is yes in de and no in en"),
        (examples(), examples("de", classes=("a", "b")), "different classes"),
        (examples(), examples("fr"), "given as the examples in de"),
    ],
)
def test_sets_that_are_not_translations_are_refused(english, german, message: str) -> None:
    with pytest.raises(TextError, match=message):
        aligned({"en": english, "de": german})
    if german.language == "de" and german.unit == "question":
        with pytest.raises(TextError, match=message):
            crossed(english, german)


def test_common_keeps_what_all_have_with_one_label() -> None:
    german = examples("de", ids=("3", "1", "0", "9"), labels=[1, 0, 0, 1])
    sets, left_out = common({"en": examples("en"), "de": german})
    # 0 and 3 are in both with one label; 1 has another in German; 2 is not there.
    assert sets["en"].ids == sets["de"].ids == ("0", "3")
    assert sets["en"].first == ("en 0", "en 3")
    assert sets["de"].first == ("de 2", "de 0")
    assert left_out == {"missing": 1, "other label": 1}
    sets, left_out = common({"en": asked("en"), "de": asked("de", 6).at([3, 5, 1, 0])})
    assert sets["de"].questions == ("de which 0 ?", "de which 1 ?", "de which 3 ?")
    assert left_out == {"missing": 1, "other label": 0}


def test_the_shortest_are_short_in_all_languages_together() -> None:
    english = examples("en", first=("aaaa", "a", "aaa", "a"))
    german = examples("de", first=("a", "aaaaaaa", "a", "aa"))
    assert shortest({"en": english, "de": german}, 2) == [2, 3]
    assert shortest({"en": english, "de": german}, None) == [0, 1, 2, 3]
    both = examples("en", first=tuple("abcd"), second=("xxx", "x", "xx", "x"))
    assert shortest({"en": both}, 1) == [1]  # pairs count with both sides
    with pytest.raises(TextError, match="n is 0"):
        shortest({"en": english}, 0)


def test_crossed_sets_have_a_side_of_each_language() -> None:
    english, german = pairs(), pairs("de", "made de test")
    mixed = crossed(english, german)
    assert (mixed.first, mixed.second) == (english.first, german.second)
    assert (mixed.labels == english.labels).all()
    assert (mixed.ids, mixed.language, mixed.name) == (english.ids, "en-de", "made en-de test")
    back = crossed(german, english)
    assert (back.first, back.second) == (german.first, english.second)
    assert (back.language, back.name) == ("de-en", "made de-en test")
    both = crossed(asked("en"), asked("de"))
    assert (both.contexts, both.answers) == (asked("en").contexts, asked("en").answers)
    assert both.questions == asked("de").questions
    assert (both.language, both.name) == ("en-de", "made en-de test")
    assert (both.context_language, both.question_language) == ("en", "de")


@pytest.mark.parametrize("one", [pairs(), asked()])
def test_crossed_with_itself_is_what_it_was(one: Examples | Questions) -> None:
    mixed = crossed(one, one)
    assert mixed.text_hash() == one.text_hash()
    assert (mixed.language, mixed.name) == ("en", "made en test")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("xnli en test", "xnli en-de test"),
        ("men en", "men en-de"),
        ("sentences", "sentences and made de test"),
        ("men-en x_en", "men-en x_en and made de test"),
    ],
)
def test_only_the_language_in_a_name_is_changed(name: str, expected: str) -> None:
    assert crossed(pairs(name=name), pairs("de", "made de test")).name == expected


def test_single_sentences_are_not_crossed() -> None:
    for one, other in ((examples(), pairs("de")), (pairs(), examples("de"))):
        with pytest.raises(TextError, match=r"made \w\w: .* without a second part"):
            crossed(one, other)


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(0, 9), unique=True), min_size=1, max_size=4))
def test_common_rows_are_those_that_all_have(lists: list[list[int]]) -> None:
    expected = [str(i) for i in lists[0] if all(i in ids for ids in lists)]
    whole = {code: examples(code, 10) for code in "abcd"}
    sets = {code: whole[code].at(ids) for code, ids in zip("abcd", lists, strict=False)}
    if not expected:
        with pytest.raises(TextError, match="no example of made a is in all of a"):
            common(sets)
        return
    kept, left_out = common(sets)
    assert left_out == {"missing": len(lists[0]) - len(expected), "other label": 0}
    for code, rows in kept.items():
        assert list(rows.ids) == expected
        assert rows.text_hash() == whole[code].at(map(int, expected)).text_hash()
