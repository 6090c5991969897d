"""The ledger's results from nothing: are they what the repository's code computes?

    python -m notebooks.run.reproduction [--only NAME ...]

``make reproduce`` runs the notebooks, and the units of long runs (``ONLY=run:<unit>``), with an
empty cache and no ledger, and then compares every entry. What it has computed lies in
``cache/from-nothing`` until it is through, so it can be stopped anywhere; the results themselves
stay in ``cache/reproduced`` until the next time. Results of public models whose weights are not on
this machine are taken from the ledger, and not compared.
"""

import argparse
import contextlib
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from notebooks.run import profiles, runner
from notebooks.run.gathering import RUN, AskName, GatheringError, is_run, kinds, of_absent_models
from xlx.results import executors, ledger, paths, progress, store
from xlx.results.ledger import Cache, Ledger
from xlx.results.settings import current

#: Seconds that a notebook takes beside its results: imports, worked example, figures.
_BESIDE = 10


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

    def seconds(self) -> dict[str, int]:
        """What each notebook takes; what two ask for is counted with the first that runs."""
        seconds = dict.fromkeys(self.stems, float(_BESIDE))
        for row in self.expected.fillna({"seconds": 0}).itertuples():
            seconds[next(stem for stem in self.stems if stem in row.notebooks)] += row.seconds
        return {stem: round(takes) for stem, takes in seconds.items()}


def plan(of: Ledger, only: Sequence[str] = ()) -> Plan:
    """What to run for the names of notebooks, units (``run:<unit>``) and kinds, or for all.

    GatheringError for a name that is neither, or where the ledger is empty.
    """
    stems = sorted(path.stem for path in paths.NOTEBOOKS.glob("*.ipynb"))
    rows = of.overview()
    if rows.empty:
        raise GatheringError(f"{of.root} holds no results to compare with: `make results` first")
    there = sorted(set(rows["kind"]) - set(stems))
    stems += sorted({asker for askers in rows["notebooks"] for asker in askers if is_run(asker)})
    only = [name.removeprefix("notebooks/").removesuffix(".ipynb") for name in only]
    if unknown := [name for name in only if name not in stems and name not in there]:
        raise GatheringError(
            f"there is neither a notebook, nor a unit, nor a kind of result {unknown[0]!r} "
            f"(ONLY=...); notebooks and units: {' '.join(stems)}; kinds: {' '.join(there)}"
        )
    chosen_kinds = [name for name in only if name in there]
    chosen = {name for name in only if name in stems} or set(stems)
    if chosen_kinds:
        rows = rows[rows["kind"].isin(chosen_kinds)]
        chosen &= {stem for askers in rows["notebooks"] for stem in askers}
    rows = rows[[not chosen.isdisjoint(askers) for askers in rows["notebooks"]]]
    absent = of_absent_models(rows)
    left = {asker for askers in rows[~absent]["notebooks"] for asker in askers}
    chosen &= {stem for stem in stems if not is_run(stem)} | left
    return Plan(
        [stem for stem in stems if stem in chosen], chosen_kinds, rows[~absent], rows[absent]
    )


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """No second reproduction at once. Raises GatheringError."""
    try:
        with store.lock(lock):
            yield
    except store.Locked as holder:
        raise GatheringError(
            f"another `make reproduce` is at work (process {holder}): wait for it, or stop it"
        ) from None


def _drop_stale(root: Path) -> None:
    """Remove from an interrupted run what other code made."""
    known = kinds()
    for file in root.glob("*/*/*.arrow"):
        table = ledger.read_entries(file)
        kind = known.get(file.parent.parent.name)
        if table is None or kind is None or table["code"][0].as_py() != kind.code:
            file.unlink()


def _lend(plan: Plan, of: Ledger, home: Path) -> None:
    """Give a run from nothing the public models that are here, and results of those that are not.

    What cannot be computed is there as if it had been.
    """
    models = paths.CACHE / "models"
    if models.is_dir() and not (home / "models").exists():
        home.mkdir(parents=True, exist_ok=True)
        (home / "models").symlink_to(models.absolute())
    kept = Cache(home / "reproduction")
    for row in plan.absent.itertuples():
        entry = of.get(AskName(row.kind, row.identity))
        kept.put(entry, entry.value, entry.made)
    if len(plan.absent):
        print(
            f"{len(plan.absent)} results of public models are not computed, as their weights are "
            "not on this machine: `make models` fetches them",
            flush=True,
        )


def run_unit(name: str, build: Path) -> None:
    """Have a unit of long runs computed in a process of its own. NotebookFailed where it fails."""
    script = paths.DATA / "models-public" / "runs.py"
    command = [sys.executable, str(script), name.removeprefix(RUN), "--journals", str(build)]
    done = subprocess.run(command)
    if done.returncode:
        raise runner.NotebookFailed(f"{name} failed (status {done.returncode}), as is said above")


