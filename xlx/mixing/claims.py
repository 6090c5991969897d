"""What the within/across paper says in words, and what its printed numbers say of it.

`claim_table` has each claim once, for the notebook that shows it and the test that holds it: its
section, a formula that its parts follow from, what the numbers say, and the verdict on the parts.
"""

from collections.abc import Iterator
from typing import NamedTuple

import pandas as pd

from xlx.mixing import published_drops as drops
from xlx.mixing.published import (
    TABLE_OF,
    PrintedScores,
    class_drops,
    public_shares,
)
from xlx.mixing.published_pairs import PrintedPairs, english_leads
from xlx.printed import Audit, verdict


class _Claim(NamedTuple):
    section: str
    claim: str
    formula: str
    said: str
    parts: tuple[bool, ...] | list[bool] | pd.Series


def claim_table(p: PrintedScores, audit: Audit) -> pd.DataFrame:
    """All claims by ``section``: ``claim, formula, found, verdict``; an audit is given them too."""
    pairs = PrintedPairs(p)
    groups = (
        _of_originals(p), _of_classes(p), _of_baselines(pairs), _of_fine_tuning(pairs),
        _of_drops(p), _of_pairs(p), _of_controls(p),
    )  # fmt: skip
    rows = []
    for section, claim, formula, said, parts in (claim for group in groups for claim in group):
        audit.claim(section, claim, said, *parts)
        rows.append((section, claim, formula, said, verdict(tuple(parts))))
    columns = ["section", "claim", "formula", "found", "verdict"]
    return pd.DataFrame(rows, columns=columns).set_index("section")


def _of_originals(p: PrintedScores) -> Iterator[_Claim]:
    original = p.tables["Table 7"]["original"].dropna()
    averages = pd.concat([p.tables[name]["avg"] for name in TABLE_OF.values()])
    repeated = original == averages[original.index]
    yield _Claim("Table 7", "column 'original' refers to Tables 1 to 3", "original = avg",
                 f"{sum(repeated)} of {len(repeated)} are their printed averages",
                 repeated)  # fmt: skip
    public = public_shares(p)
    out, whole = public["left out, %"], "both sentences in all languages"
    single = out[out.index.str.fullmatch(r"both sentences in \w\w")].mean()
    limit = p.said("wa_t11")
    yield _Claim(
        "3.2",
        "only parallel pairs of PAWS-X are used, so less than 0.5 % on average are excluded",
        "left out / 2,000 < 0.005, of all languages and of a language on average",
        f"{out[whole]:.2f} % lack a sentence in some language, {single:.2f} % in one on average; "
        f"labels differ in {out['same label in German and Chinese']:.2f} %; and the scores imply "
        "a share of paraphrases that the parallel pairs "
        f"{'have' if public.loc[whole, 'fits both'] else 'do not have'}",
        (out[whole] < limit, single < limit),
    )


def _of_classes(p: PrintedScores) -> Iterator[_Claim]:
    first, second = (table["NLI", "mBERT"].loc["within"] for table in (p.first, p.second))
    gap = first - second
    yield _Claim(
        "4, Table 5",
        "both classes contribute almost equally within (to 10 points)",
        "|s₁ - s₂| < 10, on average and in each language",
        f"{first.mean():.1f} and {second.mean():.1f} on average; accuracies differ by "
        f"{gap.min():.1f} ({gap.idxmin()}) to {gap.max():.1f} ({gap.idxmax()}), by less than 10 in "
        f"{(gap.abs() < 10).sum()} of {len(gap)} languages",
        (abs(gap.mean()) < 10, gap.abs().max() < 10),
    )
    share = class_drops(p)["share of the first"]
    yield _Claim("4", "most of the drop is of entailment / paraphrase, in all models",
                 "q d₁ / d > ½", f"shares {share.min():.2f} to {share.max():.2f}",
                 share > 0.5)  # fmt: skip
    tables = {model: p.first["NLI", model] for model in p.models}
    lost = {model: table.loc["within"] - table.loc["across"] for model, table in tables.items()}
    yield _Claim(
        "4",
        "the drop of entailment is more pronounced for low-resource languages",
        "d₁ > median of d₁, of Swahili and of Urdu in all models",
        "; ".join(f"{model}: largest in {drop.idxmax()} ({drop.max():.1f}), smallest in "
                  f"{drop.idxmin()} ({drop.min():.1f})" for model, drop in lost.items()),
        [all(drop[code] > drop.median() for drop in lost.values()) for code in ("sw", "ur")],
    )  # fmt: skip
    below = drops.below_f1(p).min(axis=None)
    yield _Claim("Tables 3, 8", "EM is at most F1 (by definition)", "F1 - EM ≥ 0",
                 f"below by {below:.1f} or more", (below >= 0,))  # fmt: skip


