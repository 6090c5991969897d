"""Differences that stay whichever fine-tuning is left out."""

import numpy as np
import pandas as pd

from printed.evaluator import VERDICTS
from xlx.measures import mixing
from xlx.measures.igap import crossed_interval

ENDS = ["value", "low", "high"]
UNTOLD = VERDICTS[3]


def one_sign(each: np.ndarray) -> np.ndarray:
    """Whether means over seeds, ``(S, ...)``, keep their sign whichever seed is left out.

    Of one seed there is none to leave out.
    """
    rest = np.sign(each.sum(axis=0) - each)
    return (np.abs(rest.sum(axis=0)) == len(each)) | (len(each) == 1)


def told_sides(ends: np.ndarray, sure: np.ndarray) -> np.ndarray:
    """Of intervals ``(draws, K, 2)`` "above" zero, or "below", in all draws and where ``sure``."""
    signs = np.sign(ends).sum(axis=(0, 2))
    sided = sure & (np.abs(signs) == 2 * len(ends))
    return np.where(sided, np.where(signs > 0, "above", "below"), UNTOLD)


def crossed(values: np.ndarray, groups: np.ndarray, above: float = 0) -> tuple[float | str, ...]:
    """`igap.crossed_interval` of ``(S, n)``, and its side of ``above`` without any one seed."""
    ends, each = crossed_interval(values, groups), np.atleast_2d(values).mean(axis=1) - above
    return *ends, told_sides(np.array([[ends[1:]]]) - above, one_sign(each)).item()


def compared(first: np.ndarray, other: np.ndarray, groups: np.ndarray) -> pd.DataFrame:
    """`mixing.averages` of ``(S, K, n)`` less another, and ``told``.

    That is "above" zero, "below", or that it cannot be told: where the interval holds zero, or the
    mean changes sign without one of the fine-tunings of either side.
    """
    each, less = first.mean(axis=-1), other.mean(axis=-1)
    sure = one_sign(each - less.mean(axis=0)) & one_sign(each.mean(axis=0) - less)
    table = mixing.averages(first, groups, other)
    return table.assign(told=told_sides(table[["low", "high"]].to_numpy()[None], sure))


def beside_shifts(lens: np.ndarray, outcome: np.ndarray) -> tuple[float, float]:
    """r of two courses over layers given depth and its square, and its one-sided p value.

    p is the share of circular shifts of one course that have at least this r, itself among them.
    """
    depth = np.vander(np.linspace(-1, 1, len(lens)), 3)
    rest = [x - depth @ np.linalg.lstsq(depth, x, rcond=None)[0] for x in (lens, outcome)]
    r = [np.corrcoef(np.roll(rest[0], i), rest[1])[0, 1] for i in range(len(lens))]
    return float(r[0]), float(np.mean(np.asarray(r) >= r[0]))
