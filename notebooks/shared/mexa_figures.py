"""Figures that several notebooks of MEXA show (Kargaran et al., 2025), or that of its print.

Scores of MEXA (μ) are shares of hits in [0, 1].
"""

from collections.abc import Sequence
from dataclasses import replace

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from xlx.plots.panels import order, parts
from xlx.plots.primitives import (
    Cells,
    Curves,
    Lanes,
    curves,
    heatmap,
    lanes,
)
from xlx.plots.style import (
    BLUE,
    GREEN,
    HALO,
    TINY,
    VERMILION,
    handle,
    look,
    looks,
    styled,
)

#: From "not covered" to "well-covered", each darker than the one before.
BAND_COLOURS = ("#FBDAD2", "#F0AE84", "#B9A25A", "#2F7F75", "#14456E")
#: Options of a map whose cells hold the number of a band of scores, 0 for the lowest.
BANDED = {"cmap": ListedColormap(BAND_COLOURS), "norm": Normalize(-0.5, len(BAND_COLOURS) - 0.5)}

#: Where the axis of probabilities ends: smaller ones tell no more.
SMALLEST = 1e-12


def line(label: str, dash: object, colour: object = "0.3") -> Line2D:
    """What a legend shows of a line without markers."""
    return handle(label, look(colour, "", dash), linewidth=1.2)


@styled
def chance_tails(table: pd.DataFrame) -> Figure:
    """How probable a score is by chance, for several numbers of sentences (Figure 2).

    Tables of `chance_table` one below the other, ``n`` added; ``vectors`` is missing for an n that
    was not simulated, or altogether. The axis is logarithmic and ends at 1e-12; what is 0 is left
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
        marks = looks(map(str, sizes), {})
        dots = {n: look(c, marks[str(n)]["marker"], "none") for n, c in shades.items()}
        style = replace(shape, looks=dots, interval=True, bars=True)
        curves(table[table["vectors"] > 0], "mu", "vectors", hue="n", style=style, on=on)
        grey.append(handle("random vectors, simulated, with interval", look("0.3", "o")))
    (axes,) = on.axes.values()
    last = {n: rows.iloc[-1] for n, rows in parts(table[table["matrix"] >= SMALLEST], "n")}
    for n, row in last.items():
        axes.annotate(
            f"n = {n}" if n == sizes[0] else f"{n}",
            (row["mu"], row["matrix"]),
            xytext=(4, 2),
            textcoords="offset points",
            fontsize=8,
            color=shades[n],
        )
    right = max(row["mu"] for row in last.values()) + 0.05
    axes.set(yscale="log", ylim=(SMALLEST, 3), xlim=(-0.02, right))
    axes.tick_params(axis="y", labelsize=9.5)  # exponents are smaller
    return on.done("share of hits, μ", "probability of that share or more", handles=grey)


@styled
def coverage_bands(table: pd.DataFrame, languages: Sequence[str]) -> Figure:
    """Adjusted scores of all languages in all models, coloured by their bands (Table 6).

    ``table`` has ``language``, ``model`` and ``band`` (the five of `xlx.measures.mexa.bands`, as it
    gives them). ``languages`` are in reading order, split into columns no higher than a screen.
    """
    bands = table["band"].cat.categories
    n_columns = max(3, -(-len(languages) // 52))
    height = -(-len(languages) // n_columns)
    blocks = {code: place // height for place, code in enumerate(languages)}
    table = table.assign(
        level=table["band"].cat.codes.astype(float), block=table["language"].map(blocks)
    )
    style = Cells(
        rows=languages,
        sharey=False,
        bar=None,
        cell=(0.2, 0.135),
        edge=(0.2, 1.6),
        wrap=n_columns,
        **BANDED,
    )
    table = table.sort_values("block", kind="stable")
    on = heatmap(table, "model", "language", "level", col="block", style=style)
    for axes in on.titles({}).axes.values():
        axes.xaxis.tick_top()
        axes.tick_params(length=0, labelsize=TINY)
        axes.tick_params(axis="x", labelrotation=90)
        axes.set_ylim(top=0, bottom=height)
        axes.set_facecolor("white")  # below a shorter column there is no language
    labels = [f"score {bands[0]}: not covered", *bands[1:-1], f"{bands[-1]}: well covered"]
    known = [Patch(color=c, label=x) for c, x in zip(BAND_COLOURS, labels, strict=True)]
    x = "colour: adjusted score (MEXA score × score in English); row: a language"
    return on.done(x, handles=known)


@styled
def differences(table: pd.DataFrame) -> Figure:
    """Recomputed minus printed numbers, in units of what rounding allows; groups are tables.

    ``table`` is `Audit.numbers`: ``table`` (where it is printed), ``what``, ``apart`` (in
    tolerances, such as half a unit of the last digit) and ``agrees``. Numbers that agree share a
    lane; each that does not has its own, with its name.
    """
    items, drawn = {}, []
    for name, group in parts(table, "table"):
        right, wrong = group[group["agrees"]], group[~group["agrees"]]
        items[name] = f"{name}: {len(right)} of {len(group)} agree"
        items |= {(name, index): "" for index in wrong.index}
        drawn.append(right.assign(item=name, kind="agrees"))
        drawn.append(wrong.assign(item=[(name, index) for index in wrong.index], kind="disagrees"))
    long = pd.concat(drawn)
    style = Lanes(
        items=list(items),
        names=items.get,
        looks={
            "agrees": look(BLUE, "o", alpha=0.75),
            "disagrees": look(VERMILION, "X", alpha=0.75),
        },
        interval=False,
        shift=0,
        spread=0.4,
        lane=0.03,
        width=5.6,
    )
    on = lanes(long, "apart", "item", hue="kind", style=style)
    (axes,) = on.axes.values()
    axes.axvspan(-1, 1, color=GREEN, alpha=0.15, linewidth=0, label="what rounding allows")
    for row in long[long["kind"] == "disagrees"].itertuples():
        axes.annotate(  # towards the middle, where there is room
            row.what,
            (row.apart, on.items.index(row.item)),
            xytext=(-8 if row.apart > 0 else 8, 0),
            textcoords="offset points",
            ha="right" if row.apart > 0 else "left",
            va="center_baseline",
            fontsize=TINY,
            path_effects=HALO,
        )
    axes.set_xscale("symlog", linthresh=1)
    reach = max(2.0, 1.6 * table["apart"].abs().max())
    axes.set_xlim(-reach, reach)
    axes.xaxis.set_major_formatter("{x:g}")
    return on.done("(recomputed − printed) / what rounding allows")
