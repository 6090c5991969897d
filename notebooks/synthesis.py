"""What a cheap lens says of a dear one: languages, lines between models, models; and all claims.

Tables have ``lens`` (what is measured), ``score``, ``low``, ``high`` (95 %), shares in [0, 1].
"""

from collections.abc import Mapping, Sequence
from itertools import combinations, product

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from printed.abx_claims import AbxNumbers
from printed.evaluator import SENTENCE
from printed.igap_claims import IgapTables
from printed.mexa_claims import MexaTables
from printed.mixing_claims import PrintedScores
from printed.xprobe_claims import PrintedTables
from shared import probe_setups
from shared.abx_tables import ends, layer_contrasts
from shared.lenses import Inference
from shared.mexa_tables import language_families, language_scripts, task_scores
from shared.pair_regressions import held_out, unseen_share
from shared.shown import asking, with_interval
from xlx.experiment.grids import groups_of
from xlx.experiment.mexa_scores import Coverage, mean_subwords, measure_coverage
from xlx.experiment.probing import cross_lingual, probe_topics
from xlx.experiment.scoring import Subject
from xlx.measures import mixing, statistics
from xlx.measures.abx import PairScores
from xlx.plots.panels import across
from xlx.plots.primitives import curves, lanes, scatter
from xlx.plots.style import MODELS, ZERO, look, looks, styled
from xlx.subjects.identity import Name
from xlx.text.files import catalogue
from xlx.text.parallel import ParallelCorpus

ENDS = ["score", "low", "high"]
#: The first lenses compare vectors of translations, whatever the formula.
SIMILARITY = "similarity"
#: Lenses by name: whether more of it is more shared (1) or less (-1), and what data it reads.
LENSES = {
    "LD, lowest": (-1, SIMILARITY),
    "matched MD, highest": (1, SIMILARITY),
    "retrieval, highest": (1, SIMILARITY),
    "MEXA": (1, SIMILARITY),
    "topics abroad": (1, "topics"),
    "inference in targets": (1, "inference"),
    "drop across": (-1, "inference"),
    "tense abroad": (1, "tense"),
}
#: What a text alone says of a language, and what the model's states add.
SURFACE, ALIGNED = ("bag", "subwords", "Latin"), "MEXA"
#: Lenses of which less is no sign of more: an untrained network has least.
NO_QUALITY = ("LD, lowest", "drop across")
#: How a claim ends, against the direction that the paper gives: what fails first.
VERDICTS = ("does not hold", "holds in part", "cannot be told", "holds")
#: Papers and what audits their printed claims.
PAPERS = {
    "ABX": AbxNumbers,
    "MEXA": MexaTables,
    "IGAP": IgapTables,
    "within/across": PrintedScores,
    "X-Probe": PrintedTables,
}
#: How often languages are permuted, families drawn.
N_PERMUTED = 1000


# --- models ---------------------------------------------------------------------------------------


def over_families(table: pd.DataFrame, value: str) -> list[float]:
    """The mean over languages and its interval over their families, cut at 0 and 1."""
    families = language_families(list(table["language"]))
    ends = statistics.mean_interval(table[value].to_numpy(), table["language"].map(families))
    return np.clip(ends, 0, 1).tolist()


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
    table = probe_topics([*subjects.values()], codes, seeds=range(3))
    of_subjects = table.groupby(["model", "checkpoint"], sort=False)
    return {x: part for x, (_, part) in zip(subjects, of_subjects, strict=True)}


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
        gold = inference.whole[inference.source]
        others = [x != inference.source for x in inference.languages]
        right = inference.right_whole[:, others].mean(axis=1, keepdims=True)
        means = mixing.averages(right, groups_of(gold))
        tables.append(means.assign(model=name, lens="inference in targets"))
        drop = inference.summary.query("language == 'mean' and setting == 'drop'")
        tables.append(drop[ENDS].assign(model=name, lens="drop across"))
    return pd.concat(tables)[["model", "lens", *ENDS]]


def tense_rows(means: pd.DataFrame, names: Mapping[str, str]) -> pd.DataFrame:
    """A probe read in other languages at its best layer (`lenses.probed`); ``names``: its own."""
    best = means.loc[means.groupby("subject", sort=False)["accuracy"].idxmax()]
    best = best[best["subject"].isin(names)].assign(lens="tense abroad")
    best = best.assign(model=best["subject"].map(names), score=best["accuracy"])
    return best[["model", "lens", *ENDS]]


