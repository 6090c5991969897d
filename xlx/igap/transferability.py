"""Transferability: how much of what a model learnt in one language is lost in another.

Of a model fine-tuned in a source language, the error in a target language is the sum of three
parts (`decompose`): what it has not learnt of its training set, what it loses when the same
examples come translated, and what it loses on new examples. The second, at a fixed value of the
first, is IGAP, the interlingual transfer gap (`igap_curve`).

Errors and accuracies are in [0, 1]. What is given is which answers are wrong: boolean arrays, one
row per fine-tuned model (a checkpoint of a run), one column per example.

Chi, Huang and Mao, "Measuring Cross-Lingual Transferability of Multilingual Transformers on
Sentence Classification"; equations are numbered as there.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xlx.core import statistics

#: Training errors E' of the curves (section 4.1), from 0.2 to 0.
TRAINING_ERRORS = tuple(round(0.2 - 0.025 * step, 3) for step in range(9))
#: How far above E' a training error may be: ε of the curves (section 4.1).
TOLERANCE = 0.025
#: ε of the tables, with E' = 0 (section 5.1): up to 1000 examples, that is no error at all.
FITTED = 0.001
#: The row of a table that holds the mean over languages.
MEAN_TARGET = "mean"
#: What a table prints where no model has the training error that is asked for.
NO_MODEL = "no model"


# --- the parts of the error -----------------------------------------------------------------------


@dataclass(frozen=True)
class Decomposition:
    """The cross-lingual error and its three parts, each ``(...)``, one per fine-tuned model.

    ``error``, on the validation set of the target language (Equation 3), is the sum of
    ``interlingual``, G_inter, lost between the training set and its translation, in [-1, 1];
    ``intralingual``, G_intra, lost between that and the validation set, in [-1, 1]; and
    ``training``, E_train.
    """

    error: np.ndarray
    interlingual: np.ndarray
    intralingual: np.ndarray
    training: np.ndarray


def decompose(training: np.ndarray, translated: np.ndarray, target: np.ndarray) -> Decomposition:
    """Take the cross-lingual error apart (Equations 3 and 4).

    ``training`` and ``translated`` are boolean ``(..., n_train)``: which answers are wrong on the
    training set, in the source language and translated to the target language; ``target`` is
    ``(..., n_val)``, the same on the validation set of the target language. The axes before the
    last are broadcast: ``(m, n)`` with ``(n_targets, m, n)`` is fine. Each number is the float
    nearest to the fraction that it stands for.

    ValueError for what is not boolean; no examples; a training set and a translation of unequal
    length; axes that do not go together.
    """
    s, t = count_true(training, "training"), count_true(translated, "translated")
    v = count_true(target, "target")
    n, n_val = _same_length(training, translated), target.shape[-1]
    try:
        s, t, v = np.broadcast_arrays(s, t, v)
    except ValueError:
        shapes = ", ".join(str(np.shape(array)) for array in (training, translated, target))
        raise ValueError(f"the answers are not of the same models: shapes {shapes}") from None
    # One division of whole numbers each, so that no digit is lost before the last.
    return Decomposition(v / n_val, (t - s) / n, (v * n - t * n_val) / (n * n_val), s / n)


def transfer_gap(source_right: np.ndarray, target_right: np.ndarray) -> np.ndarray:
    """Cross-lingual transfer gap (Equation 2, the metric M being accuracy), in [-1, 1].

    Boolean ``(..., n_source)`` and ``(..., n_target)``: which answers are right on the validation
    sets of the two languages. Raises ValueError where they are not boolean or empty.
    """
    s, t = count_true(source_right, "source_right"), count_true(target_right, "target_right")
    n_source, n_target = source_right.shape[-1], target_right.shape[-1]
    return (s * n_target - t * n_source) / (n_source * n_target)


def count_true(answers: np.ndarray, name: str) -> np.ndarray:
    """How many of the last axis are True; ValueError for what is not boolean, or empty."""
    if not isinstance(answers, np.ndarray) or answers.dtype.kind != "b":
        raise ValueError(f"{name} must be a boolean array: give predictions != labels")
    if answers.ndim == 0 or answers.shape[-1] == 0:
        raise ValueError(f"{name} has no examples: its shape is {answers.shape}")
    return answers.sum(axis=-1)


def _same_length(training: np.ndarray, translated: np.ndarray, language: str = "") -> int:
    n, other = training.shape[-1], translated.shape[-1]
    if n != other:
        of = f" to {language}" if language else ""
        raise ValueError(
            f"the training set has {n} examples and its translation{of} {other}: align them"
        )
    return n


# --- IGAP -----------------------------------------------------------------------------------------


def igap_curve(
    training: np.ndarray,
    translated: Mapping[str, np.ndarray],
    seeds: Sequence[Hashable],
    levels: Sequence[float] = TRAINING_ERRORS,
    tolerance: float = TOLERANCE,
    *,
    n_resamples: int = 1000,
    n_splits: int = 100,
    seed: int = 0,
) -> pd.DataFrame:
    """IGAP over training errors, for each target language and their mean (Figure 1b).

    A minimum over noisy gaps is lower than the gap of the model that has it: the more checkpoints,
    the lower. `crossfitted` is without this: the model is chosen on one half of the examples and
    its gap measured on the other. As half of the examples choose less well than all, it is if
    anything a little high.

    ``training`` is boolean ``(m, n)``: which of the n training examples each of the m fine-tuned
    models gets wrong in the source language; ``translated``: target language → the same of their
    translations; ``seeds``: ``(m,)``, the seed of each model; ``levels`` and ``tolerance``: the
    training errors E' and ε; ``n_splits``: random halves of `crossfitted`.

    The bootstrap is over examples, the same ones for all languages, and each resample looks for its
    own minimum. The models are the same in all of them: the training error is that of the set a
    model did learn, not an estimate. The interval (`centred_interval`) is about other examples, not
    about other models, and that the minimum is low it leaves to `crossfitted`.

    One row per ``target`` and ``level`` (E'), then the target "mean": of the mean over targets
    (each with a minimum of its own), as the paper's averages are. ``igap``, ``low``, ``high``;
    ``n_models`` and ``n_seeds`` in the window; ``seed_low``, ``seed_high``: the lowest and highest
    IGAP of a seed alone (of one target the lowest is ``igap`` itself); ``crossfitted``. All but the
    two counts NaN where no model is in the window, see `in_points`.

    ValueError for what is not boolean; unequal models or examples; no targets; fewer than two
    examples; a tolerance, `n_resamples` or `n_splits` of zero or less.
    """
    seeds = np.asarray(seeds)
    _check_curve(training, translated, seeds)
    if n_resamples < 1 or n_splits < 1:
        raise ValueError(f"n_resamples and n_splits must be 1 or more: {n_resamples}, {n_splits}")
    error = training.mean(axis=1)
    windows = np.array([statistics.window(error, value, tolerance) for value in levels])
    windows = windows.reshape(len(levels), len(seeds))
    used = windows.any(axis=0)
    training, windows, seeds = training[used], windows[:, used], seeds[used]
    n = training.shape[1]
    rng = np.random.default_rng(seed)
    counts = statistics.resample_counts(n, n_resamples, rng)
    halves = random_halves(n, n_splits, rng)
    by_seed = [windows & (seeds == name) for name in pd.unique(seeds)]
    gaps = [
        # summed exactly: whole numbers below 2²⁴
        _minimal_gaps(array[used].astype(np.float32) - training, counts, halves, windows, by_seed)
        for array in translated.values()
    ]
    gaps.append({name: np.mean([of[name] for of in gaps], axis=0) for name in gaps[0]})
    n_seeds = sum((of.any(axis=1) for of in by_seed), np.zeros(len(windows), int))
    tables = []
    for target, of_target in zip([*translated, MEAN_TARGET], gaps, strict=True):
        low, high = centred_interval(of_target["igap"], of_target["resamples"])
        columns = {
            "target": target, "level": np.round(np.asarray(levels, float), 12),
            "igap": of_target["igap"], "low": low, "high": high,
            "n_models": windows.sum(axis=1), "n_seeds": n_seeds,
            # fmin and fmax pass over the seeds without a model
            "seed_low": np.fmin.reduce(of_target["seeds"], axis=0, initial=np.nan),
            "seed_high": np.fmax.reduce(of_target["seeds"], axis=0, initial=np.nan),
            "crossfitted": of_target["crossfitted"],
        }  # fmt: skip
        tables.append(pd.DataFrame(columns))
    return pd.concat(tables, ignore_index=True)


def _minimal_gaps(
    lost: np.ndarray,
    counts: np.ndarray,
    halves: np.ndarray,
    windows: np.ndarray,
    by_seed: Sequence[np.ndarray],
) -> dict[str, np.ndarray]:
    """The least gaps of one target in each window: of all examples, resampled, by seed, by halves.

    ``lost`` is ``(m, n)``: 1 where an example is lost in translation, -1 where it is gained.
    """
    n, whole = lost.shape[1], lost.sum(axis=1)
    resampled, first = counts @ lost.T, (halves @ lost.T).astype(float)
    second = whole - first
    return {
        "igap": _minima(whole, windows) / n,
        "resamples": _minima(resampled, windows) / n,
        "seeds": np.array([_minima(whole, of_seed) / n for of_seed in by_seed]),
        "crossfitted": _crossfitted(first / (n // 2), second / (n - n // 2), windows),
    }


def _check_curve(
    training: np.ndarray, translated: Mapping[str, np.ndarray], seeds: np.ndarray
) -> None:
    count_true(training, "training")
    if training.ndim != 2 or seeds.shape != training.shape[:1]:
        raise ValueError(
            f"training has shape {training.shape} and there are {seeds.size} seeds: give (models, "
            "examples) and one seed per model"
        )
    if training.shape[1] < 2:
        raise ValueError("a curve needs two training examples or more, and there is one")
    if not translated:
        raise ValueError("there are no target languages: give the translated training set of one")
    for language, array in translated.items():
        count_true(array, f"the translation to {language}")
        _same_length(training, array, language)
        if array.shape != training.shape:
            raise ValueError(
                f"training has shape {training.shape} and its translation to {language} "
                f"{array.shape}: both must be of the same models"
            )


def random_halves(n: int, n_splits: int, rng: np.random.Generator) -> np.ndarray:
    """1 for n // 2 of n examples chosen at random, 0 for the others: ``(n_splits, n)``."""
    places = rng.permuted(np.tile(np.arange(n), (n_splits, 1)), axis=1)
    return (places < n // 2).astype(np.float32)


def centred_interval(estimate: np.ndarray, resamples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The middle 95 % of ``(n_resamples, ...)`` about their mean, laid about the estimate.

    A resample is noisier than the data that it is drawn from. That lowers a minimum once more than
    the noise of the data did, and spoils an order once more; the plain percentiles may then leave
    the estimate outside. What is kept is how far it varies.
    """
    share = (1 - statistics.LEVEL) / 2
    low, high = np.quantile(resamples, [share, 1 - share], axis=0) - resamples.mean(axis=0)
    return estimate + low, estimate + high


def _minima(gaps: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """The least of ``(..., m)`` in each window, ``(..., n_levels)``; NaN in an empty one."""
    least = np.full((*gaps.shape[:-1], len(windows)), np.nan)
    for index in np.flatnonzero(windows.any(axis=1)):
        least[..., index] = gaps[..., windows[index]].min(axis=-1)
    return least


def _crossfitted(first: np.ndarray, second: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Mean gap on one half of the examples of the models that are best on the other.

    ``first`` and ``second`` are ``(n_splits, m)``, the gaps on the two halves; of models that tie
    the mean is taken. ``(n_levels,)``; NaN for an empty window.
    """
    means = np.full(len(windows), np.nan)
    for index in np.flatnonzero(windows.any(axis=1)):
        halves = first[:, windows[index]], second[:, windows[index]]
        means[index] = np.mean(
            [
                np.average(measured, axis=1, weights=chosen == chosen.min(axis=1, keepdims=True))
                for chosen, measured in (halves, halves[::-1])
            ]
        )
    return means


def in_points(value: float, low: float | None = None, high: float | None = None) -> str:
    """A share in points, as the paper prints it: 0.211 as "21.1", NaN as "no model".

    With an interval: "21.1 (18.0 to 24.2)".
    """
    if np.isnan(value):
        return NO_MODEL
    points = f"{round(100 * value, 1) + 0.0:.1f}"  # + 0.0: no "-0.0"
    return points if low is None else f"{points} ({in_points(low)} to {in_points(high)})"


def with_interval(table: pd.DataFrame, value: str = "igap") -> list[str]:
    """A column with the interval in ``low`` and ``high``, as text `in_points`."""
    return [in_points(*row) for row in table[[value, "low", "high"]].to_numpy()]
