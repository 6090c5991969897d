"""The tables printed in the X-Probe paper and the counts of its released files, and what follows.

Nothing here runs a model: `PrintedTables` reads ``data/published/xprobe`` and has, by name, each
table that the audit of the paper looks at (`printed.xprobe_claims`). Accuracies are in [0, 1].
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy import stats

from printed import printed_tables
from xlx.measures import statistics
from xlx.measures.xprobe import (
    above_guessing,
    beyond,
    encoder_distances,
    mean_sd,
    rank_correlations,
    relative_accuracies,
    rounding_and_luck,
)
from xlx.results import paths

_FOLDER = paths.PUBLISHED / "xprobe"


@dataclass(frozen=True)
class PrintedTables:
    """Tables 1, 3 and 4, the release, and tables that follow from them.

    ``half``: half a unit of the last place of Tables 3 and 4. ``n_test``: sentences that a probe is
    tested on, where the release has as many. ``n_xnli``: pairs that XNLI tests on.
    """

    half: float = 0.005
    n_test: int = 10_000
    n_xnli: int = 5010

    @cached_property
    def cells(self) -> pd.DataFrame:
        """Table 4: ``task``, ``encoder``, ``language`` (a setting), ``accuracy``."""
        return _read("table4_probing")

    @cached_property
    def xnli(self) -> pd.DataFrame:
        """Table 3: ``encoder``, ``language``, ``accuracy``."""
        return _read("table3_xnli")

    @property
    def encoders(self) -> list[str]:
        """In the order of Table 4."""
        return list(self.cells["encoder"].unique())

    @property
    def tasks(self) -> list[str]:
        """In the order of Table 4."""
        return list(self.cells["task"].unique())

    @property
    def languages(self) -> list[str]:
        """Settings, in the order of Table 4."""
        return list(self.cells["language"].unique())

    @cached_property
    def accuracy(self) -> pd.DataFrame:
        """Table 4 with tasks and encoders in rows, settings in columns."""
        wide = self.cells.pivot(index=["task", "encoder"], columns="language", values="accuracy")
        return wide[self.languages]

    @cached_property
    def inference(self) -> pd.DataFrame:
        """Table 3 with encoders in rows, settings in columns."""
        wide = self.xnli.pivot(index="encoder", columns="language", values="accuracy")
        return wide.loc[self.encoders, self.languages]

    @cached_property
    def table1(self) -> pd.DataFrame:
        """Table 1: ``mean`` and ``sd`` by task."""
        table = pd.read_csv(_FOLDER / "table1_mean_sd.csv")
        table = table.pivot(index="task", columns="quantity", values="value")
        return table[["mean", "standard_deviation"]].set_axis(["mean", "sd"], axis="columns")

    # --- the release ------------------------------------------------------------------------------

    @cached_property
    def release(self) -> pd.DataFrame:
        """Counts of the released files, with ``guess`` (the share of the most frequent class of
        the test file) and ``n`` (its different sentences, as a sentence tells its luck once)."""
        table = pd.read_csv(_FOLDER / "release.csv")
        table = table.assign(guess=table["majority"] / table["test"])
        return table.assign(n=table["test_distinct"].clip(upper=self.n_test))

    @cached_property
    def shared(self) -> pd.DataFrame:
        """By language: ``sentences`` of all tasks, and those ``shared`` by two or more."""
        return pd.read_csv(_FOLDER / "release_shared.csv").set_index("language")

    @cached_property
    def by_setting(self) -> pd.DataFrame:
        """`release` by setting: "fr-UN" is tested on the files of "fr"."""
        french = self.release[self.release["language"] == "fr"].assign(language="fr-UN")
        return pd.concat([self.release, french], ignore_index=True)

    @cached_property
    def guess(self) -> pd.DataFrame:
        """What guessing reaches, by task and language."""
        wide = self.release.pivot(index="task", columns="language", values="guess")
        return wide.loc[self.tasks, [code for code in self.languages if code in wide]]

    @cached_property
    def n(self) -> pd.Series:
        """Different test sentences, by task and setting."""
        return self.by_setting.set_index(["task", "language"])["n"]

    def short_files(self) -> pd.DataFrame:
        """Test files of other than 10,000 lines."""
        return self.release.query("test != 10_000")[["task", "language", "test"]]

    def somo_files(self) -> pd.DataFrame:
        """By language, of SOMO's test file: lines, different ones, those under both labels."""
        somo = self.release[self.release["task"] == "SOMO"].set_index("language")
        columns = {
            "lines": somo["test"],
            "different": somo["test_distinct"],
            "both labels": (somo["test_both"] / somo["test_distinct"]).round(2),
            "with validation": (somo["both"] / somo["distinct"]).round(2),
            "best possible": (somo["test_best"] / somo["test"]).round(2),
            "in two tasks": self.shared["shared"],
            "of": self.shared["sentences"],
        }
        return pd.DataFrame(columns).loc[self.guess.columns]

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
            apart = (own[["mean", "sd"]] - self.table1).abs()
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
        own = own.join(self.table1.add_suffix(" printed"))
        between = self.accuracy.mean(axis=1).groupby("task").var(ddof=0) / own["sd"] ** 2
        return own.assign(**{"share between encoders": between})

    # --- Figure 3 ---------------------------------------------------------------------------------

    @cached_property
    def rho(self) -> pd.DataFrame:
        """`summaries.rank_correlations` of Tables 3 and 4."""
        return rank_correlations(self.cells, self.xnli)

    @cached_property
    def rho_without_cnns(self) -> pd.DataFrame:
        """The same of the four other encoders."""
        rest = self.cells[~self.cells["encoder"].str.startswith("CNN")]
        return rank_correlations(rest, self.xnli)

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
        """`summaries.relative_accuracies` with ``gain`` and ``sign``: 1, 0 or -1, whether a cell
        is above English by more than rounding and luck."""
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

    # --- guessing ---------------------------------------------------------------------------------

    @cached_property
    def above(self) -> pd.DataFrame:
        """`summaries.above_guessing` of all cells, and ``half``: the same above one half."""
        sizes = self.by_setting[["language", "task", "guess", "n"]]
        table = above_guessing(self.cells.merge(sizes, on=["language", "task"]), half=self.half)
        even = above_guessing(table.assign(guess=1 / 2), half=self.half)["above"]
        cnn = table["above_all"] & table["encoder"].str.startswith("CNN")
        return table.assign(half=even, CNN=cnn)

    def above_by_task(self) -> pd.DataFrame:
        """By task: guessing, accuracy, and how many cells are above guessing."""
        return self.above.groupby("task").agg(
            least_guess=("guess", "min"), most_guess=("guess", "max"),
            lowest=("accuracy", "min"), highest=("accuracy", "max"),
            above=("above", "sum"), above_all=("above_all", "sum"), CNN=("CNN", "sum"),
        ).loc[self.tasks]  # fmt: skip

    # --- languages and encoders -------------------------------------------------------------------

    @cached_property
    def means(self) -> pd.DataFrame:
        """Mean accuracy over encoders, by task and setting."""
        return self.accuracy.groupby("task").mean().loc[self.tasks, self.languages]

    @property
    def other_mapped(self) -> pd.Series:
        """By task: `means` over the mapped settings but Russian."""
        return self.means[self.languages[1:]].drop(columns="ru").mean(axis=1)

    def less_guessing(self) -> pd.DataFrame:
        """By task: the highest setting as printed and less guessing, and Russian beside others."""
        level = self.by_setting.pivot(index="task", columns="language", values="guess")
        level = level.loc[self.tasks, self.languages]
        less = self.means - level
        columns = {
            "highest": self.means.idxmax(axis=1),
            "highest less guessing": less.idxmax(axis=1),
            "ru, guessing": level["ru"],
            "ru less guessing": less["ru"],
            "others less guessing": less.drop(columns="ru").mean(axis=1),
        }
        return pd.DataFrame(columns)

    @cached_property
    def setting_distances(self) -> dict[tuple[str, str], float]:
        """Mean absolute difference of each two settings."""
        return {
            (one, other): float((self.accuracy[one] - self.accuracy[other]).abs().mean())
            for one, other in itertools.combinations(self.languages, 2)
        }

    @cached_property
    def apart(self) -> pd.DataFrame:
        """`summaries.encoder_distances` over all cells."""
        return encoder_distances(self.cells)

    def nearest(self) -> pd.DataFrame:
        """The encoder nearest to each, over all tasks and without SentLen."""
        rest = encoder_distances(self.cells[self.cells["task"] != "SentLen"])
        columns = {"all tasks": self.apart, "without SentLen": rest}
        others = np.where(np.eye(len(self.encoders)), np.nan, 0)
        return pd.DataFrame({x: (own + others).idxmin() for x, own in columns.items()})

    @cached_property
    def kinds(self) -> dict[str, list[str]]:
        """The two encoders of each architecture."""
        return {
            kind: [name for name in self.encoders if name.startswith(kind)]
            for kind in ("RNN", "Attention", "CNN")
        }

    def pooling(self) -> pd.DataFrame:
        """Mean difference of the two poolings: of accuracies, and of ratios to English."""
        wide = self.accuracy.stack().unstack("encoder")
        ratio = self.ratios.pivot(index=["language", "task"], columns="encoder", values="ratio")
        tables = {"accuracy": wide, "ratio": ratio, "ratio, without WC": ratio.drop("WC", level=1)}
        rows = {
            kind: {name: (own[one] - own[two]).abs().mean() for name, own in tables.items()}
            for kind, (one, two) in self.kinds.items()
        }
        return pd.DataFrame(rows)

    def overall(self) -> pd.DataFrame:
        """Mean accuracy of each encoder, over all tasks and without SentLen."""
        wide = self.accuracy.stack().unstack("encoder")
        rest = wide.drop("SentLen", level="task").mean()
        return pd.DataFrame({"all tasks": wide.mean(), "without SentLen": rest}).loc[self.encoders]

    def parameters(self) -> pd.DataFrame:
        """Weights of the encoders by Table 2, in millions, and how much larger the biLSTM is."""
        width, hidden, heads, attention, projection = 300, 512, 60, 150, 1024
        # four gates of weights on input and state and two biases; two directions; two layers
        recurrent = 2 * sum(4 * hidden * (x + hidden + 2) for x in (width, 2 * hidden))
        filters = sum(800 * (width * words + 1) for words in (3, 4, 5))
        counts = {
            "biLSTM": recurrent,
            "biLSTM with attention": recurrent + 2 * hidden * attention + attention * heads,
            "CNN, 800 channels a width": filters + (2400 + 1) * projection,
            "CNN, 800 channels in all": filters // 3 + (800 + 1) * projection,
            "CNN, 800 in all, no projection": filters // 3,
        }
        table = pd.DataFrame({"millions": (pd.Series(counts) / 1e6).round(2)})
        return table.assign(
            **{"biLSTM is larger by": (recurrent / 1e6 / table["millions"]).round(1)}
        )

    def lost_on_xnli(self, encoder: str) -> pd.DataFrame:
        """Accuracy of an encoder on XNLI, and half the width of its interval."""
        own = self.inference.loc[encoder]
        width = statistics.half_width(np.sqrt(own * (1 - own) / self.n_xnli))
        return pd.DataFrame({"accuracy": own, "half width": width.round(3)}).T


