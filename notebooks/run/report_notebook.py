"""A report and its executed notebook: ``notebooks/report.ipynb`` with the models and the text.

    python -m notebooks.run.report_notebook report MODEL [--quick ...]    # make report

The page is that of `xlx.report.command`. What the notebook asks for was computed a moment ago, so
it takes its results from the cache. What is typed of the default model and text is left out.
"""

import os
import sys
import tempfile
from pathlib import Path

from notebooks.run import typed
from notebooks.run.profiles import notebook_format, read_notebook
from notebooks.run.runner import NotebookFailed, run_cells
from xlx.report import inputs
from xlx.report.report_command import Report
from xlx.results import paths, store
from xlx.results.settings import current
from xlx.subjects.identity import local_folder
from xlx.text.parallel import ParallelCorpus

#: The notebook of which copies are left.
SOURCE = paths.NOTEBOOKS / "report.ipynb"


def executed_copy(target: Path, options: Report, corpus: ParallelCorpus) -> Path:
    """Execute the notebook as the command line has it, on the same text, into ``target``.

    Raises `notebooks.run.runner.NotebookFailed` where a cell fails; then nothing is left.
    """
    values = {
        "profile": "report",
        "models": [_from_anywhere(name) for name in options.models],
        "corpus": _from_anywhere(options.text),
        "languages": list(corpus.languages),
        "n_sentences": len(corpus),
        "pivot": inputs.pivot_of(corpus, options.pivot),
        "references": options.references and [_from_anywhere(x) for x in options.references],
        "tasks": [str(file) for file in options.files],
        "probe": options.probe,
        "quick": options.quick,
        "reading": {name: value for name, value in options.how.items() if value},
        "device": options.device,
        "device_map": options.device_map,
        "token_budget": options.token_budget,
        "dtype": current().dtype,
    }
    environment = {"XLX_FIGURES": "none", "XLX_CACHE": str(current().cache)}
    with tempfile.TemporaryDirectory() as folder:
        ran = Path(folder) / target.name
        run_cells(SOURCE, ran, values, environment)
        read = typed.without_readings(read_notebook(ran))  # these are typed of the shipped model
        store.write_whole(target, notebook_format().writes(read).encode())
    return target


def _from_anywhere(name: str) -> str:
    """A name as it is; of a folder its whole path, as a notebook runs in a folder of its own."""
    folder = local_folder(name)
    return str(folder.resolve()) if folder and not folder.is_relative_to(paths.MODELS) else name


def leave_notebook(folder: Path, options: Report, corpus: ParallelCorpus) -> Path | None:
    """The executed copy beside a report; None, and a sentence, where a cell fails."""
    try:
        return executed_copy(folder / "report.ipynb", options, corpus)
    except NotebookFailed as error:  # the report itself is there
        print(f"xlx report: its notebook {error}", file=sys.stderr)
        return None


def main() -> int:
    """Run the command line of `xlx report` and leave the notebook."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is loaded
    from xlx.report import command

    return command.main(leave=leave_notebook)


if __name__ == "__main__":
    sys.exit(main())
