"""Results, computed once and found again: asks, the ledger, settings, where work is done.

In goes an ask (a `Kind` of result and what decides it) and the function that computes it; out comes
its value (`result`, or many: `results`): from the ledger that the repository ships (`ledger`), from
this machine's cache, or computed now, here or on a cluster, by the settings in force (`current`),
with what it was made by. `report` says where all values came from. No models, no text, no figures.
"""

from xlx.results.settings import current
from xlx.results.work import Kind, report, result, results

__all__ = ["Kind", "current", "report", "result", "results"]
