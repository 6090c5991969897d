"""Readers: answers that read no question; how near the question's words are to the answer.

Rajaee and Monz, sections 3.3 and 4; Figures 1, 11 and 12. Scores are SQuAD's (`answers.squad`), by
which the paper's tables are made.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import product

import numpy as np
import pandas as pd

from printed.evaluator import explained, off_diagonal
from xlx.experiment.grids import Grid, groups_of
from xlx.measures import answers, statistics
from xlx.measures.mixing import SETTINGS, Resamples, percentile_ends
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


def f1_where(
    grid: Grid, mask: np.ndarray, other: np.ndarray | None = None, **options: int
) -> tuple[float, float, float]:
    """Mean F1 where a mask ``(L, L, n)`` holds, with its interval over paragraphs and seeds.

    Less that of the ``other`` mask, if there is one. ``options``: ``n_resamples`` and ``seed``.
    """
    each = grid.each["F1, SQuAD"]
    drawn = Resamples.draw(each.shape[-1], grid.groups, **options)
    resamples, by_seed = 0.0, 0.0
    for sign, own in ((1, mask), (-1, other)):
        if own is not None:
            asked, right = own.sum(axis=(0, 1)), (each * own).sum(axis=(1, 2))  # (n,), (S, n)
            ratio = drawn.sums(right.mean(axis=0)) / drawn.sums(asked.astype(float))
            resamples = resamples + sign * ratio
            by_seed = by_seed + sign * right.sum(axis=-1) / asked.sum()
    return by_seed.mean(), *map(float, percentile_ends(resamples, by_seed))


def by_side(scores: np.ndarray, languages: Sequence[str], source: str) -> dict[str, float]:
    """What the language of each part does to a grid ``(L, L)`` of contexts by questions.

    ``context``, ``question``: the share of the variance off the diagonal that the part's language
    explains. ``question in source``: how far cells with it are above within of their context's
    language; ``context in source``: above within of their question's.
    """
    cells = off_diagonal(pd.DataFrame(scores, languages, languages))
    between, within = cells.stack().dropna(), pd.Series(np.diagonal(scores), languages)
    return {
        "context": explained(between, 0), "question": explained(between, 1),
        f"question in {source}": (cells[source] - within).mean(),
        f"context in {source}": (cells.loc[source] - within).mean(),
    }  # fmt: skip


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


def printed_means(scores: pd.DataFrame, languages: Sequence[str]) -> dict[str, str]:
    """Means of a printed table (setting by language, in per cent) and the drop between them."""
    within, across = scores.loc[["within", "across"], languages].mean(axis=1)
    return {
        name: f"{value:.1f}"
        for name, value in zip(SETTINGS, (within, across, within - across), strict=True)
    }


def placed_answers(questions: Questions, length: int, where: Sequence[float]) -> list[str]:
    """Answers that read nothing: ``length`` words of each context, by place alone.

    ``where`` is for each question between 0 (its first words) and 1 (its last ones).
    """
    spans = []
    for context, place in zip(questions.contexts, where, strict=True):
        _, starts, ends = _located(context, questions.context_language)
        first = round(place * max(0, len(starts) - length))
        last = min(first + length, len(starts)) - 1
        spans.append(context[starts[first] : ends[last]] if starts else "")
    return spans


def usual_place(questions: Questions) -> tuple[float, int]:
    """Where answers stand, the median: place as in `placed_answers`, and length in words."""
    places, lengths = [], []
    rows = zip(questions.contexts, questions.answers, strict=True)
    for context, (answer, *_) in rows:
        _, starts, ends = _located(context, questions.context_language)
        first, last = bisect_right(ends, answer.start), bisect_left(starts, answer.end)
        places.append(first / max(1, len(starts) - (last - first)))
        lengths.append(last - first)
    return float(np.median(places)), max(1, int(np.median(lengths)))


def answered(
    model: str, sets: Mapping[str, Questions], say: Callable[[Questions], Sequence[str]]
) -> Grid:
    """The grid of what answers without a model: ``say`` is asked about every pair of languages."""
    gold = next(iter(aligned(sets).values()))
    scores = np.empty((2, len(sets), len(sets), len(gold)))
    for (i, context), (j, asked) in product(enumerate(sets.values()), repeat=2):
        cell = crossed(context, asked)
        said = zip(say(cell), cell.answers, strict=True)
        scores[:, i, j] = np.transpose([answers.squad(*pair) for pair in said])
    measures = dict(zip(("F1, SQuAD", "EM, SQuAD"), scores, strict=True))
    return Grid(model, tuple(sets), measures, groups_of(gold))


def without_reading(
    sets: Mapping[str, Questions], learnt: Questions, span: int, seed: int
) -> list[Grid]:
    """Baselines: three that see no question, and the words that the question's words surround.

    The first eight words; ``span`` words drawn at random, in each language at the same place; the
    place and length of the median answer of what is ``learnt``; `overlap_answers`.
    """
    n = len(next(iter(sets.values())))
    random = np.random.default_rng(seed).uniform(size=n)
    place, length = usual_place(learnt)
    return [
        answered("first eight words", sets, lambda x: placed_answers(x, 8, np.zeros(n))),
        answered(f"{span} random words", sets, lambda x: placed_answers(x, span, random)),
        answered("usual place", sets, lambda x: placed_answers(x, length, np.full(n, place))),
        answered("nearest span", sets, lambda x: overlap_answers(x, span)),
    ]


@lru_cache(maxsize=2**11)
def _kernel(n: int, size: int) -> np.ndarray:
    """Weight of a word by its offset from the beginning of the span, from n - 1 down to 1 - n."""
    offset = np.arange(n - 1, -n, -1)
    weight = 1 / (1 + np.abs(offset - (size - 1) / 2))
    weight[(offset >= 0) & (offset < size)] = 0
    return weight
