"""Tidy tables into figures; nothing is computed here.

In goes a table with a row an observation, its columns named by the caller; out comes a matplotlib
figure in one style and one palette by model, saved under a notebook's name (`save`). One module a
lens holds the figures of its paper.
"""

from xlx.plots.abx import (
    checkpoint_layer_map,
    correlation_course,
    dynamics,
    held_out_maps,
    intervals,
    language_maps,
    layer_profile,
    member_profiles,
    paired_differences,
    retrieval_scatter,
    sampling_spread,
    tradeoff,
    training_losses,
    vocabularies,
)
from xlx.plots.style import save, styled

__all__ = [
    "checkpoint_layer_map", "correlation_course", "dynamics", "held_out_maps", "intervals",
    "language_maps", "layer_profile", "member_profiles", "paired_differences",
    "retrieval_scatter", "sampling_spread", "save", "styled", "tradeoff", "training_losses",
    "vocabularies",
]  # fmt: skip
