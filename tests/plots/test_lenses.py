"""What a figure has to be to fit a notebook and be read: asked where chapters are run."""

import matplotlib

from tests.plots.test_primitives import contrast
from xlx.plots import style
from xlx.results.paths import FIGURES

matplotlib.use("agg")
from matplotlib.figure import Figure
from matplotlib.text import Text


def smallest(figure: Figure) -> float:
    """The smallest type on a figure, in points; exponents are 0.7 of their line."""
    texts = [
        text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()
    ]
    return min(text.get_fontsize() * (0.7 if "^{" in text.get_text() else 1) for text in texts)


def check(figure: Figure) -> None:
    """Asked of the figures of all chapters: tests/test_paper_profile_runs.py."""
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
