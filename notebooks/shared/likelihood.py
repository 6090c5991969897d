"""Bits that a decoder needs for texts: for a sentence, and for one text after another.

All questions to a decoder that is not fine-tuned are asked so. A text that follows from another
needs fewer bits behind it than alone; the difference has the length of the text, its script and how
common its words are taken out, as both sides have them. Bits are those of the tokens, from the
first; the end is not predicted.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xlx.results import work
from xlx.results.deferred import deferred, without_gradients
from xlx.results.settings import current
from xlx.subjects.identity import Name, fingerprint
from xlx.subjects.loading import language_model, products
from xlx.text.files import sentences_hash

torch = deferred("torch")

#: Tokens that are read at once behind one context.
_TOKENS = 512
#: Places whose next token is predicted at once: each has a number for every piece there is.
_PLACES = 128


@dataclass(frozen=True)
class Texts:
    """Contexts, and behind each of them as many texts: ``n`` and ``(n, k)`` strings."""

    contexts: Sequence[str]
    following: Sequence[Sequence[str]]


def bits(name: Name, texts: Texts) -> dict[str, np.ndarray]:
    """``bits`` of each following text behind its context and its number of ``tokens``, ``(n, k)``.

    A context is read behind the token that begins a text; an empty one is that token alone. Raises
    as `loading.language_model`.
    """
    joined = [text for row in texts.following for text in row]
    about = {
        "model": fingerprint(name),
        "dtype": current().dtype,
        "contexts": sentences_hash(texts.contexts),
        "following": sentences_hash(joined),
    }
    return work.result(LIKELIHOOD, about, name, texts)


def _compute(name: Name, texts: Texts) -> dict[str, np.ndarray]:
    reader = _reader(name)
    rows = [reader.after(*item) for item in zip(texts.contexts, texts.following, strict=True)]
    bits, tokens = (np.array([row[i] for row in rows]) for i in (0, 1))
    return {"bits": bits.astype(np.float32), "tokens": tokens.astype(np.int32)}


def _apart(stored: dict[str, np.ndarray], computed: dict[str, np.ndarray]) -> float:
    """The largest difference of bits, as a share of them."""
    if (stored["tokens"] != computed["tokens"]).any():
        return np.inf
    return float(np.abs(computed["bits"] / stored["bits"] - 1).max())


LIKELIHOOD = work.Kind("likelihood", _compute, tolerance=0.02, difference=_apart)

_readers: dict[tuple[str, str], _Reader] = {}


def _reader(name: Name) -> _Reader:
    """The last model that was asked for, loaded."""
    key = (fingerprint(name), current().dtype)
    if key not in _readers:
        _readers.clear()
        _readers[key] = _Reader(*language_model(name))
    return _readers[key]


@dataclass(frozen=True)
class _Reader:
    model: Any
    tokenizer: Any

    def _ids(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]

    @without_gradients
    def after(self, context: str, following: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Bits and numbers of tokens of texts behind a context, ``(k,)`` each."""
        base, start = self.model.base_model, self.model.config.bos_token_id
        ids = [self._ids(text) for text in following]
        lengths = np.array([len(row) for row in ids])
        costs_of = np.zeros(len(ids))
        with products(self.model.device):
            read = base(torch.tensor([[start, *self._ids(context)]]), use_cache=True)
            for rows in _batches(lengths):
                width = int(lengths[rows].max())
                padded = torch.zeros((len(rows), width), dtype=torch.int64)
                for place, row in enumerate(rows):
                    padded[place, : lengths[row]] = torch.tensor(ids[row])
                cache = copy.deepcopy(read.past_key_values)
                cache.batch_repeat_interleave(len(rows))
                states = read.last_hidden_state[:, -1:].expand(len(rows), 1, -1)
                if width > 1:
                    more = base(padded[:, :-1], past_key_values=cache, use_cache=True)
                    states = torch.cat([states, more.last_hidden_state], dim=1)
                there = torch.arange(width) < torch.from_numpy(lengths[rows])[:, None]
                costs = torch.zeros(there.shape, dtype=torch.float64)
                costs[there] = self._costs(states[there], padded[there])
                costs_of[rows] = costs.sum(dim=1).numpy()
        return costs_of, lengths

    def _costs(self, states: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """Bits of tokens behind states, ``(n, dim)`` and ``(n,)``."""
        head = self.model.get_output_embeddings()
        cap = getattr(self.model.config, "final_logit_softcapping", None)
        parts = []
        for some, pieces in zip(states.split(_PLACES), tokens.split(_PLACES), strict=True):
            logits = head(some).float()
            logits = cap * torch.tanh(logits / cap) if cap else logits
            parts.append(torch.nn.functional.cross_entropy(logits, pieces, reduction="none"))
        return torch.cat(parts).double() / np.log(2)


def _batches(lengths: np.ndarray) -> Iterator[np.ndarray]:
    """Rows of like length, at most `_TOKENS` padded tokens together, or one alone."""
    order, start = np.argsort(lengths, kind="stable"), 0
    while start < len(order):
        end = start + 1
        while end < len(order) and lengths[order[end]] * (end + 1 - start) <= _TOKENS:
            end += 1
        yield order[start:end]
        start = end
