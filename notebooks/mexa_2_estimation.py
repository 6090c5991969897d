"""Scores of MEXA against a task in other languages (Figure 1, Tables 1, 2, 5 and 6).

Correlations and regressions are over languages, of one model and task each.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

import predictions
from printed.mexa_claims import MexaTables
from shared import held_out, mexa_tables, regressions
from shared.abx_tables import AT_HAND, PAIR, scored_at_hand
from shared.mexa_tables import (
    control_scores,
    cover,
    language_families,
    language_scripts,
    language_tags,
    pooled_table,
    untrained_twins,
)
from shared.shown import asking, with_interval
from xlx.experiment import probing
from xlx.experiment.abx_scores import MATCHED
from xlx.experiment.mexa_scores import Coverage, mean_subwords
from xlx.experiment.scoring import reported_measures, subject_scores
from xlx.measures import statistics
from xlx.measures.mexa import expected
from xlx.plots.panels import parts
from xlx.plots.primitives import curves, scatter
from xlx.plots.style import VERMILION, look, styled
from xlx.results.settings import settings
from xlx.subjects import identity
from xlx.subjects.identity import Name, series_name
from xlx.text.files import catalogue
from xlx.text.parallel import ParallelCorpus

#: What a score of a text is of; correlations are of these.
POOLED = ["task", "text", "pooling", "layers"]
#: What can be had without a model's states, and is held: predictors of the task beside MEXA.
HELD = ["bag", "letters", "subwords", "latin"]
#: What is set against the task alone; the last is NaN where no twin is read.
ALONE = [*HELD, "length", "untrained"]
#: Settings that are compared: pooling of subwords, of layers.
SETTINGS = [
    ("weighted_mean, mean", "last, mean"),
    ("weighted_mean, max", "last, max"),
    ("weighted_mean, max", "weighted_mean, mean"),
    ("last, max", "last, mean"),
]
#: Measures that MEXA is compared with (5.3).
OTHER_MEASURES = ("cosine", "retrieval to pivot", "biased CKA", "RSA by ranks", "MD", "LD")
#: What stands in the table of all measures and is not compared.
_NOT_COMPARED = ("MEXA", "retrieval", "retrieval from pivot", "RSA", MATCHED)
#: The paper's nine models on the hub, by the last part of their names, and as it prints them.
PRINTED_MODELS = {
    "gemma-2-9b": "Gemma 2 9B",
    "gemma-7b": "Gemma 1 7B",
    "Llama-3.1-70B": "Llama 3.1 70B",
    "Llama-3.1-8B": "Llama 3.1 8B",
    "Meta-Llama-3-8B": "Llama 3 8B",
    "Llama-2-7b-hf": "Llama 2 7B",
    "llama-7b": "Llama 1 7B",
    "Mistral-7B-v0.3": "Mistral 0.3 7B",
    "OLMo-1.7-7B-hf": "OLMo 1.7 7B",
}
#: Layers that section 5.3 averages cosines over, of models with 28 and 32 layers.
_MIDDLE, _OF = (5, 10, 15, 20, 25), 32
#: Poolings of subwords and layers as the paper's tables write them.
PRINTED = {"weighted_mean": "weighted average", "last": "last token", "mean": "Mean", "max": "Max"}


def topic_tasks(
    models: Sequence[str], languages: Sequence[str], layer: int | str, **options: object
) -> tuple[pd.DataFrame, float]:
    """Scores of the topic probes, raw and centred, as two tasks; the share of the commonest topic.

    ``options`` as of `probe_topics`; of the languages, those that have a test. Of held-out models
    what is in the ledger: nothing is computed.
    """
    files, probed = catalogue("labelled"), []
    there = files.loc[files["task"] == "TOPIC", "language"]
    asked = there[there.isin(languages)]
    for name in models:
        probed.append(held_out.asked_of(name, probing.probe_topics, asked, **options))
    probed = pd.concat(probed, ignore_index=True)
    tasks = [
        mexa_tables.task_scores(probed, layer, centred=centred).assign(task=task)
        for task, centred in (
            (mexa_tables.TOPIC_TASK, False),
            (f"{mexa_tables.TOPIC_TASK}, centred", True),
        )
    ]
    return pd.concat(tasks, ignore_index=True), probed["majority"].mean()


# --- what else predicts the task ------------------------------------------------------------------


def covered_texts(
    ways: Mapping[Name, Sequence[str]],
    texts: Mapping[str, ParallelCorpus],
    pivot: str,
    **options: Any,
) -> tuple[pd.DataFrame, list[Coverage]]:
    """Scores pooled over layers of models (name → poolings) on texts; coverage of the first text.

    The alternatives are measured on the first text alone, and without special tokens.
    """
    tables, covered = [], []
    for title, text in texts.items():
        full = not (covered or options.get("special_tokens"))
        read = [
            coverage
            for poolings in dict.fromkeys(map(tuple, ways.values()))
            for names in [[name for name, x in ways.items() if tuple(x) == poolings]]
            for coverage in cover(names, text, pivot, poolings, alternatives=full, **options)
        ]
        covered = covered or read
        tables.append(pooled_table(read).assign(text=title))
    return pd.concat(tables, ignore_index=True), covered


def matched(scores: pd.DataFrame, tasks: pd.DataFrame) -> pd.DataFrame:
    """Raw scores beside the raw task, centred ones beside the centred."""
    joint = scores.merge(tasks, on=["model", "language"])
    return joint[(joint["states"] == "centred") == joint["task"].str.endswith(", centred")]


def without_states(
    models: Sequence[Name],
    text: ParallelCorpus,
    pivot: str,
    max_length: int | None,
    corpus: str,
    twins: Mapping[Name, str],
    special_tokens: bool = False,
) -> pd.DataFrame:
    """What stands `ALONE` beside MEXA of each language and model, raw and centred (``states``).

    ``bag``: MEXA of bags of the model's subwords; ``letters``: of `mexa_tables.LETTERS`;
    ``length``: of length alone; ``subwords``: of a sentence, as a multiple of the pivot's;
    ``latin``: 1 in Latin script; ``untrained``: highest MEXA of the ``twins`` (model → pooling).
    With the ``family``.
    """
    controls, scripts = control_scores(models, text, pivot, max_length), language_scripts(corpus)
    keys = ["model", "states", "language"]
    table = controls.pivot(index=keys, columns="control", values="mu").rename_axis(columns=None)
    options = {"max_length": max_length, "special_tokens": special_tokens}
    before = untrained_twins(twins, text, pivot, **options)
    before = pooled_table(before, ["max"]) if before else pd.DataFrame(columns=[*keys, "mu"])
    before["model"] = before["model"].str.removesuffix(mexa_tables.UNTRAINED)
    table = table.join(before.set_index(keys)["mu"].rename("untrained")).reset_index()
    pieces = pd.DataFrame(
        {
            series_name(identity.identify(name)): counts / counts[pivot]
            for name in models
            for counts in [mean_subwords(name, text, pivot, max_length)]
        }
    )
    pieces = pieces.rename_axis("language").melt(
        var_name="model", value_name="subwords", ignore_index=False
    )
    letters = mexa_tables.bag_scores(mexa_tables.bag_vectors(text), pivot)
    table["letters"] = table["language"].map(letters)
    table["latin"] = (table["language"].map(scripts).fillna("Latn") == "Latn").astype(float)
    table["family"] = table["language"].map(language_families(text.languages))
    return table.merge(pieces.reset_index(), on=["model", "language"])


def held_correlations(
    joined: pd.DataFrame, by: Sequence[str], held: Sequence[str] = HELD
) -> pd.DataFrame:
    """Correlation of ``mu`` with ``score``, and what is left of it given each of ``held``, and all.

    A row for each group of ``by`` and each ``given``: ``r``, ``low``, ``high``, ``n``, ``text``.
    Intervals are over ``family``. None of fewer than twelve languages: with four predictors
    anything fits; and none given a column without variation.
    """
    rows = []
    for key, part in joined.groupby(list(by), sort=False):
        some = [name for name in held if part[name].nunique() > 1]
        if len(part) < 12 or (part[["mu", "score"]].nunique() < 2).any():
            continue
        for name, given in {"nothing": [], **{x: [x] for x in some}, "all": some}.items():
            r = statistics.correlation(part, "mu", "score", given=given, languages=("family",))
            rows.append((*key, name, r.value, r.low, r.high, r.n))
    table = pd.DataFrame(rows, columns=[*by, "given", "r", "low", "high", "n"])
    return table.assign(text=with_interval(table, "r"))


# --- is it the model's alignment? -----------------------------------------------------------------


def across_models(
    mu: pd.DataFrame, outcomes: pd.DataFrame, families: Mapping[str, str]
) -> pd.DataFrame:
    """Does μ of a model go with what that model does, given μ of the others?

    ``mu`` and ``outcomes``: language by model. `held_correlations` of each ``model``, whose μ it
    is, with the outcome of each ``reader``, given μ of each other model, and of all others. What
    only says that languages are read by everybody goes with μ of any model. No paper asks this.
    """
    mu, outcomes = mu.dropna().align(outcomes.dropna(), "inner", axis=0)
    table = mu.assign(family=mu.index.map(families))
    parts = [
        table.assign(mu=table[model], score=outcomes[reader], model=model, reader=reader)
        # of itself nothing is left
        .assign(**{model: 0.0})
        for model, reader in product(mu, outcomes)
    ]
    return held_correlations(pd.concat(parts), ["model", "reader"], [*mu])


def of_few_languages(names: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """μ and topics by language and model, in those languages that the largest decoder reads, too.

    ``names``: models of `predictions`; a held-out one whose topics are not there is left out.
    """
    codes = [code for code in held_out.languages("few topics") if code != "en"]
    mu, topics = {}, {}
    for name in names:
        plan = held_out.plans().get(name) or held_out.Plan((predictions.EARLIER[name],))
        with settings(dtype=plan.dtype):
            aligned, read = predictions.aligned(name, plan), predictions.topics(name, codes)
        if aligned is not None and read is not None:
            mu[name], topics[name] = aligned["mu"], read
    return pd.DataFrame(mu).reindex(codes), pd.DataFrame(topics).reindex(codes)


# --- which of two goes with the task better -------------------------------------------------------


def own_leads(
    mu: pd.DataFrame, outcomes: pd.DataFrame, held: pd.DataFrame, families: pd.Series
) -> pd.DataFrame:
    """r of a model's μ with its outcome less that of rivals: other models' μ, and those `ALONE`.

    ``mu``, ``outcomes``: language by model; ``held``: of `without_states`. As
    `mexa_tables.differences_of_r`, with the ``reader``, whose outcome it is.
    """
    tables = []
    for model in outcomes:
        rivals = held[(held["model"] == model) & (held["states"] == "raw")].set_index("language")
        wide = mu.join(rivals[ALONE]).dropna(axis=1)
        pairs = [(model, x) for x in wide if x != model and wide[x].nunique() > 1]
        table = mexa_tables.differences_of_r(wide, pairs, families, outcomes[model])
        tables.append(table.assign(reader=model))
    return pd.concat(tables, ignore_index=True)


def compared(
    table: pd.DataFrame,
    by: Sequence[str],
    columns: Sequence[str],
    value: str,
    pairs: Sequence[tuple[str, str]],
) -> pd.DataFrame:
    """`mexa_tables.differences_of_r` in each group of ``by``, over languages that both have.

    ``table`` has ``language``, ``family``, ``score`` and ``columns``, which name a measure: a
    setting is called "last, max".
    """
    tables, table = [], table.assign(named=table[list(columns)].agg(", ".join, axis=1))
    for key, part in table.groupby(list(by), sort=False):
        wide = part.pivot(index="language", columns="named", values=value)
        of_language = part.drop_duplicates("language").set_index("language")
        outcome, families = of_language["score"], of_language["family"]
        for pair in ((x, y) for x, y in pairs if x in wide and y in wide):
            there = wide[[*pair]].dropna()
            if len(there) > 3:
                apart = mexa_tables.differences_of_r(there, [pair], families, outcome)
                tables.append(apart.assign(**dict(zip(by, key, strict=True))))
    return pd.concat(tables, ignore_index=True)


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


def other_measures(table: pd.DataFrame) -> list[str]:
    """`OTHER_MEASURES`, and what somebody added: of the ``measure`` of a table."""
    several = dict.fromkeys([*OTHER_MEASURES, *table["measure"]])
    return [name for name in several if name not in _NOT_COMPARED]


def pair_measures(
    names: Sequence[Name],
    text: ParallelCorpus,
    pivot: str,
    poolings: Sequence[str],
    max_length: int | None = None,
) -> pd.DataFrame:
    """As `middle_measures`, of `scoring.reported_measures`, with the pivot.

    A measure that was added is of `abx_tables.AT_HAND` where a model has no weights here.
    """
    tables = []
    for name, pooling in product(names, poolings):
        options = {"pooling": pooling, "max_length": max_length}
        (ours,) = subject_scores([name], text, reported_measures(), partial=True, **options)
        named = {"model": ours.model, "pooling": pooling, "states": "raw"}
        for scores in (ours, *scored_at_hand([ours], text, **options)):
            table = scores.table()
            layers = middle_layers(len(scores.layers) - 1)
            table = table[table["layer"].isin(layers) & (table[PAIR] == pivot).any(axis=1)]
            others = table["language_1"].where(table["language_1"] != pivot, table["language_2"])
            label = table["task"] + ("" if scores is ours else f" ({AT_HAND})")
            table = table.assign(language=others, measure=label)
            means = table.groupby(["measure", "language"], sort=False, as_index=False)
            means = means["score"].mean().rename(columns={"score": "value"})
            tables.append(means.assign(**named))
    return pd.concat(tables, ignore_index=True)


# --- from alignment to a score (5.2) --------------------------------------------------------------


def adjusted_scores(scores: pd.DataFrame, summary: pd.DataFrame, pivot: str) -> pd.DataFrame:
    """The adjusted score of each language (``expected``) beside the task's, with its interval.

    ``scores`` are of one pooling of subwords; a panel is a text and a way to pool layers.
    """
    table = scores.join(summary[pivot].rename("english"), on=["task", "model"])
    order = list(summary.index.unique("task"))
    table = table.sort_values("task", key=lambda task: task.map(order.index), kind="stable")
    width = statistics.half_width(table["stderr"].to_numpy(float))
    return table.assign(
        expected=expected(table["mu"], 1.0) * table["english"],
        low=table["score"] - width,
        high=table["score"] + width,
        panel=table["text"] + ", " + table["layers"],
    )


def estimate_lines(table: pd.DataFrame, n_choices: Mapping[str, int]) -> pd.DataFrame:
    """What is drawn in each panel of `adjusted_scores` (Figure 1).

    With k choices a guess is right once in k times while the least MEXA score is 0, so the ideal
    line goes from (0, 1/k) to (1, 1). At the point of English itself, x = s, it gives s + (1 - s) /
    k, more than s: it is an upper end, met by a perfect model only. Beside it the fitted line (not
    of fewer than three languages) and chance.
    """
    drawn = []
    for panel, part in parts(table, "panel"):
        k = n_choices.get(part["task"].iloc[0], 4)
        if len(part) > 2 and (part[["expected", "score"]].nunique() > 1).all():
            fitted = regressions.fitted_line(part, "expected", "score")
            drawn.append(fitted.assign(kind="fitted", panel=panel))
        ends = pd.DataFrame({"x": [0, part["expected"].max()], "panel": panel})
        drawn.append(ends.assign(kind="ideal", y=1 / k + (1 - 1 / k) * ends["x"]))
        drawn.append(ends.assign(kind="chance", y=1 / k))
    return pd.concat(drawn)


@styled
def estimates(table: pd.DataFrame, lines: pd.DataFrame, *, xlabel: str) -> Figure:
    """Scores of a task against those that MEXA leads to expect, one point per language (Figure 1).

    ``table`` is of `adjusted_scores`. ``lines`` has ``panel``,
    ``kind`` ("fitted", "ideal", "chance"), ``x``, ``y``, ``low``, ``high`` (missing where a line
    has no band). Scores are shares in [0, 1], and panels have one scale.
    """
    on = scatter(
        table,
        "expected",
        "score",
        col="panel",
        size=8,
        width=3.4,
        height=2.4,
        labels="a language",
        wrap=2,
        sharex=False,
    )
    curves(
        lines,
        "x",
        "y",
        hue="kind",
        looks={
            "fitted": look(VERMILION, ""),
            "ideal": look("0.2", "", "--"),
            "chance": look("0.4", "", (0, (1, 2))),
        },
        labels={
            "fitted": "fitted line, with interval",
            "ideal": "ideal: right if aligned, else a guess",
            "chance": "guessing",
        },
        on=on,
    )
    on.titles(lambda key: f"{key} of layers")
    figure = on.done(xlabel, f"share right, {table['task'].iloc[0]}")
    return asking("Does alignment tell the score in a language?", figure)


def beside_table_1(table_1: pd.DataFrame, scores: pd.DataFrame, pivot: str) -> pd.DataFrame:
    """Table 1: ours above the printed nine; their task is Belebele.

    ``scores`` are of one pooling of subwords and kind of states, ``table_1`` of one task.
    """
    ours = scores.groupby(["model", "text", "layers"])["mu"].mean().unstack(["text", "layers"])
    ours.columns = [f"{text}, {how}" for text, how in ours.columns]
    ours = table_1[[pivot, "others, mean"]].join(ours)
    printed = MexaTables().table_1.T.sort_index()
    printed.columns = printed.columns.map(" ".join)
    names = {"Task_(eng) Belebele": pivot, "Task_L\\(eng) Belebele": "others, mean"}
    names |= {
        f"{text} mu_{how.title()}": f"{text}, {how}"
        for text in ("FLORES", "Bible")
        for how in ("mean", "max")
    }
    printed = printed.rename(columns=names)[[*names.values()]].rename(
        lambda name: f"{name}, printed"
    )
    return pd.concat([ours, printed])


def beside_table_6(scores: pd.DataFrame, corpus: str) -> pd.DataFrame:
    """μ of whoever is one of the nine less what Table 6 implies: one row per model, or none.

    ``scores``: highest layer, as the paper pools. ``within``: the share of labels that are no
    further off than the 95 % interval and the two places of print.
    """
    wide, tags, rows = MexaTables().table_6, language_tags(corpus), {}
    for model, part in scores.groupby("model", sort=False):
        name = PRINTED_MODELS.get(model.split("/")[-1])
        ours = part.set_index(part["language"].map(tags))
        ours = ours[ours.index.isin(wide.index)]
        if name and len(ours):
            english = wide.loc["eng_Latn", name]
            apart = ours["mu"] - wide.loc[ours.index, name] / english
            reach = (ours["high"] - ours["low"]) / 2 + 0.005 / english
            numbers = len(ours), apart.mean(), apart.abs().max(), (apart.abs() <= reach).mean()
            rows[model] = dict(zip(("labels", "mean", "largest", "within"), numbers, strict=True))
    return pd.DataFrame.from_dict(rows, orient="index")
