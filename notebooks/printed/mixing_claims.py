"""The printed numbers of the within/across paper, and what follows from them of each other.

`PrintedScores` reads the transcribed tables and grids; the functions below it recompute printed
numbers from others, within what rounding allows (`printed.printed_tables`). Drops are in
`published_drops`, Tables 4 and 9 in `published_pairs`; what the paper says in words is in
`printed.mixing_claims`. All values are in per cent, as printed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from printed.printed_tables import PRINTED_SLACK, Audit, verdict
from xlx.measures.mixing import EVERYWHERE, across, detection, within
from xlx.results import paths

_FOLDER = paths.PUBLISHED / "within_across"
_NAMES = [f"Table {n}" for n in range(1, 15)] + [f"Figure {n}" for n in range(4, 11)]
#: The table of a task; its two classes, and the table by class of each model.
TABLE_OF = {"NLI": "Table 1", "PI": "Table 2", "QA": "Table 3"}
CLASSES = {"NLI": ("Entailment", "NotEntailment"), "PI": ("Paraphrase", "NonParaphrase")}
_BY_CLASS = {
    "NLI": ("Table 5", "Table 10", "Table 11"),
    "PI": ("Table 6", "Table 12", "Table 13"),
}


class PrintedScores:
    """Tables 1 to 14 and Figures 4 to 10 as transcribed.

    ``half`` is half a unit of the last place; ``paraphrases`` of ``labelled_alike`` pairs give the
    share of PAWS-X's first class.

    Attributes
    ----------
    files : by name ("Table 1", "Figure 4"), as transcribed; ``text``: what is said, by claim.
    tables : by name, (model, task, setting, class) by language, "avg" and "original"; in ``rows``
        the languages alone.
    grids : by (task, model), language of part 1 by language of part 2.
    scores, first, second : by (task, model), setting by language: of all, of each class.
    share : by task, of the first class.
    """

    models = ("mBERT", "XLM-R", "InfoXLM")

    def __init__(
        self, half: float = 0.05, paraphrases: int = 886, labelled_alike: int = 1983
    ) -> None:
        self.half, self.tolerance = half, 2 * half  # of a number, of a mean of rounded numbers
        self.share = {"NLI": 1 / 3, "PI": paraphrases / labelled_alike}
        by_stem = {path.stem.split("_")[0]: path for path in _FOLDER.glob("*.csv")}
        self.files = {name: pd.read_csv(by_stem[name.lower().replace(" ", "")]) for name in _NAMES}
        self.text = pd.read_csv(_FOLDER / "text_results.csv").set_index("claim_id")["value"]
        keys = ["model", "task", "setting", "label_class"]
        self.tables = {
            name: frame.pivot_table(index=keys, columns="language", values="value", sort=False)
            for name, frame in self.files.items()
            if "label_class" in frame
        }
        self.rows = {
            name: table.drop(columns=["avg", "original"], errors="ignore")
            for name, table in self.tables.items()
        }
        self.grids = dict(map(_grid, (self.files[name] for name in _NAMES[14:])))
        self.scores, self.first, self.second = {}, {}, {}
        for task, name in TABLE_OF.items():
            for model in self.models:
                self.scores[task, model] = self.of_model(name, model)
        for task, names in _BY_CLASS.items():
            for model, name in zip(self.models, names, strict=True):
                for table, label in zip((self.first, self.second), CLASSES[task], strict=True):
                    table[task, model] = self.of_model(name, model, label)

    def of_model(self, name: str, model: str, label: str = "all") -> pd.DataFrame:
        """Setting by language of a table of one task."""
        return self.rows[name].xs((model, label), level=["model", "label_class"]).droplevel("task")

    def said(self, claim: str) -> float:
        """A percentage in the text."""
        return float(self.text[claim].rstrip("%"))

    def points(self, tables: Mapping[object, pd.DataFrame], *names: str) -> pd.DataFrame:
        """Rows of tables by key for a figure: shares, each between what rounding leaves."""
        table = pd.concat(tables, names=names).rename_axis(columns="language").stack()
        table = table.rename("score").div(100).reset_index()
        return table.assign(
            low=table["score"] - self.half / 100, high=table["score"] + self.half / 100
        )


def _grid(frame: pd.DataFrame) -> tuple[tuple[str, str], pd.DataFrame]:
    """(task, model), and the grid of a figure; Figure 7 is printed with sentence 2 in the rows."""
    task, model = frame["task"].iloc[0].split()[0], frame["model"].iloc[0]
    sides = {"NLI": ("premise", "hypothesis"), "PI": ("sentence1", "sentence2"),
             "QA": ("context", "question")}  # fmt: skip
    first, second = (f"{side}_language" for side in sides[task])
    codes = frame[first].unique()
    cells = frame.pivot(index=first, columns=second, values="value").loc[codes, codes]
    return (task, model), cells


# --- averages, cells ------------------------------------------------------------------------------


def check_row_means(audit: Audit, p: PrintedScores) -> pd.DataFrame:
    """Printed averages from their rows; ``fits without``: the one language whose absence would."""
    rows, without = [], []
    for name, table in p.tables.items():
        for key, row in p.rows[name].iterrows():
            model, task, setting, label = key
            row, given = row.dropna(), table.loc[key, "avg"]
            what = f"{name}, {model} {task.split()[0]} {label} {setting}".replace(" all", "")
            rows.append((what, given, row.mean()))
            others = (row.sum() - row) / (len(row) - 1)
            fits = others.index[(others - given).abs() <= p.tolerance + PRINTED_SLACK]
            without.append(", ".join(fits) or "none")
    table = audit.check("averages", *zip(*rows, strict=True), p.tolerance)
    return table.assign(**{"fits without": without})


def check_cells(audit: Audit, p: PrintedScores) -> pd.DataFrame:
    """Tables 1 to 3 from the grids: a mean across, the same number within."""
    rows = []
    for (task, model), cells in p.grids.items():
        means = {"within": (within(cells), p.half), "across": (across(cells), p.tolerance)}
        for setting, (values, allowed) in means.items():
            checked = audit.check(
                f"{TABLE_OF[task]}, {model}, by cells", [f"{setting}, {code}" for code in cells],
                p.scores[task, model].loc[setting, cells.index], values, allowed,
            )  # fmt: skip
            off = (checked["recomputed"] - checked["printed"]).abs().max()
            agree = checked["agrees"].sum()
            rows.append((TABLE_OF[task], model, setting, len(checked), agree, off))
    columns = ["table", "model", "setting", "numbers", "agree", "furthest"]
    return pd.DataFrame(rows, columns=columns).set_index(columns[:3]).unstack("setting")


def grid_points(
    p: PrintedScores, task: str, languages: Sequence[str] | None = None
) -> pd.DataFrame:
    """The grids of a task for a figure: ``model``, ``first``, ``second``, ``score`` as a share.

    Of some ``languages``: those that were printed, with the means of rows and columns.
    """
    grids = {model: cells for (of, model), cells in p.grids.items() if of == task}
    if languages is not None:
        for model, cells in grids.items():
            codes = [code for code in languages if code in cells]
            cells = cells.loc[codes, codes]
            cells.loc[EVERYWHERE] = cells.mean()
            grids[model] = cells.assign(**{EVERYWHERE: cells.mean(axis=1)})
    table = pd.concat(grids, names=["model", "first"]).rename_axis(columns="second")
    return table.stack().rename("score").div(100).reset_index()


# --- classes: s = q s₁ + (1 - q) s₂ ---------------------------------------------------------------


def paraphrase_shares(p: PrintedScores) -> pd.DataFrame:
    """By model: the shares q of paraphrases at which all 14 scores follow from the classes."""
    rows = {}
    for model in p.models:
        score, first, second = (part["PI", model] for part in (p.scores, p.first, p.second))
        ends = [(score + sign * p.tolerance - second) / (first - second) for sign in (-1, 1)]
        rows[model] = np.minimum(*ends).max(axis=None), np.maximum(*ends).min(axis=None)
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["q from", "q to"])
    fits = (table["q from"] <= table["q to"]).map({True: "yes", False: "no"})
    return table.assign(**{"one q fits all 14 scores": fits}).rename_axis("model")


def public_shares(p: PrintedScores) -> pd.DataFrame:
    """Of subsets of the public test part: pairs left out, the share q, and whether it fits."""
    public = pd.read_csv(_FOLDER / "pawsx_test.csv").set_index("subset")
    public["left out, %"] = 100 * public["left_out"] / (public["pairs"] + public["left_out"])
    public["q"] = public["paraphrases"] / public["pairs"]
    ends = paraphrase_shares(p).loc[list(p.models[:2])]
    public["fits both"] = public["q"].between(ends["q from"].max(), ends["q to"].min())
    return public


def check_classes(audit: Audit, p: PrintedScores) -> pd.DataFrame:
    """Tables 1 and 2 from the tables by class, and Figure 4 from Table 11; ``off`` in points."""
    checked = []
    for key, first in p.first.items():
        task, model = key
        again = p.share[task] * first + (1 - p.share[task]) * p.second[key]
        for setting, values in again.iterrows():
            checked.append(audit.check(
                f"{TABLE_OF[task]}, {model}, by class", [f"{setting}, {code}" for code in again],
                p.scores[key].loc[setting, again.columns], values, p.tolerance,
            ))  # fmt: skip
    key = "NLI", "InfoXLM"
    cells, again = p.grids[key], (p.first[key] + 2 * p.second[key]) / 3
    for setting, values in (("within", within(cells)), ("across", across(cells))):
        checked.append(audit.check(
            "Figure 4, by Table 11", [f"{setting}, {code}" for code in cells],
            values, again.loc[setting, cells.index], p.tolerance,
        ))  # fmt: skip
    table = pd.concat(checked)
    return table.assign(off=(table["recomputed"] - table["printed"]).abs())


def class_points(p: PrintedScores, task: str) -> pd.DataFrame:
    """Tables by class of a task for a figure."""
    tables = {
        (label, model): source[task, model]
        for label, source in zip(CLASSES[task], (p.first, p.second), strict=True)
        for model in p.models
    }
    return p.points(tables, "label", "model")


def class_drops(p: PrintedScores) -> pd.DataFrame:
    """What each class brings to the mean drop, d = q d₁ + (1 - q) d₂, by task and model."""
    rows = {}
    for key, first in p.first.items():
        drops = [table.loc["within"] - table.loc["across"] for table in (first, p.second[key])]
        share = p.share[key[0]]
        part, rest = share * drops[0].mean(), (1 - share) * drops[1].mean()
        gains = int((drops[1] < -PRINTED_SLACK).sum())
        rows[key] = (part, rest, part / (part + rest), gains, len(drops[1]))
    columns = ["first class", "second class", "share of the first", "second gains in"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=[*columns, "of languages"])
    table.index = pd.MultiIndex.from_tuples(table.index, names=["task", "model"])
    return table


def sensitivity_and_preference(p: PrintedScores) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Of PAWS-X: points of the classes' mean lost by preference, and its parts averaged.

    The first is model by language; the second has d′ and c by setting and the points lost of the
    mean, by sensitivity and by preference (`reading.detection`).
    """
    hits, rejections = (
        pd.concat({model: table["PI", model] for model in p.models}) / 100
        for table in (p.first, p.second)
    )
    told = detection(hits, rejections)
    parts = {
        "classes' mean": (hits + rejections) / 2,
        "d′": told.sensitivity,
        "c": told.criterion,
        "mean without preference": told.unbiased,
    }
    parts = {key: pd.DataFrame(x, hits.index, hits.columns) for key, x in parts.items()}
    whole, unbiased = (
        100 * (table.xs("within", level=1) - table.xs("across", level=1)).loc[list(p.models)]
        for table in (parts["classes' mean"], parts["mean without preference"])
    )
    preference = whole - unbiased
    means = {key: parts[key].mean(axis=1).unstack().loc[list(p.models)] for key in ("d′", "c")}
    table = pd.concat(means, axis=1)
    table = table.loc[:, pd.IndexSlice[["d′", "c"], ["within", "across"]]].round(2)
    lost = {"classes' mean, lost": whole, "by sensitivity": unbiased, "by preference": preference}
    for name, points in lost.items():
        table[name, ""] = points.mean(axis=1).round(1) + 0.0
    return preference, table


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


