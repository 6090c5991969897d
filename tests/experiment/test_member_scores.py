"""Members compared, and what runs of one recipe differ by, on small scores that are known."""

import numpy as np
import pytest
from scipy import stats

import models_1_family as members
from tests.experiment.made_scores import scores
from xlx.experiment.averages import average
from xlx.measures.abx import PairScores

Measured = dict[str, PairScores]
NAMES = ["mini-xlmr", "mini-mbert"]


@pytest.fixture
def measured() -> Measured:
    """Two members; the second layer of the one is best, and the first of the other."""
    rng = np.random.default_rng(3)
    levels = [
        {"LD": [0.9, 0.8], "MD": [0.6, 0.7], "matched": [0.5, 0.6]},
        {"LD": [0.9, 0.9], "MD": [0.8, 0.6], "matched": [0.65, 0.55]},
    ]
    return {name: scores(rng, name, 5, **of) for name, of in zip(NAMES, levels, strict=True)}


def test_models_less_their_references(measured: Measured) -> None:
    """On the same documents; the widest known interval says on which side of zero it lies."""
    first, second = ({name: [of] for name, of in measured.items()} for _ in range(2))
    table = members.contrasts(first, dict([NAMES[::-1]])).set_index("task")
    assert table["value"]["LD"] == pytest.approx(0.1, abs=0.005)  # layer 0 against layer 1
    ours, theirs = (average(measured[name], "MD", layers=[k]) for k, name in enumerate(NAMES[::-1]))
    assert table.loc["MD", ["low", "high"]].tolist() == pytest.approx(
        list((ours - theirs).interval())
    )
    assert table.loc["LD", "is"] == "higher (text alone)"
    second[NAMES[0]] = [measured[NAMES[0]]] * 2  # two runs that are the same: nothing is added
    row = members.contrasts(second, dict([NAMES[::-1]])).set_index("task")
    assert row.loc["LD", "is"] == "higher"
    assert row.loc["LD", ["least", "most"]].tolist() == pytest.approx(
        row.loc["LD", ["low", "high"]].tolist()
    )


def test_what_runs_leave_open_is_welchs_or_a_prediction() -> None:
    p, q = [0.62, 0.65, 0.68], [0.5, 0.501]
    # Welch (1947), by hand: each recipe has a variance of its own
    parts = [np.var(of, ddof=1) / len(of) for of in (p, q)]
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(of) - 1) for part, of in zip(parts, (p, q), strict=True)
    )
    due = stats.t.ppf(0.975, freedom) * np.sqrt(sum(parts))
    assert members.run_reach(p, q) == pytest.approx(due)
    assert np.isnan(members.run_reach([0.5], [0.6]))
    # of a single run, as for one value more: t with the others' freedom
    due = stats.t.ppf(0.975, 2) * np.std(p, ddof=1) * np.sqrt(1 + 1 / 3)
    assert members.run_reach([0.5], p) == pytest.approx(due)
