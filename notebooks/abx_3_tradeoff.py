"""LD against MD over pairs of languages (ABX paper, Appendix D): the tables of `abx-3`.

Correlations over pairs, checkpoints and layers; where nothing was learnt; given what the text has
without a model; within kinds of pairs. MD is taken plain and among sentences of like length.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from shared.abx_tables import PAIR, at_first, at_last, printed_results, side_by_side
from xlx.experiment import surface
from xlx.experiment.abx_scores import MATCHED, CheckpointScores
from xlx.measures import statistics
from xlx.measures.abx import average_layers, pair_scores
from xlx.text import languages
from xlx.text.parallel import ParallelCorpus

_PRINTED = "printed (XLM-R)"
#: What LD is held against.
MEANINGS = ("MD", MATCHED)


def layer_pairs(measured: Sequence[CheckpointScores]) -> pd.DataFrame:
    """LD and `MEANINGS` of every pair at every layer, both directions averaged."""
    table = pd.concat([of.table() for of in measured], ignore_index=True)
    return pair_scores(table[table["task"].isin(["LD", *MEANINGS])].drop(columns="space"))


def tradeoff_pairs(by_layer: pd.DataFrame, embedding_layer: bool = True) -> pd.DataFrame:
    """LD and `MEANINGS` of a pair, mean over layers: a row a model, checkpoint and pair."""
    averaged = average_layers(by_layer, embedding_layer)
    return side_by_side(averaged, ["model", "checkpoint", *PAIR])


def _against_ld(rows: pd.DataFrame, keys: Sequence[str], **options: object) -> pd.DataFrame:
    """`statistics.correlations` of LD with each of `MEANINGS`, in the column ``LD with``."""
    tables = {
        meaning: statistics.correlations(rows, keys, "LD", meaning, **options)
        for meaning in MEANINGS
    }
    return pd.concat(tables, names=["LD with", None]).reset_index(0)


def tradeoff_correlations(
    by_layer: pd.DataFrame, embedding_layer: bool = True, **options: object
) -> pd.DataFrame:
    """LD and `MEANINGS` over pairs, checkpoints and layers (Appendix D); the printed ones of MD."""
    pairs = tradeoff_pairs(by_layer, embedding_layer)
    layers = side_by_side(at_last(by_layer), ["model", "layer", "checkpoint", *PAIR])
    sets = {
        "pairs × checkpoints": (pairs, "abx_t04", "abx_t05"),
        "pairs, last checkpoint": (at_last(pairs), "abx_t06", "abx_t07"),
        "pairs × layers, last checkpoint": (
            layers if embedding_layer else layers[layers["layer"] > 0], "abx_t08", "abx_t09",
        ),
    }  # fmt: skip
    printed = printed_results()
    tables = {}
    for observations, (rows, *claims) in sets.items():
        for method, claim in zip(("spearman", "pearson"), claims, strict=True):
            table = _against_ld(rows, ["model"], method=method, **options)
            table[_PRINTED] = np.where(table["LD with"] == "MD", float(printed[claim]), np.nan)
            tables[observations, method] = table
    return pd.concat(tables, names=["observations", "method"]).reset_index([0, 1])


def correlation_courses(pairs: pd.DataFrame, **options: object) -> pd.DataFrame:
    """Pearson's r of LD and each of `MEANINGS` at each checkpoint (Figure 7), with its p-value."""
    rows = [
        {"model": name, "checkpoint": step, "LD with": meaning}
        | vars(statistics.correlation(of_step, "LD", meaning, **options))
        for (name, step), of_step in pairs.groupby(["model", "checkpoint"], sort=False)
        for meaning in MEANINGS
    ]
    return pd.DataFrame(rows)


def bag_pairs(
    names: Sequence[str], titles: Sequence[str], corpus: ParallelCorpus, max_length: int | None
) -> pd.DataFrame:
    """Scores of the bags of subwords of models: a row a model and pair, a column a task."""
    bags = [surface.subword_bag(name, corpus, max_length=max_length) for name in names]
    tables = [
        side_by_side(layer_pairs([bag]), PAIR).assign(model=title)
        for bag, title in zip(bags, titles, strict=True)
    ]
    return pd.concat(tables, ignore_index=True)


def untaught_correlations(
    pairs: pd.DataFrame, bags: pd.DataFrame, **options: object
) -> pd.DataFrame:
    """LD and `MEANINGS` over pairs where nothing was learnt: a bag of subwords, a first checkpoint.

    Pearson's and Spearman's correlations, column ``method``.
    """
    several = pairs.groupby("model")["checkpoint"].transform("nunique") > 1
    sources = {"bag of subwords": bags, "first checkpoint": at_first(pairs[several])}
    rows = pd.concat(sources, names=["scores of", None]).reset_index(level=0)
    tables = {
        method: _against_ld(rows, ["model", "scores of"], method=method, **options)
        for method in ("spearman", "pearson")
    }
    return pd.concat(tables, names=["method"]).reset_index(0).drop(columns="n")


def partial_tradeoffs(
    pairs: pd.DataFrame, bags: pd.DataFrame, corpus: ParallelCorpus, meaning: str = "MD",
    **options: object,
) -> pd.DataFrame:  # fmt: skip
    """What is left of the correlation at the first and last checkpoint, given what text has.

    ``meaning``: of `MEANINGS`. ``given``: nothing; LD and the same MD of the bag; whether two
    languages share a script, too; and what length alone gives MD of the pair.
    """
    of_bag = bags.rename(columns={"LD": "bag LD", meaning: "bag MD"})
    held = pairs.merge(of_bag[["model", *PAIR, "bag LD", "bag MD"]], on=["model", *PAIR])
    length = layer_pairs([surface.length_alone(corpus)]).query("task == 'MD'")
    length = length.rename(columns={"score": "length MD"})[[*PAIR, "length MD"]]
    held = held.merge(length, on=PAIR)
    held["one_script"] = _shared(held, "script").astype(float)
    sets = {"nothing": [], "the bag": ["bag LD", "bag MD"]}
    if held["one_script"].nunique() > 1:
        sets["the bag and script"] = [*sets["the bag"], "one_script"]
    sets["these and length"] = [*list(sets.values())[-1], "length MD"]
    ends = pd.concat([at_first(held), at_last(held)]).drop_duplicates().sort_index()
    tables = {
        key: statistics.partial_correlations(rows, "LD", meaning, sets, **options)
        for key, rows in ends.groupby(["model", "checkpoint"], sort=False)
    }
    return pd.concat(tables, names=["model", "checkpoint"]).droplevel(2)


def _shared(pairs: pd.DataFrame, *what: str) -> pd.Series:
    """Whether the languages of each pair have the same script, or family and branch."""
    known = {
        code: tuple(getattr(language, name) for name in what)
        for code, language in languages.LANGUAGES.items()
    }
    return pairs[PAIR[0]].map(known) == pairs[PAIR[1]].map(known)


def kinds_of_pairs(pairs: pd.DataFrame) -> pd.DataFrame:
    """Pairs by whether their languages share a script and a branch: means, and r with LD within."""
    script = _shared(pairs, "script").map({True: "one script", False: "two scripts"})
    branch = _shared(pairs, "family", "branch")
    branch = branch.map({True: ", one branch", False: ", two branches"})
    groups = pairs.assign(kind=script + branch).groupby(["model", "kind"])
    table = groups[["LD", *MEANINGS]].mean()
    table.insert(0, "pairs", groups.size())
    for meaning in MEANINGS:
        table[f"r with {meaning}"] = groups[["LD", meaning]].corr()[meaning].xs("LD", level=2)
    return table[table["pairs"] > 2]
