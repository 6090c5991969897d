"""Members compared, and what runs of one recipe differ by, on small scores that are known."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import models_1_family
from models_1_family import BEST, MEAN, SCORED
from tests import tiny
from tests.abx.made_scores import scores
from xlx.experiment import abx_scores, averages, surface
from xlx.experiment.abx_scores import MATCHED, CheckpointScores, checkpoint_scores
from xlx.experiment.averages import average, averaged_scores
from xlx.subjects import identity
from xlx.text.parallel import ParallelCorpus

Measured = dict[str, CheckpointScores]
NAMES = ["mini-xlmr", "mini-mbert"]


@pytest.fixture
def measured() -> Measured:
    """Two members; the second layer of the one is best, and the first of the other."""
    rng = np.random.default_rng(3)
    levels = [
        {"LD": [0.9, 0.8], "MD": [0.6, 0.7], "matched": [0.5, 0.6]},
        {"LD": [0.9, 0.9], "MD": [0.8, 0.6], "matched": [0.65, 0.55]},
    ]
    return {name: scores(rng, name, 5, **of) for name, of in zip(NAMES, levels, strict=True)}


def state(name: str, step: int) -> SimpleNamespace:
    """A checkpoint that is not opened."""
    return SimpleNamespace(name=name, step=step)


@pytest.fixture
def histories(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict, list], list]:
    """Sets the histories that there are and the scores of their states, as of one model a state.

    The list that is given back fills with the options that scores are asked for with.
    """

    def given(by_name: dict[str, Sequence], known: Sequence[CheckpointScores]) -> list:
        asked: list[dict[str, object]] = []
        of_state = {(of.model, of.step): of for of in known}

        def scored(states: Sequence, _: object, **options: object) -> list[CheckpointScores]:
            asked.append(options)
            return [of_state[state.name, state.step] for state in states]

        monkeypatch.setattr(abx_scores, "history", lambda name, recorded: list(by_name[name]))
        monkeypatch.setattr(models_1_family, "checkpoint_scores", scored)
        return asked

    return given


# --- which states are scored ----------------------------------------------------------------------


def test_last_scores_are_found_without_the_weights(corpus: ParallelCorpus, tmp_path: Path) -> None:
    """Of a folder that holds the record alone what was computed before, and no more."""
    options = {"pooling": "mean"}
    folders = [
        tiny.series(tmp_path / name, steps) for name, steps in (("stored", (0, 7)), ("never", (8,)))
    ]
    (before,) = checkpoint_scores([str(folders[0])], corpus, **options)
    for folder in folders:
        (folder / identity.RECORD).write_text(identity.record(folder))
        for step in folder.glob("step-*"):
            shutil.rmtree(step)
    plain = tiny.save(tmp_path / "plain", seed=3)
    with pytest.warns(UserWarning, match="never: left out are the checkpoints 8: their weights"):
        last = models_1_family.last_scores([*map(str, folders), str(plain)], corpus, **options)
    assert {name: of.step for name, of in last.items()} == {"stored": 7, "plain": 0}
    pd.testing.assert_frame_equal(last["stored"].table(), before.table())


def test_untrained_scores_are_those_of_step_0_where_there_is_one(
    corpus: ParallelCorpus, histories: Callable
) -> None:
    rng = np.random.default_rng(0)
    untrained = scores(rng, "m", 0, LD=[0.5], MD=[0.5], matched=[0.5])
    by_name = {"m": [state("m", 0), state("m", 9)], "late": [state("late", 4)], "bare": ["bare"]}
    asked = histories(by_name, [untrained])
    by_model = models_1_family.untrained_scores(list(by_name), corpus, pooling="cls")
    assert by_model == {"m": untrained}
    assert asked == [{"pooling": "cls"}]
    assert models_1_family.untrained_scores(["late", "bare"], corpus) == {}
    assert len(asked) == 1  # nothing is asked for where there is nothing


def test_runs_are_scored_where_the_shortest_of_the_others_ends(
    corpus: ParallelCorpus, histories: Callable
) -> None:
    rng = np.random.default_rng(0)
    steps = {"member": (0, 4, 9, 20), "seed 1": (0, 9), "seed 2": (0, 4, 9, 12)}
    at_9 = [scores(rng, name, 9, LD=[0.5], MD=[0.5], matched=[0.5]) for name in steps]
    by_name = {name: [state(name, step) for step in kept] for name, kept in steps.items()}
    by_name["sparse"] = [state("sparse", 0), state("sparse", 4)]
    asked = histories(by_name, at_9)
    others = ["seed 1", "seed 2"]
    by_recipe = models_1_family.scored_runs({"member": ("member", others)}, corpus, pooling="cls")
    assert by_recipe == {"member": at_9}
    assert asked == [{"pooling": "cls"}]
    assert models_1_family.scored_runs({"member": ("member", [])}, corpus) == {}
    with pytest.raises(ValueError, match="sparse has no checkpoint at step 9, as other runs have"):
        models_1_family.scored_runs({"sparse": ("sparse", others)}, corpus)


# --- tables ---------------------------------------------------------------------------------------


def test_layers_stand_in_columns_and_rows_in_the_order_given(measured: Measured) -> None:
    by_layer = models_1_family.layer_scores(measured)
    expected = averaged_scores(list(measured.values()), SCORED, by=["layer"])
    pd.testing.assert_frame_equal(by_layer, expected)
    wide = models_1_family.layer_table(by_layer)
    assert wide.index.names == ["task", "model"]
    assert wide.columns.tolist() == [0, 1]
    tasks, models = (wide.index.get_level_values(level) for level in ("task", "model"))
    assert list(tasks) == [task for task in SCORED for _ in NAMES]
    assert list(models) == NAMES * len(SCORED)
    for task, name in wide.index:
        by_hand = measured[name].scores.scores[task].mean(axis=(1, 2))
        np.testing.assert_allclose(wide.loc[(task, name)], by_hand)


def test_what_needs_no_model_stands_by_vocabulary() -> None:
    bags = [("a", MATCHED, 0.6), ("a", "LD", 0.9), ("b", MATCHED, 0.7), ("c", MATCHED, 0.8)]
    lines = {
        surface.LENGTH_ALONE: [("a", "MD", 0.75), ("b", "MD", 0.75), ("c", "MD", 0.75)],
        surface.BAG: bags,
    }
    columns = ["model", "task", "score"]
    frames = {of: pd.DataFrame(rows, columns=columns) for of, rows in lines.items()}
    table = models_1_family.surface_table(frames, {"BPE": ["a", "b"], "WordPiece": ["c"]})
    assert table.columns.tolist() == list(SCORED)
    assert set(table.index) == {(of, kind) for of in lines for kind in ("BPE", "WordPiece")}
    of_bag = table.loc[(surface.BAG, "BPE")]
    assert (of_bag[MATCHED], of_bag["LD"]) == (0.6, 0.9)  # of the first model alone
    assert np.isnan(of_bag["MD"])
    assert table.loc[(surface.BAG, "WordPiece"), MATCHED] == 0.8
    assert table["MD"].xs(surface.LENGTH_ALONE).tolist() == [0.75, 0.75]


def test_a_summary_has_all_layers_and_the_best(measured: Measured) -> None:
    """The best is that of MD among sentences of like length, whatever LD and plain MD say."""
    assert [averages.best_layer(of) for of in measured.values()] == [1, 0]
    summary = models_1_family.summary_table(measured)
    assert summary.index.tolist() == NAMES
    assert summary[BEST, "layer"].tolist() == [1, 0]
    deep = models_1_family.summary_table(measured, embedding_layer=False)
    for name, best in zip(NAMES, (1, 0), strict=True):
        for task in SCORED:
            by_layer = measured[name].scores.scores[task].mean(axis=(1, 2))
            assert summary.loc[name, (MEAN, task)] == pytest.approx(by_layer.mean())
            assert deep.loc[name, (MEAN, task)] == pytest.approx(by_layer[1])
            for table in (summary, deep):
                assert table.loc[name, (BEST, task)] == pytest.approx(by_layer[best])


def test_what_stands_above_the_surface(
    measured: Measured, corpus: ParallelCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    bags = {
        name: scores(rng, surface.BAG, 0, LD=[1.0], MD=[0.7], matched=[level])
        for name, level in zip(("first", "second"), (0.55, 0.6), strict=True)
    }
    asked: list[int | None] = []

    def bag_of(name: str, _: object, max_length: int | None) -> CheckpointScores:
        asked.append(max_length)
        return bags[name]

    monkeypatch.setattr(surface, "subword_bag", bag_of)
    before = scores(rng, NAMES[0], 0, LD=[0.5] * 2, MD=[0.5] * 2, matched=[0.52, 0.5])
    table = models_1_family.above_surface(list(bags), measured, {NAMES[0]: before}, corpus, 64)
    assert asked == [64, 64]
    assert table.index.tolist() == [(NAMES[0], 1), (NAMES[1], 0)]
    heads = [MATCHED, "above untrained", "above the bag"]
    assert table.columns.tolist() == [
        (what, end) for what in heads for end in ("value", "low", "high")
    ]
    untrained = average(before, MATCHED, layers=[0])  # at its own best layer
    for (name, layer), bag in zip(table.index, bags.values(), strict=True):
        score = average(measured[name], MATCHED, layers=[layer])
        others = {MATCHED: score, "above the bag": score - average(bag, MATCHED)}
        others |= {"above untrained": score - untrained} if name == NAMES[0] else {}
        for what, expected in others.items():
            row = table.loc[(name, layer), what]
            assert row.tolist() == pytest.approx([float(expected.score), *expected.interval()])
            assert row.tolist() == [number for _, number in models_1_family.ends(expected)]
    assert table.loc[(NAMES[1], 0), "above untrained"].isna().all()
    alone = models_1_family.above_surface(list(bags), measured, {}, corpus)
    assert list(dict.fromkeys(alone.columns.get_level_values(0))) == heads[::2]


def test_best_layers_stand_beside_what_igap_prints(measured: Measured) -> None:
    rng = np.random.default_rng(5)
    other = {"mini-llama": scores(rng, "mini-llama", 5, LD=[0.5], MD=[0.5], matched=[0.5])}
    summary = models_1_family.summary_table({**other, **dict(reversed(measured.items()))})
    printed = models_1_family.beside_printed(summary, {"mini-xlmr": "XLM-R", "mini-mbert": "mBERT"})
    assert printed.index.tolist() == NAMES  # by the printed gap; none is printed of a decoder
    assert printed["kind"].tolist() == ["XLM-R", "mBERT"]
    assert printed["IGap PAWS-X, printed"].tolist() == [16.8, 21.6]
    pd.testing.assert_frame_equal(
        printed[list(SCORED)], summary.loc[NAMES, BEST][list(SCORED)], check_names=False
    )


# --- members beside each other --------------------------------------------------------------------


def test_models_less_their_references(measured: Measured) -> None:
    table = models_1_family.score_differences(measured, {"mini-mbert": "mini-xlmr"})
    assert table[["model", "reference"]].drop_duplicates().to_numpy().tolist() == [NAMES[::-1]]
    assert list(zip(table["layers"], table["task"], strict=True)) == [
        (layers, task) for layers in (MEAN, BEST) for task in SCORED
    ]
    value = table.set_index(["layers", "task"])["value"]
    assert value[MEAN, "LD"] == pytest.approx(0.05, abs=0.005)
    assert value[MEAN, MATCHED] == pytest.approx(0.05, abs=0.005)
    assert value[BEST, "LD"] == pytest.approx(0.1, abs=0.005)  # layer 0 against layer 1
    assert value[BEST, MATCHED] == pytest.approx(0.05, abs=0.005)
    assert table["low"].lt(table["value"]).all()
    assert table["high"].gt(table["value"]).all()
    ours, theirs = (average(measured[name], "MD") for name in NAMES[::-1])
    row = table.set_index(["layers", "task"]).loc[(MEAN, "MD"), ["low", "high"]]
    assert row.tolist() == pytest.approx(list((ours - theirs).interval()))
    deep = models_1_family.score_differences(
        measured, {"mini-mbert": "mini-xlmr"}, embedding_layer=False
    )
    of_deep = deep.set_index(["layers", "task"])["value"]
    assert of_deep[MEAN, "LD"] == pytest.approx(0.1, abs=0.005)
    assert of_deep[BEST, "LD"] == value[BEST, "LD"]
    back = models_1_family.score_differences(measured, {"mini-xlmr": "mini-mbert"})
    np.testing.assert_allclose(back["value"], -table["value"])
    np.testing.assert_allclose(back["low"], -table["high"])


def test_runs_spread_around_the_mean_of_their_recipe() -> None:
    """Recipes differ by much more than their runs: that is no part of the spread."""
    rng = np.random.default_rng(6)
    runs = {
        recipe: [
            scores(rng, f"{recipe}-{seed}", 5, **{
                task: level + rng.normal(0, 0.05, 3) for task in ("LD", "MD", "matched")
            })
            for seed in range(n_runs)
        ]
        for recipe, level, n_runs in (("p", 0.4, 3), ("q", 0.8, 2), ("alone", 0.6, 1))
    }  # fmt: skip
    spread = models_1_family.run_spread(runs)
    assert spread["freedom"].tolist() == [3] * 6
    by_set = spread.set_index(["layers", "task"])["sd"]
    assert by_set.index.tolist() == [(layers, task) for layers in (MEAN, BEST) for task in SCORED]
    assert len({averages.best_layer(of) for of in runs["p"] + runs["q"]}) > 1
    for layers, task in by_set.index:
        squares = 0.0
        for of_recipe in (runs["p"], runs["q"]):
            values = []
            for of in of_recipe:
                by_layer, matched = (
                    of.scores.scores[name].mean(axis=(1, 2)) for name in (task, MATCHED)
                )
                values.append(by_layer.mean() if layers == MEAN else by_layer[matched.argmax()])
            squares += ((np.array(values) - np.mean(values)) ** 2).sum()
        assert by_set[layers, task] == pytest.approx(np.sqrt(squares / 3))
    deep = models_1_family.run_spread(runs, embedding_layer=False)
    assert (deep["sd"] != spread["sd"]).tolist() == [True] * 3 + [False] * 3
    single = models_1_family.run_spread({name: of_recipe[:1] for name, of_recipe in runs.items()})
    assert single["sd"].isna().all()
    assert single["freedom"].tolist() == [0] * 6


def made_runs(levels: dict[str, Sequence[float]]) -> dict[str, list[CheckpointScores]]:
    """Runs of recipes whose every score is at the level that is given for a run, but for noise."""
    rng = np.random.default_rng(8)
    return {
        recipe: [
            scores(rng, f"{recipe}-{seed}", 5, LD=[level] * 2, MD=[level] * 2, matched=[level] * 2)
            for seed, level in enumerate(of_recipe)
        ]
        for recipe, of_recipe in levels.items()
    }


def test_recipes_run_again_are_compared_by_the_means_of_their_runs() -> None:
    runs = made_runs({"p": [0.62, 0.65, 0.68], "q": [0.5, 0.501], "alone": [0.9]})
    references = {"p": "q", "q": "p", "alone": "p", "unknown": "q"}
    table = models_1_family.mean_run_differences(runs, references)
    assert table.index.names == ["layers", "task", "model", "reference"]
    assert table.index.tolist() == [
        (layers, task, *pair)
        for layers in (MEAN, BEST)
        for task in SCORED
        for pair in (("p", "q"), ("q", "p"))
    ]
    row = table.loc[MEAN, "LD", "p", "q"]
    p, q = ([float(average(of, "LD").score) for of in runs[recipe]] for recipe in ("p", "q"))
    assert row["of model"] == pytest.approx(np.mean(p))
    assert row["of reference"] == pytest.approx(np.mean(q))
    assert row["value"] == pytest.approx(np.mean(p) - np.mean(q))
    # Welch (1947), by hand: each recipe has a variance of its own
    parts = [np.var(of, ddof=1) / len(of) for of in (p, q)]
    error = np.sqrt(sum(parts))
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(of) - 1) for part, of in zip(parts, (p, q), strict=True)
    )
    reach = stats.t.ppf(0.975, freedom) * error
    assert [row["low"], row["high"]] == pytest.approx([row["value"] - reach, row["value"] + reach])
    back = table.loc[MEAN, "LD", "q", "p"]
    assert [-back["high"], -back["low"]] == pytest.approx([row["low"], row["high"]])
    none = models_1_family.mean_run_differences({}, references)
    assert none.empty
    assert none.columns.tolist() == table.columns.tolist()


def differences() -> pd.DataFrame:
    """Each with an interval of 0.05 to either side, which holds zero in none."""
    rows = [
        ("above", MEAN, "LD", 0.30),
        ("below", MEAN, "LD", -0.30),
        ("runs may", MEAN, "LD", 0.20),
        ("one run each", MEAN, "MD", 0.30),
        ("no runs", BEST, "LD", -0.30),
    ]
    table = pd.DataFrame(rows, columns=["model", "layers", "task", "value"])
    table = table.assign(reference="r", low=table["value"] - 0.05, high=table["value"] + 0.05)
    return table[["model", "reference", "layers", "task", "value", "low", "high"]]


def test_a_difference_is_beyond_what_text_and_runs_make() -> None:
    rows = [(MEAN, "LD", 0.05, 4), (MEAN, "MD", np.nan, 0)]
    spread = pd.DataFrame(rows, columns=["layers", "task", "sd", "freedom"])
    table = models_1_family.beside_runs(differences(), spread).set_index("model")
    verdicts = ["higher", "lower", "no", "not known", "not known"]
    assert table["beyond both"].tolist() == verdicts
    between = stats.t.ppf(0.975, 4) * np.sqrt(2) * 0.05  # 0.196: 0.2 is beyond it, and not both
    assert table["between runs"].tolist()[:3] == pytest.approx([between] * 3)
    assert table["between runs"].isna().tolist() == [False] * 3 + [True] * 2
    reach = np.hypot(0.05, between)
    assert between < 0.2 < reach < 0.3
    for end, sign in (("least", -1), ("most", 1)):
        expected = table["value"].iloc[:3] + sign * reach
        np.testing.assert_allclose(table[end].iloc[:3], expected)
        assert table[end].iloc[3:].isna().all()
    kept = differences().set_index("model")
    pd.testing.assert_frame_equal(table[kept.columns], kept)


def test_without_runs_nothing_is_known_of_them() -> None:
    table = models_1_family.beside_runs(differences(), models_1_family.run_spread({}))
    assert set(table["beyond both"]) == {"not known"}
    assert table["between runs"].isna().all()


def test_differences_are_shown_by_task_in_the_order_given(measured: Measured) -> None:
    references = {"mini-xlmr": "mini-mbert", "mini-mbert": "mini-xlmr"}
    spread = models_1_family.run_spread({"both": list(measured.values())})
    apart = models_1_family.beside_runs(
        models_1_family.score_differences(measured, references), spread
    )
    table = models_1_family.difference_table(apart, BEST)
    assert table.index.tolist() == [(task, *pair) for task in SCORED for pair in references.items()]
    rows = apart[apart["layers"] == BEST].set_index(["task", "model", "reference"])
    pd.testing.assert_frame_equal(table, rows.loc[table.index, table.columns])
    shown = ["value", "low", "high", "between runs", "beyond both"]
    assert table.columns.tolist() == shown
    assert table[shown[:-1]].dtypes.tolist() == [np.float64] * 4  # so that they can be rounded


# --- few languages and many -----------------------------------------------------------------------


def test_scores_among_some_languages_are_of_the_best_layer_there(corpus: ParallelCorpus) -> None:
    measured = checkpoint_scores(["mini-xlmr", "mini-infoxlm"], corpus)
    pairs, shared = measured[0].scores.pairs, corpus.languages[:2]
    inside = [k for k, pair in enumerate(pairs) if set(pair) <= set(shared)]
    assert 0 < len(inside) < len(pairs)
    table = models_1_family.best_within(measured, shared)
    assert table.index.get_level_values("model").tolist() == ["mini-xlmr", "mini-infoxlm"]
    assert table.columns.tolist() == list(SCORED)
    for (_, layer), row in table.iterrows():
        of = measured[0] if row.equals(table.iloc[0]) else measured[1]
        by_layer = of.scores.scores[MATCHED][:, inside].mean(axis=(1, 2))
        assert layer == by_layer.argmax()
        assert row[MATCHED] == pytest.approx(by_layer.max())
        assert row["LD"] == pytest.approx(of.scores.scores["LD"][layer, inside].mean())


def test_few_languages_are_compared_where_as_much_of_them_was_read(
    corpus: ParallelCorpus, histories: Callable
) -> None:
    rng = np.random.default_rng(7)

    def scored(name: str, step: int, level: float) -> CheckpointScores:
        return scores(rng, name, step, LD=[0.9, level], MD=[0.5, level], matched=[0.5, level])

    many = scored("many", 1600, 0.6)
    known = [scored("few", step, level) for step, level in ((100, 0.55), (200, 0.7), (800, 0.8))]
    steps = (0, 100, 200, 400, 800)
    by_name = {"few": [state("few", step) for step in steps]}
    by_name["many"] = [state("many", 0), state("many", 1600)]
    asked = histories(by_name, [many, *known])
    # 142 steps: as a number it is nearer to 100, as a ratio to 200
    table = models_1_family.few_and_many("few", "many", corpus, 142 / 800, pooling="mean")
    assert asked == [{"pooling": "mean"}]
    assert list(zip(table["read"], table["step"], table["task"], strict=True)) == [
        (read, step, task)
        for read, step in (("as much of these", 200), ("as much in all", 800))
        for task in SCORED
    ]
    rows = table.set_index(["step", "task"])
    np.testing.assert_allclose(table["value"], table["few"] - table["many"])
    for of in known[1:]:
        for task in SCORED:
            gain = average(of, task, layers=[1]) - average(many, task, layers=[1])
            row = rows.loc[(of.step, task)]
            assert row["many"] == pytest.approx(many.scores.scores[task][1].mean())
            assert (row["low"], row["high"]) == pytest.approx(gain.interval())
    early = models_1_family.few_and_many("few", "many", corpus, 1 / 800)
    assert early["step"].unique().tolist() == [100, 800]  # an untrained state has read nothing
