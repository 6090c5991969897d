"""What the notebooks of IGAP compute: parameters → fine-tuned models, runs → tidy tables.

Every table has one row an observation and numbers in [0, 1]; text in points (`in_points`) is made
for display alone, by the functions named ``..._table``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd

from xlx.core import statistics
from xlx.igap import ranking
from xlx.igap.tasks import TransferTask, one_label
from xlx.igap.transferability import MEAN_TARGET, centred_interval, in_points, with_interval
from xlx.igap.transfers import Transfers, transfer_task
from xlx.models.finetuning import Recipe, Sparing
from xlx.models.loading import title

#: What names the fine-tuned models that a row is of.
RUN_KEYS = ["task", "model", "algorithm"]
#: The tasks as the papers call them, and the algorithms as the tables do.
TASK_TITLES = {"NLI": "XNLI", "PI": "PAWS-X"}
ALGORITHM_TITLES = {"vanilla": "vanilla", "gaussian": "Gaussian", "xtune": "xTune"}


# --- parameters → runs ----------------------------------------------------------------------------


def make_recipes(
    epochs: Mapping[str, int],
    every: Mapping[str, int],
    learning_rates: Sequence[float],
    **options: object,
) -> dict[str, list[Recipe]]:
    """The recipes of each task, one a learning rate; ``options`` as of `Recipe`."""
    return {
        name: [
            Recipe(epochs=epochs[name], every=every[name], learning_rate=rate, **options)
            for rate in learning_rates
        ]
        for name in epochs
    }


def windows_of(levels: Sequence[float], tolerance: float, every: int | None = None) -> Sparing:
    """Ask what IGAP at these training errors needs, and everything after ``every`` steps."""
    return Sparing(tuple((level, tolerance) for level in levels), every)


def fine_tune(
    models: Sequence[str],
    tasks: Mapping[str, TransferTask],
    sources: Mapping[str, Sequence[str]],
    recipes: Mapping[str, Sequence[Recipe]],
    seeds: Sequence[int],
    sparing: Mapping[str, Sparing] | None = None,
) -> dict[str, Transfers]:
    """`transfer_task` of each task."""
    return {
        name: transfer_task(
            models, task, sources[name], recipes[name], seeds, sparing=(sparing or {}).get(name)
        )
        for name, task in tasks.items()
    }


def fine_tune_by_algorithm(
    models: Sequence[str],
    tasks: Mapping[str, TransferTask],
    source: str,
    recipes: Mapping[str, Sequence[Recipe]],
    algorithms: Sequence[str],
    tried: tuple[str, Sequence[str]],
    seeds: Sequence[int],
    sparing: Sparing | None,
) -> dict[str, Transfers]:
    """Every model on all tasks by the first algorithm; ``tried`` (model, tasks) by all of them."""
    first, *others = algorithms
    model, of_tasks = tried
    measured = {}
    for name, task in tasks.items():
        plain = [replace(recipe, algorithm=first) for recipe in recipes[name]]
        runs = transfer_task(models, task, [source], plain, seeds, sparing=sparing).runs
        if name in of_tasks and others:
            rest = [replace(r, algorithm=other) for other in others for r in recipes[name]]
            runs += transfer_task([model], task, [source], rest, seeds, sparing=sparing).runs
        measured[name] = Transfers(task, runs)
    return measured


# --- runs → tables --------------------------------------------------------------------------------


def all_points(measured: Mapping[str, Transfers]) -> pd.DataFrame:
    """`Transfers.points` of all tasks."""
    return pd.concat([of_task.points() for of_task in measured.values()], ignore_index=True)


def all_curves(
    measured: Mapping[str, Transfers], levels: Sequence[float], tolerance: float, **options: int
) -> pd.DataFrame:
    """`Transfers.curves` of all tasks; ``one_label``: the gap of a model that gives one label."""
    tables = []
    for name, of_task in measured.items():
        curves = of_task.curves(levels, tolerance, **options)
        curves["one_label"] = one_label(of_task.task) - curves["level"]
        tables.append(curves.assign(task=name))
    return pd.concat(tables, ignore_index=True)


def last_checkpoints(points: pd.DataFrame) -> pd.DataFrame:
    """The rows of `all_points` after the last step of each task."""
    return points[points["step"] == points.groupby("task")["step"].transform("max")]


def error_parts(points: pd.DataFrame) -> pd.DataFrame:
    """The three parts of the error along fine-tuning (Figure 7): mean and range over seeds."""
    keys = ["task", "source", "target", "model", "step"]
    quantities = ["intralingual", "interlingual", "training"]
    parts = points.melt(keys, quantities, "quantity").dropna(subset="value")
    grouped = parts.groupby(["task", "quantity", *keys[1:]], sort=False, as_index=False)["value"]
    return grouped.agg(value="mean", low="min", high="max")


def parts_by_third(parts: pd.DataFrame, sources: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Means of `error_parts` over three stretches of the steps, from the first source."""
    parts = parts[parts["source"] == parts["task"].map(lambda name: sources[name][0])]
    rank = parts.groupby("task")["step"].rank(method="dense", pct=True)
    thirds = ["first", "second", "last"]
    keys = ["task", "quantity", "model", pd.cut(rank, 3, labels=thirds).rename("third")]
    means = parts.groupby(keys, sort=False, observed=True)["value"].mean()
    return means.unstack().reindex(columns=thirds)


