"""The figures of a report, from its tables: the same on the page and in the notebook."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from pandas import DataFrame

from xlx.experiment.abx_scores import MATCHED
from xlx.experiment.scoring import BAG
from xlx.measures import registered
from xlx.plots import style
from xlx.plots.panels import Figure, Panels, across, number, order, rows_of
from xlx.plots.primitives import Curves, Lanes, Points, curves, heatmap, lanes, scatter
from xlx.plots.style import NAMES, looks, styled
from xlx.report.tables import ALIGNMENTS, UNTRAINED, Tables
from xlx.text.languages import kind_of_language

#: Languages that a figure has room for, in lanes, and in a map of pairs or as names at points.
_MOST, _MOST_NAMED = 60, 40


def report_figures(tables: Tables) -> dict[str, Callable[[], Figure]]:
    """Table → what draws it, in the order of the page; of tables not there, none."""
    return {name: partial(draw, tables) for name, draw in DRAWN.items() if name in tables}


def _names(table: DataFrame) -> dict[str, str]:
    """What figures call the measures of a table; of those registered later, their labels."""
    labels = {name: measure.label for name, measure in registered().items()} | NAMES
    return {task: labels.get(task) or task for task in order(table, "task")}


@styled
def by_layer(tables: Tables) -> Figure:
    """Scores by layer: of vectors as they are (raw), and less the mean of each language (centred).

    Panels are models, and the two ways.
    """
    table = tables["layers"]
    shape = Curves(labels=_names(table), width=3.9, height=2.4)
    on = curves(table, "layer", "score", "task", "model", "space", shape)
    across(on, y=style.CHANCE, label="chance of LD and MD")
    for axes in on.axes.values():
        axes.set_ylim(min(-0.02, table["score"].min()), max(1.02, table["score"].max()))
    return on.done("layer (0: embeddings)", "score")


@styled
def beside_references(tables: Tables) -> Figure:
    """How far the scores of a model are above those of what it is compared with, on one text."""
    table = tables["references"]
    on = lanes(
        table, "difference", "reference", hue="model", col="task", wrap=2, width=3.4, lane=0.14
    )
    across(on, x=0, **style.ZERO)
    return on.titles(_names(table)).done("score of the model less that of the reference")


@styled
def covered_languages(tables: Tables) -> Figure:
    """MEXA score of each language with the pivot at its best layer, the best covered above."""
    table, ends = _best_layers(tables), _ends(tables)
    table = table[table["language"].isin(ends)]
    on = _by_language(table, "mu", "model", Lanes(items=ends, width=6.4, lane=0.07))
    return on.done("MEXA score (share of sentences found both ways)")


@styled
def both_ways(tables: Tables) -> Figure:
    """Retrieval from the pivot into each language, and back, one panel per model."""
    pivot, ways, ends = tables["coverage"]["pivot"].iloc[0], tables["retrieval"], _ends(tables)
    table = pd.concat(
        ways[ways[side] == pivot].assign(language=ways[other], direction=f"{word} {pivot}")
        for side, other, word in (("query", "among", "from"), ("among", "query", "to"))
    )
    width = 6.4 if table["model"].nunique() == 1 else 3.4
    ink = {way: style.look("0.2", "o", hollow=way[0] == "t") for way in order(table, "direction")}
    shape = Lanes(items=ends, wrap=2, width=width, lane=0.06, looks=ink)
    table = table[table["language"].isin(ends)]
    on = _by_language(table, "score", "direction", shape, col="model")
    return on.done("share of sentences whose translation is the nearest")


@styled
def pairs_apart(tables: Tables) -> Figure:
    """MD among sentences of like length of each pair of languages, one panel per model."""
    pairs = rows_of(tables["pairs"], task=MATCHED)
    ends = ["language_1", "language_2"]
    kin = sorted({*pairs[ends].to_numpy().flat}, key=lambda x: (kind_of_language(x)[::-1], x))
    pairs[ends] = [sorted(pair, key=kin.index) for pair in pairs[ends].to_numpy()]
    kin = kin[:_MOST_NAMED]
    table = pairs.assign(written=pairs["score"].map(number) if len(kin) <= 12 else "")
    on = heatmap(
        table,
        *ends,
        "score",
        col="model",
        rows=kin[1:],
        columns=kin[:-1],
        cell=(7 / len(kin), 0.24),
        wrap=1,
        bar="MD among sentences of like length",
        missing="_",
    )
    for axes in on.axes.values():
        axes.set_facecolor("white")
    return on.done()


@styled
def predicted_tasks(tables: Tables) -> Figure:
    """Score of a task in each language by its MEXA score, with the line through all of them."""
    points = tables["task_points"]
    points = points[points["predictor"] == next(iter(ALIGNMENTS))]
    crowded = points["language"].nunique() > _MOST_NAMED
    points = points.assign(written="" if crowded else points["language"])
    panel = ("task", "model") if points["model"].nunique() > 1 else (None, "task")
    shape = Points(wrap=2, width=3.8, height=2.7, sharex=False, sharey=False, size=18)
    on = scatter(points, "mu", "score", None, *panel, shape)
    curves(
        points,
        "mu",
        "line",
        interval=False,
        looks=style.look("0.3", "", "--"),
        labels="line of least squares",
        on=on,
    )
    return on.done("MEXA score (share of sentences found both ways)", "score of the task")


@styled
def probe_accuracies(tables: Tables) -> Figure:
    """Accuracy of linear probes at the chosen layer in each language, and of the commonest label.

    Of several models the first one's label.
    """
    table = tables["probes"]
    on = _by_language(table, "accuracy", "model", Lanes(wrap=2, width=3.4, lane=0.07), col="probed")
    first = table[table["model"] == table["model"].iloc[0]]
    lanes(
        first,
        "majority",
        "language",
        interval=False,
        looks=style.look("0.4", "|", "none", markersize=8),
        labels="commonest label",
        on=on,
    )
    return on.done("share of words, or sentences, whose label is found")


@styled
def held_of_a_sentence(tables: Tables) -> Figure:
    """X-Probe's tasks by layer, of models, untrained twins and bags; panels: task, where read."""
    table = tables["sentence_tasks"]
    plain, lines = looks(order(table, "model")), {}
    parts = [table.assign(series=table["model"])]
    for control, look in (
        (UNTRAINED, {"linestyle": ":"}),
        (BAG, style.BAG),
        ("chance", {"color": "0.7"}),
    ):
        if control in table:
            names = table["model"] + f", {control}"
            parts.append(
                table.assign(accuracy=table[control], series=names, low=np.nan, high=np.nan)
            )
            lines |= {f"{x}, {control}": plain[x] | {"marker": ""} | look for x in plain}
    shape = Curves(looks=plain | lines, width=3.9, height=1.7)
    on = curves(pd.concat(parts), "layer", "accuracy", "series", "task", "read", shape)
    return on.done("layer (0: embeddings)", "share of sentences right")


