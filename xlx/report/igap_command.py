"""``xlx igap``: what an encoder loses in other languages of what it has learnt in one (IGAP)."""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd
from pandas import DataFrame
from typer import Option

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
from xlx.plots.primitives import lanes
from xlx.plots.style import styled
from xlx.report import inputs, options
from xlx.report.inputs import ReportedModel
from xlx.report.page import framed, in_text, shown_figure, write_page
from xlx.results import checks, paths
from xlx.subjects import finetuning, loading
from xlx.subjects.jobs import Job, Recipe

#: Hidden units from which a network is wide, and how an untrained one learns whatever its width.
_WIDE_FROM, _UNTRAINED_RATE = 256, 3e-4
#: Positions that 128 subwords need; RoBERTa and its kin count from 2 on.
_POSITIONS = 130
BEFORE, STRINGS, ONE_LABEL = "before training", "shared subwords", "one label"
#: Task → its printed table, and what a guess loses there; gaps of two tasks do not compare (3.1).
_PRINTED = {"NLI": ("table6", 2 / 3), "PI": ("table7", 1 / 2)}
_ENDS = ["igap", "low", "high", "kept", "kept_low", "kept_high"]
_READING = """
IGAP: the share of the training set that is wrong in translation, less that wrong in the source, of
models that err there on 2.5 % at most, the mean of these (a minimum falls with their number). Kept:
the part of what a guess with the same training error would lose that is not lost.
Intervals are of 95 % over examples, those with one premise together, and seeds; with one seed over
examples alone. Shared subwords give a translation the label of the training example that it shares
most subwords with. Printed rows, of NLI and PI, are the least gap of models that are fine-tuned in
English on all of the validation part: compare the share kept, not the points.
"""


