"""The tables of the notebooks on LD and MD, on small scores whose tables are known."""

from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import abx_1_validation
import abx_3_tradeoff
from shared.abx_tables import PAIR
from xlx.experiment.abx_scores import MATCHED, WEIGHTINGS, CheckpointScores
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
    pairs = PairScores(PAIRS, tuple(range(n_layers)), N, scores, {}, masked)
    cuts = dict.fromkeys(CODES, 1) | {"en": cut}
    sizes = {"documents": np.array([3, 3, 4])}
    return CheckpointScores(model, step, "raw", pairs, {"documents": changes}, sizes, cuts, CODES)


HISTORIES = [[checkpoint(name, step) for step in (0, 5, 9)] for name in ("zeta", "alpha1")]
MEASURED = [of for history in HISTORIES for of in history]
LAST = [history[-1] for history in HISTORIES]
BY_LAYER = abx_3_tradeoff.layer_pairs(MEASURED)


@pytest.fixture
def corpus(monkeypatch: pytest.MonkeyPatch) -> ParallelCorpus:
    monkeypatch.setattr(
        abx_3_tradeoff, "subject_scores", lambda *_, **__: [checkpoint("bag", 1, n_layers=1)]
    )
    sentences = {code: tuple(f"{code} " + "x" * (28 + i) for i in range(N)) for code in CODES}
    return ParallelCorpus("toy", sentences, tuple(map(str, range(N))), ("",) * N, "none", "")


def test_example_triplets_are_those_of_the_algorithms(corpus: ParallelCorpus) -> None:
    draw = np.random.default_rng(0)
    sentences = {"en": corpus.sentences["en"], "fr": corpus.sentences["de"]}
    corpus = replace(corpus, sentences=sentences)
    vectors = {code: draw.normal(size=(3, N, 4)) for code in sentences}
    states = {"m": SimpleNamespace(n_layers=2, states=vectors)}
    texts, distances = abx_1_validation.example_triplets(corpus, states, ("en", "fr"), 1)
    at = texts["sentence"].map(lambda sentence: len(sentence) - 31)
    assert at["LD", "A"] == at["LD", "B"] != at["LD", "X"]
    assert at["MD", "A"] == at["MD", "X"] != at["MD", "B"]
    assert texts["language"].tolist() == ["en", "en", "fr", "en", "fr", "fr"]
    row = distances.loc["LD", "m"]
    layer = {code: array[1] for code, array in vectors.items()}
    x, a = layer["en"][at["LD", "X"]], layer["en"][at["LD", "A"]]
    assert row["d(X, A)"] == pytest.approx(1 - x @ a / np.linalg.norm(x) / np.linalg.norm(a))
    assert row["score"] == float(row["d(X, A)"] < row["d(X, B)"])


def test_what_is_left_given_what_a_text_has_without_a_model(corpus: ParallelCorpus) -> None:
    pairs = abx_3_tradeoff.tradeoff_pairs(BY_LAYER)
    bags = abx_3_tradeoff.side_by_side(
        abx_3_tradeoff.layer_pairs([checkpoint("bag", 1, n_layers=1)]), PAIR
    ).assign(model="zeta")
    found = abx_3_tradeoff.partial_tradeoffs(pairs, bags, corpus, MATCHED, n_resamples=20)
    assert found.index.unique().tolist() == [("zeta", 0), ("zeta", 9)]
    rows = found[found["method"] == "pearson"].loc[("zeta", 9)].set_index("given")["r"]
    assert rows.index.tolist() == ["nothing", "the bag", "the bag and script", "these and length"]
    last = pairs.query("model == 'zeta' and checkpoint == 9").reset_index(drop=True)
    assert rows["nothing"] == pytest.approx(stats.pearsonr(last["LD"], last[MATCHED])[0])
    held = np.column_stack([np.ones(len(bags)), bags["LD"], bags[MATCHED]])
    scores = last[["LD", MATCHED]].to_numpy()
    left = scores - held @ np.linalg.lstsq(held, scores)[0]
    assert rows["the bag"] == pytest.approx(np.corrcoef(left.T)[0, 1])
