"""xlx mixing: accuracy of a fine-tuned classifier within and across languages (Rajaee and Monz).

MODEL is a folder, or a hub name, with the head that it was fine-tuned with: of inference (three
classes, or entailment and the rest) or of paraphrase. It is asked the shipped test pairs of XNLI,
or of PAWS-X, in all pairs of languages: Tables 1 and 5 of the paper (2 and 6; 10 to 13), with the
printed rows and the second sentence alone beside them. What its labels mean is read from its
config.json. Stop it at any time: it goes on by cell.
"""

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from xlx.experiment.grids import Grid, grid
from xlx.measures import mixing
from xlx.plots.panels import Figure
from xlx.plots.primitives import heatmap
from xlx.plots.style import styled
from xlx.report import options
from xlx.report.page import framed, shown_figure
from xlx.results import checks, paths, store
from xlx.subjects import identity, loading
from xlx.subjects.predicting import Headed
from xlx.text import labelled
from xlx.text.examples import Examples, class_counts

_OPTIONS = ("--languages", "--device", "--dtype", "--token-budget", "--out")
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
#: What heads call our classes, beside their own names; letters alone.
_CALLED = {
    "contradictory": "contradiction", "nonentailment": "not-entailment",
    "equivalent": "paraphrase", "notparaphrase": "different", "notequivalent": "different",
}  # fmt: skip
BOTH, ALONE, ADDED, PRINTED = "both texts", "second text alone", "what the first adds", "printed"
_READING = (
    "Across: one of the two texts in another language, the mean over those. Intervals are of 95 % "
    "over examples, those with one premise drawn together. The second text alone is asked of the "
    "same model, which did not learn to read it so. The printed rows are of other fine-tunings, "
    "of all test pairs, and in the mean of all languages of the paper."
)


def add_mixing(commands: argparse.Action) -> None:
    """The command of a command line."""
    add = options.command(commands, report_mixing, "mixing", __doc__, _OPTIONS)
    add("--pairs", type=int, default=200, help="pairs of the test part, drawn by lot (200)")
    add("--labels", type=options.listed, metavar="NAMES",
        help="what LABEL_0, LABEL_1 ... are: entailment,neutral,contradiction")  # fmt: skip


def classes_of(name: str, given: Sequence[str] | None = None) -> tuple[str, ...]:
    """Our class of each label of a head, in its order; ``given`` in place of its ``id2label``.

    ValueError for a model without a head that classifies, and for labels of no task.
    """
    config = loading.configuration(name)
    heads = " ".join(config.architectures or ["SequenceClassification"])
    if "QuestionAnswering" in heads:
        raise ValueError(
            f"{name} answers questions, not supported by this command yet: use "
            "xlx.experiment.grids.grid([Headed(name)], sets of xlx.text.questions)"
        )
    if "SequenceClassification" not in heads:
        raise ValueError(f"{name} has no head that classifies ({heads}): give a fine-tuned model")
    own = [str(config.id2label[number]) for number in range(config.num_labels)]
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
    classes: Sequence[str], languages: Sequence[str] | None, n: int
) -> tuple[dict[str, Examples], Merged, tuple[int, ...]]:
    """The pairs to ask, by language, drawn as in ``mixing-1``; merged labels; printed tables.

    TextError as `labelled.parallel_examples`.
    """
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


def setting_rows(both: Grid, second: Grid, gold: Examples, merged: Merged) -> pd.DataFrame:
    """Columns ``asked, label, language, setting, score, low, high``: `mixing.summary`, `by_label`.

    Of `BOTH` texts, of the second `ALONE`, and the difference of the two, which is paired.
    """
    how = (both.languages, both.groups)
    one, other = (x.scores["accuracy"] for x in (both, second))
    tables = [(BOTH, mixing.summary(one, *how)), (ALONE, mixing.summary(other, *how)),
              (ADDED, mixing.paired_difference(one, other, *how))]  # fmt: skip
    tables = [table.assign(asked=asked, label="all") for asked, table in tables]
    for asked, right in ((BOTH, one), (ALONE, other)):
        tables.append(mixing.by_label(right, gold.labels, merged, *how).assign(asked=asked))
    columns = ["asked", "label", "language", "setting", "score", "low", "high"]
    return pd.concat(tables, ignore_index=True)[columns]


