"""Transfer of probes from source to target (ABX paper, section 5.3): the tables of `abx-6`.

Accuracy of a pair of languages is regressed as the paper does (`as_printed`), and by one model that
knows of levels: some languages are good sources or easy targets for all, whatever lies between the
two (`pair_regressions.cross_classified`).

What a choice of a source by LD (appendix K) has to beat is kinship, a rule that has seen neither
model nor text: a source of the target's branch, else of its family, and among those that are
equally near, or where none is of the family, one that is written in its script
(`xlx.text.languages`). Sources that are still equal share their weight (`choose_sources`), so the
outcome is exactly the mean over them; where no source has anything in common with the target, that
is chance. Typological distances would part more sources, and the repository has none.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from shared.shown import framed_handle, scale_about
from xlx.measures.abx import PairScores
from xlx.results import paths
from xlx.results.deferred import deferred

sys.path.append(str(paths.DATA / "models-public"))  # what the long runs learnt and asked

import run_units

from shared import pair_regressions, regressions
from shared.abx_figures import chance_line
from shared.abx_tables import PAIR, average_layers, pair_scores, rowed
from shared.pair_regressions import (
    ENDS,
    LD_AND_MD,
    Groups,
    Reading,
    Selection,
    cross_classified,
    turned,
)
from xlx.experiment.abx_scores import MATCHED, group_sizes, history
from xlx.experiment.probing import ProbeSetup, cross_lingual
from xlx.experiment.scoring import BagOfSubwords, Subject, cached, subject_scores
from xlx.measures import abx, statistics
from xlx.measures.statistics import SLACK
from xlx.plots.panels import HATCHED, across, number, order, parts, rows_of
from xlx.plots.primitives import Cells, Lanes, heatmap, lanes
from xlx.plots.style import ABOUT, CHANCE, look, styled
from xlx.subjects.finetuning import finetune_all
from xlx.subjects.identity import twin_parts
from xlx.text.languages import LANGUAGES
from xlx.text.parallel import ParallelCorpus, documents

linalg = deferred("scipy.linalg")
stats = deferred("scipy.stats")

#: What is fine-tuned on XNLI.
ENCODER = run_units.MODEL

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
    `LANGUAGES`; ValueError for others.
    """
    if unknown := [code for code in (source, target) if code not in LANGUAGES]:
        raise ValueError(
            f"the family and script of {unknown[0]!r} are not known: choose by kinship among the "
            f"{len(LANGUAGES)} languages of xlx.text.languages.LANGUAGES"
        )
    a, b = LANGUAGES[source], LANGUAGES[target]
    same_family = a.family == b.family
    same_branch = same_family and a.branch == b.branch
    return 4 * same_branch + 2 * same_family + (a.script == b.script)


def ordered_pair_scores(measured: PairScores) -> pd.DataFrame:
    """Scores of source and target: one row per ordered pair, one column per task; ``model``.

    Of a task both directions are averaged, as the paper does, so both orders have the same.
    """
    table = pair_scores(average_layers(measured.table()))
    wide = table.pivot(index=PAIR, columns="task", values="score").reset_index()
    orders = [
        wide.rename(columns=dict(zip(PAIR, ends, strict=True))) for ends in (ENDS, ENDS[::-1])
    ]
    return pd.concat(orders).assign(model=measured.model).rename_axis(columns=None)


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
READINGS = {
    "LD, MD": Reading(),
    "LD, matched MD": Reading(terms=TERMS),
    "in logits": Reading(turned("logits", *TERMS), TERMS),
    "in ranks": Reading(turned("ranks", *TERMS), TERMS),
    "beside a bag of subwords": Reading(terms=(*TERMS, *OF_BAG)),
    "beside kinship": Reading(terms=(*TERMS, "kinship")),
    "beside both": Reading(terms=(*TERMS, *OF_BAG, "kinship")),
}


def as_printed(groups: Groups) -> pd.DataFrame:
    """The paper's own regression: accuracy as it is on LD and MD, all pairs taken as independent.

    One row per group and term: ``coefficient``, ``R2``, the p-value of ``ordinary`` errors,
    ``low``, ``high`` and ``p_value`` of such that are clustered by source and target.
    """
    tables = []
    for (model, task), rows in groups.items():
        fit = regressions.regression(rows, "plain accuracy", LD_AND_MD, clusters=ENDS)
        table = fit.table[fit.table["term"].isin(LD_AND_MD)]
        ordinary = table[table["errors"] == "classical"].set_index("term")["p_value"]
        clustered = table[table["errors"] == "clustered"].assign(model=model, task=task)
        ordinary = clustered["term"].map(ordinary)
        tables.append(clustered.assign(R2=fit.r_squared, ordinary=ordinary))
    return pd.concat(tables, ignore_index=True)


