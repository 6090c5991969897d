"""Each primitive draws what its table holds, where its columns say."""

import matplotlib
import numpy as np
import pytest

from tests.tables import banded, of, rows
from xlx.plots import panels
from xlx.plots.primitives import Cells, Curves, Lanes, curves, heatmap, lanes, scatter
from xlx.plots.style import luminance

matplotlib.use("agg")
import matplotlib.pyplot as plt

CODES, MODELS = ("de", "fr", "zh"), ("mini-b", "mini-a")
TABLE = banded(rows(0, "value", panel=MODELS, item=CODES, series=("x", "y")), "value")


@pytest.fixture(autouse=True)
def _close() -> None:
    yield
    plt.close("all")


def test_lanes_put_points_with_intervals_on_the_lines_of_their_items() -> None:
    style = Lanes(items=CODES, scale=100, joined=True)
    on = lanes(TABLE, "value", "item", hue="series", col="panel", style=style)
    labels = on.axes[MODELS[0]].get_yticklabels()
    assert [text.get_text() for text in labels] == list(CODES)
    for model, axes in on.axes.items():
        for key, container in zip(dict.fromkeys(TABLE["series"]), axes.containers, strict=True):
            drawn = of(TABLE, panel=model, series=key)
            points, _, (bars,) = container.lines
            np.testing.assert_allclose(points.get_xdata().astype(float), 100 * drawn["value"])
            ends = np.array([line[:, 0] for line in bars.get_segments()])
            np.testing.assert_allclose(ends, 100 * drawn[["low", "high"]])
    assert {text.get_text() for text in on.done().legends[0].get_texts()} == {"x", "y"}


def test_curves_break_where_there_is_no_number_and_stand_at_even_steps() -> None:
    table = TABLE.assign(step=TABLE["item"].map({"de": 0, "fr": 10, "zh": 100}))
    table.loc[table["step"] == 10, "value"] = np.nan
    on = curves(table, "step", "value", hue="series", col="panel", style=Curves(even=True))
    for model, axes in on.axes.items():
        assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "10", "100"]
        for key, line in zip(dict.fromkeys(table["series"]), axes.get_lines(), strict=True):
            drawn = of(table, panel=model, series=key).sort_values("step")
            np.testing.assert_array_equal(line.get_xdata(), [0, 1, 2])
            np.testing.assert_array_equal(line.get_ydata(), drawn["value"])
        assert len(axes.collections) == 2  # the bands


def test_scatter_draws_every_row_and_writes_names() -> None:
    table = TABLE.assign(written=TABLE["item"].where(TABLE["item"] == "zh", ""))
    on = scatter(table, "low", "high", hue="series", col="panel")
    for model, axes in on.axes.items():
        points = np.concatenate([line.get_xydata() for line in axes.get_lines()])
        expected = of(table, panel=model)[["low", "high"]].to_numpy()
        np.testing.assert_allclose(np.sort(points, axis=0), np.sort(expected, axis=0))
        assert [text.get_text() for text in axes.texts] == ["zh", "zh"]


def test_heatmap_colours_writes_frames_and_hatches() -> None:
    table = rows(1, "value", panel=MODELS, row=CODES, column=CODES)
    table["value"] = table["value"].where(table["row"] != "fr")
    table["hatched"], table["framed"] = table["row"] == table["column"], table["column"] == "zh"
    table["written"] = table["value"].map(panels.number)
    style = Cells(rows=CODES, columns=CODES, bar="score")
    on = heatmap(table, "column", "row", "value", col="panel", style=style)
    for model, axes in on.axes.items():
        cells = of(table, panel=model).pivot(index="row", columns="column", values="value")
        shown = axes.collections[0].get_array().filled(np.nan).reshape(3, 3)
        np.testing.assert_array_equal(shown, cells.loc[list(CODES), list(CODES)])
        hatched = [patch for patch in axes.patches if patch.get_hatch()]
        framed = [patch for patch in axes.patches if patch.get_width()]
        assert (len(hatched), len(framed) - len(hatched)) == (3, 2)
        assert axes.get_legend_handles_labels()[1] == ["not measured"]
        assert contrast(axes) >= 4.5


def contrast(axes: plt.Axes) -> float:
    """The least contrast of what is written in the cells of a map."""
    mesh = axes.collections[0]
    colours = mesh.to_rgba(mesh.get_array().reshape(-1))
    missing = np.ma.getmaskarray(mesh.get_array()).reshape(-1)
    width, least = round(axes.get_xlim()[1]), 21.0
    for text in axes.texts:
        column, row = (int(place) for place in text.get_position())
        cell = row * width + column
        if not missing[cell]:
            seen = luminance(colours[cell]), luminance(matplotlib.colors.to_rgb(text.get_color()))
            least = min(least, (max(seen) + 0.05) / (min(seen) + 0.05))
    return least


def test_numbers_and_names_that_would_touch() -> None:
    values = (1.234, -0.5, -0.001, np.nan)
    assert [panels.number(v) for v in values] == ["1.23", "−0.50", "0.00", "–"]
    heights = np.random.default_rng(0).random(9)
    moved = panels.apart(heights, 0.1)
    assert (np.diff(np.sort(moved)) >= 0.1 - 1e-12).all()
    assert (np.argsort(moved) == np.argsort(heights)).all()
    assert moved.mean() == pytest.approx(heights.mean())
    np.testing.assert_array_equal(panels.apart(np.array([0.0, 1.0]), 0.1), [0, 1])
