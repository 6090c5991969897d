"""Panels of a figure, and what all primitives share: rows, checks, numbers, names at points."""

import itertools
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from xlx.plots.style import GUESSING, HALO, TINY, WIDTH

Column = str | tuple[str, str] | None


def order(table: pd.DataFrame, column: str) -> list:
    """What a column holds, each once, as the table names it."""
    return list(dict.fromkeys(table[column]))


def rows_of(table: pd.DataFrame, /, **keys: object) -> pd.DataFrame:
    """The rows that have these values; a column that the table lacks holds for all of it."""
    for name in keys.keys() & set(table):
        table = table[table[name] == keys[name]]
    return table


def parts(table: pd.DataFrame, *columns: str) -> Iterator[tuple[object, pd.DataFrame]]:
    """The rows of each value of a column (or values of several), in the order of the table."""
    for values in dict.fromkeys(zip(*(table[column] for column in columns), strict=True)):
        rows = rows_of(table, **dict(zip(columns, values, strict=True)))
        yield values if len(columns) > 1 else values[0], rows


@dataclass
class Panels:
    """Axes by the value of the column (or columns) that they are of, in their figure."""

    figure: Figure
    panel: Column
    axes: dict[object, Axes]
    across: int

    def each(self, table: pd.DataFrame) -> Iterator[tuple[Axes, pd.DataFrame]]:
        """Axes with their rows of a table; one that lacks the column is drawn in all of them."""
        for key, axes in self.axes.items():
            if isinstance(self.panel, tuple):
                yield axes, rows_of(table, **dict(zip(self.panel, key, strict=True)))
            else:
                yield axes, rows_of(table, **{self.panel: key} if self.panel else {})

    def titles(self, name: Callable[[object], str] | Mapping) -> "Panels":
        """Titles of the panels by the values of the column, in lines as long as a panel is wide."""
        room = int(self.figure.get_figwidth() / self.across / 0.072)
        for key, axes in self.axes.items():
            title = name(key) if callable(name) else name.get(key, "")
            lines = [part for line in title.split("\n") for part in textwrap.wrap(line, room)]
            axes.set_title("\n".join(lines), fontsize=9 if self.across < 3 else 8)
        return self

    def done(self, x: str = "", y: str = "", *, handles: Iterable[Artist] = ()) -> Figure:
        """Write what the axes show, once for all panels, and set the legend above the data."""
        first, *others = self.axes.values()
        (self.figure.supxlabel if others else first.set_xlabel)(x, fontsize=9)
        (self.figure.supylabel if others else first.set_ylabel)(y, fontsize=9)
        told: dict[str, Artist] = {}
        for axes in self.axes.values():
            for shown, label in zip(*axes.get_legend_handles_labels(), strict=True):
                told.setdefault(label, shown)
        told |= {shown.get_label(): shown for shown in handles}
        if told:
            longest = max(map(len, told)) * 0.062 + 0.55
            most = max(1, int((self.figure.get_figwidth() - 0.3) / longest))
            columns = math.ceil(len(told) / math.ceil(len(told) / most))
            legend = self.figure.legend(
                told.values(), told, loc="outside upper center", ncols=columns
            )
            for shown in legend.legend_handles:
                if isinstance(shown, Line2D):
                    shown.set_alpha(1)
        return self.figure


def panels(
    table: pd.DataFrame,
    panel: Column = None,
    *,
    columns: int = 4,
    width: float = 2.6,
    height: float = 2.4,
    edge: tuple[float, float] = (0.7, 0.9),
    **options: object,
) -> Panels:
    """A panel for each value of a column, in rows of ``columns``, or for each pair of values.

    Sizes in inches, ``edge`` of what stands around all; the figure is never wider than a notebook.
    """
    if isinstance(panel, tuple):
        keys = list(itertools.product(*(order(table, column) for column in panel)))
        columns = len(order(table, panel[1]))
    else:
        keys = [None] if panel is None else order(table, panel)
    columns = min(columns, len(keys))
    down = math.ceil(len(keys) / columns)
    size = (min(WIDTH, width * columns + edge[0]), height * down + edge[1])
    figure, grid = plt.subplots(down, columns, squeeze=False, figsize=size, **options)
    for number, axes in enumerate(grid.flat):
        axes.set_visible(number < len(keys))
        if len(keys) - columns <= number < len(keys):  # nothing stands below
            axes.tick_params(labelbottom=True)
    drawn = Panels(figure, panel, dict(zip(keys, grid.flat, strict=False)), columns)
    return drawn.titles(
        lambda key: ": ".join(map(str, key)) if isinstance(key, tuple) else str(key or "")
    )


def across(
    on: Panels, x: float | Mapping | None = None, y: float | None = None, **line: object
) -> None:
    """A line through all panels at ``x`` (one, or one a panel) or ``y``, dotted as chance is."""
    style = GUESSING | {"zorder": 1} | line
    for key, axes in on.axes.items():
        value = x.get(key) if isinstance(x, Mapping) else x
        if value is not None:
            axes.axvline(value, **style)
        if y is not None:
            axes.axhline(y, **style)


def write(axes: Axes, rows: pd.DataFrame, x: pd.Series, y: pd.Series, column: str) -> None:
    """Names beside some points, towards the middle, each as far from the next as it is high."""
    middle = (x.min() + x.max()) / 2
    low, high = axes.get_ylim()
    for right in (True, False):
        side = rows[(x[rows.index] > middle) == right]
        placed = apart(y[side.index].to_numpy(float), 0.075 * (high - low))
        for index, height in zip(side.index, placed, strict=True):
            axes.annotate(
                side.loc[index, column],
                (x[index], y[index]),
                xytext=(x[index] + (-0.06 if right else 0.06) * (x.max() - x.min()), height),
                ha="right" if right else "left",
                va="center",
                fontsize=TINY,
                path_effects=HALO,
                arrowprops={"arrowstyle": "-", "color": "0.5", "linewidth": 0.5, "shrinkB": 0},
            )


def apart(heights: np.ndarray, least: float) -> np.ndarray:
    """Heights moved as little as can be (least squares) so that each is ``least`` from the next."""
    ranks, room = np.argsort(heights, kind="stable"), least * np.arange(len(heights))
    bare = heights[ranks] - room
    n = range(len(heights))
    # Without the distances that have to be, what is left is not to fall: isotonic regression.
    level = [max(min(bare[i : j + 1].mean() for j in n[k:]) for i in n[: k + 1]) for k in n]
    moved = np.empty(len(heights))
    moved[ranks] = level + room
    return moved


HATCHED = {"facecolor": "0.95", "edgecolor": "0.6", "hatch": "////", "linewidth": 0}


def number(value: float, decimals: int = 2) -> str:
    """With a minus sign, without a negative zero; a dash for what is missing."""
    if pd.isna(value):
        return "–"
    text = f"{value:.{decimals}f}".replace("-", "−")
    return text.removeprefix("−") if not text.strip("−0.") else text
