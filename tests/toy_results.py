"""Kinds of results that cost nothing, for the tests of the loop, the ledger and the cluster."""

import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from notebooks.run import gathering
from xlx.results import ledger, provenance, work
from xlx.results.ledger import Ledger


def environment() -> dict[str, str | int]:
    """Stands for `provenance.environment`, so that a process without torch is there in a second."""
    return dict.fromkeys(provenance.PROVENANCE, "x") | {"threads": 1}


def squares(*numbers: int) -> Iterator[dict[str, np.ndarray]]:
    """The square of each number."""
    for number in numbers:
        yield {"square": np.array([number**2])}


def table(rows: int) -> pd.DataFrame:
    """Rows of several types."""
    numbers = np.arange(rows)
    return pd.DataFrame(
        {
            "name": [f"row {i}" for i in numbers],
            "count": numbers,
            "share": np.where(numbers == 0, np.nan, numbers / max(rows, 1)),
            "even": numbers % 2 == 0,
        }
    )


def counted(folder: str, number: int) -> dict[str, np.ndarray]:
    """The number; each call leaves a file, so that a test can count them."""
    (Path(folder) / f"{number}-{time.monotonic_ns()}").touch()
    return {"number": np.array([number])}


def slow(number: int, seconds: float) -> dict[str, np.ndarray]:
    """The number and the process, after a while."""
    time.sleep(seconds)
    return {"number": np.array([number])}


def sized(numbers: int, text: str) -> dict[str, np.ndarray]:
    """So many numbers, for a text that is not looked at."""
    return {"numbers": np.zeros(numbers)}


def failing(number: int) -> dict[str, np.ndarray]:
    """The number, but for 3."""
    if number == 3:
        raise ValueError("3 cannot be had")
    return {"number": np.array([number])}


SQUARES = work.Kind("toy-squares", squares)
TABLE = work.Kind("toy-table", table)
COUNTED = work.Kind("toy-counted", counted)
SIDE = work.Kind("toy-side", counted, side_by_side=True)
SLOW = work.Kind("toy-slow", slow)
SIZED = work.Kind("toy-sized", sized)
FAILING = work.Kind("toy-failing", failing)


def write_ledger(
    root: Path, entries: Iterable[ledger.Entry], lens_of: Mapping[str, str]
) -> list[Path]:
    """Write a ledger of these entries and no others; the files, sorted. What is the same stays."""
    (root / ledger.ASKERS).unlink(missing_ok=True)
    (root / ledger.STAMPS).unlink(missing_ok=True)
    return gathering.write_shards(root, entries, lens_of, instead_of=Ledger(root).files())
