"""What the ABX paper says of training and depth (section 4.2), as differences with intervals.

Each row is a number that could have come out otherwise. Where a sentence is about the highest or
lowest of several checkpoints, they are chosen on one half of the documents and compared on the
other (`reversal`): the highest of several noisy scores is above a later one by choice alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy import stats

from xlx.abx.averages import Average, average
from xlx.abx.checkpoint_scores import MATCHED, CheckpointScores
from xlx.core import statistics


def reversal(
    course: Sequence[Average], *, seed: int | np.random.Generator = 0
) -> tuple[dict[str, object], dict[str, object]]:
    """Whether a score falls after its highest checkpoint, and rises again from its lowest.

    ``course``: the score of each checkpoint in turn, on one text. The highest, and the lowest from
    there on, are chosen on one half of the groups of the text (documents) and compared on the
    other, the halves change places, and the two differences are averaged: of scores that differ by
    noise alone the result is as often negative as positive. ``seed`` draws the halves.

    Returns the fall (highest less lowest) and the recovery (last less lowest): ``value``, ``low``,
    ``high`` (95 %), ``highest``, ``lowest`` (their places in the course, one a half).
    """
    n_groups = len(course[0].sizes)
    first = np.zeros(n_groups, dtype=bool)
    first[np.random.default_rng(seed).permutation(n_groups)[: n_groups // 2]] = True
    chosen, changes = [], []
    for half in (first, ~first):
        seen = np.array([float(score.within(half).score) for score in course])
        high = int(seen.argmax())
        low = high + int(seen[high:].argmin())
        chosen.append((high, low))
        changes.append([(course[upper] - course[low]).within(~half) for upper in (high, -1)])
    highest, lowest = map(list, zip(*chosen, strict=True))
    quantile = stats.t.ppf((1 + statistics.LEVEL) / 2, n_groups - 2)  # the groups of both halves
    rows = []
    for halves in zip(*changes, strict=True):
        value = float(np.mean([change.score for change in halves]))
        width = quantile * float(np.linalg.norm([change.error for change in halves])) / 2
        ends = {"value": value, "low": value - width, "high": value + width}
        rows.append(ends | {"highest": highest, "lowest": lowest})
    return rows[0], rows[1]


def _ends(difference: Average) -> dict[str, float]:
    low, high = difference.interval()
    return {"value": float(difference.score), "low": float(low), "high": float(high)}


def section_claims(
    history: Sequence[CheckpointScores],
    *,
    embedding_layer: bool = True,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """The sentences of section 4.2 on one series, in the order of training, intervals by document.

    MD is scored plain and among sentences of like length. "Middle" is the layer just above half of
    the depth; ``seed`` as for `reversal`.

    Returns ``model``, ``claim``, ``difference``, ``low``, ``high``, ``holds``
    (`statistics.verdicts`).
    """
    last = history[-1]
    middle = (len(last.scores.layers) - 1) // 2 + 1
    courses = {
        task: [average(of, task, embedding_layer=embedding_layer) for of in history]
        for task in ("LD", "MD", MATCHED)
    }

    def layers(task: str, upper: int, lower: int) -> dict[str, float]:
        at_upper, at_lower = (average(last, task, layers=[layer]) for layer in (upper, lower))
        return _ends(at_upper - at_lower)

    rows: dict[str, Mapping[str, object]] = {}
    for task, course in courses.items():
        lowest = min(course, key=lambda score: float(score.score))
        above = replace(lowest, score=lowest.score - 0.5)
        rows[f"{task} above 0.5 at its lowest checkpoint"] = _ends(above)
    fall, recovery = reversal(courses["LD"], seed=seed)
    rows["LD falls after its highest checkpoint"] = fall
    rows["LD recovers until the end"] = recovery
    rows["LD: first layer above the middle one"] = layers("LD", 1, middle)
    rows["LD: last layer above the one before"] = layers("LD", -1, -2)
    for task in ("MD", MATCHED):
        course = courses[task]
        rows[f"{task} rises from the first to the last checkpoint"] = _ends(course[-1] - course[0])
        rows[f"{task}: middle layer above the embeddings"] = layers(task, middle, 0)
        rows[f"{task}: last layer below the one before"] = layers(task, -2, -1)
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("claim").reset_index()
    table = table.rename(columns={"value": "difference"}).assign(model=last.model)
    table["holds"] = statistics.verdicts(table["low"], table["high"])
    return table[["model", "claim", "difference", "low", "high", "holds"]]
