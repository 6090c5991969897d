"""The printed numbers of the ABX paper against each other, and what is said of them.

The arithmetic of Table 1 is held against regressions whose correlation is known; counts and
p-values are recomputed by hand; what does not agree is asserted as it is.
"""

import re

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from printed import abx_claims
from printed.abx_claims import AbxNumbers, TableRow
from printed.printed_tables import Audit
from xlx.results import paths
from xlx.text import languages

README = " ".join((paths.PUBLISHED / "abx" / "README.md").read_text(encoding="utf-8").split())


@pytest.fixture(scope="module")
def paper() -> AbxNumbers:
    return AbxNumbers()


@pytest.fixture(scope="module")
def audit(paper: AbxNumbers) -> Audit:
    return abx_claims.paper_audit(paper)


def test_tables_are_whole(paper: AbxNumbers) -> None:
    assert len(paper.text) == 36
    assert [(row.task, row.checkpoint) for row in paper.table_1] == [
        *((task, when) for task in ("POS", "NER", "NLI") for when in ("Avg", "Last")),
        *((task, "Last") for task in ("POS", "NER", "NLI")),
    ]
    assert paper.languages["ABX", ""] == set(languages.ABX)
    assert paper.value("abx_t33") == 1_500_000
    assert (paper.value("abx_t16"), paper.value("abx_t22")) == (29, 12)


@pytest.mark.parametrize("seed", range(6))
def test_the_curve_of_t_values_holds_the_regression_that_made_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    first = rng.normal(size=40)
    second = rng.uniform(-0.9, 0.9) * first + rng.normal(size=40)
    outcome = rng.normal(size=2) @ [first, second] + 2 * rng.normal(size=40)
    fit = sm.OLS(outcome, sm.add_constant(np.column_stack([first, second]))).fit()
    signs = tuple(int(np.sign(t)) for t in fit.tvalues[1:])
    told = tuple("n.s." if p >= 0.05 else "p < .05" for p in fit.pvalues[1:])
    row = TableRow("made up", "POS", "Last", 40, fit.rsquared, signs, told)
    assert (row.f_value, row.p_value) == pytest.approx((fit.fvalue, fit.f_pvalue))
    r = np.corrcoef(first, second)[0, 1]
    apart = np.hypot(*(x - t for x, t in zip(row.t_values(r), fit.tvalues[1:], strict=True)))
    assert apart.min() < 0.02
    possible = abx_claims.possible_correlations(row)
    assert np.abs(possible - r).min() <= 0.005


def test_no_effect_of_either_and_a_large_r_squared_needs_one_predictor_twice() -> None:
    row = TableRow("made up", "NLI", "Last", 156, 0.3, (-1, -1), ("n.s.", "n.s."))
    for r in (-0.9, 0.0, 0.8):
        assert not len(row.t_values(r)[0])
    for r in (-0.98, 0.95):
        assert len(row.t_values(r)[0])
    modest = TableRow("made up", "NLI", "Last", 13, 0.3, (-1, -1), ("n.s.", "n.s."))
    assert len(modest.t_values(0.0)[0])


def test_one_row_of_table_1_is_hardly_possible(paper: AbxNumbers) -> None:
    limits = abx_claims.table_1_limits(paper, -0.72)
    assert limits.index[(limits["t of LD"] == "none")].tolist() == ["CL NLI Last"]
    assert limits.loc["CL NLI Last", "F"] == pytest.approx(0.3009 / 2 / (0.6991 / 153))
    ranges = abx_claims.correlation_ranges(paper).set_index("row").loc["CL NLI Last"]
    assert ranges["high"].iloc[0] == pytest.approx(-0.97, abs=0.01)
    assert ranges["low"].iloc[1] == pytest.approx(0.88, abs=0.01)
    assert re.search(r"beyond -0\.97 or \+0\.88", README)


def test_examples_of_appendix_a_share_what_figure_1_says() -> None:
    shared = abx_claims.shared_variables()
    assert shared["A and B"].to_dict() == {"LD": "meaning", "MD": "language"}
    assert shared["A and X"].to_dict() == {"LD": "language", "MD": "meaning"}
    assert set(shared["B and X"]) == {"nothing"}


def test_what_does_not_agree_is_as_the_readme_says(audit: Audit) -> None:
    wrong = audit.numbers[~audit.numbers["agrees"]].set_index("what")
    assert wrong["recomputed"].to_dict() == {
        "last step (Figure 3; footnote 4)": 1_500_000,
        "languages of NER transfer (5.1; Table 2)": 22,
    }
    assert "the last step is 1,500,000" in README
    assert "Table 2 ticks 22" in README
    assert audit.overall()["numbers"].to_dict() == {"counts": 9, "section 4.2 and appendix D": 4}


def test_verdicts(audit: Audit) -> None:
    table = audit.claims.set_index(["where", "claim"])["verdict"]
    assert table.value_counts().to_dict() == {
        "holds": 19, "does not hold": 7, "cannot be told": 3, "holds in part": 1,
    }  # fmt: skip
    fallen = audit.claims[audit.claims["verdict"] == "does not hold"]
    assert fallen["where"].tolist() == [
        "4.2", "A", "4.1", "4.2", "Table 1, CL NLI Last", "K", "K"
    ]  # fmt: skip
    chance = audit.claims[audit.claims["where"] == "K"].set_index("claim")["found"]
    hits = chance["POS: the source of lowest LD is best for 2 of 18 targets"]
    none_or_one = (16 / 17) ** 18 + 18 / 17 * (16 / 17) ** 17
    assert round(1 - none_or_one, 1) == 0.3
    assert "p = 0.3" in hits


def test_an_exercise_has_its_answer() -> None:
    row = TableRow("cross_lingual", "mine", "Last", 306, 0.05, (-1, -1), ("n.s.", "n.s."))
    possible = pd.Series(abx_claims.possible_correlations(row))
    assert possible[possible < 0].max() == pytest.approx(-0.875)
    assert possible[possible > 0].min() == pytest.approx(0.515)
