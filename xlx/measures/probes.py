"""Probes: how much of a label can be read off a frozen state by a linear map or a small network.

A probe is trained per group (a layer, or a layer of a language) and per seed. There are many (7
layers of 36 languages with 6 seeds make 1,512), small and alike, so all train at once, as stacks of
matrices. Again, a stack gives the same bits on a CPU; other stacks agree to rounding in float32.

An accuracy says little by itself. `evaluate_probes` puts beside it what the commonest label gives,
what a probe of the same size learns of random labels (`control_labels`; the difference is the
selectivity), and how many bits it takes to send the labels to who has the states (`code_length`):
few if a short, simple rule holds from few examples on.

Shapes: states ``(g, n, d)`` for g groups of n examples of width d; labels ``(g, n)`` or, the same
for all groups, ``(n,)``: 0 to K - 1, or -1 where there is no example, anywhere and with any states.
What is measured has one row per group and one column per seed, ``(g, s)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy import ndarray
from numpy.typing import ArrayLike
from pandas import DataFrame

from xlx.results import checks
from xlx.results.deferred import deferred
from xlx.results.settings import usual_device

torch = deferred("torch")

SEEDS = tuple(range(6))
ACTIVATIONS = ("relu", "sigmoid")
_MEMORY = {"cpu": 2**25, "cuda": 2**32}  # bytes that the groups trained at once may take
SMALLEST_BATCH, FEWEST_STEPS = 8, 16
#: Blocks of the online code end at these shares of the examples, and have at least so many.
FRACTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
SMALLEST_BLOCK = 8
_BETAS, _EPSILON = (0.9, 0.999), 1e-8


@dataclass(frozen=True)
class Split:
    """Examples of all groups: for training, for validation or for the test."""

    states: ndarray | torch.Tensor  # (g, n, d), any floating type; may be a memory map
    labels: ArrayLike  # whole numbers, (g, n) or (n,)


def stacked(states: Sequence[ndarray], labels: Sequence[ndarray]) -> Split:
    """Several sets of examples, states ``(n_layers, n, d)`` and labels ``(n,)``, as groups: all
    layers of the first, and so on; shorter ones are filled up."""
    n_layers, _, dim = states[0].shape
    longest = max(map(len, labels))
    whole = np.zeros((len(states), n_layers, longest, dim), np.float32)
    filled = np.full((len(states), n_layers, longest), -1)
    for row, (vectors, classes) in enumerate(zip(states, labels, strict=True)):
        whole[row, :, : len(classes)] = vectors
        filled[row, :, : len(classes)] = classes
    return Split(whole.reshape(-1, longest, dim), filled.reshape(-1, longest))


@dataclass(frozen=True)
class Fitting:
    """How probes are fitted; the defaults were chosen on parts of speech, n from 50 to 9,000."""

    hidden: int | None = None  #: Width of a hidden layer; None: a linear probe.
    activation: str = "relu"  #: Of the hidden units; "sigmoid" in X-Probe (section 5.3, Table 2).
    seeds: Sequence[int] = SEEDS  #: Each draws initial weights alone, the same for every group.
    #: Draws the order of the examples, anew in each epoch (`batch_order`), the same for all seeds
    #: and all groups of equal size, so that a group's seeds train in one product.
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
    #: AdamW, with less decay for more data (Loshchilov and Hutter 2019, appendix B.1).
    weight_decay: float = 32.0
    standardise: bool = True  #: Each number of the states, by the training split.
    #: None: that of the settings, or a GPU if there is one.
    device: str | torch.device | None = None

    def __post_init__(self) -> None:
        sizes = {name: getattr(self, name) for name in ("batch_size", "max_epochs", "patience")}
        sizes |= {"hidden": self.hidden, "number of seeds": len(self.seeds)}
        for name, value in sizes.items():
            checks.whole(value, name)
        checks.one_of(self.activation, ACTIVATIONS, "activation")


@dataclass(frozen=True)
class Probes:
    """Trained probes of all groups and seeds.

    ``weights`` for standardised states: ``(g, s, K, d + 1)``, whose last column is the bias, or,
    with a hidden layer, ``(g, s, hidden, d + 1)`` and ``(g, s, K, hidden + 1)``.
    """

    weights: tuple[torch.Tensor, ...]
    mean: torch.Tensor  # (g, d), of the training states; 0, and the scale 1, if not standardised
    scale: torch.Tensor
    epochs: ndarray  # (g, s): the epoch, from 1, whose weights were kept
    validation_loss: ndarray  # (g, s): mean cross-entropy at that epoch, in nats
    seeds: tuple[int, ...]
    activation: str = "relu"

    def predict(
        self, states: ndarray | torch.Tensor, groups: Sequence[int] | None = None
    ) -> ndarray:
        """The likeliest class of each state ``(g, n, d)``: ``(g, s, n)`` int64.

        ``groups``: those whose states these are, in their order; None: all.
        """
        groups, dim = range(len(self.mean)) if groups is None else groups, self.mean.shape[1]
        if len(states.shape) != 3 or tuple(states.shape[::2]) != (len(groups), dim):
            raise ValueError(
                f"the states have the shape {tuple(states.shape)}, and the probes are for "
                f"({len(groups)}, n, {dim}): (groups, examples, width)"
            )
        scores = (self.logits(as_floats(x), group) for group, x in zip(groups, states, strict=True))
        return np.stack([logits.argmax(1).cpu().numpy() for logits in scores])

    def standardised(self, states: torch.Tensor, group: int) -> torch.Tensor:
        """States of a group, less the mean of its training states and over their deviation."""
        return (states - self.mean[group]) / self.scale[group]

    def logits(self, states: torch.Tensor, group: int) -> torch.Tensor:
        """What each of a group's probes gives its states ``(n, d)``: ``(s, K, n)``."""
        x = self.standardised(states.to(self.mean.device), group)
        x = torch.nn.functional.pad(x, (0, 1), value=1.0)[None]
        return logits_of([layer[group, None] for layer in self.weights], x, self.activation)[0]


