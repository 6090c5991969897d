"""What a model knows beyond models of the second text alone: by hand, and in planted worlds."""

from itertools import permutations

import numpy as np
import pytest

import mixing_1_nli as nli
from xlx.measures.mixing import MixingError

SEEDS, N, LANGUAGES = 5, 600, 2
LABELS = np.arange(N) % 3
GROUPS = np.arange(N) // 3
CELLS = {"all": np.ones((LANGUAGES, LANGUAGES), dtype=bool)}


def readers(signal: float, seed: int, shared: float = 0.0, n_seeds: int = SEEDS) -> np.ndarray:
    """Logits ``(S, L, L, n, 3)``: ``signal`` for the label, a ``shared`` hint, noise of a seed."""
    rng = np.random.default_rng(seed)
    gold = np.eye(3)[LABELS]
    hint = shared * (gold + np.random.default_rng(1).standard_normal((N, 3)))
    noise = rng.standard_normal((n_seeds, LANGUAGES, LANGUAGES, N, 3))
    return signal * gold + hint + noise


def auc_by_hand(evidence: np.ndarray) -> float:
    """Pairs of an entailed example and another one: which has more evidence."""
    apart = evidence[LABELS == 0][:, None] - evidence[LABELS != 0]
    return ((apart > 0) + (apart == 0) / 2).mean()


@pytest.mark.parametrize("n_seeds", [3, 4, 5])
def test_gain_is_that_of_a_loop_over_splits(n_seeds: int) -> None:
    base, added = (x[:, 0, 0] for x in (readers(0.2, 1, 1), readers(0.6, 2, 1)))
    base, added = (np.log(np.exp(x) / np.exp(x).sum(-1, keepdims=True)) for x in (base, added))
    h, found = (n_seeds - 1) // 2, {}
    for order in permutations(range(n_seeds), 2 * h):
        joined = [np.mean([*base[[*order[:h]]], *x[[*order[h:]]]], axis=0) for x in (added, base)]
        odds = [x[:, 0] - np.log(np.exp(x[:, 1:]).sum(axis=1)) for x in joined]
        found[order] = auc_by_hand(odds[0]) - auc_by_hand(odds[1])
    values = nli.beyond(base[:n_seeds], added, LABELS == 0)
    assert values.shape == (n_seeds, N)
    assert values.mean() == pytest.approx(np.mean([*found.values()]))
    least = np.mean([gain for order, gain in found.items() if 0 not in order])
    whole = values.mean()
    assert values[0].mean() == pytest.approx(n_seeds * whole - (n_seeds - 1) * least)


def test_only_who_reads_the_first_text_gains() -> None:
    second_alone, other_second = readers(0, 3, 1), readers(0, 4, 1)
    reader = readers(0.5, 5, 1)
    biased = reader - [4, 0, 0]  # right about the order, and hardly ever says "entailment"
    accuracy = [(x.argmax(-1) == LABELS).mean() for x in (second_alone, reader, biased)]
    assert accuracy[2] < accuracy[0] < accuracy[1]
    none, some, same = (
        nli.gains(second_alone, x, LABELS, GROUPS, CELLS).iloc[0]
        for x in (other_second, reader, biased)
    )
    assert none["low"] < 0 < none["high"] < 0.03
    assert some["low"] > 0.01
    assert some["above zero"] == "4 of 4"
    assert same["score"] == pytest.approx(some["score"])


def test_a_reader_without_seeds_stands_for_all_and_rows_may_be_one() -> None:
    base, one = readers(0, 3, 1), readers(1, 5, 1, n_seeds=1)
    alike = np.broadcast_to(base[:, :1], base.shape)
    found = nli.gains(alike, one, LABELS, GROUPS, CELLS)
    every = np.repeat(one, SEEDS, axis=0)
    values = nli.beyond(alike, every, LABELS == 0)
    assert found["score"].item() == pytest.approx(values.mean())
    with pytest.raises(MixingError, match="there are 2 seeds: three or more"):
        nli.beyond(base[:2], one, LABELS == 0)


def test_overlap_is_read_where_it_tells() -> None:
    rng = np.random.default_rng(0)
    overlap = rng.random((LANGUAGES, LANGUAGES, N)) + np.where(LABELS == 0, 0.5, 0)
    overlap[0, 1] = rng.random(N)
    found = nli.overlap_reader(overlap, LABELS, 0)
    right = (found[0].argmax(-1) == LABELS).mean(axis=-1)
    assert found.shape == (1, LANGUAGES, LANGUAGES, N, 3)
    np.testing.assert_allclose(np.exp(found).sum(axis=-1), 1)
    assert right[0, 0] > 0.45
    assert right[0, 1] < 0.4
