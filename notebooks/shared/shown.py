"""How notebooks show numbers, and what several of their figures have."""

import itertools
import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from IPython.display import Markdown
from matplotlib.colors import CenteredNorm, Normalize
from matplotlib.patches import Patch


def with_interval(table: pd.DataFrame, value: str, form: str = ".2f") -> list[str]:
    """A column with the interval in ``low`` and ``high``, as text: "0.85 (0.80 to 0.90)"."""
    return [
        f"{number:{form}} ({low:{form}} to {high:{form}})"
        for number, low, high in table[[value, "low", "high"]].to_numpy()
    ]


def in_points(value: float, low: float | None = None, high: float | None = None) -> str:
    """A share in points: 0.211 as "21.1", with an interval "21.1 (18.0 to 24.2)".

    NaN is "no model": what a table of IGAP has where none has the training error asked for.
    """
    if np.isnan(value):
        return "no model"
    points = f"{round(100 * value, 1) + 0.0:.1f}"  # + 0.0: no "-0.0"
    return points if low is None else f"{points} ({in_points(low)} to {in_points(high)})"


def as_points(table: pd.DataFrame, value: str = "score") -> pd.Series:
    """A column with its interval, as text `in_points`.

    The ends are in ``<value>_low`` and ``<value>_high`` or, without these, ``low`` and ``high``.
    """
    start = f"{value}_" if f"{value}_low" in table else ""
    rows = table[[value, f"{start}low", f"{start}high"]].to_numpy()
    return pd.Series([in_points(*row) for row in rows], index=table.index, dtype=object)


def moved(value: float, low: float, high: float) -> str:
    """A change with its interval in words: "rises by 0.20 (0.18 to 0.22)"."""
    if low <= 0 <= high:
        return f"is not seen to change ({low:+.2f} to {high:+.2f})"
    least, most = sorted((abs(low), abs(high)))
    return f"{'rises' if low > 0 else 'falls'} by {abs(value):.2f} ({least:.2f} to {most:.2f})"


def listed(items: Sequence[str]) -> str:
    """Items in a row: "a, b and c"."""
    return " and ".join(filter(None, (", ".join(items[:-1]), *items[-1:])))


#: As many numbers as a sentence has at most.
MOST_NUMBERS = 6


def _told(table: pd.DataFrame) -> pd.DataFrame:
    """With the columns ``told`` and ``moved`` where there are a value and its ends."""
    value = next((name for name in ("value", "r", "score") if name in table), None)
    if not value or not {"low", "high"} <= set(table):
        return table
    rows = table[[value, "low", "high"]].to_numpy(dtype=float)
    return table.assign(told=with_interval(table, value), moved=[moved(*row) for row in rows])


def sentences(
    head: str, *parts: tuple[str, pd.DataFrame] | tuple[str, pd.DataFrame, str]
) -> Markdown:
    """Text that is computed: of each (sentence, table) one sentence per row.

    Columns stand in braces; of a table with ``value``, ``r`` or ``score`` and its ends also
    ``{told}``, "0.85 (0.80 to 0.90)", and ``{moved}`` (`moved`). What stands in brackets is said of
    each row within one sentence: "LD is [{told} in {model}]." of two rows, "LD is 0.9 (0.8 to 1.0)
    in A and 0.7 (0.6 to 0.8) in B."; with the name of a column as third, one sentence per value of
    it. Rows with more than `MOST_NUMBERS` in all are lines of a list.
    """
    said = [head]
    for sentence, table, *by in parts:
        before, *within = re.split(r"[][]", sentence)
        table = _told(table)
        groups = [rows for _, rows in table.groupby(by[0], sort=False)] if by else [table]
        for rows in (
            rows_of_group.to_dict("records") for rows_of_group in groups if len(rows_of_group)
        ):
            if within:
                items, start = [within[0].format_map(x) for x in rows], before.format_map(rows[0])
                text = f"{start}{listed(items)}{within[1]}"
                if len(re.findall(r"(?<=[ (])[+−-]?\d", text)) > MOST_NUMBERS:
                    text = "\n- ".join([f"{start.rstrip(': ')}:\n", *items]) + f"{within[1]}\n\n"
                said.append(text)
            else:
                said += [sentence.format_map(row) for row in rows]
    return Markdown(" ".join(said))


def joint_order(table: pd.DataFrame, *columns: str) -> list[list]:
    """What each of some columns holds, in one order for all of them: that of the table."""
    names = dict.fromkeys(itertools.chain.from_iterable(table[column] for column in columns))
    return [[name for name in names if name in set(table[column])] for column in columns]


def framed_handle(label: str) -> Patch:
    """The frame of a cell, for a legend."""
    return Patch(facecolor="white", edgecolor="black", label=label)


def scale_about(values: pd.Series, middle: float = 0, least: float = 0.1) -> Normalize:
    """A scale about a middle that holds all values, never so narrow that noise looks vivid."""
    return CenteredNorm(middle, max(least, (values - middle).abs().max()))
