"""The printed numbers of the within/across paper, and what follows from them of each other.

`PrintedScores` has what needs statistics, and tables for figures; what follows by a formula is in
``names.csv`` of the folder, what the paper says in ``claims.csv`` (`printed.evaluator`). All values
are in per cent, as printed.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from printed.evaluator import PRINTED_SLACK, Paper, off_diagonal, rows_by
from xlx.measures.mixing import EVERYWHERE, MixingError, across, within
from xlx.results import paths
from xlx.results.deferred import deferred

stats = deferred("scipy.stats")

#: The classes of a task, the first one first.
CLASSES = {"NLI": ("Entailment", "NotEntailment"), "PI": ("Paraphrase", "NonParaphrase")}
#: The rows of Tables 4 and 9: language of part 1, language of part 2, * for all of them.
PAIRS_ROWS = ("l1-l2", "l2-l1", "*-l2", "l1-*", "*-*")


class Detection(NamedTuple):
    """How far apart two classes are for a model, and which it prefers; in the accuracies' shape."""

    sensitivity: np.ndarray  # d′, in standard deviations; 0 if the model tells nothing
    criterion: np.ndarray  # above 0 it prefers the second answer, below 0 the first
    unbiased: np.ndarray  # both accuracies, in [0, 1], that it would have with no preference


