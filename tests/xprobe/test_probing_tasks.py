"""Probing tasks: each rule on hand-written trees, balance, disjoint parts, seeds, released data."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from xlx.measures.sentence_tasks import (
    Bigrams,
    Candidates,
    Pool,
    Rules,
    TooFewSentencesError,
    bigram_shifts,
    build,
    clauses,
    odd_words,
    sizes_of,
)
from xlx.text.files import letters
from xlx.text.trees import Tree, Trees, read_trees
from xprobe.probing import Draws, alike

#: Depths in steps, words of any length.
ANY = Rules(lengths=(1, 99), letters=1, leaf=0)


def tree(text: str, name: str = "1", language: str = "en") -> Tree:
    """A tree of "form/UPOS/head/relation/Features" words; "=form=" opens a token of two words."""
    lines, n = [f"# sent_id = {name}"], 0
    for word in text.split():
        if word.startswith("="):
            lines.append("\t".join((f"{n + 1}-{n + 2}", word.strip("="), *"________")))
            continue
        n += 1
        form, tag, head, relation, *feats = word.split("/")
        lines.append(
            "\t".join((str(n), form, "_", tag, "_", *(feats or "_"), head, relation, "_", "_"))
        )
    (made,) = read_trees(lines, "made", language)
    return made


def some(*texts: str, language: str = "en") -> Trees:
    made = (tree(text, str(i), language) for i, text in enumerate(texts))
    return Trees(language, "made", tuple(made))


def counts(name: str, made: Trees | list[Trees], rules: Rules = ANY) -> dict[str, int]:
    """Usable sentences by class; of a task that changes some, all of them as "usable"."""
    found = Candidates.from_trees(name, made, rules)
    if found.change:
        return {"usable": len(found.usable)}
    return dict(Counter(found.classes[item.label] for item in found.usable))


def largest(name: str, made: Trees | list[Trees], rules: Rules = ANY) -> int:
    return Candidates.from_trees(name, made, rules).largest


def labels_of(name: str, *texts: str, rules: Rules = ANY, language: str = "en") -> list[str]:
    """The class of each sentence, "" where it is not usable: one at a time."""
    rows = [counts(name, some(text, language=language), rules) for text in texts]
    return ["".join(class_ for class_, n in row.items() if n) for row in rows]


# --- each rule, right and wrong -------------------------------------------------------------------


def flat(n: int) -> str:
    """A sentence of n tokens whose first is the root."""
    return " ".join(["w0/X/0/root", *(f"w{i}/X/1/dep" for i in range(1, n))])


def chain(depth: int, n: int, word: str = "w") -> str:
    """A sentence of n tokens and a depth."""
    heads = [*range(depth + 1), *[1] * (n - depth - 1)]
    return " ".join(
        f"{word}{i}/X/{head}/{'dep' if head else 'root'}" for i, head in enumerate(heads)
    )


def test_sentlen_bins_the_number_of_tokens() -> None:
    made = labels_of("SentLen", *(flat(n) for n in (4, 5, 8, 9, 16, 17, 25, 26, 28, 29)))
    assert made == ["", "5-8", "5-8", "9-12", "13-16", "17-20", "25-28", "25-28", "25-28", ""]
    rules = Rules(length_edges=(1, 3, 4))
    two_tokens = "=im= in/ADP/0/root dem/DET/1/det a/X/1/dep"
    assert labels_of("SentLen", two_tokens, flat(3), flat(4), rules=rules) == ["1-2", "3-3", ""]


def test_rules_are_those_of_the_release() -> None:
    """Counted in its files: 5 to 28 tokens, depths 3 to 7 of which a leaf is 1, longer words."""
    depths = labels_of("TreeDepth", *(chain(steps, 9) for steps in (1, 2, 6, 7)), rules=Rules())
    assert depths == ["", "3", "7", ""]
    verb = "a/VERB/0/root/Tense=Past"
    sizes = [" ".join([verb, *(f"w{i}/X/1/dep" for i in range(1, n))]) for n in (4, 5, 28, 29)]
    assert labels_of("Tense", *sizes, rules=Rules()) == ["", "Past", "Past", ""]
    words = some(
        *[
            " ".join(["oak/X/0/root", f"{x}/X/1/dep", *["e/X/1/dep"] * 3])
            for x in ("elms", "pine", "fir")
        ]
    )
    assert counts("WC", words, replace(Rules(), n_words=2, first_rank=0)) == {"elms": 1, "pine": 1}


def test_wc_takes_sentences_with_exactly_one_of_the_words_exactly_once() -> None:
    # By frequency: the (6), old (5), dog (4), cat (3), a (2).
    texts = ("the old cat", "the old dog", "The cat dog", "the CAT")
    texts += ("dog the old dog", "the old old a a")
    rows = [
        " ".join(f"{w}/X/{i and 1}/{'dep' if i else 'root'}" for i, w in enumerate(t.split()))
        for t in texts
    ]
    made = counts("WC", some(*rows), replace(ANY, n_words=2, first_rank=2))
    # "dog the old dog" has dog twice, "The cat dog" has both
    assert made == {"dog": 1, "cat": 2}
    with pytest.raises(TooFewSentencesError, match=r"WC in en: the text has 5 words, and 9 are"):
        counts("WC", some(*rows), replace(ANY, n_words=5, first_rank=4))


def test_treedepth_is_the_depth_within_a_bin_of_lengths() -> None:
    rules = replace(ANY, depths=(2, 3), depth_edges=(5, 7, 9))
    shapes = [(2, 5), (3, 5), (3, 6), (3, 8), (2, 9), (4, 6), (1, 6)]
    made = [chain(*shape) for shape in shapes]
    assert labels_of("TreeDepth", *made, rules=rules) == ["2", "3", "3", "3", "", "", ""]
    words = [
        chain(depth, n, f"{'ab'[i % 2]}{i}")
        for i, (depth, n) in enumerate([*[(2, 5)] * 4, *[(3, 6)] * 2, *[(2, 7)] * 3, *[(3, 8)] * 9])
    ]
    cells = Candidates.from_trees("TreeDepth", some(*words), rules).cells
    assert {cell: len(rows) for cell, rows in cells.items()} == {
        (0, 0): 4,
        (0, 1): 2,
        (1, 0): 3,
        (1, 1): 9,
    }
    assert largest("TreeDepth", some(*words), rules) == 2 * (2 + 3)


ENGLISH = "Anna/PROPN/2/{0}/{1} sees/{2}/0/root/Tense=Pres old/ADJ/4/amod cats/NOUN/2/{3}/{4}"


@pytest.mark.parametrize(
    ("text", "subject", "object_"),
    [
        (ENGLISH.format("nsubj", "Number=Sing", "VERB", "obj", "Number=Plur"), "Sing", "Plur"),
        (ENGLISH.format("nsubj:pass", "Number=Plur", "AUX", "obj", "Number=Sing"), "Plur", "Sing"),
        (ENGLISH.format("nsubj", "Number=Dual", "VERB", "obj", "Number=Ptan"), "", ""),
        (ENGLISH.format("nsubj", "_", "VERB", "obj", "Case=Acc"), "", ""),
        (ENGLISH.format("nsubj", "Number=Sing", "NOUN", "obj", "Number=Plur"), "", ""),
        (ENGLISH.format("nsubj", "Number=Sing", "VERB", "nsubj", "Number=Sing"), "", ""),
        (ENGLISH.format("obj", "Number=Sing", "VERB", "obj", "Number=Sing"), "", ""),
        (ENGLISH.format("csubj", "Number=Sing", "VERB", "iobj", "Number=Sing"), "", ""),
        (
            "He/PRON/2/nsubj/Number=Sing says/VERB/0/root cats/NOUN/4/nsubj/Number=Plur "
            "sleep/VERB/2/ccomp",
            "Sing",
            "",
        ),
    ],
)
def test_number_is_that_of_the_only_subject_or_object_of_the_root_verb(
    text: str, subject: str, object_: str
) -> None:
    assert labels_of("SubjNum", text) == [subject]
    assert labels_of("ObjNum", text) == [object_]


@pytest.mark.parametrize(
    ("text", "tense"),
    [
        ("It/PRON/2/nsubj slept/VERB/0/root/Tense=Past|VerbForm=Fin", "Past"),
        ("It/PRON/2/nsubj sleeps/VERB/0/root/Tense=Pres", "Pres"),
        ("Es/PRON/2/nsubj será/AUX/0/root/Tense=Fut", ""),
        ("Es/PRON/2/nsubj era/VERB/0/root/Tense=Imp", ""),
        ("did/AUX/2/aux/Tense=Past sleep/VERB/0/root/VerbForm=Inf", "Past"),
        ("may/AUX/3/aux has/AUX/3/aux/Tense=Pres slept/VERB/0/root", "Pres"),
        ("was/AUX/2/aux/Tense=Past sleeping/VERB/0/root/Tense=Pres", "Pres"),
        ("It/PRON/3/nsubj was/AUX/3/cop/Tense=Past old/ADJ/0/root", ""),
        ("He/PRON/2/nsubj come/VERB/0/root was/VERB/2/ccomp/Tense=Past", ""),
    ],
)
def test_tense_is_that_of_the_root_verb_or_of_its_auxiliary(text: str, tense: str) -> None:
    assert labels_of("Tense", text) == [tense]


COORDINATED = (
    "Anna/PROPN/2/nsubj sleeps/VERB/0/root today/ADV/2/advmod ,/PUNCT/7/punct and/CCONJ/7/cc "
    "Tom/PROPN/7/nsubj eats/VERB/2/conj =im= in/ADP/10/case dem/DET/10/det Haus/NOUN/7/obl "
    "./PUNCT/2/punct"
)


def test_coordinv_changes_the_places_of_two_main_clauses() -> None:
    assert clauses(tree(COORDINATED)) == (3, 5, 9)
    both = some(COORDINATED, COORDINATED.replace("Tom", "Jim"))
    candidates = Candidates.from_trees("CoordInv", both, ANY)
    assert candidates.largest == 2
    (inverted,) = candidates.change(0, None)
    assert " ".join(inverted) == "tom eats im haus , and anna sleeps today ."


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("eats/VERB/2/conj", "eats/NOUN/2/conj"),  # not a clause
        ("eats/VERB/2/conj", "eats/VERB/2/ccomp"),  # not coordinated
        ("and/CCONJ/7/cc", "and/CCONJ/7/mark"),  # no conjunction
        ("and/CCONJ/7/cc", "and/CCONJ/7/cc but/CCONJ/7/cc"),  # two
        ("today/ADV/2/advmod", "today/ADV/7/advmod"),  # the second clause reaches into the first
        ("Haus/NOUN/7/obl", "Haus/NOUN/2/obl"),  # the first clause goes on after the second
        ("today/ADV/2/advmod", "goes/VERB/2/conj"),  # three conjuncts
        ("sleeps/VERB/0/root", "sleep/NOUN/0/root"),  # no verb
    ],
)
def test_coordinv_leaves_out_what_is_not_two_main_clauses(old: str, new: str) -> None:
    text = COORDINATED.replace(old, new)
    if "but" in new:  # one word more: heads after it move
        text = text.replace("/10/", "/11/").replace("/7/", "/8/")
    assert text != COORDINATED
    assert clauses(tree(text)) is None
    assert counts("CoordInv", some(text)) == {"usable": 0}


def test_bishift_swaps_one_pair_of_unlike_neighbours_before_the_end() -> None:
    text = "A/X/0/root b/X/1/dep b/X/1/dep c/X/1/dep !/PUNCT/1/punct ./PUNCT/1/punct"
    pool = Pool.from_trees(some(text))
    forms = set(bigram_shifts(pool, ANY)(0, np.random.default_rng(0)))
    assert {" ".join(form) for form in forms} == {"b a b c ! .", "a b c b ! ."}
    unusable = ("a/X/0/root a/X/1/dep ./PUNCT/1/punct", "a/X/0/root ./PUNCT/1/punct")
    unusable += ("?/PUNCT/0/root !/PUNCT/1/punct", "A/X/0/root a/X/1/dep")
    assert labels_of("BiShift", text, *unusable) == ["usable", "", "", "", ""]


def nouns(text: str) -> str:
    """A sentence whose capitalised words are nouns."""
    return " ".join(
        f"{word}/{'NOUN' if word[0].isupper() else 'X'}/{i and 1}/{'dep' if i else 'root'}"
        for i, word in enumerate(text.split())
    )


def test_somo_replaces_by_a_word_whose_two_bigrams_are_as_frequent() -> None:
    made = some(
        nouns("the Cat of x"), nouns("the Dog of y"), nouns("the so of z"), nouns("the Cow w")
    )
    # (the, cat) is there 4 times, (the, dog) twice, (the, cow) once: log 4/2 < 1 < log 4/1
    lines = [["the", "cat", "of"]] * 4 + [["the", "dog"]] * 2 + [["the", "so", "of"]] * 4
    lines += [["dog", "of"]] * 2 + [["the", "cow", "of"]]
    pool = Pool.from_trees(made)
    bigrams = Bigrams(lines)
    change = odd_words(pool, ANY, bigrams)
    assert [list(change(i, None)) for i in range(4)] == [
        [("the", "dog", "of", "x")],  # not the cow, too rare; not so, no noun
        [("the", "cat", "of", "y"), ("the", "cow", "of", "y")],
        [],  # only nouns and verbs are replaced
        [],  # the bigram (cow, w) is unseen
    ]
    wide = odd_words(pool, replace(ANY, max_log_difference=math.log(4)), bigrams)
    assert len(list(wide(0, None))) == 2
    none = odd_words(pool, replace(ANY, odd_tags=("VERB",)), bigrams)
    assert not any(list(none(i, None)) for i in range(4))


# --- too few, and other errors --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda trees: build("TopConst", trees), "no task 'TopConst': choose SentLen, WC"),
        (lambda trees: build("Tense", [trees[0], replace(trees[0], language="tr")]), "of de, tr"),
        (lambda trees: build("Tense", []), "of no language"),
        (lambda trees: build("Tense", trees, sizes=(10, 1, 10)), "parts of 10, 1, 10"),
        (lambda _: Rules(length_edges=(5, 5)), r"length_edges are \(5, 5\)"),
        (lambda _: Rules(depths=(4, 3)), r"depths are \(4, 3\)"),
        (lambda _: Rules(n_words=1), "n_words is 1"),
        (lambda _: sizes_of(5, (8, 1, 1)), "leave a part empty"),
    ],
)
def test_what_cannot_be_built_is_an_error(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call([spoken(9, "de")])


def test_changed_sentences_that_are_alike_are_not_taken_twice() -> None:
    # Swapping neighbours of "a b c" gives "b a c" and "a c b", which are there as sentences.
    texts = ["a b c", "b a c", "a c b", "x y z", "x z y", "y x z"]
    pool = some(*(nouns(text) for text in texts))
    assert largest("BiShift", pool, ANY) == 6
    task = build("BiShift", pool, sizes=(2, 2, 2), rules=ANY)
    rows = [
        (key, label)
        for part in task.parts().values()
        for key, label in zip(map(letters, part.tokens), part.labels, strict=True)
    ]
    assert len({key for key, _ in rows}) == 6
    assert len({base for part in task.parts().values() for base in part.bases}) == 6
    assert not {key for key, label in rows if label} & {letters(t.tokens) for t in pool}
    pairs = (f"{a}/X/0/root {b}/X/1/dep" for a, b in ("ab", "ba", "cd", "dc", "ef", "fe"))
    with pytest.raises(TooFewSentencesError, match=r"too many changed sentences are alike"):
        build("BiShift", some(*pairs), sizes=(2, 2, 2), rules=ANY)


# --- several languages ----------------------------------------------------------------------------


def spoken(n: int, language: str) -> Trees:
    """n sentences of five tokens that no two share; half with a verb in the past, half present."""
    texts = []
    for i in range(n):
        rest = " ".join(f"{language}{i}x{j}/NOUN/1/obl" for j in range(1, 5))
        texts.append(f"{language}{i}/VERB/0/root/Tense={('Past', 'Pres')[i % 2]} {rest}")
    return some(*texts, language=language)


def test_tasks_of_several_languages_have_the_size_that_all_of_them_can_have() -> None:
    stock = {"de": spoken(70, "de"), "tr": [spoken(30, "tr")], "hi": spoken(50, "hi")}
    made, table = alike(stock, ("Tense", "BiShift"), proportions=(8, 1, 1), rules=ANY)
    assert list(made) == list(stock)
    for language, tasks in made.items():
        assert [(task.name, task.language) for task in tasks] == [
            ("Tense", language),
            ("BiShift", language),
        ]
        for task in tasks:
            assert [len(part) for part in task.parts().values()] == [24, 2, 2]
            for part in task.parts().values():
                assert np.bincount(part.labels).tolist() == [len(part) / 2] * 2
    rows = zip(["de", "tr", "hi"] * 2, [70, 30, 50] * 2, strict=True)
    assert table[["language", "usable"]].to_numpy().tolist() == [list(row) for row in rows]
    assert table["usable"][1] == largest("Tense", stock["tr"], ANY)
    assert (table[["train", "validation", "test", "draws"]] == [24, 2, 2, 1]).all(axis=None)
    fewer, _ = alike(
        stock, ("Tense",), most=20, proportions=(6, 2, 2), rules=ANY, draws=Draws(seed=4)
    )
    alone = build("Tense", stock["hi"], sizes=(12, 4, 4), rules=ANY, seed=4)
    assert fewer["hi"][0].text_hash() == alone.text_hash()


def test_a_language_with_too_few_sentences_does_not_have_the_task() -> None:
    stock = {"de": spoken(40, "de"), "tr": spoken(39, "tr"), "hi": spoken(60, "hi")}
    made, table = alike(stock, ("Tense",), least=40, proportions=(2, 1, 1), rules=ANY)
    assert made["tr"] == []
    numbers = table[["usable", "train", "validation", "test", "draws"]].to_numpy().tolist()
    assert numbers == [[40, 20, 10, 10, 1], [38, 0, 0, 0, 0], [60, 20, 10, 10, 1]]
    with pytest.raises(TooFewSentencesError, match=r"Tense: 61 sentences .* no .* more than 60"):
        alike(stock, ("Tense",), least=61, rules=ANY)


@pytest.mark.parametrize(
    ("n_test", "max_draws", "draws"), [(20, 9, 3), (20, 2, 2), (8, 9, 1), (9, 9, 2), (0, 9, 1)]
)
def test_small_tasks_are_drawn_until_enough_sentences_are_tested_on(
    n_test: int, max_draws: int, draws: int
) -> None:
    stock = {"de": spoken(40, "de"), "tr": spoken(44, "tr")}
    call = {"names": ("Tense",), "proportions": (6, 2, 2), "rules": ANY}
    made, table = alike(stock, draws=Draws(n_test, max_draws, seed=5), **call)
    assert table[["test", "draws"]].to_numpy().tolist() == [[8, draws]] * 2
    alone = [
        build("Tense", stock["tr"], sizes=(24, 8, 8), rules=ANY, seed=5 + i) for i in range(draws)
    ]
    assert [task.text_hash() for task in made["tr"]] == [task.text_hash() for task in alone]
