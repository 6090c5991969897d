"""What predicts transfer beside the model: how near languages are; and the scores of two."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

import abx_6_transfer
from xlx.experiment.abx_scores import CheckpointScores
from xlx.measures import abx
from xlx.text.languages import LANGUAGES


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("de", "sv", 7),
        ("hr", "sr", 6),  # Slavic, Latin and Cyrillic
        ("de", "fr", 3),
        ("de", "ru", 2),
        ("tr", "vi", 1),  # Latin
        ("ja", "ko", 0),
    ],
)
def test_kinship_by_hand(source: str, target: str, expected: int) -> None:
    assert (
        abx_6_transfer.kinship(source, target) == abx_6_transfer.kinship(target, source) == expected
    )


def test_branch_goes_before_family_before_script() -> None:
    """The order of all sources of all targets is that of three comparisons, one after the other."""
    by_number: dict[int, set] = {}
    for pair in permutations(LANGUAGES, 2):
        a, b = (LANGUAGES[code] for code in pair)
        family = a.family == b.family
        compared = family and a.branch == b.branch, family, a.script == b.script
        by_number.setdefault(abx_6_transfer.kinship(*pair), set()).add(compared)
    assert all(len(kinds) == 1 for kinds in by_number.values())
    orders = [by_number[number].pop() for number in sorted(by_number)]
    assert orders == sorted(set(orders))
    with pytest.raises(ValueError, match="family and script of 'xx' are not known"):
        abx_6_transfer.kinship("de", "xx")


def test_equal_kin_share_their_weight() -> None:
    # Italian is near to both others of its branch; the mean of 0.9 and 0.1 counts, against German
    rows = [
        ("es", "it", 0.9),
        ("pt", "it", 0.1),
        ("de", "it", 0.5),
        ("it", "es", 0.2),
        ("pt", "es", 0.3),
        ("de", "es", 0.1),
        ("it", "pt", 0.2),
        ("es", "pt", 0.3),
        ("de", "pt", 0.1),
        ("it", "de", 0.1),
        ("es", "de", 0.2),
        ("pt", "de", 0.3),
    ]
    table = pd.DataFrame(rows, columns=["source", "target", "accuracy"])
    table["kinship"] = [abx_6_transfer.kinship(*row[:2]) for row in rows]
    found = abx_6_transfer.choose_sources(table, "kinship", lowest=False, n_permutations=9).table
    chosen = found[found["rule"] == "selected"].set_index("target")
    assert chosen["source"].to_dict() == {
        "de": "es+it+pt",
        "es": "it+pt",
        "it": "es+pt",
        "pt": "es+it",
    }
    assert chosen.loc["it", ["hit", "win_rate"]].tolist() == [0.5, 0.5]
    assert chosen["win_rate"].to_dict() == {"de": 0.5, "es": 0.75, "it": 0.5, "pt": 0.75}


def test_scores_of_ordered_pairs() -> None:
    rng, pairs = np.random.default_rng(0), (("a", "b"), ("a", "c"), ("b", "c"))
    scores = {task: rng.uniform(size=(3, len(pairs), 2)) for task in ("LD", "MD")}
    of_pairs = abx.PairScores(pairs, (0, 1, 2), 5, scores)
    of = CheckpointScores("m", 7, "raw", of_pairs, {}, {}, {}, ())
    table = abx_6_transfer.ordered_pair_scores(of).set_index(["source", "target"])
    assert len(table) == 6
    for column, pair in enumerate(pairs):
        for side, target in enumerate(pair):  # X in the first language, in the second
            row = table.loc[(pair[1 - side], target)]
            for task, by_layer in scores.items():
                assert row[f"{task}, target"] == pytest.approx(by_layer[:, column, side].mean())
                assert row[task] == pytest.approx(by_layer[:, column].mean())
