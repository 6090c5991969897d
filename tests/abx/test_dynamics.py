"""Sentences on training and depth as differences that could have come out otherwise."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import abx_2_dynamics
from tests.abx.made_scores import SIZES, mean_of
from xlx.experiment.averages import Average, average
from xlx.experiment.scoring import subject_scores
from xlx.text.parallel import ParallelCorpus


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
    falls = [abx_2_dynamics.reversal(course(rng, [0.7] * 5), seed=seed)[0] for seed in range(300)]
    values = np.array([fall["value"] for fall in falls])
    assert abs(values.mean()) < 3 * values.std() / np.sqrt(len(values))
    assert (values < 0).mean() > 0.25
    assert np.mean([fall["low"] <= 0 <= fall["high"] for fall in falls]) > 0.9


def test_a_fall_and_a_recovery_are_seen() -> None:
    rng = np.random.default_rng(1)
    fall, recovery = abx_2_dynamics.reversal(course(rng, [0.7, 0.9, 0.8, 0.6, 0.65]))
    assert (fall["highest"], fall["lowest"]) == ([1, 1], [3, 3])
    assert fall["value"] == pytest.approx(0.3, abs=0.03)
    assert recovery["value"] == pytest.approx(0.05, abs=0.03)
    assert recovery["low"] > 0
    for change in abx_2_dynamics.reversal(course(rng, [0.5, 0.6, 0.7])):
        assert [change[end] for end in ("value", "low", "high")] == [0, 0, 0]


def test_a_domain_is_scored_alone(grouped: ParallelCorpus) -> None:
    halves = replace(grouped, domains=("news",) * 6 + ("speech",) * 2 + ("alone",) * 2)
    table = abx_2_dynamics.domain_scores(["mini-infoxlm"], halves, fewest=2)
    assert table.index.tolist() == [("mini-infoxlm", "news", 6)]  # the others are of one document
    (alone,) = subject_scores(["mini-infoxlm"], halves.drop({6, 7, 8, 9}))
    assert abx_2_dynamics.domain_scores(["mini-infoxlm"], halves).empty
    assert table["MD", "score"].item() == pytest.approx(float(average(alone, "MD").score))
