"""LD and MD of the members of the miniature family: the tables of `models-1-family`."""

from collections.abc import Mapping, Sequence

import pandas as pd

from xlx.abx import lengths, series
from xlx.abx.lengths import MD_LIKE_LENGTH, LikeLength
from xlx.abx.measurement import Measurement
from xlx.core import paths
from xlx.text.corpora import ParallelCorpus

SCORED = ["LD", "MD", MD_LIKE_LENGTH]


def scores_by_layer(
    measured: Mapping[str, Measurement], like: Mapping[str, LikeLength]
) -> pd.DataFrame:
    """LD, MD and MD among sentences of like length by layer, with intervals."""
    of_like = lengths.by_layer(list(like.values())).assign(task=MD_LIKE_LENGTH)
    table = pd.concat([series.summarise(list(measured.values()), by=["layer"]), of_like])
    return table[table["task"] != "retrieval"]


def layer_table(by_layer: pd.DataFrame) -> pd.DataFrame:
    """Scores of members and tasks, a column a layer; members in the order given."""
    wide = by_layer.pivot(index=["model", "task"], columns="layer", values="score")
    return wide.loc[list(by_layer["model"].unique())]


def reference_lines(
    models_of: Mapping[str, Sequence[str]],
    folders: Mapping[str, str],
    corpus: ParallelCorpus,
    max_length: int | None,
) -> dict[str, pd.DataFrame]:
    """What is scored without a model: a bag of the subwords of each vocabulary, length alone.

    ``models_of``: vocabulary → its models, as they are called; ``folders``: these → names. Returns
    label → ``model``, ``task``, ``score``.
    """
    bags = {}
    for models in models_of.values():
        name = folders[models[0]]
        bag = series.bag_scores(name, corpus, max_length).groupby("task")["score"].mean()
        bag[MD_LIKE_LENGTH] = lengths.bag_like_length(name, corpus, max_length).scores[0]
        bags |= dict.fromkeys(models, bag.drop("retrieval"))
    alone = lengths.length_scores(corpus).groupby("task")["score"].mean().drop("retrieval")
    lines = {"a bag of subwords": bags, "length alone": dict.fromkeys(bags, alone)}
    return {
        label: pd.concat(scores, names=["model", "task"]).rename("score").reset_index()
        for label, scores in lines.items()
    }


def reference_table(
    lines: Mapping[str, pd.DataFrame], models_of: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """`reference_lines` by vocabulary."""
    rows = pd.concat(lines, names=["scores of", None]).reset_index(level=0)
    vocabularies = {models[0]: kind for kind, models in models_of.items()}
    rows = rows.assign(vocabulary=rows["model"].map(vocabularies)).dropna(subset="vocabulary")
    return rows.pivot(index=["scores of", "vocabulary"], columns="task", values="score")


def best_layers(like: Mapping[str, LikeLength]) -> dict[str, int]:
    """Model → its layer of highest MD among sentences of like length."""
    return {name: int(of_model.scores.argmax()) for name, of_model in like.items()}


def summary_table(
    measured: Mapping[str, Measurement],
    like: Mapping[str, LikeLength],
    embedding_layer: bool = True,
) -> pd.DataFrame:
    """Means over layers, and scores at the best layer with the interval of MD, like length."""
    mean = series.summarise(list(measured.values()), embedding_layer=embedding_layer)
    mean = mean.pivot(index="model", columns="task", values="score")
    mean[MD_LIKE_LENGTH] = pd.Series(
        {name: found.mean(embedding_layer=embedding_layer)[0] for name, found in like.items()}
    )
    best = best_layers(like)
    rows = scores_by_layer(measured, like)
    rows = rows[rows["layer"] == rows["model"].map(best)]
    rows = rows.pivot(index="model", columns="task", values=["score", "low", "high"])
    at_best = rows["score"][SCORED].assign(
        layer=pd.Series(best), low=rows["low", MD_LIKE_LENGTH], high=rows["high", MD_LIKE_LENGTH]
    )
    tables = {"mean over layers": mean[SCORED], "best layer": at_best}
    return pd.concat(tables, axis=1).loc[list(measured)]


def difference_table(differences: pd.DataFrame, layers: str) -> pd.DataFrame:
    """`contrasts.between` of some layers: value, low and high of each task."""
    rows = differences[differences["layers"] == layers]
    wide = rows.pivot(index=["model", "reference"], columns="task", values=["value", "low", "high"])
    tasks = rows["task"].unique()
    order = list(dict.fromkeys(zip(rows["model"], rows["reference"], strict=True)))
    return wide.swaplevel(axis=1).loc[order, list(tasks)]


def beside_printed(summary: pd.DataFrame, printed_as: Mapping[str, str]) -> pd.DataFrame:
    """Best layers beside the interlingual transfer gap that IGAP prints (Table 2, averages)."""
    printed = pd.read_csv(paths.PUBLISHED / "igap" / "table2_avg_igap_acc.csv")
    printed = printed[printed["quantity"] == "IGap"]
    printed = printed.pivot(index="model", columns="task", values="value")
    rows = summary["best layer"].loc[[name for name in summary.index if name in printed_as]]
    kind = rows.index.map(printed_as)
    gaps = {f"IGap {task}, printed": kind.map(printed[task]) for task in printed}
    table = rows.assign(kind=kind, **gaps).sort_values("IGap XNLI, printed")
    return table[["kind", *gaps, *SCORED]]
