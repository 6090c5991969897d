"""What was foreseen of held-out models, beside what came (``data/predictions``).

Names of quantities are those of the tables; a quantity whose results are not there yet is missing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from babel import Locale
from matplotlib.figure import Figure

from shared import document_probes, held_out, likelihood, mexa_tables
from shared.claims import beside_shifts
from shared.held_out import MODELS, Plan, stored
from shared.pair_regressions import holm
from shared.shown import asking
from shared.xprobe_tables import READERS, Reader
from synthesis import topic_scores
from xlx.experiment.abx_scores import MATCHED
from xlx.experiment.averages import Average, average
from xlx.experiment.mexa_scores import STATES, mean_subwords, measure_coverage
from xlx.experiment.probing import probe_topics
from xlx.experiment.scoring import subject_scores
from xlx.measures import statistics
from xlx.plots.primitives import Lanes, lanes
from xlx.plots.style import BLACK, BLUE, VERMILION, look, styled
from xlx.results import paths
from xlx.results.deferred import deferred
from xlx.results.settings import settings
from xlx.subjects.identity import twin_of
from xlx.text import labelled
from xlx.text.parallel import ParallelCorpus

stats = deferred("scipy.stats")

#: The ends of the intervals that were given, by how sure we were.
ENDS = {80: ("low_80", "high_80"), 95: ("low_95", "high_95")}
#: Models of before, and their poolings of MEXA; the line of a model of the same kind is frozen.
EARLIER = {
    "multilingual-e5-small": "mean",
    "gemma-3-270m": "weighted_mean",
    "all-MiniLM-L6-v2": "mean",
}
ENCODER, DECODER = [*EARLIER][:2]
TEXT = ("idf bag", "subwords", "Latin")
BY_LANGUAGE = ("mu", "topics", "bits")
#: Columns with what anyone could have said; the last was asked afterwards (`copied`).
BASELINES = ("mean_of_models", "mean_of_language", "by_subwords", "copied")
VERDICTS = ("failed", "held", "open")
#: Two sizes of one decoder, the larger first.
SIZES = ("qwen2.5-coder-1.5b-instruct", "qwen2.5-coder-0.5b-instruct")
#: Name → value, or value with the ends of its 95 % interval, or these and a p value.
Quantities = dict[str, float | tuple[float, ...]]
NO_ENDS = (np.nan, np.nan)
N_CALIBRATED, N_DRAWS = 10, 1000
#: Sentences whose bits were foreseen, where fewer are read.
N_FORESEEN = {SIZES[1]: 300}
#: Languages with a larger share of tokens that are no whole character are left out of H1 and H2.
ILLEGIBLE = 0.2


def foreseen(model: str) -> pd.DataFrame:
    """The predictions of a model, by ``id``."""
    return pd.read_csv(paths.DATA / "predictions" / f"{model}.csv").set_index("id")


# --- by language ----------------------------------------------------------------------------------


@cache
def _bags() -> dict[str, Any]:
    return mexa_tables.bag_vectors(flores())


@cache
def idf_bag() -> pd.Series:
    """μ with English by language of characters in fours, weighted over all of FLORES-200."""
    return mexa_tables.bag_scores(_bags())


@cache
def flores(codes: tuple[str, ...] | None = None) -> ParallelCorpus:
    """The first 100 sentences, in these languages or in all."""
    return mexa_tables.load_text("flores200-100", codes, None)


@cache
def alignment(model: str, pooling: str, codes: tuple[str, ...] | None) -> pd.DataFrame | None:
    """``mu`` and ``centred`` by language: MEXA with English, at the highest layer."""
    scores = stored(measure_coverage, model, flores(codes), poolings=[pooling], states=STATES)
    if scores is None:
        return None
    columns = zip(("mu", "centred"), scores.values(), strict=True)
    return pd.DataFrame(
        {name: pd.Series(x.scores.mu.max(axis=0), x.scores.languages) for name, x in columns}
    )


def named_languages(plan: Plan) -> tuple[str, ...]:
    """Those of a plan that predictions name, which are read first."""
    return tuple(x for x in flores(plan.languages).languages if x in held_out.asked().index)


def aligned(model: str, plan: Plan) -> pd.DataFrame | None:
    """`alignment` in the languages of a plan, or else in `named_languages`."""
    whole = alignment(model, plan.poolings[0], plan.languages)
    return alignment(model, plan.poolings[0], named_languages(plan)) if whole is None else whole


def topics(model: str, codes: Sequence[str]) -> pd.Series | None:
    """Accuracy of topics by language, of probes that learnt in English: in all, or in some."""
    few = [code for code in codes if code in held_out.languages("few topics")]
    probed = stored(probe_topics, [model], codes, seeds=range(3))
    if probed is None:
        probed = stored(probe_topics, [model], few, seeds=range(3))
    return None if probed is None else topic_scores(probed).set_index("language")["score"]


def by_language(model: str, plan: Plan) -> pd.DataFrame:
    """What is there of a model by language: outcomes, rivals of text, other models' μ, ``family``.

    ``mu``, ``centred``, ``topics``, ``bits``; `TEXT`; "mu of ..."; NaN where it was not asked.
    """
    text = flores(plan.languages)
    codes = [code for code in text.languages if code != "en"]
    scripts = mexa_tables.language_scripts("flores200-100")
    parts = {"idf bag": idf_bag(), "topics": topics(model, plan.topics or text.languages)}
    parts |= {"bits": bits_a_sentence(model, plan)} if plan.n_bits else {}
    counts = stored(mean_subwords, model, text)
    parts["subwords"] = None if counts is None else np.log(counts / counts["en"])
    parts["Latin"] = pd.Series({code: float(scripts[code] == "Latn") for code in codes})
    shares = stored(held_out.illegible_tokens, [model], text)
    if shares is not None:
        parts["illegible"] = shares[0].set_index("language")["share"]
    scores = aligned(model, plan)
    parts |= {} if scores is None else dict(scores.items())
    for name, pooling in EARLIER.items():
        with settings(dtype="float32"):
            parts[f"mu of {name}"] = alignment(name, pooling, None)["mu"]
    for name in (x for x in MODELS if x != model):
        other = held_out.plans()[name]
        with settings(dtype=other.dtype):
            scores = aligned(name, other)
        parts[f"mu of {name}"] = None if scores is None else scores["mu"]
    table = pd.DataFrame({name: x for name, x in parts.items() if x is not None}).loc[codes]
    return table.assign(family=mexa_tables.language_families(codes))


def bits_a_sentence(model: str, plan: Plan) -> pd.Series | None:
    """Mean bits of a sentence of WMT24++ by language, of the sentences that were foreseen.

    Where fewer are read, it is their bits a character, times the characters of those foreseen.
    """
    read = held_out.sentences(plan)
    whole = held_out.sentences(replace(plan, n_bits=N_FORESEEN.get(model, plan.n_bits)))
    answers = {code: stored(likelihood.bits, model, texts) for code, texts in read.items()}
    if any(x is None for x in answers.values()):
        return None
    of_characters = {
        code: answers[code]["bits"].sum() / sum(map(len, texts.following[0]))
        for code, texts in read.items()
    }
    sizes = {code: np.mean([*map(len, texts.following[0])]) for code, texts in whole.items()}
    return pd.Series(of_characters) * pd.Series(sizes)


def of_languages(model: str, plan: Plan) -> Quantities:
    """Scores by language, their means, and what H1 and H2 say of them."""
    table, values = by_language(model, plan), {}
    for name in BY_LANGUAGE:
        if name in table:
            values |= {f"{name} {code}": x for code, x in table[name].dropna().items()}
    if "bits" in table:
        values["bits en"] = bits_a_sentence(model, plan)["en"]
    if "topics" in table and (plan.topics or table["topics"].notna().all()):
        values["topics mean"] = table["topics"].mean()
    if "mu" in table and table["mu"].notna().all():
        values["mu mean"] = table["mu"].mean()
        values["mu centred mean"] = table["centred"].mean()
        values["mu above idf bag"] = (table["mu"] > table["idf bag"]).mean()
    for outcome in {"topics", "bits"} & {*table} if "mu" in table else ():
        rows = table[~(table["illegible"] > ILLEGIBLE)].dropna(subset=["mu", outcome])
        others = [x for x in rows if x.startswith("mu of") and rows[x].notna().all()]
        r = _correlation(rows, "mu", outcome)
        rest = _correlation(rows, "mu", outcome, given=others)
        values[f"r mu {outcome}"] = r.value, r.low, r.high
        values[f"partial r mu {outcome}"] = rest.value, rest.low, rest.high
        if outcome == "topics":
            rivals = [abs(_correlation(rows, x, outcome).value) for x in TEXT if x in rows]
            values["r mu topics, low, less best of text"] = r.low - max(rivals)
            like = DECODER if "last" in plan.poolings else ENCODER
            values["slope of frozen line"] = frozen_slope(rows, like)
            values["R2 of ten languages"] = calibrated(rows)
    return values


def _correlation(rows: pd.DataFrame, x: str, y: str, **options: Any) -> statistics.Correlation:
    return statistics.correlation(rows, x, y, languages=("family",), **options)


def frozen_slope(rows: pd.DataFrame, earlier: str) -> float:
    """Slope of true topics on those that the line of an earlier model gives, as it is."""
    line = np.polyfit(*of_earlier(earlier).dropna()[["mu", "topics"]].to_numpy().T, 1)
    return float(np.polyfit(np.polyval(line, rows["mu"]), rows["topics"], 1)[0])


def of_earlier(model: str) -> pd.DataFrame:
    """What an earlier model has by language: ``topics`` and ``mu``."""
    with settings(dtype="float32"):
        table = pd.DataFrame({"topics": topics(model, flores().languages)})
        return table.assign(mu=alignment(model, EARLIER[model], None)["mu"])


def calibrated(rows: pd.DataFrame) -> float:
    """Median R² on the other languages of a line that ten drawn languages give.

    R² is 1 - errors / those of the mean of the ten.
    """
    rng, values = np.random.default_rng(0), rows[["mu", "topics"]].to_numpy()
    scores = []
    for _ in range(N_DRAWS):
        drawn = np.isin(
            np.arange(len(values)), rng.choice(len(values), N_CALIBRATED, replace=False)
        )
        (x, y), (mu, true) = values[drawn].T, values[~drawn].T
        if np.ptp(x) > 0:
            errors = true - np.polyval(np.polyfit(x, y, 1), mu)
            scores.append(1 - (errors**2).sum() / ((true - y.mean()) ** 2).sum())
    return float(np.median(scores))


# --- layers, pivots -------------------------------------------------------------------------------


def of_layers(model: str, _: Plan) -> Quantities:
    """LD where it is lowest, matched MD and retrieval where they are highest; the twin's LD.

    A twin and its model are compared in the few languages that twins are asked in.
    """
    trained, _, again, twin = held_out.controlled(model)
    if trained is None:
        return {}
    ld, md, retrieval = (average(trained, x, by=["layer"]) for x in ("LD", MATCHED, "retrieval"))
    peak = int(md.score.argmax())
    values = {
        "LD lowest": ld.score.min(),
        "matched MD highest": md.score.max(),
        "matched MD peak": peak / (len(md.score) - 1),
        "matched MD last": md.score[-1],
        "retrieval highest": retrieval.score.max(),
    }
    values["matched MD peak, H5"] = values["matched MD peak"]
    values["matched MD fall to the end"] = _at(md, peak, md, -1)
    if twin is not None and again is not None:
        random, ld = (average(x, "LD", by=["layer"]) for x in (twin, again))
        values["LD lowest, twin"] = random.score.min()
        lowest = random.score.argmin(), ld, ld.score.argmin()
        values["LD lowest, twin less trained"] = _at(random, *lowest)
    return values


def of_probed_layers(model: str, plan: Plan) -> Quantities:
    """Partial r over layers of MEXA, LD and MD with probes read abroad, depth given (H3).

    Each is the mean over pairs of English and the languages of `document_probes`.
    """
    probed = stored(document_probes.document_probes, model, document_probes.document_tasks(), True)
    options = {"poolings": plan.poolings[:1], "states": STATES}
    texts = map(flores, (plan.languages, named_languages(plan)))
    read = (stored(measure_coverage, model, text, **options) for text in texts)
    scores = next(filter(None, read), None)
    if probed is None or scores is None:
        return {}
    there = [code for code in document_probes.LANGUAGES if code != "en"]
    mu = next(iter(scores.values())).scores
    lenses = {"MEXA": pd.DataFrame(mu.mu, columns=mu.languages)[there].mean(axis=1)}
    if (trained := held_out.controlled(model)[0]) is not None:
        pairs = trained.table().query("language_1 == 'en' and language_2 in @there")
        by_layer = pairs.groupby(["task", "layer"])["score"].mean()
        lenses |= {name: by_layer[name] for name in ("LD", "MD")}
    values: Quantities = {}
    abroad = probed[0].query("source == 'en' and target != 'en'")
    courses = abroad.groupby(["task", "layer"])["accuracy"].mean()
    for outcome, task in {"tense": "Tense", "number": "SubjNum"}.items():
        for name, lens in lenses.items():
            key = f"r {name} {outcome} abroad given depth"
            r, p = beside_shifts(lens.to_numpy(), courses[task].to_numpy())
            values[key] = r, *NO_ENDS, p
    return values


def _at(
    first: Average, layer: int, second: Average, second_layer: int
) -> tuple[float, float, float]:
    """The difference of two layers, with its interval over documents."""
    picked = [
        replace(x, score=x.score[i], left_out_change=x.left_out_change[i])
        for x, i in ((first, layer), (second, second_layer))
    ]
    difference = picked[0] - picked[1]
    return difference.score, *difference.interval()


def of_pivots(model: str, plan: Plan) -> Quantities:
    """Ranks of English and Chinese among pivots, and Chinese above the line on the bag's."""
    text = flores(plan.languages)
    text = text.select(held_out.languages("pivots"))
    options = {"space": "raw", "pooling": plan.poolings[0], "max_length": None}
    scores = stored(subject_scores, [model], text, ["MEXA"], **options)
    if scores is None:
        return {}
    pairs = scores[0].table().groupby(["layer", "language_1", "language_2"])["score"].mean()
    square = pairs[pairs.groupby("layer").mean().idxmax()].unstack()
    square = square.reindex(index=text.languages, columns=text.languages)
    means = square.fillna(square.T).mean()
    bags = {x: _bags()[x] for x in means.index}
    bag = pd.Series({x: mexa_tables.bag_scores(bags, x).mean() for x in bags})
    rest = means - np.polyval(np.polyfit(bag, means, 1), bag)
    ranks = means.rank(ascending=False)
    return {
        "pivot rank en": ranks["en"],
        "pivot rank zh": ranks["zh"],
        "pivot residual zh": rest["zh"],
    }


