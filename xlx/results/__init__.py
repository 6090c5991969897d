"""Results, computed once and found again: asks, the ledger, settings, where work is done.

In goes an ask (a kind of result and what decides it) and the function that computes it; out comes
its value: from the ledger that the repository ships (`ledger`), from this machine's cache, or
computed now, here or on a cluster (`work`, `executors`), with what it was made by (`provenance`).
No models, no text, no figures.
"""

from xlx.results.settings import current
from xlx.results.work import Kind, report, result, results

__all__ = ["Kind", "current", "report", "result", "results"]
