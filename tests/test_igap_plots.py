"""Figures of IGAP draw what their table holds, in per cent, and say where there is no number."""

import itertools
from collections.abc import Callable

import matplotlib
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import banded, of, rows
from xlx import igap_plots
from xlx.panels import distinct_looks
from xlx.panels import ink as ink_on

matplotlib.use("agg")
import matplotlib.pyplot as plt
from matplotlib.colors import same_color, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

MODELS = ("mini-b", "mini-a", "mini-c")  # not in the order of the alphabet
DIRECTIONS = (("en", "ur"), ("ur", "en"))
LEVELS = (0.2, 0.175, 0.15, 0.1, 0.05, 0.025, 0.0)
CODES = ("fr", "de", "ja", "zh", "ko")
QUANTITIES = ("IGAP", "accuracy")


@pytest.fixture(autouse=True)
def _close() -> None:
    yield
    plt.close("all")


def directed(table: pd.DataFrame) -> pd.DataFrame:
    """A column ``direction`` as the two that it stands for."""
    pairs = pd.DataFrame(list(table.pop("direction")), columns=["source", "target"])
    return table.reset_index(drop=True).join(pairs)


def texts(labels: list) -> list[str]:
    return [label.get_text() for label in labels]


def legend(figure: Figure) -> list[str]:
    return texts(figure.legends[0].get_texts())


def curves_of(axes: plt.Axes) -> dict[str, plt.Line2D]:
    """Lines that have a name, without the helping ones."""
    return {x.get_label(): x for x in axes.get_lines() if not x.get_label().startswith("_")}


def crosses(axes: plt.Axes) -> list[tuple[float, float]]:
    found = [line.get_xydata() for line in axes.get_lines() if line.get_marker() == "x"]
    return [tuple(point) for each in found for point in each]


def corners(axes: plt.Axes) -> set[tuple[float, float]]:
    """All vertices of what is filled."""
    return {
        (round(x, 6), round(y, 6))
        for each in axes.collections
        for path in each.get_paths()
        for x, y in path.vertices
    }


def ends(container) -> tuple[np.ndarray, np.ndarray]:
    """Points of error bars, ``(n, 2)``, and the ends of the bars that there are."""
    line, _, (bars,) = container.lines
    segments = [s[:, 0] for s in bars.get_segments() if len(s) and not np.isnan(s).any()]
    return np.asarray(line.get_xydata()), np.array(segments)


def gaps() -> tuple[pd.DataFrame, pd.DataFrame]:
    points = rows(
        0, "training", "transfer_gap", "interlingual",
        direction=DIRECTIONS, model=MODELS, step=tuple(range(20)),
    )  # fmt: skip
    points["training"] -= 0.2  # some above the levels, some below
    curves = rows(1, "igap", direction=DIRECTIONS[::-1], model=MODELS, level=LEVELS)
    curves = banded(directed(curves), "igap").assign(n_models=3)
    empty = (curves["model"] == "mini-a") & curves["level"].isin([0.175, 0.1, 0.0])
    curves.loc[empty, ["igap", "low", "high"]] = np.nan
    return directed(points), curves


def parts() -> pd.DataFrame:
    keys = {"quantity": ("training", "interlingual", "intralingual"), "direction": DIRECTIONS}
    return banded(directed(rows(2, "value", **keys, model=MODELS, step=(0, 10, 30))), "value")


def ranking(sources: tuple[str, ...] = CODES) -> tuple[pd.DataFrame, pd.DataFrame]:
    metrics = ("MEXA", "IGAP", "dot")
    table = rows(3, "accuracy", metric=metrics, source=sources)
    return table, banded(rows(4, "mean", metric=metrics), "mean")


def permuted() -> tuple[pd.DataFrame, pd.DataFrame]:
    table, summary = ranking()
    return table, summary.assign(random_low=[0.4, 0.41, 0.42], random_high=[0.6, 0.61, 0.62])


def printed() -> pd.DataFrame:
    kinds = ("ours", "printed", "recomputed")
    keys = {"task": ("NLI", "PI"), "quantity": QUANTITIES, "row": ("XLM-R", "mBERT")}
    table = banded(rows(5, "value", **keys, kind=kinds), "value")
    table.loc[table["kind"] != "ours", ["low", "high"]] = np.nan
    empty = (table["kind"] == "ours") & (table["quantity"] == "IGAP") & (table["row"] == "mBERT")
    table.loc[empty & (table["task"] == "PI"), ["value", "low", "high"]] = np.nan
    return table[(table["kind"] != "recomputed") | (table["quantity"] == "IGAP")]


