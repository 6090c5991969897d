"""The ledger's results from nothing: are they what the repository's code computes?

    python -m notebooks.run.reproduction [--only NAME ...]

``make reproduce`` runs the notebooks, and the units of long runs (``ONLY=run:<unit>``), with an
empty cache and no ledger, and then compares every entry. What it has computed lies in
``cache/from-nothing`` until it is through, so it can be stopped anywhere; the results themselves
stay in ``cache/reproduced`` until the next time. Results of public models whose weights are not on
this machine are taken from the ledger, and not compared.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import pandas as pd

from notebooks.run import gathering, profiles, runner
from notebooks.run.gathering import is_run
from xlx.results import executors, ledger, paths, store, work
from xlx.results.ledger import Cache, Ledger
from xlx.results.settings import current


@dataclass(frozen=True)
class Plan:
    """What to run, and the kinds that are computed (none: all; others come from the ledger).

    ``stems`` are notebooks and then units of long runs, ``run:<unit>``. ``expected`` are the
    entries that should come of it, as `Ledger.overview` has them, ``absent`` those that cannot.
    """

    stems: list[str]
    kinds: list[str]
    expected: pd.DataFrame
    absent: pd.DataFrame


def plan(stored: Ledger, only: Sequence[str] = ()) -> Plan:
    """What to run for the names of notebooks, units (``run:<unit>``) and kinds, or for all.

    GatheringError for a name that is neither, or where the ledger is empty.
    """
    stems, rows = sorted(path.stem for path in paths.NOTEBOOKS.glob("*.ipynb")), stored.overview()
    if rows.empty:
        raise gathering.GatheringError(
            f"{stored.root} holds no results to compare with: `make results` first"
        )
    there = sorted(set(rows["kind"]) - set(stems))
    stems += sorted({asker for askers in rows["notebooks"] for asker in askers if is_run(asker)})
    only = [name.removeprefix("notebooks/").removesuffix(".ipynb") for name in only]
    if unknown := [name for name in only if name not in stems and name not in there]:
        raise gathering.GatheringError(
            f"there is neither a notebook, nor a unit, nor a kind of result {unknown[0]!r} "
            f"(ONLY=...); notebooks and units: {' '.join(stems)}; kinds: {' '.join(there)}"
        )
    chosen_kinds = [name for name in only if name in there]
    chosen = {name for name in only if name in stems} or set(stems)
    if chosen_kinds:
        rows = rows[rows["kind"].isin(chosen_kinds)]
        chosen &= {stem for askers in rows["notebooks"] for stem in askers}
    rows = rows[[not chosen.isdisjoint(askers) for askers in rows["notebooks"]]]
    rows, absent = gathering.computable(rows)
    left = {asker for askers in rows["notebooks"] for asker in askers}
    chosen &= {stem for stem in stems if not is_run(stem)} | left
    return Plan([stem for stem in stems if stem in chosen], chosen_kinds, rows, absent)


def _lend(plan: Plan, stored: Ledger, home: Path) -> None:
    """Give a run from nothing the public models that are here, and results of those that are not.

    What cannot be computed is there as if it had been.
    """
    models = paths.CACHE / "models"
    if models.is_dir() and not (home / "models").exists():
        home.mkdir(parents=True, exist_ok=True)
        (home / "models").symlink_to(models.absolute())
    lent = Cache(home / "reproduction")
    for row in plan.absent.itertuples():
        entry = stored.get(gathering.AskName(row.kind, row.identity))
        lent.put(entry, entry.value, entry.made)


def run_unit(name: str, build: Path) -> None:
    """Have a unit of long runs computed in a process of its own. NotebookFailed where it fails."""
    script, unit = paths.DATA / "models-public" / "runs.py", name.removeprefix(gathering.RUN)
    done = subprocess.run([sys.executable, str(script), unit, "--journals", str(build)])
    if done.returncode:
        raise runner.NotebookFailed(f"{name} failed (status {done.returncode}), as is said above")


def _run_all(plan: Plan, home: Path, build: Path, execute: Callable[..., Path]) -> list[str]:
    """Run notebooks and units; what is to be said of those that failed."""
    environment = {
        "XLX_POLICY": "ignore",
        "XLX_CACHE": str(home.absolute()),
        "XLX_KINDS": " ".join(plan.kinds),
        "XLX_FIGURES": str((build / "figures").absolute()),
        "XLX_WORKERS": str(current().workers or ""),
        "XLX_SCHEDULER": current().scheduler or "",
    }
    failures = []
    with patch.dict(os.environ, environment):
        for number, stem in enumerate(plan.stems, 1):
            try:
                (run_unit if is_run(stem) else execute)(stem, build=build)
            except (runner.NotebookFailed, profiles.NotebookError) as error:
                failures.append(str(error))
            print(f"{stem}: through ({number} of {len(plan.stems)})", flush=True)
    return failures


def reproduce(only: Sequence[str] = (), execute: Callable[..., Path] = runner.execute) -> int:
    """Compute from nothing and compare; 0 where all is within its tolerance, else 1.

    ``execute`` runs a notebook. GatheringError as `plan`, and while another one is at work.
    """
    cache, build = paths.CACHE, paths.BUILD / "reproduction"
    stored, home = Ledger(paths.RESULTS), cache / "from-nothing"
    chosen, known = plan(stored, only), gathering.kinds()
    try:
        with store.lock(cache / "reproduction.lock"):
            if current().scheduler:
                list(executors.run(len, [], alone=True, side_by_side=False))  # does it answer?
            if home.exists():
                print(f"going on with what {profiles.shown(home)} has", flush=True)
            for file in (home / "reproduction").glob("*/*/*.arrow"):  # but for what is stale
                if (table := ledger.read_entries(file)) is not None:
                    head = (table[name][0].as_py() for name in ("kind", "ask"))
                    kind = known.get(work.kind_name(*head))
                if table is None or kind is None or table["code"][0].as_py() != kind.code:
                    file.unlink()
            _lend(chosen, stored, home)
            if failures := _run_all(chosen, home, build, execute):
                again = "not compared: call again when that is put right, and it goes on"
                print(*failures, again, sep="\n", file=sys.stderr)
                return 1
            table, problems = gathering.compare(
                chosen.expected, stored, Cache(home / "reproduction")
            )
            print(table.to_string(index=False, float_format="{:.3g}".format), *problems, sep="\n")
            shutil.rmtree(cache / "reproduced", ignore_errors=True)
            if (home / "reproduction").is_dir():
                (home / "reproduction").replace(cache / "reproduced")
            shutil.rmtree(home, ignore_errors=True)
    except store.Locked as holder:
        raise gathering.GatheringError(
            f"another `make reproduce` is at work (process {holder}): wait for it, or stop it"
        ) from None
    return 1 if problems else 0


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return 0, 1 (something differs or failed), 2 or 130 (stopped)."""
    parser = argparse.ArgumentParser(prog="python -m notebooks.run.reproduction")
    parser.add_argument("--only", nargs="*", default=[], help="notebooks or kinds of result")
    options = parser.parse_args(argv)
    try:
        with runner.stopped_by_sigterm():
            return reproduce(options.only)
    except (gathering.GatheringError, executors.WorkerError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; `make reproduce` goes on from here", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
