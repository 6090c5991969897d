"""Figures of grids draw what their tables hold, in per cent, and say what is where."""

import itertools
from collections.abc import Callable

import matplotlib
import numpy as np
import pandas as pd
import pytest

from tests.tables import banded, of, rows
from xlx import mixing, mixing_plots

matplotlib.use("agg")
import matplotlib.pyplot as plt
from matplotlib.colors import same_color
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

MODELS = ("mini-b", "mini-a")  # not in the order of the alphabet
CODES = ("sw", "en", "th", "de", "zh")
NAMED = ["sw Swahili", "en English", "th Thai", "de German", "zh Chinese"]
FIFTEEN = ("en", "de", "fr", "ru", "es", "zh", "vi", "ar", "tr", "bg", "el", "ur", "hi", "th", "sw")
SETTINGS = ("within", "across", "drop")


@pytest.fixture(autouse=True)
def _close() -> None:
    yield
    plt.close("all")


def texts(labels: list) -> list[str]:
    return [label.get_text() for label in labels]


def legend(figure: Figure) -> list[str]:
    return texts(figure.legends[0].get_texts())


def title(axes: plt.Axes) -> str:
    return axes.get_title(loc="left")


def panels(figure: Figure) -> dict[str, plt.Axes]:
    return {title(axes): axes for axes in figure.axes if axes.get_visible() and title(axes)}


def ends(container) -> tuple[np.ndarray, np.ndarray]:
    """Points of error bars, ``(n, 2)``, and the ends of the bars that there are."""
    line, _, (bars,) = container.lines
    segments = [s[:, 0] for s in bars.get_segments() if len(s) and not np.isnan(s).any()]
    return np.asarray(line.get_xydata()), np.array(segments).reshape(-1, 2)


def grid(models: tuple = MODELS, first: tuple = CODES, second: tuple = CODES) -> pd.DataFrame:
    table = rows(0, "score", model=models, first=first, second=second)
    order = {code: number for number, code in enumerate(dict.fromkeys([*first, *second]))}
    return table.sort_values(["first", "second"], kind="stable", key=lambda own: own.map(order))


def settings(seed: int = 1, **keys: tuple) -> pd.DataFrame:
    languages = {"language": ("mean", *CODES)}  # the mean is put last
    table = rows(seed, "score", **(languages | keys), model=MODELS, setting=SETTINGS)
    return banded(table, "score")


def by_difficulty() -> pd.DataFrame:
    keys = {"language": CODES, "model": MODELS, "group": ("hardest", "easiest")}
    table = rows(2, "distance", **keys)
    return banded(table.assign(distance=40 * table["distance"]), "distance")


def conditions() -> pd.DataFrame:
    keys = {"task": ("QA", "NLI"), "model": MODELS, "setting": SETTINGS}
    table = rows(3, "score", condition=("original", "shuffled", "hypothesis only"), **keys)
    return banded(table, "score")


def tuned(pairs: tuple = ("en-de", "zh-sw", "th-en"), of_what: tuple = ("pair", "en-en")):
    table = rows(4, "score", row=mixing.PAIRS_ROWS, pair=pairs, condition=of_what)
    table["at"] = table["pair"].map(pairs.index)
    return banded(table.sort_values("at", kind="stable"), "score")


DRAWN: dict[str, Callable[[], Figure]] = {
    "grid_maps": lambda: mixing_plots.grid_maps(grid()),
    "grid_maps of fifteen": lambda: mixing_plots.grid_maps(
        grid((*MODELS, "mini-c"), FIFTEEN, FIFTEEN)
    ),
    "grid_maps in two rows": lambda: mixing_plots.grid_maps(
        grid((*MODELS, "mini-c"))[1:], columns=2
    ),
    "within_across": lambda: mixing_plots.within_across(settings(), chance=1 / 3),
    "labels": lambda: mixing_plots.labels(settings(label=("no", "yes"))),
    "distances": lambda: mixing_plots.distances(by_difficulty()),
    "controls": lambda: mixing_plots.controls(conditions(), {"NLI": 1 / 3}),
    "pairs": lambda: mixing_plots.pairs(tuned()),
    "pairs in two rows": lambda: mixing_plots.pairs(tuned(), columns=2),
}


