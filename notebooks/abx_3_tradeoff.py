"""LD against MD over pairs of languages (ABX paper, Appendix D): the tables of `abx-3`.

Correlations over pairs, checkpoints and layers; where nothing was learnt; given what the text has
without a model; within kinds of pairs. MD is taken plain and among sentences of like length.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from shared.abx_figures import STEP, chance_line
from shared.abx_tables import PAIR, at_first, at_last, partial_correlations, printed_results
from xlx.experiment.abx_scores import MATCHED, CheckpointScores
from xlx.experiment.scoring import Length, subject_scores
from xlx.measures import statistics
from xlx.measures.abx import average_layers, pair_scores
from xlx.plots.panels import across, parts
from xlx.plots.primitives import curves, scatter
from xlx.plots.style import BLUE, CHANCE, MEASURES, NAMES, ZERO, look, styled
from xlx.text import languages
from xlx.text.parallel import ParallelCorpus

#: What LD is held against.
MEANINGS = ("MD", MATCHED)
METHODS = ("spearman", "pearson")


def layer_pairs(measured: Sequence[CheckpointScores]) -> pd.DataFrame:
    """LD and `MEANINGS` of every pair at every layer, both directions averaged."""
    table = pd.concat([of.table() for of in measured], ignore_index=True)
    return pair_scores(table[table["task"].isin(["LD", *MEANINGS])].drop(columns="space"))


def side_by_side(scores: pd.DataFrame, index: Sequence[str]) -> pd.DataFrame:
    """A row per ``index``, the scores of the tasks in columns; models in the order given."""
    wide = scores.pivot(index=list(index), columns="task", values="score").reset_index()
    if "model" in index:
        order = list(scores["model"].unique())
        wide = wide.sort_values("model", key=lambda names: names.map(order.index), kind="stable")
    return wide.reset_index(drop=True).rename_axis(columns=None)


def tradeoff_pairs(by_layer: pd.DataFrame, embedding_layer: bool = True) -> pd.DataFrame:
    """LD and `MEANINGS` of a pair, mean over layers: a row a model, checkpoint and pair."""
    averaged = average_layers(by_layer, embedding_layer)
    return side_by_side(averaged, ["model", "checkpoint", *PAIR])


def against_ld(rows: pd.DataFrame, keys: Sequence[str], **options: object) -> pd.DataFrame:
    """`statistics.correlations` of LD with each of `MEANINGS`: columns ``method``, ``LD with``."""
    tables = [
        statistics.correlations(rows, keys, "LD", meaning, method=method, **options).assign(
            **{"LD with": meaning, "method": method}
        )
        for method in METHODS
        for meaning in MEANINGS
    ]
    return pd.concat(tables, ignore_index=True)


def tradeoff_correlations(
    by_layer: pd.DataFrame, embedding_layer: bool = True, **options: object
) -> pd.DataFrame:
    """LD and `MEANINGS` over pairs, checkpoints and layers (Appendix D); the printed ones of MD."""
    pairs = tradeoff_pairs(by_layer, embedding_layer)
    layers = side_by_side(at_last(by_layer), ["model", "layer", "checkpoint", *PAIR])
    layers = layers[layers["layer"] >= (0 if embedding_layer else 1)]
    sets = {
        "pairs × checkpoints": (pairs, "abx_t04", "abx_t05"),
        "pairs, last checkpoint": (at_last(pairs), "abx_t06", "abx_t07"),
        "pairs × layers, last checkpoint": (layers, "abx_t08", "abx_t09"),
    }
    printed, tables = printed_results().astype(str), []
    for observations, (rows, *claims) in sets.items():
        table = against_ld(rows, ["model"], **options).assign(observations=observations)
        values = table["method"].map(dict(zip(METHODS, printed[claims], strict=True)))
        values = values.where(table["LD with"] == "MD")
        tables.append(table.assign(**{"printed (XLM-R)": values.astype(float)}))
    return pd.concat(tables, ignore_index=True)


def partial_tradeoffs(
    pairs: pd.DataFrame, bags: pd.DataFrame, corpus: ParallelCorpus, meaning: str = "MD",
    **options: object,
) -> pd.DataFrame:  # fmt: skip
    """What is left of the correlation at the first and last checkpoint, given what text has.

    ``meaning``: of `MEANINGS`. ``given``: nothing; LD and the same MD of the bag; whether two
    languages share a script, too; and what length alone gives MD of the pair.
    """
    of_bag = bags.rename(columns={"LD": "bag LD", meaning: "bag MD"})
    length = layer_pairs([*subject_scores([Length()], corpus)]).query("task == 'MD'")
    length = length.rename(columns={"score": "length MD"})[[*PAIR, "length MD"]]
    held = pairs.merge(of_bag[["model", *PAIR, "bag LD", "bag MD"]], on=["model", *PAIR])
    held = held.merge(length, on=PAIR)
    held["one_script"] = alike(held, "script").astype(float)
    sets = {"nothing": [], "the bag": ["bag LD", "bag MD"]}
    if held["one_script"].nunique() > 1:
        sets["the bag and script"] = [*sets["the bag"], "one_script"]
    sets["these and length"] = [*list(sets.values())[-1], "length MD"]
    ends = pd.concat([at_first(held), at_last(held)]).drop_duplicates().sort_index()
    tables = {
        key: partial_correlations(rows, "LD", meaning, sets, **options)
        for key, rows in ends.groupby(["model", "checkpoint"], sort=False)
    }
    return pd.concat(tables, names=["model", "checkpoint"]).droplevel(2)


def alike(pairs: pd.DataFrame, *what: str) -> pd.Series:
    """Whether the languages of each pair have the same script, or family and branch."""
    known = {
        code: tuple(getattr(language, name) for name in what)
        for code, language in languages.LANGUAGES.items()
    }
    return pairs[PAIR[0]].map(known) == pairs[PAIR[1]].map(known)


@styled
def tradeoff(
    table: pd.DataFrame, meanings: Sequence[str], statistics: Mapping[tuple[str, str], str]
) -> Figure:
    """Language pairs by LD and MD (Figure 6 of the ABX paper), a row a kind of MD.

    ``table`` has ``model``, ``language_1``, ``language_2``, ``LD`` and the ``meanings``;
    ``statistics``: model and meaning → a line of text. The pairs at the ends of both scales are
    named.
    """
    names = table["language_1"] + "-" + table["language_2"]
    long = table.assign(pair=names).melt(
        ["model", "pair", "LD"], list(meanings), "meaning", "score"
    )
    long["panel"] = list(zip(long["model"], long["meaning"], strict=True))
    ends = [
        index for _, own in parts(long, "panel") for score in ("LD", "score")
        for index in (own[score].idxmin(), own[score].idxmax())
    ]  # fmt: skip
    long["written"] = long["pair"].where(long.index.isin(ends), "")
    on = scatter(long, x="LD", y="score", panel="panel", looks={None: look(BLUE, "o")},
                 columns=table["model"].nunique(), written="written", size=7, alpha=0.4,
                 width=3.9, height=2.4)  # fmt: skip
    across(on, CHANCE, CHANCE)
    on.titles(lambda key: f"{key[0]}: {key[1]}\n{statistics[key]}")
    return on.done("LD of a language pair", "MD of a language pair", handles=[chance_line()])


@styled
def correlation_course(table: pd.DataFrame) -> Figure:
    """Correlation of LD and MD at each checkpoint, a panel a model (Figure 7 of the ABX paper).

    ``table`` as of `correlation_courses`; filled marks are significant (p < 0.05), as in the paper.
    """
    options = {"x": "checkpoint", "value": "value", "panel": "model", "even": True}
    tasks = [task for task in MEANINGS if (table["LD with"] == task).any()]
    lines = {task: MEASURES[task] | {"marker": ""} for task in tasks}
    names = {task: f"LD and {NAMES[task]}" for task in tasks}
    on = curves(table, series="LD with", looks=lines, labels=names, width=3.9, height=2.1,
                **options)  # fmt: skip
    significant, unnamed = table["p_value"] < 0.05, dict.fromkeys(tasks, "_")
    for label, kept, face in (
        ("p < 0.05", significant, {}), ("p ≥ 0.05", ~significant, {"markerfacecolor": "white"})
    ):  # fmt: skip
        marks = {task: MEASURES[task] | {"linestyle": "none"} | face for task in tasks}
        if kept.any():
            curves(table.assign(value=table["value"].where(kept)), series="LD with", looks=marks,
                   labels=unnamed | {tasks[0]: label}, on=on, low="", **options)  # fmt: skip
    across(on, y=0, **ZERO | {"linestyle": "-"})
    return on.done(STEP, "Pearson r over language pairs")
