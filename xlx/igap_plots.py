"""Tables of IGAP → figures: what `plots` is to ABX scores, for Chi et al. (2023).

The same rules hold: a function draws what its table holds and computes nothing but where to put it.
Tables hold rates in [0, 1]; axes and cells show them as the paper prints them, in per cent. Where
no fine-tuned model is in the window of Equation 5 there is no number, and the figure says so.
"""

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from xlx.panels import check_known, distinct_looks, ink, rows_of
from xlx.plots import HALO, styled

_GUESSING = {"color": "0.4", "linewidth": 1, "linestyle": (0, (1, 2))}
#: Two ways to know nothing of a language, as columns of curves.
_KNOWING_NOTHING = {"chance": _GUESSING, "one_label": _GUESSING | {"linestyle": (0, (6, 3))}}
_NAMED_NOTHING = {"chance": "guessing in the target", "one_label": "the commonest label there"}
_NO_MODEL = "no model in the window"
#: What a row of panels of `decomposition` shows, from top to bottom.
_PARTS = {
    "error": "cross-lingual\nerror (%)",
    "intralingual": "intralingual\ngap (points)",
    "interlingual": "interlingual\ngap (points)",
    "training": "training\nerror (%)",
}
_QUANTITIES = {"accuracy": "accuracy (%)", "IGAP": "IGAP (percentage points)"}
#: How numbers of `printed_and_ours` look, by where they come from: colour, marker, face, label.
_KINDS = {
    "printed": ("black", "D", "none", "printed"),
    "recomputed": ("#D55E00", "X", "#D55E00", "recomputed from the printed rows"),
    "ours": ("#0072B2", "o", "#0072B2", "ours, with interval"),
}
#: Panels of `direction_maps`: column, title, unit, colours, and whether 0 is their middle.
_MAPS = (
    ("accuracy", "test accuracy", "%", "cividis", False),
    ("igap", "IGAP", "percentage points", "cividis_r", False),
    ("transfer_gap", "transfer gap", "percentage points", "PuOr_r", True),
)
_MISSING = "0.85"
_HATCHED = {"facecolor": "0.95", "edgecolor": "0.6", "hatch": "////", "linewidth": 0}
#: More languages than that, in three panels, leave no room for a decimal in a cell.
_WITH_DECIMALS = 8
#: More sources than that leave no room for their names beside the points.
_NAMED = 5


def _directions(table: pd.DataFrame) -> list[tuple[str, str]]:
    return list(dict.fromkeys(zip(table["source"], table["target"], strict=True)))


def _bars(rows: pd.DataFrame, value: str) -> np.ndarray:
    """Lengths of error bars in points, ``(2, n)``; rounding may put an end past its point."""
    return 100 * np.maximum([rows[value] - rows["low"], rows["high"] - rows[value]], 0)


def _curve(
    axes: Axes, rows: pd.DataFrame, x: np.ndarray, value: str, look: dict[str, object], label: str
) -> None:
    """A line with its band, broken where there is no number."""
    axes.plot(x, 100 * rows[value], label=label, linewidth=1.3, markersize=3.5, **look)
    # a thin edge, so that the band of a point without neighbours can be seen
    axes.fill_between(
        x, 100 * rows["low"], 100 * rows["high"], color=look["color"], alpha=0.2, linewidth=0.8
    )


def _crosses(axes: Axes, x: np.ndarray, lane: int, colour: object) -> None:
    """Say on the axis where there is no number, in a lane for each curve."""
    axes.plot(
        x, np.full(len(x), 0.03 + 0.045 * lane), "x", color=colour, markersize=3.5,
        markeredgewidth=1, transform=axes.get_xaxis_transform(),
    )  # fmt: skip


def _cross_handle() -> Line2D:
    return Line2D(
        [], [], linestyle="none", marker="x", color="0.3", markersize=3.5, label=_NO_MODEL
    )