# --- two texts in a decoder -----------------------------------------------------------------------


def gains(model: str, after: likelihood.Texts, alone: likelihood.Texts) -> np.ndarray | None:
    """Bits that each following text costs less behind its context than alone, ``(n, k)``."""
    with_context, without = (stored(likelihood.bits, model, x) for x in (after, alone))
    if with_context is None or without is None:
        return None
    return without["bits"] - with_context["bits"]


def tag_accuracy(model: str, plan: Plan) -> pd.DataFrame | None:
    """Share of texts whose topic's name gains most, by language of text and of name."""
    codes, rows = plan.grid, []
    for text in codes:
        gained = gains(model, held_out.tagged(text, codes), held_out.tagged(None, codes))
        if gained is None:
            return None
        labels = labelled.load_labelled("TOPIC", text, "test").labels
        answers = gained.reshape(len(gained), len(codes), -1).argmax(axis=2)
        rows.append((answers == np.asarray(labels)[:, None]).mean(axis=0))
    return pd.DataFrame(rows, codes, codes)


def followed(model: str, plan: Plan) -> pd.DataFrame | None:
    """Share of translations that gain more than four others of like length, by source, target."""
    text = flores().select(held_out.languages("grid"))
    table = pd.DataFrame(np.nan, plan.grid, plan.grid)
    for source, target in product(plan.grid, repeat=2):
        if source != target:
            texts = (held_out.translations(text, x, target) for x in (source, None))
            if (gained := gains(model, *texts)) is None:
                return None
            table.loc[source, target] = (gained.argmax(axis=1) == 0).mean()
    return table


