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
    returned = answers(mine, worlds)
    if isinstance(returned, str):
        return returned
    wanted = [right(*world) for world in worlds]
    if same(returned, wanted, room):
        return RIGHT
    for hint, wrong in errors.items():
        if same(returned, [wrong(*world) for world in worlds], room):
            return f"Not yet: {hint}"
    return f"Not yet: {described(returned, wanted)}"


def answers(mine: object, worlds: Sequence[Sequence]) -> list | str:
    """What a student's function returns for each world, or a sentence where it does not."""
    if mine is None:
        return NOT_YET
    if not callable(mine):
        return "Give the function itself, without brackets after its name."
    returned = []
    for world in worlds:
        try:
            with np.errstate(all="ignore"):
                returned.append(mine(*deepcopy(world)))
        except Exception as error:  # whatever a student's lines raise
            return f"Your lines stop with {type(error).__name__}: {str(error).rstrip('.')}."
    if all(value is None for value in returned):
        return NOT_YET
    if any(value is None for value in returned):
        return "On some inputs your function returns nothing: does each way end with `return`?"
    return returned


def same(returned: Sequence[object], wanted: Sequence[object], room: float = 1e-6) -> bool:
    """Whether all values are equal, shapes and all, but for the last digits."""
    pairs = [
        (numbers(value), numbers(other)) for value, other in zip(returned, wanted, strict=True)
    ]
    return all(
        value is not None
        and value.shape == other.shape
        and np.allclose(value, other, rtol=0, atol=room, equal_nan=True)
        for value, other in pairs
    )


def numbers(value: object) -> np.ndarray | None:
    """A value as an array of floats; None where it has no numbers."""
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return None


def described(returned: Sequence[object], wanted: Sequence[object]) -> str:
    """How the first value that differs does so."""
    i = next(i for i, value in enumerate(returned) if not same([value], [wanted[i]]))
    value, other = numbers(returned[i]), numbers(wanted[i])
    if value is None:
        return f"your function returns {type(returned[i]).__name__}, and numbers are asked for."
    if value.shape != other.shape:
        return f"yours has the shape {value.shape}, and {other.shape} is asked for."
    if other.size > 6:
        at = tuple(map(int, np.argwhere(~np.isclose(value, other, rtol=0, atol=1e-6))[0]))
        return f"at {at} yours is {value[at]:.4g}, and {other[at]:.4g} is right."
    return f"yours is {value.round(4).tolist()}, and {other.round(4).tolist()} is right."


def predicted(mine: object, value: float, form: str = ".2f") -> str:
    """What a prediction comes to beside the value; without one, the value is told kindly."""
    if mine is None:
        return f"It is {value:{form}}. Next time write a prediction down first."
    if numbers(mine) is None or np.ndim(mine):
        return "Write one number as the prediction."
    off = float(mine) - value
    verdict = "close" if abs(off) < abs(value) / 20 else "too high" if off > 0 else "too low"
    return f"You said {mine:{form}}; it is {value:{form}}: {verdict}."
