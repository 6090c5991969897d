"""Figures of probes and cross-lingual transfer: section 5 and appendices F to K of the ABX paper.

Tables have ``model`` and ``task``: a row of panels a model, a column a task.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from xlx.plots.panels import HATCHED, across, framed_handle, order, parts, rows_of, scale_about
from xlx.plots.primitives import curves, heatmap, lanes, scatter
from xlx.plots.style import (
    ABOUT,
    BLUE,
    CHANCE,
    GUESSING,
    MEASURES,
    MODELS,
    VERMILION,
    ZERO,
    handle,
    look,
    looks,
    styled,
)


@styled
def probe_layers(table: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Accuracy of probes by layer, with what it has to be compared with.

    ``table`` has ``kind`` (of ``names``, which tells what to call them: "trained", "untrained",
    "control", "majority"), ``layer``, ``score``, ``low``, ``high``.
    """
    on = curves(table, x="layer", value="score", series="kind", panel=("model", "task"),
                looks={kind: MEASURES[kind] for kind in names}, labels=names, width=2.7,
                sharex=True, sharey="col")  # fmt: skip
    return on.done("layer (0: embeddings)", "accuracy")


@styled
def best_checkpoints(
    table: pd.DataFrame, names: Mapping[str, str], labels: Mapping[str, str] | None = None
) -> Figure:
    """Accuracy by language and checkpoint, the best checkpoint of a language framed (Figure 10).

    ``table`` has ``language``, ``checkpoint``, ``accuracy`` and ``best`` (True for one checkpoint
    a language); ``names`` gives the languages from top to bottom. Colours tell how much accuracy
    is gained or lost since the first checkpoint, on one scale for a task; ``labels`` tells of a
    task what accuracy is, if something else.
    """
    table = table.sort_values(["checkpoint"], kind="stable")
    keys = ["model", "task", "language"]
    first = table.drop_duplicates(keys)[[*keys, "accuracy"]]
    table = table.merge(first, on=keys, suffixes=("", "_first"))
    table["gain"] = table["accuracy"] - table["accuracy_first"]
    models, tasks = order(table, "model"), order(table, "task")
    table = pd.concat(
        [rows_of(table, task=task, model=model) for task in tasks for model in models]
    )
    table["panel"] = table["task"] + ": " + table["model"]
    on = heatmap(
        table, row="language", column="checkpoint", value="gain", panel="panel", rows=list(names),
        across=sorted(table["checkpoint"].unique()), own_rows=True,
        tops=lambda step: f"{step:,}", framed="best", cell=(0.2, 0.165),
        edge=(0.5, 1.6), columns=len(models) * len(tasks), turned=90, cmap=ABOUT,
        norm={task: scale_about(part["gain"]) for task, part in parts(table, "task")},
        bar_by=lambda key: key.partition(": ")[0],
        bar={task: f"{task}: {(labels or {}).get(task, 'accuracy')} − that of\nthe first checkpoint"
             for task in tasks},
    )  # fmt: skip
    on.titles(lambda key: key.replace(": ", ":\n"))
    return on.done("training step", handles=[framed_handle("best checkpoint of a language")])


@styled
def learning_scatter(
    table: pd.DataFrame, lines: pd.DataFrame, statistics: Mapping[tuple[str, str], str], *,
    x: str = "LD", y: str = "accuracy", xlabel: str = "LD of a language", ylabel: str = "accuracy",
    label: str | None = "language",
) -> Figure:  # fmt: skip
    """Accuracy against a score with a fitted line and its band (Figures 11 and 15).

    ``table`` has ``x``, ``y`` and ``label``, which names a point; the points furthest above and
    below the line are named (None: the pairs with the lowest ``x``). ``lines`` has ``x``, ``y``,
    ``low``, ``high``; ``statistics`` a text for each (model, task).
    """
    table = table.reset_index(drop=True)
    named = []
    for (model, task), part in parts(table, "model", "task"):
        line = rows_of(lines, model=model, task=task).sort_values("x")
        off = part[y] - np.interp(part[x], line["x"], line["y"]) if label else part[x]
        named += [*off.nsmallest(2).index, *(off.nlargest(2).index if label else ())]
    names = table[label] if label else table["source"] + "-" + table["target"]
    table["written"] = names.where(table.index.isin(named), "")
    options = {"panel": ("model", "task")}
    on = scatter(
        table, x=x, y=y, looks={None: look(BLUE, "o")}, written="written", width=2.7, size=9,
        alpha=0.7 if label else 0.25, sharex="row", sharey="col", **options,
    )  # fmt: skip
    curves(lines, x="x", value="y", looks={None: look(VERMILION, "")}, on=on, **options)
    on.titles(lambda key: f"{key[0]}: {key[1]}\n{statistics[key]}")
    return on.done(xlabel, ylabel)


