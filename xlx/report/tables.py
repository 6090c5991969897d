"""Tables of a report: what the lenses measure of models on a text, one row per observation.

The measures are those of `xlx.measures.registered`, as `xlx.experiment.scoring` has them, with
intervals over documents; MEXA is that of `xlx.measures.mexa`. Of every model one layer is chosen,
where MD among sentences of like length is highest; pairs and probes are told of at that layer.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, permutations
from pathlib import Path

import numpy as np
import pandas as pd
from pandas import DataFrame

from xlx.experiment import constraints, probing, scoring
from xlx.experiment.abx_scores import MATCHED, before_training, group_sizes
from xlx.experiment.averages import Average, average, averaged_scores, best_layer
from xlx.experiment.mexa_scores import measure_coverage
from xlx.experiment.scoring import BagOfSubwords, Length, Subject, reported_measures, subject_scores
from xlx.experiment.sentence_probes import over_languages, probe_sentences
from xlx.measures import abx, alignment, mexa, probes, registered, statistics
from xlx.measures.sentence_tasks import Rules, parallel_tasks
from xlx.report.inputs import ReportedModel
from xlx.results import checks
from xlx.results.deferred import deferred
from xlx.subjects import loading, states
from xlx.subjects.identity import Name
from xlx.text import downstream, files, languages, parallel
from xlx.text.files import TextError
from xlx.text.languages import kind_of_language
from xlx.text.parallel import ParallelCorpus
from xlx.text.trees import load_trees

torch = deferred("torch")

#: By their names of `TABLES`.
Tables = Mapping[str, DataFrame]
#: What stands for a model's own architecture with random weights.
UNTRAINED = "untrained"
#: Of the halves of the text on which the layer is chosen.
HALVES_SEED = 1
#: With fewer languages beside the pivot a line and its error say nothing.
LEAST_LANGUAGES = 5
#: Predictor → how MEXA takes the states, and how it pools layers; the first is told first.
ALIGNMENTS = {
    "MEXA, best layer": ("raw", "max"),
    "MEXA, mean of layers": ("raw", "mean"),
    "MEXA, centred": ("centred", "max"),
}


@dataclass(frozen=True)
class ProbeSizes:
    """How much is learnt and tested: ``words`` (train, validation, test) a language, sentences."""

    words: tuple[int, int, int] = (600, 150, 600)
    topic_sentences: int | None = None
    seeds: tuple[int, ...] = probes.SEEDS


#: X-Probe's tasks that 1,000 sentences carry, and the lengths between which SentLen's classes lie.
SENTENCE_TASKS, _LENGTHS = ("SentLen", "SubjNum", "Tense"), (5, 14, 18, 23, 41)
#: Of a quick report.
FEW_LABELS = ProbeSizes((300, 100, 300), 100, (0, 1))


@dataclass(frozen=True)
class Measured:
    """What the lenses say of one model on a text; what is asked for is computed, and held.

    ``others`` are compared with it; ``tasks`` are scores by language (`scores_of_tasks`).
    """

    model: ReportedModel
    corpus: ParallelCorpus
    pivot: str = "en"
    others: Sequence[ReportedModel] = ()
    tasks: DataFrame | None = None
    probes: ProbeSizes | None = None
    sentences: int | None = None  # a task of X-Probe learns and stops by, at most; None: none is
    treebank: Path | None = None  # a folder with a folder of CoNLL-U a language; None: Parallel UD
    untrained: bool = True  # compared with its own architecture untrained, too
    every_layer: bool = False  # pairs are told of at every layer, not at the chosen one alone

    def scores(self, subjects: Sequence[Subject], space: str = "raw") -> list[abx.PairScores]:
        """Scores of `reported_measures`, by layer."""
        return subject_scores(subjects, self.corpus, reported_measures(), space=space)

    @cached_property
    def raw(self) -> abx.PairScores:
        """The scores of vectors as they are."""
        return self.scores([subject(self.model)])[0]

    @cached_property
    def layer(self) -> int:
        """The chosen one."""
        return best_layer(self.raw)

    @cached_property
    def mexa(self) -> dict[str, mexa.PivotScores]:
        """Scores of all languages with the pivot: "raw", "centred" (each without its mean)."""
        vectors = subject(self.model).read(self.corpus).states
        moved = {"raw": vectors, "centred": alignment.centred(vectors)}
        return {way: mexa.scores(of_way, self.pivot) for way, of_way in moved.items()}

    @cached_property
    def exact(self) -> abx.PairScores:
        """Scores of every pair, and without each document."""
        read = subject(self.model).read(self.corpus)
        return abx.exact(
            read.states,
            layers=None if self.every_layer else [self.layer],
            measures=[name for name, x in registered().items() if x.reported],
            masks=constraints.masks_of(self.corpus, ["like length"]),
            groups={"documents": parallel.documents(self.corpus)},
            device=read.device,
            dtype=read.dtype,
        )


def subject(model: ReportedModel, name: Name | None = None) -> Subject:
    """A model of a report as it is asked, or another name in its place; vectors as they are."""
    if isinstance(model.name, Subject):
        return model.name
    options = {"max_length": None, "special_tokens": model.special_tokens}
    return Subject(name or model.name, {"pooling": model.pooling, **options})


def measured_models(
    models: Sequence[ReportedModel],
    corpus: ParallelCorpus,
    references: Sequence[ReportedModel] = (),
    **options: object,
) -> list[Measured]:
    """Each of the models, compared with all others and the references; options: `Measured`."""
    everything = [*models, *references]
    return [
        Measured(x, corpus, others=[y for y in everything if y is not x], **options) for x in models
    ]


def report_tables(
    of_models: Sequence[Measured],
    tell: Callable[[str], object] = lambda text: None,
    names: Collection[str] | None = None,
) -> dict[str, DataFrame]:
    """Tables by the ``names`` of `TABLES`, all if none, with rows; ``tell`` is called before."""
    parts = {}
    for measured in of_models:
        for name in names or TABLES:
            heading, rows, *asked = TABLES[name]
            if any(getattr(measured, field) is None for field in asked):
                continue
            tell(f"{measured.model.label}: {heading}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", checks.TextWarning)  # `reading` has by how much
                table = rows(measured).drop(columns="model", errors="ignore")
            table.insert(0, "model", measured.model.label)
            parts.setdefault(name, []).append(table)
    tables = {name: pd.concat(several, ignore_index=True) for name, several in parts.items()}
    return {name: table for name, table in tables.items() if len(table)}


def layer_rows(measured: Measured) -> DataFrame:
    """Mean over pairs by layer, raw and centred: ``space``, ``task``, ``layer``, ``score`` ..."""
    several = [measured.raw, *measured.scores([subject(measured.model)], "centred")]
    return averaged_scores(several, reported_measures(), by=["layer"]).drop(columns="checkpoint")


def score_elsewhere(mean: Average, seed: int) -> float:
    """The highest of scores ``(n,)`` where it was not chosen: on the other half of the groups.

    The halves, which ``seed`` draws, change places. NaN with fewer than two groups in a half.
    """
    n = len(mean.sizes)
    if n < 4:
        return np.nan
    half = np.random.default_rng(seed).permutation(n) < n // 2
    first, second = mean.within(half).score, mean.within(~half).score
    return float(np.mean([second[first.argmax()], first[second.argmax()]]))


def layer_differences(measured: Measured) -> DataFrame:
    """MD among sentences of like length at the chosen layer less that of each, with intervals."""
    mean = average(measured.raw, MATCHED, by=["layer"])
    apart = average(measured.raw, MATCHED, layers=[measured.layer]) - mean
    elsewhere = score_elsewhere(mean, HALVES_SEED)
    columns = {"chosen": measured.layer, "elsewhere": elsewhere, "layer": range(len(mean.score))}
    return DataFrame(columns | _numbers(apart))


def _numbers(mean: Average) -> dict[str, np.ndarray]:
    return dict(zip(("difference", "low", "high"), (mean.score, *mean.interval()), strict=True))


def compared(measured: Measured) -> dict[str, Subject]:
    """What a model is compared with, by label: its untrained twin, no model, and other models.

    Saved vectors have no twin and no subwords.
    """
    model, rivals = measured.model, {scoring.LENGTH_ALONE: Length()}
    if not isinstance(model.name, Subject):
        name = model.name.name if isinstance(model.name, loading.Encoder) else model.name
        rivals = {scoring.BAG: BagOfSubwords(model.name, {"max_length": None})} | rivals
        if measured.untrained:
            rivals = {UNTRAINED: subject(model, before_training(name))} | rivals
    return rivals | {other.label: subject(other) for other in measured.others}


def reference_rows(measured: Measured) -> DataFrame:
    """Each score at the chosen layer less that of a reference at its own, with intervals."""
    references, layer = compared(measured), measured.layer
    scores, rows = measured.scores([*references.values()]), []
    for label, reference in zip(references, scores, strict=True):
        theirs = best_layer(reference)
        for task in reported_measures():
            score = average(measured.raw, task, layers=[layer])
            other = average(reference, task, layers=[theirs])
            row = {"reference": label, "task": task, "layer": layer, "reference_layer": theirs}
            row |= {"score": score.score, "reference_score": other.score}
            rows.append(row | _numbers(score - other))
    return DataFrame(rows)


def coverage_rows(measured: Measured) -> DataFrame:
    """MEXA of every language, a row for ``states`` (raw, centred) and ``layers`` (max, mean)."""
    table = pd.concat(
        scores.pooled(how).assign(states=space, layers=how, pivot=measured.pivot)
        for space, scores in measured.mexa.items()
        for how in ("max", "mean")
    )
    table[["name", "family", "script"]] = [kind_of_language(x) for x in table["language"]]
    return table.assign(band=mexa.bands(table["mu"]))


def pair_rows(measured: Measured) -> DataFrame:
    """Every pair of languages, both directions averaged, with intervals."""
    exact, tables = measured.exact, []
    sizes = group_sizes(parallel.documents(measured.corpus))
    for task in reported_measures():
        score = exact.scores[task].mean(-1)
        change = exact.left_out["documents"][task] - score[..., None]
        ends = Average(score, change, sizes).interval()
        for layer, *numbers in zip(exact.layers, score, *ends, strict=True):
            table = DataFrame(exact.pairs, columns=["language_1", "language_2"])
            table["task"], (table["score"], table["low"], table["high"]) = task, numbers
            tables.append(table.assign(layer=layer))
    return pd.concat(tables)


def retrieval_rows(measured: Measured) -> DataFrame:
    """Share of queries of a language whose translation is nearest, with Wilson's interval."""
    exact, n = measured.exact, len(measured.corpus)
    ways = [direction for pair in exact.pairs for direction in permutations(pair)]
    table = DataFrame(ways, columns=["query", "among"])
    table["score"] = exact.scores["retrieval"][exact.layers.index(measured.layer)].ravel()
    table["low"], table["high"] = statistics.share_interval(table["score"] * n, n)
    return table.assign(layer=measured.layer)