def with_levels(
    groups: Groups,
    readings: Mapping[str, Reading] = READINGS,
    further: Callable[[pd.DataFrame, pd.DataFrame, str], pd.DataFrame] | None = None,
) -> pd.DataFrame:
    """`cross_classified` of each group by each reading (`READINGS`).

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
    Beside the columns of ``table``: ``runs``, their coefficients (``each``), and the errors
    ``of documents`` and ``of runs`` (NaN of one run).
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
    return pair_regressions.student(levels).assign(
        runs=len(every),
        each=[", ".join(map(number, values)) for values in every.T],
        **{"of documents": errors[1], "of runs": errors[2]},
    )


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


def world(n: int, rng: np.random.Generator, linked: float) -> pd.DataFrame:
    """Made-up pairs of languages in which LD and MD do nothing: sources, targets, pairs do.

    ``linked``: how much a language that is far from all is also a bad source and a hard target.
    """
    far, good, easy = rng.normal(size=(3, n))
    good, easy = 0.6 * good - linked * far, easy - linked * far
    halves = np.triu(rng.normal(size=(2, n, n)), 1)
    apart, of_pair = halves + halves.transpose(0, 2, 1)
    source, target = np.nonzero(~np.eye(n, dtype=bool))
    ld = 0.7 * (far[source] + far[target]) + apart[source, target]
    noise = np.triu(rng.normal(size=(n, n)), 1)
    md = -0.8 * ld + 0.6 * (noise + noise.T)[source, target]
    accuracy = good[source] + easy[target] + 0.5 * of_pair[source, target]
    accuracy = accuracy + 0.5 * rng.normal(size=len(source))
    names = np.array([f"l{k:02}" for k in range(n)])
    return pd.DataFrame(
        {"source": names[source], "target": names[target], "LD": ld, "MD": md, "accuracy": accuracy}
    )


def coverage(n_worlds: int, n_languages: int, seed: int = 0) -> pd.Series:
    """How often 95 % intervals of LD hold 0 where 0 is the truth, in so many of `world`.

    One share per interval: the paper's (ordinary errors), clustered errors, the cross-classified
    model. Levels of languages go with LD.
    """
    rows, rng = [], np.random.default_rng(seed)
    for _ in range(n_worlds):
        pairs = world(n_languages, rng, linked=0.5)
        plain = regressions.regression(pairs, "accuracy", LD_AND_MD, clusters=ENDS).table
        plain = plain[plain["term"] == "LD"].set_index("errors")
        ways = {
            "all pairs independent": plain.loc["classical"],
            "clustered by source and target": plain.loc["clustered"],
            "cross-classified": cross_classified(pairs, LD_AND_MD).iloc[0],
        }
        rows.append({way: fit["low"] < 0 < fit["high"] for way, fit in ways.items()})
    return pd.DataFrame(rows).mean()


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
    table = rowed(rows, ["source", "target", "run"]).reset_index()
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
        table = regressions.regression(rows, outcome, LD_AND_MD).table
        tables[label] = table[(table["errors"] == errors) & table["term"].isin(LD_AND_MD)]
    printed = pair_regressions.printed_regressions("cross_lingual")["value"].loc[("NLI", "Last")]
    table = pd.concat(tables, names=["way", None]).reset_index("way")
    effects = [float(printed[term]) for term in table["term"]] / table["error"]
    return table.assign(power=list(map(pair_regressions.power, effects, table["df"])))


# --- choosing a source ----------------------------------------------------------------------------


#: What a choice is measured by: no source is better, fewer than ``top`` are, how many it beats.
CHOICE_MEASURES = ("hit", "top", "win_rate")


def choose_sources(
    table: pd.DataFrame,
    by: str = "LD",
    *,
    lowest: bool = True,
    top: int = 3,
    n_permutations: int = 9999,
    seed: int | np.random.Generator = 0,
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
    ValueError for a pair missing or twice there, `top` below 1.

    Returns ``table``: ``rule``, ``target``, ``hit``, ``top``, ``win_rate`` (`CHOICE_MEASURES`);
    and ``summary``, one row per ``rule`` and ``measure``: ``mean``, ``low``, ``high`` (over
    targets, taken for independent: Student, within 0 and 1) and, of "selected", ``p_value``, one-
    sided: how often the total is as large if the languages of the score are permuted, sources and
    targets together, which keeps that one language may be near to all others.
    """
    if top < 1:
        raise ValueError(f"top must be 1 or more: {top}")
    rng = np.random.default_rng(seed)
    apart = table[table["source"] != table["target"]]
    accuracy, score = (
        apart.pivot(index="source", columns="target", values=column).astype(float)
        for column in ("accuracy", by)
    )
    n = len(accuracy)
    if n < 3 or list(accuracy.index) != list(accuracy.columns) or accuracy.count().sum() < n**2 - n:
        raise ValueError("three languages or more are needed, each a source of every other")
    values = accuracy.to_numpy()
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
    permuted = _permuted(weights["selected"], outcomes, n_permutations, rng)
    tables, summary = [], []
    for rule, weight in weights.items():
        brought = {name: (weight * np.nan_to_num(x)).sum(axis=0) for name, x in outcomes.items()}
        tables.append(pd.DataFrame({"rule": rule, "target": accuracy.columns} | brought))
        for measure, reached in brought.items():
            mean = reached.mean()
            width = stats.t.ppf((1 + statistics.LEVEL) / 2, n - 1) * stats.sem(reached)
            row = {"rule": rule, "measure": measure, "mean": mean}
            row |= {"low": max(mean - width, 0), "high": min(mean + width, 1)}
            if rule == "selected":
                as_large = (permuted[measure] >= reached.sum() - SLACK).sum()
                row["p_value"] = (1 + as_large) / (1 + n_permutations)
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


