"""Words to vectors: what probes for tagging are fitted on.

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

All layers come at once, float32; equal sentences have equal vectors, bit for bit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from xlx.core import checks, progress
from xlx.models.batching import (
    batches,
    check_finite,
    check_strings,
    check_vocabulary,
    distinct,
    hidden_states,
)
from xlx.models.embeddings import states_about
from xlx.models.loading import Encoder, Name

WORD_SUBWORDS = ("first", "mean")

_MARKS = ("▁", "Ġ", " ")
"""Subwords that only say that a word begins: of sentencepiece, byte-level BPE, characters."""
_COUNTS = ("n_cut", "n_empty")


@dataclass(frozen=True)
class WordStates:
    """Hidden states of the words of a list of sentences, in their order.

    ``sentence`` and ``word``, ``(n_kept_words,)``, say which sentence a vector's word is in, and
    which of its words it is.
    """

    states: np.ndarray  # float32, (n_layers + 1, n_kept_words, dim)
    sentence: np.ndarray
    word: np.ndarray
    n_cut: int  # words that lost a subword, or all, as their sentence was too long
    n_empty: int  # words of which the tokenizer made no subword


def embed_words(
    encoder: Encoder,
    sentences: Sequence[Sequence[str]],
    *,
    subword: str = "first",
    max_length: int | None = None,
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

    ValueError if a sentence is no list of words or has none, an option or the tokenizer does not
    fit, or a state is not a finite number.
    """
    _check_words(sentences)
    checks.one_of(subword, WORD_SUBWORDS, "subword")
    unique, inverse, first = distinct([tuple(words) for words in sentences])
    pieces = list(_pieces(encoder, unique, subword, encoder.limit(max_length)))
    check_vocabulary(encoder, [piece.ids for piece in pieces], lambda u: f"sentence {first[u]}")

    n_words = np.array([len(piece.words) for piece in pieces], dtype=np.intp)
    ends = n_words[inverse].cumsum()
    starts = ends - n_words[inverse]  # where the vectors of each sentence begin
    total = int(ends[-1]) if len(ends) else 0
    states = np.empty((encoder.n_layers + 1, total, encoder.dim), dtype=np.float32)
    word = np.concatenate([np.empty(0, dtype=np.intp), *(pieces[u].words for u in inverse)])
    sentence = np.repeat(np.arange(len(inverse)), n_words[inverse])

    occurrences = np.bincount(inverse, minlength=len(unique))
    filled = np.flatnonzero(n_words)
    with progress.bar(what="embedding words", total=len(sentences), unit="sentences") as bar:
        bar.update(int(occurrences[n_words == 0].sum()))
        for batch in batches([len(pieces[u].ids) for u in filled]):
            batch = filled[batch]
            places = [np.arange(n_words[u]) + starts[first[u]] for u in batch]
            states[:, np.concatenate(places)] = _forward(encoder, [pieces[u] for u in batch])
            bar.update(int(occurrences[batch].sum()))
    for i in np.flatnonzero(first[inverse] != np.arange(len(inverse))):
        source = starts[first[inverse[i]]]
        states[:, starts[i] : ends[i]] = states[:, source : source + n_words[inverse[i]]]
    check_finite(
        states,
        f"{encoder.name!r}",
        lambda k: f"sentence {sentence[k]}, word {word[k]} ({sentences[sentence[k]][word[k]]!r})",
    )
    n_cut, n_empty = (sum(getattr(pieces[u], name) for u in inverse) for name in _COUNTS)
    return WordStates(states, sentence, word, n_cut, n_empty)


def words_about(
    name: Name, text_hash: str, *, subword: str = "first", max_length: int | None = None
) -> dict[str, object]:
    """What decides the vectors of `embed_words`, without loading the model.

    As `embeddings.states_about`; ``text_hash`` is of the sentences, split into words.
    """
    checks.one_of(subword, WORD_SUBWORDS, "subword")
    about = states_about(name, max_length=max_length) | {"text": text_hash, "subword": subword}
    del about["pooling"], about["special_tokens"]
    return about


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
        check_strings(words, f"sentence {i}")


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


def _pieces(
    encoder: Encoder, sentences: Sequence[Sequence[str]], subword: str, limit: int | None
) -> Iterator[_Pieces]:
    if not sentences:
        return
    tokenizer = encoder.tokenizer
    spaces = _needs_spaces(encoder)
    vocabulary = tokenizer.get_vocab()
    marks = [vocabulary[mark] for mark in _MARKS if mark in vocabulary]
    owners = _owners if tokenizer.is_fast else _owners_slow
    # A blank word is none, whatever a tokenizer makes of white space.
    texts = [[word if word.strip() else "" for word in words] for words in sentences]
    if spaces:
        texts = [_spaced(words) for words in texts]
    for words, (ids, owner, whole) in zip(texts, owners(tokenizer, texts, limit), strict=True):
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


def _forward(encoder: Encoder, sentences: list[_Pieces]) -> np.ndarray:
    """One batch through the model: float32 ``(n_layers + 1, n_words, dim)``, in order."""
    layers = hidden_states(encoder, [{"input_ids": sentence.ids} for sentence in sentences])
    most = max(len(sentence.words) for sentence in sentences)
    shares = torch.zeros(len(sentences), most, layers[0].shape[1])
    there = torch.zeros(len(sentences), most, dtype=torch.bool)
    for k, sentence in enumerate(sentences):
        shares[k, sentence.rows, sentence.tokens] = torch.from_numpy(sentence.shares).float()
        there[k, : len(sentence.words)] = True
    shares, there = shares.to(encoder.device), there.to(encoder.device)
    return torch.stack([torch.bmm(shares, layer.float())[there] for layer in layers]).cpu().numpy()
