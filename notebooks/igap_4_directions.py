"""Directions of transfer, shared strings and random labels (Figures 2 to 6 of the IGAP paper)."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from scipy import sparse

from shared.shown import as_points, in_points
from xlx.experiment.transfers import Transfers, TransferTask
from xlx.measures.igap import MEAN_TARGET
from xlx.plots.panels import (
    HATCHED,
    NOT_MEASURED,
    apart,
    number,
    order,
    rows_of,
    scale_about,
)
from xlx.plots.primitives import curves, heatmap
from xlx.plots.style import ABOUT, BLUE, GUESSING, HIGH, TINY, look, styled
from xlx.subjects import loading, states
from xlx.text.parallel import ParallelCorpus

QUANTITIES = {"accuracy": "accuracy (%)", "IGAP": "IGAP (points)"}
MAPS = {
    "accuracy": "test accuracy (%)",
    "igap": "IGAP (points)",
    "transfer_gap": "transfer gap (points)",
}

# --- shared strings -------------------------------------------------------------------------------


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
    encoder, first, bags = loading.load(name), next(iter(task.train.values())), []
    for side in ("first",) if first.second is None else ("first", "second"):
        texts = {code: getattr(part, side) for code, part in task.train.items()}
        corpus = ParallelCorpus(side, texts, first.ids, ("",) * len(first), "", "")
        bags.append(states.bag_of_subwords(encoder, corpus, max_length=max_length))
    joined = {code: sparse.hstack([bag[code] for bag in bags]).tocsr() for code in task.train}
    rows = []
    for source, target in product(joined, joined):
        # the size of a translation moves no maximum; that of a training example does
        sizes = np.sqrt(joined[source].multiply(joined[source]).sum(axis=1))
        nearest = ((joined[target] @ joined[source].T).toarray() / sizes).argmax(axis=1)
        found = (nearest == np.arange(len(first))).mean()
        rows.append((source, target, found, (first.labels[nearest] != first.labels).mean()))
    table = pd.DataFrame(rows, columns=["source", "target", "found", "interlingual"])
    at_home = table["source"] == table["target"]
    wrong = table[at_home].set_index("source")["interlingual"]
    table["interlingual"] -= table["source"].map(wrong)
    return table[~at_home].reset_index(drop=True)


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
    table = transfers.curves([0.0], tolerance, **options)
    models = table["model"].unique()
    table = table.assign(IGAP=as_points(table, "igap"))
    table = table.pivot(index="target", columns="model", values="IGAP")[models]
    table["shared subwords"] = strings["interlingual"].map(in_points)
    table["found"] = strings["found"].map(in_points)
    order = (*transfers.task.languages, MEAN_TARGET)
    return table.loc[[code for code in order if code in table.index]]


# --- directions (section 5.3) ---------------------------------------------------------------------


def reversal_table(gaps: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Whether a direction differs from its reverse by more than from itself with another seed.

    ``gaps`` of each task have a row a direction and a column a seed. Mean differences in points,
    the first seed's and each other's; correlations between the first seed and the others, of gaps
    and of the differences between a direction and its reverse.
    """
    rows = {}
    for name, table in gaps.items():
        reverse = table.copy()
        reverse.index = reverse.index.swaplevel().set_names(["source", "target"])
        differences = (table - reverse)[[source < target for source, target in table.index]]
        first = table.columns[0]
        for seed in table:
            rows[name, seed] = {
                "directions": len(table),
                "to the reverse": in_points(differences[seed].abs().mean()),
                "to the first seed": in_points((table[first] - table[seed]).abs().mean()),
                "r of the gaps": table.corr(min_periods=3).loc[first, seed].round(2),
                "r of the differences": differences.corr(min_periods=3).loc[first, seed].round(2),
            }
    index = pd.MultiIndex.from_tuples(rows, names=["task", "seed"])
    return pd.DataFrame(rows.values(), index)


@styled
def direction_maps(directions: pd.DataFrame) -> Figure:
    """Test accuracy, IGAP and transfer gap from source to target (Figures 2 and 4 to 6).

    ``directions`` has ``source``, ``target`` and one or more of ``accuracy``, ``igap`` and
    ``transfer_gap``, a panel each, and a row a direction of one task. Gaps of a language with
    itself are 0 by definition and hatched; a number that is missing is a dash (no model in the
    window), and a direction that the table does not have stays grey. Scales are at least 20 points
    wide, and that of the transfer gap is white at 0.
    """
    maps = {name: label for name, label in MAPS.items() if name in directions}
    codes = list(dict.fromkeys([*directions["source"], *directions["target"]]))
    rows, across = ([c for c in codes if c in set(directions[x])] for x in ("source", "target"))
    table = directions.melt(["source", "target"], list(maps), "map")
    itself = (table["source"] == table["target"]) & (table["map"] != "accuracy")
    table["value"] = 100 * table["value"].astype(float).mask(itself)
    decimals = 1 if len(across) * len(maps) <= 24 else 0
    table = table.assign(itself=itself, written=table["value"].map(lambda v: number(v, decimals)))
    scales = {}
    for name, values in table.groupby("map")["value"]:
        middle, half = (values.min() + values.max()) / 2, (values.max() - values.min()) / 2
        scales[name] = Normalize(middle - max(10, half), middle + max(10, half))
        if name == "transfer_gap":
            scales[name] = scale_about(values, 0, 10)
    room = 8 / len(maps) / len(across)
    on = heatmap(
        table, row="source", column="target", value="value", panel="map", rows=rows, across=across,
        written="written", hatched="itself", cell=(min(0.42, room), min(0.34, room)),
        edge=(0.7, 1.5), norm=scales, bar_by=lambda key: key, bar=maps,
        cmap={name: ABOUT if name == "transfer_gap" else HIGH for name in maps},
    )  # fmt: skip
    on.titles({name: label.partition(" (")[0] for name, label in maps.items()})
    handles = [Patch(label="same language: 0 by definition", **HATCHED)]
    if "igap" in maps and directions["igap"].isna().any():
        handles.append(Line2D([], [], linestyle="none", marker="$–$", color="black",
                              label="no model in the window"))  # fmt: skip
    if len(directions) < len(rows) * len(across):
        handles.append(Patch(**NOT_MEASURED))
    return on.done("target", "source", handles=handles)


