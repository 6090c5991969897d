"""Encoders before tasks: the probes called by hand, what is stored, control labels, intervals."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import xlx
from tests.tables import of
from xlx.core.settings import current
from xlx.models import embeddings, loading, probes
from xlx.xprobe import sentence_encoders, vector_recipes
from xlx.xprobe.encoder_inputs import Sentences
from xlx.xprobe.encoder_recipes import Untrained
from xlx.xprobe.probing_tasks import ProbingTask, TaskPart
from xlx.xprobe.sentence_encoders import Sizes
from xlx.xprobe.sentence_probing import CELL_KEYS, CELLS, cell_means, dealt_labels, probe
from xlx.xprobe.subjects import (
    Encode,
    Subject,
    WordTable,
    of_encoder,
    of_function,
    of_length,
    of_mean,
    of_model,
    of_random_words,
)
from xlx.xprobe.word_spaces import Lookup

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


def first(rng: np.random.Generator) -> tuple[Tokens, int]:
    """Is the first word one of some?"""
    tokens = tuple(noise(rng, 4))
    return tokens, int(tokens[0] < "w4")


def made(
    draw: Draw,
    sizes: tuple[int, int, int] = (60, 20, 30),
    *,
    language: str = "en",
    seed: int = 0,
    start: int = 0,
) -> ProbingTask:
    """A task of random sentences; its bases are numbers, those of the test part from `start`."""
    rng = np.random.default_rng(seed)
    parts = []
    for n, first in zip(sizes, (10_000, 20_000, start), strict=True):
        tokens, labels = zip(*(draw(rng) for _ in range(n)), strict=True)
        bases = tuple(f"made:{first + i}" for i in range(n))
        parts.append(TaskPart(tokens, np.array(labels), bases))
    return ProbingTask(draw.__name__, language, ("0", "1"), *parts, n_candidates=sum(sizes))


def words_of(seed: int = 0) -> Lookup:
    """Random vectors of all words of the tasks, six numbers each."""
    words = [*(f"w{i}" for i in range(8)), "no", "yes"]
    vectors = np.random.default_rng(seed).normal(size=(len(words), 6))
    rows = [" ".join([each, *map(str, row)]) for each, row in zip(words, vectors, strict=True)]
    file = current().cache / f"{seed}.vec"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(["10 6", *rows, ""]))
    return Lookup(vector_recipes.of_file(file, "en"))


FAST = {"hidden": 7, "seeds": (0, 4), "max_epochs": 4}


def counting(subject: Subject, encoded: list[int]) -> Subject:
    """A subject that notes how many sentences it was asked for, each time."""

    def ready(tasks: Sequence[ProbingTask]) -> Encode:
        own = subject.ready(tasks)

        def encode(sentences: Sequence[Tokens]) -> np.ndarray:
            assert len(set(sentences)) == len(sentences)
            encoded.append(len(sentences))
            return own(sentences)

        return encode

    return replace(subject, ready=ready)


def by_hand(subject: Subject, task: ProbingTask, **options: object) -> pd.DataFrame:
    """`probes.evaluate` for one subject and one task."""
    splits = [
        probes.Split(subject.ready([task])(part.tokens)[None], part.labels)
        for part in task.parts().values()
    ]
    return probes.evaluate_probes(*splits, len(task.classes), **options)


# --- probe ----------------------------------------------------------------------------------------


def test_results_are_those_of_probes_called_by_hand() -> None:
    # Sixteen cells of one shape: stacks of four, of tasks of unlike sizes.
    subjects = [
        subject
        for seed, language in enumerate(("en", "de"))
        for subject in (of_mean(words_of(seed=seed), language), of_random_words(language, dim=6))
    ]
    tasks = {
        language: [
            made(draw, sizes, language=language, seed=seed)
            for draw, sizes in zip(
                (length, word, order, first),
                ((60, 20, 53), (40, 10, 67), (33, 9, 71), (50, 20, 59)),
                strict=True,
            )
        ]
        for seed, language in enumerate(("en", "de"))
    }
    options = {"hidden": 7, "seeds": (0, 4), "max_epochs": 4, "activation": "sigmoid", "order": 3}
    found = probe(subjects, tasks, **FAST | {"order": 3})
    assert len(found) == 16 * 2
    for subject in subjects:
        for task in tasks[subject.language]:
            own = of(found, encoder=subject.encoder, language=subject.language, task=task.name)
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
            assert set(own["condition"]) == {"not trained"}
            assert own["n_distinct"].tolist() == [len(task.test)] * 2


def test_probes_have_150_sigmoid_units_unless_told_otherwise() -> None:
    subject, task = of_mean(words_of(), "en"), made(word)
    found = probe(
        [subject],
        {"en": [task]},
        control=False,
    )
    alone = by_hand(subject, task, hidden=150, activation="sigmoid", seeds=(0, 1, 2))
    assert found["accuracy"].tolist() == pytest.approx(alone["accuracy"].tolist())
    assert "control_accuracy" not in found
    assert "selectivity" not in found


def test_a_subject_does_not_depend_on_those_beside_it() -> None:
    subject = of_mean(words_of(), "en")
    others = [of_mean(words_of(seed=seed), language) for seed, language in enumerate("abcdefg", 1)]
    others.append(of_length("a"))  # of another width
    tasks = {"en": [made(word)]} | {
        language: [made(word, (50 + 9 * seed, 20, 40), language=language, seed=seed)]
        for seed, language in enumerate("abcdefg", 1)
    }
    alone = probe([subject], tasks, **FAST)
    beside = probe([*others, subject], tasks, **FAST)
    own = of(beside, language="en").reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, own)
    assert beside["accuracy"].nunique() > 5


def test_results_do_not_depend_on_the_number_of_processes() -> None:
    # Eight encoders: two calls.
    subjects = [of_mean(words_of(seed=seed), each) for seed, each in enumerate("abcdefgh")]
    tasks = {language: [made(length), made(word)] for language in "abcdefgh"}
    found = []
    for workers in (1, 2):
        with xlx.settings(workers=workers, cache=current().cache / str(workers)):
            found.append(probe(subjects, tasks, **FAST))
    pd.testing.assert_frame_equal(*found)


def test_rows_are_in_the_order_of_subjects_and_tasks_and_draws_are_numbered() -> None:
    tasks = {
        "en": [
            made(length, start=0),
            made(length, seed=1, start=20),  # ten of its thirty bases were in the first draw
            made(word),
            made(length, seed=2, start=50),
        ]
    }
    subjects = [of_random_words("en", dim=3), of_length("en")]
    options = FAST | {"seeds": (0,), "control": False}
    found = probe(subjects, tasks, **options)
    assert found["encoder"].tolist() == ["bag of words"] * 4 + ["length alone"] * 4
    assert found["task"].tolist() == ["length", "length", "word", "length"] * 2
    assert found["draw"].tolist() == [0, 1, 0, 2] * 2
    assert found["n_test"].tolist() == [30] * 8
    assert found["n_distinct"].tolist() == [80, 80, 30, 80] * 2
    first = [*CELL_KEYS, "draw", "seed", "n_train", "n_test", "n_distinct", "classes"]
    assert list(found) == [*first, "accuracy", "majority"]


def test_what_is_stored_is_not_computed_again_and_a_change_is() -> None:
    encoded: list[int] = []
    subject = counting(of_mean(words_of(), "en"), encoded)
    tasks = {"en": [made(length, (20, 8, 9)), made(word, (20, 8, 9))]}
    once = probe([subject], tasks, **FAST)
    distinct = {t for task in tasks["en"] for part in task.parts().values() for t in part.tokens}
    assert encoded == [len(distinct)]
    pd.testing.assert_frame_equal(probe([subject], tasks, **FAST), once)
    assert len(encoded) == 1

    # Another name of the same vectors is another row, and nothing to compute.
    renamed = replace(subject, condition="again")
    again = probe([renamed], tasks, **FAST)
    assert set(again["condition"]) == {"again"}
    assert again["accuracy"].tolist() == once["accuracy"].tolist()
    assert len(encoded) == 1

    # A new task, and another draw of the second, cost their own sentences only.
    more = {"en": [*tasks["en"], made(order, (20, 8, 9))]}
    probe([subject], more, **FAST)
    new = {t for part in more["en"][2].parts().values() for t in part.tokens}
    assert encoded[1:] == [len(new)]

    # One label of a task, the key of the subject, an option: each is computed again.
    labels = tasks["en"][1].train.labels.copy()
    labels[0] = 1 - labels[0]
    changed = replace(tasks["en"][1], train=replace(tasks["en"][1].train, labels=labels))
    probe([subject], {"en": [tasks["en"][0], changed]}, **FAST)
    assert len(encoded) == 3
    other = replace(subject, about={"other": 1})
    probe([other], tasks, **FAST)
    assert len(encoded) == 4
    for option in (
        {"hidden": 5},
        {"seeds": (0,)},
        {"order": 1},
        {"control": False},
        {"patience": 1},
    ):
        before = len(encoded)
        probe([subject], tasks, **FAST | option)
        assert len(encoded) == before + 1


def test_a_run_that_was_stopped_goes_on_where_it_was() -> None:
    def fail(_: Sequence[ProbingTask]) -> Encode:
        raise RuntimeError("stopped")

    tasks = {
        language: [made(word, language=language, seed=seed)]
        for seed, language in enumerate("abcdefgh")
    }
    subjects = [of_length(language) for language in "abcdefgh"]
    with pytest.raises(RuntimeError, match=r"stopped"):
        probe([*subjects[:7], replace(subjects[7], ready=fail)], tasks, **FAST)
    again = [replace(subject, ready=fail) for subject in subjects[:6]]  # the first call: not asked
    found = probe([*again, *subjects[6:]], tasks, **FAST)
    assert found["language"].tolist() == sorted([*"abcdefgh"] * 2)


def test_what_cannot_be_probed_is_told() -> None:
    tasks = {"en": [made(word)], "de": [made(word)]}

    def call(*subjects: Subject) -> pd.DataFrame:
        return probe(subjects, tasks, **FAST)

    with pytest.raises(ValueError, match=r"two encoders are called length alone, not trained, en"):
        call(of_length("en"), of_length("de"), of_length("en"))
    with pytest.raises(ValueError, match=r"there are no tasks in fr, but de, en"):
        call(of_length("en"), of_length("fr"))
    n = len({tokens for part in tasks["en"][0].parts().values() for tokens in part.tokens})
    short = Subject("short", "made", "en", {"a": 1}, lambda _: lambda x: np.zeros((len(x) - 1, 2)))
    with pytest.raises(ValueError, match=rf"{n} sentences gave {n - 1} vectors"):
        call(short)
    void = Subject("void", "made", "en", {"a": 2}, lambda _: lambda x: np.full((len(x), 2), np.nan))
    with pytest.raises(ValueError, match=r"there is a NaN or an infinite number in its states"):
        call(void)
    assert not list(current().cache.rglob("*.parquet"))


# --- control --------------------------------------------------------------------------------------


def test_two_encoders_that_are_called_alike_are_not_mixed() -> None:
    """One `about` for two encoders gave the second one the results of the first."""
    task = made(length)
    zeros, counts = (
        (lambda x: np.zeros((len(x), 2))),
        (lambda x: np.array([[len(t), 1] for t in x])),
    )
    mine = [Subject(name, "own", "en", {"my encoder": 1}, lambda _: zeros) for name in ("a", "b")]
    with pytest.raises(ValueError, match="a, own and b, own have the same `about` in en"):
        probe(mine, {"en": [task]}, **FAST)
    other = replace(mine[1], language="de")  # as built-in ones have it in all languages
    probe([mine[0], other], {"en": [task], "de": [made(length, language="de")]}, **FAST)
    first, second = (of_function("mine", "en", encode) for encode in (zeros, counts))
    assert first.about != second.about
    encoded: list[int] = []
    for own in (first, second, first):
        probe([counting(own, encoded)], {"en": [task]}, **FAST)
    assert len(encoded) == 2  # each its own, and the first again from what is kept
    assert of_function("mine", "en", counts).about == second.about
    with pytest.raises(ValueError, match=r"mine gives 7 sentences vectors of the shape \(7,\)"):
        of_function("mine", "en", lambda x: np.zeros(len(x)))


def test_control_labels_are_dealt_to_first_words_evenly() -> None:
    rng = np.random.default_rng(0)

    def some(n: int) -> TaskPart:
        # Some words begin many sentences, most begin few.
        firsts = [f"w{int(each)}" for each in np.minimum(rng.zipf(1.6, n), 60)]
        return TaskPart(tuple((each, "x") for each in firsts), np.zeros(n, int), ("b",) * n)

    task = ProbingTask("SOMO", "en", ("a", "b", "c"), some(200), some(40), some(70), 310)
    dealt = dealt_labels(task, 0)
    assert {name: len(own) for name, own in dealt.items()} == {
        "train": 200, "validation": 40, "test": 70,
    }  # fmt: skip
    given: dict[str, set[int]] = {}
    sizes: Counter[str] = Counter()
    for name, part in task.parts().items():
        for tokens, label in zip(part.tokens, dealt[name].tolist(), strict=True):
            given.setdefault(tokens[0], set()).add(label)
            sizes[tokens[0]] += 1
    assert all(len(labels) == 1 for labels in given.values())
    counts = np.bincount(np.concatenate(list(dealt.values())), minlength=3)
    assert counts.sum() == 310
    assert counts.max() - counts.min() <= max(sizes.values())


def test_control_labels_go_to_frequent_words_first() -> None:
    firsts = "a" * 10 + "b" * 5 + "c" * 5 + "d" * 3 + "e" * 2 + "f"

    def part(letters: str) -> TaskPart:
        return TaskPart(tuple((each,) for each in letters), np.zeros(len(letters), int), ("b",))

    for seed in range(5):
        # The parts count together: "a" is the commonest in all, and in none but train.
        task = ProbingTask(
            "x", "en", ("0", "1", "2"), *map(part, (firsts[:12], firsts[12:20], firsts[20:])), 26
        )
        labels = np.concatenate(list(dealt_labels(task, seed).values())).tolist()
        of_word = dict(zip(firsts, labels, strict=True))
        # 10 | 5 | 5, then 3 to one of these, 2 and 1 to the other: 10 | 8 | 8.
        assert sorted(Counter(labels).values()) == [8, 8, 10]
        assert of_word["a"] not in {of_word[each] for each in "bcdef"}
        assert of_word["e"] == of_word["f"] != of_word["d"]


def test_control_labels_are_those_of_the_seed_and_of_no_sentence() -> None:
    task = made(lambda rng: ((f"w{rng.integers(50)}", "x"), int(rng.integers(2))))
    one, again, other = (dealt_labels(task, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(one[name], again[name]) for name in one)
    assert not all(np.array_equal(one[name], other[name]) for name in one)
    turned = replace(task, train=replace(task.train, labels=1 - task.train.labels))
    assert all(np.array_equal(one[name], own) for name, own in dealt_labels(turned, 1).items())


def test_vectors_that_hold_the_first_word_learn_the_control_task() -> None:
    def encode(sentences: Sequence[Tokens]) -> np.ndarray:
        words = [f"w{i}" for i in range(8)]
        return np.array([[tokens[0] == each for each in words] for tokens in sentences], np.float32)

    knows = Subject("first word", "made", "en", {"first": 1}, lambda _: encode)
    tasks = {"en": [made(length, (300, 60, 100))]}
    found = probe(
        [knows, of_length("en")],
        tasks,
    )
    table = cell_means(found).set_index("encoder")
    assert table.loc["first word", "control_accuracy"] == 1
    assert table.loc["length alone", "control_accuracy"] < 0.7
    assert table.loc["length alone", "selectivity"] > 0.3
    assert table.loc["first word", "selectivity"] < -0.3


# --- cells ----------------------------------------------------------------------------------------


def test_a_cell_is_the_mean_of_its_draws_and_seeds_with_an_interval_over_sentences() -> None:
    common = {"condition": "c", "n_train": 8, "n_test": 10, "classes": 2, "majority": 0.5}
    rows = [
        {"encoder": encoder, "language": "de", "task": "WC", "draw": draw, "seed": seed,
         "n_distinct": 16, "accuracy": accuracy, "control_accuracy": 0.25,
         "selectivity": accuracy - 0.25, **common}
        for encoder, shift in (("b", 0.0), ("a", 0.1))
        for draw, seed, accuracy in [(0, 0, 0.6 + shift), (0, 1, 0.7 + shift),
                                     (1, 0, 0.8 + shift), (1, 1, 0.9 + shift)]
    ]  # fmt: skip
    found = cell_means(pd.DataFrame(rows))
    assert found["encoder"].tolist() == ["b", "a"]
    assert found["accuracy"].tolist() == pytest.approx([0.75, 0.85])
    assert found["selectivity"].tolist() == pytest.approx([0.5, 0.6])
    assert found["n_distinct"].tolist() == [16, 16]
    assert found["n_test"].dtype == found["n_distinct"].dtype == int
    assert not {"draw", "seed"} & set(found)
    z, n = 1.959964, 16
    for row in found.itertuples():
        p = row.accuracy
        middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        assert (row.low, row.high) == pytest.approx((middle - half, middle + half))
    columns = list(found)
    place = columns.index("accuracy")
    assert columns[place : place + 3] == ["accuracy", "low", "high"]


# --- subjects -------------------------------------------------------------------------------------


def test_length_alone_solves_a_task_of_length_and_words_one_of_words_and_neither_one_of_order() -> (
    None
):
    sizes = (300, 80, 150)
    tasks = {"en": [made(length, sizes), made(word, sizes), made(order, sizes)]}
    subjects = [of_length("en"), of_random_words("en", dim=32)]
    options = {"seeds": (0,), "control": False}
    found = cell_means(probe(subjects, tasks, **options))
    reached = found.pivot(index="encoder", columns="task", values="accuracy")
    assert reached.loc["length alone", "length"] == 1
    assert reached.loc["bag of words", "word"] > 0.95
    assert abs(reached.loc["length alone", ["word", "order"]] - 0.5).max() < 0.15
    assert abs(reached.loc["bag of words", "order"] - 0.5) < 0.15


def test_random_words_are_the_same_for_a_word_wherever_it_is() -> None:
    subject = of_random_words("en", dim=5)
    encode = subject.ready([])
    one, other = encode([("a", "b")]), encode([("z", "b"), ("b", "a", "a", "b")])
    assert one.dtype == np.float32
    np.testing.assert_allclose(other[1], one[0], atol=1e-6)
    apart = of_random_words("en", dim=5, seed=1)
    assert not np.allclose(apart.ready([])([("a", "b")]), one)
    assert apart.about != subject.about != of_random_words("en", dim=6).about


def test_the_mean_of_words_counts_each_as_often_as_it_stands_there() -> None:
    lookup = words_of()
    no, yes = lookup.load()(["no", "yes"])
    found = of_mean(lookup, "en").ready([made(word)])([("yes",), ("no", "yes", "no")])
    np.testing.assert_allclose(found, [yes, (2 * no + yes) / 3], rtol=1e-6)
    assert identity(of_mean(words_of(), "en")) == identity(of_mean(lookup, "de"))
    assert identity(of_mean(words_of(seed=1), "en")) != identity(of_mean(lookup, "en"))


def test_a_table_of_words_looks_each_word_of_the_tasks_up_once() -> None:
    asked = []

    def lookup(words: Sequence[str]) -> np.ndarray:
        asked.append(list(words))
        return np.array([[len(each), 1.0] for each in words])

    tasks = [made(word, (4, 2, 2)), made(length, (4, 2, 2))]
    table = WordTable.of(tasks, lookup)
    parts = [part for task in tasks for part in task.parts().values()]
    words = sorted({token for part in parts for tokens in part.tokens for token in tokens})
    assert asked == [words]
    assert table.vectors.dtype == np.float32
    assert table(["yes", "w1"]).tolist() == [[3, 1], [2, 1]]
    with pytest.raises(KeyError, match=r"never"):
        table(["yes", "never"])


TINY = Sizes(
    words=6, hidden=4, layers=1, dropout=0.0, channels=5, projection=8, attention=3, heads=2
)


def identity(subject: Subject) -> str:
    return CELLS.ask(subject.about).identity


def test_an_encoder_over_word_vectors_gives_its_vectors() -> None:
    texts, lookup = [("no", "w1", "yes"), ("w2",)], words_of()
    names = set()
    for name in ("cnn-max", "rnn-last"):
        recipe = Untrained(name, TINY, 1)
        subject = of_encoder(recipe, lookup, "de", "random")
        assert (subject.condition, subject.language) == ("random", "de")
        assert subject.encoder == sentence_encoders.ENCODER_NAMES[name]
        own = Sentences.of(texts, lookup.load())
        np.testing.assert_array_equal(
            subject.ready([made(word)])(texts),
            sentence_encoders.encode(name, TINY, recipe.state(), own),
        )
        others = ((Untrained(name, TINY, 2), lookup), (recipe, words_of(seed=1)))
        names |= {identity(subject)}
        names |= {identity(of_encoder(*each, "de", "random")) for each in others}
    assert len(names) == 6


def test_a_layer_of_a_model_reads_tokens_with_spaces_between() -> None:
    texts = [("the", "dog", "barks", "."), ("a", "cat"), ("im", "haus", "!")]
    subject = of_model("mini-xlmr", "en", 2)
    assert (subject.encoder, subject.condition) == ("mini-xlmr, layer 2", "pretrained")
    own = embeddings.embed(loading.load("mini-xlmr"), [" ".join(tokens) for tokens in texts])
    np.testing.assert_allclose(subject.ready([])(texts), own.states[2], atol=1e-6)
    with xlx.settings(dtype="bfloat16"):
        rounded = of_model("mini-xlmr", "en", 2)
    # The precision is that of when the subject was made.
    apart = np.abs(rounded.ready([])(texts) - own.states[2]).max()
    assert 1e-4 < apart < 1
    others = [of_model("mini-xlmr", "en", 1), of_model("mini-xlmr", "en", 2, pooling="cls")]
    assert len({identity(each) for each in (subject, rounded, *others)}) == 4
    for layer in (-1, 7):
        with pytest.raises(ValueError, match=rf"mini-xlmr has the layers 0 to 6, and not {layer}"):
            of_model("mini-xlmr", "en", layer).ready([])(texts)
