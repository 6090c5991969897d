"""What the papers print of the measures of a report: landmarks beside a model of one's own."""

import numpy as np
import pandas as pd

from xlx.measures import statistics
from xlx.report.tables import Measured
from xlx.results import paths


def printed_rows(measured: Measured) -> pd.DataFrame:
    """What the papers print of the same measures, and what it is here: landmarks, no references.

    First the correlation of LD and MD over pairs of languages, the mean of layers (ABX, section
    4.2), its interval over languages, and none with fewer than four; then the mean MEXA
    score over languages, each at its best layer, of the models of Table 1 on FLORES.
    """
    columns = [
        "quantity",
        "paper",
        "place",
        "printed_of",
        "printed",
        "here",
        "low",
        "high",
        "differs",
    ]
    table = pd.read_csv(paths.PUBLISHED / "abx" / "text_results.csv", index_col="claim_id")
    pairs = pd.DataFrame(measured.raw.pairs, columns=["language_1", "language_2"])
    for task in ("LD", "MD"):
        pairs[task] = measured.raw.scores[task].mean(axis=-1).mean(axis=0)
    here = (np.nan,) * 3
    if len(pairs) > 5 and pairs[["LD", "MD"]].nunique().min() > 1:
        r = statistics.correlation(pairs, "LD", "MD")
        here = r.value, r.low, r.high
    differs = f"pairs of {len(measured.corpus.languages)} languages, not of 36; other text"
    rows = [
        (
            "correlation of LD and MD over pairs, mean of layers",
            "de Seyssel et al. (2025)",
            "section 4.2",
            "XLM-R base, last checkpoint",
            float(table.loc["abx_t07", "value"]),
            *here,
            differs,
        )
    ]
    table = pd.read_csv(paths.PUBLISHED / "mexa" / "table1_performance_and_mexa.csv")
    table = table.query("group == 'FLORES' and item == 'mu_Max' and model != 'AVG'")
    mu = measured.mexa["raw"].pooled("max")["mu"]
    here = statistics.mean_interval(mu.to_numpy(), mu.index)
    differs = (
        f"{len(mu)} languages, not {table['n_languages'].dropna().iloc[0]:.0f}; "
        f"{len(measured.corpus)} sentences of this text, not 100 of FLORES-200 (MEXA falls with "
        f"more); {measured.model.pooling.replace('_', ' ')} of subwords"
    )
    paper = "mean MEXA score, max over layers", "Kargaran et al. (2025)", "Table 1"
    printed = table[["model", "value"]].itertuples(index=False)
    rows += [(*paper, *of_model, *here, differs) for of_model in printed]
    return pd.DataFrame(rows, columns=columns)


def beside_printed(measured: list[Measured]) -> pd.DataFrame:
    """`printed_rows` of several models, with ``model`` in front."""
    tables = [printed_rows(subject).assign(model=subject.model.label) for subject in measured]
    table = pd.concat(tables, ignore_index=True)
    return table[["model", *table.columns.drop("model")]]
