"""Tidy table → figure.

Each function draws what its table holds and computes nothing; the one style is ``xlx.mplstyle``.
Colours are those of Okabe and Ito, which the colour-blind can tell apart, and every line differs in
marker and dash too, so that a grey print can be read.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from xlx import paths

STYLE = Path(__file__).with_name("xlx.mplstyle")
COLOURS = {"LD": "#D55E00", "MD": "#0072B2", "retrieval": "#009E73"}
MARKERS = {"LD": "o", "MD": "s", "retrieval": "^"}
DASHES = {"LD": "-", "MD": "--", "retrieval": ":"}
NAMES = {
    "LD": "language discrimination (LD)",
    "MD": "meaning discrimination (MD)",
    "retrieval": "retrieval, top-1",
}
CHANCE = 0.5


#: White around small text, so that it can be read across a line.
HALO = (patheffects.withStroke(linewidth=2, foreground="white"),)


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draw under the one style, whatever is set outside."""

    @wraps(draw)
    def drawn(*arguments: object, **options: object) -> Figure:
        with plt.style.context(STYLE):
            return draw(*arguments, **options)

    return drawn


def save(figure: Figure, name: str, profile: str = "mini") -> None:
    """Write ``figures/<name>.pdf`` and ``.png`` (``figures/<profile>/`` for another than mini).

    The files depend on the figure alone: no dates inside.
    """
    folder = paths.FIGURES if profile == "mini" else paths.FIGURES / profile
    folder.mkdir(parents=True, exist_ok=True)
    with plt.style.context(STYLE):
        for suffix, metadata in ((".pdf", {"CreationDate": None}), (".png", {"Software": None})):
            beside = folder / f".{name}{suffix}"
            figure.savefig(beside, format=suffix[1:], metadata=metadata)
            beside.replace(folder / f"{name}{suffix}")


def _panels(n: int, width: float, height: float, **options: object) -> tuple[Figure, np.ndarray]:
    figure, axes = plt.subplots(1, n, figsize=(width, height), squeeze=False, **options)
    return figure, axes[0]


def _steps(axes: Axes, steps: Sequence[int]) -> None:
    """Checkpoints at even distances: they are even in log steps, and 0 has no logarithm."""
    axes.set_xticks(range(len(steps)), [f"{step:,}" for step in steps])
    axes.set_xlabel("training step (log-spaced)")
    if len(steps) > 10:
        axes.tick_params(axis="x", rotation=90)


def _chance(axes: Axes) -> None:
    axes.axhline(CHANCE, color="0.4", linewidth=1, linestyle=(0, (1, 2)))
    axes.annotate(
        "chance", (0.01, CHANCE), xycoords=("axes fraction", "data"), va="bottom", fontsize=7,
        color="0.3",
    )  # fmt: skip


def _curves(axes: Axes, table: pd.DataFrame, x: str, tasks: Sequence[str]) -> None:
    for task in tasks:
        rows = table[table["task"] == task].sort_values(x)
        at = rows["at"]
        style = {"color": COLOURS[task], "marker": MARKERS[task], "linestyle": DASHES[task]}
        axes.plot(at, rows["score"], label=NAMES[task], **style)
        axes.fill_between(
            at, rows["low"], rows["high"], color=COLOURS[task], alpha=0.2, linewidth=0
        )


def _references(
    axes: Axes, references: Mapping[str, pd.DataFrame], model: str, tasks: Sequence[str]
) -> None:
    """Horizontal lines of a model: label → table of ``model``, ``task`` and ``score``."""
    for number, (label, table) in enumerate(references.items()):
        scores = table[table["model"] == model].set_index("task")["score"]
        highest = scores[list(tasks)].idxmax()
        for task in tasks:
            dash = (0, (4, 2 + 3 * number))
            axes.axhline(scores[task], color=COLOURS[task], linewidth=1, linestyle=dash)
            above = task == highest  # the others are written below their line: lines may be close
            axes.annotate(
                f"{label}, {task}", (1, scores[task]), xycoords=("axes fraction", "data"),
                xytext=(-3, 2 if above else -2), textcoords="offset points", ha="right",
                va="bottom" if above else "top", fontsize=7, color=COLOURS[task],
                path_effects=HALO,
            )  # fmt: skip


