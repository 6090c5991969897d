"""What measurements of models on a corpus have in common: asks, layers, weights of languages."""

from collections.abc import Mapping, Sequence

import numpy as np

from xlx.core import checks, work
from xlx.models import embeddings
from xlx.models.loading import Name, RecordedCheckpoint
from xlx.text.corpora import ParallelCorpus


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


def same_shapes(stored: work.Value, computed: work.Value) -> bool:
    """Whether two values hold arrays of the same names and shapes."""
    shapes = ({name: array.shape for name, array in value.items()} for value in (stored, computed))
    return next(shapes) == next(shapes)


def language_weights(pairs: Sequence[tuple]) -> tuple[list, np.ndarray]:
    """The languages, and ``(n_languages, n_pairs)`` that averages over the pairs of each."""
    languages = list(dict.fromkeys(code for pair in pairs for code in pair))
    inside = np.array([[float(code in pair) for pair in pairs] for code in languages])
    return languages, inside / inside.sum(axis=1, keepdims=True)
