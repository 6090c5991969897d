"""Columns of a table as numbers and codes, checked for what is missing."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

#: Differences of floats below this are none.
SLACK = 1e-12
#: Below this share of their size, numbers that differ are taken for equal.
ROUNDING = 1e-10
#: Two-sided 95 %.
LEVEL = 0.95


def require(table: pd.DataFrame, columns: Sequence[str]) -> None:
    """Raise ValueError for a column that is not there, or in which a value is missing."""
    for column in columns:
        if column not in table:
            raise ValueError(
                f"there is no column {column!r}: the table has {', '.join(map(str, table.columns))}"
            )
        missing = table[column].isna().to_numpy()
        if missing.any():
            raise ValueError(
                f"{column} is missing in {missing.sum()} of {len(table)} rows, first in row "
                f"{table.index[missing.argmax()]!r}: leave these rows out"
            )


def numbers(table: pd.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """Columns of a table as floats, ``(n_rows, n_columns)``.

    Raises ValueError as `require`, and for values that are infinite or no numbers.
    """
    require(table, columns)
    try:
        values = table[list(columns)].to_numpy(float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"no numbers in {' or '.join(columns)}: {error}") from error
    for column, infinite in zip(columns, np.isinf(values).T, strict=True):
        if infinite.any():
            raise ValueError(
                f"{column} is infinite in {infinite.sum()} of {len(table)} rows, first in row "
                f"{table.index[infinite.argmax()]!r}"
            )
    return values


def language_codes(table: pd.DataFrame, columns: Sequence[str]) -> tuple[np.ndarray, int]:
    """Number the names in some columns, a name alike in all: ``(n_rows, n_columns)``, how many."""
    require(table, columns)
    text = table[list(columns)].astype(str).to_numpy(str)
    names, codes = np.unique(text, return_inverse=True)
    return codes.reshape(text.shape), len(names)
