"""What the MEXA paper says in words, and what its printed numbers say of it: a table of claims.

Each claim has its section, a formula that its parts follow from, what the numbers say, and the
parts; its verdict follows from them (`xlx.printed.verdict`).
"""

from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd

from xlx.mexa.chance import chance_table
from xlx.mexa.correlation_tables import (
    cosine_tests,
    missing_languages,
    p_values,
    setting_averages,
)
from xlx.mexa.published import (
    ENGLISH,
    FIGURE_1_MODEL,
    HALF_4,
    OTHERS,
    MexaTables,
    band_counts,
    hits_left,
    script_means,
)
from xlx.printed import Audit, verdict
from xlx.text import corpora

#: Section, claim, formula, what the numbers say (``found``), and the parts: one or several.
Claim = tuple[str, str, str, str, object]


def all_claims(p: MexaTables) -> pd.DataFrame:
    """All claims in the order of the notebook, a row each, with their ``verdict``."""
    groups = (_of_table_6, _of_correlations, _of_p_values, _of_table_1, _between_models, _of_counts)
    rows = [claim for group in groups for claim in group(p)]
    table = pd.DataFrame(rows, columns=["section", "claim", "formula", "found", "parts"])
    table["parts"] = [np.atleast_1d(np.asarray(parts)).tolist() for parts in table["parts"]]
    return table.assign(verdict=table["parts"].map(verdict))


def audit_claims(audit: Audit, p: MexaTables) -> pd.DataFrame:
    """Give all claims to an audit; ``section, claim, formula, verdict``."""
    table = all_claims(p)
    for row in table.itertuples():
        audit.claim(row.section, row.claim, row.found, *row.parts)
    return table[["section", "claim", "formula", "verdict"]]


def shown_claims(p: MexaTables, sections: Iterable[str]) -> pd.DataFrame:
    """What the numbers say of the claims of some sections, for display."""
    table = all_claims(p)
    table = table[table["section"].isin(sections)].set_index("section")
    return table[["claim", "found", "verdict"]]


def _of_table_6(p: MexaTables) -> Iterator[Claim]:
    right = p.table_1.loc[(ENGLISH, "m-MMLU"), "Llama 3.1 70B"] * 500
    yield ("4.3", "Llama 3.1 70B: 500 questions of m-MMLU", "|500 s - k| ≤ 500 · 0.00005",
           f"{right:.2f} right answers of 500",
           abs(right - round(right)) <= 500 * HALF_4)  # fmt: skip
    shipped = set(corpora.tags("flores200-100").values())
    labels = p.files["table6"]["label"]
    yield ("A.8", "labels are those of FLORES-200, tzm renamed to zgh, without Cantonese",
           "label ∈ FLORES-200", f"not among them: {', '.join(sorted(set(labels) - shipped))}",
           labels.isin(shipped))  # fmt: skip
    yield ("4.1", "English was translated into 204 languages and scripts", "labels = 204",
           f"{len(shipped) + 1} labels with Cantonese and English, so {len(shipped)}",
           len(shipped) == 204)  # fmt: skip
    fits = hits_left(p)["count"] > 0
    yield ("A.8", "each entry is k / 100 of the English accuracy",
           "|k s / 100 - entry| ≤ 0.005 + 0.00005 k / 100",
           f"{fits.to_numpy().sum()} of {fits.size}", fits.to_numpy().ravel())  # fmt: skip
    top = set(band_counts(p)["0.8–1 (well-covered)"].nlargest(2).index)
    yield ("5.2", "Llama 3.1 70B and Gemma 2 9B show a higher level of multilinguality",
           "among the two with most languages above 0.8",
           f"most languages above 0.8: {', '.join(sorted(top))}",
           [model in top for model in ("Llama 3.1 70B", "Gemma 2 9B")])  # fmt: skip


