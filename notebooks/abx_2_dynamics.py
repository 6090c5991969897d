"""Training and depth: the sentences of section 4.2, domains, and how far languages lie apart.

What the paper says of training and depth is a row each that could have come out otherwise, with its
interval. Where a sentence is about the highest or lowest of several checkpoints, they are chosen on
one half of the documents and compared on the other (`reversal`): the highest of several noisy
scores is above a later one by choice alone.

A score near 1 says that X is nearly always closer to A than to B; by how much it does not say. The
paper names that as a limitation ("Discrimination vs Separation"): a space in which languages can be
told apart need not be divided into languages. Here a sentence in one language is a point, its
language and its meaning (its position in the corpus) are two ways to sort the points:

- `variance_shares`: how much of the variance of all points lies between the languages, between the
  meanings, and in neither;
- `silhouettes` (Rousseeuw 1987): of all points the mean of ``(b - a) / max(a, b)``, with ``a`` the
  mean cosine distance to the others of its kind and ``b`` that to the nearest other kind. 1: far
  apart; 0: no kinds to be seen; below: points are nearer to another kind than to their own.

A mean distance to a kind is 1 - the cosine with the sum of its unit vectors over its size, so no
pair of points is ever compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from shared.abx_figures import LAYER, STEP, References, scored, shown, with_lines
from shared.abx_tables import DRAWN, ends, pivoted
from xlx.experiment.abx_scores import (
    MATCHED,
    SPACES,
    CheckpointScores,
    before_training,
    group_sizes,
)
from xlx.experiment.averages import Average, average, averaged_scores
from xlx.experiment.scoring import Subject, kept, subject_scores, with_models
from xlx.measures import statistics
from xlx.plots.panels import Panels, number, panels, parts
from xlx.plots.primitives import heatmap
from xlx.plots.style import styled
from xlx.results import checks
from xlx.subjects import identity, loading
from xlx.subjects.identity import Name
from xlx.subjects.states import tokenise
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus


def reversal(
    course: Sequence[Average], *, seed: int | np.random.Generator = 0
) -> tuple[dict[str, object], dict[str, object]]:
    """Whether a score falls after its highest checkpoint, and rises again from its lowest.

    ``course``: the score of each checkpoint in turn, on one text. The highest, and the lowest from
    there on, are chosen on one half of the groups of the text (documents) and compared on the
    other, the halves change places, and the two differences are averaged: of scores that differ by
    noise alone the result is as often negative as positive. ``seed`` draws the halves.

    Returns the fall (highest less lowest) and the recovery (last less lowest): ``value``, ``low``,
    ``high`` (95 %), ``highest``, ``lowest`` (their places in the course, one a half).
    """
    n_groups = len(course[0].sizes)
    first = np.zeros(n_groups, dtype=bool)
    first[np.random.default_rng(seed).permutation(n_groups)[: n_groups // 2]] = True
    chosen, changes = [], []
    for half in (first, ~first):
        seen = np.array([float(score.within(half).score) for score in course])
        high = int(seen.argmax())
        low = high + int(seen[high:].argmin())
        chosen.append((high, low))
        changes.append([(course[upper] - course[low]).within(~half) for upper in (high, -1)])
    highest, lowest = map(list, zip(*chosen, strict=True))
    quantile = stats.t.ppf((1 + statistics.LEVEL) / 2, n_groups - 2)  # the groups of both halves
    rows = []
    for halves in zip(*changes, strict=True):
        value = float(np.mean([change.score for change in halves]))
        width = quantile * float(np.linalg.norm([change.error for change in halves])) / 2
        around = {"value": value, "low": value - width, "high": value + width}
        rows.append(around | {"highest": highest, "lowest": lowest})
    return rows[0], rows[1]


def section_claims(
    course_of: Sequence[CheckpointScores], *, embedding_layer: bool = True,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:  # fmt: skip
    """The sentences of section 4.2 on one series, in the order of training, intervals by document.

    MD is scored plain and among sentences of like length. "Middle" is the layer just above half of
    the depth; ``seed`` as for `reversal`.

    Returns ``model``, ``claim``, ``difference``, ``low``, ``high``, ``holds``.
    """
    last = course_of[-1]
    middle = (len(last.scores.layers) - 1) // 2 + 1
    courses = {
        task: [average(of, task, embedding_layer=embedding_layer) for of in course_of]
        for task in DRAWN
    }

    def layers(task: str, upper: int, lower: int) -> dict[str, float]:
        return ends(average(last, task, layers=[upper]) - average(last, task, layers=[lower]))

    rows: dict[str, Mapping[str, object]] = {}
    for task, course in courses.items():
        lowest = min(course, key=lambda score: float(score.score))
        above = replace(lowest, score=lowest.score - 0.5)
        rows[f"{task} above 0.5 at its lowest checkpoint"] = ends(above)
    fall, recovery = reversal(courses["LD"], seed=seed)
    rows["LD falls after its highest checkpoint"] = fall
    rows["LD recovers until the end"] = recovery
    rows["LD: first layer above the middle one"] = layers("LD", 1, middle)
    rows["LD: last layer above the one before"] = layers("LD", -1, -2)
    for task in ("MD", MATCHED):
        course = courses[task]
        rows[f"{task} rises from the first to the last checkpoint"] = ends(course[-1] - course[0])
        rows[f"{task}: middle layer above the embeddings"] = layers(task, middle, 0)
        rows[f"{task}: last layer below the one before"] = layers(task, -2, -1)
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("claim").reset_index()
    table = table.rename(columns={"value": "difference"}).assign(model=last.model)
    sides = [table["low"] > 0, table["high"] < 0]  # of zero, that the whole interval lies on
    table["holds"] = np.select(sides, ["yes", "the opposite"], "not seen")
    return table[["model", "claim", "difference", "low", "high", "holds"]]


def untrained_states(names: Sequence[str]) -> list[Name]:
    """Models before training, of equal weights the first."""
    states = {identity.fingerprint(x): x for x in reversed([*map(before_training, names)])}
    return list(states.values())


def uncut(
    names: Sequence[Name], corpus: ParallelCorpus, *, max_length: int | None = None
) -> ParallelCorpus:
    """The positions that none of the models cuts in any language; ValueError: fewer than two."""
    cut: set[int] = set()
    for encoder in map(loading.load, names):
        for text in corpus.sentences.values():
            limit = encoder.limit(max_length)
            cut.update(tokenise(encoder.tokenizer, text, limit=limit)[1].tolist())
    if len(corpus) - len(cut) < 2:
        raise ValueError(
            f"of {len(corpus)} positions {len(cut)} are cut in some language: choose a larger "
            "max_length, or fewer languages"
        )
    return corpus.drop(cut)


def domain_scores(
    names: Sequence[Name], corpus: ParallelCorpus, *, fewest: int = 50, **options: object
) -> pd.DataFrame:
    """Mean scores on the positions of each domain alone, with intervals over its documents.

    Rows are models and domains, with the number of positions. Domains of fewer positions than
    ``fewest``, or of a single document, are left out; where a corpus names none, all of it is one.
    """
    tables = []
    for domain in dict.fromkeys(corpus.domains):
        inside = corpus.drop({i for i, other in enumerate(corpus.domains) if other != domain})
        if len(inside) >= fewest and len(set(parallel.documents(inside))) > 1:
            table = averaged_scores(subject_scores(names, inside, **options), DRAWN)
            tables.append(table.assign(domain=domain, positions=len(inside)))
    if not tables:
        return pd.DataFrame()
    index, values = ["model", "domain", "positions"], ["score", "low", "high"]
    return pivoted(pd.concat(tables), index, "task", values).sort_index()


# --- separation -----------------------------------------------------------------------------------

#: What points are sorted by.
SORTINGS = ("language", "meaning")


def variance_shares(points: np.ndarray) -> dict[str, float]:
    """Shares of the variance between languages and between meanings, 0 where chance alone sorts.

    ``points``: ``(n_languages, n, dim)``. Of the sums of squares of a two-way layout without
    repetitions those that chance gives are taken off (epsilon squared; Kelley 1935), so a share can
    come out a little below 0.
    """
    n_languages, n, _ = points.shape
    points = points.astype(np.float64)
    centre = points.mean(axis=(0, 1))
    language = n * float(((points.mean(axis=1) - centre) ** 2).sum())
    meaning = n_languages * float(((points.mean(axis=0) - centre) ** 2).sum())
    total = float(((points - centre) ** 2).sum())
    rest = (total - language - meaning) / ((n_languages - 1) * (n - 1))  # a degree of freedom
    return {
        "language": (language - (n_languages - 1) * rest) / total,
        "meaning": (meaning - (n - 1) * rest) / total,
    }


def silhouettes(points: np.ndarray, kind: str) -> np.ndarray:
    """The silhouette of every point, ``(n_languages, n)``, by cosine distance.

    ``points``: ``(n_languages, n, dim)``, none of them zero; ``kind``: of `SORTINGS`.
    """
    return _silhouettes(_unit(points), kind)[0]


def separation(points: np.ndarray, documents: Sequence[object]) -> pd.DataFrame:
    """Both measures for both kinds, with jackknife errors over documents.

    ``points``: ``(n_languages, n, dim)``; ``documents``: of each position. Columns ``measure``
    ("variance", "silhouette"), ``kind``, ``score``, ``error``.
    """
    groups = np.unique(np.asarray(documents).astype(str), return_inverse=True)[1]
    sizes, rows = group_sizes(documents), []
    kept = [groups != group for group in range(len(sizes))]
    shares = [variance_shares(points[:, rest]) for rest in kept]
    for kind, share in variance_shares(points).items():
        rows.append(("variance", kind, share, np.array([without[kind] for without in shares])))
    unit = _unit(points)
    language = np.array([_silhouettes(unit[:, rest], "language")[0].mean() for rest in kept])
    rows.append(("silhouette", "language", _silhouettes(unit, "language")[0].mean(), language))
    rows.append(("silhouette", "meaning", *_meaning_without_each(unit, groups)))
    return pd.DataFrame(
        [(*row, score, float(statistics.left_out_error(score, without, sizes)))
         for *row, score, without in rows],
        columns=["measure", "kind", "score", "error"],
    )  # fmt: skip


def _unit(points: np.ndarray) -> np.ndarray:
    return points / np.linalg.norm(points, axis=-1, keepdims=True)


def _silhouettes(
    unit: np.ndarray, kind: str, groups: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Silhouettes; with the group of each kind, too: without the group of the nearest other kind.

    The second are the silhouettes where that group is not there, the third is the group,
    ``(n_languages, n)`` each.
    """
    checks.one_of(kind, SORTINGS, "kind")
    by_kind = unit if kind == "language" else unit.swapaxes(0, 1)  # (kinds, points of each, dim)
    size, sums = by_kind.shape[1], by_kind.sum(axis=1)
    parts: list[list[np.ndarray]] = [[], [], []]
    for place, points in enumerate(by_kind):
        similar = points @ sums.T  # (points of the kind, kinds)
        within = 1 - (similar[:, place] - 1) / (size - 1)
        distance = 1 - similar / size
        distance[:, place] = np.inf
        parts[0].append(_silhouette(within, distance.min(axis=1)))
        if groups is not None:
            nearest = groups[distance.argmin(axis=1)]
            distance[nearest[:, None] == groups] = np.inf
            parts[1].append(_silhouette(within, distance.min(axis=1)))
            parts[2].append(nearest)
    tables = (np.stack(part) if part else None for part in parts)
    turned = kind == "meaning"
    return tuple(table.T if turned and table is not None else table for table in tables)


