"""The printed numbers of the within/across paper, and what follows from them of each other.

`PrintedScores` reads the transcribed tables and grids; what it adds needs statistics or a look at
many cells. What follows by a formula is in ``names.csv`` of the folder, what the paper says in
``claims.csv`` (`printed.evaluator`). All values are in per cent, as printed.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
import pandas as pd
from scipy import stats

from mixing_2_paraphrase import detection
from printed.evaluator import Paper
from printed.printed_tables import PRINTED_SLACK
from xlx.measures.mixing import EVERYWHERE, across, within
from xlx.results import paths

_NAMES = [f"Table {n}" for n in range(1, 15)] + [f"Figure {n}" for n in range(4, 11)]
#: The table of a task; its two classes, and the table by class of each model.
TABLE_OF = {"NLI": "Table 1", "PI": "Table 2", "QA": "Table 3"}
CLASSES = {"NLI": ("Entailment", "NotEntailment"), "PI": ("Paraphrase", "NonParaphrase")}
_BY_CLASS = {
    "NLI": ("Table 5", "Table 10", "Table 11"),
    "PI": ("Table 6", "Table 12", "Table 13"),
}
#: The rows of Tables 4 and 9: language of part 1, language of part 2, * for all of them.
PAIRS_ROWS = ("l1-l2", "l2-l1", "*-l2", "l1-*", "*-*")
#: The languages of the pairs, in the order of Table 9; those of PAWS-X by script.
_SIX = ["en", "de", "tr", "el", "es", "ar"]
_SCRIPTS = {"Latin": ["en", "es", "de", "fr"], "zh, ja, ko": ["zh", "ja", "ko"]}


class PrintedScores(Paper):
    """Tables 1 to 14 and Figures 4 to 10 as transcribed.

    ``half`` is half a unit of the last place; ``paraphrases`` of ``labelled_alike`` pairs give the
    share of PAWS-X's first class.

    Attributes
    ----------
    numbered : by name ("Table 1", "Figure 4"), as transcribed.
    tables : by name, (model, task, setting, class) by language, "avg" and "original"; in ``rows``
        the languages alone.
    grids : by (task, model), language of part 1 by language of part 2.
    scores, first, second : by (task, model), setting by language: of all, of each class.
    share : by task, of the first class.
    four, nine : of Tables 4 and 9, (l1, l2) by condition ("fine-tuned", "baseline") and row.
    tuned, baseline : of Table 9, (l1, l2) by row.
    """

    models = ("mBERT", "XLM-R", "InfoXLM")

    def __init__(
        self, half: float = 0.05, paraphrases: int = 886, labelled_alike: int = 1983
    ) -> None:
        super().__init__(paths.PUBLISHED / "within_across")
        self.half, self.tolerance = half, 2 * half  # of a number, of a mean of rounded numbers
        self.share = {"NLI": 1 / 3, "PI": paraphrases / labelled_alike}
        self.numbered = {name: self.files[name.lower().replace(" ", "")] for name in _NAMES}
        keys = ["model", "task", "setting", "label_class"]
        self.tables = {
            name: frame.pivot_table(index=keys, columns="language", values="value", sort=False)
            for name, frame in self.numbered.items()
            if "label_class" in frame
        }
        self.rows = {
            name: table.drop(columns=["avg", "original"], errors="ignore")
            for name, table in self.tables.items()
        }
        self.grids = dict(map(_grid, (self.numbered[name] for name in _NAMES[14:])))
        self.scores, self.first, self.second = {}, {}, {}
        for task, name in TABLE_OF.items():
            for model in self.models:
                self.scores[task, model] = self.of_model(name, model)
        for task, names in _BY_CLASS.items():
            for model, name in zip(self.models, names, strict=True):
                for table, label in zip((self.first, self.second), CLASSES[task], strict=True):
                    table[task, model] = self.of_model(name, model, label)
        self.four, self.nine = (_wide(self.numbered[name]) for name in ("Table 4", "Table 9"))
        self.tuned, self.baseline = (
            self.nine[condition][list(PAIRS_ROWS)] for condition in ("fine-tuned", "baseline")
        )

    def of_model(self, name: str, model: str, label: str = "all") -> pd.DataFrame:
        """Setting by language of a table of one task."""
        return self.rows[name].xs((model, label), level=["model", "label_class"]).droplevel("task")

    def points(self, tables: Mapping[object, pd.DataFrame], *names: str) -> pd.DataFrame:
        """Rows of tables by key for a figure: shares, each between what rounding leaves."""
        table = pd.concat(tables, names=names).rename_axis(columns="language").stack()
        table = table.rename("score").div(100).reset_index()
        return table.assign(
            low=table["score"] - self.half / 100, high=table["score"] + self.half / 100
        )

    # --- averages, classes ------------------------------------------------------------------------

    @cached_property
    def row_means(self) -> pd.DataFrame:
        """Averages and means of rows; ``fits without``: the one language whose absence would."""
        found = {}
        for name, table in self.tables.items():
            for (model, task, setting, label), row in self.rows[name].iterrows():
                row, given = row.dropna(), table.loc[(model, task, setting, label), "avg"]
                others = (row.sum() - row) / (len(row) - 1)
                fits = others.index[(others - given).abs() <= self.tolerance + PRINTED_SLACK]
                what = f"{name}, {model} {task.split()[0]} {label} {setting}".replace(" all", "")
                found[what] = given, row.mean(), ", ".join(fits) or "none"
        columns = ["printed", "mean", "fits without"]
        return pd.DataFrame.from_dict(found, orient="index", columns=columns)

    @cached_property
    def cell_means(self) -> dict[tuple[str, str], pd.DataFrame]:
        """By grid: within and across by language."""
        return {
            key: pd.DataFrame({"within": within(cells), "across": across(cells)}, cells.index).T
            for key, cells in self.grids.items()
        }

    @cached_property
    def paraphrase_shares(self) -> pd.DataFrame:
        """By model: the shares q of paraphrases at which all 14 scores follow from the classes."""
        rows = {}
        for model in self.models:
            score, first, second = (x["PI", model] for x in (self.scores, self.first, self.second))
            ends = [(score + sign * self.tolerance - second) / (first - second) for sign in (-1, 1)]
            rows[model] = np.minimum(*ends).max(axis=None), np.maximum(*ends).min(axis=None)
        table = pd.DataFrame.from_dict(rows, orient="index", columns=["q from", "q to"])
        fits = (table["q from"] <= table["q to"]).map({True: "yes", False: "no"})
        return table.assign(**{"one q fits all 14 scores": fits}).rename_axis("model")

    @cached_property
    def public_shares(self) -> pd.DataFrame:
        """Of subsets of the public test part: pairs left out, the share q, and whether it fits."""
        public = self.files["pawsx"].set_index("subset")
        public["left out, %"] = 100 * public["left_out"] / (public["pairs"] + public["left_out"])
        public["q"] = public["paraphrases"] / public["pairs"]
        ends = self.paraphrase_shares.loc[list(self.models[:2])]
        public["fits both"] = public["q"].between(ends["q from"].max(), ends["q to"].min())
        return public

    @cached_property
    def class_drops(self) -> pd.DataFrame:
        """What each class brings to the mean drop, d = q d₁ + (1 - q) d₂, by task and model."""
        rows = {}
        for key, first in self.first.items():
            lost, gone = (x.loc["within"] - x.loc["across"] for x in (first, self.second[key]))
            part, rest = self.share[key[0]] * lost.mean(), (1 - self.share[key[0]]) * gone.mean()
            gains = int((gone < -PRINTED_SLACK).sum())
            rows[key] = (part, rest, part / (part + rest), gains, len(gone))
        columns = ["first class", "second class", "share of the first", "second gains in"]
        table = pd.DataFrame.from_dict(rows, orient="index", columns=[*columns, "of languages"])
        return table.set_axis(pd.MultiIndex.from_tuples(table.index, names=["task", "model"]))

    @cached_property
    def sensitivity_and_preference(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Of PAWS-X: points of the classes' mean lost by preference, and its parts averaged.

        The first is model by language; the second has d′ and c by setting and the points lost of
        the mean, by sensitivity and by preference (`detection`).
        """
        hits, rejections = (
            pd.concat({model: table["PI", model] for model in self.models}) / 100
            for table in (self.first, self.second)
        )
        told = detection(hits, rejections)
        index, columns, models = hits.index, hits.columns, list(self.models)
        whole, unbiased = (
            100 * (table.xs("within", level=1) - table.xs("across", level=1)).loc[models]
            for table in (
                (hits + rejections) / 2, pd.DataFrame(told.unbiased, index, columns),
            )
        )  # fmt: skip
        means = {
            name: pd.DataFrame(part, index, columns).mean(axis=1).unstack().loc[models]
            for name, part in (("d′", told.sensitivity), ("c", told.criterion))
        }
        table = pd.concat(means, axis=1)
        table = table.loc[:, pd.IndexSlice[["d′", "c"], ["within", "across"]]].round(2)
        lost = {"classes' mean, lost": whole, "by sensitivity": unbiased,
                "by preference": whole - unbiased}  # fmt: skip
        for name, points in lost.items():
            table[name, ""] = points.mean(axis=1).round(1) + 0.0
        return whole - unbiased, table

    # --- drops, grids -----------------------------------------------------------------------------

    @cached_property
    def drop_table(self) -> pd.DataFrame:
        """Drops by quantity and model: points, per cent of within, by the printed averages."""
        rows = {}
        quantities = {"NLI": "Table 1", "PI": "Table 2", "QA F1": "Table 3", "QA EM": "Table 8"}
        for quantity, name in quantities.items():
            for model in self.models:
                start, left = self.of_model(name, model).loc[["within", "across"]].to_numpy()
                average = self.tables[name]["avg"].xs((model, "all"), level=[0, 3]).droplevel(0)
                halved = f"{(100 * (start - left) / start > 50).sum()} of {len(start)}"
                by_average = 100 * (1 - average["across"] / average["within"])
                lost = (start - left).mean()
                rows[quantity, model] = (lost, 100 * lost / start.mean(), by_average, halved)
        columns = ["points", "per cent", "by printed averages", "half lost in"]
        table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
        return table.set_axis(pd.MultiIndex.from_tuples(table.index, names=["quantity", "model"]))

    def _by_grid(self, row: Callable[[pd.DataFrame], dict]) -> pd.DataFrame:
        index = pd.MultiIndex.from_tuples(self.grids, names=["task", "model"])
        return pd.DataFrame([row(cells) for cells in self.grids.values()], index)

    @property
    def explained_by_sides(self) -> pd.DataFrame:
        """Variance off the diagonal that the languages of each part explain, and swapping turns.

        Least squares of s_ab on a term for each language in each place; the odd part is
        (s_ab - s_ba) / 2.
        """
        return self._by_grid(_explained_by_sides)

    @property
    def not_below_both(self) -> pd.DataFrame:
        """Cells as high as within of one of their languages; what English does on either side."""
        return self._by_grid(_not_below_both)

    def lost_between_scripts(self) -> pd.DataFrame:
        """Of PAWS-X: mean of within of both languages less the cell, by scripts of the two."""
        rows = {}
        latin, cjk = _SCRIPTS.values()
        for model in self.models:
            cells = self.grids["PI", model]
            start = within(cells)
            lost = ((start[:, None] + start) / 2 - cells).mask(np.eye(len(cells), dtype=bool))
            row = {name: np.nanmean(lost.loc[codes, codes]) for name, codes in _SCRIPTS.items()}
            rows[model] = row | {"mixed": np.mean([lost.loc[latin, cjk], lost.loc[cjk, latin].T])}
        return pd.DataFrame(rows).T

    def odd_correlations(self, task: str) -> pd.DataFrame:
        """Correlations between models of what swapping the languages turns round."""
        order = self.grids[task, "mBERT"].index
        upper, odd = np.triu_indices(len(order), 1), {}
        for model in self.models:
            values = self.grids[task, model].loc[order, order].to_numpy()
            odd[model] = (values - values.T)[upper]
        return pd.DataFrame(odd).corr()

    @cached_property
    def english_leads(self) -> pd.DataFrame:
        """Points by which InfoXLM leads in cells with English and without, with Welch's interval.

        Of XNLI six languages, whose cells of mBERT are baselines in Table 9. Cells of one language
        are taken for independent, so intervals are too narrow.
        """
        leads = {}
        for task, model in (("PI", "mBERT"), ("PI", "XLM-R"), ("QA", "mBERT"), ("QA", "XLM-R")):
            lead = self.grids[task, "InfoXLM"] - self.grids[task, model]
            leads[task, f"InfoXLM over {model}"] = lead
        six = self.grids["NLI", "InfoXLM"].loc[_SIX, _SIX]
        leads["NLI", "InfoXLM over mBERT, six languages"] = six - self.starred("l1-l2")
        rows = {}
        for key, lead in leads.items():
            english = np.r_[lead.loc["en"].drop("en"), lead["en"].drop("en")]
            rest = lead.drop(index="en", columns="en").to_numpy()
            rest = rest[~np.eye(len(rest), dtype=bool)]
            interval = stats.ttest_ind(english, rest, equal_var=False).confidence_interval()
            rows[key] = english.mean(), rest.mean(), english.mean() - rest.mean(), *interval
        return pd.DataFrame(rows, index=["with English", "without", "difference", "low", "high"]).T

    # --- control tasks ----------------------------------------------------------------------------

    @cached_property
    def control_losses(self) -> pd.DataFrame:
        """What shuffled words cost, by model, task and setting."""
        original, control = self.original, self.control
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

    @cached_property
    def control_readings(self) -> pd.DataFrame:
        """What "a 4 % drop" (NLI) and "3 %" (QA) may mean: by unit, models and settings."""
        models = {"both models": ["mBERT", "XLM-R"], "mBERT": ["mBERT"], "XLM-R": ["XLM-R"]}
        settings = {"both settings": ["within", "across"], "within": ["within"],
                    "across": ["across"]}  # fmt: skip
        rows = {
            (unit, who, where): {
                task: self.control_losses.loc[(models[who], full, settings[where]), unit].mean()
                for task, full in (("NLI", "NLI (XNLI)"), ("QA", "QA (XQuAD)"))
            }
            for unit in ("per cent", "points") for who in models for where in settings
        }  # fmt: skip
        return pd.DataFrame(rows).T

    # --- Tables 4 and 9: what the starred rows can be of ------------------------------------------

    def starred(self, row: str) -> pd.DataFrame:
        """A row of the baseline, l1 by l2: "*-l2"; "l1-l2" are the cells that are printed."""
        return self.baseline[row].unstack().loc[_SIX, _SIX]

    def side(self, name: str) -> pd.Index:
        """The language of each pair on one side, l1 or l2."""
        return self.tuned.index.get_level_values({"l1": 0, "l2": 1}[name])

    @cached_property
    def sides(self) -> pd.DataFrame:
        """By language a: ``g``, one number in both baselines, and what it leaves of Table 1.

        row_a + column_a = (28 across_a + 2 within_a) / 15, so if g is the row, ``other side`` is
        the column; ``row less column, 5 cells`` is what the known cells say.
        """
        g = self.baseline["*-l2"].groupby("l1_premise").first()[_SIX]
        table, known = self.scores["NLI", "mBERT"][_SIX], self.starred("l1-l2")
        column = (28 * table.loc["across"] + 2 * table.loc["within"]) / 15 - g
        columns = {"g": g, "other side": column, "g less other": g - column}
        columns["row less column, 5 cells"] = known.mean(axis=1) - known.mean()
        return pd.DataFrame(columns)

    @cached_property
    def right(self) -> pd.DataFrame:
        """The baseline with the averages that its starred rows should have."""
        column, row = self.sides["other side"], self.sides["g"]
        return self.baseline.assign(
            **{"*-l2": column[self.side("l2")].to_numpy(), "l1-*": row[self.side("l1")].to_numpy()}
        )

    def evidence(self) -> pd.Series:
        """Whether the starred rows of the fine-tuned models are named wrongly as well.

        The first two without Arabic as l2.
        """
        tuned, l1, l2 = self.tuned, self.side("l1"), self.side("l2")
        usual, rest = l2 != "ar", (15 * tuned["l1-*"] - tuned["l1-l2"]) / 14
        row, column = (
            np.corrcoef(tuned["*-l2"][usual], self.sides.loc[codes[usual], name])[0, 1]
            for name, codes in (("g", l1), ("other side", l2))
        )
        return pd.Series(
            {
                "*-l2 with g(l1), row of the premise": row,
                "*-l2 with the column of l2": column,
                "l1-* with l2-l1": tuned["l1-*"].corr(tuned["l2-l1"]),
                "l1-* with l1-l2": tuned["l1-*"].corr(tuned["l1-l2"]),
                "l1-* to l2-l1, median distance": (tuned["l1-*"] - tuned["l2-l1"]).abs().median(),
                "l1-* to l1-l2, median distance": (tuned["l1-*"] - tuned["l1-l2"]).abs().median(),
                "row of l1 without l1-l2, lowest": rest.min(),
                "pairs where that is below 40": (rest < 40).sum(),
            },
            name="fine-tuned",
        )

    @cached_property
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

    def pair_points(self, pairs: Sequence[str]) -> pd.DataFrame:
        """Some pairs for a figure, beside the printed baseline and the one put right."""
        conditions = {
            "fine-tuned": self.tuned,
            "baseline, printed": self.baseline,
            "baseline, if it alone is mislabelled": self.right,
        }
        table = self.points(conditions, "condition").rename(columns={"language": "row"})
        table["pair"] = table["l1_premise"] + "-" + table["l2_hypothesis"]
        return pd.concat([table[table["pair"] == pair] for pair in pairs])