@styled
def dynamics(
    table: pd.DataFrame,
    *,
    references: Mapping[str, pd.DataFrame] | None = None,
    tasks: Sequence[str] = ("LD", "MD"),
) -> Figure:
    """Scores along training, one panel a model (Figure 2 of the ABX paper).

    ``table`` has ``model``, ``checkpoint``, ``task``, ``score``, ``low``, ``high``; bands are the
    intervals. ``references`` maps a label to a table of ``model``,
    ``task`` and ``score``.
    """
    models = list(dict.fromkeys(table["model"]))
    figure, panels = _panels(len(models), 3.6 * len(models) + 0.4, 3.1, sharey=True)
    for axes, model in zip(panels, models, strict=True):
        rows = table[table["model"] == model]
        steps = sorted(rows["checkpoint"].unique())
        rows = rows.assign(at=rows["checkpoint"].map({step: i for i, step in enumerate(steps)}))
        _chance(axes)
        _references(axes, references or {}, model, tasks)
        _curves(axes, rows, "checkpoint", tasks)
        _steps(axes, steps)
        axes.set_title(model)
    panels[0].set_ylabel("ABX score")
    panels[0].legend(loc="best")
    return figure


@styled
def layer_profile(
    table: pd.DataFrame,
    *,
    references: Mapping[str, pd.DataFrame] | None = None,
    tasks: Sequence[str] = ("LD", "MD"),
) -> Figure:
    """Scores over layers, one panel a model (Figure 3); layer 0 is the embedding layer."""
    models = list(dict.fromkeys(table["model"]))
    figure, panels = _panels(len(models), 3.6 * len(models) + 0.4, 3.1, sharey=True)
    for axes, model in zip(panels, models, strict=True):
        rows = table[table["model"] == model]
        rows = rows.assign(at=rows["layer"])
        _chance(axes)
        _references(axes, references or {}, model, tasks)
        _curves(axes, rows, "layer", tasks)
        axes.set_xticks(sorted(rows["layer"].unique()))
        axes.set_xlabel("layer (0: embeddings)")
        axes.set_title(f"{model}, step {rows['checkpoint'].max():,}")
    panels[0].set_ylabel("ABX score")
    panels[0].legend(loc="best")
    return figure


@styled
def checkpoint_layer_map(table: pd.DataFrame, *, tasks: Sequence[str] = ("LD", "MD")) -> Figure:
    """Heat maps of checkpoint × layer, a row of panels a model (Figure 4); dark is high."""
    models = list(dict.fromkeys(table["model"]))
    figure, grid = plt.subplots(
        len(models), len(tasks), figsize=(3.7 * len(tasks), 2.6 * len(models)), squeeze=False
    )
    table = table[table["task"].isin(tasks)]
    low, high = table["score"].min(), table["score"].max()
    for row, model in zip(grid, models, strict=True):
        for axes, task in zip(row, tasks, strict=True):
            cells = table[(table["model"] == model) & (table["task"] == task)].pivot(
                index="layer", columns="checkpoint", values="score"
            )
            sns.heatmap(
                cells, ax=axes, vmin=low, vmax=high, cmap="cividis_r",
                cbar=task == tasks[-1], cbar_kws={"label": "ABX score"},
                annot=cells.size <= 80, fmt=".2f", annot_kws={"size": 6},
            )  # fmt: skip
            axes.invert_yaxis()
            axes.set_xticklabels([f"{step:,}" for step in cells.columns], rotation=45, ha="right")
            axes.tick_params(axis="y", rotation=0)
            axes.set(xlabel="training step", ylabel="layer (0: embeddings)")
            axes.set_title(f"{model}: {task}")
            axes.grid(visible=False)
    return figure


