"""Whether the results that the repository ships are those that its code computes.

    python -m notebooks.run.audit sample build/test/sample    # before the notebooks are tested
    python -m notebooks.run.audit                      # after: what was compared, what is wrong

``make test`` draws entries of every kind, by the hash of the ledger: another ledger, another
sample. Where a notebook asks for one of them, it is computed again (`xlx.results.work`,
``XLX_AUDIT``), and compared at the end as by `make reproduce`.
``AUDIT_SEED`` draws another sample. Not drawn is what long runs alone ask for, and what is of a
public model whose weights are not on this machine.
"""

import argparse
import hashlib
import os
import shutil
import sys
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from notebooks.run import gathering, journals
from notebooks.run.gathering import is_run
from xlx.results import paths, work
from xlx.results.ledger import SHARDS, Cache, Ledger
from xlx.results.store import StoreWarning

#: What a sample is worth, by the seconds that were recorded; and how many a second of a GPU counts
#: (a fine-tuning: 41 there, 290 on one thread of a processor).
SECONDS, OF_GPU = 120.0, 8.0
FOLDER = paths.BUILD / "test"


def draw(overview: pd.DataFrame, ledger: str, seed: str, seconds: float) -> pd.DataFrame:
    """Entries to compute again: of each kind first its share of the time, then from all the rest.

    A kind of which nothing fits its share gives its shortest entry, if that takes no more than half
    of the whole time.
    """

    def fitting(entries: pd.Series, room: float) -> list[int]:
        short = entries[entries <= room]
        return [*short.index[short.cumsum() <= room]]

    text = f"{ledger}{seed}"
    order = [hashlib.sha256(f"{text}{x}".encode()).hexdigest() for x in overview["identity"]]
    rows = overview.iloc[np.argsort(order)].copy()
    shared = {name: kind.shared_seconds for name, kind in gathering.kinds().items()}
    slower = np.where(rows["device"] == "cpu", 1.0, OF_GPU)
    rows["seconds"] = slower * rows["seconds"].fillna(0.0) + rows["kind"].map(shared).fillna(0.0)
    chosen: list[int] = []
    for _, entries in rows["seconds"].groupby(rows["kind"]):
        shortest = [entries.idxmin()] if entries.min() <= seconds / 2 else []
        chosen += fitting(entries, seconds / rows["kind"].nunique()) or shortest
    left = rows["seconds"].drop(index=chosen)
    return rows.loc[chosen + fitting(left, seconds - rows.loc[chosen, "seconds"].sum())]


