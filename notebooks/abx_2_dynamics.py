"""Whether languages, and meanings, lie apart in the space: variance shares and silhouettes.

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

import numpy as np
import pandas as pd

from xlx.experiment.abx_scores import SPACES, group_sizes, label_runs, values_of
from xlx.measures import statistics
from xlx.results import checks, work
from xlx.subjects import identity, loading
from xlx.subjects.identity import Name
from xlx.subjects.states import embed_corpus
from xlx.text import parallel
from xlx.text.parallel import ParallelCorpus

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
    for number, points in enumerate(by_kind):
        similar = points @ sums.T  # (points of the kind, kinds)
        within = 1 - (similar[:, number] - 1) / (size - 1)
        distance = 1 - similar / size
        distance[:, number] = np.inf
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

    ``space``: of `checkpoint_scores.SPACES`. Options and errors as
    `checkpoint_scores.checkpoint_scores`.
    """
    checks.one_of(space, SPACES, "space")
    about = {"space": space, "documents": label_runs(parallel.documents(corpus))}
    values = values_of(SEPARATION, names, corpus, options, space, about=about, what="separation")
    tables = dict(
        zip(map(identity.series_name, map(identity.identify, names)), values, strict=True)
    )
    return pd.concat(tables, names=["model"]).reset_index("model").reset_index(drop=True)


def _separation(
    name: Name, corpus: ParallelCorpus, options: Mapping[str, object], space: str
) -> pd.DataFrame:
    encoder = loading.load(name)
    states = embed_corpus(encoder, corpus, **options).states
    documents = parallel.documents(corpus)
    tables = {}
    for layer in range(encoder.n_layers + 1):
        vectors = SPACES[space]({code: array[layer] for code, array in states.items()})
        tables[layer] = separation(np.stack([*vectors.values()]).astype(np.float64), documents)
    return pd.concat(tables, names=["layer"]).reset_index("layer").reset_index(drop=True)


SEPARATION = work.Kind("abx-separation", _separation, version=1, tolerance=1e-4)
