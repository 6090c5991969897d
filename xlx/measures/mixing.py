"""What is lost within and across languages of a grid, with intervals.

Intervals have a closed form. Examples that share a text are not independent (the hypotheses of a
premise in XNLI, the questions of a paragraph in XQuAD): the variance is over whole ``groups`` of
them, cluster-robust with the correction CR2 and the degrees of freedom of Bell and McCaffrey
(2002). The same examples are in all cells and asked of all models, so that differences are paired.
With several seeds, seeds, groups and what is left are three sources of variance (Searle, Casella
and McCulloch 1992), as in `igap.crossed_interval`. What groups and what seeds leave open are two
half widths, each with Student's t of its own degrees of freedom; their squares add up (Zou and
Donner 2008). Satterthwaite's degrees of freedom for the sum were tried: with three seeds that
differ as much as the groups they cover 90 to 93 %.

A share has Wilson's interval (1927), of as many independent examples as would be as uncertain: of
one that is 0 or 1 everywhere, as many as there are groups. A drop has a symmetric interval. Where
fewer than `FEW` groups have anything right, or anything wrong, it is put together of the intervals
of both shares.

In simulation (`tests/measures/test_mixing_coverage.py`) they cover 93 to 97 %, of 7 to 391 groups
of unequal size and 1, 3 or 5 seeds. Exceptions: a share of .05 or .95 is covered in 98 to 99 %
with seven groups, and in some 90 % with three seeds that differ much.

Rajaee and Monz (2024), "Analyzing the Evaluation of Cross-Lingual Knowledge Transfer in
Multilingual Language Models"; tables and figures are numbered as there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy import ndarray
from pandas import DataFrame

from xlx.measures import statistics
from xlx.results import checks
from xlx.results.deferred import deferred

special = deferred("scipy.special")
stats = deferred("scipy.stats")

#: With fewer groups on one side of a share, a drop from or to it is put together of two intervals.
FEW = 10
_TAIL = (1 + statistics.LEVEL) / 2


class MixingError(ValueError):
    """Scores that make no grid, or a grid that lacks what is asked for; says where and why."""


@dataclass(frozen=True)
class Estimate:
    """Means and half the widths of their intervals, ``(...)`` each.

    ``certain``: that squared, over p (1 - p), of a share of which groups and seeds say the same.
    """

    score: ndarray
    half: ndarray
    certain: float

    def ends(self) -> tuple[ndarray, ndarray]:
        """The symmetric interval."""
        return self.score - self.half, self.score + self.half


@dataclass(frozen=True)
class Groups:
    """Which examples hang together.

    ``order`` sorts the examples by group; ``starts`` is where each group begins in that order.
    """

    order: ndarray
    starts: ndarray

    @classmethod
    def named(cls, n: int, groups: Sequence[int] | None) -> "Groups":
        """Of n examples by the names of their groups; each by itself for None.

        MixingError for names of other examples, or fewer than two groups.
        """
        labels = np.arange(n) if groups is None else np.asarray(groups)
        if labels.shape != (n,):
            raise MixingError(
                f"groups have shape {labels.shape} and there are {n} examples: one each"
            )
        names, labels = np.unique(labels, return_inverse=True)
        if len(names) < 2:
            raise MixingError(
                f"an interval needs two examples that are independent, and there are {n} in "
                f"{len(names)} groups"
            )
        order = np.argsort(labels, kind="stable")
        return cls(order, np.searchsorted(labels[order], range(len(names))))

    def sums(self, values: ndarray) -> ndarray:
        """Sum of ``(..., n)`` in each group: ``(..., n_groups)``."""
        return np.add.reduceat(values[..., self.order], self.starts, axis=-1)

    def estimate(
        self,
        each: ndarray,
        other: ndarray | None = None,
        weights: ndarray | None = None,
        average: Callable[[ndarray], ndarray] = np.asarray,
    ) -> Estimate:
        """Means over seeds and examples of ``(S, ..., n)``, sums over the sum of the ``weights``.

        Less those of ``other``, another model with seeds of its own. ``weights``, ``(n,)``, are 1
        if not given; where one is 0, so are the values. ``average`` makes averages of ``(..., L,
        L)``.
        """
        sizes = self.sums(np.ones(each.shape[-1]) if weights is None else 1.0 * weights)
        size = sizes.sum()
        share = sizes / size
        skew = share**2 / (1 - share)
        freedom = 1 / ((share**2).sum() + skew.sum() ** 2 - (skew**2).sum())
        t2, models = special.stdtrit(freedom, _TAIL) ** 2, []
        for values in (each,) if other is None else (each, other):
            sums = np.moveaxis(self.sums(values), -1, 1) / size
            means, wide = sums.sum(1), (..., *[None] * (sums.ndim - 2))
            apart = (sums - means[:, None] * share[wide]) / np.sqrt(1 - share)[wide]
            models.append((average(means), average(apart)))
        score, apart = (
            np.subtract(*x) if len(x) == 2 else x[0]
            for x in ([y.mean(0) for y in part] for part in zip(*models, strict=True))
        )
        square = t2 * (apart**2).sum(0)
        for means, apart in models:
            if (n := len(means) - 1) > 0:
                by_seed = means.var(0, ddof=1) / (n + 1)
                left = ((apart - apart.mean(0)) ** 2).sum((0, 1)) / (n * (n + 1))
                square += special.stdtrit(n, _TAIL) ** 2 * np.maximum(by_seed - left, 0)
        return Estimate(score, np.sqrt(square), t2 / (sizes > 0).sum())

    def few(self, right: ndarray, wrong: ndarray) -> ndarray:
        """Whether fewer than `FEW` groups have anything in ``right`` or ``wrong``, ``(L, L, n)``.

        Of each average within or across that a drop is between: ``(L + 1,)``.
        """
        some = (np.moveaxis(self.sums(x) > statistics.SLACK, -1, 0) for x in (right, wrong))
        counts = ((_settings(1.0 * x)[..., :2] > 0).sum(0) for x in some)
        return (np.minimum(*counts) < FEW).any(-1)


def share_ends(estimate: Estimate) -> tuple[ndarray, ndarray]:
    """Wilson's interval of shares."""
    spread = estimate.score * (1 - estimate.score)
    certain = np.full_like(spread, estimate.certain)
    known = (estimate.half > statistics.SLACK) & (spread > statistics.SLACK)
    c = np.divide(estimate.half**2, spread, out=certain, where=known)
    return statistics.wilson_ends(estimate.score, c)


