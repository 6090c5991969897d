"""How near languages are, by hand and against the order written out."""

from itertools import permutations

import pandas as pd
import pytest

import abx_6_transfer
from shared import pair_regressions
from xlx.text.languages import LANGUAGES


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("de", "sv", 7),
        ("hr", "sr", 6),  # Slavic, Latin and Cyrillic
        ("hi", "ur", 6),
        ("de", "fr", 3),
        ("de", "ru", 2),
        ("tr", "vi", 1),  # Latin
        ("fa", "ar", 1),  # Arabic
        ("ja", "ko", 0),
        ("zh", "ja", 0),
    ],
)
def test_kinship_by_hand(source: str, target: str, expected: int) -> None:
    assert (
        abx_6_transfer.kinship(source, target) == abx_6_transfer.kinship(target, source) == expected
    )


def test_branch_goes_before_family_before_script() -> None:
    """The order of all sources of all targets is that of three comparisons, one after the other."""

    def compared(source: str, target: str) -> tuple[bool, bool, bool]:
        a, b = LANGUAGES[source], LANGUAGES[target]
        return (
            (a.family, a.branch) == (b.family, b.branch),
            a.family == b.family,
            a.script == b.script,
        )

    by_number: dict[int, set] = {}
    for pair in permutations(LANGUAGES, 2):
        by_number.setdefault(abx_6_transfer.kinship(*pair), set()).add(compared(*pair))
    assert all(len(kinds) == 1 for kinds in by_number.values())
    orders = [by_number[number].pop() for number in sorted(by_number)]
    assert orders == sorted(set(orders))


def test_equal_kin_share_their_weight() -> None:
    # Italian is near to both others of its branch; the mean of 0.9 and 0.1 counts, against German
    rows = [
        ("es", "it", 0.9), ("pt", "it", 0.1), ("de", "it", 0.5),
        ("it", "es", 0.2), ("pt", "es", 0.3), ("de", "es", 0.1),
        ("it", "pt", 0.2), ("es", "pt", 0.3), ("de", "pt", 0.1),
        ("it", "de", 0.1), ("es", "de", 0.2), ("pt", "de", 0.3),
    ]  # fmt: skip
    table = abx_6_transfer.with_kinship(
        pd.DataFrame(rows, columns=["source", "target", "accuracy"])
    )
    found = pair_regressions.choose_sources(table, "kinship", lowest=False, n_permutations=9).table
    chosen = found[found["rule"] == "selected"].set_index("target")
    assert chosen["source"].to_dict() == {
        "de": "es+it+pt", "es": "it+pt", "it": "es+pt", "pt": "es+it"
    }  # fmt: skip
    assert chosen.loc["it", ["hit", "win_rate"]].tolist() == [0.5, 0.5]
    assert chosen["win_rate"].to_dict() == {"de": 0.5, "es": 0.75, "it": 0.5, "pt": 0.75}


def test_the_nearest_of_each_language() -> None:
    near = abx_6_transfer.nearest_kin(["de", "en", "ru", "tr", "ja", "hr"])
    assert near["common"].to_dict() == {
        "de": "branch", "en": "branch", "ru": "branch", "tr": "script", "ja": "nothing",
        "hr": "branch",
    }  # fmt: skip
    assert near.loc["tr", "sources"] == "de+en+hr"
    assert near.loc["ja", "sources"] == "de+en+ru+tr+hr"
    assert abx_6_transfer.nearest_kin(["el", "de", "ru"]).loc["el"].tolist() == ["family", "de+ru"]


@pytest.mark.parametrize(
    ("codes", "says"),
    [
        (["de", "xx"], "family and script of 'xx' are not known"),
        (["de"], "de has no other language"),
        (["de", "de"], "'de' is given twice"),
        ([], "no languages are given"),
        ("de", "languages are due in a list"),
    ],
)
def test_languages_without_kin_are_named(codes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        abx_6_transfer.nearest_kin(codes)
