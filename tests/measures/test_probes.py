"""Probes trained many at once against one at a time, a plain torch loop and closed forms."""

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from xlx.measures import probes
from xlx.measures.probes import Fitting, Probes, Split

FEW = {"batch_size": 16, "learning_rate": 0.02, "device": "cpu"}


def toy(sizes: Sequence[int], *, seed: int = 0) -> Split:
    """Groups of the given sizes, filled up with -1; the class shifts the state. One rule a group,
    whatever the seed, so that two draws are two splits of one task."""
    centres = np.random.default_rng(99).normal(size=(len(sizes), 3, 6))
    rng = np.random.default_rng(seed)
    n = max(sizes)
    labels = rng.integers(3, size=(len(sizes), n))
    states = centres[np.arange(len(sizes))[:, None], labels]
    states = 3 + 2 * states + rng.normal(size=states.shape)
    labels[np.arange(n) >= np.array(sizes)[:, None]] = -1
    return Split(states.astype(np.float32), labels)


def part(split: Split, group: int) -> Split:
    """One group of a split, without its padding."""
    labels = np.asarray(split.labels)[group]
    return Split(split.states[group : group + 1, labels >= 0], labels[None, labels >= 0])


def log_probabilities(fitted: Probes, states: np.ndarray) -> np.ndarray:
    """Of linear probes, ``(g, s, n, K)``."""
    x = (torch.tensor(states) - fitted.mean[:, None]) / fitted.scale[:, None]
    x = torch.cat([x, torch.ones_like(x[..., :1])], dim=2)
    logits = torch.einsum("gskd,gnd->gsnk", fitted.weights[0], x)
    return logits.log_softmax(dim=3).numpy()


