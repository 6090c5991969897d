"""xlx mixing: a fine-tuned classifier or reader within and across languages (Rajaee and Monz).

MODEL is a folder, or a hub name, with the head that it was fine-tuned with: of inference (three
classes, or entailment and the rest), of paraphrase, or of questions about a paragraph. It is asked
the shipped test pairs of XNLI or PAWS-X, or the questions of XQuAD, in all pairs of languages:
Tables 1 and 5 of the paper (2 and 6; 10 to 13; of readers 3 and 8), with the printed rows beside
them. Classifiers are also asked the second sentence alone, readers the paragraph without a
question. What labels mean is read from config.json. Stop it at any time: it goes on by language.
"""

import argparse
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from xlx.experiment.grids import Grid, Sets, grid, unasked, without_reading
from xlx.measures import mixing
from xlx.plots.panels import Figure
from xlx.plots.primitives import Cells, heatmap
from xlx.plots.style import styled
from xlx.report import options
from xlx.report.page import framed, shown_figure
from xlx.results import checks, executors, paths, store
from xlx.subjects import identity, loading
from xlx.subjects.predicting import Headed, quickly
from xlx.text import labelled
from xlx.text.examples import class_counts
from xlx.text.questions import parallel_questions, questionless

_OPTIONS = ("--languages", *options.AS_ASKED[2:], "--estimate", "--out")
_READING = (
    "Across: one of the two texts in another language, the mean over those. Intervals are of 95 % "
    "over examples, those with one premise drawn together. The second text alone is asked of the "
    "same model, which did not learn to read it so. The printed rows are of other fine-tunings, "
    "of all test pairs, and in the mean of all languages of the paper."
)
_READING_QA = (
    "Across: the question in another language than the context, the mean over those. F1 and EM "
    "(exact match) are by SQuAD's script. Intervals are of 95 % over paragraphs. The context alone "
    "is asked of the same model, with an empty question. Three rows read with no model: the first "
    "eight words, three at random, and three that words of the question surround most closely. The "
    "printed rows are of other fine-tunings, of all questions, in the mean of all languages there."
)
PRINTED = "printed"


@dataclass(frozen=True)
class HeadTask:
    """A task that heads are fine-tuned for: what they are asked, and the words for it."""

    task: str
    classes: tuple[str, ...]  # of a reader none
    merged: dict[str, list[int]]  # label of a table → the places of its classes
    printed: tuple[int, ...]  # numbers of the printed tables (all, by label)
    usual: tuple[str, ...]  # languages that are asked where none are named
    n: int = 200  # asked at most where no number is named: ten minutes on two cores, of 118 M
    #: Rows of a table → the score of a grid that they have; what the column of them is called.
    scores: dict[str, str] = field(default_factory=lambda: {"all": "accuracy"})
    column: str = "label"
    #: Both texts, the second alone, and the difference of the two.
    asked: tuple[str, str, str] = ("both texts", "second text alone", "what the first adds")
    said: tuple[str, ...] = ("an accuracy", "the second text alone has", "the first", "each label")
    items: str = "pairs"
    cut: str = "cut at the most that the model takes"
    reading: str = _READING


