"""The numbers of a report are those of the lenses on the same text, or said slowly."""

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests import tiny
from tests.measures import csls
from tests.report.conftest import Written
from tests.tables import of
from xlx import measures
from xlx.experiment import probing, scoring
from xlx.experiment.abx_scores import MATCHED, before_training
from xlx.experiment.averages import Average
from xlx.measures import abx
from xlx.measures.mexa import PivotScores
from xlx.report import figures, tables
from xlx.report.inputs import ReportedModel, reported_model
from xlx.report.sentences import of_sentence_tasks
from xlx.report.tables import Measured
from xlx.subjects import identity, loading
from xlx.subjects.states import embed_corpus
from xlx.text import parallel
from xlx.text.files import TextError
from xlx.text.languages import kind_of_language
from xlx.text.parallel import ParallelCorpus

CODES = ("en", "de", "fr", "ja", "ar", "ru", "tr")
MODEL = ReportedModel("mini-infoxlm", "mini-infoxlm", "encoder", "mean", "0" * 64)


def of_means(values: np.ndarray) -> Average:
    """Averages of groups of one position each, ``(n, n_groups)``."""
    k = values.shape[1]
    score = values.mean(axis=1)
    left_out = (values.sum(axis=1, keepdims=True) - values) / (k - 1)
    return Average(score, left_out - score[:, None], np.ones(k))


def test_a_layer_chosen_on_one_half_is_scored_on_the_other() -> None:
    values = np.random.default_rng(1).normal(size=(5, 9))
    half = np.random.default_rng(3).permutation(9) < 4
    halves = values[:, half].mean(axis=1), values[:, ~half].mean(axis=1)
    expected = (halves[1][halves[0].argmax()] + halves[0][halves[1].argmax()]) / 2
    assert tables.score_elsewhere(of_means(values), 3) == pytest.approx(expected, abs=1e-12)
    assert np.isnan(tables.score_elsewhere(of_means(values[:, :3]), 3))
    draw = np.random.default_rng(2)
    noise = [of_means(draw.normal(size=(7, 40))) for _ in range(300)]
    assert np.mean([mean.score.max() for mean in noise]) > 0.15
    assert abs(np.mean([tables.score_elsewhere(mean, 1) for mean in noise])) < 0.03


def test_a_direction_is_the_share_of_queries_whose_translation_is_nearest(
    written: Written, corpus: ParallelCorpus
) -> None:
    states = embed_corpus(loading.load("mini-infoxlm"), corpus).states
    ways = of(written.tables["retrieval"], model="mini-infoxlm")
    assert len(ways) == 12
    for row in ways.itertuples():
        query, other = (
            x / np.linalg.norm(x, axis=1, keepdims=True)
            for x in (states[code][row.layer].astype(float) for code in (row.query, row.among))
        )
        share = ((query @ other.T).argmax(axis=1) == np.arange(len(corpus))).mean()
        assert row.score == pytest.approx(share, abs=1e-6)
        assert row.low <= row.score <= row.high
    pairs = of(written.tables["pairs"], model="mini-infoxlm", task="retrieval")
    np.testing.assert_allclose(pairs["score"], ways["score"].to_numpy().reshape(-1, 2).mean(axis=1))


def test_references_are_on_the_same_text(written: Written) -> None:
    table = of(written.tables["references"], model="mini-infoxlm")
    others = {tables.UNTRAINED, scoring.BAG, scoring.LENGTH_ALONE, "mini-llama"}
    assert set(table["reference"]) == others
    apart = table["score"] - table["reference_score"]
    np.testing.assert_allclose(table["difference"], apart, atol=1e-12)
    ours = of(written.tables["layers"], model="mini-infoxlm", space="raw", task=MATCHED)
    scores = of(table, task=MATCHED)["score"]
    np.testing.assert_allclose(scores, ours["score"].max(), atol=1e-12)


