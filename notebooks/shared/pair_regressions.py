"""Probes regressed on LD and MD (ABX paper, sections 5.2 and 5.3): of abx-3 and others.

A *reading* is a row of a specification: what is done to the rows, and which predictors. ``groups``
is (model, task) → rows, one per language or per ordered pair
(``source``, ``target``), with ``accuracy`` and predictors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from printed.evaluator import rows_by
from shared import regressions
from shared.shown import asking
from xlx.measures import statistics
from xlx.plots.panels import across, number, order, parts, rows_of
from xlx.plots.primitives import curves, lanes, scatter
from xlx.plots.style import BLACK, NAMES, ZERO, look, looks, styled
from xlx.results import paths
from xlx.results.deferred import deferred

optimize = deferred("scipy.optimize")
stats = deferred("scipy.stats")
multitest = deferred("statsmodels.stats.multitest")
stats_power = deferred("statsmodels.stats.power")

Groups = Mapping[tuple[str, str], pd.DataFrame]
#: The columns that name the languages of a pair.
ENDS = ("source", "target")
LD_AND_MD = ["LD", "MD"]


@dataclass(frozen=True)
class Reading:
    """One way to regress accuracy: what is done to the rows, and on what."""

    rows: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table
    terms: Sequence[str] = tuple(LD_AND_MD)


def instead(**columns: str) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Rows in which another column stands for a term, or for accuracy."""
    return lambda rows: rows.assign(**{name: rows[other] for name, other in columns.items()})


def cross_classified(
    rows: pd.DataFrame, terms: Sequence[str], *, levels: Sequence[str] = ENDS
) -> pd.DataFrame:
    """Accuracy over ordered pairs of languages, with levels of source, of target and of the pair.

        accuracy(s → t) = source_s + target_t + Σ β · term(s, t) + pair_{s, t} + ε

    Source and target (``levels``) have fixed effects: a language far from all others is often a
    hard target too, and random effects would count that for LD. The unordered pair, whose two
    directions have the same LD, has a random one. By REML, at which the ratio of the variances of
    pair and ε is found; Student's t with as many degrees of freedom as languages but one (our
    choice; in simulations 97 % are held). One row per term: ``term``, ``coefficient``, ``error``,
    ``low``, ``high``, ``p_value``, ``df``. ValueError as `regressions.least_squares`.
    """
    fit = regressions.least_squares(rows, "accuracy", terms, levels)
    n, k = fit.model.exog.shape
    columns = np.column_stack([fit.model.exog, fit.model.endog])
    pair = np.array(["-".join(sorted(ends)) for ends in rows[list(ENDS)].to_numpy()])
    _, of_row, sizes = np.unique(pair, return_inverse=True, return_counts=True)
    # I + λJ within a pair of m rows: its mean has the variance 1 + mλ, what is left of it 1
    means = np.zeros((len(sizes), k + 1))
    np.add.at(means, of_row, columns / sizes[of_row, None])
    left = columns - means[of_row]
    within = left.T @ left
    m, n_pairs = np.unique(sizes, return_counts=True)
    between = [size * means[sizes == size].T @ means[sizes == size] for size in m]

    def solved(ratio: float) -> tuple[float, np.ndarray]:
        variances = 1 + np.exp(ratio) * m
        weighted = (x / variance for x, variance in zip(between, variances, strict=True))
        r = np.linalg.cholesky(sum(weighted, within)).T
        logs = np.log(np.diag(r))
        return n_pairs @ np.log(variances) / 2 + logs[:k].sum() + (n - k) * logs[k], r

    r = solved(
        optimize.minimize_scalar(lambda x: solved(x)[0], bounds=(-9, 9), method="bounded").x
    )[1]
    inverse = np.linalg.inv(r[:k, :k])
    asked = slice(1, 1 + len(terms))
    coefficient = (inverse @ r[:k, k])[asked]
    error = np.sqrt((inverse**2).sum(axis=1)[asked] * r[k, k] ** 2 / (n - k))
    df = len(set(rows["source"]) | set(rows["target"])) - 1
    return regressions.student(
        pd.DataFrame({"term": list(terms), "coefficient": coefficient, "error": error, "df": df})
    )


def held_out(
    table: pd.DataFrame, outcome: str, terms: Sequence[str], left_out: Sequence[np.ndarray]
) -> float:
    """R² of parts of a table (masks of rows), each from a fit to the rest: 1 - errors / spread."""
    predictors = table[list(terms)].to_numpy(dtype=float)
    return float(unseen_share(predictors, table[outcome].to_numpy(dtype=float), left_out))