def comparisons(table: pd.DataFrame, guesses: Mapping[str, float] | None = None) -> pd.DataFrame:
    """Two models by two lenses that both tell them apart (95 %): do both order them alike?

    A row per pair of models (``model``, ``other``) and of lenses (``lens``, ``beside``): ``alike``;
    ``apart``, whether the lenses read different data. ``guesses``: lens → the score of a guess; two
    models both below it have no order there.
    """
    rows = []
    for lens, part in table.sort_values("model").groupby("lens", sort=False):
        sign, data = LENSES[lens]
        for a, b in combinations(part.to_dict("records"), 2):
            order = int(a["low"] > b["high"]) - int(a["high"] < b["low"])
            if order and max(a["high"], b["high"]) >= (guesses or {}).get(lens, -np.inf):
                rows.append((a["model"], b["model"], lens, sign * order, data))
    pair = ["model", "other"]
    orders = pd.DataFrame(rows, columns=[*pair, "lens", "order", "data"])
    both = orders.merge(orders.rename(columns={"lens": "beside"}), on=pair)
    rank = [*LENSES].index
    both = both[both["lens"].map(rank) < both["beside"].map(rank)]
    both = both.assign(alike=both["order_x"] == both["order_y"])
    return both.assign(apart=both["data_x"] != both["data_y"])


# --- languages ------------------------------------------------------------------------------------


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


def language_predictors(
    model: str, text: ParallelCorpus, covered: Coverage, bag: Coverage
) -> pd.DataFrame:
    """What may predict a language, a row each: text alone (`SURFACE`), and the model's MEXA.

    ``bag``: μ of the model's subwords; ``subwords``: log of their number in English less that in
    the language; ``Latin``: the script; ``MEXA``: μ, mean over layers; ``family``.
    """
    counts = np.log(mean_subwords(model, text))
    codes, scripts = list(covered.scores.languages), language_scripts("flores200-100")
    of_bag = dict(zip(bag.scores.languages, bag.scores.mu[0], strict=True))
    return pd.DataFrame(
        {
            "language": codes,
            "family": [language_families([x])[x] for x in codes],
            "bag": [of_bag[x] for x in codes],
            "subwords": [counts["en"] - counts[x] for x in codes],
            "Latin": [float(scripts[x] == "Latn") for x in codes],
            ALIGNED: np.nanmean(covered.scores.mu, axis=0),
        }
    )


