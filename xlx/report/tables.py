"""Tables of a report: what the lenses measure of models on a text, a row an observation.

LD, MD and retrieval are those of `xlx.experiment.abx_scores`, with intervals over documents
(`xlx.experiment.averages`), MEXA that of `xlx.measures.mexa`. Of every model one layer is chosen,
where MD among sentences of like length is highest; pairs and probes are told of at that layer.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from xlx.experiment import abx_scores, probing, scoring, topics
from xlx.experiment.abx_scores import MATCHED, CheckpointScores, before_training
from xlx.experiment.averages import Average, average, averaged_scores, best_layer
from xlx.experiment.mexa_scores import measure_coverage
from xlx.experiment.scoring import BagOfSubwords, Length, Subject, subject_scores
from xlx.measures import abx, alignment, mexa, probe_training, statistics
from xlx.report.inputs import ReportedModel
from xlx.results import checks, paths
from xlx.subjects import loading, states
from xlx.text import downstream, files, languages, parallel
from xlx.text.files import TextError
from xlx.text.parallel import ParallelCorpus

#: By their names of `TABLES`.
Tables = Mapping[str, pd.DataFrame]
#: What is told of a model, in this order.
TOLD = ("LD", "MD", MATCHED, "retrieval")
#: What stands for a model's own architecture with random weights.
UNTRAINED = "untrained"
#: Of the halves of the text on which the layer is chosen.
HALVES_SEED = 1
#: With fewer languages beside the pivot a line and its error say nothing.
LEAST_LANGUAGES = 5
#: Predictor → how MEXA takes the states, and how it pools layers; the first is told first.
ALIGNMENTS = {
    "MEXA, best layer": ("raw", "max"), "MEXA, mean of layers": ("raw", "mean"),
    "MEXA, centred": ("centred", "max"),
}  # fmt: skip
TASK_BAG = scoring.BAG


@dataclass(frozen=True)
class ProbeSizes:
    """On how much is learnt and tested: ``words`` of a language (train, validation, test) for parts
    of speech, sentences that topics are tested on (None: all, 204), and seeds of the probes."""

    words: tuple[int, int, int] = (600, 150, 600)
    topic_sentences: int | None = None
    seeds: tuple[int, ...] = probe_training.SEEDS


#: Of a quick report.
FEW_LABELS = ProbeSizes((300, 100, 300), 100, (0, 1))


@dataclass(frozen=True)
class Measured:
    """What the lenses say of one model on a text; what is asked for is computed, and held.

    ``others`` are compared with it; ``tasks`` are scores by language (`scores_of_tasks`), and
    ``probes`` says on how much parts of speech and topics are learnt: without them, nothing.
    """

    model: ReportedModel
    corpus: ParallelCorpus
    pivot: str = "en"
    max_length: int | None = None
    others: Sequence[ReportedModel] = ()
    tasks: pd.DataFrame | None = None
    probes: ProbeSizes | None = None

    @property
    def options(self) -> dict[str, object]:
        """How sentences are read."""
        return {"pooling": self.model.pooling, "max_length": self.max_length}

    @cached_property
    def raw(self) -> CheckpointScores:
        """LD, MD and retrieval by layer, of vectors as they are."""
        return subject_scores([self.model.name], self.corpus, **self.options)[0]

    @cached_property
    def layer(self) -> int:
        """The chosen one."""
        return best_layer(self.raw)

    @cached_property
    def mexa(self) -> dict[str, mexa.PivotScores]:
        """Scores of all languages with the pivot: "raw", "centred" (each without its mean)."""
        vectors = self._states()
        moved = {"raw": vectors, "centred": alignment.centred(vectors)}
        return {way: mexa.scores(of_way, self.pivot) for way, of_way in moved.items()}

    @cached_property
    def exact(self) -> abx.PairScores:
        """Scores of every pair at the chosen layer, and without each document."""
        return abx.exact(
            self._states(), layers=[self.layer],
            masks={"like length": abx_scores.length_matched(self.corpus)},
            groups={"documents": parallel.documents(self.corpus)},
            device=loading.load(self.model.name).device,
        )  # fmt: skip

    def _states(self) -> dict[str, np.ndarray]:
        """From this machine's cache, where a model has read the text before."""
        encoder = loading.load(self.model.name)
        return states.embed_corpus(encoder, self.corpus, **self.options).states


