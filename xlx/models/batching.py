"""Text to the model: tokenised, cut, in batches of like length, padded on the right, on the device.

One way for all that reads text: sentences and pairs (`xlx.models.embeddings`, `words`), what is
fine-tuned and asked (`training`, `predicting`). Rows are padded on the right whatever the
tokenizer's habit, so that a token's position in a causal model never depends on the other rows of
its batch. Which rows share a batch can move a number in its last digits.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn.utils.rnn import pad_sequence

from xlx.core.settings import current
from xlx.models.loading import Encoder
from xlx.models.precision import tf32_products

TOKEN_BUDGET = 4096
"""Most tokens in a batch, padding included, where the setting ``token_budget`` names no other."""

BATCH_COST = 96
"""What a batch costs beyond its tokens, in tokens: it sets how much padding may save a batch."""

#: Model inputs of a text or pair: ``input_ids``, and for a model that is told ``token_type_ids``.
Row = Mapping[str, Sequence[int]]


def tokenise(
    tokenizer: Any, *sides: Sequence[str], limit: int | None, **columns: bool
) -> tuple[dict[str, list[list[int]]], np.ndarray]:
    """Texts, or pairs of texts, as the tokenizer writes them, cut at ``limit`` tokens.

    A pair loses tokens of its longer text first. Returns the columns (``input_ids`` and what
    ``columns`` asks for, as ``return_special_tokens_mask=True``), a row each, and which were cut.
    """
    options = {"return_attention_mask": False, "verbose": False, **columns}
    if not len(sides[0]):
        named = [name.removeprefix("return_") for name in columns if name.startswith("return_")]
        return {name: [] for name in ["input_ids", *named]}, np.empty(0, dtype=np.intp)
    whole = {name: list(rows) for name, rows in tokenizer(*map(list, sides), **options).items()}
    lengths = np.array(list(map(len, whole["input_ids"])))
    cut = np.flatnonzero(lengths > limit) if limit is not None else np.empty(0, dtype=np.intp)
    if len(cut):
        long = [[side[i] for i in cut] for side in sides]
        shorter = tokenizer(*long, truncation="longest_first", max_length=limit, **options)
        for name, rows in whole.items():
            for i, row in zip(cut, shorter[name], strict=True):
                rows[i] = row
    return whole, cut


def batches(lengths: Sequence[int], token_budget: int | None = None) -> list[np.ndarray]:
    """Split rows into batches of similar length, longest first.

    Among all ways to cut the list sorted by length into runs that keep the budget, the one with the
    least padded tokens plus `BATCH_COST` a batch (dynamic programming over the cuts). A row longer
    than the budget goes alone.
    """
    budget = token_budget or current().token_budget or TOKEN_BUDGET
    lengths = np.asarray(lengths, dtype=np.intp)
    n = len(lengths)
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order]
    best = np.zeros(n + 1)  # least cost of the first i rows
    start = np.zeros(n + 1, dtype=np.intp)  # where the last of their batches begins
    for i in range(1, n + 1):
        longest = max(int(ordered[i - 1]), 1)
        first = max(0, i - max(1, budget // longest))
        cost = best[first:i] + (np.arange(i - first, 0, -1) * longest + BATCH_COST)
        start[i] = first + int(cost.argmin())
        best[i] = cost[start[i] - first]
    split = []
    end = n
    while end > 0:
        split.append(order[start[end] : end])
        end = start[end]
    return split


def padded(rows: Sequence[Row], pad_id: int, device: torch.device) -> dict[str, torch.Tensor]:
    """Rows as tensors ``(n, longest)`` with the ``attention_mask``, filled up on the right."""
    rows = [{**row, "attention_mask": [1] * len(row["input_ids"])} for row in rows]
    return {
        name: pad_sequence(
            [torch.tensor(row[name], dtype=torch.int64) for row in rows],
            batch_first=True,
            padding_value=pad_id if name == "input_ids" else 0,
        ).to(device)
        for name in rows[0]
    }


@torch.inference_mode()
def hidden_states(encoder: Encoder, rows: Sequence[Row]) -> tuple[torch.Tensor, ...]:
    """Token states of a batch, of every layer: ``(n, longest, dim)``, on the encoder's device.

    ValueError for a model that does not give one state a token and layer.
    """
    inputs = padded(rows, encoder.pad_id, encoder.device)
    shape = (*inputs["input_ids"].shape, encoder.dim)
    if inputs["attention_mask"].all():
        # Without padding there is nothing to mask, and attention without a mask is faster.
        inputs["attention_mask"] = None
    with tf32_products(encoder.device, encoder.tf32):
        output = encoder.model(**inputs, output_hidden_states=True, return_dict=True)
    states = getattr(output, "hidden_states", None) or ()
    found = [tuple(state.shape) for state in states]
    if found != [shape] * (encoder.n_layers + 1):
        raise ValueError(
            f"{encoder.name!r} gives {len(found)} hidden states"
            f"{f', the last of shape {found[-1]}' if found else ''}, where {encoder.n_layers + 1} "
            f"of shape {shape} are due: {type(encoder.model).__name__} is no Transformer whose "
            "layers can be read one by one"
        )
    return tuple(state.to(encoder.device) for state in states)  # of a model that is spread


def distinct(items: Sequence[Any]) -> tuple[list[Any], np.ndarray, np.ndarray]:
    """Distinct items by first appearance, the number of each item's, and where each comes first."""
    unique = list(dict.fromkeys(items))
    number = {item: u for u, item in enumerate(unique)}
    inverse = np.fromiter((number[item] for item in items), dtype=np.intp, count=len(items))
    return unique, inverse, np.unique(inverse, return_index=True)[1]


def check_strings(texts: Sequence[str], what: str) -> None:
    """Refuse what is no list of strings."""
    if isinstance(texts, str):
        raise ValueError(f"{what}: a single string was given where a list of sentences is due")
    for position, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"{what}, position {position}: {text!r} is no string")


def check_vocabulary(
    encoder: Encoder, ids: Sequence[Sequence[int]], name: Callable[[int], str]
) -> None:
    """Refuse tokens that the model has no embedding of."""
    for i, row in enumerate(ids):
        if max(row, default=0) >= encoder.vocabulary_size:
            raise ValueError(
                f"{name(i)}: the tokenizer of {encoder.name!r} gives the token {max(row)}, but the "
                f"model knows {encoder.vocabulary_size} only; they do not belong together"
            )


def check_finite(
    states: np.ndarray, where: str, name: Callable[[int], str] = "position {}".format
) -> None:
    """Refuse vectors ``(n_layers + 1, n, dim)`` that hold NaN or infinity."""
    # One pass without a temporary of the same size: a sum is finite only if all its terms are.
    with np.errstate(all="ignore"):
        if np.isfinite(states.sum(dtype=np.float64)):
            return
    bad = np.argwhere(~np.isfinite(states).all(axis=2))
    if len(bad):
        layer, row = bad[0].tolist()
        raise ValueError(
            f"{where}, {name(row)}, layer {layer}: the vector holds NaN or infinity ({len(bad)} "
            "such vectors); the checkpoint may be broken, or overflow in half precision"
        )