@styled
def gap_points_and_curves(points: pd.DataFrame, curves: pd.DataFrame) -> Figure:
    """Transfer gap, IGAP and what is wrong by training error, a column a direction (Figure 1).

    ``points`` has ``model``, ``source``, ``target``, ``training``, ``transfer_gap`` (drawn above)
    and ``interlingual`` (below, small), a row a fine-tuned model. ``curves`` has ``model``,
    ``source``, ``target``, ``level`` (E′), ``igap``, ``low`` and ``high``, missing where no model
    is in the window: there the curve is broken and a cross of its colour stands on the axis. It may
    have ``chance`` and ``one_label``, the gaps of models that guess in the target language and that
    give it the commonest label. The third row has the error on the translations, the sum of both:
    where it is level, nothing crosses, and the gap above it grows all the same as the training
    error falls. Training errors fall from a step above the highest level to 0; what is above is
    left out. Directions stand as ``curves`` names them.

    Raises ValueError for more models than can be told apart (7).
    """
    directions = _directions(curves)
    looks = distinct_looks(list(dict.fromkeys([*curves["model"], *points["model"]])), "models")
    levels = np.unique(curves["level"])
    left = 100 * (2 * levels[-1] - levels[-2] if len(levels) > 1 else levels[-1] + 0.05)
    points = points[100 * points["training"] <= left + 1e-9]  # rounding
    points = points.assign(translated=points["training"] + points["interlingual"])
    figure, grid = plt.subplots(
        3, len(directions), figsize=(max(6.7, 1.1 * len(directions) + 0.6), 5.8), squeeze=False,
        sharex=True, sharey="row",
    )  # fmt: skip
    knowing_nothing = {
        column: look for column, look in _KNOWING_NOTHING.items() if column in curves
    }
    for (source, target), (above, below, wrong) in zip(directions, grid.T, strict=True):
        own, lines = (rows_of(table, source=source, target=target) for table in (points, curves))
        for axes in (above, below, wrong):
            axes.axhline(0, color="0.4", linewidth=0.8)
        for column, look in knowing_nothing.items():
            line = lines.drop_duplicates("level").sort_values("level")
            below.plot(100 * line["level"], 100 * line[column], **look)
            wrong.plot(100 * line["level"], 100 * (line["level"] + line[column]), **look)
        for lane, (model, look) in enumerate(looks.items()):
            cloud = rows_of(own, model=model)
            for axes, column, alpha in (
                (above, "transfer_gap", 0.55),
                (below, "interlingual", 0.25),
                (wrong, "translated", 0.55),
            ):
                axes.scatter(
                    100 * cloud["training"], 100 * cloud[column], s=9, color=look["color"],
                    marker=look["marker"], alpha=alpha, linewidth=0,
                )  # fmt: skip
            rows = rows_of(lines, model=model).sort_values("level")
            at = 100 * rows["level"].to_numpy()
            _curve(below, rows, at, "igap", look, model)
            _crosses(below, at[rows["igap"].isna()], lane, look["color"])
        above.set_title(f"{source} → {target}", fontsize=9)
        below.set_xlim(left, -0.05 * left)
        wrong.set_ylim(bottom=0)
    grid[0, 0].set_ylabel("transfer gap\n(percentage points)")
    grid[1, 0].set_ylabel("interlingual gap, IGAP\n(percentage points)")
    grid[2, 0].set_ylabel("error on\ntranslations (%)")
    figure.supxlabel("training error E′ (%)", fontsize=9)
    handles = [Line2D([], [], label=model, markersize=4, **look) for model, look in looks.items()]
    handles += [
        Line2D([], [], label=_NAMED_NOTHING[column], **look)
        for column, look in knowing_nothing.items()
    ]
    if curves["igap"].isna().any():
        handles.append(_cross_handle())
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure


