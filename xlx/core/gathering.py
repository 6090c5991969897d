"""Results into the ledger: what the notebooks asked for in their last run, and nothing else.

python -m xlx.core.gathering [--restamp]    # make results
"""

import argparse
import importlib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from xlx.core import journals, ledger, paths, work
from xlx.core.ledger import Cache, Entry, Ledger


class GatheringError(ValueError):
    """What keeps results from being gathered or reproduced, and what to do."""


@dataclass(frozen=True)
class AskName:
    """An ask of which only the name is known: finds an entry as the ask itself does."""

    kind: str
    identity: str


def kinds() -> dict[str, work.Kind]:
    """All kinds of results: imports the modules that name one."""
    for file in sorted((paths.ROOT / "xlx").rglob("*.py")):
        if "work.Kind(" in file.read_text(encoding="utf-8") and file.stem != "work":
            importlib.import_module(".".join(file.relative_to(paths.ROOT).with_suffix("").parts))
    return work.KINDS


def asked(build: Path, stems: Iterable[str]) -> dict[AskName, list[str]]:
    """What notebooks asked for in their last run → the notebooks, sorted.

    GatheringError for a notebook that was not run to its end.
    """
    found: dict[AskName, list[str]] = {}
    for stem in sorted(stems):
        journal = journals.journal(stem, build)
        if not ((build / f"{stem}.ipynb").is_file() and journal.is_file()):
            raise GatheringError(
                f"nobody knows what {stem} asks for: run it first, `make figures ONLY={stem}`"
            )
        for line in journals.read_journal(journal):
            if "from" in line:
                stems_of = found.setdefault(AskName(line["kind"], line["identity"]), [])
                if stem not in stems_of:
                    stems_of.append(stem)
    return found


def gather(
    wanted: dict[AskName, list[str]], of: Ledger, cache: Cache, *, restamp: bool = False
) -> list[Entry]:
    """The entries of names, from ledger or cache, with the notebooks that ask for them.

    ``restamp``: as made by today's code, where it differs under the same version.
    """
    code = {name: kind.code for name, kind in kinds().items()} if restamp else {}
    entries = []
    for name, stems in wanted.items():
        entry = of.get(name) or cache.get(name)
        if entry is None:
            raise GatheringError(
                f"{stems[0]} asks for a result of the kind {name.kind!r} that neither {of.root} "
                f"nor {cache.root} has: run it again, `make figures ONLY={stems[0]}`"
            )
        made = {**entry.made, "code": code.get(name.kind, entry.made["code"])}
        entries.append(replace(entry, notebooks=tuple(stems), made=made))
    return entries


def write_results(
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
        "What the notebooks ask for, computed once: written by `make results`, read by",
        "`xlx.core.work`, proved by `make test` (a sample) and `make reproduce` (all). A file",
        "holds one kind of result of one lens, a row an entry: what was asked, by which notebooks,",
        "the value, and what made it (hash of the code, versions, processor, threads, seconds,",
        "commit, date). Never edit one: its seal would break, and its entries would count as",
        "missing.\n",
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


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return 0, or 2 where a result is missing."""
    parser = argparse.ArgumentParser(prog="python -m xlx.core.gathering")
    parser.add_argument("--restamp", action="store_true", help="as made by today's code")
    options = parser.parse_args(argv)
    stems = [path.stem for path in paths.NOTEBOOKS.glob("*.ipynb")]
    cache = Cache(paths.CACHE / "results")
    try:
        table = write_results(
            stems, paths.BUILD / "mini", paths.RESULTS, cache, restamp=options.restamp
        )
    except (GatheringError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    entries, size = table["entries"].sum(), table["MB"].sum()
    print(f"data/results: {entries} results of {table['kind'].nunique()} kinds, {size:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