#: The languages of the pairs, in the order of Table 9.
_SIX = ["en", "de", "tr", "el", "es", "ar"]
_STARS = ["*-l2", "l1-*", "*-*"]


class PrintedPairs:
    """Tables 4 and 9 as printed, and what the starred rows can be of.

    Attributes
    ----------
    four, nine : (l1, l2) by condition ("fine-tuned", "baseline") and row.
    tuned, baseline : of Table 9, (l1, l2) by row.
    """

    def __init__(self, p: PrintedScores) -> None:
        self.p = p
        self.four, self.nine = (_wide(p.files[name]) for name in ("Table 4", "Table 9"))
        self.tuned, self.baseline = (
            self.nine[condition][list(PAIRS_ROWS)] for condition in ("fine-tuned", "baseline")
        )
        self.first, self.second = (
            self.tuned.index.get_level_values(side) for side in ("l1_premise", "l2_hypothesis")
        )

    def starred(self, row: str) -> pd.DataFrame:
        """The baseline of a starred row, l1 by l2."""
        return self.baseline[row].unstack().loc[_SIX, _SIX]

    @cached_property
    def known(self) -> pd.DataFrame:
        """The cells of the baseline's grid that are printed: premise by hypothesis."""
        return self.baseline["l1-l2"].unstack().loc[_SIX, _SIX]

    @cached_property
    def sides(self) -> pd.DataFrame:
        """By language a: ``g``, one number in both baselines, and what it leaves of Table 1.

        row_a + column_a = (28 across_a + 2 within_a) / 15, so if g is the row, ``other side`` is
        the column; ``row less column, 5 cells`` is what the known cells say.
        """
        g = self.baseline["*-l2"].groupby("l1_premise").first()[_SIX]
        table = self.p.scores["NLI", "mBERT"][_SIX]
        column = (28 * table.loc["across"] + 2 * table.loc["within"]) / 15 - g
        known = self.known.mean(axis=1) - self.known.mean()
        columns = {"g": g, "other side": column, "g less other": g - column}
        return pd.DataFrame(columns | {"row less column, 5 cells": known})

    @property
    def same_numbers(self) -> bool:
        """Whether the baselines of *-l2 by l1 and of l1-* by l2 are the same six."""
        by_l2 = self.baseline["l1-*"].groupby("l2_hypothesis").first()[_SIX]
        return self.sides["g"].tolist() == by_l2.tolist()

    @property
    def whole(self) -> float:
        """The mean of all 225 cells of the baseline, by Table 1."""
        table = self.p.scores["NLI", "mBERT"]
        return (15 * table.loc["within"].mean() + 210 * table.loc["across"].mean()) / 225

    @property
    def right(self) -> pd.DataFrame:
        """The baseline with the averages that its starred rows should have."""
        column, row = self.sides["other side"], self.sides["g"]
        return self.baseline.assign(
            **{"*-l2": column[self.second].to_numpy(), "l1-*": row[self.first].to_numpy()}
        )

    def evidence(self) -> pd.Series:
        """Whether the starred rows of the fine-tuned models are named wrongly as well.

        The first two without Arabic as l2.
        """
        tuned, sides, usual = self.tuned, self.sides, self.second != "ar"
        rest = (15 * tuned["l1-*"] - tuned["l1-l2"]) / 14

        def with_sides(column: str, languages: pd.Index) -> float:
            return np.corrcoef(tuned["*-l2"][usual], sides.loc[languages[usual], column])[0, 1]

        return pd.Series(
            {
                "*-l2 with g(l1), row of the premise": with_sides("g", self.first),
                "*-l2 with the column of l2": with_sides("other side", self.second),
                "l1-* with l2-l1": tuned["l1-*"].corr(tuned["l2-l1"]),
                "l1-* with l1-l2": tuned["l1-*"].corr(tuned["l1-l2"]),
                "l1-* to l2-l1, median distance": (tuned["l1-*"] - tuned["l2-l1"]).abs().median(),
                "l1-* to l1-l2, median distance": (tuned["l1-*"] - tuned["l1-l2"]).abs().median(),
                "row of l1 without l1-l2, lowest": rest.min(),
                "pairs where that is below 40": (rest < 40).sum(),
            },
            name="fine-tuned",
        )

    def change(self) -> pd.DataFrame:
        """Points gained by fine-tuning on a pair, and pairs better, in three readings of the stars.

        As printed; with the baselines of starred rows put right; and if fine-tuned numbers and
        baselines are named wrongly alike, where the difference ``is then`` of another row.
        """
        gains = {"": self.tuned - self.baseline, ", 2": self.tuned - self.right}
        gains[", 3"] = gains[""]
        table = pd.DataFrame(index=pd.Index(PAIRS_ROWS, name=self.tuned.columns.name))
        readings = ("as printed", "baselines wrong", "all wrong")
        for reading, (number, gain) in zip(readings, gains.items(), strict=True):
            table[reading] = gain.mean()
            table[f"pairs better{number}"] = (gain > PRINTED_SLACK).sum()
        then = table.index.to_series().replace({"*-l2": "l1-*", "l1-*": "l2-*"})
        table.insert(4, "is then", then)
        return table

    def starred_changes(self) -> pd.DataFrame:
        """`change` as printed and with right baselines, of the starred rows."""
        return self.change().loc[_STARS, ["as printed", "baselines wrong"]]

    def swapped(self) -> pd.DataFrame:
        """By pair: fine-tuned l1-l2 less l2-l1, and both less their baselines."""
        gain = (self.tuned - self.baseline)[["l1-l2", "l2-l1"]]
        table = gain.add_suffix(" less baseline")
        table.insert(0, "l1-l2 less l2-l1", self.tuned["l1-l2"] - self.tuned["l2-l1"])
        return table

    def points(self, pairs: list[str]) -> pd.DataFrame:
        """Some pairs for a figure, beside the printed baseline and the one put right."""
        conditions = {
            "fine-tuned": self.tuned,
            "baseline, printed": self.baseline,
            "baseline, if it alone is mislabelled": self.right,
        }
        table = self.p.points(conditions, "condition").rename(columns={"language": "row"})
        table["pair"] = table["l1_premise"] + "-" + table["l2_hypothesis"]
        return pd.concat([table[table["pair"] == pair] for pair in pairs])


