"""Which of many cases are asked by `make test`; `make check` asks all."""

from collections.abc import Container, Iterable
from typing import Any

import pytest


def but(fast: Container[object], cases: Iterable[Any]) -> list[Any]:
    """The cases, those of them slow whose name is not among the fast.

    A case is its name, or a tuple of values that starts with it.
    """
    rows = [(case, case if isinstance(case, tuple) else (case,)) for case in cases]
    slow = pytest.mark.slow
    return [case if row[0] in fast else pytest.param(*row, marks=slow) for case, row in rows]
