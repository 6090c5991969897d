"""What the layers of Transformers hold of a sentence, and whether a probe reads it abroad."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from shared.abx_figures import chance_line
from shared.xprobe_figures import subject_looks
from shared.xprobe_tables import CELL
from xlx.experiment.scoring import subject_scores
from xlx.experiment.sentence_probes import over_languages
from xlx.measures import statistics
from xlx.plots.panels import number
from xlx.plots.primitives import Cells, Curves, curves, heatmap
from xlx.plots.style import GUESSING, language_label, styled
from xlx.subjects.identity import Name
from xlx.text.parallel import ParallelCorpus


def best_layers(means: pd.DataFrame) -> pd.DataFrame:
    """Of `over_languages` each subject's layer with the highest accuracy on a task."""
    return means.loc[means.groupby(["task", "subject"], sort=False)["accuracy"].idxmax()]


def against(cells: pd.DataFrame, subject: str, other: str) -> pd.DataFrame:
    """A subject less another one on each task and language, each at its best layer of the task.

    Best is highest on average over languages. ``difference`` with ``low`` and ``high`` (95 %, of
    two independent tests: too wide, as the sentences are the same) and ``apart``: whether the two
    intervals of the cells leave each other out, 1 above, -1 below, 0 not.
    """
    home = cells[cells["source"] == cells["target"]]
    best = best_layers(over_languages(home))[["subject", "task", "layer"]]
    keys, parts = ["task", "source"], []
    for name in (subject, other):
        at = home.merge(best[best["subject"] == name], on=["subject", "task", "layer"])
        parts.append(at.set_index(keys)[["layer", "accuracy", "low", "high", "n_test"]])
    both = parts[0].join(parts[1].add_suffix("_other")).reset_index()
    p, q = both["accuracy"], both["accuracy_other"]
    half = statistics.half_width(np.sqrt((p * (1 - p) + q * (1 - q)) / both["n_test"]))
    above = (both["low"] > both["high_other"]).astype(int)
    apart = above - (both["high"] < both["low_other"])
    ends = {"difference": p - q, "low": p - q - half, "high": p - q + half}
    return both.assign(**ends, apart=apart).drop(columns=["low_other", "high_other"])


