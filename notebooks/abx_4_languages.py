"""The scores of each language (ABX paper, Appendix E): how high, with what, which way, when.

A language's score is the mean over its pairs with all others; ``scores`` are tables as of
`averages.averaged_scores` by language.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from shared.abx_figures import LAYER
from shared.abx_tables import DRAWN, PAIR
from shared.pair_regressions import explained
from shared.shown import framed_handle
from xlx.experiment.averages import averaged_scores
from xlx.measures import statistics
from xlx.measures.abx import PairScores
from xlx.plots.primitives import Cells, heatmap
from xlx.plots.style import styled
from xlx.text import languages


def language_kinds(codes: Sequence[str]) -> pd.DataFrame:
    """What is known of languages, next to their kin: ``code``, ``name``, ``family`` and so on."""
    rows = [vars(languages.LANGUAGES[code]) for code in codes if code in languages.LANGUAGES]
    return pd.DataFrame(rows).sort_values(["family", "branch", "script", "name"])


def with_turns(scores: pd.DataFrame) -> pd.DataFrame:
    """Scores of languages; ``turn``: where LD is lowest, or another score highest, after step 0."""
    several = scores.groupby("model")["checkpoint"].transform("nunique") > 1
    trained = scores[(scores["checkpoint"] > 0) | ~several]
    cost = trained["score"].where(trained["task"] == "LD", -trained["score"])
    keys = [key for key in ("model", "run", "task", "language") if key in scores]
    turns = cost.groupby([trained[key] for key in keys]).idxmin()
    return scores.assign(turn=scores.index.isin(turns))


def stretched(scores: pd.DataFrame, over: str) -> pd.DataFrame:
    """Scores of languages from 0 (where a language is lowest) to 1, ``over`` layers or checkpoints.

    As Figure 8 of the paper has them, "normalised per language". NaN where a score never varies.
    """
    keys = [key for key in ("model", "task", "language", "layer", "checkpoint") if key != over]
    series = scores.groupby([key for key in keys if key in scores])["score"]
    lowest, highest = series.transform("min"), series.transform("max")
    apart = (highest - lowest).where(highest > lowest)
    return scores.assign(score=(scores["score"] - lowest) / apart)


def heights(
    measured: Sequence[PairScores],
    twins: Sequence[PairScores],
    bags: Sequence[PairScores],
    embedding_layer: bool = True,
) -> pd.DataFrame:
    """The score of each language, beside that of the untrained twin and of the bag of subwords.

    In parallel lists. Columns ``model``, ``task``, ``language``, ``score`` and its ends, ``twin``,
    ``bag``, and what `language_kinds` knows.
    """
    options = {"by": ["language"], "embedding_layer": embedding_layer}
    tables, keys = [], ["task", "language"]
    for state, twin, bag in zip(measured, twins, bags, strict=True):
        table = averaged_scores([state], DRAWN, **options)
        for name, other in (("twin", [twin]), ("bag", [bag])):
            layers = options | {"embedding_layer": name == "bag" or embedding_layer}
            beside = averaged_scores(other, DRAWN, **layers).rename(columns={"score": name})
            table = table.merge(beside[[*keys, name]], on=keys)
        tables.append(table)
    whole = pd.concat(tables, ignore_index=True)
    kinds = language_kinds(whole["language"].unique()).rename(columns={"code": "language"})
    return whole.merge(kinds, on="language", how="left")


def height_correlations(table: pd.DataFrame) -> pd.DataFrame:
    """How heights over languages go with the bag and the twin: r with intervals over languages.

    And the adjusted R² of scripts and of branches as groups. ``table`` as of `heights`. One row per
    model, task and ``with``: ``r``, ``low``, ``high``; or R², without an interval.
    """
    rows = []
    for (model, task), part in table.groupby(["model", "task"], sort=False):
        for other in ("bag", "twin"):
            r = statistics.correlation(part, "score", other, languages=["language"])
            rows.append((model, task, f"r with the {other}", r.value, r.low, r.high))
        for key in ("script", "branch"):
            share = explained(part, "score", [key])[1]
            rows.append((model, task, f"adjusted R² of the {key}", share, np.nan, np.nan))
    return pd.DataFrame(rows, columns=["model", "task", "with", "r", "low", "high"])


def directed_languages(
    measured: Sequence[PairScores], task: str = "LD", embedding_layer: bool = True
) -> pd.DataFrame:
    """A language's score with X in it, and with X in the others: means over its pairs and layers.

    In LD X and A are of one language and B is of the other; in MD A and B are of the other. One row
    per model and language: ``X in it``, ``X in the others``, ``difference``, largest first.
    """
    table = pd.concat([state.table() for state in measured]).query("task == @task")
    table = table[table["layer"] >= (0 if embedding_layer else 1)]
    sides = pd.concat([table.assign(language=table[side]) for side in PAIR])
    inside = sides["x_language"] == sides["language"]
    where = inside.map({True: "X in it", False: "X in the others"}).rename(None)
    means = sides.groupby(["model", "language", where], sort=False)["score"].mean()
    wide = means.unstack(sort=False)[["X in it", "X in the others"]]
    wide["difference"] = wide["X in it"] - wide["X in the others"]
    return wide.sort_values("difference", ascending=False)


@styled
def language_maps(
    table: pd.DataFrame, rows: Sequence[str], column: str = "checkpoint", framed: bool = True
) -> Figure:
    """Maps of language by checkpoint or layer, one panel per ``panel`` (Figures 8, 9 of the paper).

    ``table`` has ``panel``, ``bar`` (what its colours are: panels of one share them), ``language``,
    ``column``, ``score`` and, where turns are ``framed``, ``turn``; ``rows`` orders the languages.
    """
    n_panels = table["panel"].nunique()
    wrap = 3 if n_panels == 6 else n_panels
    width = (8 / wrap - 0.12) / table[column].nunique()
    style = Cells(
        rows=rows,
        wrap=wrap,
        turned=90,
        bar_by="bar",
        edge=(0.7, 1.5),
        cell=(min(0.32, width), 0.125),
        missing=f"no such {column}",
    )
    table = table.assign(framed=table["turn"]) if framed else table
    on = heatmap(table, column, "language", "score", col="panel", style=style)
    handles = [framed_handle("lowest LD, highest MD (step 0 aside)")] if framed else []
    return on.done("training step" if column == "checkpoint" else LAYER, handles=handles)
