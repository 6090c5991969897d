"""What the notebooks ask: data by parameters, and tables of small grids by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from shared import mixing_experiments, mixing_tables
from xlx.experiment.grids import Grid, groups_of, measured
from xlx.measures import mixing
from xlx.measures.mixing import SETTINGS
from xlx.subjects.jobs import Job
from xlx.text.examples import Examples

CODES = ("en", "de", "tr")


def grid(model: str, predictions_: np.ndarray, **changes) -> Grid:
    """A grid of pairs with labels 0, 1, 0, 1, ..., each its own group."""
    labels = np.arange(predictions_.shape[-1]) % 2
    right = (predictions_ == labels).astype(float)
    values = {
        "model": model, "languages": CODES, "predictions": predictions_,
        "scores": {"accuracy": right, "F1": right}, "groups": np.arange(len(labels)),
        "n_cut": np.ones((3, 3), int),
    }  # fmt: skip
    return Grid(**values | changes)


def random(seed: int, n: int = 20) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2, (3, 3, n))


@pytest.fixture(scope="module")
def grids() -> dict[str, Grid]:
    return {"a": grid("a", random(0)), "b": grid("b", random(1))}


FEW = {"n_resamples": 50, "seed": 1}


# --- data -----------------------------------------------------------------------------------------


def test_pairs_are_those_of_the_parameters() -> None:
    data = mixing_tables.pair_data("NLI", ["en", "de"], "en", 30, 12, train_source="xnli-dev")
    assert (len(data.train), len(data.gold), list(data.sets)) == (30, 12, ["en", "de"])
    said = data.described()
    assert (said["to learn"], said["to test"], said["languages"]) == (30, 12, 2)
    counts = [said[f"to test, {name}"] for name in data.gold.classes]
    assert data.guess == max(counts) / 12
    assert sum(counts) == 12
    shown = mixing_tables.worked_pairs(data.sets, [("en", "de"), ("de", "en")], 3, ("one", "two"))
    assert shown.loc["en-de", "one"] == data.sets["en"].first[3]
    assert shown.loc["en-de", "two"] == data.sets["de"].second[3]
    assert set(shown["label"]) == {data.gold.classes[data.gold.labels[3]]}


def test_controls_are_the_same_examples_with_their_words_shuffled() -> None:
    data = mixing_tables.control_data(
        {"same": ["en", "de"], "QA": ["en", "de"]}, "en", {"same": 20, "QA": 10},
        {"same": 8, "QA": 6}, train_sources={"QA": "tydiqa"}, train_data={}, test_data={},
        per_context=2, corpus="wmt24pp", seed=1,
    )  # fmt: skip
    table = mixing_experiments.shuffled_examples(data, 1)
    assert table.index.tolist() == ["same or other", "XQuAD"]
    for row in table.itertuples():
        assert len(row.words.split()) == len(row.shuffled.split())
    assert data["same"].name == "en"
    said = data["QA"].described()
    assert (said["to learn"], said["to test"]) == (10, 6)


def test_a_mixed_pair_has_its_parts_in_two_languages() -> None:
    learnt, sets = mixing_tables.mixed_pairs(
        ["en-en", "en-de"], ["en", "tr"], 9, 6, train_source="xnli-dev", train_data=None,
        test_data=None,
    )  # fmt: skip
    assert learnt["en-de"].first == learnt["en-en"].first
    assert learnt["en-de"].second != learnt["en-en"].second
    said = mixing_tables.mixed_sizes(learnt, sets)
    assert (said["to learn, en-de"], said["to test"], said["languages"]) == (9, 6, 2)


def test_printed_classes_go_by_our_names() -> None:
    table = mixing_tables.printed_by_class(["en", "de"], ("different", "paraphrase"))
    assert set(table["label"]) == {"different", "paraphrase"}
    assert set(table["model"]) == {"mBERT", "XLM-R", "InfoXLM"}
    assert table["score"].between(0, 1).all()


def test_printed_grids_stand_beside_ours(grids: dict[str, Grid]) -> None:
    ours = measured(grids.values(), mixing.cells, margins=True, **FEW)
    table = mixing_experiments.with_printed_grids(ours, "PI", ["en", "de", "ko"])
    assert table["model"].unique().tolist() == [
        *("a", "b", "mBERT, printed", "XLM-R, printed", "InfoXLM, printed")
    ]
    cells = table[table["model"] == "XLM-R, printed"].set_index(["first", "second"])["score"]
    assert (len(cells), cells["en", "en"]) == (16, pytest.approx(0.944))
    grid = cells.unstack()
    inside = grid.drop(index="all", columns="all")
    np.testing.assert_allclose(grid.loc["all", inside.columns], inside.mean())
    np.testing.assert_allclose(grid.loc[inside.index, "all"], inside.mean(axis=1))
    assert cells["all", "all"] == pytest.approx(inside.mean(axis=None))


# --- tables ---------------------------------------------------------------------------------------


def test_terms_of_sides_are_found_in_a_grid_made_of_them() -> None:
    rows, columns = np.array([0.3, 0.5, 0.1]), np.array([0.2, 0.0, 0.4])
    scores = np.repeat((rows[:, None] + columns)[..., None], 4, axis=2)
    made = grid("a", random(0, 4), scores={"accuracy": scores})
    found = mixing_experiments.spreads({"a": made}, "de", ("one", "two")).loc["a"]
    assert found["between languages of the one"] == pytest.approx(100 * rows.std())
    assert found["between languages of the two"] == pytest.approx(100 * columns.std())
    assert found["left"] == pytest.approx(0, abs=1e-9)
    assert found["de as one"] == pytest.approx(100 * (0.5 + np.mean([0.2, 0.4])))
    assert found["de as two"] == pytest.approx(100 * np.mean([0.3, 0.1]))


def test_what_is_called_by_a_label_in_cells_of_each_kind() -> None:
    predictions_ = np.zeros((3, 3, 2), int)
    predictions_[0, 0] = 1  # en-en
    predictions_[1, 1] = [1, 0]
    predictions_[0, 2] = [1, 0]
    two = [grid("a", predictions_), grid("a", np.zeros_like(predictions_))]
    found = mixing_experiments.called(two, 1, "en", ("one", "two")).loc["a"]
    assert found["en-en"] == 0.5
    assert found["within, other languages"] == pytest.approx(0.5 / 4)
    assert found["across"] == pytest.approx(0.5 / 12)
    assert (found["across, en one"], found["across, en two"]) == (0.125, 0)


def test_cut_pairs_and_means_over_seeds(grids: dict[str, Grid]) -> None:
    table = mixing_experiments.cut_pairs(grids)
    assert table.to_numpy().tolist() == [[9, 180], [9, 180]]
    means = mixing_experiments.mean_grids([*grids.values(), grid("a", random(2))], ["a"])
    assert means["a"].each["accuracy"].shape == (2, 3, 3, 20)


def test_differences_to_baselines_are_paired(grids: dict[str, Grid]) -> None:
    table = mixing_experiments.above_baselines([grids["a"]], list(grids.values()), **FEW)
    itself = table["baseline"] == "a"
    assert (table.loc[itself, ["score", "low", "high"]] == 0).all(axis=None)
    assert (table.loc[~itself, "low"] < table.loc[~itself, "high"]).all()


def test_controls_are_tables_by_condition_and_their_gap(grids: dict[str, Grid]) -> None:
    of = {("NLI", "a", "original"): grids["a"], ("NLI", "a", "shuffled"): grids["b"]}
    table, gaps = mixing_experiments.control_tables(of, **FEW)
    mean = table[table["language"] == "mean"].set_index(["condition", "setting"])["score"]
    gap = gaps[gaps["language"] == "mean"].set_index("setting")["score"]
    for setting in SETTINGS:
        apart = mean["original", setting] - mean["shuffled", setting]
        assert gap[setting] == pytest.approx(apart)
    audit = mixing_tables.of_controls(gaps, ["NLI"])
    assert audit.claims["where"].tolist() == ["falsifier", "falsifier", "XNLI"]
    below = gaps.assign(high=-0.1, low=-0.2)
    assert len(mixing_tables.gains_by_shuffling(below)) == 8  # three languages, their mean
    verdicts = mixing_tables.of_controls(below, ["NLI"]).claims["verdict"].tolist()
    assert verdicts == ["does not hold", "does not hold", "holds"]


def test_pairs_are_shown_by_row(grids: dict[str, Grid]) -> None:
    of = {"en-en": grids["a"], "en-de": grids["b"]}
    table = mixing_experiments.pair_averages(of, "en-en", unseen_only=False, **FEW)
    scores = mixing_experiments.scores_by_row(table)
    own = 100 * grids["b"].scores["accuracy"].mean(axis=2)[0, 1]
    assert scores.loc["l1-l2", ("en-de", "fine-tuned")] == pytest.approx(own, abs=0.05)
    gains = mixing_experiments.pair_gains(table)
    base = table[table["condition"] == "baseline"].set_index("row")["gain"]
    assert gains.loc["*-*", "en-de"].startswith(f"{100 * base['*-*'] + 0.0:.1f} (")
    alone = {"en-en": grids["a"], "en-de": grids["a"]}
    above = mixing_experiments.above_one_part(of, alone, "one only", **FEW)
    assert set(above["pair"]) == {"en-de"}
    against = mixing_experiments.pair_gains(above, "one only")
    pd.testing.assert_frame_equal(against, gains)  # there the baseline was the same grid
    better = above.assign(gain_low=0.1)
    verdicts = mixing_tables.of_pairs(table, table, table, better, "one").claims.set_index("where")
    assert verdicts.loc["one only", "verdict"].tolist()[1:] == ["holds"] * 3
    worse = above.assign(gain_low=-0.1)
    verdicts = mixing_tables.of_pairs(table, table, table, worse, "one").claims.set_index("where")
    assert verdicts.loc["one only", "verdict"].tolist()[1:] == ["does not hold"] * 3


def test_pairs_are_taught_and_asked_with_one_part_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    learnt, sets = mixing_tables.mixed_pairs(
        ["en-en", "en-de"], ["en", "de"], 30, 12, train_source="xnli-dev", train_data=None,
        test_data=None,
    )  # fmt: skip
    asked = {}

    def evaluate(jobs: list[Job], sets: dict[str, Examples]) -> list[Grid]:
        asked.update(jobs=jobs, sets=sets)
        return [grid("a", random(k, 12)) for k in range(len(jobs))]

    monkeypatch.setattr(mixing_experiments, "evaluate", evaluate)
    recipe = mixing_experiments.recipe_of(epochs=1)
    grids = mixing_experiments.mixed_grids("a", learnt, sets, recipe, [1, 2], part="second")
    of_english, of_german = asked["jobs"][0].train, asked["jobs"][2].train
    assert (of_english.first, of_german.first) == (learnt["en-en"].second, learnt["en-de"].second)
    assert of_german.second is None
    assert {code: part.first for code, part in asked["sets"].items()} == {
        code: part.second for code, part in sets.items()
    }
    assert list(grids) == ["en-en", "en-de"]
    # pairs of one premise still hang together, though it is not read
    assert (grids["en-de"].groups == groups_of(sets["en"])).all()
    assert grids["en-de"].each["accuracy"].shape[0] == 2  # seeds


def test_distances_and_tails_by_language(grids: dict[str, Grid]) -> None:
    apart = np.full((3, 3, 20), 9.0)
    for k in range(3):
        apart[k, k] = np.arange(20)
    table = mixing_experiments.distance_table(apart, CODES, 9)
    assert table.loc["de"].tolist() == [9.5, 5.0, 100.0]
    distances = {code: apart[k, k] for k, code in enumerate(CODES)}
    tails = mixing_experiments.tails_by_language([grids["a"]], distances, 0.2, **FEW)
    assert tails["language"].tolist() == [code for code in CODES for _ in range(2)]
    ratios = mixing_experiments.tail_ratios(grids["a"], distances, 0.2, **FEW)
    wrong = (grids["a"].scores["F1"][1, 1] == 0).mean()
    assert ratios.loc["de", "F1 of 0, %"] == 100 * wrong
    own = tails[tails["language"] == "de"].set_index("group")["distance"]
    assert ratios.loc["de", "hardest / easiest"] == pytest.approx(own["hardest"] / own["easiest"])
    assert mixing_experiments.tails_of_all([grids["a"]], distances, 0.2, **FEW).index.tolist() == [
        "a"
    ]


def test_scripts_are_shown_where_they_are_furthest_apart(grids: dict[str, Grid]) -> None:
    right = grids["a"].scores["F1"]
    other = right.copy()
    other[1, 1] = 1 - right[1, 1]
    other[1, 1, :10] = 1
    scored = grid("a", random(0), scores={"F1, SQuAD": right, "F1, MLQA": other})
    table = mixing_experiments.by_measure([scored], ("F1, SQuAD", "F1, MLQA"), **FEW)
    shown = mixing_experiments.by_script(table)
    assert list(shown.columns.unique(0)) == ["mean", "de"]


# --- predictions ----------------------------------------------------------------------------------


def test_predictions_of_inference_follow_from_the_tables(grids: dict[str, Grid]) -> None:
    perfect = grid("c", np.broadcast_to(np.arange(20) % 2, (3, 3, 20)).copy())
    models = grids | {"c": perfect}
    simple = [replace(perfect, model="bag of subwords"), replace(grids["b"], model="b only")]
    summaries = measured(models.values(), mixing.summary, **FEW)
    bags = measured(simple, mixing.summary, **FEW)
    above = mixing_experiments.above_baselines(models.values(), simple, **FEW)
    audit = mixing_tables.of_inference(
        summaries, models, bags, above, "en", 0.5, ("one", "two"), **FEW
    )
    claims = audit.claims.set_index("claim")["verdict"]
    assert len(claims) == 13
    # the bag is perfect: it loses nothing across, and is above the commonest label within
    bag = "the bag of subwords loses across, and has within more than the commonest label"
    assert claims[bag] == "holds in part"
    assert claims["within, above bag of subwords"] == "does not hold"
    assert claims["across, above b only"] == "holds in part"


def test_predictions_of_paraphrases_and_questions(grids: dict[str, Grid]) -> None:
    rows = []
    for model, within, across in (
        ("a", 0.9, 0.8), ("bag of subwords", 1.0, 0.5), ("length and digits", 0.6, 0.6),
    ):  # fmt: skip
        for setting, score in (("within", within), ("across", across)):
            rows.append(("mean", setting, score, score - 0.05, score + 0.05, model))
    columns = ["language", "setting", "score", "low", "high", "model"]
    same = pd.DataFrame(rows, columns=columns)
    audit = mixing_tables.of_paraphrases(same[same["model"] == "a"], {"alike": same}, ["a"])
    assert audit.claims["verdict"].tolist() == [*["does not hold"] * 2, *["holds"] * 3]
    f1 = pd.concat([same, same.query("setting == 'within'").assign(setting="drop")])
    f1 = f1.assign(measure="F1")
    whole = f1[f1["model"] == "bag of subwords"]
    ratios = pd.DataFrame({"low": [1.5], "high": [2.5], "F1 of 0, %": [80.0]})
    above = same.assign(baseline="rule")
    audit = mixing_tables.of_questions(f1, whole, above, ratios, ["a"], 0.2)
    verdicts = audit.claims["verdict"].tolist()
    assert verdicts == ["holds", "does not hold", "holds", "holds", "does not hold"]
