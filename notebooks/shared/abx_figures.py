"""Figures of the ABX study and of the family: language and meaning discrimination (LD, MD).

Tables have ``model``, ``task`` ("LD", "MD", ...), ``score`` and its interval ``low``, ``high``,
unless a function says otherwise; scores are shares, and chance is ½.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from xlx.plots.panels import Panels, across, framed_handle, number, order, panels, parts, rows_of
from xlx.plots.primitives import curves, heatmap, lanes, scatter
from xlx.plots.style import (
    BLUE,
    CHANCE,
    GREEN,
    GUESSING,
    MEASURES,
    NAMES,
    SKY,
    VERMILION,
    ZERO,
    handle,
    look,
    looks,
    styled,
)

_LAYER = "layer (0: embeddings)"
_TASKS = ("LD", "MD")
_MATCHED = "MD, like length"
_STEP = "training step (at even distances; log steps after 0)"
#: Dashes of reference lines, in their order.
_DASHES = ((0, (5, 2)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (7, 3)))
References = Mapping[str, pd.DataFrame]


def _of(tasks: Sequence[str]) -> dict[str, dict]:
    return {task: MEASURES[task] for task in tasks}


def _shown(table: pd.DataFrame) -> list[str]:
    """The tasks of a table that are drawn over training and depth."""
    return [task for task in (*_TASKS, _MATCHED) if (table["task"] == task).any()]


def _with_lines(on: Panels, lines: References | None, tasks: Sequence[str]) -> list:
    """Chance, and horizontal lines: label → table of ``model``, ``task`` and ``score``."""
    across(on, y=CHANCE)
    told = []
    for (label, table), dash in zip((lines or {}).items(), _DASHES, strict=False):
        for task in tasks:
            line = {"color": MEASURES[task]["color"], "linewidth": 1, "linestyle": dash}
            rows = rows_of(table, task=task).set_index("model")["score"]
            for model, axes in on.axes.items():
                if model in rows:
                    axes.axhline(rows[model], **line)
            if len(rows):
                told.append(handle(f"{task} of {label}", line | {"marker": ""}, line=True))
    return [*told, handle("chance", GUESSING | {"marker": ""}, line=True)]


@styled
def dynamics(table: pd.DataFrame, *, references: References | None = None) -> Figure:
    """Scores along training, one panel a model (Figure 2 of the ABX paper).

    ``table`` has ``checkpoint``, and may have MD among sentences of like length; ``references``
    maps a label ("a bag of subwords") to a table of ``model``, ``task`` and ``score``; a task that
    it lacks has no line.
    """
    tasks = _shown(table)
    on = curves(table, x="checkpoint", value="score", series="task", panel="model",
                looks=_of(tasks), labels=NAMES, even=True, width=3.9, height=2.5)  # fmt: skip
    return on.done(_STEP, "ABX score", handles=_with_lines(on, references, tasks))


@styled
def layer_profile(table: pd.DataFrame, *, references: References | None = None) -> Figure:
    """Scores over layers, one panel a model (Figure 3 of the ABX paper)."""
    tasks = _shown(table)
    on = curves(table, x="layer", value="score", series="task", panel="model",
                looks=_of(tasks), labels=NAMES, width=3.9, height=2.5)  # fmt: skip
    steps = {model: own["checkpoint"].max() for model, own in parts(table, "model")}
    on.titles(lambda model: f"{model}, step {steps[model]:,}" if steps[model] else model)
    return on.done(_LAYER, "ABX score", handles=_with_lines(on, references, tasks))


@styled
def layers_beside_training(
    layers: pd.DataFrame, course: pd.DataFrame, *, references: References | None = None
) -> Figure:
    """Scores of a model over its layers (left), and of another along its training (right).

    ``layers`` are as of `layer_profile`, ``course`` as of `dynamics`, of one model each;
    ``references`` have a line in the panels of their models.
    """
    tasks = _shown(layers)
    both = pd.concat([layers, course])
    on = panels(both, "model", width=3.9, height=2.5, sharey=True)
    own = {"value": "score", "series": "task", "looks": _of(tasks), "labels": NAMES}
    for table, options, label in (
        (layers, {"x": "layer"}, _LAYER), (course, {"x": "checkpoint", "even": True}, _STEP),
    ):  # fmt: skip
        name = table["model"].iloc[0]
        single = Panels(on.figure, "model", {name: on.axes[name]}, on.across)
        curves(table, on=single, **own, **options)
        on.axes[name].set_xlabel(label, fontsize=9)
    return on.done("", "ABX score", handles=_with_lines(on, references, tasks))


@styled
def member_profiles(
    table: pd.DataFrame, references: Mapping[str, str], *, lines: References | None = None,
    tasks: Sequence[str] = _TASKS,
) -> Figure:  # fmt: skip
    """Scores over layers, a small panel a model, each with its reference model in thin lines.

    ``references`` maps a model to the one that it is compared with, where there is one; ``lines``
    are horizontal, as the references of `dynamics`.
    """
    thin = table.assign(reference=table["model"]).drop(columns="model")
    pairs = pd.DataFrame(references.items(), columns=["model", "reference"])
    thin = pairs.merge(thin[thin["task"].isin(tasks[:2])], on="reference")
    options = {"x": "layer", "value": "score", "series": "task", "looks": _of(tasks)}
    on = curves(table, panel="model", labels=NAMES, columns=3, width=2.75, height=1.75,
                sharex=True, **options)  # fmt: skip
    curves(thin, on=on, low="", labels={task: f"{task} of the model in brackets" for task in tasks},
           linewidth=0.8, marker="", **options)  # fmt: skip
    on.titles(lambda model: f"{model} [{references[model]}]" if model in references else model)
    return on.done(_LAYER, "ABX score", handles=_with_lines(on, lines, tasks))


@styled
def run_profiles(table: pd.DataFrame, recipes: Mapping[str, str]) -> Figure:
    """Scores over layers, a panel a task, a line a run; runs of one recipe look alike.

    ``recipes`` maps a run, as ``model`` names it, to its recipe.
    """
    of_recipe = looks(recipes.values())
    on = curves(table, x="layer", value="score", series="model", panel="task", low="", columns=3,
                looks={run: of_recipe[recipe] for run, recipe in recipes.items()},
                labels=recipes, sharey=False, linewidth=1, markersize=3)  # fmt: skip
    across(on, y=CHANCE)
    chance = handle("chance", GUESSING | {"marker": ""}, line=True)
    return on.titles(NAMES).done(_LAYER, "ABX score", handles=[chance])


@styled
def intervals(table: pd.DataFrame) -> Figure:
    """Points with intervals over layers, a panel a model, for scores that should be at chance."""
    points = {task: own | {"linestyle": "none"} for task, own in _of(_TASKS).items()}
    on = curves(table, x="layer", value="score", series="task", panel="model", looks=points,
                labels=NAMES, bars=True, shift=0.2, width=3.9, height=1.9)  # fmt: skip
    return on.done(_LAYER, "ABX score of the control", handles=_with_lines(on, None, ()))


@styled
def checkpoint_layer_map(table: pd.DataFrame) -> Figure:
    """Maps of checkpoint and layer, a row of panels a model (Figure 4 of the ABX paper)."""
    tasks = _shown(table)
    table = table[table["task"].isin(tasks)]
    table = table.sort_values(["checkpoint", "task", "layer"], kind="stable")
    n_cells = len(tasks) * table["checkpoint"].nunique()
    on = heatmap(
        table, row="layer", column="checkpoint", value="score", panel=("model", "task"),
        rows=sorted(table["layer"].unique(), reverse=True), tops=lambda step: f"{step:,}",
        written=(lambda score: number(score)) if n_cells <= 28 else None,
        cell=(7.8 / n_cells, 0.24), turned=45 if n_cells <= 28 else 90,
        bar="ABX score (bright: high)", edge=(0.7, 1.4),
    )  # fmt: skip
    return on.done("training step", _LAYER)


@styled
def language_maps(
    table: pd.DataFrame, names: Mapping[str, str], groups: Mapping[str, str]
) -> Figure:
    """Maps of language and checkpoint, a panel a model and task (Figures 8, 9 of the ABX paper).

    ``table`` has ``checkpoint``, ``language``, ``score`` and ``turn`` (the cells that are framed);
    ``names`` gives the languages in order, code → label, ``groups`` what stands before the first of
    each, with a line between. A task has one bar of colours.
    """
    table = table.sort_values("checkpoint", kind="stable")
    tasks, models = order(table, "task"), order(table, "model")
    n = table["checkpoint"].nunique()
    table = pd.concat([rows_of(table, task=t, model=m) for t in tasks for m in models])
    table["panel"] = table["task"] + ": " + table["model"]
    of_rows = [groups[code] for code in names]
    heads = [k for k, group in enumerate(of_rows) if group not in of_rows[max(k - 1, 0) : k]]
    first = {code: f"{of_rows[k]}: " if k in heads else "" for k, code in enumerate(names)}
    on = heatmap(
        table, row="language", column="checkpoint", value="score", panel="panel", rows=list(names),
        names=lambda code: first[code] + names[code], tops=lambda step: f"{step:,}", framed="turn",
        cell=(min(0.32, 1.45 / n), 0.165), edge=(2.35, 1.5), columns=len(tasks) * len(models),
        turned=90, bar_by=lambda key: key.partition(": ")[0],
        bar={task: f"{task}: ABX score (bright: high)" for task in tasks},
    )  # fmt: skip
    for axes in on.axes.values():
        axes.hlines(heads[1:], 0, n, color="black", linewidth=0.6)
    turn = framed_handle("checkpoint of lowest LD, of highest MD (step 0 aside)")
    return on.done("training step", handles=[turn])


@styled
def tradeoff(
    table: pd.DataFrame, meanings: Sequence[str], statistics: Mapping[tuple[str, str], str]
) -> Figure:
    """Language pairs by LD and MD (Figure 6 of the ABX paper), a row a kind of MD.

    ``table`` has ``model``, ``language_1``, ``language_2``, ``LD`` and the ``meanings``;
    ``statistics``: model and meaning → a line of text. The pairs at the ends of both scales are
    named.
    """
    names = table["language_1"] + "-" + table["language_2"]
    long = table.assign(pair=names).melt(
        ["model", "pair", "LD"], list(meanings), "meaning", "score"
    )
    long["panel"] = list(zip(long["model"], long["meaning"], strict=True))
    ends = [
        index for _, own in parts(long, "panel") for score in ("LD", "score")
        for index in (own[score].idxmin(), own[score].idxmax())
    ]  # fmt: skip
    long["written"] = long["pair"].where(long.index.isin(ends), "")
    on = scatter(long, x="LD", y="score", panel="panel", looks={None: look(BLUE, "o")},
                 columns=table["model"].nunique(), written="written", size=7, alpha=0.4,
                 width=3.9, height=2.4)  # fmt: skip
    across(on, CHANCE, CHANCE)
    on.titles(lambda key: f"{key[0]}: {key[1]}\n{statistics[key]}")
    chance = handle("chance", GUESSING | {"marker": ""}, line=True)
    return on.done("LD of a language pair", "MD of a language pair", handles=[chance])


@styled
def correlation_course(table: pd.DataFrame) -> Figure:
    """Correlation of LD and MD at each checkpoint, a panel a model (Figure 7 of the ABX paper).

    ``table`` has ``model``, ``checkpoint``, ``LD with`` (the kind of MD), ``value``, ``low``,
    ``high``, ``p_value``; filled marks are significant (p < 0.05), as in the paper.
    """
    options = {"x": "checkpoint", "value": "value", "panel": "model", "even": True}
    tasks = [task for task in ("MD", _MATCHED) if (table["LD with"] == task).any()]
    lines = {task: MEASURES[task] | {"marker": ""} for task in tasks}
    names = {task: f"LD and {NAMES[task]}" for task in tasks}
    on = curves(table, series="LD with", looks=lines, labels=names, width=3.9, height=2.1,
                **options)  # fmt: skip
    significant = table["p_value"] < 0.05
    for label, kept in (("p < 0.05", significant), ("p ≥ 0.05", ~significant)):
        for task in tasks if kept.any() else ():
            own = {None: MEASURES[task] | {"linestyle": "none"}}
            if label == "p ≥ 0.05":
                own[None] |= {"markerfacecolor": "white"}
            marked = table[table["LD with"] == task]
            marked = marked.assign(value=marked["value"].where(kept))
            shown = {None: label} if task == tasks[0] else {None: "_"}
            curves(marked, on=on, low="", looks=own, labels=shown, **options)
    across(on, y=0, **ZERO | {"linestyle": "-"})
    return on.done(_STEP, "Pearson r over language pairs")


#: Of a shuffled corpus, what a score is called in the figure, and how it looks.
_SHUFFLED = {
    "LD, labels shuffled": ("LD, languages shuffled: ½ expected", look(VERMILION, "o")),
    "MD, translations shuffled": ("MD, translations shuffled: ½ expected", look(BLUE, "s", "--")),
    "MD, documents shuffled": ("MD, shuffled within documents", look(GREEN, "^", ":")),
    "MD, lengths shuffled": ("MD, shuffled among like lengths", look(SKY, "D", "-.")),
}


@styled
def shuffled_controls(table: pd.DataFrame) -> Figure:
    """Scores of spoiled corpora over layers, a panel a model.

    ``table`` has ``model``, ``control`` ("MD, documents shuffled" ...), ``layer``, ``score``,
    ``low`` and ``high``.
    """
    on = curves(table, x="layer", value="score", series="control", panel="model",
                looks={name: own for name, (_, own) in _SHUFFLED.items()},
                labels={name: label for name, (label, _) in _SHUFFLED.items()},
                width=3.9, height=2.2)  # fmt: skip
    return on.done(_LAYER, "ABX score", handles=_with_lines(on, None, ()))


@styled
def retrieval_scatter(table: pd.DataFrame, statistics: Mapping[str, str]) -> Figure:
    """MD against retrieval over language pairs, a panel a pairing of layers, a colour a model.

    ``table`` has ``pairing``, ``model``, ``MD`` and ``retrieval``; ``statistics`` maps a pairing to
    lines of text.
    """
    on = scatter(table, x="MD", y="retrieval", series="model", panel="pairing",
                 looks=looks(order(table, "model")), size=8, alpha=0.4, width=2.8)  # fmt: skip
    on.titles(lambda pairing: f"{pairing}\n{statistics[pairing]}")
    return on.done("MD of a language pair", "retrieval, top-1")


@styled
def sampling_spread(table: pd.DataFrame) -> Figure:
    """Spread of sampled scores over runs against the exact score, a colour a task.

    ``table`` has ``task``, ``exact``, ``sd``, ``expected_sd``: one row per condition.
    """
    on = scatter(table, x="exact", y="sd", series="task", looks=_of(_TASKS), labels=NAMES,
                 width=4.2, height=2.6)  # fmt: skip
    curves(table, x="exact", value="expected_sd", on=on, marker="", linewidth=1,
           looks={None: look("0.2", "")}, labels={None: "binomial, expected"})  # fmt: skip
    next(iter(on.axes.values())).set_ylim(bottom=0)
    return on.done("exact score of a condition", "standard deviation over runs")


@styled
def training_losses(table: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Losses along training, a panel an objective.

    ``table`` has ``objective``, ``model``, ``step`` and ``loss``; ``names`` gives the objectives
    in order, as they are called in the titles.
    """
    table = pd.concat([rows_of(table, objective=name) for name in names])
    every = max(1, table["step"].nunique() // 8)
    on = curves(table, x="step", value="loss", series="model", panel="objective", every=every,
                sharey=False, width=2.8, height=2.4, linewidth=1.1)  # fmt: skip
    for axes in on.titles(names).axes.values():
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.locator_params(axis="x", nbins=5)
    return on.done("training step", "training loss (nats per subword)")


@styled
def held_out_maps(table: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Held-out losses by language and model, a map for each group that can be compared.

    ``table`` has ``group``, ``model``, ``language`` and ``loss``; ``names`` gives the languages in
    order, code → label. Colours run from the lowest to the highest loss of a group.
    """
    on = heatmap(
        table, row="language", column="model", value="loss", panel="group", rows=list(names),
        names=names.get, tops=lambda name: name.removeprefix("mini-"), written=number,
        own_columns=True, cell=(0.62, 0.165), edge=(1.3, 1.6), turned=35, bar_by=lambda key: key,
    )  # fmt: skip
    on.titles(lambda group: group.replace(", ", ",\n"))
    return on.done("held-out loss in nats per subword; bright is high, map by map")


@styled
def vocabularies(
    table: pd.DataFrame, names: Mapping[str, str], columns: Mapping[str, str]
) -> Figure:
    """What vocabularies do to every language: a row a language, a panel a column of the table.

    ``table`` has ``vocabulary``, ``language`` and the ``columns`` (column → label of its axis);
    ``names`` gives the languages from top to bottom, code → label.
    """
    long = table.melt(["vocabulary", "language"], list(columns), "column")
    kinds = zip(order(table, "vocabulary"), (BLUE, VERMILION, GREEN), "oD^", strict=False)
    on = lanes(
        long, item="language", value="value", series="vocabulary", panel="column", shift=0,
        looks={name: look(colour, mark, hollow=mark == "D") for name, colour, mark in kinds},
        items=list(names), names=names.get, joined=True, lane=0.022, sharex=False, width=2.5,
    )  # fmt: skip
    for axes in on.titles(columns).axes.values():
        axes.set_xlim(left=0)
    return on.done()


@styled
def paired_differences(table: pd.DataFrame, *, tasks: Sequence[str] = _TASKS) -> Figure:
    """Differences of two models with intervals, a row a pair of models, a panel a task.

    ``table`` has ``model``, ``reference``, ``task``, ``layers`` (up to two sets of them, a mark
    each), ``value``, ``low`` and ``high``; ``least`` and ``most`` are a wider, thinner interval.
    """
    table = table.assign(pair=table["model"] + " − " + table["reference"])
    table = pd.concat([rows_of(table, task=task) for task in tasks])
    kinds = zip(order(table, "layers"), (False, True), "os", strict=False)
    on = lanes(
        table, item="pair", value="value", series="layers", panel="task", columns=len(tasks),
        looks={name: look("0.2" if hollow else BLUE, mark, hollow=hollow)
               for name, hollow, mark in kinds},
        wide=("least", "most"), width=3.1, lane=0.13, sharex=False,
    )  # fmt: skip
    across(on, 0, **ZERO | {"linestyle": "-"})
    return on.titles(NAMES).done("difference (share)")


@styled
def possible_ranges(table: pd.DataFrame, printed: float) -> Figure:
    """The stretches of correlations of LD and MD for which a row of Table 1 is possible.

    ``table`` has ``row`` and ``low``, ``middle``, ``high``, a row a stretch; ``printed`` is the
    correlation that the paper prints of its 630 pairs.
    """
    rows = table["row"].drop_duplicates().tolist()
    on = lanes(table, item="row", items=rows, value="middle", looks={None: look(BLUE, "")},
               shift=0, lane=0.2, width=4.6, linewidth=3)  # fmt: skip
    line = {"color": VERMILION, "linewidth": 1, "linestyle": (0, (5, 2))}
    for axes in on.axes.values():
        axes.axvline(printed, **line)
        axes.set_xlim(-1.03, 1.03)
    told = handle(f"printed, over 630 pairs: {number(printed)}", line | {"marker": ""}, line=True)
    return on.done("correlation of LD and MD", "", handles=[told])
