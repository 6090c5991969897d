"""Tables of probes → figures: what `plots` is to ABX scores, for section 5 and appendices F to K.

The same rules hold: a function draws what its table holds and computes nothing. Grids have a row of
panels a model and a column a task, so that a model reads across and a task reads down.
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from xlx.plots import COLOURS, HALO, styled

#: How the lines of `probe_layers` look, by what they are.
_KINDS = {
    "trained": ("#0072B2", "o", "-"),
    "untrained": ("#E69F00", "s", "--"),
    "control": ("#D55E00", "^", ":"),
    "majority": ("0.4", "", (0, (1, 2))),
}
_TASK_MARKS = {"POS": ("#0072B2", "o"), "NER": ("#E69F00", "s"), "NLI": ("#009E73", "^")}
_BOX = "#D55E00"


def _grid(
    table: pd.DataFrame, width: float, height: float, **options: object
) -> tuple[Figure, dict[tuple[str, str], Axes]]:
    """A panel for each model (row) and task (column) of a table."""
    models, tasks = (list(dict.fromkeys(table[key])) for key in ("model", "task"))
    figure, grid = plt.subplots(
        len(models), len(tasks), figsize=(width * len(tasks) + 0.6, height * len(models) + 0.3),
        squeeze=False, **options,
    )  # fmt: skip
    return figure, {
        (model, task): grid[row, column]
        for row, model in enumerate(models)
        for column, task in enumerate(tasks)
    }


@styled
def probe_layers(table: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Accuracy of probes by layer, with what it has to be compared with.

    ``table`` has ``model``, ``task``, ``kind`` (of `names`, which tells what to call them:
    "trained", "untrained", "control", "majority"), ``layer``, ``score``, ``low``, ``high``.
    """
    figure, panels = _grid(table, 2.6, 2.4, sharex=True, sharey="col")
    for (model, task), axes in panels.items():
        part = table[(table["model"] == model) & (table["task"] == task)]
        for kind, label in names.items():
            rows = part[part["kind"] == kind].sort_values("layer")
            colour, marker, dash = _KINDS[kind]
            axes.plot(
                rows["layer"], rows["score"], color=colour, marker=marker, linestyle=dash,
                label=label,
            )  # fmt: skip
            axes.fill_between(
                rows["layer"], rows["low"], rows["high"], color=colour, alpha=0.2, linewidth=0
            )
        axes.set_title(f"{model}: {task}")
        axes.set_xticks(sorted(table["layer"].unique()))
        if axes.get_subplotspec().is_last_row():
            axes.set_xlabel("layer (0: embeddings)")
        if task == table["task"].iloc[0]:
            axes.set_ylabel("accuracy")
    first = next(iter(panels.values()))
    figure.legend(*first.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    return figure


@styled
def best_checkpoints(table: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Heat maps of language × checkpoint, the best checkpoint of a language boxed (Figure 10).

    ``table`` has ``model``, ``task``, ``language``, ``checkpoint``, ``value`` (each language's
    accuracy brought to 0 ... 1 over its checkpoints) and ``best`` (True for one checkpoint a
    language); ``names`` gives the languages from top to bottom. Bright is high, as in the paper;
    a language without data for a task stays grey.
    """
    columns = list(dict.fromkeys(zip(table["model"], table["task"], strict=True)))
    figure, panels = plt.subplots(
        1, len(columns), figsize=(1.55 * len(columns) + 1.8, 0.17 * len(names) + 1.4),
        squeeze=False, sharey=True,
    )  # fmt: skip
    for axes, (model, task) in zip(panels[0], columns, strict=True):
        rows = table[(table["model"] == model) & (table["task"] == task)]
        cells = rows.pivot(index="language", columns="checkpoint", values="value")
        cells = cells.reindex(list(names))
        axes.set_facecolor("0.85")
        sns.heatmap(
            cells, ax=axes, vmin=0, vmax=1, cmap="cividis", cbar=(model, task) == columns[-1],
            cbar_kws={"label": "accuracy, each language from its lowest to its highest"},
        )  # fmt: skip
        at = {code: row for row, code in enumerate(names)}
        steps = {step: column for column, step in enumerate(cells.columns)}
        for row in rows[rows["best"]].itertuples():
            corner = (steps[row.checkpoint] + 0.08, at[row.language] + 0.08)
            axes.add_patch(Rectangle(corner, 0.84, 0.84, fill=False, edgecolor=_BOX, linewidth=1.4))
        axes.set_yticks(np.arange(len(names)) + 0.5, list(names.values()), rotation=0, fontsize=7)
        axes.set_xticks(
            np.arange(len(steps)) + 0.5, [f"{step:,}" for step in steps], rotation=90, fontsize=7
        )
        axes.set(xlabel="training step", ylabel="")
        axes.set_title(f"{model}:\n{task}", fontsize=8)
        axes.grid(visible=False)
    return figure


@styled
def learning_scatter(
    table: pd.DataFrame,
    lines: pd.DataFrame,
    statistics: Mapping[tuple[str, str], str],
    *,
    x: str = "LD",
    y: str = "accuracy",
    xlabel: str = "LD of a language",
    ylabel: str = "accuracy",
    label: str | None = "language",
) -> Figure:
    """Accuracy against a score with a fitted line and its band (Figures 11 and 15).

    ``table`` has ``model``, ``task``, `x`, `y`, and `label`, which names a point (None: too many
    points, so their density is drawn). ``lines`` has ``model``, ``task``, ``x``, ``y``, ``low``,
    ``high``; ``statistics`` a text for each (model, task).
    """
    figure, panels = _grid(table, 2.7, 2.5, sharex="row", sharey="col")
    for (model, task), axes in panels.items():
        rows = table[(table["model"] == model) & (table["task"] == task)]
        if label is None:
            sns.kdeplot(rows, x=x, y=y, ax=axes, fill=True, cmap="Greys", levels=6, alpha=0.6)
        axes.scatter(rows[x], rows[y], s=9, color=COLOURS["MD"], alpha=0.7, linewidth=0, zorder=4)
        line = lines[(lines["model"] == model) & (lines["task"] == task)].sort_values("x")
        axes.plot(line["x"], line["y"], color=COLOURS["LD"])
        axes.fill_between(
            line["x"], line["low"], line["high"], color=COLOURS["LD"], alpha=0.2, linewidth=0
        )
        if label is not None:
            for _, row in rows.iterrows():
                axes.annotate(
                    row[label], (row[x], row[y]), xytext=(2, 2), textcoords="offset points",
                    fontsize=6, path_effects=HALO,
                )  # fmt: skip
        axes.set_title(f"{model}: {task}\n{statistics[model, task]}", fontsize=8)
        axes.set(xlabel="", ylabel="")
        if axes.get_subplotspec().is_last_row():
            axes.set_xlabel(xlabel)
        if task == table["task"].iloc[0]:
            axes.set_ylabel(ylabel)
    return figure


@styled
def coefficients(table: pd.DataFrame, *, predictors: Sequence[str] = ("LD", "MD")) -> Figure:
    """Regression coefficients, printed and ours, a row an analysis, a panel a predictor (Table 1).

    ``table`` has ``row`` (what the analysis is), ``source`` ("printed" or a model), ``predictor``,
    ``coefficient``, ``low``, ``high`` (missing where none is printed) and ``wide_low``,
    ``wide_high`` (of the more careful errors, drawn thin behind).
    """
    rows = list(dict.fromkeys(table["row"]))
    sources = list(dict.fromkeys(table["source"]))
    looks = dict(zip(sources, (("#000000", "D"), ("#E69F00", "o"), ("#0072B2", "s")), strict=False))
    shifts = dict(zip(sources, np.linspace(0.24, -0.24, len(sources)), strict=True))
    figure, panels = plt.subplots(
        1, len(predictors), figsize=(3.1 * len(predictors) + 1.4, 0.42 * len(rows) + 1.2),
        squeeze=False, sharey=True,
    )  # fmt: skip
    for axes, predictor in zip(panels[0], predictors, strict=True):
        axes.axvline(0, color="0.4", linewidth=1)
        for source in sources:
            part = table[(table["source"] == source) & (table["predictor"] == predictor)]
            at = np.array([len(rows) - 1 - rows.index(row) for row in part["row"]])
            colour, marker = looks[source]
            for low, high, width, end in (
                ("wide_low", "wide_high", 0.8, 2.5),
                ("low", "high", 2.4, 0),
            ):
                axes.errorbar(
                    part["coefficient"], at + shifts[source],
                    xerr=np.maximum(
                        [part["coefficient"] - part[low], part[high] - part["coefficient"]], 0
                    ),
                    fmt=marker, color=colour, linewidth=width, capsize=end, markersize=4,
                    label=source if width > 1 else None,
                )  # fmt: skip
        for edge in range(1, len(rows)):
            axes.axhline(edge - 0.5, color="0.9", linewidth=0.6)
        axes.set_yticks(range(len(rows)), rows[::-1], fontsize=8)
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_xlabel(f"coefficient of {predictor}\n(accuracy for 1 more of {predictor})")
        axes.grid(visible=False, axis="y")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return figure


@styled
def selection_bars(table: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Gain of the checkpoint with the lowest LD over the last one, by language (Figure 13).

    ``table`` has ``model``, ``language`` and ``delta``; the largest gain or loss on top.
    """
    models = list(dict.fromkeys(table["model"]))
    count = int(table["model"].value_counts().max())
    figure, panels = plt.subplots(
        1, len(models), figsize=(3.4 * len(models) + 0.4, 0.16 * count + 1.1), squeeze=False,
        sharex=True,
    )  # fmt: skip
    for axes, model in zip(panels[0], models, strict=True):
        rows = table[table["model"] == model]
        rows = rows.iloc[rows["delta"].abs().argsort(kind="stable")]
        colours = np.where(rows["delta"] >= 0, "#0072B2", "#E69F00")
        axes.barh(range(len(rows)), rows["delta"], color=colours, height=0.75)
        axes.axvline(0, color="0.4", linewidth=1)
        axes.set_yticks(range(len(rows)), [names[code] for code in rows["language"]], fontsize=7)
        axes.set_ylim(-0.7, len(rows) - 0.3)
        axes.set_xlabel("Δ = gap of the last − gap of the lowest-LD checkpoint\n(accuracy)")
        axes.set_title(model)
        axes.grid(visible=False, axis="y")
    return figure


@styled
def transfer_matrices(table: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Accuracy from source (row) to target (column), the best source boxed (Figure 14).

    ``table`` has ``model``, ``task``, ``source``, ``target``, ``accuracy`` and ``best`` (True for
    the best other source of a target). Colours run over all cells of a task.
    """
    figure, panels = _grid(table, 3.9, 3.7)
    for (model, task), axes in panels.items():
        of_task = table[table["task"] == task]
        rows = of_task[of_task["model"] == model]
        codes = [code for code in names if code in set(rows["source"])]
        cells = rows.pivot(index="source", columns="target", values="accuracy").loc[codes, codes]
        sns.heatmap(
            cells, ax=axes, cmap="cividis", square=True,
            vmin=of_task["accuracy"].min(), vmax=of_task["accuracy"].max(),
            cbar_kws={"label": "accuracy", "shrink": 0.7},
        )  # fmt: skip
        for row in rows[rows["best"]].itertuples():
            corner = (codes.index(row.target) + 0.05, codes.index(row.source) + 0.05)
            axes.add_patch(Rectangle(corner, 0.9, 0.9, fill=False, edgecolor=_BOX, linewidth=1.5))
        ticks = np.arange(len(codes)) + 0.5
        axes.set_xticks(ticks, [names[code] for code in codes], rotation=90, fontsize=6)
        axes.set_yticks(ticks, [names[code] for code in codes], rotation=0, fontsize=6)
        axes.set(xlabel="target", ylabel="source")
        axes.set_title(f"{model}: {task}")
        axes.grid(visible=False)
    return figure


@styled
def win_rates(table: pd.DataFrame, summary: pd.DataFrame) -> Figure:
    """How often the chosen source beats a random one, a point a target (Figure 16).

    ``table`` has ``model``, ``task``, ``target`` and ``win_rate``; ``summary`` has ``model``,
    ``task``, ``mean``, ``low`` and ``high``. The dotted line is chance.
    """
    columns = list(dict.fromkeys(zip(table["model"], table["task"], strict=True)))
    figure, axes = plt.subplots(figsize=(1.05 * len(columns) + 1.2, 3.2))
    axes.axhline(0.5, color="0.4", linewidth=1, linestyle=(0, (1, 2)))
    for at, (model, task) in enumerate(columns):
        rows = table[(table["model"] == model) & (table["task"] == task)].sort_values("win_rate")
        colour, marker = _TASK_MARKS[task]
        spread = np.resize([-0.22, -0.11, 0.0, 0.11, 0.22], len(rows))
        axes.scatter(
            at + spread, rows["win_rate"], s=14, color=colour, marker=marker, alpha=0.6, linewidth=0
        )
        mean = summary[(summary["model"] == model) & (summary["task"] == task)].iloc[0]
        axes.errorbar(
            at + 0.38, mean["mean"],
            yerr=[[mean["mean"] - mean["low"]], [mean["high"] - mean["mean"]]],
            fmt=marker, color="black", capsize=3, linewidth=1.2, markersize=4,
        )  # fmt: skip
    axes.set_xticks(range(len(columns)), [f"{task}\n{model}" for model, task in columns])
    axes.set(xlim=(-0.5, len(columns) - 0.3), ylim=(-0.03, 1.03))
    axes.set_ylabel("share of random sources\nthat the chosen one beats")
    axes.grid(visible=False, axis="x")
    return figure
