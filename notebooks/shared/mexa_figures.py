"""Figures of MEXA, alignment with a pivot and what it tells of scores (Kargaran et al., 2025).

Scores of MEXA (μ) are shares of hits in [0, 1].
"""

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from xlx.plots.panels import across, number, order, parts
from xlx.plots.primitives import curves, heatmap, lanes, scatter
from xlx.plots.style import (
    BAND_COLOURS,
    BLUE,
    GREEN,
    GUESSING,
    HALO,
    MEASURES,
    NAMES,
    SMALL,
    TINY,
    VERMILION,
    ZERO,
    handle,
    look,
    looks,
    styled,
)

#: Where the axis of probabilities ends: smaller ones tell no more.
_SMALLEST = 1e-12
#: How the lines of `estimates` are called and look, by what they are.
_LINES = {
    "fitted": ("fitted line, with interval", VERMILION, "-"),
    "ideal": ("ideal line", "0.2", "--"),
    "chance": ("guessing", "0.4", (0, (1, 2))),
}
_DASHES = ("-", "--", "-.")


def _line(label: str, dash: object, colour: object = "0.3") -> object:
    return handle(label, look(colour, "", dash), line=True, linewidth=1.2)


@styled
def chance_tails(table: pd.DataFrame) -> Figure:
    """How probable a score is by chance, for several numbers of sentences (Figure 2).

    ``table`` has ``n``, ``mu`` (share of hits), ``binomial`` and ``matrix``, the probabilities of
    that share or more, and may have ``vectors``, ``low``, ``high`` (simulated, with an interval;
    missing for an n that was not). The axis is logarithmic and ends at 1e-12; what is 0 is left
    out.
    """
    sizes = order(table, "n")
    shades = matplotlib.colormaps["cividis"](np.linspace(0, 0.7, len(sizes)))
    marks = looks(map(str, range(len(sizes))), {}).values()
    ends = {"low": "", "x": "mu", "series": "n", "labels": {n: f"_{n}" for n in sizes}}
    positive = table.assign(**{k: table[k].where(table[k] > 0) for k in ("binomial", "matrix")})
    on = None
    for column, dash in (("binomial", "-"), ("matrix", "--")):
        styles = {n: look(c, "", dash) for n, c in zip(sizes, shades, strict=True)}
        on = curves(positive, value=column, looks=styles, on=on, width=6, height=3.2, **ends)
    simulated = "vectors" in table
    if simulated:
        styles = {
            n: look(c, m["marker"], "none") for n, c, m in zip(sizes, shades, marks, strict=True)
        }
        seen = table[table["vectors"] > 0]
        curves(seen, value="vectors", bars=True, looks=styles, on=on, **ends | {"low": "low"})
    (axes,) = on.axes.values()
    last = {n: rows.iloc[-1] for n, rows in parts(table[table["matrix"] >= _SMALLEST], "n")}
    for (n, row), shade in zip(last.items(), shades, strict=True):
        axes.annotate(
            f"n = {n}" if n == sizes[0] else f"{n}", (row["mu"], row["matrix"]), xytext=(4, 2),
            textcoords="offset points", fontsize=8, color=shade,
        )  # fmt: skip
    right = max(row["mu"] for row in last.values()) + 0.05
    axes.set(yscale="log", ylim=(_SMALLEST, 3), xlim=(-0.02, right))
    axes.tick_params(axis="y", labelsize=9.5)  # exponents are smaller
    grey = [_line("binomial: hits independent", "-"), _line("random matrix, exact", "--")]
    if simulated:
        grey.append(handle("random vectors, simulated, with interval", look("0.3", "o")))
    return on.done("share of hits, μ", "probability of that share or more", handles=grey)


