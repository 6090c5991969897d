"""A checkpoint series under the ABX lens: cached, averaged, and with intervals of averages."""

import numpy as np
import pandas as pd
import pytest

from xlx import abx, models, paths, series, statistics
from xlx.corpora import ParallelCorpus
from xlx.family import RECIPES
from xlx.store import Store


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
) -> list[series.Measurement]:
    store = Store(tmp_path_factory.mktemp("store"))
    return series.measure_series("mini-infoxlm", corpus, store=store, progress=False)


def test_every_checkpoint_is_measured_in_order(measured: list[series.Measurement]) -> None:
    steps = [found.step for found in measured]
    assert steps == RECIPES["mini-infoxlm"].checkpoint_steps()
    assert len(steps) > 1
    table = series.table(measured)
    assert set(table["model"]) == {"mini-infoxlm"}
    assert len(table) == len(steps) * 3 * 7 * 3 * 2  # tasks, layers, pairs, directions
    assert table["score"].between(0, 1).all()


def test_a_history_is_in_the_order_of_training(tmp_path) -> None:
    steps = (100, 0, 30)
    for step in steps:  # checkpoints are not opened
        (tmp_path / f"step-{step}").mkdir()
    found = series.history(str(tmp_path))
    assert [checkpoint.step for checkpoint in found] == [0, 30, 100]
    assert all(isinstance(checkpoint, models.Checkpoint) for checkpoint in found)
    assert series.history(str(tmp_path), leave_out=[30, 0]) == found[2:]
    assert series.history(str(tmp_path), leave_out=steps) == []
    with pytest.raises(ValueError, match="no checkpoint 7 to leave out: it has 0, 30, 100"):
        series.history(str(tmp_path), leave_out=[30, 7])


def test_a_model_without_a_history_is_itself() -> None:
    last = paths.MODELS / "mini-xlmr" / f"step-{RECIPES['mini-xlmr'].steps:06d}"
    assert series.history(str(last)) == [str(last)]
    with pytest.raises(models.NoHistoryError):
        series.history(str(last), leave_out=[0])


def test_a_model_without_a_history_is_measured_once(corpus: ParallelCorpus, tmp_path) -> None:
    last = paths.MODELS / "mini-xlmr" / f"step-{RECIPES['mini-xlmr'].steps:06d}"
    (tmp_path / "mine").symlink_to(last)
    options = {"store": Store(tmp_path / "store"), "progress": False}
    (found,) = series.measure_series(str(tmp_path / "mine"), corpus, **options)
    assert (found.model, found.step) == ("mine", 0)
    shipped = series.measure("mini-xlmr", corpus, **options)
    for task in abx.TASKS:
        np.testing.assert_array_equal(found.scores.scores[task], shipped.scores.scores[task])
    with pytest.raises(models.NoHistoryError):
        series.measure_series(str(tmp_path / "mine"), corpus, leave_out=[1], **options)


def test_the_second_time_comes_from_the_store(
    corpus: ParallelCorpus, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    first = series.measure("mini-xlmr", corpus, store=store, progress=False)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr("xlx.embeddings.embed_corpus", never)
    again = series.measure("mini-xlmr", corpus, store=store, progress=False)
    pd.testing.assert_frame_equal(again.table(), first.table())
    with pytest.raises(AssertionError, match="computed again"):
        series.measure("mini-xlmr", corpus, pooling="cls", store=store, progress=False)


def test_summaries_are_averages_of_the_table(measured: list[series.Measurement]) -> None:
    table = abx.pair_scores(series.table(measured))
    means = table.groupby(["checkpoint", "task"])["score"].mean()
    for row in series.summarise(measured).itertuples():
        assert row.score == pytest.approx(means[row.checkpoint, row.task])
        assert row.low <= row.score <= row.high
    of_layer = table.groupby(["checkpoint", "task", "layer"])["score"].mean()
    for row in series.summarise(measured, by=["layer"]).itertuples():
        assert row.score == pytest.approx(of_layer[row.checkpoint, row.task, row.layer])
    languages = abx.language_scores(abx.average_layers(table, embedding_layer=False))
    languages = languages.set_index(["checkpoint", "task", "language"])["score"]
    for row in series.summarise(measured, by=["language"], embedding_layer=False).itertuples():
        assert row.score == pytest.approx(languages[row.checkpoint, row.task, row.language])
    last = series.summarise(measured, layers=[-1])
    assert last["score"].iloc[0] == pytest.approx(of_layer[last["checkpoint"][0], "LD", 6])


def test_the_error_of_an_average_comes_from_the_average_influence(
    measured: list[series.Measurement],
) -> None:
    found = measured[-1]
    influence = found.scores.influence["MD"].mean(axis=(0, 1))
    error = statistics.jackknife_error(influence)
    row = series.summarise([found]).query("task == 'MD'").iloc[0]
    assert row["score"] - row["low"] == pytest.approx(1.959964 * error, rel=1e-4)


def test_differences(measured: list[series.Measurement]) -> None:
    first, last = measured[0], measured[-1]
    nothing = series.difference(last, last, "LD")
    assert nothing == {"value": 0.0, "low": 0.0, "high": 0.0}
    change = series.difference(last, first, "MD")
    means = series.summarise([first, last]).query("task == 'MD'")["score"].to_numpy()
    assert change["value"] == pytest.approx(means[1] - means[0])
    there, back = (
        series.difference(last, last, "LD", layers=[a], other_layers=[b])
        for a, b in ((1, 4), (4, 1))
    )
    assert there["value"] == pytest.approx(-back["value"])
    assert there["high"] == pytest.approx(-back["low"])


def test_leaving_out_and_bad_requests(
    corpus: ParallelCorpus, measured: list[series.Measurement], tmp_path
) -> None:
    steps = [found.step for found in measured]
    kept = series.measure_series(
        "mini-infoxlm", corpus, leave_out=steps[2:], store=Store(tmp_path), progress=False
    )
    assert [found.step for found in kept] == steps[:2]
    with pytest.raises(ValueError, match="no checkpoint 7 to leave out: it has 0"):
        series.measure_series("mini-infoxlm", corpus, leave_out=[7])
    with pytest.raises(ValueError, match="cannot summarise by 'task'"):
        series.summarise(measured, by=["task"])
    assert not np.isnan(series.summarise(measured)["low"]).any()
