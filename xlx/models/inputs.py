"""Questions about a context longer than the model takes: read in windows that overlap.

Nothing is cut (Devlin et al. 2019, as in every reader of SQuAD since); the answer is the span of
highest score over all windows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from xlx.models.batching import Row

#: Questions of which the places of all tokens are held at once.
TOKENISED_AT_ONCE = 1000


class InputError(ValueError):
    """Texts that cannot be an input of the model; says which and what to do."""


@dataclass(frozen=True)
class Window:
    """A question with a part of its context: model inputs, and what of them is context.

    ``offset`` is the input's place of the window's first context token, ``first`` that token's
    number in the context, ``n`` how many context tokens the window has; ``spans`` ``(tokens, 2)``
    are the characters of all tokens of the context.
    """

    example: int
    row: Row
    offset: int
    first: int
    n: int
    context: str
    spans: np.ndarray

    def characters(self, token: int) -> tuple[int, int]:
        """Where a token of the context starts and ends in it, without white space at its ends.

        Some tokenizers count the space before a word in; what is nothing else ends before it
        starts.
        """
        start, end = first, last = self.spans[token].tolist()
        while first < end and self.context[first].isspace():
            first += 1
        while last > start and self.context[last - 1].isspace():
            last -= 1
        return first, last


def windows(
    tokenizer: Any,
    questions: Sequence[str],
    contexts: Sequence[str],
    limit: int | None,
    stride: int,
) -> list[Window]:
    """Questions with their contexts as inputs of at most ``limit`` tokens; nothing is cut.

    Windows overlap by ``stride`` tokens, so that an answer of up to so many is whole in one of
    them; where the question leaves less room, by half of what there is. InputError for a question
    that leaves no room for a context, or a tokenizer that gives no places of tokens.
    """
    if not tokenizer.is_fast:
        raise InputError("questions need a tokenizer that gives places of tokens (a fast one)")
    laid = []
    for begin in range(0, len(questions), TOKENISED_AT_ONCE):
        examples = range(len(questions))[begin : begin + TOKENISED_AT_ONCE]
        read = tokenizer(
            [questions[i] for i in examples], [contexts[i] for i in examples],
            return_attention_mask=False, return_offsets_mapping=True, verbose=False,
        )  # fmt: skip
        spans = read.pop("offset_mapping")
        for k, i in enumerate(examples):
            sides = read.sequence_ids(k)
            columns = {name: rows[k] for name, rows in read.items()}
            offset, n = sides.index(1) if 1 in sides else len(sides), sides.count(1)
            room = n if limit is None else limit - (len(sides) - n)
            if room < min(2, n):
                raise InputError(
                    f"question {i} has {sides.count(0)} tokens, which leaves no room for a context "
                    f"in {limit}: raise max_length or leave the question out"
                )
            step = max(1, room - min(stride, room // 2))
            of_context = np.array(spans[k][offset : offset + n], dtype=np.int32).reshape(-1, 2)
            for first in range(0, max(n - room + step, 1), step):
                part = slice(offset + first, offset + min(first + room, n))
                row = {
                    name: column[:offset] + column[part] + column[offset + n :]
                    for name, column in columns.items()
                }
                size = part.stop - part.start
                laid.append(Window(i, row, offset, first, size, contexts[i], of_context))
    return laid


def answer_places(window: Window, start: int, end: int) -> tuple[int, int]:
    """Places in the window's input of the first and last token of an answer.

    The answer is the context's characters ``[start, end)``. (0, 0), the first special token, where
    the window does not hold all of it.
    """
    touched = np.flatnonzero((window.spans[:, 0] < end) & (window.spans[:, 1] > start)).tolist()
    places = {token: window.characters(token) for token in touched}
    tokens = [token for token, (low, high) in places.items() if low < end and high > start]
    if not tokens or tokens[0] < window.first or tokens[-1] >= window.first + window.n:
        return 0, 0
    shift = window.offset - window.first
    return tokens[0] + shift, tokens[-1] + shift


def best_spans(
    start: torch.Tensor, end: torch.Tensor, inside: torch.Tensor, longest: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The span of highest score in each row: first ≤ last, both inside, of at most so many tokens.

    The score is the start's logit plus the end's. ``start``, ``end`` and ``inside`` (where the
    context is) are ``(n, length)``; returns scores, firsts and lasts ``(n,)``; -inf where a row has
    no place inside. Of equal scores the first span, and of these the shortest.
    """
    low = torch.full_like(start, -torch.inf)
    start, end = torch.where(inside, start, low), torch.where(inside, end, low)
    padded = torch.nn.functional.pad(end, (0, longest - 1), value=-torch.inf)
    ends, width = padded.unfold(1, longest, 1).max(dim=2)
    scores, first = (start + ends).max(dim=1)
    return scores, first, first + width.gather(1, first[:, None])[:, 0]


def best_answers(
    laid: Sequence[Window], scores: np.ndarray, places: np.ndarray, n: int
) -> tuple[np.ndarray, np.ndarray]:
    """The best answer to each of n examples over its windows, and its score ``(n,)``.

    From the score ``(windows,)`` and the input's first and last place ``(windows, 2)`` of each
    window's; the answer is where it starts and ends in the context, in characters, int32
    ``(n, 2)``: (0, 0) and -inf where there is no context. Of equal scores, the earlier window's.
    """
    highest, answers = np.full(n, -np.inf), np.zeros((n, 2), dtype=np.int32)
    for window, score, ends in zip(laid, scores, places, strict=True):
        if score > highest[window.example]:
            first, last = (ends - window.offset + window.first).tolist()
            highest[window.example] = score
            answers[window.example] = window.characters(first)[0], window.characters(last)[1]
    return answers, highest
