"""The figures of lenses with most on them: they fit a notebook and can be read."""

import itertools

import matplotlib
import numpy as np
import pandas as pd
import pytest

import abx_2_dynamics
import igap_2_ranking
import mexa_2_estimation
from shared import mexa_figures, mixing_figures, pair_regressions
from shared import xprobe_figures as figures
from tests.plots.test_primitives import contrast
from tests.tables import banded, rows
from xlx.plots import style
from xlx.results.paths import FIGURES

matplotlib.use("agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.text import Text

MODELS, CODES, STEPS = ("mini-xlmr", "mini-infoxlm"), ("de", "fr", "zh"), (0, 10, 100)
NAMES = {"zh": "Chinese (zh)", "fr": "French (fr)", "de": "German (de)"}
TASKS = {"model": MODELS, "task": ("POS", "NER")}
LDMD = {"model": MODELS, "task": ("LD", "MD")}
LDMD_MATCHED = {"model": MODELS, "task": ("LD", "MD", "MD, like length")}
SETTING = {"setting": ("within", "across", "drop")}


def made(value: str = "score", *more: str, seed: int = 0, **keys: tuple) -> pd.DataFrame:
    """Every combination of the keys, with a value, its interval, and more numbers."""
    return banded(rows(seed, value, *more, **keys), value)


def fitted(**keys: tuple) -> pd.DataFrame:
    return banded(rows(3, "y", x=(0.1, 0.5, 0.9), **keys), "y")


def tails() -> pd.DataFrame:
    table = pd.DataFrame(itertools.product((5, 10), np.linspace(0, 1, 6)), columns=["n", "mu"])
    table["binomial"] = 10 ** (-table["mu"] * table["n"] * 1.5)
    table["matrix"] = table["vectors"] = table["binomial"] * 1.2
    return table.assign(low=table["matrix"] / 2, high=table["matrix"] * 2)


def rows_of(table: pd.DataFrame, model: str) -> pd.DataFrame:
    return table[table["model"] == model]


def answered(n: int = 3) -> pd.DataFrame:
    keys = {"task": ("WC", "Tense"), "encoder": ("RNN", "CNN"), "language": CODES[:n]}
    return made("accuracy", "control", **keys).assign(majority=0.4)


def pairs_of_languages() -> pd.DataFrame:
    table = rows(0, "LD", "MD", "retrieval", model=MODELS, language_1=CODES, language_2=CODES)
    return table.assign(pairing="all layers")


OVER_LAYERS = made(layer=(0, 1, 2), **LDMD).assign(checkpoint=100)
DRAWN = {
    "layers_beside_training": lambda: abx_2_dynamics.layers_beside_training(
        rows_of(made(layer=(0, 1, 2), **LDMD_MATCHED), MODELS[0]).assign(checkpoint=0),
        rows_of(made(checkpoint=STEPS, **LDMD_MATCHED), MODELS[1]),
        references={"a bag": rows(0, "score", **LDMD)},
    ),
    "checkpoint_layer_map": lambda: abx_2_dynamics.checkpoint_layer_map(
        made(checkpoint=tuple(range(0, 18_000, 1_000)), layer=(0, 1), **LDMD_MATCHED)
    ),
    "form_and_meaning": lambda: abx_2_dynamics.form_and_meaning(
        OVER_LAYERS, OVER_LAYERS, rows(0, "score", **LDMD_MATCHED)
    ),
    "language_maps": lambda: abx_2_dynamics.language_maps(
        made(checkpoint=STEPS, language=CODES, panel=tuple("abcd")), CODES, "score"
    ),
    "tradeoff": lambda: abx_2_dynamics.tradeoff(
        pairs_of_languages(), ["MD"], {(model, "MD"): "r = 1" for model in MODELS}
    ),
    "learning_scatter": lambda: pair_regressions.learning_scatter(
        made("accuracy", "LD", language=CODES, **TASKS),
        fitted(**TASKS),
        dict.fromkeys(itertools.product(*TASKS.values()), "r = 1"),
        {"NER": "f1"},
    ),
    "coefficients": lambda: pair_regressions.coefficients(
        made("coefficient", term=("LD", "MD"), row=("POS", "NER"), model=("printed", *MODELS))
    ),
    "ranking_dots": lambda: igap_2_ranking.ranking_dots(
        pd.DataFrame(0.6, CODES, ["IGAP", "LD"]).rename_axis("source"),
        pd.DataFrame(0.6, ["IGAP", "LD"], ["accuracy", "random_low", "random_high"]),
        printed={"IGAP": 0.8},
    ),
    "chance_tails": lambda: mexa_figures.chance_tails(tails()),
    "estimates": lambda: mexa_2_estimation.estimates(
        made("score", "expected", panel=MODELS, language=CODES).assign(task="topics"),
        fitted(panel=MODELS, kind=("fitted", "ideal", "chance")),
        xlabel="expected",
    ),
    "grid_maps": lambda: mixing_figures.grid_maps(
        made(model=MODELS, first=CODES, second=CODES)[1:], middle=0.5
    ),
    "controls": lambda: mixing_figures.controls(
        made(task=("QA", "NLI"), model=MODELS, condition=("original", "shuffled"), **SETTING),
        {"NLI": 1 / 3},
    ),
    "pairs": lambda: mixing_figures.pairs(
        made(pair=("en-de", "zh-sw"), row=("l1-l2", "*-*"), condition=("pair", "en-en"))
    ),
    "selectivity": lambda: figures.selectivity(answered().assign(low=0.3, high=0.8)),
}


def smallest(figure: Figure) -> float:
    """The smallest type on a figure, in points; exponents are 0.7 of their line."""
    texts = [
        text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()
    ]
    return min(text.get_fontsize() * (0.7 if "^{" in text.get_text() else 1) for text in texts)


@pytest.fixture(scope="module", params=DRAWN)
def figure(request: pytest.FixtureRequest) -> Figure:
    yield DRAWN[request.param]()
    plt.close("all")


def test_a_figure_fits_a_notebook_and_can_be_read(figure: Figure) -> None:
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


def test_stored_figures_are_as_wide_as_a_notebook_at_most() -> None:
    for path in FIGURES.glob("*.png"):
        width = int.from_bytes(path.read_bytes()[16:20], "big")
        assert width <= round(200 * style.WIDTH), path.name
