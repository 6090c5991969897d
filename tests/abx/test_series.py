"""A checkpoint series under the ABX lens: cached, averaged, and with intervals of averages."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import xlx
from xlx.abx import discrimination, measurement, series
from xlx.core import paths, statistics
from xlx.family.recipes import RECIPES
from xlx.models import embeddings, loading
from xlx.text.corpora import ParallelCorpus


@pytest.fixture(autouse=True)
def own_cache(tmp_path) -> Iterator[None]:
    with xlx.settings(cache=tmp_path, ledger=tmp_path / "ledger", device="cpu", progress=False):
        yield


@pytest.fixture(scope="module")
def corpus() -> ParallelCorpus:
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    sentences = {
        code: tuple(
            f"{first}{code} {words[(i * 3 + 1) % 10]} {code}" for i, first in enumerate(words)
        )
        for code in ("de", "en", "fr")
    }
    ids = tuple(map(str, range(10)))
    return ParallelCorpus("toy", sentences, ids, ("news",) * 10, "none", "made up")


@pytest.fixture(scope="module")
def measured(
    corpus: ParallelCorpus, tmp_path_factory: pytest.TempPathFactory
) -> list[measurement.Measurement]:
    folder = tmp_path_factory.mktemp("cache")
    with xlx.settings(cache=folder, ledger=folder / "ledger", device="cpu", progress=False):
        return series.measure_series("mini-infoxlm", corpus)


def test_every_checkpoint_is_measured_in_order(measured: list[measurement.Measurement]) -> None:
    steps = [found.step for found in measured]
    assert steps == RECIPES["mini-infoxlm"].checkpoint_steps()
    assert len(steps) > 1
    table = series.score_table(measured)
    assert set(table["model"]) == {"mini-infoxlm"}
    assert len(table) == len(steps) * 3 * 7 * 3 * 2  # tasks, layers, pairs, directions
    assert table["score"].between(0, 1).all()


def test_a_history_is_in_the_order_of_training(tmp_path) -> None:
    steps = (100, 0, 30)
    for step in steps:  # checkpoints are not opened
        (tmp_path / f"step-{step}").mkdir()
    found = series.history(str(tmp_path))
    assert [checkpoint.step for checkpoint in found] == [0, 30, 100]
    assert all(isinstance(checkpoint, loading.Checkpoint) for checkpoint in found)
    assert series.history(str(tmp_path), leave_out=[30, 0]) == found[2:]
    assert series.history(str(tmp_path), leave_out=steps) == []
    with pytest.raises(ValueError, match="no checkpoint 7 to leave out: it has 0, 30, 100"):
        series.history(str(tmp_path), leave_out=[30, 7])


def test_a_model_without_a_history_is_itself() -> None:
    last = paths.MODELS / "mini-xlmr" / f"step-{RECIPES['mini-xlmr'].steps:06d}"
    assert series.history(str(last)) == [str(last)]
    with pytest.raises(loading.NoHistoryError):
        series.history(str(last), leave_out=[0])


def test_a_model_without_a_history_is_measured_once(corpus: ParallelCorpus, tmp_path) -> None:
    last = paths.MODELS / "mini-xlmr" / f"step-{RECIPES['mini-xlmr'].steps:06d}"
    (tmp_path / "mine").symlink_to(last)
    (found,) = series.measure_series(str(tmp_path / "mine"), corpus)
    assert (found.model, found.step) == ("mine", 0)
    shipped = series.measure_model("mini-xlmr", corpus)
    for task in discrimination.SCORES:
        np.testing.assert_array_equal(found.scores.scores[task], shipped.scores.scores[task])
    with pytest.raises(loading.NoHistoryError):
        series.measure_series(str(tmp_path / "mine"), corpus, leave_out=[1])


def test_the_second_time_neither_loads_nor_embeds(
    corpus: ParallelCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = series.measure_model("mini-xlmr", corpus)
    bag = series.bag_scores("mini-xlmr", corpus)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr("xlx.models.loading.load", never)
    again = series.measure_model("mini-xlmr", corpus)
    pd.testing.assert_frame_equal(again.table(), first.table())
    assert again.cut == first.cut
    pd.testing.assert_frame_equal(series.bag_scores("mini-xlmr", corpus), bag)
    for options in ({"pooling": "cls"}, {"max_length": 7}):
        with pytest.raises(AssertionError, match="computed again"):
            series.measure_model("mini-xlmr", corpus, **options)
    with pytest.raises(AssertionError, match="computed again"):
        series.bag_scores("mini-xlmr", corpus, max_length=7)


def test_scores_and_influence_are_those_of_the_pairs(
    corpus: ParallelCorpus, measured: list[measurement.Measurement]
) -> None:
    """What is kept by language against what every pair has."""
    found = measured[-1]
    embedded = embeddings.embed_corpus(loading.load("mini-infoxlm"), corpus)
    exact = discrimination.exact(embedded.states, influence=True)
    assert found.scores.pairs == exact.pairs
    for task in discrimination.SCORES:
        order = 1 if task == "retrieval" else 2
        np.testing.assert_array_equal(found.scores.scores[task], exact.scores[task])
        assert found.influence[task].shape == (7, 3, 10)
        for row, code in enumerate(corpus.languages):
            own = exact.influence[task][:, [code in pair for pair in exact.pairs]].mean(axis=1)
            np.testing.assert_allclose(found.influence[task][:, row], own, atol=1e-5)
        errors = [
            statistics.jackknife_error(influence[task].mean(axis=(0, 1)), order)
            for influence in (found.influence, exact.influence)
        ]
        assert errors[0] == pytest.approx(errors[1], rel=1e-4)


def test_a_measurement_is_compared_by_scores_and_errors() -> None:
    rng = np.random.default_rng(0)
    value = {"cut": np.array([0, 2, 0])}
    for task in discrimination.SCORES:
        value[f"influence {task}"] = rng.integers(0, measurement._QUANTA, (2, 3, 10)).astype(
            np.uint16
        )
        value[f"lowest {task}"], value[f"step {task}"] = np.zeros(2), np.full(2, 1e-5)
    value |= {f"won {task}": rng.integers(0, 180, (2, 3, 2)) for task in ("LD", "MD")}
    value["score retrieval"] = rng.random((2, 3, 2))
    assert measurement._apart(value, value) == 0
    more = value | {"won LD": value["won LD"] + np.array([[[18, 0]] + [[0, 0]] * 2] * 2)}
    assert measurement._apart(value, more) == pytest.approx(18 / 180 / 2 / 2)  # direction, pair
    wider = value | {"step MD": value["step MD"] * 2}
    assert 0 < measurement._apart(value, wider) < 0.2
    assert measurement._apart(value, value | {"cut": np.array([0, 2])}) == np.inf


def test_the_bag_of_subwords_is_scored_as_a_model_is(corpus: ParallelCorpus) -> None:
    encoder = loading.load("mini-xlmr")
    bags = embeddings.bag_of_subwords(encoder, corpus, max_length=8)
    expected = discrimination.pair_scores(discrimination.exact(bags).table())
    found = series.bag_scores("mini-xlmr", corpus, max_length=8)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_summaries_are_averages_of_the_table(measured: list[measurement.Measurement]) -> None:
    table = discrimination.pair_scores(series.score_table(measured))
    means = table.groupby(["checkpoint", "task"])["score"].mean()
    for row in series.summarise(measured).itertuples():
        assert row.score == pytest.approx(means[row.checkpoint, row.task])
        assert row.low <= row.score <= row.high
    of_layer = table.groupby(["checkpoint", "task", "layer"])["score"].mean()
    for row in series.summarise(measured, by=["layer"]).itertuples():
        assert row.score == pytest.approx(of_layer[row.checkpoint, row.task, row.layer])
    languages = discrimination.language_scores(
        discrimination.average_layers(table, embedding_layer=False)
    )
    languages = languages.set_index(["checkpoint", "task", "language"])["score"]
    for row in series.summarise(measured, by=["language"], embedding_layer=False).itertuples():
        assert row.score == pytest.approx(languages[row.checkpoint, row.task, row.language])
    last = series.summarise(measured, layers=[-1])
    assert last["score"].iloc[0] == pytest.approx(of_layer[last["checkpoint"][0], "LD", 6])


def test_the_error_of_an_average_comes_from_the_average_influence(
    measured: list[measurement.Measurement],
) -> None:
    found = measured[-1]
    influence = found.influence["MD"].mean(axis=(0, 1))
    error = statistics.jackknife_error(influence)
    row = series.summarise([found]).query("task == 'MD'").iloc[0]
    assert row["score"] - row["low"] == pytest.approx(1.959964 * error, rel=1e-4)


def test_differences(measured: list[measurement.Measurement]) -> None:
    first, last = measured[0], measured[-1]
    nothing = series.score_difference(last, last, "LD")
    assert nothing == {"value": 0.0, "low": 0.0, "high": 0.0}
    change = series.score_difference(last, first, "MD")
    means = series.summarise([first, last]).query("task == 'MD'")["score"].to_numpy()
    assert change["value"] == pytest.approx(means[1] - means[0])
    there, back = (
        series.score_difference(last, last, "LD", layers=[a], other_layers=[b])
        for a, b in ((1, 4), (4, 1))
    )
    assert there["value"] == pytest.approx(-back["value"])
    assert there["high"] == pytest.approx(-back["low"])


def test_leaving_out_and_bad_requests(
    corpus: ParallelCorpus, measured: list[measurement.Measurement]
) -> None:
    steps = [found.step for found in measured]
    kept = series.measure_series("mini-infoxlm", corpus, leave_out=steps[2:])
    assert [found.step for found in kept] == steps[:2]
    with pytest.raises(ValueError, match="no checkpoint 7 to leave out: it has 0"):
        series.measure_series("mini-infoxlm", corpus, leave_out=[7])
    with pytest.raises(ValueError, match="cannot summarise by 'task'"):
        series.summarise(measured, by=["task"])
    assert not np.isnan(series.summarise(measured)["low"]).any()


def test_documents_are_those_of_the_ids(corpus: ParallelCorpus) -> None:
    assert series.documents(corpus) == list(corpus.ids)  # ids without documents: each its own
    named = replace(corpus, ids=tuple(f"test-en-news_a.b:{i}:{i}" for i in range(10)))
    assert series.documents(named)[:2] == ["test-en-news_a.b:0", "test-en-news_a.b:1"]


def test_errors_over_documents_stand_beside_those_over_sentences(
    measured: list[measurement.Measurement],
) -> None:
    last = measured[-1]
    groups = [f"d{i // 2}" for i in range(10)]
    found = series.document_errors(measured[-2:], groups).set_index(["checkpoint", "task"])
    row = found.loc[last.step, "MD"]
    influence = last.influence["MD"].mean(axis=(0, 1))
    assert row["score"] == pytest.approx(last.scores.scores["MD"].mean())
    assert row["sentences"] == pytest.approx(statistics.jackknife_error(influence))
    assert row["documents"] == pytest.approx(statistics.grouped_error(influence, groups))
    assert row["ratio"] == pytest.approx(row["documents"] / row["sentences"])
    assert len(found) == 6


def test_what_is_cut_is_told_by_language(measured: list[measurement.Measurement]) -> None:
    found = replace(measured[0], cut={"de": 1, "en": 0, "fr": 4})
    assert series.cut_shares(found).to_dict() == {"fr": 0.4, "de": 0.1, "en": 0.0}
    assert list(series.cut_shares(found).index) == ["fr", "de", "en"]
