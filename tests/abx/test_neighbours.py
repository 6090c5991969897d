"""The nearest sentence found one by one; planted worlds: a place of each language, and none."""

import numpy as np
import pytest

from xlx.experiment import scoring
from xlx.measures import geometry
from xlx.text import parallel


def test_a_literal_search() -> None:
    rng = np.random.default_rng(1)
    vectors = {code: rng.normal(size=(9, 4)) + 3 for code in ("de", "en", "tr")}
    counts, codes = geometry.nearest_languages(vectors), list(vectors)
    expected = np.zeros((2, 3, 3))
    for a, code in enumerate(codes):
        for i, x in enumerate(vectors[code]):
            for kind in range(2):
                best = max(
                    (x @ y / np.linalg.norm(x) / np.linalg.norm(y), b)
                    for b, other in enumerate(codes)
                    for j, y in enumerate(vectors[other])
                    if (j != i if kind else (b, j) != (a, i))
                )
                expected[kind, a, best[1]] += 1
    assert np.array_equal(counts, expected)


def test_planted_worlds() -> None:
    rng = np.random.default_rng(2)
    meaning = rng.normal(size=(40, 30))
    alike = {code: meaning + 0.01 * rng.normal(size=meaning.shape) for code in ("de", "en")}
    others, elsewhere = geometry.nearest_languages(alike) / 40
    assert np.array_equal(others, [[0, 1], [1, 0]])  # its translation is nearest
    assert elsewhere.diagonal() == pytest.approx(0.5, abs=0.25)
    # every sentence in a subspace of its language, without a mean offset: centring leaves it
    apart = {"de": meaning * ([1.0] * 15 + [0.0] * 15), "en": meaning * ([0.0] * 15 + [1.0] * 15)}
    centred = {code: rows - rows.mean(axis=0) for code, rows in apart.items()}
    assert (geometry.nearest_languages(centred)[1].diagonal() / 40 > 0.9).all()


def test_the_table_is_of_shares() -> None:
    text = parallel.load("wmt24pp", ["de", "en", "ja"], drop_duplicates=True).take(12, 1)
    table = scoring.neighbour_languages("mini-xlmr", text, pooling="mean")
    sums = table.groupby(["layer", "among", "language"])["share"].sum()
    assert np.allclose(sums, 1)
    assert len(sums) == 7 * 2 * 3
    with pytest.raises(ValueError, match="space"):
        scoring.neighbour_languages("mini-xlmr", text, space="curved")
