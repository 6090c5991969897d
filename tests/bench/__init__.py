"""Speed and memory, as ratios within one run: ``make bench``, or one part by its name.

python -m tests.bench [abx ...]
"""

import time
from collections.abc import Callable
from typing import NamedTuple


class Row(NamedTuple):
    """A row of the table that is printed."""

    name: str
    value: float
    unit: str
    aim: str = ""


def best_of(*tasks: Callable[[], object], rounds: int = 3) -> list[float]:
    """Least seconds of each task, taken in turns."""
    times = [float("inf")] * len(tasks)
    for _ in range(rounds):
        for i, task in enumerate(tasks):
            start = time.perf_counter()
            task()
            times[i] = min(times[i], time.perf_counter() - start)
    return times