@styled
def decomposition(table: pd.DataFrame) -> Figure:
    """The parts of the cross-lingual error along fine-tuning, a row of panels a part (Figure 7).

    ``table`` has ``model``, ``source``, ``target``, ``quantity`` ("intralingual", "interlingual",
    "training" as in Equation 4, and "error", their sum, where it is wanted), ``step``, ``value``,
    ``low`` and ``high``. Columns of panels are directions; panels of a row have one scale.

    Raises ValueError for another quantity, or for more models than can be told apart (7).
    """
    check_known(table["quantity"], _PARTS, "quantity")
    parts = {part: label for part, label in _PARTS.items() if part in set(table["quantity"])}
    directions = _directions(table)
    looks = distinct_looks(list(dict.fromkeys(table["model"])), "models")
    figure, grid = plt.subplots(
        len(parts), len(directions),
        figsize=(max(6.7, 1.1 * len(directions) + 0.6), 1.55 * len(parts) + 0.9), squeeze=False,
        sharex=True, sharey="row",
    )  # fmt: skip
    for (part, label), panels in zip(parts.items(), grid, strict=True):
        for (source, target), axes in zip(directions, panels, strict=True):
            axes.axhline(0, color="0.4", linewidth=0.8)
            own = rows_of(table, quantity=part, source=source, target=target)
            for number, (model, look) in enumerate(looks.items()):
                rows = rows_of(own, model=model).sort_values("step")
                _curve(axes, rows, rows["step"].to_numpy(), "value", look, model)
                # the many checkpoints would hide the lines: a mark at every sixth, not the same
                axes.get_lines()[-1].set_markevery((number, 6) if len(rows) > 12 else 1)
            axes.locator_params(axis="x", nbins=3)
            axes.xaxis.set_major_formatter("{x:,.0f}")
        panels[0].set_ylabel(label)
    for (source, target), axes in zip(directions, grid[0], strict=True):
        axes.set_title(f"{source} → {target}", fontsize=9)
    figure.align_ylabels(grid[:, 0])
    figure.supxlabel("fine-tuning step", fontsize=9)
    figure.legend(
        *grid[0, 0].get_legend_handles_labels(), loc="outside upper center",
        ncols=min(len(looks), 5),
    )  # fmt: skip
    return figure


@styled
def ranking_dots(
    table: pd.DataFrame,
    summary: pd.DataFrame,
    *,
    printed: Mapping[str, float] | None = None,
) -> Figure:
    """Accuracy of transfer-direction ranking, a row a metric, a point a source (Tables 1 and 5).

    ``table`` has ``metric``, ``source`` and ``accuracy`` (Equation 6); up to five sources have a
    lane each in a row, and their names. ``summary`` has ``metric``, ``mean``, ``low`` and ``high``,
    drawn in black below the points, and may have ``random_low`` and ``random_high``, the interval
    of the mean with the languages permuted (`transferability.permuted_languages`), grey around it.
    ``printed`` maps a metric to the mean that the paper prints (hollow). Metrics stand as ``table``
    names them.

    Raises ValueError for a printed metric that the table does not have.
    """
    metrics, sources = (list(dict.fromkeys(table[key])) for key in ("metric", "source"))
    check_known(list(printed or {}), dict.fromkeys(metrics), "metric")
    named = len(sources) <= _NAMED
    lanes = np.linspace(-0.38, 0.08, len(sources)) if named else [-0.32, -0.08, -0.2, 0.04, -0.26]
    heights = dict(zip(sources, np.resize(lanes, len(sources)), strict=True))
    figure, axes = plt.subplots(
        figsize=(6.7, max(0.2 * len(sources) if named else 0, 0.4) * len(metrics) + 1.1)
    )
    axes.axvline(50, **_GUESSING)
    permuted = {"random_low", "random_high"} <= set(summary)
    for number, metric in enumerate(metrics):
        rows = rows_of(table, metric=metric)
        at = np.array([number + heights[source] for source in rows["source"]])
        axes.scatter(
            100 * rows["accuracy"], at, s=13, color="#0072B2", alpha=0.7, linewidth=0, zorder=3
        )
        for row, height in zip(rows.itertuples() if named else (), at, strict=False):
            if not np.isnan(row.accuracy):
                axes.annotate(
                    row.source, (100 * row.accuracy, height), xytext=(4, 0),
                    textcoords="offset points", va="center_baseline", fontsize=7,
                    path_effects=HALO,
                )  # fmt: skip
        mean = rows_of(summary, metric=metric)
        if permuted and len(mean):
            low, high = 100 * mean[["random_low", "random_high"]].to_numpy(float)[0]
            band = Rectangle((low, number + 0.15), high - low, 0.3, color="0.85", linewidth=0)
            axes.add_patch(band).set_zorder(0)
        axes.errorbar(
            100 * mean["mean"], np.full(len(mean), number + 0.3), xerr=_bars(mean, "mean"),
            fmt="o", color="black", capsize=3, linewidth=1.2, markersize=4, zorder=4,
        )  # fmt: skip
        if metric in (printed or {}):
            axes.plot(
                100 * printed[metric], number + 0.3, "D", color="#D55E00", fillstyle="none",
                markersize=7, zorder=5,
            )  # fmt: skip
    for edge in range(1, len(metrics)):
        axes.axhline(edge - 0.5, color="0.8", linewidth=0.6)
    axes.set_yticks(range(len(metrics)), metrics)
    axes.set_ylim(len(metrics) - 0.5, -0.5)
    axes.set_xlabel("accuracy of transfer-direction ranking (% of pairs of targets in order)")
    axes.grid(visible=False, axis="y")
    handles = [Line2D([], [], linestyle="none", marker="o", color="#0072B2", label="a source")]
    handles.append(axes.errorbar([], [], xerr=[], fmt="o", color="black", capsize=3, linewidth=1.2))
    handles[-1].set_label("mean, with interval")
    if printed:
        handles.append(
            Line2D(
                [], [], linestyle="none", marker="D", fillstyle="none", color="#D55E00",
                markersize=7, label="mean, printed",
            )
        )  # fmt: skip
    handles.append(Line2D([], [], label="chance", **_GUESSING))
    if permuted:
        handles.append(Patch(color="0.85", label="mean, languages permuted"))
    figure.legend(handles=handles, loc="outside upper center", ncols=5, columnspacing=1.2)
    return figure


