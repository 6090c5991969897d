"""Reading a table of within and across: in points, side by side, and apart from a preference."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from xlx.mixing.resamples import MixingError
from xlx.mixing.within_across import OVERALL, SETTINGS


class Detection(NamedTuple):
    """How far apart two classes are for a model, and which it prefers; in the accuracies' shape.

    Attributes
    ----------
    sensitivity : d′, in standard deviations; 0 if the model tells nothing.
    criterion : above 0 it prefers the second answer, below 0 the first.
    unbiased : the mean of both accuracies, in [0, 1], that it would have with no preference.
    """

    sensitivity: np.ndarray
    criterion: np.ndarray
    unbiased: np.ndarray


def detection(first: np.ndarray, second: np.ndarray) -> Detection:
    """What a model tells of two classes, apart from which answer it prefers (Tables 6, 12, 13).

    Where one class is answered worse and the other better, the preference has moved, the knowledge
    has shrunk, or both; the mean of the two accuracies does not tell, as it falls with either. In
    signal detection (Green and Swets 1966) the model has one normal quantity of unit variance for
    each class and answers "first" above a threshold. With h and r the accuracies of the first and
    the second class and z the normal quantile,

        d′ = z(h) + z(r),   c = (z(r) - z(h)) / 2,

    and with no preference (c = 0) both accuracies would be Φ(d′ / 2). That both variances are equal
    is assumed, and cannot be tested with one threshold. Of a mean over models or pairs of languages
    that differ, d′ comes out too small. MixingError for an accuracy that is not above 0 and below
    1, where d′ would be infinite.
    """
    first, second = np.asarray(first, float), np.asarray(second, float)
    if not all(((values > 0) & (values < 1)).all() for values in (first, second)):
        raise MixingError("an accuracy is not between 0 and 1, so that it has no normal quantile")
    hits, rejections = stats.norm.ppf(first), stats.norm.ppf(second)
    sensitivity = hits + rejections
    return Detection(sensitivity, (rejections - hits) / 2, stats.norm.cdf(sensitivity / 2))


def detected(table: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """`detection` of the mean over languages, of tables like `by_label`'s of two labels.

    A row per ``model`` and setting (within, across): ``first`` and ``second`` (the accuracies of
    both labels), ``d′``, ``criterion``, ``mean of both`` and ``without preference`` (in [0, 1]).
    Of a model that gives all examples one label d′ and what follows from it are NaN.
    """
    means = table[(table["language"] == OVERALL) & (table["setting"] != SETTINGS[2])]
    wide = means.pivot(index=["model", "setting"], columns="label", values="score")
    rows = pd.MultiIndex.from_frame(means[["model", "setting"]].drop_duplicates())
    wide = wide.loc[rows, [first, second]].rename_axis(columns=None)
    finite = wide.where(((wide > 0) & (wide < 1)).all(axis=1)).dropna()
    told = detection(finite[first].to_numpy(), finite[second].to_numpy())
    names = {"sensitivity": "d′", "unbiased": "without preference"}
    found = pd.DataFrame(told._asdict(), finite.index).rename(columns=names).reindex(wide.index)
    found.insert(2, "mean of both", wide.mean(axis=1))
    return wide.join(found)


def as_points(table: pd.DataFrame, value: str = "score") -> pd.Series:
    """Numbers of a table with their intervals as text, in points: "47.3 (39.9 to 54.6)".

    The ends are in ``low`` and ``high``, of another value in ``<value>_low`` and ``<value>_high``.
    """
    ends = ("low", "high") if value == "score" else (f"{value}_low", f"{value}_high")
    points = [(100 * table[name]).round(1) + 0.0 for name in (value, *ends)]  # + 0.0: no "-0.0"
    return pd.Series(
        [f"{one:.1f} ({low:.1f} to {high:.1f})" for one, low, high in zip(*points, strict=True)],
        index=table.index,
    )


def listed(table: pd.DataFrame) -> str:
    """The rows of a table by their index, `as_points`, as one line: "a 1.0 (0.2 to 1.8), b ..."."""
    return ", ".join(f"{name} {own}" for name, own in as_points(table).items())


def by_setting(table: pd.DataFrame, *index: str, language: str = OVERALL) -> pd.DataFrame:
    """A language's rows of tables like `summary`'s, settings side by side, as text `as_points`.

    ``index`` names the columns that tell the rows apart, such as "model"; rows and settings keep
    the order of the table. MixingError for a language that it lacks.
    """
    rows = table[table["language"] == language]
    if rows.empty:
        raise MixingError(f"the table has no language {language!r}")
    said = as_points(rows).set_axis(pd.MultiIndex.from_frame(rows[[*index, "setting"]]))
    return said.unstack("setting", sort=False)
