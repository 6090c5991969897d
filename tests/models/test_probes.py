"""Probes trained many at once against one at a time, a plain torch loop and closed forms."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from xlx.measures import probe_training, probes
from xlx.measures.probe_training import Fitting, Probes, Split

HIDDEN = pytest.mark.parametrize("hidden", [None, 5], ids=["linear", "hidden"])
FEW = {"batch_size": 16, "learning_rate": 0.02, "device": "cpu"}


def toy(
    sizes: Sequence[int], *, d: int = 6, k: int = 3, noise: float = 1.0, seed: int = 0
) -> Split:
    """Groups of the given sizes, filled up with -1; the class shifts the state. One rule a group,
    whatever the seed, so that two draws are two splits of one task."""
    centres = np.random.default_rng(99).normal(size=(len(sizes), k, d))
    rng = np.random.default_rng(seed)
    n = max(sizes)
    labels = rng.integers(k, size=(len(sizes), n))
    states = centres[np.arange(len(sizes))[:, None], labels]
    states = 3 + 2 * states + noise * rng.normal(size=states.shape)
    labels[np.arange(n) >= np.array(sizes)[:, None]] = -1
    return Split(states.astype(np.float32), labels)


def part(split: Split, group: int) -> Split:
    """One group of a split, without its padding."""
    labels = np.asarray(split.labels)[group]
    return Split(split.states[group : group + 1, labels >= 0], labels[None, labels >= 0])


def assert_same(one: Probes, other: Probes) -> None:
    """Equal to the rounding of float32."""
    assert np.array_equal(one.epochs, other.epochs)
    np.testing.assert_allclose(one.validation_loss, other.validation_loss, rtol=1e-4, atol=1e-6)
    for weight, expected in zip(one.weights, other.weights, strict=True):
        torch.testing.assert_close(weight, expected, rtol=1e-3, atol=2e-4)


def shaped(found: Probes, groups: list[int], seeds: list[int]) -> Probes:
    """The probes of some groups and, by place, seeds."""
    some = found.take(groups)
    return replace(
        some,
        weights=tuple(weight[:, seeds] for weight in some.weights),
        epochs=some.epochs[:, seeds],
        validation_loss=some.validation_loss[:, seeds],
    )


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
    mean, scale = x.mean(0), x.std(0, correction=0)
    x, x_held = (x - mean) / scale, (x_held - mean) / scale
    widths = [x.shape[1], k] if how.hidden is None else [x.shape[1], how.hidden, k]
    layers = [torch.nn.Linear(a, b) for a, b in itertools.pairwise(widths)]
    initial = probe_training.initial_weights(x.shape[1], k, how.hidden, seed)
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
        examples = torch.tensor(probe_training.batch_order(len(x), how.order, epoch))
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
@pytest.mark.parametrize("decay", [{"weight_decay": 0.0, "anneal": 1.0}, {"weight_decay": 4.0}])
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


@HIDDEN
def test_a_probe_does_not_depend_on_what_trains_beside_it(hidden: int | None) -> None:
    train, validation = toy([40, 33, 40, 21]), toy([15, 20, 20, 11], seed=1)
    together = probes.fit(train, validation, 3, hidden=hidden, seeds=[0, 1, 5], **FEW)
    for group in range(4):
        for index, seed in enumerate([0, 1, 5]):
            alone = probes.fit(
                part(train, group), part(validation, group), 3, hidden=hidden, seeds=[seed], **FEW
            )
            assert_same(shaped(together, [group], [index]), alone)
            assert torch.equal(together.mean[group], alone.mean[0])
            assert torch.equal(together.scale[group], alone.scale[0])


@HIDDEN
def test_memory_only_sets_how_many_train_at_once(
    hidden: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    train, validation = toy([40, 33, 40]), toy([15, 20, 20], seed=1)
    wide = probes.fit(train, validation, 3, hidden=hidden, **FEW)
    predicted = wide.predict(validation.states)
    monkeypatch.setattr(probe_training, "_MEMORY", {"cpu": 1, "cuda": 1})
    assert_same(probes.fit(train, validation, 3, hidden=hidden, **FEW), wide)
    assert np.array_equal(wide.predict(validation.states), predicted)


def test_linear_probes_agree_bit_for_bit_when_run_again() -> None:
    train, validation = toy([40, 33]), toy([15, 20], seed=1)
    one, other = (probes.fit(train, validation, 3, **FEW) for _ in range(2))
    assert torch.equal(one.weights[0], other.weights[0])
    assert np.array_equal(one.validation_loss, other.validation_loss)


@HIDDEN
@settings(max_examples=10)
@given(data=st.data())
def test_padding_anywhere_with_anything_makes_no_difference(
    hidden: int | None, data: st.DataObject
) -> None:
    plain = [toy([20, 20]), toy([12, 12], seed=1)]
    padded = []
    for split in plain:
        n = split.states.shape[1]
        extra = data.draw(st.integers(1, 9))
        places = data.draw(st.permutations(range(n + extra)))
        states = np.full((2, n + extra, 6), np.nan, dtype=np.float32)
        labels = np.full((2, n + extra), -1)
        kept = np.sort(places[:n])
        states[:, kept], labels[:, kept] = split.states, split.labels
        padded.append(Split(states, labels))
    options = {"hidden": hidden, "seeds": [0, 1], "max_epochs": 4} | FEW
    one, other = probes.fit(*plain, 3, **options), probes.fit(*padded, 3, **options)
    assert_same(one, other)
    assert torch.equal(one.mean, other.mean)


def test_seeds_differ_in_their_initial_weights_and_order_in_the_batches() -> None:
    first, second = (probe_training.initial_weights(10_000, 3, None, seed)[0] for seed in (0, 1))
    assert not torch.equal(first, second)
    assert torch.equal(first, probe_training.initial_weights(10_000, 3, None, 0)[0])
    assert float(first.abs().max()) <= 0.01
    assert float(first.std()) == pytest.approx(0.01 / 3**0.5, rel=0.02)  # uniform in ±1/√d
    widths = [tuple(weight.shape) for weight in probe_training.initial_weights(4, 3, 7, 0)]
    assert widths == [(7, 5), (3, 8)]
    orders = {
        tuple(probe_training.batch_order(9, order, epoch)) for order in (0, 1) for epoch in (1, 2)
    }
    assert len(orders) == 4
    assert all(sorted(order) == list(range(9)) for order in orders)
    train, validation = toy([40]), toy([15], seed=1)
    one, other = (probes.fit(train, validation, 3, order=order, **FEW) for order in (0, 1))
    assert not torch.equal(one.weights[0], other.weights[0])


@HIDDEN
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_trains_as_the_processor_does(hidden: int | None) -> None:
    train, validation = toy([40, 33]), toy([15, 20], seed=1)
    options = {"hidden": hidden, "max_epochs": 5}
    on_cpu = probes.fit(train, validation, 3, **options, **FEW)
    on_cuda = probes.fit(train, validation, 3, **options, **(FEW | {"device": "cuda"}))
    np.testing.assert_allclose(on_cuda.validation_loss, on_cpu.validation_loss, rtol=1e-3)
    again = probes.evaluate_probes(train, validation, validation, 3, online=True)
    assert again["accuracy"].between(0, 1).all()


# --- when to stop ---------------------------------------------------------------------------------


@HIDDEN
def test_the_best_epoch_is_kept_where_the_validation_loss_rises(hidden: int | None) -> None:
    # The validation labels are wrong: every epoch of learning makes the loss worse after the first.
    train = toy([64], k=2, noise=0.1)
    validation = toy([32], k=2, noise=0.1, seed=1)
    wrong = Split(validation.states, 1 - validation.labels)
    options = {"hidden": hidden, "seeds": [0, 1], "patience": 4} | FEW
    stopped = probes.fit(train, wrong, 2, **options)
    assert (stopped.epochs == 1).all()
    one_epoch = probes.fit(train, wrong, 2, **(options | {"max_epochs": 1}))
    assert_same(stopped, one_epoch)


def test_every_probe_stops_on_its_own() -> None:
    # Group 0 must stop at once, group 1 learns until the last epoch allowed.
    train, validation = toy([64, 64], k=2, noise=0.1), toy([32, 32], k=2, noise=0.1, seed=1)
    labels = np.stack([1 - validation.labels[0], validation.labels[1]])
    options = {"max_epochs": 30, "weight_decay": 0, "anneal": 1} | FEW
    fitted = probes.fit(train, Split(validation.states, labels), 2, **options)
    assert (fitted.epochs[0] == 1).all()
    assert (fitted.epochs[1] == 30).all()


def test_the_validation_loss_is_that_of_the_weights_kept() -> None:
    train, validation = toy([50, 40]), toy([20, 30], seed=1)
    fitted = probes.fit(train, validation, 3, **FEW)
    logs = log_probabilities(fitted, validation.states)
    assert logs.shape == (2, 6, 30, 3)
    for group in range(2):
        there = validation.labels[group] >= 0
        own = logs[group][:, there][:, np.arange(there.sum()), validation.labels[group][there]]
        np.testing.assert_allclose(-own.mean(-1), fitted.validation_loss[group], rtol=1e-4)
    assert np.array_equal(fitted.predict(validation.states), logs.argmax(-1))


# --- what they learn ------------------------------------------------------------------------------


def test_only_a_hidden_layer_learns_exclusive_or() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(2, size=(3, 400, 2))
    splits = [
        Split((own + 0.05 * rng.normal(size=own.shape))[None].astype(np.float32), own.sum(1) % 2)
        for own in bits
    ]
    linear = probes.evaluate_probes(*splits, 2, **FEW)
    network = probes.evaluate_probes(*splits, 2, hidden=16, patience=20, **FEW)
    assert linear["accuracy"].max() < 0.85
    assert network["accuracy"].mean() > 0.95


@pytest.mark.parametrize("dtype", [np.float16, np.float64, "tensor"])
def test_states_of_any_floating_type(dtype: object) -> None:
    train, validation = toy([40]), toy([15], seed=1)
    splits = [
        Split(
            torch.tensor(split.states) if dtype == "tensor" else split.states.astype(dtype),
            torch.tensor(split.labels) if dtype == "tensor" else split.labels,
        )
        for split in (train, validation)
    ]
    fitted = probes.fit(*splits, 3, max_epochs=3, **FEW)
    expected = probes.fit(train, validation, 3, max_epochs=3, **FEW)
    np.testing.assert_allclose(fitted.validation_loss, expected.validation_loss, rtol=1e-2)


def test_a_dimension_that_never_varies_and_any_scale_are_harmless() -> None:
    train, validation = toy([60]), toy([30], seed=1)
    plain = probes.fit(train, validation, 3, **FEW)
    scales = np.float32(2) ** np.arange(-6, 6, 2)  # powers of two: the division is exact
    scaled = [Split(split.states * scales, split.labels) for split in (train, validation)]
    assert_same(probes.fit(*scaled, 3, **FEW), plain)
    constant = []
    for split in (train, validation):
        states = split.states.copy()
        states[..., 2] = 0.1
        constant.append(Split(states, split.labels))
    fitted = probes.fit(*constant, 3, **FEW)
    assert float(fitted.scale[0, 2]) == 1
    assert np.isfinite(fitted.validation_loss).all()


def test_a_class_that_training_never_shows_is_only_missed() -> None:
    train, validation, test = toy([60], k=4), toy([30], k=4, seed=1), toy([40], k=4, seed=2)
    without = np.where(train.labels == 3, 0, train.labels)
    table = probes.evaluate_probes(
        Split(train.states, without), validation, test, 5, online=True, **FEW
    )
    assert table["accuracy"].between(0, 1).all()
    assert np.isfinite(table["bits"]).all()


# --- what a score means ---------------------------------------------------------------------------


def test_accuracy_and_majority_in_closed_form() -> None:
    labels = np.array([[0, 1, 1, -1], [2, 2, 2, 2]])
    predicted = np.array([[[0, 1, 0, 0], [0, 1, 1, 1]], [[2, 2, 0, 0], [0, 0, 0, 0]]])
    np.testing.assert_allclose(probes.accuracy(predicted, labels), [[2 / 3, 1], [0.5, 0]])
    np.testing.assert_allclose(probes.accuracy(predicted, [0, 1, 1, 1])[0], [0.5, 1])
    # The commonest class of training, not of the test; the lowest of equals.
    train = np.array([[0, 0, 1, -1, -1, -1], [1, 2, 2, 1, -1, 0]])
    test = np.array([[0, 1, 1, 1], [1, -1, 2, -1]])
    np.testing.assert_allclose(probes.majority(train, test, 3), [0.25, 0.5])
    np.testing.assert_allclose(probes.majority([1, 1, 0], [1, 0, 1, 1], 2), [0.75])


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


def test_the_control_task_is_at_chance_where_no_type_repeats() -> None:
    splits = [toy([n], d=8, k=4, noise=0.3, seed=seed) for seed, n in enumerate((400, 200, 2000))]
    types = [
        [f"{name}{i}" for i in range(split.states.shape[1])]
        for name, split in zip("abc", splits, strict=True)
    ]
    table = probes.evaluate_probes(*splits, 4, types=types, seeds=[0, 1], **FEW)
    assert table["control_accuracy"].between(0.2, 0.3).all()  # four about equal classes
    assert (table["selectivity"] == table["accuracy"] - table["control_accuracy"]).all()
    assert (table["selectivity"] > 0.5).all()


def test_the_control_task_is_learned_where_the_state_is_the_type() -> None:
    # One-hot words: a probe can memorise any labelling, so it selects nothing.
    rng = np.random.default_rng(0)
    words = [rng.permutation(np.tile(np.arange(20), 10)) for _ in range(3)]
    label_of = rng.integers(4, size=20)
    splits = [Split(np.eye(20, dtype=np.float32)[own][None], label_of[own]) for own in words]
    table = probes.evaluate_probes(*splits, 4, types=words, **FEW)
    np.testing.assert_allclose(table["accuracy"], 1)
    np.testing.assert_allclose(table["control_accuracy"], 1)


# --- the online code ------------------------------------------------------------------------------


def test_the_online_code_is_the_sum_over_its_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    train, validation = toy([64, 40]), toy([20, 20], seed=1)
    monkeypatch.setattr(probes, "FRACTIONS", (0.25, 0.5, 1.0))
    sent_bits, uniform = probes.code_length(train, validation, 3, seeds=[0, 2], order=5, **FEW)
    np.testing.assert_allclose(uniform, np.array([64, 40]) * np.log2(3))
    for group, ends in enumerate(((16, 32, 64), (10, 20, 40))):
        own, held_out = part(train, group), part(validation, group)
        n = ends[-1]
        sent = probe_training.batch_order(n, 5, 0)  # what is sent when
        place = np.argsort(sent)
        bits = np.full(2, ends[0] * np.log2(3))
        for start, end in itertools.pairwise(ends):
            known = Split(own.states, np.where(place < start, own.labels, -1))
            fitted = probes.fit(known, held_out, 3, seeds=[0, 2], order=5, **FEW)
            block = np.nonzero((place >= start) & (place < end))[0]
            logs = log_probabilities(fitted, own.states[:, block])[0]
            bits -= logs[:, np.arange(len(block)), own.labels[0, block]].sum(1) / np.log(2)
        np.testing.assert_allclose(sent_bits[group], bits, rtol=1e-4)


def test_informative_states_shorten_the_code_and_random_ones_do_not() -> None:
    rng = np.random.default_rng(0)
    sizes = (600, 300)
    telling = [toy([n], d=8, k=4, noise=0.5, seed=seed) for seed, n in enumerate(sizes)]
    states = [
        np.concatenate([split.states, rng.normal(size=split.states.shape)]) for split in telling
    ]
    splits = [Split(own, split.labels[0]) for own, split in zip(states, telling, strict=True)]
    bits, uniform = probes.code_length(*splits, 4, **FEW)
    compression = uniform[:, None] / bits
    assert (compression[0] > 2).all()
    assert (compression[1] < 1.02).all()
    assert (compression[1] > 0.6).all()


@given(n=st.integers(2, 5000))
def test_blocks_cover_all_examples_and_none_is_tiny(n: int) -> None:
    ends = probes._block_ends(n)
    sizes = np.diff([0, *ends])
    assert ends[-1] == n
    assert len(ends) == 1 or sizes.min() >= probes.SMALLEST_BLOCK
    if n >= 8000:
        assert len(ends) == len(probes.FRACTIONS)


def test_a_single_block_is_coded_uniformly() -> None:
    bits, _ = probes.code_length(toy([6]), toy([5], seed=1), 3, **FEW)
    np.testing.assert_allclose(bits, np.full((1, 6), 6 * np.log2(3)))


def test_the_table_of_evaluate_has_a_row_a_group_and_seed() -> None:
    splits = [toy([40, 30], seed=seed) for seed in range(3)]
    named = Split(splits[0].states, splits[0].labels, names=["en 0", "en 1"])
    table = probes.evaluate_probes(named, *splits[1:], 3, seeds=[4, 2], online=True, **FEW)
    assert table["group"].tolist() == ["en 0", "en 0", "en 1", "en 1"]
    assert table["seed"].tolist() == [4, 2, 4, 2]
    assert table["n_train"].tolist() == [40, 40, 30, 30]
    fitted = probes.fit(*splits[:2], 3, seeds=[4, 2], **FEW)
    predicted = fitted.predict(splits[2].states)
    expected = probes.accuracy(predicted, splits[2].labels)
    np.testing.assert_array_equal(table["accuracy"], expected.ravel())
    np.testing.assert_array_equal(table["epoch"], fitted.epochs.ravel())
    np.testing.assert_allclose(table["compression"], table["uniform_bits"] / table["bits"])
    majority = probes.majority(splits[0].labels, splits[2].labels, 3)
    np.testing.assert_array_equal(table["majority"], majority.repeat(2))
    again = probes.evaluate_probes(
        named, *splits[1:], 3, seeds=[4, 2], online=True, fitted=fitted, **FEW
    )
    pd.testing.assert_frame_equal(again, table)


# --- bad input ------------------------------------------------------------------------------------


def changed(split: Split, *, state: float | None = None, label: int | None = None) -> Split:
    """The split with one state or label of group 1 exchanged."""
    states, labels = split.states.copy(), split.labels.copy()
    if state is not None:
        states[1, 4, 0] = state
    if label is not None:
        labels[1, 4] = label
    return Split(states, labels, ["en", "de"])


TRAIN, HELD, TEST = (toy([20, 20], seed=seed) for seed in range(3))


@pytest.mark.parametrize(
    ("splits", "options", "message"),
    [
        (
            (changed(TRAIN, state=np.nan), HELD),
            {},
            r"training split, group 1 \(de\): there is a NaN",
        ),
        ((TRAIN, changed(HELD, state=np.inf)), {}, r"validation .* NaN or an infinite"),
        ((TRAIN, HELD, changed(TEST, state=np.nan)), {}, r"test split, group 1 \(de\): .* NaN"),
        ((changed(TRAIN, label=3), HELD), {}, r"training split, group 1 \(de\): .* label 3"),
        ((TRAIN, HELD, changed(TEST, label=-2)), {}, r"test split, group 1 \(de\): .* label -2"),
        ((toy([20, 0]), HELD), {}, "training split, group 1: 0 examples"),
        ((toy([20, 1]), HELD), {}, "training split, group 1: 1 examples, and at least 2"),
        ((TRAIN, toy([0, 9])), {}, "validation split, group 0: 0 examples, and at least 1"),
        ((TRAIN, toy([9])), {}, r"validation .* have the shape \(1, 9, 6\), and not \(2"),
        ((TRAIN, toy([9, 9], d=5)), {}, r"not \(2, n, 6\)"),
        ((Split(TRAIN.states[0], TRAIN.labels), HELD), {}, r"\(groups, examples"),
        ((Split(TRAIN.states, TRAIN.labels[:, :5]), HELD), {}, r"of the shape \(2, 5\)"),
        ((Split(TRAIN.states, TRAIN.labels * 1.0), HELD), {}, "a whole number an example"),
        ((TRAIN, HELD), {"n_classes": 1}, "at least two classes"),
        ((TRAIN, HELD), {"patience": 0}, "has to be at least 1"),
        ((TRAIN, HELD), {"hidden": 0}, "has to be at least 1"),
        ((TRAIN, HELD), {"seeds": []}, "has to be at least 1"),
        ((TRAIN, HELD), {"hidden": 4, "activation": "tanh"}, "no activation 'tanh': choose relu"),
    ],
)
def test_what_cannot_be_fitted_is_named(splits: tuple, options: dict, message: str) -> None:
    call = probes.fit if len(splits) == 2 else probes.evaluate_probes
    with pytest.raises(ValueError, match=message):
        call(*splits, **({"n_classes": 3} | FEW | options))


def test_predictions_need_states_like_those_of_training() -> None:
    fitted = probes.fit(TRAIN, HELD, 3, max_epochs=1, **FEW)
    for states in (HELD.states[:1], HELD.states[:, :, :4], HELD.states[0]):
        with pytest.raises(ValueError, match=r"probes are for \(2, n, 6\)"):
            fitted.predict(states)
    # One source's probes on the states of another: take them as often as needed.
    transferred = fitted.take([1, 1]).predict(HELD.states)
    assert np.array_equal(transferred[1], fitted.predict(HELD.states)[1])
