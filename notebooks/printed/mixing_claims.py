"""The printed numbers of the within/across paper, and what follows from them of each other.

`PrintedScores` has what needs statistics, and tables for figures; what follows from the tables, and
what the paper says of them, are functions (`printed.evaluator`). All values are in per cent, as
printed.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd

from printed.evaluator import (
    CONSISTENCY,
    Paper,
    consistency,
    explained,
    number,
    off_diagonal,
    rows_by,
    sentence,
)
from xlx.measures import statistics
from xlx.measures.mixing import EVERYWHERE, across, within
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
    languages that differ, d′ comes out too small.
    """
    hits, rejections = stats.norm.ppf([first, second])
    sensitivity = hits + rejections
    return Detection(sensitivity, (rejections - hits) / 2, stats.norm.cdf(sensitivity / 2))


class PrintedScores(Paper):
    """Tables 1 to 14 and Figures 4 to 10 as transcribed.

    ``half`` is half a unit of the last place; ``paraphrases`` of ``labelled_alike`` pairs give the
    share of PAWS-X's first class.

    Attributes
    ----------
    tables : by name ("Table 1"), (model, task, setting, class) by language, "avg" and "original";
        in ``rows`` the languages alone.
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

    @cached_property
    def row_means(self) -> pd.DataFrame:
        """Averages and means of rows."""
        rows = {}
        for name, table in self.tables.items():
            for (model, task, setting, label), row in self.rows[name].iterrows():
                row, given = row.dropna(), table.loc[(model, task, setting, label), "avg"]
                what = f"{name}, {model} {task.split()[0]} {label} {setting}".replace(" all", "")
                rows[what] = {"printed": given, "mean": row.mean()}
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
        six = self.grids["NLI", "InfoXLM"] - self.baseline["l1-l2"].unstack()
        leads["NLI", "InfoXLM over mBERT, six languages"] = six.loc[self.six, self.six]
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
        """Tables by class of XNLI for a figure, with Wilson's intervals over test sentences."""
        tables = {
            (label, model): source["NLI", model]
            for label, source in zip(CLASSES["NLI"], (self.first, self.second), strict=True)
            for model in self.models
        }
        table = self.points(tables, "label", "model")
        n = np.where(table["label"] == CLASSES["NLI"][0], 1670, 3340)
        low, high = statistics.share_interval(table["score"] * n, n)
        return table.assign(low=low, high=high)

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


# --- what follows, and what is said --------------------------------------------------------------


def tables(files):
    keys = ["model", "task", "setting", "label_class"]
    return {
        f"Table {n}": file.pivot_table(index=keys, columns="language", values="value", sort=False)
        for n in range(1, 15)
        if "label_class" in (file := files[f"table{n}"])
    }


def rows(tables):
    return {
        name: part.drop(columns=["avg", "original"], errors="ignore")
        for name, part in tables.items()
    }


def tasks():
    return {"NLI": "Table 1", "PI": "Table 2", "QA": "Table 3"}


def of_all(models, rows):
    """By table and model: setting by language, of all classes."""
    return {
        (name, model): rows[name]
        .xs((model, "all"), level=["model", "label_class"])
        .droplevel("task")
        for name in ["Table 1", "Table 2", "Table 3", "Table 8"]
        for model in models
    }


def scores(tasks, models, of_all):
    return {(task, model): of_all[name, model] for task, name in tasks.items() for model in models}


def of_class(models, rows):
    """By task, model and class: setting by language."""
    by_class_in = {
        "NLI": ["Table 5", "Table 10", "Table 11"],
        "PI": ["Table 6", "Table 12", "Table 13"],
    }
    return {
        (task, model, label): rows[name]
        .xs((model, label), level=["model", "label_class"])
        .droplevel("task")
        for task, names in by_class_in.items()
        for model, name in zip(models, names, strict=True)
        for label in CLASSES[task]
    }


def first(models, of_class):
    return {
        (task, model): of_class[task, model, CLASSES[task][0]]
        for task in CLASSES
        for model in models
    }


def second(models, of_class):
    return {
        (task, model): of_class[task, model, CLASSES[task][1]]
        for task in CLASSES
        for model in models
    }


