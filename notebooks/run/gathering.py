"""Results into the ledger: what notebooks asked for in their last run, and long runs at any time.

    python -m notebooks.run.gathering [--restamp] [--forget UNIT ...]    # make results

What notebooks no longer ask for is dropped. What the units of long runs have asked for
(`data/models-public/runs.py`) stays until a unit is forgotten: their entries have askers called
``run:<unit>``, and lie in ``data/results/public`` where no notebook asks for them too.
"""

import argparse
import importlib
import re
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from notebooks.run import journals
from xlx.results import ledger, paths, work
from xlx.results.ledger import Cache, Ledger

#: What an asker is called that is a unit of long runs, and the folder of what they alone ask for.
RUN, RUN_LENS = "run:", "public"
#: Seeds of untrained twins that are looked for.
_TWINS = range(1, 10)


class GatheringError(ValueError):
    """What keeps results from being gathered or reproduced, and what to do."""


@dataclass(frozen=True)
class AskName:
    """An ask of which only the name is known: finds an entry as the ask itself does."""

    kind: str
    identity: str


def kinds() -> dict[str, work.Kind]:
    """All kinds of results: imports the modules that name one."""
    for root in (paths.ROOT, paths.NOTEBOOKS):
        if str(root) not in sys.path:
            sys.path.append(str(root))
    for root, folder in ((paths.ROOT, "xlx"), (paths.NOTEBOOKS, ".")):
        for file in sorted((root / folder).rglob("*.py")):
            if re.search(r"= work\.Kind\(", file.read_text(encoding="utf-8")):
                importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))
    return work.KINDS


def asked(build: Path, stems: Iterable[str]) -> dict[AskName, list[str]]:
    """What notebooks asked for in their last run → the notebooks, sorted.

    GatheringError for a notebook that was not run to its end.
    """
    stems_of: dict[AskName, list[str]] = {}
    for stem in sorted(stems):
        journal = journals.journal(stem, build)
        if not ((build / f"{stem}.ipynb").is_file() and journal.is_file()):
            raise GatheringError(
                f"nobody knows what {stem} asks for: run it first, `make figures ONLY={stem}`"
            )
        lines = [line for line in journals.read_journal(journal) if "from" in line]
        for name in dict.fromkeys(AskName(line["kind"], line["identity"]) for line in lines):
            stems_of.setdefault(name, []).append(stem)
    return stems_of


def is_run(asker: str) -> bool:
    """Whether an asker is a unit of long runs, and no notebook."""
    return asker.startswith(RUN)


def asked_by_runs(
    of: Ledger, folder: Path | None, forget: Collection[str] = ()
) -> dict[AskName, list[str]]:
    """What long runs asked for, by the ledger and by the journals in a folder → ``run:<unit>``."""
    askers: dict[AskName, set[str]] = {}
    for row in of.overview().itertuples():
        askers[AskName(row.kind, row.identity)] = set(filter(is_run, row.notebooks))
    for journal in sorted(folder.glob("asks/*.jsonl")) if folder else []:
        for line in journals.read_journal(journal):
            askers.setdefault(AskName(line["kind"], line["identity"]), set()).add(
                f"{RUN}{journal.stem}"
            )
    gone = {f"{RUN}{unit.removeprefix(RUN)}" for unit in forget}
    return {name: sorted(some - gone) for name, some in askers.items() if some - gone}


def absent_models() -> dict[str, str]:
    """Public models without weights on this machine: fingerprint, also of each twin → name."""
    from xlx.subjects import identity

    absent: dict[str, str] = {}
    for name, model in identity.public_models().items():
        if not (model.folder / "config.json").is_file():
            twins = (identity.twin_of(name, seed) for seed in _TWINS)
            absent |= {identity.fingerprint(one): name for one in (name, *twins)}
    return absent


def of_absent_models(overview: pd.DataFrame) -> pd.Series:
    """Which entries cannot be computed on this machine, as they are of `absent_models`: bool."""
    absent = absent_models()
    if not absent or overview.empty:
        return pd.Series(data=False, index=overview.index)
    return overview["ask"].str.contains("|".join(absent))


