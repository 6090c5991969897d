"""What a model that reads both texts knows of a label beyond models of the second text alone.

I(label; first text | second text) as usable information (Ethayarajh, Choi and Swayamdipta 2022),
in AUC and in bits, by cell of a grid: an accuracy less another also says how two models are biased
between labels. The estimators are ours, for the question of Rajaee and Monz (2024), section 5: how
much of what is transferred across languages is the hypothesis alone.
"""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy import ndarray

from xlx.measures import mixing
from xlx.results.deferred import deferred

special = deferred("scipy.special")

#: Folds of examples, and steps of Newton's method, of `bits_beyond`.
N_FOLDS, N_STEPS = 5, 8


def evidence(logits: ndarray) -> ndarray:
    """Log odds of the first class: ``(..., n, C)`` to ``(..., n)``."""
    logits = np.asarray(logits, dtype=np.float64)
    return logits[..., 0] - special.logsumexp(logits[..., 1:], axis=-1)


def auc_beyond(base: ndarray, added: ndarray, positive: ndarray) -> ndarray:
    """What ``added`` models know beyond ``base`` models, in AUC: values of examples, in each seed.

    Of S seeds, h = (S - 1) // 2 of ``base`` answer together with as many others of ``added``: the
    mean of their log probabilities. Less the AUC of the same ``base`` with as many others of its
    kind it is the gain. Above zero, ``added`` has information that ``base`` has not; a constant in
    favour of the first class changes nothing, as only the order counts.

    ``base``, logits ``(S, ..., n, C)``, and ``added``, of which the lower S counts (one seed stands
    for all); ``positive``, ``(n,)``: which examples have the first class. Returns ``(S, ..., n)``:
    jackknife values of seeds, which `igap.crossed_interval` takes. Their mean over all is the mean
    gain over all splits, in [-1, 1]. MixingError for fewer than three seeds. The question is that
    of usable information (Ethayarajh, Choi and Swayamdipta 2022), the estimator ours.
    """
    if len(added) == 1:
        added = np.broadcast_to(added, (len(base), *added.shape[1:]))
    seeds = range(min(len(base), len(added)))
    h = (len(seeds) - 1) // 2
    if h < 1:
        raise mixing.MixingError(f"there are {len(seeds)} seeds: three or more can be split")

    def auc(*models: ndarray) -> ndarray:
        joined = sum(x.sum(axis=0, dtype=float) for x in models) / (2 * h)
        return mixing.auc_values(evidence(joined), positive)

    plain = {x: auc(base[[*x]]) for x in combinations(seeds, 2 * h)}
    splits, gains = [], []
    for whole, less in plain.items():
        for half in combinations(whole, h):
            others = [x for x in whole if x not in half]
            splits.append(whole)
            gains.append(auc(base[[*half]], added[others]) - less)
    mean = np.mean(gains, axis=0)
    without = [
        np.mean([x for x, split in zip(gains, splits, strict=True) if s not in split], axis=0)
        for s in seeds
    ]
    return np.stack([len(seeds) * mean - (len(seeds) - 1) * x for x in without])


def bits_beyond(base: ndarray, added: ndarray, positive: ndarray, groups: ndarray) -> ndarray:
    """What ``added`` models tell of the first class beyond ``base`` models, in bits of an example.

    I(label; premise | hypothesis) as usable information (Ethayarajh, Choi and Swayamdipta 2022). In
    each cell a logistic regression reads the mean log odds of two seeds of ``base`` and those of
    a third seed, of ``base`` or ``added``; `N_FOLDS` folds of whole groups, and the log loss of
    what is held out, of the former less the latter. A constant for a class costs nothing, as the
    regression has its own. Arrays as of `auc_beyond`; returns ``(S, ..., n)``, NaN of fewer than
    three seeds. Rows share seeds of ``base``: where seeds differ much, `igap.crossed_interval` of
    three or five rows holds 88 to 90 % in simulations.
    """
    odds = [evidence(x) for x in (base, added)]
    places = np.unique(groups, return_inverse=True)[1]
    folds = np.random.default_rng(0).permutation(places.max() + 1)[places] % N_FOLDS
    seeds, rows = min(len(base), len(added)), []
    if seeds < 3:
        return np.full((seeds, *np.broadcast_shapes(*(x.shape[1:] for x in odds))), np.nan)
    for s in range(seeds):
        two = (odds[0][(s + 1) % seeds] + odds[0][(s + 2) % seeds]) / 2
        plain, more = (_held_out_loss([two, x[s]], positive, folds) for x in odds)
        rows.append(plain - more)
    return np.stack(rows)


def _held_out_loss(columns: Sequence[ndarray], positive: ndarray, folds: ndarray) -> ndarray:
    """Log loss in bits of logistic regressions ``(..., n)``, fitted on all other folds."""
    x = np.stack([np.ones(len(positive)) + 0 * columns[-1], *np.broadcast_arrays(*columns)], -1)
    loss, small = np.empty(x.shape[:-1]), np.eye(x.shape[-1])
    for fold in range(N_FOLDS):
        there, away = x[..., folds == fold, :], x[..., folds != fold, :]
        weights = np.zeros((*x.shape[:-2], x.shape[-1], 1))
        for _ in range(N_STEPS):
            p = special.expit(away @ weights)
            slope = np.swapaxes(away, -1, -2) @ (positive[folds != fold, None] - p) - weights
            curve = np.swapaxes(away * p * (1 - p), -1, -2) @ away + small
            weights = weights + np.linalg.solve(curve, slope)
        sign = np.where(positive[folds == fold], -1, 1)
        loss[..., folds == fold] = np.logaddexp(0, sign * (there @ weights)[..., 0]) / np.log(2)
    return loss
