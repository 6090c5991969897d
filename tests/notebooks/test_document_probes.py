"""Probes by document: ridge beside scikit-learn, folds, differences, a null that can fail."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge as PrimalRidge

from shared import document_probes, ridge, xprobe_tables
from shared.document_probes import (
    against_best,
    document_tasks,
    home_tasks,
    labels_alike,
    same_label,
)
from tests.experiment.test_sentence_probes import RULES, trees
from xlx.experiment.scoring import FunctionSubject
from xlx.measures import statistics
from xlx.measures.sentence_tasks import document, parallel_tasks


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_penalty_is_chosen_on_groups_left_out(n_classes: int) -> None:
    rng = np.random.default_rng(n_classes)
    groups, labels = np.repeat(np.arange(20), 3), rng.integers(0, n_classes, 60)
    states = rng.normal(size=(60, 8)) + 2 * np.eye(8)[labels]
    test = rng.normal(size=(9, 8))
    fit = ridge.fit_ridge(states, labels, groups, [test], n_classes)
    mean, scale = states.mean(axis=0), states.std(axis=0)
    x, z = (np.pad((y - mean) / scale, ((0, 0), (0, 1)), constant_values=1) for y in (states, test))
    x[:, :-1], z[:, :-1] = x[:, :-1] / np.sqrt(8), z[:, :-1] / np.sqrt(8)
    targets, errors = np.eye(n_classes)[labels] - 1 / n_classes, []
    for penalty in ridge.PENALTIES:
        model, squares = PrimalRidge(penalty, fit_intercept=False), []
        for part in range(ridge.N_PARTS):
            out = groups % ridge.N_PARTS == part
            predicted = model.fit(x[~out], targets[~out]).predict(x[out])
            squares.append((predicted - targets[out]) ** 2)
        errors.append(np.mean(np.concatenate(squares)))
    assert fit.error == pytest.approx(min(errors))
    best = PrimalRidge(ridge.PENALTIES[int(np.argmin(errors))], fit_intercept=False)
    assert (fit.predicted[0] == best.fit(x, targets).predict(z).argmax(axis=1)).all()


def test_ridge_refuses_a_single_group() -> None:
    with pytest.raises(ValueError, match="of one group"):
        ridge.fit_ridge(np.eye(4), np.array([0, 1, 0, 1]), ["a"] * 4, [], 2)


@pytest.mark.parametrize("ask", [document_tasks, home_tasks])
def test_no_document_is_learnt_from_and_tested_on(ask: Callable) -> None:
    tasks = ask(("en", "de"))
    tested: dict[tuple, list] = {}
    for code, several in tasks.items():
        for task in several:
            known = {document(x) for x in (*task.train.bases, *task.validation.bases)}
            here = {document(x) for x in task.test.bases}
            assert here
            assert not known & here
            tested.setdefault((code, task.name), []).append(here)
    assert all(len(folds) == 4 and not folds[0] & folds[1] for folds in tested.values())
    assert {name for _, name in tested} in ({*document_probes.TASKS}, {*document_probes.AT_HOME})


def test_documents_are_dealt_anew_by_each_split() -> None:
    tests = [x.test.bases for x in document_tasks(("en",))["en"] if x.name == "Tense"]
    folds = [{*map(document, x)} for x in tests]
    others = [x.test.bases for x in document_tasks(("en",), split=1)["en"] if x.name == "Tense"]
    assert len({len(folds[0] & {*map(document, x)}) for x in others}) > 1  # not dealt alike


def test_answers_are_those_of_the_layer_with_the_least_error() -> None:
    """A subject that knows the tense, and one that knows the sentence's number alone."""
    stock = {}
    for code in ("en", "de"):
        made = trees(code, "pud", 80)
        named = tuple(replace(x, id=f"d{i // 3}{i:03}") for i, x in enumerate(made))
        stock[code] = [replace(made, trees=named)]
    tasks = parallel_tasks(stock, ("Tense",), rules=RULES, folds=2, split=0)

    def knows(texts: list[str], language: str) -> np.ndarray:
        return np.array([[float(text.startswith("was")), len(text)] for text in texts])

    def guesses(texts: list[str], language: str) -> np.ndarray:
        return np.array([[float(len(text.split()[2]))] for text in texts])

    subjects = [
        FunctionSubject("knows", function=knows),
        FunctionSubject("guesses", function=guesses),
    ]
    words = xprobe_tables.Reader("words")
    tables = [document_probes.document_probes(x, tasks, True) for x in (*subjects, words)]
    layers, answers = map(pd.concat, zip(*tables, strict=True))
    shares = layers.groupby("model")["accuracy"].mean()
    assert shares["knows"] == 1
    assert shares["guesses"] < 0.7
    assert (answers.groupby("model")["right"].mean() - shares).abs().max() < 0.05
    assert (layers.groupby("model")["n"].sum() == answers.groupby("model").size()).all()
    home = answers[answers["source"] == answers["target"]]
    assert home[home["model"] == "words"]["right"].all()  # "was" and "is"
    row = against_best(home, "guesses", ["knows", "words"]).loc["Tense"]
    assert (row["rival_accuracy"], row["high"] < 0) == (1, True)
    part = home.pivot(index=["source", "base"], columns="model", values="right").astype(float)
    groups = part.index.get_level_values("base").map(document)
    expected = statistics.mean_interval((part["guesses"] - part["knows"]).to_numpy(), groups)
    assert tuple(row[["difference", "low", "high"]]) == pytest.approx(expected)


