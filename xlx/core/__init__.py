"""The machinery under all lenses: results kept and found again, settings, statistics.

In goes an ask (a kind of result and what decides it) and the function that computes it; out comes
its value: from the ledger that the repository ships (`ledger`), from this machine's cache, or
computed now, here or on a cluster (`work`, `executors`), with what it was made by (`provenance`).
`reproduction` computes the ledger from nothing, `audit` a sample of it; `run` executes notebooks.
`statistics` has the intervals and tests, `languages` the languages. No models, no figures.
"""

from xlx.core.languages import LANGUAGES
from xlx.core.settings import current, settings
from xlx.core.work import Kind, report, result, results

__all__ = ["LANGUAGES", "Kind", "current", "report", "result", "results", "settings"]