def printed_rows_of(numbers: Sequence[int], labels: Sequence[str]) -> pd.DataFrame:
    """Columns ``model, label, language, setting, score`` of printed tables, as shares."""
    files = sorted((paths.PUBLISHED / "within_across").glob("table*.csv"))
    tables = pd.concat([pd.read_csv(x) for x in files if int(x.name[5:].split("_")[0]) in numbers])
    called = {re.sub("[^a-z]", "", x): x for x in labels} | {"nonparaphrase": "different"}
    tables["label"] = tables["label_class"].str.lower().replace(called)
    tables["language"] = tables["language"].replace("avg", mixing.OVERALL)
    tables["score"] = tables["value"] / 100
    return tables[["model", "label", "language", "setting", "score"]].reset_index(drop=True)


def means_beside(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over languages, settings side by side in per cent: this model's rows, then printed."""
    rows = rows[(rows["asked"] != ADDED) & (rows["language"] == mixing.OVERALL)]
    index = ["model", "asked", "label"]
    wide = (100 * rows.set_index([*index, "setting"])["score"]).unstack("setting", sort=False)
    return wide.assign(drop=wide["within"] - wide["across"])[list(mixing.SETTINGS)].reset_index()


def report_mixing(given: argparse.Namespace) -> None:
    """Say what is asked, ask it, write ``mixing.csv``, ``cells.csv`` and ``mixing.html``."""
    options.tell_downloads([given.model])
    checks.whole(given.pairs, "--pairs", least=2)
    classes = classes_of(given.model, given.labels)
    sets, merged, tables = asked_sets(classes, given.languages, given.pairs)
    gold, n, label = next(iter(sets.values())), len(sets), identity.title(given.model)
    print(f"{label}: its labels are {', '.join(classes)}; {len(gold)} pairs in {n} languages, "
          f"{len(gold) * n * (n + 1)} inputs; what was asked before is stored")  # fmt: skip
    alone = {code: replace(x, first=x.second, second=None) for code, x in sets.items()}
    head = Headed(given.model, dict(enumerate(classes)))
    both, second = (grid([head], asked)[0] for asked in (sets, alone))
    table, printed = setting_rows(both, second, gold, merged), printed_rows_of(tables, [*merged])
    printed = printed[printed["language"].isin(table["language"])].assign(asked=PRINTED)
    rows = pd.concat([table.assign(model=label), printed])
    cells = mixing.cells(both.scores["accuracy"], both.languages, both.groups)
    guess = max(class_counts(gold).values()) / len(gold)
    lines = mixing_headline(table, label, guess)
    folder = options.output_folder(given, label)
    for name, part in (("mixing", rows), ("cells", cells)):
        store.write_whole(folder / f"{name}.csv", part.round(4).to_csv(index=False).encode())
    about = (
        f"{gold.name} and translations; {both.n_cut.sum()} inputs too long for the model were cut"
    )
    page = framed(f"{label} within and across languages", *lines, shown_figure(cell_figure(cells)),
                  means_beside(rows).round(1), table, about, _READING)  # fmt: skip
    store.write_whole(folder / "mixing.html", page.encode())
    shown = means_beside(rows).to_string(index=False, float_format="{:.1f}".format)
    print(*lines, "", shown, "", folder / "mixing.html", sep="\n")


@styled
def cell_figure(cells: pd.DataFrame) -> Figure:
    """Accuracy by the language of the first text (rows) and of the second (columns)."""
    return heatmap(cells, row="first", column="second", value="score", cell=(0.45, 0.3),
                   written=lambda share: f"{100 * share:.0f}", bar="accuracy").done()  # fmt: skip


def mixing_headline(table: pd.DataFrame, label: str, guess: float) -> list[str]:
    """Sentences: within, across and the drop; the second text alone; by label."""
    means = table[table["language"] == mixing.OVERALL].set_index(["asked", "label", "setting"])

    def told(asked: str, of: str, setting: str) -> str:
        score, low, high = 100 * means.loc[(asked, of, setting), ["score", "low", "high"]]
        return f"{score:.1f} ({low:.1f} to {high:.1f})"

    lines = [
        f"{label} is right in {told(BOTH, 'all', 'within')} % within languages and in "
        f"{told(BOTH, 'all', 'across')} % across: a drop of {told(BOTH, 'all', 'drop')} points; "
        f"the commonest label has {100 * guess:.1f} %",
        f"the second text alone has {told(ALONE, 'all', 'within')} % within; the first adds "
        f"{told(ADDED, 'all', 'within')} points within and {told(ADDED, 'all', 'across')} across",
    ]
    drops = [f"{x} {told(BOTH, x, 'drop')}" for x in means.loc[BOTH].index.unique("label")[1:]]
    return [*lines, f"the drop by label, in points: {', '.join(drops)}"]
