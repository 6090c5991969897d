"""Reading a table of within and across: in points, side by side, and apart from a preference."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from xlx.mixing.resamples import MixingError
from xlx.mixing.within_across import OVERALL, SETTINGS


class Detection(NamedTuple):
    """What `detection` finds; all have the shape of the accuracies.

    Attributes
    ----------
    sensitivity : numpy.ndarray
        d′, how far apart the classes are for the model, in standard deviations; 0 if it tells
        nothing.
    criterion : numpy.ndarray
        Which answer it prefers: above 0 the second, below 0 the first.
    unbiased : numpy.ndarray
        The mean of both accuracies, in [0, 1], that it would have with no preference.
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
    is assumed, and cannot be tested with one threshold.

    Parameters
    ----------
    first, second : numpy.ndarray
        Of a task with two answers: the accuracy on examples of each class, above 0 and below 1. Of
        a mean over models or pairs of languages that differ, d′ comes out too small.

    Raises
    ------
    MixingError
        An accuracy that is not between 0 and 1, where d′ would be infinite.
    """
    first, second = np.asarray(first, float), np.asarray(second, float)
    for name, values in (("first", first), ("second", second)):
        if not ((values > 0) & (values < 1)).all():
            raise MixingError(
                f"an accuracy of the {name} class is not between 0 and 1, so that it has no normal "
                "quantile: leave it out, or divide per cent by 100"
            )
    hits, rejections = stats.norm.ppf(first), stats.norm.ppf(second)
    sensitivity = hits + rejections
    return Detection(sensitivity, (rejections - hits) / 2, stats.norm.cdf(sensitivity / 2))


def detected(table: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """`detection` of the mean over languages, of tables like `by_label`'s of two labels.

    A row per ``model`` and setting (within, across): ``first`` and ``second`` (the accuracies of
    both labels), ``d′``, ``criterion`` (above 0: prefers the second), ``mean of both`` and
    ``without preference`` (in [0, 1]). MixingError where one of them is 0 or 1.
    """
    own = table[(table["language"] == OVERALL) & (table["setting"] != SETTINGS[2])]
    found = own.pivot(index=["model", "setting"], columns="label", values="score")
    rows = own[["model", "setting"]].drop_duplicates()
    found = found.loc[pd.MultiIndex.from_frame(rows), [first, second]]
    told = detection(found[first].to_numpy(), found[second].to_numpy())
    found = found.assign(**{"d′": told.sensitivity, "criterion": told.criterion})
    found["mean of both"] = found[[first, second]].mean(axis=1)
    found["without preference"] = told.unbiased
    return found.rename_axis(columns=None)


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
    own = table[table["language"] == language]
    if own.empty:
        raise MixingError(f"the table has no language {language!r}")
    own = own.assign(said=as_points(own))
    found = own.pivot(index=list(index), columns="setting", values="said")
    rows = pd.MultiIndex.from_frame(own[list(index)].drop_duplicates())
    return found.loc[
        rows if len(index) > 1 else rows.get_level_values(0), list(own["setting"].unique())
    ]
