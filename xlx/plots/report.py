"""Figures of a report: a model by layer, beside references, by language and by pair.

Tables are those of `xlx.report.measures`; several models stand side by side.
"""

import io

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from xlx.plots.panels import across, order
from xlx.plots.primitives import curves, heatmap, lanes
from xlx.plots.style import (
    CHANCE,
    GUESSING,
    MEASURES,
    NAMES,
    STYLE,
    ZERO,
    handle,
    language_label,
    looks,
    styled,
)

_LAYER = "layer (0: embeddings)"


@styled
def by_layer(table: pd.DataFrame) -> Figure:
    """Scores by layer: of vectors as they are (raw), and less the mean of each language (centred).

    ``table`` has ``model``, ``space``, ``layer``, ``task``, ``score``, ``low`` and ``high``.
    """
    tasks = {task: MEASURES[task] for task in order(table, "task")}
    on = curves(table, x="layer", value="score", series="task", panel=("model", "space"),
                looks=tasks, labels=NAMES, width=3.9, height=2.4)  # fmt: skip
    across(on, y=CHANCE)
    for axes in on.axes.values():
        axes.set_ylim(-0.02, 1.02)
    chance = handle("chance of LD and MD", GUESSING | {"marker": ""}, line=True)
    return on.done(_LAYER, "score", handles=[chance])


@styled
def beside_references(table: pd.DataFrame) -> Figure:
    """How far the scores of a model are above those of what it is compared with, on one text.

    ``table`` has ``model``, ``reference``, ``task``, ``difference``, ``low`` and ``high``.
    """
    on = lanes(table, item="reference", value="difference", series="model", panel="task",
               looks=looks(order(table, "model")), columns=2, width=3.4, lane=0.14)  # fmt: skip
    across(on, x=0, **ZERO | {"linestyle": "-"})
    on.titles(NAMES)
    return on.done("score of the model less that of the reference")


@styled
def covered_languages(table: pd.DataFrame) -> Figure:
    """MEXA score of each language with the pivot at its best layer, the best covered above.

    ``table`` has ``model``, ``language``, ``mu``, ``low`` and ``high``.
    """
    first = table[table["model"] == table["model"].iloc[0]]
    ranked = first.sort_values("mu", ascending=False, kind="stable")["language"]
    on = lanes(table, item="language", value="mu", series="model", items=list(ranked),
               looks=looks(order(table, "model")), names=language_label, width=6.4,
               lane=0.07)  # fmt: skip
    for axes in on.axes.values():
        axes.set_xlim(-0.02, 1.02)
    return on.done("MEXA score (share of sentences found both ways)")


@styled
def both_ways(table: pd.DataFrame) -> Figure:
    """Retrieval from the pivot into each language, and back, a panel a model.

    ``table`` has ``model``, ``language``, ``direction``, ``score``, ``low`` and ``high``.
    """
    on = lanes(table, item="language", value="score", series="direction", panel="model",
               names=language_label, columns=2, width=6.4 if table["model"].nunique() == 1 else 3.4,
               lane=0.06)  # fmt: skip
    for axes in on.axes.values():
        axes.set_xlim(-0.02, 1.02)
    return on.done("share of sentences whose translation is the nearest")


@styled
def pairs_apart(table: pd.DataFrame) -> Figure:
    """MD among sentences of like length of each pair of languages, a panel a model.

    ``table`` has ``model``, ``language_1``, ``language_2`` and ``score``; bright is near.
    """
    codes = list(dict.fromkeys([*table["language_1"], *table["language_2"]]))
    turned = table.rename(columns={"language_1": "language_2", "language_2": "language_1"})
    both = pd.concat([table, turned])
    size = 0.19 if len(codes) > 12 else 0.3
    on = heatmap(
        both, row="language_1", column="language_2", value="score", panel="model", rows=codes,
        across=codes, cell=(size, size), columns=1, turned=90,
        bar="MD among sentences of like length",
    )  # fmt: skip
    return on.done()


def picture(figure: Figure) -> bytes:
    """A figure as PNG, as it stands on a page; it is closed."""
    buffer = io.BytesIO()
    with plt.style.context(STYLE):
        figure.savefig(buffer, format="png", metadata={"Software": None}, dpi=120)
    plt.close(figure)
    return buffer.getvalue()