def unseen_share(
    predictors: np.ndarray, outcomes: np.ndarray, left_out: Sequence[np.ndarray]
) -> np.ndarray:
    """`held_out` of arrays ``(n, predictors)`` and ``(n,)``, or ``(n, k)`` of k outcomes."""
    exog = np.column_stack([np.ones(len(predictors)), predictors])
    error = spread = 0.0
    for inside in left_out:
        known, there = outcomes[~inside], outcomes[inside]
        params = np.linalg.lstsq(exog[~inside], known, rcond=None)[0]
        error = error + ((there - exog[inside] @ params) ** 2).sum(axis=0)
        spread = spread + ((there - known.mean(axis=0)) ** 2).sum(axis=0)
    return 1 - error / spread


def holm(p_values: pd.Series) -> pd.Series:
    """p-values that hold for all of them together (Holm 1979)."""
    return pd.Series(multitest.multipletests(p_values, method="holm")[1], index=p_values.index)


def power(effect: float, df: float) -> float:
    """How often a two-sided t test (p < 0.05) finds an effect of so many standard errors."""
    return float(stats_power.ttest_power(effect, 1, 1 - statistics.LEVEL, df))


def printed_regressions(setting: str) -> pd.DataFrame:
    """Table 1 printed, "probing_monolingual" or "cross_lingual": one row per task and checkpoint.

    Columns (``value`` or ``p_value``, which is text; "R2", "LD" or "MD").
    """
    printed = pd.read_csv(paths.PUBLISHED / "abx" / "table1_regression.csv")
    printed = printed[printed["setting"] == setting].fillna({"predictor": "R2"})
    keys = ["task", "checkpoint"]
    return printed.pivot(index=keys, columns="predictor", values=["value", "p_value"])


def beside_printed(ours: pd.DataFrame, setting: str) -> pd.DataFrame:
    """Table 1 printed and ours, as text: one row per task, checkpoint and source.

    ``ours`` has one row per ``task``, ``checkpoint``, ``model`` and ``term`` (LD, MD): the
    ``coefficient`` with ``error``, ``df``, ``low, high``, ``p_value`` and ``Holm``. ``power``: how
    often the printed coefficient of LD would be seen.
    """
    printed, rows = printed_regressions(setting), {}
    keys = ["task", "checkpoint", "model"]
    for (task, checkpoint, model), part in ours.groupby(keys, sort=False):
        above = rows.setdefault((task, checkpoint, "printed"), {})
        row = rows.setdefault((task, checkpoint, model), {})
        cells = printed.loc[(task, checkpoint)]
        for fit in part.to_dict("records"):
            term = fit["term"]
            value, low, high = (number(fit[name]) for name in ("coefficient", "low", "high"))
            above |= {f"{term} (95 %)": number(float(cells["value", term]))}
            above |= {f"{term}, p": cells["p_value", term]}
            row |= {f"{term} (95 %)": f"{value} ({low} to {high})"}
            row |= {f"{term}, p": f"{fit['p_value']:.3f}", f"{term}, Holm p": f"{fit['Holm']:.3f}"}
            if term == "LD":
                row["power"] = number(power(float(cells["value", term]) / fit["error"], fit["df"]))
    return rows_by(rows, "task", "checkpoint", "source")[list(row)].fillna("")


#: What rows of Table 1 are of.
CHECKPOINTS = {"Avg": "mean of checkpoints", "Last": "last checkpoint"}


def under_printed(
    ours: pd.DataFrame, setting: str, named: Mapping[str, str] = CHECKPOINTS
) -> pd.DataFrame:
    """Printed coefficients, which have no interval, and ours below, task by task.

    ``ours`` has ``row`` ("POS, last checkpoint"), ``task``, ``model``, ``term``, ``coefficient``;
    ``named`` says what printed rows are called.
    """
    printed = printed_regressions(setting)["value"][LD_AND_MD].astype(float)
    printed = printed.rename_axis(columns="term").stack().rename("coefficient").reset_index()
    printed["row"] = printed["task"] + ", " + printed["checkpoint"].replace(named)
    tasks = list(ours["task"].unique())
    printed = printed[printed["task"].isin(tasks)].assign(model="printed")
    both = pd.concat([printed, ours], ignore_index=True)
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


