"""Easy and hard questions: how near the question's words are to the answer in each.

Rajaee and Monz, section 4; Figures 1, 11 and 12.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from xlx.experiment.grids import Grid, groups_of, reading_scores
from xlx.measures import statistics
from xlx.measures.mixing import Resamples, percentile_ends
from xlx.text.examples import aligned, crossed
from xlx.text.files import TextError
from xlx.text.languages import without_punctuation, word_spans, words
from xlx.text.questions import Questions, stands

#: Scores that differ by less are equal.
_SLACK = 1e-12


def tails(
    score: np.ndarray, distance: np.ndarray, share: float = 0.2,
    groups: Sequence[int] | None = None, *, n_resamples: int = 1000, seed: int = 0,
) -> tuple[pd.DataFrame, tuple[float, float, float]]:  # fmt: skip
    """Mean distance of the easiest and the hardest examples, and the ratio of the two.

    The easiest are those with the highest score. Many F1 scores are exactly 0 or 1, so which
    examples are "the top 20 %" is often open: the examples that tie at the border share equally
    what is left to be filled, which is the expected mean if ties are broken at random. Where
    ``share`` × n is no whole number, the last example counts in part. Every resample finds its own
    border. ``score`` and ``distance`` are ``(n,)``, ``share`` is that of a tail, up to ½.

    Returns a table by ``group`` ("easiest", "hardest") of ``score`` (mean in it), ``distance``,
    ``low``, ``high`` (of the distance); and hardest over easiest with its interval, infinite where
    the easiest are at distance 0, NaN where both are. MixingError for examples of fewer than two
    groups.
    """
    score, distance = np.asarray(score, np.float64), np.asarray(distance, np.float64)
    drawn = Resamples.draw(len(score), groups, n_resamples, seed)
    _, level_of = np.unique(np.round(score / _SLACK) * _SLACK, return_inverse=True)
    has = level_of == np.arange(level_of.max() + 1)[:, None]  # (n_levels, n)
    counts, drawn_counts = has.sum(axis=1), drawn.sums(has.astype(np.float64))
    rows, resamples = [], {}
    for group, step in (("easiest", -1), ("hardest", 1)):
        mean, estimate = (
            _tail(counts, (has * values).sum(axis=1), share, step) for values in (score, distance)
        )
        resamples[group] = _tail(drawn_counts, drawn.sums(has * distance), share, step)
        rows.append((group, mean, estimate, *percentile_ends(resamples[group])))
    table = pd.DataFrame(rows, columns=["group", "score", "distance", "low", "high"])
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        ratio = np.divide(rows[1][2], rows[0][2])
        ratios = resamples["hardest"] / resamples["easiest"]
    known = ratios[~np.isnan(ratios)]
    # percentiles that are ratios drawn, as there is no middle between a ratio and infinity
    ends = [(1 - statistics.LEVEL) / 2, (1 + statistics.LEVEL) / 2]
    low, high = np.quantile(known, ends, method="nearest") if len(known) else (np.nan, np.nan)
    return table, (float(ratio), float(low), float(high))


def _tail(weights: np.ndarray, sums: np.ndarray, share: float, step: int) -> np.ndarray:
    """Mean of what is summed over a share of the weight, from the last level (-1) or the first (1).

    ``weights`` and ``sums`` are ``(..., n_levels)``, levels ascending: how many examples have the
    level, and the sum of their values. Of the level at the border each example counts alike.
    """
    weights, sums = weights[..., ::step], sums[..., ::step]
    whole = share * weights.sum(axis=-1, keepdims=True)
    before = np.cumsum(weights, axis=-1) - weights
    taken = np.clip(whole - before, 0, weights)
    part = np.divide(taken, weights, out=np.zeros_like(taken), where=weights > 0)
    return (part * sums).sum(axis=-1) / whole[..., 0]


def tails_by_language(
    grids: Iterable[Grid], distances: Mapping[str, np.ndarray], share: float, **options: Any
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """`tails` within each language, with ``model`` and ``language``, and the ratios by these."""
    tables, ratios = [], {}
    for own in grids:
        for k, code in enumerate(own.languages):
            scores = own.scores["F1"][k, k]
            table, ratio = tails(scores, distances[code], share, own.groups, **options)
            tables.append(table.assign(model=own.model, language=code))
            ratios[own.model, code] = ratio
    return pd.concat(tables), pd.DataFrame(ratios, index=["hardest / easiest", "low", "high"]).T


def _compared(word: str) -> str:
    return word.lower().translate(without_punctuation())


@lru_cache(maxsize=2**13)
def _located(context: str, language: str) -> tuple[np.ndarray, Sequence[int], Sequence[int]]:
    """The words of a context as they are compared, and where each begins and ends."""
    spans = word_spans(context, language)
    plain = np.array([_compared(word) for word, _, _ in spans], dtype=object)
    return plain, [start for _, start, _ in spans], [end for _, _, end in spans]


@lru_cache(maxsize=2**15)
def _asked(question: str, language: str) -> frozenset[str]:
    """The words of a question as they are compared; of punctuation alone, none."""
    return frozenset(map(_compared, words(question, language))) - {""}


def _occurs(compared: Sequence[str], question: str, language: str) -> np.ndarray:
    """Which words of a context are words of the question: bool."""
    asked = _asked(question, language)
    return np.array([word in asked for word in compared], dtype=bool)


def word_distances(questions: Questions, *, max_distance: float = 384) -> np.ndarray:
    """How far from the answer the words of each question stand in the context: float64 (n,).

    In words (section 4): the mean, over all positions of the context whose word is one of the
    question's, of the distance to the centre of the first answer, halfway between its first and
    last word (a word that it covers in part is in it). ``max_distance`` where no word of the
    question occurs; the paper takes the maximum length of a context there. The mean itself has no
    such limit.

    Words are compared in lower case without punctuation, all of them: articles too, and those in
    the answer. A word that the question has twice counts once.

    Raises TextError where an answer does not stand in its context.
    """
    rows = zip(questions.questions, questions.contexts, questions.answers, strict=True)
    distances = np.full(len(questions), max_distance, dtype=np.float64)
    for i, (question, context, (answer, *_)) in enumerate(rows):
        if not stands(answer, context):
            raise TextError(
                f"the answer {answer.text!r} is not at position {answer.start} of its context"
            )
        compared, starts, ends = _located(context, questions.context_language)
        places = np.flatnonzero(_occurs(compared, question, questions.question_language))
        if places.size:
            first = bisect_right(ends, answer.start)
            last = bisect_left(starts, answer.end) - 1
            distances[i] = np.abs(places - (first + last) / 2).mean()
    return distances


def overlap_answers(questions: Questions, length: int) -> list[str]:
    """Answers without a model: the ``length`` words with the question's words closest around them.

    Of all spans of ``length`` words (of the whole context, where it has fewer), that with the
    largest sum of ``1 / (1 + d)`` over the words of the context outside the span that are words of
    the question, at distance ``d`` from its centre; the first of equals. Words are compared as in
    `word_distances`, of which this is the shortcut.
    """
    spans = []
    for question, context in zip(questions.questions, questions.contexts, strict=True):
        compared, starts, ends = _located(context, questions.context_language)
        n = len(starts)
        size = min(length, n)
        if not n:
            spans.append("")
            continue
        is_asked = _occurs(compared, question, questions.question_language).astype(float)
        # Rounded, so that sums that are equal but for the order of their terms are a tie.
        sums = np.convolve(is_asked, _kernel(n, size), mode="full")[n - 1 : 2 * n - size]
        first = int(np.round(sums, 9).argmax())
        spans.append(context[starts[first] : ends[first + size - 1]])
    return spans


@lru_cache(maxsize=2**11)
def _kernel(n: int, size: int) -> np.ndarray:
    """Weight of a word by its offset from the beginning of the span, from n - 1 down to 1 - n."""
    offset = np.arange(n - 1, -n, -1)
    weight = 1 / (1 + np.abs(offset - (size - 1) / 2))
    weight[(offset >= 0) & (offset < size)] = 0
    return weight


def nearest_span(sets: Mapping[str, Questions], length: int) -> Grid:
    """`overlap_answers` on every pair of languages: spans of ``length`` words."""
    gold = next(iter(aligned(sets).values()))
    cells = [[crossed(context, asked) for asked in sets.values()] for context in sets.values()]
    rows = [[reading_scores(x, overlap_answers(x, length)) for x in row] for row in cells]
    scores = dict(zip(("F1", "EM"), np.moveaxis(np.array(rows), 2, 0), strict=True))
    return Grid("nearest span", tuple(sets), scores, groups_of(gold))
