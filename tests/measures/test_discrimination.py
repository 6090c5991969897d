"""The exact and the sampled ABX scores: closed forms, what must not matter, arithmetic."""

import itertools

import numpy as np
import pandas as pd
import pytest
import torch

from shared.abx_tables import pair_scores
from xlx.measures import abx
from xlx.measures.abx import Triplets, sample_triplets


def cosine_distance(u: np.ndarray, v: np.ndarray) -> float:
    return 1 - u @ v / (np.sqrt(u @ u) * np.sqrt(v @ v))


def literal_retrieval(e1: np.ndarray, e2: np.ndarray) -> list[float]:
    """The credit of each sentence as a query."""
    hits = []
    for position, query in enumerate(e1):
        distances = np.array([cosine_distance(query, candidate) for candidate in e2])
        gaps = np.delete(distances, position) - distances[position]
        hits.append(0.0 if gaps.min() < -1e-13 else 1 / (1 + (gaps < 1e-13).sum()))
    return hits


def random_vectors(n: int, dim: int, seed: int, languages: str = "abc") -> dict[str, np.ndarray]:
    """Translations that share a meaning part, with a language part and noise."""
    rng = np.random.default_rng(seed)
    meaning = rng.normal(size=(n, dim))
    return {
        language: (meaning + rng.normal(size=dim) + rng.normal(size=(n, dim))).astype(np.float32)
        for language in languages
    }


def scores_of(table: pd.DataFrame, task: str, pair: str, x: str) -> float:
    at = (table["task"] == task) & (table["language_1"] + table["language_2"] == pair)
    return table[at & (table["x_language"] == x)]["score"].item()


def means_of(states: dict[str, np.ndarray]) -> dict[str, float]:
    """Task → exact score of the one pair, both directions averaged."""
    pairs = pair_scores(abx.exact(states).table())
    return pairs.set_index("task")["score"].to_dict()


@pytest.mark.parametrize("task", ["LD", "MD"])
def test_sampled_agrees_with_exact_and_is_it_when_all_are_drawn(task: str) -> None:
    vectors = random_vectors(12, 5, 3, "ab")
    exact = means_of(vectors)[task]
    first, shared, other = np.array(
        [(side, i, j) for side in (0, 1) for i, j in itertools.permutations(range(12), 2)]
    ).T
    second = 1 - first
    of_task = {
        "LD": (first, second, other, shared, shared),
        "MD": (second, second, shared, shared, other),
    }[task]
    everything = Triplets(task, ("a", "b"), first, *of_task)
    scores = abx.score_triplets(vectors, everything)
    assert scores.mean() == pytest.approx(exact, abs=1e-12)
    independent = sample_triplets(task, ("a", "b"), 12, 40_000, seed=1)
    scores = abx.score_triplets(vectors, independent)
    assert scores.mean() == pytest.approx(exact, abs=0.01)


def test_runs_are_algorithms_1_to_3_layer_by_layer() -> None:
    rng = np.random.default_rng(0)
    states = {code: rng.normal(size=(2, 9, 4)) for code in "abc"}
    runs = abx.sampled(states, [("a", "b"), ("c", "b")], 50, 3, seed=5)
    assert len(runs) == 2 * 2 * 2 * 3
    again = abx.sampled(states, [("a", "b"), ("c", "b")], 50, 3, seed=5)
    pd.testing.assert_frame_equal(runs, again)
    row = runs.query("task == 'MD' and layer == 1 and language_1 == 'c' and run == 2").iloc[0]
    draw = sample_triplets("MD", ("c", "b"), 9, 50, np.random.default_rng([5, 1, 2, 1]))
    vectors = {code: array[1] for code, array in states.items()}
    assert row["score"] == abx.score_triplets(vectors, draw).mean()
    assert runs.groupby(["task", "layer", "language_1"])["score"].nunique().min() > 1


def test_algorithm_3_by_hand() -> None:
    vectors = {"a": np.array([[1.0, 0.0], [0.0, 2.0]]), "b": np.array([[3.0, 0.0], [1.0, 1.0]])}
    zero, one = np.array([0, 0, 0]), np.array([1, 1, 1])
    # X = (1, 0); A = (1, 1) against B = (0, 2): closer; the other way: not; A = B: a tie
    triplets = Triplets(
        "MD", ("a", "b"), zero, np.array([1, 0, 0]), np.array([0, 1, 0]), zero, one, one
    )
    assert abx.score_triplets(vectors, triplets).tolist() == [1.0, 0.0, 0.5]
    nearer, farther = abx.triplet_distances(vectors, triplets)
    assert nearer[0] == pytest.approx(1 - np.sqrt(0.5))
    assert farther[0] == pytest.approx(1.0)


