"""Mixing: what a model loses when the two parts of an example come in different languages.

A model is fine-tuned once and tested on every pair of languages: premise × hypothesis, sentence 1 ×
sentence 2, context × question. That grid has the usual zero-shot evaluation on its diagonal
(`within`) and everything that asks for two languages at once off it (`across`). Here a grid becomes
the averages of the paper's tables, with intervals: per language (`summary`), per label
(`by_label`), against another model (`difference`), for a model fine-tuned on a mixed pair
(`starred`, `pairs`), and by how near a question's words are to the answer (`tails`).

Arrays of scores are float, ``(L, L, n)``: the score of example k with part 1 in the language of the
row and part 2 in that of the column; or ``(S, L, L, n)`` of S fine-tunings that differ in their
seed alone. Scores are in [0, 1]: 1 or 0 for a right or wrong answer, an F1 or an exact match.
Example k is the same in all cells.

Intervals are percentiles of a bootstrap over examples, and each resample is the same examples in
all cells and for all models, so that differences are paired. Examples that share a text are not
independent (the three hypotheses of a premise in XNLI, the questions of a paragraph in XQuAD):
``groups`` says which hang together, and whole groups are drawn. With several seeds an average is
that of their mean, and its interval is of both: to each resample of the examples an error of
Student's t with S - 1 degrees of freedom is added, whose scale is the standard error over seeds on
the examples that there are. With one seed the interval leaves out what another fine-tuning does.

Percentiles are too narrow where next to nothing is right, or wrong: of 21 paragraphs with 1 % of
answers right, 95 % intervals cover 72 to 85 %. A share with fewer than `FEW` groups in which
anything is right, or anything wrong, has Wilson's interval instead (1927), of as many independent
examples as give the bootstrap's variance (but no fewer than there are groups), with Student's t of
the groups less one; a drop from or to such a share is put together from both intervals (Zou and
Donner 2008).

Rajaee and Monz, "Analyzing the Evaluation of Cross-Lingual Knowledge Transfer in Multilingual
Language Models"; sections and tables are numbered as there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from xlx import checks, statistics
from xlx.transferability import resample_counts

#: What a grid says about a language; drop is within - across.
SETTINGS = ("within", "across", "drop")
#: The rows of Tables 4 and 9: language of part 1, language of part 2, * for all of them.
PAIRS_ROWS = ("l1-l2", "l2-l1", "*-l2", "l1-*", "*-*")
#: The "language" of a mean over languages.
MEAN = "mean"
#: Scores that differ by less are taken for equal, and may be outside [0, 1] by no more.
SLACK = 1e-12
#: With fewer groups of examples on one side of a share, its interval is Wilson's.
FEW = 10


class MixingError(ValueError):
    """Scores that make no grid, or a grid that lacks what is asked for; says where and why."""


# --- averages of a grid ---------------------------------------------------------------------------


def within(scores: np.ndarray, languages: Sequence[str] | None = None) -> np.ndarray:
    """Score of each language where both parts are in it: the diagonal (section 3.1).

    Parameters
    ----------
    scores : numpy.ndarray
        ``(..., L, L)``, one number a cell, on any scale: a grid of single examples ``(L, L, n)`` is
        averaged over them first.
    languages : sequence of str, optional
        ``(L,)``, to name a cell in an error.

    Returns
    -------
    numpy.ndarray
        ``(..., L)``.

    Raises
    ------
    MixingError
        The last two axes are not square or not of `languages`; a cell is empty (NaN).
    """
    scores = _grid(scores, languages)
    return np.diagonal(scores, axis1=-2, axis2=-1).copy()


def across(scores: np.ndarray, languages: Sequence[str] | None = None) -> np.ndarray:
    """Mean score of each language over the 2 (L - 1) cells where one part alone is in it.

    The caption of Table 1: "the average performance when either the premise or the hypothesis (but
    not both) is in the given language". The mean of it over languages is the mean of all cells off
    the diagonal, each of which is in two languages' averages. Parameters, shapes and errors as in
    `within`; a single language is an error too.
    """
    return _outside(_grid(scores, languages))


def _outside(grids: np.ndarray) -> np.ndarray:
    """`across` without a look for NaN, which a resample without the examples of a label has."""
    n = grids.shape[-1]
    if n < 2:
        raise MixingError("a grid of one language has no cell across: two or more are needed")
    diagonal = np.diagonal(grids, axis1=-2, axis2=-1)
    return (grids.sum(axis=-1) + grids.sum(axis=-2) - 2 * diagonal) / (2 * (n - 1))


def _grid(scores: np.ndarray, languages: Sequence[str] | None) -> np.ndarray:
    """One number a cell as float, or an error."""
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim < 2 or scores.shape[-1] != scores.shape[-2]:
        raise MixingError(
            f"scores have shape {scores.shape}: a grid has as many rows as columns, the last two "
            "axes; average over examples first"
        )
    if languages is not None:
        _check_languages(languages, scores.shape[-2:])
    _check_full(scores, np.isnan(scores), languages, scores.ndim - 2)
    return scores


def _check_languages(languages: Sequence[str], shape: tuple[int, ...]) -> None:
    if len(languages) != shape[0] or len(languages) != shape[1]:
        raise MixingError(
            f"there are {len(languages)} languages and the grid is {shape[0]} × {shape[1]}: a row "
            "and a column of each are needed"
        )
    if len(set(languages)) < len(languages):
        raise MixingError(f"a language is named twice: {', '.join(languages)}")


def _check_full(
    scores: np.ndarray, empty: np.ndarray, languages: Sequence[str] | None, row_axis: int
) -> None:
    """Raise for the first cell where something is empty, named by its languages or its place."""
    if not empty.any():
        return
    place = np.unravel_index(int(empty.argmax()), scores.shape)
    row, column = place[row_axis], place[row_axis + 1]
    cells_ = {(p[row_axis], p[row_axis + 1]) for p in np.argwhere(empty)}
    name = (
        f"{languages[row]}-{languages[column]}"
        if languages is not None
        else f"in row {row}, column {column}"
    )
    more = f" (and {len(cells_) - 1} more)" if len(cells_) > 1 else ""
    raise MixingError(
        f"cell {name}{more} is empty, its score NaN: evaluate it, or leave its language out"
    )


# --- resampling -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Resamples:
    """How often each group of examples is in each resample, and which examples are in a group.

    ``counts`` is ``(n_resamples, n_groups)``; ``order`` sorts the examples by group and ``starts``
    is where each group begins in that order.
    """

    counts: np.ndarray
    order: np.ndarray
    starts: np.ndarray

    @classmethod
    def draw(
        cls, n: int, groups: Sequence[int] | None, n_resamples: int, seed: int | np.random.Generator
    ) -> "_Resamples":
        if n_resamples < 1:
            raise MixingError(f"n_resamples is {n_resamples}: draw one resample or more")
        of = np.arange(n) if groups is None else np.asarray(groups)
        if of.shape != (n,):
            raise MixingError(f"groups have shape {of.shape} and there are {n} examples: one each")
        _, of = np.unique(of, return_inverse=True)
        n_groups = int(of.max(initial=-1)) + 1
        if n_groups < 2:
            raise MixingError(
                f"an interval needs two examples that are independent, and there are {n} in "
                f"{n_groups} groups"
            )
        order = np.argsort(of, kind="stable")
        counts = resample_counts(n_groups, n_resamples, np.random.default_rng(seed))
        return cls(counts.astype(np.float64), order, np.searchsorted(of[order], range(n_groups)))

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Sum of ``(..., n)`` over the examples of each resample: ``(n_resamples, ...)``."""
        by_group = np.add.reduceat(values[..., self.order], self.starts, axis=-1)
        return np.moveaxis(np.tensordot(by_group, self.counts, axes=(-1, 1)), -1, 0)

    def few(self, right: np.ndarray, wrong: np.ndarray, average: Any = np.asarray) -> np.ndarray:
        """Whether an average has less than `FEW` groups with anything in ``right`` or ``wrong``.

        ``right`` and ``wrong`` are ``(L, L, n)``, ``average`` makes averages of ``(..., L, L)``.
        """
        counts = []
        for values in (right, wrong):
            by_group = np.add.reduceat(values[..., self.order], self.starts, axis=-1)
            own = average(np.moveaxis(by_group > SLACK, -1, 0).astype(np.float64))
            counts.append((own > 0).sum(axis=0))
        return np.minimum(*counts) < FEW

    def means(self, values: np.ndarray) -> np.ndarray:
        """Mean over the examples of each resample, whose number varies with the groups drawn."""
        sizes = self.sums(np.ones(values.shape[-1]))
        return self.sums(values) / sizes.reshape(-1, *[1] * (values.ndim - 1))