def _read(name: str) -> pd.DataFrame:
    table = pd.read_csv(_FOLDER / f"{name}.csv").drop(columns="language")
    return table.rename(columns={"code": "language", "value": "accuracy"})


def audit_of(paper: PrintedTables) -> printed_tables.Audit:
    """All claims, in the order of the audit, and Table 1 recomputed from Table 4."""
    audit = printed_tables.Audit()
    own = paper.from_table4()
    for kind in ("mean", "sd"):
        names = [f"{kind} of {task}" for task in paper.tasks]
        columns = own.loc[paper.tasks, f"{kind} printed"], own.loc[paper.tasks, kind]
        audit.check("Table 1, by Table 4", names, *columns, paper.half + 0.0005)
    for section in (_test_sets, _correlations, _relative, _gains, _guessing, _languages):
        section(audit, paper)
    for section in (_kinds, _length, _parameters):
        section(audit, paper)
    found = "the former are in a picture only (Figure 2)"
    audit.claim("7", "results on the original and the Wikipedia tasks are similar", found)
    return audit


def _test_sets(audit: printed_tables.Audit, paper: PrintedTables) -> None:
    own, shared, somo = paper.release, paper.shared, paper.somo_files()["with validation"]
    halves = paper.guess.loc["BiShift"]
    luck = statistics.half_width(1 / 2 / np.sqrt(10_000))
    audit.claim(
        "4", "BiShift: for half the sentences the order of two words is reversed",
        f"for {1 - halves.max():.3f} ({halves.idxmax()}) to {1 - halves.min():.3f}",
        *((halves - 1 / 2).abs() < luck),
    )  # fmt: skip
    both = own.loc[own["task"] == "SOMO", "both"]
    audit.claim(
        "4", "SOMO: a word of the sentence is replaced or not",
        f"{somo.min():.2f} to {somo.max():.2f} of the sentences of test and validation stand under "
        "both labels", *(both == 0),
    )  # fmt: skip
    whole = (own[["test", "validation"]] == 10_000).all(axis=1)
    audit.claim(
        "6.1", "10k sentences to validate and 10k to test",
        f"{whole.sum()} of {len(own)} pairs of files have as many lines", *whole,
    )  # fmt: skip
    same = own[own["identical"] == 1]
    audit.claim(
        "6.1", "a validation split beside the test split",
        f"they are one file for {', '.join(same['task'].unique())}, in {len(same)} of "
        f"{len(paper.guess.columns)} languages", *(own["identical"] == 0),
    )  # fmt: skip
    n = shared["shared"]
    audit.claim(
        "9", "no two probing tasks have a sentence in common",
        f"{n.min()} ({n.idxmin()}) to {n.max()} ({n.idxmax()}) sentences are in two or more, at "
        f"most {(n / shared['sentences']).max():.2%}", *(n == 0),
    )  # fmt: skip