def reading_rows(measured: Measured) -> DataFrame:
    """``subwords`` of a sentence, the share of ``unknown`` ones and of sentences ``cut``."""
    words, n, rows = loading.tokenizer(measured.model.name), len(measured.corpus), []
    for language, sentences in measured.corpus.sentences.items():
        ids, _ = states.tokenise(words, sentences, limit=None, add_special_tokens=False)
        pieces = [*chain(*ids["input_ids"])]
        unknown = pieces.count(words.unk_token_id) / max(1, len(pieces))
        rows.append((language, len(pieces) / n, unknown, measured.raw.cut[language] / n))
    return DataFrame(rows, columns=["language", "subwords", "unknown", "cut"])


def text_codes(corpus: ParallelCorpus) -> dict[str, str]:
    """Codes of `downstream.language_of`, and of languages alone, → those of a text: pt, pt_BR."""
    ways = (downstream.language_of, languages.base_code, str)
    return {way(code): code for way in ways for code in reversed(corpus.languages)}


def scores_of_tasks(
    given: Sequence[str | Path], models: Sequence[ReportedModel], corpus: ParallelCorpus, pivot: str
) -> tuple[DataFrame, list[str]]:
    """Scores of the models in the languages of a text, by label and code of the text; notes.

    Left out, and said: languages that the text has not, and tasks with fewer than `LEAST_LANGUAGES`
    beside the pivot. TextError as `downstream.of_models`, and where nothing is left.
    """
    labels, codes = {str(model.name): model.label for model in models}, text_codes(corpus)
    table = downstream.read_tasks([Path(file).resolve() for file in given])
    table = downstream.of_models(table, labels)
    strange = sorted({*table["language"]} - {*codes})
    notes = [
        f"Scores in languages that {corpus.name} is not read in are left out: {', '.join(strange)}."
    ] * bool(strange)
    table["model"], table["language"] = table["model"].map(labels), table["language"].map(codes)
    table = table.dropna(subset="language").query("language != @pivot")
    groups = table.groupby(["task", "model"], sort=False)
    notes += [
        f"{task}, {model}: too few languages to predict from, {n} in the text beside {pivot}."
        for (task, model), n in groups.size().items()
        if n < LEAST_LANGUAGES
    ]
    enough = groups.filter(lambda rows: len(rows) >= LEAST_LANGUAGES)
    if enough.empty:
        raise TextError(
            f"{', '.join(Path(file).name for file in given)} and {corpus.name} have fewer than "
            f"{LEAST_LANGUAGES} languages in common beside {pivot}, for any task: give scores, or "
            "text (--text, --languages), in more"
        )
    return enough.reset_index(drop=True), notes