def setting_ends(estimate: Estimate, few: ndarray) -> tuple[ndarray, ndarray]:
    """`share_ends` of within and across ``(L + 1, 3)``, and of the drop, from both where few."""
    low, high = estimate.ends()
    shares = Estimate(estimate.score[..., :2], estimate.half[..., :2], estimate.certain)
    low[..., :2], high[..., :2] = share_ends(shares)
    within, across, drop = np.moveaxis(estimate.half, -1, 0)
    scale = 2 * within * across
    linked = np.divide(
        within**2 + across**2 - drop**2, scale, out=np.zeros_like(scale), where=scale > 0
    ).clip(-1, 1)
    # what is the same in both settings of every example has no drop, however few
    open_ = few & ((drop > statistics.SLACK) | (scale <= statistics.SLACK**2))
    below, above = shares.score - low[..., :2], high[..., :2] - shares.score
    for ends, sign, (left, right) in ((low, -1, (below, above)), (high, 1, (above, below))):
        left, right = left[..., 0], right[..., 1]
        square = left**2 + right**2 - 2 * linked * left * right
        open_end = estimate.score[..., 2] + sign * np.sqrt(np.maximum(square, 0))
        ends[..., 2] = np.where(open_, open_end, ends[..., 2])
    return low, high


#: What a grid says about a language; drop is within - across.
SETTINGS = ("within", "across", "drop")
#: The "language" of a mean over languages, and of a whole row or column.
OVERALL, EVERYWHERE = "mean", "all"


def within(scores: ndarray) -> ndarray:
    """Score of each language where both parts are in it: the diagonal (section 3.1).

    ``scores`` ``(..., L, L)``, on any scale; returns ``(..., L)``.
    """
    return np.diagonal(np.asarray(scores, float), axis1=-2, axis2=-1).copy()


def across(scores: ndarray) -> ndarray:
    """Mean score of each language over the 2 (L - 1) cells where one part alone is in it (Table 1).

    Its mean over languages is that of all cells off the diagonal. MixingError for a single
    language.
    """
    scores = np.asarray(scores, float)
    n = scores.shape[-1]
    if n < 2:
        raise MixingError("a grid of one language has no cell across: two or more are needed")
    return (scores.sum(-1) + scores.sum(-2) - 2 * within(scores)) / (2 * (n - 1))


