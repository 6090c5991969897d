"""Windows of questions cut nothing, and their best span is that of a search through all."""

import itertools

import numpy as np
import pytest
import torch
import transformers

from xlx.subjects import loading, predicting
from xlx.subjects.predicting import Window

QUESTION = "Wer schläft?"
CONTEXT = " Zwei  Worte, und noch eins: der Hund schläft, die Katze nicht.  "


@pytest.fixture(scope="module", params=["mini-mbert", "mini-xlm", "mini-infoxlm"])
def tokenizer(request: pytest.FixtureRequest) -> transformers.PreTrainedTokenizerBase:
    return loading.tokenizer(request.param)


def windows(tokenizer: object, context: str, room: int | None, stride: int = 3) -> list[Window]:
    special = tokenizer.num_special_tokens_to_add(pair=True)
    n = len(tokenizer(QUESTION, add_special_tokens=False)["input_ids"]) + special
    return predicting.windows(tokenizer, [QUESTION], [context], room and room + n, stride)


@pytest.mark.parametrize(("room", "stride"), [(6, 1), (12, 3), (12, 100), (5, 2)])
def test_windows_hold_every_token_and_overlap(tokenizer: object, room: int, stride: int) -> None:
    ids = tokenizer(CONTEXT, add_special_tokens=False)["input_ids"]
    (whole,), laid = windows(tokenizer, CONTEXT, None), windows(tokenizer, CONTEXT, room, stride)
    held = [list(range(window.first, window.first + window.n)) for window in laid]
    assert sorted(set(itertools.chain(*held))) == list(range(len(ids)))
    for window in laid:
        read = window.row["input_ids"]
        assert window.n <= room
        part = read[window.offset : window.offset + window.n]
        assert part == ids[window.first : window.first + window.n]
        del read[window.offset : window.offset + window.n]
        assert read == [
            i for k, i in enumerate(whole.row["input_ids"]) if not 0 <= k - whole.offset < len(ids)
        ]
        assert all(
            len(column) == window.n + len(read)
            for name, column in window.row.items()
            if name != "input_ids"
        )
    for one, other in itertools.pairwise(held):
        assert len(set(one) & set(other)) == min(stride, room // 2)


def made(n: int, room: int, stride: int) -> list[Window]:
    """Windows of a context of n letters with blanks between, behind two other tokens."""
    spans = np.array([(i * 2, i * 2 + 1) for i in range(n)]).reshape(-1, 2)
    starts = range(0, max(1, n - stride), room - stride)
    return [Window(0, {}, 2, first, min(room, n - first), "x " * n, spans) for first in starts]


def test_an_answer_is_found_in_the_windows_that_hold_all_of_it() -> None:
    laid = made(10, 6, 2)
    assert [(window.first, window.n) for window in laid] == [(0, 6), (4, 6)]
    places = [predicting.answer_places(window, 10, 13) for window in laid]  # tokens 5 and 6
    assert places == [(0, 0), (3, 4)]  # of the first window only the first token
    assert predicting.answer_places(laid[0], 0, 1) == (2, 2)
    assert predicting.answer_places(laid[0], 1, 2) == (0, 0)  # a blank is no token


def test_the_best_span_is_that_of_a_search_through_all() -> None:
    rng = np.random.default_rng(5)
    n, length, longest = 20, 9, 3
    start, end = (torch.from_numpy(rng.normal(size=(n, length))) for _ in range(2))
    inside = torch.from_numpy(rng.random((n, length)) < 0.6)
    inside[0] = False
    scores, firsts, lasts = predicting.best_spans(start, end, inside, longest)
    for i in range(n):
        spans = [
            (float(start[i, a] + end[i, b]), a, b)
            for a in range(length)
            for b in range(a, min(length, a + longest))
            if inside[i, a] and inside[i, b]
        ]
        best = max(spans, default=(-torch.inf, int(firsts[i]), int(lasts[i])))
        assert (float(scores[i]), int(firsts[i]), int(lasts[i])) == pytest.approx(best)
