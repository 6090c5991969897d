"""Inputs in two languages (Rajaee and Monz): what several notebooks ask, and how they table it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from shared import claims, controls
from shared.shown import as_points
from xlx.experiment.grids import Grid, grid, groups_of
from xlx.measures import information, mixing
from xlx.measures.mixing import OVERALL, paired_difference
from xlx.results import work
from xlx.results.deferred import deferred
from xlx.subjects import identity, loading
from xlx.subjects.jobs import Job, Recipe
from xlx.subjects.states import tokenise
from xlx.text import examples, labelled, questions
from xlx.text.examples import Examples, aligned, crossed
from xlx.text.questions import Questions

sparse = deferred("scipy.sparse")
special = deferred("scipy.special")
linear_model = deferred("sklearn.linear_model")
model_selection = deferred("sklearn.model_selection")
preprocessing = deferred("sklearn.preprocessing")

#: Tasks as tables call them.
TASK_NAMES = {"NLI": "XNLI", "PI": "PAWS-X", "QA": "XQuAD"}
#: What all recipes share: no warm-up, a rate that falls to zero, the last checkpoint alone.
LINEAR: dict[str, Any] = {"warmup": 0.0, "schedule": "linear", "every": 10**9}
#: What `signals` measures of a grid; of AUC and d′ the first label is the one that is called.
MEASURES = ("accuracy", "accuracy, threshold by cell", "AUC", "d′")
#: Inverse strengths of the penalty that cross-validation chooses from, in so many folds.
STRENGTHS, FOLDS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0), 5


# --- data -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TaskData:
    """What is learnt, held out and asked: ``sets`` by language, parallel.

    ``name`` is that of the held-out set in a job.
    """

    train: Examples | Questions
    held_out: Examples | Questions
    sets: Mapping[str, Any]
    name: str = "validation"

    @property
    def gold(self) -> Examples | Questions:
        """The set of the first language."""
        return next(iter(self.sets.values()))

    @property
    def guess(self) -> float:
        """The share of the commonest label in the sets."""
        return max(examples.class_counts(self.gold).values()) / len(self.gold)

    def jobs(self, models: Sequence[str], recipe: Recipe, seeds: Sequence[int]) -> list[Job]:
        """A fine-tuning for each model and seed, models first."""
        held_out = {self.name: self.held_out}
        return [Job(x, self.train, held_out, recipe, seed=seed) for x in models for seed in seeds]


@dataclass(frozen=True)
class Origin:
    """Where examples to learn and to ask are from: names of sources, folders of public files."""

    train_source: str | None = None
    train_data: str | None = None
    test_source: str | None = None
    test_data: str | None = None


def task_data(
    task: str,
    languages: Sequence[str],
    source: str,
    n_train: int | None,
    n_test: int | None,
    origin: Origin = Origin(),
    split: str = "test",
    per_context: int | None = None,
) -> TaskData:
    """Data of a task: the shortest ``n_train`` of ``source`` to learn, ``n_test`` to ask.

    "PI" are pairs; "QA" are questions, ``per_context`` of a paragraph at most, to ask of XQuAD;
    "NLI" as `inference_data`, and so what is shipped of another name ("sick").
    """
    if task not in ("PI", "QA"):
        origin = origin if task == "NLI" else Origin(task, test_source=task)
        return inference_data(languages, source, n_train, n_test, origin, split)[0]
    learn = {"source": origin.train_source, "path": origin.train_data}
    ask = {"path": origin.test_data}
    if task != "QA":
        sets = labelled.parallel_examples(task, languages, split, n_test, **ask)[0]
        learnt = labelled.parallel_examples(task, [source], "train", n_train, **learn)[0]
        held_out = labelled.parallel_examples(task, [source], "validation", **ask)[0]
        return TaskData(learnt[source], held_out[source], sets)
    sets, _ = questions.parallel_questions(
        "xquad", languages, "test", n_test, per_context=per_context, **ask
    )
    name, path = origin.train_source, origin.train_data
    learnt, _ = questions.parallel_questions(name, [source], "train", n_train, path=path)
    held_out = questions.load_questions(name, source, "validation", path=path)
    return TaskData(learnt[source], held_out, sets)


def inference_data(
    languages: Sequence[str],
    source: str,
    n_train: int | None,
    n_test: int | None,
    origin: Origin = Origin(),
    split: str = "test",
    seed: int = 1,
) -> tuple[TaskData, dict[str, Examples]]:
    """XNLI: all of ``source`` to learn, and ``n_test`` pairs, drawn by ``seed``, to ask in a grid.

    Also the whole part by language, which is what is asked of each checkpoint. ``n_train`` are the
    shortest, as in `task_data`; None: all.
    """
    learn = {"source": origin.train_source, "path": origin.train_data}
    ask = {"source": origin.test_source, "path": origin.test_data}
    whole, _ = labelled.parallel_examples("NLI", languages, split, **ask)
    learnt, _ = labelled.parallel_examples("NLI", [source], "train", n_train, **learn)
    sets = whole if n_test is None else {x: part.take(n_test, seed) for x, part in whole.items()}
    return TaskData(learnt[source], whole[source], sets), whole


def second_alone(data: TaskData) -> TaskData:
    """The same data with second parts (hypotheses) alone."""
    sets = {code: controls.only(part, "second") for code, part in data.sets.items()}
    train, held_out = (controls.only(part, "second") for part in (data.train, data.held_out))
    return replace(data, train=train, held_out=held_out, sets=sets)


def worked_pairs(
    sets: Mapping[str, Examples],
    cells: Sequence[tuple[str, str]],
    rows: Sequence[int] | None = None,
    parts: Sequence[str] = ("first", "second"),
) -> pd.DataFrame:
    """An example as it stands in some cells (language of each part): one row per cell, in full."""
    gold = next(iter(sets.values()))
    shown = [
        (f"{a}-{b}", sets[a].first[k], sets[b].second[k], gold.classes[gold.labels[k]])
        for (a, b), k in zip(cells, rows or [0] * len(cells), strict=True)
    ]
    return pd.DataFrame(shown, columns=["cell", *parts, "label"]).set_index("cell")


def worked_item(sets: Mapping[str, Examples], grid: Grid, source: str, other: str) -> pd.DataFrame:
    """The shortest entailed pair of the source in four cells, with what a model says of it."""
    gold, lengths = sets[source], sets[source].lengths
    k = min(np.flatnonzero(gold.labels == 0), key=lambda i: lengths[i], default=0)
    cells = [(source, source), (other, other), (source, other), (other, source)]
    table = worked_pairs(sets, cells, [k] * 4, ("premise", "hypothesis"))
    at = [(grid.languages.index(a), grid.languages.index(b), k) for a, b in cells]
    table["said"] = [gold.classes[grid.predictions[x]] for x in at]
    table["p(entailment)"] = [
        round(float(special.expit(information.evidence(grid.logits[x]))), 2) for x in at
    ]
    return table


# --- grids ----------------------------------------------------------------------------------------


def mean_grids(grids: Iterable[Grid]) -> dict[str, Grid]:
    """By model its grid, the mean over seeds, with the scores of ``each``."""
    by_model: dict[str, list[Grid]] = {}
    for of_seed in grids:
        by_model.setdefault(of_seed.model, []).append(of_seed)
    means = {}
    for name, of_model in by_model.items():
        each = {
            score: np.concatenate([x.each[score] for x in of_model]) for score in of_model[0].scores
        }
        scores = {score: x.mean(axis=0) for score, x in each.items()}
        means[name] = replace(of_model[0], scores=scores, each=each, predictions=None, logits=None)
    return means


def signals(
    grids: Sequence[Grid], labels: np.ndarray, measures: Sequence[str] = MEASURES
) -> dict[str, np.ndarray]:
    """`MEASURES` of a model's seeds as values of examples, ``(S, L, L, n)``.

    What sees the second part only has the same in all rows, so one row is computed.
    """
    logits = np.stack([grid.logits for grid in grids])
    shape, positive = logits.shape[:-1], labels == 0
    if (logits[:, :1] == logits).all():
        logits = logits[:, :1]
    measured = {
        "accuracy": lambda: logits.argmax(axis=-1) == labels,
        "accuracy, threshold by cell": lambda: thresholds_by_cell(logits, labels) == labels,
        "AUC": lambda: mixing.auc_values(information.evidence(logits), positive),
        "d′": lambda: mixing.sensitivity_values(logits.argmax(axis=-1) == 0, positive),
    }
    return {x: np.broadcast_to(measured[x](), shape).astype(np.float64) for x in measures}


def thresholds_by_cell(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Classes ``(..., n)`` of logits ``(..., n, C)`` with a threshold of each cell for each class.

    To the logits of a class is added what makes its mean probability in the cell its share of the
    gold ``labels``: the privilege of knowing how many there are of each, and of nothing else.
    """
    logits = np.asarray(logits, dtype=np.float64)
    shares = np.bincount(labels, minlength=logits.shape[-1]) / len(labels)
    wanted = np.log(np.maximum(shares, 1 / (2 * len(labels))))
    for _ in range(25):
        probability = special.softmax(logits, axis=-1).mean(axis=-2, keepdims=True)
        logits = logits + wanted - np.log(probability)
    return logits.argmax(axis=-1)


