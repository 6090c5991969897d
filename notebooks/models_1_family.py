"""The members of the family beside each other: recipes, losses, vocabularies, scores, runs.

A loss is a mean surprise in nats a labelled subword; those of one vocabulary that guess the same
(masked or next) subwords can be compared. ``names`` are models as `loading.load` knows them.
"""

import io
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats
from tokenizers import Tokenizer

from xlx.results import paths

sys.path.append(str(paths.MODELS))  # how the family is trained: data/models-long/family

from family import pretraining_text, recipes, training_text
from shared.abx_figures import LAYER, TASKS, References, scored, with_lines
from shared.abx_tables import ends, rowed
from xlx.experiment.abx_scores import MATCHED, CheckpointScores, history
from xlx.experiment.averages import Average, average, best_layer
from xlx.experiment.scoring import BagOfSubwords, subject_scores
from xlx.measures import statistics
from xlx.plots.panels import across, order, rows_of
from xlx.plots.primitives import curves, lanes
from xlx.plots.style import BLUE, NAMES, ZERO, look, styled
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


def is_decoder(name: str) -> bool:
    """Whether a model is a member and a decoder."""
    return bool((made := recipe(name)) and made.decoder)


def overview(names: Sequence[str]) -> pd.DataFrame:
    """One row a ``model``: what it is (from its recipe) and what it cost (from its run).

    Columns: ``architecture``, ``objectives``, ``layers``, ``width``, ``English`` (its share of the
    text; NaN: by its size, as every language), ``parameters``, ``subwords_seen``, ``minutes``. The
    last three are missing until a run has ended.
    """
    rows = [
        {"model": identity.title(name)}
        | _settings(name)
        | json.loads(file_text(name, "run.json") or "{}")
        for name in names
    ]
    columns = [
        "architecture", "objectives", "layers", "hidden_size", "english_share",
        "parameters", "subwords_seen", "minutes",
    ]  # fmt: skip
    table = pd.DataFrame(rows).set_index("model").reindex(columns=columns)
    return table.rename(columns={"hidden_size": "width", "english_share": "English"})


def _settings(name: str) -> dict[str, object]:
    """What a recipe says of what is learnt; nothing for a model without one."""
    made = recipe(name)
    settings = asdict(made) | {"objectives": " + ".join(made.objectives)} if made else {}
    return {key: settings[key] for key in settings if key not in ("name", "history")}


def recipe_differences(references: Mapping[str, str]) -> pd.DataFrame:
    """The settings in which the recipes of members and of their references differ.

    A row a ``model``, ``reference`` and ``setting``; none for a model without a recipe.
    """
    rows = {
        (identity.title(name), identity.title(other), key): (theirs[key], ours[key])
        for name, other in references.items()
        if (ours := _settings(name)) and (theirs := _settings(other))
        for key in ours
        if ours[key] != theirs[key]
    }
    names = ["model", "reference", "setting"]
    return rowed(rows, names, columns=["of the reference", "of the model"])


# --- losses ---------------------------------------------------------------------------------------

#: Objectives of a loss table, in the order of display.
OBJECTIVE_NAMES = {
    "mlm": "masked subwords (MLM)",
    "tlm": "masked, beside a translation (TLM)",
    "contrast": "contrast of translations",
    "clm": "next subword (CLM)",
}


def losses(names: Sequence[str]) -> pd.DataFrame:
    """The loss tables of several members: ``losses.csv`` with ``model`` in front."""
    return _tables(names, "losses.csv", ["step", "tokens", "objective", "loss"])


def held_out(names: Sequence[str]) -> pd.DataFrame:
    """Their losses by language at the last checkpoint: ``held_out.csv`` with ``model`` in front."""
    table = _tables(names, "held_out.csv", ["step", "language", "subwords", "loss"])
    return table[table["step"] == table.groupby("model")["step"].transform("max")]


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


#: Recipe → the run that stands for it, and others, of other seeds.
Runs = Mapping[str, tuple[str, Sequence[str]]]


def pooled_spread(groups: Iterable[Sequence[float]]) -> tuple[float, int]:
    """Standard deviation within groups of repeated values, as if it were one, and its freedom.

    A group of one value says nothing; NaN where there is no second value at all.
    """
    values = [np.asarray(group, dtype=float) for group in groups]
    freedom = sum(len(group) - 1 for group in values)
    squares = sum(float(((group - group.mean()) ** 2).sum()) for group in values)
    return (float(np.sqrt(squares / freedom)) if freedom else np.nan), freedom


