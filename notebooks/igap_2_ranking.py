"""Does IGAP rank the directions of transfer? Tables 1 and 5, Figures 2 to 6 of its paper.

Orders are scored by Equation 6 (`igap.ranking_accuracy`): the share of pairs of targets in order.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from shared import ranking
from shared.claims import ENDS
from shared.shown import as_points, asking, in_points
from xlx.experiment.transfers import DIRECTION, Transfers, TransferTask, transfer_task
from xlx.measures import statistics
from xlx.measures.igap import FITTED, MEAN_TARGET, crossed_interval
from xlx.plots.panels import HATCHED, across, number, rows_of
from xlx.plots.primitives import curves, heatmap, lanes
from xlx.plots.style import BLUE, GUESSING, HIGH, MEASURES, handle, look, styled
from xlx.results.deferred import deferred
from xlx.subjects import loading
from xlx.subjects.identity import title
from xlx.subjects.jobs import Recipe, Sparing

feature_extraction = deferred("sklearn.feature_extraction.text")
preprocessing = deferred("sklearn.preprocessing")

FROZEN_LABELS = "random labels, frozen states"
#: What another source has in the place of a metric: test accuracies, or IGAP.
OTHER_SOURCES, OTHER_IGAP = "accuracy from other sources", "IGAP from other sources"
#: What Figure 3 calls accuracy: that on labels that were learnt, in translation.
TRANSLATED = "accuracy on translations"
#: (source, target) → values of each seed and example, ``(S, n)``.
Values = Mapping[tuple[str, str], np.ndarray]
#: An order of targets, and what is to have it: scores by source and target, high is good.
World = tuple[pd.Series, pd.DataFrame]


# --- ranking --------------------------------------------------------------------------------------


def means_of(values: Values) -> pd.Series:
    """The mean of each direction, by ``source`` and ``target``."""
    index = pd.MultiIndex.from_tuples(list(values), names=["source", "target"])
    return pd.Series([x.mean() for x in values.values()], index, dtype=float)


def metric_scores(
    gold: pd.Series, lost: pd.Series, frozen: pd.DataFrame, memorised: pd.DataFrame
) -> World:
    """The directions that have an IGAP (``lost``) in order of accuracy, and each metric of them.

    ``frozen``: `igap_tables.frozen`; ``memorised``: `igap_tables.memorised_gaps` of one layer.
    ValueError where no direction has an IGAP.
    """
    if lost.empty:
        raise ValueError(
            "the model has in no source a training error within the tolerance of 0, so that it "
            "has no IGAP: raise the tolerance, the epochs or the learning rate"
        )
    gold = gold.loc[lost.index]
    scores = {
        "IGAP": -lost,
        OTHER_SOURCES: ranking.other_sources(gold),
        OTHER_IGAP: -ranking.other_sources(lost),
    }
    by_labels = memorised.set_index(["source", "target"])["gap"]
    scores[FROZEN_LABELS] = -by_labels.reindex(gold.index)
    for metric, of_metric in frozen.groupby("metric", sort=False):
        scores[metric] = of_metric.set_index(["source", "target"])["score"].reindex(gold.index)
    return gold, pd.DataFrame(scores).dropna(axis=1)  # there may be no other source


def ranked(worlds: Sequence[World], first: str) -> pd.DataFrame:
    """Mean ranking accuracy of each metric, and how far the ``first`` is ahead of it.

    Means over sources and ``worlds``. ``low``, ``high``: 95 %, over languages: each is left out in
    turn as source and target (jackknife, Student's t), as a pair of targets hangs together with all
    others of its two languages. NaN of fewer than four languages.
    """

    def means(kept: Sequence[World]) -> np.ndarray:
        table = np.mean([ranking.accuracies(*world).mean().to_numpy() for world in kept], axis=0)
        return np.stack([table, table[worlds[0][1].columns.get_loc(first)] - table])

    codes = list(dict.fromkeys(itertools.chain(*worlds[0][0].index)))
    whole = means(worlds)
    without = [
        means(
            [
                tuple(
                    x.drop(code, level=0, errors="ignore").drop(code, level=1, errors="ignore")
                    for x in world
                )
                for world in worlds
            ]
        )
        for code in codes * (len(codes) > 3)  # of three languages no two targets would be left
    ]
    apart = np.reshape(without, (len(without), *whole.shape))[:, 1]
    apart = apart[~np.isnan(apart).any(axis=1)]  # the only source may be left out
    n = max(len(apart), 1)
    error = np.sqrt((n - 1) / n * ((apart - apart.sum(axis=0) / n) ** 2).sum(axis=0))
    half = statistics.half_width(error, n - 1)
    columns = {"accuracy": whole[0], "ahead": whole[1], "low": whole[1] - half}
    return pd.DataFrame(columns | {"high": whole[1] + half}, worlds[0][1].columns)


def one_seed(measured: Transfers, tolerance: float) -> list[World]:
    """For each seed, the accuracies of the other seeds, and IGAP and accuracy of that one alone."""
    worlds = []
    for seed in dict.fromkeys(run.seed for run in measured.runs):
        here, others = (
            replace(measured, runs=tuple(x for x in measured.runs if (x.seed == seed) == same))
            for same in (True, False)
        )
        lost = means_of(here.losses(0.0, tolerance))
        if others.runs and len(lost):
            gold, right = (-means_of(x.last_wrong()).loc[lost.index] for x in (others, here))
            worlds.append((gold, pd.DataFrame({"IGAP": -lost, "accuracy": right})))
    return worlds


def permuted_languages(
    gold: pd.Series, predictors: pd.DataFrame, *, n_permutations: int = 5040, seed: int = 0
) -> pd.DataFrame:
    """The mean accuracy of each metric against that with the languages permuted (QAP; Mantel 1967).

    Orders of the targets of several sources are not independent of each other: a language that is
    a good target is so for most sources. So the metric keeps its matrix and loses its languages:
    rows and columns are permuted together, and the accuracy (`igap.ranking_accuracy`, mean over
    sources) is taken again. All permutations where there are no more than ``n_permutations`` (7
    languages have 5,040), else so many drawn by ``seed``.

    ``gold`` and ``predictors``: `metric_scores`. One row per metric: ``random_low`` and
    ``random_high``, the middle 95 % of the permuted accuracies; ``p_value``, the share of
    permutations, the observed order among them, with an accuracy as high (one-sided).
    """
    codes = list(dict.fromkeys(itertools.chain(*gold.index)))
    n = len(codes)
    if math.factorial(n) <= n_permutations:
        orders = np.array(list(itertools.permutations(range(n))))
    else:
        rng = np.random.default_rng(seed)
        orders = rng.permuted(np.tile(np.arange(n), (n_permutations, 1)), axis=1)
        orders[0] = np.arange(n)

    def better(scores: pd.Series) -> tuple[np.ndarray, np.ndarray]:
        """Of a source and two targets, (n, n, n): which is better, and whether it is known."""
        square = (
            scores.unstack("target").reindex(index=codes, columns=codes).to_numpy(float, copy=True)
        )
        np.fill_diagonal(square, np.nan)
        difference = square[:, :, None] - square[:, None, :]
        known = ~np.isnan(difference)
        equal = np.abs(difference) <= statistics.SLACK * np.nanmax(np.abs(square))
        signs = np.where(equal | ~known, 0, np.sign(difference)).astype(np.int8)
        return signs, known & ~np.eye(n, dtype=bool)

    truth, ranked = better(gold)
    moved = orders[:, :, None, None], orders[:, None, :, None], orders[:, None, None]
    rows = []
    for metric in predictors:
        predicted, known = better(predictors[metric])
        pairs = (ranked & known[moved]).sum(axis=(2, 3))  # of each order and source
        right = (truth * predicted[moved]).sum(axis=(2, 3)) / np.maximum(pairs, 1)
        n_sources = (pairs > 0).sum(axis=1)
        means = np.where(n_sources > 0, right.sum(axis=1) / np.maximum(n_sources, 1), np.nan)
        accuracies = (1 + means) / 2  # the observed one is the first
        tail = (1 - statistics.LEVEL) / 2
        low, high = np.nanquantile(accuracies, [tail, 1 - tail])
        p_value = float((accuracies >= accuracies[0] - statistics.SLACK).mean())
        rows.append((low, high, p_value))
    columns = ["random_low", "random_high", "p_value"]
    return pd.DataFrame(rows, predictors.columns, columns)


# --- directions -----------------------------------------------------------------------------------


def directions(transfers: Transfers, level: float = 0.0, tolerance: float = FITTED) -> pd.DataFrame:
    """Test accuracy, IGAP and transfer gap of each direction (Figures 2, 4, 5 and 6).

    One row per ``model, task, source, target, algorithm``, source = target included:
    ``accuracy`` and ``transfer_gap`` of the last checkpoint, mean over seeds and rates (the
    paper does not say which checkpoint), NaN without a test set; ``igap`` of one checkpoint at
    training error ``level`` (`Transfers.losses`), NaN without any, 0 of a language with itself.
    """
    rows = []
    for kind in dict.fromkeys((run.model, run.source, run.algorithm) for run in transfers.runs):
        names = dict(zip(("model", "source", "algorithm"), kind, strict=True))
        only, source = transfers.only(**names), names["source"]
        lost = only.losses(level, tolerance)
        right = dict.fromkeys(sorted(transfers.task.languages, key=source.__eq__), np.nan)
        for code in right if transfers.task.test else ():
            wrong = [transfers.wrong(run, "test", code, -1).mean() for run in only.runs]
            right[code] = np.mean([1 - share for share in wrong])
        rows += [
            {
                **names,
                "task": transfers.task.name,
                "target": x,
                "accuracy": y,
                "transfer_gap": right[source] - y,
                "igap": 0.0 if x == source else np.mean(lost.get((source, x), np.nan)),
            }
            for x, y in right.items()
        ]
    table = pd.DataFrame(rows)
    return table[[*DIRECTION, *table.columns.drop(DIRECTION)]]


def of_seed(several: Sequence[Transfers], seed: int) -> Transfers:
    """The runs of one seed, of the sources of all: a source has the checkpoints of one run."""
    runs = tuple(run for transfer in several for run in transfer.runs if run.seed == seed)
    return replace(several[0], runs=runs)


def gaps_of(crossing: pd.DataFrame, guess: float) -> pd.DataFrame:
    """`directions` between two languages, by source and target, of sources that were learnt.

    A source was not if its run is at most five points above ``guess`` at home.
    """
    at_home = crossing[crossing["source"] == crossing["target"]].set_index("source")["accuracy"]
    learnt = crossing["source"].isin(at_home.index[at_home > guess + 0.05])
    across = crossing[learnt & (crossing["source"] != crossing["target"])]
    return across.set_index(["source", "target"])[["igap", "transfer_gap"]]


def agreement(ours: pd.Series, printed: pd.Series) -> pd.DataFrame:
    """Correlation of gaps by direction with the printed ones, and where it comes from.

    Of all directions; of the means of sources, and of targets; and of what is left of a direction
    when both means are taken out (least squares).
    """
    both = pd.DataFrame({"ours": ours, "printed": printed.reindex(ours.index)}).dropna()
    effects = pd.get_dummies(both.index.to_frame()).to_numpy(dtype=float)
    rest = both - effects @ np.linalg.pinv(effects) @ both.to_numpy()
    sides = list(both.index.names)
    tables = {"all directions": (both, sides), "direction alone": (rest, sides)}
    tables |= {f"means of a {x}": (both.groupby(level=x).mean(), [x]) for x in sides}
    rs = {
        what: statistics.correlations(
            table.reset_index().assign(of=what), ["of"], "printed", "ours", languages=ends
        )
        for what, (table, ends) in tables.items()
        if len(table)
    }
    columns = ["r", "low", "high", "n"]
    rows = [x[columns].iloc[0] for x in rs.values()]
    return pd.DataFrame(rows, [*rs], columns).reindex([*tables]).astype(float)


def agreements(gaps: pd.DataFrame, again: pd.DataFrame, printed: pd.Series) -> pd.DataFrame:
    """`agreement` of the transfer gap with the ``printed`` one; of both gaps with ``again``."""
    sides = {
        "transfer gap, printed": ("transfer_gap", printed),
        "transfer gap, another run": ("transfer_gap", again["transfer_gap"]),
        "IGAP, another run": ("igap", again["igap"]),
    }
    tables = {name: agreement(gaps[side], other) for name, (side, other) in sides.items()}
    return pd.concat(tables, names=["of", "what"])


def source_contrasts(values: Values, groups: np.ndarray) -> pd.DataFrame:
    """Each pair of sources, the first less the second, mean over the targets that both have.

    ``values`` are losses or wrong answers, low is good, the examples parallel. A row per pair:
    ``value``, ``low``, ``high``.
    """
    rows = {}
    sources = dict.fromkeys(source for source, _ in values)
    targets = dict.fromkeys(target for _, target in values)
    for first, second in combinations(sources, 2):
        apart = [
            _less(values[first, target], values[second, target])
            for target in targets
            if (first, target) in values and (second, target) in values
        ]
        if apart:
            rows[f"{first} less {second}"] = crossed_interval(np.mean(apart, axis=0), groups)
    return pd.DataFrame.from_dict(rows, "index", columns=ENDS)


def _less(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """A difference by seed, of as many seeds as both have."""
    n = min(len(first), len(second))
    return np.asarray(first[:n], float) - second[:n]


def reversals(values: Values, groups: np.ndarray) -> pd.DataFrame:
    """What is lost from the first language to the second less what is lost the other way round."""
    rows = {
        f"{a} → {b}, less {b} → {a}": crossed_interval(_less(lost, values[b, a]), groups)
        for (a, b), lost in values.items()
        if (b, a) in values and a < b
    }
    return pd.DataFrame.from_dict(rows, "index", columns=ENDS)


# --- memory ---------------------------------------------------------------------------------------


def shared_most(task: TransferTask, tokenizer: str) -> dict[str, np.ndarray]:
    """Of translations by target the sentence of the first language with most shared subwords.

    Places ``(n,)``: by the cosine of counts, as in `transfers.shared_subwords`.
    """
    counter = feature_extraction.CountVectorizer(analyzer=loading.tokenizer(tokenizer).tokenize)
    texts = {code: part.first for code, part in task.train.items()}
    counter.fit(itertools.chain(*texts.values()))
    first, *others = ((code, counter.transform(x)) for code, x in texts.items())
    source = preprocessing.normalize(first[1]).T
    return {code: (x @ source).toarray().argmax(axis=1) for code, x in others}


def memory_table(
    measured: Mapping[str, Transfers], tokenizer: str, tolerance: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """IGAP with random labels by target, in points, beside what shared subwords lose alone.

    And, by model, how much more these lose, mean over targets: ``value``, ``low``, ``high``.
    """
    task, table, ahead = next(iter(measured.values())).task, {}, {}
    labels, n = next(iter(task.train.values())).labels, np.arange(task.n_train)
    wrong = {code: labels[x] != labels for code, x in shared_most(task, tokenizer).items()}
    strings = pd.DataFrame({"strings": {code: x.mean() for code, x in wrong.items()}})
    strings.loc[MEAN_TARGET] = strings.mean()
    for model, of_model in measured.items():
        table[model] = as_points(of_model.gap_table(0.0, tolerance), "value").droplevel("source")
        apart = [wrong[x] - y for (_, x), y in of_model.losses(0.0, tolerance).items()]
        ahead[model] = crossed_interval(np.mean(apart, axis=0), n) if apart else (np.nan,) * 3
    return pd.DataFrame(table).join(strings.map(in_points)), pd.DataFrame(ahead, ENDS).T


def partly_random(task: TransferTask, ratio: float, seed: int) -> TransferTask:
    """The task with a share of its training labels drawn anew, alike in all languages (5.4).

    A label that is drawn may be the one that was there; test labels stay.
    """
    part, rng = task.train[task.languages[0]], np.random.default_rng(seed)
    chosen = rng.permutation(len(part))[: round(ratio * len(part))]
    labels = part.labels.copy()
    labels[chosen] = rng.integers(len(part.classes), size=len(chosen))
    return replace(task, train={code: x.relabelled(labels) for code, x in task.train.items()})


def noisy_runs(
    models: Sequence[str],
    task: TransferTask,
    ratios: Sequence[float],
    recipe: Recipe,
    seeds: Sequence[int],
    tolerance: float,
    label_seed: int,
) -> dict[tuple[str, float], Transfers]:
    """(model, share of random labels) → what is learnt from these in the first language."""
    sparing, runs = Sparing(((0.0, tolerance),), logits=False), {}
    for model, ratio in product(models, ratios):
        noisy, sources = partly_random(task, ratio, label_seed), task.languages[:1]
        transfer = transfer_task([model], noisy, sources, [recipe], seeds, sparing=sparing)
        runs[title(model), ratio] = transfer
    return runs


def by_ratio(runs: Mapping[tuple[str, float], Transfers], tolerance: float) -> pd.DataFrame:
    """Accuracy and IGAP by share of random labels, mean over targets (Figure 3).

    Accuracy is on the translations of the training set, with the labels that were learnt. A row per
    ``model``, ``ratio`` and ``measure``: ``value``, ``low``, ``high`` over examples and seeds, and
    the accuracy of a ``guess``; there is no IGAP where no checkpoint learns the labels.
    """
    rows = []
    for (model, ratio), transfer in runs.items():
        values = {TRANSLATED: 1 - np.mean([*transfer.last_wrong("train").values()], axis=0)}
        if lost := transfer.losses(0.0, tolerance):
            values["IGAP"] = np.mean(list(lost.values()), axis=0)
        rows += [
            (
                model,
                ratio,
                name,
                *crossed_interval(x, np.arange(x.shape[1])),
                1 - transfer.task.guess,
            )
            for name, x in values.items()
        ]
    return pd.DataFrame(rows, columns=["model", "ratio", "measure", *ENDS, "guess"])


# --- figures --------------------------------------------------------------------------------------


@styled
def ranking_dots(
    table: pd.DataFrame, means: pd.DataFrame, *, printed: Mapping[str, float]
) -> Figure:
    """Accuracy of direction ranking, one row per metric, at it the sources (Tables 1 and 5).

    ``table``: `ranking.accuracies`. ``means``, by metric: ``accuracy`` (black), and ``random_low``
    and ``random_high``, with the languages permuted (grey). ``printed`` maps metrics to the mean
    that the paper prints (hollow).
    """
    metrics, points = list(means.index), table.rename_axis(columns="metric").stack()
    points = points.rename("accuracy").reset_index()
    on = lanes(
        points,
        "accuracy",
        "metric",
        items=metrics,
        shift=-0.18,
        scale=100,
        interval=False,
        width=7.2,
        lane=0.24,
        looks=look(BLUE, "o", markersize=3),
        labels="a source",
    )
    means = means.rename_axis("metric").reset_index()
    printed = pd.DataFrame(printed.items(), columns=["metric", "accuracy"])
    for rows, shown, label in (
        (means[["metric", "accuracy"]], look("black", "s"), "mean"),
        (printed, MEASURES["printed"], "mean, printed"),
    ):
        lanes(
            rows,
            "accuracy",
            "metric",
            looks=shown,
            labels=label,
            shift=0.18,
            scale=100,
            interval=False,
            on=on,
        )
    (axes,) = on.axes.values()
    axes.axvline(50, **GUESSING, label="chance")
    axes.barh(
        means["metric"].map(metrics.index) + 0.18,
        100 * (means["random_high"] - means["random_low"]),
        0.14,
        100 * means["random_low"],
        color="0.87",
        zorder=0,
        label="95 % of means, languages permuted",
    )
    axes.use_sticky_edges = False
    figure = on.done("accuracy of transfer-direction ranking (% of pairs of targets in order)")
    return asking("Which metric puts targets in the right order?", figure)


@styled
def direction_maps(directions: pd.DataFrame) -> Figure:
    """IGAP from source to target, bright where little is lost (Figures 4 to 6).

    ``directions`` has ``source``, ``target`` and ``igap``, one row per direction of one task.
    Targets and sources stand from the least that is lost to the most, on the mean. That of a
    language with itself is 0 by definition and hatched; one that is missing is a dash (no model in
    the window).
    """
    directions = directions[directions["source"] != directions["target"]]
    means = [directions.groupby(end)["igap"].mean().sort_values() for end in ("source", "target")]
    rows, across = (mean.dropna().index for mean in means)
    itself = pd.DataFrame({"source": rows, "target": rows, "hatched": True})
    shown = directions[directions["source"].isin(rows)].assign(hatched=False)
    table = pd.concat([shown, itself[itself["target"].isin(across)]])
    values = 100 * table["igap"]
    written = values.round().map(lambda value: number(value, 0))
    table = table.assign(value=values, written=written)
    on = heatmap(
        table,
        "target",
        "source",
        "value",
        rows=rows,
        columns=across,
        cell=(min(0.42, 7 / len(across)), 0.3),
        edge=(0.7, 1.3),
        bar="IGAP (points; bright: little is lost)",
        cmap=f"{HIGH}_r",
    )
    handles = [Patch(label="same language: 0 by definition", **HATCHED)]
    if shown["igap"].isna().any():
        dash = {"marker": "$–$", "color": "black"}
        handles.append(Line2D([], [], linestyle="none", label="no model in the window", **dash))
    figure = on.done("target, from the least lost to the most", "source", handles=handles)
    return asking("How much is lost from each source to each target?", figure)


@styled
def ratio_curves(table: pd.DataFrame) -> Figure:
    """Accuracy by share of random labels (Figure 3)."""
    table = rows_of(table, measure=TRANSLATED)
    names = {x: x.replace("/step-000000", ", untrained") for x in table["model"]}
    on = curves(table, "ratio", "value", hue="model", scale=100, labels=names, width=8)
    across(on, y=100 * table["guess"].iloc[0])
    y = f"{TRANSLATED} (%)\n(IGAP: about 100 less it)"
    figure = on.done("share of random labels", y, handles=[handle("guessing", GUESSING)])
    return asking("Does a model that learns noise cross languages?", figure)
