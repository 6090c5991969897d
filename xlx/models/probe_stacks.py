"""Probes as stacks of matrices: what they are made of, and how they read states.

Shapes: states ``(g, n, d)`` for g groups of n examples of width d; labels ``(g, n)`` or, the same
for all groups, ``(n,)``: 0 to K - 1, or -1 where there is no example. Groups with fewer examples
are filled up with -1, anywhere and with any states. What is measured has a row a group and a column
a seed, ``(g, s)``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import ArrayLike

from xlx.core import checks

SEEDS = tuple(range(6))
"""The six runs of ABX section 5.1."""
ACTIVATIONS = ("relu", "sigmoid")
_MEMORY = {"cpu": 2**25, "cuda": 2**32}
"""Bytes of groups trained at once: on a CPU about what its caches hold, which is fastest."""


@dataclass(frozen=True)
class Split:
    """Examples of all groups: for training, for validation or for the test."""

    states: np.ndarray | torch.Tensor  # (g, n, d), any floating type; may be a memory map
    labels: ArrayLike  # whole numbers, (g, n) or (n,)
    names: Sequence[str] | None = None  # of the groups, in messages and tables


@dataclass(frozen=True)
class Fitting:
    """How probes are fitted; the defaults were chosen on parts of speech from a 6 x 128 model, for
    n from 50 to 9,000.
    """

    hidden: int | None = None  #: Width of a hidden layer; None: a linear probe.
    activation: str = "relu"  #: Of the hidden units; "sigmoid" in X-Probe (section 5.3, Table 2).
    seeds: Sequence[int] = SEEDS  #: Each draws initial weights alone, the same for every group.
    #: Draws the order of the examples, anew in each epoch (`batch_order`), the same for all seeds
    #: and all groups of equal size: so a group's seeds train in one product (1.3 times as fast at
    #: width 128). What is left between seeds is then smaller: on parts of speech a third of the
    #: deviation with an order each, at the same mean.
    order: int = 0
    learning_rate: float = 3e-2  #: Adam's step ...
    #: ... and what it is multiplied by after each epoch that was not the best so far (Hewitt and
    #: Liang 2019 halve it too; 1 keeps it).
    anneal: float = 0.5
    #: Examples a step, at most: fewer where an epoch would have less than 16 steps (then n // 16,
    #: but at least 8). The last batch may be short.
    batch_size: int = 128
    max_epochs: int = 100
    patience: int = 3
    #: A step takes off learning_rate · weight_decay / √n of a group's weights, not of the biases:
    #: AdamW, with less decay for more data, as Loshchilov and Hutter (2019, appendix B.1) advise.
    weight_decay: float = 32.0
    device: str | torch.device | None = (
        None  #: Default: as in `xlx.settings`, a GPU if there is one.
    )

    def __post_init__(self) -> None:
        sizes = {name: getattr(self, name) for name in ("batch_size", "max_epochs", "patience")}
        sizes |= {"hidden": 1 if self.hidden is None else self.hidden}
        for name, value in (sizes | {"number of seeds": len(self.seeds)}).items():
            if value < 1:
                raise ValueError(f"{name} is {value}: it has to be at least 1")
        checks.one_of(self.activation, ACTIVATIONS, "activation")


@dataclass(frozen=True)
class Probes:
    """Trained probes of all groups and seeds.

    ``weights`` are for standardised states. Linear: one, ``(g, s, K, d + 1)``, whose last column is
    the bias. With a hidden layer two: ``(g, s, hidden, d + 1)`` and ``(g, s, K, hidden + 1)``.
    """

    weights: tuple[torch.Tensor, ...]
    mean: torch.Tensor  # (g, d), of the training states; every state is standardised by them
    scale: torch.Tensor
    epochs: np.ndarray  # (g, s): the epoch, from 1, whose weights were kept
    validation_loss: np.ndarray  # (g, s): mean cross-entropy at that epoch, in nats
    seeds: tuple[int, ...]
    activation: str = "relu"

    def take(self, groups: Sequence[int]) -> "Probes":
        """The probes of some groups (one may occur often), for states of another set of groups."""
        rows = np.asarray(groups, dtype=np.int64)
        index = torch.as_tensor(rows, device=self.mean.device)
        return replace(
            self,
            weights=tuple(weight[index] for weight in self.weights),
            mean=self.mean[index],
            scale=self.scale[index],
            epochs=self.epochs[rows],
            validation_loss=self.validation_loss[rows],
        )

    def predict(self, states: np.ndarray | torch.Tensor) -> np.ndarray:
        """The likeliest class of each state ``(g, n, d)``: ``(g, s, n)`` int64.

        ValueError if the states are of other groups or another width; shorter groups may be filled
        up with anything.
        """
        groups, dim = self.mean.shape
        if len(states.shape) != 3 or states.shape[0] != groups or states.shape[2] != dim:
            raise ValueError(
                f"the states have the shape {tuple(states.shape)}, and the probes are for "
                f"({groups}, n, {dim}): (groups, examples, width)"
            )
        return np.concatenate([x.argmax(2).cpu().numpy() for x in self._logits(states)])

    def standardised(self, states: torch.Tensor, group: int) -> torch.Tensor:
        """States of a group, less the mean of its training states and over their deviation."""
        return (states - self.mean[group]) / self.scale[group]

    def _logits(self, states: np.ndarray | torch.Tensor) -> Iterator[torch.Tensor]:
        """Logits ``(chunk, s, K, n)`` of a few groups at a time."""
        device, n, width = self.mean.device, states.shape[1], self.weights[0].shape[-1]
        of_outputs = self.weights[0].shape[1] * sum(weight.shape[2] for weight in self.weights)
        size = max(1, memory_of(device) // (8 * n * (width + of_outputs)))
        for start in range(0, len(self.mean), size):
            groups = range(len(self.mean))[start : start + size]
            x = torch.ones(len(groups), n, width, device=device)
            for row, group in enumerate(groups):
                x[row, :, :-1] = self.standardised(as_floats(states[group]).to(device), group)
            weights = [weight[start : start + size] for weight in self.weights]
            yield logits_of(weights, x, self.activation)[0]


def initial_weights(
    dim: int, n_classes: int, hidden: int | None, seed: int
) -> tuple[torch.Tensor, ...]:
    """The weights a seed starts from, ``(outputs, inputs + 1)`` a layer, the bias last.

    Uniform between ±1/√inputs, as `torch.nn.Linear` draws them; from a generator of the CPU,
    whatever the device.
    """
    generator = torch.Generator().manual_seed(seed)
    widths = (dim, n_classes) if hidden is None else (dim, hidden, n_classes)
    return tuple(
        (2 * torch.rand(outputs, inputs + 1, generator=generator) - 1) / inputs**0.5
        for inputs, outputs in pairwise(widths)
    )


def batch_order(n: int, order: int, epoch: int) -> np.ndarray:
    """The order of a group's n examples in an epoch (from 1), to be cut into batches."""
    return np.random.default_rng((order, n, epoch)).permutation(n)


