"""What the within/across notebooks ask: parameters → jobs and grids, results → tables.

Scores in tables are in [0, 1], unless a column says per cent or points.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from printed.mixing_claims import PAIRS_ROWS, PrintedScores, grid_points
from shared import mixing_tables
from shared.mixing_tables import TASK_NAMES, TaskData, pair_table, tails
from xlx.experiment.grids import (
    Grid,
    averaged,
    evaluate,
    evaluate_each,
    groups_of,
    measured,
    reading_scores,
)
from xlx.measures.mixing import OVERALL, as_points, by_setting, paired_difference, summary
from xlx.subjects import identity
from xlx.subjects.finetuning import Run, finetune_all
from xlx.subjects.jobs import Job, Recipe
from xlx.text import examples, questions
from xlx.text.examples import Examples
from xlx.text.questions import Questions

_SCORED = {"NLI": "accuracy", "PI": "accuracy", "same": "accuracy", "QA": "F1"}
_RATIO = ["hardest / easiest", "low", "high"]


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
    """By the title of a model its grid, the mean over seeds."""
    grids, titles = list(grids), map(identity.title, models)
    return {name: averaged([grid for grid in grids if grid.model == name]) for name in titles}


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
    return float(reading_scores(asked, said)[0].mean())


def cut_pairs(grids: Mapping[str, Grid]) -> pd.DataFrame:
    """By model: how many of the pairs ``asked`` were cut (or questions read in windows)."""
    rows = {
        name: (int(grid.n_cut.sum()), len(grid.groups) * grid.n_cut.size)
        for name, grid in grids.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=["cut", "asked"])


def _changed_grids(
    change: Callable[[Any], Any], said: str, models: Sequence[str], data: TaskData, recipe: Recipe,
    seeds: Sequence[int],
) -> list[Grid]:  # fmt: skip
    """Grids of models that are taught and asked after a change of all examples."""
    sets = {code: change(part) for code, part in data.sets.items()}
    groups = groups_of(data.gold)  # a change may take away what shows them
    data = replace(data, train=change(data.train), held_out=change(data.held_out), sets=sets)
    grids = mean_grids(evaluate(jobs_of(models, data, recipe, seeds), sets), models)
    return [replace(grid, model=f"{x}, {said}", groups=groups) for x, grid in grids.items()]


def one_part_grids(
    models: Sequence[str], data: TaskData, recipe: Recipe, seeds: Sequence[int], part: str
) -> list[Grid]:
    """Grids of models that are taught and asked with the second ``part`` alone."""
    second = partial(examples.only, part="second")
    return _changed_grids(second, f"{part} only", models, data, recipe, seeds)


def questionless_grids(
    models: Sequence[str], data: TaskData, recipe: Recipe, seeds: Sequence[int]
) -> list[Grid]:
    """Grids of readers that are taught and asked without a question."""
    return _changed_grids(questions.questionless, "no question", models, data, recipe, seeds)


def same_or_other_grids(
    models: Sequence[str], data: TaskData, recipe: Recipe, seeds: Sequence[int]
) -> list[Grid]:
    """Grids of the models on "same or other", of the bag of subwords and of two rules."""
    grids = mean_grids(evaluate(jobs_of(models, data, recipe, seeds), data.sets), models)
    return [
        *grids.values(),
        mixing_tables.bag_of_subwords(models[-1], data.train, data.sets),
        mixing_tables.surface_rule(data.sets, "same", counts=False),
        mixing_tables.surface_rule(data.sets, "same"),
    ]


def control_grids(
    data: Mapping[str, TaskData], recipes: Mapping[str, Recipe], models: Sequence[str],
    seeds: Sequence[int], shuffle_seed: int,
) -> dict[tuple[str, str, str], Grid]:  # fmt: skip
    """By task, model and condition ("original", "shuffled" words): its grid."""
    asked = []
    for task, original in data.items():
        shuffled = replace(original, train=original.train.shuffled(shuffle_seed))
        both = (jobs_of(models, x, recipes[task], seeds) for x in (original, shuffled))
        asked.append(([job for jobs in both for job in jobs], original.sets))
    by_condition, n = {}, len(models) * len(seeds)
    for task, grids in zip(data, evaluate_each(asked), strict=True):
        for condition, half in (("original", grids[:n]), ("shuffled", grids[n:])):
            of_model = mean_grids(half, models)
            by_condition |= {(task, name, condition): grid for name, grid in of_model.items()}
    return by_condition


def shuffled_examples(data: Mapping[str, TaskData], seed: int) -> pd.DataFrame:
    """By task: how many examples there are to learn, and one of them before and after."""
    rows = []
    for task, part in data.items():
        side = "questions" if task == "QA" else "second"
        texts = [getattr(train, side)[0] for train in (part.train, part.train.shuffled(seed))]
        rows.append((TASK_NAMES[task], len(part.train), *texts))
    return pd.DataFrame(rows, columns=["task", "to learn", "words", "shuffled"]).set_index("task")


# --- tables of grids ------------------------------------------------------------------------------


def with_printed_grids(cells: pd.DataFrame, task: str, languages: Sequence[str]) -> pd.DataFrame:
    """`within_across.cells` of our models, then the printed grids of the task, in one table."""
    paper = grid_points(PrintedScores(), task, languages)
    return pd.concat([cells, paper.assign(model=paper["model"] + ", printed")])


def spreads(grids: Mapping[str, Grid], source: str, parts: Sequence[str]) -> pd.DataFrame:
    """What cells across owe to the language of each side, by model, in points.

    Standard deviations of the terms of a fit by row and column, and of what is left; means of the
    cells with ``source`` on either side, and of all.
    """
    rows = {}
    for name, grid in grids.items():
        n, place = len(grid.languages), grid.languages.index(source)
        off = ~np.eye(n, dtype=bool)
        scores = 100 * grid.scores["accuracy"].mean(axis=2)
        design = np.hstack([np.eye(n)[side] for side in np.nonzero(off)])
        terms = np.linalg.lstsq(design, scores[off], rcond=None)[0]
        first, second = np.split(terms, 2)
        rows[name] = {
            f"between languages of the {parts[0]}": first.std(),
            f"between languages of the {parts[1]}": second.std(),
            "left": (scores[off] - design @ terms).std(),
            f"{source} as {parts[0]}": np.delete(scores[place], place).mean(),
            f"{source} as {parts[1]}": np.delete(scores[:, place], place).mean(),
            "all across": scores[off].mean(),
        }
    return pd.DataFrame(rows).T


def called(grids: Iterable[Grid], label: int, source: str, parts: Sequence[str]) -> pd.DataFrame:
    """By model: the share of pairs that are called by a label, in cells of ``source`` and others.

    ``source`` is the first language of the grids.
    """
    answers: dict[str, list[np.ndarray]] = {}
    for grid in grids:
        answers.setdefault(grid.model, []).append(grid.predictions == label)
    rows = {}
    for name, said in answers.items():
        share = np.mean(said, axis=(0, 3))
        rows[name] = {
            f"{source}-{source}": share[0, 0],
            "within, other languages": np.diagonal(share)[1:].mean(),
            "across": share[~np.eye(len(share), dtype=bool)].mean(),
            f"across, {source} {parts[0]}": share[0, 1:].mean(),
            f"across, {source} {parts[1]}": share[1:, 0].mean(),
        }
    return pd.DataFrame(rows).T


def above_baselines(
    grids: Iterable[Grid], baselines: Sequence[Grid], score: str = "accuracy", **options: Any
) -> pd.DataFrame:
    """`within_across.paired_difference` of each model and each ``baseline``."""
    tables = []
    for grid in grids:
        for simple in baselines:
            both = (grid.each[score], simple.each[score], grid.languages, grid.groups)
            table = paired_difference(*both, **options)
            tables.append(table.assign(model=grid.model, baseline=simple.model))
    return pd.concat(tables)


def by_measure(grids: Sequence[Grid], measures: Sequence[str], **options: Any) -> pd.DataFrame:
    """`within_across.summary` of grids by several scores, with their ``measure``."""
    tables = [measured(grids, summary, name, **options).assign(measure=name) for name in measures]
    return pd.concat(tables)


def by_script(table: pd.DataFrame) -> pd.DataFrame:
    """`by_measure`, the mean, and the language within which the two scripts' F1 differ most."""
    inside = table[(table["setting"] == "within") & (table["language"] != OVERALL)]
    means = inside.groupby(["measure", "language"])["score"].mean()
    furthest = (means["F1, SQuAD"] - means["F1, MLQA"]).abs().idxmax()
    shown = {
        code: by_setting(table, "measure", "model", language=code)[["within", "across"]]
        for code in (OVERALL, furthest)
    }
    return pd.concat(shown, axis=1).rename_axis(columns=[None, None])


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
    tables = []
    for grid in grids:
        for code, scores in zip(grid.languages, _inside(grid), strict=True):
            table, _ = tails(scores, distances[code], share, grid.groups, **options)
            tables.append(table.assign(model=grid.model, language=code))
    return pd.concat(tables)


