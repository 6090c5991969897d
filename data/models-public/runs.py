"""Long runs of public models, a unit after another, on one thread; each can be stopped anywhere.

    python data/models-public/runs.py --list                # what there is, and how far it is
    python data/models-public/runs.py xnli-en-seed1 ...     # these units, in this order
    python data/models-public/runs.py                       # all that is left
    python data/models-public/runs.py --note                # journals of what is there, no more

What a unit asks for (`run_units`) is found in the ledger, then in the cache (XLX_CACHE), else it is
computed and kept there; the same command goes on after a stop. Which entries are whose is noted in
``<journals>/asks/<unit>.jsonl``, by which `make results` puts them into the ledger. A unit that
fails says why, and the next goes on.
"""

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import run_units
from run_frozen import Measured
from run_units import Unit

from notebooks.run import journals, runner
from xlx.results import paths, settings, store, work
from xlx.results.ledger import Ask, Ledger
from xlx.results.settings import current
from xlx.subjects.finetuning import state_left


class RunsError(ValueError):
    """What keeps units from being run; says what to do."""


def chosen(names: Sequence[str], units: Sequence[Unit]) -> list[Unit]:
    """The units of these names, in this order; without names all. RunsError for an unknown one."""
    known = {unit.name: unit for unit in units if unit.asked is not None}
    if unknown := [name for name in names if name not in known]:
        raise RunsError(f"there is no unit {unknown[0]!r}; there are {', '.join(known)}")
    return [known[name] for name in names or known]


def there(asks: Sequence[Ask]) -> list[Ask]:
    """Those of the asks that the ledger or the cache can answer; nothing is computed."""
    ledger, cache = Ledger(current().ledger), work.cache()
    return [ask for ask in asks if cache.path(ask).exists() or ledger.get(ask) is not None]


def status(unit: Unit, folder: Path) -> str:
    """ "done", "not begun", or how much of it is there.

    What a unit of frozen states asks for is known when it has asked: of it what is in the ledger
    or in its journal counts, and a file says that it went to its end.
    """
    asked = unit.asked()
    if isinstance(asked, Measured):
        n = note(unit, folder)
        if _ended(unit, folder).exists():
            return "done"
        return f"part: {n}" if n else "not begun"
    asks = asked.asks()
    n = len(there(asks))
    if n == len(asks):
        return "done"
    under_way = any(state_left(job).exists() for job in (*asked.jobs, *(j for j, _ in asked.grids)))
    return f"part: {n} of {len(asks)}" if n or under_way else "not begun"


def note(unit: Unit, folder: Path) -> int:
    """Write the journal of a unit: what of its asks is there. How many they are.

    A unit of frozen states writes its own while it asks; here its lines are counted, and those that
    the ledger has of it.
    """
    asked = unit.asked()
    if isinstance(asked, Measured):
        journal, overview = journals.journal(unit.name, folder), Ledger(current().ledger).overview()
        lines = journals.read_journal(journal) if journal.is_file() else []
        own = overview["notebooks"].map(lambda askers: f"run:{unit.name}" in askers)
        of_ledger = overview.loc[own.astype(bool), "identity"]
        return len({line["identity"] for line in lines} | {*of_ledger})
    found = there(asked.asks())
    lines = [json.dumps({"kind": x.kind, "identity": x.identity, "from": "run"}) for x in found]
    journals.fresh_journal(unit.name, folder).write_text("".join(f"{x}\n" for x in lines))
    return len(found)


def _ended(unit: Unit, folder: Path) -> Path:
    """The file that says that a unit of frozen states went to its end."""
    return folder / "ended" / unit.name


def _answer(unit: Unit, folder: Path) -> None:
    """Have a unit answered; of frozen states the journal is written as it asks."""
    asked = unit.asked()
    if not isinstance(asked, Measured):
        asked.answer()
        return
    journal = journals.journal(unit.name, folder).absolute()
    journal.parent.mkdir(parents=True, exist_ok=True)
    os.environ |= {"XLX_JOURNAL": str(journal.parent), "XLX_NOTEBOOK": unit.name}
    asked.answer()
    _ended(unit, folder).parent.mkdir(parents=True, exist_ok=True)
    _ended(unit, folder).touch()


def run_unit(unit: Unit, folder: Path) -> bool:
    """Have a unit answered, and its journal written, also on a stop; whether it went well."""
    began = time.monotonic()
    print(f"{unit.name}: {unit.what} (about {unit.minutes} minutes)", flush=True)
    try:
        _answer(unit, folder)
    except (ArithmeticError, LookupError, OSError, RuntimeError, ValueError) as error:
        print(f"{unit.name} failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return False
    except KeyboardInterrupt:
        note(unit, folder)
        raise
    minutes = (time.monotonic() - began) / 60
    n = note(unit, folder)
    print(f"{unit.name}: {n} entries are there, after {minutes:.0f} minutes", flush=True)
    return True


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """No second process at once on this cache. RunsError."""
    try:
        with store.lock(lock):
            yield
    except store.Locked as holder:
        raise RunsError(
            f"units are run by the process {holder} already: wait for it, or stop it"
        ) from None


def show(units: Sequence[Unit], folder: Path) -> None:
    """Print all units: status, minutes, what they are."""
    left = 0
    for unit in units:
        said = "later" if unit.asked is None else status(unit, folder)
        left += unit.minutes * (said != "done")
        print(f"{unit.name:40} {said:18} {unit.minutes:4} min  {unit.what}", flush=True)
    print(f"about {left / 60:.0f} hours are left, on one thread of this machine alone")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, 1 (a unit failed), 2 (a wrong call) or 130 (stopped)."""
    parser = argparse.ArgumentParser(prog="python data/models-public/runs.py")
    parser.add_argument("names", nargs="*", metavar="NAME", help="units; none: all of them")
    parser.add_argument("--list", action="store_true", help="how far the units are")
    parser.add_argument("--note", action="store_true", help="write journals, compute nothing")
    parser.add_argument(
        "--journals", type=Path, default=Path(os.environ.get("XLX_RUNS") or paths.BUILD / "runs"),
        help="folder of the journals (XLX_RUNS; build/runs)",
    )  # fmt: skip
    options = parser.parse_args(argv)
    try:
        with settings.settings(workers=1), runner.stopped_by_sigterm():
            units = run_units.units()
            some = chosen(options.names, units)
            if options.list:
                listed = [unit for unit in units if not options.names or unit in some]
                show(listed, options.journals)
                return 0
            if options.note:
                for unit in some:
                    print(f"{unit.name}: {note(unit, options.journals)} entries")
                return 0
            with _alone(current().cache / "runs.lock"):
                went_well = [run_unit(unit, options.journals) for unit in some]
    except RunsError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0 if all(went_well) else 1


if __name__ == "__main__":
    sys.exit(main())
