"""The five lenses side by side: models, layers, languages, pairs of languages, claims.

Tables have ``lens`` (what is measured), ``score``, ``low``, ``high`` (95 %), shares in [0, 1].
"""

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from shared import probe_setups
from shared.abx_tables import at_last, ends, layer_contrasts
from shared.lenses import Inference
from shared.mexa_tables import language_families, language_scripts, task_scores
from shared.pair_regressions import held_out, with_language
from xlx.experiment.grids import groups_of
from xlx.experiment.mexa_scores import Coverage, mean_subwords, measure_coverage
from xlx.experiment.probing import cross_lingual, probe_topics
from xlx.experiment.scoring import BagOfSubwords, Subject, subject_scores
from xlx.measures import igap, mixing, statistics
from xlx.measures.abx import PairScores
from xlx.plots.panels import across
from xlx.plots.primitives import Cells, Lanes, heatmap, lanes
from xlx.plots.style import ZERO, styled
from xlx.results.deferred import deferred
from xlx.subjects.identity import Name
from xlx.text.files import catalogue
from xlx.text.parallel import ParallelCorpus

stats = deferred("scipy.stats")

ENDS = ["score", "low", "high"]
#: Lenses by name, and whether more of it is more shared (1) or less (-1).
LENSES = {
    "LD, lowest": -1,
    "matched MD, highest": 1,
    "retrieval, highest": 1,
    "MEXA": 1,
    "topics abroad": 1,
    "inference in targets": 1,
    "drop across": -1,
    "tense abroad": 1,
}
#: What a text alone says of a language, and what the model's states add.
SURFACE, ALIGNED = ("bag", "subwords", "Latin"), "MEXA"
#: Lenses of which less is no sign of more: an untrained network has least.
NO_QUALITY = ("LD, lowest", "drop across")
#: How a claim ends.
HELD, PART, FAILED, OPEN = "held", "held in part", "not held", "cannot be told"


# --- models ---------------------------------------------------------------------------------------


def over_families(table: pd.DataFrame, value: str, least: float = 0) -> list[float]:
    """The mean over languages and its interval over their families, cut at ``least`` and 1."""
    families = language_families(list(table["language"]))
    ends = statistics.mean_interval(table[value].to_numpy(), table["language"].map(families))
    return np.clip(ends, least, 1).tolist()


def abx_rows(layers: pd.DataFrame) -> pd.DataFrame:
    """LD where it is lowest, matched MD and retrieval where highest (`lenses.by_layer`)."""
    best = {
        "LD": ("LD, lowest", "idxmin"),
        "MD, like length": ("matched MD, highest", "idxmax"),
        "retrieval": ("retrieval, highest", "idxmax"),
    }
    rows = []
    for (subject, task), rows_of_task in layers.groupby(["subject", "task"], sort=False):
        name, way = best[task]
        rows.append((subject, name, *rows_of_task.loc[getattr(rows_of_task["score"], way)(), ENDS]))
    return pd.DataFrame(rows, columns=["model", "lens", *ENDS])


def coverages(
    subjects: Mapping[str, tuple[Subject | Name, str]], text: ParallelCorpus
) -> dict[str, Coverage]:
    """MEXA of each subject (and its pooling) with English."""
    return {
        name: next(iter(measure_coverage(subject, text, poolings=[pooling]).values()))
        for name, (subject, pooling) in subjects.items()
    }


def mexa_rows(covered: Mapping[str, Coverage]) -> pd.DataFrame:
    """Mean μ over languages at the layer where it is highest."""
    rows = []
    for name, coverage in covered.items():
        mu = coverage.scores.mu
        best = int(np.nanargmax(np.nanmean(mu, axis=1)))
        table = pd.DataFrame({"language": coverage.scores.languages, "mu": mu[best]})
        rows.append((name, "MEXA", *over_families(table, "mu")))
    return pd.DataFrame(rows, columns=["model", "lens", *ENDS])


def topics(subjects: Mapping[str, Name], text: ParallelCorpus) -> dict[str, pd.DataFrame]:
    """Topic probes learnt in English, read in all languages of a text (`probing.probe_topics`)."""
    files = catalogue("labelled")
    codes = files.loc[files["task"] == "TOPIC", "language"]
    codes = codes[codes.isin(text.languages)]
    return {x: probe_topics([name], codes, seeds=range(3)) for x, name in subjects.items()}


