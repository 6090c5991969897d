"""Four primitives: `lanes`, `curves`, `scatter`, `heatmap`.

Each takes a tidy table (one row per observation), the names of its columns (``x``, ``y``, ``hue``:
a look each; ``row`` and ``col``: a panel each), and a style or, by name, fields of it. Some columns
say more, where a table has them: ``low`` and ``high``, the interval; ``written``, a name at a point
or a text in a cell; ``framed`` and ``hatched``, which cells are. Order is that of the table. Each
returns `Panels`, and draws on those given as ``on``, so that one lies over another; `Panels.done`
writes on the axes and sets the legend above the data.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator
from pandas import DataFrame

from xlx.plots.panels import HATCHED, Column, Layout, Panels, order, panels, parts, rows_of, write
from xlx.plots.style import BLUE, HIGH, MISSING, SMALL, TINY, Look, ink, look
from xlx.plots.style import looks as looks_of
from xlx.results.deferred import deferred

seaborn = deferred("seaborn")

#: Black lined with white shows on dark and bright cells alike.
FRAME = {
    "fill": False,
    "edgecolor": "black",
    "linewidth": 0.9,
    "zorder": 3,
    "path_effects": (patheffects.withStroke(linewidth=2.2, foreground="white"),),
}


def tick(value: object) -> str:
    """What stands at an axis: a number with its thousands apart, or the text."""
    return f"{value:,}" if isinstance(value, int | float | np.number) else str(value)


@dataclass(frozen=True)
class Series(Layout):
    """How series look: ``looks`` and ``labels`` by value of ``hue``, or one of each without it.

    Of several looks, those given are drawn, in their order. Values are times ``scale``; without
    ``interval`` that of the table is not drawn.
    """

    looks: Mapping | None = None
    labels: Mapping | str | None = None
    scale: float = 1
    interval: bool = True

    def shown(self, table: DataFrame, hue: Column) -> dict[object, Look]:
        """How each series of a table looks, and what it is called."""
        if hue is None:
            return {None: (self.looks or look(BLUE, "o")) | {"label": self.labels}}
        there, labels = order(table, hue), self.labels or {}
        looks = (self.looks or looks_of(there)).items()
        return {key: x | {"label": labels.get(key, key)} for key, x in looks if key in there}

    def ends(
        self, rows: DataFrame, value: str, low: str = "low", high: str = "high"
    ) -> np.ndarray | None:
        """Lengths of error bars, ``(2, n)``; rounding may put an end past its point."""
        if low not in rows or not self.interval:
            return None
        ends = np.array([rows[value] - rows[low], rows[high] - rows[value]], float)
        return self.scale * np.maximum(ends, 0)


@dataclass(frozen=True)
class Lanes(Series):
    """The style of `lanes`, each ``lane`` inches high; ``names`` gives the name of an item.

    Series lie from above in their order, or all at the height ``shift``; rows of one place are
    spread over ``spread`` of the line. ``wide``: columns of a second, thinner interval. ``joined``:
    a line between the series of an item.
    """

    wrap: int = 3
    edge: tuple[float, float] = (1.4, 0.75)
    items: Sequence | None = None
    names: Callable[[str], str] = str
    wide: tuple[str, str] | None = None
    shift: float | None = None
    spread: float = 0
    joined: bool = False
    lane: float = 0.11


def lanes(
    table: DataFrame,
    x: str,
    y: str,
    hue: Column = None,
    row: Column = None,
    col: Column = None,
    style: Lanes = Lanes(),
    on: Panels | None = None,
    **fields: object,
) -> Panels:
    """One line per item (``y``), on it a point with its interval for each series."""
    style = replace(style, **fields)
    looks = style.shown(table, hue)
    if on is None:
        items = order(table, y) if style.items is None else style.items
        height = (style.lane * len(looks) + 0.1) * len(items) + 0.3
        on = panels(table, row, col, replace(style, height=height))
        on.items = items
        for axes in on.axes.values():
            for edge, item in enumerate(items[1:], start=1):  # a dark line is above the mean
                colour, width = ("0.3", 0.8) if item == "mean" else ("0.9", 0.5)
                axes.axhline(edge - 0.5, color=colour, linewidth=width)
            axes.set_yticks(range(len(items)), map(style.names, items))
            axes.set_ylim(len(items) - 0.5, -0.5)
            axes.grid(visible=False, axis="y")
    reach = min(0.13 * (len(looks) - 1), 0.36)
    first, last = (-reach, reach) if style.shift is None else (style.shift, style.shift)
    heights = np.linspace(first, last, len(looks))
    for axes, part in on.each(table):
        for (key, shown), height in zip(looks.items(), heights, strict=True):
            rows = rows_of(part, **{hue: key}) if hue else part
            values = style.scale * rows[x]
            places = rows[y].map(on.items.index).to_numpy(float) + height
            turn = [list(places[:k]).count(place) % 5 for k, place in enumerate(places)]
            places += style.spread * np.array([0.0, 0.5, -0.5, 0.25, -0.25])[turn]
            if style.wide:
                ends = style.ends(rows, x, *style.wide)
                thin = {"ecolor": shown["color"], "linewidth": 0.7, "capsize": 2.5}
                axes.errorbar(values, places, xerr=ends, fmt="none", **thin)
            marks = {"capsize": 1.5, "linewidth": 1, "markersize": 4}
            marks |= shown | {"linestyle": "none"}
            axes.errorbar(values, places, xerr=style.ends(rows, x), **marks)
        if style.joined:
            ends = part.pivot(index=y, columns=hue, values=x).reindex(columns=list(looks))
            places = np.add.outer(heights, ends.index.map(on.items.index).to_numpy(float))
            ends = style.scale * ends.to_numpy(float).T
            axes.plot(ends, places, color="0.75", linewidth=1, zorder=1.5)
    return on


@dataclass(frozen=True)
class Curves(Series):
    """The style of `curves`: intervals are bands, or ``bars``.

    ``even``: values of ``x`` at even distances, as of checkpoints; ``shift`` moves series apart by
    so much of ``x``; one point in ``every`` is marked.
    """

    height: float = 2.2
    sharex: str | bool = False
    bars: bool = False
    shift: float = 0
    even: bool = False
    every: int = 1


def curves(
    table: DataFrame,
    x: str,
    y: str,
    hue: Column = None,
    row: Column = None,
    col: Column = None,
    style: Curves = Curves(),
    on: Panels | None = None,
    **fields: object,
) -> Panels:
    """One line per series over ``x`` with its interval; it breaks where there is no number."""
    style = replace(style, **fields)
    on = on or panels(table, row, col, style)
    looks = style.shown(table, hue)
    for axes, part in on.each(table):
        steps = sorted(part[x].dropna().unique())
        for number, (key, shown) in enumerate(looks.items()):
            rows = (rows_of(part, **{hue: key}) if hue else part).sort_values(x)
            places = (rows[x].map(steps.index) if style.even else rows[x]).to_numpy(float)
            places = places + style.shift * (number - (len(looks) - 1) / 2)
            values, ends = style.scale * rows[y].to_numpy(float), style.ends(rows, y)
            marks = {"linewidth": 1.3, "markersize": 4} | shown
            if style.bars:
                axes.errorbar(places, values, yerr=ends, capsize=1.5, **marks)
                continue
            axes.plot(places, values, markevery=(number % style.every, style.every), **marks)
            if ends is not None and rows["low"].notna().any():
                band = values - ends[0], values + ends[1]
                axes.fill_between(places, *band, color=shown["color"], alpha=0.18, linewidth=0)
        if style.even:
            axes.set_xticks(range(len(steps)), map(tick, steps))
            axes.tick_params(axis="x", rotation=90 if len(steps) > 8 else 0)
    return on


@dataclass(frozen=True)
class Points(Series):
    """The style of `scatter`: the area of a point, and how much it covers."""

    size: float = 12
    alpha: float = 0.6


def scatter(
    table: DataFrame,
    x: str,
    y: str,
    hue: Column = None,
    row: Column = None,
    col: Column = None,
    style: Points = Points(),
    **fields: object,
) -> Panels:
    """One point per row at ``x`` and ``y``."""
    style = replace(style, **fields)
    on = panels(table, row, col, style)
    for axes, part in on.each(table):
        for key, shown in style.shown(table, hue).items():
            rows = rows_of(part, **{hue: key}) if hue else part
            marks = {"alpha": style.alpha, "markersize": style.size**0.5, "linestyle": "none"}
            marks["markeredgewidth"] = 0.6 if shown["markerfacecolor"] == "white" else 0
            marks |= {name: shown[name] for name in ("alpha", "markersize") if name in shown}
            axes.plot(style.scale * rows[x], style.scale * rows[y], **shown | marks)
        if "written" in part:
            named = part[part["written"] != ""]
            write(axes, named, style.scale * part[x], style.scale * part[y])
    return on


@dataclass(frozen=True)
class Cells(Layout):
    """The style of `heatmap`; a ``cell`` in inches, where there is room.

    Panels share a ``norm`` (None: from their lowest to their highest value), a ``cmap`` and a bar
    of colours below them, called ``bar`` (None: no bar). Axes that are not shared have only the
    rows, or columns, of their panel. ``missing``: what cells without a number are.
    """

    edge: tuple[float, float] = (1.6, 1.3)
    rows: Sequence | None = None
    columns: Sequence | None = None
    names: Callable[[object], str] = tick
    norm: Normalize | None = None
    cmap: object = HIGH
    bar: str | None = ""
    cell: tuple[float, float] = (0.3, 0.22)
    turned: float = 0
    extend: str = "neither"
    missing: str = "not measured"


def heatmap(
    table: DataFrame,
    x: str,
    y: str,
    hue: str,
    row: Column = None,
    col: Column = None,
    style: Cells = Cells(),
    **fields: object,
) -> Panels:
    """Coloured cells, of ``hue`` at the column ``x`` and the row ``y``, the first row above."""
    style = replace(style, **fields)
    rows = order(table, y) if style.rows is None else style.rows
    columns = order(table, x) if style.columns is None else style.columns
    split = [part for _, part in parts(table, *filter(None, (row, col)))]
    n_rows = len(rows) if style.sharey else max(part[y].nunique() for part in split)
    n_columns = len(columns) if style.sharex else np.mean([part[x].nunique() for part in split])
    size = {"width": style.cell[0] * n_columns + 0.12, "height": style.cell[1] * n_rows + 0.3}
    on = panels(table, row, col, replace(style, sharex=False, **size))
    norm = style.norm or Normalize(table[hue].min(), table[hue].max())
    colours, coloured = ScalarMappable(norm, style.cmap), []
    for axes, part in on.each(table):
        if len(part):
            cells = part.pivot(index=y, columns=x, values=hue).astype(float)
            cells = cells.reindex(
                index=[name for name in rows if style.sharey or name in cells.index],
                columns=[name for name in columns if style.sharex or name in cells],
            )
            _colour(axes, cells, colours, style)
            inside = part[part[y].isin(cells.index) & part[x].isin(cells)]
            places = inside[x].map(cells.columns.get_loc), inside[y].map(cells.index.get_loc)
            _mark(axes, inside, places, inside[hue], colours)
            if (inside[hue].notna() | inside.get("hatched", False)).sum() < cells.size:
                axes.add_patch(Rectangle((0, 0), 0, 0, color=MISSING, label=style.missing))
            coloured.append(axes)
    if style.bar is not None:
        wide = on.figure.get_figwidth() * len(coloured) / len(on.axes)
        strip = on.figure.colorbar(
            colours,
            ax=coloured,
            orientation="horizontal",
            pad=0.015,
            extend=style.extend,
            shrink=min(1, 4 / wide),
            aspect=min(4, wide) / 0.1,
            fraction=0.05,
        )
        strip.set_label(style.bar, fontsize=8)
        strip.locator = MaxNLocator(nbins=max(2, min(6, int(2 * wide))))
        strip.outline.set_visible(False)
    return on


def _colour(axes: Axes, cells: DataFrame, colours: ScalarMappable, style: Cells) -> None:
    """The cells of one panel of `heatmap`, and the names of its rows and columns."""
    axes.set_facecolor(MISSING)
    axes.figure.set_visible(False)  # seaborn draws a whole figure to see whether names overlap
    seaborn.heatmap(
        cells,
        ax=axes,
        cmap=colours.cmap,
        norm=colours.norm,
        cbar=False,
        linewidths=0.4,
        linecolor="white",
        xticklabels=False,
        yticklabels=False,
    )
    axes.figure.set_visible(True)
    axes.set(xlabel="", ylabel="", xlim=(0, cells.shape[1]), ylim=(len(cells), 0))
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)
    axes.tick_params(length=0, labelsize=SMALL, pad=2)
    axes.set_xticks(np.arange(cells.shape[1]) + 0.5, map(tick, cells))
    axes.set_yticks(np.arange(len(cells)) + 0.5, map(style.names, cells.index))
    if style.turned:
        straight = {"ha": "right", "rotation_mode": "anchor"} if style.turned != 90 else {}
        plt.setp(axes.get_xticklabels(), rotation=style.turned, **straight)


def _mark(
    axes: Axes,
    table: DataFrame,
    places: tuple[pd.Series, pd.Series],
    values: pd.Series,
    colours: ScalarMappable,
) -> None:
    """What is written in cells, framed and hatched."""
    for entry, x, y, value in zip(table.to_dict("records"), *places, values, strict=True):
        if entry.get("hatched"):
            axes.add_patch(Rectangle((x, y), 1, 1, **HATCHED))
            continue
        if text := entry.get("written"):
            axes.text(
                x + 0.5,
                y + 0.5,
                text,
                ha="center",
                fontsize=TINY,
                va="center" if "\n" in text else "center_baseline",
                color="black" if pd.isna(value) else ink(colours.to_rgba(value)),
            )
        if entry.get("framed"):
            axes.add_patch(Rectangle((x + 0.06, y + 0.06), 0.88, 0.88, **FRAME))
