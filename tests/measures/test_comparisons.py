"""Scores, also under a mask and without a document, against loops that read like the paper."""

import itertools
from collections.abc import Collection

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tests.measures.test_discrimination import literal_retrieval, random_vectors
from xlx.measures import abx, statistics

Vectors = dict[str, np.ndarray]


def literal(
    vectors: Vectors, one: str, other: str, task: str, kept: Collection[int], mask: np.ndarray
) -> float:
    """Algorithms 1 to 3 over all triplets with X in the first language, of the positions kept."""
    first, second = (v / np.linalg.norm(v, axis=1)[:, None] for v in (vectors[one], vectors[other]))
    scores = []
    for x, o in itertools.permutations(kept, 2):
        if task == "LD":
            ahead = first[x] @ first[o] - first[x] @ second[o]
        elif mask[x, o]:
            ahead = first[x] @ second[x] - first[x] @ second[o]
        else:
            continue
        scores.append(0.5 if abs(ahead) < 1e-12 else float(ahead > 0))
    return float(np.mean(scores)) if scores else np.nan


def masks_of(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """A mask a language; A is never its own rival, whatever a mask says."""
    return {code: (rng.random((n, n)) < 0.6) | np.eye(n, k=1, dtype=bool) for code in "abc"}


@settings(max_examples=15)
@given(st.integers(2, 9), st.integers(1, 5), st.integers(0, 10**6))
def test_masked_scores_and_those_without_a_group_are_the_literal_ones(
    n: int, dim: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    vectors = random_vectors(n, dim, seed)
    if n > 3:  # an untranslated sentence and a repeated one: ties
        vectors["b"][0] = vectors["a"][0]
        vectors["c"][2] = vectors["c"][1]
    masks, documents = masks_of(n, rng), rng.integers(0, 3, size=n)
    groups = {"documents": documents, "sentences": range(n)}
    found = abx.exact(vectors, masks={"some": masks}, groups=groups)
    every = np.ones((n, n), dtype=bool)
    exact = {code: array.astype(float) for code, array in vectors.items()}
    for column, (one, other) in enumerate(found.pairs):
        sides = ((one, other), (other, one))
        for side, (x, b) in enumerate(sides):
            hits = np.mean(literal_retrieval(exact[x], exact[b]))
            assert found.scores["retrieval"][0, column, side] == pytest.approx(hits, abs=1e-9)
        for task in ("LD", "MD", "MD, some"):
            asked = masks if task == "MD, some" else dict.fromkeys("abc", every)
            for side, (x, b) in enumerate(sides):
                expected = literal(exact, x, b, task[:2], range(n), asked[b])
                assert found.scores[task][0, column, side] == pytest.approx(expected, abs=1e-9)
            for name, of_position in groups.items():
                for number, group in enumerate(np.unique(np.array(of_position).astype(str))):
                    kept = [i for i in range(n) if str(of_position[i]) != group]
                    parts = [literal(exact, *s, task[:2], kept, asked[s[1]]) for s in sides]
                    without = found.left_out[name][task][0, column, number]
                    assert without == pytest.approx(np.mean(parts), abs=1e-9, nan_ok=True)


def test_a_retrieval_without_a_group_keeps_its_pool() -> None:
    vectors = random_vectors(8, 3, 2, "ab")
    found = abx.exact(vectors, groups={"documents": list("xxxyyyyz")})
    one, other = vectors.values()
    credit = np.mean([literal_retrieval(one, other), literal_retrieval(other, one)], axis=0)
    for number, kept in enumerate((range(3, 8), [0, 1, 2, 7], range(7))):
        expected = credit[list(kept)].mean()
        assert found.left_out["documents"]["retrieval"][0, 0, number] == pytest.approx(expected)


def test_a_mask_counts_its_triplets() -> None:
    masks = masks_of(30, np.random.default_rng(1))
    found = abx.exact(random_vectors(30, 6, 5), masks={"m": masks})
    table = found.table().query("task == 'MD, m'")
    for row in table.itertuples():
        of_b = row.language_2 if row.x_language == row.language_1 else row.language_1
        assert row.n_triplets == (masks[of_b] & ~np.eye(30, dtype=bool)).sum()


@pytest.mark.parametrize("counted", [False, True])
def test_strips_of_a_long_text_add_up_to_the_whole(
    counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = random_vectors(23, 5, 7)
    vectors["b"][3], vectors["c"][9] = vectors["a"][3], vectors["c"][8]  # ties
    given = {code: sparse.csr_array(x) for code, x in vectors.items()} if counted else vectors
    rng = np.random.default_rng(2)
    options = {
        "masks": {"m": masks_of(23, rng)},
        "groups": {"documents": rng.integers(0, 5, size=23), "sentences": range(23)},
        "pairs": [("a", "c"), ("b", "a")],
    }
    whole = abx.exact(given, **options)
    monkeypatch.setattr("xlx.measures.alignment.WHOLE_NUMBERS", 1)
    monkeypatch.setattr("xlx.measures.alignment.BLOCK_NUMBERS", 23 * 4)
    sizes, over_pairs = [], abx.Groups.over_pairs
    monkeypatch.setattr(
        abx.Groups,
        "over_pairs",
        lambda groups, cells, *rest: (
            sizes.append(len(cells[0])) or over_pairs(groups, cells, *rest)
        ),
    )
    strips = abx.exact(given, **options)
    assert sizes[0] == 23  # the masks are whole, and no other matrix is
    assert {*sizes[1:]} == {4, 3}
    for task, scores in whole.scores.items():
        np.testing.assert_allclose(strips.scores[task], scores, rtol=1e-12)
        for name, left_out in whole.left_out.items():
            np.testing.assert_allclose(strips.left_out[name][task], left_out[task], rtol=1e-12)


@pytest.mark.slow
def test_intervals_by_document_cover_the_truth_as_often_as_they_say() -> None:
    """Sentences of a document share a part of their meaning, and how well they are translated."""

    def vectors(rng: np.random.Generator, n_documents: int) -> tuple[Vectors, np.ndarray]:
        of_position = np.repeat(np.arange(n_documents), rng.integers(1, 6, size=n_documents))
        topic = rng.normal(size=(n_documents, 6))[of_position]
        meaning = topic + rng.normal(size=topic.shape)
        faithful = rng.gamma(1.0, 1.0, size=n_documents)[of_position][:, None]
        noisy = [faithful * meaning + rng.normal(size=topic.shape) for _ in "ab"]
        return dict(zip("ab", noisy, strict=True)), of_position

    truth = abx.exact(vectors(np.random.default_rng(0), 700)[0]).scores["MD"].mean()
    rng = np.random.default_rng(1)
    covered = {"documents": 0, "sentences": 0}
    for _ in range(200):
        states, documents = vectors(rng, 30)
        groups = {"documents": documents, "sentences": np.arange(len(documents))}
        found = abx.exact(states, groups=groups)
        score = found.scores["MD"].mean()
        for name, of_position in groups.items():
            left_out = found.left_out[name]["MD"][0, 0]
            sizes = np.unique(of_position.astype(str), return_counts=True)[1]
            error = statistics.left_out_error(score, left_out, sizes)
            covered[name] += abs(score - truth) <= 1.96 * error
    assert 0.90 <= covered["documents"] / 200 <= 0.98
    assert covered["sentences"] / 200 < 0.85  # too narrow


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"groups": {"documents": ["x"] * 5}}, "documents .* 5 positions, and there are 6"),
        ({"masks": {"m": {"a": np.ones((6, 6))}}}, r"mask 'm' has the shape \(0,\) in b"),
        ({"masks": {"m": dict.fromkeys("ab", np.eye(6))}}, "MD, m: no sentence of a may be B"),
    ],
)
def test_groups_and_masks_that_do_not_fit_are_named(options: dict, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        abx.exact(random_vectors(6, 4, 0, "ab"), **options)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_cuda_masks_as_the_processor_does() -> None:
    vectors = random_vectors(40, 8, 3)
    options = {
        "masks": {"m": masks_of(40, np.random.default_rng(1))},
        "groups": {"documents": np.arange(40) // 4},
    }
    on_cpu = abx.exact(vectors, **options)
    on_cuda = abx.exact(vectors, **options, device="cuda")
    np.testing.assert_allclose(on_cuda.scores["MD, m"], on_cpu.scores["MD, m"], atol=1e-4)
    for task, left_out in on_cpu.left_out["documents"].items():
        np.testing.assert_allclose(on_cuda.left_out["documents"][task], left_out, atol=1e-4)
