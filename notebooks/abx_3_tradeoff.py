"""LD against MD over pairs of languages (ABX paper, Appendix D): the tables of `abx-3`.

Correlations over pairs, checkpoints and layers, and what is left of them given what needs no
training: a bag of subwords, the untrained twin, script and length. MD is taken plain and among
sentences of like length.
"""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from shared.abx_figures import LAYER, STEP
from shared.abx_tables import (
    PAIR,
    at_last,
    average_layers,
    pair_scores,
    partial_correlations,
    printed_results,
)
from xlx.experiment.abx_scores import MATCHED
from xlx.experiment.scoring import Length, subject_scores
from xlx.measures import statistics
from xlx.measures.abx import PairScores
from xlx.plots.panels import across, parts
from xlx.plots.primitives import Curves, Points, curves, scatter
from xlx.plots.style import MEASURES, ZERO, styled
from xlx.text import languages
from xlx.text.parallel import ParallelCorpus

#: What LD is set beside.
MEANINGS = ("MD", MATCHED)
METHODS = ("spearman", "pearson")


def layer_pairs(measured: Sequence[PairScores]) -> pd.DataFrame:
    """LD and `MEANINGS` of every pair at every layer, both directions averaged."""
    table = pd.concat([state.table() for state in measured], ignore_index=True)
    return pair_scores(table[table["task"].isin(["LD", *MEANINGS])].drop(columns="space"))


def side_by_side(scores: pd.DataFrame, index: Sequence[str]) -> pd.DataFrame:
    """A row per ``index``, the scores of the tasks in columns."""
    wide = scores.pivot(index=list(index), columns="task", values="score")
    return wide.reset_index().rename_axis(columns=None)


def tradeoff_pairs(by_layer: pd.DataFrame, embedding_layer: bool = True) -> pd.DataFrame:
    """LD and `MEANINGS` of a pair, mean over layers: one row per model, checkpoint and pair."""
    averaged = average_layers(by_layer, embedding_layer)
    return side_by_side(averaged, ["model", "checkpoint", *PAIR])


def against_ld(
    rows: pd.DataFrame, keys: Sequence[str], methods: Sequence[str] = METHODS
) -> pd.DataFrame:
    """`statistics.correlations` of LD with each of `MEANINGS`: columns ``method``, ``LD with``."""
    tables = [
        statistics.correlations(rows, keys, "LD", meaning, method=method).assign(
            **{"LD with": meaning, "method": method}
        )
        for method in methods
        for meaning in MEANINGS
    ]
    return pd.concat(tables, ignore_index=True)


def tradeoff_correlations(by_layer: pd.DataFrame, embedding_layer: bool = True) -> pd.DataFrame:
    """LD and `MEANINGS` over pairs, checkpoints and layers (Appendix D); the printed ones of MD."""
    pairs = tradeoff_pairs(by_layer, embedding_layer)
    layers = side_by_side(at_last(by_layer), ["model", "layer", "checkpoint", *PAIR])
    layers = layers[layers["layer"] >= (0 if embedding_layer else 1)]
    several = pairs.groupby("model")["checkpoint"].transform("nunique") > 1
    sets = {
        "pairs, last checkpoint": (at_last(pairs), "abx_t06", "abx_t07"),
        "pairs × layers, last checkpoint": (layers, "abx_t08", "abx_t09"),
        "pairs × checkpoints": (pairs[several], "abx_t04", "abx_t05"),
    }
    printed, tables = printed_results().astype(str), []
    for observations, (rows, *claims) in sets.items():
        table = against_ld(rows, ["model"]).assign(observations=observations)
        values = table["method"].map(dict(zip(METHODS, printed[claims], strict=True)))
        values = values.where(table["LD with"] == "MD", "")
        tables.append(table.assign(**{"printed (XLM-R)": values}))
    return pd.concat(tables, ignore_index=True)


