"""Probes regressed on LD and MD (ABX paper, sections 5.2 and 5.3): what abx-5 and abx-6 share.

A *reading* is a row of a specification: what is done to the rows, which predictors, whose levels;
`fitted` regresses by each. ``groups`` is (model, task) → rows, one per language or per ordered pair
(``source``, ``target``), with ``accuracy`` and predictors.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy import stats
from scipy.optimize import brentq
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import ttest_power

from shared.abx_tables import pivoted
from xlx.measures import regressions, statistics
from xlx.plots.panels import across, order, parts, rows_of
from xlx.plots.primitives import curves, lanes, scatter
from xlx.plots.style import BLUE, MODELS, VERMILION, ZERO, look, looks, styled
from xlx.results import paths

Groups = Mapping[tuple[str, str], pd.DataFrame]
#: The columns that name the languages of a pair.
ENDS = ("source", "target")
LD_AND_MD = ["LD", "MD"]


@dataclass(frozen=True)
class Reading:
    """One way to regress accuracy: the rows that are taken, on what, and whose levels go out."""

    rows: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table
    terms: Sequence[str] = tuple(LD_AND_MD)
    effects: Sequence[str] = ()


def instead(**columns: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Rows in which another column stands for a term, or for accuracy."""
    return lambda rows: rows.assign(**{name: rows[other] for name, other in columns.items()})