def checked_scores(
    scores: ndarray, languages: Sequence[str], least: float = 0
) -> tuple[ndarray, ndarray]:
    """Grids of single examples: mean over seeds ``(L, L, n)``, each ``(S, L, L, n)``; or errors.

    They are shares in [0, 1]; where ``least`` is -1 their mean in each cell is a share, or a
    difference of shares.
    """
    scores, n = np.asarray(scores, float), len(languages)
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
    means = scores if least == 0 else scores.mean(-1)
    if means.min() < least - statistics.SLACK or means.max() > 1 + statistics.SLACK:
        raise MixingError(
            f"scores are between {means.min():g} and {means.max():g}: give them as shares in "
            f"[{least:g}, 1], not in per cent"
        )
    return each[0] if len(each) == 1 else each.mean(0), each


@checks.typed(MixingError)
def cells(
    scores: ndarray,
    languages: Sequence[str],
    groups: Sequence[int] | None = None,
    *,
    margins: bool = False,
) -> DataFrame:
    """Every cell of a grid by ``first`` and ``second``, the languages of its parts (Figures 2-10).

    With ``margins`` also the means of whole rows and columns, as a language `EVERYWHERE`.
    """
    _, each = checked_scores(scores, languages)
    if margins:
        languages = [*languages, EVERYWHERE]
        for axis in (-2, -3):
            each = np.concatenate([each, each.mean(axis, keepdims=True)], axis)
    estimate = Groups.named(each.shape[-1], groups).estimate(each)
    index = pd.MultiIndex.from_product([languages, languages], names=["first", "second"])
    columns = zip(("score", "low", "high"), (estimate.score, *share_ends(estimate)), strict=True)
    return DataFrame({name: x.ravel() for name, x in columns}, index).reset_index()


@checks.typed(MixingError)
def summary(
    scores: ndarray, languages: Sequence[str], groups: Sequence[int] | None = None
) -> DataFrame:
    """Within, across and the drop between them, of each language and their mean (Tables 1 to 3).

    By ``language`` (the last one `OVERALL`) and ``setting`` (`SETTINGS`; a drop is in [-1, 1]).
    """
    scores, each = checked_scores(scores, languages)
    named = Groups.named(scores.shape[-1], groups)
    estimate = named.estimate(each, average=_settings)
    ends = setting_ends(estimate, named.few(scores, 1 - scores))
    return _by_language(languages, score=(estimate.score, *ends))


@checks.typed(MixingError)
def paired_difference(
    scores: ndarray,
    others: ndarray,
    languages: Sequence[str],
    groups: Sequence[int] | None = None,
) -> DataFrame:
    """By how much one grid is above another on the same examples, as a table like `summary`'s.

    For a model and its control task (Tables 7 and 14) or a baseline; intervals are symmetric. The
    two may have unequal numbers of seeds, independent ones, and be no shares (`auc_values`).
    """
    (_, first), (_, second) = (checked_scores(x, languages, -1) for x in (scores, others))
    _check_alike(first, second)
    named = Groups.named(first.shape[-1], groups)
    estimate = named.estimate(first, second, average=_settings)
    return _by_language(languages, score=(estimate.score, *estimate.ends()))


@checks.typed(MixingError)
def averages(
    each: ndarray, groups: Sequence[int] | None = None, other: ndarray | None = None
) -> DataFrame:
    """Means over examples of ``(S, K, n)``, seeds by averages by examples: K rows with intervals.

    With ``other``, of another model on the same examples, what is above it (paired). Columns
    ``score``, ``low``, ``high``; symmetric.
    """
    if other is not None:
        _check_alike(each, other)
    estimate = Groups.named(each.shape[-1], groups).estimate(each, other)
    low, high = estimate.ends()
    return DataFrame({"score": estimate.score, "low": low, "high": high})


def auc_values(evidence: ndarray, positive: ndarray) -> ndarray:
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
    auc = share[..., positive].mean(-1, keepdims=True)
    return auc + (share - auc) * len(positive) / np.where(positive, n_positive, (~positive).sum())


