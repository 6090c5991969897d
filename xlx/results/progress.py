"""Progress bars, where someone watches; a line of what is to come, where a record is made."""

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from tqdm import tqdm
from tqdm.auto import tqdm as tqdm_auto

from xlx.results import store
from xlx.results.settings import current

Item = TypeVar("Item")


def in_notebook() -> bool:
    """Whether a notebook is open in JupyterLab: its server, unlike papermill, names a session."""
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
        items,
        desc=what,
        total=total,
        unit=f" {unit}" if unit else "it",
        disable=not watched(),
        leave=None,  # a bar within another one goes when it is through
    )


def forecast(items: Iterable[Item], what: str, total: int) -> Iterator[Item]:
    """What takes long, under a bar; after item 1, 2, 4 ... a line in the file ``XLX_SAY``.

    It says the minutes and the disk still to come, by those so far.
    """
    began, free = time.time(), store.free_disk(current().cache)
    with bar(what=what, total=total) as shown:
        for done, item in enumerate(items, 1):
            yield item
            shown.update()
            spent, more = time.time() - began, (total - done) / done
            if done & (done - 1) == 0 and spent * more > 60:  # less is not worth a word
                disk = max(0, free - store.free_disk(current().cache)) * more / 1e9
                with contextlib.suppress(OSError), open(os.environ.get("XLX_SAY", ""), "a") as file:
                    file.write(
                        f"{what}: {done} of {total}, about {spent * more / 60:.0f} min and "
                        f"{disk:.1f} GB to come\n"
                    )
