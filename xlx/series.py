"""The ABX lens along a training history: embed a checkpoint, score it, keep the scores.

`measure` takes one model, `measure_series` every checkpoint of a series; both look for a result
first (`xlx.work`), so a notebook that was run once is quick, and four notebooks share one
computation. `summarise` averages over pairs and, as wanted, layers, with intervals over sentences.

Of the influence of the positions (see `xlx.abx`) the mean over a language's pairs is kept, not that
of every pair: the mean over all pairs is the mean over languages, so every average that is asked
for has its interval, from a thirtieth of the numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from xlx import abx, checks, embeddings, models, statistics, work
from xlx.corpora import ParallelCorpus

#: What a model is called: a name, a folder, a checkpoint.
Name = str | Path | models.Checkpoint

#: Steps between the lowest and the highest influence of a layer.
LEVELS = 2**16 - 1


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
        At every layer, without influence.
    influence : dict
        Task → float32 ``(n_layers, n_languages, n_sentences)``: the mean over the pairs that hold
        the language.
    cut : dict
        Language → sentences cut at the maximum length.
    texts : tuple of str
        SHA-256 of the text of each language.
    """

    model: str
    step: int
    scores: abx.PairScores
    influence: dict[str, np.ndarray]
    cut: dict[str, int]
    texts: tuple[str, ...] = ()

    def table(self) -> pd.DataFrame:
        """`PairScores.table` with the columns ``model`` and ``checkpoint`` in front."""
        table = self.scores.table()
        table.insert(0, "model", self.model)
        table.insert(1, "checkpoint", self.step)
        return table


def measure(name: Name, corpus: ParallelCorpus, **options: object) -> Measurement:
    """`measure_all` of one model."""
    (measured,) = measure_all([name], corpus, **options)
    return measured


def measure_series(
    name: str, corpus: ParallelCorpus, *, leave_out: Sequence[int] = (), **options: object
) -> list[Measurement]:
    """`measure_all` of every checkpoint of the `history` of a series."""
    return measure_all(history(name, leave_out=leave_out), corpus, **options)


def measure_all(
    names: Sequence[Name],
    corpus: ParallelCorpus,
    *,
    pooling: str = "mean",
    special_tokens: bool = False,
    max_length: int | None = None,
) -> list[Measurement]:
    """LD, MD and retrieval of models for all language pairs of a corpus, at every layer.

    Options as `embeddings.embed_corpus`; errors as its, `models.load`'s and `abx.exact`'s. Where
    vectors are computed, languages that a model cannot read are warned of (`checks.TextWarning`).
    """
    names = checks.several(names, "models")
    checks.parallel(corpus)
    if len(corpus.languages) < 2:
        raise ValueError("two languages or more are needed: a score compares languages")
    options = {"pooling": pooling, "special_tokens": special_tokens, "max_length": max_length}
    found = work.results(
        MEASURED,
        [embeddings.corpus_about(name, corpus, **options) for name in names],
        lambda missing: (([i], (names[i], corpus, options)) for i in missing),
        what="ABX",
        alone=True,
    )
    return [_measurement(name, corpus, value) for name, value in zip(names, found, strict=True)]


def _measured(
    name: Name, corpus: ParallelCorpus, options: Mapping[str, object]
) -> dict[str, np.ndarray]:
    """Scores of every pair and influence by language, packed: see `_unpacked`."""
    encoder = models.load(name)
    embedded = embeddings.embed_corpus(encoder, corpus, **options)
    found = abx.exact(embedded.states, influence=True, device=encoder.device)
    _, membership = _membership(found.pairs)
    weights = (membership / membership.sum(axis=1, keepdims=True)).astype(np.float32)
    packed = {"cut": np.array([embedded.cut[code] for code in corpus.languages])}
    for task in abx.TASKS:
        score = found.scores[task]
        if task == "retrieval":
            packed[f"score {task}"] = score
        else:
            n_triplets = found.n_sentences * (found.n_sentences - 1)
            packed[f"won {task}"] = np.rint(2 * n_triplets * score).astype(np.int64)
        influence = np.einsum("gp,lpn->lgn", weights, found.influence[task])
        lowest = influence.min(axis=(1, 2))
        step = (influence.max(axis=(1, 2)) - lowest).astype(np.float64) / LEVELS
        codes = (influence - lowest[:, None, None]) / np.where(step > 0, step, 1)[:, None, None]
        packed[f"influence {task}"] = np.rint(codes).astype(np.uint16)
        packed[f"lowest {task}"] = lowest
        packed[f"step {task}"] = step
    return packed


