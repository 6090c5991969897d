"""Figures of MEXA draw what their table holds, label it, and are the same bytes each time."""

import itertools
from collections.abc import Callable

import matplotlib
import numpy as np
import pandas as pd
import pytest

from tests.tables import banded, of, rows
from xlx import mexa, mexa_plots, plots

matplotlib.use("agg")
import matplotlib.pyplot as plt
from matplotlib.colors import same_color, to_rgb
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure

MODELS = ("mini-b", "mini-a", "mini-c")  # not in the order of the alphabet
CODES = ("de", "fr", "ja", "yo")
NAMES = {"ja": "Japanese (ja)", "fr": "French (fr)", "de": "German (de)", "yo": "Yoruba (yo)"}


@pytest.fixture(autouse=True)
def _close() -> None:
    yield
    plt.close("all")


def panels(figure: Figure) -> dict[str, plt.Axes]:
    """Axes by their title, where they have one (colour bars have none)."""
    return {axes.get_title(loc="left"): axes for axes in figure.axes if axes.get_title(loc="left")}


def texts(labels: list) -> list[str]:
    return [label.get_text() for label in labels]


def named(axes: plt.Axes) -> dict[str, tuple[float, float]]:
    """What is written at a point of the axes."""
    return {text.get_text(): text.xy for text in axes.texts}


def drawn(container) -> tuple[np.ndarray, list[np.ndarray]]:
    """Points of error bars, ``(n, 2)``, and the ends of the bars of each direction."""
    line, _, bars = container.lines
    segments = [
        [s for s in bar.get_segments() if s.shape == (2, 2) and not np.isnan(s).any()]
        for bar in bars
    ]
    return np.asarray(line.get_xydata()), [np.array(each) for each in segments]


def legend(figure: Figure) -> list[str]:
    return texts(figure.legends[0].get_texts())


def tails() -> pd.DataFrame:
    simulated = mexa.chance_simulation(5, 8, 200).tails().assign(n=5)
    few = mexa.chance_simulation(30, 8, 200).tails().assign(n=30)
    return pd.concat([simulated, mexa.chance(10).assign(n=10), few.sample(frac=1, random_state=0)])


def layers(**keys: object) -> tuple[pd.DataFrame, pd.DataFrame]:
    own = {"group": ("seen", "others"), "states": ("raw", "centred"), "layer": range(17)} | keys
    table = pd.concat(
        [
            rows(0, "mu", model=MODELS[:1], **own | {"layer": tuple(range(4))}),
            rows(1, "mu", model=MODELS[1:2], **own),
        ]
    )
    return table, rows(2, "mu", model=MODELS[:2], group=own["group"])


def plane() -> pd.DataFrame:
    keys = {"panel": ("layer 9", "layer 1"), "language": CODES, "sentence": tuple(range(5))}
    table = rows(2, "x", "y", **keys)
    table["numbered"] = (table["panel"] == "layer 9") & (table["language"] == "de")
    return table


def expectations() -> tuple[pd.DataFrame, pd.DataFrame]:
    titles = ("Bible, mean", "Bible, max", "FLORES, mean", "FLORES, max", "tiny")
    table = rows(3, "expected", "score", panel=titles, language=tuple("abcdefgh"))
    table = table.assign(
        score_low=table["score"] - 0.03, score_high=table["score"] + 0.04,
        mu_low=table["expected"] - 0.05, mu_high=table["expected"] + 0.02,
        written=table["language"].where(table["language"].isin(["c", "e"]), ""),
    )  # fmt: skip
    table.loc[table["language"] == "b", ["score_low", "score_high"]] = np.nan
    lines = rows(4, "y", panel=titles, kind=("fitted", "ideal", "chance"), x=(0.8, 0.1, 0.4))
    lines = banded(lines, "y")
    lines.loc[lines["kind"] != "fitted", ["low", "high"]] = np.nan
    return table, lines


def adjusted() -> pd.DataFrame:
    table = rows(5, "score", model=MODELS, language=CODES)
    table["score"] = np.linspace(0, 1, len(table))
    table = table.assign(band=mexa.bands(table["score"]))
    return table[(table["model"] != "mini-a") | (table["language"] != "fr")]


def verses() -> tuple[pd.DataFrame, pd.DataFrame]:
    keys = {"model": MODELS, "pooling": ("weighted_mean", "last")}
    table = rows(6, "difference", **keys, language=CODES)
    table["difference"] -= 0.5
    return table, banded(rows(7, "mean", **keys), "mean")


