"""A plugin for nbval: what the kernel of a notebook under test is told.

    python -m pytest -p tests.notebook_kernels --nbval notebooks/*.ipynb

Before a kernel starts it learns, as from `xlx.run`, its notebook's name and where to note what that
asks for (``build/test/asks/``, which `xlx.audit` reads), but writes no figures.

Outputs are compared to the last character: what another processor would compute otherwise comes
from the ledger, and the audit says how far it may differ there.
"""

import os
from pathlib import Path

import pytest

from xlx import paths, run


def tell(notebook: Path) -> None:
    """Set what the next kernel learns about its notebook."""
    journal = run.fresh_journal(notebook.stem, paths.BUILD / "test")
    os.environ["XLX_NOTEBOOK"] = notebook.stem
    os.environ["XLX_JOURNAL"] = str(journal.parent)
    os.environ["XLX_FIGURES"] = "none"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tell kernels of their notebooks."""
    from nbval import plugin

    for file in {item.parent for item in items if isinstance(item, plugin.IPyNbCell)}:

        def setup(file=file, start=file.setup) -> None:
            tell(file.path)
            start()

        file.setup = setup
