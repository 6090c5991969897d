"""What the notebooks of IGAP show: on runs made by hand, against the numbers counted one by one."""

import numpy as np
import pandas as pd
import pytest

from shared import igap_tables
from tests.igap.test_transfers import CODES, RECIPE, made_run, runs, task
from xlx.experiment import transfers
from xlx.experiment.transfers import Transfers
from xlx.measures import igap

OPTIONS = {"n_resamples": 20, "seed": 0}


@pytest.fixture(scope="module")
def measured() -> dict[str, Transfers]:
    """Two models, two algorithms, from English, as two tasks."""
    of = task()
    rng = np.random.default_rng(3)
    some = tuple(
        made_run(of, rng, model=model, algorithm=algorithm, seed=seed)
        for model in ("one", "two")
        for algorithm in ("vanilla", "xtune")
        for seed in (1, 2)
    )
    return {"NLI": Transfers(of, some), "PI": Transfers(of, some[:2])}


def test_tasks_are_told_by_size_labels_and_what_knows_nothing() -> None:
    table = transfers.task_table({"made": task(), "random": task(tested=False)})
    assert table.loc["made", "labels"] == "no 6, yes 6"
    assert table["to test"].tolist() == [7, 0]
    assert table.loc["made", ["guess", "one label"]].tolist() == [0.5, 0.5]
    assert transfers.example(task(), ["en", "de"]).splitlines()[-1] == "label: no"
    assert transfers.stem_of("same or other") == "same-or-other"
    found = transfers.load_tasks({"PI": ["en", "de"]}, {"PI": 5}, 4, {}, train_split="train")
    assert (found["PI"].n_train, len(found["PI"].test["de"])) == (5, 4)


def test_models_are_fine_tuned_by_the_first_algorithm_and_one_by_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def transfer(models, of, sources, recipes, seeds, *, sparing=None) -> Transfers:
        rng = np.random.default_rng(0)
        return Transfers(
            of,
            tuple(
                made_run(of, rng, model=m, algorithm=r.algorithm) for m in models for r in recipes
            ),
        )

    monkeypatch.setattr(igap_tables, "transfer_task", transfer)
    of, recipes = {"NLI": task(), "PI": task()}, {"NLI": [RECIPE], "PI": [RECIPE]}
    found = igap_tables.fine_tune_by_algorithm(
        ["one", "two"], of, "en", recipes, ["vanilla", "xtune"], ("two", ["PI"]), [1], None
    )
    kinds = {name: [(run.model, run.algorithm) for run in x.runs] for name, x in found.items()}
    plain = [("one", "vanilla"), ("two", "vanilla")]
    assert kinds == {"NLI": plain, "PI": [*plain, ("two", "xtune")]}
    again = igap_tables.fine_tune(["one"], of, {name: ["en"] for name in of}, recipes, [1])
    assert [len(x.runs) for x in again.values()] == [1, 1]


def test_parts_of_the_error_are_averaged_over_seeds_and_by_thirds(measured: dict) -> None:
    points = igap_tables.all_points(measured).assign(task="PI")
    parts = igap_tables.error_parts(points[points["algorithm"] == "vanilla"])
    row = parts.iloc[0]
    keys = ["target", "model", "step"]
    same = points[(points[keys] == row[keys]).all(axis=1) & (points["algorithm"] == "vanilla")]
    values = same[row["quantity"]]
    assert (row["value"], row["low"], row["high"]) == pytest.approx(
        (values.mean(), values.min(), values.max())
    )
    thirds = igap_tables.parts_by_third(parts, {"PI": ["en"]})
    last = parts[(parts["step"] == 12) & (parts["quantity"] == "training")]
    means = last.groupby("model")["value"].mean()
    assert thirds.loc[("PI", "training", "one"), "last"] == pytest.approx(means["one"])
    ends = igap_tables.last_checkpoints(points)
    assert set(ends["step"]) == {12}


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
    found = igap_tables.model_order(points, curves, ["a", "b", "c"], 0.025)["PI"]
    assert found["comparisons"] == 2
    assert [found[f"best, crossfitted: {m}"] for m in "abc"] == [1, 1, 0]
    assert [found[f"second of three: {m}"] for m in "abc"] == [0, 1, 0]
    assert found["interlingual gap below 0, %"] == 50  # of two near enough
    assert found["transfer gap below 0, %"] == 0
    assert found["IGAP grows from one level to the next, %"] == 50  # c has one level