def matrix(codes: tuple[str, ...] = CODES) -> pd.DataFrame:
    table = rows(6, "accuracy", "igap", "transfer_gap", source=codes, target=codes)
    table["transfer_gap"] -= 0.5
    table.loc[(table["source"] == "fr") & (table["target"] == "ja"), "igap"] = np.nan
    return table[(table["source"] != "zh") | (table["target"] != "de")]


def corrupted() -> pd.DataFrame:
    ratios = (1.0, 0.5, 0.0)
    targets = rows(7, "value", quantity=QUANTITIES, target=CODES[:3], ratio=ratios)
    means = banded(rows(8, "value", quantity=QUANTITIES, ratio=ratios), "value")
    table = pd.concat([targets, means], ignore_index=True)
    igap = table["quantity"] == "IGAP"
    table.loc[igap & table["target"].isna() & (table["ratio"] == 0.5), "value"] = np.nan
    table.loc[igap & (table["target"] == "ja") & (table["ratio"] == 1), "value"] = np.nan
    return table.assign(chance=igap.map({True: 2 / 3, False: 1 / 3}))


DRAWN: dict[str, Callable[[], Figure]] = {
    "gap_points_and_curves": lambda: igap_plots.gap_points_and_curves(*gaps()),
    "decomposition": lambda: igap_plots.decomposition(parts()),
    "ranking_dots": lambda: igap_plots.ranking_dots(*permuted(), printed={"IGAP": 0.755}),
    "printed_and_ours": lambda: igap_plots.printed_and_ours(printed()),
    "direction_maps": lambda: igap_plots.direction_maps(matrix()),
    "memorisation": lambda: igap_plots.memorisation(corrupted()),
}


def test_gaps_have_a_point_a_model_and_curves_that_break() -> None:
    points, curves = gaps()
    figure = DRAWN["gap_points_and_curves"]()
    above, below, wrong = np.array(figure.axes).reshape(3, 2)
    assert [axes.get_title(loc="left") for axes in above] == ["ur → en", "en → ur"]
    for (source, target), top, bottom, under in zip(
        DIRECTIONS[::-1], above, below, wrong, strict=True
    ):
        left, right = bottom.get_xlim()
        assert left == pytest.approx(22.5)  # the levels and the window of the highest
        assert left > 0 > right
        for number, model in enumerate(dict.fromkeys(curves["model"])):
            own = of(points, source=source, target=target, model=model)
            own = 100 * own[own["training"] <= 0.225][["training", "transfer_gap", "interlingual"]]
            assert 0 < len(own) < 20
            np.testing.assert_allclose(top.collections[number].get_offsets(), own.iloc[:, :2])
            # below a cloud and a band alternate
            cloud = bottom.collections[2 * number]
            np.testing.assert_allclose(cloud.get_offsets(), own.iloc[:, [0, 2]])
            x, y = np.asarray(under.collections[number].get_offsets()).T
            np.testing.assert_allclose(x, own["training"])
            np.testing.assert_allclose(y, own["training"] + own["interlingual"])
            line = curves_of(bottom)[model]
            rows_ = of(curves, source=source, target=target, model=model).sort_values("level")
            np.testing.assert_allclose(line.get_xydata(), 100 * rows_[["level", "igap"]])
            edges = 100 * rows_[["level", "low", "high"]].dropna().to_numpy()
            assert {(round(x, 6), round(y, 6)) for x, *both in edges for y in both} <= corners(
                bottom
            )
            assert np.isnan(line.get_ydata()).sum() == (3 if model == "mini-a" else 0)
            assert same_color(line.get_color(), cloud.get_facecolor()[0][:3])
        np.testing.assert_allclose(sorted(x for x, _ in crosses(bottom)), [0, 10, 17.5])
        assert all(0 < height < 0.5 for _, height in crosses(bottom))  # shares of the axis
    assert legend(figure)[-1] == "no model in the window"
    assert set(legend(figure)[:-1]) == set(MODELS)
    assert figure.get_supxlabel() == "training error E′ (%)"
    assert all("percentage points" in row[0].get_ylabel() for row in (above, below))


