"""How notebooks show numbers, and what several of their figures have."""

import numpy as np
import pandas as pd
from matplotlib.colors import CenteredNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch


def with_interval(table: pd.DataFrame, value: str, form: str = ".2f") -> list[str]:
    """A column with the interval in ``low`` and ``high``, as text: "0.85 (0.80 to 0.90)"."""
    return [
        f"{number:{form}} ({low:{form}} to {high:{form}})"
        for number, low, high in table[[value, "low", "high"]].to_numpy()
    ]


def in_points(value: float, low: float | None = None, high: float | None = None) -> str:
    """A share in points: 0.211 as "21.1", with an interval "21.1 (18.0 to 24.2)".

    NaN is "no model": what a table of IGAP has where none has the training error asked for.
    """
    if np.isnan(value):
        return "no model"
    points = f"{round(100 * value, 1) + 0.0:.1f}"  # + 0.0: no "-0.0"
    return points if low is None else f"{points} ({in_points(low)} to {in_points(high)})"


def as_points(table: pd.DataFrame, value: str = "score") -> pd.Series:
    """A column with its interval, as text `in_points`.

    The ends are in ``<value>_low`` and ``<value>_high`` or, without these, ``low`` and ``high``.
    """
    start = f"{value}_" if f"{value}_low" in table else ""
    rows = table[[value, f"{start}low", f"{start}high"]].to_numpy()
    return pd.Series([in_points(*row) for row in rows], index=table.index, dtype=object)


def framed_handle(label: str) -> Patch:
    """The frame of a cell, for a legend."""
    return Patch(facecolor="white", edgecolor="black", label=label)


def scale_about(values: pd.Series, middle: float = 0, least: float = 0.1) -> Normalize:
    """A scale about a middle that holds all values, never so narrow that noise looks vivid."""
    return CenteredNorm(middle, max(least, (values - middle).abs().max()))


def asking(question: str, figure: Figure) -> Figure:
    """A figure with the question that it answers above its legend."""
    if figure.legends:
        figure.legends[0].set_title(question, {"size": 10})
    else:
        figure.suptitle(question, fontsize=10)
    return figure