def predicted(
    table: pd.DataFrame, outcome: str, readings: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """An outcome by language from predictors: r of each single one, R² on families held out.

    One row per reading: ``r``, ``low``, ``high`` (over families; of several predictors none);
    ``held out``: 1 - errors / spread, each family predicted from all others; and ``p``: how often
    languages that change places have as much.
    """
    families = [(table["family"] == x).to_numpy() for x in table["family"].unique()]
    values = table[outcome].to_numpy()
    rng = np.random.default_rng(0)
    permuted = np.column_stack([rng.permutation(values) for _ in range(N_PERMUTED)])
    rows = []
    for name, terms in readings.items():
        ends, varied = (np.nan,) * 3, [x for x in terms if table[x].nunique() > 1]
        if len(terms) == 1 and varied:
            r = statistics.correlation(table, terms[0], outcome, languages=("family",))
            ends = r.value, r.low, r.high
        share = held_out(table, outcome, varied, families)
        by_chance = unseen_share(table[varied].to_numpy(dtype=float), permuted, families)
        p = (1 + (by_chance >= share).sum()) / (1 + N_PERMUTED)
        rows.append((name, *ends, share, p, len(table)))
    return pd.DataFrame(rows, columns=["predictor", "r", "low", "high", "held out", "p", "n"])


# --- claims ---------------------------------------------------------------------------------------


def judged(rows: Sequence[tuple[str, str, str, Sequence[float]]]) -> pd.DataFrame:
    """Claims with their numbers, each of (paper, claim, on what, (value, low, high)).

    The number is above zero in the direction of the paper.
    """
    columns = ["paper", "claim", "on", *ENDS]
    table = pd.DataFrame([(*names, *ends) for *names, ends in rows], columns=columns)
    verdict = np.select([table["low"] > 0, table["high"] < 0], [VERDICTS[3], VERDICTS[0]], "")
    return table.assign(verdict=np.where(verdict == "", VERDICTS[2], verdict))


def all_claims(ours: pd.DataFrame) -> pd.DataFrame:
    """All that five papers say of their numbers, by the audits, and ``ours``, what fails first.

    ``ours``: `judged`. ``verdict``, ``paper``, ``tested`` ("in print", or "here" in models of this
    repository), ``claim``, ``result``. Checks that no paper states are not among them.
    """
    here = ours.assign(
        tested="here",
        claim=ours["claim"] + " (" + ours["on"] + ")",
        result=with_interval(ours, "score", "+.2f"),
    )
    printed = [
        claims[claims["kind"] == SENTENCE].assign(paper=paper, tested="in print")
        for paper, tables in PAPERS.items()
        for claims in [tables().claims]
    ]
    table = pd.concat([*printed, here])[["verdict", "paper", "tested", "claim", "result"]]
    table["verdict"] = pd.Categorical(table["verdict"], VERDICTS, ordered=True)
    table["paper"] = pd.Categorical(table["paper"], PAPERS)
    return table.sort_values(["verdict", "tested", "paper"], kind="stable", ignore_index=True)


def beyond(ends: Sequence[float], rival: Sequence[float]) -> list[float]:
    """A value less that of a rival; on the same sentences, so the interval is too wide."""
    (value, low, high), (other, least, most) = ends, rival
    half = np.hypot(high - low, most - least) / 2
    return [value - other, value - other - half, value - other + half]


def claims_of_layers(
    scores: Mapping[str, PairScores], twins: Mapping[str, PairScores]
) -> list[tuple]:
    """What the ABX paper says of layers (`layer_contrasts`), beyond an untrained twin."""
    claims = {
        "LD falls to the middle layers": "LD: first layer above the middle",
        "LD rises in the last layer": "LD: last layer above the one before",
        "meaning rises to the middle layers": "MD, like length: middle above the embeddings",
    }
    rows = []
    for (claim, contrast), name in product(claims.items(), scores):
        both = (ends(layer_contrasts(x[name])[contrast]).values() for x in (scores, twins))
        rows.append(("ABX", claim, name, beyond(*both)))
    return rows


def claims_of_tasks(tasks: Mapping[str, pd.DataFrame]) -> list[tuple]:
    """MEXA goes with a task, beyond what text alone tells."""
    rows = []
    for name, table in tasks.items():
        given = [term for term in SURFACE if table[term].nunique() > 1]
        r = statistics.correlation(table, ALIGNED, "score", given=given, languages=("family",))
        claim = "alignment goes with topics, given the text"
        rows.append(("MEXA", claim, name, (r.value, r.low, r.high)))
    return rows


def claims_of_mixing(encoder: Inference) -> list[tuple]:
    """Within/across: accuracy drops."""
    drop = encoder.summary.query("language == 'mean' and setting == 'drop'")[ENDS]
    return [("within/across", "accuracy drops across languages", encoder.model, [*drop.iloc[0]])]


def claims_of_probes(probes: Mapping[str, pd.DataFrame], names: Mapping[str, str]) -> list[tuple]:
    """X-Probe: a trained model above its untrained twin (model → twin), at home and abroad."""
    rows = []
    for read, means in probes.items():
        best = means.loc[means.groupby("subject", sort=False)["accuracy"].idxmax()]
        best = best.set_index("subject")[["accuracy", "low", "high"]]
        for model, twin in names.items():
            claim = f"a probe {read} reads more than from a twin"
            rows.append(("X-Probe", claim, model, beyond(best.loc[model], best.loc[twin])))
    return rows


# --- figures --------------------------------------------------------------------------------------


#: What `predictor_lanes` calls the predictors.
PREDICTORS = {
    "MEXA": "MEXA",
    "bag": "subwords shared with English",
    "subwords": "few subwords a sentence",
    "Latin": "Latin script",
}


@styled
def predictor_lanes(table: pd.DataFrame) -> Figure:
    """Correlation over languages of each predictor with what a model does there."""
    shown = looks(PREDICTORS, {"bag": MODELS["bag of subwords"]})
    on = lanes(
        table, "r", "outcome", hue="predictor", width=5.6, lane=0.16, looks=shown, labels=PREDICTORS
    )
    across(on, 0, **ZERO, zorder=2)
    for axes in on.axes.values():
        axes.set_xlim(-1.02, 1.02)
    figure = on.done("correlation with the score of the task, over languages")
    return asking("What foretells how well a model does in a language?", figure)


@styled
def carried_lines(mu: pd.DataFrame, outcomes: pd.DataFrame) -> Figure:
    """What each model does against μ, a point a language, with the lines of all models.

    ``mu``, ``outcomes``: language by model.
    """
    points = pd.concat(
        pd.DataFrame({"mu": mu[name], "score": outcomes[name], "model": name, "kind": "language"})
        for name in mu
    )
    lines = pd.concat(
        pd.DataFrame({"x": [0, 1], "y": np.polyval(line, [0, 1]), "model": name})
        for name in mu
        for line in [np.polyfit(mu[name], outcomes[name], 1)]
    )
    on = scatter(
        points,
        "mu",
        "score",
        hue="kind",
        col="model",
        looks={"language": look("0.5", "o")},
        size=6,
        alpha=0.5,
        width=2.7,
        height=2.6,
        wrap=3,
    )
    bare = {name: shown | {"marker": ""} for name, shown in looks([*mu]).items()}
    labels = {name: f"line of {name}" for name in mu}
    curves(
        lines.rename(columns={"model": "line"}), "x", "y", "line", looks=bare, labels=labels, on=on
    )
    curves(
        lines,
        "x",
        "y",
        "model",
        looks={x: bare[x] | {"linewidth": 3} for x in bare},
        labels=labels,
        on=on,
    )
    for axes in on.axes.values():
        axes.set(xlim=(-0.03, 1.03), ylim=(0, 1))
    figure = on.done("MEXA score μ (share of hits)", "accuracy on topics")
    return asking("Does the line of one model fit another?", figure)
