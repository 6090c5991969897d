"""The task of negation: labels by words, classes alike in length, and nothing on both sides."""

import numpy as np
import pytest

from xlx.experiment import transfers
from xlx.results.paths import DATA
from xlx.text import negation, parallel
from xlx.text.files import TextError, letters, tsv
from xlx.text.parallel import ParallelCorpus

CODES = ("en", "de", "ja")


@pytest.fixture(scope="module")
def task() -> transfers.TransferTask:
    return transfers.labelled_task("negation", CODES, n_train=40, n_test=20)


def test_words_decide() -> None:
    said = {
        "He is not here.": 1,
        "NO man knoweth.": 1,
        "They didn’t go; it can't be.": 1,
        "Neither do I.": 1,
        "It cannot be.": 1,
        "A knot, a note and a nose.": 0,
        "They went without him.": -1,
        "Unless ye repent.": -1,
        "Not without him.": 1,
        "": 0,
    }
    assert negation.negated([*said]).tolist() == [*said.values()]


def sentence(length: int, negated: bool) -> str:
    return ("not " if negated else "yes ") + "x" * (length - 4)


def test_to_each_sentence_one_of_like_length_is_chosen() -> None:
    lengths = [
        (30, True),
        (90, True),
        (200, True),
        (31, False),
        (60, False),
        (95, False),
        (201, False),
        (19, True),
        (241, False),
    ]
    english = [sentence(*each) for each in lengths]
    chosen, labels = negation.matched(english, None, seed=1)
    assert chosen.tolist() == [0, 1, 2, 3, 5, 6]
    assert labels.tolist() == [1, 1, 1, 0, 0, 0]
    # of the same book: 60 characters are too few instead of 90, and 80 are not
    where = ["b", "a", "b", "b", "a", "b", "b", "b", "b"]
    assert negation.matched(english, None, 1, where)[0].tolist() == [0, 1, 2, 3, 5, 6]
    near = [*english[:4], sentence(80, False), *english[5:]]
    assert negation.matched(near, None, 1, where)[0].tolist() == [0, 1, 2, 3, 4, 6]
    # among equals the draw decides, not the order
    equal = [sentence(50, i == 0) for i in range(40)]
    assert len({negation.matched(equal, 2, seed)[0][1] for seed in range(8)}) > 4
    for n in (3, 8, 0):
        with pytest.raises(TextError):
            negation.matched(english, n, 1)


@pytest.mark.slow
def test_the_task_is_the_same_in_all_languages_and_has_nothing_twice(
    task: transfers.TransferTask,
) -> None:
    texts = [name.partition(":")[0] for name in task.test["en"].ids]
    assert {text: texts.count(text) for text in texts} == dict.fromkeys(negation.UNREAD, 20)
    for part, sets in (("train", task.train), ("test", task.test)):
        first = sets["en"]
        assert (first.labels == negation.negated(first.first)).all(), part
        assert first.labels.mean() == 0.5
        sizes = [np.log(first.lengths[first.labels == side]).mean() for side in (0, 1)]
        assert sizes[0] == pytest.approx(sizes[1], abs=0.02)
        for code in CODES:
            assert sets[code].ids == first.ids
            assert (sets[code].labels == first.labels).all()
    for code in CODES:
        assert not {*map(letters, task.train[code].first)} & {*map(letters, task.test[code].first)}
    corpus = parallel.load("new-testament-held-out", CODES)
    verse = dict(zip(corpus.ids, corpus.sentences["ja"], strict=True))
    name, text = task.test["ja"].ids[0], task.test["ja"].first[0]
    assert text == verse[name.partition(":")[2]]
    fewer, _ = negation.parts(("de",), 40, 20, 1)
    assert fewer["de"].first == task.train["de"].first


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(TextError, match=r"no negation in .zh.: choose cs, da"):
        negation.parts(("en", "zh"), 40, 20, 1)


def test_a_sentence_on_both_sides_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(negation, "UNREAD", (negation.LEARNT,))
    with pytest.raises(TextError, match="is to learn from and to test on"):
        negation.parts(("en",), 40, None, 1)


def test_labels_were_read_of_what_is_shipped() -> None:
    read = tsv((DATA / "negation" / "read.tsv").read_bytes(), "read.tsv").set_index("id")
    assert (len(read), read["label"].tolist().count("1")) == (200, 101)
    for name, rows in read.groupby(read.index.str.partition(":").get_level_values(0)):
        corpus: ParallelCorpus = parallel.load(name, ["en"])
        english = dict(zip(corpus.ids, corpus.sentences["en"], strict=True))
        labels = negation.negated([english[x.partition(":")[2]] for x in rows.index])
        assert labels.tolist() == rows["label"].astype(int).tolist()
    assert (read["english"] == read["label"]).sum() == 198
    assert (read["translation"] == read["label"]).sum() == 193
