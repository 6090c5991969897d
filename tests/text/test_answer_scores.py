"""Words by language; F1 and exact match against a literal SQuAD, and by the published scripts."""

import re
import string
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.text.made import CODES, TEXT
from xlx.measures import answers
from xlx.measures.answers import exact_match, f1, mlqa, normalised_answer, squad
from xlx.text.files import TextError
from xlx.text.languages import word_spans, words
from xlx.text.questions import Answer

# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", " It's  3.5 km,\nor “more”. ", ["It's", "3.5", "km,", "or", "“more”."]),
        ("ar", "في عام 2015؟", ["في", "عام", "2015؟"]),
        ("zh", "NFL球队有3.5分。", ["NFL", "球", "队", "有", "3.5", "分", "。"]),
        ("zh", "“New York”，", ["“", "New", "York", "”", "，"]),
        ("zh_Hant", "臺北 市", ["臺", "北", "市"]),
        ("ja", "カナと漢字 (x)", ["カ", "ナ", "と", "漢", "字", "(", "x", ")"]),
        # Each consonant or leading vowel with what is on it: น้ำ is one, เก่ง is เ ก่ ง.
        ("th", "น้ำ เก่ง 2 NFL", ["น้ำ", "เ", "ก่", "ง", "2", "NFL"]),
        ("en", "球队 ok", ["球队", "ok"]),
        ("zh", " \n", []),
    ],
)
def test_words_by_language(language: str, text: str, expected: list[str]) -> None:
    assert words(text, language) == expected


@settings(max_examples=50)
@given(TEXT, CODES)
def test_words_are_the_whole_text_but_its_white_space(text: str, language: str) -> None:
    spans = word_spans(text, language)
    split = words(text, language)
    assert split == [text[start:end] for _, start, end in spans] == [word for word, _, _ in spans]
    assert "".join(split) == "".join(text.split())
    if language in ("en", "hi"):
        assert split == text.split()


# --- the metric -----------------------------------------------------------------------------------


def plain(text: str) -> str:
    """A literal reading of SQuAD v1.1's normalisation, character by character."""
    kept = "".join(
        character
        for character in text.lower()
        if character not in string.punctuation and unicodedata.category(character)[0] != "P"
    )
    for article in ("a", "an", "the"):
        kept = re.sub(rf"(?<!\w){article}(?!\w)", " ", kept)
    return " ".join(kept.split())


def slow_f1(prediction: str, answers: list[str]) -> float:
    best = 0.0
    for answer in answers:
        given_words, left = plain(prediction).split(), plain(answer).split()
        if not given_words and not left:
            return 1.0
        n_left, same = len(left), 0
        for word in given_words:
            if word in left:
                left.remove(word)
                same += 1
        if same:
            precision, recall = same / len(given_words), same / n_left
            best = max(best, 2 * precision * recall / (precision + recall))
    return best


PIECES = st.sampled_from(
    ["the", "a", "an", "The", "theft", "Rome", "rome,", "U.S.", "US", "«x»", "x", ".", "—", "1,000"]
)
PHRASE = st.lists(PIECES, max_size=6).map(" ".join) | TEXT


@given(PHRASE, st.lists(PHRASE, min_size=1, max_size=3))
@example("the", ["."])
@example("", ["Rome", "a"])
def test_the_metric_is_the_literal_one(prediction: str, answers: list[str]) -> None:
    spans = [Answer(text, 0) for text in answers]
    assert normalised_answer(prediction) == plain(prediction)
    exact = float(any(plain(prediction) == plain(answer) for answer in answers))
    for given_answers in (answers, spans):
        assert exact_match(prediction, given_answers, "en") == exact
        score = f1(prediction, given_answers, "en")
        assert score == pytest.approx(slow_f1(prediction, answers), abs=1e-12)
    assert 0 <= score <= 1
    assert score == 1 or not exact


@pytest.mark.parametrize(
    ("prediction", "answers", "language", "exact", "score"),
    [
        ("$5", ["5"], "en", 1, 1),  # SQuAD takes ASCII symbols off ...
        ("€5", ["5"], "en", 0, 0),  # ... and these are no punctuation
        ("« Rom »", ["Rom"], "de", 1, 1),
        ("a casa", ["casa"], "es", 1, 1),  # the articles of English in every language
        ("北京市", ["北京"], "zh", 0, 0.8),
        ("北京。", ["北京"], "zh", 1, 1),
        ("12月 5日", ["12月5日"], "zh", 0, 1),
        ("น้ำดี", ["น้ำ"], "th", 0, 2 / 3),  # น้ำ, ดี
    ],
)
def test_the_metric_on_its_edges(
    prediction: str, answers: list[str], language: str, exact: float, score: float
) -> None:
    assert exact_match(prediction, answers, language) == exact
    assert f1(prediction, answers, language) == pytest.approx(score)


@pytest.mark.parametrize("metric", [exact_match, f1])
def test_no_answer_or_no_language_is_an_error(metric) -> None:
    for wanted, language, says in (([], "en", "no answer to"), (["Rome"], "no language", "tag")):
        with pytest.raises(TextError, match=says):
            metric("Rome", wanted, language)


# --- the published scripts ---


@pytest.mark.parametrize(
    ("said", "wanted", "language", "squad", "mlqa"),
    [
        ("The Broncos!", "broncos", "en", (1, 1), (1, 1)),
        # SQuAD's articles are English in any language, MLQA's are those of the language
        ("die Broncos", "Broncos", "de", (2 / 3, 0), (1, 1)),
        ("the Broncos", "Broncos", "de", (1, 1), (2 / 3, 0)),
        # a text without spaces is one word for SQuAD; a character is one for MLQA in Chinese
        ("丹佛野马", "丹佛野马队", "zh", (0, 0), (8 / 9, 0)),
        ("丹佛 野马队", "丹佛野马队", "zh", (0, 0), (1, 1)),
        ("野马。", "野马", "zh", (0, 0), (1, 1)),  # "。" is no punctuation of ASCII
        ("الكتاب", "كتاب", "ar", (0, 0), (1, 1)),
        ("สองสาม", "สอง", "th", (0, 0), (0, 0)),  # MLQA has no Thai
        ("कि", "क", "hi", (0, 0), (0, 0)),  # another word, if its sign is left out
        ("one – two", "one two", "en", (4 / 5, 0), (1, 1)),
        ("the", "a", "en", (0, 1), (0, 1)),  # nothing is left of either
    ],
)
def test_answers_are_scored_as_the_scripts_do(
    said: str, wanted: str, language: str, squad: tuple, mlqa: tuple
) -> None:
    assert answers.squad(said, [wanted]) == pytest.approx(squad)
    assert answers.mlqa(said, [wanted], language) == pytest.approx(mlqa)


def test_the_best_of_the_answers_counts_and_one_is_needed() -> None:
    answers = [Answer("two", 4), "one two three"]
    assert squad("one two", answers) == pytest.approx((0.8, 0))
    assert mlqa("two", answers, "en") == (1, 1)
    assert f1("丹佛野马", ["丹佛野马队"], "zh") == pytest.approx(8 / 9)  # ours is as MLQA's there
    with pytest.raises(TextError, match="no answer to compare"):
        squad("one", [])
