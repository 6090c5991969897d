"""The members of the family beside each other: recipes, losses, vocabularies, scores, runs.

A loss is a mean surprise in nats a labelled subword; those of one vocabulary that guess the same
(masked or next) subwords can be compared. ``names`` are models as `loading.load` knows them.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from xlx.results import paths
from xlx.results.deferred import deferred

stats = deferred("scipy.stats")
tokenizers = deferred("tokenizers")

sys.path.append(str(paths.MODELS))  # how the family is trained: data/models-long/family

from family import recipes
from shared.abx_figures import LAYER, TASKS, References, scored, with_lines
from shared.abx_tables import at_last, ends
from xlx.experiment.abx_scores import MATCHED, history
from xlx.experiment.averages import Average, average, best_layer
from xlx.experiment.scoring import subject_scores
from xlx.measures import statistics
from xlx.measures.abx import PairScores
from xlx.plots.panels import across, order, rows_of
from xlx.plots.primitives import Curves, Lanes, lanes
from xlx.plots.style import BLUE, NAMES, ZERO, handle, look, styled
from xlx.subjects import identity, loading
from xlx.text.parallel import ParallelCorpus

# --- what a member is -----------------------------------------------------------------------------


def folder(name: str) -> Path | None:
    """Where a shipped series, or one given by its path, lies; None for any other model.

    Of a run whose weights are not shipped it holds the tables, and the record of its checkpoints.
    """
    try:
        path = identity.local_folder(name)
    except identity.ModelNotFoundError:
        return None
    series = path and ((path / identity.RECORD).exists() or identity.local_series(name, path))
    return path if series else None


def file_text(name: str, file: str) -> str:
    """The text of a file of a member; empty where there is none."""
    path = folder(name)
    return (path / file).read_text("utf-8") if path and (path / file).exists() else ""


def recipe(name: str) -> recipes.MemberRecipe | None:
    """The recipe of a member; ValueError where the file is of another version."""
    if not (described := file_text(name, "recipe.json")):
        return None
    try:
        return recipes.read_recipe(described)
    except ValueError as error:
        raise ValueError(f"{folder(name)}/recipe.json is {error}") from error


def members(
    names: Sequence[str],
    references: Mapping[str, str],
    runs: Mapping[str, Sequence[str]],
    plateau: float,
) -> pd.DataFrame:
    """One row per ``model``: what it learns from, what sets it apart, what it cost, what it lost.

    ``references``: model → the one that it is compared with; ``runs``: model → runs of its recipe
    with other seeds. Columns: ``learns by``, ``differs from``, ``in`` (settings, theirs → its own),
    ``parameters`` and ``subwords read`` (millions), ``held-out loss`` (nats) and ``plateau until``
    (step: `plateau_ends`), both of every run. Text; empty where a file does not say it.
    """
    rows = {}
    for name in names:
        same, other = (name, *runs.get(name, ())), references.get(name)
        run = json.loads(file_text(name, "run.json") or "{}")
        tested, left = held_out(same), plateau_ends(losses(same), plateau)["step"]
        rows[identity.title(name)] = {
            "learns by": " + ".join(getattr(recipe(name), "objectives", ())),
            "differs from": identity.title(other) if other else "",
            "in": ", ".join(unlike(name, other)) if other else "",
            **{
                what: f"{run[key] / 1e6:.1f}" if key in run else ""
                for what, key in (("parameters", "parameters"), ("subwords read", "subwords_seen"))
            },
            "held-out loss": _told(tested.groupby("model", sort=False)["loss"].mean(), ".2f"),
            "plateau until": _told(left.dropna(), ",.0f"),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")


def _told(numbers: pd.Series, form: str) -> str:
    return " · ".join(f"{number:{form}}" for number in numbers)


def unlike(name: str, other: str) -> list[str]:
    """The settings in which two recipes differ, and the kinds of their vocabularies if they do.

    "hidden_size 128 → 192"; nothing of a model without a recipe.
    """
    both = [recipe(other), recipe(name)]
    if not all(both):
        return []
    theirs, ours = (asdict(made) | {"objectives": " + ".join(made.objectives)} for made in both)
    keys = [key for key in ours if key not in ("name", "history") and ours[key] != theirs[key]]
    differences = [f"{key} {theirs[key]} → {ours[key]}" for key in keys]
    kinds = list(distinct_vocabularies([other, name]))
    return differences + ([f"vocabulary {kinds[0]} → {kinds[1]}"] if len(kinds) > 1 else [])


# --- losses ---------------------------------------------------------------------------------------


def losses(names: Sequence[str]) -> pd.DataFrame:
    """The loss tables of several members: ``losses.csv`` with ``model`` in front."""
    return _tables(names, "losses.csv", ["step", "tokens", "objective", "loss"])


def held_out(names: Sequence[str]) -> pd.DataFrame:
    """Their losses by language at the last checkpoint: ``held_out.csv`` with ``model`` in front."""
    return at_last(_tables(names, "held_out.csv", ["step", "language", "subwords", "loss"]), "step")


def _tables(names: Sequence[str], file: str, columns: list[str]) -> pd.DataFrame:
    texts = {identity.title(name): text for name in names if (text := file_text(name, file))}
    tables = [pd.read_csv(io.StringIO(text)).assign(model=name) for name, text in texts.items()]
    tables = tables or [pd.DataFrame(columns=["model", *columns])]
    return pd.concat(tables, ignore_index=True)[["model", *columns]]


def plateau_ends(curves: pd.DataFrame, below: float, rows: int = 5) -> pd.DataFrame:
    """When members began to use the order of subwords: the masked loss came down from its plateau.

    ``step``: the first at which the training loss of masked subwords, a mean over so many rows of
    `losses`, is less than ``below`` (nats); missing where it never was. ``subwords``: what had been
    read by then.
    """
    masked = curves[curves["objective"] == "mlm"]
    mean = masked.groupby("model")["loss"].transform(lambda loss: loss.rolling(rows).mean())
    first = masked[mean < below].groupby("model")[["step", "tokens"]].min()
    table = first.reindex(masked["model"].unique()).astype("Int64")
    return table.rename(columns={"tokens": "subwords"}).rename_axis("model")


# --- vocabularies ---------------------------------------------------------------------------------


def distinct_vocabularies(
    names: Sequence[str],
) -> dict[str, tuple[tokenizers.Tokenizer, list[str]]]:
    """The vocabularies of several models: kind ("BPE", "WordPiece") → (tokenizer, its models).

    Of two that differ and are of one kind, the second has the name of its first model added.
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(_vocabulary(name), []).append(identity.title(name))
    by_kind: dict[str, tuple[tokenizers.Tokenizer, list[str]]] = {}
    for vocabulary, models in alike.items():
        tokenizer = tokenizers.Tokenizer.from_str(vocabulary)
        kind = type(tokenizer.model).__name__
        by_kind[f"{kind} of {models[0]}" if kind in by_kind else kind] = (tokenizer, models)
    return by_kind