def holds(
    axes: plt.Axes, table: pd.DataFrame, items: list[str], item: str, series: dict[str, str],
    value: str = "score", scale: float = 100,
) -> None:  # fmt: skip
    """Check the points, bars and lanes of a panel against its rows."""
    (column,) = {key for key in table if set(series) <= set(table[key].astype(str))}
    assert len(axes.containers) == len(series)
    for container, (key, colour) in zip(axes.containers, series.items(), strict=True):
        own = of(table, **{column: key})
        points, bars = ends(container)
        np.testing.assert_allclose(points[:, 0], scale * own[value])
        assert points[:, 1].round().tolist() == [items.index(name) for name in own[item]]
        np.testing.assert_allclose(bars, scale * own[["low", "high"]])
        assert same_color(container.lines[0].get_color(), colour)
    assert axes.get_ylim() == (len(items) - 0.5, -0.5)


COLOURS = {"within": "#0072B2", "across": "#D55E00"}


# --- maps ---


def test_maps_write_every_cell_in_per_cent_under_named_languages() -> None:
    table = grid()
    figure = DRAWN["grid_maps"]()
    assert list(panels(figure)) == list(dict.fromkeys(table["model"]))
    for model, axes in panels(figure).items():
        assert texts(axes.get_xticklabels()) == NAMED
        written = {text.xy: text.get_text() for text in axes.texts}
        values = axes.collections[0].get_array().reshape(5, 5)
        assert len(written) == 25
        for row, first in enumerate(CODES):
            for column, second in enumerate(CODES):
                score = 100 * of(table, model=model, first=first, second=second)["score"].item()
                assert written[column + 0.5, row + 0.5] == f"{score:.1f}"
                assert values[row, column] == pytest.approx(score)
        assert axes.yaxis_inverted()
        assert axes.get_xlabel() == "hypothesis"
    assert texts(figure.axes[0].get_yticklabels()) == NAMED
    assert [axes.get_ylabel() for axes in figure.axes] == ["premise", "", "accuracy (%)"]
    assert legend(figure) == ["within a language"]


def test_maps_share_one_scale_of_colours() -> None:
    figure = DRAWN["grid_maps"]()
    scores = 100 * grid()["score"]
    for axes in panels(figure).values():
        assert axes.collections[0].get_clim() == (scores.min(), scores.max())


def test_maps_frame_the_cells_within_a_language() -> None:
    for axes in panels(DRAWN["grid_maps"]()).values():
        frames = [x for x in axes.patches if isinstance(x, Rectangle) and not x.get_fill()]
        assert {tuple(np.floor(x.get_xy())) for x in frames} == {(i, i) for i in range(5)}


def test_maps_name_parts_and_unit_as_they_are_told() -> None:
    figure = mixing_plots.grid_maps(grid(), "context", "question", unit="F1")
    assert figure.axes[0].get_xlabel() == "question"
    assert [axes.get_ylabel() for axes in figure.axes] == ["context", "", "F1 (%)"]


def test_maps_leave_grey_what_was_not_measured() -> None:
    table = grid()
    table = table[(table["first"] != "sw") | (table["second"] != "de")]
    table.loc[(table["first"] == "zh") & (table["second"] == "zh"), "score"] = np.nan
    figure = mixing_plots.grid_maps(table)
    for axes in panels(figure).values():
        values = np.ma.filled(axes.collections[0].get_array().reshape(5, 5), np.nan)
        assert np.argwhere(np.isnan(values)).tolist() == [[0, 3], [4, 4]]
        assert len(axes.texts) == 23
    assert legend(figure) == ["within a language", "not measured"]