def _correlations(audit: printed_tables.Audit, paper: PrintedTables) -> None:
    rho = paper.rho
    negative, p_values = rho["rho"] < 0, rho["p_value"]
    discovered = (stats.false_discovery_control(p_values) <= 0.05).sum()
    least_p = 2 / 720  # of six points
    could = "some" if least_p * len(rho) < 0.05 else "none"
    audit.claim(
        "7", "the overwhelming majority of correlations are negative",
        f"{negative.sum()} of {len(rho)} are, on {', '.join(rho.loc[negative, 'task'].unique())}; "
        f"{(~negative).sum()} are positive", negative.mean() > 1 / 2,
    )  # fmt: skip
    audit.claim(
        "7, Figure 3", "results are not statistically significant",
        f"{(p_values < 0.05).sum()} of {len(rho)} have an exact p < 0.05, {discovered} by "
        f"Benjamini-Hochberg; by Bonferroni {could} could",
        (p_values < 0.05).mean() <= 0.05, discovered == 0, (p_values * len(rho) >= 0.05).all(),
    )  # fmt: skip


def _relative(audit: printed_tables.Audit, paper: PrintedTables) -> None:
    n, n_tasks = len(paper.ratios), len(paper.tasks)
    total, rest = paper.better_and_worse(), paper.better_and_worse(without=["SentLen"])
    audit.claim(
        "abstract", "mapped representations are often better than the English encoders'",
        f"of {n} cells {total[0]} better, {total[1]} worse beyond rounding and luck; without "
        f"SentLen {rest[0]} better, {rest[1]} worse", total[0] > total[1], rest[0] > rest[1],
    )  # fmt: skip
    audit.claim(
        "8.2", "transferred representations are not necessarily worse",
        f"{total[0]} of {n} cells are better, in {(paper.signs()['better'] > 0).sum()} of "
        f"{n_tasks} tasks", total[0] > 0,
    )  # fmt: skip
    found = "each is probed on sentences of its own language, and no encoder on two"
    audit.claim("8.2", "mapped encoders exceed those that they emulate", found)


