"""Figures of a report: a model by layer, beside references, by language and by pair.

Tables are those of `xlx.report.measures`; several models stand side by side.
"""

import io

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from xlx.plots.panels import across, order
from xlx.plots.primitives import curves, heatmap, lanes, scatter
from xlx.plots.style import (
    BAND_COLOURS,
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

#: Tiles that a row has room for, at least.
_TILES = 12
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


@styled
def language_tiles(table: pd.DataFrame) -> Figure:
    """A tile a language, coloured by the band of its MEXA score; a row a family and script.

    ``table`` has ``model``, ``row`` (families and scripts), ``place`` (of a tile in its row),
    ``language`` and ``band`` (those of `xlx.measures.mexa.bands`). The best covered stand on the
    left.
    """
    # On a globe a language would need coordinates, which nothing here has; kinship and script say
    # more of what a model can share.
    bands = list(table["band"].cat.categories)
    table = table.assign(level=table["band"].cat.codes.astype(float))
    on = heatmap(
        table, row="row", column="place", value="level", panel="model", written="language",
        rows=order(table, "row"), across=range(max(_TILES, table["place"].max() + 1)),
        tops=lambda place: "",
        bar=None, cell=(0.36, 0.24), edge=(2.0, 0.6), columns=1, cmap=ListedColormap(BAND_COLOURS),
        norm=Normalize(-0.5, len(BAND_COLOURS) - 0.5),
    )  # fmt: skip
    for axes in on.axes.values():
        axes.set_facecolor("white")
    handles = [Patch(color=c, label=x) for c, x in zip(BAND_COLOURS, bands, strict=True)]
    return on.done(handles=handles)


@styled
def bands_by_kind(table: pd.DataFrame) -> Figure:
    """How many languages of each script and family have a MEXA score in each band.

    ``table`` has ``model``, ``by`` ("script", "family"), ``kind``, ``band`` and ``languages``,
    their number.
    """
    kind = table["kind"].where(table["by"] != "script", table["kind"] + " (script)")
    shown = table.assign(kind=kind, languages=table["languages"].where(table["languages"] > 0))
    on = heatmap(
        shown, row="kind", column="band", value="languages", panel="model", bar=None,
        across=list(table["band"].cat.categories), written=lambda n: f"{n:.0f}" if n > 0 else "",
        cell=(0.62, 0.2), edge=(2.0, 0.6), columns=2,
    )  # fmt: skip
    for axes in on.axes.values():
        axes.set_facecolor("0.95")
    return on.done("MEXA score, each language at its best layer")


@styled
def predicted_tasks(points: pd.DataFrame, lines: pd.DataFrame) -> Figure:
    """Score of a task in each language by its MEXA score, with the line through all of them.

    ``points`` has ``model``, ``task``, ``mu``, ``score`` and ``written`` (at the point, or "");
    ``lines`` the ends of each line, ``x`` and ``y``.
    """
    panels = {"panel": ("task", "model")} if points["model"].nunique() > 1 else {"panel": "task"}
    on = scatter(points, x="mu", y="score", written="written", columns=2, width=3.8, height=2.7,
                 sharex=False, sharey=False, size=18, **panels)  # fmt: skip
    curves(lines, x="x", value="y", low="", on=on, marker="",
           looks={None: {"color": "0.3", "linestyle": "--", "markerfacecolor": "0.3"}},
           labels={None: "line of least squares"})  # fmt: skip
    return on.done("MEXA score (share of sentences found both ways)", "score of the task")


@styled
def probed_languages(table: pd.DataFrame) -> Figure:
    """Accuracy of linear probes at the chosen layer in each language, and of the commonest label.

    ``table`` has ``model``, ``probed``, ``language``, ``accuracy``, ``low``, ``high`` and
    ``majority``.
    """
    commonest = {"color": "0.4", "marker": "|", "linestyle": "none", "markerfacecolor": "0.4"}
    on = lanes(table, item="language", value="accuracy", series="model", panel="probed",
               looks=looks(order(table, "model")), names=language_label, columns=2, width=3.4,
               lane=0.07)  # fmt: skip
    first = table[table["model"] == table["model"].iloc[0]]
    lanes(first, item="language", items=order(table, "language"), value="majority", low="", on=on,
          looks={None: commonest}, labels={None: "commonest label"}, markersize=8)  # fmt: skip
    for axes in on.axes.values():
        axes.set_xlim(-0.02, 1.02)
    return on.done("share of words, or sentences, whose label is found")


def picture(figure: Figure) -> bytes:
    """A figure as PNG, as it stands on a page; it is closed."""
    buffer = io.BytesIO()
    with plt.style.context(STYLE):
        figure.savefig(buffer, format="png", metadata={"Software": None}, dpi=120)
    plt.close(figure)
    return buffer.getvalue()
