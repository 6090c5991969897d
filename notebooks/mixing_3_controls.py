"""Words out of order (Tables 7 and 14), and fine-tuning on pairs in two languages (4 and 9)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from printed.mixing_claims import PAIRS_ROWS, PrintedScores
from shared.claims import compared
from shared.controls import only, shuffled
from shared.mixing_figures import PARTS
from shared.mixing_tables import (
    TASK_NAMES,
    Origin,
    TaskData,
    by_setting,
    inference_data,
    second_alone,
    signals,
)
from xlx.experiment.grids import Grid, grid, groups_of
from xlx.measures import mixing
from xlx.measures.mixing import averages, checked_scores
from xlx.subjects.jobs import Job, Recipe
from xlx.text import labelled
from xlx.text.examples import Examples, crossed
from xlx.text.languages import spaceless
from xlx.text.questions import Questions

ORDER, ALONE = "words in order", " alone"
Grids = dict[tuple[str, str, str], list[Grid]]


def variants(task: str, data: TaskData, seed: int, learn: bool) -> dict[str, TaskData]:
    """The data as they are, and with words out of order: of what is learnt, or of what is asked.

    The paper shuffles what is learnt (section 5). To ask a model that learnt words in order needs
    no second fine-tuning, and says what its answers owe to order; each part is shuffled by itself.
    """
    if learn:
        return {ORDER: data, "shuffled": replace(data, train=shuffled(data.train, seed))}
    first, second = PARTS[task]
    if isinstance(data.gold, Questions):
        parts = {f"{second} shuffled": {}}
    else:
        both = (first, "first"), (second, "second")
        parts = {f"{name} shuffled": {"parts": [part]} for name, part in both}
    return {ORDER: data} | {
        name: replace(
            data, sets={x: shuffled(examples, seed, **how) for x, examples in data.sets.items()}
        )
        for name, how in parts.items()
    }


def answered(
    task: str,
    data: TaskData,
    models: Sequence[str],
    recipe: Recipe,
    seeds: Sequence[int],
    *,
    shuffle_seed: int,
    learn: bool,
    alone: bool = True,
) -> Grids:
    """By task, model and condition: one grid per seed; of pairs also the second part ``alone``.

    The second part alone is of the first model, in order and where its own words are shuffled.
    """
    grids: Grids = {}
    first, second = PARTS[task]
    for name, variant in variants(task, data, shuffle_seed, learn).items():
        for model in models:
            grids[task, model, name] = grid(variant.jobs([model], recipe, seeds), variant.sets)
        if alone and name != f"{first} shuffled" and not isinstance(data.gold, Questions):
            only, title = second_alone(variant), f"{second}{ALONE}"
            title += "" if name == ORDER else ", shuffled"
            grids[task, models[0], title] = grid(only.jobs(models[:1], recipe, seeds), only.sets)
    return grids


def measured_conditions(grids: Grids, data: Mapping[str, TaskData]) -> dict:
    """By task, model and condition: accuracy and AUC (F1 of questions) as values of examples."""
    measured = {}
    for (task, model, condition), of_condition in grids.items():
        if task == "QA":
            values = {"F1": np.stack([of_seed.scores["F1"] for of_seed in of_condition])}
        else:
            values = signals(of_condition, data[task].gold.labels, ("accuracy", "AUC"))
        measured[task, model, condition] = values
    return measured


def _compared(
    values: Mapping, pairs: Mapping[str, tuple[str, str]], learn: bool
) -> Iterator[tuple[dict[str, str], np.ndarray, np.ndarray]]:
    """What is compared: ``task, model, measure, what``, and values of one condition and another.

    Answers of one fine-tuned model to two texts are paired by seed: their difference, and zeros. Of
    two fine-tunings (``learn``: the other one learnt shuffled words) the seeds are independent.
    """
    for (task, model, condition), by_measure in values.items():
        for what, (first, other) in pairs.items():
            if condition != first or (task, model, other) not in values:
                continue
            alike = (ALONE in first) == (ALONE in other) and not learn
            for measure, scores in by_measure.items():
                less = values[task, model, other][measure]
                if alike:
                    scores, less = scores - less, np.zeros_like(less[:1])
                about = {"task": task, "model": model, "measure": measure, "what": what}
                yield about, scores, less


def conditions(values: Mapping, data: Mapping[str, TaskData]) -> pd.DataFrame:
    """`mixing.summary` of the first measure of each condition, with ``task``, ``model``."""
    tables = []
    for (task, model, condition), by_measure in values.items():
        about = list(data[task].sets), groups_of(data[task].gold)
        table = mixing.summary(next(iter(by_measure.values())), *about)
        tables.append(table.assign(task=TASK_NAMES[task], model=model, condition=condition))
    return pd.concat(tables, ignore_index=True)


def beside_control(ours: pd.DataFrame, tasks: Sequence[str]) -> pd.DataFrame:
    """Means over languages by condition, printed rows of Tables 1 to 3, 7 and 14 first."""
    printed, keys = PrintedScores(), ["task", "model", "condition"]
    shuffled = pd.concat([printed.tables[name]["avg"] for name in ("Table 7", "Table 14")])
    both = {ORDER: printed.averages[shuffled.index], "taught shuffled": shuffled}
    rows = pd.DataFrame(both).rename_axis(columns="condition").stack().rename("score").reset_index()
    rows["task"] = rows["task"].str.split(" ").str[0]
    rows = pd.concat(rows[rows["task"] == task] for task in tasks).replace({"task": TASK_NAMES})
    rows = rows.assign(model=rows["model"] + ", printed", score=rows["score"].map("{:.1f}".format))
    wide = rows.pivot_table("score", keys, "setting", "first", sort=False)
    shown = pd.concat([wide, by_setting(ours, *keys)])[["within", "across"]]
    return shown.rename_axis(columns=None)


def comparisons(values: Mapping) -> dict[str, tuple[str, str]]:
    """What is compared, name → two conditions: costs, and what the first part adds."""
    pairs = {}
    for task, _, condition in values:
        first, second = PARTS[task]
        alone, order = f"{second}{ALONE}", "" if condition == ORDER else ", shuffled"
        if ALONE in condition:
            if order:
                pairs[f"cost, {alone}"] = alone, condition
        elif task != "QA":
            is_ordered = order and condition != f"{first} shuffled"
            pairs[f"{first} adds, {condition}"] = condition, alone + (order if is_ordered else "")
        if condition != ORDER and ALONE not in condition:
            pairs[f"cost, {condition}"] = ORDER, condition
    return pairs


def worked_shuffle(data: Mapping[str, TaskData], source: str, seed: int) -> pd.DataFrame:
    """The first example of each task in order and shuffled."""
    rows = {}
    for task, mixed in data.items():
        for name, part in {
            ORDER: mixed.sets[source],
            "shuffled": shuffled(mixed.sets[source], seed),
        }.items():
            if isinstance(part, Questions):
                rows[TASK_NAMES[task], name] = {"second part": part.questions[0]}
            else:
                texts = {"first part": part.first[0], "second part": part.second[0]}
                rows[TASK_NAMES[task], name] = texts | {"label": part.classes[part.labels[0]]}
    return pd.DataFrame.from_dict(rows, orient="index").fillna("")


def means_of(
    values: Mapping, pairs: Mapping[str, tuple[str, str]], data: Mapping[str, TaskData], learn: bool
) -> pd.DataFrame:
    """What one condition has above another: means over languages within, across, and by writing.

    ``pairs``: name → two conditions; ``told`` by `claims.compared`. Of languages without spaces
    between words characters are shuffled, so that words go, too.
    ``setting``: "within", "across", "with spaces", "without spaces".
    """
    tables = []
    for about, *both in _compared(values, pairs, learn):
        mixed = data[about["task"]]
        spaced = np.array([not spaceless(code) for code in mixed.sets])
        kinds = {"with spaces": spaced, "without spaces": ~spaced}
        kinds = {name: mask for name, mask in kinds.items() if mask.any()}

        def means(scores: np.ndarray, masks: Sequence[np.ndarray]) -> np.ndarray:
            inside, across = (f(np.moveaxis(scores, -1, 1)) for f in (mixing.within, mixing.across))
            parts = [inside, across, *(inside[..., mask] for mask in masks)]
            return np.stack([x.mean(axis=-1) for x in parts], axis=1)

        table = compared(*(means(x, kinds.values()) for x in both), groups_of(mixed.gold))
        tables.append(table.assign(**about, setting=["within", "across", *kinds]))
    return pd.concat(tables, ignore_index=True)


def by_writing(means: pd.DataFrame) -> pd.DataFrame:
    """Of `means_of` the costs by kind of writing, by the first measure of each task."""
    first = means.groupby("task")["measure"].transform("first")
    costs = means["what"].str.startswith("cost") & means["setting"].str.endswith("spaces")
    return means[costs & (means["measure"] == first)].rename(columns={"setting": "writing"})


# --- pairs in two languages -----------------------------------------------------------------------


def learnt_pairs(
    codes: Mapping[str, tuple[str, str]],
    model: str,
    data: TaskData,
    recipe: Recipe,
    seeds: Sequence[int],
    origin: Origin,
    n_train: int | None,
) -> tuple[dict[str, list[Grid]], list[Grid]]:
    """Grids, a seed each, of who is taught pairs in two languages, by name ("en-de").

    And of who is taught the second texts of the first of these alone, and asked these alone.
    """
    languages = dict.fromkeys(code for pair in codes.values() for code in pair)
    how = {"source": origin.train_source, "path": origin.train_data}
    train, _ = labelled.parallel_examples("NLI", [*languages], "train", n_train, **how)
    learnt = {name: crossed(train[a], train[b]) for name, (a, b) in codes.items()}
    by_pair = {
        name: _grids(model, taught, data.sets, recipe, seeds) for name, taught in learnt.items()
    }
    first = only(next(iter(learnt.values())), "second")
    return by_pair, _grids(model, first, second_alone(data).sets, recipe, seeds)


def _grids(
    model: str, taught: Examples, sets: Mapping[str, Examples], recipe: Recipe, seeds: Sequence[int]
) -> list[Grid]:
    held_out = {"learnt": taught.at(range(min(100, len(taught))))}
    return grid([Job(model, taught, held_out, recipe, seed=x) for x in seeds], sets)


def second_alone_grids(
    seeds: Mapping[str, Sequence[int]],
    model: str,
    data: TaskData,
    recipe: Recipe,
    _: Sequence[int],
    origin: Origin,
    n_train: int | None,
) -> dict[str, list[Grid]]:
    """By language the grids of who learnt its hypotheses alone, as in ``mixing-1-nli``."""
    grids = {}
    for code, its_seeds in seeds.items():
        about = [*data.sets], code, n_train, len(data.gold), origin
        learnt, whole = inference_data(*about)
        whole = {x: only(part, "second") for x, part in whole.items()}
        jobs = second_alone(learnt).jobs([model], recipe, its_seeds)
        jobs = [replace(x, evaluations=whole) for x in jobs]
        grids[code] = grid(jobs, second_alone(data).sets)
    return grids


def pair_cells(
    languages: Sequence[str], pair: tuple[str, str], *, unseen_only: bool = False
) -> dict[str, np.ndarray]:
    """Which cells each row of Tables 4 and 9 averages, boolean ``(L, L)``; * is all languages."""
    first, two = (np.array([code == language for code in languages]) for language in pair)
    star = ~(first | two) if unseen_only else np.ones(len(languages), dtype=bool)
    sides = {"l1": first, "l2": two, "*": star}
    return {
        row: np.outer(*(sides[side] for side in row.split("-", maxsplit=1))) for row in PAIRS_ROWS
    }


def _by_rows(
    conditions: Mapping[str, np.ndarray], languages: Sequence[str], inside: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    each = {name: checked_scores(x, languages, -1)[1] for name, x in conditions.items()}
    rows = {name: [x[:, mask].mean(axis=1) for mask in inside.values()] for name, x in each.items()}
    return {name: np.stack(x, axis=1) for name, x in rows.items()}


def pair_table(
    conditions: Mapping[str, np.ndarray],
    languages: Sequence[str],
    pair: tuple[str, str],
    groups: Sequence[int] | None = None,
    *,
    unseen_only: bool = False,
) -> pd.DataFrame:
    """The averages of Tables 4 and 9 with intervals, for several models on the same examples.

    The paper says "the average performance over all languages"; this is that, taken literally.
    Table 1 bears it out: with the diagonal the whole grid of mBERT has
    (65.7 + 14 × 54.5) / 15 = 55.2, the baseline is printed as 55.3, and without it 54.5 would be
    left. With ``unseen_only`` a star runs over the L - 2 languages that are in neither place of the
    pair, which the model has not been fine-tuned on in the starred place.

    ``conditions`` are values of examples, ``(L, L, n)`` or with seeds before, of the model
    fine-tuned on the pair and of its baselines, by name; ``pair`` is l1, the language of part 1 in
    fine-tuning, and l2, that of part 2. A row has its ``pair`` ("en-de"), ``row`` (`PAIRS_ROWS`),
    and ``condition``; ``gain``, ``gain_low`` and ``gain_high`` are by how much the
    first condition is above the row's, paired (0 in its own), and ``told`` on which side of zero
    that is (`claims.compared`).
    """
    inside = pair_cells(languages, pair, unseen_only=unseen_only)
    values = _by_rows(conditions, languages, inside)
    first, tables = next(iter(values.values())), []
    about = {"pair": "-".join(pair), "row": list(inside)}
    for name, each in values.items():
        table = averages(each, groups).assign(**about, condition=name)
        gain = compared(first, each, groups)
        gain.loc[:, ["score", "low", "high"]] *= each is not first
        table[["gain", "gain_low", "gain_high", "told"]] = gain
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def pair_tables(
    asked: Mapping[str, tuple[Mapping[str, Mapping[str, np.ndarray]], bool]],
    languages: Sequence[str],
    groups: Sequence[int],
) -> dict[str, pd.DataFrame]:
    """`pair_table` of several pairs ("en-de"), by what is asked.

    ``asked``: name → values of each pair by condition, and whether of unseen languages alone.
    """
    return {
        what: pd.concat(
            pair_table(values, languages, tuple(pair.split("-")), groups, unseen_only=unseen)
            for pair, values in by_pair.items()
        )
        for what, (by_pair, unseen) in asked.items()
    }


def by_row(table: pd.DataFrame, shown: pd.Series, columns: list[str]) -> pd.DataFrame:
    """What is ``shown`` of a table, by row of Tables 4 and 9; pairs in columns."""
    wide = table.assign(shown=shown).pivot(index="row", columns=columns, values="shown")
    return wide.loc[list(PAIRS_ROWS)].fillna("")


def printed_rows(pairs: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Table 9 for the pairs that are in it: fine-tuned, baseline and gain by row."""
    nine, rows = PrintedScores().nine, {}
    for pair in map(tuple, pairs):
        if pair in nine.index:
            printed = {x: nine.loc[pair, x] for x in ("fine-tuned", "baseline")}
            printed["gain"] = (printed["fine-tuned"] - printed["baseline"]).round(1)
            rows |= {("-".join(pair), condition): x for condition, x in printed.items()}
    return pd.DataFrame(rows).reindex(list(PAIRS_ROWS)) if rows else pd.DataFrame()
