"""What the audit draws, and each fault that it has to name, on a toy ledger."""

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from notebooks.run import audit, gathering, journals
from tests.results.test_reproduction import MADE, STEMS, House
from xlx.results import ledger, work
from xlx.results.ledger import Cache, Entry
from xlx.subjects import identity


class Audited(House):
    """Two notebooks that were tested: each took all from the ledger, a sample was compared."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.tested = root / "test"
        audit.write_sample(self.tested / "sample", self.results)
        sampled = self.sampled()
        for stem in STEMS:
            journals.fresh_journal(stem, self.tested)
        for entry in self.entries():
            for stem in entry.notebooks:
                self.note(stem, entry, **{"from": "ledger"})
            if entry.identity in sampled:
                self.compute(entry)

    def sampled(self) -> set[str]:
        text = (self.tested / "sample").read_text(encoding="utf-8")
        return {line.split()[0] for line in text.splitlines()}

    def compute(self, entry: Entry, by: float = 0.0) -> None:
        """Leave a result that was computed again."""
        value = {name: array + by for name, array in entry.value.items()}
        Cache(self.tested / work.COMPUTED).put(entry, value, entry.made)

    def note(self, stem: str, entry: Entry, **more: object) -> None:
        line = {"kind": entry.kind, "identity": entry.identity, **more}
        with journals.journal(stem, self.tested).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def wrong(self) -> list[str]:
        return audit.findings(self.results, self.tested, STEMS)[1]


@pytest.fixture(autouse=True)
def toy_kinds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "kinds", lambda: work.KINDS)  # imports no other module


@pytest.fixture
def audited(toy_kinds: None, tmp_path: Path) -> Audited:
    return Audited(tmp_path)


def torn(audited: Audited, file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-200])


def of_another_format(audited: Audited, file: Path) -> None:
    table = ledger.read_entries(file)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ledger, "FORMAT", 99)
        ledger.write_entries(file, table)
    (audited.results / ledger.SHARDS).unlink()


def stale(audited: Audited, file: Path) -> None:
    def old(entry: Entry) -> Entry:
        counted = entry.kind == "toy-counted"
        return replace(entry, made=MADE | {"code": "old"}) if counted else entry

    audited.put(*map(old, audited.entries()))


def orphan(audited: Audited, file: Path) -> None:
    first, *others = audited.entries()
    audited.put(first, *others, replace(first, identity="0" * 64, text="an old one"))


def missing(audited: Audited, file: Path) -> None:
    _, *others = audited.entries()
    audited.put(*others)


def different(audited: Audited, file: Path) -> None:
    audited.compute(next(audited.entries()), 0.5)


def not_a_number(audited: Audited, file: Path) -> None:
    audited.compute(next(audited.entries()), float("nan"))


def not_compared(audited: Audited, file: Path) -> None:
    shutil.rmtree(audited.tested / work.COMPUTED)


def not_sampled(audited: Audited, file: Path) -> None:
    (audited.tested / "sample").unlink()


def not_tested(audited: Audited, file: Path) -> None:
    journals.journal("mexa-1-b", audited.tested).unlink()


def unknown(audited: Audited, file: Path) -> None:
    audited.put(*(replace(e, kind="toy-none") for e in audited.entries() if e.kind[4] == "c"))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (torn, "is not used: it"),
        (of_another_format, "it has the format 99, and this version reads 1"),
        (stale, "6 of 6 results of the kind 'toy-counted' were made by other code"),
        (orphan, "1 results of the kind 'toy-counted' are asked for by no notebook, such as an ol"),
        (missing, "abx-1-a asks for 1 results of the kind 'toy-counted' that the ledger lacks"),
        (different, r"toy-counted: 1 differ by more than 1e-06 .* \(by 0\.5\) .\"number\": 0"),
        (not_a_number, "most of all .by inf"),
        (not_compared, "toy-counted: 6 were not computed again, such as"),
        (not_sampled, "there is no sample .* draws one"),
        (not_tested, "mexa-1-b was not tested"),
        (unknown, "a kind 'toy-none' that the code does not know"),
    ],
)
def test_each_fault_is_named_in_one_sentence(audited: Audited, fault, message: str) -> None:
    (file,) = (audited.results / "abx" / "toy-counted").glob("*")
    fault(audited, file)
    wrong = audited.wrong()
    assert pd.Series(wrong).str.contains(message).any(), wrong
    assert not any("\n" in sentence for sentence in wrong)


# --- the sample -----------------------------------------------------------------------------------


def overview(device: str = "cpu", **seconds: list[float]) -> pd.DataFrame:
    """Kind → seconds of its entries."""
    rows = [
        {"kind": kind, "identity": f"{kind}-{i}", "seconds": own, "device": device}
        for kind, several in seconds.items()
        for i, own in enumerate(several)
    ]
    return pd.DataFrame(rows)


def test_the_sample_has_every_kind_and_fits() -> None:
    rows = overview(quick=[0.01] * 1000, middle=[9.0] * 50, slow=[50.0, 45.0], long=[900.0])
    drawn = audit.draw(rows, "hash", "", 120)
    counts = drawn["kind"].value_counts()
    assert drawn["seconds"].sum() <= 120
    assert counts["slow"] == 1
    assert counts["quick"] == 1000
    assert counts["middle"] >= 3
    assert "long" not in counts
    assert drawn["identity"].is_unique
    assert audit.draw(overview("NVIDIA H200", slow=[16.0, 50.0]), "hash", "", 120).empty


def test_long_runs_are_no_orphans_and_what_cannot_be_computed_is_not_drawn(
    audited: Audited, capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathering, "absent_models", lambda: {"f" * 64: "far"})
    unit = audited.of_unit(7)
    away = replace(audited.of_unit(9, "f" * 64), notebooks=("abx-1-a", "run:toy-seed1"))
    audited.put(*audited.entries(), unit, away)
    audited.note("abx-1-a", away, **{"from": "ledger"})
    assert audited.wrong() == []
    drawn = audit.write_sample(audited.tested / "sample", audited.results)
    assert len(drawn) == 12
    assert not {unit.identity, away.identity} & set(drawn["identity"])
    assert "1 results of public models are not computed" in capsys.readouterr().out


def test_absent_models_and_their_twins_are_known_by_their_fingerprints() -> None:
    absent = gathering.absent_models()  # the cache of a test is empty
    assert set(absent.values()) == set(identity.public_models())
    model = identity.public_models()["multilingual-e5-small"]
    twin = hashlib.sha256(f"{model.fingerprint} untrained 2\n".encode()).hexdigest()
    assert absent[model.fingerprint] == absent[twin] == model.name
    model.folder.mkdir(parents=True)
    (model.folder / "config.json").touch()
    assert model.name not in gathering.absent_models().values()
