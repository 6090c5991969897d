"""Examples: the same in every language, or an error; random and corrupted labels."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlx import baselines, corpora, examples, labelled
from xlx.corpora import ParallelCorpus
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


def pairs(language: str = "en", name: str = "made en test", **changes: object) -> Examples:
    return some(
        language, name=name, second=tuple(f"{language} no {i} of four" for i in range(4)), **changes
    )


def test_crossed_pairs_have_a_part_of_each_language() -> None:
    english, german = pairs(), pairs("de", "made de test")
    mixed = examples.crossed(english, german)
    assert mixed.first == english.first
    assert mixed.second == german.second
    assert (mixed.labels == english.labels).all()
    assert mixed.ids == english.ids
    assert (mixed.language, mixed.name) == ("en-de", "made en-de test")
    back = examples.crossed(german, english)
    assert (back.first, back.second) == (german.first, english.second)
    assert (back.language, back.name) == ("de-en", "made de-en test")


def test_crossed_with_itself_is_what_it_was() -> None:
    mixed = examples.crossed(pairs(), pairs())
    assert mixed.text_hash() == pairs().text_hash()
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
    assert examples.crossed(pairs(name=name), pairs("de", "made de test")).name == expected


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ids": ("0", "2", "1", "3")}, "position 1 is example 2 in de and 1 in en"),
        ({"labels": np.array([0, 1, 1, 1])}, "example 2 is yes in de and no in en"),
        ({"classes": ("a", "b")}, "different classes"),
    ],
)
@pytest.mark.parametrize("language", ["de", "en"])
def test_what_is_not_parallel_is_not_crossed(language: str, changes: dict, message: str) -> None:
    other = pairs(language, "other", **changes)
    with pytest.raises(ExamplesError, match=message.replace("in de", f"in {language}")):
        examples.crossed(pairs(), other)


def test_sets_of_another_size_or_without_pairs_are_not_crossed() -> None:
    with pytest.raises(ExamplesError, match="other has 3 examples and made en test 4"):
        examples.crossed(pairs(), replace(pairs("de"), name="other").at(range(3)))
    for one, other in ((some(), pairs("de")), (pairs(), some("de"))):
        with pytest.raises(ExamplesError, match=r"made \w\w: .* without a second part"):
            examples.crossed(one, other)


LONG = tuple(" ".join(f"w{i}.{k}" for k in range(12)) for i in range(4))


@pytest.mark.parametrize("parts", [["first"], ["second"], ["second", "first"]])
def test_shuffling_touches_the_named_part_alone_and_keeps_its_words(parts: list) -> None:
    whole = pairs(first=LONG, ids=tuple("abcd"))
    whole = replace(whole, second=tuple(text.upper() for text in LONG))
    found = examples.shuffled(whole, 3, parts=parts)
    for part in examples.PARTS:
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
    found = examples.shuffled(made, seed)
    for side in (found.first, found.second):
        assert [sorted(x.split()) for x in side] == [sorted(x.split()) for x in texts]
    for language in ("zh", "ja", "th"):
        found = examples.shuffled(replace(made, language=language), seed)
        assert [sorted(x) for x in found.first] == [sorted(x) for x in texts]


def test_an_order_depends_on_the_seed_and_the_place_alone() -> None:
    one = pairs(first=LONG)
    found = examples.shuffled(one, 3)
    assert found.first == examples.shuffled(one, 3).first
    assert all(x != y for x, y in zip(found.first, examples.shuffled(one, 4).first, strict=True))
    # another text before it changes nothing, nor does leaving the other part alone
    changed = replace(one, first=("of another length", *LONG[1:]))
    assert examples.shuffled(changed, 3).first[1:] == found.first[1:]
    assert examples.shuffled(one, 3, parts=["first"]).first == found.first
    # the same text in both parts is not put in the same order
    twice = examples.shuffled(replace(one, second=LONG), 3)
    assert all(x != y for x, y in zip(twice.first, twice.second, strict=True))


def test_a_text_that_comes_again_has_one_new_order() -> None:
    premises = (LONG[0], LONG[1], LONG[0], LONG[1])
    found = examples.shuffled(pairs(first=premises), 1)
    assert found.first[:2] == found.first[2:]
    assert found.first[0] != found.first[1]


def test_all_orders_of_a_text_are_drawn_alike() -> None:
    orders = Counter(
        examples.shuffled(some(first=("a b c", "", "", "")), seed).first[0] for seed in range(600)
    )
    assert len(orders) == 6
    assert all(abs(count - 100) < 4 * np.sqrt(600 * 5 / 36) for count in orders.values())


def test_languages_without_spaces_are_shuffled_by_characters() -> None:
    text = "今天天气很好我们去公园散步吧"
    made = some("zh", first=(text,) * 4)
    (found,) = set(examples.shuffled(made, 0).first)
    assert found != text
    assert sorted(found) == sorted(text)
    # of a mixed pair each part is of its own language
    mixed = pairs("en-zh", first=LONG)
    mixed = examples.shuffled(replace(mixed, second=(text,) * 4), 0)
    assert sorted(mixed.first[0].split()) == sorted(LONG[0].split())
    assert set(mixed.second) != {text}
    assert sorted(mixed.second[0]) == sorted(text)
    # to a language with spaces it is one word
    assert examples.shuffled(replace(made, language="ko"), 0).first == made.first


def test_marks_of_thai_stay_with_their_characters() -> None:
    text = "ที่นี่มีน้ำ"
    assert "ที่" in text
    (found,) = set(examples.shuffled(some("th", first=(text,) * 4), 2).first)
    assert found != text
    for unit in ("ที่", "นี่", "มี", "น้"):
        assert unit in found


def test_sentences_are_shuffled_but_not_their_second_part() -> None:
    found = examples.shuffled(some(first=LONG), 0)
    assert found.second is None
    assert found.name == "made en, first shuffled"
    assert all(x != y for x, y in zip(found.first, LONG, strict=True))


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
    with pytest.raises(ExamplesError, match=message):
        examples.shuffled(made, 0, parts=parts)


def test_one_part_alone_is_a_sentence() -> None:
    mixed = examples.crossed(pairs(), pairs("de", "made de test"))
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


def test_only_a_part_that_there_is() -> None:
    with pytest.raises(ExamplesError, match="without a second part"):
        examples.only(some(), "second")
    with pytest.raises(ExamplesError, match="given: 'hypothesis'"):
        examples.only(pairs(), "hypothesis")


def test_parts_of_xnli_can_be_crossed() -> None:
    sets = {code: examples.of_part(labelled.load("NLI", code, "train")) for code in ("en", "de")}
    sets, _ = examples.common(sets)
    mixed = examples.crossed(sets["en"], sets["de"])
    assert "en-de" in mixed.name
    assert mixed.second == sets["de"].second


def test_parallel_parts_have_the_same_examples_in_one_order() -> None:
    sets, left_out = examples.parallel("NLI", ["en", "de"], "test", 20)
    assert sets["en"].ids == sets["de"].ids
    assert len(sets["en"]) == 20
    assert left_out == {"missing": 0, "other label": 0}
    with pytest.raises(ValueError, match="named twice"):
        examples.parallel("NLI", ["en", "en"], "test")


def test_same_or_other_is_balanced_and_parallel() -> None:
    corpus = corpora.load("flores200-100").select(["en", "de"])
    sets = examples.aligned(examples.same_or_other(corpus, seed=3))
    english = sets["en"]
    assert len(english) == 2 * len(corpus)
    same = english.labels == 1
    for one, other, label in zip(english.first, english.second, english.labels, strict=True):
        assert (one == other) == (label == 1)
    assert Counter(np.array(english.second)[same]) == Counter(np.array(english.second)[~same])
    german = corpus.sentences["de"]
    places = [corpus.sentences["en"].index(text) for text in english.second]
    assert sets["de"].second == tuple(german[i] for i in places)
    assert english.text_hash() == examples.same_or_other(corpus, 4)["en"].text_hash()
    rounds = [examples.same_or_other(corpus, seed, alike=False)["en"] for seed in (3, 3, 4)]
    assert rounds[0].text_hash() == rounds[1].text_hash() != rounds[2].text_hash()


def test_other_is_like_same_in_length_and_digits() -> None:
    corpus = corpora.load("wmt24pp", drop_duplicates=True).select(["en", "de", "zh"])

    def right(alike: bool) -> float:
        """How often the surface tells a translation from another sentence, across languages."""
        _, sets = examples.same_or_other_parts(corpus, "en", 200, 150, 1, alike=alike)
        scores = baselines.surface_rule(sets, "same").scores["accuracy"]
        return float(scores[~np.eye(len(sets), dtype=bool)].mean())

    assert right(alike=False) > 0.7
    assert abs(right(alike=True) - 0.5) < 0.05


def test_other_is_the_nearest_of_few() -> None:
    texts = ["One of 20", "A sentence that runs on", "Two of 30", "It is one that runs on"]
    corpus = ParallelCorpus("four", {"en": tuple(texts)}, tuple("abcd"), ("",) * 4, "CC0", "")
    others = examples.same_or_other(corpus, 0)["en"].second[::2]
    assert others == (texts[2], texts[3], texts[0], texts[1])


def test_no_sentence_of_same_or_other_is_in_both_parts() -> None:
    corpus = corpora.load("flores200-100").select(["en", "de"])
    train, test = examples.same_or_other_parts(corpus, "en", 40, 20, seed=1)
    assert (len(train["de"]), len(test["de"])) == (40, 20)
    assert not {*train["en"].first, *train["en"].second} & {*test["en"].first, *test["en"].second}
    longest = max(len(text) for text in train["en"].first + test["en"].first)
    assert longest == sorted(len(text) for text in corpus.sentences["en"])[29]
    with pytest.raises(ExamplesError, match="need 150"):
        examples.same_or_other_parts(corpus, "en", 200, 100, seed=1)
