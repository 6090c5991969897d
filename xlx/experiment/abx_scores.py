"""What scores of subjects on a text have in common: spaces, weights, groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

import numpy as np
import pandas as pd
from numpy import ndarray

from xlx.measures import alignment
from xlx.results import checks
from xlx.subjects import identity
from xlx.subjects.identity import Name
from xlx.text import languages, parallel
from xlx.text.parallel import ParallelCorpus


def language_weights(pairs: Sequence[tuple]) -> tuple[list, ndarray]:
    """The languages, and ``(n_languages, n_pairs)`` that averages over the pairs of each."""
    languages = list(dict.fromkeys(code for pair in pairs for code in pair))
    inside = np.array([[float(code in pair) for pair in pairs] for code in languages])
    return languages, inside / inside.sum(1, keepdims=True)


def history(
    name: str, *, leave_out: Sequence[int] = (), recorded: bool = False
) -> list[identity.Checkpoint] | list[str]:
    """The checkpoints of a series in the order of training; a model without a history is itself.

    ``recorded``: those whose weights are not shipped, too (`identity.checkpoints`); `leave_out`
    names steps to skip: the paper leaves out step 450,000, where its training was unstable
    (footnote 7). Raises ValueError for a step that the series does not have.
    """
    try:
        checkpoints = identity.checkpoints(name, recorded=recorded)
    except identity.NoHistoryError:
        if leave_out:
            raise
        return [name]
    steps = [checkpoint.step for checkpoint in checkpoints]
    for step in leave_out:
        checks.one_of(step, steps, f"checkpoint of {name}")
    return [checkpoint for checkpoint in checkpoints if checkpoint.step not in leave_out]


def before_training(name: str) -> Name:
    """A model before it has read anything: step 0 of its own series, else its untrained twin."""
    first = history(name)[0]
    return first if getattr(first, "step", None) == 0 else identity.twin_of(name)


#: MD among sentences of like length: the score that stands first.
MATCHED = "MD, like length"


#: The tasks of which errors are kept by language.
BY_LANGUAGE = ("LD", "MD", MATCHED)


#: How pairs are weighed in a mean over all: each alike, or by the branches, or scripts, of its
#: languages, so that each pair of branches, or scripts, counts alike.
WEIGHTINGS = ("pairs", "branches", "scripts")


#: The vectors of one layer, by language, to vectors of the same shapes.
Space = Callable[[Mapping[str, ndarray]], Mapping[str, ndarray]]


def standardised(vectors: Mapping[str, ndarray]) -> dict[str, ndarray]:
    """Every dimension with mean 0 and standard deviation 1 over all languages.

    A few dimensions of large variance decide the cosines of many models (Timkey and van Schijndel
    2021). A dimension that never varies stays at 0; where none does, nothing is left: NaN.
    """
    stacked, mean, moved = _about_mean(vectors)
    sd = stacked.std(0)
    varies = (sd > alignment.NOTHING * np.abs(mean)).any()
    scale = np.where(sd > 0, sd, 1) if varies else np.nan
    return {code: rows / scale for code, rows in moved.items()}


def _about_mean(
    vectors: Mapping[str, ndarray],
) -> tuple[ndarray, ndarray, dict[str, ndarray]]:
    """The vectors of all languages in one array, their mean, and by language without it."""
    stacked = np.concatenate([*vectors.values()]).astype(float)
    mean = stacked.mean(0)
    return stacked, mean, {code: rows - mean for code, rows in vectors.items()}


#: Vectors this small beside 1 lie so near its equator that cosines rank them as distances do.
_SMALL = 1e-3


def whitened(vectors: Mapping[str, ndarray]) -> dict[str, ndarray]:
    """Without the mean of all, and with the same variance in every direction that varies."""
    stacked, _, moved = _about_mean(vectors)
    _, sizes, axes = np.linalg.svd(np.cov(stacked.T))
    there = sizes > 1e-9 * sizes[0]
    scale = axes[there] / np.sqrt(sizes[there])[:, None]
    return {code: rows @ scale.T for code, rows in moved.items()}


def euclidean(vectors: Mapping[str, ndarray]) -> dict[str, ndarray]:
    """Vectors whose cosines rank pairs as their Euclidean distances do: (x, 1) of a small x.

    The cosine of (x, 1) and (y, 1) is 1 - |x - y|² / 2, but for terms of the fourth order in x.
    """
    stacked, mean, moved = _about_mean(vectors)
    small = _SMALL / np.linalg.norm(stacked - mean, axis=1).max()
    return {
        x: np.pad(small * rows, ((0, 0), (0, 1)), constant_values=1) for x, rows in moved.items()
    }


#: By name, what is done to the vectors of a layer before they are compared.
SPACES = {
    "raw": dict,
    "centred": alignment.centred,
    "standardised": standardised,
    "whitened": whitened,
    "Euclidean": euclidean,
}


def label_runs(labels: Sequence[str]) -> str:
    """Labels by position as runs of equal ones, "0*3 1 2*5": what groups the positions, no more."""
    codes = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    runs = ((codes[label], len([*same])) for label, same in groupby(labels))
    return " ".join(f"{code}*{length}" if length > 1 else str(code) for code, length in runs)


def groupings(corpus: ParallelCorpus) -> dict[str, Sequence[object]]:
    """What is left out of a corpus → the group of each position."""
    return {"documents": parallel.documents(corpus), "sentences": range(len(corpus))}


def pair_weights(pairs: Sequence[tuple[str, str]]) -> dict[str, ndarray]:
    """Weighting → the weight of each pair, ``(n_pairs,)``; the weights of each sum to 1.

    A language of which nothing is known is a branch and a script of its own.
    """
    known = languages.LANGUAGES
    weights = {"pairs": np.full(len(pairs), 1 / len(pairs))}
    for name, attribute in (("branches", "branch"), ("scripts", "script")):
        of_pair = [tuple(sorted(getattr(known.get(x), attribute, x) for x in p)) for p in pairs]
        sizes = pd.Series(of_pair).value_counts()
        weights[name] = np.array([1 / sizes[kind] for kind in of_pair]) / len(sizes)
    return weights


def group_sizes(of_position: Sequence[object]) -> ndarray:
    """How many positions each group has, in the order of their sorted names."""
    return np.unique(np.asarray(of_position).astype(str), return_counts=True)[1]
