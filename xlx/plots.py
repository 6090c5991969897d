"""Tidy table → figure.

Each function draws what its table holds and computes nothing; the one style is ``xlx.mplstyle``.
Colours are those of Okabe and Ito, which the colour-blind can tell apart, and every line differs in
marker and dash too, so that a grey print can be read.
"""

import io
import os
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from xlx import paths

STYLE = Path(__file__).with_name("xlx.mplstyle")
COLOURS = {
    "LD": "#D55E00",
    "MD": "#0072B2",
    "MD, like length": "#56B4E9",
    "retrieval": "#009E73",
}
MARKERS = {"LD": "o", "MD": "s", "MD, like length": "D", "retrieval": "^"}
DASHES = {"LD": "-", "MD": "--", "MD, like length": "-.", "retrieval": ":"}
NAMES = {
    "LD": "language discrimination (LD)",
    "MD": "meaning discrimination (MD)",
    "MD, like length": "MD among sentences of like length",
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
            figure = draw(*arguments, **options)
            # The first figure loads the backend, and that of a notebook asks to be shown every
            # figure of a cell; the context would take the wish back, and the later ones be hidden.
            interactive = matplotlib.is_interactive()
        matplotlib.interactive(interactive)
        return figure

    return drawn


#: Two pictures look the same if no pixel differs by more than the first number (of 255 levels),
#: and no larger share of them than the second by more than `FAINT` levels: another processor moves
#: an edge by a fraction of a pixel, while a digit changes whole pixels.
VISIBLE = (24, 0.005)
FAINT = 2


def save(figure: Figure, name: str, profile: str = "mini") -> None:
    """Write ``<name>.pdf`` and ``.png`` where ``make figures`` says, else to ``build/figures/``.

    So a notebook that is only played with changes no committed figure (`xlx.run` sets
    ``XLX_FIGURES``; "none": no files at all). Another profile than mini has a folder within. The
    files depend on the figure alone, and stay as they are where the picture in them looks the same
    (`VISIBLE`).
    """
    chosen = os.environ.get("XLX_FIGURES") or str(paths.BUILD / "figures")
    if chosen == "none":
        return
    folder = Path(chosen) if profile == "mini" else Path(chosen) / profile
    folder.mkdir(parents=True, exist_ok=True)
    png, pdf = (folder / f"{name}{suffix}" for suffix in (".png", ".pdf"))
    # The page first: the layout settles as it is drawn, and moves a little with each time.
    page = _drawn(figure, "pdf", {"CreationDate": None})
    picture = _drawn(figure, "png", {"Software": None})
    if png.is_file() and pdf.is_file() and _same(png.read_bytes(), picture):
        return
    for path, content in ((pdf, page), (png, picture)):
        beside = path.with_name(f".{path.name}")
        beside.write_bytes(content)
        beside.replace(path)


def _drawn(figure: Figure, kind: str, metadata: dict[str, None]) -> bytes:
    buffer = io.BytesIO()
    with plt.style.context(STYLE):
        figure.savefig(buffer, format=kind, metadata=metadata)
    return buffer.getvalue()


def _same(before: bytes, now: bytes) -> bool:
    """Whether two PNG files look the same."""
    if before == now:
        return True
    try:
        one, other = (
            np.rint(255 * plt.imread(io.BytesIO(content), format="png"))
            for content in (before, now)
        )
    except (OSError, ValueError, SyntaxError):  # the file there is torn
        return False
    if one.shape != other.shape:
        return False
    apart = np.abs(one - other).reshape(*one.shape[:2], -1).max(axis=2)
    most, share = VISIBLE
    return bool(apart.max() <= most and (apart > FAINT).mean() <= share)


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


#: Dashes of reference lines, in their order.
_REFERENCES = ((0, (5, 2)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (7, 3)))


def _references(
    axes: Axes, references: Mapping[str, pd.DataFrame], model: str, tasks: Sequence[str]
) -> None:
    """Horizontal lines of a model: label → table of ``model``, ``task`` and ``score``."""
    for (label, table), dash in zip(references.items(), _REFERENCES, strict=False):
        scores = table[table["model"] == model].set_index("task")["score"]
        for task in tasks:
            if task in scores:
                axes.axhline(
                    scores[task], color=COLOURS[task], linewidth=1, linestyle=dash,
                    label=f"{task} of {label}",
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
    intervals. ``references`` maps a label ("a bag of subwords") to a table of ``model``, ``task``
    and ``score``; a task that it lacks has no line.
    """
    models = list(dict.fromkeys(table["model"]))
    figure, panels = _panels(len(models), 3.6 * len(models) + 0.4, 3.6, sharey=True)
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
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3 if len(models) > 1 else 1)
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
    figure, panels = _panels(len(models), 3.6 * len(models) + 0.4, 3.6, sharey=True)
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
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=3 if len(models) > 1 else 1)
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


@styled
def training_losses(table: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Losses along training, a panel an objective.

    ``table`` has ``objective``, ``model``, ``step`` and ``loss``; ``names`` gives the objectives
    in order, as they are called in the titles. A model looks the same in every panel.
    """
    objectives = [objective for objective in names if objective in set(table["objective"])]
    looks = dict(zip(dict.fromkeys(table["model"]), _looks(), strict=False))
    figure, panels = _panels(len(objectives), 2.7 * len(objectives) + 0.4, 3.4)
    for axes, objective in zip(panels, objectives, strict=True):
        rows = table[table["objective"] == objective]
        for number, model in enumerate(dict.fromkeys(rows["model"])):
            curve = rows[rows["model"] == model].sort_values("step")
            axes.plot(
                curve["step"], curve["loss"], label=model, linewidth=1.2,
                markevery=(2 * number, 10), **looks[model],
            )  # fmt: skip
        axes.set_title(names[objective], fontsize=9)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlabel("training step")
        axes.legend(loc="upper right", fontsize=7)
    panels[0].set_ylabel("training loss (nats)")
    return figure


def _looks() -> list[dict[str, object]]:
    """As many ways to draw a line as the family has members, each differing in two things."""
    colours = ("#000000", "#E69F00", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9")
    marks = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
    dashes = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1)))
    return [
        {
            "color": colours[number % len(colours)],
            "marker": mark,
            "linestyle": dashes[number % len(dashes)],
        }
        for number, mark in enumerate(marks)
    ]


