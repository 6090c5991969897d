"""The tables of the notebooks on LD and MD, on small scores whose tables are known."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

import abx_1_validation
import abx_2_dynamics
from xlx.experiment.abx_scores import MATCHED, WEIGHTINGS
from xlx.experiment.scoring import FunctionSubject
from xlx.measures.abx import SCORES, PairScores
from xlx.text.parallel import ParallelCorpus

CODES = ("de", "en", "nl", "ru", "uk", "ja")
PAIRS = tuple(combinations(CODES, 2))
N, LAYERS = 10, 3
TASKS = (*SCORES, MATCHED)


def checkpoint(model: str, step: int, n_layers: int = LAYERS) -> PairScores:
    """Made-up scores, and what they change by without each of three documents."""
    rng = np.random.default_rng([len(model), step])
    scores = {task: rng.uniform(0.4, 0.9, (n_layers, len(PAIRS), 2)) for task in TASKS}
    shapes = {**dict.fromkeys(WEIGHTINGS, (n_layers, 3)), "languages": (n_layers, len(CODES), 3)}
    changes = {
        of: {task: rng.normal(0, 0.01, shape) for task in TASKS} for of, shape in shapes.items()
    }
    masked = {MATCHED: np.full((len(PAIRS), 2), 7)}
    sizes = {"documents": np.array([3, 3, 4])}
    whole = PairScores(PAIRS, tuple(range(n_layers)), N, scores, {}, masked, model, step)
    return replace(
        whole, left_out_change={"documents": changes}, sizes=sizes, cut=dict.fromkeys(CODES, 1)
    )


HISTORIES = [[checkpoint(name, step) for step in (0, 5, 9)] for name in ("zeta", "alpha1")]


@pytest.fixture
def corpus(monkeypatch: pytest.MonkeyPatch) -> ParallelCorpus:
    monkeypatch.setattr(
        abx_2_dynamics, "subject_scores", lambda *_, **__: [checkpoint("bag", 1, n_layers=1)]
    )
    sentences = {code: tuple(f"{code} " + "x" * (28 + i) for i in range(N)) for code in CODES}
    return ParallelCorpus("toy", sentences, tuple(map(str, range(N))), ("",) * N, "none", "")


def test_example_triplets_are_those_of_the_algorithms(corpus: ParallelCorpus) -> None:
    draw = np.random.default_rng(0)
    sentences = {"en": corpus.sentences["en"], "fr": corpus.sentences["de"]}
    corpus = replace(corpus, sentences=sentences)
    layer = {code: draw.normal(size=(N, 4)) for code in sentences}
    model = FunctionSubject("m", function=lambda _, code: layer[code])
    short = abx_1_validation.short_sentences(corpus, ("en", "fr"))
    assert len(short) == N
    texts, distances = abx_1_validation.example_triplets([model], short, 1)
    at = texts["sentence"].map(lambda sentence: len(sentence) - 31)
    assert at["LD", "A"] == at["LD", "B"] != at["LD", "X"]
    assert at["MD", "A"] == at["MD", "X"] != at["MD", "B"]
    assert texts["language"].tolist() == ["en", "en", "fr", "en", "fr", "fr"]
    row = distances.loc["LD", "m"]
    x, a = layer["en"][at["LD", "X"]], layer["en"][at["LD", "A"]]
    assert row["d(X, A)"] == pytest.approx(1 - x @ a / np.linalg.norm(x) / np.linalg.norm(a))
    assert row["score"] == float(row["d(X, A)"] < row["d(X, B)"])


def test_what_is_left_given_what_needs_no_training(corpus: ParallelCorpus) -> None:
    first, *_, last = HISTORIES[0]
    bag = checkpoint("bag", 1, n_layers=1)
    held = abx_2_dynamics.held_pairs([last], [first], [bag], corpus)
    found = abx_2_dynamics.partial_tradeoffs(held)
    rows = found[found["LD with"] == MATCHED].set_index("given")["r"]
    assert rows.index.tolist() == list(abx_2_dynamics.held_sets(held, MATCHED))
    assert rows["nothing"] == pytest.approx(stats.pearsonr(held["LD"], held[MATCHED])[0])
    beside = held[["bag LD", f"bag {MATCHED}", "twin LD", f"twin {MATCHED}"]].assign(one=1.0)
    scores = held[["LD", MATCHED]].to_numpy()
    left = scores - beside.to_numpy() @ np.linalg.lstsq(beside.to_numpy(), scores)[0]
    assert rows["the bag and the twin"] == pytest.approx(np.corrcoef(left.T)[0, 1])
    pairs = abx_2_dynamics.tradeoff_pairs(abx_2_dynamics.layer_pairs([last]))
    np.testing.assert_allclose(held[["LD", "MD"]], pairs[["LD", "MD"]])


def test_what_is_beyond_a_control_is_the_difference_of_two_partial_correlations(
    corpus: ParallelCorpus,
) -> None:
    first, *_, last = HISTORIES[0]
    others = [last, replace(last, model="beta"), HISTORIES[1][-1]]
    bag = checkpoint("bag", 1, n_layers=1)
    held = abx_2_dynamics.held_pairs(others, [first] * 3, [bag] * 3, corpus)
    held["length MD"] = np.random.default_rng(0).normal(size=len(held))
    gap = abx_2_dynamics.beyond_control(held, "zeta").set_index("model")
    partial = abx_2_dynamics.partial_tradeoffs(held)
    r = partial[partial["LD with"] == MATCHED].set_index(["given", "model"])["r"]
    r = r[abx_2_dynamics.ALL_HELD]
    assert gap["value"].to_dict() == pytest.approx((r - r["zeta"]).drop("zeta").to_dict())
    assert (gap["low"] <= gap["value"]).all()
