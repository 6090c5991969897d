"""The MEXA lens: how well a language is aligned with English in a decoder, and what that predicts.

Kargaran et al. (2025). In go the states of parallel sentences; out comes the share that is nearest
to its own translation both ways (`scores`), by layer and pooling (`coverage`), with intervals and
exact chance (`chance`), beside what needs no alignment (`controls`, `surface`), and what it says of
a task (`prediction`), such as `topics`.
"""

from xlx.mexa.chance import chance_simulation, chance_table, hit_probability
from xlx.mexa.coverage import measure_coverage
from xlx.mexa.measures import PivotScores, scores
from xlx.mexa.prediction import bands, expected, line

__all__ = [
    "PivotScores",
    "bands",
    "chance_simulation",
    "chance_table",
    "expected",
    "hit_probability",
    "line",
    "measure_coverage",
    "scores",
]
