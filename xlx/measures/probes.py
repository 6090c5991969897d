"""Probes: how much of a label can be read off a frozen state by a linear map or a small network.

A probe is trained per group (a layer, or a layer of a language) and per seed. There are many (7
layers of 36 languages with 6 seeds make 1,512), small and alike, so all train at once, as stacks of
matrices (`xlx.measures.probe_training`, which also says the shapes). Run again, a stack gives the
same bits on a CPU; other stacks agree to rounding in float32.

An accuracy says little by itself. `evaluate_probes` puts beside it what the commonest label gives,
what a probe of the same size learns of random labels (the control of Hewitt and Liang 2019; the
difference is the selectivity), and how many bits it takes to send the labels to somebody who has
the states (the online code of Blier and Ollivier 2018, used for probes by Voita and Titov 2020):
few if a short, simple rule holds from few examples on.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from xlx.measures.probe_training import (
    CheckedSplit,
    Fitting,
    Probes,
    Split,
    batch_order,
    checked,
    fitted_probes,
    surprise,
)

FRACTIONS = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
SMALLEST_BLOCK = 8


def fit(train: Split, validation: Split, n_classes: int, **options: object) -> Probes:
    """Train one probe a group and seed with Adam on the cross-entropy, each until it is best.

    A probe keeps the weights of the epoch with the lowest loss on the validation split, and ends
    after `patience` epochs without a lower one. Both splits have the same groups in the same order;
    states are standardised per group and dimension by the training split. ``n_classes`` is K (a
    class may have no example), ``options`` are fields of `Fitting`. ValueError as
    `probe_training.checked`, naming split and group.
    """
    splits = checked(train, validation, n_classes=n_classes)
    return fitted_probes(*splits, n_classes, Fitting(**options))


def accuracy(predicted: np.ndarray, labels: ArrayLike) -> np.ndarray:
    """Share of the examples whose class was predicted ``(g, s, n)``: ``(g, s)`` in [0, 1]."""
    labels = np.broadcast_to(labels, (len(predicted), predicted.shape[2]))
    there = labels >= 0
    right = (predicted == labels[:, None]) & there[:, None]
    return right.sum(axis=2) / there.sum(axis=1)[:, None]


def majority(train_labels: ArrayLike, test_labels: ArrayLike, n_classes: int) -> np.ndarray:
    """Accuracy on the test set of the commonest class of the training set, of equals the lowest:
    ``(g,)``."""
    train_labels, test_labels = np.atleast_2d(train_labels), np.atleast_2d(test_labels)
    counts = (train_labels[:, :, None] == np.arange(n_classes)).sum(axis=1)
    commonest = counts.argmax(axis=1)[:, None]
    right = (test_labels == commonest).sum(axis=1)
    return right / (np.broadcast_to(test_labels, (len(right), test_labels.shape[1])) >= 0).sum(1)


def control_labels(
    types: Sequence[Sequence[str]], labels: ArrayLike, n_classes: int, seed: int
) -> list[np.ndarray]:
    """Labels of the control task of Hewitt and Liang (2019): each word type has a random one.

    Whatever a probe learns of them it has memorised: of a word that the training split does not
    have, the label cannot be known. For a task about sentences pass the sentences: none comes
    twice, so the control should be at chance, and the selectivity is what is above it.

    ``types`` are the words of one or several splits, each of the result int64 ``(n,)``; a type has
    the same label in all. Labels are drawn like ``labels``, those of the training split, in the
    order of first appearance, so that a split more does not change those before.
    """
    labels = np.asarray(labels)
    shares = np.bincount(labels[labels >= 0], minlength=n_classes)
    codes, _ = pd.factorize(np.concatenate([np.asarray(split, dtype=object) for split in types]))
    ends = np.cumsum(shares) / shares.sum()
    drawn = np.searchsorted(ends, np.random.default_rng(seed).random(codes.max() + 1), "right")
    return np.split(drawn[codes], np.cumsum([len(split) for split in types])[:-1])


def code_length(
    train: Split, validation: Split, n_classes: int, **options: object
) -> tuple[np.ndarray, np.ndarray]:
    """Bits of the training labels for who has the states, ``(g, s)``, and for who has not ``(g,)``.

    The online (prequential) code (Blier and Ollivier 2018, Voita and Titov 2020): the examples are
    sent in blocks, in random order (of ``order``). The first costs log2 K bits a label; each other
    one is coded by a probe trained on all before it, -log2 p(label) each. The validation split, for
    early stopping, is taken as known to both sides. Blocks end at the `FRACTIONS` of the training
    set; one of less than `SMALLEST_BLOCK` examples is joined to the next. Without the states labels
    cost n log2 K. Parameters, options and errors as `fit`.
    """
    how = Fitting(**options)
    training, held_out = checked(train, validation, n_classes=n_classes)
    ends = tuple(_block_ends(n) for n in training.sizes.tolist())
    place = np.full(training.labels.shape, -1)  # of each example in the order of sending
    for group, n in enumerate(training.sizes.tolist()):
        place[group, training.labels[group] >= 0] = np.argsort(batch_order(n, how.order, 0))
    bits = np.repeat([[own[0] * np.log2(n_classes)] for own in ends], len(how.seeds), axis=1)
    for stage in range(max(map(len, ends)) - 1):
        groups = np.array([group for group, own in enumerate(ends) if stage + 1 < len(own)])
        start, end = (
            np.array([own[number] if number < len(own) else 0 for own in ends])[:, None]
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


def _only(split: CheckedSplit, there: np.ndarray) -> CheckedSplit:
    """The split with the examples of a mask ``(g, n)`` alone."""
    return replace(split, labels=np.where(there, split.labels, -1), sizes=there.sum(axis=1))


def _bits(probes: Probes, split: CheckedSplit, group: int) -> np.ndarray:
    """Bits of a group's labels under each of its probes, ``(s,)``."""
    states, labels = split.examples(group)
    logits = probes.logits(states, group)[None]
    return surprise(logits, labels.to(logits.device)[None])[0].double().sum(
        dim=1
    ).cpu().numpy() / np.log(2)


