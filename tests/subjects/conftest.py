"""Tiny models of every architecture, made once for all tests of the room; nobody changes them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from tests import tiny
from xlx.subjects import loading, states

SENTENCE = tiny.SENTENCES[1]


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("models")
    return {name: tiny.save(root / name, name) for name in tiny.KINDS}


@pytest.fixture(scope="session")
def encoders(folders: dict[str, Path]) -> dict[str, loading.Encoder]:
    return {name: loading.load(folder, device="cpu") for name, folder in folders.items()}


def assert_close(found: np.ndarray, expected: np.ndarray, tolerance: float = 2e-5) -> None:
    """Equal in relation to the size of the vectors."""
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= tolerance * np.abs(expected).max()


@contextmanager
def token_budget(tokens: int) -> Iterator[None]:
    """Within, batches hold so many tokens."""
    before, states.TOKEN_BUDGET = states.TOKEN_BUDGET, tokens
    try:
        yield
    finally:
        states.TOKEN_BUDGET = before


def hidden(model, tokenizer) -> torch.Tensor:
    ids = torch.tensor([tokenizer(SENTENCE)["input_ids"]])
    with torch.no_grad():
        return torch.stack(model(input_ids=ids, output_hidden_states=True).hidden_states)


def assert_one_sentence(error: pytest.ExceptionInfo) -> None:
    assert "\n" not in str(error.value)


class Attack:
    """A pickle that writes a file when it is read."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self):
        return (Path.touch, (self.target,))
