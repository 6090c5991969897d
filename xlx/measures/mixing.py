"""What is lost within and across languages of a grid, with intervals.

Intervals are percentiles of a bootstrap over examples, the same ones in all cells and for all
models, so that differences are paired. Examples that share a text are not independent (the
hypotheses of a premise in XNLI, the questions of a paragraph in XQuAD): whole ``groups`` are drawn.
With several seeds an average is that of their mean, and to each resample an error of Student's t
with S - 1 degrees of freedom is added, whose scale is the standard error over seeds.

Percentiles are too narrow where next to nothing is right, or wrong. A share with fewer than `FEW`
groups in which anything is right, or anything wrong, has Wilson's interval instead (1927), of as
many independent examples as give the bootstrap's variance (but no fewer than there are groups),
with Student's t of the groups less one; a drop from or to such a share is put together from both
intervals (Zou and Donner 2008).

Rajaee and Monz (2024), "Analyzing the Evaluation of Cross-Lingual Knowledge Transfer in
Multilingual Language Models"; tables and figures are numbered as there.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from xlx.measures import statistics
from xlx.results.deferred import deferred

special = deferred("scipy.special")
stats = deferred("scipy.stats")

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

        These are ``(L, L, n)``; ``average`` makes averages of ``(..., L, L)``.
        """
        some = (np.moveaxis(self._by_group(x) > statistics.SLACK, -1, 0) for x in (right, wrong))
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
    with warnings.catch_warnings():  # what no resample has is NaN
        warnings.simplefilter("ignore", RuntimeWarning)
        return tuple(np.nanquantile(resamples, _TAILS, axis=0))


def seed_errors(each: np.ndarray, n_resamples: int, stream: int = 0) -> np.ndarray:
    """Errors of a mean over seeds, ``(n_resamples, ...)``; ``each`` is ``(S, ...)``.

    Multivariate t with S - 1 degrees of freedom and the covariance of the mean as its scale; of one
    seed zeros. ``stream`` makes the errors of two models independent.
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
    """Wilson's interval of shares, of as many examples as a variance is worth, or as groups."""
    t2 = stats.t.ppf(_TAILS[1], n_groups - 1) ** 2
    spread, some = share * (1 - share), variance > statistics.SLACK**2
    n = np.maximum(np.divide(spread, variance, out=np.zeros_like(share), where=some), n_groups)
    middle = (share + t2 / (2 * n)) / (1 + t2 / n)
    half = np.sqrt(t2 * (spread / n + t2 / (4 * n**2))) / (1 + t2 / n)
    return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)


