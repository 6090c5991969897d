"""X-Probe's tasks of parallel sentences, and probes of all layers that read each sentence once."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests import tiny
from tests.tables import of
from xlx.experiment import sentence_probes
from xlx.experiment.scoring import BagOfSubwords, FunctionSubject
from xlx.experiment.sentence_probes import SENTENCE_PROBES, dealt_labels, probe_sentences
from xlx.measures import probes
from xlx.measures.sentence_tasks import ProbingTask, Rules, parallel_tasks
from xlx.subjects import loading, states
from xlx.text.trees import Tree, Trees

#: Half of the sentences in the past; forms tell the language.
RULES = Rules(lengths=(3, 9), n_words=2, first_rank=0, letters=4)


def trees(language: str, source: str, n: int, names: str = "") -> Trees:
    made = []
    for i in range(n):
        words = (("was", "is")[i % 2], ("pear", "plum")[i // 2 % 2], f"{names}{language}{i}x", "z")
        features = ({"Tense": ("Past", "Pres")[i % 2]}, {}, {}, {})
        made.append(
            Tree(
                str(i),
                language,
                words,
                (0, 1, 1, 1),
                ("root", "dep", "dep", "dep"),
                ("VERB", "X", "X", "X"),
                features,
                words,
                (0, 1, 2, 3),
            )
        )
    return Trees(language, source, tuple(made))


@pytest.fixture(scope="module")
def tasks() -> dict[str, list[ProbingTask]]:
    stock = {x: [trees(x, "ud", 80), trees(x, "pud", 60, "p")] for x in ("en", "de")}
    return parallel_tasks(stock, ("Tense", "BiShift", "WC"), rules=RULES, most=90)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny.save(tmp_path_factory.mktemp("models") / "tiny", layers=2, width=16))


FAST = {"seeds": (0, 4), "max_epochs": 3}


def test_no_translation_of_a_test_sentence_is_trained_on(tasks) -> None:
    for name in ("Tense", "BiShift"):
        tested = {code: [] for code in tasks}
        for draw in (0, 1):
            own = {x: [t for t in of if t.name == name][draw] for x, of in tasks.items()}
            bases = {x: set(task.test.bases) for x, task in own.items()}
            for code, task in own.items():
                known = {*task.train.bases, *task.validation.bases}
                assert not known & set.union(*bases.values())
                assert {base.partition(":")[0] for base in bases[code]} == {"pud"}
                tested[code] += [*bases[code]]
                assert np.ptp(np.bincount(task.test.labels)) == 0
        # every sentence is in one fold; balance leaves out some of the two tenses
        assert all(len(x) == len(set(x)) >= 50 for x in tested.values())
        assert len(own["en"].train) + len(own["en"].validation) == 88
    words = [task for task in tasks["de"] if task.name == "WC"]
    assert {base.partition(":")[0] for task in words for base in task.test.bases} == {"ud", "pud"}


def test_what_a_language_has_too_little_of_is_left_out() -> None:
    stock = {x: [trees(x, "ud", n), trees(x, "pud", 3)] for x, n in (("en", 80), ("de", 5))}
    made = parallel_tasks(stock, ("Tense", "WC"), rules=RULES)
    assert [task.name for task in made["en"]] == ["WC", "WC"]
    assert made["de"] == []


def test_every_sentence_goes_through_the_model_once(tasks, model: str, monkeypatch) -> None:
    rows, forward = [], states.hidden_states
    monkeypatch.setattr(
        states, "hidden_states", lambda encoder, of: rows.extend(of) or forward(encoder, of)
    )
    table = probe_sentences([model], tasks, across=True, **FAST)
    parts = [
        (code, part) for code, own in tasks.items() for x in own for part in x.parts().values()
    ]
    sentences = {(code, tokens) for code, part in parts for tokens in part.tokens}
    assert len(rows) == len(sentences)
    assert sorted(set(table["layer"])) == [0, 1, 2]
    again = probe_sentences([model], tasks, across=True, **FAST)
    assert len(rows) == len(sentences)
    np.testing.assert_array_equal(again["accuracy"], table["accuracy"])
    # tests in other languages, another option: each is an ask of its own
    probe_sentences([model], {"en": tasks["en"][:1]}, **FAST)
    assert len(rows) > len(sentences)


def test_numbers_are_those_of_probes_called_by_hand(tasks, model: str) -> None:
    table = probe_sentences([model], tasks, across=True, **FAST)
    encoder = loading.load(model)
    english, german = (next(x for x in tasks[code] if x.name == "Tense") for code in ("en", "de"))

    def vectors(part) -> np.ndarray:
        return states.embed(encoder, [" ".join(tokens) for tokens in part.tokens]).states

    splits = [probes.Split(vectors(part), part.labels) for part in english.parts().values()]
    own = of(table, task="Tense", draw=0, source="en")
    alone = probes.evaluate_probes(*splits, 2, **FAST)
    here = of(own, target="en")
    for name in ("accuracy", "n_train", "n_test"):
        assert here[name].tolist() == pytest.approx(alone[name].tolist(), rel=1e-5), name
    bits, uniform = probes.code_length(*splits[:2], 2, **FAST)
    assert here["bits"].tolist() == pytest.approx(bits.ravel().tolist(), rel=1e-4)
    assert here["compression"].tolist() == pytest.approx((uniform[:, None] / bits).ravel().tolist())
    dealt = dealt_labels(english, 0).values()
    control = [replace(x, labels=labels) for x, labels in zip(splits, dealt, strict=True)]
    reached = probes.evaluate_probes(*control, 2, **FAST)["accuracy"]
    assert here["control_accuracy"].tolist() == pytest.approx(reached.tolist())
    abroad = probes.fit(*splits[:2], 2, **FAST).predict(vectors(german.test))
    right = probes.accuracy(abroad, german.test.labels)
    there = of(own, target="de")
    assert there["accuracy"].tolist() == pytest.approx(right.ravel().tolist())
    assert there[["bits", "control_accuracy", "selectivity"]].isna().all(axis=None)
    # words differ by language where their order does, so WC is read at home alone, if at all abroad
    assert set(of(table, task="BiShift")["target"]) == {"en", "de"}


def test_classes_of_other_words_are_not_read_abroad(tasks) -> None:
    other = replace(next(x for x in tasks["de"] if x.name == "WC"), classes=("a", "b"))
    first = next(x for x in tasks["en"] if x.name == "WC")
    cells = sentence_probes.probed_tasks({"en": [first], "de": [other]}, across=True)
    assert [list(cell.tests) for cell in cells] == [["en"], ["de"]]
    assert sentence_probes.probed_tasks({"en": [first]})[0].tests["en"] is first.test


def test_planted_codes_solve_their_own_tasks(tasks, model: str) -> None:
    def tense(texts, language: str) -> np.ndarray:
        return np.array([[("was" in x.split()) - 0.5, language == "de"] for x in texts])

    subjects = [FunctionSubject("tense", function=tense), BagOfSubwords(model)]
    table = probe_sentences(subjects, {x: own[:4] for x, own in tasks.items()}, across=True)
    means = table.groupby(["model", "task"])["accuracy"].mean()
    assert means["tense", "Tense"] == 1
    assert abs(means["tense", "BiShift"] - 0.5) < 0.1
    assert means["a bag of subwords", "Tense"] > 0.9
    assert abs(means["a bag of subwords", "BiShift"] - 0.5) < 0.1
    own = table[table["source"] == table["target"]]
    bits = own.groupby(["model", "task"])["compression"].mean()
    assert bits["tense", "Tense"] > 1.15 > 1.05 > bits["tense", "BiShift"]
    # a first word's label is learnt where the vector has that word
    assert own.groupby("model")["control_accuracy"].mean()["tense"] > 0.5


@pytest.mark.parametrize(
    ("subjects", "made", "message"),
    [
        ([], ["en"], "no subjects are given"),
        (
            [FunctionSubject("f", function=lambda x, _: np.ones((len(x), 1)))],
            [],
            "no tasks are given",
        ),
        (
            [FunctionSubject("f", function=lambda x, _: np.ones((1, 1)))],
            ["en"],
            r"\d+ sentences gave 1",
        ),
    ],
)
def test_what_cannot_be_probed_is_told(tasks, subjects, made, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        probe_sentences(subjects, {code: tasks[code] for code in made}, **FAST)


def test_values_are_apart_by_accuracy_and_bits() -> None:
    value = {
        "right": np.full((1, 2, 2), 5),
        "n_test": np.array([10]),
        "control_accuracy": np.full((2, 2), 0.5),
        "bits": np.full((2, 2), 30.0),
    }
    for change, expected in (
        ({}, 0),
        ({"right": np.full((1, 2, 2), 6)}, 0.1),
        ({"bits": np.full((2, 2), 20.0)}, 0.5 / 3),
        ({"n_test": np.array([11])}, np.inf),
    ):
        assert SENTENCE_PROBES.difference(value, value | change) == pytest.approx(expected)


def test_a_series_is_probed_by_checkpoint(tasks, tmp_path: Path) -> None:
    series = tiny.series(tmp_path / "mine", (0, 10), layers=1, width=16)
    names = [str(series / "step-000000"), str(series / "step-000010")]
    table = probe_sentences(names, {"en": tasks["en"][:1]}, **FAST)
    assert len(table.groupby(["model", "checkpoint"])) == 2


@pytest.mark.parametrize("seed", range(5))
def test_an_interval_stays_where_scores_live_and_needs_three_languages(seed: int) -> None:
    drawn = np.random.default_rng(seed).uniform(0.5, 1, 3).round(3)
    accuracy = [*drawn, 0.05, 0.581, 0.5, 1]
    by = ["a"] * 3 + ["b"] * 2 + ["c"] * 2
    codes = [*"xyz", *"xy", *"xy"]
    cells = pd.DataFrame({"task": by, "source": codes, "target": codes, "accuracy": accuracy})
    share = sentence_probes.over_languages(cells, ["task"]).set_index("task")
    assert share["accuracy"].tolist() == pytest.approx([drawn.mean(), 0.3155, 0.75])
    assert share.loc[["b", "c"], ["low", "high"]].isna().all(axis=None)
    ends = stats.ttest_1samp(drawn, 0).confidence_interval()
    assert share.loc["a", ["low", "high"]].tolist() == pytest.approx(np.clip(ends, 0, 1))
    more = sentence_probes.over_languages(
        cells.assign(accuracy=-cells["accuracy"]), ["task"], (-1, 1)
    )
    ends = stats.ttest_1samp(-drawn, 0).confidence_interval()
    assert more.loc[0, ["low", "high"]].tolist() == pytest.approx(np.clip(ends, -1, 1))


def test_a_text_of_another_source_and_a_mistyped_option_are_named(tasks) -> None:
    one_text = {"bg": [trees("bg", "own", 80)]}
    with pytest.raises(ValueError, match=r"^bg has trees of own and none of pud, "):
        parallel_tasks(one_text, ("Tense",), rules=RULES)
    assert parallel_tasks(one_text, ("Tense",), source="own", rules=RULES)["bg"]
    with pytest.raises(ValueError, match=r"^there is no option of a probe 'pateince': choose hid"):
        probe_sentences([FunctionSubject("length", function=len)], tasks, pateince=2)