def test_averages_are_of_the_targets_and_printed_in_points(measured: dict) -> None:
    curves = igap_tables.all_curves(measured, [0.0], 0.5, **OPTIONS)
    assert set(curves["one_label"]) == {0.5}
    averages = curves[curves["target"] == "mean"]
    accuracies = igap_tables.average_accuracies(measured, **OPTIONS)
    assert len(accuracies) == 5
    run = measured["PI"].only(algorithm="vanilla")
    wrong = [run.wrong(x, "test", code, -1).mean() for x in run.runs for code in ("de", "ja")]
    row = accuracies.set_index(igap_tables.RUN_KEYS).loc[("PI", "one", "vanilla")]
    assert row["accuracy"] == pytest.approx(1 - np.mean(wrong))
    assert row["low"] < row["accuracy"] < row["high"]
    table = igap_tables.averages_table(averages, accuracies)
    assert table.index[-1] == ("PAWS-X", "one", "vanilla")
    assert table["accuracy"].iloc[-1] == f"{100 * row['accuracy']:.1f}"
    by_target = igap_tables.target_table(
        curves[(curves["task"] == "NLI") & (curves["algorithm"] == "vanilla")],
        pd.DataFrame({"de": [14.7], "ru": [1.0]}, ["mBERT"]), "model",
    )  # fmt: skip
    assert by_target.index.tolist() == ["one", "two", "mBERT, printed"]
    assert by_target.loc["mBERT, printed", "de"] == "14.7"
    luck = igap_tables.luck_table(averages)
    assert luck["models"].tolist() == averages["n_models"].tolist()
    both = igap_tables.beside_print(
        igap_tables.our_averages(averages, accuracies)
        .query("algorithm == 'vanilla'")
        .assign(row=lambda rows: rows["model"])
    )
    assert both.columns.tolist() == ["ours", "ours accuracy"]


def test_a_difference_has_the_interval_of_the_difference(measured: dict) -> None:
    steps = igap_tables.steps_between(["one", "two"], ["vanilla", "xtune"], "two", {})
    assert steps == [
        (("one", "vanilla"), ("two", "vanilla")),
        (("two", "vanilla"), ("two", "xtune")),
    ]
    found = igap_tables.contrasts(measured, steps, 0.5, **OPTIONS)
    assert found["task"].tolist() == ["XNLI", "XNLI"]
    assert found["from → to"].tolist() == ["one → two", "vanilla → xTune"]
    curves = igap_tables.all_curves(measured, [0.0], 0.5, **OPTIONS)
    igap = curves[(curves["task"] == "NLI") & (curves["target"] == "mean")]
    igap = igap.set_index(["model", "algorithm"])["igap"]
    for row, (first, second) in zip(found.itertuples(), steps, strict=True):
        assert row.value == pytest.approx(igap[first] - igap[second])
        assert row.low < row.value < row.high
        assert row.targets == 2
    of_itself = igap_tables.contrasts(measured, [(steps[0][0],) * 2], 0.5, **OPTIONS)
    assert (of_itself[["value", "low", "high"]] == 0).all(axis=None)


def test_measures_of_models_are_put_on_one_side_and_compared_in_pairs() -> None:
    frozen = pd.DataFrame(
        {"source": "en", "metric": ["MD", "MEXA", "MD"], "score": [0.4, 0.2, 0.6]}
    )
    aligned = igap_tables.mean_alignment({"one": (frozen, 3)}, "en")
    assert aligned.loc["one"].to_dict() == {"layer": 3, "MD": 0.5, "MEXA": 0.2}
    measures = pd.DataFrame({"a": [1.0, 3.0], "b": [2.0, 2.0], "c": [3.0, 1.0]}, ["up", "down"])
    assert igap_tables.agreement(measures, ["up"])["up"].tolist() == [1, 0]


# --- directions -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def both_ways() -> Transfers:
    return runs(task()).only(model="one", algorithm="vanilla", learning_rate=1e-3)


def test_orders_are_ranked_beside_the_other_sources() -> None:
    rng = np.random.default_rng(0)
    pairs = [(a, b) for a in "wxyz" for b in "wxyz" if a != b]
    gold = igap.gold_scores({pair: rng.random((2, 30)) < 0.5 for pair in pairs}, n_resamples=9)
    predicted = {"m": gold.table.assign(metric="IGAP")}
    ranked = igap_tables.rank_metrics({("m", "new pairs"): gold}, predicted)
    assert ranked["metric"].unique().tolist() == ["IGAP", "other sources"]
    table = igap_tables.ranking_table(ranked)
    mean = ranked.set_index(["source", "metric"]).loc[("mean", "IGAP")]
    assert table.loc[("m", "IGAP"), "new pairs"].startswith(f"{100 * mean['accuracy']:.0f} (")
    assert table.loc[("m", "IGAP"), "p, new pairs"] == round(mean["p_value"], 3) < 0.5
    by_source, means = igap_tables.ranking_points(ranked, "m", "new pairs")
    assert (len(by_source), len(means)) == (8, 2)
    won = igap_tables.wins(by_source).loc["other sources"]
    assert won.sum() == 4
    assert won["worse"] == 0
    table = igap_tables.gold_table({("m", "new pairs"): gold})
    assert table.loc[("m", "new pairs"), "highest"] == gold.table["score"].max()


