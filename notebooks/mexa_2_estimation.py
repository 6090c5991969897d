"""What the notebooks of MEXA compute of estimation: scores against a task in other languages.

Correlations and regressions are over languages, of one model and task each.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from shared.mexa_tables import cover, language_tags, pooled_table, training_history
from xlx.experiment import topics
from xlx.experiment.mexa_scores import Coverage, mean_subwords, middle_layers, score_bags
from xlx.experiment.topics import bands, expected, line
from xlx.measures import regressions, statistics
from xlx.results import paths
from xlx.subjects import identity
from xlx.subjects.identity import series_name
from xlx.text import downstream, parallel
from xlx.text.files import catalogue
from xlx.text.parallel import ParallelCorpus

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
#: Poolings of subwords and layers as the paper's tables write them.
_PRINTED = {"weighted_mean": "weighted average", "last": "last token", "mean": "Mean", "max": "Max"}


def topic_tasks(
    models: Sequence[str], languages: Sequence[str], layer: int | str, **options: object
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Scores of the topic probes, raw and centred, as two tasks; and how far they are known.

    ``options`` as of `probe_topics`; of the languages, those that have a test.
    """
    files = catalogue("labelled")
    there = files.loc[files["task"] == "TOPIC", "language"]
    probed = topics.probe_topics(models, there[there.isin(languages)], **options)
    tasks, known = [], {}
    for task, centred in ((topics.TOPIC_TASK, False), (f"{topics.TOPIC_TASK}, centred", True)):
        tasks.append(topics.task_scores(probed, layer, centred=centred).assign(task=task))
        for model, value in topics.topic_reliability(probed, layer, centred=centred).items():
            known[task, model] = {"majority": probed["majority"].mean(), "reliability": value}
    return pd.concat(tasks, ignore_index=True), pd.DataFrame(known).T.rename_axis(["task", "model"])


def of_series(tasks: pd.DataFrame, models: Sequence[str], pivot: str) -> pd.DataFrame:
    """The scores of these models, under the names that tables of coverage have."""
    names = [series_name(identity.identify(name)) for name in models]
    return downstream.of_models(tasks, names, pivot)


def task_summary(tasks: pd.DataFrame, pivot: str, n_choices: Mapping[str, int]) -> pd.DataFrame:
    """Scores in the pivot and in the others, and a guess among the choices; by task and model."""
    english = tasks[tasks["language"] == pivot].set_index(["task", "model"])["score"]
    others = tasks[tasks["language"] != pivot].groupby(["task", "model"], sort=False)["score"]
    table = pd.DataFrame(
        {pivot: english, "others, mean": others.mean(), "lowest": others.min(),
         "highest": others.max()}
    ).reindex(english.index)  # fmt: skip
    return table.assign(guess=[1 / n_choices.get(task, 4) for task, _ in table.index])


# --- scores and correlations ----------------------------------------------------------------------


def pooled_scores(by_text: Mapping[str, Sequence[Coverage]]) -> pd.DataFrame:
    """Scores pooled over layers by their mean and maximum, with the name of the text."""
    tables = [pooled_table(covered).assign(text=text) for text, covered in by_text.items()]
    return pd.concat(tables, ignore_index=True)


def interval_text(table: pd.DataFrame, digits: int = 2, sign: str = "+") -> list[str]:
    """``r`` with ``low`` and ``high`` for display."""
    return [
        f"{r:{sign}.{digits}f} ({low:{sign}.{digits}f} to {high:{sign}.{digits}f})"
        for r, low, high in table[["r", "low", "high"]].to_numpy()
    ]


def correlation_table(correlations: pd.DataFrame) -> pd.DataFrame:
    """Correlations by setting and model with intervals, and the average over models (Table 5)."""
    text = correlations.assign(r=interval_text(correlations))
    table = text.pivot(index=POOLED, columns="model", values="r")
    table["average"] = correlations.groupby(POOLED)["r"].mean().map("{:+.2f}".format)
    order = correlations.drop_duplicates(POOLED)[POOLED].sort_values(POOLED[:2])
    return table.loc[pd.MultiIndex.from_frame(order), [*correlations["model"].unique(), "average"]]


