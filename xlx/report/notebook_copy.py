"""The executed notebook that a report leaves: ``notebooks/report.ipynb`` with its models and text.

What it asks for was computed a moment ago, so it takes its results from the cache.
"""

import argparse
import tempfile
from pathlib import Path

from xlx.core import paths, store
from xlx.core.run import run_cells
from xlx.core.settings import current
from xlx.models.identity import local_folder
from xlx.text.corpora import ParallelCorpus

#: The notebook of which copies are left.
SOURCE = paths.NOTEBOOKS / "report.ipynb"


def executed_copy(target: Path, options: argparse.Namespace, corpus: ParallelCorpus) -> Path:
    """Execute the notebook as the command line has it, on the same text, into ``target``.

    Raises `xlx.core.run.NotebookFailed` where a cell fails; then nothing is left.
    """
    values = {
        "profile": "report",
        "models": [_from_anywhere(name) for name in options.models],
        "corpus": _from_anywhere(options.text),
        "languages": list(corpus.languages),
        "n_sentences": len(corpus),
        "pivot": options.pivot,
        "references": options.reference and [_from_anywhere(name) for name in options.reference],
        "tasks": [str(Path(file).resolve()) for file in options.tasks or ()],
        "probe": options.probe,
        "quick": options.quick,
        "max_length": options.max_length,
        "device": options.device,
        "dtype": options.dtype,
        "seed": options.seed,
    }
    told = {"XLX_FIGURES": "none", "XLX_CACHE": str(current().cache)}
    with tempfile.TemporaryDirectory() as folder:
        ran = Path(folder) / target.name
        run_cells(SOURCE, ran, values, told)
        store.write_whole(target, ran.read_bytes())
    return target


def _from_anywhere(name: str) -> str:
    """A name as it is; of a folder its whole path, as a notebook runs in a folder of its own."""
    folder = local_folder(name)
    return str(folder.resolve()) if folder and not folder.is_relative_to(paths.MODELS) else name
