"""Least-squares concept erasure (Belrose et al. 2023, *LEACE*): no linear probe reads a concept.

Of all affine maps after which no linear predictor of the concept is better than a constant, it
changes the states least in mean square (theorem 4.3). ``data/erasure/erase.py`` measures what is
lost by it.
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from shared.abx_figures import chance_line
from shared.shown import asking
from xlx.measures import statistics
from xlx.plots.panels import across, order
from xlx.plots.primitives import curves
from xlx.plots.style import look, looks, styled
from xlx.results import paths

#: Languages that stand together in the table: all that English does not teach itself.
OTHERS = "de fr es"
#: What stands for English, and for shuffled copies of a concept.
ENGLISH, RANDOM = "en", "random"
KEYS = ["model", "measure", "layer", "language", "erased"]
#: Share of the largest variance below which there is none.
_NO_VARIANCE = 1e-9


class Eraser(NamedTuple):
    """What takes a concept out of states x: x less (x - ``mean``) · ``inward`` · ``outward``."""

    mean: Any  # (d,), as are the others
    inward: Any
    outward: Any

    def __call__(self, states: Any) -> Any:
        """States ``(..., d)``, arrays or tensors as the parts are, without the concept."""
        return states - ((states - self.mean) @ self.inward)[..., None] * self.outward


def eraser(states: np.ndarray, concept: np.ndarray) -> Eraser:
    """Fit to states ``(n, d)`` and what is to go, numbers ``(n,)``; in float64.

    ValueError for another number of rows, or a concept that never varies.
    """
    if len(states) != len(concept) or not np.ptp(concept):
        raise ValueError(
            f"{len(states)} states and {len(concept)} values of a concept: give a value for each "
            "state, and not the same one everywhere"
        )
    mean = np.mean(states, axis=0, dtype=float)
    centred = states - mean
    variance, axes = np.linalg.eigh(centred.T @ centred / len(states))
    there = variance > _NO_VARIANCE * variance[-1]
    axes, scale = axes[:, there], np.sqrt(variance[there])
    direction = axes.T @ (centred.T @ (concept - np.mean(concept))) / scale
    direction /= np.linalg.norm(direction)
    return Eraser(mean, axes @ (direction / scale), axes @ (direction * scale))


def effects() -> pd.DataFrame:
    """What erasing does, by model, measure, layer, language and what is erased.

    ``value``: the mean over ``n`` nouns or pairs; ``lost`` with ``low`` and ``high``: what it is
    below random erasers, 95 % over documents.
    """
    return pd.read_csv(paths.DATA / "erasure" / "effects.csv")


@styled
def by_layer(table: pd.DataFrame) -> Figure:
    """Per cent right by layer of one or more measures, a line for what is erased."""
    shown = looks(order(table, "erased"), {"nothing": look("0.7", "", linewidth=5)})
    on = curves(
        table,
        "layer",
        "value",
        hue="erased",
        col="measure",
        scale=100,
        width=8,
        height=1.8,
        looks=shown,
        interval=False,
    )
    across(on, y=50)
    x, y = "layer in which it is erased (0: embeddings)", "nouns whose number\na probe tells (%)"
    figure = on.done(x, y, handles=[chance_line()])
    return asking("Which direction, erased, takes number from a probe?", figure)


def balanced(labels: np.ndarray, most: int) -> np.ndarray:
    """Positions of as many of each class, the same in every run, ``most`` at most."""
    order = np.random.default_rng(1).permutation(len(labels))
    few = min(np.bincount(labels).min(), most // 2)
    return np.sort(np.concatenate([order[labels[order] == x][:few] for x in (0, 1)]))


def paired_effects(rows: pd.DataFrame) -> pd.DataFrame:
    """By `KEYS` the mean ``value`` and by how much random erasers leave more, paired by item."""
    both = pd.concat([rows, rows[rows["language"] != ENGLISH].assign(language=OTHERS)])
    lines = []
    for keys, part in both.groupby(KEYS[:4], sort=False):
        code = rows.loc[part.index, "language"].to_numpy()
        wide = part.assign(code=code).pivot_table(
            "value", ["code", "document", "item"], "erased", sort=False
        )
        documents = wide.index.get_level_values("document")
        for erased in wide:
            apart = statistics.mean_interval((wide[RANDOM] - wide[erased]).to_numpy(), documents)
            lines.append((*keys, erased, wide[erased].mean(), *apart, len(wide)))
    columns = [*KEYS, "value", "lost", "low", "high", "n"]
    return pd.DataFrame(lines, columns=columns)