def test_maps_may_have_other_languages_in_rows_than_in_columns() -> None:
    figure = mixing_plots.grid_maps(grid(first=("en", "xx"), second=("th", "en", "de")))
    axes = figure.axes[0]
    assert texts(axes.get_yticklabels()) == ["en English", "xx"]
    assert texts(axes.get_xticklabels()) == ["en English", "th Thai", "de German"]
    frames = [x for x in axes.patches if isinstance(x, Rectangle) and not x.get_fill()]
    assert [tuple(np.floor(x.get_xy())) for x in frames] == [(0, 0)]


@pytest.mark.parametrize("n", [7, 11, 15])
@pytest.mark.parametrize("models", [1, 3])
def test_numbers_of_a_map_can_be_read_and_fit_their_cells(n: int, models: int) -> None:
    codes, names = FIFTEEN[-n:], tuple(f"m{number}" for number in range(models))
    figure = mixing_plots.grid_maps(grid(names, codes, codes))
    figure.set_dpi(72)
    figure.canvas.draw()
    assert len(panels(figure)) == models
    for axes in panels(figure).values():
        cell = axes.get_window_extent().width / n
        for text in axes.texts:
            assert text.get_fontsize() >= 7
            assert len(text.get_text()) == 4
            assert text.get_window_extent().width < cell
        boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
        assert all(a.x1 <= b.x0 for a, b in itertools.pairwise(boxes))


def test_four_maps_take_two_rows() -> None:
    figure = mixing_plots.grid_maps(grid(tuple("abcd")))
    tops = [axes.get_position().y1 for axes in panels(figure).values()]
    figure.canvas.draw()
    assert len(tops) == 4
    assert tops[3] < tops[2]
    assert sum(not axes.get_visible() for axes in figure.axes) == 2


def test_maps_want_one_score_a_cell_and_one_at_all() -> None:
    with pytest.raises(ValueError, match=r"more than one row of model mini-., first sw, second sw"):
        mixing_plots.grid_maps(pd.concat([grid()] * 2))
    with pytest.raises(ValueError, match="there is no score to draw"):
        mixing_plots.grid_maps(grid().assign(score=np.nan))


# --- points ---


def test_languages_have_a_point_within_and_one_across() -> None:
    table = settings()
    figure = DRAWN["within_across"]()
    assert list(panels(figure)) == list(dict.fromkeys(table["model"]))
    items = [*CODES, "mean"]
    for model, axes in panels(figure).items():
        own = of(table, model=model)
        holds(axes, own[own["setting"] != "drop"], items, "language", COLOURS)
        chance, *_ = axes.get_lines()
        np.testing.assert_allclose(chance.get_xdata(), 100 / 3)
    assert texts(figure.axes[0].get_yticklabels()) == [*NAMED, "mean"]
    assert figure.get_supxlabel() == "score (%)"
    assert legend(figure) == [
        "within: both parts in the language", "across: one part in another", "chance",
    ]  # fmt: skip


def test_a_line_joins_the_two_points_of_a_language() -> None:
    table = of(settings(), model="mini-a")
    (axes,) = mixing_plots.within_across(table).axes
    points = [ends(container)[0] for container in axes.containers]
    joins = [line.get_xydata() for line in axes.get_lines() if line.get_color() == "0.75"]
    assert len(joins) == 6
    for join in joins:
        assert (points[0] == join[0]).all(axis=1).any()
        assert (points[1] == join[1]).all(axis=1).any()
        assert join[0, 1].round() == join[1, 1].round()


def test_printed_scores_without_intervals_can_be_drawn() -> None:
    table = settings().assign(low=np.nan, high=np.nan)
    table.loc[(table["language"] == "sw") & (table["setting"] == "across"), "score"] = np.nan
    figure = mixing_plots.within_across(table)
    assert "chance" not in legend(figure)
    for axes in panels(figure).values():
        within, across = (ends(container) for container in axes.containers)
        assert (len(within[0]), len(across[0])) == (6, 5)
        assert len(within[1]) == len(across[1]) == 0