def turned(scale: str, *columns: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Rows with some columns on one of `SCALES`."""
    return lambda rows: rows.assign(**{name: SCALES[scale](rows[name]) for name in columns})


def fitted(
    groups: Groups, readings: Mapping[str, Reading], *, clusters: Sequence[str] = ENDS,
    errors: str = "clustered",
) -> pd.DataFrame:  # fmt: skip
    """Coefficients of each group by each reading, with one kind of errors.

    One row per group, ``variant`` (the reading) and ``term``: ``coefficient``, ``low``, ``high``,
    ``p_value``, ``R2`` (of effects and predictors together), ``adjusted R2``, ``n``. A reading in
    which accuracy or a predictor is the same in all rows is left out.
    """
    tables = []
    for (model, task), table in groups.items():
        for label, reading in readings.items():
            rows = reading.rows(table)
            if (rows[["accuracy", *reading.terms]].nunique() == 1).any():
                continue
            fit = regressions.regression(
                rows, "accuracy", reading.terms, clusters=clusters, effects=reading.effects
            )
            own = fit.table[(fit.table["errors"] == errors) & fit.table["term"].isin(reading.terms)]
            shares = {"R2": fit.r_squared, "adjusted R2": fit.adjusted_r_squared, "n": fit.n}
            tables.append(own.assign(model=model, task=task, variant=label, **shares))
    return pd.concat(tables, ignore_index=True)


def coefficient_table(fits: pd.DataFrame, *values: str) -> pd.DataFrame:
    """`fitted`: a row a task, model and reading, with R²; of LD and MD the ``values``."""
    fits = fits[fits["term"].isin(LD_AND_MD)].round({"R2": 2})
    return pivoted(fits, ["task", "model", "variant", "R2"], "term", values)


def explained(table: pd.DataFrame, outcome: str, names: Sequence[str]) -> tuple[float, float]:
    """The share of the variance of an outcome that lies between the groups of some columns.

    R² of an intercept for each name of each column, and the adjusted R², from which is taken what
    as many groups drawn at random would explain: NaN where every row is a group. One group explains
    nothing. ValueError as `regressions.regression`.
    """
    groups = pd.get_dummies(table[list(names)].astype(str), drop_first=True, dtype=float)
    if groups.shape[1] in (0, len(table) - 1):
        return (0.0, 0.0) if groups.empty else (1.0, np.nan)
    fit = regressions.least_squares(
        groups.assign(**{outcome: table[outcome]}), outcome, list(groups)
    )
    return float(fit.rsquared), float(fit.rsquared_adj)


def holm(p_values: pd.Series) -> pd.Series:
    """p-values that hold for all of them together (Holm 1979)."""
    return pd.Series(multipletests(p_values, method="holm")[1], index=p_values.index)


#: How often an effect is found that is called detectable.
SURE = 0.8


def power(effect: float, df: float) -> float:
    """How often a two-sided t test (p < 0.05) finds an effect of so many standard errors."""
    return float(ttest_power(effect, 1, 1 - statistics.LEVEL, df))


def detectable(error: float, df: float) -> float:
    """The smallest effect that a two-sided t test finds in `SURE` of cases (p < 0.05)."""
    highest = 2 * stats.t.ppf([(1 + statistics.LEVEL) / 2, SURE], df).sum()
    smallest = brentq(lambda x: power(x, df) - SURE, 0, highest)
    return float(smallest * error)


def beta(coefficient: float, rows: pd.DataFrame, term: str) -> float:
    """A coefficient in standard deviations of accuracy and of its term."""
    return coefficient * rows[term].std() / rows["accuracy"].std()


def _logit(scores: pd.Series) -> pd.Series:
    if not scores.between(0, 1, inclusive="neither").all():
        raise ValueError(f"{scores.name} of 0 or 1 has no logit: leave out its pairs")
    return np.log(scores / (1 - scores))


#: What predictors are turned into: LD of small models sits just below 1, where a step is not the
#: same step, a rank takes any shape of line, and standard deviations make models comparable.
SCALES: dict[str, Callable[[pd.Series], pd.Series]] = {
    "logits": _logit,
    "ranks": lambda scores: scores.rank() / len(scores),
    "standard deviations": lambda scores: (scores - scores.mean()) / scores.std(),
}


def printed_regressions(setting: str) -> pd.DataFrame:
    """Table 1 as printed, "probing_monolingual" or "cross_lingual": a row a task and checkpoint.

    Columns (``value`` or ``p_value``, which is text; "R2", "LD" or "MD").
    """
    printed = pd.read_csv(paths.PUBLISHED / "abx" / "table1_regression.csv")
    printed = printed[printed["setting"] == setting].fillna({"predictor": "R2"})
    keys = ["task", "checkpoint"]
    return printed.pivot(index=keys, columns="predictor", values=["value", "p_value"])


def under_printed(ours: pd.DataFrame, setting: str) -> pd.DataFrame:
    """Printed coefficients, which have no interval, and ours below, task by task.

    ``ours`` has ``row`` ("POS, Last"), ``task``, ``source``, ``predictor``, ``coefficient``.
    """
    printed = printed_regressions(setting)["value"][LD_AND_MD].astype(float)
    printed = printed.stack().rename("coefficient").reset_index().assign(source="printed")
    what = "all pairs" if setting == "cross_lingual" else printed["checkpoint"]
    printed["row"] = printed["task"] + ", " + what
    tasks = list(ours["task"].unique())
    both = pd.concat([printed[printed["task"].isin(tasks)], ours], ignore_index=True)
    return both.sort_values("task", key=lambda names: names.map(tasks.index), kind="stable")


def fitted_lines(table: pd.DataFrame, **options: object) -> pd.DataFrame:
    """`regressions.fitted_line` of accuracy on LD, by model and task."""
    return pd.concat(
        regressions.fitted_line(rows, "LD", "accuracy", **options).assign(model=model, task=task)
        for (model, task), rows in table.groupby(["model", "task"], sort=False)
    )


# --- choosing by a score --------------------------------------------------------------------------


@dataclass(frozen=True)
class Selection:
    """What rules choose: ``table``, a row per rule and language; ``summary``, per comparison."""

    table: pd.DataFrame
    summary: pd.DataFrame


def wilcoxon(differences: Sequence[float] | np.ndarray) -> tuple[float, float, float, float]:
    """Test that differences are symmetric about zero: two-sided p-value, centre, its interval.

    The p-value is exact, also with ties: all 2ⁿ ways to sign the ranks are counted. Differences of
    zero are left out of it, as Wilcoxon did and scipy does; if all are zero, it is 1. Differences
    that agree to 12 decimals count as tied. The centre (Hodges-Lehmann) is the median of all means
    of two differences, of one with itself too; its 95 % interval inverts the exact test of untied
    differences, zeros among them, and with too few differences is infinite.

    ValueError for no differences, or one that is missing or infinite.
    """
    values = np.asarray(differences, float).ravel()
    if not len(values) or not np.isfinite(values).all():
        raise ValueError(
            f"a signed-rank test needs numbers: of {len(values)} differences "
            f"{(~np.isfinite(values)).sum()} are missing or infinite"
        )
    values = values.round(12)
    kept = values[values != 0]
    ranks = stats.rankdata(np.abs(kept))
    statistic = ranks[kept > 0].sum()
    mass = _signed_ranks(np.rint(2 * ranks).astype(int))  # ranks of ties are halves
    half_steps = round(2 * statistic)
    tails = mass[: half_steps + 1].sum(), mass[half_steps:].sum()
    p_value = min(1.0, 2 * min(tails))
    walsh = np.sort(np.add.outer(values, values)[np.triu_indices(len(values))] / 2)
    below = np.cumsum(_signed_ranks(np.arange(1, len(values) + 1)))
    left_out = int(np.searchsorted(below, (1 - statistics.LEVEL) / 2, side="right"))
    low, high = (walsh[left_out - 1], walsh[-left_out]) if left_out else (-np.inf, np.inf)
    return p_value, float(np.median(walsh)), float(low), float(high)


def _signed_ranks(ranks: np.ndarray) -> np.ndarray:
    """Probability of each sum of the ranks, whole numbers, of which a coin picks some."""
    mass = np.zeros(ranks.sum() + 1)
    mass[0] = 1
    for rank in ranks:
        mass[rank:] = (mass[rank:] + mass[: len(mass) - rank]) / 2
        mass[:rank] /= 2
    return mass


def improvement(deltas: np.ndarray) -> dict[str, float]:
    """How often and how much one rule does better than another, and whether by more than chance.

    Of differences: how many are above 0 (``closer``), ``equal``, below (``further``); ``mean`` and
    ``sd`` (n - 1); ``centre``, ``low``, ``high`` (Hodges-Lehmann) and ``p_value`` of
    `wilcoxon`.
    """
    p_value, *around = wilcoxon(deltas)
    signs = np.sign(deltas.round(12))
    counts = {name: int((signs == x).sum()) for name, x in
              (("closer", 1), ("equal", 0), ("further", -1))}  # fmt: skip
    spread = {"mean": deltas.round(12).mean(), "sd": deltas.round(12).std(ddof=1)}
    around = dict(zip(("centre", "low", "high"), around, strict=True))
    return counts | spread | around | {"p_value": p_value}


# --- figures --------------------------------------------------------------------------------------


@styled
def learning_scatter(
    table: pd.DataFrame, lines: pd.DataFrame, statistics: Mapping[tuple[str, str], str], *,
    xlabel: str = "LD of a language", ylabel: str = "accuracy", label: str | None = "language",
) -> Figure:  # fmt: skip
    """Accuracy against a score with a fitted line and its band (Figures 11 and 15).

    ``table`` has ``LD``, ``accuracy`` and ``label``, which names a point; the points furthest above
    and below the line are named (None: the pairs with the lowest LD). ``lines`` has ``x``, ``y``,
    ``low``, ``high``; ``statistics`` a text for each (model, task).
    """
    table = table.reset_index(drop=True)
    named = []
    for (model, task), part in parts(table, "model", "task"):
        line = rows_of(lines, model=model, task=task).sort_values("x")
        off = part["LD"]
        if label:
            off = part["accuracy"] - np.interp(part["LD"], line["x"], line["y"])
        named += [*off.nsmallest(2).index, *(off.nlargest(2).index if label else ())]
    names = table[label] if label else table["source"] + "-" + table["target"]
    table["written"] = names.where(table.index.isin(named), "")
    options = {"panel": ("model", "task")}
    on = scatter(
        table, x="LD", y="accuracy", looks={None: look(BLUE, "o")}, written="written", width=2.7,
        size=9, alpha=0.7 if label else 0.25, sharex="row", sharey="col", **options,
    )  # fmt: skip
    curves(lines, x="x", value="y", looks={None: look(VERMILION, "")}, on=on, **options)
    on.titles(lambda key: f"{key[0]}: {key[1]}\n{statistics[key]}")
    return on.done(xlabel, ylabel)


@styled
def coefficients(table: pd.DataFrame) -> Figure:
    """Regression coefficients, printed and ours, a row an analysis, a panel a predictor (Table 1).

    ``table`` has ``row`` (what the analysis is), ``source`` ("printed" or a model), ``predictor``,
    ``coefficient``, ``low``, ``high`` (missing where none is printed) and ``wide_low``,
    ``wide_high`` (of the more careful errors, drawn thin behind).
    """
    table = pd.concat([rows_of(table, predictor=name) for name in LD_AND_MD])
    on = lanes(
        table, item="row", value="coefficient", series="source", panel="predictor", width=3.3,
        looks=looks(order(table, "source"), MODELS), wide=("wide_low", "wide_high"), lane=0.12,
        sharex=False, linewidth=2.2, capsize=0,
    )  # fmt: skip
    across(on, 0, **ZERO | {"linestyle": "-"})
    on.titles(lambda name: f"coefficient of {name}")
    widths = {"interval": 2.2, "interval with the more careful errors": 0.7}
    grey = [Line2D([], [], color="0.3", linewidth=w, label=name) for name, w in widths.items()]
    return on.done("points of accuracy (%) for 0.01 more of the predictor", handles=grey)
