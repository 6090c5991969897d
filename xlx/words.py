"""Words and sentence pairs to vectors: what probes for tagging and inference are fitted on.

`embed_words` gives a vector for every word of sentences that come split into words (the syntactic
words of Universal Dependencies, the tokens of WikiAnn). The model reads the whole sentence, and of
a word's subwords

``first``
    only the first one counts (Devlin et al. 2019, section 5.3);
``mean``
    all count alike.

Some tokenizers set the mark of a word's beginning apart ("▁", "," for a comma, or "▁", "天", "気").
That bare mark is the same for all such words, so ``first`` passes over it: it takes the first
subword that is more than a mark, if the word has one. In a causal model the first subword has not
seen the rest of its word; ``mean`` has.

The tokenizer is given the words, so every word begins as after a space, also before a full stop and
in scripts written without spaces. Tokenizers that tell a word after a space from one without (the
byte-level ones of GPT-2, RoBERTa, Llama 3) are given the spaces too; the subwords are those of the
words written with single spaces between them.

No word is ever given another's vector: a word that loses a subword because its sentence is longer
than the model takes has none, nor has a word of which the tokenizer makes nothing (a control
character, say). Both are counted, and `WordStates` says of each vector which word it is of.

`embed_pairs` gives a vector for every pair of sentences,

``joint``
    both read at once, as the tokenizer writes a pair, then pooled over the subwords of both, the
    special tokens around and between them left out (but for pooling "cls");
``concatenated``
    each read alone, to u and v, then [u; v; |u - v|; u * v] (Conneau et al. 2017, Figure 1).

All layers come at once, float32. Rows are padded on the right as in `xlx.embeddings`; which
sentences share a batch can move a vector in the last digits, and equal sentences or pairs have
equal vectors, bit for bit.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from xlx import progress
from xlx.embeddings import (
    TOKEN_BUDGET,
    _apply,
    _batches,
    _check_numbers,
    _check_strings,
    _embed,
    _Plan,
    _plan,
    _pooling_weights,
    _tokenize,
    states_about,
)
from xlx.models import Checkpoint, Encoder

SUBWORDS = ("first", "mean")
FORMS = ("joint", "concatenated")

_MARKS = ("▁", "Ġ", " ")
"""Subwords that only say that a word begins: of sentencepiece, byte-level BPE, characters."""


@dataclass(frozen=True)
class WordStates:
    """Hidden states of the words of a list of sentences, in their order.

    Attributes
    ----------
    states : np.ndarray
        float32, ``(n_layers + 1, n_kept_words, dim)``.
    sentence, word : np.ndarray
        ``(n_kept_words,)``: which sentence a vector's word is in, and which of its words it is.
    n_cut : int
        How many words lost a subword, or all, because their sentence was longer than the maximum
        length.
    n_empty : int
        Of how many words the tokenizer made no subword.
    """

    states: np.ndarray
    sentence: np.ndarray
    word: np.ndarray
    n_cut: int
    n_empty: int


@dataclass(frozen=True)
class PairStates:
    """Hidden states of sentence pairs, in their order.

    Attributes
    ----------
    states : np.ndarray
        float32, ``(n_layers + 1, n_pairs, dim)``; of concatenated pairs ``4 * dim`` wide.
    n_cut : int
        How many pairs were longer than the maximum length and lost the end of a sentence.
    """

    states: np.ndarray
    n_cut: int


def embed_words(
    encoder: Encoder,
    sentences: Sequence[Sequence[str]],
    *,
    subword: str = "first",
    max_length: int | None = None,
    token_budget: int = TOKEN_BUDGET,
) -> WordStates:
    """Hidden states of all layers for the words of a list of sentences.

    Parameters
    ----------
    encoder : Encoder
        From `xlx.models.load`.
    sentences : sequence of sequences of str
        Each a list of words. Equal sentences are computed once.
    subword : {"first", "mean"}
        See the module's text.
    max_length : int, optional
        Tokens a sentence may have, special ones included; words past them are lost and counted.
        Default: what the model takes.
    token_budget : int
        Tokens a batch may hold, padding included. A sentence longer than it goes alone.

    Raises
    ------
    ValueError
        If a sentence is no list of words or has none, an option or the tokenizer does not fit, or a
        state is not a finite number.
    """
    _check_words(sentences)
    plan = _words_plan(encoder, subword, max_length, token_budget)
    unique, of, first = _distinct([tuple(words) for words in sentences])
    pieces = list(_pieces(plan, unique, subword))
    _check_known(encoder, [piece.ids for piece in pieces], lambda u: f"sentence {first[u]}")

    n_words = np.array([len(piece.words) for piece in pieces], dtype=np.intp)
    ends = n_words[of].cumsum()
    starts = ends - n_words[of]  # where the vectors of each sentence begin
    total = int(ends[-1]) if len(ends) else 0
    states = np.empty((encoder.n_layers + 1, total, encoder.dim), dtype=np.float32)
    word = np.concatenate([np.empty(0, dtype=np.intp), *(pieces[u].words for u in of)])
    sentence = np.repeat(np.arange(len(of)), n_words[of])

    lengths = np.array([len(piece.ids) for piece in pieces], dtype=np.intp)
    occurrences = np.bincount(of, minlength=len(unique))
    filled = np.flatnonzero(n_words)
    with progress.bar(what="embedding words", total=len(sentences), unit="sentences") as bar:
        bar.update(int(occurrences[n_words == 0].sum()))
        for batch in _batches(lengths[filled], plan.token_budget):
            batch = filled[batch]
            places = [np.arange(n_words[u]) + starts[first[u]] for u in batch]
            states[:, np.concatenate(places)] = _forward_words(plan, [pieces[u] for u in batch])
            bar.update(int(occurrences[batch].sum()))
    for i in np.flatnonzero(first[of] != np.arange(len(of))):
        source = starts[first[of[i]]]
        states[:, starts[i] : ends[i]] = states[:, source : source + n_words[of[i]]]
    _check_numbers(
        states,
        f"{encoder.name!r}",
        lambda k: f"sentence {sentence[k]}, word {word[k]} ({sentences[sentence[k]][word[k]]!r})",
    )
    return WordStates(
        states=states,
        sentence=sentence,
        word=word,
        n_cut=sum(pieces[u].n_cut for u in of),
        n_empty=sum(pieces[u].n_empty for u in of),
    )


def embed_pairs(
    encoder: Encoder,
    first: Sequence[str],
    second: Sequence[str],
    *,
    form: str = "joint",
    pooling: str = "mean",
    max_length: int | None = None,
    token_budget: int = TOKEN_BUDGET,
) -> PairStates:
    """Hidden states of all layers for pairs of sentences (premise and hypothesis).

    Parameters
    ----------
    encoder : Encoder
        From `xlx.models.load`.
    first, second : sequence of str
        Equally many. Equal pairs (concatenated: equal sentences) are computed once.
    form : {"joint", "concatenated"}
        See the module's text.
    pooling : {"mean", "weighted_mean", "last", "cls"}
        As in `xlx.embeddings`; of a joint pair the tokens of both sentences are pooled as one.
    max_length : int, optional
        Tokens a joint pair, or one of the concatenated sentences, may have, special ones included.
        A joint pair loses tokens of its longer sentence first. Default: what the model takes.
    token_budget : int
        Tokens a batch may hold, padding included. A pair longer than it goes alone.

    Raises
    ------
    ValueError
        If the numbers of sentences differ, an option does not fit the model, a sentence has no
        token, or a state is not a finite number.
    """
    _check_strings(first, "first")
    _check_strings(second, "second")
    if len(first) != len(second):
        raise ValueError(
            f"there are {len(first)} first and {len(second)} second sentences: "
            "a pair has one of each"
        )
    plan = _pairs_plan(encoder, form, pooling, max_length, token_budget)
    embed = {"joint": _joint, "concatenated": _concatenated}[form]
    with progress.bar(what="embedding pairs", total=2 * len(first), unit="sentences") as bar:
        return embed(plan, first, second, bar.update)


def words_about(
    name: str | Path | Checkpoint,
    text_hash: str,
    *,
    subword: str = "first",
    max_length: int | None = None,
) -> dict[str, object]:
    """What decides the vectors of `embed_words`, without loading the model.

    As `embeddings.states_about`; ``text_hash`` is of the sentences, split into words.
    """
    _check_subword(subword)
    about = states_about(name, max_length=max_length) | {"text": text_hash, "subword": subword}
    del about["pooling"], about["special_tokens"]
    return about


def pairs_about(
    name: str | Path | Checkpoint,
    text_hash: str,
    *,
    form: str = "joint",
    pooling: str = "mean",
    max_length: int | None = None,
) -> dict[str, object]:
    """What decides the vectors of `embed_pairs`, without loading the model.

    As `embeddings.states_about`; ``text_hash`` is of both sides.
    """
    _check_form(form)
    about = states_about(name, pooling=pooling, max_length=max_length)
    return about | {"text": text_hash, "form": form}


def _words_plan(encoder: Encoder, subword: str, max_length: int | None, token_budget: int) -> _Plan:
    _check_subword(subword)
    return _plan(encoder, ("mean",), False, max_length, token_budget)


def _pairs_plan(
    encoder: Encoder, form: str, pooling: str, max_length: int | None, token_budget: int
) -> _Plan:
    _check_form(form)
    plan = _plan(encoder, (pooling,), False, max_length, token_budget)
    n_special = encoder.tokenizer.num_special_tokens_to_add(pair=True)
    if form == "joint" and plan.max_length is not None and plan.max_length < n_special + 2:
        raise ValueError(
            f"max_length is {plan.max_length}, and {n_special} of the tokens of a pair are special "
            f"ones with {encoder.name!r}: no room is left for two sentences"
        )
    return plan


def _check_subword(subword: str) -> None:
    if subword not in SUBWORDS:
        raise ValueError(f"subword {subword!r} is not one of {', '.join(SUBWORDS)}")


def _check_form(form: str) -> None:
    if form not in FORMS:
        raise ValueError(f"form {form!r} is not one of {', '.join(FORMS)}")


def _check_words(sentences: Sequence[Sequence[str]]) -> None:
    if isinstance(sentences, str):
        raise ValueError("a single string was given where a list of sentences is due")
    for i, words in enumerate(sentences):
        if isinstance(words, str):
            raise ValueError(
                f"sentence {i} is a string, {words[:40]!r}: give it as a list of its words"
            )
        if len(words) == 0:
            raise ValueError(f"sentence {i} has no words: drop it")
        for j, word in enumerate(words):
            if not isinstance(word, str):
                raise ValueError(f"sentence {i}, word {j}: {word!r} is no string")


def _check_known(
    encoder: Encoder, ids: Sequence[Sequence[int]], name: Callable[[int], str]
) -> None:
    for u, row in enumerate(ids):
        if max(row, default=0) >= encoder.vocabulary_size:
            raise ValueError(
                f"{name(u)}: the tokenizer of {encoder.name!r} gives the token {max(row)}, but the "
                f"model knows {encoder.vocabulary_size} only; they do not belong together"
            )


def _distinct(items: Sequence[Any]) -> tuple[list[Any], np.ndarray, np.ndarray]:
    """Distinct items; of each item which of them it is; of each of them where it first is."""
    unique = list(dict.fromkeys(items))
    number = {item: u for u, item in enumerate(unique)}
    of = np.fromiter((number[item] for item in items), dtype=np.intp, count=len(items))
    return unique, of, np.unique(of, return_index=True)[1]


# Words


@dataclass(frozen=True)
class _Pieces:
    """A sentence as the model reads it, and which of its tokens make which word's vector.

    ``words``: those that get a vector, ``(k,)``. The vector of ``words[rows[m]]`` takes the share
    ``shares[m]`` of the token ``tokens[m]``.
    """

    ids: list[int]
    words: np.ndarray
    rows: np.ndarray
    tokens: np.ndarray
    shares: np.ndarray
    n_cut: int
    n_empty: int


def _pieces(plan: _Plan, sentences: Sequence[Sequence[str]], subword: str) -> Iterator[_Pieces]:
    if not sentences:
        return
    tokenizer = plan.encoder.tokenizer
    spaces = _needs_spaces(plan.encoder)
    vocabulary = tokenizer.get_vocab()
    marks = [vocabulary[mark] for mark in _MARKS if mark in vocabulary]
    owners = _owners if tokenizer.is_fast else _owners_slow
    # A blank word is none, whatever a tokenizer makes of white space.
    texts = [[word if word.strip() else "" for word in words] for words in sentences]
    if spaces:
        texts = [_spaced(words) for words in texts]
    for words, (ids, owner, whole) in zip(
        texts, owners(tokenizer, texts, plan.max_length), strict=True
    ):
        yield _choose(ids, owner, np.bincount(whole, minlength=len(words)), marks, subword)


def _spaced(words: list[str]) -> list[str]:
    """A space before every word but the first that is not empty."""
    first = next((j for j, word in enumerate(words) if word), 0)
    return [" " + word if word and j > first else word for j, word in enumerate(words)]


def _choose(
    ids: list[int], owner: np.ndarray, whole: np.ndarray, marks: list[int], subword: str
) -> _Pieces:
    """Which tokens make which word's vector.

    ``owner``: of each token the word it is of, or -1. ``whole``: of each word how many subwords it
    has in the uncut sentence.
    """
    tokens = np.flatnonzero(owner >= 0)
    found = np.bincount(owner[tokens], minlength=len(whole))
    kept = (found == whole) & (whole > 0)
    words = np.flatnonzero(kept)
    tokens = tokens[kept[owner[tokens]]]
    rows = np.searchsorted(words, owner[tokens])
    if subword == "first":
        is_mark = np.isin(np.array(ids, dtype=np.int64)[tokens], marks)
        order = np.lexsort((tokens, is_mark, rows))  # by word; in a word, bare marks last
        rows, first = np.unique(rows[order], return_index=True)
        tokens = tokens[order][first]
        shares = np.ones(len(rows))
    else:
        shares = 1 / whole[words][rows]
    return _Pieces(
        ids=ids,
        words=words,
        rows=rows,
        tokens=tokens,
        shares=shares,
        n_cut=int((found < whole).sum()),
        n_empty=int((whole == 0).sum()),
    )


def _owners(
    tokenizer: Any, sentences: list[list[str]], limit: int | None
) -> Iterator[tuple[list[int], np.ndarray, np.ndarray]]:
    """Of each sentence the token ids, the word of each token (-1: none), and those before a cut."""

    def numbers(encoded: Any, i: int) -> np.ndarray:
        return np.array([-1 if w is None else w for w in encoded.word_ids(i)], dtype=np.intp)

    options = {
        "is_split_into_words": True,
        "add_special_tokens": True,
        "return_attention_mask": False,
        "return_token_type_ids": False,
        "verbose": False,
    }
    encoded = tokenizer(sentences, **options)
    for i, ids in enumerate(encoded["input_ids"]):
        owner = numbers(encoded, i)
        whole = owner[owner >= 0]
        if limit is not None and len(ids) > limit:
            shorter = tokenizer([sentences[i]], truncation=True, max_length=limit, **options)
            ids, owner = shorter["input_ids"][0], numbers(shorter, 0)
        yield ids, owner, whole


def _owners_slow(
    tokenizer: Any, sentences: list[list[str]], limit: int | None
) -> Iterator[tuple[list[int], np.ndarray, np.ndarray]]:
    """`_owners` for tokenizers in Python, which know no word numbers: each word by itself."""
    distinct = dict.fromkeys(word for words in sentences for word in words)
    subwords = {
        word: tokenizer.convert_tokens_to_ids(tokenizer.tokenize(word)) for word in distinct
    }
    room = None if limit is None else limit - tokenizer.num_special_tokens_to_add(pair=False)
    for words in sentences:
        ids = [i for word in words for i in subwords[word]]
        whole = np.repeat(np.arange(len(words)), [len(subwords[word]) for word in words])
        encoded = tokenizer.prepare_for_model(
            ids[:room],
            add_special_tokens=True,
            return_attention_mask=False,
            return_token_type_ids=False,
            return_special_tokens_mask=True,
        )
        owner = np.full(len(encoded["input_ids"]), -1, dtype=np.intp)
        owner[np.array(encoded["special_tokens_mask"]) == 0] = whole[:room]
        yield encoded["input_ids"], owner, whole


def _needs_spaces(encoder: Encoder) -> bool:
    """Whether the tokenizer must be given the spaces before words, to tell "a b" from "ab".

    Raises ValueError if no way of giving it words leads to the subwords of the text.
    """
    tokenizer = encoder.tokenizer
    owners = _owners if tokenizer.is_fast else _owners_slow
    text = tokenizer("a b", return_attention_mask=False, return_token_type_ids=False)["input_ids"]
    for spaces in (False, True):
        ((ids, _, _),) = owners(tokenizer, [["a", " b" if spaces else "b"]], None)
        if ids == text:
            return spaces
    raise ValueError(
        f"the tokenizer of {encoder.name!r} cuts 'a b' in another way when it is given the words "
        "one by one, with or without the space, so its subwords cannot be told apart by word: use "
        "a model with another tokenizer"
    )


def _forward_words(plan: _Plan, sentences: list[_Pieces]) -> np.ndarray:
    """One batch through the model: float32 ``(n_layers + 1, n_words, dim)``, in order."""
    longest = max(len(sentence.ids) for sentence in sentences)
    most = max(len(sentence.words) for sentence in sentences)
    shares = np.zeros((len(sentences), most, longest), dtype=np.float32)
    kept = np.zeros((len(sentences), most), dtype=bool)
    for k, sentence in enumerate(sentences):
        shares[k, sentence.rows, sentence.tokens] = sentence.shares
        kept[k, : len(sentence.words)] = True
    device = plan.encoder.device
    weights, there = torch.from_numpy(shares).to(device), torch.from_numpy(kept).to(device)
    layers = _hidden_states(plan.encoder, [sentence.ids for sentence in sentences])
    return torch.stack([torch.bmm(weights, s.float())[there] for s in layers]).cpu().numpy()


@torch.inference_mode()
def _hidden_states(
    encoder: Encoder, ids: list[list[int]], types: list[list[int]] | None = None
) -> tuple[torch.Tensor, ...]:
    """Token states of a batch, of every layer: ``(n_sentences, longest, dim)``, padded right.

    ``types``: of each token which sentence of a pair it is of, for models that are told.
    """
    longest = max(map(len, ids))

    def padded(rows: Sequence[Sequence[int]], value: int) -> torch.Tensor:
        return torch.tensor(
            [[*row, *[value] * (longest - len(row))] for row in rows], device=encoder.device
        )

    real = padded([[1] * len(row) for row in ids], 0)
    told = {} if types is None else {"token_type_ids": padded(types, 0)}
    output = encoder.model(
        input_ids=padded(ids, encoder.pad_id),
        # Without padding there is nothing to mask, and attention without a mask is faster.
        attention_mask=None if all(len(row) == longest for row in ids) else real,
        output_hidden_states=True,
        return_dict=True,
        **told,
    )
    return output.hidden_states


# Pairs


def _joint(
    plan: _Plan,
    first: Sequence[str],
    second: Sequence[str],
    advance: Callable[[int], object],
) -> PairStates:
    encoder = plan.encoder
    (pooling,) = plan.poolings
    unique, of, position = _distinct(list(zip(first, second, strict=True)))
    ids, special, types, cut = _tokenize_pairs(plan, unique)

    def name(u: int) -> str:
        return f"pair {position[u]}"

    _check_known(encoder, ids, name)
    for u, mask in enumerate(special):
        if all(mask) or not (unique[u][0].strip() and unique[u][1].strip()):
            raise ValueError(f"{name(u)}: a sentence has no token; drop the pair")

    pooled = np.empty((encoder.n_layers + 1, len(unique), encoder.dim), dtype=np.float32)
    occurrences = np.bincount(of, minlength=len(unique))
    for batch in _batches(np.array(list(map(len, ids)), dtype=np.intp), plan.token_budget):
        layers = _hidden_states(
            encoder, [ids[u] for u in batch], None if types is None else [types[u] for u in batch]
        )
        counted = np.zeros(layers[0].shape[:2], dtype=bool)
        for k, u in enumerate(batch):
            # The special tokens count for "cls" alone, which is one of them.
            counted[k, : len(ids[u])] = pooling == "cls" or np.logical_not(special[u])
        weights = _pooling_weights(torch.from_numpy(counted).to(encoder.device), pooling)
        pooled[:, batch] = torch.stack([_apply(layer, weights) for layer in layers]).cpu().numpy()
        advance(2 * int(occurrences[batch].sum()))
    _check_numbers(pooled, f"{encoder.name!r}", name)
    return PairStates(
        states=pooled if len(unique) == len(of) else pooled[:, of],
        n_cut=int(occurrences[cut].sum()),
    )


def _tokenize_pairs(
    plan: _Plan, pairs: list[tuple[str, str]]
) -> tuple[list[list[int]], list[list[int]], list[list[int]] | None, np.ndarray]:
    """Token ids, marks of special tokens (1), token types if told, and which pairs were cut."""
    told = _has_token_types(plan.encoder)
    if not pairs:
        return [], [], [] if told else None, np.empty(0, dtype=np.intp)

    def tokenize(chosen: list[tuple[str, str]], **limit: object) -> Any:
        return plan.encoder.tokenizer(
            [one for one, _ in chosen],
            [other for _, other in chosen],
            add_special_tokens=True,
            return_attention_mask=False,
            return_token_type_ids=told,
            return_special_tokens_mask=True,
            verbose=False,
            **limit,
        )

    names = ["input_ids", "special_tokens_mask", *(["token_type_ids"] if told else [])]
    encoded = tokenize(pairs)
    rows = [list(encoded[name]) for name in names]
    limit = plan.max_length
    cut = [u for u, ids in enumerate(rows[0]) if limit is not None and len(ids) > limit]
    if cut:
        shorter = tokenize([pairs[u] for u in cut], truncation="longest_first", max_length=limit)
        for name, row in zip(names, rows, strict=True):
            for k, u in enumerate(cut):
                row[u] = shorter[name][k]
    ids, special, *types = rows
    return ids, special, types[0] if told else None, np.array(cut, dtype=np.intp)


def _has_token_types(encoder: Encoder) -> bool:
    """Whether the model is told which sentence of a pair a token is of, as BERT is."""
    in_model = getattr(encoder.model.config, "type_vocab_size", 0) or 0
    return in_model > 1 and "token_type_ids" in encoder.tokenizer.model_input_names


def _concatenated(
    plan: _Plan,
    first: Sequence[str],
    second: Sequence[str],
    advance: Callable[[int], object],
) -> PairStates:
    n = len(first)
    sentences = [*first, *second]
    # At once, so that a sentence that stands on both sides has one vector, and u - v is zero.
    (result,) = _embed(plan, sentences, "first and second sentences end to end, ", advance)
    u, v = result.states[:, :n], result.states[:, n:]
    n_cut = 0
    if result.n_cut:
        cut = {sentences[i] for i in _tokenize(plan, sentences)[2]}
        n_cut = sum(one in cut or other in cut for one, other in zip(first, second, strict=True))
    return PairStates(np.concatenate([u, v, np.abs(u - v), u * v], axis=2), n_cut)
