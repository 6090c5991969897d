"""Members compared, and what runs of one recipe differ by, on small scores that are known."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import models_1_family
from models_1_family import BEST, MEAN
from tests.abx.made_scores import scores
from xlx.experiment import averages
from xlx.experiment.abx_scores import MATCHED, CheckpointScores
from xlx.experiment.averages import average
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


@pytest.fixture
def histories(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict, list], None]:
    """Sets the steps of the histories that there are, and the scores of their states."""

    def given(steps: dict[str, Sequence[int]], known: Sequence[CheckpointScores]) -> None:
        of_state = {(of.model, of.step): of for of in known}
        monkeypatch.setattr(
            models_1_family, "history",
            lambda name, recorded: [SimpleNamespace(name=name, step=step) for step in steps[name]],
        )  # fmt: skip
        monkeypatch.setattr(
            models_1_family, "subject_scores",
            lambda states, *_, **__: [of_state[state.name, state.step] for state in states],
        )  # fmt: skip

    return given


def test_runs_are_scored_where_the_shortest_of_the_others_ends(
    corpus: ParallelCorpus, histories: Callable
) -> None:
    rng = np.random.default_rng(0)
    steps = {"member": (0, 4, 9, 20), "seed 1": (0, 9), "seed 2": (0, 4, 9, 12), "sparse": (0, 4)}
    at_9 = [scores(rng, name, 9, LD=[0.5], MD=[0.5], matched=[0.5]) for name in steps]
    histories(steps, at_9)
    others = ["seed 1", "seed 2"]
    by_recipe = models_1_family.scored_runs({"member": ("member", others)}, corpus)
    assert by_recipe == {"member": at_9[:3]}
    assert models_1_family.scored_runs({"member": ("member", [])}, corpus) == {}
    with pytest.raises(ValueError, match="sparse has no checkpoint at step 9, as other runs have"):
        models_1_family.scored_runs({"sparse": ("sparse", others)}, corpus)


def test_models_less_their_references(measured: Measured) -> None:
    """On the same documents; and beyond what text and runs make, together."""
    spread = models_1_family.run_spread({})
    there, back = (
        models_1_family.score_differences(measured, dict([pair]), spread)
        for pair in (NAMES[::-1], NAMES)
    )
    value = there.set_index(["layers", "task"])["value"]
    assert value[MEAN, "LD"] == pytest.approx(0.05, abs=0.005)
    assert value[BEST, "LD"] == pytest.approx(0.1, abs=0.005)  # layer 0 against layer 1
    ours, theirs = (average(measured[name], "MD") for name in NAMES[::-1])
    row = there.set_index(["layers", "task"]).loc[(MEAN, "MD"), ["low", "high"]]
    assert row.tolist() == pytest.approx(list((ours - theirs).interval()))
    np.testing.assert_allclose(back["low"], -there["high"])
    assert set(there["beyond both"]) == {"not known"}  # without runs
    for sd, said in ((0.001, "higher"), (0.05, "no")):
        of_runs = spread.assign(sd=sd, freedom=4)
        row = models_1_family.score_differences(measured, dict([NAMES[::-1]]), of_runs).iloc[2]
        between = stats.t.ppf(0.975, 4) * np.sqrt(2) * sd
        reach = np.hypot(row["high"] - row["value"], between)
        assert row["between runs"] == pytest.approx(between)
        assert (row["least"], row["most"]) == pytest.approx(
            (row["value"] - reach, row["value"] + reach)
        )
        assert (row["task"], row["beyond both"]) == ("LD", said)


def made_runs(levels: dict[str, Sequence[float]], noise: float = 0) -> dict[str, list]:
    """Runs of recipes whose every score is at the level that is given for a run, but for noise."""
    rng = np.random.default_rng(8)
    tasks = ("LD", "MD", "matched")
    return {
        recipe: [
            scores(rng, f"{recipe}-{seed}", 5,
                   **{task: level + noise * rng.normal(size=3) for task in tasks})
            for seed, level in enumerate(of_recipe)
        ]
        for recipe, of_recipe in levels.items()
    }  # fmt: skip


def test_runs_spread_around_the_mean_of_their_recipe() -> None:
    """Recipes differ by much more than their runs: that is no part of the spread."""
    runs = made_runs({"p": [0.4] * 3, "q": [0.8] * 2, "alone": [0.6]}, noise=0.05)
    spread = models_1_family.run_spread(runs)
    assert spread["freedom"].tolist() == [3] * 6
    assert len({averages.best_layer(of) for of in runs["p"] + runs["q"]}) > 1
    for layers, task in spread.index:
        squares = 0.0
        for of_recipe in (runs["p"], runs["q"]):
            values = []
            for of in of_recipe:
                by_layer, matched = (
                    of.scores.scores[name].mean(axis=(1, 2)) for name in (task, MATCHED)
                )
                values.append(by_layer.mean() if layers == MEAN else by_layer[matched.argmax()])
            squares += ((np.array(values) - np.mean(values)) ** 2).sum()
        assert spread.loc[(layers, task), "sd"] == pytest.approx(np.sqrt(squares / 3))
    single = models_1_family.run_spread({name: of_recipe[:1] for name, of_recipe in runs.items()})
    assert single["sd"].isna().all()


def test_recipes_run_again_are_compared_by_the_means_of_their_runs() -> None:
    runs = made_runs({"p": [0.62, 0.65, 0.68], "q": [0.5, 0.501], "alone": [0.9]})
    references = {"p": "q", "q": "p", "alone": "p", "unknown": "q"}
    table = models_1_family.mean_run_differences(runs, references)
    assert len(table) == 6 * 2
    row = table.loc[MEAN, "LD", "p", "q"]
    p, q = ([float(average(of, "LD").score) for of in runs[recipe]] for recipe in ("p", "q"))
    assert row["value"] == pytest.approx(np.mean(p) - np.mean(q))
    # Welch (1947), by hand: each recipe has a variance of its own
    parts = [np.var(of, ddof=1) / len(of) for of in (p, q)]
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(of) - 1) for part, of in zip(parts, (p, q), strict=True)
    )
    reach = stats.t.ppf(0.975, freedom) * np.sqrt(sum(parts))
    assert [row["low"], row["high"]] == pytest.approx([row["value"] - reach, row["value"] + reach])


def test_few_languages_are_compared_where_as_much_of_them_was_read(
    corpus: ParallelCorpus, histories: Callable
) -> None:
    rng = np.random.default_rng(7)
    known = [
        scores(rng, name, step, LD=[0.9, level], MD=[0.5, level], matched=[0.5, level])
        for name, step, level in (
            ("many", 1600, 0.6), ("few", 100, 0.55), ("few", 200, 0.7), ("few", 800, 0.8)
        )
    ]  # fmt: skip
    histories({"few": (0, 100, 200, 400, 800), "many": (0, 1600)}, known)
    # 142 steps: as a number it is nearer to 100, as a ratio to 200
    table = models_1_family.few_and_many("few", "many", corpus, 142 / 800)
    assert table["step"].tolist() == [200] * 3 + [800] * 3
    rows = table.set_index(["step", "task"])
    for of in known[2:]:
        gain = average(of, "LD", layers=[1]) - average(known[0], "LD", layers=[1])
        row = rows.loc[(of.step, "LD"), ["value", "low", "high"]]
        assert row.tolist() == pytest.approx([float(gain.score), *gain.interval()])
    early = models_1_family.few_and_many("few", "many", corpus, 1 / 800)
    assert early["step"].unique().tolist() == [100, 800]  # an untrained state has read nothing
