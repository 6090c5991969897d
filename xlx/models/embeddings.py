"""Sentences to vectors: the hidden states of every layer, pooled over a sentence's subwords.

One forward pass a batch gives all layers. Each layer's token states are pooled right away, and only
the pooled vectors are kept: float32, ``(n_layers + 1, n_sentences, dim)``. Layer 0 is the output of
the embedding layer, layer L the last hidden state, as in `transformers`. Equal strings get equal
vectors, bit for bit.

Poolings, over the subwords t = 1 ... T of a sentence (the model sees the special tokens that the
tokenizer adds, <s>, </s>, [CLS] ..., but only "cls" takes one; with ``special_tokens=True`` they
count as subwords, as in MEXA's own code, where the <s> of a Llama is token 1):

``mean``
    The plain mean over subword states ("the mean-pooled embedding of its subword tokens", ABX
    section 3).
``weighted_mean``
    Weights t / (1 + ... + T), so that later tokens, which have seen more, count more (Muennighoff
    2022; MEXA section 3.1). For causal models; with others, whose tokens have all seen the whole
    sentence, it is computed too, with a `PoolingWarning`.
``last``
    The state of subword T.
``cls``
    The state of the first token of the sequence, for tokenizers that put a special one there.
"""

import textwrap
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from scipy import sparse
from torch.nn.utils.rnn import pad_sequence

from xlx.core import checks, progress, provenance
from xlx.core.ledger import Ask, Cache
from xlx.core.settings import current
from xlx.models import batching
from xlx.models.loading import Encoder, Name, identify
from xlx.text.corpora import ParallelCorpus
from xlx.text.files import sentences_hash

POOLINGS = ("mean", "weighted_mean", "last", "cls")


class PoolingWarning(UserWarning):
    """A pooling whose reason does not hold for the model."""


