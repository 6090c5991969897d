"""What is said of results that are still to come."""

import io
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from xlx.results import forecasts
from xlx.results.forecasts import Forecast, forecast_file, shown_lines
from xlx.results.settings import current


class Clock:
    """A time that is told to go on."""

    now = 10.0**9

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clock:
    monkeypatch.setenv("XLX_JOURNAL", str(tmp_path))
    monkeypatch.setenv("XLX_NOTEBOOK", "abx-1-one")
    clock = Clock()
    monkeypatch.setattr(forecasts, "time", clock)
    return clock


def said() -> list[str]:
    return forecast_file().read_text(encoding="utf-8").splitlines()


def test_hours_are_those_of_a_result_times_those_left(clock: Clock) -> None:
    forecast = Forecast("fine-tuning", 9)
    assert said() == ["fine-tuning: 9 to be computed"]
    for _ in range(9):
        clock.now += 1800
        forecast.update()
    assert said()[1] == "fine-tuning: 1 of 9 after 30 min, about 4.0 h left"
    assert said()[2].startswith("fine-tuning: 2 of 9 after 60 min, about 3.5 h left")
    assert len(said()) == 9  # each after more than ten minutes; of the last nothing is left


def test_what_is_quick_is_not_worth_a_word(clock: Clock) -> None:
    forecast = Forecast("asking", 100)
    for _ in range(100):
        clock.now += 0.1
        forecast.update()
    assert said() == ["asking: 100 to be computed"]


def test_disk_is_what_the_cache_has_grown_by(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    forecast = Forecast("fine-tuning", 11)
    clock.now = time.time()  # files have real times
    forecast.began = clock.now - 100
    for name in ("finetuned/a", "huggingface/b"):  # what is downloaded comes once
        file = current().cache / name
        file.parent.mkdir(parents=True)
        with file.open("wb") as opened:
            opened.truncate(3 * 10**8)
    monkeypatch.setattr(forecasts.shutil, "disk_usage", lambda _: SimpleNamespace(free=2 * 10**9))
    forecast.update()
    assert said()[-1].endswith(
        "3.0 GB more in the cache (2.0 GB free: too few, set XLX_CACHE to another disk)"
    )


def test_lines_are_shown_as_they_come(tmp_path: Path) -> None:
    file, shown = tmp_path / "lines.txt", io.StringIO()
    file.write_text("of the run before\n", encoding="utf-8")
    with shown_lines(file, shown):
        file.write_text("one\n", encoding="utf-8")
        until = time.monotonic() + 20
        while not shown.getvalue() and time.monotonic() < until:
            time.sleep(0.05)
        assert shown.getvalue() == "one\n"
        with file.open("a", encoding="utf-8") as more:
            more.write("two\n")
    assert shown.getvalue() == "one\ntwo\n"


def test_outside_of_a_run_nothing_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XLX_JOURNAL", raising=False)
    forecast = Forecast("asking", 1)
    forecast.update()
    assert forecast.file is None
