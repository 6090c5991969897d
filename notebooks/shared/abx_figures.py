"""What figures of LD and MD share: chance and reference lines, names of axes, curves by layer.

Tables have ``model``, ``task`` ("LD", "MD", ...), ``score`` and its interval ``low``, ``high``,
unless a function says otherwise; scores are shares, and chance is ½.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from xlx.plots.panels import Panels, across, rows_of
from xlx.plots.primitives import Curves, curves
from xlx.plots.style import CHANCE, GUESSING, MEASURES, NAMES, handle

LAYER = "layer (0: embeddings)"
TASKS = ("LD", "MD")
MATCHED = "MD, like length"
STEP = "training step (at even distances; log steps after 0)"
#: Dashes of reference lines, in their order.
_DASHES = ((0, (5, 2)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (7, 3)))
References = Mapping[str, pd.DataFrame]


def shown(table: pd.DataFrame) -> list[str]:
    """The tasks of a table that are drawn over training and depth."""
    return [task for task in (*TASKS, MATCHED) if (table["task"] == task).any()]


def chance_line(label: str = "chance") -> object:
    """Chance, for a legend; ``label`` says of what, where a figure has scores with another."""
    return handle(label, GUESSING)


def scored(
    table: pd.DataFrame,
    x: str,
    tasks: Sequence[str],
    style: Curves = Curves(),
    on: Panels | None = None,
) -> Panels:
    """One line per task over ``x``, one panel per model."""
    style = replace(style, looks={task: MEASURES[task] for task in tasks}, labels=NAMES)
    return curves(table, x, "score", hue="task", col="model", style=style, on=on)


def with_lines(on: Panels, lines: References | None = None, tasks: Sequence[str] = ()) -> list:
    """Chance, and horizontal lines: label → table of ``model``, ``task`` and ``score``."""
    across(on, y=CHANCE)
    handles = []
    for (label, table), dash in zip((lines or {}).items(), _DASHES, strict=False):
        for task in tasks:
            line = {"color": MEASURES[task]["color"], "linewidth": 1, "linestyle": dash}
            rows = rows_of(table, task=task).set_index("model")["score"]
            for model, axes in on.axes.items():
                if model in rows:
                    axes.axhline(rows[model], **line)
            if len(rows):
                handles.append(handle(f"{task} of {label}", line))
    return [*handles, chance_line()]
