"""Tables of made-up numbers, for the tests of what draws them."""

import itertools

import numpy as np
import pandas as pd


def rows(seed: int, *values: str, **keys: tuple) -> pd.DataFrame:
    """Every combination of the keys, in no order but for the first key, with random numbers."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(list(itertools.product(*keys.values())), columns=list(keys))
    for value in values:
        table[value] = rng.uniform(0.2, 0.9, len(table))
    table = table.sample(frac=1, random_state=seed)
    first = next(iter(keys))
    return table.sort_values(first, kind="stable", key=lambda own: own.map(keys[first].index))


def of(table: pd.DataFrame, **keys: object) -> pd.DataFrame:
    """The rows with these keys."""
    for name, value in keys.items():
        table = table[table[name] == value]
    return table


def banded(table: pd.DataFrame, value: str) -> pd.DataFrame:
    """With an interval about the value, wider below."""
    return table.assign(low=table[value] - 0.1, high=table[value] + 0.05)
