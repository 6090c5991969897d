"""The papers' sentences about training, depth and kinds of models, as differences with intervals.

Each is a number that could have come out otherwise: where a sentence is about the highest or lowest
of several scores, they are chosen on one half of the text and compared on the other (`turn`).
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from xlx import lengths, series, statistics
from xlx.lengths import LikeLength
from xlx.series import Measurement

#: MD among sentences of like length, beside the tasks of `xlx.abx`.
LIKE = "MD, like length"


def turn(
    history: Sequence[Measurement],
    task: str,
    groups: Sequence[str],
    *,
    embedding_layer: bool = True,
    seed: int | np.random.Generator = 0,
    level: float = statistics.LEVEL,
) -> pd.DataFrame:
    """Whether a score falls after its highest checkpoint, and rises again from its lowest.

    The highest of several noisy scores is above a later one by choice alone. So the two checkpoints
    (the highest, and the lowest from there on) are chosen on one half of the positions and compared
    on the other, the halves change places, and the two differences are averaged: of scores that
    differ by noise alone the result is as often negative as positive. Half a corpus is scored to
    first order, by the influence of its positions (see `statistics.jackknife_error`).

    Parameters
    ----------
    history : sequence of Measurement
        The checkpoints of one series, in the order of training.
    groups : sequence of str
        The document of each position: the halves share none, and the intervals are over documents.
    seed
        Of the halves.

    Returns
    -------
    DataFrame
        Two rows, ``change`` ("fall": highest less lowest; "recovery": last less lowest), ``value``,
        ``low``, ``high``, and ``highest`` and ``lowest``, the steps chosen, one of each half.
    """
    scores, influences = zip(
        *(series.mean(found, task, None, embedding_layer) for found in history), strict=True
    )
    influence = np.array(influences, dtype=np.float64)  # (checkpoints, sentences)
    names = np.array(sorted(set(groups)))
    drawn = np.random.default_rng(seed).permutation(names)[: len(names) // 2]
    first = np.isin(groups, drawn)
    steps = [found.step for found in history]
    chosen, changes, errors = [], [], []
    for half in (first, ~first):
        apart = influence[:, half] - influence.mean(axis=1, keepdims=True)
        seen = np.array(scores) + 2 * apart.mean(axis=1)
        high = int(seen.argmax())
        low = high + int(seen[high:].argmin())
        chosen.append((steps[high], steps[low]))
        own = np.array(groups)[~half]
        for one, other in ((high, low), (-1, low)):
            apart = 2 * (influence[one] - influence[other])
            changes.append(scores[one] - scores[other] + (apart[~half] - apart.mean()).mean())
            errors.append(statistics.grouped_error(apart[~half], own, order=1))
    value = np.mean(np.reshape(changes, (2, 2)), axis=0)
    df = len(names) - 2  # of the documents of both halves
    error = np.linalg.norm(np.reshape(errors, (2, 2)), axis=0) / 2
    width = stats.t.ppf((1 + level) / 2, df) * error
    highest, lowest = ([step for step in of_halves] for of_halves in zip(*chosen, strict=True))
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

    Parameters
    ----------
    history, groups, seed
        As for `turn`.
    like : two of LikeLength, optional
        Of the first and the last checkpoint: MD is then also asked for among sentences of like
        length.

    Returns
    -------
    DataFrame
        ``model``, ``claim``, ``difference``, ``low``, ``high``, ``holds`` (`statistics.verdict`).
        Intervals are over sentences, of the two rows of `turn` over documents.
    """
    first, last = history[0], history[-1]
    middle = (len(last.scores.layers) - 1) // 2 + 1
    options = {"embedding_layer": embedding_layer}
    fall, recovery = turn(history, "LD", groups, seed=seed, **options).to_dict("records")

    def lowest(task: str) -> dict[str, float]:
        scores = series.summarise(history, **options)
        least = scores[scores["task"] == task].nsmallest(1, "score")[["score", "low", "high"]]
        return dict(zip(("value", "low", "high"), least.iloc[0] - 0.5, strict=True))

    def layers(task: str, one: int, other: int) -> dict[str, float]:
        return series.difference(last, last, task, layers=[one], other_layers=[other])

    rows = {
        "LD above 0.5 at its lowest checkpoint": lowest("LD"),
        "MD above 0.5 at its lowest checkpoint": lowest("MD"),
        "LD falls after its highest checkpoint": fall,
        "LD recovers until the end": recovery,
        "MD rises from the first to the last checkpoint": series.difference(
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
            f"{LIKE}: rises from the first to the last checkpoint": lengths.difference(
                end, start, **options
            ),
            f"{LIKE}: middle layer above the embeddings": lengths.difference(
                end, end, layers=[middle], other_layers=[0]
            ),
        }
    return pd.DataFrame(
        [
            (last.model, claim, *(found[key] for key in ("value", "low", "high")))
            for claim, found in rows.items()
        ],
        columns=["model", "claim", "difference", "low", "high"],
    ).assign(holds=lambda rows: statistics.verdicts(rows["low"], rows["high"]))


def between(
    measured: Mapping[str, Measurement],
    references: Mapping[str, str],
    best: Mapping[str, int],
    like: Mapping[str, LikeLength],
    *,
    embedding_layer: bool = True,
) -> pd.DataFrame:
    """Models less their references, on the same sentences.

    Parameters
    ----------
    measured, like : mapping
        Model → its scores, and those among sentences of like length.
    references : mapping
        Model → the one that it is compared with.
    best : mapping
        Model → the layer that stands for it in "best layer of each".

    Returns
    -------
    DataFrame
        ``model``, ``reference``, ``layers`` ("mean over layers", "best layer of each"), ``task``
        ("LD", "MD", `LIKE`: mean over layers alone), ``value``, ``low``, ``high``.
    """
    rows = []
    for name, other in references.items():
        sides = {
            "mean over layers": (None, None),
            "best layer of each": ([best[name]], [best[other]]),
        }
        for layers, (own, its) in sides.items():
            options = {"layers": own, "other_layers": its, "embedding_layer": embedding_layer}
            for task in ("LD", "MD"):
                found = series.difference(measured[name], measured[other], task, **options)
                rows.append((name, other, layers, task, *found.values()))
            if own is None:
                found = lengths.difference(like[name], like[other], embedding_layer=embedding_layer)
                rows.append((name, other, layers, LIKE, *found.values()))
    columns = ["model", "reference", "layers", "task", "value", "low", "high"]
    return pd.DataFrame(rows, columns=columns)
