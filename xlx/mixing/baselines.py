"""Baselines of a grid: models too simple for the task, asked the same.

Rajaee and Monz ask for a second baseline besides guessing: "the performance of a simple neural
network on the task" (section 6). Each of them on the whole grid of languages:

* `bag_of_subwords`: a logistic regression on which subwords both parts share and which only one
  has. It knows no order and no other language, but all the shortcuts that overlap and single words
  offer;
* `surface_rule`, where one of two classes is "the same": the pairs whose parts look most alike in
  length, digits and question marks, without reading them;
* one part alone (hypothesis-only, single-sentence): `examples.only` and `grids.evaluate`;
* `nearest_span` for questions: the span that the question's words surround most closely, without
  any model; and a reader without questions, `questions.questionless` and `grids.evaluate`.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.preprocessing import normalize

from xlx.core import work
from xlx.mixing.grid import Grid, GridError, groups_of, reading_scores
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

    Its inputs are, for each subword of the vocabulary, whether both parts have it, the first part
    alone, or the second alone (scaled to unit length); and what share of each part's distinct
    subwords the other has. The strength of the ridge penalty is the best of `STRENGTHS` by the
    accuracy in five folds of the training set, which keep pairs with the same first text together.

    Parameters
    ----------
    name : str
        A model, for its tokenizer.
    train : Examples
        Pairs of one language (or of two, `crossed`).
    sets : mapping
        Language → parallel pairs to ask.
    seed : int
        Of the solver; the same table for any.

    Raises
    ------
    GridError
        Single sentences, or other classes than those of the training set.
    TextError
        Sets that are not parallel.
    """
    if train.second is None:
        raise GridError(f"{train.name} has single sentences: overlap needs two parts")
    aligned(sets)
    one = next(iter(sets.values()))
    if one.classes != train.classes or one.second is None:
        raise GridError(f"{one.name} and {train.name} are not both of pairs with the same classes")
    about = {
        "model": loading.fingerprint(name),
        "train": train.text_hash(),
        "sets": [part.text_hash() for part in sets.values()],
        "seed": seed,
    }
    value = work.result(BAG, about, name, train, list(sets.values()), seed)
    return _grid("bag of subwords", train.name, seed, sets, value["predicted"])


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
    predictions = np.array(
        [
            [
                fitted.predict(_features(crossed(first, second), bags, size)[:, seen])
                for second in sets
            ]
            for first in sets
        ],
        dtype=np.int16,
    )
    return {"predicted": predictions}


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
        own = [
            *sorted(both),
            *(size + piece for piece in sorted(one - both)),
            *(2 * size + piece for piece in sorted(other - both)),
        ]
        rows += [i] * len(own)
        columns += own
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
    one = next(iter(sets.values()))
    if one.second is None or alike not in one.classes:
        raise GridError(f"{one.name} are no pairs of which some have the label {alike!r}")
    positive = one.classes.index(alike)
    shown = {
        code: (sameness.surface(part.first), sameness.surface(part.second))
        for code, part in sets.items()
    }
    n_alike = int((one.labels == positive).sum())
    other = next(k for k in range(len(one.classes)) if k != positive)
    predictions = np.full((len(sets), len(sets), len(one)), other, dtype=np.int16)
    for i, (first, _) in enumerate(shown.values()):
        for j, (_, second) in enumerate(shown.values()):
            apart = first - second
            apart[:, 0] -= np.median(apart[:, 0])
            length, *counted = np.abs(apart).T
            order = np.lexsort((length, np.sum(counted, axis=0) * counts))
            predictions[i, j, order[:n_alike]] = positive
    model = "length and digits" if counts else "length alone"
    return _grid(model, "nothing", 0, sets, predictions)


def _grid(
    model: str, train: str, seed: int, sets: Mapping[str, Examples], predictions: np.ndarray
) -> Grid:
    """The grid of a baseline, which has no logits and cuts nothing."""
    one = next(iter(sets.values()))
    return Grid(
        model=model,
        train=train,
        seed=seed,
        languages=tuple(sets),
        predictions=predictions,
        logits=np.empty(0),
        scores={"accuracy": (predictions == one.labels).astype(np.float64)},
        labels=one.labels,
        groups=groups_of(one),
        n_cut=np.zeros((len(sets), len(sets)), dtype=np.int64),
    )


def nearest_span(sets: Mapping[str, Questions], length: int) -> Grid:
    """`question_overlap.overlap_answers` on every pair of languages: spans of ``length`` words."""
    aligned(sets)
    one = next(iter(sets.values()))
    about = {"sets": _texts(sets), "length": length}
    scores = work.result(NEAREST, about, list(sets.values()), length)["scores"]
    return Grid(
        model="nearest span",
        train="nothing",
        seed=0,
        languages=tuple(sets),
        predictions=np.empty(0),
        logits=np.empty(0),
        scores={"F1": scores[:, :, 0], "EM": scores[:, :, 1]},
        labels=np.empty(0, dtype=np.int64),
        groups=groups_of(one),
        n_cut=np.zeros((len(sets), len(sets)), dtype=np.int64),
    )


def _nearest_span(sets: Sequence[Questions], length: int) -> dict[str, np.ndarray]:
    """F1 and exact match of every cell: ``scores``, ``(L, L, 2, n)``."""
    table = []
    for context_side in sets:
        row = []
        for question_side in sets:
            cell = crossed(context_side, question_side)
            row.append(reading_scores(cell, question_overlap.overlap_answers(cell, length)))
        table.append(row)
    return {"scores": np.array(table)}


NEAREST = work.Kind("nearest_span", _nearest_span, version=1)


def distances(
    sets: Mapping[str, Questions], *, max_distance: int, across: bool = False
) -> np.ndarray:
    """`question_overlap.word_distances` of parallel questions, in their own contexts: ``(L, n)``.

    ``across``: ``(L, L, n)``, of every pair of languages, contexts in the rows.
    """
    aligned(sets)
    about = {"sets": _texts(sets), "max_distance": max_distance, "across": across}
    value = work.result(DISTANCES, about, list(sets.values()), max_distance, across)
    return value["distances"]


def _distances(sets: Sequence[Questions], max_distance: int, across: bool) -> dict[str, np.ndarray]:
    def of(cell: Questions) -> np.ndarray:
        return question_overlap.word_distances(cell, max_distance=max_distance)

    if not across:
        return {"distances": np.array([of(one) for one in sets])}
    pairs = [[of(crossed(context, asked)) for asked in sets] for context in sets]
    return {"distances": np.array(pairs)}


DISTANCES = work.Kind("distances", _distances, version=1)


def _texts(sets: Mapping[str, Questions]) -> list[list[str]]:
    """Language (words are cut by its rules) and hash of each set, in order."""
    return [[one.context_language, one.text_hash()] for one in sets.values()]
