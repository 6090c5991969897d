"""Results into the ledger, and the ledger's results from nothing.

    python -m xlx.reproduction results [--restamp]
    python -m xlx.reproduction reproduce [--only NAME ...] [--workers N] [--scheduler ADDRESS]

``make results`` writes into ``data/results`` what the notebooks asked for in their last run, and
nothing else. ``make reproduce`` runs them with an empty cache and no ledger, and then compares
every entry. What it has computed lies in ``cache/from-nothing`` until it is through, so it can be
stopped anywhere; the results themselves stay in ``cache/reproduced`` until the next time.
"""

import argparse
import contextlib
import ctypes
import fcntl
import importlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from xlx import executors, ledger, needs, paths, progress, run, work
from xlx.ledger import Cache, Entry, Ledger
from xlx.settings import current

#: Seconds that a notebook takes beside its results: imports, worked example, figures.
_BESIDE = 10
#: Notebooks at once where a cluster computes; else each has all cores.
_ON_CLUSTER = 4


class ReproductionError(ValueError):
    """What keeps results from being gathered or reproduced, and what to do."""


@dataclass(frozen=True)
class Name:
    """An ask of which only the name is known: finds an entry as the ask itself does."""

    kind: str
    identity: str


def kinds() -> dict[str, work.Kind]:
    """All kinds of results: imports the modules that name one."""
    for file in sorted((paths.ROOT / "xlx").glob("*.py")):
        if "work.Kind(" in file.read_text(encoding="utf-8") and file.stem != "work":
            importlib.import_module(f"xlx.{file.stem}")
    return work.KINDS


# --- into the ledger ------------------------------------------------------------------------------


def asked(build: Path, stems: Iterable[str]) -> dict[Name, list[str]]:
    """What notebooks asked for in their last run → the notebooks, sorted.

    ReproductionError for a notebook that was not run to its end.
    """
    found: dict[Name, list[str]] = {}
    for stem in sorted(stems):
        journal = run.journal(stem, build)
        if not ((build / f"{stem}.ipynb").is_file() and journal.is_file()):
            raise ReproductionError(
                f"nobody knows what {stem} asks for: run it first, `make figures ONLY={stem}`"
            )
        for line in run.read_journal(journal):
            if "from" in line:
                stems_of = found.setdefault(Name(line["kind"], line["identity"]), [])
                if stem not in stems_of:
                    stems_of.append(stem)
    return found


def gather(
    wanted: dict[Name, list[str]], of: Ledger, cache: Cache, *, restamp: bool = False
) -> list[Entry]:
    """The entries of names, from ledger or cache, with the notebooks that ask for them.

    ``restamp``: as made by today's code, where it differs under the same version.
    """
    code = {name: kind.code for name, kind in kinds().items()} if restamp else {}
    entries = []
    for name, stems in wanted.items():
        entry = of.get(name) or cache.get(name)
        if entry is None:
            raise ReproductionError(
                f"{stems[0]} asks for a result of the kind {name.kind!r} that neither {of.root} "
                f"nor {cache.root} has: run it again, `make figures ONLY={stems[0]}`"
            )
        made = {**entry.made, "code": code.get(name.kind, entry.made["code"])}
        entries.append(replace(entry, notebooks=tuple(stems), made=made))
    return entries


def results(
    stems: Sequence[str],
    build: Path,
    root: Path,
    cache: Cache,
    *,
    restamp: bool = False,
) -> pd.DataFrame:
    """Write the ledger of what notebooks asked for; the overview that its README shows."""
    entries = gather(asked(build, stems), Ledger(root), cache, restamp=restamp)
    lens_of = {entry.identity: entry.notebooks[0].partition("-")[0] for entry in entries}
    ledger.write_ledger(root, entries, lens_of)
    overview = by_kind(Ledger(root))
    root.mkdir(parents=True, exist_ok=True)
    (root / "README.md").write_text(_readme(overview), encoding="utf-8")
    return overview