def _silhouette(within: np.ndarray, nearest: np.ndarray) -> np.ndarray:
    """Rousseeuw's s from a and b; all the same point: 0."""
    larger = np.maximum(within, nearest)
    with np.errstate(invalid="ignore"):
        return np.where(larger > 0, np.where(np.isinf(nearest), 1, (nearest - within) / larger), 0)


def _meaning_without_each(unit: np.ndarray, groups: np.ndarray) -> tuple[float, np.ndarray]:
    """The mean silhouette of meanings, and that without each group of positions.

    Without a group its points are not there, and those that are nearest to one of its meanings are
    sorted against the nearest of another group.
    """
    all_there, without, nearest = _silhouettes(unit, "meaning", groups)
    n_groups, n_languages = groups.max() + 1, len(unit)
    change = np.where(nearest != groups, without - all_there, 0)  # the others go themselves
    turns = np.bincount(nearest.ravel(), change.ravel(), n_groups)
    mine = np.bincount(groups, all_there.sum(axis=0), n_groups)
    left = all_there.sum() - mine + turns
    sizes = n_languages * np.bincount(groups, minlength=n_groups)
    return float(all_there.mean()), left / (all_there.size - sizes)


def separations(
    names: Sequence[Name], corpus: ParallelCorpus, *, space: str = "raw", **options: object
) -> pd.DataFrame:
    """`separation` of models at every layer: columns ``model`` and ``layer`` in front.

    ``space``: of `abx_scores.SPACES`. Options and errors as `scoring.subject_scores`.
    """
    table = with_models(names, layer_separations(names, corpus, space, **options))
    return table[["model", "layer", "measure", "kind", "score", "error"]]


