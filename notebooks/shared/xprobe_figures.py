"""Figures of probing tasks for sentence encoders (X-Probe).

Accuracies are in [0, 1] and stand in cells as the paper prints them. Encoders and tasks stand in
the order in which the table names them, languages by code and name.
"""

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from xlx.plots.panels import NOT_MEASURED, framed_handle, number, order
from xlx.plots.primitives import heatmap, lanes
from xlx.plots.style import ABOUT, handle, language_label, look, styled
from xlx.plots.style import looks as looks_of

_MAJORITY = {"color": "0.35", "marker": "|", "linestyle": "none", "markerfacecolor": "0.35"}
#: Ratios further than this from 1 all have the deepest colour: one of 0.00 to 0.01 is no scale.
_REACH = 0.5


def _empty(table: pd.DataFrame, *keys: str) -> list[Patch]:
    """What the legend has to say about cells without a number."""
    full = np.prod([table[key].nunique() for key in keys])
    return [Patch(**NOT_MEASURED)] if len(table) < full else []


@styled
def accuracies(table: pd.DataFrame) -> Figure:
    """Probing accuracy by encoder and task, a map a corpus, one below the other (Figure 2).

    ``table`` has ``encoder``, ``task``, ``corpus`` (whatever makes a map) and ``accuracy``. Tasks
    differ in how many classes they have, so only cells of a column can be compared.
    """
    known = table.dropna(subset="accuracy")
    on = heatmap(
        table, row="encoder", column="task", value="accuracy", panel="corpus", columns=1,
        written=lambda value: number(value) if pd.notna(value) else "", cell=(0.62, 0.21),
        norm=Normalize(0, 1), bar="probing accuracy (bright: high)", edge=(1.7, 1.1),
    )  # fmt: skip
    return on.titles(language_label).done(handles=_empty(known, "encoder", "task", "corpus"))


@styled
def correlations(table: pd.DataFrame) -> Figure:
    """Rank correlation of probing and a downstream task, a row a language (Figure 3).

    ``table`` as of `xprobe_tables.rank_correlations`. A cell has ρ and below it the interval; it is
    framed where that does not contain 0. A missing ρ stays grey.
    """
    known = table.dropna(subset="rho")
    ends = [table[end].map(number) for end in ("low", "high")]
    table = table.assign(
        written=(table["rho"].map(number) + "\n" + ends[0] + " to " + ends[1]).where(
            table["rho"].notna(), ""
        ),
        apart=(table["low"] > 0) | (table["high"] < 0),
    )
    on = heatmap(
        table, row="language", column="task", value="rho", names=language_label, written="written",
        framed="apart", cell=(0.86, 0.34), norm=Normalize(-1, 1), cmap=ABOUT, bar="Spearman's ρ",
        edge=(1.3, 1.2),
    )  # fmt: skip
    told = f"interval without 0: {table['apart'].sum()} of {len(known)} (by chance 1 of 20)"
    return on.done(handles=[framed_handle(told), *_empty(known, "language", "task")])


@styled
def relative(table: pd.DataFrame) -> Figure:
    """Accuracy over that in English, a map an encoder (Figure 4).

    ``table`` as of `xprobe_tables.relative_accuracies`. White is 1, parity; purple is better than
    English, orange worse; the colours end at 0.5 and 1.5. A ratio that is missing or infinite stays
    grey, and so does word content (WC), of which too few are right.
    """
    table = table.assign(ratio=table["ratio"].replace(np.inf, np.nan))
    table = table.assign(
        written=table["ratio"].map(number).where(table["ratio"].notna(), ""),
        ratio=table["ratio"].where(table["task"] != "WC"),
    )
    n = table["task"].nunique()
    on = heatmap(
        table, row="language", column="task", value="ratio", panel="encoder", columns=2,
        names=lambda code: code, written="written", cell=(3.8 / n, 0.17), cmap=ABOUT, turned=35,
        norm=Normalize(1 - _REACH, 1 + _REACH), extend="both", edge=(0.9, 1.4),
        bar="accuracy relative to English (white: parity)",
    )  # fmt: skip
    return on.done(
        handles=[Patch(color=NOT_MEASURED["color"], label="WC, or not measured: no scale")]
    )


@styled
def selectivity(table: pd.DataFrame) -> Figure:
    """Accuracy with interval, the control task and the majority class, a panel a task.

    ``table`` has ``task``, ``encoder``, ``language``, ``accuracy``, ``low``, ``high``, ``control``
    (accuracy on the same sentences with labels at random) and ``majority`` (of the commonest
    class). A row is an encoder, in it a lane a language; a hollow triangle is its control.
    """
    languages = order(table, "language")
    looks = looks_of(languages, {})
    shared = {"item": "encoder", "series": "language", "panel": "task", "scale": 100}
    on = lanes(
        table, value="accuracy", looks=looks, columns=3, width=2.4, sharex=False, lane=0.1,
        labels={code: language_label(code) for code in languages}, low="low", **shared,
    )  # fmt: skip
    hollow = {key: own | {"marker": "<", "markerfacecolor": "white"} for key, own in looks.items()}
    for column, marks, size in (
        ("control", hollow, 3.5), ("majority", dict.fromkeys(looks, _MAJORITY), 6),
    ):  # fmt: skip
        lanes(
            table, value=column, on=on, low="", looks=marks, labels=dict.fromkeys(looks, "_"),
            markersize=size, **shared,
        )  # fmt: skip
    handles = [handle("control task", look("0.35", "<", hollow=True)),
               handle("majority class", _MAJORITY, markersize=7)]  # fmt: skip
    return on.done("accuracy (%)", handles=handles)
