"""What the notebooks of IGAP compute about directions of transfer and about memorised labels.

Which order the targets of a source have, and what foretells it (sections 4.2 and 5.3); what crosses
of labels that are random, and of strings alone (section 5.4).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from xlx.igap import ranking
from xlx.igap.experiments import shown
from xlx.igap.strings import shared_subwords
from xlx.igap.tasks import TransferTask
from xlx.igap.transferability import FITTED, MEAN_TARGET, as_points
from xlx.igap.transfers import Transfers, transfer_tasks
from xlx.models.finetuning import Recipe, Sparing

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
        for model in models
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
        model: pd.concat(
            [transfers.only(model=model).igap_scores(tolerance=tolerance), table],
            ignore_index=True,
        )
        for model, (table, _) in frozen.items()
    }


def source_table(gold: ranking.Gold, predicted: pd.DataFrame, source: str) -> pd.DataFrame:
    """One source: targets by accuracy, and what some metrics say of them."""
    rows = predicted[(predicted["source"] == source) & (predicted["target"] != source)]
    table = rows.pivot(index="target", columns="metric", values="score")
    table = table[["IGAP", "cosine", "L2", "MD", "MEXA"]]
    accuracy = gold.table[gold.table["source"] == source].set_index("target")["score"]
    table.insert(0, "accuracy", accuracy)
    return table.sort_values("accuracy", ascending=False)


def rank_metrics(
    golds: Mapping[tuple[str, str], ranking.Gold], predicted: Mapping[str, pd.DataFrame]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`rank_directions` and `permuted_languages` of each order: two tables with ``model, gold``.

    Beside the metrics the order that the other sources give; sources without a model in the window
    are left out.
    """
    ranked, permuted = [], []
    for (model, name), gold in golds.items():
        metrics = pd.concat([predicted[model], ranking.other_sources(gold.table)])
        known = metrics[metrics["metric"] == "IGAP"].dropna(subset="score")["source"]
        kept = gold.table["source"].isin(known)
        table, resamples = gold.table[kept], gold.resamples[:, kept.to_numpy()]
        about = {"model": model, "gold": name}
        ranks = ranking.rank_directions(table, metrics, resamples=resamples)
        ranked.append(ranks.assign(**about))
        permuted.append(ranking.permuted_languages(table, metrics).assign(**about))
    return pd.concat(ranked, ignore_index=True), pd.concat(permuted, ignore_index=True)


def ranking_table(ranked: pd.DataFrame, permuted: pd.DataFrame) -> pd.DataFrame:
    """Ranking accuracy of each metric in per cent, mean over sources, and its p (Table 1)."""
    means = ranked[ranked["source"] == MEAN_TARGET]
    text = [
        f"{100 * value:.0f} ({100 * low:.0f} to {100 * high:.0f})"
        for value, low, high in means[["accuracy", "low", "high"]].to_numpy()
    ]
    keys = {"index": ["model", "metric"], "columns": "gold"}
    p_values = permuted.pivot(**keys, values="p_value").round(3).add_prefix("p, ")
    table = means.assign(text=text).pivot(**keys, values="text").join(p_values)
    order = [dict.fromkeys(means[name]) for name in keys["index"]]
    return table.reindex(pd.MultiIndex.from_product(order))