def _wide(frame: pd.DataFrame) -> pd.DataFrame:
    condition = frame["condition"].str.partition(" ")[0]  # "fine-tuned on l1-l2", "baseline ..."
    return frame.assign(condition=condition).pivot(
        index=["l1_premise", "l2_hypothesis"],
        columns=["condition", "evaluation_pair_as_printed"],
        values="value",
    )


def english_leads(p: PrintedScores) -> pd.DataFrame:
    """Points by which InfoXLM is ahead in cells with English and without, with Welch's interval.

    Of XNLI six languages, whose cells of mBERT are baselines in Table 9. Cells of one language are
    taken for independent, so intervals are too narrow.
    """
    leads = {}
    for task, model in (("PI", "mBERT"), ("PI", "XLM-R"), ("QA", "mBERT"), ("QA", "XLM-R")):
        leads[task, f"InfoXLM over {model}"] = p.grids[task, "InfoXLM"] - p.grids[task, model]
    six = p.grids["NLI", "InfoXLM"].loc[_SIX, _SIX]
    leads["NLI", "InfoXLM over mBERT, six languages"] = six - PrintedPairs(p).known
    rows = {}
    for key, lead in leads.items():
        english = np.r_[lead.loc["en"].drop("en"), lead["en"].drop("en")]
        rest = lead.drop(index="en", columns="en").to_numpy()
        rest = rest[~np.eye(len(rest), dtype=bool)]
        interval = stats.ttest_ind(english, rest, equal_var=False).confidence_interval()
        rows[key] = english.mean(), rest.mean(), english.mean() - rest.mean(), *interval
    return pd.DataFrame(rows, index=["with English", "without", "difference", "low", "high"]).T


