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
from xlx.abx.measurement import Measurement, influence_order
from xlx.core import statistics


def score_difference(
    first: Measurement | LikeLength,
    second: Measurement | LikeLength,
    task: str,
    *,
    layers: Sequence[int] | None = None,
    other_layers: Sequence[int] | None = None,
    embedding_layer: bool = True,
) -> dict[str, float]:
    """Mean score of the first minus that of the second: ``value``, ``low``, ``high`` (95 %).

    Both are means over all pairs; each over its own layers, as in `series.summarise`. The same
    sentences are behind both, so the interval is narrower than those of the two scores suggest.
    ValueError for a task or layer that there is not, and for measurements of other text.
    """
    if first.texts != second.texts:
        raise ValueError(
            "the two measurements are of other languages or sentences: measure both models on one "
            "corpus"
        )
    score, influence = first.mean(task, layers, embedding_layer)
    other_score, other_influence = second.mean(task, other_layers, embedding_layer)
    error = statistics.jackknife_error(influence - other_influence, influence_order(task))
    width, value = float(statistics.half_width(error)), score - other_score
    return {"value": value, "low": value - width, "high": value + width}


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
    first order, by the influence of its positions (`statistics.jackknife_error`). The halves, which
    ``seed`` draws, share no document (``groups``: that of each position).

    Returns two rows, ``change`` ("fall": highest less lowest; "recovery": last less lowest),
    ``value``, ``low``, ``high`` (95 %, over documents), ``highest`` and ``lowest`` (a step a half).
    """
    means = [measured.mean(task, None, embedding_layer) for measured in history]
    scores = np.array([score for score, _ in means])
    influence = np.array([of_step for _, of_step in means], dtype=np.float64)  # (steps, sentences)
    names = np.unique(groups)
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
    # degrees of freedom: the documents of both halves
    width = stats.t.ppf((1 + statistics.LEVEL) / 2, len(names) - 2) * error
    highest, lowest = map(list, zip(*chosen, strict=True))
    table = pd.DataFrame({"change": ["fall", "recovery"], "value": value})
    table["low"], table["high"] = value - width, value + width
    return table.assign(highest=[highest] * 2, lowest=[lowest] * 2)


def claims(
    history: Sequence[Measurement],
    groups: Sequence[str],
    like: tuple[LikeLength, LikeLength],
    *,
    embedding_layer: bool = True,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """The sentences of the ABX paper, section 4.2, on one series.

    ``history``, ``groups`` and ``seed`` as for `turn`; ``like``: MD among sentences of like length,
    of the first and the last checkpoint.

    Returns ``model``, ``claim``, ``difference``, ``low``, ``high``, ``holds``
    (`statistics.verdicts`). Intervals are over sentences, of the rows of `turn` over documents.
    """
    first, last = history[0], history[-1]
    middle = (len(last.scores.layers) - 1) // 2 + 1
    options = {"embedding_layer": embedding_layer}
    fall, recovery = turn(history, "LD", groups, seed=seed, **options).to_dict("records")
    scores = series.summarise(history, **options)

    def lowest(task: str) -> dict[str, float]:
        least = scores[scores["task"] == task].nsmallest(1, "score")[["score", "low", "high"]]
        return dict(zip(("value", "low", "high"), least.iloc[0] - 0.5, strict=True))

    def layers(task: str, upper: int, lower: int, of: Measurement | LikeLength = last) -> dict:
        return score_difference(of, of, task, layers=[upper], other_layers=[lower])

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
        f"{MD_LIKE_LENGTH}: rises from the first to the last checkpoint": score_difference(
            like[1], like[0], MD_LIKE_LENGTH, **options
        ),
        f"{MD_LIKE_LENGTH}: middle layer above the embeddings": layers(
            MD_LIKE_LENGTH, middle, 0, like[1]
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
        mean = {"embedding_layer": embedding_layer}
        at_best = {"layers": [best[name]], "other_layers": [best[other]]}
        for layers, task, scores, options in (
            ("mean over layers", "LD", measured, mean),
            ("mean over layers", "MD", measured, mean),
            ("mean over layers", MD_LIKE_LENGTH, like, mean),
            ("best layer of each", "LD", measured, at_best),
            ("best layer of each", "MD", measured, at_best),
        ):
            head = {"model": name, "reference": other, "layers": layers, "task": task}
            rows.append(head | score_difference(scores[name], scores[other], task, **options))
    return pd.DataFrame(rows)