def inferred(model: str, premises: str = "right") -> pd.DataFrame | None:
    """Whether a pair of XNLI gets its right answer, ``(n_pairs, n_languages)``.

    It is the answer that gains most by the premise, or by a "wrong" one; with "none" it is the one
    that is likeliest without any.
    """
    table, right = held_out.asked(), {}
    for code in table.index[table["question"] != ""]:
        texts = (held_out.inference(code, code, x) for x in (premises, "none"))
        behind, alone = (stored(likelihood.bits, model, x) for x in texts)
        if behind is None or alone is None:
            return None
        gained = alone["bits"] * (premises != "none") - behind["bits"]
        pairs = labelled.load_labelled("NLI", code, "test", source="xnli-whole")
        labels = pairs.take(held_out.N_PAIRS, 1).labels
        right[code] = gained.argmax(axis=1) == np.asarray(labels)
    return pd.DataFrame(right)


def beside_premises(model: str) -> pd.DataFrame:
    """`inferred` behind a wrong premise and without any, and how far either is above it.

    A row each: ``share`` over languages, ``more`` with its interval over right premises.
    """
    with_premise = inferred(model).mean(axis=1)
    pairs = labelled.load_labelled("NLI", "en", "test", source="xnli-whole")
    groups = np.array(pairs.take(held_out.N_PAIRS, 1).first)
    rows = []
    for premises in ("wrong", "none"):
        rival = inferred(model, premises).mean(axis=1)
        more = statistics.mean_interval(rival - with_premise, groups)
        rows.append((premises, rival.mean(), *more))
    return pd.DataFrame(rows, columns=["premises", "share", "more", "low", "high"])


