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
from dataclasses import dataclass, field
from itertools import chain, combinations

import numpy as np
import pandas as pd
import torch

from xlx.abx import comparisons
from xlx.abx.comparisons import Distractors, PositionGroups
from xlx.abx.triplets import Triplets, sample_triplets
from xlx.core import checks
from xlx.models.similarity import Vectors, blocks, unit_vectors

#: What is scored of every pair of languages.
SCORES = ("LD", "MD", "retrieval")

#: Name → language of B → boolean ``(n, n)``: ``[a, b]``, whether b may be B where A is at a.
Masks = Mapping[str, Mapping[str, np.ndarray]]


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
    this position in either place; of retrieval, the credit of this query. ``left_out``: grouping →
    task → ``(n_layers, n_pairs, n_groups)``, the score without each group, both directions
    averaged. ``masked``: task of a mask → its number of triplets, ``(n_pairs, 2)``.
    """

    pairs: tuple[tuple[str, str], ...]
    layers: tuple[int, ...]
    n_sentences: int
    scores: dict[str, np.ndarray]
    influence: dict[str, np.ndarray]
    left_out: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)
    masked: dict[str, np.ndarray] = field(default_factory=dict)

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
        plain = {"LD": n * (n - 1), "MD": n * (n - 1), "retrieval": n}
        tables = [
            pd.DataFrame({"task": task, **columns, "score": scores.ravel()}).assign(
                n_triplets=plain[task] if task in plain else self.masked[task][pair, side]
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
    masks: Masks | None = None,
    groups: Mapping[str, Sequence[object]] | None = None,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
) -> PairScores:
    """LD, MD and retrieval of all language pairs from all triplets.

    ``states``: language → ``(n_layers + 1, n_sentences, dim)``, or ``(n_sentences, dim)`` for a
    single layer (dense or sparse); sentences aligned across languages. Without ``layers`` all, the
    embedding layer (0) included; without ``pairs`` every unordered one. float32 agrees with float64
    to 1e-4 in the score.

    ``masks`` (`xlx.abx.distractors`): name → language of B → boolean ``(n_sentences,
    n_sentences)``, ``[a, b]``: whether b may be B where A is at a. Each adds "MD, name": the share
    of those triplets alone. ``influence``, ``groups`` (grouping → the group of each position): also
    return what intervals need, for groups exactly (`statistics.left_out_error`).

    Raises ValueError as `similarity.unit_vectors`, with the layer; for pairs or layers that are not
    there, or none; for arrays that differ in axes or layers, or hold no real numbers; for groups or
    masks of another size, and a mask that leaves a language no B.
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
    groupings, distractors = _restrictions(groups or {}, masks or {}, n, {*chain(*column)})
    unmasked = comparisons.unmasked(n, groupings.values())
    tasks = [*SCORES, *(mask.task for mask in distractors)]
    shape = len(layers), len(column)
    scores = {task: np.full((*shape, 2), np.nan) for task in tasks}
    influences = {task: np.full((*shape, n), np.nan, np.float32) for task in SCORES if influence}
    left_out = {
        name: {task: np.full((*shape, of.n), np.nan) for task in tasks}
        for name, of in groupings.items()
    }
    for row, (layer, vectors) in enumerate(zip(layers, slices, strict=True)):
        try:
            for block in blocks(vectors, list(column), device=device, dtype=dtype):
                at = [column[block.first, second] for second in block.second]
                won = comparisons.won(block, groupings.values(), distractors)
                made = unmasked | {
                    mask.task: (mask.made(block.second), mask.made([block.first]))
                    for mask in distractors
                }
                for task in tasks:
                    sides = list(zip(won[task], made[task], strict=True))
                    scores[task][row, at] = np.stack([w.total / m.total for w, m in sides], axis=1)
                    for name, of in groupings.items():
                        parts = [w.without(of) / m.without(of) for w, m in sides]
                        left_out[name][task][row, at] = sum(parts) / 2
                for task, kept in influences.items():
                    held = 1 if task == "retrieval" else 2 * (n - 1)
                    kept[row, at] = sum(side.at for side in won[task]) / (2 * held)
        except ValueError as error:
            raise ValueError(f"layer {layer}: {error}") from None
    masked = {
        mask.task: np.array([[mask.n_triplets(b), mask.n_triplets(a)] for a, b in column])
        for mask in distractors
    }
    return PairScores(tuple(column), layers, n, scores, influences, left_out, masked)


def _restrictions(
    groups: Mapping[str, Sequence[object]], masks: Masks, n: int, languages: set[str]
) -> tuple[dict[str, PositionGroups], list[Distractors]]:
    """Groupings of the positions, and masks on B, of the right size."""
    for name, of_position in groups.items():
        if len(of_position) != n:
            raise ValueError(
                f"{name} name a group for {len(of_position)} positions, and there are {n}"
            )
    for name, by_language in masks.items():
        for language in languages:
            shape = np.shape(by_language.get(language, ()))
            if shape != (n, n):
                raise ValueError(
                    f"the mask {name!r} has the shape {shape} in {language}: {(n, n)} is due"
                )
    groupings = {name: PositionGroups(of_position) for name, of_position in groups.items()}
    return groupings, [
        Distractors(f"MD, {name}", by_language, groupings.values())
        for name, by_language in masks.items()
    ]


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
    the first of the states a model offers, unless `embedding_layer` is False. ValueError if then
    none is left.
    """
    kept = table if embedding_layer else table[table["layer"] > 0]
    if kept.empty and len(table):
        raise ValueError("there is no layer but that of the embeddings: let it count")
    return _mean_over(kept, "layer")


def _mean_over(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    by = [name for name in table.columns if name not in (*columns, "score", "n_triplets")]
    mean = table.groupby(by, sort=False, observed=True).agg(
        score=("score", "mean"), n_triplets=("n_triplets", "sum")
    )
    return mean.reset_index()