def _of_baselines(pairs: PrintedPairs) -> Iterator[_Claim]:
    same = pairs.four == pairs.nine.loc[pairs.four.index, pairs.four.columns]
    yield _Claim("Tables 4, 9", "Table 4 is part of Table 9", "the same numbers",
                 f"{same.to_numpy().sum()} of {same.size} numbers",
                 (same.all(axis=None),))  # fmt: skip
    baseline = pairs.baseline
    turned = baseline["l2-l1"].swaplevel().reindex(baseline.index)
    same = baseline["l1-l2"] == turned
    yield _Claim("Table 9", "the baseline of a pair is that of the other pair swapped",
                 "s(l1, l2) of a pair = s(l2, l1) of the other", f"{same.sum()} of {len(same)}",
                 same)  # fmt: skip
    for row, code, level in (("*-l2", "l2", "l2_hypothesis"), ("l1-*", "l1", "l1_premise")):
        counts = baseline[row].groupby(level).nunique()
        yield _Claim("Table 9", f"baseline of {row} is one number for each {code}",
                     "a mean of a column" if code == "l2" else "a mean of a row",
                     f"up to {counts.max()} for one {code}", counts == 1)  # fmt: skip
    everything = float(baseline["*-*"].unique().item())
    yield _Claim("Table 9", "*-* is the average over all languages",
                 "(15 within + 210 across) / 225",
                 f"all 225 cells by Table 1: {pairs.whole:.2f}, printed {everything}",
                 (abs(pairs.whole - everything) <= pairs.p.tolerance,))  # fmt: skip


def _of_fine_tuning(pairs: PrintedPairs) -> Iterator[_Claim]:
    change, n = pairs.change(), len(pairs.tuned)
    better = (pairs.tuned["l2-l1"] > pairs.baseline["l2-l1"]).groupby(pairs.second).sum()
    swapped = change.loc["l2-l1", "as printed"]
    yield _Claim(
        "3.4",
        "fine-tuning on a pair is no better on the same pair swapped",
        "l2-l1 less its baseline ≤ 0, on average and in each pair",
        f"{swapped:.1f} on average; better in {better.sum()} of {n} pairs, {better['ar']} of them "
        "with Arabic as l2",
        (swapped <= 0, not better.any()),
    )
    column, row = change.loc["*-l2"], change.loc["l1-*"]
    stars = pairs.starred_changes()
    yield _Claim(
        "3.4",
        "fine-tuning on a pair does not help with other languages",
        "starred row less its baseline ≤ 0 on average, as printed and with baselines put right",
        f"*-l2: by {column['as printed']:.1f} in {column['pairs better']} of {n} pairs as printed, "
        f"by {column['baselines wrong']:.1f} in {column['pairs better, 2']} if its baseline is "
        f"wrong; if all is, {column['is then']} gains so and {row['is then']} loses "
        f"{-row['all wrong']:.1f}; *-* {change.loc['*-*', 'as printed']:.1f}",
        (stars <= 0).to_numpy().ravel().tolist(),
    )


def _of_drops(p: PrintedScores) -> Iterator[_Claim]:
    shares = drops.explained_by_sides(p).loc["QA", ["part 1", "part 2"]]
    more = shares["part 1"] > shares["part 2"]
    context, question = (shares[part].round(2).tolist() for part in shares)
    yield _Claim("3.3", "InfoXLM relies on the context more than on the question, the others not",
                 "R² of the context > R² of the question",
                 f"context / question: {context} / {question}",
                 [more["InfoXLM"], not more["mBERT"], not more["XLM-R"]])  # fmt: skip
    both = ["mBERT", "XLM-R"]
    start, lost = drops.nli_drops(p)
    relative, rank = 100 * lost / start, lost.rank(ascending=False).loc["sw"].astype(int)
    pair, swahili = relative.loc[["en", "de"], both], relative.loc["sw", both]
    points = lost.loc[["en", "de"], both].mean(axis=None)
    yield _Claim(
        "3.1",
        f"English and German: about {p.text['wa_t01']} lost (mBERT, XLM-R)",
        "|mean of d / within - 17 %| < 1",
        f"{pair['mBERT'].mean():.1f} % and {pair['XLM-R'].mean():.1f} %, mean "
        f"{pair.mean(axis=None):.1f} %; in points {points:.1f}",
        (abs(pair.mean(axis=None) - p.said("wa_t01")) < 1,),
    )
    yield _Claim(
        "3.1",
        "the drop is even more pronounced for low-resource languages such as Swahili",
        "d / within of Swahili > mean of English and German",
        f"there {swahili['mBERT']:.1f} % (mBERT) and {swahili['XLM-R']:.1f} % (XLM-R); rank of its "
        f"drop in points, of {len(lost)}: {rank.to_dict()}",
        swahili > pair.mean(),
    )
    table = drops.drop_table(p)["per cent"].unstack()[list(p.models)]
    said = {
        name: f"{row['mBERT']:.1f} % and {row['XLM-R']:.1f} %" for name, row in table.iterrows()
    }
    mean = table.loc["PI", both].mean()
    yield _Claim("Table 2", f"on average {p.text['wa_t02']} lost (mBERT, XLM-R)",
                 "|mean of d / within - 17 %| < 1", f"{said['PI']}, mean {mean:.1f} %",
                 (abs(mean - p.said("wa_t02")) < 1,))  # fmt: skip
    for place, quantity, key in (("Table 3", "QA F1", "wa_t03"), ("Table 8", "QA EM", "wa_t04")):
        yield _Claim(place, f"more than {p.text[key]} of {quantity[3:]} lost (mBERT, XLM-R)",
                     "d / within > 50 %", said[quantity],
                     table.loc[quantity, both] > p.said(key))  # fmt: skip
    least = table.idxmin(axis=1) == "InfoXLM"
    yield _Claim("3.1", "InfoXLM loses least", "argmin of d / within",
                 f"in {least.sum()} of {len(least)} quantities", least)  # fmt: skip


