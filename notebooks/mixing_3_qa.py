"""Readers: answers that read no question; how near the question's words are to the answer.

Rajaee and Monz, sections 3.3 and 4; Figures 1, 11 and 12. Scores are SQuAD's (`answers.squad`), by
which the paper's tables are made.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from printed.evaluator import explained, off_diagonal
from xlx.experiment import grids
from xlx.experiment.grids import Grid
from xlx.measures import answers, statistics
from xlx.measures.mixing import SETTINGS, Resamples, percentile_ends
from xlx.text.files import TextError
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


def side_intervals(
    one: Grid, source: str, *, n_resamples: int, seed: int
) -> dict[str, tuple[float, float, float]]:
    """`by_side` of F1 with intervals: paragraphs are resampled, and a seed is drawn for each."""
    each, codes = one.each["F1, SQuAD"], list(one.languages)
    drawn = Resamples.draw(each.shape[-1], one.groups, n_resamples, seed)
    picked = np.random.default_rng(seed).integers(len(each), size=n_resamples)
    means = np.stack([drawn.means(own.reshape(-1, own.shape[-1])) for own in each])
    means = means[picked, np.arange(n_resamples)].reshape(n_resamples, len(codes), len(codes))
    found = pd.DataFrame([by_side(square, codes, source) for square in means])
    score = by_side(each.mean(axis=(0, 3)), codes, source)
    return {x: (score[x], *map(float, percentile_ends(found[x].to_numpy()))) for x in score}


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
        compared, starts, ends = answers.located_words(context, questions.context_language)
        is_asked = answers.asked_words(compared, question, questions.question_language)
        places = np.flatnonzero(is_asked)
        if places.size:
            first = bisect_right(ends, answer.start)
            last = bisect_left(starts, answer.end) - 1
            distances[i] = np.abs(places - (first + last) / 2).mean()
    return distances


def printed_means(scores: pd.DataFrame, languages: Sequence[str]) -> dict[str, str]:
    """Means of a printed table (setting by language, in per cent) and the drop between them."""
    within, across = scores.loc[["within", "across"], languages].mean(axis=1)
    return {
        name: f"{value:.1f}"
        for name, value in zip(SETTINGS, (within, across, within - across), strict=True)
    }


def usual_place(questions: Questions) -> tuple[float, int]:
    """Where answers stand, the median: place as in `placed_answers`, and length in words."""
    places, lengths = [], []
    for context, (answer, *_) in zip(questions.contexts, questions.answers, strict=True):
        _, starts, ends = answers.located_words(context, questions.context_language)
        first, last = bisect_right(ends, answer.start), bisect_left(starts, answer.end)
        places.append(first / max(1, len(starts) - (last - first)))
        lengths.append(last - first)
    return float(np.median(places)), max(1, int(np.median(lengths)))


def without_reading(
    sets: Mapping[str, Questions], learnt: Questions, span: int, seed: int
) -> list[Grid]:
    """`grids.without_reading`, and as third the place and length of the median answer learnt."""
    *mute, nearest = grids.without_reading(sets, span, seed)
    place, length = usual_place(learnt)
    where = np.full(len(next(iter(sets.values()))), place)
    usual = grids.answered("usual place", sets, lambda x: answers.placed_answers(x, length, where))
    return [*mute, usual, nearest]
