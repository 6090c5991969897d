"""Intervals, correlations, regressions and tests, with what is resampled said each time.

The scores of a corpus hang together: 630 language pairs share 36 languages, and all of them share
the same sentences. An interval is about what would be different next time; here that is the
sentences (`jackknife_error`, `bootstrap_kernel`) or the languages (`correlation`, the clustered
and dyadic errors of `regression`, `permutation_regression`), never the triplets or the pairs, whose
number says nothing.
"""

from xlx.core.statistics.correlations import (
    Correlation,
    correlation,
    correlations,
    partial_correlations,
)
from xlx.core.statistics.intervals import (
    bootstrap_kernel,
    half_width,
    interval,
    jackknife_error,
    left_out_error,
    pooled_spread,
    power,
    reach_of_two,
    resample_counts,
    share_interval,
    verdicts,
    window,
)
from xlx.core.statistics.permutations import permutation_regression
from xlx.core.statistics.regressions import Regression, explained, fitted_line, leverage, regression
from xlx.core.statistics.signed_ranks import Wilcoxon, wilcoxon
from xlx.core.statistics.tables import LEVEL, SLACK, numbers, require

__all__ = [
    "LEVEL",
    "SLACK",
    "Correlation",
    "Regression",
    "Wilcoxon",
    "bootstrap_kernel",
    "correlation",
    "correlations",
    "explained",
    "fitted_line",
    "half_width",
    "interval",
    "jackknife_error",
    "left_out_error",
    "leverage",
    "numbers",
    "partial_correlations",
    "permutation_regression",
    "pooled_spread",
    "power",
    "reach_of_two",
    "regression",
    "require",
    "resample_counts",
    "share_interval",
    "verdicts",
    "wilcoxon",
    "window",
]
