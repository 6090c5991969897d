"""What a notebook claims, as data: a row for each number that its "In short" says.

The values are computed from the notebook's own tables, so that a changed result changes the row.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
from IPython.display import display

from printed.printed_tables import verdict
from xlx.results import store

ENDS = ["value", "low", "high"]


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
    """
    if isinstance(table, pd.Series):
        table = table.rename(value).reset_index()
    said = [claim.format_map(row) for row in table.to_dict("records")]
    held = [verdict([part]) for part in table.eval(holds)] if holds else ""
    ends = table.rename(columns={value: "value"}).reindex(columns=ENDS).to_numpy(dtype=float)
    return pd.DataFrame(ends, columns=ENDS).assign(claim=said, verdict=held, cell=cell)


def one_sign(each: np.ndarray) -> np.ndarray:
    """Whether means over seeds, ``(S, ...)``, keep their sign whichever seed is left out."""
    rest = np.sign(each.sum(axis=0) - each)
    return np.abs(rest.sum(axis=0)) == len(each)


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
