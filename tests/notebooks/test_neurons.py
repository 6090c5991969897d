"""Neurons that fire, by a loop over tokens."""

from pathlib import Path

import numpy as np
import pytest
import torch

from shared.neurons import fired
from tests import tiny
from xlx.subjects.loading import load


@pytest.mark.parametrize("kind", ["llama", "gemma3_text", "bert"])
def test_a_literal_loop_over_tokens(kind: str, tmp_path: Path) -> None:
    model, seen = load(tiny.save(tmp_path / kind, kind)), []
    vectors = fired(model, tiny.SENTENCES, "weighted_mean")
    block = next(x for name, x in model.model.named_modules() if name.endswith("act_fn"))
    block.register_forward_pre_hook(lambda _, given: seen.append(given[0][0]))
    for i, sentence in enumerate(tiny.SENTENCES):
        row = model.tokenizer(sentence, return_special_tokens_mask=True)
        model.model(input_ids=torch.tensor([row["input_ids"]]))
        both = zip(seen[-1].detach().numpy(), row["special_tokens_mask"], strict=True)
        tokens = [token > 0 for token, added in both if not added]
        share = sum(t * token for t, token in enumerate(tokens, 1))
        share = share / sum(range(1, len(tokens) + 1))
        np.testing.assert_allclose(vectors[0, i], share, atol=1e-6)


def test_a_model_without_modules_of_activations_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no module of activations"):
        fired(load(tiny.save(tmp_path / "xlm", "xlm")), tiny.SENTENCES, "mean")
