"""A measure that a newcomer adds: CSLS retrieval (Conneau et al. 2018, section 2.3)."""

from collections.abc import Collection

import torch

from xlx.measures.abx import Comparisons, Measure, PositionGroups, Side

#: Nearest neighbours of the mean similarity.
K = 4


def csls(side: Side) -> torch.Tensor:
    """2 cos(x, y) - r(x) - r(y), but for what is the same for all candidates of a query."""
    near = side.cosine.topk(min(K, side.cosine.shape[-1]), dim=3 - side.axis).values
    return 2 * side.cosine - near.mean(dim=3 - side.axis, keepdim=True)


def wins(side: Side, groupings: Collection[PositionGroups]) -> Comparisons:
    """Queries whose translation has the highest CSLS."""
    return Comparisons.of_queries(side.credit(csls(side)), groupings)


REGISTERED = (Measure("CSLS", wins, of_queries=True),)
