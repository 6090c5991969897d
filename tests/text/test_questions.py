"""Questions: reading, and what is shipped."""

import lzma
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.text.made import CONTEXT, asked, encoded, paragraph, put, qa, squad
from xlx.text import questions
from xlx.text.examples import shortest
from xlx.text.files import TextError
from xlx.text.questions import Answer

# --- reading --------------------------------------------------------------------------------------


def test_squad_is_read_as_it_is() -> None:
    two = paragraph(qa("q3", "Où ?", [("là", 3)]), c="Le là.")
    data = squad(qa("q1", answers=[("Italy", 11), ("in Italy", 8)]), qa("q2"))
    data["data"].append({"paragraphs": [two]})
    read = questions.read_squad(encoded(data), "made en test", "en")
    assert read.contexts == (CONTEXT, CONTEXT, "Le là.")
    assert read.questions == ("Where is Rome?", "Where is Rome?", "Où ?")
    assert read.answers[0] == (Answer("Italy", 11), Answer("in Italy", 8))
    assert (read.ids, read.paragraphs.tolist()) == (("q1", "q2", "q3"), [0, 0, 1])
    assert read.left_out == dict.fromkeys(questions.REASONS, 0)
    assert (read.context_language, read.question_language) == ("en", "en")
    assert repr(read) == "Questions(made en test: 3 questions)"


def test_a_file_may_be_packed_and_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    data = encoded(squad(qa()))
    plain = put(tmp_path, "a.json", b"\xef\xbb\xbf" + data)
    packed = put(tmp_path, "a.json.xz", lzma.compress(data))
    for source in (plain, packed, str(plain), packed.read_bytes()):
        assert questions.read_squad(source, "a", "en").ids == ("q1",)


def test_an_answer_that_is_not_where_it_says_is_named_counted_and_left_out() -> None:
    emoji = encoded(squad(qa(answers=[("Rome", 4)]), context="🙂 é Rome"))  # characters, not bytes
    assert questions.read_squad(emoji, "a", "en").answers == ((Answer("Rome", 4),),)
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
    assert read.left_out == {
        "misplaced answer": 5,
        "blank answer": 2,
        "no answer": 1,
        "blank question": 1,
    }


WHOLE = encoded(squad(qa("q1"), qa("q2")))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"data": [[]]}', r"data\[0\]: no 'paragraphs' that is a list"),
        (WHOLE.replace(b'"q2"', b'"q1"'), r"qas\[1\]: the id 'q1' is also at data\[0\]\.para"),
        (b'{"data": []}', r"none of its 0 questions .* \(it is empty\)"),
    ],
)
def test_malformed_files_are_refused_with_the_place(
    tmp_path: Path, data: bytes, message: str
) -> None:
    with pytest.raises(TextError, match=message):
        questions.read_squad(put(tmp_path, "a.json", data), "a", "en")


def test_ids_that_tell_nothing_apart_are_replaced_by_places() -> None:
    data = encoded(squad(qa("0"), qa("0", answers=[("Italy", 0)]), qa("0")))
    with pytest.raises(TextError, match="with prefix= questions are named by their place"):
        questions.read_squad(data, "a", "en")
    read = questions.read_squad(data, "a", "en", prefix="train")
    assert read.ids == ("train:1", "train:3")


def test_local_copies_under_their_public_names(tmp_path: Path) -> None:
    data = encoded(squad(qa("0"), qa("1")))
    names = {
        ("xquad", "de", "test"): ("xquad.de.json", "0", "1"),
        ("tydiqa", "sw", "train"): ("deep/tydiqa.goldp.sw.train.json", "train:1", "train:2"),
        ("tydiqa", "sw", "validation"): ("deep/tydiqa.goldp.sw.dev.json", "dev:1", "dev:2"),
        ("squad", "en", "train"): ("train-v1.1.json", "0", "1"),
        ("squad", "en", "validation"): ("dev-v1.1.json", "0", "1"),
    }
    for name, *_ in names.values():
        put(tmp_path, name, data)
    for key, (name, *ids) in names.items():
        read = questions.load_questions(*key, path=tmp_path)
        assert (read.name, read.language, read.ids) == (" ".join(key), key[1], tuple(ids))
        assert questions.load_questions(*key, path=tmp_path / name) == read
    (tmp_path / "deep" / "xquad.de.json.xz").write_bytes(lzma.compress(data))
    with pytest.raises(TextError, match=r"several files with the questions of xquad\.de\.json"):
        questions.load_questions("xquad", "de", path=tmp_path)
    with pytest.raises(TextError, match=r"has no xquad\.el\.json; get it from github"):
        questions.load_questions("xquad", "el", path=tmp_path)
    with pytest.raises(FileNotFoundError, match="There is nothing at"):
        questions.load_questions("xquad", "el", path=tmp_path / "none")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("newsqa", "en"), "no source 'newsqa': choose xquad, tydiqa, tydiqa-whole, squad"),
        (("tydiqa", "en"), "no part of tydiqa with answers 'test': choose train, validation"),
        (("squad", "de", "train"), "SQuAD is in English"),
    ],
)
def test_requests_that_cannot_be_met(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(TextError, match=message):
        questions.load_questions(*arguments)


def test_at_and_hash() -> None:
    one = asked()
    assert one.at([2, 0]).ids == ("q2", "q0")
    assert one.at([2, 0]).contexts == (one.contexts[2], one.contexts[0])
    others = [
        one.at([1, 0, 2, 3]),
        replace(one, questions=("x", *one.questions[1:])),
        replace(one, answers=((Answer("e", 0),), *one.answers[1:])),
        replace(one, answers=((Answer("en", 1),), *one.answers[1:])),
        replace(one, answers=(one.answers[0] * 2, *one.answers[1:])),
    ]
    assert len({x.text_hash() for x in (one, *others)}) == 6
    assert replace(one, name="other").text_hash() == one.text_hash()
    with pytest.raises(TextError, match=r"unequal numbers of contexts \(4\)"):
        asked(ids=("q0",))


# --- what is shipped (its rows were checked by the script that drew them) -------------------------


def test_tydiqa_whole_holds_its_subset_in_the_public_order(tmp_path: Path) -> None:
    whole, subset = (questions.load_questions(x, "en", "train") for x in ("tydiqa-whole", "tydiqa"))
    assert (len(whole), len(subset)) == (3381, 3000)
    numbers = [int(key.removeprefix("train:")) for key in whole.ids]
    assert numbers == sorted(set(numbers))
    inside = set(subset.ids)
    again = whole.at(i for i, key in enumerate(whole.ids) if key in inside)
    assert (again.ids, again.text_hash()) == (subset.ids, subset.text_hash())
    left_out = {reason: n for reason, n in whole.left_out.items() if n}
    assert left_out == {"cut answer": 12, "in the pretraining text": 2, "quoted in xquad": 1}
    with pytest.raises(TextError, match="shipped alone; read a local copy as source='tydiqa'"):
        questions.load_questions("tydiqa-whole", "en", "train", path=tmp_path)


def test_the_shortest_are_the_same_in_all_languages_and_few_of_a_context() -> None:
    sets, lacking = questions.parallel_questions("xquad", ["en", "zh"], "test", 30, per_context=2)
    assert lacking == {"en": 0, "zh": 0}
    assert sets["en"].ids == sets["zh"].ids
    counts = Counter(sets["en"].contexts)
    assert (len(sets["en"]), max(counts.values())) == (30, 2)
    for options, what in (((0, None), "n"), ((None, 0), "per_context")):
        with pytest.raises(TextError, match=f"{what} is 0"):
            shortest(sets, *options)
