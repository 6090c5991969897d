"""What a student wrote, compared with what is right and with the usual errors.

The usual errors of an exercise are functions. What a student's function returns is compared with
what each of them returns; the one that agrees on all toy worlds gives the hint.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy

import numpy as np

NOT_YET, RIGHT = "Not yet written.", "Right."


def judged(
    mine: object,
    right: Callable,
    worlds: Sequence[Sequence],
    errors: Mapping[str, Callable],
    room: float = 1e-6,
) -> str:
    """Compare a student's function with the right one, and with the usual errors (hint → function).

    ``worlds`` are the arguments of each call, ``room`` what two equal numbers may differ by.
    Whatever the function does, a sentence is returned.
    """
    found = answers(mine, worlds)
    if isinstance(found, str):
        return found
    wanted = [right(*world) for world in worlds]
    if same(found, wanted, room):
        return RIGHT
    for hint, wrong in errors.items():
        if same(found, [wrong(*world) for world in worlds], room):
            return f"Not yet: {hint}"
    return f"Not yet: {described(found, wanted)}"


def answers(mine: object, worlds: Sequence[Sequence]) -> list | str:
    """What a student's function returns for each world, or a sentence where it does not."""
    if mine is None:
        return NOT_YET
    if not callable(mine):
        return "Give the function itself, without brackets after its name."
    found = []
    for world in worlds:
        try:
            with np.errstate(all="ignore"):
                found.append(mine(*deepcopy(world)))
        except Exception as error:  # whatever a student's lines raise
            return f"Your lines stop with {type(error).__name__}: {str(error).rstrip('.')}."
    if all(one is None for one in found):
        return NOT_YET
    if any(one is None for one in found):
        return "On some inputs your function returns nothing: does each way end with `return`?"
    return found


def same(found: Sequence[object], wanted: Sequence[object], room: float = 1e-6) -> bool:
    """Whether all values are equal, shapes and all, but for the last digits."""
    pairs = [(numbers(one), numbers(other)) for one, other in zip(found, wanted, strict=True)]
    return all(
        one is not None
        and one.shape == other.shape
        and np.allclose(one, other, rtol=0, atol=room, equal_nan=True)
        for one, other in pairs
    )


def numbers(value: object) -> np.ndarray | None:
    """A value as an array of floats; None where it has no numbers."""
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return None


def described(found: Sequence[object], wanted: Sequence[object]) -> str:
    """How the first value that differs does so."""
    i = next(i for i, one in enumerate(found) if not same([one], [wanted[i]]))
    one, other = numbers(found[i]), numbers(wanted[i])
    if one is None:
        return f"your function returns {type(found[i]).__name__}, and numbers are asked for."
    if one.shape != other.shape:
        return f"yours has the shape {one.shape}, and {other.shape} is asked for."
    if other.size > 6:
        at = tuple(map(int, np.argwhere(~np.isclose(one, other, rtol=0, atol=1e-6))[0]))
        return f"at {at} yours is {one[at]:.4g}, and {other[at]:.4g} is right."
    return f"yours is {one.round(4).tolist()}, and {other.round(4).tolist()} is right."


def predicted(mine: object, value: float, form: str = ".2f") -> str:
    """What a prediction comes to beside the value; without one, the value is told kindly."""
    if mine is None:
        return f"It is {value:{form}}. Next time write a prediction down first."
    if numbers(mine) is None or np.ndim(mine):
        return "Write one number as the prediction."
    off = float(mine) - value
    said = "close" if abs(off) < abs(value) / 20 else "too high" if off > 0 else "too low"
    return f"You said {mine:{form}}; it is {value:{form}}: {said}."