@styled
def tradeoff(table: pd.DataFrame, statistics: Mapping[str, str] | None = None) -> Figure:
    """Language pairs by LD and MD, with the density of the points (Figure 6), a panel a model.

    ``table`` has ``model``, ``language_1``, ``language_2``, ``LD``, ``MD``; ``statistics`` a line
    of text a model.
    """
    models = list(dict.fromkeys(table["model"]))
    figure, panels = _panels(len(models), 3.6 * len(models) + 0.4, 3.3, sharey=True, sharex=True)
    for axes, model in zip(panels, models, strict=True):
        rows = table[table["model"] == model]
        axes.axhline(CHANCE, color="0.4", linewidth=1, linestyle=(0, (1, 2)))
        axes.axvline(CHANCE, color="0.4", linewidth=1, linestyle=(0, (1, 2)))
        sns.kdeplot(rows, x="LD", y="MD", ax=axes, fill=True, cmap="Greys", levels=6, alpha=0.6)
        axes.scatter(rows["LD"], rows["MD"], s=7, color="#0072B2", alpha=0.7, linewidth=0)
        by_md = dict.fromkeys((rows["MD"].idxmin(), rows["MD"].idxmax()), 3)
        by_ld = dict.fromkeys((rows["LD"].idxmin(), rows["LD"].idxmax()), -9)  # below the point
        for index, up in (by_md | by_ld).items():
            row = rows.loc[index]
            axes.annotate(
                f"{row['language_1']}-{row['language_2']}", (row["LD"], row["MD"]),
                xytext=(3, up), textcoords="offset points", fontsize=7, path_effects=HALO,
            )  # fmt: skip
        axes.set(xlabel="LD of a language pair", ylabel="MD of a language pair")
        axes.set_title(model)
        if statistics:
            axes.annotate(
                statistics[model], (0.03, 0.12), xycoords="axes fraction", fontsize=7, va="bottom"
            )
    return figure


@styled
def correlation_course(table: pd.DataFrame) -> Figure:
    """Correlation of LD and MD at each checkpoint, with intervals (Figure 7), a panel a model.

    ``table`` has ``model``, ``checkpoint``, ``value``, ``low``, ``high``, ``p_value``; filled marks
    are significant (p < 0.05), as in the paper.
    """
    models = list(dict.fromkeys(table["model"]))
    figure, panels = _panels(len(models), 3.6 * len(models) + 0.4, 2.9, sharey=True)
    for axes, model in zip(panels, models, strict=True):
        rows = table[table["model"] == model].sort_values("checkpoint")
        at = np.arange(len(rows))
        axes.axhline(0, color="0.4", linewidth=1)
        axes.fill_between(at, rows["low"], rows["high"], color="#0072B2", alpha=0.2, linewidth=0)
        axes.plot(at, rows["value"], color="#0072B2")
        for significant, face in ((True, "#0072B2"), (False, "white")):
            kept = (rows["p_value"] < 0.05).to_numpy() == significant
            axes.plot(
                at[kept], rows["value"][kept], "o", markerfacecolor=face, color="#0072B2",
                label="p < 0.05" if significant else "p ≥ 0.05",
            )  # fmt: skip
        _steps(axes, list(rows["checkpoint"]))
        axes.set(ylim=(-1, 1), title=model)
    panels[0].set_ylabel("Pearson r of LD and MD\nover language pairs")
    panels[0].legend(loc="best")
    return figure


@styled
def language_maps(
    table: pd.DataFrame,
    names: Mapping[str, str],
    *,
    value: str = "score",
    tasks: Sequence[str] = ("LD", "MD"),
    label: str = "ABX score",
) -> Figure:
    """Heat maps of language × checkpoint, a pair of panels a model (Figures 8 and 9).

    ``table`` has ``model``, ``checkpoint``, ``task``, ``language`` and ``value``; ``names`` gives
    the languages in order, code → label. Bright is high, as in the paper.
    """
    models = list(dict.fromkeys(table["model"]))
    columns = [(model, task) for model in models for task in tasks]
    figure, panels = plt.subplots(
        1, len(columns), figsize=(2.3 * len(columns) + 1.4, 0.17 * len(names) + 1.3),
        squeeze=False, sharey=True,
    )  # fmt: skip
    for axes, (model, task) in zip(panels[0], columns, strict=True):
        rows = table[(table["model"] == model) & (table["task"] == task)]
        cells = rows.pivot(index="language", columns="checkpoint", values=value).loc[list(names)]
        same = table[table["task"] == task][value]
        sns.heatmap(
            cells, ax=axes, vmin=same.min(), vmax=same.max(), cmap="cividis",
            cbar_kws={"label": label if (model, task) == columns[-1] else "", "shrink": 0.6},
        )  # fmt: skip
        axes.set_yticks(np.arange(len(names)) + 0.5, list(names.values()), rotation=0, fontsize=7)
        axes.set_xticks(
            np.arange(len(cells.columns)) + 0.5,
            [f"{step:,}" for step in cells.columns],
            rotation=90,
            fontsize=7,
        )
        axes.set(xlabel="training step", ylabel="")
        axes.set_title(f"{model}: {task}")
        axes.grid(visible=False)
    return figure


