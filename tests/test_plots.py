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
    alone = lines[lines["task"] == "MD"].assign(score=0.88)  # a reference of one task
    figure = plots.dynamics(
        table, references={"a bag": lines.assign(score=0.77), "length alone": alone}
    )
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(MODELS)
    for axes, model in zip(figure.axes, MODELS, strict=True):
        for task in ("LD", "MD"):
            expected = table[(table["model"] == model) & (table["task"] == task)]
            np.testing.assert_array_equal(line_of(axes, task), expected["score"])
        assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "10", "100"]
        assert "step" in axes.get_xlabel()
        levels = {line.get_label(): line.get_ydata()[0] for line in axes.get_lines()}
        assert (levels["LD of a bag"], levels["MD of length alone"]) == (0.77, 0.88)
        assert {text.get_text() for text in axes.texts} == {"chance"}
    assert figure.axes[0].get_ylabel() == "ABX score"
    told = [text.get_text() for text in figure.legends[0].get_texts()]
    assert set(told) == {
        *("LD of a bag", "MD of a bag", "MD of length alone"),
        *(plots.NAMES[task] for task in ("LD", "MD")),
    }


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


def labels_of(axes: plt.Axes) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_training_losses_have_a_panel_an_objective() -> None:
    rows = [
        (model, objective, step, loss)
        for model, objective in (("mini-a", "mlm"), ("mini-b", "mlm"), ("mini-b", "tlm"))
        for step, loss in ((100, 8.0), (50, 9.0 + len(objective) + ord(model[-1])))
    ]
    table = pd.DataFrame(rows, columns=["model", "objective", "step", "loss"])
    figure = plots.training_losses(table, {"tlm": "with translation", "mlm": "masked", "clm": "-"})
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["with translation", "masked"]
    assert [labels_of(axes) for axes in figure.axes] == [["mini-b"], ["mini-a", "mini-b"]]
    alone, (_, beside) = (axes.get_lines() for axes in figure.axes)
    assert list(beside.get_xdata()) == [50, 100]  # in the order of training
    expected = table[(table["model"] == "mini-b") & (table["objective"] == "mlm")]["loss"]
    np.testing.assert_array_equal(beside.get_ydata(), expected[::-1])
    assert (alone[0].get_color(), alone[0].get_marker()) == (  # one model, one look
        beside.get_color(),
        beside.get_marker(),
    )


def test_looks_of_models_differ_in_print_too() -> None:
    looks = plots._looks()
    assert len(looks) >= 9
    assert len({look["marker"] for look in looks}) == len(looks)
    assert len({(look["color"], str(look["linestyle"])) for look in looks}) == len(looks)


def test_held_out_maps_keep_apart_what_cannot_be_compared() -> None:
    rows = [("masked", "mini-b"), ("masked", "mini-a"), ("next", "mini-c")]
    rows = [(*row, code) for row in rows for code in ("de", "fr")]
    table = pd.DataFrame(rows, columns=["group", "model", "language"])
    table["loss"] = [4.0, 4.5, 4.2, 4.1, 6.0, 6.5]
    figure = plots.held_out_maps(table, {"fr": "French (fr)", "de": "German (de)"})
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["masked", "next"]
    one, other = figure.axes
    assert [label.get_text() for label in one.get_xticklabels()] == ["mini-b", "mini-a"]
    assert [label.get_text() for label in one.get_yticklabels()] == ["French (fr)", "German (de)"]
    drawn = one.collections[0]
    cells = table[table["group"] == "masked"].pivot(
        index="language", columns="model", values="loss"
    )
    np.testing.assert_allclose(
        drawn.get_array().reshape(2, 2), cells.loc[["fr", "de"], ["mini-b", "mini-a"]]
    )
    assert drawn.get_clim()[1] < other.collections[0].get_clim()[0]  # a scale of its own
    assert "nats" in figure.get_suptitle()


