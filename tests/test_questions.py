"""Questions: reading, pairing, the metric of SQuAD against a literal one, distances, baselines."""

import json
import lzma
import re
import string
import time
import unicodedata
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from xlx import paths, questions
from xlx.questions import Answer, Questions, QuestionsError

FOLDER = paths.DATA / "questions"

CONTEXT = "Rome is in Italy. Oslo is not in Italy, said Ann."


def qa(
    key: str = "q1", question: str = "Where is Rome?", answers: object = (("Italy", 11),)
) -> dict:
    spans = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": key, "question": question, "answers": spans}


def squad(*qas: dict, context: str = CONTEXT) -> dict:
    return {"version": "1.1", "data": [{"title": "t", "paragraphs": [paragraph(*qas, c=context)]}]}


def paragraph(*qas: dict, c: str = CONTEXT) -> dict:
    return {"context": c, "qas": list(qas)}


def encoded(data: object) -> bytes:
    return json.dumps(data, ensure_ascii=False).encode()


def some(language: str = "en", n: int = 4, **changes: object) -> Questions:
    made = Questions(
        name=f"made {language} test",
        language=language,
        contexts=tuple(f"{language} context {i // 2} ." for i in range(n)),
        questions=tuple(f"{language} which {i} ?" for i in range(n)),
        answers=((Answer(language, 0),),) * n,
        ids=tuple(f"q{i}" for i in range(n)),
    )
    return replace(made, **changes)


# --- reading --------------------------------------------------------------------------------------


def test_squad_is_read_as_it_is() -> None:
    two = paragraph(qa("q3", "Où ?", [("là", 3)]), c="Le là.")
    data = squad(qa("q1", answers=[("Italy", 11), ("in Italy", 8)]), qa("q2"))
    data["data"].append({"paragraphs": [two]})
    read = questions.read_squad(encoded(data), "made en test", "en")
    assert read.contexts == (CONTEXT, CONTEXT, "Le là.")
    assert read.questions == ("Where is Rome?", "Where is Rome?", "Où ?")
    assert read.answers[0] == (Answer("Italy", 11), Answer("in Italy", 8))
    assert read.ids == ("q1", "q2", "q3")
    assert read.paragraphs.tolist() == [0, 0, 1]
    assert read.paragraphs.dtype == np.int64
    assert set(read.left_out) == set(questions.REASONS)
    assert sum(read.left_out.values()) == 0
    assert read.dropped == ()
    assert (len(read), read.name, read.language) == (3, "made en test", "en")
    assert (read.context_language, read.question_language) == ("en", "en")
    assert repr(read) == "Questions(made en test: 3, 2 contexts)"


def test_a_file_may_be_packed_and_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    data = encoded(squad(qa()))
    plain, packed = tmp_path / "a.json", tmp_path / "a.json.xz"
    plain.write_bytes(b"\xef\xbb\xbf" + data)
    packed.write_bytes(lzma.compress(data))
    for source in (plain, packed, str(plain), packed.read_bytes()):
        assert questions.read_squad(source, "a", "en").ids == ("q1",)


def test_positions_count_characters_not_bytes() -> None:
    context = "🙂 é Rome"
    read = questions.read_squad(
        encoded(squad(qa(answers=[("Rome", 4)]), context=context)), "a", "en"
    )
    answer = read.answers[0][0]
    assert context[answer.start : answer.end] == "Rome"


def test_an_answer_that_is_not_where_it_says_is_named_counted_and_left_out() -> None:
    data = squad(
        qa("fine", answers=[("Italy", 11), ("Italy", 12)]),
        qa("misplaced", answers=[("Italy", 10), ("Oslo", 0)]),
        qa("negative", answers=[("Ann.", -4)]),
        qa("beyond", answers=[("Ann.", 900)]),
        qa("blank", answers=[("", 0), (" ", 4)]),
        qa("none", answers=[]),
        qa("wordless", question=" "),
    )
    read = questions.read_squad(encoded(data), "a", "en")
    assert read.ids == ("fine",)
    assert read.answers == ((Answer("Italy", 11),),)
    assert read.dropped == ("misplaced", "negative", "beyond", "blank", "none", "wordless")
    assert read.left_out == {
        "misplaced answer": 5,
        "blank answer": 2,
        "no answer": 1,
        "blank question": 1,
    }


