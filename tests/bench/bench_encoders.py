"""LSTMs over sentences turned round against packed sequences, on one thread, as a notebook has it.

An epoch of `encoder_training.align` on made-up data of the notebooks' sizes, and of the same with
one bidirectional `nn.LSTM` over `pack_padded_sequence`.
"""

from unittest import mock

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tests.bench import Row, best_of
from xlx.results.executors import one_thread
from xlx.results.settings import settings
from xprobe import encoders
from xprobe.encoders import MINI, Sentences

PARALLEL, EPOCHS = 1000, 2


class Packed(nn.Module):
    """What `sentence_encoders` has its own LSTMs for, the usual way."""

    def __init__(self, sizes: encoders.Sizes) -> None:
        super().__init__()
        self.lstm = nn.LSTM(
            sizes.words, sizes.hidden, sizes.layers, batch_first=True, bidirectional=True
        )

    def forward(self, states: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = pack_padded_sequence(states, lengths, batch_first=True, enforce_sorted=False)
        return pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]


def some(n: int, rng: np.random.Generator) -> Sentences:
    """Sentences of about 25 words, from 5 to 60."""
    lengths = np.clip(rng.lognormal(3.1, 0.5, n), 5, 60).astype(int)
    vectors = rng.normal(size=(3000, MINI.words)).astype(np.float32)
    return Sentences(vectors, tuple(rng.integers(0, 3000, length) for length in lengths))


def mapped() -> pd.DataFrame:
    """The history of a mapping of a few epochs."""
    rng = np.random.default_rng(0)
    width = 2 * MINI.hidden
    head = {"weight": np.zeros((3, 4 * width), np.float32), "bias": np.zeros(3, np.float32)}
    state = encoders.weights(encoders.encoder("rnn-max", MINI, 1))
    arrays = {f"state.{x}": y for x, y in state.items()}
    arrays |= {f"classifier.{x}": y for x, y in head.items()}
    english = encoders.InferenceEncoder("rnn-max", MINI, arrays)
    source, target = some(PARALLEL, rng), some(PARALLEL, rng)
    held_out = (some(30, rng), some(30, rng), np.zeros(30, np.int64))
    options = {"max_epochs": EPOCHS, "patience": EPOCHS, "batch_size": 32}
    return encoders.align(english, source, target, held_out, **options).history


def run() -> list[Row]:
    """Rows of the bench's table."""

    def packed() -> None:
        with mock.patch.object(encoders, "_BiLSTM", Packed):
            mapped()

    with one_thread(), settings(device="cpu"):
        ours, theirs = best_of(mapped, packed, rounds=2)
    speed = EPOCHS * PARALLEL / ours
    return [
        Row("mapping: sentence pairs of about 25 words, rnn-max", speed, "a second"),
        Row("mapping: against packed sequences", theirs / ours, "times", "> 1.5"),
    ]
