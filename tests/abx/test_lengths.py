"""Length as a rival of meaning: what it scores alone, and MD where it says nothing."""

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from xlx.abx import contrasts, discrimination, lengths, series
from xlx.core import statistics
from xlx.text.corpora import ParallelCorpus

N = 24


def corpus_of(counts: dict[str, list[int]]) -> ParallelCorpus:
    sentences = {code: tuple("x" * n for n in own) for code, own in counts.items()}
    n = len(next(iter(counts.values())))
    return ParallelCorpus("toy", sentences, tuple(map(str, range(n))), ("",) * n, "none", "made up")


@pytest.fixture(scope="module")
def of_lengths() -> ParallelCorpus:
    """Translations are about as long; some sentences are of one length."""
    rng = np.random.default_rng(0)
    base = rng.integers(20, 60, size=N)
    return corpus_of({code: (base + rng.integers(0, 4, size=N)).tolist() for code in "abc"})


def literal_length(corpus: ParallelCorpus) -> float:
    """MD of the difference in log characters, triplet by triplet."""
    logs = {code: [np.log1p(len(s)) for s in own] for code, own in corpus.sentences.items()}
    won = []
    for one, other in itertools.permutations(logs, 2):
        for x, b in itertools.permutations(range(len(corpus)), 2):
            to_a, to_b = abs(logs[one][x] - logs[other][x]), abs(logs[one][x] - logs[other][b])
            won.append(0.5 if abs(to_a - to_b) < 1e-12 else to_a < to_b)
    return float(np.mean(won))


def test_length_alone_is_the_distance_in_log_characters(of_lengths: ParallelCorpus) -> None:
    score = lengths.length_scores(of_lengths).groupby("task")["score"].mean()
    assert score["MD"] == pytest.approx(literal_length(of_lengths), abs=1e-4)
    assert score["MD"] > 0.85  # length tells a translation
    alike = corpus_of({code: [7] * 5 for code in "ab"})
    assert lengths.length_scores(alike).query("task == 'MD'")["score"].tolist() == [0.5]


def like_length_of(
    monkeypatch: pytest.MonkeyPatch, states: dict[str, np.ndarray], corpus: ParallelCorpus
) -> dict[str, np.ndarray]:
    """The value behind `like_length`, of vectors instead of a model's."""
    monkeypatch.setattr("xlx.models.loading.load", lambda _: SimpleNamespace(device="cpu"))
    embedded = SimpleNamespace(states=states)
    monkeypatch.setattr("xlx.models.embeddings.embed_corpus", lambda *_, **__: embedded)
    return lengths.LIKE_LENGTH.compute("mine", corpus, {})


def literal(
    states: dict[str, np.ndarray], corpus: ParallelCorpus, out: int | None = None
) -> tuple[float, float]:
    """Comparisons won and made at one layer, without a position."""
    won = made = 0.0
    kept = [i for i in range(len(corpus)) if i != out]
    units = {code: v / np.linalg.norm(v, axis=1, keepdims=True) for code, v in states.items()}
    for one, other in itertools.permutations(units, 2):
        count = [len(sentence) for sentence in corpus.sentences[other]]
        for x, b in itertools.permutations(kept, 2):
            if abs(count[b] - count[x]) <= 0.1 * count[x]:
                ahead = units[one][x] @ (units[other][x] - units[other][b])
                won += 0.5 if abs(ahead) < 1e-12 else ahead > 0
                made += 1
    return won, made


def test_like_length_is_the_literal_share_with_its_jackknife(
    of_lengths: ParallelCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    meaning = rng.normal(size=(N, 5))
    states = {code: meaning + rng.normal(size=(2, N, 5)) for code in "abc"}
    states["b"][:, 3] = states["b"][:, 4] = states["a"][:, 3]  # ties
    value = like_length_of(monkeypatch, states, of_lengths)
    scores, influence = lengths._jackknifed(value)
    for layer in range(2):
        own = {code: array[layer] for code, array in states.items()}
        won, made = literal(own, of_lengths)
        assert scores[layer] == pytest.approx(won / made)
        left = [np.divide(*literal(own, of_lengths, out)) for out in range(N)]
        expected = np.sqrt((N - 1) / N * ((left - np.mean(left)) ** 2).sum())
        error = statistics.jackknife_error(influence[layer], order=1)
        assert error == pytest.approx(expected)
    apart = lengths.LIKE_LENGTH.difference
    assert apart(value, value) == 0
    assert apart(value, value | {"won": value["won"] + 2}) > 0
    assert apart(value, {"won": value["won"]}) == np.inf


def test_a_code_of_length_is_no_meaning(monkeypatch: pytest.MonkeyPatch) -> None:
    """What made MD 0.88 at the embeddings of a miniature: a code of length, and some noise."""
    rng = np.random.default_rng(2)
    base = rng.uniform(30, 300, size=60)
    counts = {code: (base * rng.uniform(0.85, 1.15, 60)).astype(int).tolist() for code in "abc"}
    angle = {code: np.log(own) / 4 for code, own in counts.items()}
    states = {
        code: np.stack([np.cos(a), np.sin(a), *rng.normal(0, 0.01, (4, 60))], axis=1)[None]
        for code, a in angle.items()
    }
    plain = discrimination.exact(states).table().query("task == 'MD'")["score"].mean()
    scores, _ = lengths._jackknifed(like_length_of(monkeypatch, states, corpus_of(counts)))
    assert plain > 0.85
    assert scores[0] < 0.65


def test_nothing_of_like_length_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = corpus_of({code: [10, 20, 40] for code in "ab"})
    with pytest.raises(ValueError, match=r"toy: no two sentences .* take more sentences"):
        like_length_of(monkeypatch, {code: np.ones((1, 3, 2)) for code in "ab"}, corpus)


def test_a_model_and_its_bag_go_through_the_store(corpus: ParallelCorpus) -> None:
    first, last = series.history("mini-xlmr")[0], "mini-xlmr"
    start, end = lengths.like_length([first, last], corpus, max_length=20)
    assert (start.model, start.step, end.step) == ("mini-xlmr", 0, series.history(last)[-1].step)
    assert (end.scores.shape, end.influence.shape) == ((7,), (7, len(corpus)))
    bag = lengths.bag_like_length("mini-xlmr", corpus)
    assert bag.scores.shape == (1,)
    table = lengths.by_layer([end, bag])
    assert table["model"].unique().tolist() == ["mini-xlmr", "bag of subwords"]
    assert (table["low"] <= table["score"]).all()
    assert (table["score"] <= table["high"]).all()
    task = lengths.MD_LIKE_LENGTH
    apart = contrasts.score_difference(end, start, task, embedding_layer=False)
    assert apart["value"] == pytest.approx(end.scores[1:].mean() - start.scores[1:].mean())
    deep = contrasts.score_difference(end, end, task, layers=[-1], other_layers=[0])
    assert deep["value"] == pytest.approx(end.scores[-1] - end.scores[0])
    assert deep["low"] <= deep["value"] <= deep["high"]
    (again,) = lengths.like_length([last], corpus, max_length=20)
    pd.testing.assert_frame_equal(lengths.by_layer([again]), lengths.by_layer([end]))
