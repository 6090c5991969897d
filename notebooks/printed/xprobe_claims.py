"""The tables printed in the X-Probe paper and the counts of its released files, and what follows.

Nothing here runs a model. `PrintedTables` has, by name, each table that the audit of the paper
looks at: as attributes what needs statistics, as functions what follows from the tables and what
the paper says of them (`printed.evaluator`). Accuracies are in [0, 1].
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import pandas as pd

from printed.evaluator import Paper, consistency, number, sentence
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

    def __init__(self, half: float = 0.005, n_test: int = 10_000) -> None:
        super().__init__(paths.PUBLISHED / "xprobe")
        self.half, self.n_test = half, n_test

    # --- Table 1 ----------------------------------------------------------------------------------

    def from_table4(self) -> pd.DataFrame:
        """Table 1 from all cells of Table 4, beside the printed one; and of the variance, what
        the means of the six encoders make of it."""
        computed = reported.mean_sd(self.cells)
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


# --- what follows, and what is said --------------------------------------------------------------


def _by_setting(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns="language").rename(columns={"code": "language", "value": "accuracy"})


def cells(table4):
    return _by_setting(table4)


def xnli(table3):
    return _by_setting(table3)


def encoders(cells):
    return list(cells["encoder"].unique())


def tasks(cells):
    return list(cells["task"].unique())


def languages(cells):
    return list(cells["language"].unique())


def accuracy(cells, languages):
    return cells.pivot(index=["task", "encoder"], columns="language", values="accuracy")[languages]


def printed_1(table1):
    return table1.pivot(index="task", columns="quantity", values="value")[
        ["mean", "standard_deviation"]
    ].set_axis(["mean", "sd"], axis="columns")


def counted(release, n_test):
    return release.assign(
        guess=release["majority"] / release["test"], n=release["test_distinct"].clip(upper=n_test)
    )


def by_setting(counted):
    return pd.concat(
        [counted, counted[counted["language"] == "fr"].assign(language="fr-UN")], ignore_index=True
    )


def guess(counted, tasks, languages):
    """The share of the most frequent class, task by language."""
    table = counted.pivot(index="task", columns="language", values="guess")
    return table.loc[tasks, [code for code in languages if code in table]]


def n(by_setting):
    return by_setting.set_index(["task", "language"])["n"]


def better(better_and_worse):
    return better_and_worse()


def length_ratios(ratios):
    return ratios[ratios["task"] == "SentLen"]


def number_gains(gains_of):
    """Mean gains on number of subject and object, by setting."""
    return gains_of(["SubjNum", "ObjNum"]).groupby("task").mean().T.round(3)[["ObjNum", "SubjNum"]]


def rise(number_gains):
    return list(number_gains.index[(number_gains > 0).all(axis=1)])


def fall(number_gains):
    return list(number_gains.index[(number_gains < 0).all(axis=1)])


def setting_distances(languages, accuracy):
    """Mean absolute difference of two settings over all cells."""
    return {
        (a, b): float((accuracy[a] - accuracy[b]).abs().mean())
        for a in languages
        for b in languages[languages.index(a) + 1 :]
    }


def kinds(encoders):
    return {
        kind: [name for name in encoders if name.startswith(kind)]
        for kind in ["RNN", "Attention", "CNN"]
    }


def by_encoder(accuracy):
    return accuracy.stack().unstack("encoder")


def pooling(kinds, by_encoder, ratios):
    """How far the two variants of an encoder are apart."""
    ratio = ratios.pivot(index=["language", "task"], columns="encoder", values="ratio")
    pooled = {"accuracy": by_encoder, "ratio, without WC": ratio.drop("WC", level=1)}
    return pd.DataFrame(
        {
            kind: {
                name: (part[pair[0]] - part[pair[1]]).abs().mean() for name, part in pooled.items()
            }
            for kind, pair in kinds.items()
        }
    )


def overall(by_encoder, encoders):
    return pd.DataFrame(
        {
            "all tasks": by_encoder.mean(),
            "without SentLen": by_encoder.drop("SentLen", level="task").mean(),
        }
    ).loc[encoders]


def length(accuracy):
    return accuracy.loc["SentLen"]


def weights():
    """Weights of the encoders by Table 2."""
    filters = sum(800 * (300 * words + 1) for words in [3, 4, 5])
    layers = [4 * 512 * (inputs + 512 + 2) for inputs in [300, 2 * 512]]
    return pd.Series(
        {
            "biLSTM": 2 * sum(layers),
            "CNN, 800 channels a width": filters + (2400 + 1) * 1024,
            "CNN, 800 channels in all": filters // 3 + (800 + 1) * 1024,
        }
    )


@number("Table 1, by Table 4", "{} of {}")
def table_1_by_table_4(from_table4, tasks, half):
    computed = from_table4().loc[tasks]
    for column in ["mean", "sd"]:
        yield (column,), computed[column], computed[f"{column} printed"], half + 0.0005


@sentence(
    "4",
    "BiShift: for half the sentences the order of two words is reversed",
    "for half the sentences in the dataset, the order of words in a randomly "
    "sampled bigram is reversed",
)
def half_reversed(guess):
    halves = guess.loc["BiShift"]
    return (
        (halves - 1 / 2).abs() < statistics.half_width(1 / 2 / np.sqrt(10000)),
        f"for {1 - halves.max():.3f} ({halves.idxmax()}) to {1 - halves.min():.3f}",
    )


@consistency("4", "SOMO: a word of the sentence is replaced or not")
def replaced_words(counted):
    somo = counted[counted["task"] == "SOMO"].set_index("language")
    both = (somo["both"] / somo["distinct"]).round(2)
    return somo["both"] == 0, (
        f"{both.min():.2f} to {both.max():.2f} of the sentences of test and validation stand under "
        "both labels"
    )


@sentence(
    "6.1",
    "10k sentences to validate and 10k to test",
    "training/validation/test splits with 100k, 10k and 10k sentences respectively",
)
def ten_thousand(counted):
    whole_files = (counted[["test", "validation"]] / 1000).round().eq(10).all(axis=1)
    return (
        whole_files,
        f"{whole_files.sum()} of {len(counted)} pairs of files have as many thousands",
    )


@sentence(
    "6.1",
    "a validation split beside the test split",
    "training/validation/test splits with 100k, 10k and 10k sentences respectively",
)
def validation_split(counted, guess):
    one_file = counted[counted["identical"] == 1]
    return counted["identical"] == 0, (
        f"they are one file for {', '.join(one_file['task'].unique())}, in {len(one_file)} of "
        f"{len(guess.columns)} languages"
    )


@sentence(
    "9",
    "no two probing tasks have a sentence in common",
    "none of our probing tasks have any sentences in common",
)
def tasks_share_no_sentence(release_shared):
    shared = release_shared.set_index("language")
    return shared["shared"] == 0, (
        f"{shared['shared'].min()} ({shared['shared'].idxmin()}) to {shared['shared'].max()} ("
        f"{shared['shared'].idxmax()}) sentences are in two or more, at most "
        f"{(shared['shared'] / shared['sentences']).max():.2%}"
    )


@sentence(
    "7",
    "the overwhelming majority of correlations are negative",
    "the overwhelming majority of correlations are negative",
)
def negative_correlations(rho):
    negative = rho["rho"] < 0
    return negative.mean() > 1 / 2, (
        f"{negative.sum()} of {len(rho)} are, on "
        f"{', '.join(rho.loc[negative, 'task'].unique())}; {(~negative).sum()} are positive"
    )


@sentence(
    "7, Figure 3",
    "results are not statistically significant",
    "results are not statistically significant",
)
def no_significance(rho, discovered):
    return (
        [
            (rho["p_value"] < 0.05).mean() <= 0.05,
            discovered == 0,
            (rho["p_value"] * len(rho) >= 0.05).all(),
        ],
        f"{(rho['p_value'] < 0.05).sum()} of {len(rho)} have an exact p < 0.05, {discovered} "
        "by Benjamini-Hochberg; by Bonferroni "
        f"{('some' if 2 / 720 * len(rho) < 0.05 else 'none')} could",
    )


@sentence(
    "abstract",
    "mapped representations are often better at retaining certain information",
    "often better at retaining certain linguistic information",
)
def often_better(signs, ratios, tasks, better, better_and_worse):
    better_but_length = better_and_worse(without=["SentLen"])
    return (signs()["better"] > len(ratios) / len(tasks) / 2).any(), (
        "more than half of the cells are better beyond rounding and luck on "
        f"{', '.join(signs().index[signs()['better'] > len(ratios) / len(tasks) / 2])}; of "
        f"all {len(ratios)} cells {better[0]} better, {better[1]} worse; without SentLen "
        f"{better_but_length[0]} better, {better_but_length[1]} worse"
    )


@sentence(
    "8.2",
    "transferred representations are not necessarily worse",
    "transferred representations are not necessarily worse",
)
def not_worse(better, ratios, signs, tasks):
    return better[0] > 0, (
        f"{better[0]} of {len(ratios)} cells are better, in {(signs()['better'] > 0).sum()} "
        f"of {len(tasks)} tasks"
    )


@sentence(
    "8.2",
    "mapped encoders exceed those that they emulate",
    "it is not immediately clear how these encoders are capable of exceeding the "
    "predictive capabilities of the encoders they are attempting to emulate",
)
def exceeding_the_imitated():
    return [], "each is probed on sentences of its own language, and no encoder on two"


@sentence(
    "8.2",
    "SentLen: considerably improved performance in five out of six cases",
    "considerably improved performance in five out of six cases",
)
def five_of_six(length_ratios, gains_of):
    length_up = (length_ratios["sign"] == 1).groupby(length_ratios["encoder"]).sum()
    best_five = length_up.nlargest(5).sort_values()
    fifth = best_five.index[0]
    gain_of_fifth = gains_of(["SentLen"]).loc["SentLen", fifth]
    return best_five > 5 / 2, (
        f"four encoders in {best_five.iloc[1:].min()} of 5 settings; the fifth, {fifth}, by "
        f"{gain_of_fifth.min():.2f} to {gain_of_fifth.max():.2f}, beyond luck in "
        f"{best_five.iloc[0]}"
    )


@sentence(
    "8.2",
    "SubjNum and ObjNum: noticeable improvements when transferred",
    "show noticeable improvements when transferred to a non-English language",
)
def number_improves(number_gains, half, rise, fall):
    return number_gains > half, (
        f"on average better in {', '.join(rise)}, worse in {', '.join(fall)}; mean gains "
        f"{number_gains['SubjNum'].mean():.3f} and {number_gains['ObjNum'].mean():.3f}"
    )


@sentence(
    "8.2",
    "the improvement is consistent across both number tasks, so no coincidence",
    "likely also rules out mere coincidence",
)
def no_coincidence(rise, fall, number_gains):
    return [len(rise) + len(fall) == len(number_gains), not fall], (
        f"the tasks agree in {len(rise) + len(fall)} of {len(number_gains)} settings, in "
        f"{len(fall)} of them since both lose: what they share is the language"
    )


@sentence(
    "8.2",
    "none of the encoders learnt anything on SOMO",
    "none of our encoders were able to learn anything on SOMO",
)
def nothing_on_somo(above):
    above_somo = above[above["task"] == "SOMO"]
    return ~above_somo.groupby("encoder")["above_all"].any(), (
        f"{above_somo['accuracy'].min():.2f} to {above_somo['accuracy'].max():.2f}; "
        f"{above_somo['above'].sum()} of {len(above_somo)} above guessing whatever was "
        f"rounded, {above_somo['above_all'].sum()} by Bonferroni; "
        f"{100 * (above_somo['accuracy'] - above_somo['guess']).max():.0f} points at most"
    )


@sentence(
    "8.2",
    "WC: the variance in performance",
    "the variance in performance for the word content (WC) task",
)
def variance_of_wc(printed_1):
    spread = printed_1["sd"].sort_values(ascending=False)
    relative_spread = (printed_1["sd"] / printed_1["mean"]).sort_values(ascending=False)
    listed = ", ".join(f"{task} {share:.2f}" for task, share in relative_spread.iloc[:2].items())
    return [spread.index[0] == "WC", relative_spread.index[0] == "WC"], (
        f"by SD: {', '.join(f'{task} {sd}' for task, sd in spread.iloc[:3].items())}; "
        f"relative to the mean: {listed}"
    )


@sentence(
    "8.2",
    "WC is the hardest task",
    "also happens to be the ‘hardest’ task with the most output classes",
)
def hardest_task(printed_1):
    return printed_1["mean"].idxmin() == "WC", (
        f"lowest mean: {printed_1['mean'].idxmin()} ({printed_1['mean'].min()}), which a "
        "thousand classes explain"
    )


@sentence(
    "8.1",
    "Russian: considerably worse for most tasks",
    "considerably worse when transferred to Russian than other languages",
)
def worse_in_russian(accuracy, tasks, languages):
    means = accuracy.groupby("task").mean().loc[tasks, languages]
    russian_lowest = means.idxmin(axis=1) == "ru"
    other_mapped = means[languages[1:]].drop(columns="ru").mean(axis=1)
    behind = (other_mapped - means["ru"])[russian_lowest]
    return russian_lowest.mean() > 1 / 2, (
        f"lowest mean of all in {russian_lowest.sum()} of 9 tasks, {behind.min():.2f} to "
        f"{behind.max():.2f} under the other mapped ones"
    )


@sentence(
    "8.1",
    "results are broadly similar across the other languages",
    "our results are broadly similar across languages, Russian appears to be an exception to this",
)
def similar_languages(setting_distances):
    other_distances, russian_distances = (
        [apart for pair, apart in setting_distances.items() if ("ru" in pair) == russian]
        for russian in (False, True)
    )
    return max(other_distances) < min(russian_distances), (
        f"mean absolute difference of two settings {min(other_distances):.3f} to "
        f"{max(other_distances):.3f}, with Russian {min(russian_distances):.3f} to "
        f"{max(russian_distances):.3f}"
    )


@sentence(
    "8.1",
    "very similar on both French: the transfer corpus is no factor",
    "most of our encoders perform very similarly on both the Europarl and the UN variants",
)
def both_french(setting_distances, accuracy, n, half):
    nearest_setting = pd.Series(setting_distances).idxmin()
    french = (accuracy["fr"] - accuracy["fr-UN"]).abs()
    n_french = n.loc[[(task, "fr") for task in accuracy.index.get_level_values("task")]].values
    french_apart = (
        reported.beyond(accuracy["fr"], accuracy["fr-UN"], n_french, n_french, half=half) != 0
    )
    return nearest_setting == ("fr", "fr-UN"), (
        f"mean difference {french.mean():.3f}, at most {french.max():.2f}, beyond rounding "
        f"and luck in {french_apart.sum()} of {len(french)}; nearest pair of settings: "
        f"{'/'.join(nearest_setting)}, but one language only"
    )


@sentence(
    "8.1",
    "Russian is poor for its word embeddings",
    "One possible explanation for the relatively poor results on Russian is the "
    "nature of the word embeddings themselves",
)
def word_embeddings():
    return [], (
        "not measured; Russian sentences were also parsed and segmented otherwise, and its "
        "mapping corpus is the UN's"
    )


@sentence(
    "8.3",
    "variants of an encoder are nearer to each other than to other encoders",
    "variants of each encoder being more similar to each other than to different encoders",
)
def variants_are_near(encoders, nearest, kinds, apart):
    nearest_to_each = nearest()
    return (
        [nearest_to_each[name].split()[0] == name.split()[0] for name in encoders],
        f"{kinds['RNN'][0]} is {apart.loc[kinds['RNN'][0], kinds['RNN'][1]]:.3f} from "
        f"{kinds['RNN'][1]}, {apart.loc[kinds['RNN'][0], kinds['Attention'][0]]:.3f} from "
        f"{kinds['Attention'][0]}",
    )


@sentence(
    "8.3",
    "both CNNs are worse than attentive or recurrent encoders",
    "Both our CNNs appear to perform worse than attentive or recurrent mechanisms",
)
def cnns_are_worse(overall, kinds, accuracy):
    cnn_rows = accuracy.index.get_level_values("encoder").str.startswith("CNN")
    cnn_under = accuracy[cnn_rows].groupby("task").max() < accuracy[~cnn_rows].groupby("task").min()
    return (
        overall.loc[kinds["CNN"], "all tasks"].max()
        < overall.drop(kinds["CNN"])["all tasks"].min(),
        f"their means are {overall.loc[kinds['CNN'], 'all tasks'].max():.3f} at most, the "
        f"others' {overall.drop(kinds['CNN'])['all tasks'].min():.3f} at least; both under "
        "all others in all six settings but in "
        f"{' and '.join(cnn_under.index[~cnn_under.all(axis=1)])}",
    )


@sentence(
    "8.3",
    "pooling has a more significant effect on CNNs than on others",
    "a more significant effect on convolutional encoders than on others",
)
def pooling_of_cnns(pooling):
    return pooling.idxmax(axis=1) == "CNN", (
        f"accuracies differ by {pooling.loc['accuracy', 'RNN']:.3f} (RNN), "
        f"{pooling.loc['accuracy', 'CNN']:.3f} (CNN), "
        f"{pooling.loc['accuracy', 'Attention']:.3f}; ratios by "
        f"{pooling.loc['ratio, without WC', 'RNN']:.3f}, "
        f"{pooling.loc['ratio, without WC', 'CNN']:.3f}, "
        f"{pooling.loc['ratio, without WC', 'Attention']:.3f} without WC"
    )


@sentence(
    "8.3",
    "attentive encoders are better at probing in general",
    "Attentive encoders appear to be better at probing in general",
)
def attentive_is_best(overall, kinds):
    attentive = overall.loc[kinds["Attention"]].min()
    best_other = overall.drop(kinds["Attention"]).max()
    return attentive > best_other, (
        f"means {attentive.iloc[0]:.3f} or more to {best_other.iloc[0]:.3f} of the best "
        f"other; without SentLen {attentive.iloc[1]:.3f} to {best_other.iloc[1]:.3f}"
    )


@sentence(
    "8.3",
    "recurrent encoders: extremely strong on tasks such as sentence length",
    "extremely strong performance on certain tasks, such as sentence length",
)
def length_of_recurrent(length_ratios, kinds, length):
    attentive_length = length.loc[kinds["Attention"]]
    rnn_length = length.loc[kinds["RNN"]]
    ahead = (attentive_length.min() > rnn_length.max()).sum()
    length_strength = length_ratios.groupby("encoder")["ratio"].mean()
    strength = {kind: length_strength[kinds[kind]].mean() for kind in ["RNN", "Attention"]}
    return [ahead < 6 / 2, strength["RNN"] > strength["Attention"]], (
        f"{rnn_length.min(axis=None)} to {rnn_length.max(axis=None)}, below both attentive "
        f"encoders ({attentive_length.min(axis=None):.2f} to {attentive_length.max(axis=None)}"
        f") in {ahead} of 6 settings; relative to English {strength['RNN']:.2f}, attention "
        f"{strength['Attention']:.2f}"
    )


@sentence(
    "8.3",
    "CNN (maxpool) is the only one considerably worse on sentence length",
    "The max-pooled CNN is the only encoder that shows considerably worse "
    "performance on sentence length",
)
def only_maxpool(length_ratios):
    length_down = (length_ratios["sign"] == -1).groupby(length_ratios["encoder"]).sum()
    return (
        length_down["CNN (maxpool)"] > 5 / 2 and length_down.drop("CNN (maxpool)").max() == 0,
        f"relative to English: worse beyond luck in {length_down['CNN (maxpool)']} of 5 "
        f"settings, every other encoder in {length_down.drop('CNN (maxpool)').max()}",
    )


@sentence("8.3", "this is also true for English", "This is also true for English")
def also_in_english(n, half, length, kinds):
    cnn_english = length.loc[kinds["CNN"], "en"]
    cnn_apart = reported.beyond(
        cnn_english["CNN (maxpool)"],
        cnn_english["CNN (avg. pool)"],
        n["SentLen", "en"],
        n["SentLen", "en"],
        half=half,
    )
    return cnn_apart < 0, (
        f"there CNN (maxpool) has {cnn_english['CNN (maxpool)']}, CNN (avg. pool) "
        f"{cnn_english['CNN (avg. pool)']}: {('apart' if cnn_apart else 'alike')} within "
        "rounding and luck"
    )


@sentence(
    "5, 8.3",
    "the CNN has an order of magnitude fewer parameters",
    "an order of magnitude fewer parameters",
)
def order_of_magnitude(weights):
    millions = (weights / 1e6).round(2)
    larger = (weights["biLSTM"] / 1e6 / millions.filter(like="CNN")).round(1)
    return larger > np.sqrt(10), (
        f"by Table 2 the biLSTM is {larger.iloc[0]:.1f} times as large, {larger.iloc[1]:.1f} "
        "with 800 channels in all; half an order is 3.2 times"
    )


@sentence(
    "7",
    "results on the original and the Wikipedia tasks are similar",
    "Similarities between results on our corpora are instantly visible",
)
def similar_corpora():
    return [], "the former are in a picture only (Figure 2)"
