"""Panels of a figure, and what all primitives share: rows, checks, numbers, names at points."""

import itertools
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import CenteredNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from xlx.plots.style import GUESSING, HALO, MISSING, TINY, WIDTH

Column = str | tuple[str, str] | None


def order(table: pd.DataFrame, column: str) -> list:
    """What a column holds, each once, as the table names it."""
    return list(dict.fromkeys(table[column]))


def rows_of(table: pd.DataFrame, **keys: object) -> pd.DataFrame:
    """The rows that have these values; a column that the table lacks holds for all of it."""
    for name, value in keys.items():
        if name in table:
            table = table[table[name] == value]
    return table


def parts(table: pd.DataFrame, *columns: str) -> Iterator[tuple[object, pd.DataFrame]]:
    """The rows of each value of a column (or values of several), in the order of the table."""
    values = list(zip(*(table[column] for column in columns), strict=True))
    for key in dict.fromkeys(values):
        rows = table[[value == key for value in values]]
        yield key if len(columns) > 1 else key[0], rows


def check_known(values: Iterable[str], known: Iterable[str], column: str) -> None:
    """Raise ValueError for what a figure has no place for."""
    known = list(known)
    if strange := [value for value in dict.fromkeys(values) if value not in known]:
        raise ValueError(
            f"column {column!r} has {', '.join(map(repr, strange))}; it may have "
            f"{', '.join(map(repr, known))}"
        )


def check_once(table: pd.DataFrame, *keys: str) -> None:
    """Raise ValueError for an empty table, or where two rows would be drawn in one place."""
    if table.empty:
        raise ValueError("there is nothing to draw: the table has no rows, or none with a number")
    twice = table[table.duplicated(list(keys))]
    if len(twice):
        place = ", ".join(f"{key} {twice.iloc[0][key]}" for key in keys)
        raise ValueError(f"there is more than one row of {place}: draw one of them")


def _keys(table: pd.DataFrame, panel: Column) -> list:
    if isinstance(panel, tuple):
        return list(itertools.product(*(order(table, column) for column in panel)))
    return [None] if panel is None else order(table, panel)


