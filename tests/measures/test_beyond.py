"""What a model knows beyond models of the second text alone: by hand, and in planted worlds."""

from itertools import permutations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import mixing_1_nli as nli
from xlx.measures import information
from xlx.measures.mixing import MixingError

SEEDS, N, LANGUAGES = 5, 600, 2
LABELS = np.arange(N) % 3
GROUPS = np.arange(N) // 3
CELLS = {"all": np.ones((LANGUAGES, LANGUAGES), dtype=bool)}


def readers(signal: float, seed: int, n_seeds: int = SEEDS) -> np.ndarray:
    """Logits ``(S, L, L, n, 3)``: ``signal`` for the label, a shared hint, noise of a seed."""
    rng = np.random.default_rng(seed)
    gold = np.eye(3)[LABELS]
    hint = gold + np.random.default_rng(1).standard_normal((N, 3))
    noise = rng.standard_normal((n_seeds, LANGUAGES, LANGUAGES, N, 3))
    return signal * gold + hint + noise


def auc_by_hand(evidence: np.ndarray) -> float:
    """Pairs of an entailed example and another one: which has more evidence."""
    apart = evidence[LABELS == 0][:, None] - evidence[LABELS != 0]
    return ((apart > 0) + (apart == 0) / 2).mean()


@pytest.mark.parametrize("n_seeds", [3, 4, 5])
def test_gain_is_that_of_a_loop_over_splits(n_seeds: int) -> None:
    base, added = (x[:, 0, 0] for x in (readers(0.2, 1), readers(0.6, 2)))
    base, added = (np.log(np.exp(x) / np.exp(x).sum(-1, keepdims=True)) for x in (base, added))
    h, found = (n_seeds - 1) // 2, {}
    for order in permutations(range(n_seeds), 2 * h):
        joined = [np.mean([*base[[*order[:h]]], *x[[*order[h:]]]], axis=0) for x in (added, base)]
        odds = [x[:, 0] - np.log(np.exp(x[:, 1:]).sum(axis=1)) for x in joined]
        found[order] = auc_by_hand(odds[0]) - auc_by_hand(odds[1])
    values = information.auc_beyond(base[:n_seeds], added, LABELS == 0)
    assert values.shape == (n_seeds, N)
    assert values.mean() == pytest.approx(np.mean([*found.values()]))
    least = np.mean([gain for order, gain in found.items() if 0 not in order])
    whole = values.mean()
    assert values[0].mean() == pytest.approx(n_seeds * whole - (n_seeds - 1) * least)


def test_only_who_reads_the_first_text_gains() -> None:
    second_alone, other_second = readers(0, 3), readers(0, 4)
    reader = readers(0.5, 5)
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
    base, one = readers(0, 3), readers(1, 5, n_seeds=1)
    alike = np.broadcast_to(base[:, :1], base.shape)
    found = nli.gains(alike, one, LABELS, GROUPS, CELLS)
    every = np.repeat(one, SEEDS, axis=0)
    values = information.auc_beyond(alike, every, LABELS == 0)
    assert found["score"].item() == pytest.approx(values.mean())
    with pytest.raises(MixingError, match="there are 2 seeds: three or more"):
        information.auc_beyond(base[:2], one, LABELS == 0)


def worlds() -> dict[str, np.ndarray]:
    """Who takes the place of the pair model: planted readers, ``(S, L, L, n, 3)``."""
    rng, reader = np.random.default_rng(0), readers(0.8, 5)
    overlap = rng.random((LANGUAGES, LANGUAGES, N)) + np.where(LABELS == 0, 0.5, 0)
    overlap[0, 1], overlap[1, 0] = rng.random((2, N))  # across it tells nothing
    strings = nli.with_overlap(readers(0, 7)[:, :1], overlap, LABELS, GROUPS, 0)
    return {
        "reads hypotheses": readers(0, 4),
        "reads overlap": strings,
        "reads": reader,
        "is biased": reader - [4, 0, 0],
        "answers other pairs": reader[..., rng.permutation(N), :],
    }


def test_bits_of_planted_worlds() -> None:
    base, same = readers(0, 3), np.eye(LANGUAGES, dtype=bool)
    cells, bits = {"within": same, "across": ~same}, {}
    for name, logits in worlds().items():
        values = information.bits_beyond(base, logits, LABELS == 0, GROUPS)
        assert values.shape == (SEEDS, LANGUAGES, LANGUAGES, N)
        bits[name] = nli.over_cells(values, cells, GROUPS)
    assert (bits["reads hypotheses"]["high"] < 0.03).all()
    assert (bits["reads hypotheses"]["low"] < 0.01).all()
    assert (bits["answers other pairs"]["high"] < 0.01).all()
    assert (bits["reads"]["low"] > 0.03).all()
    np.testing.assert_allclose(bits["is biased"]["score"], bits["reads"]["score"], atol=0.01)
    assert (
        bits["reads overlap"].loc["within", "low"]
        > 0.02
        > bits["reads overlap"].loc["across", "score"]
    )


def test_bits_are_a_log_loss_by_hand() -> None:
    base, added = (x[:3, :1, :1] for x in (readers(0, 3), readers(0.5, 5)))
    odds = [information.evidence(x)[:, 0, 0] for x in (base, added)]
    places = np.random.default_rng(0).permutation(N // 3)[GROUPS] % information.N_FOLDS
    losses = []
    for third in odds:
        x = np.stack([(odds[0][1] + odds[0][2]) / 2, third[0]], axis=1)
        p = np.empty(N)
        for fold in range(information.N_FOLDS):
            away, fit = places != fold, LogisticRegression(C=1, fit_intercept=False, tol=1e-10)
            both = np.column_stack([np.ones(N), x])  # the constant is penalised, too
            p[~away] = fit.fit(both[away], LABELS[away] == 0).predict_proba(both[~away])[:, 1]
        losses.append(-np.log2(np.where(LABELS == 0, p, 1 - p)))
    values = information.bits_beyond(base, added, LABELS == 0, GROUPS)
    np.testing.assert_allclose(values[0, 0, 0], losses[0] - losses[1], atol=1e-4)