@kept(tolerance=1e-4, documents=True)
def layer_separations(subject: Subject, corpus: ParallelCorpus, space: str) -> pd.DataFrame:
    """`separation` at every layer, with a column ``layer``."""
    checks.one_of(space, SPACES, "space")
    documents = parallel.documents(corpus)
    tables = [
        separation(np.stack([*vectors.values()]).astype(np.float64), documents)
        for vectors in subject.read(corpus).layers(space)
    ]
    whole = pd.concat(dict(enumerate(tables)), names=["layer"])
    return whole.reset_index("layer").reset_index(drop=True)


# --- figures --------------------------------------------------------------------------------------


@styled
def dynamics(table: pd.DataFrame, *, references: References | None = None) -> Figure:
    """Scores along training, one panel a model (Figure 2 of the ABX paper).

    ``table`` has ``checkpoint``, and may have MD among sentences of like length; ``references``
    maps a label ("a bag of subwords") to a table of ``model``, ``task`` and ``score``; a task that
    it lacks has no line.
    """
    tasks = shown(table)
    on = scored(table, "checkpoint", tasks, even=True, width=3.9, height=2.5)
    return on.done(STEP, "ABX score", handles=with_lines(on, references, tasks))


@styled
def layer_profile(table: pd.DataFrame, *, references: References | None = None) -> Figure:
    """Scores over layers, one panel a model (Figure 3 of the ABX paper)."""
    tasks = shown(table)
    on = scored(table, "layer", tasks, width=3.9, height=2.5)
    steps = {model: own["checkpoint"].max() for model, own in parts(table, "model")}
    on.titles(lambda model: f"{model}, step {steps[model]:,}" if steps[model] else model)
    return on.done(LAYER, "ABX score", handles=with_lines(on, references, tasks))


