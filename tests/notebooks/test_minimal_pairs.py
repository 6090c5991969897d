"""Edits told by a loop over sentences; exchanges leave a bag at one half; controls that fail."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.abx_tables import at_last
from shared.minimal_pairs import (
    BY_SPELLING,
    COMPOSED,
    EDITED,
    EDITS,
    EVERY,
    EXCHANGES,
    GROUPS,
    ORIGINAL,
    SIDES,
    Spelling,
    _scores,
    beyond,
    edits_told,
    every_x,
    in_latin,
    languages_of_x,
    load_minimal_pairs,
    order_distance,
    originals,
    shares,
    side_of,
)
from xlx.experiment.abx_scores import before_training
from xlx.experiment.minimal_pairs import edit_distance
from xlx.experiment.scoring import BagOfSubwords, FunctionSubject, Length, Subject
from xlx.text.parallel import ParallelCorpus

CHARACTERS = FunctionSubject(
    "characters",
    function=lambda text, _: np.array(
        [np.bincount([ord(x) % 99 for x in row], minlength=99) for row in text]
    ),
)


def planted(**sentences: str) -> ParallelCorpus:
    """One position, whose A is English."""
    texts = {code: (text,) for code, text in sentences.items()}
    return ParallelCorpus("planted", texts, ("en:1",), ("1",), "", "")


def made(vectors: dict[str, np.ndarray], of: list[str]) -> tuple[FunctionSubject, ParallelCorpus]:
    """A subject that gives these vectors, and a text of as many positions."""
    n = len(of)
    sentences = {
        code: tuple(f"{code} {i} {rows.tobytes().hex()}" for i in range(n))
        for code, rows in vectors.items()
    }
    ids = tuple(f"{code}:{i}" for i, code in enumerate(of))
    corpus = ParallelCorpus("planted", sentences, ids, tuple(map(str, range(n))), "", "")
    return FunctionSubject("planted", function=lambda _, code: vectors[code]), corpus


@settings(max_examples=20)
@given(st.integers(0, 10_000), st.integers(2, 6))
def test_a_literal_loop(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    vectors = {code: rng.integers(-2, 3, (n, 3)) + 0.5 for code in ("de", "en", EDITED)}
    of = rng.choice(["de", "en"], n).tolist()
    subject, corpus = made(vectors, of)
    (value,) = edits_told([subject], corpus)
    for name, shift in (("own", 0), ("other", 1)):
        for k, code in enumerate(("de", "en")):
            for i in range(n):
                x, a, b = vectors[code][i - shift], vectors[of[i]][i], vectors[EDITED][i]
                near = [x @ y / np.sqrt((x @ x) * (y @ y)) for y in (a, b)]
                assert value[name][0, k, i] == 1 + np.sign(near[0] - near[1])


@pytest.mark.parametrize("kind", [*EDITS, "phrases"])
def test_what_is_shipped(kind: str) -> None:
    text, *others = every_x(kind, kind in [*EXCHANGES, "phrases"])
    before = originals(text)
    assert before == tuple(text.sentences[id_[:2]][i] for i, id_ in enumerate(text.ids))
    assert len({*zip(text.ids, text.sentences[EDITED], strict=True)}) == len(text)
    for other in others:
        assert (other.ids, other.sentences[ORIGINAL]) == (text.ids, before)
        assert other.sentences[EDITED] == text.sentences[EDITED]
        assert not {*languages_of_x(other)} & {*languages_of_x(text)}
    if kind == "phrases":
        assert not {*text.ids} & {*every_x("roles")[0].ids}
    for a, b in zip(before, text.sentences[EDITED], strict=True):
        assert a != b
        if kind in EXCHANGES:
            assert sorted(a) == sorted(b)
        elif kind == "phrases":  # the capital of the beginning stays there
            assert sorted(a.lower()) == sorted(b.lower())
        elif kind == "number words":
            assert len(a) == len(b)


def test_exchanges_are_ties_of_length_and_characters() -> None:
    table = shares({"length": Length(), "characters": CHARACTERS}, GROUPS | {"all": [*EXCHANGES]})
    of_exchanges = table[table["kind"].isin([COMPOSED, *EXCHANGES])]
    assert (of_exchanges[["share", "low", "high"]] - 0.5).abs().to_numpy().max() < 1e-12
    assert (at_last(table, "layer").query("kind == 'negation'")["share"] != 0.5).any()


def test_what_a_model_has_above_a_rival_is_the_difference_of_shares() -> None:
    drawn = FunctionSubject(
        "ends", function=lambda text, _: np.array([[ord(x[0]), ord(x[-3]), 9] for x in text])
    )
    named = {"rival": CHARACTERS, "a": drawn, "b": CHARACTERS}
    table = beyond(named, [("a", "rival"), ("b", "rival")]).set_index("model")
    table = table[["score", "low", "high"]]
    means = shares(named, {COMPOSED: EXCHANGES}).query("language == 'mean'").set_index("model")
    assert table.loc["a", "score"] == pytest.approx(means.loc["a", "share"] - 0.5)
    assert table.loc["a", "low"] < table.loc["a", "score"] < table.loc["a", "high"]
    assert not table.loc["b"].any()


def test_sentences_of_another_kind_are_left_out() -> None:
    first, second = list(BY_SPELLING)[:2]
    scores, languages, _ = _scores(BY_SPELLING, ["phrases"], side=SIDES[-1])
    text, other = (load_minimal_pairs(kind) for kind in ("phrases", "roles"))
    assert len(text) == len(languages)
    known, apart = {name.split(":")[1] for name in other.ids}, {}
    lead = scores[first][0] - scores[second][0]
    for name, code, more in zip(text.ids, languages, lead, strict=True):
        if name.split(":")[1] not in known:
            apart.setdefault(code, []).append(more)
    assert 0 < sum(map(len, apart.values())) < len(text)
    left = beyond(BY_SPELLING, [(first, second)], ["phrases"], SIDES[-1], "roles")
    assert left["score"].item() == pytest.approx(np.mean([np.mean(x) for x in apart.values()]))


@given(st.text("abc", max_size=9), st.text("abcd", max_size=9))
def test_an_edit_distance_is_that_of_its_table(first: str, second: str) -> None:
    table = np.add.outer(np.arange(len(first) + 1), np.arange(len(second) + 1))
    for i, a in enumerate(first, 1):
        for j, b in enumerate(second, 1):
            beside = min(table[i - 1, j], table[i, j - 1]) + 1
            table[i, j] = min(beside, table[i - 1, j - 1] + (a != b))
    assert edit_distance(first, second) == table[-1, -1]


def test_names_in_other_letters_are_alike_in_latin_ones() -> None:
    texts = {"ru": "Обама видит Вангу", "en": "Obama sees Wanga", EDITED: "Wanga sees Obama"}
    told = [
        Spelling(edit_distance, x).told(planted(**texts))["own"][0, 0, 0] for x in (str, in_latin)
    ]
    assert told == [1, 2]
    unread = in_latin("Щит Ё! Καλημέρα; 한국어 é 中 42 東京")
    assert unread == "shchit e! kalimera; hangugeo e zhong 42 dongjing"  # and no "tokyo"


@given(
    st.permutations(["a", "b", "c", "7", "12", "d"]),
    st.permutations(["a", "b", "c", "7", "12", "e"]),
)
def test_an_order_of_shared_words_is_that_of_all_pairs(first: list, second: list) -> None:
    shared = [x for x in first if x in second]
    turned = [
        second.index(x) > second.index(y) for i, x in enumerate(shared) for y in shared[i + 1 :]
    ]
    assert order_distance(" ".join(first), " ".join(second)) == sum(turned)


def test_an_order_of_shared_words_sees_numbers_and_names_alone() -> None:
    rule, texts = (
        Spelling(order_distance, in_latin),
        {"en": "In 1990 it had 7", EDITED: "In 7 it had 1990"},
    )
    assert rule.told(planted(ja="1990年には7つ", **texts))["own"][0, 0, 0] == 2
    assert rule.told(planted(ja="1990年です", **texts))["own"][0, 0, 0] == 1
    assert order_distance("7 and 7 or 8", "8 and 7 or 7") == 2  # "8" with two words; "7" is twice


def test_a_bag_sees_words_and_a_twin_what_is_equal() -> None:
    texts = {"en": "The cat saw a dog.", "de": "The cat saw a dog.", EDITED: "A dog saw the cat."}
    bag, twin = BagOfSubwords("mini-xlmr"), Subject(before_training("mini-xlmr"))
    for subject in (bag, twin):
        (value,) = edits_told([subject], planted(**texts))
        assert (value["own"] == 2).all()  # X is A, and "The" is no "the"
        (value,) = edits_told([subject], planted(**{**texts, EDITED: texts["en"]}))
        assert (value["own"] == 1).all()
    swapped = {"en": "it saw cats and it saw dogs", EDITED: "it saw dogs and it saw cats"}
    (value,) = edits_told([bag], planted(de="er sah cats", **swapped))
    assert (value["own"] == 1).all()  # another word order is not seen


def test_sides_are_parts_of_all_exchanges() -> None:
    subjects = {"ends": Spelling(edit_distance)}
    whole = shares(subjects, {COMPOSED: EXCHANGES}, side=EVERY).set_index("language")
    sides = {
        side: shares(subjects, {COMPOSED: EXCHANGES}, side=side).set_index("language")
        for side in SIDES
    }
    assert {*whole.index} - {*sides["one script"].index} == {"ru", "zh"}
    codes = [x for text in every_x("names") for x in languages_of_x(text)]
    for a in whole.index.drop("mean"):
        n = {side: sum(side_of(x, a) == side for x in codes if x != a) for side in SIDES}
        mean = sum(k * sides[side].at[a, "share"] for side, k in n.items() if k) / (len(codes) - 1)
        assert whole.at[a, "share"] == pytest.approx(mean)
    assert [side_of(*pair) for pair in (("fi", "de"), ("th", "zh"), ("tr", "it"))] == [*SIDES]
