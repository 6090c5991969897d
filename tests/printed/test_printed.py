"""Arithmetic of printed numbers, by hand and against loops that read like the definition."""

import itertools

import numpy as np
import pandas as pd
import pytest

from printed import printed_tables


def test_agreement_is_within_the_tolerance_with_binary_fractions_forgiven() -> None:
    assert printed_tables.agrees([0.3, 68.2], [0.1 + 0.2, 68.3], [1e-12, 0.1]).all()
    assert not printed_tables.agrees(66.0, 65.9, 0.05)  # the same number printed twice


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ((), "cannot be told"),
        ((True,), "holds"),
        ((True, np.True_), "holds"),
        ((True, False), "holds in part"),
        ((False, np.False_), "does not hold"),
    ],
)
def test_a_verdict_follows_from_the_parts_of_a_claim(parts: tuple, verdict: str) -> None:
    assert printed_tables.verdict(parts) == verdict
    assert verdict in printed_tables.VERDICTS


def audit() -> printed_tables.Audit:
    found = printed_tables.Audit()
    found.check("Table 1", ["a", "b"], [0.5, 0.6], [0.52, 0.6], 0.01)
    found.check("Table 2", ["c"], [1.0], [1.1], [0.2])
    found.claim("3.1", "more than half", "0.4", False)
    found.claim("3.2", "both fall", "one does", True, False)
    found.claim("3.3", "why", "not measured")
    return found


def test_an_audit_counts_what_it_was_given() -> None:
    found = audit()
    assert found.numbers["agrees"].tolist() == [False, True, True]
    assert found.numbers["apart"].tolist() == pytest.approx([2, 0, 0.5])
    overall = found.overall()
    assert overall.index.tolist() == ["Table 1", "Table 2"]
    assert overall.loc["Table 1"].tolist() == [2, 1, 1, 2.0]
    assert found.summary() == (
        "2 of 3 numbers agree\nof 3 claims: holds in part 1, does not hold 1, cannot be told 1"
    )
    assert found.listing(2).splitlines() == [
        "numbers that disagree",
        "  Table 1: a: printed 0.50, can be 0.52",
        "",
        "does not hold (1 of 3)",
        "  3.1: more than half | 0.4",
        "",
        "holds in part (1 of 3)",
        "  3.2: both fall | one does",
        "",
        "cannot be told (1 of 3)",
        "  3.3: why | not measured",
    ]


def test_checks_that_are_none_are_refused() -> None:
    with pytest.raises(ValueError, match=r"Table 1: a tolerance is not above 0; of the same"):
        printed_tables.Audit().check("Table 1", ["a"], [1.0], [1.0], 0)
    with pytest.raises(ValueError, match=r"Table 1, b: a number is missing"):
        printed_tables.Audit().check("Table 1", ["a", "b"], [1.0, np.nan], [1.0, 1.0], 0.1)


def test_shares_that_an_entry_leaves_by_a_loop() -> None:
    rng = np.random.default_rng(0)
    entries = pd.Series(rng.uniform(0, 0.9, 40).round(2), index=[f"l{i}" for i in range(40)])
    found = printed_tables.shares_left(entries, 0.4822, 0.005, 0.00005)
    for name, entry in entries.items():
        fits = [k / 100 for k in range(101) if abs(k * 0.4822 / 100 - entry) <= 0.005 + 5e-7 * k]
        assert found.loc[name, "count"] == len(fits)
        if fits:
            assert found.loc[name, ["least", "most"]].tolist() == [min(fits), max(fits)]
        else:
            assert found.loc[name, ["least", "most"]].isna().all()


def test_exchanges_by_a_loop() -> None:
    rng = np.random.default_rng(1)
    least = pd.DataFrame(rng.integers(0, 5, (7, 2)) / 10, index=list("abcdefg"), columns=["m", "n"])
    most = least + rng.integers(0, 2, (7, 2)) / 10
    chosen = list("bdf")
    means = ((least + most) / 2).loc[["b", "d", "g"]].mean()  # of another choice
    found = printed_tables.exchanges(least, most, means, chosen, 0.005).set_index(["out", "into"])[
        "fits"
    ]
    rows = []
    for out, into in itertools.product([None, *chosen], [None, *"aceg"]):
        kept = [row for row in chosen if row != out] + ([into] if into else [])
        low, high = least.loc[kept].mean(), most.loc[kept].mean()
        rows.append(int(((means >= low - 0.005 - 1e-9) & (means <= high + 0.005 + 1e-9)).sum()))
    assert found.tolist() == rows
    assert len(found) == 4 * 5
    assert found[("f", "g")] == 2
