"""What the notebooks of IGAP share: recipes and windows of several tasks, and their curves."""

from collections.abc import Mapping, Sequence

import pandas as pd

from xlx.experiment.transfers import Transfers, one_label
from xlx.subjects.jobs import Recipe, Sparing


def make_recipes(
    epochs: Mapping[str, int],
    every: Mapping[str, int],
    learning_rates: Sequence[float],
    **options: object,
) -> dict[str, list[Recipe]]:
    """The recipes of each task, one a learning rate; ``options`` as of `Recipe`."""
    return {
        name: [
            Recipe(epochs=epochs[name], every=every[name], learning_rate=rate, **options)
            for rate in learning_rates
        ]
        for name in epochs
    }


def windows_of(levels: Sequence[float], tolerance: float, every: int | None = None) -> Sparing:
    """Ask what IGAP at these training errors needs, and everything after ``every`` steps."""
    return Sparing(tuple((level, tolerance) for level in levels), every)


def all_curves(
    measured: Mapping[str, Transfers], levels: Sequence[float], tolerance: float, **options: int
) -> pd.DataFrame:
    """`Transfers.curves` of all tasks; ``one_label``: the gap of a model that gives one label."""
    tables = []
    for of_task in measured.values():
        curves = of_task.curves(levels, tolerance, **options)
        tables.append(curves.assign(one_label=one_label(of_task.task) - curves["level"]))
    return pd.concat(tables, ignore_index=True)


def other_sources(gold: pd.DataFrame) -> pd.DataFrame:
    """The mean gold score of a target over all other sources, as a predictor.

    What can be known of a direction by the target alone; it needs labels in the target language, so
    it is no rival of a metric but says how much of the task is about directions at all.
    """
    across = gold[gold["source"] != gold["target"]]
    means = [
        across.loc[(across["target"] == target) & (across["source"] != source), "score"].mean()
        for source, target in gold[["source", "target"]].itertuples(index=False)
    ]
    return gold[["source", "target"]].assign(metric="other sources", score=means)
