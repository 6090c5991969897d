"""Tables of MEXA → figures: what `plots` is to ABX scores, for Kargaran et al. (2025).

The same rules hold: a function draws what its table holds and computes nothing but where to put it.
Panels stand side by side in the order in which the table names them; what a colour tells, a marker,
a dash or a place tells too.
"""

import itertools
from collections.abc import Mapping

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from xlx.plots import HALO, styled

_COLOURS = ("#000000", "#E69F00", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_MISSING = "0.85"
#: White around text between points, so narrow that it hides none of them.
_THIN_HALO = (patheffects.withStroke(linewidth=1, foreground="white"),)
#: A narrow bar of colours beside the last panel.
_BAR = {"pad": 0.01, "fraction": 0.04, "aspect": 30}
#: Where the axis of probabilities ends: smaller ones tell no more.
_SMALLEST = 1e-12
#: How the lines of `estimates` are called and look, by what they are.
_LINES = {
    "fitted": ("fitted line, with interval", "#D55E00", "-"),
    "ideal": ("ideal line", "0.2", "--"),
    "chance": ("guessing", "0.4", (0, (1, 2))),
}
#: From "not covered" to "well-covered": red to blue as far as the paper's go to green, each darker
#: than the one before; and the colours of the numbers on them.
_BANDS = ("#FBDAD2", "#F0AE84", "#B9A25A", "#3D8A80", "#14456E")
_INKS = ("black", "black", "black", "white", "white")
_POOLINGS = {
    "weighted_mean": ("weighted mean of tokens", "#0072B2", "o"),
    "last": ("last token", "#E69F00", "s"),
    "mean": ("mean of tokens", "#009E73", "^"),
}


def _panels(
    n: int, width: float, height: float, *, rows: int = 1, **options: object
) -> tuple[Figure, list[Axes]]:
    """Axes of n panels in some rows, each filled before the next."""
    columns = -(-n // rows)
    figure, axes = plt.subplots(rows, columns, figsize=(width, height), squeeze=False, **options)
    for spare in axes.flat[n:]:
        spare.set_visible(False)
    return figure, list(axes.flat[:n])


def _looks(keys: list[str], of_what: str) -> dict[str, tuple[str, str]]:
    """A colour and a marker for each; from the eighth on, colours come again with other markers."""
    n = len(_COLOURS)
    if len(keys) > n * n:
        raise ValueError(
            f"{len(keys)} {of_what} cannot be told apart by {n} colours and {n} markers: draw "
            f"{n * n} or fewer in a figure"
        )
    return {key: (_COLOURS[i % n], _MARKERS[(i % n + i // n) % n]) for i, key in enumerate(keys)}


def _bars(rows: pd.DataFrame, value: str, low: str, high: str) -> np.ndarray:
    """Lengths of error bars, ``(2, n)``; rounding may put an end past its point."""
    return np.maximum([rows[value] - rows[low], rows[high] - rows[value]], 0)


@styled
def chance_tails(table: pd.DataFrame) -> Figure:
    """How probable a score is by chance, for several numbers of sentences (Figure 2).

    ``table`` has ``n``, ``mu`` (share of hits), ``binomial`` and ``matrix``, the probabilities of
    that share or more, and may have ``vectors``, ``low``, ``high`` (simulated, with an interval;
    missing for an n that was not). The axis is logarithmic and ends at 1e-12; what is 0 is
    left out.
    """
    figure, axes = plt.subplots(figsize=(6.7, 3.9))
    sizes = list(dict.fromkeys(table["n"]))
    colours = matplotlib.colormaps["cividis"](np.linspace(0, 0.7, len(sizes)))
    simulated = "vectors" in table
    for number, (n, colour) in enumerate(zip(sizes, colours, strict=True)):
        rows = table[table["n"] == n].sort_values("mu")
        for column, dash in (("binomial", "-"), ("matrix", "--")):
            drawn = rows[rows[column] > 0]
            axes.plot(drawn["mu"], drawn[column], color=colour, linestyle=dash, linewidth=1.2)
        end = rows[rows["matrix"] >= _SMALLEST].iloc[-1]
        axes.annotate(
            f"n = {n}" if number == 0 else f"{n}", (end["mu"], end["matrix"]), xytext=(4, 2),
            textcoords="offset points", fontsize=8, color=colour,
        )  # fmt: skip
        if simulated:
            seen = rows[rows["vectors"] > 0]
            axes.errorbar(
                seen["mu"], seen["vectors"], yerr=_bars(seen, "vectors", "low", "high"),
                fmt=_MARKERS[number % len(_MARKERS)], color=colour, markersize=4, capsize=2,
                linewidth=1,
            )  # fmt: skip
    axes.set_yscale("log")
    axes.set_ylim(_SMALLEST, 3)
    axes.set_xlim(-0.02, table.loc[table["matrix"] >= _SMALLEST, "mu"].max() + 0.05)
    axes.set_xlabel("share of hits, μ")
    axes.set_ylabel("probability of that share or more")
    grey = [
        Line2D([], [], color="0.3", linewidth=1.2, label="binomial: hits independent"),
        Line2D([], [], color="0.3", linewidth=1.2, linestyle="--", label="random matrix, exact"),
    ]
    if simulated:
        grey.append(axes.errorbar([], [], yerr=[], fmt="o", color="0.3", capsize=2, linewidth=1))
        grey[-1].set_label("random vectors, simulated, with interval")
    figure.legend(handles=grey, loc="outside upper center", ncols=3, columnspacing=1.2)
    return figure


@styled
def layer_scores(table: pd.DataFrame, bags: pd.DataFrame) -> Figure:
    """Mean score of groups of languages by layer, a panel a model (Figure 3).

    ``table`` has ``model``, ``states``, ``group``, ``layer`` and ``mu``: a colour and a marker for
    each group, a dash for each way to take the states (at most 3). ``bags`` (``model``, ``group``,
    ``mu``) are drawn across, dotted. Panels that do not fit side by side stand in several rows.
    """
    models, groups, states = (
        list(dict.fromkeys(table[key])) for key in ("model", "group", "states")
    )
    looks, dashes = _looks(groups, "groups of languages"), ("-", "--", "-.")
    rows = -(-len(models) // 4)
    columns = -(-len(models) // rows)
    figure, panels = _panels(
        len(models), 2.2 * columns + 0.6, 2.2 * rows + 0.7, rows=rows, sharey=True
    )
    for axes, model in zip(panels, models, strict=True):
        own = table[table["model"] == model]
        for way, group in itertools.product(states, groups):
            colour, marker = looks[group]
            part = own[(own["group"] == group) & (own["states"] == way)].sort_values("layer")
            axes.plot(
                part["layer"], part["mu"], color=colour, linestyle=dashes[states.index(way)],
                marker=marker, markersize=3, linewidth=1.2,
            )  # fmt: skip
        for row in bags[bags["model"] == model].itertuples():
            axes.axhline(row.mu, color=looks[row.group][0], linewidth=1, linestyle=":")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        axes.set_xlabel("layer (0: embeddings)")
        axes.set_title(model, fontsize=9)
    for axes in panels[::columns]:
        axes.set_ylabel("MEXA score μ (share of hits)")
    panels[0].set_ylim(bottom=0)
    handles = [
        Line2D([], [], linestyle="none", color=colour, marker=marker, label=group)
        for group, (colour, marker) in looks.items()
    ]
    handles += [
        Line2D([], [], color="0.2", linewidth=1.2, linestyle=dash, label=way)
        for way, dash in [*zip(states, dashes, strict=False), ("bag of subwords", ":")]
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=-(-len(handles) // 2))
    return figure


@styled
def neighbourhoods(table: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Sentences in the plane of t-SNE, a panel a layer or a model (Figure 4).

    ``table`` has ``panel`` (its title), ``language``, ``sentence`` (a number), ``x``, ``y`` and
    ``numbered``: whether to write the number of the sentence at its point. ``names`` gives the
    languages in the order of the legend, code → label.

    Raises ValueError for more languages than can be told apart (21).
    """
    looks = [(colour, marker) for marker in _MARKERS[:3] for colour in _COLOURS]
    if len(names) > len(looks):
        raise ValueError(
            f"{len(names)} languages cannot be told apart by {len(looks)} marks: name "
            f"{len(looks)} or fewer"
        )
    titles = list(dict.fromkeys(table["panel"]))
    figure, panels = _panels(len(titles), 2.8 * len(titles) + 1.4, 3.1)
    for axes, title in zip(panels, titles, strict=True):
        part = table[table["panel"] == title]
        for (code, label), (colour, marker) in zip(names.items(), looks, strict=False):
            rows = part[part["language"] == code]
            axes.scatter(
                rows["x"], rows["y"], s=11, color=colour, marker=marker, alpha=0.75, linewidth=0,
                label=label,
            )  # fmt: skip
        for row in part[part["numbered"].astype(bool)].itertuples():
            axes.annotate(
                f"{row.sentence}", (row.x, row.y), xytext=(3, 2), textcoords="offset points",
                fontsize=6, path_effects=HALO,
            )  # fmt: skip
        axes.set_aspect("equal", adjustable="datalim")
        axes.set(xticks=[], yticks=[], xlabel="t-SNE, no units", title=title)
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside right center", fontsize=7,
        markerscale=1.5, labelspacing=0.35,
    )  # fmt: skip
    return figure


@styled
def estimates(
    table: pd.DataFrame,
    lines: pd.DataFrame,
    *,
    xlabel: str = "MEXA score × score in English",
    ylabel: str = "score of the task",
) -> Figure:
    """Scores of a task against those that MEXA leads to expect, a point a language (Figure 1).

    ``table`` has ``panel`` (its title), ``expected``, ``score``, ``score_low``, ``score_high``,
    ``written`` (what to write at a point, or "") and may have ``mu_low``, ``mu_high``, in units of
    ``expected``; intervals may be missing. ``lines`` has ``panel``, ``kind`` ("fitted", "ideal",
    "chance"), ``x``, ``y``, ``low``, ``high`` (missing where a line has no band). Scores are
    shares in [0, 1]; each panel has its own axes.
    """
    titles, kinds = list(dict.fromkeys(table["panel"])), list(dict.fromkeys(lines["kind"]))
    rows = max(1, -(-len(titles) // 4))
    columns = max(1, -(-len(titles) // rows))
    figure, grid = plt.subplots(
        rows, columns, figsize=(2.5 * columns + 0.5, 2.4 * rows + 0.7), squeeze=False
    )
    for axes, title in zip(grid.flat, titles, strict=False):
        part = table[table["panel"] == title]
        across = _bars(part, "expected", "mu_low", "mu_high") if "mu_low" in part else None
        axes.errorbar(
            part["expected"], part["score"], xerr=across,
            yerr=_bars(part, "score", "score_low", "score_high"),
            fmt="o", markersize=2.6, color="#0072B2", ecolor="#7FA8C4", elinewidth=0.5, zorder=5,
        )  # fmt: skip
        for kind in kinds:
            _, colour, dash = _LINES[kind]
            line = lines[(lines["panel"] == title) & (lines["kind"] == kind)].sort_values("x")
            axes.plot(line["x"], line["y"], color=colour, linestyle=dash, linewidth=1.2, zorder=3)
            axes.fill_between(
                line["x"], line["low"], line["high"], color=colour, alpha=0.2, linewidth=0
            )
        for row in part[part["written"] != ""].itertuples():
            axes.annotate(
                row.written, (row.expected, row.score), xytext=(3, 2), textcoords="offset points",
                fontsize=6, path_effects=_THIN_HALO, zorder=6,
            )  # fmt: skip
        axes.set_title(title, fontsize=8)
        axes.set(xlabel="", ylabel="")
    for axes in grid.flat[len(titles) :]:
        axes.set_visible(False)
    figure.supxlabel(xlabel, fontsize=9)
    figure.supylabel(ylabel, fontsize=9)
    handles = [Line2D([], [], linestyle="none", marker="o", color="#0072B2", label="a language")]
    handles += [
        Line2D([], [], color=colour, linestyle=dash, linewidth=1.2, label=label)
        for label, colour, dash in (_LINES[kind] for kind in kinds)
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=4)
    return figure


@styled
def coverage_bands(
    table: pd.DataFrame, names: Mapping[str, str], n_columns: int = 5, *, written: bool = True
) -> Figure:
    """Adjusted scores of all languages in all models, coloured by their bands (Table 6).

    ``table`` has ``language``, ``model``, ``score`` (in [0, 1], ``written`` to two digits without
    its zero, or not at all) and ``band`` (the five of `xlx.mexa.bands`, as it gives them).
    ``names`` gives the languages in reading order, code → label; they are split into ``n_columns``
    blocks of rows. A language without a score stays grey.
    """
    models = list(dict.fromkeys(table["model"]))
    codes = list(names)
    height = -(-len(codes) // n_columns)
    blocks = [codes[start : start + height] for start in range(0, len(codes), height)]
    bands = table["band"].cat.categories
    scores, levels = (
        table.assign(level=table["band"].cat.codes)
        .pivot(index="language", columns="model", values=column)
        .reindex(index=codes, columns=models)
        for column in ("score", "level")
    )
    size = 5.5
    width = 0.14 * len(models) + 0.6 * size / 72 * max(map(len, names.values())) + 0.1
    head = 0.6 * size / 72 * max(map(len, models))
    figure, panels = _panels(
        len(blocks), max(width * len(blocks) + 0.1, 6.4), 0.105 * height + head + 0.45
    )
    for axes, block in zip(panels, blocks, strict=True):
        axes.set_facecolor("white")
        shown = np.ma.masked_less(levels.loc[block].fillna(-1).to_numpy(), 0)
        colours = ListedColormap(_BANDS).with_extremes(bad=_MISSING)
        axes.pcolormesh(
            shown, cmap=colours, norm=Normalize(-0.5, len(_BANDS) - 0.5), edgecolor="white",
            linewidth=0.4,
        )  # fmt: skip
        for row, code in enumerate(block):
            for column, model in enumerate(models):
                score, level = scores.loc[code, model], levels.loc[code, model]
                if written and not np.isnan(score):
                    axes.annotate(
                        f"{score:.2f}".removeprefix("0").replace("1.00", "1.0"),
                        (column + 0.5, row + 0.5), ha="center", va="center_baseline",
                        fontsize=size, color=_INKS[int(level)],
                    )  # fmt: skip
        axes.set(xlim=(0, len(models)), ylim=(height, 0))
        axes.xaxis.tick_top()
        axes.set_xticks(np.arange(len(models)) + 0.5, models, rotation=90, fontsize=size)
        axes.set_yticks(np.arange(len(block)) + 0.5, [names[code] for code in block], fontsize=size)
        axes.tick_params(length=0, pad=1.5)
        axes.spines[:].set_visible(False)
        axes.grid(visible=False)
    labels = [f"{bands[0]}: not covered", *bands[1:-1], f"{bands[-1]}: well covered"]
    handles = [Patch(color=c, label=label) for c, label in zip(_BANDS, labels, strict=True)]
    if levels.isna().to_numpy().any():
        handles.append(Patch(color=_MISSING, label="no score"))
    figure.legend(
        handles=handles, loc="outside lower center", ncols=len(handles), fontsize=7,
        title="adjusted score: MEXA score × score in English", title_fontsize=7,
    )  # fmt: skip
    return figure


@styled
def seen_unseen(table: pd.DataFrame, summary: pd.DataFrame) -> Figure:
    """Difference of scores on verses out of pretraining and in it, a point a language.

    ``table`` has ``model``, ``pooling`` ("weighted_mean", "last", "mean"; those of a model share
    its space) and ``difference`` (of μ); ``summary`` has ``model``, ``pooling``, ``mean``, ``low``
    and ``high``, drawn in black below the points.
    """
    models, poolings = (list(dict.fromkeys(table[key])) for key in ("model", "pooling"))
    own = {
        model: [x for x in poolings if x in set(table.loc[table["model"] == model, "pooling"])]
        for model in models
    }
    most = max(map(len, own.values()))
    figure, axes = plt.subplots(figsize=(5.6, 0.42 * len(models) * most + 1.2))
    axes.axvline(0, color="0.4", linewidth=1)
    for number, model in enumerate(models):
        lane = 1 / len(own[model])
        for place, pooling in enumerate(own[model]):
            _, colour, marker = _POOLINGS[pooling]
            middle = number + (place + 0.5) * lane - 0.5
            here = (table["model"] == model) & (table["pooling"] == pooling)
            rows = table[here].sort_values("difference")
            spread = np.resize([-0.1, 0.1, -0.3, 0.0, -0.2], len(rows)) * lane
            axes.scatter(
                rows["difference"], middle + spread, s=12, color=colour, marker=marker, alpha=0.65,
                linewidth=0,
            )  # fmt: skip
            mean = summary[(summary["model"] == model) & (summary["pooling"] == pooling)]
            axes.errorbar(
                mean["mean"], np.full(len(mean), middle + 0.28 * lane),
                xerr=_bars(mean, "mean", "low", "high"),
                fmt=marker, color="black", capsize=3, linewidth=1.2, markersize=4,
            )  # fmt: skip
    for edge in range(1, len(models)):
        axes.axhline(edge - 0.5, color="0.8", linewidth=0.6)
    axes.set_yticks(range(len(models)), models)
    axes.set_ylim(len(models) - 0.5, -0.5)
    axes.set_xlabel("MEXA on held-out verses − on verses in pretraining (share of hits)")
    axes.grid(visible=False, axis="y")
    handles = [
        Line2D([], [], linestyle="none", color=colour, marker=marker, label=label)
        for label, colour, marker in (_POOLINGS[pooling] for pooling in poolings)
    ]
    handles.append(axes.errorbar([], [], xerr=[], fmt="o", color="black", capsize=3, linewidth=1.2))
    handles[-1].set_label("mean, with interval")
    figure.legend(handles=handles, loc="outside upper center", ncols=3)
    return figure


@styled
def correlations(
    table: pd.DataFrame, *, xlabel: str = "correlation with the task (Pearson), 95 % interval"
) -> Figure:
    """Correlations with their intervals, a row a measure, a colour and a marker a model.

    ``table`` has ``model``, ``measure``, ``value``, ``low`` and ``high``.

    Raises ValueError for more models than can be told apart (49).
    """
    models, measures = (list(dict.fromkeys(table[key])) for key in ("model", "measure"))
    looks = _looks(models, "models")
    shifts = np.linspace(-0.3, 0.3, len(models)) if len(models) > 1 else [0.0]
    at = {measure: row for row, measure in enumerate(measures)}
    height = max(0.085 * len(models) + 0.08, 0.26) * len(measures) + 1.1
    figure, axes = plt.subplots(figsize=(6.2, height))
    axes.axvline(0, color="0.4", linewidth=1)
    for model, shift in zip(models, shifts, strict=True):
        rows = table[table["model"] == model]
        colour, marker = looks[model]
        axes.errorbar(
            rows["value"], rows["measure"].map(at) + shift,
            xerr=_bars(rows, "value", "low", "high"),
            fmt=marker, color=colour, label=model, capsize=1.5, linewidth=1, markersize=4,
        )  # fmt: skip
    for edge in range(1, len(measures)):
        axes.axhline(edge - 0.5, color="0.9", linewidth=0.6)
    axes.set_yticks(range(len(measures)), measures, fontsize=8)
    axes.set_ylim(len(measures) - 0.5, -0.5)
    axes.set_xlabel(xlabel)
    axes.grid(visible=False, axis="y")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


@styled
def differences(table: pd.DataFrame) -> Figure:
    """Recomputed less printed numbers, in units of what rounding allows; groups are tables.

    ``table`` has ``table`` (where it is printed), ``what``, ``printed``, ``recomputed`` and
    ``tolerance`` (largest difference that rounding explains, for instance half a unit of the last
    digit). Numbers that agree share a lane; each that does not has its own, with its name. A number
    that is missing on either side is not drawn, but counted at the left.

    Raises ValueError for a tolerance that is not above 0.
    """
    table = table.reset_index(drop=True)
    if not (table["tolerance"] > 0).all():
        bad = table[~(table["tolerance"] > 0)].iloc[0]
        raise ValueError(
            f"{bad['table']}, {bad['what']}: a tolerance of {bad['tolerance']} is no unit to draw "
            "in; half a unit of the last digit is one (0.5 for a count)"
        )
    off = (table["recomputed"] - table["printed"]) / table["tolerance"]
    known, agrees = off.notna(), off.abs() <= 1 + 1e-9  # rounding
    groups = list(dict.fromkeys(table["table"]))
    lanes = len(groups) + int((known & ~agrees).sum())
    figure, axes = plt.subplots(figsize=(6.8, 0.24 * lanes + 1.5))
    axes.axvspan(-1, 1, color="#009E73", alpha=0.15, linewidth=0)
    axes.axvline(0, color="0.4", linewidth=1)
    ticks, top = {}, 0
    for group in groups:
        here = table["table"] == group
        within, beyond = off[here & agrees], off[here & known & ~agrees]
        spread = np.resize([0.0, 0.2, -0.2, 0.1, -0.1], len(within))
        axes.plot(within, top + spread, "o", color="#0072B2", markersize=2.8, alpha=0.7)
        label = f"{group}: {len(within)} of {len(within) + len(beyond)} agree"
        missing = int((here & ~known).sum())
        ticks[top] = f"{label}, {missing} missing" if missing else label
        for index, value in beyond.items():
            top += 1
            axes.plot(value, top, "X", color="#D55E00", markersize=5.5)
            axes.annotate(  # towards the middle, where there is room
                table.loc[index, "what"], (value, top), xytext=(-8 if value > 0 else 8, 0),
                textcoords="offset points", ha="right" if value > 0 else "left",
                va="center_baseline", fontsize=7, path_effects=HALO,
            )  # fmt: skip
        top += 1
        axes.axhline(top - 0.5, color="0.8", linewidth=0.6)
    axes.set_yticks(list(ticks), list(ticks.values()), fontsize=8)
    axes.set_ylim(top - 0.5, -0.6)
    axes.set_xscale("symlog", linthresh=1)
    reach = max(2.0, 1.6 * off.abs().max()) if known.any() else 2.0
    axes.set_xlim(-reach, reach)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("(recomputed − printed) / what rounding allows")
    axes.grid(visible=False, axis="y")
    figure.legend(
        handles=[
            Patch(color="#009E73", alpha=0.15, linewidth=0, label="what rounding allows"),
            Line2D([], [], linestyle="none", marker="o", color="#0072B2", label="agrees"),
            Line2D([], [], linestyle="none", marker="X", color="#D55E00", label="disagrees"),
        ],
        loc="outside upper center", ncols=3,
    )  # fmt: skip
    return figure


@styled
def above_surface(table: pd.DataFrame, *, columns: int = 3) -> Figure:
    """Scores of models against those of bags that know no language, a point a language.

    ``table`` has ``panel`` (its title, such as a model), ``surface`` and ``mu`` (scores of the bag
    and of the model, in [0, 1]) and ``script`` (a colour and a marker each). Above the diagonal a
    model finds more translations than their spelling does.

    Raises ValueError for more scripts than can be told apart (7).
    """
    titles, scripts = (list(dict.fromkeys(table[key])) for key in ("panel", "script"))
    looks = _looks(scripts, "scripts")
    columns = min(columns, len(titles))
    rows = -(-len(titles) // columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(2.2 * columns + 0.5, 2.3 * rows + 0.7), squeeze=False, sharex=True,
        sharey=True,
    )  # fmt: skip
    for axes, title in zip(grid.flat, titles, strict=False):
        axes.axline((0, 0), slope=1, color="0.4", linewidth=1, linestyle="--")
        for script in scripts:
            part = table[(table["panel"] == title) & (table["script"] == script)]
            colour, marker = looks[script]
            axes.plot(
                part["surface"], part["mu"], marker, color=colour, markersize=3.2, alpha=0.75,
                markeredgewidth=0,
            )  # fmt: skip
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
        axes.set_title(title, fontsize=9)
    for axes in grid.flat[len(titles) :]:
        axes.set_visible(False)
    figure.supxlabel("MEXA score of the best bag (share of hits)", fontsize=9)
    figure.supylabel("MEXA score of the model", fontsize=9)
    handles = [
        Line2D([], [], linestyle="none", color=colour, marker=marker, label=script)
        for script, (colour, marker) in looks.items()
    ]
    handles.append(Line2D([], [], color="0.4", linewidth=1, linestyle="--", label="equal"))
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    return figure


@styled
def cosines(table: pd.DataFrame) -> Figure:
    """Cosine of translations against that of other sentences, a point a language (section 5.3).

    ``table`` has ``model``, ``language``, ``parallel`` and ``other`` (mean cosines with the pivot's
    sentences) and ``score`` (of a task; without one a point is hollow). Below the diagonal
    translations are further apart than other sentences. The ends of the horizontal scale are named.
    """
    table = table.reset_index(drop=True)
    models = list(dict.fromkeys(table["model"]))
    rows = -(-len(models) // 4)
    columns = -(-len(models) // rows)
    figure, panels = _panels(len(models), 2.7 * columns + 0.8, 3.1 * rows, rows=rows)
    known = Normalize(table["score"].min(), table["score"].max())
    for axes, model in zip(panels, models, strict=True):
        rows = table[table["model"] == model]
        axes.axline((0, 0), slope=1, color="0.4", linewidth=1, linestyle="--", label="equal")
        bare = rows[rows["score"].isna()]
        axes.plot(
            bare["other"], bare["parallel"], "o", color="0.4", fillstyle="none", markersize=4,
            label="no task score" if len(bare) else None,
        )  # fmt: skip
        full = rows[rows["score"].notna()]
        shown = axes.scatter(
            full["other"], full["parallel"], c=full["score"], norm=known, cmap="cividis", s=20,
            edgecolor="0.3", linewidth=0.4, zorder=2.5,
        )  # fmt: skip
        for row in rows.loc[[rows["other"].idxmin(), rows["other"].idxmax()]].itertuples():
            axes.annotate(
                row.language, (row.other, row.parallel), xytext=(4, -3),
                textcoords="offset points", fontsize=7, path_effects=HALO, zorder=2.2,
            )  # fmt: skip
        both = rows[["parallel", "other"]].to_numpy()
        pad = 0.08 * (np.nanmax(both) - np.nanmin(both)) or 0.01
        limits = (np.nanmin(both) - pad, np.nanmax(both) + pad)
        axes.set(xlim=limits, ylim=limits, aspect="equal", title=model)
        axes.set_xlabel("mean cosine of other sentences")
        axes.legend(loc="lower right", fontsize=7)
    for axes in panels[::columns]:
        axes.set_ylabel("mean cosine of translations")
    figure.colorbar(shown, ax=panels, label="task score", shrink=0.85, **_BAR)
    return figure
