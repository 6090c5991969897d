"""What a regression over pairs of languages hangs on: single pairs, single languages, the levels.

Transfer from source to target is regressed on LD and MD of the two (ABX paper, section 5.3). Three
things can make or turn round such a coefficient, and the paper looks at none of them: a pair far
from all others (`heaviest_pairs`), a language (`leave_one_language_out`), and that some languages
are good sources or easy targets for all, whatever lies between the two (`variants`: fixed effects).
``groups`` is (model, task) → rows, one per ordered pair: ``source``, ``target``, ``accuracy`` and
predictors.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats
from scipy.optimize import brentq
from statsmodels.stats.multitest import multipletests

from xlx.core import statistics

Groups = Mapping[tuple[str, str], pd.DataFrame]

#: The columns that name the languages of a pair.
ENDS = ("source", "target")
LD_AND_MD = ["LD", "MD"]


def _pairs(table: pd.DataFrame) -> pd.Series:
    """Unordered pair of each row: "es-pt"."""
    names = ["-".join(sorted(pair)) for pair in zip(*(table[end] for end in ENDS), strict=True)]
    return pd.Series(names, index=table.index)


def _weights(table: pd.DataFrame) -> pd.DataFrame:
    """`statistics.leverage` of unordered pairs, the larger of their two rows; most Cook first."""
    weights = statistics.leverage(table, "accuracy", LD_AND_MD).groupby(_pairs(table)).max()
    return weights.sort_values("cook", ascending=False)


def heaviest_pairs(groups: Groups) -> pd.DataFrame:
    """The pair whose rows move the regression most, and R² of intercepts by language.

    One row a group: ``pair``, its ``leverage`` and ``cook``, ``mean leverage`` of all rows,
    ``next cook``, the largest of another pair; ``R² of source``, ``target`` (each alone), ``both``.
    """
    rows = {}
    for key, table in groups.items():
        weights = _weights(table)
        rows[key] = {
            "pair": weights.index[0],
            "leverage": weights["leverage"].iloc[0],
            "mean leverage": (1 + len(LD_AND_MD)) / len(table),
            "cook": weights["cook"].iloc[0],
            "next cook": weights["cook"].iloc[1],
        }
        for label, ends in {"source": ENDS[:1], "target": ENDS[1:], "both": ENDS}.items():
            rows[key][f"R² of {label}"] = statistics.explained(table, "accuracy", ends)[0]
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["model", "task"])


def _clustered(
    key: tuple[str, str],
    table: pd.DataFrame,
    terms: Sequence[str],
    effects: Sequence[str] = (),
    **labels: str,
) -> pd.DataFrame:
    """Coefficients with errors clustered by source and target, under their labels."""
    fit = statistics.regression(table, "accuracy", terms, clusters=ENDS, effects=effects)
    rows = fit.table[(fit.table["errors"] == "clustered") & fit.table["term"].isin(terms)]
    return rows[["term", "coefficient", "low", "high", "p_value"]].assign(
        model=key[0],
        task=key[1],
        **labels,
        r_squared=fit.r_squared,
        adjusted_r_squared=fit.adjusted_r_squared,
        n=fit.n,
    )


def variants(groups: Groups) -> pd.DataFrame:
    """The regression as it is, without its heaviest pair, with fixed effects, with both.

    One row per group, ``variant`` and ``term``: ``coefficient``, ``low``, ``high``, ``p_value``,
    ``r_squared`` (of effects and predictors together), ``n``.
    """
    tables = []
    for key, table in groups.items():
        left = table[_pairs(table) != _weights(table).index[0]]
        tables += [
            _clustered(key, table, LD_AND_MD, variant="all pairs"),
            _clustered(key, left, LD_AND_MD, variant="without the weightiest pair"),
            _clustered(key, table, LD_AND_MD, ENDS, variant="source and target effects"),
            _clustered(key, left, LD_AND_MD, ENDS, variant="effects, without the pair"),
        ]
    return pd.concat(tables, ignore_index=True)


def within_levels(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The table, columns as what is left of them when source and target have each a level.

    Residuals of least squares on an intercept for each source and each target. A regression on
    these has the coefficients of one with effects of both (Frisch and Waugh 1933), and languages of
    them can be exchanged.
    """
    names = table[list(ENDS)].astype(str)
    levels = pd.get_dummies(names, dtype=float).to_numpy()
    values = table[list(columns)].to_numpy(float)
    left = values - levels @ np.linalg.lstsq(levels, values, rcond=None)[0]
    return table.assign(**dict(zip(columns, left.T, strict=True)))


