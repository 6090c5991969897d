"""One look for all figures: sizes, palettes by model and by measure, and how a figure is kept.

A model (`MODELS`) or measure (`MEASURES`) has one colour, marker and dash wherever it is drawn.
Colours are those of Okabe and Ito, which the colour-blind can tell apart.
"""

import base64
import io
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from itertools import product
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib import patheffects
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from xlx.results import checks, paths
from xlx.text.languages import LANGUAGES

STYLE = Path(__file__).with_name("xlx.mplstyle")
#: The width of a notebook's column in inches (957 px at 110 dpi), and the smallest type in points.
WIDTH = 8.7
TINY, SMALL = 7.3, 7.5
CHANCE = 0.5
#: What a name says beside that of its model: its network before training.
_UNTRAINED = re.compile(r"^untrained, |, untrained$|@untrained$|/step-0+$")
#: Colours of maps: bright is high; where the middle means something, orange is below it and purple
#: above.
HIGH, ABOUT = "cividis", "PuOr"
MISSING = "0.85"
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
_COLOURS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, BLACK, SKY)
_MARKERS = ("o", "s", "^", "D", "v", "<", ">")
_DASHES = ("-", "--", "-.", (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (7, 2)), (0, (3, 1, 1, 1, 1, 1)))
#: White around small text, so that it can be read across a line.
HALO = (patheffects.withStroke(linewidth=2, foreground="white"),)
GUESSING = {"color": "0.4", "linewidth": 1, "linestyle": (0, (1, 2))}
ZERO = {"color": "0.4", "linewidth": 1, "linestyle": "-"}
#: In all figures a twin before training has its model's colour and marker, and a bag is grey.
TWIN = {"markerfacecolor": "white", "linestyle": ":"}
BAG = {"color": "0.45", "linewidth": 1.2, "linestyle": (0, (4, 2))}
Look = dict[str, object]


@checks.typed()
def look(
    colour: str | Sequence[float] | np.ndarray,
    marker: str,
    dash: object = "-",
    *,
    hollow: bool = False,
    **options: object,
) -> Look:
    """How points and lines of a thing are drawn; it has to differ in two ways from all others.

    ``options``: others of matplotlib's lines.
    """
    face = "white" if hollow else colour
    return {
        "color": colour,
        "marker": marker,
        "linestyle": dash,
        "markerfacecolor": face,
        **options,
    }


#: The miniatures; the models of the papers look like the miniature that stands for them.
_MEMBERS = {
    "mini-mbert": look(PURPLE, "^", "-."),
    "mini-xlmr": look(ORANGE, "o"),
    "mini-xlmr-large": look("#8A5A00", "D", (0, (5, 1, 1, 1))),
    "mini-xlm": look(SKY, "v", (0, (7, 2))),
    "mini-infoxlm": look(GREEN, "s", "--"),
    "mini-llama": look(BLACK, "<", (0, (1, 1))),
    "mini-llama-large": look("0.45", ">", (0, (3, 1, 1, 1, 1, 1))),
    "mini-llama-en80": look("#0B4F3A", "P", "--"),
    "mini-llama-en95": look("#7A3E68", "X", "-."),
}
MODELS = _MEMBERS | {
    "multilingual-e5-small": look(BLUE, "o"),
    "gemma-3-270m": look("#882255", "D", "-."),
    "all-MiniLM-L6-v2": look("#555599", "v", "--"),
    "mBERT": _MEMBERS["mini-mbert"],
    "XLM-R": _MEMBERS["mini-xlmr"],
    "XLM-R_large": _MEMBERS["mini-xlmr-large"],
    "InfoXLM": _MEMBERS["mini-infoxlm"],
    "embeddinggemma-300m": look("#999933", "v", (0, (7, 2))),
    "qwen2.5-coder-0.5b-instruct": look("#44AA99", ">", "--"),
    "qwen2.5-coder-1.5b-instruct": look("#1F6F66", "<", "-."),
    "bag of subwords": look(BAG["color"], "*", BAG["linestyle"]),
    "printed": look(BLACK, "D", hollow=True),
}
MEASURES = {
    "LD": look(VERMILION, "o"),
    "MD": look(BLUE, "s", "--"),
    "MD, like length": look(SKY, "D", "-."),
    "retrieval": look(GREEN, "^", ":"),
    "within": look(BLUE, "o"),
    "across": look(VERMILION, "s", hollow=True),
    "easiest": look(BLUE, "o"),
    "hardest": look(VERMILION, "s", hollow=True),
    "printed": look(BLACK, "D", hollow=True),
    "recomputed": look(VERMILION, "X"),
}
NAMES = {
    "LD": "language discrimination (LD)",
    "MD": "meaning discrimination (MD)",
    "MD, like length": "MD among sentences of like length",
    "retrieval": "retrieval, top-1",
    "within": "within: both parts in the language",
    "across": "across: one part in another",
}