def report_tables(
    models: Sequence[ReportedModel], corpus: ParallelCorpus, *,
    references: Sequence[ReportedModel] = (), tell: Callable[[str], object] = lambda text: None,
    **options: object,
) -> dict[str, pd.DataFrame]:  # fmt: skip
    """All tables of a report, by the names of `TABLES`; ``tell`` is called before each.

    ``options`` are the ``pivot`` and whatever else is asked for, of `Measured`.
    """
    parts: dict[str, list[pd.DataFrame]] = {}
    for model in models:
        others = [other for other in (*models, *references) if other is not model]
        measured = Measured(model, corpus, others=others, **options)
        asked = dict.fromkeys(("task_fits", "task_points"), measured.tasks)
        asked["probes"] = measured.probes
        for name, (heading, rows) in TABLES.items():
            if name in asked and asked[name] is None:
                continue
            tell(f"{model.label}: {heading}")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", checks.TextWarning)  # `reading` has by how much
                table = rows(measured)
            columns = ["model", *table.columns.drop("model", errors="ignore")]
            parts.setdefault(name, []).append(table.assign(model=model.label)[columns])
    return {name: pd.concat(tables, ignore_index=True) for name, tables in parts.items()}


def layer_rows(measured: Measured) -> pd.DataFrame:
    """Mean over pairs by layer, raw and centred: ``space``, ``task``, ``layer``, ``score`` ..."""
    name, corpus = measured.model.name, measured.corpus
    centred = subject_scores([name], corpus, space="centred", **measured.options)
    table = averaged_scores([measured.raw, *centred], TOLD, by=["layer"])
    return table.drop(columns="checkpoint")


def score_elsewhere(mean: Average, seed: int) -> float:
    """The highest score where it was not chosen: on a half of the groups, that of the other half's.

    The highest of several noisy scores is too high where it was chosen; on other text it is not.
    ``mean`` is of several scores, ``(n,)``; the halves, which ``seed`` draws, change places and
    their scores are averaged. Half a text is scored to first order (`Average.within`). NaN where a
    half would have fewer than two groups.
    """
    n = len(mean.sizes)
    if n < 4:
        return np.nan
    kept = np.random.default_rng(seed).permutation(n) < n // 2
    one, other = mean.within(kept).score, mean.within(~kept).score
    return float(np.mean([other[one.argmax()], one[other.argmax()]]))


def layer_differences(measured: Measured) -> pd.DataFrame:
    """MD among sentences of like length at the chosen layer less that of each: with intervals.

    ``chosen``, ``elsewhere`` (the score of a layer chosen on one half of the text, on the other
    half), ``layer``, ``difference``, ``low``, ``high``.
    """
    mean = average(measured.raw, MATCHED, by=["layer"])
    apart = average(measured.raw, MATCHED, layers=[measured.layer]) - mean
    elsewhere = score_elsewhere(mean, HALVES_SEED)
    columns = {"chosen": measured.layer, "elsewhere": elsewhere, "layer": range(len(mean.score))}
    return pd.DataFrame(columns | _numbers(apart))


def _numbers(mean: Average) -> dict[str, np.ndarray]:
    return dict(zip(("difference", "low", "high"), (mean.score, *mean.interval()), strict=True))


def reference_scores_of(measured: Measured) -> dict[str, CheckpointScores]:
    """What a model is compared with on the same text: label → scores.

    Its own architecture untrained, a bag of its subwords, length alone, and other models.
    """
    name, cut = measured.model.name, {"max_length": measured.max_length}
    subjects = {
        UNTRAINED: Subject(before_training(name), measured.options),
        scoring.BAG: BagOfSubwords(name, **cut),
        scoring.LENGTH_ALONE: Length(),
    }
    for other in measured.others:
        subjects[other.label] = Subject(other.name, {"pooling": other.pooling, **cut})
    found = subject_scores([*subjects.values()], measured.corpus)
    return dict(zip(subjects, found, strict=True))


