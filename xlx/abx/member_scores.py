"""LD and MD of the members of the miniature family: the tables of `models-1-family`.

MD among sentences of like length stands first, intervals are over documents. Two members differ by
what their recipes say, and as two runs of one recipe differ, too: that is measured on further runs
of some recipes (`run_spread`), and stands beside every difference (`beside_runs`).
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
from scipy import stats

from xlx.abx import series, surface
from xlx.abx.averages import Average, average, averaged_scores, best_layer
from xlx.abx.checkpoint_scores import MATCHED, CheckpointScores, checkpoint_scores
from xlx.abx.courses import scores_within
from xlx.core import paths, statistics
from xlx.text.corpora import ParallelCorpus

#: What is scored, in the order of the tables.
SCORED = (MATCHED, "MD", "LD")
#: What of the layers stands for a model.
MEAN, BEST = "mean over layers", "best layer"


def last_scores(
    names: Sequence[str], corpus: ParallelCorpus, **options: object
) -> dict[str, CheckpointScores]:
    """Model → the scores of its last checkpoint, whether its weights are shipped or not."""
    states = [series.history(name, recorded=True)[-1] for name in names]
    return {of.model: of for of in checkpoint_scores(states, corpus, **options)}


def untrained_scores(
    names: Sequence[str], corpus: ParallelCorpus, **options: object
) -> dict[str, CheckpointScores]:
    """Model → the scores of its checkpoint before training (step 0), where it has such."""
    first = [series.history(name, recorded=True)[0] for name in names]
    states = [state for state in first if getattr(state, "step", None) == 0]
    if not states:
        return {}
    return {of.model: of for of in checkpoint_scores(states, corpus, **options)}


def scored_runs(
    runs: Mapping[str, tuple[str, Sequence[str]]], corpus: ParallelCorpus, **options: object
) -> dict[str, list[CheckpointScores]]:
    """Recipe → the scores of its runs, each of another seed, at one step.

    ``runs``: recipe → the run that stands for it, and the others. All are taken at the last step
    of the shortest of the others, which the first must have kept; ValueError where it has not. A
    recipe of one run is left out.
    """
    scored = {}
    for recipe, (first, others) in runs.items():
        if not others:
            continue
        histories = [series.history(name, recorded=True) for name in (first, *others)]
        step = min(history[-1].step for history in histories[1:])
        states = [{state.step: state for state in history} for history in histories]
        if missing := [of[0].name for of in histories if step not in {s.step for s in of}]:
            raise ValueError(f"{missing[0]} has no checkpoint at step {step:,}, as other runs have")
        scored[recipe] = checkpoint_scores([of[step] for of in states], corpus, **options)
    return scored


def layer_scores(measured: Mapping[str, CheckpointScores]) -> pd.DataFrame:
    """Scores by layer with intervals: `averages.averaged_scores`."""
    return averaged_scores(list(measured.values()), SCORED, by=["layer"])


def layer_table(by_layer: pd.DataFrame) -> pd.DataFrame:
    """Scores of tasks and members, a column a layer; both in the order given."""
    wide = by_layer.pivot(index=["task", "model"], columns="layer", values="score")
    return wide.loc[[(task, model) for task in SCORED for model in by_layer["model"].unique()]]


def surface_table(
    lines: Mapping[str, pd.DataFrame], models_of: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """`courses.surface_lines` by vocabulary; ``models_of``: vocabulary → its models."""
    rows = pd.concat(lines, names=["scores of", None]).reset_index(level=0)
    vocabularies = {models[0]: kind for kind, models in models_of.items()}
    rows = rows.assign(vocabulary=rows["model"].map(vocabularies)).dropna(subset="vocabulary")
    wide = rows.pivot(index=["scores of", "vocabulary"], columns="task", values="score")
    return wide.reindex(columns=SCORED)


def layer_sets(
    measured: CheckpointScores, *, embedding_layer: bool = True
) -> dict[str, dict[str, object]]:
    """What stands for a model → the options of `averages.average`."""
    mean = {"embedding_layer": embedding_layer}
    return {MEAN: mean, BEST: {"layers": [best_layer(measured)]}}


def summary_table(
    measured: Mapping[str, CheckpointScores], *, embedding_layer: bool = True
) -> pd.DataFrame:
    """Scores over all layers and at the best, and which that is: a row a model."""
    rows = {}
    for model, of in measured.items():
        rows[model] = {
            (layers, task): float(average(of, task, **options).score)
            for layers, options in layer_sets(of, embedding_layer=embedding_layer).items()
            for task in SCORED
        } | {(BEST, "layer"): best_layer(of)}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")


def above_surface(
    names: Sequence[str], measured: Mapping[str, CheckpointScores],
    untrained: Mapping[str, CheckpointScores], corpus: ParallelCorpus,
    max_length: int | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Matched MD of each best layer, and how far it is above what takes no training.

    ``measured``: the scores of ``names``, in their order. ``untrained``: model → its state before
    training, or one of its architecture, at whose own best layer it stands; a model without one
    has NaN there. The other measure is a bag of the subwords of its vocabulary. Columns of each:
    ``value``, ``low``, ``high``; the index has the layer.
    """
    rows = {}
    for name, (model, of) in zip(names, measured.items(), strict=True):
        layer = best_layer(of)
        score = average(of, MATCHED, layers=[layer])
        bag = average(surface.subword_bag(name, corpus, max_length=max_length), MATCHED)
        row = {MATCHED: score, "above the bag": score - bag}
        if (before := untrained.get(model)) is not None:
            row["above untrained"] = score - average(before, MATCHED, layers=[best_layer(before)])
        rows[model, layer] = {
            (what, end): number for what, of_it in row.items() for end, number in ends(of_it)
        }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["model", "layer"])
    return table[[what for what in (MATCHED, "above untrained", "above the bag") if what in table]]


