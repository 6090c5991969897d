"""Inputs put together from tokenised texts are the tokenizer's own; windows cut nothing."""

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from tests import tiny
from xlx.models import inputs, loading
from xlx.models.inputs import InputError, Pattern

TEXTS = ("a", "The cat sat.", "Der Hund schläft, die Katze nicht.", "x y z " * 6, "")
FAMILY = ("mini-mbert", "mini-xlm", "mini-infoxlm")


@pytest.fixture(scope="module", params=FAMILY)
def tokenizer(request: pytest.FixtureRequest) -> transformers.PreTrainedTokenizerBase:
    return loading.tokenizer(request.param)


def test_a_row_is_what_the_tokenizer_gives_for_the_pair(tokenizer: object) -> None:
    pattern, texts = Pattern.of(tokenizer), inputs.tokenised(tokenizer, TEXTS)
    for first, second in itertools.product(TEXTS, TEXTS):
        # in lists, since a tokenizer takes an empty second text by itself for none
        wanted = tokenizer([first], [second], return_attention_mask=False)
        wanted = {name: rows[0] for name, rows in wanted.items()}
        assert pattern.row(texts[first].ids, texts[second].ids) == wanted


def test_a_text_alone_is_what_the_tokenizer_gives(tokenizer: object) -> None:
    pattern, texts = Pattern.of(tokenizer), inputs.tokenised(tokenizer, TEXTS)
    for text in TEXTS:
        wanted = tokenizer(text, return_attention_mask=False)
        assert pattern.row(texts[text].ids, None) == dict(wanted)


@pytest.mark.parametrize("limit", [9, 10, 17, 40])
def test_long_pairs_are_cut_as_the_tokenizer_cuts_them(tokenizer: object, limit: int) -> None:
    pattern, texts = Pattern.of(tokenizer), inputs.tokenised(tokenizer, TEXTS)
    for first, second in itertools.product(TEXTS, TEXTS):
        wanted = tokenizer(
            [first], [second],
            truncation="longest_first", max_length=limit, return_attention_mask=False,
        )  # fmt: skip
        wanted = {name: rows[0] for name, rows in wanted.items()}
        one, other = texts[first].ids, texts[second].ids
        n, m = inputs.kept(len(one), len(other), limit - pattern.n_special)
        assert pattern.row(one[:n], other[:m]) == wanted


def test_each_text_is_tokenised_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer, seen = loading.tokenizer("mini-mbert"), []

    def counting(texts: list[str], **options: object) -> object:
        seen.extend(texts)
        return tokenizer(texts, **options)

    counting.is_fast = True
    found = inputs.tokenised(counting, ["a", "b", "a", "a"])
    assert seen == ["a", "b"]
    assert set(found) == {"a", "b"}


def test_places_of_tokens_are_theirs_in_the_text(tokenizer: object) -> None:
    text = " Zwei  Worte, und noch eins  "
    found = inputs.tokenised(tokenizer, [text], spans=True)[text]
    pieces = [text[start:end] for start, end in found.spans]
    assert "".join(pieces) == text.replace(" ", "")
    assert text[found.spans[0][0] : found.spans[-1][1]] == text.strip()
    assert not any(piece.startswith(" ") for piece in pieces)


def test_a_tokenizer_without_places_is_refused() -> None:
    class Slow:
        is_fast = False

    with pytest.raises(InputError, match="places of tokens"):
        inputs.tokenised(Slow(), ["a"], spans=True)


# --- windows --------------------------------------------------------------------------------------

PATTERN = Pattern((1,), (2, 2), (3,), None, ((1,), (3,)))


@pytest.mark.parametrize("n", [0, 1, 5, 12, 13, 40])
@pytest.mark.parametrize("stride", [1, 3, 100])
def test_windows_hold_every_token_and_overlap(n: int, stride: int) -> None:
    context = list(range(100, 100 + n))
    found = inputs.windows(PATTERN, 7, [50, 51], context, 4 + 2 + 12, stride)
    held = [list(range(window.first, window.first + window.n)) for window in found]
    assert sorted(set(itertools.chain(*held))) == list(range(n))
    for window in found:
        ids = window.row["input_ids"]
        assert window.example == 7
        assert len(ids) <= 18
        part = ids[window.offset : window.offset + window.n]
        assert part == context[window.first : window.first + window.n]
        assert ids[: window.offset] == [1, 50, 51, 2, 2]
    overlap = min(stride, 6)
    for one, other in itertools.pairwise(held):
        assert len(set(one) & set(other)) == overlap
    if n <= 12:
        assert len(found) == 1


def test_without_a_limit_there_is_one_window() -> None:
    assert len(inputs.windows(PATTERN, 0, [5], list(range(5000)), None, 3)) == 1


def test_a_question_that_leaves_no_room_is_named() -> None:
    with pytest.raises(InputError, match=r"question 3 has 15 tokens.*in 20.*max_length"):
        inputs.windows(PATTERN, 3, list(range(15)), list(range(30)), 20, 4)


def test_an_answer_is_found_in_the_windows_that_hold_all_of_it() -> None:
    spans = [(i * 2, i * 2 + 1) for i in range(10)]  # one letter a token, blanks between
    found = inputs.windows(PATTERN, 0, [9], list(range(10)), 4 + 1 + 6, 2)
    assert [(window.first, window.n) for window in found] == [(0, 6), (4, 6)]
    places = [inputs.answer_places(window, spans, 10, 13) for window in found]  # tokens 5 and 6
    assert places[0] == (0, 0)  # only its first token
    first, last = places[1]
    assert [found[1].row["input_ids"][i] for i in (first, last)] == [5, 6]
    assert inputs.answer_places(found[0], spans, 0, 1) == (found[0].offset, found[0].offset)
    assert inputs.answer_places(found[0], spans, 1, 2) == (0, 0)  # a blank is no token


def test_the_best_span_is_that_of_a_search_through_all() -> None:
    rng = np.random.default_rng(5)
    n, length, longest = 20, 9, 3
    start, end = (torch.from_numpy(rng.normal(size=(n, length))) for _ in range(2))
    inside = torch.from_numpy(rng.random((n, length)) < 0.6)
    inside[0] = False
    scores, firsts, lasts = inputs.best_spans(start, end, inside, longest)
    for i in range(n):
        spans = [
            (float(start[i, a] + end[i, b]), a, b)
            for a in range(length)
            for b in range(a, min(length, a + longest))
            if inside[i, a] and inside[i, b]
        ]
        if not spans:
            assert scores[i] == -torch.inf
            continue
        best = max(spans)
        assert (float(scores[i]), int(firsts[i]), int(lasts[i])) == pytest.approx(best)


def test_the_best_window_answers_in_tokens_of_the_context() -> None:
    laid = inputs.windows(PATTERN, 0, [9], list(range(10)), 11, 2)
    laid += inputs.windows(PATTERN, 1, [9], [], 11, 2)
    offset = laid[0].offset
    found = inputs.best_of_windows(
        laid,
        np.array([1.0, 2.0, -np.inf]),
        np.array([offset, offset + 1, 0]),
        np.array([offset, offset + 2, 0]),
        2,
    )
    assert found.tolist() == [[5, 6], [-1, -1]]


def test_tiny_models_have_a_pattern_too(tmp_path: Path) -> None:
    tokenizer = loading.tokenizer(str(tiny.save(tmp_path / "tiny")))
    assert Pattern.of(tokenizer).n_special == tokenizer.num_special_tokens_to_add(pair=True)