def reference_rows(measured: Measured) -> pd.DataFrame:
    """Each score at the chosen layer less that of a reference at its own, with intervals.

    ``reference``, ``task``, ``layer``, ``reference_layer``, ``score``, ``reference_score``,
    ``difference``, ``low``, ``high``: on the same text, over documents.
    """
    rows = []
    for label, reference in reference_scores_of(measured).items():
        layer = best_layer(reference)
        for task in TOLD:
            own = average(measured.raw, task, layers=[measured.layer])
            other = average(reference, task, layers=[layer])
            rows.append({
                "reference": label, "task": task, "layer": measured.layer, "reference_layer": layer,
                "score": own.score, "reference_score": other.score, **_numbers(own - other),
            })  # fmt: skip
    return pd.DataFrame(rows)


def coverage_rows(measured: Measured) -> pd.DataFrame:
    """MEXA of every language, a row for ``states`` (raw, centred) and ``layers`` (max, mean).

    ``language``, ``name``, ``family``, ``script``, ``pivot``, ``states``, ``layers``, ``mu`` with
    its interval, ``band`` (of `topics.bands`).
    """
    table = pd.concat(
        scores.pooled(how).assign(states=way, layers=how, pivot=measured.pivot)
        for way, scores in measured.mexa.items()
        for how in ("max", "mean")
    )
    known = ["name", "family", "script"]
    table[known] = [kind_of_language(code) for code in table["language"]]
    columns = ["language", *known, "pivot", "states", "layers", "mu", "low", "high"]
    return table[columns].assign(band=topics.bands(table["mu"]))


def kind_of_language(code: str) -> tuple[str, str, str]:
    """Name, family and script of "de", "pt_BR", "ar_Latn"; what is not known of it is "?"."""
    base, *rest = code.split("_")
    scripts = [part for part in rest if len(part) == 4]  # of ISO 15924; regions are shorter
    if base not in languages.LANGUAGES:
        return code, "?", (*scripts, "?")[0]
    known = languages.LANGUAGES[base]
    return known.name, known.family, (*scripts, known.script)[0]


def pair_rows(measured: Measured) -> pd.DataFrame:
    """Every pair of languages at the chosen layer, both directions averaged, with intervals."""
    pairs = pd.DataFrame(combinations(measured.corpus.languages, 2),
                         columns=["language_1", "language_2"])  # fmt: skip
    sizes, tables = abx_scores.group_sizes(parallel.documents(measured.corpus)), []
    for task in TOLD:
        score = measured.exact.scores[task][0].mean(axis=-1)
        left_out = measured.exact.left_out["documents"][task][0]
        low, high = Average(score, left_out - score[..., None], sizes).interval()
        tables.append(pairs.assign(score=score, low=low, high=high, task=task))
    table = pd.concat(tables).assign(layer=measured.layer)
    return table[["layer", "task", "language_1", "language_2", "score", "low", "high"]]


def retrieval_rows(measured: Measured) -> pd.DataFrame:
    """Share of queries of a language whose translation is nearest, of each direction of a pair.

    Intervals are Wilson's, for independent queries.
    """
    pairs, n = combinations(measured.corpus.languages, 2), len(measured.corpus)
    table = pd.DataFrame(chain(*((pair, pair[::-1]) for pair in pairs)), columns=["query", "among"])
    table["score"] = measured.exact.scores["retrieval"][0].ravel()
    table["low"], table["high"] = statistics.share_interval(table["score"] * n, n)
    return table.assign(layer=measured.layer)


def reading_rows(measured: Measured) -> pd.DataFrame:
    """What a model reads of each language: ``subwords`` of a sentence, ``unknown`` and ``cut``.

    ``unknown``: the share of the subwords that its tokenizer has no piece for; ``cut``: of the
    sentences that lost their end.
    """
    words, n, rows = loading.tokenizer(measured.model.name), len(measured.corpus), []
    for language, sentences in measured.corpus.sentences.items():
        ids, _ = states.tokenise(words, sentences, limit=None, add_special_tokens=False)
        pieces = list(chain.from_iterable(ids["input_ids"]))
        unknown = pieces.count(words.unk_token_id) / max(1, len(pieces))
        rows.append((language, len(pieces) / n, unknown, measured.raw.cut[language] / n))
    return pd.DataFrame(rows, columns=["language", "subwords", "unknown", "cut"])


