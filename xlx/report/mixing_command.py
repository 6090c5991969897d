"""``xlx mixing``: a fine-tuned model within and across languages (Rajaee and Monz)."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pandas as pd
from pandas import DataFrame
from typer import Option

from xlx.experiment.grids import Grid, Sets, grid, unasked, without_reading
from xlx.measures import mixing
from xlx.plots.panels import Figure
from xlx.plots.primitives import heatmap
from xlx.plots.style import styled
from xlx.report import options
from xlx.report.page import framed, in_text, shown_figure, write_page
from xlx.results import checks, executors, paths
from xlx.subjects import identity, loading
from xlx.subjects.predicting import Headed
from xlx.text import labelled
from xlx.text.examples import class_counts
from xlx.text.questions import parallel_questions, questionless

_READING = """
Across: the two texts (of questions: question and context) in different languages, the mean over
those. F1 and EM (exact match) are by SQuAD's script. Intervals are of 95 % over examples, those
with one premise or paragraph drawn together. One text alone is asked of the same model, which did
not learn to read it so; readers are given an empty question. Three rows read with no model: the
first eight words of a context, three at random, and three that words of the question surround most
closely. The printed rows are of other fine-tunings, of all that the paper asks, in the mean of all
its languages.
"""
PRINTED = "printed"


@dataclass(frozen=True)
class HeadTask:
    """A task that heads are fine-tuned for: what they are asked, and the words for it."""

    task: str
    classes: tuple[str, ...]  # of a reader none
    merged: Mapping[str, Sequence[int]]  # label of a table → the places of its classes
    printed: tuple[int, ...]  # numbers of the printed tables (all, by label)
    usual: tuple[str, ...]  # languages that are asked where none are named
    n: int = 200  # asked at most where no number is named: ten minutes on two cores, of 118 M
    #: Rows of a table → the score of a grid that they have.
    scores: Mapping[str, str] = field(default_factory=lambda: {"all": "accuracy"})
    #: Both texts, one of them alone, and the difference of the two.
    asked: tuple[str, str, str] = ("both texts", "second text alone", "what the first adds")


#: Entailment and the rest.
TWO = ("entailment", "not-entailment")
_INFERRED = (1, 5, 10, 11), ("en", "de", "ru", "ar", "sw", "zh")
READER = HeadTask(
    "QA",
    (),
    {},
    (3, 8),
    ("en", "de", "ru", "es", "zh", "ar"),
    80,
    {"F1": "F1, SQuAD", "EM": "EM, SQuAD"},
    ("question and context", "context alone", "what the question adds"),
)
_TASKS = (
    HeadTask("NLI", labelled.NLI, {"entailment": [0], "not-entailment": [1, 2]}, *_INFERRED),
    HeadTask("NLI", TWO, {"entailment": [0], "not-entailment": [1]}, *_INFERRED),
    HeadTask(
        "PI",
        labelled.PI,
        {"paraphrase": [1], "different": [0]},
        (2, 6, 12, 13),
        ("en", "de", "es", "fr", "ja", "zh"),
    ),
)
#: What heads, and printed tables, call our classes; letters alone.
_CALLED = {x: x for task in _TASKS for x in task.classes} | {
    "contradictory": "contradiction",
    "notentailment": "not-entailment",
    "nonentailment": "not-entailment",
    "equivalent": "paraphrase",
    "notparaphrase": "different",
    "nonparaphrase": "different",
    "notequivalent": "different",
}


@dataclass(kw_only=True)
class Mixing(options.Asking):
    """A fine-tuned classifier or reader within and across languages (Rajaee and Monz).

    MODEL has the head that it was fine-tuned with: of inference (three classes, or entailment and
    the rest), of paraphrase, or of questions about a paragraph. It is asked the shipped test pairs
    of XNLI or PAWS-X, or the questions of XQuAD, in all pairs of languages: Tables 1 and 5 of the
    paper (2 and 6; 10 to 13; of readers 3 and 8), with the printed rows beside them. Classifiers
    are also asked the second sentence alone, readers the paragraph without a question. What labels
    mean is read from config.json. Stop it at any time: it goes on by language.
    """

    pairs: int | None = Option(None, help="how many, by lot: 200 by default, of questions 80")
    labels: str | None = Option(None, help="of LABEL_0 ...: entailment,neutral,contradiction")

    def run(self) -> None:
        """Say what is asked, ask it, write ``mixing.csv``, ``cells.csv`` and ``mixing.html``."""
        checks.whole(self.pairs, "--pairs", least=2)
        task, classes = task_of(self.model, options.listed(self.labels))
        sets, label = asked_sets(task, self.codes, self.pairs), identity.title(self.model)
        alone = {
            code: replace(x, first=x.second, second=None) if classes else questionless(x)
            for code, x in sets.items()
        }
        gold, n = next(iter(sets.values())), len(sets)
        asked = f"{len(gold)} {'pairs' if classes else 'questions'} in {n} languages"
        meaning = f"its labels are {', '.join(classes)}" if classes else "it answers questions"
        print(f"{label}: {meaning}; {asked}, {len(gold) * n * (n + 1)} inputs")
        named = dict(enumerate(classes)) or None
        head = Headed(self.model, named)
        missing = unasked(head, sets) + unasked(head, alone)
        minutes = partial(self.minutes, missing / min(executors.n_workers(), n), sets)
        options.foresee(missing, "inputs", minutes)
        if self.estimate:
            return
        both, second = (grid([head], x)[0] for x in (sets, alone))
        others = [] if classes else without_reading(sets)
        rows = setting_rows(task, both, second, gold.labels if classes else (), others)
        lines = mixing_headline(rows, label, task)
        if classes:
            guess = max(class_counts(gold).values()) / len(gold)
            lines.append(f"the commonest label has {100 * guess:.1f} %")
            lines += one_answer(both.predictions, gold.classes)
        printed = printed_rows_of(task.printed, rows["label"].unique())
        printed = printed[printed["language"].isin(rows["language"])]
        every = pd.concat([rows.assign(model=label), printed.assign(asked=PRINTED)])
        means, score = means_beside(every, task), next(iter(task.scores.values()))
        cells = mixing.cells(both.scores[score], both.languages, both.groups)
        about = (
            f"{both.n_cut.sum()} of {both.n_cut.size * len(gold)} inputs were longer than the "
            f"model takes, and {'cut' if classes else 'read in several windows'}"
        )
        figure = shown_figure(cell_figure(cells, score))
        source = f"{asked}: {gold.name} and translations; {about}"
        title = f"{label} within and across languages"
        page = framed(title, *lines, figure, means, rows, source, _READING)
        tables = {"mixing": every.round(4), "cells": cells.round(4)}
        path = write_page(self.folder(label) / "mixing.html", page, tables)
        print(*lines, about, "", in_text(means), "", path, sep="\n")


def task_of(name: str, labels: Sequence[str] | None = None) -> tuple[HeadTask, tuple[str, ...]]:
    """The task of a head, and our class of each of its labels, in its order, of a reader none.

    ``labels`` in place of its ``id2label``. ValueError for a model without one of the two heads,
    for a head of one output, and for labels of no task.
    """
    config = loading.configuration(name)
    heads = " ".join(config.architectures or ["SequenceClassification"])
    if "QuestionAnswering" in heads:
        if labels is not None:
            raise ValueError(f"{name} answers questions and has no labels: leave out --labels")
        return READER, ()
    if "SequenceClassification" not in heads or config.num_labels < 2:
        raise ValueError(
            f"{name} has no head for a task here ({heads}, outputs: {config.num_labels}): give a "
            "model fine-tuned for inference, paraphrase or questions, or let xlx igap fine-tune "
            "this one"
        )
    labels = labels or [str(config.id2label[number]) for number in range(config.num_labels)]
    if len(labels) != config.num_labels:
        raise ValueError(
            f"--labels names {len(labels)}, and the head has {config.num_labels}: name each"
        )
    classes = tuple(_CALLED.get(re.sub("[^a-z]", "", x.lower()), x) for x in labels)
    for task in _TASKS:
        if sorted(classes) == sorted(task.classes):
            return task, classes
    raise ValueError(
        f"{name} has the labels {', '.join(labels)}, of no task here: say what they are, in their "
        f"order, with --labels {', or '.join(','.join(task.classes) for task in _TASKS)}"
    )


def asked_sets(
    task: HeadTask, languages: Sequence[str] | None = None, n: int | None = None
) -> Sets:
    """The pairs to ask, by language, drawn as in ``mixing-1``.

    Of a `READER` the questions, one of a paragraph unless more are asked for than those. TextError
    as `labelled.parallel_examples` and `parallel_questions`.
    """
    codes, n = checks.several(languages or task.usual, "languages"), n or task.n
    if task is READER:
        sets, _ = parallel_questions("xquad", codes, per_context=1)
        if n > len(sets[codes[0]]):
            sets, _ = parallel_questions("xquad", codes)
    else:
        whole = {"source": "xnli-whole"} if task.task == "NLI" else {}
        sets, _ = labelled.parallel_examples(task.task, codes, "test", **whole)
    sets = {code: part.take(n, 1) for code, part in sets.items()}
    if task.classes != TWO:
        return sets
    return {
        code: replace(part, labels=np.minimum(part.labels, 1), classes=TWO)
        for code, part in sets.items()
    }


def setting_rows(
    task: HeadTask, both: Grid, alone: Grid, labels: Sequence[int], others: Sequence[Grid] = ()
) -> DataFrame:
    """Columns ``asked, label, language, setting, score, low, high``: `mixing.summary`, `by_label`.

    Of both texts, of one (of questions, the context) alone, and the difference of the two, which is
    paired. The gold ``labels`` are of classifiers; of readers the ``label`` is a score, F1 or EM,
    also of ``others``.
    """
    named = dict(zip(task.asked, (both, alone), strict=False)) | {x.model: x for x in others}
    shared, tables = (both.languages, both.groups), []
    for label, score in task.scores.items():
        parts = {asked: mixing.summary(x.scores[score], *shared) for asked, x in named.items()}
        pair = both.scores[score], alone.scores[score]
        parts[task.asked[2]] = mixing.paired_difference(*pair, *shared)
        tables += [table.assign(asked=asked, label=label) for asked, table in parts.items()]
    for asked, x in zip(task.asked, (both, alone) if task.merged else (), strict=False):
        table = mixing.by_label(x.scores["accuracy"], labels, task.merged, *shared)
        tables.append(table.assign(asked=asked))
    columns = ["asked", "label", "language", "setting", "score", "low", "high"]
    return pd.concat(tables, ignore_index=True)[columns]


def printed_rows_of(numbers: Sequence[int], labels: Sequence[str]) -> DataFrame:
    """Columns ``model, label, language, setting, score`` of printed tables, as shares."""
    folder = paths.PUBLISHED / "within_across"
    files = [file for n in numbers for file in folder.glob(f"table{n}_*.csv")]
    table = pd.concat(map(pd.read_csv, files), ignore_index=True)
    called = table["label_class"].str.lower().str.replace("[^a-z]", "", regex=True)
    table["label"] = called.replace(_CALLED).where(table["metric"] == "accuracy", table["metric"])
    table["language"] = table["language"].replace("avg", mixing.OVERALL)
    table["score"] = table["value"] / 100
    table = table[table["label"].isin(labels)]
    return table[["model", "label", "language", "setting", "score"]]


def means_beside(rows: DataFrame, task: HeadTask) -> DataFrame:
    """Means over languages, settings side by side: this model's rows, then printed ones."""
    rows = rows[(rows["asked"] != task.asked[2]) & (rows["language"] == mixing.OVERALL)]
    index = ["model", "asked", "label"]
    wide = rows.set_index([*index, "setting"])["score"].unstack("setting", sort=False)
    wide = wide.assign(drop=wide["within"] - wide["across"])[list(mixing.SETTINGS)].reset_index()
    labels, printed = [*wide["label"].unique()], wide["asked"] == PRINTED
    places = {"label": labels.index, "model": str}
    by = wide[printed].sort_values(["model", "label"], key=lambda x: x.map(places[x.name]))
    return pd.concat([wide[~printed], by], ignore_index=True)