def _of_correlations(p: MexaTables) -> Iterator[Claim]:
    both = setting_averages(p).groupby(level=["embedding", "layer_pooling"]).mean()
    yield ("5.1", "weighted average with mean is best over both data sets", "argmax",
           f"{' with '.join(both.idxmax())}: {both.max():.4f}",
           both.idxmax() == ("weighted average", "Mean"))  # fmt: skip
    drop = p.table_5[10].unstack("parallel_data").eval("FLORES - Bible")
    yield ("5.1", "averages for the Bible are lower than for FLORES", "FLORES - Bible > 0",
           f"in {(drop > 0).sum()} of {len(drop)} settings", drop > 0)  # fmt: skip
    gain = p.table_5[10].unstack("layer_pooling").eval("Max - Mean").unstack("task")
    values = [f"{value:+.4f} ({data}, {kind})" for (data, kind), value in gain["Belebele"].items()]
    yield ("5.1", "max pooling correlates better with Belebele", "Max - Mean > 0",
           ", ".join(values), gain["Belebele"] > 0)  # fmt: skip
    yield ("5.1", "mean pooling is more aligned with m-ARC", "Max - Mean < 0",
           f"in {(gain['m-ARC'] < 0).sum()} of {len(gain)}", gain["m-ARC"] < 0)  # fmt: skip
    column = p.models.index(FIGURE_1_MODEL) + 1
    of_model = p.table_5[column].unstack("layer_pooling").eval("Max - Mean").unstack("task")
    of_model = of_model.xs("weighted average", level="embedding")
    for task, pooling, sign in (("Belebele", "max", 1), ("m-ARC", "mean", -1)):
        values = sign * of_model[task]
        yield (
            "5.2",
            f"the pooling of Figure 1 (Llama 3.1 8B) correlates better: {pooling} for {task}",
            f"{'Max - Mean' if sign > 0 else 'Mean - Max'} > 0",
            ", ".join(f"{data} {value:+.4f}" for data, value in values.items()),
            values > 0,
        )
    marked = pd.concat([p.files["table2"], p.long_5]).query("mark_printed == 'second_best'")
    second = p.table_5[10].groupby(level="task").agg(lambda task: task.nlargest(2).iloc[-1])
    values = [f"{row.value} ({row.task}; second best: {second[row.task]})"
              for row in marked.itertuples()]  # fmt: skip
    yield ("Tables 2, 5", "underlined: second best average of a task",
           "number = second largest of its task", ", ".join(values),
           marked["value"] == marked["task"].map(second))  # fmt: skip


def _of_p_values(p: MexaTables) -> Iterator[Claim]:
    table = p_values(p)
    same = table["marked"] == (table["p"] >= 0.001)
    yield ("Table 5", "p < 0.001 but where marked", "marked ⇔ p ≥ 0.001",
           f"{same.sum()} of {len(same)}", same)  # fmt: skip
    tail = chance_table(100).set_index("k")["binomial"]
    yield ("A.4", "a score larger than 0.05: 0.00016", "|P(≥ 6 of 100) - 0.00016| ≤ 0.000005",
           f"0.05 or more: {tail[5]:.6f}; larger: {tail[6]:.7f}",
           abs(tail[6] - float(p.text["mexa_t21"])) <= 0.5e-5)  # fmt: skip


def _of_table_1(p: MexaTables) -> Iterator[Claim]:
    table = p.table_1
    marked = p.files["table1"].query("mark_printed == 'second_best'")
    rank = table[p.models].rank(axis=1, ascending=False).stack()
    of_marked = [rank[tuple(row)] == 2 for row in marked[["group", "item", "model"]].to_numpy()]
    yield ("Table 1", "underlined: second best", "rank = 2, one a row",
           f"{len(marked)} of {len(table)} rows have a mark",
           [*of_marked, len(marked) == len(table)])  # fmt: skip
    rows = table.index.drop(ENGLISH, level="group")
    first, llama = (table.loc[rows, model] for model in ("Gemma 2 9B", FIGURE_1_MODEL))
    named = ["Llama 3.1 70B", "Gemma 2 9B", FIGURE_1_MODEL]
    others = table.loc[rows, p.models].drop(columns=named).max(axis=1)
    for name, better in (
        ("Gemma 2", first > others.clip(lower=llama)),
        ("Llama 3.1", llama > others),
    ):
        not_in = ", ".join(" ".join(row) for row in better.index[~better]) or "none"
        yield ("5", f"of 7 to 9 billion, {name} outperforms the others", "above all others",
               f"in {better.sum()} of {len(better)} rows; others: {not_in}",
               better)  # fmt: skip
    scores, tasks, english = table.loc[["FLORES", "Bible"]], table.loc[OTHERS], table.loc[ENGLISH]
    old, seven = table["Llama 2 7B"], scores["Llama 2 7B"]
    orders = {
        "Llama 3 and 3.1 are above Llama 2": table[[FIGURE_1_MODEL, "Llama 3 8B"]].min(axis=1)
        > old,
        "Llama 3.1 70B is better aligned than 8B": scores["Llama 3.1 70B"] > scores[FIGURE_1_MODEL],
        "Mistral is less well aligned than Gemma 1": scores["Gemma 1 7B"]
        > scores["Mistral 0.3 7B"],
        "Llama 2 is better aligned than OLMo": seven > scores["OLMo 1.7 7B"],
        "Llama 2 is weaker than OLMo in English": english["Llama 2 7B"] < english["OLMo 1.7 7B"],
    }
    for claim, holds in orders.items():
        yield ("5", claim, "larger in each row", f"in {holds.sum()} of {len(holds)} rows", holds)
    for claim, one, other, of in (
        ("Mistral is comparable (to 0.02) to Gemma 1 in English", "Mistral 0.3 7B", "Gemma 1 7B",
         english),
        ("Llama 2 and OLMo are comparable (to 0.02) in other languages", "Llama 2 7B",
         "OLMo 1.7 7B", tasks),
    ):  # fmt: skip
        apart = of[one] - of[other]
        yield ("5", claim, "|difference| ≤ 0.02",
               ", ".join(f"{task} {value:+.3f}" for task, value in apart.items()),
               apart.abs() <= 0.02)  # fmt: skip
    averages = pd.concat([tasks["AVG"], english["AVG"]], axis=1).T
    order = ["Belebele", "m-MMLU", "m-ARC"]
    falls = tasks[p.models].apply(lambda model: model[order].is_monotonic_decreasing)
    yield ("5.1", "Belebele is the easiest of the three tasks, m-ARC the hardest",
           "averages fall from task to task",
           f"by the averages, though not for {' and '.join(falls.index[~falls])}",
           [(averages[a] > averages[b]).all() for a, b in (order[:2], order[1:])])  # fmt: skip


