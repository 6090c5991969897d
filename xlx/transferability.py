"""Transferability: how much of what a model learnt in one language is lost in another.

Of a model fine-tuned in a source language, the error in a target language is the sum of three
parts (`decompose`): what it has not learnt of its training set, what it loses when the same
examples come translated, and what it loses on new examples. The second, at a fixed value of the
first, is IGAP (`igap`, `igap_curve`). A metric of transferability is judged by how well it orders
the target languages of a source (`rank_directions`).

Errors and accuracies are in [0, 1]. What is given is which answers are wrong: boolean arrays, one
row per fine-tuned model (a checkpoint of a run), one column per example.

Chi, Huang and Mao, "Measuring Cross-Lingual Transferability of Multilingual Transformers on
Sentence Classification"; equations are numbered as there.
"""

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xlx import checks, statistics

#: Training errors E' of the curves (section 4.1), from 0.2 to 0.
LEVELS = tuple(round(0.2 - 0.025 * step, 3) for step in range(9))
#: How far above E' a training error may be: ε of the curves (section 4.1).
TOLERANCE = 0.025
#: ε of the tables, with E' = 0 (section 5.1): up to 1000 examples, that is no error at all.
FITTED = 0.001
#: Numbers that differ by less are taken for equal: more than rounding, less than one example.
SLACK = 1e-12
#: The row of a table that holds the mean over languages.
MEAN = "mean"
#: What a table prints where no model has the training error that is asked for.
NO_MODEL = "no model"


# --- the parts of the error -----------------------------------------------------------------------


@dataclass(frozen=True)
class Decomposition:
    """The cross-lingual error and its three parts, each ``(...)``, one per fine-tuned model.

    Attributes
    ----------
    error : numpy.ndarray
        E, on the validation set of the target language (Equation 3).
    interlingual : numpy.ndarray
        G_inter, lost between the training set and its translation; in [-1, 1].
    intralingual : numpy.ndarray
        G_intra, lost between the translated training set and the validation set; in [-1, 1].
    training : numpy.ndarray
        E_train, on the training set. ``error = interlingual + intralingual + training``.
    """

    error: np.ndarray
    interlingual: np.ndarray
    intralingual: np.ndarray
    training: np.ndarray


def decompose(training: np.ndarray, translated: np.ndarray, target: np.ndarray) -> Decomposition:
    """Take the cross-lingual error apart (Equations 3 and 4).

    Parameters
    ----------
    training, translated : numpy.ndarray
        Boolean ``(..., n_train)``: which answers are wrong on the training set, in the source
        language and translated to the target language.
    target : numpy.ndarray
        Boolean ``(..., n_val)``, the same on the validation set of the target language. The axes
        before the last are broadcast: ``(m, n)`` with ``(n_targets, m, n)`` is fine.

    Returns
    -------
    Decomposition
        Each number is the float nearest to the fraction that it stands for.

    Raises
    ------
    ValueError
        Not boolean; no examples; a training set and a translation of unequal length; axes that do
        not go together.
    """
    wrong = {"training": training, "translated": translated, "target": target}
    s, t, v = (_count(array, name) for name, array in wrong.items())
    n, n_val = _same_length(training, translated), target.shape[-1]
    try:
        s, t, v = np.broadcast_arrays(s, t, v)
    except ValueError:
        raise ValueError(
            "the arrays are not of the same models: training, translated and target have shapes "
            f"{', '.join(str(np.shape(array)) for array in wrong.values())}"
        ) from None
    # One division of whole numbers each, so that no digit is lost before the last.
    return Decomposition(v / n_val, (t - s) / n, (v * n - t * n_val) / (n * n_val), s / n)


