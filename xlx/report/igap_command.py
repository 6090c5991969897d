"""xlx igap: what an encoder loses in other languages of what it has learnt in one (IGAP).

MODEL is an encoder: a shipped or public name, a folder, a hub name. It is fine-tuned, with a new
head, on a shipped task in one language, and asked the same examples in translation: a row of Table
6 of Chi, Huang and Mao. Beside it stand the model before training, which learns the same; the
subwords that translations share; one label; and printed rows. Stop it at any time: it goes on by
run, and within one.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from xlx.experiment.abx_scores import before_training
from xlx.experiment.transfers import (
    NARROW,
    SHIPPED,
    SPARING,
    WIDE,
    Transfers,
    TransferTask,
    labelled_task,
    shared_subwords,
    sparing_in,
)
from xlx.measures.igap import MEAN_TARGET, TOLERANCE
from xlx.plots.panels import Figure
from xlx.plots.primitives import Lanes, lanes
from xlx.plots.style import styled
from xlx.report import inputs, options
from xlx.report.inputs import ReportedModel
from xlx.report.page import framed, shown_figure
from xlx.results import checks, paths, store
from xlx.subjects import finetuning, loading
from xlx.subjects.jobs import Job
from xlx.text.parallel import ParallelCorpus

_OPTIONS = ("--languages", *options.AS_ASKED[2:], "--estimate", "--out")
#: Hidden units from which a network is wide, and how an untrained one learns whatever its width.
_WIDE_FROM, _UNTRAINED_RATE = 256, 3e-4
_WHOLE = (
    "all weights are learnt, in float32 on one device, so a model can be neither quantised nor "
    "spread; a head that is fine-tuned already is asked so by xlx mixing, states by xlx mexa"
)
#: Positions that 128 subwords need; RoBERTa and its kin count from 2 on.
_POSITIONS = 130
BEFORE, STRINGS, ONE_LABEL = "before training", "shared subwords", "one label"
#: Task → the printed table that is nearest, and what a guess loses there.
_PRINTED = {"PI": ("table7", 1 / 2)}
_ENDS = ["igap", "low", "high", "kept", "kept_low", "kept_high"]
_READING = (
    "IGAP: the share of the training set that is wrong in translation, less that wrong in the "
    "source, of models that err there on 2.5 % at most. Kept: the part of what a guess would lose "
    "that is not lost. Intervals are of 95 % over examples, those with one premise together, and "
    "seeds; with one seed over examples alone. Shared subwords give a translation the label of the "
    "training example that it shares most subwords with. The printed rows are fine-tuned in "
    "English on all of XNLI's validation part (PAWS-X for PI), with two or three classes as there: "
    "compare the share kept, not the points."
)


def add_igap(commands: argparse.Action) -> None:
    """The command of a command line."""
    add = options.command(commands, report_igap, "igap", __doc__, _OPTIONS, dtype=None)
    add("--task", choices=[*SHIPPED], default="negation", help="negation, NLI (XNLI), PI (PAWS-X)")
    add("--source", default="en", help="the language that it learns in (en)")
    add("--seeds", type=int, default=1, help="runs of the model, and of it before training (1)")
    add("--epochs", type=int, help="passes over the training set; by default those of the task")
    add("--lr", type=float, help="of the model; by default 1e-4, or 3e-4 below 256 hidden units")


def planned(model: ReportedModel, given: argparse.Namespace) -> tuple[TransferTask, list[Job]]:
    """The task, and the runs of the model and then, as many, of it before training.

    ValueError for a model that is no encoder; TextError for a language that the task lacks.
    """
    if model.kind != "encoder":
        raise ValueError(
            f"{model.label} is a model of the kind {model.kind}, and only encoders are fine-tuned "
            "here: give an encoder, or ask xlx mexa or xlx report, which read it as it is"
        )
    checks.whole(given.seeds, "--seeds")
    languages, how, usual, untrained = SHIPPED[given.task]
    named = given.languages or languages
    named = named if given.source in named else [given.source, *named]
    task = labelled_task(given.task, checks.several(named, "languages", once=True), **how)
    if len(named) < 2:
        raise ValueError(f"--languages has no other than {given.source}: name one to transfer to")
    if hasattr(config := loading.configuration(model.name), "quantization_config"):
        raise ValueError(f"give the weights that {model.label} was quantised from: {_WHOLE}")
    config = config.get_text_config()
    own = replace(usual, **(WIDE if config.hidden_size >= _WIDE_FROM else NARROW))
    if getattr(config, "max_position_embeddings", _POSITIONS) < _POSITIONS:
        own = replace(own, max_length=None)  # what the model takes
    before = before_training(str(model.name))
    twin = replace(own, **({"learning_rate": _UNTRAINED_RATE} | untrained))
    asked = {"epochs": given.epochs, "dtype": given.dtype}
    changed = {name: value for name, value in asked.items() if value is not None}
    rate = {"learning_rate": given.lr} if given.lr is not None else {}
    spared, sets = sparing_in(task, given.source, SPARING), task.train[given.source]
    runs = (
        (str(model.name), replace(own, **changed, **rate)),
        (str(getattr(before, "path", before)), replace(twin, **changed)),
    )
    return task, [
        Job(name, sets, task.sets, recipe, seed, spared)
        for name, recipe in runs
        for seed in range(1, given.seeds + 1)
    ]


def minutes_of(model: ReportedModel, task: TransferTask, jobs: Sequence[Job]) -> float:
    """About how long the runs take: a step of training as three readings of its batch."""
    texts = {
        code: tuple(map(" ".join, zip(x.first, x.second or x.ids, strict=True)))
        for code, x in task.train.items()
    }
    ids, n = next(iter(task.train.values())).ids, 0
    corpus = ParallelCorpus(task.name, texts, ids, ("",) * len(ids), "", "")
    for job in jobs:
        checkpoints = len(job.recipe.checkpoint_steps(task.n_train))
        n += task.n_train * (3 * job.recipe.epochs + checkpoints)
        n += len(task.languages) * (task.n_train + task.n_test)
    return n * options.reading_seconds(model, corpus) / 60 if n else 0.0


def subject_rows(of: Transfers, subject: str) -> pd.DataFrame:
    """Columns ``subject, target, accuracy``, of the last checkpoint, ``training``, the lowest error
    on what was learnt, and of `Transfers.gap_table` at E' = 0 the value and the share kept."""
    source, found = of.runs[0].source, of.gap_table()
    right = {
        code: 1 - np.mean([of.wrong(run, "test", code, -1).mean() for run in of.runs])
        for code in of.task.languages
    }
    right[MEAN_TARGET] = np.mean([x for code, x in right.items() if code != source])
    table = pd.DataFrame({"accuracy": right}).rename_axis("target")
    gaps = (found.loc[source] if len(found) else found).rename(columns={"value": "igap"})
    table[_ENDS] = gaps.reindex(table.index)[_ENDS]
    lowest = min(of.wrong(run, "train", source).mean(axis=1).min() for run in of.runs)
    return table.reset_index().assign(subject=subject, training=lowest)


