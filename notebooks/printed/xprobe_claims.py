"""The tables printed in the X-Probe paper and the counts of its released files, and what follows.

Nothing here runs a model. `PrintedTables` has, by name, each table that the audit of the paper
looks at: here what needs statistics, in ``names.csv`` of the folder what follows by a formula; the
claims are in ``claims.csv`` (`printed.evaluator`). Accuracies are in [0, 1].
"""

import itertools
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pandas as pd
from scipy import stats

from printed.evaluator import Paper
from shared.xprobe_tables import (
    above_guessing,
    beyond,
    encoder_distances,
    mean_sd,
    rank_correlations,
    relative_accuracies,
    rounding_and_luck,
)
from xlx.measures import statistics
from xlx.results import paths


class PrintedTables(Paper):
    """Tables 1, 3 and 4, the release, and tables that follow from them.

    ``half``: half a unit of the last place of Tables 3 and 4. ``n_test``: sentences that a probe is
    tested on, where the release has as many. ``n_xnli``: pairs that XNLI tests on.

    Attributes
    ----------
    cells : Table 4: ``task``, ``encoder``, ``language`` (a setting), ``accuracy``.
    xnli : Table 3: ``encoder``, ``language``, ``accuracy``.
    accuracy, inference : Table 4 by task and encoder, Table 3 by encoder; settings in columns.
    counted : counts of the released files, with ``guess`` (the share of the most frequent class of
        the test file) and ``n`` (its different sentences, as a sentence tells its luck once).
    by_setting : the same by setting: "fr-UN" is tested on the files of "fr".
    """

    beyond, half_width = staticmethod(beyond), staticmethod(statistics.half_width)

    def __init__(self, half: float = 0.005, n_test: int = 10_000, n_xnli: int = 5010) -> None:
        super().__init__(paths.PUBLISHED / "xprobe")
        self.half, self.n_test, self.n_xnli = half, n_test, n_xnli

    # --- Table 1 ----------------------------------------------------------------------------------

    def readings(self) -> pd.DataFrame:
        """Table 1 from Table 4, by which cells are taken and what the variance is divided by."""
        left_out = {
            "all 36": (), "without English": ("en",), "without French (UN)": ("fr-UN",),
            "without French (Europarl)": ("fr",), "without English, French (UN)": ("en", "fr-UN"),
        }  # fmt: skip
        rows = []
        for (name, codes), ddof in itertools.product(left_out.items(), (0, 1)):
            own = mean_sd(self.cells[~self.cells["language"].isin(codes)], ddof=ddof)
            own = own.set_index("task")
            apart = (own[["mean", "sd"]] - self.printed_1).abs()
            usual = np.sqrt(((2 * self.half) ** 2 / own["n"].iloc[0] + 0.001**2) / 12)
            fit = (apart <= self.half + 0.0005).sum()
            size = np.sqrt((apart**2).mean(axis=None)) / usual
            rows.append((name, ["n", "n - 1"][ddof], *fit, *apart.max(), size))
        columns = ["cells", "divided by", "means fit", "SDs fit", "mean off by", "SD off by"]
        rounded = {"mean off by": 4, "SD off by": 4, "usual = 1": 1}
        table = pd.DataFrame(rows, columns=[*columns, "usual = 1"])
        return table.round(rounded).set_index(columns[:2])

    def from_table4(self) -> pd.DataFrame:
        """Table 1 from all cells of Table 4, beside the printed one; and of the variance, what
        the means of the six encoders make of it."""
        own = mean_sd(self.cells).set_index("task").drop(columns="n")
        own = own.join(self.printed_1.add_suffix(" printed"))
        between = self.accuracy.mean(axis=1).groupby("task").var(ddof=0) / own["sd"] ** 2
        return own.assign(**{"share between encoders": between})

    # --- Figure 3 ---------------------------------------------------------------------------------

    @cached_property
    def rho(self) -> pd.DataFrame:
        """`xprobe_tables.rank_correlations` of Tables 3 and 4."""
        return rank_correlations(self.cells, self.xnli)

    @cached_property
    def rho_without_cnns(self) -> pd.DataFrame:
        """The same of the four other encoders."""
        rest = self.cells[~self.cells["encoder"].str.startswith("CNN")]
        return rank_correlations(rest, self.xnli)

    @property
    def discovered(self) -> int:
        """How many correlations Benjamini and Hochberg's procedure finds."""
        return int((stats.false_discovery_control(self.rho["p_value"]) <= 0.05).sum())

    def negative_in_other_orders(self) -> tuple[int, int]:
        """Fewest and most negative correlations in all orders of the columns of Table 3."""
        counts = {}
        for one, other in itertools.product(self.languages, repeat=2):
            inferred = self.xnli[self.xnli["language"] == other].assign(language=one)
            probed = self.cells[self.cells["language"] == one]
            counts[one, other] = int((rank_correlations(probed, inferred)["rho"] < 0).sum())
        orders = [
            sum(counts[pair] for pair in zip(self.languages, order, strict=True))
            for order in itertools.permutations(self.languages)
        ]
        return min(orders), max(orders)

    # --- Figure 4 ---------------------------------------------------------------------------------

    @cached_property
    def ratios(self) -> pd.DataFrame:
        """`xprobe_tables.relative_accuracies` with ``gain`` and ``sign``: 1, 0 or -1, whether a
        cell is above English by more than rounding and luck."""
        ratios = relative_accuracies(self.cells, half=self.half)
        ratios["gain"] = ratios["accuracy"] - ratios["reference"]
        sizes = (
            self.n.loc[list(zip(ratios["task"], codes, strict=True))].to_numpy()
            for codes in (ratios["language"], ["en"] * len(ratios))
        )
        sign = beyond(ratios["accuracy"], ratios["reference"], *sizes, half=self.half)
        return ratios.assign(sign=sign)

    def luck(self, task: str, encoder: str, language: str) -> float:
        """What rounding and luck can make of the difference of a cell to English."""
        codes = [language, "en"]
        sizes = [self.n[task, code] for code in codes]
        pair = self.accuracy.loc[(task, encoder), codes]
        return float(rounding_and_luck(*pair, *sizes, half=self.half))

    def signs(self) -> pd.DataFrame:
        """By task: cells ``better`` and ``worse`` than English, ``mean gain``, and how many
        ``encoders`` and ``settings`` gain on average."""
        ratios, by_task = self.ratios, self.ratios.groupby("task")
        columns = {
            "better": by_task["sign"].agg(lambda sign: (sign > 0).sum()),
            "worse": by_task["sign"].agg(lambda sign: (sign < 0).sum()),
            "mean gain": by_task["gain"].mean().round(3) + 0.0,
        }
        for name, key in (("encoders", "encoder"), ("settings", "language")):
            means = ratios.groupby(["task", key])["gain"].mean()
            columns[name] = means.gt(1e-9).groupby("task").sum()
        return pd.DataFrame(columns).loc[self.tasks]

    def better_and_worse(self, *, without: Sequence[str] = ()) -> tuple[int, int]:
        """Cells that are better and worse than English, of the tasks that are not left out."""
        sign = self.ratios.loc[~self.ratios["task"].isin(list(without)), "sign"]
        return int((sign > 0).sum()), int((sign < 0).sum())

    def gains_of(self, tasks: Sequence[str]) -> pd.DataFrame:
        """Gains over English of some tasks: by task and encoder, settings in columns."""
        own = self.ratios[self.ratios["task"].isin(list(tasks))]
        wide = own.pivot(index=["task", "encoder"], columns="language", values="gain")
        return wide.loc[list(tasks), self.languages[1:]].reindex(self.encoders, level=1)

    @cached_property
    def above(self) -> pd.DataFrame:
        """`xprobe_tables.above_guessing` of all cells, and ``half``: the same above one half."""
        sizes = self.by_setting[["language", "task", "guess", "n"]]
        table = above_guessing(self.cells.merge(sizes, on=["language", "task"]), half=self.half)
        even = above_guessing(table.assign(guess=1 / 2), half=self.half)["above"]
        cnn = table["above_all"] & table["encoder"].str.startswith("CNN")
        return table.assign(half=even, CNN=cnn)

    # --- encoders ---------------------------------------------------------------------------------

    @cached_property
    def apart(self) -> pd.DataFrame:
        """`xprobe_tables.encoder_distances` over all cells."""
        return encoder_distances(self.cells)

    def nearest(self) -> pd.DataFrame:
        """The encoder nearest to each, over all tasks and without SentLen."""
        rest = encoder_distances(self.cells[self.cells["task"] != "SentLen"])
        columns = {"all tasks": self.apart, "without SentLen": rest}
        others = np.where(np.eye(len(self.encoders)), np.nan, 0)
        return pd.DataFrame({x: (own + others).idxmin() for x, own in columns.items()})

    def lost_on_xnli(self, encoder: str) -> pd.DataFrame:
        """Accuracy of an encoder on XNLI, and half the width of its interval."""
        own = self.inference.loc[encoder]
        width = statistics.half_width(np.sqrt(own * (1 - own) / self.n_xnli))
        return pd.DataFrame({"accuracy": own, "half width": width.round(3)}).T
