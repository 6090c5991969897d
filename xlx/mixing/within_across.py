"""Mixing: what a model loses when the two parts of an example come in different languages.

A model is fine-tuned once and tested on every pair of languages: premise × hypothesis, sentence 1 ×
sentence 2, context × question. That grid has the usual zero-shot evaluation on its diagonal
(`within`) and everything that asks for two languages at once off it (`across`). Here a grid becomes
the averages of the paper's tables, with intervals (`xlx.mixing.resamples`): per language
(`summary`), per label (`by_label`), against another model (`paired_difference`).

Arrays of scores are ``(L, L, n)``: the score, in [0, 1], of example k with part 1 in the language
of the row and part 2 in that of the column; or ``(S, L, L, n)`` of S fine-tunings that differ in
their seed alone. Example k is the same in all cells. Of the options, ``groups`` ``(n,)`` are
numbers of examples that are drawn together, ``n_resamples`` and ``seed`` those of the bootstrap. A
MixingError says that shapes do not go together, a language is named twice, examples are of fewer
than two groups, a cell is empty (NaN), or scores are outside [0, 1].

Rajaee and Monz, "Analyzing the Evaluation of Cross-Lingual Knowledge Transfer in Multilingual
Language Models"; sections and tables are numbered as there.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

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
#: The "language" of a mean over languages, and of a whole row or column.
OVERALL, EVERYWHERE = "mean", "all"
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
    not both) is in the given language". Its mean over languages is that of all cells off the
    diagonal. Shapes as in `within`; MixingError for a single language.
    """
    scores = np.asarray(scores, dtype=np.float64)
    n = scores.shape[-1]
    if n < 2:
        raise MixingError("a grid of one language has no cell across: two or more are needed")
    return (scores.sum(axis=-1) + scores.sum(axis=-2) - 2 * within(scores)) / (2 * (n - 1))


def with_margins(scores: np.ndarray) -> np.ndarray:
    """``(..., L, L, n)`` with the means of rows and columns: ``(..., L + 1, L + 1, n)``."""
    wide = np.concatenate([scores, scores.mean(axis=-2, keepdims=True)], axis=-2)
    return np.concatenate([wide, wide.mean(axis=-3, keepdims=True)], axis=-3)