def measures() -> pd.DataFrame:
    table = banded(rows(8, "value", measure=("MEXA", "CKA", "cosine"), model=MODELS[::-1]), "value")
    missing = (table["measure"] == "CKA") & (table["model"] == "mini-a")
    table.loc[missing, ["value", "low", "high"]] = np.nan
    return table


def checks() -> pd.DataFrame:
    printed = [0.5, 0.6, 0.7, np.nan, 0.905, 0.2, 0.4]
    recomputed = [0.504, 0.62, 0.65, 0.3, 0.9, np.nan, 0.4]
    return pd.DataFrame(
        {
            "table": ["Table 5"] * 4 + ["Table 1"] * 3,
            "what": list("abcdefg"),
            "printed": printed,
            "recomputed": recomputed,
            "tolerance": 0.005,
        },
        index=[0, 1, 2, 3, 0, 1, 2],  # as left by a concatenation
    )


def near() -> pd.DataFrame:
    table = rows(9, "parallel", "other", "score", model=MODELS, language=CODES)
    table.loc[(table["model"] == "mini-a") & (table["language"] == "ja"), "score"] = np.nan
    table.index = [0] * len(table)
    return table


def surfaces() -> pd.DataFrame:
    titles = ("Llama: above in 3", "OLMo: above in 1")
    return rows(10, "surface", "mu", panel=titles, script=("Latin", "other"), language=CODES)


DRAWN: dict[str, Callable[[], Figure]] = {
    "chance_tails": lambda: mexa_plots.chance_tails(tails()),
    "layer_scores": lambda: mexa_plots.layer_scores(*layers()),
    "neighbourhoods": lambda: mexa_plots.neighbourhoods(plane(), NAMES),
    "estimates": lambda: mexa_plots.estimates(*expectations()),
    "coverage_bands": lambda: mexa_plots.coverage_bands(adjusted(), NAMES, 2),
    "seen_unseen": lambda: mexa_plots.seen_unseen(*verses()),
    "correlations": lambda: mexa_plots.correlations(measures()),
    "differences": lambda: mexa_plots.differences(checks()),
    "cosines": lambda: mexa_plots.cosines(near()),
    "above_surface": lambda: mexa_plots.above_surface(surfaces()),
}


def test_chance_has_two_lines_a_size_and_points_where_simulated() -> None:
    table = tails()
    figure = DRAWN["chance_tails"]()
    axes = figure.axes[0]
    assert axes.get_yscale() == "log"
    curves = [
        line for line in axes.get_lines() if len(line.get_xdata()) and line.get_marker() == "None"
    ]
    expected = [
        (n, column, dash)
        for n in (5, 10, 30)
        for column, dash in (("binomial", "-"), ("matrix", "--"))
    ]
    for (n, column, dash), line in zip(expected, curves, strict=True):
        own = of(table, n=n).sort_values("mu")
        np.testing.assert_array_equal(line.get_xydata(), own[own[column] > 0][["mu", column]])
        assert line.get_linestyle() == dash
    with_points = [each for each in axes.containers if len(each.lines[0].get_xdata())]
    for n, container in zip((5, 30), with_points, strict=True):
        own = of(table, n=n).sort_values("mu")
        own = own[own["vectors"] > 0]
        assert len(own) < n + 1  # some shares never came up
        points, (bars,) = drawn(container)
        np.testing.assert_array_equal(points, own[["mu", "vectors"]])
        np.testing.assert_allclose(bars[:, :, 1], own[["low", "high"]])
    assert list(named(axes)) == ["n = 5", "10", "30"]
    assert legend(figure)[2].startswith("random vectors")
    assert (axes.get_xlabel(), axes.get_ylabel()) == (
        "share of hits, μ",
        "probability of that share or more",
    )


def test_chance_without_simulation_has_no_points() -> None:
    figure = mexa_plots.chance_tails(mexa.chance(20).assign(n=20))
    assert len(legend(figure)) == 2
    assert not figure.axes[0].containers


