"""The scores of one checkpoint on one corpus: computed once, kept small, averaged with intervals.

Of the influence of the positions (see `xlx.abx.discrimination`) the mean over a language's pairs is
kept, not that of every pair: the mean over all pairs is the mean over languages, so every average
that is asked for has its interval, from a thirtieth of the numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from xlx.abx import discrimination
from xlx.abx.discrimination import SCORES
from xlx.core import checks, statistics, work
from xlx.models import embeddings, loading
from xlx.models.loading import Name, RecordedCheckpoint, series_name
from xlx.text.corpora import ParallelCorpus

#: Steps between the lowest and the highest influence of a layer.
_QUANTA = 2**16 - 1


@dataclass(frozen=True)
class Measurement:
    """The scores of one checkpoint on one corpus.

    ``influence``: task → float32 ``(n_layers, n_languages, n_sentences)``, the mean over the pairs
    that hold the language.
    """

    model: str  # or series
    step: int  # of training; 0 where the model has no history
    scores: discrimination.PairScores  # at every layer, without influence
    influence: dict[str, np.ndarray]
    cut: dict[str, int]  # sentences cut at the maximum length
    texts: tuple[str, ...] = ()  # SHA-256 of the text of each language

    def table(self) -> pd.DataFrame:
        """`PairScores.table` with the columns ``model`` and ``checkpoint`` in front."""
        table = self.scores.table().assign(model=self.model, checkpoint=self.step)
        return table[["model", "checkpoint", *table.columns[:-2]]]

    def mean(
        self, task: str, layers: Sequence[int] | None = None, embedding_layer: bool = True
    ) -> tuple[float, np.ndarray]:
        """Mean over pairs and layers (as in `summarise`), its influence ``(n_sentences,)``."""
        checks.one_of(task, SCORES, "task")
        rows = layers_of_mean(len(self.scores.layers), layers, embedding_layer)
        score = float(self.scores.scores[task][rows].mean())
        return score, self.influence[task][rows].mean(axis=(0, 1))


def influence_order(task: str) -> int:
    """The order of a score's influence (`statistics.jackknife_error`): LD and MD are of pairs."""
    return 2 if task in ("LD", "MD") else 1


def layers_of_mean(
    n_layers: int, layers: Sequence[int] | None, embedding_layer: bool = True
) -> list[int]:
    """Layers that count: those named (negative ones from the last), or all, 0 if asked for."""
    if layers is None:
        return list(range(0 if embedding_layer else 1, n_layers))
    return sorted(checks.layers(layers, n_layers, from_last=True))


def texts_of(corpus: ParallelCorpus) -> list[list[str]]:
    """What names the text of a corpus in an ask: each language with its hash."""
    return [[code, corpus.text_hash(code)] for code in corpus.languages]


def values_of(
    kind: work.Kind,
    names: Sequence[Name],
    corpus: ParallelCorpus,
    options: Mapping[str, object],
    *rest: object,
    about: Mapping[str, object] | None = None,
    what: str = "",
) -> list[work.Value]:
    """A kind's value of each model on a corpus: ``kind.compute(name, corpus, options, *rest)``.

    ``about`` is what decides them beside the states, which `embeddings.corpus_about` names. None
    for a `loading.RecordedCheckpoint` of which nothing is stored: its weights are not here.
    """
    asks = [embeddings.corpus_about(name, corpus, **options) | dict(about or {}) for name in names]
    return work.results(
        kind,
        asks,
        lambda missing: (([i], (names[i], corpus, options, *rest)) for i in missing),
        what=what,
        alone=True,
        uncomputable=[i for i in range(len(names)) if isinstance(names[i], RecordedCheckpoint)],
    )


def measure_all(
    names: Sequence[Name], corpus: ParallelCorpus, **options: object
) -> list[Measurement]:
    """LD, MD and retrieval of models for all language pairs of a corpus, at every layer.

    Options (``pooling``, ``max_length``) as `embeddings.embed_corpus`; errors
    as its, `models.load`'s and `abx.exact`'s. Where vectors are computed, languages that a model
    cannot read are warned of (`checks.TextWarning`).
    """
    names = checks.several(names, "models")
    checks.loaded(corpus)
    if len(corpus.languages) < 2:
        raise ValueError("two languages or more are needed: a score compares languages")
    values = values_of(MEASURED, names, corpus, options, what="ABX")
    return [_measurement(name, corpus, value) for name, value in zip(names, values, strict=True)]


