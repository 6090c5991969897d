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
from dataclasses import replace

import numpy as np
import pandas as pd

from xlx.experiment.grids import Grid, Sets, grid, unasked, without_reading
from xlx.measures import mixing
from xlx.plots.panels import Figure
from xlx.plots.primitives import heatmap
from xlx.plots.style import styled
from xlx.report import options
from xlx.report.page import framed, shown_figure
from xlx.results import checks, executors, paths, store
from xlx.subjects import identity, loading
from xlx.subjects.predicting import Headed, quickly
from xlx.text import labelled
from xlx.text.examples import Examples, class_counts
from xlx.text.questions import Questions, parallel_questions, questionless

_OPTIONS = ("--languages", "--device", "--dtype", "--token-budget", "--estimate", "--out")
#: Classes of a head → its task, the labels that tables have (places in `labelled.LABELS`), the
#: printed tables (all, by label) and the languages that are asked where none are named.
_TASKS = {
    labelled.NLI: ("NLI", {"entailment": [0], "not-entailment": [1, 2]}, (1, 5, 10, 11),
                   ("en", "de", "ru", "ar", "sw", "zh")),
    labelled.PI: ("PI", {"paraphrase": [1], "different": [0]}, (2, 6, 12, 13),
                  ("en", "de", "es", "fr", "ja", "zh")),
}  # fmt: skip
Merged = dict[str, list[int]]  # label of a table → the places of its classes
TWO: tuple[str, ...] = ("entailment", "not-entailment")  # of a head with two classes
_TASKS[TWO] = _TASKS[labelled.NLI]
#: A reader has no classes; its scores, the printed tables of them, and the usual languages.
READER: tuple[str, ...] = ()
_SCORES, _READ, _READ_IN = ("F1", "EM"), (3, 8), ("en", "de", "ru", "es", "zh", "ar")
#: How many are asked where no number is named: ten minutes on two cores at most, of 118 M weights.
_PAIRS, _QUESTIONS = 200, 80
#: What heads call our classes, beside their own names; letters alone.
_CALLED = {
    "contradictory": "contradiction", "nonentailment": "not-entailment",
    "equivalent": "paraphrase", "notparaphrase": "different", "notequivalent": "different",
}  # fmt: skip
BOTH, ALONE, ADDED, PRINTED = "both texts", "second text alone", "what the first adds", "printed"
_OF_READERS = {
    BOTH: "question and context",
    ALONE: "context alone",
    ADDED: "what the question adds",
}
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


def add_mixing(commands: argparse.Action) -> None:
    """The command of a command line."""
    add = options.command(commands, report_mixing, "mixing", __doc__, _OPTIONS)
    add("--pairs", type=int, metavar="N", help=f"of the test part, drawn by lot ({_PAIRS}); or "
        f"questions ({_QUESTIONS}), one of a paragraph as long as that is enough")  # fmt: skip
    add("--labels", type=options.listed, metavar="NAMES",
        help="what LABEL_0, LABEL_1 ... are: entailment,neutral,contradiction")  # fmt: skip


def classes_of(name: str, given: Sequence[str] | None = None) -> tuple[str, ...]:
    """Our class of each label of a head, in its order; ``given`` in place of its ``id2label``.

    `READER` for a head that answers questions. ValueError for a model without one of the two heads,
    for a head of one output, and for labels of no task.
    """
    config = loading.configuration(name)
    heads = " ".join(config.architectures or ["SequenceClassification"])
    if "QuestionAnswering" in heads:
        if given is not None:
            raise ValueError(f"{name} answers questions and has no labels: leave out --labels")
        return READER
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
    ours = {re.sub(r"[^a-z]", "", label): label for classes in _TASKS for label in classes}
    found = tuple((_CALLED | ours).get(label, label) for label in plain)
    if sorted(found) not in [sorted(classes) for classes in _TASKS]:
        tasks = ", or ".join(",".join(classes) for classes in _TASKS)
        raise ValueError(
            f"{name} has the labels {', '.join(given or own)}, of no task here: say what they are, "
            f"in their order, with --labels {tasks}"
        )
    return found


