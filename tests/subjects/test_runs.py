"""Units of long runs: their asks are those of the library, and a failure is one unit's."""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from notebooks.run import journals
from tests import tiny
from tests.text.made import spoken
from xlx.experiment import mexa_scores, transfers
from xlx.experiment.transfers import TransferTask
from xlx.results import paths, store
from xlx.results.settings import current
from xlx.subjects import finetuning, jobs
from xlx.subjects.jobs import Job, Recipe, Sparing
from xlx.text import parallel

sys.path.insert(0, str(paths.DATA / "models-public"))
import run_units
import runs
from run_units import Unit, ask_all, learn

RECIPE = Recipe(
    epochs=2,
    batch_size=4,
    learning_rate=1e-3,
    every=10**9,
    max_length=48,
    trained_embeddings=False,
    length_pool=2,
)


SETS = {code: spoken(code, pairs=True) for code in ("en", "de")}


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("XLX_JOURNAL", "XLX_NOTEBOOK"):
        monkeypatch.setenv(name, "")  # and so put back


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    model = tiny.save(tmp_path_factory.mktemp("models") / "tiny")
    return Job(str(model), SETS["en"], SETS, RECIPE)


def kept() -> set[str]:
    """The identities of all results in the cache."""
    files = (current().cache / "results").rglob("*.arrow")
    return {file.parent.name + file.stem for file in files}


def test_a_unit_notes_all_that_it_asks_for(job: Job, tmp_path: Path, capsys) -> None:
    text = parallel.load("flores200-100", ["de", "en"]).drop(range(6, 100))
    call = partial(mexa_scores.measure_coverage, "mini-llama", text)
    unit = Unit("u", "made", 1, lambda: [learn(job), ask_all(job, SETS), call])
    runs.show([unit], tmp_path)
    assert runs.run_unit(unit, tmp_path)
    assert capsys.readouterr().out.split()[:2] == ["u", "-"]
    lines = journals.read_journal(journals.journal("u", tmp_path))
    assert len(lines) == runs.entries(unit, tmp_path) == 1 + 4 + 2  # the two poolings
    assert {line["identity"] for line in lines} <= kept()


def test_runs_of_transfer_are_asked_for_as_the_notebooks_do(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = TransferTask("NLI", SETS, SETS, {"train": {}, "test": {}})
    monkeypatch.setattr(run_units, "igap_task", lambda: task)
    monkeypatch.setattr(run_units, "FITTING", RECIPE)
    ask = finetuning.RUN.ask(jobs.run_about(run_units.igap_job("en", 2, job.model)))
    windows = Sparing(tuple((x, 0.025) for x in (0.0, 0.05, 0.1, 0.2)), logits=False)
    transfers.transfer_task([job.model], task, ["en"], [RECIPE], [2], sparing=windows)
    assert kept() == {ask.identity}


def test_a_unit_that_fails_says_why_and_the_next_goes_on(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    some = [
        Unit("lost", "made", 1, lambda: [learn(replace(job, model="./nowhere"))]),
        Unit("toy", "made", 1, lambda: [learn(replace(job, seed=5))]),
    ]
    monkeypatch.setattr(run_units, "units", lambda: some)
    told = ["--journals", str(tmp_path)]
    assert runs.main(["later"]) == 2
    assert "no unit 'later'; there are lost, toy" in capsys.readouterr().err
    with store.lock(current().cache / "runs.lock"):
        assert runs.main([]) == 2
    assert "by the process" in capsys.readouterr().err
    assert runs.main(told) == 1
    assert "lost failed: ModelNotFoundError: there is no model folder" in capsys.readouterr().err
    assert not journals.journal("lost", tmp_path).exists()
    (line,) = journals.read_journal(journals.journal("toy", tmp_path))
    assert ({line["identity"]}, line["kind"]) == (kept(), "finetuning")
    assert runs.main(["--list", *told]) == 0
    lost, toy = capsys.readouterr().out.splitlines()[-2:]
    assert (lost.split()[:2], toy.split()[:2]) == (["lost", "-"], ["toy", "done"])


@pytest.mark.slow
def test_units_side_by_side_note_what_each_asks_for(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    some = ["verses-all-MiniLM-L6-v2", "xnli-en-seed1", "xnli-en-seed1-grid"]
    assert runs.chains(runs.chosen(some, run_units.units())) == [some[:1], some[1:]]
    lost = runs.chosen([some[0], "topics-all-MiniLM-L6-v2"], run_units.units())
    with monkeypatch.context() as other:
        other.setenv("XLX_POLICY", "ignore")  # the ledger has what they ask for
        assert not runs.run_all(lost, tmp_path, 2)  # no weights of it are here
    said = capfd.readouterr().err
    assert [said.count(f"{x.name} failed: ModelNotFoundError") for x in lost] == [1, 1]
    same = [Unit(name, "made", 1, lambda: [learn(job)]) for name in ("a", "b")]
    assert all([runs.run_unit(unit, tmp_path) for unit in same])
    first, second = (journals.read_journal(journals.journal(x, tmp_path)) for x in "ab")
    assert [x["identity"] for x in first] == [x["identity"] for x in second]


def test_units_have_names_of_their_own() -> None:
    units = run_units.units()
    assert len({unit.name for unit in units}) == len(units)
    assert units[0].name == "xnli-en-seed1"
    assert all(unit.minutes <= 250 for unit in units)  # and each goes on after a stop
