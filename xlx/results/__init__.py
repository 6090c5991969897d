"""Results, computed once and found again: asks, the ledger, settings, where work is done.

In goes an ask (a `Kind` of result and what decides it) and the function that computes it; out comes
its value (`result`, or many: `results`): from the ledger that the repository ships (`ledger`), from
this machine's cache, or computed now, here or on a cluster, by the settings in force (`current`),
with what it was made by. `report` says where all values came from. No models, no text, no figures.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from xlx.results.settings import current
    from xlx.results.work import Kind, report, result, results

__all__ = ["Kind", "current", "report", "result", "results"]


def __getattr__(name: str) -> Any:
    """At their first use, as `work` needs pandas and arrow, and a path alone does not."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from xlx.results import settings, work

    return getattr(settings if name == "current" else work, name)
