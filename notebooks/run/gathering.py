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
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from notebooks.run import journals
from xlx.results import ledger, paths, work
from xlx.results.ledger import Cache, Entry, Ledger

#: What an asker is called that is a unit of long runs, and the folder of what they alone ask for.
RUN, RUN_LENS = "run:", "public"
#: Seeds of untrained twins that are looked for.
_TWINS = range(1, 10)
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


class GatheringError(ValueError):
    """What keeps results from being gathered or reproduced, and what to do."""


class AskName(NamedTuple):
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
            if re.search(r"= work\.Kind\(|^@\w*\.?kept\(", file.read_text(encoding="utf-8"), re.M):
                importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))
    return work.KINDS


def is_run(asker: str) -> bool:
    """Whether an asker is a unit of long runs, and no notebook."""
    return asker.startswith(RUN)


def asked(
    of: Ledger, stems: Iterable[str], build: Path, runs: Path | None, forget: Collection[str]
) -> dict[AskName, list[str]]:
    """What is asked for → by whom: notebooks in their last run, and units of long runs.

    These by the ledger, too, and by the journals in a folder. GatheringError for a notebook that
    was not run to its end.
    """
    askers: dict[AskName, set[str]] = {}
    for row in of.overview().itertuples():
        askers[AskName(row.kind, row.identity)] = set(filter(is_run, row.notebooks))
    noted = {stem: journals.journal(stem, build) for stem in stems}
    for stem, journal in sorted(noted.items()):
        if not ((build / f"{stem}.ipynb").is_file() and journal.is_file()):
            raise GatheringError(
                f"nobody knows what {stem} asks for: run it first, `make figures ONLY={stem}`"
            )
    if runs:
        noted |= {RUN + journal.stem: journal for journal in runs.glob("asks/*.jsonl")}
    for asker, journal in noted.items():
        for line in journals.read_journal(journal):
            askers.setdefault(AskName(line["kind"], line["identity"]), set()).add(asker)
    gone = {RUN + unit.removeprefix(RUN) for unit in forget}
    return {
        name: sorted(some - gone, key=lambda asker: (is_run(asker), asker))
        for name, some in askers.items()
        if some - gone
    }


def absent_models() -> dict[str, str]:
    """Public models without weights on this machine: fingerprint, also of each twin → name."""
    from xlx.subjects import identity

    absent: dict[str, str] = {}
    for name, model in identity.public_models().items():
        if not (model.folder / "config.json").is_file():
            twins = (identity.twin_of(name, seed) for seed in _TWINS)
            absent |= {identity.fingerprint(one): name for one in (name, *twins)}
    return absent


def recorded_checkpoints() -> dict[str, str]:
    """Checkpoints of the family of which the hash alone is shipped: fingerprint → name."""
    from xlx.subjects import identity

    some = [
        identity.checkpoints(record.parent.relative_to(paths.MODELS).as_posix(), recorded=True)
        for record in paths.MODELS.rglob(identity.RECORD)
    ]
    return {x.recorded: x.name for series in some for x in series if x.recorded}


def of_absent_models(overview: pd.DataFrame) -> pd.Series:
    """Which entries cannot be computed on this machine, as they are of `absent_models`: bool."""
    absent = {*absent_models(), *recorded_checkpoints()}
    named = [not absent.isdisjoint(_FINGERPRINT.findall(ask)) for ask in overview["ask"]]
    return pd.Series(named, index=overview.index, dtype=bool)


