"""Intervals of grids: a paired bootstrap over examples, and seeds.

Intervals are percentiles of a bootstrap over examples, and each resample is the same examples in
all cells and for all models, so that differences are paired. Examples that share a text are not
independent (the three hypotheses of a premise in XNLI, the questions of a paragraph in XQuAD):
``groups`` says which hang together, and whole groups are drawn. With several seeds an average is
that of their mean, and to each resample an error of Student's t with S - 1 degrees of freedom is
added, whose scale is the standard error over seeds. With one seed the interval leaves out what
another fine-tuning does.

Percentiles are too narrow where next to nothing is right, or wrong: of 21 paragraphs with 1 % of
answers right, 95 % intervals cover 72 to 85 %. A share with fewer than `FEW` groups in which
anything is right, or anything wrong, has Wilson's interval instead (1927), of as many independent
examples as give the bootstrap's variance (but no fewer than there are groups), with Student's t of
the groups less one; a drop from or to such a share is put together from both intervals (Zou and
Donner 2008).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from xlx.core import statistics

#: Scores that differ by less are taken for equal.
_SLACK = 1e-12
#: With fewer groups of examples on one side of a share, its interval is Wilson's.
FEW = 10
_TAILS = np.array([1 - statistics.LEVEL, 1 + statistics.LEVEL]) / 2


class MixingError(ValueError):
    """Scores that make no grid, or a grid that lacks what is asked for; says where and why."""


@dataclass(frozen=True)
class Resamples:
    """How often each group is in each resample, ``(n_resamples, n_groups)``, and its examples.

    ``order`` sorts the examples by group; ``starts`` is where each group begins in that order.
    """

    counts: np.ndarray
    order: np.ndarray
    starts: np.ndarray

    @classmethod
    def draw(cls, n: int, groups: Sequence[int] | None, n_resamples: int, seed: int) -> "Resamples":
        if n_resamples < 1:
            raise MixingError(f"n_resamples is {n_resamples}: draw one resample or more")
        of = np.arange(n) if groups is None else np.asarray(groups)
        if of.shape != (n,):
            raise MixingError(f"groups have shape {of.shape} and there are {n} examples: one each")
        names, of = np.unique(of, return_inverse=True)
        if len(names) < 2:
            raise MixingError(
                f"an interval needs two examples that are independent, and there are {n} in "
                f"{len(names)} groups"
            )
        order = np.argsort(of, kind="stable")
        counts = statistics.resample_counts(len(names), n_resamples, np.random.default_rng(seed))
        starts = np.searchsorted(of[order], range(len(names)))
        return cls(counts.astype(np.float64), order, starts)

    def _by_group(self, values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values[..., self.order], self.starts, axis=-1)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sum of ``(..., n)`` over the examples of each resample: ``(n_resamples, ...)``."""
        summed = np.tensordot(self._by_group(values), self.counts, axes=(-1, 1))
        return np.moveaxis(summed, -1, 0)

    def means(self, values: np.ndarray) -> np.ndarray:
        """Mean over the examples of each resample, whose number varies with the groups drawn."""
        sizes = self.sums(np.ones(values.shape[-1]))
        return self.sums(values) / sizes.reshape(-1, *[1] * (values.ndim - 1))

    def few(
        self, right: np.ndarray, wrong: np.ndarray, average: Callable = np.asarray
    ) -> np.ndarray:
        """Whether an average has less than `FEW` groups with anything in ``right`` or ``wrong``.

        ``right`` and ``wrong`` are ``(L, L, n)``, ``average`` makes averages of ``(..., L, L)``.
        """
        some = (np.moveaxis(self._by_group(x) > _SLACK, -1, 0) for x in (right, wrong))
        counts = ((average(x.astype(np.float64)) > 0).sum(axis=0) for x in some)
        return np.minimum(*counts) < FEW


