"""What the audit of the IGAP paper comes to, in sentences and a figure."""

import pandas as pd
from matplotlib.figure import Figure

from printed.igap_claims import IgapTables
from printed.printed_tables import Audit
from shared.shown import listed
from xlx.plots.primitives import Lanes, lanes
from xlx.plots.style import styled


def in_short(audit: Audit) -> str:
    """How many numbers agree, and what the claims come to.

    Averages were tested with two divisors, so one that fits either of them agrees.
    """
    verdicts, table = audit.claims["verdict"].value_counts(), audit.numbers["table"]
    averages = table.str.contains(", averages ")
    right = audit.numbers["agrees"]
    by_less = (right & table.str.contains("averages by n - 1")).sum()
    n_averages = averages.sum() // 2
    all_right = "All" if right.sum() == len(right) - n_averages else f"{right.sum()} of"
    plural = {"holds": "hold", "holds in part": "hold in part", "does not hold": "do not hold"}
    counted = ", ".join(f"{n} {plural.get(verdict, verdict)}" for verdict, n in verdicts.items())
    return (
        f"{all_right} {len(right) - n_averages} printed numbers agree with what other printed "
        f"numbers give, but averages need two divisors: {by_less} of {n_averages} are sums over "
        f"n - 1. Of {len(audit.claims)} claims made in words {counted}."
    )


def reading(p: IgapTables) -> list[str]:
    """One finding per sentence."""
    changes, orders = p.row_changes(), p.other_sources_order()
    row = changes.loc[("XNLI", "XLM-R → InfoXLM")]
    ease, counts = p.gap_by_ease, p.ranking_counts.loc["IGAP"]
    averages = p.recomputed_averages.loc["XNLI"]
    whole = averages["divisor"] == averages["n"].astype(str)
    return [
        f"**Averages.** Within Table 6 the average of {listed([*averages.index[whole]])} is a sum "
        f"over n, that of {(~whole).sum()} other rows over n - 1. So not even rows of one table "
        "can be compared.",
        f"**InfoXLM** is {row['alike']:.1f} points better than XLM-R on XNLI, not "
        f"{row['printed']:.1f}; the examples leave open {row['widest']}.",
        f"**Ranking.** IGAP is beyond random orders in {counts['beyond random orders']:.0f} of 15 "
        f"sources and has {counts['recomputed']:.1f} % of the pairs right. The mean of the other "
        f"sources has {orders['mean']:.1f} % of those of Figure 6, with labels in the targets.",
        f"**Directions.** A term for the source and one for the target explain {ease.iloc[0]:.1f} "
        "% of the variance of Figure 6, so hardly anything is left for the direction itself.",
        f"**Random labels** leave {p.left_at_1:.1f} points of training error, more than the window "
        "of IGAP allows, so accuracy and IGAP are not of the same models.",
    ]


@styled
def printed_averages(table: pd.DataFrame) -> Figure:
    """IGAP averaged over targets, one row per model, as printed and over all targets alike.

    ``table`` is of `IgapTables.drawn_averages`: ``task`` (a panel), ``row``, ``kind``, ``value``,
    ``low`` and ``high`` (missing where there is no interval), in [0, 1].
    """
    style = Lanes(scale=100, lane=0.1, width=2.7)
    on = lanes(table, "value", "row", hue="kind", col="task", style=style)
    return on.done("IGAP, mean over targets (points)")
