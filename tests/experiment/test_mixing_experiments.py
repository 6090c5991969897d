"""What the notebooks ask: data by parameters, and what is told of small grids by hand."""

import numpy as np
import pandas as pd
import pytest

import mixing_1_nli
import mixing_2_paraphrase
import mixing_4_controls
import mixing_6_pairs
from shared import mixing_tables
from shared.claims import one_sign
from shared.mixing_tables import Origin
from shared.pair_regressions import held_out, with_language
from xlx.experiment.grids import Grid
from xlx.subjects.jobs import Job, Recipe
from xlx.text import labelled
from xlx.text.examples import Examples, crossed

CODES = ("en", "de", "tr")


def grid(model: str, predictions: np.ndarray) -> Grid:
    """A grid of pairs with labels 0, 1, 0, 1, ..., each its own group."""
    labels = np.arange(predictions.shape[-1]) % 2
    right = (predictions == labels).astype(float)
    return Grid(model, CODES, {"accuracy": right, "F1": right}, np.arange(len(labels)), predictions)


def random(seed: int, n: int = 20) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, (3, 3, n))


def test_data_are_those_of_the_parameters() -> None:
    data = mixing_tables.task_data("NLI", ["en", "de"], "en", 30, 12, Origin("xnli-dev"))
    assert (len(data.train), len(data.gold), list(data.sets)) == (30, 12, ["en", "de"])
    said = data.described()
    counts = [said[f"to test, {name}"] for name in data.gold.classes]
    assert (data.guess, sum(counts)) == (max(counts) / 12, 12)
    shown = mixing_tables.worked_pairs(data.sets, [("en", "de"), ("de", "en")], [3, 0])
    assert shown.loc["en-de", "first"] == data.sets["en"].first[3]
    assert shown.loc["en-de", "second"] == data.sets["de"].second[3]
    jobs = data.jobs(["a", "b"], Recipe(epochs=1, **mixing_tables.LINEAR), [1, 2])
    assert [(job.model, job.seed) for job in jobs] == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    data = mixing_tables.task_data("QA", ["en", "de"], "en", 10, 6, Origin("tydiqa"), per_context=2)
    said = data.described()
    assert (said["to learn"], said["to test"]) == (10, 6)


def test_differences_to_baselines_are_paired() -> None:
    a, b = grid("a", random(0)), grid("b", random(1))
    table = mixing_tables.above_baselines([a], [a, b])
    itself = table["baseline"] == "a"
    assert (table.loc[itself, ["score", "low", "high"]] == 0).all(axis=None)
    assert (table.loc[~itself, "low"] < table.loc[~itself, "high"]).all()
    assert mixing_tables.mean_grids([a, b, a])["a"].each["accuracy"].shape == (2, 3, 3, 20)


def test_pairs_are_taught_and_asked_with_one_part_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    train, _ = labelled.parallel_examples("NLI", ["en", "de"], "train", 30, source="xnli-dev")
    sets, _ = labelled.parallel_examples("NLI", ["en", "de"], "test", 12)
    learnt = {f"en-{code}": crossed(train["en"], train[code]) for code in ("en", "de")}
    asked = {}

    def answered(jobs: list[Job], sets: dict[str, Examples]) -> list[Grid]:
        asked[jobs[0].train.first] = jobs[0].train, sets
        return [grid("a", random(k, 12)) for k in range(len(jobs))]

    monkeypatch.setattr(mixing_6_pairs, "grid", answered)
    grids = mixing_6_pairs.mixed_grids("a", learnt, sets, Recipe(), [1, 2], part="second")
    taught, of_sets = asked[learnt["en-de"].second]
    assert (taught.second, len(grids["en-de"])) == (None, 2)
    assert of_sets["de"].first == sets["de"].second