def of_two_texts(model: str, plan: Plan) -> Quantities:
    """Tags within and across languages, translations that follow, inference by prompt."""
    values: Quantities = {}
    if plan.grid and (tags := tag_accuracy(model, plan)) is not None:
        same = np.eye(len(tags), dtype=bool)
        values |= {"tags within": tags.to_numpy()[same].mean()}
        values |= {"tags across": tags.to_numpy()[~same].mean()}
    if plan.grid and (follows := followed(model, plan)) is not None:
        values["follows"] = np.nanmean(follows.to_numpy())
    if plan.grid and (inference := inferred(model)) is not None:
        values["inference en"] = inference["en"].mean()
        values["inference mean"] = inference.to_numpy().mean()
    return values


#: What the bound of the decoders is one half of, in the encoder (H8).
OUTSIDE = "tense abroad above twin outside Latin script"


def of_probes(model: str, plan: Plan) -> Quantities:
    """Number at home less words, and tense abroad less the untrained twin, by document (H8).

    Abroad: sentences that keep their label; of a decoder, in languages outside Latin script, for
    which every model has its own number (`OUTSIDE`), too.
    """
    tasks, twin = document_probes.document_tasks(), twin_of(model)
    read, random = (stored(document_probes.document_probes, x, tasks, True) for x in (model, twin))
    words = stored(document_probes.document_probes, Reader("words"), tasks, True)
    if read is None or words is None:
        return {}
    answers = pd.concat([read[1], words[1]])
    home = answers[(answers["source"] == answers["target"]) & (answers["task"] == "SubjNum")]
    best = [document_probes.against_best(home, model, ["words"])]
    names = ["subject number at home less unfolded words"]
    if random is not None:
        abroad = pd.concat([read[1], random[1].assign(model=twin)]).query("source != target")
        labels = document_probes.usable_labels(document_probes.LANGUAGES, ["Tense"])
        same = document_probes.same_label(abroad, labels)
        outside = same[same["target"].isin(["hi", "ru"])]
        names += ["tense abroad above twin, label kept", OUTSIDE]
        tested = outside if "last" in plan.poolings else same
        best += [document_probes.against_best(x, model, [twin]) for x in (tested, outside)]
    ends = pd.concat(best)[["difference", "low", "high"]].itertuples(index=False, name=None)
    return dict(zip(names, ends, strict=True))


