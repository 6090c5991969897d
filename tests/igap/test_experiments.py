"""What the notebooks of IGAP compute: on runs made by hand, against numbers counted one by one."""

import numpy as np
import pandas as pd
import pytest

import igap_1_decomposition
import igap_2_ranking
import igap_3_models
import igap_4_directions
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


def test_who_is_best_is_counted_at_each_level_of_each_direction() -> None:
    rows = [
        ("a", "de", 0.1, 0.2, 0.2), ("b", "de", 0.1, 0.3, 0.3), ("c", "de", 0.1, 0.4, 0.5),
        ("a", "de", 0.0, 0.3, 0.3), ("b", "de", 0.0, 0.2, 0.2), ("c", "de", 0.0, np.nan, np.nan),
    ]  # fmt: skip
    curves = pd.DataFrame(rows, columns=["model", "target", "level", "igap", "crossfitted"])
    curves = curves.assign(task="PI", source="en")
    points = pd.DataFrame(
        {"task": "PI", "training": [0.0, 0.1, 0.9], "interlingual": [-0.1, 0.1, -1.0],
         "transfer_gap": [0.1, 0.2, -1.0]}
    )  # fmt: skip
    found = igap_1_decomposition.model_order(points, curves, ["a", "b", "c"], 0.025)["PI"]
    assert found["comparisons"] == 2
    assert [found[f"best, crossfitted: {m}"] for m in "abc"] == [1, 1, 0]
    assert [found[f"second of three: {m}"] for m in "abc"] == [0, 1, 0]
    assert found["interlingual gap below 0, %"] == 50  # of two near enough
    assert found["transfer gap below 0, %"] == 0
    assert found["IGAP grows from one level to the next, %"] == 50  # c has one level


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


def test_orders_are_ranked_beside_the_other_sources() -> None:
    rng = np.random.default_rng(0)
    pairs = [(a, b) for a in "wxyz" for b in "wxyz" if a != b]
    gold = igap.gold_scores({pair: rng.random((2, 997)) < 0.5 for pair in pairs}, n_resamples=9)
    metric = gold.table.assign(metric="IGAP")
    ranked = igap_2_ranking.rank_metrics({("m", "new pairs"): gold}, {"m": metric})
    assert ranked["metric"].unique().tolist() == ["IGAP", "other sources"]
    assert (ranked.loc[ranked["metric"] == "IGAP", "accuracy"] == 1).all()
    with pytest.raises(ValueError, match="raise the tolerance"):
        igap_2_ranking.rank_metrics({("m", ""): gold}, {"m": metric.assign(score=np.nan)})


def test_a_direction_is_compared_with_its_reverse_and_with_another_seed() -> None:
    pairs = [("a", "b"), ("b", "a"), ("a", "c"), ("c", "a"), ("b", "c"), ("c", "b")]
    index = pd.MultiIndex.from_tuples(pairs, names=["source", "target"])
    gaps = pd.Series([0.1, 0.3, 0.2, 0.2, 0.5, 0.1], index)
    gaps = pd.DataFrame({1: gaps, 2: gaps + 0.1})
    row = igap_4_directions.reversal_table({"made": gaps}).loc[("made", 2)]
    assert (row["to the reverse"], row["to the first seed"]) == ("20.0", "10.0")
    assert row["r of the gaps"] == row["r of the differences"] == 1


def test_memorisation_tells_changed_labels_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    of, rng = task(), np.random.default_rng(0)
    measured = {}
    for ratio in (0.0, 1.0):
        one = of.corrupted(ratio, 1)
        measured[ratio] = Transfers(one, tuple(made_run(one, rng, seed=x) for x in (1, 2)))
    strings = pd.DataFrame({"source": "en", "target": ["de"], "found": 1, "interlingual": 0.25})
    monkeypatch.setattr(igap_4_directions, "shared_subwords", lambda *_, **__: strings)
    drawn, told = igap_4_directions.memorised_labels(
        of, measured, "one", tolerance=0.2, max_length=None, n_resamples=20
    )
    targets = [code for code in of.languages if code != "en"]
    for (ratio, row), own in zip(told.iterrows(), measured.values(), strict=True):
        labels = own.task.train["en"].labels
        changed = labels != of.train["en"].labels
        answers = [run.predictions[f"train {x}"][-1] == labels for run in own.runs for x in targets]
        right = np.mean(answers, axis=0)
        assert row["changed"] == changed.sum()
        assert (row["changed"] == 0) == (ratio == 0)
        assert row["accuracy"] == pytest.approx(right.mean())
        assert row["of the others"] == pytest.approx(right[~changed].mean())
        if ratio:
            assert row["of changed"] == pytest.approx(right[changed].mean())
        assert row["shared subwords"] == 0.25
        mean = drawn[(drawn["ratio"] == ratio) & drawn["target"].isna()].set_index("quantity")
        assert mean.loc["accuracy", "value"] == pytest.approx(right.mean())
        assert mean.loc["IGAP", "value"] == pytest.approx(row["IGAP"])
    assert set(drawn["target"].dropna()) == set(targets)
