"""A model with the weights that it would have begun with."""

from pathlib import Path

import pytest
import torch

from xlx.results import settings
from xlx.subjects import identity, loading
from xlx.subjects.loading import untrained_folder


@pytest.mark.parametrize("architecture", ["xlm-roberta", "llama", "t5"])
def test_it_is_the_model_but_for_the_weights(architecture: str, folders: dict[str, Path]) -> None:
    made = loading.load(untrained_folder(folders[architecture], 1))
    trained = loading.load(folders[architecture])
    assert made.kind == trained.kind
    assert (made.n_layers, made.dim) == (trained.n_layers, trained.dim)
    words = made.tokenizer("The weather")["input_ids"]
    assert words == trained.tokenizer("The weather")["input_ids"]
    both = zip(made.model.parameters(), trained.model.parameters(), strict=True)
    assert any(not torch.equal(one, other) for one, other in both)


def test_the_seed_decides_the_weights(folders: dict[str, Path], tmp_path: Path) -> None:
    def content(seed: int, cache: str) -> str:
        with settings.settings(cache=tmp_path / cache):
            return identity.fingerprint(untrained_folder(folders["bert"], seed))

    before = torch.random.get_rng_state()
    assert content(1, "a") == content(1, "b") != content(2, "a")
    assert torch.equal(torch.random.get_rng_state(), before)
