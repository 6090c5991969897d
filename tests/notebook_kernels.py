"""A plugin for nbval: what the kernel of a notebook under test is told.

    python -m pytest -p tests.notebook_kernels --nbval notebooks/*.ipynb

Before a kernel starts it learns, as from `notebooks.run.runner`, its notebook's name and where to
note what that asks for (``build/test/asks/``, which `notebooks.run.audit` reads), but writes no
figures.

Outputs are compared to the last character: what another processor would compute otherwise comes
from the ledger, and the audit says how far it may differ there. Warnings that a model does not read
all of a text are no part of that: they come where something is computed, which with an audit is
another place each time, and name a line that the kernel made up (so `notebooks.run.runner` stores
none).
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from notebooks.run import journals
from notebooks.run.profiles import notebook_format
from xlx.results import paths

notebook_format()  # before another module imports it


def tell(notebook: Path) -> None:
    """Set what the next kernel learns about its notebook."""
    journal = journals.fresh_journal(notebook.stem, paths.BUILD / "test")
    os.environ["XLX_NOTEBOOK"] = notebook.stem
    os.environ["XLX_JOURNAL"] = str(journal.parent)
    os.environ["XLX_FIGURES"] = "none"


def warns_of_text(output: Mapping[str, Any]) -> bool:
    """Whether an output is that a model does not read all of a text, and no other warning."""
    said = re.findall(r":\d+: (\w+): ", output.get("text", ""))
    return output.get("name") == "stderr" and set(said) == {"TextWarning"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tell kernels of their notebooks."""
    from nbval import plugin

    for item in items:
        if isinstance(item, plugin.IPyNbCell):

            def compare(test, *others, own=item.compare_outputs, **options) -> bool:
                return own([each for each in test if not warns_of_text(each)], *others, **options)

            item.compare_outputs = compare
    for file in {item.parent for item in items if isinstance(item, plugin.IPyNbCell)}:

        def setup(file=file, start=file.setup) -> None:
            tell(file.path)
            start()

        file.setup = setup