def test_vocabularies_show_each_language_on_its_row() -> None:
    table = pd.DataFrame(
        {
            "vocabulary": ["BPE", "BPE", "WordPiece", "WordPiece"],
            "language": ["de", "ja", "de", "ja"],
            "per_word": [2.0, np.nan, 2.5, np.nan],
            "left": [0.1, 9.0, 0.0, 4.0],
        }
    )
    names = {"ja": "Japanese (ja)", "de": "German (de)"}
    figure = plots.vocabularies(table, names, {"per_word": "a word", "left": "left over (%)"})
    assert [axes.get_xlabel() for axes in figure.axes] == ["a word", "left over (%)"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == list(names.values())
    for axes, column in zip(figure.axes, ("per_word", "left"), strict=True):
        marks = {line.get_label(): line for line in axes.get_lines()}
        for vocabulary in ("BPE", "WordPiece"):
            rows = table[table["vocabulary"] == vocabulary]
            np.testing.assert_array_equal(marks[vocabulary].get_xdata(), rows[column])
            assert list(marks[vocabulary].get_ydata()) == [0, 1]  # Japanese first, so on top
        assert marks["BPE"].get_marker() != marks["WordPiece"].get_marker()
        assert axes.get_xlim()[0] == 0
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["BPE", "WordPiece"]


def test_member_profiles_set_each_model_beside_its_reference() -> None:
    table = scores("layer").query("checkpoint == 100 and task != 'retrieval'")
    third = table[table["model"] == "mini-a"].assign(model="mini-c")
    table = pd.concat([table, third])
    figure = plots.member_profiles(table, {"mini-b": "mini-a"}, columns=2)
    titles = [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]
    assert titles == ["mini-a", "mini-b\n[mini-a]", "mini-c"]
    thin, thick = (
        next(line for line in figure.axes[1].get_lines() if line.get_label() == label)
        for label in ("MD of the model in brackets", plots.NAMES["MD"])
    )
    of = {model: table[(table["model"] == model) & (table["task"] == "MD")] for model in MODELS}
    np.testing.assert_array_equal(thin.get_ydata(), of["mini-a"]["score"])
    np.testing.assert_array_equal(thick.get_ydata(), of["mini-b"]["score"])
    assert thin.get_linewidth() < thick.get_linewidth()
    labels = {text.get_text() for text in figure.legends[0].get_texts()}
    assert labels == {
        *(plots.NAMES[task] for task in ("LD", "MD")),
        *(f"{task} of the model in brackets" for task in ("LD", "MD")),
    }


def test_member_profiles_draw_a_further_task_and_lines() -> None:
    table = scores("layer").query("checkpoint == 100 and task != 'retrieval'")
    like = table[table["task"] == "MD"].assign(task="MD, like length", score=0.55)
    lines = pd.DataFrame({"model": MODELS, "task": "MD", "score": 0.88})
    figure = plots.member_profiles(
        pd.concat([table, like]), {"mini-b": "mini-a"}, lines={"length alone": lines},
        tasks=("LD", "MD", "MD, like length"), columns=2,
    )  # fmt: skip
    drawn = {line.get_label(): line.get_ydata()[0] for line in figure.axes[1].get_lines()}
    assert drawn["MD of length alone"] == 0.88
    assert drawn[plots.NAMES["MD, like length"]] == 0.55
    assert "MD, like length of the model in brackets" not in drawn


def test_paired_differences_put_a_pair_on_a_row() -> None:
    rows = [
        (model, "mini-a", task, layers, 0.1 * number + (task == "MD"))
        for number, model in enumerate(("mini-b", "mini-c"))
        for task in ("LD", "MD")
        for layers in ("mean over layers", "best layer")
    ]
    table = pd.DataFrame(rows, columns=["model", "reference", "task", "layers", "value"])
    table = table.assign(low=table["value"] - 0.02, high=table["value"] + 0.03)
    figure = plots.paired_differences(table)
    for axes, task in zip(figure.axes, ("LD", "MD"), strict=True):
        assert axes.get_title(loc="left") == plots.NAMES[task]
        points = axes.containers[0].lines[0]
        chosen = table[(table["task"] == task) & (table["layers"] == "mean over layers")]
        np.testing.assert_allclose(points.get_xdata().astype(float), chosen["value"])
        assert np.diff(points.get_ydata())[0] == pytest.approx(-1)  # the first pair is on top
        bar = axes.containers[0].lines[2][0].get_segments()[0]
        np.testing.assert_allclose(bar[:, 0], chosen[["low", "high"]].iloc[0].to_list())
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == ["mini-b − mini-a", "mini-c − mini-a"]
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["mean over layers", "best layer"]


def test_saved_files_are_stable_and_whole(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLX_FIGURES", str(tmp_path))
    before = plt.rcParams["axes.titlelocation"]
    plots.save(plots.dynamics(scores()), "one")
    plots.save(plots.dynamics(scores()), "two", profile="paper")
    assert plt.rcParams["axes.titlelocation"] == before  # the style does not leak
    for suffix in (".pdf", ".png"):
        one, two = (tmp_path / name for name in (f"one{suffix}", f"paper/two{suffix}"))
        assert one.read_bytes() == two.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.pdf", "one.png", "paper"]


def blot(axes: plt.Axes, size: float, grey: float) -> None:
    """A square of that share of the panel's width and height."""
    axes.add_patch(
        plt.Rectangle((0.7, 0.7), size, size, color=str(grey), lw=0, transform=axes.transAxes)
    )


def test_a_picture_that_looks_the_same_is_left_as_it_is(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLX_FIGURES", str(tmp_path))

    def saved(size: float, grey: float) -> list[bytes]:
        figure, axes = plt.subplots(figsize=(4, 3))
        blot(axes, size, grey)
        plots.save(figure, "one")
        return [(tmp_path / f"one{suffix}").read_bytes() for suffix in (".pdf", ".png")]

    first = saved(0.1, 0.5)
    assert saved(0.1, 0.505) == first  # a grey level of 255
    assert saved(0.1, 0.7) != first  # a visible shade
    first = saved(0.1, 0.5)
    assert saved(0.2, 0.5) != first  # a visible move
    (tmp_path / "one.png").write_bytes(first[1][:100])  # torn
    assert saved(0.1, 0.5)[1] == first[1]
    (tmp_path / "one.pdf").unlink()
    assert saved(0.1, 0.5) == first


def test_without_make_figures_no_committed_figure_is_written(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    plots.save(plots.dynamics(scores()), "one")
    assert (tmp_path / "build" / "figures" / "one.png").is_file()
    monkeypatch.setenv("XLX_FIGURES", "none")
    plots.save(plots.dynamics(scores()), "two")
    assert not list(tmp_path.rglob("two.*"))
    assert not (tmp_path / "figures").exists()


def test_tasks_differ_in_more_than_colour() -> None:
    for look in (plots.COLOURS, plots.MARKERS, plots.DASHES):
        assert len(set(look.values())) == len(look)
        assert look.keys() == plots.NAMES.keys()


def test_drawing_leaves_it_to_the_backend_whether_figures_are_shown() -> None:
    @plots.styled
    def draw() -> plt.Figure:
        matplotlib.interactive(True)  # as loading the backend of a notebook does
        return plt.figure()

    before = matplotlib.is_interactive()
    try:
        matplotlib.interactive(False)
        draw()
        assert matplotlib.is_interactive()
    finally:
        matplotlib.interactive(before)