def broken(change: str) -> bytes:
    """A file with one thing wrong."""
    data = squad(qa("q1"), qa("q2"))
    entry = data["data"][0]["paragraphs"][0]
    if change == "no data":
        del data["data"]
    elif change == "no context":
        del entry["context"]
    elif change == "no start":
        del entry["qas"][1]["answers"][0]["answer_start"]
    elif change == "start in words":
        entry["qas"][1]["answers"][0]["answer_start"] = "11"
    elif change == "start is true":
        entry["qas"][1]["answers"][0]["answer_start"] = True
    elif change == "question is a number":
        entry["qas"][0]["question"] = 3
    elif change == "article is a list":
        data["data"][0] = []
    elif change == "same id":
        entry["qas"][1]["id"] = "q1"
    elif change == "all blank":
        for each in entry["qas"]:
            each["answers"] = [{"text": "", "answer_start": 0}]
    elif change == "empty":
        data["data"] = []
    return encoded(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (broken("no data"), r"a\.json: no 'data'"),
        (broken("no context"), r"a\.json, data\[0\]\.paragraphs\[0\]: no 'context'"),
        (broken("no start"), r"paragraphs\[0\]\.qas\[1\]\.answers\[0\]: no 'answer_start'"),
        (broken("start in words"), r"qas\[1\]\.answers\[0\]: 'answer_start' is not a whole number"),
        (broken("start is true"), r"'answer_start' is not a whole number"),
        (broken("question is a number"), r"qas\[0\]: 'question' is not a string"),
        (broken("article is a list"), r"data\[0\]: not an object with 'paragraphs'"),
        (broken("same id"), r"qas\[1\]: the id 'q1' is also at data\[0\]\.paragraphs\[0\]\.qas\[0"),
        (broken("all blank"), r"none of its 2 questions .* \(blank answer: 2\).*XTREME withholds"),
        (broken("empty"), r"none of its 0 questions .* \(it is empty\)"),
        (b'{"data": [\n}', r"a\.json, line 2, column 1: no JSON"),
        (b'{"data": "\xe9"}', r"a\.json, byte 10: not UTF-8"),
        (lzma.compress(b"{}")[:-8], r"a\.json: damaged xz file"),
    ],
)
def test_malformed_files_are_refused_with_the_place(
    tmp_path: Path, data: bytes, message: str
) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(data)
    with pytest.raises(QuestionsError, match=message):
        questions.read_squad(file, "a", "en")


def test_ids_that_tell_nothing_apart_are_replaced_by_places() -> None:
    data = encoded(squad(qa("0"), qa("0", answers=[("Italy", 0)]), qa("0")))
    with pytest.raises(QuestionsError, match="with prefix= questions are named by their place"):
        questions.read_squad(data, "a", "en")
    read = questions.read_squad(data, "a", "en", prefix="train")
    assert read.ids == ("train:1", "train:3")
    assert read.dropped == ("train:2",)


