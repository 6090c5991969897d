"""Sentence pairs to vectors: what probes for inference are fitted on.

A pair is read in one of two forms:

``joint``
    both sentences at once, as the tokenizer writes a pair, then pooled over the subwords of both,
    the special tokens around and between them left out (but for pooling "cls");
``concatenated``
    each read alone, to u and v, then [u; v; |u - v|; u * v] (Conneau et al. 2017, Figure 1).

All layers come at once, float32; equal pairs have equal vectors, bit for bit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from xlx.core import checks, progress
from xlx.models.batching import (
    Row,
    batches,
    check_finite,
    check_strings,
    check_vocabulary,
    distinct,
    hidden_states,
    tokenise,
)
from xlx.models.embeddings import PoolPlan, embed_sentences, states_about
from xlx.models.loading import Encoder, Name
from xlx.models.pooling import pool_layers

FORMS = ("joint", "concatenated")


@dataclass(frozen=True)
class PairStates:
    """Hidden states of sentence pairs, in their order.

    They are ``(n_layers + 1, n_pairs, dim)``, float32; of concatenated pairs ``4 * dim`` wide.
    ``n_cut`` pairs were longer than the maximum length and lost the end of a sentence.
    """

    states: np.ndarray
    n_cut: int


def embed_pairs(
    encoder: Encoder,
    first: Sequence[str],
    second: Sequence[str],
    *,
    form: str = "joint",
    pooling: str = "mean",
    max_length: int | None = None,
) -> PairStates:
    """Hidden states of all layers for pairs of sentences (premise and hypothesis).

    Parameters
    ----------
    encoder : Encoder
        From `xlx.models.load`.
    first, second : sequence of str
        Equally many. Equal pairs (concatenated: equal sentences) are computed once.
    form : {"joint", "concatenated"}
        See the module's text.
    pooling : {"mean", "weighted_mean", "last", "cls"}
        As in `xlx.models.pooling`; of a joint pair the tokens of both sentences are pooled as one.
    max_length : int, optional
        Tokens a joint pair, or one of the concatenated sentences, may have, special ones included.
        A joint pair loses tokens of its longer sentence first. Default: what the model takes.

    ValueError if the numbers of sentences differ, an option does not fit the model, a sentence has
    no token, or a state is not a finite number.
    """
    check_strings(first, "first")
    check_strings(second, "second")
    checks.one_of(form, FORMS, "form")
    if len(first) != len(second):
        raise ValueError(
            f"there are {len(first)} first and {len(second)} second sentences: a pair has one of "
            "each"
        )
    plan = PoolPlan.of(encoder, (pooling,), max_length=max_length, pair=form == "joint")
    embed = {"joint": _joint, "concatenated": _concatenated}[form]
    with progress.bar(what="embedding pairs", total=2 * len(first), unit="sentences") as bar:
        return embed(plan, first, second, bar.update)


def pairs_about(
    name: Name,
    text_hash: str,
    *,
    form: str = "joint",
    pooling: str = "mean",
    max_length: int | None = None,
) -> dict[str, object]:
    """What decides the vectors of `embed_pairs`, without loading the model.

    As `embeddings.states_about`; ``text_hash`` is of both sides.
    """
    checks.one_of(form, FORMS, "form")
    about = states_about(name, pooling=pooling, max_length=max_length)
    return about | {"text": text_hash, "form": form}


def _joint(
    plan: PoolPlan,
    first: Sequence[str],
    second: Sequence[str],
    advance: Callable[[int], object],
) -> PairStates:
    encoder = plan.encoder
    (pooling,) = plan.poolings
    unique, inverse, position = distinct(list(zip(first, second, strict=True)))
    sides = list(zip(*unique, strict=True)) or [(), ()]
    told = _has_token_types(encoder)
    columns, cut = tokenise(
        encoder.tokenizer, *sides, limit=plan.limit, return_token_type_ids=told,
        return_special_tokens_mask=True,
    )  # fmt: skip
    ids, special = columns["input_ids"], columns["special_tokens_mask"]

    def name(u: int) -> str:
        return f"pair {position[u]}"

    def row(u: int) -> Row:
        types = {"token_type_ids": columns["token_type_ids"][u]} if told else {}
        return {"input_ids": ids[u]} | types

    check_vocabulary(encoder, ids, name)
    for u, mask in enumerate(special):
        if all(mask) or not (unique[u][0].strip() and unique[u][1].strip()):
            raise ValueError(f"{name(u)}: a sentence has no token; drop the pair")
    pooled = np.empty((encoder.n_layers + 1, len(unique), encoder.dim), dtype=np.float32)
    occurrences = np.bincount(inverse, minlength=len(unique))
    for batch in batches(list(map(len, ids))):
        layers = hidden_states(encoder, [row(u) for u in batch])
        # The special tokens count for "cls" alone, which is one of them.
        counted = [[pooling == "cls" or not added for added in special[u]] for u in batch]
        pooled[:, batch] = pool_layers(layers, counted, pooling)
        advance(2 * int(occurrences[batch].sum()))
    check_finite(pooled, f"{encoder.name!r}", name)
    states = pooled if len(unique) == len(inverse) else pooled[:, inverse]
    return PairStates(states, int(occurrences[cut].sum()))


def _has_token_types(encoder: Encoder) -> bool:
    """Whether the model is told which sentence of a pair a token is of, as BERT is."""
    in_model = getattr(encoder.model.config, "type_vocab_size", 0) or 0
    return in_model > 1 and "token_type_ids" in encoder.tokenizer.model_input_names


def _concatenated(
    plan: PoolPlan,
    first: Sequence[str],
    second: Sequence[str],
    advance: Callable[[int], object],
) -> PairStates:
    n = len(first)
    sentences = [*first, *second]
    # At once, so that a sentence that stands on both sides has one vector, and u - v is zero.
    (both,) = embed_sentences(plan, sentences, "first and second sentences end to end, ", advance)
    u, v = both.states[:, :n], both.states[:, n:]
    is_cut = np.zeros(2 * n, dtype=bool)
    is_cut[tokenise(plan.encoder.tokenizer, sentences, limit=plan.limit)[1]] = True
    n_cut = int((is_cut[:n] | is_cut[n:]).sum())
    return PairStates(np.concatenate([u, v, np.abs(u - v), u * v], axis=2), n_cut)
