"""The notebook runner on throw-away notebooks: what it injects, refuses and leaves behind."""

import ast
import functools
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import papermill
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from xlx.core import journals, paths, profiles, run

PARAMETERS = """\
profile = "mini"  # which parameters these are
n_triplets = 10  # triplets a pair
threshold = 0.5  # share above which a pair counts
languages = ["en", "de"]  # codes of ABX Table 2
limit: int | None = None  # sentences at most; None takes all
"""


class House:
    """A folder like the repository's: notebooks/, notebooks/profiles/, build/."""

    def __init__(self, root: Path) -> None:
        self.notebooks = root / "notebooks"
        self.profiles = self.notebooks / "profiles"
        self.build = root / "build"
        self.profiles.mkdir(parents=True)
        self.profile("mini", "# empty\n")

    def notebook(self, stem: str, *code: str, parameters: str = PARAMETERS) -> Path:
        """Write a notebook of one parameters cell and the code cells given."""
        cells = [
            new_markdown_cell("# Does it run?"),
            new_code_cell(parameters, metadata={"tags": ["parameters"]}),
            *(new_code_cell(source) for source in code),
        ]
        kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
        path = self.notebooks / f"{stem}.ipynb"
        nbformat.write(new_notebook(cells=cells, metadata={"kernelspec": kernel}), path)
        return path

    def profile(self, name: str, text: str) -> None:
        """Write a profile file."""
        (self.profiles / f"{name}.yaml").write_text(text, encoding="utf-8")

    def values(self, stem: str, profile: str) -> dict:
        """What the runner would inject."""
        return profiles.values_for(stem, profile, notebooks=self.notebooks, profiles=self.profiles)

    def execute(self, stem: str, profile: str = "mini") -> Path:
        """Run the notebook."""
        return run.execute(
            stem, profile, notebooks=self.notebooks, profiles=self.profiles, build=self.build
        )

    def left(self, profile: str = "mini") -> list[str]:
        """Names of all files in the build folder."""
        return sorted(path.name for path in (self.build / profile).iterdir() if path.is_file())


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def printed(path: Path) -> str:
    """Text that the notebook's cells printed."""
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    return "".join(o.text for c in cells for o in c.outputs if o.output_type == "stream")


def test_values_reach_the_notebook_and_it_runs_in_its_folder(house: House) -> None:
    house.notebook("abx-1-one", "import os\nprint(profile, n_triplets, languages, os.getcwd())")
    house.profile("paper", "notebooks:\n  abx-1-one:\n    n_triplets: 1000\n")
    path = house.execute("abx-1-one", "paper")
    assert printed(path) == f"paper 1000 ['en', 'de'] {house.notebooks}\n"
    assert house.left("paper") == ["abx-1-one.ipynb"]


def test_the_kernel_is_told_its_notebook_and_where_to_note_and_draw(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("XLX_NOTEBOOK", "XLX_JOURNAL", "XLX_FIGURES", "XLX_POLICY")
    house.notebook("abx-1-one", f"import os\nprint([os.environ.get(name) for name in {names}])")
    journal = journals.journal("abx-1-one", house.build / "mini")
    journal.parent.mkdir(parents=True)
    journal.write_text("of the last run\n")
    monkeypatch.setenv("XLX_POLICY", "only")
    told = ast.literal_eval(printed(house.execute("abx-1-one")))
    assert told == ["abx-1-one", str(journal.parent), str(paths.FIGURES), "only"]
    assert journal.read_text() == ""  # also one that asks for nothing has a journal
    assert [name for name in names if name in os.environ] == ["XLX_POLICY"]


def test_a_line_that_is_being_written_is_left_out_of_a_journal(tmp_path: Path) -> None:
    path = journals.fresh_journal("abx-1-one", tmp_path)
    path.write_text('{"kind": "toy"}\n{"kind": "t')
    assert journals.read_journal(path) == [{"kind": "toy"}]


def test_working_copies_follow_the_notebooks_until_they_are_changed(
    house: House, tmp_path: Path
) -> None:
    playground = tmp_path / "playground"

    def lay() -> tuple[list[str], list[str]]:
        return run.play(house.notebooks, playground)

    sources = {stem: house.notebook(stem) for stem in ("abx-1-one", "abx-2-two")}
    assert lay() == (["abx-1-one", "abx-2-two"], [])
    assert lay() == ([], [])
    mine = playground / "abx-1-one.ipynb"
    mine.write_text("mine")
    assert lay() == ([], [])  # the notebook is as it was
    for stem in sources:
        house.notebook(stem, "print('new')")
    assert lay() == (["abx-2-two"], ["abx-1-one"])
    assert (playground / "abx-2-two.ipynb").read_bytes() == sources["abx-2-two"].read_bytes()
    assert mine.read_text() == "mine"
    assert lay() == ([], ["abx-1-one"])
    mine.unlink()
    assert lay() == (["abx-1-one"], [])


def test_playing_changes_no_committed_file() -> None:
    # As in JupyterLab: a working copy, another parameter, all cells. Of the fastest notebook.
    def status() -> str:
        command = [
            "git",
            "status",
            "--porcelain",
            "--",
            "notebooks",
            "figures",
            "data",
            "playground",
        ]
        return subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True).stdout

    if not (paths.ROOT / ".git").exists():
        pytest.skip("this is no clone")
    figures = {path: path.stat().st_mtime_ns for path in paths.FIGURES.glob("xprobe-3*")}
    before, playground = status(), paths.ROOT / "playground"
    playground.mkdir(exist_ok=True)
    copy = playground / f"xprobe-3-printed-{os.getpid()}.ipynb"
    try:
        shutil.copy(profiles.notebook_path("xprobe-3-printed"), copy)
        papermill.execute_notebook(
            copy, copy, {"dpi": 60}, kernel_name="python3", cwd=playground, progress_bar=False
        )
        assert status() == before
        assert {path: path.stat().st_mtime_ns for path in figures} == figures
    finally:
        copy.unlink()
        if not any(playground.iterdir()):
            playground.rmdir()