def write_results(
    stems: Sequence[str], build: Path, root: Path, cache: Cache, *, restamp: bool = False,
    runs: Path | None = None, forget: Collection[str] = (),
) -> pd.DataFrame:  # fmt: skip
    """Write the ledger of what notebooks and long runs asked for; the overview of its README.

    The entries are those of the ledger that there is, or of the cache. ``restamp``: as made by
    today's code, where it differs under the same version. ``runs``: the folder of the journals of
    long runs; ``forget``: units that no longer count.
    """
    of, code = Ledger(root), {}
    if restamp:
        code = {name: kind.code for name, kind in kinds().items()}
    askers_of = asked(build, stems)
    for name, units in asked_by_runs(of, runs, forget).items():
        askers_of.setdefault(name, []).extend(units)
    entries = []
    for name, askers in askers_of.items():
        entry = of.get(name) or cache.get(name)
        if entry is None:
            again = f"make figures ONLY={askers[0]}"
            if is_run(askers[0]):
                again = f"python data/models-public/runs.py {askers[0].removeprefix(RUN)}"
            raise GatheringError(
                f"{askers[0]} asks for a result of the kind {name.kind!r} that neither {root} "
                f"nor {cache.root} has: run it again, `{again}`"
            )
        made = {**entry.made, "code": code.get(name.kind, entry.made["code"])}
        entries.append(replace(entry, notebooks=tuple(askers), made=made))
    lens_of = {entry.identity: _lens(entry.notebooks[0]) for entry in entries}
    files = ledger.write_ledger(root, entries, lens_of)
    overview = by_kind(Ledger(root).overview())
    sizes = {(file.stem, file.parent.name): file.stat().st_size / 1e6 for file in files}
    places = zip(overview["kind"], overview["lens"], strict=True)
    overview.insert(3, "MB", [sizes[place] for place in places])
    root.mkdir(parents=True, exist_ok=True)
    (root / "README.md").write_text(_readme(overview), encoding="utf-8")
    return overview


def _lens(asker: str) -> str:
    """The folder of what an asker is the first to ask for."""
    return RUN_LENS if is_run(asker) else asker.partition("-")[0]


def by_kind(entries: pd.DataFrame) -> pd.DataFrame:
    """A row a kind and lens: entries, core-hours, commits, processors."""

    def names(column: pd.Series) -> str:
        return ", ".join(sorted(set(column)))

    hours = entries["seconds"] * entries["threads"].clip(lower=1) / 3600
    groups = entries.assign(hours=hours.astype(float)).groupby(["kind", "lens"])
    table = groups.agg(
        entries=("hours", "size"), hours=("hours", "sum"), commit=("commit", names),
        CPU=("cpu", names),
    )  # fmt: skip
    return table.rename(columns={"hours": "core-hours"}).reset_index()


def _readme(overview: pd.DataFrame) -> str:
    lines = [
        "# Results\n",
        "What the notebooks ask for, computed once: written by `make results`, read by",
        "`xlx.results.work`, proved by `make test` (a sample) and `make reproduce` (all). A file",
        "holds one kind of result of one lens, a row an entry: what was asked, by which notebooks,",
        "the value, and what made it (hash of the code, versions, processor, threads, seconds,",
        "commit, date). Never edit one: its seal would break, and its entries would count as",
        "missing. What the long runs of public models gave (`data/models-public/runs.py`; an asker",
        "`run:<unit>`) and no notebook asks for lies in `public`.\n",
        "| kind | lens | entries | MB | core-hours | commit | CPU |",
        "|---|---|---:|---:|---:|---|---|",
    ]
    for kind, lens, n, size, hours, commit, processor in overview.itertuples(index=False):
        lines.append(
            f"| {kind} | {lens} | {n:,} | {size:.2f} | {hours:.2f} | {commit} | {processor} |"
        )
    n, size, hours = overview[["entries", "MB", "core-hours"]].sum()
    lines.append(f"| all | | {n:,.0f} | {size:.2f} | {hours:.2f} | | |")
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return 0, or 2 where a result is missing."""
    parser = argparse.ArgumentParser(prog="python -m notebooks.run.gathering")
    parser.add_argument("--restamp", action="store_true", help="as made by today's code")
    parser.add_argument("--forget", nargs="+", default=[], metavar="UNIT", help="of long runs")
    options = parser.parse_args(argv)
    stems = [path.stem for path in paths.NOTEBOOKS.glob("*.ipynb")]
    cache, build = Cache(paths.CACHE / "results"), paths.BUILD / "mini"
    try:
        table = write_results(
            stems, build, paths.RESULTS, cache, restamp=options.restamp,
            runs=paths.BUILD / "runs", forget=options.forget,
        )  # fmt: skip
    except (GatheringError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    entries, size = table["entries"].sum(), table["MB"].sum()
    print(f"data/results: {entries} results of {table['kind'].nunique()} kinds, {size:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
