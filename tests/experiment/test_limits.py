"""What measures and controls say of worlds of which all is known; composed masks; texts."""

from itertools import permutations

import numpy as np
import pytest
import torch

import abx_8_limits as limits
from tests.measures import planted
from xlx.experiment import abx_scores, constraints, scoring
from xlx.measures import abx, registered
from xlx.subjects import loading
from xlx.text.parallel import ParallelCorpus, documents

HALF, EIGHTH, LOOP = 0.5, 1 / 8, np.nan  # LOOP: the slow one says it alone
#: Of 28 pairs 16 are of two scripts; of a sentence's others in a topic of 12, 11 have its number.
SCRIPTS, NUMBER = (16 + 12 / 2) / 28, 1 - 11 / 143 / 2


@pytest.fixture(scope="module")
def text() -> ParallelCorpus:
    return limits.planted_text()


@pytest.mark.parametrize("world", limits.WORLDS)
def test_every_measure_in_every_space_is_the_slow_one(text: ParallelCorpus, world: str) -> None:
    few = text.select(["de", "en", "bg", "ru"])
    vectors, groups = limits.WORLDS[world](few), np.array(documents(few))
    masks = constraints.masks_of(few, limits.MASKED, lambda: loading.load("mini-xlmr"))
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


def test_every_measure_has_its_known_value_in_every_world(text: ParallelCorpus) -> None:
    masks = constraints.masks_of(text, limits.MASKED, lambda: loading.load("mini-xlmr"))
    off, same = ~np.eye(144, dtype=bool), np.equal.outer(*[np.arange(144) // 12] * 2)
    lengths = {x: np.log1p([*map(len, rows)]) for x, rows in text.sentences.items()}
    near = {x: {y: -np.abs(a[:, None] - b) for y, b in lengths.items()} for x, a in lengths.items()}
    of_masks = {}
    for name, mask in {"MD": dict.fromkeys(lengths, off), **masks}.items():
        length = [planted.masked(near, x, y, mask[y]) for x, y in permutations(lengths, 2)]
        number = [1 - np.average(same, weights=of * off) / 2 for of in mask.values()]
        of_masks[name] = (HALF, HALF, HALF, np.mean(length), np.mean(number))
    length = of_masks["MD"][3]
    known = {  # place, subspace, covariance, length, script
        ("LD", "raw"): (1, HALF, HALF, HALF, SCRIPTS),
        ("LD", "centred"): (HALF,) * 5,
        # in subspaces the shorter of A and B is the nearer one, too
        ("LD", "Euclidean"): (1, LOOP, HALF, HALF, SCRIPTS),
        ("LD", "whitened"): (0.88, HALF, HALF, HALF, SCRIPTS),  # Φ(8 / √48) of two normal sums
        ("purity", "raw"): (1, 1, 0.87, HALF, SCRIPTS),  # the largest of n normal: see below
        ("purity", "centred"): (HALF, 1, 0.87, HALF, HALF),
        # of a subspace the scores of all others are 0: the sign of its own decides
        ("linear reader", "raw"): (1, HALF, EIGHTH, EIGHTH, 1 / 4),
        ("linear reader", "centred"): (EIGHTH,) * 5,
        # Of spreads √41 in the own language and 5 in others: ∫ Φ(z)ⁿ dΦ(z / 1.28)ⁿ is .87 for two
        # languages of n = 143, and .54 for eight of n = 115 known sentences.
        ("nearest reader", "raw"): (1, 1, 0.54, EIGHTH, 1 / 4),
        ("nearest reader", "centred"): (EIGHTH, 1, 0.54, EIGHTH, EIGHTH),
        # of X's own language A has a crowd, whose mean is 10 / 143 of the highest cosines in four
        # dimensions, .85: it wins where its own cosine is above half of that
        ("LD by CSLS", "raw"): (1, 0.24, LOOP, HALF, SCRIPTS),
        ("MD by CSLS", "raw"): (HALF, HALF, HALF, length, NUMBER),
        ("MD", "centred"): (HALF, HALF, HALF, LOOP, NUMBER),
        ("MD", "Euclidean"): (HALF, HALF, HALF, length, NUMBER),
        ("MD", "whitened"): (HALF, HALF, HALF, LOOP, NUMBER),
        ("retrieval", "raw"): (1 / 144, 1 / 144, 1 / 144, 0.041, 1 / 12),  # by a loop over lengths
    }
    known |= {(x if x == "MD" else f"MD, {x}", "raw"): of for x, of in of_masks.items()}
    found = limits.blind_spots(text, "mini-xlmr")
    assert set(found.index) == set(known)
    for key, values in known.items():
        expected = np.where(np.isnan(values), found.loc[key], values)
        assert found.loc[key].to_list() == pytest.approx(expected, abs=0.07), key


def test_each_control_fails_in_a_world_or_is_near_half_for_any(text: ParallelCorpus) -> None:
    left = limits.control_table(text, 1)
    assert left.loc[[*limits.NEAR_HALF]].to_numpy() == pytest.approx(HALF, abs=0.03)
    fails = {"MD, lengths shuffled": "length", "MD, documents shuffled": "script"}
    for control, world in fails.items():  # what is no translation scores like one
        assert left.loc[control, world] == pytest.approx(left.loc["MD", world], abs=0.03)
    for control in ("LD, one alphabet", "LD, pairs of one script"):
        assert left.loc[control, ["place", "script"]].to_list() == pytest.approx(
            [1, HALF], abs=0.01
        )
    bare = left.loc["MD, without digits and punctuation", ["length", "script"]]
    assert bare.to_list() == pytest.approx([left.loc["MD", "length"], HALF], abs=0.02)


def test_what_is_told_of_length_alone(text: ParallelCorpus) -> None:
    few = text.take(24, 1).select(["de", "en", "bg"])
    (ledger,) = scoring.subject_scores([scoring.Length()], few, ["MD, as like length"])
    assert ledger.tasks == ["MD, as like length"]
    table = limits.language_identification([scoring.Length()], few, "raw")
    assert (table["low"] <= table["score"]).all()


@pytest.mark.parametrize(
    ("sentence", "written", "letters"),
    [
        ("Ще 3 дні, Ödön!", "shche 3 dni, odon!", "Ще дні Ödön"),
        ("शक्ति ४", "shakti 4", "शक्ति"),
        ("한국의 αλήθεια", "hangugyi alitheia", "한국의 αλήθεια"),
        ("سلام؟", "slam?", "سلام"),
        ("12:30", "12:30", "12:30"),
    ],
)
def test_texts_with_less_surface(sentence: str, written: str, letters: str) -> None:
    assert limits.latin(sentence) == written
    assert limits.letters_alone(sentence) == letters
