"""Tables of probing accuracies → figures: what `plots` is to ABX scores, for X-Probe.

The same rules hold: a function draws what its table holds and computes nothing but where to put it.
Accuracies are in [0, 1] and stand in cells as the paper prints them. Languages stand by code and
name; languages, encoders and tasks in the order in which the table names them. Every cell has its
number, so a grey print can be read.
"""

from collections.abc import Callable, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from xlx.languages import LANGUAGES
from xlx.panels import check_once, distinct_looks, frame, ink, language_label, rows_of
from xlx.plots import styled

_MISSING = "0.85"
_MAJORITY = {"color": "0.35", "linewidth": 1.1, "linestyle": (0, (1, 1))}
#: The sides of a cell in inches: room for the name of a task; for two lines; for one.
_WIDE, _HIGH, _LOW = 0.6, 0.36, 0.21
#: Ratios further than this from 1 all have the deepest colour: one of 0.00 to 0.01 is no scale.
_REACH = 0.5


def _setting(code: str) -> str:
    """ "de" as "de German", "fr-UN" as "fr-UN French"; what is no language stays as it is."""
    base = code.split("-")[0]
    return f"{code} {LANGUAGES[base].name}" if code not in LANGUAGES and base in LANGUAGES else (
        language_label(code)
    )  # fmt: skip


def _ordered(table: pd.DataFrame, column: str) -> list[str]:
    return list(dict.fromkeys(table[column]))


def _some(table: pd.DataFrame, value: str) -> None:
    if table[value].dropna().empty:
        raise ValueError(f"there is no {value} to draw: the table has no rows, or none with one")


def _grid(
    table: pd.DataFrame, row: str, column: str, value: str, rows: Sequence, columns: Sequence
) -> np.ndarray:
    """Values as ``(rows, columns)``, NaN where the table has none."""
    cells = table.pivot(index=row, columns=column, values=value)
    return cells.reindex(index=list(rows), columns=list(columns)).to_numpy(float)


def _cells(
    axes: Axes, values: np.ndarray, written: Callable[[int, int], str], colours: str,
    norm: Normalize, height: float = 1.0,
) -> QuadMesh:  # fmt: skip
    """Coloured cells with text in them, the first row above; grey where there is no number."""
    axes.set_facecolor(_MISSING)
    mesh = axes.pcolormesh(
        np.ma.masked_invalid(values), cmap=colours, norm=norm, edgecolor="white", linewidth=0.4
    )
    for (row, column), value in np.ndenumerate(values):
        if not np.isnan(value):
            axes.annotate(
                written(row, column), (column + 0.5, row + 0.5), ha="center",
                va="center" if height > 1 else "center_baseline", fontsize=7, linespacing=height,
                color=ink(np.array(mesh.to_rgba(value))),
            )  # fmt: skip
    axes.set(xlim=(0, values.shape[1]), ylim=(values.shape[0], 0))
    axes.tick_params(length=0, labelsize=8)
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)
    return mesh


def _number(value: float) -> str:
    """Two decimals, with a minus sign and no negative zero."""
    text = f"{value:.2f}".replace("-", "−")
    return text.removeprefix("−") if not text.strip("−0.") else text


def _upright(axes: Axes, names: Sequence[str]) -> None:
    """Names of columns below them, turned where they would touch."""
    axes.set_xticks(np.arange(len(names)) + 0.5, names)
    if max(map(len, names)) > 9:
        plt.setp(axes.get_xticklabels(), rotation=35, ha="right", rotation_mode="anchor")


@styled
def accuracies(table: pd.DataFrame) -> Figure:
    """Probing accuracy by encoder and task, a map a corpus, one below the other (Figure 2).

    ``table`` has ``encoder``, ``task``, ``corpus`` and ``accuracy``. ``corpus`` is whatever makes a
    map: the corpora that a task was built from, or languages, which then stand by code and name. A
    bright cell is a high accuracy, on one scale from 0 to 1 for all maps: tasks differ in how many
    classes they have, so only cells of a column can be compared.

    Raises ValueError for two accuracies of one cell, or none in the table.
    """
    check_once(table, "encoder", "task", "corpus")
    _some(table, "accuracy")
    return _maps(table, "corpus", "accuracy", "probing accuracy", "cividis", Normalize(0, 1), 30)