def test_layers_have_a_line_a_group_and_way_and_the_bag_across() -> None:
    table, bags = layers()
    groups, states = (list(dict.fromkeys(table[key])) for key in ("group", "states"))
    dashes = ("-", "-", "--", "--")
    figure = DRAWN["layer_scores"]()
    assert list(panels(figure)) == ["mini-b", "mini-a"]
    for model, axes in panels(figure).items():
        lines = axes.get_lines()
        ways = itertools.product(states, groups)
        for (way, group), dash, line in zip(ways, dashes, lines, strict=False):
            own = of(table, model=model, group=group, states=way).sort_values("layer")
            np.testing.assert_array_equal(line.get_xydata(), own[["layer", "mu"]])
            assert line.get_linestyle() == dash
        colours = dict(zip(groups, (lines[0].get_color(), lines[1].get_color()), strict=True))
        for line, row in zip(lines[4:], of(bags, model=model).itertuples(), strict=True):
            assert set(line.get_ydata()) == {row.mu}
            assert same_color(line.get_color(), colours[row.group])
            assert line.get_linestyle() == ":"
        assert axes.get_xlabel() == "layer (0: embeddings)"
        assert axes.get_ylim()[0] == 0
    first, second = panels(figure).values()
    assert first.get_ylim() == second.get_ylim()
    assert first.get_ylabel() == "MEXA score μ (share of hits)"
    assert legend(figure) == [*groups, *states, "bag of subwords"]


def test_neighbours_have_a_mark_a_language_and_numbers_where_asked() -> None:
    table = plane()
    figure = DRAWN["neighbourhoods"]()
    assert list(panels(figure)) == ["layer 9", "layer 1"]
    for panel, axes in panels(figure).items():
        for cloud, code in zip(axes.collections, NAMES, strict=True):
            own = of(table, panel=panel, language=code)
            np.testing.assert_array_equal(cloud.get_offsets(), own[["x", "y"]])
        own = of(table, panel=panel, numbered=True)
        assert named(axes) == {str(row.sentence): (row.x, row.y) for row in own.itertuples()}
        assert len(named(axes)) == (5 if panel == "layer 9" else 0)
        assert not list(axes.get_xticks())
        assert axes.get_xlabel() == "t-SNE, no units"
    assert legend(figure) == list(NAMES.values())


def test_neighbours_are_told_apart_by_mark_and_colour_up_to_21() -> None:
    codes = tuple(f"l{number}" for number in range(21))
    table = rows(0, "x", "y", panel=("one",), language=codes, sentence=(0,)).assign(numbered=False)
    axes = mexa_plots.neighbourhoods(table, {code: code for code in codes}).axes[0]
    looks = {
        (tuple(cloud.get_facecolor()[0]), cloud.get_paths()[0].vertices.tobytes())
        for cloud in axes.collections
    }
    assert len(looks) == 21
    with pytest.raises(ValueError, match="22 languages cannot be told apart by 21 marks"):
        mexa_plots.neighbourhoods(table, {code: code for code in (*codes, "more")})


def test_estimates_have_points_with_intervals_and_three_lines() -> None:
    table, lines = expectations()
    figure = DRAWN["estimates"]()
    assert list(panels(figure)) == list(dict.fromkeys(table["panel"]))
    assert [axes.get_visible() for axes in figure.axes] == [True] * 5 + [False]
    for title, axes in panels(figure).items():
        own = of(table, panel=title)
        points, (across, up) = drawn(axes.containers[0])
        np.testing.assert_array_equal(points, own[["expected", "score"]])
        # points, intervals, bands: no density, which would smooth a heap of points below zero
        assert not [each for each in axes.collections if isinstance(each, ContourSet)]
        np.testing.assert_allclose(across[:, :, 0], own[["mu_low", "mu_high"]])
        np.testing.assert_allclose(up[:, :, 1], own[["score_low", "score_high"]].dropna())
        assert len(up) == 7
        for line, kind in zip(axes.get_lines()[1:], dict.fromkeys(lines["kind"]), strict=True):
            own_line = of(lines, panel=title, kind=kind).sort_values("x")
            np.testing.assert_array_equal(line.get_xydata(), own_line[["x", "y"]])
            assert same_color(line.get_color(), mexa_plots._LINES[kind][1])
        fitted = of(lines, panel=title, kind="fitted")
        edges = {
            (round(x, 9), round(edge, 9))
            for x, low, high in fitted[["x", "low", "high"]].to_numpy(float)
            for edge in (low, high)
        }
        corners = [
            {(round(x, 9), round(y, 9)) for x, y in path.vertices}
            for each in axes.collections
            for path in each.get_paths()
        ]
        assert any(edges <= found for found in corners)
        own = own[own["written"] != ""]
        assert named(axes) == {row.written: (row.expected, row.score) for row in own.itertuples()}
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("", "")
    assert figure.get_supxlabel() == "MEXA score × score in English"
    assert figure.get_supylabel() == "score of the task"
    assert legend(figure)[0] == "a language"
    assert len(legend(figure)) == 4


