"""Edits told by a loop over sentences; exchanges leave a bag at one half; controls that fail."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared import minimal_pairs
from shared.abx_tables import at_last
from shared.minimal_pairs import (
    COMPOSED,
    EDITED,
    EDITS,
    EXCHANGES,
    GROUPS,
    SIDES,
    EditDistance,
    beyond,
    edit_distance,
    edits_told,
    load_minimal_pairs,
    shares,
)
from xlx.experiment.scoring import FunctionSubject, Length
from xlx.text.parallel import ParallelCorpus

CHARACTERS = FunctionSubject(
    "characters",
    function=lambda text, _: np.array(
        [np.bincount([ord(x) % 99 for x in row], minlength=99) for row in text]
    ),
)


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


@pytest.mark.parametrize("kind", EDITS)
def test_what_is_shipped(kind: str) -> None:
    text = load_minimal_pairs(kind)
    originals = [text.sentences[id_[:2]][i] for i, id_ in enumerate(text.ids)]
    assert len({*zip(text.ids, text.sentences[EDITED], strict=True)}) == len(text)
    for a, b in zip(originals, text.sentences[EDITED], strict=True):
        assert a != b
        if kind in EXCHANGES:
            assert sorted(a) == sorted(b)
        elif kind == "number words":
            assert len(a) == len(b)


def test_exchanges_are_ties_of_length_and_characters() -> None:
    table = shares({"length": Length(), "characters": CHARACTERS}, GROUPS | {"all": [*EXCHANGES]})
    of_exchanges = table[table["kind"].isin([COMPOSED, *EXCHANGES])]
    assert (of_exchanges[["share", "low", "high"]] == 0.5).to_numpy().all()
    assert (of_exchanges["tied"] == 1).all()
    assert (at_last(table, "layer").query("kind == 'negation'")["share"] != 0.5).any()


def test_planted_worlds() -> None:
    rng = np.random.default_rng(1)
    n, of = 400, ["de", "en"] * 200
    meaning, odd = rng.normal(size=(n, 20)), np.full((n, 20), 4.0)
    same = {"de": meaning + 4, "en": meaning + 4}

    def means(edited: np.ndarray) -> tuple[float, float]:
        subject, corpus = made(same | {EDITED: edited}, of)
        (value,) = edits_told([subject], corpus)
        return tuple(value[name][0, 0, 1::2].mean() / 2 for name in ("own", "other"))

    told, other = means(np.roll(meaning, 1, axis=1) + 4)
    assert told == 1  # meaning, and an exchange of its parts: A is X itself
    assert other == pytest.approx(0.5, abs=0.1)
    told, other = means(-odd)  # edited sentences far from all: told for no knowledge of X
    assert told == other == 1
    told, other = means(odd)  # edited sentences in the middle of all: nearer to any other X
    assert other < 0.1


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


@given(st.text("abc", max_size=9), st.text("abcd", max_size=9))
def test_an_edit_distance_is_that_of_its_table(first: str, second: str) -> None:
    table = np.add.outer(np.arange(len(first) + 1), np.arange(len(second) + 1))
    for i, a in enumerate(first, 1):
        for j, b in enumerate(second, 1):
            beside = min(table[i - 1, j], table[i, j - 1]) + 1
            table[i, j] = min(beside, table[i - 1, j - 1] + (a != b))
    assert edit_distance(first, second) == table[-1, -1]


@settings(max_examples=20)
@given(st.integers(0, 10_000))
def test_an_edit_distance_sees_order_and_no_word(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = ("".join(rng.choice([*letters], 12)) for letters in ("abcdefgh", "ijklmnop"))
    sentences = {"de": (f"{x} und {y}",), "en": (f"{x} and {y}",), EDITED: (f"{y} and {x}",)}
    corpus = ParallelCorpus("planted", sentences, ("en:1",), ("1",), "", "")
    upper = EditDistance(str.upper)
    for rule in (EditDistance(), upper):
        assert rule.told(corpus)["own"].tolist() == [[[2], [2]]]  # X in the order of A
    turned = {**sentences, "de": (f"{y} und {x}",)}  # which it takes for meaning
    corpus = ParallelCorpus("planted", turned, ("en:1",), ("1",), "", "")
    assert upper.told(corpus)["own"][0, 0, 0] == 0


def test_sides_are_parts_of_all_exchanges() -> None:
    subjects = {"ends": EditDistance()}
    whole = shares(subjects, {COMPOSED: EXCHANGES}).set_index("language")
    one, two = (
        shares(subjects, {COMPOSED: EXCHANGES}, side=side).set_index("language") for side in SIDES
    )
    assert {*whole.index} - {*one.index} == {"ru", "zh"}
    for code in one.index.drop(
        "mean"
    ):  # of five other languages in Latin letters, two that are not
        mean = (5 * one.at[code, "share"] + 2 * two.at[code, "share"]) / 7
        assert whole.at[code, "share"] == pytest.approx(mean)


def test_other_scripts_are_put_into_latin_letters_and_the_rest_stays() -> None:
    read = minimal_pairs.romanised("Щит, љубав Ё! Καλημέρα; 한국어 é 中 42")
    assert read == "Ščit, ljubav Jo! Kalimera; hangugeo é 中 42"
