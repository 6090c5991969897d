"""The notebook runner on throw-away notebooks: what it injects, refuses and leaves behind."""

import ast
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from notebooks.run import journals, profiles, runner
from xlx.results import paths

#: A lesson as it is committed, with outputs.
LESSON = paths.NOTEBOOKS / "course" / "lesson-2-form.ipynb"

PARAMETERS = """\
profile = "mini"  # which parameters these are
n_triplets = 10  # triplets a pair
threshold = 0.5  # share above which a pair counts
languages = ["en", "de"]  # codes of ABX Table 2
limit: int | None = None  # sentences at most; None takes all
revision = None  # of the model
"""


class House:
    """A folder like the repository's: notebooks/, notebooks/profiles/, build/."""

    def __init__(self, root: Path) -> None:
        self.notebooks, self.build = root / "notebooks", root / "build"
        self.profiles = self.notebooks / "profiles"
        self.profiles.mkdir(parents=True)
        self.profile("mini", "# empty\n")

    def notebook(self, *code: str, stem: str = "abx-1-one", parameters: str = PARAMETERS) -> Path:
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
        (self.profiles / f"{name}.yaml").write_text(text, encoding="utf-8")

    def values(self, stem: str = "abx-1-one", profile: str = "paper") -> dict:
        """What the runner would inject."""
        return profiles.values_for(stem, profile)

    def left(self, profile: str = "mini") -> list[str]:
        """Names of all files in the build folder."""
        return sorted(path.name for path in (self.build / profile).iterdir() if path.is_file())


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> House:
    house = House(tmp_path / "sp ace ü")
    monkeypatch.setattr(paths, "NOTEBOOKS", house.notebooks)
    monkeypatch.setattr(paths, "PROFILES", house.profiles)
    monkeypatch.setattr(paths, "BUILD", house.build)  # of the command line
    return house


def printed(path: Path) -> str:
    """Text that the notebook's cells printed."""
    cells = [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == "code"]
    return "".join(o.text for c in cells for o in c.outputs if o.output_type == "stream")


# --- a run ----------------------------------------------------------------------------------------