@styled
def printed_and_ours(table: pd.DataFrame) -> Figure:
    """Numbers as printed, recomputed and ours, a row a model or algorithm (Tables 2, 3, 6 to 9).

    ``table`` has ``task``, ``quantity`` ("accuracy", "IGAP"), ``row`` (the model or algorithm),
    ``kind`` ("printed", "recomputed" from the rows that are printed, "ours"), ``value``, ``low``
    and ``high`` (missing where there is no interval). Rows of panels are tasks, columns quantities;
    a value that is missing is said in its place.

    Raises ValueError for another quantity or kind.
    """
    check_known(table["quantity"], _QUANTITIES, "quantity")
    check_known(table["kind"], _KINDS, "kind")
    tasks, rows = (list(dict.fromkeys(table[key])) for key in ("task", "row"))
    quantities = [each for each in _QUANTITIES if each in set(table["quantity"])]
    kinds = [kind for kind in _KINDS if kind in set(table["kind"])]
    shifts = dict(zip(kinds, np.linspace(-0.27, 0.27, len(kinds)), strict=True))
    at = {row: number for number, row in enumerate(rows)}
    height = (0.13 * len(kinds) + 0.12) * len(rows) + 0.75
    figure, grid = plt.subplots(
        len(tasks), len(quantities), figsize=(6.7, height * len(tasks) + 0.4), squeeze=False,
        sharex="col", sharey=True,
    )  # fmt: skip
    for task, panels in zip(tasks, grid, strict=True):
        for quantity, axes in zip(quantities, panels, strict=True):
            for kind in kinds:
                colour, marker, face, _ = _KINDS[kind]
                own = rows_of(table, task=task, quantity=quantity, kind=kind)
                heights = np.array([at[row] + shifts[kind] for row in own["row"]])
                axes.errorbar(
                    100 * own["value"], heights, xerr=_bars(own, "value"), fmt=marker, color=colour,
                    markerfacecolor=face, capsize=2, linewidth=1, markersize=4.5,
                )  # fmt: skip
                for middle in heights[own["value"].isna().to_numpy()]:
                    axes.annotate(
                        f"{kind}: none", (0.02, middle), xycoords=("axes fraction", "data"),
                        va="center_baseline", fontsize=7, color=colour,
                    )  # fmt: skip
            for edge in range(1, len(rows)):
                axes.axhline(edge - 0.5, color="0.8", linewidth=0.6)
            axes.set_yticks(range(len(rows)), rows)
            axes.set_ylim(len(rows) - 0.5, -0.5)
            axes.set_title(task, fontsize=9)
            axes.grid(visible=False, axis="y")
    for quantity, axes in zip(quantities, grid[-1], strict=True):
        axes.set_xlabel(_QUANTITIES[quantity])
    handles = [
        Line2D(
            [], [], linestyle="none", color=colour, marker=marker, markerfacecolor=face,
            label=label,
        )
        for colour, marker, face, label in (_KINDS[kind] for kind in kinds)
    ]  # fmt: skip
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure


