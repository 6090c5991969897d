"""What alignment predicts of tasks, against the same said slowly; files that do not fit."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.report.conftest import Written
from xlx.measures.mexa import PivotScores
from xlx.report import answers, figures, page, predicted_tasks
from xlx.report.measures import Measured, ReportedModel
from xlx.text import parallel
from xlx.text.files import TextError
from xlx.text.parallel import ParallelCorpus

CODES = ("en", "de", "fr", "ja", "ar", "ru", "tr")
MODEL = ReportedModel("mini-infoxlm", "mini-infoxlm", "encoder", "mean", "0" * 64)


@pytest.fixture(scope="module")
def text() -> ParallelCorpus:
    return parallel.load("wmt24pp", CODES, drop_duplicates=True).take(12, 1)


def file_of(folder: Path, codes: tuple[str, ...], model: str = "some/path/mini-infoxlm") -> Path:
    lines = [f"Belebele,{model},{code},{0.4 + 0.05 * i:.2f}" for i, code in enumerate(codes)]
    file = folder / "scores.csv"
    file.write_text("\n".join(["task,model,language,score", *lines]) + "\n", encoding="utf-8")
    return file


def hits(seed: int, n: int = 12, n_layers: int = 3) -> PivotScores:
    shape = n_layers, len(CODES) - 1, n
    made = np.random.default_rng(seed).random(shape) < np.linspace(0.2, 0.9, shape[1])[:, None]
    return PivotScores(CODES[1:], "en", tuple(range(n_layers)), made, np.full(shape, -1, np.int32))


@pytest.fixture(scope="module")
def points(text: ParallelCorpus, tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    file = file_of(tmp_path_factory.mktemp("tasks"), (*CODES, "sw"))
    tasks, notes = predicted_tasks.scores_of_tasks([file], [MODEL], text, "en")
    assert [("languages that wmt24pp is not read in: sw" in note) for note in notes] == [True]
    measured = Measured(MODEL, None, None, {"raw": hits(1), "centred": hits(2)}, 1)
    return predicted_tasks.task_points(measured, text, tasks)


def test_points_are_those_of_languages_in_both(points: pd.DataFrame) -> None:
    first = points[points["predictor"] == "MEXA, best layer"]
    assert first["language"].tolist() == list(CODES[1:])  # the pivot has no score of its own
    np.testing.assert_allclose(first["score"], 0.4 + 0.05 * np.arange(1, 7))
    np.testing.assert_allclose(first["mu"], hits(1).hits.mean(axis=-1).max(axis=0))
    centred = points[points["predictor"] == "MEXA, centred"]
    np.testing.assert_allclose(centred["mu"], hits(2).hits.mean(axis=-1).max(axis=0))


def test_a_language_is_predicted_from_the_others() -> None:
    draw = np.random.default_rng(0)
    x, y = draw.random((2, 9))
    lines, means = predicted_tasks.without_each(x, y)
    for i in range(9):
        others = [j for j in range(9) if j != i]
        slope, intercept = np.polyfit(x[others], y[others], 1)
        assert lines[i] == pytest.approx(intercept + slope * x[i])
        assert means[i] == pytest.approx(np.mean(y[others]))
    spread = np.r_[np.zeros(8), 1.0]
    assert np.isnan(predicted_tasks.without_each(spread, y)[0]).tolist() == [False] * 8 + [True]


def test_fits_are_of_the_points(points: pd.DataFrame) -> None:
    fits = predicted_tasks.task_fits(points).set_index("predictor")
    assert list(fits.index) == [*predicted_tasks.ALIGNMENTS, predicted_tasks.TASK_BAG]
    own = points[points["predictor"] == "MEXA, best layer"]
    row = fits.loc["MEXA, best layer"]
    assert row["r"] == pytest.approx(np.corrcoef(own["mu"], own["score"])[0, 1])
    assert row["low"] <= row["r"] <= row["high"]
    assert row["error"] == pytest.approx(np.sqrt(((own["score"] - own["predicted"]) ** 2).mean()))
    assert row["error_of_mean"] > np.std(own["score"])
    assert row["error"] < row["error_of_mean"]  # the score was made to follow the alignment


def test_a_report_with_tasks_and_probes_says_and_draws_them(
    points: pd.DataFrame, written: Written
) -> None:
    tables = {name: table[table["model"] == MODEL.label] for name, table in written.tables.items()}
    tables["task_fits"] = predicted_tasks.task_fits(points)
    tables["task_points"] = points
    rows = [("topics", "de", 0.5), ("topics", "en", 0.7), ("parts of speech", "de", 0.8)]
    tables["probes"] = pd.DataFrame(rows, columns=["probed", "language", "accuracy"]).assign(
        model=MODEL.label, name="", layer=4, learnt_in="en", n=100, low=0.4, high=0.9,
        majority=0.3, best_layer=2, best_accuracy=0.9,
    )  # fmt: skip
    found = {x.table: x.sentence for x in answers.answers_of(tables, MODEL.label)}
    assert "Over 6 languages Belebele goes with MEXA, best layer by r = 0." in found["task_fits"]
    assert "better than from their mean" in found["task_fits"]
    assert "the data have no ar, en, ja" in found["probes"]
    said = " ".join(x.sentence for x in answers.answers_of(tables, MODEL.label))
    assert "0.60 of cases, the mean over 2 languages (the commonest label: 0.30)" in said
    assert {"tasks", "probes"} < set(figures.report_figures(tables))
    about = written.said | {"models": [MODEL.label]}
    shown = page.report_page(tables, answers.answers_of(tables, MODEL.label), about)
    assert shown.count("<img") == 9
    assert all(f'id="table-{name}"' in shown for name in ("task_fits", "task_points", "probes"))


@pytest.mark.parametrize(
    ("codes", "model", "says"),
    [
        (("en", "de", "fr", "ja", "ar"), "mini-infoxlm", "fewer than 5 languages in common"),
        (("sw", "th", "yo", "zu", "am", "ka"), "mini-infoxlm", "fewer than 5 languages in common"),
        (CODES, "another", "None of the models with results may be mini-infoxlm"),
    ],
)
def test_files_that_do_not_fit_are_refused(
    codes: tuple[str, ...], model: str, says: str, text: ParallelCorpus, tmp_path: Path
) -> None:
    file = file_of(tmp_path, codes, model)
    with pytest.raises(TextError, match=says):
        predicted_tasks.scores_of_tasks([file], [MODEL], text, "en")


def test_a_text_in_a_variety_is_found_by_its_language(text: ParallelCorpus) -> None:
    sentences = {"pt_BR": text.sentences["de"], "zh_Hant": text.sentences["ja"]}
    codes = predicted_tasks.text_codes(
        parallel.ParallelCorpus("own", sentences, text.ids, text.domains, "", "")
    )
    assert codes["pt"] == codes["pt_BR"] == "pt_BR"
    assert codes["zh_Hant"] == "zh_Hant"