def grids(files):
    sides = {
        "NLI": ["premise", "hypothesis"],
        "PI": ["sentence1", "sentence2"],
        "QA": ["context", "question"],
    }
    grids = {}
    for part in (files[f"figure{n}"] for n in range(4, 11)):
        task = part["task"].iloc[0].split()[0]
        a, b = (f"{side}_language" for side in sides[task])
        codes = part[a].unique()
        cells = part.pivot(index=a, columns=b, values="value").loc[codes, codes]
        grids[task, part["model"].iloc[0]] = cells
    return grids


def cell_means(grids):
    """Means within and across by language of part 1, from the grids."""
    return {
        key: pd.DataFrame({"within": within(cells), "across": across(cells)}, index=cells.index).T
        for key, cells in grids.items()
    }


def wide(table4, table9):
    """Tables 4 and 9: (l1, l2) by condition and row."""
    return {
        k: part.assign(condition=part["condition"].str.split(" ").str[0]).pivot(
            index=["l1_premise", "l2_hypothesis"],
            columns=["condition", "evaluation_pair_as_printed"],
            values="value",
        )
        for k, part in {4: table4, 9: table9}.items()
    }


def nine(wide):
    return wide[9]


def tuned(nine):
    return nine["fine-tuned"][[*PAIRS_ROWS]]


def baseline(nine):
    return nine["baseline"][[*PAIRS_ROWS]]


def q_range(models, scores, tolerance, second, first):
    """Between which shares of the first class all scores of PAWS-X are means of classes."""
    table = {}
    for model in models:
        whole, high, low = (part["PI", model] for part in (scores, first, second))
        ends = [(whole + sign * tolerance - low) / (high - low) for sign in (-1, 1)]
        table[model] = {
            "q from": ends[0].clip(upper=ends[1]).max(axis=None),
            "q to": ends[1].clip(lower=ends[0]).min(axis=None),
        }
    return rows_by(table, "model")


def public_shares(pawsx, q_range, both):
    """Shares of pairs left out, and of paraphrases, in subsets of the public files."""
    public = pawsx.set_index("subset").assign(
        **{
            "left out, %": (100 * pawsx["left_out"] / (pawsx["pairs"] + pawsx["left_out"])).values,
            "q": (pawsx["paraphrases"] / pawsx["pairs"]).values,
        }
    )
    return public.assign(
        **{
            "fits both": public["q"].between(
                q_range.loc[both, "q from"].max(), q_range.loc[both, "q to"].min()
            )
        }
    )


def class_drops(first, second, share):
    """Points that each class brings to the loss across (section 4)."""
    table = {}
    for key in first:
        lost, gone = (part[key].loc["within"] - part[key].loc["across"] for part in (first, second))
        points, rest = share[key[0]] * lost.mean(), (1 - share[key[0]]) * gone.mean()
        table[key] = {
            "first class": points,
            "second class": rest,
            "share of the first": points / (points + rest),
            "second gains in": (gone < -1e-9).sum(),
            "of languages": len(gone),
        }
    return rows_by(table, "task", "model")


def averages(tasks, tables):
    return pd.concat([tables[name]["avg"] for name in tasks.values()])


def left_out(public_shares):
    return public_shares["left out, %"]


def whole_left_out(left_out):
    return left_out["both sentences in all languages"]


def infoxlm_by_class(first, second):
    return (first["NLI", "InfoXLM"] + 2 * second["NLI", "InfoXLM"]) / 3


def drop_table(models, of_all, tables):
    """What is lost across, in points and per cent."""
    table = {}
    quantities = {"NLI": "Table 1", "PI": "Table 2", "QA F1": "Table 3", "QA EM": "Table 8"}
    for (quantity, name), model in product(quantities.items(), models):
        start, across = (of_all[name, model].loc[setting] for setting in ("within", "across"))
        lost, average = start - across, tables[name]["avg"].xs((model, "all"), level=[0, 3])
        average = average.droplevel(0)
        table[quantity, model] = {
            "points": lost.mean(),
            "per cent": 100 * lost.mean() / start.mean(),
            "by printed averages": 100 * (1 - average["across"] / average["within"]),
            "half lost in": f"{(100 * lost / start > 50).sum()} of {len(start)}",
        }
    return rows_by(table, "quantity", "model")


def nli_within(models, scores):
    return pd.DataFrame({model: scores["NLI", model].loc["within"] for model in models})