def test_a_model_is_compared_on_the_tasks_that_it_was_asked() -> None:
    """A held-out model lacks a task, and the rival's twin is not there."""
    rows = [
        (model, task, f"pud:n{i // 2:03}{i:03}", right)
        for model, tasks, right in (("A", "x", 1), ("B", "xy", 0), ("words", "xy", 1))
        for task in tasks
        for i in range(20)
    ]
    answers = pd.DataFrame(rows, columns=["model", "task", "base", "right"])
    answers = answers.assign(source="en", target="en", label=0)
    labels = answers[["task", "base", "label"]].assign(language="en").drop_duplicates()
    table = document_probes.by_model(answers, labels, ["A", "B"], ["words"]).loc["home"]
    assert table["difference"].to_dict() == {("A", "x"): 0, ("B", "x"): -1, ("B", "y"): -1}


def test_labels_alike_are_a_share_of_what_both_can_use() -> None:
    rows = [("a", 0, 0), ("b", 0, 1), ("c", 1, 1), ("d", 1, None)]
    labels = pd.DataFrame(
        [
            ("Tense", code, base, label)
            for base, *pair in rows
            for code, label in zip(("en", "de"), pair, strict=True)
            if label is not None
        ],
        columns=["task", "language", "base", "label"],
    )
    table = labels_alike(labels).set_index(["source", "target"])
    assert table.loc[("en", "de"), ["alike", "n"]].tolist() == [
        0.75,
        3,
    ]  # of class 0 all, of 1 half
    answers = labels.rename(columns={"language": "target"}).assign(source="en", right=True)
    answers = answers[answers["target"] == "de"]
    assert same_label(answers, labels)["base"].tolist() == ["a", "c"]


@pytest.mark.slow
def test_two_halves_of_the_documents_differ_by_chance_alone() -> None:
    """The gate of the intervals: of 20 splits 93 to 97 % hold 0, or more, on each task."""
    rows = []
    for split in range(1, 21):
        tasks = document_tasks(folds=2, split=split)
        reader = xprobe_tables.Reader("words and endings")
        answers = document_probes.document_probes(reader, tasks)[1]
        for (task, _), part in answers.groupby(["task", "source"]):
            if part["draw"].nunique() < 2:  # too few objects in one half
                continue
            (first, low, _), (second, other, _) = (
                statistics.mean_interval(x["right"].to_numpy(float), x["base"].map(document))
                for _, x in part.groupby("draw")
            )
            rows.append((task, abs(first - second) <= np.hypot(first - low, second - other)))
    shares = pd.DataFrame(rows, columns=["task", "held"]).groupby("task")["held"].mean()
    assert shares.between(0.93, 0.99).all(), shares.to_dict()