def evaluate_probes(
    train: Split,
    validation: Split,
    test: Split,
    n_classes: int,
    *,
    types: Sequence[ArrayLike] | None = None,
    online: bool = False,
    fitted: Probes | None = None,
    **options: object,
) -> pd.DataFrame:
    """Train probes, score them on the test split, and give what the score is to be held against.

    Parameters
    ----------
    types : sequence of three arrays, optional
        Words (of a task about sentences these) of the three splits, shaped as the labels. If given,
        the control task (`control_labels`, drawn by ``order``) is learned too, with the same seeds.
    online : bool
        Also the online code of the training labels (`code_length`).
    fitted : Probes, optional
        What `fit` made of these splits with these options, if it was called already.
    options
        The fields of `Fitting`: hidden, seeds, learning_rate ...

    Returns
    -------
    DataFrame
        One row per group and seed: ``group`` (its name, or number), ``seed``, ``n_train``,
        ``n_test``, ``epoch``, ``validation_loss``, ``accuracy``, ``majority``; with `types` also
        ``control_accuracy`` and ``selectivity`` (accuracy - control accuracy); with `online` also
        ``bits``, ``uniform_bits`` and ``compression`` (uniform / online; 1 where the states say
        nothing). Accuracies are in [0, 1].
    ValueError as `fit`, for each of the splits.
    """
    splits = checked(train, validation, test, n_classes=n_classes)
    training, held_out, tested = splits
    how = Fitting(**options)
    probes = fitted or fitted_probes(training, held_out, n_classes, how)
    names = train.names if train.names is not None else np.arange(len(training.sizes))
    columns = {
        "group": np.asarray(names)[:, None],
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
    if online:
        columns["bits"], uniform = code_length(train, validation, n_classes, **options)
        columns["uniform_bits"] = uniform[:, None]
        columns["compression"] = uniform[:, None] / columns["bits"]
    shape = probes.epochs.shape
    return pd.DataFrame(
        {name: np.broadcast_to(column, shape).ravel() for name, column in columns.items()}
    )


def _control_task(
    splits: Sequence[CheckedSplit], types: Sequence[ArrayLike], n_classes: int, seed: int
) -> list[CheckedSplit]:
    """The splits with control labels in place of their own."""
    drawn = [split.labels.copy() for split in splits]
    words = [
        np.broadcast_to(np.asarray(names, dtype=object), labels.shape)
        for names, labels in zip(types, drawn, strict=True)
    ]
    for group in range(len(drawn[0])):
        there = [labels[group] >= 0 for labels in drawn]
        types_of_group = [names[group][kept] for names, kept in zip(words, there, strict=True)]
        control = control_labels(types_of_group, drawn[0][group], n_classes, seed)
        for labels, kept, new in zip(drawn, there, control, strict=True):
            labels[group, kept] = new
    return [replace(split, labels=labels) for split, labels in zip(splits, drawn, strict=True)]
