"""Baselines of a grid: models too simple for the task, asked the same.

Rajaee and Monz ask for a second baseline besides guessing: "the performance of a simple neural
network on the task" (section 6). Three of them, each on the whole grid of languages:

* `bag_of_subwords`: a logistic regression on which subwords both parts share and which only one
  has. It knows no order and no other language, but all the shortcuts that overlap and single words
  offer;
* one part alone (hypothesis-only, single-sentence): `examples.only` and `grids.evaluate`;
* `nearest_span` for questions: the span that the question's words surround most closely, without
  any model; and a reader without questions, `questions.questionless` and `grids.evaluate`.
"""

from collections.abc import Mapping

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.preprocessing import normalize

from xlx import examples, inputs, models, questions
from xlx.examples import Examples
from xlx.grids import Grid, GridError, groups_of, reading_scores
from xlx.questions import Questions

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
        Pairs of one language (or of two, `examples.crossed`).
    sets : mapping
        Language → parallel pairs to ask.
    seed : int
        Of the solver; the same table for any.

    Raises
    ------
    GridError
        Single sentences, or other classes than those of the training set.
    ExamplesError
        Sets that are not parallel.
    """
    if train.second is None:
        raise GridError(f"{train.name} has single sentences: overlap needs two parts")
    examples.aligned(sets)
    one = next(iter(sets.values()))
    if one.classes != train.classes or one.second is None:
        raise GridError(f"{one.name} and {train.name} are not both of pairs with the same classes")
    tokenizer = models.tokenizer(name)
    texts = [train.first, train.second]
    texts += [side for part in sets.values() for side in (part.first, part.second)]
    found = inputs.tokenised(tokenizer, [text for side in texts for text in side])
    bags = {text: frozenset(own.ids) for text, own in found.items()}
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
                fitted.predict(_features(examples.crossed(first, second), bags, size)[:, seen])
                for second in sets.values()
            ]
            for first in sets.values()
        ],
        dtype=np.int16,
    )
    return Grid(
        model="bag of subwords",
        train=train.name,
        seed=seed,
        languages=tuple(sets),
        predictions=predictions,
        logits=np.empty(0),
        scores={"accuracy": (predictions == one.labels).astype(np.float64)},
        labels=one.labels,
        groups=groups_of(one),
        n_cut=np.zeros((len(sets), len(sets)), dtype=np.int64),
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


def nearest_span(sets: Mapping[str, Questions], length: int) -> Grid:
    """`questions.overlap_answers` on every pair of languages: spans of ``length`` words."""
    questions.aligned(sets)
    one = next(iter(sets.values()))
    table = []
    for context_side in sets.values():
        row = []
        for question_side in sets.values():
            cell = questions.crossed(context_side, question_side)
            row.append(reading_scores(cell, questions.overlap_answers(cell, length)))
        table.append(row)
    scores = np.array(table)  # (L, L, 2, n)
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