@pytest.fixture
def registered_csls(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A registry with one entry more."""
    entry = replace(csls.REGISTERED[0], label="retrieval by CSLS")
    monkeypatch.setattr(abx, "REGISTERED", (*abx.REGISTERED, entry))
    measures.registered.cache_clear()
    yield
    monkeypatch.undo()
    measures.registered.cache_clear()


@pytest.mark.usefixtures("registered_csls")
def test_a_registered_measure_is_on_the_page(tmp_path: Path, shown: Callable[..., str]) -> None:
    given = ["--languages", "en,de,ja", "--sentences", 12, "--reference", "none", "--no-notebook"]
    shown("report", "mini-infoxlm", *given, "--out", tmp_path)
    for name, n in {"layers": 2 * 7, "references": 2, "pairs": 3}.items():
        table = pd.read_csv(tmp_path / "tables" / f"{name}.csv")
        assert (table["task"] == "CSLS").sum() == n
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    texts = re.findall(r'<img alt="([^"]+)"', page)
    assert sum("retrieval by CSLS" in text for text in texts) == 2  # by layer, and references
    (explorer,) = re.findall(r'srcdoc="([^"]+)"', page)
    assert '"CSLS"' in html.unescape(explorer)


def test_the_untrained_model_of_a_series_is_its_first_step(tmp_path: Path) -> None:
    first = before_training("mini-infoxlm")
    assert (first.name, first.step) == ("mini-infoxlm", 0)
    ours = tiny.save(tmp_path / "own")
    assert before_training(str(ours)) == identity.twin_of(str(ours))


def test_a_language_of_unknown_pieces_is_told(corpus: ParallelCorpus) -> None:
    runes = tuple(f"{'ᚠᚢᚦ' * (1 + i % 4)} {'ᛒᛖ' * (i // 4)} {i}" for i in range(len(corpus)))
    texts = {"en": corpus.sentences["en"], "xx": runes}
    mixed = parallel.ParallelCorpus("mixed", texts, corpus.ids, corpus.domains, "", "")
    measured = Measured(reported_model("mini-mbert"), mixed)
    with pytest.warns(UserWarning, match="does not read all"):
        table = tables.reading_rows(measured).set_index("language")
    assert table.loc["xx", "unknown"] > 0.2
    assert table.loc["en", "unknown"] < 0.05


def test_families_of_languages_beyond_the_paper() -> None:
    known = {
        "pt_BR": ("Portuguese", "Indo-European", "Latn"),
        "xx": ("xx", "?", "?"),
        "ace_Arab": ("Acehnese", "Austronesian", "Arab"),
    }
    assert {code: kind_of_language(code) for code in known} == known


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


def test_tasks_are_predicted_from_alignment(text: ParallelCorpus, tmp_path: Path) -> None:
    file = file_of(tmp_path, (*CODES, "sw"))
    tasks, (note,) = tables.scores_of_tasks([file], [MODEL], text, "en")
    assert "languages that wmt24pp is not read in are left out: sw" in note
    measured = Measured(MODEL, text, tasks=tasks)
    vars(measured)["mexa"] = {"raw": hits(1), "centred": hits(2)}
    points = tables.task_points(measured)
    ours = points[points["predictor"] == "MEXA, best layer"]
    assert ours["language"].tolist() == list(CODES[1:])  # the pivot has no score of its own
    np.testing.assert_allclose(ours["score"], 0.4 + 0.05 * np.arange(1, 7))
    np.testing.assert_allclose(ours["mu"], hits(1).hits.mean(axis=-1).max(axis=0))
    for row in ours.itertuples():  # each from the others
        others = ours.drop(row.Index)
        slope, intercept = np.polyfit(others["mu"], others["score"], 1)
        assert row.predicted == pytest.approx(intercept + slope * row.mu)
        assert row.mean_of_others == pytest.approx(others["score"].mean())
    centred = points[points["predictor"] == "MEXA, centred"]
    np.testing.assert_allclose(centred["mu"], hits(2).hits.mean(axis=-1).max(axis=0))
    fits = tables.task_fits(measured)
    figure = figures.predicted_tasks({"task_points": points, "task_fits": fits})
    assert {text.get_text() for text in figure.axes[0].texts} == {*ours["language"]}
    row = fits.set_index("predictor").loc["MEXA, best layer"]
    assert row["r"] == pytest.approx(np.corrcoef(ours["mu"], ours["score"])[0, 1])
    assert row["error"] == pytest.approx(np.sqrt(((ours["score"] - ours["predicted"]) ** 2).mean()))
    assert row["error"] < row["error_of_mean"]  # the score was made to follow the alignment


def test_files_that_do_not_fit_are_refused(text: ParallelCorpus, tmp_path: Path) -> None:
    few, other = "fewer than 5 languages in common", "None of the models with results may be mini"
    for *given, says in (
        (("en", "de", "fr", "ja", "ar"), "mini-infoxlm", few),
        (("sw", "th", "yo", "zu", "am", "ka"), "mini-infoxlm", few),
        (CODES, "another", other),
    ):
        with pytest.raises(TextError, match=says):
            tables.scores_of_tasks([file_of(tmp_path, *given)], [MODEL], text, "en")


def test_a_text_in_a_variety_is_found_by_its_language(text: ParallelCorpus) -> None:
    sentences = {"pt_BR": text.sentences["de"], "zh_Hant": text.sentences["ja"]}
    codes = tables.text_codes(
        parallel.ParallelCorpus("own", sentences, text.ids, text.domains, "", "")
    )
    assert codes["pt"] == codes["pt_BR"] == "pt_BR"
    assert codes["zh_Hant"] == "zh_Hant"


def test_probes_are_those_of_the_lenses_in_languages_of_text_and_data(
    corpus: ParallelCorpus,
) -> None:
    """One language has labels for both, one for topics alone, one for nothing."""
    sentences = dict(zip(("en", "sw", "tlh"), corpus.sentences.values(), strict=False))
    text = parallel.ParallelCorpus("own", sentences, corpus.ids, corpus.domains, "", "")
    sizes = tables.ProbeSizes((60, 20, 60), 20, (0, 1))
    measured = Measured(reported_model("mini-infoxlm"), text, probes=sizes)
    vars(measured)["layer"] = 2
    table = tables.probe_rows(measured).set_index(["probed", "language"])
    assert list(table.index) == [("parts of speech", "en"), ("topics", "en"), ("topics", "sw")]
    setup = probing.ProbeSetup("POS", *sizes.words, seeds=sizes.seeds)
    words = probing.monolingual("mini-infoxlm", setup, ["en"])
    by_layer = words.groupby("layer")["accuracy"].mean()
    row = table.loc[("parts of speech", "en")]
    assert (row["accuracy"], row["best_layer"]) == (pytest.approx(by_layer[2]), by_layer.idxmax())
    assert row["low"] < row["accuracy"] < row["high"]
    learnt = probing.probe_topics(["mini-infoxlm"], ["sw"], n_test=20, seeds=sizes.seeds)
    learnt = learnt.query("language == 'sw' and layer == 2 and not centred")
    assert table.loc[("topics", "sw"), "accuracy"] == pytest.approx(learnt["accuracy"].mean())


@pytest.mark.slow
def test_tasks_of_sentences_stand_beside_an_untrained_twin_and_a_bag(
    corpus: ParallelCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "SENTENCE_TASKS", ("SentLen", "Tense"))
    sentences = dict(zip(("en", "de", "tlh"), corpus.sentences.values(), strict=False))
    text = parallel.ParallelCorpus("own", sentences, corpus.ids, corpus.domains, "", "")
    measured = Measured(reported_model("mini-xlmr"), text, sentences=60)
    table = tables.sentence_rows(measured)
    n_layers = table["layer"].nunique()
    panels = table.groupby(["task", "read"], sort=False)
    assert list(panels.groups) == [
        (x, y) for x in ("Tense", "SentLen") for y in ("at home", "abroad")
    ]
    assert panels.size().eq(n_layers).all()
    assert panels[["n", "chance"]].first().to_numpy().tolist() == [[2, 0.5]] * 2 + [[2, 0.25]] * 2
    assert panels["a bag of subwords"].nunique().eq(1).all()
    assert panels["untrained"].nunique().gt(1).all()
    of_model = {"sentence_tasks": table.assign(model="mini-xlmr")}
    (answer,) = of_sentence_tasks({"sentence_tasks": table[table["task"] == "Tense"]})
    best = panels.get_group(("Tense", "at home")).nlargest(1, "accuracy").iloc[0]
    assert answer[2]["accuracy"] == best["accuracy"]
    assert f"(untrained {best['untrained']:.2f}, a bag" in answer[-1]
    drawn = figures.report_figures(of_model)
    for axes, (_, part) in zip(drawn["sentence_tasks"]().axes, panels, strict=True):
        lines = [line.get_ydata() for line in axes.lines if len(line.get_xdata()) == n_layers]
        shown = part.sort_values("layer")[["accuracy", "untrained", "a bag of subwords", "chance"]]
        assert np.allclose(lines, shown.to_numpy().T)
    text = parallel.ParallelCorpus(
        "own", {"tlh": sentences["tlh"]}, corpus.ids, corpus.domains, "", ""
    )
    assert tables.sentence_rows(Measured(measured.model, text, sentences=60)).empty
