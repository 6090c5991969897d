"""Directions of transfer: maps, sources and reverses compared (Figures 2, 4 to 6 of the paper)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from shared.claims import ENDS, UNTOLD, crossed
from shared.shown import as_points, in_points, joint_order, scale_about
from xlx.experiment.transfers import (
    DIRECTION,
    Transfers,
    TransferTask,
    shared_subwords,
    transfer_task,
)
from xlx.measures import statistics
from xlx.measures.igap import FITTED, MEAN_TARGET, crossed_interval
from xlx.plots.panels import HATCHED, number
from xlx.plots.primitives import Cells, Curves, Points, curves, heatmap, scatter
from xlx.plots.style import ABOUT, GUESSING, HIGH, ZERO, styled
from xlx.subjects.identity import title
from xlx.subjects.jobs import Recipe, Sparing

MAPS = {
    "accuracy": "test accuracy (%)",
    "igap": "IGAP (points)",
    "transfer_gap": "transfer gap (points)",
}
#: What Figure 3 calls accuracy: that on labels that were learnt, in translation.
TRANSLATED = "accuracy on translations"
#: (source, target) → values of each seed and example, ``(S, n)``.
Values = Mapping[tuple[str, str], np.ndarray]


def directions(transfers: Transfers, level: float = 0.0, tolerance: float = FITTED) -> pd.DataFrame:
    """Test accuracy, IGAP and transfer gap of each direction (Figures 2, 4, 5 and 6).

    One row per ``model, task, source, target, algorithm``, source = target included:
    ``accuracy`` and ``transfer_gap`` of the last checkpoint, mean over seeds and rates (the
    paper does not say which checkpoint), NaN without a test set; ``igap`` at training error
    ``level`` with its interval and the other columns of `Transfers.curves`, 0 of a language with
    itself.
    """
    curves, rows = transfers.curves([level], tolerance), []
    for kind in dict.fromkeys((run.model, run.source, run.algorithm) for run in transfers.runs):
        names = dict(zip(("model", "source", "algorithm"), kind, strict=True))
        runs, source = transfers.only(**names).runs, names["source"]
        right = dict.fromkeys(sorted(transfers.task.languages, key=source.__eq__), np.nan)
        for code in right if transfers.task.test else ():
            wrong = [transfers.wrong(run, "test", code, -1).mean() for run in runs]
            right[code] = np.mean([1 - share for share in wrong])
        rows += [
            {
                **names,
                "task": transfers.task.name,
                "target": x,
                "accuracy": y,
                "transfer_gap": right[source] - y,
            }
            for x, y in right.items()
        ]
    table = pd.DataFrame(rows).merge(curves, on=DIRECTION, how="left")
    same = table["source"] == table["target"]
    table.loc[same, ["igap", "low", "high", "crossfitted"]] = 0.0
    return table[[*DIRECTION, "accuracy", "transfer_gap", *curves.columns.drop(DIRECTION)]]


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


def extreme_sources(gaps: pd.Series) -> dict[str, object]:
    """Of gaps by direction, as in the printed Figure 6: how often a source is best and worst."""
    known = gaps.dropna().groupby(level="target", sort=False)
    best, worst = (
        ", ".join(f"{code} {n}" for code, n in pairs.str[0].value_counts().items()) or "none"
        for pairs in (known.idxmin(), known.idxmax())
    )
    return {
        "directions": gaps.count(),
        "below 0": (gaps < 0).sum(),
        "best source (of how many targets)": best,
        "worst source": worst,
    }


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
    """Each pair of sources, the first less the second, in every target that both have.

    ``values`` are losses or wrong answers, low is good, the examples parallel. A row per ``first``,
    ``second`` and ``target``, then the mean over targets: ``value``, ``low``, ``high``, ``told``
    (`claims.crossed`).
    """
    rows = []
    sources = dict.fromkeys(source for source, _ in values)
    targets = dict.fromkeys(target for _, target in values)
    for first, second in combinations(sources, 2):
        apart = {
            target: _less(values[first, target], values[second, target])
            for target in targets
            if (first, target) in values and (second, target) in values
        }
        if apart:
            apart[MEAN_TARGET] = np.mean(list(apart.values()), axis=0)
        for target, lost in apart.items():
            rows.append((first, second, target, *crossed(lost, groups)))
    columns = ["first", "second", "target", "value", "low", "high", "told"]
    return pd.DataFrame(rows, columns=columns)


def _less(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """A difference by seed, of as many seeds as both have."""
    n = min(len(first), len(second))
    return np.asarray(first[:n], float) - second[:n]


def source_wins(contrasts: pd.DataFrame) -> pd.Series:
    """Source → share of its comparisons that it wins; one that cannot be told counts ½."""
    single = contrasts[contrasts["target"] != MEAN_TARGET]
    worse = single["told"].map({"above": 1.0, "below": 0.0, UNTOLD: 0.5}).to_numpy()
    both = pd.concat([pd.Series(1 - worse, single["first"]), pd.Series(worse, single["second"])])
    return both.groupby(level=0, sort=False).mean()


def reversals(values: Values, groups: np.ndarray) -> pd.DataFrame:
    """What is lost from the first language to the second less what is lost the other way round."""
    rows = {
        f"{a} → {b}, less {b} → {a}": crossed(_less(lost, values[b, a]), groups)
        for (a, b), lost in values.items()
        if (b, a) in values and a < b
    }
    return pd.DataFrame.from_dict(rows, "index", columns=["value", "low", "high", "told"])


def beside_printed(ours: pd.DataFrame, gaps: pd.DataFrame, igap: pd.Series) -> pd.DataFrame:
    """Directions as measured and as printed, in [0, 1], of Table 6 (``igap``) and Figure 6.

    ``ours`` has ``source``, ``target``, ``igap`` and ``transfer_gap``; one row per direction and
    ``measure``: ``ours``, ``printed``.
    """
    printed = gaps.set_index(["source", "target"])["transfer_gap"]
    from_english = pd.concat({"en": igap / 100}, names=["source", "target"])
    across = ours[ours["source"] != ours["target"]].set_index(["source", "target"])
    tables = {
        f"{name} ({where})": across[[column]]
        .set_axis(["ours"], axis=1)
        .assign(printed=known.reindex(across.index))
        for name, where, column, known in (
            ("IGAP", "Table 6", "igap", from_english),
            ("transfer gap", "Figure 6", "transfer_gap", printed),
        )
    }
    return pd.concat(tables, names=["measure"]).dropna().reset_index()


def memory_table(
    measured: Mapping[str, Transfers], tokenizer: str, tolerance: float
) -> pd.DataFrame:
    """IGAP with random labels by target, in points, beside what shared subwords lose alone."""
    table = {}
    for model, of_model in measured.items():
        curve = of_model.curves([0.0], tolerance).set_index("target")
        table[model] = as_points(curve, "igap")
    task = next(iter(measured.values())).task
    strings = shared_subwords(tokenizer, task, task.languages[:1]).set_index("target")
    strings.loc[MEAN_TARGET] = strings[["found", "interlingual"]].mean()
    strings = strings.rename(columns={"interlingual": "strings", "found": "found by strings"})
    return pd.DataFrame(table).join(strings[["strings", "found by strings"]].map(in_points))


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
    what a ``guess`` has; there is no IGAP where no checkpoint learns the labels.
    """
    rows = []
    for (model, ratio), transfer in runs.items():
        values = {TRANSLATED: 1 - np.mean([*transfer.last_wrong("train").values()], axis=0)}
        guess = {TRANSLATED: 1 - transfer.task.guess, "IGAP": transfer.task.guess}
        if lost := transfer.losses(0.0, tolerance):
            values["IGAP"] = np.mean(list(lost.values()), axis=0)
        rows += [
            (model, ratio, name, *crossed_interval(x, np.arange(x.shape[1])), guess[name])
            for name, x in values.items()
        ]
    return pd.DataFrame(rows, columns=["model", "ratio", "measure", *ENDS, "guess"])


