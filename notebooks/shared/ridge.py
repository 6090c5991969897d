"""Ridge regression on labels by kernels: any number of features, of vectors and counts alike.

What reads a sentence's vector and what reads its words differ in nothing but what they see: they
have the same folds, and a penalty chosen in the same way, on training groups that were left out.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

#: Penalties to choose from, as multiples of the mean squared norm of a training example.
PENALTIES = (0.01, 0.1, 1.0, 10.0)
#: Parts of the training groups that are left out in turn to choose the penalty.
N_PARTS = 5


class Ridge(NamedTuple):
    """What a regression tells of each test, and its error on training groups left out."""

    predicted: list[np.ndarray]  # int64 (n_test,) each
    error: float  # mean squared error on training groups left out, at the best penalty


def fit_ridge(
    train: Any, labels: np.ndarray, groups: Sequence[str], tests: Sequence[Any], n_classes: int
) -> Ridge:
    """Learn classes from examples ``(n, d)``, and tell those of each test ``(n_test, d)``.

    Arrays are standardised by the training examples; sparse counts are taken as they are.
    ``groups`` (documents) stay together where examples are left out, so no penalty is chosen for
    what neighbours share. ValueError for fewer than two groups.
    """
    part = np.unique(groups, return_inverse=True)[1] % N_PARTS
    if part.max() < 1:
        raise ValueError("all examples are of one group: give groups, of which some are left out")
    if dense := isinstance(train, np.ndarray):
        mean, scale = train.mean(0), train.std(0)
        train, *tests = ((x - mean) / np.where(scale, scale, 1) for x in (train, *tests))

    def products(other: Any) -> np.ndarray:
        return other @ train.T if dense else (other @ train.T).toarray()

    raw = products(train)
    unit = np.trace(raw) / len(raw) or 1.0  # 0: features that never vary
    targets = np.eye(n_classes)[labels] - 1 / n_classes
    errors, duals = [], []
    for penalty in PENALTIES:  # 1: the intercept
        inverse = np.linalg.inv(raw / unit + 1 + penalty * np.eye(len(raw)))
        duals.append(inverse @ targets)
        # Residuals of examples that are left out together, without fitting anew.
        rows = [np.flatnonzero(part == i) for i in np.unique(part)]
        left_out = [np.linalg.solve(inverse[np.ix_(x, x)], duals[-1][x]) for x in rows]
        errors.append(float(np.mean(np.concatenate(left_out) ** 2)))
    best = int(np.argmin(errors))
    predicted = [((products(x) / unit + 1) @ duals[best]).argmax(1) for x in tests]
    return Ridge(predicted, errors[best])