@styled
def layer_scores(table: pd.DataFrame, bags: pd.DataFrame) -> Figure:
    """Mean score of groups of languages by layer, a panel a model (Figure 3).

    ``table`` has ``model``, ``states``, ``group``, ``layer`` and ``mu``: a colour and a marker for
    each group, a dash for each way to take the states (at most 3). ``bags`` (``model``, ``group``,
    ``mu``) are drawn across, dotted.
    """
    groups, states = looks(order(table, "group"), {}), order(table, "states")
    table = table.assign(series=list(zip(table["group"], table["states"], strict=True)))
    styles = {
        (group, way): shown | {"linestyle": dash}
        for group, shown in groups.items()
        for way, dash in zip(states, _DASHES, strict=False)
    }
    on = curves(table, x="layer", value="mu", series="series", panel="model", looks=styles,
                labels={key: f"_{key}" for key in styles}, columns=3, width=2.8, height=2.0,
                markersize=3)  # fmt: skip
    for axes, rows in on.each(bags):
        for row in rows.itertuples():
            axes.axhline(row.mu, color=groups[row.group]["color"], linewidth=1, linestyle=":")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
        axes.set_ylim(bottom=0)
    handles = [handle(group, shown) for group, shown in groups.items()]
    handles += [_line(way, dash) for way, dash in zip(states, _DASHES, strict=False)]
    return on.done("layer (0: embeddings)", "MEXA score μ (share of hits)",
                   handles=[*handles, _line("bag of subwords", ":")])  # fmt: skip


