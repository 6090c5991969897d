"""The drop in the printed numbers of the within/across paper: by task, part, script and control."""

from collections.abc import Callable

import numpy as np
import pandas as pd

from xlx.mixing.published import TABLE_OF, PrintedScores
from xlx.mixing.within_across import within
from xlx.printed import PRINTED_SLACK

_CONTROLS = ("Table 7", "Table 14")
_SCRIPTS = {"Latin": ["en", "es", "de", "fr"], "zh, ja, ko": ["zh", "ja", "ko"]}


def below_f1(p: PrintedScores) -> pd.DataFrame:
    """Exact match below F1, by row and language."""
    f1, exact = (p.rows[name].droplevel("label_class") for name in ("Table 3", "Table 8"))
    return f1 - exact


def nli_drops(p: PrintedScores) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Language by model on XNLI: within, and within less across."""
    start = pd.DataFrame({model: p.scores["NLI", model].loc["within"] for model in p.models})
    return start, start - pd.DataFrame({m: p.scores["NLI", m].loc["across"] for m in p.models})


def drop_table(p: PrintedScores) -> pd.DataFrame:
    """Drops by quantity and model: points, per cent of within, by the printed averages."""
    rows = {}
    quantities = dict(zip(TABLE_OF.values(), ("NLI", "PI", "QA F1"), strict=True))
    for name, quantity in (quantities | {"Table 8": "QA EM"}).items():
        for model in p.models:
            table = p.of_model(name, model)
            average = p.tables[name]["avg"].xs((model, "all"), level=["model", "label_class"])
            average = average.droplevel("task")
            lost, start = table.loc["within"] - table.loc["across"], table.loc["within"]
            halved = f"{(100 * lost / start > 50).sum()} of {len(lost)}"
            by_average = 100 * (1 - average["across"] / average["within"])
            relative = 100 * lost.mean() / start.mean()
            rows[quantity, model] = (lost.mean(), relative, by_average, halved)
    columns = ["points", "per cent", "by printed averages", "half lost in"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    table.index = pd.MultiIndex.from_tuples(table.index, names=["quantity", "model"])
    return table


def _by_grid(p: PrintedScores, row: Callable[[pd.DataFrame], dict]) -> pd.DataFrame:
    """A row of a table for each grid: ``row`` of its cells."""
    index = pd.MultiIndex.from_tuples(p.grids, names=["task", "model"])
    return pd.DataFrame([row(cells) for cells in p.grids.values()], index)


def explained_by_sides(p: PrintedScores) -> pd.DataFrame:
    """Variance off the diagonal that the languages of each part explain, and that swapping turns.

    Least squares of s_ab on a term for each language in each place; the odd part is
    (s_ab - s_ba) / 2.
    """

    def row(cells: pd.DataFrame) -> dict[str, float]:
        n, values = len(cells), cells.to_numpy()
        off = np.nonzero(~np.eye(n, dtype=bool))
        score, odd = values[off], (values - values.T)[off] / 2
        designs = [np.eye(n)[side] for side in off]
        designs.append(np.hstack(designs))
        fits = [design @ np.linalg.lstsq(design, score, rcond=None)[0] for design in designs]
        explained = [1 - (score - fit).var() / score.var() for fit in fits]
        return dict(zip(("part 1", "part 2", "both"), explained, strict=True)) | {
            "odd part": (odd**2).sum() / ((score - score.mean()) ** 2).sum(),
            "largest swap, points": 2 * np.abs(odd).max(),
        }

    return _by_grid(p, row)


def lost_between_scripts(p: PrintedScores) -> pd.DataFrame:
    """Of PAWS-X: mean of within of both languages less the cell, by scripts of the two."""
    rows = {}
    latin, cjk = _SCRIPTS.values()
    for model in p.models:
        cells = p.grids["PI", model]
        start = within(cells)
        lost = ((start[:, None] + start) / 2 - cells).mask(np.eye(len(cells), dtype=bool))
        rows[model] = {name: np.nanmean(lost.loc[codes, codes]) for name, codes in _SCRIPTS.items()}
        rows[model]["mixed"] = np.mean([lost.loc[latin, cjk], lost.loc[cjk, latin].T])
    return pd.DataFrame(rows).T


def odd_correlations(p: PrintedScores, task: str) -> pd.DataFrame:
    """Correlations between models of what swapping the languages turns round."""
    order = p.grids[task, "mBERT"].index
    upper, odd = np.triu_indices(len(order), 1), {}
    for model in p.models:
        values = p.grids[task, model].loc[order, order].to_numpy()
        odd[model] = (values - values.T)[upper]
    return pd.DataFrame(odd).corr()


def not_below_both(p: PrintedScores) -> pd.DataFrame:
    """Cells as high as within of one of their languages, and what English does on either side."""

    def row(cells: pd.DataFrame) -> dict[str, float]:
        start, off = within(cells), ~np.eye(len(cells), dtype=bool)
        high = (cells >= np.minimum(start[:, None], start)) & off
        return {
            "cells": int(off.sum()),
            "not below both": int(high.to_numpy().sum()),
            "of them en second": int(high["en"].sum()),
            "of them en first": int(high.loc["en"].sum()),
            "en second, less within": (cells["en"] - start).drop("en").mean(),
            "en first, less within": (cells.loc["en"] - start).drop("en").mean(),
        }

    return _by_grid(p, row)


# --- control tasks --------------------------------------------------------------------------------


def _controls(p: PrintedScores) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables 1 to 3 and 7 and 14, alike: (model, task, setting) by language."""
    control = pd.concat([p.rows[name] for name in _CONTROLS]).droplevel("label_class")
    original = pd.concat([p.rows[name] for name in TABLE_OF.values()]).droplevel("label_class")
    return original.loc[control.index], control


