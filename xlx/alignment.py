"""Cross-lingual alignment: what else one similarity block yields.

So far translation retrieval, to which the ABX paper compares its meaning discrimination (section
4.1, after Sundar et al. 2025): of all sentences of the other language, is the most similar one the
translation?
"""

import torch


def top1_credit(similarity: torch.Tensor, candidates: int, tolerance: torch.Tensor) -> torch.Tensor:
    """Whether the translation beats every other candidate: ``(m, n)`` in [0, 1].

    1 if it does, 0 if another is more similar; with k others as similar, 1 / (k + 1), what a draw
    among them would win. ``similarity`` is ``(m, n, n)`` with the translations on the diagonals,
    ``candidates`` the axis (1 or 2) along which a query chooses. Overwrites the diagonals with
    -inf: the best rival is what is left.
    """
    diagonal = similarity.diagonal(dim1=1, dim2=2)
    translation = diagonal.clone()
    diagonal.fill_(-torch.inf)
    margin = translation - similarity.amax(dim=candidates)
    slack = tolerance[:, None]
    credit = (margin >= -slack).double()
    if (margin.abs() <= slack).any():
        level = (translation - slack).unsqueeze(candidates)
        credit /= 1 + (similarity >= level).sum(dim=candidates)
    return credit