@styled
def retrieval_scatter(table: pd.DataFrame, statistics: Mapping[str, str]) -> Figure:
    """MD against retrieval over language pairs, a panel a pairing of layers, a colour a model.

    ``table`` has ``pairing``, ``model``, ``MD`` and ``retrieval``; ``statistics`` maps a pairing to
    a line of text.
    """
    pairings = list(dict.fromkeys(table["pairing"]))
    models = list(dict.fromkeys(table["model"]))
    styles = dict(zip(models, (("#E69F00", "o"), ("#0072B2", "s"), ("#009E73", "^")), strict=False))
    figure, panels = _panels(
        len(pairings), 2.7 * len(pairings) + 0.4, 3.1, sharex=True, sharey=True
    )
    for axes, pairing in zip(panels, pairings, strict=True):
        for model in models:
            rows = table[(table["pairing"] == pairing) & (table["model"] == model)]
            colour, marker = styles[model]
            axes.scatter(
                rows["MD"], rows["retrieval"], s=8, color=colour, marker=marker, alpha=0.5,
                linewidth=0, label=model,
            )  # fmt: skip
            sns.kdeplot(
                rows, x="MD", y="retrieval", ax=axes, color=colour, levels=4, linewidths=0.8
            )
        axes.set(xlabel="MD of a language pair", ylabel="retrieval, top-1")
        axes.set_title(pairing, fontsize=8)
        axes.annotate(
            statistics[pairing], (0.03, 0.97), xycoords="axes fraction", fontsize=7, va="top"
        )
    legend = panels[0].legend(loc="center left", markerscale=2)
    for handle in legend.legend_handles:
        handle.set_alpha(1)
    return figure


@styled
def intervals(table: pd.DataFrame) -> Figure:
    """Points with intervals over layers, a panel a model, for scores that should be at chance.

    ``table`` has ``model``, ``task``, ``layer``, ``score``, ``low``, ``high``.
    """
    models = list(dict.fromkeys(table["model"]))
    figure, panels = _panels(len(models), 3.6 * len(models) + 0.4, 2.6, sharey=True)
    for axes, model in zip(panels, models, strict=True):
        _chance(axes)
        for shift, task in ((-0.1, "LD"), (0.1, "MD")):
            rows = table[(table["model"] == model) & (table["task"] == task)]
            axes.errorbar(
                rows["layer"] + shift, rows["score"],
                yerr=[rows["score"] - rows["low"], rows["high"] - rows["score"]],
                fmt=MARKERS[task], color=COLOURS[task], label=NAMES[task], capsize=2, linewidth=1,
            )  # fmt: skip
        axes.set_xlabel("layer (0: embeddings)")
        axes.set_title(model)
    panels[0].set_ylabel("ABX score of the control")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


@styled
def sampling_spread(table: pd.DataFrame) -> Figure:
    """Spread of sampled scores over runs against the exact score, a colour a task.

    ``table`` has ``task``, ``exact``, ``sd``, ``expected_sd``: one row per condition.
    """
    figure, (axes,) = _panels(1, 4.2, 3.0)
    for task in ("LD", "MD"):
        rows = table[table["task"] == task]
        axes.scatter(
            rows["exact"], rows["sd"], s=9, color=COLOURS[task], marker=MARKERS[task], alpha=0.6,
            linewidth=0, label=NAMES[task],
        )  # fmt: skip
    curve = table.sort_values("exact")
    axes.plot(
        curve["exact"], curve["expected_sd"], color="0.2", linewidth=1, label="binomial, expected"
    )
    axes.set(
        xlabel="exact score of a condition", ylabel="standard deviation over runs", ylim=(0, None)
    )
    axes.legend(loc="best")
    return figure