def _run_all(plan: Plan, home: Path, build: Path, execute: Callable[..., Path]) -> list[str]:
    """Run notebooks and units under one bar; what is to be said of those that failed."""
    environment = {
        "XLX_POLICY": "ignore", "XLX_CACHE": str(home.absolute()),
        "XLX_KINDS": " ".join(plan.kinds), "XLX_FIGURES": str((build / "figures").absolute()),
        "XLX_WORKERS": str(current().workers or ""), "XLX_SCHEDULER": current().scheduler or "",
    }  # fmt: skip
    failures, seconds = [], plan.seconds()
    total = sum(seconds.values())
    with (
        runner.kernel_variables(environment),
        progress.bar(what="seconds of work", total=total) as bar,
    ):
        for stem in plan.stems:
            try:
                (run_unit if is_run(stem) else execute)(stem, build=build)
            except (runner.NotebookFailed, profiles.NotebookError) as error:
                failures.append(str(error))
            total -= seconds[stem]
            bar.update(seconds[stem])
            if not progress.watched():
                print(f"{stem}: through (about {total} seconds of work are left)", flush=True)
    return failures


def compare(plan: Plan, of: Ledger, cache: Cache) -> tuple[pd.DataFrame, list[str]]:
    """Every expected entry beside the new one.

    A row a kind (entries; equal, within, outside the tolerance, not computed; largest difference,
    tolerance), and a sentence on the worst of each kind that is not as it should be.
    """
    known, rows, said = kinds(), [], []
    for kind, entries in plan.expected.groupby("kind"):
        tolerance = known[kind].tolerance if kind in known else np.nan
        texts = entries.set_index("identity")["ask"]
        differences = {}
        for identity in entries["identity"]:
            name = AskName(kind, identity)
            entry, again = of.get(name), cache.get(name)
            if kind in known and entry is not None and again is not None:
                differences[identity] = known[kind].difference(entry.value, again.value)
        apart = pd.Series(differences, dtype=float)
        outside = apart[~(apart <= tolerance)]
        if len(outside):
            worst = outside.fillna(np.inf).idxmax()
            said.append(
                f"{kind}: {len(outside)} differ by more than {tolerance:.3g}, most of all (by "
                f"{apart[worst]:.3g}) {texts[worst]}"
            )
        if absent := [name for name in entries["identity"] if name not in differences]:
            said.append(
                f"{kind}: {len(absent)} were not asked for, such as {texts[absent[0]]}; "
                "`make results` drops what nobody asks for"
            )
        equal, largest = int((apart == 0).sum()), apart.max(skipna=False)
        within = len(apart) - len(outside) - equal
        counts = len(entries), equal, within, len(outside), len(absent)
        rows.append((kind, *counts, largest, tolerance))
    columns = ["kind", "entries", "equal", "within", "outside", "not computed", "largest"]
    return pd.DataFrame(rows, columns=[*columns, "tolerance"]), said


def reproduce(only: Sequence[str] = (), execute: Callable[..., Path] = runner.execute) -> int:
    """Compute from nothing and compare; 0 where all is within its tolerance, else 1.

    ``execute`` runs a notebook. GatheringError as `plan`, and while another one is at work.
    """
    cache, build = paths.CACHE, paths.BUILD / "reproduction"
    of, home = Ledger(paths.RESULTS), cache / "from-nothing"
    chosen = plan(of, only)
    with _alone(cache / "reproduction.lock"):
        if current().scheduler:
            list(executors.run(len, [], alone=True, side_by_side=False))  # does it answer?
        if home.exists():
            _drop_stale(home / "reproduction")
            print(f"going on with what {profiles.shown(home)} has", flush=True)
        _lend(chosen, of, home)
        if failures := _run_all(chosen, home, build, execute):
            again = "not compared: call again when that is put right, and it goes on"
            print(*failures, again, sep="\n", file=sys.stderr)
            return 1
        table, said = compare(chosen, of, Cache(home / "reproduction"))
        text = "\n".join([table.to_string(index=False, float_format="{:.3g}".format), *said])
        print(text)
        build.mkdir(parents=True, exist_ok=True)
        (build / "table.txt").write_text(text + "\n", encoding="utf-8")
        shutil.rmtree(cache / "reproduced", ignore_errors=True)
        if (home / "reproduction").is_dir():
            (home / "reproduction").replace(cache / "reproduced")
        shutil.rmtree(home, ignore_errors=True)
    return 1 if said else 0


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return 0, 1 (something differs or failed), 2 or 130 (stopped)."""
    parser = argparse.ArgumentParser(prog="python -m notebooks.run.reproduction")
    parser.add_argument("--only", nargs="*", default=[], help="notebooks or kinds of result")
    options = parser.parse_args(argv)
    try:
        with runner.stopped_by_sigterm():
            return reproduce(options.only)
    except (GatheringError, executors.WorkerError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; `make reproduce` goes on from here", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