def _ends(
    resamples: np.ndarray, level: float, each: np.ndarray | None = None, stream: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Percentiles of ``(n_resamples, ...)``, over the resamples that have a number.

    ``each``: the estimate of each seed, ``(S, ...)``; see `_of_seeds`.
    """
    if each is not None:
        resamples = resamples + _of_seeds(each, len(resamples), stream)
    share = (1 - checks.level(level)) / 2
    low, high = np.nanquantile(resamples, [share, 1 - share], axis=0)
    return low, high


def _of_seeds(each: np.ndarray, n_resamples: int, stream: int = 0) -> np.ndarray:
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
    share: np.ndarray, variance: np.ndarray, n_groups: int, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's interval of shares, of as many examples as a variance is worth.

    At least ``n_groups``, which is also what no variance at all (none right, or all) is worth.
    """
    t2 = stats.t.ppf((1 + checks.level(level)) / 2, n_groups - 1) ** 2
    worth = np.divide(
        share * (1 - share), variance, out=np.zeros_like(share), where=variance > SLACK**2
    )
    n = np.maximum(worth, n_groups)
    middle = (share + t2 / (2 * n)) / (1 + t2 / n)
    half = np.sqrt(t2 * (share * (1 - share) / n + t2 / (4 * n**2))) / (1 + t2 / n)
    return np.clip(middle - half, 0, 1), np.clip(middle + half, 0, 1)


def _share_ends(
    estimate: np.ndarray,
    resamples: np.ndarray,
    each: np.ndarray,
    few: np.ndarray,
    n_groups: int,
    level: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Ends for shares: percentiles, and where there are ``few`` on one side, Wilson's."""
    ends = (np.clip(end, 0, 1) for end in _ends(resamples, level, each))
    wilson = _wilson(estimate, _variance(resamples, each), n_groups, level)
    low, high = (np.where(few, own, end) for own, end in zip(wilson, ends, strict=True))
    return low, high


def _setting_ends(
    estimate: np.ndarray,
    resamples: np.ndarray,
    each: np.ndarray,
    few: np.ndarray,
    n_groups: int,
    level: float,
) -> tuple[np.ndarray, np.ndarray]:
    """`_share_ends` of within and across ``(L + 1, 3)``, and of the drop, from both where few."""
    low, high = _ends(resamples, level, each)
    shares = (estimate[..., :2], resamples[..., :2], each[..., :2], few[..., :2])
    low[..., :2], high[..., :2] = _share_ends(*shares, n_groups, level)
    variance = _variance(resamples, each)
    one, other, apart = np.moveaxis(variance, -1, 0)
    scale = 2 * np.sqrt(one * other)
    linked = np.divide(one + other - apart, scale, out=np.zeros_like(scale), where=scale > 0)
    below, above = estimate - low, high - estimate
    ends = []
    for left, right in ((below[..., 0], above[..., 1]), (above[..., 0], below[..., 1])):
        square = left**2 + right**2 - 2 * np.clip(linked, -1, 1) * left * right
        ends.append(np.sqrt(np.maximum(square, 0)))
    # what is the same in both settings of every example has no drop, however few
    open_ = few[..., :2].any(axis=-1) & ((apart > SLACK**2) | (scale <= SLACK**2))
    low[..., 2] = np.where(open_, estimate[..., 2] - ends[0], low[..., 2])
    high[..., 2] = np.where(open_, estimate[..., 2] + ends[1], high[..., 2])
    return low, high


def _scores(
    scores: np.ndarray, languages: Sequence[str], name: str = "scores"
) -> tuple[np.ndarray, np.ndarray]:
    """Grids of single examples, mean over seeds ``(L, L, n)`` and each ``(S, L, L, n)``; errors."""
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim not in (3, 4):
        raise MixingError(
            f"{name} have shape {scores.shape}: (languages of part 1, languages of part 2, "
            "examples) is needed, or that with seeds before it"
        )
    each = scores if scores.ndim == 4 else scores[None]
    if not len(each):
        raise MixingError(f"{name} are of no seed")
    _check_languages(languages, each.shape[1:])
    if not scores.shape[-1]:
        raise MixingError(f"{name} are of no examples")
    _check_full(each, np.isnan(each), languages, 1)
    if scores.min() < -SLACK or scores.max() > 1 + SLACK:
        raise MixingError(
            f"{name} are between {scores.min():g} and {scores.max():g}: give them as shares in "
            "[0, 1], not in per cent"
        )
    return each[0] if len(each) == 1 else each.mean(axis=0), each


# --- tables ---------------------------------------------------------------------------------------


def cells(
    scores: np.ndarray,
    languages: Sequence[str],
    groups: Sequence[int] | None = None,
    *,
    n_resamples: int = 1000,
    level: float = statistics.LEVEL,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """Every cell of a grid with its interval (Figures 2 to 10).

    Parameters
    ----------
    scores : numpy.ndarray
        ``(L, L, n)`` or ``(S, L, L, n)``, in [0, 1].
    languages : sequence of str
        ``(L,)``, of rows and columns.
    groups : sequence of int, optional
        ``(n,)``: examples of one number are drawn together.
    n_resamples, level, seed
        Of the bootstrap.

    Returns
    -------
    DataFrame
        ``first`` and ``second`` (languages of the parts), ``score``, ``low``, ``high``; row by row.

    Raises
    ------
    MixingError
        Shapes that do not go together; a language named twice; no examples, or all of one group; an
        empty cell (NaN), named; scores outside [0, 1].
    """
    scores, each = _scores(scores, languages)
    drawn = _Resamples.draw(scores.shape[-1], groups, n_resamples, seed)
    low, high = _share_ends(
        scores.mean(axis=-1),
        drawn.means(scores),
        each.mean(axis=-1),
        drawn.few(scores, 1 - scores),
        len(drawn.starts),
        level,
    )
    n = len(languages)
    return pd.DataFrame(
        {
            "first": np.repeat(list(languages), n),
            "second": np.tile(list(languages), n),
            "score": scores.mean(axis=-1).ravel(),
            "low": low.ravel(),
            "high": high.ravel(),
        }
    )


def summary(
    scores: np.ndarray,
    languages: Sequence[str],
    groups: Sequence[int] | None = None,
    *,
    n_resamples: int = 1000,
    level: float = statistics.LEVEL,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """Within, across and the drop between them, of each language and their mean (Tables 1 to 3).

    Parameters and errors as in `cells`; a single language is an error too.

    Returns
    -------
    DataFrame
        ``language`` (the last one "mean"), ``setting`` (`SETTINGS`), ``score`` (in [0, 1], a drop
        in [-1, 1]), ``low``, ``high``.
    """
    scores, each = _scores(scores, languages)
    drawn = _Resamples.draw(scores.shape[-1], groups, n_resamples, seed)
    estimate = _settings(scores.mean(axis=-1))
    ends = _setting_ends(
        estimate,
        _settings(drawn.means(scores)),
        _settings(each.mean(axis=-1)),
        drawn.few(scores, 1 - scores, _settings),
        len(drawn.starts),
        level,
    )
    return _by_language(languages, score=(estimate, *ends))


def difference(
    one: np.ndarray,
    other: np.ndarray,
    languages: Sequence[str],
    groups: Sequence[int] | None = None,
    *,
    n_resamples: int = 1000,
    level: float = statistics.LEVEL,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """By how much one grid is above another on the same examples, as a table like `summary`'s.

    For a model and its control task (Tables 7 and 14) or a baseline: the difference of each
    example is taken first, so the interval is of the paired difference, by percentiles. The two may
    have unequal numbers of seeds, each with an error of its own. Two grids of unequal shape are a
    MixingError; parameters and errors otherwise as in `summary`.
    """
    one, first = _scores(one, languages, "one")
    other, second = _scores(other, languages, "other")
    if one.shape != other.shape:
        raise MixingError(
            f"one has shape {one.shape} and other {other.shape}: a paired difference is of two "
            "grids on the same examples"
        )
    drawn = _Resamples.draw(one.shape[-1], groups, n_resamples, seed)
    estimate = _settings((one - other).mean(axis=-1))
    resamples = _settings(drawn.means(one - other))
    resamples = resamples - _of_seeds(_settings(second.mean(axis=-1)), n_resamples, stream=1)
    ends = _ends(resamples, level, _settings(first.mean(axis=-1)))
    return _by_language(languages, score=(estimate, *ends))


def by_label(
    right: np.ndarray,
    labels: Sequence[int],
    groups_of_labels: Mapping[str, Sequence[int]],
    languages: Sequence[str],
    groups: Sequence[int] | None = None,
    *,
    n_resamples: int = 1000,
    level: float = statistics.LEVEL,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """The averages of `summary` by the label of the examples (Tables 5, 6, 10 to 13).

    Parameters
    ----------
    right : numpy.ndarray
        ``(L, L, n)`` or ``(S, L, L, n)``, in [0, 1]: which answers are right.
    labels : sequence of int
        ``(n,)``, the gold labels.
    groups_of_labels : mapping
        Name → the labels that it stands for, such as "not-entailment" for two of XNLI's three.
        Each label in exactly one.
    languages, groups, n_resamples, level, seed
        As in `cells`.

    Returns
    -------
    DataFrame
        ``label``, ``language`` (the last one "mean"), ``setting``; ``n`` and ``share`` of the
        examples that have the label; ``score``, ``low``, ``high``: of these examples (accuracy
        given the label, as the paper prints); ``contribution``, ``contribution_low``,
        ``contribution_high``: share × score. Contributions of all labels add up to the score of
        `summary`, and those to the drop add up to the drop; in a resample the share varies too.

    Raises
    ------
    MixingError
        As `cells`; a label in no or two of the groups; a group without examples, or with
        examples of one of ``groups`` only.
    """
    right, each = _scores(right, languages, "right answers")
    n = right.shape[-1]
    members = _label_masks(labels, groups_of_labels, n)
    drawn = _Resamples.draw(n, groups, n_resamples, seed)
    of = np.arange(n) if groups is None else np.asarray(groups)
    tables = []
    for name, mask in members.items():
        if len(np.unique(of[mask])) < 2:
            raise MixingError(
                f"label {name!r} has examples of one group only: an interval needs two"
            )
        inside = np.where(mask, right, 0.0)
        sums, sizes = drawn.sums(inside), drawn.sums(mask.astype(np.float64))[:, None, None]
        totals = drawn.sums(np.ones(n))[:, None, None]
        with np.errstate(invalid="ignore"):  # a resample without the label has no score of it
            given = _settings(sums / sizes)
        few = drawn.few(inside, np.where(mask, 1 - right, 0.0), _settings)
        by_seed = np.where(mask, each, 0.0).sum(axis=-1)
        values = {}
        for value, size, resamples in (
            ("score", mask.sum(), given),
            ("contribution", n, _settings(sums / totals)),
        ):
            estimate = _settings(inside.sum(axis=-1) / size)
            own = (estimate, resamples, _settings(by_seed / size), few)
            values[value] = (estimate, *_setting_ends(*own, len(np.unique(of[mask])), level))
        table = _by_language(languages, **values)
        table.insert(0, "label", name)
        table.insert(3, "n", int(mask.sum()))
        table.insert(4, "share", mask.mean())
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


class Detection(NamedTuple):
    """What `detection` finds; all have the shape of the accuracies.

    Attributes
    ----------
    sensitivity : numpy.ndarray
        d′, how far apart the classes are for the model, in standard deviations; 0 if it tells
        nothing.
    criterion : numpy.ndarray
        Which answer it prefers: above 0 the second, below 0 the first.
    unbiased : numpy.ndarray
        The mean of both accuracies, in [0, 1], that it would have with no preference.
    """

    sensitivity: np.ndarray
    criterion: np.ndarray
    unbiased: np.ndarray


def detection(first: np.ndarray, second: np.ndarray) -> Detection:
    """What a model tells of two classes, apart from which answer it prefers (Tables 6, 12, 13).

    Where one class is answered worse and the other better, the preference has moved, the knowledge
    has shrunk, or both; the mean of the two accuracies does not tell, as it falls with either. In
    signal detection (Green and Swets 1966) the model has one normal quantity of unit variance for
    each class and answers "first" above a threshold. With h and r the accuracies of the first and
    the second class and z the normal quantile,

        d′ = z(h) + z(r),   c = (z(r) - z(h)) / 2,

    and with no preference (c = 0) both accuracies would be Φ(d′ / 2). That both variances are equal
    is assumed, and cannot be tested with one threshold.

    Parameters
    ----------
    first, second : numpy.ndarray
        Of a task with two answers: the accuracy on examples of each class, above 0 and below 1. Of
        a mean over models or pairs of languages that differ, d′ comes out too small.

    Raises
    ------
    MixingError
        An accuracy that is not between 0 and 1, where d′ would be infinite.
    """
    first, second = np.asarray(first, float), np.asarray(second, float)
    for name, values in (("first", first), ("second", second)):
        if not ((values > 0) & (values < 1)).all():
            raise MixingError(
                f"an accuracy of the {name} class is not between 0 and 1, so that it has no normal "
                "quantile: leave it out, or divide per cent by 100"
            )
    hits, rejections = stats.norm.ppf(first), stats.norm.ppf(second)
    sensitivity = hits + rejections
    return Detection(sensitivity, (rejections - hits) / 2, stats.norm.cdf(sensitivity / 2))


def detected(table: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """`detection` of the mean over languages, of tables like `by_label`'s of two labels.

    A row per ``model`` and setting (within, across): ``first`` and ``second`` (the accuracies of
    both labels), ``d′``, ``criterion`` (above 0: prefers the second), ``mean of both`` and
    ``without preference`` (in [0, 1]). MixingError where one of them is 0 or 1.
    """
    own = table[(table["language"] == MEAN) & (table["setting"] != SETTINGS[2])]
    found = own.pivot(index=["model", "setting"], columns="label", values="score")
    rows = own[["model", "setting"]].drop_duplicates()
    found = found.loc[pd.MultiIndex.from_frame(rows), [first, second]]
    told = detection(found[first].to_numpy(), found[second].to_numpy())
    found = found.assign(**{"d′": told.sensitivity, "criterion": told.criterion})
    found["mean of both"] = found[[first, second]].mean(axis=1)
    found["without preference"] = told.unbiased
    return found.rename_axis(columns=None)


def in_points(table: pd.DataFrame, value: str = "score") -> pd.Series:
    """Numbers of a table with their intervals as text, in points: "47.3 (39.9 to 54.6)".

    The ends are in ``low`` and ``high``, of another value in ``<value>_low`` and ``<value>_high``.
    """
    ends = ("low", "high") if value == "score" else (f"{value}_low", f"{value}_high")
    points = [(100 * table[name]).round(1) + 0.0 for name in (value, *ends)]  # + 0.0: no "-0.0"
    return pd.Series(
        [f"{one:.1f} ({low:.1f} to {high:.1f})" for one, low, high in zip(*points, strict=True)],
        index=table.index,
    )


def listed(table: pd.DataFrame) -> str:
    """The rows of a table by their index, `in_points`, as one line: "a 1.0 (0.2 to 1.8), b ..."."""
    return ", ".join(f"{name} {own}" for name, own in in_points(table).items())


def by_setting(table: pd.DataFrame, *index: str, language: str = MEAN) -> pd.DataFrame:
    """A language's rows of tables like `summary`'s, settings side by side, as text `in_points`.

    ``index`` names the columns that tell the rows apart, such as "model"; rows and settings keep
    the order of the table. MixingError for a language that it lacks.
    """
    own = table[table["language"] == language]
    if own.empty:
        raise MixingError(f"the table has no language {language!r}")
    own = own.assign(said=in_points(own))
    found = own.pivot(index=list(index), columns="setting", values="said")
    rows = pd.MultiIndex.from_frame(own[list(index)].drop_duplicates())
    return found.loc[
        rows if len(index) > 1 else rows.get_level_values(0), list(own["setting"].unique())
    ]


def _label_masks(
    labels: Sequence[int], groups_of_labels: Mapping[str, Sequence[int]], n: int
) -> dict[str, np.ndarray]:
    """Which examples have each (merged) label: boolean ``(n,)``; each example in one of them."""
    labels = np.asarray(labels)
    if labels.shape != (n,):
        raise MixingError(f"labels have shape {labels.shape} and there are {n} examples: one each")
    masks = {name: np.isin(labels, list(own)) for name, own in groups_of_labels.items()}
    if empty := [name for name, mask in masks.items() if not mask.any()]:
        raise MixingError(
            f"no example has label {empty[0]!r}, which stands for "
            f"{list(groups_of_labels[empty[0]])}: leave it out"
        )
    times = np.sum([np.zeros(n, dtype=int), *masks.values()], axis=0)
    for wrong, what in ((times == 0, "none"), (times > 1, "more than one")):
        if wrong.any():
            raise MixingError(
                f"label {labels[wrong.argmax()]} is in {what} of {', '.join(groups_of_labels)}: "
                "contributions add up to the whole only if each label is in one"
            )
    return masks


def _settings(grids: np.ndarray) -> np.ndarray:
    """Within, across and drop of each language and of their mean: ``(..., L + 1, 3)``."""
    diagonal, outside = np.diagonal(grids, axis1=-2, axis2=-1), _outside(grids)
    found = np.stack([diagonal, outside, diagonal - outside], axis=-1)
    return np.concatenate([found, found.mean(axis=-2, keepdims=True)], axis=-2)


def _by_language(
    languages: Sequence[str], **values: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> pd.DataFrame:
    """A row a language and setting; each value ``(L + 1, 3)`` with low and high.

    The ends of "score" are ``low`` and ``high``, those of another ``<name>_low``, ``<name>_high``.
    """
    named = [*languages, MEAN]
    table = pd.DataFrame(
        {
            "language": np.repeat(named, len(SETTINGS)),
            "setting": np.tile(SETTINGS, len(named)),
        }
    )
    for name, (value, low, high) in values.items():
        start = "" if name == "score" else f"{name}_"
        table[name] = value.ravel()
        table[f"{start}low"], table[f"{start}high"] = low.ravel(), high.ravel()
    return table


# --- fine-tuning on a mixed pair ------------------------------------------------------------------


def pair_cells(
    languages: Sequence[str], pair: tuple[str, str], *, unseen_only: bool = False
) -> dict[str, np.ndarray]:
    """Which cells each row of Tables 4 and 9 averages, boolean ``(L, L)``; see `starred`."""
    languages = list(languages)
    _check_languages(languages, (len(languages), len(languages)))
    for language in pair:
        if language not in languages:
            raise MixingError(
                f"{language} of the pair {'-'.join(pair)} is not in the grid, which has "
                f"{', '.join(languages)}"
            )
    if pair[0] == pair[1]:
        raise MixingError(f"the pair {'-'.join(pair)} is one language twice: two are needed")
    one, two = (np.array([each == language for each in languages]) for language in pair)
    star = ~(one | two) if unseen_only else np.ones(len(languages), dtype=bool)
    if not star.any():
        raise MixingError(
            f"the grid has no language other than {' and '.join(pair)}, so none is unseen"
        )
    sides = {"l1": one, "l2": two, "*": star}
    return {
        row: np.outer(*(sides[side] for side in row.split("-", maxsplit=1))) for row in PAIRS_ROWS
    }


def starred(
    scores: np.ndarray,
    languages: Sequence[str],
    pair: tuple[str, str],
    *,
    unseen_only: bool = False,
) -> dict[str, float]:
    """The five averages of Tables 4 and 9, of a model fine-tuned on a pair (l1, l2).

    ======== ======================================================== ==========
    row      mean over the cells                                      how many
    ======== ======================================================== ==========
    l1-l2    part 1 in l1, part 2 in l2                               1
    l2-l1    part 1 in l2, part 2 in l1                               1
    *-l2     column l2: part 1 in any language, l1 and l2 among them  L
    l1-*     row l1: part 2 in any language, l1 and l2 among them     L
    *-*      the whole grid, its diagonal included                    L²
    ======== ======================================================== ==========

    The paper says "the average performance over all languages" and no more; this is that, taken
    literally. Table 1 bears it out for the last row: with the diagonal the whole grid of mBERT
    has (65.7 + 14 × 54.5) / 15 = 55.2, the baseline is printed as 55.3, and without it 54.5 would
    be left. With ``unseen_only`` a star runs over the L - 2 languages that are in neither place
    of the pair: L - 2, L - 2 and (L - 2)² cells, which the model has not been fine-tuned on in
    the starred place.

    Parameters
    ----------
    scores : numpy.ndarray
        ``(L, L)`` on any scale, or ``(L, L, n)``, averaged over examples.
    languages : sequence of str
        ``(L,)``.
    pair : tuple of str
        l1, the language of part 1 in fine-tuning, and l2, that of part 2.

    Returns
    -------
    dict
        Row (`PAIRS_ROWS`) → average.

    Raises
    ------
    MixingError
        A shape that does not go with the languages; a language of the pair that the grid lacks, or
        one twice; an empty cell (NaN), named; no language that is unseen.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim not in (2, 3):
        raise MixingError(
            f"scores have shape {scores.shape}: (languages, languages), or with examples after "
            "them, is needed"
        )
    _check_languages(languages, scores.shape)
    _check_full(scores, np.isnan(scores), languages, 0)
    grid = scores if scores.ndim == 2 else scores.mean(axis=-1)
    inside = pair_cells(languages, pair, unseen_only=unseen_only)
    return {row: float(grid[mask].mean()) for row, mask in inside.items()}


def pairs(
    conditions: Mapping[str, np.ndarray],
    languages: Sequence[str],
    pair: tuple[str, str],
    groups: Sequence[int] | None = None,
    *,
    unseen_only: bool = False,
    n_resamples: int = 1000,
    level: float = statistics.LEVEL,
    seed: int | np.random.Generator = 0,
) -> pd.DataFrame:
    """The averages of `starred` with intervals, for several models on the same examples.

    Parameters
    ----------
    conditions : mapping
        Name → ``(L, L, n)`` or ``(S, L, L, n)``, in [0, 1]: the model fine-tuned on the pair, and
        its baselines.
    pair, unseen_only
        As in `starred`.
    languages, groups, n_resamples, level, seed
        As in `cells`.

    Returns
    -------
    DataFrame
        ``pair`` ("en-de"), ``row`` (`PAIRS_ROWS`), ``condition``, ``n_cells``, ``score``, ``low``,
        ``high``; then, where there are two conditions or more, ``gain``, ``gain_low`` and
        ``gain_high``: by how much the first condition is above the row's own, paired (0 in
        its own rows).

    Raises
    ------
    MixingError
        As `cells` and `starred`; no conditions, or unequal shapes.
    """
    if not conditions:
        raise MixingError("there is no model to average: give the scores of one")
    inside = pair_cells(languages, pair, unseen_only=unseen_only)
    grids = {name: _scores(own, languages, name) for name, own in conditions.items()}
    if len(shapes := {own.shape for own, _ in grids.values()}) > 1:
        raise MixingError(
            f"the shapes {', '.join(map(str, sorted(shapes)))} of {', '.join(grids)} differ: all "
            "must be of the same examples"
        )
    n = next(iter(shapes))[-1]
    drawn = _Resamples.draw(n, groups, n_resamples, seed)
    # an average over cells first, so that only five rows are resampled
    values = {
        name: np.array([own[mask].mean(axis=0) for mask in inside.values()])
        for name, (own, _) in grids.items()
    }
    by_seed = {
        name: np.stack([each[:, mask].mean(axis=(1, 2)) for mask in inside.values()], axis=1)
        for name, (_, each) in grids.items()
    }
    first, first_seeds = next(iter(values.values())), next(iter(by_seed.values()))
    tables = []
    for name, own in values.items():
        low, high = _ends(drawn.means(own), level, by_seed[name])
        table = pd.DataFrame(
            {
                "pair": "-".join(pair),
                "row": list(inside),
                "condition": name,
                "n_cells": [int(mask.sum()) for mask in inside.values()],
                "score": own.mean(axis=-1),
                "low": low,
                "high": high,
            }
        )
        if len(values) > 1:
            apart = drawn.means(first - own)
            if own is not first:
                apart = apart - _of_seeds(by_seed[name], n_resamples, stream=1)
            low, high = _ends(apart, level, None if own is first else first_seeds)
            table = table.assign(gain=(first - own).mean(axis=-1), gain_low=low, gain_high=high)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


# --- easy and hard questions ----------------------------------------------------------------------


class Tails(NamedTuple):
    """What `tails` finds.

    Attributes
    ----------
    table : DataFrame
        ``group`` ("easiest", "hardest"), ``score`` (mean in it), ``distance`` (mean), ``low``,
        ``high`` (of the distance).
    ratio, low, high : float
        Distance of the hardest over that of the easiest, and its interval; infinite where the
        easiest are at distance 0, NaN where both are.
    """

    table: pd.DataFrame
    ratio: float
    low: float
    high: float


def tails(
    score: np.ndarray,
    distance: np.ndarray,
    share: float = 0.2,
    groups: Sequence[int] | None = None,
    *,
    n_resamples: int = 1000,
    level: float = statistics.LEVEL,
    seed: int | np.random.Generator = 0,
) -> Tails:
    """Mean distance of the easiest and the hardest examples (section 4; Figures 1, 11 and 12).

    The easiest are those with the highest score. Many F1 scores are exactly 0 or 1, so which
    examples are "the top 20 %" is often open: the examples that tie at the border share equally
    what is left to be filled. That is the expected mean if ties are broken at random, and no order
    in the file matters. Where ``share`` × n is no whole number, the last example counts in part.
    Every resample finds its own border.

    Parameters
    ----------
    score, distance : numpy.ndarray
        ``(n,)``; scores that differ by 10⁻¹² are equal, distances are 0 or more.
    share : float
        Of the examples in a tail, above 0 and up to ½.
    groups, n_resamples, level, seed
        As in `cells`.

    Raises
    ------
    MixingError
        Unequal shapes; no examples, or all of one group; NaN; a distance below 0; another share.
    """
    score, distance = np.asarray(score, np.float64), np.asarray(distance, np.float64)
    if score.ndim != 1 or score.shape != distance.shape:
        raise MixingError(
            f"scores have shape {score.shape} and distances {distance.shape}: one of each per "
            "example is needed"
        )
    for name, values in (("score", score), ("distance", distance)):
        if not np.isfinite(values).all():
            raise MixingError(f"the {name} of example {(~np.isfinite(values)).argmax()} is NaN")
    if (distance < 0).any():
        raise MixingError(f"the distance of example {(distance < 0).argmax()} is below 0")
    if not 0 < share <= 0.5:
        raise MixingError(f"the share of a tail is {share}: it is above 0 and at most 0.5")
    drawn = _Resamples.draw(len(score), groups, n_resamples, seed)
    _, level_of = np.unique(np.round(score / SLACK) * SLACK, return_inverse=True)
    at = level_of == np.arange(level_of.max() + 1)[:, None]  # (n_levels, n)
    weights = drawn.sums(at.astype(np.float64))
    estimates, resamples, means = {}, {}, {}
    for group, step in (("easiest", -1), ("hardest", 1)):
        means[group] = _tail(at.sum(axis=1), (at * score).sum(axis=1), share, step)
        estimates[group] = _tail(at.sum(axis=1), (at * distance).sum(axis=1), share, step)
        resamples[group] = _tail(weights, drawn.sums(at * distance), share, step)
    ends = {group: _ends(own, level) for group, own in resamples.items()}
    table = pd.DataFrame(
        {
            "group": list(estimates),
            "score": [float(means[group]) for group in estimates],
            "distance": [float(own) for own in estimates.values()],
            "low": [float(low) for low, _ in ends.values()],
            "high": [float(high) for _, high in ends.values()],
        }
    )
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        ratio = np.divide(estimates["hardest"], estimates["easiest"])
        ratios = resamples["hardest"] / resamples["easiest"]
    return Tails(table, float(ratio), *_ratio_ends(ratios, level))


def _tail(weights: np.ndarray, sums: np.ndarray, share: float, step: int) -> np.ndarray:
    """Mean of what is summed over a share of the weight, from the last level (-1) or the first (1).

    ``weights`` and ``sums`` are ``(..., n_levels)``, levels ascending: how many examples have the
    level, and the sum of their values. Of the level at the border each example counts alike.
    """
    weights, sums = weights[..., ::step], sums[..., ::step]
    wanted = share * weights.sum(axis=-1, keepdims=True)
    before = np.cumsum(weights, axis=-1) - weights
    taken = np.clip(wanted - before, 0, weights)
    part = np.divide(taken, weights, out=np.zeros_like(taken), where=weights > 0)
    return (part * sums).sum(axis=-1) / wanted[..., 0]


def _ratio_ends(ratios: np.ndarray, level: float) -> tuple[float, float]:
    """Percentiles that are ratios found, as there is no middle between a ratio and infinity."""
    known = ratios[~np.isnan(ratios)]
    if not len(known):
        return float("nan"), float("nan")
    share = (1 - checks.level(level)) / 2
    low, high = np.quantile(known, [share, 1 - share], method="nearest")
    return float(low), float(high)
