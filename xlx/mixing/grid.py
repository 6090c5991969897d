"""A grid: the answers of one model to all pairs of languages, and how an answer is scored."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from xlx.text import answer_scores
from xlx.text.examples import Examples
from xlx.text.questions import Questions


class GridError(ValueError):
    """A grid that cannot be; says which language or cell, and what to do."""


@dataclass(frozen=True)
class Grid:
    """Answers of one model to all pairs of languages.

    Attributes
    ----------
    model : str
    train : str
        The name of the training set.
    seed : int
        Of the fine-tuning; -1 for a mean over several.
    languages : tuple of str
        Of both parts: rows are the first part (premise, sentence 1, context), columns the second.
    predictions : np.ndarray
        int16 ``(L, L, n)``, classes; of questions int32 ``(L, L, n, 2)``, places in the context.
        Empty in a mean.
    logits : np.ndarray
        float16 ``(L, L, n, classes)``; of questions ``(L, L, n)``, the score of the answer. Empty
        in a mean.
    scores : dict
        Name of a measure → float ``(L, L, n)`` in [0, 1]: "accuracy", or "F1" and "EM".
    labels : np.ndarray
        int64 ``(n,)``; empty for questions.
    groups : np.ndarray
        int64 ``(n,)``: examples that share a premise or a context are of one group, and resampled
        together.
    n_cut : np.ndarray
        int64 ``(L, L)``: how many pairs of a cell were cut at the maximum length; of questions,
        which are not cut, how many have a context that is read in several windows.
    each : dict
        The scores by seed: name of a measure → float ``(S, L, L, n)``; made from ``scores`` where
        it is not given.
    """

    model: str
    train: str
    seed: int
    languages: tuple[str, ...]
    predictions: np.ndarray
    logits: np.ndarray
    scores: dict[str, np.ndarray]
    labels: np.ndarray
    groups: np.ndarray
    n_cut: np.ndarray
    each: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.each:
            own = {name: scores[None] for name, scores in self.scores.items()}
            object.__setattr__(self, "each", own)

    def __repr__(self) -> str:
        n = len(self.groups)
        return f"Grid({self.model}, {self.train}: {' '.join(self.languages)}, {n} examples a cell)"


def groups_of(one: Examples | Questions) -> np.ndarray:
    """Which examples hang together, int64 ``(n,)``: those with the same first text or context.

    With pairs that are one pair in both orders, so are those of both first texts.
    """
    if isinstance(one, Questions):
        return one.paragraphs
    _, group = np.unique(one.first, return_inverse=True)
    of = dict(zip(one.first, group.tolist(), strict=True))
    pairs = set(zip(one.first, one.second or (), strict=False))
    turned = [(of[a], of[b]) for a, b in pairs if a != b and (b, a) in pairs]
    links = np.array(turned, dtype=np.int64).reshape(-1, 2)
    graph = sparse.coo_matrix((np.ones(len(links)), links.T), shape=(len(of), len(of)))
    return csgraph.connected_components(graph)[1][group].astype(np.int64) if turned else group


def reading_scores(cell: Questions, said: Sequence[str]) -> np.ndarray:
    """F1 and exact match of each answer, ``(2, n)``, by the words of the context's language."""
    return np.array(
        [
            [
                score(one, own, cell.context_language)
                for one, own in zip(said, cell.answers, strict=True)
            ]
            for score in (answer_scores.f1, answer_scores.exact_match)
        ]
    )


#: The scores of an answer: ours (`reading_scores`) and by the letter of two published scripts.
MEASURES: tuple[str, ...] = ("F1", "EM", "F1, SQuAD", "EM, SQuAD", "F1, MLQA", "EM, MLQA")


def all_scores(cell: Questions, said: Sequence[str]) -> np.ndarray:
    """`MEASURES` of each answer, ``(6, n)``."""
    literal = [
        (*answer_scores.squad(one, own), *answer_scores.mlqa(one, own, cell.context_language))
        for one, own in zip(said, cell.answers, strict=True)
    ]
    return np.vstack([reading_scores(cell, said), np.array(literal).T])