def initial_weights(
    dim: int, n_classes: int, hidden: int | None, seed: int
) -> tuple[torch.Tensor, ...]:
    """The weights a seed starts from, ``(outputs, inputs + 1)`` a layer, the bias last: uniform
    between ±1/√inputs, as `torch.nn.Linear` draws them, by the CPU's generator."""
    generator = torch.Generator().manual_seed(seed)
    widths = (dim, n_classes) if hidden is None else (dim, hidden, n_classes)
    return tuple(
        (2 * torch.rand(outputs, inputs + 1, generator=generator) - 1) / inputs**0.5
        for inputs, outputs in pairwise(widths)
    )


def batch_order(n: int, order: int, epoch: int) -> ndarray:
    """The order of a group's n examples in an epoch (from 1), to be cut into batches."""
    return np.random.default_rng((order, n, epoch)).permutation(n)


def as_floats(states: ndarray | torch.Tensor) -> torch.Tensor:
    """States as a float32 tensor without gradients."""
    if isinstance(states, torch.Tensor):
        return states.detach().float()
    return torch.tensor(np.asarray(states, np.float32))


#: Weights of layers, as in `Probes`.
Layers = "Sequence[torch.Tensor]"
#: Of groups the standardised states with a one behind each ``(g, n, d + 1)``, labels ``(g, n)``,
#: sizes ``(g,)``; what fills up the shorter ones is behind.
Data = "tuple[torch.Tensor, torch.Tensor, ndarray]"


def logits_of(weights: Layers, x: torch.Tensor, activation: str) -> torch.Tensor:
    """Logits ``(g, s, K, n)`` of states ``(g, n, d + 1)``; examples come last for speed."""
    g, s, outputs, _ = weights[0].shape
    first = torch.bmm(weights[0].flatten(1, 2), x.mT).view(g, s, outputs, -1)
    if len(weights) == 1:
        return first
    units = first.relu_() if activation == "relu" else first.sigmoid_()
    return torch.matmul(weights[1][..., :-1], units) + weights[1][..., -1:]