def _length_signs(paper: PrintedTables, sign: int):
    """By encoder: settings that are better (1) or worse (-1) than English on SentLen."""
    own = paper.ratios[paper.ratios["task"] == "SentLen"]
    return (own["sign"] == sign).groupby(own["encoder"]).sum()


def _gains(audit: printed_tables.Audit, paper: PrintedTables) -> None:
    up = _length_signs(paper, 1)
    fifth, *best = up.nlargest(5).sort_values().index
    of_fifth = paper.gains_of(["SentLen"]).loc[("SentLen", fifth)]
    audit.claim(
        "8.2", "SentLen: considerably improved performance in five out of six cases",
        f"four encoders in {up[best].min()} of 5 settings; the fifth, {fifth}, by "
        f"{of_fifth.min():.2f} to {of_fifth.max():.2f}, beyond luck in {up[fifth]}",
        *(up[[fifth, *best]] > 5 / 2),
    )  # fmt: skip
    number = paper.gains_of(["SubjNum", "ObjNum"]).groupby("task").mean().T.round(3)
    number = number[["ObjNum", "SubjNum"]]
    rise, fall = (list(number.index[(sign * number > 0).all(axis=1)]) for sign in (1, -1))
    audit.claim(
        "8.2", "SubjNum and ObjNum: noticeable improvements when transferred",
        f"on average better in {', '.join(rise)}, worse in {', '.join(fall)}; mean gains "
        f"{number['SubjNum'].mean():.3f} and {number['ObjNum'].mean():.3f}",
        *(number.mean() > paper.half),
    )  # fmt: skip
    audit.claim(
        "8.2", "the improvement is consistent across both number tasks, so no coincidence",
        f"the tasks agree in {len(rise) + len(fall)} of {len(number)} settings, in {len(fall)} of "
        "them since both lose: what they share is the language",
        len(rise) + len(fall) == len(number), not fall,
    )  # fmt: skip