def percentile_ends(
    resamples: np.ndarray, each: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Percentiles of ``(n_resamples, ...)``, over the resamples that have a number.

    ``each``: the estimate of each seed, ``(S, ...)``; see `seed_errors`.
    """
    if each is not None:
        resamples = resamples + seed_errors(each, len(resamples))
    low, high = np.nanquantile(resamples, _TAILS, axis=0)
    return low, high


def seed_errors(each: np.ndarray, n_resamples: int, stream: int = 0) -> np.ndarray:
    """Errors of a mean over seeds, ``(n_resamples, ...)``; ``each`` is ``(S, ...)``.

    Multivariate t with S - 1 degrees of freedom and the covariance of the mean as its scale: what
    goes up with a seed in one average goes up with it in the others. One seed: zeros. ``stream``
    makes the errors of two models independent.
    """
    n = len(each)
    if n < 2:
        return np.zeros((n_resamples, *each.shape[1:]))
    rng = np.random.default_rng(stream)
    normal = rng.standard_normal((n_resamples, n))
    stretch = np.sqrt((n - 1) / rng.chisquare(n - 1, n_resamples))
    weights = normal * stretch[:, None] / np.sqrt(n * (n - 1))
    return np.tensordot(weights, each - each.mean(axis=0), axes=1)


def _variance(resamples: np.ndarray, each: np.ndarray) -> np.ndarray:
    """Of an estimate, over examples and over the seeds that it is a mean of."""
    between = each.var(axis=0, ddof=1) / len(each) if len(each) > 1 else 0.0
    return np.nanvar(resamples, axis=0) + between


def _wilson(
    share: np.ndarray, variance: np.ndarray, n_groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's interval of shares, of as many examples as a variance is worth.

    At least ``n_groups``, which is also what no variance at all (none right, or all) is worth.
    """
    t2 = stats.t.ppf(_TAILS[1], n_groups - 1) ** 2
    worth = np.divide(
        share * (1 - share), variance, out=np.zeros_like(share), where=variance > _SLACK**2
    )
    n = np.maximum(worth, n_groups)
    middle = (share + t2 / (2 * n)) / (1 + t2 / n)
    half = np.sqrt(t2 * (share * (1 - share) / n + t2 / (4 * n**2))) / (1 + t2 / n)
    return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)


def share_ends(
    estimate: np.ndarray, resamples: np.ndarray, each: np.ndarray, few: np.ndarray, n_groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """Ends for shares: percentiles, and where there are ``few`` on one side, Wilson's."""
    ends = (np.clip(end, 0, 1) for end in percentile_ends(resamples, each))
    wilson = _wilson(estimate, _variance(resamples, each), n_groups)
    low, high = (np.where(few, exact, end) for exact, end in zip(wilson, ends, strict=True))
    return low, high


def setting_ends(
    estimate: np.ndarray, resamples: np.ndarray, each: np.ndarray, few: np.ndarray, n_groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """`share_ends` of within and across ``(L + 1, 3)``, and of the drop, from both where few."""
    low, high = percentile_ends(resamples, each)
    shares = (x[..., :2] for x in (estimate, resamples, each, few))
    low[..., :2], high[..., :2] = share_ends(*shares, n_groups)
    within, across, drop = np.moveaxis(_variance(resamples, each), -1, 0)
    scale = 2 * np.sqrt(within * across)
    linked = np.divide(within + across - drop, scale, out=np.zeros_like(scale), where=scale > 0)
    below, above = estimate - low, high - estimate
    ends = []
    for left, right in ((below[..., 0], above[..., 1]), (above[..., 0], below[..., 1])):
        square = left**2 + right**2 - 2 * np.clip(linked, -1, 1) * left * right
        ends.append(np.sqrt(np.maximum(square, 0)))
    # what is the same in both settings of every example has no drop, however few
    open_ = few[..., :2].any(axis=-1) & ((drop > _SLACK**2) | (scale <= _SLACK**2))
    low[..., 2] = np.where(open_, estimate[..., 2] - ends[0], low[..., 2])
    high[..., 2] = np.where(open_, estimate[..., 2] + ends[1], high[..., 2])
    return low, high