@checks.typed()
def looks(keys: Iterable[str], palette: Mapping[str, Look] = MODELS | MEASURES) -> dict[str, Look]:
    """A look for each key: that of the palette, or the first that no other key has.

    An untrained twin has that of its model, hollow and dotted. ValueError for more keys than can
    be told apart.
    """
    chosen = dict.fromkeys(keys)
    for key in chosen:
        model = _UNTRAINED.sub("", str(key))
        shown = palette.get(key, palette.get(model))
        if shown:
            checks.one_of("color", shown, f"part of the look of {key}:")
        if shown and model != key:
            shown = shown | TWIN
        if shown and shown not in chosen.values():
            chosen[key] = shown
    n = len(_COLOURS)
    free = [
        look(_COLOURS[i], _MARKERS[(i + turn) % n], _DASHES[(i + turn) % n])
        for turn, i in product(range(n), range(n))
    ]
    taken = {(held["color"], held["marker"]) for held in chosen.values() if held}
    free = [new for new in free if (new["color"], new["marker"]) not in taken]
    rest = [key for key, held in chosen.items() if held is None]
    if len(rest) > len(free):
        raise ValueError(
            f"{len(chosen)} series cannot be told apart by {n} colours and {n} markers: draw fewer"
        )
    return chosen | dict(zip(rest, free, strict=False))


@checks.typed()
def handle(label: str, shown: Look, **options: object) -> Line2D:
    """What a legend shows for a look: its marker, or a line where it has none."""
    points = {"linestyle": "none"} if shown.get("marker") else {}
    try:
        return Line2D([], [], label=label, **({"markersize": 4.5} | shown | points | options))
    except (ValueError, AttributeError, TypeError) as error:
        raise ValueError(f"the look of {label}: {' '.join(str(error).split())}") from error


def ink(colour: Sequence[float]) -> str:
    """Black or white, whichever has more contrast with a colour (at least 4.5:1)."""
    return "black" if luminance(colour) > 0.179 else "white"


def luminance(colour: Sequence[float]) -> float:
    """WCAG's relative luminance of an RGB colour."""
    c = np.asarray(colour)[:3]
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


@checks.typed()
def language_label(code: str) -> str:
    """ "de" as "de German", "fr-UN" as "fr-UN French"; what is no language stays as it is."""
    names = {"sw": "Swahili", "th": "Thai"} | {
        key: language.name for key, language in LANGUAGES.items()
    }
    return " ".join([code, *filter(None, [names.get(code.split("-")[0])])])


def styled(draw: Callable[..., Figure]) -> Callable[..., Figure]:
    """Draw under the one style, whatever is set outside; the docstring begins the figure's text."""

    @wraps(draw)
    def drawn(*arguments: object, **options: object) -> Figure:
        with plt.style.context(STYLE):
            figure = draw(*arguments, **options)
            figure.set_label((draw.__doc__ or "").partition("\n")[0])
            # The first figure loads the backend, and that of a notebook asks to be shown every
            # figure of a cell; the context would take the wish back, and the later ones be hidden.
            interactive = matplotlib.is_interactive()
        matplotlib.interactive(interactive)
        return figure

    return drawn


