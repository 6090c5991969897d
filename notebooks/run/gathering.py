"""Results into the ledger: what notebooks asked for in their last run, and long runs at any time.

    python -m notebooks.run.gathering [--restamp] [--forget UNIT ...] [--fold LENS/KIND ...]

``make results`` adds: what is new goes into new shards, of at most `LIMIT` bytes, and no file of
results is written again; who asks for what by now, and which code gives the same, is noted beside
them (`xlx.results.ledger`). ``make results FOLD="abx/score"`` (or ``FOLD=all``, at a release)
writes the shards of a folder anew with these notes, without what nobody asks for any more.

What the units of long runs have asked for (`data/models-public/runs.py`) stays until a unit is
forgotten: their entries have askers called ``run:<unit>``, and lie in ``data/results/public`` where
no notebook asked for them first.
"""

import argparse
import hashlib
import importlib
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from notebooks.run import journals
from xlx.experiment.scoring import cached
from xlx.results import ledger, paths, store, work
from xlx.results.ledger import Cache, Entry, Ledger

#: What an asker is called that is a unit of long runs, and the folder of what they alone ask for.
RUN, RUN_LENS = "run:", "public"
#: Bytes of a shard, at most.
LIMIT = 10_000_000
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
    named = rf"= work\.Kind\(|^@\w*\.?{cached.__name__}\("
    for root, folder in ((paths.ROOT, "xlx"), (paths.NOTEBOOKS, ".")):
        for file in sorted((root / folder).rglob("*.py")):
            if re.search(named, file.read_text(encoding="utf-8"), re.M):
                importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))
    return work.KINDS


def is_run(asker: str) -> bool:
    """Whether an asker is a unit of long runs, and no notebook."""
    return asker.startswith(RUN)


def asked(
    overview: pd.DataFrame,
    stems: Iterable[str],
    build: Path,
    runs: Path | None,
    forget: Collection[str],
) -> dict[AskName, list[str]]:
    """What is asked for → by whom: notebooks in their last run, and units of long runs.

    These by the ledger, too, and by the journals in a folder. GatheringError for a notebook that
    was not run to its end.
    """
    askers: dict[AskName, set[str]] = {}
    for row in overview.itertuples():
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
            absent |= {identity.fingerprint(twin): name for twin in (name, *twins)}
    return absent


def recorded_checkpoints() -> dict[str, str]:
    """Checkpoints of the family of which the hash alone is shipped: fingerprint → name."""
    from xlx.subjects import identity

    some = [
        identity.checkpoints(record.parent.relative_to(paths.MODELS).as_posix(), recorded=True)
        for record in paths.MODELS.rglob(identity.RECORD)
    ]
    return {x.recorded: x.name for series in some for x in series if x.recorded}