def test_a_difference_that_turns_cannot_be_told() -> None:
    rng, n = np.random.default_rng(0), 90
    noise = rng.standard_normal(n)
    noise = (noise - noise.mean()) / noise.std() / np.sqrt(n)
    # an average a cell: how many standard errors it is above zero
    above = np.array([-6.0, 0.0, 1.98, 6.0]) / n
    values = {"x": np.broadcast_to(above[:, None] + noise, (3, 1, 4, n))}
    zero = {"x": np.zeros((3, 1, 4, n))}
    cells = {str(i): np.arange(4)[None] == i for i in range(4)}
    known = mixing_tables.knowledge(values, zero, cells, np.arange(n))
    adds = known[known["what"] == "premise adds"]
    told = ["below", "cannot be told", "cannot be told", "above"]
    assert adds["told"].tolist() == told
    each = np.array([[1.0, 3.0], [1.0, 1.0], [1.0, -1.5]])
    assert one_sign(each).tolist() == [True, False]


def test_tables_of_controls_and_pairs_say_which_side_stays() -> None:
    rng, n = np.random.default_rng(0), 90
    right = (rng.random((3, 3, 3, n)) < 0.7).astype(float)
    wrong = np.where(rng.random(right.shape) < 0.6, 0, right)  # less, in every cell and seed
    data = {"NLI": mixing_tables.task_data("NLI", ["en", "de", "zh"], "en", 10, n)}
    answers = ("words in order", right), ("hypothesis shuffled", wrong), ("premise shuffled", right)
    values = {("NLI", "m", x): {"accuracy": y} for x, y in answers}
    asked = values, mixing_4_controls.comparisons(values), data, False
    means = mixing_4_controls.means_of(*asked)
    gaps = mixing_4_controls.differences(*asked).query("language == 'mean'")
    both = means.merge(gaps, on=["what", "setting"])
    np.testing.assert_allclose(both[["low_x", "high_x"]], both[["low_y", "high_y"]], atol=1e-12)
    told = means[means["setting"] == "within"].set_index("what")["told"].sort_index().tolist()
    of = {"x": ({"en-de": {"fine-tuned": wrong, "baseline": right}}, False)}
    found = mixing_6_pairs.pair_tables(of, CODES, np.arange(n))["x"]
    told += [*dict.fromkeys(found.loc[found["row"] == "*-*", "told"])]
    assert not found.query("condition == 'fine-tuned'")[["gain_low", "gain_high"]].any(axis=None)
    assert told == ["above", "cannot be told", "cannot be told", "below"]


def test_overlap_and_held_out_languages_of_planted_scores() -> None:
    rng, n = np.random.default_rng(0), 60
    overlap = rng.choice([0.0, 0.05, 0.2, 0.5], (3, 3, n))
    counts = (overlap > 0.1).astype(float)[None]  # a model that counts overlap and nothing else
    table = mixing_1_nli.at_equal_overlap({"x": counts}, overlap, np.arange(n))
    bins = table[table["setting"] == "across"].set_index("overlap")["score"]
    assert bins[list(mixing_1_nli.BIN_NAMES)].tolist() == [0, 0, 1, 1]
    equal = table[(table["setting"] == "drop") & (table["overlap"] == "as across")]
    assert equal["score"].item() == pytest.approx(0, abs=1e-12)
    codes = [f"l{i}" for i in range(8)]
    rows = pd.DataFrame(
        [(a, b) for a in codes for b in codes if a != b], columns=["source", "target"]
    )
    rows["a"], rows["b"] = rng.standard_normal((2, len(rows)))
    rows["score"] = 2 * rows["a"] + 0.01 * rng.standard_normal(len(rows))
    a, b = (held_out(rows, "score", [x], with_language(rows)) for x in "ab")
    assert a > 0.99 > 0.05 > b
    pairs = {("m", 0): rows, ("m", 1): rows, ("n", 1): rows.assign(score=-rows["score"])}
    table = mixing_2_paraphrase.slopes(pairs, ["a", "b"])
    assert (table["score"] / rows["a"].std()).iloc[::2].round(2).tolist() == [2, 2, -2]
    assert "in 1 of 2 trained states, below in 1;" in mixing_2_paraphrase.told_slopes(table)
