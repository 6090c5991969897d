"""The tables of the notebooks on LD and MD, on small scores whose tables are known."""

from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import abx_3_tradeoff
from shared import abx_tables
from xlx.experiment import surface
from xlx.experiment.abx_scores import MATCHED, WEIGHTINGS, CheckpointScores
from xlx.experiment.averages import averaged_scores
from xlx.measures.abx import SCORES, PairScores
from xlx.text.parallel import ParallelCorpus

CODES = ("de", "en", "nl", "ru", "uk", "ja")
PAIRS = tuple(combinations(CODES, 2))
N, LAYERS = 10, 3
TASKS = (*SCORES, MATCHED)


def checkpoint(model: str, step: int, cut: int = 0, n_layers: int = LAYERS) -> CheckpointScores:
    """Made-up scores, and what they change by without each of three documents."""
    rng = np.random.default_rng([len(model), step])
    scores = {task: rng.uniform(0.4, 0.9, (n_layers, len(PAIRS), 2)) for task in TASKS}
    shapes = {**dict.fromkeys(WEIGHTINGS, (n_layers, 3)), "languages": (n_layers, len(CODES), 3)}
    changes = {
        of: {task: rng.normal(0, 0.01, shape) for task in TASKS} for of, shape in shapes.items()
    }
    masked = {MATCHED: np.full((len(PAIRS), 2), 7)}
    pairs = PairScores(PAIRS, tuple(range(n_layers)), N, scores, {}, {}, masked)
    cuts = dict.fromkeys(CODES, 1) | {"en": cut}
    sizes = {"documents": np.array([3, 3, 4])}
    return CheckpointScores(model, step, "raw", pairs, {"documents": changes}, sizes, cuts, CODES)


HISTORIES = [[checkpoint(name, step) for step in (0, 5, 9)] for name in ("zeta", "alpha1")]
MEASURED = [of for history in HISTORIES for of in history]
LAST = [history[-1] for history in HISTORIES]
BY_LAYER = abx_3_tradeoff.layer_pairs(MEASURED)


@pytest.fixture
def corpus(monkeypatch: pytest.MonkeyPatch) -> ParallelCorpus:
    for name in ("subword_bag", "length_alone"):
        monkeypatch.setattr(surface, name, lambda *_, **__: checkpoint("bag", 1, n_layers=1))
    sentences = {code: tuple(f"{code} " + "x" * (28 + i) for i in range(N)) for code in CODES}
    return ParallelCorpus("toy", sentences, tuple(map(str, range(N))), ("",) * N, "none", "")


def test_cut_shares_are_told_once_for_models_that_share_them() -> None:
    names = {"a": 0, "b": 0, "c": 4}
    found = abx_tables.cut_table([checkpoint(name, 0, cut) for name, cut in names.items()])
    assert found["cut (%)"].tolist() == pytest.approx([50 / 6, 10, 0, 15, 40, 10])
    assert found.index.tolist() == [
        ("a, b", "mean of 6"), ("a, b", "de nl ru uk ja"), ("a, b", "en"),
        ("c", "mean of 6"), ("c", "en"), ("c", "de nl ru uk ja"),
    ]  # fmt: skip


def test_captions_have_a_line_a_row() -> None:
    table = pd.DataFrame(
        {"p": ["x", "x", "y"], "model": list("abc"), "r": [0.5, -0.1, 0], "low": -1.0, "high": 1.0}
    )
    plain = abx_tables.captions(table, "p", "model", interval=False)
    assert plain["x"] == "a: r = 0.50\nb: r = -0.10"
    assert abx_tables.captions(table, ["p", "model"])["y", "c"] == "r = +0.00 (-1.00 to +1.00)"
    assert abx_tables.captions(table, "p", "model")["y"] == "c: +0.00 (-1.00 to +1.00)"


def test_example_triplets_are_those_of_the_algorithms(corpus: ParallelCorpus) -> None:
    draw = np.random.default_rng(0)
    sentences = {"en": corpus.sentences["en"], "fr": corpus.sentences["de"]}
    corpus = replace(corpus, sentences=sentences)
    vectors = {code: draw.normal(size=(3, N, 4)) for code in sentences}
    states = {"m": SimpleNamespace(n_layers=2, states=vectors)}
    texts, distances = abx_tables.example_triplets(corpus, states, ("en", "fr"), 1)
    at = texts["sentence"].map(lambda sentence: len(sentence) - 31)
    assert at["LD", "A"] == at["LD", "B"] != at["LD", "X"]
    assert at["MD", "A"] == at["MD", "X"] != at["MD", "B"]
    assert texts["language"].tolist() == ["en", "en", "fr", "en", "fr", "fr"]
    row = distances.loc["LD", "m"]
    layer = {code: array[1] for code, array in vectors.items()}
    x, a = layer["en"][at["LD", "X"]], layer["en"][at["LD", "A"]]
    assert row["d(X, A)"] == pytest.approx(1 - x @ a / np.linalg.norm(x) / np.linalg.norm(a))
    assert row["score"] == float(row["d(X, A)"] < row["d(X, B)"])


