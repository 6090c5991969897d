"""What the notebooks of MEXA share: texts, scores of models, and what chance gives (A.4)."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd

from shared import held_out
from xlx.experiment.abx_scores import before_training
from xlx.experiment.mexa_scores import STATES, Coverage, measure_coverage
from xlx.experiment.scoring import BagOfSubwords, Length
from xlx.measures import mexa, statistics
from xlx.measures.alignment import BLOCK_NUMBERS
from xlx.measures.statistics import SLACK, share_interval
from xlx.results import paths, work
from xlx.results.deferred import deferred
from xlx.results.settings import settings
from xlx.subjects import identity
from xlx.subjects.identity import Name
from xlx.text import downstream, languages, parallel
from xlx.text.files import sentences_hash
from xlx.text.parallel import ParallelCorpus

sparse, special, stats = (deferred(f"scipy.{x}") for x in ("sparse", "special", "stats"))
torch = deferred("torch")
vectorizers = deferred("sklearn.feature_extraction.text")
preprocessing = deferred("sklearn.preprocessing")

#: The topics of SIB-200 in tables of downstream scores.
TOPIC_TASK = "SIB-200"
#: Draws of families for the interval of an R².
#: Behind the name of a model in tables: its untrained twin.
UNTRAINED = ", untrained"

#: Bags: how often a sentence has each of its pieces, in small letters. The last weighs pieces by
#: how few sentences of all languages have them.
BAGS = {
    "words": ("CountVectorizer", {"token_pattern": r"\w+"}),
    "characters": ("CountVectorizer", {"analyzer": "char"}),
    "3 characters": ("CountVectorizer", {"analyzer": "char", "ngram_range": (3, 3)}),
    "4 characters, idf": ("TfidfVectorizer", {"analyzer": "char", "ngram_range": (4, 4)}),
}
#: The bag that finds most translations, the floor of every score of this lens.
LETTERS = "4 characters, idf"

# --- texts and scores -----------------------------------------------------------------------------


def load_text(
    corpus: str,
    languages: Sequence[str] | str | None,
    n_sentences: int | None,
    also: Sequence[str] = (),
) -> ParallelCorpus:
    """The first sentences of a corpus; ``languages="belebele"``: the paper's 117 and ``also``."""
    with warnings.catch_warnings():  # a sentence that comes twice is two misses, as in the paper
        warnings.simplefilter("ignore", parallel.CorpusWarning)
        text = parallel.load(corpus, None if languages == "belebele" else languages)
    if languages == "belebele":
        labels = pd.read_csv(paths.PUBLISHED / "mexa" / "belebele_labels.csv")["label"]
        needed = {*also, *map(downstream.language_of, labels)}
        text = text.select([code for code in text.languages if code in needed])
    return text.drop(range(n_sentences or len(text), len(text)))


def language_tags(corpus: str) -> dict[str, str]:
    """Code → label of FLORES-200, if that is the corpus."""
    return parallel.tags(corpus) if corpus in ("flores200-100", "flores200") else {}


def language_scripts(corpus: str) -> dict[str, str]:
    """Code → script ("Latn"), by the label in FLORES-200, else of the languages of the family."""
    of_family = {code: language.script for code, language in languages.LANGUAGES.items()}
    return of_family | {code: tag[-4:] for code, tag in language_tags(corpus).items()}


def language_families(codes: Sequence[str]) -> dict[str, str]:
    """Code → family, by the label in FLORES-200; a language that is not there is its own."""
    labels = parallel.tags("flores200-100")
    return {code: languages.family_of(labels[code]) if code in labels else code for code in codes}


def cover(
    names: Sequence[Name],
    text: ParallelCorpus,
    pivot: str,
    poolings: Sequence[str],
    states: Sequence[str] = STATES,
    **options: object,
) -> list[Coverage]:
    """`measure_coverage` of models, of raw and centred states, with each pooling.

    A model that cannot be read, or does not fit, is left out, with one sentence; an error if that
    is so of all. Held-out models are read in the precision that their plan has.
    """
    covered: list[Coverage] = []
    for number, name in enumerate(names, start=1):
        try:
            with settings(dtype=held_out.precision(name)):
                covered += measure_coverage(
                    name, text, pivot, poolings=poolings, states=states, **options
                ).values()
        except (OSError, ValueError, MemoryError, torch.OutOfMemoryError) as error:
            if number == len(names) and not covered:
                raise
            print(f"{name} is left out: {str(error).splitlines()[0]}")
    return covered