@styled
def direction_maps(directions: pd.DataFrame) -> Figure:
    """Test accuracy, IGAP and transfer gap from source to target (Figures 2 and 4 to 6).

    ``directions`` has ``source``, ``target`` and one or more of ``accuracy``, ``igap`` and
    ``transfer_gap``, a panel each, and a row a direction of one task. Languages stand as they are
    named, sources before targets. Cells have their numbers, in three panels without decimals for
    more than 8 languages. Gaps of a language with itself are 0 by definition and hatched, whatever
    the table has; a number that is missing is a dash (no model in the window), and a direction that
    the table does not have stays grey. A good accuracy and a good IGAP are bright; the colours of
    the transfer gap are white at 0.

    Raises ValueError for a direction with more than one row, or none of the three.
    """
    maps = [each for each in _MAPS if each[0] in directions]
    if not maps:
        raise ValueError(
            f"there is no column to draw: one of {', '.join(each[0] for each in _MAPS)} is needed"
        )
    twice = directions[directions.duplicated(["source", "target"])]
    if len(twice):
        first = twice.iloc[0]
        raise ValueError(
            f"direction {first['source']} → {first['target']} has more than one row: draw one "
            "task, model and algorithm a figure"
        )
    codes = list(dict.fromkeys([*directions["source"], *directions["target"]]))
    sources = [code for code in codes if code in set(directions["source"])]
    targets = [code for code in codes if code in set(directions["target"])]
    decimals = 1 if len(targets) * len(maps) <= 3 * _WITH_DECIMALS else 0
    width = min(max(len(maps) * 0.36 * len(targets) + 0.9, 6.7), 10)
    figure, panels = plt.subplots(
        1, len(maps), sharey=True, squeeze=False,
        figsize=(width, (width - 0.7) / len(maps) * len(sources) / len(targets) + 1.6),
    )  # fmt: skip
    panels = panels[0]
    present = set(_directions(directions))
    for axes, (column, title, unit, colours, centred) in zip(panels, maps, strict=True):
        cells = 100 * directions.pivot(index="source", columns="target", values=column)
        cells = cells.reindex(index=sources, columns=targets).to_numpy(float, copy=True)
        same = np.array(sources)[:, None] == np.array(targets)
        if column != "accuracy":
            cells[same] = np.nan
        known = cells[~np.isnan(cells)]
        if centred:
            reach = np.abs(known).max(initial=0) or 1
            norm = Normalize(-reach, reach)
        else:
            norm = Normalize(*(known.min(), known.max()) if len(known) else (0, 100))
        axes.set_facecolor(_MISSING)
        mesh = axes.pcolormesh(
            np.ma.masked_invalid(cells), cmap=colours, norm=norm, edgecolor="white", linewidth=0.4
        )
        for (row, place), value in np.ndenumerate(cells):
            if same[row, place] and column != "accuracy":
                axes.add_patch(Rectangle((place, row), 1, 1, **_HATCHED))
            elif (sources[row], targets[place]) in present:
                text = "–" if np.isnan(value) else f"{value:.{decimals}f}".replace("-", "−")
                text = text.removeprefix("−") if not text.strip("−0.") else text  # no −0.0
                axes.annotate(
                    text, (place + 0.5, row + 0.5), ha="center", va="center_baseline",
                    fontsize=9 if np.isnan(value) else 7,
                    color="black" if np.isnan(value) else ink(np.array(mesh.to_rgba(value))),
                )  # fmt: skip
        axes.set(xlim=(0, len(targets)), ylim=(len(sources), 0), aspect="equal", title=title)
        axes.set_xticks(np.arange(len(targets)) + 0.5, targets)
        axes.set_yticks(np.arange(len(sources)) + 0.5, sources)
        axes.tick_params(length=0)
        axes.set_xlabel("target")
        axes.spines[:].set_visible(False)
        axes.grid(visible=False)
        bar = figure.colorbar(
            mesh, ax=axes, orientation="horizontal", pad=0.02, fraction=0.05, aspect=30
        )
        bar.set_label(unit, fontsize=8)
        bar.outline.set_visible(False)
    panels[0].set_ylabel("source")
    handles = [Patch(label="same language: 0 by definition", **_HATCHED)]
    if "igap" in directions and directions["igap"].isna().any():
        handles.append(Line2D([], [], linestyle="none", marker="$–$", color="black"))
        handles[-1].set_label(_NO_MODEL)
    if len(present) < len(sources) * len(targets):
        handles.append(Patch(color=_MISSING, label="not measured"))
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


