"""What frozen states say of a transfer direction: against the definitions written out."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from shared import igap_tables
from xlx.measures import abx, mexa
from xlx.subjects import loading
from xlx.subjects.states import embed, embed_corpus
from xlx.text import parallel

CODES = ("en", "de", "ja")


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


@pytest.fixture(scope="module")
def corpus() -> parallel.ParallelCorpus:
    return parallel.load("flores200-100", list(CODES)).drop(range(30, 100))


@pytest.fixture(scope="module")
def predicted(corpus: parallel.ParallelCorpus) -> pd.DataFrame:
    found, layer = igap_tables.frozen("mini-infoxlm", corpus, layer=3)
    assert layer == 3
    return found


def test_scores_are_those_of_their_definitions(
    predicted: pd.DataFrame, corpus: parallel.ParallelCorpus
) -> None:
    table = predicted.set_index(["metric", "source", "target"])["score"]
    encoder = loading.load("mini-infoxlm", device="cpu")
    states = {code: embed(encoder, rows).states[3] for code, rows in corpus.sentences.items()}
    x, y = states["en"].astype(float), states["de"].astype(float)
    sides = [(a, b) for a, b in zip(x, y, strict=True)]
    distances = [-float(((a - b) ** 2).sum() ** 0.5) for a, b in sides]
    cosines = [float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in sides]
    for name, values in (
        ("L2", distances),
        ("dot", [float(a @ b) for a, b in sides]),
        ("cosine", cosines),
    ):
        assert table[name, "en", "de"] == pytest.approx(mean(values), rel=1e-4)
    mu = mexa.scores({code: array[None] for code, array in states.items()}, "en").mu
    assert table["MEXA", "en", "de"] == mu[0, 0]
    scores = abx.exact(states, pairs=[("en", "de")]).scores  # literal ones: test_comparisons
    both = [table["retrieval", x, y] for x, y in (("en", "de"), ("de", "en"))]
    assert both == pytest.approx(scores["retrieval"][0, 0])
    assert table["LD", "en", "de"] == pytest.approx(-scores["LD"].mean(), abs=2e-3)


def test_bags_of_subwords_are_compared_by_their_cosine(
    predicted: pd.DataFrame, corpus: parallel.ParallelCorpus
) -> None:
    table = predicted.set_index(["metric", "source", "target"])["score"]
    tokenizer = loading.load("mini-infoxlm", device="cpu").tokenizer
    cosines = []
    for one, other in zip(corpus.sentences["en"], corpus.sentences["de"], strict=True):
        first, second = (
            tokenizer(text, add_special_tokens=False)["input_ids"] for text in (one, other)
        )
        product = sum(first.count(i) * second.count(i) for i in set(first))
        sizes = [sum(ids.count(i) ** 2 for i in set(ids)) for ids in (first, second)]
        cosines.append(product / (sizes[0] * sizes[1]) ** 0.5)
    assert table["bag of subwords", "en", "de"] == pytest.approx(mean(cosines))
    assert 0 < table["bag of subwords", "en", "ja"] < table["bag of subwords", "en", "de"] < 1


def test_random_labels_are_learnt_from_frozen_states(corpus: parallel.ParallelCorpus) -> None:
    """A label at a time, by the normal equations; a text that repeats the source loses nothing."""
    twice = replace(corpus, sentences=corpus.sentences | {"xx": corpus.sentences["en"]})
    (table,) = igap_tables.memorised_gaps(["mini-infoxlm"], twice, 3)
    gaps = table.set_index(["layer", "source", "target"])["gap"]
    assert gaps[2, "en", "xx"] == 0
    states = embed_corpus(loading.load("mini-infoxlm"), corpus).states
    x, y = (states[code][2] - states[code][2].mean(axis=0, dtype=float) for code in ("en", "de"))
    weight = 1e-4 * np.sum(x**2) / len(x)
    wrong = []
    for label in np.random.default_rng(0).choice([-1.0, 1.0], size=(len(corpus), 3)).T:
        learnt = np.linalg.solve(x.T @ x + weight * np.eye(x.shape[1]), x.T @ label)
        wrong.append([np.mean(np.sign(own @ learnt) != label) for own in (y, x)])
    other, own = np.mean(wrong, axis=0)
    assert gaps[2, "en", "de"] == pytest.approx(other - own, abs=0.5 / len(corpus))


def test_the_layer_is_chosen_by_retrieval(corpus: parallel.ParallelCorpus) -> None:
    encoder = loading.load("mini-infoxlm")
    _, layer = igap_tables.frozen("mini-infoxlm", corpus)
    of = embed_corpus(encoder, corpus, pooling="mean").states
    hits = [
        np.mean(abx.exact({x: states[k] for x, states in of.items()}).scores["retrieval"])
        for k in range(len(of["en"]))
    ]
    assert layer == np.argmax(hits)