def tails_of_all(
    grids: Iterable[Grid], distances: Mapping[str, np.ndarray], share: float, **options: Any
) -> pd.DataFrame:
    """By model: distance of the hardest over that of the easiest questions of all languages."""
    rows = {}
    for grid in grids:
        scores = np.concatenate(list(_inside(grid)))
        far = np.concatenate([distances[code] for code in grid.languages])
        groups = np.tile(grid.groups, len(grid.languages))
        rows[grid.model] = tails(scores, far, share, groups, **options)[1]
    return pd.DataFrame.from_dict(rows, "index", columns=_RATIO).rename_axis("model")


def tail_ratios(
    grid: Grid, distances: Mapping[str, np.ndarray], share: float, **options: Any
) -> pd.DataFrame:
    """By language: the ratio of `answer_tails.tails`, and questions with an F1 of 0, per cent."""
    rows = {}
    for code, scores in zip(grid.languages, _inside(grid), strict=True):
        _, ratio = tails(scores, distances[code], share, grid.groups, **options)
        rows[code] = (*ratio, 100 * (scores == 0).mean())
    return pd.DataFrame.from_dict(rows, "index", columns=[*_RATIO, "F1 of 0, %"])


def _inside(grid: Grid) -> Iterator[np.ndarray]:
    """F1 of the questions asked in the language of the context, by language."""
    return (grid.scores["F1"][k, k] for k in range(len(grid.languages)))