def _between_models(p: MexaTables) -> Iterator[Claim]:
    newer = p.table_1["Llama 2 7B"] > p.table_1["Llama 1 7B"]
    tasks = newer[[ENGLISH, OTHERS]]
    rows = list(p.table_1.loc[["FLORES", "Bible"]].index)
    said = ", ".join(f"{'above' if newer[row] else 'below'} in {' '.join(row)}" for row in rows)
    yield (
        "A.7",
        "the score is comparable between models (Llama 2 and Llama 1: as the tasks order them)",
        "above in scores ⇔ above in tasks",
        f"Llama 2 is above Llama 1 in {tasks.sum()} of {len(tasks)} rows of tasks, {said}",
        newer[rows] == newer[OTHERS].all(),
    )
    means = script_means(p)
    higher = means["Latin"] > means["other"]
    not_in = ", ".join(higher.index[~higher["quarter"]])
    yield (
        "A.7",
        "of very low-resource languages those in Latin script have higher scores",
        "mean of Latin > mean of others, lowest quarter",
        f"lowest quarter: in {higher['quarter'].sum()} of {len(higher)} models, not in {not_in}; "
        f"lowest half: in {higher['half'].sum()}",
        higher["quarter"],
    )
    arabic = p.table_6.loc[["arb_Arab", "arb_Latn"], ["Llama 1 7B", FIGURE_1_MODEL]]
    said = [f"{model} {of['arb_Arab']} and {of['arb_Latn']}" for model, of in arabic.items()]
    yield ("A.7", "Arabic is better in its own script than in Latin (Llama 1, Llama 3.1)",
           "arb_Arab > arb_Latn", ", ".join(said),
           arabic.loc["arb_Arab"] > arabic.loc["arb_Latn"])  # fmt: skip


def _of_counts(p: MexaTables) -> Iterator[Claim]:
    for model, largest in cosine_tests(p)["largest p"].items():
        yield ("5.3", f"the cosine correlates significantly lower ({model})",
               "Williams' test, p < 0.05 for all r₂₃",
               f"p < {10 ** np.ceil(np.log10(largest)):.0e} for every possible r23",
               largest < 0.05)  # fmt: skip
    table_3, table_4 = p.files["table3"], p.files["table4"].set_index("dataset")
    listed = set(missing_languages()) & set(table_3["code"])
    yield ("A.1", "none of the nine languages said to be missing is in Table 3", "∩ = ∅",
           f"{len(listed)} are", not listed)  # fmt: skip
    yield ("A.1", "all in Table 3 are above 0.005 %", "share > 0.005",
           f"least: {table_3['value'].min()} %", table_3["value"] > 0.005)  # fmt: skip
    tagging = ["Part of Speech Tagging", "Name Entity Recognition"]
    widest = table_4[~table_4["task"].isin(tagging)]["n_languages"].idxmax()
    yield ("Limitations", "Belebele has the most languages but for tagging", "argmax",
           widest, widest == "Belebele")  # fmt: skip
