"""One sentence through five lenses: the pictures of the first page."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from shared import document_probes
from shared.abx_figures import LAYER, MATCHED, chance_line
from shared.shown import asking
from shared.xprobe_figures import lined, subject_looks
from xlx.experiment.scoring import Subject
from xlx.measures import igap
from xlx.plots.panels import Panels, across, order
from xlx.plots.primitives import curves, lanes
from xlx.plots.style import (
    BLUE,
    CHANCE,
    MEASURES,
    NAMES,
    TINY,
    TWIN,
    ZERO,
    handle,
    language_label,
    look,
    looks,
    styled,
)

#: Short words for what `mixing_tables.cell_groups` names.
SETTINGS = {
    "within en": "both in English",
    "within the others": "both in one other language",
    "across": "in two languages",
}


def _whole(on: Panels) -> None:
    """Layers are whole numbers."""
    for axes in on.axes.values():
        axes.locator_params("x", integer=True)


@styled
def form_and_meaning_lines(table: pd.DataFrame, twin: pd.DataFrame) -> Figure:
    """LD and matched MD over layers, one panel per model.

    ``twin``: the same of the first model before training, drawn hollow in its panel.
    """
    on = curves(
        table, "layer", "score", hue="task", col="subject", labels=NAMES, width=3.9, height=2.1
    )
    looks = {task: MEASURES[task] | TWIN for task in order(table, "task")}
    twin = twin.assign(subject=table["subject"].iloc[0])
    curves(
        twin,
        "layer",
        "score",
        hue="task",
        looks=looks,
        labels=dict.fromkeys(looks, "_"),
        interval=False,
        every=2,
        on=on,
    )
    across(on, y=CHANCE)
    _whole(on)
    handles = [handle("untrained twin", look("0.3", "o") | TWIN), chance_line()]
    figure = on.done(LAYER, "share of comparisons", handles=handles)
    return asking("In which layers is the language, in which is the meaning?", figure)


@styled
def rival_lines(table: pd.DataFrame, n: int) -> Figure:
    """Sentences nearer than the translation: a line per language, a panel per model."""
    names = {code: language_label(code) for code in table["language"].unique()}
    # Not the colours of form and meaning.
    _, _, *free = looks(map(str, range(len(names) + 2)), {}).values()
    shown = dict(zip(names, free, strict=True))
    on = curves(
        table,
        "layer",
        "rivals",
        hue="language",
        col="model",
        interval=False,
        looks=shown,
        labels=names,
        width=3.9,
        height=2.0,
    )
    across(on, y=(n - 1) / 2)
    _whole(on)
    nearer = "sentences nearer than\nthe translation (0 is best)"
    figure = on.done(LAYER, nearer, handles=[chance_line("guessing")])
    return asking("In which layer is the translation of one sentence the nearest?", figure)


@styled
def lost_lanes(gaps: pd.DataFrame) -> Figure:
    """What is lost on translations by target, of a model and of strings, in points.

    ``target``, ``subject``, ``lost``, with ``low`` and ``high`` of the model.
    """
    first, second = gaps["subject"].unique()
    shown = {first: looks([first])[first], second: look("0.35", "x")}
    on = lanes(
        gaps,
        "lost",
        "target",
        hue="subject",
        looks=shown,
        scale=100,
        names=language_label,
        width=5.4,
    )
    across(on, 100 * gaps["guess"].iloc[0], zorder=2)
    for axes in on.axes.values():
        axes.set_xlim(left=0)
    guess = chance_line("a model that guesses")
    figure = on.done("points lost on translations of what was learnt", handles=[guess])
    return asking("How much of what was learnt in English is lost?", figure)


@styled
def gain_lanes(table: pd.DataFrame, model: str) -> Figure:
    """What models add to those of the second text alone, in points of AUC.

    ``cells``, ``added``, ``score``, ``low``, ``high``; all but the first ``added`` are rivals.
    """
    first, *rivals = table["added"].unique()
    shown = {first: look(BLUE, "o")} | dict.fromkeys(rivals, look("0.45", "s"))
    labels = dict.fromkeys(rivals, "controls: two more models of the second text")
    on = lanes(
        table,
        "score",
        "cells",
        hue="added",
        looks=shown,
        labels=labels,
        names=SETTINGS.get,
        width=6.4,
        lane=0.16,
        scale=100,
    )
    (axes,) = on.axes.values()
    for x, y in axes.containers[0][0].get_xydata():
        axes.text(x, y - 0.07, f"{x:.1f}", ha="center", fontsize=TINY)
    across(on, 0, **ZERO, zorder=2)
    on.titles(lambda _: model)
    figure = on.done("points of AUC (of 100) that are added to a model of the second text")
    return asking("What does the first text tell beyond the second?", figure)


@styled
def probe_lines(means: pd.DataFrame) -> Figure:
    """A probe over layers, in its own language and in others, one line per subject."""
    titles = {
        "at home": "read in the language it learnt (at home)",
        "abroad": "read in other languages (abroad)",
    }
    known = subject_looks(means["subject"].unique())
    on = curves(
        lined(means),
        "layer",
        "accuracy",
        hue="subject",
        col="read",
        looks=known,
        scale=100,
        width=3.9,
        height=2.1,
    )
    across(on, y=100 * means["chance"].iloc[0])
    on.titles(titles.get)
    figure = on.done(LAYER, "accuracy of the probe\nof tense (%)", handles=[chance_line()])
    return asking("Can a probe of tense read other languages?", figure)


def best_row(table: pd.DataFrame, by: str | list[str], value: str, most: bool = True) -> pd.Series:
    """Of each subject the highest ``value``, or the lowest."""
    groups = table.groupby(by, sort=False)[value]
    return groups.max() if most else groups.min()


def by_document(subject: Subject | str, task: str) -> float:
    """Accuracy at home in three languages, where documents are apart (`document_probes`)."""
    tasks = document_probes.document_tasks(("en", "de", "fr"))
    answers = document_probes.document_probes(subject, tasks, True)[1]
    answers = answers[(answers["task"] == task) & (answers["source"] == answers["target"])]
    return float(answers["right"].mean())


def front_page(
    models: tuple[str, str],
    form_and_meaning: pd.DataFrame,
    rivals: pd.DataFrame,
    gaps: pd.DataFrame,
    gained: pd.DataFrame,
    probes: Mapping[str, pd.DataFrame],
    beside: Mapping[str, float],
    letters: pd.Series,
) -> tuple[dict[str, list[float]], dict[str, bool]]:
    """The numbers of README's findings, in order, by lens, and what its clauses assume.

    Shares in [0, 1]. ``models``: encoder and decoder; the tables are those of the chapter,
    ``beside`` its other values, by model the hundreds of languages in which it is above
    ``letters``.
    """
    encoder, decoder = models
    meaning = form_and_meaning[form_and_meaning["task"] == MATCHED]
    form = form_and_meaning[form_and_meaning["task"] == "LD"]
    top, least = best_row(meaning, "subject", "score"), best_row(form, "subject", "score", False)
    of_twin = form[form["subject"] == "untrained"]["score"].max()
    last = meaning.groupby("subject", sort=False)["score"].last()
    mu, targets = best_row(rivals, ["model", "language"], "mu"), rivals["language"].unique()
    lost, shared = gaps.loc[igap.MEAN_TARGET], beside["shared subwords"]
    across = gained[gained["cells"] == "across"].set_index("added")
    one = gained[gained["cells"] == "within the others"].set_index("added")["score"]
    others = across.drop("pairs of texts")["score"]
    abroad = best_row(probes["abroad"], "subject", "accuracy")
    numbers = {
        "ABX": [
            last[encoder],
            top["bag"],
            least[encoder],
            of_twin,
            least["English alone"],
            beside["lowest LD of another encoder"],
        ],
        "MEXA": [
            *mu[encoder][targets],
            *letters[targets],
            beside[encoder],
            len(letters) / 100,
            *mu[decoder][targets],
            beside[decoder],
        ],
        "IGAP": [*lost[["value", "low", "high"]], shared, beside["new"], beside["new, abroad"]],
        "within/across": [one.iloc[0], *across.iloc[0][["score", "low", "high"]], others.max()],
        "X-Probe": [
            *abroad.iloc[:2],
            beside["ahead of words"],
            beside["ahead, by document"],
        ],
        "more": [
            top[decoder],
            last[decoder],
            least[decoder],
            least["bag of the decoder"],
            *gaps["value"].loc[["es", "ur", "sw"]],
        ],
    }
    assumed = {
        "the last layer of the encoder is its best for meaning": last[encoder] == top[encoder],
        "training raises LD": least[encoder] > of_twin,
        "about half is kept": abs(lost["value"] / shared - 0.5) < 0.02,
        "inference crosses": across["low"].iloc[0] > 0,
        "no rival gains a point": others.max() < 0.01,
    }
    return numbers, assumed