def tallied(again: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Entries that were computed again (kind, ask, apart, tolerance), one row per kind.

    How many, equal, within and outside of the tolerance, the largest difference; and a sentence on
    the worst of each kind that is outside. NaN is no difference that could be allowed.
    """
    rows = again.assign(apart=again["apart"].astype(float).fillna(np.inf))
    rows["equal"], rows["outside"] = rows["apart"] == 0, rows["apart"] > rows["tolerance"]
    rows["within"] = ~rows["equal"] & ~rows["outside"]
    counts = {name: (name, "sum") for name in ("equal", "within", "outside")}
    table = rows.groupby("kind", as_index=False).agg(
        compared=("apart", "size"), **counts, largest=("apart", "max"),
        tolerance=("tolerance", "first"),
    )  # fmt: skip
    said = []
    for kind, few in rows[rows["outside"]].groupby("kind"):
        worst = few.loc[few["apart"].idxmax()]
        said.append(
            f"{kind}: {len(few)} differ by more than {worst['tolerance']:.3g} when they are "
            f"computed again, most of all (by {worst['apart']:.3g}) {worst['ask']}"
        )
    return table, said


def write_results(
    stems: Sequence[str], build: Path, root: Path, cache: Cache, *, restamp: bool = False,
    runs: Path | None = None, forget: Collection[str] = (),
) -> pd.DataFrame:  # fmt: skip
    """Write the ledger of what notebooks and long runs asked for; the overview of its README.

    The entries are those of the ledger that there is, or of the cache. ``restamp``: as made by
    today's code, where it differs under the same version. ``runs``: the folder of the journals of
    long runs; ``forget``: units that no longer count.
    """
    of = Ledger(root)
    code = {name: kind.code for name, kind in kinds().items()} if restamp else {}
    entries = []
    for name, askers in asked(of, stems, build, runs, forget).items():
        entry = of.get(name) or cache.get(name)
        if entry is None:
            raise GatheringError(
                f"{askers[0]} asks for a result of the kind {name.kind!r} that neither {root} nor "
                f"{cache.root} has: run it again (`make figures ONLY=...`, or a unit by runs.py)"
            )
        made = {
            **entry.made,
            "code": code.get(work.kind_name(name.kind, entry.text), entry.made["code"]),
        }
        entries.append(replace(entry, notebooks=tuple(askers), made=made))
    before = of.overview().set_index("identity")["lens"]
    lens_of = {x.identity: _lens(x.notebooks, before.get(x.identity)) for x in entries}
    files = write_ledger(root, entries, lens_of)
    overview = by_kind(Ledger(root).overview(), files)
    root.mkdir(parents=True, exist_ok=True)
    (root / "README.md").write_text(_readme(overview), encoding="utf-8")
    return overview


def write_ledger(
    root: Path, entries: Iterable[ledger.Entry], lens_of: Mapping[str, str]
) -> list[Path]:
    """Write a ledger of these entries and no others; the files, sorted. What is the same stays.

    ``lens_of`` gives the folder of an identity.
    """
    groups: dict[Path, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: entry.identity):
        path = root / lens_of[entry.identity] / f"{entry.kind}.parquet"
        groups.setdefault(path, []).append(entry)
    for path, group in groups.items():
        table = ledger.to_arrow(group)
        before = ledger.read_entries(path)
        if before is None or not before.equals(table):
            ledger.write_entries(path, table)
    for old in set(root.glob("*/*.parquet")) - set(groups):
        old.unlink()
    return sorted(groups)


def _lens(askers: Sequence[str], before: str | None) -> str:
    """The folder of a result: where it is, while an asker is of that lens; else the first's."""
    lenses = [RUN_LENS if is_run(asker) else asker.partition("-")[0] for asker in askers]
    return before if before in lenses and before != RUN_LENS else lenses[0]


def by_kind(entries: pd.DataFrame, files: Sequence[Path]) -> pd.DataFrame:
    """One row per kind and lens: entries, MB of the file, core-hours, commits, processors."""

    def names(column: pd.Series) -> str:
        return ", ".join(sorted(set(column)))

    hours = entries["seconds"] * entries["threads"].clip(lower=1) / 3600
    processor = entries["cpu"].where(entries["device"] == "cpu", entries["device"])
    groups = entries.assign(hours=hours.astype(float), cpu=processor).groupby(["kind", "lens"])
    table = groups.agg(
        entries=("hours", "size"), MB=("hours", "size"), hours=("hours", "sum"),
        commit=("commit", names), processor=("cpu", names),
    )  # fmt: skip
    sizes = {(file.stem, file.parent.name): file.stat().st_size / 1e6 for file in files}
    table["MB"] = [sizes[place] for place in table.index]
    return table.reset_index()


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
        "| kind | lens | entries | MB | hours | commit | processor |",
        "|---|---|---:|---:|---:|---|---|",
    ]
    for kind, lens, n, size, hours, commit, processor in overview.itertuples(index=False):
        lines.append(
            f"| {kind} | {lens} | {n:,} | {size:.2f} | {hours:.2f} | {commit} | {processor} |"
        )
    n, size, hours = overview[["entries", "MB", "hours"]].sum()
    return "\n".join([*lines, f"| all | | {n:,.0f} | {size:.2f} | {hours:.2f} | | |", ""])


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
