"""Sentences as differences that could have come out otherwise."""

from collections.abc import Sequence

import numpy as np
import pytest

from xlx.abx import contrasts, discrimination, lengths
from xlx.abx.measurement import Measurement

N = 120
#: Documents of four sentences.
GROUPS = [f"d{i // 4}" for i in range(N)]


def measurement(
    values: dict[str, Sequence[np.ndarray]], step: int = 0, model: str = "m"
) -> Measurement:
    """Scores whose influence is given: task → ``(n,)`` for every layer; scores are its means."""
    influence = {task: np.array(rows)[:, None].repeat(2, axis=1) for task, rows in values.items()}
    scores = {
        task: rows.mean(axis=2)[:, :1, None].repeat(2, axis=2) for task, rows in influence.items()
    }
    n_layers = len(next(iter(values.values())))
    pairs = discrimination.PairScores((("a", "b"),), tuple(range(n_layers)), N, scores, {})
    return Measurement(model, step, pairs, influence, {"a": 0, "b": 0})


def history(rng: np.random.Generator, levels: Sequence[float]) -> list[Measurement]:
    """LD at checkpoints: a level each, and what its sentences, in documents, add to it."""
    names = sorted(set(GROUPS))
    found = []
    for step, level in enumerate(levels):
        of_document = dict(zip(names, rng.normal(0, 0.02, len(names)), strict=True))
        own = np.array([of_document[name] for name in GROUPS]) + rng.normal(0, 0.02, N)
        # of an order-two score the influence holds the sentence's own part and the mean of all
        found.append(measurement({"LD": [level + own + own.mean()]}, step))
    return found


def test_a_score_that_does_not_change_falls_as_often_as_it_rises() -> None:
    """Chosen and tested on the same numbers the fall was never negative."""
    rng = np.random.default_rng(0)
    falls, held = [], 0
    for seed in range(200):
        found = contrasts.turn(history(rng, [0.7] * 5), "LD", GROUPS, seed=seed)
        row = found.set_index("change").loc["fall"]
        falls.append(row["value"])
        held += row["low"] <= 0 <= row["high"]
    falls = np.array(falls)
    assert abs(falls.mean()) < 3 * falls.std() / np.sqrt(len(falls))
    assert (falls < 0).mean() > 0.25
    assert held / 200 > 0.88


def test_a_fall_and_a_recovery_are_found() -> None:
    rng = np.random.default_rng(1)
    found = contrasts.turn(history(rng, [0.7, 0.9, 0.8, 0.6, 0.65]), "LD", GROUPS)
    found = found.set_index("change")
    assert found.loc["fall", "highest"] == [1, 1]
    assert found.loc["fall", "lowest"] == [3, 3]
    assert found.loc["fall", "value"] == pytest.approx(0.3, abs=0.03)
    assert found.loc["recovery", "value"] == pytest.approx(0.05, abs=0.03)
    assert found.loc["recovery", "low"] > 0
    rising = contrasts.turn(history(rng, [0.5, 0.6, 0.7]), "LD", GROUPS)
    assert rising[["value", "low", "high"]].to_numpy().tolist() == [[0, 0, 0]] * 2


def noise(rng: np.random.Generator, *means: float) -> list[np.ndarray]:
    return [mean + rng.normal(0, 0.01, N) for mean in means]


def test_claims_are_differences_with_a_verdict() -> None:
    rng = np.random.default_rng(2)
    tasks = {
        "LD": [(0.9, 0.7, 0.7, 0.7), (0.9, 0.8, 0.6, 0.7)],
        "MD": [(0.8, 0.8, 0.8, 0.8), (0.6, 0.6, 0.7, 0.7)],
        "retrieval": [(0.1,) * 4] * 2,
    }
    checkpoints = [
        measurement({task: noise(rng, *levels[i]) for task, levels in tasks.items()}, i, "m")
        for i in range(2)
    ]
    like = tuple(
        lengths.LikeLength("m", i, np.array(levels), np.array(noise(rng, *levels)))
        for i, levels in enumerate([(0.5,) * 4, (0.5, 0.5, 0.6, 0.6)])
    )
    found = contrasts.claims(checkpoints, GROUPS, like).set_index("claim")
    expected = {
        "LD above 0.5 at its lowest checkpoint": (0.25, "yes"),
        "MD above 0.5 at its lowest checkpoint": (0.15, "yes"),
        "LD falls after its highest checkpoint": (0.0, "not seen"),
        "LD recovers until the end": (0.0, "not seen"),
        "MD rises from the first to the last checkpoint": (-0.15, "the opposite"),
        "LD: first layer above the middle one": (0.2, "yes"),
        "LD: last layer above the one before": (0.1, "yes"),
        "MD: middle layer above the embeddings": (0.1, "yes"),
        "MD: last layer below the one before": (0.0, "not seen"),
        "MD, like length: rises from the first to the last checkpoint": (0.05, "yes"),
        "MD, like length: middle layer above the embeddings": (0.1, "yes"),
    }
    assert list(found.index) == list(expected)
    for claim, (value, verdict) in expected.items():
        assert found.loc[claim, "difference"] == pytest.approx(value, abs=0.02), claim
        assert found.loc[claim, "holds"] == verdict, claim


def test_models_less_their_references() -> None:
    rng = np.random.default_rng(3)
    measured = {
        name: measurement({"LD": noise(rng, *ld), "MD": noise(rng, *md)}, 0, name)
        for name, ld, md in (("a", (0.9, 0.8), (0.6, 0.7)), ("b", (0.9, 0.9), (0.8, 0.6)))
    }
    like = {
        name: lengths.LikeLength(name, 0, np.array(levels), np.array(noise(rng, *levels)))
        for name, levels in (("a", (0.5, 0.6)), ("b", (0.5, 0.55)))
    }
    found = contrasts.between(measured, {"b": "a"}, {"a": 1, "b": 0}, like)
    assert found["reference"].unique().tolist() == ["a"]
    value = found.set_index(["layers", "task"])["value"]
    assert value["mean over layers", "MD"] == pytest.approx(0.05, abs=0.01)
    assert value["best layer of each", "MD"] == pytest.approx(0.1, abs=0.01)
    assert value["best layer of each", "LD"] == pytest.approx(0.1, abs=0.01)
    assert value["mean over layers", lengths.MD_LIKE_LENGTH] == pytest.approx(-0.025)
    assert len(value) == 5
