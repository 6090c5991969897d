"""The ABX lens: language discrimination (LD) and meaning discrimination (MD) by triplets.

De Seyssel et al. (2025). In go the states of parallel sentences; out comes how often X is nearer to
A than to B, exactly (`exact`) or sampled as in the paper (`score_triplets`), by layer and along a
history (`courses`), with intervals; what the surface of a text scores (`surface`); probes and
cross-lingual transfer (`probing`) and what LD and MD tell of them (`selection`).
"""

from xlx.abx.discrimination import (
    PairScores,
    average_layers,
    exact,
    language_scores,
    pair_scores,
    sampled,
    score_triplets,
    triplet_distances,
)

__all__ = [
    "PairScores",
    "average_layers",
    "exact",
    "language_scores",
    "pair_scores",
    "sampled",
    "score_triplets",
    "triplet_distances",
]
