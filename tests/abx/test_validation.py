"""The checks of the ABX scores, against the functions that they put together."""

from collections.abc import Iterator

import numpy as np
import pytest

import xlx
from xlx.abx import discrimination, series, triplets, validation
from xlx.core import statistics
from xlx.models import embeddings, loading
from xlx.text.corpora import ParallelCorpus

PAIRS = [("de", "en"), ("en", "fr"), ("fr", "de")]


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("cache")
    with xlx.settings(cache=folder, ledger=folder / "ledger", device="cpu", progress=False):
        yield


@pytest.fixture(scope="module")
def corpus() -> ParallelCorpus:
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    sentences = {
        code: tuple(f"{first} {words[(i * 3 + k) % 10]} {code}" for i, first in enumerate(words))
        for k, code in enumerate(("de", "en", "fr", "it"))
    }
    return ParallelCorpus("toy", sentences, tuple("0123456789"), ("",) * 10, "none", "made up")


@pytest.fixture(scope="module")
def states(corpus: ParallelCorpus) -> dict[str, np.ndarray]:
    return embeddings.embed_corpus(loading.load("mini-xlmr"), corpus).states


def test_pairs_take_turns() -> None:
    pairs = validation.neighbouring_pairs("abcd")
    assert pairs[:4] == [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    assert pairs[4:] == [("a", "c"), ("b", "d"), ("c", "a"), ("d", "b")]
    assert validation.neighbouring_pairs("abcd", 3) == pairs[:3]


def test_sampling(corpus: ParallelCorpus, states: dict[str, np.ndarray]) -> None:
    draw = {"n_triplets": 50, "n_runs": 3, "seed": 1}
    found = validation.sampling(["mini-xlmr"], corpus, PAIRS, **draw)
    assert set(found["model"]) == {"mini-xlmr"}
    assert len(found) == 2 * 7 * 3
    runs = discrimination.sampled(states, PAIRS, *draw.values())
    runs = runs.groupby(["task", "layer", "language_1", "language_2"])["score"]
    keys = found.set_index(["task", "layer", "language_1", "language_2"]).index
    np.testing.assert_allclose(found["mean"], runs.mean().loc[keys], atol=0.03)
    np.testing.assert_allclose(found["sd"], runs.std().loc[keys], atol=0.03)
    exact = discrimination.exact({code: states[code] for code in ("de", "en", "fr")})
    exact = discrimination.pair_scores(exact.table()).set_index(
        ["task", "layer", "language_1", "language_2"]
    )
    for row in found.itertuples():
        one, other = sorted((row.language_1, row.language_2))
        expected = exact.loc[(row.task, row.layer, one, other), "score"]
        assert row.exact == pytest.approx(expected, abs=0.02)
        assert row.error == abs(row.mean - row.exact)


def test_errors(corpus: ParallelCorpus, states: dict[str, np.ndarray]) -> None:
    found = validation.errors(["mini-xlmr"], corpus, PAIRS[:2], n_resamples=50, seed=1)
    assert found[["language_1", "task"]].values.tolist() == [
        ["de", "LD"], ["de", "MD"], ["en", "LD"], ["en", "MD"],
    ]  # fmt: skip
    last = {code: array[-1] for code, array in states.items()}
    exact = discrimination.exact(last, pairs=PAIRS[:1], influence=True)
    assert found["score"][1] == pytest.approx(exact.scores["MD"].mean(), abs=0.02)
    error = statistics.jackknife_error(exact.influence["MD"][0, 0])
    assert found["jackknife"][1] == pytest.approx(float(error), abs=0.01)
    resampled = statistics.bootstrap_kernel(discrimination.kernel(last, PAIRS[0], "MD"), 50, 1)
    assert found["bootstrap"][1] == pytest.approx(resampled.std(), abs=0.01)


def test_controls(corpus: ParallelCorpus, states: dict[str, np.ndarray]) -> None:
    found = validation.control_scores(["mini-xlmr"], corpus, n_triplets=400, seed=1)
    assert len(found) == 14
    control = triplets.sample_control("MD", corpus.languages, len(corpus), 400, 1)
    scores = discrimination.score_triplets(
        {code: array[2] for code, array in states.items()}, control
    )
    row = found.query("task == 'MD' and layer == 2").iloc[0]
    assert row["score"] == pytest.approx(scores.mean(), abs=0.01)
    low, high = statistics.share_interval(row["score"] * 400, 400, 1 - 0.05 / 14)
    assert (row["low"], row["high"]) == pytest.approx((low, high))


def test_what_was_drawn_is_drawn_once(
    corpus: ParallelCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"n_triplets": 20, "seed": 1}
    series.measure_model("mini-xlmr", corpus)
    first = validation.control_scores(["mini-xlmr"], corpus, **options)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr("xlx.models.loading.load", never)
    assert validation.control_scores(["mini-xlmr"], corpus, **options).equals(first)
    for change in ({"seed": 2}, {"n_triplets": 21}, {"pooling": "cls"}):
        with pytest.raises(AssertionError, match="computed again"):
            validation.control_scores(["mini-xlmr"], corpus, **(options | change))


def test_controls_are_compared_by_share() -> None:
    table = validation._controls
    assert validation.CONTROLS.compute is table
    import pandas as pd

    stored = pd.DataFrame({"task": ["LD"], "layer": [0], "won": [50.0], "n": [100]})
    assert validation._apart(stored, stored.assign(won=51.0)) == pytest.approx(0.01)
