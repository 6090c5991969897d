"""Sentence pairs to vectors: what probes for inference are fitted on.

A pair is read in one of two forms:

``joint``
    both sentences at once, as the tokenizer writes a pair; the mean over the subwords of both;
``concatenated``
    each read alone, to u and v (the mean over its subwords), then [u; v; |u - v|; u * v] (Conneau
    et al. 2017, Figure 1).
"""

from collections.abc import Sequence

import numpy as np

from xlx.core import checks, progress
from xlx.models.batching import check_strings, tokenise
from xlx.models.embeddings import SentenceStates, check_poolings, pooled_states
from xlx.models.loading import Encoder

FORMS = ("joint", "concatenated")


def embed_pairs(
    encoder: Encoder,
    first: Sequence[str],
    second: Sequence[str],
    *,
    form: str = "joint",
    max_length: int | None = None,
) -> SentenceStates:
    """Hidden states of all layers for pairs of sentences (premise and hypothesis), in their order.

    Of concatenated pairs they are ``4 * dim`` wide. Equal pairs have equal vectors, bit for bit.
    ``max_length`` tokens a joint pair, or one of the concatenated sentences, may have, special ones
    included (default: what the model takes); a joint pair loses tokens of its longer sentence
    first. ValueError if the numbers of sentences differ, an option does not fit the model, a
    sentence has no token, or a state is not a finite number.
    """
    check_strings(first, "first")
    check_strings(second, "second")
    checks.one_of(form, FORMS, "form")
    n = len(first)
    if n != len(second):
        raise ValueError(
            f"there are {n} first and {len(second)} second sentences: a pair has one of each"
        )
    for i, pair in enumerate(zip(first, second, strict=True)):
        if not all(map(str.strip, pair)):
            raise ValueError(f"pair {i}: a sentence has no token; drop the pair")
    check_poolings(encoder, ["mean"])
    ways, limit = [("mean", False)], encoder.limit(max_length, pair=form == "joint")
    with progress.bar(what="embedding pairs", total=2 * n, unit="sentences") as bar:
        if form == "joint":
            return pooled_states(encoder, ways, limit, [first, second], "pair ", bar.update)[0]
        # At once, so that a sentence that stands on both sides has one vector, and u - v is zero.
        sentences, where = [*first, *second], "first and second sentences end to end, position "
        (both,) = pooled_states(encoder, ways, limit, [sentences], where, bar.update)
    u, v = both.states[:, :n], both.states[:, n:]
    is_cut = np.zeros(2 * n, dtype=bool)
    is_cut[tokenise(encoder.tokenizer, sentences, limit=limit)[1]] = True
    states = np.concatenate([u, v, np.abs(u - v), u * v], axis=2)
    return SentenceStates(states, int((is_cut[:n] | is_cut[n:]).sum()), both.unknown)
