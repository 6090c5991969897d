"""Sentences to vectors: the hidden states of every layer, pooled over a sentence's subwords.

One forward pass a batch gives all layers. Each layer's token states are pooled right away, and only
the pooled vectors are kept: float32, ``(n_layers + 1, n_sentences, dim)``. Layer 0 is the output of
the embedding layer, layer L the last hidden state, as in `transformers`.

Poolings, over the tokens t = 1 ... T of a sentence:

``mean``
    The plain mean over subword states ("the mean-pooled embedding of its subword tokens", ABX
    section 3).
``weighted_mean``
    Weights t / (1 + ... + T), so that later tokens, which have seen more, count more (Muennighoff
    2022; MEXA section 3.1). For causal models; with others, whose tokens have all seen the whole
    sentence, it is computed too, with a `PoolingWarning`.
``last``
    The state of token T.
``cls``
    The state of the first token of the sequence, for tokenizers that put a special one there.

Which tokens count is one choice for all but ``cls``: the subwords of the sentence alone, as the
paper has it, or with ``special_tokens=True`` also those that the tokenizer adds around it (<s>,
</s>, [CLS] ...). The model sees the special tokens either way.

Rows are padded on the right whatever the tokenizer's habit, so that a token's position in a causal
model never depends on the other rows of its batch. Which sentences share a batch can move a vector
in the last digits of float32; equal strings get equal vectors, bit for bit.
"""

import textwrap
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from scipy import sparse

from xlx import checks, progress, provenance
from xlx.models import Checkpoint, Encoder, identify
from xlx.settings import current
from xlx.store import Store

POOLINGS = ("mean", "weighted_mean", "last", "cls")

TOKEN_BUDGET = 4096
"""Most tokens in a batch, padding included; what it costs in memory, not how fast it is."""

_BATCH_COST = 96
"""What a batch costs beyond its tokens, in tokens: it sets how much padding may save a batch."""


class PoolingWarning(UserWarning):
    """A pooling whose reason does not hold for the model."""


class Corpus(Protocol):
    """What `embed_corpus` needs of a `xlx.corpora.ParallelCorpus`."""

    name: str
    sentences: Mapping[str, tuple[str, ...]]

    @property
    def languages(self) -> tuple[str, ...]: ...

    def text_hash(self, language: str) -> str: ...


@dataclass(frozen=True)
class SentenceStates:
    """Pooled hidden states of a list of sentences.

    Attributes
    ----------
    states : np.ndarray
        float32, ``(n_layers + 1, n_sentences, dim)``, in the order of the sentences.
    n_cut : int
        How many sentences were longer than the maximum length and lost their end.
    n_tokens : int
        How many tokens went through the model, special ones included, padding not.
    padding_share : float
        Which share of all positions in the batches was padding, 0 to 1.
    unknown : float
        Which share of the tokens of the sentences the tokenizer gives for what it does not know.
    """

    states: np.ndarray
    n_cut: int
    n_tokens: int
    padding_share: float
    unknown: float