def share_ends(
    estimate: np.ndarray, resamples: np.ndarray, each: np.ndarray, few: np.ndarray, n_groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """Ends for shares: percentiles, and where there are ``few`` on one side, Wilson's."""
    ends = (np.clip(end, 0, 1) for end in percentile_ends(resamples, each))
    wilson = _wilson(estimate, _variance(resamples, each), n_groups)
    return tuple(np.where(few, exact, end) for exact, end in zip(wilson, ends, strict=True))


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
    open_ = few[..., :2].any(axis=-1) & (
        (drop > statistics.SLACK**2) | (scale <= statistics.SLACK**2)
    )
    low[..., 2] = np.where(open_, estimate[..., 2] - ends[0], low[..., 2])
    high[..., 2] = np.where(open_, estimate[..., 2] + ends[1], high[..., 2])
    return low, high


#: What a grid says about a language; drop is within - across.
SETTINGS = ("within", "across", "drop")
#: The "language" of a mean over languages, and of a whole row or column.
OVERALL, EVERYWHERE = "mean", "all"


def within(scores: np.ndarray) -> np.ndarray:
    """Score of each language where both parts are in it: the diagonal (section 3.1).

    ``scores`` ``(..., L, L)``, on any scale; returns ``(..., L)``.
    """
    return np.diagonal(np.asarray(scores, dtype=np.float64), axis1=-2, axis2=-1).copy()


def across(scores: np.ndarray) -> np.ndarray:
    """Mean score of each language over the 2 (L - 1) cells where one part alone is in it (Table 1).

    Its mean over languages is that of all cells off the diagonal. MixingError for a single
    language.
    """
    scores = np.asarray(scores, dtype=np.float64)
    n = scores.shape[-1]
    if n < 2:
        raise MixingError("a grid of one language has no cell across: two or more are needed")
    return (scores.sum(axis=-1) + scores.sum(axis=-2) - 2 * within(scores)) / (2 * (n - 1))


def with_margins(scores: np.ndarray) -> np.ndarray:
    """``(..., L, L, n)`` with the means of rows and columns: ``(..., L + 1, L + 1, n)``."""
    wide = np.concatenate([scores, scores.mean(axis=-2, keepdims=True)], axis=-2)
    return np.concatenate([wide, wide.mean(axis=-3, keepdims=True)], axis=-3)


def checked_scores(
    scores: np.ndarray, languages: Sequence[str], least: float = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Grids of single examples: mean over seeds ``(L, L, n)``, each ``(S, L, L, n)``; or errors.

    They are shares in [0, 1]; where ``least`` is -1 their mean in each cell is a share, or a
    difference of shares.
    """
    scores, n = np.asarray(scores, dtype=np.float64), len(languages)
    if scores.ndim not in (3, 4) or scores.shape[-3:-1] != (n, n) or not scores.size:
        raise MixingError(
            f"scores have shape {scores.shape}: ({n}, {n}, examples) is needed for {n} languages, "
            "or that with seeds before it"
        )
    if len(set(languages)) < n:
        raise MixingError(f"a language is named twice: {', '.join(languages)}")
    each = scores if scores.ndim == 4 else scores[None]
    if (empty := np.isnan(each)).any():
        _, row, column, _ = np.argwhere(empty)[0]
        raise MixingError(f"cell {languages[row]}-{languages[column]} is empty, its score NaN")
    of = scores if least == 0 else scores.mean(axis=-1)
    if of.min() < least - statistics.SLACK or of.max() > 1 + statistics.SLACK:
        raise MixingError(
            f"scores are between {of.min():g} and {of.max():g}: give them as shares in "
            f"[{least:g}, 1], not in per cent"
        )
    return each[0] if len(each) == 1 else each.mean(axis=0), each


def cells(
    scores: np.ndarray, languages: Sequence[str], groups: Sequence[int] | None = None, *,
    margins: bool = False, n_resamples: int = 1000, seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Every cell of a grid by ``first`` and ``second``, the languages of its parts (Figures 2-10).

    With ``margins`` also the means of whole rows and columns, as a language `EVERYWHERE`.
    """
    scores, each = checked_scores(scores, languages)
    if margins:
        scores, each = with_margins(scores), with_margins(each)
        languages = [*languages, EVERYWHERE]
    drawn = Resamples.draw(scores.shape[-1], groups, n_resamples, seed)
    estimate, few = scores.mean(axis=-1), drawn.few(scores, 1 - scores)
    values = (estimate, drawn.means(scores), each.mean(axis=-1), few, len(drawn.starts))
    index = pd.MultiIndex.from_product([languages, languages], names=["first", "second"])
    columns = zip(("score", "low", "high"), (estimate, *share_ends(*values)), strict=True)
    return pd.DataFrame({name: x.ravel() for name, x in columns}, index).reset_index()


def summary(
    scores: np.ndarray, languages: Sequence[str], groups: Sequence[int] | None = None, *,
    n_resamples: int = 1000, seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Within, across and the drop between them, of each language and their mean (Tables 1 to 3).

    By ``language`` (the last one `OVERALL`) and ``setting`` (`SETTINGS`; a drop is in [-1, 1]).
    """
    scores, each = checked_scores(scores, languages)
    drawn = Resamples.draw(scores.shape[-1], groups, n_resamples, seed)
    estimate, few = _settings(scores.mean(axis=-1)), drawn.few(scores, 1 - scores, _settings)
    resamples, by_seed = _settings(drawn.means(scores)), _settings(each.mean(axis=-1))
    ends = setting_ends(estimate, resamples, by_seed, few, len(drawn.starts))
    return _by_language(languages, score=(estimate, *ends))


def paired_difference(
    one: np.ndarray, other: np.ndarray, languages: Sequence[str],
    groups: Sequence[int] | None = None, *, n_resamples: int = 1000, seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """By how much one grid is above another on the same examples, as a table like `summary`'s.

    For a model and its control task (Tables 7 and 14) or a baseline; by percentiles. The two may
    have unequal numbers of seeds, each with an error of its own, and be no shares (`auc_values`).
    """
    (one, first), (other, second) = (checked_scores(x, languages, -1) for x in (one, other))
    if one.shape != other.shape:
        raise MixingError(f"shapes {one.shape} and {other.shape} are not of the same examples")
    drawn = Resamples.draw(one.shape[-1], groups, n_resamples, seed)
    estimate = _settings((one - other).mean(axis=-1))
    errors = seed_errors(_settings(second.mean(axis=-1)), n_resamples, stream=1)
    resamples = _settings(drawn.means(one - other)) - errors
    ends = percentile_ends(resamples, _settings(first.mean(axis=-1)))
    return _by_language(languages, score=(estimate, *ends))


def averages(
    each: np.ndarray, groups: Sequence[int] | None = None, other: np.ndarray | None = None, *,
    n_resamples: int = 1000, seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """Means over examples of ``(S, K, n)``, seeds by averages by examples: K rows with intervals.

    With ``other``, of another model on the same examples, what is above it (paired). Columns
    ``score``, ``low``, ``high``; by percentiles.
    """
    drawn = Resamples.draw(each.shape[-1], groups, n_resamples, seed)
    values, by_seed = each.mean(axis=0), each.mean(axis=-1)
    errors = 0.0
    if other is not None:
        values = values - other.mean(axis=0)
        errors = seed_errors(other.mean(axis=-1), n_resamples, stream=1)
    low, high = percentile_ends(drawn.means(values) - errors, by_seed)
    return pd.DataFrame({"score": values.mean(axis=-1), "low": low, "high": high})


def auc_values(evidence: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """Values of examples whose mean is the AUC: evidence ``(..., n)``, boolean ``(n,)``.

    AUC is how often a positive example has more evidence than a negative one (a tie counts ½), so
    no threshold enters. Each example has the share of the other class that it is on the right side
    of, on a linear scale (DeLong et al. 1988). MixingError for one class.
    """
    n_positive = positive.sum()
    if not 0 < n_positive < len(positive):
        raise MixingError("AUC needs examples with the label and without it")
    ranks = stats.rankdata(evidence, axis=-1)
    share = np.empty_like(ranks)
    for side, sign in ((positive, 1), (~positive, -1)):
        below = ranks[..., side] - stats.rankdata(evidence[..., side], axis=-1)
        share[..., side] = below / (~side).sum() if sign == 1 else 1 - below / (~side).sum()
    auc = share[..., positive].mean(axis=-1, keepdims=True)
    return auc + (share - auc) * len(positive) / np.where(positive, n_positive, (~positive).sum())


def sensitivity_values(called: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """Values of examples whose mean is d′ = z(hits) - z(false alarms); boolean ``(..., n)``.

    Half a call is added to the calls, and one to their number (log-linear), so that none is
    infinite; errors by the delta method.
    """
    values = 0.0
    for side, sign in ((positive, 1), (~positive, -1)):
        n = side.sum()
        share = ((called & side).sum(axis=-1, keepdims=True) + 0.5) / (n + 1)
        z = special.ndtri(share)
        slope = np.sqrt(2 * np.pi) * np.exp(z**2 / 2) * len(positive) / max(n, 1)
        off = np.where(side, called, share) - share
        values = values + sign * (z + slope * (off - off.mean(axis=-1, keepdims=True)))
    return values


def by_label(
    right: np.ndarray, labels: Sequence[int], groups_of_labels: Mapping[str, Sequence[int]],
    languages: Sequence[str], groups: Sequence[int] | None = None, *, n_resamples: int = 1000,
    seed: int = 0,
) -> pd.DataFrame:  # fmt: skip
    """The averages of `summary` by the label of the examples (Tables 5, 6, 10 to 13).

    ``labels`` ``(n,)`` are the gold ones; ``groups_of_labels`` has name → the labels that it stands
    for, such as "not-entailment" for two of XNLI's three. Beside the score of the examples with the
    ``label`` a row has their number ``n`` and ``share``, and the ``contribution``, share × score,
    with its ``contribution_low`` and ``_high``: those of all labels add up to the score, or drop,
    of `summary`. MixingError also for a label in no or two of the groups, and for one with examples
    of one of ``groups`` only.
    """
    right, each = checked_scores(right, languages)
    n = right.shape[-1]
    drawn = Resamples.draw(n, groups, n_resamples, seed)
    of = np.arange(n) if groups is None else np.asarray(groups)
    totals = drawn.sums(np.ones(n))[:, None, None]
    tables = []
    for name, mask in _label_masks(labels, groups_of_labels, n).items():
        n_groups = len(np.unique(of[mask]))
        if n_groups < 2:
            raise MixingError(f"label {name!r} has examples of {n_groups} groups: two are needed")
        inside, by_seed = np.where(mask, right, 0.0), np.where(mask, each, 0.0).sum(axis=-1)
        sums, sizes = drawn.sums(inside), drawn.sums(mask.astype(np.float64))[:, None, None]
        few = drawn.few(inside, np.where(mask, 1 - right, 0.0), _settings)
        values = {}
        for value, size, weights in (("score", mask.sum(), sizes), ("contribution", n, totals)):
            estimate = _settings(inside.sum(axis=-1) / size)
            with np.errstate(invalid="ignore"):  # a resample without the label has no score of it
                resamples = _settings(sums / weights)
            ends = setting_ends(estimate, resamples, _settings(by_seed / size), few, n_groups)
            values[value] = (estimate, *ends)
        table = _by_language(languages, **values)
        table.insert(0, "label", name)
        table.insert(3, "n", int(mask.sum()))
        table.insert(4, "share", mask.mean())
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _label_masks(
    labels: Sequence[int], groups_of_labels: Mapping[str, Sequence[int]], n: int
) -> dict[str, np.ndarray]:
    """Which examples have each (merged) label: boolean ``(n,)``; each example in one of them."""
    labels = np.asarray(labels)
    if labels.shape != (n,):
        raise MixingError(f"labels have shape {labels.shape} and there are {n} examples: one each")
    masks = {name: np.isin(labels, list(some)) for name, some in groups_of_labels.items()}
    times = np.sum([np.zeros(n, dtype=int), *masks.values()], axis=0)
    if (times != 1).any():
        raise MixingError(
            f"label {labels[(times != 1).argmax()]} is not in exactly one of "
            f"{', '.join(groups_of_labels)}: contributions add up only if each label is"
        )
    return masks


def _settings(grids: np.ndarray) -> np.ndarray:
    """Within, across and drop of each language and of their mean: ``(..., L + 1, 3)``."""
    diagonal, outside = within(grids), across(grids)
    table = np.stack([diagonal, outside, diagonal - outside], axis=-1)
    return np.concatenate([table, table.mean(axis=-2, keepdims=True)], axis=-2)


def _by_language(
    languages: Sequence[str], **values: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> pd.DataFrame:
    """One row per language and setting, of values ``(L + 1, 3)`` with low and high."""
    index = pd.MultiIndex.from_product(
        [[*languages, OVERALL], SETTINGS], names=["language", "setting"]
    )
    columns = {}
    for name, (value, low, high) in values.items():
        start = "" if name == "score" else f"{name}_"
        columns |= {name: value, f"{start}low": low, f"{start}high": high}
    return pd.DataFrame({name: x.ravel() for name, x in columns.items()}, index).reset_index()