def ratio_values(parts: np.ndarray, wholes: np.ndarray) -> np.ndarray:
    """Values of examples ``(..., n)`` whose mean is the ratio of two sums, with its error.

    The linear approximation (delta method): the variance of their mean is that of the ratio.
    NaN where the sum of the ``wholes`` is 0.
    """
    size = wholes.mean(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = parts.mean(axis=-1, keepdims=True) / size
        return ratio + (parts - ratio * wholes) / size


def cell_groups(languages: Sequence[str], source: str) -> dict[str, np.ndarray]:
    """Which cells are averaged, boolean ``(L, L)``: within, and across by where the source is."""
    same = np.eye(len(languages), dtype=bool)
    is_source = np.array([code == source for code in languages])
    first, second = is_source[:, None] & ~same, is_source[None, :] & ~same
    neither = ~(same | is_source[:, None] | is_source[None, :])
    groups = {
        f"within {source}": same & is_source,
        "within the others": same & ~is_source,
        f"premise in {source}": first,
        f"hypothesis in {source}": second,
        "neither": neither,
        "across": ~same,
    }
    return {name: mask for name, mask in groups.items() if mask.any()}


def knowledge(
    ours: Mapping[str, np.ndarray],
    alone: Mapping[str, np.ndarray],
    cells: Mapping[str, np.ndarray],
    groups: np.ndarray,
) -> pd.DataFrame:
    """Each measure in each group of cells, and what is above hypotheses ``alone``.

    Of the latter ``told``, as by `claims.compared`.
    """
    tables = []
    for measure, values in ours.items():
        pairs, other = (
            np.stack([x[:, mask].mean(axis=1) for mask in cells.values()], axis=1)
            for x in (values, alone[measure])
        )
        both, adds = mixing.averages(pairs, groups), claims.compared(pairs, other, groups)
        for what, table in (("both", both), ("premise adds", adds)):
            tables.append(table.assign(cells=list(cells), measure=measure, what=what))
    return pd.concat(tables, ignore_index=True)


def measured(
    grids: Iterable[Grid],
    measure: Callable[..., pd.DataFrame],
    score: str = "accuracy",
    **options: Any,
) -> pd.DataFrame:
    """A table of `xlx.measures.mixing` for each grid, one below the other, with its ``model``.

    ``measure`` is `mixing.cells`, `summary` or another that takes scores of each seed,
    ``languages`` and ``groups``; ``options`` go to it.
    """
    tables = [
        measure(x.each[score], languages=x.languages, groups=x.groups, **options).assign(
            model=x.model
        )
        for x in grids
    ]
    return pd.concat(tables, ignore_index=True)


def changed_grids(
    change: Callable[[Any], Any],
    label: str,
    models: Sequence[str],
    data: TaskData,
    recipe: Recipe,
    seeds: Sequence[int],
) -> list[Grid]:
    """Grids of models that are taught and asked after a change of all examples.

    Such as one part alone, or without a question; ``label`` is how tables name the models then.
    """
    sets = {code: change(part) for code, part in data.sets.items()}
    groups = groups_of(data.gold)  # a change may take away what shows them
    data = replace(data, train=change(data.train), held_out=change(data.held_out), sets=sets)
    grids = mean_grids(grid(data.jobs(models, recipe, seeds), sets))
    return [replace(usual, model=f"{x}, {label}", groups=groups) for x, usual in grids.items()]


def baseline_grid(model: str, sets: Mapping[str, Examples], predictions: np.ndarray) -> Grid:
    """The grid of what answers without a model: ``predictions`` ``(L, L, n)``."""
    gold = next(iter(sets.values()))
    scores = {"accuracy": (predictions == gold.labels).astype(np.float64)}
    return Grid(model, tuple(sets), scores, groups_of(gold), predictions)


def bag_of_subwords(
    name: str, train: Examples, sets: Mapping[str, Examples], *, seed: int = 0
) -> Grid:
    """A logistic regression on the subwords of a pair, asked about every pair of languages.

    Its inputs are, for each subword of the vocabulary (of the tokenizer of model ``name``), whether
    both parts have it, the first part alone, or the second alone (scaled to unit length); and what
    share of each part's distinct subwords the other has. The strength of the ridge penalty is the
    best of `STRENGTHS` by the accuracy in five folds of the training set, which keep pairs with the
    same first text together. ``seed`` is that of the solver. Its log probabilities stand as
    ``logits``, so that AUC and thresholds by cell can be asked of it, too. TextError for sets that
    are not parallel.
    """
    aligned(sets)
    about = {
        "bag of": identity.fingerprint(name),
        "train": train.text_hash(),
        "seed": seed,
        "sets": [[code, part.text_hash()] for code, part in sets.items()],
    }
    fitted = work.result(PAIRED_SUBWORDS, about, name, train, sets, seed)
    answered = fitted["classes"][fitted["logits"].argmax(axis=-1)].astype(np.int16)
    return replace(baseline_grid("bag of subwords", sets, answered), logits=fitted["logits"])


def _regression_on_subwords(
    name: str, train: Examples, sets: Mapping[str, Examples], seed: int
) -> dict[str, np.ndarray]:
    """What `bag_of_subwords` answers: ``logits`` ``(L, L, n, n_classes)`` of ``classes``."""
    tokenizer = loading.tokenizer(name)
    texts = [side for part in (train, *sets.values()) for side in (part.first, part.second)]
    distinct = list(dict.fromkeys(text for side in texts for text in side))
    columns, _ = tokenise(tokenizer, distinct, limit=None, add_special_tokens=False)
    bags = dict(zip(distinct, map(frozenset, columns["input_ids"]), strict=True))
    size = len(tokenizer)
    groups = groups_of(train)
    learnt = _features(train, bags, size)
    # A penalised weight of what the training set never has stays at zero, so it is left out: most
    # of the vocabulary.
    seen = np.flatnonzero(learnt.getnnz(axis=0))
    fitted = model_selection.GridSearchCV(
        linear_model.LogisticRegression(max_iter=2000, random_state=seed),
        {"C": list(STRENGTHS)},
        cv=model_selection.GroupKFold(min(FOLDS, len(np.unique(groups)))),
    ).fit(learnt[:, seen], train.labels, groups=groups)
    cells = [[crossed(first, second) for second in sets.values()] for first in sets.values()]
    logits = np.array(
        [
            [fitted.predict_log_proba(_features(cell, bags, size)[:, seen]) for cell in row]
            for row in cells
        ]
    )
    return {"logits": logits.astype(np.float32), "classes": fitted.classes_}


PAIRED_SUBWORDS = work.Kind(
    "states", _regression_on_subwords, tolerance=0.05, function="bag_of_subwords"
)


def _features(pairs: Examples, bags: Mapping[str, frozenset[int]], size: int) -> sparse.csr_matrix:
    """``(n, 3 * size + 2)``: in both, in the first alone, in the second alone, and two shares."""
    rows, columns, shares = [], [], []
    for i, (first, second) in enumerate(zip(pairs.first, pairs.second, strict=True)):
        pieces_1, other = bags[first], bags[second]
        both = pieces_1 & other
        pieces = [*sorted(both), *(size + piece for piece in sorted(pieces_1 - both))]
        pieces += [2 * size + piece for piece in sorted(other - both)]
        rows += [i] * len(pieces)
        columns += pieces
        shares.append((len(both) / max(1, len(pieces_1)), len(both) / max(1, len(other))))
    present = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(pairs), 3 * size))
    # At unit length, the hundred subwords of a pair do not drown the two shares.
    return sparse.hstack(
        [preprocessing.normalize(present), sparse.csr_matrix(np.array(shares))]
    ).tocsr()


# --- tables ---------------------------------------------------------------------------------------


def above_baselines(
    grids: Iterable[Grid], baselines: Sequence[Grid], score: str = "accuracy"
) -> pd.DataFrame:
    """`mixing.paired_difference` of each model and each ``baseline``."""
    tables = [
        paired_difference(grid.each[score], simple.each[score], grid.languages, grid.groups).assign(
            model=grid.model, baseline=simple.model
        )
        for grid in grids
        for simple in baselines
    ]
    return pd.concat(tables)


def by_setting(table: pd.DataFrame, *index: str) -> pd.DataFrame:
    """Means over languages of tables like `mixing.summary`'s, settings side by side, `as_points`.

    ``index`` names the columns that tell the rows apart, such as "model"; rows and settings keep
    the order of the table.
    """
    rows = table[table["language"] == OVERALL]
    points = as_points(rows).set_axis(pd.MultiIndex.from_frame(rows[[*index, "setting"]]))
    return points.unstack("setting", sort=False)