def printed_rows(measured: Measured) -> pd.DataFrame:
    """What the papers print of the same measures, and what it is here: landmarks, no references.

    ``quantity``, ``paper``, ``place``, ``printed_of``, ``printed``, ``here`` with its interval,
    ``differs``. First the correlation of LD and MD over pairs of languages, the mean of layers
    (ABX, section 4.2), its interval by resampling languages, and none with fewer than four; then
    the mean MEXA score over languages, each at its best layer, of the models of Table 1 on FLORES.
    """
    columns = ["quantity", "paper", "place", "printed_of", "printed", "here", "low", "high",
               "differs"]  # fmt: skip
    if not paths.PUBLISHED.is_dir():  # shipped by the repository, not by the package alone
        return pd.DataFrame(columns=columns)
    table = pd.read_csv(paths.PUBLISHED / "abx" / "text_results.csv", index_col="claim_id")
    pairs = pd.DataFrame(measured.raw.scores.pairs, columns=["language_1", "language_2"])
    for task in ("LD", "MD"):
        pairs[task] = measured.raw.scores.scores[task].mean(axis=-1).mean(axis=0)
    here = (np.nan,) * 3
    if len(pairs) > 5 and pairs[["LD", "MD"]].nunique().min() > 1:
        r = statistics.correlation(pairs, "LD", "MD")
        here = r.value, r.low, r.high
    differs = f"pairs of {len(measured.corpus.languages)} languages, not of 36; other text"
    rows = [("correlation of LD and MD over pairs, mean of layers", "de Seyssel et al. (2025)",
             "section 4.2", "XLM-R base, last checkpoint", float(table.loc["abx_t07", "value"]),
             *here, differs)]  # fmt: skip
    table = pd.read_csv(paths.PUBLISHED / "mexa" / "table1_performance_and_mexa.csv")
    table = table.query("group == 'FLORES' and item == 'mu_Max' and model != 'AVG'")
    mu = measured.mexa["raw"].pooled("max")["mu"]
    here = mu.mean(), *(statistics.interval(mu.mean(), mu.sem()) if len(mu) > 2 else here[1:])
    differs = (
        f"{len(mu)} languages, not {table['n_languages'].dropna().iloc[0]:.0f}; "
        f"{len(measured.corpus)} sentences of this text, not 100 of FLORES-200 (MEXA falls with "
        f"more); {measured.model.pooling.replace('_', ' ')} of subwords"
    )
    for model, value in zip(table["model"], table["value"], strict=True):
        rows.append(("mean MEXA score, max over layers", "Kargaran et al. (2025)", "Table 1", model,
                     value, *here, differs))  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


# --- labels ---------------------------------------------------------------------------------------


def text_codes(corpus: ParallelCorpus) -> dict[str, str]:
    """Codes of `downstream.language_of`, and of languages alone, → those of a text.

    "pt" finds a text called "pt_BR" where there is no other Portuguese.
    """
    codes: dict[str, str] = {}
    for code in corpus.languages:
        codes.setdefault(languages.base_code(code), code)
        codes.setdefault(downstream.language_of(code), code)
    return codes | {code: code for code in corpus.languages}


