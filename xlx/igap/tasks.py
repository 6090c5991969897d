"""Tasks to fine-tune on: a training set that is parallel, so that each answer has its translation.

    task = labelled_task("NLI", ["en", "de", "ru"], n_train=120, n_test=120)

Without labels of a task, `random_task` has parallel sentences with random ones (IGAP, section 3.2).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from xlx.core import checks
from xlx.text import corpora, examples, labelled, parallel_sets, sameness
from xlx.text.corpora import ParallelCorpus
from xlx.text.examples import Examples
from xlx.text.files import TextError

#: The task that needs no labels: is the second sentence the first one, or another one?
SAME_OR_OTHER = "same or other"


@dataclass(frozen=True)
class TransferTask:
    """A parallel training set and, where there is one, a parallel test set.

    ``train`` and ``test`` are language → `Examples`, aligned; ``test`` may be empty, as the
    interlingual gap needs none. ``left_out``: part → why (see `examples.common`) → how many.
    """

    name: str
    train: dict[str, Examples]
    test: dict[str, Examples]
    left_out: dict[str, dict[str, int]]

    def __post_init__(self) -> None:
        parallel_sets.aligned(self.train)
        if self.test:
            parallel_sets.aligned(self.test)
        if self.test and set(self.test) != set(self.train):
            raise TextError(
                f"{self.name}: the training set has {', '.join(self.train)} and the test set "
                f"{', '.join(self.test)}: both need the same languages"
            )

    def __repr__(self) -> str:
        return (
            f"Task({self.name}: {self.n_train} examples to train and {self.n_test} to test, in "
            f"{' '.join(self.languages)})"
        )

    @property
    def languages(self) -> tuple[str, ...]:
        return tuple(self.train)

    @property
    def n_train(self) -> int:
        return len(next(iter(self.train.values())))

    @property
    def n_test(self) -> int:
        return len(next(iter(self.test.values()))) if self.test else 0

    @property
    def sets(self) -> dict[str, Examples]:
        """What a run is asked: "train de", "test de" ... → examples."""
        parts = (("train", self.train), ("test", self.test))
        return {f"{part} {code}": one for part, sets in parts for code, one in sets.items()}

    @property
    def guess(self) -> float:
        """The error of a model that guesses, each class as often: 1 - 1 / number of classes."""
        return 1 - 1 / len(next(iter(self.train.values())).classes)

    def corrupted(self, ratio: float, seed: int) -> "TransferTask":
        """The same with a share of the training labels random, alike in all languages (5.4)."""
        first = next(iter(self.train.values()))
        labels = examples.corrupted(first.labels, ratio, len(first.classes), seed)
        train = {code: part.relabelled(labels) for code, part in self.train.items()}
        return replace(self, train=train)


def labelled_task(
    name: str,
    languages: Sequence[str],
    *,
    n_train: int | None = None,
    n_test: int | None = None,
    train_split: str = "train",
    path: str | Path | None = None,
    seed: int = 1,
) -> TransferTask:
    """The parallel examples of a task: XNLI, PAWS-X, or one that is made of parallel text.

    ``name`` is "NLI" (XNLI), "PI" (PAWS-X) or "same or other": pairs of a sentence with itself or
    with another one that is like it in length and digits (`sameness.same_or_other_parts`), which
    models learn that are too small for the others.

    ``n_train`` and ``n_test`` are the shortest so many (`examples.shortest`), which saves most of
    the time; None: all. Of "same or other" both are needed, and "the shortest" is said of the first
    language. ``train_split``: what is shipped as "train" comes from the public validation part; of
    a full local copy the paper's is "validation". ``path``: a local copy of the full data, or of
    "same or other" a parallel corpus, for `corpora.load`; None: the shipped subset, WMT24++.
    ``seed`` is of the parts of "same or other", which deals out its own.

    ValueError as `labelled.load`; for a language twice; nothing that all languages have with one
    label; "same or other" without numbers of pairs or with more than there are.
    """
    if train_split == "test":
        raise ValueError("train_split is 'test', the part to test on: train on another")
    if name == SAME_OR_OTHER:
        if n_train is None or n_test is None:
            raise ValueError("how many pairs of same or other, to train and to test on?")
        codes = checks.several(languages, "languages", once=True)
        text = corpora.load(path or "wmt24pp", codes, drop_duplicates=True)
        parts = sameness.same_or_other_parts(text, codes[0], n_train, n_test, seed)
        return TransferTask(name, *parts, {"train": {}, "test": {}})
    parts, left_out = {}, {}
    for part, split, n in (("train", train_split, n_train), ("test", "test", n_test)):
        parts[part], left_out[part] = labelled.parallel_examples(
            name, languages, split, n, path=path
        )
    return TransferTask(name, parts["train"], parts["test"], left_out)


def random_task(corpus: ParallelCorpus, seed: int) -> TransferTask:
    """Parallel sentences with random labels, the same in all languages; no test set."""
    return TransferTask("random labels", examples.of_corpus(corpus, seed), {}, {})


# --- several at once ------------------------------------------------------------------------------


def load_tasks(
    languages: Mapping[str, Sequence[str]],
    n_train: Mapping[str, int] | int | None,
    n_test: Mapping[str, int] | int | None,
    folders: Mapping[str, str],
    *,
    train_split: str,
) -> dict[str, TransferTask]:
    """`labelled_task` of each task that ``languages`` names; numbers by task, or one for all."""

    def of(numbers: Mapping[str, int] | int | None, name: str) -> int | None:
        return numbers.get(name) if isinstance(numbers, Mapping) else numbers

    return {
        name: labelled_task(
            name, codes, n_train=of(n_train, name), n_test=of(n_test, name),
            train_split=train_split, path=folders.get(name),
        )
        for name, codes in languages.items()
    }  # fmt: skip


def task_table(tasks: Mapping[str, TransferTask]) -> pd.DataFrame:
    """What each task is: pairs, labels in the first language, errors of the two ways to know none.

    ``guess``: the error of guessing, each class as often; ``one label``: of always the commonest.
    """
    rows = {}
    for name, task in tasks.items():
        counts = examples.class_counts(task.train[task.languages[0]])
        rows[name] = {
            "to train": task.n_train,
            "to test": task.n_test,
            "languages": " ".join(task.languages),
            "labels": ", ".join(f"{label} {n}" for label, n in counts.items()),
            "left out": sum(sum(reasons.values()) for reasons in task.left_out.values()),
            "guess": round(task.guess, 3),
            "one label": round(one_label(task), 3),
        }
    return pd.DataFrame(rows).T


def one_label(task: TransferTask) -> float:
    """The error of a model that always gives the commonest label of the training set."""
    labels = task.train[task.languages[0]].labels
    return 1 - np.bincount(labels).max() / task.n_train


def example(task: TransferTask, codes: Sequence[str], position: int = 0) -> str:
    """One training example in some languages, in full, and its label."""
    lines = []
    for code in codes:
        part = task.train[code]
        second = "" if part.second is None else f"\n    {part.second[position]}"
        lines.append(f"{code:4}{part.first[position]}{second}")
    part = task.train[codes[0]]
    return "\n".join([*lines, f"label: {part.classes[part.labels[position]]}"])


def stem_of(name: str) -> str:
    """A task in the name of a file."""
    return name.lower().replace(" ", "-")
