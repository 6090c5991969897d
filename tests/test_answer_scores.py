"""F1 and exact match by the letter of SQuAD v1.1 and MLQA v1, on cases worked out by hand."""

import pytest

from xlx import answer_scores
from xlx.questions import Answer, QuestionsError, f1


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
        ("one – two", "one two", "en", (4 / 5, 0), (1, 1)),
        ("the", "a", "en", (0, 1), (0, 1)),  # nothing is left of either
    ],
)
def test_answers_are_scored_as_the_scripts_do(
    said: str, wanted: str, language: str, squad: tuple, mlqa: tuple
) -> None:
    assert answer_scores.squad(said, [wanted]) == pytest.approx(squad)
    assert answer_scores.mlqa(said, [wanted], language) == pytest.approx(mlqa)


def test_the_best_of_the_answers_counts_and_one_is_needed() -> None:
    answers = [Answer("two", 4), "one two three"]
    assert answer_scores.squad("one two", answers) == pytest.approx((0.8, 0))
    assert answer_scores.mlqa("two", answers, "en") == (1, 1)
    assert f1("丹佛野马", ["丹佛野马队"], "zh") == pytest.approx(8 / 9)  # ours is as MLQA's there
    with pytest.raises(QuestionsError, match="no answer to compare"):
        answer_scores.squad("one", [])