class _Claim(NamedTuple):
    section: str
    claim: str
    formula: str
    said: str
    parts: tuple[bool, ...] | list[bool] | pd.Series


def claim_table(p: PrintedScores, audit: Audit) -> pd.DataFrame:
    """All claims by ``section``: ``claim, formula, found, verdict``; an audit is given them too."""
    pairs = PrintedPairs(p)
    groups = (
        _of_originals(p), _of_classes(p), _of_baselines(pairs), _of_fine_tuning(pairs),
        _of_drops(p), _of_pairs(p), _of_controls(p),
    )  # fmt: skip
    rows = []
    for section, claim, formula, said, parts in (claim for group in groups for claim in group):
        audit.claim(section, claim, said, *parts)
        rows.append((section, claim, formula, said, verdict(tuple(parts))))
    columns = ["section", "claim", "formula", "found", "verdict"]
    return pd.DataFrame(rows, columns=columns).set_index("section")


def _of_originals(p: PrintedScores) -> Iterator[_Claim]:
    original = p.tables["Table 7"]["original"].dropna()
    averages = pd.concat([p.tables[name]["avg"] for name in TABLE_OF.values()])
    repeated = original == averages[original.index]
    yield _Claim("Table 7", "column 'original' refers to Tables 1 to 3", "original = avg",
                 f"{sum(repeated)} of {len(repeated)} are their printed averages",
                 repeated)  # fmt: skip
    public = public_shares(p)
    out, whole = public["left out, %"], "both sentences in all languages"
    single = out[out.index.str.fullmatch(r"both sentences in \w\w")].mean()
    limit = p.said("wa_t11")
    yield _Claim(
        "3.2",
        "only parallel pairs of PAWS-X are used, so less than 0.5 % on average are excluded",
        "left out / 2,000 < 0.005, of all languages and of a language on average",
        f"{out[whole]:.2f} % lack a sentence in some language, {single:.2f} % in one on average; "
        f"labels differ in {out['same label in German and Chinese']:.2f} %; and the scores imply "
        "a share of paraphrases that the parallel pairs "
        f"{'have' if public.loc[whole, 'fits both'] else 'do not have'}",
        (out[whole] < limit, single < limit),
    )


