"""Figures that several notebooks of MEXA show (Kargaran et al., 2025), or that of its print.

Scores of MEXA (μ) are shares of hits in [0, 1].
"""

from dataclasses import replace

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from shared.shown import asking
from xlx.plots.panels import order, parts
from xlx.plots.primitives import Curves, curves
from xlx.plots.style import handle, look, styled

#: Where the axis of probabilities ends: smaller ones tell no more.
SMALLEST = 1e-6


def line(label: str, dash: object, colour: object = "0.3") -> Line2D:
    """What a legend shows of a line without markers."""
    return handle(label, look(colour, "", dash), linewidth=1.2)


@styled
def chance_tails(table: pd.DataFrame) -> Figure:
    """How probable a score is by chance, for several numbers of sentences (Figure 2).

    Tables of `chance_table` one below the other, ``n`` added; ``vectors`` is missing for an n that
    was not simulated, or altogether. The axis is logarithmic and ends at 1e-6; what is 0 is left
    out.
    """
    sizes = order(table, "n")
    colours = matplotlib.colormaps["cividis"](np.linspace(0, 0.7, len(sizes)))
    shades = dict(zip(sizes, colours, strict=True))
    shape = Curves(labels={n: f"_{n}" for n in sizes}, interval=False, width=6, height=3.2)
    positive = table.assign(**{k: table[k].where(table[k] > 0) for k in ("binomial", "matrix")})
    on = None
    for column, dash in (("binomial", "-"), ("matrix", "--")):
        style = replace(shape, looks={n: look(c, "", dash) for n, c in shades.items()})
        on = curves(positive, "mu", column, hue="n", style=style, on=on)
    grey = [line("binomial: hits independent", "-"), line("random matrix, exact", "--")]
    if "vectors" in table:
        dots = {n: look(c, "o", "none") for n, c in shades.items()}
        style = replace(shape, looks=dots, interval=True, bars=True)
        curves(table[table["vectors"] > 0], "mu", "vectors", hue="n", style=style, on=on)
        grey.append(handle("random vectors, simulated, with interval", look("0.3", "o")))
    (axes,) = on.axes.values()
    last = {n: rows.iloc[-1] for n, rows in parts(table[table["matrix"] >= SMALLEST], "n")}
    for n, row in last.items():
        axes.annotate(
            f"{n} sentences" if n == sizes[0] else f"{n}",
            (row["mu"], row["matrix"]),
            xytext=(4, 2),
            textcoords="offset points",
            fontsize=8,
            color=shades[n],
        )
    right = max(row["mu"] for row in last.values()) + 0.05
    axes.set(yscale="log", ylim=(SMALLEST, 3), xlim=(-0.02, right))
    axes.tick_params(axis="y", labelsize=9.5)  # exponents are smaller
    figure = on.done("MEXA score μ: share of hits", "probability of that or more", handles=grey)
    return asking("How often does chance alone give a score?", figure)
