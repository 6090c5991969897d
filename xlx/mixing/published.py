"""The printed numbers of the within/across paper, and what follows from them of each other.

`PrintedScores` reads the transcribed tables and grids; the functions below it recompute printed
numbers from others, within what rounding allows (`xlx.printed`). Drops are in `published_drops`,
Tables 4 and 9 in `published_pairs`; what the paper says in words is in `xlx.mixing.claims`.
All values are in per cent, as printed.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from xlx.core import paths
from xlx.mixing.reading import detection
from xlx.mixing.within_across import EVERYWHERE, across, within
from xlx.printed import PRINTED_SLACK, Audit

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