def beside_table_2(correlations: pd.DataFrame) -> pd.DataFrame:
    """Averages over models beside those that the paper prints (Tables 2 and 5)."""
    printed = pd.read_csv(paths.PUBLISHED / "mexa" / "table5_correlations_per_model.csv")
    keys = ["parallel_data", "embedding", "layer_pooling"]
    printed = printed[printed["model"] == "AVG"].pivot_table(
        index=keys, columns="task", values="value", sort=False
    )
    ours = correlations.replace(_PRINTED).groupby(["text", "pooling", "layers", "task"])["r"]
    ours = ours.mean().unstack().rename_axis(index=keys)
    return pd.concat({"printed": printed, "here": ours.reindex(printed.index).round(4)}, axis=1)


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
        bag = score_bags(name, text, pivot, max_length=max_length).pooled()
        pieces = mean_subwords(name, text)
        tables.append(
            bag[["language"]].assign(
                model=series_name(identity.identify(name)),
                bag=bag["mu"],
                subwords=bag["language"].map(pieces) / pieces[pivot],
                characters=np.log1p(bag["language"].map(counts).fillna(0)),
            )
        )
    return pd.concat(tables)


def rival_correlations(rivals: pd.DataFrame, **options: int) -> pd.DataFrame:
    """Correlation of each of the `RIVALS` with the task, with its interval, as text."""
    keys, columns = ["task", "model"], {}
    for name in RIVALS:
        table = statistics.correlations(
            rivals, keys, name, "score", languages=("language",), **options
        )
        columns[name] = pd.Series(interval_text(table), pd.MultiIndex.from_frame(table[keys]))
    return pd.DataFrame(columns)


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


def significant(adds: pd.DataFrame, p: float = 0.05) -> pd.DataFrame:
    """How many regressions have p below 0.05, how many would by chance, in how many MEXA adds."""
    adds = adds.assign(low=adds["p"] < p, adds=(adds["p"] < p) & (adds["per 0.1"] > 0))
    groups = adds.groupby(["task", "text"], sort=False)
    table = groups.agg(**{"p < 0.05": ("low", "sum"), "MEXA adds": ("adds", "sum")})
    return table.assign(of=groups.size(), **{"by chance": p * groups.size()})


# --- other measures (5.3) -------------------------------------------------------------------------


def middle_measures(covered: Sequence[Coverage]) -> pd.DataFrame:
    """MEXA and the other measures, averaged over the middle layers (section 5.3)."""
    tables = []
    for coverage in covered:
        scores = coverage.scores.table().rename(columns={"mu": "value"}).assign(measure="MEXA")
        table = pd.concat([scores, coverage.measures])[["language", "layer", "measure", "value"]]
        table = table[table["layer"].isin(middle_layers(len(coverage.scores.layers) - 1))]
        means = table.groupby(["measure", "language"], sort=False, as_index=False)["value"].mean()
        tables.append(coverage.named(means))
    return pd.concat(tables, ignore_index=True)


def cosine_correlations(measures: pd.DataFrame, **options: int) -> pd.DataFrame:
    """Correlation of the cosine of translations and that of other sentences over languages."""
    keys = ["model", "pooling"]
    wide = measures.pivot(index=[*keys, "language"], columns="measure", values="value")
    table = statistics.correlations(
        wide.reset_index(), keys, "parallel_cosine", "other_cosine", languages=("language",),
        **options,
    )  # fmt: skip
    return table.assign(r=interval_text(table, 3, "")).set_index(keys)[["r"]]


def cosine_points(measures: pd.DataFrame, tasks: pd.DataFrame, pooling: str) -> pd.DataFrame:
    """Both cosines and the task of each language and model, for `plots.mexa.cosines`."""
    rows = measures[measures["pooling"] == pooling]
    wide = rows.pivot(index=["model", "language"], columns="measure", values="value").reset_index()
    wide = wide.rename(columns={"parallel_cosine": "parallel", "other_cosine": "other"})
    scores = tasks[["model", "language", "score"]]
    return wide.merge(scores, on=["model", "language"], how="left")


# --- from alignment to a score (5.2) --------------------------------------------------------------


def adjusted_scores(scores: pd.DataFrame, summary: pd.DataFrame, pivot: str) -> pd.DataFrame:
    """The adjusted score of each language beside the task's, with intervals of both.

    ``scores`` are of one pooling and text; ``written`` names the three furthest of a panel.
    """
    table = scores.join(summary[pivot].rename("english"), on=["task", "model"])
    order = list(summary.index.unique("task"))
    table = table.sort_values("task", key=lambda task: task.map(order.index), kind="stable")
    for name, column in (("expected", "mu"), ("mu_low", "low"), ("mu_high", "high")):
        table[name] = expected(table[column], table["english"])
    width = statistics.half_width(table["stderr"].to_numpy(float))
    table = table.assign(
        score_low=table["score"] - width,
        score_high=table["score"] + width,
        panel=table["model"] + ": " + table["task"],
    )
    far = table.groupby("panel")["expected"].rank(ascending=False) <= 3
    return table.assign(written=table["language"].where(far, ""))


