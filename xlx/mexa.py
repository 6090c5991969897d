"""MEXA: how well a language is aligned with the pivot (Kargaran et al. 2025, section 3).

C holds the cosines of n sentences of a language (rows) with their n translations in the pivot
(columns). Sentence i is a *hit* if c_ii is larger than every other element of row i and of column
i: its translation is the best answer in both directions at once. The score μ is the share of hits,
for each layer; over layers it is averaged, or its maximum taken. Times the score of a task in
English it is the score to be expected in the language (section 5.2).

**The arithmetic.** As in `xlx.similarity`: where all cosines are near one, float32 cannot tell them
apart. With x = m + x' a unit vector of the language and p = q + p' one of the pivot, m and q their
means over the sentences,

    x_i·p_j = m·q + q·x'_i + m·p'_j + x'_i·p'_j

and the first term is the same for all. The next two come from float64, the last from one float32
product for all sentences; where that leaves a comparison open it is made again in float64.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from scipy import special, stats

from xlx import checks, work
from xlx.alignment import check_pivot
from xlx.similarity import BLOCK_NUMBERS, unit_vectors
from xlx.statistics import LEVEL, Correlation, correlation, numbers, require, share_interval

#: Lower edges of the bands of Table 6; a score on an edge belongs above it.
EDGES = (0.0, 0.2, 0.4, 0.6, 0.8)
#: Their names, from "not covered" to "well-covered".
BANDS = ("0–0.2", "0.2–0.4", "0.4–0.6", "0.6–0.8", "0.8–1")

#: Rounding errors of a dot product, in units of the last place of the product of the lengths.
ROUNDING = 16
#: A vector this much shorter than what it is the rest of is rounding of float32.
NOTHING = 1e-6


# --- the score ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PivotScores:
    """Hits of some languages against the pivot, and the scores that are made of them.

    Attributes
    ----------
    languages : tuple of str
        All but the pivot, whose own score is 1 (but for sentences that are there twice).
    pivot : str
    layers : tuple of int
        0 is the embedding layer.
    hits : numpy.ndarray
        bool ``(n_layers, n_languages, n)``: is the translation the best answer both ways?
    only_rival : numpy.ndarray
        int ``(n_layers, n_languages, n)``: the position of the one sentence but for which this one
        would be a hit; -1 for a hit, and for a sentence with several such rivals.
    """

    languages: tuple[str, ...]
    pivot: str
    layers: tuple[int, ...]
    hits: np.ndarray
    only_rival: np.ndarray

    @property
    def mu(self) -> np.ndarray:
        """The MEXA score, ``(n_layers, n_languages)`` in [0, 1]."""
        return self.hits.mean(axis=-1)

    def left_out(self) -> np.ndarray:
        """The score without sentence k, exactly: ``(n_layers, n_languages, n)``.

        Without k as a query its own hit goes, and without k as a candidate those become hits whose
        only rival it was.
        """
        n = self.hits.shape[-1]
        regained = np.zeros(self.hits.shape)
        layer, language, query = np.nonzero(self.only_rival >= 0)
        np.add.at(regained, (layer, language, self.only_rival[layer, language, query]), 1)
        return (self.hits.sum(axis=-1, keepdims=True) - self.hits + regained) / (n - 1)

    def table(self, *, level: float = LEVEL) -> pd.DataFrame:
        """Tidy: ``language``, ``layer``, ``mu``, ``low``, ``high`` (interval: see `pooled`)."""
        low, high = _interval(self.mu, self.left_out(), level)
        shape = (len(self.languages), len(self.layers))
        language, layer = np.indices(shape).reshape(2, -1)
        return pd.DataFrame(
            {
                "language": np.array(self.languages)[language],
                "layer": np.array(self.layers)[layer],
                "mu": self.mu.T.ravel(),
                "low": low.T.ravel(),
                "high": high.T.ravel(),
            }
        )

    def pooled(
        self, how: str = "mean", *, embedding_layer: bool = True, level: float = LEVEL
    ) -> pd.DataFrame:
        """One score a language, over layers: ``language``, ``mu``, ``low``, ``high``.

        **The interval** is for what would be different with other sentences, as many and of the
        same kind: the score belongs to n, since every further sentence is a rival to all. Each
        sentence is a query and a candidate, so it cannot be resampled with replacement: copies of a
        sentence tie with each other, and if they are no rivals to each other there are a third
        fewer rivals than in the corpus. Leaving out one sentence at a time, as query and as
        candidate, changes n by one only and needs no new comparison (`left_out`). That jackknife
        errs on the safe side, on average, whatever the statistic (Efron and Stein 1981): where hits
        are next to independent of each other it is about a quarter too wide. An interval for
        independent hits would fit there, but breaks down where a few sentences are hubs, which
        spoil the hits of many; the jackknife sees them, if the corpus holds some. So that the
        interval of a score near 0 or 1 does not end there, it is Wilson's, for the number of
        independent sentences that would give the jackknife's variance, at most n.

        The maximum is that of the same layers each time, taken again without each sentence, so the
        interval includes the choice of the layer. It is for the maximum as it is computed, which is
        on average a little above the highest of the layers' true scores.

        Parameters
        ----------
        how : {"mean", "max"}
            "mean" suits hard tasks, "max" easy ones (section 5.1).
        embedding_layer : bool
            Whether layer 0 counts: "all model layers" leaves that open.

        Raises
        ------
        ValueError
            Another way to pool, or no layer left.
        """
        if how not in ("mean", "max"):
            raise ValueError(f"layers cannot be pooled by {how!r}: choose mean or max")
        kept = [row for row, layer in enumerate(self.layers) if layer > 0 or embedding_layer]
        if not kept:
            raise ValueError("without the embedding layer none is left to pool")
        pool = np.mean if how == "mean" else np.max
        mu = pool(self.mu[kept], axis=0)
        low, high = _interval(mu, pool(self.left_out()[kept], axis=0), level)
        return pd.DataFrame({"language": self.languages, "mu": mu, "low": low, "high": high})


def _interval(mu: np.ndarray, left_out: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's interval for the number of sentences that the jackknife variance is worth."""
    n = left_out.shape[-1]
    deviations = left_out - left_out.mean(axis=-1, keepdims=True)
    variance = (n - 1) / n * (deviations**2).sum(axis=-1)
    share = (n * mu + 1) / (n + 2)  # never 0 or 1, where hits could have no variance
    worth = np.full(mu.shape, float(n))
    np.divide(share * (1 - share), variance, out=worth, where=variance > 0)
    worth = worth.clip(1, n)
    low, high = share_interval(mu * worth, worth, level)
    return np.minimum(low, mu).clip(0), np.maximum(high, mu).clip(max=1)  # rounding