def control_tables(
    grids: Mapping[tuple[str, str, str], Grid], **options: Any
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Of `control_grids`: within and across by condition, and original less shuffled, paired."""
    tables, gaps = [], []
    for (task, model, condition), grid in grids.items():
        named, score = {"task": TASK_NAMES[task], "model": model}, _SCORED[task]
        table = measured([grid], summary, score, **options)
        tables.append(table.assign(**named, condition=condition))
        if condition == "original":
            control = grids[task, model, "shuffled"].each[score]
            both = (grid.each[score], control, grid.languages, grid.groups)
            gaps.append(paired_difference(*both, **options).assign(**named))
    return pd.concat(tables), pd.concat(gaps)


def pair_averages(
    grids: Mapping[str, Grid], baseline: str, *, unseen_only: bool, **options: Any
) -> pd.DataFrame:
    """`mixed_pairs.pair_table` of each grid ("en-de") and of the baseline on the same cells."""
    others = {name: grids[baseline] for name in grids if name != baseline}
    return _pair_tables(grids, others, "baseline", unseen_only=unseen_only, **options)


def above_one_part(
    grids: Mapping[str, Grid], alone: Mapping[str, Grid], condition: str, **options: Any
) -> pd.DataFrame:
    """`mixed_pairs.pair_table` of grids of two languages and of what one part ``alone`` gives.

    ``condition`` is what the latter is called.
    """
    others = {name: grid for name, grid in alone.items() if len({*name.split("-")}) > 1}
    return _pair_tables(grids, others, condition, **options)


def _pair_tables(
    grids: Mapping[str, Grid], others: Mapping[str, Grid], condition: str, **options: Any
) -> pd.DataFrame:
    """`mixed_pairs.pair_table` of the pairs of ``others``, which are called ``condition``."""
    tables = []
    for name, other in others.items():
        grid = grids[name]
        scores = {"fine-tuned": grid.scores["accuracy"], condition: other.scores["accuracy"]}
        about = (grid.languages, tuple(name.split("-")), grid.groups)
        tables.append(pair_table(scores, *about, **options))
    return pd.concat(tables)


def scores_by_row(table: pd.DataFrame) -> pd.DataFrame:
    """Scores of `pair_averages` in per cent, by row; pairs and conditions in columns."""
    points = table.assign(score=(100 * table["score"]).round(1))
    wide = points.pivot(index="row", columns=["pair", "condition"], values="score")
    return wide.loc[list(PAIRS_ROWS), list(dict.fromkeys(table["pair"]))]


def pair_gains(table: pd.DataFrame, over: str = "baseline") -> pd.DataFrame:
    """Points gained over a condition, with their interval as text, by row; pairs in columns."""
    rows = table[table["condition"] == over]
    rows = rows.assign(said=as_points(rows, "gain"))
    wide = rows.pivot(index="row", columns="pair", values="said")
    return wide.loc[list(PAIRS_ROWS), list(dict.fromkeys(table["pair"]))]


def mixed_grids(
    model: str, learnt: Mapping[str, Examples], sets: Mapping[str, Examples], recipe: Recipe,
    seeds: Sequence[int], *, part: str | None = None,
) -> dict[str, Grid]:  # fmt: skip
    """By what a model is taught ("en-de"): its grid, the mean over seeds.

    With a ``part`` ("second") it is taught and asked with that part alone, in the language that it
    has in the pair and in the cell.
    """
    groups = groups_of(next(iter(sets.values())))  # a part alone may not show them
    if part is not None:
        learnt = {pair: examples.only(whole, part) for pair, whole in learnt.items()}
        sets = {code: examples.only(whole, part) for code, whole in sets.items()}
    jobs = [
        Job(model, taught, {"learnt": taught.at(range(min(100, len(taught))))}, recipe, seed=seed)
        for taught in learnt.values()
        for seed in seeds
    ]
    grids, n = evaluate(jobs, sets), len(seeds)
    by_pair = {name: averaged(grids[k * n : (k + 1) * n]) for k, name in enumerate(learnt)}
    return {
        name: replace(grid, model=f"fine-tuned on {name}", groups=groups)
        for name, grid in by_pair.items()
    }