def untrained_twins(
    readers: Mapping[Name, str], text: ParallelCorpus, pivot: str, **options: object
) -> list[Coverage]:
    """Models (→ pooling) before training: step 0 of a series, or else the untrained twin."""
    return [
        replace(coverage, model=identity.series_name(identity.identify(name)) + UNTRAINED)
        for name, pooling in readers.items()
        for coverage in cover([before_training(name)], text, pivot, [pooling], **options)
    ]


def those_covered(names: Sequence[Name], covered: Sequence[Coverage]) -> list[Name]:
    """The models of which there are scores."""
    there = {coverage.model for coverage in covered}
    return [name for name in names if identity.series_name(identity.identify(name)) in there]


def control_scores(
    models: Sequence[Name], text: ParallelCorpus, pivot: str, max_length: int | None
) -> pd.DataFrame:
    """Subjects that know no language: a ``bag`` of each model's subwords, and ``length`` alone.

    As `PivotScores.pooled`, with ``model``, ``control`` and ``states`` (raw, centred).
    """
    tables = []
    for name, states in product(models, STATES):
        about = {"model": identity.series_name(identity.identify(name)), "states": states}
        controls = {"bag": BagOfSubwords(name, max_length=max_length), "length": Length()}
        for control, subject in controls.items():
            (coverage,) = measure_coverage(subject, text, pivot, states=[states]).values()
            tables.append(coverage.scores.pooled().assign(control=control, **about))
    return pd.concat(tables, ignore_index=True)


def pooled_table(
    covered: Sequence[Coverage], hows: Sequence[str] = ("mean", "max")
) -> pd.DataFrame:
    """Scores pooled over layers, each way, with a column ``layers`` that says how."""
    tables = [x.named(x.scores.pooled(how).assign(layers=how)) for x in covered for how in hows]
    return pd.concat(tables, ignore_index=True)


# --- what spelling gives --------------------------------------------------------------------------


def bag_vectors(corpus: ParallelCorpus, bag: str = LETTERS) -> dict[str, sparse.csr_matrix]:
    """Unit vectors of sentences by language, ``(n, pieces)``; idf is over the whole corpus."""
    vectorizer, options = BAGS[bag]
    sentences = [sentence for text in corpus.sentences.values() for sentence in text]
    counts = getattr(vectorizers, vectorizer)(**options).fit_transform(sentences)
    unit, n = preprocessing.normalize(counts.astype(float)).tocsr(), len(corpus)
    return {code: unit[k * n : (k + 1) * n] for k, code in enumerate(corpus.languages)}


def bag_scores(vectors: Mapping[str, sparse.csr_matrix], pivot: str = "en") -> pd.Series:
    """μ of each other language with ``pivot``, by cosine, of what `bag_vectors` returns."""
    others = {code: bag for code, bag in vectors.items() if code != pivot}
    return pd.Series({x: bag_hits(y, vectors[pivot]).mean() for x, y in others.items()})


def letter_scores(corpus: ParallelCorpus) -> pd.Series:
    """`bag_scores` of the bag of letters, kept: in all of FLORES-200 they take 5 s."""
    text = [corpus.text_hash(code) for code in corpus.languages]
    about = {"text": sentences_hash(text), "languages": sentences_hash(corpus.languages)}
    (mu,) = work.result(LETTER_SCORES, about | {"pivot": "en"}, corpus, "en").values()
    return pd.Series(mu, [code for code in corpus.languages if code != "en"])


def _letter_scores(corpus: ParallelCorpus, pivot: str) -> dict[str, np.ndarray]:
    return {"mu": bag_scores(bag_vectors(corpus), pivot).to_numpy()}


LETTER_SCORES = work.Kind("letters", _letter_scores)


