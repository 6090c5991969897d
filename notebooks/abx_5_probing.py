"""Probes in one language against LD and MD (ABX paper, section 5.2): the tables of `abx-5`.

Parameters in, tidy tables out; `xlx.experiment.probing` makes the numbers behind them.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xlx.results import checks, paths
from xlx.results.deferred import deferred

stats = deferred("scipy.stats")

sys.path.append(str(paths.MODELS))  # the text that the family read: data/models-long/family

from family.pretraining_text import held_out_ids, read_source
from shared import pair_regressions, probe_setups, regressions
from shared.abx_figures import language_courses
from shared.abx_tables import at_last, mean_of_runs
from shared.pair_regressions import LD_AND_MD, Reading, instead, turned
from shared.shown import framed_handle
from xlx.experiment.abx_scores import (
    MATCHED,
    before_training,
    history,
    language_weights,
)
from xlx.experiment.averages import average, averaged_scores
from xlx.experiment.probing import ProbeSetup, cross_lingual, monolingual
from xlx.experiment.scoring import subject_scores
from xlx.measures import statistics
from xlx.measures.abx import PairScores
from xlx.plots.panels import number, rows_of
from xlx.plots.primitives import Cells, Lanes, lanes
from xlx.plots.style import styled
from xlx.subjects.identity import Name, twin_parts
from xlx.text.examples import Examples
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


def amounts_of_text(rows: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """Does accuracy go with the text that a model has read of a language (footnote 8)?

    Of ``models``, which are trained on the archives (`characters`): Spearman's correlation, one row
    per task and model, with interval over languages.
    """
    known = rows[rows["model"].isin(models)]
    return statistics.correlations(
        known.assign(amount=known["language"].map(characters())),
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
    later = {getattr(state, "step", 1): state for state in history(name, leave_out=leave_out)}
    asked = {*(later if steps is None else steps)} if checkpoints == "all" else set()
    asked = asked - {0} | {max(later)}
    trained = {k: state for k, state in later.items() if k in asked}
    return trained if checkpoints == "last" else {0: before_training(name)} | trained


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
        course = [
            monolingual(state, setup, codes[task], **options).assign(checkpoint=k)
            for k, state in course_of(name, **(which or {})).items()
        ]
        tables += [table.assign(model=course[-1]["model"].iloc[0]) for table in course]
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
) -> list[PairScores]:
    """`subject_scores` of the states of `course_of`, under one name per model."""
    measured = []
    for name in names:
        states = course_of(name, **which)
        scores = subject_scores([*states.values()], corpus, pooling="mean", max_length=None)
        label = scores[-1].model
        measured += [replace(x, model=label, step=k) for k, x in zip(states, scores, strict=True)]
    return measured


# --- what a probe's score means -------------------------------------------------------------------


def means_over_layers(scored: pd.DataFrame) -> pd.DataFrame:
    """Accuracies of models, means over layers: one row per model, task, step and language.

    ``scored`` as `monolingual` returns it. Beside ``accuracy``: ``majority``, the share of the
    commonest label of the training part in the test part, ``above``, how far accuracy lies above
    it, and ``f1`` of entities, if it is there.
    """
    keys = ["model", "task", "checkpoint", "language"]
    shown = [name for name in ("accuracy", "majority", "f1") if name in scored]
    means = scored.groupby(keys, sort=False, as_index=False)[shown].mean()
    return means.assign(above=means["accuracy"] - means["majority"])


def regressed(table: pd.DataFrame, measures: Mapping[str, str]) -> pd.DataFrame:
    """What is regressed in the column ``accuracy``, and what this was in ``plain accuracy``.

    ``measures``: task → ``above``, ``f1`` or ``accuracy``, which the paper takes (sections 5.2,
    5.3), as a task does that is not named. ValueError for another column.
    """
    chosen = table["accuracy"].copy()
    for task, rows in table.groupby("task"):
        measure = measures.get(task, "accuracy")
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
    usual = probe_setups.task_languages(of_tasks, sources=probe_setups.TRANSFERRED)
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


def robust(rows: pd.DataFrame, terms: Sequence[str] = LD_AND_MD) -> pd.DataFrame:
    """Accuracy regressed on some terms over languages, errors by HC3; ``R2``; a row per term."""
    fit = regressions.regression(rows, "accuracy", terms)
    table = fit.table[(fit.table["errors"] == "robust") & fit.table["term"].isin(terms)]
    return table.assign(R2=fit.r_squared)


def document_error(rows: pd.DataFrame, last: PairScores) -> np.ndarray:
    """What other documents would move of the coefficients of LD and MD: their jackknife error."""
    codes, terms = language_weights(last.pairs)[0], []
    for term in LD_AND_MD:
        change = average(last, term, by=["language"]).left_out_change
        terms.append(rows[term].to_numpy() + pd.DataFrame(change, codes).loc[rows["language"]].T)
    exog = np.stack([np.ones_like(terms[0]), *terms], axis=-1)  # a matrix without each document
    slopes = np.linalg.pinv(exog) @ rows["accuracy"].to_numpy()
    whole = robust(rows)["coefficient"].to_numpy()
    return statistics.left_out_error(whole, slopes[:, 1:].T, last.sizes["documents"])


def regression_table(
    of_sides: Mapping[str, pd.DataFrame], measured: Sequence[PairScores] = ()
) -> pd.DataFrame:
    """Table 1, rows "Prob.", with one interval per coefficient: one row per fit and term.

    ``of_sides``: `sides`. Errors over languages (HC3) and, at the last checkpoint of models whose
    scores are in ``measured``, over documents (`document_error`), which have nothing to do with
    each other. Columns ``task``, ``checkpoint``, ``model``, ``term``, ``coefficient``, ``error``,
    ``df``, ``low``, ``high`` (Student), ``p_value``, ``Holm`` (for all rows together), ``R2``.
    """
    tables, last = [], {scores.model: scores for scores in measured}
    tasks, models = (of_sides["Last"][name].unique() for name in ("task", "model"))
    for task, side, model in product(tasks, SIDES, models):
        if len(rows := rows_of(of_sides[side], model=model, task=task)):
            table = robust(rows).assign(task=task, checkpoint=side, model=model)
            if side == "Last" and model in last:
                table["error"] = np.hypot(table["error"], document_error(rows, last[model]))
            tables.append(pair_regressions.student(table))
    table = pd.concat(tables, ignore_index=True)
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
    (`history`); all at the last step that each has. A row per task, ``model`` (the recipe) and
    ``term``: the mean of the coefficients (``each``) with an interval over runs and languages
    (`mean_of_runs`, HC3). Errors as `regressed`.
    """
    rows, columns = [], ["task", "model", "step", "term", "each", "coefficient", "low", "high"]
    for (task, setup), (recipe, names) in product(of_tasks.items(), runs.items()):
        courses = [history(name, recorded=True) for name in names]
        by_step = [{getattr(state, "step", 1): state for state in course} for course in courses]
        step = max(set.intersection(*map(set, by_step)))
        states = [course[step] for course in by_step]
        scored = monolingual(states, setup, codes[task], entities=task == "NER", like=recipe)
        measured = subject_scores(states, corpus, LD_AND_MD, pooling="mean", max_length=None)
        scores = averaged_scores(measured, LD_AND_MD, by=["language"])
        table = with_scores(regressed(means_over_layers(scored), measures), scores, {task: setup})
        fits = [
            regressions.least_squares(rows, "accuracy", LD_AND_MD)
            for _, rows in table.groupby("model", sort=False)
        ]
        left = [fit.resid / (1 - fit.get_influence().hat_matrix_diag) for fit in fits]
        for k, term in enumerate(LD_AND_MD, 1):
            each = [fit.params[k] for fit in fits]
            moved = [fit.model.pinv_wexog[k] * x for fit, x in zip(fits, left, strict=True)]
            ends = mean_of_runs(each, np.inner(moved, moved), fits[0].df_resid)
            rows.append((task, recipe, step, term, ", ".join(map(number, each)), *ends))
    return pd.DataFrame(rows, columns=columns)