def _of_classes(p: PrintedScores) -> Iterator[_Claim]:
    first, second = (table["NLI", "mBERT"].loc["within"] for table in (p.first, p.second))
    gap = first - second
    yield _Claim(
        "4, Table 5",
        "both classes contribute almost equally within (to 10 points)",
        "|s₁ - s₂| < 10, on average and in each language",
        f"{first.mean():.1f} and {second.mean():.1f} on average; accuracies differ by "
        f"{gap.min():.1f} ({gap.idxmin()}) to {gap.max():.1f} ({gap.idxmax()}), by less than 10 in "
        f"{(gap.abs() < 10).sum()} of {len(gap)} languages",
        (abs(gap.mean()) < 10, gap.abs().max() < 10),
    )
    share = class_drops(p)["share of the first"]
    yield _Claim("4", "most of the drop is of entailment / paraphrase, in all models",
                 "q d₁ / d > ½", f"shares {share.min():.2f} to {share.max():.2f}",
                 share > 0.5)  # fmt: skip
    tables = {model: p.first["NLI", model] for model in p.models}
    lost = {model: table.loc["within"] - table.loc["across"] for model, table in tables.items()}
    yield _Claim(
        "4",
        "the drop of entailment is more pronounced for low-resource languages",
        "d₁ > median of d₁, of Swahili and of Urdu in all models",
        "; ".join(f"{model}: largest in {drop.idxmax()} ({drop.max():.1f}), smallest in "
                  f"{drop.idxmin()} ({drop.min():.1f})" for model, drop in lost.items()),
        [all(drop[code] > drop.median() for drop in lost.values()) for code in ("sw", "ur")],
    )  # fmt: skip
    below = below_f1(p).min(axis=None)
    yield _Claim("Tables 3, 8", "EM is at most F1 (by definition)", "F1 - EM ≥ 0",
                 f"below by {below:.1f} or more", (below >= 0,))  # fmt: skip