def test_retrieval_is_paired_as_printed() -> None:
    last = LAST[0]
    pairs = abx_tables.retrieval_pairs([last], embedding_layer=False).set_index(["pairing", *ENDS])
    scores = {task: found.mean(axis=-1) for task, found in last.scores.scores.items()}
    row = pairs.loc["MD all, retrieval last", "de", "en"]
    assert row["MD"] == pytest.approx(scores["MD"][1:, 0].mean())
    assert row["retrieval"] == pytest.approx(scores["retrieval"][-1, 0])
    found = abx_tables.retrieval_correlations(pairs.reset_index(), n_resamples=50)
    table = found.set_index("pairing")
    expected = stats.pearsonr(scores["MD"][-1], scores["retrieval"][-1]).statistic
    assert table.loc["last layer, both", "r"] == pytest.approx(expected)
    assert table["printed (XLM-R)"].tolist() == [0.77, 0.73, 0.53]


ENDS = abx_tables.PAIR


def test_pairs_hold_ld_beside_md_and_correlate_as_by_hand() -> None:
    pairs = abx_3_tradeoff.tradeoff_pairs(BY_LAYER)
    assert pairs["model"].unique().tolist() == ["zeta", "alpha1"]  # the order given
    row = pairs.set_index(["model", "checkpoint", *ENDS]).loc["zeta", 5, "de", "nl"]
    scores = HISTORIES[0][1].scores.scores
    for task in ("LD", MATCHED):
        assert row[task] == pytest.approx(scores[task][:, PAIRS.index(("de", "nl"))].mean())
    found = abx_3_tradeoff.tradeoff_correlations(BY_LAYER, n_resamples=20)
    found = found.set_index(["observations", "LD with", "method", "model"])
    last = pairs[(pairs["model"] == "alpha1") & (pairs["checkpoint"] == 9)]
    for meaning in ("MD", MATCHED):
        rank = stats.spearmanr(last["LD"], last[meaning]).statistic
        key = "pairs, last checkpoint", meaning, "spearman", "alpha1"
        assert found.loc[key, "r"] == pytest.approx(rank)
    printed = found["printed (XLM-R)"].xs("MD", level="LD with")
    assert printed.tolist()[::2] == [-0.74, -0.68, -0.83, -0.72, -0.66, -0.53]
    assert found["printed (XLM-R)"].xs(MATCHED, level="LD with").isna().all()
    course = abx_3_tradeoff.correlation_courses(pairs, n_resamples=20)
    row = course.set_index(["model", "checkpoint", "LD with"]).loc["alpha1", 9, "MD"]
    assert row["value"] == pytest.approx(stats.pearsonr(last["LD"], last["MD"])[0])


def test_what_a_text_has_without_a_model(corpus: ParallelCorpus) -> None:
    pairs = abx_3_tradeoff.tradeoff_pairs(BY_LAYER)
    bags = abx_3_tradeoff.bag_pairs(["n", "m"], ["zeta", "alpha1"], corpus, None)
    found = abx_3_tradeoff.untaught_correlations(pairs, bags, n_resamples=20)
    assert set(found["scores of"]) == {"bag of subwords", "first checkpoint"}
    assert len(found) == 2 * 2 * 2 * 2
    alone = abx_3_tradeoff.untaught_correlations(
        pairs[pairs["checkpoint"] == 9], bags, n_resamples=20
    )
    assert set(alone["scores of"]) == {"bag of subwords"}  # one state is no course
    for meaning in abx_3_tradeoff.MEANINGS:
        partial = abx_3_tradeoff.partial_tradeoffs(pairs, bags, corpus, meaning, n_resamples=20)
        assert partial.index.unique().tolist() == [
            ("zeta", 0), ("zeta", 9), ("alpha1", 0), ("alpha1", 9)
        ]  # fmt: skip
        assert partial["given"].unique().tolist() == [
            "nothing", "the bag", "the bag and script", "these and length"
        ]  # fmt: skip
        plain = partial[(partial["given"] == "nothing") & (partial["method"] == "pearson")]
        last = pairs.query("model == 'zeta' and checkpoint == 9")
        r = stats.pearsonr(last["LD"], last[meaning]).statistic
        assert plain.loc[("zeta", 9), "r"] == pytest.approx(r)


