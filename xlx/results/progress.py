"""Progress bars: shown where someone watches, silent where a record is made."""

import os
import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm
from tqdm.auto import tqdm as tqdm_auto

from xlx.results.settings import current


def in_notebook() -> bool:
    """Whether this is the kernel of a notebook that is open in JupyterLab.

    Jupyter's server names the session of the kernels it starts; papermill and nbval, which write a
    record, do not.
    """
    return "ipykernel" in sys.modules and bool(os.environ.get("JPY_SESSION_NAME"))


def watched() -> bool:
    """Whether someone sees a bar: as the settings say, else in a terminal and in JupyterLab."""
    shown = current().progress
    return sys.stderr.isatty() or in_notebook() if shown is None else shown


def bar(
    items: Iterable[Any] | None = None, what: str = "", *, total: int | None = None, unit: str = ""
) -> Any:
    """A bar over items, or one that is moved by ``update``; closes when the items end."""
    kind = tqdm_auto if in_notebook() else tqdm
    return kind(
        items, desc=what, total=total, unit=f" {unit}" if unit else "it", disable=not watched(),
        leave=None,  # a bar within another one goes when it is through
    )  # fmt: skip
