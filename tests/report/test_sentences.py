"""The sentences of a report say what the rows say."""

import numpy as np
import pandas as pd
import pytest

from tests.report.conftest import Written
from xlx.report.sentences import Finding, answer_list, answers_of

MODEL = "mini-infoxlm"


def changed(written: Written, name: str, **columns: object) -> list[Finding]:
    """Answers of a table, where it has other numbers."""
    tables = written.tables | {name: written.tables[name].assign(**columns)}
    return [x for x in answers_of(tables, MODEL) if x.table == name]


def test_too_little_text_for_an_interval_is_said(written: Written) -> None:
    first = changed(written, "layers", low=np.nan, high=np.nan)[0]
    assert (first.low, first.high) == (None, None)
    assert "too little text for an interval" in first.sentence


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ((0.2, 0.1, 0.3), "is above that"),
        ((-0.2, -0.3, -0.1), "is below that"),
        ((0.1, -0.1, 0.3), "not told apart from"),
        ((-0.001, -0.2, 0.1), "The difference is 0.00 (−0.20 to 0.10)"),
    ],
)
def test_a_difference_is_one_where_the_interval_says_so(numbers, says, written: Written) -> None:
    columns = dict(zip(("difference", "low", "high"), numbers, strict=True))
    answers = changed(written, "references", **columns)
    assert len(answers) == 4
    assert all(says in x.sentence for x in answers)


def test_layers_that_are_as_good_are_named(written: Written) -> None:
    table = written.tables["layer_differences"]
    low = np.where(table["layer"].isin([1, 2]), -0.01, 0.01)
    for ends, says in ((low, "it is as good as 1, 2."), (0.01, "it is better than any other.")):
        tables = written.tables | {"layer_differences": table.assign(low=ends)}
        assert says in answers_of(tables, MODEL)[0].sentence


def test_languages_are_covered_from_the_second_highest_band_on(written: Written) -> None:
    table = written.tables["coverage"]
    mu = table["language"].map({"de": 0.6, "ja": 0.59, "ar": 0.1})
    (answer,) = changed(written, "coverage", mu=mu)
    assert "1 of 3 languages reach 0.6 and 1 stay below 0.2 (ar)" in answer.sentence
    assert "By script, the highest and the least: Latn 0.60 (of 1) and Arab 0.10" in answer.sentence


def test_what_cannot_be_read_is_said(written: Written) -> None:
    unknown = written.tables["reading"]["language"].map({"ja": 0.4}).fillna(0.0)
    (answer,) = changed(written, "reading", unknown=unknown)
    assert "More than 5% of subwords are unknown in ja (40%). More than 5%" in answer.sentence
    assert answer.value == 0.4


def test_tasks_and_probes_are_told_where_they_are(written: Written) -> None:
    fits = pd.DataFrame(
        {
            "model": MODEL,
            "task": "Belebele",
            "predictor": ["MEXA, best layer", "a bag of subwords"],
            "r": [0.8, 0.1],
            "low": 0.1,
            "high": 0.9,
            "n": 6,
            "error": 0.02,
            "error_of_mean": 0.1,
        }
    )
    rows = [("topics", "de", 0.5), ("topics", "en", 0.7), ("parts of speech", "de", 0.8)]
    probes = pd.DataFrame(rows, columns=["probed", "language", "accuracy"]).assign(
        model=MODEL,
        layer=4,
        learnt_in="en",
        low=0.4,
        high=0.9,
        majority=0.3,
        best_layer=2,
        best_accuracy=0.9,
    )
    tables = written.tables | {"task_fits": fits, "probes": probes}
    task, topic, speech = (x.sentence for x in answers_of(tables, MODEL)[-3:])
    assert "Over 6 languages Belebele goes with MEXA, best layer by r = 0.80 (0.10 to" in task
    assert "better than by their mean" in task
    assert (
        "0.60 of cases, the mean over 2 languages. The commonest label is right in 0.30." in topic
    )
    assert "The best layer is 2, 0.90. There are no data in ar, en, ja." in speech


def test_answers_are_listed_by_question(written: Written) -> None:
    output = answer_list(written.tables, [MODEL, "mini-llama"])
    assert output.count("**Which layer to use for sentences?**") == 1
    for model in (MODEL, "mini-llama"):
        assert f"- {model}: {answers_of(written.tables, model)[0].sentence}" in output
    assert "- mini-llama:" not in answer_list(written.tables, ["mini-llama"])