def test_estimates_take_labels_and_go_without_intervals_of_the_score() -> None:
    table, lines = expectations()
    figure = mexa_plots.estimates(
        of(table, panel="tiny").drop(columns=["mu_low", "mu_high"]),
        of(lines, kind="ideal"),
        xlabel="across",
        ylabel="up",
    )
    assert (figure.get_supxlabel(), figure.get_supylabel()) == ("across", "up")
    assert legend(figure) == ["a language", "ideal line"]
    _, bars = drawn(figure.axes[0].containers[0])
    assert len(bars) == 1


def test_bands_colour_and_number_every_cell() -> None:
    table = adjusted()
    figure = DRAWN["coverage_bands"]()
    assert len(figure.axes) == 2
    for axes, block in zip(figure.axes, (["ja", "fr"], ["de", "yo"]), strict=True):
        assert texts(axes.get_yticklabels()) == [NAMES[code] for code in block]
        assert texts(axes.get_xticklabels()) == list(MODELS)
        mesh = axes.collections[0]
        mesh.update_scalarmappable()
        colours = mesh.get_facecolor().reshape(len(block), len(MODELS), 4)
        written = {text.xy: text.get_text() for text in axes.texts}
        for (row, code), (column, model) in itertools.product(enumerate(block), enumerate(MODELS)):
            own = of(table, language=code, model=model)
            at = (column + 0.5, row + 0.5)
            if own.empty:
                assert at not in written
                assert same_color(colours[row, column], "0.85")
                continue
            level = mexa.BANDS.index(own["band"].item())
            assert same_color(colours[row, column], mexa_plots._BANDS[level])
            number = written[at]
            assert number in ("1.0", f"{own['score'].item():.2f}"[1:])
            assert float(number) == pytest.approx(own["score"].item(), abs=0.005 + 1e-9)
    labels = [text.split(":")[0] for text in legend(figure)]
    assert labels == [*mexa.BANDS, "no score"]


def test_bands_need_not_be_numbered() -> None:
    figure = mexa_plots.coverage_bands(adjusted(), NAMES, 2, written=False)
    assert not any(axes.texts for axes in figure.axes)


def test_bands_fill_a_page_with_type_that_can_be_read() -> None:
    codes = [f"abc_{number:04}" for number in range(60)]
    table = rows(0, "score", model=MODELS, language=tuple(codes))
    table = table.assign(band=mexa.bands(table["score"]))
    figure = mexa_plots.coverage_bands(table, {code: code for code in codes})
    assert [len(axes.get_yticks()) for axes in figure.axes] == [12] * 5
    assert {axes.get_ylim() for axes in figure.axes} == {(12, 0)}
    first = figure.axes[0]
    assert min(text.get_fontsize() for text in (*first.texts, *first.get_yticklabels())) >= 4.5
    assert "no score" not in legend(figure)


def test_bands_are_in_order_in_grey_and_carry_their_numbers() -> None:
    def light(colour: str) -> float:
        linear = [
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
            for part in to_rgb(colour)
        ]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    lights = [light(colour) for colour in mexa_plots._BANDS]
    for brighter, darker in itertools.pairwise(lights):
        assert (brighter + 0.05) / (darker + 0.05) > 1.3
    for background, ink in zip(lights, mexa_plots._INKS, strict=True):
        contrast = (background + 0.05) / 0.05 if ink == "black" else 1.05 / (background + 0.05)
        assert contrast > 3.9


def test_verses_have_a_dot_a_language_and_the_mean_below() -> None:
    table, summary = verses()
    figure = DRAWN["seen_unseen"]()
    axes = figure.axes[0]
    assert texts(axes.get_yticklabels()) == list(MODELS)
    assert axes.yaxis_inverted()
    bars = [each for each in axes.containers if len(each.lines[0].get_xdata())]
    keys = list(itertools.product(MODELS, dict.fromkeys(table["pooling"])))
    for (model, pooling), cloud, container in zip(keys, axes.collections[::2], bars, strict=False):
        x, y = cloud.get_offsets().T
        own = of(table, model=model, pooling=pooling)["difference"]
        np.testing.assert_array_equal(x, np.sort(own))
        assert np.abs(y - MODELS.index(model)).max() < 0.5  # no lane runs into the next
        mean = of(summary, model=model, pooling=pooling)
        ((at, height),), (ends,) = drawn(container)
        assert at == mean["mean"].item()
        assert y.max() < height < MODELS.index(model) + 0.5
        np.testing.assert_allclose(ends[:, :, 0], mean[["low", "high"]])
    assert len(bars) == len(keys)
    assert list(axes.get_lines()[0].get_xdata()) == [0, 0]
    assert "held-out verses − on verses in pretraining" in axes.get_xlabel()
    assert legend(figure) == ["last token", "weighted mean of tokens", "mean, with interval"]