def task_points(measured: Measured) -> DataFrame:
    """The score of each language, as predicted by the line through all *other* languages.

    From its MEXA score (``mu``); ``line``: as by the line through all. Beside it stands what needs
    no alignment: the mean of the other languages, and MEXA of a bag of the model's own subwords.
    """
    from sklearn.linear_model import LinearRegression  # most reports are of no tasks
    from sklearn.model_selection import LeaveOneOut, cross_val_predict

    bag = measure_coverage(BagOfSubwords(measured.model.name), measured.corpus, measured.pivot)
    predictors = {name: measured.mexa[way].pooled(how) for name, (way, how) in ALIGNMENTS.items()}
    predictors[scoring.BAG] = bag[scoring.BAG].scores.pooled("max")
    scores = measured.tasks[measured.tasks["model"] == measured.model.label]
    scores, rows = scores[["model", "task", "language", "score"]], []
    for name, aligned in predictors.items():
        joint = scores.merge(aligned[["language", "mu"]], on="language")
        for _, part in joint.groupby("task", sort=False):
            x, y, line = part[["mu"]], part["score"], LinearRegression()
            columns = {"predicted": cross_val_predict(line, x, y, cv=LeaveOneOut())}
            columns |= {"mean_of_others": (y.sum() - y) / (len(y) - 1)}
            rows.append(part.assign(predictor=name, **columns, line=line.fit(x, y).predict(x)))
    return pd.concat(rows, ignore_index=True).assign(pivot=measured.pivot)


