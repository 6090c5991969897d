"""From MEXA scores to the scores of a task: the adjusted score, its line, its bands (5.2, A.8)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from xlx.core.statistics import Correlation, correlation, numbers, require

#: Lower edges of the bands of Table 6; a score on an edge belongs above it.
EDGES = (0.0, 0.2, 0.4, 0.6, 0.8)
#: Their names, from "not covered" to "well-covered".
BANDS = ("0–0.2", "0.2–0.4", "0.4–0.6", "0.6–0.8", "0.8–1")


def expected(mu: np.ndarray | pd.Series | float, english_score: float) -> np.ndarray:
    """The adjusted score, μ times the score of the task in English (section 5.2, Table 6).

    In units of the task's score, a share in [0, 1]. Raises ValueError outside of that.
    """
    for name, values in (("mu", mu), ("english_score", english_score)):
        if not np.all((np.asarray(values) >= 0) & (np.asarray(values) <= 1)):
            raise ValueError(f"{name} must lie in [0, 1] (a share, not percent), none missing")
    return np.asarray(mu) * english_score


@dataclass(frozen=True)
class Line:
    """Least squares of the task on the adjusted score, beside the ideal line.

    ``error`` and ``ideal_error`` are root mean squares of what each line leaves, in units of the
    task's score; ``correlation`` has an interval by resampling languages.
    """

    slope: float
    intercept: float
    error: float
    ideal_slope: float
    ideal_intercept: float
    ideal_error: float
    correlation: Correlation


def line(
    table: pd.DataFrame, *, n_choices: int = 4, n_resamples: int = 1000, seed: int = 0
) -> Line:
    """The line from MEXA to a task (section 5.2, Figure 1).

    With k choices a guess is right once in k times while the least MEXA score is 0, so the ideal
    line goes from (0, 1/k) to (1, 1): intercept 1/k, slope 1 - 1/k (¼ and ¾ for four choices). At
    the point of English itself, x = s, it gives s + (1 - s) / k, more than s: it is an upper end,
    met by a perfect model only.

    ``table`` has a row per language, of one model and task: ``language``, ``expected`` (the
    adjusted score) and ``score`` (the task's). ValueError as `statistics.correlation`; a language
    in two rows; fewer than two choices.
    """
    if n_choices < 2:
        raise ValueError(f"a question has two choices or more, not {n_choices}")
    require(table, ("language",))
    if (twice := table["language"].duplicated()).any():
        raise ValueError(
            f"{table.loc[twice, 'language'].iloc[0]} has two rows: the line is of one model and "
            "one task (`downstream.of_task`)"
        )
    r = correlation(
        table, "expected", "score", languages=("language",), n_resamples=n_resamples, seed=seed
    )
    x, y = numbers(table, ("expected", "score")).T
    fit = stats.linregress(x, y)
    both = (float(fit.slope), float(fit.intercept)), (1 - 1 / n_choices, 1 / n_choices)
    errors = [float(np.sqrt(np.mean((y - b - a * x) ** 2))) for a, b in both]
    return Line(*both[0], errors[0], *both[1], errors[1], r)


def bands(score: np.ndarray | pd.Series | Sequence[float]) -> pd.Categorical:
    """The band of each adjusted score: the colours of Table 6, from `BANDS`, in order.

    Raises ValueError for a score that is missing or outside [0, 1].
    """
    values = np.asarray(score, dtype=float).round(12)  # 0.2 * 3 is no less than 0.6
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("adjusted scores lie in [0, 1], and none may be missing")
    codes = np.digitize(values, EDGES) - 1
    return pd.Categorical.from_codes(codes, BANDS, ordered=True)