def alternative(figure: Figure) -> str:
    """What a figure shows, in words: its function's first line, panels, axes and legend."""
    seen = [axes for axes in figure.axes if axes.get_visible()]
    bars = [axes for axes in seen if axes.get_label() == "<colorbar>"]
    panels = [axes for axes in seen if axes not in bars]
    parts = {
        "Panels": [axes.get_title(loc="left") for axes in panels],
        "Horizontal": [figure.get_supxlabel(), *(axes.get_xlabel() for axes in panels)],
        "Vertical": [figure.get_supylabel(), *(axes.get_ylabel() for axes in panels)],
        "Colours": [axes.get_xlabel() for axes in bars],
        "Legend": [text.get_text() for legend in figure.legends for text in legend.get_texts()],
    }
    sentences = [figure.get_label()]
    for name, texts in parts.items():
        if distinct := dict.fromkeys(" ".join(text.split()) for text in texts if text):
            sentences.append(f"{name}: {'; '.join(distinct)}.")
    return " ".join(sentences).strip()


#: Two pictures look the same if no pixel differs by more than the first number (of 255 levels),
#: and no larger share of them than the second by more than `FAINT` levels: another processor moves
#: an edge by a fraction of a pixel, while a digit changes whole pixels.
VISIBLE = (24, 0.005)
FAINT = 2


def save(figure: Figure, name: str, profile: str = "mini") -> None:
    """Write ``<name>.pdf`` and ``.png`` with their `alternative` text, and show it in a notebook.

    Without ``XLX_FIGURES`` (`notebooks.run.runner` sets it; "none": no files at all) they go to
    ``build/figures/``: playing changes no committed figure. Another profile than mini has a folder
    within. Files stay as they are where the picture looks the same (`VISIBLE`).
    """
    with plt.style.context(STYLE):
        if (engine := figure.get_layout_engine()) is not None:
            engine.execute(figure)  # once, since it takes longer than to draw
            figure.set_layout_engine("none")
        text = alternative(figure)
        chosen = os.environ.get("XLX_FIGURES") or str(paths.BUILD / "figures")
        if chosen != "none":
            folder = Path(chosen) if profile == "mini" else Path(chosen) / profile
            folder.mkdir(parents=True, exist_ok=True)
            _write(figure, folder / name, text)
        if "ipykernel" in sys.modules:
            from IPython import get_ipython
            from IPython.display import display

            if get_ipython() is not None:
                png = base64.b64encode(_drawn(figure, "png", {"Software": None}, figure.dpi))
                shown = {"image/png": png.decode(), "text/plain": text}
                display(shown, raw=True, metadata={"image/png": {"alt": text}})
                plt.close(figure)  # so that it is not shown again


def _write(figure: Figure, path: Path, text: str) -> None:
    pdf, png = (path.with_name(f"{path.name}.{kind}") for kind in ("pdf", "png"))
    picture = _drawn(figure, "png", {"Software": None, "Description": text}, 200)
    if pdf.is_file() and png.is_file() and _same(png.read_bytes(), picture):
        return
    page = _drawn(figure, "pdf", {"CreationDate": None, "Subject": text}, 200)
    for file, content in ((pdf, page), (png, picture)):
        beside = file.with_name(f".{file.name}")
        beside.write_bytes(content)
        beside.replace(file)


def _drawn(figure: Figure, kind: str, metadata: dict[str, str | None], dpi: float) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, metadata=metadata, dpi=dpi)
    return buffer.getvalue()


def picture(figure: Figure) -> bytes:
    """A figure as PNG, as it stands on a page; it is closed."""
    with plt.style.context(STYLE):
        png = _drawn(figure, "png", {"Software": None}, 120)
    plt.close(figure)
    return png


def _same(before: bytes, now: bytes) -> bool:
    """Whether two PNG files look the same."""
    try:
        old, new = (255 * plt.imread(io.BytesIO(png), format="png") for png in (before, now))
    except (OSError, ValueError, SyntaxError):  # the file there is torn
        return False
    if old.shape != new.shape:
        return False
    apart = np.abs(np.rint(old) - np.rint(new)).max(2)
    most, share = VISIBLE
    return bool(apart.max() <= most and (apart > FAINT).mean() <= share)