def bag_hits(bag: sparse.csr_matrix, pivot: sparse.csr_matrix) -> np.ndarray:
    """Which sentences are hits, ``(n,)``; a tie, to what sums leave in binary, is a miss."""
    return ~np.logical_or(*mexa.beaten((bag @ pivot.T).toarray(), SLACK)).any(axis=1)


# --- which of two goes with the task better -------------------------------------------------------


def differences_of_r(
    wide: pd.DataFrame,
    pairs: Sequence[tuple[Hashable, Hashable]],
    families: pd.Series,
    outcome: pd.Series,
    given: Sequence[Hashable] = (),
) -> pd.DataFrame:
    """Is one measure's correlation with the task higher than another's, over the same languages?

    ``wide``: one row per language, one column per measure; columns ``given`` are held. A row for
    each of ``pairs``: ``r`` and ``of other``, without their signs, and the ``difference`` with its
    interval: each family is left out of both, so that what the two share does not widen it
    (jackknife, Student's t of the effective number of families).
    """
    codes, groups = pd.factorize(families.loc[wide.index])
    without = np.vstack([np.ones(len(wide)), codes != np.arange(len(groups))[:, None]])
    y = outcome.loc[wide.index].to_numpy(float)
    freedom = len(wide) ** 2 / (np.bincount(codes) ** 2).sum()

    def r_of(column: Hashable) -> np.ndarray:
        held = (wide[x].to_numpy(float) for x in given)
        columns = statistics.unit_columns([wide[column].to_numpy(float), y, *held], without)
        return np.abs(columns.prod(axis=0).sum(axis=1))

    rows = []
    for measure, other in pairs:
        both = r_of(measure), r_of(other)
        apart = both[0] - both[1]
        ends = statistics.left_out_interval(apart[0], apart[1:], freedom)
        rows.append((measure, other, both[0][0], both[1][0], apart[0], *ends))
    columns = ["measure", "other", "r", "of other", "difference", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


# --- does a line carry to another model? ----------------------------------------------------------


def carried_lines(
    mu: pd.DataFrame, outcomes: pd.DataFrame, families: Mapping[str, str]
) -> pd.DataFrame:
    """A line of one model, outcome on μ over languages, left as it is and read in each other.

    ``mu``, ``outcomes``: language by model. A row per ``line`` and ``model``: ``r2``, 1 - errors /
    spread, with ``low, high``: of log(1 - r2), each family left out (jackknife, Student's t of the
    effective number of families); ``above``, as text: how far outcomes are above the line in the
    mean, with an interval over families.
    """
    mu, outcomes = mu.dropna().align(outcomes.dropna(), "inner", axis=0)
    codes, names = pd.factorize(mu.index.map(families))
    chosen = np.vstack([np.ones(len(mu)), codes != np.arange(len(names))[:, None]])
    freedom = len(mu) ** 2 / (np.bincount(codes) ** 2).sum()
    rows = []
    for line, model in product(outcomes, outcomes):
        true = outcomes[model].to_numpy()
        error = true - np.polyval(np.polyfit(mu[line], outcomes[line], 1), mu[model])
        mean = chosen @ true / chosen.sum(axis=1)
        spread = chosen @ true**2 - chosen.sum(axis=1) * mean**2
        lost, *left_out = np.log(chosen @ error**2 / spread)
        ends = statistics.left_out_interval(lost, np.array(left_out), freedom)
        r2 = 1 - np.exp([lost, *ends[::-1]])
        above = "{:.2f} ({:.2f} to {:.2f})".format(*statistics.mean_interval(error, codes))
        rows.append((line, model, *r2, above))
    return pd.DataFrame(rows, columns=["line", "model", "r2", "low", "high", "above"])


# --- chance ---------------------------------------------------------------------------------------


def chance_table(n: int, hits: np.ndarray | None = None) -> pd.DataFrame:
    """How probable a score is by chance (appendix A.4, Figure 2).

    One row for each number of hits k from 0 to n: ``k``, ``mu`` = k / n, and P(μ ≥ k / n),

    - ``binomial``: as the paper has it, where hits are independent of each other. One hit in a
      matrix of independent elements has p = 1 / (2n - 1), as c_ii is the largest of so many;
    - ``matrix``: of a matrix of independent elements, exactly. Hits i and j are not independent:
      their rows and columns cross in two elements, and both are the likelier hits where these are
      small. The crosses of m given sentences hold m(2n - m) elements; the largest is a diagonal one
      with chance 1 / (2n - m), then the same holds for the other m - 1. So all of j given sentences
      are hits with chance Π 1 / (2n - m), m = 1 … j, and inclusion and exclusion give the tail;
    - ``vectors``, ``low``, ``high``: the share of draws with so many `chance_hits`, if these are
      given, with its interval.

    For large n the first two tend to a Poisson distribution with mean ½.
    """
    k = np.arange(n + 1)
    binomial = stats.binom.sf(k - 1, n, 1 / (2 * n - 1))
    matrix = [_tail(count, n) for count in k]
    table = pd.DataFrame({"k": k, "mu": k / n, "binomial": binomial, "matrix": matrix})
    if hits is None:
        return table
    reached = (hits >= k[:, None]).sum(axis=1)
    low, high = share_interval(reached, np.full(len(k), len(hits)))
    return table.assign(vectors=reached / len(hits), low=low, high=high)


def _tail(k: int, n: int) -> float:
    """P(k hits or more) in a matrix of independent elements."""
    if k == 0:
        return 1.0
    j = np.arange(k, min(n, k + 60) + 1)  # terms shrink faster than 1 / (j - k)!
    log = special.gammaln  # of C(n, j) Π 1 / (2n - m), and of C(j - 1, k - 1)
    log_all = log(n + 1) - log(j + 1) - log(n - j + 1) + log(2 * n - j) - log(2 * n)
    log_ways = log(j) - log(k) - log(j - k + 1)
    return float(((-1.0) ** (j - k) * np.exp(log_all + log_ways)).sum())


def chance_hits(n: int, dim: int, n_draws: int, seed: int = 0) -> np.ndarray:
    """Hits of n sentences that are no translations, ``(n_draws,)``: random vectors in both.

    The cosines of n with n vectors are not n² independent numbers, as appendix A.4 takes them to
    be; this shows what follows for the score.
    """
    rng, counts = np.random.default_rng(seed), []
    chunk = max(1, BLOCK_NUMBERS // (n * max(n, dim)))
    for start in range(0, n_draws, chunk):
        both = rng.normal(size=(2, min(chunk, n_draws - start), n, dim))
        both /= np.linalg.norm(both, axis=-1, keepdims=True)
        row, column = mexa.beaten(both[0] @ both[1].transpose(0, 2, 1), 0.0)
        counts.append((~(row | column).any(axis=2)).sum(axis=1))
    return np.concatenate(counts)


def chosen_layer(table: pd.DataFrame) -> dict[str, int]:
    """The layer of each model whose probes have the lowest validation loss, in English.

    No other language is looked at: that choice can be made where only English has labels.
    """
    losses = table.groupby(["model", "layer"])["validation_loss"].mean()
    return {model: int(rows.idxmin()[1]) for model, rows in losses.groupby("model")}


def task_scores(
    table: pd.DataFrame, layer: int | str = "chosen", *, centred: bool = True
) -> pd.DataFrame:
    """Scores of a task, as `xlx.text.downstream` has them, from what `probe_topics` returns.

    ``layer``: whose probes count: a number, "chosen" (`chosen_layer`) or "mean" (over all);
    ``centred``: which of the two scores (`probing.probe_topics`).

    One row per model and language: ``task``, ``model``, ``language``, ``score`` (accuracy, mean
    over seeds), ``stderr`` (of a share of n sentences: other sentences of the kind), ``n``.
    ValueError for a layer that is not there, and for several checkpoints of a model.
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
    scores = scores.agg(score=("accuracy", "mean"), n=("n", "first"))
    scores["stderr"] = np.sqrt(scores["score"] * (1 - scores["score"]) / scores["n"])
    return scores.assign(task=TOPIC_TASK)[list(downstream.SCORE_COLUMNS)]