def improvement(deltas: np.ndarray) -> dict[str, float]:
    """How often and how much one rule does better than another, over languages.

    Of differences: how many are above 0 (``closer``), ``equal``, below (``further``); their
    ``mean``, its 95 % interval ``low, high`` (Student), its ``p_value`` and that of Wilcoxon's
    signed ranks (``Wilcoxon p``), as in Appendix H.
    """
    signs = np.sign(deltas.round(12))
    counts = {
        name: int((signs == x).sum()) for name, x in (("closer", 1), ("equal", 0), ("further", -1))
    }
    test = stats.ttest_1samp(deltas, 0) if signs.any() else None
    ends = test.confidence_interval() if test else (0.0, 0.0)
    around = {"mean": deltas.mean(), "low": ends[0], "high": ends[1]}
    p_values = (test.pvalue, stats.wilcoxon(deltas).pvalue) if test else (1.0, 1.0)
    return counts | around | dict(zip(("p_value", "Wilcoxon p"), p_values, strict=True))


def improvements(table: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """`improvement` of the differences in ``delta``, a row for each value of ``keys``."""
    groups = table.groupby(list(keys), sort=False)["delta"]
    return rows_by({key: improvement(deltas.to_numpy()) for key, deltas in groups}, *keys)


# --- figures --------------------------------------------------------------------------------------

#: What is regressed, as an axis says it.
WORDS = {"POS": "parts of speech", "NER": "names", "NLI": "inference"}
REGRESSED = {"above": "accuracy − commonest label", "f1": "F1 of entities", "accuracy": "accuracy"}


def in_words(row: str) -> str:
    """ "POS, last checkpoint" as "parts of speech, last checkpoint"."""
    task, *rest = row.split(", ")
    return ", ".join([WORDS.get(task, task), *rest])


@styled
def learning_scatter(
    table: pd.DataFrame,
    lines: pd.DataFrame,
    statistics: Mapping[tuple[str, str], str],
    measures: Mapping[str, str],
    question: str,
    xlabel: str = "LD of a language",
    label: str | None = "language",
) -> Figure:
    """Accuracy against a score with a fitted line and its band (Figures 11 and 15).

    ``table`` has ``LD``, ``accuracy`` and ``label``, which names a point; the points furthest above
    and below the line are named (None: the pairs with the lowest LD). ``lines`` has ``x``, ``y``,
    ``low``, ``high``; ``statistics`` a text for each (model, task); ``measures`` as of `regressed`.
    """
    table = table.reset_index(drop=True)
    named = []
    for (model, task), part in parts(table, "model", "task"):
        line = rows_of(lines, model=model, task=task).sort_values("x")
        off = part["accuracy"] - np.interp(part["LD"], line["x"], line["y"])
        named += [*off.nsmallest(2).index, *off.nlargest(2).index]
    if label:
        table["written"] = table[label].where(table.index.isin(named), "")
    on = scatter(
        table,
        "LD",
        "accuracy",
        row="model",
        col="task",
        looks=look("0.4", "o"),
        sharex="row",
        sharey="col",
        width=2.7,
        size=9,
        alpha=0.7 if label else 0.25,
    )
    curves(lines, "x", "y", looks=look(BLACK, ""), on=on)
    on.titles(lambda key: f"{key[0]}: {WORDS[key[1]]}\n{statistics[key]}")
    for (_, task), axes in on.axes.items():
        axes.set_ylabel(REGRESSED[measures.get(task, "accuracy")], fontsize=8)
        axes.locator_params(axis="x", nbins=5)
    return asking(question, on.done(xlabel))


@styled
def coefficients(table: pd.DataFrame, question: str) -> Figure:
    """Coefficients, printed and ours, one row per analysis, one panel per predictor (Table 1).

    ``table`` has ``row`` (what the analysis is), ``model`` (or "printed"), ``term``,
    ``coefficient``, ``low``, ``high`` (missing where none is printed).
    """
    table = pd.concat([rows_of(table, term=name) for name in LD_AND_MD])
    table = table[table["row"].isin(table.loc[table["model"] != "printed", "row"])]
    shown = {name: x | {"linewidth": 1.5} for name, x in looks(order(table, "model")).items()}
    labels = {"printed": "the paper's (no interval)"}
    on = lanes(
        table,
        "coefficient",
        "row",
        hue="model",
        col="term",
        width=3.3,
        looks=shown,
        lane=0.12,
        sharex=False,
        labels=labels,
        names=in_words,
    )
    across(on, 0, **ZERO)
    on.titles(lambda name: f"for 0.01 more {NAMES[name]}")
    for axes in on.axes.values():
        axes.set_xlim(-12, 12)  # one interval of NER is four times as wide
    figure = on.done("points of the score (right: better; an interval at the edge goes on)")
    return asking(question, figure)


def with_language(table: pd.DataFrame) -> list[np.ndarray]:
    """For each language, which pairs have it."""
    codes = table["source"].unique()
    return [table[["source", "target"]].eq(x).any(axis=1).to_numpy() for x in codes]
