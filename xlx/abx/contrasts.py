"""The papers' sentences about training, depth and kinds of models, as differences with intervals.

Each is a number that could have come out otherwise: where a sentence is about the highest or lowest
of several scores, they are chosen on one half of the text and compared on the other (`turn`).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from xlx.abx import series
from xlx.abx.lengths import MD_LIKE_LENGTH, LikeLength
from xlx.abx.measurement import Measurement
from xlx.abx.series import score_difference
from xlx.core import statistics


def turn(
    history: Sequence[Measurement],
    task: str,
    groups: Sequence[str],
    *,
    embedding_layer: bool = True,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """Whether a score falls after its highest checkpoint, and rises again from its lowest.

    The highest of several noisy scores is above a later one by choice alone. So the two checkpoints
    (the highest, and the lowest from there on) are chosen on one half of the positions and compared
    on the other, the halves change places, and the two differences are averaged: of scores that
    differ by noise alone the result is as often negative as positive. Half a corpus is scored to
    first order, by the influence of its positions (see `statistics.jackknife_error`).

    ``history`` is in the order of training; ``groups`` names the document of each position: the
    halves, which ``seed`` draws, share none, and the 95 % intervals are over documents.

    Returns two rows, ``change`` ("fall": highest less lowest; "recovery": last less lowest),
    ``value``, ``low``, ``high``, and ``highest`` and ``lowest`` (the steps, one of each half).
    """
    means = [measured.mean(task, None, embedding_layer) for measured in history]
    scores = np.array([score for score, _ in means])
    influence = np.array([of_step for _, of_step in means], dtype=np.float64)  # (steps, sentences)
    names = np.array(sorted(set(groups)))
    drawn = np.random.default_rng(seed).permutation(names)[: len(names) // 2]
    first = np.isin(groups, drawn)
    chosen, changes, errors = [], [], []
    for half in (first, ~first):
        apart = influence[:, half] - influence.mean(axis=1, keepdims=True)
        seen = scores + 2 * apart.mean(axis=1)
        high = int(seen.argmax())
        low = high + int(seen[high:].argmin())
        chosen.append((history[high].step, history[low].step))
        for upper in (high, -1):
            apart = 2 * (influence[upper] - influence[low])
            changes.append(scores[upper] - scores[low] + (apart[~half] - apart.mean()).mean())
            errors.append(statistics.grouped_error(apart[~half], np.array(groups)[~half], order=1))
    value = np.mean(np.reshape(changes, (2, 2)), axis=0)
    error = np.linalg.norm(np.reshape(errors, (2, 2)), axis=0) / 2
    df = len(names) - 2  # of the documents of both halves
    width = stats.t.ppf((1 + statistics.LEVEL) / 2, df) * error
    highest, lowest = map(list, zip(*chosen, strict=True))
    return pd.DataFrame(
        {
            "change": ["fall", "recovery"],
            "value": value,
            "low": value - width,
            "high": value + width,
            "highest": [highest] * 2,
            "lowest": [lowest] * 2,
        }
    )


def claims(
    history: Sequence[Measurement],
    groups: Sequence[str],
    like: tuple[LikeLength, LikeLength] | None = None,
    *,
    embedding_layer: bool = True,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """The sentences of the ABX paper, section 4.2, on one series.

    ``history``, ``groups`` and ``seed`` as for `turn`; with ``like``, of the first and the last
    checkpoint, MD is also asked for among sentences of like length.

    Returns ``model``, ``claim``, ``difference``, ``low``, ``high``, ``holds``
    (`statistics.verdict`). Intervals are over sentences, of the two rows of `turn` over documents.
    """
    first, last = history[0], history[-1]
    middle = (len(last.scores.layers) - 1) // 2 + 1
    options = {"embedding_layer": embedding_layer}
    fall, recovery = turn(history, "LD", groups, seed=seed, **options).to_dict("records")
    scores = series.summarise(history, **options)

    def lowest(task: str) -> dict[str, float]:
        least = scores[scores["task"] == task].nsmallest(1, "score")[["score", "low", "high"]]
        return dict(zip(("value", "low", "high"), least.iloc[0] - 0.5, strict=True))

    def layers(task: str, upper: int, lower: int) -> dict[str, float]:
        return score_difference(last, last, task, layers=[upper], other_layers=[lower])

    rows = {
        "LD above 0.5 at its lowest checkpoint": lowest("LD"),
        "MD above 0.5 at its lowest checkpoint": lowest("MD"),
        "LD falls after its highest checkpoint": fall,
        "LD recovers until the end": recovery,
        "MD rises from the first to the last checkpoint": score_difference(
            last, first, "MD", **options
        ),
        "LD: first layer above the middle one": layers("LD", 1, middle),
        "LD: last layer above the one before": layers("LD", -1, -2),
        "MD: middle layer above the embeddings": layers("MD", middle, 0),
        "MD: last layer below the one before": layers("MD", -2, -1),
    }
    if like is not None:
        start, end = like
        rows |= {
            f"{MD_LIKE_LENGTH}: rises from the first to the last checkpoint": score_difference(
                end, start, MD_LIKE_LENGTH, **options
            ),
            f"{MD_LIKE_LENGTH}: middle layer above the embeddings": score_difference(
                end, end, MD_LIKE_LENGTH, layers=[middle], other_layers=[0]
            ),
        }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis("claim").reset_index()
    table = table.rename(columns={"value": "difference"}).assign(model=last.model)
    table["holds"] = statistics.verdicts(table["low"], table["high"])
    return table[["model", "claim", "difference", "low", "high", "holds"]]


def between(
    measured: Mapping[str, Measurement],
    references: Mapping[str, str],
    best: Mapping[str, int],
    like: Mapping[str, LikeLength],
    *,
    embedding_layer: bool = True,
) -> pd.DataFrame:
    """Models less their references (model → the one it is compared with), on the same sentences.

    ``measured`` and ``like``: model → its scores, and those among sentences of like length;
    ``best``: model → the layer that stands for it in "best layer of each".

    Returns ``model``, ``reference``, ``layers`` ("mean over layers", "best layer of each"),
    ``task`` ("LD", "MD", `MD_LIKE_LENGTH`: mean over layers alone), ``value``, ``low``, ``high``.
    """
    rows = []
    for name, other in references.items():
        pairs = {task: (measured[name], measured[other]) for task in ("LD", "MD")}
        pairs[MD_LIKE_LENGTH] = (like[name], like[other])
        for task, (first, second) in pairs.items():
            change = score_difference(first, second, task, embedding_layer=embedding_layer)
            rows.append((name, other, "mean over layers", task, *change.values()))
        for task in ("LD", "MD"):
            change = score_difference(
                *pairs[task], task, layers=[best[name]], other_layers=[best[other]]
            )
            rows.append((name, other, "best layer of each", task, *change.values()))
    columns = ["model", "reference", "layers", "task", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns)