#: The regression at the last checkpoint for other readings of its terms.
READINGS = {
    "untrained": Reading(instead(accuracy="untrained", LD="untrained LD", MD="untrained MD")),
    "Last": Reading(),
    "accuracy": Reading(instead(accuracy="plain accuracy")),
    "accuracy less commonest label": Reading(instead(accuracy="above")),
    EQUAL: Reading(instead(accuracy=EQUAL)),
    "gain over untrained": Reading(instead(accuracy="gain")),
    "MD among sentences of like length": Reading(instead(MD=MATCHED)),
    "LD in logits": Reading(turned("logits", "LD")),
    "LD and MD in ranks": Reading(turned("ranks", *LD_AND_MD)),
    "beside words to train on": Reading(terms=(*LD_AND_MD, "n_train")),
}


def readings(
    of_sides: Mapping[str, pd.DataFrame], scored: pd.DataFrame, twins: pd.DataFrame
) -> pd.DataFrame:
    """`READINGS` of every model and task that has the numbers, with robust intervals.

    Of the accuracy: as the paper takes it; less the share of the commonest label; with as many
    words in every language; of the untrained model, whose LD and MD it is then on; as gain over it.
    Beside LD and MD the words that a language has to train on (logs). ``scored`` as `probed`
    returns it; ``twins``: `regressed`, of untrained models that are in no course.
    """
    keys = ["model", "task", "language"]
    before = of_sides["untrained"].set_index(keys)[["accuracy", *LD_AND_MD]]
    columns = ["untrained", "untrained LD", "untrained MD"]
    words = np.log(at_last(scored).groupby(keys)["n_train"].first())
    alike = of_sides[EQUAL].set_index(keys)["accuracy"].rename(EQUAL)
    last = of_sides["Last"].join(before.set_axis(columns, axis=1), on=keys)
    last = last.join(alike, on=keys).join(words, on=keys)
    apart = last.join(twins.set_index(keys)["accuracy"].rename("twin"), on=keys)
    gain = (last[EQUAL] - last["untrained"]).fillna(last["accuracy"] - apart["twin"])
    groups = last.assign(gain=gain).groupby(["model", "task"], sort=False)
    tables = []
    for ((model, task), group), (label, reading) in product(groups, READINGS.items()):
        rows = reading.rows(group)
        values = rows[["accuracy", *reading.terms]]
        if values.notna().all(axis=None) and (values.nunique() > 1).all():
            table = robust(rows, reading.terms)
            tables.append(table.assign(model=model, task=task, variant=label))
    return pd.concat(tables, ignore_index=True)


def choose_checkpoints(table: pd.DataFrame) -> pd.DataFrame:
    """How near to its best accuracy a language comes where its LD is lowest (appendix H).

    The gap of a checkpoint is the best accuracy of the language at any checkpoint less that at this
    one; ``delta`` is the gap of the last less that of the ``chosen`` (the paper's "Final - ABX").
    Of several equal checkpoints the earliest is chosen. ``table`` has one row per ``language`` and
    ``checkpoint``, none missing, with ``accuracy`` and ``LD``; one row per language. ValueError for
    fewer than two languages or checkpoints, or a row missing or twice there.
    """
    wide = table.pivot(index="language", columns="checkpoint", values=["accuracy", "LD"])
    accuracy, score = wide["accuracy"], wide["LD"]
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
    course: pd.DataFrame, measured: Sequence[PairScores], of_tasks: Mapping[str, ProbeSetup]
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