_INFERRED = (1, 5, 10, 11), ("en", "de", "ru", "ar", "sw", "zh")
TWO = ("entailment", "not-entailment")
READER = HeadTask(
    "QA",
    (),
    {},
    (3, 8),
    ("en", "de", "ru", "es", "zh", "ar"),
    80,
    {"F1": "F1, SQuAD", "EM": "EM, SQuAD"},
    "measure",
    ("question and context", "context alone", "what the question adds"),
    ("an F1", "without a question it has", "the question", "exact match"),
    "questions",
    "read in several windows",
    _READING_QA,
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
#: What heads call our classes, beside their own names; letters alone.
_CALLED = {
    "contradictory": "contradiction",
    "nonentailment": "not-entailment",
    "equivalent": "paraphrase",
    "notparaphrase": "different",
    "notequivalent": "different",
}


def add_mixing(commands: argparse.Action) -> None:
    """The command of a command line."""
    add = options.command(commands, report_mixing, "mixing", __doc__, _OPTIONS)
    add(
        "--pairs",
        type=int,
        metavar="N",
        help="of the test part, drawn by lot (200); or questions "
        "(80), one of a paragraph as long as that is enough",
    )
    add(
        "--labels",
        type=options.listed,
        metavar="NAMES",
        help="what LABEL_0, LABEL_1 ... are: entailment,neutral,contradiction",
    )


def task_of(name: str, given: Sequence[str] | None = None) -> tuple[HeadTask, tuple[str, ...]]:
    """The task of a head, and our class of each of its labels, in its order, of a reader none.

    ``given`` in place of its ``id2label``. ValueError for a model without one of the two heads, for
    a head of one output, and for labels of no task.
    """
    config = loading.configuration(name)
    heads = " ".join(config.architectures or ["SequenceClassification"])
    if "QuestionAnswering" in heads:
        if given is not None:
            raise ValueError(f"{name} answers questions and has no labels: leave out --labels")
        return READER, ()
    if "SequenceClassification" not in heads:
        raise ValueError(
            f"{name} has no head for a task here ({heads}): give a model fine-tuned for inference, "
            "paraphrase or questions, or let xlx igap fine-tune this one"
        )
    own = [str(config.id2label[number]) for number in range(config.num_labels)]
    if len(own) < 2:
        raise ValueError(
            f"{name} has a head of one output, a score and no classes: give a model with a class "
            "for each label"
        )
    if given is not None and len(given) != len(own):
        raise ValueError(f"--labels names {len(given)}, and the head has {len(own)}: name each")
    plain = [re.sub(r"[^a-z]", "", label.lower()) for label in given or own]
    ours = {re.sub(r"[^a-z]", "", label): label for task in _TASKS for label in task.classes}
    found = tuple((_CALLED | ours).get(label, label) for label in plain)
    for task in _TASKS:
        if sorted(found) == sorted(task.classes):
            return task, found
    tasks = ", or ".join(",".join(task.classes) for task in _TASKS)
    raise ValueError(
        f"{name} has the labels {', '.join(given or own)}, of no task here: say what they are, "
        f"in their order, with --labels {tasks}"
    )


def asked_sets(
    task: HeadTask, languages: Sequence[str] | None = None, n: int | None = None
) -> Sets:
    """The pairs to ask, by language, drawn as in ``mixing-1``.

    Of a `READER` the questions, one of a paragraph unless more are asked for than those. TextError
    as `labelled.parallel_examples` and `parallel_questions`.
    """
    codes, n = checks.several(languages or task.usual, "languages", once=True), n or task.n
    if task is READER:
        found, _ = parallel_questions("xquad", codes, per_context=1)
        if n > len(found[codes[0]]):
            found, _ = parallel_questions("xquad", codes)
    else:
        whole = {"source": "xnli-whole"} if task.task == "NLI" else {}
        found, _ = labelled.parallel_examples(task.task, codes, "test", **whole)
    sets = {code: part.take(n, 1) for code, part in found.items()}
    if task.classes != TWO:
        return sets
    return {
        code: replace(part, labels=np.minimum(part.labels, 1), classes=TWO)
        for code, part in sets.items()
    }


def setting_rows(
    task: HeadTask, both: Grid, second: Grid, labels: Sequence[int], others: Sequence[Grid] = ()
) -> pd.DataFrame:
    """Columns ``asked, label, language, setting, score, low, high``: `mixing.summary`, `by_label`.

    Of both texts, of the second (of questions, the context) alone, and the difference of the two,
    which is paired. The gold ``labels`` are of classifiers; of readers the ``label`` is a score, F1
    or EM, also of ``others``.
    """
    how, tables = (both.languages, both.groups), []
    for label, score in task.scores.items():
        one, other = (x.scores[score] for x in (both, second))
        told = [
            mixing.summary(one, *how),
            mixing.summary(other, *how),
            mixing.paired_difference(one, other, *how),
        ]
        told = dict(zip(task.asked, told, strict=True))
        told |= {x.model: mixing.summary(x.scores[score], *how) for x in others}
        tables += [table.assign(asked=asked, label=label) for asked, table in told.items()]
        for asked, right in zip(task.asked, (one, other) if task.merged else (), strict=False):
            tables.append(mixing.by_label(right, labels, task.merged, *how).assign(asked=asked))
    columns = ["asked", "label", "language", "setting", "score", "low", "high"]
    return pd.concat(tables, ignore_index=True)[columns]


def printed_rows_of(numbers: Sequence[int], labels: Sequence[str]) -> pd.DataFrame:
    """Columns ``model, label, language, setting, score`` of printed tables, as shares."""
    files = sorted((paths.PUBLISHED / "within_across").glob("table*.csv"))
    tables = pd.concat([pd.read_csv(x) for x in files if int(x.name[5:].split("_")[0]) in numbers])
    called = {re.sub("[^a-z]", "", x): x for x in labels} | {"nonparaphrase": "different"}
    own = tables["label_class"].str.lower().replace(called)
    tables["label"] = own.where(tables["metric"] == "accuracy", tables["metric"])
    tables["language"] = tables["language"].replace("avg", mixing.OVERALL)
    tables["score"] = tables["value"] / 100
    return tables[["model", "label", "language", "setting", "score"]].reset_index(drop=True)


def means_beside(rows: pd.DataFrame, task: HeadTask) -> pd.DataFrame:
    """Means over languages, settings side by side in per cent: this model's rows, then printed."""
    rows = rows[(rows["asked"] != task.asked[2]) & (rows["language"] == mixing.OVERALL)]
    index = ["model", "asked", "label"]
    wide = (100 * rows.set_index([*index, "setting"])["score"]).unstack("setting", sort=False)
    return wide.assign(drop=wide["within"] - wide["across"])[list(mixing.SETTINGS)].reset_index()


def asking_minutes(head: Headed, classes: Sequence[str], sets: Sets, n_inputs: int) -> float:
    """About how long so many inputs take, by a few of each language, where nothing else runs."""
    tuned, laid = head.load(classes or None), []
    for part in sets.values():
        laid.append(tuned.laid_out(part.take(4, 0)))
    with quickly(tuned.recipe):
        tuned.predict(laid[:1])  # the first call has to set things up
        began = time.perf_counter()
        tuned.predict(laid)
        each = (time.perf_counter() - began) / sum(x.n for x in laid)
    return n_inputs * each / 60 / min(executors.n_workers(), len(sets))


def report_mixing(given: argparse.Namespace) -> None:
    """Say what is asked, ask it, write ``mixing.csv``, ``cells.csv`` and ``mixing.html``."""
    options.tell_downloads([given.model])
    if given.pairs is not None:
        checks.whole(given.pairs, "--pairs", least=2)
    task, classes = task_of(given.model, given.labels)
    sets = asked_sets(task, given.languages, given.pairs)
    gold, n, label = next(iter(sets.values())), len(sets), identity.title(given.model)
    told = f"its labels are {', '.join(classes)}" if classes else "it answers"
    asked = f"{len(gold)} {task.items} in {n} languages"
    print(f"{label}: {told}; {asked}, {len(gold) * n * (n + 1)} inputs")
    alone = {
        code: replace(x, first=x.second, second=None) if classes else questionless(x)
        for code, x in sets.items()
    }
    head = Headed(given.model, dict(enumerate(classes)) or None, quantization=given.quantization)
    missing = unasked(head, sets) + unasked(head, alone)
    print(
        f"{missing} of them are to be asked: about "
        f"{asking_minutes(head, classes, sets, missing):.1f} minutes"
        if missing
        else "all were asked before: nothing is computed"
    )
    if given.estimate:
        return
    both, second = (grid([head], of)[0] for of in (sets, alone))
    labels, others = (gold.labels, []) if classes else ((), without_reading(sets))
    table = setting_rows(task, both, second, labels, others)
    guess = max(class_counts(gold).values()) / len(gold) if classes else None
    lines = mixing_headline(table, label, task, guess)
    printed = printed_rows_of(task.printed, [*task.merged])
    printed = printed[printed["language"].isin(table["language"])].assign(asked=PRINTED)
    rows = pd.concat([table.assign(model=label), printed])
    score = next(iter(task.scores.values()))
    cells = mixing.cells(both.scores[score], both.languages, both.groups)
    about = (
        f"{both.n_cut.sum()} of {both.n_cut.size * len(gold)} inputs were longer, and {task.cut}"
    )
    parts = (rows, table, means_beside(rows, task).round(1))
    rows, table, means = (x.rename(columns={"label": task.column}) for x in parts)
    folder = options.output_folder(given, label)
    for name, part in (("mixing", rows), ("cells", cells)):
        store.write_whole(folder / f"{name}.csv", part.round(4).to_csv(index=False).encode())
    page = framed(
        f"{label} within and across languages",
        *lines,
        shown_figure(cell_figure(cells, score)),
        means,
        table,
        f"{asked}: {gold.name} and translations; {about}",
        task.reading,
    )
    store.write_whole(folder / "mixing.html", page.encode())
    shown = means.to_string(index=False, float_format="{:.1f}".format)
    print(*lines, about, "", shown, "", folder / "mixing.html", sep="\n")


@styled
def cell_figure(cells: pd.DataFrame, score: str) -> Figure:
    """A score by the language of the first text (rows), or context, and of the second (columns)."""
    table = cells.assign(written=(100 * cells["score"]).map("{:.0f}".format))
    return heatmap(
        table, "second", "first", "score", style=Cells(cell=(0.45, 0.3), bar=score)
    ).done()


def mixing_headline(
    table: pd.DataFrame, label: str, task: HeadTask, guess: float | None = None
) -> list[str]:
    """Sentences: within, across and the drop; one text alone; the drop by label.

    Then the share of the commonest label, ``guess``; of a reader, without one, what the others in
    the table have.
    """
    means = table[table["language"] == mixing.OVERALL].set_index(["asked", "label", "setting"])
    both, alone, added = task.asked
    whole, *labels = means.loc[both].index.unique("label")

    def told(asked: str, setting: str, of: str = whole) -> str:
        score, low, high = 100 * means.loc[(asked, of, setting), ["score", "low", "high"]]
        return f"{score:.1f} ({low:.1f} to {high:.1f})"

    what, only, first, each = task.said
    lines = [
        f"{label} has {what} of {told(both, 'within')} % within languages and of "
        f"{told(both, 'across')} % across: a drop of {told(both, 'drop')} points",
        f"{only} {told(alone, 'within')} % within; {first} adds {told(added, 'within')} "
        f"points within and {told(added, 'across')} across",
        f"the drop of {each}, in points: "
        + ", ".join(f"{x} {told(both, 'drop', x)}" for x in labels),
    ]
    if guess is not None:
        return [*lines, f"the commonest label has {100 * guess:.1f} %"]
    others = [x for x in means.index.unique("asked") if x not in task.asked]
    others = ", ".join(f"{x} {told(x, 'within')} %" for x in others)
    return [*lines, f"without a model F1 within languages is: {others}"]
