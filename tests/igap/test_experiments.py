"""What the notebooks of IGAP compute, on runs made by hand."""

import numpy as np
import pytest

import igap_2_ranking
import igap_3_models
from shared import igap_tables
from tests.igap.test_transfers import made_run, task
from xlx.experiment.transfers import Transfers
from xlx.measures import igap

OPTIONS = {"n_resamples": 20, "seed": 0}


@pytest.fixture(scope="module")
def measured() -> dict[str, Transfers]:
    """Two models, two algorithms, from English, as two tasks."""
    of, rng = task(), np.random.default_rng(3)
    some = tuple(
        made_run(of, rng, model=model, algorithm=algorithm, seed=seed)
        for model in ("one", "two")
        for algorithm in ("vanilla", "xtune")
        for seed in (1, 2)
    )
    return {"NLI": Transfers(of, some), "PI": Transfers(of, some[:2])}


def test_tasks_are_told_by_size_labels_and_what_knows_nothing() -> None:
    table = igap_tables.task_table({"made": task(), "random": task(tested=False)})
    assert table.loc["made", "labels"] == "no 6, yes 6"
    assert table["to test"].tolist() == [7, 0]
    assert table.loc["made", ["guess", "one label"]].tolist() == [0.5, 0.5]
    assert igap_tables.example(task(), ["en", "de"]).splitlines()[-1] == "label: no"
    found = igap_tables.load_tasks({"PI": ["en", "de"]}, {"PI": 5}, 4, {}, train_split="train")
    assert (found["PI"].n_train, found["PI"].n_test) == (5, 4)


def test_accuracies_are_of_the_targets_and_differences_have_their_own_interval(
    measured: dict,
) -> None:
    accuracies = igap_3_models.average_accuracies(measured, **OPTIONS)
    assert len(accuracies) == 5
    run = measured["PI"].only(algorithm="vanilla")
    wrong = [run.wrong(x, "test", code, -1).mean() for x in run.runs for code in ("de", "ja")]
    row = accuracies.set_index(igap_3_models.RUN_KEYS).loc[("PI", "one", "vanilla")]
    assert row["accuracy"] == pytest.approx(1 - np.mean(wrong))
    assert row["low"] < row["accuracy"] < row["high"]
    pairs = [
        (("one", "vanilla"), ("two", "vanilla")), (("two", "vanilla"), ("two", "xtune")),
    ]  # fmt: skip
    found = igap_3_models.contrasts(measured, pairs, 0.5, **OPTIONS)
    assert found["task"].tolist() == ["XNLI", "XNLI"]
    assert found["from → to"].tolist() == ["one → two", "vanilla → xTune"]
    curves = igap_tables.all_curves(measured, [0.0], 0.5, **OPTIONS)
    assert set(curves["one_label"]) == {0.5}
    gaps = curves[(curves["task"] == measured["NLI"].task.name) & (curves["target"] == "mean")]
    gaps = gaps.groupby(["model", "algorithm"])["igap"].first()
    for row, (first, second) in zip(found.itertuples(), pairs, strict=True):
        assert row.value == pytest.approx(gaps[first] - gaps[second])
        assert row.low < row.value < row.high
        assert row.targets == 2
    of_itself = igap_3_models.contrasts(measured, [(pairs[0][0],) * 2], 0.5, **OPTIONS)
    assert (of_itself[["value", "low", "high"]] == 0).all(axis=None)


def test_an_order_without_igap_is_refused() -> None:
    pairs = [("a", "b"), ("a", "c"), ("b", "a"), ("b", "c")]
    gold = igap.gold_scores({pair: np.eye(2) < 1 for pair in pairs}, n_resamples=2)
    metric = gold.table.assign(metric="IGAP", score=np.nan)
    with pytest.raises(ValueError, match="raise the tolerance"):
        igap_2_ranking.rank_metrics({("m", ""): gold}, {"m": metric})