def at_one_layer(
    cells: pd.DataFrame, pairs: Mapping[str, Sequence[str]], source: str
) -> pd.DataFrame:
    """What one subject has more than another at the same layer, paired by language.

    ``pairs``: name → the two. One row per ``pair``, ``layer`` (the middle and the last one),
    ``read`` ("at home", or "from en" with the probe of ``source``, at the middle one) and ``task``:
    ``difference`` with ``low`` and ``high`` (Student, 95 %, over the languages read, ``n``).
    """
    home = cells["source"] == cells["target"]
    read = {"at home": home, f"from {source}": (cells["source"] == source) & ~home}
    parts = []
    for name, (first, other) in pairs.items():
        last = int(cells.loc[cells["subject"] == first, "layer"].max())
        for layer, where in itertools.product((last // 2, last), read):
            rows_of_layer = cells[read[where] & (cells["layer"] == layer)]
            wide = rows_of_layer.pivot(index=["task", "source", "target"], columns="subject")[
                "accuracy"
            ]
            more = (wide[first] - wide[other]).dropna().rename("accuracy").reset_index()
            if layer < last or where == "at home":
                about = {"pair": name, "layer": layer, "read": where}
                parts.append(over_languages(more, ["task"]).assign(**about))
    return pd.concat(parts, ignore_index=True).rename(columns={"accuracy": "difference"})


def by_language(cells: pd.DataFrame, subject: str, tasks: Sequence[str], source: str):
    """A row a language and a column a task: per cent right, and how that came about.

    "86 · +23* · 80": accuracy at home; points above the untrained twin, a star where the intervals
    leave each other out (`against`); accuracy of the probe learnt in ``source``, at the layer that
    is best for it. Below: the mean of the languages, and how many have a star.
    """
    home = against(cells, subject, f"{subject}, untrained")
    read = cells[(cells["source"] == source) & (cells["target"] != source)]
    read = read.merge(best_layers(over_languages(read))[["subject", "task", "layer"]])
    read = read[read["subject"] == subject].set_index(["task", "target"])["accuracy"].rename("read")
    home = home[home["task"].isin(list(tasks))].join(read, on=["task", "source"])
    means = home.groupby("task", sort=False)[["accuracy", "difference", "read"]].mean()
    shown = pd.concat([home, means.reset_index().assign(source="mean", apart=0)])
    points = 100 * shown[["accuracy", "difference", "read"]]
    star = shown["apart"].gt(0).map({True: "*", False: ""})
    shown["said"] = points["accuracy"].map("{:.0f}".format)
    shown["said"] += " · " + points["difference"].map("{:+.0f}".format) + star
    shown["said"] += " · " + points["read"].map("{:.0f}".format).replace("nan", "-")
    table = shown.pivot(index="source", columns="task", values="said")
    table = table.reindex(index=list(dict.fromkeys(shown["source"])), columns=list(tasks))
    counts = counted_apart(home).set_index("task")
    table.loc["above"] = counts["above"].astype(str) + " of " + counts["n"].astype(str)
    return table.fillna("-").rename_axis(index="language", columns=None)


def null_share(table: pd.DataFrame) -> dict[str, float]:
    """How often two probes that differ in their seed alone are within the interval of a difference.

    ``pairs`` of neighbouring seeds, and the share ``within`` the 95 % interval that a difference of
    two independent tests has. The tests are the same, so it should be above 0.95.
    """
    wide = table.pivot(index=[*CELL, "draw", "n_test"], columns="seed", values="accuracy")
    first, other = wide.to_numpy()[:, :-1], wide.to_numpy()[:, 1:]
    n = wide.index.get_level_values("n_test").to_numpy()[:, None]
    mean = (first + other) / 2
    reach = statistics.half_width(np.sqrt(2 * mean * (1 - mean) / n))
    within = np.abs(first - other) <= reach + 1e-12
    return {"pairs": within.size, "within": float(within.mean())}


def crossings(
    cells: pd.DataFrame,
    subjects: dict[str, Name],
    text: ParallelCorpus,
    measures: Sequence[str],
    tasks: Sequence[str],
    **options: object,
) -> pd.DataFrame:
    """What one probe reads abroad beside scores of the same layer, one row per pair of languages.

    ``subject``, ``layer``, ``language_1``, ``language_2``; ``crossing``: points above chance, mean
    over ``tasks`` and both directions, in [0, 1]; one column per measure, of ``text``.
    """
    abroad = cells[(cells["source"] != cells["target"]) & cells["task"].isin(list(tasks))]
    both = np.sort(abroad[["source", "target"]].to_numpy(), axis=1)
    abroad = abroad.assign(language_1=both[:, 0], language_2=both[:, 1])
    keys = ["subject", "layer", "language_1", "language_2"]
    above = abroad.assign(crossing=abroad["accuracy"] - abroad["chance"])
    crossing = above.groupby(keys, sort=False)["crossing"].mean().reset_index()
    tables = []
    for name, model in subjects.items():
        table = subject_scores([model], text, measures, **options)[0].table()
        pairs = np.sort(table[["language_1", "language_2"]].to_numpy(), axis=1)
        table = table.assign(language_1=pairs[:, 0], language_2=pairs[:, 1], subject=name)
        tables.append(table.pivot_table("score", keys, "task"))
    return crossing.merge(pd.concat(tables).reset_index(), on=keys)


def along_layers(crossing: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """Correlation of crossing with each measure over layers: pairs' own means are taken off first.

    The interval is over languages (`statistics.correlation`). One row per subject and measure.
    """
    of_pair = crossing.groupby(["subject", "language_1", "language_2"])
    columns = ["crossing", *measures]
    moved = crossing.assign(**{x: crossing[x] - of_pair[x].transform("mean") for x in columns})
    tables = [
        statistics.correlations(moved, ["subject"], measure, "crossing").assign(measure=measure)
        for measure in measures
    ]
    return pd.concat(tables, ignore_index=True)


@styled
def by_layer(
    means: pd.DataFrame, names: Sequence[str], where: str = "accuracy in the same language (%)"
) -> Figure:
    """Accuracy by layer, one panel per task, one line per subject; chance dotted."""
    style = Curves(scale=100, wrap=3, looks=subject_looks(names), sharey=False, height=1.6)
    on = curves(means, "layer", "accuracy", hue="subject", col="task", style=style)
    for axes, rows in on.each(means):
        axes.axhline(100 * rows["chance"].iloc[0], **GUESSING)
    return on.done("layer (0: embeddings)", where, handles=[chance_line()])


@styled
def matrix(cells: pd.DataFrame, layer: int) -> Figure:
    """Points above chance of probes trained in one language (rows) and read in another, by task."""
    cells = cells[cells["layer"] == layer]
    above = 100 * (cells["accuracy"] - cells["chance"])
    table = cells.assign(above=above, written=[number(x, 0) for x in above])
    style = Cells(
        wrap=3,
        names=language_label,
        bar=f"{cells['subject'].iloc[0]}, layer {layer}: points above chance",
    )
    on = heatmap(table, "target", "source", "above", col="task", style=style)
    return on.done("read in", "trained in")


def counted_apart(compared: pd.DataFrame) -> pd.DataFrame:
    """Of `against`, one row per task: languages with a subject ``above``, ``below``, and ``n``."""
    counts = {"above": lambda x: (x > 0).sum(), "n": "size", "below": lambda x: (x < 0).sum()}
    return compared.groupby("task", sort=False)["apart"].agg(**counts).reset_index()
