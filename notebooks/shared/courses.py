"""Along pretraining: what checkpoints lose in translation, beside what is measured of them.

Gaps are IGAP at one training error (`Transfers.losses`), shares in [0, 1]; measures are means over
layers and pairs of languages with the source.
"""

import warnings
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from shared.shown import asking
from xlx.experiment.abx_scores import MATCHED, history
from xlx.experiment.constraints import masks_of
from xlx.experiment.scoring import Subject, cached, subject_scores
from xlx.experiment.transfers import Transfers, TransferTask, transfer_task
from xlx.measures import abx, registered
from xlx.plots.primitives import curves
from xlx.plots.style import looks, styled
from xlx.subjects.identity import Checkpoint, title
from xlx.subjects.jobs import Recipe, Sparing
from xlx.text.parallel import ParallelCorpus

#: What is measured of a checkpoint without fine-tuning, and the dull cause of any agreement.
COURSES, SCHEDULE = ("LD", "MD", MATCHED, "retrieval", "MEXA"), "training step"


def course_states(series: Sequence[str], steps: Sequence[int] = ()) -> list[Checkpoint | str]:
    """The checkpoints whose weights are here, of ``steps``; none: of all.

    Of a series without any weights here those of ``steps`` on record (`Checkpoint.recorded`).
    """
    every = [history(name, recorded=bool(steps)) for name in series]
    whole = ([x for x in states if not getattr(x, "recorded", None)] or states for states in every)
    return [x for states in whole for x in states if not steps or getattr(x, "step", 0) in steps]


def course_runs(
    states: Sequence[Checkpoint | str],
    task: TransferTask,
    source: str,
    recipe: Recipe,
    seeds: Sequence[int],
    sparing: Sparing | None,
) -> dict[tuple[str, int], Transfers]:
    """(model, step) → the runs of each checkpoint, learnt as by members."""
    runs = {}
    for state in states:
        model = state if getattr(state, "recorded", None) else str(getattr(state, "path", state))
        transfer = transfer_task([model], task, [source], [recipe], seeds, sparing=sparing)
        runs[_key(state)] = transfer
    return runs


def _key(state: Checkpoint | str) -> tuple[str, int]:
    return title(getattr(state, "name", state)), getattr(state, "step", 0)


def course(
    runs: Mapping[tuple[str, int], Transfers], level: float, tolerance: float
) -> pd.DataFrame:
    """IGAP by ``model``, ``step`` and ``target``, mean over seeds (`Transfers.losses`).

    NaN of a checkpoint that does not reach the training error.
    """
    rows = []
    for (model, step), transfer in runs.items():
        lost, source = transfer.losses(level, tolerance), transfer.runs[0].source
        rows += [
            (model, step, code, lost[source, code].mean() if lost else np.nan)
            for code in transfer.task.languages
            if code != source
        ]
    return pd.DataFrame(rows, columns=["model", "step", "target", "igap"])


def course_measures(
    states: Sequence[Checkpoint | str], text: ParallelCorpus, source: str
) -> pd.DataFrame:
    """`COURSES` of the same checkpoints, mean over layers and pairs with the source, as columns.

    Indexed by ``model`` and ``step``; the last column is the step (`SCHEDULE`). Left out are
    checkpoints whose weights are not here and of which nothing is stored.
    """
    measured = source_scores(states, text, source, COURSES, pooling="mean", max_length=None)
    columns = {
        _key(state): [*values["scores"].mean(axis=(1, 2)), _key(state)[1]]
        for state, values in zip(states, measured, strict=True)
        if values is not None
    }
    return pd.DataFrame(columns, [*COURSES, SCHEDULE]).T.rename_axis(["model", "step"])


@cached(tolerance=5e-4)
def source_scores(
    subject: Subject, corpus: ParallelCorpus, source: str, measures: Sequence[str]
) -> dict[str, np.ndarray]:
    """``scores``, ``(n_measures, n_layers, n_languages)``: of the source with each other language.

    Exact (`abx.exact`), the mean of both directions; ``measures``: names of `measures.registered`,
    or `MATCHED`.
    """
    pairs = [(source, code) for code in corpus.languages if code != source]
    reading, known = subject.read(corpus), registered()
    exact = abx.exact(
        reading.states,
        pairs=pairs,
        measures=[known[x] for x in measures if x in known],
        masks=masks_of(corpus, [MATCHED.removeprefix("MD, ")], subject.encoder),
        device=reading.device,
        dtype=reading.dtype,
    )
    return {"scores": np.stack([exact.scores[x].mean(axis=2) for x in measures])}