def test_kinds_of_pairs_are_by_script_and_branch() -> None:
    pairs = abx_3_tradeoff.tradeoff_pairs(BY_LAYER)
    found = abx_3_tradeoff.kinds_of_pairs(pairs[pairs["checkpoint"] == 9]).loc["zeta"]
    # de-en, de-nl, en-nl and ru-uk have both in common; no pair has but one of the two
    counts = {"one script, one branch": 4, "two scripts, two branches": 11}
    assert found["pairs"].to_dict() == counts
    rows = pairs.query("model == 'zeta' and checkpoint == 9").set_index(ENDS)
    alike = rows.loc[[("de", "en"), ("de", "nl"), ("en", "nl"), ("ru", "uk")]]
    for score in ("LD", MATCHED):
        expected = alike[score].mean()
        assert found.loc["one script, one branch", score] == pytest.approx(expected)
    r = stats.pearsonr(alike["LD"], alike[MATCHED]).statistic
    assert found.loc["one script, one branch", f"r with {MATCHED}"] == pytest.approx(r)


def test_languages_along_training(corpus: ParallelCorpus) -> None:
    scores = averaged_scores(MEASURED, ["LD", "MD"], by=["language"])
    spread = abx_tables.normalised_spread({"all": scores})
    of_zeta = scores.query("model == 'zeta' and task == 'LD'").groupby("language")["score"]
    lowest, highest = of_zeta.min(), of_zeta.max()
    at_5 = scores.query("model == 'zeta' and task == 'LD' and checkpoint == 5")
    row = (at_5.set_index("language")["score"] - lowest) / (highest - lowest)
    assert spread.loc[("all", "zeta", "LD"), (5, "mean")] == pytest.approx(row.mean())
    assert abx_tables.normalised_spread({"a": scores[scores["checkpoint"] == 9]}).isna().all(None)
    turns = abx_tables.with_turns(scores).query("turn and model == 'zeta' and language == 'de'")
    trained = scores.query("model == 'zeta' and language == 'de' and checkpoint > 0")
    for task, extreme in (("LD", "idxmin"), ("MD", "idxmax")):
        step = trained.loc[getattr(trained[trained["task"] == task]["score"], extreme)()]
        assert turns.set_index("task").loc[task, "checkpoint"] == step["checkpoint"]
    turning = abx_tables.turning_points(scores)
    assert turning.sum(axis=1).tolist() == [len(CODES)] * 4
    assert 0 not in turning.columns
    names = abx_tables.language_names([*CODES, "xx"])
    assert (names["de"], names["xx"]) == ("German (de)", "xx")
    ends = abx_tables.extremes(scores, names, n=1)
    of_zeta = scores.query("model == 'zeta' and task == 'MD' and checkpoint == 9")
    best = of_zeta.loc[of_zeta["score"].idxmax()]
    shown = ends.loc["highest", "zeta", "MD"]
    assert shown.index.tolist() == [names[best["language"]]]
    assert shown.iloc[0].tolist() == best[["score", "low", "high"]].tolist()
    explained = abx_tables.explained_heights(scores, ["n", "m"], corpus, None)
    assert ("zeta", "LD") in explained.index
    assert explained["R²"].stack().between(0, 1).all()
    assert abx_tables.language_kinds(CODES)["code"].tolist()[-2:] != ["de", "en"]


def test_means_in_which_branches_or_scripts_count_alike() -> None:
    table = abx_tables.weighted_means(LAST[:1], ["LD"])
    scores = LAST[0].scores.scores["LD"].mean(axis=(0, 2))
    assert table.loc[("zeta", "LD", "pairs"), "score"] == pytest.approx(scores.mean())
    scripts = {"de": "Latn", "en": "Latn", "nl": "Latn", "ru": "Cyrl", "uk": "Cyrl", "ja": "Jpan"}
    labels = ["-".join(sorted(scripts[code] for code in pair)) for pair in PAIRS]
    kinds = pd.Series(scores).groupby(labels)
    assert table.loc[("zeta", "LD", "scripts"), "score"] == pytest.approx(kinds.mean().mean())


def test_directions_of_a_language() -> None:
    table = abx_tables.directed_languages(LAST, "LD")
    scores = LAST[0].scores.scores["LD"].mean(axis=0)
    inside = [scores[i, pair.index("ru")] for i, pair in enumerate(PAIRS) if "ru" in pair]
    outside = [scores[i, 1 - pair.index("ru")] for i, pair in enumerate(PAIRS) if "ru" in pair]
    row = table.loc["zeta", "ru"]
    assert row["X in it"] == pytest.approx(np.mean(inside))
    assert row["difference"] == pytest.approx(np.mean(inside) - np.mean(outside))
    assert table.loc["zeta", "difference"].is_monotonic_decreasing
    deep = abx_tables.directed_languages(LAST, "LD", embedding_layer=False).loc["zeta", "ru"]
    assert deep["X in it"] != row["X in it"]