def _of_baselines(pairs: PrintedPairs) -> Iterator[_Claim]:
    same = pairs.four == pairs.nine.loc[pairs.four.index, pairs.four.columns]
    yield _Claim("Tables 4, 9", "Table 4 is part of Table 9", "the same numbers",
                 f"{same.to_numpy().sum()} of {same.size} numbers",
                 (same.all(axis=None),))  # fmt: skip
    baseline = pairs.baseline
    turned = baseline["l2-l1"].swaplevel().reindex(baseline.index)
    same = baseline["l1-l2"] == turned
    yield _Claim("Table 9", "the baseline of a pair is that of the other pair swapped",
                 "s(l1, l2) of a pair = s(l2, l1) of the other", f"{same.sum()} of {len(same)}",
                 same)  # fmt: skip
    for row, code, level in (("*-l2", "l2", "l2_hypothesis"), ("l1-*", "l1", "l1_premise")):
        counts = baseline[row].groupby(level).nunique()
        yield _Claim("Table 9", f"baseline of {row} is one number for each {code}",
                     "a mean of a column" if code == "l2" else "a mean of a row",
                     f"up to {counts.max()} for one {code}", counts == 1)  # fmt: skip
    everything = float(baseline["*-*"].unique().item())
    yield _Claim("Table 9", "*-* is the average over all languages",
                 "(15 within + 210 across) / 225",
                 f"all 225 cells by Table 1: {pairs.whole:.2f}, printed {everything}",
                 (abs(pairs.whole - everything) <= pairs.p.tolerance,))  # fmt: skip


