"""Easy and hard questions: how near the question's words are to the answer in each.

Rajaee and Monz, section 4; Figures 1, 11 and 12.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse, stats
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.preprocessing import normalize

from printed import printed_tables
from printed.mixing_claims import CLASSES, PAIRS_ROWS, PrintedScores, class_points
from xlx.experiment.grids import PARTS, Grid, GridError, groups_of, reading_scores
from xlx.measures import statistics
from xlx.measures.mixing import (
    OVERALL,
    MixingError,
    Resamples,
    as_points,
    checked_scores,
    listed,
    paired_difference,
    percentile_ends,
    seed_errors,
)
from xlx.results import ledger, work
from xlx.subjects import identity, loading
from xlx.subjects.states import tokenise
from xlx.text import examples, labelled, parallel_sets, questions
from xlx.text.examples import Examples
from xlx.text.files import TextError
from xlx.text.parallel import load
from xlx.text.parallel_sets import aligned, crossed
from xlx.text.questions import Questions, stands, without_punctuation, word_spans, words

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
    the easiest are at distance 0, NaN where both are. MixingError for numbers that are not one of
    each per example, examples of fewer than two groups, another share.
    """
    score, distance = np.asarray(score, np.float64), np.asarray(distance, np.float64)
    if score.ndim != 1 or score.shape != distance.shape or np.isnan([score, distance]).any():
        raise MixingError(
            f"scores {score.shape} and distances {distance.shape}: one number of each is needed"
        )
    if not 0 < share <= 0.5:
        raise MixingError(f"the share of a tail is {share}: it is above 0 and at most 0.5")
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
    return table, (float(ratio), *_ratio_ends(ratios))


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


def _ratio_ends(ratios: np.ndarray) -> tuple[float, float]:
    """Percentiles that are ratios drawn, as there is no middle between a ratio and infinity."""
    known = ratios[~np.isnan(ratios)]
    if not len(known):
        return float("nan"), float("nan")
    share = (1 - statistics.LEVEL) / 2
    low, high = np.quantile(known, [share, 1 - share], method="nearest")
    return float(low), float(high)


class _Located(NamedTuple):
    """The words of a context as they are compared, and where each begins and ends."""

    compared: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]


def _compared(word: str) -> str:
    return word.lower().translate(without_punctuation())


@lru_cache(maxsize=2**13)
def _located(context: str, language: str) -> _Located:
    spans = word_spans(context, language)
    plain = tuple(_compared(word) for word, _, _ in spans)
    return _Located(plain, tuple(s for _, s, _ in spans), tuple(e for _, _, e in spans))


@lru_cache(maxsize=2**15)
def _asked(question: str, language: str) -> frozenset[str]:
    """The words of a question as they are compared; of punctuation alone, none."""
    return frozenset(map(_compared, words(question, language))) - {""}


def _occurrences(asked: frozenset[str], located: _Located) -> np.ndarray:
    """Positions of the words of a context that are words of the question: int64, ascending."""
    places = [i for i, word in enumerate(located.compared) if word in asked]
    return np.array(places, dtype=np.int64)


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
        located = _located(context, questions.context_language)
        places = _occurrences(_asked(question, questions.question_language), located)
        if places.size:
            first = bisect_right(located.ends, answer.start)
            last = bisect_left(located.starts, answer.end) - 1
            distances[i] = np.abs(places - (first + last) / 2).mean()
    return distances


def overlap_answers(questions: Questions, length: int) -> list[str]:
    """Answers without a model: the ``length`` words with the question's words closest around them.

    Of all spans of ``length`` words (of the whole context, where it has fewer), that with the
    largest sum of ``1 / (1 + d)`` over the words of the context outside the span that are words of
    the question, at distance ``d`` from its centre; the first of equals. Words are compared as in
    `word_distances`, of which this is the shortcut. Raises TextError for a length below 1.
    """
    if length < 1:
        raise TextError(f"an answer of {length} words is none; take at least one")
    spans = []
    for question, context in zip(questions.questions, questions.contexts, strict=True):
        located = _located(context, questions.context_language)
        n = len(located.starts)
        size = min(length, n)
        if not n:
            spans.append("")
            continue
        is_asked = np.zeros(n)
        is_asked[_occurrences(_asked(question, questions.question_language), located)] = 1
        # Rounded, so that sums that are equal but for the order of their terms are a tie.
        sums = np.convolve(is_asked, _kernel(n, size), mode="full")[n - 1 : 2 * n - size]
        first = int(np.round(sums, 9).argmax())
        spans.append(context[located.starts[first] : located.ends[first + size - 1]])
    return spans