def _of_pairs(p: PrintedScores) -> Iterator[_Claim]:
    table, both = drops.not_below_both(p).loc["QA"], ["mBERT", "XLM-R"]
    high, second = table["not below both"], table["of them en second"]
    english = second + table["of them en first"]
    left, cells = high - english, table["cells"].sum()
    yield _Claim(
        "3.3",
        "across is below both languages, but for English questions, and otherwise in InfoXLM",
        "s_ab < min(s_aa, s_bb) but where b = en; in InfoXLM but where a = en or b = en",
        f"{cells - high.sum()} of {cells} cells are below; of the others {second[both].sum()} are "
        f"mBERT's and XLM-R's, with English questions, {english['InfoXLM']} InfoXLM's with "
        f"English, and {left.sum()} neither",
        [*(high == second)[both], left["InfoXLM"] == 0],
    )
    near = table.loc[both, "en second, less within"]
    lost = -drops.drop_table(p).loc["QA F1", "points"][both]
    yield _Claim(
        "3.3",
        "with English questions mBERT and XLM-R are close to within of the context (5 points)",
        "|mean of s_a,en - s_aa| < 5",
        f"{near.round(1).to_dict()}; all of across: {lost.round(1).to_dict()}",
        near.abs() < 5,
    )
    nli = english_leads(p).loc["NLI"].iloc[0]
    yield _Claim(
        "3.1",
        "InfoXLM's objective has mostly helped pairs with English (XNLI)",
        "lead with English - lead without > 0, if its interval leaves out 0",
        f"six languages of Table 9: by {nli['with English']:.1f} points with English, "
        f"{nli['without']:.1f} without, difference {nli['difference']:.1f} ({nli['low']:.1f} to "
        f"{nli['high']:.1f})",
        () if nli["low"] < 0 < nli["high"] else (nli["difference"] > 0,),
    )


def _of_controls(p: PrintedScores) -> Iterator[_Claim]:
    plain = drops.control_readings(p).loc[("per cent", "both models", "both settings")]
    losses = drops.control_losses(p)
    qa = losses.xs("QA (XQuAD)", level="task")["per cent"]
    yield _Claim("5", f"NLI: a slight {p.text['wa_t05']} drop", "|mean loss - 4 %| < 0.5",
                 f"{plain['NLI']:.1f} % on average over models and settings",
                 (abs(plain["NLI"] - p.said("wa_t05")) < 0.5,))  # fmt: skip
    yield _Claim("5", f"QA: a drop of approximately {p.text['wa_t06']}", "|mean loss - 3 %| < 0.5",
                 f"{plain['QA']:.1f} % by the same reading; {qa.min():.1f} to {qa.max():.1f} %",
                 (abs(plain["QA"] - p.said("wa_t06")) < 0.5,))  # fmt: skip
    majority, furthest = drops.from_majority(p)
    yield _Claim("5", "PI: random performance", "|control - (1 - q)| < 2",
                 f"majority class {majority:.1f}; farthest from it by {furthest:.1f}",
                 (furthest < 2,))  # fmt: skip
    most = losses.loc["XLM-R", "points"].groupby("task").max()
    said = ", ".join(f"{task.split()[0]} {points:.1f} at most" for task, points in most.items())
    yield _Claim("Table 14",
                 "the drop in performance is negligible (under 5 points; XLM-R, all tasks)",
                 "original - control < 5", said, most < 5)  # fmt: skip