def control_losses(p: PrintedScores) -> pd.DataFrame:
    """What shuffled words cost, by model, task and setting."""
    original, control = _controls(p)
    lost = original - control  # languages that a task lacks are missing in both
    columns = {
        "original": original.mean(axis=1),
        "shuffled": control.mean(axis=1),
        "points": lost.mean(axis=1),
        "per cent": 100 * lost.mean(axis=1) / original.mean(axis=1),
        "better shuffled": (lost < -PRINTED_SLACK).sum(axis=1),
        "languages": lost.notna().sum(axis=1),
    }
    return pd.DataFrame(columns)


def from_majority(p: PrintedScores) -> tuple[float, float]:
    """The majority class of PAWS-X, and how far the control task is from it at most."""
    majority = 100 * (1 - p.share["PI"])
    control = _controls(p)[1].xs("PI (PAWS-X)", level="task")
    return majority, (control - majority).abs().max(axis=None)


def control_readings(p: PrintedScores) -> pd.DataFrame:
    """What "a 4 % drop" (NLI) and "3 %" (QA) may mean: by unit, models and settings."""
    losses = control_losses(p)
    models = {"both models": ["mBERT", "XLM-R"], "mBERT": ["mBERT"], "XLM-R": ["XLM-R"]}
    settings = {"both settings": ["within", "across"], "within": ["within"], "across": ["across"]}
    rows = {
        (unit, who, where): {
            task: losses.loc[(models[who], full, settings[where]), unit].mean()
            for task, full in (("NLI", "NLI (XNLI)"), ("QA", "QA (XQuAD)"))
        }
        for unit in ("per cent", "points") for who in models for where in settings
    }  # fmt: skip
    return pd.DataFrame(rows).T


def fitting_readings(p: PrintedScores) -> pd.DataFrame:
    """Of each of `control_readings` and task, whether it gives what the text says."""
    return (control_readings(p) - [p.said("wa_t05"), p.said("wa_t06")]).abs() < 0.5


def control_points(p: PrintedScores) -> pd.DataFrame:
    """Mean over languages of tasks and their controls, for a figure."""
    both = zip(("original", "shuffled"), _controls(p), strict=True)
    means = {name: table.mean(axis=1).to_frame("mean") for name, table in both}
    return p.points(means, "condition")