@cache
def _vocabulary(name: str) -> str:
    """All that the tokenizer of a model does, as text."""
    return loading.tokenizer(name).backend_tokenizer.to_str()


# --- scores ---------------------------------------------------------------------------------------

#: What is scored, in the order of the tables.
SCORED = (MATCHED, "MD", "LD")
#: What of the layers stands for a model.
MEAN, BEST = "mean over layers", "best layer"
#: Model → the scores of its runs, each of another seed, the first that of its own name.
RunScores = Mapping[str, Sequence[PairScores]]
SPAN = ["value", "low", "high", "least", "most"]


def standing(measured: PairScores, layers: str, task: str) -> Average:
    """A model's score over all layers (`MEAN`), or at its best (`BEST`)."""
    return average(measured, task, layers=[best_layer(measured)] if layers == BEST else None)


def scored_runs(
    names: Sequence[str],
    runs: Mapping[str, Sequence[str]],
    corpus: ParallelCorpus,
    *,
    first: bool = False,
    **options: object,
) -> dict[str, list[PairScores]]:
    """Model → the scores of its runs at their ends, or before training (``first``).

    ``runs``: model → runs of its recipe with other seeds. Before training: step 0 of each series,
    of any other model its untrained twin.
    """
    by_title = {}
    for name in names:
        same = (name, *runs.get(name, ()))
        states = [history(run, recorded=True)[0 if first else -1] for run in same]
        if first:
            states = [
                state if getattr(state, "step", None) == 0 else identity.twin_of(run)
                for run, state in zip(same, states, strict=True)
            ]
        by_title[identity.title(name)] = subject_scores(states, corpus, **options)
    return by_title


