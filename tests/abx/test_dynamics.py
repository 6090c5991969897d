"""Sentences on training and depth as differences that could have come out otherwise."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest

from xlx.abx import discrimination, dynamics
from xlx.abx.averages import Average
from xlx.abx.checkpoint_scores import MATCHED, CheckpointScores

#: Positions of each document.
SIZES = np.array([1, 2, 3, 4, 5, 6, 7, 8] * 5)


def mean_of(values: np.ndarray) -> Average:
    """The mean over positions of what documents have, ``(..., n_documents)``."""
    score = values @ SIZES / SIZES.sum()
    without = (score[..., None] * SIZES.sum() - values * SIZES) / (SIZES.sum() - SIZES)
    return Average(score, without - score[..., None], SIZES)


def course(rng: np.random.Generator, levels: Sequence[float]) -> list[Average]:
    return [mean_of(level + rng.normal(0, 0.02, len(SIZES))) for level in levels]


def test_a_part_of_a_mean_is_the_mean_of_the_part() -> None:
    values = np.random.default_rng(0).normal(size=len(SIZES))
    kept = np.arange(len(SIZES)) % 3 == 0
    part = mean_of(values).within(kept)
    assert part.score == pytest.approx(values[kept] @ SIZES[kept] / SIZES[kept].sum())
    for place, group in enumerate(np.flatnonzero(kept)):
        rest = kept & (np.arange(len(SIZES)) != group)
        without = values[rest] @ SIZES[rest] / SIZES[rest].sum()
        assert part.score + part.left_out_change[place] == pytest.approx(without)


def test_a_score_that_does_not_change_falls_as_often_as_it_rises() -> None:
    """Chosen and tested on the same numbers the fall was never negative."""
    rng = np.random.default_rng(0)
    falls = [dynamics.reversal(course(rng, [0.7] * 5), seed=seed)[0] for seed in range(300)]
    values = np.array([fall["value"] for fall in falls])
    assert abs(values.mean()) < 3 * values.std() / np.sqrt(len(values))
    assert (values < 0).mean() > 0.25
    assert np.mean([fall["low"] <= 0 <= fall["high"] for fall in falls]) > 0.9


def test_a_fall_and_a_recovery_are_seen() -> None:
    rng = np.random.default_rng(1)
    fall, recovery = dynamics.reversal(course(rng, [0.7, 0.9, 0.8, 0.6, 0.65]))
    assert (fall["highest"], fall["lowest"]) == ([1, 1], [3, 3])
    assert fall["value"] == pytest.approx(0.3, abs=0.03)
    assert recovery["value"] == pytest.approx(0.05, abs=0.03)
    assert recovery["low"] > 0
    for change in dynamics.reversal(course(rng, [0.5, 0.6, 0.7])):
        assert [change[end] for end in ("value", "low", "high")] == [0, 0, 0]


def scores(
    rng: np.random.Generator, model: str, step: int, **levels: Sequence[float]
) -> CheckpointScores:
    """Two languages whose scores by layer (``LD``, ``MD``, ``matched``) are nearly as given."""
    levels = {MATCHED if task == "matched" else task: of for task, of in levels.items()}
    means = {
        task: mean_of(np.array(of)[:, None] + rng.normal(0, 0.005, (len(of), len(SIZES))))
        for task, of in levels.items()
    }
    by_pair = {task: mean.score[:, None, None].repeat(2, axis=2) for task, mean in means.items()}
    n_layers = len(levels["LD"])
    pairs = discrimination.PairScores(
        (("a", "b"),), tuple(range(n_layers)), int(SIZES.sum()), by_pair, {}
    )
    changes = {task: mean.left_out_change for task, mean in means.items()}
    return CheckpointScores(
        model, step, "raw", pairs, {"documents": {"pairs": changes}}, {"documents": SIZES},
        {"a": 0, "b": 0}, ("", ""),
    )  # fmt: skip


def test_claims_are_differences_with_a_verdict() -> None:
    rng = np.random.default_rng(2)
    history = [
        scores(rng, "m", 0, LD=[0.9, 0.7, 0.7, 0.7], MD=[0.8] * 4, matched=[0.55] * 4),
        scores(rng, "m", 1, LD=[0.9, 0.8, 0.6, 0.7], MD=[0.6, 0.6, 0.7, 0.7],
               matched=[0.5, 0.5, 0.7, 0.6]),
    ]  # fmt: skip
    claims = dynamics.section_claims(history).set_index("claim")
    expected = {
        "LD above 0.5 at its lowest checkpoint": (0.25, "yes"),
        "MD above 0.5 at its lowest checkpoint": (0.15, "yes"),
        "MD, like length above 0.5 at its lowest checkpoint": (0.05, "yes"),
        "LD falls after its highest checkpoint": (0.0, "not seen"),
        "LD recovers until the end": (0.0, "not seen"),
        "LD: first layer above the middle one": (0.2, "yes"),
        "LD: last layer above the one before": (0.1, "yes"),
        "MD rises from the first to the last checkpoint": (-0.15, "the opposite"),
        "MD: middle layer above the embeddings": (0.1, "yes"),
        "MD: last layer below the one before": (0.0, "not seen"),
        "MD, like length rises from the first to the last checkpoint": (0.025, "yes"),
        "MD, like length: middle layer above the embeddings": (0.2, "yes"),
        "MD, like length: last layer below the one before": (0.1, "yes"),
    }
    assert list(claims.index) == list(expected)
    for claim, (value, verdict) in expected.items():
        assert claims.loc[claim, "difference"] == pytest.approx(value, abs=0.01), claim
        assert claims.loc[claim, "holds"] == verdict, claim


def test_models_less_their_references() -> None:
    rng = np.random.default_rng(3)
    measured = {
        "a": scores(rng, "a", 5, LD=[0.9, 0.8], MD=[0.6, 0.7], matched=[0.5, 0.6]),
        "b": scores(rng, "b", 5, LD=[0.9, 0.9], MD=[0.8, 0.6], matched=[0.65, 0.55]),
    }
    table = dynamics.member_differences(measured, {"b": "a"})
    value = table.set_index(["layers", "task"])["value"]
    assert value["mean over layers", "LD"] == pytest.approx(0.05, abs=0.005)
    assert value["best layer of each", "LD"] == pytest.approx(0.1, abs=0.005)  # 0 against 1
    assert value["best layer of each", MATCHED] == pytest.approx(0.05, abs=0.005)
    assert table["low"].lt(table["value"]).all()
    assert table["high"].gt(table["value"]).all()


def test_runs_of_several_seeds_are_told_apart_from_noise() -> None:
    runs = {
        f"seed {seed}": pd.DataFrame({"task": ["LD", "MD"], "value": values})
        for seed, values in enumerate([(0.1, 0.1), (0.3, -0.1), (0.2, 0.3)])
    }
    table = dynamics.across_seeds(runs, ["task"]).set_index("task")
    assert table.loc["LD", ["runs", "mean", "lowest", "highest", "sd"]].tolist() == pytest.approx(
        [3, 0.2, 0.1, 0.3, 0.1]
    )
    assert table["one sign"].tolist() == [True, False]