@dataclass(frozen=True)
class CorpusStates:
    """Pooled hidden states of a parallel corpus.

    Attributes
    ----------
    states : dict of np.ndarray
        By language: float32, ``(n_layers + 1, n_sentences, dim)``. Equal strings anywhere in the
        corpus have equal vectors, bit for bit.
    cut : dict of int
        By language: how many sentences were cut at the maximum length.
    model, corpus : str
        Names, for tables and titles.
    pooling : str
    step : int or None
        Training step of the model.
    """

    states: dict[str, np.ndarray]
    cut: dict[str, int]
    model: str
    corpus: str
    pooling: str
    step: int | None = None

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

        Raises
        ------
        ValueError
            If languages differ in shape, or a vector is zero, infinite or not a number.
        """
        if not self.states:
            raise ValueError(f"{self.model!r} on {self.corpus!r}: there are no languages")
        first = self.languages[0]
        for language, states in self.states.items():
            if states.ndim != 3 or states.shape != self.states[first].shape:
                raise ValueError(
                    f"{self.model!r} on {self.corpus!r}: the embeddings of {language!r} have the "
                    f"shape {states.shape}, those of {first!r} {self.states[first].shape}: embed "
                    "all languages with one model, and the same sentences"
                )
            _check_numbers(states, f"{self.model!r} on {self.corpus!r}, language {language!r}")
            zero = np.argwhere(~states.any(axis=2))
            if len(zero):
                layer, position = zero[0]
                raise ValueError(
                    f"{self.model!r} on {self.corpus!r}, language {language!r}, position "
                    f"{position}, layer {layer}: the vector is zero, so it has no cosine with "
                    f"another ({len(zero)} such in this language); leave the sentence out"
                )
        return self


def embed(
    encoder: Encoder,
    sentences: Sequence[str],
    *,
    pooling: str = "mean",
    special_tokens: bool = False,
    max_length: int | None = None,
    token_budget: int = TOKEN_BUDGET,
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
    token_budget : int
        Tokens a batch may hold, padding included. A sentence longer than it goes alone.

    Raises
    ------
    ValueError
        If an option does not fit the model, a sentence has no token to pool, or a state is not a
        finite number.
    """
    (states,) = embed_poolings(
        encoder,
        sentences,
        (pooling,),
        special_tokens=special_tokens,
        max_length=max_length,
        token_budget=token_budget,
    ).values()
    return states


def embed_poolings(
    encoder: Encoder,
    sentences: Sequence[str],
    poolings: Sequence[str],
    *,
    special_tokens: bool = False,
    max_length: int | None = None,
    token_budget: int = TOKEN_BUDGET,
) -> dict[str, SentenceStates]:
    """`embed` with several poolings, for which the model reads each sentence once.

    Parameters, errors and vectors are those of `embed`; no pooling is an error too. The result is
    by pooling, in the order asked for.
    """
    _check_strings(sentences, "sentences")
    poolings = tuple(dict.fromkeys(poolings))
    plan = _plan(encoder, poolings, special_tokens, max_length, token_budget)
    _note(plan)
    with progress.bar(what="embedding", total=len(sentences), unit="sentences") as bar:
        return dict(zip(poolings, _embed(plan, sentences, "", bar.update), strict=True))


def embed_corpus(
    encoder: Encoder,
    corpus: Corpus,
    *,
    pooling: str = "mean",
    special_tokens: bool = False,
    max_length: int | None = None,
    token_budget: int = TOKEN_BUDGET,
) -> CorpusStates:
    """Pooled hidden states of all languages of a parallel corpus, kept in this machine's cache.

    Each language is a file of its own, so a run that was stopped goes on at the next language, and
    a corpus with a language more computes that one alone. A language of which more than 5 % of the
    tokens are unknown, or of the sentences cut, is named in a `checks.TextWarning`.

    A segment left untranslated is the same string in two languages. All its occurrences get the
    vector of the first one (in the order of languages and positions), so distances to them are
    equal, not nearly so.

    Parameters
    ----------
    encoder, pooling, special_tokens, max_length, token_budget
        As for `embed`.
    corpus : ParallelCorpus

    Raises
    ------
    ValueError
        As for `embed`, naming the language; or if a vector is zero.
    """
    for language in corpus.languages:
        _check_strings(corpus.sentences[language], f"language {language!r} of {corpus.name!r}")
    plan = _plan(encoder, (pooling,), special_tokens, max_length, token_budget)
    _note(plan)
    store = Store(current().cache)
    made_by = plan.key()
    states, cut, unknown = {}, {}, {}
    total = sum(len(corpus.sentences[language]) for language in corpus.languages)
    with progress.bar(what=encoder.name, total=total, unit="sentences") as bar:
        for language in corpus.languages:
            key = made_by | {"text": corpus.text_hash(language)}
            stored = store.load_arrays("embeddings", key)
            if stored is None:
                sentences = corpus.sentences[language]
                (result,) = _embed(
                    plan, sentences, f"language {language!r} of {corpus.name!r}, ", bar.update
                )
                stored = {
                    "states": result.states, "n_cut": np.array(result.n_cut),
                    "unknown": np.array(result.unknown),
                }  # fmt: skip
                store.save_arrays("embeddings", key, stored)
            else:
                bar.update(len(corpus.sentences[language]))
            states[language], cut[language] = stored["states"], int(stored["n_cut"])
            unknown[language] = float(stored["unknown"])
    shares = {code: n / len(corpus.sentences[code]) for code, n in cut.items()}
    lost = {"tokens unknown to it": unknown, "sentences cut": shares}
    checks.legible(encoder.name, corpus.name, lost)
    _share_vectors(corpus, states)
    result = CorpusStates(states, cut, encoder.name, corpus.name, pooling, encoder.step)
    return result.check()


