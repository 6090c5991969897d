"""Tables 4 and 9 of the within/across paper: fine-tuning on a pair of languages, and its baselines.

The baseline is one model, so its grid s is one, and *-l2 is the mean of its column l2 and cannot
depend on l1, l1-* that of its row l1 and not on l2. All values are in per cent, as printed.
"""

from functools import cached_property

import numpy as np
import pandas as pd
from scipy import stats

from xlx.mixing.mixed_pairs import PAIRS_ROWS
from xlx.mixing.published import PrintedScores
from xlx.printed import PRINTED_SLACK

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