def reach_of_two(sd: float, freedom: int) -> float:
    """What the difference of two values of a spread stays below in 95 % of cases.

    Of Student's t, as the spread is an estimate; NaN without freedom.
    """
    return float(stats.t.ppf((1 + statistics.LEVEL) / 2, freedom) * np.sqrt(2) * sd)


def loss_spread(runs: Runs) -> tuple[float, int]:
    """`pooled_spread` of the mean held-out losses of runs of one recipe.

    Each at the last step of the shortest of the others. ValueError where the first has no losses at
    that step.
    """
    groups = []
    for first, others in (some for some in runs.values() if some[1]):
        columns = ["step", "language", "loss"]
        tables = [_tables([name], "held_out.csv", columns) for name in (first, *others)]
        step = min(table["step"].max() for table in tables[1:])
        means = [float(table.loc[table["step"] == step, "loss"].mean()) for table in tables]
        if np.isnan(means[0]):
            raise ValueError(f"{first} has no held-out losses at step {step:,}, as other runs have")
        groups.append(means)
    return pooled_spread(groups)


def losses_beside(references: Mapping[str, str], runs: Runs | None = None) -> pd.DataFrame:
    """Held-out losses of members less those of their references, where they can be compared.

    Those of one vocabulary that guess the same (masked or next) subwords can. One row a ``model``
    and ``reference``: ``unlike`` (the settings in which they differ), ``languages`` (that were
    measured), ``lower`` (in how many its loss is lower), ``difference`` (mean, nats), ``between
    runs`` (in 95 % of cases the means of two runs of one recipe differ by less: `loss_spread`).
    """
    between = reach_of_two(*loss_spread(runs or {}))
    rows = {}
    for both in references.items():
        name, other = both
        loss, its = (held_out([model]).set_index("language")["loss"] for model in both)
        apart = (loss - its).dropna()
        alike = all(map(recipe, both)) and is_decoder(name) == is_decoder(other)
        if alike and len(apart) and _vocabulary(name) == _vocabulary(other):
            unlike = recipe_differences({name: other}).index.get_level_values("setting")
            row = ", ".join(unlike), len(apart), (apart < 0).sum(), apart.mean(), between
            rows[identity.title(name), identity.title(other)] = row
    columns = ["unlike", "languages", "lower", "difference", "between runs"]
    return rowed(rows, ["model", "reference"], columns=columns)


# --- vocabularies, and how often a text was read --------------------------------------------------

#: Kind of a vocabulary → its tokenizer, and the models that have it.
Vocabularies = Mapping[str, tuple[Tokenizer, Sequence[str]]]


def distinct_vocabularies(names: Sequence[str]) -> dict[str, tuple[Tokenizer, list[str]]]:
    """The vocabularies of several models: kind ("BPE", "WordPiece") → (tokenizer, its models).

    Of two that differ and are of one kind, the second has the name of its first model added.
    """
    alike: dict[str, list[str]] = {}
    for name in names:
        alike.setdefault(_vocabulary(name), []).append(identity.title(name))
    by_kind: dict[str, tuple[Tokenizer, list[str]]] = {}
    for vocabulary, models in alike.items():
        tokenizer = Tokenizer.from_str(vocabulary)
        kind = type(tokenizer.model).__name__
        by_kind[f"{kind} of {models[0]}" if kind in by_kind else kind] = (tokenizer, models)
    return by_kind


@cache
def _vocabulary(name: str) -> str:
    """All that the tokenizer of a model does, as text."""
    return loading.tokenizer(name).backend_tokenizer.to_str()


@cache
def _lines(every: int) -> dict[str, list[str]]:
    """Language → every ``every``-th line of each source of the pretraining text."""
    lines: dict[str, list[str]] = {}
    for by_code in pretraining_text.read_text()[0].values():
        for code, by_id in by_code.items():
            lines.setdefault(code, []).extend(list(by_id.values())[::every])
    return lines


@cache
def _count(vocabulary: str, code: str, every: int) -> int:
    return every * len(
        training_text.Lines.encode(Tokenizer.from_str(vocabulary), _lines(every)[code]).ids
    )


