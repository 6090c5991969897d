"""An estimate is corrected once, after the first minute, by what was done in it."""

import pytest

from tests import tiny
from xlx.report import course as courses
from xlx.report.course import Course, read_ahead
from xlx.report.estimates import Estimate, duration
from xlx.report.measures import measure_reported, reported_model
from xlx.subjects import states
from xlx.text.parallel import ParallelCorpus


def test_the_rest_takes_as_much_longer_as_the_first_part(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    now = [1000.0]
    monkeypatch.setattr(courses.time, "monotonic", lambda: now[0])
    course = Course(Estimate(400.0, 1, 1), began=1000.0)
    now[0] += 50
    course.correct(20.0)
    assert capsys.readouterr().out == ""  # the minute is not over
    now[0] += 50
    course.correct(40.0)  # 100 seconds where 40 were foreseen: 360 more take 900
    assert "15 minutes more" in capsys.readouterr().out
    now[0] += 50
    course.correct(100.0)
    assert capsys.readouterr().out == ""  # once is enough


def test_what_was_read_is_not_read_again(
    tmp_path, corpus: ParallelCorpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = reported_model(str(tiny.save(tmp_path / "own")))
    read_ahead(model, corpus, None, Course(Estimate(1, 1, 1, {model.label: 1.0})))

    def unwanted(*_: object) -> None:
        raise AssertionError("a model reads what it has read")

    monkeypatch.setattr(states, "hidden_states", unwanted)
    measured = measure_reported(model, corpus, "en")
    assert measured.raw.scores.n_sentences == len(corpus)


@pytest.mark.parametrize(
    ("seconds", "said"), [(40, "40 seconds"), (720, "12 minutes"), (12_600, "3.5 hours")]
)
def test_times_are_said_in_words(seconds: float, said: str) -> None:
    assert duration(seconds) == said
