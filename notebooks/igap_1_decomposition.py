"""The interlingual transfer gap by training error (Figures 1 and 7 of the IGAP paper).

Tables hold rates in [0, 1]; axes show them as the paper prints them, in per cent or points.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from xlx.plots import primitives
from xlx.plots.panels import Panels, rows_of
from xlx.plots.style import GUESSING, ZERO, looks, styled

#: Rows of panels, and what stands at their left.
GAPS = {
    "transfer_gap": "transfer gap\n(points)",
    "interlingual": "interlingual gap,\nIGAP (points)",
    "translated": "error on\ntranslations (%)",
}
PARTS = {
    "intralingual": "intralingual\ngap (points)",
    "interlingual": "interlingual\ngap (points)",
    "training": "training\nerror (%)",
}
#: Two ways to know nothing of a language, as columns of curves.
NOTHING = {"chance": "guessing in the target", "one_label": "the commonest label there"}
NO_MODEL = {"linestyle": "none", "marker": "x", "markersize": 3.5}


def model_order(
    points: pd.DataFrame, curves: pd.DataFrame, models: Sequence[str], tolerance: float
) -> pd.DataFrame:
    """How often each model is best, whether gaps are negative, whether IGAP grows; by task.

    A comparison is of the models that have a checkpoint at one level of one direction.
    """
    tasks, direction = curves["task"].unique(), ["task", "source", "target"]
    placed = curves.dropna(subset="crossfitted")
    peers = placed.groupby([*direction, "level"])
    placed = placed.assign(
        place=peers["crossfitted"].rank(), of=peers["model"].transform("size")
    ).query("of > 1")
    compared = placed.drop_duplicates([*direction, "level"])["task"].value_counts()
    tables = [compared.reindex(tasks, fill_value=0).to_frame("comparisons").T]
    for what, rows in (
        ("best, crossfitted", placed[placed["place"] == 1]),
        ("second of three", placed[(placed["of"] == 3) & (placed["place"] == 2)]),
    ):
        counts = pd.crosstab(rows["model"], rows["task"]).reindex(models, columns=tasks)
        tables.append(counts.fillna(0).add_prefix(f"{what}: ", axis=0))
    near = points[points["training"] <= curves["level"].max() + tolerance]
    falling = curves.sort_values("level", ascending=False)
    for what, table, above in (
        ("interlingual gap below 0, %", near, -near["interlingual"]),
        ("transfer gap below 0, %", near, -near["transfer_gap"]),
        ("IGAP grows from one level to the next, %", falling,
         falling.groupby([*direction, "model"])["igap"].diff()),
    ):  # fmt: skip
        shares = (above.dropna() > 0).groupby(table["task"]).mean()
        tables.append(100 * shares.to_frame(what).T)
    return pd.concat(tables)[tasks].rename_axis(columns=None)


# --- figures --------------------------------------------------------------------------------------


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
    step = levels[-1] - levels[-2] if len(levels) > 1 else 0.05
    points = _directed(points[points["training"] <= levels[-1] + step + 1e-9])  # rounding
    points["translated"] = points["training"] + points["interlingual"]
    lines = _directed(curves).assign(percent=100 * curves["level"], quantity="interlingual")
    long = points.melt(["model", "direction", "training"], list(GAPS), "quantity").dropna()
    # a direction in which nothing was learnt that far has its panels, too
    empty = lines[["model", "direction", "quantity"]].drop_duplicates()
    long = pd.concat([long, empty[~empty["direction"].isin(long["direction"])]])
    long = long.sort_values("quantity", key=lambda q: q.map(list(GAPS).index), kind="stable")
    styles = looks([*lines["model"], *points["model"]])
    shown = {"panel": ("quantity", "direction"), "scale": 100}
    on = primitives.scatter(
        long, x="training", y="value", series="model", looks=styles, size=9, alpha=0.45,
        width=2.1 if lines["direction"].nunique() > 2 else 3.4, height=1.55, sharey="row", **shown,
    )  # fmt: skip
    primitives.curves(lines, x="percent", value="igap", series="model", looks=styles, on=on,
                      bars=True, shift=20 * step, linewidth=1, **shown)  # fmt: skip
    for (column, label), dash in zip(NOTHING.items(), ((0, (1, 2)), (0, (6, 3))), strict=True):
        for quantity, more in (("interlingual", 0), ("translated", lines["level"])):
            primitives.curves(
                lines.drop_duplicates(["direction", "level"])
                .assign(quantity=quantity, nothing=lines[column] + more),
                x="percent", value="nothing", low="", on=on, labels={None: label}, linewidth=1,
                looks={None: GUESSING | {"linestyle": dash, "marker": ""}}, **shown,
            )  # fmt: skip
    strip = 0.05 + 0.045 * len(styles)
    for axes, rows in on.each(lines):
        axes.set_xlim(100 * (levels[-1] + step), -5 * (levels[-1] + step))
        for lane, (model, look) in enumerate(styles.items() if len(rows) else ()):
            none = rows_of(rows, model=model).query("igap.isna()")["percent"]
            axes.plot(none, np.full(len(none), 0.035 + 0.045 * lane), color=look["color"],
                      transform=axes.get_xaxis_transform(), **NO_MODEL)  # fmt: skip
        if len(rows):
            middle = axes
            axes.axhspan(0, strip, transform=axes.transAxes, color="0.95", zorder=0)
    low, high = middle.get_ylim()  # that of all in the row
    middle.set_ylim(low - strip / (1 - strip) * (high - low), high)
    _rows_named(on, GAPS)
    none = [Line2D([], [], color="0.3", label="no model in the window", **NO_MODEL)]
    return on.done("training error E′ (%)", handles=none if lines["igap"].isna().any() else ())


@styled
def decomposition(table: pd.DataFrame) -> Figure:
    """The parts of the cross-lingual error along fine-tuning, a row of panels a part (Figure 7).

    ``table`` has ``model``, ``source``, ``target``, ``quantity`` ("intralingual", "interlingual",
    "training" as in Equation 4), ``step``, ``value``, ``low`` and ``high``. Columns of panels are
    directions.
    """
    table = _directed(pd.concat([rows_of(table, quantity=part) for part in PARTS]))
    wide = table["direction"].nunique() <= 2
    on = primitives.curves(
        table, x="step", value="value", series="model", panel=("quantity", "direction"), scale=100,
        markersize=3, every=6 if table["step"].nunique() > 12 else None, sharex=True, sharey="row",
        width=3.4 if wide else 2.1, height=1.3,
    )  # fmt: skip
    for axes in on.axes.values():
        axes.locator_params(axis="x", nbins=3)
        axes.xaxis.set_major_formatter("{x:,.0f}")
    _rows_named(on, PARTS)
    return on.done("fine-tuning step")


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