def ends(score: Average) -> list[tuple[str, float]]:
    """A score and its interval by name."""
    low, high = score.interval()
    return [("value", float(score.score)), ("low", float(low)), ("high", float(high))]


# --- members beside each other, and runs of one recipe --------------------------------------------


def score_differences(
    measured: Mapping[str, CheckpointScores],
    references: Mapping[str, str],
    *,
    embedding_layer: bool = True,
) -> pd.DataFrame:
    """Models less their references (model → the one it is compared with), on the same documents.

    Over all layers, and each model at its best. Returns ``model``, ``reference``, ``layers``,
    ``task``, ``value``, ``low``, ``high``.
    """
    rows = []
    for name, other in references.items():
        ours, theirs = (
            layer_sets(measured[model], embedding_layer=embedding_layer) for model in (name, other)
        )
        for layers in ours:
            for task in SCORED:
                apart = average(measured[name], task, **ours[layers])
                apart -= average(measured[other], task, **theirs[layers])
                head = {"model": name, "reference": other, "layers": layers, "task": task}
                rows.append(head | dict(ends(apart)))
    return pd.DataFrame(rows)


def run_spread(
    runs: Mapping[str, Sequence[CheckpointScores]], *, embedding_layer: bool = True
) -> pd.DataFrame:
    """How runs of one recipe differ: ``layers``, ``task``, ``sd`` of a run, ``freedom``.

    ``runs``: recipe → its runs, each of another seed; `statistics.pooled_spread` of their scores.
    """
    of_runs = [_run_scores(of_recipe, embedding_layer) for of_recipe in runs.values()]
    rows = []
    for layers, task in product((MEAN, BEST), SCORED):
        scores = [of_recipe[layers, task] for of_recipe in of_runs]
        rows.append((layers, task, *statistics.pooled_spread(scores)))
    return pd.DataFrame(rows, columns=["layers", "task", "sd", "freedom"])


def _run_scores(
    of_recipe: Sequence[CheckpointScores], embedding_layer: bool
) -> dict[tuple[str, str], list[float]]:
    """Which layers, and task → the score of every run."""
    scores: dict[tuple[str, str], list[float]] = {}
    for of in of_recipe:
        for layers, options in layer_sets(of, embedding_layer=embedding_layer).items():
            for task in SCORED:
                score = float(average(of, task, **options).score)
                scores.setdefault((layers, task), []).append(score)
    return scores


