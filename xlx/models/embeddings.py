"""Sentences to vectors: the hidden states of every layer, pooled over a sentence's subwords.

One forward pass a batch gives all layers. Each layer's token states are pooled right away, and only
the pooled vectors are kept: float32, ``(n_layers + 1, n_sentences, dim)``. Layer 0 is the output of
the embedding layer, layer L the last hidden state, as in `transformers`.

Equal strings get equal vectors, bit for bit. The poolings are those of `xlx.models.pooling`.
"""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from xlx.core import checks, progress, provenance
from xlx.core.ledger import Ask, Cache
from xlx.core.settings import current
from xlx.models.batching import (
    batches,
    check_finite,
    check_strings,
    check_vocabulary,
    distinct,
    hidden_states,
    tokenise,
)
from xlx.models.loading import Encoder, Name, identify
from xlx.models.pooling import (
    POOLINGS,
    PoolingWarning,
    check_pooling,
    pool_layers,
    warn_of_pooling,
)

__all__ = [
    "POOLINGS",
    "CorpusStates",
    "PoolingWarning",
    "SentenceStates",
    "bag_of_subwords",
    "corpus_about",
    "embed",
    "embed_corpus",
    "embed_poolings",
    "states_about",
]


class Corpus(Protocol):
    """What `embed_corpus` needs of a `xlx.text.corpora.ParallelCorpus`."""

    name: str
    sentences: Mapping[str, tuple[str, ...]]

    @property
    def languages(self) -> tuple[str, ...]: ...

    def text_hash(self, language: str) -> str: ...


@dataclass(frozen=True)
class SentenceStates:
    """Pooled hidden states of a list of sentences.

    ``unknown`` is the share of the tokens that the tokenizer gives for what it does not know.
    """

    states: np.ndarray  # float32, (n_layers + 1, n_sentences, dim), in their order
    n_cut: int  # sentences longer than the maximum length, which lost their end
    unknown: float


