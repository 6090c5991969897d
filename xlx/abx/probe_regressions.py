"""Accuracy of probes regressed on LD and MD over languages (ABX paper, Table 1): for `abx-5`.

Printed and ours, other readings of "accuracy", the amount of text, the choice of a checkpoint.
"""

from collections.abc import Mapping
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from xlx.abx import pair_regression, selection
from xlx.abx.checkpoint_scores import MATCHED
from xlx.abx.experiments import at_first, at_last
from xlx.abx.pair_regression import LD_AND_MD
from xlx.abx.probe_setup import ProbeSetup
from xlx.abx.probe_tables import of_layers, regressed, shipped_parts
from xlx.core import paths, statistics
from xlx.core.statistics.regressions import least_squares
from xlx.family import pretraining_text


def with_scores(
    accuracy: pd.DataFrame, scores: pd.DataFrame, of_tasks: Mapping[str, ProbeSetup]
) -> pd.DataFrame:
    """Accuracies beside LD and MD of the language, each task's commonest source alone.

    NER counts the languages of WikiAnn: in UNER nearly all words are no entity. With a folder of
    full data every language counts, with a source of its own those of that source. ``scores`` as
    `averages.averaged_scores` by language.
    """
    keys = ["model", "checkpoint", "language"]
    wide = scores.pivot_table(index=keys, columns="task", values="score").reset_index()
    joined = accuracy.merge(wide, on=keys)
    own = {task: setup.source for task, setup in of_tasks.items() if setup.source}
    shipped = shipped_parts(list(of_tasks), own)
    commonest = shipped.groupby("task")["source"].agg(lambda sources: sources.mode()[0])
    usual = shipped[shipped["source"] == shipped["task"].map(commonest)]
    usual = set(zip(usual["task"], usual["language"], strict=True))
    rows = zip(joined["task"], joined["language"], strict=True)
    return joined[[of_tasks[task].path is not None or (task, code) in usual for task, code in rows]]


#: Sides that the paper prints.
SIDES = ("Avg", "Last")
#: The side of the last checkpoint in the course of all, where languages have as many words each.
EQUAL = "as many words in each language"


def sides(
    joined: pd.DataFrame, last: pd.DataFrame, untrained_counts: bool = False
) -> dict[str, pd.DataFrame]:
    """A row a language each: "Last", of ``last``; of ``joined``, all checkpoints of a series, "Avg"
    (the means), "untrained" (the first) and `EQUAL` (the last).
    """
    single = joined.groupby("model")["checkpoint"].transform("nunique") == 1
    counted = joined[untrained_counts | single | (joined["checkpoint"] > 0)]
    keys = ["model", "task", "language"]
    means = counted.groupby(keys, sort=False, as_index=False)[["accuracy", *LD_AND_MD]].mean()
    ends = {"untrained": at_first(joined), EQUAL: at_last(joined)}
    return {"Avg": means, "Last": at_last(last)} | ends


Fits = dict[tuple[str, str, str], statistics.Regression]


def regressions(of_sides: Mapping[str, pd.DataFrame]) -> Fits:
    """(model, task, side) → accuracy regressed on LD and MD over languages."""
    return {
        (model, task, side): statistics.regression(rows, "accuracy", LD_AND_MD)
        for side, table in of_sides.items()
        for (model, task), rows in table.groupby(["model", "task"], sort=False)
    }


def printed_regressions(setting: str) -> pd.DataFrame:
    """Table 1 as printed, "probing_monolingual" or "cross_lingual": a row a task and checkpoint.

    Columns (``value`` or ``p_value``, which is text; "R2", "LD" or "MD").
    """
    printed = pd.read_csv(paths.PUBLISHED / "abx" / "table1_regression.csv")
    printed = printed[printed["setting"] == setting].fillna({"predictor": "R2"})
    keys = ["task", "checkpoint"]
    return printed.pivot(index=keys, columns="predictor", values=["value", "p_value"])


def of_errors(fit: statistics.Regression, kind: str) -> pd.DataFrame:
    """The rows of LD and MD with one kind of errors."""
    return fit.table[fit.table["errors"] == kind].set_index("term").loc[LD_AND_MD]


