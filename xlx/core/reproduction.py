"""The ledger's results from nothing: are they what the repository's code computes?

    python -m xlx.core.reproduction [--only NAME ...]

``make reproduce`` runs the notebooks with an empty cache and no ledger, and then compares every
entry. What it has computed lies in ``cache/from-nothing`` until it is through, so it can be stopped
anywhere; the results themselves stay in ``cache/reproduced`` until the next time.
"""

import argparse
import contextlib
import ctypes
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from xlx.core import executors, journals, ledger, needs, paths, profiles, progress, run
from xlx.core.gathering import AskName, GatheringError, kinds
from xlx.core.ledger import Cache, Ledger
from xlx.core.settings import current

#: Seconds that a notebook takes beside its results: imports, worked example, figures.
_BESIDE = 10
#: Notebooks at once where a cluster computes; else each has all cores.
_ON_CLUSTER = 4


@dataclass(frozen=True)
class Plan:
    """The notebooks to run, the kinds that are computed (none: all; others come from the ledger).

    And what should come of it: the entries ``expected``, as `Ledger.overview` has them.
    """

    stems: list[str]
    kinds: list[str]
    expected: pd.DataFrame

    def names(self, stem: str | None = None) -> list[AskName]:
        """The expected entries, or those that a notebook asks for."""
        rows = self.expected.itertuples()
        return [AskName(x.kind, x.identity) for x in rows if stem is None or stem in x.notebooks]


def plan(of: Ledger, only: Sequence[str] = (), folder: Path = paths.NOTEBOOKS) -> Plan:
    """What to run for the names of notebooks and kinds, or for all.

    GatheringError for a name that is neither, or where the ledger is empty.
    """
    stems = sorted(path.stem for path in folder.glob("*.ipynb"))
    rows = of.overview()
    if rows.empty:
        raise GatheringError(f"{of.root} holds no results to compare with: `make results` first")
    there = sorted(set(rows["kind"]) - set(stems))
    only = [name.removeprefix("notebooks/").removesuffix(".ipynb") for name in only]
    if unknown := [name for name in only if name not in stems and name not in there]:
        raise GatheringError(
            f"there is neither a notebook nor a kind of result {unknown[0]!r} (ONLY=...); "
            f"notebooks: {' '.join(stems)}; kinds: {' '.join(there)}"
        )
    chosen_kinds = [name for name in only if name in there]
    chosen = {name for name in only if name in stems} or set(stems)
    if chosen_kinds:
        rows = rows[rows["kind"].isin(chosen_kinds)]
        chosen &= {stem for askers in rows["notebooks"] for stem in askers}
    rows = rows[[not chosen.isdisjoint(askers) for askers in rows["notebooks"]]]
    return Plan([stem for stem in stems if stem in chosen], chosen_kinds, rows)


@contextlib.contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """No second reproduction at once; the lock ends with the process, however that ends."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.seek(0)
            raise GatheringError(
                f"another `make reproduce` is at work (process {file.read().strip() or '?'}): wait "
                "for it, or stop it"
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _drop_stale(root: Path) -> None:
    """Remove from an interrupted run what other code made."""
    known = kinds()
    for file in root.glob("*/*/*.arrow"):
        table = ledger.read_entries(file)
        kind = known.get(file.parent.parent.name)
        if table is None or kind is None or table["code"][0].as_py() != kind.code:
            file.unlink()


def _finished(stem: str, build: Path, names: Iterable[AskName], cache: Cache, folder: Path) -> bool:
    """Whether an interrupted run was through with a notebook, as it is now."""
    notebook, done = folder / f"{stem}.ipynb", build / "mini" / f"{stem}.ipynb"
    if not done.is_file():
        return False
    sources = [notebook, *(paths.ROOT / name for name in needs.modules(notebook))]
    newest = max(source.stat().st_mtime for source in sources)
    return done.stat().st_mtime > newest and all(cache.path(name).is_file() for name in names)


def _with_parent() -> None:
    """In a child: end when the parent is killed (Linux; elsewhere the child ends by itself)."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)


class _Course:
    """How far the notebooks are, by the seconds that their results took for the ledger."""

    def __init__(self, plan: Plan, cache: Cache, done: Iterable[str]) -> None:
        seconds = plan.expected.set_index("identity")["seconds"].fillna(0).clip(lower=0.02)
        self.weights = seconds.to_dict()
        self.total = round(sum(self.weights.values()) + _BESIDE * len(plan.stems))
        self.seen = {name.identity for name in plan.names() if cache.path(name).is_file()}
        self.done = set(done)

    def read(self, journal_files: Iterable[Path]) -> int:
        """Where it is now, with what the notebooks under way have noted."""
        for path in filter(Path.is_file, journal_files):
            self.seen.update(line.get("identity", "") for line in journals.read_journal(path))
        seconds = sum(self.weights.get(identity, 0) for identity in self.seen)
        return round(seconds + _BESIDE * len(self.done))


