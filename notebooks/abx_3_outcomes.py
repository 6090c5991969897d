"""LD and MD against probes in one language and across (ABX paper, sections 5.2, 5.3; Table 1).

Parameters in, tidy tables out; `xlx.experiment.probing` makes the numbers behind them. Transfer of
a pair of languages is regressed as the paper does (`as_printed`), and by one model that knows of
levels: some languages are good sources or easy targets for all, whatever lies between the two
(`pair_regressions.cross_classified`).

What a choice of a source by LD (appendix K) has to beat is kinship, a rule that has seen neither
model nor text: a source of the target's branch, else of its family, and among those that are
equally near, or where none is of the family, one that is written in its script
(`xlx.text.languages`). Sources that are still equal share their weight (`choose_sources`), so the
outcome is exactly the mean over them; where no source has anything in common with the target, that
is chance. Typological distances would part more sources, and the repository has none.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

import run_units
from family.pretraining_text import held_out_ids, read_source
from printed.evaluator import rows_by
from shared import pair_regressions, probe_setups, regressions
from shared.abx_figures import chance_line
from shared.abx_tables import at_last, average_layers, pair_scores
from shared.igap_tables import both_directions
from shared.pair_regressions import (
    ENDS,
    LD_AND_MD,
    Groups,
    Reading,
    Selection,
    cross_classified,
    instead,
)
from shared.shown import asking, framed_handle, scale_about
from xlx.experiment.abx_scores import (
    MATCHED,
    before_training,
    group_sizes,
    history,
    language_weights,
)
from xlx.experiment.averages import average, averaged_scores
from xlx.experiment.probing import ProbeSetup, cross_lingual, monolingual
from xlx.experiment.scoring import BagOfSubwords, Subject, cached, subject_scores
from xlx.measures import abx, statistics
from xlx.measures.abx import PairScores
from xlx.measures.statistics import SLACK
from xlx.plots.panels import HATCHED, across, order, parts, rows_of
from xlx.plots.primitives import heatmap, lanes
from xlx.plots.style import ABOUT, CHANCE, ZERO, look, styled
from xlx.results import checks, paths
from xlx.results.deferred import deferred
from xlx.subjects.finetuning import finetune_all
from xlx.subjects.identity import Name, twin_parts
from xlx.text.languages import LANGUAGES
from xlx.text.parallel import ParallelCorpus, documents

linalg = deferred("scipy.linalg")
stats = deferred("scipy.stats")

#: What is fine-tuned on XNLI.
ENCODER = run_units.MODEL

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
    return fit.by("robust").assign(R2=fit.r_squared)


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
            tables.append(regressions.student(table))
    table = pd.concat(tables, ignore_index=True)
    return table.assign(Holm=pair_regressions.holm(table["p_value"]))


#: The regression at the last checkpoint for other outcomes, and for another MD.
READINGS = {
    "accuracy": Reading(instead(accuracy="plain accuracy")),
    "accuracy less commonest label": Reading(instead(accuracy="above")),
    "gain over untrained": Reading(instead(accuracy="gain")),
    "beside matched MD": Reading(instead(MD=MATCHED)),
}


def readings(of_sides: Mapping[str, pd.DataFrame], twins: pd.DataFrame) -> pd.DataFrame:
    """`READINGS` of every model and task that has the numbers, with robust intervals.

    Of the accuracy: as the paper takes it; less the share of the commonest label; as gain over the
    untrained model, with as many words in every language where it has a course. ``twins``:
    `regressed`, of untrained models that are in no course.
    """
    keys = ["model", "task", "language"]
    columns = {EQUAL: of_sides[EQUAL], "untrained": of_sides["untrained"], "twin": twins}
    whole = of_sides["Last"]
    for name, table in columns.items():
        whole = whole.join(table.set_index(keys)["accuracy"].rename(name), on=keys)
    gain = (whole[EQUAL] - whole["untrained"]).fillna(whole["accuracy"] - whole["twin"])
    groups = whole.assign(gain=gain).groupby(["model", "task"], sort=False)
    tables = []
    for ((model, task), group), (label, reading) in product(groups, READINGS.items()):
        rows = reading.rows(group)
        if rows[["accuracy", *reading.terms]].notna().all(axis=None):
            table = robust(rows, reading.terms)
            tables.append(table.assign(model=model, task=task, variant=label))
    return pd.concat(tables, ignore_index=True)


def choose_checkpoints(table: pd.DataFrame) -> pd.DataFrame:
    """How near to its best accuracy a language comes where its LD is lowest (appendix H).

    The gap of a checkpoint is the best accuracy of the language at any checkpoint less that at this
    one; ``delta`` is the gap of the last less that of the ``chosen`` (the paper's "Final - ABX").
    Of several equal checkpoints the earliest is chosen. ``table`` has one row per ``language`` and
    ``checkpoint``, none missing, with ``accuracy`` and ``LD``; one row per language.
    """
    wide = table.pivot(index="language", columns="checkpoint", values=["accuracy", "LD"])
    accuracy = wide["accuracy"]
    chosen = wide["LD"].round(12).idxmin(axis=1)
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


# --- families -------------------------------------------------------------------------------------


def over_branches(
    rows: pd.DataFrame, ends: Sequence[str], fit: Callable[[pd.DataFrame], pd.DataFrame]
) -> pd.DataFrame:
    """The coefficients of a fit, ``term``, ``coefficient``, with intervals over branches.

    Languages of a branch hang together. Each branch is left out with all rows in which it has one
    of the ``ends`` (columns that name languages); of pairs both ends count, which errs on the safe
    side. Student's t of the effective number of branches (`statistics.mean_interval`). ``least``,
    ``most``: the coefficient without one of them; NaN where too few rows are left.
    """
    branch = {code: f"{x.family} {x.branch}" for code, x in LANGUAGES.items()}
    of_rows = rows[list(ends)].replace(branch)
    names, sizes = np.unique(
        [branch[code] for code in np.unique(rows[list(ends)])], return_counts=True
    )
    whole, left_out = fit(rows), []
    for name in names:
        try:
            table = fit(rows[~(of_rows == name).any(axis=1)])
            left_out.append(table["coefficient"].to_numpy())
        except ValueError:  # too few rows are left
            left_out.append(np.full(len(whole), np.nan))
    freedom = sizes.sum() ** 2 / (sizes**2).sum()
    bounds = [
        statistics.left_out_interval(value, np.array(without), freedom)
        for value, without in zip(whole["coefficient"], zip(*left_out, strict=True), strict=True)
    ]
    table = whole[["term", "coefficient"]].copy()
    table[["low", "high"]] = bounds
    return table.assign(least=np.min(left_out, axis=0), most=np.max(left_out, axis=0))


# --- what crosses ---------------------------------------------------------------------------------


def pair_accuracies(
    names: Sequence[str],
    setups: Mapping[str, ProbeSetup],
    codes: Mapping[str, Sequence[str]],
    *,
    whole: Sequence[str] = (),
) -> pd.DataFrame:
    """Accuracy and commonest label of each source, target, task and model, means over layers.

    ``majority``: the share that a constant answer gets in the target, the best of those labels that
    are commonest in a source (one source's would make it better than others for being rarer in
    the target); ``above``: accuracy less that share; ``f1`` of whole entities, NaN of tasks other
    than NER. Of models in ``whole`` all languages of the task are asked, as the long runs of public
    models do, and those of ``codes`` are kept.
    """
    tables = []
    for name, (task, setup) in product(names, setups.items()):
        asked = None if name in whole else codes[task]
        crossed = cross_lingual(name, setup, asked, entities=task == "NER")
        tables.append(crossed[crossed[list(ENDS)].isin(codes[task]).all(axis=1)])
    rows = pd.concat(tables, ignore_index=True)
    scores = [name for name in ("accuracy", "majority", "f1") if name in rows]
    groups = rows.groupby(["model", "task", "source", "target"], sort=False, as_index=False)
    mean = groups[scores].mean()
    mean["majority"] = mean.groupby(["model", "task", "target"])["majority"].transform("max")
    return mean.assign(above=mean["accuracy"] - mean["majority"])


# --- what may predict it --------------------------------------------------------------------------


def kinship(source: str, target: str) -> int:
    """How near two languages are: 4 for the same branch, 2 the same family, 1 the same script.

    The sum, 0 to 7, orders sources by branch, then family, then script. Codes are those of
    `LANGUAGES`.
    """
    a, b = LANGUAGES[source], LANGUAGES[target]
    same_family = a.family == b.family
    same_branch = same_family and a.branch == b.branch
    return 4 * same_branch + 2 * same_family + (a.script == b.script)


def ordered_pair_scores(measured: PairScores) -> pd.DataFrame:
    """Scores of source and target: one row per ordered pair, one column per task; ``model``.

    Of a task both directions are averaged, as the paper does, so both orders have the same.
    """
    pairs = pd.concat(both_directions(pair_scores(average_layers(measured.table()))))
    wide = pairs.pivot(index=list(ENDS), columns="metric", values="score").reset_index()
    return wide.assign(model=measured.model).rename_axis(columns=None)


def pairs_with_scores(
    accuracy: pd.DataFrame, measured: Mapping[str, abx.PairScores], corpus: ParallelCorpus
) -> pd.DataFrame:
    """Accuracies between languages, with `ordered_pair_scores`: the model's, and its bag's.

    ``measured``: name → its scores. `kinship` of the two is there, too.
    """
    tables = []
    for name, scores in measured.items():
        tokenizer, *_ = twin_parts(name) or (name,)
        (bag,) = subject_scores([BagOfSubwords(tokenizer)], corpus)
        bag = ordered_pair_scores(bag).drop(columns="model")
        bag = bag.set_index(list(ENDS)).add_prefix("bag ")
        tables.append(ordered_pair_scores(scores).join(bag, on=list(ENDS)))
    others = accuracy.query("source != target")
    kin = [kinship(*pair) for pair in zip(others["source"], others["target"], strict=True)]
    return others.assign(kinship=kin).merge(pd.concat(tables), on=["model", *ENDS])


# --- regressions ----------------------------------------------------------------------------------


#: What is asked: beside MD among sentences of like length, since plain MD also sees length.
TERMS = ("LD", MATCHED)
OF_BAG = tuple(f"bag {term}" for term in TERMS)
#: Other terms in the cross-classified model, and other scales.
CROSSED_READINGS = {
    "LD, MD": Reading(),
    "LD, matched MD": Reading(terms=TERMS),
    "beside a bag of subwords": Reading(terms=(*TERMS, *OF_BAG)),
    "beside kinship": Reading(terms=(*TERMS, "kinship")),
    "beside both": Reading(terms=(*TERMS, *OF_BAG, "kinship")),
}


def beside_matched(rows: pd.DataFrame) -> pd.DataFrame:
    """`cross_classified` by LD and MD among sentences of like length."""
    return cross_classified(rows, TERMS)


def as_printed(groups: Groups) -> pd.DataFrame:
    """The paper's own regression: accuracy as it is on LD and MD, all pairs taken as independent.

    One row per group and term: ``coefficient``, ``R2``, the p-value of ``ordinary`` errors,
    ``low``, ``high`` and ``p_value`` of such that are clustered by source and target.
    """
    tables = []
    for (model, task), rows in groups.items():
        fit = regressions.regression(rows, "plain accuracy", LD_AND_MD, clusters=ENDS)
        clustered = fit.by("clustered").assign(model=model, task=task, R2=fit.r_squared)
        tables.append(clustered.assign(ordinary=fit.by("classical")["p_value"].to_numpy()))
    return pd.concat(tables, ignore_index=True)


def with_levels(
    groups: Groups,
    readings: Mapping[str, Reading] = CROSSED_READINGS,
    further: Callable[[pd.DataFrame, pd.DataFrame, str], pd.DataFrame] | None = None,
) -> pd.DataFrame:
    """`cross_classified` of each group by each reading (`CROSSED_READINGS`).

    ``further``: what is made of rows, their table and the model. One row per group, ``variant``
    and term; ``Holm``: p-values for all rows of LD and MD of a variant together.
    """
    tables = []
    for ((model, task), rows), (label, reading) in product(groups.items(), readings.items()):
        table = cross_classified(reading.rows(rows), reading.terms)
        table = further(rows, table, model) if further else table
        tables.append(table.assign(model=model, task=task, checkpoint="Last", variant=label))
    table = pd.concat(tables, ignore_index=True)
    of_model = table[table["term"].str.match("LD|MD")].groupby("variant")
    table["Holm"] = of_model["p_value"].transform(pair_regressions.holm)
    return table


@cached(tolerance=1e-3, documents=True)
def pair_changes(subject: Subject, corpus: ParallelCorpus) -> dict[str, np.ndarray]:
    """``change``, float16 ``(2, n_pairs, n_documents)``: what LD and MD change by without each.

    Means over layers, of the `combinations` of the corpus's languages.
    """
    reading, by_layer, of = subject.read(corpus), [], {"documents": documents(corpus)}
    for vectors in reading.layers():
        exact = abx.exact(vectors, measures=(abx.LD, abx.MD), groups=of, device=reading.device)
        left = exact.left_out["documents"]
        by_layer.append([left[x][0] - exact.scores[x][0].mean(axis=1)[:, None] for x in LD_AND_MD])
    return {"change": np.mean(by_layer, axis=0).astype(np.float16)}


def moved(rows: pd.DataFrame, changes: np.ndarray) -> np.ndarray:
    """Coefficients of LD and MD, ``(n, 2)``, where these change by ``(2, n_rows, n)``.

    With levels of source and target, by least squares: of terms with the same value in both
    directions of a pair, its random level changes no coefficient.
    """
    basis = linalg.orth(pd.get_dummies(rows[list(ENDS)], dtype=float).to_numpy())
    terms = rows[LD_AND_MD].to_numpy().T[..., None] + changes
    apart = terms - basis @ (basis.T @ terms)
    both = np.einsum("ink,jnk->kij", apart, apart)
    with_outcome = np.einsum("ink,n->ki", apart, rows["accuracy"].to_numpy())
    return np.linalg.solve(both, with_outcome[..., None])[..., 0]


def over_documents_and_runs(
    rows: pd.DataFrame,
    table: pd.DataFrame,
    left_out: np.ndarray,
    sizes: np.ndarray,
    others: Sequence[pd.DataFrame],
) -> pd.DataFrame:
    """The mean of coefficients (LD, MD) over runs; intervals hold documents and runs as levels.

    ``table``: `cross_classified` of ``rows``; ``left_out``, ``(2, n_rows, n_documents)``: what LD
    and MD change by without a document of ``sizes``; ``others``: the rows of other runs, in the
    same order, of which there may be none: then their variance is unknown and left out.

    Three variances add up: of languages (REML, the mean over runs, as if all erred alike), of
    documents (jackknife) and of the mean between runs. t with Satterthwaite's degrees of freedom.
    Beside the columns of ``table``: the errors ``of documents`` and ``of runs`` (NaN of one run).
    """
    fits = [table, *(cross_classified(run, LD_AND_MD) for run in others)]
    every = np.array([fit["coefficient"] for fit in fits])
    errors, freedoms = np.full((3, 2), np.nan), np.array([table["df"].iloc[0], len(sizes) - 1, 1])
    errors[0] = np.sqrt(np.mean([fit["error"] ** 2 for fit in fits], axis=0))
    errors[1] = statistics.left_out_error(every[0], moved(rows, left_out).T, sizes)
    if others:
        errors[2], freedoms[2] = stats.sem(every), len(others)
    variances = np.nan_to_num(errors) ** 2
    total = variances.sum(axis=0)
    df, error = total**2 / (variances**2 / freedoms[:, None]).sum(axis=0), np.sqrt(total)
    levels = table.assign(coefficient=every.mean(axis=0), error=error, df=df)
    return regressions.student(levels).assign(**{"of documents": errors[1], "of runs": errors[2]})


def run_pairs(
    runs: Sequence[str],
    setups: Mapping[str, ProbeSetup],
    codes: Mapping[str, Sequence[str]],
    corpus: ParallelCorpus,
    **options: object,
) -> list[pd.DataFrame]:
    """`pair_accuracies`, LD and MD of runs of a recipe at their last steps, also without weights.

    ``options`` as `subject_scores`; one table per run.
    """
    states = [history(run, recorded=True)[-1] for run in runs]
    measured = subject_scores(states, corpus, LD_AND_MD, **options)
    scores = [ordered_pair_scores(run).drop(columns="model") for run in measured]
    accuracies = [pair_accuracies([state], setups, codes) for state in states]
    return [x.merge(y, on=list(ENDS)) for x, y in zip(accuracies, scores, strict=True)]


def table_1(
    groups: Groups,
    corpus: ParallelCorpus,
    changes: Mapping[str, np.ndarray],
    runs: Mapping[str, Sequence[pd.DataFrame]],
) -> pd.DataFrame:
    """`with_levels` of LD and MD by `over_documents_and_runs`.

    ``changes``: model → ``change`` of `pair_changes` of ``corpus``; ``runs``: model → the rows of
    each of its other runs.
    """
    at = {frozenset(pair): k for k, pair in enumerate(combinations(corpus.languages, 2))}
    keys = ["task", *ENDS]

    def measured(rows: pd.DataFrame, table: pd.DataFrame, model: str) -> pd.DataFrame:
        others = [rows[keys].merge(run, "left", keys) for run in runs.get(model, ())]
        pairs = [at[frozenset(pair)] for pair in rows[list(ENDS)].to_numpy()]
        left_out = changes[model].astype(float)[:, pairs]
        sizes = group_sizes(documents(corpus))
        return over_documents_and_runs(rows, table, left_out, sizes, others)

    return with_levels(groups, {"LD, MD": Reading()}, measured)


# --- inference that is learnt ------------------------------------------------------------------


def inference_pairs(runs: Mapping[str, Sequence[int]], scores: pd.DataFrame) -> pd.DataFrame:
    """XNLI learnt by `ENCODER` in some languages, asked in others: one row per run and target.

    ``runs``: source → seeds; ``scores``: `ordered_pair_scores`, whose languages count. Columns
    ``source``, ``target``, ``run``, ``accuracy`` and those of ``scores``; of English ``hypothesis``
    too, the accuracy where hypotheses alone were learnt and asked with the same seed.
    """
    jobs = [run_units.xnli_job(source, seed) for source, seeds in runs.items() for seed in seeds]
    alone = [run_units.hypotheses_job(seed) for seed in runs.get("en", ())]
    rows = {}
    for job, run in zip([*jobs, *alone], finetune_all([*jobs, *alone]), strict=True):
        name = "accuracy" if job in jobs else "hypothesis"
        for target, part in job.evaluations.items():
            right = run.predictions[target][-1] == np.array(part.labels)
            rows.setdefault((run.source, target, run.seed), {})[name] = right.mean()
    table = rows_by(rows, *ENDS, "run").reset_index()
    table["run"] = table["source"] + " " + table["run"].astype(str)
    return table.merge(scores, on=list(ENDS))


def inference_table(pairs: pd.DataFrame) -> pd.DataFrame:
    """LD and MD against XNLI in four ways, a row each (``pairs``: `inference_pairs`).

    As printed (means over runs, all pairs as independent); with levels of run and target; from
    English alone, robust errors; and the same of the model that has read hypotheses alone. Of LD
    and MD ``coefficient, low, high, p_value``; ``power`` to see what is printed.
    """
    means = pairs.groupby([*ENDS], sort=False).mean(numeric_only=True).reset_index()
    english = means[means["source"] == "en"]
    readings = {
        "as printed": (means, "accuracy", "classical"),
        "accuracy, from English": (english, "accuracy", "robust"),
        "hypotheses, from English": (english, "hypothesis", "robust"),
    }
    tables = {"levels": cross_classified(pairs, LD_AND_MD, levels=["run", "target"])}
    for label, (rows, outcome, errors) in readings.items():
        tables[label] = regressions.regression(rows, outcome, LD_AND_MD).by(errors)
    printed = pair_regressions.printed_regressions("cross_lingual")["value"].loc[("NLI", "Last")]
    table = pd.concat(tables, names=["way", None]).reset_index("way")
    effects = [float(printed[term]) for term in table["term"]] / table["error"]
    return table.assign(power=list(map(pair_regressions.power, effects, table["df"])))


# --- choosing a source ----------------------------------------------------------------------------


#: What a choice is measured by: no source is better, fewer than ``top`` are, how many it beats.
CHOICE_MEASURES = ("hit", "top", "win_rate")


def choose_sources(
    table: pd.DataFrame, by: str = "LD", *, lowest: bool = True, top: int = 3
) -> Selection:
    """How well a source language does that was chosen for its target by a score of the two.

    ABX paper, appendix K. Rules: "selected", the source where `by` is lowest (or highest), equal
    ones with the same weight, so that what is reported is the expectation under drawing one;
    "constant", the source that serves the *other* targets best, by its mean accuracy there, each
    target's mean taken off first; "random", any, in expectation: the chance levels.

    The win rate of a source is the share of the other sources of the target that it beats, a tie
    counting one half: what comparing it with infinitely many random sources gives. The paper draws
    100 random sources and does not say whether the chosen one may be among them; here it may not,
    so the best source wins always. (If it may, a win rate w turns into ((m - 1) w + ½) / m.)

    ``table`` has one row per ordered pair of three languages or more, none missing: ``source``,
    ``target``, ``accuracy`` and ``by``; rows of a language with itself are not used.

    Returns ``table``: ``rule``, ``target``, ``hit``, ``top``, ``win_rate`` (`CHOICE_MEASURES`);
    and ``summary``, one row per ``rule`` and ``measure``: ``mean``, ``low``, ``high`` (over
    targets, taken for independent: Student, within 0 and 1).
    """
    apart = table[table["source"] != table["target"]]
    accuracy, score = (
        apart.pivot(index="source", columns="target", values=column).astype(float)
        for column in ("accuracy", by)
    )
    n, values = len(accuracy), accuracy.to_numpy()
    outcomes = _outcomes(values, top)
    # how good a source is for the other targets: its mean accuracy less the target's mean
    centred = values - np.nanmean(values, axis=0)
    elsewhere = np.nansum(centred, axis=1, keepdims=True) - np.nan_to_num(centred)
    elsewhere = np.where(np.isnan(values), np.nan, elsewhere / (n - 2))
    weights = {
        "selected": _cheapest(score.to_numpy() if lowest else -score.to_numpy()),
        "constant": _cheapest(-elsewhere),
        "random": _cheapest(np.where(np.isnan(values), np.nan, 0.0)),
    }
    tables, summary = [], []
    for rule, weight in weights.items():
        brought = {name: (weight * np.nan_to_num(x)).sum(axis=0) for name, x in outcomes.items()}
        tables.append(pd.DataFrame({"rule": rule, "target": accuracy.columns} | brought))
        for measure, reached in brought.items():
            mean = reached.mean()
            width = statistics.half_width(stats.sem(reached), n - 1)
            row = {"rule": rule, "measure": measure, "mean": mean}
            row |= {"low": max(mean - width, 0), "high": min(mean + width, 1)}
            summary.append(row)
    return Selection(pd.concat(tables, ignore_index=True), pd.DataFrame(summary))


def _cheapest(cost: np.ndarray) -> np.ndarray:
    """Equal weights over the rows that have the lowest cost of their column."""
    chosen = cost <= np.nanmin(cost, axis=0) + SLACK
    return chosen / chosen.sum(axis=0)


def _outcomes(accuracy: np.ndarray, top: int) -> dict[str, np.ndarray]:
    """What each source would bring each target: sources × targets, NaN on the diagonal."""
    beats, equals, loses = (
        compare(accuracy[:, None], accuracy).sum(axis=1)
        for compare in (np.greater, np.equal, np.less)
    )
    rates = loses == 0, loses < top, (beats + (equals - 1) / 2) / (len(accuracy) - 2)
    there = ~np.isnan(accuracy)
    return dict(zip(CHOICE_MEASURES, (np.where(there, x, np.nan) for x in rates), strict=True))


#: Rules that choose by a score → whether the lowest is chosen.
RULES = {"LD": True, "MD": False, "bag LD": True, "kinship": False}


def chosen_sources(groups: Groups, tasks: Sequence[str], **options: object) -> Selection:
    """`choose_sources` of each task and model by each of `RULES` (appendix K).

    The rules in the tables: these, "constant" and "random".
    """
    tables, summaries = [], []
    by_task = sorted(groups.items(), key=lambda group: tasks.index(group[0][1]))
    for (model, task), rows in by_task:
        for by, lowest in RULES.items():
            choice = choose_sources(rows, by, lowest=lowest, **options)
            for part, whole in ((choice.table, tables), (choice.summary, summaries)):
                part = part if by == "LD" else part[part["rule"] == "selected"]
                rule = part["rule"].replace("selected", by)
                whole.append(part.assign(rule=rule, model=model, task=task))
    return Selection(*(pd.concat(parts, ignore_index=True) for parts in (tables, summaries)))


def compared_rules(chosen: Selection) -> pd.DataFrame:
    """Win rates of lowest LD less those of another rule, target by target: `improvements`.

    A row per task, model and the rule that LD is ``against``; ``Holm`` over all rows.
    """
    keys = ["task", "model", "target"]
    rates = chosen.table.set_index([*keys, "rule"])["win_rate"].unstack("rule", sort=False)
    others = rates.drop(columns=["LD", "random"])
    deltas = others.rsub(rates["LD"], axis=0).melt(
        ignore_index=False, var_name="against", value_name="delta"
    )
    table = pair_regressions.improvements(deltas.reset_index(), ["task", "model", "against"])
    return table.assign(Holm=pair_regressions.holm(table["p_value"]))


# --- figures --------------------------------------------------------------------------------------


@styled
def best_checkpoints(
    table: pd.DataFrame, names: Mapping[str, str], labels: Mapping[str, str]
) -> Figure:
    """Accuracy less that at the last checkpoint, by language and checkpoint (Figure 10).

    ``table`` has ``language``, ``checkpoint`` and ``accuracy``; all have one scale, purple above
    the last checkpoint, orange below. ``names`` gives the languages from top to bottom, ``labels``
    tells of a task what accuracy is, if something else.
    """
    table = table.dropna(subset="accuracy").sort_values("checkpoint", kind="stable")
    last = table.groupby(["model", "task", "language"])["accuracy"].transform("last")
    names_of = {task: labels.get(task, "accuracy") for task in order(table, "task")}
    table = table.assign(less=table["accuracy"] - last)
    keys = product(names_of, order(table, "model"))
    table = pd.concat(rows_of(table, task=task, model=model) for task, model in keys)
    titles = table["task"].map(pair_regressions.WORDS) + " (" + table["task"].map(names_of)
    table = table.assign(panel=titles + "):\n" + table["model"])
    on = heatmap(
        table,
        "checkpoint",
        "language",
        "less",
        col="panel",
        rows=list(names),
        columns=sorted(table["checkpoint"].unique()),
        sharex=False,
        sharey=False,
        cell=(0.26, 0.165),
        edge=(0.5, 1.6),
        wrap=4,
        turned=90,
        bar="score less that of the last step (purple: higher)",
        norm=scale_about(table["less"]),
        cmap=ABOUT,
    )
    return asking("How far is each language from its last score?", on.done("training step"))


@styled
def chosen_checkpoints(rules: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """What the checkpoint of lowest LD gains over the last one, by language (Figure 13).

    ``rules`` has ``panel``, ``language`` and ``delta``; languages by the size of their ``delta``.
    """
    sizes = rules["delta"].abs().groupby(rules["language"]).max().sort_values(ascending=False)
    on = lanes(
        rules,
        "delta",
        "language",
        col="panel",
        items=[*sizes.index],
        interval=False,
        names=names.get,
        shift=0,
        lane=0.05,
        width=3.3,
        looks=look("0.3", "o"),
    )
    across(on, 0, **ZERO)
    figure = on.done("score there, less that at the last checkpoint (0: it is the last)")
    return asking("Is the checkpoint of lowest LD the better choice?", figure)


@styled
def transfer_matrices(
    table: pd.DataFrame, names: Mapping[str, str], labels: Mapping[str, str] | None = None
) -> Figure:
    """Transfer from source (row) to target (column), the best source framed (Figure 14).

    ``table`` has ``source``, ``target``, ``accuracy`` and ``best`` (True for the best other source
    of a target; framed where it has more than 0.1). All have one scale about 0, and the languages
    of their task, by family; ``labels`` tells of a task what its colours are, if something else
    than accuracy above a constant answer.
    """
    table = table.assign(
        hatched=table["source"] == table["target"], framed=table["best"] & (table["accuracy"] > 0.1)
    )
    scores = table["accuracy"].mask(table["hatched"])
    units = dict.fromkeys(order(table, "task"), "accuracy − commonest label") | dict(labels or {})
    n = max(part["source"].nunique() for _, part in parts(table, "task"))
    languages = sorted(names, key=lambda x: (LANGUAGES[x].family, LANGUAGES[x].branch))
    on = heatmap(
        table,
        "target",
        "source",
        "accuracy",
        row="model",
        col="task",
        rows=languages,
        columns=languages,
        sharex=False,
        sharey=False,
        cell=(3.5 / n, 3.5 / n),
        edge=(0.7, 1.5),
        turned=90,
        bar="score in the target (darker: higher)",
        norm=scale_about(scores),
        cmap=ABOUT,
    )
    on.figure.axes[-1].set_xlim(left=min(0, scores.min()))
    on.titles(lambda key: f"{key[0]}: {pair_regressions.WORDS[key[1]]}\n({units[key[1]]})")
    itself = Patch(label="the language itself", **HATCHED)
    handles = [framed_handle("best source of a target"), itself]
    figure = on.done("target", "source", handles=handles)
    return asking("From which language does a probe cross best?", figure)


@styled
def win_rates(table: pd.DataFrame, summary: pd.DataFrame) -> Figure:
    """How often the chosen source beats a random one, one point per target (Figure 16).

    ``table`` has ``model``, ``task``, ``target`` and ``win_rate``; ``summary`` has ``model``,
    ``task``, ``mean``, ``low`` and ``high``.
    """
    table, summary = (x.assign(item=x["task"] + ", " + x["model"]) for x in (table, summary))
    table = table.sort_values("win_rate", kind="stable")
    on = lanes(
        table,
        "win_rate",
        "item",
        looks=look("0.5", "o", alpha=0.6),
        items=order(summary, "item"),
        labels="a target",
        names=pair_regressions.in_words,
        spread=0.3,
        shift=-0.1,
        lane=0.12,
        interval=False,
        width=5,
    )
    mean = look("black", "o", capsize=3)
    lanes(summary, "mean", "item", looks=mean, labels="mean, with interval", shift=0.32, on=on)
    across(on, CHANCE)
    figure = on.done("share of the other sources that it beats", handles=[chance_line()])
    return asking("Is the source of lowest LD better than one drawn by lot?", figure)
