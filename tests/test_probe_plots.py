"""Figures of probes draw what their table holds, label it, and are the same bytes each time."""

import itertools
from collections.abc import Callable

import matplotlib
import numpy as np
import pandas as pd
import pytest

from xlx import plots, probe_plots

matplotlib.use("agg")
import matplotlib.pyplot as plt
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

MODELS = ("mini-a", "mini-b")
TASKS = ("POS", "NER")
STEPS = (0, 10, 1000)
CODES = ("de", "fr", "ja")
NAMES = {"ja": "Japanese (ja)", "fr": "French (fr)", "de": "German (de)"}
KINDS = {"trained": "last checkpoint", "control": "control task", "majority": "commonest label"}


@pytest.fixture(autouse=True)
def _close() -> None:
    yield
    plt.close("all")


def rows(seed: int, *values: str, **keys: tuple) -> pd.DataFrame:
    """Every combination of model, task and the keys, in no order, with a random number each."""
    rng = np.random.default_rng(seed)
    keys = {"model": MODELS, "task": TASKS} | keys
    table = pd.DataFrame(list(itertools.product(*keys.values())), columns=list(keys))
    for value in values:
        table[value] = rng.uniform(0.2, 0.9, len(table))
    order = rng.permutation(len(table) - 1) + 1  # the first stays: it names the first panel
    table = table.iloc[[0, *order]].reset_index(drop=True)
    return table.sort_values(["model", "task"], kind="stable", key=lambda column: column != "POS")


