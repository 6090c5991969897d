"""Five primitives: `lanes`, `curves`, `heatmap`, `scatter`, `bars`.

Each takes a tidy table (a row an observation) and the names of its columns: ``panel`` (one column,
or a pair of them for rows and columns of panels), ``item``, ``series``, ``value``, its interval
``low`` and ``high``. Order is that of the table. Each returns `Panels`, and draws on those given as
``on``, so that one lies over another; `Panels.done` writes on the axes and sets the legend above
the data. Nothing is computed but where and how to draw.
"""

from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from xlx.plots.panels import HATCHED, Column, Panels, order, panels, parts, write
from xlx.plots.style import BLUE, HIGH, MISSING, SMALL, TINY, Look, cell_frame, ink
from xlx.plots.style import looks as looks_of


def _ends(rows: pd.DataFrame, value: str, low: str, high: str) -> np.ndarray | None:
    """Lengths of error bars, ``(2, n)``; rounding may put an end past its point."""
    if low not in rows:
        return None
    return np.maximum([rows[value] - rows[low], rows[high] - rows[value]], 0).astype(float)


def _series(table: pd.DataFrame, series: str | None, own: Mapping | None) -> dict[object, Look]:
    """Looks of the series in a table; where looks are given, of those alone, in their order."""
    there = order(table, series) if series else [None]
    if own is None:
        return looks_of(there)
    return {key: shown for key, shown in own.items() if key in there}


def lanes(
    table: pd.DataFrame, *, item: str, value: str, series: str | None = None, panel: Column = None,
    looks: Mapping | None = None, labels: Mapping[str, str] | None = None,
    items: Sequence | None = None, names: Callable[[str], str] = str, scale: float = 1,
    low: str = "low", high: str = "high", wide: tuple[str, str] | None = None,
    shift: float | None = None, spread: float = 0, joined: bool = False, total: str = "mean",
    missing: bool = False, lane: float = 0.11, on: Panels | None = None, columns: int = 3,
    width: float = 2.6, sharex: str | bool = "all", **marks: object,
) -> Panels:  # fmt: skip
    """A line an item, on it a point with its interval for each series.

    Series lie in lanes, from above in the order of ``looks``, or all at the height ``shift``; rows
    of one place are spread over ``spread`` of the line. ``wide`` names the columns of a second,
    thinner interval. ``joined`` draws a line between the series of an item. A number that is
    ``missing`` is said in its place. A darker line stands above the item ``total``.
    """
    shown = _series(table, series, looks)
    items = order(table, item) if items is None else list(items)
    new = on is None
    if new:
        on = panels(
            table, panel, columns=columns, width=width, sharex=sharex, sharey=True,
            height=(lane * len(shown) + 0.1) * len(items) + 0.3, edge=(1.4, 0.75),
        )  # fmt: skip
    reach = min(0.13 * (len(shown) - 1), 0.36)
    heights = np.linspace(-reach, reach, len(shown)) if shift is None else [shift] * len(shown)
    places = {name: number for number, name in enumerate(items)}
    style = {"capsize": 1.5, "linewidth": 1, "markersize": 4} | marks
    for axes, part in on.each(table):
        if new:
            _ruled(axes, items, names, total)
        for (key, own), height in zip(shown.items(), heights, strict=True):
            rows = part if series is None else part[part[series] == key]
            at = rows[item].map(places).to_numpy(float) + height
            if spread:
                turn = [list(at[:place]).count(height) % 5 for place, height in enumerate(at)]
                at += spread * np.array([0.0, 0.5, -0.5, 0.25, -0.25])[turn]
            look = {k: v for k, v in own.items() if k != "linestyle"} | {"linestyle": "none"}
            if wide:
                ends = scale * _ends(rows, value, *wide)
                axes.errorbar(scale * rows[value], at, xerr=ends, fmt="none", ecolor=own["color"],
                              linewidth=0.7, capsize=2.5)  # fmt: skip
            ends = _ends(rows, value, low, high)
            label = (labels or {}).get(key, key)
            axes.errorbar(
                scale * rows[value], at, xerr=None if ends is None else scale * ends,
                label=label, **(look | style),
            )  # fmt: skip
            for middle in at[rows[value].isna().to_numpy()] if missing else ():
                axes.text(
                    0.02, middle, f"{key}: none", transform=axes.get_yaxis_transform(),
                    va="center_baseline", fontsize=TINY, color=own["color"],
                )  # fmt: skip
        if joined:
            ends = part.pivot(index=item, columns=series, values=value).reindex(columns=list(shown))
            at = np.add.outer(heights, ends.index.map(places).to_numpy(float))
            axes.plot(scale * ends.to_numpy(float).T, at, color="0.75", linewidth=1, zorder=1.5)
    return on