def asked_sets(
    classes: Sequence[str], languages: Sequence[str] | None, n: int | None
) -> tuple[Sets, Merged, tuple[int, ...]]:
    """The pairs to ask, by language, drawn as in ``mixing-1``; merged labels; printed tables.

    Of a `READER` the questions, one of a paragraph unless more are asked for than those. TextError
    as `labelled.parallel_examples` and `parallel_questions`.
    """
    if classes == READER:
        codes, n = checks.several(languages or _READ_IN, "languages", once=True), n or _QUESTIONS
        for most in (1, None):
            found, _ = parallel_questions("xquad", codes, per_context=most)
            if n <= len(found[codes[0]]):
                break
        return {code: part.take(n, 1) for code, part in found.items()}, {}, _READ
    n = n or _PAIRS
    ours = next(of for of in _TASKS if sorted(of) == sorted(classes))
    task, merged, tables, usual = _TASKS[ours]
    codes = checks.several(languages or usual, "languages", once=True)
    whole = {"source": "xnli-whole"} if task == "NLI" else {}
    sets, _ = labelled.parallel_examples(task, codes, "test", **whole)
    sets = {code: part.take(n, 1) for code, part in sets.items()}
    if ours == TWO:
        merged = {label: [place] for place, label in enumerate(TWO)}
        sets = {code: replace(part, labels=np.minimum(part.labels, 1), classes=TWO)
                for code, part in sets.items()}  # fmt: skip
    return sets, merged, tables


def setting_rows(
    both: Grid, second: Grid, gold: Examples | Questions, merged: Merged,
    others: Sequence[Grid] = (),
) -> pd.DataFrame:  # fmt: skip
    """Columns ``asked, label, language, setting, score, low, high``: `mixing.summary`, `by_label`.

    Of `BOTH` texts, of the second (of questions, the context) `ALONE`, and the difference of the
    two, which is paired. Of questions the ``label`` is a score, F1 or EM, also of ``others``.
    """
    how, tables = (both.languages, both.groups), []
    for label, score in _scores_of(gold).items():
        one, other = (x.scores[score] for x in (both, second))
        told = {BOTH: mixing.summary(one, *how), ALONE: mixing.summary(other, *how),
                ADDED: mixing.paired_difference(one, other, *how)}  # fmt: skip
        told |= {x.model: mixing.summary(x.scores[score], *how) for x in others}
        tables += [table.assign(asked=asked, label=label) for asked, table in told.items()]
        for asked, right in ((BOTH, one), (ALONE, other)) if merged else ():
            tables.append(mixing.by_label(right, gold.labels, merged, *how).assign(asked=asked))
    columns = ["asked", "label", "language", "setting", "score", "low", "high"]
    return pd.concat(tables, ignore_index=True)[columns]


def _scores_of(gold: Examples | Questions) -> dict[str, str]:
    """Label of a table's rows → the score of a grid that they have."""
    read = isinstance(gold, Questions)
    return {name: f"{name}, SQuAD" for name in _SCORES} if read else {"all": "accuracy"}


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


