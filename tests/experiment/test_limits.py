"""What measures and controls say of worlds of which all is known; composed masks; texts."""

from itertools import permutations

import numpy as np
import pytest
import torch

import abx_1_validation as limits
from tests.measures import planted
from xlx.experiment import abx_scores, constraints, scoring
from xlx.measures import abx, registered
from xlx.subjects import loading
from xlx.text.parallel import ParallelCorpus, documents

HALF, EIGHTH = 0.5, 1 / 8
MASKED = ("like length", "near", "like length and near", "as like length")
#: Of 28 pairs 16 are of two scripts; of a sentence's others in a topic of 12, 11 have its number.
SCRIPTS, NUMBER = (16 + 12 / 2) / 28, 1 - 11 / 143 / 2


@pytest.fixture(scope="module")
def text() -> ParallelCorpus:
    return limits.planted_text()


@pytest.mark.parametrize("world", limits.WORLDS)
def test_every_measure_in_every_space_is_the_slow_one(text: ParallelCorpus, world: str) -> None:
    few = text.select(["de", "en", "bg", "ru"])
    vectors, groups = limits.WORLDS[world](few), np.array(documents(few))
    masks = constraints.masks_of(few, MASKED, lambda: loading.load("mini-xlmr"))
    alike, near = masks["like length"], masks["near"]
    counts = {x: (of & ~np.eye(len(few), dtype=bool)).sum(axis=1) for x, of in alike.items()}
    by_hand = {
        "like length": alike,
        "near": near,
        "like length and near": {x: alike[x] & near[x] for x in vectors},
        # each A as often as it has B of like length
        "as like length": {x: np.tile(of[:, None], len(few)) for x, of in counts.items()},
    }
    for space in abx_scores.SPACES:
        slow = planted.similarities(vectors, space)
        told = [planted.measured(slow, x, y) for x, y in permutations(vectors, 2)]
        expected = {task: np.mean([of[task] for of in told]) for task in told[0]}
        if space == "Euclidean":
            expected["cosine"] = 1  # of vectors this small beside their last dimension
        expected |= {
            f"MD, {name}": np.mean(
                [planted.masked(slow, x, y, of[y]) for x, y in permutations(vectors, 2)]
            )
            for name, of in by_hand.items()
        }
        # what is of lengths, too: tests/measures/test_alignment.py
        measures = [x for x in registered().values() if x.name != "biased CKA"]
        found = abx.exact(
            abx_scores.SPACES[space](vectors), measures=measures, masks=masks, dtype=torch.float64
        ).scores
        assert {task: of.mean() for task, of in found.items()} == pytest.approx(expected, abs=2e-5)
    for centred in (False, True):
        right = limits.identified(vectors, groups, centred=centred).mean(axis=(1, 2))
        slow = planted.read(vectors, np.unique(groups, return_inverse=True)[1], centred=centred)
        # of equal sentences rounding says which is nearest
        assert right == pytest.approx([*slow.values()], abs=0.01 * (world == "script") + 1e-9)


def test_what_is_shown_of_worlds_is_known(text: ParallelCorpus) -> None:
    lengths = {x: np.log1p([*map(len, rows)]) for x, rows in text.sentences.items()}
    near = {x: {y: -np.abs(a[:, None] - b) for y, b in lengths.items()} for x, a in lengths.items()}
    same = np.equal.outer(*[np.arange(144) // 12] * 2)
    masks = constraints.masks_of(text, ["like length and near"], lambda: loading.load("mini-xlmr"))[
        "like length and near"
    ]
    off = ~np.eye(144, dtype=bool)
    of_length, of_both = (
        np.mean([planted.masked(near, x, y, mask[y]) for x, y in permutations(lengths, 2)])
        for mask in (dict.fromkeys(lengths, off), masks)
    )
    of_number = np.mean([1 - np.average(same, weights=mask * off) / 2 for mask in masks.values()])
    far = 8 / 144  # of the skewed: signs of x · a are alike where both or none are far
    alike = ((far * 144 - 1) * far + (143 - far * 144) * (1 - far)) / 143
    known = {
        "LD": (1, HALF, alike, HALF, SCRIPTS, HALF, 1),
        "LD, centred": (HALF, HALF, alike, HALF, HALF, HALF, HALF),
        # of those that are far none is known of another document, where all are held out
        "nearest reader": (1, 1, 1, EIGHTH, 1 / 4, EIGHTH, 1),
        "MD": (HALF, HALF, HALF, of_length, NUMBER, 1, 1),
        limits.BOTH: (HALF, HALF, HALF, of_both, of_number, 1, 1),
    }
    shown = limits.seen_in_worlds(text, "mini-xlmr")
    assert [*shown.index] == [*known]
    for key, values in known.items():
        assert shown.loc[key].to_list() == pytest.approx([*values], abs=0.07), key


def test_what_is_told_of_length_alone(text: ParallelCorpus) -> None:
    few = text.take(24, 1).select(["de", "en", "bg"])
    (ledger,) = scoring.subject_scores([scoring.Length()], few, ["MD, as like length"])
    assert ledger.tasks == ["MD, as like length"]
    table = limits.language_identification([scoring.Length()], few, "raw")
    assert (table["low"] <= table["score"]).all()
