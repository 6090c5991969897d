"""Grades of translations by counted words, and losses at equal grades, in planted worlds."""

from collections import defaultdict

import numpy as np
import pytest

from shared import translation
from xlx.text.examples import Examples

N = 240
WORDS = ["rain", "sun", "house", "road", "dog", "bread", "hand", "door", "milk", "tree", "night"]
GROUPS = np.arange(N) // 3


def ciphered(texts: list[str], away: int) -> list[str]:
    """Another word for each word, and the words from the last."""
    other = dict(zip(WORDS, WORDS[away:] + WORDS[:away], strict=True))
    return [" ".join(other[word] for word in reversed(text.split())) for text in texts]


def drawn(seed: int, n: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, 5, replace=False)) for _ in range(n)]


def pairs(code: str, first: list[str], second: list[str]) -> Examples:
    ids, labels = tuple(map(str, range(len(first)))), np.arange(len(first)) % 3
    return Examples("made", code, tuple(first), tuple(second), labels, tuple("abc"), ids)


def test_bits_are_those_of_words_that_go_together() -> None:
    first, second, learn = drawn(1, N), drawn(2, N), drawn(3, 500)
    worse = [*drawn(4, N // 2), *second[N // 2 :]]
    sets = {
        "en": pairs("en", first, second),
        "de": pairs("de", ciphered(first, 3), ciphered(second, 3)),
        "sw": pairs("sw", ciphered(first, 5), ciphered(worse, 5)),
    }
    learnt = {"en": learn, "de": ciphered(learn, 3), "sw": ciphered(learn, 5)}
    grades = translation._grades(sets, learnt, "en", "mini-infoxlm")
    german, swahili = grades["right"]
    assert german.min() > 0.5 > grades["wrong"].mean() + 0.2
    assert swahili[: N // 2].max() < german[: N // 2].max()
    assert swahili[: N // 2].mean() < german[: N // 2].mean() - 0.3
    np.testing.assert_allclose(swahili[N // 2 :].mean(), german[N // 2 :].mean(), atol=0.2)
    same = [
        len({*a.split()} & {*b.split()}) / 5
        for a, b in zip(sets["de"].first, sets["de"].second, strict=True)
    ]
    assert np.corrcoef(grades["shared"][0], same)[0, 1] > 0.9


def test_matches_are_learnt_as_in_a_loop() -> None:
    originals, others = [[1, 2], [2, 3], [1, 3, 3]], [[5, 6], [6, 7], [5, 7]]
    p: dict = defaultdict(lambda: 1.0)
    for _ in range(translation.N_STEPS):
        counts: dict = defaultdict(float)
        for text, other in zip(originals, others, strict=True):
            for word in text:
                behind = [translation.NO_WORD, *other]
                whole = sum(p[x, word] for x in behind)
                for x in behind:
                    counts[x, word] += p[x, word] / whole
        p = {
            (x, w): c / sum(y for (z, _), y in counts.items() if z == x)
            for (x, w), c in counts.items()
        }
    table = translation._table(originals, others)
    size = translation.SIZE
    assert {(x // size, x % size): pytest.approx(y) for x, y in table.items()} == p
    bits = translation._bits(table, np.full(10, 0.1), [[1, 2, 9]], [[5, 6]], 1)
    chance = [sum(p.get((x, word), 0) for x in (0, 5, 6)) / 3 for word in (1, 2, 9)]
    assert bits[0] == pytest.approx(np.mean([np.log2(x / 0.2 + 0.5) for x in chance]))


def test_what_grades_explain_is_taken_out_and_nothing_else() -> None:
    rng = np.random.default_rng(0)
    level, hard = np.array([2.0, 1.0, 0.0, 1.5])[:, None], rng.normal(0, 0.3, N)
    grade = level + rng.normal(0, 0.5, (4, N)) + hard
    by_language = np.array([0.3, 0.3, 0.3, 0.5])[:, None] + 0 * grade
    noise = rng.normal(0, 0.05, (4, 3, N))
    lost = (by_language - 0.1 * grade + 0.2 * hard)[:, None] + noise
    equal, slopes = translation.at_equal(lost, [grade], GROUPS)
    assert slopes == pytest.approx([-0.1], abs=0.01)
    apart = equal["value"] - equal["value"].iloc[0]
    np.testing.assert_allclose(apart, [0, 0, 0, 0.2], atol=0.02)
    assert equal["value"].mean() == pytest.approx(lost.mean())
    none, flat = translation.at_equal(by_language[:, None] + noise, [grade], GROUPS)
    np.testing.assert_allclose(
        none["value"], (by_language[:, None] + noise).mean(axis=(1, 2)), atol=0.03
    )
    assert flat == pytest.approx([0], abs=0.01)
    dummies = [np.kron(np.eye(4), np.ones((N, 1))), np.kron(np.ones((4, 1)), np.eye(N))]
    fit = np.linalg.lstsq(np.hstack([grade.reshape(-1, 1), *dummies]), lost.mean(axis=1).ravel())[0]
    assert slopes[0] == pytest.approx(fit[0])