def surprise(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """-log p of the right class in nats, ``(g, s, n)``."""
    g, s, _, n = logits.shape
    right = logits.gather(2, y[:, None, None, :].expand(g, s, 1, n)).squeeze(2)
    return logits.logsumexp(2) - right


@dataclass(frozen=True)
class CheckedSplit:
    """A split whose numbers are in order."""

    states: ndarray | torch.Tensor
    labels: ndarray  # (g, n)
    sizes: ndarray  # (g,)
    split: str

    def name(self, group: int) -> str:
        """Split and group, for messages."""
        return f"{self.split} split, group {group}"

    def examples(self, group: int) -> tuple[torch.Tensor, torch.Tensor]:
        """States ``(n, d)`` and labels ``(n,)`` of the examples there are, in their order."""
        there = self.labels[group] >= 0
        states = self.states[group]
        if not there.all():
            states = states[torch.as_tensor(there) if isinstance(states, torch.Tensor) else there]
        return as_floats(states), torch.as_tensor(self.labels[group][there])


def checked(*splits: Split, n_classes: int) -> list[CheckedSplit]:
    """Training, validation and, if given, test split, checked alone and against each other;
    ValueError naming split and group."""
    if n_classes < 2:
        raise ValueError(f"n_classes is {n_classes}: a probe tells at least two classes apart")
    first = splits[0]
    groups, _, dim = first.states.shape if len(first.states.shape) == 3 else (0, 0, 0)
    in_order = []
    for split, name in zip(splits, ("training", "validation", "test"), strict=False):
        shape, labels = tuple(split.states.shape), split.labels
        labels = labels.cpu().numpy() if isinstance(labels, torch.Tensor) else np.asarray(labels)
        if len(shape) != 3 or shape[::2] != (groups, dim):
            raise ValueError(
                f"{name} split: the states have the shape {shape}, and not ({groups}, n, {dim}), "
                "(groups, examples, width), as those of the training split"
            )
        if labels.dtype.kind not in "iu" or labels.shape not in (shape[:2], shape[1:2]):
            raise ValueError(
                f"{name} split: the labels are {labels.dtype} of the shape {labels.shape}: give a "
                f"whole number an example, {shape[:2]} or {shape[1:2]}"
            )
        labels = np.broadcast_to(labels.astype(int), shape[:2])
        whole = CheckedSplit(split.states, labels, (labels >= 0).sum(1), name)
        for group in range(groups):
            if problem := _problem(whole, group, n_classes):
                raise ValueError(f"{whole.name(group)}: {problem}")
        in_order.append(whole)
    return in_order


def _problem(split: CheckedSplit, group: int, n_classes: int) -> str | None:
    labels, least = split.labels[group], 2 if split.split == "training" else 1
    outside = labels[(labels < -1) | (labels >= n_classes)]
    if len(outside):
        return f"there is a label {outside[0]}, and the classes are 0 to {n_classes - 1}"
    if split.sizes[group] < least:
        return f"{split.sizes[group]} examples, and at least {least} are needed"
    if not torch.isfinite(split.examples(group)[0].sum()):
        return "there is a NaN or an infinite number in its states"
    return None


def fitted_probes(
    training: CheckedSplit,
    held_out: CheckedSplit,
    n_classes: int,
    how: Fitting,
    groups: ndarray | None = None,
) -> Probes:
    """Probes of all groups, or of some; those of the others stay untrained."""
    device = torch.device(how.device or usual_device())
    groups = np.arange(len(training.sizes)) if groups is None else groups
    n_groups, dim = len(training.sizes), training.states.shape[2]
    initial = [initial_weights(dim, n_classes, how.hidden, seed) for seed in how.seeds]
    weights = tuple(
        torch.stack(layer).to(device).repeat(n_groups, 1, 1, 1)
        for layer in zip(*initial, strict=True)
    )
    probes = Probes(
        weights,
        torch.empty(n_groups, dim, device=device),
        torch.empty(n_groups, dim, device=device),
        np.zeros((n_groups, len(how.seeds)), int),
        np.full((n_groups, len(how.seeds)), np.inf),
        tuple(how.seeds),
        how.activation,
    )
    # Groups of like size train together, those with most steps first: see `_train`.
    sizes, n_held = training.sizes[groups], held_out.sizes.max()
    by_steps = groups[np.lexsort((-sizes, -_batches(sizes, how.batch_size)[1]))]
    numbers = (sizes.max() + n_held) * (dim + 1) + sum(
        5 * weight[0].numel() + n_held * weight.shape[1] * weight.shape[2] for weight in weights
    )
    together = max(1, int(_MEMORY["cpu" if device.type == "cpu" else "cuda"] // (4 * numbers)))
    for start in range(0, len(by_steps), together):
        _train(probes, training, held_out, by_steps[start : start + together], how)
    lost = groups[~np.isfinite(probes.validation_loss[groups]).all(1)]
    if len(lost):
        raise ValueError(
            f"{training.name(lost[0])}: the validation loss is no number; try a lower learning "
            f"rate than {how.learning_rate}"
        )
    return probes


def _load(
    probes: Probes,
    training: CheckedSplit,
    held_out: CheckedSplit,
    chunk: ndarray,
    standardise: bool,
) -> Iterator[Data]:
    """Both splits of some groups, standardised or not; sets the probes' mean and scale."""
    for split in (training, held_out):
        x, y = [], []
        for group in chunk:
            states, labels = (part.to(probes.mean.device) for part in split.examples(group))
            if split is training:
                mean = states.mean(0)
                scale = (states - mean).square_().mean(0).sqrt_()
                # A dimension that only varies by rounding has nothing to say: do not blow it up.
                scale[scale <= 1e-6 * mean.abs()] = 1
                if not standardise:
                    mean, scale = torch.zeros_like(mean), torch.ones_like(scale)
                probes.mean[group], probes.scale[group] = mean, scale
            x.append(torch.nn.functional.pad(probes.standardised(states, group), (0, 1), value=1.0))
            y.append(labels)
        padded = (torch.nn.utils.rnn.pad_sequence(rows, batch_first=True) for rows in (x, y))
        yield *padded, split.sizes[chunk]


def _train(
    probes: Probes, training: CheckedSplit, held_out: CheckedSplit, chunk: ndarray, how: Fitting
) -> None:
    """Train the probes of some groups, and write what is best into `probes`.

    A step of an epoch concerns the groups that still have examples, the first few by their order.
    A group leaves when all its seeds have finished; until then one that has is not counted.
    """
    device = probes.mean.device
    data, (x_held, y_held, sizes_held) = _load(probes, training, held_out, chunk, how.standardise)
    rows = np.arange(len(chunk))  # of x and y, that still train
    waited = np.zeros((len(rows), len(probes.seeds)), int)  # epochs since the best one
    slack = np.zeros_like(waited)  # epochs that were not the best so far
    adam = _Adam([weight[torch.as_tensor(chunk, device=device)] for weight in probes.weights])
    for epoch in range(1, how.max_epochs + 1):
        _epoch(adam, how.learning_rate * how.anneal**slack, data, rows, epoch, how)
        held = x_held[rows], y_held[rows], sizes_held[rows]
        loss, groups = _loss(adam.weights, held, how.activation).cpu().numpy(), chunk[rows]
        better = (loss < probes.validation_loss[groups]) & (waited < how.patience)
        row, seed = np.nonzero(better)
        where = groups[row], seed
        probes.validation_loss[where], probes.epochs[where] = loss[row, seed], epoch
        for best, weight in zip(probes.weights, adam.weights, strict=True):
            best[where] = weight[row, seed]
        waited, slack = np.where(better, 0, waited + 1), slack + ~better
        going = np.nonzero((waited < how.patience).any(1))[0]
        if len(going) < len(rows):
            rows, waited, slack = rows[going], waited[going], slack[going]
            adam.take(going)
        if not len(going):
            return


class _Adam:
    """Adam (Kingma and Ba 2015) with decoupled decay, on stacks whose rows take their own steps."""

    def __init__(self, weights: Layers) -> None:
        self.weights = list(weights)
        self.moments = [(torch.zeros_like(weight), torch.zeros_like(weight)) for weight in weights]

    def take(self, rows: ndarray) -> None:
        """Keep some rows."""
        self.weights = [weight[rows] for weight in self.weights]
        self.moments = [(first[rows], second[rows]) for first, second in self.moments]

    def step(self, gradients: Layers, steps: ndarray, rates: ndarray, decay: ndarray) -> None:
        """Move the first rows by their steps so far, rates ``(rows, seeds)`` and decay."""
        corrections = [1 - beta ** steps[:, None].astype(float) for beta in _BETAS]
        # rate · (m / c1) / (√(v / c2) + ε) = m / (√v · factor + offset)
        factor, offset, shrunk = (
            torch.as_tensor(values, dtype=torch.float32, device=gradients[0].device)[
                ..., None, None
            ]
            for values in (
                corrections[0] / (rates * np.sqrt(corrections[1])),
                _EPSILON * corrections[0] / rates,
                1 - rates * decay[:, None],
            )
        )
        for weight, gradient, moments in zip(self.weights, gradients, self.moments, strict=True):
            weight, first, second = (x[: len(steps)] for x in (weight, *moments))
            weight[..., :-1].mul_(shrunk)
            first.lerp_(gradient, 1 - _BETAS[0])
            second.mul_(_BETAS[1]).addcmul_(gradient, gradient, value=1 - _BETAS[1])
            weight.addcdiv_(first, second.sqrt().mul_(factor).add_(offset), value=-1)


def _epoch(
    adam: _Adam, rates: ndarray, data: Data, rows: ndarray, epoch: int, how: Fitting
) -> None:
    """One pass over the examples of the groups in `rows`."""
    x, y, sizes = data
    n = sizes[rows]
    length, steps = _batches(n, how.batch_size)
    orders = {size: batch_order(size, how.order, epoch) for size in set(n.tolist())}
    batches = np.zeros((len(rows), steps.max(), length.max()), int)
    for at, (row, size) in enumerate(zip(rows, length, strict=True)):
        order = np.zeros(steps[at] * size, int)
        order[: n[at]] = orders[n[at]]
        batches[at, : steps[at], :size] = (row * x.shape[1] + order).reshape(-1, size)
    places = torch.as_tensor(batches, device=x.device)
    states, labels = x.view(-1, x.shape[2]), y.view(-1)
    decay = how.weight_decay / np.sqrt(n)
    for step in range(steps.max()):
        active = int((steps > step).sum())
        counts = np.minimum(n[:active] - step * length[:active], length[:active])
        batch = places[:active, step, : counts.max()]
        picked = batch.reshape(-1)
        here = states[picked].view(*batch.shape, -1), labels[picked].view(batch.shape), counts
        weights = [weight[:active].requires_grad_() for weight in adam.weights]
        gradients = torch.autograd.grad(_loss(weights, here, how.activation).sum(), weights)
        taken = (epoch - 1) * steps[:active] + step + 1
        adam.step(gradients, taken, rates[:active], decay[:active])


def _batches(n: ndarray, batch_size: int) -> tuple[ndarray, ndarray]:
    """Length of the batches of groups of n examples, and how many there are."""
    length = np.minimum(batch_size, np.maximum(SMALLEST_BATCH, n // FEWEST_STEPS))
    return length, -(-n // length)


def _loss(weights: Layers, data: Data, activation: str) -> torch.Tensor:
    """Mean cross-entropy of each probe over its group's examples, in nats ``(g, s)``."""
    x, y, sizes = data
    counts = torch.as_tensor(sizes, device=x.device)[:, None]
    there = torch.arange(x.shape[1], device=x.device) < counts
    nats = surprise(logits_of(weights, x, activation), y)
    return (nats * there[:, None]).sum(2) / counts


def fit(train: Split, validation: Split, n_classes: int, **options: object) -> Probes:
    """Train one probe per group and seed with Adam on the cross-entropy, each until it is best.

    A probe keeps the weights of the epoch with the lowest loss on the validation split, and ends
    after `patience` epochs without a lower one. Splits have the same groups in the same order;
    states are standardised by the training split. ``n_classes`` is K (a class may have no example),
    ``options`` are fields of `Fitting`. ValueError as `checked`, naming split and group.
    """
    splits = checked(train, validation, n_classes=n_classes)
    return fitted_probes(*splits, n_classes, Fitting(**options))


def accuracy(predicted: ndarray, labels: ArrayLike) -> ndarray:
    """Share of the examples whose class was predicted ``(g, s, n)``: ``(g, s)`` in [0, 1]."""
    labels = np.broadcast_to(labels, (len(predicted), predicted.shape[2]))
    there = labels >= 0
    right = (predicted == labels[:, None]) & there[:, None]
    return right.sum(2) / there.sum(1)[:, None]


def majority(train_labels: ArrayLike, test_labels: ArrayLike, n_classes: int) -> ndarray:
    """Accuracy ``(g,)`` on the test of the commonest class of training, of equals the lowest."""
    train_labels, test_labels = np.atleast_2d(train_labels), np.atleast_2d(test_labels)
    counts = (train_labels[:, :, None] == np.arange(n_classes)).sum(1)
    commonest = counts.argmax(1)[:, None]
    right = (test_labels == commonest).sum(1)
    return right / (np.broadcast_to(test_labels, (len(right), test_labels.shape[1])) >= 0).sum(1)


def control_labels(
    types: Sequence[Sequence[str]], labels: ArrayLike | None, n_classes: int, seed: int
) -> list[ndarray]:
    """Labels of the control task of Hewitt and Liang (2019): each word type has a random one.

    Whatever a probe learns of them it has memorised: of a word that the training split does not
    have, the label cannot be known. A sentence counts by its first word.

    ``types`` are the words of one or several splits, each of the result int64 ``(n,)``; a type has
    the same label in all. Labels are drawn like ``labels``, those of the training split, in the
    order of first appearance. Without these they are dealt out evenly, as few types need it: from
    the commonest type to the rarest, of equals in random order, that which came least often so far.
    """
    rng, flat = np.random.default_rng(seed), np.concatenate([np.array(x, object) for x in types])
    if labels is None:
        words, codes, counts = np.unique(flat, return_inverse=True, return_counts=True)
        order, dealt = rng.permutation(len(words)), np.zeros(n_classes, int)
        drawn = np.zeros(len(words), int)
        for word in order[np.argsort(-counts[order], kind="stable")]:
            drawn[word] = dealt.argmin()
            dealt[drawn[word]] += counts[word]
    else:
        labels, codes = np.asarray(labels), pd.factorize(flat)[0]
        shares = np.bincount(labels[labels >= 0], minlength=n_classes)
        ends = np.cumsum(shares) / shares.sum()
        drawn = np.searchsorted(ends, rng.random(codes.max() + 1), "right")
    return np.split(drawn[codes], np.cumsum([len(split) for split in types])[:-1])


def code_length(
    train: Split, validation: Split, n_classes: int, **options: object
) -> tuple[ndarray, ndarray]:
    """Bits of the training labels for who has the states, ``(g, s)``, and for who has not ``(g,)``.

    The online (prequential) code (Blier and Ollivier 2018, Voita and Titov 2020): the examples are
    sent in blocks, in random order (of ``order``). The first costs log2 K bits a label; each other
    one is coded by a probe trained on all before it, -log2 p(label) each. The validation split is
    known to both sides. Blocks end at the `FRACTIONS` of the training set; one of less than
    `SMALLEST_BLOCK` is joined to the next. Without the states labels cost n log2 K. Else as `fit`.
    """
    how = Fitting(**options)
    training, held_out = checked(train, validation, n_classes=n_classes)
    ends = tuple(_block_ends(n) for n in training.sizes.tolist())
    place = np.full(training.labels.shape, -1)  # of each example in the order of sending
    for group, n in enumerate(training.sizes.tolist()):
        place[group, training.labels[group] >= 0] = np.argsort(batch_order(n, how.order, 0))
    bits = np.repeat([[places[0] * np.log2(n_classes)] for places in ends], len(how.seeds), axis=1)
    for stage in range(max(map(len, ends)) - 1):
        groups = np.array([group for group, places in enumerate(ends) if stage + 1 < len(places)])
        start, end = (
            np.array([places[number] if number < len(places) else 0 for places in ends])[:, None]
            for number in (stage, stage + 1)
        )
        known = _only(training, (place >= 0) & (place < start))
        sent = _only(training, (place >= start) & (place < end))
        probes = fitted_probes(known, held_out, n_classes, how, groups)
        for group in groups:
            bits[group] += _bits(probes, sent, group)
    return bits, training.sizes * np.log2(n_classes)


def _block_ends(n: int) -> tuple[int, ...]:
    """After how many of n examples a block of the code ends; the last is n."""
    ends = []
    for fraction in FRACTIONS:
        end = round(fraction * n)
        if end - (ends[-1] if ends else 0) >= SMALLEST_BLOCK:
            ends.append(end)
    return (*ends[:-1], n)  # what is left behind the last end is too small for a block


def _only(split: CheckedSplit, there: ndarray) -> CheckedSplit:
    """The split with the examples of a mask ``(g, n)`` alone."""
    return replace(split, labels=np.where(there, split.labels, -1), sizes=there.sum(1))


def _bits(probes: Probes, split: CheckedSplit, group: int) -> ndarray:
    """Bits of a group's labels under each of its probes, ``(s,)``."""
    states, labels = split.examples(group)
    logits = probes.logits(states, group)[None]
    return surprise(logits, labels.to(logits.device)[None])[0].double().sum(
        1
    ).cpu().numpy() / np.log(2)


def evaluate_probes(
    train: Split,
    validation: Split,
    test: Split,
    n_classes: int,
    *,
    types: Sequence[ArrayLike] | None = None,
    fitted: Probes | None = None,
    **options: object,
) -> DataFrame:
    """Train probes, score them on the test split, and give what the score is to be held against.

    ``types``: words of the three splits, shaped as the labels, for the control task
    (`control_labels`, drawn by ``order``), which is learned with the same seeds. ``fitted``: what
    `fit` made of these splits with these options, if it was called already. ``options`` are fields
    of `Fitting`.

    Returns one row per group and seed: ``group`` (its name, or number), ``seed``, ``n_train``,
    ``n_test``, ``epoch``, ``validation_loss``, ``accuracy``, ``majority``; with `types` also
    ``control_accuracy`` and ``selectivity``. Accuracies are in [0, 1]. ValueError as `fit`.
    """
    splits = checked(train, validation, test, n_classes=n_classes)
    training, held_out, tested = splits
    how = Fitting(**options)
    probes = fitted or fitted_probes(training, held_out, n_classes, how)
    columns = {
        "group": np.arange(len(training.sizes))[:, None],
        "seed": np.array(probes.seeds),
        "n_train": training.sizes[:, None],
        "n_test": tested.sizes[:, None],
        "epoch": probes.epochs,
        "validation_loss": probes.validation_loss,
        "accuracy": accuracy(probes.predict(test.states), tested.labels),
        "majority": majority(training.labels, tested.labels, n_classes)[:, None],
    }
    if types is not None:
        control = _control_task(splits, types, n_classes, how.order)
        learned = fitted_probes(*control[:2], n_classes, how)
        reached = accuracy(learned.predict(test.states), control[2].labels)
        columns["control_accuracy"] = reached
        columns["selectivity"] = columns["accuracy"] - reached
    shape = probes.epochs.shape
    return DataFrame(
        {name: np.broadcast_to(column, shape).ravel() for name, column in columns.items()}
    )


def _control_task(
    splits: Sequence[CheckedSplit], types: Sequence[ArrayLike], n_classes: int, seed: int
) -> list[CheckedSplit]:
    """The splits with control labels in place of their own."""
    drawn = [split.labels.copy() for split in splits]
    words = [
        np.broadcast_to(np.array(x, object), y.shape) for x, y in zip(types, drawn, strict=True)
    ]
    for group in range(len(drawn[0])):
        there = [labels[group] >= 0 for labels in drawn]
        known = [names[group][at] for names, at in zip(words, there, strict=True)]
        control = control_labels(known, drawn[0][group], n_classes, seed)
        for labels, at, new in zip(drawn, there, control, strict=True):
            labels[group, at] = new
    return [replace(split, labels=labels) for split, labels in zip(splits, drawn, strict=True)]
