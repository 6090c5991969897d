"""Do the ABX scores measure what they claim? Sampled against exact, errors, controls.

The checks of de Seyssel et al. (2025), section 4.1 and Appendix B, each a table over several models
and kept like the scores themselves (`xlx.core.work`). ``options`` are those of
`checkpoint_scores.checkpoint_scores`.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from xlx.abx import discrimination, measurement, shuffles, triplets
from xlx.abx.averages import average
from xlx.abx.checkpoint_scores import CheckpointScores, checkpoint_scores, group_sizes, label_runs
from xlx.core import statistics, work
from xlx.models import embeddings, loading
from xlx.models.loading import Name
from xlx.text import corpora
from xlx.text.corpora import ParallelCorpus

_Pairs = Sequence[tuple[str, str]]


def neighbouring_pairs(languages: Sequence[str], n: int | None = None) -> list[tuple[str, str]]:
    """Pairs in an order that has each language equally often, as far as ``n`` of them allow.

    First each language with the next one, then with the one after that, and so on around.
    """
    pairs = [
        (language, languages[(i + step) % len(languages)])
        for step in range(1, len(languages) // 2 + 1)
        for i, language in enumerate(languages)
    ]
    return pairs[: n or len(pairs)]


def sampling(
    names: Sequence[Name],
    corpus: ParallelCorpus,
    pairs: _Pairs,
    *,
    n_triplets: int,
    n_runs: int,
    seed: int,
    **options: object,
) -> pd.DataFrame:
    """The sampled score, in independent runs (`abx.sampled`), against the exact one.

    Returns one row a condition: ``model``, ``task``, ``layer``, ``language_1``, ``language_2``,
    ``mean`` and ``sd`` over runs, ``exact``, ``expected_sd`` (of a share of so many triplets),
    ``error`` (of the mean).
    """
    draw = {"n_triplets": n_triplets, "n_runs": n_runs, "seed": seed}
    runs = _of_models(SAMPLED, names, corpus, pairs, options, draw)
    keys = ["model", "task", "layer", "language_1", "language_2"]
    spread = runs.groupby(keys, as_index=False)["score"].agg(["mean", "std"])
    measured = checkpoint_scores(names, corpus, **options)
    exact = discrimination.pair_scores(pd.concat([of.table() for of in measured]))
    turned = exact.rename(columns={"language_1": "language_2", "language_2": "language_1"})
    both = pd.concat([exact, turned])[[*keys, "score"]]
    spread = spread.merge(both, on=keys).rename(columns={"score": "exact", "std": "sd"})
    spread["expected_sd"] = np.sqrt(spread["exact"] * (1 - spread["exact"]) / n_triplets)
    spread["error"] = (spread["mean"] - spread["exact"]).abs()
    return spread


def errors(
    names: Sequence[Name],
    corpus: ParallelCorpus,
    pairs: _Pairs,
    *,
    n_resamples: int,
    seed: int,
    **options: object,
) -> pd.DataFrame:
    """The standard error of single pairs at the last layer, by what else could have been drawn.

    Returns one row a model, pair and task: ``model``, ``language_1``, ``language_2``, ``task``,
    ``score``, ``jackknife`` and ``bootstrap`` (over sentences), ``documents`` (a jackknife).
    """
    draw = {"n_resamples": n_resamples, "seed": seed}
    return _of_models(ERRORS, names, corpus, pairs, options, draw)


def grouped_errors(
    measured: Sequence[CheckpointScores], tasks: Sequence[str], *, embedding_layer: bool = True
) -> pd.DataFrame:
    """How sure a mean over layers and pairs is if sentences, or whole documents, were others.

    One row a model, checkpoint and task: ``score``, ``sentences`` and ``documents`` (standard
    errors), ``ratio`` of the second to the first.
    """
    rows = []
    for of in measured:
        for task in tasks:
            means = {
                over: average(of, task, over=over, embedding_layer=embedding_layer)
                for over in ("sentences", "documents")
            }
            errors_over = {over: float(mean.error) for over, mean in means.items()}
            head = {"model": of.model, "checkpoint": of.step, "task": task}
            rows.append(head | {"score": float(means["documents"].score)} | errors_over)
    table = pd.DataFrame(rows)
    return table.assign(ratio=table["documents"] / table["sentences"])


def shuffled_controls(
    names: Sequence[Name], corpus: ParallelCorpus, *, seed: int, **options: object
) -> pd.DataFrame:
    """`shuffles.shuffled_scores` of all shuffles, with 95 % intervals over documents.

    ``control``: which score of which shuffle; MD is shown where meanings are shuffled, LD where
    languages are. A row a model, control and layer.
    """
    tables = []
    for how in shuffles.SHUFFLES:
        task = "LD" if how == "labels" else "MD"
        table = shuffles.shuffled_scores(names, corpus, how, seed=seed, **options)
        tables.append(table[table["task"] == task].assign(control=f"{task}, {how} shuffled"))
    table = pd.concat(tables, ignore_index=True)
    n_documents = len(set(corpora.documents(corpus)))
    width = stats.t.ppf((1 + statistics.LEVEL) / 2, n_documents - 1) * table["error"]
    return table.assign(low=table["score"] - width, high=table["score"] + width)


def control_scores(
    names: Sequence[Name],
    corpus: ParallelCorpus,
    *,
    n_triplets: int,
    seed: int,
    **options: object,
) -> pd.DataFrame:
    """Scores of tasks in which the variable of interest is held constant: 0.5 is expected.

    Returns one row a model, task and layer: ``model``, ``task``, ``layer``, ``score``, ``low``,
    ``high``, of intervals that hold together at 95 % (Bonferroni).
    """
    draw = {"n_triplets": n_triplets, "seed": seed}
    drawn = _of_models(CONTROLS, names, corpus, None, options, draw)
    level = 1 - (1 - statistics.LEVEL) / len(drawn)
    bounds = [statistics.share_interval(row.won, row.n, level) for row in drawn.itertuples()]
    drawn["low"], drawn["high"] = zip(*bounds, strict=True)
    drawn["score"] = drawn["won"] / drawn["n"]
    return drawn[["model", "task", "layer", "score", "low", "high"]]


def _of_models(
    kind: work.Kind,
    names: Sequence[Name],
    corpus: ParallelCorpus,
    pairs: _Pairs | None,
    options: Mapping[str, object],
    draw: Mapping[str, int],
) -> pd.DataFrame:
    """A kind's tables of several models, with ``model`` in front, on the languages of the pairs."""
    about: dict[str, object] = dict(draw)
    if kind is ERRORS:
        about["documents"] = label_runs(corpora.documents(corpus))
    rest: tuple = (draw,)
    if pairs is not None:
        inside = {code for pair in pairs for code in pair}
        corpus = corpus.select([code for code in corpus.languages if code in inside])
        about["pairs"] = [list(pair) for pair in pairs]
        rest = pairs, draw
    values = measurement.values_of(kind, names, corpus, options, *rest, about=about)
    tables = [
        table.assign(model=loading.series_name(loading.identify(name)))
        for table, name in zip(values, names, strict=True)
    ]
    whole = pd.concat(tables, ignore_index=True)
    return whole[["model", *whole.columns.drop("model")]]


