"""Scores as a checkpoint has them, of levels that a test gives, with errors over documents."""

from collections.abc import Sequence

import numpy as np

from xlx.experiment.abx_scores import MATCHED
from xlx.experiment.averages import Average
from xlx.measures import abx

#: Positions of each document.
SIZES = np.array([1, 2, 3, 4, 5, 6, 7, 8] * 5)


def mean_of(values: np.ndarray) -> Average:
    """The mean over positions of what documents have, ``(..., n_documents)``."""
    score = values @ SIZES / SIZES.sum()
    without = (score[..., None] * SIZES.sum() - values * SIZES) / (SIZES.sum() - SIZES)
    return Average(score, without - score[..., None], SIZES)


def scores(
    rng: np.random.Generator, model: str, step: int, **levels: Sequence[float]
) -> abx.PairScores:
    """Two languages whose scores by layer (``LD``, ``MD``, ``matched``) are nearly as given."""
    levels = {MATCHED if task == "matched" else task: of for task, of in levels.items()}
    means = {
        task: mean_of(np.array(of)[:, None] + rng.normal(0, 0.005, (len(of), len(SIZES))))
        for task, of in levels.items()
    }
    by_pair = {task: mean.score[:, None, None].repeat(2, axis=2) for task, mean in means.items()}
    n_layers = len(levels["LD"])
    changes = {task: mean.left_out_change for task, mean in means.items()}
    return abx.PairScores(
        (("a", "b"),),
        tuple(range(n_layers)),
        int(SIZES.sum()),
        by_pair,
        model=model,
        step=step,
        left_out_change={"documents": {"pairs": changes}},
        sizes={"documents": SIZES},
        cut={"a": 0, "b": 0},
    )
