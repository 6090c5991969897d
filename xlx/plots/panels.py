"""Panels of a figure, and what all primitives share: rows, checks, numbers, names at points."""

import itertools
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy import ndarray
from pandas import DataFrame, Series

from xlx.plots.style import GUESSING, HALO, TINY, WIDTH
from xlx.results.deferred import deferred

optimize = deferred("scipy.optimize")
#: The name of a column, or none.
Column = str | None


@dataclass(frozen=True)
class Layout:
    """How panels lie: ``wrap`` in a row, each ``width`` by ``height``, ``edge`` around all.

    In inches; ``sharex`` and ``sharey`` as in ``plt.subplots``. The base of all styles.
    """

    wrap: int = 4
    width: float = 2.6
    height: float = 2.4
    edge: tuple[float, float] = (0.7, 0.9)
    sharex: str | bool = True
    sharey: str | bool = True


def order(table: DataFrame, column: str) -> list:
    """What a column holds, each once, as the table names it."""
    return list(dict.fromkeys(table[column]))


def rows_of(table: DataFrame, /, **keys: object) -> DataFrame:
    """The rows that have these values; a column that the table lacks holds for all of it."""
    for name in keys.keys() & set(table):
        table = table[table[name] == keys[name]]
    return table


def parts(table: DataFrame, *columns: str) -> Iterator[tuple[object, DataFrame]]:
    """The rows of each value of a column (or values of several), in the order of the table."""
    for values in dict.fromkeys(zip(*(table[column] for column in columns), strict=True)):
        rows = rows_of(table, **dict(zip(columns, values, strict=True)))
        yield values if len(columns) > 1 else values[0], rows


@dataclass
class Panels:
    """Axes by the value of the column that they are of (or values, of two), in their figure.

    ``items``: what stands on their lines, where they have such (`primitives.lanes`).
    """

    figure: Figure
    by: tuple[str, ...]
    axes: dict[object, Axes]
    across: int
    items: Sequence = ()

    def each(self, table: DataFrame) -> Iterator[tuple[Axes, DataFrame]]:
        """Axes with their rows of a table; one that lacks the column is drawn in all of them."""
        for key, axes in self.axes.items():
            values = (key,) if len(self.by) == 1 else key
            yield axes, rows_of(table, **dict(zip(self.by, values, strict=True)))

    def titles(self, name: Callable[[object], str] | Mapping) -> "Panels":
        """Titles of the panels by the values of the column, in lines as long as a panel is wide."""
        room = int(self.figure.get_figwidth() / self.across / 0.072)
        for key, axes in self.axes.items():
            title = name(key) if callable(name) else name.get(key, "")
            lines = [part for line in title.split("\n") for part in textwrap.wrap(line, room)]
            axes.set_title("\n".join(lines), fontsize=9 if self.across < 3 else 8)
        return self

    def done(self, x: str = "", y: str = "", *, handles: Iterable[Artist] = ()) -> Figure:
        """Write what the axes show, once for all panels, and set the legend above the data.

        Above bars of colours it stands at each panel with none below it.
        """
        first, *others = every = [*self.axes.values()]
        if others and self.figure.axes[-1].get_label() != "<colorbar>":
            self.figure.supxlabel(x, fontsize=9)
        else:
            plt.setp(every[-self.across :], xlabel=x)
        (self.figure.supylabel if others else first.set_ylabel)(y, fontsize=9)
        entries = {}
        for axes in self.axes.values():
            for shown, label in zip(*axes.get_legend_handles_labels(), strict=True):
                entries.setdefault(label, shown)
        entries |= {shown.get_label(): shown for shown in handles}
        if entries:
            longest = max(map(len, entries)) * 0.062 + 0.55
            most = max(1, int((self.figure.get_figwidth() - 0.3) / longest))
            columns = math.ceil(len(entries) / math.ceil(len(entries) / most))
            legend = self.figure.legend(
                entries.values(), entries, loc="outside upper center", ncols=columns
            )
            for shown in legend.legend_handles:
                if isinstance(shown, Line2D):
                    shown.set_alpha(1)
        return self.figure


def panels(
    table: DataFrame,
    row: Column = None,
    col: Column = None,
    layout: Layout = Layout(),
) -> Panels:
    """A panel for each value of ``col``, or for each pair of values of ``row`` and ``col``.

    The figure is never wider than a notebook.
    """
    by = tuple(filter(None, (row, col)))
    keys = list(itertools.product(*(order(table, column) for column in by)))
    columns = min(len(order(table, col)) if row else layout.wrap, len(keys))
    down = math.ceil(len(keys) / columns)
    figure, grid = plt.subplots(
        down,
        columns,
        squeeze=False,
        figsize=(
            min(WIDTH, layout.width * columns + layout.edge[0]),
            layout.height * down + layout.edge[1],
        ),
        sharex=layout.sharex,
        sharey=layout.sharey,
    )
    for place, axes in enumerate(grid.flat):
        axes.set_visible(place < len(keys))
        if len(keys) - columns <= place < len(keys):  # nothing stands below
            axes.tick_params(labelbottom=True)
    names = [key[0] if len(by) == 1 else key for key in keys]
    drawn = Panels(figure, by, dict(zip(names, grid.flat, strict=False)), columns)
    return drawn.titles(lambda key: ": ".join(map(str, key if isinstance(key, tuple) else [key])))


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


def write(axes: Axes, rows: DataFrame, x: Series, y: Series) -> None:
    """What is ``written`` beside points, towards the middle, each as far from the next as high."""
    middle = (x.min() + x.max()) / 2
    low, high = axes.get_ylim()
    for right in (True, False):
        side = rows[(x[rows.index] > middle) == right]
        placed = apart(y[side.index].to_numpy(float), 0.075 * (high - low))
        for index, height in zip(side.index, placed, strict=True):
            axes.annotate(
                side.loc[index, "written"],
                (x[index], y[index]),
                xytext=(x[index] + (-0.06 if right else 0.06) * (x.max() - x.min()), height),
                ha="right" if right else "left",
                va="center",
                fontsize=TINY,
                path_effects=HALO,
                arrowprops={"arrowstyle": "-", "color": "0.5", "linewidth": 0.5, "shrinkB": 0},
            )


def apart(heights: ndarray, least: float) -> ndarray:
    """Heights moved as little as can be (least squares) so that each is ``least`` from the next."""
    ranks, room = np.argsort(heights, kind="stable"), least * np.arange(len(heights))
    moved = np.empty(len(heights))
    # Without the distances that have to be, what is left is not to fall.
    moved[ranks] = optimize.isotonic_regression(heights[ranks] - room).x + room
    return moved


HATCHED = {"facecolor": "0.95", "edgecolor": "0.6", "hatch": "////", "linewidth": 0}


def number(value: float, decimals: int = 2) -> str:
    """With a minus sign, without a negative zero; a dash for what is missing."""
    if pd.isna(value):
        return "–"
    text = f"{value:.{decimals}f}".replace("-", "−")
    return text.removeprefix("−") if not text.strip("−0.") else text
