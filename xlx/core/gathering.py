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
from xlx.core.ledger import Cache, Ledger


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


def write_results(
    stems: Sequence[str], build: Path, root: Path, cache: Cache, *, restamp: bool = False
) -> pd.DataFrame:
    """Write the ledger of what notebooks asked for; the overview that its README shows.

    The entries are those of the ledger that there is, or of the cache. ``restamp``: as made by
    today's code, where it differs under the same version.
    """
    of, code = Ledger(root), {}
    if restamp:
        code = {name: kind.code for name, kind in kinds().items()}
    entries = []
    for name, askers in asked(build, stems).items():
        entry = of.get(name) or cache.get(name)
        if entry is None:
            raise GatheringError(
                f"{askers[0]} asks for a result of the kind {name.kind!r} that neither {root} "
                f"nor {cache.root} has: run it again, `make figures ONLY={askers[0]}`"
            )
        made = {**entry.made, "code": code.get(name.kind, entry.made["code"])}
        entries.append(replace(entry, notebooks=tuple(askers), made=made))
    lens_of = {entry.identity: entry.notebooks[0].partition("-")[0] for entry in entries}
    files = ledger.write_ledger(root, entries, lens_of)
    overview = by_kind(Ledger(root).overview())
    sizes = {(file.stem, file.parent.name): file.stat().st_size / 1e6 for file in files}
    places = zip(overview["kind"], overview["lens"], strict=True)
    overview.insert(3, "MB", [sizes[place] for place in places])
    root.mkdir(parents=True, exist_ok=True)
    (root / "README.md").write_text(_readme(overview), encoding="utf-8")
    return overview


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
        "`xlx.core.work`, proved by `make test` (a sample) and `make reproduce` (all). A file",
        "holds one kind of result of one lens, a row an entry: what was asked, by which notebooks,",
        "the value, and what made it (hash of the code, versions, processor, threads, seconds,",
        "commit, date). Never edit one: its seal would break, and its entries would count as",
        "missing.\n",
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
    parser = argparse.ArgumentParser(prog="python -m xlx.core.gathering")
    parser.add_argument("--restamp", action="store_true", help="as made by today's code")
    restamp = parser.parse_args(argv).restamp
    stems = [path.stem for path in paths.NOTEBOOKS.glob("*.ipynb")]
    cache, build = Cache(paths.CACHE / "results"), paths.BUILD / "mini"
    try:
        table = write_results(stems, build, paths.RESULTS, cache, restamp=restamp)
    except (GatheringError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    entries, size = table["entries"].sum(), table["MB"].sum()
    print(f"data/results: {entries} results of {table['kind'].nunique()} kinds, {size:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
