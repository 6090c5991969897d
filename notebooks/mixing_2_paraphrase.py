"""Pairs of sentences: what is asked of SICK and PAWS-X, AUC, and translations told from others."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd

from shared import controls, mixing_tables
from shared.mixing_tables import Origin, TaskData, baseline_grid
from shared.pair_regressions import ENDS, held_out, with_language
from shared.regressions import regression
from shared.shown import as_points
from xlx.experiment.abx_scores import history
from xlx.experiment.grids import Grid, grid
from xlx.experiment.scoring import subject_scores
from xlx.measures import mixing
from xlx.measures.abx import PairScores
from xlx.measures.statistics import LEVEL
from xlx.results.deferred import deferred
from xlx.subjects.identity import twin_of
from xlx.subjects.jobs import Recipe
from xlx.text.examples import Examples
from xlx.text.languages import LANGUAGES
from xlx.text.parallel import ParallelCorpus

stats = deferred("scipy.stats")

#: The measure that has its own threshold in each cell.
THRESHOLD = "accuracy, threshold by cell"


def pair_data(
    task: str,
    languages: Sequence[str],
    source: str,
    n_train: int | None,
    n_test: int | None,
    origin: Origin,
    split: str,
    seed: int,
) -> TaskData:
    """SICK, of which ``n_test`` pairs are drawn by ``seed``; or "PI", by `task_data`."""
    about = languages, source, n_train, n_test
    if task == "PI":
        return mixing_tables.task_data(task, *about, origin, split)
    origin = Origin(train_source=task, test_source=task)
    return mixing_tables.inference_data(*about, origin, split, seed)[0]


def commonest(data: TaskData) -> Grid:
    """The grid of who always gives the commonest label of the sets."""
    shape = len(data.sets), len(data.sets), len(data.gold)
    answered = np.full(shape, np.bincount(data.gold.labels).argmax())
    return baseline_grid("commonest label", data.sets, answered)


def label_aucs(grids: Sequence[Grid], labels: np.ndarray, label: int) -> np.ndarray:
    """Values of pairs whose mean is the AUC of a label, ``(S, L, L, n)``: no threshold enters.

    ``grids`` are of one model, a seed each, with logits; evidence is the log odds of the label.
    """
    logits = np.stack([of_seed.logits for of_seed in grids]).astype(np.float64)
    logits = np.concatenate([logits[..., [label]], np.delete(logits, label, axis=-1)], axis=-1)
    return mixing.auc_values(mixing_tables.evidence(logits), labels == label)


def settings_of(values: np.ndarray) -> np.ndarray:
    """Means of ``(S, L, L, n)`` within, across and their difference: ``(S, 3, n)``."""
    here = np.eye(values.shape[1], dtype=bool)
    within, across = values[:, here].mean(axis=1), values[:, ~here].mean(axis=1)
    return np.stack([within, across, within - across], axis=1)


def signals(grids: Sequence[Grid], gold: Examples) -> dict[str, np.ndarray]:
    """Accuracy, that with a threshold by cell, and the AUC of each label, ``(S, L, L, n)``."""
    logits = np.stack([of_seed.logits for of_seed in grids])
    measured = {
        "accuracy": logits.argmax(axis=-1) == gold.labels,
        THRESHOLD: mixing_tables.thresholds_by_cell(logits, gold.labels) == gold.labels,
    }
    measured = {name: right.astype(np.float64) for name, right in measured.items()}
    return measured | {
        f"AUC, {name}": label_aucs(grids, gold.labels, k) for k, name in enumerate(gold.classes)
    }


def in_training(train: Examples, gold: Examples) -> tuple[float, float]:
    """The share of pairs whose sentences both stand in training pairs, and of sentences."""
    learnt = {*train.first, *train.second}
    inside = np.array([[x in learnt for x in side] for side in (gold.first, gold.second)])
    return inside.all(axis=0).mean(), inside.mean()


# --- when nothing is learnt -----------------------------------------------------------------------


def when_nothing_is_learnt(
    task: str,
    languages: Sequence[str],
    models: Sequence[str],
    recipe: Recipe,
    seeds: Sequence[int],
    n_train: int,
    n_test: int,
) -> pd.DataFrame:
    """Fine-tuned ``models`` and what cannot compare: a row a ``model`` and setting.

    Beside each: its second texts alone, the untrained twin of the first, a bag of subwords and the
    commonest label. ``score less``, ``low less``, ``high less``: a model less the ``baseline`` that
    has most in a setting. The first language is learnt.
    """
    data = mixing_tables.task_data(task, languages, languages[0], n_train, n_test)
    asked = [*models, *(twin_of(x) for x in models[:1])]
    grids = mixing_tables.mean_grids(grid(data.jobs(asked, recipe, seeds), data.sets))
    without = partial(controls.only, part="second"), "second alone"
    alone = mixing_tables.changed_grids(*without, models, data, recipe, seeds)
    (*trained, twin), rules = grids.values(), [*alone, commonest(data)]
    rules += [twin, mixing_tables.bag_of_subwords(models[0], data.train, data.sets)]
    summary = mixing_tables.measured([*trained, *rules], mixing.summary)
    keys = ["model", "setting", "language"]
    over = mixing_tables.above_baselines(trained, rules).sort_values("score", kind="stable")
    best, about = over.drop_duplicates(keys), {"task": mixing_tables.TASK_NAMES[task]}
    joined = summary.merge(best, on=keys, how="left", suffixes=("", " less")).assign(**about)
    return joined[joined["language"] == mixing.OVERALL]


# --- same or other --------------------------------------------------------------------------------


def forced_choice(measured: PairScores, task: str) -> pd.Series:
    """How often a sentence's translation is nearer than another sentence, by pair of languages.

    The layer of a pair is the best one of the pairs that share no language with it.
    """
    table = measured.table().query("task == @task")
    wide = table.pivot_table("score", ["language_1", "language_2"], "layer")
    values, sides = wide.to_numpy(), [wide.index.get_level_values(k) for k in (0, 1)]
    names, places = np.unique(np.stack(sides), return_inverse=True)
    places = places.reshape(2, -1)
    sums = np.zeros((len(names), values.shape[1]))
    np.add.at(sums, places, values)
    others = values.sum(axis=0) - sums[places].sum(axis=0) + values
    best = others.round(9).argmax(axis=1)  # sums of equal scores may differ by rounding
    return pd.Series(values[np.arange(len(values)), best], wide.index)


def by_overlap(choices: pd.DataFrame, model: str, bag: str) -> pd.DataFrame:
    """Means of `forced_choice` by scripts and by overlap, and the model less the bag.

    ``choices``: pairs of languages by subject. Overlap is the bag's own score, in thirds of the
    pairs. ``score``, ``low``, ``high``: model less bag (`over_languages`).
    """
    first, second = (choices.index.get_level_values(k) for k in (0, 1))
    scripts = [[LANGUAGES[code].script for code in side] for side in (first, second)]
    one_script = np.array(scripts[0]) == np.array(scripts[1])
    third = pd.qcut(choices[bag].rank(method="first"), 3, labels=False).to_numpy()
    masks = {
        "all pairs": np.full(len(choices), True),
        "one script": one_script,
        "two scripts": ~one_script,
        "least overlap": third == 0,
        "most overlap": third == 2,
    }
    gain, rows = choices[model] - choices[bag], {}
    for name, mask in masks.items():
        row = {"pairs": mask.sum()} | choices[mask].mean().to_dict()
        rows[name] = row | dict(
            zip(("score", "low", "high"), over_languages(gain[mask]), strict=True)
        )
    return pd.DataFrame(rows).T


def over_languages(values: pd.Series) -> tuple[float, float, float]:
    """The mean over pairs of languages, which hang together by the languages that they share.

    ``values`` by pair. What the pairs of a language add to the error is squared and summed, and
    each pair taken off once, as it is there twice (Aronow, Samii and Assenova 2015); each language
    is corrected as a group in `mixing.Groups`. Student's t, of as many degrees of freedom as there
    are languages of equal weight, less one. In simulation it covers 92 to 98 % with 12
    languages, or 6 by 14, and more, and some 90 % with 5. No interval where one language is in all
    pairs.
    """
    n, each = len(values), values.to_numpy(float)
    score, apart = each.mean(), (each - each.mean()) / n
    sides = [values.index.get_level_values(k) for k in (0, 1)]
    _, places = np.unique(np.concatenate(sides), return_inverse=True)
    sums, share = np.bincount(places, np.tile(apart, 2)), np.bincount(places) / n
    if (share == 1).any():
        return score, np.nan, np.nan
    squares = (apart**2).sum()
    variance = max((sums**2 / (1 - share)).sum() - squares, squares)
    freedom = (share**2).sum() ** 2 / (share**4).sum() - 1
    half = stats.t.ppf((1 + LEVEL) / 2, freedom) * np.sqrt(variance)
    return score, score - half, score + half


def romanised_choices(choices: Mapping[str, pd.DataFrame], model: str, bag: str) -> pd.DataFrame:
    """`forced_choice` of a model and of the bag "as it is" and "romanised", and the difference.

    ``choices``: script → pairs of a language that is romanised and one that is not, by subject.
    The last row is the difference at equal overlap: of as it is, what a line over the bag's own
    score gives at the bag's score of each romanised pair. Intervals are by `over_languages`.
    """
    before, after = choices.values()
    line = np.polyfit(before[bag], before[model], 1)
    values = {f"{x}, {key}": pairs[x] for key, pairs in choices.items() for x in (bag, model)}
    values |= {f"{x}, difference": after[x] - before[x] for x in (bag, model)}
    values["at equal overlap, difference"] = after[model] - np.polyval(line, after[bag])
    rows = {name: over_languages(each) for name, each in values.items()}
    return pd.DataFrame(rows, index=["score", "low", "high"]).T


# --- which pairs of languages ---------------------------------------------------------------------

#: What a pair's score is regressed on beside the measures: the score of the bag of subwords.
OVERLAP = "overlap"


def pairs_of_states(
    names: Sequence[str],
    steps: Sequence[int],
    text: ParallelCorpus,
    other: ParallelCorpus,
    task: str,
    measures: Sequence[str],
    overlap: pd.Series,
    **states: object,
) -> dict[tuple[str, int], pd.DataFrame]:
    """(model, step) → a row a pair of languages: ``score``, `OVERLAP` and measures.

    The score is `forced_choice` on a ``text``. Measures are of the same states on ``other``
    sentences, means over layers. Of each model the shipped checkpoints after these ``steps``, and
    of pairs those that ``other`` has.
    """
    several = [x for name in names for x in history(name) if getattr(x, "step", 0) in steps]
    pairs = {}
    for here, there in zip(
        subject_scores(several, text, [task], **states),
        subject_scores(several, other, measures, **states),
        strict=True,
    ):
        table = there.table()
        rows = table.groupby(["language_1", "language_2", "task"])["score"].mean().unstack()
        rows = rows.assign(**{"score": forced_choice(here, task), OVERLAP: overlap})
        model, step = table[["model", "checkpoint"]].iloc[0]
        pairs[model, int(step)] = rows.rename_axis(ENDS).reset_index()
    return pairs


def slopes(pairs: Mapping[tuple[str, int], pd.DataFrame], terms: Sequence[str]) -> pd.DataFrame:
    """A pair's score regressed on each term alone: a row a ``model``, ``step`` and ``term``.

    ``score`` with ``low``, ``high``: what one standard deviation of the term adds, with errors
    clustered by both languages; ``R²`` on a language held out (`pair_regressions.held_out`);
    ``right``: the mean of what is regressed.
    """
    rows = []
    for (model, step), table in pairs.items():
        for term in terms:
            scaled = table.assign(**{term: (table[term] - table[term].mean()) / table[term].std()})
            fit = regression(scaled, "score", [term], clusters=list(ENDS)).table
            fit = fit[(fit["errors"] == "dyadic") & (fit["term"] == term)]
            unseen = held_out(scaled, "score", [term], with_language(scaled))
            ends = fit[["coefficient", "low", "high"]].to_numpy()[0]
            rows.append((model, step, term, *ends, unseen, table["score"].mean()))
    columns = ["model", "step", "term", "score", "low", "high", "R²", "right"]
    return pd.DataFrame(rows, columns=columns)


def shown_slopes(table: pd.DataFrame) -> pd.DataFrame:
    """`slopes` in points as text, with R² behind a semicolon: a term a column; then the scores."""
    text = as_points(table) + [f"; {x:.2f}" for x in table["R²"]]
    wide = table.assign(text=text).pivot(index=["model", "step"], columns="term", values="text")
    wide = wide[list(dict.fromkeys(table["term"]))]
    right = (100 * table.groupby(["model", "step"])["right"].first()).round(1)
    return wide.assign(**{"right choices (%)": right})
