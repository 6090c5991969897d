"""Figures of a training that was measured on its way (`xlx.alignment_training`)."""

import pandas as pd
from matplotlib.figure import Figure

from xlx.plots.panels import across
from xlx.plots.primitives import curves
from xlx.plots.style import CHANCE, GUESSING, MEASURES, NAMES, handle, styled

_CHOSEN = {"color": "0.35", "linewidth": 0.8, "linestyle": (0, (4, 2))}


@styled
def training_course(table: pd.DataFrame, chosen: int | None = None) -> Figure:
    """LD and MD at every evaluation of a training, a panel a text.

    ``table`` has ``text``, ``task``, ``step`` and ``score``; ``chosen`` is a step to be marked.
    """
    tasks = {task: MEASURES[task] for task in dict.fromkeys(table["task"])}
    on = curves(table, x="step", value="score", series="task", panel="text", looks=tasks,
                labels=NAMES, width=3.9, height=2.5)  # fmt: skip
    across(on, y=CHANCE)
    told = [handle("chance", GUESSING | {"marker": ""}, line=True)]
    if chosen is not None:
        across(on, chosen, **_CHOSEN)
        told.append(handle("chosen checkpoint", _CHOSEN | {"marker": ""}, line=True))
    return on.done("training step", "ABX score", handles=told)