def beside(
    task: TransferTask, source: str, name: str, max_length: int | None = None
) -> pd.DataFrame:
    """Rows as `subject_rows` of what knows no language, and of the printed table's models."""
    shared = shared_subwords(name, task, [source], max_length=max_length).set_index("target")
    lost = {STRINGS: shared["interlingual"], ONE_LABEL: pd.Series(task.one_label, shared.index)}
    tables = []
    for subject, igap in lost.items():
        igap[MEAN_TARGET] = igap.mean()
        kept = 1 - igap / task.guess
        tables.append(pd.DataFrame({"igap": igap, "kept": kept}).assign(subject=subject))
    label = np.bincount(task.train[source].labels).argmax()
    tables[1]["accuracy"] = (task.test[source].labels == label).mean()
    stem, guess = _PRINTED.get(task.name, ("table6", 2 / 3))
    printed = pd.read_csv(next((paths.PUBLISHED / "igap").glob(f"{stem}_*.csv")))
    printed["target"] = printed["target_language"].replace("avg", MEAN_TARGET)
    wide = printed.pivot(index=["model", "target"], columns="quantity", values="value") / 100
    wide = wide.rename(columns={"IGap": "igap", "test_acc": "accuracy"}).reset_index("model")
    tables.append(wide.assign(subject="printed, " + wide["model"], kept=1 - wide["igap"] / guess))
    return pd.concat(tables).rename_axis("target").reset_index().drop(columns="model")


def means_of(rows: pd.DataFrame, source: str) -> pd.DataFrame:
    """One row per subject, in per cent: accuracy at home and abroad, IGAP and the share kept."""
    columns = ["accuracy", *_ENDS]
    means = rows[rows["target"] == MEAN_TARGET].set_index("subject")[columns] * 100
    home = rows[rows["target"] == source].set_index("subject")["accuracy"] * 100
    means.insert(0, "at home", home.reindex(means.index))
    means.loc[ONE_LABEL, "at home"] = means.loc[ONE_LABEL, "accuracy"]
    return means.rename(columns={"accuracy": "abroad"}).reset_index()


