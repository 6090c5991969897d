"""Table 1 of the ABX paper: what R² leaves of t values, against regressions that are known."""

import numpy as np
import pytest
import statsmodels.api as sm

from printed import abx_claims
from printed.abx_claims import TableRow


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
