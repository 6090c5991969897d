"""Token states to sentence vectors, at every layer.

Poolings, over the tokens t = 1 ... T of a sentence:

``mean``
    The plain mean over subword states ("the mean-pooled embedding of its subword tokens", ABX
    section 3).
``weighted_mean``
    Weights t / (1 + ... + T), so that later tokens, which have seen more, count more (Muennighoff
    2022; MEXA section 3.1). For causal models; with others, whose tokens have all seen the whole
    sentence, it is computed too, with a `PoolingWarning`.
``last``
    The state of token T.
``cls``
    The state of the first token of the sequence, for tokenizers that put a special one there.

Which tokens count is one choice for all but ``cls``: the subwords of the sentence alone, as the
paper has it, or with ``special_tokens=True`` also those that the tokenizer adds around it (<s>,
</s>, [CLS] ...). The model sees the special tokens either way.
"""

import warnings
from collections.abc import Sequence

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from xlx.models.loading import Encoder

POOLINGS = ("mean", "weighted_mean", "last", "cls")


class PoolingWarning(UserWarning):
    """A pooling whose reason does not hold for the model."""


def pool(states: torch.Tensor, counted: torch.Tensor, pooling: str) -> torch.Tensor:
    """Pool token states to sentence vectors, wherever the padding is: float32 ``(n, dim)``.

    ``states`` are ``(n, n_tokens, dim)`` of any floating type; ``counted`` ``(n, n_tokens)`` is
    True where a token counts, one at least in each row. For "cls" the first that counts is taken,
    so the special tokens must be among them.
    """
    if pooling in ("last", "cls"):
        first = counted.flip(1) if pooling == "last" else counted
        place = first.long().argmax(dim=1)
        place = counted.shape[1] - 1 - place if pooling == "last" else place
        return states[torch.arange(len(states), device=states.device), place].float()
    weights = counted.float()
    if pooling == "weighted_mean":
        weights = weights.cumsum(dim=1) * weights
    weights = weights / weights.sum(dim=1, keepdim=True)
    return torch.bmm(weights.unsqueeze(1), states.float()).squeeze(1)


def pool_layers(
    layers: Sequence[torch.Tensor], counted: Sequence[Sequence[bool]], pooling: str
) -> np.ndarray:
    """`pool` of every layer of a batch, from which tokens of each row count."""
    rows = [torch.tensor(row, dtype=torch.bool) for row in counted]
    mask = pad_sequence(rows, batch_first=True).to(layers[0].device)
    return torch.stack([pool(layer, mask, pooling) for layer in layers]).cpu().numpy()


def check_pooling(pooling: str, encoder: Encoder | None = None) -> None:
    """Refuse a pooling that there is not, or that the model has no use for (or warn)."""
    if pooling not in POOLINGS:
        raise ValueError(f"pooling {pooling!r} is not one of {', '.join(POOLINGS)}")
    if encoder is None:
        return
    if pooling == "weighted_mean" and encoder.kind != "decoder":
        warn_of_pooling(
            f"{encoder.name!r} is no causal model: each of its tokens has seen the whole sentence, "
            "so the later ones need no greater weight; 'mean' is the usual pooling"
        )
    if pooling == "cls":
        opening = encoder.tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"][0]
        problem = None if opening else "needs a tokenizer that puts a special token first"
        if opening and encoder.kind == "decoder":
            problem = "takes the first token, and that of a decoder, has seen no other"
        if problem:
            raise ValueError(f"pooling 'cls' {problem} ({encoder.name!r}): use 'mean' or 'last'")


def warn_of_pooling(message: str) -> None:
    """A `PoolingWarning` at the caller of `embed`."""
    warnings.warn(message, PoolingWarning, stacklevel=5)
