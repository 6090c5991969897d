"""Four primitives: `lanes`, `curves`, `scatter`, `heatmap`.

Each takes a tidy table (one row per observation) and the names of its columns: ``panel`` (one
column, or a pair of them for rows and columns of panels), ``item``, ``series``, ``value``; its
interval is in the columns ``low`` and ``high``, if the table has them and ``low`` is not "". Order
is that of the table. Each returns `Panels`, and draws on those given as ``on``, so that one lies
over another; `Panels.done` writes on the axes and sets the legend above the data.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from xlx.plots.panels import HATCHED, Column, Panels, order, panels, parts, write
from xlx.plots.style import HIGH, MISSING, SMALL, TINY, Look, ink
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


def _ends(
    rows: pd.DataFrame, value: str, scale: float, low: str, high: str = "high"
) -> np.ndarray | None:
    """Lengths of error bars, ``(2, n)``; rounding may put an end past its point."""
    if low not in rows:
        return None
    ends = np.array([rows[value] - rows[low], rows[high] - rows[value]], dtype=float)
    return scale * np.maximum(ends, 0)


def _looks(table: pd.DataFrame, series: str | None, given: Mapping | None) -> dict[object, Look]:
    """Looks of the series in a table; where looks are given, of those alone, in their order."""
    there = order(table, series) if series else [None]
    return {k: x for k, x in given.items() if k in there} if given else looks_of(there)


def _of_series(
    rows: pd.DataFrame, series: str | None, shown: Mapping, labels: Mapping | None
) -> Iterator[tuple[pd.DataFrame, Look, object]]:
    """Rows, look and label of each series."""
    for key, look in shown.items():
        label = (labels or {}).get(key, key)
        yield rows if series is None else rows[rows[series] == key], look, label


def lanes(
    table: pd.DataFrame,
    *,
    item: str,
    value: str,
    series: str | None = None,
    panel: Column = None,
    looks: Mapping | None = None,
    labels: Mapping[str, str] | None = None,
    items: Sequence | None = None,
    names: Callable[[str], str] = str,
    scale: float = 1,
    low: str = "low",
    wide: tuple[str, str] | None = None,
    shift: float | None = None,
    spread: float = 0,
    joined: bool = False,
    missing: bool = False,
    lane: float = 0.11,
    on: Panels | None = None,
    columns: int = 3,
    width: float = 2.6,
    sharex: str | bool = "all",
    **marks: object,
) -> Panels:
    """One line per item, on it a point with its interval for each series.

    Series lie in lanes, from above in the order of ``looks``, or all at the height ``shift``; rows
    of one place are spread over ``spread`` of the line. ``wide``: columns of a second, thinner
    interval. ``joined``: a line between the series of an item. ``missing``: say what has no number.
    """
    shown = _looks(table, series, looks)
    items = order(table, item) if items is None else list(items)
    if on is None:
        on = panels(
            table,
            panel,
            columns=columns,
            width=width,
            sharex=sharex,
            sharey=True,
            height=(lane * len(shown) + 0.1) * len(items) + 0.3,
            edge=(1.4, 0.75),
        )
        _rule(on, items, names)
    reach = min(0.13 * (len(shown) - 1), 0.36)
    heights = np.linspace(-reach, reach, len(shown)) if shift is None else [shift] * len(shown)
    style = {"linestyle": "none", "capsize": 1.5, "linewidth": 1, "markersize": 4} | marks
    for axes, part in on.each(table):
        series_rows = _of_series(part, series, shown, labels)
        for (rows, look, label), height in zip(series_rows, heights, strict=True):
            x, y = scale * rows[value], rows[item].map(items.index).to_numpy(float) + height
            if spread:
                turn = [list(y[:place]).count(height) % 5 for place, height in enumerate(y)]
                y += spread * np.array([0.0, 0.5, -0.5, 0.25, -0.25])[turn]
            if wide:
                axes.errorbar(
                    x,
                    y,
                    xerr=_ends(rows, value, scale, *wide),
                    fmt="none",
                    ecolor=look["color"],
                    linewidth=0.7,
                    capsize=2.5,
                )
            ends = _ends(rows, value, scale, low)
            axes.errorbar(x, y, xerr=ends, label=label, **(look | style))
            for middle in y[x.isna().to_numpy()] if missing else ():
                said = f"{rows[series].iloc[0]}: none"
                axes.text(
                    0.02,
                    middle,
                    said,
                    transform=axes.get_yaxis_transform(),
                    va="center_baseline",
                    fontsize=TINY,
                    color=look["color"],
                )
        if joined:
            ends = part.pivot(index=item, columns=series, values=value).reindex(columns=list(shown))
            y = np.add.outer(heights, ends.index.map(items.index).to_numpy(float))
            axes.plot(scale * ends.to_numpy(float).T, y, color="0.75", linewidth=1, zorder=1.5)
    return on


def _rule(on: Panels, items: Sequence, names: Callable[[str], str]) -> None:
    """Lines of items, from above, with a thin line between them and a dark one above the mean."""
    for axes in on.axes.values():
        for edge, item in enumerate(items[1:], start=1):
            colour, width = ("0.3", 0.8) if item == "mean" else ("0.9", 0.5)
            axes.axhline(edge - 0.5, color=colour, linewidth=width)
        axes.set_yticks(range(len(items)), [names(name) for name in items])
        axes.set_ylim(len(items) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")


def curves(
    table: pd.DataFrame,
    *,
    x: str,
    value: str,
    series: str | None = None,
    panel: Column = None,
    looks: Mapping | None = None,
    labels: Mapping[str, str] | None = None,
    scale: float = 1,
    low: str = "low",
    bars: bool = False,
    shift: float = 0,
    even: bool = False,
    every: int | None = None,
    on: Panels | None = None,
    columns: int = 4,
    width: float = 2.6,
    height: float = 2.2,
    sharex: str | bool = False,
    sharey: str | bool = True,
    **marks: object,
) -> Panels:
    """One line per series over ``x`` with its interval as a band, or as ``bars``.

    Lines break where there is no number. ``even``: values of ``x`` at even distances, as of
    checkpoints; ``shift`` moves series apart by so much of ``x``; one point in ``every`` is marked.
    """
    shown = _looks(table, series, looks)
    if on is None:
        on = panels(
            table, panel, columns=columns, width=width, height=height, sharex=sharex, sharey=sharey
        )
    style = {"linewidth": 1.3, "markersize": 4} | marks
    for axes, part in on.each(table):
        steps = sorted(part[x].dropna().unique())
        for number, (rows, look, label) in enumerate(_of_series(part, series, shown, labels)):
            rows = rows.sort_values(x)
            places = (rows[x].map(steps.index) if even else rows[x]).to_numpy(float)
            places = places + shift * (number - (len(shown) - 1) / 2)
            y, ends = scale * rows[value].to_numpy(float), _ends(rows, value, scale, low)
            if bars:
                axes.errorbar(places, y, yerr=ends, capsize=1.5, label=label, **(look | style))
                continue
            options = {"markevery": (number % every, every)} if every else {}
            axes.plot(places, y, label=label, **(look | style), **options)
            if ends is not None and rows[low].notna().any():
                axes.fill_between(
                    places, y - ends[0], y + ends[1], color=look["color"], alpha=0.18, linewidth=0
                )
        if even:
            axes.set_xticks(range(len(steps)), [f"{step:,}" for step in steps])
            axes.tick_params(axis="x", rotation=90 if len(steps) > 8 else 0)
    return on


def scatter(
    table: pd.DataFrame,
    *,
    x: str,
    y: str,
    series: str | None = None,
    panel: Column = None,
    looks: Mapping | None = None,
    labels: Mapping[str, str] | None = None,
    scale: float = 1,
    written: str | None = None,
    size: float = 12,
    alpha: float = 0.6,
    **room: object,
) -> Panels:
    """One point per row at ``x`` and ``y``; ``written``: its label; ``room``: of `panels`."""
    shown = _looks(table, series, looks)
    on = panels(table, panel, **({"sharex": True, "sharey": True} | room))
    for axes, part in on.each(table):
        for rows, look, label in _of_series(part, series, shown, labels):
            axes.plot(
                scale * rows[x],
                scale * rows[y],
                look["marker"],
                color=look["color"],
                alpha=alpha,
                markeredgewidth=0.6 if look["markerfacecolor"] == "white" else 0,
                markerfacecolor=look["markerfacecolor"],
                markersize=size**0.5,
                label=label,
            )
        if written:
            write(axes, part[part[written] != ""], scale * part[x], scale * part[y], written)
    return on


def heatmap(
    table: pd.DataFrame,
    *,
    row: str,
    column: str,
    value: str,
    panel: Column = None,
    rows: Sequence | None = None,
    across: Sequence | None = None,
    names: Callable = str,
    tops: Callable = str,
    norm: Normalize | Mapping | None = None,
    cmap: object = HIGH,
    bar: str | Mapping | None = "",
    bar_by: Callable = lambda key: None,
    written: str | Callable | None = None,
    framed: str | None = None,
    hatched: str | None = None,
    cell: tuple[float, float] = (0.3, 0.22),
    edge: tuple[float, float] = (1.6, 1.3),
    columns: int = 4,
    turned: float = 0,
    extend: str = "neither",
    own_rows: bool = False,
    own_columns: bool = False,
    grey: str = "not measured",
) -> Panels:
    """Coloured cells, the first row above; ``grey``: what cells without a number are.

    Panels with one key by ``bar_by`` share a ``norm`` (None: from their lowest to their highest
    value) and a bar of colours below them, called ``bar`` (None: no bar). ``written`` in cells: a
    column of texts, or a function of the value; ``framed`` and ``hatched``: columns that say which.
    ``cell``: its size in inches where there is room. ``own_rows``, ``own_columns``: a panel has
    only those of its part.
    """
    rows = order(table, row) if rows is None else list(rows)
    across = order(table, column) if across is None else list(across)
    n_rows, n_across, options = len(rows), len(across), {}
    split = [x for _, x in parts(table, *([panel] if isinstance(panel, str) else panel or ()))]
    if own_rows:
        n_rows = max(part[row].nunique() for part in split)
    if own_columns:
        counts = [part[column].nunique() for part in split]
        n_across = sum(counts) / len(counts)
        options = {} if own_rows else {"gridspec_kw": {"width_ratios": counts}}
    on = panels(
        table,
        panel,
        columns=columns,
        width=cell[0] * n_across + 0.12,
        edge=edge,
        height=cell[1] * n_rows + 0.3,
        sharey=not own_rows,
        **options,
    )
    of_key = dict(zip(on.axes, (part for _, part in on.each(table)), strict=True))
    for group in dict.fromkeys(map(bar_by, on.axes)):
        members = [key for key in on.axes if bar_by(key) == group]
        known = pd.concat([of_key[key][value] for key in members]).dropna()
        scale = norm.get(group) if isinstance(norm, Mapping) else norm
        scale = scale or Normalize(known.min(), known.max())
        colours = ScalarMappable(scale, cmap[group] if isinstance(cmap, Mapping) else cmap)
        for key in members:
            axes, part = on.axes[key], of_key[key]
            shown = [c for c in across if c in set(part[column])] if own_columns else across
            lines = [r for r in rows if r in set(part[row])] if own_rows else rows
            cells = part.pivot(index=row, columns=column, values=value)
            _colour(axes, cells.reindex(index=lines, columns=shown), colours)
            inside = part[part[row].isin(lines) & part[column].isin(shown)]
            places = inside[column].map(shown.index), inside[row].map(lines.index)
            _mark(axes, inside, places, value, colours, (written, framed, hatched))
            if (inside[value].notna() | inside.get(hatched, False)).sum() < len(lines) * len(shown):
                axes.add_patch(Rectangle((0, 0), 0, 0, color=MISSING, label=grey))
            axes.set_xticks(np.arange(len(shown)) + 0.5, [tops(name) for name in shown])
            axes.set_yticks(np.arange(len(lines)) + 0.5, [names(name) for name in lines])
            if turned:
                straight = {"ha": "right", "rotation_mode": "anchor"} if turned != 90 else {}
                plt.setp(axes.get_xticklabels(), rotation=turned, **straight)
        if bar is not None:
            wide = on.figure.get_figwidth() * len(members) / len(on.axes)
            if own_columns and not own_rows:
                wide *= of_key[key][column].nunique() / n_across
            strip = on.figure.colorbar(
                colours,
                ax=[on.axes[key] for key in members],
                orientation="horizontal",
                pad=0.015,
                extend=extend,
                shrink=min(1, 4 / wide),
                aspect=min(4, wide) / 0.1,
                fraction=0.05,
            )
            strip.set_label(bar.get(group, "") if isinstance(bar, Mapping) else bar, fontsize=8)
            strip.locator = MaxNLocator(nbins=max(2, min(6, int(2 * wide))))
            strip.outline.set_visible(False)
    return on


def _colour(axes: Axes, cells: pd.DataFrame, colours: ScalarMappable) -> None:
    """The cells of one panel of `heatmap`."""
    axes.set_facecolor(MISSING)
    seaborn.heatmap(
        cells.astype(float),
        ax=axes,
        cmap=colours.cmap,
        norm=colours.norm,
        cbar=False,
        linewidths=0.4,
        linecolor="white",
        xticklabels=False,
        yticklabels=False,
    )
    axes.set(xlabel="", ylabel="", xlim=(0, cells.shape[1]), ylim=(len(cells), 0))
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)
    axes.tick_params(length=0, labelsize=SMALL, pad=2)


def _mark(
    axes: Axes,
    table: pd.DataFrame,
    places: tuple[pd.Series, pd.Series],
    value: str,
    colours: ScalarMappable,
    marks: tuple,
) -> None:
    """What is written in cells, framed and hatched."""
    written, framed, hatched = marks
    for entry, x, y in zip(table.to_dict("records"), *places, strict=True):
        if hatched and entry[hatched]:
            axes.add_patch(Rectangle((x, y), 1, 1, **HATCHED))
            continue
        if text := written(entry[value]) if callable(written) else entry.get(written, ""):
            known = pd.notna(entry[value])
            axes.text(
                x + 0.5,
                y + 0.5,
                text,
                ha="center",
                fontsize=TINY,
                va="center" if "\n" in text else "center_baseline",
                color=ink(colours.to_rgba(entry[value])) if known else "black",
            )
        if framed and entry[framed]:
            axes.add_patch(Rectangle((x + 0.06, y + 0.06), 0.88, 0.88, **FRAME))
