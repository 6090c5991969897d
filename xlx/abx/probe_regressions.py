"""Accuracy of probes regressed on LD and MD over languages (ABX paper, Table 1): for `abx-5`.

Printed and ours, other readings of "accuracy", the amount of text, the choice of a checkpoint.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from xlx.abx import selection
from xlx.abx.experiments import at_first, at_last
from xlx.abx.probe_setup import ProbeSetup
from xlx.abx.probe_tables import of_layers, shipped_parts
from xlx.core import languages, paths, statistics
from xlx.family import pretraining_text

LD_AND_MD = ["LD", "MD"]


def with_scores(
    accuracy: pd.DataFrame, scores: pd.DataFrame, of_tasks: Mapping[str, ProbeSetup]
) -> pd.DataFrame:
    """Accuracies beside LD and MD of the language, each task's commonest source alone.

    NER counts the languages of WikiAnn: in UNER nearly all words are no entity. With a folder of
    full data every language counts. ``scores`` as `series.summarise` by language.
    """
    keys = ["model", "checkpoint", "language"]
    wide = scores.pivot_table(index=keys, columns="task", values="score").reset_index()
    joined = accuracy.merge(wide, on=keys)
    shipped = shipped_parts(list(of_tasks))
    commonest = shipped.groupby("task")["source"].agg(lambda sources: sources.mode()[0])
    usual = shipped[shipped["source"] == shipped["task"].map(commonest)]
    usual = set(zip(usual["task"], usual["language"], strict=True))
    rows = zip(joined["task"], joined["language"], strict=True)
    return joined[[of_tasks[task].path is not None or (task, code) in usual for task, code in rows]]


def sides(joined: pd.DataFrame, untrained_counts: bool = False) -> dict[str, pd.DataFrame]:
    """ "Avg" (means over checkpoints), "Last", "untrained" (the first): a row a language each."""
    single = joined.groupby("model")["checkpoint"].transform("nunique") == 1
    counted = joined[untrained_counts | single | (joined["checkpoint"] > 0)]
    keys = ["model", "task", "language"]
    means = counted.groupby(keys, sort=False, as_index=False)[["accuracy", *LD_AND_MD]].mean()
    return {"Avg": means, "Last": at_last(joined), "untrained": at_first(joined)}


Fits = dict[tuple[str, str, str], statistics.Regression]


def regressions(of_sides: Mapping[str, pd.DataFrame]) -> Fits:
    """(model, task, side) → accuracy regressed on LD and MD over languages."""
    return {
        (model, task, side): statistics.regression(rows, "accuracy", LD_AND_MD)
        for side, table in of_sides.items()
        for (model, task), rows in table.groupby(["model", "task"], sort=False)
    }


def printed_regressions(setting: str) -> pd.DataFrame:
    """Table 1 of the paper as printed: its rows "probing_monolingual" or "cross_lingual"."""
    printed = pd.read_csv(paths.PUBLISHED / "abx" / "table1_regression.csv")
    return printed[printed["setting"] == setting]


def regression_table(fits: Fits, retest: pd.DataFrame) -> pd.DataFrame:
    """Table 1, rows "Prob.": printed and ours, what the notebook explains under it.

    p-values are text, since the printed ones are.
    """
    reliability = retest.set_index(["task", "model"])["r"]
    printed = printed_regressions("probing_monolingual")
    models = dict.fromkeys(model for model, _, _ in fits)
    rows = []
    for task, side in dict.fromkeys((task, side) for _, task, side in fits if side != "untrained"):
        of_row = printed[(printed["task"] == task) & (printed["checkpoint"] == side)]
        row = of_row.set_index(of_row["predictor"].fillna("R2"))[["value", "p_value"]]
        numbers = {"R2": float(row.loc["R2", "value"])}
        for term in LD_AND_MD:
            numbers |= {term: float(row.loc[term, "value"]), f"{term}, p": row.loc[term, "p_value"]}
        rows.append({"task": task, "checkpoint": side, "source": "printed"} | numbers)
        for model in models:
            numbers = _regression_row(fits[model, task, side], float(row.loc["LD", "value"]))
            numbers["retest r"] = reliability[task, model]
            rows.append({"task": task, "checkpoint": side, "source": model} | numbers)
    order = {task: number for number, task in enumerate(dict.fromkeys(r["task"] for r in rows))}
    rows.sort(key=lambda row: order[row["task"]])
    return pd.DataFrame(rows).set_index(["task", "checkpoint", "source"])


def _regression_row(fit: statistics.Regression, printed_ld: float) -> dict[str, object]:
    plain, robust = (
        fit.table[fit.table["errors"] == kind].set_index("term") for kind in ("classical", "robust")
    )
    row: dict[str, object] = {"R2": fit.r_squared}
    for term in LD_AND_MD:
        row[term] = plain.loc[term, "coefficient"]
        row[f"{term}, p"] = f"{plain.loc[term, 'p_value']:.3f}"
        row[f"{term}, robust p"] = f"{robust.loc[term, 'p_value']:.3f}"
    row["power"] = statistics.power(printed_ld, *plain.loc["LD", ["error", "df"]])
    row["VIF"] = plain.loc["LD", "vif"]
    row["Breusch-Pagan p"] = fit.breusch_pagan_p
    return row


def drawn_coefficients(fits: Fits) -> pd.DataFrame:
    """Coefficients as `plots.probes.coefficients` draws them: ``low``, ``high`` by ordinary errors,
    ``wide_low``, ``wide_high`` by robust ones; printed values have none."""
    printed = printed_regressions("probing_monolingual").dropna(subset="predictor")
    rows = []
    for task, side in dict.fromkeys((task, side) for _, task, side in fits if side != "untrained"):
        label = f"{task}, {side}"
        of_row = printed[(printed["task"] == task) & (printed["checkpoint"] == side)]
        rows += [
            (label, "printed", row.predictor, float(row.value), *[np.nan] * 4)
            for row in of_row.itertuples()
        ]
        for model in dict.fromkeys(model for model, _, _ in fits):
            table = fits[model, task, side].table.set_index(["errors", "term"])
            for term in LD_AND_MD:
                plain, wide = table.loc["classical", term], table.loc["robust", term]
                ends = plain["low"], plain["high"], wide["low"], wide["high"]
                rows.append((label, model, term, plain["coefficient"], *ends))
    columns = "row source predictor coefficient low high wide_low wide_high"
    tasks = list(dict.fromkeys(task for _, task, _ in fits))
    table = pd.DataFrame(rows, columns=columns.split())
    task = table["row"].str.split(",").str[0]
    return table.iloc[np.argsort(task.map(tasks.index), kind="stable")].reset_index(drop=True)


def readings(
    fits: Fits, of_sides: Mapping[str, pd.DataFrame], scored: pd.DataFrame
) -> pd.DataFrame:
    """The regression at the last checkpoint for other readings of "accuracy", robust intervals.

    Of the untrained model; as gain over it; above the commonest label; at the layer of lowest
    validation loss; at the last layer.
    """
    rows = []
    keys = ["model", "task", "language"]
    for (model, task), last in of_sides["Last"].groupby(["model", "task"], sort=False):
        start = of_sides["untrained"][[*keys, "accuracy"]]
        gain = last.merge(start, on=keys, suffixes=("", " untrained"))
        gain["accuracy"] -= gain["accuracy untrained"]
        probes_of = scored[(scored["model"] == model) & (scored["task"] == task)]
        majority = probes_of.groupby("language")["majority"].first()
        above = last.assign(accuracy=last["accuracy"] - last["language"].map(majority))
        at_end = probes_of[probes_of["checkpoint"] == last["checkpoint"].iloc[0]]
        fitted = {side: fits[model, task, side] for side in ("Last", "untrained")}
        tables = {"gain over untrained": gain} if gain["accuracy"].any() else {}
        tables["above commonest label"] = above
        for label, layer in (("best layer", "best"), ("last layer", at_end["layer"].max())):
            of_layer = of_layers(at_end, layer)[["language", "accuracy"]]
            tables[label] = last.drop(columns="accuracy").merge(of_layer, on="language")
        for label, table in tables.items():
            fitted[label] = statistics.regression(table, "accuracy", LD_AND_MD)
        for label, fit in fitted.items():
            robust = fit.table[fit.table["errors"] == "robust"].set_index("term")
            row = {"task": task, "model": model, "accuracy": label, "R2": fit.r_squared}
            for term in LD_AND_MD:
                value, low, high = robust.loc[term, ["coefficient", "low", "high"]]
                row |= {term: value, f"{term}, low": low, f"{term}, high": high}
            rows.append(row)
    return pd.DataFrame(rows).set_index(["task", "model", "accuracy"])


def text_amounts(last: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Accuracy against log characters of pretraining text (footnote 8), of miniatures alone."""
    characters = pretraining_text.characters().reindex(list(languages.ABX))
    rows = last[last["model"].str.startswith("mini-")]
    rows = rows.assign(amount=np.log(rows["language"].map(characters)))
    results = []
    for (model, task), of_task in rows.groupby(["model", "task"], sort=False):
        for method in ("spearman", "pearson"):
            found = statistics.correlation(
                of_task, "amount", "accuracy", languages=("language",), method=method, seed=seed
            )
            results.append((task, model, method, found.value, found.low, found.high, found.p_value))
    columns = ["task", "model", "method", "r", "low", "high", "p"]
    return pd.DataFrame(results, columns=columns).set_index(columns[:3])


# --- choosing a checkpoint (Appendix H) -----------------------------------------------------------


def chosen_checkpoints(
    joined: pd.DataFrame, task: str, untrained_counts: bool = False
) -> selection.Selection:
    """`selection.choose_checkpoints` of every model with three or more, ``model`` in front."""
    rows = joined[(joined["task"] == task) & (untrained_counts | (joined["checkpoint"] > 0))]
    chosen = {
        model: selection.choose_checkpoints(of_model)
        for model, of_model in rows.groupby("model", sort=False)
        if joined[joined["model"] == model]["checkpoint"].nunique() > 2
    }
    empty = pd.DataFrame(columns=["model", "rule", "against", "checkpoint"])
    return selection.Selection(
        *(
            pd.concat([getattr(found, part).assign(model=model) for model, found in chosen.items()])
            if chosen
            else empty
            for part in ("table", "summary")
        )
    )
