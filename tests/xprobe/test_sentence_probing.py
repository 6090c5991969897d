"""Encoders before tasks: the probes called by hand, what is stored, control labels, intervals."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from shared.controls import random_words, token_counts
from shared.xprobe_tables import cell_means
from tests.tables import of
from xlx.experiment.sentence_probes import dealt_labels
from xlx.measures import probes
from xlx.measures.sentence_tasks import ProbingTask, TaskPart
from xlx.results.settings import current
from xprobe import probing
from xprobe.encoders import Sentences, Sizes, encode, mean_vectors, untrained
from xprobe.probing import CELLS, Subject, probe
from xprobe.word_spaces import Lookup, Words

Tokens = tuple[str, ...]
#: A random sentence and its label.
Draw = Callable[[np.random.Generator], tuple[Tokens, int]]


def noise(rng: np.random.Generator, n: int) -> list[str]:
    return [f"w{word}" for word in rng.integers(0, 8, n)]


def length(rng: np.random.Generator) -> tuple[Tokens, int]:
    """Is it long?"""
    n = int(rng.integers(3, 11))
    return tuple(noise(rng, n)), int(n > 6)


def word(rng: np.random.Generator) -> tuple[Tokens, int]:
    """Which of two words is in it? Both kinds are equally long."""
    label = int(rng.integers(2))
    return tuple(rng.permutation([*noise(rng, 4), ("no", "yes")[label]]).tolist()), label


def order(rng: np.random.Generator) -> tuple[Tokens, int]:
    """Which of two words comes first?"""
    tokens = tuple(rng.permutation([*noise(rng, 3), "no", "yes"]).tolist())
    return tokens, int(tokens.index("yes") < tokens.index("no"))


def made(
    draw: Draw, sizes: Sequence[int] = (60, 20, 30), *, language: str = "en", seed: int = 0
) -> ProbingTask:
    """A task of random sentences; its bases are numbers."""
    rng = np.random.default_rng(seed)
    parts = []
    for n, base in zip(sizes, (10_000, 20_000, 0), strict=True):
        tokens, labels = zip(*(draw(rng) for _ in range(n)), strict=True)
        bases = tuple(f"made:{base + i}" for i in range(n))
        parts.append(TaskPart(tokens, np.array(labels), bases))
    return ProbingTask(draw.__name__, language, ("0", "1"), *parts)


def words_of(seed: int = 0) -> Lookup:
    """Random vectors of all words of the tasks, six numbers each."""
    words = [*(f"w{i}" for i in range(8)), "no", "yes"]
    vectors = np.random.default_rng(seed).normal(size=(len(words), 6))
    rows = [" ".join([word, *map(str, row)]) for word, row in zip(words, vectors, strict=True)]
    file = current().cache / f"{seed}.vec"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(["10 6", *rows, ""]))
    return Lookup(Words("en", file))


FAST = {"hidden": 7, "seeds": (0, 4), "max_epochs": 4}


def by_hand(subject: Subject, task: ProbingTask, **options: object) -> pd.DataFrame:
    """`probes.evaluate_probes` for a mean of words and one task."""
    read = (Sentences.of(part.tokens, subject.lookup) for part in task.parts().values())
    splits = [
        probes.Split(mean_vectors(own)[None], part.labels)
        for own, part in zip(read, task.parts().values(), strict=True)
    ]
    return probes.evaluate_probes(*splits, len(task.classes), **options)


# --- probe ----------------------------------------------------------------------------------------


def test_results_are_those_of_probes_called_by_hand() -> None:
    subjects = [Subject(words_of(seed=seed), code) for seed, code in enumerate(("en", "de"))]
    subjects.append(Subject(words_of(seed=2), "en", "of others"))
    tasks = {
        language: [
            made(length, (60, 20, 53), language=language, seed=seed),
            made(order, (33, 9, 71), language=language, seed=seed),
        ]
        for seed, language in enumerate(("en", "de"))
    }
    options = {"hidden": 7, "seeds": (0, 4), "max_epochs": 4, "activation": "sigmoid", "order": 3}
    table = probe(subjects, tasks, **FAST | {"order": 3})
    assert len(table) == 6 * 2
    for subject in subjects:
        for task in tasks[subject.language]:
            own = of(table, condition=subject.condition, language=subject.language, task=task.name)
            alone = by_hand(subject, task, **options)
            for name in ("seed", "n_train", "n_test", "accuracy", "majority"):
                assert own[name].tolist() == pytest.approx(alone[name].tolist())
            dealt = dealt_labels(task, 3)
            parts = {name: replace(part, labels=dealt[name]) for name, part in task.parts().items()}
            control = by_hand(subject, replace(task, **parts), **options)["accuracy"]
            assert own["control_accuracy"].tolist() == pytest.approx(control.tolist())
            less = (alone["accuracy"] - control).tolist()
            assert own["selectivity"].tolist() == pytest.approx(less)
            assert set(own["classes"]) == {2}
            assert own["n_distinct"].tolist() == [len(task.test)] * 2


def test_what_is_stored_is_not_computed_again_and_a_change_is(monkeypatch) -> None:
    encoded: list[int] = []

    def counting(sentences: Sentences) -> np.ndarray:
        encoded.append(len(sentences))
        return mean_vectors(sentences)

    monkeypatch.setattr(probing.encoders, "mean_vectors", counting)
    subject = Subject(words_of(), "en")
    first, _ = tasks = [made(draw, (20, 8, 9)) for draw in (length, word)]
    once = probe([subject], {"en": tasks}, **FAST)
    sentences = {t for task in tasks for part in task.parts().values() for t in part.tokens}
    assert encoded == [len(sentences)]
    # Another name of the same vectors is another row, and nothing to compute.
    again = probe([replace(subject, condition="again")], {"en": tasks}, **FAST)
    pd.testing.assert_frame_equal(again.assign(condition="not trained"), once)
    assert len(encoded) == 1
    # One label of a task, what decides the vectors, an option: each is computed again.
    labels = first.train.labels.copy()
    labels[0] = 1 - labels[0]
    relabelled = replace(first, train=replace(first.train, labels=labels))
    probe([subject], {"en": [relabelled]}, **FAST)
    probe([replace(subject, lookup=words_of(1))], {"en": [first]}, **FAST)
    for option in ({"hidden": 5}, {"seeds": (0,)}, {"order": 1}, {"control": False}):
        probe([subject], {"en": [first]}, **FAST | option)
    assert len(encoded) == 7


@pytest.mark.parametrize(
    ("languages", "message"),
    [
        (["en", "de", "en"], "called mean of words, not trained, en"),
        (["en", "fr"], "there are no tasks in fr, but en, de"),
    ],
)
def test_what_cannot_be_probed_is_told(languages: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        probe([Subject(words_of(), x) for x in languages], {x: [made(word)] for x in ("en", "de")})
    assert not list(current().cache.rglob("*.arrow"))


# --- control --------------------------------------------------------------------------------------


def test_control_labels_are_dealt_to_first_words_evenly_the_frequent_first() -> None:
    firsts = "a" * 10 + "b" * 5 + "c" * 5 + "d" * 3 + "e" * 2 + "f"

    def part(letters: str) -> TaskPart:
        return TaskPart(tuple((x, "y") for x in letters), np.zeros(len(letters), int), ("b",))

    for seed in range(5):
        # The parts count together: "a" is the commonest in all, and in none but train.
        parts = map(part, (firsts[:12], firsts[12:20], firsts[20:]))
        dealt = dealt_labels(ProbingTask("x", "en", ("0", "1", "2"), *parts), seed)
        assert [len(own) for own in dealt.values()] == [12, 8, 6]
        pairs = list(zip(firsts, np.concatenate(list(dealt.values())).tolist(), strict=True))
        of_word = dict(pairs)
        assert len(set(pairs)) == 6  # a label for each word
        # 10 | 5 | 5, then 3 to one of these, 2 and 1 to the other: 10 | 8 | 8.
        assert sorted(Counter(label for _, label in pairs).values()) == [8, 8, 10]
        assert of_word["a"] not in {of_word[letter] for letter in "bcdef"}
        assert of_word["e"] == of_word["f"] != of_word["d"]


# --- cells ----------------------------------------------------------------------------------------


def test_a_cell_is_the_mean_of_its_draws_and_seeds_with_an_interval_over_sentences() -> None:
    common = {"condition": "c", "n_train": 8, "n_test": 10, "classes": 2, "majority": 0.5}
    rows = [
        {
            "encoder": encoder,
            "language": "de",
            "task": "WC",
            "draw": draw,
            "seed": seed,
            "n_distinct": 16,
            "accuracy": accuracy,
            "control_accuracy": 0.25,
            "selectivity": accuracy - 0.25,
            **common,
        }
        for encoder, shift in (("b", 0.0), ("a", 0.1))
        for draw, seed, accuracy in [
            (0, 0, 0.6 + shift),
            (0, 1, 0.7 + shift),
            (1, 0, 0.8 + shift),
            (1, 1, 0.9 + shift),
        ]
    ]
    found = cell_means(pd.DataFrame(rows))
    assert found["encoder"].tolist() == ["b", "a"]
    assert found["accuracy"].tolist() == pytest.approx([0.75, 0.85])
    assert found["selectivity"].tolist() == pytest.approx([0.5, 0.6])
    assert found["n_distinct"].tolist() == [16, 16]
    assert not {"draw", "seed"} & set(found)
    z, n = 1.959964, 16
    for row in found.itertuples():
        p = row.accuracy
        middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        assert (row.low, row.high) == pytest.approx((middle - half, middle + half))


# --- subjects -------------------------------------------------------------------------------------


def test_length_and_words_solve_their_own_tasks_and_neither_one_of_order() -> None:
    reached = {}
    for draw in (length, word, order):
        task = made(draw, (300, 80, 150))
        for name, read in (
            ("length", token_counts),
            ("words", lambda *x: random_words(32, 0, *x)),
        ):
            splits = [
                probes.Split(read([" ".join(x) for x in part.tokens], "en")[None], part.labels)
                for part in task.parts().values()
            ]
            options = {"seeds": (0,), "hidden": probing.HIDDEN, "activation": probing.ACTIVATION}
            found = probes.evaluate_probes(*splits, 2, **options)["accuracy"].item()
            reached[name, task.name] = found
    assert reached["length", "length"] == 1
    assert reached["words", "word"] > 0.95
    for of_chance in (("length", "word"), ("length", "order"), ("words", "order")):
        assert abs(reached[of_chance] - 0.5) < 0.15


TINY = Sizes(
    words=6, hidden=4, layers=1, dropout=0.0, channels=5, projection=8, attention=3, heads=2
)


def identity(subject: Subject) -> str:
    return CELLS.ask(subject.about).identity


def test_an_encoder_is_known_by_its_recipe_and_its_words() -> None:
    task, lookup, recipe = made(word), words_of(), untrained("cnn-max", TINY, 1)
    subject = Subject(lookup, "de", "random", recipe)
    assert subject.names == ("CNN (maxpool)", "random", "de")
    splits = [
        probes.Split(
            encode("cnn-max", TINY, recipe.state(), Sentences.of(part.tokens, lookup))[None],
            part.labels,
        )
        for part in task.parts().values()
    ]
    expected = probes.evaluate_probes(*splits, 2, activation="sigmoid", **FAST)["accuracy"]
    found = probe([subject], {"de": [task]}, control=False, **FAST)["accuracy"]
    assert found.tolist() == pytest.approx(expected.tolist())
    others = (
        (untrained("rnn-last", TINY, 1), lookup),
        (untrained("cnn-max", TINY, 2), lookup),
        (recipe, words_of(seed=1)),
    )
    asked = [subject, *(Subject(y, "de", "random", x) for x, y in others)]
    assert len({CELLS.ask(own.about).identity for own in asked}) == 4


def test_cells_are_apart_by_standard_errors() -> None:
    cell = pd.DataFrame(
        {"seed": [1], "n_train": [9], "n_test": [50], "accuracy": [0.5], "majority": [0.5]}
    ).assign(classes=2)
    for change, expected in (
        ({}, 0),
        ({"accuracy": 0.7}, 2),  # sqrt(0.25 / 50 + 0.25 / 50) is 0.1
        ({"n_test": 51}, math.inf),
        ({"control_accuracy": 0.5}, math.inf),
    ):
        assert CELLS.difference(cell, cell.assign(**change)) == pytest.approx(expected)