def ranking_points(
    ranked: pd.DataFrame, permuted: pd.DataFrame, model: str, gold: str
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Accuracies by source, and their means beside where permuted languages lie; of one order."""
    ranked, permuted = (
        table[(table["model"] == model) & (table["gold"] == gold)] for table in (ranked, permuted)
    )
    of_mean = ranked["source"] == MEAN_TARGET
    means = ranked[of_mean].rename(columns={"accuracy": "mean"})
    means = means.merge(permuted[["metric", "random_low", "random_high"]], on="metric")
    return ranked[~of_mean], means


def wins(by_source: pd.DataFrame) -> pd.DataFrame:
    """In how many sources IGAP is better than each other metric, as good, worse."""
    wide = by_source.pivot(index="source", columns="metric", values="accuracy")
    others = [metric for metric in by_source["metric"].unique() if metric != "IGAP"]
    against = {metric: wide["IGAP"] - wide[metric] for metric in others}
    return pd.DataFrame(
        {
            metric: {
                "IGAP better": int((apart > 0).sum()),
                "as good": int((apart == 0).sum()),
                "worse": int((apart < 0).sum()),
            }
            for metric, apart in against.items()
        }
    ).T


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
    runs = {model: transfers.only(model=model, algorithm=algorithm).runs[0] for model in models}
    return pd.DataFrame(
        {
            model: {code: classes[run.predictions[f"train {code}"][-1, position]] for code in codes}
            for model, run in runs.items()
        }
    ).T


def square(directions: pd.DataFrame, column: str) -> pd.DataFrame:
    """One measure of all directions, source by target, in points."""
    table = directions[directions["target"] != MEAN_TARGET]
    return table.pivot(index="source", columns="target", values=column).map(as_points)


def squares(directions: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """`square` of each task and measure, one below the other."""
    tables = {
        (name, column): square(table, column)
        for name, table in directions.items()
        for column in DIRECTION_MEASURES
    }
    return pd.concat(tables, names=["task", "measure"]).fillna("")


def directions_table(directions: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Mean and range of each measure over the directions, and how many are below 0."""
    rows = {}
    for name, table in directions.items():
        values = table.loc[table["source"] != table["target"], DIRECTION_MEASURES]
        rows[name] = pd.DataFrame(
            {
                "mean": values.mean().map(as_points),
                "lowest": values.min().map(as_points),
                "highest": values.max().map(as_points),
                "below 0": (values < 0).sum(),
                "directions": len(values),
            }
        )
    return pd.concat(rows)


def accuracy_width(task: TransferTask) -> str:
    """95 % half width of the accuracy of one run, in points, at most: by the test examples."""
    return as_points(1.96 * np.sqrt(0.25 / len(task.test[task.languages[0]])))


def best_sources(directions: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The best source of each target by each measure of `BEST_BY`."""
    best = {}
    for name, table in directions.items():
        across = table[table["source"] != table["target"]]
        across = across.assign(error=1 - across["accuracy"])
        best[name] = pd.DataFrame(
            {
                title: across.dropna(subset=column).sort_values(column).groupby("target")["source"]
                .first()
                for title, column in BEST_BY.items()
            }
        ).reindex(dict.fromkeys([*table["source"], *table["target"]]))  # fmt: skip
    return pd.concat(best, names=["task", "target"])


def as_by_accuracy(best: pd.DataFrame) -> pd.DataFrame:
    """For how many targets IGAP and the transfer gap name the source that test accuracy names."""
    rows = {}
    for name, table in best.groupby(level="task", sort=False):
        same = {
            title: int((table[title] == table["test accuracy"]).sum()) for title in [*BEST_BY][:2]
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
                "to the reverse": as_points(ranking.asymmetry(scores)),
                "to the first seed": as_points((table[first] - table[seed]).abs().mean()),
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
    **options: int,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What crosses of labels of which a share is random (section 5.4, Figure 3).

    Fine-tuned in the source with its labels corrupted at each of the ``ratios``, alike in all
    languages, the model is asked the translations; "right" is the label that it was trained with.

    Returns
    -------
    drawn : DataFrame
        ``ratio``; ``quantity``: "accuracy" on the translations at the last checkpoint, or "IGAP" at
        E' = 0; ``target``, None for the mean over them; ``value``; ``low`` and ``high``, the 95 %
        interval over examples; ``chance``. What `plots.igap.memorisation` draws.
    told : DataFrame
        By ``ratio``, shares: how many labels ``changed`` (a number); at the last checkpoints the
        ``training error``, the ``accuracy`` on translations, the same ``of changed`` labels and
        ``of the others``, and on the ``test`` sets of the targets against true labels; the
        ``IGAP``; the gap of ``shared subwords`` without a model.
    """
    corrupted = [task.corrupted(ratio, corruption_seed) for ratio in ratios]
    measured = transfer_tasks([name], corrupted, [source], recipes, seeds, sparing=sparing)
    drawn, told = [], []
    for ratio, transfers in zip(ratios, measured, strict=True):
        curve = transfers.curves([0.0], tolerance, **options)
        strings = shared_subwords(name, transfers.task, max_length=recipes[0].max_length)
        lost = strings.loc[strings["source"] == source, "interlingual"].mean()
        changed = transfers.task.train[source].labels != task.train[source].labels
        right = {
            code: np.mean([~transfers.wrong(run, "train", code, -1) for run in transfers.runs], 0)
            for code in task.languages
        }
        test = transfers.directions(0.0, tolerance, **options)
        test = test.loc[test["target"] != source, "accuracy"].mean()
        igap = curve.loc[curve["target"] == MEAN_TARGET, "igap"].item()
        row = _told(right, source, changed) | {"test": test, "IGAP": igap, "shared subwords": lost}
        told.append({"ratio": ratio} | row)
        drawn.append(_drawn(curve, right, source, task.guess, **options).assign(ratio=ratio))
    drawn = pd.concat(drawn, ignore_index=True)
    columns = ["ratio", "quantity", "target", "value", "low", "high", "chance"]
    return drawn[columns], pd.DataFrame(told).set_index("ratio")


def _told(right: Mapping[str, np.ndarray], source: str, changed: np.ndarray) -> dict[str, float]:
    crossed = np.mean([own for code, own in right.items() if code != source], axis=0)
    return {
        "changed": changed.sum(),
        "training error": 1 - right[source].mean(),
        "accuracy": crossed.mean(),
        "of changed": crossed[changed].mean() if changed.any() else np.nan,
        "of the others": crossed[~changed].mean(),
    }


def _drawn(
    curve: pd.DataFrame,
    right: Mapping[str, np.ndarray],
    source: str,
    guess: float,
    *,
    n_resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:
    """IGAP and accuracy of one ratio, of each target and of their mean."""
    targets = [code for code in right if code != source]
    crossed = np.mean([right[code] for code in targets], axis=0)
    places = np.random.default_rng(seed).integers(0, len(crossed), (n_resamples, len(crossed)))
    low, high = np.quantile(crossed[places].mean(axis=1), [0.025, 0.975])
    igap = curve[["target", "igap", "low", "high"]].rename(columns={"igap": "value"})
    accuracy = [(MEAN_TARGET, crossed.mean(), low, high)]
    accuracy += [(code, right[code].mean(), np.nan, np.nan) for code in targets]
    accuracy = pd.DataFrame(accuracy, columns=igap.columns)
    table = pd.concat(
        [
            igap.assign(quantity="IGAP", chance=guess),
            accuracy.assign(quantity="accuracy", chance=1 - guess),
        ],
        ignore_index=True,
    )
    return table.replace({"target": {MEAN_TARGET: None}})


def memory_table(told: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """What `memorised_labels` tells of each task, in points."""
    tables = {}
    for name, table in told.items():
        text = table.drop(columns="changed").map(lambda x: "–" if np.isnan(x) else as_points(x))
        text.insert(0, "changed", table["changed"])
        tables[name] = text
    return pd.concat(tables, names=["task", "ratio"])


def ends_table(memorised: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Accuracy and IGAP with the least and the most random labels, with intervals, in points."""
    rows = []
    for name, table in memorised.items():
        means = table[table["target"].isna()]
        means = means[means["ratio"].isin([means["ratio"].min(), means["ratio"].max()])]
        rows.append(means.assign(task=name, text=shown(means, "value")))
    table = pd.concat(rows)
    table["guessing"] = table["chance"].map(as_points)
    return table.pivot(index=["task", "quantity", "guessing"], columns="ratio", values="text")
