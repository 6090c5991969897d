"""Numbers that the papers print of the same measures, beside those of a model on its text.

The papers' models, languages and text are others, so a printed number is a landmark and no
reference; what differs is said in each row.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from xlx.experiment.abx_scores import CheckpointScores
from xlx.measures import statistics
from xlx.report.measures import Measured
from xlx.results import paths

_ABX = "de Seyssel et al. (2025)"
_MEXA = "Kargaran et al. (2025)"
#: Row of Table 1 of MEXA → how layers are pooled.
_POOLED = {"mu_Mean": "mean", "mu_Max": "max"}


def printed_rows(measured: Measured) -> pd.DataFrame:
    """A row for each printed number: what, where and of what model it is, and what it is here.

    ``model``, ``quantity``, ``paper``, ``place``, ``printed_of``, ``printed``, ``here`` with its
    interval (of correlations, by resampling languages; else, over the languages of the text),
    ``differs``. Of correlations there is none here with fewer than four languages.
    """
    there = paths.PUBLISHED.is_dir()  # shipped by the repository, not by the package alone
    rows = [*_correlations(measured.raw), *_means(measured)] if there else []
    columns = ["quantity", "paper", "place", "printed_of", "printed", "here", "low", "high",
               "differs"]  # fmt: skip
    return pd.DataFrame(rows, columns=columns).assign(model=measured.model.label)[
        ["model", *columns]
    ]


def _correlations(scores: CheckpointScores) -> Iterator[tuple]:
    """Of LD with MD, and MD with retrieval, over pairs of languages (ABX, sections 4.1, 4.2)."""
    file = paths.PUBLISHED / "abx" / "text_results.csv"
    printed = pd.read_csv(file, index_col="claim_id")["value"]
    wanted = {
        "abx_t07": ("LD", "MD", False, False, "4.2"),
        "abx_t01": ("MD", "retrieval", False, False, "4.1"),
        "abx_t02": ("MD", "retrieval", True, True, "4.1"),
        "abx_t03": ("MD", "retrieval", False, True, "4.1"),
    }
    differs = f"pairs of {len(set(sum(scores.scores.pairs, ())))} languages, not of 36; other text"
    for claim, (one, other, *last, section) in wanted.items():
        table = pd.DataFrame(scores.scores.pairs, columns=["language_1", "language_2"])
        for column, task, at_last in zip("xy", (one, other), last, strict=True):
            by_layer = scores.scores.scores[task].mean(axis=-1)
            table[column] = by_layer[-1] if at_last else by_layer.mean(axis=0)
        ends = np.nan, np.nan, np.nan
        if len(table) > 5 and table[["x", "y"]].nunique().min() > 1:
            r = statistics.correlation(table, "x", "y")
            ends = r.value, r.low, r.high
        layers = ["last layer" if at_last else "mean of layers" for at_last in last]
        where = layers[0] if layers[0] == layers[1] else f"{one} {layers[0]}, {other} {layers[1]}"
        yield (f"correlation of {one} and {other} over pairs, {where}", _ABX,
               f"section {section}", "XLM-R base, last checkpoint", float(printed[claim]), *ends,
               differs)  # fmt: skip


def _means(measured: Measured) -> Iterator[tuple]:
    """Mean MEXA score over languages, of each model of Table 1 on FLORES, and their mean."""
    raw, file = measured.mexa["raw"], paths.PUBLISHED / "mexa" / "table1_performance_and_mexa.csv"
    printed = pd.read_csv(file).query("group == 'FLORES'").set_index("item")
    n_printed = int(printed.loc["mu_Max", "n_languages"].dropna().iloc[0])
    differs = (
        f"{len(raw.languages)} languages, not {n_printed}; "
        f"{raw.hits.shape[-1]} sentences of this text, not 100 of FLORES-200 (MEXA falls with "
        f"more); {measured.model.pooling.replace('_', ' ')} of subwords"
    )
    for row, how in _POOLED.items():
        by_language = raw.pooled(how)["mu"].to_numpy()
        mean, low, high = by_language.mean(), np.nan, np.nan
        if len(by_language) > 2:
            error = by_language.std(ddof=1) / np.sqrt(len(by_language))
            low, high = statistics.interval(mean, error)
        for model, value in printed.loc[row].set_index("model")["value"].items():
            of = "mean of the nine" if model == "AVG" else model
            yield (f"mean MEXA score, {how} over layers", _MEXA, "Table 1", of, float(value),
                   float(mean), float(low), float(high), differs)  # fmt: skip
