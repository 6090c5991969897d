"""The within/across lens: what a model loses when one input mixes two languages.

Rajaee and Monz (2024). In go pairs or questions in several languages and fine-tuned models
(`grids`); out comes the score of every pair of languages, within and across, by label, with paired
intervals (`within_across`), beside baselines too simple for the task (`baselines`). `task_data` and
`experiments` have what the notebooks ask, `predictions` what came of their predictions.
"""

from xlx.mixing.answer_tails import tails
from xlx.mixing.mixed_pairs import PAIRS_ROWS, pair_table
from xlx.mixing.reading import as_points, by_setting, detected, detection, listed
from xlx.mixing.within_across import across, by_label, cells, paired_difference, summary, within

__all__ = [
    "PAIRS_ROWS",
    "across",
    "as_points",
    "by_label",
    "by_setting",
    "cells",
    "detected",
    "detection",
    "listed",
    "pair_table",
    "paired_difference",
    "summary",
    "tails",
    "within",
]
