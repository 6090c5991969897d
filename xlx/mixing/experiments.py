"""What the within/across notebooks ask: parameters → jobs and grids, results → tables.

Scores in tables are in [0, 1], unless a column says per cent or points.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from xlx.mixing import baselines
from xlx.mixing.answer_tails import tails
from xlx.mixing.grids import Grid, averaged, evaluate, evaluate_each, measured
from xlx.mixing.mixed_pairs import PAIRS_ROWS, pair_table
from xlx.mixing.reading import as_points, by_setting
from xlx.mixing.task_data import TASK_NAMES, TaskData
from xlx.mixing.within_across import OVERALL, cells, paired_difference, summary
from xlx.models.finetuning import Job, Recipe, Run, finetune_all
from xlx.text import answer_scores, examples, questions
from xlx.text.examples import Examples
from xlx.text.questions import Questions

SCORED = {"NLI": "accuracy", "PI": "accuracy", "same": "accuracy", "QA": "F1"}


# --- fine-tuning and grids ------------------------------------------------------------------------


def recipe_of(**options: Any) -> Recipe:
    """The recipe of all these fine-tunings: no warm-up, linear to zero, the last checkpoint."""
    return Recipe(warmup=0.0, schedule="linear", every=10**9, **options)


def jobs_of(
    models: Sequence[str], data: TaskData, recipe: Recipe, seeds: Sequence[int]
) -> list[Job]:
    """A fine-tuning for each model and seed, models first."""
    held_out = {data.name: data.held_out}
    return [Job(name, data.train, held_out, recipe, seed=seed) for name in models for seed in seeds]


def mean_grids(grids: Iterable[Grid], models: Sequence[str]) -> dict[str, Grid]:
    """By model its grid, the mean over seeds."""
    grids = list(grids)
    return {name: averaged([grid for grid in grids if grid.model == name]) for name in models}


def last_runs(jobs: Sequence[Job]) -> list[Run]:
    """The fine-tunings of some jobs, whose weights are kept for the grids."""
    return finetune_all(jobs, weights=True)


def fine_tunings(runs: Iterable[Run], held_out: Examples | Questions) -> pd.DataFrame:
    """By model: seed, steps, loss, score on the held-out set in per cent, and what was cut."""
    reading = isinstance(held_out, Questions)
    rows = []
    for run in runs:
        predicted = run.predictions["validation"][-1]
        right = _f1(held_out, predicted) if reading else np.mean(predicted == held_out.labels)
        row = {"model": run.model, "seed": run.seed, "steps": int(run.steps[-1])}
        row["loss of the last 50 steps"] = round(float(run.losses[-50:].mean()), 2)
        row["F1, validation" if reading else "accuracy, validation"] = round(100 * float(right), 1)
        row["in windows, of training" if reading else "cut, of training"] = run.n_cut["train"]
        rows.append(row)
    return pd.DataFrame(rows).set_index("model")


def _f1(asked: Questions, places: np.ndarray) -> float:
    """Mean F1 of answers at places ``(n, 2)`` in the contexts."""
    said = [text[start:end] for text, (start, end) in zip(asked.contexts, places, strict=True)]
    language = asked.context_language
    pairs = zip(said, asked.answers, strict=True)
    return float(np.mean([answer_scores.f1(text, own, language) for text, own in pairs]))


def cut_pairs(grids: Mapping[str, Grid]) -> pd.DataFrame:
    """By model: how many of the pairs ``asked`` were cut (or questions read in windows)."""
    rows = {
        name: (int(grid.n_cut.sum()), len(grid.groups) * grid.n_cut.size)
        for name, grid in grids.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=["cut", "asked"])


def one_part_grids(
    models: Sequence[str], data: TaskData, recipe: Recipe, seeds: Sequence[int]
) -> dict[str, Grid]:
    """Grids of models that are taught and asked with the second part alone."""
    second = {code: examples.only(part, "second") for code, part in data.sets.items()}
    alone = replace(
        data,
        train=examples.only(data.train, "second"),
        held_out=examples.only(data.held_out, "second"),
        sets=second,
    )
    return mean_grids(evaluate(jobs_of(models, alone, recipe, seeds), second), models)


def questionless_grids(
    models: Sequence[str], data: TaskData, recipe: Recipe, seeds: Sequence[int]
) -> dict[str, Grid]:
    """Grids of readers that are taught and asked without a question."""
    sets = {code: questions.questionless(own) for code, own in data.sets.items()}
    mute = replace(
        data,
        train=questions.questionless(data.train),
        held_out=questions.questionless(data.held_out),
        sets=sets,
    )
    grids = mean_grids(evaluate(jobs_of(models, mute, recipe, seeds), sets), models)
    return {name: replace(grid, model=f"{name}, no question") for name, grid in grids.items()}


def same_or_other_grids(
    models: Sequence[str], data: TaskData, recipe: Recipe, seeds: Sequence[int]
) -> list[Grid]:
    """Grids of the models on "same or other", of the bag of subwords and of two rules."""
    grids = mean_grids(evaluate(jobs_of(models, data, recipe, seeds), data.sets), models)
    return [
        *grids.values(),
        baselines.bag_of_subwords(models[-1], data.train, data.sets),
        baselines.surface_rule(data.sets, "same", counts=False),
        baselines.surface_rule(data.sets, "same"),
    ]


def control_grids(
    data: Mapping[str, TaskData],
    recipes: Mapping[str, Recipe],
    models: Sequence[str],
    seeds: Sequence[int],
    shuffle_seed: int,
) -> dict[tuple[str, str, str], Grid]:
    """By task, model and condition ("original", "shuffled" words): its grid."""
    asked = []
    for task, own in data.items():
        shuffled = replace(own, train=shuffled_words(own.train, shuffle_seed))
        jobs = [job for x in (own, shuffled) for job in jobs_of(models, x, recipes[task], seeds)]
        asked.append((jobs, own.sets))
    found, n = {}, len(models) * len(seeds)
    for task, grids in zip(data, evaluate_each(asked), strict=True):
        for condition, half in (("original", grids[:n]), ("shuffled", grids[n:])):
            of_model = mean_grids(half, models)
            found |= {(task, name, condition): grid for name, grid in of_model.items()}
    return found


def shuffled_words(train: Examples | Questions, seed: int) -> Examples | Questions:
    """A training set with the words of its second part in random order."""
    return train.shuffled(seed)


def shuffled_examples(data: Mapping[str, TaskData], seed: int) -> pd.DataFrame:
    """By task: how many examples there are to learn, and one of them before and after."""
    rows = []
    for task, own in data.items():
        mixed = shuffled_words(own.train, seed)
        side = "questions" if task == "QA" else "second"
        texts = [getattr(part, side)[0] for part in (own.train, mixed)]
        rows.append((TASK_NAMES[task], len(own.train), *texts))
    table = pd.DataFrame(rows, columns=["task", "to learn", "words", "shuffled"])
    return table.set_index("task")


# --- tables of grids ------------------------------------------------------------------------------


def spread_by_side(grid: Grid, source: str, parts: Sequence[str]) -> dict[str, float]:
    """What cells across owe to the language of each side, in points.

    Standard deviations of the terms of a fit by row and column, and of what is left; means of the
    cells with ``source`` on either side, and of all.
    """
    n, place = len(grid.languages), grid.languages.index(source)
    off = ~np.eye(n, dtype=bool)
    scores = 100 * grid.scores["accuracy"].mean(axis=2)
    design = np.hstack([np.eye(n)[side] for side in np.nonzero(off)])
    terms = np.linalg.lstsq(design, scores[off], rcond=None)[0]
    rows, columns = np.split(terms, 2)
    return {
        f"between languages of the {parts[0]}": rows.std(),
        f"between languages of the {parts[1]}": columns.std(),
        "left": (scores[off] - design @ terms).std(),
        f"{source} as {parts[0]}": np.delete(scores[place], place).mean(),
        f"{source} as {parts[1]}": np.delete(scores[:, place], place).mean(),
        "all across": scores[off].mean(),
    }


def spreads(grids: Mapping[str, Grid], source: str, parts: Sequence[str]) -> pd.DataFrame:
    """`spread_by_side` of each model."""
    return pd.DataFrame({x: spread_by_side(own, source, parts) for x, own in grids.items()}).T


def called(
    grids: Iterable[Grid], label: int, source: str, parts: Sequence[str]
) -> dict[str, dict[str, float]]:
    """By model: the share of pairs that are called by a label, in cells of ``source`` and others.

    ``source`` is the first language of the grids.
    """
    answers: dict[str, list[np.ndarray]] = {}
    for grid in grids:
        answers.setdefault(grid.model, []).append(grid.predictions == label)
    shares = {name: np.mean(own, axis=(0, 3)) for name, own in answers.items()}
    return {
        name: {
            f"{source}-{source}": share[0, 0],
            "within, other languages": np.diagonal(share)[1:].mean(),
            "across": share[~np.eye(len(share), dtype=bool)].mean(),
            f"across, {source} {parts[0]}": share[0, 1:].mean(),
            f"across, {source} {parts[1]}": share[1:, 0].mean(),
        }
        for name, share in shares.items()
    }


def summaries_of(
    scores: Mapping[str, np.ndarray], languages: Sequence[str], groups: np.ndarray, **options: Any
) -> pd.DataFrame:
    """`within_across.summary` of some scores on the same examples, with their ``model``."""
    tables = [
        summary(own, languages, groups, **options).assign(model=name)
        for name, own in scores.items()
    ]
    return pd.concat(tables)


def above_baselines(
    grids: Mapping[str, Grid],
    scores: Mapping[str, np.ndarray],
    languages: Sequence[str],
    score: str = "accuracy",
    **options: Any,
) -> pd.DataFrame:
    """`within_across.paired_difference` of each model and each baseline, paired."""
    tables = [
        paired_difference(grid.each[score], baseline, languages, grid.groups, **options).assign(
            model=name, baseline=of
        )
        for name, grid in grids.items()
        for of, baseline in scores.items()
    ]
    return pd.concat(tables)


def by_measure(grids: Sequence[Grid], measures: Sequence[str], **options: Any) -> pd.DataFrame:
    """`within_across.summary` of grids by several scores, with their ``measure``."""
    tables = [measured(grids, summary, name, **options).assign(measure=name) for name in measures]
    return pd.concat(tables)


def by_script(table: pd.DataFrame, one: str = "F1, SQuAD", other: str = "F1, MLQA") -> pd.DataFrame:
    """Within and across by measure and model: the mean, and where two measures differ most."""
    own = table[(table["setting"] == "within") & (table["language"] != OVERALL)]
    means = own.groupby(["measure", "language"])["score"].mean()
    furthest = (means[one] - means[other]).abs().idxmax()
    shown = {
        code: by_setting(table, "measure", "model", language=code) for code in (OVERALL, furthest)
    }
    both = {code: own[["within", "across"]] for code, own in shown.items()}
    return pd.concat(both, axis=1).rename_axis(columns=[None, None])


def distance_table(apart: np.ndarray, languages: Sequence[str], max_distance: int) -> pd.DataFrame:
    """By language: median distance ``(L, L, n)`` within, and questions that share no word."""
    strange = apart == max_distance
    rows = {
        code: {
            "median distance, words": np.median(apart[k, k]),
            "no word shared, %": 100 * np.mean(strange[k, k]),
            "no word shared across, %": 100 * np.mean(np.delete(strange[k], k, axis=0)),
        }
        for k, code in enumerate(languages)
    }
    return pd.DataFrame(rows).T


def tails_by_language(
    grids: Iterable[Grid], distances: Mapping[str, np.ndarray], share: float, **options: Any
) -> pd.DataFrame:
    """`answer_tails.tails` within each language, with ``model`` and ``language``."""
    tables = [
        tails(grid.scores["F1"][k, k], distances[code], share, grid.groups, **options).table.assign(
            model=grid.model, language=code
        )
        for grid in grids
        for k, code in enumerate(grid.languages)
    ]
    return pd.concat(tables)


def tails_of_all(
    grids: Iterable[Grid], distances: Mapping[str, np.ndarray], share: float, **options: Any
) -> pd.DataFrame:
    """By model: distance of the hardest over that of the easiest questions of all languages."""
    rows = []
    for grid in grids:
        n = range(len(grid.languages))
        scores = np.concatenate([grid.scores["F1"][k, k] for k in n])
        far = np.concatenate([distances[code] for code in grid.languages])
        groups = np.tile(grid.groups, len(grid.languages))
        found = tails(scores, far, share, groups, **options)
        rows.append((grid.model, found.ratio, found.low, found.high))
    table = pd.DataFrame(rows, columns=["model", "hardest / easiest", "low", "high"])
    return table.set_index("model")


def tail_ratios(
    grid: Grid, distances: Mapping[str, np.ndarray], share: float, **options: Any
) -> pd.DataFrame:
    """By language: the ratio of `answer_tails.tails`, and questions with an F1 of 0, per cent."""
    rows = {}
    for k, code in enumerate(grid.languages):
        scores = grid.scores["F1"][k, k]
        found = tails(scores, distances[code], share, grid.groups, **options)
        rows[code] = {"hardest / easiest": found.ratio, "low": found.low, "high": found.high}
        rows[code]["F1 of 0, %"] = 100 * (scores == 0).mean()
    return pd.DataFrame(rows).T


def control_tables(
    grids: Mapping[tuple[str, str, str], Grid], **options: Any
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Of `control_grids`: within and across by condition, and original less shuffled, paired."""
    tables, gaps = [], []
    for (task, model, condition), grid in grids.items():
        named = {"task": TASK_NAMES[task], "model": model}
        own = grid.each[SCORED[task]], grid.languages, grid.groups
        tables.append(summary(*own, **options).assign(**named, condition=condition))
        if condition == "original":
            control = grids[task, model, "shuffled"].each[SCORED[task]]
            gap = paired_difference(own[0], control, *own[1:], **options)
            gaps.append(gap.assign(**named))
    return pd.concat(tables), pd.concat(gaps)