def _ruled(axes: Axes, items: Sequence, names: Callable[[str], str], total: str) -> None:
    """Lines of items, from above, with a thin line between them."""
    for edge in range(1, len(items)):
        last = items[edge] == total
        axes.axhline(edge - 0.5, color="0.3" if last else "0.9", linewidth=0.8 if last else 0.5)
    axes.set_yticks(range(len(items)), [names(name) for name in items])
    axes.set_ylim(len(items) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")


def curves(
    table: pd.DataFrame, *, x: str, value: str, series: str | None = None, panel: Column = None,
    looks: Mapping | None = None, labels: Mapping[str, str] | None = None, scale: float = 1,
    low: str = "low", high: str = "high", bars: bool = False, shift: float = 0,
    even: bool = False, every: int | None = None, on: Panels | None = None, columns: int = 4,
    width: float = 2.6, height: float = 2.2, sharex: str | bool = False,
    sharey: str | bool = True, **marks: object,
) -> Panels:  # fmt: skip
    """A line a series over ``x`` with its interval as a band, or as ``bars``.

    Lines break where there is no number. ``even`` sets the values of ``x`` at even distances, as
    checkpoints are, which are even in log steps but for 0; ``shift`` moves series apart by that
    much of ``x``; of many points ``every`` so manieth has a marker.
    """
    shown = _series(table, series, looks)
    if on is None:
        on = panels(table, panel, columns=columns, width=width, height=height, sharex=sharex,
                    sharey=sharey)  # fmt: skip
    style = {"linewidth": 1.3, "markersize": 4} | marks
    moved = shift * (np.arange(len(shown)) - (len(shown) - 1) / 2)
    for axes, part in on.each(table):
        steps = sorted(part[x].dropna().unique())
        for number, ((key, own), offset) in enumerate(zip(shown.items(), moved, strict=True)):
            rows = (part if series is None else part[part[series] == key]).sort_values(x)
            at = (rows[x].map(steps.index) if even else rows[x]).to_numpy(float) + offset
            label = (labels or {}).get(key, key)
            options = {"markevery": (number % every, every)} if every else {}
            y, ends = scale * rows[value].to_numpy(float), _ends(rows, value, low, high)
            if bars:
                axes.errorbar(at, y, yerr=None if ends is None else scale * ends, capsize=1.5,
                              label=label, **(own | style))  # fmt: skip
                continue
            axes.plot(at, y, label=label, **(own | style), **options)
            if ends is not None and rows[low].notna().any():
                axes.fill_between(at, y - scale * ends[0], y + scale * ends[1], color=own["color"],
                                  alpha=0.18, linewidth=0)  # fmt: skip
        if even:
            axes.set_xticks(range(len(steps)), [f"{step:,}" for step in steps])
            if len(steps) > 8:
                axes.tick_params(axis="x", rotation=90)
    return on


def scatter(
    table: pd.DataFrame, *, x: str, y: str, series: str | None = None, panel: Column = None,
    looks: Mapping | None = None, labels: Mapping[str, str] | None = None, scale: float = 1,
    written: str | None = None, on: Panels | None = None, columns: int = 4, width: float = 2.6,
    height: float = 2.4, sharex: str | bool = True, sharey: str | bool = True, size: float = 12,
    alpha: float = 0.6,
) -> Panels:  # fmt: skip
    """A point a row at ``x`` and ``y``; the column ``written`` has what to write at it, or ""."""
    shown = _series(table, series, looks)
    if on is None:
        on = panels(table, panel, columns=columns, width=width, height=height, sharex=sharex,
                    sharey=sharey)  # fmt: skip
    for axes, part in on.each(table):
        for key, own in shown.items():
            rows = part if series is None else part[part[series] == key]
            axes.plot(
                scale * rows[x], scale * rows[y], own["marker"], color=own["color"], alpha=alpha,
                markeredgewidth=0.6 if own["markerfacecolor"] == "white" else 0,
                markerfacecolor=own["markerfacecolor"], markersize=size**0.5,
                label=(labels or {}).get(key, key),
            )  # fmt: skip
        if written:
            write(axes, part[part[written] != ""], scale * part[x], scale * part[y], written)
    return on


def bars(
    table: pd.DataFrame, *, item: str, value: str, panel: Column = None,
    items: Sequence | None = None, names: Callable[[str], str] = str, lane: float = 0.17,
    columns: int = 3, width: float = 3.2,
) -> Panels:  # fmt: skip
    """A bar an item from 0; 0 itself is written."""
    items = order(table, item) if items is None else list(items)
    on = panels(table, panel, columns=columns, width=width, sharex=True, sharey=True,
                height=lane * len(items) + 0.3, edge=(1.4, 0.75))  # fmt: skip
    for axes, rows in on.each(table):
        _ruled(axes, items, names, "")
        at = rows[item].map(items.index).to_numpy(int)
        axes.barh(at, rows[value], color=BLUE, height=0.7)
        for place in at[rows[value].to_numpy() == 0]:
            axes.text(0, place, " 0", va="center_baseline", fontsize=TINY, color="0.3")
    return on


def heatmap(
    table: pd.DataFrame, *, row: str, column: str, value: str, panel: Column = None,
    rows: Sequence | None = None, across: Sequence | None = None, names: Callable = str,
    tops: Callable = str, norm: Normalize | Mapping | None = None, cmap: object = HIGH,
    bar: str | Mapping | None = "", bar_by: Callable = lambda key: None,
    written: str | Callable | None = None, framed: str | None = None, hatched: str | None = None,
    cell: tuple[float, float] = (0.3, 0.22), edge: tuple[float, float] = (1.6, 1.3),
    columns: int = 4, turned: float = 0, extend: str = "neither", own_rows: bool = False,
    own_columns: bool = False,
) -> Panels:  # fmt: skip
    """Coloured cells, the first row above; grey where the table has no number.

    Panels with one key by ``bar_by`` share a ``norm`` (by default from the lowest to the highest
    of their values) and a bar of colours below them, called ``bar`` (None: no bar). ``written`` is
    what stands in the cells: a column of texts, or a function of the value; ``framed`` and
    ``hatched`` are columns that say which cells are. ``cell`` is the size of a cell in inches where
    the page has room. With ``own_rows`` and ``own_columns`` a panel has only those of its part.
    """
    rows = order(table, row) if rows is None else list(rows)
    across = order(table, column) if across is None else list(across)
    n_rows, n_across, options = len(rows), len(across), {}
    if own_rows or own_columns:
        each = [own for _, own in parts(table, *([panel] if isinstance(panel, str) else panel))]
    if own_rows:
        n_rows = max(own[row].nunique() for own in each)
    if own_columns:
        counts = [own[column].nunique() for own in each]
        n_across = sum(counts) / len(counts)
        options = {} if own_rows else {"gridspec_kw": {"width_ratios": counts}}
    size = (cell[0] * n_across + 0.12, cell[1] * n_rows + 0.3)
    on = panels(table, panel, columns=columns, width=size[0], height=size[1], edge=edge,
                sharey=not own_rows, **options)  # fmt: skip
    groups: dict[object, list[Axes]] = {}
    keys = {key: bar_by(key) for key in on.axes}
    of_key = dict(zip(on.axes, (own for _, own in on.each(table)), strict=True))
    for key, axes in on.axes.items():
        groups.setdefault(keys[key], []).append(axes)
    for group, members in groups.items():
        known = pd.concat([of_key[key][value] for key in keys if keys[key] == group]).dropna()
        scale = norm.get(group) if isinstance(norm, Mapping) else norm
        scale = scale or Normalize(known.min(), known.max())
        colours = ScalarMappable(scale, cmap[group] if isinstance(cmap, Mapping) else cmap)
        for key in [key for key in keys if keys[key] == group]:
            axes, part = on.axes[key], of_key[key]
            shown = [c for c in across if c in set(part[column])] if own_columns else across
            lines = [r for r in rows if r in set(part[row])] if own_rows else rows
            _cells(axes, part, (row, column, value), (lines, shown), colours,
                   (written, framed, hatched))  # fmt: skip
            axes.set_xticks(np.arange(len(shown)) + 0.5, [tops(name) for name in shown])
            axes.set_yticks(np.arange(len(lines)) + 0.5, [names(name) for name in lines])
            axes.tick_params(length=0, labelsize=SMALL, pad=2)
            if turned:
                straight = {"ha": "right", "rotation_mode": "anchor"} if turned != 90 else {}
                plt.setp(axes.get_xticklabels(), rotation=turned, **straight)
        if bar is not None:
            wide = on.figure.get_figwidth() * len(members) / len(on.axes)
            if own_columns and not own_rows:
                wide *= of_key[key][column].nunique() / n_across
            strip = on.figure.colorbar(
                colours, ax=members, orientation="horizontal", pad=0.015, extend=extend,
                shrink=min(1, 4 / wide), aspect=min(4, wide) / 0.1, fraction=0.05,
            )  # fmt: skip
            strip.set_label(bar.get(group, "") if isinstance(bar, Mapping) else bar, fontsize=8)
            strip.locator = MaxNLocator(nbins=max(2, min(6, int(2 * wide))))
            strip.outline.set_visible(False)
    return on


def _cells(
    axes: Axes, table: pd.DataFrame, keys: tuple[str, str, str], places: tuple[list, list],
    colours: ScalarMappable, marks: tuple,
) -> None:  # fmt: skip
    """The cells of one panel of `heatmap`, with what is written, framed and hatched."""
    (row, column, value), (rows, across) = keys, places
    written, framed, hatched = marks
    cells = table.pivot(index=row, columns=column, values=value).reindex(index=rows, columns=across)
    axes.set_facecolor(MISSING)
    seaborn.heatmap(
        cells.astype(float), ax=axes, cmap=colours.cmap, norm=colours.norm, cbar=False,
        linewidths=0.4, linecolor="white", xticklabels=False, yticklabels=False,
    )  # fmt: skip
    axes.set(xlabel="", ylabel="")
    for entry in table.to_dict("records") if any(marks) else ():
        if entry[row] not in rows or entry[column] not in across:
            continue
        corner = (across.index(entry[column]), rows.index(entry[row]))
        if hatched and entry[hatched]:
            axes.add_patch(Rectangle(corner, 1, 1, **HATCHED))
            continue
        text = written(entry[value]) if callable(written) else entry.get(written, "")
        if text:
            filled = pd.notna(entry[value])
            colour = ink(colours.to_rgba(entry[value])) if filled else "black"
            axes.text(corner[0] + 0.5, corner[1] + 0.5, text, ha="center", va="center_baseline"
                      if "\n" not in text else "center", fontsize=TINY, color=colour)  # fmt: skip
        if framed and entry[framed]:
            axes.add_patch(cell_frame(corner))
    axes.set(xlim=(0, len(across)), ylim=(len(rows), 0))
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)