def test_agrees_with_float64_where_all_cosines_crowd() -> None:
    rng = np.random.default_rng(0)
    common = 1000 * rng.normal(size=64)
    vectors = {
        code: (common + rest).astype(np.float32)
        for code, rest in random_vectors(120, 64, 5).items()
    }
    units = [v / np.linalg.norm(v.astype(float), axis=1)[:, None] for v in vectors.values()]
    assert min((one @ other.T).min() for one in units for other in units) > 0.999
    fast = abx.exact(vectors).table()
    for (one, other), task in itertools.product(itertools.combinations("abc", 2), ("LD", "MD")):
        for x, y in ((one, other), (other, one)):
            (own, to), off = (units["abc".index(c)] for c in (x, y)), ~np.eye(120, dtype=bool)
            across = own @ to.T
            nearer = own @ own.T if task == "LD" else np.diag(across)[:, None]
            slow = (nearer > across)[off].mean()
            assert scores_of(fast, task, one + other, x) == pytest.approx(slow, abs=1e-4)


def test_closed_forms() -> None:
    rng = np.random.default_rng(2)
    meaning = rng.normal(size=(30, 16))
    assert means_of({"a": meaning, "b": meaning}) == {"LD": 0.5, "MD": 1.0, "retrieval": 1.0}
    apart = np.eye(16)[0] * 1000.0  # languages far from each other: form decides all
    assert means_of({"a": meaning + apart, "b": meaning - apart})["LD"] == 1.0
    chance = means_of({code: rng.normal(size=(400, 32)) for code in "ab"})
    assert (chance["LD"], chance["MD"]) == pytest.approx((0.5, 0.5), abs=0.05)
    # where all sentences are one vector everything is a tie
    same = np.repeat(rng.normal(size=(1, 6)), 10, axis=0)
    assert means_of({code: same for code in "ab"}) == pytest.approx(
        {"LD": 0.5, "MD": 0.5, "retrieval": 0.1}
    )


def test_layers_blocks_and_chosen_pairs_give_the_same_scores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(8)
    states = {code: rng.normal(size=(3, 20, 6)).astype(np.float32) for code in "abcd"}
    every = abx.exact(states)
    assert every.scores["LD"].shape == (3, 6, 2)
    monkeypatch.setattr("xlx.measures.alignment.BLOCK_NUMBERS", 1)  # one pair at a time
    assert np.array_equal(abx.exact(states).scores["MD"], every.scores["MD"])
    some = abx.exact(states, layers=[2], pairs=[("c", "a"), ("b", "d")])
    table = every.table().query("layer == 2")
    for row in some.table().itertuples():
        pair = "".join(sorted(row.language_1 + row.language_2))
        expected = scores_of(table, row.task, pair, row.x_language)
        assert row.score == pytest.approx(expected, abs=2e-6)


def test_float64_and_the_table() -> None:
    vectors = random_vectors(30, 4, 1)
    exact = abx.exact(vectors, dtype=torch.float64).table()
    columns = "task layer language_1 language_2 x_language score n_triplets"
    assert list(exact.columns) == columns.split()
    assert len(exact) == 3 * 3 * 2
    assert set(exact.query("task != 'retrieval'")["n_triplets"]) == {30 * 29}
    pairs = pair_scores(exact)
    assert len(pairs) == 9


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda v: {"a": v["a"]}, "two languages"),
        (lambda v: v | {"b": np.where(np.eye(6, 4) > 0, np.nan, v["b"])}, "of b at position 0"),
        (lambda v: v | {"c": v["c"] * (np.arange(6) != 3)[:, None]}, "of c at position 3 is zero"),
    ],
)
def test_bad_vectors_are_named(spoil, says: str) -> None:
    with pytest.raises(ValueError, match=says) as caught:
        abx.exact(spoil(random_vectors(6, 4, 0)))
    assert "\n" not in str(caught.value)


def test_unknown_pairs_and_layers_are_named() -> None:
    vectors = random_vectors(6, 4, 0)
    with pytest.raises(ValueError, match="no vector of language 'xx'"):
        abx.exact(vectors, pairs=[("a", "xx")])
    with pytest.raises(ValueError, match="no vector of language 'xx'"):
        abx.score_triplets(vectors, sample_triplets("LD", ("a", "xx"), 6, 10, 0))
