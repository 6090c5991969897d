"""Depth, training, pairs and languages: the sentences of section 4.2 of the ABX paper.

What the paper says of training and depth is a row each that could have come out otherwise, a
difference of named checkpoints or layers: the highest of several noisy scores is above a later one
by choice alone. Of a recipe with several runs the interval is over runs and documents.

LD against MD over pairs of languages (Appendix D) stands beside what needs no training: a bag of
subwords, the untrained twin, script and length; and beside a model that read one language. A
language's score (Appendix E) is the mean over its pairs with all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from operator import itemgetter

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from shared.abx_figures import LAYER, STEP, References, chance_line, scored, shown, with_lines
from shared.abx_tables import (
    DRAWN,
    PAIR,
    at_last,
    average_layers,
    ends,
    mean_of_runs,
    pair_scores,
    printed_results,
    with_models,
)
from shared.shown import asking, with_interval
from xlx.experiment.abx_scores import MATCHED, SPACES
from xlx.experiment.averages import Average, average, averaged_scores
from xlx.experiment.scoring import Length, Subject, cached, reported_measures, subject_scores
from xlx.measures import registered, statistics
from xlx.measures.abx import PairScores
from xlx.measures.alignment import unit_vectors
from xlx.plots import style
from xlx.plots.panels import Layout, across, number, panels, parts, rows_of
from xlx.plots.primitives import Curves, curves, heatmap, scatter
from xlx.plots.style import BLACK, CHANCE, MEASURES, NAMES, ZERO, handle, look, styled
from xlx.results.deferred import deferred
from xlx.subjects.identity import Name
from xlx.text import languages
from xlx.text.parallel import ParallelCorpus

stats = deferred("scipy.stats")
torch = deferred("torch")

#: Beside LD: how often the nearest sentence of another meaning is of the same language.
OWN = "nearest of the same language"
#: "Early in training" is the first 50,000 of 1,500,000 updates: what the paper saves densely.
EARLY = 1 / 30
#: Above zero where LD "gradually recovers".
LATER = "LD later, to the last"


#: Rows whose similarities to all sentences are held at once.
_ROWS = 512


def nearest_languages(vectors: Mapping[str, np.ndarray]) -> np.ndarray:
    """How often the nearest sentence of one of a language is of each: int64 ``(2, L, L)``.

    ``vectors`` are ``(n, dim)`` by language, sentences aligned; the first axis: among all others,
    and among those of other positions. Of equal cosines the first language counts. ValueError as
    `unit_vectors`.
    """
    units = np.stack(list(unit_vectors(vectors).values()))
    n_languages, n, dim = units.shape
    # without what all sentences share: cosines are as near as the digits of float32
    rest = torch.from_numpy((units - units.mean(axis=(0, 1))).reshape(-1, dim))
    offset = (rest @ torch.from_numpy(units.mean(axis=(0, 1)))).float()
    rest = rest.float()
    counts = np.zeros((2, n_languages, n_languages), dtype=np.int64)
    for start in range(0, n_languages * n, _ROWS):
        rows = torch.arange(start, min(start + _ROWS, n_languages * n))
        near, at = rest[rows] @ rest.T + offset, torch.arange(len(rows))
        near[at, rows] = -torch.inf
        for kind in range(2):
            if kind:  # no sentence at the same position
                near.view(len(rows), n_languages, n)[at, :, rows % n] = -torch.inf
            language = (near.argmax(dim=1) // n).numpy()
            np.add.at(counts[kind], ((rows // n).numpy(), language), 1)
    return counts


@cached(tolerance=10)  # a rounding error sends a few of a thousand to another language
def nearest(subject: Subject, corpus: ParallelCorpus, space: str) -> dict[str, np.ndarray]:
    """``counts``, int32 ``(n_layers, 2, L, L)``, of `nearest_languages`."""
    layers = map(nearest_languages, subject.read(corpus).layers(SPACES[space]))
    return {"counts": np.stack([*layers]).astype(np.int32)}


def own_neighbours(
    names: Sequence[Name], corpus: ParallelCorpus, **options: object
) -> pd.DataFrame:
    """`OWN` at every layer, a mean over languages with its interval over them (t).

    Translations do not count. Columns as of `averages.averaged_scores`, and ``n`` positions.
    """
    tables, n = [], len(corpus.languages)
    for value in nearest(names, corpus, "raw", **options):
        same = value["counts"][:, 1].diagonal(axis1=1, axis2=2) / len(corpus)
        mean, error = same.mean(axis=1), stats.sem(same, axis=1)
        width = statistics.half_width(error, n - 1)
        ends = {"score": mean, "low": mean - width, "high": mean + width, "n": len(corpus)}
        tables.append(pd.DataFrame({"layer": range(len(mean)), "task": OWN, **ends}))
    return with_models(names, tables)


def early_step(steps: Sequence[int]) -> int:
    """The step after 0 that is nearest to `EARLY` of the last, on a log scale."""
    due = np.log(EARLY * max(steps[-1], 1))
    return min((x for x in steps if x or len(steps) == 1), key=lambda x: abs(np.log(x or 1) - due))


def changes(steps: Sequence[int]) -> dict[str, tuple[str, int, int]]:
    """What the paper says of training, as far as it is of two checkpoints: claim → task, its steps.

    ``steps``: in order; "from the first trained": without step 0; "early": to `early_step`.
    """
    trained = [step for step in steps if step > 0] or list(steps)
    early, last = early_step(steps), steps[-1]
    starts = {"from step 0": 0} if steps[0] == 0 else {}
    starts |= {"from the first trained": trained[0]}
    asked = {f"LD early, {x}": ("LD", at, early) for x, at in starts.items() if at < early}
    if early != last:
        asked[LATER] = "LD", early, last
    for task in DRAWN:
        asked |= {f"{task} {x} to the last": (task, at, last) for x, at in starts.items()}
    return asked


def run_changes(scores: pd.DataFrame) -> pd.DataFrame:
    """`changes` over the runs of recipes; ``scores`` as of `courses.run_scores`.

    One row per ``model`` and ``claim``: over how many ``runs``, and their mean (``value``) with its
    interval over runs and languages (`mean_of_runs`).
    """
    rows = []
    for model, of_model in scores.groupby("model", sort=False):
        wide = of_model.pivot(
            index="language", columns=["task", "checkpoint", "run"], values="score"
        )
        wide = wide.sort_index(axis=1)
        for claim, (task, start, end) in changes(sorted(of_model["checkpoint"].unique())).items():
            change = (wide[task, end] - wide[task, start]).dropna(axis=1)
            covariance = np.atleast_2d(np.cov(change.T)) / len(change)
            mean = mean_of_runs(change.mean(), covariance, len(change) - 1)
            rows.append((model, claim, change.shape[1], *mean))
    return pd.DataFrame(rows, columns=["model", "claim", "runs", "value", "low", "high"])


def end_contrasts(
    first: PairScores, last: PairScores, embedding_layer: bool = True
) -> dict[str, Average]:
    """The scores of a run after training, and what training changed."""
    ends = {
        task: [average(state, task, embedding_layer=embedding_layer) for state in (first, last)]
        for task in DRAWN
    }
    at_end = {f"{task} at the end": after for task, (_, after) in ends.items()}
    return at_end | {f"{task} over training": end - start for task, (start, end) in ends.items()}


def claims_table(claims: pd.DataFrame) -> pd.DataFrame:
    """One row per claim, one column per model: value and interval as text."""
    shown = claims.assign(told=with_interval(claims, "value", "+.2f"))
    wide = shown.pivot(index="claim", columns="model", values="told").fillna("")
    return wide.loc[claims["claim"].unique(), claims["model"].unique()]


#: Distance → what it adds to the name of a task, and the space of the vectors.
DISTANCES = {"cosine": ("", "raw"), "CSLS": (" by CSLS", "raw"), "whitened": ("", "whitened")}


def last_steps(names: Sequence[Name], corpus: ParallelCorpus, **options: object) -> pd.DataFrame:
    """What LD and MD gain in the last layer, by distance, with intervals over documents.

    A row per ``model``, ``task`` and ``distance``: ``value``, ``low``, ``high``.
    """
    rows = []
    for task, (distance, (by, space)) in product(("LD", "MD"), DISTANCES.items()):
        for state in subject_scores(names, corpus, [task + by], space=space, **options):
            last, before = (average(state, task + by, layers=[k]) for k in (-1, -2))
            about = {"model": state.model, "task": task, "distance": distance}
            rows.append(about | ends(last - before))
    return pd.DataFrame(rows)


# --- pairs of languages --------------------------------------------------------------------------

#: What LD is set beside.
MEANINGS = ("MD", MATCHED)
METHODS = ("spearman", "pearson")
#: All that needs no training, held together.
ALL_HELD = "these, script and length"


def layer_pairs(measured: Sequence[PairScores]) -> pd.DataFrame:
    """LD and `MEANINGS` of every pair at every layer, both directions averaged."""
    table = pd.concat([state.table() for state in measured], ignore_index=True)
    return pair_scores(table[table["task"].isin(["LD", *MEANINGS])].drop(columns="space"))


def side_by_side(scores: pd.DataFrame, index: Sequence[str]) -> pd.DataFrame:
    """A row per ``index``, the scores of the tasks in columns."""
    wide = scores.pivot(index=list(index), columns="task", values="score")
    return wide.reset_index().rename_axis(columns=None)


def tradeoff_pairs(by_layer: pd.DataFrame, embedding_layer: bool = True) -> pd.DataFrame:
    """LD and `MEANINGS` of a pair, mean over layers: one row per model, checkpoint and pair."""
    averaged = average_layers(by_layer, embedding_layer)
    return side_by_side(averaged, ["model", "checkpoint", *PAIR])


def against_ld(
    rows: pd.DataFrame,
    keys: Sequence[str],
    methods: Sequence[str] = METHODS,
    meanings: Sequence[str] = MEANINGS,
) -> pd.DataFrame:
    """`statistics.correlations` of LD with each meaning: columns ``method``, ``LD with``."""
    tables = [
        statistics.correlations(rows, keys, "LD", meaning, method=method).assign(
            **{"LD with": meaning, "method": method}
        )
        for method, meaning in product(methods, meanings)
    ]
    return pd.concat(tables, ignore_index=True)


def printed_correlations(by_layer: pd.DataFrame, embedding_layer: bool = True) -> pd.DataFrame:
    """LD and MD over pairs, checkpoints and layers (Appendix D), beside what the paper prints."""
    pairs = tradeoff_pairs(by_layer, embedding_layer)
    layers = side_by_side(at_last(by_layer), ["model", "layer", "checkpoint", *PAIR])
    layers = layers[layers["layer"] >= (0 if embedding_layer else 1)]
    several = pairs.groupby("model")["checkpoint"].transform("nunique") > 1
    sets = {
        "pairs, last checkpoint": (at_last(pairs), "abx_t06", "abx_t07"),
        "pairs × layers, last checkpoint": (layers, "abx_t08", "abx_t09"),
        "pairs × checkpoints": (pairs[several], "abx_t04", "abx_t05"),
    }
    printed, tables = printed_results().astype(str), []
    for observations, (rows, *claims) in sets.items():
        table = against_ld(rows, ["model"], meanings=["MD"]).assign(observations=observations)
        values = table["method"].map(dict(zip(METHODS, printed[claims], strict=True)))
        tables.append(table.assign(**{"printed (XLM-R)": values}))
    table = pd.concat(tables, ignore_index=True)
    index = ["observations", "method", "printed (XLM-R)"]
    told = table.assign(told=with_interval(table, "r"))
    return told.pivot(index=index, columns="model", values="told").fillna("")


def held_pairs(
    measured: Sequence[PairScores],
    twins: Sequence[PairScores],
    bags: Sequence[PairScores],
    corpus: ParallelCorpus,
    embedding_layer: bool = True,
) -> pd.DataFrame:
    """LD and `MEANINGS` of each pair, with what needs no training beside them, means over layers.

    ``twins``, ``bags``: of the models of ``measured``, in their order. Columns "twin LD", "bag LD"
    and so on, "length MD", "one script".
    """
    length = tradeoff_pairs(layer_pairs(subject_scores([Length()], corpus)))
    length = length.rename(columns={"MD": "length MD"})[[*PAIR, "length MD"]]
    tables = []
    for state, twin, bag in zip(measured, twins, bags, strict=True):
        pairs = tradeoff_pairs(layer_pairs([state]), embedding_layer)
        for label, other in (("twin", twin), ("bag", bag)):
            beside = tradeoff_pairs(layer_pairs([other]), label == "bag" or embedding_layer)
            beside = beside.set_index(PAIR)[["LD", *MEANINGS]].add_prefix(f"{label} ")
            pairs = pairs.join(beside, on=PAIR)
        tables.append(pairs.merge(length, on=PAIR))
    whole = pd.concat(tables, ignore_index=True)
    script = {code: language.script for code, language in languages.LANGUAGES.items()}
    alike = whole[PAIR[0]].map(script) == whole[PAIR[1]].map(script)
    return whole.assign(**{"one script": alike.astype(float)})


def held_sets(pairs: pd.DataFrame, meaning: str) -> dict[str, list[str]]:
    """What is held, set by set: label → columns of `held_pairs` that vary."""
    sets = {"nothing": [], "the bag": ["bag LD", f"bag {meaning}"]}
    sets["the bag and the twin"] = [*sets["the bag"], "twin LD", f"twin {meaning}"]
    sets[ALL_HELD] = sets["the bag and the twin"] + ["one script", "length MD"]
    return {label: [x for x in names if pairs[x].nunique() > 1] for label, names in sets.items()}


def partial_tradeoffs(held: pd.DataFrame) -> pd.DataFrame:
    """What is left of the correlation of LD with `MEANINGS`, given each of `held_sets`.

    Columns ``model``, ``LD with``, ``given``, ``r``, its ends.
    """
    rows = []
    for (model, pairs), meaning in product(held.groupby("model", sort=False), MEANINGS):
        for label, given in held_sets(pairs, meaning).items():
            r = statistics.correlation(pairs, "LD", meaning, given=given)
            rows.append((model, meaning, label, r.value, r.low, r.high))
    return pd.DataFrame(rows, columns=["model", "LD with", "given", "r", "low", "high"])


def beyond_control(held: pd.DataFrame, control: str) -> pd.DataFrame:
    """The partial correlation (`ALL_HELD`) of each model less that of a control, by ``model``.

    ``value`` with its interval over languages, each left out of both with all its pairs.
    """
    without: dict[str, np.ndarray] = {}
    for model, pairs in held.groupby("model", sort=False):
        names = ("LD", MATCHED, *held_sets(pairs, MATCHED)[ALL_HELD])
        rows, n = statistics.language_codes(pairs, PAIR)
        chosen = (rows != np.arange(-1, n)[:, None, None]).all(axis=2)  # the first is of no one
        first, second = statistics.unit_columns(statistics.numbers(pairs, names).T, chosen)
        without[model] = (first * second).sum(axis=1)
    rows = []
    for model in [model for model in without if control in without and model != control]:
        value, *rest = without[model] - without[control]
        rows.append((model, value, *statistics.left_out_interval(value, np.array(rest))))
    return pd.DataFrame(rows, columns=["model", "value", "low", "high"])


# --- languages ----------------------------------------------------------------------------------


def heights(
    measured: Sequence[PairScores],
    twins: Sequence[PairScores],
    bags: Sequence[PairScores],
    embedding_layer: bool = True,
) -> pd.DataFrame:
    """The score of each language, beside that of the untrained twin and of the bag of subwords.

    In parallel lists. Columns ``model``, ``task``, ``language``, ``score`` and its ends, ``twin``,
    ``bag``.
    """
    tables, keys = [], ["task", "language"]
    for state, twin, bag in zip(measured, twins, bags, strict=True):
        table = averaged_scores([state], DRAWN, by=["language"], embedding_layer=embedding_layer)
        for name, other in (("twin", twin), ("bag", bag)):
            keep = name == "bag" or embedding_layer
            beside = averaged_scores([other], DRAWN, by=["language"], embedding_layer=keep)
            table = table.join(beside.set_index(keys)["score"].rename(name), on=keys)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


# --- figures --------------------------------------------------------------------------------------


@styled
def dynamics(table: pd.DataFrame, *, references: References | None = None) -> Figure:
    """Scores along training, one panel per model (Figure 2 of the ABX paper).

    ``table`` has ``checkpoint``, and may have MD among sentences of like length; ``references``
    maps a label ("a bag of subwords") to a table of ``model``, ``task`` and ``score``; a task that
    it lacks has no line.
    """
    tasks = ["LD", MATCHED]
    on = scored(table, "checkpoint", tasks, Curves(even=True, width=3.9, height=2.5))
    figure = on.done(STEP, "share of comparisons", handles=with_lines(on, references, tasks))
    return asking("While a model learns, does form give way to meaning?", figure)


def kinds() -> dict[str, str]:
    """What each score that is drawn over layers is of: form, then meaning."""
    kind = {x: registered()[x.partition(",")[0]].kind for x in reported_measures()} | {OWN: "form"}
    return dict(sorted(((x, column) for x, column in kind.items() if column), key=itemgetter(1)))


@styled
def form_and_meaning(table: pd.DataFrame, twins: pd.DataFrame) -> Figure:
    """Scores over layers, one column per model: of form above, of meaning below (Figure 3).

    ``twins``: the same of untrained twins, drawn hollow. Plain MD is not drawn.
    """
    kind, known = kinds(), registered().values()
    kind.pop("MD")
    table, twins = (part.assign(kind=part["task"].map(kind)) for part in (table, twins))
    looks = style.looks(kind, {OWN: look(BLACK, "v", ":")} | MEASURES)
    names = {measure.name: measure.label or measure.name for measure in known} | NAMES
    table = pd.concat([rows_of(table, kind=part) for part in dict.fromkeys(kind.values())])
    on = curves(
        table,
        "layer",
        "score",
        hue="task",
        row="kind",
        col="model",
        looks=looks,
        labels=names,
        sharex="col",
        sharey="row",
        every=3,
        width=2.75,
        height=1.9,
    )
    thin = {task: look | style.TWIN | {"markersize": 3} for task, look in looks.items()}
    curves(
        twins,
        "layer",
        "score",
        hue="task",
        looks=thin,
        labels=dict.fromkeys(kind, "_"),
        interval=False,
        every=3,
        on=on,
    )
    for (part, _), axes in on.axes.items():
        if part == "form":
            axes.set_ylim(top=1.02)
    across(on, y=CHANCE)
    on.titles(lambda key: f"{key[1].removesuffix(', held out')}: {key[0]}")
    handles = [handle("untrained twin", look("0.3", "o") | style.TWIN)]
    handles += [chance_line("chance of LD and MD")]
    figure = on.done(LAYER, "share of comparisons, or of sentences", handles=handles)
    return asking("In which layers is form, in which is meaning?", figure)


@styled
def layers_beside_training(
    layers: pd.DataFrame, course: pd.DataFrame, *, references: References | None = None
) -> Figure:
    """Scores of a model over its layers (left), and of another along its training (right).

    ``layers`` has ``layer``, ``course`` is as of `dynamics`, of one model each;
    ``references`` have a line in the panels of their models, of LD and MD among sentences of like
    length: that of plain MD lies beside the latter.
    """
    tasks = shown(layers)
    layout = Layout(width=3.9, height=2.5, sharex=False)
    on = panels(pd.concat([layers, course]), col="model", layout=layout)
    for table, x, label in ((layers, "layer", LAYER), (course, "checkpoint", STEP)):
        name = table["model"].iloc[0]
        single = replace(on, axes={name: on.axes[name]})
        scored(table, x, tasks, Curves(even=table is course), on=single)
        on.axes[name].set_xlabel(label, fontsize=9)
    handles = with_lines(on, references, ["LD", MATCHED])
    figure = on.done("", "share of comparisons", handles=handles)
    return asking("Are languages told apart less where meanings are told apart better?", figure)


def thinned(table: pd.DataFrame) -> pd.DataFrame:
    """Of many checkpoints every second, third, ... up to the last, and the first."""
    steps = np.unique(table["checkpoint"])
    return table[table["checkpoint"].isin([steps[0], *steps[:: -(len(steps) // 13 + 1)]])]


@styled
def checkpoint_layer_map(table: pd.DataFrame) -> Figure:
    """Maps of checkpoint and layer, a row of panels a model (Figure 4 of the ABX paper)."""
    tasks = ["LD", MATCHED]
    table = thinned(table[table["task"].isin(tasks)])
    table = table.sort_values(["checkpoint", "task", "layer"], kind="stable")
    n_cells = len(tasks) * table["checkpoint"].nunique()
    if n_cells <= 28:
        table["written"] = table["score"].map(number)
    on = heatmap(
        table,
        "checkpoint",
        "layer",
        "score",
        row="model",
        col="task",
        rows=sorted(table["layer"].unique(), reverse=True),
        cell=(7.8 / n_cells, 0.24),
        turned=45 if n_cells <= 28 else 90,
        bar="share of comparisons (bright: high)",
        edge=(0.7, 1.4),
        sharex=False,
    )
    on.titles(lambda key: f"{key[0]}: {NAMES[key[1]]}")
    question = "At which layer and step are languages told apart, at which meanings?"
    return asking(question, on.done("training step", LAYER))


@styled
def tradeoff(
    table: pd.DataFrame, meanings: Sequence[str], statistics: Mapping[tuple[str, str], str]
) -> Figure:
    """Language pairs by LD and MD (Figure 6 of the ABX paper), one row per kind of MD.

    ``table`` has ``model``, ``language_1``, ``language_2``, ``LD`` and the ``meanings``;
    ``statistics``: model and meaning → a line of text. The pairs of highest and lowest MD are
    named.
    """
    names = table["language_1"] + "-" + table["language_2"]
    long = table.assign(pair=names).melt(
        ["model", "pair", "LD"], list(meanings), "meaning", "score"
    )
    ends = [
        index
        for _, rows in parts(long, "model", "meaning")
        for index in (rows["score"].idxmin(), rows["score"].idxmax())
    ]
    long["written"] = long["pair"].where(long.index.isin(ends), "")
    on = scatter(
        long, "LD", "score", row="meaning", col="model", size=7, alpha=0.4, width=3.9, height=2.4
    )
    on.titles(lambda key: f"{key[1]}: {key[0]}\n{statistics[key[::-1]]}")
    figure = on.done("LD of a pair of languages (chance: 0.5)", "MD of the pair (chance: 0.5)")
    return asking("Are pairs that are told apart better matched worse?", figure)


@styled
def correlation_course(table: pd.DataFrame) -> Figure:
    """Correlation of LD and MD over checkpoints (Figure 7 of the ABX paper).

    ``table`` as of `against_ld`; bands are intervals over languages.
    """
    rows = table.sort_values("model", ascending=False)
    on = curves(
        rows,
        "checkpoint",
        "r",
        hue="LD with",
        col="model",
        looks=MEASURES,
        labels=NAMES,
        even=True,
        wrap=3,
        width=3.9,
    )
    across(on, y=0, **ZERO)
    question = "Do pairs with high LD have low MD at every step?"
    return asking(question, on.done(STEP, "correlation of LD and MD\nover pairs"))


@styled
def language_maps(table: pd.DataFrame, rows: Sequence[str]) -> Figure:
    """Maps of language by checkpoint, one panel per model and score (Figure 8 of the ABX paper).

    Colours run from 0, where a language is lowest, to 1 ("normalised per language"); a title has
    the range of the scores. ``rows`` orders the languages.
    """
    table = table.assign(panel=table["model"] + ": " + table["task"])
    ends = table.groupby("panel")["score"].agg(["min", "max"])
    of_language = table.groupby(["panel", "language"])["score"]
    table["score"] = of_language.transform(lambda x: (x - x.min()) / np.ptp(x))
    table = thinned(table)
    n_panels = table["panel"].nunique()
    width = (8 / n_panels - 0.12) / table["checkpoint"].nunique()
    on = heatmap(
        table,
        "checkpoint",
        "language",
        "score",
        col="panel",
        rows=rows,
        wrap=n_panels,
        sharex=False,
        turned=90,
        bar="score of a language, from its lowest (0) to its highest (1) checkpoint",
        cell=(min(0.32, width), 0.125),
    )
    on.titles(lambda x: "{}, {:.2f} to {:.2f}".format(x, *ends.loc[x]))
    question = "While a model learns, do scores of all languages go one way?"
    return asking(question, on.done("training step"))