def test_an_end_that_rounding_puts_past_its_point_is_no_error() -> None:
    table = settings()
    mixing_plots.within_across(table.assign(low=table["score"] + 1e-17, high=table["score"]))


def test_labels_have_a_row_each() -> None:
    table = settings(label=("no", "yes"))
    figure = DRAWN["labels"]()
    models, names = (list(dict.fromkeys(table[key])) for key in ("model", "label"))
    assert list(panels(figure)) == [f"{model}: {name}" for name in names for model in models]
    for name in names:
        for model in models:
            own = of(table, model=model, label=name)
            own = own[own["setting"] != "drop"]
            axes = panels(figure)[f"{model}: {name}"]
            holds(axes, own, [*CODES, "mean"], "language", COLOURS)
    assert len({axes.get_xlim() for axes in figure.axes}) == 1


def test_distances_are_in_words_and_start_at_zero() -> None:
    table = by_difficulty()
    figure = DRAWN["distances"]()
    colours = {"easiest": "#0072B2", "hardest": "#D55E00"}
    for model, axes in panels(figure).items():
        holds(axes, of(table, model=model), list(CODES), "language", colours, "distance", 1)
        assert axes.get_xlim()[0] == 0
    assert legend(figure) == ["easiest", "hardest"]
    assert figure.get_supxlabel().endswith("(words)")


def test_tables_of_mixing_can_be_drawn() -> None:
    rng = np.random.default_rng(0)
    scores, options = rng.random((5, 5, 20)).round(), {"n_resamples": 20}
    mixing_plots.grid_maps(mixing.cells(scores, CODES, **options).assign(model="a"))
    mixing_plots.within_across(mixing.summary(scores, CODES, **options).assign(model="a"))
    merged = {"no": [0], "yes": [1]}
    table = mixing.by_label(scores, np.arange(20) % 2, merged, CODES, **options)
    mixing_plots.labels(table.assign(model="a"))
    mixing_plots.pairs(
        mixing.pairs({"tuned": scores, "en-en": 1 - scores}, CODES, ("sw", "de"), **options)
    )
    table = mixing.tails(rng.random(20), rng.random(20), **options).table
    mixing_plots.distances(table.assign(model="a", language="th"))


def test_controls_have_a_column_a_task_and_a_row_a_model() -> None:
    table = conditions()
    figure = DRAWN["controls"]()
    tasks, models = (list(dict.fromkeys(table[key])) for key in ("task", "model"))
    assert list(panels(figure)) == [f"{model}: {task}" for model in models for task in tasks]
    items = list(dict.fromkeys(table["condition"]))
    for task in tasks:
        for model in models:
            axes = panels(figure)[f"{model}: {task}"]
            own = of(table, task=task, model=model)
            holds(axes, own[own["setting"] != "drop"], items, "condition", COLOURS)
            dotted = [line for line in axes.get_lines() if same_color(line.get_color(), "0.4")]
            assert len(dotted) == (task == "NLI")
    assert texts(figure.axes[0].get_yticklabels()) == items
    assert legend(figure)[-1] == "chance"


def test_controls_that_a_task_or_a_model_lacks_stay_empty() -> None:
    table = conditions()
    table = table[(table["task"] != "QA") | (table["model"] != "mini-a")]
    table = table[(table["task"] != "QA") | (table["condition"] != "hypothesis only")]
    figure = mixing_plots.controls(table)
    assert all(len(ends(each)[0]) == 0 for each in panels(figure)["mini-a: QA"].containers)
    assert all(len(ends(each)[0]) == 2 for each in panels(figure)["mini-b: QA"].containers)


def test_pairs_have_a_panel_each_and_a_line_a_row_of_the_table() -> None:
    table = tuned()
    for name in ("pairs", "pairs in two rows"):
        figure = DRAWN[name]()
        assert list(panels(figure)) == ["en-de", "zh-sw", "th-en"]
        conditions_ = list(dict.fromkeys(table["condition"]))
        colours = dict(zip(conditions_, ("#0072B2", "#D55E00"), strict=True))
        for pair, axes in panels(figure).items():
            holds(axes, of(table, pair=pair), list(mixing.PAIRS_ROWS), "row", colours)
        assert texts(figure.axes[0].get_yticklabels()) == list(mixing.PAIRS_ROWS)
        assert legend(figure) == conditions_


