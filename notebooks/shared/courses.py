"""Along pretraining: what checkpoints lose in translation, beside what is measured of them.

Gaps are IGAP at one training error (`Transfers.losses`), shares in [0, 1]; measures are means over
layers and pairs of languages with the source.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from xlx.experiment.abx_scores import MATCHED, history
from xlx.experiment.mexa_scores import measure_coverage
from xlx.experiment.scoring import subject_scores
from xlx.experiment.transfers import Transfers, TransferTask, transfer_task
from xlx.plots.primitives import curves
from xlx.plots.style import styled
from xlx.subjects.identity import title
from xlx.subjects.jobs import Recipe, Sparing
from xlx.text.parallel import ParallelCorpus

#: What is measured of a checkpoint without fine-tuning, and the dull cause of any agreement.
COURSES, SCHEDULE = ("LD", "MD", MATCHED, "retrieval", "MEXA"), "training step"
#: Positions of the text on which MEXA is taken, as in its paper.
HUNDRED = 100


def course_runs(
    series: Sequence[str], task: TransferTask, source: str, recipe: Recipe, seeds: Sequence[int],
    sparing: Sparing | None, steps: Sequence[int] = (),
) -> dict[tuple[str, int], Transfers]:  # fmt: skip
    """(model, step) → the runs of each checkpoint, learnt as by members.

    Of those ``steps``, also where the weights are not here (`identity.Checkpoint.recorded`); none:
    of all whose weights are.
    """
    runs = {}
    for name in series:
        for state in history(name, recorded=bool(steps)):
            step, kept = getattr(state, "step", 0), getattr(state, "recorded", None)
            if step in steps or not steps:
                model = state if kept else str(getattr(state, "path", state))
                of = transfer_task([model], task, [source], [recipe], seeds, sparing=sparing)
                runs[title(name), step] = of
    return runs


def course(
    runs: Mapping[tuple[str, int], Transfers], level: float, tolerance: float,
    without: int | None = None,
) -> pd.DataFrame:  # fmt: skip
    """IGAP by ``model``, ``step`` and ``target``, mean over seeds (`Transfers.losses`).

    ``without``: a seed that is left out.

    NaN of a checkpoint that does not reach the training error.
    """
    rows = []
    for (model, step), of in runs.items():
        of = replace(of, runs=tuple(run for run in of.runs if run.seed != without))
        lost, source = of.losses(level, tolerance), of.runs[0].source
        rows += [
            (model, step, code, lost[source, code].mean() if lost else np.nan)
            for code in of.task.languages
            if code != source
        ]
    return pd.DataFrame(rows, columns=["model", "step", "target", "igap"])


def course_measures(series: Sequence[str], text: ParallelCorpus, source: str) -> pd.DataFrame:
    """`COURSES` of the same checkpoints, mean over layers and pairs with the source, as columns.

    MEXA is of `HUNDRED` positions drawn from the text.

    Indexed by ``model`` and ``step``; the last column is the step (`SCHEDULE`).
    """
    states = [state for name in series for state in history(name)]
    measured = subject_scores(states, text, COURSES[:-1], pooling="mean", max_length=None)
    table = pd.concat(of.table() for of in measured)
    table = table[(table["language_1"] == source) | (table["language_2"] == source)]
    wide = table.groupby(["model", "checkpoint", "task"], sort=False)["score"].mean().unstack()
    wide.index.names = ["model", "step"]
    ways = {"poolings": ["mean"], "alternatives": False}
    few = text.take(min(HUNDRED, len(text)), 1)
    covered = [measure_coverage(state, few, source, **ways)["mean"] for state in states]
    wide[COURSES[-1]] = [of.scores.mu.mean() for of in covered]
    return wide[list(COURSES)].assign(**{SCHEDULE: wide.index.get_level_values("step")})


def within_ranks(table: pd.DataFrame) -> np.ndarray:
    """Ranks of each column within its model, less their mean: the recipe is held."""
    models, ranks = table.index.get_level_values("model"), np.zeros(table.shape)
    for own in (models == model for model in dict.fromkeys(models)):
        ranks[own] = stats.rankdata(table[own], axis=0) - (own.sum() + 1) / 2
    return ranks


def course_correlations(
    gaps: pd.DataFrame, measures: pd.DataFrame, n_resamples: int, seed: int
) -> pd.DataFrame:
    """Rank correlation of IGAP with each measure over checkpoints, the recipe held.

    ``r``, ``low``, ``high``: 95 % over the targets, drawn with replacement; ``p``: how often a
    random order of the checkpoints within each recipe has an r as far from zero; ``step held``: the
    same correlation with the ranks of the training step taken out of both.
    """
    rng = np.random.default_rng(seed)
    wide = gaps.pivot(index=["model", "step"], columns="target", values="igap").dropna()
    ranked = within_ranks(measures.loc[wide.index])
    draws = rng.integers(wide.shape[1], size=(n_resamples, wide.shape[1]))
    means = np.vstack([wide.mean(axis=1), wide.to_numpy()[:, draws].mean(axis=2).T]).T
    over = within_ranks(pd.DataFrame(means, wide.index))
    r = _correlations(ranked, over)
    models = wide.index.get_level_values("model")
    orders = [np.arange(len(wide)) for _ in range(n_resamples)]
    for model, order in product(dict.fromkeys(models), orders):
        order[models == model] = rng.permutation(order[models == model])
    by_luck = _correlations(ranked, over[:, 0][np.array(orders)].T)
    schedule = ranked[:, [measures.columns.get_loc(SCHEDULE)]]
    held = [x - schedule @ np.linalg.lstsq(schedule, x)[0] for x in (ranked[:, :-1], over[:, :1])]
    low, high = np.quantile(r[:, 1:], [0.025, 0.975], axis=1)
    table = {"r": r[:, 0], "low": low, "high": high}
    table["p"] = (np.abs(by_luck) >= np.abs(r[:, :1]) - 1e-9).mean(axis=1)
    table["step held"] = [*_correlations(*held)[:, 0], np.nan]
    return pd.DataFrame(table, measures.columns)


def _correlations(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Of the columns of two tables of deviations, ``(a, b)``; NaN of a constant column."""
    sizes = np.outer(np.linalg.norm(first, axis=0), np.linalg.norm(second, axis=0))
    return np.divide(first.T @ second, sizes, out=np.full(sizes.shape, np.nan), where=sizes > 1e-9)


@styled
def course_curves(gaps: pd.DataFrame, measures: pd.DataFrame) -> Figure:
    """IGAP and two measures over pretraining, a panel each."""
    means = gaps.groupby(["model", "step"], sort=False)["igap"].mean()
    columns = {"IGAP (points; low is good)": 100 * means, "matched MD (share)": measures[MATCHED],
               "retrieval (share)": measures["retrieval"]}  # fmt: skip
    wide = pd.DataFrame(columns).rename_axis(columns="measure").reset_index()
    rows = wide.melt(["model", "step"], var_name="measure")
    on = curves(rows, x="step", value="value", series="model", panel="measure", columns=3,
                width=2.7, sharey=False, low="", even=True)  # fmt: skip
    for axes in on.axes.values():
        axes.tick_params(axis="x", rotation=60)
    return on.done("pretraining step", "")