@styled
def neighbourhoods(table: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Sentences in the plane of t-SNE, a panel a layer or a model (Figure 4).

    ``table`` has ``panel`` (its title), ``language``, ``script`` ("Latn"), ``x`` and ``y``. Codes
    of the languages of ``names`` stand in the middle of their sentences; a colour and a marker tell
    the script, and the first language, the pivot, has its own.
    """
    pivot = next(iter(names))
    table = table[table["language"].isin(list(names))]
    scripts = {"Latn": "Latin script", "Cyrl": "Cyrillic script", "Arab": "Arabic script"}
    kinds = table["script"].map(scripts).fillna("another script")
    table = table.assign(series=kinds.mask(table["language"] == pivot, names[pivot]))
    shown = looks([names[pivot], *order(table, "series")], {names[pivot]: look("black", "D")})
    on = scatter(table, x="x", y="y", series="series", panel="panel", looks=shown, width=2.7,
                 height=2.5, alpha=0.45, size=10, sharex=False, sharey=False)  # fmt: skip
    for axes, rows in on.each(table):
        for code, cloud in parts(rows, "language"):
            axes.text(*cloud[["x", "y"]].median(), code, ha="center", va="center", color="0.1",
                      fontsize=SMALL, fontweight="bold", path_effects=HALO)  # fmt: skip
        axes.set(xticks=[], yticks=[])
    return on.done("t-SNE, no units")


@styled
def estimates(
    table: pd.DataFrame, lines: pd.DataFrame, *, xlabel: str = "MEXA score × score in English"
) -> Figure:
    """Scores of a task against those that MEXA leads to expect, a point a language (Figure 1).

    ``table`` has ``task`` (where there is room, a row of panels), ``panel`` (its title),
    ``expected``, ``score``, ``score_low``, ``score_high``, and ``written`` (what to write at a
    point, or ""): of a panel the three furthest from the fitted line are named, and one bar shows
    a typical interval. ``lines`` has ``panel``, ``kind`` ("fitted", "ideal", "chance"), ``x``,
    ``y``, ``low``, ``high`` (missing where a line has no band). Scores are shares in [0, 1], and
    panels have one scale.
    """
    table = table.reset_index(drop=True)
    kept = []
    for panel, part in parts(table[table["written"] != ""], "panel"):
        line = lines[(lines["panel"] == panel) & (lines["kind"] == "fitted")].sort_values("x")
        if len(line):
            off = part["score"] - np.interp(part["expected"], line["x"], line["y"])
            kept += [*off.abs().nlargest(3).index]
    table["written"] = table["written"].where(table.index.isin(kept), "")
    n_models = max(len(order(part, "panel")) for _, part in parts(table, "task"))
    on = scatter(table, x="expected", y="score", panel="panel", written="written", size=8,
                 looks={None: look(BLUE, "o")}, labels={None: "a language"}, width=2.3,
                 height=2.2, columns=n_models if n_models in (3, 5) else 4)  # fmt: skip
    styles = {kind: look(colour, "", dash) for kind, (_, colour, dash) in _LINES.items()}
    curves(lines, x="x", value="y", series="kind", panel="panel", on=on, looks=styles,
           labels={kind: label for kind, (label, *_) in _LINES.items()})  # fmt: skip
    reach = table["score"].max() - min(table["score"].min(), 0)
    for axes, rows in on.each(table):
        half = (rows["score_high"] - rows["score_low"]).median() / 2
        if half > 0:
            axes.errorbar([0.95], [half + 0.03 * reach], yerr=half, color="0.35", capsize=2,
                          linewidth=1, transform=axes.get_yaxis_transform())  # fmt: skip
    typical = handle("typical interval of a score", look("0.35", "|"), markersize=9)
    return on.done(xlabel, "score of the task", handles=[typical])


@styled
def coverage_bands(table: pd.DataFrame, languages: Sequence[str]) -> Figure:
    """Adjusted scores of all languages in all models, coloured by their bands (Table 6).

    ``table`` has ``language``, ``model`` and ``band`` (the five of `xlx.measures.mexa.bands`, as it
    gives them). ``languages`` are in reading order, split into columns no higher than a screen.
    """
    bands = table["band"].cat.categories
    n_columns = max(3, -(-len(languages) // 52))
    height = -(-len(languages) // n_columns)
    blocks = {code: place // height for place, code in enumerate(languages)}
    table = table.assign(
        level=table["band"].cat.codes.astype(float), block=table["language"].map(blocks)
    )
    on = heatmap(
        table.sort_values("block", kind="stable"), row="language", column="model", value="level",
        panel="block", rows=languages, across=order(table, "model"), own_rows=True, bar=None,
        cell=(0.2, 0.135), edge=(0.2, 1.6), columns=n_columns, cmap=ListedColormap(BAND_COLOURS),
        norm=Normalize(-0.5, len(BAND_COLOURS) - 0.5),
    )  # fmt: skip
    for axes in on.titles({}).axes.values():
        axes.xaxis.tick_top()
        axes.tick_params(length=0, labelsize=TINY)
        axes.tick_params(axis="x", labelrotation=90)
        axes.set_ylim(top=0, bottom=height)
    labels = [f"{bands[0]}: not covered", *bands[1:-1], f"{bands[-1]}: well covered"]
    handles = [Patch(color=c, label=label) for c, label in zip(BAND_COLOURS, labels, strict=True)]
    return on.done("adjusted score: MEXA score × score in English", handles=handles)


@styled
def seen_unseen(table: pd.DataFrame, summary: pd.DataFrame) -> Figure:
    """Difference of scores on verses out of pretraining and in it, a point a language.

    ``table`` has ``model``, ``pooling`` ("weighted_mean", "last", "mean"; those of a model share
    its space) and ``difference`` (of μ); ``summary`` has ``model``, ``pooling``, ``mean``, ``low``
    and ``high``, drawn in black below the points. The scale is linear to ±0.02, then logarithmic.
    """
    table, summary = (
        rows.assign(
            item=rows["model"] + ", " + rows["pooling"].map(lambda way: NAMES[way].split(" ")[0])
        )
        for rows in (table, summary)
    )
    items = order(summary, "item")
    poolings = {way: MEASURES[way] for way in order(table, "pooling")}
    on = lanes(table, item="item", items=items, value="difference", series="pooling", low="",
               looks=poolings, labels=NAMES, shift=-0.12, spread=0.35, alpha=0.6, lane=0.06,
               width=5)  # fmt: skip
    lanes(summary, item="item", items=items, value="mean", on=on, shift=0.32, capsize=3,
          looks={None: look("black", "o")}, labels={None: "mean, with interval"})  # fmt: skip
    across(on, 0, **ZERO | {"linestyle": "-"})
    (axes,) = on.axes.values()
    most = max(0.02, table["difference"].abs().max() * 1.2)
    ticks = [tick for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if tick <= most]
    axes.set_xscale("symlog", linthresh=0.02)
    shown = [-tick for tick in ticks[::-1]] + [0, *ticks]
    axes.set_xticks(shown, [number(tick) for tick in shown])
    return on.done("MEXA on held-out verses − on verses in pretraining (share of hits)")


@styled
def correlations(
    table: pd.DataFrame, *, xlabel: str = "correlation with the task (Pearson), 95 % interval"
) -> Figure:
    """Correlations with their intervals, a row a measure, a colour and a marker a model.

    ``table`` has ``model``, ``measure``, ``value``, ``low`` and ``high``; the measure with the
    largest of them stands above.
    """
    table = table.sort_values("value", ascending=False, kind="stable")
    on = lanes(table, item="measure", value="value", series="model",
               looks=looks(sorted(order(table, "model"))), width=5, lane=0.085)  # fmt: skip
    across(on, 0, **ZERO | {"linestyle": "-"})
    return on.done(xlabel)


@styled
def differences(table: pd.DataFrame) -> Figure:
    """Recomputed minus printed numbers, in units of what rounding allows; groups are tables.

    ``table`` is `Audit.numbers`: ``table`` (where it is printed), ``what``, ``apart`` (in
    tolerances, such as half a unit of the last digit) and ``agrees``. Numbers that agree share a
    lane; each that does not has its own, with its name.
    """
    items, drawn = {}, []
    for name, group in parts(table, "table"):
        right, wrong = group[group["agrees"]], group[~group["agrees"]]
        items[name] = f"{name}: {len(right)} of {len(group)} agree"
        items |= {(name, index): "" for index in wrong.index}
        drawn.append(right.assign(item=name, kind="agrees"))
        drawn.append(wrong.assign(item=[(name, index) for index in wrong.index], kind="disagrees"))
    long = pd.concat(drawn)
    styles = {"agrees": look(BLUE, "o"), "disagrees": look(VERMILION, "X")}
    on = lanes(
        long, item="item", items=list(items), names=items.get, value="apart", series="kind",
        looks=styles, low="", shift=0, spread=0.4, lane=0.03, alpha=0.75, width=5.6,
    )  # fmt: skip
    (axes,) = on.axes.values()
    axes.axvspan(-1, 1, color=GREEN, alpha=0.15, linewidth=0, label="what rounding allows")
    for row in long[long["kind"] == "disagrees"].itertuples():
        axes.annotate(  # towards the middle, where there is room
            row.what, (row.apart, list(items).index(row.item)),
            xytext=(-8 if row.apart > 0 else 8, 0), textcoords="offset points",
            ha="right" if row.apart > 0 else "left",
            va="center_baseline", fontsize=TINY, path_effects=HALO,
        )  # fmt: skip
    axes.set_xscale("symlog", linthresh=1)
    reach = max(2.0, 1.6 * table["apart"].abs().max())
    axes.set_xlim(-reach, reach)
    axes.xaxis.set_major_formatter("{x:g}")
    return on.done("(recomputed − printed) / what rounding allows")


@styled
def above_surface(table: pd.DataFrame) -> Figure:
    """Scores of models against those of bags that know no language, a point a language.

    ``table`` has ``panel`` (its title, such as a model), ``surface`` and ``mu`` (scores of the bag
    and of the model, in [0, 1]) and ``script`` (a colour and a marker each). Above the diagonal a
    model finds more translations than their spelling does.
    """
    on = scatter(table, x="surface", y="mu", series="script", panel="panel", size=9, alpha=0.75,
                 looks=looks(order(table, "script"), {}), columns=3, height=2.1)  # fmt: skip
    for axes in on.axes.values():
        axes.axline((0, 0), slope=1, **GUESSING | {"linestyle": "--"})
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    return on.done("MEXA score of the best bag (share of hits)", "MEXA score of the model",
                   handles=[_line("equal", "--", "0.4")])  # fmt: skip


@styled
def cosines(table: pd.DataFrame) -> Figure:
    """How much closer translations are than other sentences, against the task (section 5.3).

    ``table`` has ``model``, ``language``, ``parallel`` and ``other`` (mean cosines with the pivot's
    sentences) and ``score`` (of a task; a language without one is left out). Below 0 translations
    are further apart than other sentences. The languages at the ends are named.
    """
    table = table.dropna(subset="score").reset_index(drop=True)
    table["closer"] = table["parallel"] - table["other"]
    ends = [
        index for _, rows in parts(table, "model")
        for index in (rows["closer"].idxmin(), rows["closer"].idxmax())
    ]  # fmt: skip
    table["written"] = table["language"].where(table.index.isin(ends), "")
    on = scatter(table, x="score", y="closer", panel="model", written="written", width=2.2,
                 looks={None: look(BLUE, "o")}, labels={None: "a language"})  # fmt: skip
    across(on, y=0, **ZERO | {"linestyle": "-"})
    return on.done("task score", "mean cosine of translations\n− of other sentences")