@styled
def held_out_maps(table: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Heat maps of language × model, one for each group of models that can be compared.

    ``table`` has ``group``, ``model``, ``language`` and ``loss``; ``names`` gives the languages in
    order, code → label. Colours run from the lowest to the highest loss of a group; the numbers in
    the cells are the losses.
    """
    groups = list(dict.fromkeys(table["group"]))
    cells = {
        group: table[table["group"] == group]
        .pivot(index="language", columns="model", values="loss")
        .loc[list(names), list(dict.fromkeys(table[table["group"] == group]["model"]))]
        for group in groups
    }
    widths = [part.shape[1] for part in cells.values()]
    figure, panels = plt.subplots(
        1, len(groups), figsize=(0.55 * sum(widths) + 1.8, 0.18 * len(names) + 1.8),
        squeeze=False, sharey=True, gridspec_kw={"width_ratios": widths},
    )  # fmt: skip
    for axes, group in zip(panels[0], groups, strict=True):
        sns.heatmap(
            cells[group], ax=axes, cmap="cividis_r", annot=True, fmt=".2f", annot_kws={"size": 6},
            cbar=False,
        )  # fmt: skip
        axes.set_yticks(np.arange(len(names)) + 0.5, list(names.values()), rotation=0, fontsize=7)
        axes.set_xticklabels(cells[group].columns, rotation=60, ha="right", fontsize=7)
        axes.set(xlabel="", ylabel="")
        axes.set_title(group.replace(", ", ",\n"), fontsize=8)
        axes.grid(visible=False)
    figure.suptitle("held-out loss in nats a subword; dark is high, panel by panel", fontsize=8)
    return figure


@styled
def vocabularies(
    table: pd.DataFrame, names: Mapping[str, str], columns: Mapping[str, str]
) -> Figure:
    """What vocabularies do to every language: a row a language, a panel a column of the table.

    ``table`` has ``vocabulary``, ``language`` and the ``columns`` (column → label of its axis);
    ``names`` gives the languages from top to bottom, code → label.
    """
    figure, panels = _panels(
        len(columns), 2.4 * len(columns) + 1.2, 0.17 * len(names) + 1.2, sharey=True
    )
    looks = (("#0072B2", "o", "full"), ("#D55E00", "D", "none"), ("#009E73", "^", "full"))
    at = {code: len(names) - 1 - number for number, code in enumerate(names)}
    for axes, (column, label) in zip(panels, columns.items(), strict=True):
        for row in table.pivot(index="language", columns="vocabulary", values=column).itertuples():
            axes.plot(row[1:], [at[row.Index]] * len(row[1:]), color="0.75", linewidth=1)
        for vocabulary, (colour, marker, fill) in zip(
            dict.fromkeys(table["vocabulary"]), looks, strict=False
        ):
            rows = table[table["vocabulary"] == vocabulary]
            axes.plot(
                rows[column], rows["language"].map(at), linestyle="none", color=colour,
                marker=marker, fillstyle=fill, label=vocabulary,
            )  # fmt: skip
        axes.set_xlabel(label)
        axes.set_xlim(left=0)
    panels[0].set_yticks(list(at.values()), list(names.values()), fontsize=7)
    panels[0].set_ylim(-0.7, len(names) - 0.3)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


@styled
def member_profiles(
    table: pd.DataFrame,
    references: Mapping[str, str],
    *,
    lines: Mapping[str, pd.DataFrame] | None = None,
    tasks: Sequence[str] = ("LD", "MD"),
    columns: int = 3,
) -> Figure:
    """Scores over layers, a small panel a model, each with its reference model in thin lines.

    ``table`` has ``model``, ``task``, ``layer``, ``score``, ``low`` and ``high``; ``references``
    maps a model to the one that it is compared with, where there is one; ``lines`` are horizontal,
    as the references of `dynamics`.
    """
    models = list(dict.fromkeys(table["model"]))
    rows = -(-len(models) // columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(2.35 * columns + 0.4, 1.9 * rows + 0.7), squeeze=False,
        sharex=True, sharey=True,
    )  # fmt: skip
    for axes, model in zip(grid.flat, models, strict=False):
        part = table[table["model"] == model]
        _chance(axes)
        _references(axes, lines or {}, model, tasks)
        other = references.get(model)
        for task in tasks[:2]:
            thin = table[(table["model"] == other) & (table["task"] == task)].sort_values("layer")
            axes.plot(
                thin["layer"], thin["score"], color=COLOURS[task], linewidth=0.8,
                linestyle=DASHES[task], label=f"{task} of the model in brackets",
            )  # fmt: skip
        _curves(axes, part.assign(at=part["layer"]), "layer", tasks)
        axes.set_title(model if other is None else f"{model}\n[{other}]", fontsize=8)
    for axes in grid.flat[len(models) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel("ABX score")
    for number in range(len(models))[-columns:]:
        grid.flat[number].xaxis.set_tick_params(labelbottom=True)
        grid.flat[number].set_xlabel("layer (0: embeddings)")
        grid.flat[number].set_xticks(sorted(table["layer"].unique()))
    figure.legend(
        *grid[0, 0].get_legend_handles_labels(), loc="outside lower center",
        ncols=3 if lines else 2,
    )  # fmt: skip
    return figure


@styled
def paired_differences(table: pd.DataFrame, *, tasks: Sequence[str] = ("LD", "MD")) -> Figure:
    """Differences of two models with intervals, a row a pair of models, a panel a task.

    ``table`` has ``model``, ``reference``, ``task``, ``layers`` (up to two sets of them, a mark
    each), ``value``, ``low`` and ``high``.
    """
    pairs = list(dict.fromkeys(zip(table["model"], table["reference"], strict=True)))
    at = {pair: len(pairs) - 1 - number for number, pair in enumerate(pairs)}
    width = min(3.1 * len(tasks) + 1.6, 8.7)
    figure, panels = _panels(len(tasks), width, 0.42 * len(pairs) + 1.3)
    for axes, task in zip(panels, tasks, strict=True):
        axes.axvline(0, color="0.4", linewidth=1)
        for layers, up, fill in zip(
            dict.fromkeys(table["layers"]), (0.15, -0.15), ("full", "none"), strict=False
        ):
            rows = table[(table["task"] == task) & (table["layers"] == layers)]
            height = [at[pair] + up for pair in zip(rows["model"], rows["reference"], strict=True)]
            axes.errorbar(
                rows["value"], height,
                xerr=[rows["value"] - rows["low"], rows["high"] - rows["value"]],
                fmt=MARKERS[task], fillstyle=fill, color=COLOURS[task], capsize=2, linewidth=1,
            )  # fmt: skip
        axes.set_yticks(list(at.values()), [""] * len(pairs))
        axes.set_ylim(-0.6, len(pairs) - 0.4)
        axes.set_xlabel(f"difference in {task}")
        axes.set_title(NAMES[task] if len(tasks) < 3 else task)
    panels[0].set_yticks(list(at.values()), [f"{one} − {other}" for one, other in pairs])
    grey = [
        Line2D([], [], linestyle="none", marker="o", color="0.3", fillstyle=fill, label=layers)
        for layers, fill in zip(dict.fromkeys(table["layers"]), ("full", "none"), strict=False)
    ]
    figure.legend(handles=grey, loc="outside lower center", ncols=2)
    return figure
