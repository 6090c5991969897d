"""Orders of target languages: Equation 6 of the IGAP paper, and what a target alone gives.

Scores are by source and target, and high is good.
"""

import numpy as np
import pandas as pd

from xlx.measures import igap


def other_sources(scores: pd.Series) -> pd.Series:
    """Of each direction the mean score of its target over all other sources; NaN without one.

    What can be known of a direction by the target alone; as a predictor of accuracy it needs labels
    in the target language.
    """
    same = scores.groupby(level="target")
    return (same.transform("sum") - scores) / (same.transform("count") - 1)


def accuracies(gold: pd.Series, scores: pd.DataFrame) -> pd.DataFrame:
    """Ranking accuracy (Equation 6) of each metric, a row per source; NaN without all scores."""
    rows = {}
    for source, of_source in scores.groupby(level="source", sort=False):
        truth = gold.loc[of_source.index].to_numpy()
        predicted = of_source.to_numpy(float).T
        rows[source] = [
            np.nan if np.isnan(x).any() else igap.ranking_accuracy(truth, x) for x in predicted
        ]
    return pd.DataFrame(rows, scores.columns).T


def extreme_sources(gaps: pd.Series) -> dict[str, object]:
    """Of gaps by direction, as in the printed Figure 6: how often a source is best and worst."""
    known = gaps.dropna().groupby(level="target", sort=False)
    best, worst = (
        ", ".join(f"{code} {n}" for code, n in pairs.str[0].value_counts().items()) or "none"
        for pairs in (known.idxmin(), known.idxmax())
    )
    return {
        "directions": gaps.count(),
        "below 0": (gaps < 0).sum(),
        "best source (of how many targets)": best,
        "worst source": worst,
    }
