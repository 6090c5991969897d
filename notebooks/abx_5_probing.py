"""Probes in one language against LD and MD (ABX paper, section 5.2): the tables of `abx-5`.

Parameters in, tidy tables out; `xlx.experiment.probing` makes the numbers behind them.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xlx.results import checks, paths
from xlx.results.deferred import deferred

stats = deferred("scipy.stats")

sys.path.append(str(paths.MODELS))  # the text that the family read: data/models-long/family

from family.pretraining_text import held_out_ids, read_source
from shared import pair_regressions, regressions
from shared.abx_figures import language_courses
from shared.abx_tables import at_last, mean_of_runs
from shared.pair_regressions import LD_AND_MD, Reading, instead, turned
from shared.regressions import Regression, regression
from shared.shown import framed_handle
from xlx.experiment.abx_scores import (
    MATCHED,
    CheckpointScores,
    before_training,
    history,
    language_weights,
)
from xlx.experiment.averages import average, averaged_scores
from xlx.experiment.probing import ProbeSetup, cross_lingual, monolingual
from xlx.experiment.scoring import subject_scores
from xlx.measures import statistics
from xlx.plots.panels import number, rows_of
from xlx.plots.primitives import Cells, Lanes, lanes
from xlx.plots.style import styled
from xlx.subjects.identity import Name, twin_parts
from xlx.text.examples import Examples
from xlx.text.files import catalogue
from xlx.text.parallel import ParallelCorpus

# --- what is read ---------------------------------------------------------------------------------


def characters() -> pd.Series:
    """How many characters members are trained on, by language, all sources together.

    What the table beside the archives counts, less the NTREX lines that are held out.
    """
    table = paths.DATA / "pretraining" / "counts.tsv"
    counts = pd.read_csv(table, sep="\t", keep_default_na=False)
    total, held_out = counts.groupby("language", sort=False)["characters"].sum(), held_out_ids()
    apart = {
        code: sum(len(line) for key, line in lines.items() if key in held_out)
        for code, lines in read_source("ntrex").items()
    }
    return total - pd.Series(apart).reindex(total.index, fill_value=0)


#: In place of a table's path: the archives that the family is trained on.
ARCHIVES = "archives"


def amounts_of_text(rows: pd.DataFrame, tables: Mapping[str, str]) -> pd.DataFrame:
    """Does accuracy go with the text that a model has read of a language (footnote 8)?

    ``tables``: model → a table of ``language`` and an amount (tab-separated, its path from the
    repository's root), or `ARCHIVES`. Spearman's correlation, one row per task and model, with
    interval over languages; NaN of a model that no table is named for.
    """
    known = {
        model: characters()
        if place == ARCHIVES
        else pd.read_csv(paths.ROOT / place, sep="\t", index_col="language").iloc[:, 0]
        for model, place in tables.items()
        if place
    }
    read = [
        known[model].get(code, np.nan) if model in known else np.nan
        for model, code in zip(rows["model"], rows["language"], strict=True)
    ]
    return statistics.correlations(
        rows.assign(amount=read),
        ["task", "model"],
        "amount",
        "accuracy",
        languages=("language",),
        method="spearman",
    )


# --- what is probed -------------------------------------------------------------------------------


class HypothesisAlone(ProbeSetup):
    """A setup whose pairs have lost their premise: the hypothesis stands in its place, too."""

    def load(self, *asked: str) -> Examples:
        """A split whose first sentences are its second ones."""
        return replace(part := super().load(*asked), first=part.second)

    def about(self, *asked: str) -> dict[str, object]:
        """What names that split, and what is done to it."""
        return super().about(*asked) | {"first": "second"}


def course_of(
    name: str,
    leave_out: Sequence[int] = (),
    steps: Sequence[int] | None = None,
    checkpoints: str = "all",
) -> dict[int, Name]:
    """Checkpoint → state: 0 is what is untrained (`before_training`), 1 a model without history.

    Of ``steps`` those that the series has, and its last checkpoint in any case. ``checkpoints``:
    "all", "ends" (untrained and last) or "last".
    """
    later = {getattr(of, "step", 1): of for of in history(name, leave_out=leave_out)}
    kept = {k: of for k, of in later.items() if k and (steps is None or k in {*steps, max(later)})}
    if checkpoints == "last":
        return {max(kept): kept[max(kept)]}
    states = {0: before_training(name)} | kept
    return states if checkpoints == "all" else {k: states[k] for k in (0, max(states))}


def probed(
    names: Sequence[str],
    of_tasks: Mapping[str, ProbeSetup],
    codes: Mapping[str, Sequence[str]],
    *,
    which: Mapping[str, object] | None = None,
    entities: bool = False,
    **options: object,
) -> pd.DataFrame:
    """`monolingual` of several models and tasks, by checkpoint, at all layers.

    ``which``: options of `course_of`; ``entities``: whether NER has the F1 of whole entities.
    """
    tables = []
    for name, (task, setup) in product(names, of_tasks.items()):
        options |= {"entities": entities and task == "NER"}
        found = [
            monolingual(state, setup, codes[task], **options).assign(checkpoint=k)
            for k, state in course_of(name, **(which or {})).items()
        ]
        tables += [table.assign(model=found[-1]["model"].iloc[0]) for table in found]
    return pd.concat(tables, ignore_index=True)


def probed_alone(
    tasks_of: Mapping[str, Sequence[str]],
    of_tasks: Mapping[str, ProbeSetup],
    codes: Mapping[str, Sequence[str]],
) -> pd.DataFrame:
    """Models as they are in some tasks, as the long runs of public models ask; checkpoint 1.

    F1 of entities is that of `cross_lingual` within a language: in fewer languages than the task
    has. An untrained twin is a row of its model, at checkpoint 0.
    """
    tables = []
    for name, tasks in tasks_of.items():
        for task in tasks:
            table = monolingual(name, of_tasks[task], codes[task])
            if task == "NER":
                table = cross_lingual(name, of_tasks[task], entities=True)
                table = table[table["source"] == table["target"]].assign(language=table["source"])
            tables.append(table.assign(checkpoint=int(not twin_parts(name))))
    table = pd.concat(tables, ignore_index=True)
    return table.assign(model=table["model"].str.removesuffix(", untrained"))


def scored_course(
    names: Sequence[str], corpus: ParallelCorpus, **which: object
) -> list[CheckpointScores]:
    """`subject_scores` of the states of `course_of`, under one name per model."""
    measured = []
    for name in names:
        states = course_of(name, **which)
        found = subject_scores([*states.values()], corpus, pooling="mean", max_length=None)
        own = found[-1].model
        measured += [replace(of, model=own, step=k) for k, of in zip(states, found, strict=True)]
    return measured


# --- what a probe's score means -------------------------------------------------------------------


def of_layers(scored: pd.DataFrame, layer: str | int) -> pd.DataFrame:
    """Accuracies of models from those of their layers: one row per model, step, task, language.

    ``scored`` as `monolingual` returns it; ``layer``: "mean" over layers or a number.
    Beside ``accuracy``: ``majority``, the share of the commonest
    label of the training part in the test part, ``above``, how far accuracy lies above it, and
    ``f1`` of entities, if it is there.
    """
    keys = ["model", "task", "checkpoint", "language"]
    shown = [name for name in ("accuracy", "majority", "f1") if name in scored]
    groups = scored.groupby([*keys, "layer"], sort=False, as_index=False)
    chosen = groups[shown].mean()
    if layer == "mean":
        chosen = chosen.groupby(keys, sort=False, as_index=False)[shown].mean()
    else:
        chosen = chosen[chosen["layer"] == layer]
    chosen = chosen[[*keys, *shown]].reset_index(drop=True)
    return chosen.assign(above=chosen["accuracy"] - chosen["majority"])


#: What is regressed in place of accuracy: F1 of entities in NER, where most words are none; else
#: how far accuracy lies above the commonest label.
PROBE_MEASURES = {"NER": "f1"}


def regressed(table: pd.DataFrame, measures: Mapping[str, str] = PROBE_MEASURES) -> pd.DataFrame:
    """What is regressed in the column ``accuracy``, and what this was in ``plain accuracy``.

    By task one of the columns ``above``, ``f1`` and ``accuracy``; of a task not named ``above``.
    The paper (sections 5.2, 5.3) takes accuracy as it is; where labels are uneven, and less so in
    some languages than in others, it is mostly about that. ValueError for another column.
    """
    chosen = table["accuracy"].copy()
    for task, rows in table.groupby("task"):
        measure = measures.get(task, "above")
        checks.one_of(measure, ("above", "f1", "accuracy"), "measure")
        chosen[rows.index] = rows[measure]
    return table.assign(**{"accuracy": chosen, "plain accuracy": table["accuracy"]})


def retested(
    first: pd.DataFrame, second: pd.DataFrame, languages: Sequence[str] = ("language",)
) -> pd.DataFrame:
    """How far accuracies hold when all examples are drawn anew (test-retest reliability).

    A regression can explain no larger share of the variance of accuracies than the one that comes
    back; where the correlation of two draws is not above zero, differences between languages are
    noise, and so is any coefficient.

    ``first`` and ``second`` have ``model``, ``task``, the columns `languages` and ``accuracy``, of
    two draws; rows that both have count. Returns `statistics.correlations` by task and model, with
    intervals over languages.
    """
    both = first.merge(second, on=["model", "task", *languages], suffixes=("", " again"))
    table = statistics.correlations(
        both, ["task", "model"], "accuracy", "accuracy again", languages=languages
    )
    return table[["task", "model", "n", "r", "low", "high"]]


# --- regressions ----------------------------------------------------------------------------------

#: Sources that stand beside the one that a task is probed on.
OTHERWISE = ("pud", "xnli-dev", "sick")


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
    shipped, usual = catalogue("labelled"), {}
    for task, setup in of_tasks.items():
        of_task = shipped[(shipped["task"] == task) & ~shipped["source"].isin(OTHERWISE)]
        source = setup.source or of_task["source"].mode()[0]
        known = shipped.loc[(shipped["task"] == task) & (shipped["source"] == source), "language"]
        usual[task] = set(known) if setup.path is None else set(accuracy["language"])
    pairs = zip(accuracy["task"], accuracy["language"], strict=True)
    return accuracy[[code in usual[task] for task, code in pairs]].merge(wide, on=keys)


#: Sides that the paper prints.
SIDES = ("Avg", "Last")
#: The side of the last checkpoint in the course of all, where languages have as many words each.
EQUAL = "as many words in each language"


def sides(joined: pd.DataFrame, last: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """One row per language in each: "Last", of ``last``; of ``joined``, the states of `course_of`,
    "Avg" (means of series), "untrained" (0) and `EQUAL` (the last).
    """
    counted = joined[joined["checkpoint"] > 0]
    counted = counted[counted.groupby("model")["checkpoint"].transform("nunique") > 1]
    keys = ["model", "task", "language"]
    means = counted.groupby(keys, sort=False, as_index=False)[["accuracy", *LD_AND_MD]].mean()
    ends = {"untrained": joined[joined["checkpoint"] == 0], EQUAL: at_last(joined)}
    return {"Avg": means, "Last": at_last(last)} | ends


@dataclass(frozen=True)
class Fit:
    """Accuracy regressed on LD and MD over languages, ``rows``."""

    rows: pd.DataFrame
    regression: Regression

    def of(self, errors: str) -> pd.DataFrame:
        """The rows of LD and MD with one kind of errors."""
        table = self.regression.table
        return table[table["errors"] == errors].set_index("term").loc[LD_AND_MD]


def fits(of_sides: Mapping[str, pd.DataFrame]) -> dict[tuple[str, str, str], Fit]:
    """(task, side, model) → its regression, of `SIDES`, in the order of Table 1."""
    found = {}
    for task, side, model in product(
        of_sides["Last"]["task"].unique(), SIDES, of_sides["Last"]["model"].unique()
    ):
        rows = rows_of(of_sides[side], model=model, task=task)
        if len(rows):
            found[task, side, model] = Fit(rows, regression(rows, "accuracy", LD_AND_MD))
    return found


def document_error(fit: Fit, last: CheckpointScores) -> pd.Series:
    """What other documents would move of the coefficients of LD and MD: their jackknife error."""
    moved = {}
    codes = language_weights(last.scores.pairs)[0]
    for term in LD_AND_MD:
        of = average(last, term, by=["language"])
        moved[term] = pd.DataFrame(of.left_out_change, codes).loc[fit.rows["language"]].to_numpy()
    without = [fit.rows[term].to_numpy() + moved[term].T for term in LD_AND_MD]
    exog = np.stack([np.ones_like(without[0]), *without], axis=-1)  # a matrix without each document
    slopes = np.linalg.pinv(exog) @ fit.rows["accuracy"].to_numpy()
    whole = fit.of("robust")["coefficient"].to_numpy()
    errors = statistics.left_out_error(whole, slopes[:, 1:].T, last.sizes["documents"])
    return pd.Series(errors, LD_AND_MD)


def regression_table(
    of_sides: Mapping[tuple[str, str, str], Fit],
    documents: Mapping[tuple[str, str, str], pd.Series] | None = None,
) -> pd.DataFrame:
    """Table 1, rows "Prob.", with one interval per coefficient: one row per fit and term.

    Errors over languages (HC3) and, of the keys that ``documents`` has, over documents
    (`document_error`), which have nothing to do with each other. Columns ``task``, ``checkpoint``,
    ``model``, ``term``, ``coefficient``, ``low``, ``high`` (Student), ``p_value``, ``Holm`` (for
    all rows together), ``R2``, ``n``, ``power`` (to see the printed coefficient of LD), ``lowest``
    and ``highest`` without one language.
    """
    printed = pair_regressions.printed_regressions("probing_monolingual")["value"].astype(float)
    rows = []
    for key, fit in of_sides.items():
        moved = (documents or {}).get(key, pd.Series(0.0, LD_AND_MD))
        without = pd.DataFrame(
            [
                regressions.least_squares(fit.rows.drop(index=k), "accuracy", LD_AND_MD).params[1:]
                for k in fit.rows.index
            ],
            columns=LD_AND_MD,
        )
        for term, own in fit.of("robust").iterrows():
            error = np.hypot(own["error"], moved[term])
            width = stats.t.ppf((1 + statistics.LEVEL) / 2, own["df"]) * error
            value, effect = own["coefficient"], printed.loc[key[:2]][term] / error
            row = dict(zip(("task", "checkpoint", "model"), key, strict=True)) | {"term": term}
            row |= {"coefficient": value, "low": value - width, "high": value + width}
            row["p_value"] = 2 * stats.t.sf(abs(value) / error, own["df"])
            row |= {"R2": fit.regression.r_squared, "n": len(fit.rows), "of documents": moved[term]}
            row["power"] = pair_regressions.power(effect, own["df"])
            rows.append(row | {"lowest": without[term].min(), "highest": without[term].max()})
    table = pd.DataFrame(rows)
    return table.assign(Holm=pair_regressions.holm(table["p_value"]))


def slopes_of_runs(
    runs: Mapping[str, Sequence[str]],
    corpus: ParallelCorpus,
    of_tasks: Mapping[str, ProbeSetup],
    codes: Mapping[str, Sequence[str]],
    measures: Mapping[str, str],
) -> pd.DataFrame:
    """Accuracy regressed on LD and MD over languages, in every run of a recipe.

    ``runs``: recipe → its runs, which differ in the seed of pretraining, also without weights here
    (`history`); all at the last step that each has. A row per task, recipe, ``term`` and level
    that the interval of the mean (``value``) is ``over``: "runs" and "runs and languages"
    (`mean_of_runs`, HC3), or "languages, one run"; ``each``: the coefficients. Errors as
    `regressed`.
    """
    rows, columns = [], ["task", "recipe", "step", "term", "each", "over", "value", "low", "high"]
    for (task, setup), (recipe, names) in product(of_tasks.items(), runs.items()):
        courses = [{getattr(of, "step", 1): of for of in history(x, recorded=True)} for x in names]
        step = max(set.intersection(*map(set, courses)))
        states = [of[step] for of in courses]
        found = monolingual(states, setup, codes[task], entities=task == "NER", like=recipe)
        table = regressed(of_layers(found, "mean"), measures)
        measured = subject_scores(states, corpus, LD_AND_MD, pooling="mean", max_length=None)
        scores = averaged_scores(measured, LD_AND_MD, by=["language"])
        by_run = with_scores(table, scores, {task: setup}).groupby("model", sort=False)
        found = [regressions.least_squares(of, "accuracy", LD_AND_MD) for _, of in by_run]
        left = [of.resid / (1 - of.get_influence().hat_matrix_diag) for of in found]
        for k, term in enumerate(LD_AND_MD, 1):
            each = [of.params[k] for of in found]
            moved = [of.model.pinv_wexog[k] * x for of, x in zip(found, left, strict=True)]
            shared = np.inner(moved, moved)
            levels = {"runs": 0 * shared, "runs and languages": shared}
            for over, of in (levels if len(each) > 1 else {"languages, one run": shared}).items():
                ends = mean_of_runs(each, of, found[0].df_resid)
                rows.append((task, recipe, step, term, ", ".join(map(number, each)), over, *ends))
    return pd.DataFrame(rows, columns=columns)


#: The regression at the last checkpoint for other readings of its terms.
READINGS = {
    "untrained": Reading(instead(accuracy="untrained", LD="untrained LD", MD="untrained MD")),
    "Last": Reading(),
    "accuracy as the paper takes it": Reading(instead(accuracy="plain accuracy")),
    EQUAL: Reading(instead(accuracy=EQUAL)),
    "gain over untrained": Reading(instead(accuracy="gain")),
    "MD among sentences of like length": Reading(instead(MD=MATCHED)),
    "LD in logits": Reading(turned("logits", "LD")),
    "LD and MD in ranks": Reading(turned("ranks", *LD_AND_MD)),
    "beside words to train on": Reading(terms=(*LD_AND_MD, "n")),
}


def readings(
    of_sides: Mapping[str, pd.DataFrame], scored: pd.DataFrame, twins: pd.DataFrame
) -> pd.DataFrame:
    """`READINGS` of every model and task that has the numbers, with robust intervals.

    Of the accuracy: as the paper takes it; with as many words in every language; of the untrained
    model, whose LD and MD it is then on; as gain over it. Beside LD and MD the words that a
    language has to train on (logs). ``scored`` as `probed` returns it; ``twins``: `regressed`, of
    untrained models that are in no course.
    """
    keys = ["model", "task", "language"]
    before = of_sides["untrained"].set_index(keys)[["accuracy", *LD_AND_MD]]
    columns = ["untrained", "untrained LD", "untrained MD"]
    equal = of_sides[EQUAL].set_index(keys)["accuracy"].rename(EQUAL)
    n = np.log(at_last(scored).groupby(keys)["n_train"].first()).rename("n")
    last = of_sides["Last"].join(before.set_axis(columns, axis=1), on=keys).join(equal, on=keys)
    last = last.join(n, on=keys).assign(gain=lambda rows: rows[EQUAL] - rows["untrained"])
    apart = last.join(twins.set_index(keys)["accuracy"].rename("twin"), on=keys)
    last["gain"] = last["gain"].fillna(last["accuracy"] - apart["twin"])
    groups = dict(list(last.groupby(["model", "task"], sort=False)))
    return pair_regressions.fitted(groups, READINGS, clusters=(), errors="robust")


def choose_checkpoints(table: pd.DataFrame) -> pd.DataFrame:
    """How near to its best accuracy a language comes where its LD is lowest (appendix H).

    The gap of a checkpoint is the best accuracy of the language at any checkpoint less that at this
    one; ``delta`` is the gap of the last less that of the ``chosen`` (the paper's "Final - ABX").
    Of several equal checkpoints the earliest is chosen. ``table`` has one row per ``language`` and
    ``checkpoint``, none missing, with ``accuracy`` and ``LD``; one row per language. ValueError for
    fewer than two languages or checkpoints, or a row missing or twice there.
    """
    accuracy, score = (
        table.pivot(index="language", columns="checkpoint", values=column)
        for column in ("accuracy", "LD")
    )
    if min(accuracy.shape) < 2 or accuracy.isna().any(axis=None):
        raise ValueError(
            f"{len(accuracy)} languages at {accuracy.shape[1]} checkpoints: there must be two or "
            "more of each to choose between, and each language at every checkpoint"
        )
    chosen = score.round(12).idxmin(axis=1)
    reached = np.array([accuracy.at[pair] for pair in chosen.items()])
    best, last = accuracy.max(axis=1), accuracy.iloc[:, -1]
    return pd.DataFrame({"chosen": chosen, "gap": best - reached, "delta": reached - last})


def checkpoint_rules(
    course: pd.DataFrame, measured: Sequence[CheckpointScores], of_tasks: Mapping[str, ProbeSetup]
) -> pd.DataFrame:
    """`choose_checkpoints` of each series, task and ``LD of`` layers, after step 0; by language."""
    tables = [pd.DataFrame(columns=["language", "delta", "model", "task", "LD of"])]
    for label, layers in (("mean over layers", None), ("last layer", [-1])):
        scores = averaged_scores(measured, LD_AND_MD, by=["language"], layers=layers)
        joined = with_scores(course[course["checkpoint"] > 0], scores, of_tasks)
        for (model, task), rows in joined.groupby(["model", "task"], sort=False):
            if rows["checkpoint"].nunique() > 1:
                chosen = choose_checkpoints(rows).reset_index()
                tables.append(chosen.assign(model=model, task=task, **{"LD of": label}))
    return pd.concat(tables[1:] or tables, ignore_index=True)


# --- what is said -------------------------------------------------------------------------------


def gains(course: pd.DataFrame, task: str, column: str = "plain accuracy") -> str:
    """From the untrained state to the last: "In `mini-xlmr`: 0.58 to 0.69."."""
    means = rows_of(course, task=task).groupby(["model", "checkpoint"])[column].mean()
    ends = means.groupby("model").agg(["first", "last", "size"])
    told = "In `{Index}`: {first:.2f} to {last:.2f}."
    return " ".join(told.format(**row._asdict()) for row in ends[ends["size"] > 1].itertuples())


# --- figures --------------------------------------------------------------------------------------


@styled
def best_checkpoints(
    table: pd.DataFrame, names: Mapping[str, str], labels: Mapping[str, str]
) -> Figure:
    """Accuracy by language and checkpoint, the best checkpoint of a language framed (Figure 10).

    ``table`` has ``language``, ``checkpoint`` and ``accuracy``, which is drawn from a language's
    lowest (0) to its highest (1); ``names`` gives the languages from top to bottom, ``labels``
    tells of a task what accuracy is, if something else.
    """
    of_language = table.groupby(["model", "task", "language"])["accuracy"]
    lowest, highest = of_language.transform("min"), of_language.transform("max")
    table = table.assign(
        framed=table.index.isin(of_language.idxmax()),
        bar=table["task"].map(
            lambda task: f"{task}: {labels.get(task, 'accuracy')},\nlowest (0) to highest (1)"
        ),
        normalised=(table["accuracy"] - lowest) / (highest - lowest).where(highest > lowest),
    )
    style = Cells(
        rows=list(names),
        columns=sorted(table["checkpoint"].unique()),
        sharey=False,
        cell=(0.2, 0.165),
        edge=(0.5, 1.6),
    )
    on = language_courses(table, "normalised", style)
    on.titles(lambda key: key.replace(": ", ":\n"))
    return on.done("training step", handles=[framed_handle("best checkpoint of a language")])


@styled
def chosen_checkpoints(rules: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """What the checkpoint of lowest LD gains over the last one, by language (Figure 13).

    ``rules`` has ``panel``, ``language`` and ``delta``; languages by the size of their ``delta``.
    """
    sizes = rules["delta"].abs().groupby(rules["language"]).max().sort_values(ascending=False)
    style = Lanes(
        items=[*sizes.index], interval=False, names=names.get, shift=0, lane=0.05, width=3.3
    )
    on = lanes(rules, "delta", "language", col="panel", style=style)
    return on.done("score at the lowest LD − at the last checkpoint", "")
