"""Triplets as drawings: three sentences and their distances (Figures 1 and 5 of the ABX paper)."""

import textwrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from xlx.plots.panels import number, order, panels
from xlx.plots.style import HALO, NAMES, SMALL, TINY, handle, looks, styled

#: What X and A share, which is what a task asks for, and what A and B share, which cannot help.
_SHARED = {"LD": ("language", "meaning"), "MD": ("meaning", "language")}
#: Half the angle at X between A and B, in degrees.
_HALF_ANGLE = 33


@styled
def triplet_drawings(sentences: pd.DataFrame, distances: pd.DataFrame, model: str) -> Figure:
    """A triplet of each task: X, A and B with their sentences, distances to scale.

    ``sentences`` and ``distances`` as `experiments.example_triplets` returns them: by task and item
    ``language`` and ``sentence``; by task and model ``d(X, A)``, ``d(X, B)`` and ``score``.
    """
    table = sentences.reset_index()
    shown = looks(order(table, "language"), {})
    on = panels(table, "task", columns=2, width=4.25, height=2.9, edge=(0.1, 0.4))
    for axes, rows in on.each(table):
        task = rows["task"].iloc[0]
        of_task = distances.loc[task, model]
        places = _places(of_task["d(X, A)"], of_task["d(X, B)"])
        _edges(axes, places, of_task, _SHARED[task])
        for row in rows.itertuples():
            _item(axes, row, places[row.item], shown[row.language])
        axes.set(xlim=(-0.62, 1.62), ylim=(-1.02, 0.95))
        axes.set_axis_off()
    on.titles(lambda task: f"{NAMES[task]}: score {distances.loc[(task, model), 'score']:g}")
    told = [handle(code, own | {"linestyle": "none"}, line=True) for code, own in shown.items()]
    return on.done(handles=told)


def _places(to_a: float, to_b: float) -> dict[str, np.ndarray]:
    """X at the origin, A above and B below to its right; the longer distance is 1."""
    angle, longest = np.deg2rad(_HALF_ANGLE), max(to_a, to_b)
    towards = np.array([np.cos(angle), np.sin(angle)])
    return {
        "X": np.zeros(2),
        "A": to_a / longest * towards,
        "B": to_b / longest * towards * [1, -1],
    }


def _edges(
    axes: Axes, places: dict[str, np.ndarray], distances: pd.Series, shared: tuple[str, str]
) -> None:
    """Lines between the items: how far they are, and what they share."""
    asked, held = shared
    for ends, dash, text in (
        ("XA", "-", f"same {asked}\n{number(distances['d(X, A)'], 3)}"),
        ("XB", "--", number(distances["d(X, B)"], 3)),
        ("AB", ":", f"same {held}"),
    ):
        line = np.array([places[name] for name in ends])
        axes.plot(*line.T, color="0.5", linestyle=dash, linewidth=1.2, zorder=1)
        axes.text(*line.mean(axis=0), text, ha="center", va="center", fontsize=SMALL,
                  path_effects=HALO)  # fmt: skip


def _item(axes: Axes, row: object, place: np.ndarray, look: dict) -> None:
    """An item with its sentence, away from the lines."""
    axes.plot(*place, **look | {"linestyle": "none"}, markersize=9, zorder=2)
    lines = "\n".join(textwrap.wrap(row.sentence, 34 if row.item != "X" else 22)[:4])
    above = {"A": 1, "B": -1, "X": -1}[row.item]
    axes.annotate(
        f"{row.item}\n{lines}" if above < 0 else f"{lines}\n{row.item}", place,
        xytext=(0, 9 * above), textcoords="offset points", ha="center",
        va="bottom" if above > 0 else "top", fontsize=TINY, linespacing=1.25,
    )  # fmt: skip
