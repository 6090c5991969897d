"""A plugin for nbval: in cells tagged ``approximate``, numbers may differ a little.

    python -m pytest -p tests.approximate --nbval notebooks/*.ipynb

Training adds up float32 in an order that depends on the processor and its number of threads, and a
probe may then stop an epoch earlier: the numbers of such a cell hold on another machine to about a
hundredth, not to the last printed digit. Words, signs of the layout and how many numbers there are
must be the same; a number with a decimal point may differ by `ABSOLUTE` + `RELATIVE` · its size, a
whole one (a count) by `COUNT` more. All other cells are compared exactly.
"""

import re

import nbformat
import pytest

ABSOLUTE, RELATIVE, COUNT = 0.05, 0.05, 2
TAG = "approximate"
_NUMBER = re.compile(r"[+\-−]?\d[\d,]*(?:\.\d+)?(?:e[+\-]\d+)?")


def _value(number: str) -> float:
    return float(number.replace(",", "").replace("−", "-"))


def alike(test: str, reference: str) -> bool:
    """Whether two outputs say the same up to small differences of numbers and to white space."""
    if "".join(_NUMBER.sub("0", test).split()) != "".join(_NUMBER.sub("0", reference).split()):
        return False
    for one, other in zip(_NUMBER.findall(test), _NUMBER.findall(reference), strict=True):
        allowed = ABSOLUTE + RELATIVE * abs(_value(other))
        if "." not in one and "." not in other:
            allowed += COUNT
        if abs(_value(one) - _value(other)) > allowed:
            return False
    return True


def settle(test: object, reference: object) -> object:
    """``test`` with every text that is `alike` the one in its place in ``reference`` replaced."""
    if isinstance(test, str) and isinstance(reference, str):
        return reference if alike(test, reference) else test
    if isinstance(test, dict) and isinstance(reference, dict):
        return nbformat.from_dict(
            {key: settle(value, reference.get(key)) for key, value in test.items()}
        )
    if isinstance(test, list) and isinstance(reference, list) and len(test) == len(reference):
        return [settle(one, other) for one, other in zip(test, reference, strict=True)]
    return test


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the cells that are tagged so compare their outputs by `settle`."""
    from nbval import plugin

    for item in items:
        if isinstance(item, plugin.IPyNbCell) and TAG in item.cell.metadata.get("tags", []):
            exact = item.compare_outputs

            def compare(test: list, reference: list, skip: object = None, exact=exact) -> bool:
                test, reference = map(plugin.coalesce_streams, (test, reference))
                return exact(settle(test, reference), reference, skip)

            item.compare_outputs = compare