def _measured(
    name: Name, corpus: ParallelCorpus, options: Mapping[str, object]
) -> dict[str, np.ndarray]:
    """Scores of every pair and influence by language, packed: see `_unpacked`."""
    encoder = loading.load(name)
    embedded = embeddings.embed_corpus(encoder, corpus, **options)
    exact = discrimination.exact(embedded.states, influence=True, device=encoder.device)
    _, weights = language_weights(exact.pairs)
    packed = {
        "cut": np.array([embedded.cut[code] for code in corpus.languages]),
        "score retrieval": exact.scores["retrieval"],
    }
    n_triplets = exact.n_sentences * (exact.n_sentences - 1)
    for task in ("LD", "MD"):
        packed[f"won {task}"] = np.rint(2 * n_triplets * exact.scores[task]).astype(np.int64)
    for task in SCORES:
        influence = np.einsum("gp,lpn->lgn", weights.astype(np.float32), exact.influence[task])
        lowest = influence.min(axis=(1, 2))
        step = (influence.max(axis=(1, 2)) - lowest).astype(np.float64) / _QUANTA
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
    n = value["influence LD"].shape[-1]
    scores = {task: value[f"won {task}"] / (2 * n * (n - 1)) for task in ("LD", "MD")}
    influence = {}
    for task in SCORES:
        step, lowest = value[f"step {task}"][:, None, None], value[f"lowest {task}"][:, None, None]
        influence[task] = (value[f"influence {task}"] * step + lowest).astype(np.float32)
    return scores | {"retrieval": value["score retrieval"]}, influence


def same_shapes(stored: work.Value, computed: work.Value) -> bool:
    """Whether two values hold arrays of the same names and shapes."""
    shapes = ({name: array.shape for name, array in value.items()} for value in (stored, computed))
    return next(shapes) == next(shapes)


def _apart(stored: work.Value, computed: work.Value) -> float:
    """The largest difference between two measurements' scores of languages, or their errors."""
    if not same_shapes(stored, computed):
        return np.inf
    (scores, influence), (other_scores, other_influence) = map(_unpacked, (stored, computed))
    _, weights = language_weights(list(combinations(range(len(stored["cut"])), 2)))
    largest = float(np.abs(stored["cut"] - computed["cut"]).max())
    for task in SCORES:
        change = (scores[task] - other_scores[task]).mean(axis=-1)  # (layers, pairs)
        errors = [statistics.jackknife_error(x[task]) for x in (influence, other_influence)]
        largest = max(
            largest, np.abs(change @ weights.T).max(), np.abs(errors[0] - errors[1]).max()
        )
    return largest


#: A value: ``cut`` (n_languages,), and of each task what `_unpacked` reads.
MEASURED = work.Kind("abx", _measured, version=1, tolerance=2e-4, difference=_apart)


def _measurement(
    name: Name, corpus: ParallelCorpus, value: Mapping[str, np.ndarray]
) -> Measurement:
    identity = loading.identify(name)
    scores, influence = _unpacked(value)
    pairs = tuple(combinations(corpus.languages, 2))
    layers = tuple(range(len(scores["LD"])))
    return Measurement(
        series_name(identity),
        identity.step or 0,
        discrimination.PairScores(pairs, layers, corpus.n_sentences, scores, {}),
        influence,
        dict(zip(corpus.languages, value["cut"].tolist(), strict=True)),
        tuple(map(corpus.text_hash, corpus.languages)),
    )


def language_weights(pairs: Sequence[tuple]) -> tuple[list, np.ndarray]:
    """The languages, and ``(n_languages, n_pairs)`` that averages over the pairs of each."""
    languages = list(dict.fromkeys(code for pair in pairs for code in pair))
    inside = np.array([[float(code in pair) for pair in pairs] for code in languages])
    return languages, inside / inside.sum(axis=1, keepdims=True)
