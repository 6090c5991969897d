"""The formulas: arrays and tables in, scores with intervals out; nothing is read, loaded or drawn.

`abx` has language and meaning discrimination, of all triplets (`exact`) and as the paper samples
them (`sampled`); `mexa` the alignment with a pivot (`scores`); `igap` the transfer gap at one
training error (`igap_curve`); `mixing` what is lost within and across languages (`summary`,
`by_label`); `probes` linear probes of all layers at once; `sentence_tasks` the nine tasks of
X-Probe; `alignment` cosines and what follows from them; `statistics` the intervals (`correlation`).
"""

import importlib
import pkgutil
from functools import cache

from xlx.measures.abx import Measure, exact, sampled
from xlx.measures.igap import igap_curve
from xlx.measures.mexa import scores
from xlx.measures.mixing import by_label, summary
from xlx.measures.statistics import correlation

__all__ = [
    "by_label",
    "correlation",
    "exact",
    "igap_curve",
    "registered",
    "sampled",
    "scores",
    "summary",
]


@cache
def registered() -> dict[str, Measure]:
    """Every measure of two languages (`abx.Measure`), by name, in the order of modules.

    A module of this folder that has ``REGISTERED``, a tuple of them, adds them: nothing else needs
    to know. ValueError where two have one name.
    """
    measures = {}
    for module in sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name):
        for measure in getattr(
            importlib.import_module(f"{__name__}.{module.name}"), "REGISTERED", ()
        ):
            if measure.name in measures:
                raise ValueError(f"two measures are called {measure.name!r}")
            measures[measure.name] = measure
    return measures
