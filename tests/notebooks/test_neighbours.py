"""The nearest sentence found one by one."""

import numpy as np

from abx_2_dynamics import nearest_languages


def test_a_literal_search() -> None:
    rng = np.random.default_rng(1)
    vectors = {code: rng.normal(size=(9, 4)) + 3 for code in ("de", "en", "tr")}
    counts, codes = nearest_languages(vectors), list(vectors)
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