def test_local_copies_under_their_public_names(tmp_path: Path) -> None:
    data = encoded(squad(qa("0"), qa("1")))
    names = {
        ("xquad", "de", "test"): "xquad.de.json",
        ("tydiqa", "sw", "train"): "deep/tydiqa.goldp.sw.train.json",
        ("tydiqa", "sw", "validation"): "deep/tydiqa.goldp.sw.dev.json",
        ("squad", "en", "train"): "train-v1.1.json",
        ("squad", "en", "validation"): "dev-v1.1.json",
    }
    (tmp_path / "deep").mkdir()
    for name in names.values():
        (tmp_path / name).write_bytes(data)
    for (source, language, split), name in names.items():
        read = questions.load(source, language, split, path=tmp_path)
        assert read.name == f"{source} {language} {split}"
        assert read.language == language
        by_place = {"train": ("train:1", "train:2"), "validation": ("dev:1", "dev:2")}
        assert read.ids == (by_place[split] if source == "tydiqa" else ("0", "1"))
        again = questions.load(source, language, split, path=tmp_path / name)
        assert again.text_hash() == read.text_hash()
    (tmp_path / "deep" / "xquad.de.json.xz").write_bytes(lzma.compress(data))
    with pytest.raises(QuestionsError, match=r"has xquad\.de\.json more than once"):
        questions.load("xquad", "de", path=tmp_path)
    with pytest.raises(QuestionsError, match=r"has no xquad\.el\.json; get it from github"):
        questions.load("xquad", "el", path=tmp_path)
    with pytest.raises(FileNotFoundError, match="there is nothing at"):
        questions.load("xquad", "el", path=tmp_path / "none")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("newsqa", "en"), "no source 'newsqa'; there are xquad, tydiqa, squad"),
        (("xquad", "en", "train"), "xquad has no 'train' part with answers; it has test"),
        (("tydiqa", "en"), "tydiqa has no 'test' part with answers; it has train and validation"),
        (("xquad", "no language"), "is no language tag"),
        (
            ("xquad", "ro"),
            r"no test part of xquad is shipped in ro .*path=, a folder with xquad\.ro",
        ),
        (("squad", "en", "train"), r"no train part of squad is shipped .*train-v1\.1\.json"),
    ],
)
def test_requests_that_cannot_be_met(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(QuestionsError, match=message):
        questions.load(*arguments)


def test_squad_is_in_english(tmp_path: Path) -> None:
    with pytest.raises(QuestionsError, match="SQuAD is in English"):
        questions.load("squad", "de", "train", path=tmp_path)


# --- several languages ----------------------------------------------------------------------------


def test_aligned_sets_are_returned_as_they_are() -> None:
    sets = {"en": some("en"), "de": some("de")}
    assert questions.aligned(sets) == sets


@pytest.mark.parametrize(
    ("german", "message"),
    [
        (
            some("de").at([0, 3]),
            r"made de test lacks 2 of the 4 questions of made en test \(q1, q2",
        ),
        (some("de", 6), r"made en test lacks 2 of the 6 questions of made de test \(q4, q5"),
        (some("de").at([0, 2, 1, 3]), "position 1 is question q2 in de and q1 in en"),
        (some("fr"), "made fr test is given as the questions in de"),
        (some("de", ids=("q0", "q0", "q1", "q2")), "made de test: an id occurs twice"),
    ],
)
def test_sets_that_are_not_parallel_are_refused(german: Questions, message: str) -> None:
    with pytest.raises(QuestionsError, match=message):
        questions.aligned({"en": some("en"), "de": german})


def test_common_keeps_what_all_have_in_the_order_of_the_first() -> None:
    german = some("de", 6).at([3, 5, 1, 0])
    sets, lacks = questions.common({"en": some("en"), "de": german})
    assert sets["en"].ids == sets["de"].ids == ("q0", "q1", "q3")
    assert sets["de"].questions == ("de which 0 ?", "de which 1 ?", "de which 3 ?")
    assert lacks == {"en": 1, "de": 1}  # q5, q2
    with pytest.raises(QuestionsError, match="no question of made en test is in all of en, de"):
        questions.common({"en": some("en"), "de": some("de", ids=tuple("abcd"))})
    with pytest.raises(QuestionsError, match="made de test: an id occurs twice"):
        questions.common({"en": some("en"), "de": some("de", ids=("q0", "q0", "q1", "q2"))})


def test_no_language_is_an_error() -> None:
    for function in (questions.aligned, questions.common):
        with pytest.raises(QuestionsError, match="no questions in any language"):
            function({})


def test_crossed_takes_contexts_of_one_and_questions_of_the_other() -> None:
    both = questions.crossed(some("en", dropped=("q9",)), some("de"))
    assert both.contexts == some("en").contexts
    assert both.answers == some("en").answers
    assert both.questions == some("de").questions
    assert (both.language, both.name, both.dropped) == ("en-de", "made en-de test", ("q9",))
    assert (both.context_language, both.question_language) == ("en", "de")
    same = questions.crossed(some("en"), some("en"))
    assert (same.language, same.name) == ("en", "made en test")
    assert same.text_hash() == some("en").text_hash()
    named = questions.crossed(some("en", name="mine"), some("de", name="yours"))
    assert named.name == "mine, questions of yours"


@pytest.mark.parametrize(
    ("german", "message"),
    [
        (some("de").at([1]), "made de test lacks 3 of the 4"),
        (some("de").at([1, 0, 2, 3]), "the same questions in different orders; `common`"),
    ],
)
def test_crossed_refuses_what_is_not_parallel(german: Questions, message: str) -> None:
    with pytest.raises(QuestionsError, match=message):
        questions.crossed(some("en"), german)


def test_at_and_hash() -> None:
    one = some()
    assert one.at([2, 0]).ids == ("q2", "q0")
    assert one.at([2, 0]).contexts == (one.contexts[2], one.contexts[0])
    others = [
        one.at([1, 0, 2, 3]),
        replace(one, questions=("x", *one.questions[1:])),
        replace(one, answers=((Answer("e", 0),), *one.answers[1:])),
        replace(one, answers=((Answer("en", 1),), *one.answers[1:])),
        replace(one, answers=(one.answers[0] * 2, *one.answers[1:])),
    ]
    assert len({each.text_hash() for each in (one, *others)}) == 6
    assert replace(one, name="other").text_hash() == one.text_hash()
    with pytest.raises(QuestionsError, match=r"unequal numbers of contexts \(4\)"):
        some(ids=("q0",))


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
    assert questions.words(text, language) == expected


TEXT = st.text(st.sampled_from("aB .,-'3é“।。，球队カท้ำเ\u3000\n🙂हि"), max_size=12) | st.text(
    max_size=8
)
CODES = st.sampled_from(["en", "hi", "zh", "ja", "th"])


@given(TEXT, CODES)
def test_words_are_the_whole_text_but_its_white_space(text: str, language: str) -> None:
    spans = questions.word_spans(text, language)
    assert [text[start:end] for _, start, end in spans] == [word for word, _, _ in spans]
    assert questions.words(text, language) == [word for word, _, _ in spans]
    assert "".join(word for word, _, _ in spans) == "".join(text.split())
    if language in ("en", "hi"):
        assert questions.words(text, language) == text.split()


# --- the metric -----------------------------------------------------------------------------------


def plain(text: str) -> str:
    """A literal reading of SQuAD v1.1's normalisation, character by character."""
    kept = ""
    for character in text.lower():
        category = unicodedata.category(character)
        if character not in string.punctuation and not category.startswith("P"):
            kept += character
    for article in ("a", "an", "the"):
        kept = re.sub(rf"(?<!\w){article}(?!\w)", " ", kept)
    return " ".join(kept.split())


def slow_f1(prediction: str, answers: list[str]) -> float:
    best = 0.0
    for answer in answers:
        given_words, wanted = plain(prediction).split(), plain(answer).split()
        if not given_words and not wanted:
            return 1.0
        left, same = list(wanted), 0
        for word in given_words:
            if word in left:
                left.remove(word)
                same += 1
        if same:
            precision, recall = same / len(given_words), same / len(wanted)
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
    assert questions.normalised(prediction, "en") == plain(prediction)
    exact = float(any(plain(prediction) == plain(answer) for answer in answers))
    for given_answers in (answers, spans):
        assert questions.exact_match(prediction, given_answers, "en") == exact
        score = questions.f1(prediction, given_answers, "en")
        assert score == pytest.approx(slow_f1(prediction, answers), abs=1e-12)
        assert questions.f1(prediction, given_answers, "zh", segment=False) == score
    assert 0 <= score <= 1
    assert score == 1 or not exact


@pytest.mark.parametrize(
    ("prediction", "answers", "language", "exact", "score"),
    [
        ("The Rome.", ["rome"], "en", 1, 1),
        ("Rome in Italy", ["Rome"], "en", 0, 0.5),
        ("Rome Rome", ["Rome"], "en", 0, 2 / 3),  # a word counts as often as it occurs
        ("Paris", ["Rome", "Paris, France", "Paris"], "en", 1, 1),
        ("Paris", ["Rome", "Paris, France"], "en", 0, 2 / 3),
        ("", ["Rome"], "en", 0, 0),
        ("", ["the"], "en", 1, 1),
        ("Rome", ["."], "en", 0, 0),
        ("theft", ["ft"], "en", 0, 0),  # no article within a word
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
    assert questions.exact_match(prediction, answers, language) == exact
    assert questions.f1(prediction, answers, language) == pytest.approx(score)


def test_without_segmentation_a_chinese_answer_is_one_word() -> None:
    assert questions.f1("北京市", ["北京"], "zh", segment=False) == 0
    assert questions.f1("12月 5日", ["5日"], "zh", segment=False) == pytest.approx(2 / 3)


def test_no_answer_or_no_language_is_an_error() -> None:
    for metric in (questions.exact_match, questions.f1):
        with pytest.raises(QuestionsError, match="no answer to compare with"):
            metric("Rome", [], "en")
        with pytest.raises(QuestionsError, match="is no language tag"):
            metric("Rome", ["Rome"], "no language")
    with pytest.raises(QuestionsError, match="is no language tag"):
        questions.normalised("Rome", "no language")


def test_the_metric_of_a_pair_is_that_of_the_context() -> None:
    assert questions.f1("北京市", ["北京"], "zh-en") == pytest.approx(0.8)
    assert questions.f1("北京市", ["北京"], "en-zh") == 0


# --- distances ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "context", "answer", "language", "expected"),
    [
        # Rome 0, is 1, in 2, Italy. 3, Oslo 4, is 5, not 6, in 7, Italy, 8, said 9, Ann. 10
        ("Where is Rome?", CONTEXT, Answer("Italy", 11), "en", (3 + 2 + 2) / 3),
        ("Who is Oslo?", CONTEXT, Answer("Ann", 45), "en", (9 + 6 + 5) / 3),
        # An answer of two words: its centre is between them, 8.5; the answer's own words count.
        ("is IT in “italy”?", CONTEXT, Answer("Italy, said", 33), "en", 25 / 6),
        # A part of two words: from within "not" to within "in".
        ("Rome", CONTEXT, Answer("t i", 28), "en", 6.5),
        ("Rome Rome rome!", CONTEXT, Answer("Rome", 0), "en", 0),
        ("Why?", CONTEXT, Answer("Italy", 11), "en", 384),
        ("", CONTEXT, Answer("Italy", 11), "en", 384),
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
    found = questions.word_distance(question, context, answer, language)
    assert found == pytest.approx(expected)


def test_the_distance_where_nothing_occurs_is_the_one_given() -> None:
    answer = Answer("Italy", 11)
    assert questions.word_distance("Why?", CONTEXT, answer, "en", max_distance=50) == 50
    read = questions.read_squad(encoded(squad(qa("q1", "Why?"), qa("q2"))), "a", "en")
    found = questions.distances(read, max_distance=50)
    assert found.dtype == np.float64
    assert found == pytest.approx([50, 7 / 3])


def test_the_distance_of_a_pair_reads_both_languages() -> None:
    chinese = some("zh", 1, questions=("NFL是？",))
    english = some("en", 1, contexts=("see NFL now",), answers=((Answer("now", 8),),))
    assert questions.distances(questions.crossed(english, chinese)).tolist() == [1]
    # Read as English, the question would be one word that does not occur.
    assert questions.word_distance("NFL是？", "see NFL now", Answer("now", 8), "en") == 384


def test_the_distance_to_an_answer_that_is_not_there_is_an_error() -> None:
    for answer in (Answer("Italy", 12), Answer(" ", 4), Answer("Ann.", -4)):
        with pytest.raises(QuestionsError, match="is not at position"):
            questions.word_distance("Rome", CONTEXT, answer, "en")


def slow_distance(question: str, context: str, answer: Answer) -> float:
    """One word at a time, for languages with spaces."""

    def key(word: str) -> str:
        return "".join(
            c
            for c in word.lower()
            if c not in string.punctuation and unicodedata.category(c)[0] != "P"
        )

    asked = {key(word) for word in question.split()} - {""}
    spans = [(match[0], match.start(), match.end()) for match in re.finditer(r"\S+", context)]
    inside = [
        i for i, (_, start, end) in enumerate(spans) if start < answer.end and end > answer.start
    ]
    centre = (inside[0] + inside[-1]) / 2
    found = [abs(i - centre) for i, (word, _, _) in enumerate(spans) if key(word) in asked]
    return float(np.mean(found)) if found else 384.0


def test_distances_are_the_literal_ones_on_real_text() -> None:
    read = questions.load("xquad", "de")
    expected = [
        slow_distance(question, context, answers[0])
        for question, context, answers in zip(
            read.questions, read.contexts, read.answers, strict=True
        )
    ]
    assert questions.distances(read) == pytest.approx(expected)


# --- controls and baselines -----------------------------------------------------------------------


@given(st.lists(TEXT, min_size=1, max_size=5), CODES, st.integers(0, 3))
def test_shuffling_keeps_the_words_of_the_question_and_all_else(
    texts: list[str], language: str, seed: int
) -> None:
    made = some(language, len(texts), questions=tuple(texts))
    found = questions.shuffled(made, seed)
    for one, other in zip(texts, found.questions, strict=True):
        before, after = questions.words(one, language), questions.words(other, language)
        assert Counter(before) == Counter(after)
    for name in ("contexts", "answers", "ids", "language", "left_out"):
        assert getattr(found, name) == getattr(made, name)
    assert questions.shuffled(made, seed) == found


def test_shuffling_depends_on_the_seed_and_is_one_order_a_text() -> None:
    text = " ".join(map(str, range(30)))
    made = some("en", 4, questions=(text, "other", text, text + " 30"))
    found = [questions.shuffled(made, seed).questions for seed in range(3)]
    assert len({each[0] for each in found}) == 3
    assert all(each[0] == each[2] != text for each in found)
    # Positions, not texts, make the order, so that another text has another.
    other = replace(made, questions=("other", text, "x", "y"))
    assert questions.shuffled(other, 0).questions[1] != found[0][0]


def test_a_pair_is_shuffled_in_the_language_of_its_questions() -> None:
    pair = questions.crossed(some("en", 1), some("zh", 1, questions=("北京是首都吗",)))
    found = questions.shuffled(pair, 1).questions[0]
    assert sorted(found) == sorted("北京是首都吗")
    assert found != "北京是首都吗"


def test_questionless_keeps_all_but_the_questions() -> None:
    made = some()
    found = questions.questionless(made)
    assert found.questions == ("",) * 4
    assert replace(found, questions=made.questions, name=made.name) == made
    assert (questions.distances(found) == 384).all()


def slow_overlap(question: str, context: str, length: int) -> str:
    words = context.split()
    asked = set(question.split())
    size = min(length, len(words))
    best, answer = -1.0, ""
    for first in range(len(words) - size + 1):
        centre = first + (size - 1) / 2
        outside = [i for i in range(len(words)) if not first <= i < first + size]
        score = sum(1 / (1 + abs(i - centre)) for i in outside if words[i] in asked)
        if score > best + 1e-9:
            best, answer = score, " ".join(words[first : first + size])
    return answer


WORDS = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=12).map(" ".join)


@given(WORDS, WORDS, st.integers(1, 6))
def test_the_overlap_baseline_is_the_literal_one(question: str, context: str, length: int) -> None:
    made = some("en", 1, questions=(question,), contexts=(context,))
    assert questions.overlap_answers(made, length) == [slow_overlap(question, context, length)]


def test_the_overlap_baseline_on_examples() -> None:
    context = "One two. Rome, capital  of Italy, was founded in 753 by Romulus and others."
    made = some("en", 4, contexts=(context, context, context, "")).at([0, 1, 2, 3])
    asked = ("When was Rome founded in Italy by Romulus", "Why", "", "Why")
    made = replace(made, questions=asked)
    found = questions.overlap_answers(made, 1)
    assert found == ["753", "One", "One", ""]
    assert questions.overlap_answers(made, 2)[1] == "One two."
    assert questions.overlap_answers(made, 900)[0] == context  # as it is written
    with pytest.raises(QuestionsError, match="an answer of 0 words is none"):
        questions.overlap_answers(made, 0)


# --- what is shipped ------------------------------------------------------------------------------

XQUAD = ("en", "de", "ru", "es", "zh", "vi", "ar", "tr", "el", "hi", "th")


@pytest.fixture(scope="module")
def shipped() -> dict[tuple[str, str, str], Questions]:
    """Everything, by source, language and split."""
    rows = questions.table().itertuples()
    return {
        (row.source, row.language, row.split): questions.load(row.source, row.language, row.split)
        for row in rows
    }


def letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def grams(text: str) -> set[tuple[str, ...]]:
    split = re.findall(r"\w+", text.casefold())
    return {tuple(split[i : i + 13]) for i in range(len(split) - 12)}


def test_the_table_counts_what_is_there(shipped) -> None:
    assert list(shipped) == [
        *(("xquad", code, "test") for code in XQUAD),
        *(("tydiqa", "en", split) for split in ("train", "validation")),
    ]
    for row in questions.table().itertuples():
        part = shipped[row.source, row.language, row.split]
        assert (len(part), len(set(part.contexts))) == (row.questions, row.contexts)
        assert sum(map(len, part.answers)) == row.answers == len(part)  # one each
        assert part.dropped == ()
        assert sum(part.left_out[reason] for reason in questions.REASONS) == 0
        sizes = {"test": (1190, 240), "train": (3000, 2791), "validation": (300, 281)}
        assert (row.questions, row.contexts) == sizes[row.split]


def test_every_answer_is_in_its_context(shipped) -> None:
    for part in shipped.values():
        for context, answers in zip(part.contexts, part.answers, strict=True):
            for answer in answers:
                assert context[answer.start : answer.end] == answer.text
        assert len(set(part.ids)) == len(part)
        assert all(map(str.strip, part.questions))


def test_xquad_is_parallel(shipped) -> None:
    sets = {code: shipped["xquad", code, "test"] for code in XQUAD}
    assert questions.aligned(sets) == sets
    assert len({part.paragraphs.tobytes() for part in sets.values()}) == 1
    assert len({part.text_hash() for part in sets.values()}) == len(XQUAD)
    pair = questions.crossed(sets["zh"], sets["el"])
    assert (pair.name, pair.language) == ("xquad zh-el test", "zh-el")
    assert 0 < questions.distances(pair).mean() <= 384


def test_tydiqa_says_what_was_left_out(shipped) -> None:
    for split in ("train", "validation"):
        part = shipped["tydiqa", "en", split]
        left_out = {reason: n for reason, n in part.left_out.items() if n}
        assert left_out == {
            "long context": 84,
            "cut answer": 10,
            "in the pretraining text": 2,
            "quoted in xquad": 1,
            "not drawn": 299,
        }
        assert sum(left_out.values()) + 3300 == 3696
        assert max(map(len, part.contexts)) <= 1500
        assert all(re.fullmatch(r"train:\d+", key) for key in part.ids)


def test_no_context_or_question_is_in_two_parts(shipped) -> None:
    train, validation = (shipped["tydiqa", "en", split] for split in ("train", "validation"))
    test = shipped["xquad", "en", "test"]
    for one, other in ((train, validation), (train, test), (validation, test)):
        for name in ("contexts", "questions"):
            there = set(map(letters, getattr(other, name)))
            assert not there & set(map(letters, getattr(one, name)))
        quoted = set().union(*map(grams, set(one.contexts)))
        assert len(quoted) > 10_000
        assert not quoted & set().union(*map(grams, set(other.contexts)))
    assert not set(train.ids) & set(validation.ids)


def test_files_are_small_named_with_their_licence_and_no_other_is_there() -> None:
    table = questions.table()
    files = {file.relative_to(FOLDER).as_posix(): file for file in FOLDER.rglob("*.*")}
    files = {name: file for name, file in files.items() if "__pycache__" not in name}
    assert set(files) == {*table["file"], "make.py", "sources.tsv", "README.md"}
    assert sum(file.stat().st_size for file in files.values()) < 2_000_000
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for row in table.itertuples():
        assert row.licence in readme
        assert row.url in readme
        assert row.made_from


def test_a_shipped_file_that_was_changed_or_lost(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(questions, "_FOLDER", tmp_path)
    with pytest.raises(QuestionsError, match=r"sources\.tsv is missing; restore data/questions"):
        questions.load("xquad", "de")
    (tmp_path / "sources.tsv").write_bytes((FOLDER / "sources.tsv").read_bytes())
    with pytest.raises(QuestionsError, match=r"de\.json\.xz is missing; restore data/questions"):
        questions.load("xquad", "de")
    (tmp_path / "xquad").mkdir()
    (tmp_path / "xquad" / "de.json.xz").write_bytes(b"other")
    with pytest.raises(QuestionsError, match=r"is not the file on record in sources\.tsv"):
        questions.load("xquad", "de")
    (tmp_path / "sources.tsv").write_text("source\tlanguage\nxquad\n", encoding="utf-8")
    with pytest.raises(QuestionsError, match="line 2: 1 cells under a header of 2"):
        questions.table()


def test_the_metric_is_fast_enough_for_a_grid(shipped) -> None:
    """121 cells of 1,190 questions are to take less than 20 s; here two cells less than 2 s."""
    part = shipped["xquad", "ru", "test"]
    began = time.process_time()
    for cell in range(2):
        for context, answers in zip(part.contexts, part.answers, strict=True):
            prediction = context[cell * 7 : cell * 7 + 30]
            questions.exact_match(prediction, answers, "ru")
            questions.f1(prediction, answers, "ru")
    assert time.process_time() - began < 2


def test_the_shortest_are_those_of_all_languages() -> None:
    sets, lacking = questions.parallel("xquad", ["en", "zh"], n=30)
    assert lacking == {"en": 0, "zh": 0}
    assert sets["en"].ids == sets["zh"].ids
    whole = {code: questions.load("xquad", code) for code in ("en", "zh")}
    sizes = {
        name: len(one) + len(other)
        for name, one, other in zip(
            whole["en"].ids, whole["en"].contexts, whole["zh"].contexts, strict=True
        )
    }
    assert max(sizes[name] for name in sets["en"].ids) <= sorted(sizes.values())[29]
    assert list(sets["en"].ids) == [name for name in whole["en"].ids if name in sets["en"].ids]
    with pytest.raises(questions.QuestionsError, match="at least one"):
        questions.shortest(whole, 0)


def test_of_a_context_so_many_questions_are_taken() -> None:
    sets, _ = questions.parallel("xquad", ["en", "zh"], n=30, per_context=2)
    counts = Counter(sets["en"].contexts)
    assert len(sets["en"]) == 30
    assert max(counts.values()) == 2
    assert len(counts) >= 15
    with pytest.raises(questions.QuestionsError, match="a context"):
        questions.shortest(sets, None, 0)