def mean_run_differences(
    runs: Mapping[str, Sequence[CheckpointScores]],
    references: Mapping[str, str],
    *,
    embedding_layer: bool = True,
) -> pd.DataFrame:
    """Recipes less their references, of which each was run again: the means over their runs.

    ``runs`` as for `run_spread`; ``references``: recipe → the one that it is compared with. Rows
    ``layers``, ``task``, ``model``, ``reference``; columns ``of model`` and ``of reference`` (the
    means), ``value``, ``low``, ``high``. The interval is Welch's, over runs on the one text: luck
    need not do the same to both.
    """
    again = {recipe: of for recipe, of in runs.items() if len(of) > 1}
    scores = {recipe: _run_scores(of, embedding_layer) for recipe, of in again.items()}
    compared = [pair for pair in references.items() if set(pair) <= set(scores)]
    rows = {}
    for layers, task, (name, other) in product((MEAN, BEST), SCORED, compared):
        ours, theirs = (np.array(scores[recipe][layers, task]) for recipe in (name, other))
        welch = stats.ttest_ind(ours, theirs, equal_var=False)
        means = ours.mean(), theirs.mean(), ours.mean() - theirs.mean()
        rows[layers, task, name, other] = (*means, *welch.confidence_interval(statistics.LEVEL))
    columns = ["of model", "of reference", "value", "low", "high"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    table.index = pd.MultiIndex.from_tuples(
        list(rows), names=["layers", "task", "model", "reference"]
    )
    return table


def beside_runs(differences: pd.DataFrame, spread: pd.DataFrame) -> pd.DataFrame:
    """`score_differences` with what two runs of one recipe differ by (`run_spread`).

    Added are ``between runs``: in 95 % of cases two runs differ by less; ``least`` and ``most``:
    the interval over documents widened by that, the half widths taken together as of independent
    errors; ``beyond both``: on which side of zero it lies ("higher", "lower"), or "no".
    """
    table = differences.merge(spread, on=["layers", "task"], how="left", validate="many_to_one")
    between = [
        statistics.reach_of_two(sd, freedom)
        for sd, freedom in zip(table["sd"], table["freedom"].fillna(0), strict=True)
    ]
    reach = np.hypot(table["high"] - table["value"], between)
    beyond = np.select(
        [np.isnan(reach), table["value"] > reach, table["value"] < -reach],
        ["not known", "higher", "lower"],
        "no",
    )
    wider = {"least": table["value"] - reach, "most": table["value"] + reach}
    kept = table.drop(columns=["sd", "freedom"])
    return kept.assign(**{"between runs": between, **wider, "beyond both": beyond})


def difference_table(differences: pd.DataFrame, layers: str) -> pd.DataFrame:
    """`beside_runs` of some layers: a row a task and pair of models, in the order given."""
    rows = differences[differences["layers"] == layers]
    rows = pd.concat([rows[rows["task"] == task] for task in SCORED])
    shown = ["value", "low", "high", "between runs", "beyond both"]
    return rows.set_index(["task", "model", "reference"])[shown]


def few_and_many(
    few: str, many: str, corpus: ParallelCorpus, share: float, **options: object
) -> pd.DataFrame:
    """What a model of a few languages gains on them over one of many, and by which text.

    ``corpus``: in the few, or in some of them; ``share``: how much ``many`` has read of these, of
    what ``few`` has. ``few`` is taken at its end, when it has read as much as ``many`` in all, and
    where it has read as much of these (the checkpoint that is nearest on a log scale). Rows are
    those two less ``many``, at the best layer of each: ``task``, ``value``, ``low``, ``high``,
    ``few``, ``many`` (the two scores).
    """
    history = series.history(few, recorded=True)
    due = np.log(history[-1].step * share)
    alike = min(history[1:], key=lambda checkpoint: abs(np.log(checkpoint.step) - due))
    last = series.history(many, recorded=True)[-1]
    scored = checkpoint_scores([last, alike, history[-1]], corpus, **options)
    rows = []
    for what, of in zip(("as much of these", "as much in all"), scored[1:], strict=True):
        for task in SCORED:
            ours, theirs = (
                average(model, task, layers=[best_layer(model)]) for model in (of, scored[0])
            )
            head = {"read": what, "step": of.step, "task": task}
            scores = {"few": float(ours.score), "many": float(theirs.score)}
            rows.append(head | scores | dict(ends(ours - theirs)))
    return pd.DataFrame(rows)


def best_within(measured: Sequence[CheckpointScores], codes: Sequence[str]) -> pd.DataFrame:
    """Scores among some languages of models that were scored on more: a row a model.

    Of the layer with the highest MD among sentences of like length in these, which is in the index.
    """
    by_layer = scores_within(measured, codes, by=["layer"])
    table = by_layer.pivot(index=["model", "layer"], columns="task", values="score")[list(SCORED)]
    best = table.groupby("model")[MATCHED].idxmax()
    return table.loc[best[[of.model for of in measured]]]


def beside_printed(summary: pd.DataFrame, printed_as: Mapping[str, str]) -> pd.DataFrame:
    """Best layers beside the interlingual transfer gap that IGAP prints (Table 2, averages)."""
    printed = pd.read_csv(paths.PUBLISHED / "igap" / "table2_avg_igap_acc.csv")
    printed = printed[printed["quantity"] == "IGap"]
    printed = printed.pivot(index="model", columns="task", values="value")
    rows = summary[BEST].loc[[name for name in summary.index if name in printed_as]]
    kind = rows.index.map(printed_as)
    gaps = {f"IGap {task}, printed": kind.map(printed[task]) for task in printed}
    table = rows.assign(kind=kind, **gaps).sort_values("IGap XNLI, printed")
    return table[["kind", *gaps, *SCORED]]
