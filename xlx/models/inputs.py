"""Two tokenised texts as one input of a model: joined, cut, or laid out in windows.

A grid asks a model about every pair of languages, so each text stands in many inputs. Here it is
tokenised once and put together by the tokenizer's own pattern of special tokens, which `Pattern`
reads off an example; the result is what the tokenizer itself gives for the pair.

For questions about a context longer than the model takes, the context is laid out in windows that
overlap (Devlin et al. 2019, as in every reader of SQuAD since), so that nothing is cut; the answer
is the span of highest score over all windows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch


class InputError(ValueError):
    """Texts that cannot be an input of the model; says which and what to do."""


@dataclass(frozen=True)
class Pattern:
    """The special tokens around and between two texts, and the type of every place.

    ``types`` are those of (before, first, between, second, after), None where the model has no
    types; ``alone`` are the special tokens before and after a single text, as ``types`` says 0.
    """

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    types: tuple[tuple[int, ...], int, tuple[int, ...], int, tuple[int, ...]] | None
    alone: tuple[tuple[int, ...], tuple[int, ...]]

    @classmethod
    def of(cls, tokenizer: Any) -> "Pattern":
        """Read off what the tokenizer does with "a" and "b"."""
        first, second = (
            tokenizer(text, add_special_tokens=False)["input_ids"] for text in ("a", "b")
        )
        whole = tokenizer("a", "b", return_attention_mask=False)
        ids = whole["input_ids"]
        i = _place(ids, first, 0)
        j = _place(ids, second, i + len(first))
        types = None
        if "token_type_ids" in whole:
            given = whole["token_type_ids"]
            types = (
                tuple(given[:i]), given[i], tuple(given[i + len(first) : j]), given[j],
                tuple(given[j + len(second) :]),
            )  # fmt: skip
        single = tokenizer("a", return_attention_mask=False)["input_ids"]
        k = _place(single, first, 0)
        return cls(
            before=tuple(ids[:i]),
            between=tuple(ids[i + len(first) : j]),
            after=tuple(ids[j + len(second) :]),
            types=types,
            alone=(tuple(single[:k]), tuple(single[k + len(first) :])),
        )

    @property
    def n_special(self) -> int:
        """Special tokens of a pair."""
        return len(self.before) + len(self.between) + len(self.after)

    def row(self, first: Sequence[int], second: Sequence[int] | None) -> dict[str, list[int]]:
        """Model inputs of a pair, or of a text alone where ``second`` is None."""
        if second is None:
            ids = [*self.alone[0], *first, *self.alone[1]]
            found = {"input_ids": ids}
            if self.types is not None:
                found["token_type_ids"] = [0] * len(ids)
            return found
        found = {"input_ids": [*self.before, *first, *self.between, *second, *self.after]}
        if self.types is not None:
            before, one, between, two, after = self.types
            found["token_type_ids"] = [
                *before, *[one] * len(first), *between, *[two] * len(second), *after,
            ]  # fmt: skip
        return found


def _place(ids: Sequence[int], part: Sequence[int], start: int) -> int:
    """Where a part stands in a list of ids, from ``start`` on."""
    for i in range(start, len(ids) - len(part) + 1):
        if list(ids[i : i + len(part)]) == list(part):
            return i
    raise InputError("the tokenizer changes a text when it joins it with another: use its pairs")


def kept(n_first: int, n_second: int, room: int) -> tuple[int, int]:
    """How many tokens stay of two texts that must fit into ``room``: the longer one is cut.

    The rule "longest_first" of `tokenizers`: the shorter one stays whole if it takes less than
    half, else both get a half (the longer one the odd token).
    """
    if n_first + n_second <= room:
        return n_first, n_second
    shorter, longer = sorted((n_first, n_second))
    longer = shorter if shorter > room else max(shorter, room - shorter)
    if shorter + longer > room:
        shorter, longer = room // 2, room // 2 + room % 2
    return (longer, shorter) if n_first > n_second else (shorter, longer)


@dataclass(frozen=True)
class TokenisedText:
    """A tokenised text: ids, and where in the text each token's own characters start and end.

    White space does not count, so a token of nothing else ends before it starts.
    """

    ids: list[int]
    spans: list[tuple[int, int]]


def tokenised(
    tokenizer: Any, texts: Sequence[str], *, spans: bool = False
) -> dict[str, TokenisedText]:
    """Each distinct text → its tokens, without special ones; every text is tokenised once.

    ``spans``: also places of tokens, in characters, without white space at their ends (some
    tokenizers count the space before a word in). Raises InputError for a tokenizer that cannot say.
    """
    distinct = list(dict.fromkeys(texts))
    if not distinct:
        return {}
    if spans and not tokenizer.is_fast:
        raise InputError("questions need a tokenizer that gives places of tokens (a fast one)")
    found = tokenizer(
        distinct,
        add_special_tokens=False,
        return_attention_mask=False,
        return_offsets_mapping=spans,
        verbose=False,
    )
    places = found["offset_mapping"] if spans else [[]] * len(distinct)
    return {
        text: TokenisedText(ids, [_trimmed(text, place) for place in own])
        for text, ids, own in zip(distinct, found["input_ids"], places, strict=True)
    }


def _trimmed(text: str, place: tuple[int, int]) -> tuple[int, int]:
    start, end = place
    first, last = start, end
    while first < end and text[first].isspace():
        first += 1
    while last > start and text[last - 1].isspace():
        last -= 1
    return first, last


# --- windows --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Window:
    """A question with a part of its context: model inputs, and what of them is context.

    ``offset`` is the input's place of the window's first context token, ``first`` that token's
    number in the context, ``n`` how many context tokens the window has.
    """

    example: int
    row: dict[str, list[int]]
    offset: int
    first: int
    n: int


def windows(
    pattern: Pattern,
    example: int,
    question: Sequence[int],
    context: Sequence[int],
    limit: int | None,
    stride: int,
) -> list[Window]:
    """A question and its context as inputs of at most ``limit`` tokens; nothing is cut.

    Windows overlap by ``stride`` tokens, so that an answer of up to so many is whole in one of
    them; where the question leaves less room, by half of what there is.

    Raises
    ------
    InputError
        A question that leaves no room for a context.
    """
    room = len(context) if limit is None else limit - pattern.n_special - len(question)
    if context and room < 2 and room < len(context):
        raise InputError(
            f"question {example} has {len(question)} tokens, which leaves no room for a context "
            f"in {limit}: raise max_length or leave the question out"
        )
    step = max(1, room - min(stride, room // 2))
    starts = [0]
    while starts[-1] + room < len(context):
        starts.append(starts[-1] + step)
    offset = len(pattern.before) + len(question) + len(pattern.between)
    return [
        Window(example, pattern.row(question, part), offset, start, len(part))
        for start in starts
        for part in [context[start : start + room]]
    ]


def answer_places(
    window: Window, spans: Sequence[tuple[int, int]], start: int, end: int
) -> tuple[int, int]:
    """Places in the window's input of the first and last token of an answer.

    The answer is the context's characters ``[start, end)``. (0, 0), the first special token, where
    the window does not hold all of it.
    """
    tokens = [i for i, (low, high) in enumerate(spans) if low < end and high > start]
    if not tokens:
        return 0, 0
    first, last = tokens[0] - window.first, tokens[-1] - window.first
    if first < 0 or last >= window.n:
        return 0, 0
    return window.offset + first, window.offset + last


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


def best_of_windows(
    windows: Sequence[Window], scores: np.ndarray, firsts: np.ndarray, lasts: np.ndarray, n: int
) -> np.ndarray:
    """Context tokens of each example's best span over its windows: int64 ``(n, 2)``.

    First and last token; (-1, -1) where no window has any context. Of equal scores, the earlier
    window's.
    """
    best = np.full(n, -np.inf)
    found = np.full((n, 2), -1, dtype=np.int64)
    for window, score, first, last in zip(windows, scores, firsts, lasts, strict=True):
        if score > best[window.example]:
            best[window.example] = score
            shift = window.first - window.offset
            found[window.example] = first + shift, last + shift
    return found
