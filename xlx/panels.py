"""What figures of several lenses share: looks of a few things, checks of a table, ink on colour.

As in `plots`, nothing is computed here but where and how to draw.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib import patheffects
from matplotlib.patches import Rectangle

from xlx.languages import LANGUAGES

_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#000000", "#56B4E9")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_DASHES = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (7, 2)), (0, (3, 1, 1, 1, 1, 1)))


def distinct_looks(keys: Sequence[str], of_what: str) -> dict[str, dict[str, object]]:
    """A colour, a marker and a dash for each of a few things."""
    if len(keys) > len(_COLOURS):
        raise ValueError(
            f"{len(keys)} {of_what} cannot be told apart by {len(_COLOURS)} colours: draw "
            f"{len(_COLOURS)} or fewer in a figure"
        )
    looks = zip(_COLOURS, _MARKERS, _DASHES, strict=True)
    return {
        key: {"color": colour, "marker": marker, "linestyle": dash}
        for key, (colour, marker, dash) in zip(keys, looks, strict=False)
    }


def check_known(found: Sequence[str], known: Mapping[str, object], column: str) -> None:
    """Raise ValueError for what a figure has no place for."""
    if strange := [each for each in dict.fromkeys(found) if each not in known]:
        raise ValueError(
            f"column {column!r} has {', '.join(map(repr, strange))}; it may have "
            f"{', '.join(map(repr, known))}"
        )


def check_once(table: pd.DataFrame, *keys: str) -> None:
    """Raise ValueError where two rows would be drawn in one place."""
    twice = table[table.duplicated(list(keys))]
    if len(twice):
        place = ", ".join(f"{key} {twice.iloc[0][key]}" for key in keys)
        raise ValueError(f"there is more than one row of {place}: draw one of them")


def rows_of(table: pd.DataFrame, **keys: object) -> pd.DataFrame:
    """The rows that have these values."""
    for name, value in keys.items():
        table = table[table[name] == value]
    return table


def ink(colour: np.ndarray) -> str:
    """Black or white, whichever has more contrast with a colour (WCAG's relative luminance)."""
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    return "black" if linear[:3] @ (0.2126, 0.7152, 0.0722) > 0.179 else "white"


def frame(corner: tuple[int, int]) -> Rectangle:
    """A frame in a cell: black lined with white shows on dark and bright cells alike."""
    return Rectangle(
        (corner[0] + 0.05, corner[1] + 0.05), 0.9, 0.9, fill=False, edgecolor="black",
        linewidth=1, zorder=3,
        path_effects=[patheffects.withStroke(linewidth=2.6, foreground="white")],
    )  # fmt: skip


def language_label(code: str) -> str:
    """ "de" as "de German"; what is no language stays as it is."""
    return f"{code} {LANGUAGES[code].name}" if code in LANGUAGES else code