#: Wrong translations: what stands in the place of a sentence's own.
POISONS = OTHER, ALIKE, COPY = (
    "another sentence's",
    "another's with the label",
    "a copy of the source",
)


def poisoned(transfers: Transfers, poison: str, share: float, seed: int) -> Transfers:
    """The runs asked about translations of which a share is wrong (`POISONS`).

    Nothing is asked anew: the answer is that to the other sentence, in the target or the source.
    """
    labels, rng = (
        transfers.task.train[transfers.task.languages[0]].labels,
        np.random.default_rng(seed),
    )
    chosen = rng.permutation(len(labels))[: round(share * len(labels))]
    rows, places, runs = np.arange(len(labels)), np.arange(len(labels)), []
    for part in [chosen[labels[chosen] == x] for x in set(labels)] if poison == ALIKE else [chosen]:
        places[part] = np.roll(part, 1)
    for run in transfers.runs:
        learnt, predictions = f"train {run.source}", dict(run.predictions)
        for name in (f"train {code}" for code in transfers.task.train if code != run.source):
            answers = predictions[name]
            wrong = predictions[learnt] if poison == COPY else answers[:, places]
            predictions[name] = np.where(np.isin(rows, chosen) & (answers >= 0), wrong, answers)
        runs.append(replace(run, predictions=predictions))
    return replace(transfers, runs=tuple(runs))