def _permuted(
    weight: np.ndarray, outcomes: Mapping[str, np.ndarray], n: int, rng: np.random.Generator
) -> dict[str, np.ndarray]:
    """Totals of the outcomes if the languages of the score change places, n times."""
    source, target = np.nonzero(weight)  # mostly one source a target
    orders = np.stack([rng.permutation(len(weight)) for _ in range(n)])
    place = np.argsort(orders, axis=1)  # where each language of the score goes
    moved = place[:, source], place[:, target]
    return {
        name: np.nan_to_num(outcomes[name])[moved] @ weight[source, target]
        for name in CHOICE_MEASURES
    }


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
def transfer_matrices(
    table: pd.DataFrame, names: Mapping[str, str], labels: Mapping[str, str] | None = None
) -> Figure:
    """Transfer from source (row) to target (column), the best source framed (Figure 14).

    ``table`` has ``source``, ``target``, ``accuracy`` and ``best`` (True for the best other source
    of a target). A task has one scale about 0, and the languages that it has, by family; ``labels``
    tells of a task what its colours are, if something else than accuracy above a constant answer.
    """
    table = table.assign(hatched=table["source"] == table["target"], framed=table["best"])
    norms = {t: scale_about(x["accuracy"]) for t, x in parts(table[~table["hatched"]], "task")}
    bars = dict.fromkeys(norms, "accuracy − share of\nthe commonest label") | dict(labels or {})
    n = max(part["source"].nunique() for _, part in parts(table, "task"))
    style = Cells(
        rows=list(names),
        columns=list(names),
        sharex=False,
        sharey=False,
        cell=(2.65 / n, 2.65 / n),
        edge=(0.7, 1.5),
        turned=90,
        bar_by="task",
        bar=bars,
        norm=norms,
        cmap=ABOUT,
    )
    on = heatmap(table, "target", "source", "accuracy", row="model", col="task", style=style)
    for task, axes in zip(norms, on.figure.axes[-len(norms) :], strict=True):
        axes.set_xlim(left=min(0, rows_of(table, task=task, hatched=False)["accuracy"].min()))
    itself = Patch(label="the language itself", **HATCHED)
    return on.done("target", "source", handles=[framed_handle("best source of a target"), itself])


@styled
def win_rates(table: pd.DataFrame, summary: pd.DataFrame) -> Figure:
    """How often the chosen source beats a random one, one point per target (Figure 16).

    ``table`` has ``model``, ``task``, ``target`` and ``win_rate``; ``summary`` has ``model``,
    ``task``, ``mean``, ``low`` and ``high``.
    """
    table, summary = (x.assign(item=x["task"] + ", " + x["model"]) for x in (table, summary))
    table = table.sort_values("win_rate", kind="stable")
    style = Lanes(
        looks=look("0.5", "o", alpha=0.6),
        items=order(summary, "item"),
        labels="a target",
        spread=0.3,
        shift=-0.1,
        lane=0.12,
        interval=False,
        width=5,
    )
    on = lanes(table, "win_rate", "item", style=style)
    mean = look("black", "o", capsize=3)
    style = Lanes(looks=mean, labels="mean, with interval", shift=0.32)
    lanes(summary, "mean", "item", style=style, on=on)
    across(on, CHANCE)
    return on.done("share of random sources that the chosen one beats", handles=[chance_line()])