def transfer_gap(source_right: np.ndarray, target_right: np.ndarray) -> np.ndarray:
    """Cross-lingual transfer gap (Equation 2, the metric M being accuracy), in [-1, 1].

    Boolean ``(..., n_source)`` and ``(..., n_target)``: which answers are right on the validation
    sets of the two languages. Raises ValueError where they are not boolean or empty.
    """
    s, t = _count(source_right, "source_right"), _count(target_right, "target_right")
    n_source, n_target = source_right.shape[-1], target_right.shape[-1]
    return (s * n_target - t * n_source) / (n_source * n_target)


def _count(answers: np.ndarray, name: str) -> np.ndarray:
    """How many of the last axis are True."""
    if not isinstance(answers, np.ndarray) or answers.dtype.kind != "b":
        raise ValueError(
            f"{name} must be a boolean array, one value per example: predictions != labels for "
            "what is wrong, predictions == labels for what is right"
        )
    if answers.ndim == 0 or answers.shape[-1] == 0:
        raise ValueError(f"{name} has no examples: its shape is {answers.shape}")
    return answers.sum(axis=-1)


def _same_length(training: np.ndarray, translated: np.ndarray, language: str = "") -> int:
    n, other = training.shape[-1], translated.shape[-1]
    if n != other:
        of = f" to {language}" if language else ""
        raise ValueError(
            f"the training set has {n} examples and its translation{of} {other}: each example "
            "needs its translation at the same position"
        )
    return n


# --- IGAP -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Igap:
    """The smallest interlingual gap at a training error.

    Attributes
    ----------
    value : float
        In [-1, 1]; NaN if no model has the training error.
    n_models : int
        How many have.
    models : numpy.ndarray
        Positions of those with this gap; several if they tie.
    """

    value: float
    n_models: int
    models: np.ndarray


def window(training_error: np.ndarray, level: float, tolerance: float) -> np.ndarray:
    """Which models have 0 ≤ E_train - E' < ε (Equation 5), boolean ``(m,)``.

    Decimals are taken for what they say: 0.2 - 0.025 · 3 is 0.125, though the float is above.
    """
    if not tolerance > 0:
        raise ValueError(f"the tolerance must be above 0, not {tolerance}: no model is in ε = 0")
    above = np.asarray(training_error) - level
    return (above > -SLACK) & (above < tolerance - SLACK)


def igap(
    training_error: np.ndarray, gap: np.ndarray, level: float = 0.0, tolerance: float = FITTED
) -> Igap:
    """IGAP(E') = min of G_inter over the models with 0 ≤ E_train - E' < ε (Equation 5).

    Parameters
    ----------
    training_error, gap : numpy.ndarray
        ``(m,)``: E_train and G_inter of the fine-tuned models, checkpoints of all seeds. Gaps may
        be below zero.
    level, tolerance : float
        E' and ε.

    Raises
    ------
    ValueError
        Unequal shapes; NaN; a tolerance of zero or less.
    """
    training_error, gap = np.asarray(training_error, float), np.asarray(gap, float)
    if training_error.ndim != 1 or training_error.shape != gap.shape:
        raise ValueError(
            f"training errors have shape {training_error.shape} and gaps {gap.shape}: one of each "
            "per model is needed"
        )
    for name, values in (("training error", training_error), ("gap", gap)):
        if np.isnan(values).any():
            raise ValueError(f"the {name} of model {np.isnan(values).argmax()} is NaN")
    inside = np.flatnonzero(window(training_error, level, tolerance))
    if not len(inside):
        return Igap(float("nan"), 0, inside)
    lowest = gap[inside].min()
    return Igap(float(lowest), len(inside), inside[gap[inside] <= lowest + SLACK])