def as_floats(states: np.ndarray | torch.Tensor) -> torch.Tensor:
    """States as a float32 tensor without gradients."""
    if isinstance(states, torch.Tensor):
        return states.detach().float()
    return torch.tensor(np.asarray(states, dtype=np.float32))


def memory_of(device: torch.device) -> int:
    """Bytes that the groups trained or asked at once may take."""
    return _MEMORY["cpu" if device.type == "cpu" else "cuda"]


def logits_of(
    weights: Sequence[torch.Tensor], x: torch.Tensor, activation: str
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Logits ``(g, s, K, n)`` of states ``(g, n, d + 1)``, and the hidden layer.

    Examples come last: softmax over K then runs along memory, several times as fast.
    """
    g, s, outputs, _ = weights[0].shape
    first = torch.bmm(weights[0].flatten(1, 2), x.mT).view(g, s, outputs, -1)
    if len(weights) == 1:
        return first, None
    units = first.relu_() if activation == "relu" else first.sigmoid_()
    units = torch.cat([units, torch.ones_like(first[:, :, :1])], dim=2)
    return torch.matmul(weights[1], units), units


def surprise(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """-log p of the right class in nats, ``(g, s, n)``."""
    g, s, _, n = logits.shape
    right = logits.gather(2, y[:, None, None, :].expand(g, s, 1, n)).squeeze(2)
    return logits.logsumexp(dim=2) - right
