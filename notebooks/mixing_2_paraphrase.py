"""Other tasks in two languages: pairs of SICK and PAWS-X, AUC by label; readers and distances.

Rajaee and Monz, sections 3.2, 3.3 and 4; Figures 1, 11 and 12. Scores of answers are SQuAD's
(`answers.squad`), by which the paper's tables are made.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from shared import mixing_tables
from shared.mixing_tables import TaskData, baseline_grid
from xlx.experiment import grids
from xlx.experiment.grids import Grid
from xlx.measures import answers, information, mixing
from xlx.measures.mixing import SETTINGS
from xlx.text.examples import Examples
from xlx.text.files import TextError
from xlx.text.questions import Questions, stands

#: The measure that has its own threshold in each cell.
THRESHOLD = "accuracy, threshold by cell"


def commonest(data: TaskData) -> Grid:
    """The grid of who always gives the commonest label of the sets."""
    shape = len(data.sets), len(data.sets), len(data.gold)
    answered = np.full(shape, np.bincount(data.gold.labels).argmax())
    return baseline_grid("commonest label", data.sets, answered)


def one_negated(data: TaskData, negators: Mapping[str, str]) -> Grid:
    """The grid of who calls a pair a contradiction if exactly one sentence denies, else neutral.

    ``negators``: by language a regular expression of words that deny. The answers stand as logits.
    """
    denies = [
        [
            [bool(re.search(negators[code], x.lower())) for x in part]
            for part in (few.first, few.second)
        ]
        for code, few in data.sets.items()
    ]
    first, second = np.moveaxis(np.array(denies), 1, 0)
    classes = data.gold.classes
    apart = first[:, None] != second[None]
    answered = np.where(apart, classes.index("contradiction"), classes.index("neutral"))
    grid = baseline_grid("one negator", data.sets, answered)
    return replace(grid, logits=np.eye(len(classes))[answered])


def label_aucs(of_seeds: Sequence[Grid], labels: np.ndarray, label: int) -> np.ndarray:
    """Values of pairs whose mean is the AUC of a label, ``(S, L, L, n)``: no threshold enters.

    ``of_seeds`` are of one model, a seed each, with logits; evidence is the log odds of the label.
    """
    logits = np.stack([of_seed.logits for of_seed in of_seeds]).astype(np.float64)
    logits = np.concatenate([logits[..., [label]], np.delete(logits, label, axis=-1)], axis=-1)
    return mixing.auc_values(information.evidence(logits), labels == label)


def settings_of(values: np.ndarray) -> np.ndarray:
    """Means of ``(S, L, L, n)`` within, across and their difference: ``(S, 3, n)``."""
    here = np.eye(values.shape[1], dtype=bool)
    within, across = values[:, here].mean(axis=1), values[:, ~here].mean(axis=1)
    return np.stack([within, across, within - across], axis=1)


def signals(of_seeds: Sequence[Grid], gold: Examples) -> dict[str, np.ndarray]:
    """Accuracy, that with a threshold by cell, and the AUC of each label, ``(S, L, L, n)``."""
    return mixing_tables.signals(of_seeds, gold.labels, ("accuracy", THRESHOLD)) | {
        f"AUC, {name}": label_aucs(of_seeds, gold.labels, k) for k, name in enumerate(gold.classes)
    }


# --- questions ------------------------------------------------------------------------------------

#: Scores that differ by less are equal.
_SLACK = 1e-12


def tails(
    score: np.ndarray, distance: np.ndarray, share: float = 0.2, groups: Sequence[int] | None = None
) -> tuple[float, float, float]:
    """Mean distance of the hardest examples over that of the easiest, with its interval.

    The easiest are those with the highest score. Many F1 scores are exactly 0 or 1, so which
    examples are "the top 20 %" is often open: the examples that tie at the border share equally
    what is left to be filled, which is the expected mean if ties are broken at random. Where
    ``share`` × n is no whole number, the last example counts in part. ``score`` and ``distance``
    are ``(n,)``, ``share`` is that of a tail, up to ½.

    The interval is of the linear approximation, in which the border moves with the examples, on a
    scale of logarithms. In simulation the ratio is covered in 94 to 96 % with 240 examples and in
    92 to 95 % with 60. Without ends where either distance is 0. MixingError for examples of fewer
    than two groups.
    """
    score, distance = np.asarray(score, np.float64), np.asarray(distance, np.float64)
    values = []
    for step in (-1, 1):
        part, border = _tail(score, share, step)
        start = distance[border].mean()
        values.append(start + part / share * (distance - start))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.divide(values[1].mean(), values[0].mean())
        easiest, hardest = (x / x.mean() for x in values)
        apart = hardest - easiest
    half = mixing.averages(apart[None, None], groups)["high"].item()
    return float(ratio), ratio * np.exp(-half), ratio * np.exp(half)


def _tail(score: np.ndarray, share: float, step: int) -> tuple[np.ndarray, np.ndarray]:
    """Which part of each example is in the last ``share`` (-1) or the first (1), and the border.

    The border are the examples with the last score that is in, ``(n,)``.
    """
    _, level = np.unique(np.round(score / _SLACK) * _SLACK, return_inverse=True)
    counts = np.bincount(level)[::step]
    whole = share * len(score)
    taken = np.clip(whole - (np.cumsum(counts) - counts), 0, counts)
    last = np.flatnonzero(taken > _SLACK).max()
    inside, ordered = (taken / counts)[::step], np.arange(len(counts))[::step]
    return inside[level], level == ordered[last]


def by_side(
    scores: np.ndarray, languages: Sequence[str], source: str
) -> dict[str, np.ndarray | float]:
    """What the language of each part does to grids ``(..., L, L)`` of contexts by questions.

    ``context``, ``question``: the share of the variance off the diagonal that the part's language
    explains. ``question in source``: how far cells with it are above within of their context's
    language; ``context in source``: above within of their question's.
    """
    n, k = len(languages), languages.index(source)
    off, others = ~np.eye(n, dtype=bool), np.arange(n) != k
    inside = mixing.within(scores)[..., others]

    def explained(cells: np.ndarray) -> np.ndarray:
        rows = cells[..., off].reshape(*cells.shape[:-1], n - 1)
        return rows.mean(axis=-1).var(axis=-1) / rows.var(axis=(-2, -1))

    return {
        "context": explained(scores),
        "question": explained(np.swapaxes(scores, -2, -1)),
        f"question in {source}": (scores[..., others, k] - inside).mean(axis=-1),
        f"context in {source}": (scores[..., k, others] - inside).mean(axis=-1),
    }


def side_intervals(reader: Grid, source: str) -> dict[str, tuple[float, float, float]]:
    """`by_side` of F1 with intervals over paragraphs and seeds, by the delta method."""
    each = reader.each["F1, SQuAD"]
    mean, step = each.mean(axis=(0, -1)), 1e-5
    steps = step * np.eye(mean.size).reshape(-1, *mean.shape)
    score, up, down = (
        by_side(x, reader.languages, source) for x in (mean, mean + steps, mean - steps)
    )
    slopes = np.stack([up[x] - down[x] for x in score]) / (2 * step)
    apart = (each - mean[..., None]).reshape(len(each), mean.size, -1)
    values = np.stack([*score.values()])[:, None] + slopes @ apart
    return dict(zip(score, mixing.averages(values, reader.groups).to_numpy().tolist(), strict=True))


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
    usual = grids.answered(
        "usual place", sets, lambda x: answers.placed_answers(x, length, where), reads=False
    )
    return [*mute, usual, nearest]