@dataclass(frozen=True)
class SentenceStates:
    """Pooled hidden states of a list of sentences, or of pairs.

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

    def check(self) -> "CorpusStates":
        """Return itself if the cosine of any two of its vectors can be taken.

        ValueError where a vector is zero, infinite or not a number.
        """
        for language, states in self.states.items():
            where = f"{self.model!r} on {self.corpus!r}, language {language!r}"
            batching.check_finite(states, where)
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
    max_length: int | None = None,
    special_tokens: bool = False,
) -> SentenceStates:
    """Pooled hidden states of all layers for a list of sentences; equal strings computed once.

    ``max_length`` tokens a sentence may have, special ones included; the rest is cut off and
    counted. Default: what the model takes. ``special_tokens``: whether those that the tokenizer
    adds count as subwords. ValueError if an option does not fit the model, a sentence has no token
    to pool, or a state is not a finite number.
    """
    options = {"max_length": max_length, "special_tokens": special_tokens}
    return embed_poolings(encoder, sentences, (pooling,), **options)[pooling]


def embed_poolings(
    encoder: Encoder,
    sentences: Sequence[str],
    poolings: Sequence[str],
    *,
    max_length: int | None = None,
    special_tokens: bool = False,
) -> dict[str, SentenceStates]:
    """`embed` with several poolings, for which the model reads each sentence once.

    All else is as for `embed`; the result is by pooling, in the order asked for.
    """
    batching.check_strings(sentences, "sentences")
    poolings, limit = check_poolings(encoder, poolings), encoder.limit(max_length)
    ways = [(pooling, special_tokens) for pooling in poolings]
    with progress.bar(what="embedding", total=len(sentences), unit="sentences") as bar:
        states = [_kept_states(encoder, way, limit, sentences) for way in ways]
        if None in states:
            states = pooled_states(encoder, ways, limit, [sentences], "position ", bar.update)
    return dict(zip(poolings, states, strict=True))


def keep_states(
    encoder: Encoder,
    corpus: ParallelCorpus,
    poolings: Sequence[str],
    *,
    special_tokens: Sequence[bool] = (False, True),
    max_length: int | None = None,
) -> None:
    """Read a corpus once for all that asks later: its states, in each way, into the cache.

    `embed_poolings` and `embed_corpus` find them there. ``special_tokens``: without, with, or both.
    A file a language and way; goes on after a stop. Errors as `embed_corpus`.
    """
    limit, cache = encoder.limit(max_length), Cache(current().cache)
    ways = [(x, special) for x in check_poolings(encoder, poolings) for special in special_tokens]
    total = sum(map(len, corpus.sentences.values()))
    with progress.bar(what=encoder.name, total=total, unit="sentences") as bar:
        for language, sentences in corpus.sentences.items():
            asks = [states_ask(encoder, way, limit, sentences) for way in ways]
            missing = [i for i, ask in enumerate(asks) if not cache.path(ask).is_file()]
            if not missing:
                bar.update(len(sentences))
                continue
            where = f"language {language!r} of {corpus.name!r}, position "
            these = [ways[i] for i in missing]
            new = pooled_states(encoder, these, limit, [sentences], where, bar.update)
            for i, states in zip(missing, new, strict=True):
                cache.put(asks[i], _arrays(states))


def states_ask(
    encoder: Encoder, way: tuple[str, bool], limit: int | None, sentences: Sequence[str]
) -> Ask:
    """By what the states of sentences are kept in the cache of this machine."""
    made_by = provenance.environment()
    key = {
        "model": encoder.fingerprint,
        "pooling": way[0],
        "special_tokens": way[1],
        "max_length": limit,
        "dtype": encoder.precision,
        "device": encoder.device.type,
        "code": provenance.code_hash(pooled_states),
        "torch": made_by["torch"],
        "transformers": made_by["transformers"],
        "text": sentences_hash(sentences),
    }
    return Ask("embeddings", key)


def _kept_states(
    encoder: Encoder, way: tuple[str, bool], limit: int | None, sentences: Sequence[str]
) -> SentenceStates | None:
    """What `keep_states` or `embed_corpus` has kept of sentences; None where nothing is."""
    cache, ask = Cache(current().cache), states_ask(encoder, way, limit, sentences)
    entry = cache.get(ask) if cache.path(ask).is_file() else None
    if entry is None:
        return None
    value = entry.value
    return SentenceStates(value["states"], int(value["n_cut"]), float(value["unknown"]))


def _arrays(states: SentenceStates) -> dict[str, np.ndarray]:
    return {name: np.asarray(value) for name, value in vars(states).items()}


def embed_corpus(
    encoder: Encoder,
    corpus: ParallelCorpus,
    *,
    pooling: str = "mean",
    max_length: int | None = None,
    special_tokens: bool = False,
) -> CorpusStates:
    """Pooled hidden states of all languages of a parallel corpus, kept in this machine's cache.

    Each language is a file of its own, so a run that was stopped goes on at the next one. Where
    more than 5 % of the tokens are unknown, or of the sentences cut, the language is named in a
    `checks.TextWarning`. A segment left untranslated is the same string in two languages: all its
    occurrences get the vector of the first one, so distances to them are equal, not nearly so.

    Options and errors as `embed`, naming the language; a zero vector is an error too.
    """
    for language in corpus.languages:
        batching.check_strings(
            corpus.sentences[language], f"language {language!r} of {corpus.name!r}"
        )
    (pooling,), limit = check_poolings(encoder, [pooling]), encoder.limit(max_length)
    cache, way = Cache(current().cache), (pooling, special_tokens)
    states, cut, unknown = {}, {}, {}
    total = sum(map(len, corpus.sentences.values()))
    with progress.bar(what=encoder.name, total=total, unit="sentences") as bar:
        for language in corpus.languages:
            sentences = corpus.sentences[language]
            of_language = _kept_states(encoder, way, limit, sentences)
            if of_language is None:
                where = f"language {language!r} of {corpus.name!r}, position "
                (of_language,) = pooled_states(
                    encoder, [way], limit, [sentences], where, bar.update
                )
                cache.put(states_ask(encoder, way, limit, sentences), _arrays(of_language))
            else:
                bar.update(len(sentences))
            states[language], cut[language] = of_language.states, of_language.n_cut
            unknown[language] = of_language.unknown
    shares = {code: n / len(corpus.sentences[code]) for code, n in cut.items()}
    lost = {"tokens unknown to it": unknown, "sentences cut": shares}
    checks.legible(encoder.name, corpus.name, lost)
    _share_vectors(corpus, states)
    return CorpusStates(states, cut, encoder.name, corpus.name, pooling, encoder.step).check()


def corpus_about(name: Name, corpus: ParallelCorpus, **options: object) -> dict[str, object]:
    """What decides the vectors of `embed_corpus`, without loading the model: see `states_about`.

    With the text of each language, in order: a repeated string has the vector of its first.
    """
    texts = [[language, corpus.text_hash(language)] for language in corpus.languages]
    return states_about(name, **options) | {"texts": texts}


def states_about(
    name: Name,
    *,
    pooling: str = "mean",
    max_length: int | None = None,
    special_tokens: bool = False,
) -> dict[str, object]:
    """What decides the vectors of `embed` but for the sentences, without loading the model.

    Part of the identity of results computed from them (`xlx.core.work`): the content hash of the
    model, the options as asked for, the precision: the one that the settings name, or that of a
    loaded `Encoder`. Raises as `identify`.
    """
    _check_pooling(pooling)
    return {
        "model": identify(name).fingerprint,
        "pooling": pooling,
        "special_tokens": special_tokens,
        "max_length": max_length,
        "dtype": name.precision if isinstance(name, Encoder) else current().dtype,
    }


def bag_of_subwords(
    encoder: Encoder, corpus: ParallelCorpus, *, max_length: int | None = None
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
        batching.check_strings(sentences, f"language {language!r} of {corpus.name!r}")
        columns, _ = batching.tokenise(
            encoder.tokenizer, sentences, limit=limit, return_special_tokens_mask=True
        )
        subwords = _of_text(columns)
        rows = np.repeat(np.arange(len(subwords)), list(map(len, subwords)))
        ids = np.fromiter(chain.from_iterable(subwords), dtype=np.int64)
        shape = (len(subwords), len(encoder.tokenizer))
        bags[language] = sparse.coo_array((np.ones(len(rows)), (rows, ids)), shape).tocsr()
    return bags


def pooled_states(
    encoder: Encoder,
    ways: Sequence[tuple[str, bool]],
    limit: int | None,
    sides: Sequence[Sequence[str]],
    where: str,
    advance: Callable[[int], object],
) -> list[SentenceStates]:
    """Sentences, or pairs of them as the tokenizer writes a pair, pooled in each of the ways.

    A way is a pooling, and whether special tokens count. ``sides`` are the sentences, or the first
    and the second ones; of a pair the subwords of both count as one sentence. ``where`` goes before
    a sentence's position in an error.
    """
    unique, inverse, first = batching.distinct(list(zip(*sides, strict=True)))
    occurrences = np.bincount(inverse, minlength=len(unique))

    def name(i: int) -> str:
        return f"{where}{first[i]} ({textwrap.shorten(' / '.join(unique[i]), 40)!r})"

    inputs = ["input_ids"]
    if len(sides) == 2 and _has_token_types(encoder):
        inputs.append("token_type_ids")
    columns, cut = batching.tokenise(
        encoder.tokenizer, *(list(zip(*unique, strict=True)) or sides), limit=limit,
        return_special_tokens_mask=True, return_token_type_ids=len(inputs) == 2,
    )  # fmt: skip
    ids, special = columns["input_ids"], columns["special_tokens_mask"]
    for i, mask in enumerate(special):
        if all(mask):
            raise ValueError(
                f"{name(i)}: the tokenizer of {encoder.name!r} makes no token of this sentence, so "
                "there is nothing to pool; drop the sentence in all languages"
            )
    batching.check_vocabulary(encoder, ids, name)
    shape = (len(ways), encoder.n_layers + 1, len(unique), encoder.dim)
    pooled = np.empty(shape, dtype=np.float32)
    for batch in batching.batches(list(map(len, ids))):
        layers = batching.hidden_states(
            encoder, [{x: columns[x][i] for x in inputs} for i in batch]
        )
        for states, (pooling, special_tokens) in zip(pooled, ways, strict=True):
            # Unless asked for, the special tokens count for "cls" alone, which is one of them.
            all_count = special_tokens or pooling == "cls"
            counted = [(torch.tensor(special[i]) == 0) | all_count for i in batch]
            mask = pad_sequence(counted, batch_first=True).to(encoder.device)
            layers_pooled = [pool(layer, mask, pooling) for layer in layers]
            states[:, batch] = torch.stack(layers_pooled).cpu().numpy()
        advance(len(sides) * int(occurrences[batch].sum()))
    for states in pooled:
        batching.check_finite(states, f"{encoder.name!r}", name)
    tokens = list(chain.from_iterable(_of_text(columns)))
    unknown = tokens.count(encoder.tokenizer.unk_token_id) / max(1, len(tokens))
    n_cut, repeated = int(occurrences[cut].sum()), len(unique) < len(inverse)
    return [
        SentenceStates(states[:, inverse] if repeated else states, n_cut, unknown)
        for states in pooled
    ]


def pool(states: torch.Tensor, counted: torch.Tensor, pooling: str) -> torch.Tensor:
    """Pool token states to sentence vectors, wherever the padding is: float32 ``(n, dim)``.

    ``states`` are ``(n, n_tokens, dim)`` of any floating type; ``counted`` ``(n, n_tokens)`` is
    True where a token counts, one at least in each row. For "cls" the first that counts is taken,
    so the special tokens must be among them.
    """
    if pooling in ("last", "cls"):
        first = counted.flip(1) if pooling == "last" else counted
        place = first.long().argmax(dim=1)
        place = counted.shape[1] - 1 - place if pooling == "last" else place
        return states[torch.arange(len(states), device=states.device), place].float()
    weights = counted.float()
    if pooling == "weighted_mean":
        weights = weights.cumsum(dim=1) * weights
    weights = weights / weights.sum(dim=1, keepdim=True)
    return torch.bmm(weights.unsqueeze(1), states.float()).squeeze(1)


def _of_text(columns: dict[str, list[list[int]]]) -> list[list[int]]:
    """The tokens of each text without the special ones."""
    rows = zip(columns["input_ids"], columns["special_tokens_mask"], strict=True)
    return [[i for i, added in zip(ids, mask, strict=True) if not added] for ids, mask in rows]


def _has_token_types(encoder: Encoder) -> bool:
    """Whether the model is told which sentence of a pair a token is of, as BERT is."""
    in_model = getattr(encoder.model.config, "type_vocab_size", 0) or 0
    return in_model > 1 and "token_type_ids" in encoder.tokenizer.model_input_names


def _share_vectors(corpus: ParallelCorpus, states: dict[str, np.ndarray]) -> None:
    """Give all occurrences of a string, in any language, the vector of its first."""
    first: dict[str, tuple[str, int]] = {}
    for language in corpus.languages:
        for position, sentence in enumerate(corpus.sentences[language]):
            source, place = first.setdefault(sentence, (language, position))
            if (source, place) != (language, position):
                states[language][:, position] = states[source][:, place]


def _check_pooling(pooling: str) -> None:
    if pooling not in POOLINGS:
        raise ValueError(f"pooling {pooling!r} is not one of {', '.join(POOLINGS)}")


def check_poolings(encoder: Encoder, poolings: Sequence[str]) -> list[str]:
    """The poolings, each once; ValueError or a `PoolingWarning` where they do not fit the model."""
    if not poolings:
        raise ValueError(f"no pooling is asked for: choose among {', '.join(POOLINGS)}")
    for pooling in poolings:
        _check_pooling(pooling)
    if "weighted_mean" in poolings and encoder.kind != "decoder":
        _warn(
            f"{encoder.name!r} is no causal model: each of its tokens has seen the whole sentence, "
            "so the later ones need no greater weight; 'mean' is the usual pooling"
        )
    if "cls" in poolings:
        opening = encoder.tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"][0]
        problem = None if opening else "needs a tokenizer that puts a special token first"
        if opening and encoder.kind == "decoder":
            problem = "takes the first token, and that of a decoder, has seen no other"
        if problem:
            raise ValueError(f"pooling 'cls' {problem} ({encoder.name!r}): use 'mean' or 'last'")
    if encoder.own_pooling not in (None, *poolings):
        _warn(
            f"{encoder.name!r} was trained with the pooling {encoder.own_pooling!r}, as its folder "
            f"of sentence-transformers says, and not with {poolings[0]!r}"
        )
    return list(dict.fromkeys(poolings))


def _warn(message: str) -> None:
    warnings.warn(message, PoolingWarning, stacklevel=4)