def _maps(
    table: pd.DataFrame, by: str, value: str, label: str, colours: str, norm: Normalize,
    aspect: int, extend: str = "neither",
) -> Figure:  # fmt: skip
    """A map of encoders and tasks for each of `by`, one below the other, one bar for all."""
    parts, encoders, tasks = (_ordered(table, key) for key in (by, "encoder", "task"))
    figure, panels = plt.subplots(
        len(parts), 1, sharex=True, squeeze=False,
        figsize=(_WIDE * len(tasks) + 2.3, len(parts) * (_LOW * len(encoders) + 0.3) + 0.6),
    )  # fmt: skip
    empty = False
    for part, axes in zip(parts, panels[:, 0], strict=True):
        values = _grid(rows_of(table, **{by: part}), "encoder", "task", value, encoders, tasks)
        empty |= bool(np.isnan(values).any())
        mesh = _cells(
            axes, values, lambda row, column, own=values: _number(own[row, column]), colours, norm
        )
        axes.set_title(_setting(part), fontsize=9)
        axes.set_yticks(np.arange(len(encoders)) + 0.5, encoders)
    _upright(panels[-1, 0], tasks)
    bar = figure.colorbar(mesh, ax=panels, fraction=0.03, pad=0.01, aspect=aspect, extend=extend)
    bar.set_label(label)
    bar.outline.set_visible(False)
    if empty:
        handles = [Patch(color=_MISSING, label="not measured")]
        figure.legend(handles=handles, loc="outside lower center")
    return figure


@styled
def correlations(table: pd.DataFrame) -> Figure:
    """Rank correlation of probing and a downstream task, a row a language (Figure 3).

    ``table`` has ``language``, ``task``, ``rho``, ``low`` and ``high``, as `xprobe.correlations`
    gives it. A cell has ρ and below it the interval; it is framed where the interval does not hold
    0. White is 0, purple positive, orange negative. A cell whose ρ is missing (one side is the same
    for all encoders) stays grey.

    Raises ValueError for two rows of one cell, or no ρ in the table.
    """
    check_once(table, "language", "task")
    _some(table, "rho")
    languages, tasks = (_ordered(table, key) for key in ("language", "task"))
    values, low, high = (
        _grid(table, "language", "task", value, languages, tasks)
        for value in ("rho", "low", "high")
    )
    figure, axes = plt.subplots(
        figsize=(1.4 * _WIDE * len(tasks) + 2.1, _HIGH * len(languages) + 1.0)
    )

    def written(row: int, column: int) -> str:
        ends = _number(low[row, column]), _number(high[row, column])
        return f"{_number(values[row, column])}\n{ends[0]} to {ends[1]}"

    mesh = _cells(axes, values, written, "PuOr", Normalize(-1, 1), 1.1)
    for row, column in np.argwhere((low > 0) | (high < 0)):
        axes.add_patch(frame((column, row)))
    axes.set_yticks(np.arange(len(languages)) + 0.5, map(_setting, languages))
    _upright(axes, tasks)
    bar = figure.colorbar(mesh, ax=axes, fraction=0.03, pad=0.01, aspect=20)
    bar.set_label("Spearman's ρ")
    bar.outline.set_visible(False)
    handles = [Patch(facecolor="white", edgecolor="black", label="interval without 0")]
    if np.isnan(values).any():
        handles.append(Patch(color=_MISSING, label="not defined or not measured"))
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


@styled
def relative(table: pd.DataFrame) -> Figure:
    """Accuracy over that in English, a block of rows a language (Figure 4).

    ``table`` has ``language``, ``encoder``, ``task`` and ``ratio``, as `xprobe.relative` gives it.
    White is 1, parity; purple is better than English, orange worse; the colours end at 0.5 and 1.5.
    A ratio that is missing or infinite (nothing is right in English) stays grey.

    Raises ValueError for two ratios of one cell, or none in the table.
    """
    check_once(table, "language", "encoder", "task")
    table = table.assign(ratio=table["ratio"].replace(np.inf, np.nan))
    _some(table, "ratio")
    norm = Normalize(1 - _REACH, 1 + _REACH)
    return _maps(
        table, "language", "ratio", "accuracy relative to English", "PuOr", norm, 40, "both"
    )


