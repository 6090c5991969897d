"""Tables of grids over two languages → figures: what `plots` is to ABX scores, for Rajaee and Monz.

The same rules hold: a function draws what its table holds and computes nothing but where to put it.
Tables hold scores in [0, 1]; axes and cells show them as the paper prints them, in per cent.
Languages stand by code and name, in the order in which the table names them.
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from xlx.panels import check_known, check_once, distinct_looks, frame, ink, language_label, rows_of
from xlx.plots import styled

#: Languages of XNLI and XQuAD that are not among those of the ABX study.
_NAMES = {"sw": "Swahili", "th": "Thai"}
_MEAN = "mean"
_BLUE = {"color": "#0072B2", "marker": "o", "markerfacecolor": "#0072B2"}
_RED = {"color": "#D55E00", "marker": "s", "markerfacecolor": "white"}
#: How a setting looks, and what the legend calls it; a drop is the line between the two.
_SETTINGS = {
    "within": _BLUE | {"label": "within: both parts in the language"},
    "across": _RED | {"label": "across: one part in another"},
}
_GROUPS = {
    "easiest": _BLUE | {"label": "easiest"},
    "hardest": _RED | {"label": "hardest"},
}
_CHANCE = {"color": "0.4", "linewidth": 1, "linestyle": (0, (1, 2))}
_MISSING = "0.85"
#: The side of a cell of `grid_maps` in inches: room for "85.9" in 7 points.
_CELL = 0.29


def _name(code: str) -> str:
    """ "de" as "de German"; what is no language stays as it is."""
    return f"{code} {_NAMES[code]}" if code in _NAMES else language_label(code)


def _in_order(table: pd.DataFrame, column: str) -> list[str]:
    """What a column holds, as the table names it, but the mean last."""
    found = list(dict.fromkeys(table[column]))
    return [each for each in found if each != _MEAN] + [each for each in found if each == _MEAN]


@styled
def grid_maps(
    table: pd.DataFrame,
    first: str = "premise",
    second: str = "hypothesis",
    unit: str = "accuracy",
    *,
    columns: int = 3,
) -> Figure:
    """Every pair of languages, a map a model (Figures 2 to 10).

    ``table`` has ``model``, ``first`` and ``second`` (the languages of the parts: rows and columns)
    and ``score``. ``first``, ``second`` and ``unit`` say what is on the axes and in the cells.
    Cells have their numbers in per cent; a bright cell is a high score, on one scale for all
    models; the cells within a language are framed; a cell that is not in the table, or has no
    score, stays grey. Maps stand side by side, ``columns`` in a row: three of 15 languages are
    15 inches wide, so on a page one in a row reads better.

    Raises ValueError for two scores of one cell, or none in the table.
    """
    check_once(table, "model", "first", "second")
    known = 100 * table["score"].dropna()
    if known.empty:
        raise ValueError("there is no score to draw: the table has no rows, or none with a number")
    models = list(dict.fromkeys(table["model"]))
    codes = list(dict.fromkeys([*table["first"], *table["second"]]))
    rows, columns_ = (
        [code for code in codes if code in set(table[side])] for side in ("first", "second")
    )
    norm = Normalize(known.min(), known.max())
    across = min(columns, len(models))
    down = -(-len(models) // across)
    figure, panels = plt.subplots(
        down, across, sharey=True, squeeze=False,
        figsize=(
            max(across * (_CELL * len(columns_) + 0.15) + 1.9, 4.5),
            down * (_CELL * len(rows) + 1.35) + 0.3,
        ),
    )  # fmt: skip
    for axes in panels.flat[len(models) :]:
        axes.set_visible(False)
    empty = False
    for number, (model, axes) in enumerate(zip(models, panels.flat, strict=False)):
        cells = 100 * rows_of(table, model=model).pivot(
            index="first", columns="second", values="score"
        )
        cells = cells.reindex(index=rows, columns=columns_).to_numpy(float)
        mesh = _map(axes, cells, norm)
        empty |= bool(np.isnan(cells).any())
        for row, code in enumerate(rows):
            if code in columns_:
                axes.add_patch(frame((columns_.index(code), row)))
        axes.set_title(model)
        axes.set_xticks(np.arange(len(columns_)) + 0.5, map(_name, columns_), rotation=90)
        axes.set_yticks(np.arange(len(rows)) + 0.5, map(_name, rows))
        axes.set_xlabel(second)
        if number % across == 0:
            axes.set_ylabel(first)
    bar = figure.colorbar(mesh, ax=panels, fraction=0.03, pad=0.01, aspect=25)
    bar.set_label(f"{unit} (%)")
    bar.outline.set_visible(False)
    handles = [Patch(facecolor="white", edgecolor="black", label="within a language")]
    if empty:
        handles.append(Patch(color=_MISSING, label="not measured"))
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def _map(axes: Axes, cells: np.ndarray, norm: Normalize) -> QuadMesh:
    """Coloured cells with their numbers, the first row above."""
    axes.set_facecolor(_MISSING)
    mesh = axes.pcolormesh(
        np.ma.masked_invalid(cells), cmap="cividis", norm=norm, edgecolor="white", linewidth=0.4
    )
    for (row, column), value in np.ndenumerate(cells):
        if not np.isnan(value):
            axes.annotate(
                f"{value:.1f}", (column + 0.5, row + 0.5), ha="center", va="center_baseline",
                fontsize=7, color=ink(np.array(mesh.to_rgba(value))),
            )  # fmt: skip
    axes.set(xlim=(0, cells.shape[1]), ylim=(cells.shape[0], 0), aspect="equal")
    axes.tick_params(length=0, labelsize=8)
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)
    return mesh


@styled
def within_across(table: pd.DataFrame, chance: float | None = None) -> Figure:
    """Scores within and across by language, a panel a model (Tables 1 to 3).

    ``table`` has ``model``, ``language`` ("mean" stands below the others), ``setting``, ``score``,
    ``low`` and ``high`` (missing where there is no interval), as `mixing.summary` gives it; its
    rows of the drop are not drawn but as the line between the two points. ``chance`` is a dotted
    line.

    Raises ValueError for another setting, or two scores of one place.
    """
    table = _without_drop(table)
    check_once(table, "model", "language", "setting")
    models = list(dict.fromkeys(table["model"]))
    panels = [[(model, rows_of(table, model=model)) for model in models]]
    return _dots(
        panels, "language", _in_order(table, "language"), "setting", _SETTINGS,
        xlabel="score (%)", chance=[chance] * len(models),
    )  # fmt: skip


@styled
def labels(table: pd.DataFrame) -> Figure:
    """Scores within and across by label and language (Tables 5, 6 and 10 to 13).

    Columns of panels are models, rows labels. ``table`` has ``label`` and the columns of
    `within_across`, as `mixing.by_label` gives them, and errors are as there.
    """
    table = _without_drop(table)
    check_once(table, "model", "label", "language", "setting")
    models, names = (list(dict.fromkeys(table[key])) for key in ("model", "label"))
    panels = [
        [(f"{model}: {name}", rows_of(table, model=model, label=name)) for model in models]
        for name in names
    ]
    return _dots(
        panels, "language", _in_order(table, "language"), "setting", _SETTINGS,
        xlabel="score of the examples with the label (%)",
    )  # fmt: skip


@styled
def distances(table: pd.DataFrame) -> Figure:
    """How far a question's words are from its answer, by difficulty (Figures 1, 11 and 12).

    A panel a model. ``table`` has ``model``, ``language``, ``group`` ("easiest", "hardest"),
    ``distance`` (in words), ``low`` and ``high``, as `mixing.tails` gives them.

    Raises ValueError for another group, or two distances of one place.
    """
    check_known(table["group"], _GROUPS, "group")
    check_once(table, "model", "language", "group")
    models = list(dict.fromkeys(table["model"]))
    panels = [[(model, rows_of(table, model=model)) for model in models]]
    figure = _dots(
        panels, "language", _in_order(table, "language"), "group", _GROUPS, value="distance",
        scale=1, xlabel="mean distance of the question's words to the centre of the answer (words)",
    )  # fmt: skip
    for axes in figure.axes:
        axes.set_xlim(left=0)
    return figure


@styled
def controls(table: pd.DataFrame, chance: Mapping[str, float] | None = None) -> Figure:
    """Models beside their control tasks and baselines (Tables 7 and 14).

    Columns of panels are tasks, rows models. ``table`` has ``task``, ``model``, ``condition``
    ("original", "shuffled", a baseline), ``setting``, ``score``, ``low`` and ``high``; ``chance``
    maps a task to the score of guessing.

    Raises ValueError for another setting, two scores of one place, or the chance of a task that the
    table does not have.
    """
    table = _without_drop(table)
    check_once(table, "task", "model", "condition", "setting")
    tasks, models = (list(dict.fromkeys(table[key])) for key in ("task", "model"))
    check_known(list(chance or {}), dict.fromkeys(tasks), "task")
    panels = [
        [(f"{model}: {task}", rows_of(table, model=model, task=task)) for task in tasks]
        for model in models
    ]
    return _dots(
        panels, "condition", list(dict.fromkeys(table["condition"])), "setting", _SETTINGS,
        xlabel="mean score over languages (%)", chance=[(chance or {}).get(task) for task in tasks],
        sharex="col",
    )  # fmt: skip


@styled
def pairs(table: pd.DataFrame, *, columns: int = 5) -> Figure:
    """A model fine-tuned on a pair of languages and its baselines, a panel a pair (Tables 4, 9).

    ``table`` has ``pair`` ("en-de"), ``row`` ("l1-l2", "l2-l1", "*-l2", "l1-*", "*-*"),
    ``condition``, ``score``, ``low`` and ``high``, as `mixing.pairs` gives them; ``columns`` panels
    stand side by side.

    Raises ValueError for two scores of one place, or more conditions than can be told apart (7).
    """
    check_once(table, "pair", "row", "condition")
    names = list(dict.fromkeys(table["pair"]))
    looks = {
        key: {
            "color": look["color"], "marker": look["marker"], "label": key,
            "markerfacecolor": "white" if number else look["color"],
        }
        for number, (key, look) in enumerate(
            distinct_looks(list(dict.fromkeys(table["condition"])), "conditions").items()
        )
    }  # fmt: skip
    each = [(name, rows_of(table, pair=name)) for name in names]
    panels = [each[start : start + columns] for start in range(0, len(each), columns)]
    return _dots(
        panels, "row", list(dict.fromkeys(table["row"])), "condition", looks,
        xlabel="score (%)", width=1.6,
    )  # fmt: skip


def _without_drop(table: pd.DataFrame) -> pd.DataFrame:
    check_known(table["setting"], {**_SETTINGS, "drop": {}}, "setting")
    return table[table["setting"] != "drop"]


def _dots(
    panels: Sequence[Sequence[tuple[str, pd.DataFrame]]],
    item: str,
    items: Sequence[str],
    series: str,
    looks: Mapping[str, Mapping[str, str]],
    *,
    xlabel: str,
    value: str = "score",
    scale: float = 100,
    chance: Sequence[float | None] = (),
    sharex: str = "all",
    width: float = 2.5,
) -> Figure:
    """Rows of panels (title, table): in each a line an item, on it a point with interval a series.

    ``item`` and ``series`` are columns, and so is ``value``, drawn times ``scale``; ``chance`` has
    a value (or None) a column of panels. Series stand in the order of ``looks``, from above.
    """
    present = {key for row in panels for _, own in row for key in own[series]}
    looks = {key: look for key, look in looks.items() if key in present}
    across = max(map(len, panels))
    height = (0.09 * len(looks) + 0.1) * len(items) + 0.35
    figure, grid = plt.subplots(
        len(panels), across, squeeze=False, sharex=sharex, sharey=True,
        figsize=(max(width * across + 1.3, 5.2), height * len(panels) + 0.9),
    )  # fmt: skip
    chance = [*chance, *[None] * across][:across]
    for row, places in zip(panels, grid, strict=True):
        for (title, own), axes, guess in zip(row, places, chance, strict=False):
            if guess is not None:
                axes.axvline(scale * guess, **_CHANCE)
            rows = own.dropna(subset=value)
            _lines(axes, rows, item, items, series, looks, value, scale)
            axes.set_title(title, fontsize=9)
    for column in range(len(panels[-1]), across):  # the last row may be shorter
        grid[-1, column].set_visible(False)
        grid[-2, column].tick_params(labelbottom=True)
    figure.supxlabel(xlabel, fontsize=9)
    handles = [Line2D([], [], linestyle="none", markersize=4.5, **look) for look in looks.values()]
    if any(guess is not None for guess in chance):
        handles.append(Line2D([], [], label="chance", **_CHANCE))
    figure.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 3))
    return figure


def _lines(
    axes: Axes,
    table: pd.DataFrame,
    item: str,
    items: Sequence[str],
    series: str,
    looks: Mapping[str, Mapping[str, str]],
    value: str,
    scale: float,
) -> None:
    """One panel of `_dots`."""
    at = {name: number for number, name in enumerate(items)}
    reach = min(0.13 * (len(looks) - 1), 0.33)
    shifts = dict(zip(looks, np.linspace(-reach, reach, len(looks)), strict=True))
    for key, look in looks.items():
        rows = rows_of(table, **{series: key})
        bars = np.maximum([rows[value] - rows["low"], rows["high"] - rows[value]], 0)  # rounding
        axes.errorbar(
            scale * rows[value], [at[name] + shifts[key] for name in rows[item]],
            xerr=scale * bars, fmt=look["marker"], color=look["color"],
            markerfacecolor=look["markerfacecolor"], capsize=1.5, linewidth=1, markersize=4,
        )  # fmt: skip
    if len(looks) == 2:  # what lies between two points is the drop
        ends = table.pivot(index=item, columns=series, values=value).reindex(columns=list(looks))
        ends = ends.dropna()
        heights = [[at[name] + shift for name in ends.index] for shift in shifts.values()]
        axes.plot(scale * ends.to_numpy().T, heights, color="0.75", linewidth=1, zorder=1.5)
    for edge in range(1, len(items)):
        mean = items[edge] == _MEAN
        axes.axhline(edge - 0.5, color="0.3" if mean else "0.9", linewidth=0.8 if mean else 0.5)
    axes.set_yticks(range(len(items)), map(_name, items))
    axes.set_ylim(len(items) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