def test_a_kernel_has_its_values_its_folder_and_knows_where_to_note_and_draw(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("XLX_NOTEBOOK", "XLX_JOURNAL", "XLX_FIGURES", "XLX_POLICY")
    told = f"os.getcwd(), *[os.environ.get(name) for name in {names}]"
    house.notebook(f"import os\nprint([profile, n_triplets, languages, {told}])")
    house.profile("paper", "notebooks:\n  abx-1-one:\n    n_triplets: 1000\n")
    journal = journals.journal("abx-1-one", house.build / "paper")
    journal.parent.mkdir(parents=True)
    journal.write_text("of the last run\n")
    monkeypatch.setenv("XLX_POLICY", "only")
    assert ast.literal_eval(printed(runner.execute("abx-1-one", "paper", build=house.build))) == [
        "paper",
        1000,
        ["en", "de"],
        str(house.notebooks),
        "abx-1-one",
        str(journal.parent),
        str(paths.FIGURES),
        "only",
    ]
    assert house.left("paper") == ["abx-1-one.ipynb"]
    assert journal.read_text() == ""  # also one that asks for nothing has a journal
    assert [name for name in names if name in os.environ] == ["XLX_POLICY"]


def test_stored_outputs_are_those_of_the_run_and_of_no_other_notebook(house: House, capsys) -> None:
    cells = "for i in range(3):\n    print(i, flush=True)", "6 * 7"
    source = house.notebook(*cells)
    before = nbformat.read(source, as_version=4)
    assert runner.main(["abx-1-one", "--store"]) == 2
    assert "run abx-1-one under profile mini first" in capsys.readouterr().err
    (house.build / "mini").mkdir(parents=True)
    for stale in ("abx-1-one.failed.ipynb", ".abx-1-one.running.ipynb"):  # of a killed run
        (house.build / "mini" / stale).touch()
    assert runner.main(["notebooks/abx-1-one.ipynb"]) == 0
    assert "abx-1-one: " in capsys.readouterr().out
    assert house.left() == ["abx-1-one.ipynb"]

    assert runner.main(["abx-1-one", "--store"]) == 0
    after = nbformat.read(source, as_version=4)
    assert printed(source) == "0\n1\n2\n"
    assert after.cells[3].outputs[0].data["text/plain"] == "42"
    assert [c.execution_count for c in after.cells[1:]] == [1, 2, 3]
    assert (house.build / "mini" / source.name).stat().st_mtime >= source.stat().st_mtime
    # nothing else changed: no papermill metadata, no machine paths
    for cell in after.cells[1:]:
        cell.outputs, cell.execution_count = [], None
    assert after == before

    house.notebook(*cells[1:])
    with pytest.raises(profiles.NotebookError, match="has other cells"):
        runner.store_outputs("abx-1-one", build=house.build)


def test_typed_numbers_are_compared_and_may_fail_under_another_profile(
    house: House, capsys
) -> None:
    path = house.notebook("print(n_triplets)\nif n_triplets > 10:\n    raise KeyError('de')")
    book = nbformat.read(path, as_version=4)
    book.cells[2].metadata["tags"] = ["numbers", "of:In short"]
    book.cells[0].source = "# Does it run?\n\n**In short.** It made 9 triplets."
    nbformat.write(book, path)
    house.profile("paper", "notebooks:\n  abx-1-one:\n    n_triplets: 1000\n")
    for profile, n in (("mini", 10), ("paper", 1000)):
        assert runner.main(["abx-1-one", "--profile", profile]) == 0
        said = capsys.readouterr().out
        assert f"abx-1-one, In short: number 1 is typed 9 and computed {n}" in said
    assert runner.main(["abx-1-one", "--store"]) == 0
    assert nbformat.read(path, 4).cells[0].source.endswith("**In short.** It made 10 triplets.")


def test_a_failed_notebook_is_kept_under_another_name(house: House, capsys) -> None:
    house.notebook("print('so far')", "raise ValueError('no Klingon\\nand more')")
    (house.build / "mini").mkdir(parents=True)
    (house.build / "mini" / "abx-1-one.ipynb").touch()  # of an earlier run
    assert runner.main(["abx-1-one"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "abx-1-one failed in cell [3]: ValueError: no Klingon (traceback in" in line
    assert house.left() == ["abx-1-one.failed.ipynb"]
    assert printed(house.build / "mini" / "abx-1-one.failed.ipynb") == "so far\n"


START = """
import sys
from pathlib import Path
from notebooks.run import runner as run
from xlx.results import paths
paths.NOTEBOOKS, build = Path(sys.argv[1]), Path(sys.argv[2])
paths.PROFILES = paths.NOTEBOOKS / "profiles"
with run.stopped_by_sigterm():
    run.execute("abx-1-one", build=build)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_leaves_no_finished_notebook_and_no_kernel(
    house: House, tmp_path: Path, how: signal.Signals
) -> None:
    alive = tmp_path / "alive"
    wait = f"import os, time\nopen({str(alive)!r}, 'w').write(str(os.getpid()))\n"
    house.notebook(wait + "time.sleep(120)")
    command = [sys.executable, "-c", START, str(house.notebooks), str(house.build)]
    child = subprocess.Popen(command, cwd=paths.ROOT, stderr=subprocess.DEVNULL)
    until(lambda: alive.exists() and alive.read_text(), "the kernel never started")
    child.send_signal(how)
    assert child.wait(30) != 0
    assert [name for name in house.left() if not name.startswith(".")] == []
    kernel = int(alive.read_text())
    until(lambda: not running(kernel), "the kernel outlived its run")


def until(true, message: str) -> None:
    """Wait for a condition."""
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end, message
        time.sleep(0.05)


def running(pid: int) -> bool:
    """Whether a process lives (an unreaped one does not)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z")


def test_bad_calls_end_in_one_line(house: House, capsys, monkeypatch) -> None:
    house.notebook()
    house.profile("mini", "defaults: {nothing: 1}")
    (house.notebooks / "abx-2-two.ipynb").write_text("torn {", encoding="utf-8")
    for arguments, says in (
        (["abx-0-nothing"], "no notebook 'abx-0-nothing'"),
        (["abx-2-two"], "abx-2-two.ipynb is no notebook"),
        (["abx-1-one"], "unknown key 'nothing' in the defaults of mini.yaml"),
        (["abx-1-one", "--profile", "mimi"], "no profile 'mimi': did you mean 'mini'? There is"),
    ):
        assert runner.main(arguments) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert says in line
    assert not house.build.exists()
    monkeypatch.setattr(paths, "ROOT", house.build / "\udcc3")
    assert runner.main(["abx-1-one"]) == 2
    assert "no name in this locale: set PYTHONUTF8=1" in capsys.readouterr().err


def test_working_copies_follow_the_notebooks_until_they_are_changed(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    playground, lay = tmp_path / "playground", runner.play
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    stems = ["abx-1-one", "abx-2-two"]
    sources = {stem: house.notebook(stem=stem) for stem in stems}
    names = [f"{stem}.ipynb" for stem in stems]
    assert lay() == (names, [])
    assert lay() == ([], [])
    mine = playground / "abx-1-one.ipynb"
    mine.write_text("mine")
    assert lay() == ([], [])  # the notebook is as it was
    for stem in stems:
        house.notebook("print('new')", stem=stem)
    assert lay() == (names[1:], names[:1])
    assert (playground / "abx-2-two.ipynb").read_bytes() == sources["abx-2-two"].read_bytes()
    assert mine.read_text() == "mine"
    assert lay() == ([], names[:1])
    mine.unlink()
    assert lay() == (names[:1], [])


def test_a_lesson_is_laid_without_what_it_will_show(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    lesson = nbformat.read(LESSON, as_version=4)
    (house.notebooks / "course").mkdir()
    nbformat.write(lesson, house.notebooks / "course" / "lesson-2-form.ipynb")
    assert runner.play() == (["course/lesson-2-form.ipynb"], [])
    laid = nbformat.read(tmp_path / "playground" / "course" / "lesson-2-form.ipynb", as_version=4)
    nbformat.validate(laid)
    assert [cell.source for cell in laid.cells] == [cell.source for cell in lesson.cells]
    assert not any(cell.get("outputs") or "jupyter" in cell.metadata for cell in laid.cells)
    assert runner.play() == ([], [])


# --- profiles -------------------------------------------------------------------------------------


def test_a_notebooks_own_value_wins_over_the_defaults(house: House) -> None:
    house.notebook()
    house.notebook(stem="abx-2-two", parameters="n_triplets = 3  # few\n")
    (house.notebooks / "abx-3-three.ipynb").write_text("torn {", encoding="utf-8")
    own = "notebooks: {abx-1-one: {n_triplets: 7}}"
    house.profile("paper", f"defaults: {{n_triplets: 100, threshold: 1}}\n{own}\n")
    assert house.values() == {"n_triplets": 7, "threshold": 1, "profile": "paper"}
    # threshold is no parameter of the second notebook, but it is of the first
    assert house.values("abx-2-two") == {"n_triplets": 100}
    assert house.values(profile="mini") == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("notebooks: {abx-1-one: {n_triplet: 5}}", "'n_triplet' for abx-1-one in paper.yaml: did"),
        ("defaults: {tresholds: 5}", "defaults of paper.yaml: did you mean 'threshold'?"),
        ("notebooks: {abx-1-on: {}}", "unknown notebook 'abx-1-on' in paper.yaml: did you mean"),
        ("defaults: {profile: big}", "'profile', which is set by the runner"),
        ("notebooks: {abx-1-one: 3}", "paper.yaml should hold"),
        ("defaults: {a: 1\nb", "paper.yaml cannot be read: while parsing"),
        ("defaults: {threshold: 1e-3}", "YAML reads 1e-3 as text: write 1.0e-3"),
        ("defaults: {limit: 1e5}", "limit for abx-1-one in paper.yaml should be int"),
        ("defaults: {n_triplets: 2.5}", "should be int (as 10), not float 2.5"),
        ("defaults: {n_triplets: true}", "should be int (as 10), not bool True"),
        ("defaults: {languages: en}", "should be list (as ['en', 'de']), not str 'en'"),
        ("defaults: {languages: [en, no]}", "not bool False (YAML reads"),
    ],
)
def test_a_bad_profile_is_one_sentence(house: House, text: str, message: str) -> None:
    house.notebook()
    house.profile("paper", text)
    with pytest.raises(profiles.NotebookError) as error:
        runner.execute("abx-1-one", "paper", build=house.build)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert not house.build.exists(), "nothing may run, or be written, under a bad profile"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("x = 1\nx += 1\n", "line 2 is 'x += 1'"),
        ("x = \n", "the parameters cell of abx-1-one is not Python"),
    ],
)
def test_a_parameters_cell_holds_literals_only(house: House, parameters: str, message: str) -> None:
    house.notebook(parameters=parameters)
    with pytest.raises(profiles.NotebookError) as error:
        house.values(profile="mini")
    assert message in str(error.value)