def lowest_table(curves: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
    """The right end of the curves, in points."""
    lowest = curves[curves["level"] == curves["level"].min()]
    table = lowest.assign(
        IGAP=with_interval(lowest),
        crossfitted=lowest["crossfitted"].map(in_points),
        guessing=lowest["chance"].map(in_points),
        **{"one label": lowest["one_label"].map(in_points)},
        model=pd.Categorical(lowest["model"], list(map(title, models))),
    )
    columns = ["IGAP", "crossfitted", "guessing", "one label", "n_models"]
    return table.set_index(["task", "source", "target", "model"]).sort_index()[columns]


def model_order(
    points: pd.DataFrame, curves: pd.DataFrame, models: Sequence[str], tolerance: float
) -> pd.DataFrame:
    """How often each model is best, whether gaps are negative, whether IGAP grows; by task.

    A comparison is of the models that have a checkpoint at one level of one direction.
    """
    near = points[points["training"] <= curves["level"].max() + tolerance]
    direction, columns = ["source", "target", "level"], {}
    models = list(map(title, models))
    for name in curves["task"].unique():
        of_task = curves[curves["task"] == name]
        placed = of_task.dropna(subset="crossfitted")
        placed = placed.assign(
            place=placed.groupby(direction)["crossfitted"].rank(),
            of=placed.groupby(direction)["model"].transform("size"),
        )
        steps = of_task.sort_values("level", ascending=False)
        steps = steps.groupby(["source", "target", "model"])["igap"].diff().dropna()
        gaps = near[near["task"] == name]
        first = placed[(placed["of"] > 1) & (placed["place"] == 1)]["model"]
        second = placed[(placed["of"] == 3) & (placed["place"] == 2)]["model"]
        columns[name] = {
            "comparisons": placed[placed["of"] > 1].groupby(direction).ngroups,
            **{f"best, crossfitted: {model}": (first == model).sum() for model in models},
            **{f"second of three: {model}": (second == model).sum() for model in models},
            "interlingual gap below 0, %": 100 * (gaps["interlingual"].dropna() < 0).mean(),
            "transfer gap below 0, %": 100 * (gaps["transfer_gap"].dropna() < 0).mean(),
            "IGAP grows from one level to the next, %": 100 * (steps > 0).mean(),
        }
    return pd.DataFrame(columns)


# --- averages over targets ------------------------------------------------------------------------


def _kinds(measured: Mapping[str, Transfers]) -> Iterator[tuple[tuple[str, str, str], Transfers]]:
    """The runs of each of `RUN_KEYS`."""
    for name, of_task in measured.items():
        for model, algorithm in dict.fromkeys((run.model, run.algorithm) for run in of_task.runs):
            yield (name, model, algorithm), of_task.only(model=model, algorithm=algorithm)


def average_accuracies(measured: Mapping[str, Transfers], **options: int) -> pd.DataFrame:
    """`RUN_KEYS` and ``accuracy``: mean over the targets, with its interval over test examples."""
    rows = []
    for key, some in _kinds(measured):
        gold = ranking.gold_scores(some.last_wrong(), **options)
        low, high = np.quantile(gold.resamples.mean(axis=1), [0.025, 0.975])
        rows.append((*key, gold.table["score"].mean(), low, high))
    return pd.DataFrame(rows, columns=[*RUN_KEYS, "accuracy", "low", "high"])


def averages_table(averages: pd.DataFrame, accuracies: pd.DataFrame) -> pd.DataFrame:
    """IGAP and test accuracy averaged over targets, in points, with their intervals (Table 2)."""
    titles = {"task": TASK_TITLES, "algorithm": ALGORITHM_TITLES}
    both = averages.merge(accuracies, on=RUN_KEYS, suffixes=("", " of accuracy")).replace(titles)
    columns = {
        "igap": "IGAP", "low": "low", "high": "high", "chance": "a guess",
        "one_label": "one label", "accuracy": "accuracy", "low of accuracy": "from",
        "high of accuracy": "to",
    }  # fmt: skip
    return both.set_index(RUN_KEYS)[list(columns)].map(in_points).rename(columns=columns)


def target_table(curves: pd.DataFrame, printed: pd.DataFrame, by: str) -> pd.DataFrame:
    """IGAP by target of each model or algorithm, and below it the printed rows of its kind."""
    ours = curves[curves["target"] != MEAN_TARGET].pivot(index=by, columns="target", values="igap")
    order = [curves[name].drop_duplicates() for name in (by, "target")]
    ours = ours.loc[order[0], order[1][order[1] != MEAN_TARGET]].rename(ALGORITHM_TITLES)
    theirs = printed.reindex(columns=ours.columns).add_suffix(", printed", axis=0)
    return pd.concat([ours.map(in_points), theirs.map("{:.1f}".format)])


def our_averages(averages: pd.DataFrame, accuracies: pd.DataFrame) -> pd.DataFrame:
    """Our averages of both measures as rows of ``quantity`` and ``value``, for `plots.igap`."""
    both = {"IGAP": averages.rename(columns={"igap": "value"}),
            "accuracy": accuracies.rename(columns={"accuracy": "value"})}  # fmt: skip
    table = pd.concat([rows.assign(quantity=name) for name, rows in both.items()])
    return table.assign(kind="ours", task=table["task"].map(TASK_TITLES))


def beside_print(averages: pd.DataFrame) -> pd.DataFrame:
    """Averages by kind of number (printed, recomputed, ours) in points; ``task, row`` of a row."""
    keys = ["task", "row"]
    order = pd.MultiIndex.from_frame(averages[keys].drop_duplicates())
    text = averages.assign(value=averages["value"].map(in_points))
    wide = text.set_index([*keys, "quantity", "kind"])["value"].unstack(["quantity", "kind"])
    wide = wide.loc[order]
    return wide["IGAP"].join(wide["accuracy"].add_suffix(" accuracy")).fillna("")


def luck_table(averages: pd.DataFrame) -> pd.DataFrame:
    """What the choice of the minimum gives for nothing, and how far the seeds are apart."""
    table = averages.assign(
        luck=averages["crossfitted"] - averages["igap"],
        spread=averages["seed_high"] - averages["seed_low"],
    ).set_index(RUN_KEYS)
    columns = ["igap", "crossfitted", "luck", "seed_low", "seed_high", "spread"]
    return table[columns].map(in_points).assign(models=table["n_models"], seeds=table["n_seeds"])


def overlap_table(
    of_task: Transfers, source: str, tolerance: float, **options: int
) -> pd.DataFrame:
    """IGAP at training error 0 by target with intervals, means, and accuracies, in points."""
    directions = of_task.directions(0.0, tolerance, **options)
    directions["IGAP"] = with_interval(directions)
    means = of_task.curves([0.0], tolerance, **options)
    means = means[means["target"] == MEAN_TARGET].set_index("model")
    models = list(dict.fromkeys(run.model for run in of_task.runs))
    table = directions.pivot(index="model", columns="target", values="IGAP").loc[models]
    table = table.drop(columns=source)
    for column in ("igap", "crossfitted", "chance", "seed_low", "seed_high"):
        table[f"mean {column}"] = means[column].map(in_points)
    accuracy = directions.pivot(index="model", columns="target", values="accuracy").map(in_points)
    return pd.concat({"IGAP": table.T, "accuracy on new pairs": accuracy.T})


def contrasts(
    measured: Mapping[str, Transfers],
    steps: Sequence[tuple[tuple[str, str], tuple[str, str]]],
    tolerance: float,
    *,
    n_resamples: int,
    seed: int,
) -> pd.DataFrame:
    """Differences of the IGAP averaged over targets, the first less the second, with intervals.

    ``steps`` are pairs of (model, algorithm). The examples resampled are the same for both, so the
    interval is that of the difference. ``value``, ``low``, ``high``; ``lower``: in how many of the
    ``targets`` the second is lower.
    """
    gaps: dict[tuple[str, str, str], tuple[np.ndarray, np.ndarray]] = {}
    for key, some in _kinds(measured):
        n, rng = some.task.n_train, np.random.default_rng(seed)
        counts = statistics.resample_counts(n, n_resamples, rng)
        lost = some.lost(tolerance)
        if len(lost[0]):
            least = [array.mean(axis=1).min() for array in lost]
            resampled = [(counts @ array.T).min(axis=1) / n for array in lost]
            gaps[key] = np.array(least), np.array(resampled)
    rows = []
    for name in measured:
        for first, second in steps:
            both = [gaps.get((name, *end)) for end in (first, second)]
            if None not in both:
                apart, resampled = (a - b for a, b in zip(*both, strict=True))
                low, high = centred_interval(apart.mean(), resampled.mean(axis=0))
                ends = [pair[0 if first[0] != second[0] else 1] for pair in (first, second)]
                label = " → ".join(ALGORITHM_TITLES.get(end, end) for end in ends)
                row = (TASK_TITLES.get(name, name), label, apart.mean(), low, high)
                rows.append((*row, (apart > 0).sum(), len(apart)))
    columns = ["task", "from → to", "value", "low", "high", "lower", "targets"]
    return pd.DataFrame(rows, columns=columns)


def steps_between(
    models: Sequence[str], algorithms: Sequence[str], model: str, by_kind: Mapping[str, str]
) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """What `contrasts` compares: each model with the next, the algorithms, the two sizes."""
    plain, *others = algorithms
    models, model = list(map(title, models)), title(model)
    steps = [((first, plain), (second, plain)) for first, second in pairwise(models)]
    steps += [((model, plain), (model, other)) for other in others]
    if {"XLM-R", "XLM-R_large"} <= set(by_kind):
        steps.append(((by_kind["XLM-R"], plain), (by_kind["XLM-R_large"], plain)))
    return steps


def mean_alignment(frozen: Mapping[str, tuple[pd.DataFrame, int]], source: str) -> pd.DataFrame:
    """Meaning discrimination and MEXA from the source, mean over targets, and the layer."""
    rows = {}
    for model, (table, layer) in frozen.items():
        means = table[table["source"] == source].groupby("metric")["score"].mean()
        rows[model] = {"layer": layer} | means[["MD", "MEXA"]].to_dict()
    return pd.DataFrame(rows).T


def measures_of_models(
    ours: pd.DataFrame,
    recomputed: pd.DataFrame,
    printed: Mapping[str, pd.DataFrame],
    kinds: Mapping[str, str],
    aligned: pd.DataFrame,
) -> pd.DataFrame:
    """Measure by model, high is good: ours, what is printed of its kind, and alignment."""
    measures, kinds = {}, pd.Series(kinds)
    for name in TASK_TITLES.values():
        table = ours[ours["task"] == name].set_index("model")
        if len(table):
            measures[f"IGAP, {name}"] = -table.loc[table["quantity"] == "IGAP", "value"]
            measures[f"accuracy, {name}"] = table.loc[table["quantity"] == "accuracy", "value"]
        measures[f"IGAP, {name}, printed"] = -kinds.map(recomputed.loc[name, "sum / n"])
        measures[f"accuracy, {name}, printed"] = kinds.map(printed[name]["accuracy"])
    return pd.DataFrame(measures).join(aligned[["MD", "MEXA"]]).dropna().T


def agreement(measures: pd.DataFrame, of: Sequence[str]) -> pd.DataFrame:
    """Share of pairs of models (columns) that each measure (row) orders as those named do."""
    values = measures.to_numpy()
    names = measures.index
    table = ranking.ranking_accuracy(values[:, None], values)
    return pd.DataFrame(table, index=names, columns=names)[list(of)]
