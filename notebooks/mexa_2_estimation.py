"""Scores of MEXA against a task in other languages (Figure 1, Tables 1, 2, 5 and 6).

Correlations and regressions are over languages, of one model and task each.
"""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from shared.abx_tables import PAIR
from shared.mexa_tables import cover, language_tags, training_history
from xlx.experiment import probing
from xlx.experiment.mexa_scores import Coverage, mean_subwords, measure_coverage
from xlx.experiment.scoring import BAG, BagOfSubwords, subject_scores, told
from xlx.measures import regressions, statistics
from xlx.measures.mexa import bands, expected
from xlx.plots.panels import across, number, order, parts
from xlx.plots.primitives import curves, lanes, scatter
from xlx.plots.style import BLUE, MEASURES, NAMES, VERMILION, ZERO, handle, look, looks, styled
from xlx.results import paths
from xlx.subjects import identity
from xlx.subjects.identity import Name, series_name
from xlx.text.downstream import SCORE_COLUMNS
from xlx.text.files import catalogue
from xlx.text.parallel import ParallelCorpus

#: The topics of SIB-200 in tables of downstream scores.
TOPIC_TASK = "SIB-200"
#: What a score of a text is of; correlations are of these.
POOLED = ["task", "text", "pooling", "layers"]
#: What can be had without a model's states: predictors of the task beside MEXA.
RIVALS = ["bag", "subwords", "characters"]
#: Measures of alignment as they are called in text.
MEASURE_TITLES = {
    "parallel_cosine": "cosine of translations", "other_cosine": "cosine of others",
    "to_pivot": "retrieval to pivot", "from_pivot": "retrieval from pivot",
    "margin": "margin of translations", "margin_to_pivot": "retrieval to pivot, margin",
    "margin_from_pivot": "retrieval from pivot, margin", "cka": "CKA",
    "debiased_cka": "CKA, debiased", "rsa_spearman": "RSA (Spearman)",
    "rsa_pearson": "RSA (Pearson)",
}  # fmt: skip
#: Layers that section 5.3 averages cosines over, of models with 28 and 32 layers.
_MIDDLE, _OF = (5, 10, 15, 20, 25), 32
#: Poolings of subwords and layers as the paper's tables write them.
PRINTED = {"weighted_mean": "weighted average", "last": "last token", "mean": "Mean", "max": "Max"}