def _guessing(audit: printed_tables.Audit, paper: PrintedTables) -> None:
    somo = paper.above[paper.above["task"] == "SOMO"]
    audit.claim(
        "8.2", "none of the encoders learnt anything on SOMO",
        f"{somo['accuracy'].min():.2f} to {somo['accuracy'].max():.2f}; {somo['above'].sum()} of "
        f"{len(somo)} above guessing whatever was rounded, {somo['above_all'].sum()} by "
        f"Bonferroni; {100 * (somo['accuracy'] - somo['guess']).max():.0f} points at most",
        *~somo.groupby("encoder")["above_all"].any(),
    )  # fmt: skip
    table = paper.table1
    spread = table["sd"].sort_values(ascending=False)
    relative = (table["sd"] / table["mean"]).sort_values(ascending=False)
    audit.claim(
        "8.2", "WC: the variance in performance",
        f"by SD: {', '.join(f'{task} {spread[task]}' for task in spread.index[:3])}; relative to "
        f"the mean: {', '.join(f'{task} {relative[task]:.2f}' for task in relative.index[:2])}",
        spread.index[0] == "WC", relative.index[0] == "WC",
    )  # fmt: skip
    hardest = table["mean"].idxmin()
    audit.claim(
        "8.2", "WC is the hardest task",
        f"lowest mean: {hardest} ({table['mean'].min()}), which a thousand classes explain",
        hardest == "WC",
    )  # fmt: skip


def _languages(audit: printed_tables.Audit, paper: PrintedTables) -> None:
    lowest = paper.means.idxmin(axis=1) == "ru"
    behind = (paper.other_mapped - paper.means["ru"])[lowest]
    audit.claim(
        "8.1", "Russian: considerably worse for most tasks",
        f"lowest mean of all in {lowest.sum()} of 9 tasks, {behind.min():.2f} to "
        f"{behind.max():.2f} under the other mapped ones", lowest.mean() > 1 / 2,
    )  # fmt: skip
    pairs = paper.setting_distances
    russian = [apart for pair, apart in pairs.items() if "ru" in pair]
    rest = [apart for pair, apart in pairs.items() if "ru" not in pair]
    audit.claim(
        "8.1", "results are broadly similar across the other languages",
        f"mean absolute difference of two settings {min(rest):.3f} to {max(rest):.3f}, with "
        f"Russian {min(russian):.3f} to {max(russian):.3f}", max(rest) < min(russian),
    )  # fmt: skip
    one, other = paper.accuracy["fr"], paper.accuracy["fr-UN"]
    n = paper.n.loc[[(task, "fr") for task in one.index.get_level_values("task")]].to_numpy()
    unlike, both = beyond(one, other, n, n, half=paper.half) != 0, (one - other).abs()
    near = min(pairs, key=pairs.get)
    audit.claim(
        "8.1", "very similar on both French: the transfer corpus is no factor",
        f"mean difference {both.mean():.3f}, at most {both.max():.2f}, beyond rounding and luck in "
        f"{unlike.sum()} of {len(both)}; nearest pair of settings: {'/'.join(near)}, but one "
        "language only", near == ("fr", "fr-UN"),
    )  # fmt: skip
    audit.claim(
        "8.1", "Russian is poor for its word embeddings",
        "not measured; Russian sentences were also parsed and segmented otherwise, and its mapping "
        "corpus is the UN's",
    )  # fmt: skip