def by_kind(of: Ledger) -> pd.DataFrame:
    """A row a file of the ledger: kind, lens, entries, size, core-hours, commits, processors."""
    rows = []
    for (kind, lens), own in of.overview().groupby(["kind", "lens"]):
        rows.append(
            {
                "kind": kind,
                "lens": lens,
                "entries": len(own),
                "MB": (of.root / lens / f"{kind}.parquet").stat().st_size / 1e6,
                "core-hours": float((own["seconds"] * own["threads"].clip(lower=1)).sum() / 3600),
                "commit": ", ".join(sorted(set(own["commit"]))),
                "CPU": ", ".join(sorted(set(own["cpu"]))),
            }
        )
    names = ["kind", "lens", "entries", "MB", "core-hours", "commit", "CPU"]
    return pd.DataFrame(rows, columns=names)


def _readme(overview: pd.DataFrame) -> str:
    lines = [
        "# Results\n",
        "What the notebooks ask for, computed once: written by `make results`, read by `xlx.work`,",
        "proved by `make test` (a sample) and `make reproduce` (all). A file holds one kind of",
        "result of one lens, a row an entry: what was asked, by which notebooks, the value, and",
        "what made it (hash of the code, versions, processor, threads, seconds, commit, date).",
        "Never edit one: its seal would break, and its entries would count as missing.\n",
        "| kind | lens | entries | MB | core-hours | commit | CPU |",
        "|---|---|---:|---:|---:|---|---|",
    ]
    lines += [
        f"| {row.kind} | {row.lens} | {row.entries:,} | {row.MB:.2f} | {hours:.2f} "
        f"| {row.commit} | {row.CPU} |"
        for row, hours in zip(overview.itertuples(), overview["core-hours"], strict=True)
    ]
    total = overview[["entries", "MB", "core-hours"]].sum()
    lines.append(
        f"| all | | {total['entries']:,.0f} | {total['MB']:.2f} | {total['core-hours']:.2f} | | |"
    )
    return "\n".join(lines) + "\n"