def subword_counts(name: str, *, every: int = 1, read: bool = False) -> pd.Series:
    """Language → subwords of the pretraining text, line ends included, as a model cuts it.

    From every ``every``-th line of each source, times ``every``: reading all takes a minute. With
    ``read`` of the languages alone that a member read.
    """
    made, lines = recipe(name) if read else None, _lines(every)
    codes = sorted(made.languages if made and made.languages else lines)
    counts = [_count(_vocabulary(name), code, every) for code in codes]
    return pd.Series(counts, pd.Index(codes, name="language"), dtype=int)


def read_shares(name: str, subwords: pd.Series) -> pd.Series:
    """Share of each language in what a member read; ``subwords``: of the text there is.

    ValueError without a recipe.
    """
    if (made := recipe(name)) is None:
        raise ValueError(f"{name} has no recipe.json: what it read is not known")
    known = subwords[list(made.languages)] if made.languages else subwords
    return training_text.shares(known, made.language_exponent, made.english_share)


def passes(names: Sequence[str], every: int) -> pd.DataFrame:
    """How often decoders that learn from text alone have read that of each language, on average.

    Those that cut it as the first of them does, by their recipes and runs. One row a ``model`` and
    ``language``: ``subwords`` (of its text, one line in ``every`` counted), ``share`` (of the
    subwords that the member saw), ``passes`` (these over those).
    """
    known = [name for name in names if is_decoder(name) and not recipe(name).pair_share]
    known = [name for name in known if file_text(name, "run.json")]
    there = subword_counts((known or names)[0], every=every)
    tables = [pd.DataFrame(columns=["model", "language", "subwords", "share", "passes"])]
    for name in [name for name in known if _vocabulary(name) == _vocabulary(known[0])]:
        seen = json.loads(file_text(name, "run.json"))["subwords_seen"]
        share = read_shares(name, there)
        part = pd.DataFrame({"subwords": there, "share": share, "passes": seen * share / there})
        tables.append(part.reset_index().assign(model=identity.title(name)))
    return pd.concat(tables[1:] or tables, ignore_index=True)


# --- scores ---------------------------------------------------------------------------------------

#: What is scored, in the order of the tables.
SCORED = (MATCHED, "MD", "LD")
#: What of the layers stands for a model.
MEAN, BEST = "mean over layers", "best layer"
#: Both of each.
STANDING = tuple(product((MEAN, BEST), SCORED))
Measured = Mapping[str, CheckpointScores]


def standing(measured: CheckpointScores, layers: str, task: str) -> Average:
    """A model's score over all layers (`MEAN`), or at its best (`BEST`)."""
    return average(measured, task, layers=[best_layer(measured)] if layers == BEST else None)


def scored_runs(
    runs: Runs, corpus: ParallelCorpus, **options: object
) -> dict[str, list[CheckpointScores]]:
    """Recipe → the scores of its runs, each of another seed, at one step.

    All are taken at the last step of the shortest of the others, which the first must have kept;
    ValueError where it has not. A recipe of one run is left out.
    """
    measured = {}
    for recipe, (first, others) in ((key, some) for key, some in runs.items() if some[1]):
        histories = [history(name, recorded=True) for name in (first, *others)]
        step = min(states[-1].step for states in histories[1:])
        states = [{state.step: state for state in of} for of in histories]
        if missing := [of[0].name for of in histories if step not in {s.step for s in of}]:
            raise ValueError(f"{missing[0]} has no checkpoint at step {step:,}, as other runs have")
        measured[recipe] = subject_scores([of[step] for of in states], corpus, **options)
    return measured