def nli_lost(nli_within, models, scores):
    return nli_within - pd.DataFrame(
        {model: scores["NLI", model].loc["across"] for model in models}
    )


def turned(baseline):
    """The baseline of l2-l1, by the pair turned round."""
    return baseline["l2-l1"].swaplevel().reindex(baseline.index)


def mean_of_cells(scores):
    return (
        15 * scores["NLI", "mBERT"].loc["within"].mean()
        + 210 * scores["NLI", "mBERT"].loc["across"].mean()
    ) / 225


def both():
    return ["mBERT", "XLM-R"]


def off(grids):
    return {key: off_diagonal(cells) for key, cells in grids.items()}


def explained_by_sides(off):
    """Shares of the variance of cells that a term a language of each part explains."""
    shares = {}
    for key, cells in off.items():
        between = cells.stack().dropna()
        shares[key] = {f"part {place + 1}": explained(between, place) for place in (0, 1)}
    return rows_by(shares, "task", "model")


def in_one(grids):
    """By grid: scores within each language."""
    return {key: pd.Series(within(cells), index=cells.index) for key, cells in grids.items()}


def not_below_both(off, in_one):
    """How many cells are not below both languages within, and where English stands in them."""
    rows = {}
    for key, cells in off.items():
        high = cells.ge(in_one[key], axis=0) | cells.ge(in_one[key], axis=1)
        rows[key] = {
            "cells": cells.count().sum(),
            "not below both": high.values.sum(),
            "of them en second": high["en"].sum(),
            "of them en first": high.loc["en"].sum(),
            "en second, less within": (cells["en"] - in_one[key]).mean(),
        }
    return rows_by(rows, "task", "model")


def lost_between_scripts(models, off, in_one):
    """Points lost across in pairs of Latin, of East Asian and of mixed scripts."""
    table, latin, east = {}, ["en", "es", "de", "fr"], ["zh", "ja", "ko"]
    scripts = {"Latin": latin, "zh, ja, ko": east}
    for model in models:
        inside = in_one["PI", model] / 2
        lost = -off["PI", model].sub(inside, axis=0).sub(inside, axis=1)
        alike = {name: lost.loc[codes, codes].stack().mean() for name, codes in scripts.items()}
        mixed = pd.concat([lost.loc[latin, east].stack(), lost.loc[east, latin].stack()])
        table[model] = alike | {"mixed": mixed.mean()}
    return rows_by(table)


def relative(nli_lost, nli_within):
    return 100 * nli_lost / nli_within


def of_pair(relative, both):
    return relative.loc[["en", "de"], both]


def lost_share(drop_table, models):
    return drop_table["per cent"].unstack()[list(models)]


def qa_cells(not_below_both):
    return not_below_both.loc["QA"]


def control(rows):
    return pd.concat([rows["Table 7"], rows["Table 14"]]).droplevel("label_class")


def control_losses(tasks, rows, control):
    """What fine-tuning on shuffled words costs (Tables 7, 14)."""
    original = pd.concat([rows[name] for name in tasks.values()]).droplevel("label_class")
    original = original.loc[control.index]
    control_lost = original - control
    return pd.DataFrame(
        {
            "original": original.mean(axis=1),
            "shuffled": control.mean(axis=1),
            "points": control_lost.mean(axis=1),
            "per cent": 100 * control_lost.mean(axis=1) / original.mean(axis=1),
            "better shuffled": (control_lost < -1e-09).sum(axis=1),
            "languages": control_lost.notna().sum(axis=1),
        }
    )


def readings_7(control_losses):
    """The loss of Table 7 in each unit and setting that the text may mean."""
    where = {"both settings": ["within", "across"], "within": ["within"], "across": ["across"]}
    return rows_by(
        {
            (unit, setting): {
                task: control_losses.loc[("mBERT", full, where[setting]), unit].mean()
                for task, full in [("NLI", "NLI (XNLI)"), ("QA", "QA (XQuAD)")]
            }
            for unit in ["per cent", "points"]
            for setting in where
        }
    )


def six():
    return ["en", "de", "tr", "el", "es", "ar"]


def l1(tuned):
    return tuned.index.get_level_values(0)


def l2(tuned):
    return tuned.index.get_level_values(1)


