"""Run a notebook without a browser.

    python -m notebooks.run.runner abx-2-dynamics --profile mini

The values of the profile (`notebooks.run.profiles`) go into the notebook after its cell tagged
``parameters``. The kernel is told the notebook's name (``XLX_NOTEBOOK``), where to note what it
asks for (``XLX_JOURNAL``; see `xlx.results.work`), and where figures are committed
(``XLX_FIGURES``): so only a run from here writes them, those of another profile than ``mini`` to
``figures/<profile>/``. ``XLX_FIGURES`` set outside sends them elsewhere.

The executed notebook appears at ``build/<profile>/<name>.ipynb`` only when every cell has run. A
notebook that fails is kept as ``<name>.failed.ipynb`` beside it, with its traceback; a run that is
killed leaves neither. The kernel runs in the notebook's own folder, as in JupyterLab and nbval.
After some of what it has to compute the minutes and the disk to come are said on stderr
(`xlx.results.progress`).

``--store`` copies the outputs of such a run back into the notebook, so that it can be committed
executed. ``--play`` lays copies of the notebooks in ``playground/``, where no change is committed;
those of lessons have no outputs.
"""

import argparse
import contextlib
import hashlib
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

from notebooks.run.journals import fresh_journal
from notebooks.run.profiles import (
    NotebookError,
    first_line,
    notebook_format,
    notebook_path,
    read_notebook,
    shown,
    values_for,
)
from notebooks.run.typed import disagreements, lenient, paragraphs
from xlx.results import paths
from xlx.results.store import digest_of, written_whole


class NotebookFailed(RuntimeError):
    """A cell raised an error; the message names the cell, the error and the file kept."""


def execute(stem: str, profile: str = "mini", *, build: Path = paths.BUILD) -> Path:
    """Execute one notebook under a profile and return the path of the executed copy.

    Raises NotebookFailed when a cell fails or the kernel dies (the notebook so far is then kept as
    ``<stem>.failed.ipynb``), NotebookError or FileNotFoundError before anything runs.
    """
    source, values = notebook_path(stem), values_for(stem, profile)
    folder = build / profile
    folder.mkdir(parents=True, exist_ok=True)
    done, failed = folder / f"{stem}.ipynb", folder / f"{stem}.failed.ipynb"
    running = folder / f".{stem}.running.ipynb"  # complete only when renamed
    for stale in (done, failed):
        stale.unlink(missing_ok=True)
    environment = {
        "XLX_NOTEBOOK": stem,
        "XLX_JOURNAL": str(fresh_journal(stem, folder).parent),
        "XLX_FIGURES": os.environ.get("XLX_FIGURES") or str(paths.FIGURES),
        "XLX_SAY": f"/proc/{os.getpid()}/fd/2",  # our stderr, where the system has such names
    }
    try:
        run_cells(source, running, values, environment)
        os.replace(running, done)
    except Exception as error:  # a cell failed, the kernel died, the disk is full, ...
        reason = str(error)
        if not isinstance(error, NotebookFailed):
            reason = f"failed: {type(error).__name__}: {first_line(error)}"
        with contextlib.suppress(FileNotFoundError):
            os.replace(running, failed)
        where = f" (traceback in {shown(failed)})" if failed.exists() else ""
        raise NotebookFailed(f"{stem} {reason}{where}") from error
    finally:
        running.unlink(missing_ok=True)
    return done


def run_cells(
    source: Path, target: Path, values: Mapping[str, Any], environment: Mapping[str, str]
) -> None:
    """Execute a notebook, with other values of its parameters, into a copy that grows as it runs.

    ``environment`` are variables for its kernel. With other values cells of numbers, beside typed
    words, may fail (`typed.lenient`). NotebookFailed, with cell and error, when a cell fails; what
    a kernel that dies raises.
    """
    notebook_format()  # before papermill imports it
    import papermill
    from papermill.exceptions import PapermillExecutionError
    from traitlets.config import Config

    # papermill reports on every run through its logger; what matters is printed here.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    if values:
        notebook_format().write(lenient(read_notebook(source)), target)
    try:
        with patch.dict(os.environ, environment):
            # Without the config ipykernel warns, at every start, that others here could listen.
            papermill.execute_notebook(
                target if values else source,
                target,
                parameters=dict(values),
                kernel_name="python3",
                cwd=source.parent,
                progress_bar=sys.stderr.isatty(),
                coalesce_streams=True,
                config=Config(KernelManager={"transport_encryption": "auto"}),
            )
    except PapermillExecutionError as error:
        raise NotebookFailed(
            f"failed in cell [{error.exec_count}]: {error.ename}: {first_line(error.evalue)}"
        ) from error