def by_hand(
    train: Split, validation: Split, k: int, seed: int, how: Fitting
) -> tuple[list[torch.Tensor], int, float]:
    """A probe of one group as one writes it, with torch's AdamW. Weights, epoch and loss."""
    x, y = torch.tensor(train.states[0]), torch.tensor(train.labels[0])
    x_held, y_held = torch.tensor(validation.states[0]), torch.tensor(validation.labels[0])
    if how.standardise:
        mean, scale = x.mean(0), x.std(0, correction=0)
        x, x_held = (x - mean) / scale, (x_held - mean) / scale
    widths = [x.shape[1], k] if how.hidden is None else [x.shape[1], how.hidden, k]
    layers = [torch.nn.Linear(a, b) for a, b in itertools.pairwise(widths)]
    initial = probes.initial_weights(x.shape[1], k, how.hidden, seed)
    with torch.no_grad():
        for layer, weight in zip(layers, initial, strict=True):
            layer.weight.copy_(weight[:, :-1])
            layer.bias.copy_(weight[:, -1])
    between = {"relu": torch.nn.ReLU(), "sigmoid": torch.nn.Sigmoid()}[how.activation]
    model = layers[0] if how.hidden is None else torch.nn.Sequential(layers[0], between, layers[1])
    decay = how.weight_decay / len(x) ** 0.5
    optimizer = torch.optim.AdamW(
        [
            {"params": [layer.weight for layer in layers], "weight_decay": decay},
            {"params": [layer.bias for layer in layers], "weight_decay": 0.0},
        ],
        how.learning_rate,
    )
    best, epoch_of_best, kept = np.inf, 0, []
    for epoch in range(1, how.max_epochs + 1):
        examples = torch.tensor(probes.batch_order(len(x), how.order, epoch))
        for batch in examples.split(min(how.batch_size, max(8, len(x) // 16))):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x[batch]), y[batch]).backward()
            optimizer.step()
        with torch.no_grad():
            loss = torch.nn.functional.cross_entropy(model(x_held), y_held).item()
        if loss < best:
            best, epoch_of_best = loss, epoch
            kept = [
                torch.cat([layer.weight, layer.bias[:, None]], 1).detach().clone()
                for layer in layers
            ]
        else:
            for group in optimizer.param_groups:
                group["lr"] *= how.anneal
        if epoch - epoch_of_best >= how.patience:
            break
    return kept, epoch_of_best, best


# --- the same as one at a time --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hidden", "activation"),
    [(None, "relu"), (5, "relu"), (5, "sigmoid")],
    ids=["linear", "hidden", "sigmoid"],
)
@pytest.mark.parametrize(
    "decay",
    [
        {"weight_decay": 0.0, "anneal": 1.0},
        {"weight_decay": 4.0},
        {"weight_decay": 0.0, "anneal": 1.0, "standardise": False},
    ],
)
def test_a_stack_trains_as_a_plain_loop_does(
    hidden: int | None, activation: str, decay: dict[str, float]
) -> None:
    sizes = [50, 37, 200, 270]
    train, validation = toy(sizes), toy([20, 30, 9, 30], seed=1)
    options = {"hidden": hidden, "activation": activation, "order": 4, "max_epochs": 8} | decay
    fitted = probes.fit(train, validation, 3, seeds=[3, 8], **options, **FEW)
    for group in range(4):
        for index, seed in list(enumerate([3, 8]))[: 1 + (sizes[group] < 100)]:
            weights, epoch, loss = by_hand(
                part(train, group), part(validation, group), 3, seed, Fitting(**options, **FEW)
            )
            assert fitted.epochs[group, index] == epoch
            assert fitted.validation_loss[group, index] == pytest.approx(loss, rel=1e-4, abs=1e-6)
            for weight, expected in zip(fitted.weights, weights, strict=True):
                torch.testing.assert_close(weight[group, index], expected, rtol=1e-3, atol=2e-4)


# --- what a score means ---------------------------------------------------------------------------


def test_control_labels_belong_to_types_and_follow_the_distribution() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{number}" for number in range(6000)]
    train, test = list(rng.permutation(words + words[:500])), [*words[:40], "new", "newer"]
    labels = rng.choice(4, p=[0.5, 0.3, 0.2, 0.0], size=1000)
    one, other = probes.control_labels([train, test], labels, 4, seed=1)
    assert len(one) == len(train)
    label_of = dict(zip(train, one, strict=True))
    assert all(label_of[word] == label for word, label in zip(train, one, strict=True))
    assert [label_of[word] for word in words[:40]] == other[:40].tolist()
    shares = np.bincount(list(label_of.values()), minlength=4) / 6000
    np.testing.assert_allclose(shares, np.bincount(labels, minlength=4) / 1000, atol=0.02)
    assert shares[3] == 0
    # The test split does not change what training gets; the seed does.
    assert np.array_equal(probes.control_labels([train], labels, 4, seed=1)[0], one)
    assert not np.array_equal(probes.control_labels([train], labels, 4, seed=2)[0], one)


# --- the online code ------------------------------------------------------------------------------


def test_the_online_code_is_the_sum_over_its_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    train, validation = toy([64, 40]), toy([20, 20], seed=1)
    monkeypatch.setattr(probes, "FRACTIONS", (0.25, 0.5, 1.0))
    sent_bits, uniform = probes.code_length(train, validation, 3, seeds=[0, 2], order=5, **FEW)
    np.testing.assert_allclose(uniform, np.array([64, 40]) * np.log2(3))
    for group, ends in enumerate(((16, 32, 64), (10, 20, 40))):
        own, held_out = part(train, group), part(validation, group)
        n = ends[-1]
        sent = probes.batch_order(n, 5, 0)  # what is sent when
        place = np.argsort(sent)
        bits = np.full(2, ends[0] * np.log2(3))
        for start, end in itertools.pairwise(ends):
            known = Split(own.states, np.where(place < start, own.labels, -1))
            fitted = probes.fit(known, held_out, 3, seeds=[0, 2], order=5, **FEW)
            block = np.nonzero((place >= start) & (place < end))[0]
            logs = log_probabilities(fitted, own.states[:, block])[0]
            bits -= logs[:, np.arange(len(block)), own.labels[0, block]].sum(1) / np.log(2)
        np.testing.assert_allclose(sent_bits[group], bits, rtol=1e-4)


# --- bad input ------------------------------------------------------------------------------------


def changed(split: Split, *, state: float | None = None, label: int | None = None) -> Split:
    """The split with one state or label of group 1 exchanged."""
    states, labels = split.states.copy(), split.labels.copy()
    if state is not None:
        states[1, 4, 0] = state
    if label is not None:
        labels[1, 4] = label
    return Split(states, labels)


TRAIN, HELD = (toy([20, 20], seed=seed) for seed in range(2))


@pytest.mark.parametrize(
    ("splits", "options", "message"),
    [
        (
            (changed(TRAIN, state=np.nan), HELD),
            {},
            r"training split, group 1: there is a NaN",
        ),
        ((TRAIN, changed(HELD, state=np.inf)), {}, r"validation .* NaN or an infinite"),
        ((changed(TRAIN, label=3), HELD), {}, r"training split, group 1: .* label 3"),
        ((toy([20, 1]), HELD), {}, "training split, group 1: 1 examples, and at least 2"),
        ((TRAIN, toy([9])), {}, r"validation .* have the shape \(1, 9, 6\), and not \(2"),
        ((Split(TRAIN.states, TRAIN.labels * 1.0), HELD), {}, "a whole number an example"),
        ((TRAIN, HELD), {"n_classes": 1}, "at least two classes"),
        ((TRAIN, HELD), {"patience": 0}, "must be a whole number, 1 or more"),
        ((TRAIN, HELD), {"hidden": 4, "activation": "tanh"}, "no activation 'tanh': choose relu"),
    ],
)
def test_what_cannot_be_fitted_is_named(splits: tuple, options: dict, message: str) -> None:
    call = probes.fit if len(splits) == 2 else probes.evaluate_probes
    with pytest.raises(ValueError, match=message):
        call(*splits, **({"n_classes": 3} | FEW | options))
