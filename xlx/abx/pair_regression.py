"""What a regression over pairs of languages hangs on: single pairs, single languages, the levels.

Transfer from source to target is regressed on LD and MD of the two (ABX paper, section 5.3). Three
things can make or turn round such a coefficient, and the paper looks at none of them: a pair far
from all others (`weightiest`), a language (`without_languages`), and that some languages are good
sources or easy targets for all, whatever lies between the two (`variants`: fixed effects).
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from xlx.core import statistics

#: The columns that name the languages of a pair.
ENDS = ("source", "target")


def weightiest(table: pd.DataFrame, outcome: str, predictors: Sequence[str]) -> pd.Series:
    """The pair of languages whose rows move the regression most.

    Of the two rows of each unordered pair `statistics.leverage` counts the larger.

    Returns
    -------
    Series
        ``pair`` (two languages, by name), ``leverage`` and ``cook`` of it, ``mean leverage`` of all
        rows and ``next cook``, the largest of another pair.
    """
    found = statistics.leverage(table, outcome, predictors)
    of_pair = found.groupby(_pairs(table)).max().sort_values("cook", ascending=False)
    return pd.Series(
        {
            "pair": of_pair.index[0],
            "leverage": of_pair["leverage"].iloc[0],
            "mean leverage": found["leverage"].mean(),
            "cook": of_pair["cook"].iloc[0],
            "next cook": of_pair["cook"].iloc[1],
        }
    )


def _pairs(table: pd.DataFrame) -> pd.Series:
    """Unordered pair of each row: "es-pt"."""
    names = ["-".join(sorted(pair)) for pair in zip(*(table[end] for end in ENDS), strict=True)]
    return pd.Series(names, index=table.index)


def variants(
    table: pd.DataFrame, outcome: str, predictors: Sequence[str], *, errors: str = "clustered"
) -> pd.DataFrame:
    """The regression as it is, without its `weightiest` pair, with fixed effects, with both.

    Parameters
    ----------
    table : DataFrame
        One row per ordered pair: ``source``, ``target``, `outcome`, `predictors`.
    errors : str
        A kind of `statistics.regression`, clustered by source and target.

    Returns
    -------
    DataFrame
        One row per variant and term: ``variant`` ("all pairs", "without the weightiest pair",
        "source and target effects", "effects, without the pair"), ``term``, ``coefficient``,
        ``low``, ``high``, ``p_value``, ``r_squared`` (of effects and predictors together), ``n``.
    """
    left = table[_pairs(table) != weightiest(table, outcome, predictors)["pair"]]
    kinds = {
        "all pairs": (table, ()),
        "without the weightiest pair": (left, ()),
        "source and target effects": (table, ENDS),
        "effects, without the pair": (left, ENDS),
    }
    rows = []
    for variant, (some, effects) in kinds.items():
        fit = statistics.regression(some, outcome, predictors, clusters=ENDS, effects=effects)
        found = fit.table[(fit.table["errors"] == errors) & fit.table["term"].isin(predictors)]
        rows.append(
            found[["term", "coefficient", "low", "high", "p_value"]].assign(
                variant=variant, r_squared=fit.r_squared, n=fit.n
            )
        )
    columns = ["variant", "term", "coefficient", "low", "high", "p_value", "r_squared", "n"]
    return pd.concat(rows, ignore_index=True)[columns]


def without_languages(table: pd.DataFrame, outcome: str, predictors: Sequence[str]) -> pd.DataFrame:
    """The coefficients without the pairs of one language: a row each, a column a predictor."""
    names = sorted(set(table[list(ENDS)].to_numpy().ravel()))
    found: dict[str, Mapping[str, float]] = {}
    for name in names:
        left = table[~table[list(ENDS)].eq(name).any(axis=1)]
        fitted = statistics.regression(left, outcome, predictors).table
        classical = fitted[fitted["errors"] == "classical"].set_index("term")
        found[name] = classical.loc[list(predictors), "coefficient"].to_dict()
    return pd.DataFrame.from_dict(found, orient="index").rename_axis("without")


def levels(table: pd.DataFrame, outcome: str) -> pd.Series:
    """The share of the variance of an outcome that sources and targets explain.

    ``source``, ``target`` (each alone) and ``both``: R² of intercepts by language.
    """
    sides = {"source": ENDS[:1], "target": ENDS[1:], "both": ENDS}
    shares = {label: statistics.explained(table, outcome, ends)[0] for label, ends in sides.items()}
    return pd.Series(shares, name="R²")


def rivals(
    table: pd.DataFrame,
    outcome: str,
    sets: Mapping[str, Sequence[str]],
    *,
    errors: str = "clustered",
) -> pd.DataFrame:
    """One outcome on several sets of predictors, without and with source and target effects.

    Returns one row per set, ``effects`` ("none", "source and target") and ``term``: ``predictors``
    (the set), ``coefficient``, ``p_value``, ``adjusted_r_squared``.
    """
    rows = []
    for label, terms in sets.items():
        for kind, effects in (("none", ()), ("source and target", ENDS)):
            fit = statistics.regression(table, outcome, terms, clusters=ENDS, effects=effects)
            found = fit.table[(fit.table["errors"] == errors) & fit.table["term"].isin(terms)]
            rows.append(
                found[["term", "coefficient", "p_value"]].assign(
                    predictors=label, effects=kind, adjusted_r_squared=fit.adjusted_r_squared
                )
            )
    columns = ["predictors", "effects", "term", "coefficient", "p_value", "adjusted_r_squared"]
    return pd.concat(rows, ignore_index=True)[columns]
