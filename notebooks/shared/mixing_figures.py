"""Figures of inputs in two languages (Rajaee and Monz): grids, within and across, controls.

Tables hold scores in [0, 1]; axes and cells show them as the paper prints them, in per cent.
Languages stand by code in maps, by code and name in lists; "mean" stands below the others.
"""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from shared.shown import asking, framed_handle, scale_about
from xlx.plots.panels import across, number, order
from xlx.plots.primitives import heatmap, lanes
from xlx.plots.style import (
    ABOUT,
    BAG,
    GUESSING,
    HIGH,
    MEASURES,
    NAMES,
    WIDTH,
    ZERO,
    handle,
    language_label,
    look,
    looks,
    styled,
)

#: What the parts of a task are called, in the order of the input's (Tables 1 to 3).
PARTS = {
    "NLI": ("premise", "hypothesis"),
    "PI": ("sentence 1", "sentence 2"),
    "QA": ("context", "question"),
}
#: What a model taught in two languages is set against.
AGAINST = {
    "baseline": "less a model taught in English alone",
    "hypothesis alone": "less one that reads the hypothesis alone",
}
#: The narrowest cells that have room for "86" and for "85.9", in inches.
_WHOLE, _DECIMAL = 0.14, 0.45
#: Columns up to which numbers are written in the cells.
_NUMBERED = 9


@styled
def grid_maps(
    table: pd.DataFrame,
    first: str = "premise",
    second: str = "hypothesis",
    unit: str = "accuracy",
    *,
    columns: int | None = None,
    middle: float | None = None,
) -> Figure:
    """Scores of every pair of languages, one map per model (Figures 2 to 10).

    ``table`` has ``model``, ``first`` and ``second`` (languages of the parts, or "all": rows and
    columns) and ``score``; ``first``, ``second`` and ``unit`` say what is on the axes and in the
    cells. Maps have one scale and stand in a row, at most ``columns`` of them. Colours are bright
    where a score is high, or diverge about ``middle`` (such as guessing): then a cell
    whose interval (``low``, ``high``) holds the middle is white.
    """
    names = dict.fromkeys([*table["first"], *table["second"]])
    rows, others = ([x for x in names if x in set(table[y])] for y in ("first", "second"))
    within = (table["first"] == table["second"]) & (table["first"] != "all")
    table = table.assign(value=100 * table["score"], framed=within)
    models = order(table, "model")
    single = table.query("first != 'all' and second != 'all'")
    means = single.pivot_table("value", "model", "framed")
    room = (WIDTH - 0.7) / len(others)
    columns = max(1, min(columns or len(models), int(room / _WHOLE)))
    decimals = 0 if middle is not None or room / columns < _DECIMAL else 1
    if len(others) <= _NUMBERED:
        table["written"] = [number(x, decimals) if pd.notna(x) else "" for x in table["value"]]
    scale, label = None, f"{unit} (%; bright: high)"
    if middle is not None:
        if "low" in table:  # a printed score has no interval
            low, high = (100 * table[end].fillna(table["score"]) for end in ("low", "high"))
            holds = low.le(100 * middle) & high.ge(100 * middle)
            table["value"] = table["value"].mask(holds, 100 * middle)
        scale = scale_about(table["value"], 100 * middle, 10)
        kind = "%" if middle else "points"
        label = f"{unit} ({kind}); white: an interval holds {100 * middle:.0f}"
    on = heatmap(
        table,
        "second",
        "first",
        "value",
        col="model",
        rows=rows,
        columns=others,
        wrap=columns,
        bar=label,
        edge=(0.7, 1.5),
        cell=(min(0.36, room / columns), 0.24),
        norm=scale,
        cmap=HIGH if middle is None else ABOUT,
    )
    on.titles(lambda x: "{0}\nwithin {2:.0f}, across {1:.0f}".format(x, *means.loc[x]))
    if scale is not None:
        on.figure.axes[-1].set_xlim(left=max(0, scale.vmin))  # the bar: no score is below 0
    figure = on.done(second, first, handles=[framed_handle("within a language")])
    what = "added" if middle == 0 else "right"
    return asking(f"Is as much {what} where {first} and {second} differ in language?", figure)


@styled
def within_across(
    table: pd.DataFrame, chance: float | None = None, unit: str = "accuracy"
) -> Figure:
    """Scores within and across by language, one panel per model (Tables 1 to 3).

    ``table`` has ``model``, ``language``, ``setting``, ``score``, ``low`` and ``high`` (missing
    where there is no interval), as `mixing.summary` gives it; the drop is not drawn but as the line
    between the two points.
    """
    figure = _settings(table, "language", f"{unit} (%)", chance=chance)
    return asking("How much is lost where the two parts differ in language?", figure)