@dataclass(kw_only=True)
class Igap(options.Asking):
    """What an encoder loses in other languages of what it has learnt in one (IGAP).

    It is fine-tuned, with a new head, on a shipped task in one language, and asked the same
    examples in translation: a row of Table 6 of Chi, Huang and Mao. Beside it stand the model
    before training, which learns the same; the subwords that translations share; one label; and
    of NLI and PI printed rows. Stop it at any time: it goes on by run, and within one.
    """

    task: str = Option("negation", help="negation, NLI (XNLI), PI (PAWS-X)")
    source: str = Option("en", help="the language that it learns in")
    seeds: int = Option(1, help="runs of the model, and of it before training")
    epochs: int | None = Option(None, help="passes over the training set")
    lr: float | None = Option(None, help="1e-4 by default, or 3e-4 below 256 hidden units")

    def run(self) -> None:
        """Say what is learnt, learn it, write ``igap.csv`` and ``igap.html``."""
        model = inputs.reported_model(self.model)
        task, jobs = self.plan(model)
        label, source, recipe = model.label, inputs.code_of(self.source), jobs[0].recipe
        print(f"{label}: {task}; it learns in {source}, at a rate of {recipe.learning_rate:g}")
        missing = [readings(task, job.recipe) for job in finetuning.unstored(jobs)]
        minutes = partial(self.minutes, sum(missing), task.train)
        options.foresee(len(missing), f"runs, of it and {BEFORE}", minutes)
        if self.estimate:
            return
        runs = finetuning.finetune_all(jobs)
        ours, twin = (Transfers(task, tuple(x)) for x in (runs[: self.seeds], runs[self.seeds :]))
        learnt, before = subject_rows(ours, label), subject_rows(twin, f"{label}, {BEFORE}")
        if learnt["igap"].isna().all():
            raise ValueError(
                f"IGAP of {label} is not defined: it errs on {learnt['training'].iloc[0]:.1%} of "
                f"the training set and more, above {TOLERANCE:.1%}: take more --epochs or another "
                "--lr"
            )
        others = beside(task, source, self.model, recipe.max_length)
        rows = pd.concat([learnt, before, others], ignore_index=True)
        means, figure = means_of(rows, source), shown_figure(gap_figure(rows))
        lines = igap_headline(means.set_index("subject"), ours, source)
        page = framed(f"IGAP of {label}", *lines, figure, means, rows, str(task), _READING)
        path = write_page(self.folder(label) / "igap.html", page, {"igap": rows.round(4)})
        print(*lines, "", in_text(means), "", path, sep="\n")

    def check(self) -> None:
        """ValueError for a model that is quantised, and an unknown task."""
        super().check()
        if hasattr(loading.configuration(self.model), "quantization_config"):
            raise ValueError(
                "all weights are learnt: give those that the model was quantised from, or ask xlx "
                "report"
            )
        checks.one_of(self.task, SHIPPED, "--task")

    def plan(self, model: ReportedModel) -> tuple[TransferTask, list[Job]]:
        """The task, and the runs of the model and then, as many, of it before training.

        ValueError for a model that is no encoder; TextError for a language that the task lacks.
        """
        if model.kind != "encoder":
            raise ValueError(
                f"{model.label} is a model of the kind {model.kind}, and only encoders are "
                "fine-tuned here: ask xlx mexa or xlx report, which read it as it is"
            )
        checks.whole(self.seeds, "--seeds")
        languages, sizes, usual, untrained = SHIPPED[self.task]
        source, codes = inputs.code_of(self.source), self.codes or languages
        codes = codes if source in codes else [source, *codes]
        task = labelled_task(self.task, checks.several(codes, "languages"), **sizes)
        if len(codes) < 2:
            raise ValueError(f"--languages has no other than {source}: name one to transfer to")
        config = loading.configuration(model.name).get_text_config()
        recipe = replace(usual, **(WIDE if config.hidden_size >= _WIDE_FROM else NARROW))
        if getattr(config, "max_position_embeddings", _POSITIONS) < _POSITIONS:
            recipe = replace(recipe, max_length=None)  # what the model takes
        asked = {"epochs": self.epochs, "dtype": self.dtype, "learning_rate": self.lr}
        asked = {name: value for name, value in asked.items() if value is not None}
        slowly = {"learning_rate": untrained.get("learning_rate", _UNTRAINED_RATE)}
        before = before_training(str(model.name))
        recipes = {
            str(model.name): replace(recipe, **asked),
            str(getattr(before, "path", before)): replace(recipe, **untrained | asked | slowly),
        }
        sparing, train = sparing_in(task, source, SPARING), task.train[source]
        return task, [
            Job(name, train, task.sets, recipe, seed, sparing)
            for name, recipe in recipes.items()
            for seed in range(1, self.seeds + 1)
        ]


def readings(task: TransferTask, recipe: Recipe) -> int:
    """How often a run reads an example: a step of training counts as three readings."""
    n = 3 * recipe.epochs + len(recipe.checkpoint_steps(task.n_train)) + len(task.languages)
    return n * task.n_train + len(task.languages) * task.n_test


def subject_rows(transfers: Transfers, subject: str) -> DataFrame:
    """Columns ``subject, target, accuracy``, of the last checkpoint, ``training``, the lowest error
    on what was learnt, and of `Transfers.gap_table` at E' = 0 the value and the share kept."""
    points, gaps = transfers.points(), transfers.gap_table()
    last = points[points["step"] == points["step"].max()]
    accuracy = 1 - last.groupby("target", sort=False)["error"].mean()
    accuracy[MEAN_TARGET] = accuracy.mean()
    source = points["source"].iloc[0]
    accuracy[source] = (1 - last["error"] + last["transfer_gap"]).mean()
    gaps = (gaps.loc[source] if len(gaps) else gaps).rename(columns={"value": "igap"})
    table = DataFrame({"accuracy": accuracy}).rename_axis("target")
    table[_ENDS] = gaps.reindex(table.index)[_ENDS]
    return table.reset_index().assign(subject=subject, training=points["training"].min())


