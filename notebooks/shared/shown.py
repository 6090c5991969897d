"""How notebooks show numbers."""

import pandas as pd


def with_interval(table: pd.DataFrame, value: str, form: str = ".2f") -> list[str]:
    """A column with the interval in ``low`` and ``high``, as text: "0.85 (0.80 to 0.90)"."""
    return [
        f"{number:{form}} ({low:{form}} to {high:{form}})"
        for number, low, high in table[[value, "low", "high"]].to_numpy()
    ]