@styled
def layers_beside_training(
    layers: pd.DataFrame, course: pd.DataFrame, *, references: References | None = None
) -> Figure:
    """Scores of a model over its layers (left), and of another along its training (right).

    ``layers`` are as of `layer_profile`, ``course`` as of `dynamics`, of one model each;
    ``references`` have a line in the panels of their models.
    """
    tasks = shown(layers)
    on = panels(pd.concat([layers, course]), "model", width=3.9, height=2.5, sharey=True)
    for table, x, label in ((layers, "layer", LAYER), (course, "checkpoint", STEP)):
        name = table["model"].iloc[0]
        single = Panels(on.figure, "model", {name: on.axes[name]}, on.across)
        scored(table, x, tasks, on=single, even=table is course)
        on.axes[name].set_xlabel(label, fontsize=9)
    return on.done("", "ABX score", handles=with_lines(on, references, tasks))


@styled
def checkpoint_layer_map(table: pd.DataFrame) -> Figure:
    """Maps of checkpoint and layer, a row of panels a model (Figure 4 of the ABX paper)."""
    tasks = shown(table)
    table = table[table["task"].isin(tasks)]
    table = table.sort_values(["checkpoint", "task", "layer"], kind="stable")
    n_cells = len(tasks) * table["checkpoint"].nunique()
    on = heatmap(
        table, row="layer", column="checkpoint", value="score", panel=("model", "task"),
        rows=sorted(table["layer"].unique(), reverse=True), tops=lambda step: f"{step:,}",
        written=number if n_cells <= 28 else None,
        cell=(7.8 / n_cells, 0.24), turned=45 if n_cells <= 28 else 90,
        bar="ABX score (bright: high)", edge=(0.7, 1.4),
    )  # fmt: skip
    return on.done("training step", LAYER)
