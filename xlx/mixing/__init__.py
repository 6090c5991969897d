"""The within/across lens: what a model loses when one input mixes two languages.

Rajaee and Monz (2024). In go pairs or questions in several languages and fine-tuned models
(`grids`); out comes the score of every pair of languages, within and across, by label, with paired
intervals (`within_across`), beside baselines too simple for the task (`baselines`). `task_data` and
`experiments` have what the notebooks ask, `predictions` what came of their predictions; the paper's
printed numbers are in `published`, its claims in `claims`.
"""

from xlx.mixing.answer_tails import tails
from xlx.mixing.mixed_pairs import pair_table
from xlx.mixing.reading import by_setting, detected
from xlx.mixing.within_across import by_label, cells, paired_difference, summary

__all__ = [
    "by_label",
    "by_setting",
    "cells",
    "detected",
    "pair_table",
    "paired_difference",
    "summary",
    "tails",
]
