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
from xlx.report import command, mixing_command
from xlx.subjects import loading
from xlx.subjects.predicting import Headed
from xlx.text import labelled, questions

THREE = {0: "CONTRADICTION", 1: "Neutral", 2: "Entailment"}
SMALL = ["--languages", "en,de,zh", "--pairs", "12"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return headed(tmp_path_factory.mktemp("models") / "nli", id2label=THREE)


def test_rows_are_those_of_the_library(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["mixing", model, *SMALL, "--out", str(tmp_path / "out")]
    assert command.main(given) == 0
    said = capsys.readouterr().out
    assert "12 pairs in 3 languages, 144 inputs" in said
    table = pd.read_csv(tmp_path / "out" / "mixing.csv")
    codes = ["en", "de", "zh"]
    sets, _ = labelled.parallel_examples("NLI", codes, "test", source="xnli-whole")
    sets = {code: part.take(12, 1) for code, part in sets.items()}
    asked = {
        "both texts": sets,
        "second text alone": {
            code: replace(part, first=part.second, second=None) for code, part in sets.items()
        },
    }
    right = {}
    for what, of in asked.items():
        (grid,) = grids.grid([Headed(model)], of)
        right[what] = grid.scores["accuracy"]
        groups = grids.groups_of(sets["en"])
        expected = [mixing.summary(right[what], codes, groups)]
        merged = {"entailment": [0], "not-entailment": [1, 2]}
        expected.append(mixing.by_label(right[what], sets["en"].labels, merged, codes, groups))
        for rows, is_all in zip(expected, (True, False), strict=True):
            own = table[(table["asked"] == what) & ((table["label"] == "all") == is_all)]
            for column in ("score", "low", "high"):
                np.testing.assert_allclose(own[column], rows[column], atol=1e-4)
    gap = mixing.paired_difference(*right.values(), codes, groups)
    own = table[table["asked"] == "what the first adds"]
    np.testing.assert_allclose(
        own[["score", "low", "high"]], gap[["score", "low", "high"]], atol=1e-4
    )
    page = (tmp_path / "out" / "mixing.html").read_text(encoding="utf-8")
    assert all(line in page for line in said.splitlines()[2:5])
    assert page.count("<td>printed</td>") == 3 * 3  # three models, all and two labels
    monkeypatch.setattr(loading, "headed_model", lambda *_, **__: pytest.fail("asked again"))
    assert command.main(given) == 0


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> str:
    return headed(
        tmp_path_factory.mktemp("models") / "reader", head="QuestionAnswering", positions=256
    )


def test_a_reader_is_asked_with_and_without_a_question(
    reader: str, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["mixing", reader, "--languages", "en,zh", "--pairs", "5"]
    assert command.main([*given, "--estimate"]) == 0
    assert "5 questions in 2 languages, 30 inputs\n30 of them are" in capsys.readouterr().out
    given += ["--out", str(tmp_path / "out")]
    assert command.main(given) == 0
    said, codes = capsys.readouterr().out, ["en", "zh"]
    table = pd.read_csv(tmp_path / "out" / "mixing.csv")
    sets, _ = questions.parallel_questions("xquad", codes, per_context=1)
    sets = {code: part.take(5, 1) for code, part in sets.items()}
    blank = {code: questions.questionless(part) for code, part in sets.items()}
    found = {"question and context": sets, "context alone": blank}
    found = {name: grids.grid([Headed(reader)], of)[0] for name, of in found.items()}
    found |= {one.model: one for one in grids.without_reading(sets)}
    assert len(found) == 5
    for asked, one in found.items():
        for measure in ("F1", "EM"):
            rows = mixing.summary(one.scores[f"{measure}, SQuAD"], codes, np.arange(5))
            own = table[(table["asked"] == asked) & (table["measure"] == measure)]
            for column in ("score", "low", "high"):
                np.testing.assert_allclose(own[column], rows[column], atol=1e-4)
    several = found["question and context"].n_cut.sum()
    assert several
    assert f"{several} of 20 inputs were longer" in said
    page = (tmp_path / "out" / "mixing.html").read_text(encoding="utf-8")
    assert page.count("<td>printed</td>") == 3 * 2  # three models, two scores
    monkeypatch.setattr(loading, "headed_model", lambda *_, **__: pytest.fail("asked again"))
    assert command.main(given) == 0


def test_more_questions_than_paragraphs() -> None:
    sets = mixing_command.asked_sets(mixing_command.READER, ["en", "de"], 300)
    assert [len(part) for part in sets.values()] == [300, 300]
    assert len(set(sets["de"].contexts)) > 150


def test_printed_rows_are_means_as_printed() -> None:
    printed = mixing_command.printed_rows_of((1, 5), ["entailment", "not-entailment"])
    rows = printed[printed["language"] == mixing.OVERALL].set_index(["model", "label", "setting"])
    own = pd.read_csv("data/published/within_across/table1_nli.csv")
    own = own[(own["language"] == "avg") & (own["model"] == "mBERT")].set_index("setting")["value"]
    for setting in ("within", "across"):
        assert rows.loc[("mBERT", "all", setting), "score"] == pytest.approx(own[setting] / 100)
    assert set(printed["label"]) == {"all", "entailment", "not-entailment"}


@pytest.mark.parametrize(
    ("names", "told", "classes"),
    [
        (THREE, None, ("contradiction", "neutral", "entailment")),
        ({0: "not_entailment", 1: "ENTAILMENT"}, None, ("not-entailment", "entailment")),
        ({0: "not_paraphrase", 1: "paraphrase"}, None, ("different", "paraphrase")),
        (
            {0: "LABEL_0", 1: "LABEL_1"},
            ["Equivalent", "not equivalent"],
            ("paraphrase", "different"),
        ),
    ],
)
def test_labels_of_heads(names: dict, told: list, classes: tuple, tmp_path: Path) -> None:
    model = headed(tmp_path / "own", id2label=names)
    assert mixing_command.task_of(model, told)[1] == classes
    given = ["mixing", model, "--languages", "en,fr", "--pairs", "8", "--out", str(tmp_path / "o")]
    assert command.main([*given, *(["--labels", ",".join(told)] if told else [])]) == 0
    labels = set(pd.read_csv(tmp_path / "o" / "mixing.csv")["label"])
    paraphrase = {"all", "paraphrase", "different"}
    assert labels == (
        paraphrase if "paraphrase" in classes else {"all", "entailment", "not-entailment"}
    )


def test_what_cannot_be_asked_is_said_in_a_sentence(
    model: str, reader: str, tmp_path: Path, refused: Callable[..., str]
) -> None:
    bare = str(tiny.save(tmp_path / "bare", "xlm-roberta"))
    single = headed(tmp_path / "single", id2label={0: "LABEL_0"})
    unnamed = headed(tmp_path / "unnamed", id2label=dict(enumerate(["LABEL_0", "LABEL_1"])))
    for given, says in (
        ([model, "--languages", "en,xx"], "xx"),
        ([model, "--pairs", "0"], "--pairs is 0"),
        ([model, "--languages", "en"], "two languages or more"),
        ([model, "--labels", "yes,no,perhaps"], "of no task here"),
        ([model, "--labels", "entailment,neutral"], "--labels names 2, and the head has 3"),
        ([bare], "has no head for a task here"),
        ([unnamed], "--labels entailment,neutral"),
        ([single], "one output, a score and no classes: give"),
        (["no/such"], "no/such"),
        ([model, "--quantization", "8bit"], "bitsandbytes"),
        ([model, "--device-map", "everywhere"], "device_map"),
        ([reader, "--labels", "a,b"], "leave out --labels"),
        ([reader, "--languages", "en,fr"], "shipped in fr; there is"),
    ):
        assert says in refused("mixing", *given)