def task_fits(measured: Measured) -> DataFrame:
    """How well each predictor tells the scores of each task: Pearson's r, and errors.

    The interval of ``r`` is over languages, ``error`` the root mean square of what is
    predicted of a language from the others, ``error_of_mean`` that of their mean.
    """
    points, keys = task_points(measured), ["model", "task", "predictor"]
    table = statistics.correlations(points, keys, "mu", "score", languages=("language",))
    wrong = points[["predicted", "mean_of_others"]].sub(points["score"], axis=0) ** 2
    errors = wrong.groupby([points[key] for key in keys], sort=False).mean() ** 0.5
    table[["error", "error_of_mean"]] = errors.to_numpy()
    return table


def probe_rows(measured: Measured) -> DataFrame:
    """Accuracy of linear probes at the chosen layer, one row per language of text and data alike.

    Parts of speech are learnt and tested in each language (Universal Dependencies), topics learnt
    in English and tested in every language (SIB-200). Intervals are Wilson's, for independent
    examples; ``majority``: accuracy of the commonest label.
    """
    codes, name, sizes = text_codes(measured.corpus), measured.model.name, measured.probes
    labelled = files.catalogue("labelled")
    labelled = labelled[labelled["language"].isin(codes)]
    there = labelled.groupby("task")["language"].unique()
    options, tables = {"max_length": None, "seeds": sizes.seeds}, []
    if "POS" in there:
        setup = probing.ProbeSetup("POS", *sizes.words, **options)
        table = probing.monolingual(name, setup, [*there["POS"]]).rename(columns={"n_test": "n"})
        learnt_in = table["language"].map(codes)
        tables.append(table.assign(probed="parts of speech", learnt_in=learnt_in))
    if "TOPIC" in there:
        table = probing.probe_topics(
            [name], [*there["TOPIC"]], n_test=sizes.topic_sentences, **options
        )
        tables.append(table[~table["centred"]].assign(probed="topics", learnt_in=probing.SOURCE))
    return pd.concat([_at_layer(x, measured.layer, codes) for x in tables] or [DataFrame()])