@dataclass
class Panels:
    """Axes by the value of the column (or columns) that they are of, in their figure."""

    figure: Figure
    panel: Column
    axes: dict[object, Axes]
    across: int

    def each(self, table: pd.DataFrame) -> Iterator[tuple[Axes, pd.DataFrame]]:
        """Axes with their rows of a table; one that lacks the column is drawn in all of them."""
        columns = (self.panel,) if isinstance(self.panel, str) else self.panel or ()
        for key, axes in self.axes.items():
            values = (key,) if isinstance(self.panel, str) else key or ()
            yield axes, rows_of(table, **dict(zip(columns, values, strict=True)))

    def titles(self, name: Callable[[object], str] | Mapping) -> "Panels":
        """Titles of the panels by the values of the column, in lines as long as a panel is wide."""
        room = int(self.figure.get_figwidth() / self.across / 0.072)
        for key, axes in self.axes.items():
            title = name(key) if callable(name) else name.get(key, "")
            lines = [part for line in title.split("\n") for part in textwrap.wrap(line, room)]
            axes.set_title("\n".join(lines), fontsize=9 if self.across < 3 else 8)
        return self

    def done(self, x: str = "", y: str = "", *, handles: Iterable[object] = ()) -> Figure:
        """Write what the axes show, once for all panels, and set the legend above the data."""
        one = len(self.axes) == 1
        first = next(iter(self.axes.values()))
        (first.set_xlabel if one else self.figure.supxlabel)(x, fontsize=9)
        (first.set_ylabel if one else self.figure.supylabel)(y, fontsize=9)
        told = {}
        for axes in self.axes.values():
            for shown, label in zip(*axes.get_legend_handles_labels(), strict=True):
                told.setdefault(label, shown)
        told |= {shown.get_label(): shown for shown in handles}
        if told:
            longest = max(map(len, told)) * 0.062 + 0.55
            most = max(1, int((self.figure.get_figwidth() - 0.3) / longest))
            lines = -(-len(told) // most)
            legend = self.figure.legend(
                told.values(), told, loc="outside upper center", ncols=-(-len(told) // lines)
            )
            for shown in legend.legend_handles:
                if isinstance(shown, Line2D):
                    shown.set_alpha(1)
        return self.figure


def panels(
    table: pd.DataFrame, panel: Column = None, *, columns: int = 4, width: float = 2.6,
    height: float = 2.4, edge: tuple[float, float] = (0.7, 0.9), **options: object,
) -> Panels:  # fmt: skip
    """A panel for each value of a column, in rows of ``columns``, or for each pair of values.

    ``width`` and ``height`` are those of a panel, ``edge`` is what stands around all; the figure
    is never wider than a notebook. ``options`` are those of `plt.subplots`.
    """
    keys = _keys(table, panel)
    across = len(order(table, panel[1])) if isinstance(panel, tuple) else min(columns, len(keys))
    down = -(-len(keys) // across)
    figure, grid = plt.subplots(
        down, across, squeeze=False,
        figsize=(min(WIDTH, width * across + edge[0]), height * down + edge[1]), **options,
    )  # fmt: skip
    for number, axes in enumerate(grid.flat):
        axes.set_visible(number < len(keys))
        if len(keys) - across <= number < len(keys):  # nothing stands below
            axes.tick_params(labelbottom=True)
    drawn = Panels(figure, panel, dict(zip(keys, grid.flat, strict=False)), across)
    return drawn.titles(
        lambda key: ": ".join(map(str, key)) if isinstance(key, tuple) else str(key or "")
    )


def across(
    on: Panels, x: float | Mapping | None = None, y: float | None = None, **line: object
) -> None:
    """A line through all panels at ``x`` (or at a value a panel) or ``y``, dotted as chance is."""
    for key, axes in on.axes.items():
        value = x.get(key) if isinstance(x, Mapping) else x
        style = GUESSING | {"zorder": 1} | line
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
                side.loc[index, column], (x[index], y[index]),
                xytext=(x[index] + (-0.06 if right else 0.06) * (x.max() - x.min()), height),
                ha="right" if right else "left", va="center", fontsize=TINY, path_effects=HALO,
                arrowprops={"arrowstyle": "-", "color": "0.5", "linewidth": 0.5, "shrinkB": 0},
            )  # fmt: skip


def apart(heights: np.ndarray, least: float) -> np.ndarray:
    """Heights moved as little as can be (least squares) so that each is ``least`` from the next."""
    ranks = np.argsort(heights, kind="stable")
    # without the distances that have to be, what is left is not to fall: pool what does
    pools: list[list[float]] = []
    for number, height in enumerate(heights[ranks]):
        pools.append([height - number * least])
        while len(pools) > 1 and np.mean(pools[-2]) > np.mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    moved = np.empty(len(heights))
    flat = [np.mean(pool) for pool in pools for _ in pool]
    moved[ranks] = np.array(flat) + least * np.arange(len(heights))
    return moved


HATCHED = {"facecolor": "0.95", "edgecolor": "0.6", "hatch": "////", "linewidth": 0}
#: What a legend of a map may tell.
NOT_MEASURED = {"color": MISSING, "label": "not measured"}


def framed_handle(label: str) -> Patch:
    """The frame of a cell, for a legend."""
    return Patch(facecolor="white", edgecolor="black", label=label)


def number(value: float, decimals: int = 2) -> str:
    """With a minus sign, without a negative zero; a dash for what is missing."""
    if pd.isna(value):
        return "–"
    text = f"{value:.{decimals}f}".replace("-", "−")
    return text.removeprefix("−") if not text.strip("−0.") else text


def scale_about(values: pd.Series, middle: float = 0, least: float = 0.1) -> Normalize:
    """A scale about a middle that holds all values, never so narrow that noise looks vivid."""
    return CenteredNorm(middle, max(least, (values - middle).abs().max()))