def summary_table(measured: Measured) -> pd.DataFrame:
    """Scores over all layers and at the best, and which that is: a row a model."""
    rows = {
        model: {key: float(standing(of, *key).score) for key in STANDING}
        | {(BEST, "layer"): best_layer(of)}
        for model, of in measured.items()
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")


def above_surface(
    names: Sequence[str], measured: Measured, untrained: Measured, corpus: ParallelCorpus,
    max_length: int | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Matched MD of each best layer, and how far it is above what takes no training.

    ``measured``: the scores of ``names``, in their order. ``untrained``: model → its state before
    training, or one of its architecture, at whose own best layer it stands; a model without one
    has NaN there. The other measure is a bag of the subwords of its vocabulary. Columns of each:
    ``value``, ``low``, ``high``; the index has the layer.
    """
    rows = {}
    for name, (model, of) in zip(names, measured.items(), strict=True):
        score = standing(of, BEST, MATCHED)
        (bag,) = subject_scores([BagOfSubwords(name, max_length=max_length)], corpus)
        found = {MATCHED: score, "above the bag": score - average(bag, MATCHED)}
        if model in untrained:
            found["above untrained"] = score - standing(untrained[model], BEST, MATCHED)
        rows[model, best_layer(of)] = {
            (what, end): number for what, one in found.items() for end, number in ends(one).items()
        }
    table = pd.DataFrame.from_dict(rows, orient="index").rename_axis(["model", "layer"])
    return table[[what for what in (MATCHED, "above untrained", "above the bag") if what in table]]


def few_and_many(
    few: str, many: str, corpus: ParallelCorpus, share: float, **options: object
) -> pd.DataFrame:
    """What a model of a few languages gains on them over one of many, and by which text.

    ``corpus``: in the few, or in some of them; ``share``: how much ``many`` has read of these, of
    what ``few`` has. ``few`` is taken at its end, when it has read as much as ``many`` in all, and
    where it has read as much of these (the checkpoint that is nearest on a log scale). Rows are
    those two less ``many``, at the best layer of each: ``task``, ``value``, ``low``, ``high``,
    ``few``, ``many`` (the two scores).
    """
    course = history(few, recorded=True)
    due = np.log(course[-1].step * share)
    alike = min(course[1:], key=lambda checkpoint: abs(np.log(checkpoint.step) - due))
    states = [history(many, recorded=True)[-1], alike, course[-1]]
    of_many, *of_few = subject_scores(states, corpus, **options)
    rows = []
    for what, of in zip(("as much of these", "as much in all"), of_few, strict=True):
        for task in SCORED:
            ours, theirs = (standing(model, BEST, task) for model in (of, of_many))
            head = {"model": of.model, "read": what, "step": of.step, "task": task}
            scores = {"few": float(ours.score), "many": float(theirs.score)}
            rows.append(head | scores | ends(ours - theirs))
    return pd.DataFrame(rows)


# --- members beside each other, and runs of one recipe --------------------------------------------


def score_differences(
    measured: Measured, references: Mapping[str, str], spread: pd.DataFrame
) -> pd.DataFrame:
    """Models less their references (model → the one it is compared with), on the same documents.

    Over all layers, and each model at its best: ``model``, ``reference``, ``layers``, ``task``,
    ``value``, ``low``, ``high``; and what two runs of one recipe differ by (``spread``:
    `run_spread`): ``between runs``: in 95 % of cases two runs differ by less; ``least`` and
    ``most``: the interval over documents widened by that, the half widths taken together as of
    independent errors; ``beyond both``: on which side of zero it lies ("higher", "lower"), or "no".
    """
    rows = []
    for (name, other), (layers, task) in product(references.items(), STANDING):
        ours, theirs = (standing(measured[model], layers, task) for model in (name, other))
        head = {"model": name, "reference": other, "layers": layers, "task": task}
        between = reach_of_two(*spread.loc[(layers, task), ["sd", "freedom"]])
        rows.append(head | ends(ours - theirs) | {"between runs": between})
    table = pd.DataFrame(rows)
    reach = np.hypot(table["high"] - table["value"], table["between runs"])
    table = table.assign(least=table["value"] - reach, most=table["value"] + reach)
    beyond = {"not known": reach.isna(), "higher": table["least"] > 0, "lower": table["most"] < 0}
    return table.assign(**{"beyond both": np.select([*beyond.values()], [*beyond], "no")})


#: Recipe → the scores of its runs, each of another seed.
RunScores = Mapping[str, Sequence[CheckpointScores]]


def _scores(some: Sequence[CheckpointScores], key: tuple[str, str]) -> np.ndarray:
    return np.array([float(standing(of, *key).score) for of in some])


def run_spread(runs: RunScores) -> pd.DataFrame:
    """How runs of one recipe differ: by ``layers`` and ``task`` the ``sd`` of a run, ``freedom``.

    ``runs``: recipe → its runs, each of another seed; `pooled_spread` of their scores.
    """
    rows = {key: pooled_spread([_scores(some, key) for some in runs.values()]) for key in STANDING}
    return rowed(rows, ["layers", "task"], columns=["sd", "freedom"])


def mean_run_differences(runs: RunScores, references: Mapping[str, str]) -> pd.DataFrame:
    """Recipes less their references, of which each was run again: the means over their runs.

    ``references``: recipe → the one that it is compared with. Rows ``layers``, ``task``, ``model``,
    ``reference``; columns ``of model`` and ``of reference`` (the means), ``value``, ``low``,
    ``high``. The interval is Welch's, over runs on the one text: luck need not do the same to both.
    """
    again = {recipe for recipe, of in runs.items() if len(of) > 1}
    compared = [pair for pair in references.items() if set(pair) <= again]
    rows = {}
    for key, (name, other) in product(STANDING, compared):
        ours, theirs = _scores(runs[name], key), _scores(runs[other], key)
        welch = stats.ttest_ind(ours, theirs, equal_var=False)
        means = ours.mean(), theirs.mean(), ours.mean() - theirs.mean()
        rows[*key, name, other] = (*means, *welch.confidence_interval(statistics.LEVEL))
    columns = ["of model", "of reference", "value", "low", "high"]
    return rowed(rows, ["layers", "task", "model", "reference"], columns=columns)


# --- figures --------------------------------------------------------------------------------------


@styled
def member_profiles(
    table: pd.DataFrame, references: Mapping[str, str], *, lines: References | None = None,
    tasks: Sequence[str] = TASKS,
) -> Figure:  # fmt: skip
    """Scores over layers, a small panel a model, each with its reference model in thin lines.

    ``references`` maps a model to the one that it is compared with, where there is one; ``lines``
    are horizontal: label → table of ``model``, ``task`` and ``score``.
    """
    thin = table.assign(reference=table["model"]).drop(columns="model")
    pairs = pd.DataFrame(references.items(), columns=["model", "reference"])
    thin = pairs.merge(thin[thin["task"].isin(tasks[:2])], on="reference")
    on = scored(table, "layer", tasks, columns=3, width=2.75, height=1.75, sharex=True)
    scored(thin, "layer", tasks, on=on, low="", linewidth=0.8, marker="",
           labels={task: f"{task} of the model in brackets" for task in tasks})  # fmt: skip
    on.titles(lambda model: f"{model} [{references[model]}]" if model in references else model)
    return on.done(LAYER, "ABX score", handles=with_lines(on, lines, tasks))


@styled
def training_losses(table: pd.DataFrame, names: Mapping[str, str]) -> Figure:
    """Losses along training, a panel an objective.

    ``table`` has ``objective``, ``model``, ``step`` and ``loss``; ``names`` gives the objectives
    in order, as they are called in the titles.
    """
    table = pd.concat([rows_of(table, objective=name) for name in names])
    every = max(1, table["step"].nunique() // 8)
    on = curves(table, x="step", value="loss", series="model", panel="objective", every=every,
                sharey=False, width=2.8, height=2.4, linewidth=1.1)  # fmt: skip
    for axes in on.titles(names).axes.values():
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.locator_params(axis="x", nbins=5)
    return on.done("training step", "training loss (nats per subword)")


@styled
def paired_differences(table: pd.DataFrame, *, tasks: Sequence[str] = TASKS) -> Figure:
    """Differences of two models with intervals, a row a pair of models, a panel a task.

    ``table`` has ``model``, ``reference``, ``task``, ``layers`` (up to two sets of them, a mark
    each), ``value``, ``low`` and ``high``; ``least`` and ``most`` are a wider, thinner interval.
    """
    table = table.assign(pair=table["model"] + " − " + table["reference"])
    table = pd.concat([rows_of(table, task=task) for task in tasks])
    kinds = zip(order(table, "layers"), (False, True), "os", strict=False)
    on = lanes(
        table, item="pair", value="value", series="layers", panel="task", columns=len(tasks),
        looks={name: look("0.2" if hollow else BLUE, mark, hollow=hollow)
               for name, hollow, mark in kinds},
        wide=("least", "most"), width=3.1, lane=0.13, sharex=False,
    )  # fmt: skip
    across(on, 0, **ZERO | {"linestyle": "-"})
    return on.titles(NAMES).done("difference (share)")
