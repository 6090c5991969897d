"""Measures take tensors, lists and tables where they take arrays, with the same result."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from xlx.measures import abx, alignment, igap, mexa, mixing
from xlx.results import checks

RNG = np.random.default_rng(1)
#: Eighths below 2 are the same number in bfloat16.
DEEP, OTHER = RNG.integers(-15, 16, (2, 2, 6, 4)) / 8 + 1 / 16
STATES = {"en": DEEP, "de": DEEP + OTHER}
FLAT = {code: array[0] for code, array in STATES.items()}
WRONG, RIGHT = np.arange(24).reshape(2, 12) % 5 == 0, np.arange(36).reshape(3, 3, 4) % 2 == 0
SHARES = np.array([0.25, 0.5, 0.75, 1.0])
GRID, LANGUAGES = np.array([RIGHT] * 2).astype(float), ["en", "de", "ja"]
LABELS = np.array([0, 1, 0, 1, 0, 1])
FEW = {"max_epochs": 2, "seeds": (0,)}
TRIPLETS = abx.sample_triplets("MD", ("en", "de"), 6, 20, 0)
#: Module and function → what it is given: arrays, and what else it needs.
CALLS: dict[tuple[Any, str], tuple] = {
    (abx, "exact"): (STATES,),
    (abx, "sampled"): (STATES, [("en", "de")], 20, 1, 1),
    (abx, "score_triplets"): (FLAT, TRIPLETS),
    (abx, "triplet_distances"): (FLAT, TRIPLETS),
    (alignment, "centred"): (STATES,),
    (mexa, "scores"): (STATES,),
    (mexa, "rivals"): (FLAT["en"], FLAT["de"]),
    (mexa, "count_rivals"): (DEEP, OTHER),
    (mexa, "expected"): (SHARES, 0.5),
    (mexa, "bands"): (SHARES,),
    (igap, "decompose"): (WRONG, WRONG, WRONG),
    (igap, "transfer_gap"): (WRONG, WRONG),
    (igap, "igap_curve"): (WRONG, {"de": ~WRONG}, [1, 2]),
    (igap, "ranking_accuracy"): (LABELS, LABELS[::-1].copy()),
    (mixing, "cells"): (GRID, LANGUAGES),
    (mixing, "summary"): (GRID, LANGUAGES),
    (mixing, "paired_difference"): (GRID, 1 - GRID, LANGUAGES),
    (mixing, "averages"): (GRID[:, 0],),
    (mixing, "by_label"): (GRID, np.array([0, 0, 1, 1]), {"a": [0], "b": [1]}, LANGUAGES),
}


def bfloat(x: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(x.astype(np.float32)).bfloat16() if x.dtype.kind == "f" else tensor(x)


def tensor(x: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(x).requires_grad_(x.dtype.kind == "f")


def rows(x: np.ndarray) -> Any:
    return [*map(tensor, x)] if x.ndim > 1 else x.tolist()


WAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "list": np.ndarray.tolist,
    "tensor": tensor,
    "bfloat16": bfloat,
    "list of tensors": rows,
}


def turned(value: Any, way: Callable[[np.ndarray], Any]) -> Any:
    """The same with arrays in another form."""
    if isinstance(value, Mapping):
        return {name: turned(x, way) for name, x in value.items()}
    if isinstance(value, list) and isinstance(value[0], np.ndarray):
        return [turned(x, way) for x in value]
    return way(value) if isinstance(value, np.ndarray) else value


def parts(value: Any) -> Iterator[np.ndarray]:
    """Numbers and texts of a result, whatever holds them."""
    if isinstance(value, Mapping | pd.DataFrame):
        value = [value[name] for name in value]
    elif hasattr(value, "__dataclass_fields__"):
        value = [*vars(value).values()]
    if isinstance(value, tuple | list | Iterator):
        for x in value:
            yield from parts(x)
    else:
        yield np.asarray(value)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("function", [name for _, name in CALLS])
def test_the_same_of_tensors_and_lists(function: str, way: str) -> None:
    (key,) = (key for key in CALLS if key[1] == function)
    call, given = getattr(*key), CALLS[key]
    expected, result = call(*given), call(*(turned(x, WAYS[way]) for x in given))
    both = [[*parts(x)] for x in (expected, result)]
    assert both[0]
    for a, b in zip(*both, strict=True):
        exact = a.dtype.kind not in "fc"
        (np.testing.assert_array_equal if exact else np.testing.assert_allclose)(b, a)


def test_no_function_whose_annotations_are_held_is_left_out() -> None:
    modules = abx, alignment, igap, mexa, mixing
    held = {
        name
        for module in modules
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and hasattr(function, "__wrapped__")
        if any(
            "ndarray" in str(x) or "Vectors" in str(x)
            for x in inspect.get_annotations(function).items()
            if x[0] != "return"
        )
    }
    assert held <= {name for _, name in CALLS}


@pytest.mark.parametrize("mixed", [[True, 0.5], [0.5, [True, 0.25]], [[0.5, True], [0.25, 0.75]]])
def test_a_list_of_numbers_and_truth_values_is_no_array(mixed: list) -> None:
    assert checks.as_arrays(mixed) is mixed
    with pytest.raises(ValueError, match=r"score is \[.*True.*: give a numpy array"):
        mexa.bands(mixed)