def test_gaps_show_guessing_where_the_table_has_it_and_no_cross_where_all_is_known() -> None:
    points, curves = gaps()
    level = curves["level"]
    curves = curves.assign(chance=2 / 3 - level, one_label=0.4 - level).dropna()
    figure = igap_plots.gap_points_and_curves(points, curves)
    assert legend(figure)[-2:] == ["guessing in the target", "the commonest label there"]
    grid = np.array(figure.axes).reshape(3, 2)
    for below, wrong in grid[1:].T:
        assert not crosses(below)
        for axes, falls in ((below, 1), (wrong, 0)):
            grey = [line for line in axes.get_lines() if same_color(line.get_color(), "0.4")]
            for line, error in zip(grey[-2:], (200 / 3, 40), strict=True):
                x, y = line.get_data()
                np.testing.assert_allclose(x, 100 * np.array(LEVELS[::-1]))
                np.testing.assert_allclose(falls * x + y, error)


def test_gaps_at_one_level_can_be_drawn() -> None:
    points, curves = gaps()
    figure = igap_plots.gap_points_and_curves(points, of(curves, level=0.0))
    assert figure.axes[-1].get_xlim()[0] == pytest.approx(5)


def test_parts_have_a_row_each_and_a_line_a_model() -> None:
    table = parts()
    figure = DRAWN["decomposition"]()
    grid = np.array(figure.axes).reshape(3, 2)
    order = ("intralingual", "interlingual", "training")
    for part, panels in zip(order, grid, strict=True):
        assert panels[0].get_ylabel().startswith(part)
        assert panels[0].get_ylim() == panels[1].get_ylim()
        for (source, target), axes in zip(DIRECTIONS, panels, strict=True):
            own = of(table, quantity=part, source=source, target=target)
            assert len(curves_of(axes)) == len(MODELS)
            for model, line in curves_of(axes).items():
                rows_ = of(own, model=model).sort_values("step")
                expected = np.stack([rows_["step"], 100 * rows_["value"]], axis=1)
                np.testing.assert_allclose(line.get_xydata(), expected)
                assert {
                    (row.step, round(100 * edge, 6))
                    for row in rows_.itertuples()
                    for edge in (row.low, row.high)
                } <= corners(axes)
    assert [axes.get_title(loc="left") for axes in grid[0]] == ["en → ur", "ur → en"]
    assert figure.get_supxlabel() == "fine-tuning step"
    assert legend(figure) == list(dict.fromkeys(table["model"]))


def test_parts_of_many_checkpoints_are_marked_now_and_then_and_not_at_the_same_steps() -> None:
    table = rows(
        0, "value", direction=DIRECTIONS[:1], model=MODELS, quantity=("training",),
        step=tuple(range(40)),
    )  # fmt: skip
    figure = igap_plots.decomposition(banded(directed(table), "value"))
    marked = [line.get_markevery() for line in curves_of(figure.axes[0]).values()]
    assert marked == [(0, 6), (1, 6), (2, 6)]


def test_parts_may_stand_under_their_sum_and_nothing_else_may() -> None:
    table = parts()
    whole = table.assign(quantity=table["quantity"].replace("training", "error"))
    assert igap_plots.decomposition(whole).axes[0].get_ylabel() == "cross-lingual\nerror (%)"
    with pytest.raises(ValueError, match="column 'quantity' has 'gap'; it may have 'error', 'int"):
        igap_plots.decomposition(table.assign(quantity="gap"))


def test_ranking_has_a_named_point_a_source_and_the_mean_below() -> None:
    table, summary = permuted()
    figure = DRAWN["ranking_dots"]()
    axes = figure.axes[0]
    metrics = list(dict.fromkeys(table["metric"]))
    assert texts(axes.get_yticklabels()) == metrics
    assert axes.yaxis_inverted()
    written = {(text.get_text(), text.xy) for text in axes.texts}
    clouds = [each for each in axes.collections if len(each.get_offsets()) == len(CODES)]
    means = [each for each in axes.containers if len(each.lines[0].get_xdata())]
    for number, (metric, cloud, mean) in enumerate(zip(metrics, clouds, means, strict=True)):
        own = of(table, metric=metric)
        x, y = np.asarray(cloud.get_offsets()).T
        np.testing.assert_allclose(x, 100 * own["accuracy"])
        assert len(set(y)) == len(CODES)  # a lane each
        assert number - 0.5 < y.min() < y.max() < number + 0.3
        assert set(zip(own["source"], zip(x, y, strict=True), strict=True)) <= written
        own = of(summary, metric=metric)
        point, bars = ends(mean)
        np.testing.assert_allclose(point, [(100 * own["mean"].item(), number + 0.3)])
        np.testing.assert_allclose(bars, 100 * own[["low", "high"]])
    assert len(written) == len(table)
    (hollow,) = [line for line in axes.get_lines() if line.get_marker() == "D"]
    np.testing.assert_allclose(hollow.get_xydata(), [(75.5, metrics.index("IGAP") + 0.3)])
    assert hollow.get_fillstyle() == "none"
    assert list(axes.get_lines()[0].get_xdata()) == [50, 50]
    for number, band in enumerate(axes.patches):
        own = of(summary, metric=metrics[number])
        np.testing.assert_allclose(
            [band.get_x(), band.get_x() + band.get_width()],
            100 * own[["random_low", "random_high"]].to_numpy()[0],
        )
        assert band.get_y() < number + 0.3 < band.get_y() + band.get_height()
    assert len(axes.patches) == len(metrics)
    assert "%" in axes.get_xlabel()
    assert legend(figure)[1:] == [
        "mean, with interval", "mean, printed", "chance", "mean, languages permuted",
    ]  # fmt: skip


