"""What the surface of sentences scores without a model: the subwords they share, how long they are.

Both are scored as a checkpoint of one layer is, every pair and task, errors by document, so that a
model can be compared with them on the same text: a score that a bag of subwords has too is not
about the model, and one that length has is not about meaning. `uncut` leaves out what a model does
not see whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from xlx.abx.checkpoint_scores import (
    SPACES,
    CheckpointScores,
    label_runs,
    packed_scores,
    scores_apart,
    unpacked_scores,
)
from xlx.abx.distractors import length_matched, standard_masks
from xlx.abx.measurement import texts_of
from xlx.core import checks, work
from xlx.models import batching, embeddings, loading
from xlx.models.loading import Name
from xlx.text import corpora
from xlx.text.corpora import ParallelCorpus

#: What stands for a model in the tables.
BAG, LENGTH_ALONE = "a bag of subwords", "length alone"


def subword_bag(
    name: Name, corpus: ParallelCorpus, *, max_length: int | None = None, space: str = "raw"
) -> CheckpointScores:
    """Scores of a bag of the subwords of a model's vocabulary (`embeddings.bag_of_subwords`).

    In another ``space`` than the raw one (`checkpoint_scores.SPACES`) counts are no longer few: it
    takes some 16 bytes a sentence and subword of the vocabulary.
    """
    checks.one_of(space, SPACES, "space")
    about = {"bag of": loading.fingerprint(name), "max_length": max_length}
    about |= {"space": space} if space != "raw" else {}
    return replace(_scored(BAG, about, corpus, name, max_length, space), space=space)


def length_alone(corpus: ParallelCorpus) -> CheckpointScores:
    """Scores of the number of characters: the closer on a log scale, the more alike."""
    return _scored(LENGTH_ALONE, {}, corpus)


def uncut(
    names: Sequence[Name], corpus: ParallelCorpus, *, max_length: int | None = None
) -> ParallelCorpus:
    """The positions that none of the models cuts in any language.

    ValueError where fewer than two are left.
    """
    cut: set[int] = set()
    for name in checks.several(names, "models"):
        about = {"vocabulary of": loading.fingerprint(name), "max_length": max_length}
        about |= {"texts": texts_of(corpus)}
        cut |= set(work.result(CUT, about, name, corpus, max_length)["position"].tolist())
    if len(corpus) - len(cut) < 2:
        raise ValueError(
            f"of {len(corpus)} positions {len(cut)} are cut in some language: choose a larger "
            "max_length, or fewer languages"
        )
    return corpus.drop(cut)


def _cut(name: Name, corpus: ParallelCorpus, max_length: int | None) -> dict[str, np.ndarray]:
    encoder = loading.load(name)
    limit, positions = encoder.limit(max_length), set()
    for sentences in corpus.sentences.values():
        positions |= set(batching.tokenise(encoder.tokenizer, sentences, limit=limit)[1].tolist())
    return {"position": np.array(sorted(positions), dtype=np.int32)}


CUT = work.Kind("abx-cut", _cut, version=1, tolerance=0)


def _scored(
    what: str, about: Mapping[str, object], corpus: ParallelCorpus, *arguments: object
) -> CheckpointScores:
    labels = {"documents": corpora.documents(corpus), "domains": corpus.domains}
    runs = {name: label_runs(of_it) for name, of_it in labels.items()}
    ask = {"of": what, **about, "texts": texts_of(corpus)} | runs
    value = work.result(SURFACE, ask, corpus, *arguments)
    return unpacked_scores(value, corpus, model=what, step=0, space="raw")


def _surface(
    corpus: ParallelCorpus,
    name: Name | None = None,
    max_length: int | None = None,
    space: str = "raw",
) -> dict[str, np.ndarray]:
    """Of a bag of subwords; without a name, of length."""
    dtype = torch.float64
    if name is None:
        vectors, masks = _arcs(corpus), {"like length": length_matched(corpus)}
    else:
        encoder = loading.load(name)
        vectors = embeddings.bag_of_subwords(encoder, corpus, max_length=max_length)
        masks = standard_masks(encoder, corpus)
        if space != "raw":
            dense = {code: rows.toarray().astype(np.float32) for code, rows in vectors.items()}
            vectors, dtype = SPACES[space](dense), torch.float32
    packed = packed_scores([vectors], corpus, masks, dtype=dtype)
    return packed | {"cut": np.zeros(len(corpus.languages), dtype=int)}


def _arcs(corpus: ParallelCorpus) -> dict[str, np.ndarray]:
    """Points on a quarter of a circle, whose cosine falls with the distance in log characters."""
    logs = {code: np.log1p([*map(len, sentences)]) for code, sentences in corpus.sentences.items()}
    longest = max(row.max() for row in logs.values())
    angles = {code: row / longest * np.pi / 2 for code, row in logs.items()}
    return {code: np.stack([np.cos(a), np.sin(a)], axis=1) for code, a in angles.items()}


#: A value of `checkpoint_scores.CHECKPOINT` of one layer.
SURFACE = work.Kind("abx-surface", _surface, version=1, tolerance=5e-4, difference=scores_apart)
