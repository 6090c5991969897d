"""Words and pairs of sentences to vectors of all layers, float32: what probes are fitted on.

The model reads the whole sentence, and of a word's subwords ``first`` takes the first one (Devlin
et al. 2019, section 5.3), ``mean`` all alike. Some tokenizers set the mark of a word's beginning
apart ("▁", "天", "気"): ``first`` passes over that mark if the word has more. Every word is cut by
itself, so it begins as after a space, also before a full stop and in scripts written without
spaces; tokenizers that tell a word after a space from one without are given the space too.

No word is given another's vector: one that loses a subword because its sentence is longer than the
model takes has none, nor has one of which the tokenizer makes nothing. Both are counted. Equal
sentences have equal vectors, bit for bit.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy import ndarray

from xlx.results import checks, progress
from xlx.results.deferred import deferred
from xlx.subjects import states
from xlx.subjects.loading import Encoder
from xlx.subjects.states import SentenceStates, tokenise

torch = deferred("torch")

WORD_SUBWORDS = ("first", "mean")
_MARKS = ("▁", "Ġ", " ")


@dataclass(frozen=True)
class WordStates:
    """Hidden states of the words of a list of sentences, in their order."""

    states: ndarray  # float32, (n_layers + 1, n_kept_words, dim)
    sentence: ndarray  # (n_kept_words,): which sentence a vector's word is in
    word: ndarray  # (n_kept_words,): and which of its words it is
    n_cut: int  # words that lost a subword, or all, as their sentence was too long
    n_empty: int  # words of which the tokenizer made no subword


@checks.typed()
def embed_words(
    encoder: Encoder,
    sentences: Sequence[Sequence[str]],
    *,
    subword: str = "first",
    max_length: int | None = None,
) -> WordStates:
    """Hidden states of all layers for the words of sentences, each a list of words.

    ``max_length`` tokens a sentence may have, special ones included; words past them are lost and
    counted (default: what the model takes). ValueError if a sentence is no list of words or has
    none, an option or the tokenizer does not fit, or a state is not a finite number.
    """
    checks.whole_characters([*map(tuple, sentences)], "sentences")
    for i, words in enumerate(sentences):
        if len(words) == 0:
            raise ValueError(f"sentence {i} has no words: drop it")
    checks.one_of(subword, WORD_SUBWORDS, "subword")
    unique, inverse, first = states.distinct([tuple(words) for words in sentences])
    pieces = _pieces(encoder, unique, subword, encoder.limit(max_length))
    states.check_vocabulary(
        encoder, [piece.ids for piece in pieces], lambda u: f"sentence {first[u]}"
    )
    n_words = np.array([len(piece.words) for piece in pieces], int)
    none = np.empty((encoder.n_layers + 1, 0, encoder.dim), np.float32)
    of_sentence = [none] * len(pieces)
    filled = np.flatnonzero(n_words)
    split = states.batches([len(pieces[u].ids) for u in filled], apart=encoder.apart)
    for batch in progress.bar(split, "embedding words", unit="batches"):
        chosen = filled[batch]
        of_batch = _forward(encoder, [pieces[u] for u in chosen])
        parts = np.split(of_batch, n_words[chosen].cumsum()[:-1], axis=1)
        for u, part in zip(chosen, parts, strict=True):
            of_sentence[u] = part
    vectors = np.concatenate([none, *(of_sentence[u] for u in inverse)], axis=1)
    word = np.concatenate([np.empty(0, int), *(pieces[u].words for u in inverse)])
    sentence = np.repeat(np.arange(len(inverse)), n_words[inverse])
    states.check_finite(
        vectors,
        f"{encoder.name!r}",
        lambda k: f"sentence {sentence[k]}, word {word[k]} ({sentences[sentence[k]][word[k]]!r})",
    )
    n_cut, n_empty = (sum(getattr(pieces[u], x) for u in inverse) for x in ("n_cut", "n_empty"))
    return WordStates(vectors, sentence, word, n_cut, n_empty)


@dataclass(frozen=True)
class _Pieces:
    """A sentence as the model reads it; ``words`` that get a vector, ``(k,)``.

    The vector of ``words[rows[m]]`` takes the share ``shares[m]`` of the token ``tokens[m]``.
    """

    ids: list[int]
    words: ndarray
    rows: ndarray
    tokens: ndarray
    shares: ndarray
    n_cut: int
    n_empty: int


def _pieces(
    encoder: Encoder, sentences: Sequence[Sequence[str]], subword: str, limit: int | None
) -> list[_Pieces]:
    vocabulary = encoder.tokenizer.get_vocab()
    marks = [vocabulary[mark] for mark in _MARKS if mark in vocabulary]
    before, after, spaces = _frame(encoder)
    room = None if limit is None else limit - len(before) - len(after)
    # A blank word is none, whatever a tokenizer makes of white space.
    texts = [[word if word.strip() else "" for word in words] for words in sentences]
    if spaces:  # before every word but the first that is not empty
        for words in texts:
            first = next((j for j, word in enumerate(words) if word), 0)
            words[first + 1 :] = [" " + word if word else word for word in words[first + 1 :]]
    subwords = _subwords(encoder, {word for words in texts for word in words})
    pieces = []
    for words in texts:
        lengths = np.array([len(subwords[word]) for word in words])
        ids = [i for word in words for i in subwords[word]][:room]
        owner = np.repeat(np.arange(len(words)), lengths)[:room]
        pieces.append(_choose([*before, *ids, *after], len(before), owner, lengths, marks, subword))
    return pieces


def _subwords(encoder: Encoder, words: Iterable[str]) -> dict[str, list[int]]:
    """The ids of each word, cut by itself."""
    if not (words := list(words)):
        return {}
    options = {"add_special_tokens": False, "return_attention_mask": False, "verbose": False}
    return dict(zip(words, encoder.tokenizer(words, **options)["input_ids"], strict=True))


def _choose(
    ids: list[int], start: int, owner: ndarray, whole: ndarray, marks: list[int], subword: str
) -> _Pieces:
    """Which tokens make which word's vector.

    ``owner``: the word of each token from ``start`` on; ``whole``: subwords of each word, uncut.
    """
    left = np.bincount(owner, minlength=len(whole))
    whole_words = (left == whole) & (whole > 0)
    words = np.flatnonzero(whole_words)
    tokens = start + np.flatnonzero(whole_words[owner])
    rows = np.searchsorted(words, owner[tokens - start])
    shares = 1 / whole[words][rows]
    if subword == "first":
        is_mark = np.isin(np.array(ids, int)[tokens], marks)
        order = np.lexsort((tokens, is_mark, rows))  # by word; in a word, bare marks last
        rows, first = np.unique(rows[order], return_index=True)
        tokens, shares = tokens[order][first], np.ones(len(rows))
    n_cut, n_empty = int((left < whole).sum()), int((whole == 0).sum())
    return _Pieces(ids, words, rows, tokens, shares, n_cut, n_empty)


def _frame(encoder: Encoder) -> tuple[list[int], list[int], bool]:
    """The special tokens before and after a sentence, and whether words must come with their space.

    That is where the tokenizer tells "a b" from "ab" by it. ValueError if no way of giving it words
    leads to the subwords of the text.
    """
    read = encoder.tokenizer("a b", return_special_tokens_mask=True)
    ids, special = read["input_ids"], read["special_tokens_mask"]
    start, end = special.index(0), len(ids) - special[::-1].index(0)
    subwords = _subwords(encoder, ["a", "b", " b"])
    for spaces, second in enumerate(("b", " b")):
        if subwords["a"] + subwords[second] == ids[start:end]:
            return ids[:start], ids[end:], bool(spaces)
    problem = "cuts 'a b' in another way when it is given the words one by one: use another model"
    raise ValueError(f"the tokenizer of {encoder.name!r} {problem}")


def _forward(encoder: Encoder, sentences: list[_Pieces]) -> ndarray:
    """One batch through the model: float32 ``(n_layers + 1, n_words, dim)``, in order."""
    layers = states.hidden_states(encoder, [{"input_ids": sentence.ids} for sentence in sentences])
    most = max(len(sentence.words) for sentence in sentences)
    shares = torch.zeros(len(sentences), most, layers[0].shape[1])
    there = torch.zeros(len(sentences), most, dtype=torch.bool)
    for k, sentence in enumerate(sentences):
        shares[k, sentence.rows, sentence.tokens] = torch.from_numpy(sentence.shares).float()
        there[k, : len(sentence.words)] = True
    shares, there = shares.to(encoder.device), there.to(encoder.device)
    return torch.stack([torch.bmm(shares, layer.float())[there] for layer in layers]).cpu().numpy()


FORMS = ("joint", "concatenated")


@checks.typed()
def embed_pairs(
    encoder: Encoder,
    first: Sequence[str],
    second: Sequence[str],
    *,
    form: str = "joint",
    max_length: int | None = None,
) -> SentenceStates:
    """Hidden states of all layers for pairs of sentences (premise and hypothesis), in their order.

    Of concatenated pairs (u, v, |u - v|, u * v) they are ``4 * dim`` wide. ``max_length`` tokens a
    joint pair, or one of the concatenated sentences, may have (default: what the model takes); a
    joint pair loses tokens of its longer sentence first. ValueError if the numbers of sentences
    differ, an option does not fit the model, a sentence has no token, or a state is not finite.
    """
    checks.whole_characters([*zip(first, second, strict=False)], "pairs")
    checks.one_of(form, FORMS, "form")
    n = len(first)
    if n != len(second):
        raise ValueError(f"there are {n} first and {len(second)} second sentences")
    for i, pair in enumerate(zip(first, second, strict=True)):
        if not all(map(str.strip, pair)):
            raise ValueError(f"pair {i}: a sentence has no token; drop the pair")
    states.check_poolings(encoder, ["mean"])
    ways, limit = [("mean", False)], encoder.limit(max_length, pair=form == "joint")
    if form == "joint":
        return states.pooled_states(encoder, ways, limit, [first, second], "pair ")[0]
    # At once, so that a sentence that stands on both sides has one vector, and u - v is zero.
    sentences, where = [*first, *second], "first and second sentences end to end, position "
    (both,) = states.pooled_states(encoder, ways, limit, [sentences], where)
    u, v = both.states[:, :n], both.states[:, n:]
    is_cut = np.zeros(2 * n, bool)
    is_cut[tokenise(encoder.tokenizer, sentences, limit=limit)[1]] = True
    built, n_cut = np.concatenate([u, v, np.abs(u - v), u * v], 2), is_cut[:n] | is_cut[n:]
    return SentenceStates(built, int(n_cut.sum()), both.unknown)
