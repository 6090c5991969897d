"""The figure of the averages that the IGAP paper prints."""

import pandas as pd
from matplotlib.figure import Figure

from xlx.plots.primitives import Lanes, lanes
from xlx.plots.style import styled


@styled
def printed_averages(table: pd.DataFrame) -> Figure:
    """IGAP averaged over targets, one row per model, as printed and over all targets alike.

    ``table`` is of `IgapTables.drawn_averages`: ``task`` (a panel), ``row``, ``kind``, ``value``,
    ``low`` and ``high`` (missing where there is no interval), in [0, 1].
    """
    style = Lanes(scale=100, lane=0.1, width=2.7)
    on = lanes(table, "value", "row", hue="kind", col="task", style=style)
    return on.done("IGAP, mean over targets (points)")
