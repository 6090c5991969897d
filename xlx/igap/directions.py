"""What the notebooks of IGAP compute about directions of transfer and about memorised labels.

Which order the targets of a source have, and what foretells it (sections 4.2 and 5.3); what crosses
of labels that are random, and of strings alone (section 5.4).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from xlx.igap import ranking
from xlx.igap.strings import shared_subwords
from xlx.igap.tasks import TransferTask
from xlx.igap.transferability import FITTED, MEAN_TARGET, in_points, with_interval
from xlx.igap.transfers import Transfers, transfer_tasks
from xlx.models.finetuning import Recipe, Sparing
from xlx.models.loading import title

#: What a direction is measured by, and the titles of measures whose best source is looked for.
DIRECTION_MEASURES = ["accuracy", "igap", "transfer_gap"]
BEST_BY = {"IGAP": "igap", "transfer gap": "transfer_gap", "test accuracy": "error"}
#: The two orders to be predicted, by the part of the task that they are of.
GOLD_PARTS = {"train": "translated training pairs", "test": "new pairs"}


# --- orders of targets (section 4.2) --------------------------------------------------------------


def gold_orders(
    transfers: Transfers, models: Sequence[str], **options: int
) -> dict[tuple[str, str], ranking.Gold]:
    """(model, name of `GOLD_PARTS`) → accuracies of all directions, last checkpoints."""
    return {
        (model, name): ranking.gold_scores(transfers.only(model=model).last_wrong(part), **options)
        for model in map(title, models)
        for part, name in GOLD_PARTS.items()
    }


def gold_table(golds: Mapping[tuple[str, str], ranking.Gold]) -> pd.DataFrame:
    """Mean and range of the accuracies, and how well their order is known."""
    rows = {}
    for key, gold in golds.items():
        known = ranking.order_reliability(gold).set_index("source").loc[MEAN_TARGET]
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


def targets_of_source(gold: ranking.Gold, predicted: pd.DataFrame, source: str) -> pd.DataFrame:
    """One source: targets by accuracy, and what some metrics say of them."""
    rows = predicted[(predicted["source"] == source) & (predicted["target"] != source)]
    table = rows.pivot(index="target", columns="metric", values="score")
    table = table[["IGAP", "cosine", "L2", "MD", "MEXA"]]
    accuracy = gold.table[gold.table["source"] == source].set_index("target")["score"]
    table.insert(0, "accuracy", accuracy)
    return table.sort_values("accuracy", ascending=False)


def rank_metrics(
    golds: Mapping[tuple[str, str], ranking.Gold], predicted: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """`rank_directions` and `permuted_languages` of each order, with ``model`` and ``gold``.

    Beside the metrics the order that the other sources give; sources without a model in the window
    are left out. ValueError where none is left.
    """
    tables = []
    for (model, name), gold in golds.items():
        metrics = pd.concat([predicted[model], ranking.other_sources(gold.table)])
        known = metrics[metrics["metric"] == "IGAP"].dropna(subset="score")["source"]
        kept = gold.table["source"].isin(known)
        if not kept.any():
            raise ValueError(
                f"{model} has in no source a training error within the tolerance of 0, so that it "
                "has no IGAP: raise the tolerance, the epochs or the learning rate"
            )
        table, resamples = gold.table[kept], gold.resamples[:, kept.to_numpy()]
        ranked = ranking.rank_directions(table, metrics, resamples=resamples)
        permuted = ranking.permuted_languages(table, metrics).drop(columns="accuracy")
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
                "to the reverse": in_points(ranking.asymmetry(scores)),
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
