"""Averages with errors over documents, against the scores of the pairs."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from shared.abx_tables import pair_scores
from xlx.experiment import abx_scores, averages, scoring
from xlx.experiment.abx_scores import MATCHED
from xlx.measures import statistics
from xlx.measures.abx import PairScores
from xlx.text.parallel import ParallelCorpus

GROUPS = ["p", "p", "q", "q", "q", "r", "r", "r", "s", "p"]


@pytest.fixture(scope="module")
def grouped(corpus: ParallelCorpus) -> ParallelCorpus:
    return replace(corpus, ids=tuple(f"{name}:{i}" for i, name in enumerate(GROUPS)))


@pytest.fixture(scope="module")
def ends(grouped: ParallelCorpus) -> list[PairScores]:
    """A model and its untrained beginning."""
    first = abx_scores.history("mini-infoxlm")[0]
    return scoring.subject_scores([first, "mini-infoxlm"], grouped)


def test_averages_are_those_of_the_table(ends: list[PairScores]) -> None:
    table = pair_scores(ends[1].table())
    of_each = pd.concat(table.assign(language=table[end]) for end in ("language_1", "language_2"))
    for by, options, expected in (
        ([], {}, table),
        (["layer"], {}, table),
        (["layer"], {"embedding_layer": False}, table[table["layer"] > 0]),
        ([], {"layers": [-1]}, table[table["layer"] == 6]),
        (["language"], {}, of_each),
        (["language"], {"embedding_layer": False}, of_each[of_each["layer"] > 0]),
        (["layer", "language"], {"layers": [2, 3]}, of_each[of_each["layer"].isin([2, 3])]),
    ):
        tasks = ["LD", MATCHED]
        summary = averages.averaged_scores(ends[1:], tasks, by=by, **options).set_index(
            ["task", *by]
        )
        means = expected[expected["task"].isin(tasks)].groupby(["task", *by])["score"].mean()
        np.testing.assert_allclose(summary["score"], means.loc[summary.index], atol=1e-9)
        assert (summary["low"] <= summary["score"]).all()


def test_errors_are_those_of_leaving_documents_out(
    ends: list[PairScores], grouped: ParallelCorpus
) -> None:
    last = ends[1]
    mean = averages.average(last, "MD", layers=[3])
    without = []
    for name in "pqrs":
        kept = grouped.drop([i for i, group in enumerate(GROUPS) if group == name])
        (left,) = scoring.subject_scores(["mini-infoxlm"], kept)
        without.append(averages.average(left, "MD", layers=[3]).score)
    expected = statistics.left_out_error(mean.score, np.array(without), [3, 3, 3, 1])
    assert mean.error == pytest.approx(expected, rel=1e-3)
    low, high = mean.interval()
    assert high - mean.score == pytest.approx(3.182446 * mean.error)  # Student's t, 3 df
    assert low + high == pytest.approx(2 * mean.score)


def test_intervals_of_shares_stay_within_bounds() -> None:
    """On the logit, where the t interval leaves them; none where a group holds everything."""
    change, sizes = np.array([0.03, -0.02, 0.01, -0.02, 0.0]), np.full(5, 4)
    score = np.array([0.02, 0.5, 0.97])
    mean = averages.Average(score, np.tile(change, (3, 1)), sizes)
    low, high = mean.interval()
    width = 2.776445 * mean.error  # Student's t, 4 df
    assert ((low > 0) & (high < 1)).all()
    assert (low[1], high[1]) == pytest.approx((0.5 - width[1], 0.5 + width[1]))
    for i in (0, 2):
        place, half = np.log(score[i] / (1 - score[i])), width[i] / (score[i] * (1 - score[i]))
        ends = [1 / (1 + np.exp(-x)) for x in (place - half, place + half)]
        assert [low[i], high[i]] == pytest.approx(ends)
    least, most = averages.Average(np.float64(1), np.zeros(5), sizes).interval()
    assert (least, most) == pytest.approx((5 / (5 + 1.959964**2), 1))  # Wilson's, of 5 trials
    still = averages.Average(score[1], np.zeros(5), sizes).interval()
    assert still == pytest.approx(statistics.share_interval(2.5, 5))  # never of no width
    beyond = mean - averages.Average(score[::-1], np.tile(change[::-1], (3, 1)), sizes)
    assert beyond.interval()[0].min() < -0.95  # a difference is no share
    unknown = averages.Average(score[1], change * [np.nan, 1, 1, 1, 1], sizes)
    assert np.isnan(unknown.interval()).all()


def test_a_difference_is_of_the_same_text(ends: list[PairScores]) -> None:
    first, last = (averages.average(of, "LD", by=["layer"]) for of in ends)
    change = last - first
    np.testing.assert_allclose(change.score, last.score - first.score)
    np.testing.assert_allclose((last - last).error, 0)
    upper, lower = (averages.average(ends[1], "LD", layers=[layer]) for layer in (1, 4))
    there, back = upper - lower, lower - upper
    assert there.score == pytest.approx(-back.score)
    assert there.interval()[1] == pytest.approx(-back.interval()[0])
    others = replace(ends[0], texts=("other", *ends[0].texts[1:]))  # in documents of these sizes
    with pytest.raises(ValueError, match="different text"):
        last - averages.average(others, "LD", by=["layer"])


@pytest.mark.parametrize(
    ("task", "options", "says"),
    [
        ("LD", {"by": ["pair"]}, "no average by 'pair'"),
        ("retrieval", {"by": ["language"]}, "choose LD, MD"),
    ],
)
def test_averages_that_there_are_not_are_named(
    ends: list[PairScores], task: str, options: dict, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        averages.average(ends[0], task, **options)