def test_ranking_of_many_sources_names_none_and_needs_no_more_than_the_tables() -> None:
    table, summary = ranking(tuple("abcdefghijklmno"))
    figure = igap_plots.ranking_dots(table, summary)
    assert not figure.axes[0].texts
    assert not figure.axes[0].patches
    assert legend(figure) == ["a source", "mean, with interval", "chance"]


def test_ranking_wants_printed_metrics_that_it_can_place() -> None:
    with pytest.raises(ValueError, match="column 'metric' has 'IGap'; it may have 'MEXA', 'IGAP'"):
        igap_plots.ranking_dots(*ranking(), printed={"IGap": 0.755})


def test_printed_and_ours_stand_in_lanes_of_a_row() -> None:
    table = printed()
    figure = DRAWN["printed_and_ours"]()
    grid = np.array(figure.axes).reshape(2, 2)
    for task, panels in zip(("NLI", "PI"), grid, strict=True):
        for quantity, axes in zip(QUANTITIES[::-1], panels, strict=True):
            assert axes.get_title(loc="left") == task
            assert axes.get_ylim() == (1.5, -0.5)
            order = list(dict.fromkeys(table["row"]))
            assert texts(panels[0].get_yticklabels()) == order
            lanes = []
            for kind, container in zip(
                ("printed", "recomputed", "ours"), axes.containers, strict=True
            ):
                own = of(table, task=task, quantity=quantity, kind=kind)
                points, bars = ends(container)
                np.testing.assert_allclose(points[:, 0], 100 * own["value"])
                assert list(points[:, 1].round()) == [order.index(row) for row in own["row"]]
                lanes += list(points[:, 1])
                np.testing.assert_allclose(bars.reshape(-1, 2), 100 * own[["low", "high"]].dropna())
            assert len(set(lanes)) == len(lanes) == (6 if quantity == "IGAP" else 4)
            said = texts(axes.texts)
            assert said == (["ours: none"] if (task, quantity) == ("PI", "IGAP") else [])
    assert [axes.get_xlabel() for axes in grid[-1]] == ["accuracy (%)", "IGAP (percentage points)"]
    assert legend(figure) == ["printed", "recomputed from the printed rows", "ours, with interval"]


