"""A plugin for nbval: in cells with a tag of `ALLOWANCES`, numbers may differ.

    python -m pytest -p tests.approximate --nbval notebooks/*.ipynb

``approximate``: training adds up float32 in an order that depends on the processor and its number
of threads, and a probe may then stop an epoch earlier: the numbers of such a cell hold on another
machine to about a hundredth, not to the last printed digit.

``finetuned``: a whole model that is fine-tuned goes another way after the first differing digit. It
ends as good, but with other errors: of a hundred examples several, and a minimum over checkpoints
comes from another one. Such numbers hold as far as their prose does: a quarter is no half.

Before a kernel starts it is told, as by `xlx.run`, its notebook's name and where to note what that
asks for (``build/test/asks/``, which `xlx.audit` reads), but not where figures are committed.

Words, signs of the layout and how many numbers there are must be the same under both tags. All
other cells are compared exactly.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest

from xlx import audit, paths, run

#: Of the notebooks; one whose results are not shipped yet has to compute them.
POLICY = os.environ.get("XLX_POLICY", "use")

#: How far a number may be from the reference, given that and how many decimals are printed.
Allowance = Callable[[float, int], float]

_NUMBER = re.compile(r"[+\-−]?\d[\d,]*(?:\.\d+)?(?:e[+\-]\d+)?")


def approximate(reference: float, decimals: int) -> float:
    """A twentieth of the number and 0.05 more; 2 more of a whole number, which is a count."""
    return 0.05 + 0.05 * abs(reference) + (2 if decimals == 0 else 0)


def finetuned(reference: float, decimals: int) -> float:
    """0.15 of a share, which has two decimals or more; 15 of points and of counts."""
    return 0.15 if decimals > 1 and abs(reference) <= 1.5 else 15


ALLOWANCES: dict[str, Allowance] = {"approximate": approximate, "finetuned": finetuned}


def _value(number: str) -> float:
    return float(number.replace(",", "").replace("−", "-"))


def _decimals(number: str) -> int:
    return len(number.partition(".")[2].partition("e")[0])


def alike(test: str, reference: str, allowance: Allowance) -> bool:
    """Whether two outputs say the same up to differences of numbers and to white space."""
    if "".join(_NUMBER.sub("0", test).split()) != "".join(_NUMBER.sub("0", reference).split()):
        return False
    for one, other in zip(_NUMBER.findall(test), _NUMBER.findall(reference), strict=True):
        allowed = allowance(_value(other), max(_decimals(one), _decimals(other)))
        if abs(_value(one) - _value(other)) > allowed:
            return False
    return True


def settle(test: object, reference: object, allowance: Allowance) -> object:
    """``test`` with every text that is `alike` the one in its place in ``reference`` replaced."""
    if isinstance(test, str) and isinstance(reference, str):
        return reference if alike(test, reference, allowance) else test
    if isinstance(test, dict) and isinstance(reference, dict):
        return nbformat.from_dict(
            {key: settle(value, reference.get(key), allowance) for key, value in test.items()}
        )
    if isinstance(test, list) and isinstance(reference, list) and len(test) == len(reference):
        return [settle(*pair, allowance) for pair in zip(test, reference, strict=True)]
    return test


def tell(notebook: Path) -> None:
    """Set what the next kernel learns about its notebook."""
    journal = run.fresh_journal(notebook.stem, paths.BUILD / "test")
    waiting = notebook.stem in audit.pending(paths.RESULTS)
    os.environ["XLX_POLICY"] = "use" if waiting else POLICY
    os.environ["XLX_NOTEBOOK"] = notebook.stem
    os.environ["XLX_JOURNAL"] = str(journal.parent)
    os.environ.pop("XLX_FIGURES", None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tell kernels of their notebooks; let cells that are tagged so compare by `settle`."""
    from nbval import plugin

    for file in {item.parent for item in items if isinstance(item, plugin.IPyNbCell)}:

        def setup(file=file, start=file.setup) -> None:
            tell(file.path)
            start()

        file.setup = setup
    for item in items:
        if not isinstance(item, plugin.IPyNbCell):
            continue
        allowed = [
            ALLOWANCES[tag] for tag in item.cell.metadata.get("tags", []) if tag in ALLOWANCES
        ]
        if allowed:
            exact = item.compare_outputs

            def compare(
                test: list, reference: list, skip: object = None, exact=exact, allowance=allowed[0]
            ) -> bool:
                test, reference = map(plugin.coalesce_streams, (test, reference))
                return exact(settle(test, reference, allowance), reference, skip)

            item.compare_outputs = compare
