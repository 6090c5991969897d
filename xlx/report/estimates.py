"""What a report will take: seconds, memory and disk, measured on a first batch of its own text."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from xlx.experiment.abx_scores import packed_scores, standard_masks
from xlx.report.measures import ReportedModel
from xlx.report.probed_labels import ProbeSizes, probed_codes
from xlx.results import store
from xlx.results.settings import current
from xlx.subjects import loading, states
from xlx.subjects.folders import free_bytes, weight_bytes
from xlx.subjects.identity import find, model_files
from xlx.text.parallel import ParallelCorpus

#: Sentences of the batch that is timed, and languages whose pairs are.
_TIMED, _FEW = 64, 6
#: Seconds that timing is to take at most, if it can be helped.
_ENOUGH = 3.0
#: Words of a sentence; sentences that topics are learnt from; seconds a small probe takes to train.
_WORDS, _TOPICS, _PROBE = 15, 800, 0.05
#: Passes of a model over the text, and over the pairs: raw, centred.
_READ, _SCORED = 1, 2
#: Times that the states lie in memory: as they are, centred, of length 1.
_COPIES = 3
#: Bytes that scoring takes for each pair of sentences of a language; libraries and the like.
_COMPARED, _BESIDE = 14, 7e8
_GIGA = 1e9


@dataclass(frozen=True)
class Estimate:
    """Seconds of computing, and bytes of memory and of disk (in the cache of this machine).

    ``reading``: label of a model → the seconds that reading the text will take it.
    """

    seconds: float
    memory: float
    disk: float
    reading: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        return (
            f"about {duration(self.seconds)}, {self.memory / _GIGA:.1f} GB of memory and "
            f"{self.disk / _GIGA:.2f} GB of disk in {current().cache}"
        )


def duration(seconds: float) -> str:
    """A time in words: "40 seconds", "12 minutes", "3.5 hours"."""
    if seconds < 90:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def estimate(
    models: Sequence[ReportedModel],
    references: Sequence[ReportedModel],
    corpus: ParallelCorpus,
    max_length: int | None = None,
    probes: ProbeSizes | None = None,
) -> Estimate:
    """What a report on these models takes where nothing of it was computed before.

    Each model reads a batch, and scores a layer of few languages. ValueError for a model whose
    weights do not fit into memory, and where the disk has no room for the cache.
    """
    totals = [_of_model(model, corpus, max_length, probes) for model in models]
    sizes = [_weights(model) for model in models]
    smaller = [min(1.0, _weights(other) / max(sizes)) for other in references]
    others = len(models) - 1 + sum(smaller)  # read once each, for every model once
    seconds = sum(total.seconds for total in totals)
    each = max(total.seconds for total in totals) / (_READ + 1)
    disk = sum(total.disk for total in totals) + max(total.disk for total in totals) * sum(smaller)
    memory = max(total.memory for total in totals)
    reading = {label: long for total in totals for label, long in total.reading.items()}
    estimate = Estimate(seconds + each * others, memory, disk, reading)
    _check_disk(estimate.disk)
    return estimate


def _weights(model: ReportedModel, dtype: torch.dtype = torch.float32) -> int:
    """Bytes of a model's weights."""
    label, folder, _ = find(model.name)
    return weight_bytes(model_files(label, folder), dtype.itemsize)


def _check_states(needed: float, n: int, n_languages: int) -> None:
    there = free_bytes(torch.device("cpu"))
    if there is not None and needed > there:
        raise ValueError(
            f"the states of {n} sentences in {n_languages} languages need {needed / _GIGA:.1f} GB "
            f"of memory and {there / _GIGA:.1f} GB are free: take fewer --sentences or --languages"
        )


def _check_disk(needed: float) -> None:
    free = store.free_disk(current().cache)
    if needed > free:
        raise ValueError(
            f"the cache needs {needed / _GIGA:.1f} GB, and {current().cache} has "
            f"{free / _GIGA:.1f} GB free: "
            "set XLX_CACHE to a folder on another disk, or take fewer sentences (--sentences)"
        )


def _of_model(
    model: ReportedModel,
    corpus: ParallelCorpus,
    max_length: int | None,
    probes: ProbeSizes | None,
) -> Estimate:
    encoder = loading.load(model.name)
    weights = _weights(model, encoder.dtype)
    n, n_languages = len(corpus), len(corpus.languages)
    states = 4.0 * n * n_languages * (encoder.n_layers + 1) * encoder.dim
    held = _COPIES * states + _COMPARED * n_languages * n**2
    _check_states(held, n, n_languages)
    reading = _seconds_a_sentence(encoder, model, corpus, max_length)
    scoring = _seconds_a_pair(encoder, corpus)
    n_pairs = n_languages * (n_languages - 1) / 2
    # The untrained model reads once and is scored once; bag, length and pairs are of a layer each.
    own = reading * n * n_languages
    scored = scoring * n_pairs * ((_SCORED + 1) * (encoder.n_layers + 1) + 3)
    probed = 0.0
    if probes is not None:
        codes = probed_codes(corpus)
        words = sum(probes.words) * len(codes["parts of speech"]) / _WORDS
        probed = reading * (
            words + _TOPICS + (probes.topic_sentences or 204) * len(codes["topics"])
        )
        # each of the probes trains for about as long as it takes to say so of a small one
        fitted = len(probes.seeds) * (encoder.n_layers + 1) * (len(codes["parts of speech"]) + 1)
        probed += _PROBE * fitted * encoder.dim / 128 * sum(probes.words) / 700
    seconds = (_READ + 1) * own + scored + probed
    untrained = _weights(model)  # drawn and kept in float32, read into what the settings name
    drawn = untrained + (weights if weights < untrained else 0)
    disk, memory = 2 * states + untrained, max(weights + held, drawn) + _BESIDE
    return Estimate(seconds, memory, disk, {model.label: own})


def _seconds_a_sentence(
    encoder: loading.Encoder, model: ReportedModel, corpus: ParallelCorpus, max_length: int | None
) -> float:
    """How long a sentence of the text takes, from a batch spread over languages and positions."""
    places = np.linspace(0, len(corpus) - 1, _TIMED).astype(int)
    codes = corpus.languages
    some = [corpus.sentences[codes[k % len(codes)]][i] for k, i in enumerate(places)]
    limit, ways = encoder.limit(max_length), [(model.pooling, False)]
    long = 0.0
    for every in (_TIMED // 2, _TIMED // 16, 1):  # the first call has to set things up
        sentences = some[::every]
        began = time.perf_counter()
        states.pooled_states(encoder, ways, limit, [sentences], "position ", lambda n: None)
        long = (time.perf_counter() - began) / len(set(sentences))
        if every <= _TIMED // 16 and long * _TIMED > _ENOUGH:
            break  # a large model is known by few
    return long


def _seconds_a_pair(encoder: loading.Encoder, corpus: ParallelCorpus) -> float:
    """How long a pair of languages takes at one layer, of vectors that stand for the model's."""
    few = corpus.select(corpus.languages[:_FEW])
    draw = np.random.default_rng(0)
    shape = len(few), encoder.dim
    vectors = {code: draw.normal(size=shape).astype(np.float32) for code in few.languages}
    masks = standard_masks(encoder, few)
    for n_layers in (1, 3):  # the first call has to set things up
        began = time.perf_counter()
        packed_scores([vectors] * n_layers, few, masks, device=encoder.device)
    n_pairs = len(few.languages) * (len(few.languages) - 1) / 2
    return (time.perf_counter() - began) / (n_layers * n_pairs)