def pair_averages(
    grids: Mapping[str, Grid], baseline: str, *, unseen_only: bool, **options: Any
) -> pd.DataFrame:
    """`mixed_pairs.pair_table` of each grid ("en-de") and of the baseline on the same cells."""
    base = grids[baseline]
    tables = [
        pair_table(
            {"fine-tuned": grid.scores["accuracy"], "baseline": base.scores["accuracy"]},
            grid.languages,
            tuple(name.split("-")),
            grid.groups,
            unseen_only=unseen_only,
            **options,
        )
        for name, grid in grids.items()
        if name != baseline
    ]
    return pd.concat(tables)


def scores_by_row(table: pd.DataFrame) -> pd.DataFrame:
    """Scores of `pair_averages` in per cent, by row; pairs and conditions in columns."""
    points = table.assign(score=(100 * table["score"]).round(1))
    wide = points.pivot(index="row", columns=["pair", "condition"], values="score")
    return wide.loc[list(PAIRS_ROWS), list(dict.fromkeys(table["pair"]))]


def pair_gains(table: pd.DataFrame) -> pd.DataFrame:
    """Points gained over the baseline, with their interval as text, by row; pairs in columns."""
    own = table[table["condition"] == "baseline"]
    own = own.assign(said=as_points(own, "gain"))
    wide = own.pivot(index="row", columns="pair", values="said")
    return wide.loc[list(PAIRS_ROWS), list(dict.fromkeys(table["pair"]))]


def mixed_grids(
    model: str,
    learnt: Mapping[str, Examples],
    sets: Mapping[str, Examples],
    recipe: Recipe,
    seeds: Sequence[int],
) -> dict[str, Grid]:
    """By what a model is taught ("en-de"): its grid, the mean over seeds."""
    jobs = [
        Job(model, part, {"learnt": part.at(range(min(100, len(part))))}, recipe, seed=seed)
        for part in learnt.values()
        for seed in seeds
    ]
    grids, n = evaluate(jobs, sets), len(seeds)
    return {name: averaged(grids[k * n : (k + 1) * n]) for k, name in enumerate(learnt)}


def mixed_cells(grids: Mapping[str, Grid], **options: Any) -> pd.DataFrame:
    """`within_across.cells` of `mixed_grids`."""
    tables = [
        cells(grid.scores["accuracy"], grid.languages, grid.groups, **options).assign(
            model=f"fine-tuned on {name}"
        )
        for name, grid in grids.items()
    ]
    return pd.concat(tables)