def corpus_about(
    name: str | Path | Checkpoint,
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
    name: str | Path | Checkpoint,
    *,
    pooling: str = "mean",
    special_tokens: bool = False,
    max_length: int | None = None,
) -> dict[str, object]:
    """What decides the vectors of `embed` but for the sentences, without loading the model.

    Part of the identity of results computed from them (`xlx.work`): the content hash of the model,
    the options as asked for, the precision that the settings name.

    Raises
    ------
    ModelNotFoundError, ValueError
        As `xlx.models.identify`; for a pooling that there is not.
    """
    _check_poolings((pooling,))
    return {
        "model": identify(name).fingerprint,
        "pooling": pooling,
        "special_tokens": special_tokens,
        "max_length": max_length,
        "dtype": current().dtype,
    }


def bag_of_subwords(
    encoder: Encoder,
    corpus: Corpus,
    *,
    special_tokens: bool = False,
    max_length: int | None = None,
) -> dict[str, sparse.csr_array]:
    """Sentences as counts of their subwords: what a model with one-hot states would pool to.

    The reference line under every score of a model: two sentences are as similar as the subwords
    they share, whatever their order and sense.

    Returns
    -------
    dict of scipy.sparse.csr_array
        By language: ``(n_sentences, vocabulary)``, cut at `max_length` as the model's input is.
    """
    plan = _plan(encoder, ("mean",), special_tokens, max_length, TOKEN_BUDGET)
    bags = {}
    for language in corpus.languages:
        sentences = corpus.sentences[language]
        _check_strings(sentences, f"language {language!r} of {corpus.name!r}")
        ids, special, _ = _tokenize(plan, list(sentences))
        counted = [
            [i for i, added in zip(row, mask, strict=True) if special_tokens or not added]
            for row, mask in zip(ids, special, strict=True)
        ]
        columns = np.concatenate([np.array(row, dtype=np.int64) for row in counted])
        rows = np.repeat(np.arange(len(counted)), [len(row) for row in counted])
        shape = (len(counted), len(encoder.tokenizer))
        bags[language] = sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape).tocsr()
    return bags


def pool(states: torch.Tensor, counted: torch.Tensor, pooling: str) -> torch.Tensor:
    """Pool token states to sentence vectors, wherever the padding is.

    Parameters
    ----------
    states : Tensor
        ``(n_sentences, n_tokens, dim)``, any floating type.
    counted : Tensor
        ``(n_sentences, n_tokens)``, True where a token counts; at least one in each row. For "cls"
        the first that counts is taken, so the special tokens must be among them.
    pooling : {"mean", "weighted_mean", "last", "cls"}

    Returns
    -------
    Tensor
        float32, ``(n_sentences, dim)``.
    """
    return _apply(states, _pooling_weights(counted, pooling))


def _pooling_weights(counted: torch.Tensor, pooling: str) -> torch.Tensor:
    """Float32 shares of the tokens, ``(n, t)``; or of a single token its index, ``(n,)``."""
    if pooling == "last":
        return counted.shape[1] - 1 - counted.flip(1).long().argmax(dim=1)
    if pooling == "cls":
        return counted.long().argmax(dim=1)
    weights = counted.float()
    if pooling == "weighted_mean":
        weights = weights.cumsum(dim=1) * weights
    return weights / weights.sum(dim=1, keepdim=True)