#: Table → what draws its numbers, in the order of the page.
DRAWN = {
    "layers": by_layer,
    "references": beside_references,
    "coverage": covered_languages,
    "retrieval": both_ways,
    "pairs": pairs_apart,
    "task_fits": predicted_tasks,
    "probes": probe_accuracies,
    "sentence_tasks": held_of_a_sentence,
}


def _by_language(
    table: DataFrame, value: str, hue: str, shape: Lanes, col: str | None = None
) -> Panels:
    """Lanes of shares, one language per line."""
    names = {code: kind_of_language(code)[0] for code in order(table, "language")}
    shape = replace(shape, names=lambda code: f"{code} {names[code]}")
    on = lanes(table, value, "language", hue=hue, col=col, style=shape)
    for axes in on.axes.values():
        axes.set_xlim(-0.02, 1.02)
    return on


def _best_layers(tables: Tables) -> DataFrame:
    """MEXA of each language at its best layer."""
    return tables["coverage"].query("layers == 'max' and states == 'raw'")


def _ends(tables: Tables) -> list[str]:
    """Languages by their mean MEXA score, the best first; of very many the two ends."""
    means = _best_layers(tables).groupby("language", sort=False)["mu"].mean()
    ranked = list(means.sort_values(ascending=False, kind="stable").index)
    return ranked if len(ranked) <= _MOST else [*ranked[: _MOST // 2], *ranked[-_MOST // 2 :]]
