"""What X-Probe reports, against loops that read like its definition, and numbers by hand."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from shared import xprobe_tables as summaries
from tests.tables import of

ENCODERS = ("rnn-max", "cnn-mean", "attention-last", "rnn-last", "cnn-max", "mini-xlmr")
LANGUAGES = ("tr", "en", "fr-UN")
TASKS = ("SentLen", "WC")


def table(seed: int = 0, encoders: tuple = ENCODERS) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    keys = list(itertools.product(LANGUAGES, encoders, TASKS))
    own = pd.DataFrame(keys, columns=["language", "encoder", "task"])
    return own.assign(accuracy=rng.uniform(0.2, 0.9, len(own)).round(2))


# --- Table 1 ---


def test_three_points_have_no_interval() -> None:
    with pytest.raises(ValueError, match="needs four to nine points: there are 3"):
        summaries.spearman([1, 2, 3], [1, 2, 3])


# --- Figure 4 ---


def test_ratios_are_to_the_same_encoder_and_task_in_english() -> None:
    cells = table().sample(frac=1, random_state=3)
    found = summaries.relative_accuracies(cells)
    assert len(found) == 24
    assert "en" not in set(found["language"])
    for row in found.itertuples():
        english = of(cells, language="en", encoder=row.encoder, task=row.task)["accuracy"].item()
        assert (row.reference, row.ratio) == pytest.approx((english, row.accuracy / english))


def test_a_difference_counts_beyond_rounding_and_luck() -> None:
    # 0.5 of 10,000 sentences is known to 0.0098; of two independent sets the difference to 0.0139
    one, other = np.array([0.524, 0.5238, 0.476, 0.5]), np.full(4, 0.5)
    assert summaries.beyond(one, other, 10_000, 10_000, half=0.005).tolist() == [1, 0, -1, 0]
    assert summaries.beyond(one, other, 10_000, 2_000, half=0.005).tolist() == [0] * 4
    assert summaries.beyond(0.514, 0.5, 10_000, 10_000) == 1


def test_guessing_is_the_most_frequent_class_of_the_test() -> None:
    cells = table().query("task == 'WC'").assign(guess=0.55, n=10_000)
    cells["accuracy"] = np.arange(550, 586, 2)[: len(cells)] / 1000
    found = summaries.above_guessing(cells, half=0.005)
    for row in found.itertuples():
        right = stats.binomtest(round(1e4 * (row.accuracy - 0.005)), 10_000)
        for name, level in (("above", 0.95), ("above_all", 1 - 0.05 / len(cells))):
            assert getattr(row, name) == (right.proportion_ci(level, "wilson").low > 0.55)
    assert 0 < found["above_all"].sum() < found["above"].sum() < len(cells)
    assert summaries.above_guessing(cells.assign(guess=0.5))["above_all"].all()


# --- Figure 3 ---


def rho_by_hand(x: list[float], y: list[float]) -> float:
    return np.corrcoef(stats.rankdata(x), stats.rankdata(y))[0, 1]


#: Few values, so that many are alike.
numbers = st.lists(st.integers(0, 4), min_size=5, max_size=5)


@given(numbers, numbers)
def test_correlation_and_p_value_count_every_order(x: list[int], y: list[int]) -> None:
    found = summaries.spearman(x, y)
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert np.isnan([found.value, found.low, found.high, found.p_value]).all()
        return
    rho = rho_by_hand(x, y)
    orders = [rho_by_hand(x, list(order)) for order in itertools.permutations(y)]
    far = sum(abs(other) >= abs(rho) - 1e-9 for other in orders)
    assert found.value == pytest.approx(rho)
    assert found.p_value == pytest.approx(far / 120)
    assert found.low - 1e-9 <= rho <= found.high + 1e-9
    assert found.n == 5


def test_interval_is_fishers_with_the_variance_of_bonett_and_wright() -> None:
    x, y = [1, 2, 3, 4, 5, 6], [2, 1, 3, 6, 4, 5]
    found = summaries.spearman(x, y)
    assert found.value == pytest.approx(1 - 6 * 8 / 210)
    width = 1.959964 * math.sqrt((1 + found.value**2 / 2) / 3)
    ends = [math.tanh(math.atanh(found.value) + sign * width) for sign in (-1, 1)]
    assert (found.low, found.high) == pytest.approx(ends)


# --- distances ---


def test_distances_are_root_mean_squares_over_languages_and_tasks() -> None:
    cells = table().sample(frac=1, random_state=1)
    apart = summaries.encoder_distances(cells)
    assert list(apart.index) == list(apart.columns) == list(dict.fromkeys(cells["encoder"]))
    for pair in itertools.combinations(ENCODERS, 2):
        first, second = (of(table(), encoder=x)["accuracy"].to_numpy() for x in pair)
        root = math.sqrt(((first - second) ** 2).sum() / len(first))
        assert apart.loc[pair] == apart.loc[pair[::-1]] == pytest.approx(root)


def downstream() -> pd.DataFrame:
    return table(1).query("task == 'WC'").drop(columns="task")


def test_correlations_pair_encoders_by_name() -> None:
    probing, xnli = table(), downstream().sample(frac=1, random_state=2)
    rows = summaries.rank_correlations(probing.sample(frac=1, random_state=5), xnli)
    assert len(rows) == 6
    names = [*ENCODERS]
    for row in rows.itertuples():
        probed = of(probing, language=row.language, task=row.task).set_index("encoder")["accuracy"]
        other = of(xnli, language=row.language).set_index("encoder")["accuracy"]
        assert row.rho == pytest.approx(rho_by_hand(probed[names], other[names]))
