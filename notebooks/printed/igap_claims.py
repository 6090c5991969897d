"""The printed averages of the IGAP paper, taken alike (points, as printed).

What follows by a formula is in ``names.csv`` of the folder, what the paper says in ``claims.csv``
(`printed.evaluator`).
"""

from functools import cached_property

import numpy as np
import pandas as pd

from printed.evaluator import Paper
from shared import ranking
from xlx.results import paths
from xlx.results.deferred import deferred

stats = deferred("scipy.stats")

#: Half a unit in the last place.
HALF_UNIT = 0.05
#: Examples of the validation sets.
VALIDATION_SIZES = {"XNLI": 2490, "PAWS-X": 2000}


class IgapTables(Paper):
    """The transcribed tables.

    Attributes
    ----------
    target_tables : by title ("XNLI", "PAWS-X, algorithms"; Tables 3 and 6 to 9), row by target, and
        the columns ``avg`` and ``accuracy``.
    compared : the comparisons that the paper makes: table, row, other table, its row.
    transfer_gaps : Figure 6: ``source``, ``target``, ``transfer_gap`` in [-1, 1].
    """

    def __init__(self) -> None:
        super().__init__(paths.PUBLISHED / "igap")

    @cached_property
    def recomputed_averages(self) -> pd.DataFrame:
        """Which divisor gives each printed average: ``n`` or n - 1; by (table, row).

        ``half``: half width of the widest 95 % interval that the examples leave, all languages
        being wrong on the same ones.
        """
        tables = {}
        for title, table in self.target_tables.items():
            entries, printed = table.drop(columns=["avg", "accuracy"]), table["avg"]
            n, total, share = entries.shape[1], entries.sum(axis=1), entries / 100
            size = VALIDATION_SIZES[title.split(",")[0].split(" + ")[-1]]
            fits = [(total / k - printed).abs() <= HALF_UNIT * (1 + n / k) for k in (n - 1, n)]
            divisor = fits[0].map({True: f"{n - 1} or ", False: ""})
            divisor += fits[1].map({True: f"{n}", False: ""})
            tables[title] = pd.DataFrame(
                {
                    "n": n,
                    "printed": printed,
                    "sum / n": total / n,
                    "sum / (n - 1)": total / (n - 1),
                    "divisor": divisor.str.removesuffix(" or "),
                    "half": 196 * np.sqrt(share * (1 - share) / size).mean(axis=1),
                }
            )
        return pd.concat(tables, names=["table", "row"])

    def row_changes(self) -> pd.DataFrame:
        """What averages taken alike change in the comparisons of the paper.

        ``t``: half width of the 95 % interval with the languages as replicates; ``widest``: that
        which the examples leave, errors of the two being independent and in all languages on the
        same ones.
        """
        rows, half = [], self.recomputed_averages["half"]
        for title, first, other, second in self.compared:
            a, b = self.target_tables[title].loc[first], self.target_tables[other].loc[second]
            both = (a - b).drop(["avg", "accuracy"])
            low, high = stats.ttest_1samp(both, 0).confidence_interval()
            widest = np.hypot(half[title, first], half[other, second])
            rows.append(
                {
                    "table": title,
                    "from → to": f"{first} → {second}" + ("" if title == other else f" ({other})"),
                    "printed": a["avg"] - b["avg"],
                    "alike": both.mean(),
                    "t": (high - low) / 2,
                    "widest": "" if "MNLI" in title + other else f"{widest:.2f}",
                    "lower in": f"{(both.round(1) > 0).sum()} of {len(both)}",
                    "accuracy gained": b["accuracy"] - a["accuracy"],
                }
            )
        return pd.DataFrame(rows).set_index(["table", "from → to"])

    def other_sources_order(self) -> pd.Series:
        """How well the other sources' mean orders the targets of each source by Figure 6."""
        gaps = self.transfer_gaps.query("source != target").set_index(["source", "target"])
        gold = -gaps["transfer_gap"]
        accuracy = 100 * ranking.accuracies(gold, ranking.other_sources(gold).to_frame()).iloc[:, 0]
        least = {f"least ({accuracy.idxmin()})": accuracy.min()}
        return pd.Series({"mean": accuracy.mean(), **least})