@lru_cache(maxsize=2**11)
def _kernel(n: int, size: int) -> np.ndarray:
    """Weight of a word by its offset from the beginning of the span, from n - 1 down to 1 - n."""
    offset = np.arange(n - 1, -n, -1)
    weight = 1 / (1 + np.abs(offset - (size - 1) / 2))
    weight[(offset >= 0) & (offset < size)] = 0
    return weight


#: Inverse strengths of the penalty that cross-validation chooses from.
STRENGTHS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


FOLDS = 5


def bag_of_subwords(
    name: str, train: Examples, sets: Mapping[str, Examples], *, seed: int = 0
) -> Grid:
    """A logistic regression on the subwords of a pair, asked about every pair of languages.

    Its inputs are, for each subword of the vocabulary (of the tokenizer of model ``name``), whether
    both parts have it, the first part alone, or the second alone (scaled to unit length); and what
    share of each part's distinct subwords the other has. The strength of the ridge penalty is the
    best of `STRENGTHS` by the accuracy in five folds of the training set, which keep pairs with the
    same first text together. ``seed`` is that of the solver. GridError for single sentences or
    other classes than those of the training set, TextError for sets that are not parallel.
    """
    aligned(sets)
    gold = next(iter(sets.values()))
    if gold.classes != train.classes or gold.second is None or train.second is None:
        raise GridError(f"{gold.name} and {train.name} are not both of pairs with the same classes")
    about = {
        "model": identity.fingerprint(name),
        "train": train.text_hash(),
        "sets": [part.text_hash() for part in sets.values()],
        "seed": seed,
    }
    value = work.result(BAG, about, name, train, list(sets.values()), seed)
    return _grid("bag of subwords", sets, value["predicted"])


def _bag_of_subwords(
    name: str, train: Examples, sets: Sequence[Examples], seed: int
) -> dict[str, np.ndarray]:
    """What it says of every cell: ``predicted``, int16 ``(L, L, n)``."""
    tokenizer = loading.tokenizer(name)
    texts = [train.first, train.second]
    texts += [side for part in sets for side in (part.first, part.second)]
    distinct = list(dict.fromkeys(text for side in texts for text in side))
    columns, _ = tokenise(tokenizer, distinct, limit=None, add_special_tokens=False)
    bags = dict(zip(distinct, map(frozenset, columns["input_ids"]), strict=True))
    size = len(tokenizer)
    groups = groups_of(train)
    learnt = _features(train, bags, size)
    # A penalised weight of what the training set never has stays at zero, so it is left out: most
    # of the vocabulary.
    seen = np.flatnonzero(learnt.getnnz(axis=0))
    n_folds = min(FOLDS, len(np.unique(groups)))
    fitted = GridSearchCV(
        LogisticRegression(max_iter=2000, random_state=seed),
        {"C": list(STRENGTHS)},
        cv=GroupKFold(n_folds),
    ).fit(learnt[:, seen], train.labels, groups=groups)

    def answers(cell: Examples) -> np.ndarray:
        return fitted.predict(_features(cell, bags, size)[:, seen])

    rows = [[answers(crossed(first, second)) for second in sets] for first in sets]
    return {"predicted": np.array(rows, dtype=np.int16)}


def _disagreement(stored: ledger.Value, computed: ledger.Value) -> float:
    """The share of answers that differ."""
    one, other = stored["predicted"], computed["predicted"]
    return float((one != other).mean()) if one.shape == other.shape else np.inf


BAG = work.Kind(
    "bag_of_subwords", _bag_of_subwords, version=1, tolerance=0.01, difference=_disagreement
)


def _features(pairs: Examples, bags: Mapping[str, frozenset[int]], size: int) -> sparse.csr_matrix:
    """``(n, 3 * size + 2)``: in both, in the first alone, in the second alone, and two shares."""
    rows, columns, shares = [], [], []
    for i, (first, second) in enumerate(zip(pairs.first, pairs.second, strict=True)):
        one, other = bags[first], bags[second]
        both = one & other
        pieces = [*sorted(both), *(size + piece for piece in sorted(one - both))]
        pieces += [2 * size + piece for piece in sorted(other - both)]
        rows += [i] * len(pieces)
        columns += pieces
        shares.append((len(both) / max(1, len(one)), len(both) / max(1, len(other))))
    present = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(pairs), 3 * size))
    # At unit length, the hundred subwords of a pair do not drown the two shares.
    return sparse.hstack([normalize(present), sparse.csr_matrix(np.array(shares))]).tocsr()


