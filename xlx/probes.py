"""Probes: how much of a label can be read off a frozen state by a linear map or a small network.

A probe is trained per group (a layer, or a layer of a language) and per seed, and there are many: 7
layers of 36 languages with 6 seeds make 1,512. They are small and alike, so all train at once, as
stacks of matrices. A group's seeds see the same batches and differ in their initial weights; one
product then serves all of them. It is the same training as one at a time, and a probe depends on
its own data, its seed and `order` alone: not on what else is trained beside it, nor on padding. A
stack's products may be summed in another order than a single one's; so the two agree to rounding in
float32, and are not always equal bit for bit. Run again, a stack gives the same bits on a CPU.

What comes out is an accuracy, which says little by itself. `evaluate` puts beside it what the
commonest label gives, what a probe of the same size learns of random labels (the control task of
Hewitt and Liang 2019; the difference is the selectivity), and how many bits it takes to send the
labels to somebody who has the states (the online code of Blier and Ollivier 2018, used for probes
by Voita and Titov 2020): few if a short, simple rule holds from few examples on.

Shapes: states ``(g, n, d)`` for g groups of n examples of width d; labels ``(g, n)`` or, the same
for all groups, ``(n,)``: 0 to K - 1, or -1 where there is no example. Groups with fewer examples
are filled up with -1, anywhere and with any states. What is measured has a row a group and a column
a seed, ``(g, s)``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike

from xlx.settings import current

SEEDS = tuple(range(6))
"""The six runs of ABX section 5.1."""

# Chosen on parts of speech from a 6 x 128 model, for n from 50 to 9,000 (see `fit`).
LEARNING_RATE = 3e-2
ANNEAL = 0.5
BATCH_SIZE = 128
SMALLEST_BATCH, FEWEST_STEPS = 8, 16
MAX_EPOCHS = 100
PATIENCE = 3
WEIGHT_DECAY = 32.0

FRACTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
"""Shares of the training set at which a block of the online code ends (Voita and Titov 2020)."""

ACTIVATIONS = ("relu", "sigmoid")

SMALLEST_BLOCK = 8
"""Examples a block of the online code has at least; a smaller one is joined to the next."""

_BETAS = (0.9, 0.999)
_EPSILON = 1e-8
_MEMORY = {"cpu": 2**25, "cuda": 2**32}
"""Bytes of groups trained at once: on a CPU about what its caches hold, which is fastest."""


@dataclass(frozen=True)
class Split:
    """Examples of all groups: for training, for validation or for the test.

    Attributes
    ----------
    states : numpy.ndarray or Tensor
        ``(g, n, d)``, any floating type; may be a memory map, as a few groups are read at a time.
    labels : array of int
        ``(g, n)`` or ``(n,)``; -1 = no example.
    names : sequence of str, optional
        What the groups are called in messages and tables. Default: their numbers.
    """

    states: np.ndarray | torch.Tensor
    labels: ArrayLike
    names: Sequence[str] | None = None


@dataclass(frozen=True)
class Probes:
    """Trained probes of all groups and seeds.

    Attributes
    ----------
    weights : tuple of Tensor
        Linear: one, ``(g, s, K, d + 1)``, whose last column is the bias. With a hidden layer two:
        ``(g, s, hidden, d + 1)`` and ``(g, s, K, hidden + 1)``. For standardised states.
    mean, scale : Tensor
        ``(g, d)``, of the training states; every state is standardised by them.
    epochs : numpy.ndarray
        ``(g, s)``: the epoch, from 1, whose weights were kept.
    validation_loss : numpy.ndarray
        ``(g, s)``: mean cross-entropy on the validation split at that epoch, in nats.
    seeds : tuple of int
    activation : str
        Of the hidden layer, if there is one.
    """

    weights: tuple[torch.Tensor, ...]
    mean: torch.Tensor
    scale: torch.Tensor
    epochs: np.ndarray
    validation_loss: np.ndarray
    seeds: tuple[int, ...]
    activation: str = "relu"

    def take(self, groups: Sequence[int]) -> "Probes":
        """The probes of some groups (one may occur often), for states of another set of groups."""
        at = torch.as_tensor(np.asarray(groups, dtype=np.int64), device=self.mean.device)
        rows = at.cpu().numpy()
        return replace(
            self,
            weights=tuple(weight[at] for weight in self.weights),
            mean=self.mean[at],
            scale=self.scale[at],
            epochs=self.epochs[rows],
            validation_loss=self.validation_loss[rows],
        )

    def predict(self, states: np.ndarray | torch.Tensor) -> np.ndarray:
        """The likeliest class of each state ``(g, n, d)``: ``(g, s, n)`` int64.

        Raises ValueError if the states do not fit the probes or are no finite numbers (fill up
        shorter groups with zeros).
        """
        self._check(states)
        return np.concatenate([logits.argmax(2).cpu().numpy() for _, logits in self._run(states)])

    def log_probabilities(self, states: np.ndarray | torch.Tensor) -> np.ndarray:
        """Log-probabilities in nats, ``(g, s, n, K)`` float32. Errors as `predict`."""
        self._check(states)
        return np.concatenate(
            [logits.log_softmax(2).mT.cpu().numpy() for _, logits in self._run(states)]
        )

    def _check(self, states: np.ndarray | torch.Tensor) -> None:
        groups, dim = self.mean.shape
        if len(states.shape) != 3 or states.shape[0] != groups or states.shape[2] != dim:
            raise ValueError(
                f"the states have the shape {tuple(states.shape)}, and the probes are for "
                f"({groups}, n, {dim}): (groups, examples, width)"
            )
        for group in range(groups):
            if not torch.isfinite(_as_floats(states[group])).all():
                raise ValueError(f"states of group {group}: there is a NaN or an infinite number")

    def _run(self, states: np.ndarray | torch.Tensor) -> Iterator[tuple[slice, torch.Tensor]]:
        """Logits ``(chunk, s, K, n)`` of a few groups at a time, and which they are."""
        device = self.mean.device
        width = self.weights[0].shape[-1] + self.weights[0].shape[1] * sum(
            weight.shape[2] for weight in self.weights
        )
        size = max(1, _memory(device) // (8 * states.shape[1] * width))
        for start in range(0, len(self.mean), size):
            at = slice(start, start + size)
            x = torch.ones(
                len(self.mean[at]), states.shape[1], self.weights[0].shape[-1], device=device
            )
            for row in range(len(x)):
                group = start + row
                own = _as_floats(states[group]).to(device)
                x[row, :, :-1] = (own - self.mean[group]) / self.scale[group]
            yield at, _forward([weight[at] for weight in self.weights], x, self.activation)[0]


# --- training -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Recipe:
    learning_rate: float
    anneal: float
    batch_size: int
    max_epochs: int
    patience: int
    weight_decay: float
    order: int
    activation: str


@dataclass(frozen=True)
class _Checked:
    """A split whose numbers are in order, with labels ``(g, n)`` and the sizes of its groups."""

    states: np.ndarray | torch.Tensor
    labels: np.ndarray
    sizes: np.ndarray
    split: str
    names: Sequence[str] | None

    def name(self, group: int) -> str:
        return f"{self.split} split, {_group(self.names, group)}"

    def examples(self, group: int) -> tuple[torch.Tensor, torch.Tensor]:
        """States ``(n, d)`` and labels ``(n,)`` of the examples there are, in their order."""
        there = self.labels[group] >= 0
        own = self.states[group]
        if not there.all():
            own = own[torch.as_tensor(there) if isinstance(own, torch.Tensor) else there]
        return _as_floats(own), torch.as_tensor(self.labels[group][there])


def fit(
    train: Split,
    validation: Split,
    n_classes: int,
    *,
    hidden: int | None = None,
    activation: str = "relu",
    seeds: Sequence[int] = SEEDS,
    order: int = 0,
    learning_rate: float = LEARNING_RATE,
    anneal: float = ANNEAL,
    batch_size: int = BATCH_SIZE,
    max_epochs: int = MAX_EPOCHS,
    patience: int = PATIENCE,
    weight_decay: float = WEIGHT_DECAY,
    device: str | torch.device | None = None,
) -> Probes:
    """Train one probe a group and seed with Adam on the cross-entropy, each until it is best.

    Each probe is scored on the validation split after every epoch, keeps the weights of the epoch
    with the lowest loss, and ends after `patience` epochs without a lower one.

    Parameters
    ----------
    train, validation : Split
        The same groups in the same order. States are standardised per group and dimension by the
        training split.
    n_classes : int
        K; that a class has no example is fine.
    hidden : int, optional
        Width of a hidden layer. Default: none, a linear probe.
    activation : str
        Of the hidden units: "relu", or "sigmoid" as in X-Probe (section 5.3, Table 2).
    seeds : sequence of int
        Each draws the initial weights, and nothing else: the same for every group.
    order : int
        Draws the order of the examples, anew in each epoch (`batch_order`), the same for all seeds
        and for all groups of equal size. Sharing it lets a group's seeds train in one product, and
        no batch is gathered per seed (1.3 times as fast at width 128). What is left between
        seeds is then smaller: on parts of speech a third of the deviation with an order each, at
        the same mean. For runs that differ in their order too, fit each seed with its own.
    learning_rate, anneal : float
        Adam's step, and what it is multiplied by after each epoch that was not the best so far
        (Hewitt and Liang 2019 halve it too; 1 keeps it).
    batch_size : int
        Examples a step, at most: fewer where an epoch would have less than 16 steps (then
        n // 16, but at least 8). The last batch may be short.
    max_epochs, patience : int
    weight_decay : float
        A step takes off learning_rate · weight_decay / √n of a group's weights, not of the biases:
        AdamW, with less decay for more data, as Loshchilov and Hutter (2019, appendix B.1) advise.
    device : str or torch.device, optional
        Default: as in `xlx.settings`, a GPU if there is one.

    Raises
    ------
    ValueError
        Naming split and group: shapes that do not fit, states that are not finite, labels outside
        0 to K - 1, a group without examples or with a single one to train on.
    """
    training, held_out = _checked(train, validation, n_classes=n_classes)
    return _fit(
        training,
        held_out,
        n_classes,
        np.arange(len(training.sizes)),
        hidden=hidden,
        activation=activation,
        seeds=seeds,
        order=order,
        learning_rate=learning_rate,
        anneal=anneal,
        batch_size=batch_size,
        max_epochs=max_epochs,
        patience=patience,
        weight_decay=weight_decay,
        device=device,
    )


def _fit(
    training: _Checked,
    held_out: _Checked,
    n_classes: int,
    chosen: np.ndarray,
    *,
    hidden: int | None = None,
    activation: str = "relu",
    seeds: Sequence[int] = SEEDS,
    order: int = 0,
    learning_rate: float = LEARNING_RATE,
    anneal: float = ANNEAL,
    batch_size: int = BATCH_SIZE,
    max_epochs: int = MAX_EPOCHS,
    patience: int = PATIENCE,
    weight_decay: float = WEIGHT_DECAY,
    device: str | torch.device | None = None,
) -> Probes:
    """`fit` for splits already checked, of the groups `chosen`; the others stay untrained."""
    for name, value in (
        ("hidden", 1 if hidden is None else hidden),
        ("batch_size", batch_size),
        ("max_epochs", max_epochs),
        ("patience", patience),
        ("number of seeds", len(seeds)),
    ):
        if value < 1:
            raise ValueError(f"{name} is {value}: it has to be at least 1")
    if activation not in ACTIVATIONS:
        raise ValueError(f"activation is {activation!r}: choose from {', '.join(ACTIVATIONS)}")
    device = device or current().device or ("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(device)
    groups, dim = len(training.sizes), training.states.shape[2]
    initial = [initial_weights(dim, n_classes, hidden, seed) for seed in seeds]
    weights = tuple(
        torch.stack(each).to(device).repeat(groups, 1, 1, 1) for each in zip(*initial, strict=True)
    )
    probes = Probes(
        weights,
        torch.empty(groups, dim, device=device),
        torch.empty(groups, dim, device=device),
        np.zeros((groups, len(seeds)), dtype=np.int64),
        np.full((groups, len(seeds)), np.inf),
        tuple(seeds),
        activation,
    )
    recipe = _Recipe(
        learning_rate,
        anneal,
        batch_size,
        max_epochs,
        patience,
        weight_decay,
        order,
        activation,
    )
    # Groups of like size train together, those with most steps first: see `_train`.
    sizes = training.sizes[chosen]
    by_steps = chosen[np.lexsort((-sizes, -_batches(sizes, batch_size)[1]))]
    for chunk in _chunks(by_steps, training.sizes, held_out.sizes, weights, device):
        _train(probes, training, held_out, chunk, recipe)
    lost = chosen[~np.isfinite(probes.validation_loss[chosen]).all(axis=1)]
    if len(lost):
        group = lost[0]
        raise ValueError(
            f"{training.name(group)}: the validation loss is no number; try a lower learning rate "
            f"than {learning_rate}"
        )
    return probes


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


def _group(names: Sequence[str] | None, group: int) -> str:
    return f"group {group}" + (f" ({names[group]})" if names is not None else "")


def _as_floats(states: np.ndarray | torch.Tensor) -> torch.Tensor:
    if isinstance(states, torch.Tensor):
        return states.detach().float()
    return torch.tensor(np.asarray(states, dtype=np.float32))


def _memory(device: torch.device) -> int:
    return _MEMORY["cpu" if device.type == "cpu" else "cuda"]


def _checked(*splits: Split, n_classes: int) -> list[_Checked]:
    """Training, validation and, if given, test split, checked alone and against each other."""
    if n_classes < 2:
        raise ValueError(f"n_classes is {n_classes}: a probe tells at least two classes apart")
    checked = []
    for what, split in zip(("training", "validation", "test"), splits, strict=False):
        shape = tuple(split.states.shape)
        first = tuple(splits[0].states.shape)
        if len(shape) != 3 or 0 in (shape[0], shape[2]):
            raise ValueError(
                f"{what} split: the states have the shape {shape}, and not (groups, examples, "
                "width)"
            )
        if (shape[0], shape[2]) != (first[0], first[2]):
            raise ValueError(
                f"{what} split: {shape[0]} groups of width {shape[2]}, but the training split has "
                f"{first[0]} of width {first[2]}"
            )
        labels = split.labels
        labels = labels.cpu().numpy() if isinstance(labels, torch.Tensor) else np.asarray(labels)
        if labels.dtype.kind not in "iu":
            raise ValueError(f"{what} split: the labels are {labels.dtype}, and not whole numbers")
        if labels.shape not in (shape[:2], shape[1:2]):
            raise ValueError(
                f"{what} split: the labels have the shape {labels.shape}, and the states "
                f"{shape}: give one label an example, {shape[:2]} or {shape[1:2]}"
            )
        names = split.names if split.names is not None else splits[0].names
        if names is not None and len(names) != shape[0]:
            raise ValueError(f"{what} split: {len(names)} names for {shape[0]} groups")
        labels = np.broadcast_to(labels.astype(np.int64), shape[:2])
        found = _Checked(split.states, labels, (labels >= 0).sum(axis=1), what, names)
        least = 2 if what == "training" else 1
        for group in range(shape[0]):
            outside = labels[group][(labels[group] < -1) | (labels[group] >= n_classes)]
            if len(outside):
                raise ValueError(
                    f"{found.name(group)}: there is a label {outside[0]}, and the {n_classes} "
                    f"classes are 0 to {n_classes - 1} (-1 where there is no example)"
                )
            if found.sizes[group] < least:
                raise ValueError(
                    f"{found.name(group)}: {found.sizes[group]} examples, and at least {least} "
                    "are needed: leave the group out"
                )
            if not torch.isfinite(found.examples(group)[0].sum()):
                raise ValueError(
                    f"{found.name(group)}: there is a NaN or an infinite number in its states"
                )
        checked.append(found)
    return checked


def _chunks(
    by_steps: np.ndarray,
    n_train: np.ndarray,
    n_validation: np.ndarray,
    weights: tuple[torch.Tensor, ...],
    device: torch.device,
) -> Iterator[np.ndarray]:
    """Groups to train at once, as many as the memory allows."""
    parameters = sum(weight[0].numel() for weight in weights)
    activations = sum(weight.shape[1] * weight.shape[2] for weight in weights)
    width = weights[0].shape[-1]
    while len(by_steps):
        examples = (n_train[by_steps].max() + n_validation.max()) * width
        need = 4 * (examples + 5 * parameters + n_validation.max() * activations)
        size = max(1, int(_memory(device) // need))
        yield by_steps[:size]
        by_steps = by_steps[size:]


def _stack(
    rows: Sequence[tuple[torch.Tensor, torch.Tensor]], device: torch.device
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Standardised states with a one behind each, labels, and sizes, filled up to the longest.

    ``(g, n, d + 1)``, ``(g, n)`` and ``(g,)``; what fills up is zero.
    """
    sizes = [len(labels) for _, labels in rows]
    x = torch.zeros(len(rows), max(sizes), rows[0][0].shape[1] + 1, device=device)
    y = torch.zeros(len(rows), max(sizes), dtype=torch.int64, device=device)
    for row, (states, labels) in enumerate(rows):
        x[row, : len(labels), :-1] = states
        x[row, : len(labels), -1] = 1
        y[row, : len(labels)] = labels
    return x, y, torch.tensor(sizes, device=device)


def _load(
    probes: Probes, training: _Checked, held_out: _Checked, chunk: np.ndarray
) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Both splits of some groups, standardised; sets the probes' mean and scale."""
    device = probes.mean.device
    rows: list[list[tuple[torch.Tensor, torch.Tensor]]] = [[], []]
    for group in chunk:
        for split, examples in zip((training, held_out), rows, strict=True):
            states, labels = (part.to(device) for part in split.examples(group))
            if split is training:
                mean = states.mean(dim=0)
                scale = (states - mean).square_().mean(dim=0).sqrt_()
                # A dimension that only varies by rounding has nothing to say: do not blow it up.
                scale[scale <= 1e-6 * mean.abs()] = 1
                probes.mean[group], probes.scale[group] = mean, scale
            examples.append(((states - probes.mean[group]) / probes.scale[group], labels))
    return [_stack(examples, device) for examples in rows]


def _train(
    probes: Probes, training: _Checked, held_out: _Checked, chunk: np.ndarray, recipe: _Recipe
) -> None:
    """Train the probes of some groups, and write what is best into `probes`.

    A step of an epoch concerns the groups that still have examples: as the groups are sorted by
    their steps, the first few, so that everything is a view. Whoever has finished leaves: rows are
    the groups that still train; slots are their seeds that do, as many as the group with most has.
    """
    device = probes.mean.device
    (x, y, sizes), (x_held, y_held, sizes_held) = _load(probes, training, held_out, chunk)
    groups = np.asarray(chunk)
    rows = np.arange(len(groups))  # of x and y
    slots = np.tile(np.arange(len(probes.seeds)), (len(rows), 1))
    waited = np.zeros(slots.shape, dtype=np.int64)  # epochs since the best one
    slack = np.zeros(slots.shape, dtype=np.int64)  # epochs that were not the best so far
    at = torch.as_tensor(groups, device=device)
    weights = [weight[at] for weight in probes.weights]
    adam = _Adam(weights)
    for epoch in range(1, recipe.max_epochs + 1):
        rates = recipe.learning_rate * recipe.anneal**slack
        _epoch(weights, adam, rates, x, y, rows, sizes, epoch, recipe)
        held = torch.as_tensor(rows, device=device)
        loss = _loss(weights, x_held[held], y_held[held], sizes_held[held], recipe.activation)
        loss = loss.cpu().numpy()
        columns = groups[rows][:, None], slots
        # A slot may hold a seed that has finished, if its group still trains others: not counted.
        better = (loss < probes.validation_loss[columns]) & (waited < recipe.patience)
        improved = np.nonzero(better)
        where = tuple(index[improved] for index in np.broadcast_arrays(*columns))
        probes.validation_loss[where], probes.epochs[where] = loss[improved], epoch
        for best, weight in zip(probes.weights, weights, strict=True):
            best[where] = weight[improved]
        waited, slack = np.where(better, 0, waited + 1), slack + ~better
        going = waited < recipe.patience
        if not going.any():
            return
        kept, n_slots = going.any(axis=1), going.sum(axis=1).max()
        if kept.all() and n_slots == slots.shape[1]:
            continue
        first = np.argsort(~going, axis=1, kind="stable")[kept, :n_slots]
        taken = np.nonzero(kept)[0][:, None], first
        rows, slots, waited, slack = rows[kept], slots[taken], waited[taken], slack[taken]
        weights = [weight[taken] for weight in weights]
        adam.take(taken)


class _Adam:
    """Adam (Kingma and Ba 2015) with decoupled decay, on stacks whose rows take their own steps."""

    def __init__(self, weights: Sequence[torch.Tensor]) -> None:
        self.first = [torch.zeros_like(weight) for weight in weights]
        self.second = [torch.zeros_like(weight) for weight in weights]

    def take(self, at: tuple[np.ndarray, np.ndarray]) -> None:
        self.first = [moment[at] for moment in self.first]
        self.second = [moment[at] for moment in self.second]

    def step(
        self,
        weights: Sequence[torch.Tensor],
        gradients: Sequence[torch.Tensor],
        steps: np.ndarray,
        rates: np.ndarray,
        decay: np.ndarray,
    ) -> None:
        """Move the first rows.

        Row by row, ``steps`` says how many with this one were taken, and ``decay`` which share of
        a weight goes, times the learning rate; ``rates``, ``(rows, seeds)``, are those.
        """
        correction, second_correction = (
            1 - beta ** steps[:, None].astype(float) for beta in _BETAS
        )
        # rate · (m / c1) / (√(v / c2) + ε) = m / (√v · factor + offset)
        factor, offset, kept = (
            torch.as_tensor(values, dtype=torch.float32, device=weights[0].device)[..., None, None]
            for values in (
                correction / (rates * np.sqrt(second_correction)),
                _EPSILON * correction / rates,
                1 - rates * decay[:, None],
            )
        )
        n = len(steps)
        for weight, gradient, first, second in zip(
            weights, gradients, self.first, self.second, strict=True
        ):
            weight, first, second = weight[:n], first[:n], second[:n]
            weight[..., :-1].mul_(kept)
            first.lerp_(gradient, 1 - _BETAS[0])
            second.mul_(_BETAS[1]).addcmul_(gradient, gradient, value=1 - _BETAS[1])
            weight.addcdiv_(first, second.sqrt().mul_(factor).add_(offset), value=-1)


def _epoch(
    weights: list[torch.Tensor],
    adam: _Adam,
    rates: np.ndarray,
    x: torch.Tensor,
    y: torch.Tensor,
    rows: np.ndarray,
    sizes: torch.Tensor,
    epoch: int,
    recipe: _Recipe,
) -> None:
    """One pass over the examples of the groups in `rows`."""
    n = sizes.cpu().numpy()[rows]
    length, steps = _batches(n, recipe.batch_size)
    orders = {size: batch_order(size, recipe.order, epoch) for size in set(n.tolist())}
    batches = np.zeros((len(rows), steps.max(), length.max()), dtype=np.int64)
    for at, (row, own) in enumerate(zip(rows, length, strict=True)):
        order = np.zeros(steps[at] * own, dtype=np.int64)
        order[: n[at]] = orders[n[at]]
        batches[at, : steps[at], :own] = (row * x.shape[1] + order).reshape(-1, own)
    places = torch.as_tensor(batches, device=x.device)
    states, labels = x.view(-1, x.shape[2]), y.view(-1)
    decay = recipe.weight_decay / np.sqrt(n)
    for step in range(steps.max()):
        active = int((steps > step).sum())
        counts = np.minimum(n[:active] - step * length[:active], length[:active])
        batch = places[:active, step, : counts.max()]
        picked = batch.reshape(-1)
        gradients = _gradients(
            [weight[:active] for weight in weights],
            states.index_select(0, picked).view(*batch.shape, -1),
            labels.index_select(0, picked).view(batch.shape),
            counts,
            recipe.activation,
        )
        taken = (epoch - 1) * steps[:active] + step + 1
        adam.step(weights, gradients, taken, rates[:active], decay[:active])


def _batches(n: np.ndarray, batch_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Length of the batches of groups of n examples, and how many there are."""
    length = np.minimum(batch_size, np.maximum(SMALLEST_BATCH, n // FEWEST_STEPS))
    return length, -(-n // length)


def _forward(
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


def _gradients(
    weights: Sequence[torch.Tensor],
    x: torch.Tensor,
    y: torch.Tensor,
    counts: np.ndarray,
    activation: str,
) -> list[torch.Tensor]:
    """Gradients of the mean cross-entropy over the first `counts` examples of each group's batch.

    Of the logits it is softmax - onehot, and the rest are products; autograd would do the same
    with more copies.
    """
    logits, units = _forward(weights, x, activation)
    g, s, _, n = logits.shape
    error = logits.softmax(dim=2)
    minus_one = error.new_full((1,), -1.0).expand(g, s, 1, n)
    error.scatter_add_(2, y[:, None, None, :].expand(g, s, 1, n), minus_one)
    share = torch.as_tensor(1 / counts, dtype=torch.float32)
    weight = (torch.arange(n) < torch.as_tensor(counts)[:, None]) * share[:, None]
    error *= weight.to(x.device)[:, None, None, :]
    if len(weights) == 1:
        return [torch.bmm(error.flatten(1, 2), x).view_as(weights[0])]
    last = torch.matmul(error, units.mT)
    inner = units[:, :, :-1]
    slope = inner > 0 if activation == "relu" else inner * (1 - inner)
    back = torch.matmul(weights[1][..., :-1].mT, error) * slope
    return [torch.bmm(back.flatten(1, 2), x).view_as(weights[0]), last]


def _loss(
    weights: Sequence[torch.Tensor],
    x: torch.Tensor,
    y: torch.Tensor,
    sizes: torch.Tensor,
    activation: str,
) -> torch.Tensor:
    """Mean cross-entropy of each probe in nats, ``(g, s)``."""
    logits, _ = _forward(weights, x, activation)
    there = torch.arange(x.shape[1], device=x.device) < sizes[:, None]
    return (_surprise(logits, y) * there[:, None]).sum(dim=2) / sizes[:, None]


def _surprise(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """-log p of the right class in nats, ``(g, s, n)``."""
    g, s, _, n = logits.shape
    right = logits.gather(2, y[:, None, None, :].expand(g, s, 1, n)).squeeze(2)
    return logits.logsumexp(dim=2) - right


# --- what a score means ---------------------------------------------------------------------------


def accuracy(predicted: np.ndarray, labels: ArrayLike) -> np.ndarray:
    """Share of the examples whose class was predicted, ``(g, s)`` in [0, 1].

    Parameters
    ----------
    predicted : numpy.ndarray
        ``(g, s, n)``, from `Probes.predict`.
    labels : array of int
        ``(g, n)`` or ``(n,)``; -1 = no example.

    Raises
    ------
    ValueError
        Shapes that do not fit; a group without examples.
    """
    labels = np.asarray(labels)
    g, _, n = predicted.shape
    if labels.shape not in ((g, n), (n,)):
        raise ValueError(f"labels {labels.shape} do not fit predictions {predicted.shape}")
    labels = np.broadcast_to(labels, (g, n))
    there = labels >= 0
    empty = np.nonzero(~there.any(axis=1))[0]
    if len(empty):
        raise ValueError(f"group {empty[0]}: there is no example to be right about")
    right = (predicted == labels[:, None]) & there[:, None]
    return right.sum(axis=2) / there.sum(axis=1)[:, None]


def majority(train_labels: ArrayLike, test_labels: ArrayLike, n_classes: int) -> np.ndarray:
    """Accuracy on the test set of always saying the commonest class of the training set, ``(g,)``.

    Labels ``(g, n)`` or ``(n,)``, -1 = no example; of equally common classes the lowest is taken.
    """
    train_labels, test_labels = np.atleast_2d(train_labels), np.atleast_2d(test_labels)
    counts = (train_labels[:, :, None] == np.arange(n_classes)).sum(axis=1)
    commonest = counts.argmax(axis=1)[:, None]
    right = (test_labels == commonest).sum(axis=1)
    return right / (np.broadcast_to(test_labels, (len(right), test_labels.shape[1])) >= 0).sum(1)


def control_labels(
    types: Sequence[Sequence[str]], labels: ArrayLike, n_classes: int, seed: int
) -> list[np.ndarray]:
    """Labels of the control task of Hewitt and Liang (2019): each word type has a random one.

    Whatever a probe learns of them it has memorised: for a word that the training split does not
    have, the label cannot be known. For a task about sentences pass what names each example (its
    text): no type comes twice, so the test accuracy of the control should be at chance, and the
    selectivity is what is above it.

    Parameters
    ----------
    types : sequence of sequences of str
        The words of one or several splits; a type has the same label in all of them. Labels are
        drawn in the order of first appearance, so a split more does not change those before.
    labels : array of int
        Where the distribution comes from that labels are drawn from: those of the training split;
        -1 does not count.
    seed : int

    Returns
    -------
    list of numpy.ndarray
        Labels of each split, ``(n,)`` int64.
    """
    labels = np.asarray(labels)
    shares = np.bincount(labels[labels >= 0], minlength=n_classes)
    if shares.sum() == 0:
        raise ValueError("there are no labels to draw control labels like")
    codes, _ = pd.factorize(np.concatenate([np.asarray(split, dtype=object) for split in types]))
    ends = np.cumsum(shares) / shares.sum()
    drawn = np.searchsorted(ends, np.random.default_rng(seed).random(codes.max() + 1), "right")
    return np.split(drawn[codes], np.cumsum([len(split) for split in types])[:-1])


@dataclass(frozen=True)
class CodeLength:
    """How many bits the training labels take, for somebody who has the states.

    Attributes
    ----------
    bits : numpy.ndarray
        ``(g, s)``: the online code.
    uniform_bits : numpy.ndarray
        ``(g,)``: n log2 K, what labels cost if nothing is known.
    ends : tuple of tuple of int
        For each group, after how many examples each block ended; the first is coded uniformly.
    """

    bits: np.ndarray
    uniform_bits: np.ndarray
    ends: tuple[tuple[int, ...], ...]

    @property
    def compression(self) -> np.ndarray:
        """Uniform over online bits, ``(g, s)``; 1 where the states say nothing."""
        return self.uniform_bits[:, None] / self.bits


def code_length(
    train: Split,
    validation: Split,
    n_classes: int,
    *,
    fractions: Sequence[float] = FRACTIONS,
    seeds: Sequence[int] = SEEDS,
    order: int = 0,
    **options: object,
) -> CodeLength:
    """Online (prequential) code of the training labels (Blier and Ollivier 2018, Voita and Titov
    2020).

    The examples are sent in blocks, in random order. The first block costs log2 K bits a label;
    each further one is coded by a probe trained on all before it, -log2 p(label) each. The
    validation split serves for early stopping of those probes and is taken as known to both sides.

    A block would be as small as 0.1 % of the training set: where that is fewer than 8 examples
    (`SMALLEST_BLOCK`), it is joined to the one after it.

    Parameters
    ----------
    fractions : sequence of float
        Where blocks end, as shares of the training set; rising, the last is 1.
    seeds : sequence of int
        As in `fit`.
    order : int
        Draws the order of the examples, and, as in `fit`, that within the training.
    options
        As for `fit`.

    Raises
    ------
    ValueError
        As `fit`; or if the fractions do not rise to 1.
    """
    if list(fractions) != sorted(set(fractions)) or fractions[0] <= 0 or fractions[-1] != 1:
        raise ValueError(f"fractions have to rise from above 0 to 1, and are {tuple(fractions)}")
    training, held_out = _checked(train, validation, n_classes=n_classes)
    ends = tuple(_block_ends(n, fractions) for n in training.sizes.tolist())
    place = np.full(training.labels.shape, -1)  # of each example in the order of sending
    for group, n in enumerate(training.sizes.tolist()):
        place[group, training.labels[group] >= 0] = np.argsort(batch_order(n, order, 0))
    bits = np.repeat([[own[0] * np.log2(n_classes)] for own in ends], len(seeds), axis=1)
    n_blocks = max(len(own) for own in ends)
    for stage in range(n_blocks - 1):
        groups = np.array([group for group, own in enumerate(ends) if stage + 1 < len(own)])
        start, end = (
            np.array([own[number] if number < len(own) else 0 for own in ends])[:, None]
            for number in (stage, stage + 1)
        )
        known = _only(training, (place >= 0) & (place < start))
        sent = _only(training, (place >= start) & (place < end))
        probes = _fit(known, held_out, n_classes, groups, seeds=seeds, order=order, **options)
        for group in groups:
            bits[group] += _bits(probes, sent, group)
    return CodeLength(bits, training.sizes * np.log2(n_classes), ends)


def _block_ends(n: int, fractions: Sequence[float]) -> tuple[int, ...]:
    """After how many of n examples a block of the code ends; the last is n."""
    ends = []
    for fraction in fractions:
        end = round(fraction * n)
        if end - (ends[-1] if ends else 0) >= SMALLEST_BLOCK:
            ends.append(end)
    return (*ends[:-1], n)  # what is left behind the last end is too small for a block


def _only(split: _Checked, there: np.ndarray) -> _Checked:
    """The split with the examples of a mask ``(g, n)`` alone."""
    return replace(split, labels=np.where(there, split.labels, -1), sizes=there.sum(axis=1))


def _bits(probes: Probes, split: _Checked, group: int) -> np.ndarray:
    """Bits of a group's labels under each of its probes, ``(s,)``."""
    device = probes.mean.device
    states, labels = (part.to(device) for part in split.examples(group))
    x, y, _ = _stack([((states - probes.mean[group]) / probes.scale[group], labels)], device)
    logits, _ = _forward(
        [weight[group : group + 1] for weight in probes.weights], x, probes.activation
    )
    return _surprise(logits, y)[0].double().sum(dim=1).cpu().numpy() / np.log(2)


def evaluate(
    train: Split,
    validation: Split,
    test: Split,
    n_classes: int,
    *,
    types: Sequence[ArrayLike] | None = None,
    online: bool = False,
    fitted: Probes | None = None,
    seeds: Sequence[int] = SEEDS,
    order: int = 0,
    **options: object,
) -> pd.DataFrame:
    """Train probes, score them on the test split, and give what the score is to be held against.

    Parameters
    ----------
    train, validation, test : Split
    n_classes : int
    types : sequence of three arrays, optional
        Words (or any names; for a task about sentences the sentences) of the three splits, shaped
        as the labels; what stands where there is no example does not count. If given, the control
        task (`control_labels`) is learned too, with the same states and seeds.
    online : bool
        Also the online code of the training labels (`code_length`).
    fitted : Probes, optional
        What `fit` made of these splits with these options, if it was called already.
    seeds : sequence of int
    order : int
        As in `fit` and `code_length`; also draws the control labels.
    options
        As for `fit`: hidden, learning_rate ...

    Returns
    -------
    DataFrame
        One row per group and seed: ``group`` (its name, or number), ``seed``, ``n_train``,
        ``n_test``, ``epoch``, ``validation_loss``, ``accuracy``, ``majority``; with `types` also
        ``control_accuracy`` and ``selectivity`` (accuracy - control accuracy); with `online` also
        ``bits``, ``uniform_bits`` and ``compression`` (uniform / online). Accuracies are in [0, 1].

    Raises
    ------
    ValueError
        As `fit`, for each of the splits; or if `fitted` has other groups or seeds.
    """
    training, held_out, tested = _checked(train, validation, test, n_classes=n_classes)
    everything = np.arange(len(training.sizes))
    options |= {"seeds": seeds, "order": order}
    probes = fitted or _fit(training, held_out, n_classes, everything, **options)
    if probes.seeds != tuple(seeds) or len(probes.epochs) != len(everything):
        raise ValueError(
            f"the probes given are of {len(probes.epochs)} groups and the seeds {probes.seeds}, "
            f"and not of {len(everything)} and {tuple(seeds)}"
        )
    names = train.names if train.names is not None else everything
    shape = probes.epochs.shape
    columns = {
        "group": np.asarray(names)[:, None],
        "seed": np.array(probes.seeds),
        "n_train": training.sizes[:, None],
        "n_test": tested.sizes[:, None],
        "epoch": probes.epochs,
        "validation_loss": probes.validation_loss,
        "accuracy": _test_accuracy(probes, tested),
        "majority": majority(training.labels, tested.labels, n_classes)[:, None],
    }
    if types is not None:
        control = _control_task((training, held_out, tested), types, n_classes, order)
        learned = _fit(control[0], control[1], n_classes, everything, **options)
        columns["control_accuracy"] = _test_accuracy(learned, control[2])
        columns["selectivity"] = columns["accuracy"] - columns["control_accuracy"]
    if online:
        code = code_length(train, validation, n_classes, **options)
        columns["bits"] = code.bits
        columns["uniform_bits"] = code.uniform_bits[:, None]
        columns["compression"] = code.compression
    return pd.DataFrame(
        {name: np.broadcast_to(column, shape).ravel() for name, column in columns.items()}
    )


def _test_accuracy(probes: Probes, test: _Checked) -> np.ndarray:
    predicted = [logits.argmax(2).cpu().numpy() for _, logits in probes._run(test.states)]
    return accuracy(np.concatenate(predicted), test.labels)


def _control_task(
    splits: Sequence[_Checked], types: Sequence[ArrayLike], n_classes: int, seed: int
) -> list[_Checked]:
    """The splits with control labels in place of their own."""
    if len(types) != len(splits):
        raise ValueError(f"types are of {len(types)} splits: give training, validation and test")
    words, drawn = [], [split.labels.copy() for split in splits]
    for split, own in zip(splits, types, strict=True):
        own = np.asarray(own, dtype=object)
        if own.shape not in (split.labels.shape, split.labels.shape[1:]):
            raise ValueError(
                f"{split.split} split: the types have the shape {own.shape}, and the labels "
                f"{split.labels.shape}"
            )
        words.append(np.broadcast_to(own, split.labels.shape))
    for group in range(len(splits[0].labels)):
        there = [split.labels[group] >= 0 for split in splits]
        found = control_labels(
            [own[group][kept] for own, kept in zip(words, there, strict=True)],
            splits[0].labels[group],
            n_classes,
            seed,
        )
        for own, kept, labels in zip(drawn, there, found, strict=True):
            own[group, kept] = labels
    return [replace(split, labels=own) for split, own in zip(splits, drawn, strict=True)]
