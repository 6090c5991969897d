"""Every architecture of transformers that can be built tiny: as a literal pass, or one sentence.

A tenth of them, drawn by AUDIT_SEED; ARCHITECTURES=all takes all, ARCHITECTURES=fnet,xlnet these.
"""

import os
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import MODEL_MAPPING, AutoModel, AutoTokenizer
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from tests import tiny
from tests.subjects.conftest import assert_one_sentence
from xlx.subjects import loading, states

TEXT = ("The weather is fine today.", "Yes", "Das Wetter ist heute schön, und morgen?", "Il fait")
ALL = sorted(kind for kind, config in CONFIG_MAPPING.items() if config in MODEL_MAPPING)
CHOSEN = os.environ.get("ARCHITECTURES", "")
DRAWN = random.Random(os.environ.get("AUDIT_SEED", "1")).sample(ALL, len(ALL) // 10)
KINDS = ALL if CHOSEN == "all" else CHOSEN.split(",") if CHOSEN else sorted(DRAWN)


def literal(folder: Path) -> tuple[np.ndarray, bool | None] | None:
    """Means ``(n_layers + 1, n, dim)`` of sentences read alone; whether a token sees later ones.

    None of the latter where rounding may have moved it; None for a model that reads no text.
    """
    words, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    model = model.get_encoder() if model.config.is_encoder_decoder else model
    model.config.use_cache = False

    @torch.no_grad()
    def layers(ids: list[int]) -> torch.Tensor:
        given = {"input_ids": torch.tensor([ids]), "output_hidden_states": True}
        return torch.stack(model(**given).hidden_states)[:, 0].double()

    try:
        rows = []
        for sentence in TEXT:
            read = words(sentence, return_special_tokens_mask=True)
            counted = torch.tensor(read["special_tokens_mask"]) == 0
            rows.append(layers(read["input_ids"])[:, counted].mean(dim=1))
        first, other = (layers([5, 6, 7, last])[:, :3] for last in (8, 9))
    except Exception:  # whatever a class raises that wants pictures or sound
        return None
    change = float((first - other).abs().max())
    sees = None if 0 < change < 1e-5 else change > 0
    return torch.stack(rows, dim=1).numpy(), sees


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_an_architecture_is_read_as_it_is_or_refused(kind: str, tmp_path: Path) -> None:
    with torch.random.fork_rng():
        missing = tiny.smallest(tmp_path, kind)
    if missing:
        pytest.skip(missing)
    try:
        encoder = loading.load(tmp_path, device="cpu")
        read = states.embed(encoder, TEXT).states
    except ValueError:
        with pytest.raises(ValueError, match=r".") as error:
            states.embed(loading.load(tmp_path, device="cpu"), TEXT)
        assert_one_sentence(error)
        return
    expected = literal(tmp_path)
    assert expected is not None, f"{kind} gives no states where it is asked alone"
    means, sees = expected
    assert np.abs(read - means).max() <= 1e-5 * max(1, np.abs(means).max())
    if encoder.kind != "encoder-decoder" and sees is not None:
        assert encoder.kind == ("encoder" if sees else "decoder")