def _at_layer(table: DataFrame, layer: int, codes: Mapping[str, str]) -> DataFrame:
    """Means over seeds at one layer, by language, with intervals; and which layer is the best."""
    keys = ["probed", "learnt_in", "language", "layer", "n", "majority"]
    means = table.groupby(keys, sort=False)["accuracy"].mean().reset_index()
    by_layer = means.groupby("layer")["accuracy"].mean()
    rows = means[means["layer"] == layer].assign(best_layer=by_layer.idxmax())
    rows["language"] = rows["language"].map(codes)
    rows["name"] = [kind_of_language(code)[0] for code in rows["language"]]
    rows["low"], rows["high"] = statistics.share_interval(rows["accuracy"] * rows["n"], rows["n"])
    return rows.assign(best_accuracy=by_layer.max())


def sentence_rows(measured: Measured) -> DataFrame:
    """X-Probe's tasks by layer, of Parallel UD in the languages of the text, or of a treebank.

    A row per task, ``read`` and layer: at home (half of the sentences to learn, half to test) or
    abroad. ``accuracy`` as `over_languages`; beside it that of the untrained twin and the bag.
    """
    codes, several, own = text_codes(measured.corpus), compared(measured), measured.treebank
    source, there = "pud", files.catalogue("trees").query("source == 'pud'")["language"]
    folders = {code: None for code in there if code in codes}
    if own:
        source, folders = "own", {x.name: x for x in sorted(own.glob("*")) if x.is_dir()}
    trees = {code: [load_trees(code, source, path=path)] for code, path in folders.items()}
    rules = Rules(lengths=(_LENGTHS[0], _LENGTHS[-1] - 1), length_edges=_LENGTHS)
    options = {"source": source, "most": measured.sentences, "rules": rules}
    made = parallel_tasks(trees, SENTENCE_TASKS, **options)
    drawn = {code: [*{task.name: task for task in tasks}.values()] for code, tasks in made.items()}
    if not any(drawn.values()):
        if own:
            raise TextError(f"{own}: too few sentences of each class for a task; add some")
        return DataFrame()
    keys = ["task", "read", "layer"]

    def means(of_subject: Subject) -> DataFrame:
        table = probe_sentences([of_subject], drawn, across=True, seeds=FEW_LABELS.seeds)
        table["read"] = np.where(table["source"] == table["target"], "at home", "abroad")
        table["chance"] = 1 / table["classes"]
        cells = table.groupby([*keys, "source", "target"], sort=False)[["accuracy", "chance"]]
        return over_languages(cells.mean().reset_index(), keys).set_index(keys)

    rows = means(subject(measured.model))
    for label in (UNTRAINED, scoring.BAG):
        if label in several:
            accuracy = means(several[label])["accuracy"].rename(label)
            if label == scoring.BAG:  # which has one layer
                accuracy = accuracy.droplevel("layer")
            rows = rows.join(accuracy, on=accuracy.index.names)
    return rows.reset_index()


#: Table → the words that head it, what makes it, and the field of `Measured` that asks for it.
TABLES = {
    "layers": ("Scores by layer", layer_rows),
    "layer_differences": ("The chosen layer and the others", layer_differences),
    "references": ("Compared with what else there is", reference_rows),
    "coverage": ("Languages covered (MEXA)", coverage_rows),
    "pairs": ("Pairs of languages", pair_rows),
    "retrieval": ("Retrieval in each direction", retrieval_rows),
    "reading": ("What the tokenizer reads", reading_rows),
    "task_fits": ("What predicts the scores of tasks", task_fits, "tasks"),
    "task_points": ("Tasks by language, and what is predicted of them", task_points, "tasks"),
    "probes": ("Parts of speech and topics", probe_rows, "probes"),
    "sentence_tasks": ("What layers hold of a sentence (X-Probe)", sentence_rows, "sentences"),
}