def igap_curve(
    training: np.ndarray,
    translated: Mapping[str, np.ndarray],
    seeds: Sequence[Hashable],
    levels: Sequence[float] = LEVELS,
    tolerance: float = TOLERANCE,
    *,
    n_resamples: int = 1000,
    n_splits: int = 100,
    level: float = statistics.LEVEL,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """IGAP over training errors, for each target language and their mean (Figure 1b).

    A minimum over noisy gaps is lower than the gap of the model that has it: the more checkpoints,
    the lower. `crossfitted` is without this: the model is chosen on one half of the examples and
    its gap measured on the other. As half of the examples choose less well than all, it is if
    anything a little high.

    Parameters
    ----------
    training : numpy.ndarray
        Boolean ``(m, n)``: which of the n training examples each of the m fine-tuned models gets
        wrong in the source language.
    translated : mapping
        Target language → the same of their translations.
    seeds : sequence
        ``(m,)``, the seed of each model.
    levels, tolerance
        The training errors E', and ε.
    n_resamples : int
        Of the bootstrap over examples: all languages have the same examples drawn, and each
        resample looks for its own minimum. The models are the same in all of them: the training
        error is that of the set a model did learn, not an estimate. The interval (`centred`) is
        about other examples, not about other models, and that the minimum is low it leaves to
        `crossfitted`.
    n_splits : int
        Random halves of `crossfitted`.
    level : float
        Of the interval.

    Returns
    -------
    DataFrame
        One row per ``target`` and ``level`` (E'), then the target "mean": of the mean over targets
        (each with a minimum of its own), as the paper's averages are. ``igap``, ``low``, ``high``;
        ``n_models`` and ``n_seeds`` in the window; ``seed_low``, ``seed_high``: the lowest and
        highest IGAP of a seed alone (of one target the lowest is ``igap`` itself); ``crossfitted``.
        All but the two counts NaN where no model is in the window, see `in_points`.

    Raises
    ------
    ValueError
        Not boolean; unequal models or examples; no targets; fewer than two examples; a tolerance,
        `n_resamples` or `n_splits` of zero or less.
    """
    seeds = np.asarray(seeds)
    _check_curve(training, translated, seeds)
    if n_resamples < 1 or n_splits < 1:
        raise ValueError(f"n_resamples and n_splits must be 1 or more: {n_resamples}, {n_splits}")
    error = training.mean(axis=1)
    windows = np.array([window(error, at, tolerance) for at in levels]).reshape(
        len(levels), len(seeds)
    )
    used = windows.any(axis=0)
    training, windows, seeds = training[used], windows[:, used], seeds[used]
    n = training.shape[1]
    rng = np.random.default_rng(seed)
    counts, halves = resample_counts(n, n_resamples, rng), random_halves(n, n_splits, rng)
    by_seed = [windows & (seeds == name) for name in pd.unique(seeds)]
    found = []
    for array in translated.values():
        lost = array[used].astype(np.float32) - training  # summed exactly: whole numbers, < 2²⁴
        resampled, one = counts @ lost.T, (halves @ lost.T).astype(float)
        other = lost.sum(axis=1) - one
        found.append(
            {
                "igap": _minima(lost.sum(axis=1), windows) / n,
                "resamples": _minima(resampled, windows) / n,
                "seeds": np.array([_minima(lost.sum(axis=1), own) / n for own in by_seed]),
                "crossfitted": _crossfitted(one / (n // 2), other / (n - n // 2), windows),
            }
        )
    found.append({name: np.mean([each[name] for each in found], axis=0) for name in found[0]})
    tables = []
    for target, values in zip([*translated, MEAN], found, strict=True):
        low, high = centred(values["igap"], values["resamples"], level)
        tables.append(
            pd.DataFrame(
                {
                    "target": target,
                    "level": np.round(np.asarray(levels, float), 12),
                    "igap": values["igap"],
                    "low": low,
                    "high": high,
                    "n_models": windows.sum(axis=1),
                    "n_seeds": sum(
                        (own.any(axis=1) for own in by_seed), np.zeros(len(windows), int)
                    ),
                    # fmin and fmax pass over the seeds without a model
                    "seed_low": np.fmin.reduce(values["seeds"], axis=0, initial=np.nan),
                    "seed_high": np.fmax.reduce(values["seeds"], axis=0, initial=np.nan),
                    "crossfitted": values["crossfitted"],
                }
            )
        )
    return pd.concat(tables, ignore_index=True)


def _check_curve(
    training: np.ndarray, translated: Mapping[str, np.ndarray], seeds: np.ndarray
) -> None:
    _count(training, "training")
    if training.ndim != 2 or seeds.shape != training.shape[:1]:
        raise ValueError(
            f"training has shape {training.shape} and there are {seeds.size} seeds: (models, "
            "examples) and one seed per model are needed"
        )
    if training.shape[1] < 2:
        raise ValueError("a curve needs two training examples or more, and there is one")
    if not translated:
        raise ValueError("there are no target languages: give the translated training set of one")
    for language, array in translated.items():
        _count(array, f"the translation to {language}")
        _same_length(training, array, language)
        if array.shape != training.shape:
            raise ValueError(
                f"training has shape {training.shape} and its translation to {language} "
                f"{array.shape}: both must be of the same models"
            )


def resample_counts(n: int, n_resamples: int, rng: np.random.Generator) -> np.ndarray:
    """How often each of n examples is in a bootstrap sample: ``(n_resamples, n)``."""
    return rng.multinomial(n, np.full(n, 1 / n), size=n_resamples).astype(np.float32)


def random_halves(n: int, n_splits: int, rng: np.random.Generator) -> np.ndarray:
    """1 for n // 2 of n examples chosen at random, 0 for the others: ``(n_splits, n)``."""
    places = rng.permuted(np.tile(np.arange(n), (n_splits, 1)), axis=1)
    return (places < n // 2).astype(np.float32)


def centred(
    estimate: np.ndarray, resamples: np.ndarray, level: float = statistics.LEVEL
) -> tuple[np.ndarray, np.ndarray]:
    """Percentiles of ``(n_resamples, ...)`` about their mean, laid about the estimate: (low, high).

    A resample is noisier than the data that it is drawn from. That lowers a minimum once more than
    the noise of the data did, and spoils an order once more; the plain percentiles may then leave
    the estimate outside. What is kept is how far it varies.
    """
    share = (1 - checks.level(level)) / 2
    low, high = np.quantile(resamples, [share, 1 - share], axis=0) - resamples.mean(axis=0)
    return estimate + low, estimate + high


def _minima(gaps: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """The least of ``(..., m)`` in each window, ``(..., n_levels)``; NaN in an empty one."""
    found = np.full((*gaps.shape[:-1], len(windows)), np.nan)
    for index, inside in enumerate(windows):
        if inside.any():
            found[..., index] = gaps[..., inside].min(axis=-1)
    return found


def _crossfitted(one: np.ndarray, other: np.ndarray, windows: np.ndarray) -> np.ndarray:
    """Mean gap on one half of the examples of the models that are best on the other.

    ``one`` and ``other`` are ``(n_splits, m)``, the gaps on the two halves; of models that tie the
    mean is taken. ``(n_levels,)``; NaN for an empty window.
    """
    found = np.full(len(windows), np.nan)
    for index, inside in enumerate(windows):
        if inside.any():
            halves = one[:, inside], other[:, inside]
            found[index] = np.mean(
                [
                    np.average(
                        measured, axis=1, weights=chosen == chosen.min(axis=1, keepdims=True)
                    )
                    for chosen, measured in (halves, halves[::-1])
                ]
            )
    return found


def in_points(value: float) -> str:
    """A share in points, as the paper prints it: 0.211 as "21.1", NaN as "no model"."""
    if np.isnan(value):
        return NO_MODEL
    return f"{round(100 * value, 1) + 0.0:.1f}"  # + 0.0: no "-0.0"


# --- ranking of transfer directions ---------------------------------------------------------------


def ranking_accuracy(gold: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Share of pairs of languages that two orders put in the same order (Equation 6).

    The paper compares places in two sequences, which are never equal. Scores can be: a pair that
    ties in either counts ½, what is expected if the order of equal languages is drawn. This is
    (τ + 1) / 2 with Kendall's τ (τ_a, ties counting 0).

    Parameters
    ----------
    gold, predicted : numpy.ndarray
        ``(..., k)``, scores of k languages, high is good in both; the axes before the last are
        broadcast. Scores that differ by 10⁻¹² of the largest are equal.

    Returns
    -------
    numpy.ndarray
        ``(...)``, in [0, 1]; ½ is what a random order reaches (see `random_ranking_sd`).

    Raises
    ------
    ValueError
        Unequal k, fewer than two languages, NaN.
    """
    gold, predicted = np.asarray(gold, float), np.asarray(predicted, float)
    if gold.shape[-1] != predicted.shape[-1] or gold.shape[-1] < 2:
        raise ValueError(
            f"{gold.shape[-1]} languages with a gold score and {predicted.shape[-1]} with a "
            "predicted one: two or more are needed, the same in both"
        )
    if np.isnan(gold).any() or np.isnan(predicted).any():
        raise ValueError("a score is NaN: leave out the languages that have none")
    return (1 + (_orders(gold) * _orders(predicted)).mean(axis=-1)) / 2


def _orders(scores: np.ndarray) -> np.ndarray:
    """Of each pair of languages, 1, 0 or -1: the first is better, as good, worse."""
    first, second = np.triu_indices(scores.shape[-1], 1)
    difference = scores[..., first] - scores[..., second]
    equal = np.abs(difference) <= SLACK * np.abs(scores).max(axis=-1, keepdims=True)
    return np.where(equal, 0.0, np.sign(difference))


def random_ranking_sd(k: int) -> float:
    """Standard deviation of `ranking_accuracy` over all orders of k languages; their mean is ½.

    Half of that of Kendall's τ, var(τ) = 2 (2k + 5) / (9 k (k - 1)) (Kendall 1938); for a gold
    order without ties.
    """
    if k < 2:
        raise ValueError(f"an order needs two languages or more, not {k}")
    return float(np.sqrt(2 * (2 * k + 5) / (9 * k * (k - 1))) / 2)


@dataclass(frozen=True)
class Gold:
    """Test accuracies of k transfer directions, and how far their examples determine them.

    Attributes
    ----------
    table : DataFrame
        k rows: ``source``, ``target``, ``score`` (accuracy).
    resamples : numpy.ndarray
        ``(n_resamples, k)``: accuracies on bootstrap samples of the test examples.
    halves : numpy.ndarray
        ``(2, n_splits, k)``: accuracies on random halves of the examples, and on the other halves.
    """

    table: pd.DataFrame
    resamples: np.ndarray
    halves: np.ndarray


def gold_scores(
    wrong: Mapping[tuple[str, str], np.ndarray],
    *,
    n_resamples: int = 1000,
    n_splits: int = 100,
    seed: int | np.random.Generator = 0,
) -> Gold:
    """What is to be ranked: the accuracy of each transfer direction on the end task (section 4.2).

    Parameters
    ----------
    wrong : mapping
        (source, target) → boolean ``(m, n)``: which of the n test examples each of the models
        fine-tuned in the source (one per seed, say) gets wrong in the target language. The examples
        are parallel, so that a resample has the same ones drawn for all languages.

    Raises
    ------
    ValueError
        Not boolean; directions with unequal numbers of examples; fewer than two examples; no
        directions.
    """
    if not wrong:
        raise ValueError("there are no transfer directions: give the wrong answers of some")
    sizes = {}
    for (source, target), array in wrong.items():
        _count(array, f"{source} to {target}")
        if array.ndim != 2 or not len(array):
            raise ValueError(
                f"{source} to {target} has shape {array.shape}: (models, examples) are needed"
            )
        sizes[source, target] = array.shape[1]
    (first, n), *_ = sizes.items()
    for direction, size in sizes.items():
        if size != n or n < 2:
            raise ValueError(
                f"{' to '.join(first)} has {n} test examples and {' to '.join(direction)} {size}: "
                "two or more are needed, the same in all languages"
            )
    n_models = np.array([len(array) for array in wrong.values()])
    right = np.array([(~array).sum(axis=0) for array in wrong.values()], np.float32).T
    rng = np.random.default_rng(seed)
    counts, one = resample_counts(n, n_resamples, rng), random_halves(n, n_splits, rng)
    other = right.sum(axis=0) - one @ right
    table = pd.DataFrame(list(wrong), columns=["source", "target"])
    return Gold(
        table.assign(score=right.sum(axis=0) / (n * n_models)),
        counts @ right / (n * n_models),
        np.array([one @ right / (n // 2 * n_models), other / ((n - n // 2) * n_models)]),
    )


def rank_directions(
    gold: pd.DataFrame,
    predictors: pd.DataFrame,
    *,
    resamples: np.ndarray | None = None,
    level: float = statistics.LEVEL,
) -> pd.DataFrame:
    """How well each metric orders the target languages of each source (Tables 1 and 5).

    Parameters
    ----------
    gold : DataFrame
        ``source``, ``target``, ``score``: what is to be ranked, high is good (`Gold.table`).
    predictors : DataFrame
        ``metric``, ``source``, ``target``, ``score``, high is good here too: give gaps and
        distances with a minus sign. Directions that are not in `gold`, and a language with itself,
        are not used. If all scores of a source are NaN (no model in the window), so is its
        accuracy; leave it out of `gold` for a mean over the others.
    resamples : numpy.ndarray, optional
        ``(n_resamples, len(gold))``, the gold scores on other test examples (`Gold.resamples`).

    Returns
    -------
    DataFrame
        One row per ``metric`` and ``source``, then the source "mean" (over sources): ``accuracy``
        (`ranking_accuracy`); ``low`` and ``high`` over resampled gold orders (`centred`, cut at 0
        and 1), NaN without: they say how much the gold order leaves open, not how much the metric
        does; ``n_targets`` (of "mean": all directions); ``random_sd``, the standard deviation of a
        random order, whose accuracy is ½ (of "mean": the most it can be, reached if all sources
        have one order; `permuted_languages` does not assume one).

    Raises
    ------
    ValueError
        A column or number missing; a direction there twice; a metric without a score of a direction
        of `gold`; a source with fewer than two targets; resamples of another length.
    """
    statistics.require(predictors, ("metric", "source", "target"))
    targets = _targets(gold)
    scores = gold["score"].to_numpy(float)
    if resamples is not None and (resamples.ndim != 2 or resamples.shape[1] != len(gold)):
        raise ValueError(
            f"the resamples have shape {resamples.shape} and gold {len(gold)} rows: "
            "(n_resamples, rows of gold) is needed"
        )
    rows = []
    for metric, own in predictors.groupby("metric", sort=False):
        predicted = _predicted(gold, own, metric, targets)
        found, others = [], []
        for at in targets.values():
            known = not np.isnan(predicted[at]).all()
            found.append(float(ranking_accuracy(scores[at], predicted[at])) if known else np.nan)
            if resamples is not None:
                missing = np.full(len(resamples), np.nan)
                others.append(
                    ranking_accuracy(resamples[:, at], predicted[at]) if known else missing
                )
        sizes = [len(at) for at in targets.values()]
        sds = [random_ranking_sd(size) for size in sizes]
        others = np.array(others) if others else np.full((len(found), 1), np.nan)
        others = np.vstack([others, others.mean(axis=0)])
        accuracy = np.array([*found, np.mean(found)])
        low, high = np.clip(centred(accuracy, others.T, level), 0, 1)
        rows.append(
            pd.DataFrame(
                {
                    "metric": metric,
                    "source": [*targets, MEAN],
                    "accuracy": accuracy,
                    "low": low,
                    "high": high,
                    "n_targets": [*sizes, sum(sizes)],
                    "random_sd": [*sds, np.mean(sds)],
                }
            )
        )
    if not rows:
        raise ValueError("there are no predictors: give the scores of one metric or more")
    return pd.concat(rows, ignore_index=True)


def permuted_languages(
    gold: pd.DataFrame,
    predictors: pd.DataFrame,
    *,
    n_permutations: int = 5040,
    level: float = statistics.LEVEL,
    seed: int = 0,
) -> pd.DataFrame:
    """The mean accuracy of each metric against that with the languages permuted (QAP; Mantel 1967).

    Orders of the targets of several sources are not independent of each other: a language that is
    a good target is so for most sources. Random orders, one for all sources or one for each, take
    no account of that in the metric. Here the metric keeps its matrix and loses its languages: rows
    and columns are permuted together, and the accuracy (`ranking_accuracy`, mean over sources) is
    taken again. All permutations where there are no more than ``n_permutations`` (7 languages have
    5,040), else so many drawn by ``seed``.

    ``gold`` and ``predictors`` as in `rank_directions`. One row a ``metric``: ``accuracy``;
    ``random_low`` and ``random_high``, the interval of the permuted accuracies at ``level``;
    ``p_value``, the share of permutations, the observed order among them, with an accuracy as high
    (one-sided); ``n_permutations``. Raises ValueError as `rank_directions`.
    """
    codes = list(dict.fromkeys([*gold["source"], *gold["target"]]))
    targets = _targets(gold)
    place = {code: number for number, code in enumerate(codes)}
    at = gold["source"].map(place).to_numpy(), gold["target"].map(place).to_numpy()
    n = len(codes)
    if math.factorial(n) <= n_permutations:
        orders = np.array(list(itertools.permutations(range(n))))
    else:
        rng = np.random.default_rng(seed)
        orders = rng.permuted(np.tile(np.arange(n), (n_permutations, 1)), axis=1)
        orders[0] = np.arange(n)

    def better(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of a source and two targets, (n, n, n): which is better, and whether it is known."""
        square = np.full((n, n), np.nan)
        square[at] = scores
        np.fill_diagonal(square, np.nan)
        known = ~np.isnan(square[:, :, None] + square[:, None, :])
        difference = square[:, :, None] - square[:, None, :]
        equal = np.abs(difference) <= SLACK * np.nanmax(np.abs(square))
        return np.where(equal | ~known, 0, np.sign(difference)), known & ~np.eye(n, dtype=bool)

    truth, ranked = better(gold["score"].to_numpy(float))
    rows = []
    for metric, own in predictors.groupby("metric", sort=False):
        found, known = better(_predicted(gold, own, metric, targets))
        accuracies = []
        for order in orders:
            moved = np.ix_(order, order, order)
            pairs = (ranked & known[moved]).sum(axis=(1, 2))
            right = (truth * found[moved]).sum(axis=(1, 2))[pairs > 0] / pairs[pairs > 0]
            accuracies.append((1 + right.mean()) / 2 if right.size else np.nan)
        accuracies = np.array(accuracies)  # the observed one is the first
        tail = (1 - level) / 2
        low, high = np.nanquantile(accuracies, [tail, 1 - tail])
        rows.append(
            {
                "metric": metric,
                "accuracy": accuracies[0],
                "random_low": low,
                "random_high": high,
                "p_value": float((accuracies >= accuracies[0] - SLACK).mean()),
                "n_permutations": len(orders),
            }
        )
    return pd.DataFrame(rows)


def reliability(gold: Gold) -> pd.DataFrame:
    """How good a metric can be, the gold order itself being known from n examples only.

    Returns
    -------
    DataFrame
        One row per ``source``, then "mean" (over sources): ``halves``, the mean accuracy of the
        order on one half of the examples for that on the other (both noisier than the whole, so a
        metric that knew the truth would reach more); ``resampled``, that of the gold order for the
        orders of its resamples (such a metric would reach rather less: noise spreads the gold
        scores out, which makes them look easy to order); ``n_targets``.
    """
    targets = _targets(gold.table)
    scores = gold.table["score"].to_numpy()
    halves, resampled = [], []
    for at in targets.values():
        halves.append(ranking_accuracy(*gold.halves[:, :, at]).mean())
        resampled.append(ranking_accuracy(gold.resamples[:, at], scores[at]).mean())
    sizes = [len(at) for at in targets.values()]
    return pd.DataFrame(
        {
            "source": [*targets, MEAN],
            "halves": [*halves, np.mean(halves)],
            "resampled": [*resampled, np.mean(resampled)],
            "n_targets": [*sizes, sum(sizes)],
        }
    )


def asymmetry(scores: pd.DataFrame) -> float:
    """Mean difference, without its sign, between a direction and its reverse (section 5.3).

    ``source``, ``target``, ``score``; pairs of languages that are there in one direction only are
    not used. Noise alone makes it larger than 0. Raises ValueError for a column or number missing,
    a direction there twice, or no pair with both directions.
    """
    _check_scores(scores, "the table")
    matrix = scores.pivot(index="source", columns="target", values="score")
    names = matrix.index.intersection(matrix.columns)
    square = matrix.loc[names, names].to_numpy(float)
    both = np.abs(square - square.T)[np.triu_indices(len(names), 1)]
    both = both[~np.isnan(both)]
    if not len(both):
        raise ValueError("no pair of languages is there in both directions")
    return float(both.mean())


def _check_scores(table: pd.DataFrame, name: str) -> None:
    """Numbers, each direction once."""
    statistics.require(table, ("source", "target"))
    statistics.numbers(table, ["score"])
    _check_once(table, name)


def _check_once(table: pd.DataFrame, name: str) -> None:
    twice = table.duplicated(["source", "target"]).to_numpy()
    if twice.any():
        row = table.iloc[twice.argmax()]
        raise ValueError(f"{row['source']} to {row['target']} is in {name} more than once")


def _targets(gold: pd.DataFrame) -> dict[str, np.ndarray]:
    """Source → the rows of `gold` that hold its targets, itself left out."""
    _check_scores(gold, "gold")
    source, target = gold["source"].to_numpy(), gold["target"].to_numpy()
    rows = {
        name: np.flatnonzero((source == name) & (target != name)) for name in dict.fromkeys(source)
    }
    for name, at in rows.items():
        if len(at) < 2:
            raise ValueError(
                f"{name} has {len(at)} other target languages in gold: there must be two or more "
                "to rank"
            )
    if not rows:
        raise ValueError("gold has no rows: give the scores of some transfer directions")
    return rows


def _predicted(
    gold: pd.DataFrame, own: pd.DataFrame, metric: str, targets: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Scores of one metric in the order of the rows of `gold`; NaN for whole sources only."""
    _check_once(own, f"the scores of {metric}")
    lookup = dict(zip(zip(own["source"], own["target"], strict=True), own["score"], strict=True))
    values = np.full(len(gold), np.nan)
    for index, direction in enumerate(zip(gold["source"], gold["target"], strict=True)):
        if direction[0] == direction[1]:
            continue
        if direction not in lookup:
            raise ValueError(
                f"{metric} has no score of {' to '.join(direction)}: give one for each direction "
                "of gold, or leave the direction out of gold"
            )
        values[index] = lookup[direction]
    for source, at in targets.items():
        missing = np.isnan(values[at])
        if missing.any() and not missing.all():
            target = gold["target"].iloc[at[missing.argmax()]]
            raise ValueError(
                f"the score of {metric} is NaN for {source} to {target} but not for all targets of "
                f"{source}: they cannot be ranked"
            )
    return values
