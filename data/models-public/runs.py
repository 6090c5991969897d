"""Long runs of public models, a unit after another, on one thread; each can be stopped anywhere.

    python data/models-public/runs.py --list                # what there is, and how far it is
    python data/models-public/runs.py xnli-en-seed1 ...     # these units, in this order
    python data/models-public/runs.py                       # all that is left
    python data/models-public/runs.py --workers 12          # side by side, on a GPU or many cores

What a unit asks for (`run_units`) is found in the ledger, then in the cache (XLX_CACHE), else it is
computed and kept there; the same command goes on after a stop. Which entries are whose is noted in
``<journals>/asks/<unit>.jsonl`` as they are asked for, by which `make results` puts them into the
ledger; ``<journals>/ended/<unit>`` says that a unit went to its end. A unit that fails says why,
and the next goes on. Units that read the weights of one fine-tuned model stay in one process.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import run_units
from notebooks.run import journals, runner
from run_units import Unit
from xlx.results import checks, paths, settings, store
from xlx.results.ledger import Ledger
from xlx.results.settings import current


class RunsError(ValueError):
    """What keeps units from being run; says what to do."""


def chosen(names: Sequence[str], units: Sequence[Unit]) -> list[Unit]:
    """The units of these names, in this order; without names all. RunsError for an unknown one."""
    known = {unit.name: unit for unit in units}
    if unknown := [name for name in names if name not in known]:
        raise RunsError(f"there is no unit {unknown[0]!r}; there are {', '.join(known)}")
    return [known[name] for name in names or known]


def entries(unit: Unit, folder: Path) -> int:
    """How many results a unit has: those in its journal, and what the ledger has of it."""
    journal, overview = journals.journal(unit.name, folder), Ledger(current().ledger).overview()
    lines = journals.read_journal(journal) if journal.is_file() else []
    asked = overview["notebooks"].map(lambda askers: f"run:{unit.name}" in askers)
    in_ledger = overview.loc[asked.astype(bool), "identity"]
    return len({line["identity"] for line in lines} | {*in_ledger})


def run_unit(unit: Unit, folder: Path) -> bool:
    """Make a unit's calls, which note what they ask for; whether it went well."""
    began, ended = time.monotonic(), folder / "ended" / unit.name
    print(f"{unit.name}: {unit.what} (about {unit.minutes} minutes)", flush=True)
    journal = journals.journal(unit.name, folder).absolute()
    os.environ |= {"XLX_JOURNAL": str(journal.parent), "XLX_NOTEBOOK": unit.name}
    try:
        for call in unit.calls():
            call()
    except (ArithmeticError, LookupError, OSError, RuntimeError, ValueError) as error:
        print(f"{unit.name} failed: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        return False
    ended.parent.mkdir(parents=True, exist_ok=True)
    ended.touch()
    minutes = (time.monotonic() - began) / 60
    n = entries(unit, folder)
    print(f"{unit.name}: {n} entries are there, after {minutes:.0f} minutes", flush=True)
    return True


def chains(units: Sequence[Unit]) -> list[list[str]]:
    """The names of units that one process runs in a row: a unit behind those that it needs."""
    by_first = {}
    for unit in units:
        first = unit.needs if unit.needs in by_first else unit.name
        by_first.setdefault(first, []).append(unit.name)
    return list(by_first.values())


def run_chain(folder: Path, names: Sequence[str]) -> bool:
    """Run units by their names, one after another; whether all went well."""
    with settings.settings(workers=1), runner.stopped_by_sigterm():
        return all([run_unit(unit, folder) for unit in chosen(names, run_units.units())])


def run_all(units: Sequence[Unit], folder: Path, workers: int) -> bool:
    """Run units, in processes of their own where several are asked for; whether all went well."""
    if workers == 1:
        return run_chain(folder, [unit.name for unit in units])
    spawned = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    with ProcessPoolExecutor(workers, mp_context=spawned) as pool:
        return all([*pool.map(partial(run_chain, folder), chains(units))])


def show(units: Sequence[Unit], folder: Path) -> None:
    """Print units: how far they are, minutes, what they are."""
    for unit in units:
        n = entries(unit, folder)
        state = "done" if (folder / "ended" / unit.name).exists() else f"{n} entries" if n else "-"
        print(f"{unit.name:40} {state:18} {unit.minutes:4} min  {unit.what}", flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, 1 (a unit failed), 2 (a wrong call) or 130 (stopped)."""
    parser = argparse.ArgumentParser(prog="python data/models-public/runs.py")
    parser.add_argument("names", nargs="*", metavar="NAME", help="units; none: all of them")
    parser.add_argument("--list", action="store_true", help="how far the units are")
    parser.add_argument(
        "--journals",
        type=Path,
        default=Path(os.environ.get("XLX_RUNS") or paths.BUILD / "runs"),
        help="folder of the journals (XLX_RUNS; build/runs)",
    )
    parser.add_argument("--workers", type=int, default=1, help="processes side by side (1)")
    options = parser.parse_args(argv)
    try:
        checks.whole(options.workers, "--workers", RunsError)
        some = chosen(options.names, run_units.units())
        if options.list:
            show(some, options.journals)
            return 0
        with runner.stopped_by_sigterm(), store.lock(current().cache / "runs.lock"):
            went_well = run_all(some, options.journals, options.workers)
    except RunsError as error:
        print(error, file=sys.stderr)
        return 2
    except store.Locked as holder:
        print(f"units are run by the process {holder}: wait for it, or stop it", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; the same command goes on from here", file=sys.stderr)
        return 130
    return 0 if went_well else 1


if __name__ == "__main__":
    sys.exit(main())