def computable(overview: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Entries that can be computed on this machine, and those of absent models; says how many."""
    absent = {*absent_models(), *recorded_checkpoints()}
    named = [not absent.isdisjoint(_FINGERPRINT.findall(ask)) for ask in overview["ask"]]
    if any(named):
        print(
            f"{sum(named)} results of public models are not computed, as their weights are not on "
            "this machine: `make models` fetches them",
            flush=True,
        )
    named = np.array(named, dtype=bool)
    return overview[~named], overview[named]


def compare(
    expected: pd.DataFrame, stored: Ledger, computed: Cache
) -> tuple[pd.DataFrame, list[str]]:
    """Entries of the ledger beside what was computed again, one row per kind.

    ``expected`` as `Ledger.overview` has them. How many were compared, are equal, within and
    outside of the tolerance, the largest difference; and a sentence on the worst of each kind that
    is outside (NaN is no difference that could be allowed), and on what was not computed.
    """
    known, rows = kinds(), []
    for row in expected.itertuples():
        name = AskName(row.kind, row.identity)
        kind = known.get(work.kind_name(row.kind, row.ask))
        entry, again = stored.get(name), computed.get(name)
        there = kind is not None and entry is not None and again is not None
        apart = kind.difference(entry.value, again.value) if there else np.nan
        rows.append((row.kind, row.ask, there, apart, kind.tolerance if kind else 0.0))
    every = pd.DataFrame(rows, columns=["kind", "ask", "there", "apart", "tolerance"])
    sentences = [
        f"{kind}: {len(few)} were not computed again, such as {few['ask'].iloc[0]}: no notebook "
        "asks for it (`make results` notes that), or its kind is gone"
        for kind, few in every[~every["there"].astype(bool)].groupby("kind")
    ]
    table = every[every["there"].astype(bool)].assign(apart=lambda x: x["apart"].fillna(np.inf))
    table["equal"], table["outside"] = table["apart"] == 0, table["apart"] > table["tolerance"]
    table["within"] = ~table["equal"] & ~table["outside"]
    for kind, few in table[table["outside"]].groupby("kind"):
        worst = few.loc[few["apart"].idxmax()]
        sentences.append(
            f"{kind}: {len(few)} differ by more than {worst['tolerance']:.3g} when they are "
            f"computed again, most of all (by {worst['apart']:.3g}) {worst['ask']}"
        )
    counts = {name: (name, "sum") for name in ("equal", "within", "outside")}
    counts = {"compared": ("apart", "size"), **counts, "largest": ("apart", "max")}
    by_kind = table.groupby("kind", as_index=False)
    return by_kind.agg(**counts, tolerance=("tolerance", "first")), sentences


@contextmanager
def _writing(root: Path) -> Iterator[None]:
    """Within, nobody else writes the ledger; GatheringError while another does, or for the disk."""
    root.mkdir(parents=True, exist_ok=True)
    try:
        with store.lock(root / ".lock"):
            yield
    except store.Locked as holder:
        raise GatheringError(
            f"another `make results` is at work (process {holder}): call again when it is through"
        ) from None
    except OSError as error:
        raise GatheringError(
            f"{root} cannot be written to ({error.strerror or error}): make room, or make it "
            "writable; what it has stays as it is"
        ) from None


def write_results(
    stems: Sequence[str],
    build: Path,
    root: Path,
    cache: Cache,
    *,
    restamp: bool = False,
    runs: Path | None = None,
    forget: Collection[str] = (),
    fold: Collection[str] = (),
) -> tuple[pd.DataFrame, list[str]]:
    """Add to the ledger what notebooks and long runs asked for and it has not, from the cache.

    Parameters
    ----------
    restamp : bool
        Results count as made by today's code, where it differs under the same version.
    runs : Path, optional
        Folder of the journals of long runs.
    forget : collection of str
        Units that no longer count.
    fold : collection of str
        Folders of shards, "abx/score", that are written anew, without what nobody asks for; "all".

    Returns the overview of its README, and sentences on what was done. GatheringError for a result
    that neither has, one above `LIMIT`, a folder that is not there or has a damaged shard, and
    while another process writes.
    """
    with _writing(root):
        results = Ledger(root)
        before = results.overview()
        askers, lens_of = asked(before, stems, build, runs, forget), {}
        folder_of = {file: ledger.folder_of(root, file) for file in results.files()}
        if unknown := set(fold) - {"all", *folder_of.values()}:
            raise GatheringError(f"there are no shards in {root / min(unknown)} (FOLD=...)")
        folded = {folder for folder in folder_of.values() if {"all", folder} & set(fold)}
        old = [file for file, folder in folder_of.items() if folder in folded]
        if lost := sorted(set(old) - set(results.shards())):
            raise GatheringError(f"{lost[0]} cannot be read: restore it (git checkout), then fold")
        lenses, codes = (
            dict(zip(before["identity"], before[x], strict=True)) for x in ("lens", "code")
        )
        entries = []
        for name, some in askers.items():
            lens = lenses.get(name.identity)
            if lens and f"{lens}/{name.kind}" not in folded:
                continue
            entry = results.get(name) or cache.get(name)
            if entry is None:
                raise GatheringError(
                    f"{some[0]} asks for a result of the kind {name.kind!r} that neither {root} "
                    f"nor {cache.root} has: run it again (`make figures ONLY=...`, or a unit by "
                    "runs.py)"
                )
            made = {**entry.made, "code": codes.get(name.identity, entry.made["code"])}
            entries.append(replace(entry, notebooks=tuple(some), made=made))
            lens_of[name.identity] = _lens(some, lens)
        files = write_shards(root, entries, lens_of, instead_of=old)
        idle = _note(root, askers, restamp)
        overview = by_kind(Ledger(root).overview(), root)
        store.write_whole(root / "README.md", _readme(overview).encode())
        new = sum(x.identity not in lenses for x in entries)
        size = sum(file.stat().st_size for file in files) / 1e6
        messages = [f"{new} results are new; {len(files)} shards were written, {size:.2f} MB"]
        messages += [f"{folder} was folded" for folder in sorted(folded)]
        if idle:
            messages.append(
                f"{idle} results are asked for by nobody: `make results FOLD=all` drops them"
            )
        return overview, messages


def write_shards(
    root: Path,
    entries: Iterable[Entry],
    lens_of: Mapping[str, str],
    instead_of: Iterable[Path] = (),
) -> list[Path]:
    """Put entries into shards of their own, in the place of some files; the new ones, sorted.

    ``lens_of`` gives the folder of an identity; a shard is called by the hash of its content.
    """
    groups: dict[Path, list[Entry]] = {}
    for entry in sorted(entries, key=lambda entry: (entry.text, entry.identity)):
        groups.setdefault(root / lens_of[entry.identity] / entry.kind, []).append(entry)
    # all are made before the first is written, as some are read from files that go
    made = {
        folder / f"{hashlib.sha256(content).hexdigest()[:16]}.parquet": content
        for folder, group in groups.items()
        for content in _contents(group)
    }
    for path, content in made.items():
        if not path.is_file() or path.read_bytes() != content:
            store.write_whole(path, content)
    record = Ledger(root).notes(ledger.SHARDS)
    gone = set(instead_of) - set(made)
    for old in gone:
        record.pop(old.relative_to(root).as_posix(), None)
    for path, content in made.items():
        digest = hashlib.sha256(content).hexdigest()
        record[path.relative_to(root).as_posix()] = [str(len(content)), digest]
    _write_notes(root / ledger.SHARDS, record)
    for old in gone:  # last, so that a stop leaves what is on record
        old.unlink(missing_ok=True)
    return sorted(made)


def _contents(group: Sequence[Entry]) -> Iterator[bytearray]:
    """Entries of one folder as files of at most `LIMIT` bytes."""
    content = ledger.file_content(ledger.to_arrow(group))
    if len(content) <= LIMIT:
        yield content
    elif len(group) == 1:
        raise GatheringError(
            f"a result of the kind {group[0].kind!r} has {len(content) / 1e6:.1f} MB, and a shard "
            f"at most {LIMIT / 1e6:.0f}: keep less of it, {group[0].text}"
        )
    else:
        middle = len(group) // 2
        yield from _contents(group[:middle])
        yield from _contents(group[middle:])


def _note(root: Path, askers: Mapping[AskName, Sequence[str]], restamp: bool) -> int:
    """Note what the shards do not say: who asks by now, what code counts; how many nobody asks."""
    results = Ledger(root)
    rows, stamps = results.overview(as_written=True), results.notes(ledger.STAMPS)
    now = [tuple(askers.get(AskName(x.kind, x.identity), ())) for x in rows.itertuples()]
    changed = {
        row.identity: [" ".join(some)]
        for row, some in zip(rows.itertuples(), now, strict=True)
        if some != row.notebooks
    }
    _write_notes(root / ledger.ASKERS, changed)
    known = kinds() if restamp else {}
    for row in rows.itertuples() if restamp else ():
        kind = known.get(work.kind_name(row.kind, row.ask))
        if kind and kind.version == row.version:
            stamps[row.code] = [kind.code]
    there = {old: new for old, new in stamps.items() if old in set(rows["code"]) and [old] != new}
    _write_notes(root / ledger.STAMPS, there)
    return now.count(())


def _write_notes(path: Path, notes: Mapping[str, Sequence[str]]) -> None:
    """Lines that `Ledger.notes` reads; no file where there are none."""
    lines = ["\t".join([first, *more]) for first, more in sorted(notes.items())]
    if lines:
        store.write_whole(path, ("\n".join(lines) + "\n").encode())
    else:
        path.unlink(missing_ok=True)


def _lens(askers: Sequence[str], before: str | None) -> str:
    """The folder of a result: where it is, while an asker is of that lens; else the first's."""
    lenses = [RUN_LENS if is_run(asker) else asker.partition("-")[0] for asker in askers]
    return before if before in lenses and before != RUN_LENS else lenses[0]


def by_kind(entries: pd.DataFrame, root: Path) -> pd.DataFrame:
    """One row per kind and lens: entries, MB of its shards, core-hours, commits, processors."""

    def names(column: pd.Series) -> str:
        return ", ".join(sorted(set(column)))

    hours = entries["seconds"] * entries["threads"].clip(lower=1) / 3600
    processor = entries["cpu"].where(entries["device"] == "cpu", entries["device"])
    groups = entries.assign(hours=hours.astype(float), cpu=processor).groupby(["kind", "lens"])
    table = groups.agg(
        entries=("hours", "size"),
        MB=("hours", "size"),
        hours=("hours", "sum"),
        commit=("commit", names),
        processor=("cpu", names),
    )
    sizes = Counter()
    for file in filter(Path.is_file, Ledger(root).files()):
        sizes[ledger.folder_of(root, file)] += file.stat().st_size
    table["MB"] = [sizes[f"{lens}/{kind}"] / 1e6 for kind, lens in table.index]
    return table.reset_index()


_README = """# Results

What the notebooks ask for, computed once: written by `make results`, read by
`xlx.results.work`, proved by `make test` (a sample) and `make reproduce` (all). A folder
`<lens>/<kind>` holds shards of at most 10 MB (those called `first` are older), a row an
entry: what was asked, by which notebooks, the value, and what made it (hash of the code,
versions, processor, threads, seconds, commit, date). What is added goes into new shards.
Never edit one: its entries would count as missing. What the long runs of public models
gave (`data/models-public/runs.py`; an asker `run:<unit>`) lies in `public`, unless a
notebook asked for it first.

- `shards.tsv`: size and SHA-256 of each shard;
- `askers.tsv`, where there is one: who asks for an entry by now, where that has changed;
- `stamps.tsv`, where there is one: code → later code that was proved to give the same.

`make results FOLD="abx/score"`, or `FOLD=all`, writes shards anew by these notes,
without what nobody asks for any more.

| kind | lens | entries | MB | hours | commit | processor |
|---|---|---:|---:|---:|---|---|"""


def _readme(overview: pd.DataFrame) -> str:
    lines = [_README]
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
    parser.add_argument("--fold", nargs="+", default=[], metavar="LENS/KIND", help="or all")
    options = parser.parse_args(argv)
    stems = [path.stem for path in paths.NOTEBOOKS.glob("*.ipynb")]
    cache, build = Cache(paths.CACHE / "results"), paths.BUILD / "mini"
    try:
        table, messages = write_results(
            stems,
            build,
            paths.RESULTS,
            cache,
            restamp=options.restamp,
            runs=paths.BUILD / "runs",
            forget=options.forget,
            fold=options.fold,
        )
    except (GatheringError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    entries, size = table["entries"].sum(), table["MB"].sum()
    print(f"data/results: {entries} results of {table['kind'].nunique()} kinds, {size:.1f} MB")
    print(*messages, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
