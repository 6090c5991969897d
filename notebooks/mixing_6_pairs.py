"""Fine-tuning on a pair of languages: the averages of Tables 4 and 9."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from printed.mixing_claims import PAIRS_ROWS, PrintedScores
from shared.claims import compared
from shared.controls import only
from xlx.experiment.grids import Grid, grid
from xlx.measures.mixing import averages, checked_scores
from xlx.subjects.jobs import Job, Recipe
from xlx.text.examples import Examples


def mixed_grids(
    model: str,
    learnt: Mapping[str, Examples],
    sets: Mapping[str, Examples],
    recipe: Recipe,
    seeds: Sequence[int],
    *,
    part: str | None = None,
) -> dict[str, list[Grid]]:
    """By what a model is taught ("en-de"): one grid per seed.

    With a ``part`` ("second") it is taught and asked with that part alone, in the language that it
    has in the pair and in the cell.
    """
    if part is not None:
        sets = {code: only(whole, part) for code, whole in sets.items()}
        learnt = {name: only(taught, part) for name, taught in learnt.items()}
    by_pair = {}
    for name, taught in learnt.items():
        held_out = {"learnt": taught.at(range(min(100, len(taught))))}
        by_pair[name] = grid([Job(model, taught, held_out, recipe, seed=x) for x in seeds], sets)
    return by_pair


def pair_cells(
    languages: Sequence[str], pair: tuple[str, str], *, unseen_only: bool = False
) -> dict[str, np.ndarray]:
    """Which cells each row of Tables 4 and 9 averages, boolean ``(L, L)``; * is all languages."""
    first, two = (np.array([code == language for code in languages]) for language in pair)
    star = ~(first | two) if unseen_only else np.ones(len(languages), dtype=bool)
    sides = {"l1": first, "l2": two, "*": star}
    return {
        row: np.outer(*(sides[side] for side in row.split("-", maxsplit=1))) for row in PAIRS_ROWS
    }


def _by_rows(
    conditions: Mapping[str, np.ndarray], languages: Sequence[str], inside: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    each = {name: checked_scores(x, languages, -1)[1] for name, x in conditions.items()}
    rows = {name: [x[:, mask].mean(axis=1) for mask in inside.values()] for name, x in each.items()}
    return {name: np.stack(x, axis=1) for name, x in rows.items()}


def pair_table(
    conditions: Mapping[str, np.ndarray],
    languages: Sequence[str],
    pair: tuple[str, str],
    groups: Sequence[int] | None = None,
    *,
    unseen_only: bool = False,
) -> pd.DataFrame:
    """The averages of Tables 4 and 9 with intervals, for several models on the same examples.

    The paper says "the average performance over all languages"; this is that, taken literally.
    Table 1 bears it out: with the diagonal the whole grid of mBERT has
    (65.7 + 14 × 54.5) / 15 = 55.2, the baseline is printed as 55.3, and without it 54.5 would be
    left. With ``unseen_only`` a star runs over the L - 2 languages that are in neither place of the
    pair, which the model has not been fine-tuned on in the starred place.

    ``conditions`` are values of examples, ``(L, L, n)`` or with seeds before, of the model
    fine-tuned on the pair and of its baselines, by name; ``pair`` is l1, the language of part 1 in
    fine-tuning, and l2, that of part 2. A row has its ``pair`` ("en-de"), ``row`` (`PAIRS_ROWS`),
    ``condition`` and ``n_cells``; ``gain``, ``gain_low`` and ``gain_high`` are by how much the
    first condition is above the row's, paired (0 in its own), and ``told`` on which side of zero
    that is (`claims.compared`).
    """
    inside = pair_cells(languages, pair, unseen_only=unseen_only)
    values = _by_rows(conditions, languages, inside)
    first, tables = next(iter(values.values())), []
    about = {"pair": "-".join(pair), "row": list(inside)}
    about["n_cells"] = [int(mask.sum()) for mask in inside.values()]
    for name, each in values.items():
        table = averages(each, groups).assign(**about, condition=name)
        gain = compared(first, each, groups)
        gain.loc[:, ["score", "low", "high"]] *= each is not first
        table[["gain", "gain_low", "gain_high", "told"]] = gain
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def pair_tables(
    asked: Mapping[str, tuple[Mapping[str, Mapping[str, np.ndarray]], bool]],
    languages: Sequence[str],
    groups: Sequence[int],
) -> dict[str, pd.DataFrame]:
    """`pair_table` of several pairs ("en-de"), by what is asked.

    ``asked``: name → values of each pair by condition, and whether of unseen languages alone.
    """
    return {
        what: pd.concat(
            pair_table(values, languages, tuple(pair.split("-")), groups, unseen_only=unseen)
            for pair, values in by_pair.items()
        )
        for what, (by_pair, unseen) in asked.items()
    }


def by_row(table: pd.DataFrame, shown: pd.Series, columns: str | list[str]) -> pd.DataFrame:
    """What is ``shown`` of a table, by row of Tables 4 and 9; pairs in columns."""
    wide = table.assign(shown=shown).pivot(index="row", columns=columns, values="shown")
    return wide.loc[list(PAIRS_ROWS), list(dict.fromkeys(table["pair"]))]


def printed_rows(pairs: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Table 9 for the pairs that are in it: fine-tuned, baseline and gain by row."""
    nine, rows = PrintedScores().nine, {}
    for pair in map(tuple, pairs):
        if pair in nine.index:
            printed = {x: nine.loc[pair, x] for x in ("fine-tuned", "baseline")}
            printed["gain"] = (printed["fine-tuned"] - printed["baseline"]).round(1)
            rows |= {("-".join(pair), condition): x for condition, x in printed.items()}
    return pd.DataFrame(rows).reindex(list(PAIRS_ROWS)) if rows else pd.DataFrame()
