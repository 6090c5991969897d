"""Text to the model, tokenised, cut, in batches; out of it pooled states of every layer.

One way for all that reads text, also for what is fine-tuned. Rows are padded on the right whatever
the tokenizer's habit, so that a token's position in a causal model never depends on the other rows
of its batch. Which rows share a batch can move a number in its last digits; where padding moves
more (`loading.observed`), a batch has rows of one length.
"""

from __future__ import annotations

import inspect
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from xlx.results import checks, progress, provenance
from xlx.results.deferred import deferred
from xlx.results.ledger import Ask, Cache
from xlx.results.settings import current
from xlx.subjects.identity import Name, find, identify
from xlx.subjects.loading import Encoder, Row, token_states
from xlx.subjects.pooling import OWN, POOLINGS, OwnVector, own_vector, pool
from xlx.text.files import sentences_hash
from xlx.text.parallel import ParallelCorpus

torch = deferred("torch")
sparse = deferred("scipy.sparse")

TOKEN_BUDGET = 4096
BATCH_COST = 96


def tokenise(
    tokenizer: Any, *sides: Sequence[str], limit: int | None, **columns: bool
) -> tuple[dict[str, list[list[int]]], np.ndarray]:
    """Texts, or pairs of texts, as the tokenizer writes them, cut at ``limit`` tokens.

    A pair loses tokens of its longer text first. Returns the columns (``input_ids`` and what
    ``columns`` asks for, as ``return_special_tokens_mask=True``), a row each, and which were cut.
    """
    options = {"return_attention_mask": False, "verbose": False, **columns}
    if not len(sides[0]):
        named = [name.removeprefix("return_") for name in columns if name.startswith("return_")]
        return {name: [] for name in ["input_ids", *named]}, np.empty(0, dtype=np.intp)
    whole = {name: list(rows) for name, rows in tokenizer(*map(list, sides), **options).items()}
    lengths = np.array(list(map(len, whole["input_ids"])))
    cut = np.flatnonzero(lengths > limit) if limit is not None else np.empty(0, dtype=np.intp)
    if len(cut):
        long = [[side[i] for i in cut] for side in sides]
        shorter = tokenizer(*long, truncation="longest_first", max_length=limit, **options)
        for name, rows in whole.items():
            for i, row in zip(cut, shorter[name], strict=True):
                rows[i] = row
    return whole, cut