@styled
def labels(table: pd.DataFrame) -> Figure:
    """Scores within and across by label and language, one panel per label and model (Table 5).

    ``table`` has ``label`` and the columns of `within_across`, as `mixing.by_label` gives them, and
    errors are as there.
    """
    figure = _settings(table, "language", "examples of the class that are right (%)", row="label")
    return asking("Which class loses when the two texts are in two languages?", figure)


@styled
def controls(table: pd.DataFrame, chance: Mapping[str, float] | None = None) -> Figure:
    """Models beside their control tasks, one row per model, one column per task (Tables 7 and 14).

    ``table`` has ``task``, ``model``, ``condition`` ("original", "shuffled", a baseline),
    ``setting``, ``score``, ``low`` and ``high``; ``chance`` maps a task to the score of guessing.
    """
    label = "mean accuracy over languages (%)"
    figure = _settings(table, "condition", label, "model", "task", chance or None)
    return asking("What is left where words are shuffled?", figure)


@styled
def distances(table: pd.DataFrame) -> Figure:
    """How much further a hard question's words are from its answer (Figures 1, 11 and 12).

    ``table`` has ``model``, ``language``, ``ratio`` (hardest over easiest fifth), ``low`` and
    ``high``, of `mixing_2_paraphrase.tails`.
    """
    reader, *rivals = order(table, "model")
    shown = looks([reader]) | dict.fromkeys(rivals, look(BAG["color"], "x", BAG["linestyle"]))
    labels = dict.fromkeys(rivals, "the span nearest to the question's words")
    on = lanes(
        table,
        "ratio",
        "language",
        hue="model",
        names=language_label,
        width=6.4,
        looks=shown,
        labels=labels,
    )
    across(on, 1, **ZERO)
    across(on, 2)
    figure = on.done(
        "distance of words to the answer: hardest fifth over easiest (right: hard is further)",
        handles=[handle("as far", ZERO), handle("twice as far, as in the paper", GUESSING)],
    )
    return asking("Are the words of hard questions further from the answer?", figure)


@styled
def pairs(table: pd.DataFrame, unit: str = "AUC") -> Figure:
    """What fine-tuning on two languages gains over each baseline, a panel per pair (Tables 4, 9).

    ``table`` has ``pair`` ("en-de"), ``row`` ("l1-l2", "l2-l1", "*-l2", "l1-*", "*-*"),
    ``condition``, ``gain``, ``gain_low`` and ``gain_high``, as `mixing_3_controls.pair_table`
    gives them, in ``unit``.
    """
    rows = table[table["condition"].isin(AGAINST)]
    rows = rows.assign(low=rows["gain_low"], high=rows["gain_high"])
    words = {"l1": "the first", "l2": "the second", "*": "any"}
    on = lanes(
        rows,
        "gain",
        "row",
        hue="condition",
        col="pair",
        scale=100,
        wrap=2,
        width=3.4,
        lane=0.14,
        looks=looks(AGAINST),
        labels=AGAINST,
        names=lambda row: "premise in {}, hypothesis in {}".format(*map(words.get, row.split("-"))),
    )
    across(on, 0, **ZERO)
    on.titles(lambda x: "first: {}, second: {}".format(*map(language_label, x.split("-"))))
    figure = on.done(f"gain by learning the pair (points of {unit})")
    return asking("Does learning in two languages help where they are asked?", figure)


def _settings(
    table: pd.DataFrame,
    item: str,
    xlabel: str,
    row: str | None = None,
    col: str = "model",
    chance: float | Mapping[str, float] | None = None,
) -> Figure:
    """Points within and across, and between them the drop."""
    table = table[table["setting"] != "drop"]
    on = lanes(
        table,
        "score",
        item,
        hue="setting",
        row=row,
        col=col,
        items=sorted(order(table, item), key="mean".__eq__),
        names=language_label,
        scale=100,
        looks={setting: MEASURES[setting] for setting in ("within", "across")},
        labels=NAMES,
        joined=True,
        width=7,
        lane=0.085 if row else 0.1,
        wrap=2 if table["model"].nunique() == 4 else 3,  # and none stands alone
    )
    if chance is None:
        return on.done(xlabel)
    shares = {key: chance for key in on.axes}
    if isinstance(chance, Mapping):
        shares = {key: chance[key[1]] for key in on.axes if key[1] in chance}
    across(on, {key: 100 * share for key, share in shares.items()})
    return on.done(xlabel, handles=[handle("the commonest label", GUESSING)])
