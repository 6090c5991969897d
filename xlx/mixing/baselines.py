"""Baselines of a grid: models too simple for the task, asked the same.

Rajaee and Monz ask for "the performance of a simple neural network on the task" beside guessing
(section 6). `bag_of_subwords` knows overlap and single words, but no order and no other language;
`surface_rule` goes by length, digits and question marks; `nearest_span` answers with the span that
the question's words surround most closely. (One part alone: `examples.only` and `grids.evaluate`.)
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.preprocessing import normalize

from xlx.core import work
from xlx.mixing.grids import Grid, GridError, groups_of, reading_scores
from xlx.models import loading
from xlx.models.batching import tokenise
from xlx.text import question_overlap, sameness
from xlx.text.examples import Examples
from xlx.text.parallel_sets import aligned, crossed
from xlx.text.questions import Questions

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
        "model": loading.fingerprint(name),
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


def _disagreement(stored: work.Value, computed: work.Value) -> float:
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
        [sameness.surface(getattr(part, side)) for part in sets.values()]
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
        return reading_scores(cell, question_overlap.overlap_answers(cell, length))

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
        return question_overlap.word_distances(cell, max_distance=max_distance)

    if not across:
        return {"distances": np.array([of(asked) for asked in sets])}
    pairs = [[of(crossed(context, asked)) for asked in sets] for context in sets]
    return {"distances": np.array(pairs)}


DISTANCES = work.Kind("distances", _distances, version=1)


def _texts(sets: Mapping[str, Questions]) -> list[list[str]]:
    """Language (words are cut by its rules) and hash of each set, in order; they are parallel."""
    aligned(sets)
    return [[asked.context_language, asked.text_hash()] for asked in sets.values()]
