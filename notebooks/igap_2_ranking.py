"""Metrics that rank the directions of transfer (Table 1 of the IGAP paper)."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from xlx.measures import igap
from xlx.plots.panels import order
from xlx.plots.primitives import lanes
from xlx.plots.style import BLUE, GUESSING, VERMILION, look, styled


def rank_metrics(
    golds: Mapping[tuple[str, str], igap.Gold], predicted: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """`rank_directions` and `permuted_languages` of each order, with ``model`` and ``gold``.

    Beside the metrics the order that the other sources give; sources without a model in the window
    are left out. ValueError where none is left.
    """
    tables = []
    for (model, name), gold in golds.items():
        metrics = pd.concat([predicted[model], igap.other_sources(gold.table)])
        known = metrics[metrics["metric"] == "IGAP"].dropna(subset="score")["source"]
        kept = gold.table["source"].isin(known)
        if not kept.any():
            raise ValueError(
                f"{model} has in no source a training error within the tolerance of 0, so that it "
                "has no IGAP: raise the tolerance, the epochs or the learning rate"
            )
        table, resamples = gold.table[kept], gold.resamples[:, kept.to_numpy()]
        ranked = igap.rank_directions(table, metrics, resamples=resamples)
        permuted = igap.permuted_languages(table, metrics).drop(columns="accuracy")
        tables.append(ranked.merge(permuted, on="metric").assign(model=model, gold=name))
    return pd.concat(tables, ignore_index=True)


@styled
def ranking_dots(
    table: pd.DataFrame, means: pd.DataFrame, *, printed: Mapping[str, float]
) -> Figure:
    """Accuracy of transfer-direction ranking, a row a metric, a point a source (Tables 1 and 5).

    Both tables have ``metric`` and ``accuracy`` (Equation 6), the first by source. Those of
    ``means`` are drawn in black below the points, with ``low`` and ``high``, and grey around them
    ``random_low`` and ``random_high``, the interval with the languages permuted
    (`permuted_languages`). ``printed`` maps metrics to the mean that the paper prints (hollow).
    """
    metrics = order(table, "metric")
    shown = {"item": "metric", "value": "accuracy", "items": metrics, "scale": 100}
    on = lanes(table, shift=-0.13, low="", looks={None: look(BLUE, "o")}, alpha=0.75, spread=0.35,
               labels={None: "a source"}, width=5.2, lane=0.3, **shown)  # fmt: skip
    lanes(means, on=on, shift=0.28, looks={None: look("black", "o")}, capsize=3,
          labels={None: "mean, with interval"}, **shown)  # fmt: skip
    printed = pd.DataFrame(printed.items(), columns=["metric", "accuracy"])
    lanes(printed, on=on, shift=0.28, looks={None: look(VERMILION, "D", hollow=True)},
          labels={None: "mean, printed"}, **shown)  # fmt: skip
    (axes,) = on.axes.values()
    axes.axvline(50, **GUESSING, label="chance")
    width = 100 * (means["random_high"] - means["random_low"])
    axes.barh(means["metric"].map(metrics.index) + 0.28, width, 0.3, 100 * means["random_low"],
              color="0.87", zorder=0, label="mean, languages permuted")  # fmt: skip
    return on.done("accuracy of transfer-direction ranking (% of pairs of targets in order)")