@styled
def coefficients(table: pd.DataFrame) -> Figure:
    """Regression coefficients, printed and ours, a row an analysis, a panel a predictor (Table 1).

    ``table`` has ``row`` (what the analysis is), ``source`` ("printed" or a model), ``predictor``,
    ``coefficient``, ``low``, ``high`` (missing where none is printed) and ``wide_low``,
    ``wide_high`` (of the more careful errors, drawn thin behind).
    """
    table = pd.concat([rows_of(table, predictor=name) for name in ("LD", "MD")])
    on = lanes(
        table, item="row", value="coefficient", series="source", panel="predictor", width=3.3,
        looks=looks(order(table, "source"), MODELS), wide=("wide_low", "wide_high"), lane=0.12,
        sharex=False, linewidth=2.2, capsize=0,
    )  # fmt: skip
    across(on, 0, **ZERO | {"linestyle": "-"})
    on.titles(lambda name: f"coefficient of {name}")
    widths = {"interval": 2.2, "interval with the more careful errors": 0.7}
    grey = [Line2D([], [], color="0.3", linewidth=w, label=name) for name, w in widths.items()]
    return on.done("points of accuracy (%) for 0.01 more of the predictor", handles=grey)


@styled
def transfer_matrices(
    table: pd.DataFrame, names: Mapping[str, str], labels: Mapping[str, str] | None = None
) -> Figure:
    """Transfer from source (row) to target (column), the best source framed (Figure 14).

    ``table`` has ``source``, ``target``, ``accuracy`` and ``best`` (True for the best other source
    of a target), and may have ``majority``, the share of the target's commonest label: then
    colours tell how far the accuracy is above or below it. A task has one scale, and the languages
    that it has, by family; ``labels`` tells of a task what its colours are, if something else.
    """
    above = "majority" in table
    value = table["accuracy"] - table["majority"] if above else table["accuracy"]
    table = table.assign(value=value, itself=table["source"] == table["target"])
    table["best"] = table["best"] & ~table["itself"]
    norms = {t: scale_about(x["value"]) for t, x in parts(table[~table["itself"]], "task")}
    what = "accuracy − share of\nthe commonest label" if above else "accuracy (bright: high)"
    n = max(part["source"].nunique() for _, part in parts(table, "task"))
    on = heatmap(
        table, row="source", column="target", value="value", panel=("model", "task"),
        rows=list(names), across=list(names), own_rows=True, own_columns=True,
        framed="best", hatched="itself", cell=(2.65 / n, 2.65 / n), edge=(0.7, 1.5), turned=90,
        bar_by=lambda key: key[1], bar={task: (labels or {}).get(task, what) for task in norms},
        **({"norm": norms, "cmap": ABOUT} if above else {}),
    )  # fmt: skip
    handles = [
        framed_handle("best source of a target"),
        Patch(label="the language itself", **HATCHED),
    ]
    return on.done("target", "source", handles=handles)


@styled
def win_rates(table: pd.DataFrame, summary: pd.DataFrame) -> Figure:
    """How often the chosen source beats a random one, a point a target (Figure 16).

    ``table`` has ``model``, ``task``, ``target`` and ``win_rate``; ``summary`` has ``model``,
    ``task``, ``mean``, ``low`` and ``high``.
    """
    table, summary = (x.assign(item=x["task"] + ", " + x["model"]) for x in (table, summary))
    table = table.sort_values("win_rate", kind="stable")
    items = order(summary, "item")
    tasks = {task: MEASURES[task] for task in order(summary, "task")}
    on = lanes(table, item="item", value="win_rate", series="task", looks=tasks, items=items,
               spread=0.3, shift=-0.1, lane=0.12, low="", width=5, alpha=0.6)  # fmt: skip
    lanes(summary, item="item", value="mean", items=items, on=on, shift=0.32, capsize=3,
          looks={None: look("black", "o")}, labels={None: "mean, with interval"})  # fmt: skip
    across(on, CHANCE)
    chance = handle("chance", GUESSING | {"marker": ""}, line=True)
    return on.done("share of random sources that the chosen one beats", handles=[chance])
