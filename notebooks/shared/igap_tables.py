"""What the notebooks of IGAP share: recipes and windows of several tasks, and their curves."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from xlx.experiment.transfers import Transfers, TransferTask, labelled_task
from xlx.subjects.jobs import Recipe, Sparing
from xlx.text import examples


def make_recipes(
    epochs: Mapping[str, int],
    every: Mapping[str, int],
    learning_rates: Sequence[float],
    **options: object,
) -> dict[str, list[Recipe]]:
    """The recipes of each task, one a learning rate; ``options`` as of `Recipe`."""
    return {
        name: [
            Recipe(epochs=epochs[name], every=every[name], learning_rate=rate, **options)
            for rate in learning_rates
        ]
        for name in epochs
    }


def windows_of(levels: Sequence[float], tolerance: float, every: int | None = None) -> Sparing:
    """Ask what IGAP at these training errors needs, and everything after ``every`` steps."""
    return Sparing(tuple((level, tolerance) for level in levels), every)


def all_curves(
    measured: Mapping[str, Transfers], levels: Sequence[float], tolerance: float, **options: int
) -> pd.DataFrame:
    """`Transfers.curves` of all tasks; ``one_label``: the gap of a model that gives one label."""
    tables = []
    for of_task in measured.values():
        curves = of_task.curves(levels, tolerance, **options)
        tables.append(curves.assign(one_label=one_label(of_task.task) - curves["level"]))
    return pd.concat(tables, ignore_index=True)


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