def regression_table(fits: Fits, of_sides: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Table 1, rows "Prob.": printed and ours; of LD and MD each ``β``, in standard deviations.

    ``Holm p``: of robust errors, for all of our rows together. p-values are text, since the printed
    ones are.
    """
    printed = printed_regressions("probing_monolingual")
    models, tasks = (list(dict.fromkeys(key[part] for key in fits)) for part in (0, 1))
    robust = {key: of_errors(fit, "robust") for key, fit in fits.items() if key[2] in SIDES}
    together = pair_regression.holm(pd.concat(robust)["p_value"])
    rows = {}
    for task, side in product(tasks, SIDES):
        value, p_value = (printed.loc[task, side][part] for part in ("value", "p_value"))
        row = {"R2": float(value["R2"])}
        for term in LD_AND_MD:
            row |= {term: float(value[term]), f"{term}, p": p_value[term]}
        rows[task, side, "printed"] = row
        for model in models:
            key = model, task, side
            spread = _rows(of_sides[side], model, task)[["accuracy", *LD_AND_MD]].std()
            row = {"R2": fits[key].r_squared}
            for term, own in of_errors(fits[key], "classical").iterrows():
                row[term] = own["coefficient"]
                row[f"{term}, β"] = own["coefficient"] * spread[term] / spread["accuracy"]
                row[f"{term}, p"] = f"{own['p_value']:.3f}"
                row[f"{term}, robust p"] = f"{robust[key].loc[term, 'p_value']:.3f}"
                row[f"{term}, Holm p"] = f"{together[(*key, term)]:.3f}"
            rows[task, side, model] = row
    table = pd.DataFrame(rows.values(), index=pd.MultiIndex.from_tuples(rows))
    of_term = ["", ", β", ", p", ", robust p", ", Holm p"]
    columns = ["R2", *(term + name for term in LD_AND_MD for name in of_term)]
    return table.rename_axis(["task", "checkpoint", "source"])[columns]


def regression_checks(
    fits: Fits, of_sides: Mapping[str, pd.DataFrame], retest: pd.DataFrame
) -> pd.DataFrame:
    """What the coefficients of LD could have shown, and what they hang on.

    ``power`` to see the printed one, ``detectable``: the smallest that is seen in 80 % of samples
    (both by robust errors); ``VIF``; ``heaviest``: the language of the largest Cook's distance
    (``cook``; ``next cook``: of another); ``lowest``, ``highest`` coefficient without one
    language; ``retest r``: the reliability of the accuracies.
    """
    printed = printed_regressions("probing_monolingual")["value"]["LD"].astype(float)
    reliability = retest.set_index(["task", "model"])["r"]
    rows = {}
    for (model, task, side), fit in fits.items():
        if side not in SIDES:
            continue
        table = _rows(of_sides[side], model, task).set_index("language")
        robust = of_errors(fit, "robust").loc["LD"]
        cook = statistics.leverage(table, "accuracy", LD_AND_MD)["cook"].sort_values()
        without = [_ld(table.drop(index=code)) for code in table.index]
        rows[task, side, model] = {
            "power": statistics.power(printed[task, side], robust["error"], robust["df"]),
            "detectable": pair_regression.detectable(robust["error"], robust["df"]),
            "VIF": robust["vif"],
            "heaviest": cook.index[-1],
            "cook": cook.iloc[-1],
            "next cook": cook.iloc[-2],
            "lowest": min(without),
            "highest": max(without),
            "retest r": reliability[task, model],
        }
    table = pd.DataFrame(rows.values(), index=pd.MultiIndex.from_tuples(rows))
    order = [fit for task in printed.index.unique("task") for fit in rows if fit[0] == task]
    return table.rename_axis(["task", "checkpoint", "model"]).loc[order]


def _ld(table: pd.DataFrame) -> float:
    """The coefficient of LD."""
    return float(least_squares(table, "accuracy", LD_AND_MD).params[1])


def drawn_coefficients(fits: Fits) -> pd.DataFrame:
    """Coefficients as `plots.probes.coefficients` draws them: ``low``, ``high`` by ordinary errors,
    ``wide_low``, ``wide_high`` by robust ones."""
    tables = []
    for (model, task, side), fit in fits.items():
        if side in SIDES:
            plain, robust = (of_errors(fit, kind) for kind in ("classical", "robust"))
            ends = plain[["coefficient", "low", "high"]].assign(
                wide_low=robust["low"], wide_high=robust["high"]
            )
            labels = {"task": task, "row": f"{task}, {side}", "source": model}
            tables.append(ends.assign(**labels).rename_axis("predictor").reset_index())
    return under_printed(pd.concat(tables), "probing_monolingual")


def under_printed(ours: pd.DataFrame, setting: str) -> pd.DataFrame:
    """Printed coefficients, which have no interval, and ours below, task by task.

    ``ours`` has ``row`` ("POS, Last"), ``task``, ``source``, ``predictor``, ``coefficient``.
    """
    printed = printed_regressions(setting)["value"][LD_AND_MD].astype(float)
    printed = printed.stack().rename("coefficient").reset_index().assign(source="printed")
    printed["row"] = printed["task"] + ", " + printed["checkpoint"]
    if setting == "cross_lingual":
        printed["row"] = printed["task"] + ", all pairs"
    tasks = list(ours["task"].unique())
    both = pd.concat([printed[printed["task"].isin(tasks)], ours], ignore_index=True)
    return both.sort_values("task", key=lambda names: names.map(tasks.index), kind="stable")


def readings(
    fits: Fits, of_sides: Mapping[str, pd.DataFrame], scored: pd.DataFrame
) -> pd.DataFrame:
    """The regression at the last checkpoint for other readings of its terms, robust intervals.

    Of the accuracy: as the paper takes it; with as many words in every language; of the untrained
    model; as gain over it; at the layer of lowest validation loss, or the last. Of the scores: MD
    among sentences of like length, LD in logits, both in ranks. Beside them the words or pairs that
    a language has to train on (logs). ``scored`` as `probe_tables.probed` returns it.
    """
    rows = []
    for (model, task), last in of_sides["Last"].groupby(["model", "task"], sort=False):
        untrained, equal = (
            _rows(of_sides[side], model, task).set_index("language")["accuracy"]
            for side in ("untrained", EQUAL)
        )
        own = at_last(_rows(scored, model, task))
        n_train = own.groupby("language")["n_train"].first()
        tables = {
            "Last": last,
            "accuracy as the paper takes it": last.assign(accuracy=last["plain accuracy"]),
            EQUAL: last.assign(accuracy=last["language"].map(equal)),
            "gain over untrained": last.assign(accuracy=last["language"].map(equal - untrained)),
            **_other_layers(last, own),
            "MD among sentences of like length": last.assign(MD=last[MATCHED]),
            "LD in logits": last.assign(LD=pair_regression.SCALES["logits"](last["LD"])),
            "LD and MD in ranks": last.assign(
                **{term: pair_regression.SCALES["ranks"](last[term]) for term in LD_AND_MD}
            ),
            "beside words to train on": last.assign(n=np.log(last["language"].map(n_train))),
        }
        fitted = {"untrained": fits[model, task, "untrained"]}
        for label, table in tables.items():
            if table["accuracy"].nunique() > 1:  # a model of one checkpoint has no gain
                terms = [*LD_AND_MD, *(["n"] if "n" in table and table["n"].nunique() > 1 else [])]
                fitted[label] = statistics.regression(table, "accuracy", terms)
        for label, fit in fitted.items():
            row = {"task": task, "model": model, "reading": label, "R2": fit.r_squared}
            for term, own in of_errors(fit, "robust").iterrows():
                row |= {term: own["coefficient"]}
                row |= {f"{term}, {end}": own[end] for end in ("low", "high")}
            rows.append(row)
    return pd.DataFrame(rows).set_index(["task", "model", "reading"])


def _other_layers(last: pd.DataFrame, at_end: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of ``last`` with what is regressed at other layers."""
    tables = {}
    for label, layer in (("best layer", "best"), ("last layer", at_end["layer"].max())):
        values = regressed(of_layers(at_end, layer, majority=True)).set_index("language")
        tables[label] = last.assign(accuracy=last["language"].map(values["accuracy"]))
    return tables


def _rows(table: pd.DataFrame, model: str, task: str) -> pd.DataFrame:
    """The rows of one model and task."""
    return table[(table["model"] == model) & (table["task"] == task)]


def text_amounts(
    last: pd.DataFrame, seed: int, counted: Mapping[str, str | Path] | None = None
) -> pd.DataFrame:
    """Accuracy against the log amount of pretraining text (footnote 8), by model and task.

    ``counted``: model → a CSV file with the columns ``language`` and ``amount``, in any unit, as it
    was sampled; of a miniature the characters that it was trained on are known. Other models are
    left out. ValueError for a file without these columns, or an amount that is not above zero.
    """
    results = []
    for model, of_model in last.groupby("model", sort=False):
        amounts = _amounts(model, counted or {})
        if amounts is None:
            continue
        rows = of_model.assign(amount=np.log(of_model["language"].map(amounts)))
        by_task = rows.dropna(subset="amount").groupby("task", sort=False)
        for (task, of_task), method in product(by_task, ("spearman", "pearson")):
            r = statistics.correlation(
                of_task, "amount", "accuracy", languages=("language",), method=method, seed=seed
            )
            results.append((task, model, method, r.value, r.low, r.high, r.p_value))
    columns = ["task", "model", "method", "r", "low", "high", "p"]
    return pd.DataFrame(results, columns=columns).set_index(columns[:3])


def _amounts(model: str, counted: Mapping[str, str | Path]) -> pd.Series | None:
    """Language → amount of text."""
    if model not in counted:
        return pretraining_text.characters() if model.startswith("mini-") else None
    table = pd.read_csv(counted[model])
    if missing := sorted({"language", "amount"} - set(table)):
        raise ValueError(
            f"{counted[model]} has no column {missing[0]}: a row a language, its code in language "
            "and the amount of its text in amount"
        )
    amounts = table.set_index("language")["amount"]
    if bad := [code for code, amount in amounts.items() if not amount > 0]:
        raise ValueError(f"{counted[model]}: the amount of {bad[0]} is not above zero")
    return amounts


def chosen_checkpoints(
    joined: pd.DataFrame, task: str, untrained_counts: bool = False
) -> selection.Selection:
    """`selection.choose_checkpoints` of every model with three or more, ``model`` in front.

    Appendix H of the paper.
    """
    rows = joined[(joined["task"] == task) & (untrained_counts | (joined["checkpoint"] > 0))]
    chosen = {
        model: selection.choose_checkpoints(of_model)
        for model, of_model in rows.groupby("model", sort=False)
        if joined[joined["model"] == model]["checkpoint"].nunique() > 2
    }
    tables = (
        [getattr(choice, part).assign(model=model) for model, choice in chosen.items()]
        for part in ("table", "summary")
    )
    empty = pd.DataFrame(columns=["model", "rule", "against", "checkpoint"])
    return selection.Selection(*(pd.concat(part) if part else empty for part in tables))
