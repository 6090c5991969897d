"""Probes of many sentence encoders as one stack, and LSTMs without packed sequences.

Two things that X-Probe's notebooks spend their time on, against the usual way of doing them, each
with one thread, as the processes of a notebook have. Made-up data of the notebooks' sizes.

Probes: one a cell (an encoder in a language) and seed with 150 sigmoid units. The yardstick trains
them one after the other with `torch.optim.AdamW` by the same recipe, so that its accuracy has to be
the same. Mapping: an epoch of `align`, and of the same with one bidirectional `nn.LSTM` over
`pack_padded_sequence`.
"""

import copy
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tests.bench import show
from xlx.core.executors import one_thread
from xlx.core.settings import settings
from xlx.models import probe_stacks, probe_training, probes
from xlx.xprobe import encoder_training, sentence_encoders
from xlx.xprobe.sentence_encoders import MINI, Sentences

CELLS, SEEDS, HIDDEN, N_CLASSES = 24, (0, 1, 2), 150, 2
SENTENCES = (1000, 250, 250)
PARALLEL, EPOCHS = 1000, 2
ROUNDS = 2


# --- probes ---------------------------------------------------------------------------------------


def splits() -> list[probes.Split]:
    """Vectors of the cells: noise, and in some directions the class, by a rule that is no line."""
    rng = np.random.default_rng(0)
    width = 2 * MINI.hidden
    rules = rng.normal(size=(2, CELLS, width, 1))
    found = []
    for n in SENTENCES:
        states = rng.normal(size=(CELLS, n, width)).astype(np.float32)
        first, second = (states @ rule for rule in rules)
        labels = (first + 0.3 * np.abs(second) + rng.normal(size=first.shape) > 1)[..., 0]
        found.append(probes.Split(states, labels.astype(np.int64)))
    return found


def one_probe(states: list[torch.Tensor], labels: list[torch.Tensor], seed: int) -> float:
    """Test accuracy of one probe by the recipe of `probes.fit`."""
    layers = [nn.Linear(states[0].shape[1], HIDDEN), nn.Linear(HIDDEN, N_CLASSES)]
    own = probe_stacks.initial_weights(states[0].shape[1], N_CLASSES, HIDDEN, seed)
    with torch.no_grad():
        for layer, weights in zip(layers, own, strict=True):
            layer.weight.copy_(weights[:, :-1])
            layer.bias.copy_(weights[:, -1])
    net = nn.Sequential(layers[0], nn.Sigmoid(), layers[1])
    n = len(labels[0])
    decay = probes.Fitting.weight_decay / n**0.5
    groups = [
        {"params": [layer.weight for layer in layers], "weight_decay": decay},
        {"params": [layer.bias for layer in layers], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=probes.Fitting.learning_rate)
    loss = nn.CrossEntropyLoss()
    size = min(
        probes.Fitting.batch_size,
        max(probe_training.SMALLEST_BATCH, n // probe_training.FEWEST_STEPS),
    )
    lowest, waited, best = np.inf, 0, net.state_dict()
    for epoch in range(1, probes.Fitting.max_epochs + 1):
        for rows in torch.from_numpy(probe_stacks.batch_order(n, 0, epoch)).split(size):
            optimiser.zero_grad()
            loss(net(states[0][rows]), labels[0][rows]).backward()
            optimiser.step()
        with torch.no_grad():
            held_out = float(loss(net(states[1]), labels[1]))
        if held_out < lowest:
            lowest, waited, best = held_out, 0, copy.deepcopy(net.state_dict())
            continue
        waited += 1
        for group in optimiser.param_groups:
            group["lr"] *= probes.Fitting.anneal
        if waited == probes.Fitting.patience:
            break
    net.load_state_dict(best)
    with torch.no_grad():
        return float((net(states[2]).argmax(dim=1) == labels[2]).float().mean())


def one_by_one(parts: list[probes.Split]) -> float:
    """Mean test accuracy of all probes."""
    reached = []
    for cell in range(CELLS):
        states = [torch.from_numpy(np.asarray(part.states)[cell]) for part in parts]
        mean, scale = states[0].mean(dim=0), states[0].std(dim=0, correction=0)
        states = [(own - mean) / scale for own in states]
        labels = [torch.from_numpy(np.asarray(part.labels)[cell]) for part in parts]
        reached += [one_probe(states, labels, seed) for seed in SEEDS]
    return float(np.mean(reached))


def as_one_stack(parts: list[probes.Split]) -> float:
    """Mean test accuracy of all probes."""
    options = {"hidden": HIDDEN, "activation": "sigmoid", "seeds": SEEDS}
    table = probes.evaluate_probes(*parts, N_CLASSES, **options)
    return float(table["accuracy"].mean())


# --- mapping --------------------------------------------------------------------------------------


class Packed(nn.Module):
    """What `sentence_encoders` has its own LSTMs for, the usual way."""

    def __init__(self, sizes: sentence_encoders.Sizes) -> None:
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
    state = sentence_encoders.weights(sentence_encoders.encoder("rnn-max", MINI, 1))
    english = encoder_training.InferenceEncoder("rnn-max", MINI, state, head, pd.DataFrame())
    source, target = some(PARALLEL, rng), some(PARALLEL, rng)
    held_out = (some(30, rng), some(30, rng), np.zeros(30, np.int64))
    options = {"max_epochs": EPOCHS, "patience": EPOCHS, "batch_size": 32}
    return encoder_training.align(english, source, target, held_out, **options).history


# --- both -----------------------------------------------------------------------------------------


def run() -> list[dict[str, object]]:
    """Rows of the bench table: name, value, unit, aim."""
    parts = splits()
    seconds: dict[str, list[float]] = {}
    reached: dict[str, float] = {}
    packed = mock.patch.object(sentence_encoders, "_BiLSTM", Packed)

    def timed(name: str, function: Callable, *arguments: object) -> Any:
        start = time.perf_counter()
        found = function(*arguments)
        seconds.setdefault(name, []).append(time.perf_counter() - start)
        return found

    with one_thread(), settings(device="cpu"):
        for _ in range(ROUNDS):
            reached["stack"] = timed("stack", as_one_stack, parts)
            timed("plain", mapped)
            with packed:
                timed("packed", mapped)
            reached["single"] = timed("single", one_by_one, parts)
    best = {name: min(each) for name, each in seconds.items()}
    n_probes = CELLS * len(SEEDS)
    return [
        {
            "name": f"sentence probes: {HIDDEN} sigmoid units, n = {SENTENCES[0]:,}, d = 128",
            "value": round(1000 * best["stack"] / n_probes, 1),
            "unit": "ms a probe",
            "aim": None,
        },
        {
            "name": f"sentence probes: {CELLS} cells as one stack, against one by one",
            "value": round(best["single"] / best["stack"], 1),
            "unit": "times",
            "aim": "> 2",
        },
        {
            "name": "sentence probes: accuracy beyond that of one by one",
            "value": round(100 * (reached["stack"] - reached["single"]), 2),
            "unit": "points",
            "aim": "-0.5 to 0.5",
        },
        {
            "name": "mapping: sentence pairs of about 25 words, rnn-max",
            "value": round(EPOCHS * PARALLEL / best["plain"]),
            "unit": "a second",
            "aim": None,
        },
        {
            "name": "mapping: LSTMs of sentences turned round, against packed sequences",
            "value": round(best["packed"] / best["plain"], 1),
            "unit": "times",
            "aim": "> 1.5",
        },
    ]


if __name__ == "__main__":
    show(run())
