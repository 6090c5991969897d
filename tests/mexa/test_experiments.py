"""What the notebooks of MEXA show: on scores made by hand, against numbers counted one by one."""

import numpy as np
import pandas as pd
import pytest

import mexa_2_estimation
from shared import mexa_tables
from shared.mexa_tables import chance_table
from xlx.experiment.mexa_scores import Coverage
from xlx.measures import alignment
from xlx.measures.mexa import PivotScores, scores

LANGUAGES = ("de", "fr", "sw")
GROUPS = {"de": "the family's 36", "fr": "the family's 36", "sw": "others, Latin script"}


def coverage(model: str, seed: int = 0, states: str = "raw") -> Coverage:
    """Three layers of ten sentences in three languages, at random."""
    rng = np.random.default_rng(seed)
    hits = rng.random((3, 3, 10)) < 0.5
    rows = [
        (language, layer, measure, rng.random())
        for language in LANGUAGES
        for measure in alignment.ALIGNMENT_MEASURES
        for layer in range(3)
    ]
    return Coverage(
        model, "last", states,
        PivotScores(LANGUAGES, "en", (0, 1, 2), hits, np.where(hits, -1, 0)),
        pd.DataFrame(rows, columns=["language", "layer", "measure", "value"]),
        {"de": 1, "fr": 0, "sw": 9, "en": 0},
    )  # fmt: skip


@pytest.fixture(scope="module")
def covered() -> list[Coverage]:
    kinds = [(model, states) for model in ("a", "b") for states in ("raw", "centred")]
    return [coverage(model, seed, states) for seed, (model, states) in enumerate(kinds)]


@pytest.fixture(scope="module")
def bags() -> pd.DataFrame:
    """Of one vocabulary: the same for both models."""
    return pd.DataFrame(
        [(language, 0.4, model, states) for model in ("a", "b") for states in ("raw", "centred")
         for language in LANGUAGES],
        columns=["language", "mu", "model", "states"],
    )  # fmt: skip


def mu(own: Coverage) -> np.ndarray:
    return own.scores.hits.mean(axis=2)


# --- alignment ------------------------------------------------------------------------------------


def test_the_corner_of_a_matrix_has_its_rivals_and_hits() -> None:
    rng = np.random.default_rng(0)
    states = {code: rng.normal(size=(2, 7, 5)) for code in ("en", "de")}
    table = mexa_tables.corner(states, "en", "de", 1, n=3)
    x, p = (states[code][1] for code in ("de", "en"))
    cosine = [[a @ b / np.sqrt(a @ a * (b @ b)) for b in p] for a in x]
    for i in range(3):
        assert table.loc[i, 2] == pytest.approx(cosine[i][2])
        rivals = [cosine[i][j] for j in range(7) if j != i] + [
            cosine[j][i] for j in range(7) if j != i
        ]
        assert table.loc[i, "largest of all others"] == pytest.approx(max(rivals))
        assert table.loc[i, "hit"] == (cosine[i][i] > max(rivals))
    assert table["hit"].tolist() == scores(states, "en").hits[1, 0, :3].tolist()


def test_scores_are_averaged_by_layer_and_group(
    covered: list[Coverage], bags: pd.DataFrame
) -> None:
    by_layer = mexa_tables.alignment_by_layer(covered)
    means = mexa_tables.mean_by_layer(by_layer, ["model", "pooling", "states"])
    assert means.loc[("b", "last", "centred"), 2] == pytest.approx(
        mu(covered[3])[2].mean(), abs=6e-4
    )
    assert mexa_tables.cut_sentences(covered).loc["sw"].tolist() == [9, 9]
    beside = [coverage("a, untrained", 9)]
    drawn, floors = mexa_tables.drawn_layers(by_layer, beside, bags, GROUPS)
    row = drawn.set_index(["model", "states", "group", "layer"])["mu"]
    assert row["a, untrained", "raw", "the family's 36", 1] == pytest.approx(
        mu(beside[0])[1, :2].mean()
    )
    assert set(floors["model"]) == {"a", "b", "a, untrained"}
    pooled = mexa_tables.pooled_table(covered)
    table = mexa_tables.group_table(pooled, bags, GROUPS)
    assert table.columns.tolist() == ["the family's 36 (2)", "others, Latin script (1)"]
    assert table.loc[("a", "bag of subwords", "", "raw"), "the family's 36 (2)"] == pytest.approx(
        0.4
    )
    assert ("b", "bag of subwords", "", "raw") not in table.index  # the same vocabulary
    highest = mu(covered[0]).max(axis=0)
    assert table.loc[("a", "last", "max", "raw")].tolist() == pytest.approx(
        [highest[:2].mean(), highest[2]]
    )
    above = mexa_tables.above_bags(pooled, beside, bags).loc[("a", "last", "raw")]
    assert above.tolist() == [(highest > 0.4).sum(), 3]
    shown = mexa_tables.interval_table(pooled, "last", {"sw": "Swahili"})
    assert shown.loc["Swahili", ("a", "raw")].startswith(f"{highest[2]:.2f} (")


