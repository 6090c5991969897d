"""MEXA of which neurons fire, in the place of states (NeuronXA: Huang et al. 2025).

A neuron of a feed-forward block fires at a token where its activation is above zero; of a gated
block that is the activation of the gate.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from xlx.experiment.scoring import Subject, cached
from xlx.measures import mexa
from xlx.results.deferred import deferred
from xlx.subjects.loading import Encoder, token_states
from xlx.subjects.pooling import pool
from xlx.subjects.states import tokenise
from xlx.text.parallel import ParallelCorpus

torch = deferred("torch")


def fired(encoder: Encoder, sentences: Sequence[str], pooling: str) -> np.ndarray:
    """How often each neuron fires in each sentence, ``(n_blocks, n, width)`` in [0, 1].

    ``pooling`` weighs the tokens, without those that the tokenizer adds: "weighted_mean" in
    NeuronXA, as in MEXA. ValueError for a model whose activations are no modules.
    """
    options = {"limit": encoder.limit(None), "return_special_tokens_mask": True}
    columns = tokenise(encoder.tokenizer, sentences, **options)[0]
    blocks = [x for name, x in encoder.model.named_modules() if name.endswith("act_fn")]
    if not blocks:
        raise ValueError(f"{encoder.name!r} has no module of activations (act_fn) to look at")
    seen, pooled = [], []
    hooks = [x.register_forward_hook(lambda *call: seen.append(call[-1] > 0)) for x in blocks]
    for ids, added in zip(columns["input_ids"], columns["special_tokens_mask"], strict=True):
        token_states(encoder, [{"input_ids": ids}])  # alone, so that nothing is padded
        counted = torch.tensor([added], device=encoder.device) == 0
        pooled.append(torch.cat([pool(block, counted, pooling) for block in seen]))
        seen.clear()
    for hook in hooks:
        hook.remove()
    return torch.stack(pooled, dim=1).cpu().numpy()


@cached(tolerance=0.02)
def neuron_scores(subject: Subject, corpus: ParallelCorpus, pivot: str) -> pd.DataFrame:
    """`mexa.PivotScores.table` of what `fired` gives; layer 0 is the first block."""
    encoder, pooling = subject.encoder(), str(subject.options["pooling"])
    neurons = {code: fired(encoder, text, pooling) for code, text in corpus.sentences.items()}
    return mexa.scores(neurons, pivot).table()