def scores_of_tasks(
    files: Sequence[str | Path], models: Sequence[ReportedModel], corpus: ParallelCorpus, pivot: str
) -> tuple[pd.DataFrame, list[str]]:
    """Scores of the models in the languages of a text but the pivot, and what was left out.

    As `downstream` has them, ``model`` being the label and ``language`` the code of the text. Left
    out, and said: languages that the text has not, and tasks with fewer than `LEAST_LANGUAGES`.
    TextError as `downstream.of_models`, and where nothing is left.
    """
    files = [Path(file).resolve() for file in files]
    named = {str(model.name): model.label for model in models}
    scores = downstream.of_models(downstream.read_tasks(files), named)
    codes = text_codes(corpus)
    where, notes = ", ".join(file.name for file in files), []
    if strange := sorted(set(scores["language"]) - set(codes)):
        notes.append(f"{where} has scores in languages that {corpus.name} is not read in: "
                     f"{', '.join(strange)}; they are left out.")  # fmt: skip
    scores = scores.assign(model=scores["model"].map(named), language=scores["language"].map(codes))
    scores = scores.dropna(subset="language")
    groups = scores[scores["language"] != pivot].groupby(["task", "model"], sort=False)
    notes += [f"{task}, {model}: too few languages to predict from, {n} in the text beside {pivot}."
              for (task, model), n in groups.size().items() if n < LEAST_LANGUAGES]  # fmt: skip
    kept = groups.filter(lambda rows: len(rows) >= LEAST_LANGUAGES)
    if kept.empty:
        raise TextError(
            f"{where} and {corpus.name} have fewer than {LEAST_LANGUAGES} languages in common "
            f"beside {pivot}, for any task: give scores, or text (--text, --languages), in more"
        )
    return kept.reset_index(drop=True), notes


def task_points(measured: Measured) -> pd.DataFrame:
    """Each language of each task with what predicts it, and what is predicted without it.

    Each language's score is predicted from its MEXA score by the line through all *other*
    languages, so that the error is one on a language whose score is not known. Beside it stand what
    needs no alignment: the mean of the other languages (``mean_of_others``), and MEXA of a bag of
    the model's own subwords. ``model``, ``task``, ``language``, ``predictor``, ``pivot``, ``mu``
    (of the predictor), ``score``, ``predicted``.
    """
    of_predictor = {
        name: measured.mexa[states].pooled(how) for name, (states, how) in ALIGNMENTS.items()
    }
    name, corpus, pivot = measured.model.name, measured.corpus, measured.pivot
    bag = measure_coverage(BagOfSubwords(name, max_length=measured.max_length), corpus, pivot)
    of_predictor[TASK_BAG] = bag[TASK_BAG].scores.pooled("max")
    own, rows = measured.tasks[measured.tasks["model"] == measured.model.label], []
    for name, scores in of_predictor.items():
        joint = own.merge(scores[["language", "mu"]], on="language")
        for _, part in joint.groupby("task", sort=False):
            predicted, mean = without_each(part["mu"].to_numpy(), part["score"].to_numpy())
            rows.append(part.assign(predictor=name, predicted=predicted, mean_of_others=mean))
    table = pd.concat(rows, ignore_index=True).assign(pivot=pivot)
    return table[["model", "task", "language", "predictor", "pivot", "mu", "score", "predicted",
                  "mean_of_others"]]  # fmt: skip


