"""Fine-tuning on a mixed pair of languages: the averages of Tables 4 and 9 (section 3.4)."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from xlx.core import statistics
from xlx.mixing.resamples import MixingError, Resamples, percentile_ends, seed_errors
from xlx.mixing.within_across import checked_scores

#: The rows of Tables 4 and 9: language of part 1, language of part 2, * for all of them.
PAIRS_ROWS = ("l1-l2", "l2-l1", "*-l2", "l1-*", "*-*")


def pair_cells(
    languages: Sequence[str], pair: tuple[str, str], *, unseen_only: bool = False
) -> dict[str, np.ndarray]:
    """Which cells each row of Tables 4 and 9 averages, boolean ``(L, L)``; * is all languages."""
    languages = list(languages)

    for language in pair:
        if language not in languages:
            raise MixingError(
                f"{language} of the pair {'-'.join(pair)} is not in the grid, which has "
                f"{', '.join(languages)}"
            )
    if pair[0] == pair[1]:
        raise MixingError(f"the pair {'-'.join(pair)} is one language twice: two are needed")
    one, two = (np.array([each == language for each in languages]) for language in pair)
    star = ~(one | two) if unseen_only else np.ones(len(languages), dtype=bool)
    if not star.any():
        raise MixingError(
            f"the grid has no language other than {' and '.join(pair)}, so none is unseen"
        )
    sides = {"l1": one, "l2": two, "*": star}
    return {
        row: np.outer(*(sides[side] for side in row.split("-", maxsplit=1))) for row in PAIRS_ROWS
    }


def pair_table(
    conditions: Mapping[str, np.ndarray],
    languages: Sequence[str],
    pair: tuple[str, str],
    groups: Sequence[int] | None = None,
    *,
    unseen_only: bool = False,
    n_resamples: int = 1000,
    level: float = statistics.LEVEL,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """The averages of Tables 4 and 9 with intervals, for several models on the same examples.

    ======== ======================================================== ==========
    row      mean over the cells                                      how many
    ======== ======================================================== ==========
    l1-l2    part 1 in l1, part 2 in l2                               1
    l2-l1    part 1 in l2, part 2 in l1                               1
    *-l2     column l2: part 1 in any language, l1 and l2 among them  L
    l1-*     row l1: part 2 in any language, l1 and l2 among them     L
    *-*      the whole grid, its diagonal included                    L²
    ======== ======================================================== ==========

    The paper says "the average performance over all languages" and no more; this is that, taken
    literally. Table 1 bears it out for the last row: with the diagonal the whole grid of mBERT
    has (65.7 + 14 × 54.5) / 15 = 55.2, the baseline is printed as 55.3, and without it 54.5 would
    be left. With ``unseen_only`` a star runs over the L - 2 languages that are in neither place
    of the pair: L - 2, L - 2 and (L - 2)² cells, which the model has not been fine-tuned on in
    the starred place.

    Parameters
    ----------
    conditions : mapping
        Name → ``(L, L, n)`` or ``(S, L, L, n)``, in [0, 1]: the model fine-tuned on the pair, and
        its baselines.
    pair : tuple of str
        l1, the language of part 1 in fine-tuning, and l2, that of part 2.
    languages, groups, n_resamples, level, seed
        As in `cells`.

    Returns
    -------
    DataFrame
        ``pair`` ("en-de"), ``row`` (`PAIRS_ROWS`), ``condition``, ``n_cells``, ``score``, ``low``,
        ``high``; then, where there are two conditions or more, ``gain``, ``gain_low`` and
        ``gain_high``: by how much the first condition is above the row's own, paired (0 in
        its own rows).

    Raises
    ------
    MixingError
        As `cells`; a language of the pair that the grid lacks, or one twice; no conditions, or
        unequal shapes.
    """
    if not conditions:
        raise MixingError("there is no model to average: give the scores of one")
    inside = pair_cells(languages, pair, unseen_only=unseen_only)
    grids = {name: checked_scores(own, languages, name) for name, own in conditions.items()}
    if len(shapes := {own.shape for own, _ in grids.values()}) > 1:
        raise MixingError(
            f"the shapes {', '.join(map(str, sorted(shapes)))} of {', '.join(grids)} differ: all "
            "must be of the same examples"
        )
    n = next(iter(shapes))[-1]
    drawn = Resamples.draw(n, groups, n_resamples, seed)
    # an average over cells first, so that only five rows are resampled
    values = {
        name: np.array([own[mask].mean(axis=0) for mask in inside.values()])
        for name, (own, _) in grids.items()
    }
    by_seed = {
        name: np.stack([each[:, mask].mean(axis=(1, 2)) for mask in inside.values()], axis=1)
        for name, (_, each) in grids.items()
    }
    first, first_seeds = next(iter(values.values())), next(iter(by_seed.values()))
    tables = []
    for name, own in values.items():
        low, high = percentile_ends(drawn.means(own), level, by_seed[name])
        table = pd.DataFrame(
            {
                "pair": "-".join(pair),
                "row": list(inside),
                "condition": name,
                "n_cells": [int(mask.sum()) for mask in inside.values()],
                "score": own.mean(axis=-1),
                "low": low,
                "high": high,
            }
        )
        if len(values) > 1:
            apart = drawn.means(first - own)
            if own is not first:
                apart = apart - seed_errors(by_seed[name], n_resamples, stream=1)
            low, high = percentile_ends(apart, level, None if own is first else first_seeds)
            table = table.assign(gain=(first - own).mean(axis=-1), gain_low=low, gain_high=high)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)
