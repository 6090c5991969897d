"""The ABX lens along a training history, and averages of what it finds.

`measure_model` takes one model, `measure_series` every checkpoint of a series; both look for a
result first (`xlx.core.work`). `summarise` averages over pairs and, as asked, layers, with
intervals over sentences.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from xlx.abx import discrimination
from xlx.abx.discrimination import SCORES
from xlx.abx.measurement import (
    Measurement,
    influence_order,
    language_weights,
    layers_of_mean,
    measure_all,
    texts_of,
)
from xlx.core import checks, statistics, work
from xlx.models import embeddings, loading
from xlx.models.loading import Name
from xlx.text.corpora import ParallelCorpus


def measure_model(name: Name, corpus: ParallelCorpus, **options: object) -> Measurement:
    """`measure_all` of one model."""
    (measured,) = measure_all([name], corpus, **options)
    return measured


def measure_series(
    name: str, corpus: ParallelCorpus, *, leave_out: Sequence[int] = (), **options: object
) -> list[Measurement]:
    """`measure_all` of every checkpoint of the `history` of a series."""
    return measure_all(history(name, leave_out=leave_out), corpus, **options)


def history(
    name: str, *, leave_out: Sequence[int] = (), recorded: bool = False
) -> list[loading.Checkpoint] | list[str]:
    """The checkpoints of a series in the order of training; a model without a history is itself.

    ``recorded``: those whose weights are not shipped, too (`loading.recorded_checkpoints`);
    `leave_out` names steps to skip: the paper leaves out step 450,000, where its training was
    unstable (footnote 7). Raises ValueError for a step that the series does not have.
    """
    try:
        checkpoints = (loading.recorded_checkpoints if recorded else loading.checkpoints)(name)
    except loading.NoHistoryError:
        if leave_out:
            raise
        return [name]
    steps = [checkpoint.step for checkpoint in checkpoints]
    unknown = [step for step in leave_out if step not in steps]
    if unknown:
        raise ValueError(
            f"{name} has no checkpoint {unknown[0]} to leave out: it has "
            f"{', '.join(map(str, steps))}"
        )
    return [checkpoint for checkpoint in checkpoints if checkpoint.step not in leave_out]


def bag_scores(name: Name, corpus: ParallelCorpus, max_length: int | None = None) -> pd.DataFrame:
    """What a bag of subwords scores: LD, MD and retrieval without a model, but its vocabulary.

    Returns `abx.pair_scores` of `embeddings.bag_of_subwords`.
    """
    about = {
        "model": loading.fingerprint(name),
        "texts": texts_of(corpus),
        "max_length": max_length,
    }
    return work.result(BAG_SCORES, about, name, corpus, max_length)


def _bag(name: Name, corpus: ParallelCorpus, max_length: int | None) -> pd.DataFrame:
    bags = embeddings.bag_of_subwords(loading.load(name), corpus, max_length=max_length)
    return discrimination.pair_scores(discrimination.exact(bags).table())


#: The same on every machine but for the order in which float32 products are summed.
BAG_SCORES = work.Kind("abx-bag", _bag, version=1, tolerance=1e-4)


def score_table(measurements: Sequence[Measurement]) -> pd.DataFrame:
    """The tidy tables of several measurements, one below the other."""
    return pd.concat([measured.table() for measured in measurements], ignore_index=True)


def summarise(
    measurements: Sequence[Measurement],
    by: Sequence[str] = (),
    *,
    layers: Sequence[int] | None = None,
    embedding_layer: bool = True,
) -> pd.DataFrame:
    """Mean scores with 95 % intervals over sentences, one row per model, checkpoint and task.

    What of "layer" and "language" is not named in ``by`` is averaged over; a language's score is
    the mean over its pairs with all others. ``layers`` are those that count (negative numbers from
    the last), by default all; ``embedding_layer``: whether 0 is among them.

    Returns ``model``, ``checkpoint``, ``task``, the keys, ``score``, ``low``, ``high`` (of a normal
    interval from the jackknife over sentences).
    """
    unknown = set(checks.several(by, "keys")) - {"layer", "language"}
    if unknown:
        raise ValueError(f"cannot summarise by {unknown.pop()!r}: choose layer, language or both")
    measurements = checks.several(measurements, "measurements")
    if not measurements:
        raise ValueError("there is no measurement to summarise")
    tables = [
        _summary(measured, task, by, layers, embedding_layer)
        for measured in measurements
        for task in SCORES
    ]
    return pd.concat(tables, ignore_index=True)


def _summary(
    measured: Measurement,
    task: str,
    by: Sequence[str],
    layers: Sequence[int] | None,
    embedding_layer: bool,
) -> pd.DataFrame:
    """`summarise` of one task of one measurement."""
    kept = layers_of_mean(len(measured.scores.layers), layers, embedding_layer)
    score = measured.scores.scores[task][kept].mean(axis=-1)  # (layers, pairs)
    influence = measured.influence[task][kept]  # (layers, languages, sentences)
    languages, weights = language_weights(measured.scores.pairs)
    if "layer" not in by:
        score, influence = (array.mean(axis=0, keepdims=True) for array in (score, influence))
    if "language" in by:
        score = score @ weights.T
    else:
        score, influence = (array.mean(axis=1, keepdims=True) for array in (score, influence))
    error = statistics.jackknife_error(influence, influence_order(task))
    low, high = statistics.interval(score, error)
    layer, group = np.indices(score.shape).reshape(2, -1)
    columns = {"model": measured.model, "checkpoint": measured.step, "task": task}
    if "layer" in by:
        columns["layer"] = np.array(measured.scores.layers)[kept][layer]
    if "language" in by:
        columns["language"] = np.array(languages)[group]
    numbers = {"score": score.ravel(), "low": low.ravel(), "high": high.ravel()}
    return pd.DataFrame(columns | numbers)


def document_errors(
    measurements: Sequence[Measurement], groups: Sequence[str], *, embedding_layer: bool = True
) -> pd.DataFrame:
    """How sure a mean over layers and pairs is if sentences, or whole documents, were others.

    One row a model, checkpoint and task: ``score``, ``sentences`` and ``documents`` (standard
    errors), ``ratio`` of the second to the first.
    """
    rows = []
    for measured in measurements:
        for task in SCORES:
            score, influence = measured.mean(task, embedding_layer=embedding_layer)
            order = influence_order(task)
            plain = float(statistics.jackknife_error(influence, order))
            grouped = float(statistics.grouped_error(influence, groups, order))
            rows.append((measured.model, measured.step, task, score, plain, grouped))
    columns = ["model", "checkpoint", "task", "score", "sentences", "documents"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(ratio=table["documents"] / table["sentences"])


def cut_shares(measured: Measurement) -> pd.Series:
    """Language → share of its sentences cut at the maximum length, the largest first."""
    shares = pd.Series(measured.cut, name="cut", dtype=float) / measured.scores.n_sentences
    return shares.sort_values(ascending=False, kind="stable")