def run_scores(
    runs: Mapping[str, Sequence[str]], text: ParallelCorpus, source: str, steps: Sequence[int]
) -> pd.DataFrame:
    """LD, MD and matched MD with the source along the runs of recipes, mean over layers.

    ``runs``: recipe → its series. One row per ``model`` (the recipe), ``run``, ``checkpoint``,
    ``task`` and ``language``. A checkpoint without weights here has what is stored of all pairs;
    or no row.
    """
    pairs = [(source, code) for code in text.languages if code != source]
    ways = {"pooling": "mean", "max_length": None}
    at = [
        ((recipe, run), state)
        for recipe, runs_of_recipe in runs.items()
        for run, name in enumerate(runs_of_recipe, start=1)
        for state in history(name, recorded=True)
        if state.step in steps
    ]
    measured = source_scores([state for _, state in at], text, source, COURSES, **ways)
    tables = {}
    for (key, state), values in zip(at, measured, strict=True):
        with warnings.catch_warnings(action="ignore"):  # of what is nowhere: it has no row
            stored = [] if values else subject_scores([state], text, COURSES[:3], **ways)
        whole = [x.as_asked(pairs).scores.values() for x in stored]
        if scores := [*values["scores"][:3]] if values else [x.mean(axis=2) for x in chain(*whole)]:
            means = pd.DataFrame(np.mean(scores, axis=1), COURSES[:3], [code for _, code in pairs])
            tables[*key, state.step] = means.stack()
    names = ["model", "run", "checkpoint", "task", "language"]
    return pd.concat(tables, names=names).rename("score").dropna().reset_index()


def step_correlations(gaps: pd.DataFrame, measures: pd.DataFrame) -> pd.DataFrame:
    """Rank correlation of IGAP with each measure over checkpoints, the run (``model``) held.

    Ranks are taken within a run. ``step held``: less the mean of all runs at a step, too, so that
    what every run does in the course of time is out. NaN where nothing is left.
    """
    means = gaps.groupby(["model", "step"])["igap"].mean().dropna()
    both = measures.join(means, how="inner").groupby(level="model").rank(pct=True)
    both -= both.groupby(level="model").transform("mean")
    held = both - both.groupby(level="step").transform("mean")
    held = held.loc[:, held.abs().max() > 1e-9]
    table = {"r": both.corrwith(both["igap"]), "step held": held.corrwith(held["igap"])}
    return pd.DataFrame(table).drop("igap")


@styled
def course_curves(
    gaps: pd.DataFrame, measures: pd.DataFrame, recipe_of: Mapping[str, str]
) -> Figure:
    """IGAP and two measures over pretraining, a panel each; one line per run."""
    shown, named = looks(dict.fromkeys(recipe_of.values())), pd.Series(recipe_of)
    labels = named.mask(named.duplicated(), "_" + named).to_dict()
    means = gaps.groupby(["model", "step"], sort=False)["igap"].mean()
    columns = {
        "IGAP (points): lower is better": 100 * means,
        "matched MD: higher is better": measures[MATCHED],
        "retrieval: higher is better": measures["retrieval"],
    }
    wide = pd.DataFrame(columns).rename_axis(columns="measure").reset_index()
    rows = wide.melt(["model", "step"], var_name="measure").dropna()
    on = curves(
        rows,
        "step",
        "value",
        hue="model",
        col="measure",
        wrap=3,
        width=2.7,
        sharey=False,
        interval=False,
        even=True,
        labels=labels,
        looks={x: shown[recipe] for x, recipe in recipe_of.items()},
    )
    for axes in on.axes.values():
        axes.tick_params(axis="x", rotation=60)
    question = "Does a checkpoint that aligns better lose less in translation? (a line a run)"
    return asking(question, on.done("pretraining step (0: untrained)"))
