"""The claims of the X-Probe paper, section by section, and what its own tables say of them.

`audit_of` has each claim once, for the notebook that shows them and the test that holds them: where
it stands, what is said, what the numbers say, and a verdict that follows from tests of its parts.
"""

import numpy as np
from scipy import stats

from xlx import printed
from xlx.core import statistics
from xlx.xprobe.printed_tables import PrintedTables
from xlx.xprobe.summaries import beyond


def audit_of(paper: PrintedTables) -> printed.Audit:
    """All claims, in the order of the audit, and Table 1 recomputed from Table 4."""
    audit = printed.Audit()
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


def _test_sets(audit: printed.Audit, paper: PrintedTables) -> None:
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


def _correlations(audit: printed.Audit, paper: PrintedTables) -> None:
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


def _relative(audit: printed.Audit, paper: PrintedTables) -> None:
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


def _gains(audit: printed.Audit, paper: PrintedTables) -> None:
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


def _guessing(audit: printed.Audit, paper: PrintedTables) -> None:
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


def _languages(audit: printed.Audit, paper: PrintedTables) -> None:
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


def _kinds(audit: printed.Audit, paper: PrintedTables) -> None:
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


def _length(audit: printed.Audit, paper: PrintedTables) -> None:
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


def _parameters(audit: printed.Audit, paper: PrintedTables) -> None:
    larger = paper.parameters()["biLSTM is larger by"].filter(like="channels")
    audit.claim(
        "5, 8.3", "the CNN has an order of magnitude fewer parameters",
        f"by Table 2 the biLSTM is {larger.iloc[0]:.1f} times as large, {larger.iloc[1]:.1f} with "
        "800 channels in all; half an order is 3.2 times", *(larger > np.sqrt(10)),
    )  # fmt: skip