def write_sample(path: Path, root: Path = paths.RESULTS) -> pd.DataFrame:
    """Draw a sample and write it: one line per entry, its identity and a notebook that asks for it.

    From what a test of the notebooks can compute again.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)  # `report` says it
        rows = Ledger(root).overview()
    rows = rows[[not all(map(is_run, askers)) for askers in rows["notebooks"]]]
    # in bfloat16 the layers that are nearly the best change places from machine to machine
    rows = rows[~rows["ask"].str.contains('"dtype": "bfloat16"', regex=False)]
    rows, _ = gathering.computable(rows)
    shards = str(sorted(Ledger(root).notes(SHARDS).items()))
    digest = hashlib.sha256(shards.encode()).hexdigest()
    drawn = draw(rows, digest, os.environ.get("AUDIT_SEED", ""), SECONDS)
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(path.with_name(work.COMPUTED), ignore_errors=True)
    asked = zip(drawn["identity"], drawn["notebooks"], strict=True)
    lines = [" ".join([identity, *notebooks[:1]]) + "\n" for identity, notebooks in asked]
    path.write_text("".join(lines), encoding="utf-8")
    return drawn


# --- what came of it ------------------------------------------------------------------------------


def findings(
    root: Path = paths.RESULTS, folder: Path = FOLDER, stems: Sequence[str] | None = None
) -> tuple[pd.DataFrame, list[str], list[str]]:
    """What was compared, one row per kind; a sentence on everything that is wrong; other kinds.

    Parameters
    ----------
    folder : Path
        With ``asks/``, where the tested notebooks noted what they asked for, and ``sample``.
    stems : sequence of str, optional
        The notebooks that there should be. Default: those of the repository.
    """
    stems = stems or sorted(path.stem for path in paths.NOTEBOOKS.glob("*.ipynb"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StoreWarning)
        overview = (stored := Ledger(root)).overview()
    wrong = [str(x.message) for x in caught if issubclass(x.category, StoreWarning)]
    journal_of = {stem: journals.journal(stem, folder) for stem in stems}
    untested = [stem for stem, journal in journal_of.items() if not journal.is_file()]
    wrong += [f"{stem} was not tested: no {journal_of[stem]}" for stem in untested]
    asked = {
        line["identity"]: (stem, line["kind"])
        for stem in stems
        if stem not in untested
        for line in journals.read_journal(journal_of[stem])
    }
    drawn = _drawn(folder / "sample")
    expected, computed = overview[overview["identity"].isin(drawn)], Cache(folder / work.COMPUTED)
    table, sentences = gathering.compare(expected, stored, computed)
    wrong += sentences if drawn else [_NO_SAMPLE.format(folder / "sample")]
    wrong += _of_other_code(overview)
    there = {*overview["identity"]}
    lacking = Counter(asker for identity, asker in asked.items() if identity not in there)
    wrong += [
        f"{stem} asks for {n} results of the kind {kind!r} that the ledger lacks: "
        f"`make figures ONLY={stem}`, then `make results`"
        for (stem, kind), n in sorted(lacking.items())
    ]
    # of some it is noted that nobody asks any more; they leave at the next fold
    due = overview["notebooks"].map(lambda askers: bool(askers) and not any(map(is_run, askers)))
    orphans = overview[~overview["identity"].isin(list(asked)) & due.astype(bool)]
    wrong += [
        f"{len(rows)} results of the kind {kind!r} are asked for by no notebook, such as "
        f"{rows['ask'].iloc[0]}: `make results` notes it"
        for kind, rows in orphans.groupby("kind")
        if not untested
    ]
    return table, wrong, sorted(set(overview["kind"]) - set(table["kind"]))


_NO_SAMPLE = "there is no sample {0}: `python -m notebooks.run.audit sample {0}` draws one"


def _drawn(path: Path) -> set[str]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else ()
    return {line.split()[0] for line in lines}


def _of_other_code(overview: pd.DataFrame) -> list[str]:
    """Entries whose code has changed under the same version, one sentence per kind."""
    known, wrong = gathering.kinds(), []
    names = [work.kind_name(row.kind, row.ask) for row in overview.itertuples()]
    for name, rows in overview.groupby(names):
        if name not in known:
            wrong.append(f"the ledger has results of a kind {name!r} that the code does not know")
            continue
        kind = known[name]
        n_old = ((rows["code"] != kind.code) & (rows["version"] == kind.version)).sum()
        if n_old:
            wrong.append(
                f"{n_old} of {len(rows)} results of the kind {name!r} were made by other code "
                f"than today's version {kind.version}: compute some again (`make reproduce "
                f"ONLY={kind.name}`); if they are equal, `make results RESTAMP=1`, if not, raise "
                f"the version in {kind.compute.__module__}"
            )
    return wrong


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return 0, or 1 where something is wrong."""
    parser = argparse.ArgumentParser(prog="python -m notebooks.run.audit")
    parser.add_argument("command", nargs="?", choices=["sample", "report"], default="report")
    parser.add_argument("path", nargs="?", type=Path, default=FOLDER / "sample")
    options = parser.parse_args(argv)
    if options.command == "sample":
        drawn = write_sample(options.path)
        print(
            f"audit: {len(drawn)} results of {drawn['kind'].nunique()} kinds, which took "
            f"{drawn['seconds'].sum():.0f} s, are computed again"
        )
        return 0
    table, wrong, absent = findings()
    print(table.to_string(index=False, float_format="{:.3g}".format))
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    if absent:
        print(f"not in the sample, because one alone takes too long: {', '.join(absent)}")
    print(f"audit: {table['compared'].sum()} compared, {len(wrong)} things wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
