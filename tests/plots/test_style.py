"""How a figure is kept: the same bytes each time, no committed figure touched, told in words."""

import matplotlib
import numpy as np
import pytest

from xlx.plots import style
from xlx.results import paths

matplotlib.use("agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure


@pytest.fixture(autouse=True)
def _close() -> None:
    yield
    plt.close("all")


@style.styled
def drawn(size: float = 0.1, grey: float = 0.5) -> Figure:
    """A square on a line.

    More than the first line is not told.
    """
    figure, axes = plt.subplots(figsize=(4, 3))
    axes.plot([0, 1], label="a line")
    axes.add_patch(
        plt.Rectangle((0.7, 0.7), size, size, color=str(grey), lw=0, transform=axes.transAxes)
    )
    axes.set(xlabel="steps", ylabel="score")
    axes.set_title("mini-a")
    figure.legend(loc="outside upper center")
    return figure


def test_files_are_stable_and_a_picture_that_looks_the_same_is_left(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XLX_FIGURES", str(tmp_path))

    def saved(size: float, grey: float, **where: str) -> list[bytes]:
        style.save(drawn(size, grey), "name", **where)
        return [(tmp_path / f"name{suffix}").read_bytes() for suffix in (".pdf", ".png")]

    before = plt.rcParams["axes.titlelocation"]
    first = saved(0.1, 0.5)
    assert plt.rcParams["axes.titlelocation"] == before
    assert b"A square on a line. Panels: mini-a." in first[1]
    saved(0.1, 0.5, profile="paper")
    assert [(tmp_path / f"paper/name{x}").read_bytes() for x in (".pdf", ".png")] == first
    assert len(list(tmp_path.iterdir())) == 3
    assert saved(0.1, 0.505) == first  # a grey level of 255
    assert saved(0.1, 0.7) != first  # a visible shade
    assert saved(0.2, 0.5) != first  # a visible move
    (tmp_path / "name.png").write_bytes(first[1][:100])  # torn
    assert saved(0.1, 0.5) == first
    (tmp_path / "name.pdf").unlink()
    assert saved(0.1, 0.5) == first


def test_without_make_figures_no_committed_figure_is_written(tmp_path, monkeypatch) -> None:
    monkeypatch.delenv("XLX_FIGURES", raising=False)
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "figures")
    style.save(drawn(), "played")
    assert (tmp_path / "build" / "figures" / "played.png").is_file()
    monkeypatch.setenv("XLX_FIGURES", "none")
    style.save(drawn(), "two")
    assert not list(tmp_path.rglob("two.*"))
    assert not (tmp_path / "figures").exists()


def test_alternative_text_tells_what_is_on_a_figure() -> None:
    assert style.alternative(drawn()) == (
        "A square on a line. Panels: mini-a. Horizontal: steps. Vertical: score. Legend: a line."
    )


def test_a_notebook_shows_a_figure_once_with_its_text(monkeypatch) -> None:
    import IPython
    import IPython.display

    shown, figure = [], drawn()  # drawn before there seems to be a shell
    monkeypatch.setenv("XLX_FIGURES", "none")
    monkeypatch.setitem(style.sys.modules, "ipykernel", object())
    monkeypatch.setattr(IPython, "get_ipython", object)
    monkeypatch.setattr(
        IPython.display, "display", lambda data, **how: shown.append((data, how["metadata"]))
    )
    style.save(figure, "one")
    ((data, metadata),) = shown
    assert data["text/plain"] == metadata["image/png"]["alt"] == style.alternative(figure)
    assert not plt.fignum_exists(figure.number)


def test_a_model_has_one_look_and_all_differ_in_print_too() -> None:
    members = [name for name in style.MODELS if name.startswith("mini-")]
    shown = style.looks(members)
    assert shown == {name: style.MODELS[name] for name in members}
    for way in ("marker", "color"):
        assert len({look[way] for look in shown.values()}) == len(members) == 9
    for keys in (["XLM-R", "mini-xlmr", "unheard of"], [str(i) for i in range(49)]):
        seen = {(look["color"], look["marker"]) for look in style.looks(keys).values()}
        assert len(seen) == len(keys)
    with pytest.raises(ValueError, match="cannot be told apart"):
        style.looks([str(i) for i in range(50)])


def test_ink_has_contrast_with_every_colour() -> None:
    for colour in [*np.random.default_rng(0).random((500, 3)), (0, 0, 0), (1, 1, 1)]:
        seen = (style.luminance(colour), float(style.ink(colour) == "white"))
        assert (max(seen) + 0.05) / (min(seen) + 0.05) >= 4.5