def surface_rule(sets: Mapping[str, Examples], alike: str, *, counts: bool = True) -> Grid:
    """Says class ``alike`` of the pairs of a cell whose parts show the least difference.

    As many pairs of each cell as have the label. The difference is in `sameness.surface`: first the
    numbers of digits and question marks (with ``counts``), then the ratio of lengths, against the
    median ratio of the cell, as one language is shorter than another. So it sees all pairs of a
    cell at once, and how many are alike, which no model does. For `sameness.same_or_other`.

    TextError for sets that are not parallel, GridError for single sentences or a class that
    there is not.
    """
    aligned(sets)
    gold = next(iter(sets.values()))
    if gold.second is None or alike not in gold.classes:
        raise GridError(f"{gold.name} are no pairs of which some have the label {alike!r}")
    positive = gold.classes.index(alike)
    n_alike, negative = int((gold.labels == positive).sum()), int(positive == 0)
    firsts, seconds = (
        [examples.surface(getattr(part, side)) for part in sets.values()]
        for side in ("first", "second")
    )
    predictions = np.full((len(sets), len(sets), len(gold)), negative, dtype=np.int16)
    for i, j in np.ndindex(len(sets), len(sets)):
        apart = firsts[i] - seconds[j]
        apart[:, 0] -= np.median(apart[:, 0])
        length, *counted = np.abs(apart).T
        order = np.lexsort((length, np.sum(counted, axis=0) * counts))
        predictions[i, j, order[:n_alike]] = positive
    return _grid("length and digits" if counts else "length alone", sets, predictions)


def _grid(model: str, sets: Mapping[str, Examples], predictions: np.ndarray) -> Grid:
    gold = next(iter(sets.values()))
    scores = {"accuracy": (predictions == gold.labels).astype(np.float64)}
    return Grid(model, tuple(sets), scores, groups_of(gold), predictions)


def nearest_span(sets: Mapping[str, Questions], length: int) -> Grid:
    """`question_overlap.overlap_answers` on every pair of languages: spans of ``length`` words."""
    about = {"sets": _texts(sets), "length": length}
    scores = work.result(NEAREST, about, list(sets.values()), length)["scores"]
    by_name = {"F1": scores[:, :, 0], "EM": scores[:, :, 1]}
    return Grid("nearest span", tuple(sets), by_name, groups_of(next(iter(sets.values()))))


def _nearest_span(sets: Sequence[Questions], length: int) -> dict[str, np.ndarray]:
    """F1 and exact match of every cell: ``scores``, ``(L, L, 2, n)``."""

    def scores(cell: Questions) -> np.ndarray:
        return reading_scores(cell, overlap_answers(cell, length))

    rows = [[scores(crossed(context, asked)) for asked in sets] for context in sets]
    return {"scores": np.array(rows)}


NEAREST = work.Kind("nearest_span", _nearest_span, version=1)


def distances(
    sets: Mapping[str, Questions], *, max_distance: int, across: bool = False
) -> np.ndarray:
    """`question_overlap.word_distances` of parallel questions, in their own contexts: ``(L, n)``.

    ``across``: ``(L, L, n)``, of every pair of languages, contexts in the rows.
    """
    about = {"sets": _texts(sets), "max_distance": max_distance, "across": across}
    value = work.result(DISTANCES, about, list(sets.values()), max_distance, across)
    return value["distances"]


def _distances(sets: Sequence[Questions], max_distance: int, across: bool) -> dict[str, np.ndarray]:
    def of(cell: Questions) -> np.ndarray:
        return word_distances(cell, max_distance=max_distance)

    if not across:
        return {"distances": np.array([of(asked) for asked in sets])}
    pairs = [[of(crossed(context, asked)) for asked in sets] for context in sets]
    return {"distances": np.array(pairs)}


DISTANCES = work.Kind("distances", _distances, version=1)


def _texts(sets: Mapping[str, Questions]) -> list[list[str]]:
    """Language (words are cut by its rules) and hash of each set, in order; they are parallel."""
    aligned(sets)
    return [[asked.context_language, asked.text_hash()] for asked in sets.values()]


