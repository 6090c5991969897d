"""Mixing: what a model loses when the two parts of an example come in different languages.

A model is fine-tuned once and tested on every pair of languages: premise × hypothesis, sentence 1 ×
sentence 2, context × question. That grid has the usual zero-shot evaluation on its diagonal
(`within`) and everything that asks for two languages at once off it (`across`). Here a grid becomes
the averages of the paper's tables, with intervals (`xlx.mixing.resamples`): per language
(`summary`), per label (`by_label`), against another model (`paired_difference`).

Arrays of scores are float, ``(L, L, n)``: the score of example k with part 1 in the language of the
row and part 2 in that of the column; or ``(S, L, L, n)`` of S fine-tunings that differ in their
seed alone. Scores are in [0, 1]: 1 or 0 for a right or wrong answer, an F1 or an exact match.
Example k is the same in all cells.

Rajaee and Monz, "Analyzing the Evaluation of Cross-Lingual Knowledge Transfer in Multilingual
Language Models"; sections and tables are numbered as there.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from xlx.core import statistics
from xlx.mixing.resamples import (
    MixingError,
    Resamples,
    percentile_ends,
    seed_errors,
    setting_ends,
    share_ends,
)

#: What a grid says about a language; drop is within - across.
SETTINGS = ("within", "across", "drop")
#: The "language" of a mean over languages.
OVERALL = "mean"
#: Scores may be outside [0, 1] by no more.
_SLACK = 1e-12


def within(scores: np.ndarray) -> np.ndarray:
    """Score of each language where both parts are in it: the diagonal (section 3.1).

    ``scores`` ``(..., L, L)`` has one number a cell, on any scale; returns ``(..., L)``.
    """
    return np.diagonal(np.asarray(scores, dtype=np.float64), axis1=-2, axis2=-1).copy()


def across(scores: np.ndarray) -> np.ndarray:
    """Mean score of each language over the 2 (L - 1) cells where one part alone is in it.

    The caption of Table 1: "the average performance when either the premise or the hypothesis (but
    not both) is in the given language". The mean of it over languages is the mean of all cells off
    the diagonal, each of which is in two languages' averages. Shapes as in `within`; MixingError
    for a single language.
    """
    scores = np.asarray(scores, dtype=np.float64)
    n = scores.shape[-1]
    if n < 2:
        raise MixingError("a grid of one language has no cell across: two or more are needed")
    return (scores.sum(axis=-1) + scores.sum(axis=-2) - 2 * within(scores)) / (2 * (n - 1))


def checked_scores(
    scores: np.ndarray, languages: Sequence[str], name: str = "scores"
) -> tuple[np.ndarray, np.ndarray]:
    """Grids of single examples, mean over seeds ``(L, L, n)`` and each ``(S, L, L, n)``; errors."""
    scores, n = np.asarray(scores, dtype=np.float64), len(languages)
    if scores.ndim not in (3, 4) or scores.shape[-3:-1] != (n, n) or not scores.size:
        raise MixingError(
            f"{name} have shape {scores.shape}: ({n}, {n}, examples) is needed for {n} languages, "
            "or that with seeds before it"
        )
    if len(set(languages)) < n:
        raise MixingError(f"a language is named twice: {', '.join(languages)}")
    each = scores if scores.ndim == 4 else scores[None]
    if (empty := np.isnan(each)).any():
        _, row, column, _ = np.argwhere(empty)[0]
        raise MixingError(
            f"cell {languages[row]}-{languages[column]} is empty, its score NaN: evaluate it, or "
            "leave its language out"
        )
    if scores.min() < -_SLACK or scores.max() > 1 + _SLACK:
        raise MixingError(
            f"{name} are between {scores.min():g} and {scores.max():g}: give them as shares in "
            "[0, 1], not in per cent"
        )
    return each[0] if len(each) == 1 else each.mean(axis=0), each


def cells(
    scores: np.ndarray,
    languages: Sequence[str],
    groups: Sequence[int] | None = None,
    *,
    n_resamples: int = 1000,
    level: float = statistics.LEVEL,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """Every cell of a grid with its interval (Figures 2 to 10).

    Parameters
    ----------
    scores : numpy.ndarray
        ``(L, L, n)`` or ``(S, L, L, n)``, in [0, 1].
    languages : sequence of str
        ``(L,)``, of rows and columns.
    groups : sequence of int, optional
        ``(n,)``: examples of one number are drawn together.
    n_resamples, level, seed
        Of the bootstrap.

    Returns
    -------
    DataFrame
        ``first`` and ``second`` (languages of the parts), ``score``, ``low``, ``high``; row by row.

    Raises
    ------
    MixingError
        Shapes that do not go together; a language named twice; no examples, or all of one group; an
        empty cell (NaN), named; scores outside [0, 1].
    """
    scores, each = checked_scores(scores, languages)
    drawn = Resamples.draw(scores.shape[-1], groups, n_resamples, seed)
    low, high = share_ends(
        scores.mean(axis=-1),
        drawn.means(scores),
        each.mean(axis=-1),
        drawn.few(scores, 1 - scores),
        len(drawn.starts),
        level,
    )
    n = len(languages)
    return pd.DataFrame(
        {
            "first": np.repeat(list(languages), n),
            "second": np.tile(list(languages), n),
            "score": scores.mean(axis=-1).ravel(),
            "low": low.ravel(),
            "high": high.ravel(),
        }
    )


def summary(
    scores: np.ndarray,
    languages: Sequence[str],
    groups: Sequence[int] | None = None,
    *,
    n_resamples: int = 1000,
    level: float = statistics.LEVEL,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """Within, across and the drop between them, of each language and their mean (Tables 1 to 3).

    Parameters and errors as in `cells`; a single language is an error too.

    Returns
    -------
    DataFrame
        ``language`` (the last one "mean"), ``setting`` (`SETTINGS`), ``score`` (in [0, 1], a drop
        in [-1, 1]), ``low``, ``high``.
    """
    scores, each = checked_scores(scores, languages)
    drawn = Resamples.draw(scores.shape[-1], groups, n_resamples, seed)
    estimate = _settings(scores.mean(axis=-1))
    ends = setting_ends(
        estimate,
        _settings(drawn.means(scores)),
        _settings(each.mean(axis=-1)),
        drawn.few(scores, 1 - scores, _settings),
        len(drawn.starts),
        level,
    )
    return _by_language(languages, score=(estimate, *ends))


def paired_difference(
    one: np.ndarray,
    other: np.ndarray,
    languages: Sequence[str],
    groups: Sequence[int] | None = None,
    *,
    n_resamples: int = 1000,
    level: float = statistics.LEVEL,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """By how much one grid is above another on the same examples, as a table like `summary`'s.

    For a model and its control task (Tables 7 and 14) or a baseline: the difference of each
    example is taken first, so the interval is of the paired difference, by percentiles. The two may
    have unequal numbers of seeds, each with an error of its own. Two grids of unequal shape are a
    MixingError; parameters and errors otherwise as in `summary`.
    """
    one, first = checked_scores(one, languages, "one")
    other, second = checked_scores(other, languages, "other")
    if one.shape != other.shape:
        raise MixingError(
            f"one has shape {one.shape} and other {other.shape}: a paired difference is of two "
            "grids on the same examples"
        )
    drawn = Resamples.draw(one.shape[-1], groups, n_resamples, seed)
    estimate = _settings((one - other).mean(axis=-1))
    resamples = _settings(drawn.means(one - other))
    resamples = resamples - seed_errors(_settings(second.mean(axis=-1)), n_resamples, stream=1)
    ends = percentile_ends(resamples, level, _settings(first.mean(axis=-1)))
    return _by_language(languages, score=(estimate, *ends))


def by_label(
    right: np.ndarray,
    labels: Sequence[int],
    groups_of_labels: Mapping[str, Sequence[int]],
    languages: Sequence[str],
    groups: Sequence[int] | None = None,
    *,
    n_resamples: int = 1000,
    level: float = statistics.LEVEL,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """The averages of `summary` by the label of the examples (Tables 5, 6, 10 to 13).

    Parameters
    ----------
    right : numpy.ndarray
        ``(L, L, n)`` or ``(S, L, L, n)``, in [0, 1]: which answers are right.
    labels : sequence of int
        ``(n,)``, the gold labels.
    groups_of_labels : mapping
        Name → the labels that it stands for, such as "not-entailment" for two of XNLI's three.
        Each label in exactly one.
    languages, groups, n_resamples, level, seed
        As in `cells`.

    Returns
    -------
    DataFrame
        ``label``, ``language`` (the last one "mean"), ``setting``; ``n`` and ``share`` of the
        examples that have the label; ``score``, ``low``, ``high``: of these examples (accuracy
        given the label, as the paper prints); ``contribution``, ``contribution_low``,
        ``contribution_high``: share × score. Contributions of all labels add up to the score of
        `summary`, and those to the drop add up to the drop; in a resample the share varies too.

    Raises
    ------
    MixingError
        As `cells`; a label in no or two of the groups; a group without examples, or with
        examples of one of ``groups`` only.
    """
    right, each = checked_scores(right, languages, "right answers")
    n = right.shape[-1]
    members = _label_masks(labels, groups_of_labels, n)
    drawn = Resamples.draw(n, groups, n_resamples, seed)
    of = np.arange(n) if groups is None else np.asarray(groups)
    tables = []
    for name, mask in members.items():
        if len(np.unique(of[mask])) < 2:
            raise MixingError(
                f"label {name!r} has examples of one group only: an interval needs two"
            )
        inside = np.where(mask, right, 0.0)
        sums, sizes = drawn.sums(inside), drawn.sums(mask.astype(np.float64))[:, None, None]
        totals = drawn.sums(np.ones(n))[:, None, None]
        with np.errstate(invalid="ignore"):  # a resample without the label has no score of it
            given = _settings(sums / sizes)
        few = drawn.few(inside, np.where(mask, 1 - right, 0.0), _settings)
        by_seed = np.where(mask, each, 0.0).sum(axis=-1)
        values = {}
        for value, size, resamples in (
            ("score", mask.sum(), given),
            ("contribution", n, _settings(sums / totals)),
        ):
            estimate = _settings(inside.sum(axis=-1) / size)
            own = (estimate, resamples, _settings(by_seed / size), few)
            values[value] = (
                estimate,
                *setting_ends(*own, len(np.unique(of[mask])), level),
            )
        table = _by_language(languages, **values)
        table.insert(0, "label", name)
        table.insert(3, "n", int(mask.sum()))
        table.insert(4, "share", mask.mean())
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _label_masks(
    labels: Sequence[int], groups_of_labels: Mapping[str, Sequence[int]], n: int
) -> dict[str, np.ndarray]:
    """Which examples have each (merged) label: boolean ``(n,)``; each example in one of them."""
    labels = np.asarray(labels)
    if labels.shape != (n,):
        raise MixingError(f"labels have shape {labels.shape} and there are {n} examples: one each")
    masks = {name: np.isin(labels, list(own)) for name, own in groups_of_labels.items()}
    if empty := [name for name, mask in masks.items() if not mask.any()]:
        raise MixingError(
            f"no example has label {empty[0]!r}, which stands for "
            f"{list(groups_of_labels[empty[0]])}: leave it out"
        )
    times = np.sum([np.zeros(n, dtype=int), *masks.values()], axis=0)
    for wrong, what in ((times == 0, "none"), (times > 1, "more than one")):
        if wrong.any():
            raise MixingError(
                f"label {labels[wrong.argmax()]} is in {what} of {', '.join(groups_of_labels)}: "
                "contributions add up to the whole only if each label is in one"
            )
    return masks


def _settings(grids: np.ndarray) -> np.ndarray:
    """Within, across and drop of each language and of their mean: ``(..., L + 1, 3)``."""
    diagonal, outside = within(grids), across(grids)
    found = np.stack([diagonal, outside, diagonal - outside], axis=-1)
    return np.concatenate([found, found.mean(axis=-2, keepdims=True)], axis=-2)


def _by_language(
    languages: Sequence[str], **values: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> pd.DataFrame:
    """A row a language and setting; each value ``(L + 1, 3)`` with low and high.

    The ends of "score" are ``low`` and ``high``, those of another ``<name>_low``, ``<name>_high``.
    """
    named = [*languages, OVERALL]
    table = pd.DataFrame(
        {
            "language": np.repeat(named, len(SETTINGS)),
            "setting": np.tile(SETTINGS, len(named)),
        }
    )
    for name, (value, low, high) in values.items():
        start = "" if name == "score" else f"{name}_"
        table[name] = value.ravel()
        table[f"{start}low"], table[f"{start}high"] = low.ravel(), high.ravel()
    return table