# --- from nothing ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """What a reproduction runs, and what it should find again.

    Attributes
    ----------
    stems : list of str
        The notebooks.
    kinds : list of str
        The kinds that are computed; empty: all. Others come from the ledger.
    expected : DataFrame
        The entries of the ledger, as `Ledger.overview`.
    """

    stems: list[str]
    kinds: list[str]
    expected: pd.DataFrame

    def names(self, stem: str | None = None) -> Iterator[Name]:
        """The expected entries, or those that a notebook asks for."""
        for row in self.expected.itertuples():
            if stem is None or stem in row.notebooks:
                yield Name(row.kind, row.identity)


def plan(of: Ledger, only: Sequence[str] = (), folder: Path = paths.NOTEBOOKS) -> Plan:
    """What to run for the names of notebooks and kinds, or for all.

    ReproductionError for a name that is neither, or where the ledger is empty.
    """
    stems = sorted(path.stem for path in folder.glob("*.ipynb"))
    rows = of.overview()
    if rows.empty:
        raise ReproductionError(f"{of.root} holds no results to compare with: `make results` first")
    there = sorted(set(rows["kind"]))
    only = [name.removeprefix("notebooks/").removesuffix(".ipynb") for name in only]
    if unknown := [name for name in only if name not in stems and name not in there]:
        raise ReproductionError(
            f"there is neither a notebook nor a kind of result {unknown[0]!r} (ONLY=...); "
            f"notebooks: {' '.join(stems)}; kinds: {' '.join(there)}"
        )
    chosen_kinds = [name for name in only if name in there and name not in stems]
    chosen = {name for name in only if name in stems}
    if chosen_kinds:
        rows = rows[rows["kind"].isin(chosen_kinds)]
        chosen |= {
            stem for own in rows["notebooks"] for stem in own if not chosen or stem in chosen
        }
    chosen = chosen or set(stems)
    rows = rows[[bool(chosen & set(own)) for own in rows["notebooks"]]]
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
            raise ReproductionError(
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
        table = ledger.read(file)
        kind = known.get(file.parent.parent.name)
        if table is None or kind is None or table["code"][0].as_py() != kind.code:
            file.unlink()


def _finished(stem: str, build: Path, wanted: Iterable[Name], cache: Cache, folder: Path) -> bool:
    """Whether an interrupted run was through with a notebook, as it is now."""
    notebook, done = folder / f"{stem}.ipynb", build / "mini" / f"{stem}.ipynb"
    if not done.is_file():
        return False
    package = paths.ROOT / "xlx"
    sources = [notebook, *(package / f"{name}.py" for name in needs.modules(notebook))]
    newest = max(source.stat().st_mtime for source in sources)
    return done.stat().st_mtime > newest and all(cache.path(name).is_file() for name in wanted)


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
        self._sizes: dict[Path, int] = {}

    def read(self, journals: Iterable[Path]) -> None:
        for path in journals:
            size = path.stat().st_size if path.is_file() else 0
            if size and size != self._sizes.get(path):
                self._sizes[path] = size
                self.seen.update(line.get("identity", "") for line in run.read_journal(path))

    @property
    def now(self) -> int:
        own = sum(self.weights.get(identity, 0) for identity in self.seen)
        return round(own + _BESIDE * len(self.done))


def _run_all(plan: Plan, home: Path, build: Path, folder: Path, start: Sequence[str]) -> list[str]:
    """Run the notebooks under one bar; what is to be said of those that failed."""
    cache = Cache(home / "reproduction")
    done = [stem for stem in plan.stems if _finished(stem, build, plan.names(stem), cache, folder)]
    course, failures = _Course(plan, cache, done), []
    waiting = [stem for stem in plan.stems if stem not in done]
    running: dict[str, subprocess.Popen] = {}
    side_by_side = _ON_CLUSTER if current().scheduler else 1
    environment = {
        **os.environ, "XLX_POLICY": "ignore", "XLX_CACHE": str(home.absolute()),
        "XLX_KINDS": " ".join(plan.kinds), "XLX_FIGURES": str((build / "figures").absolute()),
        "XLX_WORKERS": str(current().workers or ""), "XLX_SCHEDULER": current().scheduler or "",
    }  # fmt: skip
    (build / "logs").mkdir(parents=True, exist_ok=True)
    with progress.bar(what="seconds of work", total=course.total) as bar:
        # what is there already says nothing of how fast this machine is
        bar.initial = bar.n = course.now
        bar.smoothing = 0
        try:
            while waiting or running:
                while waiting and len(running) < side_by_side:
                    stem = waiting.pop(0)
                    with (build / "logs" / f"{stem}.txt").open("wb") as log:
                        running[stem] = subprocess.Popen(
                            [*start, stem, "--build", str(build)], cwd=paths.ROOT, stdout=log,
                            stderr=subprocess.STDOUT, env=environment, preexec_fn=_with_parent,
                        )  # fmt: skip
                time.sleep(0.3)
                course.read(run.journal(stem, build / "mini") for stem in running)
                for stem in [s for s, process in running.items() if process.poll() is not None]:
                    if running.pop(stem).returncode:
                        log = (build / "logs" / f"{stem}.txt").read_text(encoding="utf-8")
                        failures.append((log.strip().splitlines() or [f"{stem} failed"])[-1])
                    course.done.add(stem)
                    if not progress.watched():
                        share = 100 * course.now // max(course.total, 1)
                        print(f"{stem}: through ({share} % of the work)", flush=True)
                bar.update(max(course.now - bar.n, 0))
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
    known, found, said = kinds(), [], []
    for kind, own in plan.expected.groupby("kind"):
        apart: dict[str, float] = {}
        for row in own.itertuples():
            name = Name(row.kind, row.identity)
            entry, again = of.get(name), cache.get(name)
            if kind in known and entry is not None and again is not None:
                apart[row.identity] = known[kind].difference(entry.value, again.value)
        tolerance = known[kind].tolerance if kind in known else float("nan")
        outside = {name for name, by in apart.items() if not by <= tolerance}
        texts = own.set_index("identity")["ask"]
        if outside:
            worst = max(outside, key=lambda name: (apart[name] != apart[name], apart[name]))
            said.append(
                f"{kind}: {len(outside)} differ by more than {tolerance:.3g}, most of all (by "
                f"{apart[worst]:.3g}) {texts[worst]}"
            )
        if absent := [name for name in own["identity"] if name not in apart]:
            said.append(
                f"{kind}: {len(absent)} were not asked for, such as {texts[absent[0]]}; "
                "`make results` drops what nobody asks for"
            )
        found.append(
            {
                "kind": kind,
                "entries": len(own),
                "equal": sum(by == 0 for by in apart.values()),
                "within": sum(0 < by <= tolerance for by in apart.values()),
                "outside": len(outside),
                "not computed": len(absent),
                "largest": max(apart.values(), default=float("nan")),
                "tolerance": tolerance,
            }
        )
    return pd.DataFrame(found), said


def reproduce(
    only: Sequence[str] = (),
    *,
    root: Path = paths.RESULTS,
    cache: Path = paths.CACHE,
    build: Path = paths.BUILD / "reproduction",
    folder: Path = paths.NOTEBOOKS,
    start: Sequence[str] = (sys.executable, "-m", "xlx.run"),
) -> int:
    """Compute from nothing and compare; 0 where all is within its tolerance, else 1.

    ``start`` is the command that runs a notebook. ReproductionError as `plan`, and while another
    one is at work.
    """
    of, home = Ledger(root), cache / "from-nothing"
    chosen = plan(of, only, folder)
    with _alone(cache / "reproduction.lock"):
        if current().scheduler:
            list(executors.run(len, [], alone=True, side_by_side=False))  # does it answer?
        if home.exists():
            _drop_stale(home / "reproduction")
            print(f"going on with what {run._shown(home)} has", flush=True)
        else:
            shutil.rmtree(build, ignore_errors=True)
        failures = _run_all(chosen, home, build, folder, start)
        if failures:
            print("\n".join(failures), file=sys.stderr)
            print(
                "not compared: call again when that is put right, and it goes on", file=sys.stderr
            )
            return 1
        table, said = compare(chosen, of, Cache(home / "reproduction"))
        text = "\n".join([table.to_string(index=False, float_format="{:.3g}".format), *said])
        print(text)
        (build / "table.txt").write_text(text + "\n", encoding="utf-8")
        kept = cache / "reproduced"
        shutil.rmtree(kept, ignore_errors=True)
        if (home / "reproduction").is_dir():
            (home / "reproduction").replace(kept)
        shutil.rmtree(home, ignore_errors=True)
    return 1 if said else 0


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return 0, 1 (something differs or failed), 2 or 130 (stopped)."""
    parser = argparse.ArgumentParser(prog="python -m xlx.reproduction")
    commands = parser.add_subparsers(dest="command", required=True)
    gathered = commands.add_parser("results", help="write data/results")
    gathered.add_argument("--restamp", action="store_true", help="as made by today's code")
    again = commands.add_parser("reproduce", help="compute data/results from nothing, compare")
    again.add_argument("--only", nargs="*", default=[], help="notebooks or kinds of result")
    options = parser.parse_args(argv)
    try:
        if options.command == "reproduce":
            with run._stopped_by_sigterm():
                return reproduce(options.only)
        stems = [path.stem for path in paths.NOTEBOOKS.glob("*.ipynb")]
        cache = Cache(paths.CACHE / "results")
        table = results(stems, paths.BUILD / "mini", paths.RESULTS, cache, restamp=options.restamp)
    except (ReproductionError, executors.WorkerError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; `make reproduce` goes on from here", file=sys.stderr)
        return 130
    entries, size = table["entries"].sum(), table["MB"].sum()
    print(f"data/results: {entries} results of {table['kind'].nunique()} kinds, {size:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