def test_poolings_of_a_model_alone_have_its_space() -> None:
    table, summary = verses()
    alone = (table["model"] != MODELS[1]) | (table["pooling"] == table["pooling"].iloc[0])
    figure = mexa_plots.seen_unseen(table[alone], summary)
    clouds = [cloud.get_offsets()[:, 1] for cloud in figure.axes[0].collections[::2]][:3]
    assert [round(float(np.mean(y))) for y in clouds] == [0, 0, 1]
    assert abs(np.mean(clouds[2]) - 1) < 0.1 < abs(np.mean(clouds[0]))


def test_correlations_have_a_row_a_measure_and_a_mark_a_model() -> None:
    table = measures()
    figure = DRAWN["correlations"]()
    axes = figure.axes[0]
    order = ["MEXA", "CKA", "cosine"]
    assert texts(axes.get_yticklabels()) == order
    assert axes.yaxis_inverted()
    models = list(dict.fromkeys(table["model"]))
    assert legend(figure) == models
    for model, container in zip(models, axes.containers, strict=True):
        own = of(table, model=model)
        points, (bars,) = drawn(container)
        np.testing.assert_array_equal(points[:, 0], own["value"])
        assert list(points[:, 1].round()) == [order.index(each) for each in own["measure"]]
        np.testing.assert_allclose(bars[:, :, 0], own[["low", "high"]].dropna())
        assert len(bars) == (2 if model == "mini-a" else 3)
    assert axes.get_xlabel() == "correlation with the task (Pearson), 95 % interval"
    other = mexa_plots.correlations(table, xlabel="of ranks").axes[0]
    assert other.get_xlabel() == "of ranks"


def test_correlations_of_one_model_stand_on_their_row() -> None:
    table = of(measures(), model="mini-b")
    (container,) = mexa_plots.correlations(table).axes[0].containers
    assert list(drawn(container)[0][:, 1]) == [0, 1, 2]


def test_the_nine_models_of_the_paper_are_told_apart() -> None:
    table = of(measures(), model="mini-b")
    nine = pd.concat([table.assign(model=f"org/model-{number}") for number in range(9)])
    axes = mexa_plots.correlations(nine).axes[0]
    looks = {(line[0].get_color(), line[0].get_marker()) for line in axes.containers}
    assert len(looks) == 9
    many = pd.concat([table.assign(model=str(number)) for number in range(50)])
    with pytest.raises(ValueError, match="50 models cannot be told apart by 7 colours and 7 mark"):
        mexa_plots.correlations(many)


@pytest.mark.parametrize("name", ["layer_scores", "cosines"])
def test_panels_of_nine_models_stand_in_rows(name: str) -> None:
    nine = [f"org/model-{number}" for number in range(9)]
    if name == "layer_scores":
        table = rows(1, "mu", model=nine, group=("all",), states=("raw",), layer=range(81))
        figure = mexa_plots.layer_scores(table, rows(2, "mu", model=nine, group=("all",)))
    else:
        figure = mexa_plots.cosines(pd.concat([of(near(), model="mini-b").assign(model=x)
                                               for x in nine]))  # fmt: skip
    drawn = panels(figure)
    assert list(drawn) == nine
    assert figure.get_size_inches()[0] < 12
    assert len({axes.get_subplotspec().rowspan.start for axes in drawn.values()}) == 3
    figure.canvas.draw()
    ends = [label.get_window_extent() for label in drawn[nine[-1]].get_xticklabels()]
    assert all(one.x1 < other.x0 for one, other in itertools.pairwise(ends))


