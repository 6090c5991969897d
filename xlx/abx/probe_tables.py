"""Probes in one language against LD and MD (ABX paper, section 5.2): the tables of `abx-5`.

Parameters in, tidy tables out; `xlx.abx.probing` makes the numbers behind them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from xlx.abx.probe_setup import ProbeSetup, probe_input, probed_languages
from xlx.abx.probing import monolingual
from xlx.abx.series import history
from xlx.core import checks, paths, statistics
from xlx.models import probes
from xlx.models.loading import Name, configuration, load
from xlx.text import labelled
from xlx.text.shipped import catalogue


def setups(
    tasks: Sequence[str],
    sizes: Sequence[Mapping[str, int | None]],
    folders: Mapping[str, str],
    n_seeds: int,
    *,
    sources: Mapping[str, str] | None = None,
    **options: object,
) -> dict[str, ProbeSetup]:
    """Task → `ProbeSetup`: ``sizes`` of training, validation and test; folders with full data.

    A size of None takes all there is. ``sources``: task → source of its labels ("NLI": "sick"), of
    those that are not the paper's (sections 5.1, 5.2). ValueError for a task without a size.
    """
    if unsized := [task for task in tasks if any(task not in size for size in sizes)]:
        raise ValueError(f"{unsized[0]} has no size in every split: give one, or None for all")
    return {
        task: ProbeSetup(
            task,
            *(size[task] for size in sizes),
            seeds=tuple(range(n_seeds)),
            path=paths.ROOT / folders[task] if task in folders else None,
            source=(sources or {}).get(task),
            **options,
        )
        for task in tasks
    }


def task_languages(
    of_tasks: Mapping[str, ProbeSetup],
    chosen: Sequence[str] | None = None,
    table_2: str = "mono",
    sources: Mapping[str, str] | None = None,
) -> dict[str, list[str]]:
    """Task → its `probed_languages`, those chosen, of one source: the setup's own if it has."""
    codes = {}
    for task, setup in of_tasks.items():
        source = setup.source or (sources or {}).get(task)
        known = probed_languages(task, table_2, source=source, path=setup.path)
        codes[task] = [code for code in known if chosen is None or code in chosen]
    return codes


def regressed_tasks(codes: Mapping[str, Sequence[str]], fewest: int) -> list[str]:
    """The tasks of at least so many languages; ValueError where none has."""
    several = [task for task, of_task in codes.items() if len(of_task) >= fewest]
    if not several:
        counts = ", ".join(f"{task} {len(of_task)}" for task, of_task in codes.items())
        raise ValueError(
            f"no task has the {fewest} languages that a regression takes here ({counts}): choose "
            "more languages, or a smaller fewest_languages"
        )
    return several


