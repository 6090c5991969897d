"""What chance gives of MEXA: by the paper's formula, exactly, and of random vectors (A.4)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special, stats

from xlx.core import work
from xlx.core.statistics import share_interval
from xlx.models.similarity import BLOCK_NUMBERS


def hit_probability(n: int) -> float:
    """Chance of one hit in a random n × n matrix: 1 / (2n - 1) (appendix A.4).

    c_ii is the largest of 2n - 1 elements. This is exact where they are independent, and for
    vectors of any dimension above one that are uniform over directions.
    """
    if n < 1:
        raise ValueError(f"a matrix of {n} sentences has no hits")
    return 1 / (2 * n - 1)


def chance_table(n: int) -> pd.DataFrame:
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
    k = np.arange(n + 1)
    binomial = stats.binom.sf(k - 1, n, hit_probability(n))
    matrix = [_tail(count, n) for count in k]
    return pd.DataFrame({"k": k, "mu": k / n, "binomial": binomial, "matrix": matrix})


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
    counts: np.ndarray

    def tails(self) -> pd.DataFrame:
        """As `chance_table`, and the simulated share ``vectors`` with its ``low`` and ``high``."""
        table = chance_table(self.n)
        reached = (self.counts >= table["k"].to_numpy()[:, None]).sum(axis=1)
        n_draws = np.full(len(reached), len(self.counts))
        low, high = share_interval(reached, n_draws)
        return table.assign(vectors=reached / n_draws, low=low, high=high)

    def moments(self) -> pd.DataFrame:
        """Of the number of hits, ``mean`` and ``variance``, and ``p``, the chance of one hit.

        One row for each ``source``: ``binomial``, ``matrix`` (see `chance_table`), ``vectors``
        (simulated); ``error`` is the standard error of the simulated p.
        """
        n, p = self.n, hit_probability(self.n)
        both = n * (n - 1) * p / (2 * n - 2)  # ordered pairs that are both hits
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
    n: int, dim: int, n_draws: int, seed: int = 0, *, anisotropy: float = 0.0
) -> ChanceSimulation:
    """Hits of n sentences that are no translations: random vectors in both languages.

    The cosines of n with n vectors are not n² independent numbers, as appendix A.4 takes them to
    be; this shows what follows for the score.

    ``anisotropy``, in [0, 1), is the cosine of two vectors, on average (in high dimensions). All
    have a part in common, as in Transformers; above 0 some directions are central, vectors near
    them are hubs, and a chance hit is rarer than 1 / (2n - 1): A.4 then errs on the safe side.

    ValueError for fewer than two sentences, dimensions or draws, or another anisotropy.
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
    counts = work.result(CHANCE_HITS, about, n, dim, n_draws, seed, anisotropy)["counts"]
    return ChanceSimulation(n, counts.astype(int))


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
        diagonal = np.diagonal(across, axis1=1, axis2=2).copy()
        across[:, np.arange(n), np.arange(n)] = -np.inf
        part[:] = (diagonal > np.maximum(across.max(axis=1), across.max(axis=2))).sum(axis=1)
    return {"counts": counts.astype(np.min_scalar_type(n))}


CHANCE_HITS = work.Kind("mexa-chance", _chance_hits, version=1)
