"""Distances of a question's words from the answer, and the baseline that goes by them."""

import re
import string
import unicodedata
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixing_2_paraphrase import word_distances
from tests.text.made import CONTEXT, asked
from xlx.measures.answers import overlap_answers
from xlx.text.files import TextError
from xlx.text.questions import Answer, load_questions

# --- distances ------------------------------------------------------------------------------------


def distance(question: str, context: str, answer: Answer, language: str = "en") -> float:
    made = asked(language, 1, questions=(question,), contexts=(context,), answers=((answer,),))
    return float(word_distances(made)[0])


@pytest.mark.parametrize(
    ("question", "context", "answer", "language", "expected"),
    [
        # Rome 0, is 1, in 2, Italy. 3, Oslo 4, is 5, not 6, in 7, Italy, 8, said 9, Ann. 10
        # An answer of two words: its centre is between them, 8.5; the answer's own words count.
        ("is IT in “italy”?", CONTEXT, Answer("Italy, said", 33), "en", 25 / 6),
        ("— ?", "Rome — ? Italy", Answer("Italy", 9), "en", 384),  # punctuation is no word
        # 北 0, 京 1, 是 2, 首 3, 都 4, 。 5, 东 6, 京 7
        ("哪是京？", "北京是首都。东京", Answer("首都", 3), "zh", (2.5 + 1.5 + 3.5) / 3),
        ("NFL?", "NFL球队", Answer("队", 4), "zh", 2),
        # ท 0, ำ would be on it; ก 1, ก่ 2, า 3
        ("ก่", "ทกก่า", Answer("ท", 0), "th", 2),
    ],
)
def test_distance_on_worked_examples(
    question: str, context: str, answer: Answer, language: str, expected: float
) -> None:
    assert distance(question, context, answer, language) == pytest.approx(expected)


@pytest.mark.parametrize("answer", [Answer("Italy", 12), Answer(" ", 4), Answer("Ann.", -4)])
def test_the_distance_to_an_answer_that_is_not_there_is_an_error(answer: Answer) -> None:
    with pytest.raises(TextError, match="is not at position"):
        distance("Rome", CONTEXT, answer)


def slow_distance(question: str, context: str, answer: Answer) -> float:
    """One word at a time, for languages with spaces."""

    def key(word: str) -> str:
        return "".join(
            c
            for c in word.lower()
            if c not in string.punctuation and unicodedata.category(c)[0] != "P"
        )

    sought = {key(word) for word in question.split()} - {""}
    spans = [(match[0], match.start(), match.end()) for match in re.finditer(r"\S+", context)]
    inside = [
        i for i, (_, start, end) in enumerate(spans) if start < answer.end and end > answer.start
    ]
    centre = (inside[0] + inside[-1]) / 2
    found = [abs(i - centre) for i, (word, _, _) in enumerate(spans) if key(word) in sought]
    return float(np.mean(found)) if found else 384.0


def test_distances_are_the_literal_ones_on_real_text() -> None:
    read = load_questions("xquad", "de").at(range(0, 1190, 4))
    rows = zip(read.questions, read.contexts, read.answers, strict=True)
    expected = [slow_distance(question, context, first) for question, context, (first, *_) in rows]
    assert word_distances(read) == pytest.approx(expected)


def slow_overlap(question: str, context: str, length: int) -> str:
    words = context.split()
    sought = set(question.split())
    size = min(length, len(words))
    best, answer = -1.0, ""
    for first in range(len(words) - size + 1):
        centre = first + (size - 1) / 2
        outside = [i for i in range(len(words)) if not first <= i < first + size]
        score = sum(1 / (1 + abs(i - centre)) for i in outside if words[i] in sought)
        if score > best + 1e-9:
            best, answer = score, " ".join(words[first : first + size])
    return answer


WORDS = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=12).map(" ".join)


@given(WORDS, WORDS, st.integers(1, 6))
def test_the_overlap_baseline_is_the_literal_one(question: str, context: str, length: int) -> None:
    made = asked("en", 1, questions=(question,), contexts=(context,))
    assert overlap_answers(made, length) == [slow_overlap(question, context, length)]


def test_the_overlap_baseline_on_examples() -> None:
    context = "One two. Rome, capital  of Italy, was founded in 753 by Romulus and others."
    made = asked("en", 4, contexts=(context, context, context, "")).at([0, 1, 2, 3])
    texts = ("When was Rome founded in Italy by Romulus", "Why", "", "Why")
    made = replace(made, questions=texts)
    found = overlap_answers(made, 1)
    assert found == ["753", "One", "One", ""]
    assert overlap_answers(made, 2)[1] == "One two."
    assert overlap_answers(made, 900)[0] == context  # as it is written
