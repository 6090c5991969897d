"""The tables printed in the X-Probe paper and the counts of its released files, and what follows.

Nothing here runs a model. `PrintedTables` has, by name, each table that the audit of the paper
looks at: here what needs statistics, in ``names.csv`` of the folder what follows by a formula; the
claims are in ``claims.csv`` (`printed.evaluator`). Accuracies are in [0, 1].
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import pandas as pd

from printed.evaluator import Paper
from shared import xprobe_tables as reported
from xlx.measures import statistics
from xlx.results import paths
from xlx.results.deferred import deferred

stats = deferred("scipy.stats")


class PrintedTables(Paper):
    """Tables 1, 3 and 4, the release, and tables that follow from them.

    ``half``: half a unit of the last place of Tables 3 and 4. ``n_test``: sentences that a probe is
    tested on, where the release has as many.

    Attributes
    ----------
    cells : Table 4: ``task``, ``encoder``, ``language`` (a setting), ``accuracy``.
    xnli : Table 3: ``encoder``, ``language``, ``accuracy``.
    accuracy, inference : Table 4 by task and encoder, Table 3 by encoder; settings in columns.
    counted : counts of the released files, with ``guess`` (the share of the most frequent class of
        the test file) and ``n`` (its different sentences, as a sentence tells its luck once).
    by_setting : the same by setting: "fr-UN" is tested on the files of "fr".
    """

    beyond, half_width = staticmethod(reported.beyond), staticmethod(statistics.half_width)

    def __init__(self, half: float = 0.005, n_test: int = 10_000) -> None:
        super().__init__(paths.PUBLISHED / "xprobe")
        self.half, self.n_test = half, n_test

    # --- Table 1 ----------------------------------------------------------------------------------

    def from_table4(self) -> pd.DataFrame:
        """Table 1 from all cells of Table 4, beside the printed one; and of the variance, what
        the means of the six encoders make of it."""
        computed = reported.mean_sd(self.cells).set_index("task").drop(columns="n")
        computed = computed.join(self.printed_1.add_suffix(" printed"))
        between = self.accuracy.mean(axis=1).groupby("task").var(ddof=0) / computed["sd"] ** 2
        return computed.assign(**{"share between encoders": between})

    # --- Figure 3 ---------------------------------------------------------------------------------

    @cached_property
    def rho(self) -> pd.DataFrame:
        """`xprobe_tables.rank_correlations` of Tables 3 and 4."""
        return reported.rank_correlations(self.cells, self.xnli)

    @property
    def discovered(self) -> int:
        """How many correlations Benjamini and Hochberg's procedure finds."""
        return int((stats.false_discovery_control(self.rho["p_value"]) <= 0.05).sum())

    # --- Figure 4 ---------------------------------------------------------------------------------

    @cached_property
    def ratios(self) -> pd.DataFrame:
        """`xprobe_tables.relative_accuracies` with ``gain`` and ``sign``."""
        return reported.relative_accuracies(self.cells, self.n, half=self.half)

    def luck(self, task: str, encoder: str, language: str) -> float:
        """What rounding and luck can make of the difference of a cell to English."""
        codes = [language, "en"]
        sizes = [self.n[task, code] for code in codes]
        pair = self.accuracy.loc[(task, encoder), codes]
        return float(reported.rounding_and_luck(*pair, *sizes, half=self.half))

    def signs(self) -> pd.DataFrame:
        """By task: cells ``better`` and ``worse`` than English, and ``mean gain``."""
        by_task = self.ratios.groupby("task")
        columns = {
            "better": by_task["sign"].agg(lambda sign: (sign > 0).sum()),
            "worse": by_task["sign"].agg(lambda sign: (sign < 0).sum()),
            "mean gain": by_task["gain"].mean().round(3) + 0.0,
        }
        return pd.DataFrame(columns).loc[self.tasks]

    def better_and_worse(self, *, without: Sequence[str] = ()) -> tuple[int, int]:
        """Cells that are better and worse than English, of the tasks that are not left out."""
        sign = self.ratios.loc[~self.ratios["task"].isin(list(without)), "sign"]
        return int((sign > 0).sum()), int((sign < 0).sum())

    def gains_of(self, tasks: Sequence[str]) -> pd.DataFrame:
        """Gains over English of some tasks: by task and encoder, settings in columns."""
        rows = self.ratios[self.ratios["task"].isin(list(tasks))]
        wide = rows.pivot(index=["task", "encoder"], columns="language", values="gain")
        return wide.loc[list(tasks), self.languages[1:]].reindex(self.encoders, level=1)

    @cached_property
    def above(self) -> pd.DataFrame:
        """`xprobe_tables.above_guessing` of all cells."""
        cells = self.cells.merge(self.by_setting[["language", "task", "guess", "n"]])
        return reported.above_guessing(cells, half=self.half)

    # --- encoders ---------------------------------------------------------------------------------

    @cached_property
    def apart(self) -> pd.DataFrame:
        """`xprobe_tables.encoder_distances` over all cells."""
        return reported.encoder_distances(self.cells)

    def nearest(self) -> pd.Series:
        """The encoder nearest to each, over all tasks."""
        return (self.apart + np.where(np.eye(len(self.encoders)), np.nan, 0)).idxmin()

    # --- baselines --------------------------------------------------------------------------------

    @cached_property
    def beside(self) -> pd.DataFrame:
        """A row per printed cell with what baselines have on the released sentences: ``bag``, the
        accuracy of a mean of random word vectors; ``counted``, of counted ones; ``untrained``, that
        of the encoder with random weights."""
        released = self.files["release_baselines"]
        released = pd.concat(
            [released, released[released["language"] == "fr"].assign(language="fr-UN")]
        )
        released = released.drop(columns=["n_train", "n_test"]).rename(
            columns={"accuracy": "untrained"}
        )
        table = self.cells
        for name, encoder in {"bag": "mean of words", "counted": "mean of counted words"}.items():
            mean = released[released["encoder"] == encoder].drop(columns="encoder")
            table = table.merge(mean.rename(columns={"untrained": name}), on=["task", "language"])
        table = table.merge(released, on=["task", "language", "encoder"], how="left")
        return table.merge(self.by_setting[["task", "language", "guess"]], on=["task", "language"])

    def gains_beside(
        self, baseline: str = "bag", by: Sequence[str] = ("task",), encoders: Sequence[str] = ()
    ) -> pd.DataFrame:
        """Mean printed gain over English and that of a baseline, by language; French of both maps.

        A row per ``by`` and language: ``paper``, ``baseline`` and their difference ``matched``.
        ``encoders``: of these, or of all.
        """
        table = self.beside.dropna(subset=[baseline])
        table = table[table["encoder"].isin(list(encoders or self.encoders))]
        table = table.assign(language=table["language"].str.removesuffix("-UN"))
        keys = [*by, "language"]
        means = table.groupby(keys, sort=False)[["accuracy", baseline]].mean()
        english = means.xs("en", level="language")
        gains = (means - english).drop(index="en", level="language")
        gains = gains.set_axis(["paper", "baseline"], axis=1).reset_index()
        return gains.assign(matched=gains["paper"] - gains["baseline"])

    def followed(
        self,
        groups: Mapping[str, Sequence[str]],
        encoders: Sequence[str] = (),
        baseline: str = "bag",
    ) -> pd.DataFrame:
        """How printed gains follow a baseline's over tasks and languages: Pearson's r per group.

        The interval is over the languages, common to all tasks (`correlation`).
        """
        rows = []
        for name, tasks in groups.items():
            rows_of_tasks = self.gains_beside(baseline, encoders=encoders)
            rows_of_tasks = rows_of_tasks[rows_of_tasks["task"].isin(list(tasks))]
            r = statistics.correlation(rows_of_tasks, "paper", "baseline", languages=("language",))
            same = (np.sign(rows_of_tasks["paper"]) == np.sign(rows_of_tasks["baseline"])).sum()
            ends = {"r": r.value, "low": r.low, "high": r.high}
            rows.append({"tasks": name} | ends | {"cells": r.n, "same sign": same})
        return pd.DataFrame(rows)

    def matched(
        self, baseline: str = "bag", by: str = "task", encoders: Sequence[str] = ()
    ) -> pd.DataFrame:
        """Means of `gains_beside` over languages, and Student's 95 % interval of the matched."""
        keys = list(dict.fromkeys(["task", by]))
        groups = self.gains_beside(baseline, keys, encoders).groupby(by, sort=False)
        means = groups[["paper", "baseline", "matched"]].mean()
        error = groups["matched"].std(ddof=1) / np.sqrt(groups.size())
        half = stats.t.ppf(0.975, groups.size() - 1) * error
        return means.assign(low=means["matched"] - half, high=means["matched"] + half)