def number_at_home(model: str) -> pd.DataFrame:
    """Subject number at home less the best of all lists of words, as `against_best` has it."""
    tasks = document_probes.document_tasks()
    names = [model, *map(Reader, READERS)]
    answers = pd.concat([document_probes.document_probes(x, tasks, True)[1] for x in names])
    home = answers[(answers["source"] == answers["target"]) & (answers["task"] == "SubjNum")]
    return document_probes.against_best(home, model, [*READERS])


def of_sizes(larger: str, smaller: str, plans: Mapping[str, Plan]) -> Quantities:
    """μ of one model less that of a smaller one, over the same languages that both read (H6)."""
    scores = []
    for name in (larger, smaller):
        with settings(dtype=plans[name].dtype):
            if aligned(name, plans[name]) is None:
                return {}
            table = by_language(name, plans[name])
        scores.append(table.loc[~(table["illegible"] > ILLEGIBLE), "mu"])
    more = (scores[0] - scores[1]).dropna()
    families = [*mexa_tables.language_families(more.index).values()]
    return {"mu above idf bag, 1.5 less 0.5 billion": statistics.mean_interval(more, families)}


OF_A_MODEL = (of_languages, of_layers, of_probed_layers, of_pivots, of_two_texts, of_probes)


def measured(plans: Mapping[str, Plan]) -> pd.DataFrame:
    """All quantities that are there: ``model``, ``id``, ``measured``, ``low``, ``high``, ``p``."""
    rows = []
    for model, plan in plans.items():
        with settings(dtype=plan.dtype):
            parts = [x(model, plan) for x in OF_A_MODEL]
        if model == SIZES[0]:
            parts.append(of_sizes(*SIZES, plans))
        for name, value in (item for part in parts for item in part.items()):
            rows.append((model, name, *(value if isinstance(value, tuple) else (value, *NO_ENDS))))
    return pd.DataFrame(rows, columns=["model", "id", "measured", "low", "high", "p"])


