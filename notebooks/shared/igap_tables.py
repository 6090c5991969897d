"""What the notebooks of IGAP compute: parameters → fine-tuned models, runs → tidy tables.

Every table has one row an observation and numbers in [0, 1]; text in points (`in_points`) is made
for display alone, by the functions named ``..._table``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy import sparse

from xlx.experiment.transfers import (
    Transfers,
    TransferTask,
    one_label,
    transfer_task,
    transfer_tasks,
)
from xlx.measures import igap, statistics
from xlx.measures.igap import FITTED, MEAN_TARGET, centred_interval, in_points, with_interval
from xlx.results import work
from xlx.subjects import identity, loading, states
from xlx.subjects.identity import title
from xlx.subjects.jobs import Recipe, Sparing
from xlx.text.examples import Examples
from xlx.text.parallel import ParallelCorpus

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
        gold = igap.gold_scores(some.last_wrong(), **options)
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
    table = igap.ranking_accuracy(values[:, None], values)
    return pd.DataFrame(table, index=names, columns=names)[list(of)]


def shared_subwords(
    name: str, task: TransferTask, *, max_length: int | None = None
) -> pd.DataFrame:
    """How far the labels of a training set cross by the strings that translations share.

    Nothing is learnt: a translated example gets the label of that training example of the source
    language with which it has most subwords (of the model's tokenizer) in common: cosine of the
    counts, the two texts of a pair counted apart; the first of several as near. Names, numbers and
    signs alone do that much, so it is what a gap must be below to speak of more than that.

    One row per ``source`` and other ``target``: ``found``, the share of translations whose nearest
    training example is their own; ``interlingual``, the share with a wrong label less that of the
    training set itself (0 but where two examples have the same bag): Equation 4.
    """
    about = {
        "model": identity.fingerprint(name),
        "train": [[code, part.text_hash()] for code, part in task.train.items()],
        "max_length": max_length,
    }
    return work.result(SHARED, about, name, task.train, max_length)


def _shared_subwords(name: str, train: dict[str, Examples], max_length: int | None) -> pd.DataFrame:
    encoder = loading.load(name)
    first = next(iter(train.values()))
    sides = ("first",) if first.second is None else ("first", "second")
    empty = ("",) * len(first)
    bags = {code: [] for code in train}
    for side in sides:
        texts = {code: getattr(part, side) for code, part in train.items()}
        corpus = ParallelCorpus(side, texts, first.ids, empty, "", "")
        counted = states.bag_of_subwords(encoder, corpus, max_length=max_length)
        for code, bag in counted.items():
            bags[code].append(bag)
    joined = {code: sparse.hstack(both).tocsr() for code, both in bags.items()}
    sizes = {code: np.sqrt(bag.multiply(bag).sum(axis=1)) for code, bag in joined.items()}
    rows = []
    for source in train:
        for target in dict.fromkeys((source, *train)):
            # the size of a translation moves no maximum; that of a training example does
            shared = (joined[target] @ joined[source].T).toarray() / sizes[source]
            nearest = shared.argmax(axis=1)
            wrong = (first.labels[nearest] != first.labels).mean()
            if target == source:
                at_home = wrong
            else:
                known = (nearest == np.arange(len(first))).mean()
                rows.append((source, target, known, wrong - at_home))
    return pd.DataFrame(rows, columns=["source", "target", "found", "interlingual"])


SHARED = work.Kind("shared_subwords", _shared_subwords, version=1)


# --- beside models --------------------------------------------------------------------------------


def string_gaps(
    name: str, task: TransferTask, max_length: int | None = None, scale: float = 1.0
) -> pd.DataFrame:
    """`shared_subwords` from the first language by target, and their mean, times ``scale``."""
    table = shared_subwords(name, task, max_length=max_length)
    table = table[table["source"] == task.languages[0]].set_index("target")
    table = scale * table[["found", "interlingual"]]
    table.loc[MEAN_TARGET] = table.mean()
    return table


def beside_strings(
    transfers: Transfers, strings: pd.DataFrame, tolerance: float, **options: int
) -> pd.DataFrame:
    """IGAP by target of each model beside what shared subwords lose without one, in points."""
    curves = transfers.curves([0.0], tolerance, **options)
    models = list(dict.fromkeys(run.model for run in transfers.runs))
    table = curves.assign(IGAP=with_interval(curves))
    table = table.pivot(index="target", columns="model", values="IGAP")[models]
    table["shared subwords"] = strings["interlingual"].map(in_points)
    table["found"] = strings["found"].map(in_points)
    order = (*transfers.task.languages, MEAN_TARGET)
    return table.loc[[code for code in order if code in table.index]]


def with_strings(gaps: pd.DataFrame, strings: pd.DataFrame) -> pd.DataFrame:
    """`gaps_by_seed` beside the gap that shared subwords leave of the same directions."""
    strings = strings.set_index(["source", "target"])
    return gaps.assign(**{"shared subwords": strings["interlingual"]})


def by_shared(gaps: pd.DataFrame, strings: pd.DataFrame) -> pd.DataFrame:
    """Mean gaps where more than half of the translations are found by shared subwords, and not."""
    strings = strings.set_index(["source", "target"]).reindex(gaps.index)
    table = pd.DataFrame(
        {
            "model": gaps.mean(axis=1),
            "shared subwords": strings["interlingual"],
            "group": np.where(strings["found"] > 0.5, "many", "few"),
        }
    ).groupby("group")
    means = table[["model", "shared subwords"]].mean().map(in_points)
    return means.assign(directions=table.size())


#: What a direction is measured by, and the titles of measures whose best source is looked for.
DIRECTION_MEASURES = ["accuracy", "igap", "transfer_gap"]
BEST_BY = {"IGAP": "igap", "transfer gap": "transfer_gap", "test accuracy": "error"}
#: The two orders to be predicted, by the part of the task that they are of.
GOLD_PARTS = {"train": "translated training pairs", "test": "new pairs"}


# --- orders of targets (section 4.2) --------------------------------------------------------------


def gold_orders(
    transfers: Transfers, models: Sequence[str], **options: int
) -> dict[tuple[str, str], igap.Gold]:
    """(model, name of `GOLD_PARTS`) → accuracies of all directions, last checkpoints."""
    return {
        (model, name): igap.gold_scores(transfers.only(model=model).last_wrong(part), **options)
        for model in map(title, models)
        for part, name in GOLD_PARTS.items()
    }


def gold_table(golds: Mapping[tuple[str, str], igap.Gold]) -> pd.DataFrame:
    """Mean and range of the accuracies, and how well their order is known."""
    rows = {}
    for key, gold in golds.items():
        known = igap.order_reliability(gold).set_index("source").loc[MEAN_TARGET]
        rows[key] = {
            "accuracy, mean": gold.table["score"].mean(),
            "lowest": gold.table["score"].min(),
            "highest": gold.table["score"].max(),
            "reliability, halves": known["halves"],
            "reliability, resampled": known["resampled"],
        }
    return pd.DataFrame(rows).T


def with_igap(
    transfers: Transfers, frozen: Mapping[str, tuple[pd.DataFrame, int]], tolerance: float
) -> dict[str, pd.DataFrame]:
    """Model → scores of all metrics: IGAP of its runs, and those of `predictors.frozen`."""
    return {
        model: pd.concat([transfers.only(model=model).igap_scores(tolerance), table])
        for model, (table, _) in frozen.items()
    }


def targets_of_source(gold: igap.Gold, predicted: pd.DataFrame, source: str) -> pd.DataFrame:
    """One source: targets by accuracy, and what some metrics say of them."""
    rows = predicted[(predicted["source"] == source) & (predicted["target"] != source)]
    table = rows.pivot(index="target", columns="metric", values="score")
    table = table[["IGAP", "cosine", "L2", "MD", "MEXA"]]
    accuracy = gold.table[gold.table["source"] == source].set_index("target")["score"]
    table.insert(0, "accuracy", accuracy)
    return table.sort_values("accuracy", ascending=False)


def rank_metrics(
    golds: Mapping[tuple[str, str], igap.Gold], predicted: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """`rank_directions` and `permuted_languages` of each order, with ``model`` and ``gold``.

    Beside the metrics the order that the other sources give; sources without a model in the window
    are left out. ValueError where none is left.
    """
    tables = []
    for (model, name), gold in golds.items():
        metrics = pd.concat([predicted[model], igap.other_sources(gold.table)])
        known = metrics[metrics["metric"] == "IGAP"].dropna(subset="score")["source"]
        kept = gold.table["source"].isin(known)
        if not kept.any():
            raise ValueError(
                f"{model} has in no source a training error within the tolerance of 0, so that it "
                "has no IGAP: raise the tolerance, the epochs or the learning rate"
            )
        table, resamples = gold.table[kept], gold.resamples[:, kept.to_numpy()]
        ranked = igap.rank_directions(table, metrics, resamples=resamples)
        permuted = igap.permuted_languages(table, metrics).drop(columns="accuracy")
        tables.append(ranked.merge(permuted, on="metric").assign(model=model, gold=name))
    return pd.concat(tables, ignore_index=True)


def ranking_table(ranked: pd.DataFrame) -> pd.DataFrame:
    """Ranking accuracy of each metric in per cent, mean over sources, and its p (Table 1)."""
    means = ranked[ranked["source"] == MEAN_TARGET]
    text = [
        f"{100 * value:.0f} ({100 * low:.0f} to {100 * high:.0f})"
        for value, low, high in means[["accuracy", "low", "high"]].to_numpy()
    ]
    keys = {"index": ["model", "metric"], "columns": "gold"}
    p_values = means.pivot(**keys, values="p_value").round(3).add_prefix("p, ")
    table = means.assign(text=text).pivot(**keys, values="text").join(p_values)
    order = [dict.fromkeys(means[name]) for name in keys["index"]]
    return table.reindex(pd.MultiIndex.from_product(order))


def ranking_points(
    ranked: pd.DataFrame, model: str, gold: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Accuracies by source, and their means (``mean``); of one order."""
    rows = ranked[(ranked["model"] == model) & (ranked["gold"] == gold)]
    of_mean = rows["source"] == MEAN_TARGET
    return rows[~of_mean], rows[of_mean].rename(columns={"accuracy": "mean"})


def wins(by_source: pd.DataFrame) -> pd.DataFrame:
    """In how many sources IGAP is better than each other metric, as good, worse."""
    wide = by_source.pivot(index="source", columns="metric", values="accuracy")
    others = [metric for metric in by_source["metric"].unique() if metric != "IGAP"]
    against = {metric: wide["IGAP"] - wide[metric] for metric in others}
    rows = [
        ((apart > 0).sum(), (apart == 0).sum(), (apart < 0).sum()) for apart in against.values()
    ]
    return pd.DataFrame(rows, list(against), ["IGAP better", "as good", "worse"])


# --- all directions (section 5.3) -----------------------------------------------------------------


def answers_table(transfers: Transfers, position: int = 0) -> pd.DataFrame:
    """What the first run answers for one pair in each language, and how many are wrong there."""
    run = transfers.runs[0]
    return pd.DataFrame(
        {
            code: {
                "answer": part.classes[run.predictions[f"train {code}"][-1, position]],
                f"wrong of {len(part)}": transfers.wrong(run, "train", code, -1).sum(),
            }
            for code, part in transfers.task.train.items()
        }
    )


def answers_by_model(
    transfers: Transfers, models: Sequence[str], algorithm: str, codes: Sequence[str], position: int
) -> pd.DataFrame:
    """What each model (first run, last checkpoint) answers for one training pair."""
    classes = next(iter(transfers.task.train.values())).classes
    runs = {
        model: transfers.only(model=model, algorithm=algorithm).runs[0]
        for model in map(title, models)
    }
    return pd.DataFrame(
        {
            model: {code: classes[run.predictions[f"train {code}"][-1, position]] for code in codes}
            for model, run in runs.items()
        }
    ).T


def squares(directions: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Each measure of all directions, source by target, in points; of each task."""
    tables = {
        (name, column): table.pivot(index="source", columns="target", values=column).map(in_points)
        for name, table in directions.items()
        for column in DIRECTION_MEASURES
    }
    return pd.concat(tables, names=["task", "measure"]).fillna("")


def directions_table(directions: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Mean and range of each measure over the directions, and how many are below 0."""
    rows = {}
    for name, table in directions.items():
        values = table.loc[table["source"] != table["target"], DIRECTION_MEASURES]
        ends = values.agg(["mean", "min", "max"]).T.map(in_points)
        ends = ends.set_axis(["mean", "lowest", "highest"], axis=1)
        rows[name] = ends.assign(**{"below 0": (values < 0).sum(), "directions": len(values)})
    return pd.concat(rows)


def accuracy_width(task: TransferTask) -> str:
    """95 % half width of the accuracy of one run, in points, at most: by the test examples."""
    return in_points(1.96 * np.sqrt(0.25 / task.n_test))


def best_sources(directions: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The best source of each target by each measure of `BEST_BY`."""
    best = {}
    for name, table in directions.items():
        across = table[table["source"] != table["target"]]
        across = across.assign(error=1 - across["accuracy"])
        best[name] = pd.DataFrame(
            {
                measure: across.dropna(subset=column).sort_values(column)
                .groupby("target")["source"].first()
                for measure, column in BEST_BY.items()
            }
        ).reindex(dict.fromkeys([*table["source"], *table["target"]]))  # fmt: skip
    return pd.concat(best, names=["task", "target"])


def as_by_accuracy(best: pd.DataFrame) -> pd.DataFrame:
    """For how many targets IGAP and the transfer gap name the source that test accuracy names."""
    rows = {}
    for name, table in best.groupby(level="task", sort=False):
        same = {
            measure: int((table[measure] == table["test accuracy"]).sum())
            for measure in [*BEST_BY][:2]
        }
        targets = len(table)
        rows[name] = {**same, "by chance": round(targets / (targets - 1), 2), "targets": targets}
    return pd.DataFrame(rows, dtype=object).T


def gaps_by_seed(transfers: Transfers) -> pd.DataFrame:
    """The interlingual gap of each direction at the last checkpoint, a column a seed."""
    points = transfers.points()
    ends = points.groupby(["source", "seed"])["step"].transform("max")
    last = points[points["step"] == ends]
    return last.pivot_table(index=["source", "target"], columns="seed", values="interlingual")


def reversal_table(gaps: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Whether a direction differs from its reverse by more than from itself with another seed.

    Mean differences in points, the first seed's and each other's; correlations between the first
    seed and the others, of gaps and of the differences between a direction and its reverse.
    """
    rows = []
    for name, table in gaps.items():
        reverse = table.copy()
        reverse.index = reverse.index.swaplevel().set_names(["source", "target"])
        apart = (table - reverse)[[source < target for source, target in table.index]]
        first = table.columns[0]
        for seed in table:
            scores = table[seed].rename("score").reset_index()
            row = {
                "directions": len(table),
                "to the reverse": in_points(igap.asymmetry(scores)),
                "to the first seed": in_points((table[first] - table[seed]).abs().mean()),
                "r of the gaps": table.corr(min_periods=3).loc[first, seed].round(2),
                "r of the differences": apart.corr(min_periods=3).loc[first, seed].round(2),
            }
            rows.append({"task": name, "seed": seed, **row})
    return pd.DataFrame(rows).set_index(["task", "seed"])


# --- labels at random (section 5.4) ---------------------------------------------------------------


def memorised_labels(
    name: str,
    task: TransferTask,
    source: str,
    recipes: Sequence[Recipe],
    seeds: Sequence[int],
    ratios: Sequence[float],
    *,
    corruption_seed: int = 1,
    tolerance: float = FITTED,
    sparing: Sparing | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What crosses of labels of which a share is random (section 5.4, Figure 3).

    Fine-tuned in the source with its labels corrupted at each of the ``ratios``, alike in all
    languages, the model is asked the translations; "right" is the label that it was trained with.

    What is drawn (`plots.igap.memorisation`): ``ratio``; ``quantity``: "accuracy" on the
    translations at the last checkpoint, or "IGAP" at E' = 0; ``target``, None for the mean over
    them; ``value``; ``low`` and ``high``, the 95 % interval over examples; ``chance``. And what is
    told, by ``ratio``, shares: how many labels ``changed`` (a number); at the last checkpoints the
    ``training error``, the ``accuracy`` on translations, the same ``of changed`` labels and ``of
    the others``, and on the ``test`` sets of the targets against true labels; the ``IGAP``; the gap
    of ``shared subwords`` without a model.
    """
    corrupted = [task.corrupted(ratio, corruption_seed) for ratio in ratios]
    measured = transfer_tasks([name], corrupted, [source], recipes, seeds, sparing=sparing)
    drawn, told = [], {}
    for ratio, transfers in zip(ratios, measured, strict=True):
        table = transfers.directions(0.0, tolerance, n_resamples=1, n_splits=1)
        test = table.loc[table["target"] != source, "accuracy"].mean()
        curve = transfers.curves([0.0], tolerance, n_resamples=n_resamples, seed=seed)
        strings = shared_subwords(name, transfers.task, max_length=recipes[0].max_length)
        right = {
            code: np.mean([~transfers.wrong(run, "train", code, -1) for run in transfers.runs], 0)
            for code in task.languages
        }
        at_home = right.pop(source)
        changed = transfers.task.train[source].labels != task.train[source].labels
        crossed = np.mean(list(right.values()), axis=0)
        told[ratio] = {
            "changed": changed.sum(),
            "training error": 1 - at_home.mean(),
            "accuracy": crossed.mean(),
            "of changed": crossed[changed].mean() if changed.any() else np.nan,
            "of the others": crossed[~changed].mean(),
            "test": test,
            "IGAP": curve.loc[curve["target"] == MEAN_TARGET, "igap"].item(),
            "shared subwords": strings.loc[strings["source"] == source, "interlingual"].mean(),
        }
        rng = np.random.default_rng(seed)
        places = rng.integers(0, len(crossed), (n_resamples, len(crossed)))
        low, high = np.quantile(crossed[places].mean(axis=1), [0.025, 0.975])
        rows = [(MEAN_TARGET, crossed.mean(), low, high)]
        rows += [(code, hits.mean(), np.nan, np.nan) for code, hits in right.items()]
        accuracy = pd.DataFrame(rows, columns=["target", "value", "low", "high"])
        for quantity, values, chance in (
            ("IGAP", curve.rename(columns={"igap": "value"}), task.guess),
            ("accuracy", accuracy, 1 - task.guess),
        ):
            drawn.append(values.assign(ratio=ratio, quantity=quantity, chance=chance))
    drawn = pd.concat(drawn, ignore_index=True).replace({"target": {MEAN_TARGET: None}})
    columns = ["ratio", "quantity", "target", "value", "low", "high", "chance"]
    return drawn[columns], pd.DataFrame(told).T.rename_axis("ratio").astype({"changed": int})


def memory_table(told: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What `memorised_labels` tells of each task, in points."""
    tables = {}
    for name, table in told.items():
        text = table.drop(columns="changed").map(lambda x: "–" if np.isnan(x) else in_points(x))
        text.insert(0, "changed", table["changed"])
        tables[name] = text
    return pd.concat(tables, names=["task", "ratio"])


def ends_table(memorised: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Accuracy and IGAP with the least and the most random labels, with intervals, in points."""
    rows = []
    for name, table in memorised.items():
        means = table[table["target"].isna()]
        means = means[means["ratio"].isin([means["ratio"].min(), means["ratio"].max()])]
        rows.append(means.assign(task=name, text=with_interval(means, "value")))
    table = pd.concat(rows)
    table["guessing"] = table["chance"].map(in_points)
    return table.pivot(index=["task", "quantity", "guessing"], columns="ratio", values="text")
