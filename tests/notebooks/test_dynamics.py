"""Sentences on training and depth as differences with intervals over documents, and over runs."""

import numpy as np
import pytest
from scipy import stats

from shared import abx_tables
from tests.experiment.made_scores import SIZES, mean_of, scores


def test_a_part_of_a_mean_is_the_mean_of_the_part() -> None:
    values = np.random.default_rng(0).normal(size=len(SIZES))
    kept = np.arange(len(SIZES)) % 3 == 0
    part = mean_of(values).within(kept)
    assert part.score == pytest.approx(values[kept] @ SIZES[kept] / SIZES[kept].sum())
    for place, group in enumerate(np.flatnonzero(kept)):
        rest = kept & (np.arange(len(SIZES)) != group)
        without = values[rest] @ SIZES[rest] / SIZES[rest].sum()
        assert part.score + part.left_out_change[place] == pytest.approx(without)


def test_in_a_mean_score_the_spread_of_runs_counts_and_documents_once() -> None:
    rng = np.random.default_rng(0)
    document = rng.normal(0, 0.1, len(SIZES))
    runs = [mean_of(0.7 + shift + document) for shift in (-0.1, 0, 0.1)]
    found = abx_tables.mean_score(runs)
    assert found["value"] == pytest.approx(np.mean([float(run.score) for run in runs]))
    assert found["high"] - found["value"] > stats.t.ppf(0.975, 2) * 0.1 / np.sqrt(3) * 0.95
    same = abx_tables.mean_score([runs[0]] * 3)
    one = abx_tables.mean_score(runs[:1])
    assert same == pytest.approx(one)
    assert one == pytest.approx(abx_tables.ends(runs[0]))


@pytest.mark.parametrize("between", [0, 0.5, 1, 2, 5, 20])
def test_an_interval_over_three_runs_covers(between: float) -> None:
    """Errors of documents that runs share (sd 1), and of each run."""
    rng = np.random.default_rng(0)
    covariance = np.ones((3, 3)) + 0.25 * np.eye(3)  # a document does not do the same to each run
    errors = rng.multivariate_normal(np.zeros(3), covariance, size=1000)
    held = 0
    for drawn in errors + between * rng.normal(size=(1000, 3)):
        estimated = covariance * rng.chisquare(167) / 167
        value, low, high = abx_tables.mean_of_runs(drawn, estimated, 167)
        assert value == pytest.approx(drawn.mean())
        held += low <= 0 <= high
    assert 0.93 <= held / 1000 <= 0.97


def test_depth_holds_where_the_paper_s_curve_is() -> None:
    rng = np.random.default_rng(0)
    rising = [0.6, 0.7, 0.8, 0.9, 0.85]
    made = scores(rng, "m", 0, LD=[0.9, 0.9, 0.6, 0.58, 0.7], MD=rising, matched=rising)
    assert min(of.interval()[0] for of in abx_tables.layer_contrasts(made).values()) > 0