def _grid(frame: pd.DataFrame) -> tuple[tuple[str, str], pd.DataFrame]:
    """(task, model), and the grid of a figure; Figure 7 is printed with sentence 2 in the rows."""
    task, model = frame["task"].iloc[0].split()[0], frame["model"].iloc[0]
    sides = {"NLI": ("premise", "hypothesis"), "PI": ("sentence1", "sentence2"),
             "QA": ("context", "question")}  # fmt: skip
    first, second = (f"{side}_language" for side in sides[task])
    codes = frame[first].unique()
    cells = frame.pivot(index=first, columns=second, values="value").loc[codes, codes]
    return (task, model), cells


def _wide(frame: pd.DataFrame) -> pd.DataFrame:
    condition = frame["condition"].str.partition(" ")[0]  # "fine-tuned on l1-l2", "baseline ..."
    return frame.assign(condition=condition).pivot(
        index=["l1_premise", "l2_hypothesis"],
        columns=["condition", "evaluation_pair_as_printed"],
        values="value",
    )


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


def class_points(p: PrintedScores, task: str) -> pd.DataFrame:
    """Tables by class of a task for a figure."""
    tables = {
        (label, model): source[task, model]
        for label, source in zip(CLASSES[task], (p.first, p.second), strict=True)
        for model in p.models
    }
    return p.points(tables, "label", "model")


def _explained_by_sides(cells: pd.DataFrame) -> dict[str, float]:
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


def _not_below_both(cells: pd.DataFrame) -> dict[str, float]:
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
