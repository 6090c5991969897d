"""Probes whose folds are of documents: which sentences each reader tells right, layer by layer.

`sentence_probes` counts what is right; here each answer is stored, so that two readers are compared
sentence by sentence, with an interval over documents. Every reader, a layer or a list of words, has
the same folds and chooses its penalty in the same way (`ridge`). A model's layer is chosen by that
error as well, on the documents it learns from, so it has no advantage of its many layers.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import product

import numpy as np
import pandas as pd

from shared import held_out
from shared.ridge import fit_ridge
from xlx.experiment.scoring import Subject, as_subject
from xlx.experiment.sentence_probes import ProbedTask, probed_tasks, sentence_vectors
from xlx.measures import statistics
from xlx.measures.sentence_tasks import (
    Candidates,
    Pool,
    ProbingTask,
    Rules,
    document,
    parallel_tasks,
)
from xlx.results import checks, ledger, work
from xlx.results.settings import settings
from xlx.subjects.identity import Name, twin_of
from xlx.text.trees import Trees, load_trees

#: What names a probe's score.
KEYS = ["model", "task", "source", "target"]
#: What two languages can share, and the languages that models are asked in.
TASKS, LANGUAGES = ("SubjNum", "ObjNum", "Tense"), ("en", "de", "es", "fr", "ru", "tr", "hi")
#: What is of a language alone.
AT_HOME = ("SentLen", "TreeDepth", "BiShift", "CoordInv", "SOMO")


def _parallel_trees(languages: Sequence[str]) -> dict[str, list[Trees]]:
    return {code: [load_trees(code, "pud")] for code in languages}


@cache
def document_tasks(
    languages: tuple[str, ...] = LANGUAGES, folds: int = 4, split: int = 0
) -> dict[str, list[ProbingTask]]:
    """`TASKS` of Parallel UD alone, in folds of documents that ``split`` deals."""
    return parallel_tasks(_parallel_trees(languages), TASKS, folds=folds, seed=1, split=split)


@cache
def home_tasks(languages: tuple[str, ...] = ("en", "de", "fr")) -> dict[str, list[ProbingTask]]:
    """The paper's other tasks, which are not read abroad, in the folds of `document_tasks`.

    WC has no folds of documents. Bins are such that Parallel UD alone fills them.
    """
    trees = _parallel_trees(languages)
    rules = Rules(depths=(4, 6), lengths=(5, 40), length_edges=(5, 14, 18, 23, 41))
    return parallel_tasks(trees, AT_HOME, folds=4, seed=1, rules=rules, split=0)


def document_probes(
    name: Subject | Name, tasks: Mapping[str, Sequence[ProbingTask]], across: bool = False
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Ridge probes of every layer on tasks of `parallel_tasks` with a ``split`` of documents.

    ``across``: in other languages, too. Returns two tables with ``model``, ``task``, ``source``,
    ``target``: each ``layer`` with its ``accuracy``, over all folds; and of the layer that each
    fold chooses the answers, with ``base`` (the sentence), ``label``, ``draw`` (the fold) and
    ``right``. Errors as `sentence_probes.probe_sentences` and `fit_ridge`.
    """
    subject = as_subject(name)
    cells = checks.several(probed_tasks(tasks, across=across), "tasks")
    values = work.results(
        DOCUMENT_PROBES,
        [subject.vectors | {"trained": x.task.language, "tests": x.hashes} for x in cells],
        lambda missing: [(missing, (subject, [cells[i] for i in missing]))],
        what="document probes",
    )
    layers, answers = [], []
    for value, cell in zip(values, cells, strict=True):
        start, best = 0, int(value["error"].argmin())
        right = np.unpackbits(value["right"], axis=1).astype(bool)
        for code, part in cell.tests.items():
            here = right[:, start : start + len(part)]
            start += len(part)
            keys = (subject.label[0], cell.task.name, cell.task.language, code)
            same = dict(zip(KEYS, keys, strict=True))
            by_layer = {"layer": range(len(here)), "right": here.sum(axis=1), "n": len(part)}
            layers.append(pd.DataFrame(same | by_layer))
            same |= {"base": part.bases, "label": part.labels, "draw": cell.draw}
            answers.append(pd.DataFrame(same | {"right": here[best], "layer": best}))
    sums = pd.concat(layers).groupby([*KEYS, "layer"], sort=False).sum().reset_index()
    sums["accuracy"] = sums["right"] / sums["n"]
    return sums, pd.concat(answers, ignore_index=True)


def _document_probes(
    subject: Subject, cells: Sequence[ProbedTask]
) -> Iterator[dict[str, np.ndarray]]:
    """A value for each task: ``right``, packed ``(n_layers, sum of n_test / 8)``, and the
    ``error`` on training documents left out, ``(n_layers,)``."""
    vectors, rows = sentence_vectors(subject, cells)
    for cell in cells:
        task, source = cell.task, cell.task.language
        parts = task.train, task.validation
        places = [row for part in parts for row in rows(source, part)]
        labels = np.concatenate([part.labels for part in parts])
        documents = [document(base) for part in parts for base in part.bases]
        truth = np.concatenate([part.labels for part in cell.tests.values()])
        fits = []
        for layer, learnt in enumerate(vectors[source]):
            tests = [vectors[code][layer][rows(code, x)] for code, x in cell.tests.items()]
            fits.append(fit_ridge(learnt[places], labels, documents, tests, len(task.classes)))
        right = [np.concatenate(fit.predicted) == truth for fit in fits]
        yield {
            "right": np.packbits(right, axis=1),
            "error": np.array([fit.error for fit in fits]),
        }


