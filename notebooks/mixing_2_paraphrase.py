"""A rule that sees no words, length and digits; what a model knows apart from what it prefers."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from shared.mixing_tables import baseline_grid
from xlx.experiment.grids import Grid
from xlx.measures.mixing import OVERALL, SETTINGS, MixingError
from xlx.text import examples
from xlx.text.examples import Examples, aligned


def surface_rule(sets: Mapping[str, Examples], alike: str, *, counts: bool = True) -> Grid:
    """Says class ``alike`` of the pairs of a cell whose parts show the least difference.

    As many pairs of each cell as have the label. The difference is in `examples.surface`: first the
    numbers of digits and question marks (with ``counts``), then the ratio of lengths, against the
    median ratio of the cell, as one language is shorter than another. So it sees all pairs of a
    cell at once, and how many are alike, which no model does. For `examples.same_or_other`.

    TextError for sets that are not parallel.
    """
    aligned(sets)
    gold = next(iter(sets.values()))
    positive = gold.classes.index(alike)
    n_alike, negative = int((gold.labels == positive).sum()), int(positive == 0)
    firsts, seconds = (
        [examples.surface(getattr(part, side)) for part in sets.values()]
        for side in ("first", "second")
    )
    predictions = np.full((len(sets), len(sets), len(gold)), negative, dtype=np.int16)
    for i, j in np.ndindex(len(sets), len(sets)):
        apart = firsts[i] - seconds[j]
        apart[:, 0] -= np.median(apart[:, 0])
        length, *counted = np.abs(apart).T
        order = np.lexsort((length, np.sum(counted, axis=0) * counts))
        predictions[i, j, order[:n_alike]] = positive
    return baseline_grid("length and digits" if counts else "length alone", sets, predictions)


class Detection(NamedTuple):
    """How far apart two classes are for a model, and which it prefers; in the accuracies' shape."""

    sensitivity: np.ndarray  # d′, in standard deviations; 0 if the model tells nothing
    criterion: np.ndarray  # above 0 it prefers the second answer, below 0 the first
    unbiased: np.ndarray  # both accuracies, in [0, 1], that it would have with no preference


def detection(first: np.ndarray, second: np.ndarray) -> Detection:
    """What a model tells of two classes, apart from which answer it prefers (Tables 6, 12, 13).

    Signal detection (Green and Swets 1966): the model has one normal quantity of unit variance for
    each class and answers "first" above a threshold. With h and r the accuracies of the first and
    the second class and z the normal quantile,

        d′ = z(h) + z(r),   c = (z(r) - z(h)) / 2,

    and with no preference (c = 0) both accuracies would be Φ(d′ / 2). Of a mean over models or
    languages that differ, d′ comes out too small. MixingError for an accuracy of 0 or 1 or beyond.
    """
    first, second = np.asarray(first, float), np.asarray(second, float)
    if not all(((values > 0) & (values < 1)).all() for values in (first, second)):
        raise MixingError("an accuracy is not between 0 and 1, so that it has no normal quantile")
    hits, rejections = stats.norm.ppf(first), stats.norm.ppf(second)
    sensitivity = hits + rejections
    return Detection(sensitivity, (rejections - hits) / 2, stats.norm.cdf(sensitivity / 2))


def detected(table: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """`detection` of the mean over languages, of tables like `by_label`'s of two labels.

    A row per ``model`` and setting (within, across): ``first`` and ``second`` (the accuracies of
    both labels), ``d′``, ``criterion``, ``mean of both`` and ``without preference`` (in [0, 1]).
    Of a model that gives all examples one label d′ and what follows from it are NaN.
    """
    means = table[(table["language"] == OVERALL) & (table["setting"] != SETTINGS[2])]
    wide = means.pivot(index=["model", "setting"], columns="label", values="score")
    rows = pd.MultiIndex.from_frame(means[["model", "setting"]].drop_duplicates())
    wide = wide.loc[rows, [first, second]].rename_axis(columns=None)
    finite = wide.where(((wide > 0) & (wide < 1)).all(axis=1)).dropna()
    told = detection(finite[first].to_numpy(), finite[second].to_numpy())
    names = {"sensitivity": "d′", "unbiased": "without preference"}
    found = pd.DataFrame(told._asdict(), finite.index).rename(columns=names).reindex(wide.index)
    found.insert(2, "mean of both", wide.mean(axis=1))
    return wide.join(found)