def report_igap(given: argparse.Namespace) -> None:
    """Say what is learnt, learn it, write ``igap.csv`` and ``igap.html``."""
    if given.quantization or given.device_map:
        option = "--quantization" if given.quantization else "--device-map"
        raise ValueError(f"leave out {option}: {_WHOLE}")
    options.tell_downloads([given.model])
    model = inputs.reported_model(given.model)
    task, jobs = planned(model, given)
    n, label, missing = given.seeds, model.label, finetuning.unstored(jobs)
    print(
        f"{label}: {task}; it learns in {given.source}, {n} run{'s' * (n > 1)}, at a rate of "
        f"{jobs[0].recipe.learning_rate:g}"
    )
    print(
        f"computing {len(missing)} runs, of it and {BEFORE}: about "
        f"{minutes_of(model, task, missing):.1f} minutes"
        if missing
        else "all runs are stored: nothing is computed"
    )
    if given.estimate:
        return
    runs = finetuning.finetune_all(jobs)
    ours, twin = (Transfers(task, tuple(part)) for part in (runs[:n], runs[n:]))
    own, before = subject_rows(ours, label), subject_rows(twin, f"{label}, {BEFORE}")
    if own["igap"].isna().all():
        raise ValueError(
            f"IGAP of {label} is not defined: it errs on {100 * own['training'].iloc[0]:.1f} % of "
            f"the training set and more, above {100 * TOLERANCE:g} %: take more --epochs or "
            "another --lr"
        )
    others = beside(task, given.source, given.model, jobs[0].recipe.max_length)
    rows = pd.concat([own, before, others], ignore_index=True)
    lines, means = igap_headline(rows, ours), means_of(rows, given.source)
    folder = options.output_folder(given, label)
    store.write_whole(folder / "igap.csv", rows.round(4).to_csv(index=False).encode())
    shown = rows[rows["subject"].isin(rows["subject"].unique()[:3])]
    page = framed(
        f"IGAP of {label}",
        *lines,
        shown_figure(gap_figure(shown)),
        means.round(1),
        rows,
        f"{task}",
        _READING,
    )
    store.write_whole(folder / "igap.html", page.encode())
    table = means.to_string(index=False, float_format="{:.1f}".format, na_rep="")
    print(*lines, "", table, "", folder / "igap.html", sep="\n")


@styled
def gap_figure(rows: pd.DataFrame) -> Figure:
    """IGAP by target language: the model, it before training, and shared subwords."""
    rows = rows[rows["igap"].notna()]
    on = lanes(rows, "igap", "target", hue="subject", style=Lanes(width=6.4))
    return on.done("IGAP (share of the training set)")


def igap_headline(rows: pd.DataFrame, of: Transfers) -> list[str]:
    """Sentences: what is lost and kept, and by what knows no language; accuracy; parts of errors.

    ``rows``: first the model's, then those of it before training.
    """
    means = rows[rows["target"] == MEAN_TARGET].set_index("subject")
    label, before = means.index[:2]
    source, n = of.runs[0].source, len(of.task.languages) - 1

    def told(subject: str, *columns: str) -> str:
        value, *ends = (100 * means.loc[subject, x] for x in columns)
        return f"{value:.1f}" + (f" ({ends[0]:.1f} to {ends[1]:.1f})" if ends else "")

    lost = told(before, *_ENDS[:3])
    if np.isnan(means.loc[before, "igap"]):
        lost = f"(not learnt: it errs on {told(before, 'training')} %)"
    home = 100 * rows.loc[(rows["subject"] == label) & (rows["target"] == source), "accuracy"]
    points = of.points()
    last = points[points["step"] == points["step"].max()].mean(numeric_only=True) * 100
    return [
        f"{label}, taught {of.task.name} in {source}, loses {told(label, *_ENDS[:3])} points in "
        f"translation to {n} languages: it keeps {told(label, *_ENDS[3:])} % of what a guess loses",
        f"{BEFORE} it loses {lost}, shared subwords {told(STRINGS, 'igap')}, one label "
        f"{told(ONE_LABEL, 'igap')}, a guess {100 * of.task.guess:.1f}",
        f"of unread examples it has {home.iloc[0]:.1f} % right in {source} and "
        f"{told(label, 'accuracy')} % in the others, one label {told(ONE_LABEL, 'accuracy')} %",
        f"of its {last['error']:.1f} points of error there {last['training']:.1f} were not learnt, "
        f"{last['interlingual']:.1f} are lost between languages, and unread examples add "
        f"{last['intralingual']:.1f}",
    ]
