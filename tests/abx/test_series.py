"""A checkpoint series under the ABX lens: stored, averaged, and with intervals of averages."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import xlx
from tests import tiny
from xlx.abx import contrasts, discrimination, measurement, series
from xlx.core import paths, statistics
from xlx.family.recipes import RECIPES
from xlx.models import embeddings, loading
from xlx.text import corpora
from xlx.text.corpora import ParallelCorpus

Measured = list[measurement.Measurement]


def test_every_checkpoint_is_measured_in_order(measured: Measured) -> None:
    steps = [of_step.step for of_step in measured]
    every = RECIPES["mini-infoxlm"].checkpoint_steps()
    assert steps == [*every[:2], every[-1]]
    table = series.score_table(measured)
    assert list(table.columns[:3]) == ["model", "checkpoint", "task"]
    assert set(table["model"]) == {"mini-infoxlm"}
    assert len(table) == len(steps) * 3 * 7 * 3 * 2  # tasks, layers, pairs, directions
    assert table["score"].between(0, 1).all()


def test_a_history_is_in_the_order_of_training(tmp_path) -> None:
    steps = (100, 0, 30)
    for step in steps:  # checkpoints are not opened
        (tmp_path / f"step-{step}").mkdir()
    history = series.history(str(tmp_path))
    assert [checkpoint.step for checkpoint in history] == [0, 30, 100]
    assert all(isinstance(checkpoint, loading.Checkpoint) for checkpoint in history)
    assert series.history(str(tmp_path), leave_out=[30, 0]) == history[2:]
    with pytest.raises(ValueError, match="no checkpoint 7 to leave out: it has 0, 30, 100"):
        series.history(str(tmp_path), leave_out=[30, 7])


def test_a_model_without_a_history_is_itself(
    corpus: ParallelCorpus, measured: Measured, tmp_path
) -> None:
    last = paths.MODELS / "mini-infoxlm" / f"step-{RECIPES['mini-infoxlm'].steps:06d}"
    (tmp_path / "mine").symlink_to(last)
    (alone,) = series.measure_series(str(tmp_path / "mine"), corpus)
    assert (alone.model, alone.step) == ("mine", 0)
    for task in discrimination.SCORES:
        np.testing.assert_array_equal(alone.scores.scores[task], measured[-1].scores.scores[task])
    with pytest.raises(loading.NoHistoryError):
        series.history(str(last), leave_out=[0])


def test_the_second_time_neither_loads_nor_embeds(
    corpus: ParallelCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = series.measure_model("mini-xlmr", corpus)
    bag = series.bag_scores("mini-xlmr", corpus, max_length=8)
    bags = embeddings.bag_of_subwords(loading.load("mini-xlmr"), corpus, max_length=8)
    expected = discrimination.pair_scores(discrimination.exact(bags).table())
    pd.testing.assert_frame_equal(bag, expected, check_dtype=False)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr("xlx.models.loading.load", never)
    again = series.measure_model("mini-xlmr", corpus)
    pd.testing.assert_frame_equal(again.table(), first.table())
    assert again.cut == first.cut
    pd.testing.assert_frame_equal(series.bag_scores("mini-xlmr", corpus, max_length=8), bag)
    for options in ({"pooling": "cls"}, {"max_length": 7}):
        with pytest.raises(AssertionError, match="computed again"):
            series.measure_model("mini-xlmr", corpus, **options)
    with pytest.raises(AssertionError, match="computed again"):
        series.bag_scores("mini-xlmr", corpus)


def test_scores_and_influence_are_those_of_the_pairs(
    corpus: ParallelCorpus, measured: Measured, states: dict[str, np.ndarray]
) -> None:
    """What is kept by language against what every pair has."""
    kept = measured[-1]
    exact = discrimination.exact(states, influence=True)
    assert kept.scores.pairs == exact.pairs
    for task in discrimination.SCORES:
        np.testing.assert_array_equal(kept.scores.scores[task], exact.scores[task])
        assert kept.influence[task].shape == (7, 3, 10)
        for row, code in enumerate(corpus.languages):
            own = exact.influence[task][:, [code in pair for pair in exact.pairs]].mean(axis=1)
            np.testing.assert_allclose(kept.influence[task][:, row], own, atol=1e-5)
        errors = [
            statistics.jackknife_error(influence[task].mean(axis=(0, 1)), 1 + (task != "retrieval"))
            for influence in (kept.influence, exact.influence)
        ]
        assert errors[0] == pytest.approx(errors[1], rel=1e-4)
        row = series.summarise([kept]).set_index("task").loc[task]
        assert row["score"] - row["low"] == pytest.approx(1.959964 * errors[0], rel=1e-4)


def test_a_measurement_is_compared_by_scores_and_errors() -> None:
    rng = np.random.default_rng(0)
    value = {"cut": np.array([0, 2, 0]), "score retrieval": rng.random((2, 3, 2))}
    for task in discrimination.SCORES:
        codes = rng.integers(0, measurement._QUANTA, (2, 3, 10))
        value[f"influence {task}"] = codes.astype(np.uint16)
        value[f"lowest {task}"], value[f"step {task}"] = np.zeros(2), np.full(2, 1e-5)
    value |= {f"won {task}": rng.integers(0, 180, (2, 3, 2)) for task in ("LD", "MD")}
    assert measurement._apart(value, value) == 0
    more = value | {"won LD": value["won LD"] + np.array([[[18, 0]] + [[0, 0]] * 2] * 2)}
    assert measurement._apart(value, more) == pytest.approx(18 / 180 / 2 / 2)  # direction, pair
    wider = value | {"step MD": value["step MD"] * 2}
    assert 0 < measurement._apart(value, wider) < 0.2
    assert measurement._apart(value, value | {"cut": np.array([0, 2])}) == np.inf


def test_summaries_are_averages_of_the_table(measured: Measured) -> None:
    table = discrimination.pair_scores(series.score_table(measured))
    without_layer_0 = discrimination.average_layers(table, embedding_layer=False)
    languages = discrimination.language_scores(without_layer_0)
    keys = ["checkpoint", "task"]
    for by, expected, options in (
        ([], table, {}),
        (["layer"], table, {}),
        (["language"], languages, {"embedding_layer": False}),
        ([], table[table["layer"] == 6], {"layers": [-1]}),
    ):
        summary = series.summarise(measured, by=by, **options).set_index([*keys, *by])
        means = expected.groupby([*keys, *by])["score"].mean()
        np.testing.assert_allclose(summary["score"], means.loc[summary.index], atol=1e-12)
        assert (summary["low"] <= summary["score"]).all()
        assert (summary["score"] <= summary["high"]).all()
    with pytest.raises(ValueError, match="cannot summarise by 'task'"):
        series.summarise(measured, by=["task"])


def test_differences(measured: Measured) -> None:
    first, last = measured[0], measured[-1]
    nothing = contrasts.score_difference(last, last, "LD")
    assert nothing == {"value": 0.0, "low": 0.0, "high": 0.0}
    change = contrasts.score_difference(last, first, "MD")
    means = series.summarise([first, last]).query("task == 'MD'")["score"].to_numpy()
    assert change["value"] == pytest.approx(means[1] - means[0])
    there, back = (
        contrasts.score_difference(last, last, "LD", layers=[a], other_layers=[b])
        for a, b in ((1, 4), (4, 1))
    )
    assert there["value"] == pytest.approx(-back["value"])
    assert there["high"] == pytest.approx(-back["low"])


def test_errors_over_documents_stand_beside_those_over_sentences(
    corpus: ParallelCorpus, measured: Measured
) -> None:
    assert corpora.documents(corpus) == corpus.ids  # ids without documents: each its own
    named = replace(corpus, ids=tuple(f"test-en-news_a.b:{i // 2}:{i}" for i in range(10)))
    groups = corpora.documents(named)
    assert groups[1:3] == ("test-en-news_a.b:0", "test-en-news_a.b:1")
    last = measured[-1]
    table = series.document_errors(measured[-2:], groups).set_index(["checkpoint", "task"])
    row = table.loc[last.step, "MD"]
    influence = last.influence["MD"].mean(axis=(0, 1))
    assert row["score"] == pytest.approx(last.scores.scores["MD"].mean())
    assert row["sentences"] == pytest.approx(statistics.jackknife_error(influence))
    assert row["documents"] == pytest.approx(statistics.grouped_error(influence, groups))
    assert row["ratio"] == pytest.approx(row["documents"] / row["sentences"])
    assert len(table) == 6


def test_an_encoder_stands_for_its_name(
    corpus: ParallelCorpus, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny.save(tmp_path / "spread", "llama")
    expected = series.measure_model(folder, corpus, special_tokens=True)
    bag = series.bag_scores(folder, corpus)
    places = {"embed_tokens": "cpu", "layers": "disk", "norm": "cpu", "rotary_emb": "cpu"}
    encoder = loading.load(folder, device_map=places)
    found = series.measure_model(encoder, corpus, special_tokens=True)
    assert found.model == "spread"
    assert found.table().equals(expected.table())  # of the store
    assert series.bag_scores(encoder, corpus).equals(bag)
    with xlx.settings(policy="ignore"):
        again = series.measure_model(encoder, corpus, special_tokens=True)
    for task in ("LD", "MD"):
        assert np.allclose(again.scores.scores[task], expected.scores.scores[task], atol=1e-3)
    plain = series.measure_model(encoder, corpus)
    assert not np.allclose(plain.scores.scores["MD"], expected.scores.scores["MD"], atol=1e-3)
