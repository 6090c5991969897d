"""Many small probes trained at once, each until it is best, as one stack of products.

A group's seeds see the same batches and differ in their initial weights; one product then serves
all of them. It is the same training as one at a time (Adam on the cross-entropy, early stopping by
the validation loss), and a probe depends on its own data, its seed and `order` alone: not on what
else is trained beside it, nor on padding.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from xlx.core.settings import current
from xlx.models.probe_stacks import (
    Fitting,
    Probes,
    Split,
    as_floats,
    batch_order,
    initial_weights,
    logits_of,
    memory_of,
    surprise,
)

SMALLEST_BATCH, FEWEST_STEPS = 8, 16
_BETAS = (0.9, 0.999)
_EPSILON = 1e-8


@dataclass(frozen=True)
class CheckedSplit:
    """A split whose numbers are in order, with labels ``(g, n)`` and the sizes of its groups."""

    states: np.ndarray | torch.Tensor
    labels: np.ndarray
    sizes: np.ndarray
    split: str
    names: Sequence[str] | None

    def name(self, group: int) -> str:
        """Split and group, for messages."""
        called = f" ({self.names[group]})" if self.names is not None else ""
        return f"{self.split} split, group {group}{called}"

    def examples(self, group: int) -> tuple[torch.Tensor, torch.Tensor]:
        """States ``(n, d)`` and labels ``(n,)`` of the examples there are, in their order."""
        there = self.labels[group] >= 0
        states = self.states[group]
        if not there.all():
            states = states[torch.as_tensor(there) if isinstance(states, torch.Tensor) else there]
        return as_floats(states), torch.as_tensor(self.labels[group][there])


def checked(*splits: Split, n_classes: int) -> list[CheckedSplit]:
    """Training, validation and, if given, test split, checked alone and against each other.

    ValueError naming split and group: shapes that do not fit, states that are not finite, labels
    outside 0 to K - 1, a group without examples or with a single one to train on.
    """
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
        labels = np.broadcast_to(labels.astype(np.int64), shape[:2])
        names = split.names if split.names is not None else first.names
        whole = CheckedSplit(split.states, labels, (labels >= 0).sum(axis=1), name, names)
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
    groups: np.ndarray | None = None,
) -> Probes:
    """Probes of all groups, or of some; those of the others stay untrained."""
    device = how.device or current().device or ("cuda" if torch.cuda.is_available() else "cpu")
    device = torch.device(device)
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
        np.zeros((n_groups, len(how.seeds)), dtype=np.int64),
        np.full((n_groups, len(how.seeds)), np.inf),
        tuple(how.seeds),
        how.activation,
    )
    # Groups of like size train together, those with most steps first: see `_train`.
    sizes = training.sizes[groups]
    by_steps = groups[np.lexsort((-sizes, -_batches(sizes, how.batch_size)[1]))]
    for chunk in _chunks(by_steps, training.sizes, held_out.sizes, weights, device):
        _train(probes, training, held_out, chunk, how)
    lost = groups[~np.isfinite(probes.validation_loss[groups]).all(axis=1)]
    if len(lost):
        raise ValueError(
            f"{training.name(lost[0])}: the validation loss is no number; try a lower learning "
            f"rate than {how.learning_rate}"
        )
    return probes


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
        size = max(1, int(memory_of(device) // need))
        yield by_steps[:size]
        by_steps = by_steps[size:]


def stack(
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
    probes: Probes, training: CheckedSplit, held_out: CheckedSplit, chunk: np.ndarray
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
            examples.append((probes.standardised(states, group), labels))
    return [stack(examples, device) for examples in rows]


def _train(
    probes: Probes, training: CheckedSplit, held_out: CheckedSplit, chunk: np.ndarray, how: Fitting
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
    for epoch in range(1, how.max_epochs + 1):
        rates = how.learning_rate * how.anneal**slack
        _epoch(weights, adam, rates, x, y, rows, sizes, epoch, how)
        held = torch.as_tensor(rows, device=device)
        loss = _loss(weights, x_held[held], y_held[held], sizes_held[held], how.activation)
        loss = loss.cpu().numpy()
        columns = groups[rows][:, None], slots
        # A slot may hold a seed that has finished, if its group still trains others: not counted.
        better = (loss < probes.validation_loss[columns]) & (waited < how.patience)
        improved = np.nonzero(better)
        where = tuple(index[improved] for index in np.broadcast_arrays(*columns))
        probes.validation_loss[where], probes.epochs[where] = loss[improved], epoch
        for best, weight in zip(probes.weights, weights, strict=True):
            best[where] = weight[improved]
        waited, slack = np.where(better, 0, waited + 1), slack + ~better
        going = waited < how.patience
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
    how: Fitting,
) -> None:
    """One pass over the examples of the groups in `rows`."""
    n = sizes.cpu().numpy()[rows]
    length, steps = _batches(n, how.batch_size)
    orders = {size: batch_order(size, how.order, epoch) for size in set(n.tolist())}
    batches = np.zeros((len(rows), steps.max(), length.max()), dtype=np.int64)
    for at, (row, own) in enumerate(zip(rows, length, strict=True)):
        order = np.zeros(steps[at] * own, dtype=np.int64)
        order[: n[at]] = orders[n[at]]
        batches[at, : steps[at], :own] = (row * x.shape[1] + order).reshape(-1, own)
    places = torch.as_tensor(batches, device=x.device)
    states, labels = x.view(-1, x.shape[2]), y.view(-1)
    decay = how.weight_decay / np.sqrt(n)
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
            how.activation,
        )
        taken = (epoch - 1) * steps[:active] + step + 1
        adam.step(weights, gradients, taken, rates[:active], decay[:active])


def _batches(n: np.ndarray, batch_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Length of the batches of groups of n examples, and how many there are."""
    length = np.minimum(batch_size, np.maximum(SMALLEST_BATCH, n // FEWEST_STEPS))
    return length, -(-n // length)


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
    logits, units = logits_of(weights, x, activation)
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
    logits, _ = logits_of(weights, x, activation)
    there = torch.arange(x.shape[1], device=x.device) < sizes[:, None]
    return (surprise(logits, y) * there[:, None]).sum(dim=2) / sizes[:, None]