def sides(baseline, six, scores):
    """Means of the row and of the column of a language in the grid of NLI, by Table 1."""
    g = baseline["*-l2"].groupby("l1_premise").first()[six]
    both_sides = (
        28 * scores["NLI", "mBERT"].loc["across", six]
        + 2 * scores["NLI", "mBERT"].loc["within", six]
    ) / 15
    return pd.DataFrame(
        {
            "g": g,
            "other side": both_sides - g,
        }
    )


def right(baseline, sides, l2, l1):
    """Baselines of Table 9 with the starred rows put right."""
    return baseline.assign(
        **{"*-l2": sides["other side"][l2].values, "l1-*": sides["g"][l1].values}
    )


def change(tuned, baseline, right):
    """What fine-tuning on a pair changes, by each reading of the baselines."""
    gained = [tuned - baseline, tuned - right]
    is_then = pd.Series([*PAIRS_ROWS], index=[*PAIRS_ROWS]).replace(
        {"*-l2": "l1-*", "l1-*": "l2-*"}
    )
    return pd.DataFrame(
        {
            "as printed": gained[0].mean(),
            "pairs better": (gained[0] > 1e-09).sum(),
            "baselines wrong": gained[1].mean(),
            "pairs better, 2": (gained[1] > 1e-09).sum(),
            "is then": is_then,
            "all wrong": gained[0].mean(),
            "pairs better, 3": (gained[0] > 1e-09).sum(),
        },
        index=[*PAIRS_ROWS],
    ).rename_axis(tuned.columns.name)


@number("averages, by their rows", "{}")
def averages_of_rows(row_means, tolerance):
    yield (), row_means["mean"], row_means["printed"], tolerance


@number("{}, {}, by cells", "{2}, {3}")
def means_of_cells(tasks, grids, cell_means, scores, half, tolerance):
    for (task, model), cells in grids.items():
        for setting, room in [("within", half), ("across", tolerance)]:
            printed = scores[task, model].loc[setting, cells.index]
            names = tasks[task], model, setting
            yield names, cell_means[task, model].loc[setting], printed, room


@number("{}, {}, by class", "{2}, {3}")
def means_of_classes(tasks, first, second, share, scores, tolerance):
    for (task, model), part in first.items():
        means = share[task] * part + (1 - share[task]) * second[task, model]
        for setting, row in means.iterrows():
            printed = scores[task, model].loc[setting, means.columns]
            yield (tasks[task], model, setting), row, printed, tolerance


@number("Figure 4, by Table 11", "{}, {}")
def figure_4_within(infoxlm_by_class, cell_means, tolerance):
    means = cell_means["NLI", "InfoXLM"].loc["within"]
    yield ("within",), infoxlm_by_class.loc["within"], means, tolerance


@number("Figure 4, by Table 11", "{}, {}", kind=CONSISTENCY)
def figure_4_across(infoxlm_by_class, cell_means, tolerance):
    means = cell_means["NLI", "InfoXLM"].loc["across"]
    yield ("across",), infoxlm_by_class.loc["across"], means, tolerance


@sentence(
    "Table 7",
    "column 'original' refers to Tables 1 to 3",
    "The original column refers to the results in Tables 1–3",
    "original = avg",
)
def original_column(tables, averages):
    repeated = (
        tables["Table 7"]["original"].dropna()
        == averages[tables["Table 7"]["original"].dropna().index]
    )
    return repeated, f"{sum(repeated)} of {len(repeated)} are their printed averages"


@sentence(
    "3.2",
    "only parallel pairs of PAWS-X are used, so less than 0.5 % on average are excluded",
    "resulting in the exclusion of a small number of examples (less than 0.5% on "
    "average) from the test sets",
    "left out / 2,000 < 0.005, of all languages and of a language on average",
)
def left_out_of_pawsx(whole_left_out, number, left_out, public_shares):
    single_left_out = (
        left_out[left_out.index.str.startswith("both sentences in ")]
        .drop("both sentences in all languages")
        .mean()
    )
    parallel_fits = public_shares.loc["both sentences in all languages", "fits both"]
    return (
        [whole_left_out < number("wa_t11"), single_left_out < number("wa_t11")],
        f"{whole_left_out:.2f} % lack a sentence in some language, {single_left_out:.2f} % in "
        f"one on average; labels differ in {left_out['same label in German and Chinese']:.2f} "
        "%; and the scores imply a share of paraphrases that the parallel pairs "
        f"{('have' if parallel_fits else 'do not have')}",
    )