# --- beside what was foreseen ---------------------------------------------------------------------


def judged(values: pd.DataFrame) -> pd.DataFrame:
    """All predictions beside what `measured` gives; ``measured`` is NaN where nothing is there yet.

    Single values: ``within 80``, ``within 95``. Hypotheses: ``holds``, their bound, and ``p``, one
    sided, of a value that is at the bound (normal; correlations on Fisher's scale). H8 of decoders
    is bounded by one half of what the encoder has (`OUTSIDE`), taken as it is.
    """
    tables = [foreseen(model).assign(model=model).reset_index() for model in MODELS]
    table = pd.concat(tables, ignore_index=True).merge(values, "left", ["model", "id"])
    for half in values.loc[values["id"] == OUTSIDE, "measured"][:1] / 2:  # of the encoder
        lacking = (table["hypothesis"] == "H8") & table["bound"].isna()
        table["bound"] = table["bound"].mask(lacking, f"< {half:.3f}")
    for level, (low, high) in ENDS.items():
        table[f"within {level}"] = table["measured"].between(table[low], table[high])
    table["holds"] = [
        isinstance(bound, str) and bounded(bound, value)
        for bound, value in table[["bound", "measured"]].to_numpy()
    ]
    refuted = table["refuted"].fillna("")
    table["holds"] &= ~(refuted.str.contains("reaches 0") & (table["low"] <= 0))
    table["holds"] &= ~(refuted.str.contains("circular shifts") & (table["p"] > 0.05))
    ends = table[["id", "bound", "measured", "low", "high"]].to_numpy()
    table["p"] = table["p"].fillna(pd.Series([_p_value(*row) for row in ends]))
    return table


def _p_value(name: str, bound: object, value: float, low: float, high: float) -> float:
    """Of a bound with one end, and a value with an interval; else NaN."""
    if (
        not isinstance(bound, str)
        or bound.split()[0] not in "<=>"
        or np.isnan([value, low, high]).any()
    ):
        return np.nan
    ends = np.array([value, low, high, float(bound.split()[1])])
    value, low, high, end = np.arctanh(ends) if " r " in f" {name}" else ends
    z = (value - end) / (high - low) * 2 * stats.norm.ppf((1 + statistics.LEVEL) / 2)
    return float(stats.norm.sf(z if ">" in bound else -z))


def verdicts(table: pd.DataFrame) -> pd.DataFrame:
    """Hypotheses by model, the failed first: ``verdict`` failed, held or open.

    Failed: its bound does not hold, or its interval reaches what refutes it. Open: it is not
    measured yet, it had no bound, or it holds and is not sure (Holm over all p values).
    """
    rows = table[table["hypothesis"].notna()].copy()
    one_sided = ~rows["bound"].str.startswith("within", na=False)
    rows["p, Holm"] = holm(rows.loc[one_sided, "p"].dropna())
    there = rows["measured"].notna() & rows["bound"].notna()
    unsure = ~there | (rows["holds"] & (rows["p, Holm"] > 1 - statistics.LEVEL))
    rows["verdict"] = np.select([there & ~rows["holds"], ~unsure], VERDICTS[:2], VERDICTS[2])
    rows["verdict"] = pd.Categorical(rows["verdict"], VERDICTS)
    return rows.sort_values(["verdict", "hypothesis", "id"], kind="stable")