# --- labels at random (section 5.4) ---------------------------------------------------------------


def memorised_labels(
    task: TransferTask,
    measured: Mapping[float, Transfers],
    model: str,
    *,
    tolerance: float,
    max_length: int | None,
    n_resamples: int = 1000,
    seed: int = 0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What crosses of labels of which a share is random (section 5.4, Figure 3).

    ``measured`` has the transfers of the ``model`` from the first language by the share of the
    labels that is random; "right" is the label that it was trained with.

    What is drawn (`memorisation`): ``ratio``; ``quantity``: "accuracy" on the translations at the
    last checkpoint, or "IGAP" at E' = 0; ``target``, None for the mean over them; ``value``;
    ``low`` and ``high``, the 95 % interval over examples; ``chance``. And what is told, by
    ``ratio``, shares: how many labels ``changed`` (a number); at the last checkpoints the
    ``training error``, the ``accuracy`` on translations, the same ``of changed`` labels and ``of
    the others``, and on the ``test`` sets of the targets against true labels; the ``IGAP``; the gap
    of ``shared subwords`` without a model.
    """
    source, drawn, told = task.languages[0], [], {}
    for ratio, transfers in measured.items():
        tested = transfers.directions(0.0, tolerance, n_resamples=1, n_splits=1)
        curve = transfers.curves([0.0], tolerance, n_resamples=n_resamples, seed=seed)
        right = {
            code: np.mean([~transfers.wrong(run, "train", code, -1) for run in transfers.runs], 0)
            for code in task.languages
        }
        at_home = right.pop(source)
        changed = transfers.task.train[source].labels != task.train[source].labels
        crossed = np.mean(list(right.values()), axis=0)
        strings = string_gaps(model, transfers.task, max_length)["interlingual"]
        told[ratio] = {
            "changed": changed.sum(),
            "training error": 1 - at_home.mean(),
            "accuracy": crossed.mean(),
            "of changed": crossed[changed].mean() if changed.any() else np.nan,
            "of the others": crossed[~changed].mean(),
            "test": tested.loc[tested["target"] != source, "accuracy"].mean(),
            "IGAP": curve.loc[curve["target"] == MEAN_TARGET, "igap"].item(),
            "shared subwords": strings[MEAN_TARGET],
        }
        rng = np.random.default_rng(seed)
        places = rng.integers(0, len(crossed), (n_resamples, len(crossed)))
        means = {MEAN_TARGET: crossed.mean()} | {code: x.mean() for code, x in right.items()}
        accuracy = pd.DataFrame(means.items(), columns=["target", "value"])
        ends = np.quantile(crossed[places].mean(axis=1), [0.025, 0.975])
        accuracy.loc[0, ["low", "high"]] = ends  # of the mean alone
        gap = curve.rename(columns={"igap": "value"})
        drawn.append(gap.assign(ratio=ratio, quantity="IGAP", chance=task.guess))
        drawn.append(accuracy.assign(ratio=ratio, quantity="accuracy", chance=1 - task.guess))
    drawn = pd.concat(drawn, ignore_index=True).replace({"target": {MEAN_TARGET: None}})
    columns = ["ratio", "quantity", "target", "value", "low", "high", "chance"]
    return drawn[columns], pd.DataFrame(told).T.rename_axis("ratio").astype({"changed": int})


@styled
def memorisation(table: pd.DataFrame) -> Figure:
    """Accuracy and IGAP by the share of labels that are random, a thin line a target (Figure 3).

    ``table`` is of `memorised_labels`. Where no model is in the window the line of the mean breaks.
    """
    table = pd.concat([rows_of(table, quantity=name) for name in QUANTITIES])
    mean, targets = table[table["target"].isna()], table[table["target"].notna()]
    shown = {"x": "ratio", "panel": "quantity", "scale": 100}
    on = curves(mean, value="value", looks={None: look(BLUE, "o")}, width=3.6, height=2.5,
                labels={None: "mean, with interval"}, sharey=False, **shown)  # fmt: skip
    curves(mean, value="chance", on=on, low="", linewidth=1, **shown,
           looks={None: GUESSING | {"marker": ""}},
           labels={None: "guessing in the target"})  # fmt: skip
    thin = {name: look("0.6", "") for name in order(targets, "target")}
    curves(targets, value="value", series="target", looks=thin, on=on, low="",
           labels=dict.fromkeys(thin, "a target"), linewidth=0.7, zorder=1.5, **shown)  # fmt: skip
    for axes, rows in on.each(targets):
        low, high = axes.get_ylim()
        last = rows.dropna(subset="value").sort_values("ratio").groupby("target").tail(1)
        placed = apart(100 * last["value"].to_numpy(float), 0.06 * (high - low))
        for row, height in zip(last.itertuples(), placed, strict=True):
            axes.annotate(
                row.target, (row.ratio, 100 * row.value), xytext=(1.07, height), fontsize=TINY,
                va="center", arrowprops={"arrowstyle": "-", "color": "0.7", "linewidth": 0.5},
            )  # fmt: skip
        axes.set(xlim=(-0.04, 1.18), xticks=np.linspace(0, 1, 6), ylim=(low, high))
    on.titles(QUANTITIES)
    return on.done("share of labels made random")