@sentence(
    "4, Table 5",
    "both classes contribute almost equally within (to 10 points)",
    "both classes have an almost equal contribution to the performance in the within setup",
    "|s₁ - s₂| < 10, on average and in each language",
)
def equal_classes(first, second):
    entailment, no_entailment = (part["NLI", "mBERT"].loc["within"] for part in (first, second))
    class_gap = entailment - no_entailment
    return [abs(class_gap.mean()) < 10, class_gap.abs().max() < 10], (
        f"{entailment.mean():.1f} and {no_entailment.mean():.1f} on average; accuracies "
        f"differ by {class_gap.min():.1f} ({class_gap.idxmin()}) to {class_gap.max():.1f} ("
        f"{class_gap.idxmax()}), by less than 10 in {(class_gap.abs() < 10).sum()} of "
        f"{len(class_gap)} languages"
    )


@sentence(
    "4",
    "most of the drop is of entailment / paraphrase, in all models",
    "the drop in performance is primarily affected by the entailment class",
    "q d₁ / d > ½",
)
def entailment_drops(class_drops):
    share_of_first = class_drops["share of the first"]
    return share_of_first > 0.5, f"shares {share_of_first.min():.2f} to {share_of_first.max():.2f}"


@sentence(
    "4",
    "the drop of entailment is more pronounced for low-resource languages",
    "primarily affected by the entailment class and is more pronounced for low-resource languages",
    "d₁ > median of d₁, of Swahili and of Urdu in all models",
)
def entailment_of_low_resources(models, first):
    entailment_lost = {
        model: first["NLI", model].loc["within"] - first["NLI", model].loc["across"]
        for model in models
    }
    listed = "; ".join(
        f"{model}: largest in {drop.idxmax()} ({drop.max():.1f}), "
        f"smallest in {drop.idxmin()} ({drop.min():.1f})"
        for model, drop in entailment_lost.items()
    )
    return (
        [
            all(drop[code] > drop.median() for drop in entailment_lost.values())
            for code in ["sw", "ur"]
        ],
        listed,
    )


@consistency("Tables 3, 8", "EM is at most F1 (by definition)", "F1 - EM ≥ 0")
def em_and_f1(rows):
    f1_less_em = rows["Table 3"].droplevel("label_class") - rows["Table 8"].droplevel("label_class")
    return f1_less_em.min(axis=None) >= 0, f"below by {f1_less_em.min(axis=None):.1f} or more"


@consistency("Tables 4, 9", "Table 4 is part of Table 9", "the same numbers")
def table_4_in_9(wide, nine):
    four = wide[4]
    same_four = four == nine.loc[four.index, four.columns]
    return same_four.all(axis=None), f"{same_four.values.sum()} of {same_four.size} numbers"


@consistency(
    "Table 9",
    "the baseline of a pair is that of the other pair swapped",
    "s(l1, l2) of a pair = s(l2, l1) of the other",
)
def swapped_baseline(baseline, turned):
    return baseline["l1-l2"] == turned, f"{(baseline['l1-l2'] == turned).sum()} of {len(turned)}"


@consistency("Table 9", "baseline of *-l2 is one number for each l2", "a mean of a column")
def column_baseline(baseline):
    return (
        baseline["*-l2"].groupby("l2_hypothesis").nunique() == 1,
        f"up to {baseline['*-l2'].groupby('l2_hypothesis').nunique().max()} for one l2",
    )


@consistency("Table 9", "baseline of l1-* is one number for each l1", "a mean of a row")
def row_baseline(baseline):
    return (
        baseline["l1-*"].groupby("l1_premise").nunique() == 1,
        f"up to {baseline['l1-*'].groupby('l1_premise').nunique().max()} for one l1",
    )


@sentence(
    "Table 9",
    "*-* is the average over all languages",
    "The rows that include * show the average performance over all languages",
    "(15 within + 210 across) / 225",
)
def average_baseline(mean_of_cells, baseline, tolerance):
    mean_of_baseline = baseline["*-*"].max()
    return (
        abs(mean_of_cells - mean_of_baseline) <= tolerance,
        f"all 225 cells by Table 1: {mean_of_cells:.2f}, printed {mean_of_baseline}",
    )