def _kinds(audit: printed_tables.Audit, paper: PrintedTables) -> None:
    kinds, apart, overall = paper.kinds, paper.apart, paper.overall()
    (rnn, last), attention = kinds["RNN"], kinds["Attention"]
    nearest = paper.nearest()["all tasks"]
    audit.claim(
        "8.3", "variants of an encoder are nearer to each other than to other encoders",
        f"{rnn} is {apart.loc[rnn, last]:.3f} from {last}, {apart.loc[rnn, attention[0]]:.3f} from "
        f"{attention[0]}", *(nearest[x].split()[0] == x.split()[0] for x in paper.encoders),
    )  # fmt: skip
    cnn = paper.accuracy.index.get_level_values("encoder").str.startswith("CNN")
    by_task = [paper.accuracy[rows].groupby("task") for rows in (cnn, ~cnn)]
    under = by_task[0].max() < by_task[1].min()
    own = overall.loc[kinds["CNN"], "all tasks"].max()
    others = overall.drop(kinds["CNN"])["all tasks"].min()
    audit.claim(
        "8.3", "both CNNs are worse than attentive or recurrent encoders",
        f"their means are {own:.3f} at most, the others' {others:.3f} at least; both under all "
        f"others in all six settings but in {' and '.join(under.index[~under.all(axis=1)])}",
        own < others,
    )  # fmt: skip
    pooling = paper.pooling()
    accuracy, ratio = pooling.loc["accuracy"], pooling.loc["ratio, without WC"]
    audit.claim(
        "8.3", "pooling has a more significant effect on CNNs than on others",
        f"accuracies differ by {accuracy['RNN']:.3f} (RNN), {accuracy['CNN']:.3f} (CNN), "
        f"{accuracy['Attention']:.3f}; ratios by {ratio['RNN']:.3f}, {ratio['CNN']:.3f}, "
        f"{ratio['Attention']:.3f} without WC",
        accuracy.idxmax() == "CNN", ratio.idxmax() == "CNN",
    )  # fmt: skip
    attentive, best = overall.loc[attention].min(), overall.drop(attention).max()
    audit.claim(
        "8.3", "attentive encoders are better at probing in general",
        f"means {attentive.iloc[0]:.3f} or more to {best.iloc[0]:.3f} of the best other; without "
        f"SentLen {attentive.iloc[1]:.3f} to {best.iloc[1]:.3f}", *(attentive > best),
    )  # fmt: skip


def _length(audit: printed_tables.Audit, paper: PrintedTables) -> None:
    length = paper.accuracy.loc["SentLen"]
    rnn, attention, cnn = (length.loc[paper.kinds[x]] for x in ("RNN", "Attention", "CNN"))
    ahead = (attention.min() > rnn.max()).sum()
    own = paper.ratios[paper.ratios["task"] == "SentLen"].groupby("encoder")["ratio"].mean()
    strength = {kind: own[paper.kinds[kind]].mean() for kind in ("RNN", "Attention")}
    audit.claim(
        "8.3", "recurrent encoders: extremely strong on tasks such as sentence length",
        f"{rnn.min(axis=None)} to {rnn.max(axis=None)}, below both attentive encoders "
        f"({attention.min(axis=None):.2f} to {attention.max(axis=None)}) in {ahead} of 6 settings; "
        f"relative to English {strength['RNN']:.2f}, attention {strength['Attention']:.2f}",
        ahead < 6 / 2, strength["RNN"] > strength["Attention"],
    )  # fmt: skip
    down = _length_signs(paper, -1)
    pooled, averaged = (f"CNN ({how})" for how in ("maxpool", "avg. pool"))
    audit.claim(
        "8.3", "CNN (maxpool) is the only one considerably worse on sentence length",
        f"relative to English: worse beyond luck in {down[pooled]} of 5 settings, every other "
        f"encoder in {down.drop(pooled).max()}",
        down[pooled] > 5 / 2 and down.drop(pooled).max() == 0,
    )  # fmt: skip
    n, pair = paper.n["SentLen", "en"], (cnn.loc[pooled, "en"], cnn.loc[averaged, "en"])
    unlike = beyond(*pair, n, n, half=paper.half)
    audit.claim(
        "8.3", "this is also true for English",
        f"there {pooled} has {pair[0]}, {averaged} {pair[1]}: {'apart' if unlike else 'alike'} "
        "within rounding and luck", unlike < 0,
    )  # fmt: skip


def _parameters(audit: printed_tables.Audit, paper: PrintedTables) -> None:
    larger = paper.parameters()["biLSTM is larger by"].filter(like="channels")
    audit.claim(
        "5, 8.3", "the CNN has an order of magnitude fewer parameters",
        f"by Table 2 the biLSTM is {larger.iloc[0]:.1f} times as large, {larger.iloc[1]:.1f} with "
        "800 channels in all; half an order is 3.2 times", *(larger > np.sqrt(10)),
    )  # fmt: skip