def detection(first: np.ndarray, second: np.ndarray) -> Detection:
    """What a model tells of two classes, apart from which answer it prefers (Tables 6, 12, 13).

    Signal detection (Green and Swets 1966): the model has one normal quantity of unit variance for
    each class and answers "first" above a threshold. With h and r the accuracies of the first and
    the second class and z the normal quantile,

        d′ = z(h) + z(r),   c = (z(r) - z(h)) / 2,

    and with no preference (c = 0) both accuracies would be Φ(d′ / 2). Of a mean over models or
    languages that differ, d′ comes out too small. MixingError for an accuracy of 0 or 1 or beyond.
    """
    first, second = np.asarray(first, float), np.asarray(second, float)
    if not all(((values > 0) & (values < 1)).all() for values in (first, second)):
        raise MixingError("an accuracy is not between 0 and 1, so that it has no normal quantile")
    hits, rejections = stats.norm.ppf(first), stats.norm.ppf(second)
    sensitivity = hits + rejections
    return Detection(sensitivity, (rejections - hits) / 2, stats.norm.cdf(sensitivity / 2))


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
    classes, pairs_rows = CLASSES, [*PAIRS_ROWS]
    within, across = staticmethod(within), staticmethod(across)

    def __init__(
        self, half: float = 0.05, paraphrases: int = 886, labelled_alike: int = 1983
    ) -> None:
        super().__init__(paths.PUBLISHED / "within_across")
        self.half, self.tolerance = half, 2 * half  # of a number, of a mean of rounded numbers
        self.share = {"NLI": 1 / 3, "PI": paraphrases / labelled_alike}

    @cached_property
    def row_means(self) -> pd.DataFrame:
        """Averages and means of rows; ``fits without``: the one language whose absence would."""
        rows = {}
        for name, table in self.tables.items():
            for (model, task, setting, label), row in self.rows[name].iterrows():
                row, given = row.dropna(), table.loc[(model, task, setting, label), "avg"]
                others = (row.sum() - row) / (len(row) - 1)
                fits = others.index[(others - given).abs() <= self.tolerance + PRINTED_SLACK]
                what = f"{name}, {model} {task.split()[0]} {label} {setting}".replace(" all", "")
                fits = ", ".join(fits) or "none"
                rows[what] = {"printed": given, "mean": row.mean(), "fits without": fits}
        return rows_by(rows)

    @cached_property
    def told_apart(self) -> pd.DataFrame:
        """What is told of both classes apart from which is preferred: means over languages.

        A row for each task and model: d′ and c within and across and, of PAWS-X, the points that
        the mean of both classes loses, by sensitivity and by preference (`detection`). Of XNLI d′
        is a lower bound and the rest is missing: "not entailed" is right there only if it is the
        right one of two labels, so that the rate of false "entailed" is smaller than what is wrong.
        """
        rows = {}
        for key in self.first:
            hits, rejections = (part[key] / 100 for part in (self.first, self.second))
            parts = (pd.DataFrame(x, hits.index, hits.columns) for x in detection(hits, rejections))
            d, c, unbiased = (part.mean(axis=1) for part in parts)
            row = {("d′", name): d[name] for name in ("within", "across")}
            if key[0] == "PI":
                row |= {("c", name): c[name] for name in ("within", "across")}
                whole, sensed = (
                    100 * (part["within"] - part["across"])
                    for part in ((hits + rejections).mean(axis=1) / 2, unbiased)
                )
                row |= {("lost", "in all"): whole, ("lost", "sensitivity"): sensed}
                row |= {("lost", "preference"): whole - sensed}
            rows[key] = row
        table = rows_by(rows, "task", "model")
        return table.set_axis(pd.MultiIndex.from_tuples(table), axis=1)

    @cached_property
    def english_leads(self) -> pd.DataFrame:
        """Points by which InfoXLM leads in cells with English and without, with Welch's interval.

        Of XNLI six languages, whose cells of mBERT are baselines in Table 9. Cells of one language
        are taken for independent, so intervals are too narrow.
        """
        compared = [("PI", "mBERT"), ("PI", "XLM-R"), ("QA", "mBERT"), ("QA", "XLM-R")]
        leads = {
            (task, f"InfoXLM over {model}"): self.grids[task, "InfoXLM"] - self.grids[task, model]
            for task, model in compared
        }
        six = self.grids["NLI", "InfoXLM"].loc[self.six, self.six] - self.starred["l1-l2"]
        leads["NLI", "InfoXLM over mBERT, six languages"] = six
        rows = {}
        for key, lead in leads.items():
            off = off_diagonal(lead)
            english = pd.concat([off.loc["en"], off["en"]]).dropna()
            rest = off.drop(index="en", columns="en").stack().dropna()
            low, high = stats.ttest_ind(english, rest, equal_var=False).confidence_interval()
            means = {"with English": english.mean(), "without": rest.mean()}
            difference = english.mean() - rest.mean()
            rows[key] = means | {"difference": difference, "low": low, "high": high}
        return rows_by(rows)

    # --- for figures ------------------------------------------------------------------------------

    def points(self, tables: Mapping[object, pd.DataFrame], *names: str) -> pd.DataFrame:
        """Rows of tables by key for a figure: shares, each between what rounding leaves."""
        table = pd.concat(tables, names=names).rename_axis(columns="language").stack()
        table = table.rename("score").div(100).reset_index()
        return table.assign(
            low=table["score"] - self.half / 100, high=table["score"] + self.half / 100
        )

    def class_points(self) -> pd.DataFrame:
        """Tables by class of XNLI for a figure."""
        tables = {
            (label, model): source["NLI", model]
            for label, source in zip(CLASSES["NLI"], (self.first, self.second), strict=True)
            for model in self.models
        }
        return self.points(tables, "label", "model")

    def grid_points(self, task: str, languages: Sequence[str] | None = None) -> pd.DataFrame:
        """The grids of a task for a figure: ``model``, ``first``, ``second``, ``score``, a share.

        Of some ``languages``: those that were printed, with the means of rows and columns.
        """
        grids = {model: cells for (name, model), cells in self.grids.items() if name == task}
        if languages is not None:
            for model, cells in grids.items():
                codes = [code for code in languages if code in cells]
                cells = cells.loc[codes, codes]
                cells.loc[EVERYWHERE] = cells.mean()
                grids[model] = cells.assign(**{EVERYWHERE: cells.mean(axis=1)})
        table = pd.concat(grids, names=["model", "first"]).rename_axis(columns="second")
        return table.stack().rename("score").div(100).reset_index()