def _run_all(plan: Plan, home: Path, build: Path, folder: Path, start: Sequence[str]) -> list[str]:
    """Run the notebooks under one bar; what is to be said of those that failed."""
    cache = Cache(home / "reproduction")
    done = [stem for stem in plan.stems if _finished(stem, build, plan.names(stem), cache, folder)]
    course, failures = _Course(plan, cache, done), []
    waiting = [stem for stem in plan.stems if stem not in done]
    running: dict[str, subprocess.Popen] = {}
    environment = {
        **os.environ, "XLX_POLICY": "ignore", "XLX_CACHE": str(home.absolute()),
        "XLX_KINDS": " ".join(plan.kinds), "XLX_FIGURES": str((build / "figures").absolute()),
        "XLX_WORKERS": str(current().workers or ""), "XLX_SCHEDULER": current().scheduler or "",
    }  # fmt: skip
    logs = {stem: build / "logs" / f"{stem}.txt" for stem in plan.stems}
    (build / "logs").mkdir(parents=True, exist_ok=True)
    with progress.bar(what="seconds of work", total=course.total) as bar:
        # what is there already says nothing of how fast this machine is
        bar.initial = bar.n = course.read([])
        bar.smoothing = 0
        try:
            while waiting or running:
                while waiting and len(running) < (_ON_CLUSTER if current().scheduler else 1):
                    stem = waiting.pop(0)
                    with logs[stem].open("wb") as log:
                        running[stem] = subprocess.Popen(
                            [*start, stem, "--build", str(build)], cwd=paths.ROOT, stdout=log,
                            stderr=subprocess.STDOUT, env=environment, preexec_fn=_with_parent,
                        )  # fmt: skip
                time.sleep(0.2)
                now = course.read(journals.journal(stem, build / "mini") for stem in running)
                for stem in [s for s, process in running.items() if process.poll() is not None]:
                    if running.pop(stem).returncode:
                        log = logs[stem].read_text(encoding="utf-8").strip()
                        failures.append((log.splitlines() or [f"{stem} failed"])[-1])
                    course.done.add(stem)
                    now = course.read([journals.journal(stem, build / "mini")])
                    if not progress.watched():
                        share = 100 * now // max(course.total, 1)
                        print(f"{stem}: through ({share} % of the work)", flush=True)
                bar.update(max(now - bar.n, 0))
        finally:
            for process in running.values():
                process.terminate()
            for process in running.values():
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(30)
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


def reproduce(
    only: Sequence[str] = (),
    *,
    root: Path = paths.RESULTS,
    cache: Path = paths.CACHE,
    build: Path = paths.BUILD / "reproduction",
    folder: Path = paths.NOTEBOOKS,
    start: Sequence[str] = (sys.executable, "-m", "xlx.core.run"),
) -> int:
    """Compute from nothing and compare; 0 where all is within its tolerance, else 1.

    ``start`` is the command that runs a notebook. GatheringError as `plan`, and while another
    one is at work.
    """
    of, home = Ledger(root), cache / "from-nothing"
    chosen = plan(of, only, folder)
    with _alone(cache / "reproduction.lock"):
        if current().scheduler:
            list(executors.run(len, [], alone=True, side_by_side=False))  # does it answer?
        if home.exists():
            _drop_stale(home / "reproduction")
            print(f"going on with what {profiles.shown(home)} has", flush=True)
        else:
            shutil.rmtree(build, ignore_errors=True)
        if failures := _run_all(chosen, home, build, folder, start):
            print("\n".join(failures), file=sys.stderr)
            print(
                "not compared: call again when that is put right, and it goes on", file=sys.stderr
            )
            return 1
        table, said = compare(chosen, of, Cache(home / "reproduction"))
        text = "\n".join([table.to_string(index=False, float_format="{:.3g}".format), *said])
        print(text)
        (build / "table.txt").write_text(text + "\n", encoding="utf-8")
        shutil.rmtree(cache / "reproduced", ignore_errors=True)
        if (home / "reproduction").is_dir():
            (home / "reproduction").replace(cache / "reproduced")
        shutil.rmtree(home, ignore_errors=True)
    return 1 if said else 0


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return 0, 1 (something differs or failed), 2 or 130 (stopped)."""
    parser = argparse.ArgumentParser(prog="python -m xlx.core.reproduction")
    parser.add_argument("--only", nargs="*", default=[], help="notebooks or kinds of result")
    options = parser.parse_args(argv)
    try:
        with run.stopped_by_sigterm():
            return reproduce(options.only)
    except (GatheringError, executors.WorkerError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; `make reproduce` goes on from here", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