def scores(
    states: Mapping[str, np.ndarray],
    pivot: str = "en",
    *,
    layers: Sequence[int] | None = None,
    device: str | torch.device = "cpu",
) -> PivotScores:
    """Hits of all languages against the pivot, at all layers.

    A tie of c_ii with another element of its row or column is a miss, as the definition asks for
    strictly more; cosines count as tied that differ by less than the rounding of float64. So a
    sentence that is there twice is missed twice.

    Parameters
    ----------
    states : mapping
        Language → ``(n_layers + 1, n, dim)``; sentences aligned across languages.
    layers : sequence of int, optional
        Default: all, the embedding layer (0) included.
    device
        Where to multiply.

    Raises
    ------
    ValueError
        No states of the pivot, or of no other language; shapes that differ from the pivot's (fewer
        sentences, fewer layers); a layer that is not there; fewer than two sentences; NaN or
        infinity, or a zero vector (with language, position and layer).
    """
    device = checks.device(device)
    layers = check_pivot(states, pivot, layers)
    languages = tuple(language for language in states if language != pivot)
    _, n, dim = states[pivot].shape
    hits = np.empty((len(layers), len(languages), n), dtype=bool)
    only_rival = np.empty(hits.shape, dtype=np.int32)
    chunk = max(1, BLOCK_NUMBERS // (4 * n * max(n, dim)))  # several arrays of it, in the cache
    space = torch.empty((2, min(chunk, len(languages)), n, n), device=device)
    for row, layer in enumerate(layers):
        try:
            of_pivot = _centred({pivot: states[pivot][layer]}, device)
            for start in range(0, len(languages), chunk):
                part = slice(start, start + chunk)
                of_languages = _centred({x: states[x][layer] for x in languages[part]}, device)
                rivals = _rivals(*of_languages, *(array[0] for array in of_pivot), space)
                rivals = rivals.cpu().numpy()
                hits[row, part] = rivals == 0
                only_rival[row, part] = np.where((rivals > 0) & (rivals < 2 * n), rivals - n, -1)
        except ValueError as error:
            raise ValueError(f"layer {layer}: {error}") from None
    return PivotScores(languages, pivot, layers, hits, only_rival)


def without_offset(states: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """States of each language less their mean over its sentences, at every layer: centred.

    All sentences of a language may lie to one side of those of another. That offset says nothing of
    which sentence is which, and in a cosine it comes before all that does. Without it the score
    asks what else is shared; it needs sentences of the language and no translations (Libovický,
    Rosa and Fraser 2020). The paper does not take it out.

    Language → ``(n_layers + 1, n, dim)``, float64. A sentence at the mean, but for rounding, has no
    direction: all such get the same one, and so tie.
    """
    moved = {}
    for language, own in states.items():
        rest = own - own.mean(axis=1, keepdims=True, dtype=np.float64)
        rest[np.linalg.norm(rest, axis=-1) <= NOTHING * np.linalg.norm(own, axis=-1)] = 1.0
        moved[language] = rest
    return moved


def _centred(
    vectors: Mapping[str, np.ndarray], device: str | torch.device
) -> tuple[torch.Tensor, torch.Tensor]:
    """Unit vectors less the mean of their language, ``(m, n, dim)``, and the means; float64."""
    rest = torch.from_numpy(np.stack(list(vectors.values()), dtype=np.float64)).to(device)
    norms = torch.linalg.vector_norm(rest, dim=2, keepdim=True)
    if not (norms.isfinite() & (norms > 0)).all():
        unit_vectors(vectors)  # says which vector has no direction
    rest *= 1 / norms
    means = rest.mean(dim=1)
    rest -= means[:, None]
    return rest, means


def _rivals(
    rest: torch.Tensor,
    means: torch.Tensor,
    pivot_rest: torch.Tensor,
    pivot_mean: torch.Tensor,
    space: torch.Tensor,
) -> torch.Tensor:
    """Who keeps each sentence from being a hit: ``(m, n)``.

    0 if nobody does, n + j if sentence j alone, 2n if several do. ``space`` is to work in,
    ``(2, m or more, n, n)``: new memory for every step would cost more than the comparisons.
    """
    m, n, dim = rest.shape
    own_offset, pivot_offset = rest @ pivot_mean, means @ pivot_rest.T  # (m, n): q·x'_i and m·p'_j
    single, pivot_single = rest.float(), pivot_rest.float()
    across, reach = space[:, :m]
    torch.mm(single.view(-1, dim), pivot_single.T, out=across.view(-1, n))
    across += own_offset.float()[:, :, None]
    across += pivot_offset.float()[:, None]
    largest = single.norm(dim=2).amax(dim=1) * pivot_single.norm(dim=1).amax()
    size = largest + own_offset.abs().amax(dim=1) + pivot_offset.abs().amax(dim=1)
    slack = (ROUNDING * torch.finfo(torch.float32).eps * size).float()[:, None]
    own = _take_own(across, torch.arange(n, device=across.device).expand(m, n))
    rivals, sure = (
        _either(_beaten(across, level, reach), _beaten(across.mT, level, reach.mT), n)
        for level in (own - slack, own + slack)
    )
    exact_slack = ROUNDING * torch.finfo(torch.float64).eps
    unsure = rivals != sure
    for language in unsure.any(dim=1).nonzero().ravel():
        at = unsure[language].nonzero().ravel()
        row = rest[language, at] @ pivot_rest.T + pivot_offset[language]
        column = pivot_rest[at] @ rest[language].T + own_offset[language]
        sums = (
            _beaten(matrix, _take_own(matrix, at) - exact_slack, torch.empty_like(matrix))
            for matrix in (row, column)
        )
        rivals[language, at] = _either(*sums, n)
    return rivals


def _take_own(across: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    """Of each row the element at the position ``at``, where -inf is left: ``(..., r)``."""
    own = across.gather(-1, at[..., None])
    across.scatter_(-1, at[..., None], -torch.inf)
    return own[..., 0]


def _beaten(across: torch.Tensor, level: torch.Tensor, reach: torch.Tensor) -> torch.Tensor:
    """Σ (n + j) over the elements j of a row that reach its level: ``(..., r)``.

    It is 0 for none, n + j < 2n for j alone, and above 2n for several, however it is rounded.
    ``across`` and ``reach``, which is overwritten, are ``(..., r, n)``.
    """
    torch.ge(across, level[..., None], out=reach)  # 1 or 0
    n = across.shape[-1]
    weights = torch.arange(n, 2 * n).to(across).expand(*across.shape[:-2], 1, n)
    return (weights @ reach.mT)[..., 0, :]  # in this order, fast for rows and columns


def _either(row: torch.Tensor, column: torch.Tensor, n: int) -> torch.Tensor:
    """The sum over a row and that over a column as one over the sentences in either, at most 2n."""
    # Unequal ones are of different sentences, so that several are counted, or one of them is 0.
    return torch.where(row == column, row, row + column).clamp(max=2 * n).int()


# --- chance ---------------------------------------------------------------------------------------


def hit_probability(n: int) -> float:
    """Chance of one hit in a random n × n matrix: 1 / (2n - 1) (appendix A.4).

    c_ii is the largest of 2n - 1 elements. This is exact where they are independent, and for
    vectors of any dimension above one that are uniform over directions.
    """
    if n < 1:
        raise ValueError(f"a matrix of {n} sentences has no hits")
    return 1 / (2 * n - 1)


def chance(n: int) -> pd.DataFrame:
    """How probable a score is by chance (appendix A.4, Figure 2).

    One row for each number of hits k from 0 to n: ``k``, ``mu`` = k / n, and P(μ ≥ k / n),

    - ``binomial``: as the paper has it, where hits are independent of each other;
    - ``matrix``: of a matrix of independent elements, exactly. Hits i and j are not independent:
      their rows and columns cross in two elements, and both are the likelier hits where these are
      small. The crosses of m given sentences hold m(2n - m) elements; the largest is a diagonal one
      with chance 1 / (2n - m), then the same holds for the other m - 1. So all of j given sentences
      are hits with chance Π 1 / (2n - m), m = 1 … j, and inclusion and exclusion give the tail.

    For large n both tend to a Poisson distribution with mean ½.
    """
    p = hit_probability(n)
    k = np.arange(n + 1)
    return pd.DataFrame(
        {
            "k": k,
            "mu": k / n,
            "binomial": stats.binom.sf(k - 1, n, p),
            "matrix": [_tail(count, n) for count in k],
        }
    )


def _tail(k: int, n: int) -> float:
    """P(k hits or more) in a matrix of independent elements."""
    if k == 0:
        return 1.0
    j = np.arange(k, min(n, k + 60) + 1)  # terms shrink faster than 1 / (j - k)!
    log_all = (  # log of C(n, j) Π 1 / (2n - m)
        special.gammaln(n + 1)
        - special.gammaln(j + 1)
        - special.gammaln(n - j + 1)
        + special.gammaln(2 * n - j)
        - special.gammaln(2 * n)
    )
    log_ways = special.gammaln(j) - special.gammaln(k) - special.gammaln(j - k + 1)  # C(j-1, k-1)
    return float(((-1.0) ** (j - k) * np.exp(log_all + log_ways)).sum())


@dataclass(frozen=True)
class ChanceSimulation:
    """Numbers of hits of random vectors, ``counts`` ``(n_draws,)``, of ``n`` sentences each."""

    n: int
    dim: int
    counts: np.ndarray

    def tails(self, level: float = LEVEL) -> pd.DataFrame:
        """As `chance`, with the simulated share ``vectors`` and its interval ``low``, ``high``."""
        table = chance(self.n)
        reached = (self.counts >= table["k"].to_numpy()[:, None]).sum(axis=1)
        n_draws = np.full(len(reached), len(self.counts))
        low, high = share_interval(reached, n_draws, level)
        return table.assign(vectors=reached / n_draws, low=low, high=high)

    def moments(self) -> pd.DataFrame:
        """Of the number of hits, ``mean`` and ``variance``, and ``p``, the chance of one hit.

        One row for each ``source``: ``binomial``, ``matrix`` (see `chance`), ``vectors``
        (simulated); ``error`` is the standard error of the simulated p.
        """
        n, p = self.n, hit_probability(self.n)
        both = n * (n - 1) * p / (2 * n - 2) if n > 1 else 0.0  # ordered pairs that are both hits
        variance = self.counts.var(ddof=1)
        return pd.DataFrame(
            {
                "source": ["binomial", "matrix", "vectors"],
                "p": [p, p, self.counts.mean() / n],
                "error": [0.0, 0.0, np.sqrt(variance / len(self.counts)) / n],
                "mean": [n * p, n * p, self.counts.mean()],
                "variance": [n * p * (1 - p), both + n * p - (n * p) ** 2, variance],
            }
        )


def chance_simulation(
    n: int,
    dim: int,
    n_draws: int,
    seed: int = 0,
    *,
    anisotropy: float = 0.0,
) -> ChanceSimulation:
    """Hits of sentences that are no translations: random vectors in both languages.

    The cosines of n with n vectors are not n² independent numbers, as appendix A.4 takes them to
    be; this shows what follows for the score.

    Parameters
    ----------
    n, dim, n_draws : int
        Sentences, width of the vectors, how often to draw both languages anew.
    anisotropy : float
        In [0, 1): the cosine of two vectors, on average (in high dimensions). All have a part in
        common, as they have in Transformers; above 0 some directions are central, vectors near them
        are hubs, and a chance hit is rarer than 1 / (2n - 1): A.4 then errs on the safe side.

    Raises
    ------
    ValueError
        Fewer than two sentences, dimensions or draws, or an anisotropy outside [0, 1).
    """
    if min(n, dim, n_draws) < 2:
        raise ValueError(
            f"n = {n}, dim = {dim}, n_draws = {n_draws}: each must be two or more (in one "
            "dimension all cosines are 1 or -1)"
        )
    if not 0 <= anisotropy < 1:
        raise ValueError(f"an anisotropy of {anisotropy} is outside [0, 1)")
    anisotropy = float(anisotropy)
    about = {"n": n, "dim": dim, "n_draws": n_draws, "seed": seed, "anisotropy": anisotropy}
    counts = work.result(CHANCE, about, n, dim, n_draws, seed, anisotropy)["counts"]
    return ChanceSimulation(n, dim, counts.astype(int))


def _chance_hits(
    n: int, dim: int, n_draws: int, seed: int, anisotropy: float
) -> dict[str, np.ndarray]:
    """Number of hits of each draw, ``counts`` ``(n_draws,)``."""
    rng = np.random.default_rng(seed)
    common = np.zeros(dim)
    common[0] = np.sqrt(dim * anisotropy / (1 - anisotropy))
    counts = np.empty(n_draws, dtype=int)
    chunk = max(1, BLOCK_NUMBERS // (n * max(n, dim)))
    for start in range(0, n_draws, chunk):
        part = counts[start : start + chunk]
        both = rng.normal(size=(2, len(part), n, dim)) + common
        both /= np.linalg.norm(both, axis=-1, keepdims=True)
        across = both[0] @ both[1].transpose(0, 2, 1)
        own = np.diagonal(across, axis1=1, axis2=2).copy()
        across[:, np.arange(n), np.arange(n)] = -np.inf
        part[:] = (own > np.maximum(across.max(axis=1), across.max(axis=2))).sum(axis=1)
    return {"counts": counts.astype(np.min_scalar_type(n))}


CHANCE = work.Kind("mexa-chance", _chance_hits, version=1)


# --- from scores to tasks -------------------------------------------------------------------------


def expected(mu: np.ndarray | pd.Series | float, english_score: float) -> np.ndarray:
    """The adjusted score, μ times the score of the task in English (section 5.2, Table 6).

    In units of the task's score, a share in [0, 1]. Raises ValueError outside of that.
    """
    for name, values in (("mu", mu), ("english_score", english_score)):
        if not np.all((np.asarray(values) >= 0) & (np.asarray(values) <= 1)):
            raise ValueError(f"{name} must lie in [0, 1] (a share, not percent), none missing")
    return np.asarray(mu) * english_score


@dataclass(frozen=True)
class Line:
    """Least squares of the task on the adjusted score, beside the ideal line.

    ``error`` and ``ideal_error`` are root mean squares of what each line leaves, in units of the
    task's score; ``correlation`` has an interval by resampling languages.
    """

    slope: float
    intercept: float
    error: float
    ideal_slope: float
    ideal_intercept: float
    ideal_error: float
    correlation: Correlation


def line(
    table: pd.DataFrame,
    x: str = "expected",
    y: str = "score",
    *,
    n_choices: int = 4,
    n_resamples: int = 1000,
    seed: int | np.random.Generator = 0,
    level: float = LEVEL,
) -> Line:
    """The line from MEXA to a task (section 5.2, Figure 1).

    With k choices a guess is right once in k times while the least MEXA score is 0, so the ideal
    line goes from (0, 1/k) to (1, 1): intercept 1/k, slope 1 - 1/k (¼ and ¾ for four choices). At
    the point of English itself, x = s, it gives s + (1 - s) / k, more than s: it is an upper end,
    met by a perfect model only.

    Parameters
    ----------
    table : DataFrame
        One row per language, of one model and task: ``language``, `x` (the adjusted score) and `y`
        (the task's score).
    n_choices : int
        Answers of a question to choose among.
    n_resamples, seed, level
        As `xlx.statistics.correlation`.

    Raises
    ------
    ValueError
        As `xlx.statistics.correlation`; a language in two rows; fewer than two choices.
    """
    if n_choices < 2:
        raise ValueError(f"a question has two choices or more, not {n_choices}")
    require(table, ("language",))
    if (twice := table["language"].duplicated()).any():
        raise ValueError(
            f"{table.loc[twice, 'language'].iloc[0]} has two rows: the line is of one model and "
            "one task (`downstream.select`)"
        )
    found = correlation(
        table, x, y, languages=("language",), n_resamples=n_resamples, seed=seed, level=level
    )
    of_x, of_y = numbers(table, (x, y)).T
    fit = stats.linregress(of_x, of_y)
    ideal_slope, ideal_intercept = 1 - 1 / n_choices, 1 / n_choices

    def error(slope: float, intercept: float) -> float:
        return float(np.sqrt(np.mean((of_y - intercept - slope * of_x) ** 2)))

    return Line(
        float(fit.slope),
        float(fit.intercept),
        error(fit.slope, fit.intercept),
        ideal_slope,
        ideal_intercept,
        error(ideal_slope, ideal_intercept),
        found,
    )


def bands(score: np.ndarray | pd.Series | Sequence[float]) -> pd.Categorical:
    """The band of each adjusted score: the colours of Table 6, from `BANDS`, in order.

    Raises ValueError for a score that is missing or outside [0, 1].
    """
    values = np.asarray(score, dtype=float).round(12)  # 0.2 * 3 is no less than 0.6
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("adjusted scores lie in [0, 1], and none may be missing")
    codes = np.digitize(values, EDGES) - 1
    return pd.Categorical.from_codes(codes, BANDS, ordered=True)
