"""The formulas: arrays and tables in, scores with intervals out; nothing is read, loaded or drawn.

`abx` has language and meaning discrimination, exact and by sampled triplets; `mexa` the alignment
with a pivot; `igap` the transfer gap at one training error and the ranking of directions; `mixing`
what is lost within and across languages; `probes` linear probes of all layers at once;
`sentence_tasks` the nine tasks of X-Probe; `alignment` cosines and what follows from them;
`statistics` and `regressions` the intervals.
"""

import importlib
import pkgutil
from functools import cache
from typing import Any


@cache
def registered() -> dict[str, Any]:
    """Every measure of two languages (`abx.Measure`), by name, in the order of modules.

    A module of this folder that has ``REGISTERED``, a tuple of them, adds them: nothing else needs
    to know. ValueError where two have one name.
    """
    measures: dict[str, Any] = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        for measure in getattr(
            importlib.import_module(f"{__name__}.{module.name}"), "REGISTERED", ()
        ):
            if measure.name in measures:
                raise ValueError(f"two measures are called {measure.name!r}")
            measures[measure.name] = measure
    return measures