def one_answer(predictions: np.ndarray, classes: Sequence[str]) -> list[str]:
    """A sentence where a head gives one class ``(L, L, n)`` to all inputs; else none."""
    answers = np.unique(predictions)
    if len(answers) > 1:
        return []
    return [
        f"it answers {classes[answers[0]]} to every input: its scores are shares of labels, and no "
        "drop can be seen"
    ]


@styled
def cell_figure(cells: DataFrame, score: str) -> Figure:
    """A score by the language of the first text (rows), or context, and of the second (columns)."""
    table = cells.assign(written=(100 * cells["score"]).map("{:.0f}".format))
    return heatmap(table, "second", "first", "score", cell=(0.45, 0.3), bar=score).done()


def mixing_headline(rows: DataFrame, label: str, task: HeadTask) -> list[str]:
    """Sentences: within, across and the drop; one text alone; the drop by label; other readers."""
    means = rows[rows["language"] == mixing.OVERALL].set_index(["asked", "label", "setting"])
    means = 100 * means[["score", "low", "high"]]
    both, alone, added = task.asked
    whole, *labels = means.loc[both].index.unique("label")

    def number(asked: str, setting: str, label: str = whole) -> str:
        score, low, high = means.loc[(asked, label, setting)]
        return f"{score:.1f} ({low:.1f} to {high:.1f})"

    drops = (f"{x} {number(both, 'drop', x)}" for x in labels)
    others = [x for x in means.index.unique("asked") if x not in task.asked]
    return [
        f"the {task.scores[whole]} of {label} is {number(both, 'within')} % within languages and "
        f"{number(both, 'across')} % across: a drop of {number(both, 'drop')} points",
        f"the {alone} has {number(alone, 'within')} % within languages; {added} is "
        f"{number(added, 'within')} points within and {number(added, 'across')} across",
        f"the drop by {'label' if task.classes else 'measure'}, in points: {', '.join(drops)}",
        *(f"without a model, {x} has {number(x, 'within')} % within languages" for x in others),
    ]