@dataclass(frozen=True)
class CorpusStates:
    """Pooled hidden states of a parallel corpus.

    Equal strings anywhere in the corpus have equal vectors, bit for bit.
    """

    states: dict[str, np.ndarray]  # by language: float32, (n_layers + 1, n_sentences, dim)
    cut: dict[str, int]  # by language: sentences cut at the maximum length
    model: str
    corpus: str
    pooling: str
    step: int | None = None  # of the model's training

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages, in the order of the corpus."""
        return tuple(self.states)

    @property
    def n_layers(self) -> int:
        """Number of Transformer layers, L; ``states`` has L + 1."""
        return next(iter(self.states.values())).shape[0] - 1

    @property
    def n_sentences(self) -> int:
        """Sentences a language."""
        return next(iter(self.states.values())).shape[1]

    @property
    def dim(self) -> int:
        """Width of the vectors."""
        return next(iter(self.states.values())).shape[2]

    def check(self) -> "CorpusStates":
        """Return itself if the cosine of any two of its vectors can be taken.

        ValueError where a vector is zero, infinite or not a number.
        """
        for language, states in self.states.items():
            where = f"{self.model!r} on {self.corpus!r}, language {language!r}"
            check_finite(states, where)
            zero = np.argwhere(~states.any(axis=2))
            if len(zero):
                layer, position = zero[0]
                raise ValueError(
                    f"{where}, position {position}, layer {layer}: the vector is zero, so it has "
                    f"no cosine with another ({len(zero)} such); leave the sentence out"
                )
        return self


def embed(
    encoder: Encoder,
    sentences: Sequence[str],
    *,
    pooling: str = "mean",
    special_tokens: bool = False,
    max_length: int | None = None,
) -> SentenceStates:
    """Pooled hidden states of all layers for a list of sentences.

    Parameters
    ----------
    encoder : Encoder
        From `xlx.models.load`.
    sentences : sequence of str
        Equal strings are computed once.
    pooling : {"mean", "weighted_mean", "last", "cls"}
        See the module's text.
    special_tokens : bool
        Whether tokens added by the tokenizer count in the pooling.
    max_length : int, optional
        Tokens a sentence may have, special ones included; the rest is cut off and counted.
        Default: what the model takes.

    ValueError if an option does not fit the model, a sentence has no token to pool, or a state is
    not a finite number.
    """
    options = {"special_tokens": special_tokens, "max_length": max_length}
    return embed_poolings(encoder, sentences, (pooling,), **options)[pooling]


def embed_poolings(
    encoder: Encoder,
    sentences: Sequence[str],
    poolings: Sequence[str],
    *,
    special_tokens: bool = False,
    max_length: int | None = None,
) -> dict[str, SentenceStates]:
    """`embed` with several poolings, for which the model reads each sentence once.

    All else is as for `embed`; the result is by pooling, in the order asked for.
    """
    check_strings(sentences, "sentences")
    plan = PoolPlan.of(encoder, poolings, special_tokens, max_length)
    with progress.bar(what="embedding", total=len(sentences), unit="sentences") as bar:
        states = embed_sentences(plan, sentences, "", bar.update)
    return dict(zip(plan.poolings, states, strict=True))


def embed_corpus(
    encoder: Encoder,
    corpus: Corpus,
    *,
    pooling: str = "mean",
    special_tokens: bool = False,
    max_length: int | None = None,
) -> CorpusStates:
    """Pooled hidden states of all languages of a parallel corpus, kept in this machine's cache.

    Each language is a file of its own, so a run that was stopped goes on at the next one. Where
    more than 5 % of the tokens are unknown, or of the sentences cut, the language is named in a
    `checks.TextWarning`. A segment left untranslated is the same string in two languages: all its
    occurrences get the vector of the first one, so distances to them are equal, not nearly so.

    Options and errors as `embed`, naming the language; a zero vector is an error too.
    """
    for language in corpus.languages:
        check_strings(corpus.sentences[language], f"language {language!r} of {corpus.name!r}")
    plan = PoolPlan.of(encoder, (pooling,), special_tokens, max_length)
    cache = Cache(current().cache)
    made_by = plan.key()
    states, cut, unknown = {}, {}, {}
    total = sum(len(corpus.sentences[language]) for language in corpus.languages)
    with progress.bar(what=encoder.name, total=total, unit="sentences") as bar:
        for language in corpus.languages:
            ask = Ask("embeddings", made_by | {"text": corpus.text_hash(language)})
            if (entry := cache.get(ask)) is None:
                where = f"language {language!r} of {corpus.name!r}, "
                (new,) = embed_sentences(plan, corpus.sentences[language], where, bar.update)
                stored = {
                    "states": new.states, "n_cut": np.array(new.n_cut),
                    "unknown": np.array(new.unknown),
                }  # fmt: skip
                cache.put(ask, stored)
            else:
                stored = entry.value
                bar.update(len(corpus.sentences[language]))
            states[language], cut[language] = stored["states"], int(stored["n_cut"])
            unknown[language] = float(stored["unknown"])
    shares = {code: n / len(corpus.sentences[code]) for code, n in cut.items()}
    lost = {"tokens unknown to it": unknown, "sentences cut": shares}
    checks.legible(encoder.name, corpus.name, lost)
    _share_vectors(corpus, states)
    return CorpusStates(states, cut, encoder.name, corpus.name, pooling, encoder.step).check()


def corpus_about(
    name: Name,
    corpus: Corpus,
    *,
    pooling: str = "mean",
    special_tokens: bool = False,
    max_length: int | None = None,
) -> dict[str, object]:
    """What decides the vectors of `embed_corpus`, without loading the model: see `states_about`.

    With the text of each language, in order: a repeated string has the vector of its first.
    """
    options = {"special_tokens": special_tokens, "max_length": max_length}
    texts = [[language, corpus.text_hash(language)] for language in corpus.languages]
    return states_about(name, pooling=pooling, **options) | {"texts": texts}


def states_about(
    name: Name,
    *,
    pooling: str = "mean",
    special_tokens: bool = False,
    max_length: int | None = None,
) -> dict[str, object]:
    """What decides the vectors of `embed` but for the sentences, without loading the model.

    Part of the identity of results computed from them (`xlx.core.work`): the content hash of the
    model, the options as asked for, the precision that the settings name. Raises as `identify`.
    """
    check_pooling(pooling)
    return {
        "model": identify(name).fingerprint,
        "pooling": pooling,
        "special_tokens": special_tokens,
        "max_length": max_length,
        "dtype": current().dtype,
    }


def bag_of_subwords(
    encoder: Encoder, corpus: Corpus, *, special_tokens: bool = False, max_length: int | None = None
) -> dict[str, sparse.csr_array]:
    """Sentences as counts of their subwords: what a model with one-hot states would pool to.

    The reference line under every score of a model: two sentences are as similar as the subwords
    they share, whatever their order and sense. By language ``(n_sentences, vocabulary)``, cut at
    `max_length` as the model's input is.
    """
    limit = encoder.limit(max_length)
    bags = {}
    for language in corpus.languages:
        sentences = corpus.sentences[language]
        check_strings(sentences, f"language {language!r} of {corpus.name!r}")
        columns, _ = tokenise(
            encoder.tokenizer, sentences, limit=limit, return_special_tokens_mask=True
        )
        counted = [
            [i for i, added in zip(row, mask, strict=True) if special_tokens or not added]
            for row, mask in zip(columns["input_ids"], columns["special_tokens_mask"], strict=True)
        ]
        subwords = np.concatenate([np.array(row, dtype=np.int64) for row in counted])
        rows = np.repeat(np.arange(len(counted)), [len(row) for row in counted])
        shape = (len(counted), len(encoder.tokenizer))
        bags[language] = sparse.coo_array((np.ones(len(rows)), (rows, subwords)), shape).tocsr()
    return bags


@dataclass(frozen=True)
class PoolPlan:
    """How sentences are embedded: options that fit the model."""

    encoder: Encoder
    poolings: tuple[str, ...]
    special_tokens: bool
    limit: int | None

    @classmethod
    def of(
        cls,
        encoder: Encoder,
        poolings: Sequence[str],
        special_tokens: bool = False,
        max_length: int | None = None,
        *,
        pair: bool = False,
    ) -> "PoolPlan":
        """Options as of `embed`; ValueError or a `PoolingWarning` where they do not fit."""
        if not poolings:
            raise ValueError(f"no pooling is asked for: choose among {', '.join(POOLINGS)}")
        poolings = tuple(dict.fromkeys(poolings))
        for pooling in poolings:
            check_pooling(pooling, encoder)
        pooling_of_folder = encoder.own_pooling
        if pooling_of_folder not in (None, *poolings):
            warn_of_pooling(
                f"{encoder.name!r} was trained with the pooling {pooling_of_folder!r}, as its "
                f"folder of sentence-transformers says, and not with {poolings[0]!r}"
            )
        return cls(encoder, poolings, special_tokens, encoder.limit(max_length, pair=pair))

    def key(self) -> dict[str, object]:
        """What the vectors of this machine depend on, but for the text."""
        (pooling,) = self.poolings
        made_by = provenance.environment()
        return {
            "model": self.encoder.fingerprint,
            "pooling": pooling,
            "special_tokens": self.special_tokens,
            "max_length": self.limit,
            "dtype": str(self.encoder.dtype).removeprefix("torch."),
            "device": self.encoder.device.type,
            "code": provenance.code_hash(embed_sentences),
            "torch": made_by["torch"],
            "transformers": made_by["transformers"],
        }


def embed_sentences(
    plan: PoolPlan, sentences: Sequence[str], where: str, advance: Callable[[int], object]
) -> list[SentenceStates]:
    """`embed` for each of the poolings; ``where`` goes before a sentence's position in an error."""
    encoder = plan.encoder
    unique, inverse, first = distinct(sentences)
    occurrences = np.bincount(inverse, minlength=len(unique))

    def name(i: int) -> str:
        return f"{where}position {first[i]} ({textwrap.shorten(unique[i], 40)!r})"

    columns, cut = tokenise(
        encoder.tokenizer, unique, limit=plan.limit, return_special_tokens_mask=True
    )
    ids, special = columns["input_ids"], columns["special_tokens_mask"]
    for i, mask in enumerate(special):
        if len(mask) == sum(mask) and not (len(mask) and plan.special_tokens):
            raise ValueError(
                f"{name(i)}: the tokenizer of {encoder.name!r} makes no token of this sentence, so "
                "there is nothing to pool; drop the sentence in all languages"
            )
    check_vocabulary(encoder, ids, name)
    shape = (len(plan.poolings), encoder.n_layers + 1, len(unique), encoder.dim)
    pooled = np.empty(shape, dtype=np.float32)
    for batch in batches(list(map(len, ids))):
        layers = hidden_states(encoder, [{"input_ids": ids[i]} for i in batch])
        for states, pooling in zip(pooled, plan.poolings, strict=True):
            everything = plan.special_tokens or pooling == "cls"
            counted = [[everything or not added for added in special[i]] for i in batch]
            states[:, batch] = pool_layers(layers, counted, pooling)
        advance(int(occurrences[batch].sum()))
    for states in pooled:
        check_finite(states, f"{encoder.name!r}", name)
    unknown, n_cut = _unknown(encoder.tokenizer, ids, special), int(occurrences[cut].sum())
    repeated = len(unique) < len(sentences)
    return [
        SentenceStates(states[:, inverse] if repeated else states, n_cut, unknown)
        for states in pooled
    ]


def _unknown(tokenizer: Any, ids: list[list[int]], special: list[list[int]]) -> float:
    """The share of unknown tokens among those of the sentences."""
    tokens = [
        i for row, mask in zip(ids, special, strict=True)
        for i, added in zip(row, mask, strict=True) if not added
    ]  # fmt: skip
    return tokens.count(tokenizer.unk_token_id) / len(tokens) if tokens else 0.0


def _share_vectors(corpus: Corpus, states: dict[str, np.ndarray]) -> None:
    """Give all occurrences of a string, in any language, the vector of its first."""
    first: dict[str, tuple[str, int]] = {}
    for language in corpus.languages:
        for position, sentence in enumerate(corpus.sentences[language]):
            source, place = first.setdefault(sentence, (language, position))
            if (source, place) != (language, position):
                states[language][:, position] = states[source][:, place]