def test_least_hits_are_beyond_chance_in_all_layers_together(covered: list[Coverage]) -> None:
    pooled = mexa_tables.pooled_table(covered)
    bounds, counted = mexa_tables.least_hits(pooled, covered, 10, p=0.01)
    tail = chance_table(10).set_index("k")["matrix"]
    k = bounds.loc[3, "hits"]
    assert 3 * tail[k] < 0.01 <= 3 * tail[k - 1]
    assert bounds.loc[3, "P"] == pytest.approx(3 * tail[k])
    hits = covered[0].scores.hits.sum(axis=2).max(axis=0)
    assert counted.loc[("a", "last", "raw")].tolist() == [(hits >= k).sum(), 3]


def test_languages_are_grouped_by_training_and_script() -> None:
    text = mexa_tables.load_text("flores200-100", ["en", "de", "sw", "am"], 5)
    assert len(text) == 5
    groups = mexa_tables.language_groups(text, "flores200-100")
    assert groups == {
        "en": "the family's 36", "de": "the family's 36", "sw": "others, Latin script",
        "am": "others, other scripts",
    }  # fmt: skip
    scripts = {"en": "Latn", "de": "Latn", "sw": "Latn", "am": "Ethi"}
    assert mexa_tables.language_scripts(text, "flores200-100") == scripts
    assert mexa_tables.language_scripts(text, "a folder") == {"en": "Latn", "de": "Latn"}
    assert mexa_tables.training_history("mini-llama")[0].step == 0


# --- estimation -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tasks() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    codes = ["en", *LANGUAGES, *(f"x{i}" for i in range(10))]
    rows = [("T", model, code, rng.random()) for model in ("a", "b") for code in codes]
    table = pd.DataFrame(rows, columns=["task", "model", "language", "score"])
    return table.assign(stderr=0.01, n=100)


def test_a_task_is_summed_up_without_the_pivot(tasks: pd.DataFrame) -> None:
    table = mexa_2_estimation.task_summary(tasks, "en", {"T": 5})
    of_model = tasks[tasks["model"] == "a"].set_index("language")["score"]
    row = table.loc[("T", "a")]
    assert (row["en"], row["guess"]) == (of_model["en"], 0.2)
    assert row["others, mean"] == pytest.approx(of_model.drop("en").mean())
    assert (row["lowest"], row["highest"]) == (of_model.drop("en").min(), of_model.drop("en").max())


def test_measures_are_averaged_over_middle_layers(covered: list[Coverage]) -> None:
    own = covered[0]
    table = mexa_2_estimation.middle_measures([own]).set_index(["measure", "language"])["value"]
    assert table["MEXA", "de"] == pytest.approx(mu(covered[0])[1:, 0].mean())
    cka = own.measures.query("measure == 'cka' and language == 'sw' and layer > 0")["value"]
    assert table["cka", "sw"] == pytest.approx(cka.mean())
    points = mexa_2_estimation.cosine_points(
        mexa_2_estimation.middle_measures([own]),
        pd.DataFrame({"model": "a", "language": ["de"], "score": [0.7]}), "last",
    )  # fmt: skip
    assert points.set_index("language")["score"].isna().tolist() == [False, True, True]