def beside(task: TransferTask, source: str, name: str, max_length: int | None = None) -> DataFrame:
    """Rows as `subject_rows` of what knows no language, and of the task's printed table, if any."""
    shared = shared_subwords(name, task, [source], max_length=max_length).set_index("target")
    lost = DataFrame({STRINGS: shared["interlingual"], ONE_LABEL: task.one_label})
    lost.loc[MEAN_TARGET] = lost.mean()
    rows = lost.melt(var_name="subject", value_name="igap", ignore_index=False)
    rows["kept"] = 1 - rows["igap"] / task.guess
    label = np.bincount(task.train[source].labels).argmax()
    right = (task.test[source].labels == label).mean()  # translations have the same labels
    rows["accuracy"] = rows["subject"].map({ONE_LABEL: right})
    if task.name not in _PRINTED:
        return rows.reset_index(names="target")
    stem, guess = _PRINTED[task.name]
    table = pd.read_csv(next((paths.PUBLISHED / "igap").glob(f"{stem}_*.csv")))
    table["target"] = table["target_language"].replace("avg", MEAN_TARGET)
    table["subject"] = "printed, " + table["model"]
    printed = table.pivot(index=["target", "subject"], columns="quantity", values="value") / 100
    printed = printed.rename(columns={"IGap": "igap", "test_acc": "accuracy"}).reset_index()
    printed["kept"] = 1 - printed["igap"] / guess
    return pd.concat([rows.reset_index(names="target"), printed])


def means_of(rows: DataFrame, source: str) -> DataFrame:
    """One row per subject: accuracy at home and abroad, training error, IGAP, the share kept."""
    means, home = (rows[rows["target"] == x].set_index("subject") for x in (MEAN_TARGET, source))
    means["at home"] = home["accuracy"]
    means.loc[ONE_LABEL, "at home"] = means.loc[ONE_LABEL, "accuracy"]
    means = means.rename(columns={"accuracy": "abroad"})
    return means[["at home", "abroad", "training", *_ENDS]].reset_index()


@styled
def gap_figure(rows: DataFrame) -> Figure:
    """IGAP by target language: the model, it before training, and shared subwords."""
    rows = rows[rows["subject"].isin(rows["subject"].unique()[:3]) & rows["igap"].notna()]
    on = lanes(rows, "igap", "target", hue="subject", width=6.4)
    return on.done("IGAP (share of the training set)")


def igap_headline(means: DataFrame, transfers: Transfers, source: str) -> list[str]:
    """Sentences: what is lost and kept, and by what knows no language; accuracy; parts of errors.

    ``means``: as `means_of`, first the model's, then those of it before training.
    """
    task, points, (label, before) = transfers.task, transfers.points(), means.index[:2]
    last = 100 * points[points["step"] == points["step"].max()].mean(numeric_only=True)

    def number(subject: str, value: str, *ends: str) -> str:
        span = " to ".join(f"{100 * means.loc[subject, x]:.1f}" for x in ends)
        return f"{100 * means.loc[subject, value]:.1f}" + f" ({span})" * bool(ends)

    lost = f"loses {number(before, *_ENDS[:3])}"
    if np.isnan(means.loc[before, "igap"]):
        lost = f"does not learn it: it errs on {number(before, 'training')} %"
    return [
        f"{label}, taught {task.name} in {source}, loses {number(label, *_ENDS[:3])} points in "
        f"translation to {len(task.languages) - 1} languages: it keeps {number(label, *_ENDS[3:])} "
        "% of what a guess loses",
        f"{BEFORE} it {lost}; shared subwords lose {number(STRINGS, 'igap')}, one label "
        f"{number(ONE_LABEL, 'igap')}, a guess {100 * task.guess:.1f}",
        f"of unread examples it has {number(label, 'at home')} % right in {source} and "
        f"{number(label, 'abroad')} % in the others, one label {number(ONE_LABEL, 'abroad')} %",
        f"of its {last['error']:.1f} points of error there {last['training']:.1f} were not learnt, "
        f"{last['interlingual']:.1f} are lost between languages, and unread examples add "
        f"{last['intralingual']:.1f}",
    ]