def topic_tasks(
    models: Sequence[str], languages: Sequence[str], layer: int | str, **options: object
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores of the topic probes, raw and centred, as two tasks; and how far they are known.

    ``options`` as of `probe_topics`; of the languages, those that have a test.
    """
    files = catalogue("labelled")
    there = files.loc[files["task"] == "TOPIC", "language"]
    probed = probing.probe_topics(models, there[there.isin(languages)], **options)
    tasks, known = [], {}
    for task, centred in ((TOPIC_TASK, False), (f"{TOPIC_TASK}, centred", True)):
        tasks.append(task_scores(probed, layer, centred=centred).assign(task=task))
        for model, value in topic_reliability(probed, layer, centred=centred).items():
            known[task, model] = {"majority": probed["majority"].mean(), "reliability": value}
    return pd.concat(tasks, ignore_index=True), pd.DataFrame(known).T.rename_axis(["task", "model"])


def chosen_layer(table: pd.DataFrame) -> dict[str, int]:
    """The layer of each model whose probes have the lowest validation loss, in English.

    No other language is looked at: that choice can be made where only English has labels.
    """
    losses = table.groupby(["model", "layer"])["validation_loss"].mean()
    return {model: int(rows.idxmin()[1]) for model, rows in losses.groupby("model")}


def task_scores(
    table: pd.DataFrame,
    layer: int | str = "chosen",
    *,
    centred: bool = True,
    accuracy: str = "accuracy",
) -> pd.DataFrame:
    """Scores of a task, as `xlx.text.downstream` has them, from what `probe_topics` returns.

    ``layer``: whose probes count: a number, "chosen" (`chosen_layer`) or "mean" (over all);
    ``centred``: which of the two scores (`probing.probe_topics`); ``accuracy``: of all test
    sentences, or of "even" or "odd" ones.

    One row a model and language: ``task``, ``model``, ``language``, ``score`` (accuracy, mean over
    seeds), ``stderr`` (of a share of n sentences: other sentences of the kind), ``n``. ValueError
    for a layer that is not there, and for several checkpoints of a model.
    """
    if (several := table.groupby("model")["checkpoint"].nunique()).max() > 1:
        raise ValueError(
            f"there are several checkpoints of {several.idxmax()}: score them one after another"
        )
    table = table[table["centred"] == centred]
    if layer == "chosen":
        table = table[table["layer"] == table["model"].map(chosen_layer(table))]
    elif layer != "mean":
        there = sorted(table["layer"].unique())
        if layer not in there:
            raise ValueError(
                f"there is no layer {layer!r}: choose 'chosen', 'mean' or a number of "
                f"{', '.join(map(str, there))}"
            )
        table = table[table["layer"] == layer]
    scores = table.groupby(["model", "language"], sort=False, as_index=False)
    scores = scores.agg(score=(accuracy, "mean"), n=("n", "first"))
    if accuracy != "accuracy":
        scores["n"] = (scores["n"] + (accuracy == "even")) // 2
    scores["stderr"] = np.sqrt(scores["score"] * (1 - scores["score"]) / scores["n"])
    return scores.assign(task=TOPIC_TASK)[list(SCORE_COLUMNS)]


def topic_reliability(
    table: pd.DataFrame, layer: int | str = "chosen", *, centred: bool = True
) -> dict[str, float]:
    """How well the test tells languages apart, by model: 1 if other sentences would agree.

    The correlation over languages but English of the scores of even and odd sentences, stepped up
    to the full length (Spearman-Brown). No score can be expected to correlate with the task by more
    than its square root; below zero, where the halves disagree, nothing was measured. NaN where
    there is nothing to correlate: fewer than two languages, or one score in all of them.
    """
    table = table[table["language"] != probing.SOURCE]
    even, odd = (
        task_scores(table, layer, centred=centred, accuracy=half).set_index(["model", "language"])
        for half in ("even", "odd")
    )
    reliability = {}
    for model, rows in even.groupby(level="model", sort=False):
        halves = np.array([rows["score"], odd.loc[rows.index, "score"]])
        if np.ptp(halves, axis=1).min() == 0:
            reliability[str(model)] = float("nan")
            continue
        r = float(np.corrcoef(halves)[0, 1])
        reliability[str(model)] = 2 * r / (1 + r) if r > -1 else float("-inf")
    return reliability


# --- what else predicts the task ------------------------------------------------------------------


def without_states(
    models: Sequence[str], text: ParallelCorpus, pivot: str, max_length: int | None
) -> pd.DataFrame:
    """The `RIVALS` of each language and model.

    ``bag``: MEXA of bags of the model's subwords; ``subwords``: of a sentence, as a multiple of the
    pivot's; ``characters``: log of those in the language that the family was trained on.
    """
    counts = pd.read_csv(paths.DATA / "pretraining" / "counts.tsv", sep="\t")
    counts = counts.groupby("language")["characters"].sum()
    tables = []
    for name in models:
        bag = measure_coverage(BagOfSubwords(name, max_length=max_length), text, pivot)
        table = bag[BAG].scores.pooled()[["language", "mu"]].rename(columns={"mu": "bag"})
        pieces = mean_subwords(name, text, pivot, max_length)
        table["subwords"] = table["language"].map(pieces) / pieces[pivot]
        table["characters"] = np.log1p(table["language"].map(counts).fillna(0))
        tables.append(table.assign(model=series_name(identity.identify(name))))
    return pd.concat(tables)


def added_by_mexa(scores: pd.DataFrame, rivals: pd.DataFrame) -> pd.DataFrame:
    """What MEXA adds to the `RIVALS` in a regression with them, robust errors, for every pooling.

    ``per 0.1`` of the score, ``p`` and ``VIF``. With ten languages or fewer, or where something is
    the same in all, there is none: four predictors fit anything.
    """
    joint = scores.merge(rivals, on=["model", "language"])
    rows = []
    for key, part in joint.groupby([*POOLED, "model"], sort=False):
        if len(part) > 10 and (part[["score", "mu", *RIVALS]].nunique() > 1).all():
            fit = regressions.regression(part, "score", ["mu", *RIVALS]).table
            row = fit[(fit["term"] == "mu") & (fit["errors"] == "robust")].iloc[0]
            rows.append((*key, row["coefficient"] / 10, row["p_value"], row["vif"]))
    return pd.DataFrame(rows, columns=[*POOLED, "model", "per 0.1", "p", "VIF"])


# --- other measures (5.3) -------------------------------------------------------------------------


def middle_layers(n_layers: int) -> tuple[int, ...]:
    """The layers of section 5.3: 5, 10, 15, 20 and 25, or where these lie in a shallower model.

    The paper takes the same five in a model of 28 layers and one of 32. Below 26 they are scaled
    from 32 and rounded: 1 to 5 of 6 layers.
    """
    if n_layers > _MIDDLE[-1]:
        return _MIDDLE
    return tuple(sorted({max(1, round(layer * n_layers / _OF)) for layer in _MIDDLE}))


def middle_measures(covered: Sequence[Coverage]) -> pd.DataFrame:
    """MEXA and the other measures, averaged over the middle layers (section 5.3)."""
    tables = []
    for coverage in covered:
        scores = coverage.scores.table().rename(columns={"mu": "value"}).assign(measure="MEXA")
        table = pd.concat([scores, coverage.measures])
        table = table[table["layer"].isin(middle_layers(len(coverage.scores.layers) - 1))]
        means = table.groupby(["measure", "language"], sort=False, as_index=False)["value"].mean()
        tables.append(coverage.named(means))
    return pd.concat(tables, ignore_index=True)


def all_measures(
    covered: Sequence[Coverage], names: Sequence[Name], text: ParallelCorpus, pivot: str,
    poolings: Sequence[str], max_length: int | None = None,
) -> pd.DataFrame:  # fmt: skip
    """`middle_measures` and `pair_measures`, one below the other."""
    pairs = pair_measures(names, text, pivot, poolings, max_length)
    return pd.concat([middle_measures(covered), pairs], ignore_index=True)


def pair_measures(
    names: Sequence[Name], text: ParallelCorpus, pivot: str, poolings: Sequence[str],
    max_length: int | None = None,
) -> pd.DataFrame:  # fmt: skip
    """As `middle_measures`, of the measures that are told (`scoring.told`), with the pivot."""
    tables = []
    for name, pooling in product(names, poolings):
        options = {"pooling": pooling, "max_length": max_length}
        (scores,) = subject_scores([name], text, told(), **options)
        table = scores.table()
        layers = middle_layers(len(scores.scores.layers) - 1)
        table = table[table["layer"].isin(layers) & (table[PAIR] == pivot).any(axis=1)]
        others = table["language_1"].where(table["language_1"] != pivot, table["language_2"])
        table = table.assign(language=others, measure=table["task"])
        means = table.groupby(["measure", "language"], sort=False, as_index=False)["score"].mean()
        named = {"model": scores.model, "pooling": pooling, "states": "raw"}
        tables.append(means.rename(columns={"score": "value"}).assign(**named))
    return pd.concat(tables, ignore_index=True)


@styled
def correlations(table: pd.DataFrame, *, xlabel: str) -> Figure:
    """Correlations with their intervals, a row a measure, a colour and a marker a model.

    ``table`` has ``model``, ``measure``, ``r``, ``low`` and ``high``; the measure with the largest
    of them stands above.
    """
    table = table.sort_values("r", ascending=False, kind="stable")
    on = lanes(table, item="measure", value="r", series="model",
               looks=looks(sorted(order(table, "model"))), width=5, lane=0.085)  # fmt: skip
    across(on, 0, **ZERO | {"linestyle": "-"})
    return on.done(xlabel)


@styled
def cosines(table: pd.DataFrame) -> Figure:
    """How much closer translations are than other sentences, against the task (section 5.3).

    ``table`` has ``model``, ``language``, ``parallel_cosine`` and ``other_cosine`` (means, with the
    pivot's sentences) and ``score`` (of a task; a language without one is left out). Below 0
    translations are further apart than other sentences. The languages at the ends are named.
    """
    table = table.dropna(subset="score").reset_index(drop=True)
    table["closer"] = table["parallel_cosine"] - table["other_cosine"]
    ends = table.groupby("model")["closer"].agg(["idxmin", "idxmax"]).to_numpy()
    table["written"] = table["language"].where(table.index.isin(ends.ravel()), "")
    on = scatter(table, x="score", y="closer", panel="model", written="written", width=2.2,
                 looks={None: look(BLUE, "o")}, labels={None: "a language"})  # fmt: skip
    across(on, y=0, **ZERO | {"linestyle": "-"})
    return on.done("task score", "mean cosine of translations\n− of other sentences")


# --- from alignment to a score (5.2) --------------------------------------------------------------


def adjusted_scores(scores: pd.DataFrame, summary: pd.DataFrame, pivot: str) -> pd.DataFrame:
    """The adjusted score of each language (``expected``) beside the task's, with its interval.

    ``scores`` are of one pooling and text; ``written`` names the three highest of a panel.
    """
    table = scores.join(summary[pivot].rename("english"), on=["task", "model"])
    order = list(summary.index.unique("task"))
    table = table.sort_values("task", key=lambda task: task.map(order.index), kind="stable")
    width = statistics.half_width(table["stderr"].to_numpy(float))
    table = table.assign(
        expected=expected(table["mu"], table["english"]),
        low=table["score"] - width,
        high=table["score"] + width,
        panel=table["model"] + ": " + table["task"],
    )
    far = table.groupby("panel")["expected"].rank(ascending=False) <= 3
    return table.assign(written=table["language"].where(far, ""))


def estimate_lines(
    table: pd.DataFrame, n_choices: Mapping[str, int]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The line of each panel of `adjusted_scores` (Figure 1): what is drawn of it, and its numbers.

    With k choices a guess is right once in k times while the least MEXA score is 0, so the ideal
    line goes from (0, 1/k) to (1, 1). At the point of English itself, x = s, it gives s + (1 - s) /
    k, more than s: it is an upper end, met by a perfect model only. Errors are root mean squares of
    what a line leaves, in units of the task's score. Drawn are the fitted line (not of fewer than
    three languages), the ideal one and chance.
    """
    drawn, rows = [], {}
    for panel, part in parts(table, "panel"):
        task, model = part[["task", "model"]].iloc[0]
        k = n_choices.get(task, 4)
        x, y = part[["expected", "score"]].to_numpy(float).T
        if len(part) > 2 and np.ptp([x, y], axis=1).min() > 0:
            fit, row = stats.linregress(x, y), {}
            lines = {"": (fit.slope, fit.intercept), "ideal ": (1 - 1 / k, 1 / k)}
            for kind, (slope, intercept) in lines.items():
                error = np.sqrt(np.mean((y - intercept - slope * x) ** 2))
                row |= {f"{kind}slope": slope, f"{kind}intercept": intercept}
                row[f"{kind}error"] = error
            rows[task, model] = row
            fitted = regressions.fitted_line(part, "expected", "score")
            drawn.append(fitted.assign(kind="fitted", panel=panel))
        ends = pd.DataFrame({"x": [0, part["expected"].max()], "panel": panel})
        drawn.append(ends.assign(kind="ideal", y=1 / k + (1 - 1 / k) * ends["x"]))
        drawn.append(ends.assign(kind="chance", y=1 / k))
    index = pd.MultiIndex.from_tuples(list(rows), names=["task", "model"])
    return pd.concat(drawn), pd.DataFrame(rows.values(), index)


@styled
def estimates(table: pd.DataFrame, lines: pd.DataFrame, *, xlabel: str) -> Figure:
    """Scores of a task against those that MEXA leads to expect, a point a language (Figure 1).

    ``table`` is of `adjusted_scores`; one bar shows a typical interval. ``lines`` has ``panel``,
    ``kind`` ("fitted", "ideal", "chance"), ``x``, ``y``, ``low``, ``high`` (missing where a line
    has no band). Scores are shares in [0, 1], and panels have one scale.
    """
    n_models = max(len(order(part, "panel")) for _, part in parts(table, "task"))
    on = scatter(table, x="expected", y="score", panel="panel", written="written", size=8,
                 looks={None: look(BLUE, "o")}, labels={None: "a language"}, width=2.3,
                 height=2.2, columns=n_models if n_models in (3, 5) else 4)  # fmt: skip
    curves(lines, x="x", value="y", series="kind", panel="panel", on=on,
           looks={"fitted": look(VERMILION, ""), "ideal": look("0.2", "", "--"),
                  "chance": look("0.4", "", (0, (1, 2)))},
           labels={"fitted": "fitted line, with interval", "ideal": "ideal line",
                   "chance": "guessing"})  # fmt: skip
    reach = table["score"].max() - min(table["score"].min(), 0)
    for axes, rows in on.each(table):
        half = (rows["high"] - rows["low"]).median() / 2
        if half > 0:
            axes.errorbar([0.95], [half + 0.03 * reach], yerr=half, color="0.35", capsize=2,
                          linewidth=1, transform=axes.get_yaxis_transform())  # fmt: skip
    typical = handle("typical interval of a score", look("0.35", "|"), markersize=9)
    return on.done(xlabel, "score of the task", handles=[typical])


def bands_beside_print(scores: pd.DataFrame, english: pd.Series, corpus: str) -> pd.DataFrame:
    """How many languages have an adjusted score in each band: here, and of them in Table 6."""
    ours = scores.assign(value=expected(scores["mu"], scores["model"].map(english)))
    printed = pd.read_csv(paths.PUBLISHED / "mexa" / "table6_flores203_adjusted_mexa.csv")
    labels = printed["label"].replace({"swl_Latn": "swh_Latn"})
    here = scores["language"].map(language_tags(corpus))
    printed = printed[(printed["model"] != "AVG") & labels.isin(here)]
    table = pd.concat([ours, printed.assign(model=printed["model"] + ", printed")])
    table["band"] = bands(table["value"])
    return table.groupby(["model", "band"], observed=False, sort=False).size().unstack()


# --- verses read and held out (5.1) ---------------------------------------------------------------


def verse_pairs(
    models: Mapping[str, Sequence[str]], texts: Sequence[ParallelCorpus], pivot: str, **options: int
) -> list[tuple[str, Coverage, Coverage]]:
    """Coverage of the verses read and of those held out, of each model (→ its poolings).

    Before it the model's name, with ", untrained" at step 0 of a series that has one.
    """
    options |= {"states": ["raw"], "alternatives": False}
    pairs = []
    for name, poolings in models.items():
        history = training_history(name)
        ends = {"": history[-1] if history else name}
        if len(history) > 1 and not history[0].step:
            ends[", untrained"] = history[0]
        for when, checkpoint in ends.items():
            both = [cover([checkpoint], text, pivot, poolings, **options) for text in texts]
            pairs += [(x.model + when, x, held_out) for x, held_out in zip(*both, strict=True)]
    return pairs


def verse_differences(
    pairs: Sequence[tuple[str, Coverage, Coverage]],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Score on verses held out less that on those read: by language, and the mean over languages.

    The interval is over verses, by the jackknife; all languages share them.
    """
    dots, rows = [], []
    for model, read, held_out in pairs:
        about = {"model": model, "pooling": read.pooling}
        difference = held_out.scores.mu.mean(axis=0) - read.scores.mu.mean(axis=0)
        table = pd.DataFrame({"language": read.scores.languages, "difference": difference})
        dots.append(table.assign(**about))
        variance = 0.0
        for coverage in (read, held_out):
            left = coverage.scores.left_out().mean(axis=(0, 1))
            variance += (len(left) - 1) / len(left) * ((left - left.mean()) ** 2).sum()
        half = float(statistics.half_width(np.sqrt(variance)))
        means = {"read": read.scores.mu.mean(), "held out": held_out.scores.mu.mean()}
        mean = difference.mean()
        rows.append(about | means | {"mean": mean, "low": mean - half, "high": mean + half})
    return pd.concat(dots), pd.DataFrame(rows)


@styled
def seen_unseen(table: pd.DataFrame, summary: pd.DataFrame) -> Figure:
    """Difference of scores on verses out of pretraining and in it, a point a language.

    Tables of `verse_differences`; the poolings of a model share its space, and the means are drawn
    in black below the points. The scale is linear to ±0.02, then logarithmic.
    """
    table, summary = (
        rows.assign(
            item=rows["model"] + ", " + rows["pooling"].map(lambda way: NAMES[way].split(" ")[0])
        )
        for rows in (table, summary)
    )
    items = order(summary, "item")
    on = lanes(table, item="item", items=items, value="difference", series="pooling", low="",
               looks=MEASURES, labels=NAMES, shift=-0.12, spread=0.35, alpha=0.6, lane=0.06,
               width=5)  # fmt: skip
    lanes(summary, item="item", items=items, value="mean", on=on, shift=0.32, capsize=3,
          looks={None: look("black", "o")}, labels={None: "mean, with interval"})  # fmt: skip
    across(on, 0, **ZERO | {"linestyle": "-"})
    (axes,) = on.axes.values()
    most = max(0.02, table["difference"].abs().max() * 1.2)
    ticks = [tick for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if tick <= most]
    axes.set_xscale("symlog", linthresh=0.02)
    shown = [-tick for tick in ticks[::-1]] + [0, *ticks]
    axes.set_xticks(shown, [number(tick) for tick in shown])
    return on.done("MEXA on held-out verses − on verses in pretraining (share of hits)")
