"""Rivals counted one by one, and the score of fewer sentences by trying all choices."""

from itertools import combinations

import numpy as np
import pytest

from xlx.experiment import mexa_scores, scoring
from xlx.measures import mexa
from xlx.text import parallel


def _states(seed: int, n: int = 7) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(2, n, 5))
    return {code: shared + rng.normal(size=shared.shape) for code in ("en", "de", "tr")}


def test_a_literal_count() -> None:
    states = _states(1)
    counted = mexa.count_rivals(states["de"], states["en"])
    for layer in range(2):
        a, b = (
            states[x][layer] / np.linalg.norm(states[x][layer], axis=1)[:, None]
            for x in ("de", "en")
        )
        for i in range(7):
            row = {j for j in range(7) if j != i and a[i] @ b[j] >= a[i] @ b[i]}
            column = {j for j in range(7) if j != i and a[j] @ b[i] >= a[i] @ b[i]}
            assert counted["row"][layer, i] == len(row)
            assert counted["column"][layer, i] == len(column)
            assert counted["either"][layer, i] == len(row | column)


def test_hits_are_sentences_without_rivals_and_ties_are_rivals() -> None:
    states = _states(2, n=20)
    states["de"][0, 3] = states["de"][0, 4]
    states["en"][0, 3] = states["en"][0, 4]
    hits = mexa.scores(states, "en").hits[:, 0]
    assert np.array_equal(mexa.count_rivals(states["de"], states["en"])["either"] == 0, hits)


def test_more_rivals_than_a_number_holds_are_refused() -> None:
    many = np.zeros((1, 2**15 + 1, 1))
    with pytest.raises(ValueError, match="32,768 sentences at most, not 32,769: take fewer"):
        mexa.count_rivals(many, many)


@pytest.mark.parametrize("n", [1, 2, 4, 7])
def test_the_score_of_fewer_sentences_is_the_mean_of_all_choices(n: int) -> None:
    states = _states(3)
    counted = mexa.count_rivals(states["de"], states["en"])
    drawn = [
        mexa.scores({x: states[x][:, list(some)] for x in ("en", "de")}, "en").mu[:, 0]
        for some in combinations(range(7), n)
        if n > 1
    ]
    expected = np.mean(drawn, axis=0) if drawn else np.ones(2)
    assert mexa.spared(counted["either"], 7, n).mean(axis=-1) == pytest.approx(expected)


def test_every_pivot_is_scored_as_the_one_that_is_asked_for() -> None:
    text = parallel.load("flores200-100", ["en", "de", "tr"]).drop(range(12, 100))
    name, options = "mini-llama", {"pooling": "weighted_mean"}
    for space in mexa_scores.STATES:
        (scores,) = scoring.subject_scores([name], text, ["MEXA"], space=space, **options)
        table = scores.table().query("language_1 == 'de' or language_2 == 'de'")
        covered = mexa_scores.measure_coverage(
            name, text, "de", poolings=["weighted_mean"], states=[space]
        )["weighted_mean"]
        others = table["language_1"].where(table["language_1"] != "de", table["language_2"])
        mu = table.assign(of=others).groupby(["of", "layer"])["score"].mean().unstack()
        codes = list(covered.scores.languages)
        np.testing.assert_allclose(mu.loc[codes], covered.scores.mu.T, atol=1e-7)
        counted = mexa_scores.measure_rivals(name, text, "de", states=space, **options)
        spared = [mexa.spared(of["either"], 12, 12).mean(axis=-1) for of in counted.values()]
        assert np.array_equal(spared, covered.scores.mu.T)
