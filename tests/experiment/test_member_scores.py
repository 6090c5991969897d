"""Members compared, and what runs of one recipe differ by, on small scores that are known."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import models_1_family as members
from models_1_family import BEST, MEAN
from tests.experiment.made_scores import scores
from xlx.experiment.abx_scores import MATCHED, CheckpointScores
from xlx.experiment.averages import average
from xlx.text.parallel import ParallelCorpus

Measured = dict[str, CheckpointScores]
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


@pytest.fixture
def histories(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict, list], None]:
    """Sets the steps of the histories that there are, and the scores of their states."""

    def given(steps: dict[str, Sequence[int]], known: Sequence[CheckpointScores]) -> None:
        of_state = {(of.model, of.step): of for of in known}
        monkeypatch.setattr(
            members,
            "history",
            lambda name, recorded: [SimpleNamespace(name=name, step=step) for step in steps[name]],
        )
        monkeypatch.setattr(
            members,
            "subject_scores",
            lambda states, *_, **__: [
                of_state[getattr(of, "name", of), getattr(of, "step", 0)] for of in states
            ],
        )

    return given


def test_runs_are_scored_at_their_ends_and_before_training(
    corpus: ParallelCorpus, histories: Callable
) -> None:
    rng = np.random.default_rng(0)
    steps = {"member": (0, 4, 9), "seed": (0, 9), "late": (4, 9)}
    known = [
        scores(rng, name, step, LD=[0.5], MD=[0.5], matched=[0.5])
        for name, of in steps.items()
        for step in of
    ]
    histories(steps, known)
    runs = members.scored_runs(["member", "late"], {"member": ["seed"]}, corpus)
    assert [(of.model, of.step) for of in runs["member"]] == [("member", 9), ("seed", 9)]
    assert [(of.model, of.step) for of in runs["late"]] == [("late", 9)]
    (first,) = members.scored_runs(["member"], {}, corpus, first=True)["member"]
    assert first.step == 0
    with pytest.raises(KeyError, match="late@untrained"):  # its step 4 is no untrained model
        members.scored_runs(["late"], {}, corpus, first=True)


def test_models_less_their_references(measured: Measured) -> None:
    """On the same documents; the widest known interval says on which side of zero it lies."""
    first, second = ({name: [of] for name, of in measured.items()} for _ in range(2))
    table = members.contrasts(first, dict([NAMES[::-1]])).set_index(["layers", "task"])
    assert table["value"][MEAN, "LD"] == pytest.approx(0.05, abs=0.005)
    assert table["value"][BEST, "LD"] == pytest.approx(0.1, abs=0.005)  # layer 0 against layer 1
    ours, theirs = (average(measured[name], "MD") for name in NAMES[::-1])
    assert table.loc[(MEAN, "MD"), ["low", "high"]].tolist() == pytest.approx(
        list((ours - theirs).interval())
    )
    assert table.loc[(MEAN, "LD"), "is"] == "higher (text alone)"
    second[NAMES[0]] = [measured[NAMES[0]]] * 2  # two runs without luck: nothing is added
    row = members.contrasts(second, dict([NAMES[::-1]])).set_index(["layers", "task"])
    assert row.loc[(MEAN, "LD"), "is"] == "higher"
    assert row.loc[(MEAN, "LD"), ["least", "most"]].tolist() == pytest.approx(
        row.loc[(MEAN, "LD"), ["low", "high"]].tolist()
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
    rng = np.random.default_rng(9)
    covered = [
        abs(one - np.mean(three)) < members.run_reach([one], three)
        for one, three in ((rng.normal(), rng.normal(size=3).tolist()) for _ in range(4000))
    ]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.012)


def test_a_model_stands_above_its_bag_and_its_first_state(measured: Measured) -> None:
    runs = {name: [of, of] for name, of in measured.items()}
    bags = dict.fromkeys(measured, measured[NAMES[1]])
    at = members.standings(runs, {NAMES[0]: [measured[NAMES[1]]]}, bags)
    at = at.set_index(["model", "what"])
    best = float(members.standing(measured[NAMES[0]], BEST, MATCHED).score)
    bag, first = float(average(measured[NAMES[1]], MATCHED).score), 0.65
    assert at["value"][NAMES[0], "above its bag"] == pytest.approx(best - bag)
    assert at["value"][NAMES[0], "above untrained"] == pytest.approx(best - first, abs=0.005)
    assert (NAMES[1], "above untrained") not in at.index
    text = members.in_short(at.reset_index(), members.contrasts(runs, dict([NAMES])), [])
    assert "1 of 2 models" in text
    assert "`mini-mbert` +0.05" in text
    assert "Of 1 differences" in text