def test_differences_name_what_disagrees_and_count_what_is_missing() -> None:
    figure = DRAWN["differences"]()
    axes = figure.axes[0]
    assert texts(axes.get_yticklabels()) == [
        "Table 5: 1 of 3 agree, 1 missing",
        "Table 1: 2 of 2 agree, 1 missing",  # one of them at the edge, but for rounding
    ]
    assert axes.get_xscale() == "symlog"
    assert {name: round(x, 9) for name, (x, _) in named(axes).items()} == {"b": 4, "c": -10}
    dots, crosses = (
        np.concatenate(
            [line.get_xydata() for line in axes.get_lines() if line.get_marker() == mark]
        )
        for mark in ("o", "X")
    )
    np.testing.assert_allclose(sorted(dots[:, 0]), [-1, 0, 0.8], atol=1e-9)
    np.testing.assert_allclose(crosses, [(4, 1), (-10, 2)])  # a lane each
    assert np.unique(dots[:, 1].round()).tolist() == [0, 3]
    low, high = axes.get_xlim()
    assert low < -10
    assert high > 4
    assert legend(figure) == ["what rounding allows", "agrees", "disagrees"]


def test_differences_need_a_unit() -> None:
    table = checks().assign(tolerance=[0.005] * 4 + [0.0] * 3)
    with pytest.raises(ValueError, match=r"Table 1, e: a tolerance of 0\.0 is no unit"):
        mexa_plots.differences(table)


def test_differences_may_all_be_missing() -> None:
    axes = mexa_plots.differences(checks().assign(printed=np.nan)).axes[0]
    assert texts(axes.get_yticklabels())[0] == "Table 5: 0 of 0 agree, 4 missing"


def test_models_stand_above_or_below_the_surface() -> None:
    figure = DRAWN["above_surface"]()
    table = surfaces()
    scripts = list(dict.fromkeys(table["script"]))
    assert list(panels(figure)) == list(dict.fromkeys(table["panel"]))
    for title, axes in panels(figure).items():
        diagonal, *marks = axes.get_lines()
        assert (diagonal.get_slope(), diagonal.get_linestyle()) == (1, "--")
        for script, line in zip(scripts, marks, strict=True):
            own = of(table, panel=title, script=script)
            np.testing.assert_array_equal(line.get_xydata(), own[["surface", "mu"]])
        assert len({line.get_marker() for line in marks}) == 2
    assert legend(figure) == [*scripts, "equal"]


def test_cosines_are_coloured_by_the_task_and_compared_with_the_diagonal() -> None:
    table = near()
    figure = DRAWN["cosines"]()
    assert list(panels(figure)) == list(MODELS)
    for model, axes in panels(figure).items():
        own = of(table, model=model)
        full, bare = own[own["score"].notna()], own[own["score"].isna()]
        (cloud,) = axes.collections
        np.testing.assert_array_equal(cloud.get_offsets(), full[["other", "parallel"]])
        np.testing.assert_array_equal(cloud.get_array(), full["score"])
        assert cloud.get_clim() == (table["score"].min(), table["score"].max())
        diagonal, hollow = axes.get_lines()
        assert diagonal.get_slope() == 1
        np.testing.assert_array_equal(hollow.get_xydata(), bare[["other", "parallel"]])
        assert len(bare) == (1 if model == "mini-a" else 0)
        assert ("no task score" in texts(axes.get_legend().get_texts())) == bool(len(bare))
        ends = own[own["other"].isin([own["other"].min(), own["other"].max()])]
        assert named(axes) == {row.language: (row.other, row.parallel) for row in ends.itertuples()}
        assert axes.get_xlim() == axes.get_ylim()
        assert axes.get_xlabel() == "mean cosine of other sentences"
    assert figure.axes[0].get_ylabel() == "mean cosine of translations"
    assert figure.axes[-1].get_ylabel() == "task score"


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


def test_saved_files_are_the_same_bytes(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLX_FIGURES", str(tmp_path))
    for copy in ("one", "two"):
        plots.save(DRAWN["differences"](), copy)
    for suffix in (".pdf", ".png"):
        one, two = (tmp_path / f"{copy}{suffix}" for copy in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()


def test_kinds_differ_in_more_than_colour() -> None:
    lines = list(mexa_plots._LINES.values())
    assert len({(colour, str(dash)) for _, colour, dash in lines}) == len(lines)
    assert len({str(dash) for _, _, dash in lines}) == len(lines)
    assert len({marker for _, _, marker in mexa_plots._POOLINGS.values()}) == 3
    assert len(set(mexa_plots._MARKERS)) == len(set(mexa_plots._COLOURS)) == 7