def without_each(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the line of least squares, and the mean, of the *other* points say of each y, ``(n,)``.

    NaN where all other x are the same.
    """
    lines, means = np.full(len(x), np.nan), np.empty(len(x))
    for i in range(len(x)):
        others, known = np.delete(x, i), np.delete(y, i)
        means[i] = known.mean()
        if np.ptp(others) > 0:
            slope, intercept, *_ = stats.linregress(others, known)
            lines[i] = intercept + slope * x[i]
    return lines, means


def task_fits(measured: Measured) -> pd.DataFrame:
    """How well each predictor tells the scores of each task: a row a model, task and predictor.

    ``r`` (Pearson, its interval by resampling languages), ``n`` languages, ``slope`` and
    ``intercept`` of the line through all, ``error`` (root mean square, in units of the score, of
    what is predicted of a language from the others) and ``error_of_mean`` (of their mean).
    """
    points, keys = task_points(measured), ["model", "task", "predictor"]
    table = statistics.correlations(points, keys, "mu", "score", languages=("language",))
    rows = []
    for _, part in points.groupby(keys, sort=False):
        varied = part["mu"].nunique() > 1
        line = np.polyfit(part["mu"], part["score"], 1) if varied else (np.nan, np.nan)
        wrong = part[["predicted", "mean_of_others"]].sub(part["score"], axis=0)
        rows.append((*line, *np.sqrt((wrong**2).mean(skipna=False))))
    table[["slope", "intercept", "error", "error_of_mean"]] = rows
    return table


def probed_codes(corpus: ParallelCorpus) -> dict[str, dict[str, str]]:
    """Task of the labelled data → its codes → those of the text, of languages in both."""
    codes = text_codes(corpus)
    labelled = files.catalogue("labelled").groupby("task")["language"].unique()
    return {
        task: {code: codes[code] for code in labelled[task] if code in codes}
        for task in ("POS", "TOPIC")
    }


def probe_rows(measured: Measured) -> pd.DataFrame:
    """Accuracy of linear probes at the chosen layer, a row a language of text and data alike.

    Parts of speech are learnt and tested in each language (`probing`, on Universal Dependencies),
    topics learnt in English and tested in every language (`topics`, SIB-200): so the second asks
    also whether what was learnt in English holds elsewhere.

    ``probed``, ``language``, ``name``, ``layer``, ``learnt_in``, ``n`` (words or sentences tested
    on), ``accuracy`` (mean over seeds) with Wilson's interval, for independent examples,
    ``majority`` (accuracy of the commonest label), ``best_layer`` and ``best_accuracy`` (of all
    layers, by the mean over languages).
    """
    codes, name, sizes = probed_codes(measured.corpus), measured.model.name, measured.probes
    options, tables = {"max_length": measured.max_length, "seeds": sizes.seeds}, []
    if of_words := codes["POS"]:
        setup = probing.ProbeSetup("POS", *sizes.words, **options)
        table = probing.monolingual(name, setup, list(of_words))
        own = _at_layer(table.rename(columns={"n_test": "n"}), measured.layer, of_words)
        tables.append(own.assign(probed="parts of speech", learnt_in=own["language"]))
    if of_topics := codes["TOPIC"]:
        n = sizes.topic_sentences
        table = topics.probe_topics([name], list(of_topics), n_test=n, **options)
        own = _at_layer(table[~table["centred"]], measured.layer, of_topics)
        tables.append(own.assign(probed="topics", learnt_in=topics.SOURCE))
    columns = ["probed", "language", "name", "layer", "learnt_in", "n", "accuracy", "low", "high",
               "majority", "best_layer", "best_accuracy"]  # fmt: skip
    return pd.concat(tables)[columns] if tables else pd.DataFrame(columns=columns)


def _at_layer(table: pd.DataFrame, layer: int, codes: Mapping[str, str]) -> pd.DataFrame:
    """Means over seeds at one layer, by language, with intervals; and which layer is the best."""
    means = table.groupby(["language", "layer"], sort=False, as_index=False)
    means = means.agg(
        accuracy=("accuracy", "mean"), majority=("majority", "first"), n=("n", "first")
    )
    by_layer = means.groupby("layer")["accuracy"].mean()
    own = means[means["layer"] == layer].assign(language=lambda rows: rows["language"].map(codes))
    own["low"], own["high"] = statistics.share_interval(own["accuracy"] * own["n"], own["n"])
    names = [kind_of_language(code)[0] for code in own["language"]]
    return own.assign(name=names, best_layer=by_layer.idxmax(), best_accuracy=by_layer.max())


#: Table → the words that head it, and what makes it. The last three are there where asked for.
TABLES: dict[str, tuple[str, Callable[[Measured], pd.DataFrame]]] = {
    "layers": ("Scores by layer", layer_rows),
    "layer_differences": ("The chosen layer and the others", layer_differences),
    "references": ("Compared with what else there is", reference_rows),
    "coverage": ("Languages covered (MEXA)", coverage_rows),
    "pairs": ("Pairs of languages", pair_rows),
    "retrieval": ("Retrieval in each direction", retrieval_rows),
    "reading": ("What the tokenizer reads", reading_rows),
    "printed": ("Beside what the papers print", printed_rows),
    "task_fits": ("What predicts the scores of tasks", task_fits),
    "task_points": ("Tasks by language, and what is predicted of them", task_points),
    "probes": ("Parts of speech and topics", probe_rows),
}
