"""What predicts transfer beside the model: how near languages are."""

from itertools import permutations

import pytest

import abx_3_outcomes
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
        abx_3_outcomes.kinship(source, target) == abx_3_outcomes.kinship(target, source) == expected
    )


def test_branch_goes_before_family_before_script() -> None:
    """The order of all sources of all targets is that of three comparisons, one after the other."""
    by_number: dict[int, set] = {}
    for pair in permutations(LANGUAGES, 2):
        a, b = (LANGUAGES[code] for code in pair)
        family = a.family == b.family
        compared = family and a.branch == b.branch, family, a.script == b.script
        by_number.setdefault(abx_3_outcomes.kinship(*pair), set()).add(compared)
    assert all(len(kinds) == 1 for kinds in by_number.values())
    orders = [by_number[number].pop() for number in sorted(by_number)]
    assert orders == sorted(set(orders))