def test_the_last_panel_of_a_column_has_its_numbers() -> None:
    figure = DRAWN["pairs in two rows"]()
    figure.canvas.draw()
    shown = {
        name: any(label.get_visible() and label.get_text() for label in axes.get_xticklabels())
        for name, axes in panels(figure).items()
    }
    assert shown == {"en-de": False, "zh-sw": True, "th-en": True}


def test_pairs_may_have_several_baselines_in_lanes_that_do_not_meet() -> None:
    names = tuple(f"model {number}" for number in range(7))
    figure = mixing_plots.pairs(tuned(of_what=names))
    for axes in panels(figure).values():
        heights = sorted(y for each in axes.containers for y in ends(each)[0][:, 1])
        assert len(heights) == 35
        assert np.diff(heights).min() > 0.05
        assert len({each.lines[0].get_marker() for each in axes.containers}) == 7
    with pytest.raises(ValueError, match="8 conditions cannot be told apart by 7 colours"):
        mixing_plots.pairs(tuned(of_what=(*names, "model 7")))


@pytest.mark.parametrize(
    ("draw", "table", "message"),
    [
        ("within_across", settings(), "model mini-., language mean, setting"),
        ("labels", settings(label=("a",)), "model mini-., label a, language mean, setting"),
        ("distances", by_difficulty(), "model mini-., language sw, group"),
        ("controls", conditions(), "task .*, model mini-., condition original, setting"),
        ("pairs", tuned(), "pair en-de, row .*, condition"),
    ],
)
def test_two_values_of_one_place_are_refused(draw: str, table, message: str) -> None:
    with pytest.raises(ValueError, match=f"there is more than one row of {message}"):
        getattr(mixing_plots, draw)(pd.concat([table, table]))


@pytest.mark.parametrize(
    ("draw", "table", "message"),
    [
        ("within_across", settings(), "'setting' has 'x'; it may have 'within', 'across', 'drop'"),
        ("labels", settings(label=("a",)), "'setting' has 'x'"),
        ("controls", conditions(), "'setting' has 'x'"),
    ],
)
def test_settings_are_those_that_are_known(draw: str, table, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        getattr(mixing_plots, draw)(table.assign(setting="x"))


def test_groups_and_tasks_are_those_that_are_known() -> None:
    with pytest.raises(ValueError, match="'group' has 'easy'; it may have 'easiest', 'hardest'"):
        mixing_plots.distances(by_difficulty().assign(group="easy"))
    with pytest.raises(ValueError, match="'task' has 'PI'; it may have 'QA', 'NLI'"):
        mixing_plots.controls(conditions(), {"PI": 0.5})


@pytest.mark.parametrize("name", DRAWN)
def test_text_stays_inside_and_the_picture_is_the_same_twice(name: str) -> None:
    before = plt.rcParams["axes.titlelocation"]
    pictures = []
    for _ in range(2):
        figure = DRAWN[name]()
        figure.set_dpi(100)
        figure.canvas.draw()
        extent = figure.get_tightbbox()
        assert min(extent.x0, extent.y0) > -0.05
        assert (np.array([extent.x1, extent.y1]) < figure.get_size_inches() + 0.05).all()
        pictures.append(np.asarray(figure.canvas.buffer_rgba()).copy())
    np.testing.assert_array_equal(*pictures)
    assert plt.rcParams["axes.titlelocation"] == before  # the style does not leak


def test_looks_differ_in_marker_and_filling_as_well_as_in_colour() -> None:
    for looks in (mixing_plots._SETTINGS, mixing_plots._GROUPS):
        for key in ("color", "marker", "markerfacecolor"):
            assert len({look[key] for look in looks.values()}) == 2
