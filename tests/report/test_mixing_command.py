"""`xlx mixing`: its rows against the library's, what is stored, labels, what it refuses."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests import tiny
from tests.experiment.test_asked_models import headed
from xlx.experiment import grids
from xlx.measures import mixing
from xlx.report import mixing_command
from xlx.subjects import loading
from xlx.subjects.predicting import Headed
from xlx.text import labelled, questions

THREE = {0: "CONTRADICTION", 1: "Neutral", 2: "Entailment"}
SMALL = ["--languages", "en,de,zh", "--pairs", "12"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return headed(tmp_path_factory.mktemp("models") / "nli", id2label=THREE)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("models") / "reader"
    return headed(folder, head="QuestionAnswering", positions=256)


def check_rows(folder: Path, expected: dict[tuple[str, str], pd.DataFrame], printed: int) -> None:
    """What is written is what the library has, by what is asked and label, and printed rows."""
    table = pd.read_csv(folder / "mixing.csv")
    for (asked, label), rows in expected.items():
        written = table[(table["asked"] == asked) & (table["label"] == label)]
        for column in ("score", "low", "high"):
            np.testing.assert_allclose(written[column], rows[column], atol=1e-4)
    assert (folder / "mixing.html").read_text().count("<td>printed</td>") == printed


def test_rows_are_those_of_the_library(
    model: str, tmp_path: Path, shown: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["mixing", model, *SMALL, "--out", tmp_path]
    output, codes = shown(*given), ["en", "de", "zh"]
    assert "12 pairs in 3 languages, 144 inputs" in output
    sets, _ = labelled.parallel_examples("NLI", codes, "test", source="xnli-whole")
    sets = {code: part.take(12, 1) for code, part in sets.items()}
    alone = {code: replace(part, first=part.second, second=None) for code, part in sets.items()}
    (both,), (second,) = (grids.grid([Headed(model)], x) for x in (sets, alone))
    right = [x.scores["accuracy"] for x in (both, second)]
    shared, merged = (codes, both.groups), {"entailment": [0], "not-entailment": [1, 2]}
    expected = {
        (asked, label): rows
        for asked, part in zip(("both texts", "second text alone"), right, strict=True)
        for label, rows in mixing.by_label(part, sets["en"].labels, merged, *shared).groupby(
            "label"
        )
    }
    expected["both texts", "all"] = mixing.summary(right[0], *shared)
    expected["second text alone", "all"] = mixing.summary(right[1], *shared)
    expected["what the first adds", "all"] = mixing.paired_difference(*right, *shared)
    check_rows(tmp_path, expected, 3 * 3)  # three models, all and two labels
    assert all(line in (tmp_path / "mixing.html").read_text() for line in output.splitlines()[2:5])
    monkeypatch.setattr(loading, "headed_model", lambda *_, **__: pytest.fail("asked again"))
    assert "nothing is computed" in shown(*given)


def test_a_reader_is_asked_with_and_without_a_question(
    reader: str, tmp_path: Path, shown: Callable[..., str]
) -> None:
    given = ["mixing", reader, "--languages", "english,zh", "--pairs", "5", "--out", tmp_path]
    output = shown(*given, "--estimate")
    assert "5 questions in 2 languages, 30 inputs\ncomputing 30 inputs: about" in output
    output, codes = shown(*given), ["en", "zh"]
    sets, _ = questions.parallel_questions("xquad", codes, per_context=1)
    sets = {code: part.take(5, 1) for code, part in sets.items()}
    blank = {code: questions.questionless(part) for code, part in sets.items()}
    (both,), (alone,) = (grids.grid([Headed(reader)], x) for x in (sets, blank))
    several = {x.model: x for x in grids.without_reading(sets)}
    assert len(several) == 3
    several |= {"question and context": both, "context alone": alone}
    expected = {
        (asked, label): mixing.summary(x.scores[f"{label}, SQuAD"], codes, np.arange(5))
        for asked, x in several.items()
        for label in ("F1", "EM")
    }
    check_rows(tmp_path, expected, 3 * 2)  # three models, two scores
    assert both.n_cut.sum()
    assert f"{both.n_cut.sum()} of 20 inputs were longer" in output


def test_more_questions_than_paragraphs() -> None:
    sets = mixing_command.asked_sets(mixing_command.READER, ["en", "de"], 300)
    assert [len(part) for part in sets.values()] == [300, 300]
    assert len(set(sets["de"].contexts)) > 150


def test_one_answer_to_everything_is_told_and_printed_rows_are_sorted() -> None:
    classes = ("entailment", "neutral")
    (line,) = mixing_command.one_answer(np.ones((2, 2, 3), int), classes)
    assert line.startswith("it answers neutral to every input")
    assert mixing_command.one_answer(np.arange(8).reshape(2, 2, 2) % 2, classes) == []
    task = next(x for x in mixing_command._TASKS if x.task == "NLI")
    printed = mixing_command.printed_rows_of((1, 5, 10, 11), ["all", *task.merged])
    ours = printed[printed["model"] == "mBERT"].assign(model="a", asked=task.asked[0])
    table = mixing_command.means_beside(
        pd.concat([ours, printed.assign(asked=mixing_command.PRINTED)]), task
    )
    rows = table.loc[table["asked"] == mixing_command.PRINTED, ["model", "label"]].to_numpy()
    labels = ["all", *task.merged]
    assert [*map(tuple, rows)] == [(x, y) for x in ("InfoXLM", "XLM-R", "mBERT") for y in labels]
    assert (table["asked"].iloc[:3] == task.asked[0]).all()


def test_printed_rows_are_means_as_printed() -> None:
    labels = ["all", "entailment", "not-entailment"]
    printed = mixing_command.printed_rows_of((1, 5), labels)
    rows = printed[printed["language"] == mixing.OVERALL].set_index(["model", "label", "setting"])
    table = pd.read_csv("data/published/within_across/table1_nli.csv")
    means = table.query("language == 'avg' and model == 'mBERT'").set_index("setting")["value"]
    for setting in ("within", "across"):
        assert rows.loc[("mBERT", "all", setting), "score"] == pytest.approx(means[setting] / 100)
    assert [*printed["label"].unique()] == labels


@pytest.mark.parametrize(
    ("names", "labels", "classes"),
    [
        (["not_entailment", "ENTAILMENT"], [], ("not-entailment", "entailment")),
        (["not_paraphrase", "paraphrase"], [], ("different", "paraphrase")),
        (["LABEL_0", "LABEL_1"], ["Equivalent", "not equivalent"], ("paraphrase", "different")),
    ],
)
def test_labels_of_heads(
    names: list, labels: list, classes: tuple, tmp_path: Path, shown: Callable[..., str]
) -> None:
    model = headed(tmp_path / "own", id2label=dict(enumerate(names)))
    given = ["--languages", "en,fr", "--pairs", 8, "--out", tmp_path]
    output = shown("mixing", model, *given, *(["--labels", ",".join(labels)] if labels else []))
    assert f"its labels are {', '.join(classes)}" in output
    assert {*pd.read_csv(tmp_path / "mixing.csv")["label"]} == {"all", *classes}


def test_what_cannot_be_asked_is_said_in_a_sentence(
    model: str, reader: str, tmp_path: Path, refused: Callable[..., str]
) -> None:
    bare = str(tiny.save(tmp_path / "bare", "xlm-roberta"))
    single = headed(tmp_path / "single", id2label={0: "LABEL_0"})
    unnamed = headed(tmp_path / "unnamed", id2label=dict(enumerate(["LABEL_0", "LABEL_1"])))
    for given, says in (
        ([model, "--languages", "en"], "two languages or more"),
        ([model, "--labels", "yes,no,perhaps"], "of no task here"),
        ([model, "--labels", "entailment,neutral"], "--labels names 2, and the head has 3"),
        ([bare], "has no head for a task here"),
        ([unnamed], "--labels "),
        ([single], "outputs: 1): give a model"),
        ([reader, "--labels", "a,b"], "leave out --labels"),
        ([reader, "--languages", "en,fr"], "shipped in fr; there is"),
    ):
        assert says in refused("mixing", *given)