def _states(
    name: Name, corpus: ParallelCorpus, options: Mapping[str, object]
) -> dict[str, np.ndarray]:
    return embeddings.embed_corpus(loading.load(name), corpus, **options).states


def _sampled(
    name: Name,
    corpus: ParallelCorpus,
    options: Mapping[str, object],
    pairs: _Pairs,
    draw: Mapping[str, int],
) -> pd.DataFrame:
    return discrimination.sampled(_states(name, corpus, options), pairs, **draw)


def _errors(
    name: Name,
    corpus: ParallelCorpus,
    options: Mapping[str, object],
    pairs: _Pairs,
    draw: Mapping[str, int],
) -> pd.DataFrame:
    states = {code: states[-1] for code, states in _states(name, corpus, options).items()}
    documents = corpora.documents(corpus)
    groups, sizes = {"documents": documents}, group_sizes(documents)
    exact = discrimination.exact(states, pairs=pairs, influence=True, groups=groups)
    rows = []
    for column, pair in enumerate(exact.pairs):
        for task in ("LD", "MD"):
            kernel = discrimination.kernel(states, pair, task)
            resampled = statistics.bootstrap_kernel(kernel, **draw)
            score = exact.scores[task][0, column].mean()
            error = float(statistics.jackknife_error(exact.influence[task][0, column]))
            without = exact.left_out["documents"][task][0, column]
            by_document = float(statistics.left_out_error(score, without, sizes))
            rows.append((*pair, task, score, error, resampled.std(), by_document))
    columns = ["language_1", "language_2", "task", "score", "jackknife", "bootstrap", "documents"]
    return pd.DataFrame(rows, columns=columns)


def _controls(
    name: Name, corpus: ParallelCorpus, options: Mapping[str, object], draw: Mapping[str, int]
) -> pd.DataFrame:
    """``task``, ``layer``, ``won`` (a tie counts one half) of ``n`` triplets."""
    states = _states(name, corpus, options)
    rows = []
    for task in ("LD", "MD"):
        control = triplets.sample_control(task, corpus.languages, len(corpus), **draw)
        for layer in range(len(states[corpus.languages[0]])):
            vectors = {code: array[layer] for code, array in states.items()}
            scores = discrimination.score_triplets(vectors, control)
            rows.append((task, layer, scores.sum(), len(scores)))
    return pd.DataFrame(rows, columns=["task", "layer", "won", "n"])


def _apart(stored: pd.DataFrame, computed: pd.DataFrame) -> float:
    """As `work.largest_difference`, of shares of triplets."""
    shares = [table.assign(won=table["won"] / table["n"]) for table in (stored, computed)]
    return work.largest_difference(*shares)


#: Near ties fall differently where vectors differ in their last digits.
SAMPLED = work.Kind("abx-sampled", _sampled, version=1, tolerance=1e-3)
ERRORS = work.Kind("abx-errors", _errors, version=2, tolerance=1e-3)
CONTROLS = work.Kind("abx-controls", _controls, version=1, tolerance=2e-3, difference=_apart)