def banded(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(low=table["score"] - 0.03, high=table["score"] + 0.02)


def of(table: pd.DataFrame, **keys: object) -> pd.DataFrame:
    for name, value in keys.items():
        table = table[table[name] == value]
    return table


def panels(figure: Figure) -> dict[str, plt.Axes]:
    """Axes by their title, where they have one (colour bars have none)."""
    return {axes.get_title(loc="left"): axes for axes in figure.axes if axes.get_title(loc="left")}


def line_of(axes: plt.Axes, label: str) -> np.ndarray:
    (line,) = (line for line in axes.get_lines() if line.get_label() == label)
    return np.asarray(line.get_xydata())


def band_of(axes: plt.Axes, number: int) -> set[tuple[float, float]]:
    corners = axes.collections[number].get_paths()[0].vertices
    return {(round(x, 9), round(y, 9)) for x, y in corners}


def band_in(table: pd.DataFrame, x: str) -> set[tuple[float, float]]:
    return {
        (round(at, 9), round(edge, 9))
        for at, low, high in table[[x, "low", "high"]].to_numpy(float)
        for edge in (low, high)
    }


def boxes(axes: plt.Axes) -> set[tuple[int, int]]:
    """Cells, (row, column), that a box is drawn into."""
    found = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    for patch in found:
        assert not patch.get_fill()
        for start, size in zip(
            patch.get_xy(), (patch.get_width(), patch.get_height()), strict=True
        ):
            assert int(start) < start < start + size < int(start) + 1  # inside one cell
    return {(int(patch.get_y()), int(patch.get_x())) for patch in found}


def texts(labels: list) -> list[str]:
    return [label.get_text() for label in labels]


def by_layer() -> pd.DataFrame:
    table = banded(rows(0, "score", kind=tuple(KINDS), layer=(0, 1, 2)))
    first = table.index[table["model"] == MODELS[0]][-1:]
    return table.loc[[*table.index.drop(first), *first]]  # the last row is not of the last model


def course() -> pd.DataFrame:
    table = rows(1, "value", language=CODES, checkpoint=STEPS)
    best = table.groupby(["model", "task", "language"])["value"].idxmax()
    table["best"] = table.index.isin(best)
    return table[(table["language"] != "fr") | (table["task"] != "NER")]


def points() -> pd.DataFrame:
    return rows(2, "LD", "accuracy", language=CODES)


def lines() -> pd.DataFrame:
    return rows(3, "y", x=(0.2, 0.5, 0.8)).assign(low=0.1, high=0.95)


def statistics() -> dict[tuple[str, str], str]:
    return {key: f"r of {key}" for key in itertools.product(MODELS, TASKS)}


def fits() -> pd.DataFrame:
    keys = itertools.product(("POS, Avg", "POS, Last"), ("printed", *MODELS), ("LD", "MD"))
    table = pd.DataFrame(list(keys), columns=["row", "source", "predictor"])
    table["coefficient"] = np.random.default_rng(4).normal(size=len(table))
    ours = table["source"] != "printed"
    for name, width in (("low", -0.2), ("high", 0.3), ("wide_low", -0.4), ("wide_high", 0.5)):
        table[name] = (table["coefficient"] + width).where(ours)
    return table


def deltas() -> pd.DataFrame:
    table = rows(5, "delta", language=CODES)
    table = of(table, task="POS").assign(delta=lambda own: own["delta"] - 0.5)
    return table[(table["model"] != "mini-b") | (table["language"] != "ja")]


def crossed() -> pd.DataFrame:
    table = rows(6, "accuracy", source=CODES, target=CODES)
    table = table[(table["task"] != "NER") | ~table[["source", "target"]].eq("ja").any(axis=1)]
    others = table[table["source"] != table["target"]]
    best = others.groupby(["model", "task", "target"])["accuracy"].idxmax()
    return table.assign(best=table.index.isin(best))


def rates() -> tuple[pd.DataFrame, pd.DataFrame]:
    table = rows(7, "win_rate", target=CODES)
    summary = rows(8, "mean").assign(
        low=lambda own: own["mean"] - 0.1, high=lambda own: own["mean"] + 0.05
    )
    return table, summary


DRAWN: dict[str, Callable[[], Figure]] = {
    "probe_layers": lambda: probe_plots.probe_layers(by_layer(), KINDS),
    "best_checkpoints": lambda: probe_plots.best_checkpoints(course(), NAMES),
    "learning_scatter": lambda: probe_plots.learning_scatter(points(), lines(), statistics()),
    "density": lambda: probe_plots.learning_scatter(points(), lines(), statistics(), label=None),
    "coefficients": lambda: probe_plots.coefficients(fits()),
    "selection_bars": lambda: probe_plots.selection_bars(deltas(), NAMES),
    "transfer_matrices": lambda: probe_plots.transfer_matrices(crossed(), NAMES),
    "win_rates": lambda: probe_plots.win_rates(*rates()),
}


def test_layers_of_probes_stand_beside_what_they_are_compared_with() -> None:
    table = by_layer()
    figure = DRAWN["probe_layers"]()
    found = panels(figure)
    assert set(found) == {f"{model}: {task}" for model in MODELS for task in TASKS}
    for model, task in itertools.product(MODELS, TASKS):
        axes = found[f"{model}: {task}"]
        for number, (kind, label) in enumerate(KINDS.items()):
            own = of(table, model=model, task=task, kind=kind).sort_values("layer")
            np.testing.assert_array_equal(line_of(axes, label), own[["layer", "score"]])
            assert band_in(own, "layer") <= band_of(axes, number)
        assert list(axes.get_xticks()) == [0, 1, 2]
    assert texts(figure.legends[0].get_texts()) == list(KINDS.values())
    bottom = list(dict.fromkeys(table["model"]))[-1]
    assert bottom != table["model"].iloc[-1]
    below = {title for title, axes in found.items() if "layer" in axes.get_xlabel()}
    left = {title for title, axes in found.items() if axes.get_ylabel() == "accuracy"}
    assert below == {f"{bottom}: {task}" for task in TASKS}
    assert left == {f"{model}: {table['task'].iloc[0]}" for model in MODELS}


def test_the_best_checkpoint_of_a_language_is_boxed_and_missing_ones_are_grey() -> None:
    table = course()
    found = panels(DRAWN["best_checkpoints"]())
    assert set(found) == {f"{model}:\n{task}" for model in MODELS for task in TASKS}
    for model, task in itertools.product(MODELS, TASKS):
        axes = found[f"{model}:\n{task}"]
        own = of(table, model=model, task=task).set_index(["language", "checkpoint"])
        cells = np.ma.filled(axes.collections[0].get_array().reshape(3, 3), np.nan)
        expected = set()
        for (row, code), (column, step) in itertools.product(enumerate(NAMES), enumerate(STEPS)):
            if (code, step) not in own.index:
                assert (code, task) == ("fr", "NER")
                assert np.isnan(cells[row, column])
                continue
            assert cells[row, column] == own.loc[(code, step), "value"]
            if own.loc[(code, step), "best"]:
                expected.add((row, column))
        assert boxes(axes) == expected
        assert len(expected) == (3 if task == "POS" else 2)
        assert axes.collections[0].get_clim() == (0, 1)
        assert axes.get_facecolor() == to_rgba("0.85")
        assert texts(axes.get_xticklabels()) == ["0", "10", "1,000"]
        assert axes.get_xlabel() == "training step"
    first = next(iter(found.values()))
    assert texts(first.get_yticklabels()) == list(NAMES.values())


def test_scatter_has_every_language_the_line_and_the_statistics() -> None:
    table, fitted = points(), lines()
    for name in ("learning_scatter", "density"):
        figure = DRAWN[name]()
        assert len(figure.axes) == 4
        for (model, task), text in statistics().items():
            axes = panels(figure)[f"{model}: {task}\n{text}"]
            own = of(table, model=model, task=task)
            clouds = [each for each in axes.collections if len(each.get_offsets()) == len(own)]
            np.testing.assert_array_equal(clouds[-1].get_offsets(), own[["LD", "accuracy"]])
            line = of(fitted, model=model, task=task).sort_values("x")
            drawn = axes.get_lines()[0]
            np.testing.assert_array_equal(drawn.get_xydata(), line[["x", "y"]])
            assert band_in(line, "x") <= band_of(axes, -1)
            named = {text.get_text(): text.xy for text in axes.texts}
            if name == "density":
                assert not named
                assert len(axes.collections) > 2
            else:
                assert named == {row.language: (row.LD, row.accuracy) for row in own.itertuples()}
        for axes in figure.axes:
            place = axes.get_subplotspec()
            assert axes.get_xlabel() == ("LD of a language" if place.is_last_row() else "")
            assert axes.get_ylabel() == ("accuracy" if place.is_first_col() else "")


def test_scatter_takes_other_columns_and_labels() -> None:
    table = points().rename(columns={"LD": "MD", "accuracy": "gap"})
    figure = probe_plots.learning_scatter(
        table, lines(), statistics(), x="MD", y="gap", xlabel="across", ylabel="up"
    )
    for (model, task), text in statistics().items():
        drawn = panels(figure)[f"{model}: {task}\n{text}"].collections[0].get_offsets()
        np.testing.assert_array_equal(drawn, of(table, model=model, task=task)[["MD", "gap"]])
    assert {axes.get_xlabel() for axes in figure.axes} == {"", "across"}
    assert {axes.get_ylabel() for axes in figure.axes} == {"", "up"}


def test_coefficients_have_a_row_an_analysis_and_both_errors() -> None:
    table = fits()
    figure = DRAWN["coefficients"]()
    assert [axes.get_xlabel().split("\n")[0] for axes in figure.axes] == [
        "coefficient of LD",
        "coefficient of MD",
    ]
    assert texts(figure.axes[0].get_yticklabels()) == ["POS, Last", "POS, Avg"]  # upwards
    assert texts(figure.legends[0].get_texts()) == ["printed", *MODELS]
    for axes, predictor in zip(figure.axes, ("LD", "MD"), strict=True):
        bars = iter(axes.containers)
        for source in ("printed", *MODELS):
            own = of(table, source=source, predictor=predictor)
            for low, high in (("wide_low", "wide_high"), ("low", "high")):
                points, _, (segments,) = next(bars).lines
                np.testing.assert_array_equal(points.get_xdata(), own["coefficient"])
                assert np.diff(points.get_ydata())[0] == pytest.approx(-1)  # the first on top
                if source == "printed":  # none is printed, none is drawn
                    continue
                ends = [segment[:, 0] for segment in segments.get_segments()]
                np.testing.assert_allclose(ends, own[[low, high]])
        assert next(bars, None) is None


def test_bars_of_selection_are_ordered_by_their_size() -> None:
    table = deltas()
    figure = DRAWN["selection_bars"]()
    assert set(panels(figure)) == set(MODELS)
    for model in MODELS:
        axes = panels(figure)[model]
        own = of(table, model=model)
        expected = own.iloc[own["delta"].abs().argsort()]  # upwards: the largest on top
        widths = [bar.get_width() for bar in axes.patches]
        np.testing.assert_array_equal(widths, expected["delta"])
        assert texts(axes.get_yticklabels()) == [NAMES[code] for code in expected["language"]]
        colours = [bar.get_facecolor() for bar in axes.patches]
        for value, colour in zip(widths, colours, strict=True):
            assert colour == to_rgba("#0072B2" if value >= 0 else "#E69F00")
    assert (table["delta"] < 0).any()
    assert (table["delta"] > 0).any()


def test_matrices_have_sources_as_rows_and_box_the_best() -> None:
    table = crossed()
    found = panels(DRAWN["transfer_matrices"]())
    for model, task in itertools.product(MODELS, TASKS):
        axes = found[f"{model}: {task}"]
        codes = list(NAMES) if task == "POS" else ["fr", "de"]
        own = of(table, model=model, task=task).set_index(["source", "target"])
        cells = axes.collections[0].get_array().reshape(len(codes), -1)
        expected = set()
        for (row, source), (column, target) in itertools.product(enumerate(codes), repeat=2):
            assert cells[row, column] == own.loc[(source, target), "accuracy"]
            if own.loc[(source, target), "best"]:
                expected.add((row, column))
        assert boxes(axes) == expected
        assert {column for _, column in expected} == set(range(len(codes)))  # one a target
        whole = of(table, task=task)["accuracy"]
        assert axes.collections[0].get_clim() == (whole.min(), whole.max())
        assert texts(axes.get_xticklabels()) == [NAMES[code] for code in codes]
        assert texts(axes.get_yticklabels()) == [NAMES[code] for code in codes]
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("target", "source")


def test_win_rates_have_a_column_a_task_and_the_mean_beside_it() -> None:
    table, summary = rates()
    axes = DRAWN["win_rates"]().axes[0]
    columns = list(dict.fromkeys(zip(table["model"], table["task"], strict=True)))
    assert texts(axes.get_xticklabels()) == [f"{task}\n{model}" for model, task in columns]
    clouds = [each for each in axes.collections if len(each.get_offsets()) == len(CODES)]
    for at, (model, task) in enumerate(columns):
        own = of(table, model=model, task=task)["win_rate"]
        x, y = clouds[at].get_offsets().T
        assert sorted(y) == sorted(own)
        assert np.abs(x - at).max() < 0.3  # no column runs into the next
        (mean,) = of(summary, model=model, task=task).to_dict("records")
        points, _, (bar,) = axes.containers[at].lines
        assert list(points.get_ydata()) == [mean["mean"]]
        np.testing.assert_allclose(bar.get_segments()[0][:, 1], [mean["low"], mean["high"]])
    assert list(axes.get_lines()[0].get_ydata()) == [0.5, 0.5]  # chance
    assert axes.get_ylim()[0] < 0
    assert axes.get_ylim()[1] > 1


@pytest.mark.parametrize("name", DRAWN)
def test_saved_files_are_the_same_bytes(
    name: str, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLX_FIGURES", str(tmp_path))
    before = plt.rcParams["axes.titlelocation"]
    for copy in ("one", "two"):
        plots.save(DRAWN[name](), copy)
    assert plt.rcParams["axes.titlelocation"] == before  # the style does not leak
    for suffix in (".pdf", ".png"):
        one, two = (tmp_path / f"{copy}{suffix}" for copy in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()


def test_kinds_and_tasks_differ_in_more_than_colour() -> None:
    kinds = list(probe_plots._KINDS.values())
    assert len({(marker, str(dash)) for _, marker, dash in kinds}) == len(kinds)
    marks = list(probe_plots._TASK_MARKS.values())
    assert len({marker for _, marker in marks}) == len({colour for colour, _ in marks}) == 3