def exchanged(groups: Groups, **options: object) -> pd.DataFrame:
    """`statistics.permutation_regression` of all pairs, without and with levels.

    Of the kinds of error only this one keeps its level with so few languages. One row per group,
    ``variant`` (as in `variants`) and ``term``: ``coefficient``, ``p_value``. ``options`` of the
    permutation; ValueError for a pair that is missing.
    """
    tables = []
    for (model, task), table in groups.items():
        within = within_levels(table, ["accuracy", *LD_AND_MD])
        for variant, rows in (("all pairs", table), ("source and target effects", within)):
            permuted = statistics.permutation_regression(rows, "accuracy", LD_AND_MD, **options)
            tables.append(permuted.assign(model=model, task=task, variant=variant))
    return pd.concat(tables, ignore_index=True)


def holm(p_values: pd.Series) -> pd.Series:
    """p-values that hold for all of them together (Holm 1979)."""
    return pd.Series(multipletests(p_values, method="holm")[1], index=p_values.index)


#: How often an effect is found that is called detectable.
SURE = 0.8


def detectable(error: float, df: float) -> float:
    """The smallest effect that a two-sided t test finds in `SURE` of cases (p < 0.05)."""
    highest = 2 * stats.t.ppf([(1 + statistics.LEVEL) / 2, SURE], df).sum()
    smallest = brentq(lambda x: statistics.power(x, 1, df) - SURE, 0, highest)
    return float(smallest * error)


def _logit(scores: pd.Series) -> pd.Series:
    if not scores.between(0, 1, inclusive="neither").all():
        raise ValueError(f"{scores.name} of 0 or 1 has no logit: leave out its pairs")
    return np.log(scores / (1 - scores))


#: What predictors are turned into: LD of small models sits just below 1, where a step is not the
#: same step, a rank takes any shape of line, and standard deviations make models comparable.
SCALES: dict[str, Callable[[pd.Series], pd.Series]] = {
    "shares": lambda scores: scores,
    "logits": _logit,
    "ranks": lambda scores: scores.rank() / len(scores),
    "standard deviations": lambda scores: (scores - scores.mean()) / scores.std(),
}


def scaled(groups: Groups, effects: Sequence[str] = ENDS) -> pd.DataFrame:
    """The regression on LD and MD on each of `SCALES`, with effects of source and target.

    One row per group, ``scale`` and ``term``: ``coefficient``, ``low``, ``high``, ``p_value``,
    ``p_holm``, which holds for all rows of its scale together (Holm 1979). In standard deviations
    the accuracy is, too. ValueError for logits of a score of 0 or 1.
    """
    tables = []
    for scale, turned in SCALES.items():
        columns = [*LD_AND_MD, *(["accuracy"] if scale == "standard deviations" else [])]
        parts = [
            _clustered(key, table.assign(**{name: turned(table[name]) for name in columns}),
                       LD_AND_MD, effects, scale=scale)
            for key, table in groups.items()
        ]  # fmt: skip
        rows = pd.concat(parts, ignore_index=True)
        tables.append(rows.assign(p_holm=holm(rows["p_value"])))
    return pd.concat(tables, ignore_index=True)


def rivals(groups: Groups, sets: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Several sets of predictors, without and with source and target effects.

    One row per group, set (``predictors``), ``effects`` and ``term``: ``coefficient``, ``p_value``,
    ``adjusted_r_squared``.
    """
    tables = [
        _clustered(key, table, terms, effects, predictors=label, effects_of=kind)
        for key, table in groups.items()
        for label, terms in sets.items()
        for kind, effects in (("none", ()), ("source and target", ENDS))
    ]
    return pd.concat(tables, ignore_index=True).rename(columns={"effects_of": "effects"})


def leave_one_language_out(groups: Groups) -> pd.DataFrame:
    """The lowest and highest coefficient without the pairs of one language, and without which."""
    tables = {}
    for key, table in groups.items():
        coefficients = {}
        for name in sorted(set(table[list(ENDS)].to_numpy().ravel())):
            left = table[~table[list(ENDS)].eq(name).any(axis=1)]
            fit = statistics.regression(left, "accuracy", LD_AND_MD).table
            coefficients[name] = fit.drop_duplicates("term").set_index("term")["coefficient"]
        without = pd.DataFrame(coefficients).T[LD_AND_MD].rename_axis(columns=None)
        tables[key] = without.agg(["idxmin", "min", "idxmax", "max"])
    return pd.concat(tables, names=["model", "task"]).unstack().infer_objects()
