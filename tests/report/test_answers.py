"""The sentences of a report say what the rows say."""

import numpy as np
import pytest

from tests.report.conftest import Written
from xlx.report.answers import Finding, answer_list, answers_of


def changed(written: Written, name: str, **columns: object) -> list[Finding]:
    """Answers where a table has other numbers."""
    tables = written.tables | {name: written.tables[name].assign(**columns)}
    return answers_of(tables, "mini-infoxlm")


def test_too_little_text_for_an_interval_is_said(written: Written) -> None:
    first = changed(written, "layers", low=np.nan, high=np.nan)[0]
    assert (first.low, first.high) == (None, None)
    assert "too little text for an interval" in first.sentence


@pytest.mark.parametrize(
    ("low", "high", "says"),
    [
        (0.1, 0.3, "is above that"),
        (-0.3, -0.1, "is below that"),
        (-0.1, 0.3, "not told apart from"),
    ],
)
def test_a_difference_is_one_where_the_interval_says_so(
    low: float, high: float, says: str, written: Written
) -> None:
    found = changed(written, "references", low=low, high=high)
    compared = [x.sentence for x in found if x.table == "references"]
    assert len(compared) == 4
    assert all(says in sentence for sentence in compared)


def test_layers_that_are_as_good_are_named(written: Written) -> None:
    table = written.tables["layer_differences"]
    low = np.where(table["layer"].isin([1, 2]), -0.01, 0.01)
    assert (
        "does not tell it from 1, 2" in changed(written, "layer_differences", low=low)[0].sentence
    )
    assert "from every other layer" in changed(written, "layer_differences", low=0.01)[0].sentence


def test_languages_are_covered_from_the_second_highest_band_on(written: Written) -> None:
    table = written.tables["coverage"]
    mu = table["language"].map({"de": 0.6, "ja": 0.59, "ar": 0.1})
    band = table["language"].map({"de": "0.6–0.8", "ja": "0.4–0.6", "ar": "0–0.2"})
    (found,) = (x for x in changed(written, "coverage", mu=mu, band=band) if x.table == "coverage")
    assert "1 of 3 languages reach 0.6 and 1 stay below 0.2 (ar)" in found.sentence
    assert "by script: Latn 0.60 (1), Jpan 0.59 (1), Arab 0.10 (1)" in found.sentence


def test_what_cannot_be_read_is_said(written: Written) -> None:
    unknown = written.tables["reading"]["language"].map({"ja": 0.4}).fillna(0.0)
    found = next(x for x in changed(written, "reading", unknown=unknown) if x.table == "reading")
    assert "subwords unknown in ja 40%" in found.sentence
    assert found.value == 0.4


def test_a_number_that_rounds_to_nothing_has_no_sign(written: Written) -> None:
    found = changed(written, "references", difference=-0.001, low=-0.2, high=0.1)
    compared = [x.sentence for x in found if x.table == "references"]
    assert all("a difference of 0.00 (−0.20 to 0.10)" in sentence for sentence in compared)


def test_answers_are_listed_by_question(written: Written) -> None:
    models = ["mini-infoxlm", "mini-llama"]
    said = answer_list(written.tables, models)
    assert said.count("**Which layer to use for sentences?**") == 1
    for model in models:
        assert f"- {model}: {answers_of(written.tables, model)[0].sentence}" in said
    assert "- mini-llama:" not in answer_list(written.tables, ["mini-llama"])