def means_beside(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over languages, settings side by side in per cent: this model's rows, then printed."""
    rows = rows[(rows["asked"] != ADDED) & (rows["language"] == mixing.OVERALL)]
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
    classes = classes_of(given.model, given.labels)
    sets, merged, tables = asked_sets(classes, given.languages, given.pairs)
    gold, n, label = next(iter(sets.values())), len(sets), identity.title(given.model)
    reads = classes == READER
    told = "it answers" if reads else f"its labels are {', '.join(classes)}"
    asked = f"{len(gold)} {'questions' if reads else 'pairs'} in {n} languages"
    print(f"{label}: {told}; {asked}, {len(gold) * n * (n + 1)} inputs")
    alone = {code: questionless(x) if reads else replace(x, first=x.second, second=None)
             for code, x in sets.items()}  # fmt: skip
    head = Headed(given.model, dict(enumerate(classes)) or None)
    missing = unasked(head, sets) + unasked(head, alone)
    print(f"{missing} of them are to be asked: about "
          f"{asking_minutes(head, classes, sets, missing):.1f} minutes"
          if missing else "all were asked before: nothing is computed")  # fmt: skip
    if given.estimate:
        return
    both, second = (grid([head], of)[0] for of in (sets, alone))
    others = without_reading(sets) if reads else []
    table = setting_rows(both, second, gold, merged, others)
    guess = None if reads else max(class_counts(gold).values()) / len(gold)
    lines = mixing_headline(table, label, guess)
    printed = printed_rows_of(tables, [*merged])
    printed = printed[printed["language"].isin(table["language"])].assign(asked=PRINTED)
    rows = pd.concat([table.assign(model=label), printed])
    score = next(iter(_scores_of(gold).values()))
    cells = mixing.cells(both.scores[score], both.languages, both.groups)
    cut = "read in several windows" if reads else "cut at the most that the model takes"
    about = f"{both.n_cut.sum()} of {both.n_cut.size * len(gold)} inputs were longer, and {cut}"
    parts = (rows, table, means_beside(rows).round(1))
    if reads:
        parts = (x.replace(_OF_READERS).rename(columns={"label": "measure"}) for x in parts)
    rows, table, means = parts
    folder = options.output_folder(given, label)
    for name, part in (("mixing", rows), ("cells", cells)):
        store.write_whole(folder / f"{name}.csv", part.round(4).to_csv(index=False).encode())
    page = framed(f"{label} within and across languages", *lines,
                  shown_figure(cell_figure(cells, score)), means, table,
                  f"{asked}: {gold.name} and translations; {about}",
                  _READING_QA if reads else _READING)  # fmt: skip
    store.write_whole(folder / "mixing.html", page.encode())
    shown = means.to_string(index=False, float_format="{:.1f}".format)
    print(*lines, about, "", shown, "", folder / "mixing.html", sep="\n")


@styled
def cell_figure(cells: pd.DataFrame, score: str) -> Figure:
    """A score by the language of the first text (rows), or context, and of the second (columns)."""
    return heatmap(cells, row="first", column="second", value="score", cell=(0.45, 0.3),
                   written=lambda share: f"{100 * share:.0f}", bar=score).done()  # fmt: skip


def mixing_headline(table: pd.DataFrame, label: str, guess: float | None = None) -> list[str]:
    """Sentences: within, across and the drop; one text alone; the drop by label.

    Without the share of the commonest label, ``guess``, of a reader: of exact match, and what the
    others in the table have.
    """
    means = table[table["language"] == mixing.OVERALL].set_index(["asked", "label", "setting"])
    whole, *labels = means.loc[BOTH].index.unique("label")

    def told(asked: str, setting: str, of: str = whole) -> str:
        score, low, high = 100 * means.loc[(asked, of, setting), ["score", "low", "high"]]
        return f"{score:.1f} ({low:.1f} to {high:.1f})"

    names = ("an F1", "without a question it has", "the question", "exact match")
    if guess is not None:
        names = ("an accuracy", "the second text alone has", "the first", "each label")
    lines = [
        f"{label} has {names[0]} of {told(BOTH, 'within')} % within languages and of "
        f"{told(BOTH, 'across')} % across: a drop of {told(BOTH, 'drop')} points",
        f"{names[1]} {told(ALONE, 'within')} % within; {names[2]} adds {told(ADDED, 'within')} "
        f"points within and {told(ADDED, 'across')} across",
        f"the drop of {names[3]}, in points: "
        + ", ".join(f"{x} {told(BOTH, 'drop', x)}" for x in labels),
    ]
    if guess is not None:
        return [*lines, f"the commonest label has {100 * guess:.1f} %"]
    others = [x for x in means.index.unique("asked") if x not in (BOTH, ALONE, ADDED)]
    others = ", ".join(f"{x} {told(x, 'within')} %" for x in others)
    return [*lines, f"without a model F1 within languages is: {others}"]