@styled
def selectivity(table: pd.DataFrame, *, columns: int = 3) -> Figure:
    """Accuracy with interval, the control task and the majority class, a panel a task.

    ``table`` has ``task``, ``encoder``, ``language``, ``accuracy``, ``low``, ``high``, ``control``
    (accuracy on the same sentences with labels at random; selectivity is the distance from it to
    the accuracy) and ``majority`` (of the commonest class); the last four may be missing. A row is
    an encoder, a lane in it a language: a filled point its accuracy, a hollow one its control, a
    dotted tick its majority class.

    Raises ValueError for two rows of one place, no accuracy in the table, or more languages than
    can be told apart.
    """
    check_once(table, "task", "encoder", "language")
    _some(table, "accuracy")
    tasks, encoders, languages = (_ordered(table, key) for key in ("task", "encoder", "language"))
    looks = distinct_looks(languages, "languages")
    lanes = dict(zip(languages, np.linspace(-0.36, 0.36, len(languages)), strict=True))
    if len(languages) == 1:
        lanes = {languages[0]: 0.0}
    across = min(columns, len(tasks))
    down = -(-len(tasks) // across)
    height = (0.085 * len(languages) + 0.08) * len(encoders) + 0.45
    figure, panels = plt.subplots(
        down, across, squeeze=False, sharey=True,
        figsize=(max(2.1 * across + 1.5, 5), down * height + 0.8),
    )  # fmt: skip
    for axes in panels.flat[len(tasks) :]:
        axes.set_visible(False)
    for task, axes in zip(tasks, panels.flat, strict=False):
        for language in languages:
            own = rows_of(table, task=task, language=language).dropna(subset="accuracy")
            at = np.array([encoders.index(name) + lanes[language] for name in own["encoder"]])
            _lane(axes, own, at, looks[language], 0.36 / max(len(languages), 2))
        for edge in range(1, len(encoders)):
            axes.axhline(edge - 0.5, color="0.8", linewidth=0.6)
        axes.set_yticks(range(len(encoders)), encoders)
        axes.set(ylim=(len(encoders) - 0.5, -0.5))
        axes.set_title(task, fontsize=9)
        axes.grid(visible=False, axis="y")
    figure.supxlabel("accuracy (%)", fontsize=9)
    handles = [
        Line2D(
            [], [], linestyle="none", color=look["color"], marker=look["marker"], markersize=4,
            label=_setting(code),
        )
        for code, look in looks.items()
    ]  # fmt: skip
    if "control" in table and table["control"].notna().any():
        handles.append(
            Line2D(
                [], [], linestyle="none", color="0.35", marker="o", markerfacecolor="white",
                markersize=4, label="hollow: control",
            )
        )  # fmt: skip
    if "majority" in table and table["majority"].notna().any():
        handles.append(Line2D([], [], label="majority class", **_MAJORITY))
    figure.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 5))
    return figure


def _lane(
    axes: Axes, rows: pd.DataFrame, at: np.ndarray, look: dict[str, object], half: float
) -> None:
    """The points of a language in a panel, at the heights ``at``."""
    if "majority" in rows:
        axes.vlines(100 * rows["majority"], at - half, at + half, **_MAJORITY)
    if "control" in rows:
        axes.plot(
            100 * rows["control"], at, linestyle="none", color=look["color"], marker=look["marker"],
            markerfacecolor="white", markersize=3, markeredgewidth=0.7, zorder=2.5,
        )  # fmt: skip
    value = rows["accuracy"]
    ends = [rows.get(key, value) for key in ("low", "high")]
    # rounding may put an end past its point
    bars = 100 * np.maximum([value - ends[0], ends[1] - value], 0)
    axes.errorbar(
        100 * value, at, xerr=bars, linestyle="none", color=look["color"], marker=look["marker"],
        markersize=3, linewidth=0.8, zorder=3,
    )  # fmt: skip
