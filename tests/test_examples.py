"""Examples: the same in every language, or an error; random and corrupted labels."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlx import corpora, examples, labelled
from xlx.examples import Examples, ExamplesError

CLASSES = ("no", "yes")


def some(language: str = "en", n: int = 4, **changes: object) -> Examples:
    made = Examples(
        name=f"made {language}",
        language=language,
        first=tuple(f"{language} {i}" for i in range(n)),
        second=None,
        labels=np.arange(n) % 2,
        classes=CLASSES,
        ids=tuple(map(str, range(n))),
    )
    return replace(made, **changes)


def test_pairs_become_examples_with_the_same_texts_and_labels() -> None:
    part = labelled.load("NLI", "de", "train")
    made = examples.of_part(part)
    assert made.first == part.first
    assert made.second == part.second
    assert tuple(made.classes[label] for label in made.labels) == part.labels


def test_texts_become_examples_without_a_second_side() -> None:
    part = labelled.load("TOPIC", "de", "test")
    made = examples.of_part(part)
    assert made.first == part.sentences
    assert made.second is None
    assert made.classes == labelled.TOPICS


def test_random_labels_are_one_draw_for_all_languages() -> None:
    corpus = corpora.load("flores200-100", ["de", "en"])
    made = examples.aligned(examples.of_corpus(corpus, 3))
    assert set(made) == {"de", "en"}
    assert made["de"].first == corpus.sentences["de"]
    assert (made["de"].labels == examples.random_labels(len(corpus), 3)).all()
    assert (made["de"].labels != examples.random_labels(len(corpus), 4)).any()


def test_random_labels_are_fair() -> None:
    labels = examples.random_labels(10_000, 1)
    assert set(labels.tolist()) == {0, 1}
    assert abs(labels.mean() - 0.5) < 4 * 0.5 / 100


@given(st.integers(0, 60), st.floats(0, 1), st.integers(2, 4), st.integers(0, 5))
def test_no_more_is_corrupted_than_asked_for(n: int, ratio: float, k: int, seed: int) -> None:
    labels = np.arange(n) % k
    found = examples.corrupted(labels, ratio, k, seed)
    assert (found != labels).sum() <= round(ratio * n)
    assert set(found.tolist()) <= set(range(k))
    assert (labels == np.arange(n) % k).all()  # the argument is left alone


def test_what_is_corrupted_stays_so_at_higher_ratios() -> None:
    labels = np.arange(300) % 3
    before = labels
    for ratio in np.linspace(0, 1, 11):
        found = examples.corrupted(labels, ratio, 3, 7)
        changed = before != labels
        assert (found[changed] == before[changed]).all()
        before = found
    # At ratio 1 every label is a draw among three, and a third of them is the old one.
    assert abs((before == labels).mean() - 1 / 3) < 4 * np.sqrt(2 / 9 / 300)


def test_ratio_0_corrupts_nothing() -> None:
    labels = np.arange(30) % 3
    assert (examples.corrupted(labels, 0, 3, 1) == labels).all()


@pytest.mark.parametrize("ratio", [-0.1, 1.1])
def test_an_impossible_ratio_is_an_error(ratio: float) -> None:
    with pytest.raises(ExamplesError, match=r"ratio .* between 0 and 1"):
        examples.corrupted(np.zeros(3, int), ratio, 2, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n": 3}, "made de has 3 examples and made en 4"),
        ({"ids": ("0", "2", "1", "3")}, "position 1 is example 2 in de and 1 in en"),
        ({"labels": np.array([0, 1, 1, 1])}, "example 2 is yes in de and no in en"),
        ({"classes": ("a", "b")}, "different classes"),
        ({"language": "fr"}, "given as the examples in de"),
    ],
)
def test_sets_that_are_not_translations_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(ExamplesError, match=message):
        examples.aligned({"en": some("en"), "de": some(**({"language": "de"} | changes))})


def test_no_language_is_an_error() -> None:
    with pytest.raises(ExamplesError, match="no examples in any language"):
        examples.aligned({})
    with pytest.raises(ExamplesError, match="no examples in any language"):
        examples.common({})


def test_common_keeps_what_all_have_with_one_label() -> None:
    german = some("de", ids=("3", "1", "0", "9"), labels=np.array([1, 0, 0, 1]))
    sets, left_out = examples.common({"en": some("en"), "de": german})
    # 0 and 3 are in both with one label; 1 has another in German; 2 is not there.
    assert sets["en"].ids == sets["de"].ids == ("0", "3")
    assert sets["en"].first == ("en 0", "en 3")
    assert sets["de"].first == ("de 2", "de 0")
    assert left_out == {"missing": 1, "other label": 1}


def test_common_with_nothing_left_is_an_error() -> None:
    with pytest.raises(ExamplesError, match="no example of made en is in all of en, de"):
        examples.common({"en": some("en"), "de": some("de", ids=tuple("abcd"))})


def test_common_refuses_an_id_that_occurs_twice() -> None:
    with pytest.raises(ExamplesError, match="made de: an id occurs twice"):
        examples.common({"en": some("en"), "de": some("de", ids=("0", "0", "1", "2"))})


def test_the_shortest_are_short_in_all_languages_together() -> None:
    english = some("en", first=("aaaa", "a", "aaa", "a"))
    german = some("de", first=("a", "aaaaaaa", "a", "aa"))
    assert examples.shortest({"en": english, "de": german}, 2) == [2, 3]
    assert examples.shortest({"en": english, "de": german}, None) == [0, 1, 2, 3]
    with pytest.raises(ExamplesError, match="cannot take 0"):
        examples.shortest({"en": english}, 0)


def test_pairs_count_with_both_sides() -> None:
    english = some("en", first=("a", "b", "c", "d"), second=("xxx", "x", "xx", "x"))
    assert examples.shortest({"en": english}, 1) == [1]


def test_the_hash_tells_texts_sides_and_labels_apart() -> None:
    one = some(first=("a", "b", "c", "d"))
    others = [
        some(first=("a", "b", "c", "e")),
        one.relabelled(1 - one.labels),
        replace(one, second=("", "", "", "x")),
        one.at([1, 0, 2, 3]),
    ]
    hashes = [examples_.text_hash() for examples_ in (one, *others)]
    assert len(set(hashes)) == len(hashes)
    assert one.text_hash() == replace(one, name="other").text_hash()


def test_labels_out_of_the_classes_are_an_error() -> None:
    with pytest.raises(ExamplesError, match="not among the 2 classes no, yes"):
        some(labels=np.array([0, 1, 2, 0]))
    with pytest.raises(ExamplesError, match="unequal numbers"):
        some(labels=np.array([0, 1]))


def test_class_counts_name_absent_classes_too() -> None:
    assert examples.class_counts(some(labels=np.zeros(4, int))) == {"no": 4, "yes": 0}