def pair_cells(
    languages: Sequence[str], pair: tuple[str, str], *, unseen_only: bool = False
) -> dict[str, np.ndarray]:
    """Which cells each row of Tables 4 and 9 averages, boolean ``(L, L)``; * is all languages."""
    if pair[0] == pair[1] or not {*pair} <= {*languages}:
        raise MixingError(
            f"{'-'.join(pair)} are not two languages of the grid, which has {', '.join(languages)}"
        )
    one, two = (np.array([code == language for code in languages]) for language in pair)
    star = ~(one | two) if unseen_only else np.ones(len(languages), dtype=bool)
    if not star.any():
        raise MixingError(f"the grid has no language other than {' and '.join(pair)}")
    sides = {"l1": one, "l2": two, "*": star}
    return {
        row: np.outer(*(sides[side] for side in row.split("-", maxsplit=1))) for row in PAIRS_ROWS
    }


def pair_table(
    conditions: Mapping[str, np.ndarray], languages: Sequence[str], pair: tuple[str, str],
    groups: Sequence[int] | None = None, *, unseen_only: bool = False, n_resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """The averages of Tables 4 and 9 with intervals, for several models on the same examples.

    ======== ======================================================== ==========
    row      mean over the cells                                      how many
    ======== ======================================================== ==========
    l1-l2    part 1 in l1, part 2 in l2                               1
    l2-l1    part 1 in l2, part 2 in l1                               1
    *-l2     column l2: part 1 in any language, l1 and l2 among them  L
    l1-*     row l1: part 2 in any language, l1 and l2 among them     L
    *-*      the whole grid, its diagonal included                    L²
    ======== ======================================================== ==========

    The paper says "the average performance over all languages"; this is that, taken literally.
    Table 1 bears it out: with the diagonal the whole grid of mBERT has
    (65.7 + 14 × 54.5) / 15 = 55.2, the baseline is printed as 55.3, and without it 54.5 would be
    left. With ``unseen_only`` a star runs over the L - 2 languages that are in neither place of the
    pair, which the model has not been fine-tuned on in the starred place.

    ``conditions`` are the scores of the model fine-tuned on the pair and of its baselines, by name;
    ``pair`` is l1, the language of part 1 in fine-tuning, and l2, that of part 2; other options as
    in `within_across`. A row has its ``pair`` ("en-de"), ``row`` (`PAIRS_ROWS`), ``condition`` and
    ``n_cells``; ``gain``, ``gain_low`` and ``gain_high`` are by how much the first condition is
    above the row's, paired (0 in its own). MixingError also for conditions of unequal shapes, and
    for a pair that is not of two languages of the grid.
    """
    inside = pair_cells(languages, pair, unseen_only=unseen_only)
    grids = {name: checked_scores(scores, languages) for name, scores in conditions.items()}
    if len(sizes := {scores.shape[-1] for scores, _ in grids.values()}) > 1:
        raise MixingError(f"{', '.join(grids)} have {sorted(sizes)} examples: the same are needed")
    drawn = Resamples.draw(*sizes, groups, n_resamples, seed)
    # an average over cells first, so that only five rows are resampled
    values = {
        name: np.array([scores[mask].mean(axis=0) for mask in inside.values()])
        for name, (scores, _) in grids.items()
    }
    by_seed = {
        name: np.stack([each[:, mask].mean(axis=(1, 2)) for mask in inside.values()], axis=1)
        for name, (_, each) in grids.items()
    }
    first, first_seeds = next(iter(values.values())), next(iter(by_seed.values()))
    n_cells, tables = [int(mask.sum()) for mask in inside.values()], []
    for name, scores in values.items():
        gains = drawn.means(first - scores)
        if scores is not first:
            gains = gains - seed_errors(by_seed[name], n_resamples, stream=1)
        numbers = {"score": (scores.mean(axis=-1), drawn.means(scores), by_seed[name])}
        seeds = None if scores is first else first_seeds
        numbers["gain"] = ((first - scores).mean(axis=-1), gains, seeds)
        columns = {"pair": "-".join(pair), "row": list(inside), "condition": name}
        table = pd.DataFrame(columns | {"n_cells": n_cells})
        for number, (estimate, resamples, each) in numbers.items():
            start = "" if number == "score" else "gain_"
            table[number] = estimate
            table[f"{start}low"], table[f"{start}high"] = percentile_ends(resamples, each)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


#: Tasks as tables call them.
TASK_NAMES = {"NLI": "XNLI", "PI": "PAWS-X", "same": "same or other", "QA": "XQuAD"}


@dataclass(frozen=True, eq=False)
class TaskData:
    """What is learnt, held out and asked: ``sets`` by language, parallel.

    ``name`` is that of the held-out set in a job. ``left_out``: reason → examples left out.
    """

    train: Examples | Questions
    held_out: Examples | Questions
    sets: Mapping[str, Any]
    left_out: Mapping[str, int]
    name: str = "validation"

    @property
    def gold(self) -> Examples | Questions:
        """The set of the first language."""
        return next(iter(self.sets.values()))

    @property
    def guess(self) -> float:
        """The share of the commonest label in the sets."""
        return commonest_share(self.gold)

    def described(self) -> pd.Series:
        """Sizes, classes and what was left out."""
        rows: dict[str, Any] = {"to learn": len(self.train), "held out": len(self.held_out)}
        rows |= {"to test": len(self.gold), "languages": len(self.sets)}
        if isinstance(self.gold, Questions):
            rows["paragraphs"] = len(set(self.gold.contexts))
        else:
            for what, part in (("to learn", self.train), ("to test", self.gold)):
                rows |= {f"{what}, {x}": n for x, n in examples.class_counts(part).items()}
            rows |= {"first texts": len(set(self.gold.first))}
            rows |= {"always the commonest label": f"{self.guess:.1%}"}
        return pd.Series(rows | {f"left out: {why}": n for why, n in self.left_out.items()})


def commonest_share(gold: Examples) -> float:
    """The share of the commonest label."""
    return max(examples.class_counts(gold).values()) / len(gold)


def pair_data(
    task: str, languages: Sequence[str], source: str, n_train: int | None, n_test: int | None, *,
    train_source: str | None = None, train_data: str | None = None, test_data: str | None = None,
    split: str = "test",
) -> TaskData:  # fmt: skip
    """Pairs of a task ("NLI", "PI"): the shortest ``n_train`` of ``source``, ``n_test`` to ask."""
    sets, left_out = labelled.parallel_examples(task, languages, split, n_test, path=test_data)
    origin = {"source": train_source, "path": train_data}
    train = labelled.parallel_examples(task, [source], "train", n_train, **origin)[0][source]
    held_out = labelled.parallel_examples(task, [source], "validation", path=test_data)[0][source]
    return TaskData(train, held_out, sets, left_out)


def question_data(
    languages: Sequence[str], source: str, n_train: int | None, n_test: int | None, *,
    train_source: str, per_context: int | None = None, train_data: str | None = None,
    test_data: str | None = None,
) -> TaskData:  # fmt: skip
    """Questions with the shortest contexts, to learn in ``source`` and to ask of XQuAD."""
    sets, lacking = questions.parallel_questions(
        "xquad", languages, "test", n_test, per_context=per_context, path=test_data
    )
    learnt = questions.parallel_questions(train_source, [source], "train", n_train, path=train_data)
    held_out = questions.load_questions(train_source, source, "validation", path=train_data)
    when_read = pd.DataFrame({code: part.left_out for code, part in sets.items()}).sum(axis=1)
    left_out = {"lacking in a language": sum(lacking.values())} | when_read.to_dict()
    return TaskData(learnt[0][source], held_out, sets, left_out)


def same_or_other_data(
    corpus: str, languages: Sequence[str], source: str, n_train: int, n_test: int, seed: int, *,
    alike: bool,
) -> TaskData:  # fmt: skip
    """Pairs of which the second is the same sentence or another one (drawn ``alike``)."""
    parallel = load(corpus, drop_duplicates=True).select(languages)
    train, sets = examples.same_or_other_parts(parallel, source, n_train, n_test, seed, alike=alike)
    return TaskData(train[source], sets[source], sets, {}, name=source)


def worked_pairs(
    sets: Mapping[str, Examples],
    cells: Sequence[tuple[str, str]],
    rows: int | Sequence[int] = 0,
    parts: Sequence[str] = ("first", "second"),
) -> pd.DataFrame:
    """An example as it stands in some cells (language of each part): a row a cell, in full."""
    of = [rows] * len(cells) if isinstance(rows, int) else rows
    gold = next(iter(sets.values()))
    shown = [
        (f"{a}-{b}", sets[a].first[k], sets[b].second[k], gold.classes[gold.labels[k]])
        for (a, b), k in zip(cells, of, strict=True)
    ]
    return pd.DataFrame(shown, columns=["cell", *parts, "label"]).set_index("cell")


def worked_questions(
    sets: Mapping[str, Questions], cells: Sequence[tuple[str, str]], longest: int = 90
) -> pd.DataFrame:
    """The first question in some cells, with the beginning of its context."""
    rows = {
        f"{a}-{b}": (f"{sets[a].contexts[0][:longest]} …", sets[b].questions[0],
                     sets[a].answers[0][0].text)
        for a, b in cells
    }  # fmt: skip
    table = pd.DataFrame.from_dict(rows, "index", columns=[*PARTS["QA"], "answer"])
    return table.rename_axis("cell")


def control_data(
    languages: Mapping[str, Sequence[str]], source: str, n_train: Mapping[str, int | None],
    n_test: Mapping[str, int | None], *, train_sources: Mapping[str, str],
    train_data: Mapping[str, str], test_data: Mapping[str, str], per_context: int | None,
    corpus: str, seed: int,
) -> dict[str, TaskData]:  # fmt: skip
    """The data of each task that ``languages`` names ("NLI", "PI", "same", "QA")."""
    data = {}
    for task, codes in languages.items():
        first = codes, source, n_train[task], n_test[task]
        folders = {"train_data": train_data.get(task), "test_data": test_data.get(task)}
        folders["train_source"] = train_sources.get(task)
        if task == "QA":
            data[task] = question_data(*first, per_context=per_context, **folders)
        elif task == "same":
            data[task] = same_or_other_data(corpus, *first, seed, alike=False)
        else:
            data[task] = pair_data(task, *first, **folders)
    return data


def mixed_pairs(
    pairs: Sequence[str], languages: Sequence[str], n_train: int | None, n_test: int | None, *,
    train_source: str | None, train_data: str | None, test_data: str | None,
) -> tuple[dict[str, Examples], dict[str, Examples]]:  # fmt: skip
    """Pairs of inference to learn, by languages of premise and hypothesis ("en-de"), and to ask."""
    codes = {pair: pair.split("-") for pair in pairs}
    taught = list(dict.fromkeys(code for pair in codes.values() for code in pair))
    origin = {"source": train_source, "path": train_data}
    train, _ = labelled.parallel_examples("NLI", taught, "train", n_train, **origin)
    sets, _ = labelled.parallel_examples("NLI", languages, "test", n_test, path=test_data)
    return {pair: parallel_sets.crossed(train[a], train[b]) for pair, (a, b) in codes.items()}, sets


def mixed_sizes(learnt: Mapping[str, Examples], sets: Mapping[str, Examples]) -> pd.Series:
    """How many pairs of each kind are learnt and asked."""
    gold = next(iter(sets.values()))
    rows = {f"to learn, {pair}": len(part) for pair, part in learnt.items()}
    rows |= {"to test": len(gold), "languages": len(sets)}
    return pd.Series(rows | {f"to test, {x}": n for x, n in examples.class_counts(gold).items()})


def printed_by_class(languages: Sequence[str], classes: Sequence[str]) -> pd.DataFrame:
    """Tables 6, 12 and 13 of the paper: means over some languages, by the names of our classes."""
    paper = class_points(PrintedScores(), "PI")
    paper["label"] = paper["label"].map(dict(zip(CLASSES["PI"], classes[::-1], strict=True)))
    paper = paper[paper["language"].isin(languages)]
    means = paper.groupby(["model", "setting", "label"], sort=False)["score"].mean()
    return means.reset_index().assign(language=OVERALL)


def _rows(table: pd.DataFrame, index: str | list[str] = "model", **keys: object) -> pd.DataFrame:
    """Rows with some values, by the columns of ``index``."""
    for column, value in ({"language": OVERALL} | keys).items():
        table = table[table[column] == value]
    return table.set_index(index)


def _claim_all(
    audit: printed_tables.Audit, where: str, claim: str, table: pd.DataFrame, holds
) -> None:
    """A claim on all rows of a table, whose parts are whether each row ``holds``."""
    audit.claim(where, claim, listed(table), *holds)


def of_inference(
    summaries: pd.DataFrame, grids: Mapping[str, Grid], baselines: pd.DataFrame,
    above: pd.DataFrame, source: str, guess: float, parts: Sequence[str], **options: Any,
) -> printed_tables.Audit:  # fmt: skip
    """Of natural language inference, by the models and their baselines.

    ``grids`` are by model, the last one the model that should lose least; ``above`` is
    `experiments.above_baselines`; ``source``, ``guess`` and ``parts`` are the language of
    fine-tuning, the share of the commonest label and the names of parts; ``options`` those of the
    resamples.
    """
    audit, models = printed_tables.Audit(), list(grids)
    for code, said in ((OVERALL, "mean over languages"), (source, source)):
        drops = _rows(summaries, language=code, setting="drop").loc[models]
        _claim_all(audit, "(1)", f"across is below within, {said}", drops, drops["low"] > 0)
    least = models[-1]
    if len(models) > 1:
        for code in (OVERALL, source):
            more = _drops_above(grids, least, code, **options)
            claim = f"the drop is less in {least}, {code}"
            audit.claim("(2)", claim, f"more in the others: {listed(more)}", *(more["low"] > 0))
    outside = _rows(summaries, setting="across").loc[models]
    _claim_all(audit, "(2)", "across is above the commonest label", outside, outside["low"] > guess)
    means = grids[least].scores["accuracy"].mean(axis=2)
    highest = means.argmax(axis=1) == grids[least].languages.index(source)
    audit.claim(
        "(2)",
        f"{least} is best with the {parts[1]} in {source}, whatever the {parts[0]}",
        f"for {highest.sum()} of {len(highest)} languages of the {parts[0]}",
        *highest,
    )
    bag = _rows(baselines, "setting", model="bag of subwords")
    holds = bag.loc["drop", "low"] > 0, bag.loc["within", "low"] > guess
    claim = "the bag of subwords loses across, and has within more than the commonest label"
    _claim_all(audit, "(4)", claim, bag, holds)
    for baseline in dict.fromkeys(above["baseline"]):
        for setting in ("within", "across"):
            rows = _rows(above, baseline=baseline, setting=setting)
            claim = f"{setting}, above {baseline}"
            _claim_all(audit, "baselines", claim, rows, rows["low"] > 0)
    for setting in ("within", "drop"):
        rows = _rows(
            above[above["baseline"] != "bag of subwords"], language=source, setting=setting
        )
        claim = f"{setting}, {source}, more than without the {parts[0]}"
        _claim_all(audit, "baselines", claim, rows, rows["low"] > 0)
    return audit


def _drops_above(grids: Mapping[str, Grid], least: str, code: str, **options: Any) -> pd.DataFrame:
    """By model: by how much more it drops than ``least``, in a language."""
    last = grids[least]
    tables = [
        paired_difference(
            grid.each["accuracy"], last.each["accuracy"], grid.languages, last.groups, **options
        ).assign(model=name)
        for name, grid in grids.items()
        if name != least
    ]
    return _rows(pd.concat(tables), language=code, setting="drop")


def of_paraphrases(
    summaries: pd.DataFrame, same: Mapping[str, pd.DataFrame], models: Sequence[str]
) -> printed_tables.Audit:
    """Of PAWS-X (``summaries``) and of "same or other", by how the other was drawn (``same``)."""
    audit = printed_tables.Audit()
    for setting in ("within", "across"):
        rows = _rows(summaries, setting=setting)
        holds = (rows["low"] <= 0.5) & (rows["high"] >= 0.5)
        _claim_all(audit, "PAWS-X", f"{setting} is not told from guessing", rows, holds)
    for name, table in same.items():
        where, across = f"same, {name}", _rows(table, setting="across")
        ahead, rule = across.loc[models], across.loc["length and digits"]
        claim = "a model is above guessing across"
        _claim_all(audit, where, claim, ahead, ahead["low"] > 0.5)
        audit.claim(
            where,
            "a model is above length and digits across",
            f"{listed(ahead)}; the rule {100 * rule['score']:.1f}",
            *(ahead["low"] > rule["high"]),
        )
        bag = _rows(table, "setting", model="bag of subwords")
        holds = bag.loc["within", "score"] == 1, bag.loc["across", "high"] < 0.6
        claim = "the bag of subwords is perfect within and at chance across"
        _claim_all(audit, where, claim, bag, holds)
    return audit


def of_questions(
    summaries: pd.DataFrame, whole: pd.DataFrame, above: pd.DataFrame, ratios: pd.DataFrame,
    models: Sequence[str], tail: float,
) -> printed_tables.Audit:  # fmt: skip
    """Of questions: the models' F1, the rule on all questions (``whole``), its tails."""
    audit = printed_tables.Audit()
    drops = _rows(summaries, measure="F1", setting="drop").loc[models]
    _claim_all(audit, "(1)", "across is below within: the models", drops, drops["low"] > 0)
    rule = _rows(whole, "setting")
    half = rule.loc["across", "score"] < rule.loc["within", "score"] / 2
    claim = "the rule loses more than half across, on all questions"
    _claim_all(audit, "(1)", claim, rule, [half])
    for baseline, rows in _rows(above[above["setting"] != "drop"]).groupby("baseline", sort=False):
        _claim_all(audit, "baselines", f"a model is above: {baseline}", rows, rows["low"] > 0)
    low, high, zero = ratios["low"], ratios["high"], ratios["F1 of 0, %"]
    audit.claim(
        "(2)",
        "the rule's hardest questions are twice as far as its easiest, by language",
        f"{low.max():.2f} is the highest lower end, {high.max():.2f} upper end",
        *(low <= 2) & (high >= 2),
    )
    audit.claim(
        "(2)",
        "the hardest fifth can be told from the rest by the rule's F1",
        f"F1 is 0 on {zero.min():.0f} to {zero.max():.0f} %",
        *(zero < 100 * tail),
    )
    return audit


def gains_by_shuffling(gaps: pd.DataFrame) -> pd.DataFrame:
    """Rows of `experiments.control_tables`' gaps that are below zero: gains by shuffling."""
    rows = gaps[(gaps["setting"] != "drop") & (gaps["high"] < 0)]
    rows = rows.set_index(["task", "model", "language", "setting"])
    return rows.assign(points=as_points(rows))[["points"]]


def of_controls(gaps: pd.DataFrame, tasks: Iterable[str] = TASK_NAMES) -> printed_tables.Audit:
    """Of the control task: what shuffling words costs (``gaps``), and whether it gains."""
    audit = printed_tables.Audit()
    settings = gaps[gaps["setting"] != "drop"]
    n, n_gained = len(settings), len(gains_by_shuffling(gaps))
    claim = "no interval of a difference is below zero"
    audit.claim("falsifier", claim, f"{n_gained} are", not n_gained)
    few = n_gained <= stats.binom.ppf(0.95, n, 0.025)
    audit.claim("falsifier", "no more are than chance allows", f"{n_gained} of {n}", few)
    for name in (TASK_NAMES[task] for task in tasks):
        rows = _rows(settings, "setting", task=name)
        claim = "loses nothing by shuffling (no interval above zero)"
        _claim_all(audit, name, claim, rows, rows["low"] <= 0)
    return audit


def of_pairs(
    table: pd.DataFrame, unseen: pd.DataFrame, alone: pd.DataFrame, above: pd.DataFrame, part: str
) -> printed_tables.Audit:
    """Of fine-tuning on a pair: whether a row's gain is above zero in all pairs, or in none.

    ``table`` and ``unseen`` are `experiments.pair_averages` over all languages and over those that
    were not learnt, ``alone`` that of models which read one ``part`` ("hypothesis") alone, and
    ``above`` is `experiments.above_one_part`.
    """
    audit = printed_tables.Audit()
    claims = (
        ("(1)", "l1-l2 gains", table, "l1-l2", True),
        ("(2)", "l2-l1 does not gain", table, "l2-l1", False),
        ("(3)", "the whole grid does not gain", table, "*-*", False),
        ("(3)", "the grid of languages not learnt does not gain", unseen, "*-*", False),
        ("columns", "*-l2 gains", table, "*-l2", True),
        ("columns", "*-l2 gains over premises not learnt", unseen, "*-l2", True),
        ("columns", "l1-* does not gain", table, "l1-*", False),
        (f"{part} only", "*-l2 gains", alone, "*-l2", True),
        (f"{part} only", "l1-l2 is above it", above, "l1-l2", True),
        (f"{part} only", "*-l2 is above it", above, "*-l2", True),
        (f"{part} only", "the whole grid is above it", above, "*-*", True),
    )
    for where, claim, frame, row, up in claims:
        compared = (frame["condition"] != "fine-tuned") & (frame["row"] == row)
        rows = frame[compared].set_index("pair")
        said = ", ".join(f"{pair} {points}" for pair, points in as_points(rows, "gain").items())
        audit.claim(where, claim, said, *((rows["gain_low"] > 0) == up))
    return audit
