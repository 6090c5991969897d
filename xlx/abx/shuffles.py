"""Controls that can fail: scores where what they should measure has been taken away.

The control of the paper holds the variable of interest constant, and is at one half for any
vectors: A and B can change places. Here the corpus is spoiled instead, and everything else stays:

=================  ================================================================================
``translations``   half of the languages have their sentences in another order: no A is a
                   translation. MD must be at one half.
``documents``      the same within documents: A is another sentence of the document. What MD keeps
                   is what documents give away: topic, names, style.
``lengths``        in half of the languages each sentence changes places with the one next in
                   length: A is not the translation, but about as long. What MD keeps is what length
                   gives away.
``labels``         at every position the languages change names. LD must be at one half.
=================  ================================================================================

Where half of the languages are moved, the pairs of a moved one and another are scored.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd

from xlx.abx import discrimination
from xlx.abx.checkpoint_scores import group_sizes, label_runs
from xlx.abx.measurement import values_of
from xlx.core import checks, statistics, work
from xlx.models import embeddings, loading
from xlx.models.loading import Name
from xlx.text import corpora
from xlx.text.corpora import ParallelCorpus

#: Language → the language and the position that each of its positions is taken from, ``(n,)`` each.
Moved = dict[str, tuple[np.ndarray, np.ndarray]]


def _translations(corpus: ParallelCorpus, rng: np.random.Generator) -> Moved:
    order = _cycled(len(corpus), [np.arange(len(corpus))], rng)
    return _half_moved(corpus, np.arange(len(corpus)), lambda _: order)


def _documents(corpus: ParallelCorpus, rng: np.random.Generator) -> Moved:
    documents = np.array(corpora.documents(corpus))
    groups = [np.flatnonzero(documents == name) for name in np.unique(documents)]
    groups = [own for own in groups if len(own) > 1]  # one sentence alone has no other
    if not groups:
        raise ValueError(f"{corpus.name}: no document has two sentences to change places")
    order = _cycled(len(corpus), groups, rng)
    return _half_moved(corpus, np.sort(np.concatenate(groups)), lambda _: order)


def _lengths(corpus: ParallelCorpus, rng: np.random.Generator) -> Moved:
    def order(language: str) -> np.ndarray:
        counts = [*map(len, corpus.sentences[language])]
        ranked = np.lexsort((rng.random(len(corpus)), counts))
        pairs = [ranked[i : i + 2] for i in range(0, len(ranked) - 1, 2)]
        return _cycled(len(corpus), pairs, rng)  # of an odd number, the longest stays

    return _half_moved(corpus, np.arange(len(corpus)), order)


def _cycled(n: int, groups: Sequence[np.ndarray], rng: np.random.Generator) -> np.ndarray:
    """Where each of n positions is taken from: in a group, from the next in a random circle."""
    order = np.arange(n)
    for group in groups:
        circle = rng.permutation(group)
        order[circle] = np.roll(circle, 1)
    return order


def _moved_languages(corpus: ParallelCorpus) -> set[str]:
    """Every second one."""
    return set(corpus.languages[1::2])


def _half_moved(
    corpus: ParallelCorpus, kept: np.ndarray, order: Callable[[str], np.ndarray]
) -> Moved:
    """`_moved_languages` in another order, of the positions that are kept."""
    moved = _moved_languages(corpus)
    return {
        language: (
            np.full(len(kept), language),
            order(language)[kept] if language in moved else kept,
        )
        for language in corpus.languages
    }


def _labels(corpus: ParallelCorpus, rng: np.random.Generator) -> Moved:
    n, own = len(corpus), np.arange(len(corpus))
    names = rng.permuted(np.tile(corpus.languages, (n, 1)), axis=1)
    return {language: (names[:, i], own) for i, language in enumerate(corpus.languages)}


#: By name, how a corpus is spoiled.
SHUFFLES: dict[str, Callable[[ParallelCorpus, np.random.Generator], Moved]] = {
    "translations": _translations, "documents": _documents, "lengths": _lengths, "labels": _labels,
}  # fmt: skip


def spoiled(
    states: Mapping[str, np.ndarray], corpus: ParallelCorpus, how: str, seed: int
) -> tuple[dict[str, np.ndarray], np.ndarray, list[tuple[str, str]]]:
    """The vectors of a spoiled corpus, the positions that are left, the pairs to be scored.

    ``states``: language → ``(n_layers + 1, n, dim)``. Sentences that the shuffle has no place for
    are left out: of a document, where it is its only one.
    """
    checks.one_of(how, SHUFFLES, "shuffle")
    moved = SHUFFLES[how](corpus, np.random.default_rng(seed))
    vectors = {
        language: np.stack([states[name][:, i] for name, i in zip(*source, strict=True)], axis=1)
        for language, source in moved.items()
    }
    half = _moved_languages(corpus)
    pairs = [
        (one, other)
        for one, other in combinations(corpus.languages, 2)
        if how == "labels" or (one in half) != (other in half)
    ]
    return vectors, moved[corpus.languages[0]][1], pairs


def shuffled_scores(
    names: Sequence[Name], corpus: ParallelCorpus, how: str, *, seed: int, **options: object
) -> pd.DataFrame:
    """LD and MD of models on a corpus that is spoiled: means over pairs, by layer.

    Columns ``model``, ``shuffle``, ``task``, ``layer``, ``score``, ``error`` (over documents).
    Options and errors as `checkpoint_scores.checkpoint_scores`.
    """
    checks.one_of(how, SHUFFLES, "shuffle")
    documents = corpora.documents(corpus)
    about = {"shuffle": how, "seed": seed, "documents": label_runs(documents)}
    values = values_of(SHUFFLED, names, corpus, options, how, seed, about=about, what="ABX")
    tables = {
        loading.series_name(loading.identify(name)): value
        for name, value in zip(names, values, strict=True)
    }
    return pd.concat(tables, names=["model"]).reset_index("model").reset_index(drop=True)


def _shuffled(
    name: Name, corpus: ParallelCorpus, options: Mapping[str, object], how: str, seed: int
) -> pd.DataFrame:
    encoder = loading.load(name)
    states = embeddings.embed_corpus(encoder, corpus, **options).states
    moved, kept, pairs = spoiled(states, corpus, how, seed)
    groups = np.array(corpora.documents(corpus))[kept]
    sizes = group_sizes(groups)
    rows = []
    for layer in range(encoder.n_layers + 1):
        vectors = {code: array[layer] for code, array in moved.items()}
        exact = discrimination.exact(
            vectors, pairs=pairs, groups={"documents": groups}, device=encoder.device
        )
        for task in ("LD", "MD"):
            score = float(exact.scores[task].mean())
            without = exact.left_out["documents"][task][0].mean(axis=0)
            error = float(statistics.left_out_error(score, without, sizes))
            rows.append((how, task, layer, score, error))
    return pd.DataFrame(rows, columns=["shuffle", "task", "layer", "score", "error"])


SHUFFLED = work.Kind("abx-shuffled", _shuffled, version=1, tolerance=5e-4)
