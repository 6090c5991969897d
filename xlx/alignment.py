"""Cross-lingual alignment: what else one similarity block yields.

So far translation retrieval, to which the ABX paper compares its meaning discrimination (section
4.1, after Sundar et al. 2025): of all sentences of the other language, is the most similar one the
translation?
"""

import torch


def top1_credit(similarity: torch.Tensor, candidates: int, tolerance: torch.Tensor) -> torch.Tensor:
    """Whether the translation beats every other candidate: ``(m, n)`` of 1, 0, or 1/2 on a tie.

    ``similarity`` is ``(m, n, n)`` with the translations on the diagonals, ``candidates`` the axis
    (1 or 2) along which a query chooses. Overwrites the diagonals with -inf: the best rival is what
    is left.
    """
    diagonal = similarity.diagonal(dim1=1, dim2=2)
    translation = diagonal.clone()
    diagonal.fill_(-torch.inf)
    margin = translation - similarity.amax(dim=candidates)
    slack = tolerance[:, None]
    return ((margin > slack).double() + (margin >= -slack).double()) / 2