def test_what_mexa_adds_is_a_coefficient_beside_the_rivals() -> None:
    rng = np.random.default_rng(2)
    n = 60
    rivals = pd.DataFrame(rng.random((n, 3)), columns=mexa_2_estimation.RIVALS)
    rivals = rivals.assign(language=[f"l{i}" for i in range(n)], model="a", task="T")
    mexa = rng.random(n)
    rivals["score"] = 0.1 + 0.5 * mexa + 0.2 * rivals["bag"] + 0.01 * rng.normal(size=n)
    table = pd.DataFrame({"language": rivals["language"], "model": "a", "mu": mexa})
    table = table.assign(text="FLORES", pooling="last", layers="max")
    adds = mexa_2_estimation.added_by_mexa(table, rivals)
    assert adds["per 0.1"].item() == pytest.approx(0.05, abs=0.005)
    assert adds["VIF"].item() < 1.5
    told = mexa_2_estimation.significant(adds).loc[("T", "FLORES")]
    assert told.to_dict() == {"p < 0.05": 1, "MEXA adds": 1, "of": 1, "by chance": 0.05}
    shown = mexa_2_estimation.rival_correlations(rivals, n_resamples=20, seed=0)
    assert shown.columns.tolist() == mexa_2_estimation.RIVALS
    assert mexa_2_estimation.added_by_mexa(table.head(9), rivals).empty


def test_estimates_have_lines_where_there_is_something_to_fit(tasks: pd.DataFrame) -> None:
    rng = np.random.default_rng(3)
    of_a = tasks[(tasks["language"] != "en") & (tasks["model"] == "a")]
    joined = of_a.assign(mu=rng.random(len(of_a)), low=0.0, high=1.0)
    summary = mexa_2_estimation.task_summary(tasks, "en", {})
    table = mexa_2_estimation.adjusted_scores(joined, summary, "en")
    english = summary.loc[("T", "a"), "en"]
    np.testing.assert_allclose(table["expected"], joined["mu"] * english)
    np.testing.assert_allclose(table["mu_high"], english)
    np.testing.assert_allclose(table["score_high"] - table["score"], 1.96 * 0.01, rtol=1e-3)
    assert (table["written"] != "").sum() == 3
    lines, fits = mexa_2_estimation.estimate_lines(table, {"T": 4}, n_resamples=20, seed=0)
    slope, intercept = np.polyfit(table["expected"], table["score"], 1)
    assert fits.loc[("T", "a"), ["slope", "intercept"]].tolist() == pytest.approx(
        [slope, intercept]
    )
    ideal = lines[lines["kind"] == "ideal"]
    assert ideal["y"].tolist() == pytest.approx([0.25, 0.25 + 0.75 * table["expected"].max()])
    few, none = mexa_2_estimation.estimate_lines(table.head(2), {"T": 4}, n_resamples=20, seed=0)
    assert none.empty
    assert set(few["kind"]) == {"ideal", "chance"}


def test_bands_are_counted_beside_those_of_table_6() -> None:
    ours = pd.DataFrame({"language": ["de", "sw"], "model": "a", "mu": [1.0, 0.5]})
    counts = mexa_2_estimation.bands_beside_print(ours, pd.Series({"a": 0.9}), "flores200-100")
    assert counts.loc["a"].tolist() == [0, 0, 1, 0, 1]
    assert len(counts) == 1 + 9
    assert set(counts.sum(axis=1)) == {2}


def test_verses_are_compared_with_the_jackknife_of_both() -> None:
    read, held_out = (coverage("a", seed) for seed in (0, 1))
    dots, summary = mexa_2_estimation.verse_differences([(", untrained", read, held_out)])
    apart = held_out.scores.mu.mean(axis=0) - read.scores.mu.mean(axis=0)
    np.testing.assert_allclose(dots["difference"], apart)
    row = summary.iloc[0]
    assert (row["model"], row["mean"]) == ("a, untrained", pytest.approx(apart.mean()))
    variance = 0
    for own in (read, held_out):
        left = own.scores.left_out().mean(axis=(0, 1))
        variance += 0.9 * sum((value - left.mean()) ** 2 for value in left)
    assert row["high"] - row["mean"] == pytest.approx(1.96 * variance**0.5, rel=1e-3)