def sensitivity_values(called: ndarray, positive: ndarray) -> ndarray:
    """Values of examples whose mean is d′ = z(hits) - z(false alarms); boolean ``(..., n)``.

    Half a call is added to the calls, and one to their number (log-linear), so that none is
    infinite; errors by the delta method.
    """
    values = 0.0
    for side, sign in ((positive, 1), (~positive, -1)):
        n = side.sum()
        share = ((called & side).sum(-1, keepdims=True) + 0.5) / (n + 1)
        z = special.ndtri(share)
        slope = np.sqrt(2 * np.pi) * np.exp(z**2 / 2) * len(positive) / max(n, 1)
        off = np.where(side, called, share) - share
        values = values + sign * (z + slope * (off - off.mean(-1, keepdims=True)))
    return values


@checks.typed(MixingError)
def by_label(
    right: ndarray,
    labels: Sequence[int],
    groups_of_labels: Mapping[str, Sequence[int]],
    languages: Sequence[str],
    groups: Sequence[int] | None = None,
) -> DataFrame:
    """The averages of `summary` by the label of the examples (Tables 5, 6, 10 to 13).

    ``labels`` ``(n,)`` are the gold ones; ``groups_of_labels`` has name → the labels that it stands
    for, such as "not-entailment" for two of XNLI's three. Beside the score of the examples with the
    ``label`` a row has their number ``n`` and ``share``, and the ``contribution``, share × score,
    with its ``contribution_low`` and ``_high``: those of all labels add up to the score, or drop,
    of `summary`. How many examples have a label is part of what is drawn. MixingError also for a
    label in no or two of the groups, and for one with examples of one of ``groups`` only.
    """
    right, each = checked_scores(right, languages)
    n = right.shape[-1]
    named = Groups.named(n, groups)
    names = np.arange(n) if groups is None else np.asarray(groups)
    labels = np.asarray(labels)
    if labels.shape != (n,):
        raise MixingError(f"labels have shape {labels.shape} and there are {n} examples: one each")
    masks = {name: np.isin(labels, list(some)) for name, some in groups_of_labels.items()}
    times = np.sum([np.zeros(n, int), *masks.values()], 0)
    if (times != 1).any():
        raise MixingError(
            f"label {labels[(times != 1).argmax()]} is not in exactly one of "
            f"{', '.join(groups_of_labels)}: contributions add up only if each label is"
        )
    tables = []
    for name, mask in masks.items():
        if (n_groups := len(np.unique(names[mask]))) < 2:
            raise MixingError(f"label {name!r} has examples of {n_groups} groups: two are needed")
        few, values = named.few(mask * right, mask * (1 - right)), {}
        for value, weights in (("score", mask), ("contribution", None)):
            of_label = named.estimate(mask * each, weights=weights, average=_settings)
            values[value] = (of_label.score, *setting_ends(of_label, few))
        table = _by_language(languages, **values)
        table.insert(0, "label", name)
        table.insert(3, "n", int(mask.sum()))
        table.insert(4, "share", mask.mean())
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _check_alike(first: ndarray, other: ndarray) -> None:
    """MixingError where two grids, of any seeds, are not of the same examples."""
    if first.shape[1:] != other.shape[1:]:
        shapes = f"{first.shape[1:]} and {other.shape[1:]}"
        raise MixingError(f"shapes {shapes} are not of the same examples")


def _settings(grids: ndarray) -> ndarray:
    """Within, across and drop of each language and of their mean: ``(..., L + 1, 3)``."""
    diagonal, outside = within(grids), across(grids)
    table = np.stack([diagonal, outside, diagonal - outside], -1)
    return np.concatenate([table, table.mean(-2, keepdims=True)], -2)


def _by_language(languages: Sequence[str], **values: tuple[ndarray, ndarray, ndarray]) -> DataFrame:
    """One row per language and setting, of values ``(L + 1, 3)`` with low and high."""
    index = pd.MultiIndex.from_product(
        [[*languages, OVERALL], SETTINGS], names=["language", "setting"]
    )
    columns = {}
    for name, (value, low, high) in values.items():
        start = "" if name == "score" else f"{name}_"
        columns |= {name: value, f"{start}low": low, f"{start}high": high}
    return DataFrame({name: x.ravel() for name, x in columns.items()}, index).reset_index()