@sentence(
    "3.4",
    "fine-tuning on a pair is no better on the same pair swapped",
    "the model cannot even achieve better performance on the same language pair "
    "when the premise and hypothesis languages have been swapped",
    "l2-l1 less its baseline ≤ 0, on average and in each pair",
)
def swapped_pairs(change, tuned, baseline):
    better_swapped = (tuned["l2-l1"] > baseline["l2-l1"]).groupby("l2_hypothesis").sum()
    return [change.loc["l2-l1", "as printed"] <= 0, not better_swapped.any()], (
        f"{change.loc['l2-l1', 'as printed']:.1f} on average; better in {better_swapped.sum()}"
        f" of {len(tuned)} pairs, {better_swapped['ar']} of them with Arabic as l2"
    )


@sentence(
    "3.4",
    "fine-tuning on a pair does not help with other languages",
    "does not help the model to generalize to other languages",
    "starred row less its baseline ≤ 0 on average, as printed and with baselines put right",
)
def other_pairs(change, tuned):
    stars = ["*-l2", "l1-*", "*-*"]
    return change.loc[stars, ["as printed", "baselines wrong"]] <= 0, (
        f"*-l2: by {change.loc['*-l2', 'as printed']:.1f} in "
        f"{change.loc['*-l2', 'pairs better']} of {len(tuned)} pairs as printed, by "
        f"{change.loc['*-l2', 'baselines wrong']:.1f} in "
        f"{change.loc['*-l2', 'pairs better, 2']} if its baseline is wrong; if all is, "
        f"{change.loc['*-l2', 'is then']} gains so and {change.loc['l1-*', 'is then']} loses "
        f"{-change.loc['l1-*', 'all wrong']:.1f}; *-* {change.loc['*-*', 'as printed']:.1f}"
    )


@sentence(
    "3.3",
    "InfoXLM relies on the context more than on the question, the others not",
    "the model relies more on the context than the question",
    "R² of the context > R² of the question",
)
def context_or_question(explained_by_sides):
    sides_of_qa = explained_by_sides.loc["QA", ["part 1", "part 2"]]
    context_more = sides_of_qa["part 1"] > sides_of_qa["part 2"]
    return (
        [context_more["InfoXLM"], not context_more["mBERT"], not context_more["XLM-R"]],
        f"context / question: {sides_of_qa['part 1'].round(2).tolist()} / "
        f"{sides_of_qa['part 2'].round(2).tolist()}",
    )


@sentence(
    "3.1",
    "XNLI has 397k pairs to learn and 5k to test",
    "the training set has 397k samples in English",
    "public sizes, in thousands",
)
def sizes_of_xnli(number):
    public_sizes = {"learn": 392702, "test": 5010}
    return (
        [
            round(public_sizes["learn"] / 1000) == number("wa_t09"),
            round(public_sizes["test"] / 1000) == number("wa_t10"),
        ],
        f"the public files have {public_sizes['learn']:,} and {public_sizes['test']:,}",
    )


@sentence(
    "3.1",
    "none of the previous research gave multilingual Transformers inputs of several languages",
    "To the best of our knowledge, none of the previous research has evaluated "
    "the cross-linguality of MMTs by employing instances involving multiple "
    "languages in downstream tasks",
    "earlier work = 0",
)
def previous_research():
    earlier_work = {
        "Lewis et al. (2020), MLQA": "XLM, questions and contexts in all pairs of languages (G-XLT)"
    }
    return (
        len(earlier_work) == 0,
        f"{'; '.join(f'{who}: {what}' for who, what in earlier_work.items())}",
    )


@sentence(
    "3.1",
    "within a language, accuracy is lower for low-resource languages like Swahili",
    "lower accuracy observed for low-resource languages like Swahili compared to "
    "high-resource ones",
    "within of sw < within of all others, in each model",
)
def low_resource_within(nli_within):
    listed = "; ".join(
        f"{model}: {part['sw']:.1f}, median {part.median():.1f}; "
        f"Urdu {int(part.rank()['ur'])} of {len(part)} from below"
        for model, part in nli_within.items()
    )
    return nli_within.idxmin() == "sw", listed


