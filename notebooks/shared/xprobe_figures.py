"""Figures of probing tasks for sentence encoders (X-Probe).

Accuracies are in [0, 1] and stand in cells as the paper prints them. Encoders and tasks stand in
the order in which the table names them, languages by code and name.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from shared.shown import asking, framed_handle
from xlx.plots.panels import across, number
from xlx.plots.primitives import heatmap, lanes
from xlx.plots.style import ABOUT, BAG, GUESSING, Look, handle, language_label, look, looks, styled

#: What a task asks for, in a title.
ASKED = {
    "SentLen": "length",
    "WC": "which word",
    "TreeDepth": "tree depth",
    "BiShift": "words swapped?",
    "SubjNum": "subject's number",
    "ObjNum": "object's number",
    "CoordInv": "clauses swapped?",
    "SOMO": "word replaced?",
    "Tense": "tense",
}
#: Tasks of which accuracies stand clear of the commonest class, in print or here.
CLEAR = ("SentLen", "TreeDepth", "SubjNum", "Tense")
#: Ratios further than this from 1 all have the deepest colour: one of 0.00 to 0.01 is no scale.
_REACH = 0.5


def subject_looks(names: Iterable[str]) -> dict[str, Look]:
    """A model's look; bags ("a bag of ...") are grey and dashed."""
    bag = look(BAG["color"], "", BAG["linestyle"])
    return {name: bag if name.startswith("a ") else looks([name])[name] for name in names}


def lined(means: pd.DataFrame) -> pd.DataFrame:
    """Bags, which have no layers, at the last one too: a line across."""
    bags = means[means["subject"].str.startswith("a ")]
    return pd.concat([means, bags.assign(layer=means["layer"].max())])


@styled
def accuracies(table: pd.DataFrame) -> Figure:
    """Probing accuracy by encoder with interval, a panel per task, a colour per corpus (Figure 2).

    ``table`` has ``encoder``, ``task``, ``corpus``, ``accuracy``, ``low``, ``high`` and
    ``majority``, the share of the commonest class, which is drawn across.
    """
    on = lanes(
        table,
        "accuracy",
        "encoder",
        hue="corpus",
        col="task",
        scale=100,
        wrap=4,
        width=1.9,
        lane=0.09,
    )
    across(on, (100 * table.groupby("task")["majority"].mean()).to_dict())
    on.titles(asked)
    figure = on.done("probing accuracy (%)", handles=[handle("commonest class", GUESSING)])
    return asking("Does it matter which text a task is made of?", figure)


def asked(task: str) -> str:
    """A task by its name and what it asks for."""
    return f"{task}: {ASKED[task]}"


def _in_words(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(task=table["task"].map(ASKED).str.replace(" ", "\n"))


@styled
def correlations(table: pd.DataFrame) -> Figure:
    """Rank correlation of probing and a downstream task, one row per language (Figure 3).

    ``table`` as of `xprobe_tables.rank_correlations`. A cell has ρ; it is framed where its interval
    does not contain 0. A missing ρ stays grey.
    """
    written = table["rho"].map(number).where(table["rho"].notna(), "")
    table = table.assign(written=written, framed=(table["low"] > 0) | (table["high"] < 0))
    on = heatmap(
        _in_words(table),
        "task",
        "language",
        "rho",
        names=language_label,
        cell=(0.7, 0.24),
        norm=Normalize(-1, 1),
        cmap=ABOUT,
        bar="Spearman's ρ of probing and\ninference, over encoders",
        edge=(1.3, 1.2),
    )
    counted = f"{table['framed'].sum()} of {table['rho'].count()} (by chance 1 of 20)"
    figure = on.done(handles=[framed_handle(f"surely not 0: {counted}")])
    return asking("Do encoders that do a task well do inference well?", figure)


@styled
def relative(table: pd.DataFrame) -> Figure:
    """Accuracy over that in English, one map per encoder (Figure 4).

    ``table`` as of `xprobe_tables.relative_accuracies`, with ``sign``. Purple is better than
    English, orange worse, white is what rounding and luck may explain; the colours end at 0.5 and
    1.5. A ratio that is missing or infinite stays grey. Tasks are the `CLEAR` ones; all is in the
    order of names, so that two figures have the same.
    """
    table = table[table["task"].isin(CLEAR)].sort_values(["language", "encoder", "task"])
    ratio, apart = table["ratio"].replace(np.inf, np.nan), table["sign"] != 0
    written = ratio.map(number).where(ratio.notna() & apart, "")
    table = table.assign(written=written, ratio=ratio.where(apart, ratio * 0 + 1))
    on = heatmap(
        _in_words(table),
        "task",
        "language",
        "ratio",
        col="encoder",
        wrap=3,
        cell=(0.62, 0.2),
        cmap=ABOUT,
        norm=Normalize(1 - _REACH, 1 + _REACH),
        extend="both",
        names=language_label,
        edge=(0.9, 1.4),
        bar="accuracy over that in English (white: cannot be told from 1)",
    )
    return asking("Does a mapped encoder hold as much as the English one?", on.done())


@styled
def selectivity(table: pd.DataFrame) -> Figure:
    """Accuracy of readers that know no language, beside the control task, one panel per task.

    ``table`` has ``task``, ``encoder``, ``language``, ``accuracy``, ``control`` (accuracy on the
    same sentences with labels at random) and ``majority`` (of the commonest class). Points are
    means over languages, ends the lowest and the highest language.
    """
    labels = {"accuracy": "task", "control": "control task (labels at random)"}
    keys = ["task", "encoder"]
    long = table.melt([*keys, "majority"], [*labels], var_name="read").dropna(subset="value")
    groups = long.groupby([*keys, "read"], sort=False)["value"]
    means = groups.agg(mean="mean", low="min", high="max").reset_index()
    ink = {"accuracy": look("0.1", "o"), "control": look("0.45", "<", hollow=True)}
    on = lanes(
        means,
        "mean",
        "encoder",
        hue="read",
        col="task",
        looks=ink,
        labels=labels,
        scale=100,
        width=2.4,
        lane=0.14,
    )
    across(on, (100 * table.groupby("task")["majority"].mean()).to_dict())
    on.titles(asked)
    shown = "accuracy (%): mean of the languages, from the lowest to the highest"
    figure = on.done(shown, handles=[handle("commonest class", GUESSING)])
    return asking("Which tasks need no encoder at all?", figure)
