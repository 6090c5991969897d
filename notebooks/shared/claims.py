"""What a notebook claims, as data: a row for each number that its "In short" says.

The values are computed from the notebook's own tables, so that a changed result changes the row.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from IPython.display import display

from printed.printed_tables import VERDICTS
from xlx.measures import mixing
from xlx.measures.igap import crossed_interval
from xlx.results import store

ENDS = ["value", "low", "high"]
HELD, UNHELD, UNTOLD = VERDICTS[0], *VERDICTS[2:]
#: What a claim says, and what lies on the other side of it.
OPPOSITE = {"low": "high", "high": "low", "<": ">", ">": "<", "above": "below", "below": "above"}


def stated(
    table: pd.DataFrame | pd.Series, cell: str, claim: str, value: str = "score", holds: str = ""
) -> pd.DataFrame:
    """A claim for each row of a table: ``claim, value, low, high, verdict, cell``.

    Parameters
    ----------
    table : with the column ``value``, and its interval in ``low`` and ``high`` if it has one; a
        series is taken for that column, its index for the others.
    cell : what the table is called in its cell of the notebook.
    claim : with names of columns in braces: "LD of {model}".
    holds : what is said of the columns, "low > 0.5"; without it a number is told and nothing said.
        It "does not hold" where the interval lies on the other side, "high < 0.5"; else it cannot
        be told.
    """
    if isinstance(table, pd.Series):
        table = table.rename(value).reset_index()
    said = [claim.format_map(row) for row in table.to_dict("records")]
    against = re.sub(r"\b(?:low|high|above|below)\b|[<>]", lambda x: OPPOSITE[x[0]], holds)
    sides = [table.eval(x).astype(bool) for x in (holds, against) if x]
    held = np.select(sides, [HELD, UNHELD], UNTOLD) if holds else ""
    ends = table.rename(columns={value: "value"}).reindex(columns=ENDS).to_numpy(dtype=float)
    return pd.DataFrame(ends, columns=ENDS).assign(claim=said, verdict=held, cell=cell)


# --- differences that stay ------------------------------------------------------------------------


def one_sign(each: np.ndarray) -> np.ndarray:
    """Whether means over seeds, ``(S, ...)``, keep their sign whichever seed is left out.

    Of one seed there is none to leave out.
    """
    rest = np.sign(each.sum(axis=0) - each)
    return (np.abs(rest.sum(axis=0)) == len(each)) | (len(each) == 1)


def told_sides(ends: np.ndarray, sure: np.ndarray) -> np.ndarray:
    """Of intervals ``(draws, K, 2)`` "above" zero, or "below", in all draws and where ``sure``."""
    signs = np.sign(ends).sum(axis=(0, 2))
    told = sure & (np.abs(signs) == 2 * len(ends))
    return np.where(told, np.where(signs > 0, "above", "below"), UNTOLD)


def crossed(values: np.ndarray, groups: np.ndarray, above: float = 0) -> tuple[float | str, ...]:
    """`igap.crossed_interval` of ``(S, n)``, and its side of ``above`` without any one seed."""
    ends, each = crossed_interval(values, groups), np.atleast_2d(values).mean(axis=1) - above
    return *ends, told_sides(np.array([[ends[1:]]]) - above, one_sign(each)).item()


def compared(one: np.ndarray, other: np.ndarray, groups: np.ndarray) -> pd.DataFrame:
    """`mixing.averages` of ``(S, K, n)`` less another, and ``told``.

    That is "above" zero, "below", or that it cannot be told: where the interval holds zero, or the
    mean changes sign without one of the fine-tunings of either side.
    """
    each, less = one.mean(axis=-1), other.mean(axis=-1)
    sure = one_sign(each - less.mean(axis=0)) & one_sign(each.mean(axis=0) - less)
    table = mixing.averages(one, groups, other)
    return table.assign(told=told_sides(table[["low", "high"]].to_numpy()[None], sure))


def checked(tables: Mapping[str, tuple[pd.DataFrame, str]]) -> pd.DataFrame:
    """How many differences a notebook looks at, calls real, and which of these turn.

    ``tables``: name → a table with ``low``, ``high`` and ``told``, and a row's name with columns in
    braces. Real is an interval without zero. One that turns changes its sign without one of the
    fine-tunings: it is ``told`` as "cannot be told".
    """
    rows = {}
    for name, (table, form) in tables.items():
        real = table[(table["low"] > 0) | (table["high"] < 0)]
        turn = real[real["told"] == UNTOLD]
        which = "; ".join(form.format_map(row) for row in turn.to_dict("records"))
        rows[name] = len(table), len(real), len(turn), which or "none"
    columns = ["checked", "without zero", "turn", "which"]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns)


def tell(*parts: pd.DataFrame) -> None:
    """Show all claims of a notebook; a run by the runner writes them to a file as well.

    It is ``claims/<notebook>.csv`` beside the executed notebook, and there where figures are
    written.
    """
    table = pd.concat(parts).set_index("claim")[[*ENDS, "verdict", "cell"]]
    name, journal = os.environ.get("XLX_NOTEBOOK"), os.environ.get("XLX_JOURNAL")
    if name and journal and os.environ.get("XLX_FIGURES", "none") != "none":
        path = Path(journal).parent / "claims" / f"{name}.csv"
        store.write_whole(path, table.to_csv().encode())
    with pd.option_context("display.max_colwidth", None):
        display(table.assign(**{end: table[end].map(_text) for end in ENDS}))


def _text(number: float) -> str:
    """A number to four places, without zeros at its end; nothing for a missing one."""
    return "" if pd.isna(number) else f"{number:,.4f}".rstrip("0").rstrip(".")
