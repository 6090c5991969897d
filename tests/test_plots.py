"""Figures draw what their table holds, label it, and come out the same bytes each time."""

import itertools

import matplotlib
import numpy as np
import pandas as pd
import pytest

from xlx import paths, plots

matplotlib.use("agg")
import matplotlib.pyplot as plt

MODELS = ("mini-a", "mini-b")
STEPS = (0, 10, 100)


@pytest.fixture(autouse=True)
def _close() -> None:
    yield
    plt.close("all")


def scores(*keys: str) -> pd.DataFrame:
    """A summary table: every combination of model, checkpoint, task and the keys."""
    rng = np.random.default_rng(0)
    values = {"layer": range(3), "language": ("de", "fr")}
    rows = [
        dict(zip(("model", "checkpoint", "task", *keys), row, strict=True))
        for row in itertools.product(
            MODELS, STEPS, ("LD", "MD", "retrieval"), *map(values.get, keys)
        )
    ]
    table = pd.DataFrame(rows)
    table["score"] = rng.uniform(0.4, 1, len(table))
    table.loc[table["task"] == "retrieval", "score"] = 0.05
    return table.assign(low=table["score"] - 0.02, high=table["score"] + 0.02)


def pairs() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    rows = [(model, f"l{i}", f"l{j}") for model in MODELS for j in range(6) for i in range(j)]
    table = pd.DataFrame(rows, columns=["model", "language_1", "language_2"])
    return table.assign(LD=rng.random(len(table)), MD=rng.random(len(table)))


def line_of(axes: plt.Axes, task: str) -> np.ndarray:
    return next(
        line.get_ydata() for line in axes.get_lines() if line.get_label() == plots.NAMES[task]
    )


def test_dynamics_draws_each_model_against_its_own_steps() -> None:
    table = scores()
    lines = pd.DataFrame(itertools.product(MODELS, ("LD", "MD")), columns=["model", "task"])
    figure = plots.dynamics(table, references={"bag": lines.assign(score=0.77)})
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(MODELS)
    for axes, model in zip(figure.axes, MODELS, strict=True):
        for task in ("LD", "MD"):
            expected = table[(table["model"] == model) & (table["task"] == task)]
            np.testing.assert_array_equal(line_of(axes, task), expected["score"])
        assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "10", "100"]
        assert "step" in axes.get_xlabel()
        assert {text.get_text() for text in axes.texts} == {"chance", "bag, LD", "bag, MD"}
    assert figure.axes[0].get_ylabel() == "ABX score"


def test_layer_profile_and_maps() -> None:
    table = scores("layer")
    last = table[table["checkpoint"] == 100]
    figure = plots.layer_profile(last)
    assert figure.axes[1].get_title(loc="left") == "mini-b, step 100"
    expected = last[(last["model"] == "mini-b") & (last["task"] == "MD")]["score"]
    np.testing.assert_array_equal(line_of(figure.axes[1], "MD"), expected)

    figure = plots.checkpoint_layer_map(table)
    drawn = figure.axes[0].collections[0]
    cells = table.query("model == 'mini-a' and task == 'LD'").pivot(
        index="layer", columns="checkpoint", values="score"
    )
    np.testing.assert_allclose(drawn.get_array().reshape(3, 3), cells)
    assert drawn.get_clim()[0] > 0.3  # retrieval does not stretch the colours
    names = {"fr": "French (fr)", "de": "German (de)"}
    figure = plots.language_maps(scores("language"), names)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == ["French (fr)", "German (de)"]


def test_scatter_plots_show_every_pair_and_the_statistics() -> None:
    table = pairs()
    figure = plots.tradeoff(table, {model: f"r of {model}" for model in MODELS})
    for axes, model in zip(figure.axes, MODELS, strict=True):
        points = axes.collections[-1].get_offsets()
        np.testing.assert_allclose(points, table[table["model"] == model][["LD", "MD"]])
        assert f"r of {model}" in {text.get_text() for text in axes.texts}
    both = pd.concat(
        [table.assign(pairing=name, retrieval=table["LD"]) for name in ("all", "last")]
    )
    figure = plots.retrieval_scatter(both, {"all": "r = 1", "last": "r = 2"})
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["all", "last"]
    assert figure.axes[0].get_legend() is not None


def test_course_fills_what_is_significant() -> None:
    table = pd.DataFrame(
        {"model": "m", "checkpoint": STEPS, "value": [-0.5, 0.1, -0.7], "low": -0.8, "high": 0.2,
         "p_value": [0.01, 0.5, 0.001]}
    )  # fmt: skip
    axes = plots.correlation_course(table).axes[0]
    marks = {line.get_label(): list(line.get_ydata()) for line in axes.get_lines()}
    assert marks["p < 0.05"] == [-0.5, -0.7]
    assert marks["p ≥ 0.05"] == [0.1]


def test_controls_and_sampling() -> None:
    table = scores("layer").query("checkpoint == 0 and task != 'retrieval'")
    figure = plots.intervals(table)
    assert len(figure.axes) == 2
    assert len(figure.legends[0].get_texts()) == 2
    rows = pd.DataFrame(
        {"task": ["LD", "MD"], "exact": [0.5, 0.9], "sd": 0.01, "expected_sd": 0.012}
    )
    axes = plots.sampling_spread(rows).axes[0]
    assert "standard deviation" in axes.get_ylabel()


def test_saved_files_are_stable_and_whole(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "FIGURES", tmp_path)
    before = plt.rcParams["axes.titlelocation"]
    plots.save(plots.dynamics(scores()), "one")
    plots.save(plots.dynamics(scores()), "two", profile="paper")
    assert plt.rcParams["axes.titlelocation"] == before  # the style does not leak
    for suffix in (".pdf", ".png"):
        one, two = (tmp_path / name for name in (f"one{suffix}", f"paper/two{suffix}"))
        assert one.read_bytes() == two.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.pdf", "one.png", "paper"]


def test_tasks_differ_in_more_than_colour() -> None:
    for look in (plots.COLOURS, plots.MARKERS, plots.DASHES):
        assert len(set(look.values())) == len(look) == 3
