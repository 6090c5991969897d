"""The parts of an error, and IGAP by training error (Figures 1 and 7 of the IGAP paper).

Tables hold rates in [0, 1]; axes show them as the paper prints them, in per cent or points.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from shared import translation
from shared.mixing_tables import ratio_values
from shared.shown import as_points, asking, in_points
from xlx.experiment.grids import groups_of
from xlx.experiment.transfers import Transfers
from xlx.measures.igap import MEAN_TARGET, crossed_interval
from xlx.plots.panels import Layout, panels, rows_of
from xlx.plots.primitives import curves
from xlx.plots.style import GUESSING, language_label, styled

#: The parts of an error, from the left.
PARTS = {
    "training": "training error",
    "interlingual": "interlingual gap",
    "intralingual": "intralingual gap",
}
#: Shares of subwords below which a pair shares few, and above which many.
FEW, MANY = 0.2, 0.5


# --- tables ---------------------------------------------------------------------------------------


def directed(table: pd.DataFrame, here: Mapping[str, str], targets: Sequence[str]) -> pd.DataFrame:
    """The rows of one model and source, of some targets or, where it has none of them, of all."""
    table = rows_of(table, **here)
    some = table[table["target"].isin(targets)]
    return some if len(some) else table[table["target"] != MEAN_TARGET]


def by_target(gaps: pd.DataFrame, strings: pd.Series, printed: pd.Series) -> pd.DataFrame:
    """`Transfers.gap_table` of one source beside baselines, in points as text."""
    columns = {
        "minimum": gaps["minimum"].map(in_points),
        "IGAP": as_points(gaps, "value"),
        "kept": as_points(gaps, "kept"),
        "strings": strings.reindex(gaps.index).map(in_points),
        "printed": printed.reindex(gaps.index).map(in_points),
    }
    return pd.DataFrame(columns).replace("no model", "")


def loss_correlations(of_model: Transfers) -> pd.Series:
    """Mean correlation (φ) of what two last checkpoints get wrong in translation, by what differs.

    Of one source; "seed": in one language; "language": of one run; "both".
    """
    wrong = np.array([*of_model.last_wrong("train").values()], float)
    n_targets, n_seeds, n = wrong.shape
    target, seed = np.divmod(np.arange(n_targets * n_seeds), n_seeds)
    differs = target[:, None] != target, seed[:, None] != seed
    r = np.corrcoef(wrong.reshape(-1, n))
    masks = {"seed": (0, 1), "language": (1, 0), "both": (1, 1)}
    return pd.Series(
        {x: r[(differs[0] == t) & (differs[1] == s)].mean() for x, (t, s) in masks.items()}
    )


def by_overlap(
    of_model: Transfers, overlap: np.ndarray, level: float, tolerance: float
) -> pd.DataFrame:
    """What of entailed and other pairs is lost where source texts share few or many subwords.

    ``overlap``, ``(n,)``: shares of the source's pairs; few: below `FEW`, many: above
    `MANY`. A row a class: both and their difference, with intervals, mean over targets.
    """
    part = next(iter(of_model.task.train.values()))
    lost = np.mean([*of_model.losses(level, tolerance).values()], axis=0)
    rows = {}
    for k, name in enumerate(part.classes):
        masks = [(part.labels == k) & x for x in (overlap < FEW, overlap > MANY)]
        few, many = (ratio_values(lost * x, 1.0 * x) for x in masks)
        values = {"few": few, "many": many, "few less many": few - many}
        rows[name] = {
            x: in_points(*crossed_interval(y, groups_of(part))) for x, y in values.items()
        }
    return pd.DataFrame(rows).T


def at_equal_translation(
    of_model: Transfers, grades: Mapping[str, np.ndarray], level: float, tolerance: float
) -> tuple[pd.DataFrame, np.ndarray]:
    """IGAP of one source's targets as if all were translated alike (`translation.at_equal`).

    ``grades``: `translation.graded`. By target their means, IGAP as it is (``plain``) and at equal
    bits and, by class, shared subwords (``value, low, high``); and the slopes, of bits first.
    """
    source, task = of_model.runs[0].source, of_model.task
    part, losses = task.train[source], of_model.losses(level, tolerance)
    codes = [code for code in task.train if code != source]
    lost = np.array([losses[source, code] for code in codes])
    shared = [grades["shared"] * (part.labels == k) for k in range(len(part.classes))]
    equal, slopes = translation.at_equal(lost, [grades["right"], *shared], groups_of(part))
    means = {name: values.mean(axis=1) for name, values in grades.items()}
    table = equal.assign(plain=lost.mean(axis=(1, 2)), **means)
    return table.set_axis(codes), slopes


# --- figures --------------------------------------------------------------------------------------


@styled
def gap_points_and_curves(points: pd.DataFrame, lines: pd.DataFrame) -> Figure:
    """IGAP of one model by training error, one panel per direction (Figure 1, below).

    ``points`` has ``source``, ``target``, ``training`` and ``interlingual``, one row per fine-tuned
    model; those above the highest level are left out. ``lines``: ``source``, ``target``, ``level``,
    ``igap``, ``low`` and ``high``, missing where no model is in the window: there the curve is
    broken. ``chance`` is the gap of a model that guesses in the target language.
    """
    points = _directed(points[points["training"] <= lines["level"].max() + 0.05])
    lines = _directed(lines).assign(percent=100 * lines["level"])
    least = "the least gap at this training error"
    on = curves(
        lines,
        "percent",
        "igap",
        col="direction",
        scale=100,
        bars=True,
        labels=least,
        wrap=3,
        height=2.2,
    )
    curves(
        lines,
        "percent",
        "chance",
        scale=100,
        interval=False,
        labels="guessing",
        looks=GUESSING,
        on=on,
    )
    for axes, rows in on.each(points):
        places = 100 * rows["training"], 100 * rows["interlingual"]
        axes.plot(*places, ".", color="0.6", zorder=1, label="a checkpoint")
        axes.set_ylim(bottom=0)
    figure = on.done("training error (%)", "lost in translation (points)")
    return asking("How much is lost in translation at equal training error?", figure)


@styled
def error_parts(table: pd.DataFrame) -> Figure:
    """The cross-lingual error of each target as a bar of its three parts (Equation 4, Figure 7).

    ``table`` has ``source``, ``target`` and the columns of `PARTS`, rates in [0, 1]; ``guess``, the
    error of guessing, is a line. One panel per source.
    """
    height = 0.16 * table["target"].nunique() + 1
    on = panels(table, col="source", layout=Layout(3, 2.7, height, sharey=False))
    mean = table.groupby("target")["interlingual"].mean()
    for axes, rows in on.each(table):
        rows = rows.sort_values("target", key=lambda target: target.map(mean))
        left, places = np.zeros(len(rows)), range(len(rows))
        for (part, label), grey in zip(PARTS.items(), ("0.25", "0.55", "0.85"), strict=True):
            width = 100 * rows[part].to_numpy()
            axes.barh(places, width, left=left, height=0.75, color=grey, label=label)
            left = left + width
        axes.axvline(100 * rows["guess"].iloc[0], **GUESSING, label="guessing")
        axes.set_yticks(places, map(language_label, rows["target"]))
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(visible=False, axis="y")
    on.titles(lambda source: f"learnt in {language_label(source)}")
    figure = on.done("error on new pairs of the target (%)")
    return asking("How much of an error is lost in translation?", figure)


def _directed(table: pd.DataFrame) -> pd.DataFrame:
    ends = (table[end].map(language_label) for end in ("source", "target"))
    return table.assign(direction=[" → ".join(pair) for pair in zip(*ends, strict=True)])
