"""ABX scores: how often is X closer to A than to B?

Two estimators of the same number. *Sampled*: Algorithm 3 of de Seyssel et al. (2025) on triplets
drawn by `xlx.abx.triplets`, as in the paper. *Exact*: all n(n - 1) triplets of each direction, read
off the similarity block (`xlx.models.similarity`); it is the expectation of the sampled score over
the draw and needs no more than matrix products. For unit vectors E1 and E2 of two languages,

    LD, X in language 1 = share of (x, a), x ≠ a, with E1[x]·E1[a] > E1[x]·E2[a]
    MD, X in language 1 = share of (x, b), b ≠ x, with E1[x]·E2[x] > E1[x]·E2[b]

and a tie counts one half. 0.5 is chance in both tasks.

The triplets of a corpus are many, its sentences few: what would change in another corpus are the
sentences. An exact score is a U-statistic of order two over positions, so its variance follows from
each position's *influence*, the mean score of the triplets it takes part in
(`xlx.core.statistics.jackknife_error`). Averages of scores over directions, pairs and layers have
the averages of their influences; hence an interval for any average costs nothing more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
import torch

from xlx.abx.triplets import Triplets, sample_triplets
from xlx.core import checks
from xlx.models import alignment
from xlx.models.similarity import Block, Vectors, blocks, unit_vectors

#: What is scored of every pair of languages.
SCORES = ("LD", "MD", "retrieval")


# --- Algorithm 3, on sampled triplets -------------------------------------------------------------


def score_triplets(vectors: Mapping[str, np.ndarray], triplets: Triplets) -> np.ndarray:
    """Algorithm 3: for each triplet 1 if X is closer to A than to B, 0 if not, 1/2 on a tie.

    ``vectors``: language → ``(n_sentences, dim)``, those of one layer. Errors as
    `triplet_distances`, which are compared in float64.
    """
    x_to_a, x_to_b = triplet_distances(vectors, triplets)
    return np.where(x_to_a < x_to_b, 1.0, np.where(x_to_a > x_to_b, 0.0, 0.5))


def triplet_distances(
    vectors: Mapping[str, np.ndarray], triplets: Triplets
) -> tuple[np.ndarray, np.ndarray]:
    """Cosine distances d(X, A) and d(X, B) of each triplet, ``(n_triplets,)`` each, in [0, 2].

    Raises ValueError for a language without vectors, and as `similarity.unit_vectors`.
    """
    missing = [language for language in triplets.languages if language not in vectors]
    if missing:
        raise ValueError(
            f"there are no vectors of {', '.join(missing)}: embed them, or choose among "
            f"{', '.join(vectors)}"
        )
    checks.arrays({language: vectors[language] for language in triplets.languages})
    units = unit_vectors({language: vectors[language] for language in triplets.languages})
    stacked = np.stack(list(units.values()))

    def distance(language: np.ndarray, position: np.ndarray) -> np.ndarray:
        cosines = np.empty(len(triplets))
        for start in range(0, len(triplets), 20_000):  # 100,000 × 768 numbers would be 0.6 GB
            rows = slice(start, start + 20_000)
            x = stacked[triplets.x_language[rows], triplets.x[rows]]
            cosines[rows] = np.einsum("td,td->t", x, stacked[language[rows], position[rows]])
        return 1 - cosines

    return (
        distance(triplets.a_language, triplets.a),
        distance(triplets.b_language, triplets.b),
    )


def sampled(
    states: Mapping[str, np.ndarray],
    pairs: Sequence[tuple[str, str]],
    n_triplets: int,
    n_runs: int,
    seed: int,
) -> pd.DataFrame:
    """The score as the paper computes it: Algorithms 1 to 3, in independent runs.

    ``states``: language → ``(n_layers + 1, n_sentences, dim)``; ``n_triplets`` are per task, pair
    and run, the same ones at every layer. Returns ``task``, ``layer``, ``language_1``,
    ``language_2``, ``run``, ``score``, ``n_triplets``.
    """
    n_layers, n_sentences, _ = next(iter(states.values())).shape
    rows = []
    for number, pair in enumerate(pairs):
        for run in range(n_runs):
            for task in ("LD", "MD"):
                draw = np.random.default_rng([seed, number, run, SCORES.index(task)])
                triplets = sample_triplets(task, pair, n_sentences, n_triplets, draw)
                for layer in range(n_layers):
                    vectors = {code: states[code][layer] for code in pair}
                    score = score_triplets(vectors, triplets).mean()
                    rows.append((task, layer, *pair, run, score, n_triplets))
    columns = ["task", "layer", "language_1", "language_2", "run", "score", "n_triplets"]
    return pd.DataFrame(rows, columns=columns)


# --- the exact score ------------------------------------------------------------------------------


@dataclass(frozen=True)
class PairScores:
    """Exact scores of language pairs at one or several layers.

    ``scores``: task → ``(n_layers, n_pairs, 2)`` in [0, 1]; last axis: X (the query) in the first
    language, in the second. ``influence``: task → ``(n_layers, n_pairs, n_sentences)``, both
    directions averaged; empty unless asked for. Of LD and MD, the mean score of the triplets with
    this position in either place; of retrieval, the credit of this query.
    """

    pairs: tuple[tuple[str, str], ...]
    layers: tuple[int, ...]
    n_sentences: int
    scores: dict[str, np.ndarray]
    influence: dict[str, np.ndarray]

    def table(self) -> pd.DataFrame:
        """Tidy: one row per task, layer, pair and direction.

        ``task``, ``layer``, ``language_1``, ``language_2`` (the pair), ``x_language`` (of X, or the
        query), ``score`` and ``n_triplets`` (for retrieval: queries).
        """
        pairs, n = np.array(self.pairs), self.n_sentences
        layer, pair, side = np.indices((len(self.layers), len(pairs), 2)).reshape(3, -1)
        columns = {
            "layer": np.array(self.layers)[layer],
            "language_1": pairs[pair, 0],
            "language_2": pairs[pair, 1],
            "x_language": pairs[pair, side],
        }
        tables = [
            pd.DataFrame({"task": task, **columns, "score": scores.ravel()}).assign(
                n_triplets=n if task == "retrieval" else n * (n - 1)
            )
            for task, scores in self.scores.items()
        ]
        return pd.concat(tables, ignore_index=True)


def exact(
    states: Vectors | Mapping[str, np.ndarray],
    *,
    layers: Sequence[int] | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
    influence: bool = False,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
) -> PairScores:
    """LD, MD and retrieval of all language pairs from all triplets.

    ``states``: language → ``(n_layers + 1, n_sentences, dim)``, or ``(n_sentences, dim)`` for a
    single layer (dense or sparse); sentences aligned across languages. Without ``layers`` all, the
    embedding layer (0) included; without ``pairs`` every unordered one. ``influence``: also return
    what intervals need; about half as fast. float32 agrees with float64 to 1e-4 in the score.

    Raises ValueError as `similarity.unit_vectors`, with the layer; for pairs or layers that are not
    there, or none; for arrays that differ in axes or layers, or hold no real numbers.
    """
    if len(states) < 2:
        raise ValueError("two languages or more are needed: a score compares languages")
    checks.arrays(states)
    one_layer = next(iter(states.values())).ndim == 2
    layers = tuple(checks.layers(layers, 1 if one_layer else len(next(iter(states.values())))))
    slices = [
        {code: array if one_layer else array[layer] for code, array in states.items()}
        for layer in layers
    ]
    pairs = list(combinations(states, 2)) if pairs is None else pairs
    column = {pair: index for index, pair in enumerate(checks.language_pairs(pairs))}
    n = next(iter(slices[0].values())).shape[0]
    shape = len(layers), len(column)
    scores = {task: np.full((*shape, 2), np.nan) for task in SCORES}
    influences = {task: np.full((*shape, n), np.nan, np.float32) for task in SCORES if influence}
    for row, (layer, vectors) in enumerate(zip(layers, slices, strict=True)):
        try:
            for block in blocks(vectors, list(column), device=device, dtype=dtype):
                at = [column[block.first, second] for second in block.second]
                for task, (score, influenced) in score_block(block, influence).items():
                    scores[task][row, at] = score
                    if influence:
                        influences[task][row, at] = influenced
        except ValueError as error:
            raise ValueError(f"layer {layer}: {error}") from None
    return PairScores(tuple(column), layers, n, scores, influences)


def score_block(
    block: Block, influence: bool = False
) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    """Task → scores ``(m, 2)`` and, if asked for, influence ``(m, n)`` of one block."""
    n = block.across.shape[-1]
    slack = block.tolerance[:, None, None]
    # Rows: sentences of the second language; columns: of the first. The similarity of each to the
    # items of the second language (whose offset is added), and to those of the first.
    to_second = block.across + block.offset_second[:, :, None]
    to_first = block.across + block.offset_first
    translation_in_second = to_second.diagonal(dim1=1, dim2=2).clone()[:, None, :]
    translation_in_first = to_first.diagonal(dim1=1, dim2=2).clone()[:, :, None]
    retrieved = (
        alignment.top1_credit(to_second, 1, block.tolerance),
        alignment.top1_credit(to_first, 2, block.tolerance),
    )
    # From here the diagonals are -inf, so each comparison below also counts its n diagonal cells.
    won: dict[str, list] = {"LD": [0, 0], "MD": [0, 0]}  # by direction
    # A difference within the tolerance passes ≥ and fails >, and so counts one half. The two bounds
    # are the same matrix, moved by the slack; moving it in place saves making it anew.
    to_second -= slack
    to_first -= slack
    for compare in (torch.ge, torch.gt):
        for direction, to_own, to_translation, to_other in (
            (0, block.within_first, translation_in_second, to_second),
            (1, block.within_second, translation_in_first, to_first),
        ):
            won["LD"][direction] += _won(compare(to_own, to_other), influence)
            won["MD"][direction] += _won(compare(to_translation, to_other), influence)
        if compare is torch.ge:
            to_second += 2 * slack
            to_first += 2 * slack
    scores: dict[str, tuple[np.ndarray, np.ndarray | None]] = {}
    for task, counts in won.items():
        totals = [count.sum(axis=1) // 2 for count in counts] if influence else counts
        score = np.stack(totals, axis=1) / (2 * n * (n - 1))
        mean = sum(count / (4 * (n - 1)) for count in counts) / 2 if influence else None
        scores[task] = score, mean
    credits = [credit.cpu().numpy() for credit in retrieved]
    scores["retrieval"] = (
        np.stack([credit.mean(axis=1) for credit in credits], axis=1),
        sum(credits) / 2 if influence else None,
    )
    return scores


def _won(wins: torch.Tensor, by_position: bool) -> np.ndarray:
    """How many of ``(m, n, n)`` comparisons off the (true) diagonal are won: ``(m,)``, or
    ``(m, n)`` by the positions that they hold."""
    if by_position:
        both = wins.sum(dim=1, dtype=torch.int32) + wins.sum(dim=2, dtype=torch.int32)
        return both.cpu().numpy() - 2
    if wins.device.type == "cpu":  # numpy counts a mask several times faster than torch
        return np.array([np.count_nonzero(mask) for mask in wins.numpy()]) - wins.shape[-1]
    return torch.count_nonzero(wins, dim=(1, 2)).cpu().numpy() - wins.shape[-1]


def kernel(vectors: Mapping[str, np.ndarray], pair: tuple[str, str], task: str) -> np.ndarray:
    """The score of every triplet of a pair, ``(2, n, n)``, NaN on the diagonals; in float64.

    ``[d, x, o]``: direction d (X in the first, in the second language), position of X, and the
    other position: of A and B in LD, of B in MD. Its mean is the exact score; slow, for the
    bootstrap.
    """
    first, second = (
        vectors[code] / np.linalg.norm(vectors[code].astype(np.float64), axis=1, keepdims=True)
        for code in pair
    )
    scores = []
    for own, other in ((first, second), (second, first)):
        to_own, to_other = own @ own.T, own @ other.T
        to_a, to_b = (to_own, to_other) if task == "LD" else (np.diag(to_other)[:, None], to_other)
        difference = np.where(np.isclose(to_a, to_b, rtol=0, atol=1e-14), 0, to_a - to_b)
        score = (1 + np.sign(difference)) / 2
        np.fill_diagonal(score, np.nan)
        scores.append(score)
    return np.stack(scores)


# --- from directions to pairs, languages and averages ---------------------------------------------


def pair_scores(table: pd.DataFrame) -> pd.DataFrame:
    """Mean of both directions: one row per task, layer (checkpoint ...) and unordered pair."""
    return _mean_over(table, "x_language")


def language_scores(table: pd.DataFrame) -> pd.DataFrame:
    """A language's global score: the mean over its pairs with all others (section 4.1)."""
    pairs = pair_scores(table) if "x_language" in table else table
    sides = [
        pairs.rename(columns={side: "language"}).drop(columns=other)
        for side, other in (("language_1", "language_2"), ("language_2", "language_1"))
    ]
    return _mean_over(pd.concat(sides, ignore_index=True))


def average_layers(table: pd.DataFrame, embedding_layer: bool = True) -> pd.DataFrame:
    """Mean over layers: "averaged across all layers" (section 4.1).

    Whether "all layers" includes the embedding layer (0) the paper does not say. Here it counts, as
    the first of the states a model offers, unless `embedding_layer` is False.
    """
    return _mean_over(table if embedding_layer else table[table["layer"] > 0], "layer")


def _mean_over(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    by = [name for name in table.columns if name not in (*columns, "score", "n_triplets")]
    mean = table.groupby(by, sort=False, observed=True).agg(
        score=("score", "mean"), n_triplets=("n_triplets", "sum")
    )
    return mean.reset_index()