# --- figures --------------------------------------------------------------------------------------


@styled
def direction_maps(directions: pd.DataFrame) -> Figure:
    """Test accuracy, IGAP and transfer gap from source to target (Figures 2 and 4 to 6).

    ``directions`` has ``source``, ``target`` and one or more of ``accuracy``, ``igap`` and
    ``transfer_gap``, a panel each, and one row per direction of one task. Gaps of a language with
    itself are 0 by definition and hatched; a number that is missing is a dash (no model in the
    window), and a direction that the table does not have stays grey. Scales are at least 20 points
    wide, and that of the transfer gap is white at 0.
    """
    maps = {name: label for name, label in MAPS.items() if name in directions}
    rows, across = joint_order(directions, "source", "target")
    table = directions.melt(["source", "target"], list(maps), "map")
    itself = (table["source"] == table["target"]) & (table["map"] != "accuracy")
    table["value"] = 100 * table["value"].astype(float).mask(itself)
    decimals = 1 if len(across) * len(maps) <= 24 else 0
    table = table.assign(hatched=itself, written=table["value"].map(lambda v: number(v, decimals)))
    scales = {}
    for name, values in table.groupby("map")["value"]:
        middle, half = (values.min() + values.max()) / 2, (values.max() - values.min()) / 2
        scales[name] = Normalize(middle - max(10, half), middle + max(10, half))
        if name == "transfer_gap":
            scales[name] = scale_about(values, 0, 10)
    beside = len(maps) if len(across) <= 8 else 1
    room = 7 / beside / len(across)
    style = Cells(
        rows=rows,
        columns=across,
        cell=(min(0.42, room), min(0.34, room)),
        edge=(0.7, 1.5),
        wrap=beside,
        norm=scales,
        bar_by="map",
        bar=maps,
        cmap={name: ABOUT if name == "transfer_gap" else HIGH for name in maps},
    )
    on = heatmap(table, "target", "source", "value", col="map", style=style)
    on.titles({name: label.partition(" (")[0] for name, label in maps.items()})
    handles = [Patch(label="same language: 0 by definition", **HATCHED)]
    if "igap" in maps and directions["igap"].isna().any():
        handles.append(
            Line2D(
                [],
                [],
                linestyle="none",
                marker="$–$",
                color="black",
                label="no model in the window",
            )
        )
    return on.done("target", "source", handles=handles)


@styled
def printed_scatter(table: pd.DataFrame) -> Figure:
    """One point per direction, ours by the printed; one panel per measure, one colour per source.

    ``table`` is of `beside_printed`.
    """
    alone = table.groupby("measure")["source"].transform("nunique") == 1
    table = table.assign(written=table["target"].where(alone, ""))
    style = Points(
        scale=100,
        labels={x: f"from {x}" for x in table["source"].unique()},
        size=24,
        width=3.8,
        height=2.9,
        sharex=False,
        sharey=False,
    )
    on = scatter(table, "printed", "ours", hue="source", col="measure", style=style)
    for axes in on.axes.values():
        axes.axline((0, 0), slope=1, **ZERO | {"zorder": 0})
    return on.done("printed, XLM-R (points); line: ours as printed", "ours (points)")


@styled
def ratio_curves(table: pd.DataFrame) -> Figure:
    """Accuracy and IGAP by share of random labels, a panel each (Figure 3)."""
    names = {x: x.replace("/step-000000", ", untrained") for x in table["model"]}
    style = Curves(scale=100, labels=names, width=3)
    on = curves(table, "ratio", "value", hue="model", col="measure", style=style)
    for axes, rows in on.each(table):
        axes.axhline(100 * rows["guess"].iloc[0], **GUESSING)
    return on.done("share of random labels", "per cent; dotted: guessing")