@sentence(
    "3.1",
    "English and German: about 17% lost (mBERT, XLM-R)",
    "Even for high-resource languages within the same language family (e.g., "
    "English and German), the average performance declines by approximately 17%",
    "|mean of d / within - 17 %| < 1",
)
def english_and_german(of_pair, number, nli_lost, both):
    return abs(of_pair.mean(axis=None) - number("wa_t01")) < 1, (
        f"{of_pair['mBERT'].mean():.1f} % and {of_pair['XLM-R'].mean():.1f} %, mean "
        f"{of_pair.mean(axis=None):.1f} %; in points "
        f"{nli_lost.loc[['en', 'de'], both].mean(axis=None):.1f}"
    )


@sentence(
    "3.1",
    "the drop is even more pronounced for low-resource languages such as Swahili",
    "This drop is even more pronounced for low-resource languages such as Swahili",
    "d / within of Swahili > mean of English and German",
)
def drop_of_swahili(relative, both, of_pair, nli_lost):
    swahili_rank = nli_lost.rank(ascending=False).loc["sw"].astype(int)
    return relative.loc["sw", both] > of_pair.mean(), (
        f"there {relative.loc['sw', 'mBERT']:.1f} % (mBERT) and "
        f"{relative.loc['sw', 'XLM-R']:.1f} % (XLM-R); rank of its drop in points, of "
        f"{len(nli_lost)}: {swahili_rank.to_dict()}"
    )


@sentence(
    "3.2",
    "across, most is lost with scripts other than Latin",
    "particularly for non-Latin script languages, where their performance is noticeably affected",
    "points lost: mixed > Latin, and zh, ja, ko > Latin, in each model",
)
def other_scripts(lost_between_scripts):
    listed = "; ".join(
        f"{model}: Latin {part['Latin']:.1f}, zh ja ko {part['zh, ja, ko']:.1f}, "
        f"mixed {part['mixed']:.1f}"
        for model, part in lost_between_scripts.T.items()
    )
    return (
        [
            *(lost_between_scripts["mixed"] > lost_between_scripts["Latin"]),
            *(lost_between_scripts["zh, ja, ko"] > lost_between_scripts["Latin"]),
        ],
        listed,
    )


@sentence(
    "Table 2",
    "on average 17% lost (mBERT, XLM-R)",
    "there is, on average, a 17% drop in performance when the sentences are "
    "provided in two different languages",
    "|mean of d / within - 17 %| < 1",
)
def drop_of_table_2(lost_share, both, number):
    return abs(lost_share.loc["PI", both].mean() - number("wa_t02")) < 1, (
        f"{lost_share.loc['PI', 'mBERT']:.1f} % and {lost_share.loc['PI', 'XLM-R']:.1f} %, "
        f"mean {lost_share.loc['PI', both].mean():.1f} %"
    )


@sentence(
    "Table 3",
    "more than 50% of F1 lost (mBERT, XLM-R)",
    "we observe more than 50% drop in their performance",
    "d / within > 50 %",
)
def drop_of_table_3(lost_share, both, number):
    return lost_share.loc["QA F1", both] > number("wa_t03"), (
        f"{lost_share.loc['QA F1', 'mBERT']:.1f} % and {lost_share.loc['QA F1', 'XLM-R']:.1f} %"
    )


@sentence(
    "Table 8",
    "more than 50% of EM lost (mBERT, XLM-R)",
    "There is a more than 50% drop in performance under the across evaluation method",
    "d / within > 50 %",
)
def drop_of_table_8(lost_share, both, number):
    return lost_share.loc["QA EM", both] > number("wa_t04"), (
        f"{lost_share.loc['QA EM', 'mBERT']:.1f} % and {lost_share.loc['QA EM', 'XLM-R']:.1f} %"
    )


@sentence(
    "3.1",
    "InfoXLM loses least",
    "exhibits less of a performance drop in the across setup",
    "argmin of d / within",
)
def infoxlm_loses_least(lost_share):
    least_lost = lost_share.idxmin(axis=1) == "InfoXLM"
    return least_lost, f"in {least_lost.sum()} of {len(least_lost)} quantities"


