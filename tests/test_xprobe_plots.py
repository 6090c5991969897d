"""Figures of probing accuracies draw what their tables hold and say what is where."""

import itertools
from collections.abc import Callable

import matplotlib
import numpy as np
import pandas as pd
import pytest

from tests.tables import banded, of, rows
from xlx import xprobe, xprobe_plots

matplotlib.use("agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

# not in the order of the alphabet, and more than the paper has
LANGUAGES = ("tr", "de", "hi", "fr-UN", "ru", "es", "fr")
NAMES = ["tr Turkish", "de German", "hi Hindi", "fr-UN French", "ru Russian", "es Spanish"]
NAMES.append("fr French")
ENCODERS = ("rnn-max", "rnn-last", "cnn-max", "cnn-mean", "attention-last", "mini-xlmr", "mini-xlm")
TASKS = ("SentLen", "WC", "TreeDepth", "BiShift", "SubjNum", "ObjNum", "CoordInv", "SOMO", "Tense")


@pytest.fixture(autouse=True)
def _close() -> None:
    yield
    plt.close("all")


def in_order(table: pd.DataFrame, **keys: tuple) -> pd.DataFrame:
    """Sorted as the keys are named."""
    order = {name: [values.index(x) for x in table[name]] for name, values in keys.items()}
    places = np.lexsort([order[name] for name in reversed(list(keys))])
    return table.iloc[places].reset_index(drop=True)


def scores(value: str, **keys: tuple) -> pd.DataFrame:
    return in_order(rows(0, value, **keys), **keys)


def two_corpora() -> pd.DataFrame:
    return scores("accuracy", corpus=("UD", "PUD"), encoder=ENCODERS, task=TASKS)


def coefficients() -> pd.DataFrame:
    table = scores("rho", language=LANGUAGES, task=TASKS)
    table["rho"] = 2.6 * table["rho"] - 1.4
    return table.assign(low=table["rho"] - 0.4, high=(table["rho"] + 0.3).clip(upper=1))


def ratios() -> pd.DataFrame:
    table = scores("ratio", language=LANGUAGES[:2], encoder=ENCODERS, task=TASKS)
    return table.assign(ratio=2 * table["ratio"])


def selective() -> pd.DataFrame:
    table = scores("accuracy", task=TASKS[:4], encoder=ENCODERS, language=LANGUAGES)
    table = banded(table, "accuracy")
    return table.assign(control=table["accuracy"] / 2, majority=table["accuracy"] / 3)


DRAWN: dict[str, Callable[[], Figure]] = {
    "accuracies": lambda: xprobe_plots.accuracies(two_corpora()),
    "correlations": lambda: xprobe_plots.correlations(coefficients()),
    "relative": lambda: xprobe_plots.relative(ratios()),
    "selectivity": lambda: xprobe_plots.selectivity(selective()),
}


def texts(labels: list) -> list[str]:
    return [label.get_text() for label in labels]


def legend(figure: Figure) -> list[str]:
    return texts(figure.legends[0].get_texts())


def panels(figure: Figure) -> dict[str, Axes]:
    titled = {axes.get_title(loc="left"): axes for axes in figure.axes if axes.get_visible()}
    return {title: axes for title, axes in titled.items() if title}


def cells(axes: Axes, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Values behind the colours, and what is written in the cells ("" where nothing is)."""
    written = np.full(shape, "", dtype=object)
    for text in axes.texts:
        column, row = (int(x) for x in text.xy)
        written[row, column] = text.get_text()
    return np.ma.filled(
        axes.collections[0].get_array().reshape(shape).astype(float), np.nan
    ), written


# --- maps ---


def test_accuracies_stand_in_a_map_a_corpus_on_one_scale() -> None:
    table, figure = two_corpora(), DRAWN["accuracies"]()
    assert list(panels(figure)) == ["UD", "PUD"]
    for corpus, axes in panels(figure).items():
        values, written = cells(axes, (7, 9))
        for (row, encoder), (column, task) in itertools.product(
            enumerate(ENCODERS), enumerate(TASKS)
        ):
            accuracy = of(table, corpus=corpus, encoder=encoder, task=task)["accuracy"].item()
            assert values[row, column] == accuracy
            assert written[row, column] == f"{accuracy:.2f}"
        assert axes.collections[0].get_clim() == (0, 1)
        assert texts(axes.get_yticklabels()) == list(ENCODERS)
        assert axes.yaxis_inverted()
    assert texts(axes.get_xticklabels()) == list(TASKS)
    assert figure.legends == []


def test_accuracies_may_be_of_languages_and_miss_some() -> None:
    table = scores("accuracy", corpus=("tr", "fr-UN"), encoder=ENCODERS[:2], task=TASKS[:3])
    table = table[(table["corpus"] != "tr") | (table["task"] != "WC")]
    figure = xprobe_plots.accuracies(table)
    assert list(panels(figure)) == ["tr Turkish", "fr-UN French"]
    values, written = cells(panels(figure)["tr Turkish"], (2, 3))
    assert texts(figure.axes[1].get_xticklabels()) == ["SentLen", "TreeDepth", "WC"]
    assert np.isnan(values).tolist() == [[False, False, True]] * 2
    assert (written == "").tolist() == np.isnan(values).tolist()
    assert legend(figure) == ["not measured"]


def test_correlations_have_the_coefficient_above_its_interval() -> None:
    table, figure = coefficients(), DRAWN["correlations"]()
    axes = figure.axes[0]
    values, written = cells(axes, (7, 9))
    assert texts(axes.get_yticklabels()) == NAMES
    assert texts(axes.get_xticklabels()) == list(TASKS)
    for (row, language), (column, task) in itertools.product(
        enumerate(LANGUAGES), enumerate(TASKS)
    ):
        own = of(table, language=language, task=task).iloc[0]
        assert values[row, column] == own["rho"]
        rho, low, high = (
            f"{own[key]:.2f}".replace("-", "−").replace("−0.00", "0.00")
            for key in ("rho", "low", "high")
        )
        assert written[row, column] == f"{rho}\n{low} to {high}"
    assert axes.collections[0].get_clim() == (-1, 1)


def test_correlations_frame_intervals_without_zero() -> None:
    table, figure = coefficients(), DRAWN["correlations"]()
    frames = [x for x in figure.axes[0].patches if isinstance(x, Rectangle) and not x.get_fill()]
    found = {(LANGUAGES[int(y)], TASKS[int(x)]) for x, y in (frame.get_xy() for frame in frames)}
    clear = table[(table["low"] > 0) | (table["high"] < 0)]
    assert found == set(zip(clear["language"], clear["task"], strict=True))
    assert 0 < len(found) < 63
    assert legend(figure) == ["interval without 0"]


def test_correlations_that_are_not_defined_stay_grey() -> None:
    table = coefficients()
    table.loc[table["task"] == "WC", ["rho", "low", "high"]] = np.nan
    figure = xprobe_plots.correlations(table)
    values, written = cells(figure.axes[0], (7, 9))
    assert np.isnan(values[:, 1]).all()
    assert (written[:, 1] == "").all()
    assert np.isnan(values).sum() == 7
    assert legend(figure)[-1] == "not defined or not measured"


def test_ratios_stand_in_a_block_a_language_about_parity() -> None:
    table, figure = ratios(), DRAWN["relative"]()
    assert list(panels(figure)) == NAMES[:2]
    for language, axes in zip(LANGUAGES[:2], panels(figure).values(), strict=True):
        values, written = cells(axes, (7, 9))
        own = of(table, language=language)
        np.testing.assert_array_equal(values.ravel(), own["ratio"])
        assert written.ravel().tolist() == [f"{ratio:.2f}" for ratio in own["ratio"]]
        assert axes.collections[0].get_clim() == (0.5, 1.5)
        red, green, blue, _ = axes.collections[0].to_rgba(1.0)
        assert min(red, green, blue) > 0.95  # parity is white


def test_a_ratio_to_nothing_stays_grey() -> None:
    table = ratios()
    table.loc[:1, "ratio"] = np.inf, np.nan
    figure = xprobe_plots.relative(table)
    values, _ = cells(panels(figure)["tr Turkish"], (7, 9))
    assert np.argwhere(np.isnan(values)).tolist() == [[0, 0], [0, 1]]
    assert legend(figure) == ["not measured"]


@pytest.mark.parametrize("name", ["accuracies", "correlations", "relative"])
def test_text_fits_its_cell_and_names_do_not_touch(name: str) -> None:
    figure = DRAWN[name]()
    figure.canvas.draw()
    for axes in figure.axes[:-1]:
        box = axes.get_window_extent()
        for text in axes.texts:
            own = text.get_window_extent()
            assert text.get_fontsize() >= 7
            assert own.width < box.width / 9
            assert own.height < box.height / 7
    labels = [x.get_window_extent() for x in figure.axes[-2].get_xticklabels()]
    assert all(a.x1 <= b.x0 for a, b in itertools.pairwise(labels))
    names = [x.get_window_extent() for x in figure.axes[0].get_yticklabels()]
    assert all(a.y0 >= b.y1 - 1 for a, b in itertools.pairwise(names))


def test_long_names_of_tasks_are_turned() -> None:
    table = scores("accuracy", corpus=("UD",), encoder=ENCODERS, task=("WC", "coordination"))
    figure = xprobe_plots.accuracies(table)
    assert {x.get_rotation() for x in figure.axes[0].get_xticklabels()} == {35}


@pytest.mark.parametrize(
    ("draw", "table", "message"),
    [
        (xprobe_plots.accuracies, two_corpora, r"more than one row of encoder rnn-max, task Sent"),
        (xprobe_plots.correlations, coefficients, r"more than one row of language tr, task Sent"),
        (xprobe_plots.relative, ratios, r"more than one row of language tr, encoder rnn-max"),
        (xprobe_plots.selectivity, selective, r"more than one row of task SentLen, encoder rnn"),
    ],
)
def test_figures_want_one_row_a_cell_and_one_at_all(
    draw: Callable, table: Callable, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        draw(pd.concat([table()] * 2))
    with pytest.raises(ValueError, match=r"there is no \w+ to draw"):
        draw(table().iloc[:0])


# --- selectivity ---


def test_selectivity_has_points_controls_and_ticks_in_the_lane_of_a_language() -> None:
    table, figure = selective(), DRAWN["selectivity"]()
    assert list(panels(figure)) == list(TASKS[:4])
    for task, axes in panels(figure).items():
        assert axes.get_ylim() == (6.5, -0.5)
        lanes = []
        for number, language in enumerate(LANGUAGES):
            own = of(table, task=task, language=language)
            line, _, (bars,) = axes.containers[number].lines
            x, y = line.get_xydata().T
            np.testing.assert_allclose(x, 100 * own["accuracy"])
            ends = np.array([segment[:, 0] for segment in bars.get_segments()])
            np.testing.assert_allclose(ends, 100 * own[["low", "high"]])
            assert np.round(y).tolist() == list(range(7))
            lanes.append(y[0])
            (hollow,) = [
                x
                for x in axes.get_lines()
                if x.get_markerfacecolor() == "white" and x.get_color() == line.get_color()
            ]
            np.testing.assert_allclose(hollow.get_xydata().T, [100 * own["control"], y])
        assert lanes == sorted(lanes)
        ticks = [
            segment[0, 0]
            for collection in axes.collections
            if collection.get_linestyle()[0][1] is not None
            for segment in collection.get_segments()
        ]
        own = in_order(of(table, task=task), language=LANGUAGES, encoder=ENCODERS)
        np.testing.assert_allclose(ticks, 100 * own["majority"])
    assert legend(figure) == [*NAMES, "hollow: control", "majority class"]
    assert texts(figure.axes[0].get_yticklabels()) == list(ENCODERS)


def test_printed_accuracies_have_neither_control_nor_interval() -> None:
    table = selective().drop(columns=["control", "majority", "low", "high"])
    figure = xprobe_plots.selectivity(of(table, task="WC"))
    assert legend(figure) == NAMES
    assert len(panels(figure)) == 1
    missing = selective().assign(control=np.nan, majority=np.nan, low=np.nan, high=np.nan)
    assert legend(xprobe_plots.selectivity(missing)) == NAMES


def test_an_end_that_rounding_puts_past_its_point_is_no_error() -> None:
    table = selective()
    xprobe_plots.selectivity(table.assign(low=table["accuracy"] + 1e-17))


def test_one_language_stands_in_the_middle_and_eight_do_not_fit() -> None:
    figure = xprobe_plots.selectivity(of(selective(), language="tr"))
    line = figure.axes[0].containers[0].lines[0]
    assert line.get_xydata()[:, 1].tolist() == list(range(7))
    many = scores("accuracy", task=("WC",), encoder=("a",), language=(*LANGUAGES, "en"))
    with pytest.raises(ValueError, match=r"8 languages cannot be told apart by 7 colours"):
        xprobe_plots.selectivity(many)


# --- all ---


def test_tables_of_xprobe_can_be_drawn() -> None:
    keys = {"language": ("en", "tr", "hi"), "encoder": ENCODERS[:5], "task": TASKS[:2]}
    probing = scores("accuracy", **keys)
    xnli = of(probing, task="WC").drop(columns="task")
    figure = xprobe_plots.correlations(xprobe.correlations(probing, xnli))
    assert texts(figure.axes[0].get_yticklabels()) == ["en English", "tr Turkish", "hi Hindi"]
    assert cells(figure.axes[0], (3, 2))[1][0, 1].startswith("1.00\n")
    figure = xprobe_plots.relative(xprobe.relative(probing))
    assert list(panels(figure)) == ["tr Turkish", "hi Hindi"]


@pytest.mark.parametrize("name", DRAWN)
def test_text_stays_inside_the_figure(name: str) -> None:
    figure = DRAWN[name]()
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    for axes in figure.axes:
        if axes.get_visible():
            box = axes.get_tightbbox()
            assert box.x0 >= -1
            assert box.y0 >= -1
            assert box.x1 <= width + 1
            assert box.y1 <= height + 1