def example_counts(
    of_tasks: Mapping[str, ProbeSetup], codes: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """How many examples a language has: its words, of NLI its pairs (ABX paper, section 5.2).

    A row a task and split; ``languages``, and ``fewest``, ``median``, ``most`` of one. Where all
    words are taken they differ, since sentences of one language are shorter than those of another.
    """
    rows = {}
    for task, setup in of_tasks.items():
        for split in labelled.SPLITS:
            parts = [setup.load(code, split) for code in codes[task]]
            counts = np.array([getattr(part, "n_words", len(part)) for part in parts])
            rows[task, split] = len(counts), counts.min(), int(np.median(counts)), counts.max()
    table = pd.DataFrame(rows.values(), index=pd.MultiIndex.from_tuples(rows))
    table.columns = ["languages", "fewest", "median", "most"]
    return table.rename_axis(["task", "split"])


def shipped_sizes(tasks: Sequence[str], sources: Mapping[str, str] | None = None) -> pd.DataFrame:
    """What is shipped for tasks in one language: languages, sentences (NLI: pairs) a language.

    ``sources`` as `shipped_parts`.
    """
    parts = shipped_parts(tasks, sources).groupby(["task", "source"])
    sizes = parts[["train", "validation", "test"]].median()
    sizes.insert(0, "languages", parts["language"].nunique())
    return sizes.astype(int)


#: Sources that stand beside the one that a task is probed on.
OTHERWISE = ("pud", "xnli-dev", "sick")


def shipped_parts(tasks: Sequence[str], sources: Mapping[str, str] | None = None) -> pd.DataFrame:
    """The shipped files of tasks in one language (`shipped.catalogue`).

    ``sources``: task → the one source that counts; of other tasks all but those of `OTHERWISE`.
    """
    shipped = catalogue("labelled")
    own = shipped["task"].map(dict(sources or {}))
    usual = own.isna() & ~shipped["source"].isin(OTHERWISE)
    return shipped[shipped["task"].isin(tasks) & (usual | (shipped["source"] == own))]


def probed(
    names: Sequence[str],
    of_tasks: Mapping[str, ProbeSetup],
    codes: Mapping[str, Sequence[str]],
    *,
    checkpoints: str = "all",
    leave_out: Sequence[int] = (),
    steps: Sequence[int] | None = None,
    entities: bool = False,
    **options: object,
) -> pd.DataFrame:
    """`monolingual` of several models and tasks, by checkpoint.

    ``checkpoints``: "all" (of `chosen_history`), "ends" (first and last) or "last"; ``entities``:
    whether NER has the F1 of whole entities, at all layers.
    """
    tables = []
    for name in names:
        of_series = chosen_history(name, leave_out, steps)
        if checkpoints != "all":
            ends = [*(of_series[:1] if checkpoints == "ends" else ()), of_series[-1]]
            of_series = list(dict.fromkeys(ends))
        of_model = []
        for task, setup in of_tasks.items():
            whole = entities and task == "NER"
            depth = configuration(of_series[-1]).num_hidden_layers + 1 if whole else 0
            options |= {"entity_layers": list(range(depth))}
            of_model.append(monolingual(of_series, setup, codes[task], **options))
        tables.append(pd.concat(of_model).sort_values("checkpoint", kind="stable"))
    return pd.concat(tables, ignore_index=True)


def chosen_history(
    name: str, leave_out: Sequence[int] = (), steps: Sequence[int] | None = None
) -> list[Name]:
    """`history`; of ``steps`` those that the series has, and its last checkpoint in any case."""
    checkpoints = history(name, leave_out=leave_out)
    *earlier, last = checkpoints
    return [*(of for of in earlier if steps is None or of.step in steps), last]


def drawn_anew(of_tasks: Mapping[str, ProbeSetup], seed: int) -> dict[str, ProbeSetup]:
    """The same setups with other sentences.

    ValueError for a task of which all there is was taken: drawn again it is the same, and what
    `retested` makes of it would be a reliability of 1 that nobody measured.
    """
    for task, setup in of_tasks.items():
        if setup.n_train is None or setup.n_test is None:
            raise ValueError(
                f"{task} takes all there is to train on or to test on, so no other sentences can "
                "be drawn: give n_train and n_test"
            )
    return {task: replace(setup, seed=seed) for task, setup in of_tasks.items()}


def example_probe(
    name: str, setup: ProbeSetup, language: str = "en", n_words: int = 8
) -> tuple[pd.DataFrame, pd.Series]:
    """One probe for POS on one sentence of about so many words, and its accuracy by layer."""
    encoder = load(name)
    parts = {split: setup.load(language, split) for split in labelled.SPLITS}
    seen = {split: probe_input(encoder, part, setup) for split, part in parts.items()}
    splits = [probes.Split(seen[split].states, seen[split].labels) for split in labelled.SPLITS]
    fitted = probes.fit(*splits[:2], len(setup.labels), seeds=(0,))
    test, predicted = seen["test"], fitted.predict(seen["test"].states)[:, 0]
    sentences = parts["test"].sentences
    shown = min(range(len(sentences)), key=lambda i: abs(len(sentences[i]) - n_words))
    rows = [k for k, (sentence, _) in enumerate(test.places) if sentence == shown]
    tags = np.array(setup.labels)
    table = pd.DataFrame(
        {
            "gold": tags[test.labels[rows]],
            "layer 0": tags[predicted[0, rows]],
            f"layer {encoder.n_layers}": tags[predicted[-1, rows]],
        },
        index=pd.Index([test.types[k] for k in rows], name="word"),
    )
    accuracies = pd.Series((predicted == test.labels).mean(axis=1), name="accuracy")
    return table.T, accuracies.rename_axis("layer")


def with_kind(context: pd.DataFrame) -> pd.DataFrame:
    """``kind``: "trained" at a model's last checkpoint, "untrained" before."""
    last = context.groupby("model")["checkpoint"].transform("max")
    return context.assign(kind=np.where(context["checkpoint"] == last, "trained", "untrained"))


def context_bands(context: pd.DataFrame) -> pd.DataFrame:
    """Accuracy by layer, beside the untrained model, the control task and the commonest label.

    ``model``, ``task``, ``kind``, ``layer``, ``score``, ``error`` (standard error over languages,
    what makes one easy or hard left out), ``low``, ``high`` (one error either way).
    """
    keys = ["model", "task", "layer", "language"]
    trained, untrained = (context[context["kind"] == kind] for kind in ("trained", "untrained"))
    columns = {"accuracy": "trained", "control_accuracy": "control", "majority": "majority"}
    renamed = trained.drop(columns="kind").rename(columns=columns)
    rows = pd.concat(
        [
            renamed.melt(keys, list(columns.values()), "kind", "score"),
            untrained.rename(columns={"accuracy": "score"})[[*keys, "kind", "score"]],
        ]
    )
    shares = rows.groupby(["kind", *keys], sort=False, as_index=False)["score"].mean()
    ease = shares.groupby(["model", "task", "language"])["score"].transform("mean")
    shares["apart"] = shares["score"] - ease
    grouped = shares.groupby(["model", "task", "kind", "layer"], sort=False)
    bands = grouped[["score"]].mean().assign(error=grouped["apart"].sem()).reset_index()
    return bands.assign(low=bands["score"] - bands["error"], high=bands["score"] + bands["error"])


def of_layers(scored: pd.DataFrame, layer: str | int, *, majority: bool = False) -> pd.DataFrame:
    """Accuracies of models from those of their layers: a row a model, checkpoint, task, language.

    ``scored`` as `monolingual` returns it; ``layer``: "mean" over layers, "best" (of lowest
    validation loss) or a number; ``majority``: also that column, the share of the commonest label
    of the training part in the test part, ``above``, how far accuracy lies above it, and ``f1`` of
    entities, if it is there.
    """
    keys = ["model", "task", "checkpoint", "language"]
    beside = [name for name in ("majority", "f1") if majority and name in scored]
    shown = ["accuracy", *beside]
    by_layer = scored.groupby([*keys, "layer"], sort=False, as_index=False)[
        [*shown, "validation_loss"]
    ].mean()
    if layer == "mean":
        chosen = by_layer.groupby(keys, sort=False, as_index=False)[shown].mean()
    elif layer == "best":
        chosen = by_layer.loc[by_layer.groupby(keys, sort=False)["validation_loss"].idxmin()]
    else:
        chosen = by_layer[by_layer["layer"] == layer]
    chosen = chosen[[*keys, *shown]].reset_index(drop=True)
    return chosen.assign(above=chosen["accuracy"] - chosen["majority"]) if majority else chosen


#: What is regressed in place of accuracy: F1 of entities in NER, where most words are none; else
#: how far accuracy lies above the commonest label.
PROBE_MEASURES = {"NER": "f1"}


def regressed(table: pd.DataFrame, measures: Mapping[str, str] = PROBE_MEASURES) -> pd.DataFrame:
    """What is regressed in the column ``accuracy``, and what this was in ``plain accuracy``.

    By task one of the columns ``above``, ``f1`` and ``accuracy``; of a task not named ``above``.
    The paper (sections 5.2, 5.3) takes accuracy as it is; where labels are uneven, and less so in
    some languages than in others, it is mostly about that. ValueError for another column.
    """
    chosen = table["accuracy"].copy()
    for task, rows in table.groupby("task"):
        measure = measures.get(task, "above")
        checks.one_of(measure, MEASURE_COLUMNS, "measure")
        chosen[rows.index] = rows[measure]
    return table.assign(**{"accuracy": chosen, "plain accuracy": table["accuracy"]})


#: What `regressed` can take.
MEASURE_COLUMNS = ("above", "f1", "accuracy")


def retested(
    first: pd.DataFrame,
    second: pd.DataFrame,
    languages: Sequence[str] = ("language",),
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """How far accuracies hold when all examples are drawn anew (test-retest reliability).

    A regression can explain no larger share of the variance of accuracies than the one that comes
    back; where the correlation of two draws is not above zero, differences between languages are
    noise, and so is any coefficient.

    ``first`` and ``second`` have ``model``, ``task``, the columns `languages` and ``accuracy``, of
    two draws; rows that both have count. Returns `statistics.correlations` by task and model, with
    intervals over languages.
    """
    both = first.merge(second, on=["model", "task", *languages], suffixes=("", " again"))
    table = statistics.correlations(
        both, ["task", "model"], "accuracy", "accuracy again", languages=languages, seed=seed
    )
    return table[["task", "model", "n", "r", "low", "high"]]


def lost_examples(scored: pd.DataFrame) -> pd.DataFrame:
    """Languages of which examples could not be embedded whole, and how many."""
    lost = scored.groupby(["task", "language"], as_index=False)["n_lost"].max()
    return lost[lost["n_lost"] > 0].set_index(["task", "language"])


def courses(accuracy: pd.DataFrame) -> pd.DataFrame:
    """Accuracies, ``best`` at the highest checkpoint of a language."""
    best = accuracy.groupby(["model", "task", "language"])["accuracy"].idxmax()
    return accuracy.assign(best=accuracy.index.isin(best))