def copied(table: pd.DataFrame) -> list[float]:
    """For μ and topics of a language what the earlier model of the same kind has; asked afterwards.

    `ENCODER` for the held-out encoder, `DECODER` for the others; NaN for all other rows.
    """
    have = {name: of_earlier(name) for name in (ENCODER, DECODER)}
    values = []
    for model, key in table[["model", "id"]].to_numpy():
        what, _, code = key.partition(" ")
        of_model = have[ENCODER if model == MODELS[0] else DECODER]
        known = what in of_model and code in of_model.index
        values.append(of_model.loc[code, what] if known else np.nan)
    return values


def errors(table: pd.DataFrame) -> pd.DataFrame:
    """Mean error of our values and of each baseline on the same languages, and the difference.

    A row per model, quantity and baseline: ``ours``, ``baseline error``, ``less`` (ours less the
    baseline's) with its interval over families, ``n``.
    """
    single = table[table["hypothesis"].isna() & table["measured"].notna()]
    single = single.assign(
        quantity=single["id"].str.split().str[0], language=single["id"].str.split().str[-1]
    )
    rows = []
    for baseline in [x for x in BASELINES if x in table]:
        asked = single[single[baseline].notna() & single["quantity"].isin(BY_LANGUAGE)]
        asked = asked[asked["language"] != "mean"]
        for key, part in asked.groupby(["model", "quantity"], sort=False):
            ours, theirs = ((part[x] - part["measured"]).abs() for x in ("value", baseline))
            families = part["language"].map(mexa_tables.language_families(part["language"]))
            rows.append(
                (
                    *key,
                    baseline,
                    ours.mean(),
                    theirs.mean(),
                    *statistics.mean_interval(ours - theirs, families),
                    len(part),
                )
            )
    columns = [
        "model",
        "quantity",
        "baseline",
        "ours",
        "baseline error",
        "less",
        "low",
        "high",
        "n",
    ]
    return pd.DataFrame(rows, columns=columns)


def bounded(bound: str, value: float) -> bool:
    """Whether a value is "> 0.75", "<= 0", "within 0.5 to 0.75" or "outside 0.8 to 1.25"."""
    numbers = [float(x) for x in re.findall(r"-?[\d.]+", bound)]
    sign = bound.split()[0]
    if sign in ("within", "outside"):
        return (numbers[0] <= value <= numbers[1]) == (sign == "within")
    return {">": value > numbers[0], "<": value < numbers[0], "<=": value <= numbers[0]}[sign]


def coverage(table: pd.DataFrame) -> pd.DataFrame:
    """How many single values are within our intervals, with intervals of their own (95 %)."""
    single, rows = table[table["hypothesis"].isna() & table["measured"].notna()], []
    for (model, part), level in product(single.groupby("model", sort=False), ENDS):
        n, hits = len(part), int(part[f"within {level}"].sum())
        rows.append((model, level, hits, n, hits / n, *statistics.share_interval(hits, n)))
    return pd.DataFrame(rows, columns=["model", "level", "within", "of", "share", "low", "high"])


@styled
def forecast_lanes(table: pd.DataFrame) -> Figure:
    """What was foreseen of μ, with the intervals of 80 and 95 %, and what came, by language."""
    rows = table[table["hypothesis"].isna() & table["id"].str.fullmatch(r"mu \w\w(\w)?")]
    rows = rows[rows.groupby("model")["measured"].transform("count") > 0]
    rows["name"] = rows["id"].str.split().str[1].map(Locale("en").languages)
    inside, bare = rows["within 95"], rows[["model", "name"]]
    counts = inside.groupby(rows["model"]).agg(["sum", "count"])
    parts = {
        "foreseen, 80 and 95 %": rows.assign(
            score=rows["value"], low=rows["low_80"], high=rows["high_80"]
        ),
        "measured, within 95 %": bare.assign(score=rows["measured"].where(inside)),
        "measured, outside": bare.assign(score=rows["measured"].mask(inside)),
        "a line on subwords": bare.assign(score=rows["by_subwords"]),
    }
    drawn = pd.concat(parts, names=["what", None]).reset_index(level=0)
    looks = dict(zip(parts, map(look, (BLUE, VERMILION, BLACK, "0.5"), "oDXx"), strict=True))
    style = Lanes(looks=looks, wide=("low_95", "high_95"), width=5.6, lane=0.065)
    on = lanes(drawn, "score", "name", hue="what", col="model", style=style)
    on.titles(lambda x: "{}\n{} of {} within 95 %".format(x, *counts.loc[x]))
    figure = on.done("μ: share of sentences that find their translation")
    return asking("Does μ come as it was foreseen?", figure)
