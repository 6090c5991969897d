"""The figures of lenses with most on them: they fit a notebook and can be read."""

import itertools

import matplotlib
import pandas as pd
import pytest

import abx_2_dynamics
from shared import mixing_figures, pair_regressions
from tests.plots.test_primitives import contrast
from tests.tables import banded, rows
from xlx.plots import style
from xlx.results.paths import FIGURES

matplotlib.use("agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.text import Text

MODELS, CODES, STEPS = ("mini-xlmr", "mini-infoxlm"), ("de", "fr", "zh"), (0, 10, 100)
TASKS = {"model": MODELS, "task": ("POS", "NER")}
LDMD = {"model": MODELS, "task": ("LD", "MD")}
THREE = ("LD", "MD", "MD, like length")


def made(value: str = "score", *more: str, seed: int = 0, **keys: tuple) -> pd.DataFrame:
    """Every combination of the keys, with a value, its interval, and more numbers."""
    return banded(rows(seed, value, *more, **keys), value)


#: Of each primitive the figure with most on it.
DRAWN = {
    "layers_beside_training": lambda: abx_2_dynamics.layers_beside_training(
        made(layer=(0, 1, 2), model=MODELS[:1], task=THREE).assign(checkpoint=0),
        made(checkpoint=STEPS, model=MODELS[1:], task=THREE),
        references={"a bag": rows(0, "score", **LDMD)},
    ),
    "checkpoint_layer_map": lambda: abx_2_dynamics.checkpoint_layer_map(
        made(checkpoint=tuple(range(0, 18_000, 1_000)), layer=(0, 1), model=MODELS, task=THREE)
    ),
    "learning_scatter": lambda: pair_regressions.learning_scatter(
        made("accuracy", "LD", language=CODES, **TASKS),
        banded(rows(3, "y", x=(0.1, 0.5, 0.9), **TASKS), "y"),
        dict.fromkeys(itertools.product(*TASKS.values()), "r = 1"),
        {"NER": "f1"},
    ),
    "grid_maps": lambda: mixing_figures.grid_maps(
        made(model=MODELS, first=CODES, second=CODES)[1:], middle=0.5
    ),
    "controls": lambda: mixing_figures.controls(
        made(
            task=("QA", "NLI"),
            model=MODELS,
            condition=("original", "shuffled"),
            setting=("within", "across", "drop"),
        ),
        {"NLI": 1 / 3},
    ),
}


def smallest(figure: Figure) -> float:
    """The smallest type on a figure, in points; exponents are 0.7 of their line."""
    texts = [
        text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()
    ]
    return min(text.get_fontsize() * (0.7 if "^{" in text.get_text() else 1) for text in texts)


def check(figure: Figure) -> None:
    """Also asked of the figures of all chapters: tests/test_paper_profile_runs.py."""
    assert figure.get_figwidth() <= style.WIDTH
    assert smallest(figure) * 110 / 72 >= 9  # pixels in a notebook, where 110 are an inch
    assert not [axes for axes in figure.axes if axes.get_legend()]  # all stand outside the data
    for axes in figure.axes:
        meshes = [m for m in axes.collections if isinstance(m, matplotlib.collections.QuadMesh)]
        if meshes and axes.get_label() != "<colorbar>":
            assert contrast(axes) >= 4.5
    text = style.alternative(figure)
    assert len(text) > 60
    assert "nan" not in text


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_fits_a_notebook_and_can_be_read(name: str) -> None:
    check(DRAWN[name]())
    plt.close("all")


def test_stored_figures_are_as_wide_as_a_notebook_at_most() -> None:
    for path in FIGURES.glob("*.png"):
        width = int.from_bytes(path.read_bytes()[16:20], "big")
        assert width <= round(200 * style.WIDTH), path.name
