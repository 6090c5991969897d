"""Do the ABX scores measure what they claim? Sampled against exact, errors, controls.

The checks of de Seyssel et al. (2025), section 4.1 and Appendix B, each a table over several models
and kept like the scores themselves (`xlx.core.work`). ``options`` are those of
`measurement.measure_all`.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from xlx.abx import discrimination, measurement, series, triplets
from xlx.core import statistics, work
from xlx.models import embeddings, loading
from xlx.models.loading import Name
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
    measured = measurement.measure_all(names, corpus, **options)
    exact = discrimination.pair_scores(series.score_table(measured))
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
    """The standard error of single pairs at the last layer: by influence, and by a bootstrap.

    Returns one row a model, pair and task: ``model``, ``language_1``, ``language_2``, ``task``,
    ``score``, ``jackknife``, ``bootstrap``.
    """
    draw = {"n_resamples": n_resamples, "seed": seed}
    return _of_models(ERRORS, names, corpus, pairs, options, draw)


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
    exact = discrimination.exact(states, pairs=pairs, influence=True)
    rows = []
    for column, pair in enumerate(exact.pairs):
        for task in ("LD", "MD"):
            kernel = discrimination.kernel(states, pair, task)
            resampled = statistics.bootstrap_kernel(kernel, **draw)
            score = exact.scores[task][0, column].mean()
            error = statistics.jackknife_error(exact.influence[task][0, column])
            rows.append((*pair, task, score, float(error), resampled.std()))
    columns = ["language_1", "language_2", "task", "score", "jackknife", "bootstrap"]
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
ERRORS = work.Kind("abx-errors", _errors, version=1, tolerance=1e-3)
CONTROLS = work.Kind("abx-controls", _controls, version=1, tolerance=2e-3, difference=_apart)
