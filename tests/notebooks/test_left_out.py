"""Probes of all other languages beside a literal fit, and worlds with and without a shared sign."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from shared import left_out, ridge, xprobe_tables
from shared.left_out import OTHERS, against_sources, left_out_probes
from tests.experiment.test_sentence_probes import RULES, trees
from xlx.experiment.scoring import FunctionSubject
from xlx.measures.sentence_tasks import ProbingTask, document, parallel_tasks

LANGUAGES = ("en", "de", "fr")


@pytest.fixture(scope="module")
def tasks() -> dict[str, list[ProbingTask]]:
    """Tense in three languages, in folds of documents of three sentences."""
    stock = {}
    for code in LANGUAGES:
        made = trees(code, "pud", 80)
        named = tuple(replace(x, id=f"d{i // 3}{i:03}") for i, x in enumerate(made))
        stock[code] = [replace(made, trees=named)]
    return parallel_tasks(stock, ("Tense",), rules=RULES, folds=2, split=0)


def marked(signs: dict[str, float]) -> FunctionSubject:
    """A subject that marks tense by one number, with the sign of its language, beside noise."""

    def vectors(texts: list[str], language: str) -> np.ndarray:
        tense = np.array([text.startswith("was") for text in texts]) - 0.5
        noise = [[sum(map(ord, text[4:])) % n for n in (5, 7)] for text in texts]
        return np.stack([np.column_stack([x * tense, noise]) for x in (0, signs[language])])

    return FunctionSubject(f"marks {signs}", function=vectors)


def test_what_is_shared_is_read_and_what_is_turned_is_not(
    tasks: dict[str, list[ProbingTask]],
) -> None:
    shared = left_out_probes(marked(dict.fromkeys(LANGUAGES, 1.0)), tasks)
    assert shared["right"].all()
    assert set(shared["layer"]) == {1}
    assert set(shared["source"]) == {OTHERS}
    turned = left_out_probes(marked({"en": -1.0, "de": 1.0, "fr": 1.0}), tasks)
    shares = turned.groupby("target")["right"].mean()
    assert shares["en"] < 0.1
    words = left_out_probes(xprobe_tables.Reader("words"), tasks)
    assert words["right"].all()  # "was" and "is" are words of all three here


@pytest.mark.parametrize("times", [1, 3])
def test_answers_are_those_of_a_literal_fit(
    tasks: dict[str, list[ProbingTask]], times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(left_out, "TIMES", times)
    subject = marked({"en": 1.0, "de": 0.2, "fr": -0.1})
    answers, literal = left_out_probes(subject, tasks), []
    for fold in range(2):
        mean = np.mean([len(tasks[code][fold].train) for code in LANGUAGES])
        for target in LANGUAGES:
            learnt, labels, bases = [], [], []
            for code in LANGUAGES:
                if code != target:
                    part = tasks[code][fold].train
                    n = min(len(part), int(np.ceil(times * mean / 2)))
                    texts = [" ".join(tokens) for tokens in part.tokens[:n]]
                    learnt.append(subject.sentences(texts, code))
                    labels += part.labels[:n].tolist()
                    bases += part.bases[:n]
            test = tasks[target][fold].test
            read = subject.sentences([" ".join(tokens) for tokens in test.tokens], target)
            documents = [document(base) for base in bases]
            fits = [
                ridge.fit_ridge(np.concatenate(x), np.array(labels), documents, [y], 2)
                for x, y in zip(zip(*learnt, strict=True), read, strict=True)
            ]
            best = min(fits, key=lambda fit: fit.error)
            right = best.predicted[0] == test.labels
            literal.append(pd.DataFrame({"target": target, "base": test.bases, "right": right}))
    expected = pd.concat(literal).set_index(["target", "base"])["right"].sort_index()
    given = answers.set_index(["target", "base"])["right"].sort_index()
    pd.testing.assert_series_equal(given, expected)


def test_a_source_is_no_rival_in_its_own_language() -> None:
    rows = [
        (source, target, f"pud:n0{i}001", source == OTHERS or i > 1)
        for source in (OTHERS, "en", "de")
        for target in LANGUAGES
        for i in range(4)
        if source != target
    ]
    answers = pd.DataFrame(rows, columns=["source", "target", "base", "right"])
    answers = answers.assign(model="any", task="Tense", label=0)
    row = against_sources(answers, ["en"]).loc["Tense"]
    assert (row["accuracy"], row["rival_accuracy"]) == (1, 0.5)
    both = left_out.against_sources(answers, ["en", "de"]).loc["Tense"]
    assert both["rival_accuracy"] == 0.5  # French alone has both rivals