def _errors_apart(stored: ledger.Value, computed: ledger.Value) -> float:
    return float(np.abs(stored["error"] - computed["error"]).max())


DOCUMENT_PROBES = work.Kind(
    "document-probes",
    _document_probes,
    tolerance=0.03,
    difference=_errors_apart,
    shared_seconds=30.0,
)


def against_best(answers: pd.DataFrame, name: str, rivals: Sequence[str]) -> pd.DataFrame:
    """A model less the best of its rivals on each task, paired by sentence, 95 % over documents.

    By task: ``accuracy``, the ``rival`` and its ``rival_accuracy``, ``difference``, ``low``,
    ``high``. The rival is chosen on the sentences tested, to its advantage.
    """
    rows = {}
    for task, part in answers.groupby("task", sort=False):
        wide = part.pivot(index=[*KEYS[2:], "base"], columns="model", values="right").astype(float)
        means, groups = wide.mean(), wide.index.get_level_values("base").map(document)
        rival = means.reindex(rivals).idxmax()
        apart = statistics.mean_interval((wide[name] - wide[rival]).to_numpy(), groups)
        rows[task] = (means[name], rival, means[rival], *apart)
    columns = ["accuracy", "rival", "rival_accuracy", "difference", "low", "high"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("task")


def answers_of(
    models: Sequence[str],
    languages: Sequence[str],
    further: Mapping[str, Sequence[ProbingTask]],
) -> Iterator[pd.DataFrame]:
    """Answers of models, in the precision each is read in, and of twins whose results are stored.

    `document_tasks` are asked in `LANGUAGES`, and those in some of them given; ``further`` tasks
    are asked at home. Of held-out models it is what their long runs stored.
    """
    for model, asked in product(models, ((document_tasks(), True), (further,))):
        with settings(dtype=held_out.precision(model)):
            of_model = partial(held_out.stored, document_probes)
            ask = of_model if model in held_out.MODELS else document_probes
            read = {model: ask(model, *asked)}
            read[f"{model}, untrained"] = of_model(twin_of(model), *asked)
        for name, (_, answers) in ((x, y) for x, y in read.items() if y):
            here = answers[["source", "target"]].isin(languages).all(axis=1)
            yield answers[here].assign(model=name)


def by_model(
    answers: pd.DataFrame, labels: pd.DataFrame, models: Sequence[str], lists: Sequence[str]
) -> pd.DataFrame:
    """`against_best` of each model at home, and abroad where a sentence keeps its label.

    Rivals are the ``lists`` of words and, where it is there, the model's twin.
    """
    here, tables = answers["source"] == answers["target"], {}
    for place, part in (("home", answers[here]), ("abroad", same_label(answers[~here], labels))):
        for model in models:
            asked = part.loc[part["model"] == model, "task"].unique()
            rivals = [*lists, f"{model}, untrained"]
            tables[place, model] = against_best(part[part["task"].isin(asked)], model, rivals)
    return pd.concat(tables, names=["place", "model"])


def usable_labels(
    languages: Sequence[str], names: Sequence[str] = TASKS, rules: Rules | None = None
) -> pd.DataFrame:
    """Sentences of Parallel UD that a task can use: ``task``, ``language``, ``base``, ``label``."""
    rows, rules = [], rules or Rules()
    for code in languages:
        pool = Pool.from_trees(load_trees(code, "pud"))
        for name in names:
            usable = Candidates.from_trees(name, pool, rules).usable
            rows += [(name, code, pool.bases[x.at], x.label) for x in usable]
    return pd.DataFrame(rows, columns=["task", "language", "base", "label"])


def labels_alike(labels: pd.DataFrame) -> pd.DataFrame:
    """How often a sentence and its translation are of the same class: a ceiling of shared meaning.

    Of `usable_labels`, by ``task``, ``source`` and ``target``: the share ``alike`` of the ``n``
    sentences that both can use; classes of the target count alike, as in tests.
    """
    pairs = labels.merge(labels, on=["task", "base"], suffixes=("", " there"))
    pairs = pairs.rename(columns={"language": "source", "language there": "target"})
    pairs = pairs.assign(alike=pairs["label"] == pairs["label there"]).query("source != target")
    classes = pairs.groupby(["task", "source", "target", "label there"], sort=False)["alike"]
    by_class = classes.agg(alike="mean", n="size").groupby(level=[0, 1, 2], sort=False)
    return by_class.agg({"alike": "mean", "n": "sum"}).reset_index()


def same_label(answers: pd.DataFrame, labels: pd.DataFrame) -> pd.DataFrame:
    """Answers abroad to sentences whose class in the language learnt is the same."""
    learnt = labels.rename(columns={"language": "source"})
    return answers.merge(learnt, on=["task", "source", "base", "label"])
