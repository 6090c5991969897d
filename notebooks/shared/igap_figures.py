"""Figures of the interlingual transfer gap, IGAP (Chi et al., 2023).

Tables hold rates in [0, 1]; axes and cells show them as the paper prints them, in per cent or
points. Where no fine-tuned model is in the window of Equation 5 there is no number, and the figure
says so.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from xlx.plots.panels import (
    HATCHED,
    NOT_MEASURED,
    Panels,
    apart,
    check_once,
    number,
    order,
    rows_of,
    scale_about,
)
from xlx.plots.primitives import curves, heatmap, lanes, scatter
from xlx.plots.style import (
    ABOUT,
    BLUE,
    GUESSING,
    HIGH,
    MEASURES,
    NAMES,
    TINY,
    VERMILION,
    ZERO,
    handle,
    look,
    looks,
    styled,
)

#: Two ways to know nothing of a language, as columns of curves.
_NOTHING = {
    "chance": ("guessing in the target", (0, (1, 2))),
    "one_label": ("the commonest label there", (0, (6, 3))),
}
_GAPS = {
    "transfer_gap": "transfer gap\n(points)",
    "interlingual": "interlingual gap,\nIGAP (points)",
    "translated": "error on\ntranslations (%)",
}
_PARTS = {
    "intralingual": "intralingual\ngap (points)",
    "interlingual": "interlingual\ngap (points)",
    "training": "training\nerror (%)",
}
_QUANTITIES = {"accuracy": "accuracy (%)", "IGAP": "IGAP (points)"}
_KINDS = ("printed", "recomputed", "ours")
_MAPS = {
    "accuracy": "test accuracy (%)",
    "igap": "IGAP (points)",
    "transfer_gap": "transfer gap (points)",
}
_PANELS = ("quantity", "direction")


def _directed(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(direction=table["source"] + " → " + table["target"])


def _rows_named(on: Panels, labels: Mapping[str, str]) -> None:
    """Name rows of panels at the left and columns above."""
    first = next(iter(on.axes))
    for (part, direction), axes in on.axes.items():
        axes.set_title(direction if part == first[0] else "")
        axes.set_ylabel(labels[part] if direction == first[1] else "")
        if part != "translated":
            axes.axhline(0, **ZERO | {"zorder": 1})
    on.figure.align_ylabels()


def _crosses(axes: Axes, x: np.ndarray, lane: int, colour: object) -> None:
    """Say in a strip at the foot where there is no number, in a lane for each curve."""
    axes.plot(x, np.full(len(x), 0.035 + 0.045 * lane), "x", color=colour, markersize=3.5,
              markeredgewidth=1, transform=axes.get_xaxis_transform())  # fmt: skip


def _no_model() -> Line2D:
    return Line2D([], [], linestyle="none", marker="x", color="0.3", markersize=3.5,
                  label="no model in the window")  # fmt: skip


@styled
def gap_points_and_curves(points: pd.DataFrame, curves: pd.DataFrame) -> Figure:
    """Transfer gap, IGAP and error by training error, a column a direction (Figure 1).

    ``points`` has ``model``, ``source``, ``target``, ``training``, ``transfer_gap`` and
    ``interlingual``, a row a fine-tuned model. ``curves`` has ``model``, ``source``, ``target``,
    ``level`` (E′), ``igap``, ``low`` and ``high``, missing where no model is in the window: there
    the curve is broken and a cross of its colour stands in the strip below; ``chance`` and
    ``one_label`` are the gaps of models that guess in the target language and that give it the
    commonest label. The third row has the error on the translations, training error and
    interlingual gap together: where it is level, nothing crosses, and the gap above it grows all
    the same as the training error falls. Training errors above the highest level are left out;
    where that leaves nothing, crosses and lines alone are drawn.
    """
    levels = np.unique(curves["level"])
    left = 2 * levels[-1] - levels[-2] if len(levels) > 1 else levels[-1] + 0.05
    points = _directed(points[points["training"] <= left + 1e-9])  # rounding
    points["translated"] = points["training"] + points["interlingual"]
    lines = _directed(curves)
    keys = ["model", "direction", "training"]
    long = points.melt(keys, list(_GAPS), "quantity").dropna(subset="value")
    # a direction in which nothing was learnt that far has its panels, too
    empty = lines[["model", "direction"]].drop_duplicates().assign(quantity="interlingual")
    long = pd.concat([long, empty[~empty["direction"].isin(long["direction"])]])
    long = long.sort_values("quantity", key=lambda q: q.map(list(_GAPS).index), kind="stable")
    styles = looks([*lines["model"], *points["model"]])
    on = scatter(
        long, x="training", y="value", series="model", panel=_PANELS, looks=styles, scale=100,
        size=9, alpha=0.45, width=2.1 if lines["direction"].nunique() > 2 else 3.4, height=1.55,
        sharey="row",
    )  # fmt: skip
    strip = 0.05 + 0.045 * len(styles)
    for (part, direction), axes in on.axes.items():
        rows = rows_of(lines, direction=direction)
        once = rows.drop_duplicates("level").sort_values("level")
        for column, (_, dash) in _NOTHING.items():
            if part != "transfer_gap":
                level = once["level"] if part == "translated" else 0
                axes.plot(
                    100 * once["level"],
                    100 * (level + once[column]),
                    **GUESSING | {"linestyle": dash},
                )
        if part == "interlingual":
            middle = axes
            _igap(axes, rows, styles)
            axes.axhspan(0, strip, transform=axes.transAxes, color="0.95", zorder=0)
        axes.set_xlim(100 * left, -5 * left)
    low, high = middle.get_ylim()  # that of all in the row
    middle.set_ylim(low - strip / (1 - strip) * (high - low), high)
    _rows_named(on, _GAPS)
    handles = [
        handle(label, GUESSING | {"linestyle": dash, "marker": ""}, line=True)
        for label, dash in _NOTHING.values()
    ]  # fmt: skip
    handles += [_no_model()] if lines["igap"].isna().any() else []
    return on.done("training error E′ (%)", handles=handles)


def _igap(axes: Axes, rows: pd.DataFrame, styles: Mapping) -> None:
    """IGAP of each model with error bars, a little apart, and crosses where there is none."""
    step = np.diff(np.unique(100 * rows["level"])).min() if rows["level"].nunique() > 1 else 1
    for lane, (model, shown) in enumerate(styles.items()):
        line = rows_of(rows, model=model).sort_values("level")
        x = 100 * line["level"].to_numpy() + step * 0.2 * (lane - (len(styles) - 1) / 2)
        value = 100 * line["igap"]
        ends = np.maximum([value - 100 * line["low"], 100 * line["high"] - value], 0)
        axes.errorbar(x, value, yerr=ends, capsize=1.5, linewidth=1, markersize=4, **shown)
        _crosses(axes, x[line["igap"].isna()], lane, shown["color"])


@styled
def decomposition(table: pd.DataFrame) -> Figure:
    """The parts of the cross-lingual error along fine-tuning, a row of panels a part (Figure 7).

    ``table`` has ``model``, ``source``, ``target``, ``quantity`` ("intralingual", "interlingual",
    "training" as in Equation 4), ``step``, ``value``, ``low`` and ``high``. Columns of panels are
    directions.
    """
    table = _directed(table)
    table = pd.concat([rows_of(table, quantity=part) for part in _PARTS])
    wide = table["direction"].nunique() <= 2
    on = curves(
        table, x="step", value="value", series="model", panel=_PANELS, scale=100, markersize=3,
        every=6 if table["step"].nunique() > 12 else None, sharex=True, sharey="row",
        width=3.4 if wide else 2.1, height=1.3,
    )  # fmt: skip
    for axes in on.axes.values():
        axes.locator_params(axis="x", nbins=3)
        axes.xaxis.set_major_formatter("{x:,.0f}")
    _rows_named(on, _PARTS)
    return on.done("fine-tuning step")


@styled
def ranking_dots(
    table: pd.DataFrame, summary: pd.DataFrame, *, printed: Mapping[str, float]
) -> Figure:
    """Accuracy of transfer-direction ranking, a row a metric, a point a source (Tables 1 and 5).

    ``table`` has ``metric``, ``source`` and ``accuracy`` (Equation 6). ``summary`` has ``metric``,
    ``mean``, ``low`` and ``high``, drawn in black below the points, and ``random_low`` and
    ``random_high``, the interval of the mean with the languages permuted
    (`ranking.permuted_languages`), grey around it. ``printed`` maps metrics to the mean that the
    paper prints (hollow).
    """
    metrics = order(table, "metric")
    options = {"item": "metric", "items": metrics, "scale": 100}
    on = lanes(
        table.assign(series="a source"), value="accuracy", series="series", shift=-0.13, low="",
        looks={"a source": look(BLUE, "o")}, alpha=0.75, spread=0.35, width=5.2, lane=0.3,
        **options,
    )  # fmt: skip
    lanes(summary, value="mean", on=on, shift=0.28, looks={None: look("black", "o")}, capsize=3,
          labels={None: "mean, with interval"}, **options)  # fmt: skip
    means = pd.DataFrame(printed.items(), columns=["metric", "mean"])
    lanes(means, value="mean", on=on, shift=0.28, looks={None: look(VERMILION, "D", hollow=True)},
          labels={None: "mean, printed"}, **options)  # fmt: skip
    (axes,) = on.axes.values()
    axes.axvline(50, **GUESSING, label="chance")
    rows = summary["metric"].map(metrics.index)
    width = 100 * (summary["random_high"] - summary["random_low"])
    axes.barh(rows + 0.28, width, 0.3, 100 * summary["random_low"], color="0.87", zorder=0,
              label="mean, languages permuted")  # fmt: skip
    return on.done("accuracy of transfer-direction ranking (% of pairs of targets in order)")


@styled
def printed_and_ours(table: pd.DataFrame) -> Figure:
    """Numbers as printed, recomputed and ours, a row a model or algorithm (Tables 2, 3, 6 to 9).

    ``table`` has ``task``, ``quantity`` ("accuracy", "IGAP"), ``row`` (the model or algorithm),
    ``kind`` ("printed", "recomputed" from the rows that are printed, "ours"), ``value``, ``low``
    and ``high`` (missing where there is no interval). Rows of panels are tasks, columns quantities;
    a value that is missing is said in its place.
    """
    rows = order(table, "row")
    table = pd.concat([rows_of(table, quantity=name) for name in _QUANTITIES])
    on = lanes(
        table, item="row", items=rows, value="value", series="kind", panel=("task", "quantity"),
        looks={kind: MEASURES[kind] for kind in _KINDS}, labels=NAMES, scale=100, missing=True,
        lane=0.1, width=3.3 if table["quantity"].nunique() > 1 else 5, sharex="col",
    )  # fmt: skip
    on.titles(lambda key: f"{key[0]}: {_QUANTITIES[key[1]]}")
    for axes in on.axes.values():
        if not any(
            len(line.get_xdata()) > 0 for line in axes.get_lines() if line.get_marker() != "None"
        ):
            axes.text(0.5, 0.5, "no number", transform=axes.transAxes, ha="center", fontsize=TINY)
    return on.done()


@styled
def direction_maps(directions: pd.DataFrame) -> Figure:
    """Test accuracy, IGAP and transfer gap from source to target (Figures 2 and 4 to 6).

    ``directions`` has ``source``, ``target`` and one or more of ``accuracy``, ``igap`` and
    ``transfer_gap``, a panel each, and a row a direction of one task. Gaps of a language with
    itself are 0 by definition and hatched; a number that is missing is a dash (no model in the
    window), and a direction that the table does not have stays grey. Scales are at least 20 points
    wide, and that of the transfer gap is white at 0.

    Raises ValueError for a direction with more than one row.
    """
    check_once(directions, "source", "target")
    maps = {name: label for name, label in _MAPS.items() if name in directions}
    codes = list(dict.fromkeys([*directions["source"], *directions["target"]]))
    sides = {
        side: [c for c in codes if c in set(directions[side])] for side in ("source", "target")
    }
    table = directions.melt(["source", "target"], list(maps), "map")
    itself = (table["source"] == table["target"]) & (table["map"] != "accuracy")
    table["value"] = 100 * table["value"].astype(float).mask(itself)
    decimals = 1 if len(sides["target"]) * len(maps) <= 24 else 0
    table = table.assign(itself=itself, written=table["value"].map(lambda v: number(v, decimals)))
    room = 8 / len(maps) / len(sides["target"])
    on = heatmap(
        table, row="source", column="target", value="value", panel="map", rows=sides["source"],
        across=sides["target"], written="written", hatched="itself",
        cell=(min(0.42, room), min(0.34, room)), edge=(0.7, 1.5),
        norm={name: _scale(name, rows_of(table, map=name)["value"]) for name in maps},
        cmap={name: ABOUT if name == "transfer_gap" else HIGH for name in maps},
        bar_by=lambda key: key, bar=maps,
    )  # fmt: skip
    on.titles({name: label.partition(" (")[0] for name, label in maps.items()})
    handles = [Patch(label="same language: 0 by definition", **HATCHED)]
    if "igap" in maps and directions["igap"].isna().any():
        handles.append(Line2D([], [], linestyle="none", marker="$–$", color="black",
                              label="no model in the window"))  # fmt: skip
    if len(directions) < len(sides["source"]) * len(sides["target"]):
        handles.append(Patch(**NOT_MEASURED))
    return on.done("target", "source", handles=handles)


def _scale(name: str, values: pd.Series) -> Normalize:
    """Of one map in per cent; not so narrow that noise looks vivid."""
    if name == "transfer_gap":
        return scale_about(values, 0, 10)
    middle, half = (values.min() + values.max()) / 2, max(10, (values.max() - values.min()) / 2)
    return Normalize(middle - half, middle + half)


@styled
def memorisation(table: pd.DataFrame) -> Figure:
    """Accuracy and IGAP by the share of labels that are random, a thin line a target (Figure 3).

    ``table`` has ``quantity`` ("accuracy", "IGAP"), ``target`` (missing in rows of the mean over
    targets), ``ratio``, ``value``, ``low``, ``high`` (for the mean) and ``chance`` (of a model that
    guesses in the target). A mean that is missing, for want of a model in the window, leaves a
    cross on the axis.
    """
    table = pd.concat([rows_of(table, quantity=name) for name in _QUANTITIES])
    mean, targets = table[table["target"].isna()], table[table["target"].notna()]
    shown = {"x": "ratio", "panel": "quantity", "scale": 100}
    styles = {None: look(BLUE, "o")}
    on = curves(mean, value="value", looks=styles, labels={None: "mean, with interval"}, width=3.6,
                sharey=False, height=2.5, **shown)  # fmt: skip
    curves(mean, value="chance", on=on, low="", linewidth=1, **shown,
           looks={None: GUESSING | {"marker": ""}},
           labels={None: "guessing in the target"})  # fmt: skip
    thin = {name: look("0.6", "") for name in order(targets, "target")}
    curves(targets, value="value", series="target", looks=thin, on=on, low="",
           labels=dict.fromkeys(thin, "a target"), linewidth=0.7, zorder=1.5, **shown)  # fmt: skip
    for axes, rows in on.each(targets):
        low, high = axes.get_ylim()
        last = (
            rows.dropna(subset="value").sort_values("ratio").drop_duplicates("target", keep="last")
        )
        placed = apart(100 * last["value"].to_numpy(float), 0.06 * (high - low))
        for row, height in zip(last.itertuples(), placed, strict=True):
            axes.annotate(
                row.target, (row.ratio, 100 * row.value), xytext=(1.07, height), fontsize=TINY,
                va="center", arrowprops={"arrowstyle": "-", "color": "0.7", "linewidth": 0.5},
            )  # fmt: skip
        axes.set(xlim=(-0.04, 1.18), xticks=np.linspace(0, 1, 6), ylim=(low, high))
    for axes, rows in on.each(mean):
        _crosses(axes, rows["ratio"][rows["value"].isna()].to_numpy(), 0, BLUE)
    on.titles(_QUANTITIES)
    missing = [_no_model()] if mean["value"].isna().any() else []
    return on.done("share of labels made random", handles=missing)