def batches(
    lengths: Sequence[int], token_budget: int | None = None, *, apart: bool = False
) -> list[np.ndarray]:
    """Split rows into batches of similar length, longest first; one longer than the budget alone.

    Of all ways to cut the list sorted by length, the one with the least padded tokens plus
    `BATCH_COST` a batch (dynamic programming over the cuts). ``apart``: each of one length.
    """
    if apart:
        lengths = np.asarray(lengths, dtype=np.intp)
        of_length = [np.flatnonzero(lengths == n) for n in np.unique(lengths)[::-1]]
        return [rows[x] for rows in of_length for x in batches(lengths[rows], token_budget)]
    budget = token_budget or current().token_budget or TOKEN_BUDGET
    lengths = np.asarray(lengths, dtype=np.intp)
    n = len(lengths)
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order]
    best = np.zeros(n + 1)  # least cost of the first i rows
    start = np.zeros(n + 1, dtype=np.intp)  # where the last of their batches begins
    for i in range(1, n + 1):
        longest = max(int(ordered[i - 1]), 1)
        first = max(0, i - max(1, budget // longest))
        cost = best[first:i] + (np.arange(i - first, 0, -1) * longest + BATCH_COST)
        start[i] = first + int(cost.argmin())
        best[i] = cost[start[i] - first]
    split = []
    end = n
    while end > 0:
        split.append(order[start[end] : end])
        end = start[end]
    return split


def hidden_states(encoder: Encoder, rows: Sequence[Row]) -> tuple[torch.Tensor, ...]:
    """Token states of a batch, of every layer: ``(n, longest, dim)``, on the encoder's device.

    ValueError for a model that does not give one state per token and layer.
    """
    shape = (len(rows), max(len(row["input_ids"]) for row in rows), encoder.dim)
    states = token_states(encoder, rows)
    shapes = [tuple(getattr(state, "shape", ())) for state in states]
    if shapes != [shape] * (encoder.n_layers + 1):
        raise ValueError(
            f"{encoder.name!r} gives hidden states of shapes {shapes}, where "
            f"{encoder.n_layers + 1} of shape {shape} are due: it is no Transformer whose "
            "layers can be read one by one"
        )
    return tuple(state.to(encoder.device) for state in states)  # of a model that is spread


def distinct(items: Sequence[Any]) -> tuple[list[Any], np.ndarray, np.ndarray]:
    """Distinct items by first appearance, the number of each item's, and where each comes first."""
    number = {item: u for u, item in enumerate(dict.fromkeys(items))}
    inverse = np.fromiter(map(number.get, items), dtype=np.intp, count=len(items))
    return list(number), inverse, np.unique(inverse, return_index=True)[1]


def check_vocabulary(
    encoder: Encoder, ids: Sequence[Sequence[int]], name: Callable[[int], str]
) -> None:
    """Refuse tokens that the model has no embedding of."""
    for i, row in enumerate(ids):
        if max(row, default=0) >= encoder.vocabulary_size:
            raise ValueError(
                f"{name(i)}: the tokenizer of {encoder.name!r} gives the token {max(row)}, but the "
                f"model knows {encoder.vocabulary_size} only; they do not belong together"
            )


def check_finite(
    states: np.ndarray, where: str, name: Callable[[int], str] = "position {}".format
) -> None:
    """Refuse vectors ``(n_layers + 1, n, dim)`` that hold NaN or infinity."""
    # One pass without a temporary of the same size: a sum is finite only if all its terms are.
    with np.errstate(all="ignore"):
        if np.isfinite(states.sum(dtype=np.float64)):
            return
    for layer, row in np.argwhere(~np.isfinite(states).all(axis=2)).tolist():
        problem = (
            "the vector holds NaN or infinity: the checkpoint may be broken, or overflow in half"
        )
        raise ValueError(f"{where}, {name(row)}, layer {layer}: {problem} precision")


class PoolingWarning(UserWarning):
    """A pooling whose reason does not hold for the model."""


@dataclass(frozen=True)
class SentenceStates:
    """Pooled hidden states of a list of sentences, or of pairs."""

    states: np.ndarray  # float32, (n_layers + 1, n_sentences, dim), in their order
    n_cut: int  # sentences longer than the maximum length, which lost their end
    unknown: float  # share of tokens that stand for what the tokenizer does not know


@dataclass(frozen=True)
class CorpusStates:
    """The vectors of a parallel corpus, and how to compare them.

    Of a model equal strings anywhere in the corpus have equal vectors, bit for bit.
    """

    states: Mapping[str, Any]  # language → (n_layers + 1, n_sentences, dim), or sparse (n, dim)
    cut: dict[str, int]  # by language: sentences cut at the maximum length
    device: str | torch.device = "cpu"
    dtype: torch.dtype | None = None  # that they are compared in; float32

    @property
    def counts(self) -> bool:
        """Whether the vectors are sparse, of one layer."""
        return sparse.issparse(next(iter(self.states.values())))

    def layers(self, space: Callable[[dict[str, Any]], Any] = dict) -> Iterator[dict[str, Any]]:
        """The vectors of each layer, moved into a space; sparse ones stay so as they come."""
        for layer in range(1 if self.counts else len(next(iter(self.states.values())))):
            vectors = {code: x if self.counts else x[layer] for code, x in self.states.items()}
            if self.counts and space is not dict:
                vectors = {code: x.toarray().astype(np.float32) for code, x in vectors.items()}
            yield space(vectors)


@checks.typed()
def embed(
    encoder: Encoder,
    sentences: Sequence[str],
    *,
    pooling: str = "mean",
    max_length: int | None = None,
    special_tokens: bool = False,
) -> SentenceStates:
    """Pooled hidden states of all layers for a list of sentences; equal strings computed once.

    ``max_length`` tokens a sentence may have, special ones included (None: what the model takes);
    the rest is cut off and counted. ``special_tokens``: whether those that the tokenizer adds count
    as subwords. ValueError if an option does not fit the model, a sentence has no token to pool, or
    a state is not a finite number.
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
    """`embed` with several poolings, by pooling; the model reads each sentence once."""
    checks.whole_characters(sentences, "sentences")
    poolings = check_poolings(encoder, poolings)
    ways = [(pooling, special_tokens) for pooling in poolings]
    states = [_kept_states(_states_ask(encoder, way, max_length, sentences)) for way in ways]
    if None in states:
        states = pooled_states(encoder, ways, max_length, [sentences], "position ")
    return dict(zip(poolings, states, strict=True))


def kept_by_language(
    encoder: Encoder,
    corpus: ParallelCorpus,
    ways: Sequence[tuple[str, bool]],
    max_length: int | None = None,
) -> Iterator[tuple[str, SentenceStates]]:
    """Each language, with its states in the first of the ways; all are in the cache then.

    A way is a pooling, and whether special tokens count. One file per language and way, where
    `embed` and `embed_corpus` find them; goes on after a stop.
    """
    cache = Cache(current().cache)
    for language, sentences in progress.bar(list(corpus.sentences.items()), encoder.name):
        asks = {way: _states_ask(encoder, way, max_length, sentences) for way in ways}
        states = {way: _kept_states(ask) for way, ask in asks.items()}
        if missing := [way for way in ways if states[way] is None]:
            where = f"language {language!r} of {corpus.name!r}, position "
            new = pooled_states(encoder, missing, max_length, [sentences], where)
            for way, of_way in zip(missing, new, strict=True):
                states[way] = of_way
                cache.put(asks[way], {name: np.asarray(x) for name, x in vars(of_way).items()})
        yield language, states[ways[0]]


def _states_ask(
    encoder: Encoder, way: tuple[str, bool], max_length: int | None, sentences: Sequence[str]
) -> Ask:
    """By what the states of sentences are kept in the cache of this machine."""
    made_by = provenance.environment()
    key = {
        "model": encoder.fingerprint,
        "pooling": way[0],
        "special_tokens": way[1],
        "max_length": encoder.reader(way[0]).limit(max_length),
        "dtype": encoder.precision,
        "device": encoder.device.type,
        **({"own": encoder.own.content} if way[0] == OWN else {}),
        "code": provenance.code_hash(pooled_states),
        "torch": made_by["torch"],
        "transformers": made_by["transformers"],
        "text": sentences_hash(sentences),
    }
    return Ask("embeddings", key)


def _kept_states(ask: Ask) -> SentenceStates | None:
    if (entry := Cache(current().cache).get(ask)) is None:
        return None
    value = entry.value
    return SentenceStates(value["states"], int(value["n_cut"]), float(value["unknown"]))


@checks.typed()
def embed_corpus(
    encoder: Encoder,
    corpus: ParallelCorpus,
    *,
    pooling: str = "mean",
    max_length: int | None = None,
    special_tokens: bool = False,
) -> CorpusStates:
    """Pooled hidden states of all languages of a parallel corpus, kept in this machine's cache.

    Where more than 5 % of the tokens are unknown, or of the sentences cut, the language is named in
    a `checks.TextWarning`. A segment left untranslated is the same string in two languages: all its
    occurrences get the vector of the first one, so distances to them are equal, not nearly so.
    Options and errors as `embed`, naming the language; a zero vector is an error too.
    """
    check_poolings(encoder, [pooling])
    pooled = dict(kept_by_language(encoder, corpus, [(pooling, special_tokens)], max_length))
    states = {code: of_code.states for code, of_code in pooled.items()}
    cut = {code: of_code.n_cut for code, of_code in pooled.items()}
    lost = {
        "tokens unknown to it": {code: of_code.unknown for code, of_code in pooled.items()},
        "sentences cut": {code: n / len(corpus.sentences[code]) for code, n in cut.items()},
    }
    checks.legible(encoder.name, corpus.name, lost)
    first = {}  # string → where it comes first
    for language, sentences in corpus.sentences.items():
        for position, sentence in enumerate(sentences):
            source, place = first.setdefault(sentence, (language, position))
            if (source, place) != (language, position):
                states[language][:, position] = states[source][:, place]
    for language, of_language in states.items():
        where = f"{encoder.name!r} on {corpus.name!r}, language {language!r}"
        check_finite(of_language, where)
        for layer, position in np.argwhere(~of_language.any(2)):
            raise ValueError(
                f"{where}, position {position}, layer {layer}: the vector is zero, so it has no "
                "cosine with another; leave the sentence out"
            )
    return CorpusStates(states, cut, encoder.device)


def states_about(
    name: Name,
    *,
    pooling: str = "mean",
    max_length: int | None = None,
    special_tokens: bool = False,
) -> dict[str, object]:
    """What decides the vectors of `embed` but for the sentences, without loading the model.

    Part of the ask of results computed from them: the content hash of the model, the options as
    asked for, the precision of the settings or of a loaded `Encoder`. Raises as `identify`.
    """
    checks.one_of(pooling, POOLINGS, "pooling")
    head = {}
    if pooling == OWN:
        vector = name.own if isinstance(name, Encoder) else own_vector(*find(name)[:2])
        head = {"own": vector and vector.content}
    return head | {
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

    By language ``(n_sentences, vocabulary)``, cut at ``max_length`` as the model's input is.
    """
    return {x: subword_counts(encoder, y, max_length) for x, y in corpus.sentences.items()}


def subword_counts(
    encoder: Encoder, sentences: Sequence[str], max_length: int | None = None
) -> sparse.csr_array:
    """Counts of each sentence's subwords (the first ``max_length``): ``(n, vocabulary)``."""
    limit = encoder.limit(max_length)
    columns, _ = tokenise(
        encoder.tokenizer, sentences, limit=limit, return_special_tokens_mask=True
    )
    subwords = _of_text(columns)
    rows = np.repeat(np.arange(len(subwords)), list(map(len, subwords)))
    ids = np.fromiter(chain.from_iterable(subwords), int)
    shape = (len(subwords), len(encoder.tokenizer))
    return sparse.coo_array((np.ones(len(rows)), (rows, ids)), shape).tocsr()


def pooled_states(
    encoder: Encoder,
    ways: Sequence[tuple[str, bool]],
    max_length: int | None,
    sides: Sequence[Sequence[str]],
    where: str,
) -> list[SentenceStates]:
    """Sentences, or pairs of them as the tokenizer writes a pair, pooled in each of the ways.

    ``sides`` are the sentences, or the first and the second ones; of a pair the subwords of both
    count as one sentence. ``where`` goes before a sentence's position in an error. Text that is
    read in the model's own way is read apart from the others.
    """
    parts = [[way for way in ways if (way[0] == OWN) is vector] for vector in (False, True)]
    if all(parts):
        read = [pooled_states(encoder, some, max_length, sides, where) for some in parts]
        by_way = dict(zip(chain(*parts), chain(*read), strict=True))
        return [by_way[way] for way in ways]
    reader, vector = encoder.reader(ways[0][0]), encoder.own if parts[1] else None
    unique, inverse, first = distinct(list(zip(*sides, strict=True)))

    def name(i: int) -> str:
        return f"{where}{first[i]} ({textwrap.shorten(' / '.join(unique[i]), 40)!r})"

    columns, inputs, cut = _read(
        reader, list(zip(*unique, strict=True)) or sides, max_length, vector
    )
    ids, special = columns["input_ids"], columns["special_tokens_mask"]
    for i, mask in enumerate(special):
        if all(mask):
            raise ValueError(
                f"{name(i)}: the tokenizer of {encoder.name!r} makes no token of this sentence, so "
                "there is nothing to pool; drop the sentence in all languages"
            )
    check_vocabulary(encoder, ids, name)
    n_unpooled = vector.n_unpooled(reader.tokenizer, reader.limit(max_length)) if vector else 0
    width = vector.width(encoder.dim) if vector else encoder.dim
    pooled = np.empty((len(ways), encoder.n_layers + 1, len(unique), width), dtype=np.float32)
    split = batches(list(map(len, ids)), apart=encoder.apart)
    for batch in progress.bar(split, "embedding", unit="batches"):
        layers = hidden_states(encoder, [{x: columns[x][i] for x in inputs} for i in batch])
        for states, (pooling, special_tokens) in zip(pooled, ways, strict=True):
            # Unless asked for, the special tokens count for "cls" alone, which is one of them.
            all_count = special_tokens or pooling in ("cls", OWN)
            counted = [(torch.tensor(special[i]) == 0) | all_count for i in batch]
            mask = torch.nn.utils.rnn.pad_sequence(counted, batch_first=True).to(encoder.device)
            layers_pooled = [
                vector.vectors(layer, mask, n_unpooled) if vector else pool(layer, mask, pooling)
                for layer in layers
            ]
            states[:, batch] = torch.stack(layers_pooled).cpu().numpy()
    for states in pooled:
        check_finite(states, f"{encoder.name!r}", name)
    tokens = list(chain.from_iterable(_of_text(columns)))
    unknown = tokens.count(encoder.tokenizer.unk_token_id) / max(1, len(tokens))
    n_cut, repeated = int(np.isin(inverse, cut).sum()), len(unique) < len(inverse)
    return [
        SentenceStates(states[:, inverse] if repeated else states, n_cut, unknown)
        for states in pooled
    ]


def _read(
    reader: Encoder,
    sides: Sequence[Sequence[str]],
    max_length: int | None,
    vector: OwnVector | None,
) -> tuple[dict[str, list[list[int]]], list[str], np.ndarray]:
    """The columns of `tokenise`, those of them that the model takes, and which rows were cut."""
    # Whether the model is told which sentence of a pair a token is of, as BERT is.
    has_segments = (getattr(reader.model.config, "type_vocab_size", 0) or 0) > 1
    has_segments = (has_segments and len(sides) == 2) or vector is not None
    has_segments = has_segments and "token_type_ids" in reader.tokenizer.model_input_names
    has_segments = (
        has_segments and "token_type_ids" in inspect.signature(reader.model.forward).parameters
    )
    prompt = vector.prompt if vector else ""
    columns, cut = tokenise(
        reader.tokenizer,
        *([prompt + text for text in side] for side in sides),
        limit=reader.limit(max_length, pair=len(sides) == 2),
        return_special_tokens_mask=True,
        return_token_type_ids=has_segments,
    )
    return columns, ["input_ids", "token_type_ids"] if has_segments else ["input_ids"], cut


def _of_text(columns: dict[str, list[list[int]]]) -> list[list[int]]:
    """The tokens of each text without the special ones."""
    rows = zip(columns["input_ids"], columns["special_tokens_mask"], strict=True)
    return [[i for i, added in zip(ids, mask, strict=True) if not added] for ids, mask in rows]


def check_poolings(encoder: Encoder, poolings: Sequence[str]) -> list[str]:
    """The poolings, each once; ValueError or a `PoolingWarning` where they do not fit the model."""
    problems = []
    for pooling in poolings or [None]:
        checks.one_of(pooling, POOLINGS, "pooling")
    if "weighted_mean" in poolings and encoder.kind != "decoder":
        problems.append("is no causal model, whose later tokens need a greater weight: take 'mean'")
    if "cls" in poolings:
        opening = encoder.tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"][0]
        problem = None if opening else "needs a tokenizer that puts a special token first"
        if opening and encoder.kind == "decoder":
            problem = "takes the first token, and that of a decoder, has seen no other"
        if problem:
            raise ValueError(f"pooling 'cls' {problem} ({encoder.name!r}): use 'mean' or 'last'")
    if OWN in poolings:
        encoder.reader(OWN)  # which refuses what is not supported
    elif encoder.own and encoder.own.pooling not in poolings:
        problems.append(f"was trained with the pooling {encoder.own.pooling!r}, as its folder says")
    for sentence in problems:
        warnings.warn(f"{encoder.name!r} {sentence}", PoolingWarning, stacklevel=3)
    return list(dict.fromkeys(poolings))
