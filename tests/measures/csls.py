"""A measure that a newcomer adds: CSLS retrieval (Conneau et al. 2018, section 2.3)."""

import numpy as np
import torch

from xlx.measures.abx import Groups, Measure
from xlx.measures.alignment import Block

#: Nearest neighbours of the mean similarity.
K = 4


def csls(block: Block) -> torch.Tensor:
    """2 cos(x, y) - r(x) - r(y), but for what is the same for all candidates of a query."""
    near = block.cosine.topk(min(K, block.cosine.shape[-1]), dim=3 - block.axis).values
    return 2 * block.cosine - near.mean(dim=3 - block.axis, keepdim=True)


def wins(block: Block, groups: Groups) -> np.ndarray:
    """Queries whose translation has the highest CSLS."""
    return groups.over_positions(block.credit(csls(block)))


REGISTERED = (Measure("CSLS", wins, of_queries=True),)
