"""A rule that sees no words: length and digits."""

from collections.abc import Mapping

import numpy as np

from shared.mixing_tables import baseline_grid
from xlx.experiment.grids import Grid
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