def _of_fine_tuning(pairs: PrintedPairs) -> Iterator[_Claim]:
    change, n = pairs.change(), len(pairs.tuned)
    better = (pairs.tuned["l2-l1"] > pairs.baseline["l2-l1"]).groupby(pairs.second).sum()
    swapped = change.loc["l2-l1", "as printed"]
    yield _Claim(
        "3.4",
        "fine-tuning on a pair is no better on the same pair swapped",
        "l2-l1 less its baseline ≤ 0, on average and in each pair",
        f"{swapped:.1f} on average; better in {better.sum()} of {n} pairs, {better['ar']} of them "
        "with Arabic as l2",
        (swapped <= 0, not better.any()),
    )
    column, row = change.loc["*-l2"], change.loc["l1-*"]
    stars = pairs.starred_changes()
    yield _Claim(
        "3.4",
        "fine-tuning on a pair does not help with other languages",
        "starred row less its baseline ≤ 0 on average, as printed and with baselines put right",
        f"*-l2: by {column['as printed']:.1f} in {column['pairs better']} of {n} pairs as printed, "
        f"by {column['baselines wrong']:.1f} in {column['pairs better, 2']} if its baseline is "
        f"wrong; if all is, {column['is then']} gains so and {row['is then']} loses "
        f"{-row['all wrong']:.1f}; *-* {change.loc['*-*', 'as printed']:.1f}",
        (stars <= 0).to_numpy().ravel().tolist(),
    )


def _of_drops(p: PrintedScores) -> Iterator[_Claim]:
    shares = explained_by_sides(p).loc["QA", ["part 1", "part 2"]]
    more = shares["part 1"] > shares["part 2"]
    context, question = (shares[part].round(2).tolist() for part in shares)
    yield _Claim("3.3", "InfoXLM relies on the context more than on the question, the others not",
                 "R² of the context > R² of the question",
                 f"context / question: {context} / {question}",
                 [more["InfoXLM"], not more["mBERT"], not more["XLM-R"]])  # fmt: skip
    both = ["mBERT", "XLM-R"]
    start, lost = nli_drops(p)
    relative, rank = 100 * lost / start, lost.rank(ascending=False).loc["sw"].astype(int)
    pair, swahili = relative.loc[["en", "de"], both], relative.loc["sw", both]
    points = lost.loc[["en", "de"], both].mean(axis=None)
    yield _Claim(
        "3.1",
        f"English and German: about {p.text['wa_t01']} lost (mBERT, XLM-R)",
        "|mean of d / within - 17 %| < 1",
        f"{pair['mBERT'].mean():.1f} % and {pair['XLM-R'].mean():.1f} %, mean "
        f"{pair.mean(axis=None):.1f} %; in points {points:.1f}",
        (abs(pair.mean(axis=None) - p.said("wa_t01")) < 1,),
    )
    yield _Claim(
        "3.1",
        "the drop is even more pronounced for low-resource languages such as Swahili",
        "d / within of Swahili > mean of English and German",
        f"there {swahili['mBERT']:.1f} % (mBERT) and {swahili['XLM-R']:.1f} % (XLM-R); rank of its "
        f"drop in points, of {len(lost)}: {rank.to_dict()}",
        swahili > pair.mean(),
    )
    table = drop_table(p)["per cent"].unstack()[list(p.models)]
    said = {
        name: f"{row['mBERT']:.1f} % and {row['XLM-R']:.1f} %" for name, row in table.iterrows()
    }
    mean = table.loc["PI", both].mean()
    yield _Claim("Table 2", f"on average {p.text['wa_t02']} lost (mBERT, XLM-R)",
                 "|mean of d / within - 17 %| < 1", f"{said['PI']}, mean {mean:.1f} %",
                 (abs(mean - p.said("wa_t02")) < 1,))  # fmt: skip
    for place, quantity, key in (("Table 3", "QA F1", "wa_t03"), ("Table 8", "QA EM", "wa_t04")):
        yield _Claim(place, f"more than {p.text[key]} of {quantity[3:]} lost (mBERT, XLM-R)",
                     "d / within > 50 %", said[quantity],
                     table.loc[quantity, both] > p.said(key))  # fmt: skip
    least = table.idxmin(axis=1) == "InfoXLM"
    yield _Claim("3.1", "InfoXLM loses least", "argmin of d / within",
                 f"in {least.sum()} of {len(least)} quantities", least)  # fmt: skip


