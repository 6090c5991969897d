"""The ABX lens along a training history: embed a checkpoint, score it, keep the scores.

`measure` takes one model, `measure_series` every checkpoint of a series; both look into the store
first, so a notebook that was run once is quick, and four notebooks share one computation.
`summarise` averages over pairs and, as wanted, layers, with intervals over sentences.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from xlx import abx, alignment, embeddings, models, similarity, statistics
from xlx.corpora import ParallelCorpus
from xlx.store import Store, code_version


@dataclass(frozen=True)
class Measurement:
    """The scores of one checkpoint on one corpus.

    Attributes
    ----------
    model : str
        Name of the model or series.
    step : int
        Training step of the checkpoint; 0 where the model has no history.
    scores : PairScores
        With influence, at every layer.
    cut : dict
        Language → sentences cut at the maximum length.
    """

    model: str
    step: int
    scores: abx.PairScores
    cut: dict[str, int]

    def table(self) -> pd.DataFrame:
        """`PairScores.table` with the columns ``model`` and ``checkpoint`` in front."""
        table = self.scores.table()
        table.insert(0, "model", self.model)
        table.insert(1, "checkpoint", self.step)
        return table


def measure(
    name: str | Path | models.Checkpoint,
    corpus: ParallelCorpus,
    *,
    pooling: str = "mean",
    special_tokens: bool = False,
    max_length: int | None = None,
    device: str | None = None,
    dtype: str = "float32",
    store: Store | None = None,
    progress: bool = True,
) -> Measurement:
    """LD, MD and retrieval of a model for all language pairs of a corpus, at every layer.

    Options as `models.load` and `embeddings.embed_corpus`; errors as theirs and `abx.exact`'s.
    """
    store = store or Store()
    encoder = models.load(name, device=device, dtype=dtype)
    options = {"pooling": pooling, "special_tokens": special_tokens, "max_length": max_length}
    key = embeddings.corpus_key(encoder, corpus, **options) | {
        "scores": code_version(similarity, alignment.top1_credit, abx)
    }
    stored = store.load_arrays("abx", key)
    if stored is None:
        embedded = embeddings.embed_corpus(
            encoder, corpus, **options, store=store, progress=progress
        )
        scores = abx.exact(embedded.states, influence=True, device=encoder.device)
        stored = {"cut": np.array([embedded.cut[code] for code in corpus.languages])}
        for task in abx.TASKS:
            stored[f"score {task}"] = scores.scores[task]
            stored[f"influence {task}"] = scores.influence[task]
        store.save_arrays("abx", key, stored)
    codes = corpus.languages
    return Measurement(
        series_name(encoder),
        encoder.step or 0,
        abx.PairScores(
            tuple((a, b) for i, a in enumerate(codes) for b in codes[i + 1 :]),
            tuple(range(encoder.n_layers + 1)),
            corpus.n_sentences,
            {task: stored[f"score {task}"] for task in abx.TASKS},
            {task: stored[f"influence {task}"] for task in abx.TASKS},
        ),
        dict(zip(codes, stored["cut"].tolist(), strict=True)),
    )


def series_name(encoder: models.Encoder) -> str:
    """The name of a model without its step, and of a folder without its path."""
    suffix = "" if encoder.step is None else f"@step-{encoder.step:06d}"
    name = encoder.name.removesuffix(suffix)
    return Path(name).name if Path(name).is_dir() else name


def history(name: str, *, leave_out: Sequence[int] = ()) -> list[models.Checkpoint] | list[str]:
    """The checkpoints of a series in the order of training; a model without a history is itself.

    `leave_out` names steps to skip: the paper leaves out step 450,000, where its training was
    unstable (footnote 7). Raises ValueError for a step that the series does not have.
    """
    try:
        checkpoints = models.checkpoints(name)
    except models.NoHistoryError:
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


def measure_series(
    name: str, corpus: ParallelCorpus, *, leave_out: Sequence[int] = (), **options: object
) -> list[Measurement]:
    """`measure` at every checkpoint of the `history` of a series."""
    return [
        measure(checkpoint, corpus, **options) for checkpoint in history(name, leave_out=leave_out)
    ]


def table(measurements: Sequence[Measurement]) -> pd.DataFrame:
    """The tidy tables of several measurements, one below the other."""
    return pd.concat([measured.table() for measured in measurements], ignore_index=True)


def summarise(
    measurements: Sequence[Measurement],
    by: Sequence[str] = (),
    *,
    layers: Sequence[int] | None = None,
    embedding_layer: bool = True,
    level: float = statistics.LEVEL,
) -> pd.DataFrame:
    """Mean scores with intervals over sentences, one row per model, checkpoint and task.

    Parameters
    ----------
    by : sequence of {"layer", "language"}
        Further keys; what is not named is averaged over. A language's score is the mean over its
        pairs with all others.
    layers : sequence of int, optional
        Those that count, by default all; negative numbers count from the last.
    embedding_layer : bool
        Whether layer 0 is among "all" (see `abx.average_layers`).

    Returns
    -------
    DataFrame
        ``model``, ``checkpoint``, ``task``, the keys, ``score``, ``low``, ``high`` (of a normal
        interval from the jackknife over sentences).
    """
    unknown = set(by) - {"layer", "language"}
    if unknown:
        raise ValueError(f"cannot summarise by {unknown.pop()!r}: choose layer, language or both")
    rows = []
    for measured in measurements:
        scores = measured.scores
        at = _kept_layers(scores, layers, embedding_layer)
        languages, membership = _membership(scores.pairs)
        for task in abx.TASKS:
            score = scores.scores[task][at].mean(axis=-1)  # (layers, pairs)
            influence = scores.influence[task][at]  # (layers, pairs, sentences)
            over_layers = "layer" not in by
            if over_layers:
                score, influence = (
                    score.mean(axis=0, keepdims=True),
                    influence.mean(0, keepdims=True),
                )
            weights = membership if "language" in by else np.full((1, len(scores.pairs)), 1.0)
            weights = weights / weights.sum(axis=1, keepdims=True)
            score = score @ weights.T  # (layers, groups)
            influence = np.einsum("gp,lpn->lgn", weights.astype(np.float32), influence)
            error = statistics.jackknife_error(influence, order=1 if task == "retrieval" else 2)
            low, high = statistics.interval(score, error, level)
            for layer, group in np.ndindex(score.shape):
                row = {"model": measured.model, "checkpoint": measured.step, "task": task}
                if not over_layers:
                    row["layer"] = scores.layers[at[layer]]
                if "language" in by:
                    row["language"] = languages[group]
                at_cell = (layer, group)
                row |= {"score": score[at_cell], "low": low[at_cell], "high": high[at_cell]}
                rows.append(row)
    return pd.DataFrame(rows)


def difference(
    one: Measurement,
    other: Measurement,
    task: str,
    *,
    layers: Sequence[int] | None = None,
    other_layers: Sequence[int] | None = None,
    embedding_layer: bool = True,
    level: float = statistics.LEVEL,
) -> dict[str, float]:
    """Mean score of `one` minus that of `other`, with the interval of the difference.

    Both are means over all pairs; each over its own layers, as in `summarise`. The same sentences
    are behind both, so the interval is narrower than those of the two scores suggest.

    Returns ``value``, ``low`` and ``high``.
    """
    score, influence = _mean(one, task, layers, embedding_layer)
    other_score, other_influence = _mean(other, task, other_layers, embedding_layer)
    order = 1 if task == "retrieval" else 2
    error = statistics.jackknife_error(influence - other_influence, order)
    width = statistics.half_width(error, level)
    value = score - other_score
    return {"value": value, "low": value - width, "high": value + width}


def _kept_layers(
    scores: abx.PairScores, layers: Sequence[int] | None, embedding_layer: bool
) -> list[int]:
    """Layers that count, as rows of the score arrays."""
    if layers is not None:
        return sorted(range(len(scores.layers))[layer] for layer in layers)
    return [row for row, layer in enumerate(scores.layers) if embedding_layer or layer > 0]


def _mean(
    measured: Measurement, task: str, layers: Sequence[int] | None, embedding_layer: bool
) -> tuple[float, np.ndarray]:
    """Mean score over pairs and layers, and its influence ``(n_sentences,)``."""
    at = _kept_layers(measured.scores, layers, embedding_layer)
    return (
        float(measured.scores.scores[task][at].mean()),
        measured.scores.influence[task][at].mean(axis=(0, 1)),
    )


def _membership(pairs: Sequence[tuple[str, str]]) -> tuple[list[str], np.ndarray]:
    """The languages, and ``(n_languages, n_pairs)`` with 1 where a language is in a pair."""
    languages = list(dict.fromkeys(code for pair in pairs for code in pair))
    inside = np.array([[float(code in pair) for pair in pairs] for code in languages])
    return languages, inside