def test_printed_and_ours_may_be_one_kind_and_one_quantity() -> None:
    table = of(printed(), kind="printed", quantity="accuracy", task="PI")
    figure = igap_plots.printed_and_ours(table)
    assert legend(figure) == ["printed"]
    assert len(figure.axes) == 1


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("kind", "paper", "'kind' has 'paper'; it may have 'printed', 'recomputed', 'ours'"),
        ("quantity", "igap", "'quantity' has 'igap'; it may have 'accuracy', 'IGAP'"),
    ],
)
def test_printed_and_ours_know_what_they_can_place(column: str, value: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        igap_plots.printed_and_ours(printed().assign(**{column: value}))


def maps(figure: Figure) -> dict[str, plt.Axes]:
    return {axes.get_title(loc="left"): axes for axes in figure.axes[:3]}


def test_maps_write_every_number_and_hatch_what_is_zero_by_definition() -> None:
    table = matrix()
    figure = DRAWN["direction_maps"]()
    columns = {"test accuracy": "accuracy", "IGAP": "igap", "transfer gap": "transfer_gap"}
    assert list(maps(figure)) == list(columns)
    codes = list(dict.fromkeys(table["source"]))
    assert codes == list(CODES)
    for title, axes in maps(figure).items():
        gap = title != "test accuracy"
        assert texts(axes.get_xticklabels()) == codes
        assert axes.yaxis_inverted()
        written = {text.xy: text.get_text() for text in axes.texts}
        hatched = {x.get_xy() for x in axes.patches if isinstance(x, Rectangle) and x.get_hatch()}
        values = np.ma.filled(axes.collections[0].get_array().reshape(5, 5), np.nan)
        for (row, source), (column, target) in itertools.product(enumerate(codes), repeat=2):
            own = of(table, source=source, target=target)
            at = (column + 0.5, row + 0.5)
            if gap and source == target:
                assert (column, row) in hatched
            elif own.empty:
                assert (source, target) == ("zh", "de")
            else:
                value = 100 * own[columns[title]].item()
                np.testing.assert_allclose(values[row, column], value)
                expected = "–" if np.isnan(value) else f"{value:.1f}".replace("-", "−")
                assert written.pop(at) == expected
                continue
            assert np.isnan(values[row, column])
        assert not written  # nothing on what is hatched or not measured
        assert len(hatched) == (5 if gap else 0)
    assert texts(figure.axes[0].get_yticklabels()) == codes
    assert figure.axes[0].get_ylabel() == "source"
    for title in ("test accuracy", "IGAP"):
        mesh = maps(figure)[title].collections[0]
        assert mesh.get_clim() == (mesh.get_array().min(), mesh.get_array().max())
    low, high = maps(figure)["transfer gap"].collections[0].get_clim()
    assert low == -high
    gaps_ = table.loc[table["source"] != table["target"], "transfer_gap"]
    assert high == pytest.approx(100 * gaps_.abs().max())
    assert [axes.get_xlabel() for axes in figure.axes[3:]] == ["%", *["percentage points"] * 2]
    assert legend(figure) == [
        "same language: 0 by definition", "no model in the window", "not measured",
    ]  # fmt: skip


def test_maps_of_fifteen_languages_keep_type_that_can_be_read() -> None:
    codes = tuple(f"l{number}" for number in range(15))
    figure = igap_plots.direction_maps(rows(0, "accuracy", "igap", "transfer_gap", source=codes,
                                            target=codes))  # fmt: skip
    assert figure.get_size_inches()[0] <= 10
    assert legend(figure) == ["same language: 0 by definition"]
    figure.set_dpi(72)
    figure.canvas.draw()
    for axes in maps(figure).values():
        cell = axes.get_window_extent().width / 15
        for text in axes.texts:
            assert text.get_fontsize() >= 7
            assert text.get_text().removeprefix("−").isdigit()
            assert text.get_window_extent().width < cell


def test_maps_are_of_the_columns_that_there_are() -> None:
    table = rows(0, "transfer_gap", source=tuple("abcdefghij"), target=tuple("abcdefghij"))
    axes, _ = igap_plots.direction_maps(table).axes  # and the bar of its colours
    assert axes.get_title(loc="left") == "transfer gap"
    # one panel has room for decimals
    assert all("." in text.get_text() for text in axes.texts)
    with pytest.raises(ValueError, match="no column to draw: one of accuracy, igap, transfer_gap"):
        igap_plots.direction_maps(table[["source", "target"]])


def test_maps_of_few_sources_have_a_row_each_in_the_order_of_the_columns() -> None:
    table = matrix()
    table = table[table["source"].isin(["de", "fr"]) & (table["source"] != table["target"])]
    figure = igap_plots.direction_maps(table)
    axes = maps(figure)["IGAP"]
    targets = texts(axes.get_xticklabels())
    assert targets[:2] == texts(figure.axes[0].get_yticklabels()) == ["fr", "de"]
    assert sorted(targets) == sorted(CODES)
    assert {x.get_xy() for x in axes.patches if x.get_hatch()} == {(0, 0), (1, 1)}


def test_maps_without_a_model_in_any_window_are_all_dashes() -> None:
    table = matrix().assign(igap=np.nan, transfer_gap=0.0)
    figure = maps(igap_plots.direction_maps(table))
    assert set(texts(figure["IGAP"].texts)) == {"–"}
    assert set(texts(figure["transfer gap"].texts)) == {"0.0"}


def test_maps_write_no_negative_zero() -> None:
    figure = igap_plots.direction_maps(matrix().assign(transfer_gap=-0.0002))
    assert set(texts(maps(figure)["transfer gap"].texts)) == {"0.0"}


def test_maps_want_one_row_a_direction() -> None:
    with pytest.raises(ValueError, match=r"fr → \w+ has more than one row: draw one task, model"):
        igap_plots.direction_maps(pd.concat([matrix()] * 2))


def test_ink_has_the_better_contrast_on_every_colour_of_the_maps() -> None:
    def light(colour) -> float:
        linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in colour[:3]]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    for *_, name, _ in igap_plots._MAPS:
        for colour in matplotlib.colormaps[name](np.linspace(0, 1, 50)):
            ink, other = ink_on(colour), {"black": "white", "white": "black"}
            contrast = {
                each: (max(light(to_rgb(each)), light(colour)) + 0.05)
                / (min(light(to_rgb(each)), light(colour)) + 0.05)
                for each in other
            }
            assert contrast[ink] >= max(4.5, contrast[other[ink]] - 0.1)


