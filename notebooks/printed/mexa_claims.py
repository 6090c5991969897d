"""The printed numbers of the MEXA paper, and what follows from them of each other.

`MexaTables` has what needs statistics; what follows by a formula is in ``names.csv`` of the folder,
what the paper says in ``claims.csv`` (`printed.evaluator`).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pandas as pd

from printed.evaluator import PRINTED_SLACK, Paper, rows_by
from shared.mexa_tables import chance_table
from xlx.measures.mexa import EDGES, bands, expected
from xlx.results import paths
from xlx.results.deferred import deferred
from xlx.text import parallel

stats = deferred("scipy.stats")


def shares_left(
    entries: pd.Series, factor: float, half: float, half_factor: float, n: int = 100
) -> pd.DataFrame:
    """Which shares k / n an entry leaves that is printed as the share times a factor.

    ``entries`` are printed within ``half`` of the product, the factor within ``half_factor``. With
    their index: ``least`` and ``most`` (in [0, 1]; NaN where no k fits) and ``count`` of the k that
    fit.
    """
    share = np.arange(n + 1) / n
    apart = np.abs(share * factor - entries.to_numpy(float)[:, None])
    fits = apart <= half + half_factor * share + PRINTED_SLACK
    left = pd.DataFrame(np.where(fits, share, np.nan), index=entries.index)
    ends = {"least": left.min(axis=1), "most": left.max(axis=1)}
    return pd.DataFrame(ends).assign(count=fits.sum(axis=1))


class MexaTables(Paper):
    """The transcribed tables, with their rows named as FLORES-200 and Table 1 name them.

    Attributes
    ----------
    table_1 : (group, item) by model and "AVG"; ``sizes``: languages that a row is averaged over.
    table_2, table_5 : correlations by data, embedding, pooling of layers and task; of Table 5 by
        column: 1 to 8 (one of nine is lost) and 10, the average.
    table_6 : label by model and "AVG"; ``ranked``: labels by rank.
    english, mu_max : by model, accuracy in English on Belebele; score on FLORES, maximum.
    per_label : the scores μ that Table 6 gives, label by model; ``belebele``: labels of Belebele.
    """

    #: Half a unit of the last place: of four places, and of Table 6's two.
    half_4, half_2 = 0.5e-4, 0.5e-2
    #: Rows of Table 1: accuracy in English, and mean over the other languages; Figure 1's model.
    english_task, other_task = "Task_(eng)", "Task_L\\(eng)"
    figure_1_model = "Llama 3.1 8B"
    #: The average of Table 5 that is none.
    no_average = ("Bible", "last token", "Max", "m-MMLU")
    expected, shares_left = staticmethod(expected), staticmethod(shares_left)

    def __init__(self) -> None:
        super().__init__(paths.PUBLISHED / "mexa")

    @cached_property
    def flores(self) -> set[str]:
        """The labels of FLORES-200 as shipped."""
        return set(parallel.tags("flores200-100").values())

    @cached_property
    def chance(self) -> pd.DataFrame:
        """P(k hits or more of 100) by chance: as the paper has it, and exactly."""
        return chance_table(100).set_index("k")[["binomial", "matrix"]]

    # --- Table 1 ----------------------------------------------------------------------------------

    def question_counts(self, most: int) -> pd.DataFrame:
        """By task and N up to ``most``: how many of nine English accuracies are k / N (GRIM)."""
        sizes, fits = np.arange(1, most + 1), {}
        for task in ("Belebele", "m-ARC"):
            accuracy = self.table_1.loc[(self.english_task, task), self.models]
            accuracy = accuracy.to_numpy(dtype=float)[:, None]
            nearest = np.round(accuracy * sizes) / sizes
            fits[task] = (np.abs(nearest - accuracy) <= self.half_4 + PRINTED_SLACK).sum(axis=0)
        return pd.DataFrame(fits, index=pd.Index(sizes, name="N"))

    def score_or_english(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Over models: correlation of accuracy elsewhere with English, scores, and products.

        By task; and the intervals of the first.
        """
        scores, table, intervals = self.table_1.loc[["FLORES", "Bible"], self.models], {}, {}
        for task, outcome in self.table_1.loc[self.other_task, self.models].iterrows():
            english = self.table_1.loc[(self.english_task, task), self.models]
            rivals = {"English accuracy": english}
            for row, score in scores.iterrows():
                rivals[" ".join(row)], rivals[f"{' '.join(row)} × English"] = score, score * english
            table[task] = {name: rival.corr(outcome) for name, rival in rivals.items()}
            low, high = stats.pearsonr(english, outcome).confidence_interval()
            intervals[task] = {"English accuracy": english.corr(outcome), "low": low, "high": high}
        return pd.DataFrame(table), rows_by(intervals)

    # --- Table 6 ----------------------------------------------------------------------------------

    @cached_property
    def band_counts(self) -> pd.DataFrame:
        """Labels by band and model; entries on an edge; scores of 0.8 or more by themselves."""
        table_6 = self.table_6[self.models]
        counts = rows_by({model: dict(bands(table_6[model]).value_counts()) for model in table_6})
        counts = counts.rename(
            columns={"0–0.2": "0–0.2 (not covered)", "0.8–1": "0.8–1 (well-covered)"}
        )
        counts["on an edge"] = table_6.isin(EDGES[1:]).sum()
        aligned = table_6 >= 0.8 * table_6.loc["eng_Latn"] - PRINTED_SLACK
        return counts.assign(**{"μ of 0.8 or more": aligned.sum()}, English=self.english.round(2))

    # --- Table 5 ----------------------------------------------------------------------------------

    @cached_property
    def cosine_tests(self) -> pd.DataFrame:
        """Williams' test of MEXA against the cosine (5.3), for every possible r₂₃: the worst.

        Their own correlation r₂₃ is not printed, but three correlations must be possible together.
        """
        n, rows = len(self.belebele), {}
        for model, keys in {
            "Gemma 1 7B": ("mexa_t05", "mexa_t06"),
            "Llama 1 7B": ("mexa_t08", "mexa_t09"),
        }.items():
            r_12, r_13 = map(self.number, keys)
            room = np.sqrt((1 - r_12**2) * (1 - r_13**2))
            r_23 = r_12 * r_13 + room * np.linspace(-1, 1, 1001)
            determinant = 1 - r_12**2 - r_13**2 - r_23**2 + 2 * r_12 * r_13 * r_23
            below = 2 * (n - 1) / (n - 3) * determinant + ((r_12 + r_13) / 2) ** 2 * (1 - r_23) ** 3
            t = ((r_12 - r_13) * np.sqrt((n - 1) * (1 + r_23) / below)).min()
            rows[model] = {
                "MEXA": r_12,
                "cosine": r_13,
                "least r23": r_23[0],
                "most r23": r_23[-1],
                "least t": t,
                "largest p": 2 * stats.t.sf(t, n - 3),
            }
        return rows_by(rows, "model")