def test_directions_are_told_by_squares_and_best_sources(both_ways: Transfers) -> None:
    table = both_ways.directions(0.0, 0.5, **OPTIONS)
    shown = igap_tables.squares({"made": table})
    assert shown.loc[("made", "igap", "en"), "en"] == "0.0"
    summary = igap_tables.directions_table({"made": table}).loc[("made", "igap")]
    assert summary["directions"] == 4
    best = igap_tables.best_sources({"made": table})
    ja = table[(table["target"] == "de")].set_index("source")
    assert best.loc[("made", "de"), "IGAP"] == ja["igap"].idxmin()
    assert best.loc[("made", "de"), "test accuracy"] == ja["accuracy"].idxmax()
    assert igap_tables.accuracy_width(task()) == f"{196 * np.sqrt(0.25 / 7):.1f}"
    answers = igap_tables.answers_table(both_ways, 1)
    run = both_ways.runs[0]
    assert answers.loc["answer", "de"] == ("no", "yes")[run.predictions["train de"][-1, 1]]


def test_a_direction_is_compared_with_its_reverse_and_with_another_seed() -> None:
    index = pd.MultiIndex.from_tuples(
        [("a", "b"), ("b", "a"), ("a", "c"), ("c", "a"), ("b", "c"), ("c", "b")],
        names=["source", "target"],
    )
    gaps = pd.DataFrame({1: [0.1, 0.3, 0.2, 0.2, 0.5, 0.1]}, index).assign(**{"2": 0})
    gaps = gaps.rename(columns={"2": 2})
    gaps[2] = gaps[1] + 0.1
    row = igap_tables.reversal_table({"made": gaps}).loc[("made", 2)]
    assert (row["to the reverse"], row["to the first seed"]) == ("20.0", "10.0")
    assert row["r of the gaps"] == row["r of the differences"] == 1


def test_gaps_stand_beside_shared_strings(both_ways: Transfers) -> None:
    gaps = igap_tables.gaps_by_seed(both_ways)
    run = both_ways.runs[0]
    wrong = both_ways.wrong(run, "train", "de", -1).mean()
    assert gaps.loc[("en", "de"), 1] == pytest.approx(wrong)  # nothing is wrong in the source
    shared = pd.DataFrame(
        [(a, b, 0.9 if a == "en" else 0.1, 0.2) for a in CODES for b in CODES if a != b],
        columns=["source", "target", "found", "interlingual"],
    )
    groups = igap_tables.by_shared(gaps, shared)
    assert groups["directions"].to_dict() == {"few": 2, "many": 2}
    assert set(groups["shared subwords"]) == {"20.0"}
    assert (igap_tables.with_strings(gaps, shared)["shared subwords"] == 0.2).all()
    alone = pd.DataFrame({"found": [0.5, 0.1], "interlingual": [0.2, 0.4]}, ["de", "ja"])
    from_english = both_ways.only(source="en")
    table = igap_tables.beside_strings(from_english, alone, 0.5, **OPTIONS)
    assert table.loc["ja", ["shared subwords", "found"]].tolist() == ["40.0", "10.0"]


def test_memorisation_tells_changed_labels_from_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    made_of = task()
    asked = []

    def runs(names, tasks, sources, recipes, seeds, *, sparing=None) -> list[Transfers]:
        asked.extend(tasks)
        rng = np.random.default_rng(0)
        return [
            Transfers(one, tuple(made_run(one, rng, seed=seed) for seed in seeds)) for one in tasks
        ]

    strings = pd.DataFrame({"source": ["en"], "target": ["de"], "interlingual": [0.25]})
    monkeypatch.setattr(igap_tables, "transfer_tasks", runs)
    monkeypatch.setattr(igap_tables, "shared_subwords", lambda *_, **__: strings)
    drawn, told = igap_tables.memorised_labels(
        "one", made_of, "en", [RECIPE], [1, 2], [0.0, 1.0], tolerance=0.2, n_resamples=20
    )
    targets = [code for code in made_of.languages if code != "en"]
    again = runs([], [made_of.corrupted(ratio, 1) for ratio in (0.0, 1.0)], [], [], [1, 2])
    for (ratio, row), own in zip(told.iterrows(), again, strict=True):
        labels = own.task.train["en"].labels
        changed = labels != made_of.train["en"].labels
        right = np.mean(
            [
                run.predictions[f"train {code}"][-1] == labels
                for run in own.runs
                for code in targets
            ],
            axis=0,
        )
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
    table = igap_tables.memory_table({"made": told})
    assert table.loc[("made", 0.0), "of changed"] == "–"
    ends = igap_tables.ends_table({"made": drawn})
    assert ends.columns.tolist() == [0.0, 1.0]
    assert ends.loc[("made", "accuracy", "50.0"), 0.0].startswith(
        f"{100 * told['accuracy'][0]:.1f}"
    )