def topic_scores(table: pd.DataFrame) -> pd.DataFrame:
    """Accuracy by language but English, at the layer that is best in English; raw states."""
    scores = task_scores(table, centred=False)
    return scores[scores["language"] != "en"]


def topic_rows(probed: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Mean accuracy over languages other than English."""
    rows = [
        (name, "topics abroad", *over_families(topic_scores(table), "score"))
        for name, table in probed.items()
    ]
    return pd.DataFrame(rows, columns=["model", "lens", *ENDS])


def inference_rows(asked: Mapping[str, Inference]) -> pd.DataFrame:
    """Accuracy in the mean of targets on the whole test part, and the drop within − across."""
    tables = []
    for name, inference in asked.items():
        whole = inference.runs()
        gold = inference.whole[inference.source]
        right = np.array(
            [
                [
                    run.predictions[x][-1] == gold.labels
                    for x in inference.languages
                    if x != inference.source
                ]
                for run in whole
            ]
        ).mean(axis=1, keepdims=True)
        means = mixing.averages(right, groups_of(gold))
        tables.append(means.assign(model=name, lens="inference in targets"))
        drop = inference.summary().query("language == 'mean' and setting == 'drop'")
        tables.append(drop[ENDS].assign(model=name, lens="drop across"))
    return pd.concat(tables)[["model", "lens", *ENDS]]


def tense_rows(means: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """A probe read in other languages at its best layer (`lenses.probed`); ``names``: its own."""
    best = means.loc[means.groupby("subject", sort=False)["accuracy"].idxmax()]
    best = best[best["subject"].isin(names)].assign(lens="tense abroad")
    best = best.assign(model=best["subject"].map(names), score=best["accuracy"])
    return best[["model", "lens", *ENDS]]


def agreement(table: pd.DataFrame, guesses: Mapping[str, float] | None = None) -> pd.DataFrame:
    """How often two lenses order two models alike, where both tell them apart (95 %).

    One row per pair of lenses: ``agree`` of ``of`` pairs of models, both lenses' intervals being
    apart. ``guesses``: lens → the score of a guess; two models both below it have no order there.
    """
    guesses = guesses or {}
    wide = {lens: rows.set_index("model")[ENDS] for lens, rows in table.groupby("lens", sort=False)}
    rows = []
    for first, other in combinations([x for x in LENSES if x in wide], 2):
        both = wide[first].index.intersection(wide[other].index)
        signs = np.array(
            [
                [
                    _order(wide[lens].loc[a], wide[lens].loc[b], guesses.get(lens, -np.inf))
                    * LENSES[lens]
                    for lens in (first, other)
                ]
                for a, b in combinations(both, 2)
            ]
        ).reshape(-1, 2)
        sided = signs[(signs != 0).all(axis=1)]
        rows.append((first, other, int((sided[:, 0] == sided[:, 1]).sum()), len(sided)))
    return pd.DataFrame(rows, columns=["lens", "other", "agree", "of"])


def _order(a: pd.Series, b: pd.Series, guess: float = -np.inf) -> int:
    """1 where the first is above the second, -1 below, 0 where their intervals meet.

    0 also where the intervals of both end below ``guess``.
    """
    if max(a["high"], b["high"]) < guess:
        return 0
    return int(a["low"] > b["high"]) - int(a["high"] < b["low"])


# --- layers ---------------------------------------------------------------------------------------


def layer_rows(model: str, layers: pd.DataFrame, **others: pd.Series) -> pd.DataFrame:
    """Scores of a model by layer: of `lenses.by_layer`, and more, each a series by layer.

    LD is turned round, 1 - LD, so that more is more shared in all rows.
    """
    of_model = layers[layers["subject"] == model]
    rows = {
        task: part.set_index("layer")["score"]
        for task, part in of_model.groupby("task", sort=False)
    }
    rows = {
        "1 − LD": 1 - rows["LD"],
        "matched MD": rows["MD, like length"],
        "retrieval": rows["retrieval"],
    } | others
    table = pd.concat(rows, names=["measure"]).rename("score").reset_index()
    spread = table.groupby("measure")["score"]
    least, most = spread.transform("min"), spread.transform("max")
    return table.assign(
        model=model,
        scaled=(table["score"] - least) / (most - least),
        written=np.where(table["score"] == most, table["score"].map("{:.2f}".format), ""),
    )


def with_depth(table: pd.DataFrame, outcome: str) -> pd.DataFrame:
    """Rank correlation over layers of each measure with ``outcome``; and given the layer itself.

    One row per model and measure: ``r``, ``depth`` (r of the layer's number with the outcome),
    ``given depth``. Layers are few and neighbours alike, so there is no interval.
    """
    rows = []
    for model, part in table.groupby("model", sort=False):
        wide = part.pivot(index="layer", columns="measure", values="score").rank()
        if outcome not in wide:
            continue
        depth = pd.Series(wide.index, wide.index).rank()
        rest = wide.apply(lambda x, depth=depth: x - np.polyval(np.polyfit(depth, x, 1), depth))
        rest = rest * np.where(rest.abs().max() > 1e-9, 1, np.nan)  # rounding is no rank
        rows += [
            (
                model,
                name,
                wide[name].corr(wide[outcome]),
                depth.corr(wide[outcome]),
                rest[name].corr(rest[outcome]),
            )
            for name in part["measure"].unique()
            if name != outcome
        ]
    columns = ["model", "measure", "r", "depth", "given depth"]
    return pd.DataFrame(rows, columns=columns)


def pos_abroad(model: str, seed: int) -> pd.DataFrame:
    """POS probes read in other languages: ``source``, ``target``, ``layer``, ``accuracy``."""
    sizes = ({}, {}, {})
    probes = {"n_seeds": 6, "subword": "mean", "form": "concatenated", "hidden": None}
    made = probe_setups.setups({"POS": None}, sizes, {}, seed=seed, **probes)
    codes = probe_setups.task_languages(made, None, "CL", probe_setups.TRANSFERRED)["POS"]
    table = cross_lingual(model, made["POS"], None)
    table = table[table[["source", "target"]].isin(codes).all(axis=1)]
    table = table[table["source"] != table["target"]]
    keys = ["source", "target", "layer"]
    return table.groupby(keys, sort=False)["accuracy"].mean().reset_index()


# --- languages and pairs --------------------------------------------------------------------------


def language_predictors(model: str, text: ParallelCorpus, covered: Coverage) -> pd.DataFrame:
    """What may predict a language, a row each: text alone (`SURFACE`), and the model's MEXA.

    ``bag``: μ of the model's subwords; ``subwords``: log of their number, less that in English;
    ``Latin``: the script; ``MEXA``: μ, mean over layers; ``family``.
    """
    bag = next(iter(measure_coverage(BagOfSubwords(model), text, poolings=["mean"]).values()))
    counts = np.log(mean_subwords(model, text))
    codes, scripts = list(covered.scores.languages), language_scripts("flores200-100")
    of_bag = dict(zip(bag.scores.languages, bag.scores.mu[0], strict=True))
    return pd.DataFrame(
        {
            "language": codes,
            "family": [language_families([x])[x] for x in codes],
            "bag": [of_bag[x] for x in codes],
            "subwords": [counts[x] - counts["en"] for x in codes],
            "Latin": [float(scripts[x] == "Latn") for x in codes],
            ALIGNED: np.nanmean(covered.scores.mu, axis=0),
        }
    )


def predicted(
    table: pd.DataFrame, outcome: str, readings: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """An outcome by language from predictors: r of each single one, R² on families held out.

    One row per reading: ``r``, ``low``, ``high`` (over families; of several predictors none)
    and ``held out``: 1 - errors / spread, each family predicted from all others.
    """
    families = [(table["family"] == x).to_numpy() for x in table["family"].unique()]
    rows = []
    for name, terms in readings.items():
        ends, varied = (np.nan,) * 3, [x for x in terms if table[x].nunique() > 1]
        if len(terms) == 1 and table[terms[0]].nunique() > 1:
            r = statistics.correlation(table, terms[0], outcome, languages=("family",))
            ends = r.value, r.low, r.high
        rows.append((name, *ends, held_out(table, outcome, varied, families), len(table)))
    return pd.DataFrame(rows, columns=["predictor", "r", "low", "high", "held out", "n"])


def pair_table(
    outcome: pd.DataFrame,
    subjects: Mapping[str, Subject | Name],
    text: ParallelCorpus,
    measures: Sequence[str],
) -> pd.DataFrame:
    """An outcome of ordered pairs (``source``, ``target``, ``score``) beside scores of the pair.

    One column per measure and subject ("MD", "bag MD"), mean over layers and both directions.
    """
    for name, subject in subjects.items():
        (scored,) = subject_scores([subject], text, measures)
        table = scored.table()
        both = np.sort(table[["language_1", "language_2"]].to_numpy(), axis=1)
        keys = [both[:, 0], both[:, 1], table["task"].to_numpy()]
        means = table["score"].groupby(keys).mean().unstack().add_prefix(name)
        ends = np.sort(outcome[["source", "target"]].to_numpy(), axis=1)
        there = means.reindex(pd.MultiIndex.from_arrays(ends.T))
        outcome = outcome.assign(**{x: there[x].to_numpy() for x in there})
    return outcome.dropna().reset_index(drop=True)


def pair_readings(table: pd.DataFrame, readings: Mapping[str, Sequence[str]]) -> pd.Series:
    """R² of pairs with a language, predicted from all others (`held_out`)."""
    return pd.Series(
        {
            name: held_out(table, "score", terms, with_language(table))
            for name, terms in readings.items()
        }
    )


# --- claims ---------------------------------------------------------------------------------------


def judged(rows: Sequence[tuple[str, str, str, Sequence[float]]]) -> pd.DataFrame:
    """Claims with their numbers: a row each of (paper, claim, on what, (value, low, high)).

    A claim holds where its interval is above zero.
    """
    table = pd.DataFrame(
        [(paper, claim, on, *ends) for paper, claim, on, ends in rows],
        columns=["paper", "claim", "on", *ENDS],
    )
    holds = np.where(table["low"] > 0, HELD, np.where(table["high"] < 0, FAILED, OPEN))
    return table.assign(verdict=holds)


def by_claim(table: pd.DataFrame) -> pd.DataFrame:
    """One verdict per claim: `PART` where subjects differ; the numbers of all as text."""
    rows = {}
    for key, part in table.groupby(["paper", "claim"], sort=False):
        verdicts = set(part["verdict"])
        numbers = "; ".join(
            f"{x.on} {x.score:+.2f} ({x.low:+.2f} to {x.high:+.2f})" for x in part.itertuples()
        )
        rows[key] = {"verdict": verdicts.pop() if len(verdicts) == 1 else PART, "number": numbers}
    return pd.DataFrame(rows).T.rename_axis(["paper", "claim"])


def between(values: np.ndarray) -> list[float]:
    """The mean of paired differences, an observation each, with its interval (Student's t)."""
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return [values.mean(), values.mean() - half, values.mean() + half]


def abx_claims(scores: Mapping[str, PairScores]) -> list[tuple]:
    """What the ABX paper says of layers (`abx_tables.layer_contrasts`)."""
    claims = {
        "LD falls to the middle layers": "LD: first layer above the middle",
        "LD rises in the last layer": "LD: last layer above the one before",
        "meaning rises to the middle layers": "MD, like length: middle above the embeddings",
    }
    return [
        ("ABX", claim, name, [*ends(layer_contrasts(scored)[contrast]).values()])
        for claim, contrast in claims.items()
        for name, scored in scores.items()
    ]


def correlated(
    tables: Mapping[str, pd.DataFrame],
    x: str,
    given: Sequence[str],
    sign: int = 1,
    **options: object,
) -> dict[str, list[float]]:
    """Correlation of ``x`` with ``score`` in each table, with ``given`` held; times ``sign``."""
    by_model = {}
    for name, table in tables.items():
        held = [term for term in given if table[term].nunique() > 1]
        r = statistics.correlation(table, x, "score", given=held, **options)
        by_model[name] = sorted([sign * r.low, sign * r.value, sign * r.high])
        low, value, high = by_model[name]
        by_model[name] = [value, low, high]
    return by_model


def claims_of_pairs(table: pd.DataFrame) -> list[tuple]:
    """ABX, section 5.3: parts of speech cross worse where LD is high; beside a bag of subwords."""
    given = {"the encoder": (), "the same, given its bag": ("bag LD",)}
    return [
        (
            "ABX",
            "a probe crosses better where LD is low",
            on,
            correlated({on: table}, "LD", held, -1, languages=("source", "target"))[on],
        )
        for on, held in given.items()
    ]


def claims_of_tasks(
    tasks: Mapping[str, pd.DataFrame], covered: Mapping[str, Coverage], models: Sequence[str]
) -> list[tuple]:
    """MEXA: it goes with a task, beyond what text alone tells; and it is lost in the last layer."""
    claims = {"alignment goes with a task": (), "so it does, given bag, subwords, script": SURFACE}
    rows = [
        ("MEXA", claim, on, interval)
        for claim, given in claims.items()
        for on, interval in correlated(tasks, ALIGNED, given, languages=("family",)).items()
    ]
    for name in models:
        mu = covered[name].scores.mu
        languages = covered[name].scores.languages
        best = int(np.nanargmax(np.nanmean(mu, axis=1)))
        lost = pd.DataFrame({"language": languages, "lost": mu[best] - mu[-1]})
        rows.append(("MEXA", "alignment is lost at the end", name, over_families(lost, "lost", -1)))
    return rows


def first_and_last(gaps: pd.DataFrame) -> pd.DataFrame:
    """IGAP of each model at its first and last step, mean over targets: ``model, step, igap``."""
    means = gaps.groupby(["model", "step"], sort=False)["igap"].mean().reset_index()
    return means.sort_values("step").groupby("model", sort=False).nth([0, -1])


def claims_of_gaps(
    lost: pd.DataFrame, gaps: pd.DataFrame, translations: str, alone: str
) -> list[tuple]:
    """IGAP: some of what is learnt does not cross; a contrast of translations makes it cross."""
    last = at_last(gaps, "step")
    wide = last.pivot(index="target", columns="model", values="igap")
    value = lost.loc[igap.MEAN_TARGET, ["value", "low", "high"]].tolist()
    return [
        ("IGAP", "some of what is learnt does not cross", "XNLI, encoder", value),
        (
            "IGAP",
            "a contrast of translations narrows the gap",
            f"{alone} less {translations}",
            between((wide[alone] - wide[translations]).to_numpy()),
        ),
    ]


def claims_of_mixing(encoder: Inference) -> list[tuple]:
    """Within/across: accuracy drops. Hypotheses alone cannot drop in the mean, by construction.

    Of models that read several languages: one of English alone has no part in it.
    """
    drop = encoder.summary().query("language == 'mean' and setting == 'drop'")[ENDS]
    return [("within/across", "accuracy drops across languages", encoder.model, [*drop.iloc[0]])]


def claims_of_probes(probes: Mapping[str, pd.DataFrame], names: Mapping[str, str]) -> list[tuple]:
    """X-Probe: a trained model above its untrained twin (model → twin), at home and abroad."""
    rows = []
    for read, means in probes.items():
        best = means.loc[means.groupby("subject", sort=False)["accuracy"].idxmax()]
        best = best.set_index("subject")
        for model, twin in names.items():
            more = best.loc[model, "accuracy"] - best.loc[twin, "accuracy"]
            # both halves are of Student's intervals, and languages are the same: too wide
            half = np.hypot(*(best.loc[x, "high"] - best.loc[x, "accuracy"] for x in (model, twin)))
            claim = f"a probe {read} reads more than from a twin"
            rows.append(("X-Probe", claim, model, [more, more - half, more + half]))
    return rows


# --- figures --------------------------------------------------------------------------------------


@styled
def layer_maps(table: pd.DataFrame) -> Figure:
    """Where each measure is high: one panel per model, one row per measure, one column per layer.

    Colours go from the measure's lowest layer to its highest, whose score is written.
    """
    style = Cells(
        bar="from its lowest layer (dark) to its highest (bright)",
        sharex=False,
        sharey=False,
        cell=(0.36, 0.24),
        wrap=1,
    )
    on = heatmap(table, "layer", "measure", "scaled", col="model", style=style)
    return on.done("layer (0: embeddings)", "")


#: What `predictor_lanes` calls the predictors.
PREDICTORS = {
    "bag": "subwords shared with English",
    "subwords": "subwords per sentence (few is good)",
    "Latin": "Latin script",
    "MEXA": "MEXA",
}


@styled
def predictor_lanes(table: pd.DataFrame) -> Figure:
    """Correlation over languages of each predictor with what a model does there (``outcome``)."""
    style = Lanes(width=5.6, lane=0.12, labels=PREDICTORS)
    on = lanes(table, "r", "outcome", hue="predictor", style=style)
    across(on, 0, **ZERO, zorder=2)
    for axes in on.axes.values():
        axes.set_xlim(-1.02, 1.02)
    return on.done("correlation over languages of a predictor with the score of the task")