def checked_scores(scores: np.ndarray, languages: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Grids of single examples, mean over seeds ``(L, L, n)`` and each ``(S, L, L, n)``; errors."""
    scores, n = np.asarray(scores, dtype=np.float64), len(languages)
    if scores.ndim not in (3, 4) or scores.shape[-3:-1] != (n, n) or not scores.size:
        raise MixingError(
            f"scores have shape {scores.shape}: ({n}, {n}, examples) is needed for {n} languages, "
            "or that with seeds before it"
        )
    if len(set(languages)) < n:
        raise MixingError(f"a language is named twice: {', '.join(languages)}")
    each = scores if scores.ndim == 4 else scores[None]
    if (empty := np.isnan(each)).any():
        _, row, column, _ = np.argwhere(empty)[0]
        raise MixingError(f"cell {languages[row]}-{languages[column]} is empty, its score NaN")
    if scores.min() < -_SLACK or scores.max() > 1 + _SLACK:
        raise MixingError(
            f"scores are between {scores.min():g} and {scores.max():g}: give them as shares in "
            "[0, 1], not in per cent"
        )
    return each[0] if len(each) == 1 else each.mean(axis=0), each


def cells(
    scores: np.ndarray, languages: Sequence[str], groups: Sequence[int] | None = None, *,
    margins: bool = False, n_resamples: int = 1000, seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Every cell of a grid by ``first`` and ``second``, the languages of its parts (Figures 2-10).

    With ``margins`` also the means of whole rows and columns, as a language `EVERYWHERE`.
    """
    scores, each = checked_scores(scores, languages)
    if margins:
        scores, each = with_margins(scores), with_margins(each)
        languages = [*languages, EVERYWHERE]
    drawn = Resamples.draw(scores.shape[-1], groups, n_resamples, seed)
    estimate, few = scores.mean(axis=-1), drawn.few(scores, 1 - scores)
    values = (estimate, drawn.means(scores), each.mean(axis=-1), few, len(drawn.starts))
    index = pd.MultiIndex.from_product([languages, languages], names=["first", "second"])
    columns = zip(("score", "low", "high"), (estimate, *share_ends(*values)), strict=True)
    return pd.DataFrame({name: x.ravel() for name, x in columns}, index).reset_index()


def summary(
    scores: np.ndarray, languages: Sequence[str], groups: Sequence[int] | None = None, *,
    n_resamples: int = 1000, seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Within, across and the drop between them, of each language and their mean (Tables 1 to 3).

    By ``language`` (the last one `OVERALL`) and ``setting`` (`SETTINGS`; a drop is in [-1, 1]). A
    single language is an error.
    """
    scores, each = checked_scores(scores, languages)
    drawn = Resamples.draw(scores.shape[-1], groups, n_resamples, seed)
    estimate, few = _settings(scores.mean(axis=-1)), drawn.few(scores, 1 - scores, _settings)
    resamples, by_seed = _settings(drawn.means(scores)), _settings(each.mean(axis=-1))
    ends = setting_ends(estimate, resamples, by_seed, few, len(drawn.starts))
    return _by_language(languages, score=(estimate, *ends))


def paired_difference(
    one: np.ndarray, other: np.ndarray, languages: Sequence[str],
    groups: Sequence[int] | None = None, *, n_resamples: int = 1000, seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """By how much one grid is above another on the same examples, as a table like `summary`'s.

    For a model and its control task (Tables 7 and 14) or a baseline: the difference of each
    example is taken first, so the interval is of the paired difference, by percentiles. The two may
    have unequal numbers of seeds, each with an error of its own.
    """
    (one, first), (other, second) = (checked_scores(x, languages) for x in (one, other))
    if one.shape != other.shape:
        raise MixingError(f"shapes {one.shape} and {other.shape} are not of the same examples")
    drawn = Resamples.draw(one.shape[-1], groups, n_resamples, seed)
    estimate = _settings((one - other).mean(axis=-1))
    errors = seed_errors(_settings(second.mean(axis=-1)), n_resamples, stream=1)
    resamples = _settings(drawn.means(one - other)) - errors
    ends = percentile_ends(resamples, _settings(first.mean(axis=-1)))
    return _by_language(languages, score=(estimate, *ends))


def by_label(
    right: np.ndarray, labels: Sequence[int], groups_of_labels: Mapping[str, Sequence[int]],
    languages: Sequence[str], groups: Sequence[int] | None = None, *, n_resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """The averages of `summary` by the label of the examples (Tables 5, 6, 10 to 13).

    ``labels`` ``(n,)`` are the gold ones; ``groups_of_labels`` has name → the labels that it stands
    for, such as "not-entailment" for two of XNLI's three, each label in exactly one. Beside the
    score of the examples with the ``label`` (accuracy given the label, as the paper prints), a row
    has their number ``n`` and ``share``, and the ``contribution``, share × score, with its
    ``contribution_low`` and ``_high``: those of all labels add up to the score of `summary`, and
    those to the drop to the drop. MixingError also for a label in no or two of the groups, and for
    a group with examples of one of ``groups`` only.
    """
    right, each = checked_scores(right, languages)
    n = right.shape[-1]
    drawn = Resamples.draw(n, groups, n_resamples, seed)
    of = np.arange(n) if groups is None else np.asarray(groups)
    totals = drawn.sums(np.ones(n))[:, None, None]
    tables = []
    for name, mask in _label_masks(labels, groups_of_labels, n).items():
        n_groups = len(np.unique(of[mask]))
        if n_groups < 2:
            raise MixingError(f"label {name!r} has examples of {n_groups} groups: two are needed")
        inside, by_seed = np.where(mask, right, 0.0), np.where(mask, each, 0.0).sum(axis=-1)
        sums, sizes = drawn.sums(inside), drawn.sums(mask.astype(np.float64))[:, None, None]
        few = drawn.few(inside, np.where(mask, 1 - right, 0.0), _settings)
        values = {}
        for value, size, weights in (("score", mask.sum(), sizes), ("contribution", n, totals)):
            estimate = _settings(inside.sum(axis=-1) / size)
            with np.errstate(invalid="ignore"):  # a resample without the label has no score of it
                resamples = _settings(sums / weights)
            ends = setting_ends(estimate, resamples, _settings(by_seed / size), few, n_groups)
            values[value] = (estimate, *ends)
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
    masks = {name: np.isin(labels, list(some)) for name, some in groups_of_labels.items()}
    times = np.sum([np.zeros(n, dtype=int), *masks.values()], axis=0)
    if (times != 1).any():
        raise MixingError(
            f"label {labels[(times != 1).argmax()]} is not in exactly one of "
            f"{', '.join(groups_of_labels)}: contributions add up only if each label is"
        )
    return masks


def _settings(grids: np.ndarray) -> np.ndarray:
    """Within, across and drop of each language and of their mean: ``(..., L + 1, 3)``."""
    diagonal, outside = within(grids), across(grids)
    table = np.stack([diagonal, outside, diagonal - outside], axis=-1)
    return np.concatenate([table, table.mean(axis=-2, keepdims=True)], axis=-2)


def _by_language(
    languages: Sequence[str], **values: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> pd.DataFrame:
    """A row a language and setting; each value ``(L + 1, 3)`` with low and high.

    The ends of "score" are ``low`` and ``high``, those of another ``<name>_low``, ``<name>_high``.
    """
    index = pd.MultiIndex.from_product(
        [[*languages, OVERALL], SETTINGS], names=["language", "setting"]
    )
    columns = {}
    for name, (value, low, high) in values.items():
        start = "" if name == "score" else f"{name}_"
        columns |= {name: value, f"{start}low": low, f"{start}high": high}
    return pd.DataFrame({name: x.ravel() for name, x in columns.items()}, index).reset_index()