def _apart(heights: np.ndarray, least: float) -> np.ndarray:
    """Heights moved as little as can be (least squares) so that each is ``least`` from the next."""
    order = np.argsort(heights, kind="stable")
    # without the distances that have to be, what is left is not to fall: pool what does
    pools: list[list[float]] = []
    for number, height in enumerate(heights[order]):
        pools.append([height - number * least])
        while len(pools) > 1 and np.mean(pools[-2]) > np.mean(pools[-1]):
            pools[-2:] = [pools[-2] + pools[-1]]
    moved = np.empty(len(heights))
    flat = [np.mean(pool) for pool in pools for _ in pool]
    moved[order] = np.array(flat) + least * np.arange(len(heights))
    return moved


@styled
def memorisation(table: pd.DataFrame) -> Figure:
    """Accuracy and IGAP by the share of labels that are random, a thin line a target (Figure 3).

    ``table`` has ``quantity`` ("accuracy", "IGAP"), ``target`` (missing in rows of the mean over
    targets), ``ratio``, ``value``, ``low``, ``high`` (for the mean) and ``chance`` (of a model that
    guesses in the target). A mean that is missing, for want of a model in the window, leaves a
    cross on the axis.

    Raises ValueError for another quantity.
    """
    check_known(table["quantity"], _QUANTITIES, "quantity")
    quantities = [each for each in _QUANTITIES if each in set(table["quantity"])]
    figure, panels = plt.subplots(
        1, len(quantities), figsize=(3.35 * len(quantities), 3.2), squeeze=False
    )
    look = {"color": "#0072B2", "marker": "o", "linestyle": "-"}
    for quantity, axes in zip(quantities, panels[0], strict=True):
        own = rows_of(table, quantity=quantity).sort_values("ratio")
        mean = own[own["target"].isna()]
        axes.plot(mean["ratio"], 100 * mean["chance"], **_GUESSING)
        ends = []
        for target in dict.fromkeys(own["target"].dropna()):
            rows = rows_of(own, target=target).dropna(subset="value")
            axes.plot(
                rows_of(own, target=target)["ratio"], 100 * rows_of(own, target=target)["value"],
                color="0.6", linewidth=0.7, zorder=1.5,
            )  # fmt: skip
            if len(rows):
                ends.append((target, rows["ratio"].iloc[-1], 100 * rows["value"].iloc[-1]))
        _curve(axes, mean, mean["ratio"].to_numpy(), "value", look, "mean")
        _crosses(axes, mean["ratio"][mean["value"].isna()].to_numpy(), 0, look["color"])
        low, high = axes.get_ylim()
        placed = _apart(np.array([height for *_, height in ends]), 0.045 * (high - low))
        for (target, ratio, height), middle in zip(ends, placed, strict=True):
            axes.annotate(
                target, (ratio, height), xytext=(1.07, middle), textcoords="data", fontsize=7,
                va="center", arrowprops={"arrowstyle": "-", "color": "0.7", "linewidth": 0.5},
            )  # fmt: skip
        axes.set(xlim=(-0.04, 1.16), xticks=np.linspace(0, 1, 6), ylim=(low, high))
        axes.set_xlabel("share of labels made random")
        axes.set_ylabel(_QUANTITIES[quantity])
    handles = [
        Line2D([], [], label="mean, with interval", **look),
        Line2D([], [], color="0.6", linewidth=0.7, label="a target"),
        Line2D([], [], label="guessing in the target", **_GUESSING),
    ]
    if (table["value"].isna() & table["target"].isna()).any():
        handles.append(_cross_handle())
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return figure
