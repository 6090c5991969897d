"""Measures × subjects × texts: every measure has every control, and adding one touches nothing."""

import traceback
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.experiment.conftest import corpus, grouped  # noqa: F401
from tests.measures import csls
from xlx import measures
from xlx.experiment import scoring
from xlx.experiment.averages import average
from xlx.experiment.scoring import BagOfSubwords, FunctionSubject, Length, Subject, scored
from xlx.measures import alignment
from xlx.results import work
from xlx.text.parallel import ParallelCorpus

SUBJECTS = [Subject("mini-xlmr"), BagOfSubwords("mini-xlmr"), Length()]


@pytest.fixture
def with_csls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry as it is when a file with CSLS lies among the measures."""
    known = measures.registered() | {measure.name: measure for measure in csls.REGISTERED}
    monkeypatch.setattr(scoring, "registered", lambda: known)


def test_a_new_measure_is_everywhere_and_recomputes_nothing(
    grouped: ParallelCorpus,  # noqa: F811
    with_csls: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = scored(["LD", "MD"], SUBJECTS, [grouped])
    asked: list[list[str]] = []
    compute = scoring._scores

    def counted(subject, text, space, names):
        asked.append(list(names))
        return compute(subject, text, space, names)

    monkeypatch.setattr(scoring, "SCORE", replace_compute(counted))
    after = scored(["LD", "MD", "CSLS"], SUBJECTS, [grouped])
    assert asked == [["CSLS"]] * 3  # of each subject the new one alone
    kept = after[after["task"] != "CSLS"].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, before)
    of_csls = after[after["task"] == "CSLS"]
    assert set(of_csls["model"]) == {"mini-xlmr", scoring.BAG, scoring.LENGTH_ALONE}
    assert (of_csls["low"] <= of_csls["score"]).all()
    assert (of_csls["low"] < of_csls["high"]).any()


def test_a_new_measure_is_asked_of_no_model_whose_weights_are_elsewhere(
    grouped: ParallelCorpus,  # noqa: F811
    with_csls: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Subject("mini-xlmr").fetched
    assert not Subject("./nowhere").fetched
    monkeypatch.setattr(Subject, "fetched", property(lambda _: False))
    names = scoring.reported_measures()
    (scores,) = scoring.subject_scores(["mini-xlmr"], grouped, names, partial=True)
    assert scores.tasks == [name for name in names if name != "CSLS"]
    (whole,) = scoring.subject_scores(["mini-xlmr"], grouped, names)
    assert whole.tasks == names


def replace_compute(compute) -> work.Kind:
    """The kind of scores with another function, under the same name."""
    kind = scoring.SCORE
    changed = object.__new__(work.Kind)
    for name, value in {**vars(kind), "compute": compute}.items():
        object.__setattr__(changed, name, value)
    return changed


def test_a_measure_alone_is_what_it_is_among_others(grouped: ParallelCorpus) -> None:  # noqa: F811
    subject = Subject("mini-xlmr")
    (every,) = scoring.subject_scores([subject], grouped)
    for task in every.tasks:
        (one,) = scoring.subject_scores([subject], grouped, [task])
        np.testing.assert_array_equal(one.scores[task], every.scores[task])
        np.testing.assert_array_equal(average(one, task).error, average(every, task).error)


def test_every_measure_has_every_control(grouped: ParallelCorpus) -> None:  # noqa: F811
    names = list(measures.registered())
    texts = [grouped, *(scoring.shuffled_text(grouped, how) for how in scoring.SHUFFLES)]
    table = scored(names, SUBJECTS, texts, ["raw", "centred"], by=[])
    assert len(table) == len(names) * 3 * 5 * 2
    assert not table["score"].isna().any()
    known = table[table["model"] == "mini-xlmr"].dropna(subset="low")
    assert (known["low"] <= known["score"]).all()


@scoring.cached(documents=True)
def toy_sum(subject: Subject, text: ParallelCorpus, factor: int = 2) -> dict[str, np.ndarray]:
    """A result that is declared in one line."""
    states = subject.read(text).states
    return {"sum": np.array([factor * x.sum() for x in states.values()])}


def test_a_function_is_kept_by_what_it_is_asked(
    grouped: ParallelCorpus,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, length = toy_sum(["mini-xlmr", Length()], grouped, pooling="mean")
    assert length["sum"].shape == model["sum"].shape == (3,)
    (triple,) = toy_sum([Length()], grouped, factor=3)
    np.testing.assert_allclose(triple["sum"], 1.5 * length["sum"])
    monkeypatch.setattr("xlx.subjects.loading.load", None)
    (again,) = toy_sum(["mini-xlmr"], grouped, 2)
    np.testing.assert_array_equal(again["sum"], model["sum"])
    assert work.KINDS["states toy_sum"].version == 1
    with pytest.raises(TypeError):
        toy_sum(["mini-xlmr"], grouped, pooling="cls")


def test_any_function_is_a_subject(grouped: ParallelCorpus) -> None:  # noqa: F811
    """A code of the position: meaning without language."""

    def position(sentences, language):
        return np.eye(len(sentences)) + 0.01

    subject = FunctionSubject("position", function=position)
    table = scored(["LD", "MD"], [subject], [grouped]).set_index("task")["score"]
    assert table.to_dict() == {"LD": 0.5, "MD": 1}  # others are as near in both languages
    with pytest.raises(ValueError, match="position has no vocabulary"):
        scoring.subject_scores([subject], grouped, ["MD, near"])


def test_texts_without_translations_or_languages(grouped: ParallelCorpus) -> None:  # noqa: F811
    wide = replace(
        grouped, sentences={x: tuple(map(str.upper, y)) for x, y in grouped.sentences.items()}
    )
    moved = scoring.shuffled_text(wide, "translations", seed=2)
    assert moved.sentences["de"] == wide.sentences["de"] != moved.sentences["en"]
    assert sorted(moved.sentences["en"]) == sorted(wide.sentences["en"])
    dealt = scoring.shuffled_text(wide, "labels", seed=2)
    for i in range(len(wide)):
        at = [{text.sentences[x][i] for x in wide.languages} for text in (wide, dealt)]
        assert at[0] == at[1]
    assert dealt.sentences != wide.sentences
    table = scored(["MD"], [BagOfSubwords("mini-xlmr")], [wide, moved, dealt])
    scores = table.set_index("text")["score"]
    assert scores[wide.name] > 0.7 > scores[moved.name]


def test_a_wrong_name_is_told(grouped: ParallelCorpus) -> None:  # noqa: F811
    for name, what in {"LX": "measure", "MD, far": "constraint"}.items():
        with pytest.raises(ValueError, match=what):
            scored([name], ["mini-xlmr"], [grouped])


def test_few_calls_lead_from_a_cell_to_the_comparison(
    grouped: ParallelCorpus,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What a reader follows from `scored` to LD's comparison, the ledger's steps aside."""
    chains = []

    def compared(*arguments: object) -> object:
        frames = [x for x in traceback.extract_stack()[:-1] if "/xlx/" in x.filename]
        frames = [x for x in frames if "/results/" not in x.filename]
        chains.append([(Path(x.filename).stem, x.name) for x in frames])
        return compare(*arguments)

    compare = alignment._compared
    monkeypatch.setattr(alignment, "_compared", compared)
    scored(["LD"], [Length()], [grouped])
    print(*chains[0], sep="\n")
    assert len(chains[0]) <= 6
    assert len({module for module, _ in chains[0]}) <= 4


def test_two_functions_of_one_name_are_refused(grouped: ParallelCorpus) -> None:  # noqa: F811
    drawn = [lambda texts, _, k=k: np.eye(len(texts)) + k for k in (0, 1)]
    subjects = [FunctionSubject("z", function=function) for function in drawn]
    with pytest.raises(ValueError, match="two functions are called z"):
        scored(["MD"], subjects, [grouped])
    assert len(scored(["MD"], [subjects[0], subjects[0]], [grouped])) == 2
