"""LD against MD over pairs of languages (ABX paper, Appendix D): the tables of `abx-3`.

Correlations over pairs, checkpoints and layers; where nothing was learnt; given what the text has
without a model; within kinds of pairs.
"""

from collections.abc import Sequence

import pandas as pd

from xlx.abx import lengths, series
from xlx.abx.discrimination import average_layers
from xlx.abx.experiments import PAIR, at_first, at_last, printed_results, side_by_side
from xlx.core import languages, statistics
from xlx.text.corpora import ParallelCorpus

_PRINTED = "printed (XLM-R)"


def tradeoff_pairs(by_layer: pd.DataFrame, embedding_layer: bool = True) -> pd.DataFrame:
    """``LD`` and ``MD`` of a pair, mean over layers: a row a model, checkpoint and pair."""
    averaged = average_layers(by_layer, embedding_layer)
    return side_by_side(averaged, ["model", "checkpoint", *PAIR])


def tradeoff_correlations(
    by_layer: pd.DataFrame, embedding_layer: bool = True, **options: object
) -> pd.DataFrame:
    """LD and MD over pairs, checkpoints and layers (Appendix D): ours and the printed ones."""
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
            table = statistics.correlations(rows, ["model"], "LD", "MD", method=method, **options)
            tables[observations, method] = table.assign(**{_PRINTED: float(printed[claim])})
    return pd.concat(tables, names=["observations", "method"]).reset_index([0, 1])


def correlation_courses(pairs: pd.DataFrame, **options: object) -> pd.DataFrame:
    """Pearson's r of LD and MD at each checkpoint (Figure 7), with its p-value."""
    rows = [
        {"model": name, "checkpoint": step}
        | vars(statistics.correlation(of_step, "LD", "MD", **options))
        for (name, step), of_step in pairs.groupby(["model", "checkpoint"], sort=False)
    ]
    return pd.DataFrame(rows)


def bag_pairs(
    names: Sequence[str], titles: Sequence[str], corpus: ParallelCorpus, max_length: int | None
) -> pd.DataFrame:
    """LD, MD and retrieval of the bags of subwords of models: a row a model and pair."""
    tables = [
        side_by_side(series.bag_scores(name, corpus, max_length), PAIR).assign(model=title)
        for name, title in zip(names, titles, strict=True)
    ]
    return pd.concat(tables, ignore_index=True)


def untaught_correlations(
    pairs: pd.DataFrame, bags: pd.DataFrame, **options: object
) -> pd.DataFrame:
    """LD and MD over pairs where nothing was learnt: a bag of subwords, a first checkpoint."""
    several = pairs.groupby("model")["checkpoint"].transform("nunique") > 1
    sources = {"bag of subwords": bags, "first checkpoint": at_first(pairs[several])}
    rows = pd.concat(sources, names=["scores of", None]).reset_index(level=0)
    keys = ["model", "scores of"]
    tables = {
        method: statistics.correlations(rows, keys, "LD", "MD", method=method, **options)
        for method in ("spearman", "pearson")
    }
    return pd.concat(tables, names=["method"]).reset_index(0).drop(columns="n")


def partial_tradeoffs(
    pairs: pd.DataFrame, bags: pd.DataFrame, corpus: ParallelCorpus, **options: object
) -> pd.DataFrame:
    """What is left of the correlation at the first and last checkpoint, given what text has.

    ``given``: nothing; LD and MD of the bag; whether two languages share a script, too; and what
    length alone gives MD of the pair.
    """
    of_bag = bags.rename(columns={"LD": "bag LD", "MD": "bag MD"})
    held = pairs.merge(of_bag[["model", *PAIR, "bag LD", "bag MD"]], on=["model", *PAIR])
    length = lengths.length_scores(corpus).query("task == 'MD'")
    length = length.rename(columns={"score": "length MD"})[[*PAIR, "length MD"]]
    held = held.merge(length, on=PAIR)
    held["one_script"] = _shared(held, "script").astype(float)
    sets = {"nothing": [], "the bag": ["bag LD", "bag MD"]}
    if held["one_script"].nunique() > 1:
        sets["the bag and script"] = [*sets["the bag"], "one_script"]
    sets["these and length"] = [*list(sets.values())[-1], "length MD"]
    ends = pd.concat([at_first(held), at_last(held)]).drop_duplicates().sort_index()
    tables = {
        key: statistics.partial_correlations(rows, "LD", "MD", sets, **options)
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
    """Pairs by whether their languages share a script and a branch: means, and r within a kind."""
    script = _shared(pairs, "script").map({True: "one script", False: "two scripts"})
    branch = _shared(pairs, "family", "branch")
    branch = branch.map({True: ", one branch", False: ", two branches"})
    groups = pairs.assign(kind=script + branch).groupby(["model", "kind"])
    table = groups[["LD", "MD"]].mean()
    table.insert(0, "pairs", groups.size())
    table["r within"] = groups[["LD", "MD"]].corr()["MD"].xs("LD", level=2)
    return table[table["pairs"] > 2]