def estimate_lines(
    table: pd.DataFrame, n_choices: Mapping[str, int], **options: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The line of each panel of `adjusted_scores`: what is drawn of it, and its numbers.

    Drawn are the fitted line (not of fewer than three languages), the ideal one and chance.
    """
    drawn, rows = [], []
    for (task, model, panel), part in table.groupby(["task", "model", "panel"], sort=False):
        share = 1 / n_choices.get(task, 4)
        if len(part) > 2 and part[["expected", "score"]].nunique().min() > 1:
            fit = line(part, n_choices=n_choices.get(task, 4), **options)
            rows.append((task, model, fit.slope, fit.intercept, fit.error, fit.ideal_slope,
                         fit.ideal_intercept, fit.ideal_error))  # fmt: skip
            fitted = regressions.fitted_line(part, "expected", "score")
            drawn.append(fitted.assign(kind="fitted", panel=panel))
        ends = pd.DataFrame({"x": [0, part["expected"].max()], "panel": panel})
        drawn.append(ends.assign(kind="ideal", y=share + (1 - share) * ends["x"]))
        drawn.append(ends.assign(kind="chance", y=share))
    columns = ["slope", "intercept", "error", "ideal slope", "ideal intercept", "ideal error"]
    fits = pd.DataFrame(rows, columns=["task", "model", *columns]).set_index(["task", "model"])
    drawn = pd.concat(drawn).reindex(columns=["panel", "kind", "x", "y", "low", "high"])
    return drawn, fits


def bands_beside_print(scores: pd.DataFrame, english: pd.Series, corpus: str) -> pd.DataFrame:
    """How many languages have an adjusted score in each band: here, and of them in Table 6."""
    ours = scores.assign(score=expected(scores["mu"], scores["model"].map(english)))
    table_6 = pd.read_csv(paths.PUBLISHED / "mexa" / "table6_flores203_adjusted_mexa.csv")
    labels = table_6["label"].replace({"swl_Latn": "swh_Latn"})
    here = scores["language"].map(language_tags(corpus))
    printed = table_6[(table_6["model"] != "AVG") & labels.isin(here)]
    printed = printed.rename(columns={"value": "score"}).assign(
        model=printed["model"] + ", printed"
    )
    table = pd.concat([ours, printed])
    table["band"] = bands(table["score"])
    return table.groupby(["model", "band"], observed=False, sort=False).size().unstack()


# --- verses read and held out (5.1) ---------------------------------------------------------------


def verse_pairs(
    models: Mapping[str, Sequence[str]],
    texts: Sequence[ParallelCorpus],
    pivot: str,
    max_length: int | None,
) -> list[tuple[str, Coverage, Coverage]]:
    """Coverage of the verses read and of those held out, of each model (→ its poolings).

    The last checkpoint ("") and, of a series that has one, step 0 (", untrained").
    """
    pairs, options = [], {"states": ["raw"], "alternatives": False}
    for name, poolings in models.items():
        history = training_history(name)
        ends = {"": history[-1] if history else name}
        if len(history) > 1 and not history[0].step:
            ends[", untrained"] = history[0]
        for when, checkpoint in ends.items():
            both = (
                cover([checkpoint], text, pivot, poolings, max_length, **options) for text in texts
            )
            pairs += [(when, read, held_out) for read, held_out in zip(*both, strict=True)]
    return pairs


def verse_differences(
    pairs: Sequence[tuple[str, Coverage, Coverage]],
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Score on verses held out less that on those read: by language, and the mean over languages.

    The interval is over verses, by the jackknife; all languages share them.
    """
    dots, rows = [], []
    for when, read, held_out in pairs:
        about = {"model": read.model + when, "pooling": read.pooling}
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


def parallel_verses(
    names: Sequence[str],
    n: int,
    seed: int,
    languages: Sequence[str],
    compared: Sequence[str] | None,
) -> tuple[ParallelCorpus, list[ParallelCorpus]]:
    """The verses read in these languages; and these and as many held out in those ``compared``."""
    read = parallel.load(names[0], drop_duplicates=True)
    read = read.select([code for code in read.languages if code in languages]).take(n, seed)
    held_out = parallel.load(names[1], read.languages, drop_duplicates=True).take(n, seed)
    codes = [code for code in read.languages if compared is None or code in compared]
    return read, [read.select(codes), held_out.select(codes)]