def _unpacked(
    value: Mapping[str, np.ndarray],
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Scores and influence by task.

    LD and MD are kept as the number of comparisons won, a tie counting one, of twice as many as
    there are triplets: whole numbers take a quarter of the space. Influence is kept in steps of
    a few thousandths of a per cent, between the lowest and the highest of its layer.
    """
    scores, influence = {}, {}
    for task in abx.TASKS:
        codes = value[f"influence {task}"]
        step, lowest = value[f"step {task}"][:, None, None], value[f"lowest {task}"][:, None, None]
        influence[task] = (codes * step + lowest).astype(np.float32)
        if task == "retrieval":
            scores[task] = value[f"score {task}"]
        else:
            n = codes.shape[-1]
            scores[task] = value[f"won {task}"] / (2 * n * (n - 1))
    return scores, influence


def _apart(stored: work.Value, computed: work.Value) -> float:
    """The largest difference between two measurements' scores of languages, or their errors."""
    if {name: array.shape for name, array in stored.items()} != {
        name: array.shape for name, array in computed.items()
    }:
        return np.inf
    one, other = _unpacked(stored), _unpacked(computed)
    n_languages = len(stored["cut"])
    first, second = np.triu_indices(n_languages, 1)
    largest = float(np.abs(stored["cut"] - computed["cut"]).max())
    for task in abx.TASKS:
        change = (one[0][task] - other[0][task]).mean(axis=-1)  # (layers, pairs)
        by_language = np.stack(
            [change[:, (first == i) | (second == i)].mean(axis=1) for i in range(n_languages)]
        )
        errors = [statistics.jackknife_error(influence[task]) for _, influence in (one, other)]
        largest = max(largest, np.abs(by_language).max(), np.abs(errors[0] - errors[1]).max())
    return largest


#: A value: ``cut`` (n_languages,), and of each task what `_unpacked` reads.
MEASURED = work.Kind("abx", _measured, version=1, tolerance=1e-3, difference=_apart)


def _measurement(
    name: Name, corpus: ParallelCorpus, value: Mapping[str, np.ndarray]
) -> Measurement:
    identity = models.identify(name)
    scores, influence = _unpacked(value)
    codes = corpus.languages
    pairs = tuple((a, b) for i, a in enumerate(codes) for b in codes[i + 1 :])
    layers = tuple(range(len(scores["LD"])))
    return Measurement(
        series_name(identity),
        identity.step or 0,
        abx.PairScores(pairs, layers, corpus.n_sentences, scores, {}),
        influence,
        dict(zip(codes, value["cut"].tolist(), strict=True)),
        tuple(map(corpus.text_hash, codes)),
    )


def bag_scores(name: Name, corpus: ParallelCorpus, max_length: int | None = None) -> pd.DataFrame:
    """What a bag of subwords scores: LD, MD and retrieval without a model, but its vocabulary.

    Returns `abx.pair_scores` of `embeddings.bag_of_subwords`.
    """
    about = {
        "model": models.fingerprint(name),
        "texts": [[code, corpus.text_hash(code)] for code in corpus.languages],
        "max_length": max_length,
    }
    return work.result(BAG, about, name, corpus, max_length)


def _bag(name: Name, corpus: ParallelCorpus, max_length: int | None) -> pd.DataFrame:
    bags = embeddings.bag_of_subwords(models.load(name), corpus, max_length=max_length)
    return abx.pair_scores(abx.exact(bags).table())


#: The same on every machine but for the order in which float32 products are summed.
BAG = work.Kind("abx-bag", _bag, version=1, tolerance=1e-4)


def series_name(encoder: models.Encoder | models.Identity) -> str:
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
    unknown = set(checks.several(by, "keys")) - {"layer", "language"}
    if unknown:
        raise ValueError(f"cannot summarise by {unknown.pop()!r}: choose layer, language or both")
    measurements = checks.several(measurements, "measurements")
    if not measurements:
        raise ValueError("there is no measurement to summarise")
    checks.level(level)
    rows = []
    for measured in measurements:
        scores = measured.scores
        at = _kept_layers(scores, layers, embedding_layer)
        languages, membership = _membership(scores.pairs)
        over_layers = "layer" not in by
        for task in abx.TASKS:
            score = scores.scores[task][at].mean(axis=-1)  # (layers, pairs)
            influence = measured.influence[task][at]  # (layers, languages, sentences)
            if over_layers:
                score = score.mean(axis=0, keepdims=True)
                influence = influence.mean(axis=0, keepdims=True)
            if "language" in by:
                score = score @ (membership / membership.sum(axis=1, keepdims=True)).T
            else:
                score = score.mean(axis=1, keepdims=True)
                influence = influence.mean(axis=1, keepdims=True)
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

    Returns ``value``, ``low`` and ``high``. Raises ValueError for a task or layer that there is
    not, and for measurements of other text.
    """
    checks.one_of(task, abx.TASKS, "task")
    if (one.scores.pairs, one.texts) != (other.scores.pairs, other.texts):
        raise ValueError(
            "the two measurements are of other languages or sentences: measure both models on one "
            "corpus"
        )
    score, influence = mean(one, task, layers, embedding_layer)
    other_score, other_influence = mean(other, task, other_layers, embedding_layer)
    order = 1 if task == "retrieval" else 2
    error = statistics.jackknife_error(influence - other_influence, order)
    width = statistics.half_width(error, level)
    value = score - other_score
    return {"value": value, "low": value - width, "high": value + width}


def documents(corpus: ParallelCorpus) -> list[str]:
    """The document of each position, by its id; where ids name none, each position is its own."""
    return [name.rsplit(":", 1)[0] for name in corpus.ids]


def document_errors(
    measurements: Sequence[Measurement], groups: Sequence[str], *, embedding_layer: bool = True
) -> pd.DataFrame:
    """How sure a mean over layers and pairs is if sentences, or whole documents, were others.

    One row a model, checkpoint and task: ``score``, ``sentences`` and ``documents`` (standard
    errors), ``ratio`` of the second to the first.
    """
    rows = []
    for measured in measurements:
        for task in abx.TASKS:
            score, influence = mean(measured, task, embedding_layer=embedding_layer)
            order = 1 if task == "retrieval" else 2
            plain = float(statistics.jackknife_error(influence, order))
            grouped = float(statistics.grouped_error(influence, groups, order))
            rows.append((measured.model, measured.step, task, score, plain, grouped))
    columns = ["model", "checkpoint", "task", "score", "sentences", "documents"]
    found = pd.DataFrame(rows, columns=columns)
    return found.assign(ratio=found["documents"] / found["sentences"])


def cut_shares(measured: Measurement) -> pd.Series:
    """Language → share of its sentences cut at the maximum length, the largest first."""
    shares = pd.Series(measured.cut, name="cut", dtype=float) / measured.scores.n_sentences
    return shares.sort_values(ascending=False, kind="stable")


def _kept_layers(
    scores: abx.PairScores, layers: Sequence[int] | None, embedding_layer: bool
) -> list[int]:
    """Layers that count, as rows of the score arrays."""
    if layers is not None:
        return sorted(checks.layers(layers, len(scores.layers), from_last=True))
    return [row for row, layer in enumerate(scores.layers) if embedding_layer or layer > 0]


def mean(
    measured: Measurement,
    task: str,
    layers: Sequence[int] | None = None,
    embedding_layer: bool = True,
) -> tuple[float, np.ndarray]:
    """Mean over pairs and layers (as in `summarise`), and its influence ``(n_sentences,)``."""
    at = _kept_layers(measured.scores, layers, embedding_layer)
    return (
        float(measured.scores.scores[task][at].mean()),
        measured.influence[task][at].mean(axis=(0, 1)),
    )


def _membership(pairs: Sequence[tuple[str, str]]) -> tuple[list[str], np.ndarray]:
    """The languages, and ``(n_languages, n_pairs)`` with 1 where a language is in a pair."""
    languages = list(dict.fromkeys(code for pair in pairs for code in pair))
    inside = np.array([[float(code in pair) for pair in pairs] for code in languages])
    return languages, inside