def test_failed_notebook_is_kept_under_another_name_and_the_next_run_clears_it(
    house: House,
) -> None:
    house.notebook("abx-1-one", "print('so far')", "raise ValueError('no Klingon\\nand more')")
    with pytest.raises(run.NotebookFailed) as error:
        house.execute("abx-1-one")
    assert "abx-1-one failed in cell [3]: ValueError: no Klingon (traceback in" in str(error.value)
    assert "\n" not in str(error.value)
    assert house.left() == ["abx-1-one.failed.ipynb"]
    assert printed(house.build / "mini" / "abx-1-one.failed.ipynb") == "so far\n"

    house.notebook("abx-1-one", "print('all of it')")
    house.execute("abx-1-one")
    assert house.left() == ["abx-1-one.ipynb"]


def test_dying_kernel_is_a_failure(house: House) -> None:
    house.notebook("abx-1-one", "import os\nos._exit(1)")
    with pytest.raises(run.NotebookFailed, match=r"abx-1-one failed: DeadKernelError"):
        house.execute("abx-1-one")
    assert "abx-1-one.ipynb" not in house.left()
    assert not any("running" in name for name in house.left())


def test_full_disk_is_a_failure_and_leaves_no_finished_notebook(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.notebook("abx-1-one", "print(1)")

    def full(*_: object, **__: object) -> None:
        (house.build / "mini" / ".abx-1-one.running.ipynb").write_text('{"cells": [')
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(papermill, "execute_notebook", full)
    with pytest.raises(run.NotebookFailed, match="No space left on device"):
        house.execute("abx-1-one")
    assert "abx-1-one.ipynb" not in house.left()


START = """
import sys
from pathlib import Path
from xlx.core import run
notebooks, build = Path(sys.argv[1]), Path(sys.argv[2])
with run.stopped_by_sigterm():
    run.execute("abx-1-one", notebooks=notebooks, profiles=notebooks / "profiles", build=build)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_killed_run_leaves_no_finished_notebook_and_no_kernel(
    house: House, tmp_path: Path, how: signal.Signals
) -> None:
    alive = tmp_path / "alive"
    wait = f"import os, time\nopen({str(alive)!r}, 'w').write(str(os.getpid()))\n"
    house.notebook("abx-1-one", wait + "time.sleep(120)")
    child = subprocess.Popen(
        [sys.executable, "-c", START, str(house.notebooks), str(house.build)],
        cwd=paths.ROOT,
        stderr=subprocess.DEVNULL,
        # a shell that starts its jobs in the background has them ignore Ctrl-C; undo that here
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    until(lambda: alive.exists() and alive.read_text(), "the kernel never started")
    child.send_signal(how)
    assert child.wait(30) != 0
    assert [name for name in house.left() if not name.startswith(".")] == []
    kernel = int(alive.read_text())
    until(lambda: not running(kernel), "the kernel outlived its run")

    if how == signal.SIGKILL:  # the next run starts afresh and takes away what was left
        house.notebook("abx-1-one", "print('done')")
        house.execute("abx-1-one")
        assert house.left() == ["abx-1-one.ipynb"]


def until(true, message: str, seconds: float = 30) -> None:
    """Wait for a condition."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, message
        time.sleep(0.1)


def running(pid: int) -> bool:
    """Whether a process lives (an unreaped one does not)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


def test_mini_injects_nothing(house: House) -> None:
    house.notebook("abx-1-one")
    assert house.values("abx-1-one", "mini") == {}


def test_a_notebooks_own_value_wins_over_the_defaults(house: House) -> None:
    house.notebook("abx-1-one")
    house.notebook("abx-2-two", parameters="n_triplets = 3  # few\n")
    house.profile(
        "paper",
        "defaults: {n_triplets: 100, threshold: 1}\nnotebooks: {abx-1-one: {n_triplets: 7}}\n",
    )
    assert house.values("abx-1-one", "paper") == {
        "n_triplets": 7,
        "threshold": 1,
        "profile": "paper",
    }
    # threshold is no parameter of the second notebook, but it is of the first
    assert house.values("abx-2-two", "paper") == {"n_triplets": 100}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "notebooks: {abx-1-one: {n_triplet: 5}}",
            "unknown key 'n_triplet' for abx-1-one in paper.yaml: did you mean 'n_triplets'?",
        ),
        (
            "defaults: {tresholds: 5}",
            "unknown key 'tresholds' in the defaults of paper.yaml: did you mean 'threshold'?",
        ),
        ("notebooks: {abx-1-on: {}}", "unknown notebook 'abx-1-on' in paper.yaml: did you mean"),
        ("default: {}", "unknown key 'default' in paper.yaml: did you mean 'defaults'?"),
        ("defaults: {profile: big}", "'profile', which is set by the runner"),
        ("defaults: [1, 2]", "paper.yaml should hold"),
        ("notebooks: {abx-1-one: 3}", "paper.yaml should hold"),
        ("just words", "paper.yaml should hold"),
        ("defaults: {a: 1\nb", "paper.yaml, line 2 cannot be read"),
        ("defaults:\n  a: 1\n  a: 2\n", "line 3 cannot be read: the key 'a' stands there twice"),
        ("defaults: {threshold: 1e-3}", "YAML reads 1e-3 as text: write 1.0e-3"),
        ("defaults: {limit: 1e5}", "limit for abx-1-one in paper.yaml should be int"),
        ("defaults: {n_triplets: 2.5}", "should be int (as 10), not float 2.5"),
        ("defaults: {n_triplets: true}", "should be int (as 10), not bool True"),
        ("defaults: {n_triplets: null}", "should be int (as 10), not None None"),
        ("defaults: {n_triplets: 2026-01-01}", "should be int (as 10), not date"),
        ("defaults: {languages: en}", "should be list (as ['en', 'de']), not str 'en'"),
        ("defaults: {languages: [en, no]}", "but holds bool False (YAML reads a bare no"),
    ],
)
def test_bad_profile_is_one_sentence(house: House, text: str, message: str) -> None:
    house.notebook("abx-1-one")
    house.profile("paper", text)
    with pytest.raises(profiles.NotebookError) as error:
        house.execute("abx-1-one", "paper")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not house.build.exists(), "nothing may run, or be written, under a bad profile"


@pytest.mark.parametrize("text", ["defaults: {limit: 5}", "defaults: {limit: null}", ""])
def test_annotation_allows_what_it_says(house: House, text: str) -> None:
    house.notebook("abx-1-one")
    house.profile("paper", text)
    assert house.values("abx-1-one", "paper").get("limit") == (5 if "5" in text else None)


def test_parameter_without_type_takes_anything_but_a_number_read_as_text(house: House) -> None:
    house.notebook("abx-1-one", parameters="revision = None  # of the model\n")
    house.profile("paper", "defaults: {revision: main}")
    assert house.values("abx-1-one", "paper") == {"revision": "main"}
    house.profile("paper", "defaults: {revision: 1e5}")
    with pytest.raises(profiles.NotebookError, match="should be a number"):
        house.values("abx-1-one", "paper")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("n = 10 * 2\n", "line 1 is 'n = 10 * 2'"),
        ("a, b = 1, 2\n", "line 1 is"),
        ("sizes = (1, 2)\n", "line 1 is 'sizes = (1, 2)'"),
        ("x = 1\nprint(x)\n", "line 2 is 'print(x)'"),
        ("x = \n", "the parameters cell of abx-1-one is not Python"),
    ],
)
def test_parameters_cell_holds_literals_only(house: House, parameters: str, message: str) -> None:
    house.notebook("abx-1-one", parameters=parameters)
    with pytest.raises(profiles.NotebookError) as error:
        house.values("abx-1-one", "mini")
    assert message in str(error.value)


@pytest.mark.parametrize("tagged", [0, 2])
def test_exactly_one_parameters_cell(tagged: int) -> None:
    cells = [new_code_cell("n = 1", metadata={"tags": ["parameters"]}) for _ in range(tagged)]
    with pytest.raises(
        profiles.NotebookError, match=f"has {tagged} code cells tagged 'parameters'"
    ):
        profiles.parameters(new_notebook(cells=cells), "abx-1-one")


def test_file_that_is_no_notebook(house: House) -> None:
    (house.notebooks / "abx-1-one.ipynb").write_text("torn {", encoding="utf-8")
    with pytest.raises(profiles.NotebookError, match=r"abx-1-one\.ipynb is no notebook"):
        house.execute("abx-1-one")


def test_broken_neighbour_does_not_stop_a_notebook(house: House) -> None:
    house.notebook("abx-1-one")
    house.notebook("abx-2-two", parameters="depth = 2  # layers\n")
    (house.notebooks / "abx-3-three.ipynb").write_text("torn {", encoding="utf-8")
    house.profile("paper", "defaults: {depth: 3}")
    assert house.values("abx-1-one", "paper") == {"profile": "paper"}


def test_stored_outputs_are_those_of_the_run(house: House) -> None:
    source = house.notebook("abx-1-one", "for i in range(3):\n    print(i, flush=True)", "6 * 7")
    before = nbformat.read(source, as_version=4)
    executed = house.execute("abx-1-one")
    run.store_outputs("abx-1-one", notebooks=house.notebooks, build=house.build)
    after = nbformat.read(source, as_version=4)
    assert printed(source) == "0\n1\n2\n"
    assert after.cells[3].outputs[0].data["text/plain"] == "42"
    assert [c.execution_count for c in after.cells[1:]] == [1, 2, 3]
    assert executed.stat().st_mtime >= source.stat().st_mtime
    # nothing else changed: no papermill metadata, no machine paths
    for cell in after.cells[1:]:
        cell.outputs, cell.execution_count = [], None
    assert after == before


def test_outputs_of_another_notebook_are_not_stored(house: House) -> None:
    house.notebook("abx-1-one", "1 + 1")
    with pytest.raises(FileNotFoundError, match="run abx-1-one under profile mini first"):
        run.store_outputs("abx-1-one", notebooks=house.notebooks, build=house.build)
    house.execute("abx-1-one")
    house.notebook("abx-1-one", "1 + 2")
    with pytest.raises(profiles.NotebookError, match="has other cells"):
        run.store_outputs("abx-1-one", notebooks=house.notebooks, build=house.build)


def test_command_line_prints_one_line_and_fails() -> None:
    command = [sys.executable, "-m", "xlx.core.run", "abx-0-nothing"]
    result = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True)
    assert result.returncode == 2
    (line,) = result.stderr.splitlines()
    assert "no notebook 'abx-0-nothing'" in line


def test_unknown_profile_names_those_there_are(house: House) -> None:
    house.notebook("abx-1-one")
    with pytest.raises(FileNotFoundError, match="no profile 'papper': There is: mini"):
        house.values("abx-1-one", "papper")


def test_exit_status_tells_a_failed_notebook_from_a_bad_call(
    house: House, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    folders = {name: getattr(house, name) for name in ("notebooks", "profiles", "build")}
    monkeypatch.setattr(run, "execute", functools.partial(run.execute, **folders))
    house.notebook("abx-1-one", "1 / 0")
    assert run.main(["notebooks/abx-1-one.ipynb"]) == 1
    assert "ZeroDivisionError: division by zero" in capsys.readouterr().err
    house.profile("mini", "defaults: {nothing: 1}")
    assert run.main(["abx-1-one"]) == 2
    house.profile("mini", "")
    house.notebook("abx-1-one", "1 / 1")
    assert run.main(["abx-1-one"]) == 0
    assert "abx-1-one: " in capsys.readouterr().out
