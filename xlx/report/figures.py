"""The figures of a report, from its tables: the same on the page and in the notebook."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from xlx.experiment.abx_scores import MATCHED
from xlx.plots import report
from xlx.report.pivot_alignment import band_kinds, best_layer_rows, kind_of_language, tile_places
from xlx.report.predicted_tasks import ALIGNMENTS

#: Languages that a figure has room for.
_MOST = 60
_MOST_PAIRED, _MOST_WRITTEN = 40, 40
#: Figure → the table that its numbers are in, where that is called otherwise.
SHOWN_TABLE = {"tiles": "coverage", "bands": "coverage", "tasks": "task_points"}


def report_figures(tables: Mapping[str, pd.DataFrame]) -> dict[str, Callable[[], Any]]:
    """Name → what draws the figure, in the order of the page; of tables not there, none."""
    coverage = best_layer_rows(tables["coverage"])
    ranked = coverage.groupby("language")["mu"].mean().sort_values(ascending=False, kind="stable")
    ends = list(ranked.index)
    if len(ends) > _MOST:
        ends = [*ends[: _MOST // 2], *ends[-_MOST // 2 :]]
    covered = coverage[coverage["language"].isin(ends)]
    drawn = {
        "layers": partial(report.by_layer, tables["layers"]),
        "references": partial(report.beside_references, tables["references"]),
        "coverage": partial(report.covered_languages, covered),
        "tiles": partial(report.language_tiles, tile_places(tables["coverage"])),
        "bands": partial(report.bands_by_kind, band_kinds(tables["coverage"])),
        "retrieval": partial(report.both_ways, _directions(tables, ends)),
        "pairs": partial(report.pairs_apart, _near_kin(tables["pairs"])),
    }
    if "task_points" in tables:
        drawn["tasks"] = partial(report.predicted_tasks, *_first_predictor(tables))
    if len(tables.get("probes", ())):
        drawn["probes"] = partial(report.probed_languages, tables["probes"])
    return drawn


def _directions(tables: Mapping[str, pd.DataFrame], ends: list[str]) -> pd.DataFrame:
    """Retrieval from the pivot into each language, and back, the best covered first."""
    pivot, ways = tables["coverage"]["pivot"].iloc[0], tables["retrieval"]
    directions = pd.concat(
        ways[ways[side] == pivot].assign(language=ways[other], direction=f"{word} {pivot}")
        for side, other, word in (("query", "among", "from"), ("among", "query", "to"))
    )
    directions = directions[directions["language"].isin(ends)]
    return directions.sort_values(
        "language", key=lambda codes: codes.map(ends.index), kind="stable"
    )


def _near_kin(pairs: pd.DataFrame) -> pd.DataFrame:
    """MD among sentences of like length of pairs, languages by script and family."""
    pairs = pairs[pairs["task"] == MATCHED]
    codes = dict.fromkeys([*pairs["language_1"], *pairs["language_2"]])
    kin = sorted(codes, key=lambda code: (kind_of_language(code)[::-1], code))[:_MOST_PAIRED]
    pairs = pairs[pairs["language_1"].isin(kin) & pairs["language_2"].isin(kin)]
    places = pairs[["language_1", "language_2"]].apply(lambda column: column.map(kin.index))
    places = np.sort(places.to_numpy(), axis=1)
    pairs = pairs.assign(**{f"language_{i + 1}": [kin[k] for k in places[:, i]] for i in (0, 1)})
    return pairs.iloc[places[:, 0].argsort(kind="stable")]


def _first_predictor(tables: Mapping[str, pd.DataFrame]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Points of the alignment that stands first, and the ends of their lines."""
    points, fits = (
        tables[name][tables[name]["predictor"] == next(iter(ALIGNMENTS))]
        for name in ("task_points", "task_fits")
    )
    keys = ["model", "task"]
    spans = points.groupby(keys, sort=False)["mu"].agg(["min", "max"]).reset_index()
    lines = pd.concat([spans.assign(x=spans[end]) for end in ("min", "max")])
    lines = lines.merge(fits[[*keys, "slope", "intercept"]], on=keys)
    crowded = points["language"].nunique() > _MOST_WRITTEN
    points = points.assign(written="" if crowded else points["language"])
    return points, lines.assign(y=lines["intercept"] + lines["slope"] * lines["x"])