def spanned(apart: Average, reach: float, value: float | None = None) -> dict[str, float]:
    """A difference, by `SPAN`: with its interval over documents, and over documents and runs.

    ``apart``: that of two first runs; ``reach``: what runs leave open, half an interval; ``value``:
    the difference of the means over runs, else that of ``apart``. Half widths are taken together as
    of independent errors.
    """
    about = ends(apart)
    value, half = about["value"] if value is None else value, about["high"] - about["value"]
    wide = np.hypot(half, reach)
    return dict(
        zip(SPAN, (value, value - half, value + half, value - wide, value + wide), strict=True)
    )


def run_reach(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Half the 95 % interval of the difference of two recipes that their runs leave open.

    Of several runs each: Welch's, each recipe with a spread of its own. Where one of two was run
    once: of Student's prediction, as if its luck were that of the other. NaN where both were.
    """
    if min(len(ours), len(theirs)) > 1:
        welch = stats.ttest_ind(ours, theirs, equal_var=False)
        low, high = welch.confidence_interval(statistics.LEVEL)
        return float(high - low) / 2
    again = max(ours, theirs, key=len)
    n = len(again)
    return float(_student(n) * np.std(again, ddof=1) * np.sqrt(1 + 1 / n)) if n > 1 else np.nan


def _student(n: int) -> float:
    return float(stats.t.ppf((1 + statistics.LEVEL) / 2, n - 1))


def contrasts(measured: RunScores, references: Mapping[str, str]) -> pd.DataFrame:
    """Models less their references (title → title), over all layers, and each at its best.

    Columns ``model``, ``reference``, ``layers``, ``task``, ``runs`` (of both), `SPAN` and ``is``:
    `with_sides`.
    """
    rows = []
    for (name, other), layers, task in product(references.items(), (MEAN, BEST), SCORED):
        both = [[standing(run, layers, task) for run in measured[key]] for key in (name, other)]
        ours, theirs = ([float(score.score) for score in side] for side in both)
        head = {"model": name, "reference": other, "layers": layers, "task": task}
        apart = spanned(
            both[0][0] - both[1][0], run_reach(ours, theirs), float(np.mean(ours) - np.mean(theirs))
        )
        rows.append(head | {"runs": f"{len(ours)} and {len(theirs)}"} | apart)
    return with_sides(pd.DataFrame(rows, columns=[*head, "runs", *SPAN] if rows else None))


def with_sides(table: pd.DataFrame) -> pd.DataFrame:
    """`SPAN` and ``is``: the side of zero on which all of the widest known interval lies.

    "open": on both; "(text alone)": said of documents, as nothing is known of runs.
    """
    low, high = (
        table[wide].fillna(table[narrow]) for wide, narrow in (("least", "low"), ("most", "high"))
    )
    side = np.select([low > 0, high < 0], ["higher", "lower"], "open")
    alone = np.where(table["most"].isna() & (side != "open"), " (text alone)", "")
    return table.assign(**{"is": np.char.add(side, alone)})


def standings(
    measured: RunScores, before: RunScores, bags: Mapping[str, PairScores]
) -> pd.DataFrame:
    """Each model at its best layer, beside itself before training and the bag of its subwords.

    One row per ``model`` and ``what``: `MATCHED`, "MD", "LD", or of the first of these "above
    untrained" (less the first state of ``before``) and "above its bag"; ``layer``, `SPAN`, ``is``.
    """
    rows = []
    for name, runs in measured.items():
        firsts = [standing(run, BEST, MATCHED) for run in runs]
        columns = {task: [standing(run, BEST, task) for run in runs] for task in SCORED}
        if name in before:
            untrained = standing(before[name][0], BEST, MATCHED)
            columns["above untrained"] = [x - untrained for x in firsts]
        columns["above its bag"] = [x - average(bags[name], MATCHED) for x in firsts]
        for what, scores in columns.items():
            values, n = [float(score.score) for score in scores], len(scores)
            reach = _student(n) * np.std(values, ddof=1) / np.sqrt(n) if n > 1 else np.nan
            head = {"model": name, "what": what, "layer": best_layer(runs[0])}
            rows.append(head | spanned(scores[0], reach, float(np.mean(values))))
    return with_sides(pd.DataFrame(rows))


# --- what is shown --------------------------------------------------------------------------------


def with_span(row: Mapping[str, float], form: str = "+.2f") -> str:
    """A number with its widest known interval: "+0.24 (+0.21 to +0.28)"."""
    low, high = (
        row[narrow if np.isnan(row[wide]) else wide]
        for wide, narrow in (("least", "low"), ("most", "high"))
    )
    return f"{row['value']:{form}} ({low:{form}} to {high:{form}})"


# --- figures --------------------------------------------------------------------------------------


@styled
def member_profiles(
    table: pd.DataFrame,
    references: Mapping[str, str],
    *,
    lines: References | None = None,
    tasks: Sequence[str] = TASKS,
) -> Figure:
    """Scores over layers, a small panel a model, each with its reference model in thin lines.

    ``references`` maps a model to the one that it is compared with, where there is one; ``lines``
    are horizontal: label → table of ``model``, ``task`` and ``score``.
    """
    thin = table.assign(reference=table["model"]).drop(columns="model")
    pairs = pd.DataFrame(references.items(), columns=["model", "reference"])
    thin = pairs.merge(thin[thin["task"].isin(tasks[:2])], on="reference")
    style = Curves(wrap=3, width=2.75, height=1.75, sharex=True)
    on = scored(table, "layer", tasks, style)
    labels = {task: f"{task} of the model in brackets" for task in tasks}
    style = Curves(looks={"linewidth": 0.8, "marker": ""}, labels=labels, interval=False)
    scored(thin, "layer", tasks, style, on=on)
    on.titles(lambda model: f"{model} [{references[model]}]" if model in references else model)
    return on.done(LAYER, "ABX score", handles=with_lines(on, lines, tasks))


@styled
def paired_differences(table: pd.DataFrame, *, tasks: Sequence[str] = TASKS) -> Figure:
    """Differences of two models with intervals, one row per pair of models, one panel per task.

    ``table`` has ``model``, ``reference``, ``task``, ``layers`` (up to two sets of them, a mark
    each), ``value``, ``low`` and ``high``; ``least`` and ``most`` are a wider, thinner interval.
    """
    table = table.assign(pair=table["model"] + " − " + table["reference"])
    table = pd.concat([rows_of(table, task=task) for task in tasks])
    kinds = zip(order(table, "layers"), (False, True), "os", strict=False)
    style = Lanes(
        wrap=len(tasks),
        looks={
            name: look("0.2" if hollow else BLUE, mark, hollow=hollow)
            for name, hollow, mark in kinds
        },
        wide=("least", "most"),
        width=3.1,
        lane=0.13,
    )
    on = lanes(table, "value", "pair", hue="layers", col="task", style=style)
    across(on, 0, **ZERO)
    handles = [handle("interval: inner documents, outer runs too", ZERO, marker="|")]
    return on.titles(NAMES).done("score of the first model less the second's", handles=handles)
