"""Units of long runs: their asks are those of the library, and a failure is one unit's."""

import json
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from notebooks.run import journals
from tests import tiny
from xlx.experiment import mexa_scores, transfers
from xlx.experiment.transfers import TransferTask
from xlx.results import paths
from xlx.results.settings import current
from xlx.subjects.finetuning import state_left
from xlx.subjects.jobs import Job, Recipe, Sparing
from xlx.text import parallel
from xlx.text.examples import Examples, only

sys.path.insert(0, str(paths.DATA / "models-public"))
import run_units
import runs
from run_frozen import Measured
from run_units import Asked, Unit

RECIPE = Recipe(
    epochs=2, batch_size=4, learning_rate=1e-3, every=10**9, max_length=48,
    trained_embeddings=False, length_pool=2,
)  # fmt: skip


def pairs(language: str) -> Examples:
    texts = tuple(f"{text} {language}" for text in tiny.SENTENCES)
    labels = np.arange(8) % 2
    return Examples(f"made {language}", language, texts, texts[::-1], labels, ("no", "yes"),
                    tuple("abcdefgh"))  # fmt: skip


SETS = {code: pairs(code) for code in ("en", "de")}


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    model = tiny.save(tmp_path_factory.mktemp("models") / "tiny")
    return Job(str(model), SETS["en"], SETS, RECIPE)


def kept() -> set[str]:
    """The identities of all results in the cache."""
    files = (current().cache / "results").rglob("*.arrow")
    return {file.parent.name + file.stem for file in files}


@pytest.mark.parametrize("part", ["both", "second"])
def test_what_a_unit_asks_for_is_what_is_kept(job: Job, part: str) -> None:
    sets = SETS
    if part == "second":
        sets = {code: only(one, part) for code, one in SETS.items()}
        job = replace(job, train=sets["en"], evaluations=sets)
    asked = Asked([job], [(job, sets)])
    unit, folder = Unit("u", "made", 1, lambda: asked), current().cache
    assert runs.status(unit, folder) == "not begun"
    state_left(job).parent.mkdir(parents=True)
    state_left(job).touch()
    n = 1 + (4 if part == "both" else 2)
    assert runs.status(unit, folder) == f"part: 0 of {n}"
    state_left(job).unlink()
    Asked([job]).answer()
    assert runs.status(unit, folder) == f"part: 1 of {n}"
    asked.answer()
    assert runs.status(unit, folder) == "done"
    assert {ask.identity for ask in asked.asks()} == kept()


def test_a_unit_of_frozen_states_writes_what_it_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XLX_JOURNAL", "XLX_NOTEBOOK"):
        monkeypatch.setenv(name, "")  # and so put back
    text = parallel.load("flores200-100", ["de", "en"]).drop(range(6, 100))
    call = partial(mexa_scores.measure_coverage, "mini-llama", text, alternatives=False)
    unit = Unit("u", "made", 1, lambda: Measured([call]))
    assert runs.status(unit, tmp_path) == "not begun"
    assert runs.run_unit(unit, tmp_path)
    assert runs.status(unit, tmp_path) == "done"
    lines = journals.read_journal(journals.journal("u", tmp_path))
    assert {line["identity"] for line in lines} <= kept()
    assert runs.note(unit, tmp_path) == len(lines) == 2  # the two poolings


def test_runs_of_transfer_are_asked_for_as_the_notebooks_do(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = TransferTask("NLI", SETS, SETS, {"train": {}, "test": {}})
    monkeypatch.setattr(run_units, "igap_task", lambda: task)
    monkeypatch.setattr(run_units, "MODEL", job.model)
    monkeypatch.setattr(run_units, "FITTING", RECIPE)
    (ask,) = Asked([run_units.igap_job(2)], weights=False).asks()
    windows = Sparing(((0.0, 0.025), (0.05, 0.025), (0.1, 0.025), (0.2, 0.025)))
    transfers.transfer_task([job.model], task, ["en"], [RECIPE], [2], sparing=windows)
    assert kept() == {ask.identity}


def test_a_unit_that_fails_says_why_and_the_next_goes_on(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    def lost() -> Asked:
        return Asked([replace(job, model="./nowhere")])

    some = [
        Unit("lost", "a model that is not there", 1, lost),
        Unit("toy", "a model that is there", 1, lambda: Asked([job])),
        Unit("later", "later: nothing yet", 0, None),
    ]
    monkeypatch.setattr(run_units, "units", lambda: some)
    told = ["--journals", str(tmp_path)]
    assert runs.main(["later"]) == 2
    assert "no unit 'later'; there are lost, toy" in capsys.readouterr().err
    assert runs.main(told) == 1
    assert "lost failed: ModelNotFoundError: there is no model folder" in capsys.readouterr().err
    assert not journals.journal("lost", tmp_path).exists()
    (line,) = journals.read_journal(journals.journal("toy", tmp_path))
    assert {line["identity"]} == kept()
    assert line["kind"] == "finetuning"
    assert runs.main(["toy", *told]) == 0  # found, not computed
    assert runs.main(["toy", "--list"]) == 0
    assert "toy " in (out := capsys.readouterr().out)
    assert "done" in out
    journals.journal("toy", tmp_path).unlink()
    assert runs.main(["toy", "--note", *told]) == 0
    assert json.loads(journals.journal("toy", tmp_path).read_text()) == line


def test_two_at_once_are_refused(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr(run_units, "units", list)
    with runs._alone(current().cache / "runs.lock"):
        assert runs.main([]) == 2
    assert "by the process" in capsys.readouterr().err


def test_units_have_names_of_their_own() -> None:
    units = run_units.units()
    assert len({unit.name for unit in units}) == len(units)
    assert units[0].name == "xnli-en-seed1"
    assert all(unit.minutes <= 200 for unit in units)  # an afternoon