def _apply(states: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    if weights.dim() == 1:
        return states[torch.arange(len(states), device=states.device), weights].float()
    return torch.bmm(weights.unsqueeze(1), states.float()).squeeze(1)


@dataclass(frozen=True)
class _Plan:
    """Options of `embed`, checked against the model."""

    encoder: Encoder
    poolings: tuple[str, ...]
    special_tokens: bool
    max_length: int | None
    token_budget: int

    def key(self) -> dict[str, object]:
        """What the vectors of this machine depend on, but for the text.

        The budget only moves the last digits.
        """
        (pooling,) = self.poolings
        made_by = provenance.environment()
        return {
            "model": self.encoder.fingerprint,
            "pooling": pooling,
            "special_tokens": self.special_tokens,
            "max_length": self.max_length,
            "dtype": str(self.encoder.dtype).removeprefix("torch."),
            "device": self.encoder.device.type,
            "code": provenance.code_hash(_embed),
            "torch": made_by["torch"],
            "transformers": made_by["transformers"],
        }


def _plan(
    encoder: Encoder,
    poolings: tuple[str, ...],
    special_tokens: bool,
    max_length: int | None,
    token_budget: int,
) -> _Plan:
    _check_poolings(poolings)
    if token_budget < 1:
        raise ValueError(f"token_budget is {token_budget}: a batch needs at least one token")
    tokenizer = encoder.tokenizer
    n_special = tokenizer.num_special_tokens_to_add(pair=False)
    if "cls" in poolings and not _opens_specially(tokenizer):
        raise ValueError(
            f"pooling 'cls' needs a tokenizer that puts a special token first, and that of "
            f"{encoder.name!r} does not: use 'mean' or 'last'"
        )
    if "cls" in poolings and encoder.kind == "decoder":
        raise ValueError(
            f"pooling 'cls' takes the first token, and that of {encoder.name!r}, a decoder, has "
            "seen no other: use 'mean' or 'last'"
        )
    if max_length is not None:
        checks.whole(max_length, "max_length", least=None)
    limit = encoder.max_length
    if max_length is None:
        max_length = limit
    elif limit is not None and max_length > limit:
        raise ValueError(f"max_length is {max_length}, but {encoder.name!r} takes {limit} tokens")
    if max_length is not None and max_length <= n_special:
        raise ValueError(
            f"max_length is {max_length}, and {n_special} of the tokens of {encoder.name!r} are "
            "special ones: no room is left for the sentence"
        )
    return _Plan(encoder, poolings, special_tokens, max_length, token_budget)


def _check_poolings(poolings: tuple[str, ...]) -> None:
    if not poolings:
        raise ValueError(f"no pooling is asked for: choose among {', '.join(POOLINGS)}")
    for pooling in poolings:
        if pooling not in POOLINGS:
            raise ValueError(f"pooling {pooling!r} is not one of {', '.join(POOLINGS)}")


def _note(plan: _Plan) -> None:
    if "weighted_mean" in plan.poolings and plan.encoder.kind != "decoder":
        warnings.warn(
            f"{plan.encoder.name!r} is no causal model: each of its tokens has seen the whole "
            "sentence, so the later ones need no greater weight; 'mean' is the usual pooling",
            PoolingWarning,
            stacklevel=4,
        )
    own = plan.encoder.own_pooling
    if own not in (None, *plan.poolings):
        warnings.warn(
            f"{plan.encoder.name!r} was trained with the pooling {own!r}, as its folder of "
            f"sentence-transformers says, and not with {plan.poolings[0]!r}",
            PoolingWarning,
            stacklevel=4,
        )


def _opens_specially(tokenizer: object) -> bool:
    probe = tokenizer("a", return_special_tokens_mask=True)
    return bool(probe["special_tokens_mask"][0])


def _check_strings(sentences: Sequence[str], what: str) -> None:
    if isinstance(sentences, str):
        raise ValueError(f"{what}: a single string was given where a list of sentences is due")
    for position, sentence in enumerate(sentences):
        if not isinstance(sentence, str):
            raise ValueError(f"{what}, position {position}: {sentence!r} is no string")


def _embed(
    plan: _Plan, sentences: Sequence[str], where: str, advance: Callable[[int], object]
) -> list[SentenceStates]:
    """`embed` for each of the poolings; `where` goes before a sentence's position in an error."""
    encoder = plan.encoder
    unique = list(dict.fromkeys(sentences))
    row = {sentence: i for i, sentence in enumerate(unique)}
    rows = np.fromiter((row[sentence] for sentence in sentences), dtype=np.intp)
    occurrences = np.bincount(rows, minlength=len(unique))

    def name(i: int) -> str:
        position = int(np.flatnonzero(rows == i)[0])
        return f"{where}position {position} ({textwrap.shorten(unique[i], 40)!r})"

    ids, special, cut = _tokenize(plan, unique)
    for i, mask in enumerate(special):
        if len(mask) == sum(mask) and not (len(mask) and plan.special_tokens):
            raise ValueError(
                f"{name(i)}: the tokenizer of {encoder.name!r} makes no token of this sentence, so "
                "there is nothing to pool; drop the sentence in all languages"
            )
        if max(ids[i]) >= encoder.vocabulary_size:
            raise ValueError(
                f"{name(i)}: the tokenizer of {encoder.name!r} gives the token {max(ids[i])}, but "
                f"the model knows {encoder.vocabulary_size} only; they do not belong together"
            )

    lengths = np.fromiter(map(len, ids), dtype=np.intp, count=len(ids))
    shape = (len(plan.poolings), encoder.n_layers + 1, len(unique), encoder.dim)
    pooled = np.empty(shape, dtype=np.float32)
    padded = 0
    for batch in _batches(lengths, plan.token_budget):
        padded += len(batch) * int(lengths[batch].max())
        pooled[:, :, batch] = _forward(plan, [ids[i] for i in batch], [special[i] for i in batch])
        advance(int(occurrences[batch].sum()))
    n_tokens = int(lengths.sum())
    unknown = _unknown(encoder.tokenizer, ids, special)
    results = []
    for states in pooled:
        _check_numbers(states, f"{encoder.name!r}", name)
        results.append(
            SentenceStates(
                states=states if len(unique) == len(sentences) else states[:, rows],
                n_cut=int(occurrences[cut].sum()),
                n_tokens=n_tokens,
                padding_share=1 - n_tokens / padded if padded else 0.0,
                unknown=unknown,
            )
        )
    return results


def _unknown(tokenizer: Any, ids: list[list[int]], special: list[list[int]]) -> float:
    """The share of unknown tokens among those of the sentences."""
    tokens = [
        i for row, mask in zip(ids, special, strict=True)
        for i, added in zip(row, mask, strict=True) if not added
    ]  # fmt: skip
    return tokens.count(tokenizer.unk_token_id) / len(tokens) if tokens else 0.0


def _tokenize(
    plan: _Plan, sentences: list[str]
) -> tuple[list[list[int]], list[list[int]], np.ndarray]:
    """Token ids, marks of special tokens (1), and the indices of sentences that were cut."""
    tokenizer = plan.encoder.tokenizer
    options = {
        "add_special_tokens": True,
        "return_attention_mask": False,
        "return_token_type_ids": False,
        "return_special_tokens_mask": True,
        "verbose": False,  # long sentences are counted, not warned of one by one
    }
    if not sentences:
        return [], [], np.empty(0, dtype=np.intp)
    encoded = tokenizer(sentences, **options)
    ids, special = encoded["input_ids"], encoded["special_tokens_mask"]
    limit = plan.max_length
    cut = [i for i, sentence in enumerate(ids) if limit is not None and len(sentence) > limit]
    if cut:
        shorter = tokenizer(
            [sentences[i] for i in cut], truncation=True, max_length=limit, **options
        )
        for k, i in enumerate(cut):
            ids[i] = shorter["input_ids"][k]
            special[i] = shorter["special_tokens_mask"][k]
    return ids, special, np.array(cut, dtype=np.intp)


def _batches(lengths: np.ndarray, token_budget: int) -> list[np.ndarray]:
    """Split sentences into batches of similar length, longest first.

    Among all ways to cut the list sorted by length into runs that keep the budget, the one with the
    least padded tokens plus `_BATCH_COST` a batch (dynamic programming over the cuts).
    """
    n = len(lengths)
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order]
    best = np.zeros(n + 1)  # least cost of the first i sentences
    start = np.zeros(n + 1, dtype=np.intp)  # where the last of their batches begins
    for i in range(1, n + 1):
        longest = max(int(ordered[i - 1]), 1)
        first = max(0, i - max(1, token_budget // longest))
        cost = best[first:i] + (np.arange(i - first, 0, -1) * longest + _BATCH_COST)
        start[i] = first + int(cost.argmin())
        best[i] = cost[start[i] - first]
    batches = []
    end = n
    while end > 0:
        batches.append(order[start[end] : end])
        end = start[end]
    return batches


@torch.inference_mode()
def _forward(plan: _Plan, ids: list[list[int]], special: list[list[int]]) -> np.ndarray:
    """One batch through the model: float32 ``(n_poolings, n_layers + 1, n_sentences, dim)``."""
    encoder = plan.encoder
    longest = max(map(len, ids))
    tokens = np.full((len(ids), longest), encoder.pad_id, dtype=np.int64)
    real = np.zeros((len(ids), longest), dtype=bool)
    of_sentence = np.zeros((len(ids), longest), dtype=bool)
    for k, (sentence, mask) in enumerate(zip(ids, special, strict=True)):
        tokens[k, : len(sentence)] = sentence
        real[k, : len(sentence)] = True
        of_sentence[k, : len(sentence)] = np.logical_not(mask)
    device = encoder.device
    # Without padding there is nothing to mask, and attention without a mask is faster.
    mask = None if real.all() else torch.from_numpy(real).to(device, torch.int64)
    output = encoder.model(
        input_ids=torch.from_numpy(tokens).to(device),
        attention_mask=mask,
        output_hidden_states=True,
        return_dict=True,
    )
    pooled = []
    for pooling in plan.poolings:
        counted = real if plan.special_tokens or pooling == "cls" else of_sentence
        weights = _pooling_weights(torch.from_numpy(counted).to(device), pooling)
        pooled.append(torch.stack([_apply(layer, weights) for layer in output.hidden_states]))
    return torch.stack(pooled).cpu().numpy()


def _check_numbers(
    states: np.ndarray, where: str, name: Callable[[int], str] = "position {}".format
) -> None:
    bad = np.argwhere(~np.isfinite(states).all(axis=2)) if not _finite(states) else ()
    if len(bad):
        layer, row = (int(index) for index in bad[0])
        raise ValueError(
            f"{where}, {name(row)}, layer {layer}: the vector holds NaN or infinity "
            f"({len(bad)} such vectors); the checkpoint may be broken, or overflow in bfloat16"
        )


def _finite(states: np.ndarray) -> bool:
    # One pass without a temporary of the same size: a sum is finite only if all its terms are.
    with np.errstate(all="ignore"):
        return bool(np.isfinite(states.sum(dtype=np.float64)))


def _share_vectors(corpus: Corpus, states: dict[str, np.ndarray]) -> None:
    """Give all occurrences of a string, in any language, the vector of its first."""
    first: dict[str, tuple[str, int]] = {}
    for language in corpus.languages:
        for position, sentence in enumerate(corpus.sentences[language]):
            source, at = first.setdefault(sentence, (language, position))
            if (source, at) != (language, position):
                states[language][:, position] = states[source][:, at]