def held_pairs(
    measured: Sequence[PairScores],
    twins: Sequence[PairScores],
    bags: Sequence[PairScores],
    corpus: ParallelCorpus,
    embedding_layer: bool = True,
    *,
    layers: bool = False,
) -> pd.DataFrame:
    """LD and `MEANINGS` of each pair, with what needs no training beside them.

    ``twins``, ``bags``: of the models of ``measured``, in their order. Means over layers, or with
    ``layers`` one row per layer (and the twin's layer beside it). Columns "twin LD", "bag LD" and
    so on, "length MD", "one script".
    """
    length = tradeoff_pairs(layer_pairs(subject_scores([Length()], corpus)))
    length = length.rename(columns={"MD": "length MD"})[[*PAIR, "length MD"]]
    tables = []
    for state, twin, bag in zip(measured, twins, bags, strict=True):
        trained, untrained = map(layer_pairs, ([state], [twin]))
        if not layers:
            trained, untrained = (average_layers(x, embedding_layer) for x in (trained, untrained))
        keys = ["layer", *PAIR] if layers else PAIR
        pairs = side_by_side(trained, ["model", "checkpoint", *keys])
        beside = {"twin": (side_by_side(untrained, keys), keys)}
        beside["bag"] = side_by_side(average_layers(layer_pairs([bag])), PAIR), PAIR
        for label, (table, on) in beside.items():
            names = {name: f"{label} {name}" for name in ("LD", *MEANINGS)}
            pairs = pairs.merge(table.rename(columns=names)[[*on, *names.values()]], on=on)
        tables.append(pairs.merge(length, on=PAIR))
    whole = pd.concat(tables, ignore_index=True)
    return whole.assign(**{"one script": alike(whole, "script").astype(float)})


def held_sets(pairs: pd.DataFrame, meaning: str) -> dict[str, list[str]]:
    """What is held, set by set: label → columns of `held_pairs` that vary."""
    sets = {"nothing": [], "the bag": ["bag LD", f"bag {meaning}"]}
    sets["the bag and the twin"] = [*sets["the bag"], "twin LD", f"twin {meaning}"]
    sets["these, script and length"] = sets["the bag and the twin"] + ["one script", "length MD"]
    return {label: [x for x in names if pairs[x].nunique() > 1] for label, names in sets.items()}


def partial_tradeoffs(
    held: pd.DataFrame,
    by: Sequence[str] = ("model",),
    given: Sequence[str] | None = None,
    methods: Sequence[str] = METHODS,
) -> pd.DataFrame:
    """What is left of the correlation of LD with `MEANINGS`, given what needs no training.

    ``held`` as of `held_pairs`; ``given``: labels of `held_sets`, None: all. Columns ``by``, ``LD
    with``, ``given``, ``method``, ``r``, its ends.
    """
    tables = {
        (*key, meaning): partial_correlations(
            rows,
            "LD",
            meaning,
            {
                x: columns
                for x, columns in held_sets(rows, meaning).items()
                if given is None or x in given
            },
            methods,
        )
        for key, rows in held.groupby(list(by), sort=False)
        for meaning in MEANINGS
    }
    names = [*by, "LD with"]
    return pd.concat(tables, names=names).reset_index(names).reset_index(drop=True)


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
    """Language pairs by LD and MD (Figure 6 of the ABX paper), one row per kind of MD.

    ``table`` has ``model``, ``language_1``, ``language_2``, ``LD`` and the ``meanings``;
    ``statistics``: model and meaning → a line of text. The pairs at the ends of both scales are
    named.
    """
    names = table["language_1"] + "-" + table["language_2"]
    long = table.assign(pair=names).melt(
        ["model", "pair", "LD"], list(meanings), "meaning", "score"
    )
    ends = [
        index
        for _, rows in parts(long, "model", "meaning")
        for score in ("LD", "score")
        for index in (rows[score].idxmin(), rows[score].idxmax())
    ]
    long["written"] = long["pair"].where(long.index.isin(ends), "")
    style = Points(size=7, alpha=0.4, width=3.9, height=2.4, sharex="col", sharey="col")
    on = scatter(long, "LD", "score", row="meaning", col="model", style=style)
    on.titles(lambda key: f"{key[1]}: {key[0]}\n{statistics[key[::-1]]}")
    return on.done("LD of a language pair (chance: 0.5)", "MD of a language pair (chance: 0.5)")


@styled
def correlation_course(table: pd.DataFrame, x: str = "checkpoint") -> Figure:
    """Correlation of LD and MD over checkpoints (Figure 7 of the ABX paper) or over layers.

    ``table`` as of `against_ld`, or with a column ``given`` as of `partial_tradeoffs`; bands are
    intervals over languages.
    """
    given = ", given " + table["given"] if "given" in table else ""
    series = (table["LD with"] + given).str.replace(", given nothing", "")
    looks = {
        name: MEASURES[meaning] | ({"markerfacecolor": "white"} if "given" in name else {})
        for name, meaning in zip(series, table["LD with"], strict=True)
    }
    style = Curves(looks=looks, even=x == "checkpoint", wrap=3, width=3.9)
    on = curves(table.assign(series=series), x, "r", hue="series", col="model", style=style)
    across(on, y=0, **ZERO)
    for axes in on.axes.values() if x != "checkpoint" else ():
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    return on.done(STEP if x == "checkpoint" else LAYER, "Pearson r of LD and MD over pairs")