def test_memorisation_has_thin_lines_and_their_mean() -> None:
    table = corrupted()
    figure = DRAWN["memorisation"]()
    for quantity, axes in zip(QUANTITIES[::-1], figure.axes, strict=True):
        own = of(table, quantity=quantity).sort_values("ratio")
        mean = own[own["target"].isna()]
        line = curves_of(axes)["mean"]
        np.testing.assert_allclose(line.get_ydata(), 100 * mean["value"])
        np.testing.assert_allclose(line.get_xdata(), [0, 0.5, 1])
        thin = [each for each in axes.get_lines() if each.get_linewidth() == 0.7]
        codes = list(dict.fromkeys(own["target"].dropna()))
        for each, code in zip(thin, codes, strict=True):
            np.testing.assert_allclose(each.get_ydata(), 100 * of(own, target=code)["value"])
        named = {text.get_text(): text.xy for text in axes.texts}
        for code in codes:
            last = of(own, target=code).dropna(subset="value").iloc[-1]
            np.testing.assert_allclose(named[code], (last["ratio"], 100 * last["value"]))
            assert last["ratio"] == (0.5 if (code, quantity) == ("ja", "IGAP") else 1)
        assert len(named) == len(codes) == 3
        chance = axes.get_lines()[0]
        np.testing.assert_allclose(chance.get_ydata(), 200 / 3 if quantity == "IGAP" else 100 / 3)
        assert [x for x, _ in crosses(axes)] == ([0.5] if quantity == "IGAP" else [])
        heights = sorted(text.get_position()[1] for text in axes.texts)
        low, high = axes.get_ylim()
        assert np.diff(heights).min() >= 0.045 * (high - low) - 1e-9
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "accuracy (%)", "IGAP (percentage points)",
    ]  # fmt: skip
    assert legend(figure)[-1] == "no model in the window"


def test_memorisation_may_be_of_means_alone() -> None:
    table = corrupted()
    figure = igap_plots.memorisation(of(table[table["target"].isna()], quantity="accuracy"))
    (axes,) = figure.axes
    assert not axes.texts
    assert "no model in the window" not in legend(figure)
    with pytest.raises(ValueError, match="column 'quantity' has 'error'"):
        igap_plots.memorisation(table.assign(quantity="error"))


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=9), st.floats(0.01, 10))
def test_labels_move_no_more_than_they_have_to(heights: list[float], least: float) -> None:
    before = np.array(heights)
    after = igap_plots._apart(before, least)
    order = np.argsort(before, kind="stable")
    assert (np.diff(after[order]) >= least - 1e-9).all()
    assert after.sum() == pytest.approx(before.sum(), abs=1e-6)
    if (np.diff(before[order]) >= least).all():
        np.testing.assert_allclose(after, before, atol=1e-9)


def test_two_labels_at_one_height_move_by_half_the_distance_each() -> None:
    np.testing.assert_allclose(igap_plots._apart(np.array([3.0, 9.0, 3.0]), 1), [2.5, 9.0, 3.5])


def test_eight_models_do_not_fit() -> None:
    points, curves = (
        pd.concat([of(table, model="mini-b").assign(model=str(number)) for number in range(8)])
        for table in gaps()
    )
    message = "8 models cannot be told apart by 7 colours"
    with pytest.raises(ValueError, match=message):
        igap_plots.gap_points_and_curves(points, curves)
    with pytest.raises(ValueError, match=message):
        igap_plots.decomposition(curves.assign(quantity="training"))


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


def test_looks_differ_in_marker_and_dash_as_well_as_in_colour() -> None:
    looks = distinct_looks("abcdefg", "models").values()
    for quality in ("color", "marker", "linestyle"):
        assert len({str(look[quality]) for look in looks}) == 7
    assert len({marker for _, marker, *_ in igap_plots._KINDS.values()}) == 3