def _of_pairs(p: PrintedScores) -> Iterator[_Claim]:
    table, both = not_below_both(p).loc["QA"], ["mBERT", "XLM-R"]
    high, second = table["not below both"], table["of them en second"]
    english = second + table["of them en first"]
    left, cells = high - english, table["cells"].sum()
    yield _Claim(
        "3.3",
        "across is below both languages, but for English questions, and otherwise in InfoXLM",
        "s_ab < min(s_aa, s_bb) but where b = en; in InfoXLM but where a = en or b = en",
        f"{cells - high.sum()} of {cells} cells are below; of the others {second[both].sum()} are "
        f"mBERT's and XLM-R's, with English questions, {english['InfoXLM']} InfoXLM's with "
        f"English, and {left.sum()} neither",
        [*(high == second)[both], left["InfoXLM"] == 0],
    )
    near = table.loc[both, "en second, less within"]
    lost = -drop_table(p).loc["QA F1", "points"][both]
    yield _Claim(
        "3.3",
        "with English questions mBERT and XLM-R are close to within of the context (5 points)",
        "|mean of s_a,en - s_aa| < 5",
        f"{near.round(1).to_dict()}; all of across: {lost.round(1).to_dict()}",
        near.abs() < 5,
    )
    nli = english_leads(p).loc["NLI"].iloc[0]
    yield _Claim(
        "3.1",
        "InfoXLM's objective has mostly helped pairs with English (XNLI)",
        "lead with English - lead without > 0, if its interval leaves out 0",
        f"six languages of Table 9: by {nli['with English']:.1f} points with English, "
        f"{nli['without']:.1f} without, difference {nli['difference']:.1f} ({nli['low']:.1f} to "
        f"{nli['high']:.1f})",
        () if nli["low"] < 0 < nli["high"] else (nli["difference"] > 0,),
    )


def _of_controls(p: PrintedScores) -> Iterator[_Claim]:
    plain = control_readings(p).loc[("per cent", "both models", "both settings")]
    losses = control_losses(p)
    qa = losses.xs("QA (XQuAD)", level="task")["per cent"]
    yield _Claim("5", f"NLI: a slight {p.text['wa_t05']} drop", "|mean loss - 4 %| < 0.5",
                 f"{plain['NLI']:.1f} % on average over models and settings",
                 (abs(plain["NLI"] - p.said("wa_t05")) < 0.5,))  # fmt: skip
    yield _Claim("5", f"QA: a drop of approximately {p.text['wa_t06']}", "|mean loss - 3 %| < 0.5",
                 f"{plain['QA']:.1f} % by the same reading; {qa.min():.1f} to {qa.max():.1f} %",
                 (abs(plain["QA"] - p.said("wa_t06")) < 0.5,))  # fmt: skip
    majority, furthest = from_majority(p)
    yield _Claim("5", "PI: random performance", "|control - (1 - q)| < 2",
                 f"majority class {majority:.1f}; farthest from it by {furthest:.1f}",
                 (furthest < 2,))  # fmt: skip
    most = losses.loc["XLM-R", "points"].groupby("task").max()
    said = ", ".join(f"{task.split()[0]} {points:.1f} at most" for task, points in most.items())
    yield _Claim("Table 14",
                 "the drop in performance is negligible (under 5 points; XLM-R, all tasks)",
                 "original - control < 5", said, most < 5)  # fmt: skip


#: The rows of Tables 4 and 9: language of part 1, language of part 2, * for all of them.
PAIRS_ROWS = ("l1-l2", "l2-l1", "*-l2", "l1-*", "*-*")
