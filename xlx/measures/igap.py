"""Transferability: how much of what a model learnt in one language is lost in another.

Of a model fine-tuned in a source language, the error in a target language is the sum of three
parts (`decompose`): what it has not learnt of its training set, what it loses when the same
examples come translated, and what it loses on new examples. The second, at a fixed value of the
first, is IGAP, the interlingual transfer gap (`igap_curve`). Errors and accuracies are in [0, 1];
given is which answers are wrong: boolean arrays, a row per fine-tuned model (a checkpoint of a
run), a column per example.

Chi, Huang and Mao, "Measuring Cross-Lingual Transferability of Multilingual Transformers on
Sentence Classification"; equations are numbered as there.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy import ndarray
from pandas import DataFrame

from xlx.measures import statistics
from xlx.measures.statistics import SLACK
from xlx.results import checks
from xlx.results.deferred import deferred

stats = deferred("scipy.stats")

#: Training errors E' of the curves (section 4.1), from 0.2 to 0.
TRAINING_ERRORS = tuple(round(0.2 - 0.025 * step, 3) for step in range(9))
#: ε, how far above E' a training error may be, of the curves (section 4.1) and of the tables, with
#: E' = 0 (section 5.1): up to 1000 examples, that is no error at all.
TOLERANCE = 0.025
FITTED = 0.001
#: The row of a table that holds the mean over languages.
MEAN_TARGET = "mean"


@dataclass(frozen=True)
class Decomposition:
    """The cross-lingual error and its three parts, each ``(...)``, one per fine-tuned model.

    ``error``, on the validation set of the target (Equation 3), is the sum of ``interlingual``,
    G_inter, lost between the training set and its translation, in [-1, 1]; ``intralingual``,
    G_intra, lost between that and the validation set, in [-1, 1]; and ``training``, E_train.
    """

    error: ndarray
    interlingual: ndarray
    intralingual: ndarray
    training: ndarray


@checks.typed()
def decompose(training: ndarray, translated: ndarray, target: ndarray) -> Decomposition:
    """Take the cross-lingual error apart (Equations 3 and 4).

    ``training`` and ``translated``, boolean ``(..., n_train)``: which answers are wrong on the
    training set, in the source language and translated to the target; ``target``, ``(..., n_val)``,
    on the validation set of the target. The axes before the last are broadcast. Each number is the
    float nearest to its fraction. ValueError for what is not boolean, or empty, or does not fit.
    """
    s, t = count_true(training, "training"), count_true(translated, "translated")
    v = count_true(target, "target")
    n, n_translated, n_val = (x.shape[-1] for x in (training, translated, target))
    if n != n_translated:
        raise ValueError(
            f"the training set has {n} examples and its translation {n_translated}: align them"
        )
    try:
        s, t, v = np.broadcast_arrays(s, t, v)
    except ValueError:
        shapes = ", ".join(str(np.shape(array)) for array in (training, translated, target))
        raise ValueError(f"the answers are not of the same models: shapes {shapes}") from None
    # One division of whole numbers each, so that no digit is lost before the last.
    return Decomposition(v / n_val, (t - s) / n, (v * n - t * n_val) / (n * n_val), s / n)


@checks.typed()
def transfer_gap(source_right: ndarray, target_right: ndarray) -> ndarray:
    """Cross-lingual transfer gap (Equation 2, the metric M being accuracy), in [-1, 1].

    Boolean ``(..., n_source)`` and ``(..., n_target)``: which answers on the validation sets of the
    two languages are right. ValueError where they are not boolean, or empty.
    """
    s, t = count_true(source_right, "source_right"), count_true(target_right, "target_right")
    n_source, n_target = source_right.shape[-1], target_right.shape[-1]
    return (s * n_target - t * n_source) / (n_source * n_target)


def count_true(answers: ndarray, name: str) -> ndarray:
    """How many of the last axis are True; ValueError for what is not boolean, or empty."""
    if answers.dtype.kind != "b":
        raise ValueError(f"{name} must be a boolean array: give predictions != labels")
    if answers.ndim == 0 or answers.shape[-1] == 0:
        raise ValueError(f"{name} has no examples: its shape is {answers.shape}")
    return answers.sum(-1)


@checks.typed()
def igap_curve(
    training: ndarray,
    translated: Mapping[str, ndarray],
    seeds: Sequence[Hashable],
    levels: Sequence[float] = TRAINING_ERRORS,
    tolerance: float = TOLERANCE,
    *,
    groups: Sequence[int] | ndarray | None = None,
) -> DataFrame:
    """IGAP (Equation 5) over training errors, for each target and their mean (Figure 1b).

    ``training`` is boolean ``(m, n)``: which of the n training examples each of the m fine-tuned
    models gets wrong in the source language; ``translated``: target language → the same of their
    translations; ``seeds``: ``(m,)``, the seed of each model; ``levels`` and ``tolerance``: the
    training errors E' and ε; ``groups``, ``(n,)``: which examples hang together (None: none do).

    A minimum over noisy gaps is lower than the gap of the model that has it. The interval is about
    other examples and not about other models: that of a mean over groups (`crossed_interval`), of
    the model that has the minimum, as to choose another one changes a minimum by nothing in the
    first order (envelope theorem). In simulations 94 to 99 % of such intervals hold the mean of the
    minimum over sets of examples.

    One row per ``target`` and ``level`` (E'), then the target "mean": of the mean over targets,
    each with a minimum of its own. ``igap``, ``low``, ``high``; ``n_models`` and ``n_seeds`` in the
    window. All but the two counts NaN where no model is in the window.

    ValueError for what is not boolean; unequal models or examples; no targets; fewer than two
    groups of examples; a tolerance of zero or less.
    """
    seeds = np.asarray(seeds)
    if training.ndim != 2 or seeds.shape != training.shape[:1]:
        raise ValueError(
            f"training has shape {training.shape} and there are {seeds.size} seeds: give (models, "
            "examples) and one seed per model"
        )
    if not translated:
        raise ValueError("there are no target languages: give the translated training set of one")
    for language, array in {"the source": training, **translated}.items():
        count_true(array, f"what is wrong in {language}")
        if array.shape != training.shape:
            raise ValueError(
                f"training has shape {training.shape} and its translation to {language} "
                f"{array.shape}: both must be of the same models and examples"
            )
    error = training.mean(1)
    windows = np.array([statistics.window(error, value, tolerance) for value in levels])
    windows = windows.reshape(len(levels), len(seeds))
    groups = np.arange(training.shape[1]) if groups is None else groups
    # summed exactly: whole numbers below 2²⁴
    lost = [_least_lost(x.astype(np.float32) - training, windows) for x in translated.values()]
    tables = []
    for target, least in zip([*translated, MEAN_TARGET], [*lost, np.mean(lost, 0)], strict=True):
        ends = [crossed_interval(values, groups) for values in least]
        columns = {
            "target": target,
            "level": np.round(np.asarray(levels, float), 12),
            **dict(zip(("igap", "low", "high"), np.reshape(ends, (-1, 3)).T, strict=True)),
            "n_models": windows.sum(1),
            "n_seeds": [len(pd.unique(seeds[window])) for window in windows],
        }
        tables.append(DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def _least_lost(lost: ndarray, windows: ndarray) -> ndarray:
    """Of one target, what the model with the least gap in each window loses, by example.

    ``lost`` is ``(m, n)``: 1 where an example is lost in translation, -1 where it is gained.
    """
    whole, least = lost.sum(1, dtype=float), np.full((len(windows), lost.shape[1]), np.nan)
    for row, window in zip(least, windows, strict=True):
        if window.any():
            row[:] = lost[np.where(window, whole, np.inf).argmin()]
    return least


def crossed_interval(values: ndarray, groups: ndarray) -> tuple[float, float, float]:
    """The mean of ``values``, ``(S, n)``, and its 95 % interval over seeds and examples.

    ``values`` has one row per seed of the same n examples, and ``groups``, ``(n,)``, tells which of
    these hang together (a premise has three hypotheses). Seeds, groups and what is left are three
    sources of variance (two-way analysis, Searle, Casella and McCulloch 1992); Student's t with
    Satterthwaite's degrees of freedom. With one seed it is over the groups alone. In simulations
    that holds 95 % with five seeds, 93 with three that differ much, 88 to 91 with two; with one and
    a group much larger than the others 68 to 83 (`mixing.averages` holds more). ValueError for
    fewer than two groups, or groups of other examples.
    """
    values = np.atleast_2d(np.asarray(values, float))
    n_seeds, n = values.shape
    _, places = np.unique(groups, return_inverse=True)
    n_groups = places.max(initial=-1) + 1
    if len(places) != n or n_groups < 2:
        raise ValueError(f"{n} examples and {len(places)} places in {n_groups} groups, not two")
    means = values.mean(1, keepdims=True)
    sums = np.array([np.bincount(places, row, n_groups) for row in values - means])
    apart = sums * n_groups / n  # a group's part of the mean; groups need not be of one size
    mean = float(means.mean())
    by_group = n_seeds * apart.mean(0).var(ddof=1)
    freedom, total = n_groups - 1.0, by_group
    if n_seeds > 1:
        by_seed = n_groups * means.var(ddof=1)
        left = ((apart - apart.mean(0)) ** 2).sum() / ((n_seeds - 1) * (n_groups - 1))
        if by_seed > left:
            total = by_group + by_seed - left
            squares = by_seed**2 / (n_seeds - 1) + by_group**2 / (n_groups - 1)
            squares += left**2 / ((n_seeds - 1) * (n_groups - 1))
            freedom = total**2 / squares
    half = stats.t.ppf((1 + statistics.LEVEL) / 2, freedom) * np.sqrt(total / (n_seeds * n_groups))
    return mean, mean - half, mean + half


@checks.typed()
def ranking_accuracy(gold: ndarray, predicted: ndarray) -> ndarray:
    """Share of pairs of languages that two orders put in the same order (Equation 6), in [0, 1].

    ``gold`` and ``predicted`` are ``(..., k)``, scores of k languages, high is good in both; the
    axes before the last are broadcast. A pair that ties in either counts ½, what a drawn order
    would reach: (τ + 1) / 2 with Kendall's τ_a. Scores that differ by 10⁻¹² of the largest are
    equal. ValueError for unequal k, fewer than two languages, NaN.
    """
    gold, predicted = np.asarray(gold, float), np.asarray(predicted, float)
    if gold.shape[-1] != predicted.shape[-1] or gold.shape[-1] < 2:
        raise ValueError(
            f"{gold.shape[-1]} languages with a gold score and {predicted.shape[-1]} with a "
            "predicted one: give two or more, the same in both"
        )
    if np.isnan(gold).any() or np.isnan(predicted).any():
        raise ValueError("a score is NaN: leave out the languages that have none")
    return (1 + (_orders(gold) * _orders(predicted)).mean(-1)) / 2


def _orders(scores: ndarray) -> ndarray:
    """Of each pair of languages, 1, 0 or -1: the first is better, as good, worse."""
    first, second = np.triu_indices(scores.shape[-1], 1)
    difference = scores[..., first] - scores[..., second]
    equal = np.abs(difference) <= SLACK * np.abs(scores).max(-1, keepdims=True)
    return np.where(equal, 0.0, np.sign(difference))