@sentence(
    "3.3",
    "across is below both languages, but for English questions, and otherwise in InfoXLM",
    "exception when the question is in English in the across language setting",
    "s_ab < min(s_aa, s_bb) but where b = en; in InfoXLM but where a = en or b = en",
)
def english_questions(qa_cells, both):
    with_english = qa_cells["of them en second"] + qa_cells["of them en first"]
    without_english = qa_cells["not below both"] - with_english
    return (
        [
            *(qa_cells["not below both"] == qa_cells["of them en second"])[both],
            without_english["InfoXLM"] == 0,
        ],
        f"{qa_cells['cells'].sum() - qa_cells['not below both'].sum()} of "
        f"{qa_cells['cells'].sum()} cells are below; of the others "
        f"{qa_cells.loc[both, 'of them en second'].sum()} are mBERT's and XLM-R's, with "
        f"English questions, {with_english['InfoXLM']} InfoXLM's with English, and "
        f"{without_english.sum()} neither",
    )


@sentence(
    "3.3",
    "with English questions mBERT and XLM-R are close to within of the context (5 points)",
    "the performance remains close to the within setup of the context language in mBERT and XLM-r",
    "|mean of s_a,en - s_aa| < 5",
)
def close_to_the_context(qa_cells, both, drop_table):
    near_context = qa_cells.loc[both, "en second, less within"]
    return near_context.abs() < 5, (
        f"{near_context.round(1).to_dict()}; all of across: "
        f"{(-drop_table.loc['QA F1', 'points'][both]).round(1).to_dict()}"
    )


@sentence(
    "3.1",
    "InfoXLM's objective has mostly helped pairs with English (XNLI)",
    "the cross-lingual objective has mostly helped the performance of pairs including English",
    "lead with English - lead without > 0, if its interval leaves out 0",
)
def pairs_with_english(english_leads):
    nli_lead = english_leads.loc["NLI"].iloc[0]
    return (
        [] if nli_lead["low"] < 0 < nli_lead["high"] else nli_lead["difference"] > 0,
        f"six languages of Table 9: by {nli_lead['with English']:.1f} points with English, "
        f"{nli_lead['without']:.1f} without, difference {nli_lead['difference']:.1f} ("
        f"{nli_lead['low']:.1f} to {nli_lead['high']:.1f})",
    )


@sentence(
    "4, Figure 1",
    "the words of the hardest questions are twice as far from the answer, "
    "consistently across languages",
    "the average distance for the most challenging instances is twice that of the easiest ones",
    "ratio of distances, by language",
)
def distant_words():
    return [], "Figures 1, 11 and 12 are curves: no number is printed"


def _by_reading(losses, printed):
    """Whether each reading of a loss is the printed one, within half a point, and all readings."""
    listed = ", ".join(f"{loss:.1f} ({unit}, {where})" for (unit, where), loss in losses.items())
    return (losses - printed).abs() < 0.5, listed


@sentence(
    "5",
    "NLI: a slight 4% drop (Table 7, by any reading)",
    "we observe a slight 4% drop in accuracy",
    "|loss - 4 %| < 0.5 by reading",
)
def shuffled_nli(readings_7, number):
    return _by_reading(readings_7["NLI"], number("wa_t05"))


@sentence(
    "5",
    "QA: a drop of approximately 3% (Table 7, by any reading)",
    "the QA model exhibits a drop of approximately 3%",
    "|loss - 3 %| < 0.5 by reading",
)
def shuffled_qa(readings_7, number):
    return _by_reading(readings_7["QA"], number("wa_t06"))


@sentence(
    "5",
    "PI: random performance",
    "the PI task stands out with its random performance",
    "|control - (1 - q)| < 2",
)
def shuffled_pi(control, share):
    majority = 100 * (1 - share["PI"])
    from_majority = (control.xs("PI (PAWS-X)", level="task") - majority).abs().max(axis=None)
    return (
        from_majority < 2,
        f"majority class {majority:.1f}; farthest from it by {from_majority:.1f}",
    )


@sentence(
    "Table 14",
    "the drop in performance is negligible (under 5 points; XLM-R, all tasks)",
    "the drop in the performance is negligible",
    "original - control < 5",
)
def negligible_drop(control_losses):
    most_lost = control_losses.loc["XLM-R", "points"].groupby("task").max()
    listed = ", ".join(
        f"{task.split()[0]} {points:.1f} at most" for task, points in most_lost.items()
    )
    return most_lost < 5, listed