def store_outputs(stem: str, *, build: Path = paths.BUILD) -> Path:
    """Copy the outputs of ``build/mini/<stem>.ipynb`` into the notebook itself; return its path.

    Nothing but outputs, execution counts and numbers of typed paragraphs changes
    (`typed.Paragraph.write_back`). NotebookError if the executed copy has other cells of code than
    the notebook, or was given other parameters than the notebook's own.
    """
    source, executed = notebook_path(stem), build / "mini" / f"{stem}.ipynb"
    if not executed.is_file():
        raise FileNotFoundError(
            f"{shown(executed)} is missing: run {stem} under profile mini first"
        )
    notebook, ran = read_notebook(source), read_notebook(executed)
    sources = [["outputs" in c and c.source for c in book.cells] for book in (notebook, ran)]
    if sources[0] != sources[1]:
        message = f"{shown(executed)} has other cells than {shown(source)}: run the notebook again"
        raise NotebookError(message)
    count = 0
    for cell, result in zip(notebook.cells, ran.cells, strict=True):
        if "outputs" in cell:
            count += bool(cell.source.strip())
            # A warning names the line of a file that the kernel made up: no two runs have the same.
            cell.outputs = [output for output in result.outputs if output.get("name") != "stderr"]
            for numbered in (cell, *(x for x in cell.outputs if "execution_count" in x)):
                numbered.execution_count = count if cell.source.strip() else None
    for paragraph in paragraphs(notebook):
        paragraph.write_back()
    with written_whole(source, durable=False) as part:
        notebook_format().write(notebook, part)
    os.utime(executed)  # still newer than the notebook: Make need not run it again
    return source


def working_copy(source: Path) -> bytes:
    """What is laid of a file: a lesson without outputs, which would be read before a prediction."""
    content = source.read_bytes()
    if source.parent.name != "course" or source.suffix != ".ipynb":
        return content
    lesson = json.loads(content)
    for cell in lesson["cells"]:
        cell["metadata"].pop("jupyter", None)  # what is run is shown
        if cell["cell_type"] == "code":
            cell.update(outputs=[], execution_count=None)
    return json.dumps(lesson, indent=1, ensure_ascii=False).encode()


def play() -> tuple[list[str], list[str]]:
    """Lay working copies of notebooks and modules beside their folder; those laid, those kept.

    A copy is renewed when its original has changed since. One that was changed itself is kept, and
    named if its original has changed too.
    """
    playground = paths.ROOT / "playground"
    playground.mkdir(parents=True, exist_ok=True)
    record, laid, changed, copied = playground / ".copied.json", [], [], {}
    with contextlib.suppress(OSError, ValueError):
        copied = json.loads(record.read_text(encoding="utf-8"))
    patterns = ("*.ipynb", "course/*.ipynb", "**/*.py")
    for source in sorted(x for pattern in patterns for x in paths.NOTEBOOKS.glob(pattern)):
        name = source.relative_to(paths.NOTEBOOKS).as_posix()
        copy, before, content = playground / name, copied.get(name), working_copy(source)
        digest = hashlib.sha256(content).hexdigest()
        there = digest_of(copy) if copy.is_file() else None
        if there is None or there == before != digest:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
            laid.append(name)
            copied[name] = digest
        elif before != digest and there not in (before, digest):
            changed.append(name)
    record.write_text(json.dumps(copied, indent=1), encoding="utf-8")
    return laid, changed


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return 0, 1 (a notebook failed) or 2 (it could not be run)."""
    parser = argparse.ArgumentParser(prog="python -m notebooks.run.runner")
    parser.add_argument("notebook", nargs="?", help="its name in notebooks/: abx-2-dynamics")
    parser.add_argument("--profile", default="mini", help="a name in notebooks/profiles/")
    parser.add_argument("--build", type=Path, default=paths.BUILD, help="where the copy goes")
    store = "do not run, but copy the outputs of the last run into the notebook"
    parser.add_argument("--store", action="store_true", help=store)
    parser.add_argument("--play", action="store_true", help="lay working copies in playground/")
    options = parser.parse_args(argv)
    if options.play:
        for name in play()[1]:
            message = f"was changed by you and notebooks/{name} has changed since"
            print(f"playground/{name} {message}: delete your copy to have the new one")
        return 0
    if options.notebook is None:
        parser.error("name a notebook")
    if any("\ud800" <= sign <= "\udfff" for sign in str(paths.ROOT)):
        print(f"{paths.ROOT!a} is no name in this locale: set PYTHONUTF8=1", file=sys.stderr)
        return 2
    stem = options.notebook.removeprefix("notebooks/").removesuffix(".ipynb")
    began = time.monotonic()
    try:
        if options.store:
            print(f"{stem}: outputs stored in {shown(store_outputs(stem, build=options.build))}")
            return 0
        with stopped_by_sigterm():
            path = execute(stem, options.profile, build=options.build)
    except (NotebookFailed, NotebookError, OSError) as error:
        print(error, file=sys.stderr)
        return 1 if isinstance(error, NotebookFailed) else 2
    except KeyboardInterrupt:
        print(f"{stem} was stopped; nothing half-written is left", file=sys.stderr)
        return 130
    print(f"{stem}: {time.monotonic() - began:.0f} s, {shown(path)}")
    for sentence in disagreements(read_notebook(path)):
        print(f"{stem}, {sentence}")
    return 0


@contextlib.contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """Let a polite kill end the run as Ctrl-C does: the kernel shut down, the half file removed."""

    def stop(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


if __name__ == "__main__":
    sys.exit(main())
