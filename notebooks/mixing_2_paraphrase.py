"""Pairs of sentences: what is asked of SICK and PAWS-X, AUC, and translations told from others."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import special, stats

from shared import mixing_tables
from shared.mixing_tables import TaskData, baseline_grid
from xlx.experiment.abx_scores import CheckpointScores
from xlx.experiment.grids import Grid
from xlx.measures.mixing import OVERALL, SETTINGS, Resamples, percentile_ends
from xlx.text import labelled
from xlx.text.languages import LANGUAGES


def pair_data(
    task: str, languages: Sequence[str], source: str, n_train: int | None, n_test: int | None, *,
    train_data: str | None, test_data: str | None, split: str, seed: int,
) -> TaskData:  # fmt: skip
    """SICK, of which ``n_test`` pairs are drawn by ``seed``; or "PI", by `task_data`."""
    if task == "PI":
        return mixing_tables.task_data(
            task, languages, source, n_train, n_test, train_data=train_data, test_data=test_data,
            split=split,
        )  # fmt: skip
    whole, left_out = labelled.parallel_examples("NLI", languages, split, source=task)
    learnt, _ = labelled.parallel_examples("NLI", [source], "train", n_train, source=task)
    sets = {code: part.take(n_test or len(part), seed) for code, part in whole.items()}
    return TaskData(learnt[source], whole[source], sets, left_out)


def commonest(data: TaskData) -> Grid:
    """The grid of who always gives the commonest label of the sets."""
    label = np.bincount(data.gold.labels).argmax()
    said = np.full((len(data.sets), len(data.sets), len(data.gold)), label)
    return baseline_grid("commonest label", data.sets, said)


def auc_settings(
    grids: Sequence[Grid], labels: np.ndarray, label: int, *, n_resamples: int, seed: int
) -> pd.DataFrame:
    """AUC of a label against the others, within and across: no threshold enters.

    How often a pair with the label has more evidence (log odds of the label) than one without; a
    tie counts ½. ``grids`` are of one model, a seed each, with logits. The mean over languages, as
    `mixing.summary` has it; intervals over groups and seeds by each pair's share of the other class
    on its right side (DeLong et al. 1988).
    """
    positive, n = labels == label, len(labels)
    logits = np.stack([one.logits for one in grids]).astype(np.float64)  # (S, L, L, n, classes)
    others = special.logsumexp(np.delete(logits, label, axis=-1), axis=-1)
    evidence = logits[..., label] - others
    ranks, values = stats.rankdata(evidence, axis=-1), np.empty(evidence.shape)
    for side in (positive, ~positive):
        below = ranks[..., side] - stats.rankdata(evidence[..., side], axis=-1)
        share = below / (~side).sum()
        values[..., side] = share if side is positive else 1 - share
    auc = values[..., positive].mean(axis=-1, keepdims=True)
    values = auc + (values - auc) * n / np.where(positive, positive.sum(), (~positive).sum())
    here = np.eye(values.shape[1], dtype=bool)
    within, across = values[:, here].mean(axis=1), values[:, ~here].mean(axis=1)  # (S, n)
    each = np.stack([within, across, within - across], axis=1)  # (S, 3, n)
    drawn = Resamples.draw(n, grids[0].groups, n_resamples, seed)
    low, high = percentile_ends(drawn.means(each.mean(axis=0)), each.mean(axis=-1))
    table = {"setting": SETTINGS, "score": each.mean(axis=(0, 2)), "low": low, "high": high}
    return pd.DataFrame(table).assign(model=grids[0].model, language=OVERALL)


# --- same or other --------------------------------------------------------------------------------


def forced_choice(measured: CheckpointScores, task: str) -> pd.Series:
    """How often a sentence's translation is nearer than another sentence, by pair of languages.

    The layer of a pair is the best one of the pairs that share no language with it.
    """
    table = measured.table().query("task == @task")
    wide = table.pivot_table("score", ["language_1", "language_2"], "layer")
    first, second = (wide.index.get_level_values(k) for k in (0, 1))
    found = {}
    for a, b in wide.index:
        others = ~(first.isin([a, b]) | second.isin([a, b]))
        found[a, b] = wide.loc[(a, b), wide[others].mean().idxmax()]
    return pd.Series(found)


def by_overlap(
    choices: pd.DataFrame, model: str, bag: str, *, n_resamples: int, seed: int
) -> pd.DataFrame:
    """Means of `forced_choice` by scripts and by overlap, and the model less the bag.

    ``choices``: pairs of languages by subject. Overlap is the bag's own score, in thirds of the
    pairs. ``score``, ``low``, ``high``: model less bag; resampled are languages.
    """
    first, second = (choices.index.get_level_values(k) for k in (0, 1))
    scripts = [[LANGUAGES[code].script for code in side] for side in (first, second)]
    one_script = np.array(scripts[0]) == np.array(scripts[1])
    third = pd.qcut(choices[bag].rank(method="first"), 3, labels=False).to_numpy()
    masks = {
        "all pairs": np.full(len(choices), True), "one script": one_script,
        "two scripts": ~one_script, "least overlap": third == 0, "most overlap": third == 2,
    }  # fmt: skip
    codes = sorted({*first, *second})
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(len(codes), np.full(len(codes), 1 / len(codes)), n_resamples)
    place = {code: k for k, code in enumerate(codes)}
    weights = drawn[:, [place[x] for x in first]] * drawn[:, [place[x] for x in second]]
    gain, rows = (choices[model] - choices[bag]).to_numpy(), {}
    for name, mask in masks.items():
        sizes = weights[:, mask].sum(axis=1)
        means = (weights[:, mask] @ gain[mask])[sizes > 0] / sizes[sizes > 0]
        low, high = percentile_ends(means)
        row = {"pairs": mask.sum()} | choices[mask].mean().to_dict()
        rows[name] = row | {"score": gain[mask].mean(), "low": low, "high": high}
    return pd.DataFrame(rows).T
