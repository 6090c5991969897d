"""Fine-tuning on a pair of languages: the averages of Tables 4 and 9."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from printed.mixing_claims import PAIRS_ROWS
from shared.controls import only
from shared.mixing_tables import mean_grids
from xlx.experiment.grids import Grid, grid, groups_of
from xlx.measures.mixing import Resamples, checked_scores, percentile_ends, seed_errors
from xlx.subjects.jobs import Job, Recipe
from xlx.text.examples import Examples


def mixed_grids(
    model: str, learnt: Mapping[str, Examples], sets: Mapping[str, Examples], recipe: Recipe,
    seeds: Sequence[int], *, part: str | None = None,
) -> dict[str, Grid]:  # fmt: skip
    """By what a model is taught ("en-de"): its grid, the mean over seeds.

    With a ``part`` ("second") it is taught and asked with that part alone, in the language that it
    has in the pair and in the cell.
    """
    groups = groups_of(next(iter(sets.values())))  # a part alone may not show them
    if part is not None:
        sets = {code: only(whole, part) for code, whole in sets.items()}
    by_pair = {}
    for name, taught in learnt.items():
        taught = taught if part is None else only(taught, part)
        held_out = {"learnt": taught.at(range(min(100, len(taught))))}
        jobs = [Job(model, taught, held_out, recipe, seed=seed) for seed in seeds]
        (mean,) = mean_grids(grid(jobs, sets)).values()
        by_pair[name] = replace(mean, model=f"fine-tuned on {name}", groups=groups)
    return by_pair


def pair_cells(
    languages: Sequence[str], pair: tuple[str, str], *, unseen_only: bool = False
) -> dict[str, np.ndarray]:
    """Which cells each row of Tables 4 and 9 averages, boolean ``(L, L)``; * is all languages."""
    one, two = (np.array([code == language for code in languages]) for language in pair)
    star = ~(one | two) if unseen_only else np.ones(len(languages), dtype=bool)
    sides = {"l1": one, "l2": two, "*": star}
    return {
        row: np.outer(*(sides[side] for side in row.split("-", maxsplit=1))) for row in PAIRS_ROWS
    }


def pair_table(
    conditions: Mapping[str, np.ndarray], languages: Sequence[str], pair: tuple[str, str],
    groups: Sequence[int] | None = None, *, unseen_only: bool = False, n_resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
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

    The paper says "the average performance over all languages"; this is that, taken literally.
    Table 1 bears it out: with the diagonal the whole grid of mBERT has
    (65.7 + 14 × 54.5) / 15 = 55.2, the baseline is printed as 55.3, and without it 54.5 would be
    left. With ``unseen_only`` a star runs over the L - 2 languages that are in neither place of the
    pair, which the model has not been fine-tuned on in the starred place.

    ``conditions`` are the scores of the model fine-tuned on the pair and of its baselines, by name;
    ``pair`` is l1, the language of part 1 in fine-tuning, and l2, that of part 2; other options as
    in `within_across`. A row has its ``pair`` ("en-de"), ``row`` (`PAIRS_ROWS`), ``condition`` and
    ``n_cells``; ``gain``, ``gain_low`` and ``gain_high`` are by how much the first condition is
    above the row's, paired (0 in its own).
    """
    inside = pair_cells(languages, pair, unseen_only=unseen_only)
    grids = {name: checked_scores(scores, languages) for name, scores in conditions.items()}
    drawn = Resamples.draw(next(iter(conditions.values())).shape[-1], groups, n_resamples, seed)
    # an average over cells first, so that only five rows are resampled
    values = {
        name: np.array([scores[mask].mean(axis=0) for mask in inside.values()])
        for name, (scores, _) in grids.items()
    }
    by_seed = {
        name: np.stack([each[:, mask].mean(axis=(1, 2)) for mask in inside.values()], axis=1)
        for name, (_, each) in grids.items()
    }
    first, first_seeds = next(iter(values.values())), next(iter(by_seed.values()))
    n_cells, tables = [int(mask.sum()) for mask in inside.values()], []
    for name, scores in values.items():
        gains = drawn.means(first - scores)
        if scores is not first:
            gains = gains - seed_errors(by_seed[name], n_resamples, stream=1)
        numbers = {"score": (scores.mean(axis=-1), drawn.means(scores), by_seed[name])}
        seeds = None if scores is first else first_seeds
        numbers["gain"] = ((first - scores).mean(axis=-1), gains, seeds)
        columns = {"pair": "-".join(pair), "row": list(inside), "condition": name}
        table = pd.DataFrame(columns | {"n_cells": n_cells})
        for number, (estimate, resamples, each) in numbers.items():
            start = "" if number == "score" else "gain_"
            table[number] = estimate
            table[f"{start}low"], table[f"{start}high"] = percentile_ends(resamples, each)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def pair_tables(
    grids: Mapping[str, Grid], others: Mapping[str, Grid], condition: str, **options: Any
) -> pd.DataFrame:
    """`pair_table` of the pairs ("en-de") of ``others``, which are called ``condition``."""
    tables = []
    for name, other in others.items():
        own = grids[name]
        scores = {"fine-tuned": own.scores["accuracy"], condition: other.scores["accuracy"]}
        about = (own.languages, tuple(name.split("-")), own.groups)
        tables.append(pair_table(scores, *about, **options))
    return pd.concat(tables)


def by_row(table: pd.DataFrame, shown: pd.Series, columns: str | list[str]) -> pd.DataFrame:
    """What is ``shown`` of a table, by row of Tables 4 and 9; pairs in columns."""
    wide = table.assign(shown=shown).pivot(index="row", columns=columns, values="shown")
    return wide.loc[list(PAIRS_ROWS), list(dict.fromkeys(table["pair"]))]
