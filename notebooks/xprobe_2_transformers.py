"""What the layers of Transformers hold of a sentence, and whether a probe reads it abroad."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from shared.abx_figures import chance_line
from shared.shown import asking
from shared.xprobe_figures import asked, lined, subject_looks
from xlx.experiment.scoring import subject_scores
from xlx.experiment.sentence_probes import over_languages
from xlx.measures import statistics
from xlx.plots.primitives import curves
from xlx.plots.style import GUESSING, TINY, styled
from xlx.subjects.identity import Name
from xlx.text.parallel import ParallelCorpus

_CELL = ["task", "source", "target"]
_CEILING = {"color": "black", "linewidth": 1, "linestyle": "-"}


def best_layers(means: pd.DataFrame) -> pd.DataFrame:
    """Of `over_languages` each subject's layer with the highest accuracy on a task."""
    return means.loc[means.groupby(["task", "subject"], sort=False)["accuracy"].idxmax()]


def against_rivals(cells: pd.DataFrame, subject: str, rivals: Sequence[str]) -> pd.DataFrame:
    """A subject less its strongest rival on each task, each at its best layer, paired by cell.

    Strongest and best are highest on average over languages. By task: ``accuracy``, the ``rival``
    and its ``rival_accuracy``, and ``difference`` with ``low`` and ``high`` (`over_languages`).
    """
    best = best_layers(over_languages(cells))[["subject", "task", "layer"]]
    at_best = cells.merge(best, on=["subject", "task", "layer"])
    by_cell = at_best.groupby([*_CELL, "subject"], sort=False)["accuracy"].mean()
    wide = by_cell.unstack("subject")
    rival = wide.groupby("task", sort=False).mean()[[*rivals]].idxmax(axis=1)
    columns = wide.columns.get_indexer(wide.index.get_level_values("task").map(rival))
    other = wide.to_numpy()[np.arange(len(wide)), columns]
    pairs = wide.assign(rival_accuracy=other, difference=wide[subject] - other)
    means = pairs.groupby("task", sort=False)[[subject, "rival_accuracy"]].mean()
    more = pairs["difference"].rename("accuracy").reset_index()
    table = over_languages(more, ["task"], (-1, 1)).set_index("task")
    table = table.rename(columns={"accuracy": "difference"}).assign(rival=rival)
    return table.join(means.rename(columns={subject: "accuracy"}))


def by_language(
    cells: pd.DataFrame, subject: str, tasks: Sequence[str], source: str, alike: pd.DataFrame
) -> pd.DataFrame:
    """A row a language and a column a task: per cent right, each at the layer best on average.

    "86 · 63 · 80 · 92": at home; of the untrained twin there; with the probe learnt in ``source``;
    labels ``alike`` with it (`labels_alike`).
    """
    home = cells["source"] == cells["target"]
    abroad, tables = ~home & (cells["source"] == source), []
    for name, where in ((subject, home), (f"{subject}, untrained", home), (subject, abroad)):
        read = cells[where & (cells["subject"] == name)]
        best = best_layers(over_languages(read))[["task", "layer"]]
        tables.append(read.merge(best).rename(columns={"accuracy": "value"}))
    tables.append(alike[alike["source"] == source].rename(columns={"alike": "value"}))
    texts = []
    for table in tables:
        shown = table.pivot(index="target", columns="task", values="value")
        shown = shown.reindex(index=cells["target"].unique(), columns=list(tasks))
        shown.loc["mean"] = shown.mean()
        texts.append((100 * shown).map("{:.0f}".format).replace("nan", "-"))
    first, *others = texts
    for text in others:
        first = first + " · " + text
    return first.replace("- · - · - · -", "-").rename_axis(index="language", columns=None)


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

    The interval is over languages (`statistics.correlation`). One row per subject, measure and what
    is ``given``: "alone", or the number of the "layer" and its square held, as both may just rise.
    """
    of_pair = crossing.groupby(["subject", "language_1", "language_2"])
    columns = ["crossing", *measures]
    moved = crossing.assign(**{x: crossing[x] - of_pair[x].transform("mean") for x in columns})
    moved = moved.assign(square=moved["layer"] ** 2)
    held = {"alone": [], "layer": ["layer", "square"]}
    tables = [
        statistics.correlations(moved, ["subject"], measure, "crossing", given=given).assign(
            measure=measure, given=name
        )
        for measure, (name, given) in itertools.product(measures, held.items())
    ]
    return pd.concat(tables, ignore_index=True)


@styled
def by_layer(
    means: pd.DataFrame,
    names: Sequence[str],
    question: str,
    ceilings: Mapping[str, float] | None = None,
) -> Figure:
    """Accuracy by layer, one panel per task, one line per subject; chance dotted.

    ``ceilings``: by task a share that is drawn across, of labels that are alike.
    """
    on = curves(
        lined(means),
        "layer",
        "accuracy",
        hue="subject",
        col="task",
        scale=100,
        wrap=3,
        looks=subject_looks(names),
        height=1.6,
    )
    on.titles(asked)
    for axes, rows in on.each(means):
        axes.axhline(100 * rows["chance"].iloc[0], **GUESSING)
        if ceilings is not None and rows["task"].iloc[0] in ceilings:
            ceiling = 100 * ceilings[rows["task"].iloc[0]]
            axes.axhline(ceiling, **_CEILING)
            axes.text(0, ceiling - 1, "ceiling: labels alike", va="top", fontsize=TINY)
    figure = on.done("layer (0: embeddings)", "accuracy (%)", handles=[chance_line()])
    return asking(question, figure)
